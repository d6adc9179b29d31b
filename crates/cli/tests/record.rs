//! Data that a run stores: residuals and drifts, the parameters, and the selection by `--record`.

mod common;

use common::{Folder, number};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Columns of a run's CSV.
fn columns(folder: &Folder, run: &str) -> BTreeMap<String, Vec<f64>> {
    let (names, rows) = folder.samples(run);
    names
        .into_iter()
        .enumerate()
        .map(|(k, name)| (name, rows.iter().map(|row| row[k]).collect()))
        .collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| value.abs().max(largest))
}

/// Fixed steps with a sample at each step, so that the table's largest drift is the largest stored
/// one.
#[test]
fn residuals_and_drifts_are_those_of_the_table() {
    let cases = [
        "models/spherical-pendulum.holo --method rk4 --step 0.05 --until 5",
        "models/spherical-pendulum.holo --method rattle --step 0.05 --until 5",
        "models/spherical-pendulum.holo --method corrected:rk4 --step 0.05 --until 5 --set l=2 --set q=(0,2,0)",
        "models/chain.holo --set n=300 --method rattle --step 0.05 --until 2",
    ];
    for run in cases {
        let folder = Folder::new();
        let summary = folder.summary(&format!("run {run} --samples 1001 --out run"));
        let columns = columns(&folder, "run");
        let mut seen = 0;
        let mut check = |path: &str, column: &str| {
            let drift = summary.pointer(path).unwrap_or_else(|| panic!("no {path} in {summary}"));
            // The same formulas, compiled with a step or alone: their products are fused
            // differently, which moves each of a handful of terms (at most l² = 4, of a chain L² =
            // 5) by a rounding.
            let near = |a: f64, b: f64| (a - b).abs() <= 4.0 * 5.0 * f64::EPSILON;
            assert!(near(number(drift, "/max"), largest(&columns[column])), "{run}: {column}");
            assert!(
                near(number(drift, "/final"), *columns[column].last().unwrap()),
                "{run}: {column}"
            );
            seen += 1;
        };
        check("/drift/hamiltonian", "drift.H");
        for (kind, before, after) in [
            ("constraints", "residual.", ""),
            ("hidden", "residual.", ".hidden"),
            ("integrals", "drift.", ""),
        ] {
            for name in summary["drift"][kind].as_object().unwrap().keys() {
                check(&format!("/drift/{kind}/{name}"), &format!("{before}{name}{after}"));
            }
        }
        assert!(seen >= 4, "{summary}");
        // The drift of H is that of the stored H, as both are the same formula rounded.
        let energies = &columns["H"];
        let drift: Vec<f64> = energies.iter().map(|h| (h - energies[0]).abs()).collect();
        assert!(
            drift
                .iter()
                .zip(&columns["drift.H"])
                .all(|(a, b)| (a - b).abs() <= 1e-13 * energies[0].abs().max(1.0))
        );
    }
}

fn attributes(folder: &Folder, run: &str) -> Value {
    let text = fs::read_to_string(folder.path(run).join("zarr.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["attributes"].clone()
}

#[test]
fn parameters_are_attributes() {
    let folder = Folder::new();
    folder.write("model.holo", "parameter k = 2*pi\nparameter c = (1, 2)\nparameter m[i in 1..3] = i\nparameter M[i in 1..2000] = i\nstate x = 1\nx' = -k*c.x*m[3]*M[1]*x\n");
    folder.summary("run model.holo --until 1 --set c=(3,4) --out run");
    let parameters = |run: &str| -> Value {
        let attributes = attributes(&folder, run);
        serde_json::from_str(attributes["parameters"].as_str().unwrap()).unwrap()
    };
    let expected = json!({"k": 2.0 * std::f64::consts::PI, "c": [3.0, 4.0], "m": [1.0, 2.0, 3.0]});
    assert_eq!(parameters("run"), expected);
    // Parameters that differ between trajectories are arrays.
    folder.summary("sweep model.holo --until 1 --trajectories 2 --vary k=i --out sweep");
    assert_eq!(parameters("sweep"), json!({"c": [1.0, 2.0], "m": [1.0, 2.0, 3.0]}));
    assert_eq!(columns(&folder, "sweep")["k"][..1], [0.0]);
}

#[test]
fn what_is_recorded_can_be_chosen() {
    let folder = Folder::new();
    let run = "models/spherical-pendulum.holo --until 5";
    folder.summary(&format!("run {run} --samples 1001 --out all"));
    folder.summary(&format!(
        "run {run} --samples 1001 --record drift.J,q,residual.rod.hidden --record H --out some"
    ));
    let (names, rows) = folder.samples("some");
    assert_eq!(
        names,
        ["t", "q.x", "q.y", "q.z", "H", "residual.rod.hidden", "drift.J"],
        "in the model's order"
    );
    let (all_names, all) = folder.samples("all");
    for (k, name) in names.iter().enumerate() {
        let other = all_names.iter().position(|other| other == name).unwrap();
        assert!(rows.iter().zip(&all).all(|(a, b)| a[k].to_bits() == b[other].to_bits()), "{name}");
    }
    // The state is in the checkpoint, whatever is recorded.
    folder.summary("resume some --until 9");
    folder.summary(
        &format!("run {run} --until 9 --every 0.005 --out whole").replace("--until 5 ", ""),
    );
    let (few, many) = (folder.samples("some"), folder.samples("whole"));
    assert_eq!(few.0, names);
    let height = many.0.iter().position(|name| name == "q.z").unwrap();
    // 5 i/1000 and 0.005 i differ by rounding, and the pendulum moves by no more than its speed
    // (below 2) in that time.
    let far = |(a, b): (&Vec<f64>, &Vec<f64>)| (a[3] - b[height]).abs() > 1e-13;
    assert!(few.1.len() == many.1.len() && !few.1.iter().zip(&many.1).any(far));
    // A large model by columns, multipliers, an ensemble.
    folder.summary(
        "run models/chain.holo --set n=300 --method rattle --step 0.05 --until 1 --record lambda.link --out large",
    );
    assert_eq!(folder.samples("large").0.len(), 300);
    folder.summary(&format!("sweep {run} --trajectories 3 --vary g=1+i --record J --out sweep"));
    assert_eq!(folder.samples("sweep").0[..4], ["trajectory", "t", "J", "g"]);
    for (record, fragment) in [
        ("q,Rod", "'Rod'"),
        ("residual.rood", "did you mean 'residual.rod'?"),
        ("zzzz", "this run can store: q, p, H, J, "),
        ("", "''"),
    ] {
        let mut command = folder.command(&format!("run {run} --out wrong --record"));
        let answer = common::Answer::new(command.arg(record).output().unwrap());
        answer.refused(&["--record", fragment]);
        assert!(!folder.path("wrong").exists());
    }
    folder
        .run(&format!("sweep {run} --trajectories 3 --record drift.H"))
        .refused(&["--record drift.H", "ensemble"]);
}

/// Sizes are reported before a run, and a run without enough memory is refused in words.
#[test]
#[cfg(target_os = "linux")]
fn sizes_are_foreseen() {
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    // 40001 samples of 5010 numbers. The run is held at its start, as it would take too long.
    let here = folder.path("held");
    let run = "run models/chain.holo --set n=1000 --method rattle --step 1e-3 --until 100 --samples 40001 --out large";
    let mut command = folder.command(run);
    let command = command
        .env("HOLONOME_HOLD", format!("created 0 {}", here.display()))
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while !here.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    let said = common::Answer::new(child.wait_with_output().unwrap()).stderr;
    assert!(said.contains("warning: this will store up to 1.6 GB"), "{said}");
    assert!(said.contains("--samples N") && said.contains("--record"), "{said}");
    // A quiet run of the usual size prints nothing.
    assert!(
        !folder.run("run models/kepler.holo --until 1 --out small").ok().stderr.contains("warning")
    );
    // 450 MB of address space: lists of times with what goes with them do not fit, be they 120 MB
    // or 3 GB long.
    for (samples, fragment) in
        [("15000000", "there is no memory"), ("400000000", "there is no memory")]
    {
        let mut bash = Command::new("bash");
        let script = format!(
            "ulimit -v 450000; exec \"$0\" run models/kepler.holo --samples {samples} --out none"
        );
        bash.arg("-c")
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_holonome"))
            .current_dir(folder.path("."));
        let answer = common::Answer::new(bash.output().unwrap());
        assert!(
            answer.code == Some(2) && answer.stderr.contains(fragment),
            "{samples}: {answer:?}"
        );
        assert!(answer.stderr.contains("--samples") && !folder.path("none").exists(), "{answer:?}");
    }
    // With fixed steps there are no more samples than steps, whatever is asked for.
    folder.summary(
        "run models/kepler.holo --method rk4 --step 0.1 --until 1 --samples 400000000 --out few",
    );
    assert_eq!(folder.times("few").len(), 11);
}

#[test]
fn an_export_counts_the_samples_of_all_trajectories() {
    let folder = Folder::new();
    folder.summary("sweep models/kepler.holo --trajectories 3 --until 1 --samples 5 --out many");
    let answer = folder.run("export many --csv many.csv").ok();
    assert_eq!(answer.stderr, "15 samples of 3 trajectories of many in many.csv\n");
    let lines = std::fs::read_to_string(folder.path("many.csv")).unwrap().lines().count();
    assert_eq!(folder.summary("export many --csv many.csv")["samples"], lines - 1);
}

/// Members of a box keep its indices as dimensions; others are counted.
#[test]
fn families_keep_their_indices() {
    let folder = Folder::new();
    folder.write(
        "grid.holo",
        "size n = 4\nsize m = 3\ncoordinate q[i in 1..n, j in 1..m] = sin(i)*cos(j)\nmomentum p of q\n\
         hamiltonian sum(i in 1..n, j in 1..m : p[i,j]^2/2 + q[i,j]^2/2)\n\
         observe energy[i in 1..n, j in 1..m] = p[i,j]^2/2 + q[i,j]^2/2\nobserve local[i in 1..n] = q[i,1]\n\
         observe inner[i in 2..n-1, j in 2..m] = (q[i,j], p[i,j])\nobserve near[i in 1..n, j in i+1..n] = q[i,1]*q[j,1]\n\
         observe none[i in 1..0] = q[i,1]\nobserve one[i in 2..2] = q[i,1]\n",
    );
    folder.summary("run grid.holo --until 1 --samples 3 --out run");
    let group: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("run/zarr.json")).unwrap()).unwrap();
    let of = |name: &str| &group["consolidated_metadata"]["metadata"][name];
    for (name, dimensions, shape) in [
        ("q", json!(["time", "i", "j"]), json!([3, 4, 3])),
        ("energy", json!(["time", "i", "j"]), json!([3, 4, 3])),
        ("local", json!(["time", "i"]), json!([3, 4])),
        ("inner", json!(["time", "i_2", "j_2", "component_2"]), json!([3, 2, 2, 2])),
        ("near", json!(["time", "near_member"]), json!([3, 6])),
        ("none", json!(["time", "none_member"]), json!([3, 0])),
        ("one", json!(["time", "i_3"]), json!([3, 1])),
    ] {
        assert_eq!(of(name)["dimension_names"], dimensions, "{name}");
        assert_eq!(of(name)["shape"], shape, "{name}");
    }
    // The numbers are in their places.
    folder.summary("run grid.holo --until 1 --samples 3 --record local,one --out few");
    let (names, rows) = folder.samples("few");
    let expected = |i: f64| i.sin() * 1.0f64.cos();
    for (name, i) in [("local[1]", 1.0), ("local[3]", 3.0), ("one[2]", 2.0)] {
        let found = rows[0][names.iter().position(|known| known == name).unwrap()];
        // Two functions and a product, each rounded.
        assert!((found - expected(i)).abs() < 4.0 * f64::EPSILON, "{name}: {found}");
    }
}

#[test]
fn names_that_differ_by_case_are_stored_as_they_are() {
    let folder = Folder::new();
    folder.write(
        "two.holo",
        "coordinate q = 1\nmomentum p of q = 2\nhamiltonian p^2/2\nintegral P = p\nobserve time = q\n",
    );
    let answer = folder.run("run two.holo --until 1 --samples 2 --record p,P,time --out run").ok();
    assert!(answer.stdout.contains("\n  stored in run\n"), "{answer:?}");
    for name in ["P", "p", "time"] {
        let text = fs::read_to_string(folder.path(&format!("run/{name}/zarr.json"))).unwrap();
        let array: Value = serde_json::from_str(&text).unwrap();
        assert!(array["attributes"].get("model_name").is_none(), "{text}");
    }
}

/// Attributes are texts and numbers, which every file format takes; those of the end are there at
/// the end only.
#[test]
fn attributes_tell_of_the_end() {
    let folder = Folder::new();
    let answer = folder.pendulum("--until 3 --error --out run --json").ok();
    let (found, summary) = (attributes(&folder, "run"), answer.json());
    for (key, value) in found.as_object().unwrap() {
        assert!(value.is_string() || value.is_number(), "{key}: {value}");
    }
    assert_eq!(found["status"], "finished");
    assert_eq!(found["drift.rod.hidden.largest"], summary["drift"]["hidden"]["rod"]["max"]);
    assert_eq!(found["error.q.final"], summary["orbit_error"]["families"]["q"]["final"]);
    assert_eq!(found["cost.steps"], summary["steps"]);
    let settings: Value = serde_json::from_str(found["settings"].as_str().unwrap()).unwrap();
    assert_eq!(settings["seed"], 0);
    // A longer end: those of the first end go.
    folder.run("resume run --until 4").ok();
    assert_eq!(attributes(&folder, "run")["t"], 4.0);
}

/// Labels of units are in the arrays, the tables and the axes, and change no number.
#[test]
fn units_of_a_model_label_what_is_stored_and_shown() {
    let folder = Folder::new();
    let model = "coordinate q : R^3 = (1, 0, 0)\nmomentum p of q = (0, 1, 0)\n\
        hamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1\n";
    fs::write(folder.path("plain.holo"), model).unwrap();
    fs::write(folder.path("units.holo"), format!("unit m, kg, days\n{model}")).unwrap();
    let options = "--until 2 --method rattle --step 0.1";
    folder.summary(&format!("run plain.holo {options} --out plain"));
    let summary = folder.summary(&format!("run units.holo {options} --out run"));
    assert_eq!(summary["units"]["p"], json!("kg m/days"));
    assert_eq!(folder.samples("run"), folder.samples("plain"));
    let unit = |array: &str| -> Value {
        let text = fs::read_to_string(folder.path(array).join("zarr.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["attributes"]["units"].clone()
    };
    for (array, expected) in [
        ("run/q", json!("m")),
        ("run/H", json!("kg m^2/days^2")),
        ("run/drift.H", json!("kg m^2/days^2")),
        ("run/lambda.rod", json!("kg/days^2")),
        ("run/residual.rod.hidden", json!("m^2/days")),
        // Readers would make a type of their own of numbers in days.
        ("run/time", json!("day")),
        ("plain/q", Value::Null),
        ("plain/time", Value::Null),
    ] {
        assert_eq!(unit(array), expected, "{array}");
    }
    let table = folder.run(&format!("run units.holo {options} --out table")).ok().stdout;
    assert!(table.contains("t = 2 days after"), "{table}");
    assert!(table.contains("Hamiltonian H in kg m^2/days^2"), "{table}");
    assert!(folder.run("check units.holo").ok().stdout.contains("q in m, p in kg m/days"));
    folder.run("plot run --y q.x,q.y --svg figure.svg").ok();
    let figure = fs::read_to_string(folder.path("figure.svg")).unwrap();
    assert!(figure.contains("q.x, q.y (m)") && figure.contains("t (day)"), "{figure}");
    let sweep = "sweep units.holo --trajectories 2 --vary q=(1,0,0) --out sweep";
    folder.summary(&format!("{sweep} {options}"));
    assert_eq!(unit("sweep/drift_H"), json!("kg m^2/days^2"));
    assert_eq!((unit("sweep/q"), unit("sweep/end")), (json!("m"), json!("day")));
}
