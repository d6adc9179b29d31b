//! Indices: ranges, members of families, components of vectors and matrices, rows of tables.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, CheckedRanges, Ex, Kind, Range};
use crate::elaborate::lower::LARGEST_INDEX;
use crate::elaborate::model::Family;
use crate::elaborate::names::{Scope, Symbol};
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
    if let Kind::Parameter(number, _) = e.kind {
        return Some((number, e.span));
    }
    let mut found = None;
    e.kind.for_each_part(&mut |part| found = found.or_else(|| only_parameter(part)));
    found
}

impl Elaborator<'_> {
    /// An index: a whole number made of numbers, sizes and indices.
    pub(in crate::elaborate) fn index_value(
        &mut self,
        e: &ast::Expr,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let checked = self.scalar(e, scope, "an index")?;
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
            return self.refuse(
                Diagnostic::error(
                    "an index is made of numbers, sizes and other indices",
                    e.span,
                    label,
                )
                .help(help),
            );
        }
        if let Some(v) = checked.value()
            && (v.fract() != 0.0 || v.abs() > LARGEST_INDEX)
        {
            return self.refuse(Diagnostic::error(
                format!("an index must be an integer, and this is {v}"),
                e.span,
                "not an integer",
            ));
        }
        Some(checked)
    }

    /// Ranges with a condition on their indices; the indices stay in the scope.
    pub(in crate::elaborate) fn ranges(
        &mut self,
        ranges: &ast::Ranges,
        scope: &mut Scope,
    ) -> Option<CheckedRanges> {
        let (checked, other) = self.conditional_ranges(ranges, scope)?;
        let Some(other) = other else { return Some(checked) };
        self.report(
            Diagnostic::error(
                "the condition of a family may use indices, sizes and numbers only",
                other.span,
                "this is not known before the run",
            )
            .help("in the formula of a member, if(condition, a, b) may depend on anything"),
        );
        None
    }

    /// Ranges with the part of their condition that is on indices, and the part that depends on
    /// anything else.
    pub(super) fn conditional_ranges(
        &mut self,
        ranges: &ast::Ranges,
        scope: &mut Scope,
    ) -> Option<(CheckedRanges, Option<Ex>)> {
        let mut other = None;
        let mut checked = CheckedRanges::default();
        let mut good = true;
        for range in &ranges.ranges {
            let low = self.index_value(&range.low, scope);
            let high = self.index_value(&range.high, scope);
            if checked_name(&checked, &range.name.text, &self.index_names) {
                self.report(Diagnostic::error(
                    format!("the index '{}' is used twice", range.name.text),
                    range.name.span,
                    "second time",
                ));
                good = false;
            }
            let index = self.index_names.len() as u32;
            self.index_names.push(range.name.text.clone());
            let span = range.name.span.to(range.high.span);
            scope.locals.push((
                range.name.text.clone(),
                CheckedExpression::new(Kind::Index(index), Shape::Scalar, range.name.span),
            ));
            match (low, high) {
                (Some(low), Some(high)) => checked.ranges.push(Range { index, low, high, span }),
                _ => good = false,
            }
        }
        if let Some(filter) = &ranges.filter {
            match self.condition(filter, scope, "'if'") {
                Some(condition) => [checked.filter, other] = divided(&condition),
                None => good = false,
            }
        }
        good.then_some((checked, other))
    }

    /// The indices of a family's member, and the indices left for its components.
    pub(super) fn family_indices<'e>(
        &mut self,
        family: &Family,
        indices: &'e [ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<(Vec<Ex>, &'e [ast::Expr])> {
        let need = family.indices.len();
        if indices.len() < need || (need > 0 && indices.len() != need) {
            let usage = format!("{}[{}]", family.name, family.indices.join(", "));
            let message = match (indices.len(), need) {
                (0, 1) => format!("'{}' is a family and needs its index", family.name),
                (0, _) => format!("'{}' is a family and needs its {need} indices", family.name),
                (given, _) => {
                    format!(
                        "'{}' has {need} {}, not {given}",
                        family.name,
                        if need == 1 { "index" } else { "indices" }
                    )
                }
            };
            let component = match indices.get(need).map(|e| &e.kind) {
                Some(ExprKind::Number(k)) => k.to_string(),
                _ => "k".to_string(),
            };
            return self.refuse(
                Diagnostic::error(message, span, "which member?")
                    .help(format!("write {usage}; components come after: {usage}[{component}]"))
                    .related(family.span, "declared here"),
            );
        }
        let mut checked = Vec::with_capacity(need);
        for (k, index) in indices[..need].iter().enumerate() {
            let e = self.index_value(index, scope)?;
            let (low, high) = family.bounds[k];
            if let Some(v) = e.value()
                && (v < low as f64 || v > high as f64)
            {
                let message = format!("index {v} of '{}' is outside {low}..{high}", family.name);
                return self.refuse(
                    Diagnostic::error(message, index.span, "no such member")
                        .related(family.span, "declared here"),
                );
            }
            checked.push(e);
        }
        Some((checked, &indices[need..]))
    }

    /// `e[k]`, `e[k,l]`, or `e` itself if no index follows.
    pub(super) fn component(
        &mut self,
        e: Ex,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        if indices.is_empty() {
            return Some(e);
        }
        let dimensions = e.shape.dimensions();
        if dimensions.len() != indices.len() {
            let label = format!("this has the shape {}", e.shape);
            let help = match e.shape {
                Shape::Vector(k) => format!("a vector takes one index from 1 to {k}"),
                Shape::Matrix(k, l) => format!("a matrix takes two indices, [1..{k}, 1..{l}]"),
                _ => "a scalar has no components".to_string(),
            };
            return self.refuse(
                Diagnostic::error(
                    format!(
                        "{} cannot take {} {}",
                        e.shape,
                        indices.len(),
                        if indices.len() == 1 { "index" } else { "indices" }
                    ),
                    span,
                    label,
                )
                .help(help),
            );
        }
        let mut checked = Vec::new();
        for (index, &size) in indices.iter().zip(&dimensions) {
            let i = self.index_value(index, scope)?;
            if let Some(v) = i.value()
                && (v < 1.0 || v > size as f64)
            {
                return self.refuse(
                    Diagnostic::error(
                        format!("index {v} is outside 1..{size}"),
                        index.span,
                        format!("the shape is {}", e.shape),
                    )
                    .help("components count from 1"),
                );
            }
            checked.push(i);
        }
        Some(CheckedExpression::new(Kind::Component(e, checked), Shape::Scalar, span))
    }

    pub(super) fn index(
        &mut self,
        base: &ast::Expr,
        indices: &[ast::Expr],
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        match &base.kind {
            ExprKind::Name(name) => self.name(name, indices, span, scope),
            ExprKind::Member(base, name) if self.is_lambda(base, scope) => {
                self.multiplier(name, indices, span, scope)
            }
            ExprKind::Member(table, column) if self.table_of(table, scope).is_some() => {
                let number = self.table_of(table, scope).expect("just seen");
                let entry = &self.tables[number];
                let name = entry.name.clone();
                let Some(&at) = entry.places.get(&column.text) else {
                    if entry.failed {
                        return None;
                    }
                    let mut diagnostic = Diagnostic::error(
                        format!("table '{name}' has no column '{}'", column.text),
                        column.span,
                        "no such column",
                    );
                    let (names, known) =
                        (entry.names(), entry.columns.iter().map(|(name, _)| name.as_str()));
                    diagnostic = diagnostic.help(match did_you_mean(&column.text, known) {
                        Some(meant) => format!("did you mean '{meant}'? its columns are {names}"),
                        None => format!("its columns are {names}"),
                    });
                    return self.refuse(diagnostic);
                };
                let [row] = indices else {
                    return self.refuse(Diagnostic::error(
                        "a column of a table takes one index, its row",
                        span,
                        "which row?",
                    ));
                };
                let row = self.index_value(row, scope)?;
                if let Some(v) = row.value()
                    && (v < 1.0 || v > self.tables[number].rows as f64)
                {
                    let message = self.tables[number].no_row(v);
                    return self.refuse(Diagnostic::error(message, row.span, "no such row"));
                }
                Some(CheckedExpression::new(Kind::Table(number, at, row), Shape::Scalar, span))
            }
            _ => {
                let base = self.value(base, scope)?;
                self.component(base, indices, span, scope)
            }
        }
    }

    fn table_of(&self, e: &ast::Expr, scope: &Scope) -> Option<usize> {
        let ExprKind::Name(name) = &e.kind else { return None };
        if scope.find(name).is_some() {
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
        scope: &mut Scope,
    ) -> Option<Ex> {
        if self.is_lambda(base, scope) {
            return self.multiplier(member, &[], span, scope);
        }
        if self.table_of(base, scope).is_some() {
            return self.refuse(
                Diagnostic::error("a column of a table needs a row", span, "which row?")
                    .help(format!("write .{}[i]", member.text)),
            );
        }
        let base = self.value(base, scope)?;
        let position = match member.text.as_str() {
            "x" => 1,
            "y" => 2,
            "z" => 3,
            other => {
                return self.refuse(
                    Diagnostic::error(
                        format!("there is no component '{other}'"),
                        member.span,
                        "unknown component",
                    )
                    .help("components are .x .y .z, or [k] counted from 1"),
                );
            }
        };
        match base.shape {
            Shape::Vector(k) if position <= k => {
                let index = CheckedExpression::number(position as f64, member.span);
                Some(CheckedExpression::new(
                    Kind::Component(base, vec![index]),
                    Shape::Scalar,
                    span,
                ))
            }
            Shape::Vector(k) => self.refuse(Diagnostic::error(
                format!("a vector in R^{k} has no component '{}'", member.text),
                member.span,
                format!("the shape is R^{k}"),
            )),
            shape => self.refuse(Diagnostic::error(
                format!("'.{}' needs a vector", member.text),
                member.span,
                format!("the shape is {shape}"),
            )),
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

/// True if the index name is already bound in the same brackets.
fn checked_name(ranges: &CheckedRanges, name: &str, index_names: &[String]) -> bool {
    ranges.ranges.iter().any(|r| index_names[r.index as usize] == name)
}
