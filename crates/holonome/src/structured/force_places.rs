//! Where the force that acts in a step is that of the model: the positions which a step
//! [says](holonome_integrate::phase_space::PhaseSpace::force_at), as a function of the state.

use super::columns::ColumnProgram;
use super::first_same::Finds;
use super::program::Program as StraightProgram;
use holonome_integrate::scheme::map::{NoStep, StepMap};
use holonome_integrate::state::Cost;

/// A program whose result are these positions, and the length of the (sub)steps.
pub enum ForcePlaces {
    /// Written out.
    Straight(Box<StraightProgram>, f64),
    /// Over columns.
    Columns(Box<ColumnProgram>, f64),
}

impl ForcePlaces {
    /// The same for other parameters of the model.
    pub fn rebound(&self, parameters: &[f64]) -> ForcePlaces {
        match self {
            ForcePlaces::Straight(program, h) => ForcePlaces::Straight(Box::new(program.rebound(parameters)), *h),
            ForcePlaces::Columns(program, h) => ForcePlaces::Columns(Box::new(program.rebound(parameters)), *h),
        }
    }

    /// Puts them in the place of the positions in `x`, a state at t.
    ///
    /// # Errors
    /// Where the equations of a step from there have no solution.
    pub fn put(&self, t: f64, x: &mut [f64]) -> Result<(), NoStep> {
        let mut cost = Cost::default();
        match self {
            ForcePlaces::Straight(program, h) => {
                let mut work = vec![0.0; program.work_len()];
                let places = program.evaluate((t, *h), x, &mut cost, &mut work)?;
                x[..places.len()].copy_from_slice(places);
                Ok(())
            }
            ForcePlaces::Columns(program, h) => {
                let mut work = vec![0.0; program.work_len()];
                let places = program.evaluate((t, *h), x, &mut cost, &mut work)?;
                program.scatter(places, x);
                Ok(())
            }
        }
    }
}
