//! Taylor series: against closed forms, at rest, driven, within steps, and refusals.

mod common;

use common::{distance, model, options, run};
use holonome::store::StoredRun;
use holonome::system::FnSystem;
use holonome::{
    Control, Error, Problem, Resumed, RunOptions, Settings, Simulation, integrate, prepare,
};
use std::collections::BTreeMap;

fn problem(text: &str) -> Problem {
    Problem::from_text("model", text, &BTreeMap::new(), &Settings::default()).unwrap()
}

/// Position on Kepler's orbit of eccentricity 0.8 from its pericentre at 1, with μ = 1, by Kepler's
/// equation.
fn on_orbit(t: f64) -> [f64; 2] {
    let (e, a): (f64, f64) = (0.8, 5.0);
    let mean = (t / a.powf(1.5)).rem_euclid(std::f64::consts::TAU);
    let mut anomaly = mean + e * mean.sin();
    for _ in 0..50 {
        anomaly -= (anomaly - e * anomaly.sin() - mean) / (1.0 - e * anomaly.cos());
    }
    [a * (anomaly.cos() - e), a * (1.0 - e * e).sqrt() * anomaly.sin()]
}

#[test]
fn samples_along_an_orbit_are_those_of_keplers_equation() {
    for (method, rtol, largest) in
        [("taylor", 1e-13, 2e-11), ("corrected:taylor", 1e-9, 1e-7), ("taylor", 1e-6, 1e-2)]
    {
        let text = format!("--method {method} --rtol {rtol} --until 300 --samples 901");
        let finished = run(model("kepler", &[]), options(&text)).unwrap();
        // Most samples lie within steps.
        assert!(finished.summary.steps < 350, "{method}: {} steps", finished.summary.steps);
        for (t, x) in finished.times().iter().zip(finished.array("x")) {
            let error = distance(&x[..2], &on_orbit(*t));
            assert!(error < largest, "{method} {rtol}: {error:e} at {t}");
        }
    }
}

/// Fields that depend on time and on every kind of function, with known solutions.
#[test]
fn driven_and_transcendental_fields_are_followed() {
    for (text, exact) in [
        ("state x = 0\nx' = cos(t)*exp(x)", (|t: f64| -(1.0 - t.sin()).ln()) as fn(f64) -> f64),
        ("state x = 1\nx' = -2*t*x", |t| (-t * t).exp()),
        ("state x = 0.25\nx' = sqrt(x)", |t| (0.5 + 0.5 * t).powi(2)),
        ("state x = 2\nx' = x^1.5/10", |t| (2f64.powf(-0.5) - 0.05 * t).powi(-2)),
        ("state x = 0.5\nx' = 1/tanh(x)", |t| (0.5f64.cosh() * t.exp()).acosh()),
        ("state x = 0.1\nx' = cos(x)^2", |t| (0.1f64.tan() + t).atan()),
    ] {
        let finished =
            run(problem(text), options("--method taylor --rtol 1e-13 --until 1.2 --samples 2"))
                .unwrap();
        let error = (finished.state()[0] / exact(1.2) - 1.0).abs();
        assert!(error < 1e-12, "{text}: {error:e}");
    }
}

/// Kinks, a branch cut and a pulse within a step, of which the terms at its start say nothing:
/// without the comparison with the field the errors are 1e-2 to 0.3.
#[test]
fn what_a_step_passes_is_seen() {
    // Thrown up with quadratic drag: up by the tangent, down by the hyperbolic cosine.
    let (g, c, v0): (f64, f64, f64) = (9.81, 0.5, 10.0);
    let terminal = (g / c).sqrt();
    let top = terminal / g * (v0 / terminal).atan();
    let height = (1.0 + (v0 / terminal).powi(2)).ln() / (2.0 * c);
    let thrown = height - (g * (2.0 - top) / terminal).cosh().ln() / c;
    // The angle 2t, between -π and π, has passed three whole turns by t = 10.
    let turned = 1.0 + 0.1 * (10.0 - 3.0 * std::f64::consts::PI).powi(2);
    let pulse = 1.0 + 0.2 * std::f64::consts::PI.sqrt();
    for (text, until, exact) in [
        ("state z = 0\nstate v = 10\nz' = v\nv' = -9.81 - 0.5*norm((v, 0))*v", 2, thrown),
        (
            "state y = 1\nstate q : R^2 = (1, 0)\nq' = 2*(-q.y, q.x)\ny' = 0.1*atan2(q.y, q.x)",
            10,
            turned,
        ),
        ("state x = 1\nstate y = 1\nx' = exp(-((t - 50)/0.2)^2)\ny' = 0.1*cos(t)", 100, pulse),
    ] {
        let finished =
            run(problem(text), options(&format!("--method taylor --until {until} --samples 2")))
                .unwrap();
        let error = (finished.state()[0] - exact).abs();
        // An accepted step is at most 17 times its tolerance, 0.3 of 1e-9, away from a state of at
        // most 10, and some ten steps are near one of these places.
        assert!(error < 5e-7, "{text}: {error:e}");
    }
    // The solution ends where the root does; the series would go on to another branch.
    let ends = run(
        problem("state x = 1\nx' = -sqrt(x)"),
        options("--method taylor --until 3 --samples 2"),
    );
    let Err(error) = ends else { panic!("sqrt(x) goes on beyond x = 0") };
    let place = error.to_string();
    assert!(["t = 2.0", "t = 1.99999999"].iter().any(|t| place.contains(t)), "{place}");
}

/// Starts at rest, with every other term of the series, or three of four, equal to 0; and one with
/// all terms 0 for a while.
#[test]
fn a_start_at_rest_does_not_lengthen_the_step() {
    let cases = [
        "coordinate q = 1\nmomentum p of q = 0\nhamiltonian p^2/2 + q^2/2 + q^4/4",
        "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 0)\nhamiltonian dot(p, p)/2 - 1/sqrt(dot(q, q) + 0.01)",
        "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (0, 0, 0)\nhamiltonian dot(p, p)/2 + q.z\n\
         constraint rod : dot(q, q) = 1",
        "state x = 0\nstate y = 0\nx' = y\ny' = 1e-3*sin(t^4)*exp(t) - x",
        // A light body beside a heavy one, in small units.
        "parameter m[i in 1..2] = (1, 1e-8)[i]\ncoordinate q[i in 1..2] = 1e-9*i\nmomentum p of q\n\
         hamiltonian sum(i in 1..2 : p[i]^2/(2*m[i])) + 1e-4*(q[1] - q[2])^2 + 1e-4*q[1]^2",
        // Everything is at rest.
        "coordinate q = 0\nmomentum p of q = 0\nhamiltonian p^2/2 - cos(q)",
    ];
    for text in cases {
        let end = |method: &str, rtol: f64| {
            let text_of = format!("--method {method} --rtol {rtol} --until 7.5 --samples 2");
            run(problem(text), options(&text_of)).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let (reference, found, theirs) =
            (end("dop853", 1e-13), end("taylor", 1e-9), end("dop853", 1e-9));
        let size = reference.state().iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        let [error, other] = [&found, &theirs]
            .map(|run| distance(&run.state(), &reference.state()) / size.max(1e-300));
        assert!(
            error < 1e-7 && error < 3.0 * other + 1e-12,
            "{text}: {error:e}, and dop853 {other:e}"
        );
        assert!(found.summary.steps < 3000, "{text}: {} steps", found.summary.steps);
    }
}

/// At equal tolerances the error is about that of dop853 or smaller.
#[test]
fn a_tolerance_means_what_it_means_for_dop853() {
    for (name, until) in [
        ("spherical-pendulum", 30.0),
        ("kepler", 150.0),
        ("double-pendulum", 10.0),
        ("henon-heiles", 60.0),
    ] {
        let end = |method: &str, rtol: f64| {
            let text =
                format!("--method corrected:{method} --rtol {rtol} --until {until} --samples 2");
            run(model(name, &[]), options(&text)).unwrap().state()
        };
        let exact = end("dop853", 1e-14);
        for rtol in [1e-5, 1e-8, 1e-11] {
            let [ours, theirs] =
                ["taylor", "dop853"].map(|method| distance(&end(method, rtol), &exact));
            println!("{name} {rtol:e}: {ours:e}, {theirs:e}");
            assert!(ours < 4.0 * theirs + 1e-12, "{name} at {rtol:e}: {ours:e} and {theirs:e}");
        }
    }
}

/// A step is exactly the series to order 16. The errors of equal steps fall at this order or
/// faster, as the terms beyond count as well in steps long enough for an error above round-off.
#[test]
fn equal_steps_have_the_order() {
    // 1/(1 − t) = Σ tᵏ.
    let simulation =
        prepare(problem("state x = 1\nx' = x^2"), options("--method taylor --step 0.5 --until 1"))
            .unwrap();
    let [after] = simulation.steps((0.0, 0.5), 1, &[1.0]).unwrap()[..] else {
        panic!("one number")
    };
    assert!((after - (2.0 - 0.5f64.powi(16))).abs() <= 4.0 * f64::EPSILON, "{after}");
    for (text, from) in [
        ("coordinate q = 1\nmomentum p of q = 0\nhamiltonian p^2/2 - cos(q) - 0.3*q*sin(t)", 14),
        (
            "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1.1)\nhamiltonian dot(p, p)/2 - 1/norm(q)",
            24,
        ),
    ] {
        let start = problem(text).model.initial.clone();
        let simulation =
            prepare(problem(text), options("--method taylor --step 1 --until 10")).unwrap();
        let end = |n: u64| simulation.steps((0.0, 10.0 / n as f64), n, &start).unwrap();
        let exact = end(60);
        let errors = [from, from + 4, from + 8].map(|n| (n as f64, distance(&end(n), &exact)));
        for pair in errors.windows(2) {
            let order = (pair[0].1 / pair[1].1).ln() / (pair[1].0 / pair[0].0).ln();
            println!("{order:.2} {errors:?}");
            assert!(order > 15.0, "{text}: {order:.2} {errors:?}");
        }
    }
}

/// A run that is stopped and resumed from its store equals an uninterrupted one.
#[test]
fn runs_resume_exactly() {
    let folder = tempfile::tempdir().unwrap();
    for (k, method) in ["corrected:taylor", "taylor --step 0.0625"].into_iter().enumerate() {
        let make = |name: &str| {
            let out = Some(folder.path().join(format!("{name}-{k}")));
            let text = format!("--method {method} --until 60000 --samples 5001");
            prepare(model("spherical-pendulum", &[]), RunOptions { out, ..options(&text) }).unwrap()
        };
        let whole = make("whole").run(&mut |_| Control::Continue).unwrap();
        assert!(make("parts").run(&mut |_| Control::Stop).unwrap().interrupted);
        let parts = folder.path().join(format!("parts-{k}"));
        let Resumed::Continues(mut rest) = Simulation::resume(&parts).unwrap() else {
            panic!("it was stopped")
        };
        let rest = rest.run(&mut |_| Control::Continue).unwrap();
        assert_eq!(
            (whole.state, whole.steps, whole.cost.counts()),
            (rest.state, rest.steps, rest.cost.counts()),
            "{method}"
        );
        let rows = |name: &str| {
            StoredRun::open(folder.path().join(format!("{name}-{k}"))).unwrap().read("q").unwrap()
        };
        assert_eq!(rows("parts"), rows("whole"), "{method}");
    }
}

fn refused(problem: Problem, text: &str) -> String {
    let Err(error) = prepare(problem, options(text)) else { panic!("{text} runs") };
    error.to_string()
}

#[test]
fn fields_without_a_series_are_refused() {
    for (formula, operation) in
        [("abs(q)", "if"), ("max(q, 0)^2", "if"), ("if(q > 0, q^2, q^3)", "if")]
    {
        let text = format!("coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + {formula}");
        let message = refused(problem(&text), "--method corrected:taylor");
        assert!(
            message.contains(operation) && message.contains("use corrected:dop853"),
            "{message}"
        );
    }
    let message = refused(problem("state x = 1\nx' = -abs(x)"), "--method taylor");
    assert!(message.contains("`abs`"), "{message}");
    // A condition that nothing changes is decided once for all.
    let text = "parameter k = 1\nstate x = 1\nx' = if(k > 0, -x, x) + abs(k) - 1";
    let end = run(problem(text), options("--method taylor --until 1 --samples 2")).unwrap().state();
    assert!((end[0] - (-1f64).exp()).abs() < 1e-10, "{end:?}");
    let large = model("chain", &[("n", "300")]);
    assert!(refused(large, "--method taylor").contains("too large"));
    // Constraints on momenta: unrolled at any size.
    let text = "size n = 4000\ncoordinate q[i in 1..n] = sin(i)\nmomentum p[i] of q = if(i <= 2, 0, 1)\n\
                hamiltonian sum(i in 1..n : p[i]^2/2 + sin(q[i])*exp(cos(q[i]))*tanh(q[i]))\n\
                constraint a : q[1] - q[2] = sin(1) - sin(2)\nconstraint b : p[1] = p[2]";
    let long = refused(problem(text), "--method taylor");
    assert!(long.contains("operations") && long.contains("use dop853"), "{long}");
    let decay = FnSystem::new(1, |_, x: &[f64], dx: &mut [f64]| dx[0] = -x[0]);
    let error: Error =
        integrate(&decay, (0.0, &[1.0]), &options("--method taylor --until 1")).unwrap_err();
    assert!(error.to_string().contains("`taylor` is made from the formulas of a model"), "{error}");
    assert!(
        "feedback:taylor"
            .parse::<holonome::method::Method>()
            .unwrap_err()
            .to_string()
            .contains("use taylor alone")
    );
}

/// A body with a torsion spring, and chains, whose series is too long as one formula: in adaptive
/// and in equal steps, with samples within.
#[test]
fn long_series_are_followed_order_by_order() {
    let body = std::fs::read_to_string(common::repository().join("models/heavy-top.holo")).unwrap();
    let body = body.replace("\nconstraint", " + 0.35*acos((trace(R) - 1)/2)^2\nconstraint");
    let body = body.lines().filter(|line| !line.starts_with("integral"));
    let body = body.collect::<Vec<_>>().join("\n");
    let make: [&dyn Fn() -> Problem; 3] =
        [&|| problem(&body), &|| model("chain", &[("n", "12")]), &|| {
            model("chain", &[("n", "120")])
        }];
    for make in make {
        let end = |method: &str| {
            let text = format!("--method {method} --until 1 --samples 5");
            run(make(), options(&text)).unwrap()
        };
        let name = make().model.variables[0].family.name.clone();
        let exact = end("corrected:dop853 --rtol 1e-13");
        let size = exact.state().iter().fold(0.0f64, |size, x| size.max(x.abs()));
        for method in
            ["corrected:taylor --rtol 1e-10", "taylor --rtol 1e-10", "taylor --step 0.0125"]
        {
            let found = end(method);
            for (k, (a, b)) in found.array(&name).iter().zip(exact.array(&name)).enumerate() {
                let error = distance(a, &b) / size;
                assert!(error < 1e-8, "{method}: {error:e} at sample {k}");
            }
        }
        let reference = end("dop853 --rtol 1e-10");
        let taylor = end("taylor --rtol 1e-10");
        assert!(taylor.summary.steps < reference.summary.steps, "{}", taylor.summary.steps);
    }
}

/// Steps end at a singularity, with a failure that says so.
#[test]
fn a_solution_that_ends_is_followed_to_its_end() {
    let failed =
        run(problem("state x = 1\nx' = x^2"), options("--method taylor --until 2 --samples 2"));
    let Err(error) = failed else { panic!("1/(1 - t) goes on beyond 1") };
    assert!(
        error.to_string().contains("0.99999") || error.to_string().contains("t = 1"),
        "{error}"
    );
}

/// Steps so long that three iterations of the projection do not converge, so that the loop leaves
/// them to be made individually.
#[test]
fn long_steps_that_a_loop_does_not_project_are_made_by_themselves() {
    let pendulum = |step: f64| {
        let text = format!("--method projection:taylor --step {step} --until 120 --samples 2");
        run(model("spherical-pendulum", &[]), options(&text))
    };
    let finished = pendulum(1.0).unwrap();
    let length = finished.state()[..3].iter().map(|q| q * q).sum::<f64>().sqrt();
    assert!((length - 1.0).abs() < 1e-14, "{length}");
    // Farther off the set the constraint has a rate, which tells nothing about the model.
    let error = pendulum(2.0).err().expect("too long").to_string();
    assert!(error.contains("did not converge") && error.contains("shorter step"), "{error}");
}
