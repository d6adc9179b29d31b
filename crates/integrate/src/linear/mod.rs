//! Linear algebra of the numeric half: small dense and sparse symmetric factorisations, and largest eigenvalues.

pub mod dense;
pub mod eigen;
pub mod ordering;
pub mod sparse;
