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
//!
//! What is round-off of F_i already counts as 0: near a critical point of an invariant, such as the energy's at rest, the
//! gradient is so short that round-off over its length would throw the state about. F_i is a sum of terms of about
//! |∂_j F_i x_j|, each rounded, and so is its target; their size is bounded by |∇F_i| |x|_i and |F₀_i|, with |x|_i
//! the length of the components that F_i depends on, so ΔF_i is round-off where ΔF_i² ≤ 2 eps² (|∇F_i|² |x|_i² + F₀_i²).

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

    /// Corrects `x` once. `values` receives F at the result, `deviations` that of every group.
    pub fn apply(
        &mut self,
        system: &dyn System,
        t: f64,
        target: &[f64],
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) {
        cost.invariants += 1;
        cost.jacobian += 1;
        cost.linear_solves += 1;
        if system.correct(t, target, x, values, deviations, work) {
            return;
        }
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        for i in 0..self.mu.len() {
            let residual = values[i] - target[i];
            let negligible = residual * residual <= self.equations.squared_round_off(&self.jacobian, x, target[i], i);
            self.mu[i] = if negligible { 0.0 } else { residual };
        }
        if self.mu.iter().any(|residual| *residual != 0.0) {
            // (DF DFᵀ + ε) μ = ΔF
            self.equations.factor(&self.jacobian);
            self.equations.solve(&mut self.mu);
            // x ← x − DFᵀ μ
            self.equations.subtract_transpose(&self.jacobian, &self.mu, x);
        }
        system.monitor(t, target, x, values, deviations, work);
    }
}
