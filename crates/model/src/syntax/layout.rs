//! Layout of tokens into statements: which lines go on and where a statement ends.
//!
//! Doing this before parsing makes recovery trivial: a statement that cannot be read is left
//! behind, and the next one begins at the place found here, whatever the mistake was.

use super::diagnostic::Diagnostic;
use super::findings::Findings;
use super::statements::StatementRow;
use super::token::{Token, TokenKind};
use std::ops::Range;

/// The tokens of one statement.
pub(super) struct Lines {
    /// Range among all tokens; never empty.
    pub(super) tokens: Range<usize>,
    /// Unclosed brackets, as positions counted from the statement's first token, in order.
    pub(super) unclosed: Vec<usize>,
}

/// Splits the tokens into statements.
pub(super) fn split(source: &str, tokens: &[Token], findings: &mut Findings) -> Vec<Lines> {
    findings.next_stage();
    let mut statements = Vec::new();
    let mut start = 0;
    let mut brackets = Brackets::default();
    for (i, token) in tokens.iter().enumerate() {
        if i > start && token.first_on_line {
            let goes_on = brackets.is_open() || tokens[i - 1].kind.continues_line();
            // A forgotten bracket must not swallow the rest of the file.
            if !goes_on || begins_statement(source, &tokens[i..]) {
                statements.push(Lines { tokens: start..i, unclosed: brackets.finish(start) });
                start = i;
            }
        }
        // A ';' in the middle of a statement is left to the parser.
        let rest = &tokens[i + 1..];
        let ends =
            rest.first().is_none_or(|next| next.first_on_line || next.kind == TokenKind::Semicolon);
        if token.kind == TokenKind::Semicolon
            && !brackets.is_open()
            && (ends || begins_statement(source, rest))
        {
            findings.add(|| {
                Diagnostic::error("';' does not belong here", token.span, "not needed")
                    .help("remove it: a statement ends with its line, one statement a line")
            });
            if i > start {
                statements.push(Lines { tokens: start..i, unclosed: brackets.finish(start) });
            }
            start = i + 1;
            continue;
        }
        brackets.meet(i, token.kind);
    }
    if start < tokens.len() {
        statements.push(Lines { tokens: start..tokens.len(), unclosed: brackets.finish(start) });
    }
    statements
}

/// True if a statement certainly begins here: a statement word and a name, `hamiltonian` and an
/// operand, or `x' =`, `x[i]' =`. No expression holds such a sequence.
pub(super) fn begins_statement(source: &str, tokens: &[Token]) -> bool {
    let Some(first) = tokens.first().filter(|token| token.kind == TokenKind::Name) else {
        return false;
    };
    let next = tokens
        .get(1)
        .filter(|token| !token.first_on_line)
        .map_or(TokenKind::End, |token| token.kind);
    let word = &source[first.span.range()];
    match StatementRow::of(word) {
        Some(row) if row.is_nameless() => next.begins_operand() || next == TokenKind::Minus,
        Some(_) => next == TokenKind::Name,
        None => first.first_on_line && begins_derivative(tokens),
    }
}

/// True for `x' =`, `x[i]' =`, `x[i,j]' =`, …
fn begins_derivative(tokens: &[Token]) -> bool {
    // Three indices are `x [ i , j , k ] ' =`: ten tokens. A bound keeps long lines cheap.
    let kinds = tokens.iter().take(10).map(|token| token.kind);
    let mut after_name = kinds.skip(1).skip_while(|kind| {
        matches!(
            kind,
            TokenKind::OpenSquare | TokenKind::Name | TokenKind::Comma | TokenKind::CloseSquare
        )
    });
    after_name.next() == Some(TokenKind::Prime) && after_name.next() == Some(TokenKind::Equals)
}

/// Brackets that are open at some point of a statement.
#[derive(Default)]
struct Brackets {
    /// Positions of the brackets, each with the kind of token that would close it.
    open: Vec<(usize, TokenKind)>,
    unclosed: Vec<usize>,
}

impl Brackets {
    fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    fn meet(&mut self, i: usize, kind: TokenKind) {
        if let Some(closer) = kind.closer() {
            self.open.push((i, closer));
        } else if kind.is_closer() && self.closes_one(kind) {
            // In `norm(r[1)` the `)` belongs to `(`, and it is `[` that nothing closes.
            while let Some((open, closer)) = self.open.pop() {
                if closer == kind {
                    break;
                }
                self.unclosed.push(open);
            }
        }
    }

    /// True if `kind` closes one of the open brackets. Searches the innermost few only: a text with
    /// thousands of brackets that do not match is beyond repair, and searching them all would take
    /// the square of their number.
    fn closes_one(&self, kind: TokenKind) -> bool {
        self.open.iter().rev().take(8).any(|&(_, closer)| closer == kind)
    }

    /// Unclosed brackets of the statement that ends here.
    fn finish(&mut self, start: usize) -> Vec<usize> {
        let mut unclosed = std::mem::take(&mut self.unclosed);
        unclosed.extend(self.open.drain(..).map(|(open, _)| open));
        unclosed.sort_unstable();
        unclosed.iter_mut().for_each(|open| *open -= start);
        unclosed
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    fn statements(source: &str) -> Vec<String> {
        let mut findings = Findings::default();
        let tokens = lex(source, 0, &mut findings);
        let text = |range: Range<usize>| {
            let words: Vec<_> =
                tokens[range].iter().map(|token| &source[token.span.range()]).collect();
            words.join(" ")
        };
        split(source, &tokens, &mut findings).into_iter().map(|lines| text(lines.tokens)).collect()
    }

    #[test]
    fn a_line_goes_on() {
        assert_eq!(statements("a\nb"), ["a", "b"]);
        for end in ["+", "=", ":", ",", "and", "or", "not", "<", "^", "(", "["] {
            assert_eq!(statements(&format!("a {end} # comment\n\n  b")), [format!("a {end} b")]);
        }
        assert_eq!(statements("f(a\n\nb\n)\nc"), ["f ( a b )", "c"]);
    }

    #[test]
    fn a_statement_word_and_a_name_end_the_statement() {
        assert_eq!(statements("a = (1,\nlet b = 2"), ["a = ( 1 ,", "let b = 2"]);
        assert_eq!(statements("a = (1\nhamiltonian -q"), ["a = ( 1", "hamiltonian - q"]);
        assert_eq!(statements("a = (1\nx[i,j]' = 2"), ["a = ( 1", "x [ i , j ] ' = 2"]);
        assert_eq!(statements("a = (1,\nsize)"), ["a = ( 1 , size )"]);
    }

    #[test]
    fn semicolons_end_statements_outside_brackets() {
        assert_eq!(statements("a;; let b = 1;\nf(c; d)"), ["a", "let b = 1", "f ( c ; d )"]);
        assert_eq!(statements("a ; b;"), ["a ; b"]);
    }
}
