//! Declarations: every name once, and the statements that a whole file must have.

use crate::elaborate::expression::{self, CheckedRanges, Depends};
use crate::elaborate::names::{Declared, Symbol};
use crate::elaborate::{Elaborator, ParameterEntry, TableEntry, VariableEntry, VariableRole};
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

impl Elaborator<'_> {
    pub(super) fn declare(&mut self) {
        for (number, statement) in self.file.statements.iter().enumerate() {
            use StatementKind::*;
            let Some(name) = statement.kind.name() else {
                if let Include { path } = &statement.kind {
                    let message = format!("'{}' is not included here", path.text);
                    self.report(Diagnostic::error(message, path.span, "no files are read"));
                    continue;
                }
                match self.hamiltonian {
                    None => self.hamiltonian = Some(number),
                    Some(first) => {
                        let (_, place) = self.statement_name(first);
                        let (_, second) = self.statement_name(number);
                        self.report(
                            Diagnostic::error(
                                "a second hamiltonian",
                                second,
                                "there can be only one",
                            )
                            .help("add the terms in one expression")
                            .related(place, "the first is here"),
                        );
                    }
                }
                continue;
            };
            let symbol = match &statement.kind {
                Derivative { .. } => continue,
                Parameter { .. } => {
                    self.parameters.push(ParameterEntry {
                        statement: number,
                        family: None,
                        value: None,
                        ranges: CheckedRanges::default(),
                    });
                    Symbol::Parameter(self.parameters.len() - 1)
                }
                Size { .. } => Symbol::Size(number),
                Coordinate { .. } => {
                    self.new_variable(number, name, VariableRole::Coordinate, expression::POSITION)
                }
                Momentum { .. } => self.new_variable(
                    number,
                    name,
                    VariableRole::Momentum { of: usize::MAX, velocity: false },
                    expression::MOMENTUM,
                ),
                Velocity { of, .. } => {
                    let momentum = ast::Name { text: format!("p_{}", of.text), span: name.span };
                    let symbol = self.new_variable(
                        number,
                        &momentum,
                        VariableRole::Momentum { of: usize::MAX, velocity: true },
                        expression::MOMENTUM,
                    );
                    self.declare_name(&momentum, symbol);
                    Symbol::Velocity
                }
                State { .. } => {
                    self.new_variable(number, name, VariableRole::State, expression::STATE)
                }
                Constraint { .. } => Symbol::Constraint(number),
                Integral { .. } | Let { .. } | Observe { .. } => Symbol::Definition(number),
                Measure { .. } => Symbol::Measure,
                Table { .. } => {
                    self.tables.push(TableEntry::failed(&name.text));
                    Symbol::Table(self.tables.len() - 1)
                }
                Hamiltonian { .. } | Include { .. } => unreachable!("has no name"),
            };
            if name.text == "H" && matches!(statement.kind, Constraint { .. } | Integral { .. }) {
                self.report(
                    Diagnostic::error(
                        "'H' names the Hamiltonian in options and results",
                        name.span,
                        "taken",
                    )
                    .help("choose another name"),
                );
            }
            self.declare_name(name, symbol);
            if let Let { parameters, .. } = &statement.kind {
                for (k, parameter) in parameters.iter().enumerate() {
                    if let Some(first) = parameters[..k].iter().find(|p| p.text == parameter.text) {
                        let message = format!(
                            "'{}' is twice among the parameters of '{}'",
                            parameter.text, name.text
                        );
                        self.report(
                            Diagnostic::error(message, parameter.span, "second time")
                                .related(first.span, "first time"),
                        );
                    }
                }
            }
        }
    }

    fn new_variable(
        &mut self,
        statement: usize,
        name: &ast::Name,
        role: VariableRole,
        depends: Depends,
    ) -> Symbol {
        self.variables.push(VariableEntry {
            statement,
            name: name.text.clone(),
            span: name.span,
            role,
            depends,
            family: None,
        });
        Symbol::Variable(self.variables.len() - 1)
    }

    fn declare_name(&mut self, name: &ast::Name, symbol: Symbol) {
        if let Some(first) = self.symbols.get(&name.text) {
            let first = first.span;
            self.report(
                Diagnostic::error(
                    format!("'{}' is declared twice", name.text),
                    name.span,
                    "second declaration",
                )
                .help("every name is declared once")
                .related(first, "first declared here"),
            );
        } else {
            self.symbols.insert(name.text.clone(), Declared { symbol, span: name.span });
        }
    }

    /// True if this is the declaration of the name that counts, not a second one.
    pub(super) fn declares(&self, name: &ast::Name) -> bool {
        self.symbols.get(&name.text).is_some_and(|d| d.span == name.span)
    }

    /// Reports statements that a whole file must have and that are missing.
    pub(super) fn completeness(&mut self) {
        if !self.complete {
            return; // a missing statement may be one that could not be read
        }
        let place = self.file.statements.first().map_or(Span::default(), |s| s.span);
        let coordinate = self.variables.iter().position(|v| v.role == VariableRole::Coordinate);
        let state = self.variables.iter().position(|v| v.role == VariableRole::State);
        if let (Some(state), Some(h)) = (state, self.hamiltonian) {
            let (_, h) = self.statement_name(h);
            let (s, first) = (
                self.variables[state].span,
                if h.start < self.variables[state].span.start {
                    h
                } else {
                    self.variables[state].span
                },
            );
            let second = if first == h { s } else { h };
            self.report(
                Diagnostic::error(
                    "a file holds either a hamiltonian or states, not both",
                    second,
                    "does not go with",
                )
                .related(first, "this"),
            );
            return;
        }
        if let (Some(state), Some(coordinate)) = (state, coordinate) {
            let (s, c) = (self.variables[state].span, self.variables[coordinate].span);
            let (first, second) = if s.start < c.start { (s, c) } else { (c, s) };
            self.report(
                Diagnostic::error(
                    "a file holds either coordinates with a hamiltonian or states, not both",
                    second,
                    "does not go with",
                )
                .related(first, "this"),
            );
            return;
        }
        if coordinate.is_none() && state.is_none() {
            self.report(
                Diagnostic::error(
                    "a model needs coordinates (with a hamiltonian) or states (with their derivatives)",
                    place,
                    "no variables in this file",
                )
                .help("for example `coordinate q : R^3 = (0, 0, 1)`, `momentum p of q`, `hamiltonian dot(p, p)/2`"),
            );
            return;
        }
        if let Some(coordinate) = coordinate
            && self.hamiltonian.is_none()
        {
            self.report(
                Diagnostic::error(
                    "there is no hamiltonian",
                    self.variables[coordinate].span,
                    "how do the coordinates move?",
                )
                .help("add `hamiltonian EXPR`, or declare `state`s with their derivatives"),
            );
        }
        for number in 0..self.variables.len() {
            if self.variables[number].role == VariableRole::Coordinate {
                let has = self
                    .variables
                    .iter()
                    .any(|v| matches!(v.role, VariableRole::Momentum { of, .. } if of == number));
                if !has {
                    let name = self.variables[number].name.clone();
                    self.report(
                        Diagnostic::error(
                            format!("coordinate '{name}' has no momentum"),
                            self.variables[number].span,
                            "no conjugate momentum",
                        )
                        .help(format!(
                            "add `momentum p of {name}`; without a value it starts at 0"
                        )),
                    );
                }
            }
        }
    }
}
