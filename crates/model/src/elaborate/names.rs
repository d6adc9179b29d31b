//! Meanings of names: the symbol table and the scopes of indices and `let` parameters.

use super::expression::{Depends, Ex};
use super::functions;
use crate::graph::op::{Binary, Unary};
use crate::syntax::span::Span;

/// Meaning of a name in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A `size`: the statement.
    Size(usize),
    /// A parameter: its number.
    Parameter(usize),
    /// A variable: its number.
    Variable(usize),
    /// A `let`, `integral` or `observe`: the statement. All three may be used in expressions.
    Definition(usize),
    /// A `table`: its number.
    Table(usize),
    /// A name that stands for no value: the statement.
    Label(usize),
}

/// A declared name.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Meaning of the name.
    pub symbol: Symbol,
    /// Span of the declaration.
    pub span: Span,
}

/// Names bound around an expression, and the inputs that the expression may use.
#[derive(Clone, Default)]
pub struct Scope {
    /// Indices and `let` parameters, innermost last.
    pub locals: Vec<(String, Ex)>,
    /// Inputs that may be used.
    pub allowed: Depends,
    /// Name of the place in messages: "initial values", "sizes".
    pub place: &'static str,
    /// Member for which families without indices stand, if they do.
    pub member: Option<FamilyMember>,
}

/// Member that all families with the same ranges of indices have.
#[derive(Clone)]
pub struct FamilyMember {
    /// Ranges of the indices.
    pub bounds: Vec<(i64, i64)>,
    /// Index values of the member.
    pub indices: Vec<Ex>,
}

/// Place of initial values, which may use each other.
pub const INITIAL: &str = "initial values";

impl Scope {
    /// A scope without locals.
    pub fn new(allowed: Depends, place: &'static str) -> Self {
        Scope { locals: Vec::new(), allowed, place, member: None }
    }

    /// The value of a local name; `None` if the name is not bound.
    pub fn find(&self, name: &str) -> Option<&Ex> {
        self.locals.iter().rev().find(|(n, _)| n == name).map(|(_, e)| e)
    }
}

/// Prefix of multipliers: that of constraint NAME is `lambda.NAME`, unless the file declares a
/// `lambda` of its own.
pub const LAMBDA: &str = "lambda";

/// Function that stands for the generalised force of a constraint.
pub const REACTION: &str = "reaction";

/// Names of functions in other languages, with ours.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("ln", "log"),
    ("arcsin", "asin"),
    ("arccos", "acos"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("fabs", "abs"),
    ("length", "norm"),
    ("magnitude", "norm"),
    ("inv", "inverse"),
    ("eye", "identity"),
    ("tr", "trace"),
    ("skew", "hat"),
    ("where", "if"),
    ("rand", "uniform"),
    ("randn", "normal"),
];

/// Functions whose names may be declared, as `gamma` is a damping for most; a declaration goes first.
pub const FREE: [&str; 8] =
    ["gamma", "lgamma", "digamma", "polygamma", "gammainc", "besselj", "ellipk", "ellipe"];

/// A scalar function of one argument that users can call.
pub fn unary_function(name: &str) -> Option<Unary> {
    Unary::ALL
        .iter()
        .copied()
        .find(|op| op.name() == name && !matches!(op, Unary::Neg | Unary::Not))
}

/// A scalar function of two arguments that users can call.
pub fn binary_function(name: &str) -> Option<Binary> {
    Binary::ALL.iter().copied().find(|op| {
        op.name() == name && matches!(op, Binary::Pow | Binary::Atan2 | Binary::Min | Binary::Max)
    })
}

/// Names of all built-in functions, for suggestions and the language guide.
pub fn function_names() -> Vec<&'static str> {
    let unary = Unary::ALL.iter().map(|op| op.name()).filter(|n| unary_function(n).is_some());
    let binary = Binary::ALL.iter().map(|op| op.name()).filter(|n| binary_function(n).is_some());
    let composed = functions::FUNCTIONS.iter().map(|r| r.name);
    unary
        .chain(binary)
        .chain(composed)
        .chain(["identity", "matrix", "if", "sum", "normal", "uniform", "spline", "linear", "hold"])
        .collect()
}

/// Name of the initial velocity of a coordinate that the file gives none: no name in a file has a
/// prime.
pub fn velocity_of(coordinate: &str) -> String {
    format!("{coordinate}'")
}

/// Name of the momentum of a coordinate whose initial velocity is given.
pub(super) fn momentum_of(coordinate: &str) -> String {
    format!("p_{coordinate}")
}

/// A number of indices in words.
pub(super) fn counted_indices(count: usize) -> String {
    if count == 1 { "1 index".to_string() } else { format!("{count} indices") }
}
