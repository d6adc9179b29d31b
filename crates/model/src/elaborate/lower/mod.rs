//! Checked expressions to term templates.
//!
//! A formula is split at its outermost sums; each summand becomes a template whose slots are the variables
//! it touches, and the ranges of the sums become rows. Whatever depends on a row's indices in a way that
//! changes the *structure* (an `if` on indices, the length of an inner sum, a component picked by an index)
//! is a *decision*; rows that decide alike share a template.

mod arithmetic;
mod classes;
mod near;
mod row_indices;
mod rows;
mod slots;
mod summands;
mod template;

use super::reach;
use crate::elaborate::expression::{Draw, Ex, Ranges};
use crate::elaborate::model::{Family, Quantity, Table};
use crate::functional::{Functional, Term};
use crate::graph::{Graph, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use classes::Builder;
use near::near;
use rows::RowLoop;
use summands::summands;

/// Rows of all the terms of one formula, at most.
pub const MOST_ROWS: usize = 20_000_000;
/// Largest size or index: beyond, doubles no longer count in ones.
pub const LARGEST_INDEX: f64 = 9.0e15;
/// Pairs up to which all of a sum over those that are near each other are rows, each computed with its condition: where
/// few are near, and where many of them are, in a periodic box. By lists a pair takes some eight times as long as by rows;
/// but a row takes its time and memory when the model is made.
const MOST_PAIRS_IN_ROWS: [usize; 2] = [60_000, 1_000_000];
/// Which part of all pairs is many.
const MANY: f64 = 0.125;
/// Nodes of one template, at most (a sum inside a nonlinear function is unrolled in its template).
pub const LARGEST_TEMPLATE: usize = 1_000_000;
/// Nodes of all the templates of one formula, at most.
const LARGEST_TEMPLATES: usize = 4_000_000;
/// Numbers in a state, a parameter list, the outputs of a formula or its row table, at most: a few gigabytes.
pub const MOST_NUMBERS: usize = 500_000_000;

/// What lowering needs to know of the model around an expression.
pub struct Context<'a> {
    /// Families of the variables and the first state component of each.
    pub variables: Vec<(&'a Family, usize)>,
    /// Families of the parameters and the first slot of each.
    pub parameters: Vec<(&'a Family, usize)>,
    /// The parameters' values, once they are known; of an ensemble those of the first trajectory.
    pub parameter_values: Vec<f64>,
    /// The constraints and the place of the first multiplier of each, for observables.
    pub multipliers: Vec<(&'a Quantity, usize)>,
    /// The tables.
    pub tables: &'a [Table],
    /// Names of the index variables, for messages.
    pub index_names: &'a [String],
}

/// A lowered formula and the index values of its family's members.
pub struct Lowered {
    /// The formula.
    pub functional: Functional,
    /// Index values, `stride` for each member.
    pub members: Vec<i32>,
    /// Number of members (1 where there is no family).
    pub count: usize,
    /// For a formula without sums and with one template: the roots of that template.
    pub symmetric_hint: Option<(Graph, Vec<Node>)>,
    /// Sums over pairs that are near each other, whether or not lists are made for them, with their places.
    pub cutoffs: Vec<(Term, Span)>,
}

/// What a formula is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It moves the state, or is recorded: what it sums over pairs that are near each other may be found in lists.
    Motion,
    /// An integral, whose derivatives are matrices: a family of such sums is none that lists are for.
    Integral,
    /// Anything else.
    Other,
}

/// Whether all pairs of a sum over those that are near each other are rows.
fn is_of_rows(term: &Term, context: &Context) -> bool {
    let numbers = reach::of(term).map(|reach| reach.evaluate(0.0, &[], &context.parameter_values));
    let many = numbers.and_then(|numbers| reach::share(&numbers)).is_some_and(|share| share > MANY);
    term.evaluated_rows() <= MOST_PAIRS_IN_ROWS[usize::from(many)]
}

/// Lowers `body`, one value for each member of `family`. Its draws are added to `draws`: they are inputs of the
/// formula.
///
/// # Errors
/// Findings that need index values: an index out of range, a size that is not whole, too many rows.
pub fn lower(
    context: &Context,
    purpose: Purpose,
    family: &Ranges,
    body: &Ex,
    draws: &mut Vec<Draw>,
) -> Result<Lowered, Diagnostic> {
    let pieces = summands(body)?;
    let components = body.shape.len();
    let mut functional = Functional::default();
    let (mut members, mut count, mut cutoffs) = (Vec::new(), 0, Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        let mut builder = Builder::new(context, piece, components, draws);
        let listed = match purpose {
            Purpose::Motion => true,
            Purpose::Integral => family.ranges.is_empty(),
            Purpose::Other => false,
        };
        let mut near = listed.then(|| near(&builder, context, family)).flatten();
        cutoffs.extend(near.clone().map(|term| (term, piece.body.span)));
        near.take_if(|term| is_of_rows(term, context));
        let loops: Vec<&Ranges> = match near {
            Some(_) => vec![family],
            None => std::iter::once(family).chain(&piece.ranges).collect(),
        };
        let mut rows = RowLoop::new(family.ranges.len());
        rows.run(&mut builder, &loops, near.is_none())?;
        functional.terms.extend(near);
        functional.terms.extend(builder.into_terms());
        if number == 0 {
            members = rows.members;
            count = rows.member;
        }
    }
    functional.outputs = count * components;
    if functional.outputs > MOST_NUMBERS {
        return Err(too_many_numbers(functional.outputs, body.span));
    }
    let symmetric_hint = match &functional.terms[..] {
        [only] if pieces.len() == 1 && pieces[0].ranges.is_empty() => Some((only.graph.clone(), only.roots.clone())),
        _ => None,
    };
    Ok(Lowered { functional, members, count, symmetric_hint, cutoffs })
}

/// A state, parameter or formula of more numbers than the limit.
pub(super) fn too_many_numbers(count: usize, span: Span) -> Diagnostic {
    Diagnostic::error(format!("these are {count} numbers, and the limit is {MOST_NUMBERS}"), span, "too many numbers")
}
