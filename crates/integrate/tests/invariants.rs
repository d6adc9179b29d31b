//! Treatments where DF loses rank, where gradients vanish, and where there are many rows.

mod common;

use common::*;
use holonome_integrate::observer::Recorder;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::{Outcome, run};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{FnSystem, Group, GroupKind, Invariants};

#[test]
fn kepler_with_six_functions_of_rank_five() {
    let system = kepler();
    for (name, bound) in
        [("corrected:dop853", 1e-13), ("projection:dop853", 1e-13), ("corrected:dopri5", 1e-12)]
    {
        // Ten periods lead back to the start.
        let plan = Plan::adaptive(method(name), 0.0, 10.0 * KEPLER_PERIOD, 1e-9, 1e-9).unwrap();
        let (state, _) = finish(&plan, &system, &KEPLER_START);
        let error = distance(&state.x, &KEPLER_START);
        println!("{name}: error {error:.1e} drift {:.1e} steps {}", max_drift(&state), state.step);
        // Round-off of A near the pericentre: |v||L| ≤ 2.4 with a dozen roundings is 1e-14; |q| up
        // to 9 enters L.
        assert!(max_drift(&state) < bound, "{name}: {:?}", state.drift);
        // With L and A kept only the phase is wrong: by the tolerance per step, times a few hundred
        // steps, times the pericentre's sensitivity.
        assert!(error < 1e-4, "{name}: {error}");
    }
    // Fixed steps of a low order: Euler's ellipse stays an ellipse.
    for name in ["corrected:euler", "projection:euler"] {
        let plan = Plan::fixed(method(name), 0.0, KEPLER_PERIOD, KEPLER_PERIOD / 70000.0).unwrap();
        let (state, _) = finish(&plan, &system, &KEPLER_START);
        println!(
            "{name}: error {:.1e} drift {:.1e}",
            distance(&state.x, &KEPLER_START),
            max_drift(&state)
        );
        // The published 1.07e-6 is the distance of the state after one period. The invariants of a
        // projection that is solved to round-off are at round-off, and one Gauss–Newton step leaves
        // (h²/2·|x''|)² ≈ (1e-6/2)².
        assert!(max_drift(&state) < 2e-12, "{name}: {:?}", state.drift);
    }
}

/// A conical pendulum: on its circle ∇H depends on the gradients of the other invariants.
#[test]
fn conical_pendulum_keeps_its_circle() {
    // z = −cos θ, ω² = 1/cos θ, speed ω sin θ.
    let (sin, cos) = (0.6, 0.8);
    let omega = 1.0 / f64::sqrt(cos);
    let start = [sin, 0.0, -cos, 0.0, omega * sin, 0.0];
    let t = 50.0;
    let end = [
        sin * (omega * t).cos(),
        sin * (omega * t).sin(),
        -cos,
        -omega * sin * (omega * t).sin(),
        omega * sin * (omega * t).cos(),
        0.0,
    ];
    for name in ["plain:rk4", "corrected:rk4", "corrected:dop853"] {
        let plan = Plan::fixed(method(name), 0.0, t, 0.01).unwrap();
        let (state, _) = finish(&plan, &pendulum(), &start);
        let error = distance(&state.x, &end);
        println!("{name}: error {error:.1e} drift {:.1e}", max_drift(&state));
        // RK4's phase error: T·ω⁵h⁴/120 ≈ 7e-9·…; a correction that divided by the vanishing pivot
        // would throw the state about by its round-off over √ε.
        assert!(error < 1e-8, "{name}: {error}");
        assert!(
            name.starts_with("plain") || max_drift(&state) < 2e-15,
            "{name}: {:?}",
            state.drift
        );
    }
}

#[test]
fn rest_stays_at_rest() {
    // J has no gradient at all here and H's is parallel to the rod's.
    let rest = [0.0, 0.0, -1.0, 0.0, 0.0, 0.0];
    for name in ["corrected:dop853", "projection:dop853"] {
        let plan = Plan::adaptive(method(name), 0.0, 10.0, 1e-9, 1e-9).unwrap();
        assert_eq!(finish(&plan, &pendulum(), &rest).0.x, rest, "{name}");
    }
}

/// The planar pendulum in its angle, with its energy.
fn angle() -> FnSystem<'static> {
    FnSystem::new(2, |_, x, dx| {
        dx[0] = x[1];
        dx[1] = -x[0].sin();
    })
    .with_invariants(
        Invariants::dense(2, 1, 0, vec![Group::rows("H", GroupKind::Hamiltonian, 0..1)]),
        |_, x, f| f[0] = 0.5 * x[1] * x[1] - x[0].cos(),
        |_, x, df| {
            df[0] = x[0].sin();
            df[1] = x[1];
        },
    )
}

#[test]
fn round_off_over_a_short_gradient_does_not_move_the_state() {
    // At an amplitude of 1.5e-8 the energy flickers by one unit in its last place, 1.1e-16; over
    // its gradient 1.5e-8 that would be a move of half the amplitude. The correction must not
    // follow this.
    let start = [1.5e-8, 0.0];
    let run = |name: &str| {
        finish(&Plan::fixed(method(name), 0.0, 100.0, 0.01).unwrap(), &angle(), &start).0
    };
    let (plain, corrected) = (run("plain:rk4"), run("corrected:rk4"));
    assert!(max_drift(&plain) > 0.0, "the energy must flicker, or this tests nothing");
    assert_eq!(plain.x, corrected.x);
}

/// Rotors on circles with a coupling: `count` constraints |q_i|² = 1 of two entries each, and the
/// energy over everything.
fn rotors(count: usize) -> FnSystem<'static> {
    let n = 3 * count;
    let mut invariants = Invariants { count: count + 1, constraints: count, ..Invariants::none() };
    for i in 0..count as u32 {
        invariants.push_row([3 * i, 3 * i + 1]);
    }
    invariants.push_row(0..n as u32);
    invariants.groups = vec![
        Group::family("circle", GroupKind::Constraint, (0..count as u32).map(|i| [(i, 1.0)])),
        Group::rows("H", GroupKind::Hamiltonian, count as u32..count as u32 + 1),
    ];
    // H = Σ ½ω_i² − Σ q_i·q_{i+1} (a ring), q_i' = ω_i J q_i, ω_i' = (J q_i)·(q_{i−1} + q_{i+1}).
    FnSystem::new(n, move |_, x, dx| {
        for i in 0..count {
            let (left, right) = (3 * ((i + count - 1) % count), 3 * ((i + 1) % count));
            let (u, v, omega) = (x[3 * i], x[3 * i + 1], x[3 * i + 2]);
            dx[3 * i] = -omega * v;
            dx[3 * i + 1] = omega * u;
            dx[3 * i + 2] = -v * (x[left] + x[right]) + u * (x[left + 1] + x[right + 1]);
        }
    })
    .with_invariants(
        invariants,
        move |_, x, f| {
            f[count] = 0.0;
            for i in 0..count {
                let right = 3 * ((i + 1) % count);
                f[i] = x[3 * i] * x[3 * i] + x[3 * i + 1] * x[3 * i + 1] - 1.0;
                f[count] += 0.5 * x[3 * i + 2] * x[3 * i + 2]
                    - x[3 * i] * x[right]
                    - x[3 * i + 1] * x[right + 1];
            }
        },
        move |_, x, df| {
            let (circles, energy) = df.split_at_mut(2 * count);
            for i in 0..count {
                let (left, right) = (3 * ((i + count - 1) % count), 3 * ((i + 1) % count));
                circles[2 * i] = 2.0 * x[3 * i];
                circles[2 * i + 1] = 2.0 * x[3 * i + 1];
                energy[3 * i] = -x[left] - x[right];
                energy[3 * i + 1] = -x[left + 1] - x[right + 1];
                energy[3 * i + 2] = x[3 * i + 2];
            }
        },
    )
}

#[test]
fn many_rows_are_treated_alike() {
    // 10 rotors take the dense path and 200 the sparse one with its border.
    for count in [10, 200] {
        let system = rotors(count);
        let start: Vec<f64> = (0..count)
            .flat_map(|i| {
                let angle = i as f64 * 0.7;
                [angle.cos(), angle.sin(), (i as f64 * 1.3).sin()]
            })
            .collect();
        for name in ["plain:rk4", "corrected:rk4", "projection:rk4", "symmetric-projection:rk4"] {
            let plan = Plan::fixed(method(name), 0.0, 10.0, 0.02).unwrap();
            let (state, _) = finish(&plan, &system, &start);
            let [circle, energy] = [state.drift[0].max, state.drift[1].max];
            println!("{count} {name}: {circle:.1e} {energy:.1e}");
            // H is a sum of 3·count terms with partial sums up to count, so its round-off is about
            // √(3·count)·count·ε, of the target and of the value; the circles' is ε each.
            let round_off = 2.0 * f64::EPSILON * (3.0 * count as f64).sqrt() * count as f64;
            let held = circle < 2e-15 && energy < round_off;
            assert_eq!(held, name != "plain:rk4", "{count} {name}: {circle:e} {energy:e}");
        }
    }
}

#[test]
fn a_reference_state_sets_the_target() {
    // Started with a wrong energy, the correction pulls to the reference's within a few steps
    // (Gauss–Newton converges quadratically: 1e-3, 1e-6, 1e-12, round-off).
    let plan = Plan::fixed(method("corrected:rk4"), 0.0, 1.0, 0.01).unwrap();
    let (system, reference) = (angle(), [1.0, 0.0]);
    let mut state = StepState::new(&plan, &system, &[1.001, 0.01], Some(&reference));
    assert_eq!(*state.target, [-(1f64.cos())]);
    // The values are the start's own.
    assert!((state.values[0] - state.target[0]).abs() > 1e-4);
    let outcome = run(&plan, &system, &mut state, &mut Recorder::default());
    assert!(matches!(outcome, Ok(Outcome::Finished)));
    assert!(state.drift[0].max > 1e-4 && state.drift[0].now < 1e-15, "{:?}", state.drift);
}

#[test]
fn groups_can_be_monitored_only() {
    let plan = Plan::fixed(method("corrected:heun"), 0.0, 10.0, 0.01).unwrap();
    let monitored = {
        let mut invariants = holonome_integrate::system::System::invariants(&pendulum()).clone();
        invariants.groups[3] = invariants.groups[3].clone().monitored_only();
        let (values, jacobian) = (pendulum(), pendulum());
        FnSystem::new(6, |_, x, dx| pendulum_field(x, dx)).with_invariants(
            invariants,
            move |t, x, f| {
                holonome_integrate::system::System::invariant_values(&values, t, x, f, &mut [])
            },
            move |t, x, df| {
                holonome_integrate::system::System::invariant_jacobian(&jacobian, t, x, df, &mut [])
            },
        )
    };
    let (state, _) = finish(&plan, &monitored, &PENDULUM_START);
    assert!(state.drift[2].max < 1e-12, "H is corrected");
    assert!(state.drift[3].max > 1e-7, "J drifts with Heun's order, unseen by the correction");
}
