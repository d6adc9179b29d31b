//! The symbolic half of holonome: from the text of a model to tapes that a backend can run.
//!
//! ```text
//! text → syntax tree → checked model of term templates → expression graph → treatments → tape
//! ```
//!
//! Each arrow is one function: [`syntax::parse`], `elaborate`, `unroll`, the functions of
//! `treatment`, [`graph::tape::Tape::new`]. Large models are not unrolled: [`rows`] makes a tape of
//! each template. This half knows no integration method and reads no files.

pub mod columns;
pub mod consistency;
pub mod derived;
pub mod elaborate;
pub mod functional;
pub mod graph;
pub mod legendre;
pub mod massless;
pub mod points;
pub mod poisson;
pub mod policy;
pub mod rows;
pub mod scales;
pub mod syntax;
pub mod templated;
pub mod treatment;
pub mod units;
