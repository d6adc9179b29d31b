//! The explicit midpoint rule (Runge 1895; HNW II.1 (1.4)): x₁ = x + hX(x + ½hX(x)).

use std::sync::OnceLock;

use crate::tableau::{Definition, Tableau};

static DEFINITION: Definition = Definition {
    name: "midpoint",
    order: 2,
    a: &[&[], &[1.0 / 2.0]],
    b: &[0.0, 1.0],
    error: &[],
    lagged: Some((&[1.0 / 6.0, -1.0 / 3.0, 1.0 / 6.0], 2)), // to Simpson's rule
    dense: None,
};

/// The checked coefficients.
pub fn tableau() -> &'static Tableau {
    static TABLEAU: OnceLock<Tableau> = OnceLock::new();
    super::build(&TABLEAU, &DEFINITION)
}
