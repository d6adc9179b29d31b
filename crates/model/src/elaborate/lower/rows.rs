//! Rows of a formula: the index values of nested ranges.

use super::MOST_ROWS;
use super::classes::ClassBuilder;
use super::row_indices::RowIndices;
use crate::elaborate::expression::index_set::IndexSet;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Largest number of index values that the ranges of one formula may run through, including those
/// that filters leave out.
const MOST_VISITED: usize = 2 * MOST_ROWS;

/// Number of values of the innermost range from which a test for equal steps pays.
const FEWEST_AT_ONCE: usize = 4;

/// Runs through the rows of an index set; the first `family_depth` of its indices number the
/// members.
pub(super) struct RangeLoop {
    family_depth: usize,
    /// True if every row is added to the builder.
    are_rows: bool,
    /// Number of members so far.
    pub(super) member: usize,
    /// Index values of the members, `family_depth` for each.
    pub(super) members: Vec<i32>,
    /// Number of index values visited at every level: rows that a condition leaves out cost time
    /// as well.
    visited: usize,
}

impl RangeLoop {
    /// A loop before its first row.
    pub(super) fn new(family_depth: usize, are_rows: bool) -> RangeLoop {
        RangeLoop { family_depth, are_rows, member: 0, members: Vec::new(), visited: 0 }
    }

    /// Runs through `set` and adds its rows to `builder`.
    pub(super) fn run(
        &mut self,
        builder: &mut ClassBuilder,
        set: &IndexSet,
    ) -> Result<(), Diagnostic> {
        let mut names = RowIndices::new(builder.context, set);
        self.descend(builder, set, &mut names, &mut Vec::new())
    }

    fn descend(
        &mut self,
        builder: &mut ClassBuilder,
        set: &IndexSet,
        names: &mut RowIndices,
        row: &mut Vec<f64>,
    ) -> Result<(), Diagnostic> {
        let depth = row.len();
        self.visited += 1;
        let too_many = |message: String, span: Span| {
            Diagnostic::error(message, span, "too many rows")
                .help(format!("a family or sum may have at most {MOST_ROWS} rows"))
        };
        if self.visited > MOST_VISITED {
            let message = format!("the ranges run through more than {MOST_VISITED} index values");
            return Err(too_many(message, builder.span()));
        }
        for condition in set.decided_at(depth) {
            if names.checked(condition, row)? == 0.0 {
                return Ok(());
            }
        }
        if depth == self.family_depth {
            self.member += 1;
            self.members.extend(row.iter().map(|&i| i as i32));
        }
        let Some(range) = set.ranges.get(depth) else {
            return if self.are_rows { builder.row(names, row, self.member - 1) } else { Ok(()) };
        };
        let [low, high] = names.ends(range, row)?;
        if high - low + 1.0 > MOST_ROWS as f64 {
            let message =
                format!("the range {low}..{high} has more rows than the limit of {MOST_ROWS}");
            return Err(too_many(message, range.span));
        }
        if self.run_evenly(builder, set, names, (row, low, high))? {
            return Ok(());
        }
        let mut i = low;
        while i <= high {
            row.push(i);
            self.descend(builder, set, names, row)?;
            row.pop();
            i += 1.0;
        }
        Ok(())
    }

    /// Adds the rows of the innermost range at once if they advance by equal steps; returns true if
    /// it has added them.
    fn run_evenly(
        &mut self,
        builder: &mut ClassBuilder,
        set: &IndexSet,
        names: &mut RowIndices,
        (row, low, high): (&mut Vec<f64>, f64, f64),
    ) -> Result<bool, Diagnostic> {
        let all = set.ranges.len();
        let (innermost, count) = (row.len() + 1 == all, (high - low + 1.0).max(0.0) as usize);
        let few = count < FEWEST_AT_ONCE || self.visited + count > MOST_VISITED;
        if !self.are_rows || !innermost || few || set.decided_at(all).next().is_some() {
            return Ok(false);
        }
        // Either each row is a member of the family, or all rows belong to one member.
        let are_members = all == self.family_depth;
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
