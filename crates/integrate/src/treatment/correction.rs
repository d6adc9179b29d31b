//! `corrected`: one Gauss–Newton step towards the invariants after each accepted
//! step, in the metric of the step's own error. It removes the most likely error of
//! the state x̃, given that ΔF = F(x̃) − F₀ was found there: a Kalman update with
//! W = diag(w²) as the covariance of the state and R as that of F. With the
//! constraints and the hidden ones, C, and H and the integrals, B, along them,
//! D = (C; B),
//!
//! d₁ = W Cᵀ(C W Cᵀ + R_C)⁻¹ ΔF_C,
//! d₂ = W Dᵀ(D W Dᵀ + R)⁻¹ (0, ΔF_B − B d₁) · min(1, limit/ν),
//! x = x̃ − d₁ − d₂.
//!
//! Both solves are one elimination with the constraints first. w comes from the
//! step's error estimate, and R_i = (u (Σ_j |∂_jF_i x̃_j| + |F₀_i|))² is the
//! round-off of F_i, so the state does not jump near a critical point of an
//! invariant, such as that of the energy at rest. The innovation ν is the number of
//! standard deviations by which H and the integrals are off; the limit bounds the
//! effect of an error that is not an error of the step.
//!
//! The estimate does not include the rounding of forces that cancel. At rest that
//! is all that moves: a hidden constraint is then off by as much as its own terms,
//! and positions, as uncertain relative to their size as momenta to theirs, would
//! be moved by as much of their size. But a position is off by no more than its
//! momentum made of it. So if a hidden constraint is off by more standard
//! deviations than are plausible, momenta are taken to be that uncertain: all that
//! are in hidden constraints, as those of a chain have to give way together.
//!
//! A relative ε on the diagonal of the rows that are not constraints is needed
//! where they lose rank, as on a conical pendulum; on constraints it would stop the
//! correction of the long modes of a chain.
//!
//! The step keeps the order of the map before it: ΔF is of the size of the local
//! error, and so is the move.

use super::derivative::{SecondDerivative, Tangents};
use super::normal_equations::{NormalEquations, Regularisation};
use crate::cost::Cost;
use crate::scales::UNIT_ROUND_OFF;
use crate::system::{GroupKind, Place, System, Vectors};
use crate::vector::max_or_nan;
use holonome_linear::dense::REGULARISATION;

/// Number of corrections of a state within a step. Each leaves the square of a distance, relative
/// to the state: after an interpolant with an error of 1e-4, two leave 1e-16.
pub const CORRECTIONS_WITHIN: usize = 2;

/// Largest plausible innovation, in standard deviations, of a state of `vectors` vectors: ten for a
/// few vectors whose errors are independent, and √n for many whose errors have one cause, and add
/// up.
pub fn largest_innovation(vectors: usize) -> f64 {
    (100.0 + vectors as f64).sqrt()
}

/// Scratch of the correction.
pub struct Correction {
    /// True if the innovation of the constraints counts.
    claims: bool,
    equations: NormalEquations,
    jacobian: Vec<f64>,
    mu: Vec<f64>,
    roots: Vec<f64>,
    noise: Vec<f64>,
    concerned: Vec<bool>,
}

impl Correction {
    /// Correction of the states of `system`.
    pub fn new(system: &dyn System) -> Correction {
        let (invariants, dim) = (system.invariants(), system.dim());
        Correction {
            claims: constraints_are_claims(system.vectors()),
            equations: NormalEquations::new(invariants, dim, Regularisation::Shift(REGULARISATION)),
            jacobian: vec![0.0; invariants.nonzeros()],
            mu: vec![0.0; invariants.count],
            roots: vec![0.0; dim],
            noise: vec![0.0; invariants.count],
            concerned: vec![false; dim],
        }
    }

    /// Correct `x` once, or [more often](CORRECTIONS_WITHIN) and without a limit within a step;
    /// `weights` are w² of its vectors. `values` receives F at the result, `deviations` that of
    /// every group. Returns ν², the larger one where constraints count, too.
    pub fn apply(
        &mut self,
        system: &dyn System,
        (t, target, weights): (f64, &[f64], &[f64]),
        place: Place,
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> f64 {
        cost.count_corrections(1);
        let (limit, passes) = match place {
            Place::End => (largest_innovation(weights.len()), 1),
            Place::Within => (f64::INFINITY, CORRECTIONS_WITHIN),
        };
        let mut innovation = 0.0;
        for _ in 0..passes {
            innovation = self.pass(system, (t, target, weights), limit, x, values, work);
        }
        system.monitor(t, target, x, values, deviations, work);
        innovation
    }

    /// Correct `x` once with this limit of the innovation; `values` is scratch. Returns ν².
    fn pass(
        &mut self,
        system: &dyn System,
        (t, target, weights): (f64, &[f64], &[f64]),
        limit: f64,
        x: &mut [f64],
        values: &mut [f64],
        work: &mut [f64],
    ) -> f64 {
        self.measure(system, (t, target), x, values, work);
        if self.mu.iter().all(|residual| *residual == 0.0) {
            return 0.0;
        }
        self.factor(system, weights);
        let [constraints, others] = self.equations.solve_limited(&mut self.mu, limit);
        self.equations.subtract_transpose(&self.jacobian, &self.mu, x);
        if self.claims { max_or_nan(constraints, others) } else { others }
    }

    /// Compute DF, ΔF and its round-off at `x`.
    fn measure(
        &mut self,
        system: &dyn System,
        (t, target): (f64, &[f64]),
        x: &[f64],
        values: &mut [f64],
        work: &mut [f64],
    ) {
        system.invariant_values(t, x, values, work);
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        for i in 0..self.mu.len() {
            self.mu[i] = values[i] - target[i];
            self.noise[i] = round_off(&self.equations, &self.jacobian, x, target[i], i);
        }
    }

    /// Factor D W Dᵀ + R with the weights w² of the vectors.
    fn factor(&mut self, system: &dyn System, weights: &[f64]) {
        system.vectors().spread_roots(weights, &mut self.roots);
        widen(system, &self.jacobian, &self.noise, &self.mu, &mut self.roots, &mut self.concerned);
        self.equations.factor_in(&self.jacobian, &self.roots, &self.noise);
    }

    /// Correct tangent vectors at `x`, the state that a step has reached: with d = W Dᵀμ and
    /// N = D W Dᵀ + R, N μ = ΔF, they become
    ///
    /// v − W δDᵀμ − W Dᵀδμ,   N δμ = D v − δF₀ − δD d − D W δDᵀμ.
    ///
    /// A correction that is limited is the mean of this one and of that of the constraints alone,
    /// with the limit's factor as the weight, which is frozen as the metric is.
    pub fn differentiate(
        &mut self,
        system: &dyn System,
        (t, target, weights): (f64, &[f64], &[f64]),
        x: &[f64],
        mut tangents: Tangents,
        second: SecondDerivative,
        work: &mut [f64],
    ) {
        let (m, limit) = (self.mu.len(), largest_innovation(weights.len()));
        self.measure(system, (t, target), x, &mut vec![0.0; m], work);
        let residuals = self.mu.clone();
        self.factor(system, weights);
        let [_, innovation] = self.equations.solve_limited(&mut self.mu, f64::INFINITY);
        let before = tangents.vectors.to_vec();
        self.differentiate_solved((t, x), &mut tangents, second);
        if innovation <= limit * limit {
            return;
        }
        let corrected = system.invariants().corrected_rows();
        let others: Vec<usize> =
            (system.invariants().constraints..m).filter(|&row| corrected[row]).collect();
        let full = tangents.vectors.to_vec();
        tangents.vectors.copy_from_slice(&before);
        self.mu.copy_from_slice(&residuals);
        self.equations.set_active(&others, false);
        self.equations.factor_in(&self.jacobian, &self.roots, &self.noise);
        self.equations.solve(&mut self.mu);
        self.differentiate_solved((t, x), &mut tangents, second);
        self.equations.set_active(&others, true);
        let factor = limit / innovation.sqrt();
        for (v, full) in tangents.vectors.iter_mut().zip(full) {
            *v += factor * (full - *v);
        }
    }

    /// Correct tangent vectors at `x` for the factored equations and their solution μ.
    fn differentiate_solved(
        &mut self,
        (t, x): (f64, &[f64]),
        tangents: &mut Tangents,
        second: SecondDerivative,
    ) {
        let (mut moved, mut derivative) = (vec![0.0; x.len()], self.jacobian.clone());
        let equations = &mut self.equations;
        equations.add_transpose(&self.jacobian, &self.mu, &mut moved);
        for (v, target) in tangents.each(x.len(), self.mu.len()) {
            second(t, x, v, &mut derivative);
            equations.subtract_transpose(&derivative, &self.mu, v);
            let mut step: Vec<f64> = target.to_vec();
            equations.subtract_product(&self.jacobian, v, &mut step);
            step.iter_mut().for_each(|step| *step = -*step);
            equations.subtract_product(&derivative, &moved, &mut step);
            equations.solve(&mut step);
            equations.subtract_transpose(&self.jacobian, &step, v);
        }
    }
}

/// True if the constraints on states of these vectors are claims about the motion, as those of a
/// vector field are. Those of a Hamiltonian make their own forces, and hold for that reason.
pub fn constraints_are_claims(vectors: &Vectors) -> bool {
    vectors.conjugates() == 0
}

/// √R of row `i` of F at `x`: R itself overflows where F is near the root of the largest number.
pub fn round_off(
    equations: &NormalEquations,
    jacobian: &[f64],
    x: &[f64],
    target: f64,
    i: usize,
) -> f64 {
    // ε of the machine is 2u.
    equations.round_off(jacobian, x, target, i) * (UNIT_ROUND_OFF / f64::EPSILON)
}

/// Largest factor of w² by which momenta are widened.
pub const MOST_WIDENED: f64 = 1e100;

/// Least w of a vector relative to the largest of its family, where momenta are widened. Forces
/// that cancel at a joint act on both its members with one size, and so does their rounding;
/// members that it has not reached yet would be immovable beside those that it has.
pub const NEIGHBOURS_FLOOR: f64 = 1e-3;

/// Widen the momenta in hidden constraints enough to explain their residuals, if one is off by more
/// standard deviations than are plausible. `roots` is w of every component, `noise` √R of every
/// row, and `concerned` is scratch.
pub fn widen(
    system: &dyn System,
    jacobian: &[f64],
    noise: &[f64],
    residuals: &[f64],
    roots: &mut [f64],
    concerned: &mut [bool],
) {
    let (invariants, vectors) = (system.invariants(), system.vectors());
    let limit = largest_innovation(vectors.count()).powi(2);
    let momenta = roots.len() / 2;
    let hidden = || {
        let groups = invariants.groups.iter().filter(|group| group.kind == GroupKind::Hidden);
        groups.flat_map(|group| group.members.rows().map(|(row, _)| row))
    };
    // The square of a residual and that of the largest plausible one, in a unit in which neither
    // overflows.
    let squares = |row: usize, roots: &[f64]| {
        let terms = || invariants.row(row).entries().map(|(p, column)| jacobian[p] * roots[column]);
        let largest = terms()
            .chain([residuals[row], noise[row]])
            .fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let per_unit = 1.0 / power_of_two(largest);
        let square = |x: f64| (x * per_unit) * (x * per_unit);
        (square(residuals[row]), limit * (terms().map(square).sum::<f64>() + square(noise[row])))
    };
    let is_off = |row: usize, roots: &[f64]| {
        let (found, believed) = squares(row, roots);
        found > believed
    };
    if !hidden().any(|row| is_off(row, roots)) {
        return;
    }
    concerned.fill(false);
    for (_, column) in hidden().flat_map(|row| invariants.row(row).entries()) {
        concerned[column] |= column >= momenta;
    }
    let is_concerned = |vector: &usize| concerned[vectors.components_of(*vector)].contains(&true);
    for family in vectors.families() {
        let root = |vector: usize| {
            vectors.components_of(vector).next().map_or(0.0, |component| roots[component])
        };
        let floor = NEIGHBOURS_FLOOR
            * family.vectors.clone().filter(is_concerned).map(root).fold(0.0, f64::max);
        for vector in family.vectors.clone().filter(is_concerned) {
            roots[vectors.components_of(vector)]
                .iter_mut()
                .for_each(|root| *root = root.max(floor));
        }
    }
    let ratio = |row: usize| {
        let (found, believed) = squares(row, roots);
        found / believed
    };
    let widest = hidden().map(ratio).fold(1.0, f64::max).min(MOST_WIDENED).sqrt();
    for vector in (0..vectors.count()).filter(is_concerned) {
        roots[vectors.components_of(vector)].iter_mut().for_each(|root| *root *= widest);
    }
}

/// Power of two next below a number, of which it is a unit without rounding; 1 if there is none.
fn power_of_two(x: f64) -> f64 {
    let power = f64::from_bits(x.to_bits() & f64::INFINITY.to_bits());
    if (f64::MIN_POSITIVE..1.0 / f64::MIN_POSITIVE).contains(&power) { power } else { 1.0 }
}
