//! Lexer: text to tokens.
//!
//! The lexer never fails. If the meaning is plain (`**`, `−`, `x²`, `.5`), it reports what to write
//! and emits the token that was meant, so that the parser can find the *other* mistakes of the
//! statement; otherwise it reports and emits [`TokenKind::Unknown`].

use super::diagnostic::{Diagnostic, shorten};
use super::findings::Findings;
use super::lookalike::{advice, lookalike, superscript};
use super::span::Span;
use super::token::{Token, TokenKind};

/// Cuts the text from byte `start` on into tokens. Comments and white space leave no token.
pub(super) fn lex(source: &str, start: usize, findings: &mut Findings) -> Vec<Token> {
    findings.next_stage();
    let mut lexer = Lexer {
        source,
        position: start,
        tokens: Vec::new(),
        findings,
        line_is_empty: true,
        comment_end: true,
    };
    if lexer.peek() == Some('\u{feff}') {
        lexer.advance(); // a byte order mark, as some editors write it
    }
    while let Some(c) = lexer.peek() {
        lexer.token(c);
    }
    lexer.tokens
}

/// Symbols, longest first; those that are not of this language with what to write instead.
#[rustfmt::skip]
const SYMBOLS: [(&str, TokenKind, Option<&str>); 42] = [
    ("===", TokenKind::EqualEqual, Some("==")),
    ("!==", TokenKind::NotEqual, Some("!=")),
    ("...", TokenKind::DotDot, Some("..")),
    ("..=", TokenKind::DotDot, Some("..")), // our ranges include both ends anyway
    ("**", TokenKind::Caret, Some("^")),
    ("&&", TokenKind::And, Some("and")),
    ("~=", TokenKind::NotEqual, Some("!=")),
    ("<>", TokenKind::NotEqual, Some("!=")),
    ("=<", TokenKind::LessEqual, Some("<=")),
    ("=>", TokenKind::GreaterEqual, Some(">=")),
    (":=", TokenKind::Equals, Some("=")),
    (".*", TokenKind::Star, Some("*")),
    ("./", TokenKind::Slash, Some("/")),
    (".^", TokenKind::Caret, Some("^")),
    ("==", TokenKind::EqualEqual, None),
    ("!=", TokenKind::NotEqual, None),
    ("<=", TokenKind::LessEqual, None),
    (">=", TokenKind::GreaterEqual, None),
    ("..", TokenKind::DotDot, None),
    ("||", TokenKind::BarBar, None),
    ("&", TokenKind::And, Some("and")),
    ("+", TokenKind::Plus, None),
    ("-", TokenKind::Minus, None),
    ("*", TokenKind::Star, None),
    ("/", TokenKind::Slash, None),
    ("^", TokenKind::Caret, None),
    ("<", TokenKind::Less, None),
    (">", TokenKind::Greater, None),
    ("=", TokenKind::Equals, None),
    (":", TokenKind::Colon, None),
    (",", TokenKind::Comma, None),
    (".", TokenKind::Dot, None),
    ("'", TokenKind::Prime, None),
    ("(", TokenKind::OpenRound, None),
    (")", TokenKind::CloseRound, None),
    ("[", TokenKind::OpenSquare, None),
    ("]", TokenKind::CloseSquare, None),
    ("{", TokenKind::OpenCurly, None),
    ("}", TokenKind::CloseCurly, None),
    ("|", TokenKind::Bar, None),
    ("!", TokenKind::Bang, None),
    (";", TokenKind::Semicolon, None),
];

struct Lexer<'s> {
    source: &'s str,
    /// Byte at which the next token begins; always at the border of a character.
    position: usize,
    tokens: Vec<Token>,
    findings: &'s mut Findings,
    /// True if there is no token yet on this line.
    line_is_empty: bool,
    /// True if a `*/` may still follow. Without it, a text full of `/*` would be searched again and
    /// again.
    comment_end: bool,
}

impl Lexer<'_> {
    fn token(&mut self, c: char) {
        let rest = &self.source[self.position..];
        match c {
            '\n' | '\r' => {
                self.advance();
                self.line_is_empty = true;
            }
            _ if c.is_whitespace() => self.advance(),
            '#' => self.skip_line(),
            '%' => self.foreign_comment("%"),
            '/' if rest.starts_with("//") => self.foreign_comment("//"),
            '/' if rest.starts_with("/*") => self.foreign_comment("/*"),
            '0'..='9' => self.number(),
            '.' if self.second().is_some_and(|d| d.is_ascii_digit()) && !self.touches_operand() => {
                self.number()
            }
            '"' | '“' | '”' | '„' | '«' => self.text(c),
            _ if is_name_part(c) => self.word(),
            _ if superscript(c).is_some() => self.exponent(),
            _ => self.symbol(c),
        }
    }

    fn peek(&self) -> Option<char> {
        self.source[self.position..].chars().next()
    }

    fn second(&self) -> Option<char> {
        self.source[self.position..].chars().nth(1)
    }

    fn advance(&mut self) {
        self.position += self.peek().map_or(0, char::len_utf8);
    }

    fn skip_while(&mut self, mut wanted: impl FnMut(char) -> bool) {
        while self.peek().is_some_and(&mut wanted) {
            self.advance();
        }
    }

    fn skip_line(&mut self) {
        self.skip_while(|c| c != '\n' && c != '\r');
    }

    /// Adds the token from `start` to the current position.
    fn push(&mut self, kind: TokenKind, start: usize) {
        self.push_token(kind, start, false);
    }

    /// Adds a token that was written differently.
    fn push_guessed(&mut self, kind: TokenKind, start: usize) {
        self.push_token(kind, start, true);
    }

    fn push_token(&mut self, kind: TokenKind, start: usize, guessed: bool) {
        let span = Span::new(start, self.position);
        self.tokens.push(Token { kind, span, first_on_line: self.line_is_empty, guessed });
        self.line_is_empty = false;
    }

    /// True if an operand ends right here, as in `q.1`, where `.1` is not a number.
    fn touches_operand(&self) -> bool {
        self.tokens
            .last()
            .is_some_and(|last| last.kind.ends_operand() && last.span.end as usize == self.position)
    }

    fn word(&mut self) {
        let start = self.position;
        self.skip_while(is_name_part);
        let kind = match &self.source[start..self.position] {
            "and" => TokenKind::And,
            "or" => TokenKind::Or,
            "not" => TokenKind::Not,
            "in" => TokenKind::In,
            "of" => TokenKind::Of,
            "if" => TokenKind::If,
            _ => TokenKind::Name,
        };
        self.push(kind, start);
    }

    /// Reads `1`, `0.5`, `2.5e-6`, and the malformed `.5`, `5.` and `1.2.3`.
    fn number(&mut self) {
        let start = self.position;
        let is_digit = |c: char| c.is_ascii_digit();
        let mut complete = String::new(); // the number with the digits that are missing around its point
        self.skip_while(is_digit);
        let whole = &self.source[start..self.position];
        complete.push_str(if whole.is_empty() { "0" } else { whole });

        // `1..n` is a range and `2.*x` an operator of other languages: those points are not the
        // number's.
        let after_point = self.second().filter(|_| self.peek() == Some('.'));
        let point_is_mine =
            self.peek() == Some('.') && !matches!(after_point, Some('.' | '*' | '/' | '^'));
        if point_is_mine {
            self.advance();
            let fraction = self.position;
            self.skip_while(is_digit);
            let digits = &self.source[fraction..self.position];
            complete.push('.');
            complete.push_str(if digits.is_empty() { "0" } else { digits });
        }
        let exponent = self.position;
        self.position += self.exponent_length();
        complete.push_str(&self.source[exponent..self.position]);
        match self.is_malformed(start, whole, &complete) {
            true => self.push(TokenKind::Unknown, start),
            false => self.push_number(start, &complete),
        }
    }

    /// True if more follows than a number has: it is reported and skipped. Anything may have been
    /// meant, and guessing would only lead to a second finding.
    fn is_malformed(&mut self, start: usize, whole: &str, complete: &str) -> bool {
        let is_digit = |c: char| c.is_ascii_digit();
        let ends_in_point = self.source[..self.position].ends_with('.');
        let rest = self.position;
        let (Some(next), second) = (self.peek(), self.second()) else { return false };
        if matches!(next, '.' | '_') && second.is_some_and(is_digit)
            || ends_in_point && is_name_part(next)
        {
            self.skip_while(|c| is_name_part(c) || c == '.' && !ends_in_point);
            let rest = shorten(&self.source[rest..self.position]);
            self.report(start, "malformed number", |text| {
                let help = match ends_in_point {
                    true => {
                        let whole = shorten(whole);
                        format!("write {whole}..{rest} for a range, {whole}.0*{rest} for a product")
                    }
                    false => "write numbers such as 1, 0.5, 2.5e6 or 1e-3".to_string(),
                };
                (format!("'{text}' is not a number"), help)
            });
        } else if matches!(next, 'e' | 'E') && !second.is_some_and(is_name_part) {
            // `1e`, `2.5e+`: an exponent was begun. A name may not follow a number anyway.
            self.advance();
            if matches!(self.peek(), Some('+' | '-')) && !self.second().is_some_and(is_digit) {
                self.advance();
            }
            self.report(start, "malformed number", |text| {
                let help = format!("write {complete}e3, or {complete}*e for a product with e");
                (format!("the exponent of '{text}' has no digits"), help)
            });
        } else {
            return false;
        }
        true
    }

    /// Adds the number from `start` on, which is written `complete` in full.
    fn push_number(&mut self, start: usize, complete: &str) {
        let is_complete = self.source[start..self.position] == *complete;
        if !is_complete {
            self.report(start, "a digit is missing", |written| {
                let message = format!("'{written}' lacks a digit beside its decimal point");
                (message, format!("write {}", shorten(complete)))
            });
        }
        let mut value: f64 =
            complete.parse().expect("digits, a point between digits, an exponent with digits");
        if value.is_infinite() {
            value = 1.0; // any finite number will do: the model is not going to run
            self.report(start, "overflows", |written| {
                let message = format!("'{written}' is too large for a number");
                (message, "the largest number is about 1.8e308".to_string())
            });
        }
        let mantissa = complete.split(['e', 'E']).next().unwrap_or_default();
        if value == 0.0 && mantissa.contains(|c: char| ('1'..='9').contains(&c)) {
            let span = Span::new(start, self.position);
            let written = shorten(&self.source[span.range()]);
            self.findings.add(|| {
                let message = format!("'{written}' is so small that it becomes 0");
                Diagnostic::warning(message, span, "underflows")
                    .help("the smallest number is about 4.9e-324")
            });
        }
        self.push_token(TokenKind::Number(value), start, !is_complete);
    }

    /// Number of bytes of `e5`, `e-5`, `E+5`; 0 if no exponent follows.
    fn exponent_length(&self) -> usize {
        let bytes = &self.source.as_bytes()[self.position..];
        let [b'e' | b'E', after @ ..] = bytes else { return 0 };
        let sign = usize::from(matches!(after, [b'+' | b'-', ..]));
        let digits = after[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 { 0 } else { 1 + sign + digits }
    }

    /// Reads `x²` as `x^2`.
    fn exponent(&mut self) {
        let start = self.position;
        let mut digits = String::new();
        while let Some(digit) = self.peek().and_then(superscript) {
            digits.push(digit);
            self.advance();
        }
        self.report(start, "superscript", |written| {
            let message = format!("'{written}' is not read as an exponent");
            (message, format!("write ^{}", shorten(&digits)))
        });
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.push_guessed(TokenKind::Caret, start);
                self.push_guessed(TokenKind::Number(value), start);
            }
            _ => self.push(TokenKind::Unknown, start),
        }
    }

    /// Reads `"…"`, up to the end of the line at most, so that a forgotten quote spoils one
    /// statement only.
    fn text(&mut self, opening: char) {
        let start = self.position;
        self.advance();
        let content = self.position;
        self.skip_while(|c| !matches!(c, '"' | '“' | '”' | '»' | '\n' | '\r'));
        let content = &self.source[content..self.position];
        let closing = self.peek().filter(|c| !matches!(c, '\n' | '\r'));
        if closing.is_some() {
            self.advance();
        }
        if closing.is_none() {
            let texts = ("the text is not closed".to_string(), "end it with '\"'".to_string());
            self.report(start, "a quote is missing", |_| texts);
            return self.push(TokenKind::Unknown, start); // it may have swallowed half of the statement
        }
        if opening != '"' || closing != Some('"') {
            self.report(start, "not plain quotes", |_| {
                let message = "typographic quotes do not enclose a text".to_string();
                (message, format!("write \"{}\"", shorten(content)))
            });
        }
        self.push(TokenKind::Text, start);
    }

    /// Reads a comment of another language: reported once, then skipped like a comment.
    fn foreign_comment(&mut self, opening: &str) {
        let start = self.position;
        self.position += opening.len();
        self.report(start, "not an operator or a comment", |written| {
            (
                format!("'{written}' is not read as a comment"),
                "a comment begins with '#'".to_string(),
            )
        });
        if opening == "/*" && self.comment_end {
            match self.source[self.position..].find("*/") {
                Some(length) => {
                    let end = self.position + length + 2;
                    self.line_is_empty |= self.source[start..end].contains(['\n', '\r']);
                    self.position = end;
                    return;
                }
                None => self.comment_end = false,
            }
        }
        self.skip_line();
    }

    fn symbol(&mut self, c: char) {
        let start = self.position;
        let rest = &self.source[start..];
        let first = rest.as_bytes()[0]; // comparing it first makes the search four times as fast
        let known =
            SYMBOLS.iter().find(|(text, ..)| text.as_bytes()[0] == first && rest.starts_with(text));
        if let Some(&(text, kind, remedy)) = known {
            self.position += text.len();
            if let Some(remedy) = remedy {
                self.report_foreign(start, remedy);
            }
            return self.push_token(kind, start, remedy.is_some());
        }
        self.advance();
        if let Some((kind, ascii)) = lookalike(c) {
            self.report_foreign(start, ascii);
            return self.push_guessed(kind, start);
        }
        // A run of meaningless characters is one mistake.
        self.skip_while(|c| is_meaningless(c) && advice(c).is_none());
        let text = &self.source[start..self.position];
        self.report(start, "not part of the language", |_| {
            let other = "names are made of letters, digits and '_'; a comment begins with '#'";
            (format!("unexpected {}", name_of(text)), advice(c).unwrap_or(other).to_string())
        });
        self.push(TokenKind::Unknown, start);
    }

    /// Reports a symbol that is not of this language.
    fn report_foreign(&mut self, start: usize, remedy: &str) {
        self.report(start, "not read", |written| {
            let message = format!("'{written}' is not an operator of this language");
            (message, format!("write '{remedy}'"))
        });
    }

    /// Reports the text from `start` to the current position; `texts` gives message and help.
    fn report(
        &mut self,
        start: usize,
        label: &str,
        texts: impl FnOnce(String) -> (String, String),
    ) {
        let span = Span::new(start, self.position);
        let source = self.source;
        self.findings.add(|| {
            let (message, help) = texts(shorten(&source[span.range()]));
            Diagnostic::error(message, span, label).help(help)
        });
    }
}

/// True for letters of any script, digits and `_`.
fn is_name_part(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || c == '_'
}

/// True if no token begins with this character.
fn is_meaningless(c: char) -> bool {
    !(c.is_whitespace() || is_name_part(c) || c == '#' || c == '%' || "\"“”„«".contains(c))
        && superscript(c).is_none()
        && lookalike(c).is_none()
        && SYMBOLS.iter().all(|(text, ..)| !text.starts_with(c))
}

/// Name of characters in messages; an invisible one is named by its number.
fn name_of(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None)
            if c.is_control()
                || advice(c) == advice('\u{200b}')
                || ('\u{300}'..='\u{36f}').contains(&c) =>
        {
            format!("character U+{:04X}", u32::from(c))
        }
        (Some(_), None) => format!("character '{text}'"),
        _ => {
            let visible: String =
                text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            format!("characters '{}'", shorten(&visible))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TokenKind::*;

    fn kinds(source: &str) -> (Vec<TokenKind>, usize) {
        let mut findings = Findings::default();
        let tokens = lex(source, 0, &mut findings);
        (tokens.into_iter().map(|token| token.kind).collect(), findings.in_source_order().len())
    }

    #[test]
    fn numbers() {
        assert_eq!(
            kinds("1 0.5 1e-3 2.5e6 3E+2"),
            (vec![1.0, 0.5, 1e-3, 2.5e6, 300.0].into_iter().map(Number).collect(), 0)
        );
        assert_eq!(kinds("1..n"), (vec![Number(1.0), DotDot, Name], 0));
        assert_eq!(kinds("1.5..2"), (vec![Number(1.5), DotDot, Number(2.0)], 0));
        assert_eq!(kinds("2e"), (vec![Unknown], 1));
        assert_eq!(kinds("2em"), (vec![Number(2.0), Name], 0));
        assert_eq!(kinds(".5 5. 5.e1"), (vec![Number(0.5), Number(5.0), Number(50.0)], 3));
        assert_eq!(kinds("1e400 1e-400 0e-400"), (vec![Number(1.0), Number(0.0), Number(0.0)], 2));
        assert_eq!(kinds("1.2.3 1_000"), (vec![Unknown, Unknown], 2));
    }

    #[test]
    fn words() {
        assert_eq!(kinds("θ_1 Größe in of _x ẋ"), (vec![Name, Name, In, Of, Name, Name], 0));
        assert_eq!(
            kinds("q.x x'' q.1"),
            (vec![Name, Dot, Name, Name, Prime, Prime, Name, Dot, Number(1.0)], 0)
        );
    }

    #[test]
    fn lines_comments_and_white_space() {
        let source = "\u{feff}a # b\r\n\tc\rd\u{a0}e";
        let tokens = lex(source, 0, &mut Findings::default());
        let first: Vec<_> =
            tokens.iter().map(|token| (&source[token.span.range()], token.first_on_line)).collect();
        assert_eq!(first, [("a", true), ("c", true), ("d", true), ("e", false)]);
    }

    #[test]
    fn symbols_are_sorted_by_length() {
        assert!(SYMBOLS.is_sorted_by_key(|(text, ..)| std::cmp::Reverse(text.len())));
    }

    #[test]
    fn repairs() {
        assert_eq!(
            kinds("x² + y⁻¹"),
            (vec![Name, Caret, Number(2.0), Plus, Name, Caret, Number(-1.0)], 2)
        );
        assert_eq!(kinds("a − b ≤ c // d"), (vec![Name, Minus, Name, LessEqual, Name], 3));
        assert_eq!(kinds("a /* b\n */ c"), (vec![Name, Name], 1));
        assert_eq!(kinds("a $€ b"), (vec![Name, Unknown, Name], 1));
        assert_eq!(kinds("2.*x"), (vec![Number(2.0), Star, Name], 1));
    }
}
