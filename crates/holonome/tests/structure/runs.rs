//! Long runs: constraints at round-off, energies without a trend.

use crate::cases::{Case, below, case, largest};
use crate::common::{load, model, options, repository, run};
use crate::methods::{bases, cases_of, compositions, few_cases_of};
use holonome::method::Method;
use holonome::model::treatment::InvariantKind;
use holonome::{Problem, RunOptions, Settings, Simulation, Solution, StepSize, prepare};
use std::collections::BTreeMap;

/// Bound of the constraints' residuals after a step: Newton's method ends at round-off of a few
/// terms of sizes up to 4, and a moving constraint depends on the time, which is accurate to 2e-15.
const ON_THE_SET: f64 = 1e-14;

#[test]
fn constraints_stay_at_round_off() {
    for method in bases().into_iter().chain(compositions()) {
        for case in few_cases_of(&method).into_iter().filter(|case| case.constrained()) {
            let simulation = case.with(&method.to_string());
            let (mut x, chunk) = (case.start(), 7);
            for k in 0..8 {
                x = simulation.steps(((k * chunk) as f64 * case.h, case.h), chunk, &x).unwrap();
                let mut residuals = (case.restrictions)(((k + 1) * chunk) as f64 * case.h, &x);
                // SHAKE's steps end on the constraints only.
                if method.scheme.name == "shake" {
                    residuals.truncate(residuals.len() / 2);
                }
                assert!(
                    largest(&residuals) < ON_THE_SET,
                    "{method} on {}: {residuals:?}",
                    case.name()
                );
            }
        }
    }
}

/// max |H − H₀| over the first and over the second half of a run, sampled every tenth step, and the
/// change of the mean of H between the halves.
fn halves(
    case: &Case,
    simulation: &Simulation,
    closing: Option<&Simulation>,
    h: f64,
    steps: u64,
) -> (f64, f64, f64) {
    let mut x = case.start();
    let energy = (case.energy)(&x);
    let (mut largest, mut mean) = ([0.0f64; 2], [0.0; 2]);
    for k in 0..steps / 10 {
        let t = (10 * k) as f64 * h;
        x = simulation.steps((t, h), 10, &x).unwrap();
        // The energy of a state of SHAKE is that of its fibre's point on the hidden set.
        let seen = match closing {
            Some(rattle) => rattle.steps((t + 10.0 * h, h), 1, &x).unwrap(),
            None => x.clone(),
        };
        let half = usize::from(2 * k >= steps / 10);
        let deviation = (case.energy)(&seen) - energy;
        largest[half] = largest[half].max(deviation.abs());
        mean[half] += deviation / (steps / 20) as f64;
    }
    (largest[0], largest[1], (mean[1] - mean[0]).abs())
}

/// The energy error of a symplectic method, and of a symmetric one on a reversible system (HLW
/// XI.3), is h^p times a function on phase space (HLW IX.8, IX.5.2). On an orbit that returns to
/// its start many times it therefore has the same bounds and mean over two halves. Over some
/// thousand periods a quasi-periodic orbit meets its extremes to a few per cent; errors at
/// round-off have to stay there.
#[test]
fn energies_have_no_trend() {
    let mut wrong = Vec::new();
    let bounded = |method: &Method| method.symplectic() || method.symmetric();
    for method in bases().into_iter().chain(compositions()).filter(bounded) {
        // Regular orbits: without constraints, on a sphere, in phase space. A slide with a named
        // base map gets one in a field that is not uniform; curved fibres take long.
        let regular: &[(&str, u64)] =
            match (method.composition.is_some(), method.unconstrained.is_some()) {
                (true, true) => &[("hopf-pair", 1_000)],
                (true, false) => &[
                    ("henon-heiles", 2_000),
                    ("spherical-pendulum", 2_000),
                    ("hopf-pair", 2_000),
                    ("matrix-rigid-body", 2_000),
                    ("magnetic-body", 2_000),
                    ("knife-edge", 2_000),
                ],
                (false, true) => &[("hopf-pair", 10_000)],
                (false, false) => &[
                    ("henon-heiles", 100_000),
                    ("kepler", 40_000),
                    ("spherical-pendulum", 100_000),
                    ("hopf-oscillator", 100_000),
                    ("hopf-pair", 40_000),
                    ("three-species", 40_000),
                    ("sphere-vortices", 20_000),
                    ("spin-ring", 20_000),
                    ("curved-fibre", 2_000),
                    ("twisted-pair", 1_000),
                    ("matrix-rigid-body", 20_000),
                    ("magnetic-body", 20_000),
                    ("knife-edge", 40_000),
                ],
            };
        for case in cases_of(&method) {
            let Some(&(_, steps)) = regular.iter().find(|(name, _)| *name == case.name()) else {
                continue;
            };
            let simulation = case.with(&method.to_string());
            let closing = (method.scheme.name == "shake")
                .then(|| case.with(&method.to_string().replace("shake", "rattle")));
            let (first, second, change) =
                halves(case, &simulation, closing.as_ref(), case.h, steps);
            println!("{method} on {}: {first:.2e} {second:.2e} {change:.1e}", case.name());
            // Rounding: a random walk of a few 1e-16 per substep.
            let walk = 1e-15 * ((steps as usize * method.substeps().len()) as f64).sqrt();
            if !(below(second, 1.1 * first + walk) && below(change, 0.1 * first + walk)) {
                wrong.push(format!(
                    "{method} on {}: {first:e} {second:e}, mean {change:e}",
                    case.name()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The measure above detects a trend.
#[test]
fn energies_of_other_methods_drift() {
    for (name, on) in [("rk4", "henon-heiles"), ("rk4", "spherical-pendulum"), ("rk4", "hopf-pair")]
    {
        let case = case(on);
        let (first, second, _) = halves(case, &case.with(name), None, case.h, 40_000);
        println!("{name} on {on}: {first:.2e} {second:.2e}");
        assert!(second > 1.5 * first, "{name} on {on}: {first:e} {second:e}");
    }
}

/// Gauss methods keep every quadratic invariant of any field (HLW IV.2.1): for a free body its
/// orthogonality, energy and angular momentum.
#[test]
fn gauss_methods_keep_quadratic_invariants() {
    for name in ["implicit-midpoint", "gauss2", "gauss4", "gauss6"] {
        let body = load(&repository().join("models/rigid-body.holo"), &[]).unwrap();
        let start = body.model.initial.clone();
        let options = RunOptions {
            method: name.parse().unwrap(),
            step: StepSize::Fixed(0.1),
            until: 1.0,
            ..RunOptions::default()
        };
        let x = prepare(body, options).unwrap().steps((0.0, 0.1), 2000, &start).unwrap();
        let (r, w, inertia) = (&x[..9], &x[9..], [3.0, 2.0, 1.0]);
        let energy = 0.5 * (0..3).map(|i| inertia[i] * w[i] * w[i]).sum::<f64>();
        let mut errors = vec![energy - 3.0];
        for i in 0..3 {
            errors.push((0..3).map(|k| r[3 * i + k] * inertia[k] * w[k]).sum::<f64>() - inertia[i]);
            for j in 0..3 {
                errors.push(
                    (0..3).map(|k| r[3 * k + i] * r[3 * k + j]).sum::<f64>() - f64::from(i == j),
                );
            }
        }
        // Compensated sums leave one rounding of the increments per step, h 1e-16, and Newton's
        // last residuals as much: a random walk of 2000 such steps is 1e-15, times numbers up to 3.
        assert!(largest(&errors) < 1e-14, "{name}: {errors:?}");
    }
}

/// Collocation with equal steps leaves the energy a random walk of roundings: also if no component
/// of the field depends on others alone (the second model).
#[test]
fn energies_of_collocation_walk_at_random() {
    let potential = "dot(q, q)/2 + q.x^2*q.y - q.y^3/3";
    let state = "coordinate q : R^2 = (0.1, 0.2)\nmomentum p of q = (0.3, 0.25)\n";
    let kepler = "coordinate q : R^2 = (0.5, 0)\nmomentum p of q = (0, sqrt(3))\nhamiltonian dot(p, p)/2 - 1/norm(q)";
    // With about the mean of |∂H/∂q| |q'| and |∂H/∂p| |p'| along the motion.
    let cases = [
        (
            format!("{state}hamiltonian dot(p, p)/2 + {potential}"),
            0.1,
            [("gauss8", 0.05), ("gauss16", 0.2)],
        ),
        (
            format!("{state}hamiltonian ((p.x + 0.3*q.y)^2 + (p.y - 0.3*q.x)^2)/2 + {potential}"),
            0.1,
            [("gauss8", 0.05), ("gauss16", 0.2)],
        ),
        (kepler.to_string(), 1.0, [("gauss8", 0.02), ("gauss16", 0.05)]),
    ];
    for (text, power, methods) in cases {
        for (method, h) in methods {
            let run = million_steps(&text, method, h);
            let energy = run["H"].values();
            let last = &energy[energy.len() - 50..];
            let change = last.iter().sum::<f64>() / last.len() as f64 - energy[0];
            // A step rounds its increments, and the states at its stages with h times the effect,
            // by half a unit of 2.2e-16 at most: four deviations of the walk, and the rounding of H
            // itself.
            let walk = 4.0 * f64::from(STEPS).sqrt() * h * power * f64::EPSILON / 2.0;
            assert!(
                change.abs() < walk + f64::EPSILON,
                "{method}: {change:e}, but at most {walk:e} on\n{text}"
            );
        }
    }
}

/// Number of steps of [`million_steps`].
const STEPS: u32 = 1_000_000;

/// Run of so many equal steps, with 1001 samples.
fn million_steps(text: &str, method: &str, h: f64) -> Solution {
    let options = RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(h),
        until: h * f64::from(STEPS),
        samples: Some(1001),
        ..RunOptions::default()
    };
    prepare(text.parse().unwrap(), options).unwrap().solve().unwrap()
}

/// Quadratic invariants of Gauss methods walk at random, too, however long the steps are: the
/// coefficients add nothing that is the same in every step.
#[test]
fn quadratic_invariants_walk_at_random() {
    for (method, h) in [("implicit-midpoint", 0.3), ("gauss4", 0.3), ("gauss6", 0.4)] {
        let text = "coordinate q : R^2 = (1, 0.2)\nmomentum p of q = (-0.1, 0.8)\n\
            hamiltonian dot(p, p)/2 + dot(q, q)/2 + dot(q, q)^2/4\nintegral L = q.x*p.y - q.y*p.x";
        let run = million_steps(text, method, h);
        let spin = run["L"].values();
        let change = (spin[spin.len() - 1] - spin[0]).abs();
        // Four deviations of a walk: a step rounds its increments by half a unit of 2.2e-16 at
        // most, with h times the effect 2, about the mean of |q| |p'| + |p| |q'|.
        let walk = 4.0 * f64::from(STEPS).sqrt() * h * 2.0 * f64::EPSILON / 2.0;
        assert!(change < walk, "{method}: {change:e}, but at most {walk:e}");
    }
}

/// A constraint means the same in other units, also one on phase space, whose fibres are recognised
/// by their numbers.
#[test]
fn the_unit_of_a_constraint_does_not_matter() {
    let written = "dot(q, q) + dot(p, p) = 1";
    let text =
        std::fs::read_to_string(repository().join("suite/models/hopf-oscillator.holo")).unwrap();
    assert!(text.contains(&format!("sphere : {written}")));
    let end = |factor: &str| {
        let text = text.replace(
            &format!(": {written}"),
            &format!(": {factor}*(dot(q, q) + dot(p, p)) = {factor}"),
        );
        let problem =
            Problem::from_text("model", &text, &BTreeMap::new(), &Settings::default()).unwrap();
        let start = problem.model.initial.clone();
        let options = RunOptions {
            method: "rattle".parse().unwrap(),
            step: StepSize::Fixed(0.01),
            until: 10.0,
            ..RunOptions::default()
        };
        prepare(problem, options).unwrap().steps((0.0, 0.01), 1000, &start).unwrap()
    };
    let expected = end("1");
    for factor in ["1e-7", "1e7"] {
        let differences: Vec<f64> = end(factor).iter().zip(&expected).map(|(a, b)| a - b).collect();
        // Different roundings in each of 1000 steps, all of which the motion adds up: 1000 · 2e-16,
        // a few times.
        assert!(largest(&differences) < 1e-11, "{factor}: {differences:?}");
    }
}

/// A symmetric method on a reversible system (HLW V.1.4): with p reversed, the run returns.
#[test]
fn runs_go_back() {
    for method in bases().into_iter().chain(compositions()).filter(Method::symmetric) {
        let reversible = [
            "kepler",
            "spherical-pendulum",
            "two-spheres",
            "hopf-oscillator",
            "hopf-pair",
            "hopf-pendulum",
            "matrix-rigid-body",
            "heavy-top",
            "knife-edge",
        ];
        for case in cases_of(&method).into_iter().filter(|case| reversible.contains(&case.name())) {
            let (simulation, start) = (case.with(&method.to_string()), case.start());
            let turned = |x: &[f64]| -> Vec<f64> {
                let n = x.len() / 2;
                x.iter().enumerate().map(|(i, &x)| if i < n { x } else { -x }).collect()
            };
            let steps = |x: &[f64]| {
                let failed = |error| panic!("{method} on {}: {error}", case.name());
                simulation.steps((0.0, case.h), 20, x).unwrap_or_else(failed)
            };
            let there = steps(&start);
            let back = turned(&steps(&turned(&there)));
            // Roundings of 40 steps, amplified by the flow over a time of 2, less than a hundred
            // times.
            let gap = crate::cases::difference(&back, &start);
            assert!(gap < 1e-12, "{method} on {}: {gap:e}", case.name());
        }
    }
}

/// The end of a run is one of its states, whether its last steps are single ones or in a loop.
#[test]
fn the_largest_drift_is_that_of_all_steps() {
    for method in ["rk4", "gauss4", "symplectic-euler-a"] {
        // Away from the pericentre the error of H grows for a while: it is largest at the end.
        for until in ["0.01", "0.3", "0.31"] {
            let steps = (until.parse::<f64>().unwrap() * 100.0).round() as u64;
            let text =
                format!("--method {method} --step 0.01 --until {until} --samples {}", steps + 1);
            let found = run(model("kepler", &[]), options(&text)).unwrap();
            let energies = found.array("H").concat();
            let off =
                energies.iter().fold(0.0f64, |off, energy| off.max((energy - energies[0]).abs()));
            let drift = found
                .summary
                .drift
                .iter()
                .find(|drift| drift.kind == InvariantKind::Hamiltonian)
                .unwrap();
            assert!(
                drift.last <= drift.max,
                "{method} to {until}: {:e} {:e}",
                drift.last,
                drift.max
            );
            // Monitored and stored H differ by some roundings of its terms, which are of size 1.
            assert!(
                (drift.max - off).abs() < 8.0 * f64::EPSILON,
                "{method} to {until}: {:e} {off:e}",
                drift.max
            );
        }
    }
}
