//! Resumption of runs: one that is stopped after every step, stored as JSON and read back makes the
//! same bits as one that was not.

mod common;

use std::convert::Infallible;

use common::*;
use holonome_integrate::observer::{Control, Observer, Recorder};
use holonome_integrate::plan::Gain;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::{Outcome, run};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;

/// Observer that stops after every step.
#[derive(Default)]
struct Impatient(Recorder);

impl Observer for Impatient {
    type Error = Infallible;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), Infallible> {
        assert_eq!(index, self.0.t.len(), "samples come in order, each once");
        self.0.sample(index, t, x)
    }

    fn step(&mut self, _state: &StepState) -> Result<Control, Infallible> {
        Ok(Control::Stop)
    }
}

fn interrupted(plan: &Plan, system: &dyn System, x0: &[f64]) -> (StepState, Recorder) {
    let mut stored = serde_json::to_string(&StepState::new(plan, system, x0, None)).unwrap();
    let mut observer = Impatient::default();
    loop {
        let mut state: StepState = serde_json::from_str(&stored).unwrap();
        match run(plan, system, &mut state, &mut observer).unwrap() {
            Outcome::Stopped => stored = serde_json::to_string(&state).unwrap(),
            Outcome::Finished => return (state, observer.0),
            outcome => panic!("its claims are true, and it has no events: {outcome:?}"),
        }
    }
}

fn assert_same_bits(plan: &Plan, system: &dyn System, x0: &[f64]) {
    let (state, recorder) = finish(plan, system, x0);
    let (resumed, samples) = interrupted(plan, system, x0);
    assert_eq!(
        serde_json::to_string(&state).unwrap(),
        serde_json::to_string(&resumed).unwrap(),
        "{}",
        plan.method
    );
    assert_eq!(recorder, samples, "{}", plan.method);
}

#[test]
fn adaptive_runs_resume_exactly() {
    for scheme in ["bs3", "dopri5", "tsit5", "dop853", "gauss8", "gauss16", "radau5"] {
        for treatment in ["plain", "corrected", "projection"] {
            let name = format!("{treatment}:{scheme}");
            let plan = Plan::adaptive(method(&name), 0.0, 5.0, 1e-6, 1e-6)
                .unwrap()
                .with_samples(101)
                .unwrap();
            assert_same_bits(&plan, &pendulum(), &PENDULUM_START);
        }
    }
}

#[test]
fn fixed_runs_resume_exactly() {
    for scheme in
        ["euler", "midpoint", "heun", "rk4", "dopri5", "dop853", "gauss8", "gauss16", "radau5"]
    {
        for treatment in ["plain", "corrected", "projection", "symmetric-projection"] {
            let name = format!("{treatment}:{scheme}");
            let plan =
                Plan::fixed(method(&name), 0.0, 1.0, 0.03).unwrap().with_samples(12).unwrap();
            assert_same_bits(&plan, &pendulum(), &PENDULUM_START);
        }
    }
}

#[test]
fn stability_statistics_resume_exactly() {
    let mut plan = Plan::fixed(method("feedback:euler"), 0.0, 1.5, 1e-3).unwrap();
    plan.gain = Some(Gain::Diagonal(PENDULUM_GAINS.to_vec()));
    assert_same_bits(&plan, &pendulum_with_feedback(1.0), &PENDULUM_START);
}

#[test]
fn any_number_survives_storage() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap();
    let mut state = StepState::new(&plan, &pendulum(), &PENDULUM_START, None);
    state.x = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, 0.1 + 0.2];
    state.drift[0].max = f64::NAN;
    let read: StepState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&read.x), bits(&state.x));
    assert!(read.drift[0].max.is_nan());
}

#[test]
fn a_finished_run_has_nothing_left_to_do() {
    let plan = Plan::adaptive(method("dop853"), 0.0, 1.0, 1e-6, 1e-6).unwrap();
    let (mut state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    let (before, mut recorder) = (serde_json::to_string(&state).unwrap(), Recorder::default());
    assert_eq!(run(&plan, &pendulum(), &mut state, &mut recorder).unwrap(), Outcome::Finished);
    assert_eq!(serde_json::to_string(&state).unwrap(), before);
    assert!(recorder.t.is_empty());
}
