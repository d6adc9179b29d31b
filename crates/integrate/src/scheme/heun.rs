//! The explicit trapezoidal rule (Heun 1900):
//!
//! x₁ = x + h/2 (k₁ + k₂),  k₁ = X(t, x),  k₂ = X(t₁, x + h k₁).
//!
//! Its error is estimated by h/6 (k₂ − X(t₁, x₁)), whose last field is known when
//! the next step begins.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "heun",
    other_names: &["explicit-trapezoidal"],
    needs: Needs::Field,
    description: "explicit trapezoidal rule in two stages",
    citation: "Heun, Z. Math. Phys. 45 (1900) 23; Hairer, Norsett, Wanner, Solving ODEs I, II.1",
    file: include_str!("heun.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 2,
        a: &[&[], &[1.0]],
        b: &[1.0 / 2.0, 1.0 / 2.0],
        error: &[],
        lagged: Some((&[0.0, 1.0 / 6.0, -1.0 / 6.0], 2)),
        dense: None,
    })
    .expect("published coefficients")
});
