//! The outputs of a block of steps, kept until the block is known to be good and then handed over together: a block that
//! ended at every output would cost a call of everything for each.

use super::{Engine, LONGEST_BLOCK};
use crate::cost::Cost;
use crate::observer::Observer;
use crate::plan::{FixedSteps, Plan, Stepping};
use crate::scheme::map::{Blocks, Carry, StepMap};
use crate::scheme::repairs::{Looped, Repairs};
use crate::terms::is_measured;
use crate::vector::max_or_nan;

/// Numbers of the outputs of a block at most, unless one output has more: what a second-level cache holds.
const MOST_NUMBERS: usize = 32 * 1024;

/// Outputs that the observer has not got yet.
#[derive(Default)]
pub(super) struct KeptOutputs {
    t: Vec<f64>,
    /// States, each followed by its multipliers if they are wanted.
    x: Vec<f64>,
    /// Outputs from the next one on that the observer has already.
    pub known: usize,
    /// How many fit.
    room: usize,
    /// The largest deviations within a part of a block.
    largest: Vec<f64>,
    /// What the map carries at the last output.
    memory: Vec<f64>,
    /// What the step after it has found at its start.
    start: Vec<f64>,
    /// Scratch for a step that is made to learn that.
    trial: Vec<f64>,
    scales: Vec<f64>,
    /// For steps of a block that are made by themselves.
    repairs: Repairs,
    /// What the block cost.
    pub cost: Cost,
}

impl KeptOutputs {
    /// Room for the outputs of a block of `map`, if it makes any.
    pub fn new(plan: &Plan, n: usize, watched: usize, map: &dyn StepMap) -> KeptOutputs {
        let (Stepping::Fixed(fixed), Some(blocks)) = (&plan.stepping, map.blocks()) else {
            return KeptOutputs::default();
        };
        let width = n + map.multiplier_count();
        let room = (MOST_NUMBERS / width.max(1)).clamp(1, LONGEST_BLOCK as usize).min(fixed.samples.len());
        KeptOutputs {
            t: Vec::with_capacity(room),
            x: Vec::with_capacity(room * width),
            known: 0,
            room,
            largest: vec![0.0; watched],
            memory: vec![0.0; map.memory_len()],
            start: vec![0.0; blocks.start_len()],
            trial: vec![0.0; n],
            scales: Vec::new(),
            repairs: Repairs::default(),
            cost: Cost::default(),
        }
    }

    /// How many outputs a block may have.
    pub fn room(&self) -> usize {
        self.room
    }
}

impl Engine<'_> {
    /// Makes `count` steps in loops from x₁ and keeps the outputs on the way; says whether all of them have a result. The
    /// bits are those of one loop.
    pub(super) fn steps_with_outputs(
        &mut self,
        fixed: &FixedSteps,
        blocks: &dyn Blocks,
        count: u64,
        with_multipliers: bool,
    ) -> bool {
        let (mut step, end) = (self.state.step, self.state.step + count);
        let with_multipliers = with_multipliers && self.map.multiplier_count() > 0;
        let from_start = with_multipliers && blocks.start_len() > 0;
        let looped = Looped { map: self.map, blocks, h: fixed.h, t0: self.plan.t0 };
        let mut waits = false;
        self.outputs.cost = Cost::default();
        self.outputs.t.clear();
        self.outputs.x.clear();
        self.largest.fill(0.0);
        self.innovation = 0.0;
        while step < end {
            let output = fixed.samples.get(self.state.next_sample + self.outputs.t.len()).copied();
            // The step behind an output tells the multipliers there.
            let next = if waits { step + 1 } else { output.unwrap_or(end).min(end) };
            let mut innovation = 0.0;
            let kept = &mut self.outputs;
            let start = if waits { &mut kept.start[..] } else { &mut [] };
            let (memory, scales) = (&mut self.memory, &mut self.scales.carried);
            let carry = Carry { memory, scales, innovation: &mut innovation, start };
            let rest = (&mut kept.cost, &mut self.work[..], false);
            let Ok(alone) = kept.repairs.steps(looped, step..next, &mut self.x1, carry, &mut kept.largest, rest) else {
                return false;
            };
            for (largest, &part) in self.largest.iter_mut().zip(&kept.largest) {
                *largest = max_or_nan(*largest, part);
            }
            self.innovation = self.innovation.max(innovation);
            if waits {
                let around = self.steps_around(fixed, step);
                let kept = &mut self.outputs;
                let (n, at) = (self.x1.len(), kept.x.len() - self.map.multiplier_count());
                let (states, lambda) = kept.x.split_at_mut(at);
                if alone == 0 {
                    blocks.multipliers(around, &kept.start, &kept.memory, lambda);
                } else {
                    let (t, x) = (fixed.time(self.plan.t0, step), &states[at - n..]);
                    self.map.multipliers(t, around, x, &kept.memory, lambda, &mut self.work);
                }
                waits = false;
            }
            step = next;
            if output != Some(step) {
                continue;
            }
            let t = fixed.time(self.plan.t0, step);
            self.outputs.t.push(t);
            waits = from_start && step < end && self.is_followed(fixed, step);
            if waits {
                self.outputs.memory.copy_from_slice(&self.memory);
                self.outputs.x.extend_from_slice(&self.x1);
                self.outputs.x.resize(self.outputs.x.len() + self.map.multiplier_count(), 0.0);
            } else if with_multipliers {
                self.add_multipliers(fixed, step, t);
                self.outputs.x.extend_from_slice(&self.sample);
            } else {
                self.outputs.x.extend_from_slice(&self.x1);
            }
        }
        true
    }

    /// Puts x₁ after `end` steps and the multipliers there into `sample`, as a loop finds them; false where it cannot.
    pub(super) fn looped_multipliers(&mut self, fixed: &FixedSteps, end: u64) -> bool {
        let Some(blocks) = self.map.blocks().filter(|blocks| blocks.start_len() > 0) else { return false };
        if !self.is_followed(fixed, end) {
            return false;
        }
        let around = self.steps_around(fixed, end);
        let kept = &mut self.outputs;
        kept.trial.copy_from_slice(&self.x1);
        kept.memory.copy_from_slice(&self.memory);
        kept.scales.clone_from(&self.scales.carried);
        let carry =
            Carry { memory: &mut kept.memory, scales: &mut kept.scales, innovation: &mut 0.0, start: &mut kept.start };
        if !blocks.steps(end, 1, &mut kept.trial, carry, &mut kept.largest, &mut self.work) {
            return false;
        }
        let (x, lambda) = self.sample.split_at_mut(self.x1.len());
        x.copy_from_slice(&self.x1);
        blocks.multipliers(around, &kept.start, &self.memory, lambda);
        true
    }

    /// Whether the state after `end` steps stands between two equal ones, or a loop begins there.
    fn is_followed(&self, fixed: &FixedSteps, end: u64) -> bool {
        let begins = || self.map.blocks().is_some_and(Blocks::makes_first_steps);
        end < fixed.steps && (end > 0 || begins())
    }

    /// The lengths of the steps before and after the state after `end` steps; 0 where there is none.
    pub(super) fn steps_around(&self, fixed: &FixedSteps, end: u64) -> (f64, f64) {
        let length = |step| fixed.length(self.plan.t0, step);
        let before = if end == 0 { 0.0 } else { length(end - 1) };
        let after = if end == fixed.count() { 0.0 } else { length(end) };
        (before, after)
    }

    /// Gives the observer the outputs of a block, but for those that it has.
    ///
    /// # Errors
    /// The observer's, with how many outputs of the block it has.
    pub(super) fn hand_over<O: Observer + ?Sized>(&mut self, observer: &mut O) -> Result<(), (usize, O::Error)> {
        let KeptOutputs { t, x, known, .. } = &mut self.outputs;
        let skipped = std::mem::take(known).min(t.len());
        if skipped == t.len() {
            return Ok(());
        }
        let width = x.len() / t.len();
        observer
            .samples(self.state.next_sample + skipped, &t[skipped..], &x[skipped * width..])
            .map_err(|(taken, error)| (skipped + taken, error))
    }

    /// Measures the terms of the invariants at the outputs of a block where that is due, and counts these outputs.
    pub(super) fn measure_outputs(&mut self, fixed: &FixedSteps) {
        let (n, first) = (self.x1.len(), self.state.next_sample);
        let KeptOutputs { t, x, .. } = &self.outputs;
        for (k, (&t, x)) in t.iter().zip(x.chunks_exact((x.len() / t.len().max(1)).max(1))).enumerate() {
            if is_measured(first + k, fixed.samples.len()) {
                self.terms.raise(self.system, t, &x[..n], &mut self.state.terms, &mut self.work);
            }
        }
        self.state.next_sample += self.outputs.t.len();
    }
}
