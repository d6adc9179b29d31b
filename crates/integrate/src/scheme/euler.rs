//! Explicit Euler, the simplest of all maps:
//!
//! x₁ = x + h X(t, x).
//!
//! Its error is estimated by the distance to the trapezoidal rule, h/2 (X(t, x) −
//! X(t₁, x₁)), whose second field is known when the next step begins.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "euler",
    other_names: &["explicit-euler", "forward-euler", "rk1"],
    needs: Needs::Field,
    description: "explicit Euler: the simplest map; with feedback it already keeps what the field attracts to",
    citation: "Euler, Institutionum calculi integralis I (1768), §650",
    file: include_str!("euler.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 1,
        a: &[&[]],
        b: &[1.0],
        error: &[],
        lagged: Some((&[-1.0 / 2.0, 1.0 / 2.0], 1)), // to the trapezoidal rule
        dense: None,
    })
    .expect("published coefficients")
});
