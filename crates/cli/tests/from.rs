//! `--from T0`: initial states at a time other than 0.

mod common;

use common::{Folder, number};

/// A model that depends on time from 2 to 5 equals one whose time is shifted by 2, from 0 to 3:
/// checks of the start, hidden constraints, multipliers, penalties and drifts included. Times
/// differ by a rounding, and so do the states.
#[test]
fn a_start_elsewhere_in_time_is_a_shift_of_time() {
    let folder = Folder::new();
    let pivot = |t: &str| {
        format!(
            "coordinate q : R^2 = (0.3*sin({t}), -1)\nmomentum p of q = (0.3*cos({t}), 0)\n\
             hamiltonian dot(p, p)/2 + q.y\n\
             constraint rod : (q.x - 0.3*sin({u}))^2 + q.y^2 = 1\nobserve angle = atan2(q.x - 0.3*sin({u}), -q.y)\n",
            u = if t == "2" { "t" } else { "(t + 2)" }
        )
    };
    let driven = |t: &str| {
        format!("coordinate x = 1\nmomentum p of x\nhamiltonian p^2/2 + x^2/2 - x*sin({t})\n")
    };
    let field = |t: &str| format!("state x = 1\nx' = -x*{t}\nintegral J = x*exp({t}^2/2)\n");
    folder.write("pivot.holo", pivot("2")).write("pivot-shifted.holo", pivot("2.0"));
    folder.write("driven.holo", driven("t")).write("driven-shifted.holo", driven("(t + 2)"));
    folder.write("field.holo", field("t")).write("field-shifted.holo", field("(t + 2)"));
    for (model, method) in [
        ("pivot", ""),
        ("pivot", "--method rattle --step 0.01"),
        ("pivot", "--method stormer-verlet-a --step 0.002 --penalty 40"),
        ("driven", ""),
        ("driven", "--method corrected:rk4 --step 0.01"),
        ("driven", "--method gauss4 --step 0.01"),
        ("field", "--method projection:tsit5"),
    ] {
        let late =
            folder.summary(&format!("run {model}.holo {method} --from 2 --until 5 --out late"));
        let early =
            folder.summary(&format!("run {model}-shifted.holo {method} --until 3 --out early"));
        assert_eq!((number(&late, "/t"), number(&early, "/t")), (5.0, 3.0), "{model} {method}");
        let ((names, a), (_, b)) = (folder.samples("late"), folder.samples("early"));
        assert_eq!((a.len(), a[0][0], names[0].as_str()), (b.len(), 2.0, "t"));
        for (a, b) in a.iter().zip(&b) {
            assert!((a[0] - b[0] - 2.0).abs() < 1e-12);
            // Thousands of roundings, and the step control's answers to them: tolerances are 1e-9
            // at their loosest.
            let states = names.iter().position(|name| name == "H" || name == "J").unwrap();
            assert!(
                (1..states).all(|k| (a[k] - b[k]).abs() < 1e-8),
                "{model} {method}: {a:?} {b:?}"
            );
        }
        std::fs::remove_dir_all(folder.path("late")).unwrap();
        std::fs::remove_dir_all(folder.path("early")).unwrap();
    }
    // A start that meets the constraint at 0 does not at 2, and vice versa.
    folder.run("run pivot.holo --until 3").refused(&["rod"]);
    folder.run("run pivot-shifted.holo --from 2 --until 5").refused(&["rod"]);
    // Starts moved onto the constraints at their time.
    folder.summary("run pivot.holo --project-initial --until 3");
    folder.summary("run pivot.holo --from 1.9 --project-initial --until 3");
}

#[test]
fn a_time_that_does_not_enter_only_labels() {
    let folder = Folder::new();
    let run = "models/spherical-pendulum.holo --method corrected:rk4 --step 0.125";
    folder.summary(&format!("run {run} --until 8 --out zero"));
    folder.summary(&format!("run {run} --from -16 --until -8 --out before"));
    let ((_, a), (_, b)) = (folder.samples("zero"), folder.samples("before"));
    // Steps of 1/8 are exact at any time.
    assert!(
        a.len() == b.len()
            && a.iter().zip(&b).all(|(a, b)| a[0] - 16.0 == b[0] && a[1..] == b[1..])
    );
    // The time is kept: resumed, extended, in an ensemble.
    folder.summary("resume before --until -4");
    assert_eq!(folder.times("before").first(), Some(&-16.0));
    assert_eq!(folder.times("before").last(), Some(&-4.0));
    folder.summary(&format!(
        "sweep {run} --from -16 --until -8 --trajectories 5 --vary g=1+i --out sweep"
    ));
    let (names, rows) = folder.samples("sweep");
    assert_eq!((names[1].as_str(), rows[0][1], rows[1][1]), ("t", -16.0, -8.0));
    // It may be a formula, as the other times.
    folder.summary(&format!("run {run} --from -2^4 --until -8 --out formula"));
    assert_eq!(folder.times("formula").first(), Some(&-16.0));
    folder.run(&format!("run {run} --from 10 --until 10")).refused(&["--until"]);
    folder.run(&format!("run {run} --from nan")).refused(&["--from"]);
}
