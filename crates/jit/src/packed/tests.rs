use super::*;
use crate::block::BlockInterpreter;
use crate::machine::MachineCode;
use crate::pack::Packed;
use holonome_model::graph::interpret::{Backend, Interpreter, Prologue};
use holonome_model::graph::{Graph, Node};

/// Numbers of a body in the state: position and velocity.
const OF_BODY: usize = 6;

/// Step of the symplectic Euler method of `n` bodies that attract each other, with one number that
/// stays, two that are exchanged, and one that becomes a parameter: what states may do.
fn bodies(n: usize) -> Tape {
    let mut g = Graph::new();
    let h = g.parameter(0);
    let states: Vec<Node> = (0..OF_BODY * n + 4).map(|k| g.state(k)).collect();
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
