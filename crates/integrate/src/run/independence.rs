//! Independence of the constraints along a run: how near they are to being dependent, and whether
//! the motion has gone through a configuration in which they are.
//!
//! With D the pivots of G H_pp Gᵀ = L D Lᵀ, row i of L⁻¹G is the part of constraint i that is
//! independent of those before it. Its square in the metric H_pp is D_i, which vanishes where the
//! constraints are dependent; beyond, the row points the other way. A step may go through such a
//! configuration without coming near it at either end, and its error then decides which branch it
//! takes. So the rows are compared from step to step, the more often the sooner a pivot would
//! vanish at the rate at which it moves. A pivot that vanishes because the gradient itself does is
//! seen in the same way; how small it is, is seen beside the largest gradient so far.
//!
//! H_pp measures rows as the motion does, but it is not the only judge. Where light bodies join
//! heavy ones, rows are nearly parallel in it that point to different sides: small pivots are
//! looked at again with the sizes of the vectors in place of their masses. And where H_pp is
//! indefinite, G H_pp Gᵀ may be regular with any signs, and singular with independent rows: its
//! eigenvalues are then compared with the terms that cancel in it, and their signs from step to
//! step.

use crate::scales::{FAMILY_FLOOR, Vectors};
use crate::state::{NEARLY_DEPENDENT, Singularity, SingularityKind};
use crate::system::{GroupKind, System};
use crate::treatment::normal_equations::length;
use holonome_arithmetic::lanes::gather;
use holonome_arithmetic::square;
use holonome_linear::dense::ldl_factor;
use holonome_linear::eigen::jacobi;
use std::ops::Range;

/// Largest number of constraints whose independence is monitored.
const MOST_CONSTRAINTS: usize = 64;

/// Largest number of constraints whose independence is followed from step to step.
const MOST_FOLLOWED: usize = 8;

/// Largest number of steps between two checks of constraints together, and of each by itself.
const LONGEST_GAP: u64 = 128;
const LONGEST_GAP_ALONE: u64 = 1024;

/// Smallest ratio of the number of steps so far to those between two checks.
const STEPS_PER_GAP: u64 = 16;

/// Part of the terms that cancel in an eigenvalue of G H_pp Gᵀ below which it has no sign: some
/// hundred roundings.
const NO_SIGN: f64 = 1e-13;

/// Factor of its values at two states to which a gradient has to fall between them to be what
/// vanishes in its pivot.
const SHRUNK: f64 = 0.1;

/// Part of the largest change of a gradient along the way from which on a small gradient is that
/// near a critical point: where it merely varies by many orders, its change does, too.
const STILL_CHANGING: f64 = 0.01;

/// Part of the steps in which a pivot would vanish at its rate, which may grow, after which the
/// next check follows.
const OF_THE_WAY: f64 = 0.25;

/// Cosine below which a row counts as reversed.
const REVERSED: f64 = -0.5;

/// Part of its values at two states to which a pivot has to fall between them, if a row that is
/// reversed has vanished there: one that has turned keeps its length.
const VANISHED: f64 = 1e-2;

/// Part of its values at two states below which a pivot has certainly vanished between them. That
/// of motions through singular configurations comes down to 6e-11 at most, by the error of the
/// cubic between the states, over linkages, slider-cranks and curves that cross themselves with
/// seven methods; those that miss it by 5e-7 of a length keep 1e-8 even where steps are far longer
/// than that.
const GONE: f64 = 1e-9;

/// Distance of constraints from being dependent, with scratch.
#[derive(Clone, Debug, Default)]
pub struct Independence {
    /// Products that add up to G H_pp Gᵀ: row, column, and the places in DF of an entry of a hidden
    /// constraint and of one of a constraint.
    products: Vec<(u32, u32, u32, u32)>,
    jacobian: Vec<f64>,
    /// ±G H_pp Gᵀ, and its factors.
    product: Vec<f64>,
    matrix: Vec<f64>,
    diagonal: Vec<f64>,
    /// Sums of the absolute terms of the diagonal.
    terms: Vec<f64>,
    /// −1 if the diagonal of G H_pp Gᵀ is negative, 1 otherwise: the sign of `product`.
    sign: f64,
    /// Entries of G: constraint, coordinate, place in DF.
    gradients: Vec<(u32, u32, u32)>,
    vectors: Vectors,
    followed: Option<Box<Followed>>,
}

/// Data that is carried from check to check.
#[derive(Clone, Debug)]
struct Followed {
    /// Step from which on to check again.
    next: u64,
    /// True if each constraint is followed by itself: L is the identity, and D the diagonal.
    alone: bool,
    /// Number of coordinates.
    degrees: usize,
    /// Entries of H_pp Gᵀ: constraint, coordinate, place in DF.
    image_entries: Vec<(u32, u32, u32)>,
    /// Largest square of every gradient so far, and of its change along the way.
    largest: Vec<f64>,
    largest_change: Vec<f64>,
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
    /// Squares of the gradients.
    squares: Vec<f64>,
    /// Roots of the pivots, relative to the largest gradients so far.
    roots: Vec<f64>,
    /// Number of negative eigenvalues of G H_pp Gᵀ; `None` if one of them vanishes.
    negative: Option<usize>,
}

impl Independence {
    /// Independence of the constraints of `system` that have hidden ones, if they are few. Those on
    /// a phase space are not followed: their forces do not follow from gradients in position.
    pub fn new(system: &dyn System) -> Independence {
        let invariants = system.invariants();
        let count = invariants.constraints / 2;
        let of_kind = |kind: GroupKind| {
            let groups = invariants.groups.iter().filter(move |group| group.kind == kind);
            groups.map(|group| group.members.row_count()).sum::<usize>()
        };
        let pairs = count > 0 && of_kind(GroupKind::Hidden) == count;
        let in_positions =
            |row: usize| invariants.row(row).entries().all(|(_, column)| column < system.dim() / 2);
        let mut products = Vec::new();
        if pairs
            && (0..count).all(in_positions)
            && count <= MOST_CONSTRAINTS
            && invariants.constraints == 2 * count
        {
            let degrees = system.dim() / 2;
            for i in 0..count {
                for (at, column) in invariants.row(count + i).entries() {
                    let Some(q) = column.checked_sub(degrees) else { continue };
                    for j in 0..count {
                        let same = invariants.row(j).entries().find(|(_, column)| *column == q);
                        products.extend(
                            same.map(|(other, _)| (i as u32, j as u32, at as u32, other as u32)),
                        );
                    }
                }
            }
        }
        if products.is_empty() {
            return Independence::default();
        }
        let degrees = system.dim() / 2;
        let gradients = entries_of(system, 0..count, 0);
        Independence {
            products,
            jacobian: vec![0.0; invariants.nonzeros()],
            product: vec![0.0; count * count],
            matrix: vec![0.0; count * count],
            diagonal: vec![0.0; count],
            terms: vec![0.0; count],
            sign: 1.0,
            gradients,
            vectors: system.vectors().clone(),
            followed: (count <= MOST_FOLLOWED)
                .then(|| Box::new(Followed::new(system, (count, degrees)))),
        }
    }

    /// Follow the constraints from step `step` on, if they are few; fewer than `least` each by
    /// itself, for whether its gradient vanishes.
    pub fn followed(mut self, least: usize, step: u64) -> Independence {
        let alone = self.diagonal.len() < least;
        if let Some(followed) = &mut self.followed {
            (followed.next, followed.alone) = (step + 1, alone);
        }
        self
    }

    /// Follow the constraints of another run from step `step` on, if they are followed.
    pub fn restart(&mut self, step: u64) {
        if let Some(followed) = &mut self.followed {
            (followed.next, followed.begun) = (step + 1, false);
            followed.largest.fill(0.0);
            followed.largest_change.fill(0.0);
        }
    }

    /// Number of constraints.
    pub fn count(&self) -> usize {
        self.diagonal.len()
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
        self.product.fill(0.0);
        self.terms.fill(0.0);
        for &(i, j, a, b) in &self.products {
            let term = self.jacobian[a as usize] * self.jacobian[b as usize];
            self.product[i as usize * n + j as usize] += term;
            if i == j {
                self.terms[i as usize] += term.abs();
            }
        }
        self.sign = if (0..n).all(|i| self.product[i * n + i] < 0.0) { -1.0 } else { 1.0 };
        if self.sign < 0.0 {
            self.product.iter_mut().for_each(|entry| *entry = -*entry);
        }
        for (i, diagonal) in self.diagonal.iter_mut().enumerate() {
            *diagonal = self.product[i * n + i];
        }
        self.matrix.copy_from_slice(&self.product);
        ldl_factor(&mut self.matrix, n, 0.0);
    }

    /// D_i, 0 where the matrix is not definite.
    fn pivot(&self, i: usize) -> f64 {
        match self.matrix[i * self.diagonal.len() + i] {
            pivot if pivot.is_finite() => pivot,
            _ => 0.0,
        }
    }

    /// Pivot i, scaled to a unit diagonal.
    fn scaled_pivot(&self, i: usize) -> f64 {
        match self.pivot(i) {
            0.0 => 0.0,
            pivot => pivot / self.diagonal[i],
        }
    }

    /// How near the constraints are to not determining their forces at (t, x).
    pub fn nearest(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        work: &mut [f64],
    ) -> Option<Singularity> {
        if !self.monitors() {
            return None;
        }
        self.factor(system, (t, x), work);
        Some(self.judged(t, |vectors| x[vectors].to_vec()))
    }

    /// [`Independence::nearest`] for a known DF, in lane `lane` of so many.
    pub fn nearest_of(
        &mut self,
        t: f64,
        (x, jacobian): (&[f64], &[f64]),
        (lane, lanes): (usize, usize),
    ) -> Option<Singularity> {
        if !self.monitors() {
            return None;
        }
        gather(jacobian, lanes, lane, &mut self.jacobian);
        self.factor_known();
        Some(self.judged(t, |components| {
            components.map(|component| x[component * lanes + lane]).collect()
        }))
    }

    /// Judgement of the matrix that was factored at the time t, at the state with these components.
    fn judged(&self, t: f64, components: impl Fn(Range<usize>) -> Vec<f64>) -> Singularity {
        let n = self.diagonal.len();
        let least = |of: &dyn Fn(usize) -> f64| {
            (0..n).map(|i| (i, of(i))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 1.0))
        };
        let as_found = |kind: SingularityKind, (row, pivot): (usize, f64)| Singularity {
            pivot,
            t,
            row,
            kind,
            passed: false,
        };
        let cancelling = least(&|i| {
            if self.terms[i] > 0.0 { self.diagonal[i].abs() / self.terms[i] } else { 1.0 }
        });
        let (row, pivot) = least(&|i| self.scaled_pivot(i));
        let definite = pivot > 0.0;
        if definite && cancelling.1 < SingularityKind::Cancelling.near() {
            return as_found(SingularityKind::Cancelling, cancelling);
        }
        if pivot >= NEARLY_DEPENDENT || pivot.is_nan() {
            return as_found(SingularityKind::Dependent, (row, pivot));
        }
        let by_size = self.least_pivot_by_size(components);
        if definite || by_size.1 < NEARLY_DEPENDENT {
            let pivot = by_size.1.max(pivot);
            return as_found(SingularityKind::Dependent, (by_size.0, pivot));
        }
        match self.eigenvalues().into_iter().map(f64::abs).reduce(f64::min) {
            // G has independent rows, and H_pp is semidefinite where no eigenvalue is negative.
            Some(_) if self.negative() == Some(0) => as_found(SingularityKind::Dependent, by_size),
            Some(eigenvalue) => as_found(SingularityKind::Cancelling, (cancelling.0, eigenvalue)),
            None => Singularity::default(),
        }
    }

    /// Smallest pivot of G S²Gᵀ, scaled to a unit diagonal, and its row: S holds the sizes of the
    /// vectors. A vector at the origin has that of its family.
    fn least_pivot_by_size(&self, components: impl Fn(Range<usize>) -> Vec<f64>) -> (usize, f64) {
        let (n, degrees) = (self.diagonal.len(), self.vectors.dim() / 2);
        let mut squares = vec![0.0; self.vectors.dim()];
        for family in self.vectors.families() {
            let own = |vector: usize| square(&components(self.vectors.components_of(vector)));
            let of_family = family.vectors.clone().map(own).fold(0.0, f64::max);
            for vector in family.vectors.clone() {
                squares[self.vectors.components_of(vector)]
                    .fill(own(vector).max(FAMILY_FLOOR * of_family));
            }
        }
        let mut rows = vec![0.0; n * degrees];
        for &(row, q, at) in &self.gradients {
            rows[row as usize * degrees + q as usize] +=
                self.jacobian[at as usize] * squares[q as usize].sqrt();
        }
        let row = |i: usize| &rows[i * degrees..][..degrees];
        let lengths: Vec<f64> = (0..n).map(|i| length(row(i))).collect();
        let unit = |i: usize, j: usize| {
            let product: f64 =
                row(i).iter().zip(row(j)).map(|(a, b)| (a / lengths[i]) * (b / lengths[j])).sum();
            if product.is_nan() { 0.0 } else { product }
        };
        let mut gram: Vec<f64> = (0..n * n).map(|k| unit(k / n, k % n)).collect();
        ldl_factor(&mut gram, n, 0.0);
        let pivot = |i: usize| if gram[i * n + i].is_finite() { gram[i * n + i] } else { 0.0 };
        (0..n).map(|i| (i, pivot(i))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 1.0))
    }

    /// Eigenvalues of ±G H_pp Gᵀ, scaled to unit terms.
    fn eigenvalues(&self) -> Vec<f64> {
        let n = self.diagonal.len();
        let scale: Vec<f64> =
            self.terms.iter().map(|t| if *t > 0.0 { 1.0 / t.sqrt() } else { 0.0 }).collect();
        let mut scaled: Vec<f64> =
            (0..n * n).map(|k| self.product[k] * scale[k / n] * scale[k % n]).collect();
        jacobi(&mut scaled, n);
        (0..n).map(|i| scaled[i * n + i]).collect()
    }

    /// Number of negative eigenvalues of G H_pp Gᵀ; `None` if one of them is rounding.
    fn negative(&self) -> Option<usize> {
        let n = self.diagonal.len();
        let certain =
            |i: usize| self.scaled_pivot(i) > NO_SIGN && self.diagonal[i] > NO_SIGN * self.terms[i];
        if (0..n).all(certain) {
            return Some(if self.sign > 0.0 { 0 } else { n });
        }
        let values = self.eigenvalues();
        let negative = values.iter().filter(|value| self.sign * **value < 0.0).count();
        values.iter().all(|value| value.abs() > NO_SIGN).then_some(negative)
    }

    /// Check the state after step `step`, if it is time. Returns a configuration through which the
    /// motion has gone since the last check, or near which it is, in which a constraint depends on
    /// the others or has no gradient.
    pub fn follow(
        &mut self,
        system: &dyn System,
        (step, t, x): (u64, f64, &[f64]),
        work: &mut [f64],
    ) -> Option<Singularity> {
        if step < self.next() {
            return None;
        }
        self.factor(system, (t, x), work);
        let n = self.diagonal.len();
        let mut followed = self.followed.take()?;
        let (degrees, now) = (followed.degrees, &mut followed.now);
        let alone = followed.alone;
        self.remainders(alone, &self.gradients, &mut now.rows);
        self.remainders(alone, &followed.image_entries, &mut followed.images);
        for i in 0..n {
            let largest = &mut followed.largest[i];
            *largest = largest.max(self.diagonal[i]);
            now.squares[i] = self.diagonal[i].max(0.0);
            now.pivots[i] = if alone { now.squares[i] } else { self.pivot(i).max(0.0) };
            now.roots[i] = if *largest > 0.0 { (now.pivots[i] / *largest).sqrt() } else { 0.0 };
        }
        now.negative = if alone && n > 1 { None } else { self.negative() };
        (now.step, now.t) = (step, t);
        now.x.copy_from_slice(x);
        let (last, now, images) = (&followed.last, &followed.now, &followed.images);
        let (mut found, mut gap) = (None, 1);
        if followed.begun {
            let steps = (step - last.step).max(1);
            let changes = now.roots.iter().zip(&last.roots).map(|(a, b)| (a - b).abs());
            let rate = changes.fold(0.0, f64::max) / steps as f64;
            let least = now.roots.iter().copied().fold(f64::INFINITY, f64::min);
            let longest = if followed.alone { LONGEST_GAP_ALONE } else { LONGEST_GAP };
            // The first adaptive steps grow fast.
            let longest = longest.min(2 * steps).min((step / STEPS_PER_GAP).max(1)) as f64;
            // Pivots of an indefinite matrix show nothing, and its eigenvalues change their signs
            // for good.
            let definite = least > 0.0 || now.negative.is_none();
            gap = if rate > 0.0 && definite {
                (OF_THE_WAY * least / rate).clamp(1.0, longest)
            } else {
                longest
            } as u64;
            let product = |i: usize| {
                let pairs = images[i * degrees..][..degrees]
                    .iter()
                    .zip(&last.rows[i * degrees..][..degrees]);
                self.sign * pairs.map(|(a, b)| a * b).sum::<f64>()
            };
            let reversed = |i: usize| {
                steps == 1 && product(i) < REVERSED * (now.pivots[i] * last.pivots[i]).sqrt()
            };
            let crossed =
                |row: usize, t: f64, kind, passed| Singularity { pivot: 0.0, t, row, kind, passed };
            let turned: Vec<usize> = (0..n).filter(|&i| reversed(i)).collect();
            let changed = now.negative.zip(last.negative).is_some_and(|(now, last)| now != last);
            let mut near = Singularity::default();
            for i in 0..n {
                let pivot = now.squares[i] / followed.largest[i];
                if still_changes(&mut followed.largest_change[i], (last, now), (i, degrees)) {
                    near = near.nearer(Singularity {
                        pivot,
                        t,
                        row: i,
                        kind: SingularityKind::Vanishing,
                        passed: false,
                    });
                }
            }
            found = turned.into_iter().find_map(|i| {
                let least = self.least_between(system, (last, now), (i, alone), work)?;
                let ends = now.pivots[i].min(last.pivots[i]);
                let shrunk = least.square < SHRUNK * now.squares[i].min(last.squares[i]);
                let kind =
                    if shrunk { SingularityKind::Vanishing } else { SingularityKind::Dependent };
                let passed = least.pivot < GONE * ends;
                (least.pivot < VANISHED * ends).then(|| crossed(i, least.t, kind, passed))
            });
            if changed && found.is_none() {
                let row =
                    (0..n).min_by(|&a, &b| now.roots[a].total_cmp(&now.roots[b])).unwrap_or(0);
                found =
                    Some(crossed(row, 0.5 * (last.t + now.t), SingularityKind::Cancelling, true));
            }
            found = found.or_else(|| Some(near).filter(Singularity::is_near));
        }
        followed.next = step + gap;
        followed.begun = true;
        std::mem::swap(&mut followed.last, &mut followed.now);
        self.followed = Some(followed);
        found
    }

    /// Put L⁻¹ times the matrix with these entries, by rows, into `rows`; the matrix itself if
    /// `alone`.
    fn remainders(&self, alone: bool, entries: &[(u32, u32, u32)], rows: &mut [f64]) {
        let n = self.diagonal.len();
        let degrees = rows.len() / n;
        rows.fill(0.0);
        for &(row, q, at) in entries {
            rows[row as usize * degrees + q as usize] += self.jacobian[at as usize];
        }
        for i in (0..n).filter(|_| !alone) {
            let (before, row) = rows.split_at_mut(i * degrees);
            for (k, other) in before.chunks(degrees).enumerate() {
                let factor = self.matrix[i * n + k];
                row[..degrees]
                    .iter_mut()
                    .zip(other)
                    .for_each(|(row, other)| *row -= factor * other);
            }
        }
    }

    /// The least pivot of row i on Hermite's cubic between two states.
    fn least_between(
        &mut self,
        system: &dyn System,
        (from, to): (&Look, &Look),
        (i, alone): (usize, bool),
        work: &mut [f64],
    ) -> Option<Least> {
        let (n, h) = (from.x.len(), to.t - from.t);
        let (mut start, mut end, mut x) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        if !system.motion(from.t, &from.x, &mut start, work)
            || !system.motion(to.t, &to.x, &mut end, work)
        {
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
            if alone { self.diagonal[i] } else { self.pivot(i) }
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
        let theta = if of_a < of_b { a } else { b };
        let pivot = at(theta);
        Some(Least { t: from.t + theta * h, pivot, square: self.diagonal[i] })
    }
}

impl Followed {
    fn new(system: &dyn System, (count, degrees): (usize, usize)) -> Followed {
        let look = Look {
            x: vec![0.0; system.dim()],
            rows: vec![0.0; count * degrees],
            pivots: vec![0.0; count],
            squares: vec![0.0; count],
            roots: vec![0.0; count],
            ..Look::default()
        };
        Followed {
            next: u64::MAX,
            alone: false,
            degrees,
            image_entries: entries_of(system, count..2 * count, degrees),
            largest: vec![0.0; count],
            largest_change: vec![0.0; count],
            begun: false,
            images: look.rows.clone(),
            last: look.clone(),
            now: look,
        }
    }
}

/// The least pivot between two states.
struct Least {
    t: f64,
    pivot: f64,
    /// Square of the gradient there.
    square: f64,
}

/// Entries of rows of DF over the `degrees` columns from `first` on: number of the row in `rows`,
/// column from there, place in DF.
fn entries_of(system: &dyn System, rows: Range<usize>, first: usize) -> Vec<(u32, u32, u32)> {
    let degrees = system.dim() / 2;
    let of = |(number, row): (usize, usize)| {
        let entry = move |(at, column): (usize, usize)| {
            let q = column.checked_sub(first).filter(|q| *q < degrees)?;
            Some((number as u32, q as u32, at as u32))
        };
        system.invariants().row(row).entries().filter_map(entry)
    };
    rows.enumerate().flat_map(of).collect()
}

/// True if row i changes along the way by a part of `largest`, its largest change so far.
fn still_changes(
    largest: &mut f64,
    (last, now): (&Look, &Look),
    (i, degrees): (usize, usize),
) -> bool {
    let distance =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let way = distance(&now.x[..degrees], &last.x[..degrees]);
    let row = i * degrees..(i + 1) * degrees;
    let change = distance(&now.rows[row.clone()], &last.rows[row]) / way;
    if !change.is_finite() {
        return false;
    }
    *largest = largest.max(change);
    change >= STILL_CHANGING * STILL_CHANGING * *largest
}
