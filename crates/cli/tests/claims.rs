//! Claims that fail only along the run: the run goes on without them, and reports that.

mod common;

use common::{Folder, number};
use serde_json::Value;
use std::process::Stdio;

/// Model of a particle that meets a wall at x = 40, where its momentum stops being constant, and
/// another at y = 30.
const WALLS: &str = "coordinate q : R^2 = (0, 0)
momentum p of q = (1, 0.5)
hamiltonian dot(p, p)/2 + 5*max(q.x - 40, 0)^2 + 5*max(q.y - 30, 0)^2
integral Y = p.y
integral X = p.x
";

const METHODS: [&str; 7] = [
    "--rtol 1e-9",
    "--method corrected:rk4 --step 0.01",
    "--method projection:dopri5 --step 0.01",
    "--method symmetric-projection:rk4 --step 0.01",
    "--method feedback:rk4 --step 0.01",
    "--method plain:rk4 --step 0.002",
    "--method stormer-verlet-a --step 0.01",
];

fn warnings(object: &Value) -> Vec<String> {
    serde_json::from_value(object["warnings"].clone()).unwrap()
}

#[test]
fn a_claim_that_fails_on_the_way_is_not_held_any_more() {
    let folder = Folder::new();
    folder.write("walls.holo", WALLS);
    for method in METHODS {
        let summary = folder.summary(&format!("run walls.holo {method} --until 100"));
        // Through each wall and back: the phase in a wall is half a turn of the frequency sqrt(10).
        let there = [
            80.0 - 100.0 + std::f64::consts::PI / 10f64.sqrt(),
            10.0 + std::f64::consts::PI / 40f64.sqrt(),
        ];
        for (k, there) in there.into_iter().enumerate() {
            let off = number(&summary, &format!("/state/q/{k}")) - there;
            // The methods meet the walls in the middle of a step; Stormer-Verlet turns its phase by
            // (h omega)^2/24.
            assert!(off.abs() < 1e-2, "{method}: {summary}");
        }
        let told = warnings(&summary);
        for (name, reached) in [("X", 40.0), ("Y", 60.0)] {
            assert_eq!(summary["drift"]["integrals"][name]["held"], false, "{method}: {summary}");
            let warning = told
                .iter()
                .find(|warning| warning.contains(&format!("integral '{name}' is not constant")));
            let warning = warning.unwrap_or_else(|| panic!("{method}: {told:?}"));
            let seen: f64 = warning
                .split("at t = ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .unwrap()
                .parse()
                .unwrap();
            assert!((reached..reached + 1.0).contains(&seen), "{method}: {warning}");
        }
    }
    let shown = folder.run("run walls.holo --until 100").ok();
    assert!(shown.stdout.contains("integral X (varies, not held)"), "{shown:?}");
    assert!(
        shown.stderr.contains("integral 'X' is not constant along the motion: at t = 40."),
        "{shown:?}"
    );
    // A claim that holds is held all along, without a warning.
    let held = folder.summary("run walls.holo --until 39");
    assert!(
        warnings(&held).is_empty() && held["drift"]["integrals"]["X"]["held"].is_null(),
        "{held}"
    );
}

#[test]
fn vectors_families_and_moving_integrals() {
    let folder = Folder::new();
    let body = "hamiltonian dot(p, p)/2 + cos(t)*q.y + 5*max(q.x - 40, 0)^2\n";
    let start = "coordinate q : R^2 = (0, 0)\nmomentum p of q = (1, 0.5)\n";
    folder
        .write("moves.holo", format!("{start}{body}integral X = p.x\nintegral Y = p.y + sin(t)\n"));
    folder.write(
        "vector.holo",
        format!("{start}{}integral P = p\n", body.replace("cos(t)*q.y + ", "")),
    );
    folder.write(
        "family.holo",
        "coordinate q[i in 1..3] : R^2 = (0, i)\nmomentum p[i] of q = (i, 0.5)\nhamiltonian sum(i in 1..3 : dot(p[i], p[i])/2 + 5*max(q[i].x - 40, 0)^2)\nintegral P[i in 1..3] = p[i].x\n",
    );
    for (model, failing, holding) in
        [("moves", "X", Some("Y")), ("vector", "P", None), ("family", "P", None)]
    {
        for method in [
            "--rtol 1e-9",
            "--method corrected:rk4 --step 0.01",
            "--method feedback:rk4 --step 0.01",
        ] {
            let summary = folder.summary(&format!("run {model}.holo {method} --until 60"));
            let integrals = &summary["drift"]["integrals"];
            assert_eq!(integrals[failing]["held"], false, "{model} {method}: {summary}");
            if let Some(name) = holding {
                assert!(integrals[name]["held"].is_null(), "{model} {method}: {summary}");
                assert!(number(&integrals[name], "/max") < 1e-9, "{model} {method}: {summary}");
            }
        }
    }
}

#[test]
fn resume_knows_what_was_left_out() {
    let folder = Folder::new();
    folder.write("walls.holo", WALLS);
    for method in METHODS {
        let run = format!("run walls.holo {method} --until 100 --samples 1001 --quiet --out");
        folder.run(&format!("{run} whole")).ok();
        // Before the first wall, where the samples go back, between the two, and after both.
        for point in ["samples 390", "samples 402", "checkpoint 500", "checkpoint 700"] {
            let flag = folder.path("flag");
            let mut killed = folder
                .command(&format!("{run} part"))
                .env("HOLONOME_HOLD", format!("{point} {}", flag.display()))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            while !flag.exists() && killed.try_wait().unwrap().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            killed.kill().unwrap();
            assert!(!killed.wait().unwrap().success(), "{method}: it ends before {point}");
            let resumed = folder.run("resume part --quiet --json").ok().json();
            assert_eq!(
                resumed["drift"]["integrals"]["Y"]["held"], false,
                "{method} {point}: {resumed}"
            );
            assert!(
                folder.samples("whole") == folder.samples("part"),
                "{method}: other samples after {point}"
            );
            std::fs::remove_file(flag).unwrap();
            std::fs::remove_dir_all(folder.path("part")).unwrap();
        }
        std::fs::remove_dir_all(folder.path("whole")).unwrap();
    }
}

#[test]
fn trajectories_of_a_sweep_are_runs() {
    let folder = Folder::new();
    folder.write("walls.holo", WALLS);
    for method in METHODS {
        let sweep = format!(
            "sweep walls.holo --trajectories 5 --vary p=(0.1+0.2*i,0.5) --until 55 {method}"
        );
        let summary = folder.summary(&format!("{sweep} --out sweep"));
        // x = 40 is reached before 55 from p.x = 0.9 on; y = 30 after.
        let told = warnings(&summary);
        assert!(
            told.iter().any(|w| w.starts_with("1 of 5 trajectories: integral 'X' is not constant")),
            "{method}: {told:?}"
        );
        assert!(!told.iter().any(|w| w.contains("'Y'")), "{method}: {told:?}");
        assert_eq!(summary["drift"]["integrals"]["X"]["held"], false, "{summary}");
        let ends = folder.samples("sweep").1;
        let run = folder.summary(&format!(
            "run walls.holo --set p=(0.1+0.2*4,0.5) --until 55 --samples 2 {method}"
        ));
        let last = ends.last().unwrap();
        let reached = number(&run, "/state/q/0");
        assert!(last.contains(&reached), "{method}: {reached} is not in {last:?}");
        std::fs::remove_dir_all(folder.path("sweep")).unwrap();
    }
}

#[test]
fn each_method_of_a_comparison_says_what_it_left_out() {
    let folder = Folder::new();
    folder.write("walls.holo", WALLS);
    let compare = "compare walls.holo --method corrected:rk4 --method projection:rk4 --method rk4 --step 0.01 --until 50";
    let summary = folder.summary(compare);
    for (row, method) in ["corrected:rk4", "projection:rk4", "rk4"].into_iter().enumerate() {
        let integrals = &summary["rows"][row]["drift"]["integrals"];
        assert!(integrals["X"]["held"] == false && integrals["Y"]["held"].is_null(), "{summary}");
        let said = format!("{method}: integral 'X' is not constant");
        assert!(warnings(&summary).iter().any(|warning| warning.starts_with(&said)), "{summary}");
    }
}

#[test]
fn a_correction_that_leads_nowhere_fails_as_a_projection_does() {
    let folder = Folder::new();
    folder.write(
        "contradicts.holo",
        "state x : R^2 = (1, 0)\nstate z = 0\nx' = (-x.y, x.x)\nz' = 1\nconstraint one : dot(x, x) = 1\nconstraint two : dot(x, x) = 1 + if(z > 5, 0.5, 0)\n",
    );
    for (method, kind) in [
        ("--rtol 1e-9", "correction-fails"),
        ("--method corrected:rk4 --step 0.01", "correction-fails"),
        ("--method projection:rk4 --step 0.01", "projection-not-converged"),
    ] {
        let failed = folder.run(&format!("run contradicts.holo {method} --until 10 --json"));
        assert_eq!(failed.code, Some(1), "{failed:?}");
        let error = &failed.json()["error"];
        assert_eq!(error["kind"], kind, "{error}");
        assert!(
            (5.0..6.5).contains(&number(error, "/t")) && number(error, "/residual") > 0.05,
            "{error}"
        );
        assert!(["one", "two"].contains(&error["constraint"].as_str().unwrap()), "{error}");
        // One of three trajectories reaches z = 5.
        let swept = folder.run(&format!(
            "sweep contradicts.holo --trajectories 3 --vary z=4*i-8 {method} --until 7 --json"
        ));
        let object = swept.json();
        assert_eq!((swept.code, number(&object, "/failed")), (Some(1), 1.0), "{object}");
        let reason = object["failures"][0]["message"].as_str().unwrap();
        assert!(
            object["failures"][0]["trajectory"] == 2
                && reason.contains("one") | reason.contains("two"),
            "{object}"
        );
    }
}

#[test]
fn a_field_that_leaves_its_constraint_fails_with_the_time() {
    let folder = Folder::new();
    folder.write(
        "leaves.holo",
        "state x : R^2 = (1, 0)\nstate z = 0\nx' = (-x.y, x.x) + max(z - 20, 0)*x\nz' = 1\nconstraint circle : dot(x, x) = 1\n",
    );
    for method in
        ["--rtol 1e-9", "--method corrected:rk4 --step 0.01", "--method projection:rk4 --step 0.01"]
    {
        let failed = folder.run(&format!("run leaves.holo {method} --until 30 --json"));
        assert_eq!(failed.code, Some(1), "{failed:?}");
        let t = number(&failed.json(), "/error/t");
        assert!((20.0..23.0).contains(&t), "{method}: {failed:?}");
        assert!(failed.stderr.contains("'circle'"), "{failed:?}");
        let swept = folder.run(&format!(
            "sweep leaves.holo --trajectories 3 --vary z=10*i-10 {method} --until 15 --json"
        ));
        assert_eq!((swept.code, number(&swept.json(), "/failed")), (Some(1), 1.0), "{swept:?}");
        assert!(
            swept.json()["failures"][0]["message"].as_str().unwrap().contains("'circle'"),
            "{swept:?}"
        );
    }
}

/// Oscillator with a claim that fails while a force acts across it, for less than half a unit of
/// time.
const PULSE: &str = "coordinate q : R^2 = (1, 0)
momentum p of q = (0, 0.5)
hamiltonian dot(p, p)/2 + dot(q, q)/2 + 10*exp(-((t - 20)/0.1)^2)*q.x
integral J = q.x*p.y - q.y*p.x
";

/// Motion on a circle that a region of it pushes away from the centre, along 0.04 of the way
/// around.
const REGION: &str = "state q : R^2 = (1, 0)
let f = 0.3/0.01*exp(-((q.x/norm(q) - 0.6)/0.01)^2)*if(q.y > 0, 1, 0)
q' = (-q.y + f*q.x, q.x + f*q.y)
constraint circle : dot(q, q) = 1
";

/// Methods that hold claims in every way. At these steps the pulse and the region are passed in a
/// few steps.
const HOLDING: [&str; 10] = [
    "--rtol 1e-9",
    "--method corrected:gauss16",
    "--method corrected:rk4 --step 0.05",
    "--method corrected:gauss16 --step 0.05",
    "--method corrected:euler --step 0.01",
    "--method projection:dop853",
    "--method projection:gauss16 --step 0.05",
    "--method projection:euler --step 0.01",
    "--method symmetric-projection:gauss4 --step 0.05",
    "--method symmetric-projection:midpoint --step 0.01",
];

#[test]
fn an_integral_that_fails_for_a_moment_is_found_there() {
    let folder = Folder::new();
    folder.write("pulse.holo", PULSE);
    for method in
        HOLDING.into_iter().chain(["--method feedback:rk4 --step 0.05", "--method rk4 --step 0.05"])
    {
        let summary = folder.summary(&format!("run pulse.holo --until 40 {method}"));
        let drift = &summary["drift"]["integrals"]["J"];
        assert_eq!(drift["held"], false, "{method}: {summary}");
        // The torque is 10 q.y exp(-((t - 20)/0.1)^2) with q.y = sin(t)/2; its integral has a
        // closed form. Methods of order 4 make some ten steps in it, which leaves a hundredth;
        // Euler's method loses half of the sum by itself.
        let torque = 0.5 * 20f64.sin() * std::f64::consts::PI.sqrt() * (-0.0025f64).exp();
        let allowed = if method.contains("euler") { 0.5 } else { 0.01 };
        assert!((number(drift, "/final") - torque).abs() < allowed, "{method}: {summary}");
        // 10 exp(-((t - 20)/0.1)^2) is visible from 19.64 on and over by 20.36.
        let warning = warnings(&summary)
            .into_iter()
            .find(|warning| warning.contains("'J' is not constant"))
            .unwrap();
        let seen: f64 = warning
            .split("at t = ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap()
            .parse()
            .unwrap();
        assert!((19.6..20.4).contains(&seen), "{method}: {warning}");
    }
    for method in HOLDING {
        let sweep = format!(
            "sweep pulse.holo --until 40 --trajectories 9 --vary q=(1+0.01*i,0) {method} --out sweep"
        );
        let told = warnings(&folder.summary(&sweep));
        assert!(
            told.iter().any(|warning| warning.starts_with("9 of 9 trajectories: integral 'J'")),
            "{told:?}"
        );
        std::fs::remove_dir_all(folder.path("sweep")).unwrap();
    }
}

#[test]
fn a_constraint_that_the_field_leaves_for_a_moment_ends_the_run() {
    let folder = Folder::new();
    folder.write("region.holo", REGION);
    // The region is at an angle of acos 0.6 = 0.927, and acos 0.65 = 0.863 is outside of it.
    for method in HOLDING {
        let failed =
            folder.run(&format!("run region.holo --until 20 {method} --json --out region"));
        let error = &serde_json::from_str::<Value>(&failed.stdout).unwrap()["error"];
        assert!(
            error["message"].as_str().unwrap().contains("'circle' is not constant"),
            "{method}: {error}"
        );
        assert!((0.86..1.0).contains(&number(error, "/t")), "{method}: {error}");
        std::fs::remove_dir_all(folder.path("region")).unwrap();
    }
}

#[test]
fn coarse_steps_are_no_false_claims() {
    let folder = Folder::new();
    let pendulum = "parameter g = 9.81\ncoordinate q : R^2 = (1, 0)\nmomentum p of q\nhamiltonian dot(p, p)/2 + g*q.y\nconstraint rod : dot(q, q) = 1\n";
    let spherical = "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1\nintegral J = q.x*p.y - q.y*p.x\n";
    let triangle = "parameter m = (45, 72, 36)\nparameter x0[i in 1..3] = if(i == 1, (0, 0, 0), if(i == 2, (0.32, 0, 0), (0.08, 0.26, 0)))\ncoordinate r[i in 1..3] : R^3 = x0[i]\nvelocity v of r = cross((0.3, 1.1, 0.4), x0[i]) + (0.1, 0, -0.2)\nhamiltonian sum(i in 1..3 : dot(p_r[i], p_r[i])/(2*m[i]))\nconstraint d[i in 1..3, j in i+1..3] : dot(r[i] - r[j], r[i] - r[j]) = dot(x0[i] - x0[j], x0[i] - x0[j])\nintegral P = sum(i in 1..3 : p_r[i])\nintegral L = sum(i in 1..3 : cross(r[i], p_r[i]))\n";
    for (name, text) in [("pendulum", pendulum), ("spherical", spherical), ("triangle", triangle)] {
        folder.write(&format!("{name}.holo"), text);
        for method in [
            "corrected:tsit5 --rtol 1e-3",
            "corrected:dop853 --rtol 1e-2",
            "corrected:gauss16 --rtol 1e-3",
            "corrected:euler --step 0.01",
            "corrected:heun --step 0.1",
            "corrected:rk4 --step 0.1",
            "projection:tsit5 --rtol 1e-3",
            "symmetric-projection:gauss4 --step 0.1",
            "feedback:tsit5 --rtol 1e-3",
        ] {
            let summary = folder.summary(&format!("run {name}.holo --until 100 --method {method}"));
            assert!(
                !warnings(&summary).iter().any(|told| told.contains("not constant")),
                "{name} {method}: {summary}"
            );
        }
    }
    // The same orbit in steps far longer than its error allows, as in the trial of 2022 by Euler's
    // method.
    folder.summary("run spherical.holo --until 100 --method corrected:euler --step 0.1");
}
