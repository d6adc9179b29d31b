//! Parser of expressions, a Pratt parser.
//!
//! `operation(loosest)` reads an operand and then every infix operator that binds at least as
//! tightly as `loosest`; the right operand of each is read by the same function with a tighter
//! limit.

use super::super::ast::{BinaryOperator, Expr, ExprKind, UnaryOperator};
use super::super::diagnostic::{Diagnostic, shorten};
use super::super::span::Span;
use super::super::token::TokenKind;
use super::super::words::{FUNCTIONS, is_statement_word};
use super::{Parsed, Parser, product_help};

/// Binding strength of an operator, from loose to tight.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Binding {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Negation,
    Power,
}

/// Owner of an index set.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Owner {
    /// `sum(… : EXPR)`
    Sum,
    /// `NAME[…]`
    Family,
}

/// An expression and the height of its tree.
pub(super) struct Tree {
    pub(super) expr: Expr,
    pub(super) height: usize,
}

/// An infix operator with the form in which it was found.
struct Infix {
    operator: BinaryOperator,
    binding: Binding,
    written: OperatorSpelling,
}

/// Form in which an operator was written.
#[derive(PartialEq)]
enum OperatorSpelling {
    Properly,
    /// `=` for `==`
    AsAssignment,
    /// `||` for `or`
    AsBars,
    /// `2 q` for `2*q`
    NotAtAll,
}

impl Parser<'_> {
    /// Reads an expression.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        Ok(self.operation(Binding::Or)?.expr)
    }

    /// Reads operands and infix operators that bind at least as tightly as `loosest`.
    pub(super) fn operation(&mut self, loosest: Binding) -> Parsed<Tree> {
        let mut left = self.prefix(loosest)?;
        let mut left_compares = false;
        while let Some(infix) = self.infix().filter(|infix| infix.binding >= loosest) {
            let compares = infix.binding == Binding::Comparison;
            if compares && left_compares {
                return self.chained_comparison(&left.expr);
            }
            left = self.infix_operation(left, infix)?;
            left_compares = compares;
        }
        Ok(left)
    }

    fn infix_operation(&mut self, left: Tree, infix: Infix) -> Parsed<Tree> {
        let at = self.span();
        self.report_miswritten(&left.expr, &infix.written);
        if infix.written != OperatorSpelling::NotAtAll {
            self.advance();
        }
        let right = match infix.binding {
            Binding::Or => self.operation(Binding::And)?,
            Binding::And => self.operation(Binding::Not)?,
            Binding::Comparison => self.operation(Binding::Sum)?,
            Binding::Sum => self.operation(Binding::Product)?,
            Binding::Product => self.operation(Binding::Negation)?,
            // Powers group from the right: 2^3^2 is 2^(3^2).
            _ => self.nested(|parser| parser.operation(Binding::Power))?,
        };
        let height = left.height.max(right.height);
        let span = left.expr.span.to(right.expr.span);
        let kind = ExprKind::Binary(infix.operator, at, Box::new(left.expr), Box::new(right.expr));
        self.tree(kind, span, height, at)
    }

    /// An expression at `span` whose parts are `height` high; it begins or is joined `at` a token.
    fn tree(&mut self, kind: ExprKind, span: Span, height: usize, at: Span) -> Parsed<Tree> {
        self.check_height(height + 1, at)?;
        Ok(Tree { expr: Expr { kind, span }, height: height + 1 })
    }

    /// The infix operator at the next token, if any, also in a form that beginners write, if its
    /// meaning is plain.
    fn infix(&self) -> Option<Infix> {
        use BinaryOperator::*;
        let closed = self.unclosed_bracket().is_none();
        let after_number =
            self.previous().is_some_and(|token| matches!(token.kind, TokenKind::Number(_)));
        let mut written = OperatorSpelling::Properly;
        let operator = match self.kind() {
            TokenKind::Or => Or,
            TokenKind::And => And,
            TokenKind::Less => Less,
            TokenKind::LessEqual => LessEqual,
            TokenKind::Greater => Greater,
            TokenKind::GreaterEqual => GreaterEqual,
            TokenKind::EqualEqual => Equal,
            TokenKind::NotEqual => NotEqual,
            TokenKind::Plus => Add,
            TokenKind::Minus => Subtract,
            TokenKind::Star => Multiply,
            TokenKind::Slash => Divide,
            TokenKind::Caret => Power,
            TokenKind::Equals if closed && !self.open.is_empty() => {
                written = OperatorSpelling::AsAssignment;
                Equal
            }
            TokenKind::BarBar if closed && !after_number => {
                written = OperatorSpelling::AsBars;
                Or
            }
            TokenKind::Name | TokenKind::OpenRound | TokenKind::If
                if closed && after_number && self.is_factor() =>
            {
                written = OperatorSpelling::NotAtAll;
                Multiply
            }
            _ => return None,
        };
        let binding = match operator {
            Or => Binding::Or,
            And => Binding::And,
            Add | Subtract => Binding::Sum,
            Multiply | Divide => Binding::Product,
            Power => Binding::Power,
            _ => Binding::Comparison,
        };
        Some(Infix { operator, binding, written })
    }

    /// True if the next token behind a number is a factor, so that `2 q` must mean `2*q`. Two names
    /// in a row may mean anything.
    fn is_factor(&self) -> bool {
        let touching = self.previous().is_some_and(|token| token.span.end == self.span().start);
        let is_factor = match self.kind() {
            TokenKind::OpenRound => self.unclosed.binary_search(&self.position).is_err(),
            TokenKind::Name if is_statement_word(self.word()) => false,
            TokenKind::Name => {
                !FUNCTIONS.contains(&self.word()) || self.kind_after(1) == TokenKind::OpenRound
            }
            _ => true,
        };
        is_factor && (touching || !self.in_bound)
    }

    /// Reports an operator in the form of another language, or one that is left out behind `left`.
    fn report_miswritten(&mut self, left: &Expr, written: &OperatorSpelling) {
        let span = self.span();
        let finding = match written {
            OperatorSpelling::Properly => return,
            OperatorSpelling::AsAssignment => {
                Diagnostic::error("'=' does not compare", span, "expected '=='")
                    .help("write '==' to compare")
            }
            OperatorSpelling::AsBars => {
                let message = "'||' is not an operator of this language";
                Diagnostic::error(message, span, "not read").help("write 'or'")
            }
            OperatorSpelling::NotAtAll if self.is_beside_report() => return,
            OperatorSpelling::NotAtAll => {
                let factor = self.previous().map_or(left.span, |token| token.span);
                let (factor, word) = (shorten(self.text(factor)), shorten(self.word()));
                let rest =
                    if self.kind() == TokenKind::OpenRound { "(…)" } else { word.as_str() };
                let message = format!("missing operator between '{factor}' and '{word}'");
                Diagnostic::error(message, span, "expected an operator before this")
                    .help(product_help(&factor, rest))
            }
        };
        self.report(finding);
    }

    /// Refuses `a < b < c`; `left` is `a < b`.
    fn chained_comparison(&mut self, left: &Expr) -> Parsed<Tree> {
        let span = self.span();
        let middle = match &left.kind {
            ExprKind::Binary(_, _, _, right) => self.shown(right),
            _ => "b".to_string(),
        };
        let help = format!("write {} and {middle} {} …", self.shown(left), self.word());
        let message = "comparisons cannot be chained";
        self.fail(Diagnostic::error(message, span, "a second comparison").help(help))
    }

    /// Reads an operand with its prefix operators.
    fn prefix(&mut self, loosest: Binding) -> Parsed<Tree> {
        match self.kind() {
            TokenKind::Minus => self.unary(UnaryOperator::Negate, Binding::Power),
            TokenKind::Not | TokenKind::Bang => {
                let span = self.span();
                if self.kind() == TokenKind::Bang && !self.is_beside_report() {
                    let message = "'!' is not an operator of this language";
                    self.report(Diagnostic::error(message, span, "not read").help("write 'not'"));
                }
                if loosest > Binding::Not {
                    let message = "'not' binds more loosely than the operator before it";
                    let finding = Diagnostic::error(message, span, "needs brackets");
                    return self.fail(finding.help("write (not …)"));
                }
                self.unary(UnaryOperator::Not, Binding::Not)
            }
            TokenKind::Plus => {
                let is_beside_report = self.is_beside_report();
                let span = self.advance();
                if !is_beside_report {
                    let finding = Diagnostic::error("there is no prefix '+'", span, "not read");
                    self.report(finding.help("leave it out"));
                }
                self.nested(|parser| parser.prefix(Binding::Power))
            }
            _ => {
                let operand = self.operand()?;
                self.postfix(operand)
            }
        }
    }

    fn unary(&mut self, operator: UnaryOperator, loosest: Binding) -> Parsed<Tree> {
        let start = self.advance();
        let operand = self.nested(|parser| parser.operation(loosest))?;
        let Tree { expr, height } = operand;
        let span = start.to(expr.span);
        self.tree(ExprKind::Unary(operator, Box::new(expr)), span, height, start)
    }

    /// Reads a name with its indices and components.
    pub(super) fn place(&mut self) -> Parsed<Expr> {
        let operand = self.operand()?;
        Ok(self.postfix(operand)?.expr)
    }

    /// Reads `.x`, `[k]`, `[k, l]` and primes after an operand.
    fn postfix(&mut self, mut tree: Tree) -> Parsed<Tree> {
        loop {
            let at = self.span();
            let Tree { expr, height } = tree;
            tree = match self.kind() {
                TokenKind::Dot => {
                    self.advance();
                    if !self.kind().is_word() {
                        return self.no_member();
                    }
                    let name = self.take_name();
                    let span = expr.span.to(name.span);
                    self.tree(ExprKind::Member(Box::new(expr), name), span, height, at)?
                }
                TokenKind::OpenSquare => {
                    let (indices, tallest, close) = self.list("',' or ']'")?;
                    if indices.is_empty() {
                        let finding =
                            Diagnostic::error("the index is missing", at.to(close), "empty");
                        return self.fail(finding.help("write [1] for the first component"));
                    }
                    let span = expr.span.to(close);
                    let kind = ExprKind::Index(Box::new(expr), indices);
                    self.tree(kind, span, height.max(tallest), at)?
                }
                TokenKind::Prime => {
                    let (mut span, mut primes) = (expr.span.to(self.advance()), 1);
                    while let Some(next) = self.eat(TokenKind::Prime) {
                        (span, primes) = (span.to(next), primes + 1);
                    }
                    self.tree(ExprKind::Rate(Box::new(expr), primes), span, height, at)?
                }
                _ => return Ok(Tree { expr, height }),
            };
        }
    }

    fn no_member<T>(&mut self) -> Parsed<T> {
        if let TokenKind::Number(_) = self.kind() {
            let (span, number) = (self.span(), shorten(self.word()));
            let message = format!("'.{number}' is not a component");
            let finding = Diagnostic::error(message, span, "expected x, y or z");
            return self.fail(finding.help(format!("write [{number}]")));
        }
        self.unexpected("x, y, z or the name of a column")
    }

    /// Reads a number, a name, a call, a sum, or something in brackets.
    fn operand(&mut self) -> Parsed<Tree> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Number(value) => {
                self.advance();
                ExprKind::Number(value)
            }
            TokenKind::Name => return self.name(),
            TokenKind::If if self.kind_after(1) == TokenKind::OpenRound => return self.call(),
            TokenKind::If => {
                let message = "'if' is a function of three arguments";
                let finding = Diagnostic::error(message, span, "expected '(' after it");
                return self.fail(finding.help("write if(condition, a, b)"));
            }
            TokenKind::OpenRound => return self.round(),
            TokenKind::OpenSquare | TokenKind::OpenCurly => return self.misbracketed(),
            _ => return self.unexpected("an expression"),
        };
        Ok(Tree { expr: Expr { kind, span }, height: 1 })
    }

    /// Reads a name, a call or a sum.
    fn name(&mut self) -> Parsed<Tree> {
        let (span, word) = (self.span(), self.word());
        let next = self.kind_after(1);
        if self.at_statement() {
            return self.unexpected("an expression"); // the next statement begins where this one lacks its end
        }
        if next == TokenKind::OpenRound {
            return if word == "sum" { self.sum() } else { self.call() };
        }
        let is_function = FUNCTIONS.contains(&word);
        if is_function && matches!(next, TokenKind::Name | TokenKind::Number(_)) {
            let argument =
                self.tokens.get(self.position + 1).map_or("…", |token| self.text(token.span));
            let help = match word {
                "sum" => "write sum(i in 1..n : …)".to_string(),
                _ => format!("write {word}({})", shorten(argument)),
            };
            let message = format!("'{word}' needs brackets");
            let finding = Diagnostic::error(message, span, "expected '(' after it");
            return self.fail(finding.help(help));
        }
        let next_is_guessed = self.tokens.get(self.position + 1).is_some_and(|token| token.guessed);
        if (is_function || is_statement_word(word))
            && next != TokenKind::Unknown
            && !next_is_guessed
        {
            self.misused.push(span);
            self.last_report = Some(span);
        }
        self.advance();
        Ok(Tree { expr: Expr { kind: ExprKind::Name(word.to_string()), span }, height: 1 })
    }

    /// Reads `f(a, b)`, `normal()`.
    fn call(&mut self) -> Parsed<Tree> {
        let name = self.take_name();
        if is_statement_word(&name.text) {
            self.misused.push(name.span);
        }
        let (arguments, height, close) = self.list("',' or ')'")?;
        let at = name.span;
        self.tree(ExprKind::Call(name, arguments), at.to(close), height, at)
    }

    /// Reads `sum(i in a..b, j in c..d if CONDITION : EXPR)`.
    fn sum(&mut self) -> Parsed<Tree> {
        let start = self.advance();
        let bracket = self.open_bracket();
        if !self.at_index_set()
            && self.unclosed_bracket().is_none()
            && self.kind() != TokenKind::Unknown
        {
            let message = "a sum begins with its index and range";
            let finding = Diagnostic::error(message, start.to(bracket), "no 'in' follows");
            return self.fail(finding.help("write sum(i in 1..n : …)"));
        }
        self.nested(|parser| {
            let outer = std::mem::replace(&mut parser.in_bound, false);
            let (ranges, tallest) = parser.ranges(Owner::Sum)?;
            parser.sum_separator()?;
            let body = parser.operation(Binding::Or)?;
            let close = parser.close_bracket("')'")?;
            parser.in_bound = outer;
            let kind = ExprKind::Sum(ranges, Box::new(body.expr));
            parser.tree(kind, start.to(close), tallest.max(body.height), start)
        })
    }

    /// Reads `(a)`, which is just `a`, or `(a, b)`, a vector.
    fn round(&mut self) -> Parsed<Tree> {
        let start = self.span();
        let (entries, height, close) = self.list("',' or ')'")?;
        let span = start.to(close);
        if entries.is_empty() {
            let message = "the brackets are empty";
            let finding = Diagnostic::error(message, span, "expected an expression");
            return self.fail(finding.help("write what belongs in them"));
        }
        self.vector(entries, height, span, start)
    }

    /// A vector; the entry itself if there is only one.
    fn vector(
        &mut self,
        mut entries: Vec<Expr>,
        height: usize,
        span: Span,
        start: Span,
    ) -> Parsed<Tree> {
        if entries.len() == 1 {
            let Expr { kind, .. } = entries.remove(0);
            return Ok(Tree { expr: Expr { kind, span }, height });
        }
        self.tree(ExprKind::Vector(entries), span, height, start)
    }

    /// Reads `[1, 2, 3]` and `{1, 2, 3}` as if the brackets were round. Of nested ones only the
    /// outermost is reported, with the matrix that it must have been.
    fn misbracketed(&mut self) -> Parsed<Tree> {
        let start = self.span();
        let inside_another = std::mem::replace(&mut self.in_misbracketed, true);
        let (entries, height, close) = self.list("',' or the closing bracket")?;
        self.in_misbracketed = inside_another;
        let span = start.to(close);
        if !inside_another {
            let written = self.text(span);
            let round = shorten(written).replace(['[', '{'], "(").replace([']', '}'], ")");
            let is_matrix = written[1..].trim_start().starts_with(['[', '{']);
            let matrix = if is_matrix { "matrix" } else { "" };
            let bracket = &written[..1];
            let message =
                format!("vectors and matrices are written with round brackets, not '{bracket}'");
            let finding = Diagnostic::error(message, span, "not round");
            self.report(finding.help(format!("write {matrix}{round}")));
        }
        self.vector(entries, height, span, start)
    }

    /// Reads a bracket with expressions between commas; returns them, their greatest height, and
    /// the closing bracket.
    fn list(&mut self, expected: &str) -> Parsed<(Vec<Expr>, usize, Span)> {
        self.nested(|parser| {
            parser.open_bracket();
            let outer = std::mem::replace(&mut parser.in_bound, false);
            let mut entries = Vec::new();
            let mut height = 0;
            let is_closed = parser.kind().is_closer() && parser.unclosed_bracket().is_none();
            if !is_closed {
                loop {
                    let entry = parser.operation(Binding::Or)?;
                    height = height.max(entry.height);
                    entries.push(entry.expr);
                    if parser.eat(TokenKind::Comma).is_none() {
                        break;
                    }
                }
            }
            let close = parser.close_bracket(expected)?;
            parser.in_bound = outer;
            Ok((entries, height, close))
        })
    }
}
