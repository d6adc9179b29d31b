//! Newmark's methods with γ = ½ for H = ½ pᵀM⁻¹p + V(q, t) (Tao, Owhadi, IMA J. Numer. Anal. 36
//! (2016) 80, integrators 2.1 and 2.2), written in momenta and forces F = −V_q: all of them are
//! stable for every step on linear systems if β ≥ ¼.

use super::symplectic_euler::implicit;
use super::zhang_skeel::{Force, beta_h2, kick_drift_kick, shifted, velocity};
use crate::phase_space::{Monitored, PhaseSpace, Potential, Value};

/// q₁ = q₀ + h M⁻¹p₀ + h² M⁻¹((½ − β) F₀ + β F(q₁)),  p₁ = p₀ + h/2 (F₀ + F(q₁)), solved by
/// Newton's method. It is symplectic in other momenta and positions: those of
/// [`pushforward_newmark`].
pub fn newmark(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
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

/// [`newmark`] with one step of Newton's method from q₀ in place of its solution: no longer
/// symplectic in any variables.
pub fn one_step(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
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
/// symplectic. It is [`newmark`] in these y.
pub fn pushforward_newmark(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
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
