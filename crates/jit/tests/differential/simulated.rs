//! Emitted code of every instruction set, run by a simulated processor. This tests sets that this
//! machine lacks, and an independent decoder reads every encoding.

use crate::cases;
use crate::simulator::{Processor, Region};
use crate::tapes::{self, Case};
use holonome_jit::{Isa, assemble};
use holonome_model::graph::Graph;
use holonome_model::graph::interpret::Prologue;
use holonome_model::graph::op::Binary;
use holonome_model::graph::tape::Tape;
use proptest::prelude::*;

/// Addresses of the arrays, with gaps that belong to none.
const STARTS: [u64; 5] = [0x1000_0000, 0x1800_0008, 0x2000_0040, 0x2800_0018, 0x3000_0000];

fn check(case: &Case, isa: Isa) {
    let code = assemble(&case.tape, isa, case.lanes).unwrap();
    let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    let prologue = Prologue::new(&case.tape);
    let mut bound = prologue.bind(&case.parameters_of(0), case.lanes);
    for lane in 0..case.lanes {
        prologue.rebind(&mut bound, case.lanes, lane, &case.parameters_of(lane));
    }
    let bound = bits(&bound);
    // Every vector of lanes in turn; returns the array with the results, unless a repair is due.
    let call = |bytes: &[u8], spills: usize, in_place: bool, count: u64| {
        let arrays = [
            (bits(&case.x), in_place),
            (bits(&case.t), false),
            (bound.clone(), false),
            (vec![0; if in_place { 0 } else { case.tape.outputs.len() * case.lanes }], true),
            (vec![u64::MAX; spills], true),
        ];
        let memory = STARTS
            .iter()
            .zip(arrays)
            .map(|(&start, (numbers, writable))| Region { start, numbers, writable })
            .collect();
        let mut processor = Processor::new(isa, memory);
        let mut flag = 0;
        for first in (0..case.lanes).step_by(code.together) {
            let at = |array: usize| STARTS[array] + 8 * first as u64 + code.bias as u64;
            let spills = STARTS[4] + code.bias as u64;
            flag |= processor.call(bytes, [at(0), at(1), at(2), at(3), spills, count]);
        }
        let result = &processor.memory[if in_place { 0 } else { 3 }].numbers;
        (flag == 0).then(|| result.iter().map(|&x| f64::from_bits(x)).collect::<Vec<f64>>())
    };
    let who = |what: &str| format!("{isa:?}, simulated: {what}");
    match call(&code.run, code.spills[0], false, 1) {
        Some(out) => case.compare(&case.expected_run(), &out, &who("run")),
        None => assert!(case.may_repair(1), "{}: nothing is to be repaired", who("run")),
    }
    if code.chains {
        assert!(case.chains(), "{isa:?}: a tape that does not give all states goes on from them");
        let (len, count) = (8 * case.x.len() as u64, case.count.max(1));
        let mut states = bits(&case.x);
        states.resize(case.x.len() * (count + 1) as usize, 0);
        let arrays = [
            (states, true),
            (vec![], false),
            (bound.clone(), false),
            (vec![], false),
            (vec![u64::MAX; code.spills[0]], true),
        ];
        let memory = STARTS.iter().zip(arrays);
        let memory = memory
            .map(|(&start, (numbers, writable))| Region { start, numbers, writable })
            .collect();
        let mut processor = Processor::new(isa, memory);
        for first in (0..case.lanes).step_by(code.together) {
            let at = |array: usize| STARTS[array] + 8 * first as u64 + code.bias as u64;
            let spills = STARTS[4] + code.bias as u64;
            assert_eq!(
                processor.call(&code.run, [at(0), at(0), at(2), at(0) + len, spills, count]),
                0
            );
        }
        for (turn, state) in processor.memory[0].numbers.chunks_exact(case.x.len()).enumerate() {
            let state: Vec<f64> = state.iter().map(|&x| f64::from_bits(x)).collect();
            case.compare(&case.state_after(turn as u64), &state, &who(&format!("state {turn}")));
        }
    }
    if let Some(iterate) = code.iterate.filter(|_| case.is_map() && case.count > 0) {
        match call(&iterate, code.spills[1], true, case.count) {
            Some(x) => case.compare(&case.expected_iterate(), &x, &who("iterate")),
            None => assert!(
                case.may_repair(case.count),
                "{}: nothing is to be repaired",
                who("iterate")
            ),
        }
    }
}

/// Loop x ↦ x + 1 while that is below a limit, which ends before its count.
#[test]
fn loops_stop_early() {
    let mut g = Graph::new();
    let [x, limit] = [0, 1].map(|k| g.state(k));
    let one = g.one();
    let next = g.add(x, one);
    let goes_on = g.binary(Binary::Less, next, limit);
    let tape = Tape::of_loop(&g, &[next], goes_on, 2, 0);
    for isa in Isa::ALL {
        for lanes in [1, 4, 8, 16] {
            let code = assemble(&tape, isa, lanes).unwrap();
            let prologue = Prologue::new(&tape);
            let bound = prologue.bind(&[], lanes).iter().map(|v| v.to_bits()).collect();
            // The last lane is the first to stop.
            let limits = (0..lanes).map(|lane| (20 - lane) as f64);
            let x = std::iter::repeat_n(0.0, lanes).chain(limits).map(f64::to_bits).collect();
            let arrays = [
                (x, true),
                (vec![0; lanes], false),
                (bound, false),
                (vec![], true),
                (vec![0; 64], true),
            ];
            let memory = STARTS.iter().zip(arrays);
            let memory = memory
                .map(|(&start, (numbers, writable))| Region { start, numbers, writable })
                .collect();
            let mut processor = Processor::new(isa, memory);
            for first in (0..lanes).step_by(code.together) {
                let at = |array: usize| STARTS[array] + 8 * first as u64 + code.bias as u64;
                let spills = STARTS[4] + code.bias as u64;
                let bytes = code.iterate.as_ref().unwrap();
                assert_eq!(processor.call(bytes, [at(0), at(1), at(2), at(3), spills, 1000]), 0);
                let turns = (20 - (first + code.together - 1)) as f64;
                for lane in first..first + code.together {
                    let x = f64::from_bits(processor.memory[0].numbers[lane]);
                    assert_eq!(x, turns, "{isa:?}, lane {lane} of {lanes}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn small_tapes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        Isa::ALL.into_iter().for_each(|isa| check(&tapes::case(&bytes), isa));
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn tapes_that_spill(bytes in proptest::collection::vec(any::<u8>(), 400..6000)) {
        Isa::ALL.into_iter().for_each(|isa| check(&tapes::case(&bytes), isa));
    }
}
