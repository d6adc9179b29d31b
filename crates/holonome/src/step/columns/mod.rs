//! Steps of large models over columns, each a quantity for every member of a family: nothing is
//! unrolled, and a step takes a time proportional to the model's size.

mod forces;
mod rows;
mod symbols;

pub use forces::carry_forces;
pub use rows::{Templated, lower};
pub use symbols::ColumnSymbols;

#[cfg(test)]
mod tests;
