//! Runs backwards in time: `--from 10 --until 0`.

mod common;

use common::{Folder, number};
use serde_json::Value;

/// A list of numbers, of vectors or of rows as a formula; `list(…)` for the members of a family.
fn formula(value: &Value, family: bool) -> String {
    match value {
        Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(|entry| formula(entry, false)).collect();
            format!("{}({})", if family { "list" } else { "" }, entries.join(","))
        }
        number => format!("{:?}", number.as_f64().unwrap()),
    }
}

const PIVOT: &str = "coordinate q : R^2 = (0.3*sin(t0), -1)\nmomentum p of q = (0.3*cos(t0), 0)\n\
    parameter t0 = 0\nparameter w = 0\nhamiltonian dot(p, p)/2 + q.y + w*(q.x*p.y - q.y*p.x)\n\
    constraint rod : (q.x - 0.3*sin(t))^2 + q.y^2 = 1\n";
const DRIVEN: &str = "coordinate x = 1\nmomentum p of x = 0.5\nparameter m = 2\n\
    hamiltonian p^2/(2*m) + x^4/4 - x*sin(3*t)\nobserve v = p/m\nobserve late = t\n";
const MAGNETIC: &str = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0.1, 0.9)\n\
    hamiltonian ((p.x + q.y)^2 + (p.y - q.x)^2)/2 + dot(q, q)^2/4\nintegral J = q.x*p.y - q.y*p.x\n";
const SKATE: &str = "coordinate r : R^2 = (0, 0)\nmomentum p of r = (1, 0)\ncoordinate a = 0\n\
    momentum u of a = 0.7\nhamiltonian dot(p, p)/2 + u^2 - 0.3*r.x\n\
    rolling blade : r.x'*sin(a) - r.y'*cos(a) = 0.2*sin(t)\n";
const SPIN: &str = "state w : R^3 = (1, 0.1, 0.2)\n\
    w' = cross(w, (w.x, w.y/2, w.z/3)) + (0, 0, cos(t)*0)\nintegral E = dot(w, w)\n";
const CHAIN: &str = "size n = 8\ncoordinate r[i in 1..n] : R^2 = (i, 0)\nmomentum p of r\n\
    hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y)\n\
    constraint anchor : dot(r[1], r[1]) = 1\n\
    constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1\n";

/// There and back again: symmetric steps return to the start up to rounding, others up to their
/// error. Energies, multipliers and observables on the way back are those of the way there.
#[test]
fn a_motion_there_and_back_returns_to_its_start() {
    let folder = Folder::new();
    let models = [
        ("pivot", PIVOT),
        ("driven", DRIVEN),
        ("magnetic", MAGNETIC),
        ("skate", SKATE),
        ("spin", SPIN),
        ("chain", CHAIN),
    ];
    for (name, text) in models {
        folder.write(&format!("{name}.holo"), text);
    }
    for (model, method, until, tolerance) in [
        ("driven", "", 5.0, 1e-7),
        ("driven", "--method stormer-verlet-a --step 0.01", 5.0, 1e-12),
        ("driven", "--method gauss4 --step 0.05", 5.0, 1e-12),
        ("driven", "--method plain:rk4 --step 0.01", 5.0, 1e-8),
        ("driven", "--method taylor", 5.0, 1e-7),
        ("driven", "--method gauss16 --rtol 1e-12", 5.0, 1e-9),
        ("driven", "--method yoshida4(stormer-verlet-b) --step 0.01", 5.0, 1e-11),
        ("magnetic", "", 5.0, 1e-7),
        ("magnetic", "--method corrected:rk4 --step 0.01", 5.0, 1e-7),
        ("magnetic", "--method implicit-midpoint --step 0.01", 5.0, 1e-11),
        ("skate", "", 3.0, 1e-7),
        ("skate", "--method corrected:gauss8 --step 0.02", 3.0, 1e-9),
        ("spin", "--method projection:tsit5", 5.0, 1e-7),
        ("spin", "--method symmetric-projection:gauss4 --step 0.05", 5.0, 1e-10),
        ("pivot", "", 5.0, 1e-7),
        ("pivot", "--method rattle --step 0.01", 5.0, 1e-10),
        ("pivot", "--method feedback:rk4 --step 0.01", 5.0, 1e-5),
        ("chain", "--method rattle --step 0.01", 1.0, 1e-9),
        ("chain", "", 1.0, 1e-5),
        // Templated.
        ("chain", "--set n=120 --method rattle --step 0.01", 0.5, 1e-8),
        ("chain", "--set n=120 --method corrected:tsit5", 0.2, 1e-5),
    ] {
        let own = format!("{model}.holo {method} --state");
        let there = folder.summary(&format!("run {own} --until {until} --samples 3 --out there"));
        let mut set = String::new();
        for (variable, value) in there["state"].as_object().unwrap() {
            set += &format!(" --set {variable}={}", formula(value, model == "chain"));
        }
        let back = format!("run {own}{set} --from {until} --until 0 --samples 3 --out back");
        let back = folder.summary(&back.replace("holo", "holo --project-initial"));
        // Times are t₀ + k·h.
        assert!(number(&back, "/t").abs() < 1e-14);
        let (names, rows) = folder.samples("there");
        let (names_back, rows_back) = folder.samples("back");
        assert_eq!(names, names_back, "{own}");
        let times = |rows: &[Vec<f64>]| rows.iter().map(|row| row[0]).collect::<Vec<f64>>();
        let mut reversed = times(&rows_back);
        reversed.reverse();
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-14;
        assert!(times(&rows).iter().zip(&reversed).all(is_near), "{own}: {reversed:?}");
        for (a, b) in rows.iter().zip(rows_back.iter().rev()) {
            for ((name, a), b) in names.iter().zip(a).zip(b) {
                let is_monitored = name.starts_with("residual") || name.starts_with("drift");
                // Multipliers at the ends of a run are those of one side.
                let is_force = name.starts_with("lambda");
                let near = if is_force { 0.2 } else { tolerance };
                assert!(is_monitored || (a - b).abs() <= near, "{own}: {name} {a} {b}");
            }
        }
        for out in ["there", "back"] {
            std::fs::remove_dir_all(folder.path(out)).unwrap();
        }
    }
}

/// x' = −x t has the solution x(0) = x(T) e^{T²/2}: a time that the field depends on goes backwards.
#[test]
fn explicit_time_goes_backwards() {
    let folder = Folder::new();
    folder.write("field.holo", "state x = 1\nx' = -x*t\nintegral J = x*exp(t^2/2)\n");
    for method in ["", "--method rk4 --step 1/500", "--method feedback:rk4 --step 1/500"] {
        let run = folder.summary(&format!("run field.holo {method} --from 2 --until -1"));
        let exact = (1.5f64).exp();
        assert!((number(&run, "/state/x") - exact).abs() < 1e-9 * exact, "{method}: {run}");
        assert_eq!(number(&run, "/t"), -1.0);
    }
}

/// Ensembles, in lanes and apart, and longer runs have the bits of single runs.
#[test]
fn backward_ensembles_and_longer_runs_have_the_bits_of_single_runs() {
    let folder = Folder::new();
    folder.write("driven.holo", DRIVEN);
    for method in ["--method stormer-verlet-a --step 0.01", "--method corrected:dop853"] {
        let span = "--from 3 --until -2";
        let sweep = format!("sweep driven.holo {method} {span} --samples 6 --trajectories 9");
        folder.run(&format!("{sweep} --vary p=1+i --out sweep")).ok();
        let (names, rows) = folder.samples("sweep");
        let single = format!("run driven.holo {method} {span} --samples 6 --set p=8 --out single");
        folder.run(&single).ok();
        let (_, of_single) = folder.samples("single");
        let place = |name: &str| names.iter().position(|n| n == name).unwrap();
        let of_seven: Vec<&Vec<f64>> =
            rows.iter().filter(|row| row[place("trajectory")] == 7.0).collect();
        assert_eq!(of_seven.len(), 6);
        for (a, b) in of_seven.iter().zip(&of_single) {
            assert_eq!([a[place("t")], a[place("x")], a[place("p")]], [b[0], b[1], b[2]]);
        }
        let part = format!("run driven.holo {method} --from 3 --until 1 --every 1 --set p=8");
        folder.run(&format!("{part} --out part")).ok();
        folder.run("resume part --until 2").refused(&["must be earlier than t = 1"]);
        folder.run("resume part --until -2").ok();
        assert_eq!(folder.samples("part").1, of_single, "{method}");
        for out in ["sweep", "single", "part"] {
            std::fs::remove_dir_all(folder.path(out)).unwrap();
        }
    }
}

#[test]
fn what_goes_forwards_only_is_refused() {
    let folder = Folder::new();
    folder.write("driven.holo", DRIVEN).write("from.holo", format!("{DRIVEN}run from = 200\n"));
    let bath = "--thermostat gla --friction 1 --inverse-temperature 1 --method stormer-verlet-b";
    folder.run(&format!("run driven.holo {bath} --step 0.01 --from 1 --until 0")).refused(&[
        "--thermostat gla",
        "no motion backwards",
        "--until 0 is before",
    ]);
    folder
        .run("compare from.holo --method rk4 --step 0.1 --until 100")
        .refused(&["a comparison goes forwards only"]);
    folder.run("run driven.holo --from 1 --until 1").refused(&["--until 1 is not after"]);
    // A measure takes its samples from its time on, and a failure has the model's time.
    folder.write("measured.holo", format!("{DRIVEN}measure centre = mean(x) every 0.5 from 2\n"));
    let measured = folder.summary("run measured.holo --from 3 --until 1");
    assert!(measured["measures"][0].to_string().contains("\"samples\":3"), "{measured}");
    folder.write("wall.holo", "state x = 1\nx' = -sqrt(x - 0.5*t)\n");
    let failed = folder.run("run wall.holo --from 1 --until 20 --json");
    assert_ne!(failed.code, Some(0));
}

/// `--error` compares two runs backwards, and the report draws one.
#[test]
fn errors_and_reports_of_backward_runs() {
    let folder = Folder::new();
    folder.write("driven.holo", DRIVEN);
    for method in ["", "--method rk4 --step 0.01"] {
        let run = folder
            .summary(&format!("run driven.holo {method} --from 3 --until 0 --error --report"));
        assert!(number(&run, "/orbit_error/families/p/max") < 1e-6, "{run}");
    }
}
