//! Richardson extrapolation in 1/ω²: the error of a penalised run from the slow manifold is C/ω² +
//! O(ω⁻⁴). A run with 2ω determines C, and (4 x_{2ω} − x_ω)/3 has an error of O(ω⁻⁴) in the
//! positions.

use super::cases::Case;
use super::errors::Errors;
use super::reference::Reference;
use super::trial::{self, Monitor, Samples, Trial};
use super::{Failed, MeasuredRun, cost_of_row};
use crate::options::{PenaltyStrength, RunOptions};
use crate::penalty::takes;
use crate::problem::Problem;
use crate::simulation::{Simulation, prepare};
use crate::summary::Drifts;
use indexmap::IndexMap;

/// True if a case gets an extrapolated row.
pub(super) fn suits(problem: &Problem, common: &RunOptions, case: &Case) -> bool {
    let asked = common.penalty.is_some() || common.penalty_tolerance.is_some();
    asked
        && takes(&case.method)
        && problem.model.is_hamiltonian()
        && !problem.model.constraints.is_empty()
}

/// Measurements of the run extrapolated with one of twice its ω.
pub(super) fn row(
    problem: &Problem,
    run: &Simulation,
    samples: &Samples,
    reference: &Reference,
    monitor: &Monitor<'_>,
) -> Result<MeasuredRun, Failed> {
    let measured = extrapolated(problem, run, samples, reference, monitor);
    monitor.finish_one();
    measured
}

fn extrapolated(
    problem: &Problem,
    run: &Simulation,
    samples: &Samples,
    reference: &Reference,
    monitor: &Monitor<'_>,
) -> Result<MeasuredRun, Failed> {
    let omega = run.penalty.as_ref().map_or(f64::NAN, |penalty| 2.0 * penalty.omega);
    let options =
        RunOptions { penalty: Some(PenaltyStrength::Omega(omega)), ..run.options.clone() };
    let stiffer = prepare(problem.clone(), options).map_err(Failed::from)?;
    let trial = Trial::record(&stiffer, &stiffer.plan, monitor);
    if let Some(failed) = trial.failed {
        return Err(failed);
    }
    let pairs = samples.x.iter().zip(&trial.samples.x);
    let extrapolate = |(one, two): (&Vec<f64>, &Vec<f64>)| {
        one.iter().zip(two).map(|(a, b)| (4.0 * b - a) / 3.0).collect()
    };
    let extrapolated = Samples {
        t: samples.t.clone(),
        x: pairs.map(extrapolate).collect(),
        deviations: Vec::new(),
    };
    let timed = |simulation| {
        trial::time(simulation, monitor)?.ok_or_else(|| Failed::stopped(run.plan.t_end()))
    };
    let ((seconds, state), (more_seconds, more)) = (timed(run)?, timed(&stiffer)?);
    let mut cost = state.cost;
    cost.add(&more.cost);
    Ok(MeasuredRun {
        steps: state.step + more.step,
        errors: Errors::of(&extrapolated, reference),
        order: None,
        drift: Drifts { all: Vec::new(), hamiltonian: problem.model.is_hamiltonian() },
        trend: IndexMap::new(),
        cost: cost_of_row(&cost, seconds + more_seconds),
    })
}
