//! The field's Jacobian, from its formulas or by difference quotients.

use crate::scales::Vectors;
use crate::system::System;
use holonome_linear::pattern::Pattern;
use std::borrow::Cow;

/// Jacobian of a system's field.
pub(super) struct FieldJacobian<'a> {
    system: &'a dyn System,
    pattern: Cow<'a, Pattern>,
    /// True if the system computes it.
    is_known: bool,
}

impl<'a> FieldJacobian<'a> {
    pub fn new(system: &'a dyn System) -> FieldJacobian<'a> {
        let known = system.field_pattern();
        let full = || Cow::Owned(Pattern::dense(system.dim(), system.dim()));
        FieldJacobian {
            system,
            pattern: known.map_or_else(full, Cow::Borrowed),
            is_known: known.is_some(),
        }
    }

    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.system.work_len() + if self.is_known { 0 } else { 3 * self.system.dim() }
    }

    /// Compute the nonzeros at (t, x), where the field is `field`. `scales` are the squares of the
    /// vectors' scales. Returns the number of evaluations of the field.
    pub fn compute(
        &self,
        (t, h, x): (f64, f64, &[f64]),
        field: &[f64],
        scales: &[f64],
        values: &mut [f64],
        work: &mut [f64],
    ) -> u64 {
        if self.is_known {
            self.system.field_jacobian(t, x, values, work);
            // The derivative of |v| v, of a drag, is 0 · ∞ at rest. An iteration needs no exact one.
            values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
            return 0;
        }
        let n = x.len();
        let (point, rest) = work.split_at_mut(n);
        let (ahead, rest) = rest.split_at_mut(n);
        let (behind, work) = rest.split_at_mut(n);
        point.copy_from_slice(x);
        for j in 0..n {
            let reach = reach((j, h, x), field, scales, self.system.vectors());
            let mut at = |distance: f64, out: &mut [f64]| {
                point[j] = x[j] + distance;
                self.system.field(t, point, out, work);
                point[j]
            };
            // The distance as it is rounded.
            let across = at(reach, ahead) - at(-reach, behind);
            point[j] = x[j];
            for i in 0..n {
                values[i * n + j] = (ahead[i] - behind[i]) / across;
            }
        }
        2 * n as u64
    }
}

/// Distance of a difference quotient along a component: ε^⅓ of its vector's scale, which balances
/// truncation and rounding. A vector without a scale has that of its motion in a step, and without
/// a motion that of all others.
fn reach(
    (component, h, x): (usize, f64, &[f64]),
    field: &[f64],
    scales: &[f64],
    vectors: &Vectors,
) -> f64 {
    let vector = vectors.vector_of(component);
    let largest = |v: &[f64], of: std::ops::Range<usize>| {
        v[of].iter().fold(0.0, |largest: f64, v| largest.max(v.abs()))
    };
    let all = 0..x.len();
    let sizes = [
        scales[vector].sqrt(),
        h * largest(field, vectors.components_of(vector)),
        largest(x, all),
        1.0,
    ];
    f64::EPSILON.cbrt() * sizes.into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
}
