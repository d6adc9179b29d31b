//! The explicit midpoint rule (Runge 1895):
//!
//! x₁ = x + h X(t + h/2, x + h/2 X(t, x)).
//!
//! Its error is estimated by the distance to Simpson's rule, h/6 (X(t, x) − 2
//! X(midpoint) + X(t₁, x₁)), whose last field is known when the next step begins.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "midpoint",
    other_names: &["explicit-midpoint"],
    needs: Needs::Field,
    description: "explicit midpoint rule in two stages",
    citation: "Runge, Math. Ann. 46 (1895) 167; Hairer, Norsett, Wanner, Solving ODEs I, II.1 (1.4)",
    file: include_str!("midpoint.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 2,
        a: &[&[], &[1.0 / 2.0]],
        b: &[0.0, 1.0],
        error: &[],
        lagged: Some((&[1.0 / 6.0, -1.0 / 3.0, 1.0 / 6.0], 2)), // to Simpson's rule
        dense: None,
    })
    .expect("published coefficients")
});
