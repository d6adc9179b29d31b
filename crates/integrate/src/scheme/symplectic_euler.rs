//! The symplectic Euler methods, for any Hamiltonian; explicit for a separable one,
//! H = T(p) + V(q). `symplectic-euler-a` kicks, then drifts with the new momentum:
//!
//! p₁ = p₀ − h H_q(p₁, q₀),  q₁ = q₀ + h H_p(p₁, q₀).
//!
//! `symplectic-euler-b`, the adjoint, drifts, then kicks at the new position:
//!
//! q₁ = q₀ + h H_p(p₀, q₁),  p₁ = p₀ − h H_q(p₀, q₁).
//!
//! `variational-euler`, the variational integrator of the discrete Lagrangian h
//! L(q₀, (q₁ − q₀)/h), is the first of them.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Equation, Equations, Guess, Monitored, PhaseSpace, Residual, Value};

pub(super) static A: Scheme = Scheme {
    name: "symplectic-euler-a",
    other_names: &["semi-implicit-euler", "euler-cromer"],
    needs: Needs::Hamiltonian,
    description: "kick, then drift with the new momentum; explicit for a separable Hamiltonian",
    citation: "Hairer, Lubich, Wanner, GNI, VI.3 (3.1)",
    file: include_str!("symplectic_euler.rs"),
    step: Step::Map(step_a, FACTS),
};

pub(super) static B: Scheme = Scheme {
    name: "symplectic-euler-b",
    other_names: &[],
    needs: Needs::Hamiltonian,
    description: "drift, then kick at the new position: the adjoint of symplectic-euler-a",
    citation: "Hairer, Lubich, Wanner, GNI, VI.3 (3.1)",
    file: include_str!("symplectic_euler.rs"),
    step: Step::Map(step_b, FACTS),
};

pub(super) static VARIATIONAL: Scheme = Scheme {
    name: "variational-euler",
    other_names: &[],
    needs: Needs::Hamiltonian,
    description: "the variational integrator of h L(q, (q_1 - q)/h), which is symplectic-euler-a",
    citation: "Marsden, West, Acta Numerica 10 (2001) 357; Hairer, Lubich, Wanner, GNI, VI.6.2",
    file: include_str!("symplectic_euler.rs"),
    step: Step::Map(step_a, FACTS),
};

/// Facts of both, explicit for a separable Hamiltonian.
const FACTS: SchemeFacts =
    SchemeFacts { order: 1, symmetric: false, symplectic: true, explicit: true };

/// Kick, then drift.
fn step_a(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (q0, p0) = x.split_at(space.degrees());
    let p1 = kicked(space, t, h, (q0, p0), StepEnd::New);
    let x1 = [q0, &p1].concat();
    let v = space.h_p(t, &x1);
    let q1 = space.moved(q0, h, &v);
    [q1, p1].concat()
}

/// Drift, then kick: the adjoint of [`step_a`].
fn step_b(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (q0, p0) = x.split_at(space.degrees());
    let t1 = space.sum(t, h);
    let q1 = drifted(space, t1, h, (q0, p0), StepEnd::New);
    let p1 = kicked(space, t1, h, (&q1, p0), StepEnd::Old);
    [q1, p1].concat()
}

/// End of the step at which the half that moves enters its own rate.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum StepEnd {
    /// Start of the step: explicit.
    Old,
    /// End of the step: an equation, unless H is separable.
    New,
}

/// p₁ = p₀ − h H_q(p, q) with p at the given end.
pub(super) fn kicked(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    (q, p0): (&[Value], &[Value]),
    end: StepEnd,
) -> Vec<Value> {
    let minus_h = space.scaled(-1.0, h);
    let kick = |space: &mut dyn PhaseSpace, p: &[Value]| {
        let force = space.h_q(t, &[q, p].concat());
        space.moved(p0, minus_h, &force)
    };
    match end {
        StepEnd::Old => kick(space, p0),
        StepEnd::New => implicit(space, q.len(), p0, &mut |space, p| kick(space, p)),
    }
}

/// q₁ = q₀ + h H_p(p, q) with q at the given end.
pub(super) fn drifted(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    (q0, p): (&[Value], &[Value]),
    end: StepEnd,
) -> Vec<Value> {
    let drift = |space: &mut dyn PhaseSpace, q: &[Value]| {
        let v = space.h_p(t, &[q, p].concat());
        space.moved(q0, h, &v)
    };
    match end {
        StepEnd::Old => drift(space, q0),
        StepEnd::New => implicit(space, 0, q0, &mut |space, q| drift(space, q)),
    }
}

/// Solution y of y = f(y) near y₀; its components are those of the state from number `first` on.
pub(super) fn implicit(
    space: &mut dyn PhaseSpace,
    first: usize,
    y0: &[Value],
    f: Residual,
) -> Vec<Value> {
    let rows: Vec<Equation> = (0..y0.len()).map(|i| Equation::Stage(first + i)).collect();
    let size = vec![space.size(y0); y0.len()];
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::At(y0),
        monitored: Monitored::Never,
        monotone: None,
    };
    space.solve(&equations, &mut |space, y| {
        let next = f(space, y);
        space.difference(y, &next)
    })
}
