//! Tests of the optimiser: equal in exact arithmetic, as accurate as the graph it was given, never
//! longer, the same every time.

mod support;

use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::optimise::{operations, optimise};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::points::Points;
use holonome_model::treatment::Field;
use holonome_model::treatment::feedback::{self, Potential, Transport};
use holonome_model::treatment::penalty::penalise;
use holonome_model::treatment::structure::ambient_points;
use proptest::prelude::*;
use std::collections::HashMap;

/// Value of every output, in the arithmetic of `f`, which evaluates an expression over its
/// arguments.
fn evaluate<T: Copy>(
    g: &Graph,
    outputs: &[Node],
    mut f: impl FnMut(Expression, &[T]) -> T,
) -> Vec<T> {
    let mut values: HashMap<Node, T> = HashMap::new();
    for node in g.reachable(outputs) {
        let arguments: Vec<T> = g.expression(node).arguments().map(|a| values[&a]).collect();
        values.insert(node, f(g.expression(node), &arguments));
    }
    outputs.iter().map(|o| values[o]).collect()
}

// Exact arithmetic: the integers modulo a prime. Two rational functions that differ agree at a
// random point with a probability of about degree/P (Schwartz, Zippel), and numbers in binary are
// exact.

const P: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(P)) as u64
}

fn to_the(mut a: u64, mut e: u64) -> u64 {
    let mut result = 1;
    while e > 0 {
        if e & 1 == 1 {
            result = times(result, a);
        }
        a = times(a, a);
        e >>= 1;
    }
    result
}

fn residue(x: f64) -> u64 {
    let (mut m, mut twos) = (x.abs(), 0u64);
    while m.fract() != 0.0 {
        m *= 2.0;
        twos += 1;
    }
    assert!(m < P as f64);
    let r = times(m as u64, to_the(to_the(2, P - 2), twos));
    if x < 0.0 { (P - r) % P } else { r }
}

fn scramble(values: &[u64]) -> u64 {
    let mix =
        |h: u64, v: &u64| (h ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ (h >> 7);
    values.iter().fold(0x5eed, mix) % P
}

/// Value of an expression modulo P; `None` for a division by 0. A function is some fixed map of
/// residues, with the symmetries that graphs know of; if its argument may be a number of the graph,
/// it has that number's value.
fn modulo(e: Expression, a: &[Option<u64>], seed: u64, numbers: &HashMap<u64, f64>) -> Option<u64> {
    let a: Vec<u64> = a.iter().copied().collect::<Option<_>>()?;
    let opposite = |x: u64| (P - x) % P;
    Some(match e {
        Expression::Constant(bits) => residue(f64::from_bits(bits)),
        Expression::Input(input) => scramble(&[
            seed,
            match input {
                Input::State(k) => u64::from(k),
                Input::Parameter(k) => 1000 + u64::from(k),
                _ => 2000,
            },
        ]),
        Expression::Unary(Unary::Neg, _) => opposite(a[0]),
        Expression::Unary(op, _) if numbers.contains_key(&a[0]) => {
            residue(op.evaluate(numbers[&a[0]]))
        }
        Expression::Unary(op @ (Unary::Cos | Unary::Abs), _) => {
            scramble(&[op as u64, times(a[0], a[0])])
        }
        Expression::Unary(op, _) => scramble(&[100 + op as u64, a[0]]),
        Expression::Binary(Binary::Add, ..) => (a[0] + a[1]) % P,
        Expression::Binary(Binary::Sub, ..) => (a[0] + opposite(a[1])) % P,
        Expression::Binary(Binary::Mul, ..) => times(a[0], a[1]),
        Expression::Binary(Binary::Div, ..) if a[1] == 0 => return None,
        Expression::Binary(Binary::Div, ..) => times(a[0], to_the(a[1], P - 2)),
        Expression::Binary(op, ..) => match (numbers.get(&a[0]), numbers.get(&a[1])) {
            (Some(&x), Some(&y)) => residue(op.evaluate(x, y)),
            _ => scramble(&[200 + op as u64, a[0], a[1]]),
        },
        Expression::Select(..) => match numbers.get(&a[0]) {
            Some(&c) => a[if c != 0.0 { 1 } else { 2 }],
            None => a[1 + (a[0] % 2) as usize],
        },
        other => unreachable!("{other:?} is in no formula"),
    })
}

/// Numbers that may be the argument of a function of random graphs once terms have cancelled.
fn small_numbers() -> HashMap<u64, f64> {
    (-4096i32..=4096).map(|k| f64::from(k) / 64.0).map(|x| (residue(x), x)).collect()
}

/// A random graph and some outputs. Sums of products with common factors are frequent: an argument
/// is often one of the first inputs.
fn random_graph(size: usize, seed: u64, division: bool, functions: bool) -> (Graph, Vec<Node>) {
    let mut points = Points::new(seed);
    let mut below = |n: usize| ((points.draw() + 1.0) / 2.0 * n as f64) as usize % n;
    let mut g = Graph::new();
    let mut pool: Vec<Node> = (0..5).map(|k| g.state(k)).collect();
    pool.push(g.input(Input::Time));
    pool.extend((0..3).map(|k| g.parameter(k)));
    pool.extend([2.0, -0.5, 3.0].map(|c| g.constant(c)));
    let mut ops =
        vec![Binary::Add, Binary::Sub, Binary::Mul, Binary::Mul, Binary::Add, Binary::Sub];
    if division {
        ops.push(Binary::Div);
    }
    for _ in 0..size {
        let mut pick = |g: &[Node]| {
            let n = g.len();
            match below(4) {
                0 => g[below(12)],
                1 => g[below(n)],
                _ => g[n - 1 - below(n.min(10))],
            }
        };
        let (a, b, c) = (pick(&pool), pick(&pool), pick(&pool));
        pool.push(match below(if functions { 12 } else { 10 }) {
            10 => g.unary([Unary::Sin, Unary::Cos, Unary::Atan, Unary::Abs][below(4)], a),
            11 => {
                let condition = g.binary(Binary::Less, a, b);
                g.select(condition, b, c)
            }
            _ => g.binary(ops[below(ops.len())], a, b),
        });
    }
    let n = pool.len();
    let outputs =
        (0..6).map(|_| pool[n - 1 - below(n / 2)]).chain([pool[n - 1], pool[0]]).collect();
    (g, outputs)
}

/// True if every number needs few bits: products and sums of numbers by the optimiser are then not
/// rounded.
fn has_short_numbers(g: &Graph, outputs: &[Node]) -> bool {
    g.reachable(outputs)
        .iter()
        .all(|&n| g.value(n).is_none_or(|v| v.is_finite() && v.to_bits() << 44 == 0))
}

// Rounding. For every value a size S ≥ |value| of what may have been added up to it, and a bound E
// on the error of an evaluation, to first order, with one rounding of S for each operation. A sum
// in another order, a distributed or factored coefficient, a fused product: all of them round
// quantities below S.

/// Bound on the number of roundings of any value here.
const MANY: f64 = 4096.0;

#[derive(Clone, Copy, Debug)]
struct Rounded {
    value: f64,
    size: f64,
    error: f64,
    /// True if it depends on a condition that may go either way, on a division by a possible 0, or
    /// on an infinity.
    doubtful: bool,
}

fn rounded(e: Expression, a: &[Rounded], t: f64, x: &[f64], parameters: &[f64]) -> Rounded {
    let input = |value: f64| Rounded { value, size: value.abs(), error: 0.0, doubtful: false };
    let with = |value: f64, size: f64, error: f64| {
        let size = size.max(value.abs());
        let error = error + f64::EPSILON * size;
        // Real arithmetic says nothing about infinities.
        let doubtful = a.iter().any(|a| a.doubtful) || !error.is_finite();
        Rounded { value, size, error, doubtful }
    };
    match e {
        Expression::Constant(bits) => input(f64::from_bits(bits)),
        Expression::Input(Input::State(k)) => input(x[k as usize]),
        Expression::Input(Input::Parameter(k)) => input(parameters[k as usize]),
        Expression::Input(_) => input(t),
        Expression::Unary(Unary::Neg, _) => Rounded { value: -a[0].value, ..a[0] },
        Expression::Unary(op, _) => {
            let (value, e) = (op.evaluate(a[0].value), a[0].error);
            let (below, above) = (op.evaluate(a[0].value - e), op.evaluate(a[0].value + e));
            with(value, value.abs(), (below - value).abs() + (above - value).abs())
        }
        Expression::Binary(op, ..) => {
            let (u, v) = (a[0], a[1]);
            let value = op.evaluate(u.value, v.value);
            match op {
                Binary::Add | Binary::Sub => with(value, u.size + v.size, u.error + v.error),
                Binary::Mul => with(value, u.size * v.size, u.size * v.error + v.size * u.error),
                Binary::Div => {
                    // 1/v varies by the relative error of v, and may take part of u with it.
                    let inverse = 1.0 / v.value.abs();
                    let mut q = with(
                        value,
                        u.size * inverse,
                        u.error * inverse + u.size * inverse * inverse * v.error,
                    );
                    q.doubtful |= v.error * MANY > v.value.abs();
                    q
                }
                Binary::Less | Binary::LessEqual => {
                    let mut c = input(value);
                    c.doubtful = u.doubtful
                        || v.doubtful
                        || (u.value - v.value).abs() <= MANY * (u.error + v.error);
                    c
                }
                Binary::Min | Binary::Max => with(value, u.size.max(v.size), u.error.max(v.error)),
                _ => {
                    let at = |s: f64, t: f64| (op.evaluate(u.value + s, v.value + t) - value).abs();
                    with(
                        value,
                        value.abs(),
                        at(u.error, 0.0) + at(-u.error, 0.0) + at(0.0, v.error) + at(0.0, -v.error),
                    )
                }
            }
        }
        Expression::Select(..) => {
            let chosen = if a[0].value != 0.0 { a[1] } else { a[2] };
            Rounded { doubtful: chosen.doubtful || a[0].doubtful, ..chosen }
        }
        other => unreachable!("{other:?} is in no formula"),
    }
}

fn in_doubles(g: &Graph, outputs: &[Node], t: f64, x: &[f64], parameters: &[f64]) -> Vec<Rounded> {
    evaluate(g, outputs, |e, a: &[Rounded]| rounded(e, a, t, x, parameters))
}

/// Compares a graph with its optimised form at a point. No result has more roundings than there are
/// operations, so that this many times the bound of one evaluation holds for both.
fn compare(
    graph: (&Graph, &[Node]),
    other: (&Graph, &[Node]),
    t: f64,
    x: &[f64],
    parameters: &[f64],
) -> usize {
    let (a, b) = (
        in_doubles(graph.0, graph.1, t, x, parameters),
        in_doubles(other.0, other.1, t, x, parameters),
    );
    let roundings = operations(graph.0, graph.1).max(4) as f64;
    let mut compared = 0;
    for (a, b) in a.iter().zip(&b) {
        let bound = roundings * a.error;
        if a.doubtful || !a.value.is_finite() {
            continue;
        }
        compared += 1;
        assert!((a.value - b.value).abs() <= bound, "{a:?} became {b:?}, allowed {bound:e}");
    }
    compared
}

fn text(g: &Graph, outputs: &[Node]) -> String {
    let nodes: Vec<Expression> = (0..g.len() as u32).map(|n| g.expression(Node(n))).collect();
    format!("{nodes:?} {outputs:?}")
}

/// Number of comparisons.
fn comparisons(g: &Graph, outputs: &[Node]) -> usize {
    use Binary::*;
    let compares = |node: &Node| {
        matches!(g.expression(*node), Expression::Binary(Less | LessEqual | Equal, ..))
    };
    g.reachable(outputs).into_iter().filter(compares).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_in_exact_arithmetic(seed in any::<u64>(), size in 1usize..150, division in any::<bool>()) {
        let numbers = small_numbers();
        let (g, outputs) = random_graph(size, seed, division, true);
        let (h, results) = optimise(&g, &outputs);
        if !has_short_numbers(&g, &outputs) || !has_short_numbers(&h, &results) {
            return Ok(());
        }
        // Comparisons of fractions are decided by their values, 4 < 1/3, not by those modulo a prime.
        let decided = comparisons(&h, &results) < comparisons(&g, &outputs);
        for point in 0..3 {
            let before = evaluate(&g, &outputs, |e, a: &[Option<u64>]| modulo(e, a, point, &numbers));
            let after = evaluate(&h, &results, |e, a: &[Option<u64>]| modulo(e, a, point, &numbers));
            for (a, b) in before.iter().zip(&after) {
                // If the graph divides by 0, its optimised form need not.
                prop_assert!(a.is_none() || a == b || decided);
            }
        }
    }

    #[test]
    fn as_accurate_as_before(seed in any::<u64>(), size in 1usize..120, division in any::<bool>()) {
        let (g, outputs) = random_graph(size, seed, division, true);
        let (h, results) = optimise(&g, &outputs);
        let mut points = Points::new(seed ^ 1);
        for _ in 0..3 {
            let mut list = |n: usize| (0..n).map(|_| points.draw()).collect::<Vec<f64>>();
            compare((&g, &outputs), (&h, &results), 0.37, &list(5), &list(3));
        }
    }

    #[test]
    fn never_longer_and_always_the_same(
        seed in any::<u64>(),
        size in 1usize..200,
        division in any::<bool>(),
        functions in any::<bool>(),
    ) {
        let (g, outputs) = random_graph(size, seed, division, functions);
        let (h, results) = optimise(&g, &outputs);
        let (before, after) = (operations(&g, &outputs), operations(&h, &results));
        prop_assert!(after <= before, "{before} became {after}");
        let again = optimise(&g, &outputs);
        prop_assert_eq!(text(&h, &results), text(&again.0, &again.1));
        let twice = optimise(&h, &results);
        prop_assert!(operations(&twice.0, &twice.1) <= after);
    }
}

/// The plain field, and the field with one gain for each group of invariants.
fn fields(model: &Model) -> [Field; 2] {
    let extended = |model: &Model| Derived::new(model.clone()).field();
    // Redundant constraints have no Dirac bracket; a penalty takes their place.
    let plain = extended(model).or_else(|_| extended(&penalise(model, 20.0).unwrap())).unwrap().0;
    let treated = feedback::literal(&plain, &Potential::Gains, &Transport::Identity).0;
    [plain, treated]
}

fn all_models() -> Vec<(String, Model)> {
    let mut list = Vec::new();
    for folder in ["models", "suite/models"] {
        for (name, text) in support::files(folder) {
            let (model, diagnostics) = support::check_in(folder, &text);
            list.push((name.clone(), model.unwrap_or_else(|| panic!("{name}: {diagnostics:?}"))));
        }
    }
    list
}

fn quotients(g: &Graph, outputs: &[Node]) -> usize {
    g.reachable(outputs)
        .iter()
        .filter(|&&n| matches!(g.expression(n), Expression::Binary(Binary::Div, ..)))
        .count()
}

#[test]
fn every_model_becomes_shorter_and_stays_the_same() {
    let (mut all_before, mut all_after) = (0, 0);
    for (name, model) in all_models() {
        for field in fields(&model) {
            let (h, results) = optimise(&field.graph, &field.field);
            let (before, after) =
                (operations(&field.graph, &field.field), operations(&h, &results));
            assert!(after <= before, "{name}: {before} became {after}");
            // The pairs of one and the eliminations of the other have little in common, and would
            // dominate the totals.
            if !["argon.holo", "strandbeest.holo"].contains(&name.as_str()) {
                all_before += before;
                all_after += after;
            }
            // Gains that vanish, and g = 0: nothing may be divided by that the model does not
            // divide by.
            for gain in [0.7, 0.0] {
                let mut parameters = model.parameter_values.clone();
                parameters.resize(field.parameters, gain);
                for x in ambient_points(&model, 3, 5) {
                    compare((&field.graph, &field.field), (&h, &results), 0.3, &x, &parameters);
                }
            }
        }
    }
    // A third of all operations is repetition.
    assert!(3 * all_after <= 2 * all_before, "{all_before} became {all_after}");
}

#[test]
fn fewer_quotients_are_worth_as_many_operations() {
    let mut g = Graph::new();
    let mass = g.parameter(0);
    let momenta: Vec<Node> = (0..3).map(|k| g.state(k)).collect();
    let velocities: Vec<Node> = momenta.iter().map(|&p| g.div(p, mass)).collect();
    let (h, results) = optimise(&g, &velocities);
    assert_eq!(
        (operations(&h, &results), quotients(&h, &results)),
        (3, 1),
        "1/m is computed once for a run"
    );
    compare((&g, &velocities), (&h, &results), 0.0, &[0.3, -2.0, 7.0], &[1.7]);
}

#[test]
fn the_spherical_pendulum_is_as_short_as_by_hand() {
    let model = support::model(&support::file("models/spherical-pendulum.holo"));
    let [plain, treated] = fields(&model).map(|field| {
        let (h, results) = optimise(&field.graph, &field.field);
        operations(&h, &results)
    });
    // By hand, with m, g, l, gains and targets as inputs: 9 operations for q·q, q·p and p·p; 3 for
    // r = 1/(m q·q), a = r q·p and s = m² g q₃ − p·p; 6 for dq = p/m − a q, 7 for dp = a p + r s q
    // − m g e₃. Together 25.
    assert!(plain <= 27, "{plain}");
    // By hand: 12 for q·q, q·p, p·p, r, a, s; 1 for k₂ q·p, 2 for k₃ ΔH/m, 3 for k₄ ΔJ; then the
    // coefficients of p and q in dq (1 and 2) and in dp (1 and 1); the six components take 3, but
    // the last one 2. Together 40.
    assert!(treated <= 40, "{treated}");
}

#[test]
fn products_of_sums_keep_their_accuracy() {
    let mut g = Graph::new();
    let (a, b, k, x0) = (g.state(0), g.state(1), g.parameter(0), g.parameter(1));
    let (sum, difference) = (g.add(a, b), g.sub(a, b));
    let product = g.mul(sum, difference);
    let (aa, bb) = (g.mul(a, a), g.mul(b, b));
    let squares = g.add(aa, bb);
    // The squares are there, and so are terms to add to them.
    let tempting = g.add(product, bb);
    let tempting = g.add(tempting, squares);
    let shift = g.sub(a, x0);
    let spring = g.mul(k, shift);
    let both = g.add(spring, product);
    let outputs = [product, tempting, squares, spring, both];
    let (h, results) = optimise(&g, &outputs);
    let (near, k) = (1.0 + (0.5f64).powi(30), 0.3);
    let got = in_doubles(&h, &results, 0.0, &[near, 1.0], &[k, 1.0]);
    let small = (0.5f64).powi(30);
    // (a − b)(a + b) and k (a − x₀) with exact differences: a few roundings of the result, where
    // expanded products are wrong by a rounding of 1.
    for (k, exact) in
        [(0, small * (2.0 + small)), (3, k * small), (4, small * (2.0 + small) + k * small)]
    {
        assert!(
            (got[k].value - exact).abs() <= 4.0 * f64::EPSILON * exact,
            "{:e} for {exact:e}",
            got[k].value
        );
    }
}

#[test]
fn what_cancels_is_gone() {
    let mut g = Graph::new();
    let [a, b, c, d] = [0, 1, 2, 3].map(|k| g.state(k));
    let m = g.parameter(0);
    let (ab, cd) = (g.mul(a, b), g.mul(c, d));
    let sum = g.add(ab, cd);
    // A shared sum, less its first term.
    let rest = g.sub(sum, ab);
    let two = g.constant(2.0);
    let mm = g.mul(two, m);
    let half = g.div(a, mm);
    let whole = g.add(half, half);
    let quotient = g.div(sum, a);
    let back = g.mul(quotient, a);
    let outputs = [sum, rest, whole, back];
    let (h, results) = optimise(&g, &outputs);
    assert_eq!(results[0], results[3]);
    // c d, a b + c d fused, a / m.
    assert!(operations(&h, &results) <= 3, "{}", text(&h, &results));
}

#[test]
fn common_factors_are_found() {
    let mut g = Graph::new();
    let x: Vec<Node> = (0..6).map(|k| g.state(k)).collect();
    // x₀x₁ + x₀x₂ − x₀x₃ and x₄x₁ + x₄x₂ − x₄x₃ − x₅: two sums, a product, a fused one.
    let outputs: Vec<Node> = [0, 4]
        .map(|k| {
            let terms = [1, 2, 3].map(|j| g.mul(x[k], x[j]));
            let s = g.add(terms[0], terms[1]);
            let s = g.sub(s, terms[2]);
            if k == 4 { g.sub(s, x[5]) } else { s }
        })
        .into();
    let (h, results) = optimise(&g, &outputs);
    assert_eq!(operations(&h, &results), 4);
    // 1/x₀ shared by six quotients that are added up: one division.
    let mut sum = g.zero();
    let mut outputs = Vec::new();
    for k in 1..6 {
        let q = g.div(x[k], x[0]);
        sum = g.add(sum, q);
        let shifted = g.add(q, x[k - 1]);
        outputs.push(shifted);
    }
    outputs.push(sum);
    let (h, results) = optimise(&g, &outputs);
    assert_eq!(quotients(&h, &results), 1);
}

#[test]
fn every_graph_is_accepted() {
    let mut g = Graph::new();
    let (x, p) = (g.state(0), g.parameter(0));
    let slot = g.input(Input::Slot(3));
    let mut outputs = vec![x, x, p, slot];
    for c in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1e-320,
        1e308,
        -1e200,
        f64::MIN_POSITIVE,
        3.0,
    ] {
        let c = g.constant(c);
        outputs.push(c);
        for op in Binary::ALL.iter().filter(|op| !op.is_special()) {
            for pair in [[x, c], [c, x], [p, c], [c, slot], [p, x]] {
                outputs.push(g.binary(*op, pair[0], pair[1]));
            }
        }
        let chosen = g.select(x, c, p);
        outputs.push(chosen);
    }
    for op in Unary::ALL.iter().filter(|op| !op.is_special()) {
        outputs.push(g.unary(*op, x));
        outputs.push(g.unary(*op, p));
    }
    // Powers that overflow if they are collected without care.
    let mut tower = x;
    for _ in 0..40 {
        tower = g.mul(tower, tower);
        outputs.push(tower);
    }
    let fused = g.fused(holonome_model::graph::Fused::Fnma, x, p, slot);
    outputs.push(fused);
    let (h, results) = optimise(&g, &outputs);
    assert_eq!(results.len(), outputs.len());
    assert!(operations(&h, &results) <= operations(&g, &outputs));
    // Numbers are unchanged.
    for (&a, &b) in outputs.iter().zip(&results) {
        if let Some(v) = g.value(a) {
            assert_eq!(v.to_bits(), h.value(b).unwrap().to_bits());
        }
    }
    let none = optimise(&g, &[]);
    assert!(none.1.is_empty());
}

#[test]
fn common_powers_cancel_without_overflow() {
    let mut g = Graph::new();
    let x = g.state(0);
    let power = |g: &mut Graph, e: f64| {
        let e = g.constant(e);
        g.pow(x, e)
    };
    let (high, low, other) = (power(&mut g, 30.0), power(&mut g, 20.0), power(&mut g, 10.0));
    let quotient = g.div(high, low);
    let sum = g.add(quotient, other);
    let (h, results) = optimise(&g, &[sum]);
    assert!(operations(&h, &results) <= 5);
    let value = in_doubles(&h, &results, 0.0, &[1e20], &[])[0].value;
    // A few roundings.
    assert!((value / 2e200 - 1.0).abs() < 1e-14, "{value:e}");
}

#[test]
fn nothing_is_divided_that_was_not() {
    let mut g = Graph::new();
    let (x, y, m, zero) = (g.state(0), g.state(1), g.parameter(0), g.zero());
    // if(m > 0, x/m, 0) + m x, and other sums with m: m = 0 must not become their divisor, though
    // it may be one in the last output.
    let condition = g.binary(Binary::Less, zero, m);
    let quotient = g.div(x, m);
    let guarded = g.select(condition, quotient, zero);
    let (mx, my) = (g.mul(m, x), g.mul(m, y));
    let (xy, mxy) = (g.mul(x, y), g.mul(mx, y));
    let (sum, other) = (g.add(guarded, mx), g.add(my, xy));
    let third = g.add(mxy, my);
    // A sum with m in front in one place, which divides in another.
    let (one, xx) = (g.one(), g.mul(x, x));
    let (divisor, weighted) = (g.add(xx, xy), g.add(mxy, mx));
    let scaled = g.mul(m, divisor);
    let (scaled, inverse) = (g.sub(scaled, weighted), g.div(one, divisor));
    let lost = g.add(quotient, mxy);
    let outputs = [sum, other, third, scaled, inverse, lost];
    let (h, results) = optimise(&g, &outputs);
    for m in [0.0, 2.0] {
        compare((&g, &outputs), (&h, &results), 0.0, &[0.3, 0.7], &[m]);
        let got = in_doubles(&h, &results, 0.0, &[0.3, 0.7], &[m]);
        assert!(got[..5].iter().all(|r| r.value.is_finite()), "{got:?}");
    }
}

#[test]
fn long_chains_end() {
    // In a test's thread, whose stack is small.
    const LINKS: usize = 100_000;
    for kind in 0..4 {
        let mut g = Graph::new();
        let (mut s, y, one) = (g.state(0), g.state(1), g.one());
        for k in 0..LINKS {
            let x = g.state(2 + k % 1000);
            s = match kind {
                0 => g.sub(x, s),
                1 => g.mul(s, x),
                2 => {
                    let d = g.add(s, x);
                    g.div(one, d)
                }
                _ => {
                    let d = g.mul(s, s);
                    let d = g.unary(Unary::Sin, d);
                    g.add(d, y)
                }
            };
        }
        let (h, results) = optimise(&g, &[s]);
        assert!(operations(&h, &results) <= operations(&g, &[s]));
    }
}
