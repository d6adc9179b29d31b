//! Summands of a formula. The formula is split at the sums in linear position, except for short
//! sums inside others: the sums over the sites of two molecules belong into the template of the
//! pair.

use crate::elaborate::expression::{self, CheckedExpression, CheckedRanges, Ex, Kind, Range};
use crate::elaborate::model::MOST_SITES;
use crate::graph::op::{Binary, Unary};
use crate::syntax::diagnostic::Diagnostic;

/// Largest number of summands of one formula.
const MOST_PIECES: usize = 10_000;

/// One summand of a formula.
pub(super) struct Summand {
    /// Sums around it, outermost first.
    pub(super) ranges: Vec<CheckedRanges>,
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
    split(
        e,
        Summand { ranges: Vec::new(), wrappers: Vec::new(), body: e.clone(), offset: 0 },
        &mut pieces,
    )?;
    Ok(pieces)
}

/// Number of values of a short range; `None` if the range is long or its ends are not constant.
fn few(range: &Range) -> Option<usize> {
    let count = (range.high.value()? - range.low.value()? + 1.0).max(0.0);
    (count <= MOST_SITES as f64).then_some(count as usize)
}

/// Number of last ranges of a sum that are unrolled if the sum stands inside others: those of two
/// sites at most.
fn unrolled_ranges(ranges: &CheckedRanges) -> usize {
    let lengths = ranges.ranges.iter().rev().map_while(few);
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
        matches!(&e.kind, Kind::Sum(ranges, _) if unrolled_ranges(ranges) < ranges.ranges.len());
    e.kind.for_each_part(&mut |part| found = found || has_rows(part));
    found
}

fn split(e: &Ex, around: Summand, out: &mut Vec<Summand>) -> Result<(), Diagnostic> {
    let nested =
        around.ranges.iter().flat_map(|ranges| &ranges.ranges).any(|range| few(range).is_none());
    let has_sum = |e: &Ex| e.has_sum && (!nested || has_rows(e));
    let with = |wrapper: Option<Wrapper>, body: &Ex| Summand {
        ranges: around.ranges.clone(),
        wrappers: around.wrappers.iter().cloned().chain(wrapper).collect(),
        body: body.clone(),
        offset: around.offset,
    };
    let moves = expression::DYNAMIC | expression::MULTIPLIER;
    let linear = |factor: &Ex| factor.depends & moves == 0 && !factor.has_sum;
    match &e.kind {
        Kind::Sum(ranges, body) if has_sum(e) => {
            let short =
                if ranges.filter.is_some() || has_rows(body) { 0 } else { unrolled_ranges(ranges) };
            let outer = Some(ranges.ranges.len() - short)
                .filter(|&outer| outer > 0)
                .unwrap_or(ranges.ranges.len());
            let (outer, inner) = ranges.ranges.split_at(outer);
            let body = match inner {
                [] => body.clone(),
                _ => {
                    let inner = CheckedRanges { ranges: inner.to_vec(), filter: None };
                    CheckedExpression::new(Kind::Sum(inner, body.clone()), body.shape, e.span)
                }
            };
            let mut piece = with(None, &body);
            piece
                .ranges
                .push(CheckedRanges { ranges: outer.to_vec(), filter: ranges.filter.clone() });
            split(&body, piece, out)
        }
        Kind::Add(terms) if has_sum(e) => {
            for (negative, term) in terms {
                split(term, with(negative.then_some(Wrapper::Negate), term), out)?;
            }
            Ok(())
        }
        Kind::Unary(Unary::Neg, a) if has_sum(e) => split(a, with(Some(Wrapper::Negate), a), out),
        Kind::Scale(c, a) if has_sum(a) && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Divide(a, c) if has_sum(a) && linear(c) => {
            split(a, with(Some(Wrapper::Divide(c.clone())), a), out)
        }
        // A product of scalars is commutative: either factor may hold the sum.
        Kind::Binary(Binary::Mul, a, c) if has_sum(a) && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Mul, c, a) if has_sum(a) && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Div, a, c) if has_sum(a) && linear(c) => {
            split(a, with(Some(Wrapper::Divide(c.clone())), a), out)
        }
        Kind::Stack(entries) if has_sum(e) => {
            let mut offset = around.offset;
            for entry in entries {
                let mut piece = with(None, entry);
                piece.offset = offset;
                offset += entry.shape.len();
                split(entry, piece, out)?;
            }
            Ok(())
        }
        _ if out.len() == MOST_PIECES => Err(Diagnostic::error(
            format!("this formula has more than {MOST_PIECES} summands, with every `let` expanded"),
            e.span,
            "too many",
        )),
        _ => {
            out.push(with(None, e));
            Ok(())
        }
    }
}
