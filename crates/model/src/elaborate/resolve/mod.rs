//! Resolution of the syntax tree's expressions to checked ones: names resolved, shapes checked,
//! every mistake reported at its place.

mod calls;
mod definitions;
mod indices;
mod interpolate;
mod lists;
mod multipliers;
mod naming;
mod operators;
mod rates;

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{CheckedExpression, Ex, Kind};
use crate::elaborate::lower::LARGEST_TEMPLATE;
use crate::elaborate::shape::Shape;
use crate::graph::op::Unary;
use crate::syntax::ast::{self, ExprKind, UnaryOperator};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

/// Largest nesting of checked expressions, with every `let` expanded.
pub const DEEPEST: usize = 1500;
/// Largest number of checked expressions of one model.
pub const MOST_EXPRESSIONS: usize = 2_000_000;

impl Elaborator<'_> {
    /// Checks `e`; `None` if an error has been reported.
    pub(super) fn expression(&mut self, e: &ast::Expr) -> Option<Ex> {
        self.depth += 1;
        self.count += 1;
        let deep = || {
            let message =
                format!("this is nested more than {DEEPEST} deep, with every `let` expanded");
            Diagnostic::error(message, e.span, "too deep")
        };
        let result = if self.depth > DEEPEST {
            self.once("too deep", deep())
        } else if self.count > MOST_EXPRESSIONS {
            let message = format!(
                "the model has more than {MOST_EXPRESSIONS} expressions, with every `let` expanded"
            );
            self.once("too large", Diagnostic::error(message, e.span, "too large"))
        } else {
            self.expression_kind(e)
        };
        self.depth -= 1;
        let checked = result?;
        if checked.height as usize > DEEPEST {
            return self.once("too deep", deep());
        }
        // The cost of a product of matrices is known before it is unrolled.
        let operations = match &checked.kind {
            Kind::Product(a, b) => {
                a.shape.len().saturating_mul(checked.shape.len()) / a.shape.dimensions()[0].max(1)
                    + b.shape.len()
            }
            _ => checked.shape.len(),
        };
        if operations > LARGEST_TEMPLATE {
            let message = format!(
                "this takes more than {LARGEST_TEMPLATE} operations, with every component expanded"
            );
            return self.once("too wide", Diagnostic::error(message, e.span, "too large"));
        }
        Some(checked)
    }

    /// Reports a finding only once for each `key`, because it would repeat itself.
    fn once(&mut self, key: &'static str, diagnostic: Diagnostic) -> Option<Ex> {
        if self.reported_once.insert(key) {
            self.report(diagnostic);
        }
        None
    }

    fn expression_kind(&mut self, e: &ast::Expr) -> Option<Ex> {
        let span = e.span;
        match &e.kind {
            ExprKind::Number(v) => Some(CheckedExpression::number(*v, span)),
            ExprKind::Name(name) => self.name(name, &[], span),
            ExprKind::Member(base, member) => self.member(base, member, span),
            ExprKind::Index(base, indices) => self.index(base, indices, span),
            ExprKind::Call(function, arguments) => self.call(function, arguments, span),
            ExprKind::Rate(of, primes) => self.rate(of, *primes, span),
            ExprKind::Unary(UnaryOperator::Negate, a) => {
                let a = self.value(a)?;
                Some(match a.value() {
                    Some(v) => CheckedExpression::number(-v, span),
                    None => {
                        let shape = a.shape;
                        CheckedExpression::new(Kind::Unary(Unary::Neg, a), shape, span)
                    }
                })
            }
            ExprKind::Unary(UnaryOperator::Not, a) => {
                let a = self.condition(a, "'not'")?;
                Some(CheckedExpression::new(Kind::Unary(Unary::Not, a), Shape::Condition, span))
            }
            ExprKind::Binary(operator, place, a, b) => self.operator(*operator, *place, a, b, span),
            ExprKind::Vector(entries) => {
                let entries: Vec<Option<Ex>> =
                    entries.iter().map(|x| self.scalar(x, "an entry of a vector")).collect();
                let entries: Vec<Ex> = entries.into_iter().collect::<Option<_>>()?;
                let shape = Shape::Vector(entries.len());
                Some(CheckedExpression::new(Kind::Stack(entries), shape, span))
            }
            ExprKind::Sum(ranges, body) => self.sum(ranges, body, span),
        }
    }

    /// A sum; the part of its condition that is not on indices alone chooses the summand or 0.
    fn sum(&mut self, ranges: &ast::IndexSetExpr, body: &ast::Expr, span: Span) -> Option<Ex> {
        let depth = self.scope.locals.len();
        let set = self.conditional_set(ranges);
        let body = self.value(body);
        self.scope.locals.truncate(depth);
        let ((set, condition), mut body) = (set?, body?);
        let shape = body.shape;
        if let Some(condition) = condition {
            let absent = CheckedExpression::zero(shape, span);
            body = CheckedExpression::new(Kind::Select(condition, body, absent), shape, span);
        }
        Some(CheckedExpression::new(Kind::Sum(set, body), shape, span))
    }

    /// The value of the definition in statement `number`, which must not use itself, directly or
    /// through others.
    pub(super) fn value_of(&mut self, number: usize, e: &ast::Expr) -> Option<Ex> {
        self.entered.push(number);
        let checked = self.value(e);
        self.leave();
        checked
    }

    /// A number, vector or matrix; not a condition.
    pub(super) fn value(&mut self, e: &ast::Expr) -> Option<Ex> {
        self.value_for(e, "this place")
    }

    /// [`Elaborator::value`], needed by `whom`.
    fn value_for(&mut self, e: &ast::Expr, whom: &str) -> Option<Ex> {
        let checked = self.expression(e)?;
        if checked.shape == Shape::Condition {
            let message = format!("{whom} needs a number, and this is a condition");
            let finding = Diagnostic::error(message, e.span, "this is true or false");
            return self
                .refuse(finding.help("write if(condition, a, b) to choose between two values"));
        }
        Some(checked)
    }

    /// [`Elaborator::value`] of every expression, needed by `whom`.
    fn values(&mut self, list: &[ast::Expr], whom: &str) -> Option<Vec<Ex>> {
        let values: Vec<_> = list.iter().map(|e| self.value_for(e, whom)).collect();
        values.into_iter().collect()
    }

    pub(super) fn scalar(&mut self, e: &ast::Expr, what: &str) -> Option<Ex> {
        let checked = self.value_for(e, what)?;
        if checked.shape != Shape::Scalar {
            let message = format!("{what} must be a scalar");
            let label = format!("this has the shape {}", checked.shape);
            return self.refuse(Diagnostic::error(message, e.span, label));
        }
        Some(checked)
    }

    /// A condition, needed by `whom`.
    fn condition(&mut self, e: &ast::Expr, whom: &str) -> Option<Ex> {
        let checked = self.expression(e)?;
        if checked.shape != Shape::Condition {
            let message = format!("{whom} needs a condition");
            let label = format!("this has the shape {}", checked.shape);
            let finding = Diagnostic::error(message, e.span, label);
            return self.refuse(finding.help("compare with <, <=, >, >=, == or !="));
        }
        Some(checked)
    }
}
