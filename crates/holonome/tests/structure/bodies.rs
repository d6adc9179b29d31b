//! Rigid bodies: invariants of their methods, the forms in which a model may be written, and models
//! that are not rigid bodies.

use crate::cases::{difference, largest};
use crate::common::{load, repository};
use holonome::store::StoredRun;
use holonome::{
    Control, Error, Problem, RunOptions, Settings, Simulation, StepSize, Sweep, SweepOptions,
    prepare,
};
use std::collections::BTreeMap;

const METHODS: [&str; 3] = ["rotation-splitting", "cayley-variational-euler", "cayley-symmetric"];

fn simulation(problem: Problem, method: &str, step: f64) -> Result<Simulation, Error> {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(step),
        until: 1e6,
        ..RunOptions::default()
    };
    prepare(problem, options)
}

fn end(path: &str, set: &[(&str, &str)], method: &str, step: f64, count: u64) -> Vec<f64> {
    let problem = load(&repository().join(path), set).unwrap();
    let start = problem.model.initial.clone();
    simulation(problem, method, step).unwrap().steps((0.0, step), count, &start).unwrap()
}

fn written(text: &str) -> Problem {
    Problem::from_text("body", text, &BTreeMap::new(), &Settings::default())
        .unwrap_or_else(|_| panic!("{text}"))
}

/// RᵀR − 1 of nine components.
fn deviation(r: &[f64]) -> f64 {
    let entry = |i: usize, j: usize| {
        (0..3).map(|k| r[3 * k + i] * r[3 * k + j]).sum::<f64>() - f64::from(i == j)
    };
    largest(&(0..9).map(|k| entry(k / 3, k % 3)).collect::<Vec<_>>())
}

/// R I w of a state (R, w).
fn in_space(x: &[f64], inertia: [f64; 3]) -> Vec<f64> {
    (0..3).map(|i| (0..3).map(|k| x[3 * i + k] * inertia[k] * x[9 + k]).sum()).collect()
}

/// A free body keeps its angular momentum in space, in all components, and R stays a rotation,
/// whatever the step.
#[test]
fn the_angular_momentum_of_a_free_body_is_kept() {
    for method in METHODS {
        for step in [0.3, 0.1] {
            let x = end("models/rigid-body.holo", &[], method, step, 2000);
            // Every step rounds numbers up to 3 some ten times: as a random walk, 2000^½ times
            // 1e-15.
            let gap = difference(&in_space(&x, [3.0, 2.0, 1.0]), &[3.0, 2.0, 1.0]);
            assert!(
                gap < 1e-13 && deviation(&x[..9]) < 2e-15,
                "{method}, {step}: {gap:e}, {:e}",
                deviation(&x[..9])
            );
        }
    }
}

/// In a field along z the component of the angular momentum along it is kept, and with three equal
/// moments the one along the body's axis, too.
#[test]
fn momentum_maps_are_kept() {
    for method in &METHODS[1..] {
        let x = end("models/magnetic-body.holo", &[], method, 0.1, 10_000);
        let (r, p) = x.split_at(9);
        let along_field: f64 = (0..3).map(|k| r[k] * p[3 + k] - r[3 + k] * p[k]).sum();
        let along_magnet: f64 =
            (0..3).map(|k| r[3 * k + 1] * p[3 * k] - r[3 * k] * p[3 * k + 1]).sum();
        let errors = [along_field - 0.1, along_magnet - 0.1];
        // A random walk of 10 000 steps that round numbers up to 2: 100 times 1e-15.
        assert!(
            largest(&errors) < 1e-13 && deviation(r) < 2e-15,
            "{method}: {errors:?}, {:e}",
            deviation(r)
        );
    }
}

/// One body in different variables moves alike: with its momentum matrix, its angular momentum or
/// its angular velocity.
#[test]
fn a_body_may_be_written_in_several_ways() {
    for method in &METHODS[1..] {
        let a = end("models/heavy-top.holo", &[], method, 0.05, 200);
        let b = end("suite/structure/top-by-momentum.holo", &[], method, 0.05, 200);
        // Roundings of 200 steps, amplified less than a hundred times by the motion over a time of
        // 10.
        assert!(
            difference(&a[..9], &b[3..]) < 1e-12,
            "{method}: {:e}",
            difference(&a[..9], &b[3..])
        );
    }
    let alone =
        "parameter I = diag(3, 2, 1)\nstate w : R^3 = (1, 1, 1)\nw' = inverse(I)*cross(I*w, w)\n";
    for method in METHODS {
        let a = end("models/rigid-body.holo", &[], method, 0.05, 200);
        let problem = written(alone);
        let start = problem.model.initial.clone();
        let b = simulation(problem, method, 0.05).unwrap().steps((0.0, 0.05), 200, &start).unwrap();
        assert!(difference(&a[9..], &b) < 1e-13, "{method}");
    }
}

/// Euler's equations for the angular momentum alone leave a multiple of |L|² in the energy open.
/// With any such body the motion is the same, and |L| is kept.
#[test]
fn the_angular_momentum_alone_is_a_body() {
    for inertia in [
        "diag(3, 2, 1)",
        "diag(1, 3, 2.5)",
        "diag(2, 2, 1)",
        "diag(2, 2, 2)",
        "diag(3e-20, 2e-20, 1e-20)",
    ] {
        let momentum = format!(
            "parameter I = {inertia}\nstate L : R^3 = I*(1, 0.3, -0.5)\nL' = cross(L, inverse(I)*L)\n"
        );
        let steps = |method: &str, h: f64, count: u64| -> Vec<f64> {
            let problem = written(&momentum);
            let start = problem.model.initial.clone();
            simulation(problem, method, h).unwrap().steps((0.0, h), count, &start).unwrap()
        };
        // A method of order 6, whose error is far below the others'.
        let exact = steps("gauss6", 0.01, 200);
        let size = largest(&exact);
        for method in METHODS {
            let error = |h: f64, count| difference(&steps(method, h, count), &exact) / size;
            let (coarse, fine) = (error(0.02, 100), error(0.01, 200));
            let order = if method == "cayley-variational-euler" { 1.0 } else { 2.0 };
            // The ratio of the errors is 2^order up to the next term; a sphere and its momentum
            // stand still. Without a torque the momentum itself may have order 2 even if the
            // attitude does not.
            let ratio = (coarse / fine).log2();
            assert!(
                coarse < 1e-13 || ratio > order - 0.1,
                "{inertia}, {method}: {coarse:e} {fine:e}"
            );
            assert!(coarse < 0.05, "{inertia}, {method}: {coarse:e}");
            let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
            let drift = norm(&steps(method, 0.02, 100)) / norm(&steps(method, 0.02, 0)) - 1.0;
            // With two equal moments the equations are those of an angular velocity as well.
            let either = inertia.starts_with("diag(2, 2");
            assert!(either || drift.abs() < 1e-13, "{inertia}, {method}: {drift:e}");
        }
    }
}

/// Moments of inertia of all kinds: equal ones, nearly a rod, plates in each plane, and one larger
/// than any body has.
#[test]
fn moments_are_found_from_the_formulas() {
    for [a, b, c] in [
        [1.0, 1.0, 1.0],
        [2.0, 2.0, 1e-3],
        [3.0, 2.0, 1.0],
        [2.0, 3.0, 1.0],
        [1.0, 2.0, 3.0],
        [1.7, 1.45, 1.1],
        [4.0, 2.0, 1.0],
    ] {
        let set = [("I", format!("diag({a}, {b}, {c})"))];
        let set: Vec<(&str, &str)> =
            set.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for method in METHODS {
            let x = end("models/rigid-body.holo", &set, method, 0.1, 500);
            let gap = difference(&in_space(&x, [a, b, c]), &[a, b, c]);
            assert!(gap < 1e-13, "{method}, {a}, {b}, {c}: {gap:e}");
        }
    }
}

/// A model that is not a rigid body, or not a free one in its principal axes, is refused with the
/// formula that does not fit.
#[test]
fn refusals_name_the_formula() {
    let states = "state R : R^(3,3) = identity(3)\nstate w : R^3 = (1, 1, 1)\n";
    let matrix = "coordinate Q : R^(3,3) = identity(3)\nmomentum P of Q = hat((1, 0, 0))\n";
    let orthogonal = "constraint one : transpose(Q)*Q = identity(3)\n";
    let euler = "w' = (w.y*w.z/3, -w.z*w.x, w.x*w.y)\n";
    for (text, method, words) in [
        (format!("{states}R' = hat(w)*R\n{euler}"), "cayley-symmetric", "`R'` is not R*hat(w)"),
        (
            format!("{states}R' = R*hat(w)/(1 + t^2)\n{euler}"),
            "cayley-symmetric",
            "`R'` is not R*hat(w)",
        ),
        (
            format!("{states}R' = R*hat(w)\nw' = (w.y*w.z/3, -w.z*w.x, w.x*w.y - w.z)\n"),
            "cayley-symmetric",
            "component 3",
        ),
        (
            format!("{states}R' = R*hat(w)\nw' = (w.y*w.z/3, -w.z*w.x + w.z^2, w.x*w.y)\n"),
            "cayley-symmetric",
            "component 2",
        ),
        (
            format!("{states}R' = R*hat(w)\nw' = (w.y*w.z/2, -w.z*w.x, w.x*w.y/2)\n"),
            "rotation-splitting",
            "factors [0.5, -1.0, 0.5]",
        ),
        (
            format!("{states}R' = R*hat(w)\nw' = (w.y*w.z/3 + R[1,2], -w.z*w.x, w.x*w.y)\n"),
            "rotation-splitting",
            "holds a torque",
        ),
        ("state x : R = 1\nx' = -x\n".into(), "rotation-splitting", "R : R^(3,3) and w : R^3"),
        (
            format!("{matrix}hamiltonian trace(P*transpose(P))\n"),
            "cayley-symmetric",
            "the constraint transpose(Q)*Q = identity(3)",
        ),
        (
            format!(
                "{matrix}hamiltonian trace(P*transpose(P))\nconstraint one : transpose(Q)*Q = 4*identity(3)\n"
            ),
            "cayley-symmetric",
            "constraint `one` is not",
        ),
        (
            format!(
                "{matrix}hamiltonian trace(P*diag(1, 2, 3)*transpose(P)) + P[1,1]\n{orthogonal}"
            ),
            "cayley-symmetric",
            "trace(P*inverse(J)*transpose(P))/2",
        ),
        (
            format!("{matrix}hamiltonian (2 + sin(t))*trace(P*transpose(P))\n{orthogonal}"),
            "cayley-symmetric",
            "trace(P*inverse(J)*transpose(P))/2",
        ),
        (
            format!("{matrix}hamiltonian trace(P*transpose(P))*(1 + Q[1,1]^2)\n{orthogonal}"),
            "cayley-symmetric",
            "trace(P*inverse(J)*transpose(P))/2",
        ),
        (
            format!("{matrix}hamiltonian trace(P*transpose(P)) + Q[1,2]\n{orthogonal}"),
            "rotation-splitting",
            "holds a potential",
        ),
        (
            format!(
                "{matrix}hamiltonian trace(P*matrix((1, 0.1, 0), (0.1, 1, 0), (0, 0, 2))*transpose(P))\n{orthogonal}"
            ),
            "rotation-splitting",
            "principal axes",
        ),
    ] {
        let settings = Settings { start_off_set: true, ..Settings::default() };
        let problem = Problem::from_text("body", &text, &BTreeMap::new(), &settings)
            .unwrap_or_else(|_| panic!("{text}"));
        let Err(error) = simulation(problem, method, 0.1) else { panic!("{method} runs\n{text}") };
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().contains(words) && error.to_string().contains("use "),
            "{error}\n{text}"
        );
    }
}

/// However far a body would turn in a step, the equations have a solution, and the angular momentum
/// is kept.
#[test]
fn every_step_has_a_solution() {
    for step in [2.0, 40.0, 1e4] {
        let x = end("models/rigid-body.holo", &[], "cayley-symmetric", step, 100);
        let gap = difference(&in_space(&x, [3.0, 2.0, 1.0]), &[3.0, 2.0, 1.0]);
        // A Cayley rotation by nearly half a turn is accurate to a rounding times tan² of a quarter
        // of it.
        assert!(gap < 1e-12 && deviation(&x[..9]) < 2e-15, "{step}: {gap:e}");
    }
}

/// Parameters are inputs of a step, never constants in it: a trajectory with other moments of
/// inertia equals a run with them.
#[test]
fn ensembles_vary_the_inertia() {
    let folder = tempfile::tempdir().unwrap();
    for (k, (path, name, method)) in [
        ("models/rigid-body.holo", "I", "rotation-splitting"),
        ("models/rigid-body.holo", "I", "cayley-symmetric"),
        ("suite/models/matrix-rigid-body.holo", "J", "rotation-splitting"),
        ("models/heavy-top.holo", "I", "cayley-variational-euler"),
    ]
    .into_iter()
    .enumerate()
    {
        let value = |i: &str| format!("diag(3 + {i}, 2.5, 2)");
        let out = folder.path().join(k.to_string());
        let run = RunOptions {
            method: method.parse().unwrap(),
            step: StepSize::Fixed(0.1),
            until: 2.0,
            samples: Some(2),
            out: Some(out.clone()),
            ..RunOptions::default()
        };
        let vary = vec![(name.to_string(), value("i/4"))];
        let options = SweepOptions { trajectories: 3, vary, ..SweepOptions::default() };
        let mut sweep =
            Sweep::load(repository().join(path), &Settings::default(), run, options).unwrap();
        sweep.run(&mut |_| Control::Continue).unwrap();
        let stored = StoredRun::open(&out).unwrap();
        let problem = load(&repository().join(path), &[]).unwrap();
        let first = &problem.model.variables[0].family;
        let numbers = stored.read(&first.name).unwrap();
        let members =
            numbers.chunks(numbers.len() / 3).map(|list| list[list.len() - first.len()..].to_vec());
        for (i, member) in members.enumerate() {
            let own = end(path, &[(name, &value(&(i as f64 / 4.0).to_string()))], method, 0.1, 20);
            // Twenty steps with different numbers of Newton iterations.
            assert!(
                difference(&member, &own[..first.len()]) < 1e-13,
                "{path}, {method}: {member:?}, {own:?}"
            );
        }
    }
}

/// A body whose axes turn away in the course of an ensemble is no longer suitable for rotations
/// about them.
#[test]
fn ensembles_off_the_principal_axes_are_refused() {
    let sweep = |vary: &str| {
        let run = RunOptions {
            method: "rotation-splitting".parse().unwrap(),
            step: StepSize::Fixed(0.1),
            ..RunOptions::default()
        };
        let options = SweepOptions {
            trajectories: 3,
            vary: vec![("I".into(), vary.into())],
            ..SweepOptions::default()
        };
        Sweep::load(repository().join("models/rigid-body.holo"), &Settings::default(), run, options)
    };
    assert!(sweep("diag(3, 2, 1 + i)").is_ok());
    let error = sweep("matrix((3, 0, 0), (0, 2, i/10), (0, i/10, 1))").err().unwrap();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("trajectory 1: `w'` is not Euler's equations"), "{error}");
}
