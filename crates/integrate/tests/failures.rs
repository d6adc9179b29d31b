//! Failures of runs: every way to fail is typed, found at the step where it happens, and leaves the
//! state at the step before.

mod common;

use std::convert::Infallible;

use common::*;
use holonome_integrate::failure::Failure;
use holonome_integrate::observer::{Observer, Recorder};
use holonome_integrate::plan::{Metric, Plan, Stepping};
use holonome_integrate::run::{Outcome, run, run_map};
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{FnSystem, Group, GroupKind, Invariants, System};

fn fail(plan: &Plan, system: &dyn System, x0: &[f64]) -> (StepState, Failure<Infallible>) {
    let mut state = StepState::new(plan, system, x0, None);
    let failure = run(plan, system, &mut state, &mut Recorder::default()).unwrap_err();
    println!("{failure}");
    (state, failure)
}

/// System x' = x², which from 1 reaches infinity at t = 1.
fn explosion() -> FnSystem<'static> {
    FnSystem::new(1, |_, x, dx| dx[0] = x[0] * x[0])
}

#[test]
fn an_explosion_is_found_at_its_step() {
    let plan = Plan::fixed(method("euler"), 0.0, 100.0, 0.5).unwrap();
    let (state, failure) = fail(&plan, &explosion(), &[1.0]);
    // Euler by hand: x ← x + x²/2 until it overflows.
    let (mut x, mut step) = (1.0f64, 0);
    while (x + 0.5 * x * x).is_finite() {
        x += 0.5 * x * x;
        step += 1;
    }
    assert_eq!((state.step, state.x[0]), (step, x));
    // The field x² may overflow before the state does.
    assert!(
        matches!(&failure, Failure::NonFinite { t, step: at, .. }
            if (*at == step + 1 && *t == 0.5 * (step + 1) as f64) || (*at == step && *t == 0.5 * step as f64)),
        "{failure:?}"
    );
    assert_eq!(failure.kind(), "non-finite");
}

#[test]
fn an_adaptive_explosion_collapses_the_step() {
    for scheme in ["bs3", "dopri5", "tsit5", "dop853", "corrected:dop853"] {
        let plan = Plan::adaptive(method(scheme), 0.0, 2.0, 1e-8, 1e-8).unwrap();
        let (state, failure) = fail(&plan, &explosion(), &[1.0]);
        let Failure::StepCollapsed { t, .. } = failure else { panic!("{failure:?}") };
        // The solution 1/(1 − t) is followed until the step no longer resolves t, with an error of
        // the tolerance.
        assert!(
            (t - 1.0).abs() < 1e-6 && state.t == t && state.x[0] > 1e6,
            "{scheme}: {t} {:?}",
            state.x
        );
    }
}

#[test]
fn a_field_that_ends_collapses_the_step() {
    // x' = −1/√x: x = (1 − 3t/2)^(2/3) ends at t = 2/3, and the field is NaN beyond.
    let system = FnSystem::new(1, |_, x, dx| dx[0] = -x[0].sqrt().recip());
    let plan = Plan::adaptive(method("dopri5"), 0.0, 2.0, 1e-8, 1e-8).unwrap();
    let (_, failure) = fail(&plan, &system, &[1.0]);
    assert!(
        matches!(failure, Failure::StepCollapsed { .. } | Failure::NonFinite { .. }),
        "{failure:?}"
    );
}

#[test]
fn a_shortest_step_ends_the_run() {
    let mut plan = Plan::adaptive(method("dopri5"), 0.0, 2.0, 1e-8, 1e-8).unwrap();
    let Stepping::Adaptive(adaptive) = &mut plan.stepping else { unreachable!() };
    adaptive.shortest_step = 1e-3;
    let (state, failure) = fail(&plan, &explosion(), &[1.0]);
    let Failure::StepCollapsed { h, .. } = failure else { panic!("{failure:?}") };
    assert!(h < 1e-3 && state.t < 1.0 - 1e-3, "{h} {}", state.t);
}

#[test]
fn an_undefined_field_is_found_before_any_step() {
    let system = FnSystem::new(1, |_, _, dx| dx[0] = f64::NAN);
    for plan in [
        Plan::fixed(method("rk4"), 0.0, 1.0, 0.1),
        Plan::adaptive(method("dop853"), 0.0, 1.0, 1e-6, 1e-6),
    ] {
        let (state, failure) = fail(&plan.unwrap(), &system, &[1.0]);
        assert!(
            matches!(&failure, Failure::NonFinite { step: 0, quantity, .. } if quantity == "the field")
        );
        assert_eq!(state.step, 0);
    }
}

#[test]
fn an_undefined_start_is_found() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap();
    let (_, failure) = fail(&plan, &explosion(), &[f64::NAN]);
    assert!(
        matches!(&failure, Failure::NonFinite { step: 0, quantity, .. } if quantity == "the state")
    );
}

/// System x' = −1 with the invariant √x, which exists until t = 1.
fn fading() -> FnSystem<'static> {
    let groups = vec![
        Group::rows("other", GroupKind::Integral, 0..1),
        Group::rows("root", GroupKind::Integral, 1..2),
    ];
    FnSystem::new(1, |_, _, dx| dx[0] = -1.0).with_invariants(
        Invariants::dense(1, 2, 0, groups.into_iter().map(Group::monitored_only).collect()),
        |_, x, f| {
            f[0] = 0.0;
            f[1] = x[0].sqrt();
        },
        |_, _, df| df.fill(0.0),
    )
}

#[test]
fn an_invariant_that_ends_is_named() {
    for name in ["plain:euler", "corrected:euler", "projection:euler", "symmetric-projection:euler"]
    {
        let plan = Plan::fixed(method(name), 0.0, 2.0, 0.25).unwrap();
        let (state, failure) = fail(&plan, &fading(), &[1.0]);
        // x = 1, .75, .5, .25, 0, −.25: the fifth step is the first with a negative x.
        assert!(
            matches!(&failure, Failure::NonFinite { t: 1.25, step: 5, quantity } if quantity == "root"),
            "{failure:?}"
        );
        assert_eq!((state.step, state.x[0], state.drift[1].max), (4, 0.0, 1.0));
    }
}

#[test]
fn a_corrected_invariant_that_ends_is_named() {
    let system = FnSystem::new(1, |_, _, dx| dx[0] = -1.0).with_invariants(
        Invariants::dense(1, 1, 0, vec![Group::rows("root", GroupKind::Integral, 0..1)]),
        |_, x, f| f[0] = x[0].sqrt(),
        |_, x, df| df[0] = 0.5 / x[0].sqrt(),
    );
    for name in ["corrected:rk4", "projection:rk4", "symmetric-projection:rk4"] {
        let plan = Plan::fixed(method(name), 0.0, 2.0, 1.25).unwrap();
        let (state, failure) = fail(&plan, &system, &[1.0]);
        assert!(
            matches!(&failure, Failure::NonFinite { step: 1, quantity, .. } if quantity == "root"),
            "{failure:?}"
        );
        assert_eq!((state.step, state.x[0]), (0, 1.0));
    }
}

#[test]
fn contradicting_constraints_do_not_converge() {
    // |q|² = 1 and |q|² = 2 at once.
    let groups = vec![
        Group::rows("one", GroupKind::Constraint, 0..1),
        Group::rows("two", GroupKind::Constraint, 1..2),
    ];
    let system = FnSystem::new(2, |_, x, dx| {
        dx[0] = x[1];
        dx[1] = -x[0];
    })
    .with_invariants(
        Invariants::dense(2, 2, 2, groups),
        |_, x, f| {
            f[0] = x[0] * x[0] + x[1] * x[1] - 1.0;
            f[1] = f[0] - 1.0;
        },
        |_, x, df| df.copy_from_slice(&[2.0 * x[0], 2.0 * x[1], 2.0 * x[0], 2.0 * x[1]]),
    );
    for name in ["projection:rk4", "symmetric-projection:rk4"] {
        let mut plan = Plan::fixed(method(name), 0.0, 1.0, 0.1).unwrap();
        plan.metric = Metric::Euclidean;
        let (state, failure) = fail(&plan, &system, &[1.0, 0.0]);
        let Failure::ProjectionNotConverged { t, iterations, residual, constraint } = failure
        else {
            panic!("{failure:?}")
        };
        // One of the two can be met; the other is then off by 1, over a gradient of length 2, or
        // both are off by less. At |q|² = s the larger of |s − 1| and |s − 2| is 0.5 at least, over
        // 2√s ≤ 2√2.
        assert!(constraint == "two" || constraint == "one");
        assert!(
            (0.17..0.7).contains(&residual) && iterations >= 1 && t == 0.1,
            "{residual} {iterations} {t}"
        );
        assert_eq!((state.step, state.x.as_slice()), (0, &[1.0, 0.0][..]));
    }
}

/// `count` points that turn on circles; after t = 1 the last is to have another radius, too.
fn circles(count: usize) -> FnSystem<'static> {
    let entries = move |row: usize| 2 * row.min(count - 1)..2 * row.min(count - 1) + 2;
    let name = |row: usize| if row == count { "other".to_string() } else { format!("circle{row}") };
    let group =
        |row: usize| Group::rows(&name(row), GroupKind::Constraint, row as u32..row as u32 + 1);
    let invariants = Invariants {
        count: count + 1,
        pattern: std::sync::Arc::new(
            (0..=count).map(|row| entries(row).map(|k| k as u32)).collect(),
        ),
        constraints: count + 1,
        groups: (0..=count).map(group).collect(),
    };
    FnSystem::new(2 * count, |_, x, dx| {
        for (x, dx) in x.chunks(2).zip(dx.chunks_mut(2)) {
            (dx[0], dx[1]) = (x[1], -x[0]);
        }
    })
    .with_invariants(
        invariants,
        move |t, x, f| {
            for (row, f) in f.iter_mut().enumerate() {
                let radius = x[entries(row)].iter().map(|x| x * x).sum::<f64>();
                *f = radius - if row == count && t > 1.0 { 2.0 } else { 1.0 };
            }
        },
        move |_, x, df| {
            for (row, df) in df.chunks_mut(2).enumerate() {
                df.iter_mut().zip(&x[entries(row)]).for_each(|(df, x)| *df = 2.0 * x);
            }
        },
    )
}

#[test]
fn a_correction_that_leads_nowhere_fails() {
    // Dense normal equations, and sparse ones.
    for count in [1, 80] {
        let system = circles(count);
        let start = [1.0, 0.0].repeat(count);
        for plan in [
            Plan::fixed(method("corrected:rk4"), 0.0, 2.0, 0.01).unwrap(),
            Plan::adaptive(method("corrected:dopri5"), 0.0, 2.0, 1e-6, 0.0).unwrap(),
        ] {
            let (state, failure) = fail(&plan, &system, &start);
            let Failure::CorrectionFails { t, residual, constraint } = &failure else {
                panic!("{failure:?}")
            };
            // Off by 1 over a gradient of length 2, or both by less.
            assert!((0.17..0.7).contains(residual), "{failure:?}");
            assert!(
                constraint == "other" || *constraint == format!("circle{}", count - 1),
                "{failure:?}"
            );
            assert!(*t > 1.0 && state.t <= *t && *t < 1.5, "{failure:?} {}", state.t);
        }
        // Before that, and with steps far too long for round-off, corrections reduce the errors of
        // the steps.
        for h in [0.01, 0.5] {
            let plan = Plan::fixed(method("corrected:euler"), 0.0, 1.0, h).unwrap();
            let (state, _) = finish(&plan, &system, &start);
            assert!(state.drift.iter().all(|drift| drift.max < 0.1), "{h}: {:?}", state.drift[0]);
        }
    }
}

#[test]
fn the_step_limit_is_kept() {
    for mut plan in [
        Plan::fixed(method("rk4"), 0.0, 1.0, 0.01).unwrap(),
        Plan::adaptive(method("corrected:dop853"), 0.0, 100.0, 1e-9, 1e-9).unwrap(),
    ] {
        plan.step_limit = 17;
        let (state, failure) = fail(&plan, &pendulum(), &PENDULUM_START);
        assert!(matches!(failure, Failure::TooManySteps { limit: 17, t, .. } if t == state.t));
        assert_eq!(state.step + state.cost.rejected, 17);
        // Raised, it goes on from there.
        plan.step_limit = u64::MAX;
        let mut state = state;
        assert!(matches!(
            run(&plan, &pendulum(), &mut state, &mut Recorder::default()),
            Ok(Outcome::Finished)
        ));
    }
}

/// Observer that refuses one sample, once.
struct FullDisk {
    recorder: Recorder,
    refuse: Option<usize>,
}

impl Observer for FullDisk {
    type Error = &'static str;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), &'static str> {
        if self.refuse == Some(index) {
            self.refuse = None;
            return Err("no space left");
        }
        let Ok(()) = self.recorder.sample(index, t, x);
        Ok(())
    }
}

#[test]
fn a_failing_observer_can_be_satisfied_later() {
    for plan in [
        Plan::fixed(method("corrected:rk4"), 0.0, 5.0, 0.01).unwrap(),
        Plan::adaptive(method("corrected:dop853"), 0.0, 5.0, 1e-6, 1e-6).unwrap(),
    ] {
        let plan = plan.with_samples(51).unwrap();
        let system = pendulum();
        let (_, expected) = finish(&plan, &system, &PENDULUM_START);
        for refuse in [0, 1, 25, 50] {
            let mut state = StepState::new(&plan, &system, &PENDULUM_START, None);
            let mut disk = FullDisk { recorder: Recorder::default(), refuse: Some(refuse) };
            let failure = run(&plan, &system, &mut state, &mut disk).unwrap_err();
            assert!(matches!(failure, Failure::Observer("no space left")));
            assert_eq!(run(&plan, &system, &mut state, &mut disk).unwrap(), Outcome::Finished);
            assert_eq!(
                disk.recorder, expected,
                "each sample once, in order, sample {refuse} refused"
            );
        }
    }
}

/// Map that counts its steps in its memory, and moves by their number.
struct Counting;

impl StepMap for Counting {
    fn work_len(&self) -> usize {
        0
    }

    fn memory_len(&self) -> usize {
        1
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        workspace.memory[0] += 1.0;
        x1.iter_mut().zip(step.x).for_each(|(x1, x)| *x1 = x + 1e-3 * workspace.memory[0]);
        Ok(())
    }
}

#[test]
fn what_a_map_carries_stays_with_the_state() {
    let plan = Plan::fixed(method("rk4"), 0.0, 1.0, 0.1).unwrap().with_samples(11).unwrap();
    let system = pendulum();
    let start = || StepState::new(&plan, &system, &PENDULUM_START, None);
    let mut expected = FullDisk { recorder: Recorder::default(), refuse: None };
    run_map(&plan, &system, &Counting, &mut start(), &mut expected).unwrap();
    let (mut state, mut disk) =
        (start(), FullDisk { recorder: Recorder::default(), refuse: Some(4) });
    run_map(&plan, &system, &Counting, &mut state, &mut disk).unwrap_err();
    assert_eq!(
        (state.step, state.memory[0]),
        (3, 3.0),
        "the step whose sample is refused has not been made"
    );
    run_map(&plan, &system, &Counting, &mut state, &mut disk).unwrap();
    assert_eq!(disk.recorder, expected.recorder);
}
