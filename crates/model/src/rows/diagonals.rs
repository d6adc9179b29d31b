//! Sums over all pairs of few bodies, by diagonals: the pairs (i, i + d) of one distance d are a
//! diagonal of the table of all pairs. Along a diagonal both bodies move on evenly, so it fills
//! vectors where the partners of one body do not; the next diagonal starts one body further on. The
//! last rows of two diagonals, or for few bodies all of their rows, share a vector.

use super::blocks::Blocks;
use super::parts::is_shared;
use super::{Piece, Places};
use crate::functional::{Source, Stretches};
use crate::graph::aligned::first_aligned;
use crate::graph::interpret::{
    DiagonalPlace, DiagonalPlaces, RowsOfDiagonal, SEGMENT_LANES, filling_rows, last_rows,
    sum_of_lanes,
};

/// Largest number of bodies of a sum over all pairs that is taken by diagonals: the numbers that a
/// diagonal reads and adds to have to stay in the caches. Gravity between 150, 300, 400 and 600
/// bodies takes 0.7, 0.85, 1.0 and 1.3 of the time that it takes with the partners of one body
/// after the other, rigid waters 0.9 up to 300.
const MOST_IN_DIAGONALS: usize = 320;

/// Diagonals of a piece. Every output is accumulated in an array of its own, with one number for
/// each first body of the pairs, or for each second one. Then the numbers are added to their
/// places. So each number gets one contribution of every diagonal, in the order of
/// [`rows_of_diagonals`], however the rows of a diagonal are computed.
#[derive(Clone, Debug)]
pub(super) struct Diagonals {
    /// Rows of the first diagonal; every later one has one less.
    pub rows: usize,
    /// Places to which the numbers of each output are added.
    targets: Vec<Target>,
}

/// Place to which the first number of an array is added, and step of the place from number to
/// number: 0 if all are summed.
#[derive(Clone, Copy, Debug)]
struct Target {
    first: u32,
    step: u32,
}

/// Entries of a column.
#[derive(Clone, Copy)]
struct Column {
    /// Entry of the first row.
    first: u32,
    /// Step from row to row of a diagonal.
    along: u32,
    /// Step from the first row of a diagonal to that of the next one.
    across: u32,
}

/// Columns of rows that are all pairs i < j of some bodies, i by i, with the number of rows of the
/// first diagonal. The entries of each column belong to i, or to j, or are always the same. `None`
/// for other rows or too many bodies.
fn pairs(rows: &Stretches, columns: &[usize]) -> Option<(usize, Vec<Column>)> {
    let count = rows.rows();
    let longest = (1..MOST_IN_DIAGONALS).find(|n| n * (n + 1) / 2 >= count)?;
    if longest < 2 || longest * (longest + 1) / 2 != count {
        return None;
    }
    let [start, next, second] = [0, 1, longest].map(|row| rows.row(row));
    let column = |&k: &usize| {
        let (along, across) =
            (second.at(k).wrapping_sub(start.at(k)), next.at(k).wrapping_sub(start.at(k)));
        (across == 0 || across == along).then_some(Column { first: start.at(k), along, across })
    };
    let found: Vec<Column> = columns.iter().map(column).collect::<Option<_>>()?;
    let (mut i, mut d) = (0, 0);
    for row in rows.each() {
        let is_there = |(column, &k): (&Column, &usize)| row.at(k) == column.entry(i, d);
        if !found.iter().zip(columns).all(is_there) {
            return None;
        }
        d += 1;
        if d as usize + i as usize == longest {
            (i, d) = (i + 1, 0);
        }
    }
    Some((longest, found))
}

/// Rows of all diagonals, in the order in which they are added up.
fn rows_of_diagonals(longest: usize) -> impl Iterator<Item = RowsOfDiagonal> {
    filling_rows(longest)
        .chain(last_rows(longest).into_iter().flatten())
        .filter(|rows| rows.count > 0)
}

impl Column {
    /// Entry in row i of diagonal d, both counted from 0.
    fn entry(self, i: u32, d: u32) -> u32 {
        self.first
            .wrapping_add(self.along.wrapping_mul(i))
            .wrapping_add(self.across.wrapping_mul(d))
    }
}

impl Diagonals {
    /// Diagonals of the rows of a piece, with their blocks; `columns` are those of the slots and
    /// the outputs. `None` if the rows are not a sum over pairs of few bodies, or if threads share
    /// a sum of so many `operations` per row; also if there are numbers that are those of a row each
    /// (`is_of_row`), or parameters beside numbers, as rows read one table.
    pub fn of(
        rows: &Stretches,
        slots: &[(u32, Source)],
        is_of_row: bool,
        columns: &[usize],
        operations: impl FnOnce() -> usize,
    ) -> Option<(Diagonals, Blocks)> {
        let reads = |wanted: Source| slots.iter().any(|&(_, source)| source == wanted);
        if reads(Source::Number) && (is_of_row || reads(Source::Parameter)) {
            return None;
        }
        let (longest, columns) = pairs(rows, columns)?;
        let (read, added) = columns.split_at(slots.len());
        // A chain of as many rows is excluded: all columns that it reads move on.
        let is_of = |across: bool| {
            move |(column, &(_, source)): (&Column, &(u32, Source))| {
                source == Source::State && column.along != 0 && (column.across != 0) == across
            }
        };
        if ![false, true].into_iter().all(|across| read.iter().zip(slots).any(is_of(across))) {
            return None;
        }
        if is_shared(rows.rows() * operations()) {
            return None;
        }
        let targets =
            added.iter().map(|column| Target { first: column.first, step: column.along }).collect();
        let diagonals = Diagonals { rows: longest, targets };
        let mut blocks = Blocks::new(columns.len());
        for RowsOfDiagonal { diagonal, first, count } in rows_of_diagonals(longest) {
            let (d, i) = (diagonal as u32, first as u32);
            let step = |along: u32| if count > 1 { along as i32 } else { 0 };
            let read =
                read.iter().map(|&c| Places::Even { first: c.entry(i, d), step: step(c.along) });
            let added = added.iter().zip(0..).map(|(column, k)| {
                let first =
                    k * diagonals.stride() as u32 + i + if column.across == 0 { 0 } else { d };
                Places::Even { first, step: step(1) }
            });
            blocks.push(count as u32, &read.chain(added).collect::<Vec<_>>());
        }
        Some((diagonals, blocks))
    }

    /// Place of the first number of an output.
    pub fn place(&self, output: usize) -> u32 {
        self.targets[output].first
    }

    /// Diagonals with the outputs `kept`, whose places from `first` on become those from `to` on.
    pub fn sums(&self, kept: &[usize], first: u32, to: u32) -> Diagonals {
        let target = |&k: &usize| Target { first: self.place(k) - first + to, ..self.targets[k] };
        Diagonals { targets: kept.iter().map(target).collect(), ..*self }
    }

    /// Places of the outputs `kept` of a block in the arrays once there are no others.
    pub fn moved(&self, kept: &[usize], places: &[Places]) -> Vec<Places> {
        let before = |k: usize| (k * self.stride()) as u32;
        let moved = |(&k, to): (&usize, usize)| match places[k] {
            Places::Even { first, step } => {
                Places::Even { first: first - before(k) + before(to), step }
            }
            Places::Listed(_) => unreachable!("what is in diagonals stands evenly"),
        };
        kept.iter().zip(0..).map(moved).collect()
    }

    /// Distance between the arrays of two outputs: the last vector of every diagonal has room.
    fn stride(&self) -> usize {
        (self.rows + SEGMENT_LANES - 1).next_multiple_of(SEGMENT_LANES)
    }

    /// Length of all arrays.
    pub fn len(&self) -> usize {
        self.targets.len() * self.stride()
    }

    /// Visit every place to which outputs are added.
    pub fn each_written(&self, to: &mut impl FnMut(u32)) {
        for &Target { first, step } in &self.targets {
            (0..self.rows as u32).for_each(|row| to(first.wrapping_add(step.wrapping_mul(row))));
        }
    }

    /// Call `add` with arrays to add to and the rest of the scratch, then add the arrays to their
    /// places.
    pub fn with(
        &self,
        out: &mut [f64],
        work: &mut [f64],
        add: impl FnOnce(&mut [f64], &mut [f64]),
    ) {
        let first = first_aligned(work);
        let (arrays, work) = work[first..].split_at_mut(self.len());
        arrays.fill(0.0);
        add(arrays, work);
        for (&Target { first, step }, array) in
            self.targets.iter().zip(arrays.chunks_exact(self.stride()))
        {
            let array = &array[..self.rows];
            match step {
                0 => {
                    let mut sums = [0.0; SEGMENT_LANES];
                    for numbers in array.chunks(SEGMENT_LANES) {
                        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                    }
                    out[first as usize] += sum_of_lanes(sums);
                }
                1 => out[first as usize..][..self.rows]
                    .iter_mut()
                    .zip(array)
                    .for_each(|(out, number)| *out += number),
                _ => {
                    for (number, row) in array.iter().zip(0..) {
                        out[first.wrapping_add(step.wrapping_mul(row)) as usize] += number;
                    }
                }
            }
        }
    }

    /// Places for a loop over the diagonals of a piece, if one is possible. The table holds its
    /// numbers, or the parameters.
    pub fn places(&self, piece: &Piece, states: usize) -> Option<DiagonalPlaces> {
        let (slots, width) = (piece.slots.len(), piece.slots.len() + piece.outputs.len());
        let blocks: Vec<RowsOfDiagonal> = rows_of_diagonals(self.rows).collect();
        let place = |k: usize, block: usize| match piece.blocks.get(block).place(k) {
            Places::Even { first, step } => Some((first, step)),
            Places::Listed(_) => None,
        };
        // The first block begins where the first diagonal does.
        let second = blocks.iter().position(|rows| rows.diagonal == 1)?;
        let state = |k: usize| {
            let ((start, along), (next, _)) = (place(k, 0)?, place(k, second)?);
            let entry =
                |along: i32, row: usize| start.wrapping_add_signed(along.wrapping_mul(row as i32));
            let across = next.wrapping_sub(entry(along, blocks[second].first));
            for (block, rows) in blocks.iter().enumerate() {
                let expected = entry(along, rows.first)
                    .wrapping_add(across.wrapping_mul(rows.diagonal as u32));
                if place(k, block)? != (expected, if rows.count > 1 { along } else { 0 }) {
                    return None;
                }
            }
            let is_state = piece.slots[k].1 == Source::State;
            if is_state && start as usize + self.rows + SEGMENT_LANES - 1 > states {
                return None;
            }
            match (is_state, along, across) {
                (true, 0, 0) => Some(DiagonalPlace::Still(start)),
                (true, 1, 0 | 1) => Some(DiagonalPlace::State(start, across == 1)),
                (false, 1, 0 | 1) => Some(DiagonalPlace::Table(start, across == 1)),
                _ => None,
            }
        };
        let output =
            |k: usize| Some(place(k, second)?.0 != place(k, 0)?.0 + blocks[second].first as u32);
        Some(DiagonalPlaces {
            rows: self.rows,
            states: (0..slots).map(state).collect::<Option<_>>()?,
            outputs: (slots..width).map(output).collect::<Option<_>>()?,
            stride: self.stride(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs i < j of n bodies with entries of i, of j, and of something that stays.
    fn table(n: u32) -> Vec<[u32; 3]> {
        (0..n).flat_map(|i| (i + 1..n).map(move |j| [10 + 3 * i, 70 + 3 * j, 5])).collect()
    }

    fn stretches(list: &[[u32; 3]]) -> Stretches {
        let mut rows = Stretches::new(3);
        list.iter().for_each(|row| rows.push(row));
        rows
    }

    const SLOTS: [(u32, Source); 2] = [(0, Source::State), (1, Source::State)];

    #[test]
    fn diagonals_hold_every_pair_once() {
        for n in [3, 4, 7, 8, 9, 10, 17, 20] {
            let list = table(n);
            let (diagonals, blocks) =
                Diagonals::of(&stretches(&list), &SLOTS, true, &[0, 1, 2], || 10).unwrap();
            assert_eq!(diagonals.rows as u32, n - 1);
            let mut found = Vec::new();
            for block in blocks.iter() {
                let entries = |row: usize| [0, 1].map(|k: usize| block.place(k).entry(&[], row));
                found.extend((0..block.rows as usize).map(entries));
            }
            found.sort_unstable();
            assert!(found.into_iter().eq(list.iter().map(|&[i, j, _]| [i, j])), "{n}");
        }
    }

    #[test]
    fn chains_and_incomplete_sums_have_none() {
        let chain: Vec<[u32; 3]> = (0..6).map(|i| [i, i + 1, 5]).collect();
        let three: Vec<[u32; 3]> = (0..3).map(|i| [i, i + 1, 5]).collect();
        let mut left_out = table(6);
        left_out.remove(4);
        let mut exchanged = table(6);
        exchanged.swap(3, 9);
        for list in
            [chain, three, left_out, exchanged, table(2), table(MOST_IN_DIAGONALS as u32 + 1)]
        {
            assert!(
                Diagonals::of(&stretches(&list), &SLOTS, true, &[0, 1, 2], || 10).is_none(),
                "{list:?}"
            );
        }
        let largest = stretches(&table(MOST_IN_DIAGONALS as u32));
        let of =
            |operations: usize| Diagonals::of(&largest, &SLOTS, true, &[0, 1, 2], || operations);
        assert!(of(10).is_some() && of(1000).is_none(), "threads share the long one");
    }
}
