//! Uses of definitions: each definition is read once, never in a cycle, and only once all that it
//! depends on is known.

use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::names::Scope;
use crate::elaborate::{Application, Elaborator};
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use holonome_words::option;
use std::sync::Arc;

impl Elaborator<'_> {
    /// A `let` function with its arguments.
    pub(super) fn apply(
        &mut self,
        statement: usize,
        parameters: &[ast::Name],
        arguments: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let StatementKind::Let { name, value, .. } = &self.file.statements[statement].kind else {
            unreachable!("only lets have parameters")
        };
        if parameters.len() != arguments.len() {
            let list: Vec<&str> = parameters.iter().map(|p| p.text.as_str()).collect();
            let usage = format!("{}({})", name.text, list.join(", "));
            return self.wrong_count(&name.text, &usage, arguments.len(), span);
        }
        let values: Vec<Option<Ex>> = arguments.iter().map(|a| self.value(a, scope)).collect();
        let values: Vec<Ex> = values.into_iter().collect::<Option<_>>()?;
        let key = application(statement, &values);
        if let Some((known, _)) = self.applied.get(&key) {
            return known.clone();
        }
        self.enter(statement, span)?;
        let mut inner = Scope::new(
            expression::FORMULA | expression::MULTIPLIER | (scope.allowed & expression::DRAW),
            "a let",
        );
        inner.locals =
            parameters.iter().map(|p| p.text.clone()).zip(values.iter().cloned()).collect();
        let result = self.value(value, &mut inner);
        self.leave();
        self.check_premature(&name.text, span, scope)?;
        // Keep the arguments alive as long as their addresses are keys.
        self.applied.insert(key, (result.clone(), values));
        let result = result?;
        self.check_use(&result, &name.text, span, scope)?;
        Some(result)
    }

    /// A `let`, `integral` or `observe` without arguments, with its family's indices.
    pub(super) fn definition(
        &mut self,
        statement: usize,
        name: &str,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let definition = self.file.statements[statement].kind.definition();
        let (family, parameters, value) = definition.expect("the name is that of a definition");
        if !parameters.is_empty() {
            let list: Vec<&str> = parameters.iter().map(|p| p.text.as_str()).collect();
            return self.refuse(
                Diagnostic::error(format!("'{name}' is a function"), span, "without arguments")
                    .help(format!("write {name}({})", list.join(", "))),
            );
        }
        let need = family.ranges.len();
        if indices.len() < need {
            let list: Vec<&str> = family.ranges.iter().map(|r| r.name.text.as_str()).collect();
            return self.refuse(which_member(name, name, &list, span));
        }
        if need == 0 {
            let known = match self.defined.get(&statement) {
                Some(known) => known.clone(),
                None => {
                    self.enter(statement, span)?;
                    // A `let` may stand for an initial value; an integral or observable holds at
                    // every time.
                    let draw = match &self.file.statements[statement].kind {
                        StatementKind::Let { .. } => expression::DRAW,
                        _ => 0,
                    };
                    let mut inner = self.definition_scope(statement, "a definition");
                    inner.allowed |= draw;
                    let result = self.value(value, &mut inner);
                    self.leave();
                    self.check_premature(name, span, scope)?;
                    self.defined.insert(statement, result.clone());
                    result
                }
            };
            let e = known?;
            self.check_use(&e, name, span, scope)?;
            return self.component(e, indices, span, scope);
        }
        let mut values = Vec::with_capacity(need);
        for index in &indices[..need] {
            values.push(self.index_value(index, scope)?);
        }
        let key = application(statement, &values);
        let result = match self.applied.get(&key) {
            Some((known, _)) => known.clone(),
            None => {
                self.enter(statement, span)?;
                let mut inner = self.definition_scope(statement, "a let");
                // The ranges are read with the family's own indices, the body with the index values
                // of this use.
                let ranges = self.ranges(family, &mut inner);
                inner.locals = family
                    .ranges
                    .iter()
                    .map(|r| r.name.text.clone())
                    .zip(values.iter().cloned())
                    .collect();
                let body = self.value(value, &mut inner);
                self.leave();
                self.check_premature(name, span, scope)?;
                let result = match (ranges, body) {
                    (Some(ranges), Some(body)) => {
                        let shape = body.shape;
                        let checks = values.iter().cloned().zip(ranges.ranges).collect();
                        Some(CheckedExpression::new(
                            Kind::Member(name.to_string(), checks, ranges.filter, body),
                            shape,
                            span,
                        ))
                    }
                    _ => None,
                };
                self.applied.insert(key, (result.clone(), values));
                result
            }
        };
        let e = result?;
        self.check_use(&e, name, span, scope)?;
        self.component(e, &indices[need..], span, scope)
    }

    /// Scope of a `let`, `integral` or `observe`. An integral is one along the exact motion, where
    /// no multipliers are known.
    fn definition_scope(&self, statement: usize, place: &'static str) -> Scope {
        let all = expression::FORMULA;
        match &self.file.statements[statement].kind {
            StatementKind::Integral { .. } => Scope::new(all, "an integral"),
            _ => Scope::new(all | expression::MULTIPLIER, place),
        }
    }

    pub(super) fn hamiltonian_value(&mut self, span: Span, scope: &mut Scope) -> Option<Ex> {
        let statement = self.hamiltonian.expect("asked for only where there is one");
        let known = match self.defined.get(&statement) {
            Some(known) => known.clone(),
            None => {
                self.enter(statement, span)?;
                let StatementKind::Hamiltonian { value, .. } =
                    &self.file.statements[statement].kind
                else {
                    unreachable!()
                };
                let mut inner = Scope::new(expression::FORMULA, "the Hamiltonian");
                let result = self.value(value, &mut inner);
                self.leave();
                self.check_premature("H", span, scope)?;
                self.defined.insert(statement, result.clone());
                result
            }
        };
        let e = known?;
        self.check_use(&e, "H", span, scope)?;
        Some(e)
    }

    /// Refuses a definition that uses parameters or variables before they are known: in sizes,
    /// ranges, shapes, parameters.
    fn check_premature(&mut self, name: &str, span: Span, scope: &Scope) -> Option<()> {
        let needs = self.premature;
        if needs == 0 {
            return Some(());
        }
        if needs & !scope.allowed != 0 {
            self.premature = 0;
            let what = match needs {
                expression::PARAMETER => "a parameter",
                expression::MULTIPLIER => "a multiplier",
                _ => "the state or on time",
            };
            self.allow(needs, &format!("'{name}', which depends on {what},"), span, scope);
        }
        None
    }

    /// Refuses a definition that depends on more than may be used here.
    fn check_use(&mut self, e: &Ex, name: &str, span: Span, scope: &Scope) -> Option<()> {
        let excess = e.depends & !(scope.allowed | expression::INDEX);
        if excess == 0 {
            return Some(());
        }
        if excess & expression::DRAW != 0 {
            return self.refuse(Diagnostic::error(
                format!(
                    "'{name}' draws a random number: normal() and uniform() stand only in initial values and in {vary}",
                    vary = option("vary")
                ),
                span,
                format!("not in {}", scope.place),
            ));
        }
        let what =
            if excess == expression::MULTIPLIER { "a multiplier" } else { "the state or on time" };
        self.allow(excess, &format!("'{name}', which depends on {what},"), span, scope)
    }

    /// Begins to read a statement's formula; reports a cycle if the formula is being read already.
    pub(in crate::elaborate) fn enter(&mut self, statement: usize, span: Span) -> Option<()> {
        if let Some(start) = self.entered.iter().position(|&s| s == statement) {
            let circle = self.circle(&self.entered[start..]);
            if self.recursive.insert(circle[0].1) {
                self.report(recursion(&circle, span));
            }
            return None;
        }
        self.entered.push(statement);
        Some(())
    }

    /// Names and spans of a cycle of statements, starting with the first one in the file: it is
    /// reported once, whichever statement was read first.
    pub(in crate::elaborate) fn circle(&self, statements: &[usize]) -> Vec<(String, Span)> {
        let mut circle: Vec<(String, Span)> =
            statements.iter().map(|&s| self.statement_name(s)).collect();
        let first = (0..circle.len()).min_by_key(|&k| circle[k].1.start).unwrap_or(0);
        circle.rotate_left(first);
        circle
    }

    /// Ends the reading begun by [`Elaborator::enter`].
    pub(in crate::elaborate) fn leave(&mut self) {
        self.entered.pop();
    }
}

/// The key of a definition with arguments.
fn application(statement: usize, arguments: &[Ex]) -> Application {
    (statement, arguments.iter().map(|argument| Arc::as_ptr(argument) as usize).collect())
}

/// Finding for a family used without its indices, as in `written`.
pub(super) fn which_member(name: &str, written: &str, indices: &[&str], span: Span) -> Diagnostic {
    let what =
        if indices.len() == 1 { "index".to_string() } else { format!("{} indices", indices.len()) };
    Diagnostic::error(format!("'{name}' is a family and needs its {what}"), span, "which member?")
        .help(format!("write {written}[{}]", indices.join(", ")))
}

/// Finding for a cycle of definitions, at the first of them.
pub(in crate::elaborate) fn recursion(circle: &[(String, Span)], used: Span) -> Diagnostic {
    let (name, place) = &circle[0];
    let chain: Vec<&str> = circle.iter().map(|(n, _)| n.as_str()).chain([name.as_str()]).collect();
    let message = match circle.len() {
        1 => format!("'{name}' is defined by itself (recursive)"),
        _ => format!("'{name}' is defined in a circle (recursive): {}", chain.join(" uses ")),
    };
    Diagnostic::error(message, *place, "defined here")
        .help("a definition may only use what does not depend on it")
        .related(used, "used here")
}
