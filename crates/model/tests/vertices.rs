//! Derivatives where a factor of the chain rule has none: powers and norms at 0, and branches that
//! are not taken.

mod support;

use holonome_model::consistency::examine;
use holonome_model::graph::{Graph, Input, Node};
use holonome_model::treatment::structure::evaluate;

/// Gradient, Hessian and derivatives along v, up to the third, of a potential of x and y with a
/// parameter, at a point.
fn derivatives(
    potential: &str,
    parameter: f64,
    [x, y]: [f64; 2],
    v: [f64; 2],
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let model = support::model(&format!(
        "parameter k = {parameter}\ncoordinate x = 0.25\ncoordinate y = 0.5\nmomentum p of x\nmomentum s of y\n\
         hamiltonian p^2/2 + s^2/2 + {potential}\n"
    ));
    let mut g = Graph::new();
    let h = holonome_model::treatment::unrolled::unroll(&model).unwrap();
    let root = g.copy_from(&h.graph, &[h.hamiltonian.unwrap()], &Default::default())[0];
    let zero = g.zero();
    let dense =
        |list: &[(u32, Node)]| [0, 1].map(|i| list.iter().find(|e| e.0 == i).map_or(zero, |e| e.1));
    let gradient = g.gradient(root);
    let hessian = g.hessian(root);
    let rows = [0, 1]
        .map(|i| hessian.iter().find(|row| row.0 == i).map_or(Vec::new(), |row| row.1.clone()));
    let mut along = vec![root];
    for order in 0..3 {
        let next = g.tangent(&[along[order]], |g, input| match input {
            Input::State(i) if i < 2 => Some(g.state(4 + i as usize)),
            _ => None,
        });
        along.extend(next);
    }
    let nodes = [&dense(&gradient)[..], &dense(&rows[0]), &dense(&rows[1]), &along[1..]].concat();
    let values = evaluate(&g, &nodes, 0.0, &[x, y, 0.0, 0.0, v[0], v[1]], &model.parameter_values);
    (values[..2].to_vec(), values[2..6].to_vec(), values[6..].to_vec())
}

/// First and second derivatives that are all 0 at a point, for a power that is flat there.
#[test]
fn flat_powers_have_derivatives() {
    for (potential, parameter, at) in [
        // Hertz: a contact that only touches, one that is open, from both sides of `max`.
        ("max(0, x)^2.5", 1.0, [0.0, 0.5]),
        ("max(0, x)^2.5", 1.0, [-0.5, 0.5]),
        ("max(x, 0)^2.5", 1.0, [-0.5, 0.5]),
        ("max(0, -x)^k", 2.5, [0.0, 0.5]),
        ("max(0, -x)^1.5", 1.0, [0.5, 0.5]),
        ("max(0, x - y)^0.5", 1.0, [0.25, 0.5]),
        ("(-min(0, x))^k", 1.5, [0.5, 0.5]),
        ("sqrt(max(0, x))^5", 1.0, [0.0, 0.5]),
        ("if(x > 0, x, 0)^1.25", 1.0, [-0.5, 0.5]),
        ("max(0, x)^2.25", 1.0, [0.0, 0.5]),
        ("abs(x)^2.5", 1.0, [0.0, 0.5]),
        ("abs(x)^2.75*y", 1.0, [0.0, 0.5]),
        ("x^2.5", 1.0, [0.0, 0.5]),
        ("norm((x, y))^3", 1.0, [0.0, 0.0]),
        ("norm((x, y))^2.5", 1.0, [0.0, 0.0]),
        ("norm((x, y))^k", 2.5, [0.0, 0.0]),
        ("norm((x, y))*(x^2 + y^2)", 1.0, [0.0, 0.0]),
        ("(x^2 + y^2)^1.25/(2 + x)", 1.0, [0.0, 0.0]),
        ("sqrt(x^2 + y^2)*sin(x)*y", 1.0, [0.0, 0.0]),
        ("sqrt(x^2)*x^2", 1.0, [0.0, 0.5]),
        ("k*norm((2*x, 3*y))^3/7", 2.0, [0.0, 0.0]),
    ] {
        let (gradient, hessian, along) = derivatives(potential, parameter, at, [0.6, 0.8]);
        assert_eq!(gradient, [0.0; 2], "{potential} at {at:?}");
        assert_eq!(hessian, [0.0; 4], "{potential} at {at:?}");
        assert_eq!(along[..2], [0.0; 2], "{potential} at {at:?}");
    }
}

/// First derivatives that are 0 where the second ones need not exist.
#[test]
fn powers_above_one_have_a_slope() {
    for (potential, parameter, at) in [
        ("max(0, x)^1.5", 1.0, [0.0, 0.5]),
        ("max(0, x)^k", 1.25, [0.0, 0.5]),
        ("norm((x, y))^1.5", 1.0, [0.0, 0.0]),
        ("(x^2 + y^2)^0.75", 1.0, [0.0, 0.0]),
        ("(x^2 + y^2)^k", 0.6, [0.0, 0.0]),
        ("norm((x, y))*x", 1.0, [0.0, 0.0]),
        ("sqrt(x^4)", 1.0, [0.0, 0.5]),
        ("atan2(y, x)*(x^2 + y^2)", 1.0, [0.0, 0.0]),
    ] {
        let (gradient, _, along) = derivatives(potential, parameter, at, [0.6, 0.8]);
        assert_eq!(gradient, [0.0; 2], "{potential} at {at:?}");
        assert_eq!(along[0], 0.0, "{potential} at {at:?}");
    }
}

/// A parameter as exponent is no worse than a number: x² has the second derivative 2, and no third
/// one.
#[test]
fn whole_exponents_may_be_parameters() {
    let (gradient, hessian, along) = derivatives("x^k", 2.0, [0.0, 0.5], [1.0, 0.0]);
    assert_eq!((gradient[0], hessian[0], &along[..]), (0.0, 2.0, &[0.0, 2.0, 0.0][..]));
    let (gradient, hessian, along) = derivatives("k*y + x^k", 1.0, [0.0, 0.5], [1.0, 0.0]);
    assert_eq!((gradient[0], hessian[0], &along[..]), (1.0, 0.0, &[1.0, 0.0, 0.0][..]));
}

/// What has no derivative keeps none.
#[test]
fn kinks_of_norms_and_roots_stay_undefined() {
    for (potential, parameter, at) in [
        ("norm((x, y))", 1.0, [0.0, 0.0]),
        ("(norm((x, y)) - 1)^2", 1.0, [0.0, 0.0]),
        ("sqrt(x)", 1.0, [0.0, 0.5]),
        ("atan2(x, y)*(x + y)", 1.0, [0.0, 0.0]),
        ("x^0.5*y", 1.0, [0.0, 0.5]),
        ("x^k", 0.5, [0.0, 0.5]),
        ("(x^2 + y^2)^k", 0.5, [0.0, 0.0]),
    ] {
        let (gradient, _, _) = derivatives(potential, parameter, at, [0.6, 0.8]);
        assert!(!gradient[0].is_finite(), "{potential} at {at:?}: {gradient:?}");
    }
}

/// The message points at the power, not at the momentum.
#[test]
fn what_cannot_be_differentiated_is_named() {
    let start = "coordinate q = 0\nmomentum p of q = -1\n";
    for (formula, culprit) in [
        ("hamiltonian p^2/2 + 3*abs(q)^0.5", "abs(q)^0.5"),
        ("let r = sqrt(q)\nhamiltonian p^2/2 + 2*r + q^2.5", "sqrt(q)"),
        ("hamiltonian p^2/2 + (norm((q, 2*q)) - 1)^2 + norm((q, q))^3", "norm((q, 2*q))"),
        ("parameter k = 0.25\nhamiltonian p^2/2 + max(0, q + 1) + (q^2)^k", "(q^2)^k"),
        ("hamiltonian p^2/2 + sum(i in 1..3 : if(i == 2, abs(q)^0.25, q^2))", "abs(q)^0.25"),
    ] {
        let text = format!("{start}{formula}\n");
        let found = examine(&support::model(&text)).diagnostics;
        let [finding] = &found[..] else { panic!("{formula}: {found:?}") };
        assert_eq!(&text[finding.span.range()], culprit, "{formula}: {}", finding.message);
    }
    let text = "coordinate q = 0\nmomentum p of q = -1\nhamiltonian p^2/2 + 1/(2*q)\n";
    let found = examine(&support::model(text)).diagnostics;
    assert_eq!(&text[found[0].span.range()], "1/(2*q)");
    let text = "state x = 0\nx' = 1 + log(x)\n";
    let found = examine(&support::model(text)).diagnostics;
    assert_eq!(&text[found[0].span.range()], "log(x)");
}
