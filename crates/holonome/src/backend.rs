//! Which backend runs the tapes: machine code where it can be had, else an interpreter. All give the same bits.

use holonome_jit::{Best, BlockInterpreter, best};
use holonome_model::graph::interpret::{Backend, Interpreter, Kernel, Refused};
use holonome_model::graph::tape::Tape;
use std::sync::OnceLock;

/// Names the backend, where another than the best is wanted: `machine`, `block`, `interpreter`.
const VARIABLE: &str = "HOLONOME_BACKEND";

/// The backend of this process.
fn chosen() -> &'static Best {
    static CHOSEN: OnceLock<Best> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let slower = |backend: Box<dyn Backend>, lanes| Best { backend, lanes, refused: None };
        match std::env::var(VARIABLE).as_deref() {
            Ok("interpreter") => slower(Box::new(Interpreter), 1),
            Ok("block") => {
                let block = BlockInterpreter::detect();
                slower(Box::new(block), block.preferred_lanes())
            }
            Ok("machine") | Err(_) => best(),
            Ok(other) => {
                let reason = format!("{VARIABLE}={other} is none of machine, block, interpreter");
                Best { refused: Some(Refused { reason }), ..best() }
            }
        }
    })
}

/// The best backend there is, for what compiles many small tapes by itself.
pub fn backend() -> &'static dyn Backend {
    &*chosen().backend
}

/// Compiles `tape` for this many lanes by the best backend there is.
pub fn compile(tape: &Tape, lanes: usize) -> Box<dyn Kernel> {
    let compiled = chosen().backend.compile(tape, lanes);
    // A tape may be too long for machine code; others are not.
    compiled.or_else(|_| Interpreter.compile(tape, lanes)).expect("the interpreter never refuses")
}

/// How many lanes an ensemble is best run in.
pub fn lanes() -> usize {
    chosen().lanes
}

/// What the user should know of the backend, if anything.
pub fn warning() -> Option<String> {
    let refused = chosen().refused.as_ref()?;
    Some(format!("{}; formulas are interpreted, which takes several times as long", refused.reason))
}
