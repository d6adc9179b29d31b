//! What a model becomes: straight-line code, or a loop over rows where that would be too long.

use super::rows::compile_rows;
use super::{Bound, CompiledSystem, RowSystem, StateVectors, WideBound, WideRates, WideWatch};
use holonome_integrate::scales::Vectors;
use holonome_integrate::system::{Invariants, System};
use holonome_model::rows::{RowKernel, RowProgram};
use std::sync::Arc;

/// A compiled system of either form.
pub enum Compiled {
    /// Written out.
    Straight(Box<CompiledSystem>),
    /// Row by row.
    Rows(Box<RowSystem>),
}

impl Compiled {
    /// The same system with the Gauss–Newton form of feedback by a linear solve; its `parameters` follow those of the model.
    pub fn with_pull(self, state: &Arc<StateVectors>, first: usize, parameters: &[f64]) -> Compiled {
        match self {
            Compiled::Straight(system) => Compiled::Straight(Box::new(system.with_pull(state, first, parameters))),
            Compiled::Rows(system) => Compiled::Rows(Box::new(system.with_pull(state, parameters))),
        }
    }

    /// The same system with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> Compiled {
        match self {
            Compiled::Straight(system) => Compiled::Straight(Box::new(system.rebound(parameters))),
            Compiled::Rows(system) => Compiled::Rows(Box::new(system.rebound(parameters))),
        }
    }

    /// Gives the masses other parameters.
    pub fn rebind_masses(&mut self, parameters: &[f64]) {
        match self {
            Compiled::Straight(system) => system.rebind_masses(parameters),
            Compiled::Rows(system) => system.rebind_masses(parameters),
        }
    }

    /// Gives the kernels of the motion's field other parameters.
    pub fn rebind_motion(&mut self, parameters: &[f64]) {
        match self {
            Compiled::Straight(system) => system.rebind_motion(parameters),
            Compiled::Rows(system) => system.rebind_motion(parameters),
        }
    }

    /// Gives the kernels of F and DF other parameters, and no other kernel.
    pub fn rebind_invariants(&mut self, parameters: &[f64]) {
        match self {
            Compiled::Straight(system) => system.rebind_invariants(parameters),
            Compiled::Rows(system) => system.rebind_invariants(parameters),
        }
    }

    /// Watches the invariants in so many lanes, where they are watched by a kernel of their own.
    pub fn wide_watch(&self, lanes: usize) -> Option<WideWatch> {
        match self {
            Compiled::Straight(system) => system.wide_watch(lanes),
            Compiled::Rows(_) => None,
        }
    }

    /// The motion and DF in so many lanes, where they are written out.
    pub fn wide_rates(&self, lanes: usize) -> Option<WideRates> {
        match self {
            Compiled::Straight(system) => Some(system.wide_rates(lanes)),
            Compiled::Rows(_) => None,
        }
    }

    /// The system that is written out, if this one is.
    pub fn written_out(&self) -> Option<&CompiledSystem> {
        match self {
            Compiled::Straight(system) => Some(system),
            Compiled::Rows(_) => None,
        }
    }

    fn system(&self) -> &dyn System {
        match self {
            Compiled::Straight(system) => &**system,
            Compiled::Rows(system) => &**system,
        }
    }
}

impl System for Compiled {
    fn dim(&self) -> usize {
        self.system().dim()
    }

    fn work_len(&self) -> usize {
        self.system().work_len()
    }

    fn vector_name(&self, vector: usize) -> String {
        self.system().vector_name(vector)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.system().field(t, x, dx, work);
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        self.system().motion(t, x, dx, work)
    }

    fn vectors(&self) -> &Vectors {
        self.system().vectors()
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.system().masses(t, x, masses, work);
    }

    fn invariants(&self) -> &Invariants {
        self.system().invariants()
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.system().invariant_values(t, x, f, work);
    }

    fn monitor(&self, t: f64, target: &[f64], x: &[f64], values: &mut [f64], deviations: &mut [f64], work: &mut [f64]) {
        self.system().monitor(t, target, x, values, deviations, work);
    }

    fn correct(
        &self,
        at: (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) -> Option<f64> {
        self.system().correct(at, x, values, deviations, work)
    }

    fn project(
        &self,
        at: (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) -> Option<u64> {
        self.system().project(at, x, values, deviations, work)
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.system().invariant_jacobian(t, x, values, work);
    }

    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.system().field_derivative(t, x, v, out, work);
    }
}

/// Some compiled quantities of either form, as functions of (t, x).
pub enum Quantities {
    /// Written out.
    Straight(Bound),
    /// Row by row.
    Rows(RowKernel),
}

impl Quantities {
    /// Compiles a row program.
    pub fn of_rows(program: &RowProgram, parameters: &[f64]) -> Quantities {
        Quantities::Rows(compile_rows(program, parameters))
    }

    /// The same in so many lanes, where they are written out.
    pub fn in_lanes(&self, lanes: usize) -> Option<WideBound> {
        match self {
            Quantities::Straight(kernel) => Some(kernel.in_lanes(lanes)),
            Quantities::Rows(_) => None,
        }
    }

    /// The same with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> Quantities {
        match self {
            Quantities::Straight(kernel) => Quantities::Straight(kernel.rebound(parameters)),
            Quantities::Rows(kernel) => Quantities::Rows(kernel.rebound(parameters)),
        }
    }

    /// Gives this one other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        match self {
            Quantities::Straight(kernel) => kernel.rebind(parameters),
            Quantities::Rows(kernel) => kernel.rebind(parameters),
        }
    }

    /// Evaluates at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        match self {
            Quantities::Straight(kernel) => kernel.run(t, x, out, work),
            Quantities::Rows(kernel) => kernel.run(t, x, out, work),
        }
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        match self {
            Quantities::Straight(kernel) => kernel.work_len(),
            Quantities::Rows(kernel) => kernel.work_len(),
        }
    }
}
