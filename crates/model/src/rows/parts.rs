//! Parts of long sums, which threads share.
//!
//! Every part adds to an array of its own, and the arrays are added up in the order of the parts.
//! The number of parts and their contents depend on the sum alone: no bit depends on the threads,
//! or on the backend.

use super::blocks::Blocks;
use rayon::prelude::*;
use std::ops::Range;

/// Operations of a sum over rows from which on threads share it. Four million take 0.2 ms, and a
/// sleeping thread gets its part only after 0.05 ms.
const LEAST_SHARED: usize = 4_000_000;

/// Limits of its parts: largest number, least operations, and least operations per output. Every
/// part has an array of the outputs that is filled and added up.
const MOST_PARTS: usize = 16;
const PART: usize = 250_000;
const PART_OF_OUTPUT: usize = 500;

/// True if threads share a sum of so many operations.
pub(super) fn is_shared(operations: usize) -> bool {
    operations >= LEAST_SHARED
}

/// Number of parts of a sum of so many operations into so many outputs.
fn parts(operations: usize, outputs: usize) -> usize {
    match is_shared(operations) {
        true => (operations / (PART_OF_OUTPUT * outputs).max(PART)).min(MOST_PARTS),
        false => 1,
    }
}

/// Limits of the parts of a sum over near pairs, whose number is unknown: most parts, and least
/// members of a part. A member has some tens of partners, which take a microsecond, and three
/// numbers in the array of every part.
const MOST_NEAR_PARTS: usize = 8;
const MEMBERS_OF_PART: usize = 250;

/// Number of parts of a sum over near pairs of so many members.
pub(super) fn near_parts(members: usize) -> usize {
    (members / MEMBERS_OF_PART).clamp(1, MOST_NEAR_PARTS)
}

/// Outputs per member up to which parts of such a sum have arrays of their own.
pub(super) const NEAR_OUTPUTS: usize = 10;

/// Divide blocks into stretches, so that threads may share a sum of so many operations per row
/// into so many outputs; `None` if it is too short for that.
pub(super) fn divided(
    blocks: &Blocks,
    operations: usize,
    outputs: usize,
) -> Option<Vec<Range<usize>>> {
    let all: usize = blocks.rows().map(|rows| rows as usize).sum();
    let count = parts(all * operations, outputs);
    if count < 2 || blocks.len() < count {
        return None;
    }
    // A part ends with the block that completes its share of the rows.
    let (mut parts, mut first, mut before) = (Vec::with_capacity(count), 0, 0);
    for (block, rows) in blocks.rows().enumerate() {
        before += rows as usize;
        if before * count >= all * (parts.len() + 1) {
            parts.push(first..block + 1);
            first = block + 1;
        }
    }
    Some(parts)
}

/// Scratch of the parts of a sum.
pub(super) struct Parts {
    /// Number of parts.
    pub count: usize,
    /// Outputs that the array of each stands for.
    pub sums: Range<usize>,
    /// Scratch that each needs in addition.
    pub work: usize,
}

impl Parts {
    /// Scratch needed by [`Parts::run`], in numbers.
    pub fn work_len(&self) -> usize {
        self.count * (self.sums.len() + self.work)
    }

    /// Call `add` for each part, with an array to add to and scratch of its own, and then `join`
    /// with the arrays one after the other.
    pub fn run<P>(
        &self,
        parts: P,
        work: &mut [f64],
        add: &(impl Fn(<P as IntoIterator>::Item, &mut [f64], &mut [f64]) + Sync),
        mut join: impl FnMut(&[f64]),
    ) where
        P: IntoIterator
            + IntoParallelIterator<Item = <P as IntoIterator>::Item, Iter: IndexedParallelIterator>,
    {
        let one = |part, work: &mut [f64]| {
            let (sums, work) = work.split_at_mut(self.sums.len());
            // The sum of −0 and any number is that number.
            sums.fill(-0.0);
            add(part, sums, work);
        };
        if rayon::current_num_threads() == 1 {
            for part in parts {
                one(part, work);
                join(&work[..self.sums.len()]);
            }
            return;
        }
        let each = self.sums.len() + self.work;
        let work = &mut work[..self.work_len()];
        parts
            .into_par_iter()
            .with_max_len(1)
            .zip(work.par_chunks_exact_mut(each))
            .for_each(|(part, work)| one(part, work));
        work.chunks_exact(each).for_each(|work| join(&work[..self.sums.len()]));
    }
}
