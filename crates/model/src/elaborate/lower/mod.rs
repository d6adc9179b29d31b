//! Lowering of checked expressions to term templates.
//!
//! A formula is split at its outermost sums. Each summand becomes a template whose slots are the
//! variables that it reads, and the ranges of the sums become rows. Dependences on a row's indices
//! that change the *structure* (an `if` on indices, the length of an inner sum, a component picked
//! by an index) are *decisions*; rows that decide alike share a template.

mod arithmetic;
mod classes;
mod near;
mod row_indices;
mod rows;
mod slots;
mod summands;
mod template;

use super::reach::{self, Cutoff};
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{Draw, Ex};
use crate::elaborate::model::{Family, Following, Quantity, Table};
use crate::functional::{Functional, Term};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use classes::ClassBuilder;
use near::near;
use rows::RangeLoop;
use summands::summands;

/// Largest number of rows of all terms of one formula.
pub const MOST_ROWS: usize = 20_000_000;
/// Largest size or index: larger doubles do not count in ones.
pub const LARGEST_INDEX: f64 = 9.0e15;
/// Largest number of pairs of a sum over near pairs that are all rows, each computed with its
/// condition: if few pairs are near, and if many are, in a periodic box. By lists a pair takes some
/// eight times as long as by rows, but a row costs time and memory when the model is made.
const MOST_PAIRS_IN_ROWS: [usize; 2] = [60_000, 1_000_000];
/// Share of near pairs among all pairs above which they are many.
const MANY: f64 = 0.125;
/// Largest number of nodes of one template. A sum inside a nonlinear function is unrolled in its
/// template.
pub const LARGEST_TEMPLATE: usize = 1_000_000;
/// Largest number of nodes of all templates of one formula.
const LARGEST_TEMPLATES: usize = 4_000_000;
/// Largest count of numbers in a state, a parameter list, the outputs of a formula or its row
/// table: a few gigabytes.
pub const MOST_NUMBERS: usize = 500_000_000;

/// Context of an expression in the model, as far as lowering needs it.
pub struct Context<'a> {
    /// Families of the variables and the first state component of each.
    pub variables: Vec<(&'a Family, usize)>,
    /// Families of the parameters and the first slot of each.
    pub parameters: Vec<(&'a Family, usize)>,
    /// Values of the parameters, once they are known; for an ensemble those of the first
    /// trajectory.
    pub parameter_values: Vec<f64>,
    /// The constraints and the place of the first multiplier of each, for formulas that may use
    /// what follows the state.
    pub multipliers: Vec<(&'a Quantity, usize)>,
    /// Places of what follows the state.
    pub following: Following,
    /// The tables.
    pub tables: &'a [Table],
    /// Names of the index variables, for messages.
    pub index_names: &'a [String],
}

/// A lowered formula and the index values of its family's members.
pub struct LoweredFormula {
    /// The formula.
    pub functional: Functional,
    /// Index values of the members, one after the other.
    pub members: Vec<i32>,
    /// Number of members; 1 if there is no family.
    pub count: usize,
    /// Terms that compare distances.
    pub cutoffs: Vec<LoweredCutoff>,
}

/// A term that compares distances.
pub struct LoweredCutoff {
    /// The term.
    pub cutoff: Cutoff,
    /// Place of its formula.
    pub span: Span,
    /// True if it is one of a sum over pairs.
    pub of_pairs: bool,
}

/// Purpose of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A right-hand side or a recorded quantity: its sums over near pairs may use lists.
    Motion,
    /// An integral, whose derivatives are matrices: lists serve a single sum, not a family of sums.
    Integral,
    /// Anything else.
    Other,
}

/// True if all pairs of a sum over near pairs become rows.
fn is_of_rows(term: &Term, context: &Context) -> bool {
    let numbers = reach::of(term).map(|reach| reach.evaluate(0.0, &[], &context.parameter_values));
    let many = numbers.and_then(|numbers| reach::share(&numbers)).is_some_and(|share| share > MANY);
    term.evaluated_rows() <= MOST_PAIRS_IN_ROWS[usize::from(many)]
}

/// Lowers `body`, one value for each member of `family`. Its draws are inputs of the formula and
/// are added to `draws`.
///
/// # Errors
/// Findings that need index values: an index out of range, a size that is not whole, too many rows.
pub fn lower(
    context: &Context,
    purpose: Purpose,
    family: &IndexSet,
    body: &Ex,
    draws: &mut Vec<Draw>,
) -> Result<LoweredFormula, Diagnostic> {
    let pieces = summands(body)?;
    let components = body.shape.len();
    let mut functional = Functional::default();
    let (mut members, mut count, mut cutoffs) = (Vec::new(), 0, Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        let mut builder = ClassBuilder::new(context, piece, components, draws);
        let listed = match purpose {
            Purpose::Motion => true,
            Purpose::Integral => family.ranges.is_empty(),
            Purpose::Other => false,
        };
        let mut near = listed.then(|| near(&builder, context, family)).flatten();
        near.take_if(|term| is_of_rows(term, context));
        let set = if near.is_some() { family.clone() } else { family.product(&piece.set) };
        let mut rows = RangeLoop::new(family.ranges.len(), near.is_none());
        rows.run(&mut builder, &set)?;
        let new = functional.terms.len();
        functional.terms.extend(near);
        functional.terms.extend(builder.into_terms());
        if listed {
            let of_pairs = family.ranges.len() + piece.set.ranges.len() > 1;
            let found = functional.terms[new..].iter().filter_map(Cutoff::of);
            let span = piece.body.span;
            cutoffs.extend(found.map(|cutoff| LoweredCutoff { cutoff, span, of_pairs }));
        }
        if number == 0 {
            members = rows.members;
            count = rows.member;
        }
    }
    functional.outputs = count * components;
    if functional.outputs > MOST_NUMBERS {
        return Err(too_many_numbers(functional.outputs, body.span));
    }
    Ok(LoweredFormula { functional, members, count, cutoffs })
}

/// A state, parameter or formula of more numbers than the limit.
pub(super) fn too_many_numbers(count: usize, span: Span) -> Diagnostic {
    let message = format!("these are {count} numbers, and the limit is {MOST_NUMBERS}");
    Diagnostic::error(message, span, "too many numbers")
}
