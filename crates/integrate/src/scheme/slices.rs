//! Explicit Runge–Kutta steps on slices, by a tableau.

use super::explicit_rk::{
    ExplicitStages, attempt, dense_stages, estimates, fixed_step, vector_count,
};
use super::map::{Allowance, Facts, NoStep, StepFrom, StepMap, Workspace};
use crate::space::{SliceSpace, Space};
use crate::system::System;
use crate::tableau::Tableau;
use crate::vector::combine;

/// Map that evaluates the tableau on slices, calling the system's field for every stage.
pub struct TableauMap<'a> {
    tableau: &'static Tableau,
    facts: Facts,
    system: &'a dyn System,
}

impl<'a> TableauMap<'a> {
    /// Map of these coefficients over `system`.
    pub fn new(tableau: &'static Tableau, system: &'a dyn System) -> TableauMap<'a> {
        TableauMap { tableau, facts: Facts::of_tableau(tableau), system }
    }
}

impl StepMap for TableauMap<'_> {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stability(&self) -> Option<f64> {
        Some(self.tableau.real_stability_interval())
    }

    fn vectors(&self) -> usize {
        vector_count(self.tableau)
    }

    fn work_len(&self) -> usize {
        self.system.work_len().max(self.tableau.stage_count())
    }

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        let mut space = SliceSpace::new(self.system, workspace.work);
        fixed_step(
            self.tableau,
            &mut space,
            step,
            &mut ExplicitStages::of(self.tableau, workspace.kept),
            x1,
        );
        workspace.cost.field += space.evaluations();
        Ok(())
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        let mut space = SliceSpace::new(self.system, &mut []);
        let mut stages = ExplicitStages::of(self.tableau, kept);
        match &self.tableau.lagged {
            Some(lagged) => space.weighted_sum(out, &lagged.weights, stages.k),
            None => estimates(self.tableau, &mut space, &mut stages),
        }
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let mut space = SliceSpace::new(self.system, workspace.work);
        attempt(
            self.tableau,
            &mut space,
            step,
            &mut ExplicitStages::of(self.tableau, workspace.kept),
            x1,
        );
        workspace.cost.field += space.evaluations();
        Allowance::NONE
    }

    fn prepare_interpolant(&self, step: StepFrom, workspace: &mut Workspace) {
        let Some(dense) = &self.tableau.dense else { return };
        let mut space = SliceSpace::new(self.system, workspace.work);
        dense_stages(
            self.tableau,
            dense,
            &mut space,
            step,
            &mut ExplicitStages::of(self.tableau, workspace.kept),
        );
        workspace.cost.field += space.evaluations();
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let dense =
            self.tableau.dense.as_ref().expect("a scheme with an error estimate has dense output");
        let stages = self.tableau.stage_count();
        let weights = &mut workspace.work[..stages];
        dense.weights(theta, weights);
        // The weights are polynomials, any of which may nearly vanish, so none can be used to scale
        // the others.
        combine(out, weights, &workspace.kept[..stages]);
        for (out, x) in out.iter_mut().zip(step.x) {
            *out = step.h.mul_add(*out, *x);
        }
    }
}
