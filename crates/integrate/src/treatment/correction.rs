//! `corrected`: one regularised Gauss–Newton step towards the invariants after each accepted step, the discrete form of
//! the feedback x' = X − κ DF⁺ΔF (`docs/methods.md`):
//!
//! x ← x − DF⁺ΔF,  DF⁺ = DFᵀ(DF DFᵀ + ε)⁻¹,  ΔF = F(x) − F₀,
//!
//! with the rows of DF scaled to unit length first. Small systems add ε to everything, which serves where DF loses
//! rank, as on a conical pendulum. Large ones factor the block of constraints without ε, because ε would stop
//! correcting the long modes of a chain, and add it to the Schur complement of H and the integrals only.
//!
//! The step keeps the order of the map before it: ΔF is of the size of the local error, and so is the move.

use super::normal_equations::{NormalEquations, Regularisation};
use crate::state::Cost;
use crate::system::{Invariants, System};

/// ε, relative to rows of unit length. Between 1e-12 and 1e-8 it makes no difference where DF has full rank.
pub const EPSILON: f64 = 1e-8;

/// The correction's scratch.
pub struct Correction {
    equations: NormalEquations,
    jacobian: Vec<f64>,
    mu: Vec<f64>,
}

impl Correction {
    /// For these invariants of a state of length `dim`.
    pub fn new(invariants: &Invariants, dim: usize) -> Correction {
        Correction {
            equations: NormalEquations::new(invariants, dim, Regularisation::Shift(EPSILON)),
            jacobian: vec![0.0; invariants.nonzeros()],
            mu: vec![0.0; invariants.count],
        }
    }

    /// Corrects `x` once. `values` receives F at the result.
    pub fn apply(
        &mut self,
        system: &dyn System,
        t: f64,
        target: &[f64],
        x: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) {
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        cost.invariants += 1;
        cost.jacobian += 1;
        for i in 0..self.mu.len() {
            let residual = values[i] - target[i];
            // What is round-off of F already is left alone. Near a critical point of an invariant, such as the energy's
            // at rest, the gradient is so short that round-off over its length would throw the state about.
            let negligible = residual.abs() <= self.equations.round_off(&self.jacobian, x, target[i], i);
            self.mu[i] = if negligible { 0.0 } else { residual };
        }
        if self.mu.iter().all(|residual| *residual == 0.0) {
            return;
        }
        // (DF DFᵀ + ε) μ = ΔF
        self.equations.factor(&self.jacobian);
        self.equations.solve(&mut self.mu);
        cost.linear_solves += 1;
        // x ← x − DFᵀ μ
        self.equations.subtract_transpose(&self.jacobian, &self.mu, x);
        system.invariant_values(t, x, values, work);
    }
}
