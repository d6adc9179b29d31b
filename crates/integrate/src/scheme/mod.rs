//! Base schemes, one file each, with their rows of the registry: coefficients of Runge–Kutta methods
//! and the step that these share, and steps of structure-preserving methods, written over a
//! [`PhaseSpace`].

pub mod explicit_rk;
mod facts;
pub mod map;
pub mod repairs;
pub mod slices;

pub mod collocation;
pub mod composition;
pub mod forces;
pub mod gauss;
pub(crate) mod gauss_collocation;
pub mod langevin;
mod newmark;
mod nonholonomic;
mod poisson_splitting;
mod radau;
pub mod rattle;
mod rigid_body;
pub mod splitting;
pub mod stiff_collocation;
pub mod stormer_verlet;
mod symplectic_euler;
mod taylor;
mod zhang_skeel;

mod bs3;
mod discrete_gradient;
mod dop853;
mod dopri5;
mod euler;
mod heun;
mod midpoint;
pub mod rk4;
mod tsit5;

pub use facts::{KeplerCoordinates, Needs, Scheme, SchemeFacts, Step};

use crate::phase_space::{PhaseSpace, Value};

/// Every base scheme of this version, in the order in which users read them.
pub static SCHEMES: &[&Scheme] = &[
    &euler::SCHEME,
    &midpoint::SCHEME,
    &heun::SCHEME,
    &rk4::SCHEME,
    &bs3::SCHEME,
    &dopri5::SCHEME,
    &tsit5::SCHEME,
    &dop853::SCHEME,
    &gauss_collocation::GAUSS8,
    &gauss_collocation::GAUSS16,
    &taylor::SCHEME,
    &radau::SCHEME,
    &symplectic_euler::A,
    &symplectic_euler::B,
    &stormer_verlet::A,
    &stormer_verlet::B,
    &gauss::MIDPOINT,
    &gauss::GAUSS2,
    &gauss::GAUSS4,
    &gauss::GAUSS6,
    &rattle::SHAKE,
    &rattle::RATTLE,
    &nonholonomic::LEAPFROG,
    &nonholonomic::GNI,
    &nonholonomic::DLA,
    &splitting::LIE_TROTTER,
    &splitting::ADJOINT,
    &splitting::STRANG,
    &splitting::STRANG_KDK,
    &splitting::KEPLER,
    &splitting::DEMOCRATIC_KEPLER,
    &rigid_body::ROTATION_SPLITTING,
    &rigid_body::CAYLEY_EULER,
    &rigid_body::CAYLEY_SYMMETRIC,
    &poisson_splitting::SCHEME,
    &discrete_gradient::SCHEME,
    &zhang_skeel::ZHANG_SKEEL,
    &zhang_skeel::SIMPLIFIED,
    &zhang_skeel::STIFF,
    &newmark::NEWMARK,
    &newmark::ONE_STEP,
    &newmark::PUSHFORWARD,
    &symplectic_euler::VARIATIONAL,
    &stormer_verlet::VELOCITY,
    &langevin::G_BAOAB,
];

/// A step of length h from x at time t, over a model's phase space: x₁.
pub type StepFn = fn(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value>;

/// A step that is made of an unconstrained map and slides along fibres.
pub type SlidingFn =
    fn(space: &mut dyn PhaseSpace, base: StepFn, t: Value, h: Value, x: &[Value]) -> Vec<Value>;
