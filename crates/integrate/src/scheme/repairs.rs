//! Steps in a loop, with repairs: steps that the loop does not make well are made by themselves.
//!
//! Whether a step is the loop's or one by itself depends on that step alone, never on the block in which it was tried:
//! so results depend neither on where blocks end nor, in an ensemble, on the neighbours of a lane.

use super::map::{Blocks, Carry, StepFrom, StepMap, Workspace};
use crate::system::all_finite;
use crate::vector::max_or_nan;
use std::ops::Range;

/// Growth of the number of steps in a try of the loop after one that went well; it starts at 1 after a step by itself.
const GROWTH: u64 = 2;

/// Factor by which a block that did not go well is shortened for the next try.
const SHRINKAGE: u64 = 4;

/// A map and its loop, and the equal steps of a run.
#[derive(Clone, Copy)]
pub struct Looped<'a> {
    /// Map of one step.
    pub map: &'a dyn StepMap,
    /// Loop of many steps.
    pub blocks: &'a dyn Blocks,
    /// Length of a step.
    pub h: f64,
    /// Time at which the first step begins.
    pub t0: f64,
}

/// A step that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmade;

/// Scratch for the values with which a part of a block began.
#[derive(Debug, Default)]
pub struct Repairs {
    x: Vec<f64>,
    x1: Vec<f64>,
    memory: Vec<f64>,
    scales: Vec<f64>,
    largest: Vec<f64>,
}

impl Repairs {
    /// Make these steps from `x` as [`Blocks::steps`] does, except for those that it does not make well, and count
    /// their cost. `known` is true if not all can be made well. The numbers at the start of a step by itself are NaN
    /// among the [`Carry::outputs`].
    ///
    /// # Errors
    /// If a step has no result. Nothing that was written is of use then.
    pub fn steps(
        &mut self,
        looped: Looped,
        steps: Range<u64>,
        x: &mut Vec<f64>,
        carry: Carry,
        largest: &mut [f64],
        (work, known): (&mut [f64], bool),
    ) -> Result<(), Unmade> {
        let Looped { map, blocks, h, t0 } = looped;
        let Carry { memory, scales, innovation, mut outputs, cost } = carry;
        let count = steps.end - steps.start;
        let (mut made, mut length) = (0, if known { count.div_ceil(SHRINKAGE) } else { count });
        largest.fill(0.0);
        *innovation = 0.0;
        self.largest.resize(largest.len(), 0.0);
        while made < count {
            length = length.min(count - made);
            self.x.clone_from(x);
            self.memory.clear();
            self.memory.extend_from_slice(memory);
            self.scales.clear();
            self.scales.extend_from_slice(scales);
            let mut of_part = 0.0;
            let first = steps.start + made;
            let outputs_within = outputs.within(first..first + length);
            let part = Carry { memory, scales, innovation: &mut of_part, cost, outputs: outputs_within };
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
            memory.copy_from_slice(&self.memory);
            scales.copy_from_slice(&self.scales);
            if !map.stands_alone() {
                // The map alone does not make such a step and the treatment of its result.
                return Err(Unmade);
            }
            if bad {
                std::mem::swap(x, &mut self.x);
                length = (length / SHRINKAGE).max(1);
                continue;
            }
            outputs.keep(first, &self.x, memory);
            let step = StepFrom { t: (first as f64).mul_add(h, t0), h, x: &self.x };
            self.x1.resize(x.len(), 0.0);
            let step = map.fixed_step(step, &mut self.x1, &mut Workspace { kept: &mut [], memory, cost, work });
            if step.is_err() || !all_finite(&self.x1) {
                return Err(Unmade);
            }
            std::mem::swap(x, &mut self.x1);
            outputs.keep(first + 1, x, memory);
            made += 1;
        }
        Ok(())
    }
}
