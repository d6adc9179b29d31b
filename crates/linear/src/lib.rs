//! Linear algebra of numbers, for both halves of `holonome`: dense and sparse symmetric
//! factorisations, elimination for Newton matrices, Gram matrices, ranks, null spaces and extreme
//! eigenvalues. It depends on arrays and patterns, not on models or methods. Elimination on
//! formulas is `holonome_model::graph::linear`.

pub mod dense;
pub mod dependence;
pub mod eigen;
pub mod elimination_tree;
pub mod gram;
pub mod halves;
pub mod least_eigenvalue;
pub mod lists;
pub mod lu;
pub mod member_rows;
pub mod null_space;
pub mod ordering;
pub mod pattern;
pub mod products;
pub mod rank;
pub mod resolvent;
pub mod sparse;
pub mod unpivoted;
pub mod widest;

#[cfg(test)]
mod random;
