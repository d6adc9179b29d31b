//! Claims watched along a run: what a treatment holds must be constant along the field, and the constraints must determine
//! their forces.
//!
//! Both are looked at now and then, at states that the run has come to. Tests at a run's start see random points of the
//! constraint set; a wall or a pulse that is met later only shows here.

use super::Engine;
use crate::failure::{Culprit, Failure};
use crate::linear::dense::ldl_factor;
use crate::method::Treatment;
use crate::plan::AdaptiveSteps;
use crate::state::{NEARLY_DEPENDENT, Singularity};
use crate::system::{GroupKind, System, all_finite};
use crate::treatment::correction::largest_innovation;

/// Steps between two looks, of which each costs a field and a Jacobian.
const STEPS_BETWEEN_LOOKS: u64 = 64;

/// A rate above this part of the terms that cancel in it is no rounding, also where forces of constraint are
/// ill-conditioned.
const FALSE: f64 = 1e-5;

/// Nor is one above this part of what the fastest of its kind would change: a velocity that is 0 comes out as the rounding
/// of others.
const NOTHING: f64 = 1e-9;

/// Nor is one that changes an invariant by less than this part of its terms in a step: at rest, where the forces cancel, all
/// velocities and accelerations are rounding, and there is no other to compare them with.
const UNSEEN: f64 = 1e3 * f64::EPSILON;

/// An innovation this many times beyond what is believed asks for a look at once.
const SURPRISE: f64 = 10.0;

/// A pivot below this belongs to a constraint whose force rounding decides, and with it the rate of every claim.
const DEPENDENT: f64 = 1e-6;

/// Up to this many constraints their independence is looked at.
const MOST_CONSTRAINTS: usize = 64;

/// Scratch for looking at claims.
pub(super) struct Claims {
    /// Whether anything is held; claims that are only watched are of no matter.
    holds: bool,
    next: u64,
    held: Vec<bool>,
    /// Whether a row is the hidden constraint of the row as far from the start as it is from the middle.
    hidden: Vec<bool>,
    jacobian: Vec<f64>,
    field: Vec<f64>,
    /// For every component the largest rate of its kind.
    fastest: Vec<f64>,
    values: Vec<f64>,
    /// The entries of DF by constraint and by hidden constraint, where both are there.
    products: Vec<(u32, u32, u32, u32)>,
    matrix: Vec<f64>,
    diagonal: Vec<f64>,
}

impl Claims {
    pub(super) fn new(treatment: Treatment, system: &dyn System, step: u64) -> Claims {
        // The field of feedback has the pull in it, whose rates are what it is for.
        let holds = !matches!(treatment, Treatment::Plain | Treatment::Feedback);
        let invariants = system.invariants();
        let looks = if invariants.count > 0 { system.dim() } else { 0 };
        let count = invariants.constraints / 2;
        let mut hidden = vec![false; invariants.count];
        if invariants.groups.iter().any(|group| group.kind == GroupKind::Hidden) {
            hidden[count..invariants.constraints].fill(true);
        }
        let mut products = Vec::new();
        if hidden.contains(&true) && count <= MOST_CONSTRAINTS && invariants.constraints == 2 * count {
            let degrees = system.dim() / 2;
            for i in 0..count {
                for at in invariants.row(count + i) {
                    let Some(q) = (invariants.column[at] as usize).checked_sub(degrees) else { continue };
                    for j in 0..count {
                        let same = invariants.row(j).find(|&other| invariants.column[other] as usize == q);
                        products.extend(same.map(|other| (i as u32, j as u32, at as u32, other as u32)));
                    }
                }
            }
        }
        Claims {
            holds: holds && looks > 0,
            next: next_look(step),
            held: invariants.corrected_rows(),
            hidden,
            jacobian: vec![0.0; if looks > 0 { invariants.nonzeros() } else { 0 }],
            field: vec![0.0; looks],
            fastest: vec![0.0; looks],
            values: vec![0.0; invariants.count],
            matrix: vec![0.0; if products.is_empty() { 0 } else { count * count }],
            diagonal: vec![0.0; if products.is_empty() { 0 } else { count }],
            products,
        }
    }
}

impl Claims {
    /// Steps from step `step` to the next look.
    pub(super) fn steps_to_look(&self, step: u64) -> u64 {
        self.next.saturating_sub(step).max(1)
    }
}

/// The step from which on to look again.
fn next_look(step: u64) -> u64 {
    (step / STEPS_BETWEEN_LOOKS + 1) * STEPS_BETWEEN_LOOKS
}

impl Engine<'_> {
    /// Looks at the claims at the state, if it is time.
    pub(super) fn watch_claims<E>(&mut self) -> Result<(), Failure<E>> {
        let expected = largest_innovation(self.system.vectors().count());
        let surprised = self.innovation > (SURPRISE * expected).powi(2);
        let due = surprised || self.state.step >= self.claims.next;
        if !due || (!self.claims.holds && self.claims.products.is_empty()) {
            return Ok(());
        }
        self.claims.next = next_look(self.state.step);
        let (t, x) = (self.state.t, &self.state.x);
        self.system.invariant_jacobian(t, x, &mut self.claims.jacobian, &mut self.work);
        let nearest = self.watch_independence();
        if self.claims.holds { self.watch_rates(nearest) } else { Ok(()) }
    }

    /// DF X at the state: 0 of what is constant. `nearest` says how near the constraints are to being dependent there.
    fn watch_rates<E>(&mut self, nearest: Singularity) -> Result<(), Failure<E>> {
        let (t, x, claims) = (self.state.t, &self.state.x, &mut self.claims);
        self.system.field(t, x, &mut claims.field, &mut self.work);
        if !all_finite(&claims.field) {
            return Ok(()); // The next step says so.
        }
        // What depends on the time itself has a rate of its own, which is not known here.
        let later = t + f64::EPSILON.sqrt() * t.abs().max(self.plan.t_end() - self.plan.t0);
        self.system.invariant_values(later, x, &mut claims.values, &mut self.work);
        self.system.vectors().spread_largest(&claims.field, &mut claims.fastest);
        let invariants = self.system.invariants();
        let fixed = |row: usize| claims.values[row] == self.state.values[row];
        let h = self.plan.fixed_step().unwrap_or(self.state.controller.h);
        let jacobian = &claims.jacobian;
        let size = |row: usize| -> f64 {
            invariants.row(row).map(|p| (jacobian[p] * x[invariants.column[p] as usize]).abs()).sum()
        };
        // Of a hidden constraint, by what it does to the constraint that it is the rate of.
        let unseen = |row: usize, rate: f64| match claims.hidden[row] {
            true => rate * h * h <= UNSEEN * size(row - invariants.constraints / 2),
            false => rate * h <= UNSEEN * size(row),
        };
        for row in (0..invariants.count).filter(|&row| claims.held[row] && fixed(row)) {
            let (mut rate, mut terms, mut fastest) = (0.0, 0.0, 0.0);
            for p in invariants.row(row) {
                let column = invariants.column[p] as usize;
                let term = claims.jacobian[p] * claims.field[column];
                rate += term;
                terms += term.abs();
                fastest += claims.jacobian[p].abs() * claims.fastest[column];
            }
            if rate.abs() > FALSE * terms && rate.abs() > NOTHING * fastest && !unseen(row, rate.abs()) {
                if nearest.pivot < DEPENDENT {
                    let constraint = invariants.row_name(nearest.row).to_string();
                    return Err(Failure::Dependent { t, constraint, pivot: nearest.pivot });
                }
                let claim = invariants.row_name(row).to_string();
                return Err(Failure::ClaimFails { t, claim, rate: rate.abs() / terms });
            }
        }
        Ok(())
    }

    /// Keeps the state at which the constraints were nearest to being dependent; gives how near they are here.
    fn watch_independence(&mut self) -> Singularity {
        let t = self.state.t;
        let nearest = self.least_pivot().map(|(row, pivot)| Singularity { pivot, t, row }).unwrap_or_default();
        if nearest.pivot < self.state.singularity.pivot {
            self.state.singularity = nearest;
        }
        nearest
    }

    /// What the step at the state has collapsed at: a constraint that is nearly dependent, or the vector with the largest
    /// error in an attempt of the length `h`.
    pub(super) fn culprit(&mut self, adaptive: &AdaptiveSteps, h: f64) -> Culprit {
        let (t, x) = (self.state.t, &self.state.x);
        if !self.claims.products.is_empty() {
            self.system.invariant_jacobian(t, x, &mut self.claims.jacobian, &mut self.work);
            if let Some((row, pivot)) = self.least_pivot().filter(|(_, pivot)| *pivot < NEARLY_DEPENDENT) {
                return Culprit::Constraint { name: self.system.invariants().row_name(row).to_string(), pivot };
            }
        }
        self.measure_attempt(adaptive, h);
        let relative =
            |vector: usize| match self.errors[vector] / self.state.scales.norms[vector].max(f64::MIN_POSITIVE) {
                error if error.is_nan() => f64::INFINITY,
                error => error,
            };
        let worst = (0..self.errors.len()).max_by(|&a, &b| relative(a).total_cmp(&relative(b)));
        Culprit::Vector { name: worst.map_or(String::new(), |vector| self.system.vector_name(vector)) }
    }

    /// The smallest pivot of G H_pp Gᵀ, scaled to a unit diagonal, with its row: near 0 the constraints do not determine
    /// their forces.
    fn least_pivot(&mut self) -> Option<(usize, f64)> {
        let claims = &mut self.claims;
        if claims.products.is_empty() {
            return None;
        }
        let n = self.system.invariants().constraints / 2;
        claims.matrix.fill(0.0);
        for &(i, j, a, b) in &claims.products {
            claims.matrix[i as usize * n + j as usize] += claims.jacobian[a as usize] * claims.jacobian[b as usize];
        }
        for (i, diagonal) in claims.diagonal.iter_mut().enumerate() {
            *diagonal = claims.matrix[i * n + i];
        }
        ldl_factor(&mut claims.matrix, n, 0.0);
        let pivot = |i: usize| match claims.matrix[i * n + i] {
            pivot if pivot.is_finite() => pivot / claims.diagonal[i],
            _ => 0.0,
        };
        (0..n).map(|i| (i, pivot(i))).min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
