//! Operators and the shapes that they accept.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{CheckedExpression, Ex, Kind};
use crate::elaborate::names::Scope;
use crate::elaborate::shape::Shape;
use crate::graph::op::{Binary, Unary};
use crate::syntax::ast::{self, BinaryOperator, ExprKind};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;

impl Elaborator<'_> {
    pub(super) fn operator(
        &mut self,
        operator: BinaryOperator,
        place: Span,
        a: &ast::Expr,
        b: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        use BinaryOperator::*;
        match operator {
            Add | Subtract => self.sum_chain(operator, place, a, b, span, scope),
            Multiply => {
                let (a, b) = (self.value(a, scope), self.value(b, scope));
                self.product(a?, b?, place, span)
            }
            Divide => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                if y.shape != Shape::Scalar {
                    return self.refuse(
                        Diagnostic::error(
                            format!("cannot divide by {}", y.shape),
                            b.span,
                            "only scalars divide",
                        )
                        .help(match y.shape {
                            Shape::Matrix(..) => "multiply with inverse(A)",
                            _ => "divide by its norm, or component by component",
                        }),
                    );
                }
                if y.value() == Some(0.0) {
                    return self.refuse(Diagnostic::error("division by zero", b.span, "this is 0"));
                }
                if let (Some(u), Some(v)) = (x.value(), y.value()) {
                    return Some(CheckedExpression::number(u / v, span));
                }
                let shape = x.shape;
                Some(if shape == Shape::Scalar {
                    CheckedExpression::new(Kind::Binary(Binary::Div, x, y), shape, span)
                } else {
                    CheckedExpression::new(Kind::Divide(x, y), shape, span)
                })
            }
            Power => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                for (side, e, what) in [(a, &x, "base"), (b, &y, "exponent")] {
                    if e.shape != Shape::Scalar {
                        return self.refuse(
                            Diagnostic::error(
                                format!("the {what} of ^ must be a scalar"),
                                side.span,
                                format!("this has the shape {}", e.shape),
                            )
                            .help(if what == "base" {
                                "write dot(v, v) for the square of a vector"
                            } else {
                                "an exponent is one number"
                            }),
                        );
                    }
                }
                if let (Some(u), Some(v)) = (x.value(), y.value()) {
                    if u == 0.0 && v < 0.0 {
                        return self.refuse(Diagnostic::error(
                            "division by zero",
                            span,
                            "0 to a negative power",
                        ));
                    }
                    return Some(CheckedExpression::number(u.powf(v), span));
                }
                Some(CheckedExpression::new(Kind::Binary(Binary::Pow, x, y), Shape::Scalar, span))
            }
            And | Or => {
                let op = if operator == And { Binary::And } else { Binary::Or };
                let whom = format!("'{}'", op.name());
                let (x, y) = (self.condition(a, scope, &whom), self.condition(b, scope, &whom));
                Some(CheckedExpression::new(Kind::Binary(op, x?, y?), Shape::Condition, span))
            }
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => {
                let (x, y) = (self.value(a, scope), self.value(b, scope));
                let (x, y) = (x?, y?);
                if x.shape != Shape::Scalar || y.shape != Shape::Scalar {
                    return self.refuse(Diagnostic::error(
                        format!("cannot compare {} with {}", x.shape, y.shape),
                        span,
                        "only scalars are compared",
                    ));
                }
                let (op, x, y) = match operator {
                    Less => (Binary::Less, x, y),
                    LessEqual => (Binary::LessEqual, x, y),
                    Greater => (Binary::Less, y, x),
                    GreaterEqual => (Binary::LessEqual, y, x),
                    _ => (Binary::Equal, x, y),
                };
                let e = CheckedExpression::new(Kind::Binary(op, x, y), Shape::Condition, span);
                Some(if operator == NotEqual {
                    CheckedExpression::new(Kind::Unary(Unary::Not, e), Shape::Condition, span)
                } else {
                    e
                })
            }
        }
    }

    /// `a + b − c + …` as one sum: the tree leans left, and a long one must not nest.
    fn sum_chain(
        &mut self,
        operator: BinaryOperator,
        place: Span,
        a: &ast::Expr,
        b: &ast::Expr,
        span: Span,
        scope: &mut Scope,
    ) -> Option<Ex> {
        let mut chain = vec![(operator, place, b)];
        let mut first = a;
        while let ExprKind::Binary(
            op @ (BinaryOperator::Add | BinaryOperator::Subtract),
            place,
            left,
            right,
        ) = &first.kind
        {
            chain.push((*op, *place, right));
            first = left;
        }
        let mut good = true;
        let mut terms: Vec<(bool, Ex)> = Vec::with_capacity(chain.len() + 1);
        let mut shape = None;
        match self.value(first, scope) {
            Some(e) => {
                shape = Some((e.shape, first.span));
                terms.push((false, e));
            }
            None => good = false,
        }
        for (op, place, term) in chain.into_iter().rev() {
            let Some(e) = self.value(term, scope) else {
                good = false;
                continue;
            };
            match shape {
                Some((shape, left)) if shape != e.shape => {
                    let (verb, word) = if op == BinaryOperator::Add {
                        ("add", "and")
                    } else {
                        ("subtract", "and")
                    };
                    self.report(
                        Diagnostic::error(
                            format!("cannot {verb} {shape} {word} {}", e.shape),
                            place,
                            "the shapes differ",
                        )
                        .related(left, format!("this has the shape {shape}"))
                        .related(term.span, format!("this has the shape {}", e.shape)),
                    );
                    good = false;
                }
                _ => shape = Some((e.shape, term.span)),
            }
            terms.push((op == BinaryOperator::Subtract, e));
        }
        if !good {
            return None;
        }
        let shape = terms[0].1.shape;
        if terms.iter().all(|(_, e)| e.value().is_some()) {
            let total = terms.iter().fold(0.0, |s, (negative, e)| {
                if *negative { s - e.value().unwrap() } else { s + e.value().unwrap() }
            });
            return Some(CheckedExpression::number(total, span));
        }
        Some(CheckedExpression::new(Kind::Add(terms), shape, span))
    }

    pub(in crate::elaborate) fn product(
        &mut self,
        a: Ex,
        b: Ex,
        place: Span,
        span: Span,
    ) -> Option<Ex> {
        use Shape::*;
        let kind = match (a.shape, b.shape) {
            (Scalar, Scalar) => {
                if let (Some(u), Some(v)) = (a.value(), b.value()) {
                    return Some(CheckedExpression::number(u * v, span));
                }
                (Kind::Binary(Binary::Mul, a, b), Scalar)
            }
            (Scalar, shape) => (Kind::Scale(a, b), shape),
            (shape, Scalar) => (Kind::Scale(b, a), shape),
            (Matrix(k, l), Vector(m)) if l == m => (Kind::Product(a, b), Vector(k)),
            (Matrix(k, l), Matrix(m, n)) if l == m => (Kind::Product(a, b), Matrix(k, n)),
            (left, right) => {
                let help = match (left, right) {
                    (Vector(_), Vector(_)) => "write dot(a, b), cross(a, b) or outer(a, b)",
                    (Vector(_), Matrix(..)) => "a row vector times a matrix is transpose(A)*v",
                    _ => "the inner dimensions must agree",
                };
                return self.refuse(
                    Diagnostic::error(
                        format!("cannot multiply {left} by {right}"),
                        place,
                        "the shapes do not fit",
                    )
                    .help(help)
                    .related(a.span, format!("this has the shape {left}"))
                    .related(b.span, format!("this has the shape {right}")),
                );
            }
        };
        Some(CheckedExpression::new(kind.0, kind.1, span))
    }
}
