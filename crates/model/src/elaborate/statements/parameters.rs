//! Parameters, each read after those that its value uses.

use super::replace;
use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Kind};
use crate::elaborate::names::{Scope, Symbol};
use crate::elaborate::resolve::DEEPEST;
use crate::elaborate::shape::Shape;
use crate::syntax::ast;
use crate::syntax::diagnostic::Diagnostic;

/// Progress of a parameter.
#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Untouched,
    Entered,
    Finished,
}

impl Elaborator<'_> {
    pub(super) fn parameter_families(&mut self) {
        for number in 0..self.parameters.len() {
            // Scalars for now: the shape is that of the value, read below.
            let statement = self.statement(self.parameters[number].statement);
            if let Some((family, ranges)) = self.family(statement, Some(Shape::Scalar)) {
                self.parameters[number].family = Some(family);
                self.parameters[number].ranges = ranges;
            }
        }
        self.parameters_known = true;
        // A parameter's shape follows from its value, which may use other parameters: read them in
        // order of need.
        let mut progress = vec![Progress::Untouched; self.parameters.len()];
        for number in 0..self.parameters.len() {
            self.parameter(number, &mut progress, 0);
        }
    }

    /// Reads parameter `number` after those that it uses.
    fn parameter(&mut self, number: usize, progress: &mut [Progress], depth: usize) {
        let name = &self.statement(self.parameters[number].statement).name;
        let refusal = match progress[number] {
            Progress::Finished => return,
            Progress::Entered => {
                Some(("is defined by itself (recursive)".to_string(), "recursive"))
            }
            Progress::Untouched if depth > DEEPEST => {
                let text = format!("stands at the end of more than {DEEPEST} that use each other");
                Some((text, "too deep"))
            }
            Progress::Untouched => None,
        };
        if let Some((text, label)) = refusal {
            let message = format!("parameter '{}' {text}", name.text);
            self.report(Diagnostic::error(message, name.span, label));
            self.parameters[number].family = None;
            progress[number] = Progress::Finished;
            return;
        }
        progress[number] = Progress::Entered;
        for other in self.parameters_behind(self.parameters[number].statement) {
            self.parameter(other, progress, depth + 1);
        }
        if progress[number] == Progress::Entered {
            progress[number] = Progress::Finished;
            self.parameter_order.push(number);
            self.parameter_value(number);
        }
    }

    /// Reads the value of parameter `number`, whose shape is that of its value.
    fn parameter_value(&mut self, number: usize) {
        let statement = self.parameters[number].statement;
        let ast::Statement { family, values, .. } = self.statement(statement);
        let allowed = expression::PARAMETER | expression::INDEX | expression::TABLE;
        self.scope = Scope::new(allowed, "a parameter");
        for (written, range) in family.ranges.iter().zip(&self.parameters[number].ranges.ranges) {
            let index = Kind::Index(range.index);
            let index = CheckedExpression::new(index, Shape::Scalar, range.span);
            self.scope.locals.push((written.name.text.clone(), index));
        }
        self.let_vary(statement);
        let set = self.parameters[number].ranges.clone();
        let at = set.members();
        let value = self.value_of_members(&values[0], &set, &at).and_then(|value| {
            let family = self.parameters[number].family.clone()?;
            self.with_parts(value, statement, &family, &at)
        });
        let entry = &mut self.parameters[number];
        match (&value, &mut entry.family) {
            (Some(e), Some(family)) => family.shape = e.shape,
            (None, family) => *family = None,
            _ => {}
        }
        entry.value = value;
    }

    /// Parameters that the value of a statement uses, directly and through definitions, in the
    /// order of their names in it.
    fn parameters_behind(&self, statement: usize) -> Vec<usize> {
        let mut used = Vec::new();
        names_in(&self.statement(statement).values[0], &mut used);
        for part in self.parts.iter().filter(|part| part.statement == statement) {
            names_in(&part.value, &mut used);
        }
        if self.varied.contains(&statement) {
            used.retain(|name| name != replace::TRAJECTORY && name != replace::TRAJECTORIES);
        }
        let symbol = |name: &String| self.symbols.get(name).map(|d| d.symbol);
        let mut found = Vec::new();
        for name in &used {
            let mut names = Vec::new();
            match symbol(name) {
                Some(Symbol::Definition(definition)) => self.names_behind(definition, &mut names),
                _ => names.push(name.clone()),
            }
            found.extend(names.iter().filter_map(|name| match symbol(name) {
                Some(Symbol::Parameter(number)) => Some(number),
                _ => None,
            }));
        }
        found
    }

    /// Collects the names that a definition uses, directly and through other definitions.
    fn names_behind(&self, definition: usize, names: &mut Vec<String>) {
        let mut seen = rustc_hash::FxHashSet::from_iter([definition]);
        let mut stack = vec![definition];
        while let Some(definition) = stack.pop() {
            let mut used = Vec::new();
            names_in(&self.statement(definition).values[0], &mut used);
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

/// Collects the names in an expression of the syntax tree.
fn names_in(e: &ast::Expr, out: &mut Vec<String>) {
    match &e.kind {
        ast::ExprKind::Name(name) => out.push(name.clone()),
        ast::ExprKind::Call(function, _) => out.push(function.text.clone()),
        _ => {}
    }
    e.for_each_part(&mut |part| names_in(part, out));
}
