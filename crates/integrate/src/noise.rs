//! Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11).
//!
//! A draw is a function of (seed, trajectory, step, variable) and of nothing else: no state, so
//! results do not depend on threads, lanes or the order of evaluation, and a resumed run draws what
//! an uninterrupted one would have drawn.

/// Random number generator of one trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    key: [u32; 2],
    /// Upper half of the seed; it has no room in the key and takes the last word of the counter.
    seed_high: u32,
}

impl Noise {
    /// Generator of one stream; different (seed, trajectory) give independent streams.
    pub fn new(seed: u64, trajectory: u32) -> Noise {
        Noise { key: [seed as u32, trajectory], seed_high: (seed >> 32) as u32 }
    }

    /// Uniform in the open interval (0, 1), with 53 random bits.
    pub fn uniform(&self, step: u64, variable: u32) -> f64 {
        self.uniform_pair(step, variable).0
    }

    /// Standard normal, by Box and Muller's √(−2 ln u) cos(2πv).
    pub fn normal(&self, step: u64, variable: u32) -> f64 {
        Noise::normal_of(self.uniform_pair(step, variable))
    }

    /// Standard normal from two independent uniform numbers.
    pub fn normal_of((u, v): (f64, f64)) -> f64 {
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Two independent uniform numbers.
    pub fn uniform_pair(&self, step: u64, variable: u32) -> (f64, f64) {
        Noise::side_by_side::<1>(&[*self], &[step], variable)[0]
    }

    /// [`Noise::uniform_pair`] of up to [`STREAMS`] streams, each at a step of its own.
    pub fn uniform_pairs(streams: &[Noise], steps: &[u64], variable: u32) -> [(f64, f64); STREAMS] {
        let mut pairs = [(0.0, 0.0); STREAMS];
        match streams.len() {
            1 => pairs[..1].copy_from_slice(&Noise::side_by_side::<1>(streams, steps, variable)),
            2..=4 => {
                pairs[..4].copy_from_slice(&Noise::side_by_side::<4>(streams, steps, variable))
            }
            _ => pairs.copy_from_slice(&Noise::side_by_side::<STREAMS>(streams, steps, variable)),
        }
        pairs
    }

    fn side_by_side<const N: usize>(
        streams: &[Noise],
        steps: &[u64],
        variable: u32,
    ) -> [(f64, f64); N] {
        let (mut counter, mut key) = ([[0; N], [0; N], [variable; N], [0; N]], [[0; N]; 2]);
        for (k, (stream, &step)) in streams.iter().zip(steps).enumerate() {
            (counter[0][k], counter[1][k], counter[3][k]) =
                (step as u32, (step >> 32) as u32, stream.seed_high);
            (key[0][k], key[1][k]) = (stream.key[0], stream.key[1]);
        }
        let [a, b, c, d] = philox_side_by_side(counter, key);
        std::array::from_fn(|k| (open_unit(a[k], b[k]), open_unit(c[k], d[k])))
    }
}

/// Number of streams whose numbers are computed together.
pub const STREAMS: usize = 8;

/// k·2⁻⁵³ from the upper 53 bits k of two words; 0, which has half a cell, becomes 2⁻⁵⁴.
fn open_unit(low: u32, high: u32) -> f64 {
    const CELL: f64 = 1.0 / (1u64 << 53) as f64;
    let k = (u64::from(high) << 32 | u64::from(low)) >> 11;
    // Below 2⁵³ the conversion of a signed number gives the same result, and is faster.
    if k == 0 { 0.5 * CELL } else { k as i64 as f64 * CELL }
}

/// Ten rounds of Philox4x32.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    philox_side_by_side(counter.map(|word| [word]), key.map(|word| [word])).map(|[word]| word)
}

/// [`philox`] of several counters, computed together in vectors.
fn philox_side_by_side<const N: usize>(
    mut counter: [[u32; N]; 4],
    mut key: [[u32; N]; 2],
) -> [[u32; N]; 4] {
    const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85]; // the golden ratio and √3 − 1
    for _ in 0..10 {
        for k in 0..N {
            let product = |i: usize| u64::from(MULTIPLIERS[i]) * u64::from(counter[2 * i][k]);
            let (p0, p1) = (product(0), product(1));
            counter[0][k] = (p1 >> 32) as u32 ^ counter[1][k] ^ key[0][k];
            counter[1][k] = p1 as u32;
            counter[2][k] = (p0 >> 32) as u32 ^ counter[3][k] ^ key[1][k];
            counter[3][k] = p0 as u32;
            key[0][k] = key[0][k].wrapping_add(WEYL[0]);
            key[1][k] = key[1][k].wrapping_add(WEYL[1]);
        }
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        // `kat_vectors` of Random123 1.09, philox4x32 10.
        let ones = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([ones; 4], [ones; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn every_argument_changes_the_draw() {
        let draw =
            |seed, trajectory, step, variable| Noise::new(seed, trajectory).uniform(step, variable);
        let base = draw(1, 2, 3, 4);
        for other in [
            draw(0, 2, 3, 4),
            draw(1 | 1 << 32, 2, 3, 4),
            draw(1, 0, 3, 4),
            draw(1, 2, 0, 4),
            draw(1, 2, 3 | 1 << 32, 4),
            draw(1, 2, 3, 0),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn streams_side_by_side_are_those_alone() {
        let streams: Vec<Noise> =
            (0..8).map(|trajectory| Noise::new(9 + (3 << 32), trajectory)).collect();
        let steps: Vec<u64> = (0..8).map(|k| k << (4 * k)).collect();
        for count in 1..=8 {
            let pairs = Noise::uniform_pairs(&streams[..count], &steps[..count], 5);
            for ((pair, stream), &step) in pairs.iter().zip(&streams[..count]).zip(&steps) {
                assert_eq!(*pair, stream.uniform_pair(step, 5));
            }
        }
    }

    #[test]
    fn the_interval_is_open() {
        assert_eq!(open_unit(0, 0), 2f64.powi(-54));
        assert_eq!(open_unit(u32::MAX, u32::MAX), 1.0 - 2f64.powi(-53));
        assert!(((-2.0 * open_unit(0, 0).ln()).sqrt()).is_finite());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let (noise, n) = (Noise::new(7, 0), 100_000u64);
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        // Five standard deviations of a mean over n draws: 5·σ/√n. The draws are fixed, so this
        // cannot flicker.
        let within = |found: f64, exact: f64, sigma: f64| {
            (found - exact).abs() < 5.0 * sigma / (n as f64).sqrt()
        };
        assert!(within(mean(&|i| noise.uniform(i, 0)), 0.5, (1.0f64 / 12.0).sqrt()));
        assert!(within(mean(&|i| noise.normal(i, 0)), 0.0, 1.0));
        assert!(within(mean(&|i| noise.normal(i, 0).powi(2)), 1.0, 2f64.sqrt()));
        assert!(within(mean(&|i| noise.normal(i, 0).powi(4)), 3.0, 96f64.sqrt()));
        assert!(within(mean(&|i| noise.normal(i, 0) * noise.normal(i, 1)), 0.0, 1.0));
    }
}
