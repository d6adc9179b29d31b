//! First same as last: what a step takes over from the one before.
//!
//! The values are the first of what a program carries. Behind all else, its memory holds the length of the step that
//! handed them over, 0 at the start of a run: where a step of another length begins, they are found anew.

use super::program::Program;
use holonome_integrate::scheme::map::{NoStep, StepMap};
use holonome_integrate::state::Cost;

/// How a step's first values are found where no step of its length came before.
pub struct FirstSame {
    find: Box<Program>,
    /// Where, among what is carried, a watched energy stands, and its value at the start of the run.
    pub watched: Option<(usize, usize)>,
}

impl FirstSame {
    /// By this program.
    pub fn new(find: Program, watched: Option<(usize, usize)>) -> FirstSame {
        FirstSame { find: Box::new(find), watched }
    }

    /// The same with other parameters of the model.
    pub fn rebound(&self, parameters: &[f64]) -> FirstSame {
        FirstSame::new(self.find.rebound(parameters), self.watched)
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.find.work_len()
    }

    /// Whether it takes Newton's iterations.
    pub fn iterates(&self) -> bool {
        self.find.iterates()
    }

    /// Puts into `memory` what a step of the length h from (t, x) takes over, unless it is there.
    ///
    /// # Errors
    /// Where the equations for it have no solution.
    pub fn find(
        &self,
        (t, h): (f64, f64),
        x: &[f64],
        memory: &mut [f64],
        cost: &mut Cost,
        work: &mut [f64],
    ) -> Result<(), NoStep> {
        let Some((known_for, carried)) = memory.split_last_mut().filter(|(known_for, _)| **known_for != h) else {
            return Ok(());
        };
        let found = self.find.evaluate((t, h), x, cost, work)?;
        if let Some((energy, start)) = self.watched {
            // At the start of the run both were 0; the energy of a step of another length is another one.
            carried[start] += found[energy] - carried[energy];
        }
        carried[..found.len()].copy_from_slice(found);
        *known_for = h;
        Ok(())
    }
}
