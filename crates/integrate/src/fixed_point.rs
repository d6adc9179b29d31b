//! The step of a [`Collocation`] method: its stages are found by fixed-point iteration, which starts from the polynomial
//! of the step before (HLW VIII.6.1). It is written over [`Stages`], which are slices here and compiled elsewhere.

use crate::controller::Control;
use crate::plan::{Plan, Stepping};
use crate::scales::{FAMILY_FLOOR, UNIT_ROUND_OFF, Vectors, square};
use crate::scheme::collocation::{CONVERGES_TO, Collocation, From};
use crate::scheme::map::{Attempts, Blocks, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace};
use crate::system::System;
use holonome_linear::widest::widest;
use std::ops::Range;

/// The stages of a step, s states and the field at them.
pub trait Stages: Sync {
    /// Length of the scratch in which they are kept.
    fn work_len(&self) -> usize;

    /// Puts the stages to where the iteration starts: on the polynomial in the memory behind this end of its step, which is
    /// that of the step to come when it has been made before and is made again, or in part.
    fn start(&self, step: StepFrom, from: From, stop: Stop, memory: &Memory, work: &mut [f64]);

    /// Iterates.
    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated;

    /// What the stages come to: x₁, the estimate of its error without its factor h, for which the field at the ends of the step
    /// is looked at where steps are controlled, and what the next step takes from the memory. Whether a vector without a scale has moved, whose stages are not looked at.
    fn finish(&self, memory: &mut Memory, x1: &mut [f64], error: &mut [f64], work: &mut [f64]) -> bool;
}

/// When an iteration ends. Changes are squares, relative to the scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// A change that is small enough.
    pub enough: f64,
    /// A first change that shows that the iteration does not start near the solution.
    pub too_far: f64,
    /// By how much changes have to shrink, once some have been made.
    pub contraction: f64,
    /// Which part of a vector's largest square so far its scale has at least: what has decayed is not worth what it was.
    pub decayed: f64,
}

/// What an iteration came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterated {
    /// How often the field was evaluated at all stages.
    pub count: u32,
    /// The last change.
    pub change: f64,
    /// The two before: where positions and momenta wait for each other, every other one is small.
    pub before: [f64; 2],
    /// The first one.
    pub first: f64,
}

/// Iterations at most.
pub const MOST_ITERATIONS: u32 = 100;
/// From this iteration on changes have to shrink.
pub const SETTLED: u32 = 5;
/// By the square of 0.7 where a shorter step is better than more iterations.
const CONTRACTION: f64 = 0.49;
/// Nearly not at all where steps are equal.
const SLOWEST_CONTRACTION: f64 = 0.95;
/// A change below the square of this is one of rounding if it does not shrink any more.
pub const ROUNDING: f64 = 1e-24;
/// The first change of a step that follows another may be a tenth of the state at most: else the iteration may lead to
/// another solution.
const TOO_FAR: f64 = 0.01;
/// What such a first change counts in the control of steps: nearly as much as an error that is not accepted.
const FAR: f64 = 0.95;
/// Where steps go to rounding: the square of 10⁻⁸.
const DECAYED: f64 = 1e-16;
/// What is left of the iteration's error, as a part of the tolerance.
const PART: f64 = 0.2;

impl Iterated {
    /// None yet.
    pub const NONE: Iterated = Iterated { count: 0, change: f64::INFINITY, before: [f64::INFINITY; 2], first: 0.0 };

    /// Whether another iteration is to follow.
    pub fn goes_on(self, stop: Stop) -> bool {
        let Iterated { count, change, before: [last, older], .. } = self;
        let before = if last > older { last } else { older };
        let far = count == 1 && change > stop.too_far;
        let stays = count >= 3 && change >= before && change <= ROUNDING;
        let grows = count >= SETTLED && change > stop.contraction * before && change > ROUNDING;
        change > stop.enough && count < MOST_ITERATIONS && !(far || stays || grows)
    }

    /// Whether the stages are found.
    pub fn converged(self, stop: Stop) -> bool {
        self.change <= if stop.enough > ROUNDING { stop.enough } else { ROUNDING }
    }
}

/// The step over some stages. Its memory is [`Memory`].
pub struct CollocationMap<'a> {
    collocation: &'static Collocation,
    system: &'a dyn System,
    stages: &'a dyn Stages,
    facts: Facts,
    stop: Stop,
    ends: u64,
    attempts: Option<&'a dyn Attempts>,
    /// Equal steps in a loop, with the length of their scratch.
    blocks: Option<(&'a dyn Blocks, usize)>,
}

impl<'a> CollocationMap<'a> {
    /// Of `plan`'s method.
    pub fn new(
        collocation: &'static Collocation,
        plan: &Plan,
        system: &'a dyn System,
        stages: &'a dyn Stages,
    ) -> CollocationMap<'a> {
        CollocationMap {
            collocation,
            system,
            stages,
            facts: facts(collocation),
            stop: stop(plan),
            ends: ends(plan),
            attempts: None,
            blocks: None,
        }
    }

    /// The same with equal steps in a loop that takes so much scratch.
    pub fn with_blocks(self, blocks: &'a dyn Blocks, work_len: usize) -> CollocationMap<'a> {
        CollocationMap { blocks: Some((blocks, work_len)), ..self }
    }

    /// The same with attempts in a loop.
    pub fn with_attempts(self, attempts: &'a dyn Attempts) -> CollocationMap<'a> {
        CollocationMap { attempts: Some(attempts), ..self }
    }

    /// Makes the step from a memory, and that of the next step. Where it fails, the last iteration.
    fn solve(
        &self,
        step: StepFrom,
        memory: &mut [f64],
        (x1, error): (&mut [f64], &mut [f64]),
        work: &mut [f64],
        evaluations: &mut u64,
    ) -> Result<(), Iterated> {
        let memory = &mut Memory::of(self.collocation, self.system.vectors(), memory);
        let follows = *memory.length != 0.0;
        if !follows {
            self.begin(step, memory, work);
            *evaluations += 1;
        }
        let mut stop = if follows { self.stop } else { Stop { too_far: f64::INFINITY, ..self.stop } };
        let mut from = From::End;
        // Once, or as often as something starts to move that the step before left at rest, which then has a scale.
        for _ in 0..=self.system.vectors().count() {
            self.stages.start(step, from, stop, memory, work);
            let iterated = self.stages.iterate(stop, work);
            *evaluations += u64::from(iterated.count) * self.collocation.stages as u64;
            if !iterated.converged(stop) {
                return Err(iterated);
            }
            let moves = self.stages.finish(memory, x1, error, work);
            *evaluations += self.ends;
            *memory.length = step.h;
            if !moves {
                break;
            }
            (from, stop) = (From::Start, Stop { too_far: f64::INFINITY, ..stop });
        }
        Ok(())
    }

    /// As if a step of the length h with the field at its end had come before.
    fn begin(&self, StepFrom { t, h, x }: StepFrom, memory: &mut Memory, work: &mut [f64]) {
        let (field, work) = work.split_at_mut(self.system.dim());
        self.system.field(t, x, field, work);
        memory.w.fill(0.0);
        for (w, field) in memory.w.chunks_exact_mut(self.collocation.stages).zip(field.iter()) {
            w[0] = *field;
        }
        *memory.length = h;
    }
}

/// What a step keeps for the next one.
pub struct Memory<'m> {
    /// The coefficients of its polynomial.
    pub w: &'m mut [f64],
    /// What rounding has lost of x.
    pub lost: &'m mut [f64],
    /// The largest square of every vector so far.
    pub sizes: &'m mut [f64],
    /// Its length, 0 where no step came before.
    pub length: &'m mut f64,
}

impl<'m> Memory<'m> {
    /// Its length.
    pub fn len(collocation: &Collocation, vectors: &Vectors) -> usize {
        vectors.dim() * (collocation.stages + 1) + vectors.count() + 1
    }

    /// The parts of it, for states of these vectors.
    pub fn of(collocation: &Collocation, vectors: &Vectors, memory: &'m mut [f64]) -> Memory<'m> {
        let n = vectors.dim();
        let (w, rest) = memory.split_at_mut(n * collocation.stages);
        let (lost, rest) = rest.split_at_mut(n);
        let (sizes, length) = rest.split_at_mut(vectors.count());
        Memory { w, lost, sizes, length: &mut length[0] }
    }
}

/// What is known of the method.
pub fn facts(collocation: &Collocation) -> Facts {
    let s = collocation.stages;
    Facts {
        control: Some(Control::of_coefficients(collocation.order(), s as u32 - 2)),
        equal_steps: Estimate::Known,
        errors: 0..1,
        end_field: Some(1),
        ends_with_field: false,
    }
}

/// When the iterations of `plan` end: at rounding, if its steps are equal.
pub fn stop(plan: &Plan) -> Stop {
    match &plan.stepping {
        Stepping::Fixed(_) => Stop {
            enough: UNIT_ROUND_OFF * UNIT_ROUND_OFF,
            too_far: f64::INFINITY,
            contraction: SLOWEST_CONTRACTION,
            decayed: DECAYED,
        },
        Stepping::Adaptive(adaptive) => {
            let enough = (PART * adaptive.rtol).max(UNIT_ROUND_OFF);
            Stop { enough: enough * enough, too_far: TOO_FAR, contraction: CONTRACTION, decayed: 1.0 }
        }
    }
}

/// How much of the largest estimate that is accepted the first change of an iteration may make the estimate: the next step
/// is shorter then. 0 where steps are not controlled.
pub fn most_by_first_change(collocation: &Collocation, plan: &Plan) -> f64 {
    match (&plan.stepping, facts(collocation).control) {
        (Stepping::Adaptive(adaptive), Some(control)) => FAR * control.tolerance(adaptive.rtol),
        _ => 0.0,
    }
}

/// At how many ends of a step its estimate looks, beside the stages: where steps are controlled.
pub fn ends(plan: &Plan) -> u64 {
    match plan.stepping {
        Stepping::Fixed(_) => 0,
        Stepping::Adaptive(_) => 2,
    }
}

impl StepMap for CollocationMap<'_> {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stability(&self) -> Option<f64> {
        Some(CONVERGES_TO)
    }

    fn vectors(&self) -> usize {
        2
    }

    fn work_len(&self) -> usize {
        let n = self.system.dim();
        let attempts = self.attempts.map_or(0, |attempts| attempts.work_len());
        let blocks = self.blocks.map_or(0, |(_, work_len)| work_len);
        // A memory for a part of a step, and an estimate of its error.
        let part = self.memory_len() + n;
        (part + self.stages.work_len().max(n + self.system.work_len())).max(attempts).max(blocks)
    }

    fn memory_len(&self) -> usize {
        Memory::len(self.collocation, self.system.vectors())
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep> {
        let Workspace { kept, memory, cost, work } = workspace;
        let solved = self.solve(step, memory, (x1, &mut kept[0]), work, &mut cost.field);
        solved.map_err(|Iterated { count, change, .. }| NoStep::NotSolved {
            iterations: count,
            residual: change.sqrt(),
            equation: STAGES.to_string(),
        })
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        out.copy_from_slice(&kept[0]);
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) {
        if self.fixed_step(step, x1, workspace).is_err() {
            x1.copy_from_slice(step.x);
            workspace.kept[0].fill(f64::INFINITY);
        }
    }

    fn attempts(&self) -> Option<&dyn Attempts> {
        self.attempts
    }

    fn blocks(&self) -> Option<&dyn Blocks> {
        self.blocks.map(|(blocks, _)| blocks)
    }

    fn stands_alone(&self) -> bool {
        false
    }

    /// A step to that time: the polynomial is of half the order within the step, and tells where the iteration starts.
    fn interpolate(&self, StepFrom { t, h, x }: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let (memory, work) = workspace.work.split_at_mut(workspace.memory.len());
        let (error, work) = work.split_at_mut(x.len());
        memory.copy_from_slice(workspace.memory);
        let memory = &mut Memory::of(self.collocation, self.system.vectors(), memory);
        let (part, stop) = (StepFrom { t, h: theta * h, x }, Stop { too_far: f64::INFINITY, ..self.stop });
        self.stages.start(part, From::Start, stop, memory, work);
        let iterated = self.stages.iterate(stop, work);
        workspace.cost.field += u64::from(iterated.count) * self.collocation.stages as u64 + self.ends;
        self.stages.finish(memory, out, error, work);
    }
}

/// What a failed iteration looked for.
const STAGES: &str = "a stage of the step";

/// Stages as slices over a system, one behind the other.
pub struct SliceStages<'a> {
    collocation: &'static Collocation,
    system: &'a dyn System,
    most_by_first_change: f64,
    ends: u64,
}

/// Their scratch.
struct Slices<'w> {
    x: &'w mut [f64],
    /// What rounding has lost of x.
    lost: &'w mut [f64],
    /// 1/S² of the vectors.
    scales: &'w mut [f64],
    /// The largest square of every vector so far.
    sizes: &'w mut [f64],
    /// t, h, and the part of a first change that is too far.
    numbers: &'w mut [f64],
    y: &'w mut [f64],
    field: &'w mut [f64],
    /// A new stage, or integrals of polynomials.
    next: &'w mut [f64],
    rest: &'w mut [f64],
}

impl<'a> SliceStages<'a> {
    /// Over `system`, for the steps of `plan`.
    pub fn new(collocation: &'static Collocation, plan: &Plan, system: &'a dyn System) -> SliceStages<'a> {
        SliceStages {
            collocation,
            system,
            most_by_first_change: most_by_first_change(collocation, plan),
            ends: ends(plan),
        }
    }

    fn split<'w>(&self, work: &'w mut [f64]) -> Slices<'w> {
        let (n, s, vectors) = (self.system.dim(), self.collocation.stages, self.system.vectors().count());
        let mut rest = work;
        let mut take = |len: usize| {
            let (taken, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            taken
        };
        let (x, lost, scales, sizes) = (take(n), take(n), take(vectors), take(vectors));
        let (numbers, y, field, next) = (take(3), take(s * n), take(s * n), take(n.max(s * s)));
        Slices { x, lost, scales, sizes, numbers, y, field, next, rest }
    }

    /// 1/S² of every vector, S² = |x|² + h² Σ|W_k|² with floors: of its largest square so far, which `sizes` keeps, and for
    /// those that rest while others of their family move; 0 where that is 0.
    fn scales(&self, decayed: f64, x: &[f64], memory: &Memory, sizes: &mut [f64], scales: &mut [f64]) {
        let (vectors, s) = (self.system.vectors(), self.collocation.stages);
        let square_of_h = *memory.length * *memory.length;
        for vector in 0..vectors.count() {
            let at = vectors.components_of(vector);
            let moves: f64 = memory.w[at.start * s..at.end * s].iter().map(|w| w * w).sum();
            let x: f64 = x[at].iter().map(|x| x * x).sum();
            sizes[vector] = memory.sizes[vector].max(x);
            scales[vector] = (square_of_h * moves + x).max(decayed * sizes[vector]);
        }
        for family in vectors.families() {
            let scales = &mut scales[family.vectors.clone()];
            let floor = FAMILY_FLOOR * scales.iter().fold(0.0, |largest: f64, &scale| largest.max(scale));
            for scale in scales {
                let square = scale.max(floor);
                *scale = if square >= f64::MIN_POSITIVE { 1.0 / square } else { 0.0 };
            }
        }
    }
}

impl Stages for SliceStages<'_> {
    fn work_len(&self) -> usize {
        let (n, s, vectors) = (self.system.dim(), self.collocation.stages, self.system.vectors().count());
        2 * (n + vectors + s * n) + 3 + n.max(s * s) + self.system.work_len()
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
        self.scales(stop.decayed, x, memory, at.sizes, at.scales);
        at.numbers[..2].copy_from_slice(&[t, h]);
        let reach = &mut at.next[..s * s];
        self.collocation.reach(from, h / *memory.length, *memory.length, reach);
        for (i, stage) in at.y.chunks_exact_mut(n.max(1)).enumerate() {
            for ((y, x), w) in stage.iter_mut().zip(x).zip(memory.w.chunks_exact(s)) {
                *y = w.iter().enumerate().fold(*x, |sum, (k, w)| w.mul_add(reach[k * s + i], sum));
            }
        }
    }

    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated {
        let n = self.system.dim();
        let Slices { x, scales, numbers, y, field, next, rest, .. } = self.split(work);
        let (next, (t, h)) = (&mut next[..n], (numbers[0], numbers[1]));
        let vectors = self.system.vectors();
        let mut iterated = Iterated::NONE;
        loop {
            for (j, c) in self.collocation.nodes.iter().enumerate() {
                let at = j * n..(j + 1) * n;
                self.system.field(c.mul_add(h, t), &y[at.clone()], &mut field[at], rest);
            }
            let mut change = 0.0;
            for (i, sums) in self.collocation.sums.iter().enumerate() {
                let y = &mut y[i * n..(i + 1) * n];
                sum_of_stages(sums, field, next);
                for ((next, y), x) in next.iter_mut().zip(y.iter_mut()).zip(x.iter()) {
                    let value = h.mul_add(*next, *x);
                    (*next, *y) = (value - *y, value);
                }
                let moved = (0..scales.len()).map(|vector| {
                    scales[vector] * next[vectors.components_of(vector)].iter().map(|d| d * d).sum::<f64>()
                });
                let moved: f64 = moved.sum();
                // NaN stays.
                change = if moved > change || moved.is_nan() { moved } else { change };
            }
            let first = if iterated.count == 0 { change } else { iterated.first };
            let before = [iterated.change, iterated.before[0]];
            iterated = Iterated { count: iterated.count + 1, change, before, first };
            if !iterated.goes_on(stop) {
                numbers[2] = (iterated.first / stop.too_far).min(1.0).sqrt();
                return iterated;
            }
        }
    }

    fn finish(&self, memory: &mut Memory, x1: &mut [f64], error: &mut [f64], work: &mut [f64]) -> bool {
        let (n, s, vectors) = (self.system.dim(), self.collocation.stages, self.system.vectors());
        let Slices { x, lost, scales, sizes, numbers, y, field, next, rest } = self.split(work);
        let (sum, [t, h, far]) = (&mut next[..n], [numbers[0], numbers[1], numbers[2]]);
        for (k, weights) in self.collocation.coefficients.iter().enumerate() {
            sum_of_stages(weights, field, sum);
            for (w, sum) in memory.w.chunks_exact_mut(s).zip(sum.iter()) {
                w[k] = *sum;
            }
        }
        memory.sizes.copy_from_slice(sizes);
        for (i, w) in memory.w.chunks_exact(s).enumerate() {
            // The last two coefficients: one alone vanishes by accident.
            error[i] = w[s - 1].abs() + w[s - 2].abs();
            sum[i] = w[before_last(s)].iter().map(|w| w.abs()).sum();
            // By compensated summation (HLW VIII.5).
            let increment = h.mul_add(w[0], lost[i]);
            x1[i] = x[i] + increment;
            memory.lost[i] = increment - (x1[i] - x[i]);
        }
        // No node is at an end: what is before the first one and behind the last one shows there alone.
        let end = &mut y[..n];
        for (sign, t, x) in [(-1.0, t, &*x), (1.0, t + h, &*x1)].into_iter().take(self.ends as usize) {
            self.system.field(t, x, end, rest);
            for ((error, end), w) in error.iter_mut().zip(end.iter()).zip(memory.w.chunks_exact(s)) {
                let missed = (end - w.iter().rev().fold(0.0, |sum, w| sign * sum + w)).abs();
                // Where the field is undefined, no error is small enough.
                *error = error.max(if missed.is_nan() { f64::INFINITY } else { missed });
            }
        }
        let square = |of: &[f64]| {
            let all = scales.iter().enumerate();
            all.map(|(vector, scale)| scale * square(&of[vectors.components_of(vector)])).sum::<f64>()
        };
        let (last, before) = (square(error), square(sum));
        let norm = h * (last / scales.len().max(1) as f64).sqrt();
        // As large as it has to be for the first change of the iteration, but no larger than what is accepted; and where
        // coefficients hardly decrease, at a kink or at a wall, as large as the last would be of those that do.
        let wanted = (self.most_by_first_change * far).max((last / before).min(1.0) * norm.sqrt());
        if norm > 0.0 && wanted > norm {
            error.iter_mut().for_each(|error| *error *= wanted / norm);
        }
        scales.iter().enumerate().any(|(vector, &scale)| {
            let at = vectors.components_of(vector);
            scale == 0.0 && memory.w[at.start * s..at.end * s].iter().any(|&w| w != 0.0)
        })
    }
}

/// The coefficients before the last two, without the mean: their decrease is that from these to the last.
pub fn before_last(stages: usize) -> Range<usize> {
    (stages - 4).max(1)..stages - 2
}

/// Σ w_j f_j of vectors f_j one behind the other; those of even number and those of odd number are summed up by
/// themselves.
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
