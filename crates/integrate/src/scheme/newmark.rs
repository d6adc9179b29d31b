//! Newmark's methods with γ = ½ for H = ½ pᵀM⁻¹p + V(q, t), written in momenta and
//! forces F = −V_q: all of them are stable for every step on linear systems if β ≥
//! ¼. `newmark` solves
//!
//! q₁ = q₀ + h M⁻¹p₀ + h² M⁻¹((½ − β) F(q₀) + β F(q₁)),
//! p₁ = p₀ + h/2 (F(q₀) + F(q₁))
//!
//! by Newton's method. It is symplectic in other momenta and positions: those of
//! `pushforward-newmark`, which is velocity Verlet with the force F(y) at the point
//! y = q + βh²M⁻¹F(y). `newmark-one-step` takes one step of Newton's method from q₀
//! in place of the solution, and is symplectic in no variables.

use super::symplectic_euler::implicit;
use super::zhang_skeel::{Force, beta_h2, kick_drift_kick, shifted, velocity};
use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Monitored, PhaseSpace, Potential, Value};

pub(super) static NEWMARK: Scheme = Scheme {
    name: "newmark",
    other_names: &["newmark-beta"],
    needs: Needs::Natural,
    description: "Newmark's method with gamma = 1/2, solved by Newton's: symplectic in other variables",
    citation: "Newmark, J. Eng. Mech. Div. ASCE 85 (1959) 67; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80",
    file: include_str!("newmark.rs"),
    step: Step::Map(
        newmark,
        SchemeFacts { order: 2, symmetric: true, symplectic: false, explicit: false },
    ),
};

pub(super) static ONE_STEP: Scheme = Scheme {
    name: "newmark-one-step",
    other_names: &[],
    needs: Needs::Natural,
    description: "newmark with one step of Newton's method: for comparison",
    citation: "Newmark, J. Eng. Mech. Div. ASCE 85 (1959) 67; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80, section 4.1",
    file: include_str!("newmark.rs"),
    step: Step::Map(
        one_step,
        SchemeFacts { order: 2, symmetric: false, symplectic: false, explicit: false },
    ),
};

pub(super) static PUSHFORWARD: Scheme = Scheme {
    name: "pushforward-newmark",
    other_names: &[],
    needs: Needs::Natural,
    description: "Newmark's method in the variables in which it is symplectic",
    citation: "Skeel, Zhang, Schlick, SIAM J. Sci. Comput. 18 (1997) 203; Tao, Owhadi, IMA J. Numer. Anal. 36 (2016) 80, integrator 2.2",
    file: include_str!("newmark.rs"),
    step: Step::Map(
        pushforward_newmark,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: false },
    ),
};

/// Step whose equation for q₁ is solved by Newton's method.
fn newmark(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    trapezoid(space, t, h, x, &mut |space, t1, gradient| {
        let q0 = &x[..space.degrees()];
        let v = space.h_p(t, x);
        let bh2 = beta_h2(space, h);
        let square = space.product(h, h);
        let (rest, minus) = (space.scaled(-0.5, square), space.scaled(-1.0, bh2));
        let rest = space.sum(rest, bh2);
        let push = velocity(space, t, x, gradient);
        let free = space.moved(q0, h, &v);
        let known = space.moved(&free, rest, &push);
        implicit(space, 0, q0, &mut |space, q1| {
            let gradient = space.h_q(t1, &[q1, &x[q1.len()..]].concat());
            let push = velocity(space, t1, x, &gradient);
            space.moved(&known, minus, &push)
        })
    })
}

/// [`newmark`] with one step of Newton's method from q₀ in place of its solution.
fn one_step(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    trapezoid(space, t, h, x, &mut |space, _, gradient| {
        // (M + βh²V_qq(q₀)) (q₁ − q₀) = h p₀ − h²/2 V_q(q₀)
        let (q0, p0) = x.split_at(space.degrees());
        let minus_h = space.scaled(-1.0, h);
        let square = space.product(h, h);
        let half = space.scaled(0.5, square);
        let kicked = space.multiplied(half, gradient);
        let right = space.moved(&kicked, minus_h, p0);
        let bh2 = beta_h2(space, h);
        let moved = shifted(space, Potential::Whole, bh2, t, x, (&right, Monitored::Never));
        let (one, step) = (space.constant(1.0), velocity(space, t, x, &moved));
        space.moved(q0, one, &step)
    })
}

/// Position at the end, from the time there and V_q at the start.
type Position<'a> = &'a mut dyn FnMut(&mut dyn PhaseSpace, Value, &[Value]) -> Vec<Value>;

/// p₁ = p₀ − h/2 (V_q(q₀) + V_q(q₁)) with q₁ from `position`. The second gradient is the first of
/// the next step.
fn trapezoid(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
    position: Position,
) -> Vec<Value> {
    let p0 = &x[space.degrees()..];
    let (minus_half, t1) = (space.scaled(-0.5, h), space.sum(t, h));
    let before = space.carried(&x[..space.degrees()], &mut |space| space.h_q(t, x));
    let q1 = position(space, t1, &before);
    let after = space.h_q(t1, &[&q1, p0].concat());
    let p = space.moved(p0, minus_half, &before);
    let p1 = space.moved(&p, minus_half, &after);
    space.carry(&after);
    [q1, p1].concat()
}

/// Velocity Verlet with the force F(y) at the point y = q + βh²M⁻¹F(y), solved by Newton's method:
/// [`newmark`] in these y.
fn pushforward_newmark(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    kick_drift_kick(space, t, h, x, &mut |space, t, x| {
        let (q, p) = x.split_at(space.degrees());
        let bh2 = beta_h2(space, h);
        let minus = space.scaled(-1.0, bh2);
        let mut gradient = Vec::new();
        let place = implicit(space, 0, q, &mut |space, y| {
            gradient = space.h_q(t, &[y, p].concat());
            let push = velocity(space, t, x, &gradient);
            space.moved(q, minus, &push)
        });
        let minus_one = space.constant(-1.0);
        Force { force: space.multiplied(minus_one, &gradient), energy: None, place }
    })
}
