//! Syntax tree of a model: the text as written, nothing resolved.

use super::span::Span;

/// A name with its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name as written.
    pub text: String,
    /// Its span.
    pub span: Span,
}

/// A whole file: the statements that could be read, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Statements in source order.
    pub statements: Vec<Statement>,
}

/// One statement with its span, from its keyword to its last token.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Form and parts of the statement.
    pub kind: StatementKind,
    /// Its span.
    pub span: Span,
}

/// Words that begin a statement, with its form in the notation of the language guide.
pub const STATEMENTS: [(&str, &str); 14] = [
    ("parameter", "parameter NAME = EXPR"),
    ("size", "size NAME = INTEGER"),
    ("coordinate", "coordinate NAME : SHAPE = EXPR"),
    ("momentum", "momentum NAME of COORDINATE = EXPR"),
    ("velocity", "velocity NAME of COORDINATE = EXPR"),
    ("hamiltonian", "hamiltonian EXPR"),
    ("constraint", "constraint NAME : EXPR = EXPR"),
    ("integral", "integral NAME = EXPR"),
    ("state", "state NAME : SHAPE = EXPR"),
    ("let", "let NAME = EXPR"),
    ("observe", "observe NAME = EXPR"),
    ("measure", "measure NAME = mean(EXPR)"),
    ("table", "table NAME = \"file.csv\""),
    ("include", "include \"file.holo\""),
];

/// The statements of the language.
#[expect(missing_docs, reason = "the fields are named after the parts of the form above them")]
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// `parameter NAME[family] = EXPR`
    Parameter { name: Name, family: Ranges, value: Expr },
    /// `size NAME = INTEGER`
    Size { name: Name, value: Expr },
    /// `coordinate NAME[family] : SHAPE = EXPR`
    Coordinate { name: Name, family: Ranges, shape: ShapeExpr, value: Option<Expr> },
    /// `momentum NAME[indices] of COORDINATE = EXPR`
    Momentum { name: Name, indices: Vec<Name>, of: Name, value: Option<Expr> },
    /// `velocity NAME[indices] of COORDINATE = EXPR`
    Velocity { name: Name, indices: Vec<Name>, of: Name, value: Option<Expr> },
    /// `hamiltonian EXPR`; `keyword` is the span of the word.
    Hamiltonian { keyword: Span, value: Expr },
    /// `constraint NAME[family] : LEFT = RIGHT`
    Constraint { name: Name, family: Ranges, left: Expr, right: Expr },
    /// `integral NAME[family] = EXPR`
    Integral { name: Name, family: Ranges, value: Expr },
    /// `state NAME[family] : SHAPE = EXPR`
    State { name: Name, family: Ranges, shape: ShapeExpr, value: Option<Expr> },
    /// `NAME[indices]' = EXPR` or `NAME' = EXPR`
    Derivative { name: Name, indices: Vec<Name>, value: Expr },
    /// `let NAME = EXPR`, `let NAME[family] = EXPR`, `let NAME(parameters) = EXPR`
    Let { name: Name, family: Ranges, parameters: Vec<Name>, value: Expr },
    /// `observe NAME[family] = EXPR`
    Observe { name: Name, family: Ranges, value: Expr },
    /// `measure NAME = STATISTIC(over : values[0], values[1], …) every EXPR from EXPR`
    Measure {
        name: Name,
        statistic: Name,
        over: Ranges,
        values: Vec<Expr>,
        every: Option<Expr>,
        from: Option<Expr>,
    },
    /// `table NAME = "file.csv"`; `path` is the text between the quotes.
    Table { name: Name, path: Name },
    /// `include "file.holo"`, in place of the statements of that file.
    Include { path: Name },
}

impl StatementKind {
    /// Name that the statement declares; of a derivative, the name of its state. `None` if it has
    /// no name.
    pub fn name(&self) -> Option<&Name> {
        use StatementKind::*;
        match self {
            Parameter { name, .. }
            | Size { name, .. }
            | Coordinate { name, .. }
            | Momentum { name, .. }
            | Velocity { name, .. }
            | Constraint { name, .. }
            | Integral { name, .. }
            | State { name, .. }
            | Derivative { name, .. }
            | Let { name, .. }
            | Observe { name, .. }
            | Measure { name, .. }
            | Table { name, .. } => Some(name),
            Hamiltonian { .. } | Include { .. } => None,
        }
    }

    /// Family, parameters and value of a statement whose name stands for its value in formulas.
    pub fn definition(&self) -> Option<(&Ranges, &[Name], &Expr)> {
        use StatementKind::*;
        match self {
            Let { family, parameters, value, .. } => Some((family, parameters, value)),
            Integral { family, value, .. } | Observe { family, value, .. } => {
                Some((family, &[], value))
            }
            Parameter { .. }
            | Size { .. }
            | Coordinate { .. }
            | Momentum { .. }
            | Velocity { .. }
            | Hamiltonian { .. }
            | Constraint { .. }
            | State { .. }
            | Derivative { .. }
            | Measure { .. }
            | Table { .. }
            | Include { .. } => None,
        }
    }
}

/// `[i in a..b, j in c..d if COND]`; empty if nothing is indexed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranges {
    /// Ranges from left to right; later ranges may use earlier indices.
    pub ranges: Vec<IndexRange>,
    /// The condition after `if`.
    pub filter: Option<Box<Expr>>,
}

/// `NAME in LOW..HIGH`, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexRange {
    /// The index.
    pub name: Name,
    /// First value.
    pub low: Expr,
    /// Last value.
    pub high: Expr,
}

/// A shape as written after `:`; each dimension is a number or a `size`.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeExpr {
    /// `R`, or nothing.
    Scalar,
    /// `R^k`
    Vector(Expr),
    /// `R^(k,l)`
    Matrix(Expr, Expr),
}

/// An expression with its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Form and parts of the expression.
    pub kind: ExprKind,
    /// Its span.
    pub span: Span,
}

/// Forms of expressions. Parentheses around one expression only widen its span.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number.
    Number(f64),
    /// Any name, `pi` and `t` included.
    Name(String),
    /// `e.name`: a component (`x`, `y`, `z`) or a table's column.
    Member(Box<Expr>, Name),
    /// `e[k]`, `e[k, l]`
    Index(Box<Expr>, Vec<Expr>),
    /// `f(a, b, …)`, built in or defined by `let`; `if(c, a, b)` is the call of `if`.
    Call(Name, Vec<Expr>),
    /// A prefix operator.
    Unary(UnaryOperator, Box<Expr>),
    /// An infix operator; the span is the operator's.
    Binary(BinaryOperator, Span, Box<Expr>, Box<Expr>),
    /// `(a, b, …)` of two or more entries.
    Vector(Vec<Expr>),
    /// `sum(ranges : body)`
    Sum(Ranges, Box<Expr>),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `-`
    Negate,
    /// `not`
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `^`
    Power,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `and`
    And,
    /// `or`
    Or,
}
