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
mod folder;
mod reference;
mod table;
mod trend;
mod trial;

pub use errors::{Errors, Size};
pub use folder::Folder;
pub use reference::{Reference, USEFUL};
pub use trend::Trend;

use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::simulation::Simulation;
pub use crate::summary::{COUNTED, budget_of};
use crate::summary::{Cost, Drift, Summary};
use holonome_integrate::method::Method;
use holonome_integrate::observer::Control;
use holonome_model::treatment::InvariantKind;
use rayon::prelude::*;
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
pub struct Comparison {
    /// The model's name.
    pub model: String,
    /// The model's text.
    pub source: String,
    /// Words of the command that repeats the comparison, if there is one.
    pub command: Vec<String>,
    /// True if the model is Hamiltonian.
    pub hamiltonian: bool,
    /// The end of every run.
    pub t: f64,
    /// Solution against which the errors are measured.
    pub reference: Reference,
    /// The runs, in the order of the methods, and for each in that of its steps or tolerances.
    pub rows: Vec<Row>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// True if the comparison was stopped before its end: some rows then failed for that reason,
    /// and errors are known only up to the end of the reference.
    pub interrupted: bool,
}

/// One method with one step or tolerance.
pub struct Row {
    /// The method.
    pub method: Method,
    /// Fixed step.
    pub step: Option<f64>,
    /// Tolerances, relative and absolute.
    pub tolerance: Option<(f64, f64)>,
    /// Given budget.
    pub budget: Option<u64>,
    /// ω of the penalty.
    pub penalty: Option<f64>,
    /// True for the extrapolation of that run and one with 2ω, which reduces errors from ω⁻² to
    /// ω⁻⁴.
    pub extrapolated: bool,
    /// Result of the run.
    pub outcome: Result<MeasuredRun, Failed>,
}

/// Measurements of a run that reached its end.
pub struct MeasuredRun {
    /// Accepted steps.
    pub steps: u64,
    /// Errors; `None` if there is no reference.
    pub errors: Option<Errors>,
    /// Order measured between this run and the one above it.
    pub order: Option<f64>,
    /// Drift of every invariant, in the model's order.
    pub drift: Vec<Drift>,
    /// Trend of each invariant; `None` if the run has too few samples.
    pub trend: Vec<Option<Trend>>,
    /// Counts of evaluations.
    pub cost: Cost,
    /// Time in the stepping loop.
    pub wall_seconds: f64,
}

/// Reason why a run has no measurements.
#[derive(Clone, Debug)]
pub struct Failed {
    /// One word, for programs.
    pub kind: &'static str,
    /// Message for people.
    pub message: String,
    /// Time that the run reached.
    pub t: Option<f64>,
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
        if self.extrapolated {
            format!("{}, extrapolated", self.method)
        } else {
            self.method.to_string()
        }
    }
}

impl MeasuredRun {
    /// Drift and trend of an invariant.
    pub fn of(&self, (name, kind): (&str, InvariantKind)) -> Option<(&Drift, Option<Trend>)> {
        let at = self.drift.iter().position(|drift| drift.name == name && drift.kind == kind)?;
        Some((&self.drift[at], self.trend[at]))
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
    let runs: Vec<Result<Simulation, Failed>> =
        prepared.into_iter().collect::<Result<_, Error>>()?;
    let times = sample_times(runs.iter().flatten(), common.until);
    let record = |run: &Result<Simulation, Failed>| {
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
    let mut failed_claims = Vec::new();
    for (run, trial) in runs.iter().zip(&trials) {
        if let (Ok(run), Ok(trial)) = (run, trial) {
            let of_run = |warning: String| format!("{}: {warning}", run.options.method);
            failed_claims.extend(run.claim_warnings(&trial.state).into_iter().map(of_run));
        }
    }
    let mut rows = Vec::new();
    for ((case, run), trial) in cases.iter().zip(&runs).zip(trials) {
        let extrapolated = match (run, &trial) {
            (Ok(run), Ok(trial)) if run.penalty.is_some() => {
                Some(extrapolation::row(problem, run, &trial.samples, &reference, &monitor))
            }
            _ => None,
        };
        let outcome = match (run, trial) {
            (Ok(run), Ok(trial)) => measure(run, trial, &reference, &monitor),
            (Err(failed), _) => Err(failed.clone()),
            (_, Err(failed)) => Err(failed),
        };
        monitor.finish_one();
        let run = run.as_ref().ok();
        rows.push(case.row(run, outcome));
        rows.extend(
            extrapolated.map(|outcome| Row { extrapolated: true, ..case.row(run, outcome) }),
        );
    }
    let interrupted = monitor.stopped();
    if interrupted && rows.iter().all(|row| row.outcome.is_err()) {
        return Ok(None);
    }
    errors::measure_orders(&mut rows);
    let mut warnings = problem.warning_lines();
    warnings.extend(cases::unused(options, &cases));
    warnings.extend(warnings_of(&runs));
    warnings.extend(failed_claims);
    if interrupted {
        let done = rows.iter().filter(|row| row.outcome.is_ok()).count();
        let what =
            "stopped before its end: the last times were taken while other runs were under way";
        warnings.push(format!("{what}; {done} of {} rows are there", rows.len()));
    }
    let (model, hamiltonian) = (problem.name.clone(), problem.model.is_hamiltonian());
    let (source, command) = (problem.source.text().to_string(), Vec::new());
    Ok(Some(Comparison {
        model,
        source,
        command,
        hamiltonian,
        t: common.until,
        reference,
        rows,
        warnings,
        interrupted,
    }))
}

/// Warnings of the runs, each once: alone if all runs share it, otherwise after the method's name.
fn warnings_of(runs: &[Result<Simulation, Failed>]) -> Vec<String> {
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
) -> Result<MeasuredRun, Failed> {
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
    Ok(MeasuredRun {
        steps: state.step,
        errors: Errors::of(&trial.samples, reference),
        order: None,
        drift: Summary::drift_of(
            &run.groups,
            &run.problem.examined.varying,
            &run.initial,
            (&trial.state, run.plan.span()),
        ),
        trend: run.groups.iter().map(|group| Trend::of(group, &trial.samples)).collect(),
        cost: state.cost,
        wall_seconds,
    })
}
