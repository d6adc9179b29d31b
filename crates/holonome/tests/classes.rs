//! Constraints of every class: Dirac's algorithm to its end, against motions in coordinates without
//! constraints.

mod common;

use common::*;
use holonome::check::Report;
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

/// A rod and a second-class pair.
const FLAT: &str = "\
    coordinate q : R^3 = (0, 1, 0)\n\
    momentum p of q = (-1, 0, 0)\n\
    hamiltonian dot(p, p)/2 + q.y + 0.3*q.x^2\n\
    constraint rod : dot(q, q) = 1\n\
    constraint flat : q.z = 0\n\
    constraint still : p.z = 0\n";

/// A pendulum whose multiplier is a coordinate.
const LOCK: &str = "\
    parameter m = 1.3\n\
    parameter g = 0.7\n\
    coordinate q : R^2 = (0.6, -0.8)\n\
    coordinate u = 0.364\n\
    momentum p of q = (0, 0)\n\
    momentum p_u of u = 0\n\
    hamiltonian dot(p, p)/(2*m) + m*g*q.y + u*(dot(q, q) - 1)\n\
    constraint lock : p_u = 0\n";

/// A double pendulum whose multipliers are coordinates.
const DOUBLE: &str = "\
    coordinate q[i in 1..2] : R^2 = (1, 1 - i)\n\
    coordinate u[i in 1..2] = 0\n\
    momentum p of q\n\
    momentum w of u\n\
    hamiltonian sum(i in 1..2 : dot(p[i], p[i])/2 + q[i].y) + u[1]*(dot(q[1], q[1]) - 1) + u[2]*(dot(q[2] - q[1], q[2] - q[1]) - 1)\n\
    constraint lock[i in 1..2] : w[i] = 0\n";

/// Three point vortices, by the primary constraints of a Lagrangian that is linear in velocities.
const VORTICES: &str = "\
    size n = 3\n\
    parameter G[i in 1..n] = list(1, 2, -1)\n\
    parameter a[i in 1..n] = list(0, 1, 0.3)\n\
    parameter b[i in 1..n] = list(0, 0.2, 1)\n\
    coordinate x[i in 1..n] = a[i]\n\
    coordinate y[i in 1..n] = b[i]\n\
    momentum p[i] of x = G[i]*b[i]/2\n\
    momentum s[i] of y = -G[i]*a[i]/2\n\
    hamiltonian -sum(i in 1..n, j in i+1..n : G[i]*G[j]*log((x[i]-x[j])^2 + (y[i]-y[j])^2))/(4*pi)\n\
    constraint first[i in 1..n] : p[i] = G[i]*y[i]/2\n\
    constraint second[i in 1..n] : s[i] = -G[i]*x[i]/2\n";

/// A constraint on positions whose velocity H gives without its momentum: hidden ones up to third
/// order.
const STEERED: &str = "\
    coordinate q : R^2 = (0, 0.3)\n\
    momentum p of q = (0, 0)\n\
    hamiltonian p.x^2/2 + p.y*q.x + q.x^2/2 + q.y\n\
    constraint level : q.y = 0.3\n";

fn problem(text: &str, settings: Settings) -> Problem {
    Problem::from_text("model", text, &BTreeMap::new(), &settings)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// State at the end of a run, and the largest drift of an invariant relative to its terms.
fn end(text: &str, how: &str) -> (Vec<f64>, f64) {
    let settings = Settings { project_initial: true, ..Settings::default() };
    let done = run(problem(text, settings), options(how)).unwrap_or_else(|error| panic!("{error}"));
    let relative = done.summary.drift.iter().filter_map(|drift| drift.relative);
    (done.state(), relative.map(|relative| relative.max).fold(0.0, f64::max))
}

/// Values of suite/reference/classes.py, and the time.
#[test]
fn motions_are_those_without_constraints() {
    let flat = [
        -0.654551899897161,
        0.7560170701386424,
        0.0,
        -0.8387711941455268,
        -0.7261995798670035,
        0.0,
    ];
    let lock = [-0.5099081504131777, -0.8602288521912132, 0.446212383241006];
    let double = [0.1863544302391709, -0.9824825832197912, -0.590983679429103, -0.3533995495450985];
    let vortices = [
        0.6024180290355099,
        0.3230548024959638,
        -0.4514723659725625,
        -1.036742515662142,
        -0.1304382597833682,
        -0.6976190352288787,
    ];
    let all: &[&str] = &["corrected:dop853", "corrected:gauss8", "plain:dop853"];

    let cases: [(&str, &[f64], &str, &[&str]); 4] = [
        (FLAT, &flat, "--until 5", all),
        (LOCK, &lock, "--until 20", all),
        (DOUBLE, &double, "--until 5", all),
        (VORTICES, &vortices, "--until 5", all),
    ];
    for (text, expected, how, methods) in cases {
        for method in methods {
            let (state, drift) = end(text, &format!("{how} --method {method}"));
            // Ten tolerances.
            let off = distance(&state[..expected.len()], expected);
            assert!(off < 1e-8, "{method} is off by {off:e} for\n{text}");
            // At rest the terms of a hidden constraint are rounding themselves.
            let bound = if *method == "plain:dop853" { 1e-8 } else { 1e-11 };
            assert!(drift < bound, "{method} drifts by {drift:e} for\n{text}");
        }
    }
}

/// A momentum that a constraint holds at 0 does not make steps shorter: a run takes about as many as
/// that of the same pendulum with a constraint on its positions.
#[test]
fn a_momentum_that_is_held_at_0_does_not_collapse_steps() {
    let rod = "coordinate q : R^2 = (0.6, -0.8)\nmomentum p of q\nhamiltonian dot(p, p)/2.6 + 0.91*q.y\nconstraint rod : dot(q, q) = 1\n";
    let steps = |text: &str| {
        let done = run(problem(text, Settings::default()), options("--until 20")).unwrap();
        done.summary.steps
    };
    let (own, with_rod) = (steps(LOCK), steps(rod));
    assert!(own < 4 * with_rod, "{own} steps, and {with_rod} with a rod");
}

#[test]
fn the_tree_of_hidden_constraints_is_reported() {
    let report = |text: &str| {
        let settings = Settings { project_initial: true, ..Settings::default() };
        serde_json::to_value(Report::new(&problem(text, settings))).unwrap()
    };
    let tree = |text: &str| {
        let report = report(text);
        let constraints = report["constraints"].as_array().unwrap().clone();
        let rows = constraints.iter().flat_map(|row| row["classes"].as_array().unwrap().clone());
        let row = |row: serde_json::Value| {
            let with = row["second_class_with"].as_array().unwrap();
            let with: Vec<&str> = with.iter().map(|name| name.as_str().unwrap()).collect();
            format!("{}: {}", row["name"].as_str().unwrap(), with.join(", "))
        };
        (rows.map(row).collect::<Vec<_>>().join("; "), report["dimension_left"].as_u64().unwrap())
    };
    let expected = [
        (FLAT, "rod: rod.hidden; rod.hidden: rod; flat: still; still: flat", 2),
        (
            LOCK,
            "lock: lock.hidden3; lock.hidden: lock.hidden2; lock.hidden2: lock.hidden; lock.hidden3: lock",
            2,
        ),
        (
            DOUBLE,
            "lock: lock.hidden3; lock.hidden: lock.hidden2; lock.hidden2: lock.hidden; lock.hidden3: lock",
            4,
        ),
        (VORTICES, "first: second; second: first", 6),
        (
            STEERED,
            "level: level.hidden; level.hidden: level; level.hidden2: level.hidden3; level.hidden3: level.hidden2",
            0,
        ),
    ];
    for (text, rows, dimension) in expected {
        assert_eq!(tree(text), (rows.to_string(), dimension), "{text}");
    }
}

#[test]
fn methods_with_fibres_say_that_these_constraints_have_none() {
    for method in ["shake", "rattle"] {
        let done = run(
            problem(FLAT, Settings::default()),
            options(&format!("--until 1 --step 0.1 --method {method}")),
        );
        let error = done.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("not coisotropic") && error.contains("corrected:dop853"), "{error}");
    }
}

/// Guiding centre of a trapped particle in a tokamak, with coordinates of unlike sizes (Qin, Guan, Tang,
/// Phys. Plasmas 16 (2009) 042510).
const GUIDING_CENTRE: &str = "\
    parameter mu = 2.25e-6\n\
    coordinate x : R^3 = (1.05, 0, 0)\n\
    coordinate u = 4.306e-4\n\
    let R = sqrt(x.x^2 + x.y^2)\n\
    let r2 = (R - 1)^2 + x.z^2\n\
    let D = sqrt(4 + r2)\n\
    let A = (x.x*x.z/(2*R^2) + r2*x.y/(4*R^2), x.y*x.z/(2*R^2) - r2*x.x/(4*R^2), -log(R)/2)\n\
    let b = (-(2*x.y + x.x*x.z)/(R*D), (2*x.x - x.y*x.z)/(R*D), (R - 1)/D)\n\
    lagrangian dot(A + u*b, x') - u^2/2 - mu*D/(2*R)\n";

#[test]
fn momenta_without_any_mass_have_the_scale_of_an_action() {
    // By ω(z) z' = ∇H, with ω from SymPy, and SciPy's DOP853 at a relative tolerance of 1e-13.
    let expected =
        [-0.6796561804629134, 0.7581917859983065, 0.03591010059233054, 0.00022831876907014408];
    for method in ["corrected:dop853", "plain:dop853", "corrected:gauss16", "radau5"] {
        let with = format!("--method {method} --until 40000 --max-steps 2000");
        let (state, _) = end(GUIDING_CENTRE, &with);
        let off = distance(&state[..4], &expected);
        assert!(off < 1e-6, "{method}: {off:e}");
    }
}

#[test]
fn collocation_starts_from_rest_with_a_multiplier_as_coordinate() {
    // From a horizontal rod u begins at 0, like a power of the time.
    let text = "\
        coordinate q : R^2 = (1, 0)\n\
        coordinate u = 0\n\
        momentum p of q\n\
        momentum w of u\n\
        hamiltonian dot(p, p)/2 + 9.81*q.y + u*(dot(q, q) - 1)\n\
        constraint lock : w = 0\n";
    let (expected, _) = end(text, "--rtol 1e-12 --until 2");
    for method in ["corrected:gauss8", "corrected:gauss16", "plain:gauss16"] {
        let (state, _) = end(text, &format!("--method {method} --until 2 --max-steps 500"));
        let off = distance(&state[..2], &expected[..2]);
        assert!(off < 1e-8, "{method}: {off:e}");
    }
}

#[test]
fn a_projected_start_moves_multipliers_in_place_of_bodies() {
    let text = LOCK.replace("u = 0.364", "u = 0").replace("p of q = (0, 0)", "p of q = (0.8, 0.6)");
    let settings = Settings { project_initial: true, ..Settings::default() };
    let start = problem(&text, settings).model.initial.clone();
    let bodies = [0.6, -0.8, 0.8, 0.6];
    let found = [start[0], start[1], start[3], start[4]];
    assert!(distance(&found, &bodies) < 1e-14, "{start:?}");
    // q·q'' = −|v|², with m q'' = −2 u q − m g e_y.
    let u = (1.0 / 1.3 + 1.3 * 0.7 * 0.8) / 2.0;
    assert!((start[2] - u).abs() < 1e-14, "{start:?} {u}");
}
