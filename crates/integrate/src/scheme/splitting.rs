//! Splittings of H into two parts whose flows are known exactly: φ_M, the motion,
//! and φ_V, the kick. The first to act stands on the right:
//!
//! lie-trotter           φ_M(h) φ_V(h)
//! lie-trotter-adjoint   φ_V(h) φ_M(h)
//! strang                φ_M(h/2) φ_V(h) φ_M(h/2)
//! strang-kdk            φ_V(h/2) φ_M(h) φ_V(h/2)
//!
//! A part that depends on the time is frozen during its flow, at a time that keeps
//! a splitting symmetric, or the adjoint of the other.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Part, PhaseSpace, Value};

pub(super) static LIE_TROTTER: Scheme = Scheme {
    name: "lie-trotter",
    other_names: &[],
    needs: Needs::Flows,
    description: "the exact flows of two parts of H, the kick first",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.2), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(lie_trotter, FIRST),
};

pub(super) static ADJOINT: Scheme = Scheme {
    name: "lie-trotter-adjoint",
    other_names: &[],
    needs: Needs::Flows,
    description: "the exact flows of two parts of H, the motion first",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.2), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(lie_trotter_adjoint, FIRST),
};

pub(super) static STRANG: Scheme = Scheme {
    name: "strang",
    other_names: &[],
    needs: Needs::Flows,
    description: "exact flows: half the motion, the kick, half the motion",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.3), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(strang, SECOND),
};

pub(super) static STRANG_KDK: Scheme = Scheme {
    name: "strang-kdk",
    other_names: &[],
    needs: Needs::Flows,
    description: "exact flows: half the kick, the motion, half the kick",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.3), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(strang_kdk, SECOND),
};

/// Facts of two flows.
const FIRST: SchemeFacts =
    SchemeFacts { order: 1, symmetric: false, symplectic: true, explicit: true };

/// Facts of three flows.
const SECOND: SchemeFacts =
    SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true };

/// The kick, then the motion.
fn lie_trotter(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let x = space.flow(Part::Kick, t, h, x);
    space.flow(Part::Motion, t, h, &x)
}

/// The motion, then the kick: the adjoint of [`lie_trotter`].
fn lie_trotter_adjoint(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let t1 = space.sum(t, h);
    let x = space.flow(Part::Motion, t1, h, x);
    space.flow(Part::Kick, t1, h, &x)
}

/// Half the motion, the kick, half the motion.
fn strang(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let x = space.flow(Part::Motion, t, half, x);
    let x = space.flow(Part::Kick, middle, h, &x);
    space.flow(Part::Motion, t1, half, &x)
}

/// Half the kick, the motion, half the kick.
fn strang_kdk(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let x = space.flow(Part::Kick, t, half, x);
    let x = space.flow(Part::Motion, middle, h, &x);
    space.flow(Part::Kick, t1, half, &x)
}
