//! Trigonometric functions sin, cos and tan.
//!
//! **Reduction.** |x| = k π/2 + r with k the integer nearest to |x| 2/π and |r| ≤ (1 + 2⁻¹²) π/4,
//! after Cody and Waite with fused products. π/2 = P₁ + P₂ + P₃ + ε with |ε| < 2⁻¹⁶³. The first
//! difference |x| − k P₁ is exact: for k ≠ 0 both terms are multiples of 2⁻⁵³, the spacing below 1,
//! and the result is below 1 (S. Boldo, M. Daumas, R.-C. Li, *Formally verified argument reduction
//! with a fused multiply-add*, IEEE Trans. Comput. 58 (2009), treat such sequences). The next one,
//! of p = k P₂ rounded, gives r, and its error is exact too: that difference is a multiple of p's
//! last place. The rounding errors of both, and k P₃, are the tail of r.
//!
//! For |x| ≤ 2⁴⁰ the tail is at most 2⁻⁵³ |r| + 2⁻⁶⁷ and rounded twice, hence an error below 2⁻¹⁰⁵
//! |r| + 2⁻¹¹⁹. No double below 2⁵⁰ but 0 is closer than 2⁻⁶⁰·⁵ to a multiple of π/2 (by continued
//! fractions, W. Kahan's method; see Muller on range reduction), so the relative error of r + tail
//! is 2⁻⁵⁸ in the worst case.
//!
//! **Polynomials.** sin r = r + r³ S(r²) and cos r = 1 − r²/2 + r⁴ C(r²) with errors of 2⁻⁵⁷·⁹ and
//! 2⁻⁶³·⁹ of the result. The last addition of both is left open, and the tail is added in it.
//!
//! **Result.** k mod 4 selects one of the two and its sign. The tangent is their quotient: both as
//! sums of two doubles, one division, and one step of correction.
//!
//! sin is odd and cos even, bit for bit, because only |x| is reduced.

use super::Arithmetic;
use super::Elementary;
use super::steps::{HALF_PI, ROUNDING, Steps};
use crate::graph::primitive::Two;
use std::f64::consts::FRAC_2_PI;

/// The largest argument of the straight-line code, 2⁴⁰.
const LARGEST: f64 = (1u64 << 40) as f64;

const SINE: [f64; 6] = [
    -0.1666666666666663,
    0.00833333333332184,
    -0.00019841269829358528,
    2.7557313538515233e-06,
    -2.5050734389890094e-08,
    1.5895433384403226e-10,
];

const COSINE: [f64; 6] = [
    0.041666666666666595,
    -0.0013888888888873333,
    2.4801587288992884e-05,
    -2.755731421355944e-07,
    2.0875704833998353e-09,
    -1.1358716317025664e-11,
];

/// A value as a sum of two: the second is small, but not necessarily below the last place of the
/// first.
type Open<V> = [V; 2];

/// Functions of the reduced argument.
struct Quadrant<V> {
    sine: Open<V>,
    cosine: Open<V>,
    /// An integer congruent to k modulo 4.
    number: V,
    /// Mask that is true if the straight-line code is valid; also for NaN, which it passes on.
    valid: V,
}

fn reduce<A: Arithmetic>(m: &mut A, x: A::Value) -> Quadrant<A::Value> {
    let (magnitude, largest) = (m.magnitude(x), m.number(LARGEST));
    let beyond = m.less(largest, magnitude);
    let valid = m.not(beyond);

    let (per_quadrant, rounding) = (m.number(FRAC_2_PI), m.number(ROUNDING));
    let number = m.fma(magnitude, per_quadrant, rounding);
    let k = m.sub(number, rounding);
    let [p1, p2, p3] = HALF_PI.map(|p| m.number(p));
    let first = m.fnma(k, p1, magnitude);
    let second = m.mul(k, p2);
    let r = m.sub(first, second);
    let taken = m.sub(first, r);
    let tail = m.fnma(k, p2, taken);
    let tail = m.fnma(k, p3, tail);

    let z = m.mul(r, r);
    let series = m.polynomial(z, &SINE);
    let cube = m.mul(r, z);
    let sine = m.fma(cube, series, tail);

    let series = m.polynomial(z, &COSINE);
    let fourth = m.mul(z, z);
    let (half, one) = (m.number(0.5), m.number(1.0));
    let head = m.fnma(half, z, one);
    let lost = m.sub(one, head);
    let lost = m.fnma(half, z, lost);
    let rest = m.fma(fourth, series, lost);
    let rest = m.fnma(r, tail, rest);
    Quadrant { sine: [r, sine], cosine: [head, rest], number, valid }
}

/// The mask of the lowest bit.
fn odd<A: Arithmetic>(m: &mut A, number: A::Value) -> A::Value {
    let (zero, one) = (m.bits(0), m.bits(1));
    let bit = m.and(number, one);
    m.two(Two::SubInteger, zero, bit)
}

/// sin x
pub(super) fn sine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let q = reduce(m, x);
    let [s, c] = [q.sine, q.cosine].map(|[a, b]| m.add(a, b));
    let odd = odd(m, q.number);
    let value = m.select(odd, c, s);
    // The second bit of k changes the sign.
    let turned = m.up(q.number, 62);
    let sign = m.xor(turned, x);
    let sign = m.sign(sign);
    let value = m.xor(value, sign);
    m.repair(Elementary::Sin, [x, x], value, q.valid)
}

/// cos x
pub(super) fn cosine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let q = reduce(m, x);
    let [s, c] = [q.sine, q.cosine].map(|[a, b]| m.add(a, b));
    let odd = odd(m, q.number);
    let value = m.select(odd, s, c);
    // cos x = sin(x + π/2): the second bit of k + 1.
    let one = m.bits(1);
    let next = m.two(Two::AddInteger, q.number, one);
    let sign = m.up(next, 62);
    let sign = m.sign(sign);
    let value = m.xor(value, sign);
    m.repair(Elementary::Cos, [x, x], value, q.valid)
}

/// tan x
pub(super) fn tangent<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let mut q = reduce(m, x);
    // The error of cos r enters that of the result in full, so the rounding of r² is added back.
    let (half, square) = (m.number(0.5), m.mul(q.sine[0], q.sine[0]));
    let lost = m.fms(q.sine[0], q.sine[0], square);
    q.cosine[1] = m.fnma(half, lost, q.cosine[1]);
    let [s, c] = [q.sine, q.cosine].map(|[a, b]| {
        let sum = m.add(a, b);
        [sum, m.lost(sum, a, b)]
    });
    let odd = odd(m, q.number);
    let top = [m.select(odd, c[0], s[0]), m.select(odd, c[1], s[1])];
    let bottom = [m.select(odd, s[0], c[0]), m.select(odd, s[1], c[1])];
    let value = m.quotient(top, bottom);
    // −cot r if k is odd.
    let turned = m.up(q.number, 63);
    let sign = m.xor(turned, x);
    let sign = m.sign(sign);
    let value = m.xor(value, sign);
    m.repair(Elementary::Tan, [x, x], value, q.valid)
}
