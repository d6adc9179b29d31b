//! Initial values of the variables.

use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, CheckedExpression, Ex};
use crate::elaborate::model::Family;
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableRole};
use crate::syntax::ast::Expr;
use crate::syntax::diagnostic::Diagnostic;

impl Elaborator<'_> {
    /// Initial value of every variable: its ranges and expression.
    pub(super) fn initial_expressions(&mut self) -> Vec<Option<(IndexSet, Ex)>> {
        (0..self.variables.len()).map(|number| self.initial_expression(number)).collect()
    }

    fn initial_expression(&mut self, number: usize) -> Option<(IndexSet, Ex)> {
        let is_momentum = matches!(self.variables[number].role, VariableRole::Momentum { .. });
        let statement = self.statement(self.variables[number].statement);
        let value = statement.values.first();
        self.scope = Scope::new(expression::START, "initial values");
        match (self.variables[number].family.clone(), value) {
            (Some(family), Some(value)) => {
                let set = self.bind_members(&family.indices, &family, family.span);
                self.let_vary(self.variables[number].statement);
                let e = self.value_of_members(value, &set)?;
                let name = self.variables[number].name.clone();
                let what = format!("the initial value of '{name}'");
                self.check_shape(&e, &what, &name, value, &family)?;
                let number = self.variables[number].statement;
                let e = self.with_parts(e, number, &family, &set)?;
                Some((set, e))
            }
            (Some(family), None) if is_momentum => {
                let number = self.variables[number].statement;
                if self.parts.iter().any(|part| part.statement == number) {
                    let set = self.bind_members(&family.indices, &family, family.span);
                    let zero = CheckedExpression::zero(family.shape, statement.span);
                    let e = self.with_parts(zero, number, &family, &set)?;
                    return Some((set, e));
                }
                let zero = CheckedExpression::number(0.0, statement.span);
                Some((IndexSet::default(), zero))
            }
            (Some(family), None) => {
                let entry = &self.variables[number];
                let (name, word) = (&entry.name, statement.kind.row().word);
                let usage = match family.shape {
                    Shape::Scalar => format!("{name} = 0"),
                    shape => format!("{name} : {shape} = …"),
                };
                let message = format!("'{name}' has no initial value");
                let finding = Diagnostic::error(message, entry.span, "= EXPR is missing");
                self.refuse(finding.help(format!("write `{word} {usage}`")))
            }
            (None, value) => {
                // The mistakes of the value itself are still reported.
                if let Some(value) =
                    value.filter(|_| !is_momentum && statement.family.ranges.is_empty())
                {
                    self.let_vary(self.variables[number].statement);
                    self.value(value);
                }
                None
            }
        }
    }

    /// Refuses a value that is not of the shape of the members of a family; `what` is the value and
    /// `name` the family in the message.
    pub(super) fn check_shape(
        &mut self,
        e: &Ex,
        what: &str,
        name: &str,
        written: &Expr,
        family: &Family,
    ) -> Option<()> {
        let (own, needed) = (e.shape, family.shape);
        if own == needed {
            return Some(());
        }
        let message = format!("{what} has the shape {own}, and '{name}' is in {needed}");
        let label = format!("this has the shape {own}");
        let finding = Diagnostic::error(message, written.span, label);
        self.refuse(finding.related(family.span, format!("declared in {needed}")))
    }
}
