//! Trends of invariants: secular growth along a run, as opposed to oscillation or random walk.
//!
//! A least-squares line through the samples always has a slope; neither an oscillation nor the
//! random walk of roundings makes it zero. The slope's usual standard error is far too small, as
//! the deviations of successive samples are not independent. A growth is secular if it passes two
//! tests.
//!
//! - It is steady: the means over tenths of the run all rise, or all fall. A random walk does so in
//!   about one of a hundred cases.
//! - It exceeds what the oscillation can cause. k periods of a sine with amplitude a tilt the line
//!   by up to 6a/(πk) over the run. If a tenth of the run is nearly a whole number of periods, the
//!   means creep one way.
//!
//! An oscillation with a period of more than twice the run passes both; nothing in the run
//! distinguishes it from growth.

use super::trial::Samples;
use crate::serial::number_or_nan;
use holonome_model::treatment::InvariantGroup;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Trend of an invariant over a run; for one with components, trend of the component that grows
/// most.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Trend {
    /// Slope of the least-squares line through the deviations, signed.
    #[serde(deserialize_with = "number_or_nan")]
    pub slope: f64,
    /// Slope times the length of the run.
    #[serde(deserialize_with = "number_or_nan")]
    pub growth: f64,
    /// Half the range of the residues of the line.
    #[serde(deserialize_with = "number_or_nan")]
    pub oscillation: f64,
    /// True if the growth is steady, and exceeds what the oscillation can cause.
    pub secular: bool,
}

const BLOCKS: usize = 10;

impl Trend {
    /// Trend of a group of invariants; `None` if a tenth has fewer than two samples.
    pub(super) fn of(group: &InvariantGroup, samples: &Samples) -> Option<Trend> {
        let rows = group.members.rows().map(|(row, _)| row);
        rows.filter_map(|row| {
            let values: Vec<f64> =
                samples.deviations.iter().map(|deviations| deviations[row]).collect();
            Trend::of_values(&samples.t, &values)
        })
        .max_by(|a, b| a.growth.abs().total_cmp(&b.growth.abs()))
    }

    fn of_values(t: &[f64], values: &[f64]) -> Option<Trend> {
        let n = t.len();
        if n < 2 * BLOCKS {
            return None;
        }
        let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
        let (t_mean, v_mean) = (mean(t), mean(values));
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (t, v) in t.iter().zip(values) {
            covariance += (t - t_mean) * (v - v_mean);
            variance += (t - t_mean) * (t - t_mean);
        }
        let slope = covariance / variance;
        let growth = slope * (t[n - 1] - t[0]);
        let residues: Vec<f64> =
            t.iter().zip(values).map(|(t, v)| v - v_mean - slope * (t - t_mean)).collect();
        let (low, high) =
            residues.iter().fold((f64::MAX, f64::MIN), |(low, high), r| (r.min(low), r.max(high)));
        let oscillation = (high - low) / 2.0;
        let crossings =
            residues.windows(2).filter(|pair| (pair[0] > 0.0) != (pair[1] > 0.0)).count();
        // A curve without an oscillation crosses its line at most twice, which is not a period.
        let periods = crossings as f64 / 2.0;
        let pretended = if periods > 1.0 { 6.0 * oscillation / (PI * periods) } else { 0.0 };
        let means: Vec<f64> =
            (0..BLOCKS).map(|k| mean(&values[k * n / BLOCKS..(k + 1) * n / BLOCKS])).collect();
        let steady = means.is_sorted_by(|a, b| a < b) || means.is_sorted_by(|a, b| a > b);
        Some(Trend { slope, growth, oscillation, secular: steady && growth.abs() > pretended })
    }
}

#[cfg(test)]
mod tests {
    use super::Trend;
    use holonome_integrate::noise::Noise;

    /// Trend of `value` of t on 1001 samples of [0, 100].
    fn trend(value: impl FnMut(f64) -> f64) -> Trend {
        let t: Vec<f64> = (0..=1000).map(|i| f64::from(i) * 0.1).collect();
        let values: Vec<f64> = t.iter().copied().map(value).collect();
        Trend::of_values(&t, &values).unwrap()
    }

    #[test]
    fn a_line_below_an_oscillation_is_found() {
        // Ten periods of amplitude 1 and a growth of 3: an oscillation with k whole periods adds
        // 6/(πk) = 0.19 to the growth of the line at most, and leaves means over tenths at 0.
        let found = trend(|t| 0.03 * t + (t * std::f64::consts::TAU / 10.0).sin());
        assert!(found.secular && (found.growth - 3.0).abs() < 0.2, "{found:?}");
        assert!((found.slope * 100.0 - found.growth).abs() < 1e-12);
        assert!(
            (found.oscillation - 1.0).abs() < 0.1,
            "half the range is the amplitude: {found:?}"
        );
        assert!(trend(|t| -1e-3 * t * t).secular, "growth need not be linear, nor upwards");
    }

    #[test]
    fn oscillations_and_transients_are_no_trends() {
        for periods in [1.5, 3.0, 7.3, 40.0] {
            let found = trend(|t| (t * std::f64::consts::TAU * periods / 100.0).sin());
            assert!(!found.secular, "{periods}: {found:?}");
        }
        // Tenths that are nearly whole periods: their means creep one way, but this is not growth.
        for periods in [9.99, 10.01, 20.01, 30.02] {
            let found = trend(|t| (t * std::f64::consts::TAU * periods / 100.0).sin());
            assert!(!found.secular, "{periods}: {found:?}");
        }
        // Typical of feedback: a rise at the start to a level that is kept.
        assert!(!trend(|t| 1.0 - (-t).exp() + 0.01 * (3.0 * t).sin()).secular);
        assert!(!trend(|_| 0.0).secular);
    }

    #[test]
    fn a_random_walk_is_rarely_taken_for_a_trend() {
        let walks = 1000;
        let taken = (0..walks).filter(|&k| {
            let noise = Noise::new(7, k);
            let (mut sum, mut count) = (0.0, 0);
            trend(|_| {
                count += 1;
                sum += noise.normal(count, 0);
                sum
            })
            .secular
        });
        // Nine steps between ten means of a random walk go one way in 1.4 % of all cases
        // (neighbouring steps have the correlation 1/4); the count of a thousand has the standard
        // deviation 3.7, and five of these are allowed.
        let taken = taken.count();
        assert!(taken < 33, "{taken} of {walks}");
    }
}
