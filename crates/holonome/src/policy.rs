//! Sizes that decide between ways of computing, each with its measurements. The sizes of a model,
//! which decide before any method is known, are in `holonome_model::policy`.

/// Maximum number of operations of a structure-preserving step as a loop of machine code, and
/// [`LONGEST_STEP`] of a step of a Runge–Kutta method that an ensemble takes in lanes. Several times
/// the capacity of the first-level instruction cache costs little if the code is read from end to
/// end: 15 substeps of RATTLE on 24 links, 52 000 operations, take half as long as templated, and
/// nine stages on eight planets, 24 000, half as long as by single calls. But compiling takes 10
/// microseconds per operation. RATTLE takes 26 000 operations on 180 links, and as many on a net of
/// 7 by 7 knots.
pub(crate) const LONGEST_LOOP: usize = 30_000;

/// Maximum number of rows of systems that are eliminated in such a loop one row after the other;
/// larger ones are eliminated from both ends, or in an order of little fill.
pub(crate) const FEW_ROWS: usize = 16;

/// Minimum length of the state of a general field whose stages are found by fixed-point iteration,
/// where it contracts. For shorter ones Newton's method takes the time of a few sweeps. With 120
/// components, all coupled, a step of `gauss4` takes 0.2 ms by some ten sweeps, and 4 ms by
/// Newton's method, most of it for the elimination of 240 equations.
pub(crate) const FEWEST_SWEPT: usize = 30;

/// Maximum number of operations with which systems of one pattern are eliminated by formulas, each
/// a row: those of ten fully coupled equations. Longer ones are eliminated number by number.
pub(crate) const LONGEST_ELIMINATION: usize = 1000;

/// Maximum number of operations in the stages of a Runge–Kutta step that is compiled as a whole:
/// about the capacity of the first-level instruction cache. Beyond it the stages are a loop around
/// the compiled field.
pub(crate) const LONGEST_STEP: usize = 4000;

/// Maximum number of operations of a field whose collocation steps are compiled with a stage in
/// every lane: all stages are one evaluation. Compiled, a step of `gauss16` is 10 times as fast
/// with 8 bodies and 7.5 times with 20 (500 and 3500 operations), 4 to 11 times with chains of 20
/// to 30 links, and 6 to 7 times with FPU chains of 150 to 1000 masses (900 to 6000 operations). It
/// takes some 30 microseconds per operation to compile, which a few hundred steps of a field of any
/// length pay back; the longest one starts after half a second.
pub(crate) const LONGEST_COLLOCATION: usize = 16_000;

/// Maximum number of operations of the components of a field, those that they share counted for each,
/// up to which its Jacobian is one formula. Beyond, it is taken column by column from derivatives
/// along unit vectors, each some three evaluations of the field.
pub(crate) const LONGEST_JACOBIAN: usize = 100_000;

/// Maximum number of numbers in the factors of the linear systems of a method for stiff fields, four
/// for each entry of a full matrix: a gigabyte, and some ten seconds a step.
pub(crate) const LARGEST_FACTORS: usize = 1 << 27;

/// Maximum number of operations of a step of a Taylor series that is compiled as one formula, and in
/// loops. Beyond, the orders are computed one after the other, by a program that is a hundredth as
/// long. It takes 1.8 to 3.2 times as long as one formula would (chains of 10 to 20 links, 10 to 20
/// bodies), but a fortieth of the time to compile: 9 ms in place of 0.4 s with 20 bodies.
pub(crate) const LONGEST_SERIES: usize = 20_000;

/// Maximum number of operations of a step of a Taylor series whose orders are computed one after
/// the other: such a step takes a millisecond or two.
pub(crate) const LONGEST_RECURRENCE: usize = 4_000_000;

/// Ratio of masses up to which a field that matters near the constraints only is not extended
/// beyond them. Bodies that hang at rest move by the rounding of the heaviest one's weight, which
/// the extension keeps from the lightest one's position. At rest, at a tolerance of 1e-12, masses
/// 10⁶ apart take 50 steps in place of 20, and 10⁸ apart 400 in place of 5. A moving system takes
/// the same steps either way.
pub(crate) const ALIKE_MASSES: f64 = 1e4;

/// Maximum number of operations in field and invariants for which monitoring and correction are
/// straight-line kernels of their own; larger systems use sparse linear algebra on F and DF.
pub(crate) const SMALL_SYSTEM: usize = 4000;

/// Maximum number of products in the elimination with which a small system is corrected by formulas:
/// that of 33 rows which all share components, or of 300 links of a chain. By formulas a correction
/// of 37 or 46 such rows takes a tenth of the time of one by numbers, but a second to compile.
pub(crate) const LONGEST_MENDING: usize = 6000;

/// Maximum number of invariants for which the Gauss–Newton form of feedback is a formula; more have
/// it by a linear solve beside the field. For a chain the formula is as fast as the solve at twice
/// this number, but takes two seconds to compile there.
pub(crate) const LARGEST_FEEDBACK: usize = 24;

/// Largest size of a full inverse mass matrix that is examined as a whole; of a larger one only its
/// diagonal is.
pub(crate) const LARGEST_FULL_MASS: usize = 1000;

/// Minimum number of samples arriving together that are recorded in lanes: a kernel in lanes takes
/// a millisecond to compile.
pub(crate) const FEWEST_IN_LANES: usize = 64;
