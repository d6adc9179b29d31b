//! `corrected`: one Gauss–Newton step towards the invariants after each accepted step, in the metric of the step's own
//! error (`docs/methods.md`). It is the most likely error of the state x̃, given that ΔF = F(x̃) − F₀ was found there: a
//! Kalman update with W = diag(w²) as the covariance of the state and R as that of F.
//!
//! d₁ = W Cᵀ(C W Cᵀ + R_C)⁻¹ ΔF_C                                    constraints and hidden ones, C
//! d₂ = W Dᵀ(D W Dᵀ + R)⁻¹ (0, ΔF_B − B d₁) · min(1, limit/ν)         H and integrals B along them, D = (C; B)
//! x ← x̃ − d₁ − d₂
//!
//! Both solves are one elimination with the constraints first. w comes from the step's error estimate (see
//! [`scales`](crate::scales)), and R_i = (u (Σ_j |∂_jF_i x̃_j| + |F₀_i|))² is the round-off of F_i, so near a critical point
//! of an invariant, such as the energy's at rest, nothing is thrown about. The innovation ν says by how many standard
//! deviations H and the integrals are off; an error that is no error of the step is not believed.
//!
//! A relative ε on the diagonal of the rows that are no constraints serves where they lose rank, as on a conical
//! pendulum; on constraints it would stop correcting the long modes of a chain.
//!
//! The step keeps the order of the map before it: ΔF is of the size of the local error, and so is the move.

use super::normal_equations::{NormalEquations, Regularisation};
use crate::scales::UNIT_ROUND_OFF;
use crate::state::Cost;
use crate::system::{Invariants, System};

/// ε, relative to rows of unit length. Between 1e-12 and 1e-8 it makes no difference where DF has full rank.
pub const EPSILON: f64 = 1e-8;

/// Up to how many standard deviations an innovation of a state of `vectors` vectors is believed: ten of a few vectors
/// whose errors are independent, and √n of many whose errors have one cause, and add up.
pub fn largest_innovation(vectors: usize) -> f64 {
    (100.0 + vectors as f64).sqrt()
}

/// The correction's scratch.
pub struct Correction {
    equations: NormalEquations,
    jacobian: Vec<f64>,
    mu: Vec<f64>,
    roots: Vec<f64>,
    noise: Vec<f64>,
}

impl Correction {
    /// For these invariants of a state of length `dim`.
    pub fn new(invariants: &Invariants, dim: usize) -> Correction {
        Correction {
            equations: NormalEquations::new(invariants, dim, Regularisation::Shift(EPSILON)),
            jacobian: vec![0.0; invariants.nonzeros()],
            mu: vec![0.0; invariants.count],
            roots: vec![0.0; dim],
            noise: vec![0.0; invariants.count],
        }
    }

    /// Corrects `x` once; `weights` are w² of its vectors. `values` receives F at the result, `deviations` that of every
    /// group. Gives ν².
    pub fn apply(
        &mut self,
        system: &dyn System,
        (t, target, weights): (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> f64 {
        cost.count_corrections(1);
        if let Some(innovation) = system.correct((t, target, weights), x, values, deviations, work) {
            return innovation;
        }
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        for i in 0..self.mu.len() {
            self.mu[i] = values[i] - target[i];
            // ε of the machine is 2u.
            let round_off = self.equations.round_off(&self.jacobian, x, target[i], i);
            self.noise[i] = (round_off * (UNIT_ROUND_OFF / f64::EPSILON)).powi(2);
        }
        let mut innovation = 0.0;
        if self.mu.iter().any(|residual| *residual != 0.0) {
            system.vectors().spread_roots(weights, &mut self.roots);
            self.equations.factor_in(&self.jacobian, &self.roots, &self.noise);
            innovation = self.equations.solve_limited(&mut self.mu, largest_innovation(weights.len()));
            self.equations.subtract_transpose(&self.jacobian, &self.mu, x);
        }
        system.monitor(t, target, x, values, deviations, work);
        innovation
    }
}
