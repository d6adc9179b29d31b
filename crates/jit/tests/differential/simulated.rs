//! The emitted code of every instruction set, run by a processor in software: what this machine's processor lacks is
//! tested too, and every encoding is read by a decoder that is not ours.

use crate::cases;
use crate::simulator::{Processor, Region};
use crate::tapes::{self, Case};
use holonome_jit::{Isa, assemble};
use holonome_model::graph::interpret::Prologue;
use proptest::prelude::*;

/// Where the arrays are, with gaps that nothing belongs to.
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
    if let Some(iterate) = code.iterate.filter(|_| case.is_map() && case.count > 0) {
        match call(&iterate, code.spills[1], true, case.count) {
            Some(x) => case.compare(&case.expected_iterate(), &x, &who("iterate")),
            None => assert!(case.may_repair(case.count), "{}: nothing is to be repaired", who("iterate")),
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
