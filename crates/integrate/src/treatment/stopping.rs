//! Stopping test of the Newton iteration of a projection: it has arrived at round-off, row by row,
//! or at a looser tolerance, which is a distance in state space, |ΔF_i|/|∇F_i|.
//!
//! Round-off of a hidden constraint is that of its momenta, whose sizes are known once they move.
//! At rest they are rounding themselves, and no iteration makes them small relative to themselves.
//! So an iteration that gets no nearer has also arrived if the residual of the hidden constraint
//! changes its constraint by round-off in a step.

use super::normal_equations::NormalEquations;
use crate::scales::Vectors;
use crate::system::{ConstraintRates, Invariants};
use crate::vector::max_or_nan;
use holonome_arithmetic::square;

/// Largest number of iterations. A simplified Newton iteration gains about as many digits per
/// iteration as the local error has; thirty is far more than it takes if it converges at all.
const MOST_ITERATIONS: u32 = 30;

/// Factor within which a stagnating residual counts as round-off: the round-off in F is estimated
/// from one product per entry of DF.
const STAGNATION_SLACK: f64 = 100.0;

/// Reason why a projection stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unconverged {
    /// Number of Newton iterations.
    pub iterations: u32,
    /// Largest |ΔF_i|/|∇F_i|, NaN if F or DF is.
    pub residual: f64,
    /// Row of that residual.
    pub row: usize,
}

/// Distance of a state from meeting equations other than F = F₀.
#[derive(Clone, Copy, Debug)]
pub(super) struct Off {
    /// Largest component.
    pub distance: f64,
    /// Largest component over the size of its vector.
    pub relative: f64,
    /// Resulting change of F, in units of F's round-off.
    pub of_round_off: f64,
    /// Resulting change of F, in units of the least that is visible after a step.
    pub of_visible: f64,
}

impl Off {
    /// The equations are met.
    pub const NOTHING: Off =
        Off { distance: 0.0, relative: 0.0, of_round_off: 0.0, of_visible: 0.0 };
}

/// Stopping test of an iteration.
pub(super) struct Stopping {
    active: Vec<bool>,
    tolerance: f64,
    /// 1/|∇F_i|; a row without a gradient is measured by its value.
    distance_per_value: Vec<f64>,
    /// Round-off of ΔF_i/|∇F_i|.
    round_off: Vec<f64>,
    /// Least ΔF_i/|∇F_i| that is visible after a step, if row i is the rate of a constraint.
    visible: Vec<f64>,
    rates: ConstraintRates,
    /// σ of every component's vector.
    sizes: Vec<f64>,
    iterations: u32,
    /// Residuals one and two iterations ago, in units of round-off: distances of several units do
    /// not compare.
    before: [f64; 2],
}

impl Stopping {
    /// Test for these invariants; a `tolerance` below round-off stands for round-off.
    pub fn new(invariants: &Invariants, dim: usize, tolerance: f64) -> Stopping {
        Stopping {
            active: invariants.corrected_rows(),
            tolerance,
            distance_per_value: vec![0.0; invariants.count],
            round_off: vec![0.0; invariants.count],
            visible: vec![0.0; invariants.count],
            rates: invariants.constraint_rates(),
            sizes: vec![0.0; dim],
            iterations: 0,
            before: [f64::INFINITY; 2],
        }
    }

    /// Prepare for the first iteration, near the state `x` whose vectors have had these squared
    /// `sizes`, with these nonzeros of DF, in a step of the length `h`.
    pub fn begin(
        &mut self,
        (equations, jacobian): (&NormalEquations, &[f64]),
        target: &[f64],
        (x, h): (&[f64], f64),
        (vectors, sizes): (&Vectors, &[f64]),
    ) {
        self.restart();
        // A vector is known to a rounding of the size that it has had. The terms of F may all
        // vanish here, as those of the hidden constraint of a pendulum that turns, and would
        // promise a precision that x₁ cannot have.
        for (vector, size) in sizes[..vectors.count()].iter().enumerate() {
            let at = vectors.components_of(vector);
            let size = size.max(square(&x[at.clone()])).sqrt();
            self.sizes[at].fill(size);
        }
        for i in 0..target.len() {
            let gradient = equations.gradient(jacobian, i);
            self.distance_per_value[i] = if gradient == 0.0 { 1.0 } else { 1.0 / gradient };
            // Twice: for F_i and for its target.
            let value = 2.0 * equations.round_off(jacobian, &self.sizes, target[i], i);
            self.round_off[i] = value * self.distance_per_value[i];
            // Rows of constraints precede those of their rates.
            self.visible[i] = match self.rates.constraint(i) {
                Some(constraint) => {
                    let value = self.round_off[constraint] / self.distance_per_value[constraint];
                    (value / h.abs() * self.distance_per_value[i]).max(self.round_off[i])
                }
                None => self.round_off[i],
            };
        }
    }

    /// Restart at the same state.
    pub fn restart(&mut self) {
        (self.iterations, self.before) = (0, [f64::INFINITY; 2]);
    }

    /// Collect the rows after the `constraints` that meet their targets to round-off.
    pub fn put_met_integrals(
        &self,
        values: &[f64],
        target: &[f64],
        constraints: usize,
        out: &mut Vec<usize>,
    ) {
        let off = |row: usize| self.distance_per_value[row] * (values[row] - target[row]).abs();
        let met =
            |row: &usize| self.active[*row] && off(*row) <= STAGNATION_SLACK * self.round_off[*row];
        out.clear();
        out.extend((constraints..values.len()).filter(met));
    }

    /// Include or exclude these rows.
    pub fn set_active(&mut self, rows: &[usize], active: bool) {
        rows.iter().for_each(|&row| self.active[row] = active);
    }

    /// True if the iteration has arrived; otherwise the next one is counted. `off` is the state's
    /// distance from meeting other equations.
    ///
    /// # Errors
    /// If it gets no nearer.
    pub fn arrived(
        &mut self,
        values: &[f64],
        target: &[f64],
        off: Off,
    ) -> Result<bool, Unconverged> {
        let mut worst = self.worst_row(values, target);
        if off.distance > 0.0 || off.distance.is_nan() {
            worst.residual = max_or_nan(worst.residual, off.distance);
            let excess = (off.relative / f64::EPSILON).min(off.distance / self.tolerance);
            worst.excess = max_or_nan(worst.excess, excess);
            worst.excess_of_round_off = worst.excess_of_round_off.max(off.of_round_off);
            worst.excess_of_visible = worst.excess_of_visible.max(off.of_visible);
        }
        if worst.excess <= 1.0 {
            return Ok(true);
        }
        let ([last, last_but_one], spent) = (self.before, self.iterations == MOST_ITERATIONS);
        // Halving in each iteration is slow already; slower than that near round-off is round-off.
        let now = if worst.residual.is_nan() { f64::NAN } else { worst.excess_of_round_off };
        if (now > 0.5 * last || spent) && now <= STAGNATION_SLACK {
            return Ok(true);
        }
        // Two unknowns may converge in turns, as μ and x₁ of a symmetric projection do: two
        // iterations have to halve it.
        let stagnates = now > 0.5 * last_but_one || now.is_nan();
        if (stagnates || spent) && !now.is_nan() && worst.excess_of_visible <= STAGNATION_SLACK {
            return Ok(true);
        }
        if stagnates || spent {
            return Err(Unconverged {
                iterations: self.iterations,
                residual: worst.residual,
                row: worst.row,
            });
        }
        self.before = [now, last];
        self.iterations += 1;
        Ok(false)
    }

    /// Distance of a state that is off by `lack`, which changes F by `rows`.
    pub fn off(&self, lack: &[f64], rows: &[f64]) -> Off {
        let mut off = Off::NOTHING;
        for (lack, size) in lack.iter().zip(&self.sizes).filter(|(lack, _)| **lack != 0.0) {
            off.distance = max_or_nan(off.distance, lack.abs());
            off.relative = max_or_nan(off.relative, lack.abs() / size);
        }
        for (row, change) in
            rows.iter().enumerate().filter(|&(row, change)| self.active[row] && *change != 0.0)
        {
            let change = change.abs() * self.distance_per_value[row];
            off.of_round_off = max_or_nan(off.of_round_off, change / self.round_off[row]);
            off.of_visible = max_or_nan(off.of_visible, change / self.visible[row]);
        }
        off
    }

    fn worst_row(&self, values: &[f64], target: &[f64]) -> Worst {
        let first = self.active.iter().position(|&active| active).unwrap_or(0);
        let mut worst = Worst {
            row: first,
            residual: 0.0,
            excess: 0.0,
            excess_of_round_off: 0.0,
            excess_of_visible: 0.0,
        };
        for row in (first..values.len()).filter(|&row| self.active[row]) {
            let residual = self.distance_per_value[row] * (values[row] - target[row]).abs();
            if residual == 0.0 {
                continue;
            }
            let excess = residual / self.tolerance.max(self.round_off[row]);
            worst.excess_of_round_off =
                worst.excess_of_round_off.max(residual / self.round_off[row]);
            worst.excess_of_visible = worst.excess_of_visible.max(residual / self.visible[row]);
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

/// Row that is furthest from its target.
struct Worst {
    row: usize,
    residual: f64,
    /// Residual in units of the tolerance.
    excess: f64,
    excess_of_round_off: f64,
    excess_of_visible: f64,
}
