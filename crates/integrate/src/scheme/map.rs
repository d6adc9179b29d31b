//! The one-step map as the loop over time sees it: either the tableau on slices, or the same step compiled elsewhere.

use super::explicit_rk::{Stages, attempt, dense_stages, fixed_step};
use crate::space::SliceSpace;
use crate::system::System;
use crate::tableau::Tableau;

/// One-step map of an explicit Runge–Kutta scheme over a system. In every function `stages.k[0]` holds X(t, x) on
/// entry, `work` is at least [`StepMap::work_len`] long, and the result is how many evaluations of the field it took.
#[allow(clippy::ptr_arg)] // vectors of the slice space are `Vec<f64>`
pub trait StepMap: Sync {
    /// The scheme's coefficients.
    fn tableau(&self) -> &'static Tableau;

    /// Length of the scratch it needs.
    fn work_len(&self) -> usize;

    /// x₁ of a step without an error estimate.
    fn fixed_step(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> u64;

    /// x₁ and the error estimates Σ e_i k_i; where the last stage is the first of the next step, also
    /// `stages.k[tableau.stages - 1]`. The other stages are the map's own until [`StepMap::dense_stages`].
    fn attempt(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        errors: &mut [Vec<f64>],
        work: &mut [f64],
    ) -> u64;

    /// After an attempt with the same (t, h, x), for dense output: leaves every stage in `stages.k`. The stage at the
    /// end of the step is there already.
    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64;
}

/// The map that evaluates the tableau on slices, calling the system's field for every stage.
pub struct TableauMap<'a> {
    tableau: &'static Tableau,
    system: &'a dyn System,
}

impl<'a> TableauMap<'a> {
    /// The scheme of these coefficients over `system`.
    pub fn new(tableau: &'static Tableau, system: &'a dyn System) -> TableauMap<'a> {
        TableauMap { tableau, system }
    }
}

impl StepMap for TableauMap<'_> {
    fn tableau(&self) -> &'static Tableau {
        self.tableau
    }

    fn work_len(&self) -> usize {
        self.system.work_len()
    }

    fn fixed_step(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> u64 {
        let mut space = SliceSpace::new(self.system, work);
        fixed_step(self.tableau, &mut space, t, h, x, stages, x1);
        space.evaluations()
    }

    fn attempt(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        errors: &mut [Vec<f64>],
        work: &mut [f64],
    ) -> u64 {
        let mut space = SliceSpace::new(self.system, work);
        attempt(self.tableau, &mut space, t, h, x, stages, x1, errors);
        space.evaluations()
    }

    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64 {
        let Some(dense) = &self.tableau.dense else { return 0 };
        let mut space = SliceSpace::new(self.system, work);
        dense_stages(self.tableau, dense, &mut space, t, h, x, stages);
        space.evaluations()
    }
}
