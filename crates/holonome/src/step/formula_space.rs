//! Phase space in which formulas of the model can be evaluated.

use crate::kernels::Formula;
use holonome_integrate::phase_space::{PhaseSpace, Value};

/// Phase space of an unrolled model.
pub trait FormulaSpace: PhaseSpace {
    /// Values of a formula at (t, x).
    fn at(&mut self, formula: &Formula, t: Value, x: &[Value]) -> Vec<Value>;

    /// `a` where `condition` is not 0, else `b`.
    fn unless_zero(&mut self, condition: Value, a: Value, b: Value) -> Value;

    /// `below` where a < b, else `other`.
    fn if_less(&mut self, a: Value, b: Value, below: Value, other: Value) -> Value;

    /// The larger of two values that are not negative.
    fn larger(&mut self, a: Value, b: Value) -> Value;

    /// True if a value is the constant 0.
    fn is_zero(&self, value: Value) -> bool;
}
