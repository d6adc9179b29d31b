//! Initial values of the variables.

use crate::elaborate::expression::{self, CheckedExpression, CheckedRanges, Ex};
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableRole};
use crate::syntax::ast::StatementKind;
use crate::syntax::diagnostic::Diagnostic;

impl Elaborator<'_> {
    /// Initial value of every variable: its ranges and expression.
    pub(super) fn initial_expressions(&mut self) -> Vec<Option<(CheckedRanges, Ex)>> {
        let mut all = Vec::new();
        for number in 0..self.variables.len() {
            use StatementKind::*;
            let statement = &self.file.statements[self.variables[number].statement];
            let (value, written) = match &statement.kind {
                Coordinate { value, family, .. } | State { value, family, .. } => {
                    (value, Some(family))
                }
                Momentum { value, .. } | Velocity { value, .. } => (value, None),
                _ => unreachable!("only these declare variables"),
            };
            let Some(family) = self.variables[number].family.clone() else {
                // The mistakes of the value itself are still reported.
                if let (Some(value), true) = (value, written.is_none_or(|f| f.ranges.is_empty())) {
                    let mut scope = Scope::new(expression::START, "initial values");
                    self.let_vary(self.variables[number].statement, &mut scope);
                    if self.variables[number].role == VariableRole::Coordinate
                        || self.variables[number].role == VariableRole::State
                    {
                        self.value(value, &mut scope);
                    }
                }
                all.push(None);
                continue;
            };
            let name = self.variables[number].name.clone();
            let Some(value) = value else {
                if matches!(self.variables[number].role, VariableRole::Momentum { .. }) {
                    all.push(Some((
                        CheckedRanges::default(),
                        CheckedExpression::number(0.0, statement.span),
                    )));
                } else {
                    let usage = match family.shape {
                        Shape::Scalar => format!("{name} = 0"),
                        shape => format!("{name} : {shape} = …"),
                    };
                    self.report(
                        Diagnostic::error(
                            format!("'{name}' has no initial value"),
                            self.variables[number].span,
                            "= EXPR is missing",
                        )
                        .help(format!("write `{} {usage}`", self.variables[number].what())),
                    );
                    all.push(None);
                }
                continue;
            };
            let mut scope = Scope::new(expression::START, "initial values");
            let ranges = self.bind_members(&family.indices, &family, family.span, &mut scope);
            self.let_vary(self.variables[number].statement, &mut scope);
            let checked = self.value(value, &mut scope);
            all.push(checked.and_then(|e| {
                if e.shape != family.shape {
                    return self.refuse(
                        Diagnostic::error(
                            format!(
                                "the initial value of '{name}' has the shape {}, and '{name}' is in {}",
                                e.shape, family.shape
                            ),
                            value.span,
                            format!("this has the shape {}", e.shape),
                        )
                        .related(family.span, format!("declared in {}", family.shape)),
                    );
                }
                Some((ranges, e))
            }));
        }
        all
    }
}
