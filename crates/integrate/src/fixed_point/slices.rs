//! Stages as slices, for large systems and users' own.

use super::rules::{self, Measures, last_sizes, missed_at_ends, summed};
use super::{
    Finished, Iterated, MOST_ITERATIONS, Memory, Stages, Stop, ends, most_by_first_change,
    of_increments,
};
use crate::plan::Plan;
use crate::scales::Vectors;
use crate::scheme::collocation::{self, Collocation, From};
use crate::scheme::map::{Allowance, StepFrom};
use crate::system::System;
use holonome_arithmetic::{Real, square};
use holonome_linear::widest::widest;

/// Stages as slices over a system, one after the other.
pub struct SliceStages<'a> {
    collocation: &'static Collocation,
    system: &'a dyn System,
    of_increments: bool,
    most_by_first_change: Option<f64>,
    ends: u64,
}

/// Parts of the scratch of [`SliceStages`].
struct Slices<'w> {
    x: &'w mut [f64],
    /// Rounding error of x.
    lost: &'w mut [f64],
    /// 1/S² of the vectors.
    scales: &'w mut [f64],
    /// The largest square of every vector so far.
    sizes: &'w mut [f64],
    /// t, h, the last and the first change and one that is too far.
    numbers: &'w mut [f64],
    y: &'w mut [f64],
    /// Field at the stages, or increments.
    field: &'w mut [f64],
    /// A new stage, or integrals of polynomials.
    next: &'w mut [f64],
    rest: &'w mut [f64],
}

impl<'a> SliceStages<'a> {
    /// Stages over `system`, for the steps of `plan`.
    pub fn new(
        collocation: &'static Collocation,
        plan: &Plan,
        system: &'a dyn System,
    ) -> SliceStages<'a> {
        SliceStages {
            collocation,
            system,
            of_increments: of_increments(plan),
            most_by_first_change: most_by_first_change(collocation, plan),
            ends: ends(plan),
        }
    }

    fn split<'w>(&self, work: &'w mut [f64]) -> Slices<'w> {
        let (n, s, vectors) =
            (self.system.dim(), self.collocation.stages, self.system.vectors().count());
        let mut rest = work;
        let mut take = |len: usize| {
            let (taken, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            taken
        };
        let (x, lost, scales, sizes) = (take(n), take(n), take(vectors), take(vectors));
        let (numbers, y, field, next) = (take(5), take(s * n), take(s * n), take(n.max(s * s)));
        Slices { x, lost, scales, sizes, numbers, y, field, next, rest }
    }
}

impl Stages for SliceStages<'_> {
    fn work_len(&self) -> usize {
        let (n, s, vectors) =
            (self.system.dim(), self.collocation.stages, self.system.vectors().count());
        2 * (n + vectors + s * n) + 5 + n.max(s * s) + self.system.work_len()
    }

    fn start(&self, step: StepFrom, from: From, stop: Stop, memory: &Memory, work: &mut [f64]) {
        let StepFrom { t, h, x } = step;
        let (n, s) = (x.len(), self.collocation.stages);
        let at = self.split(work);
        at.x.copy_from_slice(x);
        match from {
            From::Start => at.lost.fill(0.0),
            From::End => at.lost.copy_from_slice(memory.lost),
        }
        at.numbers[..2].copy_from_slice(&[t, h]);
        at.sizes.copy_from_slice(memory.sizes);
        let (vectors, length) = (self.system.vectors(), *memory.length);
        let base = if from == From::Start { -1.0 } else { 1.0 };
        widest(
            #[inline(always)]
            || {
                let of_x = |vector: usize| square(&x[vectors.components_of(vector)]);
                let of_w = |vector: usize| {
                    let at = vectors.components_of(vector);
                    square(&memory.w[at.start * s..at.end * s])
                };
                let (length_and_floor, of) = ((length * length, stop.decayed), (of_x, of_w));
                rules::scales(vectors, length_and_floor, of, at.sizes, at.scales);
                for (stage, node) in at.y.chunks_exact_mut(n.max(1)).zip(&self.collocation.nodes) {
                    let (reach, mut k) = (&mut at.next[..s], 0);
                    let put = |part| {
                        reach[k] = part;
                        k += 1;
                    };
                    collocation::reach(*node, [base, h * (1.0 / length), length], put, s);
                    for ((y, x), w) in stage.iter_mut().zip(x).zip(memory.w.chunks_exact(s)) {
                        *y = w.iter().zip(&*reach).fold(*x, |sum, (w, part)| w.mul_add(*part, sum));
                    }
                }
            },
        );
    }

    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated {
        let n = self.system.dim();
        let Slices { x, scales, numbers, y, field, next, rest, .. } = self.split(work);
        let (next, (t, h)) = (&mut next[..n], (numbers[0], numbers[1]));
        let vectors = self.system.vectors();
        let (tables, factor) =
            (self.collocation.sums(self.of_increments), if self.of_increments { 1.0 } else { h });
        let mut iterated = Iterated::NONE;
        loop {
            for (j, c) in self.collocation.nodes.iter().enumerate() {
                let at = j * n..(j + 1) * n;
                self.system.field(c.mul_add(h, t), &y[at.clone()], &mut field[at.clone()], rest);
                if self.of_increments {
                    let part = h * self.collocation.weights[j];
                    field[at].iter_mut().for_each(|field| *field *= part);
                }
            }
            let mut change: f64 = 0.0;
            for (i, sums) in tables.stages.iter().enumerate() {
                let y = &mut y[i * n..(i + 1) * n];
                sum_of_stages(sums, field, next);
                for ((next, y), x) in next.iter_mut().zip(y.iter_mut()).zip(x.iter()) {
                    let value = factor.mul_add(*next, *x);
                    (*next, *y) = (value - *y, value);
                }
                change = measured(vectors, scales, next).largest(change);
            }
            iterated = iterated.followed_by(change);
            if !iterated.goes_on(stop) || iterated.count >= f64::from(MOST_ITERATIONS) {
                numbers[2..].copy_from_slice(&[change, iterated.first, stop.too_far]);
                return iterated;
            }
        }
    }

    fn finish(
        &self,
        memory: &mut Memory,
        x1: &mut [f64],
        error: &mut [f64],
        work: &mut [f64],
    ) -> Finished {
        let (n, s, vectors) = (self.system.dim(), self.collocation.stages, self.system.vectors());
        let Slices { x, lost, scales, sizes, numbers, y, field, next, rest } = self.split(work);
        let (sum, [t, h, change, first, too_far]) =
            (&mut next[..n], std::array::from_fn(|k| numbers[k]));
        // Factor of the sums in the step, and divisor in its polynomial.
        let (factor, divisor) = if self.of_increments { (1.0, h) } else { (h, 1.0) };
        for (k, weights) in
            self.collocation.sums(self.of_increments).coefficients.iter().enumerate()
        {
            sum_of_stages(weights, field, sum);
            if k == 0 {
                x1.copy_from_slice(sum);
            }
            for (w, sum) in memory.w.chunks_exact_mut(s).zip(sum.iter()) {
                w[k] = *sum / divisor;
            }
        }
        memory.sizes.copy_from_slice(sizes);
        for (i, w) in memory.w.chunks_exact(s).enumerate() {
            [error[i], sum[i]] = last_sizes(s, |k| w[k]);
            [x1[i], memory.lost[i]] = summed(x[i], factor.mul_add(x1[i], lost[i]));
        }
        let [before, seen] = [&*sum, error].map(|of| measured(vectors, scales, of));
        let moves = scales.iter().enumerate().any(|(vector, &scale)| {
            let sizes = vectors.components_of(vector).map(|i| memory.w[i * s].abs() + error[i]);
            rules::moves(scale, sizes)
        });
        let mut hidden = 0.0;
        if self.ends > 0 {
            let (start, end) = y[..2 * n].split_at_mut(n);
            self.system.field(t, x, start, rest);
            self.system.field(t + h, x1, end, rest);
            for ((start, end), w) in start.iter_mut().zip(end).zip(memory.w.chunks_exact(s)) {
                let of = |field: f64, sign| rules::missed(field, sign, w.iter().copied());
                *start = missed_at_ends([of(*start, -1.0), of(*end, 1.0)]);
            }
            hidden = rules::hidden([seen, before, measured(vectors, scales, start)]);
            error.iter_mut().zip(start).for_each(|(error, missed)| *error = error.largest(*missed));
        }
        let mut allowance = Allowance::NONE;
        if let Some(most) = self.most_by_first_change {
            let last = measured(vectors, scales, error);
            let measures = Measures { change, last, before, first, hidden, too_far, h };
            let squared_factor = measures.squared_factor(self.collocation, scales.len(), most);
            allowance = Allowance { squared_factor, unsolved: change };
        }
        Finished { moves, allowance }
    }
}

fn measured(vectors: &Vectors, scales: &[f64], v: &[f64]) -> f64 {
    widest(
        #[inline(always)]
        || rules::measured(vectors, scales, v),
    )
    .unwrap_or(0.0)
}

/// Σ w_j f_j of vectors f_j, one after the other; those of even number and those of odd number are
/// summed up separately.
fn sum_of_stages(weights: &[f64], f: &[f64], out: &mut [f64]) {
    let n = out.len();
    widest(
        #[inline(always)]
        || {
            for (i, out) in out.iter_mut().enumerate() {
                let mut sums = [0.0; 2];
                for (j, w) in weights.iter().enumerate() {
                    sums[j % 2] = w.mul_add(f[j * n + i], sums[j % 2]);
                }
                *out = sums[0] + sums[1];
            }
        },
    );
}
