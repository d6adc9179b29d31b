//! Segments of the rows of sums over pairs: the partners of one body.

use super::blocks::Block;
use super::members::MemberNumbers;
use super::{Piece, Places, RowTable};
use crate::functional::{Entries, Source, Stretches};
use crate::graph::interpret::{SEGMENT_LANES, SegmentLoop, SegmentPlace, SegmentPlaces};
use std::ops::Range;

/// Least average number of rows of segments. Shorter ones are faster in blocks of rows that are
/// gathered.
const SHORTEST: usize = 6;

/// Number of rows that are sampled first.
const LOOKED_AT: usize = 16;

/// Lengths of the segments of rows; `columns` are those of the slots and the outputs of a piece. If
/// `is_of_row`, slots for numbers read one for each row, which [`Piece::put_segments`] puts in order.
/// Within a segment all of them move on evenly, the same way in each. `None` if the rows do not
/// fall into such segments, or into only one, or if no state entry stays in a segment: lines of a
/// grid are not a sum over pairs.
pub(super) fn cut(
    rows: &Stretches,
    slots: &[(u32, Source)],
    is_of_row: bool,
    columns: &[usize],
) -> Option<Vec<u32>> {
    let count = rows.rows();
    if count < 2 * SHORTEST {
        return None;
    }
    // A sample of rows identifies large tables that are not such a sum: chains.
    let looks: Vec<usize> = (0..LOOKED_AT).map(|at| at * (count - 1) / LOOKED_AT).collect();
    let stays = |k: usize| {
        let equal = looks.iter().filter(|&&row| rows.row(row).at(k) == rows.row(row + 1).at(k));
        2 * equal.count() > LOOKED_AT
    };
    let source = |at: usize| slots.get(at).map(|&(_, source)| source);
    let moving: Vec<usize> = (0..columns.len())
        .filter(|&at| !(is_of_row && source(at) == Some(Source::Number)))
        .collect();
    let is_still = |at: usize| source(at) == Some(Source::State) && stays(columns[at]);
    let staying: Vec<usize> = (0..moving.len()).filter(|&which| is_still(moving[which])).collect();
    let moving: Vec<usize> = moving.into_iter().map(|at| columns[at]).collect();
    if staying.is_empty() {
        return None;
    }
    // Steps from row to row: each with its multiplicity within a stretch, then the one to the next
    // stretch.
    let each_step = |of: &mut dyn FnMut(&[u32], usize, Entries)| {
        let mut step = vec![0; moving.len()];
        let mut last: Option<Entries> = None;
        for stretch in rows.iter() {
            if let Some(last) = last {
                step.iter_mut()
                    .zip(&moving)
                    .for_each(|(step, &k)| *step = stretch.first[k].wrapping_sub(last.at(k)));
                of(&step, 1, stretch.row(0));
            }
            if stretch.rows > 1 {
                step.iter_mut().zip(&moving).for_each(|(step, &k)| *step = stretch.step[k]);
                of(&step, stretch.rows - 1, stretch.row(1));
            }
            last = Some(stretch.row(stretch.rows - 1));
        }
    };
    // The step from most rows to the next, by majority vote.
    let (mut most, mut votes) = (vec![0; moving.len()], 0);
    each_step(&mut |step, times, _| {
        if step == most {
            votes += times;
        } else if votes >= times {
            votes -= times;
        } else {
            most.copy_from_slice(step);
            votes = times - votes;
        }
    });
    let largest = count / SHORTEST;
    let mut start: Vec<u32> = staying.iter().map(|&which| rows.row(0).at(moving[which])).collect();
    let (mut lengths, mut varies) = (vec![1], false);
    each_step(&mut |step, times, row| {
        if step == most {
            *lengths.last_mut().expect("it has the first row") += times as u32;
            return;
        }
        // There cannot be more segments than this.
        let times = times.min((largest + 1).saturating_sub(lengths.len())) as u32;
        lengths.extend((0..times).map(|_| 1));
        for (&which, start) in staying.iter().zip(&mut start) {
            let (entry, step) = (row.at(moving[which]), step[which]);
            varies |= most[which] == 0 && (entry != *start || times > 1 && step != 0);
            *start = entry.wrapping_add(step.wrapping_mul(times.saturating_sub(1)));
        }
    });
    (varies && lengths.len() <= largest).then_some(lengths)
}

impl Piece {
    /// Make every segment a block; `columns` are those of the slots and the outputs in the table.
    /// Numbers are those of members, if there are any, or of the rows.
    pub(super) fn put_segments(
        &mut self,
        table: &RowTable,
        of_members: Option<MemberNumbers>,
        lengths: &[u32],
        columns: &[usize],
    ) {
        let is_number =
            |k: usize| self.slots.get(k).is_some_and(|&(_, source)| source == Source::Number);
        let mut numbers: Vec<usize> = (0..columns.len()).filter(|&k| is_number(k)).collect();
        let count = table.rows.rows();
        let members;
        let rows = match of_members {
            Some(of_members) => {
                (self.numbers, members) = (of_members.numbers, of_members.rows);
                numbers.clear();
                &members
            }
            None => {
                // Numbers slot by slot, each in the order of the rows, with room after them for the
                // last vector of a loop.
                self.numbers = Vec::with_capacity(numbers.len() * count + SEGMENT_LANES);
                for &k in &numbers {
                    let number = |row: Entries| table.numbers[row.at(columns[k]) as usize];
                    self.numbers.extend(table.rows.each().map(number));
                }
                self.numbers.extend([0.0; SEGMENT_LANES]);
                &table.rows
            }
        };
        let (mut first, mut places) = (0, Vec::with_capacity(columns.len()));
        for &length in lengths {
            places.clear();
            let row = rows.row(first);
            let next = (length > 1).then(|| rows.row(first + 1));
            for (k, &column) in columns.iter().enumerate() {
                let (start, step) = match numbers.binary_search(&k) {
                    Ok(number) => ((number * count + first) as u32, i32::from(length > 1)),
                    Err(_) => {
                        let start = row.at(column);
                        (start, next.map_or(0, |next| next.at(column).wrapping_sub(start) as i32))
                    }
                };
                // Places are below 2³¹ in any model that fits into memory.
                places.push(Places::Even { first: start, step });
            }
            self.blocks.push(length, &places);
            first += length as usize;
        }
    }
}

/// Order of outputs in which a loop adds to them: every `step`-th output in a range of places is
/// followed by the next such one. Components of a gradient are ordered by members, and a loop adds
/// to one component of many of them.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Start of the range.
    first: usize,
    step: usize,
    /// Number of outputs of each kind.
    count: usize,
}

impl Order {
    /// Order of places that all lie in `first..end`.
    fn new(Range { start: first, end }: Range<usize>, step: usize) -> Order {
        Order { first, step, count: (end - first).div_ceil(step) }
    }

    /// True if the order is that of the outputs themselves.
    fn is_plain(self) -> bool {
        self.step == 1
    }

    /// Length of an array in this order.
    pub fn len(self) -> usize {
        self.step * self.count
    }

    /// Room needed by [`Order::with`].
    pub fn room(self) -> usize {
        if self.is_plain() { 0 } else { self.len() }
    }

    /// Place of an output in this order.
    pub fn place(self, output: u32) -> u32 {
        let k = output as usize - self.first;
        (k % self.step * self.count + k / self.step) as u32
    }

    /// Call `add` with the outputs in this order.
    pub fn with(self, out: &mut [f64], room: &mut [f64], add: impl FnOnce(&mut [f64])) {
        let out = &mut out[self.first..];
        if self.is_plain() {
            return add(out);
        }
        let kinds = |k: usize| k..k + 1 + (self.count - 1) * self.step;
        for (k, column) in room.chunks_exact_mut(self.count).enumerate() {
            let end = kinds(k).end.min(out.len());
            column
                .iter_mut()
                .zip(out[k..end].iter().step_by(self.step))
                .for_each(|(to, from)| *to = *from);
        }
        add(room);
        for (k, column) in room.chunks_exact(self.count).enumerate() {
            let end = kinds(k).end.min(out.len());
            out[k..end]
                .iter_mut()
                .step_by(self.step)
                .zip(column)
                .for_each(|(to, from)| *to = *from);
        }
    }

    /// Add numbers in this order to the outputs.
    pub fn add(self, numbers: &[f64], out: &mut [f64]) {
        for (k, column) in numbers.chunks_exact(self.count).enumerate() {
            let out = out[self.first + k..].iter_mut().step_by(self.step);
            out.zip(column).for_each(|(out, number)| *out += number);
        }
    }
}

/// Loop over the segments of a piece.
pub(super) struct Segments {
    /// Places of the first segment in memory. In later segments all that moves is the same distance
    /// further on.
    pub places: SegmentPlaces,
    /// Contents of the table.
    pub table: Source,
    /// Slots that stay, in order.
    pub still: Vec<usize>,
    /// Order of the outputs in which those of the next row follow those of a row.
    pub order: Order,
    /// Numbers for [`Segments::starts`], segment after segment.
    starts: Vec<u32>,
}

/// Outline of a piece whose blocks may be segments: slots, then outputs.
struct Outline<'a> {
    piece: &'a Piece,
    slots: usize,
    width: usize,
    /// True for what moves from row to row of a block.
    moves: Vec<bool>,
    order: Order,
}

impl<'a> Outline<'a> {
    /// Outline of a piece; `None` if something does not move evenly, or not in all blocks alike.
    fn of(piece: &'a Piece) -> Option<Outline<'a>> {
        let (slots, width) = (piece.slots.len(), piece.slots.len() + piece.outputs.len());
        let mut moves: Option<Vec<bool>> = None;
        // Distance between the outputs of a row and of the next; 0 while that is unknown.
        let mut apart = 0;
        let blocks = || piece.blocks.iter();
        for block in blocks().filter(|block| block.rows > 1) {
            let mut pattern = Vec::with_capacity(width);
            for (k, place) in block.places().enumerate() {
                let Places::Even { step, .. } = place else { return None };
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
        if blocks().any(|block| block.places().any(|place| matches!(place, Places::Listed(_)))) {
            return None;
        }
        let order = Order::new(piece.written(), apart.max(1) as usize);
        Some(Outline { piece, slots, width, moves, order })
    }

    /// Place of the first row of a block.
    fn first(&self, block: &Block, k: usize) -> u32 {
        let first = block.place(k).entry(&[], 0);
        if k < self.slots { first } else { self.order.place(first) }
    }

    /// Number of the array: states, the table, outputs.
    fn array(&self, k: usize) -> usize {
        match self.piece.slots.get(k) {
            Some((_, Source::State)) => 0,
            Some(_) => 1,
            None => 2,
        }
    }

    /// Source of the table along which slots move; `None` if there are several.
    fn table(&self) -> Option<Source> {
        let moves = |k: &usize| self.moves[*k] && self.array(*k) == 1;
        let mut tables = (0..self.slots).filter(moves).map(|k| self.piece.slots[k].1);
        let Some(source) = tables.next() else { return Some(Source::Parameter) };
        tables.all(|other| other == source).then_some(source)
    }

    /// Smallest places over all blocks.
    fn bases(&self) -> Vec<u32> {
        let mut bases = vec![u32::MAX; self.width];
        for block in self.piece.blocks.iter() {
            for (k, base) in bases.iter_mut().enumerate() {
                *base = (*base).min(self.first(&block, k));
            }
        }
        bases
    }

    /// True if what moves in a block is shifted from the `bases` as the first of its array in
    /// `moving`, and a last vector of rows stays within the states.
    fn goes_along(
        &self,
        block: &Block,
        bases: &[u32],
        moving: &[Option<(usize, u32)>; 3],
        states: usize,
    ) -> bool {
        let shift = |k: usize| self.first(block, k) - bases[k];
        (0..self.width).filter(|&k| self.moves[k]).all(|k| {
            let Some((other, _)) = moving[self.array(k)] else { return false };
            let rows = (block.rows as usize).next_multiple_of(SEGMENT_LANES);
            let behind = self.first(block, k) as usize + rows;
            shift(k) == shift(other) && (self.array(k) != 0 || behind <= states)
        })
    }

    /// True if rows side by side do not add to one place.
    fn writes_apart(&self, block: &Block) -> bool {
        let rows = block.rows;
        (self.slots..self.width).filter(|&k| self.moves[k]).all(|k| {
            let start = self.first(block, k);
            let range = start..start + rows;
            let overlaps = |other: usize| {
                let from = self.first(block, other);
                if self.moves[other] {
                    from < range.end && start < from + rows
                } else {
                    range.contains(&from)
                }
            };
            !(self.slots..self.width).any(|other| other != k && overlaps(other))
        })
    }
}

impl Segments {
    /// Segments of a piece over so many states whose blocks are segments, if a loop can run over
    /// them.
    pub fn of(piece: &Piece, states: usize) -> Option<Segments> {
        let outline = Outline::of(piece)?;
        let (table, bases) = (outline.table()?, outline.bases());
        let Outline { slots, width, moves, .. } = &outline;
        let (slots, width) = (*slots, *width);
        let mut moving = [None; 3];
        for k in (0..width).filter(|&k| moves[k]) {
            moving[outline.array(k)].get_or_insert((k, bases[k]));
        }
        let blocks = || piece.blocks.iter();
        if !blocks().all(|block| {
            outline.goes_along(&block, &bases, &moving, states) && outline.writes_apart(&block)
        }) {
            return None;
        }
        let still: Vec<usize> = (0..slots).filter(|&k| !moves[k]).collect();
        let state = |k: usize| match (moves[k], outline.array(k)) {
            (true, 0) => SegmentPlace::State(bases[k]),
            (true, _) => SegmentPlace::Table(bases[k]),
            (false, _) => SegmentPlace::Still(still.partition_point(|&s| s < k) as u32),
        };
        let places = SegmentPlaces {
            states: (0..slots).map(state).collect(),
            outputs: (slots..width).map(|k| moves[k].then_some(bases[k])).collect(),
        };
        let mut starts = Vec::new();
        for block in blocks() {
            let first = |k: usize| outline.first(&block, k);
            starts.extend(moving.map(|moving| moving.map_or(0, |(k, base)| first(k) - base)));
            starts.extend(still.iter().map(|&k| block.place(k).entry(&[], 0)));
            starts.extend((slots..width).filter(|&k| !moves[k]).map(first));
        }
        Some(Segments { places, table, still, order: outline.order, starts })
    }

    /// Scratch of a loop over segments, in numbers.
    pub fn work_len(&self, piece: &Piece, rows: &dyn SegmentLoop) -> usize {
        self.still.len() + piece.outputs.len() + rows.work_len()
    }

    /// For some segments: their offsets from the first one in states, table and outputs, the
    /// entries of the slots that stay, and the places of outputs to which the sums are added.
    pub fn starts(
        &self,
        which: Range<usize>,
    ) -> impl Iterator<Item = ([usize; 3], &[u32], &[u32])> {
        let summed = self.places.outputs.iter().filter(|place| place.is_none()).count();
        let width = 3 + self.still.len() + summed;
        self.starts[which.start * width..which.end * width].chunks_exact(width).map(|starts| {
            let (shifts, rest) = starts.split_at(3);
            let (entries, sums) = rest.split_at(self.still.len());
            ([shifts[0], shifts[1], shifts[2]].map(|shift| shift as usize), entries, sums)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The segments of pairs (i, j), of which i stays: i < j below n, with some rows left out.
    fn pairs(n: u32, left_out: &[u32]) -> Vec<[u32; 2]> {
        let all = (0..n).flat_map(|i| (i + 1..n).map(move |j| [i, j]));
        (0..).zip(all).filter(|(row, _)| !left_out.contains(row)).map(|(_, row)| row).collect()
    }

    proptest! {
        #[test]
        fn segments_end_where_the_first_of_a_pair_or_the_step_changes(
            n in 5u32..24,
            left_out in prop::collection::vec(0u32..250, 0..12),
            joined: bool,
        ) {
            let list = pairs(n, &left_out);
            let mut rows = Stretches::new(2);
            for row in &list {
                // Stretches as they come, or a row each.
                if joined { rows.push(row) } else { rows.push_stretch(*row, [0, 0], 1) }
            }
            let mut expected = vec![1u32];
            for pair in list.windows(2) {
                match pair[1] == [pair[0][0], pair[0][1] + 1] {
                    true => *expected.last_mut().expect("the first row's") += 1,
                    false => expected.push(1),
                }
            }
            let slots = [(0, Source::State), (1, Source::State)];
            let found = cut(&rows, &slots, true, &[0, 1]);
            match list.len() >= 2 * SHORTEST && list.len() >= SHORTEST * expected.len() && expected.len() > 1 {
                true => prop_assert_eq!(found, Some(expected)),
                false => prop_assert_eq!(found, None),
            }
        }
    }
}
