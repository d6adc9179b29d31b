//! Words with a meaning of their own, which cannot be declared.

use super::statements::{STATEMENTS, StatementRow};

/// Built-in functions.
#[rustfmt::skip]
pub const FUNCTIONS: [&str; 48] = [
    "dot", "cross", "norm", "outer", "hat", "transpose", "trace", "det", "inverse", "identity", "diag", "matrix",
    "sum", "if",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    "exp", "log", "sqrt", "abs", "round", "min", "max", "pow", "nearest",
    "floor", "ceil", "mod", "sign", "clamp", "hypot", "log10", "log1p", "expm1", "erf",
    "normal", "uniform", "spline", "linear", "hold",
];

/// Meaning of a reserved word ("a built-in function", …); `None` for a word that may be declared.
pub fn reserved(word: &str) -> Option<&'static str> {
    match word {
        "in" => Some("the word between an index and its range"),
        "of" => Some("the word between a momentum and its coordinate"),
        "and" | "or" | "not" => Some("an operator"),
        "pi" => Some("the number 3.14159…"),
        "t" => Some("time"),
        _ if is_statement_word(word) => Some("a word that begins a statement"),
        _ if FUNCTIONS.contains(&word) => Some("a built-in function"),
        _ => None,
    }
}

/// Words that begin a statement.
pub fn statement_words() -> impl Iterator<Item = &'static str> {
    STATEMENTS.iter().map(|row| row.word).filter(|word| !word.is_empty())
}

/// True for a word that is kept for statements: one begins with it, and no name is.
pub fn is_statement_word(word: &str) -> bool {
    StatementRow::of(word).is_some_and(|row| !row.has_free_word())
}

/// True for a word that stands for degrees behind a number.
pub(super) fn is_degree(word: &str) -> bool {
    ["deg", "degree", "degrees"].contains(&word)
}

/// True for a word that stands for a unit behind a number, unless it is declared.
pub(super) fn is_unit(word: &str) -> bool {
    #[rustfmt::skip]
    const UNITS: [&str; 52] = [
        "kg", "g", "mg", "m", "cm", "mm", "um", "nm", "pm", "km", "s", "ms", "us", "ns", "ps", "fs", "min", "h", "hr",
        "yr", "year", "years", "day", "days", "N", "kN", "J", "kJ", "mJ", "W", "kW", "Pa", "bar", "K", "Hz", "kHz", "rad",
        "eV", "keV", "MeV", "V", "A", "C", "T", "mol", "kcal", "amu", "u", "Da", "AU", "au", "pc",
    ];
    UNITS.contains(&word)
}
