//! Rows of sums over pairs, cut into segments: the partners of one body.

use super::{BLOCK, Piece, Places, Rows};
use crate::functional::Source;
use crate::graph::interpret::{SEGMENT_LANES, SegmentLoop, SegmentPlace, SegmentPlaces};
use std::ops::Range;

/// Rows that segments have on the average at least. Shorter ones are faster in blocks of rows that are gathered.
const SHORTEST: usize = 6;

/// Rows that are looked at first.
const LOOKED_AT: usize = 16;

/// The lengths of the segments of `count` rows, of which `entries` gives what slot or output k stands for from some row on:
/// within a segment all of them move on evenly, the same way in each. None if rows do not fall into such segments, or into
/// only one, or if nothing of the state stays in a segment: what stands in lines of a grid is no sum over pairs.
pub(super) fn cut(
    count: usize,
    slots: &[(u32, Source)],
    outputs: usize,
    entries: &impl Fn(usize, usize, &mut [u32]),
) -> Option<Vec<u32>> {
    if count < 2 * SHORTEST {
        return None;
    }
    let width = slots.len() + outputs;
    // A look at some rows tells apart what is large and no such sum: a chain.
    let stays = |k: usize| {
        let mut pair = [0; 2];
        let equal = (0..LOOKED_AT).filter(|at| {
            entries(k, at * (count - 1) / LOOKED_AT, &mut pair);
            pair[0] == pair[1]
        });
        slots[k].1 == Source::State && 2 * equal.count() > LOOKED_AT
    };
    let staying: Vec<usize> = (0..slots.len()).filter(|&k| stays(k)).collect();
    if staying.is_empty() {
        return None;
    }
    // Some rows with the one behind them, slots and outputs one after the other: up to a block of steps from row to row.
    let mut block = vec![[0; BLOCK + 1]; width];
    let each_block = |block: &mut [[u32; BLOCK + 1]], of: &mut dyn FnMut(&[[u32; BLOCK + 1]], usize)| {
        for first in (0..count - 1).step_by(BLOCK) {
            let steps = BLOCK.min(count - 1 - first);
            for (k, column) in block.iter_mut().enumerate() {
                match slots.get(k) {
                    // Every row has numbers of its own; see `Piece::put_segments`.
                    Some((_, Source::Number)) => column.iter_mut().zip(first as u32..).for_each(|(to, row)| *to = row),
                    _ => entries(k, first, &mut column[..=steps]),
                }
            }
            of(block, steps);
        }
    };
    let step = |column: &[u32; BLOCK + 1], row: usize| column[row + 1].wrapping_sub(column[row]);
    let which_are = |most: &[u32], block: &[[u32; BLOCK + 1]]| {
        let mut equal = [true; BLOCK];
        for (&most, column) in most.iter().zip(block) {
            equal.iter_mut().enumerate().for_each(|(row, equal)| *equal &= step(column, row) == most);
        }
        equal
    };
    // The step from most rows to the next, by majority vote.
    let (mut most, mut votes) = (vec![0; width], 0);
    each_block(&mut block, &mut |block, steps| {
        let mut equal = which_are(&most, block);
        for row in 0..steps {
            if votes == 0 && !equal[row] {
                most.iter_mut().zip(block).for_each(|(most, column)| *most = step(column, row));
                equal = which_are(&most, block);
            }
            votes = if equal[row] { votes + 1 } else { votes - 1 };
        }
    });
    let mut start: Option<Vec<u32>> = None;
    let mut lengths: Vec<u32> = vec![1];
    let mut varies = false;
    each_block(&mut block, &mut |block, steps| {
        let start = start.get_or_insert_with(|| staying.iter().map(|&k| block[k][0]).collect());
        let equal = which_are(&most, block);
        for row in 0..steps {
            match lengths.last_mut().filter(|_| equal[row]) {
                Some(length) => *length += 1,
                None => {
                    lengths.push(1);
                    for (&k, start) in staying.iter().zip(&mut *start) {
                        varies |= most[k] == 0 && block[k][row + 1] != *start;
                        *start = block[k][row + 1];
                    }
                }
            }
        }
    });
    (varies && count >= SHORTEST * lengths.len()).then_some(lengths)
}

impl Piece {
    /// Makes every segment a block.
    pub(super) fn put_segments(
        &mut self,
        rows: &dyn Rows,
        lengths: &[u32],
        entries: &impl Fn(usize, usize, &mut [u32]),
    ) {
        // Numbers slot by slot, each in the order of the rows, with room behind them for the last vector of a loop.
        let table = rows.numbers();
        let numbers: Vec<usize> = (0..self.slots.len()).filter(|&k| self.slots[k].1 == Source::Number).collect();
        let mut places = vec![0; rows.count()];
        self.numbers = Vec::with_capacity(numbers.len() * rows.count() + SEGMENT_LANES);
        for &k in &numbers {
            entries(k, 0, &mut places);
            self.numbers.extend(places.iter().map(|&place| table[place as usize]));
        }
        self.numbers.extend([0.0; SEGMENT_LANES]);
        let place = |row: usize, k: usize| match self.slots.get(k) {
            Some((_, Source::Number)) => (numbers.partition_point(|&n| n < k) * rows.count() + row) as u32,
            _ => {
                let mut entry = [0];
                entries(k, row, &mut entry);
                entry[0]
            }
        };
        let mut first = 0;
        for &length in lengths {
            for k in 0..self.slots.len() + self.outputs.len() {
                let start = place(first, k);
                let step = if length > 1 { i64::from(place(first + 1, k)) - i64::from(start) } else { 0 };
                // Places are below 2³¹ wherever a model fits into memory.
                self.places.push(Places::Even { first: start, step: step as i32 });
            }
            self.blocks.push(length);
            first += length as usize;
        }
    }
}

/// Outputs in the order in which a loop adds to them: those in a range of places, every `step`-th of which stand one behind
/// the other. Components of a gradient stand by members, and a loop adds to one component of many of them.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Where the range starts.
    first: usize,
    step: usize,
    /// How many there are of each kind.
    count: usize,
}

impl Order {
    /// That of places which all lie in `first..end`.
    fn new(Range { start: first, end }: Range<usize>, step: usize) -> Order {
        Order { first, step, count: (end - first).div_ceil(step) }
    }

    /// Whether it is that of the outputs themselves.
    fn is_plain(self) -> bool {
        self.step == 1
    }

    /// How many numbers there are in this order.
    pub fn len(self) -> usize {
        self.step * self.count
    }

    /// Room needed by [`Order::with`].
    pub fn room(self) -> usize {
        if self.is_plain() { 0 } else { self.len() }
    }

    /// Where an output stands.
    pub fn place(self, output: u32) -> u32 {
        let k = output as usize - self.first;
        (k % self.step * self.count + k / self.step) as u32
    }

    /// Calls `add` with the outputs in this order.
    pub fn with(self, out: &mut [f64], room: &mut [f64], add: impl FnOnce(&mut [f64])) {
        let out = &mut out[self.first..];
        if self.is_plain() {
            return add(out);
        }
        let kinds = |k: usize| k..k + 1 + (self.count - 1) * self.step;
        for (k, column) in room.chunks_exact_mut(self.count).enumerate() {
            let end = kinds(k).end.min(out.len());
            column.iter_mut().zip(out[k..end].iter().step_by(self.step)).for_each(|(to, from)| *to = *from);
        }
        add(room);
        for (k, column) in room.chunks_exact(self.count).enumerate() {
            let end = kinds(k).end.min(out.len());
            out[k..end].iter_mut().step_by(self.step).zip(column).for_each(|(to, from)| *to = *from);
        }
    }

    /// Adds numbers in this order to the outputs.
    pub fn add(self, numbers: &[f64], out: &mut [f64]) {
        for (k, column) in numbers.chunks_exact(self.count).enumerate() {
            let out = out[self.first + k..].iter_mut().step_by(self.step);
            out.zip(column).for_each(|(out, number)| *out += number);
        }
    }
}

/// How a loop runs over the segments of a piece.
pub(super) struct Segments {
    /// Where the first segment in memory stands: the others stand behind it, all that moves by the same distance.
    pub places: SegmentPlaces,
    /// What the table is.
    pub table: Source,
    /// The slots that stay, in order.
    pub still: Vec<usize>,
    /// How the outputs are put so that those of the next row stand behind those of a row.
    pub order: Order,
    /// What [`Segments::starts`] gives, one segment behind the other.
    starts: Vec<u32>,
}

impl Segments {
    /// Those of a piece over so many states whose blocks are segments, if a loop can run over them.
    pub fn of(piece: &Piece, states: usize) -> Option<Segments> {
        let (slots, width) = (piece.slots.len(), piece.slots.len() + piece.outputs.len());
        let mut moves: Option<Vec<bool>> = None;
        // Between the outputs of a row and the next; 0 while that is unknown.
        let mut apart = 0;
        let blocks = || piece.places.chunks_exact(width).zip(&piece.blocks);
        for (places, _) in blocks().filter(|(_, rows)| **rows > 1) {
            let mut pattern = Vec::with_capacity(width);
            for (k, place) in places.iter().enumerate() {
                let Places::Even { step, .. } = *place else { return None };
                if k >= slots && apart == 0 {
                    apart = step.max(0);
                }
                if step != 0 && step != if k < slots { 1 } else { apart } {
                    return None;
                }
                pattern.push(step != 0);
            }
            if moves.get_or_insert_with(|| pattern.clone()) != &pattern {
                return None;
            }
        }
        let moves = moves?;
        if piece.places.iter().any(|place| matches!(place, Places::Listed(_))) {
            return None;
        }
        let order = Order::new(piece.written(), apart.max(1) as usize);
        let first = |places: &[Places], k: usize| {
            let first = places[k].entry(&[], 0);
            if k < slots { first } else { order.place(first) }
        };
        // What is an array: states, the table, outputs.
        let array = |k: usize| match piece.slots.get(k) {
            Some((_, Source::State)) => 0,
            Some(_) => 1,
            None => 2,
        };
        let mut table = Source::Parameter;
        let mut tables = (0..slots).filter(|&k| moves[k] && array(k) == 1).map(|k| piece.slots[k].1);
        if let Some(source) = tables.next() {
            table = source;
            if tables.any(|other| other != source) {
                return None;
            }
        }
        let mut bases = vec![u32::MAX; width];
        for (places, _) in blocks() {
            for (k, base) in bases.iter_mut().enumerate() {
                *base = (*base).min(first(places, k));
            }
        }
        let mut moving = [None; 3];
        for k in (0..width).filter(|&k| moves[k]) {
            moving[array(k)].get_or_insert((k, bases[k]));
        }
        let written: Vec<usize> = (slots..width).filter(|&k| moves[k]).collect();
        for (places, &rows) in blocks() {
            let shift = |k: usize| first(places, k) - bases[k];
            for k in (0..width).filter(|&k| moves[k]) {
                let (other, _) = moving[array(k)]?;
                let behind = first(places, k) as usize + (rows as usize).next_multiple_of(SEGMENT_LANES);
                if shift(k) != shift(other) || (array(k) == 0 && behind > states) {
                    return None;
                }
            }
            // Rows side by side must not add to one place.
            for &k in &written {
                let start = first(places, k);
                let range = start..start + rows;
                for other in slots..width {
                    let from = first(places, other);
                    let overlaps =
                        if moves[other] { from < range.end && start < from + rows } else { range.contains(&from) };
                    if other != k && overlaps {
                        return None;
                    }
                }
            }
        }
        let still: Vec<usize> = (0..slots).filter(|&k| !moves[k]).collect();
        let state = |k: usize| match (moves[k], array(k)) {
            (true, 0) => SegmentPlace::State(bases[k]),
            (true, _) => SegmentPlace::Table(bases[k]),
            (false, _) => SegmentPlace::Still(still.partition_point(|&s| s < k) as u32),
        };
        let places = SegmentPlaces {
            states: (0..slots).map(state).collect(),
            outputs: (slots..width).map(|k| moves[k].then_some(bases[k])).collect(),
        };
        let mut starts = Vec::new();
        for (block, _) in blocks() {
            starts.extend(moving.map(|moving| moving.map_or(0, |(k, base)| first(block, k) - base)));
            starts.extend(still.iter().map(|&k| block[k].entry(&[], 0)));
            starts.extend((slots..width).filter(|&k| !moves[k]).map(|k| first(block, k)));
        }
        Some(Segments { places, table, still, order, starts })
    }

    /// Scratch of a loop over segments, in numbers.
    pub fn work_len(&self, piece: &Piece, rows: &dyn SegmentLoop) -> usize {
        self.still.len() + piece.outputs.len() + rows.work_len()
    }

    /// For some segments by how much each stands behind the first in states, table and outputs, the entries of what stays,
    /// and the places of outputs that the sums are added to.
    pub fn starts(&self, which: Range<usize>) -> impl Iterator<Item = ([usize; 3], &[u32], &[u32])> {
        let summed = self.places.outputs.iter().filter(|place| place.is_none()).count();
        let width = 3 + self.still.len() + summed;
        self.starts[which.start * width..which.end * width].chunks_exact(width).map(|starts| {
            let (shifts, rest) = starts.split_at(3);
            let (entries, sums) = rest.split_at(self.still.len());
            ([shifts[0], shifts[1], shifts[2]].map(|shift| shift as usize), entries, sums)
        })
    }
}
