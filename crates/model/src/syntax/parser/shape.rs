//! Parser of shapes.

use super::super::ast::{Expr, ExprKind, ShapeExpr};
use super::super::diagnostic::{Diagnostic, shorten};
use super::super::span::Span;
use super::super::token::TokenKind;
use super::{Parsed, Parser};

/// Shapes of the language, for messages.
const SHAPES: &str = "shapes are R (a number), R^k (a vector) and R^(k,l) (a matrix)";

impl Parser<'_> {
    /// Reads `: SHAPE`, or nothing for a scalar.
    pub(super) fn shape(&mut self) -> Parsed<ShapeExpr> {
        if self.eat(TokenKind::Colon).is_some() {
            return self.shape_after_colon();
        }
        let said_in = self.kind() == TokenKind::In;
        let at_shape =
            if said_in { self.kind_after(1) == TokenKind::Name } else { self.word() == "R" };
        if !at_shape {
            return Ok(ShapeExpr::Scalar);
        }
        let finding =
            self.malformed("a ':' is missing before the shape".to_string(), "expected ':'");
        if said_in {
            self.advance();
        }
        // The lexer has reported a '∈', and beside a reserved name anything may be wrong.
        if !self.is_beside_report() {
            self.report(finding);
        }
        self.shape_after_colon()
    }

    fn shape_after_colon(&mut self) -> Parsed<ShapeExpr> {
        let (span, text) = (self.span(), self.word());
        if self.kind() != TokenKind::Name {
            return self.unexpected("a shape: R, R^k or R^(k,l)");
        }
        if text == "ℝ" {
            let finding = Diagnostic::error("'ℝ' is written as a plain R", span, "not read");
            self.report(finding.help("write R"));
        } else if text != "R" {
            let is_number = |rest: &&str| rest.chars().all(|c| c.is_ascii_digit());
            let help = match text.strip_prefix(['R', 'ℝ']).filter(is_number) {
                Some(dimension) => format!("write R^{}", shorten(dimension)),
                None => SHAPES.to_string(),
            };
            let message = format!("unknown shape '{}'", shorten(text));
            let finding = Diagnostic::error(message, span, "expected R, R^k or R^(k,l)");
            return self.fail(finding.help(help));
        }
        self.advance();
        let shape = match self.eat(TokenKind::Caret) {
            Some(_) => self.dimensions()?,
            None => ShapeExpr::Scalar,
        };
        use TokenKind::*;
        if matches!(self.kind(), End | Equals | EqualEqual | Unknown) {
            return Ok(shape);
        }
        let message = format!("expected '=' after the shape, found {}", self.found());
        let finding = self.malformed(message, "expected '='");
        self.fail(match self.kind() {
            OpenRound | Minus => finding,
            _ => finding.help(SHAPES),
        })
    }

    /// Refuses `: SHAPE` if the shape follows from something else.
    pub(super) fn refuse_shape(&mut self, why: &str) -> Parsed<()> {
        let Some(start) = self.eat(TokenKind::Colon) else { return Ok(()) };
        let help = format!("write {}", self.row.form);
        if self.word() != "R" {
            let message = format!("expected '=', found ':' before {}", self.found());
            let finding = Diagnostic::error(message, start.to(self.span()), "expected '='");
            return self.fail(finding.help(help));
        }
        self.shape_after_colon()?;
        let span = start.to(self.previous().map_or(start, |token| token.span));
        let message = format!("no shape is declared for '{}': {why}", self.row.word);
        self.report(Diagnostic::error(message, span, "not needed").help(help));
        Ok(())
    }

    /// Reads `k` or `(k, l)`.
    fn dimensions(&mut self) -> Parsed<ShapeExpr> {
        if self.kind() != TokenKind::OpenRound {
            return Ok(ShapeExpr::Vector(self.dimension()?));
        }
        self.open_bracket();
        let rows = self.dimension()?;
        let columns = match self.eat(TokenKind::Comma) {
            Some(_) => Some(self.dimension()?),
            None => None,
        };
        if self.kind() == TokenKind::Comma && self.unclosed_bracket().is_none() {
            let message = "a shape has at most two dimensions";
            let finding = Diagnostic::error(message, self.span(), "a third one follows");
            let help = "use a family for more: coordinate NAME[i in 1..n] : R^(k,l) = EXPR";
            return self.fail(finding.help(help));
        }
        self.close_bracket(if columns.is_none() { "',' or ')'" } else { "')'" })?;
        Ok(match columns {
            Some(columns) => ShapeExpr::Matrix(rows, columns),
            None => ShapeExpr::Vector(rows),
        })
    }

    /// Reads a number or the name of a size; no arithmetic.
    fn dimension(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Number(value) => ExprKind::Number(value),
            TokenKind::Name => ExprKind::Name(self.word().to_string()),
            TokenKind::OpenCurly | TokenKind::OpenSquare | TokenKind::Minus => {
                return self.no_dimension(span);
            }
            _ => return self.unexpected("a dimension: a number or the name of a size"),
        };
        self.advance();
        let is_number = matches!(kind, ExprKind::Number(_));
        if self.kind().is_infix() || is_number && self.kind() == TokenKind::Name {
            return self.no_dimension(span.to(self.span()));
        }
        Ok(Expr { kind, span })
    }

    fn no_dimension<T>(&mut self, span: Span) -> Parsed<T> {
        let message = "a dimension is a number or the name of a size";
        let help = "write R^k or R^(k,l); declare other dimensions first: size m = n + 1";
        self.fail(Diagnostic::error(message, span, "not a plain dimension").help(help))
    }
}
