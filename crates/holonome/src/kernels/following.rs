//! Quantities that read velocities, of models whose formulas are evaluated row by row: the
//! velocities come first, and stand behind the state.

use super::bound::{Parametric, Quantities, compile_parts};
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::functional::Functional;
use holonome_model::rows::{RowKernel, RowProgram};

/// Quantities of a sample, computed from its velocities.
#[derive(Clone)]
pub struct WithVelocities {
    /// Velocities, then the quantities, within one array behind the sample.
    kernel: RowKernel,
    /// Length of the state with its multipliers, and number of velocities.
    known: usize,
    velocities: usize,
    outputs: usize,
}

impl WithVelocities {
    /// The outputs of `functionals`, one after the other.
    pub fn new(model: &Model, functionals: &[&Functional]) -> WithVelocities {
        let (following, n) = (model.following(), model.degrees());
        let slopes = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => RowProgram::momentum_slopes(h, n),
            Dynamics::Field(_) => Functional::default(),
        };
        let pieces = RowProgram::values(&slopes, &|output| Some(output as u32));
        let velocities = RowProgram::new(following.velocities, n, pieces);
        let (mut pieces, mut first) = (Vec::new(), 0);
        for functional in functionals {
            pieces.extend(RowProgram::values(functional, &|output| Some((first + output) as u32)));
            first += functional.outputs;
        }
        let values = RowProgram::new(following.velocities + n, first, pieces);
        WithVelocities {
            kernel: compile_parts(vec![velocities, values], &model.parameter_values),
            known: following.velocities,
            velocities: n,
            outputs: first,
        }
    }
}

impl Parametric for WithVelocities {
    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(parameters);
    }
}

impl Quantities for WithVelocities {
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let behind = self.known + self.velocities;
        let (all, work) = work.split_at_mut(behind + out.len());
        let known = x.len().min(self.known);
        all[..known].copy_from_slice(&x[..known]);
        all[known..].fill(0.0);
        self.kernel.run_within(t, all, work);
        out.copy_from_slice(&all[behind..]);
    }

    fn work_len(&self) -> usize {
        self.known + self.velocities + self.outputs + self.kernel.work_len()
    }
}
