//! The structure-preserving methods prove what they are called for: order, symplecticity, symmetry, constraints, values
//! against independent programs, and failures that say what happened. Every registered method is tried: the lists are made
//! from the registry.

#[path = "../common/mod.rs"]
mod common;

mod bodies;
mod cases;
mod definite;
mod failures;
mod maps;
mod methods;
mod natural;
mod orders;
mod runs;
mod values;
