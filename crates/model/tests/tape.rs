//! Tests of tapes and the scalar interpreter against a direct evaluation of the graph: the same
//! values up to the rounding of fused multiply-adds, bit for bit if there are none, whatever the
//! size of the tape.

#[path = "support/tree.rs"]
mod tree;

use holonome_model::graph::interpret::{Backend, Interpreter};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::primitive::{TRUE, Two};
use holonome_model::graph::tape::{Instruction, Tape};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::points::Points;
use proptest::prelude::*;

/// Value of a node by recursion, and a bound on the distance of any correctly rounded evaluation
/// from it: a running error analysis to first order, in which every operation adds one rounding of
/// its result.
fn direct(
    g: &Graph,
    node: Node,
    t: f64,
    x: &[f64],
    parameters: &[f64],
    memo: &mut Vec<Option<(f64, f64)>>,
) -> (f64, f64) {
    if let Some(known) = memo[node.0 as usize] {
        return known;
    }
    let mut at = |n| direct(g, n, t, x, parameters, memo);
    let rounding = f64::EPSILON;
    let result = match g.expression(node) {
        Expression::Constant(bits) => (f64::from_bits(bits), 0.0),
        Expression::Input(Input::State(k)) => (x[k as usize], 0.0),
        Expression::Input(Input::Parameter(k)) => (parameters[k as usize], 0.0),
        Expression::Input(Input::Time) => (t, 0.0),
        Expression::Input(Input::Slot(_)) => unreachable!("no templates here"),
        Expression::Unary(op, a) => {
            let (a, e) = at(a);
            let y = op.evaluate(a);
            // |f'| by a difference that is wide enough for the bound to be safe.
            let slope = (op.evaluate(a + e) - op.evaluate(a - e)).abs();
            (y, slope + rounding * y.abs())
        }
        Expression::Binary(op, a, b) => {
            let ((a, ea), (b, eb)) = (at(a), at(b));
            let y = op.evaluate(a, b);
            let e = match op {
                Binary::Add | Binary::Sub => ea + eb,
                Binary::Mul => a.abs() * eb + b.abs() * ea,
                Binary::Div => (ea + y.abs() * eb) / b.abs(),
                Binary::Min | Binary::Max => ea.max(eb),
                _ => {
                    (op.evaluate(a + ea, b + eb) - op.evaluate(a - ea, b - eb)).abs()
                        + (op.evaluate(a + ea, b - eb) - op.evaluate(a - ea, b + eb)).abs()
                }
            };
            (y, e + rounding * y.abs())
        }
        Expression::Fused(..)
        | Expression::Largest(..)
        | Expression::RoughPower(..)
        | Expression::Spread(..) => {
            unreachable!("only steps have these")
        }
        Expression::Select(c, a, b) => {
            if at(c).0 != 0.0 {
                at(a)
            } else {
                at(b)
            }
        }
    };
    memo[node.0 as usize] = Some(result);
    result
}

/// Runs a tape from start to end with a register for every instruction: no slots, no prologue.
fn plainly(tape: &Tape, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
    let mut r: Vec<f64> = Vec::with_capacity(tape.instructions.len());
    for &instruction in &tape.instructions {
        let v = |k: u32| r[k as usize];
        let value =
            match instruction {
                Instruction::Constant(bits) => f64::from_bits(bits),
                Instruction::State(k) => x[k as usize],
                Instruction::Parameter(k) => parameters[k as usize],
                Instruction::Time => t,
                Instruction::One(op, a) => op.evaluate(v(a)),
                Instruction::Two(op, a, b) => op.evaluate(v(a), v(b)),
                Instruction::Three(op, a, b, c) => op.evaluate(v(a), v(b), v(c)),
                Instruction::Repair(function, [a, b, fast, valid]) => {
                    if v(valid).to_bits() == TRUE { v(fast) } else { function.exact(v(a), v(b)) }
                }
            };
        r.push(value);
    }
    tape.outputs.iter().map(|&o| r[o as usize]).collect()
}

/// The interpreter, with its scratch full of rubbish: nothing may be read before it is written.
fn run(tape: &Tape, t: f64, x: &[f64], parameters: &[f64]) -> Vec<f64> {
    let kernel = Interpreter.compile(tape, 1).unwrap();
    let bound = kernel.bind(parameters);
    let (mut out, mut work) = (vec![f64::NAN; kernel.outputs()], vec![f64::NAN; kernel.work_len()]);
    kernel.run(&bound, &[t], x, &mut out, &mut work);
    // A second run in the same scratch gives the same.
    let mut again = vec![f64::NAN; kernel.outputs()];
    kernel.run(&bound, &[t], x, &mut again, &mut work);
    assert!(same(&out, &again));
    out
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

const STATES: usize = 6;
const PARAMETERS: usize = 4;

/// A random graph of `size` operations out of `allowed`, with some outputs. Values stay moderate:
/// every operation's result passes through the arguments of later ones, and the functions are
/// bounded.
fn random_graph(
    size: usize,
    seed: u64,
    allowed: &[Binary],
    functions: &[Unary],
) -> (Graph, Vec<Node>) {
    let mut points = Points::new(seed);
    let mut below = |n: usize| ((points.draw() + 1.0) / 2.0 * n as f64) as usize % n;
    let mut g = Graph::new();
    let mut pool: Vec<Node> = (0..STATES).map(|k| g.state(k)).collect();
    pool.extend((0..PARAMETERS).map(|k| g.parameter(k)));
    pool.push(g.input(Input::Time));
    // No powers of two: dividing by them becomes a product.
    pool.extend([0.3, -0.7, 1.1].map(|c| g.constant(c)));
    for _ in 0..size {
        // Half the arguments are recent, so that chains grow long; the others keep old values
        // alive.
        let argument = |below: &mut dyn FnMut(usize) -> usize| {
            let n = pool.len();
            if below(2) == 0 { pool[n - 1 - below(n.min(8))] } else { pool[below(n)] }
        };
        let (a, b, c) = (argument(&mut below), argument(&mut below), argument(&mut below));
        let node = match below(8) {
            0 => g.unary(functions[below(functions.len())], a),
            1 => {
                let condition = g.binary(Binary::Less, a, b);
                g.select(condition, b, c)
            }
            _ => g.binary(allowed[below(allowed.len())], a, b),
        };
        pool.push(node);
    }
    let outputs = (0..7)
        .map(|_| {
            let n = pool.len();
            pool[n - 1 - below(n / 2)]
        })
        .chain([pool[pool.len() - 1], pool[0]])
        .collect();
    (g, outputs)
}

fn inputs(seed: u64) -> (f64, Vec<f64>, Vec<f64>) {
    let mut points = Points::new(seed);
    let mut list = |n: usize| (0..n).map(|_| points.draw()).collect::<Vec<f64>>();
    (0.37, list(STATES), list(PARAMETERS))
}

const ALL: [Binary; 6] =
    [Binary::Add, Binary::Sub, Binary::Mul, Binary::Add, Binary::Min, Binary::Max];
const BOUNDED: [Unary; 5] = [Unary::Sin, Unary::Cos, Unary::Tanh, Unary::Atan, Unary::Neg];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_interpreter_is_right_up_to_rounding(seed in any::<u64>(), size in 1usize..120) {
        let (g, outputs) = random_graph(size, seed, &ALL, &BOUNDED);
        let (t, x, p) = inputs(seed ^ 1);
        let tape = Tape::new(&g, &outputs, STATES, PARAMETERS);
        let got = run(&tape, t, &x, &p);
        let mut memo = vec![None; g.len()];
        for (&output, got) in outputs.iter().zip(got) {
            let (exact, bound) = direct(&g, output, t, &x, &p, &mut memo);
            // Both evaluations may be off by the bound. Conditions of values that are equal up to
            // rounding may go either way.
            let ambiguous = g.reachable(&[output]).iter().any(|&n| match g.expression(n) {
                Expression::Binary(Binary::Less, a, b) => {
                    let ((a, ea), (b, eb)) = (direct(&g, a, t, &x, &p, &mut memo), direct(&g, b, t, &x, &p, &mut memo));
                    (a - b).abs() <= 2.0 * (ea + eb)
                }
                _ => false,
            });
            prop_assert!(ambiguous || (got - exact).abs() <= 2.0 * bound, "{got:e} {exact:e} may differ by {bound:e}\n{tape}");
        }
    }

    #[test]
    fn without_fused_products_every_bit_is_equal(seed in any::<u64>(), size in 1usize..300, sums in any::<bool>()) {
        // Sums without products, or products without sums.
        let allowed = if sums { [Binary::Add, Binary::Sub, Binary::Min, Binary::Max] } else { [Binary::Mul, Binary::Div, Binary::Min, Binary::Mul] };
        let (g, outputs) = random_graph(size, seed, &allowed, &BOUNDED);
        let (t, x, p) = inputs(seed ^ 1);
        let tape = Tape::new(&g, &outputs, STATES, PARAMETERS);
        // The functions contain multiply-adds, the formulas none.
        prop_assert_eq!(&tape, &Tape::of_fused(&g, &outputs, STATES, PARAMETERS));
        let mut memo = vec![None; g.len()];
        let exact: Vec<f64> = outputs.iter().map(|&o| direct(&g, o, t, &x, &p, &mut memo).0).collect();
        prop_assert!(same(&run(&tape, t, &x, &p), &exact), "{tape}");
    }

    #[test]
    fn large_tapes_reuse_registers_rightly(seed in any::<u64>(), size in 2000usize..6000) {
        let (g, outputs) = random_graph(size, seed, &ALL, &BOUNDED);
        let (t, x, p) = inputs(seed ^ 1);
        let tape = Tape::new(&g, &outputs, STATES, PARAMETERS);
        prop_assert!(same(&run(&tape, t, &x, &p), &plainly(&tape, t, &x, &p)));
    }

    #[test]
    fn the_prologue_is_what_parameters_decide(seed in any::<u64>(), size in 1usize..200) {
        let (g, outputs) = random_graph(size, seed, &ALL, &BOUNDED);
        let tape = Tape::new(&g, &outputs, STATES, PARAMETERS);
        // True for instructions that depend on the state or the time, directly or through their
        // arguments.
        let mut moving = Vec::new();
        for (i, &instruction) in tape.instructions.iter().enumerate() {
            for a in instruction.arguments() {
                prop_assert!((a as usize) < i, "an argument comes after its use\n{tape}");
            }
            let own = matches!(instruction, Instruction::State(_) | Instruction::Time);
            moving.push(own || instruction.arguments().any(|a| moving[a as usize]));
            prop_assert_eq!(moving[i], i >= tape.prologue, "instruction {} of\n{}", i, &tape);
        }
        // No instruction is computed that no output needs.
        let mut needed = vec![false; tape.instructions.len()];
        tape.outputs.iter().for_each(|&o| needed[o as usize] = true);
        for i in (0..needed.len()).rev() {
            prop_assert!(needed[i], "instruction {i} is dead\n{tape}");
            tape.instructions[i].arguments().for_each(|a| needed[a as usize] = true);
        }
        // One kernel, several sets of parameters: each as if it had been compiled for them alone.
        let kernel = Interpreter.compile(&tape, 1).unwrap();
        let mut work = vec![f64::NAN; kernel.work_len()];
        for k in 0..3 {
            let (t, x, p) = inputs(seed.wrapping_add(k));
            let mut out = vec![0.0; kernel.outputs()];
            kernel.run(&kernel.bind(&p), &[t], &x, &mut out, &mut work);
            prop_assert!(same(&out, &plainly(&tape, t, &x, &p)));
        }
    }

    #[test]
    fn compositions_of_all_functions(f in tree::trees(STATES), seed in any::<u64>()) {
        // The functions' own rounding is the same on both sides; derivatives bring in selects and
        // quotients.
        let mut g = Graph::new();
        let y = f.build(&mut g);
        let mut outputs = vec![y];
        outputs.extend(g.gradient(y).into_iter().map(|(_, d)| d));
        let (t, x, p) = inputs(seed);
        let tape = Tape::new(&g, &outputs, STATES, PARAMETERS);
        prop_assert!(same(&run(&tape, t, &x, &p), &plainly(&tape, t, &x, &p)));
    }
}

#[test]
fn registers_are_reused() {
    // A chain of ten thousand operations needs a handful of slots, not ten thousand.
    let mut g = Graph::new();
    let (x, mut y) = (g.state(0), g.state(1));
    for _ in 0..10_000 {
        let s = g.sqrt(y);
        y = g.add(s, x);
    }
    let tape = Tape::new(&g, &[y], 2, 0);
    let kernel = Interpreter.compile(&tape, 1).unwrap();
    assert!(kernel.work_len() <= 2 + 1 + 3 + 1, "{}", kernel.work_len());
}

#[test]
fn multiply_adds_are_fused() {
    // x² = 1 + 2⁻²⁶ + 2⁻⁵⁴ does not fit a double: rounded first, the difference to 1 + 2⁻²⁶ is 0;
    // fused, it is 2⁻⁵⁴.
    let x = 1.0 + 2f64.powi(-27);
    let c = 1.0 + 2f64.powi(-26);
    let tiny = 2f64.powi(-54);
    type Form = fn(&mut Graph, Node, Node) -> Node;
    let forms: [(Form, f64, f64); 4] = [
        (|g, p, c| g.add(p, c), -c, tiny),
        (|g, p, c| g.add(c, p), -c, tiny),
        (|g, p, c| g.sub(p, c), c, tiny),
        (|g, p, c| g.sub(c, p), c, -tiny),
    ];
    for (form, c, expected) in forms {
        let mut g = Graph::new();
        let (a, b, other) = (g.state(0), g.state(1), g.state(2));
        let product = g.mul(a, b);
        let y = form(&mut g, product, other);
        let tape = Tape::new(&g, &[y], 3, 0);
        assert_eq!(run(&tape, 0.0, &[x, x, c], &[]), [expected], "{tape}");
        assert_eq!(tape.operations(), 1, "{tape}");
        // A product that is needed by itself is rounded once and used as it is.
        let tape = Tape::new(&g, &[y, product], 3, 0);
        assert_eq!(run(&tape, 0.0, &[x, x, c], &[]), [0.0, x * x], "{tape}");
    }
    // Of two products the later one is fused: ab + cd = fma(c, d, ab).
    let mut g = Graph::new();
    let s: Vec<Node> = (0..4).map(|k| g.state(k)).collect();
    let (ab, cd) = (g.mul(s[0], s[1]), g.mul(s[2], s[3]));
    let y = g.add(ab, cd);
    let tape = Tape::new(&g, &[y], 4, 0);
    let v = [x, x, x, -x];
    assert_eq!(run(&tape, 0.0, &v, &[]), [v[2].mul_add(v[3], v[0] * v[1])]);
}

#[test]
fn products_of_parameters_stay_out_of_the_loop() {
    let mut g = Graph::new();
    let (a, b, x) = (g.parameter(0), g.parameter(1), g.state(0));
    let ab = g.mul(a, b);
    let y = g.add(ab, x);
    let tape = Tape::new(&g, &[y], 1, 2);
    assert!(
        matches!(
            tape.instructions[tape.prologue..],
            [Instruction::State(0), Instruction::Two(Two::Add, ..)]
        ),
        "{tape}"
    );
    // An output that is a parameter or a number needs no body at all.
    let three = g.constant(3.0);
    let tape = Tape::new(&g, &[ab, three, a], 1, 2);
    assert_eq!((tape.prologue, tape.instructions.len()), (4, 4), "{tape}");
    assert_eq!(run(&tape, 0.0, &[f64::NAN], &[2.0, 5.0]), [10.0, 3.0, 2.0]);
}

#[test]
fn conditions_and_nan() {
    // NaN is unordered: comparisons are false, min and max pass it on, a select evaluates to its
    // branch only.
    let mut g = Graph::new();
    let (x, y) = (g.state(0), g.state(1));
    let list = [Binary::Less, Binary::LessEqual, Binary::Equal, Binary::Min, Binary::Max]
        .map(|op| g.binary(op, x, y));
    let less = list[0];
    let chosen = g.select(less, x, y);
    let outputs = [&list[..], &[chosen]].concat();
    let tape = Tape::new(&g, &outputs, 2, 0);
    let got = run(&tape, 0.0, &[f64::NAN, 1.0], &[]);
    assert!(same(&got, &[0.0, 0.0, 0.0, f64::NAN, f64::NAN, 1.0]), "{got:?}");
    assert_eq!(run(&tape, 0.0, &[-0.0, 0.0], &[])[2], 1.0);
}

#[test]
#[should_panic(expected = "slot reached a tape")]
fn templates_are_no_tapes() {
    let mut g = Graph::new();
    let slot = g.input(Input::Slot(0));
    Tape::new(&g, &[slot], 0, 0);
}

/// A lane whose parameters are changed repeatedly equals a kernel bound to the last ones, also if
/// there are so many parameters that some of them are followed together.
#[test]
fn lanes_hold_what_their_last_parameters_give() {
    const LANES: usize = 3;
    let mut g = Graph::new();
    let inputs: Vec<Node> = (0..80).map(|k| g.parameter(k)).collect();
    let x = g.state(0);
    let pairs = inputs.windows(2).step_by(3);
    let mut outputs: Vec<Node> = pairs
        .map(|pair| {
            let product = g.mul(pair[0], pair[1]);
            let root = g.sqrt(product);
            g.mul(root, x)
        })
        .collect();
    outputs
        .extend(inputs.iter().step_by(7).map(|&parameter| g.add(parameter, x)).collect::<Vec<_>>());
    let kernel = Interpreter.compile(&Tape::new(&g, &outputs, 1, inputs.len()), LANES).unwrap();
    let values = |bound: &[f64]| {
        let (mut out, mut work) = (vec![0.0; outputs.len() * LANES], vec![0.0; kernel.work_len()]);
        kernel.run(bound, &[0.0; LANES], &[0.5; LANES], &mut out, &mut work);
        out.into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    let mut parameters = vec![(0..80).map(|k| 1.0 + f64::from(k)).collect::<Vec<f64>>(); LANES];
    let mut bound = kernel.bind(&parameters[0]);
    let (mut lane, mut changed) = (0, 0);
    for round in 0..200 {
        lane = (lane + 1 + round % 2) % LANES;
        for _ in 0..round % 3 {
            changed = (changed * 31 + 17 + round) % 80;
            parameters[lane][changed] += 0.25;
        }
        kernel.rebind(&mut bound, lane, &parameters[lane]);
        let all = values(&bound);
        for (k, parameters) in parameters.iter().enumerate() {
            let of = |all: &[u64]| all.iter().skip(k).step_by(LANES).copied().collect::<Vec<_>>();
            assert_eq!(
                of(&all),
                of(&values(&kernel.bind(parameters))),
                "lane {k} in round {round}"
            );
        }
    }
}

/// Test that twice a number takes no operation of its own beside a factor that depends on
/// parameters only, and that the bits are those of the formula as it is written.
#[test]
fn doublings_move_to_parameters() {
    let mut g = Graph::new();
    let (x, y, h) = (g.state(0), g.state(1), g.parameter(0));
    let twice = g.add(x, x);
    let product = g.mul(h, twice);
    let again = g.add(product, product);
    let sum = g.fma(again, h, y);
    let tape = Tape::of_fused(&g, &[sum, product], 2, 1);
    let body = &tape.instructions[tape.prologue..];
    assert!(!body.iter().any(|i| matches!(i, Instruction::Two(Two::Add, ..))), "{tape}");
    assert_eq!(tape.operations(), 3, "4h x times h plus y, and 2h x: {tape}");
    let kernel = Interpreter.compile(&tape, 1).unwrap();
    let mut work = vec![0.0; kernel.work_len()];
    for (x, y, h) in
        [(0.1, 0.7, 1e-3), (-1e300, 3.0, 1e-7), (1e-150, 1e-160, 0.3), (f64::INFINITY, 0.0, 1.0)]
    {
        let mut out = [0.0; 2];
        kernel.run(&kernel.bind(&[h]), &[0.0], &[x, y], &mut out, &mut work);
        let product = h * (x + x);
        let expected = [(product + product).mul_add(h, y), product];
        assert_eq!(out.map(f64::to_bits), expected.map(f64::to_bits), "{x} {y} {h}");
    }
}
