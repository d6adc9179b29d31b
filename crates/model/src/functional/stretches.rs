//! Tables of rows whose entries mostly advance by equal steps: a chain of a million links is one
//! stretch of such rows, a sum over the pairs of a thousand bodies is a thousand.

/// Rows of entries, stored as stretches in which each entry advances by its own step from row to
/// row (modulo 2³²). For each stretch the first row and the steps are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretches {
    width: usize,
    /// Number of the first row of each stretch.
    starts: Vec<u32>,
    rows: u32,
    /// Entries of the first row of each stretch, followed by the steps.
    entries: Vec<u32>,
}

/// Consecutive rows whose entries advance by equal steps.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Number of the first row.
    pub start: usize,
    /// Number of rows.
    pub rows: usize,
    /// Entries of the first row.
    pub first: &'a [u32],
    /// Step of each entry from row to row; 0 for a single row.
    pub step: &'a [u32],
}

/// Entries of a row.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    first: &'a [u32],
    step: &'a [u32],
    offset: u32,
}

impl<'a> Entries<'a> {
    /// The given entries as a row.
    pub fn of(entries: &'a [u32]) -> Entries<'a> {
        Entries { first: entries, step: entries, offset: 0 }
    }

    /// Entry `k`.
    pub fn at(&self, k: usize) -> u32 {
        self.first[k].wrapping_add(self.step[k].wrapping_mul(self.offset))
    }

    /// The last entry.
    pub fn last(&self) -> u32 {
        self.at(self.first.len() - 1)
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone + use<'a> {
        let offset = self.offset;
        self.first
            .iter()
            .zip(self.step)
            .map(move |(first, step)| first.wrapping_add(step.wrapping_mul(offset)))
    }
}

impl<'a> Stretch<'a> {
    /// The row `offset` rows after the first.
    pub fn row(&self, offset: usize) -> Entries<'a> {
        Entries { first: self.first, step: self.step, offset: offset as u32 }
    }

    /// All rows.
    pub fn each(&self) -> impl Iterator<Item = Entries<'a>> + use<'a> {
        let stretch = *self;
        (0..stretch.rows).map(move |offset| stretch.row(offset))
    }

    /// Number of the row after the last.
    pub fn end(&self) -> usize {
        self.start + self.rows
    }
}

impl Stretches {
    /// A table without rows, for rows of `width` entries.
    pub fn new(width: usize) -> Stretches {
        Stretches { width, ..Stretches::default() }
    }

    /// Number of entries of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Number of stretches.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// A stretch.
    pub fn get(&self, stretch: usize) -> Stretch<'_> {
        let start = self.starts[stretch];
        let end = self.starts.get(stretch + 1).copied().unwrap_or(self.rows);
        let (first, step) =
            self.entries[2 * self.width * stretch..][..2 * self.width].split_at(self.width);
        Stretch { start: start as usize, rows: (end - start) as usize, first, step }
    }

    /// All stretches.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Stretch<'_>> {
        (0..self.count()).map(|stretch| self.get(stretch))
    }

    /// Number of the stretch that contains a row.
    pub fn find(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start as usize <= row) - 1
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> Entries<'_> {
        let stretch = self.get(self.find(row));
        stretch.row(row - stretch.start)
    }

    /// All rows.
    pub fn each(&self) -> impl Iterator<Item = Entries<'_>> {
        self.iter().flat_map(|stretch| stretch.each())
    }

    /// Entry `k` of the rows from `first` on, as many as `entries` has room for.
    pub fn column(&self, k: usize, first: usize, entries: &mut [u32]) {
        let (mut row, mut rest) = (first, entries);
        let mut which = if rest.is_empty() { 0 } else { self.find(first) };
        while !rest.is_empty() {
            let stretch = self.get(which);
            let (these, behind) = rest.split_at_mut(rest.len().min(stretch.end() - row));
            let (first, step) = (stretch.row(row - stretch.start).at(k), stretch.step[k]);
            these
                .iter_mut()
                .zip(0u32..)
                .for_each(|(entry, n)| *entry = first.wrapping_add(n.wrapping_mul(step)));
            (row, rest, which) = (row + these.len(), behind, which + 1);
        }
    }

    /// The same rows with `last` for the last entry of each.
    pub fn with_last(mut self, last: u32) -> Stretches {
        for stretch in self.entries.chunks_exact_mut(2 * self.width) {
            (stretch[self.width - 1], stretch[2 * self.width - 1]) = (last, 0);
        }
        self
    }

    /// The same rows with entry `k` less `by` for the last entry of each.
    pub fn with_last_of(mut self, k: usize, by: u32) -> Stretches {
        for stretch in self.entries.chunks_exact_mut(2 * self.width) {
            let (first, step) = stretch.split_at_mut(self.width);
            (first[self.width - 1], step[self.width - 1]) = (first[k].wrapping_sub(by), step[k]);
        }
        self
    }

    /// Adds a row. Stretches are as long as possible, each from the end of the one before.
    pub fn push(&mut self, row: &[u32]) {
        debug_assert_eq!(row.len(), self.width);
        if let Some(&start) = self.starts.last() {
            let (behind, at) = (self.rows - start, self.entries.len() - 2 * self.width);
            let (first, step) = self.entries[at..].split_at_mut(self.width);
            if behind == 1 {
                step.iter_mut()
                    .zip(row)
                    .zip(&*first)
                    .for_each(|((step, row), first)| *step = row.wrapping_sub(*first));
                self.rows += 1;
                return;
            }
            let follows = |((&first, &step), &row): ((&u32, &u32), &u32)| {
                row == first.wrapping_add(step.wrapping_mul(behind))
            };
            if first.iter().zip(&*step).zip(row).all(follows) {
                self.rows += 1;
                return;
            }
        }
        self.starts.push(self.rows);
        self.entries.extend_from_slice(row);
        self.entries.resize(self.entries.len() + self.width, 0);
        self.rows += 1;
    }

    /// Adds `rows` rows, each by `step` from the one before; equal to [`Stretches::push`] of one
    /// after the other.
    pub fn push_rows(&mut self, mut row: Vec<u32>, step: &[u32], rows: usize) {
        for rest in (0..rows).rev() {
            self.push(&row);
            let last = self.get(self.count() - 1);
            if last.rows > 1 && last.step == step {
                self.rows += rest as u32;
                return;
            }
            row.iter_mut().zip(step).for_each(|(entry, step)| *entry = entry.wrapping_add(*step));
        }
    }

    /// Adds a stretch of `rows` rows with its steps; it is not joined to the one before.
    pub fn push_stretch(
        &mut self,
        first: impl IntoIterator<Item = u32>,
        step: impl IntoIterator<Item = u32>,
        rows: usize,
    ) {
        if rows > 0 {
            self.starts.push(self.rows);
            self.entries.extend(first);
            self.entries.extend(step);
            if rows == 1 {
                let end = self.entries.len();
                self.entries[end - self.width..].fill(0);
            }
            debug_assert_eq!(self.entries.len(), 2 * self.width * self.count());
            self.rows += rows as u32;
        }
    }

    /// The same rows with `by` added to entry `k` of each.
    pub fn moved(mut self, k: usize, by: u32) -> Stretches {
        let width = self.width;
        self.entries
            .iter_mut()
            .skip(k)
            .step_by(2 * width)
            .for_each(|entry| *entry = entry.wrapping_add(by));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_added_at_once(list in prop::collection::vec((0u32..3, 0u32..3, 0u32..3, 0usize..5), 1..8)) {
            let (mut at_once, mut one_by_one) = (Stretches::new(2), Stretches::new(2));
            for (a, b, step, rows) in list {
                at_once.push_rows(vec![a, b], &[step, 1], rows);
                (0..rows as u32).for_each(|k| one_by_one.push(&[a + k * step, b + k]));
            }
            prop_assert_eq!(at_once, one_by_one);
        }
    }

    #[test]
    fn rows_come_out_as_they_went_in() {
        let list = [[5, 1], [4, 1], [3, 1], [2, 1], [7, 7], [9, 7], [11, 7], [0, u32::MAX], [3, 3]];
        let mut table = Stretches::new(2);
        list.iter().for_each(|row| table.push(row));
        assert_eq!((table.rows(), table.count()), (list.len(), 3));
        table.push_stretch([10, 20], [u32::MAX, 0], 3);
        table.push_stretch([8, 20], [0, 0], 0);
        table.push_stretch([7, 20], [5, 5], 1);
        table.push(&[6, 20]);
        let expected: Vec<Vec<u32>> = list
            .iter()
            .copied()
            .chain([[10, 20], [9, 20], [8, 20], [7, 20], [6, 20]])
            .map(Vec::from)
            .collect();
        let rows: Vec<Vec<u32>> = table.each().map(|row| row.iter().collect()).collect();
        assert_eq!(
            (rows, table.count()),
            (expected.clone(), 5),
            "what is a stretch stays one, and may go on"
        );
        for first in 0..expected.len() {
            let mut column = vec![0; expected.len() - first];
            table.column(1, first, &mut column);
            assert!(column.iter().zip(&expected[first..]).all(|(entry, row)| *entry == row[1]));
            assert_eq!([table.row(first).at(0), table.row(first).last()], expected[first][..]);
        }
        assert!(
            table
                .clone()
                .with_last(7)
                .each()
                .zip(&expected)
                .all(|(row, was)| row.iter().eq([was[0], 7]))
        );
        let moved = table.moved(1, 100);
        assert!(
            moved
                .each()
                .zip(&expected)
                .all(|(row, was)| row.iter().eq([was[0], was[1].wrapping_add(100)]))
        );
    }
}
