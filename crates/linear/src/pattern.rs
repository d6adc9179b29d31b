//! Places of the nonzeros of a sparse matrix.

use std::ops::Range;

/// Places of the nonzeros of a sparse matrix, row by row. Rows whose columns are those of the row
/// before, all moved by the same step, take no memory of their own: so the rows of a million links
/// are three stretches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    rows: usize,
    entries: usize,
    stretches: Vec<Stretch>,
    /// Columns of the first row of each stretch.
    columns: Vec<u32>,
}

/// Rows of which each has the columns of the one before, moved by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    row: u32,
    /// First entry of the first row, and place of its columns.
    entry: u32,
    columns: u32,
    /// Step from the columns of a row to those of the next, modulo 2³².
    step: u32,
}

/// The nonzeros of a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a> {
    first: usize,
    columns: &'a [u32],
    moved: u32,
}

impl Pattern {
    /// A matrix without rows.
    pub fn new() -> Pattern {
        Pattern::default()
    }

    /// `count` full rows of this length.
    pub fn dense(count: usize, length: usize) -> Pattern {
        (0..count).map(|_| 0..length as u32).collect()
    }

    /// Add a row with nonzeros in these columns.
    ///
    /// # Panics
    /// With 2³² rows or nonzeros.
    pub fn push(&mut self, columns: impl IntoIterator<Item = u32>) {
        let number = |of: usize| u32::try_from(of).expect("fewer than 2³² rows and nonzeros");
        let (row, first) = (number(self.rows), self.columns.len());
        self.columns.extend(columns);
        let (before, these) = self.columns.split_at(first);
        let width = these.len();
        let (last, entry) = (self.stretches.last_mut(), number(self.entries));
        self.rows += 1;
        self.entries += width;
        if let Some(last) = last {
            let base = &before[last.columns as usize..];
            let mut steps = base.iter().zip(these).map(|(from, to)| to.wrapping_sub(*from));
            let step = steps.next().unwrap_or(0);
            let ahead = row - last.row;
            let goes_on = ahead == 1 || last.step.wrapping_mul(ahead) == step;
            if base.len() == width && steps.all(|other| other == step) && goes_on {
                if ahead == 1 {
                    last.step = step;
                }
                self.columns.truncate(first);
                return;
            }
        }
        self.stretches.push(Stretch { row, entry, columns: number(first), step: 0 });
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows
    }

    /// Number of nonzeros.
    pub fn nonzeros(&self) -> usize {
        self.entries
    }

    /// Row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> Row<'_> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let number = self.stretches.partition_point(|stretch| stretch.row as usize <= row) - 1;
        let stretch = self.stretches[number];
        self.start(number).ahead(row - stretch.row as usize, stretch.step)
    }

    /// All rows in their order.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            pattern: self,
            stretches: 0..self.stretches.len(),
            left: 0,
            step: 0,
            next: Row::default(),
        }
    }

    /// First row of a stretch.
    #[inline]
    fn start(&self, number: usize) -> Row<'_> {
        let stretch = self.stretches[number];
        let end =
            self.stretches.get(number + 1).map_or(self.columns.len(), |next| next.columns as usize);
        Row {
            first: stretch.entry as usize,
            columns: &self.columns[stretch.columns as usize..end],
            moved: 0,
        }
    }

    /// Number of the row behind a stretch.
    #[inline]
    fn end(&self, number: usize) -> usize {
        self.stretches.get(number + 1).map_or(self.rows, |next| next.row as usize)
    }
}

/// All rows of a pattern.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pattern: &'a Pattern,
    /// Stretches that have not begun.
    stretches: Range<usize>,
    /// Number of rows to come of the one that has, and the step between them.
    left: usize,
    step: u32,
    next: Row<'a>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        if self.left == 0 {
            let number = self.stretches.next()?;
            let stretch = self.pattern.stretches[number];
            self.left = self.pattern.end(number) - stretch.row as usize;
            (self.step, self.next) = (stretch.step, self.pattern.start(number));
        }
        let row = self.next;
        self.left -= 1;
        self.next = row.ahead(1, self.step);
        Some(row)
    }
}

impl<C: IntoIterator<Item = u32>> FromIterator<C> for Pattern {
    fn from_iter<I: IntoIterator<Item = C>>(rows: I) -> Pattern {
        let mut pattern = Pattern::new();
        rows.into_iter().for_each(|columns| pattern.push(columns));
        pattern
    }
}

impl<'a> Row<'a> {
    /// The row so many rows ahead in the same stretch.
    #[inline]
    fn ahead(self, rows: usize, step: u32) -> Row<'a> {
        let moved = self.moved.wrapping_add(step.wrapping_mul(rows as u32));
        Row { first: self.first + rows * self.columns.len(), moved, ..self }
    }

    /// Number of nonzeros.
    #[inline]
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// Their places among the nonzeros of all rows.
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.columns.len()
    }

    /// Their columns.
    #[inline]
    pub fn columns(&self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        let moved = self.moved;
        self.columns.iter().map(move |column| column.wrapping_add(moved))
    }

    /// Place and column of each.
    #[inline]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone + use<'a> {
        let (first, moved) = (self.first, self.moved);
        (self.columns.iter().enumerate())
            .map(move |(k, column)| (first + k, column.wrapping_add(moved) as usize))
    }

    /// Column and value of each, of the values of all rows.
    #[inline]
    pub fn values<'b>(
        &self,
        of_all: &'b [f64],
    ) -> impl ExactSizeIterator<Item = (u32, f64)> + Clone + use<'a, 'b> {
        self.columns().zip(of_all[self.range()].iter().copied())
    }

    /// Place of the first nonzero in `column` or beyond; the columns have to ascend.
    #[inline]
    pub fn place(&self, column: u32) -> usize {
        let columns = self.columns;
        let moved = self.moved;
        let is_full = columns.len() as u32
            == columns.last().map_or(0, |last| last.wrapping_add(moved).wrapping_add(1));
        let of = |column: u32| columns.partition_point(|other| other.wrapping_add(moved) < column);
        self.first + if is_full { columns.len().min(column as usize) } else { of(column) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn rows_are_those_that_were_pushed() {
        let mut random = Random::new(7);
        let mut draw = |below: u32| ((random.draw() + 1.0) / 2.0 * f64::from(below)) as u32;
        for _ in 0..200 {
            let mut rows: Vec<Vec<u32>> = Vec::new();
            for _ in 0..draw(6) {
                // A stretch forwards, backwards or in place, that may be empty or go on from the
                // one before.
                let (width, count, step) = (draw(4), draw(5), i64::from(draw(5)) - 2);
                let first: Vec<u32> = (0..width).map(|k| 20 + 5 * k + draw(5)).collect();
                let moved = |ahead: i64| -> Vec<u32> {
                    first.iter().map(|&column| (i64::from(column) + step * ahead) as u32).collect()
                };
                rows.extend((0..i64::from(count)).map(moved));
            }
            let pattern: Pattern = rows.iter().cloned().collect();
            assert_eq!(pattern.count(), rows.len());
            assert_eq!(pattern.nonzeros(), rows.iter().map(Vec::len).sum::<usize>());
            let mut entry = 0;
            for (i, (row, of_all)) in rows.iter().zip(pattern.rows()).enumerate() {
                for found in [pattern.row(i), of_all] {
                    assert_eq!(
                        (found.count(), found.range()),
                        (row.len(), entry..entry + row.len())
                    );
                    assert!(found.columns().eq(row.iter().copied()));
                    assert!(
                        found
                            .entries()
                            .eq((entry..).zip(row.iter().map(|column| *column as usize)))
                    );
                    for column in 0..50 {
                        let ahead = row.iter().filter(|other| **other < column).count();
                        assert_eq!(found.place(column), entry + ahead, "{column} in {row:?}");
                    }
                }
                entry += row.len();
            }
            assert_eq!(pattern.rows().count(), rows.len());
        }
    }

    #[test]
    fn rows_that_move_on_take_no_memory() {
        // Links of a chain: the anchor, the links, and their rates.
        let n = 1000u32;
        let rates = |i: u32| {
            [2 * i, 2 * i + 1, 2 * i + 2, 2 * n + 2 * i, 2 * n + 2 * i + 1, 2 * n + 2 * i + 2]
        };
        let mut pattern: Pattern = [[0, 1]].into_iter().collect();
        (0..n).for_each(|i| pattern.push(2 * i..2 * i + 4));
        (0..n).for_each(|i| pattern.push(rates(i)));
        assert_eq!((pattern.stretches.len(), pattern.columns.len()), (3, 12));
        assert_eq!(Pattern::dense(5, 3).stretches.len(), 1);
    }
}
