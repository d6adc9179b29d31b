//! Summands of a formula: it is split at the sums that stand in linear position.

use crate::elaborate::expression::{self, Ex, Kind, Ranges};
use crate::graph::op::{Binary, Unary};
use crate::syntax::diagnostic::Diagnostic;

/// Summands of one formula that stand by themselves, at most.
const MOST_PIECES: usize = 10_000;

/// One summand of a formula.
pub(super) struct Piece {
    /// The sums around it, outermost first.
    pub(super) ranges: Vec<Ranges>,
    /// Operations on it on the way out, outermost first.
    pub(super) wrappers: Vec<Wrapper>,
    pub(super) body: Ex,
    /// Where its components go among the formula's.
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
pub(super) fn summands(e: &Ex) -> Result<Vec<Piece>, Diagnostic> {
    let mut pieces = Vec::new();
    split(e, Piece { ranges: Vec::new(), wrappers: Vec::new(), body: e.clone(), offset: 0 }, &mut pieces)?;
    Ok(pieces)
}

fn split(e: &Ex, around: Piece, out: &mut Vec<Piece>) -> Result<(), Diagnostic> {
    let with = |wrapper: Option<Wrapper>, body: &Ex| Piece {
        ranges: around.ranges.clone(),
        wrappers: around.wrappers.iter().cloned().chain(wrapper).collect(),
        body: body.clone(),
        offset: around.offset,
    };
    let moves = expression::DYNAMIC | expression::MULTIPLIER;
    let linear = |factor: &Ex| factor.depends & moves == 0 && !factor.has_sum;
    match &e.kind {
        Kind::Sum(ranges, body) => {
            let mut piece = with(None, body);
            piece.ranges.push(ranges.clone());
            split(body, piece, out)
        }
        Kind::Add(terms) if e.has_sum => {
            for (negative, term) in terms {
                split(term, with(negative.then_some(Wrapper::Negate), term), out)?;
            }
            Ok(())
        }
        Kind::Unary(Unary::Neg, a) if e.has_sum => split(a, with(Some(Wrapper::Negate), a), out),
        Kind::Scale(c, a) if a.has_sum && linear(c) => split(a, with(Some(Wrapper::Scale(c.clone())), a), out),
        Kind::Divide(a, c) if a.has_sum && linear(c) => split(a, with(Some(Wrapper::Divide(c.clone())), a), out),
        // A product of scalars is commutative: either factor may hold the sum.
        Kind::Binary(Binary::Mul, a, c) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Mul, c, a) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Scale(c.clone())), a), out)
        }
        Kind::Binary(Binary::Div, a, c) if a.has_sum && linear(c) => {
            split(a, with(Some(Wrapper::Divide(c.clone())), a), out)
        }
        Kind::Stack(entries) if e.has_sum => {
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
            format!("this formula has more than {MOST_PIECES} summands, with every `let` written out"),
            e.span,
            "too many",
        )),
        _ => {
            out.push(with(None, e));
            Ok(())
        }
    }
}
