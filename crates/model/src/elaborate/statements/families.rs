//! Sizes, shapes, and the families of variables and parameters: boxes of index values.

use crate::elaborate::expression::{CheckedExpression, CheckedRanges, Kind, Range};
use crate::elaborate::lower::{LARGEST_INDEX, MOST_ROWS};
use crate::elaborate::model::Family;
use crate::elaborate::names::Scope;
use crate::elaborate::resolve::definitions::recursion;
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableRole};
use crate::syntax::ast::{self, ShapeExpr, StatementKind};
use crate::syntax::diagnostic::{Diagnostic, did_you_mean};
use crate::syntax::span::Span;

/// Largest dimension in `R^k`.
const LARGEST_DIMENSION: i64 = 1024;
/// Largest number of indices of a family.
const MOST_INDICES: usize = 3;

impl Elaborator<'_> {
    /// The value of a size.
    pub(in crate::elaborate) fn size(&mut self, statement: usize) -> Option<i64> {
        if let Some(&known) = self.sizes.get(&statement) {
            return known;
        }
        let StatementKind::Size { name, value } = &self.file.statements[statement].kind else {
            unreachable!("asked for sizes only")
        };
        if let Some(start) = self.sizes_entered.iter().position(|&s| s == statement) {
            let circle = self.circle(&self.sizes_entered[start..]);
            self.report(recursion(&circle, name.span));
            self.sizes.insert(statement, None);
            return None;
        }
        self.sizes_entered.push(statement);
        let mut scope = Scope::new(0, "a size");
        let before = self.diagnostics.len();
        let checked = self.value(value, &mut scope);
        self.sizes_entered.pop();
        let result = checked.and_then(|e| match e.value() {
            Some(v) if v.fract() == 0.0 && v.abs() <= LARGEST_INDEX => Some(v as i64),
            Some(v) => self.refuse(Diagnostic::error(
                format!("size '{}' must be an integer, and this is {v}", name.text),
                value.span,
                "not an integer",
            )),
            None => {
                if self.diagnostics.len() == before {
                    self.report(
                        Diagnostic::error(
                            format!("size '{}' must be an integer constant", name.text),
                            value.span,
                            "not a constant",
                        )
                        .help("a size is made of numbers and other sizes"),
                    );
                }
                None
            }
        });
        self.sizes.insert(statement, result);
        result
    }

    /// Binds the indices of a family's members, under `names`; returns their ranges.
    pub(super) fn bind_members(
        &mut self,
        names: &[String],
        family: &Family,
        span: Span,
        scope: &mut Scope,
    ) -> CheckedRanges {
        let mut ranges = CheckedRanges::default();
        for (name, &(low, high)) in names.iter().zip(&family.bounds) {
            let index = self.index_names.len() as u32;
            self.index_names.push(name.clone());
            let bound = |v: i64| CheckedExpression::number(v as f64, span);
            ranges.ranges.push(Range { index, low: bound(low), high: bound(high), span });
            scope.locals.push((
                name.clone(),
                CheckedExpression::new(Kind::Index(index), Shape::Scalar, span),
            ));
        }
        ranges
    }

    /// The box of a variable's or parameter's family.
    pub(super) fn family(
        &mut self,
        name: &ast::Name,
        ranges: &ast::Ranges,
        shape: Option<Shape>,
    ) -> Option<(Family, CheckedRanges)> {
        let mut scope = Scope::new(0, "a range");
        let checked = self.ranges(ranges, &mut scope);
        if let Some(filter) = &ranges.filter {
            return self.refuse(
                Diagnostic::error(
                    "the family of a variable or parameter has no condition",
                    filter.span,
                    "not here",
                )
                .help("leave rows out in the sums that use it"),
            );
        }
        if ranges.ranges.len() > MOST_INDICES {
            return self.refuse(Diagnostic::error(
                format!(
                    "'{}' has {} indices, and three are the most",
                    name.text,
                    ranges.ranges.len()
                ),
                name.span,
                "too many indices",
            ));
        }
        let checked = checked?;
        let mut bounds = Vec::new();
        for (range, written) in checked.ranges.iter().zip(&ranges.ranges) {
            let (Some(low), Some(high)) = (range.low.value(), range.high.value()) else {
                return self.refuse(
                    Diagnostic::error(
                        format!("the range of '{}' depends on another index", written.name.text),
                        range.span,
                        "not constant",
                    )
                    .help("variables and parameters are boxes; constraints and lets may have dependent ranges"),
                );
            };
            bounds.push((low as i64, high as i64));
        }
        let rows: f64 = bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as f64).product();
        if rows > MOST_ROWS as f64 {
            return self.refuse(Diagnostic::error(
                format!("'{}' has {rows} members, and the limit is {MOST_ROWS}", name.text),
                name.span,
                "too many",
            ));
        }
        let indices = ranges.ranges.iter().map(|r| r.name.text.clone()).collect();
        Some((
            Family { name: name.text.clone(), span: name.span, indices, bounds, shape: shape? },
            checked,
        ))
    }

    fn shape(&mut self, shape: &ShapeExpr) -> Option<Shape> {
        match shape {
            ShapeExpr::Scalar => Some(Shape::Scalar),
            ShapeExpr::Vector(k) => self.dimension(k).map(Shape::Vector),
            ShapeExpr::Matrix(k, l) => {
                let (k, l) = (self.dimension(k), self.dimension(l));
                Some(Shape::Matrix(k?, l?))
            }
        }
    }

    pub(in crate::elaborate) fn dimension(&mut self, e: &ast::Expr) -> Option<usize> {
        let mut scope = Scope::new(0, "a shape");
        let checked = self.index_value(e, &mut scope)?;
        match checked.value() {
            Some(v) if v >= 1.0 && v <= LARGEST_DIMENSION as f64 => Some(v as usize),
            Some(v) => self.refuse(Diagnostic::error(
                format!("a dimension of {v}"),
                e.span,
                format!("dimensions are integers from 1 to {LARGEST_DIMENSION}"),
            )),
            None => None,
        }
    }

    pub(super) fn variable_families(&mut self) {
        // Positions and states come first, because momenta have their coordinates' families.
        for number in 0..self.variables.len() {
            let (StatementKind::Coordinate { name, family, shape, .. }
            | StatementKind::State { name, family, shape, .. }) =
                &self.file.statements[self.variables[number].statement].kind
            else {
                continue;
            };
            let shape = self.shape(shape);
            let family = self.family(name, family, shape).map(|(f, _)| f);
            self.variables[number].family = family;
        }
        let mut taken: Vec<(usize, Span)> = Vec::new();
        for number in 0..self.variables.len() {
            let VariableRole::Momentum { velocity, .. } = self.variables[number].role else {
                continue;
            };
            let (StatementKind::Momentum { name, indices, of, .. }
            | StatementKind::Velocity { name, indices, of, .. }) =
                &self.file.statements[self.variables[number].statement].kind
            else {
                unreachable!()
            };
            // Do not use the symbol table: a coordinate that repeats another name is still a
            // coordinate.
            let target = self
                .variables
                .iter()
                .position(|v| v.name == of.text && v.role == VariableRole::Coordinate);
            let Some(target) = target else {
                if !self.poisoned.contains(&of.text) {
                    let coordinates: Vec<&str> = self
                        .variables
                        .iter()
                        .filter(|v| v.role == VariableRole::Coordinate)
                        .map(|v| v.name.as_str())
                        .collect();
                    let diagnostic = Diagnostic::error(
                        format!("'{}' is not a coordinate", of.text),
                        of.span,
                        "unknown coordinate",
                    );
                    let diagnostic = match did_you_mean(&of.text, coordinates.iter().copied()) {
                        Some(meant) => diagnostic.help(format!("did you mean '{meant}'?")),
                        None if coordinates.is_empty() => diagnostic
                            .help(format!("declare it: `coordinate {} : R^3 = …`", of.text)),
                        None => diagnostic
                            .help(format!("the coordinates are {}", coordinates.join(", "))),
                    };
                    self.report(diagnostic);
                }
                continue;
            };
            if let Some((_, first)) = taken.iter().find(|(t, _)| *t == target) {
                self.report(
                    Diagnostic::error(
                        format!("coordinate '{}' has two momenta", of.text),
                        name.span,
                        "second momentum",
                    )
                    .related(*first, "the first is here"),
                );
                continue;
            }
            taken.push((target, name.span));
            self.variables[number].role = VariableRole::Momentum { of: target, velocity };
            let Some(family) = self.variables[target].family.clone() else { continue };
            if !indices.is_empty() && indices.len() != family.indices.len() {
                self.report(
                    Diagnostic::error(
                        format!(
                            "'{}' has {} indices, and '{}' has {}",
                            name.text,
                            indices.len(),
                            of.text,
                            family.indices.len()
                        ),
                        name.span,
                        "the families differ",
                    )
                    .related(family.span, "the coordinate"),
                );
                continue;
            }
            let names = if indices.is_empty() {
                family.indices.clone()
            } else {
                indices.iter().map(|i| i.text.clone()).collect()
            };
            self.variables[number].family = Some(Family {
                name: self.variables[number].name.clone(),
                span: name.span,
                indices: names,
                ..family
            });
        }
    }
}
