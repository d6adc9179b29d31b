//! Which backend runs the tapes.

use holonome_model::graph::interpret::{Backend, Interpreter, Kernel};
use holonome_model::graph::tape::Tape;

/// Compiles `tape` for this many lanes by the best backend there is.
pub fn compile(tape: &Tape, lanes: usize) -> Box<dyn Kernel> {
    Interpreter.compile(tape, lanes).expect("the interpreter never refuses")
}
