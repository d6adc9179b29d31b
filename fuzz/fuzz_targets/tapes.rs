//! Arbitrary bytes → a tape → every backend that runs here: all give the same bits.
//!
//! ```text
//! cargo install cargo-fuzz
//! cd fuzz && cargo +nightly fuzz run tapes -- -max_len=6000 -len_control=20 -timeout=30
//! ```
//!
//! libFuzzer needs a nightly compiler. Where there is none, `cargo test -p holonome-jit --test
//! differential` runs a bounded number of random tapes through the same [`tapes`], also on a
//! simulated processor; `HOLONOME_FUZZ_CASES` multiplies it.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tapes.rs"]
mod tapes;

use holonome_jit::{BlockInterpreter, Isa, MachineCode};
use holonome_model::graph::interpret::{Backend, Interpreter};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let case = tapes::case(bytes);
    let check = |backend: &dyn Backend, name: &str| {
        let kernel = backend.compile(&case.tape, case.lanes).expect("it runs here");
        case.check(&*kernel, name);
    };
    check(&Interpreter, "interpreter");
    check(&BlockInterpreter::detect(), "block interpreter");
    for machine in Isa::ALL.into_iter().filter_map(|isa| MachineCode::new(isa).ok()) {
        check(&machine, &format!("{machine:?}"));
    }
});
