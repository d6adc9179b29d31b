//! Base schemes: their coefficients, one file each, and the explicit Runge–Kutta step they share.

pub mod explicit_rk;
pub mod map;

pub mod bs3;
pub mod dop853;
pub mod dopri5;
pub mod euler;
pub mod heun;
pub mod midpoint;
pub mod rk4;
pub mod tsit5;

use std::sync::OnceLock;

use crate::tableau::{Definition, Tableau};

/// Builds and checks a scheme's tableau on first use.
fn build(cell: &'static OnceLock<Tableau>, definition: &Definition) -> &'static Tableau {
    cell.get_or_init(|| match Tableau::new(definition) {
        Ok(tableau) => tableau,
        // Coefficients are constants of the program and a test builds every one of them.
        Err(error) => panic!("{error}"),
    })
}
