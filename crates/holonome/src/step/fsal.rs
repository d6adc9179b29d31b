//! First same as last (FSAL): the values at a step's start that are those at the end of the
//! previous step.
//!
//! These values are the first ones that a program carries. The last number of its memory is the
//! length of the step that left them, or 1 where the length makes no difference, and 0 at the start
//! of a run. A step of another length computes them anew.

use crate::kernels::Parametric;
use holonome_integrate::scheme::map::{NoStep, StepFrom, StepMap, Workspace};
use holonome_integrate::state::Cost;

/// Program that results in some numbers.
pub trait Finds: StepMap {
    /// Result for this step, without anything carried.
    ///
    /// # Errors
    /// If the equations have no solution.
    fn evaluate<'w>(
        &self,
        step: StepFrom,
        cost: &mut Cost,
        work: &'w mut [f64],
    ) -> Result<&'w [f64], NoStep>;
}

/// Values at a step's start, with the program that computes them if no step of the same length came
/// before.
#[derive(Clone)]
pub struct Fsal<P> {
    find: Box<P>,
    /// True if steps of any length have the same values.
    any_length: bool,
    /// Places, among the carried numbers, of a monitored energy and of its value at the start of
    /// the run.
    pub monitored: Option<(usize, usize)>,
}

impl<P: Parametric> Parametric for Fsal<P> {
    fn rebind(&mut self, parameters: &[f64]) {
        self.find.rebind(parameters);
    }
}

impl<P: Finds> Fsal<P> {
    /// Values that the program `find` computes.
    pub fn new(find: P, any_length: bool, monitored: Option<(usize, usize)>) -> Fsal<P> {
        Fsal { find: Box::new(find), any_length, monitored }
    }

    /// True if values left by a step serve one of length h; `known_for` is the last number of the
    /// memory.
    pub fn serves(&self, known_for: Option<f64>, h: f64) -> bool {
        known_for == Some(self.length(h))
    }

    /// Number that stands for the length of a step.
    fn length(&self, h: f64) -> f64 {
        if self.any_length { 1.0 } else { h }
    }

    /// True if some of these substeps compute the values anew.
    pub fn is_broken_by(&self, substeps: &[f64]) -> bool {
        !self.any_length && substeps.iter().any(|part| *part != substeps[0])
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.find.work_len()
    }

    /// Program that computes the values.
    pub fn program(&self) -> &P {
        &self.find
    }

    /// Monitored energy where this step begins, if one is monitored.
    pub fn energy(&self, step: StepFrom) -> Option<f64> {
        let (energy, _) = self.monitored?;
        let mut work = vec![0.0; self.find.work_len()];
        Some(self.find.evaluate(step, &mut Cost::default(), &mut work).ok()?[energy])
    }

    /// Put into `deviations` the distance of the monitored energy from its value at the start of
    /// the run.
    pub fn deviations(&self, memory: &[f64], deviations: &mut [f64]) {
        if let Some((energy, start)) = self.monitored {
            deviations[0] = (memory[energy] - memory[start]).abs();
        }
    }

    /// Put the values for this step into the memory, unless they are there.
    ///
    /// # Errors
    /// If the equations for them have no solution.
    pub fn find(
        &self,
        step: StepFrom,
        Workspace { memory, cost, work, .. }: &mut Workspace,
    ) -> Result<(), NoStep> {
        let length = self.length(step.h);
        let Some((known_for, carried)) =
            memory.split_last_mut().filter(|(known_for, _)| **known_for != length)
        else {
            return Ok(());
        };
        let found = self.find.evaluate(step, cost, work)?;
        if let Some((energy, start)) = self.monitored {
            // At the start of the run both were 0. The energy of a step of another length is
            // another one, so its start is shifted.
            carried[start] += found[energy] - carried[energy];
        }
        carried[..found.len()].copy_from_slice(found);
        *known_for = length;
        Ok(())
    }
}
