//! Kernels that compute an ensemble's trajectories side by side.

use super::Sweep;
use crate::kernels::{CompiledLanes, LaneBound, LaneQuantities, WideRates};
use crate::penalty::MeanMultipliers;
use crate::step::{ProgramBound, ProgramLanes, Start};
use holonome_integrate::ensemble::{self, LaneSystem, Trajectories};
use holonome_integrate::plan::{Plan, Stepping};

/// Steps in lanes, with the kernels that evaluate their states.
pub(super) struct SweepLanes {
    pub steps: LaneSteps,
    /// Recorded quantities.
    pub recorded: LaneQuantities,
    /// Measured quantities.
    pub measured: Option<LaneQuantities>,
    /// Multipliers of a penalised ensemble that records them.
    pub means: Option<MeanMultipliers>,
    /// Rates of the claims.
    pub rates: WideRates,
}

/// Steps in lanes.
pub(super) enum LaneSteps {
    /// Steps of a Runge–Kutta method.
    RungeKutta(Box<CompiledLanes>),
    /// Steps of another method.
    Structured(Box<ProgramLanes>),
}

/// Lanes that take up trajectories.
pub(super) trait TakesUp: LaneSystem {
    /// Lanes that all have these parameters: the model's, then the targets, then those of a
    /// treatment.
    fn bind(&self, parameters: &[f64]) -> Self::Bound;

    /// Bind one lane to its trajectory's parameters, and F₀ of every row.
    fn rebind(&self, bound: &mut Self::Bound, lane: usize, parameters: &[f64], targets: &[f64]);

    /// Run `plan` for all trajectories.
    fn run(
        &self,
        plan: &Plan,
        bound: &mut Self::Bound,
        trajectories: &mut dyn Trajectories<Self::Bound>,
    );

    /// Minimum number of constraints for which independence is followed from step to step.
    fn least_followed(&self) -> usize;
}

impl TakesUp for CompiledLanes {
    fn bind(&self, parameters: &[f64]) -> LaneBound {
        CompiledLanes::bind(self, parameters)
    }

    fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        CompiledLanes::rebind(self, bound, lane, parameters, targets);
    }

    fn run(
        &self,
        plan: &Plan,
        bound: &mut LaneBound,
        trajectories: &mut dyn Trajectories<LaneBound>,
    ) {
        match &plan.stepping {
            Stepping::Fixed(_) => ensemble::run_equal(plan, self, bound, trajectories),
            Stepping::Adaptive(_) => ensemble::run_adaptive(plan, self, bound, trajectories),
        }
    }

    fn least_followed(&self) -> usize {
        usize::MAX
    }
}

impl TakesUp for ProgramLanes {
    fn bind(&self, parameters: &[f64]) -> ProgramBound {
        ProgramLanes::bind(self, parameters)
    }

    fn rebind(&self, bound: &mut ProgramBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        ProgramLanes::rebind(self, bound, lane, parameters, targets);
    }

    fn run(
        &self,
        plan: &Plan,
        bound: &mut ProgramBound,
        trajectories: &mut dyn Trajectories<ProgramBound>,
    ) {
        ensemble::run_equal(plan, self, bound, trajectories);
    }

    fn least_followed(&self) -> usize {
        // As in a run of its own.
        3
    }
}

impl SweepLanes {
    /// Lanes of an ensemble, `lanes` of them; `None` if its plan or its model does not allow them.
    pub fn new(sweep: &Sweep, lanes: usize) -> Option<SweepLanes> {
        let simulation = &sweep.simulation;
        let plan = simulation.run_plan();
        let of = sweep.step_source()?;
        let steps = match &simulation.trajectory.program {
            Some(program) => {
                let model = &simulation.problem.model;
                let start = Start {
                    parameters: &model.parameter_values,
                    targets: &simulation.state().target[simulation.constraints..],
                    x: &model.initial,
                };
                let field = (of.field, &simulation.vectors);
                LaneSteps::Structured(Box::new(program.in_lanes(plan, field, &start, lanes)?))
            }
            None => LaneSteps::RungeKutta(Box::new(CompiledLanes::new(&of, lanes)?)),
        };
        let (recorded, measuring) = (&simulation.recorded, simulation.measuring.as_ref());
        let width = simulation.vectors.vectors.dim() + recorded.multipliers;
        let measured = measuring.map(|measuring| {
            LaneQuantities::new(&*measuring.kernel, (width, measuring.numbers), lanes)
        });
        let recorded = LaneQuantities::new(&*recorded.kernel, (width, recorded.outputs), lanes);
        let means = match simulation.recorded_means() {
            Some(means) => Some(means.in_lanes(lanes)?),
            None => None,
        };
        Some(SweepLanes {
            steps,
            recorded,
            measured,
            means,
            rates: simulation.trajectory.system.wide_rates(lanes)?,
        })
    }

    /// Number of trajectories computed at a time.
    pub fn count(&self) -> usize {
        match &self.steps {
            LaneSteps::RungeKutta(steps) => steps.lanes(),
            LaneSteps::Structured(steps) => steps.lanes(),
        }
    }
}
