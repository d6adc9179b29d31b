//! The Störmer–Verlet methods (HLW VI.3 (3.4), (3.5)), for any Hamiltonian; explicit for a
//! separable one. Both are symmetric and symplectic of order 2.

use super::symplectic_euler::{StepEnd, drifted, implicit, kicked};
use crate::phase_space::{PhaseSpace, Value};

/// Kick, drift, kick (HLW VI.3 (3.4)):
///
/// p½ = p₀ − h/2 H_q(p½, q₀),  q₁ = q₀ + h/2 (H_p(p½, q₀) + H_p(p½, q₁)),  p₁ = p½ − h/2 H_q(p½,
/// q₁).
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

/// Drift, kick, drift (HLW VI.3 (3.5)):
///
/// q½ = q₀ + h/2 H_p(p₀, q½),  p₁ = p₀ − h/2 (H_q(p₀, q½) + H_q(p₁, q½)),  q₁ = q½ + h/2 H_p(p₁,
/// q½).
pub fn step_b(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
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
