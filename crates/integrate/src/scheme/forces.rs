//! Forces beside a step: those that a scheme cannot take, for half a step before
//! and after it, at fixed positions. Friction −γ p with one γ takes its exact flow
//! p ← e^(−γτ) p, by which the symplectic form contracts at exactly this rate:
//! around a symplectic step it makes a conformally symplectic one (McLachlan,
//! Quispel, J. Phys. A 39 (2006) 5251; around RATTLE: França, Barp, Girolami,
//! Jordan, J. Stat. Mech. (2021) 043105). Other forces Q(q, p, t) take the midpoint
//! rule p₁ = p₀ + τ Q(q, ½(p₀ + p₁), t), which is symmetric.

use super::symplectic_euler::implicit;
use crate::phase_space::{Asked, Function, PhaseSpace, Value};

/// Forces act for half a step, before it or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the step.
    Before,
    /// After the step: what acted first there acts last here.
    After,
}

/// The state x after the forces beside a step have acted for the time `tau`. It is in the coordinates
/// of [`PhaseSpace::split`] if these are not the model's: they are linear, so that momenta and forces
/// transform alike, and one rate of friction stays one.
pub fn pushed(
    space: &mut dyn PhaseSpace,
    t: Value,
    tau: Value,
    x: &[Value],
    side: Side,
) -> Vec<Value> {
    match side {
        Side::Before => {
            let dragged = dragged(space, t, tau, x);
            damped(space, t, tau, &dragged)
        }
        Side::After => {
            let damped = damped(space, t, tau, x);
            dragged(space, t, tau, &damped)
        }
    }
}

/// The flow of friction that is one for all momenta.
fn damped(space: &mut dyn PhaseSpace, t: Value, tau: Value, x: &[Value]) -> Vec<Value> {
    let [rate] = asked(space, Asked::Friction, t, x)[..] else { return x.to_vec() };
    let (q, p) = x.split_at(space.degrees());
    let (time, minus) = (space.product(rate, tau), space.constant(-1.0));
    let exponent = space.product(minus, time);
    let factor = space.function(Function::Exponential, exponent);
    [q, &space.multiplied(factor, p)].concat()
}

/// The midpoint rule for forces that act apart.
fn dragged(space: &mut dyn PhaseSpace, t: Value, tau: Value, x: &[Value]) -> Vec<Value> {
    if asked(space, Asked::Force, t, x).is_empty() {
        return x.to_vec();
    }
    let n = space.degrees();
    let (q, p0) = x.split_at(n);
    let half = space.constant(0.5);
    let p1 = implicit(space, n, p0, &mut |space, p1| {
        let both = space.plus(p0, p1);
        let middle = space.multiplied(half, &both);
        let mut force = asked(space, Asked::Force, t, &[q, &middle].concat());
        if space.splits() {
            force = space.split(&[q, &force].concat()).split_off(n);
        }
        space.moved(p0, tau, &force)
    });
    [q, &p1].concat()
}

/// A function of the model at the state x of a step.
fn asked(space: &mut dyn PhaseSpace, which: Asked, t: Value, x: &[Value]) -> Vec<Value> {
    let x = if space.splits() { space.joined(x) } else { x.to_vec() };
    space.ask(which, t, &x)
}
