//! Test of executable memory: never writable, freed, and not required if the system forbids it. A
//! single test, because all of it concerns the process as a whole.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use holonome_jit::{Isa, MachineCode, best};
use holonome_model::graph::interpret::Backend;
use holonome_model::graph::primitive::Two;
use holonome_model::graph::tape::{Instruction, Tape};

/// x ↦ x + x
fn doubling() -> Tape {
    let instructions = vec![Instruction::State(0), Instruction::Two(Two::Add, 0, 0)];
    Tape { instructions, prologue: 0, outputs: vec![1], goes_on: None, states: 1, parameters: 0 }
}

/// Bytes of mappings that are executable and belong to no file.
fn executable() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut total = 0;
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert!(
            !(fields[1].contains('w') && fields[1].contains('x')),
            "writable and executable: {line}"
        );
        if fields[1].contains('x') && fields.len() == 5 {
            let (start, end) = fields[0].split_once('-').unwrap();
            let number = |s| usize::from_str_radix(s, 16).unwrap();
            total += number(end) - number(start);
        }
    }
    total
}

#[test]
fn executable_memory() {
    if !Isa::Avx2.is_available() {
        println!("not tried: {}", Isa::Avx2.missing().unwrap());
        return;
    }
    let before = executable();
    let machine = MachineCode::detect().unwrap();
    assert_eq!(executable(), before, "what was tried is given back");
    let kernels: Vec<_> = (0..50).map(|_| machine.compile(&doubling(), 1).unwrap()).collect();
    assert!(executable() >= before + 50 * 4096);
    for kernel in &kernels {
        let (mut x, mut work) = ([1.0], vec![0.0; kernel.work_len()]);
        kernel.iterate(&kernel.bind(&[]), &mut x, 10, &mut work);
        assert_eq!(x, [1024.0]);
    }
    drop(kernels);
    assert_eq!(executable(), before, "unmapped with the kernels");

    // From here on the system refuses, for the rest of this process.
    const SET_MEMORY_DENY_WRITE_EXECUTE: i32 = 65;
    const REFUSE_EXECUTABLE: u64 = 1;
    // SAFETY: takes numbers only; nothing else in this process does what it forbids.
    let set =
        unsafe { libc::prctl(SET_MEMORY_DENY_WRITE_EXECUTE, REFUSE_EXECUTABLE, 0u64, 0u64, 0u64) };
    if set != 0 {
        println!("refusal not tried: Linux before 6.3 has no such setting");
        return;
    }
    let Err(refused) = machine.compile(&doubling(), 1) else {
        panic!("compiled against the system's will")
    };
    println!("{refused}");
    assert!(
        refused.to_string().contains("this system does not let a program run machine code"),
        "{refused}"
    );
    assert!(MachineCode::detect().is_err());
    assert_eq!(executable(), before, "nothing is left of the attempt");
    let best = best(false);
    assert!(best.refused.is_some());
    let kernel = best.backend.compile(&doubling(), 1).unwrap();
    let (mut x, mut work) = ([1.0], vec![0.0; kernel.work_len()]);
    kernel.iterate(&kernel.bind(&[]), &mut x, 10, &mut work);
    assert_eq!(x, [1024.0]);
}
