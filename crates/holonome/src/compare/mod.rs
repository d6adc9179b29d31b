//! One system by several methods: errors against a converged solution, drifts, costs.
//!
//! Every run is made twice. Once with samples, and these run side by side on all cores: they tell of errors and trends.
//! Then once without, one after the other, with nothing beside them: these give the times, and costs that hold no
//! interpolation of samples. Samples do not influence the steps, so both are the same run.
//!
//! ```no_run
//! use holonome::compare::{CompareOptions, compare};
//! use holonome::{Control, Problem, Settings};
//!
//! let problem = Problem::load("models/spherical-pendulum.holo".as_ref(), &Settings::default())?;
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

/// What is compared, and how.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// The methods.
    pub methods: Vec<Method>,
    /// Fixed steps.
    pub steps: Vec<f64>,
    /// Relative tolerances, for methods that choose their steps.
    pub rtol: Vec<f64>,
    /// Absolute tolerances, one for each relative one or one for all; equal to the relative ones where there are none.
    pub atol: Vec<f64>,
    /// Budgets, in place of steps and tolerances: each method takes the step or the tolerance that spends it.
    pub budgets: Vec<u64>,
    /// What all runs have in common: the end, the outputs, gains, targets. The rest of it is not used.
    pub run: RunOptions,
}

/// How far a comparison is, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct CompareProgress {
    /// Pieces of work done: computations of the reference, runs, timings.
    pub done: usize,
    /// Pieces in all.
    pub of: usize,
}

/// A comparison's result.
pub struct Comparison {
    /// The model's name.
    pub model: String,
    /// The model's text.
    pub source: String,
    /// The words of the command that makes the comparison again, where there is one.
    pub command: Vec<String>,
    /// Whether the model is Hamiltonian.
    pub hamiltonian: bool,
    /// The end of every run.
    pub t: f64,
    /// What the errors are measured against.
    pub reference: Reference,
    /// The runs, in the order of the methods, and for each in that of its steps or tolerances.
    pub rows: Vec<Row>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Whether it was stopped before its end: some rows failed for that reason, and errors are known up to where the
    /// reference was.
    pub interrupted: bool,
}

/// One method with one step or tolerance.
pub struct Row {
    /// The method.
    pub method: Method,
    /// Its fixed step.
    pub step: Option<f64>,
    /// Its tolerances, relative and absolute.
    pub tolerance: Option<(f64, f64)>,
    /// The budget that it was given.
    pub budget: Option<u64>,
    /// Its penalty's ω.
    pub penalty: Option<f64>,
    /// Whether it is the extrapolation of that run and of one with 2ω, by which errors shrink from ω⁻² to ω⁻⁴.
    pub extrapolated: bool,
    /// What it came to.
    pub outcome: Result<Measured, Failed>,
}

/// What is known of a run that reached its end.
pub struct Measured {
    /// Accepted steps.
    pub steps: u64,
    /// The errors; none where there is no reference.
    pub errors: Option<Errors>,
    /// The order measured between this run and the one above it.
    pub order: Option<f64>,
    /// The drift of every invariant, in the model's order.
    pub drift: Vec<Drift>,
    /// The trend of each; none of a run with too few samples.
    pub trend: Vec<Option<Trend>>,
    /// Evaluations.
    pub cost: Cost,
    /// Time in the stepping loop.
    pub wall_seconds: f64,
}

/// Why a run is not there.
#[derive(Clone, Debug)]
pub struct Failed {
    /// A word for programs.
    pub kind: &'static str,
    /// For people.
    pub message: String,
    /// How far it came.
    pub t: Option<f64>,
}

impl Comparison {
    /// Every invariant of the runs, in the order of the first of them; a penalised run has one more.
    pub fn invariants(&self) -> Vec<(&str, InvariantKind)> {
        let mut all: Vec<(&str, InvariantKind)> = Vec::new();
        for drift in self.rows.iter().flat_map(|row| &row.outcome).flat_map(|measured| &measured.drift) {
            if !all.contains(&(&drift.name, drift.kind)) {
                all.push((&drift.name, drift.kind));
            }
        }
        all
    }
}

impl Row {
    /// The method, and whether it is extrapolated.
    pub fn label(&self) -> String {
        if self.extrapolated { format!("{}, extrapolated", self.method) } else { self.method.to_string() }
    }
}

impl Measured {
    /// Drift and trend of an invariant.
    pub fn of(&self, (name, kind): (&str, InvariantKind)) -> Option<(&Drift, Option<Trend>)> {
        let at = self.drift.iter().position(|drift| drift.name == name && drift.kind == kind)?;
        Some((&self.drift[at], self.trend[at]))
    }
}

/// Outputs of each run unless asked otherwise; fewer where they would take too much memory.
const SAMPLES: u64 = 1001;

/// Numbers that all samples together may have: half a gigabyte.
const SAMPLED_NUMBERS: u64 = 1 << 26;

/// Compares. `watch` is called now and then, from several threads. Where it says stop, what is done is kept: `None` if
/// that is no run at all.
///
/// # Errors
/// When the options make no sense, or a method does not suit the model. A run that fails is a row like others.
pub fn compare(
    problem: &Problem,
    options: &CompareOptions,
    watch: &(dyn Fn(CompareProgress) -> Control + Sync),
) -> Result<Option<Comparison>, Error> {
    let cases = cases::cases(options)?;
    // Observables are no part of a comparison, and those that use multipliers suit not every method.
    let mut problem = problem.clone();
    problem.model = problem.model.without_observables();
    let problem = &problem;
    let common = common(problem, options, cases.len());
    let penalised = cases.iter().filter(|case| extrapolation::suits(problem, &common, case)).count();
    let monitor = Monitor::new(watch, Reference::COMPUTATIONS + 2 * cases.len() + penalised);
    let prepared: Vec<_> = cases.par_iter().map(|case| case.prepare(problem, &common, &cases, &monitor)).collect();
    let runs: Vec<Result<Simulation, Failed>> = prepared.into_iter().collect::<Result<_, Error>>()?;
    let times = sample_times(runs.iter().flatten(), common.until);
    let record = |run: &Result<Simulation, Failed>| {
        let trial = run.as_ref().map(|simulation| Trial::record(simulation, &simulation.plan, &monitor));
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
        rows.extend(extrapolated.map(|outcome| Row { extrapolated: true, ..case.row(run, outcome) }));
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
        let what = "stopped before its end: the last times were taken while other runs were under way";
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

/// The runs' warnings, each once: what all of them say by itself, the rest after the method.
fn warnings_of(runs: &[Result<Simulation, Failed>]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for run in runs.iter().flatten() {
        for warning in &run.warnings {
            let of_all = runs.iter().flatten().all(|other| other.warnings.contains(warning));
            let text = if of_all { warning.clone() } else { format!("{}: {warning}", run.options.method) };
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }
    warnings
}

/// What all runs have in common, the number of samples settled.
fn common(problem: &Problem, options: &CompareOptions, cases: usize) -> RunOptions {
    let mut common = options.run.clone();
    if common.samples.is_none() && common.every.is_none() {
        // Of each sample are kept: the state, F, and two reference states.
        let (field, rows) = (&problem.examined.field, &problem.examined.rows);
        let invariants = field.as_ref().map_or(0, |f| f.0.invariants.len()) + rows.as_ref().map_or(0, |r| r.count());
        let numbers = (cases * (3 * problem.model.dimension() + invariants)).max(1);
        common.samples = Some((SAMPLED_NUMBERS / numbers as u64).clamp(2, SAMPLES));
    }
    common
}

/// Every time at which one of the runs has a sample, ascending; k·h may lie a rounding beyond the end.
fn sample_times<'a>(runs: impl Iterator<Item = &'a Simulation>, until: f64) -> Vec<f64> {
    let of = |run: &Simulation| (0..run.plan.sample_count()).map(|i| run.plan.sample_time(i)).collect::<Vec<_>>();
    let mut times: Vec<f64> = runs.flat_map(of).map(|t| t.min(until)).chain([0.0, until]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

/// What a run came to, with the time that it takes by itself.
fn measure(run: &Simulation, trial: Trial, reference: &Reference, monitor: &Monitor<'_>) -> Result<Measured, Failed> {
    if let Some(failed) = trial.failed {
        return Err(failed);
    }
    let (wall_seconds, state) = match monitor.stopped() {
        // There is no more time to take; those of the trial have to do.
        true => (trial.wall_seconds, trial.state.clone()),
        false => match trial::time(run, monitor)? {
            Some(timed) => timed,
            None => (trial.wall_seconds, trial.state.clone()),
        },
    };
    Ok(Measured {
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
