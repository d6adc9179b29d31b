//! Slots of a template, as functions of the row.

use super::row_indices::RowIndices;
use super::{Context, MOST_NUMBERS, too_many_numbers};
use crate::elaborate::expression::Draw;
use crate::elaborate::model::Family;
use crate::elaborate::start;
use crate::functional::{Source, Term};
use crate::graph::Node;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Number that a slot reads, as a function of the row.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Variable { variable: usize, component: u32, indices: Vec<Node> },
    Parameter { parameter: usize, component: u32, indices: Vec<Node> },
    Multiplier { constraint: usize, component: u32, indices: Vec<Node> },
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
            // read no state. Multipliers follow the state.
            Slot::Variable { .. }
            | Slot::Multiplier { .. }
            | Slot::Trajectory
            | Slot::Draw { .. } => Source::State,
            Slot::Parameter { .. } => Source::Parameter,
            Slot::Number(_) | Slot::Table { .. } => Source::Number,
        }
    }

    /// True if its entry advances by equal steps along the innermost index.
    pub(super) fn is_even(&self, names: &mut RowIndices) -> bool {
        match self {
            Slot::Variable { indices, .. } | Slot::Parameter { indices, .. } => {
                indices.iter().all(|&node| names.is_even(node))
            }
            // Every row has its own entry, or a list of members gives it.
            Slot::Multiplier { .. }
            | Slot::Number(_)
            | Slot::Table { .. }
            | Slot::Trajectory
            | Slot::Draw { .. } => false,
        }
    }

    /// Nodes that determine its entry, as functions of the row.
    pub(super) fn nodes(&self) -> Vec<Node> {
        match self {
            Slot::Variable { indices, .. }
            | Slot::Parameter { indices, .. }
            | Slot::Multiplier { indices, .. } => indices.clone(),
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
            Slot::Variable { variable, component, indices } => {
                let (family, first) = context.variables[*variable];
                let member = member(names, family, indices, row, span)?;
                Ok((first + member * family.shape.len()) as u32 + component)
            }
            Slot::Parameter { parameter, component, indices } => {
                let (family, first) = context.parameters[*parameter];
                let member = member(names, family, indices, row, span)?;
                Ok((first + member * family.shape.len()) as u32 + component)
            }
            Slot::Multiplier { constraint, component, indices } => {
                let (quantity, first) = context.multipliers[*constraint];
                let mut values = Vec::with_capacity(indices.len());
                for &node in indices {
                    let value = names.evaluate_node(node, row);
                    let what = format_args!("an index of '{}'", quantity.name);
                    values.push(names.check_whole(value, span, row, what)? as i64);
                }
                let Some(member) = quantity.member(&values) else {
                    let list: Vec<String> = values.iter().map(i64::to_string).collect();
                    let message = format!(
                        "constraint '{}' has no member [{}]{}",
                        quantity.name,
                        list.join(","),
                        names.with(row)
                    );
                    return Err(Diagnostic::error(message, span, "no such member")
                        .related(quantity.span, "declared here"));
                };
                Ok((first + member * quantity.shape.len()) as u32 + component)
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

/// The number of the family's member with these index values.
fn member(
    names: &mut RowIndices,
    family: &Family,
    indices: &[Node],
    row: &[f64],
    span: Span,
) -> Result<usize, Diagnostic> {
    let mut number = 0;
    for (k, &node) in indices.iter().enumerate() {
        let (low, high) = family.bounds[k];
        let value = names.evaluate_node(node, row);
        let value =
            names.check_whole(value, span, row, format_args!("an index of '{}'", family.name))?
                as i64;
        if value < low || value > high {
            let message = format!(
                "index {value} of '{}' is outside {low}..{high}{}",
                family.name,
                names.with(row)
            );
            return Err(Diagnostic::error(
                message,
                span,
                format!("{} = {value} does not exist", family.indices[k]),
            ));
        }
        number = number * (high - low + 1) as usize + (value - low) as usize;
    }
    Ok(number)
}
