//! A problem compiled for a method: from its preparation to its run.

mod attributes;
mod choices;
mod derivative;
mod flow;
mod formulas;
mod orbit;
mod outcome;
mod output;
mod preparation;
mod reference;
mod resumption;
mod settable;
mod size;
mod stepping;
mod trajectory;
mod trial;
mod vector_field;

pub(crate) use attributes::Parameters;
pub(crate) use choices::{plan, unused_options};
pub use flow::Flow;
pub(crate) use formulas::Formulas;
pub(crate) use outcome::{MANY_TIMES, OF_MODELS, motion_warnings};
pub use preparation::prepare;
pub(crate) use reference::reference_state;
pub use resumption::{Longer, Resumed, open_run, origin};
pub(crate) use resumption::{stored, stored_options, stored_problem};
use settable::Settable;
pub use settable::prepare_settable;
pub(crate) use stepping::{Running, failed_names};
pub(crate) use trajectory::{From, Trajectory, put_sides};
pub use vector_field::VectorField;

use crate::error::Error;
use crate::kernels::StateVectors;
use crate::options::RunOptions;
use crate::output::RunFolder;
use crate::penalty::{Followed, Penalised};
use crate::problem::Problem;
use crate::recording::{Measuring, RecordedArrays, SampleMultipliers};
use crate::serial::NumberArray;
use crate::starts::Starts;
use crate::summary::Summary;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Plan;
use holonome_integrate::state::StepState;
use holonome_model::treatment::{Field, InvariantGroup};
use std::convert::Infallible;
use std::sync::Arc;

/// A problem compiled for a method.
pub struct Simulation {
    /// The problem.
    pub problem: Problem,
    /// Options of the run.
    pub options: RunOptions,
    /// Warnings for the user before the start, besides the findings on the model.
    pub warnings: Vec<String>,
    /// Findings on the model as it was read, in a line each.
    model_warnings: Vec<String>,
    /// Field without a feedback term; `None` if it is not unrolled.
    pub(crate) field: Option<Arc<Field>>,
    /// Groups of the rows of F.
    pub(crate) groups: Vec<InvariantGroup>,
    /// Number of rows of F that are constraints.
    pub(crate) constraints: usize,
    /// Field with its feedback term, if that is a formula.
    pub(crate) treated: Option<Arc<Field>>,
    pub(crate) plan: Plan,
    pub(crate) vectors: Arc<StateVectors>,
    pub(crate) trajectory: Trajectory,
    pub(crate) recorded: RecordedArrays,
    /// Measures of the run, if any.
    pub(crate) measuring: Option<Measuring>,
    gain_text: Option<String>,
    pub(crate) penalty: Option<Penalised>,
    /// Multipliers that samples do not contain as they are reported.
    multipliers: Option<SampleMultipliers>,
    pub(crate) initial: Vec<Option<NumberArray>>,
    /// Values that may be set, if any.
    settable: Option<Box<Settable>>,
    /// Summary of a run that failed.
    failed: Option<Box<Summary>>,
    folder: RunFolder,
}

impl Simulation {
    /// All warnings for the user before the start.
    pub fn all_warnings(&self) -> Vec<String> {
        self.model_warnings.iter().chain(&self.warnings).cloned().collect()
    }

    /// Time that the run has reached.
    pub fn time(&self) -> f64 {
        self.plan.clock(self.trajectory.state.t)
    }

    /// True if threads share its sums because these are long.
    pub fn is_divided(&self) -> bool {
        self.trajectory.system.is_divided()
    }

    /// Gains or rate of the feedback term, as printed.
    pub fn gain(&self) -> Option<&str> {
        self.gain_text.as_deref()
    }

    /// Facts about the penalty of a penalised run.
    pub fn penalty(&self) -> Option<&Penalised> {
        self.penalty.as_ref()
    }

    /// State from which the run starts, or is resumed.
    pub(crate) fn state(&self) -> &StepState {
        &self.trajectory.state
    }

    /// Starts of trajectories of this simulation, with the treatments of its model.
    pub(crate) fn starts(&mut self, starts: Starts) -> Starts {
        let model = &self.problem.model;
        let starts = if model.reversed { starts.reversed() } else { starts };
        let starts = match self.penalty.as_mut() {
            Some(penalty) => starts.penalised(penalty.slow.take(), &model.initial),
            None => starts,
        };
        match &model.heat_bath {
            Some(bath) => starts.in_heat_bath(bath.trajectory),
            None => starts,
        }
    }

    /// Multipliers that samples do not contain as they are reported, if a recorded quantity uses
    /// them.
    pub(crate) fn recorded_multipliers(&self) -> Option<&SampleMultipliers> {
        self.multipliers.as_ref().filter(|_| self.recorded.uses_multipliers)
    }

    /// Plan that is run: with the additional outputs of measures.
    pub(crate) fn run_plan(&self) -> &Plan {
        self.measuring.as_ref().map_or(&self.plan, |measuring| &measuring.outputs.plan)
    }

    /// Number of samples that a run in `state` has stored.
    pub(crate) fn samples_of(&self, state: &StepState) -> usize {
        self.measuring.as_ref().map_or(state.next_sample, |measuring| {
            measuring.outputs.samples_before(state.next_sample)
        })
    }

    /// Number of targets F₀ among the parameters of a step.
    pub(crate) fn target_count(&self) -> usize {
        self.trajectory.target_count()
    }
}

/// Follow the motion of a problem in a run of its own.
///
/// # Errors
/// If it cannot be prepared.
fn follow(
    problem: Problem,
    options: RunOptions,
    look: &mut (dyn FnMut(f64, &[f64]) + Send),
) -> Result<Followed, Error> {
    let simulation = prepare(problem, options)?;
    let mut state = simulation.state().clone();
    look(state.t, &state.x);
    let outcome = simulation.run_unstored(&simulation.plan, &mut state, &mut Shown(look));
    Ok(Followed { x: state.x, failure: outcome.err().map(|failure| failure.to_string()) })
}

/// Observer that passes on every step and sample.
struct Shown<'a>(&'a mut (dyn FnMut(f64, &[f64]) + Send));

impl Observer for Shown<'_> {
    type Error = Infallible;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), Infallible> {
        (self.0)(t, x);
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        (self.0)(state.t, &state.x);
        Ok(Control::Continue)
    }
}
