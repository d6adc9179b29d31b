//! Result of a run in memory.

use crate::arrays::{Array, Arrays};
use crate::error::Error;
use crate::interpolant::Interpolant;
use crate::summary::Summary;
use holonome_words::option;
use std::ops::Index;

/// Result of a run: the recorded quantities by name, and a summary.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Drifts, costs and warnings.
    pub summary: Summary,
    /// Quantities recorded at the samples.
    pub arrays: Arrays,
    /// The run between its samples, if requested by
    /// [`RunOptions::interpolant`](crate::RunOptions::interpolant).
    pub interpolant: Option<Interpolant>,
}

impl Solution {
    /// Times of the samples.
    pub fn times(&self) -> &[f64] {
        self.arrays.times()
    }

    /// Recorded variables at these times, by name, one row each.
    ///
    /// # Errors
    /// If no interpolant was requested, or as [`Interpolant::at`].
    pub fn at(&self, times: &[f64]) -> Result<Arrays, Error> {
        match &self.interpolant {
            Some(interpolant) => interpolant.at(times),
            None => Err(Error::option(format!(
                "states between samples are not kept: run with {}, or a system of functions with more {}",
                option("interpolant"),
                option("samples")
            ))),
        }
    }
}

/// A recorded quantity by its name: `solution["q"]`.
impl Index<&str> for Solution {
    type Output = Array;

    /// # Panics
    /// If it was not recorded; [`Arrays::get`] returns `None` instead.
    fn index(&self, name: &str) -> &Array {
        &self.arrays[name]
    }
}
