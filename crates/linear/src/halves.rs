//! Reduction of eight numbers to one.

/// Join the numbers by halves: joining one after the other would wait for each result.
#[inline(always)]
pub fn by_halves([a, b, c, d, e, f, g, h]: [f64; 8], join: impl Fn(f64, f64) -> f64) -> f64 {
    join(join(join(a, e), join(c, g)), join(join(b, f), join(d, h)))
}
