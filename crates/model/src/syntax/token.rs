//! The words and symbols a text is made of.

use super::span::Span;

/// A word or symbol and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: TokenKind,
    /// Where.
    pub(super) span: Span,
    /// Nothing but space stands before it on its line.
    pub(super) first_on_line: bool,
    /// The lexer has reported it and guessed what was meant.
    pub(super) guessed: bool,
}

/// The kinds of tokens. Statement words and function names are plain names here: the parser knows
/// better than the lexer where they may stand.
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
    /// Something the lexer has reported already; the parser gives up on the statement without a word.
    Unknown,
    /// What follows the last token of a statement. The lexer does not make it.
    End,
}

impl TokenKind {
    /// The kind that closes this bracket.
    pub(super) fn closer(self) -> Option<TokenKind> {
        match self {
            TokenKind::OpenRound => Some(TokenKind::CloseRound),
            TokenKind::OpenSquare => Some(TokenKind::CloseSquare),
            TokenKind::OpenCurly => Some(TokenKind::CloseCurly),
            _ => None,
        }
    }

    /// Whether this is `)`, `]` or `}`.
    pub(super) fn is_closer(self) -> bool {
        matches!(self, TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly)
    }

    /// Whether this is made of letters.
    pub(super) fn is_word(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | And | Or | Not | In | Of | If)
    }

    /// Whether a line that ends in this goes on. `!`, `|` and `;` are not operators of the language.
    pub(super) fn continues_line(self) -> bool {
        use TokenKind::*;
        self.is_infix() || matches!(self, Not | Equals | Colon | Comma | DotDot)
    }

    /// Whether this is an operator between two operands.
    pub(super) fn is_infix(self) -> bool {
        use TokenKind::*;
        self.is_comparison() || matches!(self, And | Or | Plus | Minus | Star | Slash | Caret | BarBar)
    }

    /// Whether this compares two operands.
    pub(super) fn is_comparison(self) -> bool {
        use TokenKind::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | EqualEqual | NotEqual)
    }

    /// Whether an operand may begin with this, apart from prefix operators.
    pub(super) fn begins_operand(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | Number(_) | OpenRound | If)
    }

    /// Whether an operand may end with this.
    pub(super) fn ends_operand(self) -> bool {
        use TokenKind::*;
        matches!(self, Name | Number(_) | Prime) || self.is_closer()
    }
}
