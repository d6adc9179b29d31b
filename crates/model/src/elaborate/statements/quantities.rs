//! Lowering of checked formulas to quantities and measures of the model.

use super::CheckedMeasure;
use super::symmetry::is_symmetric;
use crate::elaborate::CheckedFormula;
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{Draw, Ex};
use crate::elaborate::lower::{self, Context, LoweredCutoff, LoweredFormula, Purpose};
use crate::elaborate::model::{Component, Measured, Quantity};
use crate::elaborate::shape::Shape;
use crate::elaborate::statistic::{FORMS, Statistic};
use crate::functional::Functional;
use crate::syntax::ast::Name;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Lowers the formulas of one model and collects the findings.
pub(super) struct FormulaLowering<'a> {
    pub(super) context: Context<'a>,
    pub(super) findings: Vec<Diagnostic>,
    /// Terms that compare distances.
    pub(super) cutoffs: Vec<LoweredCutoff>,
}

impl FormulaLowering<'_> {
    /// Lowers a formula. Its draws are added to `draws`.
    pub(super) fn lower(
        &mut self,
        purpose: Purpose,
        set: &IndexSet,
        e: &Ex,
        draws: &mut Vec<Draw>,
    ) -> Option<LoweredFormula> {
        let lowered = lower::lower(&self.context, purpose, set, e, draws);
        let mut lowered = lowered.map_err(|finding| self.findings.push(finding)).ok()?;
        self.cutoffs.append(&mut lowered.cutoffs);
        Some(lowered)
    }

    /// Lowers a formula that draws nothing: only starts do.
    pub(super) fn lower_fixed(
        &mut self,
        purpose: Purpose,
        set: &IndexSet,
        e: &Ex,
    ) -> Option<LoweredFormula> {
        self.lower(purpose, set, e, &mut Vec::new())
    }

    /// Does something whose findings come again later.
    pub(super) fn without_findings<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let (findings, cutoffs) = (self.findings.len(), self.cutoffs.len());
        let result = act(self);
        self.findings.truncate(findings);
        self.cutoffs.truncate(cutoffs);
        result
    }

    /// Lowers a formula without indices.
    pub(super) fn lower_single(&mut self, purpose: Purpose, e: &Ex) -> Option<Functional> {
        Some(self.lower_fixed(purpose, &IndexSet::default(), e)?.functional)
    }

    /// Lowers every formula of `list`; `None` if one cannot be lowered.
    pub(super) fn quantities<'c>(
        &mut self,
        purpose: Purpose,
        list: impl Iterator<Item = &'c CheckedFormula>,
    ) -> Option<Vec<Quantity>> {
        let lowered: Vec<Option<Quantity>> = list.map(|c| self.quantity(purpose, c)).collect();
        lowered.into_iter().collect()
    }

    pub(super) fn quantity(
        &mut self,
        purpose: Purpose,
        checked: &CheckedFormula,
    ) -> Option<Quantity> {
        let CheckedFormula { name, set, value } = checked;
        let lowered = self.lower_fixed(purpose, set, value)?;
        let names = &self.context.index_names;
        Some(Quantity {
            name: name.text.clone(),
            span: name.span,
            components: components(value.shape, &lowered.functional, &self.context),
            functional: lowered.functional,
            shape: value.shape,
            indices: set.ranges.iter().map(|r| names[r.index as usize].clone()).collect(),
            member_indices: lowered.members,
            members: lowered.count,
            depends: value.depends,
        })
    }

    /// Lowers a measure, whose numbers are constants.
    pub(super) fn measure(
        &mut self,
        measure: &CheckedMeasure,
        parameters: &[f64],
    ) -> Option<Measured> {
        let CheckedMeasure { quantity: checked, statistic: word, numbers, every, from } = measure;
        let quantity = self.quantity(Purpose::Motion, checked)?;
        let mut given = Vec::new();
        let mut constant = |e: &Ex| -> Option<f64> {
            let functional = self.lower_single(Purpose::Other, e)?;
            let number = functional.evaluate(0.0, &[], parameters)[0];
            given.push(functional);
            Some(number)
        };
        let numbers = numbers.iter().map(&mut constant).collect::<Option<Vec<f64>>>()?;
        let mut time = |e: &Option<Ex>| match e {
            Some(e) => Some((constant(e)?, e.span)),
            None => None,
        };
        let (every, from) = (time(every), time(from));
        match measured_statistic(&quantity, word, &numbers, every, from) {
            Ok(statistic) => {
                let [every, from] = [every, from].map(|time| time.map(|(time, _)| time));
                Some(Measured { quantity, statistic, every, from, given })
            }
            Err(finding) => {
                self.findings.push(finding);
                None
            }
        }
    }
}

/// Statistic of a measure.
///
/// # Errors
/// If its numbers or times do not fit, or the quantity has too few members.
fn measured_statistic(
    quantity: &Quantity,
    word: &Name,
    numbers: &[f64],
    every: Option<(f64, Span)>,
    from: Option<(f64, Span)>,
) -> Result<Statistic, Diagnostic> {
    let refuse = |message: String, span: Span, label: &str, help: &str| {
        Err(Diagnostic::error(message, span, label).help(help))
    };
    if let Some((time, span)) = every.filter(|(time, _)| !(*time > 0.0 && time.is_finite())) {
        let message = format!("the time between two samples is {time}");
        return refuse(message, span, "not positive", "write every 0.1, for instance");
    }
    if let Some((time, span)) = from.filter(|(time, _)| !time.is_finite()) {
        return refuse(format!("a measure begins at {time}"), span, "not a time", "write from 100");
    }
    let statistic = Statistic::new(&word.text, numbers);
    let statistic = statistic
        .or_else(|reason| refuse(reason, word.span, "these numbers", &format!("write {FORMS}")))?;
    if quantity.functional.outputs == 0 {
        let message = format!("measure '{}' is of nothing: its ranges are empty", quantity.name);
        return refuse(message, quantity.span, "no member", "check the ranges");
    }
    if matches!(statistic, Statistic::Distances { .. }) && quantity.members < 2 {
        let message = "distances are between members of a family".to_string();
        let help = "write rdf(a in 1..N : r[a], b, bins)";
        return refuse(message, word.span, "one member", help);
    }
    Ok(statistic)
}

/// Independent components: a symmetric matrix has one for each pair of equal entries.
fn components(shape: Shape, functional: &Functional, context: &Context) -> Vec<Component> {
    let all = (0..shape.len()).map(|offset| Component { offset, multiplicity: 1.0 }).collect();
    let Shape::Matrix(k, l) = shape else { return all };
    if functional.terms.is_empty() {
        return all;
    }
    let dimension =
        context.variables.iter().map(|(family, first)| first + family.len()).max().unwrap_or(0);
    let symmetric = k == l && is_symmetric(functional, k, dimension, &context.parameter_values);
    let is_zero = |offset: usize| {
        functional
            .terms
            .iter()
            .all(|t| t.roots.len() == shape.len() && t.graph.is_zero(t.roots[offset]))
    };
    let keep = |offset: usize| {
        let (i, j) = (offset / l, offset % l);
        match (symmetric, i.cmp(&j)) {
            _ if is_zero(offset) => None,
            (false, _) | (true, std::cmp::Ordering::Equal) => Some(1.0),
            (true, std::cmp::Ordering::Less) => Some(2.0),
            (true, std::cmp::Ordering::Greater) => None,
        }
    };
    (0..shape.len())
        .filter_map(|offset| keep(offset).map(|multiplicity| Component { offset, multiplicity }))
        .collect()
}
