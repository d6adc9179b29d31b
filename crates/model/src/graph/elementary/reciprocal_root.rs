//! Reciprocal root 1/√x for kernels of many lanes. There a root and a division take longer than the
//! twenty operations here, of which several start at a time.
//!
//! **Start.** Half the bits of x, subtracted from a constant and read as a double, are y with |e| <
//! 0.07 in e = 1 − x y² (C. Lomont, *Fast inverse square root*, 2003).
//!
//! **Steps.** 1/√x = y (1 − e)^(−½). The best cubic for that has an error of 2⁻²⁰; from there 1 +
//! e/2 + 3e²/8 leaves 2⁻⁶⁰. The last addition rounds, and the product in e: up to 1 ulp together,
//! the same as for a root and a division.
//!
//! **Special values** are those of 1/√x: ∞ at 0, 0 at ∞, NaN below 0. Numbers below 2⁻¹⁰²² count as
//! 0.

use super::Arithmetic;
use super::steps::Steps;
use crate::graph::primitive::Two;

/// Constant of the start, and coefficients of the cubic.
const START: u64 = 0x5FE6_EB50_C7B5_37A9;
const CUBIC: [f64; 4] =
    [0.9999992536228206, 0.5000004233715971, 0.37627901143658293, 0.313054091011853];

/// 1/√x
pub fn reciprocal_root<A: Arithmetic>(m: &mut A, x: A::Value) -> A::Value {
    let (start, half_bits) = (m.bits(START), m.down(x, 1));
    let y = m.two(Two::SubInteger, start, half_bits);
    let [c0, c1, c2, c3, one, half, quarters] =
        [CUBIC[0], CUBIC[1], CUBIC[2], CUBIC[3], 1.0, 0.5, 0.375].map(|c| m.number(c));
    let product = m.mul(x, y);
    let e = m.fnma(product, y, one);
    let series = m.fma(c3, e, c2);
    let series = m.fma(series, e, c1);
    let series = m.fma(series, e, c0);
    let y = m.mul(y, series);
    let product = m.mul(x, y);
    let e = m.fnma(product, y, one);
    let (part, series) = (m.mul(y, e), m.fma(quarters, e, half));
    let y = m.fma(part, series, y);

    let [least, largest, zero, infinity, none] =
        [f64::MIN_POSITIVE, f64::MAX, 0.0, f64::INFINITY, f64::NAN].map(|number| m.number(number));
    let (below, small, large) = (m.less(x, zero), m.less(x, least), m.less(largest, x));
    let of_small = m.select(below, none, infinity);
    let y = m.select(small, of_small, y);
    m.select(large, zero, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::primitive::Numbers;

    #[test]
    fn it_is_good_to_the_last_place() {
        let mut worst = 0f64;
        let mut x = 1.0f64;
        for k in 0..400_000u64 {
            // Mantissas that fill [1, 4) evenly, with exponents of all sizes.
            x = (x * 1.618_033_988_749_895).rem_euclid(3.0);
            let scale = 2f64.powi((k % 1000) as i32 * 2 - 1000);
            let a = (1.0 + x) * scale;
            let y = reciprocal_root(&mut Numbers, a);
            // 1 − a y² exactly but for its last rounding; the relative error of y is half of it.
            let (product, square) = (a * y, y);
            let rest = a.mul_add(y, -product);
            let off = 0.5 * (-product).mul_add(square, 1.0) - 0.5 * rest * y;
            let ulp = f64::from_bits(y.to_bits() & !((1 << 52) - 1)) * f64::EPSILON;
            worst = worst.max((off * y / ulp).abs());
        }
        assert!((0.5..1.0).contains(&worst), "{worst}");
    }

    #[test]
    fn it_is_exact_where_the_root_is_and_at_the_limits() {
        for k in -510..510 {
            assert_eq!(reciprocal_root(&mut Numbers, 4f64.powi(k)), 2f64.powi(-k));
        }
        let of = |x: f64| reciprocal_root(&mut Numbers, x);
        assert_eq!(
            [of(0.0), of(-0.0), of(5e-324), of(f64::INFINITY)],
            [f64::INFINITY, f64::INFINITY, f64::INFINITY, 0.0]
        );
        assert!([-1.0, -5e-324, f64::NEG_INFINITY, f64::NAN].iter().all(|&x| of(x).is_nan()));
        assert!((of(f64::MAX) / 7.458340731200207e-155 - 1.0).abs() < f64::EPSILON);
        assert!((of(f64::MIN_POSITIVE) / 6.703903964971299e153 - 1.0).abs() < f64::EPSILON);
    }
}
