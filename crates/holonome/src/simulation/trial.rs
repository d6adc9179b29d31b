//! Default method by trial: of the adaptive methods of high order, the one that is to take least
//! time for the run.
//!
//! Each makes its steps over the same part of the motion. Their time is estimated from the numbers
//! of attempts and of sweeps, and from the operations of the compiled formulas, not measured: the
//! same run then has the same method, and the same bits, on every machine. Steps that are not made
//! in a loop of compiled code have no estimate. They take several times as long (a heavy top 16
//! times, an alkane 37 times), so that any method whose steps are comes before them.

use super::Simulation;
use super::stepping::NoObserver;
use crate::error::Error;
use crate::options::{MethodTrial, RunOptions};
use holonome_integrate::method::{Method, Scheme};
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::run::Outcome;
use holonome_integrate::state::StepState;
use holonome_model::elaborate::model::Model;

/// Schemes that are tried beside the default one.
const OTHERS: [&str; 2] = ["taylor", "gauss16"];

/// Attempts of the default method in a part of the motion: several revolutions of most motions.
const ATTEMPTS: u64 = 100;

/// Largest number of attempts of another method in the same time: one that takes more is slower.
const MOST_ATTEMPTS: u64 = 10 * ATTEMPTS;

/// Part of the run after which the methods make another part of the motion: the beginning is often
/// not like the rest, as long as the scales grow by which errors are measured.
const LATER: f64 = 0.02;

/// Attempts of the default method from which on a trial is worthwhile: to compile the others takes
/// the time of some thousand.
const WORTHWHILE: f64 = 1e4;

/// Attempts for each sample from which on samples take a small part of the time. `gauss16` finds a
/// sample by a step of its own.
const ATTEMPTS_OF_A_SAMPLE: f64 = 10.0;

/// True if neither these options nor the model choose a method, and steps are adaptive.
pub(super) fn is_open(options: &RunOptions, model: &Model) -> bool {
    let suggests = |names: &[&str]| model.run.iter().any(|run| names.contains(&&*run.name.text));
    options.open.contains(&"method")
        && options.step.fixed().is_none()
        && !suggests(&["method", "step"])
}

/// A method that is tried.
struct Tried {
    simulation: Simulation,
    /// Estimated cycles of a part of the motion; infinite if its steps are not made in a loop.
    cycles: f64,
}

/// The simulation by the method that is estimated to take least time for its run: `default`, or one
/// that `compile` makes. A short run stays with the default, and so does that of a templated model.
pub(super) fn fastest(
    default: Simulation,
    compile: impl Fn(RunOptions) -> Result<Simulation, Error>,
) -> Simulation {
    let plan = default.run_plan();
    let mut state = default.state().clone();
    // A run that ends before is short, or fails.
    if default.field.is_none()
        || follow(&default, &mut state, plan.t_end(), ATTEMPTS)
        || attempts(&state) < ATTEMPTS
    {
        return default;
    }
    let span = plan.span().abs();
    let expected = ATTEMPTS as f64 * span / state.elapsed;
    let least = ATTEMPTS_OF_A_SAMPLE * plan.sample_count() as f64;
    if expected < WORTHWHILE.max(least) {
        return default;
    }
    let t_end = state.t;
    let cycles_of_default = cycles(&default, &state);
    let mut tried = vec![Tried { simulation: default, cycles: cycles_of_default }];
    let mut reached = vec![state];
    for scheme in OTHERS {
        let options = &tried[0].simulation.options;
        let scheme = Scheme::named(scheme).expect("a registered scheme");
        let method = Method { scheme, ..options.method };
        let trial = Some(MethodTrial::default());
        let Ok(other) = compile(RunOptions { method, trial, ..options.clone() }) else { continue };
        let mut state = other.state().clone();
        if follow(&other, &mut state, t_end, MOST_ATTEMPTS) {
            tried.push(Tried { cycles: cycles(&other, &state), simulation: other });
            reached.push(state);
        }
    }
    let mut best = least_of(&tried);
    if tried[best].cycles.is_finite()
        && let Some(later) = cycles_later(&tried, best, reached.swap_remove(best))
    {
        tried.iter_mut().zip(later).for_each(|(tried, cycles)| tried.cycles = cycles);
        best = least_of(&tried);
    }
    let least = tried[best].cycles;
    let time = |Tried { simulation, cycles }: &Tried| {
        (simulation.options.method.to_string(), cycles.is_finite().then_some(cycles / least))
    };
    let trial = least.is_finite().then(|| MethodTrial { times: tried.iter().map(time).collect() });
    let mut simulation = tried.swap_remove(best).simulation;
    simulation.options.trial = trial;
    simulation
}

/// The method that takes least time, the first of several.
fn least_of(tried: &[Tried]) -> usize {
    let order = |&a: &usize, &b: &usize| tried[a].cycles.total_cmp(&tried[b].cycles);
    (0..tried.len()).min_by(order).expect("the default was tried")
}

/// Estimated cycles of a later part of the motion, to which `best` goes from `state`; `None` if a
/// method does not get there.
fn cycles_later(tried: &[Tried], best: usize, mut state: StepState) -> Option<Vec<f64>> {
    let plan = tried[best].simulation.run_plan();
    let begin = plan.t0 + LATER * plan.span();
    if state.elapsed < LATER * plan.span().abs()
        && !follow(&tried[best].simulation, &mut state, begin, plan.step_limit)
    {
        return None;
    }
    let mut t_end = plan.t_end();
    let mut later = Vec::new();
    for (k, Tried { simulation, .. }) in tried.iter().enumerate() {
        let mut from = simulation.state().clone();
        (from.t, from.elapsed, from.next_sample) = (state.t, state.elapsed, 1);
        from.x.clone_from(&state.x);
        from.values.clone_from(&state.values);
        from.scales.norms.clone_from(&state.scales.norms);
        let most = if k == 0 { ATTEMPTS } else { MOST_ATTEMPTS };
        let finished = follow(simulation, &mut from, t_end, most);
        match k {
            0 => t_end = from.t,
            _ if !finished => {
                later.push(f64::INFINITY);
                continue;
            }
            _ => {}
        }
        later.push(cycles(simulation, &from));
    }
    Some(later)
}

/// Go on to a time by at most so many attempts, without samples on the way; true if it is reached.
fn follow(simulation: &Simulation, state: &mut StepState, t_end: f64, attempts: u64) -> bool {
    let mut plan = Plan { step_limit: attempts, ..simulation.run_plan().clone() };
    if let Stepping::Adaptive(adaptive) = &mut plan.stepping {
        adaptive.t_end = t_end;
        adaptive.samples = vec![adaptive.t0, t_end];
        adaptive.moments.retain(|moment| moment.from < t_end);
    }
    matches!(simulation.run_unstored(&plan, state, &mut NoObserver), Ok(Outcome::Finished))
}

/// Estimated cycles of the attempts that have led to a state; infinite if they are not made in a
/// loop.
fn cycles(simulation: &Simulation, state: &StepState) -> f64 {
    let step = &simulation.trajectory.step;
    step.cycles(attempts(state), &state.cost).unwrap_or(f64::INFINITY)
}

/// Attempts that have led to a state, accepted and rejected.
fn attempts(state: &StepState) -> u64 {
    state.step + state.cost.rejected
}
