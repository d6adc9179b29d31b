//! Light bodies beside heavy ones: projections leave them where they are.

mod common;

use common::{options, run};
use holonome::{Problem, Settings};
use std::collections::BTreeMap;

/// Two pendula that know nothing of each other and move alike; the second is light. Only H holds
/// them together.
const PAIR: &str = "\
parameter m = 1e-12
coordinate a = 0.3
momentum p of a = 0.7
coordinate b = 0.3
momentum u of b = 0.7*m
hamiltonian p^2/2 - cos(a) + u^2/(2*m) - m*cos(b)
";

/// a and b at t = 20, by Gauss collocation of order 16 and by dop853 at 1e-13.
const END: f64 = 0.552_951_732_297_1;

#[test]
fn a_light_body_is_not_thrown_by_what_moves_a_heavy_one() {
    for (method, tolerance) in [
        // Errors of the bases themselves, to a factor of two.
        ("projection:gauss4 --step 0.05", 2e-7),
        ("projection:heun --step 0.02", 1.2e-3),
        ("projection:implicit-midpoint --step 0.01", 1.5e-4),
        ("projection:rk4 --step 0.05", 1e-6),
        ("symmetric-projection:gauss4 --step 0.05", 2e-7),
        ("symmetric-projection:rk4 --step 0.05", 1e-6),
        ("symmetric-projection:gauss8 --step 0.1", 1e-11),
    ] {
        let problem =
            Problem::from_text("pair", PAIR, &BTreeMap::new(), &Settings::default()).unwrap();
        let run = run(problem, options(&format!("--until 20 --method {method}")))
            .unwrap_or_else(|e| panic!("{e}"));
        for x in &run.state()[..2] {
            assert!((x - END).abs() < tolerance, "{method}: {:?}", run.state());
        }
    }
}

/// A body whose attitude is a shear, not a rotation, is refused by steps that turn it, and by each
/// of a sweep.
#[test]
fn a_body_that_begins_sheared_is_refused() {
    let text = "parameter I = diag(3, 2, 1)\nstate R : R^(3,3) = matrix((1, 0.3, 0), (0, 1, 0), (0, 0, 1))\n\
        state w : R^3 = (1, 0.5, 0.2)\nR' = R*hat(w)\nw' = inverse(I)*cross(I*w, w)";
    for method in ["cayley-symmetric", "cayley-variational-euler", "rotation-splitting"] {
        let problem =
            Problem::from_text("body", text, &BTreeMap::new(), &Settings::default()).unwrap();
        let Err(error) = run(problem, options(&format!("--until 1 --step 0.01 --method {method}")))
        else {
            panic!("{method} turns a shear")
        };
        assert!(
            error.to_string().contains("begins as no rotation")
                && error.to_string().contains("3.0e-1"),
            "{error}"
        );
    }
    let turned = text.replace(
        "matrix((1, 0.3, 0), (0, 1, 0), (0, 0, 1))",
        "matrix((0, 1, 0), (-1, 0, 0), (0, 0, 1))",
    );
    let problem =
        Problem::from_text("body", &turned, &BTreeMap::new(), &Settings::default()).unwrap();
    assert!(run(problem, options("--until 1 --step 0.01 --method cayley-symmetric")).is_ok());
}
