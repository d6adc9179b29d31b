//! Systems with known solutions and invariants, written by hand.
#![allow(dead_code)] // each test file uses some of them

use holonome_integrate::method::Method;
use holonome_integrate::observer::Recorder;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::{Outcome, run};
use holonome_integrate::state::StepState;
use holonome_integrate::system::{FnSystem, Group, GroupKind, Invariants, System};

pub fn method(name: &str) -> Method {
    name.parse().unwrap()
}

/// Run a plan to its end, which it must reach.
pub fn finish(plan: &Plan, system: &dyn System, x0: &[f64]) -> (StepState, Recorder) {
    let mut state = StepState::new(plan, system, x0, None);
    let mut recorder = Recorder::default();
    match run(plan, system, &mut state, &mut recorder) {
        Ok(Outcome::Finished) => (state, recorder),
        other => panic!("{}: {other:?}", plan.method),
    }
}

pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Largest drift of any group, up to now.
pub fn max_drift(state: &StepState) -> f64 {
    state.drift.iter().map(|drift| drift.max).fold(0.0, f64::max)
}

pub const PENDULUM_START: [f64; 6] = [0.0, 1.0, 0.0, 1.0, 0.0, -1.0];

/// State at T = 100 to twelve digits (`suite/references.toml`).
pub const PENDULUM_END: [f64; 6] = [
    0.289982352306,
    0.546233983572,
    -0.785836287366,
    1.788679864730,
    -0.079185067542,
    0.605001356461,
];

/// The Dirac field of the spherical pendulum with m = g = l = 1, for f = (|q|², q·p), as in the
/// 2022 paper.
pub fn pendulum_field(x: &[f64], dx: &mut [f64]) {
    let (q, p) = x.split_at(3);
    let qq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    let qp = q[0] * p[0] + q[1] * p[1] + q[2] * p[2];
    let pp = p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
    for i in 0..3 {
        dx[i] = p[i] - qp / qq * q[i];
        dx[3 + i] = qp / qq * p[i] + (q[2] - pp) / qq * q[i] - f64::from(i == 2);
    }
}

fn pendulum_values(x: &[f64], f: &mut [f64]) {
    let (q, p) = x.split_at(3);
    f[0] = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] - 1.0;
    f[1] = 2.0 * (q[0] * p[0] + q[1] * p[1] + q[2] * p[2]);
    f[2] = 0.5 * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + q[2];
    f[3] = q[0] * p[1] - q[1] * p[0];
}

fn pendulum_jacobian(x: &[f64], df: &mut [f64]) {
    let (q, p) = x.split_at(3);
    let rows = [
        [2.0 * q[0], 2.0 * q[1], 2.0 * q[2], 0.0, 0.0, 0.0],
        [2.0 * p[0], 2.0 * p[1], 2.0 * p[2], 2.0 * q[0], 2.0 * q[1], 2.0 * q[2]],
        [0.0, 0.0, 1.0, p[0], p[1], p[2]],
        [p[1], -p[0], 0.0, -q[1], q[0], 0.0],
    ];
    df.copy_from_slice(rows.as_flattened());
}

fn pendulum_invariants() -> Invariants {
    let groups = vec![
        Group::rows("rod", GroupKind::Constraint, 0..1),
        Group::rows("rod.hidden", GroupKind::Hidden, 1..2),
        Group::rows("H", GroupKind::Hamiltonian, 2..3),
        Group::rows("J", GroupKind::Integral, 3..4),
    ];
    Invariants::dense(6, 4, 2, groups)
}

/// The spherical pendulum: f = (|q|² − 1, 2 q·p), H, J.
pub fn pendulum() -> FnSystem<'static> {
    FnSystem::new(6, |_, x, dx| pendulum_field(x, dx)).with_invariants(
        pendulum_invariants(),
        |_, x, f| pendulum_values(x, f),
        |_, x, df| pendulum_jacobian(x, df),
    )
}

/// The gains of V = ½(50Δf₁² + 50(q·p)² + 50ΔH² + 50ΔJ²) over the rows above, whose second is 2
/// q·p.
pub const PENDULUM_GAINS: [f64; 4] = [50.0, 12.5, 50.0, 50.0];

/// The pendulum with the literal feedback −∇V of these gains times `factor`.
pub fn pendulum_with_feedback(factor: f64) -> FnSystem<'static> {
    pendulum().with_feedback(move |_t, x, dx| {
        pendulum_field(x, dx);
        let (mut f, mut df) = ([0.0; 4], [0.0; 24]);
        pendulum_values(x, &mut f);
        pendulum_jacobian(x, &mut df);
        let target = [0.0, 0.0, 1.0, -1.0];
        for row in 0..4 {
            for i in 0..6 {
                dx[i] -= factor * PENDULUM_GAINS[row] * (f[row] - target[row]) * df[6 * row + i];
            }
        }
    })
}

/// The Kepler problem of the 2016 paper: μ = 1, e = 0.8, x = (q, v).
pub const KEPLER_START: [f64; 6] = [1.0, 0.0, 0.0, 0.0, 1.341_640_786_499_873_8, 0.0];

/// 2π a^{3/2} with a = 1/(2 − v²) = 5.
pub const KEPLER_PERIOD: f64 = 70.248_147_310_407_26;

fn cross(a: &[f64], b: &[f64]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Angular momentum L = q × v and Laplace vector A = v × L − q/|q|: six functions of rank five, as
/// L·A = 0.
pub fn kepler() -> FnSystem<'static> {
    let groups = vec![
        Group::rows("L", GroupKind::Integral, 0..3),
        Group::rows("A", GroupKind::Integral, 3..6),
    ];
    FnSystem::new(6, |_, x, dx| {
        let r = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt();
        for i in 0..3 {
            dx[i] = x[3 + i];
            dx[3 + i] = -x[i] / (r * r * r);
        }
    })
    .with_invariants(
        Invariants::dense(6, 6, 0, groups),
        |_, x, f| {
            let (q, v) = x.split_at(3);
            let l = cross(q, v);
            let a = cross(v, &l);
            let r = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2]).sqrt();
            for i in 0..3 {
                f[i] = l[i];
                f[3 + i] = a[i] - q[i] / r;
            }
        },
        |_, x, df| {
            let (q, v) = x.split_at(3);
            let l = cross(q, v);
            let r = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2]).sqrt();
            for k in 0..6 {
                let mut e = [0.0; 6];
                e[k] = 1.0;
                let (dq, dv) = e.split_at(3);
                let (qdv, dqv) = (cross(q, dv), cross(dq, v));
                let dl: Vec<f64> = (0..3).map(|i| qdv[i] + dqv[i]).collect();
                let (dvl, vdl) = (cross(dv, &l), cross(v, &dl));
                let qdq = q[0] * dq[0] + q[1] * dq[1] + q[2] * dq[2];
                for i in 0..3 {
                    df[6 * i + k] = dl[i];
                    df[6 * (3 + i) + k] = dvl[i] + vdl[i] - dq[i] / r + q[i] * qdq / (r * r * r);
                }
            }
        },
    )
}

/// A driven, damped, nonlinear oscillator whose parts do not commute and whose field depends on
/// time.
pub fn driven() -> FnSystem<'static> {
    FnSystem::new(2, |t, x, dx| {
        dx[0] = x[1] + 0.3 * (1.7 * t).sin();
        dx[1] = -(x[0].sin()) - 0.2 * x[1] * x[0] * x[0] + (t + x[0]).cos();
    })
}
