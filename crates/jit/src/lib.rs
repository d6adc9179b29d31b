//! Fast backends for [tapes](holonome_model::graph::tape), equal bit for bit to the
//! [interpreter](holonome_model::graph::interpret::Interpreter):
//!
//! - [`MachineCode`] makes x86-64 instructions, for AVX-512 or for AVX2 with FMA;
//! - [`BlockInterpreter`] runs anywhere: it interprets, but many lanes at once.
//!
//! [`best`] gives the first that works here. This is the only crate with unsafe code: it runs machine code that it
//! made, and it reads and writes by pointers in the inner loop of the block interpreter.
//!
//! | what | where |
//! | --- | --- |
//! | instruction sets and their detection | `isa.rs` |
//! | a tape as a list of steps, for one evaluation and for a loop | `steps.rs` |
//! | the order of the steps | `schedule.rs` |
//! | which value is in which register | `registers.rs` |
//! | instructions and operands | `emit.rs` |
//! | their bytes | `encode.rs` |
//! | executable memory | `memory.rs` |
//! | the kernel and its checks | `machine.rs` |
//! | the same of sums over pairs, diagonal by diagonal | `diagonals.rs` |
//! | the block interpreter | `block.rs` |

mod block;
mod diagonals;
mod emit;
mod encode;
mod isa;
mod machine;
mod memory;
mod registers;
mod schedule;
mod steps;

pub use block::BlockInterpreter;
pub use isa::Isa;
pub use machine::MachineCode;
#[doc(hidden)]
pub use machine::{Assembled, assemble};

use holonome_model::graph::interpret::{Backend, Refused};

/// The fastest backend that works here, the number of lanes that ensembles should have with it, and why it is not
/// machine code where it is not; the caller tells the user once.
pub fn best() -> Best {
    match MachineCode::detect() {
        Ok(machine) => Best { lanes: machine.preferred_lanes(), backend: Box::new(machine), refused: None },
        Err(refused) => {
            let block = BlockInterpreter::detect();
            Best { lanes: block.preferred_lanes(), backend: Box::new(block), refused: Some(refused) }
        }
    }
}

/// What [`best`] found.
pub struct Best {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// The number of lanes for which ensembles run best.
    pub lanes: usize,
    /// Why it is not machine code.
    pub refused: Option<Refused>,
}
