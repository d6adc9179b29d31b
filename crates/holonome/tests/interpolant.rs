//! Runs between their samples: every method, its order, constraints, and refusals.

mod common;

use common::*;
use holonome::{Arrays, Control, Interpolant, Problem, RunOptions, Solution, prepare};
use std::path::PathBuf;

/// A run of a model in memory, with every step kept.
fn solve(name: &str, text: &str) -> Solution {
    solve_of(load(&path(name), &[]).unwrap(), text)
}

fn solve_of(problem: Problem, text: &str) -> Solution {
    let name = problem.name.clone();
    let options = RunOptions { interpolant: true, ..options(text) };
    prepare(problem, options)
        .unwrap()
        .solve()
        .unwrap_or_else(|error| panic!("{name} {text}: {error}"))
}

/// File of a model, of those for users or of the test cases.
fn path(name: &str) -> PathBuf {
    let file = |folder: &str| repository().join(folder).join(format!("{name}.holo"));
    if file("models").exists() { file("models") } else { file("suite/models") }
}

fn interpolant(solution: &Solution) -> &Interpolant {
    solution.interpolant.as_ref().expect("it was asked for")
}

/// Times up to 4, of which hardly any is the end of a step.
fn times() -> Vec<f64> {
    (0..157).map(|k| 0.0131 + 0.025 * f64::from(k)).collect()
}

/// Largest distance of two arrays of the same variables.
fn distance(ours: &Arrays, theirs: &Arrays) -> f64 {
    let of = |name: &str| {
        let pairs = ours[name].values().iter().zip(theirs[name].values());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    ours.names().map(of).fold(0.0, f64::max)
}

/// Slope of the least squares through points of two logarithms.
fn slope(points: &[(f64, f64)]) -> f64 {
    let points: Vec<_> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
    let (x, y) = (x / count, y / count);
    let sums = points.iter().map(|p| ((p.0 - x) * (p.1 - y), (p.0 - x).powi(2)));
    let (both, square) = sums.fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
    both / square
}

/// Errors of states and of rates between steps, at four lengths of steps, fall with the order of the
/// method: an interpolant of a lower order would show.
#[test]
fn errors_between_steps_fall_with_the_order() {
    for (name, method, expected, steps) in [
        ("henon-heiles", "plain:dop853", 8, 6),
        ("kepler", "plain:dopri5", 5, 72),
        ("kepler", "plain:bs3", 3, 288),
        ("kepler", "plain:rk4", 4, 96),
        ("kepler", "corrected:rk4", 4, 96),
        ("henon-heiles", "plain:taylor", 16, 3),
        ("henon-heiles", "stormer-verlet-a", 2, 48),
        ("henon-heiles", "suzuki4(stormer-verlet-a)", 4, 24),
        ("henon-heiles", "yoshida6(stormer-verlet-a)", 6, 24),
        ("henon-heiles", "kahan-li8(stormer-verlet-a)", 8, 12),
        ("henon-heiles", "gauss2", 2, 48),
        ("henon-heiles", "gauss4", 4, 24),
        ("henon-heiles", "gauss6", 6, 12),
        ("henon-heiles", "gauss8", 8, 6),
        ("kepler", "gauss16", 16, 3),
        ("spherical-pendulum", "rattle", 2, 96),
        ("spherical-pendulum", "suzuki4(rattle)", 4, 48),
        ("spherical-pendulum", "yoshida6(rattle)", 6, 48),
        ("spherical-pendulum", "corrected:dopri5", 5, 48),
        ("spherical-pendulum", "projection:rk4", 4, 48),
        ("spherical-pendulum", "symmetric-projection:gauss4", 4, 24),
        ("spherical-pendulum", "symmetric-projection:gauss6", 6, 12),
        ("spin-chain", "poisson-splitting", 2, 48),
        ("spin-chain", "suzuki4(poisson-splitting)", 4, 24),
        ("rigid-body", "rotation-splitting", 2, 48),
        ("knife-edge-on-a-slope", "nonholonomic-leapfrog", 2, 48),
        ("knife-edge-on-a-slope", "suzuki4(nonholonomic-leapfrog)", 4, 24),
    ] {
        let exact = solve(name, "--method corrected:dop853 --rtol 1e-13 --until 4 --samples 2");
        let times = times();
        let truth = interpolant(&exact);
        let (states, rates) = (truth.at(&times).unwrap(), truth.rates(&times).unwrap());
        let mut errors = [Vec::new(), Vec::new()];
        let counts = match expected {
            // Shorter steps would soon come to the error of the reference, some 1e-13.
            16 => [6, 7, 8, 9].map(|sixths| f64::from(steps * sixths) / 6.0),
            _ => [3, 4, 6, 8].map(|thirds| f64::from(steps * thirds) / 3.0),
        };
        for count in counts {
            let h = 4.0 / count;
            let run = solve(name, &format!("--method {method} --step {h} --until 4 --samples 2"));
            let ours = interpolant(&run);
            assert_eq!(ours.order(), expected, "{method}");
            errors[0].push((h, distance(&ours.at(&times).unwrap(), &states)));
            errors[1].push((h, distance(&ours.rates(&times).unwrap(), &rates)));
        }
        let orders = errors.each_ref().map(|points| slope(points));
        // Powers of h beyond add some tenths, and more where steps of order 16 are long.
        let expected = f64::from(expected);
        let more = if expected < 16.0 { 0.3 } else { 2.0 };
        let known = |order: &f64| (expected - 0.3..expected + more).contains(order);
        assert!(orders.iter().all(known), "{name} {method}: orders {orders:.2?}, {errors:?}");
    }
}

#[test]
fn adaptive_steps_are_interpolated_as_well_as_they_are_made() {
    for method in [
        "corrected:dop853",
        "plain:dop853",
        "plain:tsit5",
        "corrected:bs3",
        "plain:taylor",
        "corrected:taylor",
    ] {
        let exact = solve(
            "spherical-pendulum",
            "--method corrected:dop853 --rtol 1e-13 --until 20 --samples 2",
        );
        let run = solve(
            "spherical-pendulum",
            &format!("--method {method} --rtol 1e-7 --until 20 --samples 21"),
        );
        let times: Vec<f64> = (0..1000).map(|k| 0.02 * f64::from(k)).collect();
        let (between, theirs) = (run.at(&times).unwrap(), exact.at(&times).unwrap());
        let pairs = between["q"].values().iter().zip(theirs["q"].values());
        let error = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 2e-5, "{method}: {error}");
        // Samples are the same states, for any steps of the run.
        let (at_samples, samples) = (run.at(run.times()).unwrap(), &run["q"]);
        let apart =
            at_samples["q"].values().iter().zip(samples.values()).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-8, "{method}");
        if method.starts_with("corrected") {
            let off =
                between["q"].rows().map(|q| (q.iter().map(|q| q * q).sum::<f64>() - 1.0).abs());
            assert!(off.fold(0.0, f64::max) < 1e-14, "{method} leaves the constraint");
        }
    }
}

/// Steps and samples of a run are the same with and without, bit for bit; ends and steps are met
/// exactly.
#[test]
fn a_run_is_the_same_with_an_interpolant() {
    for (name, text) in [
        ("spherical-pendulum", "--method corrected:dop853 --until 10 --samples 41"),
        ("spherical-pendulum", "--method rattle --step 0.01 --until 5.005 --samples 2"),
        ("kepler", "--method plain:dop853 --step 0.05 --until 5 --samples 101"),
        (
            "spherical-pendulum",
            "--method symmetric-projection:gauss4 --step 0.05 --until 5 --samples 101",
        ),
        ("chain", "--method rattle --step 0.001 --until 0.05 --samples 6"),
        ("rigid-body", "--method rotation-splitting --step 0.01 --until 1 --samples 11"),
        ("heavy-top", "--method cayley-symmetric --step 0.01 --until 1 --samples 11"),
    ] {
        let alone = prepare(model(name, &[]), options(text)).unwrap().solve().unwrap();
        let run = solve(name, text);
        assert_eq!(alone.arrays, run.arrays, "{name} {text}");
        let (from, to) = interpolant(&run).span();
        assert_eq!((Some(&from), Some(&to)), (run.times().first(), run.times().last()));
        let ends = run.at(&[from, to]).unwrap();
        for variable in ends.names() {
            let (first, last) = (ends[variable].row(0), ends[variable].row(1));
            let samples = &run[variable];
            assert_eq!(first, samples.row(0), "{name} {text}");
            let apart = last.iter().zip(samples.last()).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-14, "{name} {text}");
        }
    }
}

#[test]
fn what_cannot_be_told_is_refused() {
    let run = solve("kepler", "--method plain:rk4 --step 0.1 --until 1");
    for t in [-0.1, 1.1, f64::NAN] {
        let error = run.at(&[t]).unwrap_err().to_string();
        assert!(error.contains("outside of the run, which goes from 0 to 1"), "{error}");
    }
    assert_eq!(run.at(&[]).unwrap()["x"].shape(), [0, 3]);
    let without = prepare(model("kepler", &[]), options("--method rk4 --step 0.1 --until 1"))
        .unwrap()
        .solve()
        .unwrap();
    assert!(without.at(&[0.5]).unwrap_err().to_string().contains("interpolant"));
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path().join("run"));
    let stored =
        RunOptions { interpolant: true, out, ..options("--method rk4 --step 0.1 --until 1") };
    let error =
        prepare(model("kepler", &[]), stored).unwrap().run(&mut |_| Control::Continue).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
    let record = Some(vec!["H".to_string()]);
    let blind =
        RunOptions { interpolant: true, record, ..options("--method rk4 --step 0.1 --until 1") };
    let error = prepare(model("kepler", &[]), blind).unwrap().solve().unwrap_err();
    assert!(error.to_string().contains("record"), "{error}");
}

/// Steps of methods that hold constraints themselves, and of a treatment around the step: the
/// polynomial through their states alone misses the constraints by the error of a step.
#[test]
fn states_between_steps_meet_what_samples_meet() {
    for (method, hidden) in [
        ("rattle", true),
        ("shake", false),
        ("suzuki4(rattle)", true),
        ("symmetric-projection:gauss4", true),
        ("corrected:rk4", true),
    ] {
        let text = format!("--method {method} --step 0.1 --until 4 --samples 2");
        let run = solve("spherical-pendulum", &text);
        let found = run.at(&times()).unwrap();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let pairs = found["q"].rows().zip(found["p"].rows());
        let off = pairs.map(|(q, p)| [(dot(q, q) - 1.0).abs(), dot(q, p).abs()]);
        let off = off.fold([0.0f64; 2], |[a, b], [c, d]| [a.max(c), b.max(d)]);
        // Newton's iteration for the constraints of a step ends at about 1e-13.
        assert!(off[0] < 1e-12, "{method} leaves the constraint by {}", off[0]);
        assert_eq!(off[1] < 1e-12, hidden, "{method} misses the hidden constraint by {}", off[1]);
    }
}

/// A ball that loses half of its speed at the ground: states before an impact are those of its own
/// energy, and the polynomial of the step after it begins at the speed that it sets.
#[test]
fn an_event_that_sets_the_state_parts_the_polynomials() {
    let text = "coordinate y : R = 0.3\nmomentum p of y = 0\nhamiltonian p^2/2 + y\n\
                event ground : y = 0 falling : p -> -p/2";
    for method in ["corrected:rk4", "corrected:dop853", "stormer-verlet-a", "gauss6"] {
        let text = text.parse::<Problem>().unwrap();
        let run = solve_of(text, &format!("--method {method} --step 0.07 --until 1.5 --samples 2"));
        // It falls for √0.6, and flies for as long again.
        let fall = 0.6f64.sqrt();
        let exact = |t: f64| match t - fall {
            after if after < 0.0 => (0.3 - t * t / 2.0, -t),
            after => (fall / 2.0 * after - after * after / 2.0, fall / 2.0 - after),
        };
        let times: Vec<f64> = (0..1500).map(|k| 0.001 * f64::from(k)).collect();
        let found = run.at(&times).unwrap();
        for (k, &t) in times.iter().enumerate() {
            let (y, p) = exact(t);
            let off = (found["y"].values()[k] - y).abs().max((found["p"].values()[k] - p).abs());
            // Methods of order 2 and more solve a constant force exactly.
            assert!(off < 1e-11, "{method}: {off} at t = {t}");
        }
    }
}
