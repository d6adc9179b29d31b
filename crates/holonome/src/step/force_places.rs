//! Positions at which the force that acts in a step is the force of the model: those that a step
//! [records](holonome_integrate::phase_space::PhaseSpace::force_at), as a function of the state.

use super::fsal::Finds;
use super::program::{LoweredProgram, Lowering};
use crate::kernels::Parametric;
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap};
use holonome_integrate::state::Cost;

/// Positions at which the force acts, for steps of one length.
pub struct ForcePlaces {
    places: Box<dyn Places>,
    h: f64,
}

/// Program that results in these positions.
trait Places: Parametric + Send + Sync {
    fn boxed(&self) -> Box<dyn Places>;
    fn put(&self, t: f64, h: f64, x: &mut [f64]) -> Result<(), NoStep>;
}

impl<L: Lowering + 'static> Places for LoweredProgram<L>
where
    LoweredProgram<L>: Send + Sync,
{
    fn boxed(&self) -> Box<dyn Places> {
        Box::new(self.clone())
    }

    fn put(&self, t: f64, h: f64, x: &mut [f64]) -> Result<(), NoStep> {
        let mut work = vec![0.0; self.work_len()];
        let places = self.evaluate(StepFrom { t, h, x }, &mut Cost::default(), &mut work)?;
        self.scatter(places, x);
        Ok(())
    }
}

impl Clone for ForcePlaces {
    fn clone(&self) -> ForcePlaces {
        ForcePlaces { places: self.places.boxed(), h: self.h }
    }
}

impl Parametric for ForcePlaces {
    fn rebind(&mut self, parameters: &[f64]) {
        self.places.rebind(parameters);
    }
}

impl ForcePlaces {
    /// Positions that a program of (sub)steps of length h results in.
    pub fn new<L: Lowering + 'static>(program: LoweredProgram<L>, h: f64) -> ForcePlaces
    where
        LoweredProgram<L>: Send + Sync,
    {
        ForcePlaces { places: Box::new(program), h }
    }

    /// Put the positions in the place of those in `x`, a state at t.
    ///
    /// # Errors
    /// If the equations of a step from there have no solution.
    pub fn put(&self, t: f64, x: &mut [f64]) -> Result<(), NoStep> {
        self.places.put(t, self.h, x)
    }
}
