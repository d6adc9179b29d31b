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
use crate::state::Cost;
use crate::system::{Invariants, System};

/// A simplified Newton iteration gains about as many digits per iteration as the local error has; thirty is far more
/// than it takes where it converges at all.
const MOST_ITERATIONS: u32 = 30;

/// Round-off in F is estimated from one product per entry of DF. A stagnating residual within this factor of the
/// estimate is round-off too.
const STAGNATION_SLACK: f64 = 100.0;

/// Why a projection stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unconverged {
    /// Newton iterations done.
    pub iterations: u32,
    /// The largest |ΔF_i|/|∇F_i|, NaN where F or DF is.
    pub residual: f64,
    /// The row of that residual.
    pub row: usize,
}

/// The projection's scratch.
pub struct Projection {
    equations: NormalEquations,
    active: Vec<bool>,
    tolerance: f64,
    jacobian: Vec<f64>,
    /// Round-off of ΔF_i/|∇F_i|.
    round_off: Vec<f64>,
    mu: Vec<f64>,
    mu_step: Vec<f64>,
    start: Vec<f64>,
}

impl Projection {
    /// For these invariants of a state of length `dim`; a `tolerance` below round-off means round-off.
    pub fn new(invariants: &Invariants, dim: usize, tolerance: f64) -> Projection {
        Projection {
            equations: NormalEquations::new(invariants, dim, Regularisation::LeastNorm),
            active: invariants.corrected_rows(),
            tolerance,
            jacobian: vec![0.0; invariants.nonzeros()],
            round_off: vec![0.0; invariants.count],
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
        self.estimate_round_off(target, x);
        self.start.copy_from_slice(x);
        self.mu.fill(0.0);
        let (mut last, mut iterations) = (f64::INFINITY, 0);
        loop {
            let worst = self.worst_row(values, target);
            if worst.excess <= 1.0 {
                return Ok(());
            }
            // Halving each time is slow already; anything less is stagnation.
            let stagnates = worst.residual > 0.5 * last || worst.residual.is_nan();
            if stagnates && worst.excess_of_round_off <= STAGNATION_SLACK {
                return Ok(());
            }
            if stagnates || iterations == MOST_ITERATIONS {
                return Err(Unconverged { iterations, residual: worst.residual, row: worst.row });
            }
            last = worst.residual;
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
            iterations += 1;
            cost.newton_iterations += 1;
            cost.linear_solves += 1;
            cost.invariants += 1;
        }
    }

    fn estimate_round_off(&mut self, target: &[f64], x: &[f64]) {
        // x is known to a rounding of its largest component. The terms of F may all vanish at x̃, as those of the
        // hidden constraint of a pendulum at rest, and would promise a precision that x₁ cannot have.
        let of_the_state = f64::EPSILON * x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        for i in 0..target.len() {
            // Twice: of F_i and of its target.
            let value = 2.0 * self.equations.round_off(&self.jacobian, x, target[i], i);
            self.round_off[i] = value * self.distance_per_value(i) + of_the_state;
        }
    }

    /// 1/|∇F_i|; a row without a gradient is measured by its value.
    fn distance_per_value(&self, row: usize) -> f64 {
        match self.equations.scale()[row] {
            0.0 => 1.0,
            scale => scale,
        }
    }

    fn worst_row(&self, values: &[f64], target: &[f64]) -> Worst {
        let mut worst = Worst { row: 0, residual: 0.0, excess: 0.0, excess_of_round_off: 0.0 };
        for row in (0..values.len()).filter(|&row| self.active[row]) {
            let residual = self.distance_per_value(row) * (values[row] - target[row]).abs();
            if residual == 0.0 {
                continue;
            }
            let excess = residual / self.tolerance.max(self.round_off[row]);
            worst.excess_of_round_off = worst.excess_of_round_off.max(residual / self.round_off[row]);
            if excess.is_nan() {
                return Worst { row, residual: f64::NAN, excess, ..worst };
            }
            if excess > worst.excess {
                worst = Worst { row, residual, excess, ..worst };
            }
        }
        worst
    }
}

/// The row that is furthest from its target.
struct Worst {
    row: usize,
    residual: f64,
    /// The residual in units of the tolerance.
    excess: f64,
    excess_of_round_off: f64,
}
