//! Corrections that do not bring a constraint nearer: where the constraints lose rank or contradict
//! each other, one Gauss-Newton step after each step leads nowhere, as the iteration of a
//! projection does.
//!
//! A correction leaves about the square of a residual, of which nothing is visible after steps that
//! are not far too long. A constraint that is far off nevertheless is corrected once more, for a
//! trial: if it stays where it is, the run fails. Quantities that are limited on purpose, H and
//! integrals, are not checked. Nor is a hidden constraint that changes its constraint in a step by
//! no more than rounding: at rest its terms are rounding themselves.

use super::Engine;
use super::rates::UNSEEN;
use crate::cost::Cost;
use crate::failure::Failure;
use crate::system::{GroupKind, Invariants, Place};
use crate::treatment::Treatment;
use holonome_arithmetic::square;

/// Part of its terms from which on a constraint is far off. A run whose steps end as far away is
/// slower because of the check, and has errors of a thousandth in every step.
const FAR: f64 = 1e-6;

/// Part of a residual above which a correction that leaves it has brought it no nearer.
const LEFT: f64 = 0.9;

/// True if one of these deviations of the groups is that of a constraint which is far off. `terms`
/// are the scales of the groups' terms and `h` is the length of a step, infinite if unknown. A
/// hidden constraint counts only if it moves the constraint of which it is the rate in a step: at
/// rest its own terms are rounding.
pub fn may_be_far(invariants: &Invariants, deviations: &[f64], terms: &[f64], h: f64) -> bool {
    let groups = &invariants.groups;
    let far = |k: usize| match groups[k].kind {
        _ if groups[k].monitored_only => false,
        GroupKind::Constraint => deviations[k] > FAR * terms[k],
        GroupKind::Hidden => {
            let of = groups[..k].iter().rposition(|group| group.name == groups[k].name);
            deviations[k] > FAR * terms[k]
                && of.is_none_or(|of| deviations[k] * h > UNSEEN * terms[of])
        }
        _ => false,
    };
    (0..deviations.len()).any(far)
}

/// Scratch of a trial.
#[derive(Default)]
pub(super) struct Trial {
    x: Vec<f64>,
    jacobian: Vec<f64>,
    values: Vec<f64>,
    deviations: Vec<f64>,
    sizes: Vec<f64>,
    /// Terms of every row of a constraint that is far off, 0 for the others.
    terms: Vec<f64>,
}

impl Engine<'_> {
    /// True if a constraint may be far off after corrections that left these deviations.
    pub(super) fn may_be_far(&self, deviations: &[f64]) -> bool {
        let corrects = matches!(self.treatment, Treatment::Correction(_));
        let h = self.step_length();
        corrects
            && may_be_far(
                self.system.invariants(),
                &deviations[..self.groups],
                &self.state.terms,
                h,
            )
    }

    /// Fail if a constraint is far off at x₁, the result of a step of the length `h`, and another
    /// correction leaves it there.
    pub(super) fn check_met<E>(&mut self, t1: f64, h: f64) -> Result<(), Failure<E>> {
        if !self.may_be_far(&self.deviations) {
            return Ok(());
        }
        let Treatment::Correction(correction) = &mut self.treatment else { return Ok(()) };
        let (system, vectors, trial) = (self.system, self.system.vectors(), &mut self.trial);
        let (invariants, target) = (system.invariants(), &self.state.target);
        trial.x.clone_from(&self.x1);
        trial.jacobian.resize(invariants.nonzeros(), 0.0);
        trial.values.resize(invariants.count, 0.0);
        trial.deviations.resize(self.groups, 0.0);
        trial.sizes.resize(system.dim(), 0.0);
        system.invariant_jacobian(t1, &self.x1, &mut trial.jacobian, &mut self.work);
        for (vector, size) in self.scales.sizes(vectors.count()).iter().enumerate() {
            let at = vectors.components_of(vector);
            let size = size.max(square(&self.x1[at.clone()])).sqrt();
            trial.sizes[at].fill(size);
        }
        let (held, rates) = (&self.held, &self.rates);
        let off = |values: &[f64], row: usize| (values[row] - target[row]).abs();
        trial.terms.clear();
        let terms_of = |row: usize| -> f64 {
            let term = |(p, column): (usize, usize)| trial.jacobian[p].abs() * trial.sizes[column];
            invariants.row(row).entries().map(term).sum()
        };
        for row in 0..invariants.constraints {
            let terms = terms_of(row);
            let unseen =
                rates.constraint(row).map_or(0.0, |constraint| UNSEEN * terms_of(constraint) / h);
            let far = held[row] && off(&self.values, row) > (FAR * terms).max(unseen);
            // A row without a gradient is measured by its value.
            let terms = if terms > 0.0 { terms } else { 1.0 };
            trial.terms.push(if far { terms } else { 0.0 });
        }
        // The row that is farthest off, in units of its terms.
        let worst = |values: &[f64], terms: &[f64]| -> Option<(usize, f64)> {
            let rows = (0..invariants.constraints).filter(|&row| terms[row] > 0.0);
            rows.map(|row| (row, off(values, row) / terms[row])).max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let Some((_, before)) = worst(&self.values, &trial.terms) else { return Ok(()) };
        let at = (t1, &target[..], self.scales.weights(vectors.count()));
        let (values, deviations) = (&mut trial.values, &mut trial.deviations);
        correction.apply(
            system,
            at,
            Place::End,
            &mut trial.x,
            values,
            deviations,
            &mut self.work,
            &mut Cost::default(),
        );
        let Some((row, after)) = worst(&trial.values, &trial.terms) else { return Ok(()) };
        if after <= LEFT * before {
            return Ok(());
        }
        let gradient =
            trial.jacobian[invariants.row(row).range()].iter().map(|d| d * d).sum::<f64>().sqrt();
        let residual = off(&self.values, row) / if gradient > 0.0 { gradient } else { 1.0 };
        Err(Failure::CorrectionFails {
            t: t1,
            residual,
            constraint: invariants.row_name(row).to_string(),
        })
    }
}
