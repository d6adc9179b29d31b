//! Explicit Euler: x₁ = x + hX(x).

use std::sync::OnceLock;

use crate::tableau::{Definition, Tableau};

static DEFINITION: Definition = Definition {
    name: "euler",
    order: 1,
    a: &[&[]],
    b: &[1.0],
    error: &[],
    lagged: Some((&[-1.0 / 2.0, 1.0 / 2.0], 1)), // to the trapezoidal rule
    dense: None,
};

/// The checked coefficients.
pub fn tableau() -> &'static Tableau {
    static TABLEAU: OnceLock<Tableau> = OnceLock::new();
    super::build(&TABLEAU, &DEFINITION)
}
