//! The one-step map as the loop over time sees it: either the tableau on slices, or the same step compiled elsewhere.

use super::explicit_rk::{Stages, attempt, dense_stages, fixed_step};
use crate::controller::{Tolerance, error_norm};
use crate::space::SliceSpace;
use crate::system::{System, all_finite};
use crate::tableau::Tableau;

/// What an attempted step came to.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The error in units of the tolerance, NaN where x₁ is not finite.
    pub error: f64,
    /// How many evaluations of the field it took.
    pub evaluations: u64,
}

/// Where the result of an attempt goes.
pub struct Settled<'a> {
    /// The treated x₁.
    pub x: &'a mut [f64],
    /// F there.
    pub values: &'a mut [f64],
    /// The groups' deviations there.
    pub deviations: &'a mut [f64],
    /// The last stage, where it is the first of the next step unless the treatment moves x₁.
    pub last_stage: &'a mut [f64],
}

/// One-step map of an explicit Runge–Kutta scheme over a system; `work` is at least [`StepMap::work_len`] long.
#[allow(clippy::ptr_arg)] // vectors of the slice space are `Vec<f64>`
pub trait StepMap: Sync {
    /// The scheme's coefficients.
    fn tableau(&self) -> &'static Tableau;

    /// Length of the scratch it needs.
    fn work_len(&self) -> usize;

    /// Whether an attempt reads X(t, x) from `stages.k[0]`. A map that does not evaluates it itself.
    fn takes_first_stage(&self) -> bool {
        true
    }

    /// x₁ of a step without an error estimate, and how many evaluations of the field it took. `stages.k[0]` holds
    /// X(t, x) on entry.
    fn fixed_step(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> u64;

    /// Several whole steps of a run with equal steps at once, treatment and monitoring included, if this map can do
    /// that: see [`Blocks`].
    fn blocks(&self) -> Option<&dyn Blocks> {
        None
    }

    /// x₁ and its error; where the last stage is the first of the next step, also `stages.k[tableau.stages - 1]`. The
    /// other stages are the map's own until [`StepMap::dense_stages`], which follows only if `dense` is set.
    fn attempt(
        &self,
        t: f64,
        h: f64,
        x: &Vec<f64>,
        tolerance: Tolerance,
        dense: bool,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> Attempt;

    /// An attempt from t to t₁ together with what follows if it is accepted: the treatment of x₁, and F and the deviations
    /// there. The bits are those of [`StepMap::attempt`] and the treatment. `first` is X(t, x) where the map takes it. None
    /// where this map cannot.
    fn settled_attempt(
        &self,
        (_t, _t1): (f64, f64),
        _h: f64,
        _x: &[f64],
        _first: &[f64],
        _settled: &mut Settled,
        _work: &mut [f64],
    ) -> Option<Attempt> {
        None
    }

    /// After an attempt with the same (t, h, x), for dense output: leaves every stage in `stages.k`. The stage at the
    /// end of the step is there already. Gives the evaluations of the field.
    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64;
}

/// Equal steps in one go, for one run: its step, its start and its targets are known.
pub trait Blocks: Sync {
    /// Makes the steps of number `first` to `first + count` from `x`, which becomes the state at their end. `largest`
    /// receives, for every group of invariants, the largest deviation after any of these steps, NaN where it is one.
    fn steps(&self, first: u64, count: u64, x: &mut [f64], largest: &mut [f64], work: &mut [f64]);

    /// Evaluations of the field in one step.
    fn evaluations(&self) -> u64;

    /// Whether each step ends with a correction.
    fn corrects(&self) -> bool;
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
        tolerance: Tolerance,
        _dense: bool,
        stages: &mut Stages<Vec<f64>>,
        x1: &mut Vec<f64>,
        work: &mut [f64],
    ) -> Attempt {
        let mut space = SliceSpace::new(self.system, work);
        attempt(self.tableau, &mut space, t, h, x, stages, x1);
        let evaluations = space.evaluations();
        let finite = all_finite(x1);
        let error = if finite { error_norm(h, &stages.errors, x, x1, tolerance) } else { f64::NAN };
        Attempt { error, evaluations }
    }

    fn dense_stages(&self, t: f64, h: f64, x: &Vec<f64>, stages: &mut Stages<Vec<f64>>, work: &mut [f64]) -> u64 {
        let Some(dense) = &self.tableau.dense else { return 0 };
        let mut space = SliceSpace::new(self.system, work);
        dense_stages(self.tableau, dense, &mut space, t, h, x, stages);
        space.evaluations()
    }
}
