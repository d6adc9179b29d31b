//! Linear algebra of the numeric half: small dense and sparse symmetric factorisations, elimination for Newton matrices,
//! and extreme eigenvalues.

pub mod dense;
pub mod eigen;
pub mod least_eigenvalue;
pub mod lu;
pub mod ordering;
pub mod sparse;
pub mod unpivoted;
