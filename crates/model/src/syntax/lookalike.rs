//! Lookalikes: characters that come in from papers, word processors and other languages. The lexer
//! reads them as the tokens they stand for, reports what to write instead, and goes on.

use super::token::TokenKind;

/// Token that a character stands for, and its spelling in this language.
pub(super) fn lookalike(c: char) -> Option<(TokenKind, &'static str)> {
    Some(match c {
        '−' | '–' | '—' | '‐' | '‑' | '‒' | '－' | '﹣' => (TokenKind::Minus, "-"),
        '＋' => (TokenKind::Plus, "+"),
        '·' | '⋅' | '∙' | '•' | '×' | '∗' | '＊' | '✕' => (TokenKind::Star, "*"),
        '÷' | '∕' | '⁄' | '／' => (TokenKind::Slash, "/"),
        '≤' | '⩽' | '≦' => (TokenKind::LessEqual, "<="),
        '≥' | '⩾' | '≧' => (TokenKind::GreaterEqual, ">="),
        '≠' => (TokenKind::NotEqual, "!="),
        '≡' => (TokenKind::EqualEqual, "=="),
        '＝' | '≔' => (TokenKind::Equals, "="),
        '∧' => (TokenKind::And, "and"),
        '∨' => (TokenKind::Or, "or"),
        '¬' => (TokenKind::Not, "not"),
        '∈' => (TokenKind::In, "in"),
        '…' => (TokenKind::DotDot, ".."),
        '’' | '‘' | '′' | '´' => (TokenKind::Prime, "'"),
        '‖' => (TokenKind::BarBar, "norm(…)"),
        '（' => (TokenKind::OpenRound, "("),
        '）' => (TokenKind::CloseRound, ")"),
        '，' => (TokenKind::Comma, ","),
        '：' => (TokenKind::Colon, ":"),
        _ => return None,
    })
}

/// Digit or sign that a superscript shows.
pub(super) fn superscript(c: char) -> Option<char> {
    Some(match c {
        '⁰' => '0',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁴' => '4',
        '⁵' => '5',
        '⁶' => '6',
        '⁷' => '7',
        '⁸' => '8',
        '⁹' => '9',
        '⁻' => '-',
        _ => return None,
    })
}

/// Advice about a character for which no repair is known.
pub(super) fn advice(c: char) -> Option<&'static str> {
    Some(match c {
        '?' => "write if(condition, a, b)",
        '@' => "write '*' for the product of matrices",
        '~' => "write 'not'",
        '\\' => "a line goes on by itself while a bracket is open or when it ends in an operator",
        '√' => "write sqrt(…)",
        '∑' => "write sum(i in 1..n : …)",
        '∞' => "there is no infinity: use a large number such as 1e300",
        '°' => "angles are in radians: write x*pi/180",
        '⟨' | '⟩' => "write dot(a, b)",
        '½' => "write 1/2",
        '¼' => "write 1/4",
        '¾' => "write 3/4",
        '₀'..='₉' => {
            "names hold letters, digits and '_': write x1 or x_1, or x[1] for a component"
        }
        '\u{300}'..='\u{36f}' => {
            "accents and dots over a letter are not read: write x_dot or the like"
        }
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => {
            "it is invisible; delete it"
        }
        _ => return None,
    })
}
