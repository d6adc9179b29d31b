//! Steps in a loop, with repairs: steps that the loop does not make well are made by themselves.
//!
//! Whether a step is the loop's or one by itself depends on that step alone, never on the block in
//! which it was tried: so results depend neither on where blocks end nor, in an ensemble, on the
//! neighbours of a lane.

use super::map::{Blocks, Carry, StepFrom, StepMap, Workspace};
use crate::system::all_finite;
use crate::vector::max_or_nan;
use std::ops::Range;

/// Growth of the number of steps in a try of the loop after one that went well; it starts at 1
/// after a step by itself.
const GROWTH: u64 = 2;

/// Factor by which a block that did not go well is shortened for the next try.
const SHRINKAGE: u64 = 4;

/// A map and its loop, and the equal steps of a run.
#[derive(Clone, Copy)]
pub struct StepLoop<'a> {
    /// Map of one step.
    pub map: &'a dyn StepMap,
    /// Loop of many steps.
    pub blocks: &'a dyn Blocks,
    /// Length of a step.
    pub h: f64,
    /// Time at which the first step begins.
    pub t0: f64,
}

/// Values with which steps begin.
#[derive(Clone, Copy)]
pub struct StepStart<'a> {
    /// State.
    pub x: &'a [f64],
    /// Numbers that the map carries.
    pub memory: &'a [f64],
    /// Scales that the run carries.
    pub scales: &'a [f64],
}

/// A step that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoResult;

/// StartCopies of the values with which some steps begin, for a trial that may change them, and room for
/// deviations.
pub struct StartCopies<'a> {
    /// State.
    pub x: &'a mut [f64],
    /// Numbers that the map carries.
    pub memory: &'a mut [f64],
    /// Scales that the run carries.
    pub scales: &'a mut [f64],
    /// Room for the largest deviations.
    pub largest: &'a mut [f64],
}

/// Scratch for the values with which a part of a block began.
#[derive(Debug, Default)]
pub struct BlockRepairs {
    x: Vec<f64>,
    x1: Vec<f64>,
    memory: Vec<f64>,
    scales: Vec<f64>,
    largest: Vec<f64>,
    sides: Vec<f64>,
}

impl BlockRepairs {
    /// StartCopies of (x, memory, scales) in this scratch, with room for `count` deviations.
    pub fn copies(
        &mut self,
        (x, memory, scales): (&[f64], &[f64], &[f64]),
        count: usize,
    ) -> StartCopies<'_> {
        self.store(x, memory, scales);
        self.largest.resize(count, 0.0);
        StartCopies {
            x: &mut self.x,
            memory: &mut self.memory,
            scales: &mut self.scales,
            largest: &mut self.largest,
        }
    }

    fn store(&mut self, x: &[f64], memory: &[f64], scales: &[f64]) {
        for (store, numbers) in
            [(&mut self.x, x), (&mut self.memory, memory), (&mut self.scales, scales)]
        {
            store.clear();
            store.extend_from_slice(numbers);
        }
    }

    /// Make these steps from `x` as [`Blocks::steps`] does, except for those that it does not make
    /// well, and count their cost. `known` is true if not all can be made well. The numbers at the
    /// start of a step by itself are NaN among the [`Carry::outputs`]. `begun` are the values with
    /// which the first step begins, if the caller keeps them: a block that goes well then needs no
    /// copy of them.
    ///
    /// # Errors
    /// If a step has no result. Nothing that was written is of use then.
    pub fn steps(
        &mut self,
        looped: StepLoop,
        steps: Range<u64>,
        (x, begun): (&mut Vec<f64>, Option<StepStart>),
        carry: Carry,
        largest: &mut [f64],
        (work, known): (&mut [f64], bool),
    ) -> Result<(), NoResult> {
        let StepLoop { map, blocks, h, t0 } = looped;
        let Carry { memory, scales, innovation, sides, mut outputs, cost } = carry;
        let count = steps.end - steps.start;
        let (mut made, mut length) = (0, if known { count.div_ceil(SHRINKAGE) } else { count });
        largest.fill(0.0);
        *innovation = 0.0;
        self.largest.resize(largest.len(), 0.0);
        while made < count {
            length = length.min(count - made);
            let known = begun.filter(|_| made == 0);
            if known.is_none() {
                self.store(x, memory, scales);
            }
            let begun = known.unwrap_or(StepStart {
                x: &self.x,
                memory: &self.memory,
                scales: &self.scales,
            });
            let mut of_part = 0.0;
            let first = steps.start + made;
            let outputs_within = outputs.within(first..first + length);
            self.sides.clear();
            self.sides.extend_from_slice(sides);
            let part = Carry {
                memory,
                scales,
                innovation: &mut of_part,
                sides,
                cost,
                outputs: outputs_within,
            };
            let good = blocks.steps(first, length, x, part, &mut self.largest, work);
            let bad = !good && length > 1;
            if !bad {
                // The state with which a single step begins was measured, even if the step failed.
                for (largest, &part) in largest.iter_mut().zip(&self.largest) {
                    *largest = max_or_nan(*largest, part);
                }
            }
            if good {
                *innovation = innovation.max(of_part);
                made += length;
                length = length.saturating_mul(GROWTH);
                continue;
            }
            memory.copy_from_slice(begun.memory);
            scales.copy_from_slice(begun.scales);
            if !map.stands_alone() {
                // The map alone does not make such a step and the treatment of its result.
                return Err(NoResult);
            }
            if bad {
                sides.copy_from_slice(&self.sides);
                x.copy_from_slice(begun.x);
                length = (length / SHRINKAGE).max(1);
                continue;
            }
            outputs.keep(first, begun.x, memory);
            let step = StepFrom { t: (first as f64).mul_add(h, t0), h, x: begun.x };
            self.x1.resize(x.len(), 0.0);
            let workspace = &mut Workspace { kept: &mut [], memory, cost, work };
            let step = map.fixed_step(step, &mut self.x1, workspace);
            if step.is_err() || !all_finite(&self.x1) {
                return Err(NoResult);
            }
            std::mem::swap(x, &mut self.x1);
            outputs.keep(first + 1, x, memory);
            made += 1;
        }
        Ok(())
    }
}
