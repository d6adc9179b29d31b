//! The right-hand side of a model, x' = f(t, x), as a function of numbers.

use super::{Simulation, prepare};
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use holonome_integrate::method::Method;
use holonome_integrate::scheme::Scheme;
use holonome_integrate::system::System;

/// Field of a problem, compiled: of a Hamiltonian model Hamilton's equations, with constraints their
/// Dirac extension to the surrounding space (Chang, Perlmutter, Vankerschaver 2022, (13)), which
/// keeps the constraints' values wherever it starts. For integrators of others.
///
/// ```
/// use holonome::{Problem, VectorField};
///
/// let oscillator: Problem =
///     "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian (p^2 + q^2)/2".parse()?;
/// let mut field = VectorField::new(oscillator)?;
/// let mut rate = [0.0; 2];
/// field.put(0.0, &[0.25, 0.5], &mut rate);
/// assert_eq!(rate, [0.5, -0.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct VectorField {
    simulation: Simulation,
    work: Vec<f64>,
    /// A state and its rate with all that the model integrates: the work of forces follows it.
    all: [Vec<f64>; 2],
}

impl VectorField {
    /// Compile the field of `problem`.
    ///
    /// # Errors
    /// If the model has no field: its constraints are singular, or its mass matrix is singular.
    pub fn new(problem: Problem) -> Result<VectorField, Error> {
        let method = Method::plain(Scheme::named("rk4").expect("a registered scheme"));
        // Nothing is run, so any step and end will do.
        let (step, until) = (StepSize::Fixed(1.0), problem.span.0 + 1.0);
        let record = Some(Vec::new());
        let options = RunOptions { method, step, until, record, ..RunOptions::default() };
        let simulation = prepare(problem, options)?;
        let work = vec![0.0; simulation.trajectory.system.work_len()];
        let all = [(); 2].map(|()| vec![0.0; simulation.problem.model.dimension()]);
        Ok(VectorField { simulation, work, all })
    }

    /// Number of numbers of a state: the variables in the order of the model, positions first.
    pub fn dim(&self) -> usize {
        self.simulation.problem.model.phase_dimension()
    }

    /// Put the rate of change of the state `x` at the time `t` into `rate`.
    ///
    /// # Panics
    /// If these are not states.
    pub fn put(&mut self, t: f64, x: &[f64], rate: &mut [f64]) {
        assert!(x.len() == self.dim() && rate.len() == self.dim(), "these are not states");
        let VectorField { simulation, work, all: [state, whole] } = self;
        state[..x.len()].copy_from_slice(x);
        simulation.trajectory.system.field(t, state, whole, work);
        rate.copy_from_slice(&whole[..x.len()]);
    }
}
