//! Parser: tokens to syntax tree.
//!
//! A Pratt parser, one statement at a time, that distinguishes two kinds of mistakes:
//!
//! - if it is plain what was meant (`2 q`, `x'`, a reserved name), the parser reports the mistake
//!   and goes on as if the right thing had been written;
//! - otherwise it reports the mistake, returns [`ReportedMistake`] and leaves the rest of the
//!   statement alone.
//!
//! A statement may therefore have several findings, but none that follows from another.

mod drawing;
mod expression;
mod part;
mod range;
mod shape;
mod statement;

use super::ast::{Expr, File, Name};
use super::diagnostic::{Diagnostic, shorten};
use super::findings::Findings;
use super::layout::{Lines, begins_statement};
use super::span::Span;
use super::statements::{StatementKind, StatementRow};
use super::token::{Token, TokenKind};
use super::words::{is_degree, is_statement_word, is_unit, reserved};
use super::{MAX_HEIGHT, MAX_NESTING};
use std::collections::HashSet;

/// Error of a statement that cannot be read, once its finding has been reported.
struct ReportedMistake;

type Parsed<T> = Result<T, ReportedMistake>;

/// Reads all statements. Also returns the names that the unreadable ones declare.
pub(super) fn parse(
    source: &str,
    tokens: &[Token],
    statements: &[Lines],
    findings: &mut Findings,
) -> (File, Vec<Name>) {
    findings.next_stage();
    let mut file = File::default();
    let mut unread = Vec::new();
    let mut parser = Parser {
        source,
        findings,
        tokens: &[],
        unclosed: &[],
        position: 0,
        row: StatementKind::Derivative.row(),
        open: Vec::new(),
        in_bound: false,
        in_misbracketed: false,
        nesting: 0,
        declared: None,
        misdeclared: HashSet::new(),
        misused: Vec::new(),
        last_report: None,
    };
    let mut failed = false;
    let mut after_bare_word = false; // `constraint` alone on its line
    for lines in statements {
        if parser.findings.is_full() {
            break;
        }
        parser.enter(&tokens[lines.tokens.clone()], &lines.unclosed);
        if failed && parser.seems_to_go_on(after_bare_word) {
            continue; // the end of a statement that was given up, not a mistake of its own
        }
        after_bare_word = lines.tokens.len() == 1;
        // Two statements on one line are one mistake, so the second one is read as well.
        loop {
            let start = parser.position;
            parser.begin();
            match parser.statement() {
                Ok(statement) => {
                    file.statements.push(statement);
                    failed = parser.kind() != TokenKind::End;
                }
                Err(ReportedMistake) => {
                    unread.extend(parser.declared.take());
                    failed = true;
                }
            }
            if parser.position == start || !parser.at_statement() || parser.findings.is_full() {
                break;
            }
        }
    }
    parser.report_misused();
    (file, unread)
}

struct Parser<'s> {
    source: &'s str,
    findings: &'s mut Findings,
    /// Tokens of the statement.
    tokens: &'s [Token],
    /// Unclosed brackets of the statement, as positions in `tokens`.
    unclosed: &'s [usize],
    /// Position of the next token to read.
    position: usize,
    /// Row of the statement, once its word has been read.
    row: &'static StatementRow,
    /// Brackets around the next token, innermost last, as positions in `tokens`.
    open: Vec<usize>,
    /// True inside the bound of a range: the next operand without an operator belongs to something
    /// else.
    in_bound: bool,
    /// True inside `[1, 2]` for a vector; nested ones need not be reported again.
    in_misbracketed: bool,
    /// Number of brackets, prefix operators and powers around the next token.
    nesting: usize,
    /// Name that the statement declares, once it has been read.
    declared: Option<Name>,
    /// Reserved words that were declared all the same. Reports about their use, too, would be
    /// noise.
    misdeclared: HashSet<&'s str>,
    /// Spans of reserved words that were used as a name.
    misused: Vec<Span>,
    /// Span of the last mistake in this statement that was read over.
    last_report: Option<Span>,
}

impl<'s> Parser<'s> {
    /// Turns to the next statement.
    fn enter(&mut self, tokens: &'s [Token], unclosed: &'s [usize]) {
        self.tokens = tokens;
        self.unclosed = unclosed;
        self.position = 0;
    }

    /// Resets the state that the last statement left behind.
    fn begin(&mut self) {
        self.open.clear();
        self.in_bound = false;
        self.in_misbracketed = false;
        self.nesting = 0;
        self.declared = None;
        self.last_report = None;
    }

    // ---- inspection of tokens ----

    /// StatementKind of the next token.
    fn kind(&self) -> TokenKind {
        self.kind_after(0)
    }

    /// StatementKind of the token `distance` after the next one.
    fn kind_after(&self, distance: usize) -> TokenKind {
        self.tokens.get(self.position + distance).map_or(TokenKind::End, |token| token.kind)
    }

    /// Token before the next one.
    fn previous(&self) -> Option<Token> {
        self.tokens[..self.position].last().copied()
    }

    /// Span of the next token; an empty span after the last one.
    fn span(&self) -> Span {
        match self.tokens.get(self.position) {
            Some(token) => token.span,
            None => {
                let end = self.tokens.last().map_or(0, |token| token.span.end);
                Span { start: end, end }
            }
        }
    }

    fn text(&self, span: Span) -> &'s str {
        &self.source[span.range()]
    }

    /// Text of the token that is `distance` behind the next one.
    fn text_after(&self, distance: usize) -> &'s str {
        self.tokens.get(self.position + distance).map_or("", |token| self.text(token.span))
    }

    /// Text of the next token.
    fn word(&self) -> &'s str {
        self.text(self.span())
    }

    /// Text of an expression, for messages.
    fn shown(&self, expr: &Expr) -> String {
        shorten(self.text(expr.span))
    }

    /// Name of the next token, for messages.
    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the line".to_string(),
            _ => format!("'{}'", shorten(self.word())),
        }
    }

    /// True if a statement begins here, in the middle of a line: not only the word and a name, but
    /// also what follows them.
    fn at_statement(&self) -> bool {
        let follows = self.kind_after(2);
        let complete = matches!(
            follows,
            TokenKind::Equals | TokenKind::Colon | TokenKind::Of | TokenKind::OpenSquare
        );
        let free = self.open.is_empty();
        free && begins_statement(self.source, &self.tokens[self.position..])
            && (complete || StatementRow::of(self.word()).is_some_and(StatementRow::is_nameless))
    }

    /// Steps over the next token.
    fn advance(&mut self) -> Span {
        let span = self.span();
        self.position = (self.position + 1).min(self.tokens.len());
        span
    }

    /// Steps over the next token if it is of this kind.
    fn eat(&mut self, kind: TokenKind) -> Option<Span> {
        (self.kind() == kind).then(|| self.advance())
    }

    /// Takes the next token as a name, whatever it is.
    fn take_name(&mut self) -> Name {
        let span = self.advance();
        Name { text: self.text(span).to_string(), span }
    }

    // ---- limits ----

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            let span = self.span();
            let message = format!("the expression is nested more than {MAX_NESTING} deep");
            let finding = Diagnostic::error(message, span, "too deep from here on");
            return self.fail(finding.help("split it with 'let': give the inner parts names"));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Refuses a tree that is too high; see [`MAX_HEIGHT`].
    fn check_height(&mut self, height: usize, at: Span) -> Parsed<()> {
        if height <= MAX_HEIGHT {
            return Ok(());
        }
        let message = format!(
            "the expression is too long: more than {MAX_HEIGHT} operators that wait for each other"
        );
        let finding = Diagnostic::error(message, at, "too long from here on");
        self.fail(finding.help("split it with 'let', or write a sum: sum(i in 1..n : …)"))
    }

    // ---- brackets ----

    /// Steps over an opening bracket and remembers it.
    fn open_bracket(&mut self) -> Span {
        self.open.push(self.position);
        self.advance()
    }

    /// Steps over the bracket that closes the innermost open one, or reports what was `expected`.
    fn close_bracket(&mut self, expected: &str) -> Parsed<Span> {
        let open = *self.open.last().expect("close_bracket follows open_bracket");
        if Some(self.kind()) == self.tokens[open].kind.closer() {
            self.open.pop();
            return Ok(self.advance());
        }
        self.unexpected(expected)
    }

    /// The innermost open bracket, if it is unclosed.
    fn unclosed_bracket(&self) -> Option<Token> {
        let open = self.open.last()?;
        self.unclosed.binary_search(open).is_ok().then(|| self.tokens[*open])
    }

    // ---- mistakes ----

    /// Reports a mistake that one can read over.
    fn report(&mut self, finding: Diagnostic) {
        self.last_report = Some(finding.span);
        self.findings.add(|| finding);
    }

    /// Reports a mistake and gives up on the statement. Right beside a mistake that was read over,
    /// the guess must have been wrong, and there is nothing new to report.
    fn fail<T>(&mut self, finding: Diagnostic) -> Parsed<T> {
        if !self.is_beside_report() {
            self.findings.add(|| finding);
        }
        Err(ReportedMistake)
    }

    /// True if the lexer has reported the next token or one of its neighbours, or the parser the
    /// next one or the one before.
    fn is_beside_report(&self) -> bool {
        let start = self.position.saturating_sub(1);
        let neighbours = &self.tokens[start..self.tokens.len().min(self.position + 2)];
        let guessed =
            neighbours.iter().any(|token| token.guessed || token.kind == TokenKind::Unknown);
        let previous = neighbours.first().map_or(0, |token| token.span.start);
        guessed || self.last_report.is_some_and(|span| span.end > previous)
    }

    /// Gives up because the next token is not what was `expected`. Distinguishes the usual causes:
    /// an unclosed bracket, a missing operator, notation of other languages.
    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        if self.kind() == TokenKind::Unknown {
            return Err(ReportedMistake); // reported by the lexer
        }
        let (span, found) = (self.span(), self.found());
        if let Some(bracket) = self.unclosed_bracket() {
            self.findings.add(|| unclosed(bracket, span, &found));
            return Err(ReportedMistake);
        }
        let label = format!("expected {expected}");
        let finding = Diagnostic::error(format!("expected {expected}, found {found}"), span, label);
        let finding = match self.kind() {
            TokenKind::Bar | TokenKind::BarBar => self.bar(),
            TokenKind::Text => Diagnostic::error(format!("unexpected text {found}"), span, "not a value")
                .help("text stands in two places only: table NAME = \"file.csv\" and include \"file.holo\""),
            TokenKind::Semicolon => Diagnostic::error("';' does not separate anything here", span, "not read")
                .help("write matrix((a, b), (c, d)) for a matrix with two rows"),
            TokenKind::Bang => Diagnostic::error("there is no factorial", span, "not an operator")
                .help("write the product out, or 'not' for a negation"),
            TokenKind::DotDot => {
                finding.help("a range stands in sums and families only: sum(i in 1..n : …), NAME[i in 1..n]")
            }
            TokenKind::Equals if !self.open.is_empty() => finding.help("write '==' to compare"),
            kind if kind.is_closer() && self.open.is_empty() => self.stray_bracket(),
            kind if kind.is_closer() && self.previous().is_some_and(|token| token.kind == TokenKind::Comma) => {
                finding.help("remove the ',' or write what follows it")
            }
            TokenKind::Name if is_statement_word(self.word()) => finding,
            kind if kind.begins_operand() && self.previous().is_some_and(|token| token.kind.ends_operand()) => {
                self.missing_operator(expected)
            }
            // A symbol or word of the statement's form.
            _ if self.open.is_empty() && expected.starts_with('\'') => {
                finding.help(format!("write {}", self.row.form))
            }
            _ => finding,
        };
        self.fail(finding)
    }

    /// Finding for two operands in a row.
    fn missing_operator(&self, expected: &str) -> Diagnostic {
        let span = self.span();
        let previous = self.previous().map_or("", |token| self.text(token.span));
        let message =
            format!("missing operator between '{}' and {}", shorten(previous), self.found());
        let finding =
            Diagnostic::error(message, span, format!("expected an operator or {expected}"));
        let simple = self.previous().is_some_and(|token| !token.kind.is_closer())
            && self.kind() != TokenKind::OpenRound;
        match self.kind() {
            TokenKind::Number(_) => finding.help("put an operator or a ',' between them"),
            _ if simple => finding.help(product_help(&shorten(previous), &shorten(self.word()))),
            _ => finding.help("write '*' between them; multiplication is never implicit"),
        }
    }

    /// Finding for `|q|`, `a | b`.
    fn bar(&self) -> Diagnostic {
        let here = self.tokens[self.position];
        let closing = self.tokens[self.position + 1..].iter().find(|token| token.kind == here.kind);
        let Some(closing) = closing else {
            let message = format!("unexpected {}", self.found());
            return Diagnostic::error(message, here.span, "not an operator")
                .help("write 'or', or norm(…) for a norm");
        };
        let inner = Span { start: here.span.end, end: closing.span.start };
        let inner = shorten(self.text(inner).trim());
        let span = here.span.to(closing.span);
        Diagnostic::error("bars do not enclose a norm", span, "not read")
            .help(format!("write norm({inner}), or abs({inner}) for a number"))
    }

    /// Finding for a `)` without an open bracket.
    fn stray_bracket(&self) -> Diagnostic {
        let message = format!("{} closes nothing", self.found());
        Diagnostic::error(message, self.span(), "no bracket is open here")
            .help("remove it, or open a bracket before it")
    }

    // ---- reserved words ----

    /// Reports a declaration of a reserved name, and goes on with it.
    fn check_reserved(&mut self, name: &Name) {
        if let Some(what) = reserved(&name.text) {
            self.misdeclared.insert(&self.source[name.span.range()]);
            let message = format!("'{}' is reserved: it is {what}", name.text);
            let finding = Diagnostic::error(message, name.span, "cannot be declared");
            self.report(finding.help("choose another name"));
        }
    }

    /// Reports the uses of reserved words as names, except of those whose declaration was reported.
    fn report_misused(&mut self) {
        for span in std::mem::take(&mut self.misused) {
            let word = self.text(span);
            if self.misdeclared.contains(word) || self.findings.point_at(span) {
                continue;
            }
            self.report(if is_statement_word(word) {
                let message = format!("'{word}' is reserved: it begins a statement");
                Diagnostic::error(message, span, "not a value").help("choose another name")
            } else {
                let message = format!("'{word}' is a function, not a value");
                Diagnostic::error(message, span, "lacks its arguments")
                    .help(format!("write {word}(…)"))
            });
        }
    }

    /// True if this, after a statement that was given up, looks like the rest of it: no statement
    /// begins with an operator, a number, or `dot(`.
    fn seems_to_go_on(&self, after_bare_word: bool) -> bool {
        use TokenKind::*;
        let next = self.kind_after(1);
        match self.kind() {
            Name if is_statement_word(self.word()) => false,
            Name => {
                next.is_infix()
                    || matches!(next, OpenRound | Dot | Of)
                    || after_bare_word && matches!(next, Equals | Colon)
            }
            _ => true,
        }
    }
}

/// Finding for an unclosed bracket; `span` is the place where something else was `found`.
fn unclosed(bracket: Token, span: Span, found: &str) -> Diagnostic {
    let (open, close) = match bracket.kind {
        TokenKind::OpenRound => ('(', ')'),
        TokenKind::OpenSquare => ('[', ']'),
        _ => ('{', '}'),
    };
    Diagnostic::error(format!("'{open}' is not closed"), bracket.span, "opened here")
        .related(span, format!("expected '{close}' before {found}"))
        .help(format!("add '{close}'"))
}

/// Help for a factor and what follows it without an operator, which may be a unit.
fn product_help(factor: &str, rest: &str) -> String {
    let product = format!("write {factor}*{rest}; multiplication is never implicit");
    match factor.parse::<f64>().is_ok() {
        true if is_degree(rest) => format!("angles are in radians: write {factor}*pi/180"),
        true if is_unit(rest) => {
            format!(
                "numbers have no units: write {factor}, with all quantities in one system of units; or {product}"
            )
        }
        _ => product,
    }
}
