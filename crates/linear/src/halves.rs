//! Numbers side by side that become one.

/// Joins them by halves, as joining one after the other would wait for each.
#[inline(always)]
pub fn by_halves([a, b, c, d, e, f, g, h]: [f64; 8], join: impl Fn(f64, f64) -> f64) -> f64 {
    join(join(join(a, e), join(c, g)), join(join(b, f), join(d, h)))
}
