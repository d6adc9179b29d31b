//! Formulas along the motion: the Hamiltonian, derivatives, constraints, integrals, observables,
//! unused definitions.

use super::CheckedMeasure;
use crate::elaborate::expression::{self, CheckedExpression, CheckedRanges, Ex, Kind};
use crate::elaborate::names::{Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::elaborate::statistic::{FORMS, STATISTICS};
use crate::elaborate::{Checked, Elaborator, VariableRole};
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean, shorten};
use crate::syntax::span::Span;
use std::sync::Arc;

/// Name of an observable in messages.
pub(super) const OBSERVABLE: &str = "an observable";

impl Elaborator<'_> {
    pub(super) fn hamiltonian_expression(&mut self, statement: usize) -> Option<Ex> {
        let StatementKind::Hamiltonian { value, .. } = &self.file.statements[statement].kind else {
            unreachable!()
        };
        let mut scope = Scope::new(expression::FORMULA, "the Hamiltonian");
        let e = self.value_of(statement, value, &mut scope);
        self.defined.insert(statement, e.clone());
        let e = e?;
        if e.shape != Shape::Scalar {
            return self.refuse(Diagnostic::error(
                "the Hamiltonian must be a scalar",
                value.span,
                format!("this has the shape {}", e.shape),
            ));
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
        let is_let = |&(_, statement): &(usize, &ast::Statement)| {
            matches!(statement.kind, StatementKind::Let { .. })
        };
        let lets: Vec<usize> = self
            .file
            .statements
            .iter()
            .enumerate()
            .filter(is_let)
            .map(|(number, _)| number)
            .collect();
        let known = |statement: &usize| self.defined.get(statement).cloned().flatten();
        let suits = |e: &Ex| {
            e.depends & expression::MOMENTUM == 0 && terms.iter().any(|term| Arc::ptr_eq(term, e))
        };
        let named = |statement: &usize| self.statement_name(*statement).0;
        if let Some(e) = lets.iter().find(|s| named(s) == name.text).and_then(known).filter(suits) {
            return Some(e);
        }
        let able: Vec<String> =
            lets.iter().filter(|s| known(s).is_some_and(|e| suits(&e))).map(named).collect();
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

    /// Right-hand sides of a state model: variable, ranges, expression.
    pub(super) fn derivatives(&mut self) -> Vec<(usize, CheckedRanges, Ex)> {
        let mut all: Vec<(usize, CheckedRanges, Ex)> = Vec::new();
        let mut seen: Vec<(usize, Span)> = Vec::new();
        for statement in &self.file.statements {
            let StatementKind::Derivative { name, indices, value } = &statement.kind else {
                continue;
            };
            let variable = self.symbols.get(&name.text).and_then(|d| match d.symbol {
                Symbol::Variable(v) if self.variables[v].role == VariableRole::State => Some(v),
                _ => None,
            });
            let Some(variable) = variable else {
                if !self.poisoned.contains(&name.text) {
                    let states: Vec<&str> = self
                        .variables
                        .iter()
                        .filter(|v| v.role == VariableRole::State)
                        .map(|v| v.name.as_str())
                        .collect();
                    let diagnostic = Diagnostic::error(
                        format!(
                            "'{}' is not a state, so {}' cannot be given",
                            name.text, name.text
                        ),
                        name.span,
                        "not a state",
                    );
                    let diagnostic = match did_you_mean(&name.text, states.iter().copied()) {
                        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                        None if self.symbols.contains_key(&name.text) && self.hamiltonian.is_some() => diagnostic.help("a model has either a hamiltonian, from which the equations of motion follow, or states with their derivatives"),
                        None => diagnostic.help(format!("declare it: `state {} : R^3 = …`", name.text)),
                    };
                    self.report(diagnostic);
                }
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(v, _)| *v == variable) {
                self.report(
                    Diagnostic::error(
                        format!("{}' is given twice", name.text),
                        name.span,
                        "second time",
                    )
                    .related(*first, "first here"),
                );
                continue;
            }
            seen.push((variable, name.span));
            let Some(family) = self.variables[variable].family.clone() else { continue };
            if indices.len() != family.indices.len() {
                let usage = if family.indices.is_empty() {
                    format!("{}' = …", name.text)
                } else {
                    format!("{}[{}]' = …", name.text, family.indices.join(", "))
                };
                let message = format!(
                    "'{}' has {} {}, not {}",
                    name.text,
                    family.indices.len(),
                    if family.indices.len() == 1 { "index" } else { "indices" },
                    indices.len()
                );
                self.report(
                    Diagnostic::error(
                        message,
                        name.span,
                        "the family has another number of indices",
                    )
                    .help(format!("write {usage}"))
                    .related(family.span, "declared here"),
                );
                continue;
            }
            let names: Vec<String> = indices.iter().map(|i| i.text.clone()).collect();
            let mut scope = Scope::new(expression::FORMULA, "a derivative");
            let ranges = self.bind_members(&names, &family, name.span, &mut scope);
            let Some(e) = self.value(value, &mut scope) else { continue };
            if e.shape != family.shape {
                self.report(
                    Diagnostic::error(
                        format!(
                            "{}' has the shape {}, and '{}' is in {}",
                            name.text, e.shape, name.text, family.shape
                        ),
                        value.span,
                        format!("this has the shape {}", e.shape),
                    )
                    .related(family.span, format!("declared in {}", family.shape)),
                );
                continue;
            }
            all.push((variable, ranges, e));
        }
        for number in 0..self.variables.len() {
            let variable = &self.variables[number];
            if variable.role == VariableRole::State
                && !seen.iter().any(|(v, _)| *v == number)
                && self.complete
            {
                let name = variable.name.clone();
                self.report(
                    Diagnostic::error(
                        format!("state '{name}' has no derivative"),
                        variable.span,
                        "how does it move?",
                    )
                    .help(format!("add `{name}' = …`")),
                );
            }
        }
        all
    }

    /// Reads a constraint once, at its statement or at the first use of its multiplier.
    pub(in crate::elaborate) fn constraint(
        &mut self,
        statement: usize,
        used: Span,
    ) -> Option<Checked> {
        if let Some(known) = self.constraints.get(&statement) {
            return known.clone();
        }
        self.enter(statement, used)?;
        let checked = self.read_constraint(statement);
        self.leave();
        self.constraints.insert(statement, checked.clone());
        checked
    }

    fn read_constraint(&mut self, statement: usize) -> Option<Checked> {
        let StatementKind::Constraint { name, family, left, right } =
            &self.file.statements[statement].kind
        else {
            unreachable!("asked for constraints only")
        };
        let mut scope = Scope::new(expression::FORMULA, "a constraint");
        let ranges = self.ranges(family, &mut scope);
        let (l, r) = (self.value(left, &mut scope), self.value(right, &mut scope));
        let (ranges, l, r) = (ranges?, l?, r?);
        if l.shape != r.shape {
            // A vector or matrix equal to 0 means every component.
            if r.value() != Some(0.0) {
                return self.refuse(
                    Diagnostic::error(
                        format!(
                            "the sides of constraint '{}' have the shapes {} and {}",
                            name.text, l.shape, r.shape
                        ),
                        name.span,
                        "the sides differ",
                    )
                    .related(left.span, format!("{}", l.shape))
                    .related(right.span, format!("{}", r.shape)),
                );
            }
        }
        if (l.depends | r.depends)
            & (expression::POSITION | expression::MOMENTUM | expression::STATE)
            == 0
        {
            return self.refuse(Diagnostic::error(
                format!("constraint '{}' holds no variable", name.text),
                left.span.to(right.span),
                "nothing here moves",
            ));
        }
        let shape = l.shape;
        let span = left.span.to(right.span);
        let value = if r.value() == Some(0.0) {
            l
        } else {
            CheckedExpression::new(Kind::Add(vec![(false, l), (true, r)]), shape, span)
        };
        Some(Checked { name: name.clone(), ranges, value })
    }

    pub(super) fn quantity(
        &mut self,
        name: &ast::Name,
        family: &ast::Ranges,
        value: &ast::Expr,
        place: &'static str,
    ) -> Option<Checked> {
        let mut scope = Scope::new(expression::FORMULA, place);
        if place == OBSERVABLE {
            scope.allowed |= expression::MULTIPLIER;
        }
        let ranges = self.ranges(family, &mut scope);
        let statement = match self.symbols.get(&name.text)?.symbol {
            Symbol::Definition(s) => s,
            _ => return None, // a duplicate, reported
        };
        if self.statement_name(statement).1 != name.span {
            return None;
        }
        if family.ranges.is_empty()
            && let Some(known) = self.defined.get(&statement)
        {
            return known.clone().map(|value| Checked {
                name: name.clone(),
                ranges: CheckedRanges::default(),
                value,
            });
        }
        let value = self.value_of(statement, value, &mut scope);
        if family.ranges.is_empty() {
            self.defined.insert(statement, value.clone());
        }
        let value = value?;
        let excess = value.depends & expression::DRAW;
        if excess != 0 {
            return None;
        }
        Some(Checked { name: name.clone(), ranges: ranges?, value })
    }

    pub(super) fn measure(&mut self, statement: usize) -> Option<CheckedMeasure> {
        let StatementKind::Measure { name, statistic, over, values, every, from } =
            &self.file.statements[statement].kind
        else {
            unreachable!("asked for measures only")
        };
        if !STATISTICS.contains(&statistic.text.as_str()) {
            let message = format!("unknown statistic '{}'", shorten(&statistic.text));
            let meant = did_you_mean(&statistic.text, STATISTICS);
            let help =
                meant.map_or(format!("write {FORMS}"), |meant| format!("did you mean '{meant}'?"));
            return self.refuse(Diagnostic::error(message, statistic.span, "not known").help(help));
        }
        let of_momenta = statistic.text == "temperature";
        let fixed =
            Scope::new(expression::PARAMETER | expression::TABLE, "the numbers of a measure");
        let (value, numbers) = match (values.split_first(), of_momenta) {
            (Some((value, numbers)), false) => (Some(value), numbers),
            (None, true) if self.hamiltonian.is_some() => (None, &values[..]),
            (_, true) => {
                let (reason, help) = match self.hamiltonian {
                    Some(_) => ("the temperature is that of all momenta", "write temperature()"),
                    None => {
                        ("the temperature is that of momenta", "average an expression: mean(EXPR)")
                    }
                };
                return self.refuse(
                    Diagnostic::error(reason, statistic.span, "not known here").help(help),
                );
            }
            (None, false) => {
                let message = format!("'{}' is of an expression", statistic.text);
                return self.refuse(
                    Diagnostic::error(message, statistic.span, "nothing is measured")
                        .help(format!("write {FORMS}")),
                );
            }
        };
        let mut scope = Scope::new(expression::FORMULA | expression::MULTIPLIER, "a measure");
        let ranges = self.ranges(over, &mut scope);
        let value = match value {
            Some(value) => self.value_of(statement, value, &mut scope),
            None => Some(CheckedExpression::number(0.0, statistic.span)),
        };
        let numbers: Vec<Option<Ex>> = numbers
            .iter()
            .map(|e| self.scalar(e, &mut fixed.clone(), "a number of a measure"))
            .collect();
        let mut time = |e: &Option<ast::Expr>| match e {
            Some(e) => self.scalar(e, &mut fixed.clone(), "a time").map(Some),
            None => Some(None),
        };
        let (every, from) = (time(every), time(from));
        let quantity = Checked { name: name.clone(), ranges: ranges?, value: value? };
        let numbers = numbers.into_iter().collect::<Option<_>>()?;
        Some(CheckedMeasure {
            quantity,
            statistic: statistic.clone(),
            numbers,
            every: every?,
            from: from?,
        })
    }

    pub(super) fn unused_let(&mut self, statement: usize, family: &ast::Ranges, value: &ast::Expr) {
        let everything = expression::FORMULA | expression::MULTIPLIER | expression::DRAW;
        let mut scope = Scope::new(everything, "a let");
        if family.ranges.is_empty() {
            if !self.defined.contains_key(&statement) {
                let e = self.value_of(statement, value, &mut scope);
                self.defined.insert(statement, e);
            }
            return;
        }
        if !self.applied.keys().any(|(s, _)| *s == statement) {
            self.ranges(family, &mut scope);
            self.value_of(statement, value, &mut scope);
        }
    }
}

/// Collects the terms of a nested sum that are added, including the sums themselves.
fn terms_of(e: &Ex, out: &mut Vec<Ex>) {
    out.push(e.clone());
    if let Kind::Add(terms) = &e.kind {
        terms
            .iter()
            .filter(|(subtracted, _)| !subtracted)
            .for_each(|(_, term)| terms_of(term, out));
    }
}
