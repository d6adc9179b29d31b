//! Replacement of values in the file by those of `--set`, `--vary` and `--each`.

use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::model::Family;
use crate::elaborate::names::momentum_of;
use crate::elaborate::shape::Shape;
use crate::elaborate::statements::lagrangian::{add_velocities, velocity_named};
use crate::elaborate::{Elaborator, GivenValue, Variations};
use crate::graph::op::Binary;
use crate::syntax::ast;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;
use holonome_words::option;
use rustc_hash::FxHashSet;

/// Name of a trajectory's number in `--vary`.
pub(super) const TRAJECTORY: &str = "i";
/// Name of the number of trajectories in `--vary`.
pub(super) const TRAJECTORIES: &str = "N";

impl Elaborator<'_> {
    /// Allows a varying value to draw and to use `i` and `N`, which hide all other names.
    pub(super) fn let_vary(&mut self, statement: usize) {
        if !self.varied.contains(&statement) {
            return;
        }
        self.scope.allowed |= expression::DRAW;
        let none = Span::default();
        let trajectory = CheckedExpression::new(Kind::Trajectory, Shape::Scalar, none);
        let count = CheckedExpression::number(self.trajectories as f64, none);
        self.scope.locals.push((TRAJECTORY.to_string(), trajectory));
        self.scope.locals.push((TRAJECTORIES.to_string(), count));
    }
}

/// A formula of some members or a component of a value, in place of its own.
#[derive(Clone)]
pub(in crate::elaborate) struct PartialValue {
    /// Number of the statement.
    pub statement: usize,
    /// Name and what it selects, as written.
    pub name: ast::Name,
    pub value: ast::Expr,
}

impl Elaborator<'_> {
    /// The value of the member of a family with the indices `at`, `whole`, with the parts of it that
    /// are set.
    pub(super) fn with_parts(
        &mut self,
        whole: Ex,
        statement: usize,
        family: &Family,
        at: &[Ex],
    ) -> Option<Ex> {
        let parts: Vec<PartialValue> =
            self.parts.iter().filter(|part| part.statement == statement).cloned().collect();
        let family = Family { shape: whole.shape, ..family.clone() };
        parts.into_iter().try_fold(whole, |whole, part| self.with_part(whole, &part, &family, at))
    }

    fn with_part(
        &mut self,
        whole: Ex,
        PartialValue { name, value, .. }: &PartialValue,
        family: &Family,
        at: &[Ex],
    ) -> Option<Ex> {
        let selection = &name.text[end_of_base(&name.text)..];
        let selected = match family.selection(selection, name.span) {
            Ok(selected) => selected,
            Err(finding) => return self.refuse(finding),
        };
        let new = self.value(value)?;
        let (width, one) = (family.shape.len(), selected.len());
        let (member, component) = (selected.start / width.max(1), selected.start % width.max(1));
        let (shape, needed) = (new.shape, if one < width { Shape::Scalar } else { family.shape });
        if shape != needed {
            let message = format!("'{}' is in {needed}, and the value is in {shape}", name.text);
            return self.refuse(Diagnostic::error(message, value.span, "of another shape"));
        }
        let span = value.span;
        let new = if one < width { with_component(&whole, component, new) } else { new };
        let mut rest = member;
        let mut condition: Option<Ex> = None;
        for (at, &(low, high)) in at.iter().zip(&family.bounds).rev() {
            let count = (high - low + 1).max(1) as usize;
            let index = low + (rest % count) as i64;
            rest /= count;
            let own = Kind::Binary(
                Binary::Equal,
                at.clone(),
                CheckedExpression::number(index as f64, span),
            );
            let own = CheckedExpression::new(own, Shape::Condition, span);
            condition = Some(match condition {
                None => own,
                Some(inner) => {
                    let both = Kind::Binary(Binary::And, own, inner);
                    CheckedExpression::new(both, Shape::Condition, span)
                }
            });
        }
        Some(match condition {
            None => new,
            Some(condition) => {
                CheckedExpression::new(Kind::Select(condition, new, whole), family.shape, span)
            }
        })
    }
}

/// A vector or matrix with another number at `place`, counted row by row.
fn with_component(whole: &Ex, place: usize, new: Ex) -> Ex {
    let span = new.span;
    let number = |k: usize| CheckedExpression::number((k + 1) as f64, span);
    let stack = |entries, shape| CheckedExpression::new(Kind::Stack(entries), shape, span);
    let entry = |at: usize, indices: Vec<Ex>| match at == place {
        true => new.clone(),
        false => {
            let kind = Kind::Component(whole.clone(), indices);
            CheckedExpression::new(kind, Shape::Scalar, span)
        }
    };
    match whole.shape {
        Shape::Vector(count) => {
            stack((0..count).map(|k| entry(k, vec![number(k)])).collect(), whole.shape)
        }
        Shape::Matrix(rows, columns) => {
            let row = |i: usize| {
                let entries =
                    (0..columns).map(|j| entry(i * columns + j, vec![number(i), number(j)]));
                stack(entries.collect(), Shape::Vector(columns))
            };
            stack((0..rows).map(row).collect(), whole.shape)
        }
        Shape::Scalar | Shape::Condition => new,
    }
}

/// Place at which the name of a value ends, and what it selects begins.
fn end_of_base(name: &str) -> usize {
    name.find(['[', '.']).unwrap_or(name.len())
}

/// A value that is given as numbers, for the statement that declares it.
pub(in crate::elaborate) struct Given<'a> {
    /// Number of the statement.
    pub statement: usize,
    /// Members or component in question, as written behind the name.
    pub selection: &'a str,
    pub value: &'a GivenValue,
    /// Its place among those that are given.
    pub number: usize,
}

/// Statements whose values are replaced, and findings.
pub(in crate::elaborate) struct Replaced<'a> {
    /// Statements with formulas that differ between trajectories.
    pub varied: FxHashSet<usize>,
    pub given: Vec<Given<'a>>,
    pub parts: Vec<PartialValue>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Replaces values in the file by those of `--set` and `--vary`, and finds those that are given as
/// numbers.
pub(in crate::elaborate) fn replace<'a>(
    file: &mut ast::File,
    set: &[(ast::Name, ast::Expr)],
    variations: &'a Variations,
) -> Replaced<'a> {
    let mut diagnostics = Vec::new();
    let vary = &variations.values;
    let mut parts = Vec::new();
    for (target, new) in set {
        let base = target.text[..end_of_base(&target.text)].trim();
        let found = match base == target.text {
            true => put(file, target, new),
            false => with_parts(file, base),
        };
        if found.is_empty() {
            let what = ["set", "parameter, size, initial value or table"];
            diagnostics.push(no_such_value(file, target, what));
        }
        if base != target.text {
            let (name, value) = (target.clone(), new.clone());
            parts.extend(found.first().map(|&statement| PartialValue { statement, name, value }));
        }
    }
    let mut varied = FxHashSet::default();
    for (k, (target, new)) in vary.iter().enumerate() {
        if let Some(finding) = not_varied(file, target, ("vary", &target.text), set, &vary[..k]) {
            diagnostics.push(finding);
            continue;
        }
        let statements = put(file, target, new);
        if statements.is_empty() {
            diagnostics.push(no_such_value(file, target, ["vary", "parameter or initial value"]));
        }
        varied.extend(statements);
    }
    let mut given = Vec::new();
    if variations.given.iter().any(|value| value.by == "start") {
        add_velocities(file);
    }
    for (number, value) in variations.given.iter().enumerate() {
        let target = &value.name;
        let end = end_of_base(&target.text);
        let (name, selection) = (target.text[..end].trim(), &target.text[end..]);
        if let Some(finding) = not_varied(file, target, (value.by, name), set, vary) {
            diagnostics.push(finding);
            continue;
        }
        let before = given.len();
        if value.by == "start" {
            state_momentum(file, name);
        }
        let velocity = (value.by == "start").then(|| velocity_named(file, name)).flatten();
        let statements = file.statements.iter().enumerate();
        let named = statements
            .filter(|&(k, s)| has_value(s.kind) && s.name.text == name || velocity == Some(k));
        given.extend(named.map(|(statement, _)| Given { statement, selection, value, number }));
        if given.len() == before {
            let target = ast::Name { text: name.to_string(), ..target.clone() };
            diagnostics.push(no_such_value(file, &target, ["give", "parameter or initial value"]));
        }
    }
    Replaced { varied, given, parts, diagnostics }
}

/// Finding for a `target` of an option that gives `name` different values, if another option gives
/// it too, or it is a size.
fn not_varied(
    file: &ast::File,
    target: &ast::Name,
    (by, name): (&'static str, &str),
    set: &[(ast::Name, ast::Expr)],
    earlier: &[(ast::Name, ast::Expr)],
) -> Option<Diagnostic> {
    let span = &target.span;
    let find = |list: &[(ast::Name, ast::Expr)]| {
        list.iter().find(|(other, _)| other.text == *name).map(|(first, _)| first.span)
    };
    let [set_option, vary_option, own] = ["set", "vary", by].map(option);
    if let Some(first) = find(earlier) {
        let message = match by {
            "vary" => format!("'{name}' is given by {vary_option} twice"),
            _ => format!("'{name}' is given both by {vary_option} and by {own}"),
        };
        return Some(Diagnostic::error(message, *span, "second time").related(first, "first time"));
    }
    if let Some(first) = find(set) {
        let message = format!("'{name}' is given both by {set_option} and by {own}");
        let finding = Diagnostic::error(message, *span, "varied here").related(first, "set here");
        return Some(finding.help("leave one of them out"));
    }
    let is_size = |s: &&ast::Statement| s.kind == StatementKind::Size && s.name.text == name;
    let size = file.statements.iter().find(is_size)?.name.span;
    let message =
        format!("cannot vary '{name}': it is a size, and all trajectories are of one structure");
    let finding = Diagnostic::error(message, *span, "a size").related(size, "declared here");
    Some(finding.help(format!("sweep once for each of its values, with {set_option} {name}=…")))
}

/// True for a statement whose value can be replaced.
fn has_value(kind: StatementKind) -> bool {
    use StatementKind::*;
    matches!(kind, Parameter | Size | Coordinate | Momentum | Velocity | State)
}

/// Replaces the value that `target` names by `new`; returns the statements that hold it.
fn put(file: &mut ast::File, target: &ast::Name, new: &ast::Expr) -> Vec<usize> {
    let named = |s: &ast::Statement| has_value(s.kind) && s.name.text == target.text;
    let found = file.statements.iter_mut().enumerate().filter(|(_, s)| named(s));
    let replaced = found.map(|(number, statement)| {
        statement.values = vec![new.clone()];
        number
    });
    replaced.collect()
}

/// Turns the statement of an initial velocity into that of the momentum `name`, which is called after
/// its coordinate, if there is one: a state gives momenta.
fn state_momentum(file: &mut ast::File, name: &str) {
    let is_lagrangian = file.statements.iter().any(|s| s.kind == StatementKind::Lagrangian);
    let of_momentum = |s: &&mut ast::Statement| {
        s.kind == StatementKind::Velocity && momentum_of(&s.reference.text) == name
    };
    let found = file.statements.iter_mut().find(of_momentum).filter(|_| !is_lagrangian);
    if let Some(statement) = found {
        (statement.kind, statement.name.text) = (StatementKind::Momentum, name.to_string());
        statement.values.clear();
    }
}

/// Statement of a value with members or components that is called `name`, if there is one.
fn with_parts(file: &ast::File, name: &str) -> Vec<usize> {
    let has_parts = |s: &ast::Statement| has_value(s.kind) && s.kind != StatementKind::Size;
    let named = |s: &ast::Statement| has_parts(s) && s.name.text == name;
    file.statements.iter().position(named).into_iter().collect()
}

/// Finding for a `target` that cannot be set, varied or given (`verb`), because no `what` has its name.
fn no_such_value(file: &ast::File, target: &ast::Name, [verb, what]: [&str; 2]) -> Diagnostic {
    let can = |s: &&ast::Statement| match s.kind {
        StatementKind::Size | StatementKind::Table => verb == "set",
        kind => has_value(kind),
    };
    let names: Vec<&str> =
        file.statements.iter().filter(can).map(|s| s.name.text.as_str()).collect();
    let message = format!("cannot {verb} '{}': no {what} has this name", target.text);
    Diagnostic::error(message, target.span, "unknown").suggest(
        target.text[..end_of_base(&target.text)].trim(),
        names.iter().copied(),
        || match verb {
            "set" => format!("these can be set: {}", names.join(", ")),
            "vary" => format!("these can be varied: {}", names.join(", ")),
            _ => format!("these can be given: {}", names.join(", ")),
        },
    )
}
