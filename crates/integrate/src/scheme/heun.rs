//! The explicit trapezoidal rule (Heun 1900): x₁ = x + ½h(X(x) + X(x + hX(x))).

use std::sync::OnceLock;

use crate::tableau::{Definition, Tableau};

static DEFINITION: Definition = Definition {
    name: "heun",
    order: 2,
    a: &[&[], &[1.0]],
    b: &[1.0 / 2.0, 1.0 / 2.0],
    error: &[],
    lagged: Some((&[0.0, 1.0 / 6.0, -1.0 / 6.0], 2)),
    dense: None,
};

/// The checked coefficients.
pub fn tableau() -> &'static Tableau {
    static TABLEAU: OnceLock<Tableau> = OnceLock::new();
    super::build(&TABLEAU, &DEFINITION)
}
