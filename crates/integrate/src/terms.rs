//! Scale of the terms that cancel in an invariant, relative to which a drift is small or large.
//!
//! For a row F_i it is Σ_j |∂_jF_i| max(|x_j|, 10⁻⁶ max |x|) + |F_i(x)|, with the inner maximum over the positions or
//! over the momenta, as x_j is one: up to factors of order one the sum of the absolute values of its terms. (The terms
//! of a constraint y = 0 are its own rounding, and that of the others.) It has the units of F_i, so that a drift
//! relative to it means the same in any. Along a run the largest counts: at rest at the origin all terms vanish. It is
//! measured at up to 128 of the outputs, and after 1, 2, 4, 8, … steps, so that runs that keep their ends alone have a
//! scale, too; for trajectories in lanes after 1, 4, 16, … equal steps, or at both ends of adaptive ones as if every
//! vector were as large as it has been.

use crate::system::{Group, System};
use std::ops::Range;

/// Number of samples of a run at which the terms are measured, evenly spread: their size changes little.
const MEASURED: usize = 128;

/// Outputs among these, of `count` in all, at which the terms are measured; the first and the last one of all are among
/// them.
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

/// Length of the scratch of [`raise_terms`]. All that it needs is there, so that of a large model it shares the scratch
/// of its steps.
pub fn terms_work_len(system: &dyn System) -> usize {
    let invariants = system.invariants();
    invariants.nonzeros() + invariants.count + system.work_len().max(system.dim())
}

/// Raise each number in `largest`, one for each group, to the scale of the group's terms at (t, x): that of its
/// largest member, √(Σ w s²) over the scales s of the member's rows. A scale that is not finite is left out.
pub fn raise_terms(system: &dyn System, t: f64, x: &[f64], largest: &mut [f64], work: &mut [f64]) {
    let invariants = system.invariants();
    if invariants.count == 0 {
        return;
    }
    let (jacobian, work) = work.split_at_mut(invariants.nonzeros());
    let (values, work) = work.split_at_mut(invariants.count);
    system.invariant_values(t, x, values, work);
    system.invariant_jacobian(t, x, jacobian, work);
    let floors = &mut work[..x.len()];
    system.vectors().spread_largest(x, floors);
    let size = |column: usize| x[column].abs().max(FLOOR * floors[column]);
    for (row, value) in invariants.pattern.rows().zip(&mut *values) {
        let terms = row.entries().map(|(p, column)| jacobian[p].abs() * size(column));
        *value = value.abs() + terms.sum::<f64>();
    }
    // A row without entries is only monitored, and its gradient is not computed.
    let known = |group: &&Group| group.members.rows().all(|(row, _)| invariants.row(row).count() > 0);
    for (group, largest) in invariants.groups.iter().zip(largest).filter(|(group, _)| known(group)) {
        let size = group.largest_member(|row| values[row]);
        if size.is_finite() {
            *largest = largest.max(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{FnSystem, Group, GroupKind, Invariants};

    #[test]
    fn the_terms_of_a_rod_and_of_an_energy() {
        // F = (|q|² − l², p²/2 + g z) with q in the plane: at q = (3, 4), p = 6 and l = 5 the rod's terms are
        // 2·9 + 2·16 + 0, the energy's p·p + g·4 + |p²/2 + 4 g|.
        let groups =
            vec![Group::rows("rod", GroupKind::Constraint, 0..1), Group::rows("H", GroupKind::Hamiltonian, 1..2)];
        let system = FnSystem::new(3, |_t, _x, dx| dx.fill(0.0)).with_invariants(
            Invariants::dense(3, 2, 1, groups),
            |_t, x, f| {
                f[0] = x[0] * x[0] + x[1] * x[1] - 25.0;
                f[1] = x[2] * x[2] / 2.0 - 9.0 * x[1];
            },
            |_t, x, df| df.copy_from_slice(&[2.0 * x[0], 2.0 * x[1], 0.0, 0.0, -9.0, x[2]]),
        );
        let (mut largest, mut work) = ([0.0; 2], vec![0.0; terms_work_len(&system)]);
        raise_terms(&system, 0.0, &[3.0, 4.0, 6.0], &mut largest, &mut work);
        assert_eq!(largest, [50.0, 36.0 + 36.0 + 18.0]);
        raise_terms(&system, 0.0, &[0.0, 5.0, f64::NAN], &mut largest, &mut work);
        assert_eq!(largest, [50.0, 90.0], "what is no number, and what is smaller, changes nothing");
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
