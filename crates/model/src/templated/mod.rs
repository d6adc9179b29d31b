//! Large models over their templates, as methods need them: the field with its invariants, and the
//! mechanics.

mod field;
mod mechanics;

pub use field::{Differentiated, RowField};
pub use mechanics::{RowMechanics, Together};
