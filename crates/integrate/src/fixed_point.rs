//! Step of a [`Collocation`] method whose stages are found by fixed-point iteration, which starts
//! from the polynomial of the step before (HLW VIII.6.1). The step is written over [`Stages`],
//! which are slices here and compiled elsewhere.

pub mod rules;
mod slices;

use crate::controller::StepControl;
use crate::plan::{Plan, Stepping};
use crate::scales::{UNIT_ROUND_OFF, Vectors};
use crate::scheme::collocation::{CONVERGES_TO, Collocation, From, reach};
use crate::scheme::map::{
    Allowance, Attempts, Blocks, Estimate, Facts, NoStep, StepFrom, StepMap, Workspace,
};
use crate::system::System;
pub use rules::{Iterated, Stop};
pub use slices::SliceStages;

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

/// Largest number of iterations.
pub const MOST_ITERATIONS: u32 = 100;
/// Contraction by the square of 0.7, where a shorter step is better than more iterations.
const CONTRACTION: f64 = 0.49;
/// Contraction for equal steps: nearly none.
const SLOWEST_CONTRACTION: f64 = 0.95;
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

/// Set the sizes in a memory to the scales of the error norm, for steps of about the length h (see
/// [`StepMap::take_scales`]).
pub fn sizes_of_scales(vectors: &Vectors, norms: &[f64], h: f64, sizes: &mut [f64]) {
    let (norms, floors) = norms.split_at(vectors.count());
    sizes.copy_from_slice(norms);
    let momenta = sizes[vectors.conjugates()..].iter_mut();
    for (size, floor) in momenta.zip(floors) {
        *size = size.max(floor / (h * h));
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
            *evaluations += iterated.count as u64 * self.collocation.stages as u64;
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

    /// Value of the step's polynomial at the part `theta` of the step from `x`.
    fn along_the_polynomial(&self, (theta, x): (f64, &[f64]), memory: &Memory, out: &mut [f64]) {
        let (stages, mut parts) = (self.collocation.stages, Vec::new());
        reach(1.0, [-1.0, theta, *memory.length], |part| parts.push(part), stages);
        for ((out, x), w) in out.iter_mut().zip(x).zip(memory.w.chunks_exact(stages)) {
            *out = w.iter().zip(&parts).fold(*x, |sum, (w, part)| w.mul_add(*part, sum));
        }
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
            iterations: count as u32,
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

    fn takes_scales(&self) -> bool {
        self.ends > 0
    }

    fn take_scales(&self, norms: &[f64], h: f64, memory: &mut [f64]) -> bool {
        let vectors = self.system.vectors();
        let memory = Memory::of(self.collocation, vectors, memory);
        sizes_of_scales(vectors, norms, h, memory.sizes);
        self.takes_scales()
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
    /// the start of the iteration, and as the result if that does not converge.
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
        // No shorter step is to be had, so that iterations may contract slowly.
        let (too_far, contraction) = (f64::INFINITY, SLOWEST_CONTRACTION);
        let (part, stop) =
            (StepFrom { t, h: theta * h, x }, Stop { too_far, contraction, ..self.stop });
        self.stages.start(part, From::Start, stop, memory, work);
        let iterated = self.stages.iterate(stop, work);
        workspace.cost.field += iterated.count as u64 * self.collocation.stages as u64;
        if iterated.converged(stop) {
            workspace.cost.field += self.ends;
            self.stages.finish(memory, out, error, work);
        } else {
            self.along_the_polynomial((theta, x), memory, out);
        }
    }
}

/// Name of the equations of a failed iteration.
const STAGES: &str = "a stage of the step";
