//! Step of a [`Collocation`] method whose stages are found by fixed-point iteration, which starts
//! from the polynomial of the step before (HLW VIII.6.1). The step is written over [`Stages`],
//! which are slices here and compiled elsewhere.

use crate::controller::StepControl;
use crate::plan::{Plan, Stepping};
use crate::scales::{FAMILY_FLOOR, UNIT_ROUND_OFF, Vectors};
use crate::scheme::collocation::{CONVERGES_TO, Collocation, From};
use crate::scheme::map::{
    Allowance, Attempts, Blocks, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace,
};
use crate::system::System;
use holonome_arithmetic::square;
use holonome_linear::widest::widest;
use std::ops::Range;

/// Stages of a step: s states and the field at them.
pub trait Stages: Sync {
    /// Length of the scratch that holds them.
    fn work_len(&self) -> usize;

    /// Set the stages to the start of the iteration: the carried polynomial, evaluated beyond its
    /// step or, for a step that has been made before and is made again or in part, within it (see
    /// [`From`]).
    fn start(&self, step: StepFrom, from: From, stop: Stop, memory: &Memory, work: &mut [f64]);

    /// Iterate until `stop` applies.
    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated;

    /// Compute x₁, the estimate of its error without its factor h, and the numbers that `memory`
    /// carries to the next step. Where steps are controlled the estimate includes the field at both
    /// ends.
    fn finish(
        &self,
        memory: &mut Memory,
        x1: &mut [f64],
        error: &mut [f64],
        work: &mut [f64],
    ) -> Finished;
}

/// Facts about a finished step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// True if a vector without a scale has moved; its stages have not been monitored.
    pub moves: bool,
    /// Allowance for errors that the estimate does not contain, if steps are controlled.
    pub allowance: Allowance,
}

/// Criteria at which an iteration ends. Changes are squares, relative to the scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// Change that is small enough.
    pub enough: f64,
    /// First change from which on the iteration does not start near the solution.
    pub too_far: f64,
    /// Factor by which changes have to shrink, after the first iterations.
    pub contraction: f64,
    /// Least square of a vector's scale, relative to its largest square so far: a decayed vector
    /// does not keep its old scale.
    pub decayed: f64,
}

/// Result of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterated {
    /// Number of field evaluations at all stages.
    pub count: u32,
    /// The last change.
    pub change: f64,
    /// The two changes before it: where positions and momenta depend on each other, every other
    /// change is small.
    pub before: [f64; 2],
    /// First change.
    pub first: f64,
}

/// Largest number of iterations.
pub const MOST_ITERATIONS: u32 = 100;
/// Number of iterations from which on changes have to shrink.
pub const SETTLED: u32 = 5;
/// Contraction by the square of 0.7, where a shorter step is better than more iterations.
const CONTRACTION: f64 = 0.49;
/// Contraction for equal steps: nearly none.
const SLOWEST_CONTRACTION: f64 = 0.95;
/// Square of the change below which one that does not shrink any more is due to rounding.
pub const ROUNDING: f64 = 1e-24;
/// Largest first change of a step that follows another: a tenth of the state. After a larger one
/// the iteration may lead to another solution. With a fifth none does on Kepler's problem with
/// eccentricities up to 0.99999, and the pendulum takes 13 % fewer steps; but a double pendulum by
/// angles errs five times as much as by dop853 at 1e-10, in place of half as much.
const TOO_FAR: f64 = 0.01;
/// Error by which the largest first change counts in step-size control: nearly one that is not
/// accepted.
pub const FAR: f64 = 0.95;
/// Least square of a scale where iterations go to rounding: the square of 10⁻⁸.
const DECAYED: f64 = 1e-16;
/// Remaining error of the iteration, as a part of the tolerance.
const PART: f64 = 0.2;

impl Iterated {
    /// State before the first iteration.
    pub const NONE: Iterated =
        Iterated { count: 0, change: f64::INFINITY, before: [f64::INFINITY; 2], first: 0.0 };

    /// True if another iteration is to follow.
    pub fn goes_on(self, stop: Stop) -> bool {
        let Iterated { count, change, before: [last, older], .. } = self;
        let before = if last > older { last } else { older };
        let far = count == 1 && change > stop.too_far;
        let stays = count >= 3 && change >= before && change <= ROUNDING;
        let grows = count >= SETTLED && change > stop.contraction * before && change > ROUNDING;
        change > stop.enough && count < MOST_ITERATIONS && !(far || stays || grows)
    }

    /// True if the stages are found.
    pub fn converged(self, stop: Stop) -> bool {
        self.change <= if stop.enough > ROUNDING { stop.enough } else { ROUNDING }
    }
}

/// Step over some stages. Its memory is [`Memory`].
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
    /// Step of `plan`'s method.
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

    /// Add equal steps in a loop that takes so much scratch.
    pub fn with_blocks(self, blocks: &'a dyn Blocks, work_len: usize) -> CollocationMap<'a> {
        CollocationMap { blocks: Some((blocks, work_len)), ..self }
    }

    /// Add attempts in a loop.
    pub fn with_attempts(self, attempts: &'a dyn Attempts) -> CollocationMap<'a> {
        CollocationMap { attempts: Some(attempts), ..self }
    }

    /// Make the step from a memory, and the memory of the next step. An error is the last
    /// iteration.
    fn solve(
        &self,
        step: StepFrom,
        memory: &mut [f64],
        (x1, error): (&mut [f64], &mut [f64]),
        work: &mut [f64],
        evaluations: &mut u64,
    ) -> Result<Allowance, Iterated> {
        let memory = &mut Memory::of(self.collocation, self.system.vectors(), memory);
        // A polynomial says nothing of what is far behind its step.
        let follows = *memory.length != 0.0 && step.h <= LONGEST_LEAP * *memory.length;
        if !follows {
            self.begin(step, memory, work);
            *evaluations += 1;
        }
        let mut stop =
            if follows { self.stop } else { Stop { too_far: f64::INFINITY, ..self.stop } };
        let (mut from, mut allowance) = (From::End, Allowance::NONE);
        // Once, and again whenever a vector that the step before left at rest starts to move, which
        // then has a scale.
        for _ in 0..=self.system.vectors().count() {
            self.stages.start(step, from, stop, memory, work);
            let iterated = self.stages.iterate(stop, work);
            *evaluations += u64::from(iterated.count) * self.collocation.stages as u64;
            if !iterated.converged(stop) {
                return Err(iterated);
            }
            let finished = self.stages.finish(memory, x1, error, work);
            allowance = finished.allowance;
            *evaluations += self.ends;
            *memory.length = step.h;
            if !finished.moves {
                break;
            }
            (from, stop) = (From::Start, Stop { too_far: f64::INFINITY, ..stop });
        }
        Ok(allowance)
    }

    /// Set the memory as if a step of the length h with the field at its end had come before.
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

/// Largest ratio of a step to the one before from which its iteration starts; the control of steps
/// doubles them at most.
const LONGEST_LEAP: f64 = 16.0;

/// Numbers that a step carries to the next one.
pub struct Memory<'m> {
    /// Coefficients of its polynomial.
    pub w: &'m mut [f64],
    /// Rounding error of x.
    pub lost: &'m mut [f64],
    /// The largest square of every vector so far.
    pub sizes: &'m mut [f64],
    /// Length of the step, 0 if there was none.
    pub length: &'m mut f64,
}

impl<'m> Memory<'m> {
    /// Length of the memory.
    pub fn len(collocation: &Collocation, vectors: &Vectors) -> usize {
        vectors.dim() * (collocation.stages + 1) + vectors.count() + 1
    }

    /// Parts of the memory, for states of these vectors.
    pub fn of(collocation: &Collocation, vectors: &Vectors, memory: &'m mut [f64]) -> Memory<'m> {
        let n = vectors.dim();
        let (w, rest) = memory.split_at_mut(n * collocation.stages);
        let (lost, rest) = rest.split_at_mut(n);
        let (sizes, length) = rest.split_at_mut(vectors.count());
        Memory { w, lost, sizes, length: &mut length[0] }
    }
}

/// Facts about the method.
pub fn facts(collocation: &Collocation) -> Facts {
    let s = collocation.stages;
    Facts {
        control: Some(StepControl::of_coefficients(collocation.order, s as u32 - 2)),
        equal_steps: Estimate::Known,
        errors: 0..1,
        end_field: Some(1),
        ends_with_field: false,
    }
}

/// Criteria at which iterations of `plan` end: at rounding, if its steps are equal.
pub fn stop(plan: &Plan) -> Stop {
    match &plan.stepping {
        Stepping::Fixed(_) => Stop {
            // To stop at a change of one rounding leaves an error of the same sign in every step
            // (Hairer, McLachlan, Razakarivony, BIT 48 (2008) 231).
            enough: 0.0,
            too_far: f64::INFINITY,
            contraction: SLOWEST_CONTRACTION,
            decayed: DECAYED,
        },
        Stepping::Adaptive(adaptive) => {
            let enough = (PART * adaptive.rtol).max(UNIT_ROUND_OFF);
            Stop {
                enough: enough * enough,
                too_far: TOO_FAR,
                contraction: CONTRACTION,
                decayed: 1.0,
            }
        }
    }
}

/// Largest estimate that the first change of an iteration alone may cause, just below the largest
/// that is accepted: the next step is then shorter. `None` if steps are not controlled.
pub fn most_by_first_change(collocation: &Collocation, plan: &Plan) -> Option<f64> {
    match (&plan.stepping, facts(collocation).control) {
        (Stepping::Adaptive(adaptive), Some(control)) => {
            Some(FAR * control.tolerance(adaptive.rtol))
        }
        _ => None,
    }
}

/// True if the steps of `plan` are sums of increments; see [`Collocation::of_increments`].
pub fn of_increments(plan: &Plan) -> bool {
    matches!(plan.stepping, Stepping::Fixed(_))
}

/// Number of ends of a step at which its estimate evaluates the field, beside the stages: both, if
/// steps are controlled.
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

    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep> {
        let Workspace { kept, memory, cost, work } = workspace;
        let solved = self.solve(step, memory, (x1, &mut kept[0]), work, &mut cost.field);
        solved.map(drop).map_err(|Iterated { count, change, .. }| NoStep::NotSolved {
            iterations: count,
            residual: change.sqrt(),
            equation: STAGES.to_string(),
        })
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        out.copy_from_slice(&kept[0]);
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Allowance {
        let Workspace { kept, memory, cost, work } = workspace;
        let solved = self.solve(step, memory, (x1, &mut kept[0]), work, &mut cost.field);
        solved.unwrap_or_else(|_| {
            x1.copy_from_slice(step.x);
            kept[0].fill(f64::INFINITY);
            Allowance::NONE
        })
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

    /// Make a step to that time: the polynomial is of half the order within the step, and serves as
    /// the start of the iteration.
    fn interpolate(
        &self,
        StepFrom { t, h, x }: StepFrom,
        theta: f64,
        out: &mut [f64],
        workspace: &mut Workspace,
    ) {
        let (memory, work) = workspace.work.split_at_mut(workspace.memory.len());
        let (error, work) = work.split_at_mut(x.len());
        memory.copy_from_slice(workspace.memory);
        let memory = &mut Memory::of(self.collocation, self.system.vectors(), memory);
        let (part, stop) =
            (StepFrom { t, h: theta * h, x }, Stop { too_far: f64::INFINITY, ..self.stop });
        self.stages.start(part, From::Start, stop, memory, work);
        let iterated = self.stages.iterate(stop, work);
        workspace.cost.field +=
            u64::from(iterated.count) * self.collocation.stages as u64 + self.ends;
        self.stages.finish(memory, out, error, work);
    }
}

/// Name of the equations of a failed iteration.
const STAGES: &str = "a stage of the step";

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
    /// t, h, the root of the first change as a part of one that is too far, and the last change.
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
        let (numbers, y, field, next) = (take(4), take(s * n), take(s * n), take(n.max(s * s)));
        Slices { x, lost, scales, sizes, numbers, y, field, next, rest }
    }

    /// Compute 1/S² of every vector, S² = |x|² + h² Σ|W_k|², 0 where S² is 0. There are two floors:
    /// a part of the vector's largest square so far, which `sizes` keeps, and one for vectors at
    /// rest while others of their family move.
    fn scales(
        &self,
        decayed: f64,
        x: &[f64],
        memory: &Memory,
        sizes: &mut [f64],
        scales: &mut [f64],
    ) {
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
            let floor =
                FAMILY_FLOOR * scales.iter().fold(0.0, |largest: f64, &scale| largest.max(scale));
            for scale in scales {
                let square = scale.max(floor);
                *scale = if square >= f64::MIN_POSITIVE { 1.0 / square } else { 0.0 };
            }
        }
    }
}

impl Stages for SliceStages<'_> {
    fn work_len(&self) -> usize {
        let (n, s, vectors) =
            (self.system.dim(), self.collocation.stages, self.system.vectors().count());
        2 * (n + vectors + s * n) + 4 + n.max(s * s) + self.system.work_len()
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
            let mut change = 0.0;
            for (i, sums) in tables.stages.iter().enumerate() {
                let y = &mut y[i * n..(i + 1) * n];
                sum_of_stages(sums, field, next);
                for ((next, y), x) in next.iter_mut().zip(y.iter_mut()).zip(x.iter()) {
                    let value = factor.mul_add(*next, *x);
                    (*next, *y) = (value - *y, value);
                }
                let moved = (0..scales.len()).map(|vector| {
                    scales[vector]
                        * next[vectors.components_of(vector)].iter().map(|d| d * d).sum::<f64>()
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
                numbers[3] = change;
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
        let (sum, [t, h, far, change]) = (&mut next[..n], std::array::from_fn(|k| numbers[k]));
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
            // The sum of the last two coefficients: one alone vanishes by accident.
            error[i] = w[s - 1].abs() + w[s - 2].abs();
            sum[i] = w[before_last(s)].iter().map(|w| w.abs()).sum();
            // By compensated summation (HLW VIII.5).
            let increment = factor.mul_add(x1[i], lost[i]);
            x1[i] = x[i] + increment;
            memory.lost[i] = increment - (x1[i] - x[i]);
        }
        let square = |of: &[f64]| {
            let all = scales.iter().enumerate();
            all.map(|(vector, scale)| scale * square(&of[vectors.components_of(vector)]))
                .sum::<f64>()
        };
        let (before, seen) = (square(sum), square(error));
        // No node is at an end: a change of the field before the first node or after the last one
        // shows only there.
        let (end, missed) = y[..2 * n].split_at_mut(n);
        missed.fill(0.0);
        for (sign, t, x) in
            [(-1.0, t, &*x), (1.0, t + h, &*x1)].into_iter().take(self.ends as usize)
        {
            self.system.field(t, x, end, rest);
            for ((missed, end), w) in
                missed.iter_mut().zip(end.iter()).zip(memory.w.chunks_exact(s))
            {
                let distance = (end - w.iter().rev().fold(0.0, |sum, w| sign * sum + w)).abs();
                // Where the field is undefined, no error is small enough.
                *missed = missed.max(if distance.is_nan() { f64::INFINITY } else { distance });
            }
        }
        let unseen = square(missed);
        error.iter_mut().zip(missed).for_each(|(error, missed)| *error = error.max(*missed));
        let mut allowance = Allowance::NONE;
        if let Some(most) = self.most_by_first_change {
            let (last, mean) = (square(error), 1.0 / scales.len().max(1) as f64);
            let norm = h * (last * mean).sqrt();
            // As large as the first change of the iteration demands, but no larger than is
            // accepted. Where coefficients hardly decrease, at a kink or at a wall, as large as the
            // last coefficient would be if they did.
            let mut wanted = (most * far).max((last / before).min(1.0) * norm.sqrt());
            if unseen * before > UNEXPLAINED * seen * seen {
                let (factor, power) = of_error(self.collocation);
                wanted = wanted.max(
                    factor * (h * self.collocation.nodes[0] * (unseen * mean).sqrt()).powf(power),
                );
            }
            let factor = if norm > 0.0 && wanted > norm { wanted / norm } else { 1.0 };
            allowance = Allowance { factor, unsolved: change };
        }
        let moves = scales.iter().enumerate().any(|(vector, &scale)| {
            let at = vectors.components_of(vector);
            scale == 0.0 && memory.w[at.start * s..at.end * s].iter().any(|&w| w != 0.0)
        });
        Finished { moves, allowance }
    }
}

/// Ratio of squares from which on what the polynomial misses at an end of the step is more than the
/// coefficients that are left out explain. These continue as the last ones decrease, within a
/// factor of four. What is more begins behind the last node or ends before the first one, and the
/// error that it leaves is the integral between that node and the end.
pub const UNEXPLAINED: f64 = 16.0;

/// Estimate by coefficients that stands for an error ε: the first number times ε to the power of
/// the second.
pub fn of_error(collocation: &Collocation) -> (f64, f64) {
    facts(collocation).control.expect("steps have an estimate").scale
}

/// Coefficients before the last two, without the mean; the decrease is measured from these to the
/// last two.
pub fn before_last(stages: usize) -> Range<usize> {
    (stages - 4).max(1)..stages - 2
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
