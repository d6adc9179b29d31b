//! Heat baths: friction and noise keep the distributions for which they are derived, with
//! constraints and without. The numbers are fixed by their seeds. Samples are far enough apart to
//! be independent: a mean over n of them is within five standard deviations σ/√n of its
//! expectation.

use holonome::{
    Control, Error, Problem, RunOptions, Settings, Simulation, StepSize, Thermostat, prepare,
};
use std::collections::BTreeMap;

const OSCILLATOR: &str = "parameter m = 2\nparameter k = 3\ncoordinate q = 0\nmomentum p of q\n\
    hamiltonian p^2/(2*m) + k*q^2/2\nobserve square = q^2\nobserve heat = p^2/m";

/// Two bonds in a plane, with very different masses.
const BONDS: &str = "parameter m = 5\ncoordinate a : R^2 = (1, 0)\ncoordinate b : R^2 = (1, 1)\nmomentum p of a\n\
    momentum s of b\nhamiltonian dot(p, p)/2 + dot(s, s)/(2*m)\nconstraint first : dot(a, a) = 1\n\
    constraint second : dot(b - a, b - a) = 1\nintegral L = a.x*p.y - a.y*p.x + b.x*s.y - b.y*s.x\n\
    observe bend = dot(a, b - a)^2\nobserve heat = dot(p, p) + dot(s, s)/m";

fn problem(text: &str) -> Problem {
    Problem::from_text(
        "model",
        text,
        &BTreeMap::new(),
        &Settings { seed: 7, ..Settings::default() },
    )
    .unwrap()
}

/// Options of a method at the temperature 1/2 with the friction γ, in steps of length h.
fn bath(method: &str, h: f64, friction: f64) -> RunOptions {
    RunOptions {
        method: method.parse().unwrap(),
        step: StepSize::Fixed(h),
        thermostat: (method != "g-baoab").then_some(Thermostat::Gla),
        friction: Some(friction),
        inverse_temperature: Some(2.0),
        ..RunOptions::default()
    }
}

/// Means of some observables over `count` samples, `every` steps apart.
fn means(text: &str, options: RunOptions, (count, every): (u64, u64), names: &[&str]) -> Vec<f64> {
    let h = options.step.fixed().unwrap();
    let spacing = every as f64 * h;
    let options = RunOptions { until: count as f64 * spacing, every: Some(spacing), ..options };
    let run = prepare(problem(text), options).unwrap().solve().unwrap();
    let mean = |name: &&str| run[name].values()[1..].iter().sum::<f64>() / count as f64;
    names.iter().map(mean).collect()
}

fn within(found: f64, expected: f64, deviation: f64, count: u64, what: &str) {
    let error = deviation / (count as f64).sqrt();
    assert!((found - expected).abs() < 5.0 * error, "{what}: {found}, but {expected} ± {error}");
}

#[test]
fn an_oscillator_has_the_variance_of_its_method() {
    // hω = 3/2, and e^(−γh/m) = e^(−1/2): a state is forgotten after twenty steps.
    let (kt, stiffness, h, count) = (0.5, 3.0, 1.5 / 1.5f64.sqrt(), 40_000);
    let x: f64 = 2.25;
    let linearised = (1.0 + 0.4 * x) / (1.0 - x / (4.0 * (1.0 + 0.4 * x)));
    for (method, square, heat) in [
        ("stormer-verlet-a", 1.0 / (1.0 - x / 4.0), 1.0),
        ("zhang-skeel", linearised, 1.0),
        ("implicit-midpoint", 1.0, 1.0),
        ("gauss4", 1.0, 1.0),
        ("g-baoab", 1.0, 1.0 - x / 4.0),
    ] {
        let found = means(OSCILLATOR, bath(method, h, 1.0 / h), (count, 20), &["square", "heat"]);
        // The square of a normal number has a standard deviation of √2.
        for (found, expected) in found.into_iter().zip([square * kt / stiffness, heat * kt]) {
            within(found, expected, 2f64.sqrt() * expected, count, method);
        }
    }
}

#[test]
fn every_mass_has_its_share() {
    // Masses 1e8 apart, and a full mass matrix that varies: det M⁻¹ = 6 − cos²a gives the
    // distribution of a.
    let apart = "coordinate q : R^2 = (0, 0)\nmomentum p of q\nhamiltonian p.x^2/2e-4 + p.y^2/2e4 + q.x^2/2 + q.y^2/2e8\n\
        observe light = p.x^2*1e4\nobserve heavy = p.y^2/1e4";
    let options = RunOptions { friction: Some(1.0), ..bath("stormer-verlet-b", 0.001, 1.0) };
    let count = 4_000;
    let found = means(apart, options.clone(), (count, 100), &["light"]);
    within(found[0], 0.5, 0.5 * 2f64.sqrt(), count, "the light one");
    // e^(−γh/m) with h = 1e4: the heavy one forgets within a few steps, the light one at once.
    let found = means(
        &apart.replace("q.x^2/2 ", "0*q.x "),
        RunOptions { step: StepSize::Fixed(1e4), ..options },
        (count, 10),
        &["light", "heavy"],
    );
    for found in found {
        within(found, 0.5, 0.5 * 2f64.sqrt(), count, "both");
    }
    let full = "coordinate a = 0.5\ncoordinate b = 1\nmomentum p of a\nmomentum s of b\n\
        hamiltonian (2*p^2 + 2*p*s*cos(a) + 3*s^2)/2 + a^2 + b^2\nobserve heat = 2*p^2 + 2*p*s*cos(a) + 3*s^2\n\
        observe first = a^2\nobserve second = b^2";
    let weight = |a: f64| (-2.0 * a * a).exp() / (6.0 - a.cos().powi(2)).sqrt();
    let grid = || (-4000..4000).map(|i| f64::from(i) / 1000.0);
    let square = grid().map(|a| a * a * weight(a)).sum::<f64>() / grid().map(weight).sum::<f64>();
    let found = means(
        full,
        bath("implicit-midpoint", 0.1, 1.0),
        (count, 100),
        &["heat", "first", "second"],
    );
    for (found, expected) in found.into_iter().zip([1.0, square, 0.25]) {
        within(found, expected, 1.5 * expected, count, "a full mass matrix");
    }
}

#[test]
fn bonds_are_bent_as_rigid_ones_or_as_springs() {
    // The angle between rigid bonds has the density √det A; with Fixman's potential it is uniform.
    let weight = |angle: f64| (30.0 - 25.0 * angle.cos().powi(2)).sqrt();
    let grid = || (0..1000).map(|i| f64::from(i) * std::f64::consts::TAU / 1000.0);
    let rigid =
        grid().map(|a| a.cos().powi(2) * weight(a)).sum::<f64>() / grid().map(weight).sum::<f64>();
    assert!((rigid - 0.4017).abs() < 1e-4);
    let count = 4_000;
    for (method, fixman, bend) in [
        ("rattle", false, rigid),
        ("rattle", true, 0.5),
        ("shake", false, rigid),
        ("g-baoab", false, rigid),
        ("g-baoab", true, 0.5),
        ("suzuki4(rattle)", false, rigid),
    ] {
        // Friction that is strong for the light mass: exact friction followed by a projection would
        // be off.
        let options = RunOptions { fixman: Some(fixman), ..bath(method, 0.03, 5.0) };
        let found = means(BONDS, options, (count, 200), &["bend", "heat"]);
        // A square of a cosine deviates by about √(1/8) at most; two degrees of freedom have kT,
        // and deviate by as much.
        within(found[0], bend, 0.36, count, method);
        within(found[1], 1.0, 1.0, count, method);
    }
}

/// A chain of 150 links, large enough for columns.
#[test]
fn a_large_chain_has_the_heat_of_its_degrees_of_freedom() {
    let chain = "size n = 150\ncoordinate r[i in 1..n] : R^2 = (i - 0.3*sin(i), 0.5*i)\nmomentum p of r\n\
        hamiltonian sum(i in 1..n: dot(p[i], p[i])/2)\n\
        constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = (1 - 0.3*(sin(i) - sin(i-1)))^2 + 0.25\n\
        observe heat = sum(i in 1..n: dot(p[i], p[i]))";
    let count = 200;
    let found = means(chain, bath("rattle", 0.02, 1.0), (count, 150), &["heat"]);
    // 300 − 149 degrees of freedom; the sum of their squares deviates by √(2·151) kT.
    within(found[0], 151.0 * 0.5, 302f64.sqrt() * 0.5, count, "rattle");
}

#[test]
fn without_friction_nothing_is_added() {
    let start = |text: &str| text.replace("momentum p of q", "momentum p of q = 1");
    let run = |options: RunOptions| {
        let options = RunOptions { until: 10.0, ..options };
        let run = prepare(problem(&start(OSCILLATOR)), options).unwrap().solve();
        run.unwrap()["q"].values().to_vec()
    };
    let alone = RunOptions {
        thermostat: None,
        friction: None,
        inverse_temperature: None,
        ..bath("rattle", 0.1, 0.0)
    };
    for method in ["stormer-verlet-b", "zhang-skeel", "gauss4"] {
        let plain = RunOptions { method: method.parse().unwrap(), ..alone.clone() };
        assert_eq!(run(bath(method, 0.1, 0.0)), run(plain), "{method}");
    }
    // Constrained: a pendulum, whose energy g-baoab then keeps to second order.
    let pendulum = "coordinate q : R^2 = (1, 0)\nmomentum p of q\nhamiltonian dot(p, p)/2 + q.y\n\
        constraint rod : dot(q, q) = 1\nobserve energy = dot(p, p)/2 + q.y";
    let error = |h: f64| {
        means(pendulum, bath("g-baoab", h, 0.0), (1, (2.0 / h).round() as u64), &["energy"])[0]
            .abs()
    };
    let ratio = error(0.1) / error(0.05);
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
}

#[test]
fn what_a_bath_changes_is_no_invariant() {
    let mut simulation =
        prepare(problem(BONDS), RunOptions { until: 5.0, ..bath("rattle", 0.02, 2.0) }).unwrap();
    let solution = simulation.solve().unwrap();
    let names: Vec<&str> = solution.summary.drift.iter().map(|drift| drift.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "first", "second"]);
    assert!(
        solution.summary.drift.iter().all(|drift| drift.max < 1e-13),
        "{:?}",
        solution.summary.drift
    );
    // Energy and integrals are recorded.
    let energy = solution["H"].values();
    assert!(
        energy[0] == 0.0
            && energy.last().unwrap() > &0.01
            && solution["L"].values().len() == energy.len()
    );
}

#[test]
fn a_run_that_goes_on_draws_what_it_would_have_drawn() {
    let folder = tempfile::tempdir().unwrap();
    for (k, method) in ["rattle", "g-baoab", "suzuki4(rattle)"].into_iter().enumerate() {
        let ended = |until: f64, out: &str| {
            let out = folder.path().join(format!("{out}-{k}"));
            let options = RunOptions {
                until,
                every: Some(1.0),
                out: Some(out.clone()),
                ..bath(method, 0.02, 2.0)
            };
            let mut simulation = prepare(problem(BONDS), options).unwrap();
            (simulation.run(&mut |_| Control::Continue).unwrap().state.numbers().to_vec(), out)
        };
        let whole = ended(20.0, "whole").0;
        let (half, path) = ended(10.0, "half");
        let mut simulation = Simulation::extend(&path, 20.0).unwrap();
        let gone_on = simulation.run(&mut |_| Control::Continue).unwrap().state.numbers().to_vec();
        assert!(half != whole && gone_on == whole, "{method}: {gone_on:?} {whole:?}");
    }
}

fn refusal(text: &str, options: RunOptions) -> String {
    prepare(problem(text), options).map(drop).unwrap_err().to_string()
}

#[test]
fn what_has_no_place_in_a_bath_is_refused() {
    for (method, says) in [
        ("rk4", "is no map of the phase space"),
        ("corrected:rk4", "returns to the invariants"),
        ("gauss16", "is no map of the phase space"),
        ("rotation-splitting", "in its own frame"),
    ] {
        let found = refusal(OSCILLATOR, bath(method, 0.1, 1.0));
        assert!(found.contains(says) && found.contains("stormer-verlet-b"), "{method}: {found}");
    }
    let good = || bath("stormer-verlet-b", 0.1, 1.0);
    let refused = |options: RunOptions, says: &[&str]| {
        let found = refusal(OSCILLATOR, options);
        assert!(says.iter().all(|says| found.contains(says)), "{found}");
    };
    refused(RunOptions { friction: None, ..good() }, &["needs friction"]);
    refused(RunOptions { friction: Some(-1.0), ..good() }, &["friction must be 0 or more"]);
    refused(RunOptions { inverse_temperature: None, ..good() }, &["needs inverse_temperature"]);
    refused(
        RunOptions { inverse_temperature: Some(0.0), ..good() },
        &["inverse_temperature must be positive"],
    );
    refused(RunOptions { error: true, ..good() }, &["error is for smooth orbits"]);
    refused(
        RunOptions { thermostat: Some(Thermostat::Gla), ..bath("g-baoab", 0.1, 1.0) },
        &["leave thermostat out"],
    );
    for (text, says) in [
        (
            "coordinate q = 0\nmomentum p of q = 1\nhamiltonian sqrt(1 + p^2) + q^2",
            "not quadratic in the momenta",
        ),
        ("state x = 1\nx' = -x", "vector field"),
        (
            "coordinate q = 0\ncoordinate s = 0\nmomentum p of q\nmomentum r of s\nhamiltonian p^2/2 + q*s",
            "r has no positive mass",
        ),
    ] {
        let found = refusal(text, bath("implicit-midpoint", 0.1, 1.0));
        assert!(found.contains(says), "{found}");
    }
    let error: Error =
        prepare(problem(BONDS), bath("stormer-verlet-b", 0.1, 1.0)).map(drop).unwrap_err();
    assert!(error.to_string().contains("use rattle"), "{error}");
}

#[test]
fn fast_vibrations_are_warned_of() {
    let of = |text: &str, h: f64, method: &str| {
        let mut simulation =
            prepare(problem(text), RunOptions { until: 10.0 * h, ..bath(method, h, 1.0) }).unwrap();
        let summary = simulation.solve().unwrap().summary;
        summary.warnings.into_iter().filter(|w| w.contains("h omega")).collect::<Vec<String>>()
    };
    let warnings = |h: f64, method: &str| of(OSCILLATOR, h, method);
    // ω² = 3/2.
    assert!(warnings(0.8, "stormer-verlet-b").is_empty());
    let found = warnings(0.9, "stormer-verlet-b").remove(0);
    assert!(found.contains("h omega = 1.10") && found.contains("1.44 times too large"), "{found}");
    let found = warnings(2.0, "zhang-skeel").remove(0);
    assert!(found.contains("h omega = 2.45") && found.contains("6.08 times too large"), "{found}");
    let unused = RunOptions { friction: Some(1.0), ..RunOptions::default() };
    let simulation = prepare(problem(OSCILLATOR), unused).unwrap();
    assert!(simulation.all_warnings().iter().any(|w| w.contains("friction has no effect")));
    // A rod that hangs still, beside a slow spring: only gravity makes it swing, with ω = 2 by its
    // angle.
    let hanging = "coordinate q : R^2 = (0, -1)\nmomentum p of q\ncoordinate s = 0\nmomentum u of s\n\
                   hamiltonian (dot(p, p) + u^2 + s^2)/2 + 4*q.y\nconstraint rod : dot(q, q) = 1";
    assert!(of(hanging, 0.45, "rattle").is_empty());
    let found = of(hanging, 0.6, "rattle").remove(0);
    assert!(found.contains("h omega = 1.20") && found.contains("1.56 times too large"), "{found}");
}
