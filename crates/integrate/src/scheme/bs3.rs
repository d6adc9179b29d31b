//! Bogacki and Shampine's pair of orders 3(2) (Appl. Math. Lett. 2 (1989) 321), FSAL, with cubic
//! Hermite dense output of order 3.

use std::sync::OnceLock;

use crate::tableau::{Definition, DenseDefinition, Tableau};

static DEFINITION: Definition = Definition {
    name: "bs3",
    order: 3,
    a: &[&[], &[1.0 / 2.0], &[0.0, 3.0 / 4.0], &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]],
    b: &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0],
    error: &[(&[-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0], 2)],
    lagged: None,
    dense: Some(DenseDefinition { order: 3, extra_a: &[], d: &[] }),
};

/// The checked coefficients.
pub fn tableau() -> &'static Tableau {
    static TABLEAU: OnceLock<Tableau> = OnceLock::new();
    super::build(&TABLEAU, &DEFINITION)
}
