//! Large models as the methods see them, over their templates: the field with its invariants, and the mechanics.

mod field;
mod mechanics;

pub use field::{Differentiated, RowField};
pub use mechanics::{RowMechanics, Together};
