use super::*;
use crate::block::BlockInterpreter;
use crate::machine::MachineCode;
use crate::pack::Packed;
use holonome_model::graph::interpret::{Backend, Interpreter, Prologue};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::series::Series;
use holonome_model::graph::{Graph, Node};

/// Numbers of a body in the state: position and velocity.
const OF_BODY: usize = 6;

/// Step of the symplectic Euler method of `n` bodies that attract each other, with one number that
/// stays, two that are exchanged, one that becomes a parameter, and one that becomes a sum with
/// parameters: what states may do.
fn bodies(n: usize) -> Tape {
    let mut g = Graph::new();
    let h = g.parameter(0);
    let states: Vec<Node> = (0..OF_BODY * n + 5).map(|k| g.state(k)).collect();
    let (stays, last) = (states[OF_BODY * n], OF_BODY * n + 1);
    let mut outputs = states.clone();
    for i in 0..n {
        for j in 0..i {
            let between: Vec<Node> =
                (0..3).map(|c| g.sub(states[OF_BODY * i + c], states[OF_BODY * j + c])).collect();
            let squares: Vec<Node> = between.iter().map(|&d| g.mul(d, d)).collect();
            let square = g.sum(squares);
            let distance = g.sqrt(square);
            let cube = g.mul(square, distance);
            let over = g.div(stays, cube);
            let kick = g.mul(h, over);
            for (c, &d) in between.iter().enumerate() {
                let change = g.mul(kick, d);
                let [to, from] = [i, j].map(|body| OF_BODY * body + 3 + c);
                outputs[to] = g.sub(outputs[to], change);
                outputs[from] = g.add(outputs[from], change);
            }
        }
    }
    for k in (0..OF_BODY * n).filter(|k| k % OF_BODY < 3) {
        let change = g.mul(h, outputs[k + 3]);
        outputs[k] = g.add(states[k], change);
    }
    outputs.swap(last, last + 1);
    outputs[last + 2] = h;
    let square = g.mul(h, h);
    let of_parameters = g.add(h, square);
    let [a, b] = [0, 1].map(|k| g.mul(states[k], states[k]));
    outputs[last + 3] = g.sum([of_parameters, a, b]);
    Tape::new(&g, &outputs, states.len(), 1)
}

fn start(states: usize) -> Vec<f64> {
    (0..states).map(|k| 1.0 + (k as f64 * 0.7).sin() + 0.1 * k as f64).collect()
}

/// The state after `count` turns, by the operations one by one.
fn one_by_one(tape: &Tape, count: u64) -> Vec<u64> {
    let kernel = Interpreter.compile(tape, 1).unwrap();
    let mut x = start(tape.states);
    kernel.iterate(&kernel.bind(&[0.01]), &mut x, count, &mut vec![0.0; kernel.work_len()]);
    x.into_iter().map(f64::to_bits).collect()
}

/// The state after `count` turns of packs, on a backend for tapes in lanes.
fn in_packs(backend: &dyn Backend, packed: &Packed, tape: &Tape, count: u64) -> Vec<u64> {
    let kernel = backend.compile(&packed.tape, LANES).unwrap();
    let alone = Interpreter.compile(tape, 1).unwrap();
    let (prologue, values) = (Prologue::new(tape), alone.bind(&[0.01]));
    let number = |fixed: Fixed| match fixed {
        Fixed::Bound(r) => values[prologue.bound().binary_search(&r).unwrap()],
        Fixed::Bits(bits) => f64::from_bits(bits),
    };
    let mut bound = kernel.bind(&vec![0.0; packed.parameters.len()]);
    for lane in 0..LANES {
        let of_lane: Vec<f64> = packed.parameters.iter().map(|p| number(p[lane])).collect();
        kernel.rebind(&mut bound, lane, &of_lane);
    }
    let held = packed.states.as_flattened();
    let x = start(tape.states);
    // Lanes that hold nothing may hold anything.
    let first = |k: u32| if k == NONE { f64::NAN } else { x[k as usize] };
    let mut lanes: Vec<f64> = held.iter().map(|&k| first(k)).collect();
    kernel.iterate(&bound, &mut lanes, count, &mut vec![0.0; kernel.work_len()]);
    let mut after = x.clone();
    let changing = packed.tape.outputs.len() * LANES;
    for (&k, number) in held[..changing].iter().zip(lanes).filter(|&(&k, _)| k != NONE) {
        after[k as usize] = number;
    }
    after.into_iter().map(f64::to_bits).collect()
}

#[test]
fn packs_give_the_bits_of_single_operations_on_every_backend() {
    for n in [7, 8, 9, 12, 15] {
        let tape = bodies(n);
        let packed = pack(&tape).expect("bodies are alike: {n}");
        let operations = packed.tape.operations();
        assert!(operations < 3 * tape.operations() / 4, "{n}: {operations}");
        let mut backends: Vec<Box<dyn Backend>> =
            vec![Box::new(Interpreter), Box::new(BlockInterpreter::detect())];
        if Isa::Avx512.is_available() {
            backends.push(Box::new(MachineCode::new(Isa::Avx512).unwrap()));
        }
        for backend in backends {
            assert_eq!(in_packs(&*backend, &packed, &tape, 7), one_by_one(&tape, 7), "{n} bodies");
        }
    }
}

#[test]
fn a_loop_goes_on_in_packs_with_the_same_bits() {
    if !Isa::Avx512.is_available() {
        return;
    }
    let tape = bodies(9);
    assert!(pack(&tape).is_some());
    let machine = MachineCode::new(Isa::Avx512).unwrap().packing_later();
    let kernel = machine.compile(&tape, 1).unwrap();
    let (bound, mut x) = (kernel.bind(&[0.01]), start(tape.states));
    let mut work = vec![0.0; kernel.work_len()];
    let counts = [FEWEST - 1, 1, 3, 500, FEWEST_AT_ONCE];
    counts.iter().for_each(|&count| kernel.iterate(&bound, &mut x, count, &mut work));
    let after: Vec<u64> = x.into_iter().map(f64::to_bits).collect();
    assert_eq!(after, one_by_one(&tape, counts.iter().sum()));
}

#[test]
fn what_is_not_alike_is_left_as_it_is() {
    // A chain of operations each of which waits for the one before.
    let mut g = Graph::new();
    let states: Vec<Node> = (0..4).map(|k| g.state(k)).collect();
    let mut last = states[0];
    for k in 0..200 {
        last = g.mul(last, states[k % 4]);
        last = g.add(last, states[(k + 1) % 4]);
    }
    let tape = Tape::new(&g, &[last, states[1], states[2], states[3]], 4, 0);
    assert!(suits(&tape) && pack(&tape).is_none());
}

/// Step of a Taylor series of this order, of a pendulum in space: its Dirac extension.
fn taylor(order: u32) -> Tape {
    let mut field = Graph::new();
    let g = &mut field;
    let x: Vec<Node> = (0..6).map(|k| g.state(k)).collect();
    let (q, p) = x.split_at(3);
    let dot = |g: &mut Graph, a: &[Node], b: &[Node]| {
        let products: Vec<Node> = a.iter().zip(b).map(|(&a, &b)| g.mul(a, b)).collect();
        g.sum(products)
    };
    let [qq, pp, qp] = [(q, q), (p, p), (q, p)].map(|(a, b)| dot(g, a, b));
    let (along, weight) = (g.div(qp, qq), g.constant(0.7));
    let pull = g.mul(weight, q[2]);
    let pull = g.sub(pull, pp);
    let pull = g.div(pull, qq);
    let mut rates = Vec::new();
    for (&q, &p) in q.iter().zip(p) {
        let part = g.mul(along, q);
        rates.push(g.sub(p, part));
    }
    for (k, (&q, &p)) in q.iter().zip(p).enumerate() {
        let [a, b] = [(along, p), (pull, q)].map(|(a, b)| g.mul(a, b));
        let rate = g.add(a, b);
        rates.push(if k == 2 { g.sub(rate, weight) } else { rate });
    }
    let series = Series::new(&field, &rates).unwrap();
    let mut step = Graph::new();
    let g = &mut step;
    let x: Vec<Node> = (0..6).map(|k| g.state(k)).collect();
    let (t, length) = (g.parameter(0), g.parameter(0));
    let c = series.solution(g, (t, length), &x, order);
    let x1: Vec<Node> = (0..6)
        .map(|i| {
            c.iter().skip(1).rev().fold(c[order as usize][i], |sum, c| g.fma(sum, length, c[i]))
        })
        .collect();
    Tape::of_fused(g, &x1, 6, 1)
}

#[test]
fn the_components_of_a_series_are_side_by_side() {
    let tape = taylor(12);
    let packed = pack(&tape).expect("its components are alike");
    // Three of four lanes hold components; sums over them are scalars.
    assert!(10 * packed.tape.operations() < 7 * tape.operations());
    assert_eq!(in_packs(&Interpreter, &packed, &tape, 3), one_by_one(&tape, 3));
}

/// Rotors that are driven by the sines of their angles; the loop ends before an angle of 30 is
/// passed by the first one, and one number stays what it is.
fn rotors(n: usize) -> Tape {
    let mut g = Graph::new();
    let h = g.parameter(0);
    let x: Vec<Node> = (0..=2 * n).map(|k| g.state(k)).collect();
    let mut after = Vec::new();
    for i in 0..n {
        let pull = g.unary(Unary::Sin, x[i]);
        let pull = g.mul(pull, x[2 * n]);
        after.push(g.fma(h, pull, x[n + i]));
    }
    let angles: Vec<Node> = (0..n).map(|i| g.fma(h, after[i], x[i])).collect();
    let limit = g.constant(30.0);
    let goes_on = g.binary(Binary::Less, angles[0], limit);
    Tape::of_loop(&g, &[angles, after].concat(), goes_on, 2 * n + 1, 1)
}

#[test]
fn a_loop_ends_in_packs_where_it_ends_by_itself() {
    let tape = rotors(11);
    let packed = pack(&tape).expect("rotors are alike");
    for count in [5, 100_000] {
        let expected = one_by_one(&tape, count);
        assert_eq!(in_packs(&Interpreter, &packed, &tape, count), expected, "{count}");
        if Isa::Avx512.is_available() {
            let machine = MachineCode::new(Isa::Avx512).unwrap();
            assert_eq!(in_packs(&machine, &packed, &tape, count), expected, "{count}");
        }
    }
    let ends = one_by_one(&tape, 100_000);
    assert!(f64::from_bits(ends[0]) >= 30.0, "the loop ends by itself");
}
