//! The classical Runge–Kutta method (Kutta 1901):
//!
//! k₁ = X(t, x),                  k₂ = X(t + h/2, x + h/2 k₁),
//! k₃ = X(t + h/2, x + h/2 k₂),   k₄ = X(t₁, x + h k₃),
//! x₁ = x + h/6 (k₁ + 2k₂ + 2k₃ + k₄).
//!
//! Its error is estimated by h/6 (k₄ − X(t₁, x₁)), whose last field is known when
//! the next step begins.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, Tableau};

/// Row of the registry.
pub static SCHEME: Scheme = Scheme {
    name: "rk4",
    other_names: &["runge-kutta", "runge-kutta-4", "classical-runge-kutta"],
    needs: Needs::Field,
    description: "the classical Runge-Kutta method in four stages",
    citation: "Kutta, Z. Math. Phys. 46 (1901) 435; Hairer, Norsett, Wanner, Solving ODEs I, II.1 table 1.2",
    file: include_str!("rk4.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 4,
        a: &[&[], &[1.0 / 2.0], &[0.0, 1.0 / 2.0], &[0.0, 0.0, 1.0]],
        b: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
        error: &[],
        lagged: Some((&[0.0, 0.0, 0.0, 1.0 / 6.0, -1.0 / 6.0], 3)),
        dense: None,
    })
    .expect("published coefficients")
});
