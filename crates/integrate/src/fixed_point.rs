//! The step of a [`Collocation`] method: its stages are found by fixed-point iteration, which starts from the polynomial
//! of the step before (HLW VIII.6.1). It is written over [`Stages`], which are slices here and compiled elsewhere.

use crate::controller::Control;
use crate::controller::slots::{Slots, Status};
use crate::controller::trial::trial;
use crate::cost::Cost;
use crate::plan::{AdaptiveSteps, Plan, Stepping};
use crate::scales::{FAMILY_FLOOR, UNIT_ROUND_OFF, Vectors, square};
use crate::scheme::collocation::{CONVERGES_TO, Collocation, From};
use crate::scheme::map::{Attempts, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace};
use crate::system::System;
use crate::vector::widest;

/// The stages of a step, s states and the field at them. Numbers of component i stand at `i s ..`, one for each stage or
/// coefficient.
pub trait Stages: Sync {
    /// Length of the scratch in which they are kept.
    fn work_len(&self) -> usize;

    /// Puts the stages to where the iteration starts, x + Σ_k W_k reach_k (see [`Collocation::reach`]). `scales` are 1/S² of
    /// every vector.
    fn start(&self, step: StepFrom, w: &[f64], reach: &[f64], scales: &[f64], work: &mut [f64]);

    /// Iterates.
    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated;

    /// Puts the Legendre coefficients W of the field at the stages into `w`.
    fn coefficients(&self, w: &mut [f64], work: &mut [f64]);
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

/// The step over some stages. Its memory is W of the step before, what rounding lost of x, and the length of that step.
pub struct CollocationMap<'a> {
    collocation: &'static Collocation,
    system: &'a dyn System,
    stages: &'a dyn Stages,
    facts: Facts,
    stop: Stop,
    /// The largest estimate of an error that is accepted, where steps are controlled.
    tolerance: Option<f64>,
    judged: Option<(AdaptiveSteps, &'a dyn Judge)>,
}

/// What follows an attempt, as a function of numbers: its error, the treatment of its result, the next step. They stand where
/// the slots say, and x₁ and the estimate of its error behind them.
pub trait Judge: Sync {
    /// Where the numbers stand.
    fn slots(&self) -> &Slots;

    /// Length of the scratch it needs.
    fn work_len(&self) -> usize;

    /// Makes of an attempt what a loop of attempts makes of it.
    fn judge(&self, state: &mut [f64], work: &mut [f64]);

    /// Adds what treating the results of so many accepted steps costs.
    fn count_treatments(&self, steps: u64, cost: &mut Cost);

    /// Makes deviations of what stands in [`Slots::largest`].
    fn finish(&self, largest: &mut [f64]);
}

impl<'a> CollocationMap<'a> {
    /// Of `plan`'s method.
    pub fn new(
        collocation: &'static Collocation,
        plan: &Plan,
        system: &'a dyn System,
        stages: &'a dyn Stages,
    ) -> CollocationMap<'a> {
        let facts = facts(collocation);
        let tolerance = match &plan.stepping {
            Stepping::Adaptive(adaptive) => facts.control.map(|control| control.tolerance(adaptive.rtol)),
            Stepping::Fixed(_) => None,
        };
        CollocationMap { collocation, system, stages, facts, stop: stop(plan), tolerance, judged: None }
    }

    /// The same with attempts in a loop, if the steps of `plan` are controlled.
    pub fn judged(self, plan: &Plan, judge: &'a dyn Judge) -> CollocationMap<'a> {
        let Stepping::Adaptive(adaptive) = &plan.stepping else { return self };
        CollocationMap { judged: Some((adaptive.clone(), judge)), ..self }
    }

    /// Makes the estimate of a step's error as large as it has to be for the first change of its iteration, but no larger than
    /// what is accepted: the next step is shorter then.
    fn count_first_change(&self, first: f64, h: f64, error: &mut [f64], own: &[f64]) {
        let Some(tolerance) = self.tolerance else { return };
        let (vectors, scales) = (self.system.vectors(), &own[self.collocation.stages.pow(2)..]);
        let squares =
            scales.iter().enumerate().map(|(vector, scale)| scale * square(&error[vectors.components_of(vector)]));
        let norm = h * (squares.sum::<f64>() / scales.len().max(1) as f64).sqrt();
        let wanted = tolerance * FAR * (first * first / TOO_FAR).min(1.0).sqrt();
        if norm > 0.0 && wanted > norm {
            error.iter_mut().for_each(|error| *error *= wanted / norm);
        }
    }

    /// Finds the stages of the step, and their coefficients in the memory.
    fn solve(
        &self,
        step: StepFrom,
        memory: &mut Memory,
        work: &mut [f64],
        evaluations: &mut u64,
    ) -> Result<f64, Iterated> {
        let StepFrom { h, x, .. } = step;
        let s = self.collocation.stages;
        let vectors = self.system.vectors();
        let (own, work) = work.split_at_mut(self.own_len());
        let (reach, scales) = own.split_at_mut(s * s);
        let follows = *memory.length != 0.0;
        if !follows {
            self.begin(step, memory, work);
            *evaluations += 1;
        }
        let stop = if follows { self.stop } else { Stop { too_far: f64::INFINITY, ..self.stop } };
        self.collocation.reach(From::End, h / *memory.length, *memory.length, reach);
        let (mut length, mut first) = (*memory.length, 0.0);
        // Once, or as often as something starts to move that the step before left at rest, which then has a scale.
        for _ in 0..=vectors.count() {
            self.scales(x, memory.w, length, memory.sizes, scales);
            self.stages.start(step, memory.w, reach, scales, work);
            let iterated = self.stages.iterate(stop, work);
            *evaluations += u64::from(iterated.count) * s as u64;
            if !iterated.converged(stop) {
                return Err(iterated);
            }
            first = if follows { iterated.first } else { first };
            self.stages.coefficients(memory.w, work);
            length = h;
            *memory.length = h;
            if !starts_to_move(vectors, s, memory.w, scales) {
                break;
            }
            self.collocation.reach(From::Start, 1.0, h, reach);
        }
        Ok(first.sqrt())
    }

    /// 1/S² of every vector, S² = |x|² + h² Σ|W_k|² with floors: of its largest square so far, which `sizes` keeps, and for
    /// those that rest while others of their family move; 0 where that is 0.
    fn scales(&self, x: &[f64], w: &[f64], h: f64, sizes: &mut [f64], scales: &mut [f64]) {
        let (vectors, s) = (self.system.vectors(), self.collocation.stages);
        let square_of_h = h * h;
        for (vector, (scale, size)) in scales.iter_mut().zip(sizes.iter_mut()).enumerate() {
            let at = vectors.components_of(vector);
            let moves: f64 = w[at.start * s..at.end * s].iter().map(|w| w * w).sum();
            let x: f64 = x[at].iter().map(|x| x * x).sum();
            *size = size.max(x);
            *scale = (square_of_h * moves + x).max(self.stop.decayed * *size);
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

    fn own_len(&self) -> usize {
        self.collocation.stages.pow(2) + self.system.vectors().count()
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
    /// The parts of it, for states of `system`.
    pub fn of(collocation: &Collocation, system: &dyn System, memory: &'m mut [f64]) -> Memory<'m> {
        let n = system.dim();
        let (w, rest) = memory.split_at_mut(n * collocation.stages);
        let (lost, rest) = rest.split_at_mut(n);
        let (sizes, length) = rest.split_at_mut(system.vectors().count());
        Memory { w, lost, sizes, length: &mut length[0] }
    }
}

/// The last two coefficients: one alone vanishes by accident.
fn estimate(w: &[f64]) -> f64 {
    let s = w.len();
    w[s - 1].abs() + w[s - 2].abs()
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

/// Whether a vector without a scale has moved.
pub fn starts_to_move(vectors: &Vectors, stages: usize, w: &[f64], scales: &[f64]) -> bool {
    scales.iter().enumerate().any(|(vector, &scale)| {
        let at = vectors.components_of(vector);
        scale == 0.0 && w[at.start * stages..at.end * stages].iter().any(|&w| w != 0.0)
    })
}

/// x + h W₀ by compensated summation (HLW VIII.5); `lost` is what rounding has lost so far.
pub fn advance(h: f64, w: f64, x: f64, lost: &mut f64) -> f64 {
    let increment = h.mul_add(w, *lost);
    let sum = x + increment;
    *lost = increment - (sum - x);
    sum
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
        let copy = n * self.collocation.stages;
        let judging = self.judged.as_ref().map_or(0, |(_, judge)| self.memory_len() + judge.work_len());
        self.own_len() + copy + self.stages.work_len().max(n + self.system.work_len()) + judging
    }

    fn memory_len(&self) -> usize {
        self.system.dim() * (self.collocation.stages + 1) + self.system.vectors().count() + 1
    }

    fn takes_first_stage(&self) -> bool {
        false
    }

    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep> {
        let Workspace { kept, memory, cost, work } = workspace;
        let mut memory = Memory::of(self.collocation, self.system, memory);
        let solved = self.solve(step, &mut memory, work, &mut cost.field);
        let not_solved = |Iterated { count, change, .. }| NoStep::NotSolved {
            iterations: count,
            residual: change.sqrt(),
            equation: STAGES.to_string(),
        };
        let first = solved.map_err(not_solved)?;
        let coefficients = memory.w.chunks_exact(self.collocation.stages);
        for (i, (w, lost)) in coefficients.zip(memory.lost.iter_mut()).enumerate() {
            kept[0][i] = estimate(w);
            x1[i] = advance(step.h, w[0], step.x[i], lost);
        }
        self.count_first_change(first, step.h, &mut kept[0], &work[..self.own_len()]);
        Ok(())
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
        self.judged.as_ref().map(|_| self as &dyn Attempts)
    }

    /// A step to that time: the polynomial is of half the order within the step, and tells where the iteration starts.
    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let StepFrom { t, h, x } = step;
        let s = self.collocation.stages;
        let (own, work) = workspace.work.split_at_mut(self.own_len());
        let (reach, scales) = own.split_at_mut(s * s);
        let (w, work) = work.split_at_mut(x.len() * s);
        w.copy_from_slice(&workspace.memory[..w.len()]);
        let sizes = Memory::of(self.collocation, self.system, workspace.memory).sizes;
        self.scales(x, w, h, sizes, scales);
        self.collocation.reach(From::Start, theta, h, reach);
        self.stages.start(StepFrom { t, h: theta * h, x }, w, reach, scales, work);
        let iterated = self.stages.iterate(Stop { too_far: f64::INFINITY, ..self.stop }, work);
        workspace.cost.field += u64::from(iterated.count) * s as u64;
        self.stages.coefficients(w, work);
        for ((out, x), w) in out.iter_mut().zip(x).zip(w.chunks_exact(s)) {
            *out = (theta * h).mul_add(w[0], *x);
        }
    }
}

impl CollocationMap<'_> {
    fn judge(&self) -> &(AdaptiveSteps, &dyn Judge) {
        self.judged.as_ref().expect("attempts are made in a loop where there is a judge")
    }
}

impl Attempts for CollocationMap<'_> {
    fn slots(&self) -> &Slots {
        self.judge().1.slots()
    }

    fn state_len(&self) -> usize {
        self.slots().count() + 2 * self.system.dim()
    }

    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace) {
        let (adaptive, judge) = self.judge();
        let (slots, n) = (judge.slots(), self.system.dim());
        let Workspace { kept, memory, cost, work } = workspace;
        let (before, rest) = work.split_at_mut(memory.len());
        let (judging, work) = rest.split_at_mut(judge.work_len());
        before.copy_from_slice(memory);
        for _ in 0..count {
            let (t, wanted) = (state[slots.t], state[slots.h].min(adaptive.longest_step));
            // What is not like any other step is left to whoever judges.
            let trial = trial((adaptive.t_end, adaptive.shortest_step), t, wanted, state[slots.rejections] as u32);
            if let Some((h, _)) = trial.filter(|&(_, end)| end < state[slots.pause]) {
                let (numbers, attempted) = state.split_at_mut(slots.count());
                let (x1, error) = attempted.split_at_mut(n);
                let step = StepFrom { t, h, x: &numbers[slots.x.clone()] };
                self.attempt(step, x1, &mut Workspace { kept, memory, cost, work });
                error.copy_from_slice(&kept[0]);
            }
            let steps = state[slots.steps];
            judge.judge(state, judging);
            if state[slots.steps] > steps {
                before.copy_from_slice(memory);
            } else {
                memory.copy_from_slice(before);
            }
            if state[slots.status] != Status::Going.number() {
                break;
            }
        }
    }

    fn evaluations(&self) -> u64 {
        0
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        self.judge().1.count_treatments(steps, cost);
    }

    fn finish(&self, largest: &mut [f64]) {
        self.judge().1.finish(largest);
    }
}

/// What a failed iteration looked for.
const STAGES: &str = "a stage of the step";

/// Stages as slices over a system, one behind the other.
pub struct SliceStages<'a> {
    collocation: &'static Collocation,
    system: &'a dyn System,
}

impl<'a> SliceStages<'a> {
    /// Over `system`.
    pub fn new(collocation: &'static Collocation, system: &'a dyn System) -> SliceStages<'a> {
        SliceStages { collocation, system }
    }
}

impl Stages for SliceStages<'_> {
    fn work_len(&self) -> usize {
        let (n, s) = (self.system.dim(), self.collocation.stages);
        // x, 1/S², t and h, the stages, the field at them, a new stage.
        n + self.system.vectors().count() + 2 + (2 * s + 1) * n + self.system.work_len()
    }

    fn start(&self, StepFrom { t, h, x }: StepFrom, w: &[f64], reach: &[f64], scales: &[f64], work: &mut [f64]) {
        let (n, s) = (x.len(), self.collocation.stages);
        let (from, rest) = work.split_at_mut(n);
        from.copy_from_slice(x);
        let (kept, rest) = rest.split_at_mut(scales.len());
        kept.copy_from_slice(scales);
        rest[..2].copy_from_slice(&[t, h]);
        for (i, stage) in rest[2..2 + s * n].chunks_exact_mut(n.max(1)).enumerate() {
            for ((y, x), w) in stage.iter_mut().zip(x).zip(w.chunks_exact(s)) {
                *y = w.iter().enumerate().fold(*x, |sum, (k, w)| w.mul_add(reach[k * s + i], sum));
            }
        }
    }

    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated {
        let (n, s, vectors) = (self.system.dim(), self.collocation.stages, self.system.vectors());
        let (x, rest) = work.split_at_mut(n);
        let (scales, rest) = rest.split_at_mut(vectors.count());
        let (times, rest) = rest.split_at_mut(2);
        let (t, h) = (times[0], times[1]);
        let (y, rest) = rest.split_at_mut(s * n);
        let (field, rest) = rest.split_at_mut(s * n);
        let (next, work) = rest.split_at_mut(n);
        let mut iterated = Iterated::NONE;
        loop {
            for (j, c) in self.collocation.nodes.iter().enumerate() {
                let at = j * n..(j + 1) * n;
                self.system.field(c.mul_add(h, t), &y[at.clone()], &mut field[at], work);
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
                return iterated;
            }
        }
    }

    fn coefficients(&self, w: &mut [f64], work: &mut [f64]) {
        let (n, s) = (self.system.dim(), self.collocation.stages);
        let first = n + self.system.vectors().count() + 2 + s * n;
        let (field, rest) = work[first..].split_at_mut(s * n);
        let sum = &mut rest[..n];
        for (k, weights) in self.collocation.coefficients.iter().enumerate() {
            sum_of_stages(weights, field, sum);
            for (w, sum) in w.chunks_exact_mut(s).zip(sum.iter()) {
                w[k] = *sum;
            }
        }
    }
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
