//! Expressions with every name resolved and every shape known.

pub mod index_set;

use super::functions::Function;
use super::shape::Shape;
use crate::graph::op::{Binary, Unary};
use crate::syntax::span::Span;
use index_set::{IndexSet, IndexVariable};
use std::sync::Arc;

/// A shared, immutable, checked expression.
pub type Ex = Arc<CheckedExpression>;

/// Set of inputs that an expression may depend on, as bits.
pub type Depends = u16;
/// Positions.
pub const POSITION: Depends = 1;
/// Momenta.
pub const MOMENTUM: Depends = 2;
/// Variables of a `state` model.
pub const STATE: Depends = 4;
/// The time.
pub const TIME: Depends = 8;
/// Parameters.
pub const PARAMETER: Depends = 16;
/// Indices.
pub const INDEX: Depends = 32;
/// Values that differ between the trajectories of an ensemble: random draws and the trajectory's
/// number.
pub const DRAW: Depends = 64;
/// Tables.
pub const TABLE: Depends = 128;
/// Multipliers of constraints, which a method finds along the run.
pub const MULTIPLIER: Depends = 256;
/// Velocities of coordinates, H_p.
pub const VELOCITY: Depends = 512;
/// Accelerations of coordinates.
pub const ACCELERATION: Depends = 1024;
/// Generalised forces of constraints, −Gᵀλ.
pub const REACTION: Depends = 2048;
/// Everything that follows from the state along the motion and is no part of it.
pub const FOLLOWING: Depends = MULTIPLIER | VELOCITY | ACCELERATION | REACTION;
/// Everything that moves along a trajectory.
pub const DYNAMIC: Depends = POSITION | MOMENTUM | STATE | TIME;
/// Inputs that a formula along the motion may use.
pub const FORMULA: Depends = DYNAMIC | PARAMETER | INDEX | TABLE;
/// Inputs that an initial value may use.
pub const START: Depends = PARAMETER | INDEX | TABLE | DRAW;

/// The distributions of initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Draw {
    /// Standard normal.
    Normal,
    /// Uniform on (0, 1).
    Uniform,
}

/// A checked expression.
#[derive(Debug)]
pub struct CheckedExpression {
    /// Form of the expression.
    pub kind: Kind,
    /// Its shape.
    pub shape: Shape,
    /// Span in the text.
    pub span: Span,
    /// Inputs that it depends on.
    pub depends: Depends,
    /// True if it contains a sum over an index.
    pub has_sum: bool,
    /// Number of levels below it. Definitions are shared, so that it may exceed the nesting of the
    /// text.
    pub height: u32,
}

/// Array that holds the numbers of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// The state: the variable's number and its kind of input (position, momentum, state).
    Variable(usize, Depends),
    /// The parameters: the parameter's number.
    Parameter(usize),
    /// The multipliers: the constraint's number.
    Multiplier(usize),
    /// The velocities: the coordinate's number among the variables.
    Velocity(usize),
    /// The accelerations: the coordinate's number among the variables.
    Acceleration(usize),
    /// The generalised forces: the constraint's number, and the coordinate's among the variables.
    /// The indices of the constraint come before those of the coordinate.
    Reaction(usize, usize),
}

/// The forms of checked expressions.
#[derive(Debug)]
pub enum Kind {
    /// A number (sizes and `pi` included).
    Number(f64),
    /// t.
    Time,
    /// An index used as a number.
    Index(IndexVariable),
    /// The member of a family with these index values.
    Member(Storage, Vec<Ex>),
    /// Row `.2` (1-based) of column `.1` of table `.0`.
    Table(usize, usize, Ex),
    /// A member of a `let` family: its name, its index values, the set in which they must lie, and
    /// its body.
    Definition(String, Vec<Ex>, IndexSet, Ex),
    /// A scalar function, or the negative of any shape.
    Unary(Unary, Ex),
    /// A scalar function of two arguments.
    Binary(Binary, Ex, Ex),
    /// A sum and difference of any shape: (is subtracted, term).
    Add(Vec<(bool, Ex)>),
    /// A scalar times anything.
    Scale(Ex, Ex),
    /// Anything divided by a scalar.
    Divide(Ex, Ex),
    /// Matrix times vector or matrix.
    Product(Ex, Ex),
    /// `if(condition, a, b)`
    Select(Ex, Ex, Ex),
    /// A vector of scalars, or a matrix of row vectors.
    Stack(Vec<Ex>),
    /// `e[k]`, `e[k,l]`
    Component(Ex, Vec<Ex>),
    /// The n × n identity.
    Identity,
    /// A function that is composed of operations.
    Function(Function, Vec<Ex>),
    /// A sum over indices.
    Sum(IndexSet, Ex),
    /// A random draw.
    Draw(Draw),
    /// The number of the trajectory, `i` in `--vary`.
    Trajectory,
}

impl CheckedExpression {
    /// A number.
    pub fn number(value: f64, span: Span) -> Ex {
        CheckedExpression::new(Kind::Number(value), Shape::Scalar, span)
    }

    /// 0 of a shape.
    pub fn zero(shape: Shape, span: Span) -> Ex {
        let zeros = |count: usize| vec![CheckedExpression::number(0.0, span); count];
        let row = |columns: usize| {
            CheckedExpression::new(Kind::Stack(zeros(columns)), Shape::Vector(columns), span)
        };
        match shape {
            Shape::Vector(count) => row(count),
            Shape::Matrix(rows, columns) => {
                CheckedExpression::new(Kind::Stack(vec![row(columns); rows]), shape, span)
            }
            Shape::Scalar | Shape::Condition => CheckedExpression::number(0.0, span),
        }
    }

    /// An expression; its inputs follow from its parts.
    pub fn new(kind: Kind, shape: Shape, span: Span) -> Ex {
        let mut depends = match &kind {
            Kind::Time => TIME,
            Kind::Index(_) => INDEX,
            Kind::Member(Storage::Variable(_, own), _) => *own,
            Kind::Member(Storage::Parameter(_), _) => PARAMETER,
            Kind::Member(Storage::Multiplier(_), _) => MULTIPLIER,
            Kind::Member(Storage::Velocity(_), _) => VELOCITY,
            Kind::Member(Storage::Acceleration(_), _) => ACCELERATION,
            Kind::Member(Storage::Reaction(..), _) => MULTIPLIER | REACTION,
            Kind::Table(..) => TABLE,
            Kind::Draw(_) | Kind::Trajectory => DRAW,
            _ => 0,
        };
        let mut has_sum = matches!(kind, Kind::Sum(..));
        let mut height = 0;
        kind.for_each_part(&mut |part| {
            depends |= part.depends;
            has_sum |= part.has_sum;
            height = height.max(part.height + 1);
        });
        Arc::new(CheckedExpression { kind, shape, span, depends, has_sum, height })
    }

    /// The value of a number; `None` for any other form.
    pub fn value(&self) -> Option<f64> {
        match self.kind {
            Kind::Number(v) => Some(v),
            _ => None,
        }
    }

    /// True for a scalar or condition without sums that depends on indices and numbers alone.
    pub fn is_index(&self) -> bool {
        self.depends & !INDEX == 0
            && !self.has_sum
            && matches!(self.shape, Shape::Scalar | Shape::Condition)
    }
}

impl Kind {
    /// Visits the direct parts.
    pub fn for_each_part(&self, f: &mut dyn FnMut(&Ex)) {
        match self {
            Kind::Number(_)
            | Kind::Time
            | Kind::Index(_)
            | Kind::Identity
            | Kind::Draw(_)
            | Kind::Trajectory => {}
            Kind::Member(_, list) | Kind::Stack(list) | Kind::Function(_, list) => {
                list.iter().for_each(f)
            }
            Kind::Table(_, _, a) | Kind::Unary(_, a) => f(a),
            Kind::Binary(_, a, b)
            | Kind::Scale(a, b)
            | Kind::Divide(a, b)
            | Kind::Product(a, b) => {
                f(a);
                f(b);
            }
            Kind::Add(terms) => terms.iter().for_each(|(_, e)| f(e)),
            Kind::Select(c, a, b) => {
                f(c);
                f(a);
                f(b);
            }
            Kind::Component(e, list) => {
                f(e);
                list.iter().for_each(f);
            }
            Kind::Definition(_, indices, set, body) => {
                for (index, range) in indices.iter().zip(&set.ranges) {
                    f(index);
                    f(&range.low);
                    f(&range.high);
                }
                f(body);
            }
            Kind::Sum(set, body) => {
                set.for_each_part(f);
                f(body);
            }
        }
    }
}
