//! Splittings of H into two parts whose flows are known exactly: φ_M, the motion,
//! and φ_V, the kick. The first to act stands on the right:
//!
//! lie-trotter           φ_M(h) φ_V(h)
//! lie-trotter-adjoint   φ_V(h) φ_M(h)
//! strang                φ_M(h/2) φ_V(h) φ_M(h/2)
//! strang-kdk            φ_V(h/2) φ_M(h) φ_V(h/2)
//! kepler-splitting      φ_V(h/2) φ_M(h) φ_V(h/2), of which φ_M is Kepler's
//!
//! The motions of Kepler are those of a hierarchy of bodies about each other, in
//! Jacobi coordinates, or about fixed centres. The kick is what remains: with
//! planets it is smaller by their mass. A step that begins and ends with a kick
//! computes the force once.
//!
//! A part that depends on the time is frozen during its flow, at the time that the
//! flows of the other part have reached.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Part, PhaseSpace, Value};
use Flow::{Kick, Motion};

pub(super) static LIE_TROTTER: Scheme = Scheme {
    name: "lie-trotter",
    other_names: &[],
    needs: Needs::Flows,
    description: "the exact flows of two parts of H, the kick first",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.2), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(
        |space, t, h, x| steps(space, t, h, x, &[Kick(1.0), Motion(1.0)]),
        SchemeFacts { order: 1, symmetric: false, symplectic: true, explicit: true },
    ),
};

pub(super) static ADJOINT: Scheme = Scheme {
    name: "lie-trotter-adjoint",
    other_names: &[],
    needs: Needs::Flows,
    description: "the exact flows of two parts of H, the motion first",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.2), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(
        |space, t, h, x| steps(space, t, h, x, &[Motion(1.0), Kick(1.0)]),
        SchemeFacts { order: 1, symmetric: false, symplectic: true, explicit: true },
    ),
};

pub(super) static STRANG: Scheme = Scheme {
    name: "strang",
    other_names: &[],
    needs: Needs::Flows,
    description: "exact flows: half the motion, the kick, half the motion",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.3), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(
        |space, t, h, x| steps(space, t, h, x, &[Motion(0.5), Kick(1.0), Motion(0.5)]),
        SECOND,
    ),
};

pub(super) static STRANG_KDK: Scheme = Scheme {
    name: "strang-kdk",
    other_names: &[],
    needs: Needs::Flows,
    description: "exact flows: half the kick, the motion, half the kick",
    citation: "Hairer, Lubich, Wanner, GNI, II.5 (5.3), VII.4",
    file: include_str!("splitting.rs"),
    step: Step::Map(kick_motion_kick, SECOND),
};

pub(super) static KEPLER: Scheme = Scheme {
    name: "kepler-splitting",
    other_names: &["whfast", "wisdom-holman", "mixed-variable-symplectic", "mvs"],
    needs: Needs::KeplerFlows,
    description: "motions of Kepler, exactly, between kicks by the coupling: planets, satellites, binaries",
    citation: "Wisdom, Holman, Astron. J. 102 (1991) 1528; Kinoshita, Yoshida, Nakai, Celest. Mech. 50 (1991) 59",
    file: include_str!("splitting.rs"),
    step: Step::Map(kick_motion_kick, SECOND),
};

/// Facts of three flows.
const SECOND: SchemeFacts =
    SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true };

/// Flow of a part of H for a part of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flow {
    /// Flow of the motion.
    Motion(f64),
    /// Flow of the kick.
    Kick(f64),
}

impl Flow {
    /// Part of the step.
    pub fn part(self) -> f64 {
        match self {
            Motion(part) | Kick(part) => part,
        }
    }
}

fn kick_motion_kick(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    steps(space, t, h, x, &[Kick(0.5), Motion(1.0), Kick(0.5)])
}

/// These flows one after the other. If the first and the last one are kicks, the force at the end of
/// a step is that at the start of the next.
pub fn steps(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    flows: &[Flow],
) -> Vec<Value> {
    let n = space.degrees();
    let kicks = matches!((flows.first(), flows.last()), (Some(Kick(_)), Some(Kick(_))));
    let (mut y, mut force) = start(space, t, x, kicks);
    let (mut moved, mut kicked, mut last) = (0.0, 0.0, Vec::new());
    for (k, flow) in flows.iter().enumerate() {
        match *flow {
            Motion(part) => {
                let (at, tau) = (space.time(t, kicked, h), space.scaled(part, h));
                y = space.flow(Part::Motion, at, tau, &y);
                moved += part;
            }
            Kick(part) => {
                let (end, tau) = (k + 1 == flows.len(), space.scaled(part, h));
                let at = if end { space.sum(t, h) } else { space.time(t, moved, h) };
                last = force.take().unwrap_or_else(|| space.kick(at, &y));
                let p = space.moved(&y[n..], tau, &last);
                y.splice(n.., p);
                kicked += part;
            }
        }
    }
    let carried = known(space.splits(), if kicks { &last } else { &[] }, &y);
    if !carried.is_empty() {
        space.carry(&carried);
    }
    space.joined(&y)
}

/// State at the start of a step, in the coordinates in which H is split, and the force there if it is
/// known from the step before. These coordinates are not computed again from those of the model, so
/// that the rounding of this does not add up.
fn start(
    space: &mut dyn PhaseSpace,
    t: Value,
    x: &[Value],
    kicks: bool,
) -> (Vec<Value>, Option<Vec<Value>>) {
    let (splits, forces) = (space.splits(), if kicks { space.degrees() } else { 0 });
    let mut like = x[..forces].to_vec();
    like.extend(if splits { x } else { &[] });
    if like.is_empty() {
        return (x.to_vec(), None);
    }
    let mut force = space.carried(&like, &mut |space| {
        let y = if splits { space.split(x) } else { x.to_vec() };
        let force = if kicks { space.kick(t, &y) } else { Vec::new() };
        known(splits, &force, &y)
    });
    let y = force.split_off(forces);
    (if splits { y } else { x.to_vec() }, kicks.then_some(force))
}

/// What a step carries to the next one: the force, and the state if H is split in other coordinates.
fn known(splits: bool, force: &[Value], y: &[Value]) -> Vec<Value> {
    [force, if splits { y } else { &[] }].concat()
}
