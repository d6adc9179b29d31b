//! The result of a run in memory.

use crate::arrays::{Array, Arrays};
use crate::summary::Summary;
use std::ops::Index;

/// A run's result: what was recorded, by name, and how well it went.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Drifts, costs and warnings.
    pub summary: Summary,
    /// What was recorded at the samples.
    pub arrays: Arrays,
}

impl Solution {
    /// Times of the samples.
    pub fn times(&self) -> &[f64] {
        self.arrays.times()
    }
}

/// A recorded quantity by its name: `solution["q"]`.
impl Index<&str> for Solution {
    type Output = Array;

    /// # Panics
    /// If it was not recorded; [`Arrays::get`] asks.
    fn index(&self, name: &str) -> &Array {
        &self.arrays[name]
    }
}
