//! `list(a, b, …)`: the members of a family one by one.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{CheckedExpression, Ex, Kind};
use crate::elaborate::shape::Shape;
use crate::graph::op::Binary;
use crate::syntax::ast::{self, ExprKind};
use crate::syntax::diagnostic::Diagnostic;

impl Elaborator<'_> {
    /// The value of the member of `set` with the indices `at`: a formula of its indices, or one of a
    /// list.
    pub(in crate::elaborate) fn value_of_members(
        &mut self,
        e: &ast::Expr,
        set: &IndexSet,
        at: &[Ex],
    ) -> Option<Ex> {
        match &e.kind {
            ExprKind::Call(function, entries) if function.text == LIST => {
                self.list(e, entries, set, at)
            }
            _ => self.value(e),
        }
    }

    fn list(
        &mut self,
        e: &ast::Expr,
        entries: &[ast::Expr],
        set: &IndexSet,
        at: &[Ex],
    ) -> Option<Ex> {
        let [range] = &set.ranges[..] else {
            let message = format!("{LIST}(…) gives the members of a family with one index");
            let label = format!("this has {} indices", set.ranges.len());
            let finding = Diagnostic::error(message, e.span, label);
            return self.refuse(finding.help("write a formula of the indices"));
        };
        let (low, high) = (range.low.value()?, range.high.value()?);
        let (count, members) = (entries.len(), (high - low + 1.0).max(0.0));
        if count as f64 != members {
            let values = if count == 1 { "value" } else { "values" };
            let message = format!("{LIST} has {count} {values} for {members} members");
            let label = format!("the index runs from {low} to {high}");
            return self.refuse(Diagnostic::error(message, e.span, label));
        }
        let values: Vec<Option<Ex>> = entries.iter().map(|entry| self.value(entry)).collect();
        let values: Vec<Ex> = values.into_iter().collect::<Option<_>>()?;
        // A family without members takes any value.
        let Some(last) = values.last() else {
            return Some(CheckedExpression::number(0.0, e.span));
        };
        if let Some(odd) = values.iter().find(|value| value.shape != last.shape) {
            let (own, shape) = (odd.shape, last.shape);
            let message = format!("the values of a {LIST} have the shapes {own} and {shape}");
            let finding = Diagnostic::error(message, odd.span, "a value of another shape");
            return self.refuse(finding.related(last.span, shape.to_string()));
        }
        Some(selected(&values, &at[0], low))
    }
}

/// The value of the member with this index, by halves; `low` belongs to the first.
fn selected(values: &[Ex], index: &Ex, low: f64) -> Ex {
    let [first, _, ..] = values else { return values[0].clone() };
    let (before, behind) = values.split_at(values.len() / 2);
    let border = low + before.len() as f64;
    let border_value = CheckedExpression::number(border, index.span);
    let is_before = Kind::Binary(Binary::Less, index.clone(), border_value);
    let is_before = CheckedExpression::new(is_before, Shape::Condition, index.span);
    let halves = [selected(before, index, low), selected(behind, index, border)];
    let [before, behind] = halves;
    let span = first.span.to(values[values.len() - 1].span);
    CheckedExpression::new(Kind::Select(is_before, before, behind), first.shape, span)
}

/// Name of the form.
pub(super) const LIST: &str = "list";
