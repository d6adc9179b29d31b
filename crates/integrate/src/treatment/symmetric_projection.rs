//! `symmetric-projection`: with Φ_h the map of the base scheme and D = DF,
//!
//! x̃₀ = x₀ + W D(x₀)ᵀμ               perturbation,
//! x̃₁ = Φ_h(x̃₀)                      base step,                           (1)
//! x₁ = x̃₁ + W D(x₁)ᵀμ,  F(x₁) = F₀  projection,
//!
//! with the same μ before and after the base step. Exchanging x₀ with x₁, h with −h
//! and μ with −μ turns (1) into the same equations with Φ_{−h}⁻¹ for Φ_h: the step
//! is symmetric if its base is, which standard projection is not. It has the order
//! of its base, because at the exact solution (1) fails by the local error only, so
//! that μ is of that size.
//!
//! The equations are solved for (x₁, μ) by a simplified Newton iteration. The
//! unknown x₁ is moved by μ and by what it still lacks, δ = x̃₁ + W D(x₁)ᵀμ − x₁,
//! so that
//!
//! Δμ = −(D(x₀) W D(x₀)ᵀ + D(x̃₁) W D(x̃₁)ᵀ)⁻¹ (F(x₁) − F₀ + D(x₁)δ),      (2)
//! x₁ ← Φ_h(x₀ + W D(x₀)ᵀμ) + W D(x₁)ᵀμ,
//!
//! where x̃₁ in the matrix is that of μ = 0. The matrix stands for D(x₁)(Φ_h'(x̃₀)
//! W D(x₀)ᵀ + W D(x₁)ᵀ). Invariants of the field around their level set have
//! D(x₁)Φ_h' = D(x₀) but for the local error, so each iteration gains as many
//! digits as the local error has. For invariants that are constant on the level set
//! only it gains O(h), as the source's matrix 2D(x₀)D(x₀)ᵀ does for all. Rows of
//! D(x₀) that depend on others are left out: where the rank is constant, μ then
//! lacks a null vector that D(x₀)ᵀ and D(x₁)ᵀ have in common, and (1) has the
//! solution of least norm.
//!
//! W is 1, as in the source, or, where all vectors have masses m, h²/m for
//! positions and m for momenta: bodies then get changes of velocity, so that light
//! ones beside heavy ones stay where they are. Unlike the errors of steps, the
//! metric of the standard projection, this W is the same for the step back.

use super::derivative::{BaseDerivative, Convergence, NoDerivative, SecondDerivative, Tangents};
use super::normal_equations::{NormalEquations, Regularisation, stack};
use super::squared_distance;
use super::stopping::{Off, Stopping, Unconverged};
use crate::cost::Cost;
use crate::scales::{Role, Scales, Vectors, set_norms};
use crate::system::{Invariants, System};

/// Reason why a step has no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepFailure<E> {
    /// The base map has no result.
    Base(E),
    /// The iteration for μ did not converge.
    Unconverged(Unconverged),
}

/// Scratch of a step.
pub struct SymmetricProjection {
    /// D(x₀)D(x₀)ᵀ, which shows dependent rows.
    at_start: NormalEquations,
    /// The matrix of (2).
    both: NormalEquations,
    stopping: Stopping,
    /// Squared scales of the vectors.
    sizes: Vec<f64>,
    /// D(x₀).
    start_jacobian: Vec<f64>,
    /// D at the last x₁.
    jacobian: Vec<f64>,
    /// Both, side by side.
    stacked: Vec<f64>,
    mu: Vec<f64>,
    mu_step: Vec<f64>,
    /// x̃₀.
    start: Vec<f64>,
    /// True if W is that of the masses, if they are known.
    by_mass: bool,
    /// w of every component, twice, for the states of both ends; empty if W is 1.
    roots: Vec<f64>,
    /// W D(x₁)ᵀμ with D of the iterate before, by which x₁ was moved.
    moved: Vec<f64>,
    /// δ.
    lack: Vec<f64>,
    distance: f64,
}

impl SymmetricProjection {
    /// Projection of the states of `system`; a `tolerance` below round-off stands for round-off.
    /// With `by_mass`, W is that of the masses. `by_size` chooses W.
    pub fn new(system: &dyn System, tolerance: f64, by_mass: bool) -> SymmetricProjection {
        let (invariants, dim) = (system.invariants(), system.dim());
        let entries = invariants.nonzeros();
        SymmetricProjection {
            at_start: NormalEquations::new(invariants, dim, Regularisation::LeastNorm),
            both: NormalEquations::stacked(invariants, dim, Regularisation::LeastNorm),
            stopping: Stopping::new(invariants, dim, tolerance),
            sizes: Vec::new(),
            start_jacobian: vec![0.0; entries],
            jacobian: vec![0.0; entries],
            stacked: vec![0.0; 2 * entries],
            mu: vec![0.0; invariants.count],
            mu_step: vec![0.0; invariants.count],
            start: vec![0.0; dim],
            by_mass,
            roots: Vec::new(),
            moved: vec![0.0; dim],
            lack: vec![0.0; dim],
            distance: 0.0,
        }
    }

    /// Step from `x0` at t₀ to `x1` at t₁. `base` applies Φ_h: it reads x̃₀, writes x̃₁ and counts
    /// the cost. `values` receives F at the result.
    ///
    /// # Errors
    /// The base map's own; and if the iteration gets no nearer.
    pub fn step<E>(
        &mut self,
        system: &dyn System,
        (t0, t1, h): (f64, f64, f64),
        (target, scales): (&[f64], &Scales),
        x0: &[f64],
        x1: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
        mut base: impl FnMut(&[f64], &mut [f64], &mut [f64], &mut Cost) -> Result<(), E>,
    ) -> Result<(), StepFailure<E>> {
        self.mu.fill(0.0);
        self.lack.fill(0.0);
        self.distance = 0.0;
        self.start.copy_from_slice(x0);
        base(&self.start, x1, work, cost).map_err(StepFailure::Base)?;
        self.evaluate(system, t1, x1, values, work, cost);
        let (equations, vectors) = ((&self.at_start, &self.jacobian[..]), system.vectors());
        // A body at rest, or at the origin, is moved by what others need, and no more exactly.
        let sizes = scales.sizes(vectors.count());
        set_norms(vectors, sizes, &scales.masses, 0.0, &mut self.sizes);
        self.stopping.begin(equations, target, (x1, h), (vectors, &self.sizes));
        if self.arrived(values, target, Off::NOTHING)? {
            return Ok(());
        }
        system.invariant_jacobian(t0, x0, &mut self.start_jacobian, work);
        cost.jacobian += 1;
        self.weigh(vectors, &scales.masses, h);
        self.factor(system.invariants());
        loop {
            // (2)
            for (step, (f, target)) in self.mu_step.iter_mut().zip(values.iter().zip(target)) {
                *step = target - f;
            }
            self.at_start.subtract_product(&self.jacobian, &self.lack, &mut self.mu_step);
            self.both.solve(&mut self.mu_step);
            for (mu, step) in self.mu.iter_mut().zip(&self.mu_step) {
                *mu += step;
            }
            self.start.copy_from_slice(x0);
            self.at_start.add_transpose(&self.start_jacobian, &self.mu, &mut self.start);
            base(&self.start, x1, work, cost).map_err(StepFailure::Base)?;
            self.moved.fill(0.0);
            self.at_start.add_transpose(&self.jacobian, &self.mu, &mut self.moved);
            for (x, moved) in x1.iter_mut().zip(&self.moved) {
                *x += moved;
            }
            self.evaluate(system, t1, x1, values, work, cost);
            cost.newton_iterations += 1;
            cost.linear_solves += 1;
            let lack = self.find_lack();
            if self.arrived(values, target, lack)? {
                // δ has no more use.
                self.lack
                    .iter_mut()
                    .zip(self.start.iter().zip(x0))
                    .for_each(|(d, (start, x0))| *d = start - x0);
                self.distance =
                    squared_distance(vectors, scales.sizes(vectors.count()), &self.lack);
                return Ok(());
            }
        }
    }

    /// Make the step from `x0` at t₀ to `x1` at t₁ with tangent vectors: the derivatives of (1),
    ///
    /// v₁ = Φ_h'(x̃₀)(v₀ + W δD₀ᵀμ + W D₀ᵀδμ) + W δD₁ᵀμ + W D₁ᵀδμ,   D₁ v₁ = δF₀,
    ///
    /// are solved for (v₁, δμ) by the iteration that solves (1).
    ///
    /// # Errors
    /// The base map's own; and if an iteration gets no nearer.
    pub fn differentiate(
        &mut self,
        system: &dyn System,
        times: (f64, f64, f64),
        (target, scales): (&[f64], &Scales),
        (x0, x1): (&[f64], &mut [f64]),
        mut tangents: Tangents,
        base: BaseDerivative,
        second: SecondDerivative,
        work: &mut [f64],
    ) -> Result<(), NoDerivative> {
        let ((t0, t1, h), n, m) = (times, x0.len(), self.mu.len());
        let (mut values, cost) = (vec![0.0; m], &mut Cost::default());
        let step = |x: &[f64], x1: &mut [f64], _: &mut [f64], _: &mut Cost| base(x, x1, &mut []);
        let made =
            self.step(system, times, (target, scales), x0, x1, &mut values, work, cost, step);
        made.map_err(|failure| match failure {
            StepFailure::Base(reason) => NoDerivative::Base(reason),
            StepFailure::Unconverged(_) => NoDerivative::Untreated,
        })?;
        // A step that met its targets by itself has no matrix yet.
        let vectors = system.vectors();
        system.invariant_jacobian(t0, x0, &mut self.start_jacobian, work);
        system.invariant_jacobian(t1, x1, &mut self.jacobian, work);
        self.weigh(vectors, &scales.masses, h);
        self.factor(system.invariants());
        self.start.copy_from_slice(x0);
        self.at_start.add_transpose(&self.start_jacobian, &self.mu, &mut self.start);
        let start = self.start.clone();
        let [mut derivative, mut moved, mut reached] =
            [self.jacobian.clone(), vec![0.0; n], vec![0.0; n]];
        for (v, target) in tangents.each(n, m) {
            second(t0, x0, v, &mut derivative);
            self.at_start.add_transpose(&derivative, &self.mu, v);
            let (mut v1, mut convergence) = (v.to_vec(), Convergence::new(vectors, v));
            base(&start, &mut reached, &mut v1).map_err(NoDerivative::Base)?;
            let mut delta = vec![0.0; m];
            loop {
                // D₁ moves with v₁, which moves at once as if Φ_h' were 1.
                second(t1, x1, &v1, &mut derivative);
                moved.copy_from_slice(v);
                self.at_start.add_transpose(&self.start_jacobian, &delta, &mut moved);
                base(&start, &mut reached, &mut moved).map_err(NoDerivative::Base)?;
                self.at_start.add_transpose(&derivative, &self.mu, &mut moved);
                self.at_start.add_transpose(&self.jacobian, &delta, &mut moved);
                self.mu_step.copy_from_slice(target);
                self.at_start.subtract_product(&self.jacobian, &moved, &mut self.mu_step);
                self.both.solve(&mut self.mu_step);
                delta.iter_mut().zip(&self.mu_step).for_each(|(delta, step)| *delta += step);
                self.lack.iter_mut().zip(moved.iter().zip(&v1)).for_each(|(d, (a, b))| *d = a - b);
                self.at_start.add_transpose(&self.jacobian, &self.mu_step, &mut self.lack);
                self.at_start.add_transpose(&self.start_jacobian, &self.mu_step, &mut self.lack);
                v1.iter_mut().zip(&self.lack).for_each(|(v1, lack)| *v1 += lack);
                if convergence.arrived(vectors, &self.lack, &v1)? {
                    break;
                }
            }
            v.copy_from_slice(&v1);
        }
        Ok(())
    }

    /// Square of the [distance](super::squared_distance) by which the last step was moved before
    /// the base map, and about as far after it.
    pub fn moved(&self) -> f64 {
        self.distance
    }

    /// Evaluate F and D at x₁.
    fn evaluate(
        &mut self,
        system: &dyn System,
        t1: f64,
        x1: &[f64],
        values: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) {
        system.invariant_values(t1, x1, values, work);
        system.invariant_jacobian(t1, x1, &mut self.jacobian, work);
        cost.invariants += 1;
        cost.jacobian += 1;
    }

    /// Factor the matrix of (2).
    fn factor(&mut self, invariants: &Invariants) {
        let one = self.roots.len() / 2;
        self.at_start.factor_in(&self.start_jacobian, &self.roots[..one], &[]);
        self.both.keep_rows_of(&self.at_start);
        stack(invariants, &self.start_jacobian, &self.jacobian, &mut self.stacked);
        self.both.factor_in(&self.stacked, &self.roots, &[]);
    }

    /// Compute w for a step of the length `h` of vectors with these masses.
    fn weigh(&mut self, vectors: &Vectors, masses: &[f64], h: f64) {
        let moving = &masses[..masses.len().min(2 * vectors.conjugates())];
        if !self.by_mass
            || moving.is_empty()
            || !moving.iter().all(|mass| *mass > 0.0 && mass.is_finite())
        {
            return;
        }
        let dim = vectors.dim();
        self.roots.resize(2 * dim, 0.0);
        for family in vectors.families() {
            for vector in family.vectors.clone() {
                let root = masses[vector].sqrt();
                let root = if family.role == Role::Position { h.abs() / root } else { root };
                self.roots[vectors.components_of(vector)].fill(root);
            }
        }
        self.roots.copy_within(..dim, dim);
        self.at_start.set_metric(&self.roots[..dim]);
    }

    /// Compute δ and its size.
    fn find_lack(&mut self) -> Off {
        self.lack.fill(0.0);
        self.at_start.add_transpose(&self.jacobian, &self.mu, &mut self.lack);
        for (lack, moved) in self.lack.iter_mut().zip(&self.moved) {
            *lack -= moved;
        }
        self.mu_step.fill(0.0);
        self.at_start.subtract_product(&self.jacobian, &self.lack, &mut self.mu_step);
        self.stopping.off(&self.lack, &self.mu_step)
    }

    fn arrived<E>(
        &mut self,
        values: &[f64],
        target: &[f64],
        lack: Off,
    ) -> Result<bool, StepFailure<E>> {
        self.stopping.arrived(values, target, lack).map_err(StepFailure::Unconverged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scales::Kept;
    use crate::system::{FnSystem, Group, GroupKind};

    /// The Kepler problem in the plane, with its angular momentum L and its Laplace vector.
    fn kepler() -> FnSystem<'static> {
        let radius = |x: &[f64]| x[0].hypot(x[1]);
        FnSystem::new(4, move |_, x, dx| {
            let cube = radius(x).powi(3);
            dx.copy_from_slice(&[x[2], x[3], -x[0] / cube, -x[1] / cube]);
        })
        .with_invariants(
            Invariants::dense(4, 3, 0, vec![Group::rows("I", GroupKind::Integral, 0..3)]),
            move |_, x, f| {
                f[0] = x[0] * x[3] - x[1] * x[2];
                f[1] = x[3] * f[0] - x[0] / radius(x);
                f[2] = -x[2] * f[0] - x[1] / radius(x);
            },
            move |_, x, df| {
                let (l, cube) = (x[0] * x[3] - x[1] * x[2], radius(x).powi(3));
                let (xx, xy, yy) = (x[0] * x[0] / cube, x[0] * x[1] / cube, x[1] * x[1] / cube);
                let rows = [
                    [x[3], -x[2], -x[1], x[0]],
                    [x[3] * x[3] - yy, xy - x[3] * x[2], -x[3] * x[1], l + x[3] * x[0]],
                    [xy - x[2] * x[3], x[2] * x[2] - xx, x[2] * x[1] - l, -x[2] * x[0]],
                ];
                df.copy_from_slice(rows.as_flattened());
            },
        )
    }

    /// The largest |x₁ − Φ_h(x₀ + D(x₀)ᵀμ) − D(x₁)ᵀμ| over |x₁| along a revolution in steps of
    /// Euler's method.
    fn worst_defect(tolerance: f64) -> f64 {
        let system = kepler();
        let (h, mut x0, mut target, mut work) =
            (0.5, [1.0, 0.0, 0.0, 1.8f64.sqrt()], [0.0; 3], [0.0; 8]);
        system.invariant_values(0.0, &x0, &mut target, &mut work);
        let mut projection = SymmetricProjection::new(&system, tolerance, false);
        let euler = |x: &[f64], x1: &mut [f64], work: &mut [f64], _: &mut Cost| -> Result<(), ()> {
            system.field(0.0, x, x1, work);
            for (x1, x) in x1.iter_mut().zip(x) {
                *x1 = x + h * *x1;
            }
            Ok(())
        };
        let add_transposed = |x: &[f64], mu: &[f64], out: &mut [f64]| {
            let mut df = [0.0; 12];
            system.invariant_jacobian(0.0, x, &mut df, &mut [0.0; 8]);
            for k in 0..4 {
                out[k] += df[k] * mu[0] + df[4 + k] * mu[1] + df[8 + k] * mu[2];
            }
        };
        let mut worst = 0.0f64;
        let kept = Kept { sizes: true, ..Kept::default() };
        let scales = Scales::new(system.vectors(), kept, Vec::new(), &x0);
        for _ in 0..140 {
            let (mut x1, mut values, mut cost) = (vec![0.0; 4], [0.0; 3], Cost::default());
            let times = (0.0, 0.0, h);
            projection
                .step(
                    &system,
                    times,
                    (&target, &scales),
                    &x0,
                    &mut x1,
                    &mut values,
                    &mut work,
                    &mut cost,
                    euler,
                )
                .unwrap();
            let (mut start, mut reached) = (x0.to_vec(), vec![0.0; 4]);
            add_transposed(&x0, &projection.mu, &mut start);
            euler(&start, &mut reached, &mut work, &mut cost).unwrap();
            add_transposed(&x1, &projection.mu, &mut reached);
            let size = x1.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            for (x1, reached) in x1.iter().zip(reached) {
                worst = worst.max((x1 - reached).abs() / size);
            }
            x0.copy_from_slice(&x1);
        }
        worst
    }

    #[test]
    fn a_step_meets_its_equations() {
        let (tight, loose) = (worst_defect(0.0), worst_defect(1e-6));
        println!("{tight:e} {loose:e}");
        // Where the iteration stagnates, up to a hundred roundings of x count as round-off.
        assert!(tight < 100.0 * f64::EPSILON, "{tight:e}");
        // F is within 1e-6 of its target after an iteration or two, at which x₁ may be 1e-5 from
        // where μ takes it.
        assert!(loose < 1e-6 && loose > 1e-9, "{loose:e}");
    }
}
