//! Elementary functions to 128 bits, and the distance of a double from them.

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};
use holonome_model::graph::elementary::Elementary;

const ROUND: RoundingMode = RoundingMode::ToEven;
/// Precision of results in bits; `MORE_BITS` is that of intermediate steps.
const BITS: usize = 128;
const MORE_BITS: usize = 192;

/// Value of a function, for arguments that are finite and not on the table of special values.
pub enum Exact {
    Number(BigFloat),
    /// A value far outside the range of doubles: ±∞ or ±0 after rounding.
    Rounded(f64),
}

/// Arbitrary precision arithmetic with its constants.
pub struct Reference(Consts);

/// The number, exactly. The conversion in the library misreads subnormal numbers.
fn big(x: f64) -> BigFloat {
    const LIFT: f64 = (1u64 << 60) as f64;
    if x.is_subnormal() {
        BigFloat::from_f64(x * LIFT, 64).mul(&BigFloat::from_f64(1.0 / LIFT, 64), 64, ROUND)
    } else {
        BigFloat::from_f64(x, 64)
    }
}

impl Reference {
    pub fn new() -> Reference {
        Reference(Consts::new().expect("memory for constants"))
    }

    /// The value of a function.
    pub fn of(&mut self, function: Elementary, a: f64, b: f64) -> Exact {
        let c = &mut self.0;
        let x = big(a);
        let overflow = |exponent: f64, sign: f64| {
            Exact::Rounded(sign * if exponent > 0.0 { f64::INFINITY } else { 0.0 })
        };
        Exact::Number(match function {
            Elementary::Special(_) => unreachable!("special functions have tables"),
            Elementary::Sin => x.sin(BITS, ROUND, c),
            Elementary::Cos => x.cos(BITS, ROUND, c),
            Elementary::Tan => x.tan(BITS, ROUND, c),
            Elementary::Asin => x.asin(BITS, ROUND, c),
            Elementary::Acos => x.acos(BITS, ROUND, c),
            Elementary::Atan => x.atan(BITS, ROUND, c),
            Elementary::Exp if a.abs() > 2000.0 => return overflow(a, 1.0),
            Elementary::Sinh if a.abs() > 2000.0 => return overflow(1.0, a.signum()),
            Elementary::Cosh if a.abs() > 2000.0 => return overflow(1.0, 1.0),
            Elementary::Tanh if a.abs() > 2000.0 => return Exact::Rounded(a.signum()),
            Elementary::Sinh => x.sinh(BITS, ROUND, c),
            Elementary::Cosh => x.cosh(BITS, ROUND, c),
            Elementary::Tanh => x.tanh(BITS, ROUND, c),
            Elementary::Exp => x.exp(BITS, ROUND, c),
            Elementary::Log => x.ln(BITS, ROUND, c),
            Elementary::Pow => {
                let sign = if a < 0.0 && b % 2.0 != 0.0 { -1.0 } else { 1.0 };
                let exponent = b * a.abs().ln();
                if exponent.abs() > 2000.0 {
                    return overflow(exponent, sign);
                }
                let mut value = big(a.abs()).ln(MORE_BITS, ROUND, c);
                value = value.mul(&big(b), MORE_BITS, ROUND).exp(BITS, ROUND, c);
                if sign < 0.0 { value.neg() } else { value }
            }
            Elementary::Log10 => x.log10(BITS, ROUND, c),
            Elementary::Log1p if a.abs() < SMALL => sum_of_powers(&x, |n| {
                BigFloat::from_f64(if n % 2 == 0 { -1.0 } else { 1.0 }, 64).div(
                    &number(n),
                    BITS,
                    ROUND,
                )
            }),
            Elementary::Log1p => x.add(&big(1.0), MORE_BITS, ROUND).ln(BITS, ROUND, c),
            Elementary::Expm1 if a.abs() < SMALL => sum_of_powers(&x, |n| {
                let factorial: f64 = (1..=n).map(|k| k as f64).product();
                big(1.0).div(&big(factorial), BITS, ROUND)
            }),
            Elementary::Expm1 if a < -2000.0 => return Exact::Rounded(-1.0),
            Elementary::Expm1 if a > 2000.0 => return overflow(1.0, 1.0),
            Elementary::Expm1 => x.exp(MORE_BITS, ROUND, c).sub(&big(1.0), BITS, ROUND),
            Elementary::Erf if a.abs() > 7.0 => return Exact::Rounded(a.signum()),
            Elementary::Erf => error_function(&x, c),
            Elementary::Atan2 => {
                let angle = x.div(&big(b), MORE_BITS, ROUND).atan(MORE_BITS, ROUND, c);
                let mut half = c.pi(MORE_BITS, ROUND);
                if a.is_sign_negative() {
                    half.inv_sign();
                }
                if b < 0.0 { angle.add(&half, BITS, ROUND) } else { angle }
            }
        })
    }
}

/// Size below which a power series of few terms has all digits.
const SMALL: f64 = 1.0 / (1u64 << 40) as f64;

fn number(n: u32) -> BigFloat {
    BigFloat::from_f64(f64::from(n), 64)
}

/// Σ cₙ xⁿ from n = 1 on, for x below [`SMALL`].
fn sum_of_powers(x: &BigFloat, coefficient: impl Fn(u32) -> BigFloat) -> BigFloat {
    let (mut sum, mut power) = (big(0.0), big(1.0));
    for n in 1..6 {
        power = power.mul(x, MORE_BITS, ROUND);
        sum = sum.add(&coefficient(n).mul(&power, MORE_BITS, ROUND), MORE_BITS, ROUND);
    }
    sum
}

/// erf x = 2/√π Σ (−1)ⁿ x²ⁿ⁺¹/(n! (2n + 1)), with digits for the terms that cancel: e^(x²) = 2⁷⁰ for
/// x = 7.
fn error_function(x: &BigFloat, c: &mut Consts) -> BigFloat {
    const WIDE: usize = 256;
    let square = x.mul(x, WIDE, ROUND);
    let (mut sum, mut term) = (x.clone(), x.clone());
    for n in 1..300 {
        term = term.mul(&square, WIDE, ROUND).div(&number(n), WIDE, ROUND).neg();
        sum = sum.add(&term.div(&number(2 * n + 1), WIDE, ROUND), WIDE, ROUND);
    }
    let root = c.pi(WIDE, ROUND).sqrt(WIDE, ROUND);
    sum.mul(&number(2), WIDE, ROUND).div(&root, BITS, ROUND)
}

/// First 64 bits of |x| as a number in [1/2, 1), and the exponent.
fn parts(x: &BigFloat) -> (f64, i64) {
    let (words, _, _, exponent, _) = x.as_raw_parts().expect("a number");
    let top = words[words.len() - 1] as f64 / (astro_float_num::WORD_BASE as f64);
    (top, i64::from(exponent))
}

impl Exact {
    /// Error of `value` in units in the last place of the exact value. With 2ᵉ ≤ |exact| < 2ᵉ⁺¹ the
    /// unit is 2ᵉ⁻⁵², but not below the spacing 2⁻¹⁰⁷⁴ of the subnormal numbers. ∞ counts as 2¹⁰²⁴,
    /// so that it is right within 1/2 from where exact values round to it, and no number is right
    /// for a value that rounds to ∞. A NaN, or the wrong sign (of a zero too), is infinitely far.
    pub fn ulps(&self, value: f64) -> f64 {
        let exact = match self {
            Exact::Rounded(exact) => {
                return if exact.to_bits() == value.to_bits() { 0.0 } else { f64::INFINITY };
            }
            Exact::Number(exact) => exact,
        };
        if value.is_nan()
            || exact.is_nan()
            || value.is_sign_negative() != (exact.sign() == Some(Sign::Neg))
        {
            return f64::INFINITY;
        }
        if exact.is_zero() {
            return if value == 0.0 { 0.0 } else { f64::INFINITY };
        }
        let (_, exponent) = parts(exact);
        if exponent > 1024 {
            return if value.is_infinite() { 0.0 } else { f64::INFINITY };
        }
        let got = if value.is_infinite() {
            big(2f64.powi(1023).copysign(value)).mul(&big(2.0), BITS, ROUND)
        } else {
            big(value)
        };
        let difference = got.sub(exact, MORE_BITS, ROUND);
        if difference.is_zero() {
            return 0.0;
        }
        let (size, scale) = parts(&difference);
        size * 2f64.powi((scale - ((exponent - 1).max(-1022) - 52)).clamp(-1000, 1000) as i32)
    }
}
