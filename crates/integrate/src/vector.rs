//! Loops over the components of vectors.
//!
//! A fused multiply-add is one instruction on processors that have it, and a call of the
//! mathematical library in code that must run without; loops over vectors are therefore compiled
//! for both ([`widest`]), with the same bits.

use holonome_linear::widest::widest;

/// Number of components per block: the block of `out` stays in the first-level cache while the
/// terms pass over it.
pub const BLOCK: usize = 1024;

/// Σ w_i k_i in the order that [`Space::weighted_sum`](crate::space::Space::weighted_sum) fixes for
/// each component.
pub fn combine(out: &mut [f64], weights: &[f64], k: &[Vec<f64>]) {
    widest(
        #[inline(always)]
        || {
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let start = block * BLOCK;
                let mut terms = weights.iter().zip(k).filter(|(weight, _)| **weight != 0.0);
                let Some((&weight, first)) = terms.next() else {
                    out.fill(0.0);
                    continue;
                };
                for (out, k) in out.iter_mut().zip(&first[start..]) {
                    *out = weight * k;
                }
                add_terms(out, start, terms.map(|(&weight, k)| (weight, k)));
            }
        },
    );
}

/// x + scale·Σ (w_i/w₁) k_i in the order that [`Space::displaced`](crate::space::Space::displaced)
/// fixes for each component; `first` is w₁.
pub fn combine_scaled(
    out: &mut [f64],
    x: &[f64],
    scale: f64,
    first: f64,
    weights: &[f64],
    k: &[Vec<f64>],
) {
    widest(
        #[inline(always)]
        || {
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let start = block * BLOCK;
                let mut terms = weights.iter().zip(k).filter(|(weight, _)| **weight != 0.0);
                if let Some((_, k)) = terms.next() {
                    out.copy_from_slice(&k[start..start + out.len()]);
                }
                add_terms(out, start, terms.map(|(&weight, k)| (weight / first, k)));
                for (out, x) in out.iter_mut().zip(&x[start..]) {
                    *out = scale.mul_add(*out, *x);
                }
            }
        },
    );
}

/// out + scale·k, as fma(scale, k, out).
pub fn add_scaled(out: &mut [f64], scale: f64, k: &[f64]) {
    widest(
        #[inline(always)]
        || {
            for (out, k) in out.iter_mut().zip(k) {
                *out = scale.mul_add(*k, *out);
            }
        },
    );
}

#[inline(always)]
fn add_terms<'a>(out: &mut [f64], start: usize, terms: impl Iterator<Item = (f64, &'a Vec<f64>)>) {
    for (weight, k) in terms {
        for (out, k) in out.iter_mut().zip(&k[start..]) {
            *out = weight.mul_add(*k, *out);
        }
    }
}

/// The larger of the two, NaN if either is: `f64::max` would hide it.
pub fn max_or_nan(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// Number number `k` of a sequence without a symmetry, between ½ and 1 in size: a direction in
/// which to move a state.
pub(crate) fn irregular(k: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let part = ((k + 1) as f64 * GOLDEN).fract() - 0.5;
    part + 0.5f64.copysign(part)
}

/// Copy the first `len` numbers of each of `rows` rows, which begin so many numbers apart in either
/// array.
pub fn copy_rows((rows, len): (usize, usize), from: (&[f64], usize), to: (&mut [f64], usize)) {
    /// Copy rows of a length that is known at compile time: a few moves each, not a call.
    fn short<const N: usize>(
        rows: usize,
        (from, apart): (&[f64], usize),
        (to, onto): (&mut [f64], usize),
    ) {
        for (to, from) in to.chunks_mut(onto).zip(from.chunks(apart)).take(rows) {
            to[..N].copy_from_slice(&from[..N]);
        }
    }
    match len {
        0 => {}
        1 => short::<1>(rows, from, to),
        2 => short::<2>(rows, from, to),
        3 => short::<3>(rows, from, to),
        4 => short::<4>(rows, from, to),
        6 => short::<6>(rows, from, to),
        _ => {
            for (to, from) in to.0.chunks_mut(to.1).zip(from.0.chunks(from.1)).take(rows) {
                to[..len].copy_from_slice(&from[..len]);
            }
        }
    }
}
