//! Multipliers of samples that the steps do not give, or not as they are reported.

use crate::least_norm::LeastNorm;
use crate::penalty::MeanMultipliers;

/// Multipliers as functions of a sample.
#[derive(Clone)]
pub(crate) enum SampleMultipliers {
    /// Those of a penalised run, whose samples do not contain any.
    Mean(MeanMultipliers),
    /// Those of least norm, of any that a sample contains.
    Least(LeastNorm),
}

impl SampleMultipliers {
    /// Length of the state.
    pub(crate) fn dimension(&self) -> usize {
        match self {
            SampleMultipliers::Mean(means) => means.dimension(),
            SampleMultipliers::Least(least) => least.dimension(),
        }
    }

    /// Number of multipliers.
    pub(crate) fn count(&self) -> usize {
        match self {
            SampleMultipliers::Mean(means) => means.count(),
            SampleMultipliers::Least(least) => least.count(),
        }
    }

    /// Copy in `lanes` lanes, all with the parameters of the first; `None` if there is none such.
    pub(crate) fn in_lanes(&self, lanes: usize) -> Option<SampleMultipliers> {
        Some(match self {
            SampleMultipliers::Mean(means) => SampleMultipliers::Mean(means.in_lanes(lanes)?),
            SampleMultipliers::Least(least) => SampleMultipliers::Least(least.in_lanes(lanes)),
        })
    }

    /// Set the parameters of one lane.
    pub(crate) fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        match self {
            SampleMultipliers::Mean(means) => means.rebind(lane, parameters),
            SampleMultipliers::Least(least) => least.rebind(lane, parameters),
        }
    }

    /// Put the multipliers at the time of every lane behind the states in `x`, in the `wanted`
    /// lanes.
    pub(crate) fn put(&self, t: &[f64], x: &mut [f64], wanted: impl Fn(usize) -> bool) {
        let (x, lambda) = x.split_at_mut(self.dimension() * t.len());
        match self {
            SampleMultipliers::Mean(means) => means.put(t, x, wanted, lambda),
            SampleMultipliers::Least(least) => least.put(t, x, wanted, lambda),
        }
    }
}

/// A sample with the multipliers that are reported; unchanged if it has them.
pub(crate) fn with_multipliers<'x>(
    multipliers: Option<&SampleMultipliers>,
    t: f64,
    x: &'x [f64],
    extended: &'x mut Vec<f64>,
) -> &'x [f64] {
    let Some(multipliers) = multipliers else { return x };
    extended.clear();
    extended.extend_from_slice(x);
    extended.resize(multipliers.dimension() + multipliers.count(), 0.0);
    multipliers.put(&[t], extended, |_| true);
    extended
}
