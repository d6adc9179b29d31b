//! Slots of a template, as functions of the row.

use super::row_indices::RowIndices;
use super::{Context, MOST_NUMBERS, too_many_numbers};
use crate::elaborate::expression::{Draw, Storage};
use crate::elaborate::model::{Family, Quantity};
use crate::elaborate::start;
use crate::functional::{Source, Term};
use crate::graph::Node;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Number that a slot reads, as a function of the row.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Member { storage: Storage, component: u32, indices: Vec<Node> },
    Number(Node),
    Table { table: usize, column: usize, row: Node },
    Trajectory,
    Draw { draw: Draw, ordinal: u32 },
}

impl Slot {
    /// Source of the slot's numbers.
    pub(super) fn source(&self) -> Source {
        match self {
            // A trajectory's inputs stand in place of the state, because the formulas of a start
            // read no state. What follows from the state stands behind it.
            Slot::Member { storage: Storage::Parameter(_), .. } => Source::Parameter,
            Slot::Member { .. } | Slot::Trajectory | Slot::Draw { .. } => Source::State,
            Slot::Number(_) | Slot::Table { .. } => Source::Number,
        }
    }

    /// True if its entry advances by equal steps along the innermost index.
    pub(super) fn is_even(&self, names: &mut RowIndices) -> bool {
        match self {
            // Every member of constraints has its own entry, or a list of members gives it.
            Slot::Member { storage, indices, .. } => {
                !matches!(storage, Storage::Multiplier(_) | Storage::Reaction(..))
                    && indices.iter().all(|&node| names.is_even(node))
            }
            Slot::Number(_) | Slot::Table { .. } | Slot::Trajectory | Slot::Draw { .. } => false,
        }
    }

    /// Nodes that determine its entry, as functions of the row.
    pub(super) fn nodes(&self) -> Vec<Node> {
        match self {
            Slot::Member { indices, .. } => indices.clone(),
            Slot::Number(node) | Slot::Table { row: node, .. } => vec![*node],
            Slot::Trajectory | Slot::Draw { .. } => Vec::new(),
        }
    }

    /// The row table's entry for this slot, whose expression has the span `span`.
    pub(super) fn entry(
        &self,
        context: &Context,
        names: &mut RowIndices,
        row: &[f64],
        span: Span,
        term: &mut Term,
        draws: &mut Vec<Draw>,
    ) -> Result<u32, Diagnostic> {
        let mut number = |value: f64| {
            term.numbers.push(value);
            term.numbers.len() as u32 - 1
        };
        match self {
            Slot::Member { storage, component, indices } => {
                let first = match *storage {
                    Storage::Variable(k, _) => {
                        member(names, context.variables[k], indices, row, span)?
                    }
                    Storage::Parameter(k) => {
                        member(names, context.parameters[k], indices, row, span)?
                    }
                    Storage::Multiplier(k) => {
                        multiplier(names, context.multipliers[k], indices, row, span)?
                    }
                    Storage::Velocity(k) => {
                        let (family, first) = context.variables[k];
                        let place = context.following.velocities + first;
                        member(names, (family, place), indices, row, span)?
                    }
                    Storage::Acceleration(k) => {
                        let (family, first) = context.variables[k];
                        let place = context.following.accelerations + first;
                        member(names, (family, place), indices, row, span)?
                    }
                    Storage::Reaction(constraint, k) => {
                        let (family, first) = context.variables[k];
                        let own = indices.len() - family.bounds.len();
                        let (of, on) = indices.split_at(own);
                        let entry =
                            multiplier(names, context.multipliers[constraint], of, row, span)?;
                        let place = context.following.reaction(entry, first);
                        member(names, (family, place), on, row, span)?
                    }
                };
                Ok(first as u32 + component)
            }
            Slot::Number(node) => Ok(number(names.evaluate_node(*node, row))),
            Slot::Trajectory => Ok(start::TRAJECTORY),
            Slot::Draw { draw, .. } => {
                if draws.len() == MOST_NUMBERS {
                    return Err(too_many_numbers(draws.len() + 1, span));
                }
                draws.push(*draw);
                Ok(start::FIRST_DRAW + draws.len() as u32 - 1)
            }
            Slot::Table { table, column, row: node } => {
                let table = &context.tables[*table];
                let at = names.evaluate_node(*node, row);
                let at = names.check_whole(at, span, row, "a row of a table")?;
                if at < 1.0 || at > table.rows as f64 {
                    let message = format!("{}{}", table.no_row(at), names.with(row));
                    return Err(Diagnostic::error(message, span, "no such row"));
                }
                Ok(number(table.columns[*column].1[at as usize - 1]))
            }
        }
    }
}

/// Place of the first component of a family's member with these index values.
fn member(
    names: &mut RowIndices,
    (family, first): (&Family, usize),
    indices: &[Node],
    row: &[f64],
    span: Span,
) -> Result<usize, Diagnostic> {
    let mut number = 0;
    for (k, (&node, &(low, high))) in indices.iter().zip(&family.bounds).enumerate() {
        let value = index(names, &family.name, node, row, span)?;
        if let Some(message) = names.outside(value, &family.name, (low as f64, high as f64), row) {
            let label = format!("{} = {value} does not exist", family.indices[k]);
            return Err(Diagnostic::error(message, span, label));
        }
        number = number * (high - low + 1) as usize + (value as i64 - low) as usize;
    }
    Ok(first + number * family.shape.len())
}

/// Place of the first multiplier of a constraint's member with these index values.
fn multiplier(
    names: &mut RowIndices,
    (constraint, first): (&Quantity, usize),
    indices: &[Node],
    row: &[f64],
    span: Span,
) -> Result<usize, Diagnostic> {
    let mut values = Vec::with_capacity(indices.len());
    for &node in indices {
        values.push(index(names, &constraint.name, node, row, span)? as i64);
    }
    let Some(member) = constraint.member(&values) else {
        let list: Vec<String> = values.iter().map(i64::to_string).collect();
        let (name, list, with) = (&constraint.name, list.join(","), names.with(row));
        let message = format!("constraint '{name}' has no member [{list}]{with}");
        return Err(Diagnostic::error(message, span, "no such member")
            .related(constraint.span, "declared here"));
    };
    Ok(first + member * constraint.shape.len())
}

/// Value of an index of a family.
fn index(
    names: &mut RowIndices,
    family: &str,
    node: Node,
    row: &[f64],
    span: Span,
) -> Result<f64, Diagnostic> {
    let value = names.evaluate_node(node, row);
    names.check_whole(value, span, row, format_args!("an index of '{family}'"))
}
