//! Words with a meaning of their own, which cannot be declared.

use super::ast::STATEMENTS;

/// Built-in functions.
#[rustfmt::skip]
pub const FUNCTIONS: [&str; 35] = [
    "dot", "cross", "norm", "outer", "hat", "transpose", "trace", "det", "inverse", "identity", "diag", "matrix",
    "sum", "if",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
    "exp", "log", "sqrt", "abs", "round", "min", "max", "pow", "nearest",
    "normal", "uniform",
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
pub fn statement_words() -> [&'static str; STATEMENTS.len()] {
    STATEMENTS.map(|(word, _)| word)
}

/// True if a statement begins with this word.
pub fn is_statement_word(word: &str) -> bool {
    statement_words().contains(&word)
}

/// Form of the statement that begins with `word`, in the language guide's notation.
pub(super) fn form(word: &str) -> &'static str {
    STATEMENTS.iter().find(|(known, _)| *known == word).map_or("NAME' = EXPR", |(_, form)| form)
}

/// Statement that users of other languages mean by `word`.
pub(super) fn statement_meant_by(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().as_str() {
        "param" | "params" | "par" | "const" | "constant" => "parameter",
        "int" | "integer" | "dim" | "dimension" => "size",
        "coord" | "coords" | "coordinates" | "position" | "var" | "variable" => "coordinate",
        "mom" | "momenta" => "momentum",
        "vel" | "velocities" => "velocity",
        "h" | "ham" | "energy" => "hamiltonian",
        "constrain" | "constraints" | "cons" | "subject" => "constraint",
        "invariant" | "conserved" | "conserve" | "first_integral" => "integral",
        "def" | "define" | "fn" | "func" | "function" | "where" => "let",
        "output" | "record" | "monitor" | "print" => "observe",
        "average" | "statistic" | "accumulate" => "measure",
        "data" | "load" | "read" => "table",
        "import" | "use" | "using" | "require" => "include",
        _ => return None,
    })
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
