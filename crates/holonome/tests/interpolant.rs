//! Runs between their samples: every method, its order, constraints, and refusals.

mod common;

use common::*;
use holonome::{Control, Interpolant, RunOptions, Solution, prepare};

/// A run of a model in memory, with every step kept.
fn solve(name: &str, text: &str) -> Solution {
    let options = RunOptions { interpolant: true, ..options(text) };
    prepare(model(name, &[]), options)
        .unwrap()
        .solve()
        .unwrap_or_else(|error| panic!("{name} {text}: {error}"))
}

fn interpolant(solution: &Solution) -> &Interpolant {
    solution.interpolant.as_ref().expect("it was asked for")
}

/// Largest distance from a run with far shorter steps, at times that are not ends of steps.
fn error(name: &str, method: &str, h: f64, exact: &Solution) -> f64 {
    let run = solve(name, &format!("--method {method} --step {h} --until 4 --samples 2"));
    let times: Vec<f64> = (0..157).map(|k| 0.0131 + 0.025 * f64::from(k)).collect();
    let (ours, theirs) = (run.at(&times).unwrap(), exact.at(&times).unwrap());
    let distance = |name: &str| {
        let pairs = ours[name].values().iter().zip(theirs[name].values());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    ours.names().map(distance).fold(0.0, f64::max)
}

#[test]
fn errors_between_steps_fall_with_the_order() {
    for (name, method, expected) in [
        ("kepler", "plain:dop853", 8),
        ("kepler", "plain:dopri5", 5),
        ("kepler", "plain:bs3", 3),
        ("kepler", "plain:rk4", 4),
        ("kepler", "corrected:rk4", 4),
        ("kepler", "stormer-verlet-a", 2),
        ("kepler", "gauss6", 4),
        ("spherical-pendulum", "rattle", 2),
        ("spherical-pendulum", "suzuki4(rattle)", 4),
        ("spherical-pendulum", "corrected:dopri5", 5),
        ("spherical-pendulum", "projection:rk4", 4),
    ] {
        let exact = solve(name, "--method corrected:dop853 --rtol 1e-13 --until 4 --samples 2");
        let h = if expected == 8 { 0.125 } else { 0.0625 };
        let (coarse, fine) = (error(name, method, h, &exact), error(name, method, h / 2.0, &exact));
        let order = (coarse / fine).log2();
        let run = solve(name, &format!("--method {method} --step 0.125 --until 1 --samples 2"));
        assert_eq!(interpolant(&run).order(), expected, "{method}");
        assert!(
            (order - f64::from(expected)).abs() < 0.6 || fine < 1e-11,
            "{name} {method}: order {order}"
        );
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
