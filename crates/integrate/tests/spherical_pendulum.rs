//! The spherical pendulum of the 2022 paper, against its numbers (`suite/reference/NOTES.md`).

mod common;

use common::*;
use holonome_integrate::pilot::{pilot, pilot_rate};
use holonome_integrate::plan::Gain;
use holonome_integrate::plan::Plan;
use holonome_integrate::state::StepState;

#[test]
fn plain_rk4_is_as_accurate_as_published() {
    let plan = Plan::fixed(method("rk4"), 0.0, 100.0, 1e-3).unwrap();
    let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    let error = distance(&state.x, &PENDULUM_END);
    println!("plain rk4: error {error:.2e}, drift {:.1e}", max_drift(&state));
    // Published: 2.8e-11, two digits; the reference's own digits and round-off (1e5 steps,
    // √1e5·ε·growth) blur it.
    assert!((error - 2.8e-11).abs() < 1e-11, "{error}");
}

#[test]
fn plain_euler_is_as_inaccurate_as_published() {
    let plan = Plan::fixed(method("euler"), 0.0, 100.0, 1e-3).unwrap();
    let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    let error = distance(&state.x, &PENDULUM_END);
    println!("plain euler: error {error:.3}");
    // Published: 2.28, three digits.
    assert!((error - 2.28).abs() < 0.005, "{error}");
}

#[test]
fn feedback_euler_is_as_published() {
    let mut plan = Plan::fixed(method("feedback:euler"), 0.0, 100.0, 1e-3).unwrap();
    plan.gain = Some(Gain::Diagonal(PENDULUM_GAINS.to_vec()));
    let (state, _) = finish(&plan, &pendulum_with_feedback(1.0), &PENDULUM_START);
    let error = distance(&state.x, &PENDULUM_END);
    let (f1, h) = (state.drift[0].max, state.drift[2].max);
    println!(
        "feedback euler: error {error:.3e}, f1 {f1:.3e}, H {h:.3e}, ratio {:?}",
        state.stability
    );
    // Published to three digits each.
    assert!((f1 - 4.56e-5).abs() < 0.005e-5, "{f1}");
    assert!((h - 4.89e-5).abs() < 0.005e-5, "{h}");
    assert!((error - 2.22e-3).abs() < 0.005e-3, "{error}");
    // DF DFᵀ of these rows has norms between 2 and 10, so h·50·10/2 = 0.25 at most: stable, and not
    // by far.
    assert!(state.stability.max < 0.3 && state.stability.mean() > 0.05);
    assert_eq!(state.stability.count, 100_000);
}

#[test]
fn corrected_dop853_meets_the_promise() {
    let plan = Plan::adaptive(method("corrected:dop853"), 0.0, 100.0, 1e-9, 1e-9)
        .unwrap()
        .with_samples(1001)
        .unwrap();
    let system = pendulum();
    let (state, recorder) = finish(&plan, &system, &PENDULUM_START);
    let error = distance(&state.x, &PENDULUM_END);
    println!(
        "corrected dop853: error {error:.2e}, drift {:.1e}, {} steps, {:?}",
        max_drift(&state),
        state.step,
        state.cost
    );
    // The acceptance criterion: the default method at its default tolerance.
    assert!(error < 1e-7 && max_drift(&state) < 1e-14, "{error} {:?}", state.drift);
    // scipy's DOP853, with the same controller on the plain field and the norm of HNW, takes 531
    // steps. The norm of vectors asks for 5 % more here; round-off may move a few.
    assert!((545..566).contains(&state.step), "{}", state.step);
    // Samples between steps are corrected too: Gauss–Newton squares the interpolant's error of
    // about 1e-8, and ε of it is left, so round-off of F remains, below 1e-14 as above.
    for x in &recorder.x {
        let sample = StepState::new(&plan, &system, x, Some(&PENDULUM_START));
        assert!(max_drift(&sample) < 1e-14, "{:?}", sample.drift);
    }
    // Samples lie on the trajectory: the same run at a hundredth of the tolerance.
    let finer = Plan::adaptive(method("corrected:dop853"), 0.0, 100.0, 1e-11, 1e-11)
        .unwrap()
        .with_samples(1001)
        .unwrap();
    let (_, fine) = finish(&finer, &system, &PENDULUM_START);
    let worst = recorder.x.iter().zip(&fine.x).map(|(x, y)| distance(x, y)).fold(0.0, f64::max);
    println!("samples: {worst:.2e}");
    assert!(worst < 1e-7);
}

#[test]
fn corrected_methods_hold_the_invariants() {
    for (name, h) in [
        ("euler", 1e-3),
        ("midpoint", 1e-2),
        ("heun", 1e-2),
        ("bs3", 1e-2),
        ("rk4", 1e-2),
        ("dopri5", 1e-2),
    ] {
        let plan = Plan::fixed(method(&format!("corrected:{name}")), 0.0, 20.0, h).unwrap();
        let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
        // One Gauss–Newton step leaves the square of the local error over the curvature, and ε =
        // 1e-8 of it: for Euler (1e-3)²/2·size 10 squared is 2.5e-11, for the others, (1e-2)³
        // squared at most 1e-12.
        let bound = if name == "euler" { 1e-9 } else { 1e-10 };
        println!("corrected:{name} {:.1e}", max_drift(&state));
        assert!(max_drift(&state) < bound, "{name} {:?}", state.drift);
    }
}

#[test]
fn projection_holds_the_invariants_at_round_off() {
    for name in ["euler", "rk4", "dop853"] {
        let plan = Plan::fixed(method(&format!("projection:{name}")), 0.0, 20.0, 1e-2).unwrap();
        let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
        println!("projection:{name} {:.1e} {:?}", max_drift(&state), state.cost);
        // The stopping rule is a distance of about 2ε·(2·|F| terms) ≈ 3e-15; times |∇F| ≤ 5.
        assert!(max_drift(&state) < 1.5e-14, "{name} {:?}", state.drift);
        assert_eq!(state.cost.jacobian, state.step);
    }
}

#[test]
fn a_loose_projection_tolerance_saves_iterations() {
    let mut plan = Plan::fixed(method("projection:euler"), 0.0, 2.0, 1e-2).unwrap();
    let (tight, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    plan.projection_tolerance = Some(1e-6);
    let (loose, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    assert!(loose.cost.newton_iterations < tight.cost.newton_iterations);
    // A distance of 1e-6 times |∇F| ≤ 5; above the tight run's drift, or the option did nothing.
    assert!(max_drift(&loose) < 5e-6 && max_drift(&loose) > 1e-12);
}

#[test]
fn the_pilot_tells_stable_gains_from_unstable_ones() {
    for (factor, stable) in [(1.0, true), (20.0, false)] {
        let mut plan = Plan::fixed(method("feedback:euler"), 0.0, 100.0, 1e-3).unwrap();
        plan.gain = Some(Gain::Diagonal(PENDULUM_GAINS.iter().map(|k| factor * k).collect()));
        let system = pendulum_with_feedback(factor);
        let state = StepState::new(&plan, &system, &PENDULUM_START, None);
        let pilot = pilot(&plan, &system, &state);
        println!("{factor}: {pilot:?}");
        assert_eq!(pilot.mean <= 1.0, stable);
        assert!(!stable || (pilot.steps == 1000 && pilot.failure.is_none()));
    }
}

#[test]
fn the_pilot_rate_is_that_of_the_motion_and_capped() {
    let system = pendulum();
    let plan = Plan::adaptive(method("dop853"), 0.0, 100.0, 1e-9, 1e-9).unwrap();
    let state = StepState::new(&plan, &system, &PENDULUM_START, None);
    let rate = pilot_rate(&plan, &system, &state).unwrap();
    println!("rate {rate}");
    // The pendulum's rates: the speed is between 1 and 2 on a unit sphere, gravity is 1.
    assert!(rate > 0.5 && rate < 5.0);
    // Euler at h = 0.5: a fifth of r/h = 4 is less than the median.
    let fixed = Plan::fixed(method("euler"), 0.0, 100.0, 0.5).unwrap();
    let interval = fixed.method.scheme.tableau().real_stability_interval();
    assert_eq!(pilot_rate(&fixed, &system, &state).unwrap(), 0.2 * interval / 0.5);
    // At the lower equilibrium nothing moves, so there is no rate.
    let rest = StepState::new(&plan, &system, &[0.0, 0.0, -1.0, 0.0, 0.0, 0.0], None);
    assert_eq!(pilot_rate(&plan, &system, &rest), None);
}
