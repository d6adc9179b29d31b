//! Bogacki and Shampine's pair of orders 3 and 2. The error estimate takes the
//! field at the end of the step, which is the first stage of the next one (first
//! same as last, FSAL). States within a step are those of the cubic with the field
//! at both ends, of order 3.

use std::sync::LazyLock;

use super::{Needs, Scheme, Step};
use crate::tableau::{Definition, DenseDefinition, Tableau};

pub(super) static SCHEME: Scheme = Scheme {
    name: "bs3",
    other_names: &["RK23", "ode23", "bs32", "bogacki-shampine"],
    needs: Needs::Field,
    description: "Bogacki-Shampine 3(2): adaptive, for loose tolerances",
    citation: "Bogacki, Shampine, Appl. Math. Lett. 2 (1989) 321",
    file: include_str!("bs3.rs"),
    step: Step::RungeKutta(&TABLEAU),
};

static TABLEAU: LazyLock<Tableau> = LazyLock::new(|| {
    Tableau::tested(&Definition {
        order: 3,
        a: &[&[], &[1.0 / 2.0], &[0.0, 3.0 / 4.0], &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]],
        b: &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0],
        error: &[(&[-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0], 2)],
        lagged: None,
        dense: Some(DenseDefinition { order: 3, extra_a: &[], d: &[] }),
    })
    .expect("published coefficients")
});
