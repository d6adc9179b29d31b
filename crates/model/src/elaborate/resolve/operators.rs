//! Operators and the shapes that they accept.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{CheckedExpression, Ex, Kind};
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
    ) -> Option<Ex> {
        use BinaryOperator::*;
        let condition = |kind| Some(CheckedExpression::new(kind, Shape::Condition, span));
        if let Add | Subtract = operator {
            return self.sum_chain(operator, place, a, b, span);
        }
        if let And | Or = operator {
            let op = if operator == And { Binary::And } else { Binary::Or };
            let whom = format!("'{}'", op.name());
            let (x, y) = (self.condition(a, &whom), self.condition(b, &whom));
            return condition(Kind::Binary(op, x?, y?));
        }
        let (x, y) = (self.value(a), self.value(b));
        let (x, y) = (x?, y?);
        match operator {
            Multiply => return self.product(x, y, place, span),
            Divide => return self.quotient(x, y, b.span, span),
            Power => return self.power(x, y, [a.span, b.span], span),
            _ => {}
        }
        if x.shape != Shape::Scalar || y.shape != Shape::Scalar {
            let message = format!("cannot compare {} with {}", x.shape, y.shape);
            return self.refuse(Diagnostic::error(message, span, "only scalars are compared"));
        }
        let e = condition(match operator {
            Less => Kind::Binary(Binary::Less, x, y),
            LessEqual => Kind::Binary(Binary::LessEqual, x, y),
            Greater => Kind::Binary(Binary::Less, y, x),
            GreaterEqual => Kind::Binary(Binary::LessEqual, y, x),
            _ => Kind::Binary(Binary::Equal, x, y),
        })?;
        if operator == NotEqual { condition(Kind::Unary(Unary::Not, e)) } else { Some(e) }
    }

    fn quotient(&mut self, x: Ex, y: Ex, divisor: Span, span: Span) -> Option<Ex> {
        if y.shape != Shape::Scalar {
            let message = format!("cannot divide by {}", y.shape);
            let finding = Diagnostic::error(message, divisor, "only scalars divide");
            return self.refuse(finding.help(match y.shape {
                Shape::Matrix(..) => "multiply with inverse(A)",
                _ => "divide by its norm, or component by component",
            }));
        }
        let shape = x.shape;
        match (x.value(), y.value()) {
            (_, Some(0.0)) => {
                self.refuse(Diagnostic::error("division by zero", divisor, "this is 0"))
            }
            (Some(u), Some(v)) => Some(CheckedExpression::number(u / v, span)),
            _ => {
                let kind = match shape {
                    Shape::Scalar => Kind::Binary(Binary::Div, x, y),
                    _ => Kind::Divide(x, y),
                };
                Some(CheckedExpression::new(kind, shape, span))
            }
        }
    }

    fn power(&mut self, x: Ex, y: Ex, sides: [Span; 2], span: Span) -> Option<Ex> {
        let helps = ["write dot(v, v) for the square of a vector", "an exponent is one number"];
        for (k, (e, what)) in [(&x, "base"), (&y, "exponent")].into_iter().enumerate() {
            if e.shape != Shape::Scalar {
                let message = format!("the {what} of ^ must be a scalar");
                let label = format!("this has the shape {}", e.shape);
                return self.refuse(Diagnostic::error(message, sides[k], label).help(helps[k]));
            }
        }
        match (x.value(), y.value()) {
            (Some(0.0), Some(v)) if v < 0.0 => {
                self.refuse(Diagnostic::error("division by zero", span, "0 to a negative power"))
            }
            (Some(u), Some(v)) => Some(CheckedExpression::number(u.powf(v), span)),
            _ => {
                let kind = Kind::Binary(Binary::Pow, x, y);
                Some(CheckedExpression::new(kind, Shape::Scalar, span))
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
        match self.value(first) {
            Some(e) => {
                shape = Some((e.shape, first.span));
                terms.push((false, e));
            }
            None => good = false,
        }
        for (op, place, term) in chain.into_iter().rev() {
            let Some(e) = self.value(term) else {
                good = false;
                continue;
            };
            match shape {
                Some((shape, left)) if shape != e.shape => {
                    let verb = if op == BinaryOperator::Add { "add" } else { "subtract" };
                    let message = format!("cannot {verb} {shape} and {}", e.shape);
                    let finding = Diagnostic::error(message, place, "the shapes differ")
                        .related(left, format!("this has the shape {shape}"))
                        .related(term.span, format!("this has the shape {}", e.shape));
                    self.report(finding);
                    good = false;
                }
                _ => shape = Some((e.shape, term.span)),
            }
            terms.push((op == BinaryOperator::Subtract, e));
        }
        if !good {
            return None;
        }
        let signed = |(is_subtracted, e): &(bool, Ex)| {
            e.value().map(|value| if *is_subtracted { -value } else { value })
        };
        let total = terms.iter().map(signed).try_fold(0.0, |sum, value| Some(sum + value?));
        if let Some(total) = total {
            return Some(CheckedExpression::number(total, span));
        }
        let shape = terms[0].1.shape;
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
                let message = format!("cannot multiply {left} by {right}");
                let finding = Diagnostic::error(message, place, "the shapes do not fit");
                return self.refuse(
                    finding
                        .help(help)
                        .related(a.span, format!("this has the shape {left}"))
                        .related(b.span, format!("this has the shape {right}")),
                );
            }
        };
        Some(CheckedExpression::new(kind.0, kind.1, span))
    }
}
