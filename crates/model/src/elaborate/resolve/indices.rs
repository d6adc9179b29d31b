//! Indices: ranges, members of families, components of vectors and matrices, rows of tables.

use super::definitions::which_member;
use crate::elaborate::Elaborator;
use crate::elaborate::expression::index_set::{IndexRange, IndexSet};
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind, Storage};
use crate::elaborate::lower::LARGEST_INDEX;
use crate::elaborate::model::Family;
use crate::elaborate::names::{Symbol, counted_indices};
use crate::elaborate::shape::Shape;
use crate::graph::op::Binary;
use crate::syntax::ast::{self, ExprKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;

/// First parameter in an expression of parameters, indices and numbers, with its place.
fn only_parameter(e: &Ex) -> Option<(usize, Span)> {
    if e.depends & !(expression::INDEX | expression::PARAMETER) != 0 {
        return None;
    }
    if let Kind::Member(Storage::Parameter(number), _) = e.kind {
        return Some((number, e.span));
    }
    let mut found = None;
    e.kind.for_each_part(&mut |part| found = found.or_else(|| only_parameter(part)));
    found
}

impl Elaborator<'_> {
    /// An index: a whole number made of numbers, sizes and indices.
    pub(in crate::elaborate) fn index_value(&mut self, e: &ast::Expr) -> Option<Ex> {
        let checked = self.scalar(e, "an index")?;
        if !checked.is_index() {
            if let Some((number, span)) = only_parameter(&checked) {
                let message = "an index is made of numbers, sizes and other indices".to_string();
                return self.refuse_parameter_as_size(number, message, span);
            }
            let (label, help) = match checked.depends & expression::DRAW {
                0 => (
                    "this is not known before the run",
                    "a constant that indices and ranges may use is declared with `size`",
                ),
                _ => (
                    "this differs between trajectories",
                    "all trajectories have the same indices; if(condition, a, b) may choose a value",
                ),
            };
            let message = "an index is made of numbers, sizes and other indices";
            return self.refuse(Diagnostic::error(message, e.span, label).help(help));
        }
        if let Some(v) = checked.value()
            && (v.fract() != 0.0 || v.abs() > LARGEST_INDEX)
        {
            let message = format!("an index must be an integer, and this is {v}");
            return self.refuse(Diagnostic::error(message, e.span, "not an integer"));
        }
        Some(checked)
    }

    /// An index of `e`; if its value is a constant outside of `low..high`, it is refused by the
    /// finding.
    fn index_within(
        &mut self,
        e: &ast::Expr,
        (low, high): (i64, i64),
        finding: impl FnOnce(&Self, f64) -> Diagnostic,
    ) -> Option<Ex> {
        let index = self.index_value(e)?;
        match index.value() {
            Some(v) if v < low as f64 || v > high as f64 => self.refuse(finding(self, v)),
            _ => Some(index),
        }
    }

    /// An index set with a condition on its indices; the indices stay in the scope.
    pub(in crate::elaborate) fn index_set(
        &mut self,
        written: &ast::IndexSetExpr,
    ) -> Option<IndexSet> {
        let (set, other) = self.conditional_set(written)?;
        let Some(other) = other else { return Some(set) };
        let message = "the condition of a family may use indices, sizes and numbers only";
        let finding = Diagnostic::error(message, other.span, "this is not known before the run");
        self.refuse(
            finding.help("in the formula of a member, if(condition, a, b) may depend on anything"),
        )
    }

    /// An index set with the part of its condition that is on indices, and the part that depends
    /// on anything else.
    pub(super) fn conditional_set(
        &mut self,
        written: &ast::IndexSetExpr,
    ) -> Option<(IndexSet, Option<Ex>)> {
        let mut set = IndexSet::default();
        let mut good = true;
        for range in &written.ranges {
            let ast::Name { text, span } = &range.name;
            let low = self.index_value(&range.low);
            let high = self.index_value(&range.high);
            if set.ranges.iter().any(|r| self.index_names[r.index as usize] == *text) {
                let message = format!("the index '{text}' is used twice");
                self.report(Diagnostic::error(message, *span, "second time"));
                good = false;
            }
            let index = self.bind_index(text, *span);
            let span = span.to(range.high.span);
            match (low, high) {
                (Some(low), Some(high)) => set.ranges.push(IndexRange { index, low, high, span }),
                _ => good = false,
            }
        }
        let mut other = None;
        if let Some(filter) = &written.filter {
            let of_indices;
            [of_indices, other] = divided(&self.condition(filter, "'if'")?);
            set.conditions.extend(of_indices.map(|e| (set.ranges.len(), e)));
        }
        good.then_some((set, other))
    }

    /// The indices of a family's member, and the indices left for its components. Without indices
    /// it is the member of the scope, if there is one.
    pub(in crate::elaborate) fn family_indices<'e>(
        &mut self,
        family: &Family,
        indices: &'e [ast::Expr],
        span: Span,
    ) -> Option<(Vec<Ex>, &'e [ast::Expr])> {
        let need = family.indices.len();
        if let Some(member) = &self.scope.member
            && indices.is_empty()
            && member.bounds == family.bounds
        {
            return Some((member.indices.clone(), indices));
        }
        if need > 0 && indices.len() != need {
            let names: Vec<&str> = family.indices.iter().map(String::as_str).collect();
            let mut finding = which_member(&family.name, &family.name, &names, span);
            if !indices.is_empty() {
                let (needed, given) = (counted_indices(need), indices.len());
                finding.message = format!("'{}' has {needed}, not {given}", family.name);
            }
            let component = match indices.get(need).map(|e| &e.kind) {
                Some(ExprKind::Number(k)) => k.to_string(),
                _ => "k".to_string(),
            };
            let usage = format!("{}[{}]", family.name, names.join(", "));
            let help = match self.scope.member {
                Some(_) if indices.is_empty() => format!(
                    "its ranges are not those of the members acted on: give the force indices of its own, and write {usage}"
                ),
                _ => format!("write {usage}; components come after: {usage}[{component}]"),
            };
            let finding = finding.help(help).related(family.span, "declared here");
            return self.refuse(finding);
        }
        let mut checked = Vec::with_capacity(need);
        for (index, &bounds) in indices.iter().zip(&family.bounds) {
            let e = self.index_within(index, bounds, |_, v| {
                let (low, high) = bounds;
                let message = format!("index {v} of '{}' is outside {low}..{high}", family.name);
                Diagnostic::error(message, index.span, "no such member")
                    .related(family.span, "declared here")
            });
            checked.push(e?);
        }
        Some((checked, &indices[need..]))
    }

    /// `e[k]`, `e[k,l]`, or `e` itself if no index follows.
    pub(in crate::elaborate) fn component(
        &mut self,
        e: Ex,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        if indices.is_empty() {
            return Some(e);
        }
        let (shape, dimensions, count) = (e.shape, e.shape.dimensions(), indices.len());
        if dimensions.len() != count {
            let message = format!("{shape} cannot take {}", counted_indices(count));
            let finding = Diagnostic::error(message, span, format!("this has the shape {shape}"));
            return self.refuse(finding.help(match shape {
                Shape::Vector(k) => format!("a vector takes one index from 1 to {k}"),
                Shape::Matrix(k, l) => format!("a matrix takes two indices, [1..{k}, 1..{l}]"),
                _ => "a scalar has no components".to_string(),
            }));
        }
        let mut checked = Vec::new();
        for (index, &size) in indices.iter().zip(&dimensions) {
            let i = self.index_within(index, (1, size as i64), |_, v| {
                let message = format!("index {v} is outside 1..{size}");
                Diagnostic::error(message, index.span, format!("the shape is {shape}"))
                    .help("components count from 1")
            });
            checked.push(i?);
        }
        Some(CheckedExpression::new(Kind::Component(e, checked), Shape::Scalar, span))
    }

    pub(super) fn index(
        &mut self,
        base: &ast::Expr,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        match &base.kind {
            ExprKind::Name(name) => return self.name(name, indices, span),
            ExprKind::Member(of, name) if self.is_lambda(of) => {
                return self.multiplier(name, indices, span);
            }
            ExprKind::Member(of, column) => {
                if let Some(table) = self.table_of(of) {
                    return self.table_entry(table, column, indices, span);
                }
            }
            _ => {}
        }
        let base = self.value(base)?;
        self.component(base, indices, span)
    }

    /// A number of a table.
    fn table_entry(
        &mut self,
        number: usize,
        column: &ast::Name,
        indices: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let at = self.column_of(number, column)?;
        let [row] = indices else {
            let message = "a column of a table takes one index, its row";
            return self.refuse(Diagnostic::error(message, span, "which row?"));
        };
        let rows = (1, self.tables[number].rows as i64);
        let row = self.index_within(row, rows, |elaborator, v| {
            let message = elaborator.tables[number].no_row(v);
            Diagnostic::error(message, row.span, "no such row")
        })?;
        Some(CheckedExpression::new(Kind::Table(number, at, row), Shape::Scalar, span))
    }

    /// Place of a column of a table.
    pub(super) fn column_of(&mut self, number: usize, column: &ast::Name) -> Option<usize> {
        let table = &self.tables[number];
        let Some(&at) = table.places.get(&column.text) else {
            if table.failed {
                return None;
            }
            let message = format!("table '{}' has no column '{}'", table.name, column.text);
            let known = table.columns.iter().map(|(name, _)| name.as_str());
            let meant = did_you_mean(&column.text, known)
                .map_or(String::new(), |meant| format!("did you mean '{meant}'? "));
            let help = format!("{meant}its columns are {}", table.names());
            let finding = Diagnostic::error(message, column.span, "no such column");
            return self.refuse(finding.help(help));
        };
        Some(at)
    }

    pub(super) fn table_of(&self, e: &ast::Expr) -> Option<usize> {
        let ExprKind::Name(name) = &e.kind else { return None };
        if self.scope.find(name).is_some() {
            return None;
        }
        match self.symbols.get(name)?.symbol {
            Symbol::Table(number) => Some(number),
            _ => None,
        }
    }

    pub(in crate::elaborate) fn member(
        &mut self,
        base: &ast::Expr,
        member: &ast::Name,
        span: Span,
    ) -> Option<Ex> {
        if self.is_lambda(base) {
            return self.multiplier(member, &[], span);
        }
        if self.table_of(base).is_some() {
            let finding = Diagnostic::error("a column of a table needs a row", span, "which row?");
            return self.refuse(finding.help(format!("write .{}[i]", member.text)));
        }
        let base = self.value(base)?;
        let (name, at) = (&member.text, member.span);
        let Some(position) = ["x", "y", "z"].iter().position(|known| known == name) else {
            let message = format!("there is no component '{name}'");
            let finding = Diagnostic::error(message, at, "unknown component");
            return self.refuse(finding.help("components are .x .y .z, or [k] counted from 1"));
        };
        let label = format!("the shape is {}", base.shape);
        match base.shape {
            Shape::Vector(k) if position < k => {
                let index = vec![CheckedExpression::number((position + 1) as f64, at)];
                let kind = Kind::Component(base, index);
                Some(CheckedExpression::new(kind, Shape::Scalar, span))
            }
            Shape::Vector(k) => {
                let message = format!("a vector in R^{k} has no component '{name}'");
                self.refuse(Diagnostic::error(message, at, label))
            }
            _ => self.refuse(Diagnostic::error(format!("'.{name}' needs a vector"), at, label)),
        }
    }
}

/// Part of a condition that is on indices, and the rest.
fn divided(condition: &Ex) -> [Option<Ex>; 2] {
    match &condition.kind {
        _ if condition.is_index() => [Some(condition.clone()), None],
        Kind::Binary(Binary::And, a, b) => {
            let ([a, x], [b, y]) = (divided(a), divided(b));
            [(a, b), (x, y)].map(|parts| match parts {
                (Some(a), Some(b)) => Some(CheckedExpression::new(
                    Kind::Binary(Binary::And, a, b),
                    Shape::Condition,
                    condition.span,
                )),
                (a, b) => a.or(b),
            })
        }
        _ => [None, Some(condition.clone())],
    }
}
