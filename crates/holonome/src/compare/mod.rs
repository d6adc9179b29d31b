//! Comparison of several methods on one system: errors against a converged solution, drifts, costs.
//!
//! Every run is made twice. First with samples, all runs side by side on all cores, for errors and
//! trends. Then without samples, one run after the other with nothing beside it, for times, and for
//! costs without interpolation of samples. Samples do not influence the steps, so both are the same
//! run.
//!
//! ```no_run
//! use holonome::compare::{CompareOptions, compare};
//! use holonome::{Control, Problem, Settings};
//!
//! let problem = Problem::load("models/spherical-pendulum.holo", &Settings::default())?;
//! let methods = vec!["euler".parse()?, "corrected:rk4".parse()?];
//! let options = CompareOptions { methods, steps: vec![1e-2, 5e-3], ..CompareOptions::default() };
//! if let Some(comparison) = compare(&problem, &options, &|_| Control::Continue)? {
//!     print!("{}", comparison.to_csv());
//! }
//! # Ok::<(), holonome::Error>(())
//! ```

mod budget;
mod cases;
mod errors;
mod extrapolation;
mod reference;
mod table;
mod trend;
mod trial;

pub use errors::{Errors, Size};
pub use reference::{Reference, USEFUL};
pub use trend::Trend;

use crate::backward;
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::serial;
use crate::simulation::Simulation;
pub use crate::summary::COUNTED;
use crate::summary::{Drift, Drifts, RunCost};
use cases::Case;
use holonome_integrate::method::Method;
use holonome_integrate::observer::Control;
use holonome_integrate::state::Cost;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use holonome_words::option;
use indexmap::IndexMap;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Not;
use std::path::PathBuf;
use trial::{Monitor, Trial};

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// The methods.
    pub methods: Vec<Method>,
    /// Fixed steps.
    pub steps: Vec<f64>,
    /// Relative tolerances, for methods that choose their steps.
    pub rtol: Vec<f64>,
    /// Absolute tolerances, one for each relative one or one for all; 0 if empty.
    pub atol: Vec<f64>,
    /// Budgets, in place of steps and tolerances: each method takes the step or the tolerance that
    /// spends it.
    pub budgets: Vec<u64>,
    /// Options that all runs share: the end, the outputs, gains, targets. Its other fields are not
    /// used.
    pub run: RunOptions,
}

/// Progress of a comparison, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct CompareProgress {
    /// Pieces of work done: computations of the reference, runs, timings.
    pub done: usize,
    /// Pieces in all.
    pub of: usize,
}

/// Result of a comparison.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Comparison {
    /// The model's name.
    pub model: String,
    /// The end of every run.
    pub t: f64,
    /// Solution against which the errors are measured.
    pub reference: Reference,
    /// The runs, in the order of the methods, and for each in that of its steps or tolerances.
    pub rows: Vec<Row>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The model's text.
    #[serde(default)]
    pub source: String,
    /// Words of the command that repeats the comparison, if there is one.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its folder, if it has one.
    #[serde(serialize_with = "serial::path", skip_serializing_if = "Option::is_none")]
    pub out: Option<PathBuf>,
    /// True if the comparison was stopped before its end: some rows then failed for that reason,
    /// and errors are known only up to the end of the reference.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub interrupted: bool,
}

/// One method with one step or tolerance.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// The method.
    pub method: String,
    /// Fixed step.
    pub step: Option<f64>,
    /// Relative tolerance.
    pub rtol: Option<f64>,
    /// Absolute tolerance.
    pub atol: Option<f64>,
    /// Given budget.
    pub budget: Option<u64>,
    /// Penalty, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<RowPenalty>,
    /// Result of the run. In JSON its entries are those of the row, or there is a `failure`.
    #[serde(flatten, with = "Outcome")]
    pub outcome: Result<MeasuredRun, Failed>,
}

/// Penalty of a row.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct RowPenalty {
    /// Strength ω.
    pub omega: f64,
    /// True for the extrapolation of that run and one with 2ω, which reduces errors from ω⁻² to
    /// ω⁻⁴.
    pub extrapolated: bool,
}

/// Form of an outcome in JSON.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Result<MeasuredRun, Failed>")]
#[allow(clippy::large_enum_variant)] // never a value: only its derived functions are used
enum Outcome {
    #[serde(rename = "failure")]
    Err(Failed),
    #[serde(untagged)]
    Ok(MeasuredRun),
}

/// Measurements of a run that reached its end.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MeasuredRun {
    /// Accepted steps.
    pub steps: u64,
    /// Errors; `None` if there is no reference.
    #[serde(rename = "error")]
    pub errors: Option<Errors>,
    /// Order measured between this run and the one above it.
    pub order: Option<f64>,
    /// Drift of every invariant.
    pub drift: Drifts,
    /// Trend of each invariant by its name among the gains, in the same order; `None` if the run has
    /// too few samples.
    pub trend: IndexMap<String, Option<Trend>>,
    /// Counts of evaluations, their sum as a budget, and time in the stepping loop.
    pub cost: RunCost,
}

/// Reason why a run has no measurements.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Failed {
    /// One word, for programs.
    pub kind: String,
    /// Message for people.
    pub message: String,
    /// Time that the run reached.
    pub t: Option<f64>,
}

type OrFailed<T> = Result<T, Failed>;

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { kind: error.kind().to_string(), message: error.to_string(), t: None }
    }
}

impl Comparison {
    /// Every invariant of the runs, in the order of the first run; a penalised run has one more.
    pub fn invariants(&self) -> Vec<(&str, InvariantKind)> {
        let mut all: Vec<(&str, InvariantKind)> = Vec::new();
        for drift in
            self.rows.iter().flat_map(|row| &row.outcome).flat_map(|measured| &measured.drift)
        {
            if !all.contains(&(&drift.name, drift.kind)) {
                all.push((&drift.name, drift.kind));
            }
        }
        all
    }
}

impl Row {
    /// Name of the method, marked if extrapolated.
    pub fn label(&self) -> String {
        let ending = if self.is_extrapolated() { ", extrapolated" } else { "" };
        format!("{}{ending}", self.method)
    }

    /// True if it is the extrapolation of two penalised runs.
    pub fn is_extrapolated(&self) -> bool {
        self.penalty.is_some_and(|penalty| penalty.extrapolated)
    }
}

impl MeasuredRun {
    /// Drift and trend of an invariant.
    pub fn of(&self, (name, kind): (&str, InvariantKind)) -> Option<(&Drift, Option<Trend>)> {
        let at = self.drift.iter().position(|drift| drift.name == name && drift.kind == kind)?;
        let trend = self.trend.get(&gain_name(name, kind)).copied().flatten();
        Some((&self.drift[at], trend))
    }
}

/// Default number of outputs of each run; fewer if they would take too much memory.
const SAMPLES: u64 = 1001;

/// Maximum number of values in all samples together: half a gigabyte.
const SAMPLED_NUMBERS: u64 = 1 << 26;

/// Compare the methods. `watch` is called now and then, from several threads. If it returns
/// [`Control::Stop`], finished runs are kept; the result is `None` if there is none.
///
/// # Errors
/// If the options make no sense, or a method does not suit the model. A run that fails is a row
/// like others.
pub fn compare(
    problem: &Problem,
    options: &CompareOptions,
    watch: &(dyn Fn(CompareProgress) -> Control + Sync),
) -> Result<Option<Comparison>, Error> {
    let run = options.run.clone().completed(&problem.model)?;
    backward::refuse(problem, &run, "a comparison")?;
    if run.at.is_some() {
        let (at, every) = (option("at"), option("every"));
        return Err(Error::option(format!(
            "{at}: a comparison has evenly spaced samples; take {every}"
        )));
    }
    let options = &CompareOptions { run, ..options.clone() };
    let cases = cases::cases(options)?;
    // Observables are not part of a comparison, and observables with multipliers do not suit every
    // method.
    let mut problem = problem.clone();
    problem.model = problem.model.without_observables();
    let problem = &problem;
    let common = common(problem, options, cases.len());
    let penalised =
        cases.iter().filter(|case| extrapolation::suits(problem, &common, case)).count();
    let monitor = Monitor::new(watch, Reference::COMPUTATIONS + 2 * cases.len() + penalised);
    let prepared: Vec<_> =
        cases.par_iter().map(|case| case.prepare(problem, &common, &cases, &monitor)).collect();
    let runs: Vec<OrFailed<Simulation>> = prepared.into_iter().collect::<Result<_, Error>>()?;
    let times = sample_times(runs.iter().flatten(), common.until);
    let record = |run: &OrFailed<Simulation>| {
        let trial =
            run.as_ref().map(|simulation| Trial::record(simulation, &simulation.plan, &monitor));
        monitor.finish_one();
        trial.map_err(Failed::clone)
    };
    let (reference, trials) = rayon::join(
        || Reference::make(problem, &common, times, &monitor),
        || runs.par_iter().map(record).collect::<Vec<_>>(),
    );
    let reference = reference?;
    let mut warnings = problem.warning_lines();
    warnings.extend(cases::unused(options, &cases));
    warnings.extend(warnings_of(&runs));
    warnings.extend(failed_claims(&runs, &trials));
    let mut rows = measure_all(problem, (&cases, &runs, trials), &reference, &monitor);
    let interrupted = monitor.stopped();
    if interrupted && rows.iter().all(|row| row.outcome.is_err()) {
        return Ok(None);
    }
    errors::measure_orders(&mut rows);
    if interrupted {
        let done = rows.iter().filter(|row| row.outcome.is_ok()).count();
        let what =
            "stopped before its end: the last times were taken while other runs were under way";
        warnings.push(format!("{what}; {done} of {} rows are there", rows.len()));
    }
    Ok(Some(Comparison {
        model: problem.name.clone(),
        t: common.until,
        reference,
        rows,
        warnings,
        source: problem.source.text().to_string(),
        command: Vec::new(),
        out: None,
        interrupted,
    }))
}

/// Warnings about the claims that failed along the runs.
fn failed_claims(runs: &[OrFailed<Simulation>], trials: &[OrFailed<Trial>]) -> Vec<String> {
    let of = |(run, trial): (&OrFailed<Simulation>, &OrFailed<Trial>)| {
        let (Ok(run), Ok(trial)) = (run, trial) else { return Vec::new() };
        let warnings = run.claim_warnings(&trial.state).into_iter();
        warnings.map(|warning| format!("{}: {warning}", run.options.method)).collect()
    };
    runs.iter().zip(trials).flat_map(of).collect()
}

/// Rows of the cases, each followed by that of its extrapolation if it has one.
fn measure_all(
    problem: &Problem,
    (cases, runs, trials): (&[Case], &[OrFailed<Simulation>], Vec<OrFailed<Trial>>),
    reference: &Reference,
    monitor: &Monitor<'_>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((case, run), trial) in cases.iter().zip(runs).zip(trials) {
        let extrapolated = match (run, &trial) {
            (Ok(run), Ok(trial)) if run.penalty.is_some() => {
                Some(extrapolation::row(problem, run, &trial.samples, reference, monitor))
            }
            _ => None,
        };
        let outcome = match (run, trial) {
            (Ok(run), Ok(trial)) => measure(run, trial, reference, monitor),
            (Err(failed), _) => Err(failed.clone()),
            (_, Err(failed)) => Err(failed),
        };
        monitor.finish_one();
        let run = run.as_ref().ok();
        rows.push(case.row(run, false, outcome));
        rows.extend(extrapolated.map(|outcome| case.row(run, true, outcome)));
    }
    rows
}

/// Warnings of the runs, each once: alone if all runs share it, otherwise after the method's name.
fn warnings_of(runs: &[OrFailed<Simulation>]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for run in runs.iter().flatten() {
        for warning in &run.warnings {
            let of_all = runs.iter().flatten().all(|other| other.warnings.contains(warning));
            let text =
                if of_all { warning.clone() } else { format!("{}: {warning}", run.options.method) };
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }
    warnings
}

/// Options common to all runs, with the number of samples settled.
fn common(problem: &Problem, options: &CompareOptions, cases: usize) -> RunOptions {
    let mut common = options.run.clone();
    if common.samples.is_none() && common.every.is_none() {
        // Kept per sample: the state, F, and two reference states.
        let (field, rows) = (&problem.examined.field, &problem.examined.rows);
        let invariants = field.as_ref().map_or(0, |f| f.0.invariants.len())
            + rows.as_ref().map_or(0, |r| r.count());
        let numbers = (cases * (3 * problem.model.dimension() + invariants)).max(1);
        common.samples = Some((SAMPLED_NUMBERS / numbers as u64).clamp(2, SAMPLES));
    }
    common
}

/// Every time at which a run has a sample, ascending; k·h may lie a rounding beyond the end.
fn sample_times<'a>(runs: impl Iterator<Item = &'a Simulation>, until: f64) -> Vec<f64> {
    let of = |run: &Simulation| {
        (0..run.plan.sample_count()).map(|i| run.plan.sample_time(i)).collect::<Vec<_>>()
    };
    let mut times: Vec<f64> = runs.flat_map(of).map(|t| t.min(until)).chain([0.0, until]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// Measurements of a run, with the time that it takes by itself.
fn measure(
    run: &Simulation,
    trial: Trial,
    reference: &Reference,
    monitor: &Monitor<'_>,
) -> OrFailed<MeasuredRun> {
    if let Some(failed) = trial.failed {
        return Err(failed);
    }
    let (wall_seconds, state) = match monitor.stopped() {
        // No time is left for the timing; the trial's own time has to do.
        true => (trial.wall_seconds, trial.state.clone()),
        false => match trial::time(run, monitor)? {
            Some(timed) => timed,
            None => (trial.wall_seconds, trial.state.clone()),
        },
    };
    let trend = |group: &InvariantGroup| {
        (gain_name(&group.name, group.kind), Trend::of(group, &trial.samples))
    };
    Ok(MeasuredRun {
        steps: state.step,
        errors: Errors::of(&trial.samples, reference),
        order: None,
        drift: run.drifts(&trial.state),
        trend: run.groups.iter().map(trend).collect(),
        cost: cost_of_row(&state.cost, wall_seconds),
    })
}

/// Cost of a row, with its budget.
fn cost_of_row(cost: &Cost, wall_seconds: f64) -> RunCost {
    let cost = RunCost::new(cost, wall_seconds);
    RunCost { budget: Some(cost.in_gradients()), ..cost }
}
