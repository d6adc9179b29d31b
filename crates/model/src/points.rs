//! Reproducible points at which formulas of a model are tested.

/// Reproducible test points: a 64-bit mixing generator (Steele, Lea, Flood 2014), uniform on (−1,
/// 1).
pub struct Points(u64);

impl Points {
    /// A generator whose sequence depends on the seed.
    pub fn new(seed: u64) -> Points {
        Points(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
