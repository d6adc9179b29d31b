//! Parameters, each read after those that its value uses.

use super::replace;
use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, CheckedRanges, Kind};
use crate::elaborate::names::{Scope, Symbol};
use crate::elaborate::resolve::DEEPEST;
use crate::elaborate::shape::Shape;
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::Diagnostic;

impl Elaborator<'_> {
    pub(super) fn parameter_families(&mut self) {
        for number in 0..self.parameters.len() {
            let StatementKind::Parameter { name, family, .. } =
                &self.file.statements[self.parameters[number].statement].kind
            else {
                unreachable!()
            };
            // Scalars for now: the shape is that of the value, read below.
            if let Some((family, ranges)) = self.family(name, family, Some(Shape::Scalar)) {
                self.parameters[number].family = Some(family);
                self.parameters[number].ranges = ranges;
            }
        }
        self.parameters_known = true;
        // A parameter's shape follows from its value, which may use other parameters: read them in
        // order of need.
        let mut state = vec![0u8; self.parameters.len()];
        for number in 0..self.parameters.len() {
            self.parameter_value(number, &mut state, 0);
        }
    }

    /// Reads parameter `number` after those that it uses.
    fn parameter_value(&mut self, number: usize, state: &mut Vec<u8>, depth: usize) {
        const READING: u8 = 1;
        const READ: u8 = 2;
        if state[number] == READ {
            return;
        }
        let StatementKind::Parameter { name, family, value } =
            &self.file.statements[self.parameters[number].statement].kind
        else {
            unreachable!()
        };
        if state[number] == READING {
            self.report(Diagnostic::error(
                format!("parameter '{}' is defined by itself (recursive)", name.text),
                name.span,
                "recursive",
            ));
            self.parameters[number].family = None;
            state[number] = READ;
            return;
        }
        if depth > DEEPEST {
            self.report(Diagnostic::error(
                format!(
                    "parameter '{}' stands at the end of more than {DEEPEST} that use each other",
                    name.text
                ),
                name.span,
                "too deep",
            ));
            self.parameters[number].family = None;
            state[number] = READ;
            return;
        }
        state[number] = READING;
        let mut used = Vec::new();
        names_in(value, &mut used);
        let statement = self.parameters[number].statement;
        if self.varied.contains(&statement) {
            used.retain(|name| name != replace::TRAJECTORY && name != replace::TRAJECTORIES);
        }
        for used in used {
            match self.symbols.get(&used).map(|d| d.symbol) {
                Some(Symbol::Parameter(other)) => self.parameter_value(other, state, depth + 1),
                Some(Symbol::Definition(definition)) => {
                    // A `let` of parameters: the parameters that it uses come first too.
                    let mut inner = Vec::new();
                    self.names_behind(definition, &mut inner);
                    for name in inner {
                        if let Some(Symbol::Parameter(other)) =
                            self.symbols.get(&name).map(|d| d.symbol)
                        {
                            self.parameter_value(other, state, depth + 1);
                        }
                    }
                }
                _ => {}
            }
        }
        if state[number] == READ {
            return; // reported as recursive meanwhile
        }
        state[number] = READ;
        self.parameter_order.push(number);
        let ranges = self.parameters[number].ranges.clone();
        let mut scope = Scope::new(
            expression::PARAMETER | expression::INDEX | expression::TABLE,
            "a parameter",
        );
        bind(&mut scope, family, &ranges);
        self.let_vary(statement, &mut scope);
        let checked = self.value(value, &mut scope);
        match checked {
            Some(e) => {
                if let Some(family) = &mut self.parameters[number].family {
                    family.shape = e.shape;
                }
                self.parameters[number].value = Some(e);
            }
            None => self.parameters[number].family = None,
        }
    }

    /// Collects the names that a definition uses, directly and through other definitions.
    fn names_behind(&self, definition: usize, names: &mut Vec<String>) {
        let mut seen = rustc_hash::FxHashSet::from_iter([definition]);
        let mut stack = vec![definition];
        while let Some(definition) = stack.pop() {
            let Some((_, _, value)) = self.file.statements[definition].kind.definition() else {
                continue;
            };
            let mut used = Vec::new();
            names_in(value, &mut used);
            for name in &used {
                if let Some(Symbol::Definition(other)) = self.symbols.get(name).map(|d| d.symbol)
                    && seen.insert(other)
                {
                    stack.push(other);
                }
            }
            names.extend(used);
        }
    }
}

/// Adds a family's indices to a scope.
fn bind(scope: &mut Scope, written: &ast::Ranges, ranges: &CheckedRanges) {
    for (name, range) in written.ranges.iter().zip(&ranges.ranges) {
        scope.locals.push((
            name.name.text.clone(),
            CheckedExpression::new(Kind::Index(range.index), Shape::Scalar, range.span),
        ));
    }
}

/// Collects the names in an expression of the syntax tree.
fn names_in(e: &ast::Expr, out: &mut Vec<String>) {
    use ast::ExprKind::*;
    match &e.kind {
        Number(_) => {}
        Name(name) => out.push(name.clone()),
        Member(base, _) => names_in(base, out),
        Index(base, list) => {
            names_in(base, out);
            list.iter().for_each(|x| names_in(x, out));
        }
        Call(function, list) => {
            out.push(function.text.clone());
            list.iter().for_each(|x| names_in(x, out));
        }
        Unary(_, a) => names_in(a, out),
        Binary(_, _, a, b) => {
            names_in(a, out);
            names_in(b, out);
        }
        Vector(list) => list.iter().for_each(|x| names_in(x, out)),
        Sum(ranges, body) => {
            for range in &ranges.ranges {
                names_in(&range.low, out);
                names_in(&range.high, out);
            }
            ranges.filter.iter().for_each(|f| names_in(f, out));
            names_in(body, out);
        }
    }
}
