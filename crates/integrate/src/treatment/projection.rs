//! `projection`: standard projection after each step. With x̃ the result of the
//! base scheme,
//!
//! x = x̃ + W DF(x̃)ᵀμ,   F(x) = F₀,
//!
//! by the simplified Newton iteration
//!
//! Δμ = −(DF(x̃) W DF(x̃)ᵀ)⁻¹ (F(x̃ + W DF(x̃)ᵀμ) − F₀),   μ ← μ + Δμ.
//!
//! The Jacobian stays at x̃, so that one factorisation suffices. W is 1, as in the
//! source, or diag(w²) with the weights of the correction, which leave light bodies
//! beside heavy ones where they are. Where DF loses rank, dependent rows are left
//! out, which gives the solution of least norm.
//!
//! At rest the energy's gradient is that of constraints, but for rounding, and the
//! remainder may ask for any move. An iteration that fails is made once more
//! without the integrals that are met to round-off before it. The metric of the
//! error may point along the set, where the iteration does not lead to it from a
//! coarse step; then every vector moves as easily as it is large.

use super::correction::{round_off, widen};
use super::derivative::{Convergence, NoDerivative, SecondDerivative, Tangents};
use super::normal_equations::{NormalEquations, Regularisation};
use super::squared_distance;
use super::stopping::{Off, Stopping, Unconverged};
use crate::cost::Cost;
use crate::scales::Scales;
use crate::system::System;

/// Scratch of the projection.
pub struct Projection {
    /// True if the metric is that of the step's error.
    by_error: bool,
    roots: Vec<f64>,
    /// w² of the vectors by their sizes.
    sizes: Vec<f64>,
    equations: NormalEquations,
    stopping: Stopping,
    jacobian: Vec<f64>,
    mu: Vec<f64>,
    mu_step: Vec<f64>,
    start: Vec<f64>,
    concerned: Vec<bool>,
    /// Integrals that are met to round-off before the iteration.
    met: Vec<usize>,
}

impl Projection {
    /// Projection of the states of `system`; a `tolerance` below round-off stands for round-off.
    pub fn new(system: &dyn System, tolerance: f64, by_error: bool) -> Projection {
        let (invariants, dim) = (system.invariants(), system.dim());
        Projection {
            by_error,
            roots: if by_error { vec![0.0; dim] } else { Vec::new() },
            sizes: if by_error { vec![0.0; system.vectors().count()] } else { Vec::new() },
            equations: NormalEquations::new(invariants, dim, Regularisation::LeastNorm),
            stopping: Stopping::new(invariants, dim, tolerance),
            jacobian: vec![0.0; invariants.nonzeros()],
            mu: vec![0.0; invariants.count],
            mu_step: vec![0.0; invariants.count],
            start: vec![0.0; dim],
            concerned: vec![false; if by_error { dim } else { 0 }],
            met: Vec::with_capacity(invariants.count - invariants.constraints),
        }
    }

    /// Project `x`, the result of a step of the length `h`. `values` receives F at the result,
    /// `deviations` that of every group. Returns the square of the
    /// [distance](super::squared_distance) by which it moves the state.
    pub fn apply(
        &mut self,
        system: &dyn System,
        ((t, h), target, scales): ((f64, f64), &[f64], &Scales),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<f64, Unconverged> {
        let vectors = system.vectors();
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        cost.invariants += 1;
        cost.jacobian += 1;
        if self.by_error {
            vectors.spread_roots(scales.weights(vectors.count()), &mut self.roots);
            for i in 0..self.mu.len() {
                self.mu[i] = values[i] - target[i];
                self.mu_step[i] = round_off(&self.equations, &self.jacobian, x, target[i], i);
            }
            widen(
                system,
                &self.jacobian,
                &self.mu_step,
                &self.mu,
                &mut self.roots,
                &mut self.concerned,
            );
        }
        self.equations.factor_in(&self.jacobian, &self.roots, &[]);
        let sizes = scales.sizes(vectors.count());
        self.stopping.begin((&self.equations, &self.jacobian), target, (x, h), (vectors, sizes));
        self.start.copy_from_slice(x);
        let mut met = std::mem::take(&mut self.met);
        self.stopping.put_met_integrals(values, target, system.invariants().constraints, &mut met);
        let mut found = self.iterate(system, (t, target), x, values, work, cost);
        if found.is_err() && !met.is_empty() {
            self.set_active(&met, false);
            found = self.iterate_again(system, (t, target), x, values, work, cost);
            self.set_active(&met, true);
        }
        if found.is_err() && self.by_error {
            vectors.squares(&self.start, &mut self.sizes);
            vectors.raise_least(&mut self.sizes);
            vectors.spread_roots(&self.sizes, &mut self.roots);
            found = self.iterate_again(system, (t, target), x, values, work, cost);
        }
        self.met = met;
        system.invariants().deviations(values, target, deviations);
        found?;
        self.start.iter_mut().zip(&*x).for_each(|(start, x)| *start -= x);
        Ok(squared_distance(vectors, scales.sizes(vectors.count()), &self.start))
    }

    /// Project tangent vectors at `x`, the state that a step has reached, which becomes the
    /// projected one: with x₁ = x + W Dᵀμ, D at x, they become
    ///
    /// v₁ = v + W δDᵀμ + W Dᵀδμ,   D(x₁) v₁ = δF₀.
    ///
    /// δμ is found by the iteration that finds μ.
    ///
    /// # Errors
    /// If an iteration gets no nearer.
    pub fn differentiate(
        &mut self,
        system: &dyn System,
        (at, target, scales): ((f64, f64), &[f64], &Scales),
        x: &mut [f64],
        mut tangents: Tangents,
        second: SecondDerivative,
        work: &mut [f64],
    ) -> Result<(), NoDerivative> {
        let (n, m, vectors) = (x.len(), self.mu.len(), system.vectors());
        let (start, mut values, cost) = (x.to_vec(), vec![0.0; m], &mut Cost::default());
        let deviations = &mut vec![0.0; system.invariants().groups.len()];
        self.apply(system, (at, target, scales), x, &mut values, deviations, work, cost)
            .map_err(|_| NoDerivative::Untreated)?;
        let [mut reached, mut derivative] = [(); 2].map(|()| self.jacobian.clone());
        system.invariant_jacobian(at.0, x, &mut reached, work);
        let mut change = vec![0.0; n];
        for (v, target) in tangents.each(n, m) {
            second(at.0, &start, v, &mut derivative);
            self.equations.subtract_transpose(&derivative, &self.mu, v);
            let mut convergence = Convergence::new(vectors, v);
            loop {
                self.mu_step.copy_from_slice(target);
                self.equations.subtract_product(&reached, v, &mut self.mu_step);
                self.equations.solve(&mut self.mu_step);
                change.fill(0.0);
                self.equations.add_transpose(&self.jacobian, &self.mu_step, &mut change);
                v.iter_mut().zip(&change).for_each(|(v, change)| *v += change);
                if convergence.arrived(vectors, &change, v)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Iterate (4.5) from the start again, with other rows or another metric.
    fn iterate_again(
        &mut self,
        system: &dyn System,
        (t, target): (f64, &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<(), Unconverged> {
        x.copy_from_slice(&self.start);
        system.invariant_values(t, x, values, work);
        cost.invariants += 1;
        self.equations.factor_in(&self.jacobian, &self.roots, &[]);
        self.stopping.restart();
        self.iterate(system, (t, target), x, values, work, cost)
    }

    /// Include or exclude these rows.
    pub(crate) fn set_active(&mut self, rows: &[usize], active: bool) {
        self.equations.set_active(rows, active);
        self.stopping.set_active(rows, active);
    }

    /// Iterate (4.5) from the start and F there.
    fn iterate(
        &mut self,
        system: &dyn System,
        (t, target): (f64, &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<(), Unconverged> {
        self.mu.fill(0.0);
        while !self.stopping.arrived(values, target, Off::NOTHING)? {
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
