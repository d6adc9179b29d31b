//! Uses of definitions: each definition is read once, never in a cycle, and only once all that it
//! depends on is known.

use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::names::Scope;
use crate::elaborate::{Application, Elaborator};
use crate::syntax::ast::{self, Name, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;
use holonome_words::option;
use std::sync::Arc;

impl Elaborator<'_> {
    /// A `let` function with its arguments.
    pub(super) fn apply(
        &mut self,
        number: usize,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let Statement { name, parameters, values: body, .. } = self.statement(number);
        if parameters.len() != arguments.len() {
            return self.wrong_count(&name.text, &usage(name, parameters), arguments.len(), span);
        }
        let values = self.values(arguments, "this place")?;
        let key = application(number, &values);
        if let Some((known, _)) = self.applied.get(&key) {
            return known.clone();
        }
        self.enter(number, span)?;
        let mut inner = self.definition_scope(number);
        inner.allowed |= self.scope.allowed & expression::DRAW;
        inner.locals =
            parameters.iter().map(|p| p.text.clone()).zip(values.iter().cloned()).collect();
        let result = self.within(inner, |this| this.value(&body[0]));
        self.leave();
        self.check_premature(&name.text, span)?;
        // Keep the arguments alive as long as their addresses are keys.
        self.applied.insert(key, (result.clone(), values));
        let result = result?;
        self.check_use(&result, &name.text, span)?;
        Some(result)
    }

    /// A `let`, `integral` or `observe` without arguments, with its family's indices.
    pub(super) fn definition(
        &mut self,
        number: usize,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let Statement { name, family, parameters, .. } = self.statement(number);
        if !parameters.is_empty() {
            let message = format!("'{}' is a function", name.text);
            let finding = Diagnostic::error(message, span, "without arguments");
            return self.refuse(finding.help(format!("write {}", usage(name, parameters))));
        }
        let need = family.ranges.len();
        if indices.len() < need {
            let list: Vec<&str> = family.ranges.iter().map(|r| r.name.text.as_str()).collect();
            return self.refuse(which_member(&name.text, &name.text, &list, span));
        }
        let (own, rest) = indices.split_at(need);
        let e = match need {
            0 => self.known_value(number, span)?,
            _ => {
                let e = self.member_of_definition(number, own, span)?;
                self.check_use(&e, &name.text, span)?;
                e
            }
        };
        self.component(e, rest, span)
    }

    /// Member of a family of definitions: its body with the index values of this use.
    fn member_of_definition(
        &mut self,
        number: usize,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let Statement { name, family, values: body, .. } = self.statement(number);
        let mut values = Vec::with_capacity(indices.len());
        for index in indices {
            values.push(self.index_value(index)?);
        }
        let key = application(number, &values);
        if let Some((known, _)) = self.applied.get(&key) {
            return known.clone();
        }
        self.enter(number, span)?;
        // The ranges are read with the family's own indices, the body with the index values of this
        // use.
        let names = family.ranges.iter().map(|range| range.name.text.clone());
        let locals = names.zip(values.iter().cloned()).collect();
        let (set, body) = self.within(self.definition_scope(number), |this| {
            let set = this.index_set(family);
            this.scope.locals = locals;
            (set, this.value(&body[0]))
        });
        self.leave();
        self.check_premature(&name.text, span)?;
        let member = |(set, body): (IndexSet, Ex)| {
            let shape = body.shape;
            let kind = Kind::Definition(name.text.clone(), values.clone(), set, body);
            CheckedExpression::new(kind, shape, span)
        };
        let result = set.zip(body).map(member);
        self.applied.insert(key, (result.clone(), values));
        result
    }

    /// Scope of the formula of a definition or of the Hamiltonian.
    pub(in crate::elaborate) fn definition_scope(&self, number: usize) -> Scope {
        let statement = self.statement(number);
        let (more, place) = match statement.kind {
            StatementKind::Hamiltonian => (0, "the Hamiltonian"),
            StatementKind::Lagrangian => {
                let inputs = expression::FORMULA & !expression::MOMENTUM | expression::VELOCITY;
                return Scope::new(inputs, "the Lagrangian");
            }
            // An integral is one along the exact motion, where no multipliers are known.
            StatementKind::Integral => (0, "an integral"),
            StatementKind::Observe => (expression::FOLLOWING, "an observable"),
            // It may stand for an initial value.
            _ if statement.family.ranges.is_empty() && statement.parameters.is_empty() => {
                (expression::FOLLOWING | expression::DRAW, "a let")
            }
            _ => (expression::FOLLOWING, "a let"),
        };
        Scope::new(expression::FORMULA | more, place)
    }

    /// The value of a definition or of the Hamiltonian, read at its first use.
    pub(in crate::elaborate) fn known_value(&mut self, number: usize, span: Span) -> Option<Ex> {
        let ast::Statement { name, values, .. } = self.statement(number);
        if !self.defined.contains_key(&number) {
            self.enter(number, span)?;
            let value = self.within(self.definition_scope(number), |this| this.value(&values[0]));
            self.leave();
            self.check_premature(&name.text, span)?;
            self.defined.insert(number, value);
        }
        let e = self.defined[&number].clone()?;
        self.check_use(&e, &name.text, span)?;
        Some(e)
    }

    /// Refuses a definition that uses parameters or variables before they are known: in sizes,
    /// ranges, shapes, parameters.
    fn check_premature(&mut self, name: &str, span: Span) -> Option<()> {
        let needs = self.premature;
        if needs == 0 {
            return Some(());
        }
        if needs & !self.scope.allowed != 0 {
            self.premature = 0;
            let what = match needs {
                expression::PARAMETER => "a parameter",
                _ if needs & expression::MULTIPLIER != 0 => "a multiplier",
                expression::VELOCITY | expression::ACCELERATION => "a velocity",
                _ => "the state or on time",
            };
            self.allow(needs, &format!("'{name}', which depends on {what},"), span);
        }
        None
    }

    /// Refuses a definition that depends on more than may be used here.
    pub(in crate::elaborate) fn check_use(&mut self, e: &Ex, name: &str, span: Span) -> Option<()> {
        let excess = e.depends & !(self.scope.allowed | expression::INDEX);
        if excess == 0 {
            return Some(());
        }
        if excess & expression::DRAW != 0 {
            let message = format!(
                "'{name}' draws a random number: normal() and uniform() stand only in initial values and in {vary}",
                vary = option("vary")
            );
            let label = format!("not in {}", self.scope.place);
            return self.refuse(Diagnostic::error(message, span, label));
        }
        let what = match excess {
            _ if excess & expression::MULTIPLIER != 0 => "a multiplier",
            _ if excess & !expression::FOLLOWING == 0 => "a velocity",
            _ => "the state or on time",
        };
        self.allow(excess, &format!("'{name}', which depends on {what},"), span)
    }

    /// Begins to read a statement's formula; reports a cycle if the formula is being read already.
    pub(in crate::elaborate) fn enter(&mut self, number: usize, span: Span) -> Option<()> {
        if let Some(start) = self.entered.iter().position(|&s| s == number) {
            let circle = self.circle(&self.entered[start..]);
            if self.recursive.insert(circle[0].span) {
                self.report(recursion(&circle, span));
            }
            return None;
        }
        self.entered.push(number);
        Some(())
    }

    /// Names of a cycle of statements, starting with the first one in the file: it is reported
    /// once, whichever statement was read first.
    fn circle(&self, statements: &[usize]) -> Vec<Name> {
        let mut circle: Vec<Name> =
            statements.iter().map(|&s| self.statement(s).name.clone()).collect();
        let first = (0..circle.len()).min_by_key(|&k| circle[k].span.start).unwrap_or(0);
        circle.rotate_left(first);
        circle
    }

    /// Ends the reading begun by [`Elaborator::enter`].
    pub(in crate::elaborate) fn leave(&mut self) {
        self.entered.pop();
    }
}

/// Use of a function: its name with its parameters.
fn usage(name: &Name, parameters: &[Name]) -> String {
    let list: Vec<&str> = parameters.iter().map(|p| p.text.as_str()).collect();
    format!("{}({})", name.text, list.join(", "))
}

/// The key of a definition with arguments.
fn application(number: usize, arguments: &[Ex]) -> Application {
    (number, arguments.iter().map(|argument| Arc::as_ptr(argument) as usize).collect())
}

/// Finding for a family used without its indices, as in `written`.
pub(super) fn which_member(name: &str, written: &str, indices: &[&str], span: Span) -> Diagnostic {
    let what =
        if indices.len() == 1 { "index".to_string() } else { format!("{} indices", indices.len()) };
    Diagnostic::error(format!("'{name}' is a family and needs its {what}"), span, "which member?")
        .help(format!("write {written}[{}]", indices.join(", ")))
}

/// Finding for a cycle of definitions, at the first of them.
fn recursion(circle: &[Name], used: Span) -> Diagnostic {
    let first = &circle[0];
    let chain: Vec<&str> = circle.iter().chain([first]).map(|name| name.text.as_str()).collect();
    let message = match circle.len() {
        1 => format!("'{}' is defined by itself (recursive)", first.text),
        _ => {
            let chain = chain.join(" uses ");
            format!("'{}' is defined in a circle (recursive): {chain}", first.text)
        }
    };
    Diagnostic::error(message, first.span, "defined here")
        .help("a definition may only use what does not depend on it")
        .related(used, "used here")
}
