//! Power aᵇ = e^(b ln|a|), with the sign of an odd b for a negative a.
//!
//! An error of ln|a| is multiplied by b ln|a|, up to 745, so the logarithm is needed to some 64
//! bits. With |a| = 2ᵏ (1 + f) as for [the logarithm](super::logarithm) and s = f/(1 + f/2),
//!
//! ln(1 + f) = s + s³ P(s²), P(z) = 1/12 + z (1/80 + …), |s| < 0.3432,
//!
//! with an error of 2⁻⁶⁶·⁷ of the logarithm. The second term is at most a hundredth of the first.
//! So s, s², the first coefficient and the products are sums of two doubles each (Dekker), the
//! higher coefficients are doubles, and the relative error of the logarithm is about 2⁻⁶⁴. Then b
//! ln|a| is a sum of two doubles, and so is the reduced argument of the exponential.
//!
//! Subnormal bases are scaled first. Zero, infinite and undefined bases have the logarithm of such
//! a number. The other special values are those of IEEE 754 (`pow`): 1 for b = 0 or a = 1 whatever
//! the other one, 1 for a = −1 and b = ±∞, NaN for a finite a < 0 and b not an integer. Operations
//! on b only are folded away if b is a constant.

use super::Arithmetic;
use super::exponential::exponential_of_sum;
use super::logarithm::split;
use super::steps::Steps;

/// ln 2 as a sum of a number of 42 bits, whose multiples by exponents are exact, and a double.
const SHORT_LN_2: [f64; 2] = [0.6931471805598903, 5.497923018708371e-14];

/// Factor that turns subnormal numbers into normal ones, and its exponent.
const LIFT: (f64, f64) = ((1u64 << 54) as f64, 54.0);

/// P: the constant coefficient as a sum of two doubles.
const FIRST: [f64; 2] = [0.08333333333333333, -2.5111855091862193e-18];

/// P: the other coefficients.
const POWER: [f64; 7] = [
    0.012500000000001957,
    0.0022321428569594104,
    0.0004340277860862797,
    8.87782011694301e-05,
    1.878307331511557e-05,
    4.0435950702168055e-06,
    1.0110420867482453e-06,
];

/// ln a of a positive finite number, as a sum of two doubles.
fn logarithm<A: Arithmetic>(m: &mut A, a: A::Value, subnormal: A::Value) -> [A::Value; 2] {
    let (lift, lifted_by) = (m.number(LIFT.0), m.number(LIFT.1));
    let lifted = m.mul(a, lift);
    let a = m.select(subnormal, lifted, a);
    let (k, mantissa) = split(m, a);
    let lifted_by = m.and(subnormal, lifted_by);
    let k = m.sub(k, lifted_by);

    let (half, one) = (m.number(0.5), m.number(1.0));
    let f = m.sub(mantissa, one);
    let half_f = m.mul(half, f);
    let bottom = m.add(one, half_f);
    let bottom_tail = m.lost(bottom, one, half_f);
    let inverse = m.div(one, bottom);
    let s = m.mul(f, inverse);
    let left = m.fnma(s, bottom, f);
    let left = m.fnma(s, bottom_tail, left);
    let s_tail = m.mul(left, inverse);

    let z = m.mul(s, s);
    let z_tail = m.fms(s, s, z);
    let twice = m.add(s, s);
    let z_tail = m.fma(twice, s_tail, z_tail);

    let [first, first_tail] = FIRST.map(|c| m.number(c));
    let higher = m.polynomial(z, &POWER);
    let higher = m.mul(z, higher);
    let p = m.add(first, higher);
    let p_tail = m.lost(p, first, higher);
    let p_tail = m.add(p_tail, first_tail);

    let zp = product(m, [z, z_tail], [p, p_tail]);
    let [cubic, cubic_tail] = product(m, zp, [s, s_tail]);
    let sum = m.add(s, cubic);
    let sum_tail = m.lost(sum, s, cubic);
    let cubic_tail = m.add(cubic_tail, s_tail);
    let sum_tail = m.add(sum_tail, cubic_tail);

    let [part, rest] = SHORT_LN_2.map(|p| m.number(p));
    let whole = m.mul(k, part);
    let value = m.add(whole, sum);
    let tail = m.lost(value, whole, sum);
    let sum_tail = m.fma(k, rest, sum_tail);
    let tail = m.add(tail, sum_tail);
    [value, tail]
}

/// The product of two sums of two doubles, without the product of the small ones.
fn product<A: Arithmetic>(m: &mut A, a: [A::Value; 2], b: [A::Value; 2]) -> [A::Value; 2] {
    let value = m.mul(a[0], b[0]);
    let tail = m.fms(a[0], b[0], value);
    let tail = m.fma(a[0], b[1], tail);
    [value, m.fma(a[1], b[0], tail)]
}

/// The mask that is true if b is an integer.
fn is_integer<A: Arithmetic>(m: &mut A, b: A::Value) -> A::Value {
    let (integers, b) = (m.number((1u64 << 52) as f64), m.magnitude(b));
    let moved = m.add(b, integers);
    let rounded = m.sub(moved, integers);
    let (equal, large) = (m.equal(rounded, b), m.less(integers, b));
    m.or(equal, large)
}

/// aᵇ
pub(super) fn power<A: Arithmetic>(m: &mut A, a: A::Value, b: A::Value) -> A::Value {
    let magnitude = m.magnitude(a);
    let (zero, half, one) = (m.number(0.0), m.number(0.5), m.number(1.0));
    let (infinity, nan) = (m.number(f64::INFINITY), m.number(f64::NAN));

    // Properties of b; for a constant they are constants.
    let integer = is_integer(m, b);
    let fractional = m.not(integer);
    let half_b = m.mul(half, b);
    let even = is_integer(m, half_b);
    let not_even = m.not(even);
    let odd = m.and(integer, not_even);
    let no_power = m.equal(b, zero);
    let b_magnitude = m.magnitude(b);
    let b_infinite = m.equal(b_magnitude, infinity);
    let b_finite = m.less(b_magnitude, infinity);
    let b_not_finite = m.not(b_finite);

    let least = m.number(f64::MIN_POSITIVE);
    let subnormal = m.less(magnitude, least);
    let [log, log_tail] = logarithm(m, magnitude, subnormal);
    let negative = m.less(a, zero);
    let undefined = m.and(negative, fractional);
    let log = m.select(undefined, nan, log);
    let finite = m.less(magnitude, infinity);
    let log = m.select(finite, log, magnitude);
    let (is_zero, log_zero) = (m.equal(a, zero), m.number(f64::NEG_INFINITY));
    let log = m.select(is_zero, log_zero, log);

    let exponent = m.mul(b, log);
    let tail = m.fms(b, log, exponent);
    let tail = m.fma(b, log_tail, tail);
    let value = exponential_of_sum(m, exponent, tail);

    let sign = m.sign(a);
    let sign = m.and(sign, odd);
    let value = m.xor(value, sign);
    let a_is_one = m.equal(a, one);
    let a_is_unit = m.equal(magnitude, one);
    let one_to_anything = m.and(a_is_one, b_not_finite);
    let unit_to_infinity = m.and(a_is_unit, b_infinite);
    let is_one = m.or(no_power, one_to_anything);
    let is_one = m.or(is_one, unit_to_infinity);
    m.select(is_one, one, value)
}
