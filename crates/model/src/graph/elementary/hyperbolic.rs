//! Hyperbolic functions sinh, cosh and tanh.
//!
//! **sinh and cosh.** |x| = k ln 2 + r as for [the exponential](super::exponential), with the tail
//! of r. On that interval sinh r = r + r³ S(r²) and cosh r = 1 + r² C(r²), with errors of 2⁻⁶¹·⁷
//! and 2⁻⁵⁸ of the result. Then
//!
//! sinh |x| = sinh(k ln 2) cosh r + cosh(k ln 2) sinh r,
//! cosh |x| = cosh(k ln 2) cosh r + sinh(k ln 2) sinh r,
//!
//! where (2ᵏ ± 2⁻ᵏ)/2 are exact up to k = 26; beyond, their rounding errors are added with the
//! small terms. No quotient is needed, and sinh is accurate next to 0, where k = 0. For 0 < k < 3
//! the sum of sinh(k ln 2) and cosh(k ln 2) r cancels a little, so it is formed without error.
//!
//! A common factor of about 2ᵏᐟ² is multiplied at the end, where the product overflows as it
//! should; all finite arguments work.
//!
//! **tanh.** tanh |x| = −E/(2 + E) with E = e^(−2|x|) − 1 in two doubles.

use super::Arithmetic;
use super::exponential::{self, reduce};
use super::steps::{BIAS, EXPONENT, LN_2, ROUNDING, Steps};
use crate::graph::primitive::Two;

/// Bound above which sinh and cosh are infinite.
const LARGEST: f64 = 1000.0;

/// Bound above which tanh rounds to 1: it is 1 − 2e⁻⁴⁰.
const FLAT: f64 = 20.0;

const SINE: [f64; 5] = [
    0.16666666666666677,
    0.008333333333321376,
    0.00019841269886867191,
    2.755724337643023e-06,
    2.510935504981274e-08,
];

const COSINE: [f64; 5] = [
    0.5000000000000012,
    0.0416666666665192,
    0.0013888888946134834,
    2.480149077008781e-05,
    2.7631008807164064e-07,
];

/// Common parts of sinh and cosh.
struct Parts<V> {
    magnitude: V,
    r: V,
    /// sinh r − r
    sine: V,
    /// cosh r − 1
    cosine: V,
    /// A power of two.
    factor: V,
    /// 2ᵏ/2 and 2⁻ᵏ/2 divided by the factor.
    growing: V,
    shrinking: V,
    /// sinh(k ln 2) divided by the factor.
    step_sine: V,
    /// cosh(k ln 2) divided by the factor.
    step_cosine: V,
}

fn parts<A: Arithmetic>(m: &mut A, x: A::Value) -> Parts<A::Value> {
    let magnitude = m.magnitude(x);
    // With one less than twice the bias, the fields of the two exponents add up to that of 2ᵏ/2,
    // with its half.
    let offset = 2 * BIAS - 1;
    let reduced = reduce(m, magnitude, offset);
    let part = m.number(LN_2[1]);
    let r = m.fnma(reduced.k, part, reduced.first);
    let taken = m.sub(reduced.first, r);
    let tail = m.fnma(reduced.k, part, taken);

    let z = m.mul(r, r);
    let series = m.polynomial(z, &SINE);
    let cube = m.mul(r, z);
    let sine = m.fma(cube, series, tail);
    let series = m.polynomial(z, &COSINE);
    let cosine = m.mul(z, series);

    let half = m.down(reduced.number, 1);
    let other = m.two(Two::SubInteger, reduced.number, half);
    let [factor, growing] = [half, other].map(|field| m.up(field, EXPONENT));
    // The field of 2⁻ᵏ/2 divided by the factor is bias − k − 1 − (half − bias), where number = k +
    // offset, apart from the bits of the rounding constant, which are above all these. Any number
    // far below the other one will do.
    let total = m.two(Two::AddInteger, reduced.number, half);
    let above = ROUNDING.to_bits();
    let sum = m.bits(above + (above >> 1) + (2 * BIAS - 1 + offset) as u64);
    let field = m.two(Two::SubInteger, sum, total);
    let negligible = m.bits((BIAS - 500) as u64);
    let field = m.two(Two::LargerInteger, field, negligible);
    let shrinking = m.up(field, EXPONENT);
    let step_cosine = m.add(growing, shrinking);
    let step_sine = m.sub(growing, shrinking);
    Parts { magnitude, r, sine, cosine, factor, growing, shrinking, step_sine, step_cosine }
}

fn scaled<A: Arithmetic>(m: &mut A, p: &Parts<A::Value>, value: A::Value) -> A::Value {
    let value = m.mul(value, p.factor);
    let (largest, infinity) = (m.number(LARGEST), m.number(f64::INFINITY));
    let beyond = m.less(largest, p.magnitude);
    m.select(beyond, infinity, value)
}

/// sinh x
pub(super) fn sine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let p = parts(m, x);
    let linear = m.mul(p.step_cosine, p.r);
    let lost_in_product = m.fms(p.step_cosine, p.r, linear);
    let head = m.add(p.step_sine, linear);
    let lost = m.lost(head, p.step_sine, linear);
    // sinh(k ln 2) itself is not always exact.
    let taken = m.sub(p.growing, p.step_sine);
    let lost_in_step = m.sub(taken, p.shrinking);
    let rest = m.add(lost, lost_in_product);
    let rest = m.add(rest, lost_in_step);
    let rest = m.fma(p.step_sine, p.cosine, rest);
    let rest = m.fma(p.step_cosine, p.sine, rest);
    let value = m.add(head, rest);
    let value = scaled(m, &p, value);
    let sign = m.sign(x);
    m.or(value, sign)
}

/// cosh x
pub(super) fn cosine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let p = parts(m, x);
    // cosh(k ln 2) itself is not always exact.
    let lost = m.lost(p.step_cosine, p.growing, p.shrinking);
    let rest = m.fma(p.step_cosine, p.cosine, lost);
    let rest = m.fma(p.step_sine, p.sine, rest);
    let rest = m.fma(p.step_sine, p.r, rest);
    let value = m.add(p.step_cosine, rest);
    scaled(m, &p, value)
}

/// tanh x
pub(super) fn tangent<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let (magnitude, flat, two) = (m.magnitude(x), m.number(FLAT), m.number(2.0));
    let beyond = m.less(flat, magnitude);
    let bounded = m.select(beyond, flat, magnitude);
    let minus_two = m.number(-2.0);
    let doubled = m.mul(minus_two, bounded);
    let [e, e_lost] = exponential::less_one(m, doubled, true);
    let bottom = m.add(two, e);
    let bottom_lost = m.lost(bottom, two, e);
    let bottom_lost = m.add(bottom_lost, e_lost);
    let value = m.quotient([e, e_lost], [bottom, bottom_lost]);
    let (value, sign) = (m.magnitude(value), m.sign(x));
    m.or(value, sign)
}
