//! Warnings of all commands: on stderr for people, as `warnings` for programs, from every command
//! that knows of them.

mod common;

use common::{Answer, Folder, number, repository};
use serde_json::Value;

/// Warnings of a command's JSON object.
fn warnings(answer: &Answer) -> Vec<String> {
    serde_json::from_value(answer.json()["warnings"].clone()).unwrap()
}

fn mentions(list: &[String], words: &str) -> bool {
    list.iter().any(|warning| warning.contains(words))
}

/// A rigid molecule's angles are fixed, a chain's are not; a single rod has one length.
#[test]
fn check_says_whether_rods_are_what_stiff_springs_come_to() {
    let folder = Folder::new();
    for (model, varies) in [
        ("water", Some(false)),
        ("spherical-pendulum", Some(false)),
        ("double-pendulum", Some(true)),
        ("chain", Some(true)),
        ("kepler", None),
        ("two-springs", Some(false)),
    ] {
        let answer = folder.summary(&format!("check models/{model}.holo"));
        assert_eq!(answer["determinant_varies"], serde_json::json!(varies), "{model}");
        let text = folder.run(&format!("check models/{model}.holo --verbose")).ok().stdout;
        assert_eq!(text.contains("det G M^-1 G^T varies"), varies == Some(true), "{text}");
        assert_eq!(text.contains("det G M^-1 G^T is constant"), varies == Some(false), "{text}");
    }
}

#[test]
fn a_constraint_on_momenta_is_not_rolling() {
    let folder = Folder::new();
    let model = repository().join("suite/models/hopf-oscillator.holo");
    folder.write("hopf.holo", std::fs::read(model).unwrap());
    let steps = "--method rattle --step 0.1 --until 1";
    for command in [
        format!("run hopf.holo {steps}"),
        format!("compare hopf.holo {steps}"),
        format!("sweep hopf.holo {steps} --trajectories 2"),
        "check hopf.holo".to_string(),
    ] {
        let answer = folder.run(&format!("{command} --json")).ok();
        assert!(mentions(&warnings(&answer), "not as rolling"), "{command}: {answer:?}");
        assert_eq!(answer.stderr.matches("not as rolling").count(), 1, "{command}: {answer:?}");
        let quiet = folder.run(&format!("{command} --json --quiet")).ok();
        assert!(
            quiet.stderr.is_empty() && mentions(&warnings(&quiet), "not as rolling"),
            "{command}"
        );
    }
    // The stored run has the warning, too.
    assert!(mentions(&warnings(&folder.run("resume runs/hopf-1 --json").ok()), "not as rolling"));
    // The error that suggests moving the start onto such a set has it as well.
    let off = folder.run("run hopf.holo --set p=(2,0) --method rattle --step 0.1");
    let off = off.refused(&["--project-initial"]);
    assert!(off.stderr.contains("not as rolling"), "{off:?}");
    // A constraint on positions causes no warning.
    assert!(warnings(&folder.pendulum("--until 1 --json").ok()).is_empty());
}

#[test]
fn a_start_that_is_moved_far_is_told() {
    let folder = Folder::new();
    let moved = |q: &str| {
        let answer =
            folder.pendulum(&format!("--set q={q} --project-initial --until 0.1 --json")).ok();
        warnings(&answer)
    };
    // Off by half the length; by a hundredth.
    assert!(
        mentions(&moved("(0,1.5,0)"), "--project-initial moved 'q' by 5.0"),
        "{:?}",
        moved("(0,1.5,0)")
    );
    assert!(moved("(0,1.01,0)").is_empty());
    // In a sweep the trajectories that are moved far are counted.
    let sweep = "sweep models/spherical-pendulum.holo --trajectories 10 --vary q=(0,1+i/10,0) --project-initial";
    let swept = warnings(&folder.run(&format!("{sweep} --until 0.1 --json")).ok());
    // From 1 + i/10 to 1: more than a tenth of 1 + i/10 from i = 2 on.
    assert!(mentions(&swept, "--project-initial: 8 trajectories"), "{swept:?}");
    // In units in which the rod is a millionth of the unit the start is as far off.
    let small = "--set l=1e-6 --set p=(1e-6,0,-1e-6) --set q=(0,1.5e-6,0) --project-initial --until 0.1 --json";
    assert!(mentions(&warnings(&folder.pendulum(small).ok()), "moved 'q' by 5.0"));
}

#[test]
fn a_sweep_says_how_many_reached_the_end() {
    let folder = Folder::new();
    // x = 1/(1/x₀ − t) is infinite at t = 1/x₀: before 1 if x₀ > 1.
    folder.write("blow.holo", "state x = 1\nstate y = 1\nx' = x^2\ny' = 0\nintegral Y = y\n");
    let sweep = |vary: &str, more: &str| {
        folder.run(&format!(
            "sweep blow.holo --trajectories 4 --vary x={vary} --until 1 --json {more}"
        ))
    };
    for more in ["", "--method rk4 --step 0.001"] {
        let some = sweep("0.3+0.5*i", more); // 0.3, 0.8, 1.3, 1.8
        assert_eq!(some.code, Some(1), "{some:?}");
        let object = some.json();
        assert_eq!((number(&object, "/failed"), number(&object, "/trajectories")), (2.0, 4.0));
        assert!(mentions(&warnings(&some), "2 of 4 trajectories reached t = 1"), "{object}");
        assert!(some.shown().contains("2 of 4 reached t = 1, 2 failed"), "{some:?}");
        assert_eq!(number(&object, "/drift/integrals/Y/max"), 0.0);
        let none = sweep("2+i", more);
        assert_eq!(none.code, Some(1));
        assert!(none.json()["drift"].is_null() && none.shown().contains("no drifts"), "{none:?}");
        let all = sweep("0.1+0.1*i", more).ok();
        assert!(warnings(&all).is_empty() && number(&all.json(), "/failed") == 0.0);
    }
    // Parts of a sweep, joined, say the same.
    for k in 1..=2 {
        sweep("0.3+0.5*i", &format!("--shard {k}/2 --out part-{k}"));
    }
    let merged = folder.run("merge whole part-1 part-2 --json");
    assert_eq!(merged.code, Some(1), "{merged:?}");
    assert!(mentions(&warnings(&merged), "2 of 4 trajectories reached"), "{merged:?}");
}

#[test]
fn an_energy_that_drifts_by_its_own_size_is_no_result() {
    let folder = Folder::new();
    let kepler = |options: &str| {
        warnings(&folder.run(&format!("run models/kepler.holo {options} --json")).ok())
    };
    assert!(mentions(&kepler("--method plain:euler --step 0.1 --until 6"), "the energy drifts"));
    assert!(kepler("--method plain:rk4 --step 0.01 --until 6").is_empty());
    let sweep = "sweep models/kepler.holo --trajectories 3 --method plain:euler --step 0.5 --until 20 --json";
    assert!(mentions(
        &warnings(&folder.run(sweep).ok()),
        "in the worst trajectory, the energy drifts"
    ));
    // From rest at the bottom the energy is 0, and a drift of rounding does not count as one of its
    // own size.
    let rest = "run models/planar-pendulum.holo --set q=(0,-1) --set p=(1e-3,0) --method plain:rk4 --step 0.01 --json";
    assert!(warnings(&folder.run(rest).ok()).is_empty());
    // Euler's method leaves the sphere.
    let sphere =
        warnings(&folder.pendulum("--method plain:euler --step 0.1 --until 20 --json").ok());
    assert!(mentions(&sphere, "constraint 'rod' is violated"), "{sphere:?}");
}

#[test]
fn tolerances_that_say_nothing() {
    let folder = Folder::new();
    let run = |options: &str| {
        warnings(&folder.run(&format!("run models/kepler.holo --until 1 {options} --json")).ok())
    };
    assert!(mentions(&run("--rtol 1e-17"), "below what rounding allows"));
    assert!(run("--rtol 1e-13").is_empty());
    assert!(mentions(&run("--rtol 1"), "may be another one"));
    assert!(run("--rtol 0.1").is_empty());
    assert!(mentions(&run("--method rk4 --step 0.1 --rtol 1e-17"), "has no effect"));
    let sweep =
        folder.run("sweep models/kepler.holo --until 1 --rtol 1e-17 --trajectories 2 --json").ok();
    assert!(mentions(&warnings(&sweep), "below what rounding allows"));
}

#[test]
fn a_tolerance_means_the_same_in_run_and_compare() {
    let folder = Folder::new();
    for tolerances in ["--rtol 1e-5", "--rtol 1e-5 --atol 1e-7"] {
        let run = folder.summary(&format!("run models/kepler.holo --until 20 {tolerances}"));
        let method = "--method corrected:dop853";
        let compared =
            folder.summary(&format!("compare models/kepler.holo {method} --until 20 {tolerances}"));
        assert_eq!(run["steps"], compared["rows"][0]["steps"], "{tolerances}");
        assert_eq!(run["drift"], compared["rows"][0]["drift"], "{tolerances}");
    }
}

#[test]
fn the_largest_drift_is_that_of_every_sample() {
    let folder = Folder::new();
    // Dense output of a loose run without correction is less accurate than its steps; the energy is
    // stored at every sample.
    let summary = folder.summary(
        "run models/kepler.holo --method plain:tsit5 --rtol 1e-4 --until 70.25 --samples 1001",
    );
    let (names, rows) = folder.samples("runs/kepler-1");
    let column = names.iter().position(|name| name == "H").unwrap();
    let largest = rows.iter().map(|row| (row[column] - rows[0][column]).abs()).fold(0.0, f64::max);
    let few = folder.summary(
        "run models/kepler.holo --method plain:tsit5 --rtol 1e-4 --until 70.25 --samples 2",
    );
    let (many, few) =
        (number(&summary, "/drift/hamiltonian/max"), number(&few, "/drift/hamiltonian/max"));
    assert!(many >= largest && largest > few, "{many:e} {largest:e} {few:e}");
}

#[test]
fn relative_drifts_have_a_size_where_the_ends_have_none() {
    let folder = Folder::new();
    // Each starts at rest at the height of its pivot, where all terms vanish, and a sweep keeps the
    // ends only.
    for steps in
        ["--rtol 1e-9", "--method rk4 --step 0.01", "--method corrected:rk4 --step 0.01 --every 5"]
    {
        let sweep = "sweep models/planar-pendulum.holo --trajectories 40 --vary g=1+i/N --until 10";
        let drift = folder.summary(&format!("{sweep} {steps}"))["drift"].clone();
        for path in ["/hamiltonian", "/constraints/rod", "/hidden/rod"] {
            let (max, relative) = (
                number(&drift, &format!("{path}/max")),
                number(&drift, &format!("{path}/relative/max")),
            );
            // Terms are of order one: m g l, 2 l^2, and 2 q.p, somewhere along the way. Measured
            // after 1, 2, 4, ... steps, they may be seen at a quarter of their largest size.
            assert!(
                relative < 10.0 * max && relative > max / 100.0,
                "{steps}: {path}: {max:e} {relative:e}"
            );
        }
    }
}

#[test]
fn errors_carry_what_was_warned_of_before() {
    let folder = Folder::new();
    folder.write("blow.holo", "state x = 1\nx' = x^2\n");
    let failed = folder.run("run blow.holo --method rk4 --step 0.01 --until 2 --rtol 1e-3 --json");
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(mentions(&warnings(&failed), "--rtol or --atol has no effect"), "{failed:?}");
    let object: Value = failed.json();
    assert!(object["error"]["t"].is_number());
}
