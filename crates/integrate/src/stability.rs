//! Stability of a feedback term −∇V under an explicit scheme (`docs/methods.md`).
//!
//! The term has the Jacobian −DFᵀK DF on the level set, so a scheme whose real stability interval
//! is r damps it iff h·λmax(K^½ DF DFᵀ K^½) < r. The ratio h·λmax/r is monitored along a run; a
//! pilot run of up to a thousand steps gives its mean, which decides whether a gain is refused. A
//! pilot also gives the rate κ of the Gauss–Newton form.

use crate::plan::{Gain, Stepping};
use crate::state::StabilityMemory;
use crate::system::System;
use crate::vector::max_or_nan;
use holonome_linear::eigen::{jacobi, power_iteration};

/// Number of samples along a run with equal steps, evenly spaced. One costs as much as many steps
/// of a small system.
const SAMPLES: u64 = 250;

/// Number of steps between the first samples, if the number of steps of the run is not known, and
/// number of samples in every later doubling of the steps, so that their cost vanishes in the long
/// run.
const FIRST_SPACING: u64 = 64;
const LATER_SAMPLES: u64 = 128;

/// Largest number of rows for which the eigenvalues come from the m × m matrix, by Jacobi
/// rotations.
const SMALL: usize = 12;

/// Relative change of the estimate below which power iteration stops: the bound itself is sharp to
/// 10 %.
const TOLERANCE: f64 = 1e-4;

/// Largest number of products per sample; the iteration goes on from there at the next sample.
const MOST_PRODUCTS: u32 = 100;

/// Monitor of h·λmax/r along a run.
pub struct Monitor<'a> {
    gain: &'a Gain,
    interval: f64,
    /// Number of steps from one sample to the next; `None` if the number of steps of the run is not
    /// known.
    spacing: Option<u64>,
    jacobian: Vec<f64>,
    /// Small systems: the m × m matrix and DF DFᵀ, with a scattered row in `back`; K DF (m × n,
    /// full) is not needed.
    matrix: Vec<f64>,
    product: Vec<f64>,
    /// Large systems: DF v and K DF v, and DFᵀK DF v.
    image: Vec<f64>,
    weighted: Vec<f64>,
    back: Vec<f64>,
}

impl<'a> Monitor<'a> {
    /// Monitor for a scheme with the real stability interval `interval`.
    pub fn new(gain: &'a Gain, system: &dyn System, interval: f64) -> Monitor<'a> {
        let (m, n) = (system.invariants().count, system.dim());
        let square = if m <= SMALL { m * m } else { 0 };
        Monitor {
            gain,
            interval,
            spacing: Some(1),
            jacobian: vec![0.0; system.invariants().nonzeros()],
            matrix: vec![0.0; square],
            product: vec![0.0; square],
            image: vec![0.0; m],
            weighted: vec![0.0; m],
            back: vec![0.0; n],
        }
    }

    /// Set the spacing of samples for a run with these steps: they are chosen by their number only,
    /// so that a resumed run samples the same.
    pub fn along(mut self, stepping: &Stepping) -> Monitor<'a> {
        self.spacing = match stepping {
            Stepping::Fixed(fixed) => Some(fixed.count().div_ceil(SAMPLES).max(1)),
            Stepping::Adaptive(_) => None,
        };
        self
    }

    /// Number of steps from one sample to the next at the step of this number.
    fn spacing(&self, step: u64) -> u64 {
        self.spacing.unwrap_or_else(|| 1 << (step / LATER_SAMPLES).max(FIRST_SPACING).ilog2())
    }

    /// True if the step of this number is sampled.
    pub fn samples(&self, step: u64) -> bool {
        step.is_multiple_of(self.spacing(step))
    }

    /// Number of steps from `step` to the next sampled one in a run with equal steps; at least 1.
    pub fn steps_to_sample(&self, step: u64) -> u64 {
        let spacing = self.spacing(step);
        spacing - step % spacing
    }

    /// Size the memory of the power iteration, if one is needed and has not begun yet.
    pub fn prepare(&self, direction: &mut Vec<f64>) {
        let iterates = self.image.len() > SMALL && !matches!(self.gain, Gain::Rate(_));
        if iterates && direction.len() != self.back.len() {
            // A start that is not orthogonal to any eigenvector that occurs in practice.
            *direction = (0..self.back.len())
                .map(|i| 1.0 + 0.5 * (i as f64 * 0.754_877_666).sin())
                .collect();
        }
    }

    /// h·λmax/r for a step `h` at (t, x). `direction` carries the power iteration from sample to
    /// sample and comes from [`Monitor::prepare`].
    pub fn ratio(
        &mut self,
        system: &dyn System,
        t: f64,
        x: &[f64],
        h: f64,
        direction: &mut [f64],
        work: &mut [f64],
    ) -> f64 {
        let largest = match self.gain {
            Gain::Rate(rate) => *rate,
            _ if system.invariants().count == 0 => 0.0,
            gain => {
                system.invariant_jacobian(t, x, &mut self.jacobian, work);
                if system.invariants().count <= SMALL {
                    self.largest_by_jacobi(system, gain)
                } else {
                    self.largest_by_power(system, gain, direction)
                }
            }
        };
        h * largest / self.interval
    }

    /// Add the sample of the step of this number to the run's statistics; it stands for all steps
    /// up to the next sample.
    pub fn sample(
        &mut self,
        system: &dyn System,
        (step, t, h): (u64, f64, f64),
        x: &[f64],
        memory: &mut StabilityMemory,
        work: &mut [f64],
    ) {
        let ratio = self.ratio(system, t, x, h, &mut memory.direction, work);
        let weight = self.spacing(step);
        memory.count += weight;
        memory.sum = (weight as f64).mul_add(ratio, memory.sum);
        memory.max = max_or_nan(memory.max, ratio);
    }

    /// Compute λmax by Jacobi rotations: K has a Cholesky-like root R with K = R Rᵀ, so λmax(DFᵀK
    /// DF) = λmax(Rᵀ DF DFᵀ R).
    fn largest_by_jacobi(&mut self, system: &dyn System, gain: &Gain) -> f64 {
        let invariants = system.invariants();
        let m = invariants.count;
        // DF DFᵀ; rows are short, so a scattered row of length n serves.
        for i in 0..m {
            invariants
                .row(i)
                .entries()
                .for_each(|(p, column)| self.back[column] = self.jacobian[p]);
            for (j, row) in invariants.pattern.rows().enumerate() {
                self.product[i * m + j] =
                    row.entries().map(|(p, column)| self.jacobian[p] * self.back[column]).sum();
            }
            invariants.row(i).entries().for_each(|(_, column)| self.back[column] = 0.0);
        }
        match gain {
            Gain::Diagonal(k) => {
                for i in 0..m {
                    for j in 0..m {
                        self.matrix[i * m + j] = (k[i] * k[j]).sqrt() * self.product[i * m + j];
                    }
                }
            }
            Gain::Dense(k) => {
                // DF DFᵀ = G Gᵀ has the same nonzero eigenvalues with K as Gᵀ K G, and either
                // factor may be split; the Gram matrix is positive semidefinite too, and its
                // Cholesky root G may stop at its rank.
                let root = semidefinite_root(&mut self.product, m);
                for i in 0..m {
                    for j in 0..m {
                        let mut sum = 0.0;
                        for a in 0..m {
                            for b in 0..m {
                                sum += root[a * m + i] * k[a * m + b] * root[b * m + j];
                            }
                        }
                        self.matrix[i * m + j] = sum;
                    }
                }
            }
            Gain::Rate(rate) => return *rate,
        }
        jacobi(&mut self.matrix, m);
        (0..m).map(|i| self.matrix[i * m + i]).fold(0.0, max_or_nan)
    }

    fn largest_by_power(&mut self, system: &dyn System, gain: &Gain, direction: &mut [f64]) -> f64 {
        let invariants = system.invariants();
        let (image, weighted, jacobian) = (&mut self.image, &mut self.weighted, &self.jacobian);
        power_iteration(direction, &mut self.back, TOLERANCE, MOST_PRODUCTS, |v, out| {
            let m = invariants.count;
            for (row, image) in invariants.pattern.rows().zip(&mut *image) {
                *image = row.entries().map(|(p, column)| jacobian[p] * v[column]).sum();
            }
            for i in 0..m {
                weighted[i] = match gain {
                    Gain::Diagonal(k) => k[i] * image[i],
                    Gain::Dense(k) => {
                        k[i * m..(i + 1) * m].iter().zip(image.iter()).map(|(k, u)| k * u).sum()
                    }
                    Gain::Rate(_) => image[i],
                };
            }
            out.fill(0.0);
            for (row, weighted) in invariants.pattern.rows().zip(&*weighted) {
                row.entries().for_each(|(p, column)| out[column] += jacobian[p] * weighted);
            }
        })
    }
}

/// A lower triangular root G of the positive semidefinite `a` = G Gᵀ, in place; columns of
/// dependent rows are zero.
fn semidefinite_root(a: &mut [f64], n: usize) -> &[f64] {
    let size = (0..n).map(|i| a[i * n + i]).fold(0.0, max_or_nan);
    for j in 0..n {
        let pivot = a[j * n + j] - (0..j).map(|k| a[j * n + k] * a[j * n + k]).sum::<f64>();
        let dependent = pivot <= 1e-14 * size;
        let diagonal = if dependent { 0.0 } else { pivot.sqrt() };
        for i in j + 1..n {
            let rest = a[i * n + j] - (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum::<f64>();
            a[i * n + j] = if dependent { 0.0 } else { rest / diagonal };
        }
        a[j * n + j] = diagonal;
    }
    for i in 0..n {
        a[i * n + i + 1..(i + 1) * n].fill(0.0);
    }
    a
}

#[cfg(test)]
mod tests;
