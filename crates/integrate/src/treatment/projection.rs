//! Standard projection after each step (HLW IV.4, algorithm 4.2): with x̃ the result of the base scheme,
//!
//! x = x̃ + DF(x̃)ᵀμ,  F(x) = F₀,                                   (4.3)
//!
//! by the simplified Newton iteration
//!
//! Δμ = −(DF(x̃) DF(x̃)ᵀ)⁻¹ (F(x̃ + DF(x̃)ᵀμ) − F₀),  μ ← μ + Δμ.       (4.5)
//!
//! The Jacobian stays at x̃, so that one factorisation serves; the metric is Euclidean. Where DF loses rank, dependent
//! rows are left out, which gives the solution of least norm.

use super::normal_equations::{NormalEquations, Regularisation};
use super::stopping::{Stopping, Unconverged};
use crate::state::Cost;
use crate::system::{Invariants, System};

/// The projection's scratch.
pub struct Projection {
    equations: NormalEquations,
    stopping: Stopping,
    jacobian: Vec<f64>,
    mu: Vec<f64>,
    mu_step: Vec<f64>,
    start: Vec<f64>,
}

impl Projection {
    /// For these invariants of a state of length `dim`; a `tolerance` below round-off means round-off.
    pub fn new(invariants: &Invariants, dim: usize, tolerance: f64) -> Projection {
        Projection {
            equations: NormalEquations::new(invariants, dim, Regularisation::LeastNorm),
            stopping: Stopping::new(invariants, tolerance),
            jacobian: vec![0.0; invariants.nonzeros()],
            mu: vec![0.0; invariants.count],
            mu_step: vec![0.0; invariants.count],
            start: vec![0.0; dim],
        }
    }

    /// Projects `x`. `values` receives F at the result.
    pub fn apply(
        &mut self,
        system: &dyn System,
        t: f64,
        target: &[f64],
        x: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<(), Unconverged> {
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        cost.invariants += 1;
        cost.jacobian += 1;
        self.equations.factor(&self.jacobian);
        self.stopping.begin(&self.equations, &self.jacobian, target, x);
        self.start.copy_from_slice(x);
        self.mu.fill(0.0);
        while !self.stopping.arrived(values, target, 0.0)? {
            // (4.5)
            for (step, (f, target)) in self.mu_step.iter_mut().zip(values.iter().zip(target)) {
                *step = f - target;
            }
            self.equations.solve(&mut self.mu_step);
            for (mu, step) in self.mu.iter_mut().zip(&self.mu_step) {
                *mu += step; // −μ of (4.3)
            }
            // (4.3)
            x.copy_from_slice(&self.start);
            self.equations.subtract_transpose(&self.jacobian, &self.mu, x);
            system.invariant_values(t, x, values, work);
            cost.newton_iterations += 1;
            cost.linear_solves += 1;
            cost.invariants += 1;
        }
        Ok(())
    }
}
