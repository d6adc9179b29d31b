//! First same as last: what a step takes over from the one before.
//!
//! The values are the first of what a program carries. Behind all else, its memory holds the length of the step that
//! handed them over, or 1 where that makes no difference, and 0 at the start of a run: where a step of another length begins,
//! they are found anew.

use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::Cost;

/// A program that results in some numbers.
pub trait Finds: StepMap {
    /// Its result for this step, without anything that is carried.
    ///
    /// # Errors
    /// Where its equations have no solution.
    fn evaluate<'w>(&self, step: StepFrom, cost: &mut Cost, work: &'w mut [f64]) -> Result<&'w [f64], NoStep>;
}

/// How a step's first values are found where no step of its length came before.
pub struct FirstSame<P> {
    find: Box<P>,
    /// Whether steps of any length find the same.
    any_length: bool,
    /// Where, among what is carried, a watched energy stands, and its value at the start of the run.
    pub watched: Option<(usize, usize)>,
}

impl<P: Finds> FirstSame<P> {
    /// By this program.
    pub fn new(find: P, any_length: bool, watched: Option<(usize, usize)>) -> FirstSame<P> {
        FirstSame { find: Box::new(find), any_length, watched }
    }

    /// The same by the program that `rebound` makes of this one's.
    pub fn rebound(&self, rebound: impl FnOnce(&P) -> P) -> FirstSame<P> {
        FirstSame::new(rebound(&self.find), self.any_length, self.watched)
    }

    /// Whether what was handed over by a step that left this as the last number of its memory serves one of the length h.
    pub fn serves(&self, known_for: Option<f64>, h: f64) -> bool {
        known_for == Some(self.length(h))
    }

    /// What stands for the length of a step.
    fn length(&self, h: f64) -> f64 {
        if self.any_length { 1.0 } else { h }
    }

    /// Whether some of these substeps find anew what they take over.
    pub fn is_broken_by(&self, substeps: &[f64]) -> bool {
        !self.any_length && substeps.iter().any(|part| *part != substeps[0])
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.find.work_len()
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.find
    }

    /// The program, to give it other parameters.
    pub fn program_mut(&mut self) -> &mut P {
        &mut self.find
    }

    /// The watched energy where this step begins, if one is watched.
    pub fn energy(&self, step: StepFrom) -> Option<f64> {
        let (energy, _) = self.watched?;
        let mut work = vec![0.0; self.find.work_len()];
        Some(self.find.evaluate(step, &mut Cost::default(), &mut work).ok()?[energy])
    }

    /// Puts how far that is from where it was at the start of the run.
    pub fn deviations(&self, memory: &[f64], deviations: &mut [f64]) {
        if let Some((energy, start)) = self.watched {
            deviations[0] = (memory[energy] - memory[start]).abs();
        }
    }

    /// Puts into the memory what this step takes over, unless it is there.
    ///
    /// # Errors
    /// Where the equations for it have no solution.
    pub fn find(&self, step: StepFrom, Workspace { memory, cost, work, .. }: &mut Workspace) -> Result<(), NoStep> {
        let length = self.length(step.h);
        let Some((known_for, carried)) = memory.split_last_mut().filter(|(known_for, _)| **known_for != length) else {
            return Ok(());
        };
        let found = self.find.evaluate(step, cost, work)?;
        if let Some((energy, start)) = self.watched {
            // At the start of the run both were 0; the energy of a step of another length is another one.
            carried[start] += found[energy] - carried[energy];
        }
        carried[..found.len()].copy_from_slice(found);
        *known_for = length;
        Ok(())
    }
}
