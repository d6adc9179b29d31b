//! Summands of a formula. The formula is split at the sums in linear position, except for short
//! sums inside others: the sums over the sites of two molecules belong into the template of the
//! pair.

use crate::elaborate::expression::index_set::{IndexRange, IndexSet};
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::model::MOST_SITES;
use crate::graph::op::{Binary, Unary};
use crate::syntax::diagnostic::Diagnostic;

/// Largest number of summands of one formula.
const MOST_PIECES: usize = 10_000;

/// One summand of a formula.
pub(super) struct Summand {
    /// Index set of the sums around it.
    pub(super) set: IndexSet,
    /// Operations applied to it, outermost first.
    pub(super) wrappers: Vec<Wrapper>,
    pub(super) body: Ex,
    /// Offset of its components among those of the formula.
    pub(super) offset: usize,
}

#[derive(Clone)]
pub(super) enum Wrapper {
    Negate,
    Scale(Ex),
    Divide(Ex),
}

/// Splits `e` at sums that stand in linear position.
///
/// # Errors
/// A finding, if there are too many summands.
pub(super) fn summands(e: &Ex) -> Result<Vec<Summand>, Diagnostic> {
    let mut pieces = Vec::new();
    let set = IndexSet::default();
    split(e, Summand { set, wrappers: Vec::new(), body: e.clone(), offset: 0 }, &mut pieces)?;
    Ok(pieces)
}

/// Number of values of a short range; `None` if the range is long or its ends are not constant.
fn few(range: &IndexRange) -> Option<usize> {
    let count = (range.high.value()? - range.low.value()? + 1.0).max(0.0);
    (count <= MOST_SITES as f64).then_some(count as usize)
}

/// Number of last ranges of a sum that are unrolled if the sum stands inside others: those of two
/// sites at most.
fn unrolled_ranges(ranges: &[IndexRange]) -> usize {
    let lengths = ranges.iter().rev().map_while(few);
    let products = lengths.scan(1, |product, length| {
        *product *= length;
        Some(*product)
    });
    products.take_while(|&product| product <= MOST_SITES * MOST_SITES).count()
}

/// True if it contains a sum over rows, not unrolled. Sums with draws have rows, because draws
/// differ from row to row.
fn has_rows(e: &Ex) -> bool {
    if !e.has_sum || e.depends & expression::DRAW != 0 {
        return e.has_sum;
    }
    let mut found =
        matches!(&e.kind, Kind::Sum(set, _) if unrolled_ranges(&set.ranges) < set.ranges.len());
    e.kind.for_each_part(&mut |part| found = found || has_rows(part));
    found
}

fn split(e: &Ex, around: Summand, out: &mut Vec<Summand>) -> Result<(), Diagnostic> {
    let nested = around.set.ranges.iter().any(|range| few(range).is_none());
    let has_sum = |e: &Ex| e.has_sum && (!nested || has_rows(e));
    let with = |wrapper: Option<Wrapper>, body: &Ex| Summand {
        set: around.set.clone(),
        wrappers: around.wrappers.iter().cloned().chain(wrapper).collect(),
        body: body.clone(),
        offset: around.offset,
    };
    let moves = expression::DYNAMIC | expression::FOLLOWING;
    let linear = |factor: &Ex| factor.depends & moves == 0 && !factor.has_sum;
    let (wrapper, part) = match &e.kind {
        Kind::Sum(set, body) if has_sum(e) => {
            let (outer, body) = outer_sum(set, body, e);
            let mut piece = with(None, &body);
            piece.set = around.set.product(&outer);
            return split(&body, piece, out);
        }
        Kind::Add(terms) if has_sum(e) => {
            return terms.iter().try_for_each(|(negative, term)| {
                split(term, with(negative.then_some(Wrapper::Negate), term), out)
            });
        }
        Kind::Stack(entries) if has_sum(e) => {
            let mut offset = around.offset;
            return entries.iter().try_for_each(|entry| {
                let piece = Summand { offset, ..with(None, entry) };
                offset += entry.shape.len();
                split(entry, piece, out)
            });
        }
        Kind::Unary(Unary::Neg, a) if has_sum(e) => (Wrapper::Negate, a),
        // A product of scalars is commutative: either factor may hold the sum.
        Kind::Scale(c, a) | Kind::Binary(Binary::Mul, a, c) if has_sum(a) && linear(c) => {
            (Wrapper::Scale(c.clone()), a)
        }
        Kind::Binary(Binary::Mul, c, a) if has_sum(a) && linear(c) => {
            (Wrapper::Scale(c.clone()), a)
        }
        Kind::Divide(a, c) | Kind::Binary(Binary::Div, a, c) if has_sum(a) && linear(c) => {
            (Wrapper::Divide(c.clone()), a)
        }
        _ if out.len() == MOST_PIECES => {
            let message = format!(
                "this formula has more than {MOST_PIECES} summands, with every `let` expanded"
            );
            return Err(Diagnostic::error(message, e.span, "too many"));
        }
        _ => {
            out.push(with(None, e));
            return Ok(());
        }
    };
    split(part, with(Some(wrapper), part), out)
}

/// Index set of the rows of the sum `e` and what is summed over them: its last short ranges are
/// unrolled.
fn outer_sum(set: &IndexSet, body: &Ex, e: &Ex) -> (IndexSet, Ex) {
    let all = set.ranges.len();
    let short = match set.conditions.is_empty() && !has_rows(body) {
        true => unrolled_ranges(&set.ranges),
        false => 0,
    };
    if short == 0 || short == all {
        return (set.clone(), body.clone());
    }
    let (outer, inner) = set.ranges.split_at(all - short);
    let [outer, inner] =
        [outer, inner].map(|ranges| IndexSet { ranges: ranges.to_vec(), conditions: Vec::new() });
    (outer, CheckedExpression::new(Kind::Sum(inner, body.clone()), body.shape, e.span))
}
