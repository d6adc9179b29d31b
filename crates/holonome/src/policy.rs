//! Sizes that choose between ways of computing one thing, with what was measured. Those of a model, which decide before any
//! method is known, are in `holonome_model::policy`.

/// A step of a structure-preserving method is a loop of machine code up to this many operations. Three times what the
/// first-level instruction cache holds costs little where it is read from end to end: 15 substeps of RATTLE on 24 links,
/// 52 000 operations, take half of what they do by rows. But making it takes 10 microseconds an operation.
pub(crate) const LONGEST_LOOP: usize = 12_000;

/// Up to this many rows the systems of such a loop are eliminated one row after the other; from both ends, or in an order of
/// little fill, where there are more.
pub(crate) const FEW_ROWS: usize = 16;

/// Systems of one pattern are eliminated by formulas, each a row, up to this many operations: those of ten equations that
/// are all coupled. Longer ones are eliminated number by number.
pub(crate) const LONGEST_ELIMINATION: usize = 1000;

/// A Runge–Kutta step is compiled as a whole up to this many operations in its stages: about what the first-level
/// instruction cache holds. Beyond, the stages are a loop around the compiled field.
pub(crate) const LONGEST_STEP: usize = 4000;

/// A step of a Taylor series is compiled up to this many operations.
pub(crate) const LONGEST_SERIES: usize = 20_000;

/// A field that matters near the constraints only is not extended beyond them while masses are no further apart. Bodies that
/// hang at rest move by the rounding of the heaviest one's weight, which the extension keeps from the lightest one's
/// position: 10⁶ apart, what rests takes 50 steps in place of 20 at a tolerance of 1e-12, and 10⁸ apart 400 in place of 5.
/// What moves takes the same steps either way.
pub(crate) const ALIKE_MASSES: f64 = 1e4;

/// Systems up to this many operations in field and invariants watch and correct by kernels of their own, in straight lines;
/// larger ones by sparse linear algebra on F and DF.
pub(crate) const SMALL_SYSTEM: usize = 4000;

/// Invariants up to this number: the formulas of a correction grow with its cube.
pub(crate) const FEW_INVARIANTS: usize = 24;

/// Invariants up to this number have the Gauss–Newton form of feedback as a formula; more have it by a linear solve beside
/// the field. A chain's formula is as fast as the solve at twice this number, but takes two seconds to make there.
pub(crate) const LARGEST_FEEDBACK: usize = 24;

/// Up to this size a full inverse mass matrix is looked at as a whole; of a larger one only its diagonal.
pub(crate) const LARGEST_FULL_MASS: usize = 1000;

/// Samples that come together are recorded in lanes from this number on: a kernel in lanes takes a millisecond to make.
pub(crate) const FEWEST_IN_LANES: usize = 64;
