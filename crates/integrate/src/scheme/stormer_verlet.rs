//! The Störmer–Verlet methods, for any Hamiltonian; explicit for a separable one, H
//! = T(p) + V(q). Both are symmetric and symplectic of order 2. `stormer-verlet-a`,
//! also named `velocity-verlet`: kick, drift, kick,
//!
//! p½ = p₀ − h/2 H_q(p½, q₀),
//! q₁ = q₀ + h/2 (H_p(p½, q₀) + H_p(p½, q₁)),
//! p₁ = p½ − h/2 H_q(p½, q₁).
//!
//! `stormer-verlet-b`: drift, kick, drift,
//!
//! q½ = q₀ + h/2 H_p(p₀, q½),
//! p₁ = p₀ − h/2 (H_q(p₀, q½) + H_q(p₁, q½)),
//! q₁ = q½ + h/2 H_p(p₁, q½).

use super::symplectic_euler::{StepEnd, drifted, implicit, kicked};
use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{PhaseSpace, Value};

pub(super) static A: Scheme = Scheme {
    name: "stormer-verlet-a",
    other_names: &["verlet", "leapfrog", "stormer-verlet", "kick-drift-kick", "kdk"],
    needs: Needs::Hamiltonian,
    description: "kick, drift, kick: the workhorse for long runs without constraints",
    citation: "Hairer, Lubich, Wanner, GNI, VI.3 (3.4)",
    file: include_str!("stormer_verlet.rs"),
    step: Step::Map(step_a, FACTS),
};

pub(super) static B: Scheme = Scheme {
    name: "stormer-verlet-b",
    other_names: &["position-verlet", "drift-kick-drift", "dkd"],
    needs: Needs::Hamiltonian,
    description: "drift, kick, drift",
    citation: "Hairer, Lubich, Wanner, GNI, VI.3 (3.5)",
    file: include_str!("stormer_verlet.rs"),
    step: Step::Map(step_b, FACTS),
};

pub(super) static VELOCITY: Scheme = Scheme {
    name: "velocity-verlet",
    other_names: &[],
    needs: Needs::Hamiltonian,
    description: "another name of stormer-verlet-a",
    citation: "Verlet, Phys. Rev. 159 (1967) 98; Swope, Andersen, Berens, Wilson, J. Chem. Phys. 76 (1982) 637",
    file: include_str!("stormer_verlet.rs"),
    step: Step::Map(step_a, FACTS),
};

/// Facts of both, explicit for a separable Hamiltonian.
const FACTS: SchemeFacts =
    SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true };

/// Kick, drift, kick.
pub fn step_a(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (q0, p0) = x.split_at(space.degrees());
    let (half, t1) = (space.scaled(0.5, h), space.sum(t, h));
    let p = kicked(space, t, half, (q0, p0), StepEnd::New);
    let v0 = space.h_p(t, &[q0, &p].concat());
    let q1 = implicit(space, 0, q0, &mut |space, q1| {
        let v1 = space.h_p(t1, &[q1, &p].concat());
        trapezoid(space, q0, half, (&v0, &v1))
    });
    let p1 = kicked(space, t1, half, (&q1, &p), StepEnd::Old);
    [q1, p1].concat()
}

/// Drift, kick, drift.
fn step_b(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let n = space.degrees();
    let (q0, p0) = x.split_at(n);
    let (half, middle) = (space.scaled(0.5, h), space.time(t, 0.5, h));
    let minus_half = space.scaled(-1.0, half);
    let q = drifted(space, middle, half, (q0, p0), StepEnd::New);
    let f0 = space.h_q(middle, &[&q, p0].concat());
    let p1 = implicit(space, n, p0, &mut |space, p1| {
        let f1 = space.h_q(middle, &[&q, p1].concat());
        trapezoid(space, p0, minus_half, (&f0, &f1))
    });
    let q1 = drifted(space, middle, half, (&q, &p1), StepEnd::Old);
    [q1, p1].concat()
}

/// y₀ + c (a + b)
fn trapezoid(
    space: &mut dyn PhaseSpace,
    y0: &[Value],
    c: Value,
    (a, b): (&[Value], &[Value]),
) -> Vec<Value> {
    let both: Vec<Value> = a.iter().zip(b).map(|(&a, &b)| space.sum(a, b)).collect();
    space.moved(y0, c, &both)
}
