//! Selection of few of many rows that loses no extremes.

use std::ops::Range;

/// A number and its row.
#[derive(Clone, Copy, Debug)]
struct Extreme {
    value: f64,
    row: usize,
}

/// Selection of the rows that hold the least and the largest number of each column in each of many
/// equal stretches, and of the first and the last row of all. Rows come one at a time, so that a
/// run may be longer than memory.
///
/// A column's curve through these rows covers the pixels that it covers through all of them, if a
/// pixel is no narrower than a stretch; and the rows are the same for all columns, so that any may
/// be drawn over any other.
#[derive(Debug)]
pub struct Extremes {
    rows: usize,
    stretches: usize,
    columns: usize,
    /// Least and largest of each column in the current stretch; `None` until it has a number.
    current: Vec<[Option<Extreme>; 2]>,
    kept: Vec<usize>,
    seen: usize,
}

impl Extremes {
    /// Selection from `rows` rows of `columns` numbers that keeps about `numbers` numbers, or all
    /// rows if they have no more.
    pub fn new(rows: usize, columns: usize, numbers: usize) -> Extremes {
        // Each stretch keeps two rows for each column, and each of these has all columns.
        let all = rows.saturating_mul(columns) <= numbers;
        let stretches = if all {
            rows
        } else {
            (numbers / (2 * columns * columns).max(1)).clamp(1, rows.max(1))
        };
        Extremes {
            rows,
            stretches,
            columns,
            current: vec![[None; 2]; columns],
            kept: Vec::new(),
            seen: 0,
        }
    }

    /// Rows of stretch `k`.
    fn stretch(&self, k: usize) -> Range<usize> {
        let at =
            |k: usize| (k as u128 * self.rows as u128 / self.stretches.max(1) as u128) as usize;
        at(k)..at(k + 1)
    }

    /// Add the next row; numbers that are not finite are ignored.
    pub fn push(&mut self, numbers: &[f64]) {
        debug_assert_eq!(numbers.len(), self.columns);
        let row = self.seen;
        self.seen += 1;
        for (extremes, &value) in
            self.current.iter_mut().zip(numbers).filter(|(_, value)| value.is_finite())
        {
            let here = Some(Extreme { value, row });
            match extremes {
                [Some(low), _] if value >= low.value => {}
                [low, _] => *low = here,
            }
            match extremes {
                [_, Some(high)] if value <= high.value => {}
                [_, high] => *high = here,
            }
        }
        let k = (row as u128 * self.stretches as u128 / self.rows.max(1) as u128) as usize;
        let ends = (k..=k + 1).any(|k| self.stretch(k).end == self.seen);
        if ends {
            self.close();
        }
    }

    /// End a stretch.
    fn close(&mut self) {
        let start = self.kept.len();
        let found = self.current.iter_mut().flat_map(std::mem::take).flatten();
        self.kept.extend(found.map(|extreme| extreme.row));
        self.kept[start..].sort_unstable();
    }

    /// Rows that are kept, ascending.
    pub fn finish(mut self) -> Vec<usize> {
        self.close();
        if let Some(last) = self.seen.checked_sub(1) {
            self.kept.extend([0, last]);
        }
        self.kept.sort_unstable();
        self.kept.dedup();
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(columns: &[Vec<f64>], numbers: usize) -> Vec<usize> {
        let rows = columns[0].len();
        let mut extremes = Extremes::new(rows, columns.len(), numbers);
        (0..rows).for_each(|row| {
            extremes.push(&columns.iter().map(|column| column[row]).collect::<Vec<_>>())
        });
        extremes.finish()
    }

    #[test]
    fn few_rows_stay_whole() {
        let column: Vec<f64> = (0..1000).map(|i| f64::from(i).sin()).collect();
        assert_eq!(kept(std::slice::from_ref(&column), 1000), (0..1000).collect::<Vec<_>>());
        // One row more than fits.
        assert!(kept(&[column], 999).len() < 1000);
        assert_eq!(kept(&[Vec::new()], 10), [0; 0]);
        assert_eq!(kept(&[vec![3.0]], 1), [0]);
    }

    #[test]
    fn no_peak_is_skipped_in_any_column() {
        let rows = 100_003;
        let mut columns: Vec<Vec<f64>> = (0..3)
            .map(|k| (0..rows).map(|i| (f64::from(i) * (0.01 + f64::from(k))).sin()).collect())
            .collect();
        for (k, at) in [(0, 7), (1, 50_001), (2, 99_998)] {
            columns[k][at] = -40.0;
            columns[k][at + 2] = 50.0;
        }
        let kept = kept(&columns, 30_000);
        assert!(kept.len() * 3 <= 30_000 + 6, "{}", kept.len());
        for (k, at) in [(0, 7), (1, 50_001), (2, 99_998)] {
            assert!(kept.contains(&at) && kept.contains(&(at + 2)), "the peaks of column {k}");
        }
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, rows as usize - 1));
        // Every stretch of the time axis keeps the range that it has.
        for (column, part) in
            columns.iter().flat_map(|column| [(column, 0..20_000), (column, 60_000..100_003)])
        {
            let range = |rows: &mut dyn Iterator<Item = usize>| {
                rows.map(|row| column[row])
                    .fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
            };
            let (all, few) = (
                range(&mut part.clone()),
                range(&mut kept.iter().copied().filter(|r| part.contains(r))),
            );
            assert!(
                (all.0 - few.0).abs() < 1e-3 && (all.1 - few.1).abs() < 1e-3,
                "{all:?} {few:?}"
            );
        }
    }

    #[test]
    fn what_is_not_finite_hides_nothing() {
        let mut column = vec![f64::NAN; 10_000];
        column[5_000] = 1.0;
        column[5_001] = f64::INFINITY;
        assert_eq!(kept(&[column], 50), [0, 5_000, 9_999]);
    }
}
