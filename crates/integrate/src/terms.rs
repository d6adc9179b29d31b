//! Scale of the terms that cancel in an invariant, relative to which a drift is small or large.
//!
//! For a row F_i it is Σ_j |∂_jF_i| max(|x_j|, 10⁻⁶ max |x|) + |F_i(x)|, with the inner maximum
//! over the positions or over the momenta, as x_j is one: up to factors of order one the sum of the
//! absolute values of its terms. (The terms of a constraint y = 0 are its own rounding, and that of
//! the others.) It has the units of F_i, so that a drift relative to it means the same in any. For
//! H, components that are small have no floor: coordinates of other units would decide it. Along a
//! run the largest counts, as at rest at the origin all terms vanish, but only while the quantity
//! is kept: a run that blows up would else be measured against its own explosion. It is measured at
//! up to 128 of the outputs, and after 1, 2, 4, 8, … steps, so that runs that keep their ends alone
//! have a scale, too; for trajectories in lanes after 1, 4, 16, … equal steps, or at both ends of
//! adaptive ones as if every vector were as large as it has been.
//!
//! The *loss* of H or an integral is its deviation over its content at the same time: |T| + |H − T|
//! with T = ½ p·∂H/∂p for an energy, its terms for an integral, at least |F₀| and the mean of the
//! contents along the run: where a motion turns round, all of them may be 0. The scale above is
//! right for rounding; of a stiff spring or an angle of many turns it is far more than all of the
//! energy, which may then be lost unnoticed. The loss counts at the end, and where the deviation is
//! largest.

use crate::exact;
use crate::scales::Vectors;
use crate::system::{Group, GroupKind, System};
use holonome_arithmetic::{Real, products};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Number of samples of a run at which the terms are measured, evenly spread: their size changes
/// little.
const MEASURED: usize = 128;

/// Outputs among these, of `count` in all, at which the terms are measured; the first and the last
/// one of all are among them.
pub fn measured(outputs: Range<usize>, count: usize) -> impl Iterator<Item = usize> {
    let (every, last) = (count.div_ceil(MEASURED).max(1), count.saturating_sub(1));
    let spread = (outputs.start.next_multiple_of(every)..outputs.end.min(last)).step_by(every);
    spread.chain(outputs.contains(&last).then_some(last))
}

/// True if the terms are measured at output `index`.
pub fn is_measured(index: usize, count: usize) -> bool {
    measured(index..index + 1, count).next().is_some()
}

/// Number of steps from step `step` to the next one at which the terms are measured.
pub(crate) fn steps_to_measurement(step: u64) -> u64 {
    (step + 1).checked_next_power_of_two().map_or(u64::MAX, |next| next - step)
}

/// Least size of a component in a term, relative to the largest of its kind.
pub const FLOOR: f64 = 1e-6;

/// Length of the scratch of [`raise_terms`]. All that it needs is there, so that of a large model
/// it shares the scratch of its steps.
pub fn terms_work_len(system: &dyn System) -> usize {
    let invariants = system.invariants();
    invariants.nonzeros() + invariants.count + system.work_len().max(system.dim())
}

/// Part of the largest component of its kind that counts as rounding in the content of a quantity:
/// a thousand roundings of that component are less than a tenth of the content.
const ROUNDING: f64 = 1e4 * f64::EPSILON;

/// Loss up to which a quantity counts as kept: its terms then still tell its scale.
const KEPT: f64 = 0.1;

/// True if the loss of a group is known: it ought to be constant, and no part of the motion is held
/// on purpose.
pub fn has_loss(group: &Group) -> bool {
    !group.monitored_only && matches!(group.kind, GroupKind::Hamiltonian | GroupKind::Integral)
}

/// Floor of a component in the terms of a group, relative to the largest of its kind.
pub fn floor_of(kind: GroupKind) -> f64 {
    if kind == GroupKind::Hamiltonian { 0.0 } else { FLOOR }
}

/// Deviation of a quantity and its content, at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Content {
    #[serde(with = "exact::number")]
    deviation: f64,
    #[serde(with = "exact::number")]
    content: f64,
}

impl Content {
    fn loss(self, least: f64) -> f64 {
        if self.deviation > 0.0 { self.deviation / self.content.max(least) } else { 0.0 }
    }
}

/// Loss of a quantity along a run, as far as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Number of measured contents, and their sum.
    count: u64,
    #[serde(with = "exact::number")]
    sum: f64,
    last: Content,
    /// Content where the deviation was largest.
    largest: Content,
}

impl Loss {
    fn take(&mut self, now: Content) {
        self.count += 1;
        self.sum += now.content;
        self.last = now;
        if now.deviation > self.largest.deviation {
            self.largest = now;
        }
    }

    fn mean(&self) -> f64 {
        if self.count > 0 { self.sum / self.count as f64 } else { 0.0 }
    }

    /// Loss where it was measured last.
    pub fn last(&self) -> f64 {
        self.last.loss(self.mean())
    }

    /// Loss at the end, or where the deviation was largest.
    pub fn max(&self) -> f64 {
        self.last().max(self.largest.loss(self.mean()))
    }
}

/// Terms of one group at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermsNow {
    pub scale: f64,
    pub content: f64,
    pub deviation: f64,
}

impl TermsNow {
    /// Raise the scale of the group to that now, and take its loss. A scale that is not finite is
    /// left out.
    pub fn raise(self, has_loss: bool, scale: &mut f64, loss: &mut Loss) {
        let TermsNow { content, deviation, .. } = self;
        let judged = has_loss && content.is_finite() && deviation.is_finite();
        if judged {
            loss.take(Content { deviation, content });
        }
        let kept = !judged || loss.last() <= KEPT;
        if self.scale.is_finite() && (kept || *scale == 0.0) {
            *scale = scale.max(self.scale);
        }
    }
}

/// Row of F with its gradient, at one time.
pub struct TermsOfRow<R, E> {
    /// F.
    pub value: R,
    /// F₀.
    pub target: R,
    /// Components that F depends on, and its derivatives by them.
    pub entries: E,
}

impl<R: Real, E: Iterator<Item = (usize, R)> + Clone> TermsOfRow<R, E> {
    /// |F| and the sum of its terms, for components of these sizes.
    #[inline(always)]
    pub fn size(&self, size: impl Fn(usize) -> R) -> R {
        let entries = self.entries.clone();
        entries.fold(self.value.abs(), |sum, (column, entry)| {
            entry.abs().mul_add(size(column).abs(), sum)
        })
    }

    /// Content of an invariant of this kind at the state `x`; `sizes` are those of the largest
    /// components of their kind. Momenta begin at number `momenta`, if there are any.
    #[inline(always)]
    pub fn content(
        &self,
        (kind, momenta): (GroupKind, Option<usize>),
        x: impl Fn(usize) -> R,
        sizes: impl Fn(usize) -> R,
    ) -> R {
        let of_row = match momenta.filter(|_| kind == GroupKind::Hamiltonian) {
            Some(first) => {
                let terms = self.entries.clone().filter(|&(column, _)| column >= first);
                let twice = products(terms.map(|(column, entry)| (entry, x(column))));
                let kinetic = twice.map_or(self.value.constant(0.0), |twice| twice * 0.5);
                kinetic.abs() + (self.value - kinetic).abs()
            }
            None => self.size(x),
        };
        self.target.largest(of_row.largest(self.size(sizes) * ROUNDING))
    }
}

/// Number of the first momentum in a state, if momenta follow as many positions.
pub fn first_momentum(vectors: &Vectors) -> Option<usize> {
    (vectors.conjugates() > 0).then_some(vectors.dim() / 2)
}

/// Raise each number in `scales`, one for each group, to the scale of the group's terms at (t, x):
/// that of its largest member, √(Σ w s²) over the scales s of the member's rows; and each of
/// `losses` to its loss, F being measured from `target`.
pub fn raise_terms(
    system: &dyn System,
    (t, x, target): (f64, &[f64], &[f64]),
    (scales, losses): (&mut [f64], &mut [Loss]),
    work: &mut [f64],
) {
    let invariants = system.invariants();
    if invariants.count == 0 {
        return;
    }
    let (jacobian, work) = work.split_at_mut(invariants.nonzeros());
    let (values, work) = work.split_at_mut(invariants.count);
    system.invariant_values(t, x, values, work);
    system.invariant_jacobian(t, x, jacobian, work);
    let largest = &mut work[..x.len()];
    system.vectors().spread_largest(x, largest);
    let (momenta, jacobian) = (first_momentum(system.vectors()), &*jacobian);
    let row = |row: usize| TermsOfRow {
        value: values[row],
        target: target[row],
        entries: invariants.row(row).entries().map(|(p, column)| (column, jacobian[p])),
    };
    // A row without entries is only monitored, and its gradient is not computed. Beside others it is
    // an equation that follows from them, with terms like theirs.
    let known =
        |group: &Group| group.members.rows().any(|(row, _)| invariants.row(row).count() > 0);
    let found = scales.iter_mut().zip(losses);
    for (group, (scale, loss)) in
        invariants.groups.iter().zip(found).filter(|(group, _)| known(group))
    {
        let floor = floor_of(group.kind);
        let size = |column: usize| x[column].abs().max(floor * largest[column]);
        let scale_now = group.largest_member(|k| row(k).size(size)).unwrap_or(0.0);
        let mut now = TermsNow { scale: scale_now, content: 0.0, deviation: 0.0 };
        let judged = has_loss(group);
        if judged {
            let content = |k: usize| {
                row(k).content((group.kind, momenta), |column| x[column], |column| largest[column])
            };
            now.content = group.largest_member(content).unwrap_or(0.0);
            now.deviation = group.drift(values, target);
        }
        now.raise(judged, scale, loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scales::Role;
    use crate::system::{FnSystem, Group, GroupKind, Invariants};

    #[test]
    fn the_terms_of_a_rod_and_of_an_energy() {
        // F = (|q|² − l², p²/2 + g z) with q in the plane: at q = (3, 4), p = 6 and l = 5 the rod's
        // terms are 2·9 + 2·16 + 0, the energy's p·p + g·4 + |p²/2 + 4 g|.
        let groups = vec![
            Group::rows("rod", GroupKind::Constraint, 0..1),
            Group::rows("H", GroupKind::Hamiltonian, 1..2),
        ];
        let system = FnSystem::new(3, |_t, _x, dx| dx.fill(0.0)).with_invariants(
            Invariants::dense(3, 2, 1, groups),
            |_t, x, f| {
                f[0] = x[0] * x[0] + x[1] * x[1] - 25.0;
                f[1] = x[2] * x[2] / 2.0 - 9.0 * x[1];
            },
            |_t, x, df| df.copy_from_slice(&[2.0 * x[0], 2.0 * x[1], 0.0, 0.0, -9.0, x[2]]),
        );
        let (mut largest, mut work) = ([0.0; 2], vec![0.0; terms_work_len(&system)]);
        let mut losses = vec![Loss::default(); 2];
        let target = [0.0, -18.0];
        raise_terms(
            &system,
            (0.0, &[3.0, 4.0, 6.0], &target),
            (&mut largest, &mut losses),
            &mut work,
        );
        assert_eq!(largest, [50.0, 36.0 + 36.0 + 18.0]);
        raise_terms(
            &system,
            (0.0, &[0.0, 5.0, f64::NAN], &target),
            (&mut largest, &mut losses),
            &mut work,
        );
        assert_eq!(
            largest,
            [50.0, 90.0],
            "what is no number, and what is smaller, changes nothing"
        );
        assert_eq!(losses[1].max(), 0.0);
        // p = 600: F = 180000 − 36, its terms 360036 + 179964; it is off by itself and 18, and the
        // mean is less.
        raise_terms(
            &system,
            (0.0, &[3.0, 4.0, 600.0], &target),
            (&mut largest, &mut losses),
            &mut work,
        );
        assert_eq!(largest[1], 90.0, "an energy that is lost tells no scale");
        assert_eq!(
            (losses[0].max(), losses[1].max()),
            (0.0, (179964.0 + 18.0) / (360000.0 + 36.0 + 179964.0))
        );
        // Once it is kept again, its terms count again, and the loss stays on record: F = 162 − 180
        // at z = 20.
        raise_terms(
            &system,
            (0.0, &[3.0, 20.0, 18.0], &target),
            (&mut largest, &mut losses),
            &mut work,
        );
        assert_eq!(largest[1], 324.0 + 180.0 + 18.0);
        assert!(losses[1].last() == 0.0 && losses[1].max() > 0.3);
    }

    #[test]
    fn the_loss_of_an_energy_is_measured_by_its_content() {
        // A stiff spring H = p²/2 + k (q − 1)²/2 at a strain of 1e-6: the terms, k (q − 1) q, are a
        // million times all of the energy. Twice its energy is a loss of one half, and no fraction
        // of a millionth.
        let k = 1e6;
        let mut vectors = Vectors::default();
        vectors.push(Role::Position, 1, 1);
        vectors.push(Role::Momentum, 1, 1);
        let groups = vec![Group::rows("H", GroupKind::Hamiltonian, 0..1)];
        let system =
            FnSystem::new(2, |_t, _x, dx| dx.fill(0.0)).with_vectors(vectors).with_invariants(
                Invariants::dense(2, 1, 0, groups),
                move |_t, x, f| f[0] = x[1] * x[1] / 2.0 + k * (x[0] - 1.0).powi(2) / 2.0,
                move |_t, x, df| df.copy_from_slice(&[k * (x[0] - 1.0), x[1]]),
            );
        let (mut scale, mut work) = ([0.0], vec![0.0; terms_work_len(&system)]);
        let mut losses = vec![Loss::default()];
        let energy = k * 1e-12 / 2.0;
        raise_terms(
            &system,
            (0.0, &[1.0 + 1e-6, 0.0], &[energy / 2.0]),
            (&mut scale, &mut losses),
            &mut work,
        );
        // The strain has ten digits.
        assert!((losses[0].max() - 0.5).abs() < 1e-9, "{}", losses[0].max());
        assert!(scale[0] > 1e5 * energy);
        // What is off by rounding alone is not lost: at rest, q is off by two roundings.
        let mut losses = vec![Loss::default()];
        raise_terms(
            &system,
            (0.0, &[1.0 + f64::EPSILON, 0.0], &[0.0]),
            (&mut scale, &mut losses),
            &mut work,
        );
        assert!(losses[0].max() < KEPT, "{}", losses[0].max());
    }

    #[test]
    fn long_runs_are_measured_at_both_ends_and_now_and_then() {
        for count in [2, 3, 127, 128, 129, 1001, 1_000_000] {
            let all = measured(0..count, count).count();
            assert!((0..count).filter(|&k| is_measured(k, count)).eq(measured(0..count, count)));
            assert!(is_measured(0, count) && is_measured(count - 1, count));
            assert!(all <= MEASURED + 1 && all >= count.min(MEASURED / 2), "{all} of {count}");
        }
    }
}
