//! Symmetric projection: symmetric if its base is, with invariants kept and costs counted.

mod common;

use common::*;
use holonome_integrate::method::SCHEMES;
use holonome_integrate::observer::Recorder;
use holonome_integrate::plan::{Metric, Plan, PlanError};
use holonome_integrate::run::{Outcome, run, run_map};
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{FnSystem, Group, GroupKind, Invariants, System};

/// The trapezoidal rule x₁ = x + h/2 (X(x) + X(x₁)), by fixed-point iteration to round-off: a
/// symmetric base.
struct Trapezoid<'a>(&'a dyn System);

impl StepMap for Trapezoid<'_> {
    fn vectors(&self) -> usize {
        2
    }

    fn work_len(&self) -> usize {
        self.0.work_len()
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        let (StepFrom { t, h, x }, Workspace { kept, cost, work, .. }) = (step, workspace);
        // h·|DX|/2 is below 0.2 in the tests: 30 iterations leave 0.2³⁰ = 1e-21.
        let iterations = 30;
        x1.copy_from_slice(x);
        for _ in 0..iterations {
            self.0.field(t + h, x1, &mut kept[1], work);
            for i in 0..x.len() {
                x1[i] = (0.5 * h).mul_add(kept[0][i] + kept[1][i], x[i]);
            }
        }
        cost.field += iterations;
        Ok(())
    }
}

/// Steps of the trapezoidal rule under a treatment.
fn trapezoid(
    treatment: &str,
    system: &dyn System,
    x0: &[f64],
    h: f64,
    steps: u64,
) -> (StepState, Recorder) {
    let plan = Plan::fixed(method(&format!("{treatment}:heun")), 0.0, h * steps as f64, h).unwrap();
    let plan = plan.with_samples(steps + 1).unwrap();
    let mut state = StepState::new(&plan, system, x0, None);
    let mut recorder = Recorder::default();
    let outcome = run_map(&plan, system, &Trapezoid(system), &mut state, &mut recorder).unwrap();
    assert_eq!((outcome, state.step), (Outcome::Finished, steps));
    (state, recorder)
}

#[test]
fn it_is_symmetric_where_its_base_is() {
    let turned = |x: &[f64]| {
        let (q, p) = x.split_at(x.len() / 2);
        [q, &p.iter().map(|p| -p).collect::<Vec<_>>()].concat()
    };
    // 80 steps in all, whose rounding of about 3ε|x| each is stretched by the flow of 4 time units,
    // which is e⁴ at most near the pericentre and far less elsewhere: 80·7e-16·50 = 3e-12 at worst.
    let round_off = 3e-12;
    let (planar, spherical, kepler) = (planar_pendulum(), pendulum(), kepler());
    let systems: [(&str, &dyn System, &[f64]); 3] = [
        ("planar", &planar, &PLANAR_START),
        ("spherical", &spherical, &PENDULUM_START),
        ("kepler", &kepler, &KEPLER_START),
    ];
    for (name, system, start) in systems {
        // The momenta turned round, the same steps lead back: all systems here are reversible.
        let error = |treatment: &str| {
            let there = trapezoid(treatment, system, start, 0.1, 40).0;
            let back = trapezoid(treatment, system, &turned(&there.x), 0.1, 40).0;
            (distance(&turned(&back.x), start), max_drift(&there))
        };
        let (plain, standard, symmetric) =
            (error("plain"), error("projection"), error("symmetric-projection"));
        println!("{name}: plain {plain:?}, standard {standard:?}, symmetric {symmetric:?}");
        // The base is symmetric, and has something to project.
        assert!(plain.0 < round_off && plain.1 > 1e-6, "{name}: {plain:?}");
        assert!(symmetric.0 < round_off, "{name}: {symmetric:?}");
        assert!(standard.0 > 1e-6, "{name}: {standard:?}");
    }
}

/// The pendulum in Cartesian coordinates as in HLW V.4; its energy is monitored.
fn planar_pendulum() -> FnSystem<'static> {
    let groups = vec![
        Group::rows("rod", GroupKind::Constraint, 0..1),
        Group::rows("rod.hidden", GroupKind::Hidden, 1..2),
        Group::rows("H", GroupKind::Hamiltonian, 2..3).monitored_only(),
    ];
    FnSystem::new(4, |_, x, dx| {
        let lambda = (x[2] * x[2] + x[3] * x[3] - x[1]) / (x[0] * x[0] + x[1] * x[1]);
        dx.copy_from_slice(&[x[2], x[3], -x[0] * lambda, -1.0 - x[1] * lambda]);
    })
    .with_invariants(
        Invariants::dense(4, 3, 2, groups),
        |_, x, f| {
            f[0] = x[0] * x[0] + x[1] * x[1] - 1.0;
            f[1] = x[0] * x[2] + x[1] * x[3];
            f[2] = 0.5 * (x[2] * x[2] + x[3] * x[3]) + x[1];
        },
        |_, x, df| {
            let rows = [
                [2.0 * x[0], 2.0 * x[1], 0.0, 0.0],
                [x[2], x[3], x[0], x[1]],
                [0.0, 1.0, x[2], x[3]],
            ];
            df.copy_from_slice(rows.as_flattened());
        },
    )
}

const PLANAR_START: [f64; 4] = [1.0, 0.0, 0.0, 0.0];

/// HLW V.4: the pendulum projected onto its constraints. A symmetric method conserves its energy
/// without a trend, as the problem is reversible; standard projection loses it.
#[test]
fn it_has_no_secular_energy_error() {
    // Means of the energy error over five windows of 200 time units.
    let means = |treatment: &str| -> Vec<f64> {
        let (state, recorder) =
            trapezoid(treatment, &planar_pendulum(), &PLANAR_START, 0.1, 10_000);
        assert!(
            state.drift[0].max < 1e-14 && state.drift[1].max < 1e-14,
            "{treatment}: {:?}",
            state.drift
        );
        let energy = |x: &Vec<f64>| 0.5 * (x[2] * x[2] + x[3] * x[3]) + x[1];
        let window = |x: &[Vec<f64>]| x.iter().map(energy).sum::<f64>() / x.len() as f64;
        recorder.x[1..].chunks(2000).map(window).collect()
    };
    let spread = |means: &[f64]| {
        means.iter().fold(f64::MIN, |a, &b| a.max(b))
            - means.iter().fold(f64::MAX, |a, &b| a.min(b))
    };
    let (standard, symmetric) = (means("projection"), means("symmetric-projection"));
    println!("standard {standard:?}, symmetric {symmetric:?}");
    // A window holds 27 periods, and part of one more: of an oscillation of h² = 1e-2 at most that
    // leaves 1e-2/27.
    assert!(spread(&symmetric) < 4e-4, "{symmetric:?}");
    // A trend: each window lies below the one before, by as much again.
    let falls: Vec<f64> = standard.windows(2).map(|pair| pair[0] - pair[1]).collect();
    assert!(falls.iter().all(|&fall| fall > 10.0 * spread(&symmetric)), "{falls:?}");
}

#[test]
fn it_keeps_the_order_of_its_base() {
    // With the constraints alone projected, the error along the circle and in the energy is the
    // base's.
    let system = planar_pendulum();
    let end = |name: &str, t: f64, steps: f64| {
        finish(&Plan::fixed(method(name), 0.0, t, t / steps).unwrap(), &system, &PLANAR_START).0.x
    };
    for scheme in
        SCHEMES.iter().filter(|scheme| scheme.follows_fields() && !scheme.needs_formulas())
    {
        // Steps in the ratio √2, at which the errors are small and above round-off, 100 steps of ε.
        let first: f64 = match scheme.facts().order {
            1..=3 => 60.0,
            4..=6 => 20.0,
            7..=15 => 5.0,
            _ => 27.0,
        };
        // Of order 16 one by one, along a longer run: those are nearly as long as the motion's own
        // time. The first of those above 0.75 is found or not, depending on its length.
        let long = scheme.facts().order >= 16;
        let t = if long { 20.0 } else { 2.0 };
        let number = |k: i32| {
            if long {
                first + f64::from(k)
            } else {
                (first * 2f64.powf(0.5 * f64::from(k))).round()
            }
        };
        let reference = end("projection:dop853", t, 200.0 * t);
        let errors: Vec<(f64, f64)> = (0..5)
            .map(number)
            .map(|n| {
                (
                    t / n,
                    distance(
                        &end(&format!("symmetric-projection:{}", scheme.name), t, n),
                        &reference,
                    ),
                )
            })
            .filter(|&(_, error)| error > 1e-13)
            .collect();
        assert!(errors.len() >= 4, "{}: {errors:?}", scheme.name);
        let (mean_h, mean_e) =
            errors.iter().fold((0.0, 0.0), |sum, (h, e)| (sum.0 + h.ln(), sum.1 + e.ln()));
        let (mean_h, mean_e) = (mean_h / errors.len() as f64, mean_e / errors.len() as f64);
        let slope = errors.iter().map(|(h, e)| (h.ln() - mean_h) * (e.ln() - mean_e)).sum::<f64>()
            / errors.iter().map(|(h, _)| (h.ln() - mean_h).powi(2)).sum::<f64>();
        println!("{:>8} {slope:.2} {errors:?}", scheme.name);
        let over = slope - f64::from(scheme.facts().order);
        // The longest steps whose iteration converges have errors of 1e-10 here, in which higher
        // orders still weigh.
        assert!(if long { over > -1.5 } else { over.abs() < 0.35 }, "{}: {slope}", scheme.name);
    }
}

#[test]
fn it_holds_the_invariants_at_round_off_along_a_long_run() {
    for name in ["euler", "rk4", "dop853"] {
        let plan = Plan::fixed(method(&format!("symmetric-projection:{name}")), 0.0, 1000.0, 0.01)
            .unwrap();
        let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
        println!("{name} {:.1e} {:?}", max_drift(&state), state.cost);
        // The stopping rule is a distance of about 2ε·(2·|F| terms) ≈ 3e-15; times |∇F| ≤ 5.
        assert!(max_drift(&state) < 1.5e-14, "{name} {:?}", state.drift);
    }
}

/// Kepler's L and A: six functions of rank five. The reference has a basis of them
/// (`suite/reference/symmetric_projection.py`).
#[test]
fn it_leaves_out_what_depends_on_the_rest() {
    let mut plan = Plan::fixed(method("symmetric-projection:rk4"), 0.0, 0.5, 0.1).unwrap();
    plan.metric = Metric::Euclidean;
    let (state, _) = finish(&plan, &kepler(), &KEPLER_START);
    let expected =
        [0.882925059880816, 0.6453955604523898, 0.0, -0.43985285151421616, 1.198019805919949, 0.0];
    println!("{:.1e} {:?}", distance(&state.x, &expected), state.cost);
    // Five steps of a few roundings of numbers near 1; RK4 alone is 1.1e-6 away.
    assert!(distance(&state.x, &expected) < 1e-14, "{:?}", state.x);
    // An orbit out of the coordinate planes, where no row of DF is zero or a multiple of another,
    // over ten periods.
    let (sin, cos) = (0.6, 0.8);
    let tilted = [1.0, 0.0, 0.0, 0.0, cos * KEPLER_START[4], sin * KEPLER_START[4]];
    for name in ["heun", "rk4", "dop853"] {
        let plan = Plan::fixed(
            method(&format!("symmetric-projection:{name}")),
            0.0,
            10.0 * KEPLER_PERIOD,
            0.05,
        )
        .unwrap();
        let (state, _) = finish(&plan, &kepler(), &tilted);
        println!("{name} {:.1e} {:?}", max_drift(&state), state.cost);
        // Round-off of A near the pericentre: |v||L| ≤ 2.4 with a dozen roundings is 1e-14; |q| up
        // to 9 enters L.
        assert!(max_drift(&state) < 1e-13, "{name}: {:?}", state.drift);
    }
}

#[test]
fn it_counts_every_base_step() {
    for (scheme, evaluations) in [("euler", 1), ("rk4", 4), ("dopri5", 6), ("dop853", 12)] {
        let plan =
            Plan::fixed(method(&format!("symmetric-projection:{scheme}")), 0.0, 2.0, 0.1).unwrap();
        let (state, _) = finish(&plan, &pendulum(), &PENDULUM_START);
        let (cost, steps) = (&state.cost, state.step);
        let iterations = cost.newton_iterations;
        assert!(iterations >= steps, "every step here has something to project: {cost:?}");
        assert_eq!(cost.field, evaluations * (steps + iterations), "{scheme}");
        assert_eq!(
            (cost.linear_solves, cost.invariants),
            (iterations, steps + iterations),
            "{scheme}"
        );
        assert_eq!(cost.jacobian, 2 * steps + iterations, "{scheme}: at x₀, and at every x₁");
    }
}

#[test]
fn a_loose_tolerance_saves_base_steps() {
    let mut plan = Plan::fixed(method("symmetric-projection:euler"), 0.0, 2.0, 1e-2).unwrap();
    let (tight, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    plan.projection_tolerance = Some(1e-6);
    let (loose, _) = finish(&plan, &pendulum(), &PENDULUM_START);
    assert!(loose.cost.field < tight.cost.field);
    // A distance of 1e-6 times |∇F| ≤ 5; above the tight run's drift, or the option did nothing.
    assert!(max_drift(&loose) < 5e-6 && max_drift(&loose) > 1e-12);
}

#[test]
fn a_start_off_the_set_is_brought_there_by_the_first_step() {
    let plan = Plan::fixed(method("symmetric-projection:rk4"), 0.0, 0.1, 0.1).unwrap();
    let mut off = PENDULUM_START;
    off[1] += 0.01;
    let mut state = StepState::new(&plan, &pendulum(), &off, Some(&PENDULUM_START));
    assert!(max_drift(&state) > 0.01);
    run(&plan, &pendulum(), &mut state, &mut Recorder::default()).unwrap();
    // As along the long run.
    assert!(state.drift.iter().all(|drift| drift.now < 1.5e-14), "{:?}", state.drift);
}

/// Motion away from the origin at unit speed, on a line that turns at unit rate: x = (1 + s)(cos s,
/// sin s), where the time s runs from `from` on, or back.
fn turning_line(from: f64, direction: f64) -> FnSystem<'static> {
    let time = move |t: f64| from + direction * t;
    FnSystem::new(2, move |_, x, dx| {
        let r = x[0].hypot(x[1]);
        dx.copy_from_slice(&[direction * (x[0] / r - x[1]), direction * (x[1] / r + x[0])]);
    })
    .with_invariants(
        Invariants::dense(2, 1, 1, vec![Group::rows("line", GroupKind::Constraint, 0..1)]),
        move |t, x, f| f[0] = time(t).sin() * x[0] - time(t).cos() * x[1],
        move |t, _, df| df.copy_from_slice(&[time(t).sin(), -time(t).cos()]),
    )
}

#[test]
fn constraints_may_depend_on_time() {
    let error = |h: f64| {
        let plan = Plan::fixed(method("symmetric-projection:rk4"), 0.0, 2.0, h).unwrap();
        let (state, _) = finish(&plan, &turning_line(0.0, 1.0), &[1.0, 0.0]);
        // A few roundings of terms of size 3.
        assert!(max_drift(&state) < 5e-15, "{:?}", state.drift);
        distance(&state.x, &[3.0 * 2f64.cos(), 3.0 * 2f64.sin()])
    };
    let order = (error(0.1) / error(0.05)).log2();
    assert!((order - 4.0).abs() < 0.35, "{order}");
    // There and back, at the times at which it was there.
    let there = trapezoid("symmetric-projection", &turning_line(0.0, 1.0), &[1.0, 0.0], 0.1, 20).0;
    let back = trapezoid("symmetric-projection", &turning_line(2.0, -1.0), &there.x, 0.1, 20).0;
    let returned = distance(&back.x, &[1.0, 0.0]);
    println!("order {order:.2}, there and back {returned:.1e}, moved by {:.1e}", error(0.1));
    // 40 steps of a few roundings of numbers up to 3.
    assert!(returned < 1e-13, "{returned}");
}

#[test]
fn adaptive_steps_are_refused() {
    let refused =
        Plan::adaptive(method("symmetric-projection:dop853"), 0.0, 1.0, 1e-6, 1e-6).unwrap_err();
    assert_eq!(refused, PlanError::NeedsEqualSteps { treatment: "symmetric-projection" });
    let message = refused.to_string();
    assert!(message.contains("`symmetric-projection` needs a fixed step (`step`)"), "{message}");
    // Without an error estimate that is reported first.
    let refused =
        Plan::adaptive(method("symmetric-projection:rk4"), 0.0, 1.0, 1e-6, 1e-6).unwrap_err();
    assert_eq!(refused, PlanError::NeedsStep { scheme: "rk4" });
}
