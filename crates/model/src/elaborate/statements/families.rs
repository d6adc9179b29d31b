//! Sizes, shapes, and the families of variables and parameters: boxes of index values.

use crate::elaborate::expression::CheckedExpression;
use crate::elaborate::expression::index_set::{IndexRange, IndexSet};
use crate::elaborate::lower::{LARGEST_INDEX, MOST_ROWS};
use crate::elaborate::model::Family;
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::elaborate::{Elaborator, VariableRole};
use crate::syntax::ast::{self, ShapeExpr, Statement};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use crate::syntax::statements::StatementKind;

/// Largest dimension in `R^k`.
const LARGEST_DIMENSION: i64 = 1024;
/// Largest number of indices of a family.
const MOST_INDICES: usize = 3;

impl Elaborator<'_> {
    /// The value of a size.
    pub(in crate::elaborate) fn size(&mut self, number: usize) -> Option<i64> {
        if let Some(&known) = self.sizes.get(&number) {
            return known;
        }
        let Statement { name, values, .. } = self.statement(number);
        if self.enter(number, name.span).is_none() {
            self.sizes.insert(number, None);
            return None;
        }
        let before = self.diagnostics.len();
        let checked = self.within(Scope::new(0, "a size"), |this| this.value(&values[0]));
        self.leave();
        let result = checked.and_then(|e| {
            let (name, span) = (&name.text, values[0].span);
            match e.value() {
                Some(v) if v.fract() == 0.0 && v.abs() <= LARGEST_INDEX => return Some(v as i64),
                Some(v) => {
                    let message = format!("size '{name}' must be an integer, and this is {v}");
                    self.report(Diagnostic::error(message, span, "not an integer"));
                }
                None if self.diagnostics.len() == before => {
                    let message = format!("size '{name}' must be an integer constant");
                    let finding = Diagnostic::error(message, span, "not a constant");
                    self.report(finding.help("a size is made of numbers and other sizes"));
                }
                None => {}
            }
            None
        });
        self.sizes.insert(number, result);
        result
    }

    /// Binds the indices of a family's members, under `names`; returns their box.
    pub(super) fn bind_members(
        &mut self,
        names: &[String],
        family: &Family,
        span: Span,
    ) -> IndexSet {
        let mut set = IndexSet::default();
        for (name, &(low, high)) in names.iter().zip(&family.bounds) {
            let index = self.bind_index(name, span);
            let [low, high] = [low, high].map(|v| CheckedExpression::number(v as f64, span));
            set.ranges.push(IndexRange { index, low, high, span });
        }
        set
    }

    /// The box of a variable's or parameter's family.
    pub(super) fn family(
        &mut self,
        statement: &Statement,
        shape: Option<Shape>,
    ) -> Option<(Family, IndexSet)> {
        let Statement { name, family: written, .. } = statement;
        self.scope = Scope::new(0, "a range");
        let set = self.index_set(written);
        if let Some(filter) = &written.filter {
            let message = "the family of a variable or parameter has no condition";
            let finding = Diagnostic::error(message, filter.span, "not here");
            return self.refuse(finding.help("leave rows out in the sums that use it"));
        }
        let (name, span) = (name.text.clone(), name.span);
        let count = written.ranges.len();
        if count > MOST_INDICES {
            let message = format!("'{name}' has {count} indices, and three are the most");
            return self.refuse(Diagnostic::error(message, span, "too many indices"));
        }
        let set = set?;
        let bounds = match set.bounds() {
            Ok(bounds) => bounds,
            Err(k) => {
                let index = &written.ranges[k].name.text;
                let message = format!("the range of '{index}' depends on another index");
                let finding = Diagnostic::error(message, set.ranges[k].span, "not constant");
                let help = "variables and parameters are boxes; constraints and lets may have dependent ranges";
                return self.refuse(finding.help(help));
            }
        };
        let rows: f64 = bounds.iter().map(|&(low, high)| (high - low + 1).max(0) as f64).product();
        if rows > MOST_ROWS as f64 {
            let message = format!("'{name}' has {rows} members, and the limit is {MOST_ROWS}");
            return self.refuse(Diagnostic::error(message, span, "too many"));
        }
        let indices = written.ranges.iter().map(|r| r.name.text.clone()).collect();
        Some((Family { name, span, indices, bounds, shape: shape? }, set))
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

    fn dimension(&mut self, e: &ast::Expr) -> Option<usize> {
        self.scope = Scope::new(0, "a shape");
        let value = self.index_value(e)?.value()?;
        if value >= 1.0 && value <= LARGEST_DIMENSION as f64 {
            return Some(value as usize);
        }
        let label = format!("dimensions are integers from 1 to {LARGEST_DIMENSION}");
        self.refuse(Diagnostic::error(format!("a dimension of {value}"), e.span, label))
    }

    pub(super) fn variable_families(&mut self) {
        // Positions and states come first, because momenta have their coordinates' families.
        for number in 0..self.variables.len() {
            let statement = self.statement(self.variables[number].statement);
            if let StatementKind::Coordinate | StatementKind::State = statement.kind {
                let shape = self.shape(&statement.shape);
                self.variables[number].family = self.family(statement, shape).map(|(f, _)| f);
            }
        }
        let mut taken: Vec<(usize, Span)> = Vec::new();
        for number in 0..self.variables.len() {
            let statement = self.statement(self.variables[number].statement);
            let VariableRole::Momentum { velocity, .. } = self.variables[number].role else {
                continue;
            };
            let Some(of) = self.coordinate(&statement.reference) else { continue };
            let name = &statement.name;
            if let Some((_, first)) = taken.iter().find(|(known, _)| *known == of) {
                let message = format!("coordinate '{}' has two momenta", statement.reference.text);
                let finding = Diagnostic::error(message, name.span, "second momentum");
                self.report(finding.related(*first, "the first is here"));
                continue;
            }
            taken.push((of, name.span));
            self.variables[number].role = VariableRole::Momentum { of, velocity };
            self.variables[number].family = self.conjugate_family(number, of);
        }
    }

    /// The coordinate called `name`.
    fn coordinate(&mut self, name: &ast::Name) -> Option<usize> {
        // Do not use the symbol table: a coordinate that repeats another name is still a
        // coordinate.
        let coordinates = || {
            self.variables.iter().enumerate().filter(|(_, v)| v.role == VariableRole::Coordinate)
        };
        if let Some((known, _)) = coordinates().find(|(_, v)| v.name == name.text) {
            return Some(known);
        }
        if self.poisoned.contains(&name.text) {
            return None;
        }
        let known: Vec<&str> = coordinates().map(|(_, v)| v.name.as_str()).collect();
        let message = format!("'{}' is not a coordinate", name.text);
        let finding = Diagnostic::error(message, name.span, "unknown coordinate");
        let finding =
            finding.suggest(&name.text, known.iter().copied(), || match known.is_empty() {
                true => format!("declare it: `coordinate {} : R^3 = …`", name.text),
                false => format!("the coordinates are {}", known.join(", ")),
            });
        self.refuse(finding)
    }

    /// Family of the momentum `number`, that of its coordinate with its own names of indices.
    fn conjugate_family(&mut self, number: usize, of: usize) -> Option<Family> {
        let Statement { name, indices, reference, .. } =
            self.statement(self.variables[number].statement);
        let family = self.variables[of].family.clone()?;
        let (own, other) = (indices.len(), family.indices.len());
        if own != 0 && own != other {
            let message =
                format!("'{}' has {own} indices, and '{}' has {other}", name.text, reference.text);
            let finding = Diagnostic::error(message, name.span, "the families differ");
            return self.refuse(finding.related(family.span, "the coordinate"));
        }
        let indices = match own {
            0 => family.indices.clone(),
            _ => indices.iter().map(|i| i.text.clone()).collect(),
        };
        let name_of_momentum = self.variables[number].name.clone();
        Some(Family { name: name_of_momentum, span: name.span, indices, ..family })
    }
}
