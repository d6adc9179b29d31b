//! Replacement of values in the file by those of `--set` and `--vary`.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Kind};
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;
use holonome_words::option;
use rustc_hash::FxHashSet;

/// Name of a trajectory's number in `--vary`.
pub(super) const TRAJECTORY: &str = "i";
/// Name of the number of trajectories in `--vary`.
pub(super) const TRAJECTORIES: &str = "N";

impl Elaborator<'_> {
    /// Allows a varying value to draw and to use `i` and `N`, which hide all other names.
    pub(super) fn let_vary(&self, statement: usize, scope: &mut Scope) {
        if !self.varied.contains(&statement) {
            return;
        }
        scope.allowed |= expression::DRAW;
        let none = Span::default();
        scope.locals.push((
            TRAJECTORY.to_string(),
            CheckedExpression::new(Kind::Trajectory, Shape::Scalar, none),
        ));
        scope.locals.push((
            TRAJECTORIES.to_string(),
            CheckedExpression::number(self.trajectories as f64, none),
        ));
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
            diagnostics.push(no_such_value(
                file,
                target,
                "set",
                "parameter, size or initial value",
                |_| true,
            ));
        }
    }
    let mut varied = FxHashSet::default();
    for (k, (target, new)) in vary.iter().enumerate() {
        let name = &target.text;
        if let Some((first, _)) = vary[..k].iter().find(|(other, _)| other.text == *name) {
            let message = format!("'{name}' is given by {vary} twice", vary = option("vary"));
            diagnostics.push(
                Diagnostic::error(message, target.span, "second time")
                    .related(first.span, "first time"),
            );
        } else if let Some((set, _)) = set.iter().find(|(other, _)| other.text == *name) {
            let message = format!(
                "'{name}' is given both by {set} and by {vary}",
                set = option("set"),
                vary = option("vary")
            );
            let diagnostic = Diagnostic::error(message, target.span, "varied here")
                .related(set.span, "set here");
            diagnostics.push(diagnostic.help("leave one of them out"));
        } else if let Some(size) = file.statements.iter().find_map(|s| match &s.kind {
            StatementKind::Size { name: size, .. } if size.text == *name => Some(size.span),
            _ => None,
        }) {
            let message = format!(
                "cannot vary '{name}': it is a size, and all trajectories are of one structure"
            );
            let diagnostic =
                Diagnostic::error(message, target.span, "a size").related(size, "declared here");
            diagnostics.push(diagnostic.help(format!(
                "sweep once for each of its values, with {set} {name}=…",
                set = option("set")
            )));
        } else {
            let statements = put(file, target, new);
            if statements.is_empty() {
                let variable = |kind: &StatementKind| !matches!(kind, StatementKind::Size { .. });
                diagnostics.push(no_such_value(
                    file,
                    target,
                    "vary",
                    "parameter or initial value",
                    variable,
                ));
            }
            varied.extend(statements);
        }
    }
    (varied, diagnostics)
}

/// Replaces the value that `target` names by `new`; returns the statements that hold it.
fn put(file: &mut ast::File, target: &ast::Name, new: &ast::Expr) -> Vec<usize> {
    let mut found = Vec::new();
    for (number, statement) in file.statements.iter_mut().enumerate() {
        use StatementKind::*;
        match &mut statement.kind {
            Parameter { name, value, .. } | Size { name, value } if name.text == target.text => {
                *value = new.clone()
            }
            Coordinate { name, value, .. }
            | Momentum { name, value, .. }
            | Velocity { name, value, .. }
            | State { name, value, .. }
                if name.text == target.text =>
            {
                *value = Some(new.clone());
            }
            _ => continue,
        }
        found.push(number);
    }
    found
}

/// Finding for a `target` that cannot be set or varied (`verb`).
fn no_such_value(
    file: &ast::File,
    target: &ast::Name,
    verb: &str,
    what: &str,
    can: impl Fn(&StatementKind) -> bool,
) -> Diagnostic {
    use StatementKind::*;
    let has_value = |kind: &StatementKind| {
        matches!(
            kind,
            Parameter { .. }
                | Size { .. }
                | Coordinate { .. }
                | Momentum { .. }
                | Velocity { .. }
                | State { .. }
        )
    };
    let kinds = file.statements.iter().map(|s| &s.kind).filter(|kind| has_value(kind) && can(kind));
    let names: Vec<&str> = kinds.filter_map(StatementKind::name).map(|n| n.text.as_str()).collect();
    let message = format!("cannot {verb} '{}': no {what} has this name", target.text);
    let diagnostic = Diagnostic::error(message, target.span, "unknown");
    match did_you_mean(&target.text, names.iter().copied()) {
        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
        None if verb == "set" => diagnostic.help(format!("these can be set: {}", names.join(", "))),
        None => diagnostic.help(format!("these can be varied: {}", names.join(", "))),
    }
}
