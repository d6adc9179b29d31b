//! Tests of kernels at the edges: nothing to compute, no turns, very long tapes, and several
//! threads at once.

use holonome_jit::{BlockInterpreter, Gradual, Isa, MachineCode, best};
use holonome_model::graph::Graph;
use holonome_model::graph::elementary::Elementary;
use holonome_model::graph::interpret::{Backend, CycleMap, Interpreter};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::{Instruction, Tape};
use std::time::Duration;

/// Every backend that runs here, the interpreter first.
fn backends() -> Vec<Box<dyn Backend>> {
    let mut list: Vec<Box<dyn Backend>> = vec![
        Box::new(Interpreter),
        Box::new(BlockInterpreter::detect()),
        Box::new(BlockInterpreter::baseline()),
        best(false).backend,
    ];
    // Compiled in the middle of these tests.
    list.extend(
        [0, 1, 3, 5].map(|count| Box::new(Gradual::after(count, best(false).backend)) as _),
    );
    list.extend(
        Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()).map(|m| Box::new(m) as _),
    );
    list
}

fn tape(
    instructions: Vec<Instruction>,
    prologue: usize,
    outputs: Vec<u32>,
    states: usize,
    parameters: usize,
) -> Tape {
    Tape { instructions, prologue, outputs, goes_on: None, states, parameters }
}

/// x ↦ x + h (1 − x²), with h a parameter.
fn logistic() -> Tape {
    use Instruction::*;
    let code = vec![
        Constant(1.0f64.to_bits()),
        Parameter(0),
        State(0),
        Three(self::Three::Fnma, 2, 2, 0),
        Three(self::Three::Fma, 1, 3, 2),
    ];
    tape(code, 2, vec![4], 1, 1)
}

#[test]
fn nothing_to_compute() {
    for backend in backends() {
        for lanes in [1, 3, 4, 8, 16] {
            // Neither outputs nor states.
            let empty = backend.compile(&tape(vec![], 0, vec![], 0, 0), lanes).unwrap();
            let mut work = vec![0.0; empty.work_len()];
            let bound = empty.bind(&[]);
            empty.run(&bound, &vec![0.0; lanes], &[], &mut [], &mut work);
            empty.iterate(&bound, &mut [], 7, &mut work);

            // No outputs of two states.
            let silent = backend.compile(&tape(vec![], 0, vec![], 2, 0), lanes).unwrap();
            let mut x: Vec<f64> = (0..2 * lanes).map(|i| i as f64).collect();
            let before = x.clone();
            let mut work = vec![0.0; silent.work_len()];
            silent.iterate(&silent.bind(&[]), &mut x, 7, &mut work);
            assert_eq!(x, before);

            // A number and a parameter as outputs, without states.
            let code = vec![Instruction::Constant(2.5f64.to_bits()), Instruction::Parameter(0)];
            let constant = backend.compile(&tape(code, 2, vec![0, 1, 0], 0, 1), lanes).unwrap();
            let values: Vec<f64> = (0..lanes).map(|l| l as f64 - 0.5).collect();
            let mut out = vec![0.0; 3 * lanes];
            let mut work = vec![0.0; constant.work_len()];
            let mut bound = constant.bind(&values[..1]);
            for lane in 0..lanes {
                constant.rebind(&mut bound, lane, &values[lane..=lane]);
            }
            constant.run(&bound, &vec![0.0; lanes], &[], &mut out, &mut work);
            assert_eq!(out[..lanes], vec![2.5; lanes]);
            assert_eq!(out[lanes..2 * lanes], values);
            assert_eq!(out[2 * lanes..], vec![2.5; lanes]);
        }
    }
}

/// Test that a kernel for the first lane of arrays computes what one of one lane does, and leaves
/// the others alone: with a number that stays, and one whose argument is so large that it is
/// computed again (a repair).
#[test]
fn the_first_lane_alone() {
    let mut g = Graph::new();
    let (x, y, step) = (g.state(0), g.state(1), g.parameter(0));
    let sine = g.unary(Unary::Sin, x);
    let next = g.fma(step, sine, y);
    let product = g.mul(x, next);
    let short = Tape::of_fused(&g, &[next, y, product], 3, 1);
    // Too long for a loop of machine code.
    let long = (0..9000).fold(next, |sum, k| {
        let small = g.constant(1e-3 / f64::from(k + 1));
        g.fma(step, sum, small)
    });
    let long = Tape::of_fused(&g, &[long, y, product], 3, 1);
    let all = [0.3, 1e300].into_iter().flat_map(|start| [(start, &short), (start, &long)]);
    for ((start, tape), backend) in
        all.flat_map(|case| backends().into_iter().map(move |backend| (case, backend)))
    {
        let alone = backend.compile(tape, 1).unwrap();
        let bound = alone.bind(&[0.25]);
        let mut work = vec![0.0; alone.work_len()];
        let mut expected = vec![vec![start, 0.5, 7.0]];
        for _ in 0..3 {
            let mut next = expected[expected.len() - 1].clone();
            alone.iterate(&bound, &mut next, 1, &mut work);
            expected.push(next);
        }
        for lanes in [1, 4, 8] {
            let kernel = backend.compile_first_lane(tape, lanes).unwrap();
            let bound = kernel.bind(&[0.25]);
            let mut work = vec![0.0; kernel.work_len()];
            let wide = |of: &[f64]| -> Vec<f64> {
                of.iter()
                    .flat_map(|&x| (0..lanes).map(move |lane| if lane == 0 { x } else { -1.0 }))
                    .collect()
            };
            let mut iterated = wide(&expected[0]);
            kernel.iterate(&bound, &mut iterated, 3, &mut work);
            assert_eq!(iterated, wide(&expected[3]), "iterated from {start} in {lanes}");
            let mut once = wide(&[0.0; 3]);
            kernel.run(&bound, &vec![0.0; lanes], &wide(&expected[0]), &mut once, &mut work);
            assert_eq!(once, wide(&expected[1]), "once from {start} in {lanes}");
            let mut kept: Vec<f64> = [&wide(&expected[0])[..], &wide(&[0.0; 9])].concat();
            kernel.iterate_keeping(&bound, &mut kept, &mut work);
            assert_eq!(kept, wide(&expected.concat()), "kept from {start} in {lanes}");
        }
    }
}

/// Test that a cycle of machine code does what its maps do one after the other: an iteration in all
/// lanes whose number of turns depends on the numbers, and a map of the first lane that ends the
/// cycle. Maps that may have to be computed again are refused.
#[test]
fn a_cycle_is_its_maps_one_by_one() {
    let mut g = Graph::new();
    let [a, count, x, total] = [0, 1, 2, 3].map(|k| g.state(k));
    let (part, one, zero) = (g.parameter(0), g.one(), g.zero());
    let shared = g.spread(x, 0);
    let next = g.fma(part, a, shared);
    let change = g.sub(next, a);
    let change = g.unary(Unary::Abs, change);
    let change = g.spread(change, 0);
    let enough = g.parameter(1);
    let changes = g.binary(Binary::Less, enough, change);
    let counted = g.add(count, one);
    let iteration = Tape::of_loop(&g, &[next, counted], changes, 4, 2);
    let (factor, limit) = (g.parameter(0), g.parameter(1));
    let moved = g.fma(factor, a, x);
    let sum = g.add(total, count);
    let goes_on = g.binary(Binary::Less, sum, limit);
    let ending = Tape::of_loop(&g, &[a, zero, moved, sum], goes_on, 4, 2);
    let known: [&[f64]; 2] = [&[0.7, 1e-3], &[-0.1, 200.0]];
    for (lanes, count) in
        [4, 8].into_iter().flat_map(|lanes| [0, 1, 3, 1000].map(|count| (lanes, count)))
    {
        let start: Vec<f64> = (0..4 * lanes)
            .map(|k| if k < lanes { k as f64 } else { f64::from(k == 2 * lanes) })
            .collect();
        let kernels = [
            Interpreter.compile(&iteration, lanes).unwrap(),
            Interpreter.compile_first_lane(&ending, lanes).unwrap(),
        ];
        let bound: Vec<_> =
            kernels.iter().zip(known).map(|(kernel, known)| kernel.bind(known)).collect();
        let (mut expected, mut made) = (start.clone(), 0);
        while made < count && (made == 0 || expected[3 * lanes] < 200.0) {
            for ((kernel, bound), turns) in kernels.iter().zip(&bound).zip([20, 1]) {
                kernel.iterate(bound, &mut expected, turns, &mut vec![0.0; kernel.work_len()]);
            }
            made += 1;
        }
        assert!(count < 1000 || (made > 5 && made < 200), "{made} turns");
        for machine in Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()) {
            let map = |tape, first_alone, turns| CycleMap { tape, lanes, first_alone, turns };
            let cycle = machine
                .compile_cycle(&[map(&iteration, false, 20), map(&ending, true, 1)])
                .unwrap();
            let own: Vec<_> = [(&iteration, false), (&ending, true)]
                .into_iter()
                .zip(known)
                .map(|((tape, alone), known)| match alone {
                    true => machine.compile_first_lane(tape, lanes).unwrap().bind(known),
                    false => machine.compile(tape, lanes).unwrap().bind(known),
                })
                .collect();
            let values = cycle.bind(&[&own[0], &own[1]]);
            let mut numbers = start.clone();
            cycle.run(&values, &mut numbers, count, &mut vec![0.0; cycle.work_len()]);
            assert_eq!(numbers, expected, "{:?}: {count} turns in {lanes} lanes", machine.isa());
        }
    }
    let sine = g.unary(Unary::Sin, a);
    let repeated = Tape::of_loop(&g, &[sine, zero, moved, sum], goes_on, 4, 2);
    for machine in Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()) {
        let refused = machine.compile_cycle(&[CycleMap {
            tape: &repeated,
            lanes: 4,
            first_alone: false,
            turns: 1,
        }]);
        assert!(refused.is_err(), "a sine may be computed again");
    }
}

#[test]
fn no_turns_change_nothing() {
    for backend in backends() {
        for lanes in [1, 4, 8, 5] {
            let kernel = backend.compile(&logistic(), lanes).unwrap();
            let mut x: Vec<f64> = (0..lanes).map(|l| 0.1 * l as f64).collect();
            let before = x.clone();
            let mut work = vec![0.0; kernel.work_len()];
            kernel.iterate(&kernel.bind(&[0.01]), &mut x, 0, &mut work);
            assert_eq!(x, before);
        }
    }
}

#[test]
fn special_functions_are_called_with_the_same_bits() {
    let mut g = Graph::new();
    let x = g.state(0);
    let one_order = g.constant(2.0);
    let functions =
        [Binary::BesselJ, Binary::EllipticK, Binary::EllipticE, Binary::Polygamma, Binary::GammaP];
    let mut outputs: Vec<_> = functions.iter().map(|&op| g.binary(op, one_order, x)).collect();
    outputs.extend([Unary::Gamma, Unary::LogGamma].map(|op| g.unary(op, x)));
    // Straight-line code around a call, before and behind it.
    let wave = g.unary(Unary::Sin, outputs[0]);
    outputs.push(g.mul(wave, outputs[5]));
    let tape = Tape::new(&g, &outputs, 1, 0);
    for lanes in [1, 2, 4, 8, 9] {
        let x: Vec<f64> = (0..lanes).map(|k| 0.1 + 0.09 * k as f64).collect();
        let results: Vec<Vec<u64>> = backends()
            .iter()
            .map(|backend| {
                let kernel = backend.compile(&tape, lanes).unwrap();
                let mut work = vec![0.0; kernel.work_len()];
                let mut out = vec![0.0; outputs.len() * lanes];
                kernel.run(&kernel.bind(&[]), &vec![0.0; lanes], &x, &mut out, &mut work);
                out.into_iter().map(f64::to_bits).collect()
            })
            .collect();
        let direct =
            functions.iter().flat_map(|op| x.iter().map(|&x| op.evaluate(2.0, x).to_bits()));
        assert_eq!(results[0][..5 * lanes], direct.collect::<Vec<_>>());
        for result in &results {
            assert_eq!(result, &results[0]);
        }
    }
}

#[test]
fn a_repair_repeats_the_whole_call() {
    use Instruction::*;
    // x ↦ −3, but exp x if x > −1; y counts the turns.
    let code = vec![
        Constant((-1.0f64).to_bits()),
        Constant((-3.0f64).to_bits()),
        State(0),
        Two(self::Two::LessEqual, 2, 0),
        Repair(Elementary::Exp, [2, 2, 1, 3]),
        State(1),
        Two(self::Two::Add, 0, 5),
    ];
    let tape = tape(code, 2, vec![4, 6], 2, 0);
    for lanes in [1, 2, 4, 8, 9, 12, 16] {
        // One lane leaves the fast branch.
        for one in [0, lanes - 1] {
            let results: Vec<Vec<f64>> = backends()
                .iter()
                .map(|backend| {
                    let kernel = backend.compile(&tape, lanes).unwrap();
                    let mut work = vec![0.0; kernel.work_len()];
                    let bound = kernel.bind(&[]);
                    let mut x: Vec<f64> =
                        (0..2 * lanes).map(|i| if i == one { -0.75 } else { -3.0 }).collect();
                    kernel.iterate(&bound, &mut x, 3, &mut work);
                    let mut out = vec![0.0; 2 * lanes];
                    kernel.run(&bound, &vec![0.0; lanes], &x, &mut out, &mut work);
                    [x, out].concat()
                })
                .collect();
            // That lane has been repaired, and the others did not need it.
            assert_eq!(
                results[0].iter().filter(|&&x| x == -3.0).count(),
                2 * lanes - 2,
                "{:?}",
                results[0]
            );
            for result in &results {
                assert_eq!(result, &results[0]);
            }
        }
    }
}

/// Loop that counts x₀ up to the limit x₁ and stops there; x₂ counts the turns.
fn counting() -> Tape {
    let mut g = Graph::new();
    let [x, limit, turns] = [0, 1, 2].map(|k| g.state(k));
    let one = g.one();
    let (next, turns) = (g.add(x, one), g.add(turns, one));
    let open = g.binary(Binary::LessEqual, next, limit);
    let x = g.select(open, next, x);
    let goes_on = g.binary(Binary::Less, x, limit);
    // The limit is a state that no turn changes.
    Tape::of_loop(&g, &[x, limit, turns], goes_on, 3, 0)
}

#[test]
fn loops_stop_where_the_tape_says() {
    let tape = counting();
    for (backend, who) in backends().iter().zip(0..) {
        for lanes in [1, 2, 4, 8, 16, 17, 100] {
            let kernel = backend.compile(&tape, lanes).unwrap();
            let mut work = vec![0.0; kernel.work_len()];
            let bound = kernel.bind(&[]);
            let limit = |lane: usize| (5 + 7 * lane % 11) as f64;
            let mut x = vec![0.0; 3 * lanes];
            (0..lanes).for_each(|lane| x[lanes + lane] = limit(lane));
            let mut calls = 0;
            while (0..lanes).any(|lane| x[lane] < limit(lane)) {
                let before = x.clone();
                kernel.iterate(&bound, &mut x, 4, &mut work);
                calls += 1;
                for lane in 0..lanes {
                    let turns = x[2 * lanes + lane] - before[2 * lanes + lane];
                    assert!((1.0..=4.0).contains(&turns), "{turns} turns");
                    assert_eq!(
                        x[lane],
                        limit(lane).min(before[lane] + turns),
                        "backend {who}, {lanes} lanes"
                    );
                    let met = (0..lanes).any(|lane| x[lane] == limit(lane));
                    assert!(
                        turns == 4.0 || met,
                        "backend {who}: stopped after {turns} turns for nothing"
                    );
                }
            }
            // At once if no lane waits for another.
            assert!(lanes > 1 || (calls, x[2]) == (2, 5.0), "{calls} calls, {x:?}");
        }
    }
}

#[test]
fn shared_by_threads() {
    const THREADS: usize = 4;
    for backend in backends() {
        let kernel = backend.compile(&logistic(), 4).unwrap();
        let bound = kernel.bind(&[0.01]);
        let run = |thread: usize| {
            let mut x: Vec<f64> = (0..4).map(|l| (thread + l) as f64 / 10.0).collect();
            let mut work = vec![0.0; kernel.work_len()];
            for _ in 0..1000 {
                kernel.iterate(&bound, &mut x, 10, &mut work);
            }
            x
        };
        let alone: Vec<Vec<f64>> = (0..THREADS).map(run).collect();
        let together: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|i| scope.spawn(move || run(i))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(alone, together);
    }
}

/// A tape of about `operations` operations in which values live long and short.
fn long(operations: u32) -> Tape {
    use Instruction::*;
    const STATES: u32 = 8;
    let mut code = vec![Constant(0.5f64.to_bits()), Constant(0.999f64.to_bits())];
    code.extend((0..STATES).map(State));
    let first = code.len() as u32;
    for i in 0..operations {
        let n = code.len() as u32;
        let back =
            |k: u32| n - 1 - (i.wrapping_mul(2_654_435_761) >> (32 - k)) % (n - 2).min(1 << k);
        code.push(match i % 5 {
            0 => Two(self::Two::Mul, back(3), 0),
            1 => Two(self::Two::Sub, back(2), back(6)),
            2 => Three(self::Three::Fma, back(1), 1, back(5)),
            3 => Three(self::Three::Fnma, back(4), 0, back(2)),
            _ => One(self::One::Sqrt, first + i / 2),
        });
        // Roots of negative numbers would be NaN for ever after.
        if i % 5 == 4 {
            let n = code.len() as u32 - 1;
            let root = code.pop().unwrap();
            let One(op, a) = root else { unreachable!() };
            code.push(Two(self::Two::Mul, a, a));
            code.push(One(op, n));
        }
    }
    let n = code.len() as u32;
    tape(code, 2, (0..STATES).map(|k| n - 1 - 3 * k).collect(), STATES as usize, 0)
}

/// Processor time of this thread, which does not depend on other programs; 0 if the system does not
/// tell it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default(),
    )
}

#[test]
fn long_tapes() {
    for operations in [10_000, 100_000, 300_000] {
        let tape = long(operations);
        let x: Vec<f64> = (0..tape.states).map(|i| 0.3 + i as f64 / 10.0).collect();
        let results: Vec<Vec<u64>> = backends()
            .iter()
            .map(|backend| {
                let start = processor_time();
                let kernel = backend.compile(&tape, 1).unwrap();
                // Far above the time needed; a pass that is not linear would take minutes.
                let took = processor_time() - start;
                assert!(took < Duration::from_secs(20), "{operations} operations took {took:?}");
                let (mut out, mut work) =
                    (vec![0.0; tape.outputs.len()], vec![0.0; kernel.work_len()]);
                let bound = kernel.bind(&[]);
                kernel.run(&bound, &[0.0], &x, &mut out, &mut work);
                let mut iterated = x.clone();
                kernel.iterate(&bound, &mut iterated, 2, &mut work);
                // All NaNs count as equal here.
                [out, iterated]
                    .concat()
                    .iter()
                    .map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() })
                    .collect()
            })
            .collect();
        assert!(
            results[0][..tape.outputs.len()].iter().all(|&x| f64::from_bits(x).is_finite()),
            "{:?}",
            results[0]
        );
        for result in &results {
            assert_eq!(result, &results[0], "{operations} operations");
        }
    }
}

#[test]
fn refusals_have_a_reason() {
    let refusing = MachineCode::refusing("this test does not want machine code");
    let Err(refused) = refusing.compile(&logistic(), 1) else { panic!("it compiled") };
    assert_eq!(refused.to_string(), "this test does not want machine code");
    let best = best(false);
    match MachineCode::detect() {
        Ok(machine) => {
            assert!(best.refused.is_none());
            assert_eq!(best.lanes, machine.preferred_lanes());
        }
        Err(refused) => {
            assert_eq!(best.refused.unwrap().to_string(), refused.to_string());
            assert!(!refused.to_string().is_empty());
        }
    }
    for isa in Isa::ALL {
        match (MachineCode::new(isa), isa.missing()) {
            (Ok(machine), None) => assert_eq!(machine.isa(), isa),
            (Err(refused), Some(reason)) => assert_eq!(refused.to_string(), reason),
            (made, missing) => panic!("{isa:?}: {made:?}, {missing:?}"),
        }
    }
    best.backend.compile(&logistic(), best.lanes).unwrap();
}

#[test]
#[should_panic(expected = "the state is too short")]
fn short_arrays_are_not_read_past_their_end() {
    let Ok(machine) = MachineCode::detect() else { panic!("the state is too short to tell") };
    let kernel = machine.compile(&logistic(), 4).unwrap();
    let mut work = vec![0.0; kernel.work_len()];
    kernel.run(&kernel.bind(&[0.1]), &[0.0; 4], &[0.0; 3], &mut [0.0; 4], &mut work);
}
