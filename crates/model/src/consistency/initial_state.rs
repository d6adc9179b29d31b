//! Check that the initial state meets the constraints and the hidden constraints.

use super::misses::{Constraints, HiddenConstraints, Miss, row_hidden_misses};
use super::places;
use crate::elaborate::model::Model;
use crate::graph::interpret::Interpreter;
use crate::scales::Scales;
use crate::syntax::diagnostic::Diagnostic;
use crate::templated::RowField;
use crate::treatment::Field;
use crate::treatment::structure::Structure;
use holonome_words::option;
use std::cell::LazyCell;

/// Reports every constraint that the initial state does not meet; returns their names.
pub(super) fn constraints_met(
    model: &Model,
    scales: &LazyCell<Scales, impl FnOnce() -> Scales>,
    out: &mut Vec<Diagnostic>,
) -> Vec<String> {
    let mut off = Vec::new();
    if model.imposed_constraints().is_empty() {
        return off;
    }
    let check = Constraints::new(model, scales, &Interpreter);
    check.misses(model, &model.parameter_values, &model.initial, &mut vec![0.0; check.work_len()], &mut |miss| {
        if miss.residual.is_undefined() {
            return; // reported already
        }
        let quantity = &model.imposed_constraints()[miss.constraint];
        off.push(quantity.name.clone());
        let diagnostic =
            Diagnostic::error(format!("the initial state does not meet {miss}"), quantity.span, "not met at the start")
                .help(format!(
                    "correct the initial values, or let {project_initial} move them onto the constraint set",
                    project_initial = option("project_initial")
                ));
        out.push(places(model, &miss.reads, diagnostic));
    });
    off
}

/// Reports every hidden constraint that the initial state does not meet, except those of
/// constraints in `off`, whose misses follow from theirs.
pub(super) fn hidden_met(
    model: &Model,
    scales: &Scales,
    (field, structure): (&Field, &Structure),
    off: &[String],
    out: &mut Vec<Diagnostic>,
) {
    let check = HiddenConstraints::new(model, scales, (field, structure), &Interpreter);
    let mut work = vec![0.0; check.work_len(model)];
    let mut found = |miss: Miss| out.extend(hidden_missed(model, &miss, off));
    check.misses(model, &model.parameter_values, &model.initial, &mut work, &mut found);
}

/// [`hidden_met`] for a model that is run over rows, with F and the entries of DF at the initial
/// state.
pub(super) fn row_hidden_met(
    model: &Model,
    scales: &Scales,
    field: &RowField,
    of_start: (&[f64], &[f64]),
    off: &[String],
    out: &mut Vec<Diagnostic>,
) {
    let scale = scales.sizes(&model.initial);
    let mut found = |miss: Miss| out.extend(hidden_missed(model, &miss, off));
    row_hidden_misses(model, (&field.groups, &field.pattern), &scale, of_start, &mut found);
}

/// Finding of a missed hidden constraint.
fn hidden_missed(model: &Model, miss: &Miss, off: &[String]) -> Option<Diagnostic> {
    let quantity = &model.imposed_constraints()[miss.constraint];
    if miss.residual.is_undefined() || off.contains(&quantity.name) {
        return None;
    }
    let diagnostic = Diagnostic::error(
        format!("the initial state does not meet {miss}"),
        quantity.span,
        "its time derivative must vanish too",
    )
    .help(format!(
        "correct the initial momenta, or let {project_initial} move them onto the constraint set",
        project_initial = option("project_initial")
    ));
    Some(places(model, &miss.reads, diagnostic))
}
