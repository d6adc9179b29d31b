//! The one-step map as the loop over time sees it: x₁, estimates of its error, an interpolant, and
//! facts. The explicit Runge–Kutta steps on slices are one; steps that are compiled, or written by
//! a user, are others.

use crate::controller::slots::Slots;
use crate::controller::{Measured, StepControl, Yardstick};
use crate::cost::Cost;
use crate::tableau::Tableau;
use crate::vector::copy_rows;
use holonome_arithmetic::Real;
use std::ops::Range;

/// Facts about a one-step map that its callers need.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Control of its steps, if they can be controlled.
    pub control: Option<StepControl>,
    /// Error estimate of a step that is not controlled.
    pub equal_steps: Estimate,
    /// Numbers of the error estimates among the vectors that it keeps. Several of an attempt are
    /// combined as those of `dop853` are.
    pub errors: Range<usize>,
    /// Number of the field at the end of a step among them, if the interpolant may need it.
    pub end_field: Option<usize>,
    /// True if an attempt leaves it there: it is the first stage of the next step (FSAL).
    pub ends_with_field: bool,
}

/// Error estimate of a step that is not controlled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// No estimate; the step's displacement takes its place.
    None,
    /// An estimate.
    Known,
    /// An estimate that lacks this multiple of the field at the end of the step, which is known
    /// when the next one begins.
    Lagged(f64),
}

impl Facts {
    /// Facts of a map that estimates nothing.
    pub const NONE: Facts = Facts {
        control: None,
        equal_steps: Estimate::None,
        errors: 0..0,
        end_field: None,
        ends_with_field: false,
    };

    /// Facts of an explicit Runge–Kutta scheme, whose stages are the first vectors that it keeps.
    pub fn of_tableau(tableau: &Tableau) -> Facts {
        let stages = tableau.stage_count();
        let estimate = match &tableau.error[..] {
            // Two estimates e₅²/√(e₅² + 0.01e₃²) together behave as one of order 7.
            [_, _] => Some(7),
            errors => errors.iter().map(|error| error.order).max(),
        };
        let lagged = tableau.lagged.as_ref().map(|lagged| Estimate::Lagged(lagged.next));
        Facts {
            control: estimate.map(|estimate| StepControl::of_error(tableau.order, estimate)),
            equal_steps: lagged.unwrap_or(if estimate.is_some() {
                Estimate::Known
            } else {
                Estimate::None
            }),
            errors: stages..stages + tableau.error.len(),
            end_field: Some(
                tableau.dense.as_ref().map_or(tableau.stages - 1, |dense| dense.endpoint),
            ),
            ends_with_field: tableau.first_same_as_last,
        }
    }
}

/// Reason why a step has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum NoStep {
    /// The Newton iteration for its equations did not converge.
    NotSolved {
        /// Number of iterations.
        iterations: u32,
        /// Largest residual, relative to its scale; NaN if something is not finite.
        residual: f64,
        /// Name of the equation of that residual.
        equation: String,
    },
    /// The matrix for the multipliers of hidden constraints became singular, or its determinant
    /// changed sign.
    Degenerate {
        /// The determinant, relative to that of a regular matrix of its size.
        determinant: f64,
    },
    /// The matrix of linear equations has an eigenvalue that is too small.
    Indefinite {
        /// Upper bound of the eigenvalue.
        eigenvalue: f64,
    },
    /// The method to which it is handed over fails.
    HandedOver {
        /// Time from the start of the step.
        after: f64,
        /// Reason, in words.
        reason: String,
    },
}

/// Allowance for errors of an attempt that its estimates do not contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance<R = f64> {
    /// Square of the factor of the error in step-size control.
    pub squared_factor: R,
    /// Square of an iteration's last change, relative to the sizes of the vectors; the metric of a
    /// correction counts it as an error of every vector.
    pub unsolved: R,
}

impl Allowance {
    /// For estimates that contain all errors.
    pub const NONE: Allowance = Allowance { squared_factor: 1.0, unsolved: 0.0 };
}

impl<R: Real> Allowance<R> {
    /// Square of the error of an attempt with the allowance, which also enters the errors of the
    /// vectors.
    #[inline(always)]
    pub fn apply(self, square: R, measured: &mut Measured<R>) -> R {
        for (error, &size) in measured.errors.iter_mut().zip(measured.sizes.iter()) {
            *error = self.unsolved.mul_add(size, *error);
        }
        self.squared_factor * square
    }
}

/// A requested step: from x at t, over h.
#[derive(Clone, Copy, Debug)]
pub struct StepFrom<'a, N = f64> {
    /// Time at which the step begins.
    pub t: N,
    /// Length of the step.
    pub h: N,
    /// State at which the step begins.
    pub x: &'a [N],
}

/// Workspace of a map, beside the state.
pub struct Workspace<'a> {
    /// Vectors of the state's length, [`StepMap::vectors`] of them; they stay as the map leaves
    /// them until the next step.
    pub kept: &'a mut [Vec<f64>],
    /// Numbers that the map carries from step to step, [`StepMap::memory_len`] of them: zeros at
    /// the start of a run, then the map's own.
    pub memory: &'a mut [f64],
    /// Cost, to which the map adds its own.
    pub cost: &'a mut Cost,
    /// Scratch, at least [`StepMap::work_len`] long. It holds nothing on entry.
    pub work: &'a mut [f64],
}

/// A state between two steps of a run.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// Time of the state.
    pub t: f64,
    /// Length of the step before it, 0 at the start of the run.
    pub before: f64,
    /// Length of the step after it, 0 at the end of the run.
    pub after: f64,
    /// The state.
    pub x: &'a [f64],
    /// Numbers that the map carries there.
    pub memory: &'a [f64],
}

/// One-step map over a system. It states its needs (`vectors`, `memory_len`, `work_len`), gets a
/// [`Workspace`] with every requested step, a [`StepFrom`], and counts its cost there. A map of
/// equal steps is [`StepMap::work_len`] and [`StepMap::fixed_step`]; one with control of the step
/// has [`StepMap::facts`] that say so, attempts and an interpolant as well. All else has defaults,
/// for a map without it.
pub trait StepMap: Sync {
    /// Facts about the map.
    fn facts(&self) -> &Facts {
        &Facts::NONE
    }

    /// Length r of its real stability interval, if known.
    fn stability(&self) -> Option<f64> {
        None
    }

    /// Number of vectors of the state's length that it keeps from an attempt to the interpolant of
    /// it.
    fn vectors(&self) -> usize {
        0
    }

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// Number of values that the map carries from step to step.
    fn memory_len(&self) -> usize {
        0
    }

    /// Bring the memory to its state at the beginning of this step: for a map that computes at the
    /// end of each step what the next one needs. It stays as it is if that is known. There are no
    /// kept vectors.
    ///
    /// # Errors
    /// As [`StepMap::fixed_step`].
    fn begin(&self, _step: StepFrom, _workspace: &mut Workspace) -> Result<(), NoStep> {
        Ok(())
    }

    /// Number of quantities that the map monitors itself, after the system's groups of invariants.
    fn monitored_count(&self) -> usize {
        0
    }

    /// Compute how far each of these is from its value at the start of the run, at the state to
    /// which `memory` belongs.
    fn deviations(&self, _memory: &[f64], _deviations: &mut [f64]) {}

    /// True if a step reads X(t, x) from `kept[0]`. Any other map evaluates it itself, if needed.
    fn takes_first_stage(&self) -> bool {
        true
    }

    /// Give the scales of the vectors, [`norms`](crate::scales::Scales::norms), to what a step of the
    /// length `h` remembers; false if it remembers no scales. What rests, and is rounding, is not
    /// iterated to a part of itself.
    fn take_scales(&self, _norms: &[f64], _h: f64, _memory: &mut [f64]) -> bool {
        false
    }

    /// True if [`StepMap::take_scales`] takes them.
    fn takes_scales(&self) -> bool {
        false
    }

    /// True if [`StepMap::fixed_step`] takes nothing from `kept`, and nothing is done to its
    /// result. Only then can a step that a loop does not make well be made by itself within the
    /// loop.
    fn stands_alone(&self) -> bool {
        !self.takes_first_stage()
    }

    /// Compute x₁ of a step without control. `kept[0]` holds X(t, x) on entry if the map takes it.
    ///
    /// # Errors
    /// If the step has no result; nothing that was written is of use then.
    fn fixed_step(
        &self,
        step: StepFrom,
        x1: &mut [f64],
        workspace: &mut Workspace,
    ) -> Result<(), NoStep>;

    /// Put the estimate of the error of the last step without control, without its factor h, into
    /// `out`: see [`Facts::equal_steps`]. Several estimates go into the vectors of
    /// [`Facts::errors`].
    fn estimate(&self, _kept: &mut [Vec<f64>], _out: &mut [f64]) {}

    /// Number of Lagrange multipliers that are known at a state.
    fn multiplier_count(&self) -> usize {
        0
    }

    /// Put the multipliers at a state into `lambda`: NaN if the step that determines them has no
    /// solution.
    fn multipliers(&self, _at: Between, _lambda: &mut [f64], _work: &mut [f64]) {}

    /// Loop of whole equal steps of a run, treatment and monitoring included; `None` if this map
    /// has none: see [`Blocks`].
    fn blocks(&self) -> Option<&dyn Blocks> {
        None
    }

    /// Length of the step, if the map is to find it: no longer than the requested one. Intermediate
    /// results are kept for the attempt.
    fn length(&self, step: StepFrom, _yardstick: Yardstick, _workspace: &mut Workspace) -> f64 {
        step.h
    }

    /// Compute x₁, and the estimates of its error, without their factor h, in the vectors of
    /// [`Facts::errors`]; the field at x₁ if [`Facts::ends_with_field`]. Other kept vectors are the
    /// map's own. Returns the allowance for what they do not contain. Only a map with an estimate
    /// makes attempts.
    fn attempt(&self, _step: StepFrom, _x1: &mut [f64], _workspace: &mut Workspace) -> Allowance {
        unreachable!("a map without an error estimate attempts no steps")
    }

    /// Loop of attempts, with the treatment of accepted results and the control of the step; `None`
    /// if this map has none: see [`Attempts`].
    fn attempts(&self) -> Option<&dyn Attempts> {
        None
    }

    /// Prepare the interpolant of an attempt of this step, whose end field is known.
    fn prepare_interpolant(&self, _step: StepFrom, _workspace: &mut Workspace) {}

    /// Compute x(t + θh) by the interpolant that was prepared for this step.
    fn interpolate(
        &self,
        _step: StepFrom,
        _theta: f64,
        _out: &mut [f64],
        _workspace: &mut Workspace,
    ) {
        unreachable!("a map without an error estimate has no interpolant")
    }
}

/// Values that outlive a step, beside the state.
pub struct Carry<'a> {
    /// Memory of the map.
    pub memory: &'a mut [f64],
    /// Scales of the state's vectors.
    pub scales: &'a mut [f64],
    /// Largest square of an innovation of these steps.
    pub innovation: &'a mut f64,
    /// [Side](crate::events::side_kept) of the function of every event, if the loop is to watch
    /// them: of the states with which steps begin.
    pub sides: &'a mut [f64],
    /// Cost, to which that of these steps is added if they are good.
    pub cost: &'a mut Cost,
    /// States to be kept on the way.
    pub outputs: Outputs<'a>,
}

/// States on the way of steps in a loop, kept without leaving it.
#[derive(Default)]
pub struct Outputs<'a> {
    /// Number of steps of the run after which each one comes, ascending.
    pub after: &'a [u64],
    /// The states, `stride` numbers from one to the next.
    pub x: &'a mut [f64],
    /// Distance from one state to the next in `x`.
    pub stride: usize,
    /// Numbers that the map carries there; empty if not wanted.
    pub memory: &'a mut [f64],
    /// Numbers that the step after each state has computed at its start, of [`Blocks::start_len`]:
    /// NaN if that is none of these steps, or one by itself; empty if not wanted.
    pub starts: &'a mut [f64],
}

/// Slots of a run's numbers in the state of a loop.
pub struct LoopPlaces {
    /// Length of that state.
    pub len: usize,
    /// x.
    pub x: Range<usize>,
    /// Numbers that the map carries.
    pub carried: Range<usize>,
    /// Numbers that the last step has computed at its start.
    pub start: Range<usize>,
}

impl Outputs<'_> {
    /// Part `k` of `parts` equal parts.
    #[inline]
    fn part(all: &mut [f64], k: usize, parts: usize) -> &mut [f64] {
        let len = all.len() / parts;
        &mut all[k * len..(k + 1) * len]
    }

    /// Outputs from the start of these steps to their end.
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

    /// Store the state `x` with the numbers that the map carries there, if it is an output and no
    /// loop provides those at the start of the step after it.
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

    /// Make `steps` in a loop, and keep the outputs on the way. The first of `states` is that at
    /// the start, and then at the end; the rest is room for kept ones. `unchanged` are the numbers
    /// that the map carries and the loop does not change.
    pub fn along(
        &mut self,
        steps: Range<u64>,
        (states, at): (&mut [f64], &LoopPlaces),
        unchanged: &[f64],
        (state_loop, work): (&impl StateLoop, &mut [f64]),
    ) {
        let (len, count) = (at.len, self.after.len());
        // The state after each step holds the numbers that the step has computed at its start.
        let (room, follows) = (states.len() / len - 1, usize::from(!self.starts.is_empty()));
        let (of_memory, of_start) =
            (self.memory.len() / count.max(1), self.starts.len() / count.max(1));
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
                copy_rows(
                    (kept, at.carried.len()),
                    (&states[at.carried.start..], len),
                    (memory, of_memory),
                );
                memory
                    .chunks_exact_mut(of_memory)
                    .for_each(|row| row[at.carried.len()..].copy_from_slice(unchanged));
            }
            if of_start > 0 {
                let starts = &mut self.starts[first * of_start..(first + kept) * of_start];
                copy_rows(
                    (turns, of_start),
                    (&states[len..][at.start.start..], len),
                    (starts, of_start),
                );
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
    /// Make the steps of these numbers.
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]);

    /// Make steps from number `first` on, from the first of `states` to the last, and keep the
    /// states between them.
    fn run_keeping(&self, states: &mut [f64], first: u64, work: &mut [f64]);
}

/// Number of states of a loop that are kept before they are copied out of it, so that they stay in
/// the nearest cache.
pub const KEPT_STATES: usize = 32;

/// Equal steps in one go, for one run: its step, its start and its targets are known.
pub trait Blocks: Sync {
    /// Make the steps of number `first` to `first + count` from `x`, which becomes the state at
    /// their end, with the numbers that the run carries in `carry`. `largest` receives, for every
    /// group of invariants, the largest deviation of the states at which these steps begin, NaN if
    /// one is NaN.
    ///
    /// True if every step is as good as one made by [`StepMap::fixed_step`]. If not, nothing that
    /// was written is of use but, after a single step, `largest`; and
    /// [`BlockRepairs`](super::repairs::BlockRepairs) finds the steps to be made by themselves.
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool;

    /// True if the loop can make the step after the one that left this memory; a first one may have
    /// nothing to start from.
    fn follows(&self, _memory: &[f64]) -> bool {
        true
    }

    /// Largest number of steps in one go, so that nobody has to wait.
    fn longest(&self) -> u64 {
        u64::MAX
    }

    /// True if the first steps of a run are made as well as others, which start from the solutions
    /// of the steps before.
    fn makes_first_steps(&self) -> bool {
        false
    }

    /// Number of [`Carry::sides`] that the loop keeps; 0 if it does not watch events.
    fn watched(&self) -> usize {
        0
    }

    /// Number of values that a step computes at its start, from which [`Blocks::multipliers`]
    /// follow; 0 if a loop does not know them.
    fn start_len(&self) -> usize {
        0
    }

    /// Compute the multipliers at a state between steps of the lengths `before` and `after`.
    /// `start` holds the numbers that the step after it has computed at its start, `memory` those
    /// that the map carries there.
    fn multipliers(
        &self,
        (_before, _after): (f64, f64),
        _start: &[f64],
        _memory: &[f64],
        _lambda: &mut [f64],
    ) {
    }
}

/// Adaptive steps in one go, for one run: its tolerance, its end and its targets are known. The
/// bits are those of [`StepMap::attempt`], the treatment and the controller.
pub trait Attempts: Sync {
    /// Slots of the state of the loop.
    fn slots(&self) -> &Slots;

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// Make up to `count` attempts from `state`. The memory is that of the map at the state where
    /// they begin, and then where they end. The map counts the cost of an attempt, except for
    /// [`Attempts::evaluations`].
    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace);

    /// Number of field evaluations in an attempt, without that of a first stage that the step
    /// before provides, if all attempts take as many.
    fn evaluations(&self) -> u64;

    /// Add the cost of treating the results of so many accepted steps.
    fn count_treatments(&self, steps: u64, cost: &mut Cost);

    /// Turn the contents of [`Slots::largest`] into deviations.
    fn finish(&self, largest: &mut [f64]);
}
