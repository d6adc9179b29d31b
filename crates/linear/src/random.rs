//! Reproducible random numbers for tests.

/// Sequence of random numbers (the mixing generator of Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    /// Create a sequence of its own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Draw uniformly from (−1, 1).
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Draw from the standard normal distribution, but with tails that end at 6: a sum of twelve
    /// uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.draw()).sum::<f64>() / 2.0
    }
}
