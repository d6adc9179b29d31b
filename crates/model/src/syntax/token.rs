//! Tokens: the words and symbols of a text.

use super::span::Span;

/// A word or symbol with its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token {
    /// Kind of the token.
    pub(super) kind: TokenKind,
    /// Its span.
    pub(super) span: Span,
    /// True if nothing but space stands before it on its line.
    pub(super) first_on_line: bool,
    /// True if the lexer has reported it and guessed what was meant.
    pub(super) guessed: bool,
}

/// Kinds of tokens. Statement words and function names are plain names here: the parser decides
/// where they may stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name,
    Number(f64),
    /// `"…"`, quotes included.
    Text,
    And,
    Or,
    Not,
    In,
    Of,
    If,
    Plus,
    Minus,
    Star,
    Slash,
    Caret,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    EqualEqual,
    NotEqual,
    Equals,
    Colon,
    Comma,
    Dot,
    DotDot,
    Prime,
    OpenRound,
    CloseRound,
    OpenSquare,
    CloseSquare,
    OpenCurly,
    CloseCurly,
    /// `|`, which is not in the language but is often written for a norm.
    Bar,
    /// `||`, for a norm or for `or`.
    BarBar,
    /// `!`, for `not`.
    Bang,
    /// `;`, between statements or between the rows of a matrix.
    Semicolon,
    /// Text that the lexer has reported already; the parser gives up on the statement without a
    /// report.
    Unknown,
    /// End after the last token of a statement. The lexer does not make it.
    End,
}

impl TokenKind {
    /// Kind of the token that closes this bracket.
    pub(super) fn closer(self) -> Option<TokenKind> {
        match self {
            TokenKind::OpenRound => Some(TokenKind::CloseRound),
            TokenKind::OpenSquare => Some(TokenKind::CloseSquare),
            TokenKind::OpenCurly => Some(TokenKind::CloseCurly),
            _ => None,
        }
    }

    /// True for `)`, `]` and `}`.
    pub(super) fn is_closer(self) -> bool {
        matches!(self, TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly)
    }

    /// True for tokens made of letters.
    pub(super) fn is_word(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | And | Or | Not | In | Of | If)
    }

    /// True if a line that ends in this token goes on. `!`, `|` and `;` are not operators of the
    /// language.
    pub(super) fn continues_line(self) -> bool {
        use TokenKind::*;
        self.is_infix() || matches!(self, Not | Equals | Colon | Comma | DotDot)
    }

    /// True for an operator between two operands.
    pub(super) fn is_infix(self) -> bool {
        use TokenKind::*;
        self.is_comparison()
            || matches!(self, And | Or | Plus | Minus | Star | Slash | Caret | BarBar)
    }

    /// True for an operator that compares two operands.
    pub(super) fn is_comparison(self) -> bool {
        use TokenKind::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | EqualEqual | NotEqual)
    }

    /// True if an operand may begin with this token, apart from prefix operators.
    pub(super) fn begins_operand(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | Number(_) | OpenRound | If)
    }

    /// True if an operand may end with this token.
    pub(super) fn ends_operand(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | Number(_) | Prime) || self.is_closer()
    }
}
