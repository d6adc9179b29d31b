//! Tests of a model's claims where they can fail: at random points of the constraint set, at random
//! times of the run.

mod support;

use holonome_model::consistency::{self, Examined};
use holonome_model::treatment::InvariantKind;

fn varying(text: &str) -> Vec<String> {
    examined(text, consistency::SPAN).varying
}

fn examined(text: &str, span: (f64, f64)) -> Examined {
    let examined = consistency::examine_during(&support::model(text), span);
    assert!(examined.is_sound() && examined.off_set.is_empty(), "{examined:?}");
    assert_eq!(examined.varying.len(), examined.unverified.len());
    examined
}

#[test]
fn a_rate_that_vanishes_at_the_start_only_is_found() {
    // dL/dt = -q.x q.y: 0 at the start.
    let text = |k: &str| {
        format!(
            "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + q.x^2/2 + {k}*q.y^2/2\nintegral L = q.x*p.y - q.y*p.x\n"
        )
    };
    assert!(varying(&text("1")).is_empty());
    assert_eq!(varying(&text("2")), ["L"]);
    // A relative change of 1e-6 is more than rounding, one of 1e-15 is rounding.
    assert_eq!(varying(&text("(1 + 1e-6)")), ["L"]);
    assert!(varying(&text("(1 + 1e-15)")).is_empty());
    // At rest at the origin too: nothing moves, but points are drawn.
    let rest = text("2").replace("(1, 0)", "(0, 0)").replace("(0, 1)", "(0, 0)");
    assert_eq!(varying(&rest), ["L"]);
}

#[test]
fn a_claim_that_fails_late_in_the_run_is_found_in_long_runs() {
    let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2 + dot(q, q)/2 + if(t > 60, q.y, 0)\nintegral L = q.x*p.y - q.y*p.x\n";
    assert!(examined(text, (0.0, 50.0)).varying.is_empty());
    assert_eq!(examined(text, (0.0, 100.0)).varying, ["L"]);
    assert_eq!(examined(text, (90.0, 91.0)).varying, ["L"]);
}

#[test]
fn a_field_that_leaves_its_constraint_is_found() {
    let text = |growth: &str| {
        format!(
            "state x : R^2 = (1, 0)\nx' = (x.y, -x.x + {growth}*x.y)\nconstraint circle : dot(x, x) = 1\n"
        )
    };
    assert!(varying(&text("0")).is_empty());
    // It leaves the circle except where x.y = 0.
    assert_eq!(varying(&text("1e-5")), ["circle"]);
}

#[test]
fn a_constraint_set_that_moves_is_met_at_its_time() {
    // A bead on a turning rod keeps the rod's direction; its distance is not an integral.
    let text = |integral: &str| {
        format!(
            "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2\nconstraint rod : q.x*sin(t) = q.y*cos(t)\nintegral I = {integral}\n"
        )
    };
    assert!(varying(&text("dot(p, p)/2 - (q.x*p.y - q.y*p.x)")).is_empty(), "Jacobi's integral");
    assert_eq!(varying(&text("dot(q, q)")), ["I"]);
}

#[test]
fn points_outside_the_domain_say_nothing() {
    // Most random points have no square root, or no logarithm.
    let text = |formula: &str| {
        format!(
            "coordinate q : R^3 = (1, 0, 0)\nmomentum p of q = (0, 1, 0)\nhamiltonian dot(p, p)/2 + {formula}\nintegral L = cross(q, p)\n"
        )
    };
    for formula in [
        "sqrt(dot(q, q) - 0.999)",
        "log(dot(q, q) - 0.9)",
        "acos(dot(q, q) - 1)",
        "if(q.x > 0, dot(q, q), sqrt(-1 - dot(q, q)))",
    ] {
        assert!(varying(&text(formula)).is_empty(), "{formula}");
    }
}

#[test]
fn integrals_of_the_set_alone_stay_allowed() {
    // q.z is 0 on the plane; off it W is not an integral.
    let text = "coordinate q : R^3 = (1, 2, 0)\nmomentum p of q = (1, 0, 0)\nhamiltonian dot(p, p)/2 + q.x^2 + q.z\nconstraint plane : q.z = 0\nintegral W = q.z*q.x + p.y\n";
    let examined = examined(text, consistency::SPAN);
    assert!(examined.varying.is_empty(), "{:?}", examined.unverified);
    assert_eq!(examined.weak_integrals, ["W"]);
}

/// A chain of n bodies, with rods or with springs.
fn bodies(n: usize, rods: bool, integrals: &str) -> String {
    let (spring, rod) = match rods {
        false => ("sum(i in 2..n : dot(r[i] - r[i-1], r[i] - r[i-1]))", ""),
        true => ("0", "constraint link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = 1\n"),
    };
    format!(
        "size n = {n}\ncoordinate r[i in 1..n] : R^2 = (0.6*i, -0.8*i)\nmomentum p of r\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + r[i].y) + {spring}\n{rod}{integrals}"
    )
}

#[test]
fn large_models_are_tested_like_small_ones() {
    let integrals = "integral X = sum(i in 1..n : p[i].x)\nintegral Y = sum(i in 1..n : p[i].y)\nintegral F = sum(i in 1..n : p[i].y) + n*t\nintegral A = sum(i in 2..n : dot(r[i] - r[i-1], p[i] - p[i-1]))\n";
    for rods in [false, true] {
        for n in if rods { vec![5, 600, 5_000] } else { vec![5, 20_000] } {
            let examined = examined(&bodies(n, rods, integrals), consistency::SPAN);
            assert_eq!(examined.rows.is_some(), n > 5, "{n} {rods}");
            // A is the rate of the squared lengths of rods, which are constant; that of springs is
            // not.
            let expected: &[&str] = if rods { &["Y"] } else { &["Y", "A"] };
            assert_eq!(examined.varying, expected, "{n} {rods}: {:?}", examined.unverified);
        }
    }
}

#[test]
fn constraint_sets_of_large_models_that_move_are_met_at_their_times() {
    // Beads on turning rods keep Jacobi's integral, and not their distances.
    let text = |n: usize, integral: &str| {
        format!(
            "size n = {n}\ncoordinate q[i in 1..n] : R^2 = (1 + 0.5*sin(i), 0)\nmomentum p[i] of q = (0, 1 + 0.5*sin(i))\nhamiltonian sum(i in 1..n : dot(p[i], p[i])/2)\nconstraint rod[i in 1..n] : q[i].x*sin(t) = q[i].y*cos(t)\nintegral I = {integral}\n"
        )
    };
    for n in [5, 800, 8_000] {
        let jacobi = "sum(i in 1..n : dot(p[i], p[i])/2 - (q[i].x*p[i].y - q[i].y*p[i].x))";
        for (integral, constant) in [(jacobi, true), ("sum(i in 1..n : dot(q[i], q[i]))", false)] {
            let examined = examined(&text(n, integral), consistency::SPAN);
            assert_eq!(examined.rows.is_some(), n > 5, "{n}");
            let expected: &[&str] = if constant { &[] } else { &["I"] };
            assert_eq!(examined.varying, expected, "{n} {integral}: {:?}", examined.unverified);
            assert!(examined.diagnostics.is_empty(), "{n}: {:?}", examined.diagnostics);
        }
    }
}

#[test]
fn what_is_left_out_is_monitored() {
    let text = bodies(
        4,
        true,
        "integral X = sum(i in 1..n : p[i].x)\nintegral Y = sum(i in 1..n : p[i].y)\n",
    );
    let mut examined = examined(&text, consistency::SPAN);
    examined.leave_out_unverified();
    let (field, _) = examined.field.unwrap();
    for group in field.groups.iter() {
        let monitored = group.kind == InvariantKind::Integral && group.name == "Y";
        assert_eq!(group.monitored_only, monitored, "{}", group.name);
        for (row, _) in group.members.rows() {
            assert_eq!(field.jacobian[row].is_empty(), monitored, "{}", group.name);
        }
    }
}

#[test]
fn every_claim_of_the_projects_models_is_true() {
    for folder in ["models", "suite/models"] {
        for (name, text) in support::files(folder) {
            let model = support::check_in(folder, &text).0.unwrap_or_else(|| panic!("{name}"));
            for until in [1.0, 1e6] {
                let examined = consistency::examine_during(&model, (0.0, until));
                assert!(
                    examined.varying.is_empty(),
                    "{name} to {until}: {:?}",
                    examined.unverified
                );
            }
        }
    }
}
