//! Tests of the structure-preserving methods: order, symplecticity, symmetry, constraints, values
//! against independent programs, and failures that report their reason. The lists of methods are
//! made from the registry, so every registered method is tested.

#[path = "../common/mod.rs"]
mod common;

mod bodies;
mod cases;
mod definite;
mod derivatives;
mod failures;
mod maps;
mod methods;
mod natural;
mod orders;
mod runs;
mod values;
