//! Replacement of values in the file by those of `--set`, `--vary` and `--each`.

use crate::elaborate::expression::{self, CheckedExpression, Kind};
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, GivenValue, Variations};
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
    for (target, new) in set {
        if put(file, target, new).is_empty() {
            let finding = no_such_value(file, target, ["set", "parameter, size or initial value"]);
            diagnostics.push(finding);
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
    for (number, value) in variations.given.iter().enumerate() {
        let target = &value.name;
        let end = target.text.find(['[', '.']).unwrap_or(target.text.len());
        let (name, selection) = (target.text[..end].trim(), &target.text[end..]);
        if let Some(finding) = not_varied(file, target, (value.by, name), set, vary) {
            diagnostics.push(finding);
            continue;
        }
        let before = given.len();
        let statements = file.statements.iter().enumerate();
        let named = statements.filter(|(_, s)| has_value(s.kind) && s.name.text == name);
        given.extend(named.map(|(statement, _)| Given { statement, selection, value, number }));
        if given.len() == before {
            let target = ast::Name { text: name.to_string(), ..target.clone() };
            diagnostics.push(no_such_value(file, &target, ["give", "parameter or initial value"]));
        }
    }
    Replaced { varied, given, diagnostics }
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

/// Finding for a `target` that cannot be set, varied or given (`verb`), because no `what` has its name.
fn no_such_value(file: &ast::File, target: &ast::Name, [verb, what]: [&str; 2]) -> Diagnostic {
    let can =
        |s: &&ast::Statement| has_value(s.kind) && (verb == "set" || s.kind != StatementKind::Size);
    let names: Vec<&str> =
        file.statements.iter().filter(can).map(|s| s.name.text.as_str()).collect();
    let message = format!("cannot {verb} '{}': no {what} has this name", target.text);
    Diagnostic::error(message, target.span, "unknown").suggest(
        &target.text,
        names.iter().copied(),
        || match verb {
            "set" => format!("these can be set: {}", names.join(", ")),
            "vary" => format!("these can be varied: {}", names.join(", ")),
            _ => format!("these can be given: {}", names.join(", ")),
        },
    )
}
