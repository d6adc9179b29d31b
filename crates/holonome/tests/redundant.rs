//! Redundant constraints: the motion, the multipliers of least norm, and what is said of them.

mod common;

use common::*;
use holonome::store::StoredRun;
use holonome::{Control, Problem, RunOptions, Settings, Sweep, SweepOptions};
use std::collections::BTreeMap;

fn problem(text: &str, settings: Settings) -> Problem {
    Problem::from_text("model", text, &BTreeMap::new(), &settings)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn solve(text: &str, how: &str) -> Finished {
    run(problem(text, Settings::default()), options(how)).unwrap_or_else(|error| panic!("{error}"))
}

/// A planar four-bar linkage of rigid bodies in space, with three equations too many; its joints in
/// this order.
fn four_bar(joints: [usize; 9]) -> String {
    let constraints = [
        "rigid[i in 1..3] : transpose(R[i])*R[i] = identity(3)",
        "j1 : from(1) = (0, 0, 0)",
        "a1 : (R[1][1,3], R[1][2,3]) = (0, 0)",
        "j2 : from(2) = upto(1)",
        "a2 : (R[2][1,3] - R[1][1,3], R[2][2,3] - R[1][2,3]) = (0, 0)",
        "j3 : upto(2) = upto(3)",
        "a3 : (R[2][1,3] - R[3][1,3], R[2][2,3] - R[3][2,3]) = (0, 0)",
        "j4 : from(3) = (1.3, 0, 0)",
        "a4 : (R[3][1,3], R[3][2,3]) = (0, 0)",
    ];
    let mut text = "\
        parameter len = (0.5, 1.2, 1)\n\
        parameter ang = (1.2, 0.46026730353422585, 1.6145108150334586)\n\
        parameter head[i in 1..3] = if(i == 1, (0, 0, 0), if(i == 2, (0.1811788772383368, 0.46601954298361314, 0), (1.3, 0, 0)))\n\
        let J(i) = len[i]*diag(len[i]^2/12, 1e-4, 1e-4)\n\
        coordinate c[i in 1..3] : R^3 = head[i] + len[i]/2*(cos(ang[i]), sin(ang[i]), 0)\n\
        coordinate R[i in 1..3] : R^(3,3) = matrix((cos(ang[i]), -sin(ang[i]), 0), (sin(ang[i]), cos(ang[i]), 0), (0, 0, 1))\n\
        momentum p of c\n\
        momentum P of R\n\
        let from(i) = c[i] - R[i]*(len[i]/2, 0, 0)\n\
        let upto(i) = c[i] + R[i]*(len[i]/2, 0, 0)\n\
        hamiltonian sum(i in 1..3 : dot(p[i], p[i])/(2*len[i]) + trace(P[i]*inverse(J(i))*transpose(P[i]))/2 + 9.81*len[i]*c[i].y)\n"
        .to_string();
    joints.iter().for_each(|&k| text.push_str(&format!("constraint {}\n", constraints[k])));
    text
}

const IN_ORDER: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn a_four_bar_linkage_in_space_moves_as_in_the_plane() {
    // By suite/reference/redundant.py with N = 4000.
    let exact = [
        0.119012712996841,
        0.219854438538619,
        0.768608648373745,
        0.719854275270373,
        1.2995959353769,
        0.499999836731754,
    ];
    let how = "--until 3 --samples 2 --rtol 1e-12 --atol 1e-12";
    let backwards = [8, 7, 6, 5, 4, 3, 2, 1, 0];
    for (method, joints, tolerance) in [
        ("corrected:dop853", IN_ORDER, 2e-11),
        ("corrected:dop853", backwards, 2e-11),
        ("corrected:gauss16 --step 0.01", IN_ORDER, 2e-11),
        // Of order 4, with an error of 4e-8 at this step that falls by 16 with half of it.
        ("suzuki4(rattle) --step 0.002", IN_ORDER, 1e-6),
    ] {
        let (method, step) = method.split_once(' ').unwrap_or((method, ""));
        let how = match step {
            "" => format!("{how} --method {method}"),
            step => format!("--until 3 --samples 2 --method {method} {step}"),
        };
        let found = solve(&four_bar(joints), &how);
        let c = &found.array("c")[1];
        for (k, exact) in exact.iter().enumerate() {
            let centre = &c[3 * (k / 2)..];
            let error = (centre[k % 2] - exact).abs();
            assert!(error < tolerance, "{method} {joints:?}: {c:?}, off by {error:e}");
        }
        // What is left out is monitored with the rest of its constraint.
        for drift in &found.summary.drift {
            assert!(drift.max < 1e-12 || drift.name == "H", "{method}: {drift:?}");
        }
        let left_out = found.summary.drift.iter().filter(|drift| drift.name == "a4").count();
        assert!(left_out > 0, "{:?}", found.summary.drift);
    }
}

#[test]
fn the_finding_names_components_and_their_loop() {
    let warnings = problem(&four_bar(IN_ORDER), Settings::default()).warnings();
    let [finding] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(
        finding.message.starts_with("constraints 'j4.z', 'a4.x' and 'a4.y' are redundant"),
        "{finding:?}"
    );
    let help = finding.help.as_ref().unwrap();
    // The joints act in the plane too, where all is determined.
    assert!(help.contains("j1.z, a1.x") && !help.contains("j1.x"), "{help}");
    assert!(help.ends_with("all other multipliers are determined"), "{help}");
}

/// Multipliers do not depend on which equations are left out.
#[test]
fn multipliers_are_those_of_least_norm() {
    let how = "--method rattle --step 0.001 --until 0.5 --samples 3";
    let first = solve(&four_bar(IN_ORDER), how);
    let second = solve(&four_bar([8, 6, 7, 0, 2, 1, 4, 3, 5]), how);
    for name in ["rigid", "j1", "a1", "j2", "a2", "j3", "a3", "j4", "a4"] {
        let name = format!("lambda.{name}");
        for (a, b) in first.array(&name).iter().zip(second.array(&name)) {
            // Both solve to round-off of numbers up to 1e2, over h² = 1e-6.
            assert!(distance(a, &b) < 1e-7, "{name}: {a:?} {b:?}");
        }
    }
    // The rods of a square that spins at the rate w pull by w²/12, its diagonals by w²/6: together
    // w²/4 gives the centripetal force, and (1, 1, 1, 1, -1, -1) no force. Steps of rattle leave h².
    // The field knows them in closed form.
    let (h, w2) = (1e-3, 1.0);
    let square = model("braced-square", &[]);
    for (method, tolerance) in
        [("rattle", h * h), ("shake", h * h), ("suzuki4(rattle)", h * h), ("gauss8", 1e-12)]
    {
        let how = format!("--method {method} --step {h} --until 0.5 --samples 3");
        let found = run(square.clone(), options(&how)).unwrap();
        for row in found.array("lambda.rod") {
            for (k, lambda) in row.iter().enumerate() {
                let exact = if k == 1 || k == 4 { w2 / 6.0 } else { w2 / 12.0 };
                assert!((lambda - exact).abs() < tolerance, "{method}: {row:?}");
            }
        }
    }
    // Matrices count all of their entries, in numbers and in formulas.
    let how = "--until 0.5 --samples 3 --rtol 1e-12 --atol 1e-12";
    let closed = solve(&four_bar(IN_ORDER), how);
    let other = solve(&four_bar([8, 6, 7, 0, 2, 1, 4, 3, 5]), how);
    for name in ["rigid", "j1", "a1", "j2", "a2", "j3", "a3", "j4", "a4"] {
        let name = format!("lambda.{name}");
        let [first, closed, other] = [&first, &closed, &other].map(|found| found.array(&name));
        for (a, b) in closed.iter().zip(&other) {
            assert!(distance(a, b) < 1e-8, "{name}: {a:?} {b:?}");
        }
        // Steps of rattle leave h² within the run, times the square of rates of up to 1e2.
        let off = distance(&first[1], &closed[1]);
        assert!(off < 1e-2, "{name}: off by {off:e}, {:?} {:?}", first[1], closed[1]);
    }
}

/// A girder of squares with both diagonals, free and spinning, in a field.
fn girder(squares: usize) -> String {
    format!(
        "size n = {squares}\n\
        parameter spin = 0.2\n\
        coordinate a[i in 0..n] : R^2 = (i, 0)\n\
        coordinate b[i in 0..n] : R^2 = (i, 1)\n\
        momentum pa[i] of a = spin*(0.5, i - n/2)\n\
        momentum pb[i] of b = spin*(-0.5, i - n/2)\n\
        hamiltonian sum(i in 0..n : dot(pa[i], pa[i])/2 + dot(pb[i], pb[i])/2 + (a[i].y + b[i].y)/5)\n\
        constraint post[i in 0..n] : dot(a[i] - b[i], a[i] - b[i]) = 1\n\
        constraint lower[i in 1..n] : dot(a[i] - a[i-1], a[i] - a[i-1]) = 1\n\
        constraint upper[i in 1..n] : dot(b[i] - b[i-1], b[i] - b[i-1]) = 1\n\
        constraint up[i in 1..n] : dot(b[i] - a[i-1], b[i] - a[i-1]) = 2\n\
        constraint down[i in 1..n] : dot(a[i] - b[i-1], a[i] - b[i-1]) = 2\n"
    )
}

/// Largest distance of the last sample of a girder from its motion: the centre falls, and all turn.
fn girder_error(found: &Finished, squares: usize, until: f64) -> f64 {
    let centre = [squares as f64 / 2.0, 0.5 - until * until / 10.0];
    let (sine, cosine) = (0.2 * until).sin_cos();
    let mut largest: f64 = 0.0;
    for (name, y) in [("a", -0.5), ("b", 0.5)] {
        let last = found.array(name).pop().unwrap();
        for (i, at) in last.chunks(2).enumerate() {
            let x = i as f64 - squares as f64 / 2.0;
            let exact = [centre[0] + cosine * x - sine * y, centre[1] + sine * x + cosine * y];
            largest = largest.max(distance(at, &exact));
        }
    }
    largest
}

#[test]
fn unrolled_and_templated_girders_turn_and_share_their_loads() {
    for (squares, method) in [(3, "suzuki4(rattle)"), (60, "suzuki4(rattle)"), (60, "rattle")] {
        let until = 1.0;
        let how = format!("--method {method} --step 0.01 --until {until} --samples 3");
        let found = solve(&girder(squares), &how);
        // A turning rigid body has the error of one angle, which grows with the distance: (h w)²/24
        // of the angle for rattle, far less for order 4.
        let order = if method == "rattle" { (0.01f64 * 0.2).powi(2) } else { 1e-8 };
        let error = girder_error(&found, squares, until);
        assert!(error < order * squares as f64, "{method} {squares}: {error:e}");
        for drift in found.summary.drift.iter().filter(|drift| drift.name != "H") {
            assert!(drift.max < 1e-11, "{drift:?}");
        }
        let sample = |name: &str| found.array(&format!("lambda.{name}")).remove(1);
        let [post, lower, upper, up, down] = ["post", "lower", "upper", "up", "down"].map(sample);
        let size = lower.iter().fold(0.0, |size, v| f64::max(size, v.abs()));
        for i in 0..squares {
            // Each square by itself can hold this stress without forces outside.
            let stress = post[i] + post[i + 1] + lower[i] + upper[i] - up[i] - down[i];
            assert!(stress.abs() < 1e-11 * size, "{squares}, square {i}: {stress:e} of {size}");
            // By symmetry.
            assert!((up[i] - down[i]).abs() < 1e-6 * size, "{squares}, square {i}");
        }
    }
}

#[test]
fn every_trajectory_of_a_sweep_has_its_own_multipliers() {
    let path = repository().join("models/braced-square.holo");
    let folder = std::env::temp_dir().join(format!("holonome-redundant-{}", std::process::id()));
    let how = "--method rattle --step 0.002 --until 0.2 --samples 2";
    let run = RunOptions { out: Some(folder.clone()), ..options(how) };
    let ensemble = SweepOptions {
        trajectories: 10,
        vary: vec![("spin".into(), "0.5+0.1*i".into())],
        ..SweepOptions::default()
    };
    let mut sweep = Sweep::load(&path, &Settings::default(), run, ensemble).unwrap();
    sweep.run(&mut |_| Control::Continue).unwrap();
    let found = StoredRun::open(&folder).unwrap().read("lambda.rod").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for (i, rows) in found.chunks(12).enumerate() {
        let spin = 0.5 + 0.1 * i as f64;
        for (k, lambda) in rows.iter().enumerate() {
            let exact = spin * spin / if k % 6 == 1 || k % 6 == 4 { 6.0 } else { 12.0 };
            assert!((lambda - exact).abs() < 4e-6 * spin * spin, "{i}: {rows:?}");
        }
    }
}

#[test]
fn rough_starts_of_redundant_models_are_projected() {
    let rough = "parameter e = 0.03\n\
        coordinate r[i in 1..4] : R^2 = (if(i == 2 or i == 3, 1 + e, e*i/2), if(i >= 3, 1, -e))\n\
        momentum p[i] of r = (1, i)\n\
        hamiltonian sum(i in 1..4 : dot(p[i], p[i])/2 + r[i].y)\n\
        constraint rod[i in 1..4, j in i+1..4] : dot(r[i] - r[j], r[i] - r[j]) = if(j - i == 2, 2, 1)\n";
    for text in [rough, &four_bar(IN_ORDER).replace("(0, 0, 1))", "(0.01, 0.02, 1.01))")] {
        let settings = Settings { project_initial: true, ..Settings::default() };
        let problem = problem(text, settings);
        assert!(problem.projected.as_ref().unwrap().position > 1e-3);
        let how = "--method rattle --step 0.01 --until 0.1 --samples 2";
        let found = run(problem, options(how)).unwrap_or_else(|error| panic!("{error}"));
        for drift in found.summary.drift.iter().filter(|drift| drift.name != "H") {
            assert!(drift.max < 1e-12, "{drift:?}");
        }
    }
}

/// Three cranks on one rod, side by side: a parallelogram, which the third one holds together.
const CRANKS: &str = "\
    parameter W = 1.2\n\
    parameter a0 = 0.9272952180016122\n\
    coordinate a : R^2 = (0.6, 0.8)\n\
    coordinate b : R^2 = (3.6, 0.8)\n\
    coordinate c : R^2 = (1.6, 0.8)\n\
    velocity va of a = W*(-0.8, 0.6)\n\
    velocity vb of b = W*(-0.8, 0.6)\n\
    velocity vc of c = W*(-0.8, 0.6)\n\
    hamiltonian dot(p_a, p_a)/2 + dot(p_b, p_b)/2.6 + dot(p_c, p_c)/0.8 + 9.81*(a.y + 1.3*b.y + 0.4*c.y)\n\
    constraint crank : a = (cos(W*t + a0), sin(W*t + a0))\n\
    constraint rocker : dot(b - (3, 0), b - (3, 0)) = 1\n\
    constraint coupler : dot(b - a, b - a) = 9\n\
    constraint on : c = a + (b - a)/3\n\
    constraint brace : dot(c - (1, 0), c - (1, 0)) = 1\n";

#[test]
fn a_mechanism_that_folds_where_a_redundant_constraint_forbids_it_is_no_result() {
    // At 1.845 all rods are in line, and the four-bar linkage may go on crossed, without its brace.
    for method in
        ["plain:gauss8", "corrected:dop853", "corrected:rk4 --step 0.001", "rattle --step 0.001"]
    {
        match run(
            problem(CRANKS, Settings::default()),
            options(&format!("--method {method} --until 3 --singular continue")),
        ) {
            Ok(found) => {
                let state = found.state();
                let off = (state[4] - 1.0).hypot(state[5]) - 1.0;
                assert!(off.abs() < 1e-3, "{method}: {state:?}");
            }
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.contains("in which the others are dependent")
                        || error.contains("collapsed"),
                    "{method}: {error}"
                );
            }
        }
    }
    let error = run(
        problem(CRANKS, Settings::default()),
        options("--method plain:gauss8 --until 3 --singular continue"),
    );
    let error = error.err().expect("it folds").to_string();
    assert!(error.starts_with("brace followed from the other constraints"), "{error}");
}
