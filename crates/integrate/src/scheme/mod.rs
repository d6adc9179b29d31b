//! Base schemes, one file each: coefficients of explicit Runge–Kutta methods and the step they
//! share, and steps of structure-preserving methods, written over a [`PhaseSpace`].

pub mod explicit_rk;
pub mod map;
pub mod repairs;

pub mod collocation;
pub mod composition;
pub mod gauss;
pub mod langevin;
pub mod newmark;
pub mod rattle;
pub mod rigid_body;
pub mod splitting;
pub mod stormer_verlet;
pub mod symplectic_euler;
pub mod zhang_skeel;

pub mod bs3;
pub mod dop853;
pub mod dopri5;
pub mod euler;
pub mod heun;
pub mod midpoint;
pub mod rk4;
pub mod slices;
pub mod tsit5;

use std::sync::OnceLock;

use crate::phase_space::{PhaseSpace, Value};
use crate::tableau::{Definition, Tableau};

/// A step of length h from x at time t, over a model's phase space: x₁.
pub type StepFn = fn(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value>;

/// A step that is made of an unconstrained map and slides along fibres.
pub type SlidingFn =
    fn(space: &mut dyn PhaseSpace, base: StepFn, t: Value, h: Value, x: &[Value]) -> Vec<Value>;

/// Build and check a scheme's tableau on first use.
fn build(cell: &'static OnceLock<Tableau>, definition: &Definition) -> &'static Tableau {
    cell.get_or_init(|| match Tableau::new(definition) {
        Ok(tableau) => tableau,
        // Coefficients are constants of the program, and a test builds all of them.
        Err(error) => panic!("{error}"),
    })
}
