//! Natural logarithm ln x, and with it log₁₀ x and ln(1 + x).
//!
//! **Reduction.** x = 2ᵏ (1 + f) with √½ ≤ 1 + f < √2, by shifting bits, so f is exact. With this
//! interval no logarithm of a number next to 1 is a difference of larger ones.
//!
//! **Series.** With s = f/(2 + f), ln(1 + f) = ln((1 + s)/(1 − s)) = 2s + s R, R = s² P(s²), where
//! |s| ≤ 3 − 2√2. P has 7 coefficients and an error of 2⁻⁵⁹·⁵ of the logarithm. As 2s = f − s f and
//! s f = f²/2 − s f²/2,
//!
//! ln(1 + f) = f − (f²/2 − s (f²/2 + R)),
//!
//! in which f is exact and the quotient is in a term that is at most an eighth of it.
//!
//! **Result.** k ln 2 + ln(1 + f), with ln 2 as two doubles; only the last addition rounds at the
//! size of the result.
//!
//! **To base 10.** What that addition and the one before lose is kept, and the sum of both doubles is
//! multiplied by 1/ln 10 in two doubles, so that powers of ten give integers.
//!
//! **ln(1 + x).** With u = 1 + x rounded and c the rest, ln(1 + x) = ln u + c/u − …; c/u is added to
//! the small terms.

use super::Arithmetic;
use super::Elementary;
use super::steps::{BIAS, EXPONENT, LN_2, Steps};
use crate::graph::primitive::Two;
use std::f64::consts::FRAC_1_SQRT_2;

const LOGARITHM: [f64; 7] = [
    0.6666666666666735,
    0.3999999999940935,
    0.28571428743686533,
    0.2222219842898513,
    0.18183572353436828,
    0.1531383223199575,
    0.1479825789264547,
];

/// 1/ln 10 as a sum of two doubles.
const PER_LN_10: [f64; 2] = [std::f64::consts::LOG10_E, 1.098319650216765e-17];

/// (k, 1 + f) of a positive normal number; meaningless numbers for others.
pub(super) fn split<A: Arithmetic>(m: &mut A, x: A::Value) -> (A::Value, A::Value) {
    // Shifted such that the exponent changes at √2, not at 2.
    let (one, root) = (1f64.to_bits(), FRAC_1_SQRT_2.to_bits());
    let (distance, root) = (m.bits(one - root), m.bits(root));
    let moved = m.two(Two::AddInteger, x, distance);
    let field = m.down(moved, EXPONENT);
    // Read as the low bits of 2⁵² + field.
    let integers = (1u64 << EXPONENT) as f64;
    let (exponent, offset) = (m.number(integers), m.number(integers + f64::from(BIAS)));
    let k = m.or(field, exponent);
    let k = m.sub(k, offset);
    let places = m.bits((1 << EXPONENT) - 1);
    let fraction = m.and(moved, places);
    let mantissa = m.two(Two::AddInteger, fraction, root);
    (k, mantissa)
}

/// Mask of the numbers whose logarithm is computed here: positive, normal, finite ones, and NaN.
fn covered<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let (least, infinity) = (m.number(f64::MIN_POSITIVE), m.number(f64::INFINITY));
    let (below, above) = (m.less(x, least), m.equal(x, infinity));
    let invalid = m.or(below, above);
    m.not(invalid)
}

/// Parts of a logarithm.
struct Parts<V> {
    /// k, and the first double of ln 2.
    k: V,
    part: V,
    /// f, and what is taken from it.
    f: V,
    small: V,
    /// f − small
    tail: V,
}

/// Parts of ln x, with `extra` among the small terms.
fn parts<A: Arithmetic>(m: &mut A, x: A::Value, extra: A::Value) -> Parts<A::Value> {
    let (k, mantissa) = split(m, x);
    let (half, one, two) = (m.number(0.5), m.number(1.0), m.number(2.0));
    let f = m.sub(mantissa, one);
    let sum = m.add(two, f);
    let s = m.div(f, sum);
    let z = m.mul(s, s);
    let series = m.polynomial(z, &LOGARITHM);
    let half_f = m.mul(half, f);
    let half_square = m.mul(half_f, f);
    let factor = m.fma(z, series, half_square);
    let [part, rest] = LN_2.map(|p| m.number(p));
    let small = m.fma(k, rest, extra);
    let small = m.fma(s, factor, small);
    let small = m.fms(half_f, f, small);
    let tail = m.sub(f, small);
    Parts { k, part, f, small, tail }
}

/// ln x
pub(super) fn logarithm<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let valid = covered(m, x);
    // x − x is 0, or NaN for NaN, from whose bits the code below makes some number.
    let nothing = m.sub(x, x);
    let Parts { k, part, tail, .. } = parts(m, x, nothing);
    let value = m.fma(k, part, tail);
    m.repair(Elementary::Log, [x, x], value, valid)
}

/// log₁₀ x
pub(super) fn to_base_ten<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let valid = covered(m, x);
    let nothing = m.sub(x, x);
    let Parts { k, part, f, small, tail } = parts(m, x, nothing);
    let taken = m.sub(f, tail);
    let tail_lost = m.sub(taken, small);
    let product = m.mul(k, part);
    let product_lost = m.fms(k, part, product);
    let head = m.add(product, tail);
    let lost = m.lost(head, product, tail);
    let lost = m.add(lost, product_lost);
    let lost = m.add(lost, tail_lost);
    let [factor, rest] = PER_LN_10.map(|p| m.number(p));
    let value = m.mul(head, factor);
    let small = m.fms(head, factor, value);
    let small = m.fma(head, rest, small);
    let small = m.fma(lost, factor, small);
    let value = m.add(value, small);
    m.repair(Elementary::Log10, [x, x], value, valid)
}

/// ln(1 + x)
pub(super) fn of_one_more<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let one = m.number(1.0);
    let u = m.add(one, x);
    let lost = m.lost_of_any(u, one, x);
    let valid = covered(m, u);
    let extra = m.div(lost, u);
    let Parts { k, part, tail, .. } = parts(m, u, extra);
    let value = m.fma(k, part, tail);
    // The result has the sign of x, which −0 keeps.
    let sign = m.sign(x);
    let value = m.or(value, sign);
    m.repair(Elementary::Log1p, [x, x], value, valid)
}
