//! Multipliers of constraints, `lambda.NAME`.

use super::definitions::which_member;
use crate::elaborate::expression::index_set::IndexRange;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::names::{self, Symbol};
use crate::elaborate::{CheckedFormula, Elaborator, VariableRole};
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
        let written = format!("lambda.{}", constraint.text);
        self.allow(expression::MULTIPLIER, &format!("the multiplier '{written}'"), span)?;
        let (number, checked, own) =
            self.constraint_member((constraint, &written), indices, span)?;
        let rest = &indices[own.len()..];
        let kind = Kind::Member(Storage::Multiplier(number), own);
        let e = CheckedExpression::new(kind, checked.value.shape, span);
        self.component(e, rest, span)
    }

    /// `reaction(NAME)`, `reaction(NAME[i])`: the generalised force of a constraint on the coordinate
    /// that it names first. `reaction(NAME, q)`: that on another one.
    pub(super) fn reaction(&mut self, arguments: &[ast::Expr], span: Span) -> Option<Ex> {
        let (of, on) = match arguments {
            [of] => (of, None),
            [of, on] => (of, Some(on)),
            _ => {
                let usage =
                    if arguments.is_empty() { "reaction(NAME)" } else { "reaction(NAME, q)" };
                return self.wrong_count("reaction", usage, arguments.len(), span);
            }
        };
        let what = expression::MULTIPLIER | expression::REACTION;
        self.allow(what, "a reaction", span)?;
        let (constraint, indices) = match &of.kind {
            ExprKind::Index(name, indices) => (&**name, &indices[..]),
            _ => (of, &[][..]),
        };
        let ExprKind::Name(name) = &constraint.kind else {
            let finding =
                Diagnostic::error("reaction(…) takes a constraint", of.span, "not a name");
            return self.refuse(finding.help("write reaction(NAME), or reaction(NAME, q)"));
        };
        let name = &ast::Name { text: name.clone(), span: constraint.span };
        let (number, _, own) = self.constraint_member((name, &name.text), indices, span)?;
        if let Some(more) = indices.get(own.len()) {
            let count = names::counted_indices(own.len());
            let message = format!("constraint '{}' has {count}", name.text);
            let finding = Diagnostic::error(message, more.span, "one too many");
            return self.refuse(finding.help("components follow: reaction(NAME).x"));
        }
        match on {
            Some(on) => self.reaction_on(on, number, own),
            None => {
                let statement = self.symbols.get(&name.text).map(|declared| declared.symbol);
                let statement = statement.and_then(|symbol| self.constraint_of(symbol))?;
                let rolls = self.statement(statement).kind == StatementKind::Rolling;
                let sides = self.sides_of_member(statement, &own);
                let on = sides.iter().find_map(|side| first_coordinate(side, rolls));
                let found = on.and_then(|on| reaction_of(&on, number, &own, span));
                let Some(found) = found else {
                    let message = format!("constraint '{}' names no coordinate", name.text);
                    let finding = Diagnostic::error(message, of.span, "on which coordinate?");
                    return self.refuse(finding.help("write reaction(NAME, q)"));
                };
                Some(found)
            }
        }
    }

    fn reaction_on(&mut self, on: &ast::Expr, number: usize, own: Vec<Ex>) -> Option<Ex> {
        let outer = self.scope.allowed;
        self.scope.allowed |= expression::POSITION | expression::MOMENTUM;
        let e = self.value(on);
        self.scope.allowed = outer;
        let e = e?;
        let Some(found) = reaction_of(&e, number, &own, on.span) else {
            let finding = Diagnostic::error("a reaction acts on a coordinate", on.span, "not one");
            return self.refuse(finding.help("write reaction(NAME, q) or reaction(NAME, r[i])"));
        };
        Some(found)
    }

    /// Number of a constraint among those with multipliers, its formula, and the values of its own
    /// indices, which begin `indices`; `written` is how it stands in the text.
    fn constraint_member(
        &mut self,
        (constraint, written): (&ast::Name, &str),
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<(usize, CheckedFormula, Vec<Ex>)> {
        let name = &constraint.text;
        let Some(statement) = self.symbols.get(name).and_then(|d| self.constraint_of(d.symbol))
        else {
            if !self.poisoned.contains(name) {
                self.no_constraint(constraint, written);
            }
            return None;
        };
        if self.variables.iter().any(|v| v.role == VariableRole::State) {
            let message = "the constraints of a vector field have no multipliers";
            let finding = Diagnostic::error(message, span, "no force acts here");
            return self
                .refuse(finding.help("multipliers belong to constraints of a Hamiltonian model"));
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
            let diagnostic = which_member(name, written, &list, span);
            return self.refuse(diagnostic.related(checked.name.span, "declared here"));
        }
        let own =
            indices[..need].iter().map(|index| self.index_value(index)).collect::<Option<_>>()?;
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
        Some((number, checked, own))
    }

    /// Statement of the constraint that a name stands for.
    fn constraint_of(&self, symbol: Symbol) -> Option<usize> {
        let Symbol::Label(number) = symbol else { return None };
        let is_one = [StatementKind::Constraint, StatementKind::Rolling]
            .contains(&self.statement(number).kind);
        is_one.then_some(number)
    }

    fn no_constraint(&mut self, name: &ast::Name, written: &str) {
        let constraints =
            self.symbols.iter().filter(|(_, d)| self.constraint_of(d.symbol).is_some());
        let known: Vec<&str> = constraints.map(|(name, _)| name.as_str()).collect();
        let help = match (did_you_mean(&name.text, known.iter().copied()), known.is_empty()) {
            (Some(meant), _) => {
                format!("did you mean '{}'?", written.replace(name.text.as_str(), meant))
            }
            (None, true) => "the model has no constraints".to_string(),
            (None, false) => format!("its constraints are {}", known.join(", ")),
        };
        let message = format!("there is no constraint '{}'", name.text);
        self.report(Diagnostic::error(message, name.span, "no such constraint").help(help));
    }
}

/// The coordinate that an expression names first; of one that `rolls`, by its velocity.
fn first_coordinate(e: &Ex, rolls: bool) -> Option<Ex> {
    match &e.kind {
        Kind::Member(Storage::Variable(_, expression::POSITION), _) if !rolls => {
            return Some(e.clone());
        }
        Kind::Member(Storage::Velocity(_), _) => return Some(e.clone()),
        _ => {}
    }
    let mut found = None;
    e.kind.for_each_part(&mut |part| {
        if found.is_none() {
            found = first_coordinate(part, rolls);
        }
    });
    found
}

/// The reaction of a constraint's member on a coordinate, or on a component of one; `None` for
/// anything else.
fn reaction_of(on: &Ex, constraint: usize, own: &[Ex], span: Span) -> Option<Ex> {
    let kind = match &on.kind {
        Kind::Member(
            Storage::Variable(variable, expression::POSITION) | Storage::Velocity(variable),
            indices,
        ) => Kind::Member(Storage::Reaction(constraint, *variable), [own, indices].concat()),
        Kind::Component(of, indices) => {
            Kind::Component(reaction_of(of, constraint, own, span)?, indices.clone())
        }
        _ => return None,
    };
    Some(CheckedExpression::new(kind, on.shape, span))
}
