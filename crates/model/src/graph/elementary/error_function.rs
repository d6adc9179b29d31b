//! Error function erf x = 2/√π ∫₀ˣ e^(−u²) du.
//!
//! **Up to 1.** erf x = x F(x²) with 13 coefficients, the first in two doubles; the error is 2⁻⁶² of
//! the result.
//!
//! **From 1 on.** erf x = 1 − e^(−x²) Q(t), t = (x − 2)/(x + 2): Q is smooth, and the product is less
//! than a sixth of the result. x² has its tail, and beyond 6 the result rounds to 1.

use super::Arithmetic;
use super::exponential::exponential_of_sum;
use super::steps::Steps;

/// Bound above which erf rounds to 1: it is 1 − 2e-17.
const FLAT: f64 = 6.0;

/// 2/√π in two doubles.
const INNER: [f64; 2] = [std::f64::consts::FRAC_2_SQRT_PI, 1.5189052644078854e-17];

const INNER_REST: [f64; 12] = [
    -0.3761263890318375,
    0.11283791670954883,
    -0.02686617064507688,
    0.005223977624813534,
    -0.0008548326980361105,
    0.00012055331088724636,
    -1.4925594614897685e-05,
    1.6460988797537006e-06,
    -1.635017879947682e-07,
    1.4658822356277827e-08,
    -1.1369007427131918e-09,
    5.950468008636735e-11,
];

const OUTER: [f64; 14] = [
    0.25539567631050575,
    -0.4271858474139583,
    0.24165819424245874,
    -0.07897858101585785,
    0.0037328924052610073,
    0.0069974617626250134,
    -0.0008471432075525608,
    -0.0009819781469927321,
    4.354962126276091e-05,
    0.000174370792539356,
    2.7666869102167016e-05,
    -2.732444401627334e-05,
    -1.4631741813837057e-05,
    -1.6481649143632727e-06,
];

/// erf x
pub(super) fn error_function<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let (magnitude, flat) = (m.magnitude(x), m.number(FLAT));
    let beyond = m.less(flat, magnitude);
    let bounded = m.select(beyond, flat, magnitude);
    let square = m.mul(bounded, bounded);

    let series = m.polynomial(square, &INNER_REST);
    let [first, rest] = INNER.map(|c| m.number(c));
    let small = m.fma(square, series, rest);
    let small = m.mul(bounded, small);
    let inner = m.fma(bounded, first, small);

    let (one, two) = (m.number(1.0), m.number(2.0));
    let (top, bottom) = (m.sub(bounded, two), m.add(bounded, two));
    let t = m.div(top, bottom);
    let series = m.polynomial(t, &OUTER);
    // −x² and its tail.
    let lost = m.fms(bounded, bounded, square);
    let zero = m.number(0.0);
    let (exponent, tail) = (m.sub(zero, square), m.sub(zero, lost));
    let decay = exponential_of_sum(m, exponent, tail);
    let outer = m.fnma(decay, series, one);

    let near = m.less(bounded, one);
    let value = m.select(near, inner, outer);
    let sign = m.sign(x);
    m.or(value, sign)
}
