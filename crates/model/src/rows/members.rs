//! Numbers of the members of sums over pairs. Masses from a table would be a number for every pair,
//! and as many to read in every evaluation. But a mass follows from its body: then one number is
//! kept for every body, and rows read it as they read the body's state.

use super::RowTable;
use crate::functional::{Entries, Source, Stretches};
use crate::graph::interpret::SEGMENT_LANES;

/// Least average number of rows that read the number of a member.
const SHORTEST: usize = 6;

/// Rows whose slots for numbers read those of members.
pub(super) struct MemberNumbers {
    /// The rows of the table, with the places of the numbers of members.
    pub rows: Stretches,
    /// The numbers, slot by slot, with room after them for the last vector of a loop.
    pub numbers: Vec<f64>,
}

impl MemberNumbers {
    /// Numbers of the members for these of a table's slots; `None` if there are none, or not all
    /// numbers follow from an entry of the state, or few rows read each.
    pub fn of(table: &RowTable, slots: &[(u32, Source)]) -> Option<MemberNumbers> {
        let of_source = |wanted: Source| {
            let slots = slots.iter().filter(move |&&(_, source)| source == wanted);
            slots.map(|&(slot, _)| slot as usize)
        };
        let (mut numbers, mut columns) = (Vec::new(), Vec::new());
        for slot in of_source(Source::Number) {
            let column = of_source(Source::State)
                .find_map(|of| Column::new(&table.rows, of)?.numbers(table, slot))?;
            columns.push((slot, numbers.len() as u32, column.0));
            numbers.extend(column.1);
        }
        if columns.is_empty() {
            return None;
        }
        numbers.extend([0.0; SEGMENT_LANES]);
        let mut rows = Stretches::new(table.rows.width());
        for stretch in table.rows.iter() {
            let [mut first, mut second] =
                [0, 1].map(|offset| stretch.row(offset).iter().collect::<Vec<u32>>());
            for &(slot, start, column) in &columns {
                for row in [&mut first, &mut second] {
                    row[slot] = start.wrapping_add(column.member(row[column.of]));
                }
            }
            let step = second.iter().zip(&first).map(|(second, first)| second.wrapping_sub(*first));
            rows.push_rows(first.clone(), &step.collect::<Vec<u32>>(), stretch.rows);
        }
        Some(MemberNumbers { rows, numbers })
    }
}

/// Column of entries of the state that tell members apart.
#[derive(Clone, Copy)]
struct Column {
    /// Its number in the table.
    of: usize,
    /// Smallest entry, and the greatest common divisor of the distances from it.
    smallest: u32,
    apart: u32,
    /// Number of members, some of which may have no rows.
    count: usize,
}

impl Column {
    /// Column of a table; `None` if its members have few rows each.
    fn new(rows: &Stretches, of: usize) -> Option<Column> {
        let ends =
            |k: usize| rows.iter().map(move |s| s.row(if k == 0 { 0 } else { s.rows - 1 }).at(of));
        let smallest = ends(0).chain(ends(1)).min()?;
        let largest = ends(0).chain(ends(1)).max()?;
        let distances = rows.iter().map(|stretch| {
            let step = if stretch.rows > 1 { (stretch.step[of] as i32).unsigned_abs() } else { 0 };
            divisor(stretch.first[of] - smallest, step)
        });
        let apart = distances.fold(0, divisor).max(1);
        let count = ((largest - smallest) / apart) as usize + 1;
        (count * SHORTEST <= rows.rows()).then_some(Column { of, smallest, apart, count })
    }

    /// Member of an entry.
    fn member(self, entry: u32) -> u32 {
        // An entry beyond a stretch may be any.
        entry.wrapping_sub(self.smallest) / self.apart
    }

    /// The column with the number of each member that a slot reads; `None` if a member has several.
    fn numbers(self, table: &RowTable, slot: usize) -> Option<(Column, Vec<f64>)> {
        let mut numbers: Vec<Option<f64>> = vec![None; self.count];
        let mut put = |row: Entries| {
            let number = table.numbers[row.at(slot) as usize];
            let known = numbers[self.member(row.at(self.of)) as usize].get_or_insert(number);
            known.to_bits() == number.to_bits()
        };
        let follows = table.rows.each().all(&mut put);
        follows.then(|| (self, numbers.into_iter().map(|number| number.unwrap_or(0.0)).collect()))
    }
}

/// Greatest common divisor; that of 0 and any number is this number.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: [Source; 4] = [Source::State, Source::State, Source::Number, Source::Number];

    /// Pairs i < j of n bodies: entries of both, three apart, and two numbers of each pair.
    fn pairs(n: u32, number: impl Fn(u32, u32) -> [f64; 2]) -> (Stretches, Vec<f64>) {
        let (mut rows, mut numbers) = (Stretches::new(4), Vec::new());
        for (i, j) in (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))) {
            let at = numbers.len() as u32;
            rows.push(&[7 + 3 * i, 100 + 3 * j, at, at + 1]);
            numbers.extend(number(i, j));
        }
        (rows, numbers)
    }

    fn mass(i: u32) -> f64 {
        1.0 + f64::from(i * i % 7)
    }

    #[test]
    fn rows_read_the_same_numbers() {
        let (rows, numbers) = pairs(30, |i, j| [mass(i), -mass(j)]);
        let table = RowTable { slots: &SLOTS, rows, numbers: &numbers };
        let slots: Vec<(u32, Source)> = (0..).zip(SLOTS).collect();
        let found = MemberNumbers::of(&table, &slots).unwrap();
        // One for each first body, one for each second, and room for a vector.
        assert_eq!(found.numbers.len(), 29 + 29 + SEGMENT_LANES);
        assert_eq!(found.rows.rows(), table.rows.rows());
        for (row, before) in found.rows.each().zip(table.rows.each()) {
            assert_eq!([row.at(0), row.at(1)], [before.at(0), before.at(1)]);
            for slot in [2, 3] {
                let number = found.numbers[row.at(slot) as usize];
                assert_eq!(number, numbers[before.at(slot) as usize]);
            }
        }
        // The partners of one body are a stretch, or its first row is joined to the one before.
        assert!(found.rows.count() <= 2 * 30, "{}", found.rows.count());
    }

    #[test]
    fn numbers_of_pairs_stay() {
        let slots: Vec<(u32, Source)> = (0..).zip(SLOTS).collect();
        let of = |n: u32, number: &dyn Fn(u32, u32) -> [f64; 2]| {
            let (rows, numbers) = pairs(n, number);
            MemberNumbers::of(&RowTable { slots: &SLOTS, rows, numbers: &numbers }, &slots)
                .is_some()
        };
        assert!(of(30, &|i, j| [mass(j), mass(i)]));
        assert!(!of(30, &|i, j| [mass(i), mass(i) * mass(j)]), "a product is one of the pair");
        assert!(!of(8, &|i, j| [mass(i), mass(j)]), "few rows read each");
    }
}
