//! Splittings of H into two parts whose flows are known exactly (HLW II.5, VII.4): φ_M, the motion,
//! and φ_V, the kick. A part that depends on the time is frozen during its flow, at a time that
//! keeps a splitting symmetric, or the adjoint of the other.

use crate::phase_space::{Part, PhaseSpace, Value};

/// Lie–Trotter: φ_M(h) ∘ φ_V(h), the kick first.
pub fn lie_trotter(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let x = space.flow(Part::Kick, t, h, x);
    space.flow(Part::Motion, t, h, &x)
}

/// Adjoint of [`lie_trotter`]: φ_V(h) ∘ φ_M(h), the motion first.
pub fn lie_trotter_adjoint(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    let t1 = space.sum(t, h);
    let x = space.flow(Part::Motion, t1, h, x);
    space.flow(Part::Kick, t1, h, &x)
}

/// Strang: φ_M(h/2) ∘ φ_V(h) ∘ φ_M(h/2).
pub fn strang(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let x = space.flow(Part::Motion, t, half, x);
    let x = space.flow(Part::Kick, middle, h, &x);
    space.flow(Part::Motion, t1, half, &x)
}

/// Strang with the kicks outside: φ_V(h/2) ∘ φ_M(h) ∘ φ_V(h/2).
pub fn strang_kdk(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let x = space.flow(Part::Kick, t, half, x);
    let x = space.flow(Part::Motion, middle, h, &x);
    space.flow(Part::Kick, t1, half, &x)
}
