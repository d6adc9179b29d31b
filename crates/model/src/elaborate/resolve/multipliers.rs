//! Multipliers of constraints, `lambda.NAME`.

use super::definitions::which_member;
use crate::elaborate::expression::index_set::IndexRange;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::names::{self, Symbol};
use crate::elaborate::{Elaborator, VariableRole};
use crate::syntax::ast::{self, ExprKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;

impl Elaborator<'_> {
    /// True if `e` is the `lambda` of `lambda.NAME`; a declared `lambda` hides it.
    pub(super) fn is_lambda(&self, e: &ast::Expr) -> bool {
        let hidden = || {
            self.scope.find(names::LAMBDA).is_some()
                || self.symbols.contains_key(names::LAMBDA)
                || self.poisoned.contains(names::LAMBDA)
        };
        matches!(&e.kind, ExprKind::Name(name) if name == names::LAMBDA) && !hidden()
    }

    /// `lambda.NAME` with the indices that follow it.
    pub(super) fn multiplier(
        &mut self,
        constraint: &ast::Name,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let name = &constraint.text;
        let what = format!("the multiplier 'lambda.{name}'");
        self.allow(expression::MULTIPLIER, &what, span)?;
        let Some(statement) = self.symbols.get(name).and_then(|d| self.constraint_of(d.symbol))
        else {
            if !self.poisoned.contains(name) {
                self.no_constraint(constraint);
            }
            return None;
        };
        if self.variables.iter().any(|v| v.role == VariableRole::State) {
            let message = "the constraints of a vector field have no multipliers";
            let finding = Diagnostic::error(message, span, "no force acts here");
            return self.refuse(
                finding.help("lambda.NAME belongs to a constraint of a Hamiltonian model"),
            );
        }
        if !self.variables_known {
            self.premature |= expression::MULTIPLIER;
            return None;
        }
        let checked = self.constraint(statement, span)?;
        let need = checked.set.ranges.len();
        if indices.len() < need {
            let name_of = |range: &IndexRange| self.index_names[range.index as usize].as_str();
            let list: Vec<&str> = checked.set.ranges.iter().map(name_of).collect();
            let diagnostic = which_member(name, &format!("lambda.{name}"), &list, span);
            return self.refuse(diagnostic.related(checked.name.span, "declared here"));
        }
        let (own, rest) = indices.split_at(need);
        let own = own.iter().map(|index| self.index_value(index)).collect::<Option<Vec<Ex>>>()?;
        // Rolling constraints stand behind the others.
        let count = |list: &[ast::Statement], kind: StatementKind| {
            list.iter().filter(|s| s.kind == kind).count()
        };
        let (kind, before) = (self.statement(statement).kind, &self.statements[..statement]);
        let number = match kind {
            StatementKind::Rolling => {
                count(self.statements, StatementKind::Constraint) + count(before, kind)
            }
            _ => count(before, kind),
        };
        let kind = Kind::Member(Storage::Multiplier(number), own);
        let e = CheckedExpression::new(kind, checked.value.shape, span);
        self.component(e, rest, span)
    }

    /// Statement of the constraint that a name stands for.
    fn constraint_of(&self, symbol: Symbol) -> Option<usize> {
        let Symbol::Label(number) = symbol else { return None };
        let is_one = [StatementKind::Constraint, StatementKind::Rolling]
            .contains(&self.statement(number).kind);
        is_one.then_some(number)
    }

    fn no_constraint(&mut self, name: &ast::Name) {
        let constraints =
            self.symbols.iter().filter(|(_, d)| self.constraint_of(d.symbol).is_some());
        let known: Vec<&str> = constraints.map(|(name, _)| name.as_str()).collect();
        let help = match (did_you_mean(&name.text, known.iter().copied()), known.is_empty()) {
            (Some(meant), _) => format!("did you mean 'lambda.{meant}'?"),
            (None, true) => "the model has no constraints".to_string(),
            (None, false) => format!("its constraints are {}", known.join(", ")),
        };
        let message = format!("there is no constraint '{}'", name.text);
        self.report(Diagnostic::error(message, name.span, "no such constraint").help(help));
    }
}
