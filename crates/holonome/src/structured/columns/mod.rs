//! The same for large models: a step over columns, each a quantity for every member of a family, so that nothing is
//! written out and a step takes a time proportional to the model's size.
//!
//! [`tracing`] runs a step once over columns; [`program`] decides what is stored and in which order it is computed, and
//! runs that.

mod program;
mod tracing;

pub use program::ColumnProgram;
pub use tracing::{ColumnTrace, Handing, trace};

#[cfg(test)]
mod tests;
