//! Dirac extension of a large model's field, recorded as a step is: its linear systems are sparse
//! systems of the recording.

use super::columns::{self, ColumnSymbols, Templated};
use super::program::LoweredProgram;
use super::recorder::{FsalMode, Given, record};
use super::symbols::ParameterPlaces;
use crate::kernels::{Parametric, Quantities};
use holonome_integrate::dirac::extended_field;
use holonome_integrate::scheme::map::{StepFrom, StepMap, Workspace};
use holonome_integrate::state::Cost;
use holonome_model::derived::Derived;

/// Program that computes the field.
#[derive(Clone)]
struct Extension(LoweredProgram<Templated>);

/// Extended field of a large model with constraints on its positions: `near` the set of constraints
/// only, or everywhere.
///
/// # Panics
/// If the model is of another kind.
pub fn extension(model: &Derived, near: bool) -> Box<dyn Quantities> {
    let mechanics =
        model.row_mechanics().expect("a large model with constraints has some on positions only");
    let symbols = ColumnSymbols::new(mechanics, ParameterPlaces::of(model));
    let given = Given { follows: false, fsal: FsalMode::Compute, guesses: false };
    let trace = record(symbols, given, |space, t, _, x| {
        let phase = 2 * space.degrees();
        let mut field = extended_field(space, t, &x[..phase], near);
        if x.len() > phase {
            let power = space.power(t, &x[..phase], &field[..phase / 2]);
            field.push(power);
        }
        field
    });
    Box::new(Extension(columns::lower(trace, None, model, vec![1.0], &[], 0.0)))
}

impl Parametric for Extension {
    fn rebind(&mut self, parameters: &[f64]) {
        self.0.rebind(parameters);
    }
}

impl Quantities for Extension {
    /// Compute the field; NaN where it does not exist.
    fn run(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        let workspace =
            &mut Workspace { kept: &mut [], memory: &mut [], cost: &mut Cost::default(), work };
        if self.0.step(StepFrom { t, h: 1.0, x }, dx, workspace, &mut []).is_err() {
            dx.fill(f64::NAN);
        }
    }

    fn work_len(&self) -> usize {
        self.0.work_len()
    }
}
