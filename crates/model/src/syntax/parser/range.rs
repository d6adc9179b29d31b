//! Parser of the ranges of indices, in sums and families: `i in a..b, j in c..d if CONDITION`.

use super::super::ast::{IndexSetExpr, Name, RangeExpr};
use super::super::diagnostic::{Diagnostic, shorten};
use super::super::token::TokenKind;
use super::super::words::reserved;
use super::expression::{Binding, Owner, Tree};
use super::{Parsed, Parser};

impl Parser<'_> {
    /// Reads `[i in 1..n]` if it comes next. `name` is the name of the family.
    pub(super) fn family(&mut self, name: &str) -> Parsed<IndexSetExpr> {
        if self.kind() != TokenKind::OpenSquare {
            return Ok(IndexSetExpr::default());
        }
        let start = self.open_bracket();
        if !self.at_index_set() && self.unclosed_bracket().is_none() {
            let span = start.to(self.span());
            let name = shorten(name);
            let message = format!("the family '{name}' lacks an index with its range");
            let finding = Diagnostic::error(message, span, "no 'in' follows");
            return self.fail(finding.help(format!("write {name}[i in 1..n]")));
        }
        let (ranges, _) = self.ranges(Owner::Family)?;
        self.close_bracket("',', 'if' or ']'")?;
        Ok(ranges)
    }

    /// Reads the ranges and their filter, up to the `:` or `]` that follows; also returns the
    /// height of the tallest tree.
    pub(super) fn ranges(&mut self, owner: Owner) -> Parsed<(IndexSetExpr, usize)> {
        let mut ranges = IndexSetExpr::default();
        let mut height = 0;
        loop {
            let (range, tallest, said_equals) = self.range(owner)?;
            ranges.ranges.push(range);
            height = height.max(tallest);
            if self.kind() != TokenKind::Comma {
                break;
            }
            let comma = self.advance();
            if self.at_index_set() {
                continue;
            }
            if owner == Owner::Family {
                return self.unexpected("another index with its range");
            }
            // `sum(i = 1..n, body)`: the ':' belongs to the mistake that has been reported already.
            if !said_equals {
                let message = "a ':' separates the ranges of a sum from what is summed";
                let finding = Diagnostic::error(message, comma, "expected ':'");
                self.report(finding.help("write sum(i in 1..n : …)"));
            }
            self.position -= 1; // `sum` expects a separator, and accepts the comma
            return Ok((ranges, height));
        }
        if self.eat(TokenKind::If).is_some() {
            let Tree { expr, height: tallest } = self.operation(Binding::Or)?;
            ranges.filter = Some(Box::new(expr));
            height = height.max(tallest);
        }
        Ok((ranges, height))
    }

    /// Reads one range; returns it, the height of its bounds, and true if it was written with `=`.
    fn range(&mut self, owner: Owner) -> Parsed<(RangeExpr, usize, bool)> {
        let name = self.index()?;
        if self.kind() == TokenKind::Comma && self.is_index_alone(1) {
            let message = format!("the index '{}' lacks its range", name.text);
            let finding = Diagnostic::error(message, name.span, "expected 'in' after it")
                .related(self.span(), "before this")
                .help("give each index its own range: i in 1..n, j in 1..n");
            return self.fail(finding);
        }
        let index = shorten(&name.text);
        let said_equals = self.kind() == TokenKind::Equals && self.unclosed_bracket().is_none();
        if said_equals {
            let span = self.advance();
            let finding = Diagnostic::error("an index runs 'in' a range", span, "expected 'in'");
            self.report(finding.help(match owner {
                Owner::Sum => format!("write sum({index} in 1..n : …)"),
                Owner::Family => format!("write [{index} in 1..n]"),
            }));
        } else if self.eat(TokenKind::In).is_none() {
            return self.unexpected("'in'");
        }
        let low = self.bound()?;
        if self.eat(TokenKind::DotDot).is_none() {
            if self.kind() == TokenKind::Unknown || self.unclosed_bracket().is_some() {
                return self.unexpected("'..'");
            }
            let (span, bound) = (low.expr.span, self.shown(&low.expr));
            let message = "a range has two ends: LOW..HIGH";
            let finding = Diagnostic::error(message, span, "'..' is missing after this");
            return self.fail(finding.help(match self.kind() {
                // The range of MATLAB and Python: `1:n`.
                TokenKind::Colon if owner == Owner::Family => {
                    "write the range with two dots: 1..n".to_string()
                }
                _ => format!(
                    "write {index} in 1..{bound}, or the range that is meant, with two dots"
                ),
            }));
        }
        let high = self.bound()?;
        let height = low.height.max(high.height);
        Ok((RangeExpr { name, low: low.expr, high: high.expr }, height, said_equals))
    }

    /// Reads the end of a range: sums and products, no conditions, since an `if` after it begins
    /// the filter.
    fn bound(&mut self) -> Parsed<Tree> {
        let outer = std::mem::replace(&mut self.in_bound, true);
        let tree = self.operation(Binding::Sum);
        self.in_bound = outer;
        tree
    }

    /// Reads the name of an index. It may hide `t`, but no other reserved word.
    pub(super) fn index(&mut self) -> Parsed<Name> {
        if !self.kind().is_word() {
            return self.unexpected("the name of an index");
        }
        let name = self.take_name();
        if reserved(&name.text).is_some() && name.text != "t" {
            self.check_reserved(&name);
        }
        Ok(name)
    }

    /// Reads `[i, j]` after a name, if it comes next: indices whose ranges are known from
    /// elsewhere.
    pub(super) fn indices(&mut self, owner: &str) -> Parsed<Vec<Name>> {
        let mut indices = Vec::new();
        if self.kind() != TokenKind::OpenSquare {
            return Ok(indices);
        }
        self.open_bracket();
        loop {
            if let TokenKind::Number(_) = self.kind() {
                let message = "a name for the index is needed, not a number";
                let label = "expected a name such as 'i'";
                let help = "one statement holds for the whole family; use if(i == 1, a, b) where a row differs";
                return self.fail(Diagnostic::error(message, self.span(), label).help(help));
            }
            let name = self.index()?;
            if let Some(start) = self.eat(TokenKind::In) {
                self.bound()?;
                if self.eat(TokenKind::DotDot).is_some() {
                    self.bound()?;
                }
                let span = start.to(self.previous().map_or(start, |token| token.span));
                let index = shorten(&name.text);
                let message = format!("the range of '{index}' is known from {owner}");
                let finding = Diagnostic::error(message, span, "not needed");
                self.report(finding.help(format!("write [{index}]")));
            }
            indices.push(name);
            if self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.close_bracket("',' or ']'")?;
        Ok(indices)
    }

    /// True if `i in`, or the mistaken `i =` or `i, j in`, comes next.
    pub(super) fn at_index_set(&self) -> bool {
        self.kind().is_word()
            && match self.kind_after(1) {
                TokenKind::In | TokenKind::Equals => true,
                TokenKind::Comma => self.is_index_alone(2),
                _ => false,
            }
    }

    /// True if an index and `in` or a comma come `distance` behind the next token: an index before
    /// it has no range of its own.
    fn is_index_alone(&self, distance: usize) -> bool {
        self.kind_after(distance).is_word()
            && matches!(self.kind_after(distance + 1), TokenKind::In | TokenKind::Comma)
    }

    /// Reads the separator between the ranges of a sum and its body; used by `sum` only.
    pub(super) fn sum_separator(&mut self) -> Parsed<()> {
        if self.eat(TokenKind::Colon).is_some() || self.eat(TokenKind::Comma).is_some() {
            return Ok(());
        }
        let (span, found) = (self.span(), self.found());
        if self.unclosed_bracket().is_some() || !self.kind().begins_operand() {
            return self.unexpected("',', 'if' or ':'");
        }
        let message = format!("a ':' is missing before {found}");
        let finding = Diagnostic::error(message, span, "expected ':' before this");
        self.fail(finding.help("write sum(i in 1..n : …)"))
    }
}
