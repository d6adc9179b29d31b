//! Initial values of the variables.

use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::model::Family;
use crate::elaborate::names::{INITIAL, Scope};
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableEntry, VariableRole};
use crate::syntax::ast::Expr;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

impl Elaborator<'_> {
    /// Initial value of every variable: its ranges and expression.
    pub(super) fn initial_expressions(&mut self) -> Vec<Option<(IndexSet, Ex)>> {
        (0..self.variables.len()).map(|number| self.initial_expression(number)).collect()
    }

    fn initial_expression(&mut self, number: usize) -> Option<(IndexSet, Ex)> {
        let statement = self.variables[number].statement;
        self.enter(statement, self.variables[number].span)?;
        self.scope = Scope::new(expression::START, INITIAL);
        let read = match self.variables[number].family.clone() {
            Some(family) => {
                let set = self.bind_members(&family.indices, &family, family.span);
                let at = set.members();
                self.initial_value(number, &family, (&set, &at)).map(|e| match e.value() {
                    // One number for all members.
                    Some(_) if self.statement(statement).values.is_empty() => {
                        (IndexSet::default(), e)
                    }
                    _ => (set, e),
                })
            }
            None => {
                self.look_for_mistakes(number);
                None
            }
        };
        self.leave();
        read
    }

    /// The initial value that another one uses: of the member and component with these indices.
    pub(in crate::elaborate) fn initial_member(
        &mut self,
        number: usize,
        indices: &[Expr],
        span: Span,
    ) -> Option<Ex> {
        let VariableEntry { statement, role, .. } = self.variables[number];
        let name = self.variables[number].name.clone();
        let family = self.variables[number].family.clone()?;
        let (at, rest) = self.family_indices(&family, indices, span)?;
        let is_given = self.given.iter().any(|given| given.statement == statement);
        let unknown = match role {
            VariableRole::Momentum { velocity: true, .. } => "it follows from a velocity",
            _ if is_given => "it is given as numbers",
            _ => "",
        };
        let refused = |why: &str| {
            let message = format!("the initial value of '{name}' is not known here");
            let finding = Diagnostic::error(message, span, why);
            finding.help("write its formula in place of its name")
        };
        if !unknown.is_empty() {
            return self.refuse(refused(unknown));
        }
        self.enter(statement, span)?;
        let value = self.within(Scope::new(expression::START, INITIAL), |this| {
            let set = this.bind_members(&family.indices, &family, family.span);
            this.scope.locals = family.indices.iter().cloned().zip(at.iter().cloned()).collect();
            this.initial_value(number, &family, (&set, &at))
        });
        self.leave();
        let value = value?;
        if draws(&value) {
            return self.refuse(refused("it draws a random number"));
        }
        let value = match value.value() {
            Some(_) if family.shape != Shape::Scalar => CheckedExpression::zero(family.shape, span),
            _ => value,
        };
        self.component(value, rest, span)
    }

    /// The initial value of the member of a variable with the indices `at`.
    fn initial_value(
        &mut self,
        number: usize,
        family: &Family,
        (set, at): (&IndexSet, &[Ex]),
    ) -> Option<Ex> {
        let VariableEntry { statement: place, role, .. } = self.variables[number];
        let is_momentum = matches!(role, VariableRole::Momentum { .. });
        let statement = self.statement(place);
        match statement.values.first() {
            Some(value) => {
                self.let_vary(place);
                let e = self.value_of_members(value, set, at)?;
                let name = self.variables[number].name.clone();
                let what = format!("the initial value of '{name}'");
                self.check_shape(&e, &what, &name, value, family)?;
                self.with_parts(e, place, family, at)
            }
            None if is_momentum && self.parts.iter().any(|part| part.statement == place) => {
                let zero = CheckedExpression::zero(family.shape, statement.span);
                self.with_parts(zero, place, family, at)
            }
            None if is_momentum => Some(CheckedExpression::number(0.0, statement.span)),
            None => {
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
        }
    }

    /// Reads the value of a variable whose family is in error: its mistakes are reported, too.
    fn look_for_mistakes(&mut self, number: usize) {
        let VariableEntry { statement: place, role, .. } = self.variables[number];
        let statement = self.statement(place);
        let is_momentum = matches!(role, VariableRole::Momentum { .. });
        let is_read = !is_momentum && statement.family.ranges.is_empty();
        if let Some(value) = statement.values.first().filter(|_| is_read) {
            self.let_vary(place);
            self.value(value);
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

/// True if an expression draws a random number.
fn draws(e: &Ex) -> bool {
    let mut found = matches!(e.kind, Kind::Draw(_));
    e.kind.for_each_part(&mut |part| found = found || draws(part));
    found
}
