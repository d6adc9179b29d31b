//! Tests of graph derivatives against dual numbers (`num-dual`): gradients, Hessians, second and
//! third directional derivatives and Poisson brackets, for every operation of the tables and for
//! random compositions of them.

#[path = "support/tree.rs"]
mod tree;

use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Graph, Input, Node};
use holonome_model::points::Points;
use holonome_model::treatment::structure::evaluate;
use num_dual::{Dual3_64, Dual64, HyperDual64};
use proptest::prelude::*;
use tree::{Tree, binary, combination, select, unary};

/// Two positions and two momenta.
const STATES: usize = 4;

/// Results at one point of one tree: value, gradient, Hessian (row by row), second and third
/// derivative along v.
type All = Vec<f64>;

/// Results by the graph. The state is (x, v).
fn by_graph(f: &Tree, x: &[f64], v: &[f64]) -> All {
    let mut g = Graph::new();
    let y = f.build(&mut g);
    let zero = g.zero();
    let dense = |list: Vec<(u32, Node)>| -> Vec<Node> {
        (0..STATES as u32).map(|i| list.iter().find(|e| e.0 == i).map_or(zero, |e| e.1)).collect()
    };
    let mut nodes = vec![y];
    let gradient = g.gradient(y);
    nodes.extend(dense(gradient));
    let hessian = g.hessian(y);
    for i in 0..STATES as u32 {
        let row = hessian.iter().find(|r| r.0 == i).map_or(Vec::new(), |r| r.1.clone());
        nodes.extend(dense(row));
    }
    let mut along = y;
    for order in 1..=3 {
        along = g.tangent(&[along], |g, input| match input {
            Input::State(i) if (i as usize) < STATES => Some(g.state(STATES + i as usize)),
            _ => None,
        })[0];
        if order > 1 {
            nodes.push(along);
        }
    }
    evaluate(&g, &nodes, 0.0, &[x, v].concat(), &[])
}

/// Results by dual numbers; `nudge` moves every part of every intermediate result.
fn by_duals(f: &Tree, x: &[f64], v: &[f64], nudge: &mut dyn FnMut(f64) -> f64) -> All {
    let mut all = Vec::new();
    let start: Vec<f64> = x.iter().map(|&x| nudge(x)).collect();
    let value = f.evaluate::<f64>(&start, &mut |y| nudge(y));
    all.push(value);
    for i in 0..STATES {
        let point: Vec<Dual64> = x
            .iter()
            .enumerate()
            .map(|(k, &x)| Dual64::new(nudge(x), if k == i { 1.0 } else { 0.0 }))
            .collect();
        all.push(f.evaluate(&point, &mut |y: Dual64| Dual64::new(nudge(y.re), nudge(y.eps))).eps);
    }
    for i in 0..STATES {
        for j in 0..STATES {
            let one = |k, i| if k == i { 1.0 } else { 0.0 };
            let point: Vec<HyperDual64> = x
                .iter()
                .enumerate()
                .map(|(k, &x)| HyperDual64::new(nudge(x), one(k, i), one(k, j), 0.0))
                .collect();
            let touch = &mut |y: HyperDual64| {
                HyperDual64::new(nudge(y.re), nudge(y.eps1), nudge(y.eps2), nudge(y.eps1eps2))
            };
            all.push(f.evaluate(&point, touch).eps1eps2);
        }
    }
    let point: Vec<Dual3_64> =
        x.iter().zip(v).map(|(&x, &v)| Dual3_64::new(nudge(x), nudge(v), 0.0, 0.0)).collect();
    let y = f.evaluate(&point, &mut |y: Dual3_64| {
        Dual3_64::new(nudge(y.re), nudge(y.v1), nudge(y.v2), nudge(y.v3))
    });
    all.extend([y.v2, y.v3]);
    all
}

/// Largest allowed differences of the results: the effect of relative changes of 2⁻³⁰ in every
/// intermediate result and its derivatives (the largest of six samples), scaled down to the 2⁻⁵³ of
/// one rounding, times 4000. The factor: a derivative formula takes up to some twenty roundings for
/// each operation of the tree, they may all point the same way, six samples of a maximum fall short
/// by a factor of a few, and num-dual composes tan, tanh and powers of operations of its own whose
/// roundings the samples do not see. A wrong formula is off by about 2⁵³. Of random compositions
/// some cancel more than six samples show, one in some ten thousand by thirty times as much: they
/// have `slack`.
fn tolerances(
    f: &Tree,
    (x, v): (&[f64], &[f64]),
    exact: &All,
    slack: f64,
    points: &mut Points,
) -> All {
    let nudge = 2f64.powi(-30);
    let mut spread = vec![0.0f64; exact.len()];
    for _ in 0..6 {
        let sample = by_duals(f, x, v, &mut |y| y * (1.0 + nudge * points.draw()));
        for ((s, a), b) in spread.iter_mut().zip(&sample).zip(exact) {
            *s = s.max((a - b).abs());
        }
    }
    // Below this, results are differences of numbers of size 1 that cancel completely.
    spread.iter().map(|s| slack * (4000.0 * s * 2f64.powi(-23) + 1e-14)).collect()
}

/// Compares at one point; false if the function is not defined there.
fn agrees(
    f: &Tree,
    (x, v): (&[f64], &[f64]),
    slack: f64,
    points: &mut Points,
) -> Result<bool, String> {
    let exact = by_duals(f, x, v, &mut |y| y);
    let size = exact.iter().fold(0.0f64, |s, y| s.max(y.abs()));
    if !exact.iter().all(|y| y.is_finite()) || size > 1e12 {
        return Ok(false);
    }
    let got = by_graph(f, x, v);
    let allowed = tolerances(f, (x, v), &exact, slack, points);
    for (k, ((a, b), tolerance)) in got.iter().zip(&exact).zip(&allowed).enumerate() {
        let name = match k {
            0 => "value".to_string(),
            1..=4 => format!("∂{}", k - 1),
            5..=20 => format!("∂{}∂{}", (k - 5) / 4, (k - 5) % 4),
            21 => "second along v".to_string(),
            _ => "third along v".to_string(),
        };
        if (a - b).abs() > *tolerance || a.is_nan() {
            return Err(format!(
                "{name}: {a:e} instead of {b:e} (may differ by {tolerance:e}) at {x:?} along {v:?}"
            ));
        }
    }
    Ok(true)
}

fn random_point(points: &mut Points) -> Vec<f64> {
    (0..STATES).map(|_| points.draw()).collect()
}

/// Compares at random points; some of them have to lie in the function's domain.
fn check(name: &str, f: &Tree) {
    let mut points = Points::new(0x5eed);
    let mut defined = 0;
    for _ in 0..60 {
        let (x, v) = (random_point(&mut points), random_point(&mut points));
        defined += usize::from(
            agrees(f, (&x, &v), 1.0, &mut points).unwrap_or_else(|e| panic!("{name}: {e}\n{f:?}")),
        );
    }
    assert!(defined >= 10, "{name}: only {defined} of 60 points are in the domain");
}

/// Arguments that mix all variables, so that the chain rule is tested with the operation.
fn arguments() -> (Tree, Tree) {
    let product = binary(Binary::Mul, Tree::State(0), Tree::State(3));
    let a = binary(Binary::Add, combination(&[(0.5, 0), (-0.75, 1), (0.25, 2)]), product);
    let b =
        binary(Binary::Add, combination(&[(0.5, 1), (0.25, 3)]), unary(Unary::Sin, Tree::State(2)));
    (a, b)
}

#[test]
fn every_operation_of_one_argument() {
    for &op in Unary::ALL.iter().filter(|op| !op.is_special()) {
        check(op.name(), &unary(op, arguments().0));
    }
}

#[test]
fn every_operation_of_two_arguments() {
    for &op in Binary::ALL.iter().filter(|op| !op.is_special()) {
        let (a, b) = arguments();
        check(op.name(), &binary(op, a, b));
        // A constant on either side: only one partial is derived.
        let (a, b) = arguments();
        check(op.name(), &binary(op, a, Tree::Number(0.375)));
        check(op.name(), &binary(op, Tree::Number(0.375), b));
        // Both arguments the same node.
        check(op.name(), &binary(op, arguments().0, arguments().0));
    }
}

#[test]
fn values_are_those_of_the_standard_library() {
    // The table's second column against the oracle's functions: bit for bit what processors do, and
    // elementary functions within 2 units in the last place here and 1 there.
    let close = |x: f64, y: f64| (x - y).abs() <= 3.0 * f64::EPSILON * y.abs();
    // The oracle's erf has the rounding of a² ≤ 9 in its exponential, and sums a hundred terms.
    let summed = |x: f64, y: f64| (x - y).abs() <= 20.0 * f64::EPSILON * y.abs();
    let mut points = Points::new(3);
    for _ in 0..200 {
        let (a, b) = (3.0 * points.draw(), 3.0 * points.draw());
        for &op in Unary::ALL.iter().filter(|op| !op.is_special()) {
            let (x, y) = (op.evaluate(a), tree::apply::<f64>(op, a));
            let exact =
                matches!(op, Unary::Neg | Unary::Sqrt | Unary::Abs | Unary::Round | Unary::Not);
            let near = if op == Unary::Erf { summed(x, y) } else { close(x, y) };
            assert!(
                x == y || !exact && near || (x.is_nan() && y.is_nan()),
                "{} {a}: {x} {y}",
                op.name()
            );
        }
        for &op in Binary::ALL.iter().filter(|op| !op.is_special()) {
            let (x, y) = (op.evaluate(a, b), tree::apply_two::<f64>(op, a, b));
            // The oracle composes these two of other functions: ten roundings of numbers up to 8.
            let composed = matches!(op, Binary::Pow | Binary::Atan2)
                && (x - y).abs() <= 10.0 * 8.0 * f64::EPSILON * x.abs().max(1.0);
            let whole = op == Binary::Pow && a < 0.0;
            assert!(
                x == y || composed || whole || (x.is_nan() && y.is_nan()),
                "{a} {} {b}: {x} {y}",
                op.name()
            );
        }
    }
}

#[test]
fn powers_of_every_kind() {
    // Small integers and half-integers are unrolled; the others call pow. Integers take negative
    // bases.
    for e in [
        0.0f64, 1.0, 2.0, 3.0, 4.0, 7.0, 12.0, -1.0, -2.0, -3.0, 0.5, 1.5, 2.5, -0.5, -1.5, 65.0,
        0.3, -0.3, 3.7, 1e-3,
    ] {
        let base = if e.fract() == 0.0 {
            arguments().0
        } else {
            binary(Binary::Add, Tree::Number(1.5), unary(Unary::Sin, arguments().0))
        };
        check(&format!("^{e}"), &binary(Binary::Pow, base, Tree::Number(e)));
    }
    // A variable exponent.
    let base = binary(Binary::Add, Tree::Number(1.5), unary(Unary::Sin, arguments().0));
    check("^variable", &binary(Binary::Pow, base.clone(), arguments().1));
    check("number^variable", &binary(Binary::Pow, Tree::Number(1.75), arguments().1));
    check("x^x", &binary(Binary::Pow, base.clone(), base));
}

#[test]
fn unrolled_powers_are_accurate() {
    // n squarings and products: each doubles the relative error and adds half an ulp, 2n roundings
    // in all.
    let mut points = Points::new(5);
    for e in (-64..=64).map(|k| f64::from(k) / 2.0) {
        let mut g = Graph::new();
        let (x, exponent) = (g.state(0), g.constant(e));
        let y = g.pow(x, exponent);
        for _ in 0..20 {
            let a = 1.5 + points.draw();
            let (got, exact) = (evaluate(&g, &[y], 0.0, &[a], &[])[0], a.powf(e));
            assert!(
                (got - exact).abs() <= (e.abs() + 4.0) * f64::EPSILON * exact,
                "{a}^{e}: {got} {exact}"
            );
        }
    }
}

#[test]
fn piecewise_functions_take_the_branch_of_the_point() {
    for op in [Binary::Less, Binary::LessEqual, Binary::Equal, Binary::And, Binary::Or] {
        let (a, b) = arguments();
        let (f, h) = (unary(Unary::Sin, a.clone()), binary(Binary::Mul, a.clone(), b.clone()));
        check(op.name(), &select(binary(op, a, b), f, h));
    }
    for (f, at, slope) in [
        // On the edge: abs, min and max take the right-hand or first branch, as documented.
        (unary(Unary::Abs, Tree::State(0)), 0.0, 1.0),
        (binary(Binary::Min, Tree::State(0), Tree::Number(0.0)), 0.0, 1.0),
        (binary(Binary::Max, Tree::State(0), Tree::Number(0.0)), 0.0, 1.0),
        (binary(Binary::Min, Tree::State(0), Tree::Number(0.0)), 1.0, 0.0),
        (unary(Unary::Abs, Tree::State(0)), -1.0, -1.0),
    ] {
        let mut g = Graph::new();
        let y = f.build(&mut g);
        let d = g.gradient(y)[0].1;
        assert_eq!(evaluate(&g, &[d], 0.0, &[at], &[]), [slope], "{f:?}");
    }
}

#[test]
fn the_branch_not_taken_does_not_spoil_the_derivative() {
    // if(x > 0, sqrt(x), 0) at x < 0: 0 · NaN must not reach the sum.
    let x = Tree::State(0);
    let f = select(
        binary(Binary::Less, Tree::Number(0.0), x.clone()),
        unary(Unary::Sqrt, x.clone()),
        binary(Binary::Mul, x.clone(), x),
    );
    let mut g = Graph::new();
    let y = f.build(&mut g);
    let d = g.gradient(y)[0].1;
    let dd = g.gradient(d)[0].1;
    assert_eq!(evaluate(&g, &[y, d, dd], 0.0, &[-2.0], &[]), [4.0, -4.0, 2.0]);
    // One root in two sums, once outside its condition: 0 if neither counts, and 2 conditions if
    // both do.
    let (x, y) = (Tree::State(0), Tree::State(1));
    let root = unary(Unary::Sqrt, x.clone());
    let inside = |e: Tree| {
        select(binary(Binary::Less, Tree::Number(0.0), Tree::State(0)), e, Tree::Number(0.0))
    };
    let nested = select(
        binary(Binary::Less, Tree::Number(0.0), y.clone()),
        inside(binary(Binary::Mul, root.clone(), y.clone())),
        y.clone(),
    );
    let f = binary(
        Binary::Add,
        inside(binary(Binary::Pow, x, Tree::Number(1.5))),
        binary(Binary::Add, inside(root), nested),
    );
    let mut g = Graph::new();
    let node = f.build(&mut g);
    let [dx, dy] = [0, 1].map(|k| g.gradient(node).iter().find(|d| d.0 == k).unwrap().1);
    for (x, y, gradient) in [
        (-4.0, 1.0, [0.0, 0.0]),
        (-4.0, -1.0, [0.0, 1.0]),
        (4.0, 3.0, [3.0 + 0.25 + 0.75, 2.0]),
        (4.0, -1.0, [3.25, 1.0]),
    ] {
        assert_eq!(evaluate(&g, &[dx, dy], 0.0, &[x, y], &[]), gradient, "at {x}, {y}");
    }
}

#[test]
fn time_and_parameters_are_told_apart() {
    // f = sin(t q) k^2: ∂f/∂t, ∂f/∂q, ∂f/∂k.
    let mut g = Graph::new();
    let (t, q, k) = (g.input(Input::Time), g.state(0), g.parameter(0));
    let tq = g.mul(t, q);
    let (s, kk) = (g.unary(Unary::Sin, tq), g.mul(k, k));
    let f = g.mul(s, kk);
    let dt = g.time_derivative(f);
    let dq = g.gradient(f)[0].1;
    let dk = g.adjoint(f, |input| input == Input::Parameter(0))[0].1;
    let (tv, qv, kv) = (0.7, 1.3, -2.0);
    let got = evaluate(&g, &[dt, dq, dk], tv, &[qv], &[kv]);
    let exact = [
        qv * (tv * qv).cos() * kv * kv,
        tv * (tv * qv).cos() * kv * kv,
        (tv * qv).sin() * 2.0 * kv,
    ];
    for (a, b) in got.iter().zip(exact) {
        // Five roundings.
        assert!((a - b).abs() <= 5.0 * f64::EPSILON * b.abs(), "{a} {b}");
    }
    let free = g.mul(q, k);
    let none = g.time_derivative(free);
    assert!(g.is_zero(none));
}

/// Gradient by dual numbers.
fn gradient(f: &Tree, x: &[f64]) -> Vec<f64> {
    (0..STATES)
        .map(|i| {
            let point: Vec<Dual64> = x
                .iter()
                .enumerate()
                .map(|(k, &x)| Dual64::new(x, if k == i { 1.0 } else { 0.0 }))
                .collect();
            f.evaluate(&point, &mut |y| y).eps
        })
        .collect()
}

#[test]
fn poisson_brackets() {
    // Canonical brackets first, which fix the sign: {q, p} = 1.
    let mut g = Graph::new();
    let x: Vec<Node> = (0..STATES).map(|k| g.state(k)).collect();
    let unit: Vec<_> = x.iter().map(|&x| g.gradient(x)).collect();
    for i in 0..STATES {
        for j in 0..STATES {
            let bracket = g.poisson(&unit[i], &unit[j], 2);
            let expected = if j == i + 2 {
                1.0
            } else if i == j + 2 {
                -1.0
            } else {
                0.0
            };
            assert_eq!(g.value(bracket), Some(expected), "{{x{i}, x{j}}}");
        }
    }
    let (f, h) =
        (unary(Unary::Sin, arguments().0), binary(Binary::Mul, arguments().1, arguments().0));
    let (fy, hy) = (f.build(&mut g), h.build(&mut g));
    let (df, dh) = (g.gradient(fy), g.gradient(hy));
    let (bracket, back) = (g.poisson(&df, &dh, 2), g.poisson(&dh, &df, 2));
    let mut points = Points::new(9);
    for _ in 0..50 {
        let x = random_point(&mut points);
        let (a, b) = (gradient(&f, &x), gradient(&h, &x));
        let exact = a[0] * b[2] + a[1] * b[3] - a[2] * b[0] - a[3] * b[1];
        let size: f64 = a.iter().map(|v| v * v).sum::<f64>().sqrt()
            * b.iter().map(|v| v * v).sum::<f64>().sqrt();
        let got = evaluate(&g, &[bracket, back], 0.0, &x, &[]);
        // Thirty roundings, relative to the terms: gradients of |a| |b| that cancel.
        assert!(
            (got[0] - exact).abs() <= 30.0 * f64::EPSILON * size.max(1.0)
                && (got[0] + got[1]).abs() <= 30.0 * f64::EPSILON * size.max(1.0),
            "{got:?} {exact}"
        );
    }
}

#[test]
fn the_jacobi_identity_holds() {
    let [a, b, c] = [
        unary(Unary::Sin, arguments().0),
        binary(Binary::Mul, arguments().1, unary(Unary::Exp, arguments().0)),
        binary(
            Binary::Pow,
            binary(Binary::Add, Tree::Number(2.0), arguments().1),
            Tree::Number(1.5),
        ),
    ];
    let mut g = Graph::new();
    let f = [&a, &b, &c].map(|f| f.build(&mut g));
    let d = f.map(|f| g.gradient(f));
    let mut terms = Vec::new();
    for k in 0..3 {
        let inner = g.poisson(&d[(k + 1) % 3], &d[(k + 2) % 3], 2);
        let di = g.gradient(inner);
        terms.push(g.poisson(&d[k], &di, 2));
    }
    let mut points = Points::new(10);
    let mut largest = 0.0f64;
    for _ in 0..50 {
        let x = random_point(&mut points);
        let values = evaluate(&g, &terms, 0.0, &x, &[]);
        // |∇f| |∇²g| |∇h| summed over the six ways: the scale of the terms that cancel.
        let norm = |f: &Tree| {
            let all = by_duals(f, &x, &[0.0; STATES], &mut |y| y);
            let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            (square(&all[1..5]), square(&all[5..21]))
        };
        let n = [norm(&a), norm(&b), norm(&c)];
        let size: f64 = (0..3)
            .map(|k| {
                n[k].0 * (n[(k + 1) % 3].1 * n[(k + 2) % 3].0 + n[(k + 1) % 3].0 * n[(k + 2) % 3].1)
            })
            .sum();
        let sum: f64 = values.iter().sum();
        // Each of the terms of this size has been through about forty roundings.
        assert!(sum.abs() <= 40.0 * f64::EPSILON * size, "{sum:e} of {size:e}: {values:?}");
        largest = largest.max(values[0].abs());
    }
    assert!(largest > 0.1, "the brackets do not vanish one by one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_compositions(f in tree::trees(STATES), seed in any::<u64>()) {
        let mut points = Points::new(seed);
        let (x, v) = (random_point(&mut points), random_point(&mut points));
        if let Err(reason) = agrees(&f, (&x, &v), 1000.0, &mut points) {
            return Err(TestCaseError::fail(reason));
        }
    }
}
