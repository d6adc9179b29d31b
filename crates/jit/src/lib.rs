//! Fast backends for [tapes](holonome_model::graph::tape), equal bit for bit to the
//! [interpreter](holonome_model::graph::interpret::Interpreter):
//!
//! - [`MachineCode`] makes x86-64 instructions, for AVX-512 or for AVX2 with FMA;
//! - [`BlockInterpreter`] runs anywhere: it interprets, but many lanes at once.
//!
//! [`best`] returns the first that works here. This is the only crate with unsafe code: it runs
//! machine code that it made, it reads and writes by pointers in the inner loop of the block
//! interpreter, and it sets up the allocator.
//!
//! | what | where |
//! | --- | --- |
//! | instruction sets and their detection | `isa.rs` |
//! | a tape as a list of steps, for one evaluation and for a loop | `steps.rs` |
//! | the order of the steps | `schedule.rs` |
//! | the register of each value | `registers.rs` |
//! | instructions and operands | `emit.rs` |
//! | their bytes | `encode.rs` |
//! | operations that are alike as one on the lanes of a vector, and loops of them | `pack.rs`, `packed.rs` |
//! | executable memory | `memory.rs` |
//! | a tape as machine code, and its checks | `kernel.rs` |
//! | the backend: kernels, cycles, loops over rows and segments | `machine.rs` |
//! | kernels for sums over pairs, diagonal by diagonal | `diagonals.rs` |
//! | the block interpreter | `block.rs` |
//! | kernels that are compiled once they have been evaluated often | `gradual.rs` |
//! | settings of the system's allocator | `allocation.rs` |

mod allocation;
mod block;
mod cycles;
mod diagonals;
mod emit;
mod encode;
mod gradual;
mod isa;
mod kernel;
mod machine;
mod memory;
mod pack;
mod packed;
mod registers;
mod schedule;
mod steps;

pub use allocation::{report_exhausted_memory, return_freed_arrays};
pub use block::BlockInterpreter;
pub use cycles::cycles;
pub use gradual::Gradual;
pub use isa::Isa;
pub use machine::MachineCode;
#[doc(hidden)]
pub use machine::{Assembled, assemble};

use holonome_model::graph::interpret::{Backend, Refused};

/// The fastest backend that works here, with the number of lanes that ensembles should have. One that
/// makes machine code does so `gradually`, or before a kernel is first run. If it is not machine
/// code, it comes with the reason, which the caller shows the user once.
pub fn best(gradually: bool) -> Best {
    match MachineCode::detect() {
        Ok(machine) => {
            let lanes = machine.preferred_lanes();
            let backend: Box<dyn Backend> = match gradually {
                true => Box::new(Gradual::new(Box::new(machine.packing_later()))),
                false => Box::new(machine),
            };
            Best { lanes, backend, refused: None }
        }
        Err(refused) => {
            let block = BlockInterpreter::detect();
            Best {
                lanes: block.preferred_lanes(),
                backend: Box::new(block),
                refused: Some(refused),
            }
        }
    }
}

/// Result of [`best`].
pub struct Best {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// The number of lanes for which ensembles run best.
    pub lanes: usize,
    /// Reason why it is not machine code.
    pub refused: Option<Refused>,
}
