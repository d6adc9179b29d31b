//! Vocabulary of the expansions: short names for the operations, and common constants and
//! sequences.

use super::Arithmetic;
use crate::graph::primitive::{One, TRUE, Three, Two};

/// The sign's bit.
pub(super) const SIGN: u64 = 1 << 63;

/// Number added to another to round it to an integer k: doubles of this size are the integers. The
/// sum's low bits are then those of k, in two's complement, for |k| < 2⁵¹.
pub(super) const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;

/// Position of the exponent's field in the bits.
pub(super) const EXPONENT: u8 = 52;

/// Number added to an exponent to get its field.
pub(super) const BIAS: i32 = 1023;

/// ln 2 as a sum of two doubles; the remainder is 6e-34.
pub(super) const LN_2: [f64; 2] = [std::f64::consts::LN_2, 2.3190468138462996e-17];

/// π/2 as a sum of three doubles; the remainder is 6e-50.
pub(super) const HALF_PI: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// Operations with short names. `fma`, `fms` and `fnma` round once.
pub(super) trait Steps: Arithmetic {
    /// a + b
    fn add(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Add, a, b)
    }

    /// a − b
    fn sub(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Sub, a, b)
    }

    /// a b
    fn mul(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Mul, a, b)
    }

    /// a / b
    fn div(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Div, a, b)
    }

    /// a b + c
    fn fma(&mut self, a: Self::Value, b: Self::Value, c: Self::Value) -> Self::Value {
        self.three(Three::Fma, a, b, c)
    }

    /// a b − c
    fn fms(&mut self, a: Self::Value, b: Self::Value, c: Self::Value) -> Self::Value {
        self.three(Three::Fms, a, b, c)
    }

    /// c − a b
    fn fnma(&mut self, a: Self::Value, b: Self::Value, c: Self::Value) -> Self::Value {
        self.three(Three::Fnma, a, b, c)
    }

    /// b if the mask is true, c if it is false.
    fn select(&mut self, mask: Self::Value, b: Self::Value, c: Self::Value) -> Self::Value {
        self.three(Three::Select, mask, b, c)
    }

    /// The mask of a < b.
    fn less(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Less, a, b)
    }

    /// The mask of a = b.
    fn equal(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Equal, a, b)
    }

    /// Bits set in both.
    fn and(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::And, a, b)
    }

    /// Bits set in either.
    fn or(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Or, a, b)
    }

    /// Bits set in exactly one.
    fn xor(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.two(Two::Xor, a, b)
    }

    /// The negated mask.
    fn not(&mut self, mask: Self::Value) -> Self::Value {
        let all = self.bits(TRUE);
        self.xor(mask, all)
    }

    /// The bits shifted left.
    fn up(&mut self, a: Self::Value, count: u8) -> Self::Value {
        self.one(One::ShiftLeft(count), a)
    }

    /// The bits shifted right.
    fn down(&mut self, a: Self::Value, count: u8) -> Self::Value {
        self.one(One::ShiftRight(count), a)
    }

    /// |a|
    fn magnitude(&mut self, a: Self::Value) -> Self::Value {
        let rest = self.bits(!SIGN);
        self.and(a, rest)
    }

    /// The sign bit of a alone.
    fn sign(&mut self, a: Self::Value) -> Self::Value {
        let sign = self.bits(SIGN);
        self.and(a, sign)
    }

    /// The error of `sum`, the rounded a + b: exact for |a| ≥ |b|, for a = 0, and if a is a
    /// multiple of b's last place (Dekker).
    fn lost(&mut self, sum: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value {
        let taken = self.sub(a, sum);
        self.add(taken, b)
    }

    /// The error of `sum`, the rounded a + b, whatever their sizes (Knuth).
    fn lost_of_any(&mut self, sum: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value {
        let of_b = self.sub(sum, a);
        let of_a = self.sub(sum, of_b);
        let (a, b) = (self.sub(a, of_a), self.sub(b, of_b));
        self.add(a, b)
    }

    /// (a + a')/(b + b') for small a' and b': the quotient of the large ones, corrected once by the
    /// remainder (Newton).
    fn quotient(&mut self, top: [Self::Value; 2], bottom: [Self::Value; 2]) -> Self::Value {
        let one = self.number(1.0);
        let inverse = self.div(one, bottom[0]);
        let first = self.mul(top[0], inverse);
        let left = self.fnma(first, bottom[0], top[0]);
        let small = self.fnma(first, bottom[1], top[1]);
        let left = self.add(left, small);
        self.fma(left, inverse, first)
    }

    /// The polynomial with these coefficients, the constant one first. Neighbours are paired, c₀ +
    /// c₁x, c₂ + c₃x and so on, which leaves a polynomial in x² (Estrin); three terms or less are
    /// nested (Horner). Compared to nesting all terms this takes a few more products and a fraction
    /// of the time, because the pairs do not wait for each other.
    fn polynomial(&mut self, x: Self::Value, coefficients: &[f64]) -> Self::Value {
        let mut terms: Vec<Self::Value> = coefficients.iter().map(|&c| self.number(c)).collect();
        let mut x = x;
        while terms.len() > 3 {
            let count = terms.len();
            for k in 0..count / 2 {
                terms[k] = self.fma(terms[2 * k + 1], x, terms[2 * k]);
            }
            if count % 2 == 1 {
                terms[count / 2] = terms[count - 1];
            }
            terms.truncate(count.div_ceil(2));
            x = self.mul(x, x);
        }
        let last = terms[terms.len() - 1];
        terms.iter().rev().skip(1).fold(last, |sum, &term| self.fma(sum, x, term))
    }
}

impl<A: Arithmetic> Steps for A {}
