//! Kernels that compute an ensemble's trajectories side by side.

use super::Sweep;
use crate::kernels::{CompiledLanes, LaneQuantities, WideBound, WideRates};
use crate::recording::SampleMultipliers;
use crate::starts::StartLanes;
use crate::step::{ProgramLanes, Start};
use holonome_integrate::ensemble::LaneSystem;

/// Steps in lanes, with the kernels that evaluate their states.
pub(super) struct SweepLanes {
    pub steps: LaneSteps,
    /// Starts; `None` if trajectories start one by one.
    pub starts: Option<StartLanes>,
    /// F of the invariants.
    pub invariants: WideBound,
    /// Recorded quantities.
    pub recorded: LaneQuantities,
    /// Measured quantities.
    pub measured: Option<LaneQuantities>,
    /// Multipliers that samples do not contain as they are reported, if they are recorded.
    pub multipliers: Option<SampleMultipliers>,
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
        let multipliers = match simulation.recorded_multipliers() {
            Some(multipliers) => Some(multipliers.in_lanes(lanes)?),
            None => None,
        };
        Some(SweepLanes {
            steps,
            starts: sweep.starts.in_lanes(lanes),
            invariants: simulation.trajectory.system.wide_values(lanes)?,
            recorded,
            measured,
            multipliers,
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
