//! Exponential function eˣ, and eˣ − 1.
//!
//! **Reduction.** x = k ln 2 + r with k the integer nearest to x/ln 2 and |r| ≤ (1 + 2⁻¹²) ln(2)/2.
//! In doubles ln 2 = L₁ + L₂, and x − k L₁ is exact: for k ≠ 0 both terms are multiples of 2⁻⁵⁴ and
//! the result is below 1/2. The error of r is then at most 2⁻⁵⁵, a quarter of a last place of the
//! result. For powers and tanh the tail of r is kept.
//!
//! **Polynomial.** eʳ = 1 + r + r² Q(r), with an error of 2⁻⁵⁵·⁵ of eʳ − 1.
//!
//! **Result.** The factor 2ᵏ is applied as two factors of half the exponent, so that every finite
//! argument works: the last product overflows, or rounds to a subnormal number or zero, as it
//! should. If k is too large even for that, the result is infinite or zero.
//!
//! **eˣ − 1.** 2ᵏ − 1 + 2ᵏ (eʳ − 1), in two doubles.

use super::Arithmetic;
use super::Elementary;
use super::steps::{BIAS, EXPONENT, LN_2, ROUNDING, Steps};
use crate::graph::primitive::Two;
use std::f64::consts::LOG2_E;

/// Bound of |x| beyond which the result is ∞ or 0. Within it, two factors easily hold the exponent
/// of 2ᵏ.
const LARGEST: f64 = 1000.0;

const EXPONENTIAL: [f64; 10] = [
    0.5000000000000006,
    0.16666666666666588,
    0.04166666666657169,
    0.008333333333389,
    0.0013888888933346196,
    0.00019841269724051313,
    2.48015030122292e-05,
    2.755739907409862e-06,
    2.7626977629846906e-07,
    2.505781583474045e-08,
];

/// x = k ln 2 + r.
pub(super) struct Reduced<V> {
    /// The integer k + `offset`, in the low bits.
    pub(super) number: V,
    /// k
    pub(super) k: V,
    /// x − k L₁ with the first part L₁ of ln 2; exact.
    pub(super) first: V,
}

/// Subtract the multiple of the first part of ln 2. The integer includes an offset, which saves
/// adding it later.
pub(super) fn reduce<A: Arithmetic>(m: &mut A, x: A::Value, offset: i32) -> Reduced<A::Value> {
    let (per_doubling, rounding) = (m.number(LOG2_E), m.number(ROUNDING + f64::from(offset)));
    let number = m.fma(x, per_doubling, rounding);
    let k = m.sub(number, rounding);
    let part = m.number(LN_2[0]);
    let first = m.fnma(k, part, x);
    Reduced { number, k, first }
}

/// eʳ − 1 − r + `tail`
pub(super) fn rest<A: Arithmetic>(m: &mut A, r: A::Value, tail: A::Value) -> A::Value {
    let (square, series) = (m.mul(r, r), m.polynomial(r, &EXPONENTIAL));
    m.fma(square, series, tail)
}

/// eˣ
pub(super) fn exponential<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let reduced = reduce(m, x, 2 * BIAS);
    let part = m.number(LN_2[1]);
    let r = m.fnma(reduced.k, part, reduced.first);
    let above_one = rest(m, r, r);
    let one = m.number(1.0);
    let value = m.add(one, above_one);
    scaled(m, x, reduced.number, value)
}

/// e to the power of x + `tail`, a sum of two doubles, to nearly the accuracy of a double-word
/// product.
pub(super) fn exponential_of_sum<A: Arithmetic>(
    m: &mut A,
    x: A::Value,
    tail: A::Value,
) -> A::Value {
    let reduced = reduce(m, x, 2 * BIAS);
    let part = m.number(LN_2[1]);
    let second = m.fnma(reduced.k, part, tail);
    let r = m.add(reduced.first, second);
    let tail = m.lost(r, reduced.first, second);
    let one = m.number(1.0);
    let head = m.add(one, r);
    let lost = m.lost(head, one, r);
    let tail = m.add(lost, tail);
    let rest = rest(m, r, tail);
    let value = m.add(head, rest);
    scaled(m, x, reduced.number, value)
}

/// Bounds of x below which eˣ − 1 rounds to −1, and above which 2ᵏ is too large to be one factor.
const FLAT: f64 = -40.0;
const STEEP: f64 = 700.0;

/// eˣ − 1 in two doubles, for x up to [`STEEP`]; `falls` is true for x ≤ 0.
pub(super) fn less_one<A: Arithmetic>(m: &mut A, x: A::Value, falls: bool) -> [A::Value; 2] {
    let reduced = reduce(m, x, BIAS);
    let part = m.number(LN_2[1]);
    let r = m.fnma(reduced.k, part, reduced.first);
    let taken = m.sub(reduced.first, r);
    let tail = m.fnma(reduced.k, part, taken);
    let rest = rest(m, r, tail);

    // 2ᵏ(1 + r + rest) − 1, where |r| is below |2ᵏ − 1|/2ᵏ or the latter is 0.
    let scale = m.up(reduced.number, EXPONENT);
    let minus_one = m.number(-1.0);
    let constant = m.add(scale, minus_one);
    let linear = m.mul(scale, r);
    let head = m.add(constant, linear);
    let lost = m.lost(head, constant, linear);
    // The rounding error of 2ᵏ − 1, where |k| is above 53.
    let constant_lost = match falls {
        true => m.lost(constant, minus_one, scale),
        false => m.lost_of_any(constant, scale, minus_one),
    };
    let lost = m.add(lost, constant_lost);
    let rest = m.fma(scale, rest, lost);
    let value = m.add(head, rest);
    let lost = m.lost(value, head, rest);
    [value, lost]
}

/// eˣ − 1
pub(super) fn exponential_less_one<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let (flat, steep) = (m.number(FLAT), m.number(STEEP));
    let below = m.less(x, flat);
    let bounded = m.select(below, flat, x);
    let beyond = m.less(steep, x);
    let valid = m.not(beyond);
    let [value, _] = less_one(m, bounded, false);
    // The result has the sign of x, which −0 keeps.
    let sign = m.sign(x);
    let value = m.or(value, sign);
    m.repair(Elementary::Expm1, [x, x], value, valid)
}

/// `value` 2ᵏ, with `number` = k plus an offset of twice the bias.
fn scaled<A: Arithmetic>(m: &mut A, x: A::Value, number: A::Value, value: A::Value) -> A::Value {
    // The fields of the two exponents add up to k + 2 bias.
    let small = m.down(number, 1);
    let large = m.two(Two::SubInteger, number, small);
    let [small, large] = [small, large].map(|field| m.up(field, EXPONENT));
    let value = m.mul(value, small);
    let value = m.mul(value, large);

    let (largest, infinity) = (m.number(LARGEST), m.number(f64::INFINITY));
    let beyond = m.less(largest, x);
    let value = m.select(beyond, infinity, value);
    let (least, zero) = (m.number(-LARGEST), m.number(0.0));
    let below = m.less(x, least);
    m.select(below, zero, value)
}
