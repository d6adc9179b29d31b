//! Arithmetic over which an algorithm is written once: carried out on numbers, or recorded as
//! formulas that are compiled.
//!
//! Step-size control, norms and stopping rules run in loops over single steps and in loops of
//! machine code. Both must give the same bits, so both come from one function over [`Real`].
//!
//! A recorded product that one sum alone uses is fused with it. A function over `Real` therefore
//! never adds a product to something: it says [`Real::mul_add`].

pub mod lanes;
pub mod primitive;

use primitive::Numbers;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// Number, or formula of one. Nothing branches: both results are there, and one is selected.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Mul<f64, Output = Self>
{
    /// Condition.
    type Truth: Copy
        + BitAnd<Output = Self::Truth>
        + BitOr<Output = Self::Truth>
        + Not<Output = Self::Truth>;

    /// The constant `value`, recorded where this number is.
    fn constant(self, value: f64) -> Self;

    /// self · b + c with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// Square root.
    fn sqrt(self) -> Self;

    /// Absolute value.
    fn abs(self) -> Self;

    /// self < b; false if one is NaN.
    fn less(self, b: Self) -> Self::Truth;

    /// self ≤ b; false if one is NaN.
    fn at_most(self, b: Self) -> Self::Truth;

    /// self = b; false if one is NaN.
    fn equals(self, b: Self) -> Self::Truth;

    /// The larger of |self| and b ≥ 0, NaN if either is.
    fn largest(self, b: Self) -> Self;

    /// Approximation of selfᵇ; see [`primitive::rough_power`].
    fn rough_power(self, b: Self) -> Self;

    /// `a` where the condition holds, else `b`.
    fn select(condition: Self::Truth, a: Self, b: Self) -> Self;

    /// The larger of two numbers; self if `b` is NaN.
    #[inline(always)]
    fn larger(self, b: Self) -> Self {
        Self::select(self.less(b), b, self)
    }

    /// The smaller of two numbers; self if `b` is NaN.
    #[inline(always)]
    fn smaller(self, b: Self) -> Self {
        Self::select(b.less(self), b, self)
    }

    /// True if the number is neither infinite nor NaN.
    #[inline(always)]
    fn finite(self) -> Self::Truth {
        self.abs().at_most(self.constant(f64::MAX))
    }
}

impl Real for f64 {
    type Truth = bool;

    #[inline(always)]
    fn constant(self, value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn mul_add(self, b: f64, c: f64) -> f64 {
        f64::mul_add(self, b, c)
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }

    #[inline(always)]
    fn less(self, b: f64) -> bool {
        self < b
    }

    #[inline(always)]
    fn at_most(self, b: f64) -> bool {
        self <= b
    }

    #[inline(always)]
    fn equals(self, b: f64) -> bool {
        self == b
    }

    #[inline(always)]
    fn largest(self, b: f64) -> f64 {
        // Bits of numbers ≥ 0 are in their order, and those of a NaN without a sign follow all.
        f64::from_bits(self.abs().to_bits().max(b.abs().to_bits()))
    }

    #[inline(always)]
    fn rough_power(self, b: f64) -> f64 {
        primitive::rough_power(&mut Numbers, self, b)
    }

    #[inline(always)]
    fn select(condition: bool, a: f64, b: f64) -> f64 {
        if condition { a } else { b }
    }
}

/// |v|², each product added with one rounding.
///
/// # Panics
/// If v has no components.
#[inline(always)]
pub fn square<R: Real>(v: &[R]) -> R {
    let (&first, rest) = v.split_first().expect("a vector has components");
    rest.iter().fold(first * first, |sum, &v| v.mul_add(v, sum))
}

/// Σ a b, each product added with one rounding; `None` if there are none.
#[inline(always)]
pub fn products<R: Real>(mut terms: impl Iterator<Item = (R, R)>) -> Option<R> {
    let first = terms.next().map(|(a, b)| a * b)?;
    Some(terms.fold(first, |sum, (a, b)| a.mul_add(b, sum)))
}

/// All numbers joined in pairs of pairs, which wait for each other least; `None` if there are none.
pub fn in_pairs<R: Real>(mut all: Vec<R>, join: impl Fn(R, R) -> R) -> Option<R> {
    while all.len() > 1 {
        all = all.chunks(2).map(|pair| pair.iter().copied().reduce(&join).expect("one")).collect();
    }
    all.pop()
}
