//! The classical Runge–Kutta method (Kutta 1901; HNW II.1, table 1.2).

use std::sync::OnceLock;

use crate::tableau::{Definition, Tableau};

static DEFINITION: Definition = Definition {
    name: "rk4",
    order: 4,
    a: &[&[], &[1.0 / 2.0], &[0.0, 1.0 / 2.0], &[0.0, 0.0, 1.0]],
    b: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
    error: &[],
    lagged: Some((&[0.0, 0.0, 0.0, 1.0 / 6.0, -1.0 / 6.0], 3)),
    dense: None,
};

/// The checked coefficients.
pub fn tableau() -> &'static Tableau {
    static TABLEAU: OnceLock<Tableau> = OnceLock::new();
    super::build(&TABLEAU, &DEFINITION)
}
