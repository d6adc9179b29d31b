//! Parser of what a model draws: a form with its arguments, its colour and labels; a camera.

use super::super::ast::{Expr, ExprKind, IndexSetExpr, RangeExpr, Statement};
use super::super::diagnostic::{Diagnostic, shorten};
use super::super::token::TokenKind;
use super::expression::Owner;
use super::{Parsed, Parser};

/// Words behind a form, and how they are spelled elsewhere.
const STYLES: [(&str, &str); 2] = [("colour", "color"), ("label", "name")];

/// Help for malformed cameras.
const CAMERA: &str =
    "write draw camera follow EXPR, with a point, or draw camera frame(EXPR), with an attitude";

impl Parser<'_> {
    /// Reads `FORM(EXPR, …)` with its style, or `camera follow EXPR` or `camera frame(EXPR)`.
    pub(super) fn drawing(&mut self, statement: &mut Statement) -> Parsed<()> {
        if self.word() == "camera" && self.kind_after(1) == TokenKind::Name {
            self.advance();
            if !["follow", "frame"].contains(&self.word()) {
                let label = "expected 'follow' or 'frame'";
                let message = "a camera follows a point, or turns with an attitude";
                return self.fail(Diagnostic::error(message, self.span(), label).help(CAMERA));
            }
            statement.reference = self.take_name();
            statement.drawn_over.push(IndexSetExpr::default());
            statement.values.push(self.present_expression()?);
            return Ok(());
        }
        if self.kind() != TokenKind::Name || self.kind_after(1) != TokenKind::OpenRound {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected("a form");
            }
            let message = "'draw' says what is drawn, and where".to_string();
            return self.fail(self.malformed(message, "expected line(, sphere(, …"));
        }
        statement.reference = self.take_name();
        self.open_bracket();
        if self.kind() != TokenKind::CloseRound {
            self.drawn(statement)?;
            while self.eat(TokenKind::Comma).is_some() {
                self.drawn(statement)?;
            }
        }
        self.close_bracket("',' or ')'")?;
        self.styles(statement)
    }

    /// Reads an argument of a form: an expression, or `ranges : EXPR`. A name without a range runs
    /// from 0 to 1.
    fn drawn(&mut self, statement: &mut Statement) -> Parsed<()> {
        let over = match self.at_ranges() {
            true => {
                let over = self.drawn_ranges()?;
                self.sum_separator()?;
                over
            }
            false => IndexSetExpr::default(),
        };
        statement.drawn_over.push(over);
        statement.values.push(self.expression()?);
        Ok(())
    }

    /// True if names with commas between them come next, and then `in` or a colon.
    fn at_ranges(&self) -> bool {
        let mut place = 0;
        while self.kind_after(place).is_word() {
            match self.kind_after(place + 1) {
                TokenKind::Comma => place += 2,
                kind => return matches!(kind, TokenKind::In | TokenKind::Colon),
            }
        }
        false
    }

    fn drawn_ranges(&mut self) -> Parsed<IndexSetExpr> {
        let mut over = IndexSetExpr::default();
        while self.kind_after(1) != TokenKind::In {
            let name = self.index()?;
            let end = |value| Expr { kind: ExprKind::Number(value), span: name.span };
            over.ranges.push(RangeExpr { low: end(0.0), high: end(1.0), name });
            if self.eat(TokenKind::Comma).is_none() {
                return Ok(over);
            }
        }
        let (ranges, _) = self.ranges(Owner::Sum)?;
        over.ranges.extend(ranges.ranges);
        over.filter = ranges.filter;
        Ok(over)
    }

    /// Reads `colour "…"` or `colour EXPR`, and `label "…", "…"`, in any order.
    fn styles(&mut self, statement: &mut Statement) -> Parsed<()> {
        while self.kind() == TokenKind::Name {
            let (word, span) = (self.word(), self.span());
            let Some((style, _)) =
                STYLES.iter().find(|(style, other)| [*style, *other].contains(&word))
            else {
                return Ok(());
            };
            if word != *style {
                let finding =
                    Diagnostic::error(format!("unexpected '{word}'"), span, "not a word of 'draw'");
                self.report(finding.help(format!("write {style}")));
            }
            if !statement.texts_of(style).is_empty() || statement.clause(style).is_some() {
                let finding =
                    Diagnostic::error(format!("'{style}' is given twice"), span, "second time");
                return self.fail(finding);
            }
            self.advance();
            if *style == "colour" && self.kind() != TokenKind::Text {
                self.in_bound = true;
                let value = self.present_expression();
                self.in_bound = false;
                statement.clauses.push((style, value?));
                continue;
            }
            loop {
                if self.kind() != TokenKind::Text {
                    let message = format!("a {style} stands between double quotes");
                    let finding = Diagnostic::error(message, self.span(), "expected \"…\"");
                    let found = shorten(self.word());
                    return self.fail(finding.help(format!("write {style} \"{found}\"")));
                }
                statement.texts.push((style, self.path(&format!("a {style}"))?));
                if *style == "colour" || self.eat(TokenKind::Comma).is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}
