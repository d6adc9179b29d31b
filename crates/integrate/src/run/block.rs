//! Blocks of equal steps: how many make one, how it is made in a loop, judged, and passed on.
//!
//! A block that ended at every output would cost all calls for each, so the outputs on its way are
//! kept until it is known to be good, and then passed on together. One that is not good is made
//! again, in parts or step by step, and the results are those of single steps.

use super::output::lend;
use super::{Engine, LONGEST_BLOCK, Outcome};
use crate::cost::Cost;
use crate::failure::Failure;
use crate::observer::Observer;
use crate::plan::{FixedSteps, Plan, Stepping};
use crate::scheme::map::{Between, Blocks, Carry, Outputs, StepMap};
use crate::scheme::repairs::{BlockRepairs, StartCopies, StepLoop, StepStart};
use crate::state::StepState;
use crate::system::all_finite;
use crate::terms::{measured, raise_terms, steps_to_measurement};
use crate::vector::max_or_nan;

/// Largest number of values in the outputs of a block: the size of a second-level cache.
const MOST_NUMBERS: usize = 32 * 1024;

/// Outputs that the observer does not have yet.
#[derive(Default)]
pub(super) struct BlockOutputs {
    t: Vec<f64>,
    /// States, each followed by its multipliers if they are wanted.
    x: Vec<f64>,
    /// Number of outputs, from the next one on, that the observer has already.
    pub known: usize,
    /// Number of outputs that fit.
    room: usize,
    /// Steps after which states are kept for the functions of events.
    after: Vec<u64>,
    /// Numbers that the map carries at the outputs, and those that the steps after them have
    /// computed at their starts.
    memories: Vec<f64>,
    starts: Vec<f64>,
    /// Scratch for a step that is made to compute those at its start.
    start: Vec<f64>,
    /// Scratch for steps of a block that are made by themselves, and for a step that is made for
    /// its start.
    repairs: BlockRepairs,
    /// Cost of the block.
    pub cost: Cost,
}

impl BlockOutputs {
    /// Room for the outputs of a block of `map`, if it makes any.
    pub fn new(plan: &Plan, n: usize, map: &dyn StepMap, has_events: bool) -> BlockOutputs {
        let (Stepping::Fixed(fixed), Some(blocks)) = (&plan.stepping, map.blocks()) else {
            return BlockOutputs::default();
        };
        let width = n + map.multiplier_count();
        let memory = if map.multiplier_count() > 0 { map.memory_len() } else { 0 };
        let room = (MOST_NUMBERS / (width + memory).max(1))
            .min(LONGEST_BLOCK as usize)
            .min(fixed.samples.len());
        // The states that are kept are those of all steps, in which events are looked for.
        let room = if has_events && blocks.watched() == 0 { 0 } else { room };
        BlockOutputs {
            t: Vec::with_capacity(room),
            x: Vec::with_capacity(room * width),
            known: 0,
            room,
            after: Vec::new(),
            memories: Vec::with_capacity(room * memory),
            starts: Vec::with_capacity(room * blocks.start_len()),
            start: vec![0.0; blocks.start_len()],
            repairs: BlockRepairs::default(),
            cost: Cost::default(),
        }
    }

    /// Largest number of outputs in a block; 0 if each is too large to be kept, so that a block
    /// ends there and the output is passed on as it is.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The states that are kept, one after the other.
    pub fn states(&self) -> &[f64] {
        &self.x
    }
}

/// How a block of steps is watched for events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// There are none.
    Not,
    /// The loop looks.
    InLoop,
    /// All states are kept, to look at them afterwards.
    Afterwards,
    /// The first step is made by itself.
    Singly,
}

/// Judgement of a block of steps.
enum Judgement {
    /// It is the steps that it should be.
    Good,
    /// Its steps are to be made one by one: a constraint may be far off, or the only step has no
    /// good result.
    Singly,
    /// Whichever half holds the surprise is to be halved again: claims are tested at the step at
    /// which one failed.
    Halves,
    /// It is to be made again in blocks of one step, up to the one that failed.
    Apart,
}

impl Engine<'_> {
    /// Number of steps of the next block. It is limited by the room for outputs, the next sample of
    /// the stability monitor, the next check of claims, the limit of steps and the last step, and
    /// an observer never has to wait for it.
    pub(super) fn block_length(&self, fixed: &FixedSteps) -> u64 {
        let state = &*self.state;
        let last_output = state.next_sample + self.outputs.room().max(1) - 1;
        let to_full =
            fixed.samples.get(last_output).map_or(u64::MAX, |&sample| sample - state.step);
        let to_monitor =
            self.monitor.as_ref().map_or(u64::MAX, |monitor| monitor.steps_to_sample(state.step));
        let to_limit = self.plan.step_limit - (state.step + state.cost.rejected);
        let to_terms = steps_to_measurement(state.step);
        let to_last = match fixed.free_steps().saturating_sub(state.step) {
            0 => u64::MAX,
            to_last => to_last,
        };
        let to_look = self.longest_block();
        let to_end = fixed.steps.saturating_sub(state.step);
        // Steps for an observer are made one by one, but by the same loop, whose results are its
        // own.
        let most = match (&self.pieces, &self.watch) {
            (Some(_), _) => 1,
            (None, Some(watch)) => {
                let kept = (MOST_NUMBERS / state.x.len().max(1)) as u64;
                let watched = self.map.blocks().is_some_and(|blocks| blocks.watched() > 0);
                let at = (state.step, fixed.h);
                if watched {
                    watch.ahead(&state.events, at)
                } else {
                    LONGEST_BLOCK.min(kept).max(1)
                }
            }
            (None, None) => LONGEST_BLOCK,
        };
        [most, to_end, to_full, to_monitor, to_limit, to_terms, to_last, to_look]
            .into_iter()
            .min()
            .unwrap_or(0)
    }

    /// Make a block of steps with the outputs on its way. One that ends badly is made again step by
    /// step, up to the step that failed.
    pub(super) fn block<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        blocks: &dyn Blocks,
        count: u64,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let look = self.look(fixed, blocks);
        let good = match look {
            Look::Singly => return self.single(fixed, observer),
            Look::Afterwards => self.watched_steps(fixed, blocks, count),
            Look::Not | Look::InLoop => {
                self.steps_with_outputs(fixed, blocks, count, observer.wants_multipliers())
            }
        };
        let (parts, length) = match self.judged(good, count) {
            Judgement::Good => {
                let before = match look {
                    Look::InLoop => self.looked_in_loop(fixed, count),
                    Look::Afterwards => self.steps_before_event(fixed),
                    Look::Not | Look::Singly => None,
                };
                return match before {
                    None => self.take_block(fixed, blocks, count, observer),
                    Some(0) => self.single(fixed, observer),
                    Some(before) => self.block(fixed, blocks, before, observer),
                };
            }
            Judgement::Singly => return self.singly(fixed, count, observer),
            Judgement::Halves => (2, count / 2),
            Judgement::Apart => (count, 1),
        };
        for part in 1..=parts {
            let length = if part == parts { count - (parts - 1) * length } else { length };
            if let Some(outcome) = self.block(fixed, blocks, length, observer)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// How to watch steps from the state.
    fn look(&mut self, fixed: &FixedSteps, blocks: &dyn Blocks) -> Look {
        let (state, t0) = (&*self.state, self.plan.t0);
        let Some(watch) = &mut self.watch else { return Look::Not };
        if blocks.watched() == 0 {
            return Look::Afterwards;
        }
        watch.begin_at(state.t, &state.x);
        let begins = watch.begin_loop(&state.events);
        match begins && !watch.begins_near(&state.events, fixed.length(t0, state.step)) {
            true => Look::InLoop,
            false => Look::Singly,
        }
    }

    /// Number of steps of a block to be made in place of one in which a loop has found that an event
    /// may lie: half of them, none of one; `None` if there is nothing in any.
    fn looked_in_loop(&mut self, fixed: &FixedSteps, count: u64) -> Option<u64> {
        let (step, memories) = (self.state.step, &self.state.events);
        let at_end = (fixed.time(self.plan.t0, step + count), &self.x1[..]);
        let watch = self.watch.as_mut()?;
        // Loops look at the states with which their steps begin.
        let passes = watch.loop_passes(memories) && watch.last_passes(memories, fixed.h, at_end);
        watch.learn((step, count), passes);
        (!passes).then_some(count / 2)
    }

    /// Judge a block of `count` steps; all of them have results if `good`.
    fn judged(&self, good: bool, count: u64) -> Judgement {
        let far = good && self.may_be_far(&self.largest);
        let finite = good && all_finite(&self.x1) && all_finite(&self.largest);
        match count > 1 {
            _ if far => Judgement::Singly,
            false if !finite => Judgement::Singly,
            true if !finite => Judgement::Apart,
            true if self.is_surprised(&self.largest) => Judgement::Halves,
            _ => Judgement::Good,
        }
    }

    /// Make the steps of a block one by one.
    fn singly<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        count: u64,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        // Single steps do not record the deviations of the state with which they begin.
        for drift in &mut self.state.drift {
            drift.max = max_or_nan(drift.max, drift.now);
        }
        for _ in 0..count {
            if let Some(outcome) = self.single(fixed, observer)? {
                return Ok(Some(outcome));
            }
            if let Some(outcome) = self.after_surprise(observer)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Check a good block, pass on its outputs, and make its end the state.
    fn take_block<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        blocks: &dyn Blocks,
        count: u64,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let (first, t0) = (self.state.step, self.plan.t0);
        let t1 = fixed.time(t0, first + count);
        let (state, work) = (&*self.state, &mut self.work);
        let (groups, monitored) = self.deviations.split_at_mut(self.groups);
        self.system.monitor(t1, &state.target, &self.x1, &mut self.values, groups, work);
        self.map.deviations(&self.memory, monitored);
        self.check_result(first + count, t1)?;
        self.check_met(t1, fixed.h)?;
        if let Err((taken, error)) = self.deliver(observer) {
            if taken > 0 {
                // The state follows the outputs that were taken, so that both can be stored.
                let last = fixed.samples[self.state.next_sample + taken - 1];
                self.outputs.known = taken;
                self.forget_watched();
                self.block(fixed, blocks, last - first, observer)?;
            }
            return Err(Failure::Observer(error));
        }
        self.measure_outputs(fixed, observer);
        if self.outputs.room() == 0 {
            self.sample_fixed(fixed, first + count, t1, observer)?;
        }
        self.state.cost.add(&self.outputs.cost);
        if let Some(monitor) = self.monitor.as_mut().filter(|monitor| monitor.samples(first)) {
            let state = &mut *self.state;
            let at = (first, state.t, fixed.h);
            monitor.sample(self.system, at, &state.x, &mut state.stability, &mut self.work);
        }
        for (drift, &largest) in self.state.drift.iter_mut().zip(&self.largest) {
            drift.max = max_or_nan(drift.max, largest);
        }
        if first + count == fixed.steps {
            // Each block measures the states with which its steps begin, and none begins here.
            self.count_deviations();
        }
        self.hand_piece((fixed.h, t1), false, observer)?;
        self.field_known = false;
        self.advance(first + count, t1);
        self.after_surprise(observer)
    }

    /// Make `count` steps in loops from the state to x₁, and keep the outputs on the way; true if all
    /// of them have a result. The bits are those of one loop.
    fn steps_with_outputs(
        &mut self,
        fixed: &FixedSteps,
        blocks: &dyn Blocks,
        count: u64,
        with_multipliers: bool,
    ) -> bool {
        let (n, first) = (self.x1.len(), self.state.step);
        let multipliers = if with_multipliers { self.map.multiplier_count() } else { 0 };
        let after = &fixed.samples[self.state.next_sample..];
        // At most as many outputs as steps: a search among all of a long run takes longer than a
        // step.
        let after = &after[..after.len().min(count as usize).min(self.outputs.room())];
        let after = &after[..after.partition_point(|&after| after <= first + count)];
        let kept = &mut self.outputs;
        kept.cost = Cost::default();
        kept.t.clear();
        kept.t.extend(after.iter().map(|&step| fixed.time(self.plan.t0, step)));
        // What the map carries at the end of the block is kept by the run.
        let ends_at = after.first().copied() == Some(first + count);
        let (stride, of_start, of_memory) = match multipliers {
            0 => (n, 0, 0),
            _ => (n + multipliers, blocks.start_len(), if ends_at { 0 } else { self.memory.len() }),
        };
        for (kept, len) in
            [(&mut kept.x, stride), (&mut kept.starts, of_start), (&mut kept.memories, of_memory)]
        {
            kept.resize(after.len() * len, 0.0);
        }
        if !self.steps_keeping(fixed, blocks, count, (after, stride)) {
            return false;
        }
        if multipliers > 0 {
            self.keep_multipliers(fixed, blocks, first + count);
        }
        true
    }

    /// Make `count` steps in loops from the state to x₁, and keep the states after each; true if all
    /// of them have a result.
    fn watched_steps(&mut self, fixed: &FixedSteps, blocks: &dyn Blocks, count: u64) -> bool {
        let (n, first) = (self.x1.len(), self.state.step);
        let kept = &mut self.outputs;
        kept.cost = Cost::default();
        kept.t.clear();
        kept.x.resize(count as usize * n, 0.0);
        let mut after = std::mem::take(&mut kept.after);
        after.clear();
        after.extend(first + 1..=first + count);
        let made = self.steps_keeping(fixed, blocks, count, (&after, n));
        self.outputs.after = after;
        made
    }

    /// Make `count` steps in loops from the state to x₁, and keep the states `after` some of them, for
    /// which there is room; true if all of them have a result.
    fn steps_keeping(
        &mut self,
        fixed: &FixedSteps,
        blocks: &dyn Blocks,
        count: u64,
        (after, stride): (&[u64], usize),
    ) -> bool {
        let looped = StepLoop { map: self.map, blocks, h: fixed.h, t0: self.plan.t0 };
        self.x1.copy_from_slice(&self.state.x);
        self.memory.copy_from_slice(&self.state.memory);
        self.scales.carried.copy_from_slice(&self.state.scales.carried);
        self.innovation = 0.0;
        let BlockOutputs { x, starts, memories, repairs, cost, .. } = &mut self.outputs;
        let outputs = Outputs { after, x, stride, memory: memories, starts };
        let (memory, scales) = (&mut self.memory, &mut self.scales.carried);
        let sides = self.watch.as_mut().map_or(&mut [][..], |watch| &mut watch.sides[..]);
        let sides = if blocks.watched() > 0 { sides } else { &mut [] };
        let innovation = &mut self.innovation;
        let carry = Carry { memory, scales, innovation, sides, cost, outputs };
        let StepState { x, memory, scales, step: first, .. } = &*self.state;
        let begun = Some(StepStart { x, memory, scales: &scales.carried });
        let (steps, rest) = (*first..first + count, (&mut self.work[..], false));
        repairs.steps(looped, steps, (&mut self.x1, begun), carry, &mut self.largest, rest).is_ok()
    }

    /// Put the multipliers at x₁, with which `state` begins, behind it, as a loop computes them;
    /// false if it cannot.
    pub(super) fn looped_multipliers(
        &mut self,
        fixed: &FixedSteps,
        end: u64,
        state: &mut [f64],
    ) -> bool {
        let Some(blocks) = self.map.blocks().filter(|blocks| blocks.start_len() > 0) else {
            return false;
        };
        if !self.is_followed(fixed, end) {
            return false;
        }
        let around = fixed.lengths_around(self.plan.t0, end);
        let BlockOutputs { repairs, start, .. } = &mut self.outputs;
        let (x, lambda) = state.split_at_mut(self.state.x.len());
        let StartCopies { x: trial, memory, scales, largest } =
            repairs.copies((x, &self.memory, &self.scales.carried), self.largest.len());
        let outputs = Outputs { after: &[end], stride: x.len(), x, memory: &mut [], starts: start };
        let cost = &mut Cost::default();
        let (innovation, sides) = (&mut 0.0, &mut []);
        let carry = Carry { memory, scales, innovation, sides, cost, outputs };
        if !blocks.steps(end, 1, trial, carry, largest, &mut self.work) {
            return false;
        }
        blocks.multipliers(around, start, &self.memory, lambda);
        true
    }

    /// Append the multipliers at the outputs of a block of steps that ends after `end` to their
    /// states.
    fn keep_multipliers(&mut self, fixed: &FixedSteps, blocks: &dyn Blocks, end: u64) {
        let (n, first) = (self.x1.len(), self.state.next_sample);
        let len = n + self.map.multiplier_count();
        let after = &fixed.samples[first..first + self.outputs.t.len()];
        let mut states = std::mem::take(&mut self.outputs.x);
        let last = states.len().saturating_sub(len);
        let ends =
            after.last() == Some(&end) && self.looped_multipliers(fixed, end, &mut states[last..]);
        let kept = &mut self.outputs;
        kept.x = states;
        let (of_start, of_memory) = (kept.start.len(), self.memory.len());
        let after = &after[..after.len() - usize::from(ends)];
        for (k, (&step, x)) in after.iter().zip(kept.x.chunks_exact_mut(len)).enumerate() {
            let start = &kept.starts[k * of_start..(k + 1) * of_start];
            let memory = match step == end {
                true => &self.memory[..],
                false => &kept.memories[k * of_memory..(k + 1) * of_memory],
            };
            let (x, lambda) = x.split_at_mut(n);
            let (before, after) = fixed.lengths_around(self.plan.t0, step);
            match !start.is_empty() && start.iter().all(|start| !start.is_nan()) {
                true => blocks.multipliers((before, after), start, memory, lambda),
                false => self.map.multipliers(
                    Between { t: kept.t[k], before, after, x, memory },
                    lambda,
                    &mut self.work,
                ),
            }
        }
    }

    /// True if the state after `end` steps is between two equal ones, or a loop begins there.
    fn is_followed(&self, fixed: &FixedSteps, end: u64) -> bool {
        let begins = || self.map.blocks().is_some_and(Blocks::makes_first_steps);
        end < fixed.steps && (end > 0 || begins())
    }

    /// Pass the outputs of a block to the observer, but for those that it has.
    ///
    /// # Errors
    /// The observer's, with the number of outputs of the block that it has.
    pub(super) fn deliver<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<(), (usize, O::Error)> {
        let BlockOutputs { t, x, known, .. } = &mut self.outputs;
        let skipped = std::mem::take(known).min(t.len());
        if skipped == t.len() {
            return Ok(());
        }
        let width = x.len() / t.len();
        let first = self.state.next_sample + skipped;
        lend(&mut self.work, observer, |observer| {
            observer.samples(first, &t[skipped..], &x[skipped * width..])
        })
        .map_err(|(taken, error)| (skipped + taken, error))
    }

    /// Let the observer accumulate the outputs of a block, measure the terms of the invariants
    /// where that is due, and count these outputs.
    pub(super) fn measure_outputs<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        observer: &mut O,
    ) {
        let (n, first) = (self.x1.len(), self.state.next_sample);
        let BlockOutputs { t, x, .. } = &self.outputs;
        let width = x.len() / t.len().max(1);
        for (k, (&t, x)) in t.iter().zip(x.chunks_exact(width.max(1))).enumerate() {
            observer.accumulate(first + k, t, x, &mut self.state.averages);
        }
        for k in measured(first..first + t.len(), fixed.samples.len()).map(|output| output - first)
        {
            let state = &mut *self.state;
            let at = (t[k], &x[k * width..][..n], &state.target[..]);
            raise_terms(self.system, at, (&mut state.terms, &mut state.losses), &mut self.work);
        }
        self.state.next_sample += self.outputs.t.len();
    }
}
