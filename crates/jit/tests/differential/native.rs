//! Every backend against the exact results of random tapes, bit for bit: the interpreter, the block
//! interpreter, and machine code for every instruction set of this processor. The other sets are
//! simulated (`simulated.rs`).

use crate::{cases, tapes};
use holonome_jit::{BlockInterpreter, Gradual, Isa, MachineCode, assemble, best};
use holonome_model::graph::interpret::{Backend, Interpreter};
use holonome_model::graph::primitive::{One, Three, Two};
use holonome_model::graph::tape::Instruction;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tapes::Known;

/// Every backend that runs here.
fn backends() -> Vec<(String, Box<dyn Backend>)> {
    let mut list: Vec<(String, Box<dyn Backend>)> = vec![
        ("interpreter".into(), Box::new(Interpreter)),
        ("block".into(), Box::new(BlockInterpreter::detect())),
        ("block, baseline".into(), Box::new(BlockInterpreter::baseline())),
        ("interpreter, then the best".into(), Box::new(Gradual::after(1, best(false).backend))),
    ];
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        match MachineCode::new(isa) {
            Ok(machine) => list.push((format!("{isa:?}"), Box::new(machine))),
            Err(refused) => println!("not tried: {refused}"),
        }
    }
    list
}

fn check(bytes: &[u8], backends: &[(String, Box<dyn Backend>)]) {
    let case = tapes::case(bytes);
    for (name, backend) in backends {
        case.check(&*backend.compile(&case.tape, case.lanes).unwrap(), name);
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn small_tapes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes, &backends());
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn tapes_that_spill(bytes in proptest::collection::vec(any::<u8>(), 400..6000)) {
        check(&bytes, &backends());
    }
}

/// Reproducible sequence (Steele, Lea, Flood 2014).
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Check that the random cases reach every kind of operation and result.
#[test]
fn the_cases_reach_everything() {
    const CASES: u64 = 1000;
    let (mut exactly, mut unknown, mut spilling, mut iterated, mut chained, mut repeated) =
        (0, 0, 0, 0, 0, 0);
    let mut operations = BTreeSet::new();
    for seed in 0..CASES {
        let case = tapes::case(&bytes(seed, 50 + 2 * seed as usize));
        for known in case.expected_run() {
            match known {
                Known::Exactly(_) => exactly += 1,
                Known::Nan | Known::Nothing => unknown += 1,
            }
        }
        for instruction in &case.tape.instructions[case.tape.prologue..] {
            operations.insert(match instruction {
                Instruction::One(One::Spread(_), _) => "spread".to_string(),
                Instruction::One(op, _) => op.name().chars().take(2).collect(),
                Instruction::Two(op, ..) => op.name().to_string(),
                Instruction::Three(op, ..) => format!("{op:?}"),
                Instruction::Repair(..) => "repair".to_string(),
                _ => continue,
            });
        }
        let code = assemble(&case.tape, Isa::Avx2, case.lanes).unwrap();
        spilling += u64::from(code.spills != [0, 0]);
        iterated += u64::from(case.is_map() && case.count > 1 && !case.tape.outputs.is_empty());
        chained += u64::from(code.chains && case.count > 1);
        repeated += u64::from(case.may_repair(1));
    }
    println!(
        "{exactly} numbers known exactly, {unknown} not; {spilling} cases spill, {iterated} iterate, {chained} chain, \
         {repeated} repeat"
    );
    assert_eq!(operations.len(), 4 + Two::ALL.len() + Three::ALL.len() + 1, "{operations:?}");
    assert!(exactly > 5 * unknown);
    for count in [spilling, iterated, 2 * chained, repeated] {
        assert!(count > CASES / 10);
    }
}
