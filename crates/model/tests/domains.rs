//! Tests that algebra keeps domains: a formula without a value has none after simplification.

mod support;

use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::optimise::{operations, optimise};
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::structure::evaluate;

/// Value at x of an H with a coordinate x and this formula: unrolled, and optimised.
fn values(formula: &str, x: f64) -> [f64; 2] {
    let model = support::model(&format!(
        "parameter k = -2\ncoordinate x = 0.5\ncoordinate y = 0.25\nmomentum p of x\nmomentum s of y\nhamiltonian p^2/2 + s^2/2 + {formula}\n"
    ));
    let unrolled = holonome_model::treatment::unrolled::unroll(&model).unwrap();
    let state = [x, 0.25, 0.0, 0.0];
    let outputs = [unrolled.hamiltonian.unwrap()];
    let (optimised, best) = optimise(&unrolled.graph, &outputs);
    [(&unrolled.graph, &outputs[..]), (&optimised, &best[..])]
        .map(|(graph, outputs)| evaluate(graph, outputs, 0.0, &state, &model.parameter_values)[0])
}

#[test]
fn what_cancels_keeps_its_domain() {
    for (formula, inside, value, outside) in [
        ("sqrt(x)/sqrt(x)", 0.5, 1.0, -0.5),
        ("0*log(x)", 0.5, 0.0, -0.5),
        ("log(x)*0", 0.5, 0.0, -0.5),
        ("acos(x) - acos(x)", 0.5, 0.0, 1.5),
        ("asin(x) - 2*asin(x) + asin(x)", 0.5, 0.0, -1.5),
        ("x*log(x)/log(x)", 0.5, 0.5, -0.5),
        ("sqrt(x - y)*y/sqrt(x - y)", 0.5, 0.25, 0.125),
        ("(x + y)*(sqrt(x) - sqrt(x) + 1)", 0.5, 0.75, -0.5),
        ("3*x^0.3 - x^0.3 - 2*x^0.3", 0.5, 0.0, -0.5),
        ("(log(x) + y) - (y + log(x))", 0.5, 0.0, -0.5),
        ("sin(acos(x) - acos(x))", 0.5, 0.0, 1.5),
        ("sqrt(log(x) - log(x) + y)", 0.5, 0.5, -0.5),
        ("max(sqrt(x) - sqrt(x), y)", 0.5, 0.25, -0.5),
        ("if(y > 1, x, x) + if(x > y, sqrt(x) - sqrt(x), 0*sqrt(x))", 0.5, 0.5, -0.5),
    ] {
        for (which, found) in ["unrolled", "optimised"].into_iter().zip(values(formula, inside)) {
            assert!((found - value).abs() < 1e-15, "{formula} {which} at {inside}: {found}");
        }
        for (which, found) in ["unrolled", "optimised"].into_iter().zip(values(formula, outside)) {
            assert!(found.is_nan(), "{formula} {which} at {outside}: {found}");
        }
    }
}

#[test]
fn a_branch_that_is_not_taken_has_no_domain() {
    for formula in
        ["if(x > 0, sqrt(x) - sqrt(x), 1)", "if(x > 0, log(x), y) - if(x > 0, log(x), y) + 1"]
    {
        assert_eq!(values(formula, -0.5), [1.0, 1.0], "{formula}");
    }
}

#[test]
fn what_has_no_domain_still_cancels() {
    let mut g = Graph::new();
    let (x, y, k) = (g.state(0), g.state(1), g.parameter(0));
    let (sum, root_of_parameter) = (g.add(x, y), g.sqrt(k));
    let square = g.dot(&[x, y], &[x, y]);
    let norm = g.sqrt(square);
    let sine = g.unary(Unary::Sin, sum);
    let zero = g.zero();
    for node in [sum, root_of_parameter, square, norm, sine] {
        let (difference, product) = (g.sub(node, node), g.mul(zero, node));
        assert!(g.is_zero(difference) && g.is_zero(product), "{:?}", g.expression(node));
    }
    // In the normal form too: norms cancel without a trace.
    let (ratio, third) = (g.div(norm, sum), g.mul(norm, x));
    let quotient = g.div(third, norm);
    let difference = g.sub(ratio, ratio);
    let outputs: Vec<Node> = vec![quotient, difference];
    let (best, outputs) = optimise(&g, &outputs);
    assert_eq!(operations(&best, &outputs), 0);
    // A comparison is true or false whatever it compares.
    let less = g.binary(Binary::Less, x, y);
    let nothing = g.sub(less, less);
    assert!(g.is_zero(nothing));
}

#[test]
fn the_square_of_a_norm_has_a_derivative_at_its_zero() {
    for formula in ["norm(q)^2", "dot(q, q)", "norm(2*q)^2/4", "norm(q)^2 + norm(q)^4 - norm(q)^4"]
    {
        let model = support::model(&format!(
            "coordinate q : R^2 = (0.3, -0.4)\nmomentum p of q\nhamiltonian dot(p, p)/2 + {formula}\n"
        ));
        let unrolled = holonome_model::treatment::unrolled::unroll(&model).unwrap();
        let gradient: Vec<Node> = unrolled.hamiltonian_gradient.iter().map(|&(_, d)| d).collect();
        let at = |x: &[f64]| evaluate(&unrolled.graph, &gradient, 0.0, x, &[]);
        assert_eq!(at(&[0.0; 4]), [0.0; 4], "{formula}");
        // 2 q, to a few roundings.
        let found = at(&model.initial);
        assert!(
            (found[0] - 0.6).abs() < 1e-15 && (found[1] + 0.8).abs() < 1e-15,
            "{formula}: {found:?}"
        );
    }
    // A sum that may be negative keeps the domain of its root.
    let mut g = Graph::new();
    let x = g.state(0);
    let root = g.sqrt(x);
    let square = g.mul(root, root);
    assert!(evaluate(&g, &[square], 0.0, &[-1.0], &[])[0].is_nan());
}
