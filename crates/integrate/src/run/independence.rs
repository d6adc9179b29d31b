//! Independence of the constraints along a run: how near they are to being dependent, and whether the motion has gone
//! through a configuration in which they are.
//!
//! With D the pivots of G H_pp Gᵀ = L D Lᵀ, row i of L⁻¹G is the part of constraint i that is independent of those
//! before it. Its square in the metric H_pp is D_i, which vanishes where the constraints are dependent; beyond, the row
//! points the other way. A step may go through such a configuration without coming near it at either end, and its error
//! then decides which branch it takes. So the rows are compared from step to step, the more often the sooner a pivot
//! would vanish at the rate at which it moves.

use crate::system::{GroupKind, System};
use crate::vector::gather;
use holonome_linear::dense::ldl_factor;

/// Largest number of constraints whose independence is monitored.
const MOST_CONSTRAINTS: usize = 64;

/// Largest number of constraints whose independence is followed from step to step.
const MOST_FOLLOWED: usize = 8;

/// Largest number of steps between two checks.
const LONGEST_GAP: u64 = 128;

/// Part of the steps in which a pivot would vanish at its rate, which may grow, after which the next check follows.
const OF_THE_WAY: f64 = 0.25;

/// Cosine below which a row counts as reversed.
const REVERSED: f64 = -0.5;

/// Part of its values at two states to which a pivot has to fall between them, if a row that is reversed has vanished
/// there: one that has turned keeps its length.
const VANISHED: f64 = 1e-2;

/// Distance of constraints from being dependent, with scratch.
#[derive(Clone, Debug, Default)]
pub struct Independence {
    /// Products that add up to G H_pp Gᵀ: row, column, and the places in DF of an entry of a hidden constraint and of
    /// one of a constraint.
    products: Vec<(u32, u32, u32, u32)>,
    jacobian: Vec<f64>,
    matrix: Vec<f64>,
    diagonal: Vec<f64>,
    followed: Option<Followed>,
}

/// Data that is carried from check to check.
#[derive(Clone, Debug)]
struct Followed {
    /// Step from which on to check again.
    next: u64,
    /// Number of coordinates.
    degrees: usize,
    /// Entries of G and of H_pp Gᵀ: constraint, coordinate, place in DF.
    entries: [Vec<(u32, u32, u32)>; 2],
    /// True if there was a check before.
    begun: bool,
    last: Look,
    now: Look,
    /// L⁻¹G H_pp by rows.
    images: Vec<f64>,
}

/// Data of one check.
#[derive(Clone, Debug, Default)]
struct Look {
    step: u64,
    t: f64,
    x: Vec<f64>,
    /// L⁻¹G by rows.
    rows: Vec<f64>,
    /// D.
    pivots: Vec<f64>,
    /// Roots of the scaled pivots.
    roots: Vec<f64>,
}

impl Independence {
    /// Independence of the constraints of `system` that have hidden ones, if they are few.
    pub fn new(system: &dyn System) -> Independence {
        let invariants = system.invariants();
        let count = invariants.constraints / 2;
        let hidden = invariants.groups.iter().any(|group| group.kind == GroupKind::Hidden);
        let mut products = Vec::new();
        if hidden && count <= MOST_CONSTRAINTS && invariants.constraints == 2 * count {
            let degrees = system.dim() / 2;
            for i in 0..count {
                for (at, column) in invariants.row(count + i).entries() {
                    let Some(q) = column.checked_sub(degrees) else { continue };
                    for j in 0..count {
                        let same = invariants.row(j).entries().find(|(_, column)| *column == q);
                        products.extend(same.map(|(other, _)| (i as u32, j as u32, at as u32, other as u32)));
                    }
                }
            }
        }
        if products.is_empty() {
            return Independence::default();
        }
        Independence {
            products,
            jacobian: vec![0.0; invariants.nonzeros()],
            matrix: vec![0.0; count * count],
            diagonal: vec![0.0; count],
            followed: None,
        }
        .with_entries(system)
    }

    fn with_entries(mut self, system: &dyn System) -> Independence {
        let (invariants, count, degrees) = (system.invariants(), self.diagonal.len(), system.dim() / 2);
        if !(2..=MOST_FOLLOWED).contains(&count) {
            return self;
        }
        let of = |first: usize, shift: usize| {
            let entry = |row: usize, (at, column): (usize, usize)| {
                let q = column.checked_sub(shift).filter(|q| *q < degrees)?;
                Some((row as u32, q as u32, at as u32))
            };
            (0..count)
                .flat_map(|row| invariants.row(first + row).entries().filter_map(move |at| entry(row, at)))
                .collect()
        };
        let entries = [of(0, 0), of(count, degrees)];
        let (rows, of_rows) = (vec![0.0; count * degrees], vec![0.0; count]);
        let look =
            Look { x: vec![0.0; system.dim()], pivots: of_rows.clone(), roots: of_rows, rows, ..Look::default() };
        let images = look.rows.clone();
        let (last, now) = (look.clone(), look);
        self.followed = Some(Followed { next: u64::MAX, degrees, entries, begun: false, last, now, images });
        self
    }

    /// Follow the constraints from step `step` on, if they are few, but at least `least`.
    pub fn followed(mut self, least: usize, step: u64) -> Independence {
        match &mut self.followed {
            Some(followed) if self.diagonal.len() >= least => followed.next = step + 1,
            _ => self.followed = None,
        }
        self
    }

    /// True if there is anything to monitor.
    pub fn monitors(&self) -> bool {
        !self.products.is_empty()
    }

    /// Step from which on [`Independence::follow`] checks.
    pub fn next(&self) -> u64 {
        self.followed.as_ref().map_or(u64::MAX, |followed| followed.next)
    }

    /// Compute L and D at (t, x).
    fn factor(&mut self, system: &dyn System, (t, x): (f64, &[f64]), work: &mut [f64]) {
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        self.factor_known();
    }

    /// Compute L and D from the stored DF.
    fn factor_known(&mut self) {
        let n = self.diagonal.len();
        self.matrix.fill(0.0);
        for &(i, j, a, b) in &self.products {
            self.matrix[i as usize * n + j as usize] += self.jacobian[a as usize] * self.jacobian[b as usize];
        }
        for (i, diagonal) in self.diagonal.iter_mut().enumerate() {
            *diagonal = self.matrix[i * n + i];
        }
        ldl_factor(&mut self.matrix, n, 0.0);
    }

    /// Pivot i, scaled to a unit diagonal.
    fn scaled_pivot(&self, i: usize) -> f64 {
        match self.matrix[i * self.diagonal.len() + i] {
            pivot if pivot.is_finite() => pivot / self.diagonal[i],
            _ => 0.0,
        }
    }

    /// Smallest pivot of G H_pp Gᵀ at (t, x), scaled to a unit diagonal, and the constraint's row. Near 0 the
    /// constraints do not determine their forces.
    pub fn least_pivot(&mut self, system: &dyn System, at: (f64, &[f64]), work: &mut [f64]) -> Option<(usize, f64)> {
        if !self.monitors() {
            return None;
        }
        self.factor(system, at, work);
        self.least()
    }

    /// Smallest pivot as in [`Independence::least_pivot`] for a known DF, in lane `lane` of so many.
    pub fn least_pivot_of(&mut self, jacobian: &[f64], (lane, lanes): (usize, usize)) -> Option<(usize, f64)> {
        if !self.monitors() {
            return None;
        }
        gather(jacobian, lanes, lane, &mut self.jacobian);
        self.factor_known();
        self.least()
    }

    fn least(&self) -> Option<(usize, f64)> {
        (0..self.diagonal.len()).map(|i| (i, self.scaled_pivot(i))).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Check the state after step `step`, if it is time. Returns the row of a constraint that was dependent on the
    /// others since the last check, and the time.
    pub fn follow(
        &mut self,
        system: &dyn System,
        (step, t, x): (u64, f64, &[f64]),
        work: &mut [f64],
    ) -> Option<(usize, f64)> {
        if step < self.next() {
            return None;
        }
        self.factor(system, (t, x), work);
        let n = self.diagonal.len();
        let mut followed = self.followed.take()?;
        let (degrees, now) = (followed.degrees, &mut followed.now);
        self.remainders(&followed.entries[0], &mut now.rows);
        self.remainders(&followed.entries[1], &mut followed.images);
        for i in 0..n {
            let scaled = self.scaled_pivot(i).max(0.0);
            (now.pivots[i], now.roots[i]) = (scaled * self.diagonal[i], scaled.sqrt());
        }
        (now.step, now.t) = (step, t);
        now.x.copy_from_slice(x);
        let (last, now, images) = (&followed.last, &followed.now, &followed.images);
        let (mut crossing, mut gap) = (None, 1);
        if followed.begun {
            let steps = (step - last.step).max(1);
            let changes = now.roots.iter().zip(&last.roots).map(|(a, b)| (a - b).abs());
            let rate = changes.fold(0.0, f64::max) / steps as f64;
            let least = now.roots.iter().copied().fold(f64::INFINITY, f64::min);
            let longest = LONGEST_GAP.min(2 * steps) as f64;
            gap = if rate > 0.0 { (OF_THE_WAY * least / rate).clamp(1.0, longest) } else { longest } as u64;
            let reversed = |i: usize| {
                let pairs = images[i * degrees..][..degrees].iter().zip(&last.rows[i * degrees..][..degrees]);
                let product = pairs.map(|(a, b)| a * b).sum::<f64>();
                steps == 1 && product < REVERSED * (now.pivots[i] * last.pivots[i]).sqrt()
            };
            crossing = (0..n).filter(|&i| reversed(i)).find_map(|i| {
                let (t, pivot) = self.least_between(system, (last, now), i, work)?;
                let ends = now.roots[i].min(last.roots[i]).powi(2);
                (pivot < VANISHED * ends).then_some((i, t))
            });
        }
        followed.next = step + gap;
        followed.begun = true;
        std::mem::swap(&mut followed.last, &mut followed.now);
        self.followed = Some(followed);
        crossing
    }

    /// Put L⁻¹ times the matrix with these entries, by rows, into `rows`.
    fn remainders(&self, entries: &[(u32, u32, u32)], rows: &mut [f64]) {
        let n = self.diagonal.len();
        let degrees = rows.len() / n;
        rows.fill(0.0);
        for &(row, q, at) in entries {
            rows[row as usize * degrees + q as usize] += self.jacobian[at as usize];
        }
        for i in 0..n {
            let (before, row) = rows.split_at_mut(i * degrees);
            for (k, other) in before.chunks(degrees).enumerate() {
                let factor = self.matrix[i * n + k];
                row[..degrees].iter_mut().zip(other).for_each(|(row, other)| *row -= factor * other);
            }
        }
    }

    /// Time and value of the least scaled pivot of row i on Hermite's cubic between two states.
    fn least_between(
        &mut self,
        system: &dyn System,
        (from, to): (&Look, &Look),
        i: usize,
        work: &mut [f64],
    ) -> Option<(f64, f64)> {
        let (n, h) = (from.x.len(), to.t - from.t);
        let (mut start, mut end, mut x) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        if !system.motion(from.t, &from.x, &mut start, work) || !system.motion(to.t, &to.x, &mut end, work) {
            return None;
        }
        let mut at = |theta: f64| {
            let rest = 1.0 - theta;
            let (a, b) = ((1.0 + 2.0 * theta) * rest * rest, theta * theta * (3.0 - 2.0 * theta));
            let (c, d) = (h * theta * rest * rest, -h * theta * theta * rest);
            for (k, x) in x.iter_mut().enumerate() {
                *x = a * from.x[k] + b * to.x[k] + c * start[k] + d * end[k];
            }
            self.factor(system, (from.t + theta * h, &x), work);
            self.scaled_pivot(i)
        };
        // Golden sections: 40 of them come to 1e-8 of the step.
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (0.0, 1.0);
        let (mut a, mut b) = (1.0 - ratio, ratio);
        let (mut of_a, mut of_b) = (at(a), at(b));
        for _ in 0..40 {
            if of_a < of_b {
                (high, b, of_b) = (b, a, of_a);
                a = high - ratio * (high - low);
                of_a = at(a);
            } else {
                (low, a, of_a) = (a, b, of_b);
                b = low + ratio * (high - low);
                of_b = at(b);
            }
        }
        let (theta, pivot) = if of_a < of_b { (a, of_a) } else { (b, of_b) };
        Some((from.t + theta * h, pivot))
    }
}
