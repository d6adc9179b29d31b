//! Formulas along the motion as functions of a state.

use super::{Simulation, prepare};
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use holonome_integrate::method::Method;
use holonome_integrate::scheme::Scheme;
use holonome_model::elaborate::model::Quantity;

/// Compiled formulas of the state and of what follows from it along the motion: velocities,
/// accelerations, multipliers.
pub(crate) struct Formulas {
    simulation: Simulation,
    work: Vec<f64>,
    state: Vec<f64>,
}

impl Formulas {
    /// Compile quantities of the model of `problem`.
    ///
    /// # Errors
    /// If they read what only a field knows, and the model has none.
    pub fn new(problem: &Problem, quantities: Vec<Quantity>) -> Result<Formulas, Error> {
        // Names that no variable has.
        let named =
            |(k, quantity): (usize, Quantity)| Quantity { name: format!("{k}"), ..quantity };
        let quantities: Vec<Quantity> = quantities.into_iter().enumerate().map(named).collect();
        let record = Some(quantities.iter().map(|quantity| quantity.name.clone()).collect());
        let mut problem = problem.clone();
        problem.model = problem.model.observing(quantities);
        let method = Method::plain(Scheme::named("rk4").expect("a registered scheme"));
        // Nothing is run, so any step and end will do.
        let (step, until) = (StepSize::Fixed(1.0), problem.span.0 + 1.0);
        let options = RunOptions { method, step, until, record, ..RunOptions::default() };
        let simulation = prepare(problem, options)?;
        let work = vec![0.0; simulation.recorded.kernel.work_len()];
        let state = vec![0.0; simulation.problem.model.dimension()];
        Ok(Formulas { simulation, work, state })
    }

    /// Values at the time `t` and the state `x`, those of one quantity behind those of another.
    pub fn at(&mut self, t: f64, x: &[f64]) -> Vec<f64> {
        let Formulas { simulation, work, state } = self;
        state[..x.len()].copy_from_slice(x);
        let mut values = vec![0.0; simulation.recorded.outputs];
        simulation.recorded.kernel.run(t, state, &mut values, work);
        values
    }
}
