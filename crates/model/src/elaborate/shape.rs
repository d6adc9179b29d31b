//! Shapes of expressions.

use std::fmt;

/// Shape of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A number.
    Scalar,
    /// k numbers.
    Vector(usize),
    /// k × l numbers, row-major.
    Matrix(usize, usize),
    /// True or false.
    Condition,
}

impl Shape {
    /// Number of scalars.
    pub fn len(self) -> usize {
        match self {
            Shape::Scalar | Shape::Condition => 1,
            Shape::Vector(k) => k,
            Shape::Matrix(k, l) => k * l,
        }
    }

    /// Always false: no shape is empty.
    pub fn is_empty(self) -> bool {
        false
    }

    /// Lengths of the axes.
    pub fn dimensions(self) -> Vec<usize> {
        match self {
            Shape::Scalar | Shape::Condition => vec![],
            Shape::Vector(k) => vec![k],
            Shape::Matrix(k, l) => vec![k, l],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Scalar => write!(f, "R"),
            Shape::Vector(k) => write!(f, "R^{k}"),
            Shape::Matrix(k, l) => write!(f, "R^({k},{l})"),
            Shape::Condition => write!(f, "a condition"),
        }
    }
}
