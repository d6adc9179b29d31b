//! Blocks of rows, with the places of their slots and outputs. Blocks of which each is the one
//! before, moved on by the same distances, form one stretch, of which only the first block and the
//! distances are stored: most rows of a long chain are one stretch.

use super::Places;
use std::ops::Range;

/// Blocks of rows, in order.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// Number of slots and outputs.
    width: usize,
    /// Number of blocks.
    count: usize,
    stretches: Vec<Stretch>,
    /// Places in the first block of every stretch, with their distances to those in the next block.
    firsts: Vec<(Places, i32)>,
}

/// Blocks of equally many rows that move on by equal distances.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Number of the first block.
    first: usize,
    /// Number of rows of each block.
    rows: u32,
}

/// Block of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    /// Number of rows.
    pub rows: u32,
    /// Number of the block within its stretch.
    number: i32,
    firsts: &'a [(Places, i32)],
}

impl Blocks {
    /// No blocks, for rows with so many slots and outputs.
    pub fn new(width: usize) -> Blocks {
        Blocks { width, count: 0, stretches: Vec::new(), firsts: Vec::new() }
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Append a block of so many rows at these places.
    pub fn push(&mut self, rows: u32, places: &[Places]) {
        debug_assert_eq!(places.len(), self.width, "there is a place for every slot and output");
        self.count += 1;
        if let Some(last) = self.stretches.last().filter(|last| last.rows == rows) {
            let number = (self.count - 1 - last.first) as i32;
            let start = self.firsts.len() - self.width;
            let of_stretch = &mut self.firsts[start..];
            let goes_on = |(&(first, distance), &place): (&(Places, i32), &Places)| {
                let from_first = first.distance(place);
                from_first.is_some_and(|from_first| {
                    number == 1 || from_first == distance.wrapping_mul(number)
                })
            };
            if of_stretch.iter().zip(places).all(goes_on) {
                if number == 1 {
                    for ((first, distance), &place) in of_stretch.iter_mut().zip(places) {
                        *distance = first.distance(place).unwrap_or(0);
                    }
                }
                return;
            }
        }
        self.stretches.push(Stretch { first: self.count - 1, rows });
        self.firsts.extend(places.iter().map(|&place| (place, 0)));
    }

    /// Blocks with these numbers.
    pub fn within(&self, which: Range<usize>) -> impl Iterator<Item = Block<'_>> {
        let first = self
            .stretches
            .partition_point(|stretch| stretch.first <= which.start)
            .saturating_sub(1);
        let end = self.stretches.partition_point(|stretch| stretch.first < which.end);
        (first..end.max(first)).flat_map(move |stretch| {
            let Stretch { first, rows } = self.stretches[stretch];
            let end = self.stretches.get(stretch + 1).map_or(self.count, |next| next.first);
            let firsts = &self.firsts[stretch * self.width..][..self.width];
            let block = move |block: usize| Block { rows, number: (block - first) as i32, firsts };
            (first.max(which.start)..end.min(which.end)).map(block)
        })
    }

    /// All blocks.
    pub fn iter(&self) -> impl Iterator<Item = Block<'_>> {
        self.within(0..self.count)
    }

    /// Block with this number, which exists.
    pub fn get(&self, number: usize) -> Block<'_> {
        self.within(number..number + 1).next().expect("the block exists")
    }

    /// Number of rows of every block.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        self.iter().map(|block| block.rows)
    }
}

impl Block<'_> {
    /// Place of a slot or output.
    pub fn place(&self, k: usize) -> Places {
        let (first, distance) = self.firsts[k];
        first.moved(distance.wrapping_mul(self.number))
    }

    /// Places of slots and outputs.
    pub fn places(&self) -> impl ExactSizeIterator<Item = Places> {
        (0..self.firsts.len()).map(|k| self.place(k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_those_that_move_evenly_are_stored_once() {
        let even = |first: u32, step: i32| Places::Even { first, step };
        let listed = Places::Listed;
        let all: Vec<(u32, [Places; 2])> = vec![
            (64, [even(5, 1), even(900, -2)]),
            (64, [even(69, 1), even(772, -2)]),
            (64, [even(133, 1), even(644, -2)]),
            (64, [even(197, 1), even(644, -2)]),
            (64, [even(197, 2), even(644, -2)]),
            (64, [listed(0), even(644, 0)]),
            (64, [listed(64), even(644, 0)]),
            (64, [listed(128), even(644, 0)]),
            (7, [listed(192), even(644, 0)]),
        ];
        let mut blocks = Blocks::new(2);
        all.iter().for_each(|(rows, places)| blocks.push(*rows, places));
        assert_eq!((blocks.len(), blocks.stretches.len()), (all.len(), 5));
        for range in [0..9, 0..0, 1..3, 2..7, 4..5, 8..9, 9..9] {
            let found: Vec<(u32, Vec<Places>)> = blocks
                .within(range.clone())
                .map(|block| (block.rows, block.places().collect()))
                .collect();
            let expected: Vec<(u32, Vec<Places>)> =
                all[range].iter().map(|(rows, places)| (*rows, places.to_vec())).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(blocks.get(6).place(0), listed(64));
    }
}
