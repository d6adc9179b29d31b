//! Tables of the rows of a template, stretch by stretch: the places that each row reads, and those
//! to which it adds.

use crate::functional::{Entries, Source, Stretch, Stretches, Term};
use rustc_hash::FxHashMap;

/// Rows of a template, with the places to which they add.
pub(crate) struct RowTable<'a> {
    /// Sources of the slots.
    pub slots: &'a [Source],
    /// For each row the places that the slots read, followed by those to which the outputs are
    /// added.
    pub rows: Stretches,
    /// All numbers, indexed by the entries of slots for numbers.
    pub numbers: &'a [f64],
}

impl RowTable<'_> {
    /// Number that a slot for numbers reads in the first row.
    pub fn number(&self, slot: usize) -> f64 {
        self.numbers[self.rows.get(0).first[slot] as usize]
    }

    /// True if a slot for parameters or numbers reads the same in all rows; false for slots for the
    /// state.
    pub fn is_same(&self, slot: usize) -> bool {
        let first = self.rows.get(0).first[slot];
        let stays = |stretch: &Stretch| stretch.rows == 1 || stretch.step[slot] == 0;
        match self.slots[slot] {
            Source::State => false,
            Source::Parameter => {
                self.rows.iter().all(|stretch| stays(&stretch) && stretch.first[slot] == first)
            }
            Source::Number => {
                let first = self.numbers[first as usize].to_bits();
                let is_first =
                    |row: Entries| self.numbers[row.at(slot) as usize].to_bits() == first;
                self.rows.iter().all(|stretch| {
                    let checked = if stays(&stretch) { 1 } else { stretch.rows };
                    stretch.each().take(checked).all(is_first)
                })
            }
        }
    }
}

/// Some rows of a term, with the places of `outputs` after those that they read. If `is_even`, the
/// places in a stretch move on by equal steps.
pub(super) fn placed<'a>(
    term: &'a Term,
    rows: &Stretches,
    outputs: usize,
    is_even: impl Fn(&Stretch) -> bool,
    place: impl Fn(Entries, usize) -> u32,
) -> RowTable<'a> {
    let width = term.slots.len();
    let mut table = Stretches::new(width + outputs);
    let places = |row: Entries| -> Vec<u32> { (0..outputs).map(|k| place(row, k)).collect() };
    let mut entries = Vec::new();
    for stretch in rows.iter() {
        if stretch.rows > 1 && is_even(&stretch) {
            let [first, second] = [0, 1].map(|offset| places(stretch.row(offset)));
            let step = second.iter().zip(&first).map(|(second, first)| second.wrapping_sub(*first));
            table.push_stretch(
                stretch.first[..width].iter().chain(&first).copied(),
                stretch.step[..width].iter().copied().chain(step),
                stretch.rows,
            );
            continue;
        }
        for row in stretch.each() {
            entries.clear();
            entries.extend(row.iter().take(width));
            entries.extend((0..outputs).map(|k| place(row, k)));
            table.push(&entries);
        }
    }
    RowTable { slots: &term.slots, rows: table, numbers: &term.numbers }
}

/// Rows collected by a key: each key once, in the order of the rows. If `is_monotone`, all rows of
/// a stretch have one key if its first and its last have the same.
pub(super) fn alike(
    rows: &Stretches,
    is_monotone: impl Fn(&Stretch) -> bool,
    key_of: impl Fn(Entries, &mut Vec<bool>),
) -> Vec<(Vec<bool>, Stretches)> {
    let mut groups: Vec<(Vec<bool>, Stretches)> = Vec::new();
    let mut known: FxHashMap<Vec<bool>, usize> = FxHashMap::default();
    let put = |key: &mut Vec<bool>, row: Entries| {
        key.clear();
        key_of(row, key);
    };
    let (mut key, mut other, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for stretch in rows.iter() {
        put(&mut key, stretch.row(0));
        put(&mut other, stretch.row(stretch.rows - 1));
        let is_one = is_monotone(&stretch) && key == other;
        let mut first = 0;
        while first < stretch.rows {
            let differs = |row: &usize| {
                put(&mut other, stretch.row(*row));
                other != key
            };
            let end = if is_one { None } else { (first + 1..stretch.rows).find(differs) };
            let end = end.unwrap_or(stretch.rows);
            let group = known.get(&key).copied().unwrap_or_else(|| {
                known.insert(key.clone(), groups.len());
                groups.push((key.clone(), Stretches::new(rows.width())));
                groups.len() - 1
            });
            let from = stretch.row(first);
            if end - first == 1 {
                entries.clear();
                entries.extend(from.iter());
                groups[group].1.push(&entries);
            } else {
                groups[group].1.push_stretch(
                    from.iter(),
                    stretch.step.iter().copied(),
                    end - first,
                );
            }
            first = end;
            std::mem::swap(&mut key, &mut other);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use proptest::prelude::*;

    proptest! {
        /// Compare with one row after the other: rows below and from 20 on, with places that are
        /// even or not.
        #[test]
        fn rows_are_collected_and_placed(
            list in prop::collection::vec((0u32..40, 0u32..40, 0u32..3, 0u32..3, 1usize..9), 1..6),
        ) {
            let mut table = Stretches::new(3);
            for (number, (a, b, step_a, step_b, rows)) in (0..).zip(list) {
                table.push_stretch([a, b, number], [step_a, step_b, 0], rows);
            }
            let key = |row: Entries| vec![row.at(0) < 20, row.at(1) < 20];
            let place = |row: Entries, k: usize| (row.at(k) + row.last()).pow(2 - k as u32);
            let mut groups: Vec<(Vec<bool>, Vec<Vec<u32>>)> = Vec::new();
            for row in table.each() {
                if !groups.iter().any(|(of, _)| *of == key(row)) {
                    groups.push((key(row), Vec::new()));
                }
                let (_, rows) = groups.iter_mut().find(|(of, _)| *of == key(row)).expect("it is there");
                rows.push(vec![row.at(0), row.at(1), place(row, 0), place(row, 1)]);
            }
            let slots = vec![Source::State; 2];
            let term =
                Term { graph: Graph::new(), roots: vec![], slots, table: table.clone(), numbers: vec![], spans: Default::default(), pairs: None };
            for by_stretches in [true, false] {
                let collected = alike(&table, |_| by_stretches, |row, to| to.extend(key(row)));
                prop_assert_eq!(collected.len(), groups.len());
                for ((of, rows), (expected_of, expected)) in collected.iter().zip(&groups) {
                    prop_assert_eq!(of, expected_of);
                    // The places of squares are even if nothing moves.
                    let is_even = |stretch: &Stretch| by_stretches && stretch.step[0] == 0;
                    let placed = placed(&term, rows, 2, is_even, place);
                    let found: Vec<Vec<u32>> = placed.rows.each().map(|row| row.iter().collect()).collect();
                    prop_assert_eq!(&found, expected);
                }
            }
        }
    }
}
