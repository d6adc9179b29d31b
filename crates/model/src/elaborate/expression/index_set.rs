//! Index sets: the index values over which a sum or a family runs.

use super::{CheckedExpression, Ex, Kind};
use crate::elaborate::shape::Shape;
use crate::syntax::span::Span;

/// A bound index; every binding in a model has its own.
pub type IndexVariable = u32;

/// A range of an index, both ends included.
#[derive(Clone, Debug)]
pub struct IndexRange {
    /// The index.
    pub index: IndexVariable,
    /// First value.
    pub low: Ex,
    /// Last value.
    pub high: Ex,
    /// Span in the text.
    pub span: Span,
}

/// Nested ranges with conditions. A single quantity has a set without ranges.
#[derive(Clone, Debug, Default)]
pub struct IndexSet {
    /// Ranges from left to right; the ends of each may use the indices before it.
    pub ranges: Vec<IndexRange>,
    /// Conditions, each with the number of indices that decide it. Index values for which one is
    /// false are left out.
    pub conditions: Vec<(usize, Ex)>,
}

impl IndexSet {
    /// The values of this set, each followed by those of `inner`, which may use its indices.
    pub fn product(&self, inner: &IndexSet) -> IndexSet {
        let mut product = self.clone();
        let outer = self.ranges.len();
        product.ranges.extend_from_slice(&inner.ranges);
        let moved = inner.conditions.iter().map(|(depth, e)| (outer + depth, e.clone()));
        product.conditions.extend(moved);
        product
    }

    /// The indices, as numbers.
    pub fn members(&self) -> Vec<Ex> {
        let index = |range: &IndexRange| {
            CheckedExpression::new(Kind::Index(range.index), Shape::Scalar, range.span)
        };
        self.ranges.iter().map(index).collect()
    }

    /// Conditions that `depth` indices decide.
    pub fn decided_at(&self, depth: usize) -> impl Iterator<Item = &Ex> {
        self.conditions.iter().filter(move |(needed, _)| *needed == depth).map(|(_, e)| e)
    }

    /// First and last value of each index of a box.
    ///
    /// # Errors
    /// The first range whose ends are no constants.
    pub fn bounds(&self) -> Result<Vec<(i64, i64)>, usize> {
        let ends = |(k, range): (usize, &IndexRange)| match (range.low.value(), range.high.value())
        {
            (Some(low), Some(high)) => Ok((low as i64, high as i64)),
            _ => Err(k),
        };
        self.ranges.iter().enumerate().map(ends).collect()
    }

    /// Visits the ends of the ranges and the conditions.
    pub fn for_each_part(&self, f: &mut dyn FnMut(&Ex)) {
        for range in &self.ranges {
            f(&range.low);
            f(&range.high);
        }
        self.conditions.iter().for_each(|(_, e)| f(e));
    }
}
