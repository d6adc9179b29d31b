//! Syntax tree of a model: the text as written, nothing resolved.

use super::span::Span;
use super::statements::StatementKind;

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

/// One statement: the parts that its row of the table names; the others are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its row.
    pub kind: StatementKind,
    /// Span from its word to its last token.
    pub span: Span,
    /// Name that it declares, the state of a derivative, or an option. A Hamiltonian or Lagrangian is called
    /// "H", after its word.
    pub name: Name,
    /// Ranges of its family, or those over which a measure is taken.
    pub family: IndexSetExpr,
    /// Names of indices whose ranges are those of its coordinate or state.
    pub indices: Vec<Name>,
    /// Parameters of a function.
    pub parameters: Vec<Name>,
    /// Coordinate of a momentum, statistic of a measure, path of a file, a method, or the form that
    /// is drawn.
    pub reference: Name,
    /// Shape of a variable.
    pub shape: ShapeExpr,
    /// Its expressions from left to right: the value, both sides of an equation, or the quantity
    /// and the numbers of a statistic; behind an equation, what an event sets and to which value, in
    /// turn. Without an initial value there are none.
    pub values: Vec<Expr>,
    /// Of a drawing, the ranges of each of its values; most have none.
    pub drawn_over: Vec<IndexSetExpr>,
    /// Its words: `rising`, `stop`, or those for units.
    pub words: Vec<Name>,
    /// Its clauses: the word and the value of each.
    pub clauses: Vec<(&'static str, Expr)>,
    /// Its texts between quotes, each with the word before it; several behind one word have that one.
    pub texts: Vec<(&'static str, Name)>,
}

impl Statement {
    /// A statement whose word stands at `span`, without parts.
    pub fn new(kind: StatementKind, span: Span) -> Statement {
        Statement {
            kind,
            span,
            name: Name { text: "H".to_string(), span },
            family: IndexSetExpr::default(),
            indices: Vec::new(),
            parameters: Vec::new(),
            reference: Name { text: String::new(), span },
            shape: ShapeExpr::Scalar,
            values: Vec::new(),
            drawn_over: Vec::new(),
            words: Vec::new(),
            clauses: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// True if it holds this word.
    pub fn says(&self, word: &str) -> bool {
        self.words.iter().any(|said| said.text == word)
    }

    /// Texts behind `word`.
    pub fn texts_of(&self, word: &str) -> Vec<&Name> {
        self.texts.iter().filter(|(known, _)| *known == word).map(|(_, text)| text).collect()
    }

    /// Value of the clause that begins with `word`.
    pub fn clause(&self, word: &str) -> Option<&Expr> {
        self.clauses.iter().find(|(known, _)| *known == word).map(|(_, value)| value)
    }
}

/// `[i in a..b, j in c..d if COND]`; empty if nothing is indexed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexSetExpr {
    /// Ranges from left to right; later ranges may use earlier indices.
    pub ranges: Vec<RangeExpr>,
    /// The condition after `if`.
    pub filter: Option<Box<Expr>>,
}

/// `NAME in LOW..HIGH`, both ends included.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeExpr {
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
    /// `e'`, `e''`: a rate of change, with the number of its primes.
    Rate(Box<Expr>, usize),
    /// A prefix operator.
    Unary(UnaryOperator, Box<Expr>),
    /// An infix operator; the span is the operator's.
    Binary(BinaryOperator, Span, Box<Expr>, Box<Expr>),
    /// `(a, b, …)` of two or more entries.
    Vector(Vec<Expr>),
    /// `sum(ranges : body)`
    Sum(IndexSetExpr, Box<Expr>),
}

impl Expr {
    /// Visits the direct parts, from left to right.
    pub fn for_each_part<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            ExprKind::Number(_) | ExprKind::Name(_) => {}
            ExprKind::Member(part, _) | ExprKind::Rate(part, _) | ExprKind::Unary(_, part) => {
                f(part)
            }
            ExprKind::Binary(_, _, left, right) => {
                f(left);
                f(right);
            }
            ExprKind::Index(of, list) => {
                f(of);
                list.iter().for_each(f);
            }
            ExprKind::Call(_, list) | ExprKind::Vector(list) => list.iter().for_each(f),
            ExprKind::Sum(over, body) => {
                for range in &over.ranges {
                    f(&range.low);
                    f(&range.high);
                }
                over.filter.iter().for_each(|filter| f(filter));
                f(body);
            }
        }
    }
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

impl BinaryOperator {
    /// True for an operator that compares its operands.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }
}
