//! Rows of a formula: the index values of nested ranges.

use super::MOST_ROWS;
use super::classes::ClassBuilder;
use super::row_indices::RowIndices;
use crate::elaborate::expression::{CheckedRanges, Ex, Range};
use crate::syntax::diagnostic::Diagnostic;

/// Largest number of index values that the ranges of one formula may run through, including those
/// that filters leave out.
const MOST_VISITED: usize = 2 * MOST_ROWS;

/// Number of values of the innermost range from which a test for equal steps pays.
const FEWEST_AT_ONCE: usize = 4;

/// Runs through the rows of nested ranges; the first `family_depth` of them number the members.
pub(super) struct RangeLoop {
    family_depth: usize,
    /// Number of members so far.
    pub(super) member: usize,
    /// Index values of the members, `family_depth` for each.
    pub(super) members: Vec<i32>,
    /// Number of index values visited at every level: rows that a filter leaves out cost time as
    /// well.
    visited: usize,
    are_rows: bool,
}

impl RangeLoop {
    /// A loop before its first row.
    pub(super) fn new(family_depth: usize) -> RangeLoop {
        RangeLoop { family_depth, member: 0, members: Vec::new(), visited: 0, are_rows: true }
    }

    /// Runs through `loops`; adds every row to `builder` if `are_rows`.
    pub(super) fn run(
        &mut self,
        builder: &mut ClassBuilder,
        loops: &[&CheckedRanges],
        are_rows: bool,
    ) -> Result<(), Diagnostic> {
        self.are_rows = are_rows;
        let flat: Vec<&Range> = loops.iter().flat_map(|l| &l.ranges).collect();
        // A filter is decided once the indices of its own sum are set.
        let mut filters: Vec<Vec<&Ex>> = vec![Vec::new(); flat.len() + 1];
        let mut depth = 0;
        for l in loops {
            depth += l.ranges.len();
            filters[depth].extend(&l.filter);
        }
        let mut names = RowIndices::new(builder.context(), &flat);
        let mut row = Vec::new();
        self.descend(builder, &flat, &filters, &mut names, &mut row)
    }

    fn descend<'e>(
        &mut self,
        builder: &mut ClassBuilder,
        flat: &[&'e Range],
        filters: &[Vec<&'e Ex>],
        names: &mut RowIndices,
        row: &mut Vec<f64>,
    ) -> Result<(), Diagnostic> {
        let depth = row.len();
        self.visited += 1;
        if self.visited > MOST_VISITED {
            return Err(Diagnostic::error(
                format!("the ranges run through more than {MOST_VISITED} index values"),
                builder.span(),
                "too many rows",
            )
            .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
        }
        for filter in &filters[depth] {
            if names.checked(filter, row)? == 0.0 {
                return Ok(());
            }
        }
        if depth == self.family_depth {
            self.member += 1;
            self.members.extend(row.iter().map(|&i| i as i32));
        }
        if depth == flat.len() {
            if self.are_rows {
                builder.row(names, row, self.member - 1)?;
            }
        } else {
            let range = flat[depth];
            let low = names.whole(&range.low, row, "the first value of a range")?;
            let high = names.whole(&range.high, row, "the last value of a range")?;
            if high - low + 1.0 > MOST_ROWS as f64 {
                return Err(Diagnostic::error(
                    format!("the range {low}..{high} has more rows than the limit of {MOST_ROWS}"),
                    range.span,
                    "too many rows",
                )
                .help(format!("a family or sum may have at most {MOST_ROWS} rows")));
            }
            if self.run_evenly(builder, flat, filters, names, (row, low, high))? {
                return Ok(());
            }
            let mut i = low;
            while i <= high {
                row.push(i);
                self.descend(builder, flat, filters, names, row)?;
                row.pop();
                i += 1.0;
            }
        }
        Ok(())
    }

    /// Adds the rows of the innermost range at once if they advance by equal steps; returns true if
    /// it has added them.
    fn run_evenly(
        &mut self,
        builder: &mut ClassBuilder,
        flat: &[&Range],
        filters: &[Vec<&Ex>],
        names: &mut RowIndices,
        (row, low, high): (&mut Vec<f64>, f64, f64),
    ) -> Result<bool, Diagnostic> {
        let (innermost, count) =
            (row.len() + 1 == flat.len(), (high - low + 1.0).max(0.0) as usize);
        let few = count < FEWEST_AT_ONCE || self.visited + count > MOST_VISITED;
        if !self.are_rows || !innermost || few || !filters[flat.len()].is_empty() {
            return Ok(false);
        }
        // Either each row is a member of the family, or all rows belong to one member.
        let are_members = flat.len() == self.family_depth;
        let members = if are_members { (self.member, 1) } else { (self.member - 1, 0) };
        row.push(low);
        let done = builder.rows(names, row, count, members)?;
        row.pop();
        if done {
            self.visited += count;
            if are_members {
                self.member += count;
                for k in 0..count {
                    self.members.extend(row.iter().map(|&i| i as i32));
                    self.members.push((low + k as f64) as i32);
                }
            }
        }
        Ok(done)
    }
}
