//! Pilot runs: a few steps that test or choose a gain before the run itself begins.

use std::convert::Infallible;

use crate::failure::Failure;
use crate::feedback_term::start_scales;
use crate::observer::{Control, Observer};
use crate::plan::{Plan, Stepping};
use crate::run::run;
use crate::stability::Monitor;
use crate::state::{StabilityMemory, StepState};
use crate::system::System;

/// Number of steps of a pilot run that decides on a gain.
pub const PILOT_STEPS: u64 = 1000;

/// Number of steps of a pilot run that chooses a rate.
const RATE_STEPS: u64 = 100;

/// Values of h·λmax/r in a pilot run.
#[derive(Debug)]
pub struct Pilot {
    /// Mean; a gain is refused if it exceeds 1.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
    /// Number of steps.
    pub steps: u64,
    /// Failure that ended it early: an unstable gain may blow up within the pilot.
    pub failure: Option<Failure<Infallible>>,
}

/// Stability interval of `plan`'s scheme, whose field carries a term of feedback.
fn interval(plan: &Plan) -> f64 {
    plan.method
        .scheme
        .real_stability_interval()
        .expect("feedback is for schemes that follow fields")
}

/// Run up to [`PILOT_STEPS`] steps of `plan`, which has a gain, from `state` and report h·λmax/r.
pub fn pilot(plan: &Plan, system: &dyn System, state: &StepState) -> Pilot {
    let Some(gain) = &plan.gain else {
        return Pilot { mean: 0.0, max: 0.0, steps: 0, failure: None };
    };
    let mut monitor = Monitor::new(gain, system, interval(plan));
    // Sampled at the start of every step here; the run itself need not monitor the gain.
    let mut memory = StabilityMemory::default();
    monitor.prepare(&mut memory.direction);
    let mut work = vec![0.0; system.work_len()];
    let without_feedback = Plan { gain: None, ..plan.clone() };
    let (first, last) = (state.step, state.step + PILOT_STEPS);
    let (mut state, mut t) = (state.clone(), state.t);
    if let Stepping::Fixed(fixed) = &plan.stepping {
        let at = (state.step, t, fixed.length(plan.t0, state.step));
        monitor.sample(system, at, &state.x, &mut memory, &mut work);
    }
    let mut observer = StepObserver(|state: &StepState| {
        let goes_on = state.step < last;
        if goes_on {
            let h = match &plan.stepping {
                Stepping::Fixed(fixed) => fixed.h,
                Stepping::Adaptive(_) => state.t - t,
            };
            monitor.sample(system, (state.step, state.t, h), &state.x, &mut memory, &mut work);
        }
        t = state.t;
        if goes_on { Control::Continue } else { Control::Stop }
    });
    let failure = run(&without_feedback, system, &mut state, &mut observer).err();
    Pilot { mean: memory.mean(), max: memory.max, steps: state.step - first, failure }
}

/// Rate κ of the Gauss–Newton form: the median of ‖DX·X‖/‖X‖ over the first hundred steps of
/// `plan`, at most 0.2 r/h for fixed steps. Vectors count relative to their scales at the start
/// ([`start_scales`]), whatever their units. `plan` and `system` are those without feedback. `None`
/// if the field vanishes throughout.
pub fn pilot_rate(plan: &Plan, system: &dyn System, state: &StepState) -> Option<f64> {
    let n = system.dim();
    let (mut field, mut derivative) = (vec![0.0; n], vec![0.0; n]);
    let mut work = vec![0.0; system.work_len()];
    let mut rates = Vec::new();
    let scales = start_scales(system, state.t, &state.x);
    let mut lengths = vec![0.0; scales.len()];
    let mut sample = |state: &StepState| {
        system.field(state.t, &state.x, &mut field, &mut work);
        system.field_derivative(state.t, &state.x, &field, &mut derivative, &mut work);
        let mut norm = |v: &[f64]| {
            system.vectors().squares(v, &mut lengths);
            // A vector without a scale does not count.
            let known = lengths.iter().zip(&scales).filter(|(_, scale)| **scale > 0.0);
            known.map(|(square, scale)| square / scale).sum::<f64>().sqrt()
        };
        let rate = norm(&derivative) / norm(&field);
        if rate.is_finite() {
            rates.push(rate);
        }
    };
    let mut state = state.clone();
    sample(&state);
    let last = state.step + RATE_STEPS - 1;
    let mut observer = StepObserver(|state: &StepState| {
        sample(state);
        if state.step < last { Control::Continue } else { Control::Stop }
    });
    // A pilot that fails has still sampled the steps before; the run itself will report the
    // failure.
    let _ = run(plan, system, &mut state, &mut observer);
    rates.sort_by(f64::total_cmp);
    let median = *rates.get(rates.len() / 2)?;
    Some(match &plan.stepping {
        Stepping::Fixed(fixed) => median.min(0.2 * interval(plan) / fixed.h),
        Stepping::Adaptive(_) => median,
    })
}

/// Observer that follows steps and ignores samples.
struct StepObserver<F>(F);

impl<F: FnMut(&StepState) -> Control> Observer for StepObserver<F> {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        Ok((self.0)(state))
    }
}
