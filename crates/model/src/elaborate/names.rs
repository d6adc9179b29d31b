//! What names mean: the symbol table and the scopes of indices and `let` parameters.

use super::expression::{Depends, Ex};
use super::linear_algebra;
use crate::graph::op::{Binary, Unary};
use crate::syntax::span::Span;

/// What a name of the file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A `size`: the statement.
    Size(usize),
    /// A parameter: its number.
    Parameter(usize),
    /// A variable: its number.
    Variable(usize),
    /// The label of a `velocity`.
    Velocity,
    /// A `let`, `integral` or `observe`: the statement. All three may be used in expressions.
    Definition(usize),
    /// A `table`: its number.
    Table(usize),
    /// A `constraint`: the statement.
    Constraint(usize),
    /// A `measure`.
    Measure,
}

/// A declared name.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// What it stands for.
    pub symbol: Symbol,
    /// Where it is declared.
    pub span: Span,
}

/// Names bound around an expression, and what the expression may depend on.
#[derive(Clone)]
pub struct Scope {
    /// Indices and `let` parameters, innermost last.
    pub locals: Vec<(String, Ex)>,
    /// What may be used.
    pub allowed: Depends,
    /// What is being read, for messages: "initial values", "sizes".
    pub place: &'static str,
}

impl Scope {
    /// A scope without locals.
    pub fn new(allowed: Depends, place: &'static str) -> Self {
        Scope { locals: Vec::new(), allowed, place }
    }

    /// The value of a local name.
    pub fn find(&self, name: &str) -> Option<&Ex> {
        self.locals.iter().rev().find(|(n, _)| n == name).map(|(_, e)| e)
    }
}

/// The multiplier of constraint NAME is `lambda.NAME`, where the file has no `lambda` of its own.
pub const LAMBDA: &str = "lambda";

/// Functions as other languages call them, with our names.
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

/// The scalar functions of one argument that users can call.
pub fn unary_function(name: &str) -> Option<Unary> {
    Unary::ALL.iter().copied().find(|op| op.name() == name && !matches!(op, Unary::Neg | Unary::Not))
}

/// The scalar functions of two arguments that users can call.
pub fn binary_function(name: &str) -> Option<Binary> {
    Binary::ALL
        .iter()
        .copied()
        .find(|op| op.name() == name && matches!(op, Binary::Pow | Binary::Atan2 | Binary::Min | Binary::Max))
}

/// Every built-in function, for suggestions and the language guide.
pub fn function_names() -> Vec<&'static str> {
    let unary = Unary::ALL.iter().map(|op| op.name()).filter(|n| unary_function(n).is_some());
    let binary = Binary::ALL.iter().map(|op| op.name()).filter(|n| binary_function(n).is_some());
    let linear = linear_algebra::FUNCTIONS.iter().map(|r| r.name);
    unary.chain(binary).chain(linear).chain(["identity", "matrix", "if", "sum", "normal", "uniform"]).collect()
}
