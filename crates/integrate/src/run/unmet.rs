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
use crate::vector::irregular;
use holonome_arithmetic::square;

/// Part of its terms from which on a constraint is far off. A run whose steps end as far away is
/// slower because of the check, and has errors of a thousandth in every step.
const FAR: f64 = 1e-6;

/// Part of a residual above which a correction that leaves it has brought it no nearer.
const LEFT: f64 = 0.9;

/// Part of its terms from which on a constraint that follows from the others counts as broken, and
/// ratio to what the others are off by.
const BROKEN: (f64, f64) = (1e-3, 1e3);

/// Relative change of the state by which the terms of such a constraint are measured.
const NUDGE: f64 = 1e-7;

/// Deviation, relative to its terms, of a constraint that follows from the others from which on it is
/// broken: the motion has gone through a configuration in which they are dependent, to a branch
/// that it does not allow. With it the least terms of a constraint that is imposed. `None` if none
/// is, as in a penalised run.
fn broken_from(invariants: &Invariants, deviations: &[f64], terms: &[f64]) -> Option<[f64; 2]> {
    let groups = invariants.groups.iter().zip(deviations.iter().zip(terms));
    let held = groups.filter(|(group, (_, terms))| {
        group.kind == GroupKind::Constraint && !group.monitored_only && **terms > 0.0
    });
    let held = held.map(|(_, (deviation, terms))| [deviation / terms, *terms]);
    let [off, least] = held.reduce(|a, b| [a[0].max(b[0]), a[1].min(b[1])])?;
    let (part, ratio) = BROKEN;
    Some([part.max(ratio * off), least])
}

/// Groups of constraints that were left out, as they follow from the others.
fn left_out(invariants: &Invariants) -> impl Iterator<Item = usize> {
    let groups = invariants.groups.iter().enumerate();
    let left_out = groups.filter(|(_, g)| g.kind == GroupKind::Constraint && g.monitored_only);
    left_out.map(|(k, _)| k)
}

/// True if a constraint that was left out may be broken; its own terms are not known.
fn may_be_broken(invariants: &Invariants, deviations: &[f64], terms: &[f64]) -> bool {
    let mut of = left_out(invariants).filter(|&k| k < deviations.len()).peekable();
    of.peek().is_some()
        && broken_from(invariants, deviations, terms)
            .is_some_and(|[from, least]| of.any(|k| deviations[k] > from * least))
}

/// True if one of these deviations of the groups is that of a constraint which is far off, or that
/// of one left out which does not follow from the others any more. `terms` are the scales of the
/// groups' terms and `h` is the length of a step, infinite if unknown. A hidden constraint counts
/// only if it moves the constraint of which it is the rate in a step: at
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
    (0..deviations.len()).any(far) || may_be_broken(invariants, deviations, terms)
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
    /// True if a constraint may be far off after steps that left these deviations.
    pub(super) fn may_be_far(&self, deviations: &[f64]) -> bool {
        let (invariants, terms) = (self.system.invariants(), &self.state.terms[..]);
        let (deviations, h) = (&deviations[..self.groups], self.step_length());
        match self.treatment {
            Treatment::Correction(_) => may_be_far(invariants, deviations, terms, h),
            _ => may_be_broken(invariants, deviations, terms),
        }
    }

    /// Fail if a constraint is far off at x₁, the result of a step of the length `h`, and another
    /// correction leaves it there; or if one that was left out is.
    pub(super) fn check_met<E>(&mut self, t1: f64, h: f64) -> Result<(), Failure<E>> {
        if !self.may_be_far(&self.deviations) {
            return Ok(());
        }
        self.check_left_out(t1)?;
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

    /// Fail if a constraint that was left out is broken at x₁.
    fn check_left_out<E>(&mut self, t1: f64) -> Result<(), Failure<E>> {
        let (system, trial) = (self.system, &mut self.trial);
        let (invariants, vectors) = (system.invariants(), system.vectors());
        let (deviations, terms) = (&self.deviations[..self.groups], &self.state.terms[..]);
        let Some([from, _]) = broken_from(invariants, deviations, terms)
            .filter(|_| may_be_broken(invariants, deviations, terms))
        else {
            return Ok(());
        };
        trial.sizes.resize(system.dim(), 0.0);
        vectors.spread_largest(&self.x1, &mut trial.sizes);
        trial.x.clone_from(&self.x1);
        for (i, (x, size)) in trial.x.iter_mut().zip(&trial.sizes).enumerate() {
            *x += NUDGE * size * irregular(i);
        }
        trial.values.resize(invariants.count, 0.0);
        system.invariant_values(t1, &trial.x, &mut trial.values, &mut self.work);
        let off = |group: usize| {
            let moved = invariants.groups[group].drift(&trial.values, &self.values);
            deviations[group] / (moved / NUDGE)
        };
        match left_out(invariants).find(|&group| off(group) > from) {
            Some(group) => Err(Failure::BranchLost {
                t: t1,
                residual: deviations[group],
                constraint: invariants.groups[group].name.clone(),
            }),
            None => Ok(()),
        }
    }
}
