//! Formulas along the motion: the Hamiltonian, derivatives, constraints, integrals, observables,
//! unused definitions.

use super::StateDerivative;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::model::Family;
use crate::elaborate::names::{Scope, Symbol, counted_indices};
use crate::elaborate::shape::Shape;
use crate::elaborate::{CheckedFormula, Elaborator, VariableEntry, VariableRole};
use crate::syntax::ast::{self, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;
use std::sync::Arc;

impl Elaborator<'_> {
    pub(super) fn hamiltonian_expression(&mut self, number: usize) -> Option<Ex> {
        let (name, value) = (&self.statement(number).name, &self.statement(number).values[0]);
        self.scope = self.definition_scope(number);
        let e = self.known_value(number, name.span)?;
        if e.shape != Shape::Scalar {
            let message = format!("{} must be a scalar", self.definition_scope(number).place);
            let label = format!("this has the shape {}", e.shape);
            return self.refuse(Diagnostic::error(message, value.span, label));
        }
        Some(e)
    }

    /// Definition that `--stiff` names: a term of the Hamiltonian that depends on positions and
    /// time only.
    pub(super) fn stiff_term(&mut self, name: &ast::Name, hamiltonian: Option<&Ex>) -> Option<Ex> {
        let mut terms = Vec::new();
        if let Some(h) = hamiltonian {
            terms_of(h, &mut terms);
        }
        let suits = |e: &&Ex| {
            e.depends & expression::MOMENTUM == 0 && terms.iter().any(|term| Arc::ptr_eq(term, e))
        };
        let lets = self.statements.iter().enumerate();
        let lets = lets.filter(|(_, s)| s.kind == StatementKind::Let);
        let able = lets.filter_map(|(number, s)| {
            let e = self.defined.get(&number).and_then(Option::as_ref).filter(suits)?;
            Some((s.name.text.as_str(), e))
        });
        let able: Vec<(&str, &Ex)> = able.collect();
        if let Some((_, e)) = able.iter().find(|(known, _)| *known == name.text) {
            return Some((*e).clone());
        }
        let able: Vec<&str> = able.into_iter().map(|(name, _)| name).collect();
        let message = format!("'{}' is no term of the potential energy", name.text);
        let help = match able.is_empty() {
            true => {
                "give the stiff term a name, `let NAME = EXPR`, and write that in the Hamiltonian in its place".into()
            }
            false => format!("these are: {}", able.join(", ")),
        };
        let label = "a `let` that the Hamiltonian adds is wanted";
        self.refuse(Diagnostic::error(message, name.span, label).help(help))
    }

    /// Right-hand sides of a state model.
    pub(super) fn derivatives(&mut self) -> Vec<StateDerivative> {
        let mut all = Vec::new();
        let mut seen: Vec<(usize, Span)> = Vec::new();
        for statement in self.statements {
            if statement.kind != StatementKind::Derivative {
                continue;
            }
            let name = &statement.name;
            if let Some(poisson) = self.poisson() {
                let message = format!("{}' is given beside a Poisson matrix", name.text);
                let label = "the states move by x' = J ∇H";
                let finding = Diagnostic::error(message, name.span, label);
                let help = "leave it out, or leave out the Hamiltonian and the Poisson matrix";
                self.report(finding.help(help).related(poisson, "the matrix J"));
                continue;
            }
            let Some(state) = self.state(name) else { continue };
            if let Some((_, first)) = seen.iter().find(|(v, _)| *v == state) {
                let message = format!("{}' is given twice", name.text);
                let finding = Diagnostic::error(message, name.span, "second time");
                self.report(finding.related(*first, "first here"));
                continue;
            }
            seen.push((state, name.span));
            all.extend(self.derivative(statement, state));
        }
        for number in 0..self.variables.len() {
            let VariableEntry { role, name, span, .. } = &self.variables[number];
            let is_given = seen.iter().any(|(v, _)| *v == number);
            if *role == VariableRole::State
                && !is_given
                && self.complete
                && self.hamiltonian.is_none()
                && self.poisson().is_none()
            {
                let message = format!("state '{name}' has no derivative");
                let help = format!("add `{name}' = …`");
                self.report(Diagnostic::error(message, *span, "how does it move?").help(help));
            }
        }
        all
    }

    /// The state called `name`.
    fn state(&mut self, name: &ast::Name) -> Option<usize> {
        let is_state = |v: usize| self.variables[v].role == VariableRole::State;
        match self.symbols.get(&name.text).map(|d| d.symbol) {
            Some(Symbol::Variable(v)) if is_state(v) => return Some(v),
            _ if self.poisoned.contains(&name.text) => return None,
            _ => {}
        }
        let text = &name.text;
        let states = self.variables.iter().filter(|v| v.role == VariableRole::State);
        let message = format!("'{text}' is not a state, so {text}' cannot be given");
        let finding = Diagnostic::error(message, name.span, "not a state");
        let moves = self.is_canonical() && self.symbols.contains_key(text);
        let finding = finding.suggest(text, states.map(|v| v.name.as_str()), || match moves {
            true => {
                "a model has either a hamiltonian, from which the equations of motion follow, or states with their derivatives"
                    .to_string()
            }
            false => format!("declare it: `state {text} : R^3 = …`"),
        });
        self.refuse(finding)
    }

    /// The derivative of a state that a statement gives.
    fn derivative(&mut self, statement: &Statement, state: usize) -> Option<StateDerivative> {
        let Statement { name: ast::Name { text, span }, indices, values, .. } = statement;
        let family: Family = self.variables[state].family.clone()?;
        let count = family.indices.len();
        if indices.len() != count {
            let usage = match count {
                0 => format!("{text}' = …"),
                _ => format!("{text}[{}]' = …", family.indices.join(", ")),
            };
            let (needed, given) = (counted_indices(count), indices.len());
            let message = format!("'{text}' has {needed}, not {given}");
            let label = "the family has another number of indices";
            let finding = Diagnostic::error(message, *span, label).help(format!("write {usage}"));
            return self.refuse(finding.related(family.span, "declared here"));
        }
        let names: Vec<String> = indices.iter().map(|i| i.text.clone()).collect();
        self.scope = Scope::new(expression::FORMULA, "a derivative");
        let set = self.bind_members(&names, &family, *span);
        let value = self.value(&values[0])?;
        self.check_shape(&value, &format!("{text}'"), text, &values[0], &family)?;
        Some(StateDerivative { state, set, value })
    }

    /// Reads a constraint once, at its statement or at the first use of its multiplier.
    pub(in crate::elaborate) fn constraint(
        &mut self,
        number: usize,
        used: Span,
    ) -> Option<CheckedFormula> {
        if let Some(known) = self.constraints.get(&number) {
            return known.clone();
        }
        self.enter(number, used)?;
        let scope = constraint_scope(self.statement(number).kind);
        let checked = self.within(scope, |this| this.read_equation(this.statement(number)));
        self.leave();
        self.constraints.insert(number, checked.clone());
        checked
    }

    /// The sides of a constraint, for a member with these values of its indices.
    pub(in crate::elaborate) fn sides_of_member(&mut self, number: usize, own: &[Ex]) -> Vec<Ex> {
        let Statement { kind, family, values, .. } = self.statement(number);
        let names = family.ranges.iter().map(|range| range.name.text.clone());
        let mut scope = constraint_scope(*kind);
        scope.locals = names.zip(own.iter().cloned()).collect();
        self.within(scope, |this| values.iter().filter_map(|side| this.value(side)).collect())
    }

    /// Left minus right side of an equation.
    fn read_equation(&mut self, statement: &Statement) -> Option<CheckedFormula> {
        let Statement { name, family, values, .. } = statement;
        let [left, right] = &values[..] else { return None };
        let set = self.index_set(family);
        let (l, r) = (self.value(left), self.value(right));
        let (set, l, r) = (set?, l?, r?);
        let is_zero = r.value() == Some(0.0);
        // A vector or matrix equal to 0 means every component.
        if l.shape != r.shape && !is_zero {
            let (l, r) = (l.shape, r.shape);
            let message =
                format!("the sides of constraint '{}' have the shapes {l} and {r}", name.text);
            let finding = Diagnostic::error(message, name.span, "the sides differ");
            let finding = finding.related(left.span, l.to_string());
            return self.refuse(finding.related(right.span, r.to_string()));
        }
        let moving = expression::POSITION | expression::MOMENTUM | expression::STATE;
        let span = left.span.to(right.span);
        if statement.kind == StatementKind::Rolling
            && (l.depends | r.depends) & expression::VELOCITY == 0
        {
            let message = format!("rolling constraint '{}' holds no velocity", name.text);
            let finding = Diagnostic::error(message, span, "no q' here");
            return self.refuse(finding.help("a constraint on positions is `constraint`"));
        }
        if (l.depends | r.depends) & (moving | expression::VELOCITY) == 0 {
            let message = format!("constraint '{}' holds no variable", name.text);
            return self.refuse(Diagnostic::error(message, span, "nothing here moves"));
        }
        let shape = l.shape;
        let value = match is_zero {
            true => l,
            false => CheckedExpression::new(Kind::Add(vec![(false, l), (true, r)]), shape, span),
        };
        Some(CheckedFormula { name: name.clone(), set, value })
    }

    /// An integral or observable.
    pub(super) fn quantity(&mut self, number: usize) -> Option<CheckedFormula> {
        let Statement { name, family, values, .. } = self.statement(number);
        self.scope = self.definition_scope(number);
        let set = self.index_set(family);
        if !self.declares(name) {
            return None; // a duplicate, reported
        }
        let value = match family.ranges.is_empty() {
            true => self.known_value(number, name.span)?,
            false => self.value_of(number, &values[0])?,
        };
        Some(CheckedFormula { name: name.clone(), set: set?, value })
    }

    /// Reads a `let` that nothing has used, so that its mistakes are found.
    pub(super) fn unused_let(&mut self, number: usize) {
        let Statement { name, family, values, .. } = self.statement(number);
        self.scope = self.definition_scope(number);
        if family.ranges.is_empty() {
            self.known_value(number, name.span);
        } else if !self.applied.keys().any(|(s, _)| *s == number) {
            self.scope.allowed |= expression::DRAW;
            self.index_set(family);
            self.value_of(number, &values[0]);
        }
    }
}

/// Collects the terms of a nested sum that are added, including the sums themselves.
fn terms_of(e: &Ex, out: &mut Vec<Ex>) {
    out.push(e.clone());
    if let Kind::Add(terms) = &e.kind {
        let added = terms.iter().filter(|(subtracted, _)| !subtracted);
        added.for_each(|(_, term)| terms_of(term, out));
    }
}

/// Scope of the equation of a constraint.
fn constraint_scope(kind: StatementKind) -> Scope {
    match kind {
        StatementKind::Rolling => {
            let inputs = expression::FORMULA & !expression::MOMENTUM | expression::VELOCITY;
            Scope::new(inputs, "a rolling constraint")
        }
        _ => Scope::new(expression::FORMULA, "a constraint"),
    }
}
