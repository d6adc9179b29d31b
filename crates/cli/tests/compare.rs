//! Behaviour of `compare`: its tables, its JSON object, its folder, and its messages on bad input.

mod common;

use common::{Answer, Folder, keys, number};
use serde_json::Value;
use std::fs;

const KEYS: [&str; 8] = ["model", "t", "reference", "rows", "warnings", "source", "command", "out"];
const REFERENCE: [&str; 7] =
    ["method", "rtol", "checked_by", "checked_at", "error", "good_until", "reason"];
const ROW: [&str; 11] = [
    "method", "step", "rtol", "atol", "budget", "steps", "error", "order", "drift", "trend", "cost",
];
const COST: [&str; 8] = [
    "field",
    "gradient",
    "hessian",
    "linear_solves",
    "newton_iterations",
    "rejected",
    "budget",
    "wall_seconds",
];

fn compare(folder: &Folder, options: &str) -> Answer {
    folder.run(&format!("compare models/spherical-pendulum.holo {options}"))
}

#[test]
fn the_object_and_the_tables() {
    let folder = Folder::new();
    let answer = compare(
        &folder,
        "--method rk4 --method corrected:dop853 --step 0.1,0.05 --rtol 1e-6 --until 2 --json",
    );
    let answer = answer.ok();
    let object = answer.json();
    assert_eq!(keys(&object), KEYS);
    assert_eq!(keys(&object["reference"]), REFERENCE);
    assert_eq!(object["out"], "runs/spherical-pendulum-compare-1");
    let rows = object["rows"].as_array().unwrap();
    let runs: Vec<_> = rows
        .iter()
        .map(|r| (r["method"].as_str().unwrap(), r["step"].as_f64(), r["rtol"].as_f64()))
        .collect();
    let expected = [
        ("rk4", Some(0.1), None),
        ("rk4", Some(0.05), None),
        ("corrected:dop853", None, Some(1e-6)),
    ];
    assert_eq!(runs, expected);
    for row in rows {
        assert_eq!(keys(row), ROW);
        assert_eq!(keys(&row["error"]), ["t", "final", "final_at_most", "max", "max_at_most"]);
        assert_eq!(keys(&row["drift"]), ["hamiltonian", "constraints", "hidden", "integrals"]);
        assert_eq!(keys(&row["trend"]), ["rod", "rod.hidden", "H", "J"]);
        assert_eq!(keys(&row["trend"]["H"]), ["slope", "growth", "oscillation", "secular"]);
        assert_eq!(keys(&row["cost"]), COST);
        let solves = number(row, "/cost/linear_solves");
        assert_eq!(number(row, "/cost/budget"), 4.0 * (number(row, "/cost/field") + solves));
    }
    assert!(
        rows[0]["order"].is_null()
            && number(&rows[1], "/order") > 3.0
            && rows[2]["order"].is_null()
    );
    assert!(rows[2]["atol"] == 0.0, "no absolute tolerance but where one is asked for");
    // A row and `run` report the same on a run.
    let same =
        folder.summary("run models/spherical-pendulum.holo --method rk4 --step 0.1 --until 2");
    assert_eq!(
        (&rows[0]["drift"], &rows[0]["steps"], &rows[0]["cost"]["field"]),
        (&same["drift"], &same["steps"], &same["cost"]["field"])
    );
    // People see the same on the other stream.
    for text in [
        "reference: corrected:dop853 at 1e-15",
        "error at T",
        "h = 0.05",
        "tol 1e-6",
        "largest drift",
        "stored in runs/",
    ] {
        assert!(answer.shown().contains(text), "no {text} in {}", answer.shown());
    }
    // The folder holds the same object, the table and the figure, and nothing else.
    let out = folder.path("runs/spherical-pendulum-compare-1");
    let mut files: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["compare.csv", "compare.json", "work-precision.svg"]);
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(out.join("compare.json")).unwrap()).unwrap();
    assert_eq!(stored, object);
    assert_eq!(
        fs::read_to_string(out.join("compare.csv")).unwrap().lines().count(),
        1 + rows.len()
    );
}

#[test]
fn streams_folders_and_lists() {
    let folder = Folder::new();
    let silent =
        compare(&folder, "--method heun,rk4 --step 0.1 --until 1 --quiet --out results/a").ok();
    assert!(silent.stdout.is_empty() && silent.stderr.is_empty(), "{silent:?}");
    assert!(folder.path("results/a/compare.csv").exists());
    compare(&folder, "--method rk4 --step 0.1 --until 1 --out results/a")
        .refused(&["results/a", "not empty"]);
    let object =
        compare(&folder, "--method rk4 --step 0.1 --until 1 --set g=2 --json --quiet").ok().json();
    assert_eq!(
        object["out"], "runs/spherical-pendulum-compare-1",
        "refused comparisons leave no folder"
    );
    assert_eq!(object["rows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn tolerances_steps_and_budgets_go_to_who_can_use_them() {
    let folder = Folder::new();
    let rows = |options: &str| {
        let object = compare(&folder, &format!("{options} --until 1 --json --quiet")).ok().json();
        let row = |r: &Value| (r["step"].as_f64(), r["rtol"].as_f64(), r["atol"].as_f64());
        object["rows"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let (fixed, adaptive) =
        (|h| (Some(h), None, None), |rtol, atol| (None, Some(rtol), Some(atol)));
    assert_eq!(rows("--method tsit5"), [adaptive(1e-9, 0.0)], "the default of a run");
    assert_eq!(rows("--method tsit5 --step 0.1,0.05"), [fixed(0.1), fixed(0.05)]);
    assert_eq!(
        rows("--method tsit5 --rtol 1e-4,1e-6 --atol 1e-8"),
        [adaptive(1e-4, 1e-8), adaptive(1e-6, 1e-8)]
    );
    assert_eq!(
        rows("--method tsit5 --rtol 1e-4,1e-6 --atol 1e-5,1e-8"),
        [adaptive(1e-4, 1e-5), adaptive(1e-6, 1e-8)]
    );
    assert_eq!(
        rows("--method tsit5 --atol 1e-5,1e-8"),
        [adaptive(1e-9, 1e-5), adaptive(1e-9, 1e-8)]
    );
    // Some treatments need equal steps, whatever the base could do.
    let both = rows("--method tsit5,symmetric-projection:tsit5 --rtol 1e-4 --step 0.1");
    assert_eq!(both, [adaptive(1e-4, 0.0), fixed(0.1)]);
    // 800 pay for 50 steps of rk4.
    assert_eq!(rows("--method rk4 --budget 800"), [fixed(1.0 / 50.0)]);
}

#[test]
fn options_that_nobody_uses_are_warnings() {
    let folder = Folder::new();
    let warns = |options: &str, option: &str| {
        let answer = compare(&folder, &format!("{options} --until 1")).ok();
        let warning = format!("warning: {option} has no effect");
        assert_eq!(answer.stderr.matches(&warning).count(), 1, "{answer:?}");
    };
    warns("--method rk4,corrected:rk4 --step 0.1 --gain 1", "--gain");
    warns("--method rk4,heun --step 0.1 --rtol 1e-6", "--rtol or --atol");
    warns("--method tsit5 --step 0.1 --rtol 1e-6", "--step");
    // An option that one method uses causes no warning for the others.
    let answer = compare(&folder, "--method rk4,feedback:rk4 --step 0.1 --gain 1 --until 1").ok();
    assert!(!answer.stderr.contains("warning"), "{answer:?}");
}

#[test]
fn bad_input_is_refused_with_its_name() {
    let folder = Folder::new();
    let bad = |options: &str, fragments: &[&str]| {
        drop(compare(&folder, &format!("{options} --quiet")).refused(fragments))
    };
    bad("", &["--method"]);
    bad("--method rk5 --step 0.1", &["rk5", "dopri5"]);
    bad("--method rk4,rk4 --step 0.1", &["--method rk4", "twice"]);
    bad("--method rk4", &["--method rk4", "--step", "--budget"]);
    bad("--method rk4 --rtol 1e-6", &["--method rk4", "--step"]);
    bad("--method tsit5 --rtol 1e-6,1e-7,1e-8 --atol 1e-6,1e-7", &["--atol", "--rtol"]);
    bad("--method rk4 --budget 100 --step 0.1", &["--budget", "--step"]);
    bad("--method rk4 --budget 100 --every 0.1", &["--budget", "--every"]);
    bad("--method rk4 --budget 0", &["--budget"]);
    bad("--method rk4 --budget many", &["--budget"]);
    for value in ["0", "-1", "nan", "inf", "soon"] {
        bad(&format!("--method rk4 --step 0.1,{value}"), &["--step"]);
        bad(&format!("--method tsit5 --rtol 1e-3,{value}"), &["--rtol"]);
        bad(&format!("--method tsit5 --until {value}"), &["--until"]);
    }
    bad("--method tsit5 --atol=-1", &["--atol"]);
    bad("--method rk4 --step 0.1 --every 0.15 --until 3", &["--every"]);
    bad("--method rk4 --step 0.1 --samples 1", &["--samples"]);
    bad("--method feedback:rk4 --step 0.1 --gain much", &["gain"]);
    bad("--method corrected:rk4 --step 0.1 --reference z=1", &["--reference", "'z'"]);
    bad("--method rk4 --step 0.1 --out models/chain.holo", &["models/chain.holo"]);
    bad("--method rk4 --out new/folder", &["--step"]);
    assert!(
        !folder.path("runs").exists() && !folder.path("new").exists(),
        "nothing that was refused left a folder"
    );
}

/// A method may monitor more than another one: its modified energy has a column, which is empty for
/// others.
#[test]
fn modified_energies_stand_beside_others() {
    let folder = Folder::new();
    let methods = "--method velocity-verlet,zhang-skeel,zhang-skeel-stiff --stiff stiff --beta 0.3";
    let answer = folder
        .run(&format!("compare models/fpu-stiff.holo {methods} --step 0.02,0.01 --until 2 --json"))
        .ok();
    let object = answer.json();
    // An option that one of the methods uses is not a mistake.
    assert_eq!(object["warnings"].as_array().unwrap().len(), 0, "{answer:?}");
    for row in object["rows"].as_array().unwrap() {
        let modified = &row["drift"]["modified_energy"]["max"];
        assert_eq!(modified.is_null(), row["method"] == "velocity-verlet", "{row}");
        let h = number(row, "/drift/hamiltonian/max");
        assert!(modified.is_null() || modified.as_f64().unwrap() < 0.5 * h, "{row}");
    }
    let table =
        fs::read_to_string(folder.path(object["out"].as_str().unwrap()).join("compare.csv"))
            .unwrap();
    let lengths: Vec<usize> = table.lines().map(|line| line.split(',').count()).collect();
    assert!(
        table.contains("largest_drift modified_energy") && lengths.windows(2).all(|l| l[0] == l[1]),
        "{table}"
    );
    let shown = answer.shown();
    let shown = shown.lines().find(|line| line.contains("largest drift")).unwrap();
    assert!(shown.trim_end().ends_with("modified_energy"), "{shown}");
}

#[test]
fn failures_are_rows_and_only_if_all_fail_an_error() {
    let folder = Folder::new();
    let some =
        compare(&folder, "--method feedback:rk4 --step 0.1,1e-3 --gain 50 --until 1 --json").ok();
    let object = some.json();
    assert_eq!(keys(&object["rows"][0]), ["method", "step", "rtol", "atol", "budget", "failure"]);
    assert_eq!(keys(&object["rows"][0]["failure"]), ["kind", "message", "t"]);
    assert!(some.shown().contains("failed: feedback:rk4 at h = 0.1: the gains"), "{some:?}");
    folder.write("blow.holo", "state x = 1\nx' = x^2\n");
    let none = folder.run("compare blow.holo --method rk4 --step 0.01 --until 2 --json");
    assert_eq!(none.code, Some(1), "{none:?}");
    assert_eq!(none.json()["rows"][0]["failure"]["kind"], "non-finite");
}

#[test]
fn penalised_runs_are_extrapolated() {
    let folder = Folder::new();
    let command = "compare models/double-pendulum.holo --method rattle,dop853 --step 0.01 --rtol 1e-12 --penalty 20,";
    // One strength for all.
    folder.run(command).refused(&["--penalty"]);
    let answer = folder
        .run("compare models/double-pendulum.holo --method rattle,dop853 --step 0.01 --rtol 1e-12 --penalty 20 --until 5 --json")
        .ok();
    let object = answer.json();
    assert_eq!(object["warnings"], serde_json::json!([]));
    let rows = object["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["rattle", "dop853", "dop853"]);
    assert!(rows[0].get("penalty").is_none());
    assert_eq!(rows[1]["penalty"], serde_json::json!({"omega": 20.0, "extrapolated": false}));
    assert_eq!(rows[2]["penalty"], serde_json::json!({"omega": 20.0, "extrapolated": true}));
    assert!(rows[1]["drift"].get("penalised_hamiltonian").is_some());
    assert!(rows[0]["drift"].get("penalised_hamiltonian").is_none());
    // C/ω² of both halves of the state, and the remainder of the next orders.
    let error = |row: &Value| number(row, "/error/final");
    assert!((0.005..0.02).contains(&error(&rows[1])), "{}", error(&rows[1]));
    assert!(error(&rows[2]) < error(&rows[1]) / 100.0, "{}", error(&rows[2]));
    assert_eq!(keys(&rows[2]["cost"]), COST);
    assert!(number(&rows[2], "/steps") > 2.0 * number(&rows[1], "/steps"));
    for text in ["dop853, extrapolated", "omega 20 and 40", "H.penalised"] {
        assert!(answer.shown().contains(text), "{text} is not in {}", answer.shown());
    }
    let table =
        fs::read_to_string(folder.path("runs/double-pendulum-compare-1/compare.csv")).unwrap();
    let widths: Vec<usize> = table.lines().map(|line| line.split(',').count()).collect();
    assert!(widths.len() == 4 && widths.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
}
