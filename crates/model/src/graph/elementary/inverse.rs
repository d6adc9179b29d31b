//! Inverse trigonometric functions asin, acos, atan and atan2.
//!
//! **atan and atan2.** Let q be the quotient of the smaller by the larger one of |x| and |y|, or of
//! 1 and |x| for atan. The angle is h ± arctan t with t = q for q ≤ 1/2 and t = (q − 1)/(q + 1)
//! otherwise, so that |t| ≤ 1/2, and h a multiple of π/4. This takes one division; its numerator is
//! exact. arctan t = t + t³ P(t²) with 12 coefficients and an error of 2⁻⁵⁷·⁸. The rounding of t is
//! corrected to first order: the remainder of the division is exact, and is multiplied by a rough
//! inverse.
//!
//! **asin and acos.** For |x| ≤ 1/2, asin x = x + x³ P(x²) and acos x = π/2 − asin x. Beyond, with
//! z = (1 − |x|)/2, which is exact, and t = √z ≤ 1/2, asin |x| = π/2 − 2 asin t, acos |x| = 2 asin
//! t and acos(−|x|) = π − 2 asin t (Cody and Waite). One polynomial serves all: 13 coefficients, an
//! error of 2⁻⁵⁹·⁹. The rounding of the root is corrected as above. Outside [−1, 1] the root is
//! NaN.
//!
//! In both, h ± t is formed without error and the small terms are added last.

use super::Arithmetic;
use super::Elementary;
use super::steps::{HALF_PI, Steps};
use crate::graph::primitive::{One, Two};

const ARCTANGENT: [f64; 12] = [
    -0.3333333333333298,
    0.19999999999903106,
    -0.14285714276385322,
    0.11111110659601324,
    -0.09090896243646186,
    0.07692073893093956,
    -0.06663810402170349,
    0.05858297397612092,
    -0.0512199889717633,
    0.04186484858220245,
    -0.027434638783301126,
    0.010116632851751909,
];

const ARCSINE: [f64; 13] = [
    0.1666666666666676,
    0.07499999999970865,
    0.04464285717456294,
    0.030381942709751218,
    0.022372214939434344,
    0.017351612785945644,
    0.013980812143460884,
    0.01139897544850287,
    0.010779923801568076,
    0.003707571370702975,
    0.021704783170590207,
    -0.02099549254668801,
    0.032626499432868786,
];

/// Bits from which subtracting those of a positive number gives its inverse up to 5.1 %: the
/// exponent is negated, the fraction follows a chord. This accuracy is enough to scale the
/// remainder of a division.
const INVERSE: u64 = 0x7fde_6200_0000_0000;

/// Bits like [`INVERSE`] for half the inverse of the root, from a number's bits shifted right by
/// one; up to 3.5 %.
const HALF_INVERSE_ROOT: u64 = 0x5fd6_ec00_0000_0000;

/// Bound above which the approximate inverse fails, and ∞/∞ would be wrong.
const LARGEST: f64 = f64::from_bits(0x7fb0_0000_0000_0000);

/// h + factor (t + tail + t z P(z)) from the value of P, with h as two parts. The product of factor
/// and t is exact, and h is 0 or larger than it.
fn beside<A: Arithmetic>(
    m: &mut A,
    [h, h_tail]: [A::Value; 2],
    factor: A::Value,
    [t, tail]: [A::Value; 2],
    [z, series]: [A::Value; 2],
) -> A::Value {
    let head = m.fma(factor, t, h);
    let taken = m.sub(h, head);
    let lost = m.fma(factor, t, taken);
    let lost = m.add(lost, h_tail);
    let cube = m.mul(t, z);
    let rest = m.fma(cube, series, tail);
    let rest = m.fma(factor, rest, lost);
    m.add(head, rest)
}

/// `of` applied to each of the two parts of π/2.
fn parts_of_half_pi<A: Arithmetic>(
    m: &mut A,
    mut of: impl FnMut(&mut A, f64) -> A::Value,
) -> [A::Value; 2] {
    [of(m, HALF_PI[0]), of(m, HALF_PI[1])]
}

/// a/(b + b') as a double and its remainder, the latter up to a twentieth of itself.
fn ratio<A: Arithmetic>(m: &mut A, a: A::Value, [b, b_tail]: [A::Value; 2]) -> [A::Value; 2] {
    let t = m.div(a, b);
    let left = m.fnma(t, b, a);
    let left = m.fnma(t, b_tail, left);
    let inverse = m.bits(INVERSE);
    let inverse = m.two(Two::SubInteger, inverse, b);
    [t, m.mul(left, inverse)]
}

/// h + arctan(t + tail)
fn arctangent_beside<A: Arithmetic>(
    m: &mut A,
    h: [A::Value; 2],
    [t, tail]: [A::Value; 2],
) -> A::Value {
    let (one, z) = (m.number(1.0), m.mul(t, t));
    let series = m.polynomial(z, &ARCTANGENT);
    beside(m, h, one, [t, tail], [z, series])
}

/// arctan x
pub(super) fn arctangent<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let magnitude = m.magnitude(x);
    let (half, one, two) = (m.number(0.5), m.number(1.0), m.number(2.0));
    let (not_small, large) = (m.less(half, magnitude), m.less(two, magnitude));
    let not_large = m.not(large);
    // (|x| − 0)/(1 + 0), (|x| − 1)/(1 + |x|), (0 − 1)/(0 + |x|)
    let (plus, minus) = (m.and(not_large, magnitude), m.and(not_small, one));
    let top = m.sub(plus, minus);
    let (one_or_none, added) = (m.and(not_large, one), m.and(not_small, magnitude));
    let bottom = m.add(one_or_none, added);
    let lost = m.lost(bottom, one_or_none, added);
    let [t, tail] = ratio(m, top, [bottom, lost]);
    // For large arguments the tail does not matter, and for infinity it is NaN.
    let far = m.number(LARGEST);
    let near = m.less(magnitude, far);
    let tail = m.and(near, tail);

    let h = parts_of_half_pi(m, |m, p| {
        let (quarter, half) = (m.number(0.5 * p), m.number(p));
        let quarter = m.and(not_small, quarter);
        m.select(large, half, quarter)
    });
    let value = arctangent_beside(m, h, [t, tail]);
    let sign = m.sign(x);
    m.or(value, sign)
}

/// The angle of the point (x, y).
pub(super) fn angle<A: Arithmetic>(m: &mut A, y: A::Value, x: A::Value) -> A::Value {
    let (height, width) = (m.magnitude(y), m.magnitude(x));
    let steep = m.less(width, height);
    let short = m.select(steep, width, height);
    let long = m.select(steep, height, width);
    let largest = m.number(LARGEST);
    let beyond = m.less(largest, long);
    let valid = m.not(beyond);
    // 0/0 becomes 0 over the smallest number.
    let smallest = m.bits(1);
    let long = m.two(Two::LargerInteger, long, smallest);

    // (short − long)/(long + short) if the quotient is above 1/2.
    let twice = m.add(short, short);
    let diagonal = m.less(long, twice);
    let (taken, added) = (m.and(diagonal, long), m.and(diagonal, short));
    let top = m.sub(short, taken);
    let bottom = m.add(long, added);
    let lost = m.lost(bottom, long, added);
    // h − arctan t if exactly one is true: steep, x < 0.
    let sign = m.xor(steep, x);
    let sign = m.sign(sign);
    let top = m.xor(top, sign);
    let t = ratio(m, top, [bottom, lost]);

    // The mask of a sign, which −0 has as well.
    let (zero, bit) = (m.bits(0), m.down(x, 63));
    let opposite = m.two(Two::SubInteger, zero, bit);
    let h = parts_of_half_pi(m, |m, p| {
        // Exact, because the first part ends in zeros.
        let [one, two, three, four] = [0.5 * p, p, 1.5 * p, 2.0 * p].map(|p| m.number(p));
        let between = m.select(opposite, three, one);
        let half = m.and(opposite, four);
        let beside = m.select(steep, two, half);
        m.select(diagonal, between, beside)
    });
    let value = arctangent_beside(m, h, t);
    let sign = m.sign(y);
    let value = m.or(value, sign);
    m.repair(Elementary::Atan2, [y, x], value, valid)
}

/// Common parts of asin and acos.
struct Arc<V> {
    /// |x| > 1/2
    large: V,
    /// |x| or the root, and its tail.
    t: [V; 2],
    /// t² and the polynomial's value.
    series: [V; 2],
}

fn arc<A: Arithmetic>(m: &mut A, x: A::Value) -> Arc<A::Value> {
    let (magnitude, half) = (m.magnitude(x), m.number(0.5));
    let large = m.less(half, magnitude);
    let square = m.mul(magnitude, magnitude);
    let complement = m.fnma(half, magnitude, half);
    let z = m.select(large, complement, square);
    let root = m.one(One::Sqrt, complement);
    let t = m.select(large, root, magnitude);
    let left = m.fnma(root, root, complement);
    let (magic, moved) = (m.bits(HALF_INVERSE_ROOT), m.down(complement, 1));
    let inverse = m.two(Two::SubInteger, magic, moved);
    let tail = m.mul(left, inverse);
    let tail = m.and(large, tail);
    let series = m.polynomial(z, &ARCSINE);
    Arc { large, t: [t, tail], series: [z, series] }
}

/// arcsin x
pub(super) fn arcsine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let arc = arc(m, x);
    let (one, minus_two) = (m.number(1.0), m.number(-2.0));
    let factor = m.select(arc.large, minus_two, one);
    let h = parts_of_half_pi(m, |m, p| {
        let p = m.number(p);
        m.and(arc.large, p)
    });
    let value = beside(m, h, factor, arc.t, arc.series);
    let sign = m.sign(x);
    m.or(value, sign)
}

/// arccos x
pub(super) fn arccosine<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let arc = arc(m, x);
    let (zero, minus_one, two) = (m.number(0.0), m.number(-1.0), m.number(2.0));
    let factor = m.select(arc.large, two, minus_one);
    let sign = m.sign(x);
    let factor = m.xor(factor, sign);
    let opposite = m.less(x, zero);
    let h = parts_of_half_pi(m, |m, p| {
        let (quarter, half) = (m.number(p), m.number(2.0 * p));
        let half = m.and(opposite, half);
        m.select(arc.large, half, quarter)
    });
    beside(m, h, factor, arc.t, arc.series)
}
