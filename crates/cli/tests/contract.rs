//! Output of the command line: JSON keys and their order, exit codes, folders, streams.

mod common;

use common::{Answer, Folder, keys, number, repository};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

const KEYS: [&str; 8] = ["model", "method", "t", "steps", "state", "drift", "cost", "out"];
const COST: [&str; 7] = [
    "field",
    "gradient",
    "hessian",
    "linear_solves",
    "newton_iterations",
    "rejected",
    "wall_seconds",
];

/// Check the summary's keys: the promised ones first, in their order.
#[track_caller]
fn check_keys(summary: &Value) {
    assert_eq!(keys(summary)[..KEYS.len()], KEYS, "{summary}");
    assert_eq!(keys(&summary["cost"]), COST);
}

#[test]
fn a_large_state_is_printed_on_request() {
    let folder = Folder::new();
    let model = "size n = 250\ncoordinate q[i in 1..n] : R^2 = (i, 0)\nmomentum p[i] of q = (1, i)\n\
                 hamiltonian sum(i in 1..n : dot(p[i], p[i])/2)\n";
    folder.write("free.holo", model);
    let options = "--method stormer-verlet-a --step 0.5 --until 1";
    let run = |more: &str| folder.summary(&format!("run free.holo {options} {more}"));
    // 4 numbers for each of 250 members are 1000.
    let small = run("");
    assert_eq!(small["state"]["p"][249], serde_json::json!([1.0, 250.0]));
    assert_eq!((&small["warnings"], small.get("state_size")), (&serde_json::json!([]), None));
    let large = run("--set n=251 --out large");
    assert!(large["state"].is_null() && large["state_size"] == 1004, "{large}");
    assert!(large["warnings"][0].as_str().unwrap().contains("--state prints it"), "{large}");
    assert_eq!(keys(&large)[4..7], ["state", "state_size", "drift"]);
    let whole = run("--set n=251 --state");
    assert_eq!(whole["state"]["q"][250], serde_json::json!([252.0, 251.0]));
    assert_eq!((&whole["warnings"], whole.get("state_size")), (&serde_json::json!([]), None));
    // A finished run still has it.
    assert_eq!(folder.summary("resume large")["state_size"], 1004);
    assert_eq!(folder.summary("resume large --state")["state"], whole["state"]);
    assert_eq!(folder.summary("resume large --until 2")["state_size"], 1004);
    let ignored = folder.run(&format!("run free.holo {options} --state")).ok();
    assert!(ignored.stderr.contains("--state has no effect without --json"), "{ignored:?}");
}

#[test]
fn the_summary_of_a_constrained_hamiltonian() {
    let folder = Folder::new();
    let options =
        "--method feedback:euler --step 1e-3 --until 2 --gain rod=50,rod.hidden=12.5,H=50,J=50";
    let answer = folder.pendulum(&format!("{options} --json")).ok();
    let summary = answer.json();
    check_keys(&summary);
    assert_eq!(summary["model"], "spherical-pendulum");
    assert_eq!(summary["method"], "feedback:euler");
    assert_eq!(summary["out"], "runs/spherical-pendulum-1");
    assert_eq!((number(&summary, "/t"), summary["steps"].as_u64()), (2.0, Some(2000)));
    assert_eq!(summary["cost"]["field"].as_u64(), Some(2000));
    assert_eq!(keys(&summary["state"]), ["q", "p"]);
    assert_eq!(keys(&summary["drift"]), ["hamiltonian", "constraints", "hidden", "integrals"]);
    let drift = &summary["drift"];
    assert_eq!(keys(&drift["hamiltonian"]), ["initial", "final", "max", "relative"]);
    assert_eq!((keys(&drift["constraints"]), keys(&drift["hidden"])), (vec!["rod"], vec!["rod"]));
    assert_eq!(keys(&drift["constraints"]["rod"]), ["final", "max", "relative"]);
    assert_eq!(keys(&drift["hidden"]["rod"]), ["final", "max", "relative"]);
    assert_eq!(keys(&drift["hidden"]["rod"]["relative"]), ["final", "max"]);
    assert_eq!(keys(&drift["integrals"]), ["J"]);
    assert_eq!(keys(&drift["integrals"]["J"]), ["initial", "final", "max", "relative"]);
    assert_eq!(number(drift, "/hamiltonian/initial"), 1.0); // H of (0,1,0), (1,0,-1): 1/2 + 1/2 + 0
    assert_eq!(number(drift, "/integrals/J/initial"), -1.0);
    // The drift is the deviation of the state beside it.
    let q: Vec<f64> = serde_json::from_value(summary["state"]["q"].clone()).unwrap();
    let p: Vec<f64> = serde_json::from_value(summary["state"]["p"].clone()).unwrap();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let rounding = 1e-14; // a few operations on numbers of order 1
    assert!((number(drift, "/constraints/rod/final") - (dot(&q, &q) - 1.0).abs()).abs() < rounding);
    assert!((number(drift, "/hidden/rod/final") - (2.0 * dot(&q, &p)).abs()).abs() < rounding);
    assert!(
        (number(drift, "/hamiltonian/final") - (0.5 * dot(&p, &p) + q[2] - 1.0).abs()).abs()
            < rounding
    );
    for (kind, name) in [("constraints", "rod"), ("hidden", "rod"), ("integrals", "J")] {
        let entry = &drift[kind][name];
        assert!(
            number(entry, "/max") >= number(entry, "/final") && number(entry, "/final") > 0.0,
            "{entry}"
        );
    }
    assert_eq!(summary["warnings"], serde_json::json!([]));
    // The terms of |q|² − 1 are 2q·q = 2 and its remainder; those of a drift beside it are the
    // same.
    let rod = &drift["constraints"]["rod"];
    assert!((number(rod, "/max") / number(rod, "/relative/max") - 2.0).abs() < 1e-3, "{rod}");
    assert!((number(rod, "/final") / number(rod, "/relative/final") - 2.0).abs() < 1e-3, "{rod}");
    // The text for people went to stderr.
    assert!(
        answer.stderr.contains("Hamiltonian")
            && answer.stderr.contains("runs/spherical-pendulum-1"),
        "{answer:?}"
    );
}

#[test]
fn the_maximum_of_a_drift_counts_every_step() {
    let folder = Folder::new();
    // Two samples, both at the turning points of the drift's size; the largest drift lies between
    // them.
    let run = "run models/kepler.holo --method plain:rk4 --step 0.05 --until 70.25";
    let few = folder.summary(&format!("{run} --samples 2"));
    let many = folder.summary(&format!("{run} --every 0.05"));
    // Relative drifts are over terms that are measured at the samples.
    let without_relative = |summary: &Value| {
        let mut drift = summary["drift"].clone();
        drift["hamiltonian"]["relative"] = Value::Null;
        for integral in drift["integrals"].as_object_mut().unwrap().values_mut() {
            integral["relative"] = Value::Null;
        }
        drift
    };
    assert_eq!(without_relative(&few), without_relative(&many));
    let (names, rows) = folder.samples("runs/kepler-2");
    let column = names.iter().position(|name| name == "H").unwrap();
    let largest = rows.iter().map(|row| (row[column] - rows[0][column]).abs()).fold(0.0, f64::max);
    assert!(
        (number(&many, "/drift/hamiltonian/max") / largest - 1.0).abs() < 1e-6,
        "{largest:e} {many}"
    );
    assert!(
        number(&few, "/drift/hamiltonian/max") > 1.5 * number(&few, "/drift/hamiltonian/final"),
        "{few}"
    );
}

#[test]
fn the_summaries_of_other_kinds_of_models() {
    let folder = Folder::new();
    // A vector field: no hamiltonian, no hidden constraints; matrices as rows; vector integrals
    // with vector initials.
    let body = folder.summary("run models/rigid-body.holo --until 1");
    check_keys(&body);
    assert_eq!(keys(&body["drift"]), ["constraints", "integrals"]);
    assert_eq!(keys(&body["state"]), ["R", "w"]);
    assert_eq!(body["state"]["R"].as_array().map(Vec::len), Some(3));
    assert_eq!(body["state"]["R"][0].as_array().map(Vec::len), Some(3));
    assert_eq!(keys(&body["drift"]["integrals"]), ["E", "Pi"]);
    assert_eq!(body["drift"]["integrals"]["Pi"]["initial"], serde_json::json!([3.0, 2.0, 1.0]));
    // No constraints: the keys are there, and empty.
    let kepler = folder.summary("run models/kepler.holo --until 1");
    assert_eq!(keys(&kepler["drift"]), ["hamiltonian", "constraints", "hidden", "integrals"]);
    let zhang_skeel =
        folder.summary("run models/kepler.holo --method zhang-skeel --step 0.01 --until 1");
    assert_eq!(
        keys(&zhang_skeel["drift"]),
        ["hamiltonian", "modified_energy", "constraints", "hidden", "integrals"]
    );
    assert_eq!(
        keys(&zhang_skeel["drift"]["modified_energy"]),
        ["initial", "final", "max", "relative"]
    );
    assert_eq!(
        (keys(&kepler["drift"]["constraints"]).len(), keys(&kepler["drift"]["hidden"]).len()),
        (0, 0)
    );
    // Several coordinates: positions first, in the order of the file.
    let double = folder.summary("run models/double-pendulum.holo --until 1");
    assert_eq!(keys(&double["state"]), ["r1", "r2", "p1", "p2"]);
    assert_eq!(keys(&double["drift"]["constraints"]), ["upper", "lower"]);
    assert_eq!(keys(&double["drift"]["hidden"]), ["upper", "lower"]);
    // Families: the index first, one drift for the family.
    let chain = folder.summary("run models/chain.holo --set n=4 --until 0.5");
    assert_eq!(chain["state"]["r"].as_array().map(Vec::len), Some(4));
    assert_eq!(chain["state"]["p"][3].as_array().map(Vec::len), Some(2));
    assert_eq!(keys(&chain["drift"]["constraints"]), ["anchor", "link"]);
    // A scalar is a number.
    let scalar = "coordinate x = 1\nmomentum y of x\nhamiltonian y^2/2 + x^2/2\n";
    folder.write("scalar.holo", scalar);
    let summary = folder.summary("run scalar.holo --until 1");
    assert!((number(&summary, "/state/x") - 1f64.cos()).abs() < 1e-8, "{summary}");
    // Without invariants.
    folder.write("decay.holo", "state x = 1\nx' = -x\n");
    let summary = folder.summary("run decay.holo --method plain:dop853 --until 1");
    assert!((number(&summary, "/state/x") - (-1f64).exp()).abs() < 1e-8, "{summary}");
}

#[test]
fn numbers_are_printed_exactly() {
    let folder = Folder::new();
    let summary = folder.summary("run models/spherical-pendulum.holo --until 3");
    let (names, rows) = folder.samples("runs/spherical-pendulum-1");
    let last = rows.last().unwrap();
    for (k, component) in ["x", "y", "z"].iter().enumerate() {
        for variable in ["q", "p"] {
            let column =
                names.iter().position(|name| *name == format!("{variable}.{component}")).unwrap();
            let printed = number(&summary, &format!("/state/{variable}/{k}"));
            assert!(
                printed.to_bits() == last[column].to_bits(),
                "{variable}.{component}: {printed} {}",
                last[column]
            );
        }
    }
}

#[test]
fn quiet_and_json_keep_the_streams_apart() {
    let folder = Folder::new();
    let talking = folder.pendulum("--until 1").ok();
    assert!(
        talking.stdout.contains("Hamiltonian H") && talking.stderr.contains("holonome report"),
        "{talking:?}"
    );
    assert!(
        !talking.stdout.contains("next:") && !talking.stderr.contains("Hamiltonian"),
        "{talking:?}"
    );
    let silent = folder.pendulum("--until 1 --quiet").ok();
    assert!(silent.stdout.is_empty() && silent.stderr.is_empty(), "{silent:?}");
    let json = folder.pendulum("--until 1 --quiet --json").ok();
    assert!(json.stderr.is_empty(), "{json:?}");
    json.json();
    for command in [
        "check models/chain.holo",
        "methods",
        "show syntax models/chain.holo",
        "show model models/chain.holo",
        "show graph models/kepler.holo",
        "show tape models/kepler.holo",
        "export runs/spherical-pendulum-1 --csv one.csv",
        "resume runs/spherical-pendulum-1",
    ] {
        let object = folder.run(&format!("{command} --json")).ok().json();
        assert!(keys(&object).len() > 1 && object["warnings"].is_array(), "{command}: {object}");
    }
    // An error is still reported, in both ways.
    let failed = folder.run("run models/none.holo --json --quiet");
    assert_eq!(failed.code, Some(2));
    assert!(failed.stderr.contains("models/none.holo"), "{failed:?}");
    assert_eq!(failed.json()["error"]["kind"], "read");
}

#[test]
fn every_help_shows_examples_that_work() {
    let folder = Folder::new();
    let mut tried = 0;
    folder.pendulum("--quiet").ok(); // what `export` and `resume` show is a run of that name
    for command in ["run", "check", "methods", "show", "export", "resume"] {
        let help = folder.run(&format!("{command} --help")).ok();
        assert!(help.stderr.is_empty());
        let joined = help.stdout.replace("\\\n", ""); // long examples go on in a second line
        let examples: Vec<&str> = joined
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with(&format!("holonome {command}")))
            .collect();
        assert!(help.stdout.contains("Example") && !examples.is_empty(), "{}", help.stdout);
        for example in examples {
            folder.run(example.trim_start_matches("holonome ")).ok();
            tried += 1;
        }
    }
    assert!(tried >= 8);
    let help = folder.run("--help").ok();
    let example =
        help.stdout.lines().find(|line| line.starts_with("  holonome ")).expect("an example");
    folder.run(example.trim().trim_start_matches("holonome ")).ok();
    assert!(folder.run("--version").ok().stdout.starts_with("holonome "));
    assert_eq!(folder.run("").code, Some(2));
}

#[test]
fn every_help_has_its_general_options_last_and_fits_a_terminal() {
    let folder = Folder::new();
    let help = |arguments: &str, columns: usize| {
        let mut command = folder.command(arguments);
        let answer =
            Answer::new(command.env("COLUMNS", columns.to_string()).output().unwrap()).ok();
        let long = answer.stdout.lines().find(|line| line.chars().count() > columns);
        assert!(long.is_none(), "{arguments}: {long:?} at {columns} columns");
        answer.stdout
    };
    let all = help("--help", 80);
    let (_, list) = all.split_once("Commands:\n").unwrap();
    let commands: Vec<&str> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 10, "{all}");
    assert_eq!(
        list.lines().position(str::is_empty),
        Some(commands.len() + 1),
        "one line for a command: {all}"
    );
    for command in commands {
        for columns in [80, 120] {
            let text = help(&format!("{command} --help"), columns);
            let headings: Vec<&str> =
                text.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
            let general =
                headings.iter().position(|heading| *heading == "General options:").unwrap();
            let behind = ["Example:", "Examples:", "Statistics of the quantity NAME:"];
            assert!(
                headings[general + 1..].iter().all(|heading| behind.contains(heading)),
                "{command}: {headings:?}"
            );
        }
    }
}

#[test]
fn runs_are_numbered_and_never_overwritten() {
    let folder = Folder::new();
    let out = |options: &str| {
        folder.summary(&format!("run models/kepler.holo --until 0.1 {options}"))["out"].clone()
    };
    assert_eq!([out(""), out(""), out("")], ["runs/kepler-1", "runs/kepler-2", "runs/kepler-3"]);
    fs::remove_dir_all(folder.path("runs/kepler-2")).unwrap();
    assert_eq!(out(""), "runs/kepler-2", "the smallest free number");
    assert_eq!(out(""), "runs/kepler-4");
    assert_eq!(out("--out deep/in/folders"), "deep/in/folders");
    fs::create_dir(folder.path("empty")).unwrap();
    assert_eq!(out("--out empty"), "empty");
    let before = fs::read(folder.path("empty/zarr.json")).unwrap();
    let run = |options: &str| {
        folder.run(&format!("run models/kepler.holo --until 0.1 --quiet {options}"))
    };
    run("--out empty").refused(&["empty", "not empty"]);
    assert_eq!(before, fs::read(folder.path("empty/zarr.json")).unwrap());
    folder.write("file", "x");
    run("--out file").refused(&["file"]);
    run("--out file/below").refused(&["file"]);
    run("--out /proc/nowhere/at/all").refused(&["/proc"]);
    let unwritable =
        folder.run("run models/kepler.holo --until 0.1 --out file/below --json --quiet");
    assert_eq!(
        (unwritable.code, unwritable.json()["error"]["kind"].as_str()),
        (Some(2), Some("unwritable"))
    );
    assert_eq!(fs::read(folder.path("file")).unwrap(), b"x");
    assert!(!folder.path("runs/kepler-5").exists(), "a refused run leaves nothing behind");
}

#[test]
fn unreadable_models() {
    let folder = Folder::new();
    folder
        .write("empty.holo", "")
        .write("comment.holo", "# nothing\n")
        .write("bytes.holo", b"parameter m = \xff\n");
    folder.write("nul.holo", b"\0\0").write("latin.holo", b"# caf\xe9\ncoordinate q = 1\n");
    for command in ["run", "check", "show model"] {
        let run = |file: &str| folder.run(&format!("{command} {file}"));
        run("models/none.holo").refused(&["models/none.holo", "there is no such file"]);
        run("models").refused(&["models", "it is a folder"]);
        run("empty.holo").refused(&["empty.holo:1:1", "coordinate"]);
        run("comment.holo").refused(&["comment.holo", "coordinate"]);
        run("bytes.holo").refused(&["bytes.holo:1:15", "UTF-8", "0xff"]);
        run("latin.holo").refused(&["latin.holo:1:6", "UTF-8", "0xe9"]);
        run("nul.holo").refused(&["nul.holo:1:1"]);
    }
    assert!(!folder.path("runs").exists());
    // Another editor's habits are not mistakes.
    let text = "\u{feff}coordinate q = 1\r\nmomentum p of q\r\nhamiltonian p^2/2 + q^2/2\r\n";
    folder.write("windows.holo", text);
    folder.run("run windows.holo --until 1").ok();
}

#[test]
fn failures_are_objects_for_programs() {
    let folder = Folder::new();
    let error = |arguments: &str, code: i32| {
        let answer = folder.run(&format!("{arguments} --json"));
        assert_eq!(answer.code, Some(code), "{answer:?}");
        let object = answer.json();
        assert_eq!(keys(&object), ["error", "warnings"]);
        assert_eq!(keys(&object["error"])[..2], ["kind", "message"], "{object}");
        assert!(
            object["error"]["message"].as_str().is_some_and(|message| message.len() > 10),
            "{object}"
        );
        assert!(!answer.stderr.is_empty());
        object["error"].clone()
    };
    let kind = |arguments: &str| error(arguments, 2)["kind"].as_str().unwrap().to_string();
    assert_eq!(kind("run"), "usage");
    assert!(error("run", 2)["message"].as_str().unwrap().contains("<MODEL>"));
    assert_eq!(kind("run models/kepler.holo --until soon"), "usage");
    assert_eq!(kind("fly models/kepler.holo"), "usage");
    assert_eq!(kind("run models/none.holo"), "read");
    assert_eq!(kind("run models/kepler.holo --until 0"), "option");
    assert_eq!(kind("run models/kepler.holo --method lsoda"), "method");
    assert_eq!(kind("resume runs/none"), "not-a-run");
    assert_eq!(kind("export models --csv x.csv"), "not-a-run");
    folder.write(
        "bad.holo",
        "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + pz\nhamiltonian qq\n",
    );
    let model = error("run bad.holo", 2);
    assert_eq!(model["kind"], "model");
    let diagnostics = model["diagnostics"].as_array().unwrap();
    let lines: Vec<_> = diagnostics.iter().map(|d| d["line"].as_u64().unwrap()).collect();
    assert!(lines.contains(&3) && lines.contains(&4), "all at once: {model}");
}

#[test]
fn what_check_tells() {
    let folder = Folder::new();
    let report = folder.summary("check models/spherical-pendulum.holo");
    assert_eq!(number(&report, "/dimension"), 6.0);
    assert_eq!(number(&report, "/degrees_of_freedom"), 2.0);
    assert_eq!(report["invariants"], serde_json::json!(["rod", "rod.hidden", "H", "J"]));
    assert_eq!(report["constraints"][0]["kind"], "holonomic");
    assert_eq!(report["separable"], true);
    let text = folder.run("check models/double-pendulum.holo --verbose").ok().stdout;
    for fragment in
        ["upper", "lower", "mass matrix", "2 degrees of freedom", "corrected", "momentum p1 of r1"]
    {
        assert!(text.contains(fragment), "no {fragment:?} in {text}");
    }
    assert_eq!(folder.run("check models/kepler.holo --quiet").ok().stdout, "");
    // The rank of Kepler's seven invariants is five: not a mistake, but worth a note.
    let rank = &folder.summary("check models/kepler.holo")["rank"];
    assert_eq!((number(rank, "/rank"), number(rank, "/count")), (5.0, 7.0));
    // A claimed integral that is not one is a finding, and nothing holds it.
    let text = fs::read_to_string(folder.path("models/spherical-pendulum.holo")).unwrap();
    folder.write("claim.holo", format!("{text}\nintegral S = q.x + p.y\n"));
    let answer = folder.run("check claim.holo").ok();
    assert!(answer.stderr.contains("warning") && answer.stderr.contains('S'), "{answer:?}");
    let advice = &folder.summary("check claim.holo")["advice"];
    assert!(advice[0].as_str().unwrap().contains("correct or leave out S first"), "{advice}");
    folder
        .run("run claim.holo --method plain:dop853 --until 1")
        .refused(&["'S' is not a first integral"]);
    folder.run("run claim.holo --method plain:dop853 --until 1 --allow-unverified").ok();
}

#[test]
fn check_advises() {
    let folder = Folder::new();
    let particle = "coordinate q : R^3 = (1, 0, 0.2)\nmomentum p of q = (0, 1, 0.1)\nhamiltonian dot(p, p)/2 + ";
    let body = fs::read(repository().join("suite/models/matrix-rigid-body.holo")).unwrap();
    folder.write("matrix-rigid-body.holo", body);
    folder.write("central.holo", format!("{particle}dot(q, q)^2/4\nintegral L = cross(q, p)\n"));
    // Of three different oscillators two brackets of one make three integrals, which do not
    // commute.
    let oscillators = "q.x^2/2 + q.y^2/2 + q.z^4/4 + q.z^2*q.x^2\nintegral A = p.y^2 + q.y^2\nintegral B = atan2(q.y, p.y) - t\n";
    folder.write("oscillators.holo", format!("{particle}{oscillators}"));
    let pair = "coordinate r[i in 1..2] : R^3 = (i, 0.1*i^2, 0)\nmomentum p[i] of r = (0, i, 0.3)\nhamiltonian sum(i in 1..2 : dot(p[i], p[i])/2) + (norm(r[1] - r[2]) - 1)^2\nintegral P = p[1] + p[2]\n";
    let own = "integral L = cross(r[1] - r[2], p[1] - p[2])\n";
    folder.write(
        "pair.holo",
        format!("{pair}{own}integral C = cross(r[1], p[1]) + cross(r[2], p[2])\n"),
    );
    folder.write(
        "molecule.holo",
        format!("{pair}integral L = cross(r[1], p[1]) + cross(r[2], p[2])\n"),
    );
    folder.write(
        "rotor.holo",
        "state w : R^3 = (1, 2, 3)\nw' = (w.y, -w.x, -w.z)\nintegral M = w.x^2 + w.y^2\n",
    );
    for (model, method, reason) in [
        // H and J, two degrees of freedom.
        ("models/spherical-pendulum.holo", "corrected:dop853", "all actions"),
        // H only.
        ("models/henon-heiles.holo", "suzuki4(stormer-verlet-a)", "cannot hold all actions"),
        ("models/double-pendulum.holo", "suzuki4(rattle)", "cannot hold all actions"),
        // A and L of Kepler's motion, L of any central force: their brackets leave 1 and 2 of them
        // in involution.
        (
            "models/kepler.holo",
            "corrected:dop853",
            "5 independent integrals (their brackets have rank 4) of 3 degrees",
        ),
        (
            "central.holo",
            "corrected:dop853",
            "4 independent integrals (their brackets have rank 2) of 3 degrees",
        ),
        ("matrix-rigid-body.holo", "corrected:dop853", "(their brackets have rank 2) of 3 degrees"),
        // As many integrals as degrees of freedom, and more, are not enough if they do not commute.
        (
            "molecule.holo",
            "suzuki4(stormer-verlet-a)",
            "7 independent integrals (their brackets have rank 4) of 6",
        ),
        (
            "oscillators.holo",
            "suzuki4(stormer-verlet-a)",
            "3 independent integrals (their brackets have rank 2) of 3",
        ),
        // With the relative angular momentum the molecule is integrable.
        ("pair.holo", "corrected:dop853", "of 6 degrees of freedom: all actions"),
        // E and Pi of a rigid body, a field that is recognised; H and Lz of a Hamiltonian one.
        (
            "models/rigid-body.holo",
            "corrected:dop853",
            "4 independent integrals on a manifold of dimension 6: all actions",
        ),
        (
            "models/heavy-top.holo",
            "suzuki4(cayley-symmetric)",
            "2 independent integrals of 3 degrees",
        ),
        // A field of no known kind.
        ("rotor.holo", "corrected:dop853", "it holds M"),
    ] {
        let said = folder.summary(&format!("check {model}"))["advice"].clone();
        let lines = said.as_array().unwrap();
        // The third line is on accuracy, the fourth on the use of a penalty, if there are
        // constraints for it.
        assert!(
            lines[2].as_str().unwrap().contains(":gauss16 for errors below"),
            "{model}: {said}"
        );
        let penalty =
            lines.get(3).is_some_and(|line| line.as_str().unwrap().contains("--penalty is for"));
        assert_eq!(
            (lines.len(), penalty),
            if ["pendulum", "top", "matrix"].iter().any(|name| model.contains(name)) {
                (4, true)
            } else {
                (3, false)
            },
            "{said}"
        );
        assert!(
            lines[0].as_str().unwrap().starts_with(&format!("advice: {method}")),
            "{model}: {said}"
        );
        assert!(lines[1].as_str().unwrap().contains(reason), "{model}: {said}");
    }
    // The table and a run say the same of methods.
    let text = folder.run("check models/double-pendulum.holo --verbose").ok().stdout;
    assert!(
        text.contains("yes shake rattle g-baoab\n") && text.contains("no lie-trotter"),
        "{text}"
    );
    folder
        .run("run models/double-pendulum.holo --method strang --step 0.1")
        .refused(&["constraint `lower`"]);
}

/// Names of methods in a text.
fn methods_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-:()".contains(c)));
    let names = [
        "corrected:dop853",
        "plain:dop853",
        "rattle",
        "stormer-verlet-a",
        "gauss4",
        "implicit-midpoint",
    ];
    let more = ["zhang-skeel-simplified", "cayley-symmetric"];
    let known = |word: &&str| {
        let base = word.strip_prefix("suzuki4(").and_then(|w| w.strip_suffix(')')).unwrap_or(word);
        names.contains(&base) || more.contains(&base)
    };
    words.filter(known).map(str::to_string).collect()
}

#[test]
fn what_is_advised_is_not_refused() {
    let folder = Folder::new();
    let mut models: Vec<String> = Vec::new();
    for kind in ["models", "suite/models"] {
        for entry in fs::read_dir(repository().join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            folder.write(&name, fs::read(&path).unwrap());
            models.extend(name.ends_with(".holo").then_some(name));
        }
    }
    models.sort();
    assert!(models.len() >= 40);
    // A field that is not autonomous, and a body that is not free.
    folder
        .write("driven.holo", "coordinate q = 1\nmomentum p of q\nhamiltonian p^2/2 + q*cos(t)\n");
    folder.write(
        "torque.holo",
        "state w : R^3 = (1, 2, 3)\nw' = (-w.y*w.z/3 + 1, w.z*w.x, -w.x*w.y)\n",
    );
    models.extend(["driven.holo".to_string(), "torque.holo".to_string()]);
    let mut named = 0;
    for model in models {
        let report = folder.summary(&format!("check {model}"));
        let advised = report["advice"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|line| methods_in(line.as_str().unwrap()));
        let rows = report["methods"].as_array().unwrap().iter();
        let refused = rows.filter(|row| row["applies"] == false);
        let instead = refused.flat_map(|row| {
            methods_in(row["reason"].as_str().unwrap().rsplit("; use ").next().unwrap())
        });
        let mut all: Vec<String> = advised.chain(instead).collect();
        all.sort();
        all.dedup();
        assert!(!all.is_empty(), "{model}: {}", report["advice"]);
        for method in all {
            let run = format!("run {model} --method {method} --step 1e-3 --until 2e-3 --samples 2");
            folder.run(&run).ok();
            named += 1;
        }
    }
    assert!(named > 80, "{named}");
}

#[test]
fn check_fits_a_terminal() {
    let folder = Folder::new();
    let folders = ["models", "suite/models"].map(|folder| repository().join(folder));
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path());
    let mut checked = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "holo")) {
        for (option, most) in [("", 10), ("--verbose", usize::MAX)] {
            let answer = folder.run(&format!("check {} {option}", path.display()));
            if answer.code != Some(0) {
                continue; // a model that needs an option of its own
            }
            let text = &answer.stdout;
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{}:\n{text}",
                path.display()
            );
            assert!(
                text.lines().count() <= most && text.contains("advice: "),
                "{}:\n{text}",
                path.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn a_method_is_described() {
    let folder = Folder::new();
    for (name, parts) in [
        ("rattle", &["order 2, reversible, symplectic, implicit", "The fibre of a point"][..]),
        ("RK45", &["dopri5: ", "also called RK45", "6 stages", "Dormand and Prince's pair"]),
        ("corrected:rk4", &["corrected:rk4: order 4, not", "a Kalman update", "k₂ = X(t + h/2"]),
        ("suzuki4(verlet)", &["order 4, reversible", "suzuki4: five", "stormer-verlet-a: kick"]),
        ("projection", &["needs invariants", "Newton iteration"]),
        ("feedback", &["needs invariants and their gains", "so that ΔF decays"]),
    ] {
        let text = folder.run(&format!("methods {name}")).ok().stdout;
        for part in parts {
            assert!(text.contains(part), "{name}: no {part} in\n{text}");
        }
    }
    let described = folder.summary("methods corrected:taylor");
    assert_eq!(described["schemes"][0]["name"], "taylor");
    assert_eq!(described["treatments"][0]["name"], "corrected");
    folder.run("methods ratle").refused(&["there is no method `ratle`; did you mean `rattle`?"]);
    // Accounts fit a terminal, and have no marks of the source in them.
    let all = folder.summary("methods");
    for kind in ["schemes", "treatments", "compositions"] {
        for row in all[kind].as_array().unwrap() {
            let text = row["account"].as_str().unwrap();
            assert!(!text.is_empty() && text.lines().all(|line| line.chars().count() <= 80));
            assert!(!text.contains("[`") && !text.contains("HLW"), "{text}");
        }
    }
}

#[test]
fn the_methods_and_the_stages() {
    let folder = Folder::new();
    let methods = folder.run("methods").ok().stdout;
    let names = "euler midpoint heun rk4 bs3 dopri5 tsit5 dop853 plain feedback corrected projection symmetric-projection";
    for name in names.split(' ') {
        assert!(methods.contains(name), "{name}");
    }
    let spin = "state s : R^3 = (0.6, 0, 0.8)\npoisson (s) = hat(s)\nhamiltonian s.x^2 + 2*s.z^2\n";
    folder.write("spin.holo", spin);
    let table = folder.summary("methods");
    let dop853 =
        table["schemes"].as_array().unwrap().iter().find(|row| row["name"] == "dop853").unwrap();
    assert_eq!((dop853["order"].as_u64(), dop853["adaptive"].as_bool()), (Some(8), Some(true)));
    // Every method that the table names runs: those for fields with every treatment, the others on
    // what they are for.
    for scheme in table["schemes"].as_array().unwrap() {
        let name = scheme["name"].as_str().unwrap();
        let needs = scheme["needs"].as_str().unwrap();
        let free = match needs {
            "a vector field"
            | "a vector field of smooth formulas"
            | "a Hamiltonian without constraints" => Some("henon-heiles.holo"),
            "a Hamiltonian with a constant mass matrix" => Some("henon-heiles.holo --beta 0.3"),
            "a Hamiltonian with a constant mass matrix and a stiff part" => {
                Some("fpu-stiff.holo --stiff stiff")
            }
            "a Hamiltonian with a constant mass matrix in a heat bath" => {
                Some("spherical-pendulum.holo --friction 1 --inverse-temperature 2")
            }
            "a Hamiltonian of motions of Kepler and a coupling" => Some("kepler.holo"),
            "a Poisson system" | "a Poisson system of parts with known flows" => {
                Some("../spin.holo")
            }
            _ => None,
        };
        if let Some(model) = free {
            let run = format!("run models/{model} --method {name} --step 0.01 --until 1");
            assert_eq!(number(&folder.summary(&run), "/steps"), 100.0);
        }
        let treatments = table["treatments"].as_array().unwrap();
        for treatment in treatments.iter().filter(|t| {
            needs == "a vector field" && scheme["symplectic"] == false
                || t["name"] == "plain" && free.is_none()
        }) {
            let method = format!("{}:{name}", treatment["name"].as_str().unwrap());
            let is_of_bodies = scheme["needs"].as_str().unwrap().contains("rigid body");
            let edge = repository().join("suite/structure/knife-edge.holo");
            let (model, constraint) = match needs {
                "a Hamiltonian with rolling constraints" => (edge.to_str().unwrap(), "edge"),
                _ if is_of_bodies => ("models/rigid-body.holo", "orthogonal"),
                _ => ("models/spherical-pendulum.holo", "rod"),
            };
            let run = format!("run {model} --method {method} --step 0.01 --until 1");
            let drift =
                number(&folder.summary(&run), &format!("/drift/constraints/{constraint}/max"));
            // One step of Euler at speed v leaves the sphere by (h v)², over 100 steps; v² = 2 − 2z
            // is at most 4 here.
            assert!(drift < 100.0 * 1e-4 * 4.0, "{method}: {drift:e}");
        }
    }
    for (stage, fragment) in
        [("syntax", "rod"), ("model", "rod"), ("graph", "invariant rod"), ("tape", "x[")]
    {
        let text = folder.run(&format!("show {stage} models/planar-pendulum.holo")).ok().stdout;
        assert!(text.lines().count() > 5 && text.contains(fragment), "{stage}: {text}");
    }
    folder.run("show dream models/planar-pendulum.holo").refused(&["dream", "syntax", "tape"]);
    // A file with mistakes still has a tree, and its mistakes are reported.
    folder.write("bad.holo", "parameter m = 1\nparameter = 2\n");
    let broken = folder.run("show syntax bad.holo");
    assert_eq!(broken.code, Some(2));
    assert!(broken.stdout.contains('m') && broken.stderr.contains("bad.holo:2"), "{broken:?}");
    let broken = folder.run("show syntax bad.holo --json");
    assert_eq!(broken.json()["error"]["kind"], "model");
}

#[test]
fn an_observable_that_is_no_number_is_said() {
    let folder = Folder::new();
    let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + dot(q, q)/2\nobserve root = sqrt(q.x)\n";
    folder.write("circle.holo", text);
    // cos t < 0 on half of each turn.
    let run = folder.run("run circle.holo --until 10 --json").ok();
    let warning = run.json()["warnings"][0].as_str().unwrap_or_default().to_string();
    assert!(warning.contains("'root'") && run.stderr.contains(&warning), "{run:?}");
    folder.write("line.holo", text.replace("sqrt(q.x)", "q.x"));
    assert_eq!(
        folder.run("run line.holo --until 10 --json").ok().json()["warnings"],
        serde_json::json!([])
    );
}

#[test]
fn projected_euler_starts_from_rest() {
    let folder = Folder::new();
    for model in ["planar-pendulum", "double-pendulum"] {
        for treatment in ["projection", "symmetric-projection"] {
            folder
                .run(&format!(
                    "run models/{model}.holo --method {treatment}:euler --step 0.01 --until 1"
                ))
                .ok();
        }
    }
}

#[test]
fn exports() {
    let folder = Folder::new();
    folder.summary("run models/chain.holo --set n=3 --until 1 --samples 5");
    let to_stdout = folder.run("export runs/chain-1 --csv -").ok();
    assert!(to_stdout.stderr.is_empty());
    let to_file = folder.run("export runs/chain-1 --csv chain.csv --json").ok();
    assert_eq!(to_file.json()["samples"], 5);
    assert_eq!(fs::read_to_string(folder.path("chain.csv")).unwrap(), to_stdout.stdout);
    let header = to_stdout.stdout.lines().next().unwrap();
    assert!(
        header.starts_with("t,r[1].x,r[1].y,r[2].x")
            && header.contains(",H,")
            && header
                .contains(",height,lambda.anchor,lambda.link[2],lambda.link[3],residual.anchor,"),
        "{header}"
    );
    assert_eq!(folder.times("runs/chain-1"), [0.0, 0.25, 0.5, 0.75, 1.0]);
    let both = folder.run("export runs/chain-1 --csv - --json");
    assert_eq!((both.code, both.json()["error"]["kind"].as_str()), (Some(2), Some("option")));
    folder.run("export runs/chain-1 --csv nowhere/x.csv").refused(&["nowhere/x.csv"]);
    folder.run("export runs/chain-1 --csv models").refused(&["models"]);
    folder.run("export runs/chain-1").refused(&["--csv"]);
    // An existing file is replaced, and a failed export leaves it.
    folder.write("chain.csv", "old");
    folder.run("export runs/chain-2 --csv chain.csv").refused(&["runs/chain-2"]);
    assert_eq!(fs::read(folder.path("chain.csv")).unwrap(), b"old");
    folder.run("export runs/chain-1 --csv chain.csv --quiet").ok();
    assert_eq!(fs::read_to_string(folder.path("chain.csv")).unwrap(), to_stdout.stdout);
}

#[test]
fn resuming_a_finished_run_says_so() {
    let folder = Folder::new();
    let summary = folder.summary("run models/kepler.holo --until 1");
    let resumed = folder.run("resume runs/kepler-1 --json").ok();
    assert!(resumed.stderr.contains("finished"), "{resumed:?}");
    assert_eq!(resumed.json(), summary, "the summary that the run printed");
    let resumed = folder.run("resume runs/kepler-1").ok();
    assert!(resumed.stdout.is_empty() && resumed.stderr.contains("finished"), "{resumed:?}");
    folder.run("resume runs/kepler-7").refused(&["runs/kepler-7"]);
    folder.run("resume models").refused(&["models", "not a stored run"]);
}

#[test]
fn a_closed_pipe_is_no_mistake() {
    let folder = Folder::new();
    folder.summary("run models/chain.holo --until 1");
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for arguments in [
        "methods",
        "check models/chain.holo",
        "show tape models/chain.holo",
        "show syntax models/chain.holo --json",
        "export runs/chain-1 --csv -",
        "run models/kepler.holo --until 1 --json",
        "resume runs/chain-1 --json",
        "--help",
    ] {
        let child =
            folder.command(arguments).stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
        let answer = Answer::new(child.wait_with_output().unwrap()).ok();
        assert!(
            !answer.stderr.lines().any(|line| line.starts_with("error")),
            "{arguments}: {answer:?}"
        );
        let child =
            folder.command(arguments).stdout(Stdio::piped()).stderr(closed()).spawn().unwrap();
        Answer::new(child.wait_with_output().unwrap()).ok();
    }
    let child = folder
        .command("run models/none.holo --json")
        .stderr(closed())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let answer = Answer::new(child.wait_with_output().unwrap());
    assert_eq!((answer.code, answer.json()["error"]["kind"].as_str()), (Some(2), Some("read")));
    // A full disk is a mistake, also behind stdout.
    for arguments in [
        "run models/kepler.holo --until 1 --json",
        "show tape models/kepler.holo",
        "export runs/chain-1 --csv -",
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let child = folder.command(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let answer = Answer::new(child.wait_with_output().unwrap());
        assert!(
            answer.code == Some(1) && answer.stderr.contains("space"),
            "{arguments}: {answer:?}"
        );
    }
}

#[test]
fn every_malformed_model_of_the_suite_is_refused_and_told() {
    let folder = Folder::new();
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("suite/errors")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "holo") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let expected =
            if String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with("#! error")) {
                2
            } else {
                0
            };
        let answer = Answer::new(folder.command("check --json").arg(&path).output().unwrap());
        assert_eq!(answer.code, Some(expected), "{}: {answer:?}", path.display());
        let object = answer.json();
        if expected == 2 {
            // The text shows the place and the offending line, for each finding of the object.
            assert_eq!(object["error"]["kind"], "model", "{object}");
            for finding in object["error"]["diagnostics"].as_array().unwrap() {
                let place = format!(":{}:{}", finding["line"], finding["column"]);
                assert!(
                    answer.stderr.contains(&place),
                    "{}: no {place} in {}",
                    path.display(),
                    answer.stderr
                );
                assert!(answer.stderr.contains(finding["message"].as_str().unwrap()), "{answer:?}");
            }
        } else {
            assert!(answer.stderr.contains("warning"), "{answer:?}");
        }
        seen += 1;
    }
    assert!(seen > 200, "{seen}");
}
