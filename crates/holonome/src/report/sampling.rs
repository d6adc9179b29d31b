//! Judgement whether the samples of a run follow its motion.
//!
//! Between two samples that follow a motion it goes about as its rates at both tell: x₁ − x₀ is near
//! h (x₀' + x₁')/2, for an oscillation whose phase advances by φ to a part φ²/12. Samples many
//! periods apart differ by something else. Nothing is to be drawn between them.

use super::states::States;
use crate::error::Error;
use crate::problem::Problem;
use crate::simulation::VectorField;
use crate::store::StoredRun;
use holonome_model::elaborate::model::Model;
use std::f64::consts::TAU;

/// Part of the way along a motion by which samples may miss it: 0.3 at a third of a period.
const LARGEST_MISS: f64 = 0.3;

/// Least part of the way that the rates tell which samples have to go, in the mean.
const LEAST_WAY: f64 = 0.3;

/// Number of pairs of samples that are judged.
const PAIRS: usize = 120;

/// Length of a state beyond which nothing is judged.
const LARGEST: usize = 20_000;

/// How samples follow the motion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sampling {
    /// Periods between neighbours that are unrelated, about; `None` if samples follow the motion.
    periods: Option<f64>,
}

impl Sampling {
    /// True if samples follow the motion, so that lines between them do too.
    pub fn follows(&self) -> bool {
        self.periods.is_none()
    }

    /// What has to be said of samples that do not.
    pub fn note(&self) -> Option<String> {
        let periods = self.periods?;
        let apart = match periods.round() {
            ..=1.0 => "about a period".to_string(),
            periods => format!("about {periods} periods"),
        };
        Some(format!("Samples are {apart} apart: the motion shown is stroboscopic."))
    }
}

/// States of a run and the rates there.
pub(super) struct Rates {
    field: VectorField,
    states: States,
    times: Vec<f64>,
    samples: usize,
}

impl Rates {
    /// Rates of a run of a problem; `None` if variables are not recorded, or there is no field, or
    /// noise moves them too.
    pub fn new(run: &StoredRun, problem: &Problem) -> Result<Option<Rates>, Error> {
        let model: &Model = &problem.model;
        let options = run.attributes().get("options");
        let noisy = options.is_some_and(|options| !options["inverse_temperature"].is_null());
        if noisy || model.dimension() > LARGEST || run.samples() < 2 {
            return Ok(None);
        }
        let Some(states) = States::of(run, model)? else { return Ok(None) };
        let Ok(field) = VectorField::new(problem.clone()) else { return Ok(None) };
        let times = run.times().map_err(Error::store)?;
        Ok(Some(Rates { field, states, times, samples: run.samples() }))
    }

    /// State of a sample, and its rate.
    fn at(&mut self, sample: usize) -> Result<[Vec<f64>; 2], Error> {
        let x = self.states.at(sample)?;
        let mut rate = vec![0.0; x.len()];
        self.field.put(self.times[sample], &x, &mut rate);
        Ok([x, rate])
    }

    /// How every `stride`-th sample follows the motion.
    pub fn sampling(&mut self, stride: usize) -> Result<Sampling, Error> {
        let gaps = (self.samples - 1) / stride.max(1);
        let count = gaps.min(PAIRS);
        let mut families: Vec<Family> =
            self.states.variables().map(|(first, len)| Family::new(first, len)).collect();
        let mut all_gaps = 0.0;
        for k in 0..count {
            let first = k * gaps / count * stride;
            let (before, behind) = (self.at(first)?, self.at(first + stride)?);
            let h = self.times[first + stride] - self.times[first];
            all_gaps += h.abs();
            families.iter_mut().for_each(|family| family.take(h, &before, &behind));
        }
        let mean = all_gaps / count.max(1) as f64;
        // The slowest of them tells how far apart the samples are.
        let periods = families.iter().filter_map(|family| family.periods(mean));
        Ok(Sampling { periods: periods.reduce(f64::min) })
    }
}

/// Members of a variable in pairs of samples.
struct Family {
    first: usize,
    len: usize,
    /// For each pair that moves, the miss of its way, and the way, as parts of what the rates tell.
    misses: Vec<f64>,
    ways: Vec<f64>,
    /// Sums over samples: number, of each component, of squares, of squares of rates.
    count: f64,
    sum: Vec<f64>,
    square: f64,
    rates: f64,
}

impl Family {
    fn new(first: usize, len: usize) -> Family {
        let sum = vec![0.0; len];
        let (misses, ways) = (Vec::new(), Vec::new());
        Family { first, len, misses, ways, count: 0.0, sum, square: 0.0, rates: 0.0 }
    }

    fn take(&mut self, h: f64, before: &[Vec<f64>; 2], behind: &[Vec<f64>; 2]) {
        let part = |of: &[Vec<f64>; 2], which: usize| -> Vec<f64> {
            of[which][self.first..self.first + self.len].to_vec()
        };
        let ([x, rate], [y, next]) =
            ([part(before, 0), part(before, 1)], [part(behind, 0), part(behind, 1)]);
        let square = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>();
        let way = h.abs() * (size(&rate) + size(&next)) / 2.0;
        let mut missed = (0..self.len).map(|k| y[k] - x[k] - h * (rate[k] + next[k]) / 2.0);
        let missed = square(&mut missed).sqrt();
        // What moves by rounding only tells nothing.
        if way > 1e-9 * (size(&x) + size(&y)) && missed.is_finite() {
            self.misses.push(missed / way);
            let went = square(&mut (0..self.len).map(|k| y[k] - x[k])).sqrt();
            self.ways.push(went / way);
        }
        self.count += 1.0;
        self.sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += x);
        self.square += square(&mut x.iter().copied());
        self.rates += square(&mut rate.iter().copied());
    }

    /// Periods in a gap of this length, if most gaps miss the motion.
    fn periods(&self, gap: f64) -> Option<f64> {
        let median = |of: &[f64]| {
            let mut sorted = of.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied()
        };
        // Half a period and many whole ones apart rates cancel, and the way tells.
        if median(&self.misses)? <= LARGEST_MISS && median(&self.ways)? >= LEAST_WAY {
            return None;
        }
        // An oscillation of frequency ω has ω² as the mean square of its rates over its variance.
        let mean = self.sum.iter().map(|sum| (sum / self.count).powi(2)).sum::<f64>();
        let variance = self.square / self.count - mean;
        let frequency = (self.rates / self.count / variance.max(f64::MIN_POSITIVE)).sqrt();
        Some(gap * frequency / TAU)
    }
}

fn size(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sampling of an oscillator with period 1 whose samples are `gap` apart.
    fn of_oscillator(gap: f64) -> Sampling {
        let mut family = Family::new(0, 1);
        let at = |t: f64| {
            let phase = TAU * t;
            [vec![3.0 + phase.cos()], vec![-TAU * phase.sin()]]
        };
        for k in 0..100 {
            let t = 0.1234 + k as f64 * gap;
            family.take(gap, &at(t), &at(t + gap));
        }
        Sampling { periods: family.periods(gap) }
    }

    #[test]
    fn samples_follow_an_oscillation_up_to_a_quarter_of_its_period() {
        for gap in [1e-3, 0.01, 0.1, 0.25] {
            assert!(of_oscillator(gap).follows(), "{gap}");
        }
        for gap in [0.45, 1.01, 15.8, 1234.5] {
            let found = of_oscillator(gap).periods.expect("unrelated");
            // The mean of 100 squares of sines.
            assert!((found / gap - 1.0).abs() < 0.1, "{gap}: {found}");
        }
        let note = of_oscillator(15.8).note().unwrap();
        assert_eq!(note, "Samples are about 16 periods apart: the motion shown is stroboscopic.");
    }
}
