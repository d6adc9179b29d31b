//! Blocks of an ensemble: the parts in which its trajectories are computed and stored, each a chunk
//! of every array.

use std::ops::Range;

/// Range of the lengths of a block, in trajectories, unless the ensemble or memory says less.
const LENGTHS: Range<u64> = 1 << 13..1 << 17;

/// Number of values of the widest array in a block of more than the least length: 8 MiB.
const WIDEST: u64 = 1 << 20;

/// Maximum number of values of all arrays in a block: 64 MiB.
const ALL: u64 = 1 << 23;

/// Least number of blocks, of which a small ensemble has enough trajectories: an interruption then
/// costs a part of it, and several workers can share it.
const FEWEST: u64 = 16;

/// Partition of an ensemble's trajectories into blocks of consecutive ones. In a grid a block is a
/// box that is contiguous in row-major order: one place of the leading dimensions, a piece of one
/// dimension, and all of the dimensions behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Lengths of the grid, or the number of trajectories alone.
    shape: Vec<u64>,
    /// Dimension that is divided into pieces.
    axis: usize,
    /// Length of a piece.
    piece: u64,
}

impl Blocks {
    /// Blocks of trajectories of this shape, which have so many numbers in each array.
    pub(super) fn choose(shape: Vec<u64>, widths: &[usize]) -> Blocks {
        let count = shape.iter().fold(1u64, |all, &length| all.saturating_mul(length));
        let widest = widths.iter().copied().max().unwrap_or(0).max(1) as u64;
        let all = widths.iter().sum::<usize>().max(1) as u64;
        let room = power_below(WIDEST / widest).clamp(LENGTHS.start, LENGTHS.end);
        let share = count.div_ceil(FEWEST).max(1).next_power_of_two();
        let length = room.min(power_below(ALL / all)).min(share);
        let (mut axis, mut behind) = (shape.len() - 1, 1u64);
        while axis > 0 && behind.saturating_mul(shape[axis]) <= length {
            behind *= shape[axis];
            axis -= 1;
        }
        let piece = power_below(length / behind).min(shape[axis]).max(1);
        Blocks { shape, axis, piece }
    }

    /// Blocks of this shape whose chunks have these lengths; `None` if they are not contiguous.
    pub(super) fn of_chunks(shape: &[u64], chunk: &[u64]) -> Option<Blocks> {
        let axis =
            chunk.iter().position(|&length| length > 1).unwrap_or(chunk.len().checked_sub(1)?);
        let blocks = Blocks { shape: shape.to_vec(), axis, piece: chunk[axis].max(1) };
        (shape.len() == chunk.len() && blocks.chunk() == chunk).then_some(blocks)
    }

    /// Lengths of the grid, or the number of trajectories alone.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Lengths of a chunk in the dimensions of [`Blocks::shape`].
    pub fn chunk(&self) -> Vec<u64> {
        let length = |(k, &length): (usize, &u64)| match k.cmp(&self.axis) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => self.piece,
            std::cmp::Ordering::Greater => length.max(1),
        };
        self.shape.iter().enumerate().map(length).collect()
    }

    /// Number of trajectories of a full block.
    pub fn len(&self) -> u64 {
        self.piece * self.behind()
    }

    /// True if there are no trajectories.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.shape[..self.axis].iter().product::<u64>() * self.pieces()
    }

    /// Trajectories of a block, counted from the first of the ensemble or part.
    pub fn range(&self, block: u64) -> Range<u64> {
        let (lead, piece) = (block / self.pieces(), block % self.pieces());
        let (length, behind) = (self.shape[self.axis], self.behind());
        let place = |piece: u64| (lead * length + (piece * self.piece).min(length)) * behind;
        place(piece)..place(piece + 1)
    }

    /// Block of a trajectory, and its place therein.
    pub(super) fn of(&self, trajectory: u64) -> (u64, u64) {
        let (length, behind) = (self.shape[self.axis], self.behind());
        let along = trajectory / behind;
        let (lead, along) = (along / length, along % length);
        let block = lead * self.pieces() + along / self.piece;
        (block, trajectory - self.range(block).start)
    }

    /// Place of a block's chunk in the grid of chunks.
    pub(super) fn index(&self, block: u64) -> Vec<u64> {
        let mut index = vec![0; self.shape.len()];
        index[self.axis] = block % self.pieces();
        let mut rest = block / self.pieces();
        for k in (0..self.axis).rev() {
            index[k] = rest % self.shape[k];
            rest /= self.shape[k];
        }
        index
    }

    fn pieces(&self) -> u64 {
        self.shape[self.axis].div_ceil(self.piece)
    }

    fn behind(&self) -> u64 {
        self.shape[self.axis + 1..].iter().product()
    }
}

/// Largest power of two that is not above `number`; 1 if there is none.
fn power_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_the_trajectories() {
        for (shape, widths) in [
            (vec![0], vec![3]),
            (vec![1], vec![1]),
            (vec![700], vec![6, 6, 1]),
            (vec![100_000], vec![1]),
            (vec![5, 7], vec![1]),
            (vec![3, 1, 40, 11], vec![2]),
            (vec![2, 300_000], vec![1]),
            (vec![9, 9], vec![1 << 22]),
        ] {
            let blocks = Blocks::choose(shape.clone(), &widths);
            let mut next = 0;
            for block in 0..blocks.count() {
                let range = blocks.range(block);
                assert_eq!(range.start, next, "{blocks:?}");
                assert!(range.end > range.start && range.end - range.start <= blocks.len());
                for trajectory in [range.start, range.end - 1] {
                    assert_eq!(blocks.of(trajectory), (block, trajectory - range.start));
                }
                // The first trajectory lies at the corner of its chunk.
                let (index, chunk) = (blocks.index(block), blocks.chunk());
                let corner = shape.iter().zip(index.iter().zip(&chunk));
                let flat =
                    corner.fold(0, |flat, (length, (index, chunk))| flat * length + index * chunk);
                assert_eq!(flat, range.start, "{blocks:?}");
                next = range.end;
            }
            assert_eq!(next, shape.iter().product::<u64>(), "{blocks:?}");
            assert_eq!(Blocks::of_chunks(&shape, &blocks.chunk()).unwrap().chunk(), blocks.chunk());
        }
    }

    #[test]
    fn lengths_are_powers_of_two_from_the_widest_array() {
        let length = |count: u64, widths: &[usize]| Blocks::choose(vec![count], widths).len();
        assert_eq!(length(1 << 30, &[1]), 1 << 17);
        assert_eq!(length(1 << 30, &[6, 6, 1]), 1 << 17);
        assert_eq!(length(1 << 30, &[20]), 1 << 15);
        assert_eq!(length(1 << 30, &[1000]), 1 << 13);
        assert_eq!(length(1 << 30, &[1 << 20]), 8, "memory says less");
        assert_eq!(length(1000, &[1]), 64, "the ensemble says less");
    }
}
