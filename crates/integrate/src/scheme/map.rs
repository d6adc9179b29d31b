//! The one-step map as the loop over time sees it: x₁, estimates of its error, an interpolant, and facts. The explicit
//! Runge–Kutta steps on slices are one; steps that are compiled, or written by a user, are others.

use super::explicit_rk::{Stages, attempt, dense_stages, estimates, fixed_step, stage_count, vector_count};
use crate::controller::slots::Slots;
use crate::controller::{Control, Yardstick};
use crate::cost::Cost;
use crate::space::{SliceSpace, Space};
use crate::system::System;
use crate::tableau::Tableau;
use crate::vector::{combine, copy_rows};
use std::ops::Range;

/// What whoever runs a one-step map knows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// By what its steps can be controlled, if they can.
    pub control: Option<Control>,
    /// What is known of the error of a step that is not controlled.
    pub equal_steps: Estimate,
    /// Where among the vectors that it keeps the estimates stand, several of an attempt being combined as those of `dop853`
    /// are.
    pub errors: Range<usize>,
    /// Where among them the field at the end of a step stands, if the interpolant may need it.
    pub end_field: Option<usize>,
    /// Whether an attempt leaves it there: it is the first stage of the next step.
    pub ends_with_field: bool,
}

/// What is known of the error of a step that is not controlled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// Nothing but how far it went.
    None,
    /// An estimate.
    Known,
    /// An estimate that lacks so many times the field at the end of the step, which is known when the next one begins.
    Lagged(f64),
}

impl Facts {
    /// Of a map that estimates nothing.
    pub const NONE: Facts =
        Facts { control: None, equal_steps: Estimate::None, errors: 0..0, end_field: None, ends_with_field: false };

    /// Of an explicit Runge–Kutta scheme, whose stages are the first vectors that it keeps.
    pub fn of_tableau(tableau: &Tableau) -> Facts {
        let stages = stage_count(tableau);
        let estimate = match &tableau.error[..] {
            // Two estimates e₅²/√(e₅² + 0.01e₃²) together behave as one of order 7.
            [_, _] => Some(7),
            errors => errors.iter().map(|error| error.order).max(),
        };
        let lagged = tableau.lagged.as_ref().map(|lagged| Estimate::Lagged(lagged.next));
        Facts {
            control: estimate.map(|estimate| Control::of_error(tableau.order, estimate)),
            equal_steps: lagged.unwrap_or(if estimate.is_some() { Estimate::Known } else { Estimate::None }),
            errors: stages..stages + tableau.error.len(),
            end_field: Some(tableau.dense.as_ref().map_or(tableau.stages - 1, |dense| dense.endpoint)),
            ends_with_field: tableau.first_same_as_last,
        }
    }
}

/// Why a step has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum NoStep {
    /// The Newton iteration for its equations did not converge.
    NotSolved {
        /// Iterations done.
        iterations: u32,
        /// The largest residual over the size of what cancels in it; NaN where something is not finite.
        residual: f64,
        /// What the equation of that residual says.
        equation: String,
    },
    /// The matrix for the multipliers of hidden constraints became singular, or its determinant changed sign.
    Degenerate {
        /// The determinant, relative to that of a regular matrix of its size.
        determinant: f64,
    },
    /// The matrix of linear equations has an eigenvalue that is too small.
    Indefinite {
        /// A bound from above.
        eigenvalue: f64,
    },
}

/// A step that is asked for: from x at t, over h.
#[derive(Clone, Copy, Debug)]
pub struct StepFrom<'a, N = f64> {
    /// The time at which it begins.
    pub t: N,
    /// Its length.
    pub h: N,
    /// The state at which it begins.
    pub x: &'a [N],
}

/// What a map works on beside the state.
pub struct Workspace<'a> {
    /// Vectors of the state's length, [`StepMap::vectors`] of them, which stay as the map leaves them until the next step.
    pub kept: &'a mut [Vec<f64>],
    /// What the map carries from step to step, of [`StepMap::memory_len`]: zeros at the start of a run, and the map's own.
    pub memory: &'a mut [f64],
    /// Receives what the map spends.
    pub cost: &'a mut Cost,
    /// Scratch, at least [`StepMap::work_len`] long. It holds nothing on entry.
    pub work: &'a mut [f64],
}

/// A state between two steps of a run.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// Its time.
    pub t: f64,
    /// Length of the step before it, 0 at the start of the run.
    pub before: f64,
    /// Length of the step after it, 0 at the end of the run.
    pub after: f64,
    /// The state.
    pub x: &'a [f64],
    /// What the map carries there.
    pub memory: &'a [f64],
}

/// A one-step map over a system. It says what it needs (`vectors`, `memory_len`, `work_len`), gets that as a [`Workspace`]
/// with every step that is asked of it, a [`StepFrom`], and counts there what it spends. A map of equal steps is
/// [`StepMap::work_len`] and [`StepMap::fixed_step`]; one with control of the step has [`StepMap::facts`] that say so,
/// attempts and an interpolant as well. All else has defaults, of a map that knows nothing of it.
pub trait StepMap: Sync {
    /// What is known of it.
    fn facts(&self) -> &Facts {
        &Facts::NONE
    }

    /// Length r of its real stability interval, where that is known.
    fn stability(&self) -> Option<f64> {
        None
    }

    /// How many vectors of the state's length it keeps from an attempt to the interpolant of it.
    fn vectors(&self) -> usize {
        0
    }

    /// Length of the scratch it needs.
    fn work_len(&self) -> usize;

    /// Length of what it carries from step to step.
    fn memory_len(&self) -> usize {
        0
    }

    /// Brings the memory to what it is where this step begins: for a map that finds at the end of each step what the next
    /// one needs. It changes nothing where that is known. There are no vectors to be kept.
    ///
    /// # Errors
    /// As [`StepMap::fixed_step`].
    fn begin(&self, _step: StepFrom, _workspace: &mut Workspace) -> Result<(), NoStep> {
        Ok(())
    }

    /// How many quantities it watches itself, behind the system's groups of invariants.
    fn watched_count(&self) -> usize {
        0
    }

    /// How far each of these is from where it was at the start of the run, at the state to which `memory` belongs.
    fn deviations(&self, _memory: &[f64], _deviations: &mut [f64]) {}

    /// Whether a step reads X(t, x) from `kept[0]`. A map that does not evaluates it itself, if it needs it.
    fn takes_first_stage(&self) -> bool {
        true
    }

    /// Whether [`StepMap::fixed_step`] takes nothing from `kept`, and nothing is done to its result: only then a step that a
    /// loop does not make well is made by itself within the loop.
    fn stands_alone(&self) -> bool {
        !self.takes_first_stage()
    }

    /// x₁ of a step without control. `kept[0]` holds X(t, x) on entry if the map takes it.
    ///
    /// # Errors
    /// When the step has no result; nothing of what was written is of use then.
    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep>;

    /// Puts the estimate of the error of the last step without control, without its factor h, into `out`: see
    /// [`Facts::equal_steps`]. Where there are several, into the vectors of [`Facts::errors`].
    fn estimate(&self, _kept: &mut [Vec<f64>], _out: &mut [f64]) {}

    /// How many Lagrange multipliers it knows at a state.
    fn multiplier_count(&self) -> usize {
        0
    }

    /// Puts the multipliers at a state into `lambda`: NaN where the step that would tell them has no solution.
    fn multipliers(&self, _at: Between, _lambda: &mut [f64], _work: &mut [f64]) {}

    /// Several whole steps of a run with equal steps at once, treatment and monitoring included, if this map can do
    /// that: see [`Blocks`].
    fn blocks(&self) -> Option<&dyn Blocks> {
        None
    }

    /// Length of the step, where that is for the map to find: no longer than the one that is asked for. What it finds on the
    /// way is kept for the attempt.
    fn length(&self, step: StepFrom, _yardstick: Yardstick, _workspace: &mut Workspace) -> f64 {
        step.h
    }

    /// x₁, and the estimates of its error, without their factor h, in the vectors of [`Facts::errors`]; the field at x₁ where
    /// [`Facts::ends_with_field`]. What else is kept is the map's own. Only a map with an estimate is asked for attempts.
    fn attempt(&self, _step: StepFrom, _x1: &mut [f64], _workspace: &mut Workspace) {
        unreachable!("a map without an error estimate attempts no steps")
    }

    /// Several attempts in one go, with the treatment of what is accepted and the control of the step, if this map can do
    /// that: see [`Attempts`].
    fn attempts(&self) -> Option<&dyn Attempts> {
        None
    }

    /// Makes the interpolant of an attempt of this step, whose end field is known.
    fn prepare_interpolant(&self, _step: StepFrom, _workspace: &mut Workspace) {}

    /// x(t + θh) by the interpolant that was prepared for this step.
    fn interpolate(&self, _step: StepFrom, _theta: f64, _out: &mut [f64], _workspace: &mut Workspace) {
        unreachable!("a map without an error estimate has no interpolant")
    }
}

/// What outlives a step beside the state.
pub struct Carry<'a> {
    /// The map's own memory.
    pub memory: &'a mut [f64],
    /// The scales of the state's vectors.
    pub scales: &'a mut [f64],
    /// The largest square of an innovation of these steps.
    pub innovation: &'a mut f64,
    /// Receives what these steps cost, where they are good.
    pub cost: &'a mut Cost,
    /// The states to be kept on the way.
    pub outputs: Outputs<'a>,
}

/// States on the way of steps in a loop, kept without leaving it.
#[derive(Default)]
pub struct Outputs<'a> {
    /// After how many steps of the run each one comes, ascending.
    pub after: &'a [u64],
    /// Receives them, `stride` numbers from one to the next.
    pub x: &'a mut [f64],
    /// From one state to the next in `x`.
    pub stride: usize,
    /// Receives what the map carries there; empty where nobody asks.
    pub memory: &'a mut [f64],
    /// Receives what the step that begins there has found at its start, of [`Blocks::start_len`]: NaN where that is none
    /// of these steps, or one by itself; empty where nobody asks.
    pub starts: &'a mut [f64],
}

/// Where the numbers of a run stand in the state of a loop.
pub struct LoopPlaces {
    /// How many numbers that has.
    pub len: usize,
    /// x.
    pub x: Range<usize>,
    /// What the map carries.
    pub carried: Range<usize>,
    /// What the last step has found at its start.
    pub start: Range<usize>,
}

impl Outputs<'_> {
    /// Number `k` of `parts` equal parts of something.
    #[inline]
    fn part(all: &mut [f64], k: usize, parts: usize) -> &mut [f64] {
        let len = all.len() / parts;
        &mut all[k * len..(k + 1) * len]
    }

    /// The outputs from the start of these steps to their end.
    pub fn within(&mut self, steps: Range<u64>) -> Outputs<'_> {
        let count = self.after.len().max(1);
        let first = self.after.partition_point(|&after| after < steps.start);
        let last = self.after.partition_point(|&after| after <= steps.end);
        let lens = [self.memory.len() / count, self.starts.len() / count];
        Outputs {
            after: &self.after[first..last],
            x: &mut self.x[first * self.stride..last * self.stride],
            stride: self.stride,
            memory: &mut self.memory[first * lens[0]..last * lens[0]],
            starts: &mut self.starts[first * lens[1]..last * lens[1]],
        }
    }

    /// Keeps the state `x` with what the map carries there, if it is an output and no loop tells what the step behind it has
    /// found at its start.
    pub fn keep(&mut self, after: u64, x: &[f64], memory: &[f64]) {
        if let Ok(k) = self.after.binary_search(&after) {
            let count = self.after.len();
            self.x[k * self.stride..][..x.len()].copy_from_slice(x);
            let kept = Outputs::part(self.memory, k, count);
            let len = kept.len();
            kept.copy_from_slice(&memory[..len]);
            Outputs::part(self.starts, k, count).fill(f64::NAN);
        }
    }

    /// Lets a loop make `steps`, and keeps the outputs on the way. The first of `states` is that at the start, and then at the
    /// end; behind it is room for several. What the map carries and the loop does not change stands in `unchanged`.
    pub fn along(
        &mut self,
        steps: Range<u64>,
        (states, at): (&mut [f64], &LoopPlaces),
        unchanged: &[f64],
        (state_loop, work): (&impl StateLoop, &mut [f64]),
    ) {
        let (len, count) = (at.len, self.after.len());
        // A state is followed by one that knows what the step between them has found at its start.
        let (room, follows) = (states.len() / len - 1, usize::from(!self.starts.is_empty()));
        let (of_memory, of_start) = (self.memory.len() / count.max(1), self.starts.len() / count.max(1));
        let (mut made, mut first) = (steps.start, 0);
        while first < count {
            if made < self.after[first] {
                state_loop.run(&mut states[..len], made..self.after[first], work);
                made = self.after[first];
            }
            let next = self.after[first..].iter().zip(made..).take(room);
            let kept = next.take_while(|&(&after, step)| after == step).count();
            let turns = (kept - 1 + follows).min((steps.end - made) as usize);
            state_loop.run_keeping(&mut states[..(turns + 1) * len], made, work);
            copy_rows(
                (kept, at.x.len()),
                (&states[at.x.start..], len),
                (&mut self.x[first * self.stride..], self.stride),
            );
            if of_memory > 0 {
                let memory = &mut self.memory[first * of_memory..(first + kept) * of_memory];
                copy_rows((kept, at.carried.len()), (&states[at.carried.start..], len), (memory, of_memory));
                memory.chunks_exact_mut(of_memory).for_each(|row| row[at.carried.len()..].copy_from_slice(unchanged));
            }
            if of_start > 0 {
                let starts = &mut self.starts[first * of_start..(first + kept) * of_start];
                copy_rows((turns, of_start), (&states[len..][at.start.start..], len), (starts, of_start));
                starts[turns * of_start..].fill(f64::NAN);
            }
            states.copy_within(turns * len..(turns + 1) * len, 0);
            made += turns as u64;
            first += kept;
        }
        if made < steps.end {
            state_loop.run(&mut states[..len], made..steps.end, work);
        }
    }
}

/// Steps in the state of a loop.
pub trait StateLoop {
    /// Makes the steps of these numbers.
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]);

    /// Makes steps from number `first` on, from the first of `states` to the last, and keeps the states between them.
    fn run_keeping(&self, states: &mut [f64], first: u64, work: &mut [f64]);
}

/// How many states of a loop to keep before they are taken out of it: they shall stay in the nearest cache.
pub const KEPT_STATES: usize = 32;

/// Equal steps in one go, for one run: its step, its start and its targets are known.
pub trait Blocks: Sync {
    /// Makes the steps of number `first` to `first + count` from `x`, which becomes the state at their end, with what the
    /// run carries in `carry`. `largest` receives, for every group of invariants, the largest deviation of the
    /// states at which these steps begin, NaN where it is one.
    ///
    /// Says whether every step is as good as one made by [`StepMap::fixed_step`]. If not, nothing of what it wrote is of
    /// use but, after a single step, `largest`; and [`Repairs`](super::repairs::Repairs) finds the steps to be made by
    /// themselves.
    fn steps(&self, first: u64, count: u64, x: &mut [f64], carry: Carry, largest: &mut [f64], work: &mut [f64])
    -> bool;

    /// Whether it makes the step that follows what left this memory; a first one may have nothing to start from.
    fn follows(&self, _memory: &[f64]) -> bool {
        true
    }

    /// How many steps may be made in one go, so that nobody has to wait.
    fn longest(&self) -> u64 {
        u64::MAX
    }

    /// Whether it makes the first steps of a run as well as others, which follow steps that tell where to look for
    /// solutions.
    fn makes_first_steps(&self) -> bool {
        false
    }

    /// Length of what a step finds at its start, from which [`Blocks::multipliers`] makes the multipliers there; 0 where a
    /// loop does not know them.
    fn start_len(&self) -> usize {
        0
    }

    /// Puts the multipliers at a state between steps of the lengths `before` and `after`, where the step behind it has
    /// found `start`. `memory` is what it is there.
    fn multipliers(&self, (_before, _after): (f64, f64), _start: &[f64], _memory: &[f64], _lambda: &mut [f64]) {}
}

/// Adaptive steps in one go, for one run: its tolerance, its end and its targets are known. The bits are those of
/// [`StepMap::attempt`], the treatment and the controller.
pub trait Attempts: Sync {
    /// Where the state of the loop stands.
    fn slots(&self) -> &Slots;

    /// Length of the scratch it needs.
    fn work_len(&self) -> usize;

    /// Makes up to `count` attempts from `state`. The memory is that of the map at the state where they begin, and where they
    /// end; what an attempt spends is counted by the map, unless it is that of [`Attempts::evaluations`].
    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace);

    /// Evaluations of the field that an attempt takes, beside that of a first stage which the step before knows; where every
    /// attempt takes as many.
    fn evaluations(&self) -> u64;

    /// Adds what treating the results of so many accepted steps costs.
    fn count_treatments(&self, steps: u64, cost: &mut Cost);

    /// Makes deviations of what stands in [`Slots::largest`].
    fn finish(&self, largest: &mut [f64]);
}

/// The map that evaluates the tableau on slices, calling the system's field for every stage.
pub struct TableauMap<'a> {
    tableau: &'static Tableau,
    facts: Facts,
    system: &'a dyn System,
}

impl<'a> TableauMap<'a> {
    /// The scheme of these coefficients over `system`.
    pub fn new(tableau: &'static Tableau, system: &'a dyn System) -> TableauMap<'a> {
        TableauMap { tableau, facts: Facts::of_tableau(tableau), system }
    }
}

impl StepMap for TableauMap<'_> {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stability(&self) -> Option<f64> {
        Some(self.tableau.real_stability_interval())
    }

    fn vectors(&self) -> usize {
        vector_count(self.tableau)
    }

    fn work_len(&self) -> usize {
        self.system.work_len().max(stage_count(self.tableau))
    }

    fn fixed_step(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) -> Result<(), NoStep> {
        let mut space = SliceSpace::new(self.system, workspace.work);
        fixed_step(self.tableau, &mut space, step, &mut Stages::of(self.tableau, workspace.kept), x1);
        workspace.cost.field += space.evaluations();
        Ok(())
    }

    fn estimate(&self, kept: &mut [Vec<f64>], out: &mut [f64]) {
        let mut space = SliceSpace::new(self.system, &mut []);
        let mut stages = Stages::of(self.tableau, kept);
        match &self.tableau.lagged {
            Some(lagged) => space.weighted_sum(out, &lagged.weights, stages.k),
            None => estimates(self.tableau, &mut space, &mut stages),
        }
    }

    fn attempt(&self, step: StepFrom, x1: &mut [f64], workspace: &mut Workspace) {
        let mut space = SliceSpace::new(self.system, workspace.work);
        attempt(self.tableau, &mut space, step, &mut Stages::of(self.tableau, workspace.kept), x1);
        workspace.cost.field += space.evaluations();
    }

    fn prepare_interpolant(&self, step: StepFrom, workspace: &mut Workspace) {
        let Some(dense) = &self.tableau.dense else { return };
        let mut space = SliceSpace::new(self.system, workspace.work);
        dense_stages(self.tableau, dense, &mut space, step, &mut Stages::of(self.tableau, workspace.kept));
        workspace.cost.field += space.evaluations();
    }

    fn interpolate(&self, step: StepFrom, theta: f64, out: &mut [f64], workspace: &mut Workspace) {
        let dense = self.tableau.dense.as_ref().expect("a scheme with an error estimate has dense output");
        let stages = stage_count(self.tableau);
        let weights = &mut workspace.work[..stages];
        dense.weights(theta, weights);
        // The weights are polynomials, any of which may nearly vanish: none is fit to scale the others by.
        combine(out, weights, &workspace.kept[..stages]);
        for (out, x) in out.iter_mut().zip(step.x) {
            *out = step.h.mul_add(*out, *x);
        }
    }
}
