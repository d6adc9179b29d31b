//! Replacement of values in the file by those of `--set` and `--vary`.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Kind};
use crate::elaborate::shape::Shape;
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

/// Replaces values in the file by those of `--set` and `--vary`; returns the statements that vary.
pub(in crate::elaborate) fn replace(
    file: &mut ast::File,
    set: &[(ast::Name, ast::Expr)],
    vary: &[(ast::Name, ast::Expr)],
) -> (FxHashSet<usize>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    for (target, new) in set {
        if put(file, target, new).is_empty() {
            let finding = no_such_value(file, target, ["set", "parameter, size or initial value"]);
            diagnostics.push(finding);
        }
    }
    let mut varied = FxHashSet::default();
    for (k, (target, new)) in vary.iter().enumerate() {
        if let Some(finding) = not_varied(file, target, set, &vary[..k]) {
            diagnostics.push(finding);
            continue;
        }
        let statements = put(file, target, new);
        if statements.is_empty() {
            diagnostics.push(no_such_value(file, target, ["vary", "parameter or initial value"]));
        }
        varied.extend(statements);
    }
    (varied, diagnostics)
}

/// Finding for a `target` of `--vary` that is given elsewhere too, or is a size.
fn not_varied(
    file: &ast::File,
    target: &ast::Name,
    set: &[(ast::Name, ast::Expr)],
    earlier: &[(ast::Name, ast::Expr)],
) -> Option<Diagnostic> {
    let ast::Name { text: name, span } = target;
    let find = |list: &[(ast::Name, ast::Expr)]| {
        list.iter().find(|(other, _)| other.text == *name).map(|(first, _)| first.span)
    };
    let [set_option, vary_option] = ["set", "vary"].map(option);
    if let Some(first) = find(earlier) {
        let message = format!("'{name}' is given by {vary_option} twice");
        return Some(Diagnostic::error(message, *span, "second time").related(first, "first time"));
    }
    if let Some(first) = find(set) {
        let message = format!("'{name}' is given both by {set_option} and by {vary_option}");
        let finding = Diagnostic::error(message, *span, "varied here").related(first, "set here");
        return Some(finding.help("leave one of them out"));
    }
    let is_size = |s: &&ast::Statement| s.kind == StatementKind::Size && s.name.text == *name;
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

/// Finding for a `target` that cannot be set or varied (`verb`), because no `what` has its name.
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
            _ => format!("these can be varied: {}", names.join(", ")),
        },
    )
}
