//! Averages over samples that come one by one, with the standard errors that correlated samples
//! leave.
//!
//! An observer accumulates them in the [state](crate::state::StepState) of a run, which carries,
//! stores and resumes them; stored samples are averaged by the same code.

use crate::exact;
use serde::{Deserialize, Serialize};

/// A mean over samples that are correlated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Standard error; NaN if there are too few samples to tell.
    pub error: f64,
    /// Number of independent samples with the same standard error.
    pub independent: f64,
}

/// Number of blocks below which their spread says little; number of trajectories from which on the
/// spread of their means suffices.
const FEWEST_BLOCKS: u64 = 32;

/// Block averages of samples of several numbers: their means and the errors of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockAverages {
    /// Blocks of one sample, of two, of four and so on.
    levels: Vec<Level>,
}

/// Blocks of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Level {
    count: u64,
    #[serde(with = "exact::list")]
    mean: Vec<f64>,
    /// Sums of the squares of deviations from the mean.
    #[serde(with = "exact::list")]
    squares: Vec<f64>,
    /// First block of a pair; empty if the last pair is complete.
    #[serde(with = "exact::list")]
    half: Vec<f64>,
}

impl Level {
    /// Standard error of mean `k` of independent blocks.
    fn error(&self, k: usize) -> f64 {
        let count = self.count as f64;
        (self.squares[k] / (count * (count - 1.0))).sqrt()
    }
}

impl BlockAverages {
    /// Add a sample; `numbers` is overwritten and holds nothing of use afterwards.
    pub fn push(&mut self, numbers: &mut [f64]) {
        for level in 0.. {
            if level == self.levels.len() {
                let zeros = vec![0.0; numbers.len()];
                self.levels.push(Level {
                    count: 0,
                    mean: zeros.clone(),
                    squares: zeros,
                    half: Vec::new(),
                });
            }
            let level = &mut self.levels[level];
            level.count += 1;
            let count = level.count as f64;
            for ((mean, squares), &number) in
                level.mean.iter_mut().zip(&mut level.squares).zip(&*numbers)
            {
                let deviation = number - *mean;
                *mean += deviation / count;
                *squares += deviation * (number - *mean);
            }
            if level.half.is_empty() {
                level.half.extend_from_slice(numbers);
                return;
            }
            numbers
                .iter_mut()
                .zip(&level.half)
                .for_each(|(number, half)| *number = 0.5 * (half + *number));
            level.half.clear();
        }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.levels.first().map_or(0, |level| level.count)
    }

    /// Means of the numbers; empty if there are no samples.
    pub fn means(&self) -> &[f64] {
        self.levels.first().map_or(&[], |level| &level.mean)
    }

    /// Standard error of mean `k`: that of the shortest blocks which no longer blocks exceed by
    /// more than the uncertainty of their own error (Flyvbjerg, Petersen, J. Chem. Phys. 91 (1989)
    /// 461).
    fn error(&self, k: usize) -> f64 {
        let mut error = f64::NAN;
        for level in self.levels.iter().take_while(|level| level.count >= FEWEST_BLOCKS) {
            let (next, known) = (level.error(k), (2.0 * (level.count as f64 - 1.0)).sqrt().recip());
            if error.is_nan() || next > error * (1.0 + known) {
                error = next;
            }
        }
        error
    }

    /// Mean `k` over the samples of independent trajectories. Its error follows from the spread of
    /// the trajectories' means if there are many, otherwise from blocks of samples.
    pub fn mean(trajectories: &[&BlockAverages], k: usize) -> Mean {
        let mut of_means = BlockAverages::default();
        trajectories.iter().for_each(|one| of_means.push(&mut [one.levels[0].mean[k]]));
        let Some(means) = of_means.levels.first() else {
            return Mean { value: f64::NAN, error: f64::NAN, independent: f64::NAN };
        };
        let (value, count) = (means.mean[0], trajectories.len() as f64);
        let error = match means.count >= FEWEST_BLOCKS {
            true => means.error(0),
            false => {
                trajectories.iter().map(|one| one.error(k).powi(2)).sum::<f64>().sqrt() / count
            }
        };
        let all = || trajectories.iter().map(|one| &one.levels[0]);
        let squares: f64 = all()
            .map(|level| level.squares[k] + level.count as f64 * (level.mean[k] - value).powi(2))
            .sum();
        let variance = squares / all().map(|level| level.count as f64).sum::<f64>();
        Mean { value, error, independent: variance / (error * error) }
    }
}

/// Means and spreads of independent numbers, of which parts can be joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    #[serde(with = "exact::list")]
    mean: Vec<f64>,
    /// Sums of the squares of deviations from the mean.
    #[serde(with = "exact::list")]
    squares: Vec<f64>,
}

impl Moments {
    /// Add a sample of several numbers.
    pub fn push(&mut self, numbers: &[f64]) {
        self.mean.resize(numbers.len(), 0.0);
        self.squares.resize(numbers.len(), 0.0);
        self.count += 1;
        let count = self.count as f64;
        for ((mean, squares), &number) in self.mean.iter_mut().zip(&mut self.squares).zip(numbers) {
            let deviation = number - *mean;
            *mean += deviation / count;
            *squares += deviation * (number - *mean);
        }
    }

    /// Add later samples (Chan, Golub, LeVeque, The American Statistician 37 (1983) 242).
    pub fn join(&mut self, later: &Moments) {
        if self.count == 0 || later.count == 0 {
            if self.count == 0 {
                self.clone_from(later);
            }
            return;
        }
        let (own, other) = (self.count as f64, later.count as f64);
        let all = own + other;
        let others = later.mean.iter().zip(&later.squares);
        for ((mean, squares), (new, more)) in
            self.mean.iter_mut().zip(&mut self.squares).zip(others)
        {
            let deviation = new - *mean;
            *mean += deviation * (other / all);
            *squares += more + deviation * deviation * (own * (other / all));
        }
        self.count += later.count;
    }

    /// Mean of number `k`, with its standard error.
    pub fn mean(&self, k: usize) -> Mean {
        let Some(&value) = self.mean.get(k) else {
            return Mean { value: f64::NAN, error: f64::NAN, independent: 0.0 };
        };
        let count = self.count as f64;
        let error = match self.count {
            0 | 1 => f64::NAN,
            _ => (self.squares[k] / (count * (count - 1.0))).sqrt(),
        };
        Mean { value, error, independent: count }
    }
}

/// Number of samples per level of a correlation.
const LAGS: usize = 16;

/// Functions of two samples over the time between them: at lags 0 to 15 of every sample, 16 to 30
/// of every second one, 32 to 60 of every fourth one and so on (Frenkel, Smit, Understanding
/// Molecular Simulation, 4.4.2), so that memory grows with the logarithm of their number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lagged {
    levels: Vec<LagLevel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct LagLevel {
    /// Number of samples that reached this level.
    count: u64,
    /// The last [`LAGS`] of them, as a ring.
    #[serde(with = "exact::list")]
    ring: Vec<f64>,
    /// Functions of two samples, for each lag.
    products: Vec<BlockAverages>,
}

impl Lagged {
    /// Add a sample; `of` is the function of an earlier and a later one.
    pub fn push(&mut self, sample: &[f64], of: impl Fn(&[f64], &[f64]) -> f64) {
        for level in 0.. {
            if level == self.levels.len() {
                let (ring, products) =
                    (vec![0.0; LAGS * sample.len()], vec![BlockAverages::default(); LAGS]);
                self.levels.push(LagLevel { count: 0, ring, products });
            }
            let LagLevel { count, ring, products } = &mut self.levels[level];
            let width = sample.len();
            let place = |number: u64| (number % LAGS as u64) as usize * width;
            ring[place(*count)..][..width].copy_from_slice(sample);
            // The level below has the shorter lags.
            let shortest = if level == 0 { 0 } else { LAGS / 2 };
            for lag in shortest..LAGS.min(*count as usize + 1) {
                let earlier = &ring[place(*count - lag as u64)..][..width];
                products[lag].push(&mut [of(earlier, sample)]);
            }
            *count += 1;
            // Every second sample goes to the next level, beginning with the second one, so each
            // push ends.
            if *count % 2 == 1 {
                return;
            }
        }
    }

    /// Lags that have values, in samples, with these values.
    pub fn lags(&self) -> impl Iterator<Item = (u64, &BlockAverages)> {
        self.levels.iter().enumerate().flat_map(|(level, of_level)| {
            let products =
                of_level.products.iter().enumerate().filter(|(_, products)| products.count() > 0);
            products.map(move |(lag, products)| ((lag as u64) << level, products))
        })
    }

    /// Lags up to half of the number of samples, in samples.
    pub fn lags_of(samples: u64) -> Vec<u64> {
        let of_level = |level: u32| {
            let shortest = if level == 0 { 0 } else { LAGS as u64 / 2 };
            (shortest..LAGS as u64).map(move |lag| lag << level)
        };
        (0..64 - LAGS.ilog2()).flat_map(of_level).take_while(|lag| *lag <= samples / 2).collect()
    }
}

/// Accumulated averages of one quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Averages {
    /// Means of numbers.
    pub blocks: BlockAverages,
    /// Functions of two samples.
    pub lagged: Lagged,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    fn blocks(numbers: impl IntoIterator<Item = f64>) -> BlockAverages {
        let mut blocks = BlockAverages::default();
        numbers.into_iter().for_each(|number| blocks.push(&mut [number]));
        blocks
    }

    #[test]
    fn errors_are_those_of_correlated_samples() {
        // x' = c x + √(1 − c²) ξ has the variance 1 and a mean whose variance is (1 + c)/(1 − c)/n.
        let (noise, n) = (Noise::new(3, 0), 1 << 18);
        for c in [0.0f64, 0.5, 0.9] {
            let mut x = 0.0;
            let series = blocks((0..n).map(|k| {
                x = c * x + (1.0 - c * c).sqrt() * noise.normal(k, 0);
                x
            }));
            let mean = BlockAverages::mean(&[&series], 0);
            let expected = ((1.0 + c) / (1.0 - c) / n as f64).sqrt();
            assert!((mean.error / expected - 1.0).abs() < 0.15, "{c}: {} {expected}", mean.error);
            assert!(mean.value.abs() < 4.0 * expected);
            assert!(
                (mean.independent * expected * expected - 1.0).abs() < 0.4,
                "{}",
                mean.independent
            );
        }
        // Trajectories of one number each.
        let alone: Vec<BlockAverages> = (0..10_000).map(|k| blocks([noise.normal(k, 1)])).collect();
        assert!(
            (BlockAverages::mean(&alone.iter().collect::<Vec<_>>(), 0).error * 100.0 - 1.0).abs()
                < 0.05
        );
        assert!(
            BlockAverages::mean(&[&blocks((0..31).map(f64::from))], 0).error.is_nan(),
            "too few to tell"
        );
    }

    #[test]
    fn lags_are_those_of_all_levels_and_as_many_as_counted() {
        for samples in [1u64, 2, 3, 31, 32, 33, 100, 1000] {
            let mut lagged = Lagged::default();
            (0..samples)
                .for_each(|k| lagged.push(&[k as f64], |earlier, later| later[0] - earlier[0]));
            let kept: Vec<u64> =
                lagged.lags().map(|(lag, _)| lag).filter(|lag| *lag <= samples / 2).collect();
            assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "{kept:?}");
            assert_eq!(kept, Lagged::lags_of(samples), "{samples}");
            assert!(
                kept.last().copied().unwrap_or(0) * 8 >= (samples / 2) * 7 || samples < 32,
                "{samples}: {kept:?}"
            );
            for (lag, found) in lagged.lags() {
                assert_eq!(
                    found.means(),
                    [lag as f64],
                    "the difference of two numbers so far apart"
                );
            }
        }
    }
}
