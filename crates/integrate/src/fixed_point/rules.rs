//! Arithmetic of a step: scales, the end of the iteration, the estimate of the error. Compiled
//! steps record it.

use super::{FAR, facts};
use crate::scales::{FAMILY_FLOOR, Vectors};
use crate::scheme::collocation::Collocation;
use holonome_arithmetic::{Real, products, square};
use std::ops::Range;

/// Number of iterations from which on changes have to shrink.
const SETTLED: u32 = 5;
/// Square of the change below which one that does not shrink any more is due to rounding.
pub(super) const ROUNDING: f64 = 1e-24;

/// Ratio of squares from which on what the polynomial misses at an end of the step is more than the
/// coefficients that are left out explain. These continue as the last ones decrease, within a
/// factor of four. What is more begins behind the last node or ends before the first one, and the
/// error that it leaves is the integral between that node and the end.
const UNEXPLAINED: f64 = 16.0;

/// Part of the tolerance up to which the error that it leaves does not count: it may come from the
/// rest of the iteration, or from rounding, of positions that are far larger than the distances on
/// which the forces depend. Both are proportional to the step, so that shorter steps, which the
/// controller expects to reduce an error by its order, would not end before they are tiny.
const NEGLIGIBLE: f64 = 0.02;

/// Criteria at which an iteration ends. Changes are squares, relative to the scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop<R = f64> {
    /// Change that is small enough.
    pub enough: R,
    /// First change from which on the iteration does not start near the solution.
    pub too_far: R,
    /// Factor by which changes have to shrink, after the first iterations.
    pub contraction: R,
    /// Least square of a vector's scale, relative to its largest square so far: a decayed vector
    /// does not keep its old scale.
    pub decayed: R,
}

/// Result of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterated<R = f64> {
    /// The last change.
    pub change: R,
    /// The two changes before it: where positions and momenta depend on each other, every other
    /// change is small.
    pub before: [R; 2],
    /// First change.
    pub first: R,
    /// Number of field evaluations at all stages.
    pub count: R,
}

impl Iterated {
    /// State before the first iteration.
    pub const NONE: Iterated =
        Iterated::of([f64::INFINITY, f64::INFINITY, f64::INFINITY, 0.0, 0.0]);
}

impl<R> Iterated<R> {
    /// Result with these numbers: the changes, the last one first, the first one and the count.
    pub const fn of([change, last, older, first, count]: [R; 5]) -> Iterated<R>
    where
        R: Copy,
    {
        Iterated { change, before: [last, older], first, count }
    }

    /// Numbers of the result; see [`Iterated::of`].
    pub fn numbers(self) -> [R; 5] {
        let [last, older] = self.before;
        [self.change, last, older, self.first, self.count]
    }
}

impl<R: Real> Iterated<R> {
    /// Result after one more iteration, with this change.
    pub fn followed_by(self, change: R) -> Iterated<R> {
        let is_first = self.count.equals(change.constant(0.0));
        Iterated {
            change,
            before: [self.change, self.before[0]],
            first: R::select(is_first, change, self.first),
            count: self.count + 1.0,
        }
    }

    /// True if another iteration is to follow, unless there have been too many. Changes not made
    /// yet are infinite, so that no test of contraction fails by them.
    pub fn goes_on(self, stop: Stop<R>) -> R::Truth {
        let Iterated { change, before: [last, older], first, count } = self;
        let before = last.largest(older);
        let part = stop.contraction * before;
        let rounds = change.at_most(change.constant(ROUNDING));
        let far = stop.too_far.less(first);
        let stays = rounds & before.at_most(change);
        let late = change.constant(f64::from(SETTLED)).at_most(count);
        let grows = !rounds & part.less(change) & late;
        stop.enough.less(change) & !far & !stays & !grows
    }

    /// True if the stages are found.
    pub fn converged(self, stop: Stop<R>) -> R::Truth {
        self.change.at_most(self.change.constant(ROUNDING).larger(stop.enough))
    }
}

/// Compute 1/S² of every vector, S² = |x|² + h² Σ|W_k|², 0 where S² is 0, from h², |x|² and Σ|W_k|².
/// There are two floors: a part of the vector's largest square so far, which `sizes` keeps, and one
/// for vectors at rest while others of their family move.
#[inline(always)]
pub fn scales<R: Real>(
    vectors: &Vectors,
    (square_of_length, decayed): (R, R),
    (of_x, of_w): (impl Fn(usize) -> R, impl Fn(usize) -> R),
    sizes: &mut [R],
    scales: &mut [R],
) {
    for (vector, (size, scale)) in sizes.iter_mut().zip(scales.iter_mut()).enumerate() {
        let of_x = of_x(vector);
        *size = size.larger(of_x);
        *scale = square_of_length.mul_add(of_w(vector), of_x).larger(decayed * *size);
    }
    let [none, one, smallest] =
        [0.0, 1.0, f64::MIN_POSITIVE].map(|number| decayed.constant(number));
    for family in vectors.families() {
        let scales = &mut scales[family.vectors.clone()];
        let most = scales.iter().copied().reduce(R::larger).unwrap_or(none);
        let floor = most * FAMILY_FLOOR;
        let single = scales.len() == 1;
        for scale in scales {
            let square = if single { *scale } else { scale.larger(floor) };
            *scale = R::select(smallest.at_most(square), one / square, none);
        }
    }
}

/// Σ |v|²/S² over the vectors; `None` if there are none.
#[inline(always)]
pub fn measured<R: Real>(vectors: &Vectors, scales: &[R], v: &[R]) -> Option<R> {
    let scales = scales.iter().enumerate();
    products(scales.map(|(vector, &scale)| (scale, square(&v[vectors.components_of(vector)]))))
}

/// Size of a component's last two coefficients, as one alone vanishes by accident, and of those
/// before, without the mean.
#[inline(always)]
pub fn last_sizes<R: Real>(stages: usize, w: impl Fn(usize) -> R) -> [R; 2] {
    let size = |range: Range<usize>| {
        range.rev().map(|k| w(k).abs()).reduce(|a, b| a + b).expect("there are some")
    };
    [size(stages - 2..stages), size((stages - 4).max(1)..stages - 2)]
}

/// x plus an increment, and what rounding loses: compensated summation (HLW VIII.5).
#[inline(always)]
pub fn summed<R: Real>(x: R, increment: R) -> [R; 2] {
    let sum = x + increment;
    [sum, increment - (sum - x)]
}

/// Distance of the field at an end of a step from the polynomial with the coefficients `w`; `sign`
/// is −1 at the start and 1 at the end.
#[inline(always)]
pub fn missed<R: Real>(field: R, sign: R, w: impl DoubleEndedIterator<Item = R>) -> R {
    let polynomial = w.rev().reduce(|sum, w| sign.mul_add(sum, w)).expect("there are some");
    (field - polynomial).abs()
}

/// Larger one of what is missed at both ends. No node is at an end: a change of the field before
/// the first node or after the last one shows only there. Where the field is undefined, no error is
/// small enough.
#[inline(always)]
pub fn missed_at_ends<R: Real>([start, end]: [R; 2]) -> R {
    let (missed, infinity) = (end.larger(start), end.constant(f64::INFINITY));
    R::select(missed.at_most(infinity), missed, infinity)
}

/// Square of what is missed at the ends beyond what the coefficients that are left out explain, or
/// 0; from the squares of the last coefficients, of those before and of what is missed.
#[inline(always)]
pub fn hidden<R: Real>([seen, before, missed]: [R; 3]) -> R {
    let most = (seen * seen) * UNEXPLAINED;
    R::select(most.less(missed * before), missed, seen.constant(0.0))
}

/// True if a vector without a scale has moved, from the sizes of its components' coefficients.
#[inline(always)]
pub fn moves<R: Real>(scale: R, sizes: impl Iterator<Item = R>) -> R::Truth {
    let zero = scale.constant(0.0);
    scale.equals(zero) & zero.less(sizes.reduce(|a, b| a + b).unwrap_or(zero))
}

/// Numbers of a finished step from which its [`Allowance`](crate::scheme::map::Allowance) follows.
#[derive(Clone, Copy, Debug)]
pub struct Measures<R> {
    /// Last change of the iteration.
    pub change: R,
    /// Square of the estimate relative to the scales.
    pub last: R,
    /// Square of the coefficients before the last two.
    pub before: R,
    /// First change of the iteration.
    pub first: R,
    /// Result of [`hidden`].
    pub hidden: R,
    /// First change that is too far.
    pub too_far: R,
    /// Length of the step.
    pub h: R,
}

impl<R: Real> Measures<R> {
    /// Square of the factor of the estimate in step-size control: with it the estimate is at least
    /// as large as the first change of the iteration demands, which alone causes `most` at most, and
    /// no smaller than what the ends show. The next step waits for it, and for one root only.
    #[inline(always)]
    pub fn squared_factor(self, collocation: &Collocation, vectors: usize, most: R) -> R {
        let Measures { last, before, first, hidden, too_far, h, .. } = self;
        let [zero, one] = [0.0, 1.0].map(|number| h.constant(number));
        let mean = h.constant(1.0 / vectors.max(1) as f64);
        // Of the norm; so are the numbers below, one of which may take its place.
        let square = (h * h * mean) * last;
        // As large as it has to be for the first change of the iteration, but no larger than what
        // is accepted; and where coefficients hardly decrease, at a kink or at a wall, as large as
        // the last would be of those that do.
        let by_change = (most * most) * (first / too_far).smaller(one);
        let decrease = (last / before).smaller(one);
        let by_decrease = (decrease * decrease) * square.sqrt();
        let wanted = by_change.larger(by_decrease);
        let (factor, power) = of_error(collocation);
        let reach = h * collocation.nodes[0];
        let left = ((reach * reach) * mean) * hidden;
        let [tiny, biggest] = [f64::MIN_POSITIVE, f64::MAX].map(|number| h.constant(number));
        let left = left.smaller(biggest).larger(tiny);
        let left = left.rough_power(h.constant(power)) * (factor * factor);
        // `most` is the estimate of nearly the tolerance.
        let negligible = (most * most) * (NEGLIGIBLE.powf(2.0 * power) / (FAR * FAR));
        let wanted = wanted.larger(R::select(negligible.less(left), left, zero));
        R::select(zero.less(square) & square.less(wanted), wanted / square, one)
    }
}

/// Estimate by coefficients that stands for an error ε: the first number times ε to the power of
/// the second.
fn of_error(collocation: &Collocation) -> (f64, f64) {
    facts(collocation).control.expect("steps have an estimate").scale
}
