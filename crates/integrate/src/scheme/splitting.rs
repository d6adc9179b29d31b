//! Splittings of H into two parts whose flows are known exactly: φ_M, the motion,
//! and φ_V, the kick. The first to act stands on the right:
//!
//! lie-trotter           φ_M(h) φ_V(h)
//! lie-trotter-adjoint   φ_V(h) φ_M(h)
//! strang                φ_M(h/2) φ_V(h) φ_M(h/2)
//! strang-kdk            φ_V(h/2) φ_M(h) φ_V(h/2)
//! kepler-splitting      φ_V(h/2) φ_M(h) φ_V(h/2), of which φ_M is Kepler's
//! democratic-kepler-splitting  the same in other coordinates
//!
//! The motions of Kepler are those of a hierarchy of bodies about each other, in
//! Jacobi coordinates, or about fixed centres. The kick is what remains: with
//! planets it is smaller by their mass. A step that begins and ends with a kick
//! computes the force once.
//!
//! Democratic heliocentric coordinates are the places of all bodies of a star from
//! it, with the momenta p_i in the frame of the centre of mass: no order of the
//! bodies matters. The star's recoil |Σ p_i|²/2m shifts all places alike. It goes
//! with the kick, half of it before and half after it, but after the first kick of
//! a step and before the last one. It commutes with forces between these bodies;
//! where there are others, three kicks stand for one within a step (yoshida4).
//!
//! A part that depends on the time is frozen during its flow, at the time that the
//! flows of the other part have reached.

use super::forces::{Side, pushed};
use super::{KeplerCoordinates, Needs, Scheme, SchemeFacts, Step};
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
        |space, t, h, x| plain(space, t, h, x, &[Kick(1.0), Motion(1.0)]),
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
        |space, t, h, x| plain(space, t, h, x, &[Motion(1.0), Kick(1.0)]),
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
        |space, t, h, x| plain(space, t, h, x, &[Motion(0.5), Kick(1.0), Motion(0.5)]),
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
    needs: Needs::KeplerFlows(KeplerCoordinates::Jacobi),
    description: "motions of Kepler, exactly, between kicks by the coupling: planets, satellites, binaries",
    citation: "Wisdom, Holman, Astron. J. 102 (1991) 1528; Kinoshita, Yoshida, Nakai, Celest. Mech. 50 (1991) 59",
    file: include_str!("splitting.rs"),
    step: Step::Map(kick_motion_kick, SECOND),
};

pub(super) static DEMOCRATIC_KEPLER: Scheme = Scheme {
    name: "democratic-kepler-splitting",
    other_names: &["democratic-heliocentric"],
    needs: Needs::KeplerFlows(KeplerCoordinates::Democratic),
    description: "motions of Kepler about one body, exactly, between kicks: in no order of the bodies",
    citation: "Duncan, Levison, Lee, Astron. J. 116 (1998) 2067",
    file: include_str!("splitting.rs"),
    step: Step::Map(kick_motion_kick, SECOND),
};

/// Facts of three flows.
const SECOND: SchemeFacts =
    SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true };

/// Flows that make a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Flows {
    /// The flows, in the order in which they act.
    pub step: Vec<Flow>,
    /// Symplectic corrector, which acts before the first step, and its inverse on the states that
    /// are results; empty without one.
    pub corrector: Vec<Flow>,
}

impl From<Vec<Flow>> for Flows {
    fn from(step: Vec<Flow>) -> Flows {
        Flows { step, corrector: Vec::new() }
    }
}

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

    /// Flow back.
    fn inverse(self) -> Flow {
        match self {
            Motion(part) => Motion(-part),
            Kick(part) => Kick(-part),
        }
    }
}

fn kick_motion_kick(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    plain(space, t, h, x, &[Kick(0.5), Motion(1.0), Kick(0.5)])
}

/// These flows one after the other.
fn plain(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    flows: &[Flow],
) -> Vec<Value> {
    steps(space, t, h, x, &flows.to_vec().into())
}

/// These flows one after the other. If the first and the last one are kicks, the force at the end of
/// a step is that at the start of the next. The state before the corrector's inverse is carried to
/// the next step, where it would be found again by the corrector, and so is one in other coordinates.
/// Forces that act beside the step act on that state.
pub fn steps(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    flows: &Flows,
) -> Vec<Value> {
    let Flows { step, corrector } = flows;
    let kicks = matches!((step.first(), step.last()), (Some(Kick(_)), Some(Kick(_))));
    let Start { mut y, mut force, nearness } = start(space, (t, h), x, kicks, corrector);
    let (half, end) = (space.scaled(0.5, h), space.sum(t, h));
    let keeps = space.splits() || !corrector.is_empty();
    if keeps {
        y = pushed(space, t, half, &y, Side::Before);
    }
    let last = along(space, (t, h, end), &mut y, step, &mut force);
    if keeps {
        y = pushed(space, end, half, &y, Side::After);
    }
    let reached = y.clone();
    let inverse: Vec<Flow> = corrector.iter().rev().map(|flow| flow.inverse()).collect();
    let after = space.sum(end, h);
    along(space, (end, h, after), &mut y, &inverse, &mut None);
    let x1 = space.joined(&y);
    let near = met(space, &reached);
    if let (Some(start), Some(end)) = (nearness, near) {
        space.hand_over(start, end);
    }
    let carried = known(keeps, if kicks { &last } else { &[] }, &reached, near);
    if !carried.is_empty() {
        space.carry(&carried);
    }
    x1
}

/// Parts of a kick between which a recoil that does not commute with it acts, w = 1/(2 − 2^(1/3)): the
/// flow of both is one of order 4 (GNI II.4 (4.4)), as compositions for small couplings need.
const TRIPLE_JUMP: [f64; 3] = [1.3512071919596578, -1.7024143839193155, 1.3512071919596578];

/// Move y along flows from the time t on; `end` is the time at the end of a step. Take the force of
/// the first kick if it is known, and return that of the last one.
fn along(
    space: &mut dyn PhaseSpace,
    (t, h, end): (Value, Value, Value),
    y: &mut Vec<Value>,
    flows: &[Flow],
    force: &mut Option<Vec<Value>>,
) -> Vec<Value> {
    let n = space.degrees();
    let (mut moved, mut kicked, mut last) = (0.0, 0.0, Vec::new());
    for (k, flow) in flows.iter().enumerate() {
        match *flow {
            Motion(part) => {
                let (at, tau) = (space.time(t, kicked, h), space.scaled(part, h));
                *y = space.flow(Part::Motion, at, tau, y);
                moved += part;
            }
            Kick(part) => {
                let (starts, ends) = (k == 0, k + 1 == flows.len());
                let at = if ends { end } else { space.time(t, moved, h) };
                // The force at either end is that of the state there, so that the next step has it.
                let before = if starts == ends { 0.5 } else { f64::from(ends) };
                let parts = match starts || ends || space.recoil_commutes() {
                    true => vec![part],
                    false => TRIPLE_JUMP.map(|w| w * part).to_vec(),
                };
                for part in parts {
                    *y = recoiled(space, at, before * part, h, y);
                    let tau = space.scaled(part, h);
                    last = force.take().unwrap_or_else(|| space.kick(at, y));
                    let p = space.moved(&y[n..], tau, &last);
                    y.splice(n.., p);
                    *y = recoiled(space, at, (1.0 - before) * part, h, y);
                }
                kicked += part;
            }
        }
    }
    last
}

/// The flow of the recoil for a part of the step.
fn recoiled(space: &mut dyn PhaseSpace, t: Value, part: f64, h: Value, y: &[Value]) -> Vec<Value> {
    if part == 0.0 {
        return y.to_vec();
    }
    let tau = space.scaled(part, h);
    space.flow(Part::Recoil, t, tau, y)
}

/// What a step begins with.
struct Start {
    /// State in the coordinates in which H is split, after the corrector.
    y: Vec<Value>,
    /// Force there, if it is known from the step before.
    force: Option<Vec<Value>>,
    /// Nearness of the bodies there, if they may meet.
    nearness: Option<Value>,
}

/// Nearness of the bodies, if they may meet.
fn met(space: &mut dyn PhaseSpace, y: &[Value]) -> Option<Value> {
    space.may_meet().then(|| space.nearness(y))
}

/// Start of a step. The state is not computed again from that of the model, so that the rounding of
/// this does not add up.
fn start(
    space: &mut dyn PhaseSpace,
    (t, h): (Value, Value),
    x: &[Value],
    kicks: bool,
    corrector: &[Flow],
) -> Start {
    let keeps = space.splits() || !corrector.is_empty();
    let forces = if kicks { space.degrees() } else { 0 };
    let mut like = x[..forces].to_vec();
    like.extend(if keeps { x } else { &[] });
    if like.is_empty() {
        return Start { y: x.to_vec(), force: None, nearness: None };
    }
    let known_len = like.len();
    like.extend(if space.may_meet() { &x[..1] } else { &[] });
    let mut force = space.carried(&like, &mut |space| {
        let mut y = if space.splits() { space.split(x) } else { x.to_vec() };
        let end = space.sum(t, h);
        along(space, (t, h, end), &mut y, corrector, &mut None);
        let force = if kicks { space.kick(t, &y) } else { Vec::new() };
        let near = met(space, &y);
        known(keeps, &force, &y, near)
    });
    let nearness = force.split_off(known_len).pop();
    let y = force.split_off(forces);
    Start { y: if keeps { y } else { x.to_vec() }, force: kicks.then_some(force), nearness }
}

/// What a step carries to the next one: the force, the state if it `keeps` that, and how near bodies
/// are that may meet.
fn known(keeps: bool, force: &[Value], y: &[Value], nearness: Option<Value>) -> Vec<Value> {
    [force, if keeps { y } else { &[] }, nearness.as_slice()].concat()
}
