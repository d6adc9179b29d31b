//! The linearly implicit methods of Zhang and Skeel for H = ½ pᵀM⁻¹p + V(q, t),
//! written in momenta and forces, so that M is never inverted.
//!
//! A step is that of velocity Verlet, kick, drift, kick, with a force that is
//! bounded where V is stiff:
//!
//! (M + βh²V_qq(q)) a = −V_q(q),   F = M a − ½β²h⁴ a·V_qqq(q)·a.
//!
//! F is exactly the force of V_eff = V − ½βh² V_qᵀ(M + βh²V_qq)⁻¹V_q, so that
//! `zhang-skeel` is symplectic and symmetric. `zhang-skeel-simplified` takes F = M
//! a: it is symplectic up to O(h⁵), and exactly so if the eigenvectors of M⁻¹V_qq
//! are constant. `zhang-skeel-stiff` is the simplified method with the second
//! derivatives of the stiff part of V alone in the matrix.
//!
//! The unknowns are φ = M a, in φ + βh²V_qq M⁻¹φ = −V_q.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{
    Equation, Equations, Guess, Monitored, Parameter, PhaseSpace, Potential, Value,
};

pub(super) static ZHANG_SKEEL: Scheme = Scheme {
    name: "zhang-skeel",
    other_names: &[],
    needs: Needs::Natural,
    description: "velocity Verlet in an effective potential: long steps in stiff ones, one linear solve each",
    citation: "Zhang, Skeel, Appl. Numer. Math. 25 (1997) 297; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80, integrator 1.1",
    file: include_str!("zhang_skeel.rs"),
    step: Step::Map(
        step,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: false },
    ),
};

pub(super) static SIMPLIFIED: Scheme = Scheme {
    name: "zhang-skeel-simplified",
    other_names: &[],
    needs: Needs::Natural,
    description: "zhang-skeel without third derivatives: symplectic up to O(h^5)",
    citation: "Zhang, Skeel, Appl. Numer. Math. 25 (1997) 297; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80, integrator 2.3",
    file: include_str!("zhang_skeel.rs"),
    step: Step::Map(
        step_simplified,
        SchemeFacts { order: 2, symmetric: true, symplectic: false, explicit: false },
    ),
};

pub(super) static STIFF: Scheme = Scheme {
    name: "zhang-skeel-stiff",
    other_names: &[],
    needs: Needs::Stiff,
    description: "zhang-skeel-simplified with the second derivatives of the stiff part alone",
    citation: "Zhang, Skeel, Appl. Numer. Math. 25 (1997) 297; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80, integrator 2.6",
    file: include_str!("zhang_skeel.rs"),
    step: Step::Map(
        step_stiff,
        SchemeFacts { order: 2, symmetric: true, symplectic: false, explicit: false },
    ),
};

/// Step with the term of third derivatives.
fn step(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    kick_drift_kick(space, t, h, x, &mut |space, t, x| {
        let linearised = Linearised::at(space, Potential::Whole, t, h, x);
        let bend = space.third_times(t, x, &linearised.acceleration);
        let (bh2, minus_half) = (beta_h2(space, h), space.constant(-0.5));
        let square = space.product(bh2, bh2);
        let factor = space.product(minus_half, square);
        let force = space.moved(&linearised.force, factor, &bend);
        Force { force, ..linearised.simplified(space, h, x) }
    })
}

/// Step without the term of third derivatives, F = M a.
fn step_simplified(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    linearised(space, Potential::Whole, t, h, x)
}

/// Simplified step with the second derivatives of the stiff part alone in its matrix.
fn step_stiff(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    linearised(space, Potential::Stiff, t, h, x)
}

fn linearised(
    space: &mut dyn PhaseSpace,
    part: Potential,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    kick_drift_kick(space, t, h, x, &mut |space, t, x| {
        Linearised::at(space, part, t, h, x).simplified(space, h, x)
    })
}

/// βh²
pub(super) fn beta_h2(space: &mut dyn PhaseSpace, h: Value) -> Value {
    let (beta, square) = (space.parameter(Parameter::Beta), space.product(h, h));
    space.product(beta, square)
}

/// The force of a step at (t, x).
pub(super) struct Force {
    pub force: Vec<Value>,
    /// V_eff − V there, if that is to be monitored.
    pub energy: Option<Value>,
    /// Position at which V has this force, up to small terms: q + βh²a.
    pub place: Vec<Value>,
}

pub(super) type Forces<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace, Value, &[Value]) -> Force;

/// p½ = p₀ + h/2 F(q₀),  q₁ = q₀ + h M⁻¹p½,  p₁ = p½ + h/2 F(q₁). The second force is the first of
/// the next step.
pub(super) fn kick_drift_kick(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    forces: Forces,
) -> Vec<Value> {
    let n = space.degrees();
    let (q0, p0) = x.split_at(n);
    let half = space.scaled(0.5, h);
    // The energy is one number.
    let like = [q0, &[h]].concat();
    let before = space.carried(&like, &mut |space| {
        let found = forces(space, t, x);
        space.force_at(&found.place);
        known_there(space, t, x, found)
    });
    let p = space.moved(p0, half, &before[..n]);
    let v = space.h_p(t, &[q0, &p].concat());
    let q1 = space.moved(q0, h, &v);
    let t1 = space.sum(t, h);
    // The force does not depend on p.
    let after = forces(space, t1, &[&q1, &p[..]].concat());
    let p1 = space.moved(&p, half, &after.force);
    let x1 = [q1, p1].concat();
    let known = known_there(space, t1, &x1, after);
    space.carry(&known);
    if let Some(&energy) = known.get(n) {
        space.monitor(energy);
    }
    x1
}

/// The force, and H + V_eff − V if known: ½ pᵀM⁻¹p + V_eff, the energy that a step conserves.
fn known_there(space: &mut dyn PhaseSpace, t: Value, x: &[Value], found: Force) -> Vec<Value> {
    let mut known = found.force;
    if let Some(correction) = found.energy {
        let energy = space.energy(t, x);
        known.push(space.sum(energy, correction));
    }
    known
}

/// The solution of (M + βh²V_qq) a = −V_q.
struct Linearised {
    /// a
    acceleration: Vec<Value>,
    /// M a
    force: Vec<Value>,
    /// V_eff − V = ½βh² V_q·a.
    energy: Value,
}

impl Linearised {
    fn at(
        space: &mut dyn PhaseSpace,
        part: Potential,
        t: Value,
        h: Value,
        x: &[Value],
    ) -> Linearised {
        let bh2 = beta_h2(space, h);
        let gradient = space.h_q(t, x);
        let force = shifted(space, part, bh2, t, x, (&gradient, Monitored::Definite));
        let acceleration = velocity(space, t, x, &force);
        let work = space.dot(&gradient, &acceleration);
        let half = space.scaled(0.5, bh2);
        let energy = space.product(half, work);
        Linearised { acceleration, force, energy }
    }

    /// M a as the force of a step of the length h.
    fn simplified(self, space: &mut dyn PhaseSpace, h: Value, x: &[Value]) -> Force {
        let bh2 = beta_h2(space, h);
        let place = space.moved(&x[..space.degrees()], bh2, &self.acceleration);
        Force { force: self.force, energy: Some(self.energy), place }
    }
}

/// M⁻¹φ
pub(super) fn velocity(
    space: &mut dyn PhaseSpace,
    t: Value,
    x: &[Value],
    phi: &[Value],
) -> Vec<Value> {
    let q = &x[..space.degrees()];
    space.h_p(t, &[q, phi].concat())
}

/// Solution φ of φ + βh²V_qq M⁻¹φ = −r, linear equations with the second derivatives of a part of V
/// at (t, x), which are monitored as `monitored` says.
pub(super) fn shifted(
    space: &mut dyn PhaseSpace,
    part: Potential,
    bh2: Value,
    t: Value,
    x: &[Value],
    (r, monitored): (&[Value], Monitored),
) -> Vec<Value> {
    let n = space.degrees();
    let rows: Vec<Equation> = (n..2 * n).map(Equation::Stage).collect();
    let (size, zero) = (vec![space.size(r); r.len()], space.constant(0.0));
    let guess = vec![zero; n];
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::At(&guess),
        monitored,
        monotone: None,
    };
    space.solve(&equations, &mut |space, phi| {
        let v = velocity(space, t, x, phi);
        let bent = space.hessian_times(part, t, x, &v);
        let sum: Vec<Value> = phi.iter().zip(r).map(|(&phi, &r)| space.sum(phi, r)).collect();
        space.moved(&sum, bh2, &bent)
    })
}
