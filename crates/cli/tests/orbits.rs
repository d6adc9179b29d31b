//! `run --error`: the orbit's error as measured by a second run.

mod common;

use common::{Folder, keys, number};
use serde_json::Value;

/// Model x'' = −x from (1, 0): the exact state is (cos t, −sin t).
const OSCILLATOR: &str = "coordinate x = 1\nmomentum v of x = 0\nhamiltonian v^2/2 + x^2/2\n";

fn exact_error(summary: &Value) -> [f64; 2] {
    let t = number(summary, "/t");
    [number(summary, "/state/x") - t.cos(), number(summary, "/state/v") + t.sin()].map(f64::abs)
}

#[test]
fn the_error_is_that_of_the_exact_solution() {
    let folder = Folder::new();
    folder.write("oscillator.holo", OSCILLATOR);
    for (options, off) in [
        // The second run's own error is a few hundredths of the first one's, or, with fixed steps,
        // of the next order.
        ("--method plain:tsit5 --rtol 1e-6", 0.2),
        ("--method corrected:dop853 --rtol 1e-6", 0.2),
        ("--method plain:rk4 --step 0.1", 0.05),
        ("--method plain:euler --step 1/1000", 0.05),
        ("--method stormer-verlet-a --step 0.05 --until 10.02", 0.05),
    ] {
        let until = if options.contains("--until") { "" } else { "--until 10" };
        let summary = folder.summary(&format!("run oscillator.holo {until} {options} --error"));
        let error = &summary["orbit_error"];
        assert_eq!(keys(&error["families"]), ["x", "v"]);
        for (name, exact) in ["x", "v"].iter().zip(exact_error(&summary)) {
            let measured = number(error, &format!("/families/{name}/final"));
            assert!(
                (measured / exact - 1.0).abs() < off,
                "{options}: {name}: {measured:e}, exactly {exact:e}"
            );
            assert!(number(error, &format!("/families/{name}/max")) >= measured);
        }
        assert!(error["separated"].is_null(), "{options}: {error}");
    }
    // Without `--error` a line says what is missing.
    let plain = folder.run("run oscillator.holo --until 1").ok();
    assert!(plain.stdout.contains("drift is not error: --error"), "{plain:?}");
    let asked = folder.run("run oscillator.holo --until 1 --error").ok();
    assert!(
        !asked.stdout.contains("drift is not error") && asked.stdout.contains("by a second run"),
        "{asked:?}"
    );
}

#[test]
fn orbits_that_separate_are_told() {
    let folder = Folder::new();
    // From this height the double pendulum turns over, and neighbours part by a factor of ten every
    // few units of time.
    let run = "run models/double-pendulum.holo --set r1=(0,1) --set r2=(0.01,1+sqrt(2-0.0001)) --until 300";
    let summary = folder.summary(&format!("{run} --project-initial --rtol 1e-6 --error"));
    let separated = number(&summary, "/orbit_error/separated");
    assert!(separated > 1.0 && separated < 300.0, "{summary}");
    assert!(number(&summary, "/orbit_error/families/r2/relative") > 0.1);
    // There is no error without the option; a sweep has none.
    assert!(folder.summary("run models/kepler.holo --until 1").get("orbit_error").is_none());
    for option in ["--error", "--report", "--open"] {
        folder
            .run(&format!("sweep models/kepler.holo --until 1 --trajectories 2 {option}"))
            .refused(&[option]);
    }
}

#[test]
fn large_penalised_and_ensemble_models_have_errors_too() {
    let folder = Folder::new();
    for run in [
        // Of rows; with a penalty; a field; with feedback.
        "models/chain.holo --set n=400 --until 0.2 --rtol 1e-6",
        "models/double-pendulum.holo --method zhang-skeel --penalty auto --step 0.02 --until 1",
        "models/rigid-body.holo --method projection:rk4 --step 0.05 --until 2",
        "models/spherical-pendulum.holo --method feedback:rk4 --step 0.02 --until 2",
    ] {
        let summary = folder.summary(&format!("run {run} --error"));
        let families = summary["orbit_error"]["families"].as_object().unwrap();
        for (name, family) in families {
            let relative = number(family, "/relative");
            assert!(relative > 0.0 && relative < 0.1, "{run}: {name}: {family}");
        }
        // A resumed run that is finished reports it again.
        let again = folder
            .run(&format!("resume {} --json --quiet", summary["out"].as_str().unwrap()))
            .ok()
            .json();
        assert_eq!(again["orbit_error"], summary["orbit_error"]);
    }
}
