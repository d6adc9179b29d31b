//! Steps for rolling constraints A(q, t) v + b(q, t) = 0, which act by the forces
//! −Aᵀμ of d'Alembert's principle. All are symmetric and of order 2, but not
//! symplectic, as the motion is not. Constraints on positions go beside them by
//! RATTLE's multipliers: a step begins and ends with a half step of their forces
//! −Gᵀλ, with which it lands on g = 0 and on the hidden constraints. In momenta,
//! v = H_p, for any H; that of the sources is ½ pᵀM⁻¹p + V(q).
//!
//! `nonholonomic-leapfrog`: half a drift, a kick, half a drift, with the constraint
//! at the end,
//!
//! q½ = q₀ + h/2 v₀,  p₁ = p₀ − h V_q(q½) − h A(q½)ᵀμ,  q₁ = q½ + h/2 v₁,
//! A(q₁) v₁ = 0.
//!
//! `gni`, the geometric nonholonomic integrator: a kick reflects the velocities
//! between the steps on the constraint, M (v₊ − v₋) = −h V_q − h Aᵀμ with
//! A(q) (v₋ + v₊) = 0, and q₊ = q + h v₊. The momenta p of the state are those
//! half way, ½ (p₋ + p₊), and meet the constraint. A step is kick, drift, kick,
//!
//! p½ = p₀ − h/2 (V_q(q₀) + A(q₀)ᵀμ₀),  q₁ = q₀ + h v½,
//! p₁ = p½ − h/2 (V_q(q₁) + A(q₁)ᵀμ₁),  A(q₁) v₁ = 0,
//!
//! where μ₀ is that of the step before. So μ is part of the state, which runs
//! carry; it starts with that of the continuous motion. With it the step is
//! reversible. A step that starts from q and p alone is not, so that `gni` has no
//! compositions.
//!
//! `dla`, the discrete Lagrange–d'Alembert equations of the midpoint rule: the
//! constraint at the middle of the step, A(½ (q₀ + q₁)) (q₁ − q₀) = 0, and forces
//! at its ends,
//!
//! p₊ = p₀ − h/2 A(q₀)ᵀμ,  the midpoint rule from (q₀, p₊) to (q₁, p₋),
//! p₁ = p₋ − h/2 A(q₁)ᵀν,  A(q₁) v₁ = 0.

use super::stormer_verlet::step_a;
use super::symplectic_euler::{StepEnd, drifted, implicit};
use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{
    Equation, Equations, Function, Guess, Monitored, PhaseSpace, Residual, Value,
};

pub(super) static LEAPFROG: Scheme = Scheme {
    name: "nonholonomic-leapfrog",
    other_names: &[],
    needs: Needs::Rolling,
    description: "drift, kick, drift that ends on the rolling constraints",
    citation: "McLachlan, Perlmutter, J. Nonlinear Sci. 16 (2006) 283, (4.18)",
    file: include_str!("nonholonomic.rs"),
    step: Step::Map(leapfrog, facts(true)),
};

pub(super) static GNI: Scheme = Scheme {
    name: "gni",
    other_names: &["geometric-nonholonomic-integrator"],
    needs: Needs::Rolling,
    description: "kicks that reflect velocities on the rolling constraints; reversible with the multipliers that it carries",
    citation: "Ferraro, Iglesias, Martin de Diego, Nonlinearity 21 (2008) 1911",
    file: include_str!("nonholonomic.rs"),
    step: Step::Map(gni, facts(false)),
};

pub(super) static DLA: Scheme = Scheme {
    name: "dla",
    other_names: &["discrete-lagrange-dalembert"],
    needs: Needs::Rolling,
    description: "midpoint rule with the rolling constraints at the middle of each step",
    citation: "Cortes, Martinez, Nonlinearity 14 (2001) 1365",
    file: include_str!("nonholonomic.rs"),
    step: Step::Map(dla, facts(true)),
};

/// Facts of all three; `gni` is symmetric as a map of a longer state alone.
const fn facts(symmetric: bool) -> SchemeFacts {
    SchemeFacts { order: 2, symmetric, symplectic: false, explicit: false }
}

/// Numbers of constraints on positions and of rolling ones.
struct Counts {
    positions: usize,
    rolling: usize,
    /// Scales of the constraints on positions, and of the hidden and the rolling ones.
    sizes: [Vec<Value>; 2],
}

impl Counts {
    fn of(space: &mut dyn PhaseSpace, t: Value, x: &[Value]) -> Counts {
        let sizes = [false, true].map(|hidden| space.constraint_sizes(t, x, hidden));
        let (positions, all) = (sizes[0].len(), sizes[1].len());
        Counts { positions, rolling: all - positions, sizes }
    }

    /// Multipliers of all constraints from those of one kind, with 0 for the other.
    fn all(&self, space: &mut dyn PhaseSpace, lambda: &[Value], mu: &[Value]) -> Vec<Value> {
        let zero = space.constant(0.0);
        let mut all = vec![zero; self.positions + self.rolling];
        all[..lambda.len()].copy_from_slice(lambda);
        all[self.positions..][..mu.len()].copy_from_slice(mu);
        all
    }

    /// Multipliers for which `residual` vanishes. It has the constraints on positions over h, if
    /// they are `landing`, and then the hidden and rolling ones with the numbers `rest`: all change
    /// in proportion to h.
    fn solve(
        &self,
        space: &mut dyn PhaseSpace,
        h: Value,
        (landing, rest): (bool, std::ops::Range<usize>),
        residual: Residual,
    ) -> Vec<Value> {
        let (mut rows, mut size) = (Vec::new(), Vec::new());
        if landing {
            rows.extend((0..self.positions).map(Equation::Constraint));
            let length = space.function(Function::Magnitude, h);
            size.extend(over(space, length, &self.sizes[0]));
        }
        rows.extend(rest.clone().map(Equation::Hidden));
        size.extend(&self.sizes[1][rest]);
        let (guess, monitored) = (Guess::Last, Monitored::Always);
        let equations = Equations {
            rows: &rows,
            size: &size,
            sweep_size: &[],
            guess,
            monitored,
            monotone: None,
        };
        space.solve(&equations, residual)
    }
}

/// a / h
fn over(space: &mut dyn PhaseSpace, h: Value, a: &[Value]) -> Vec<Value> {
    a.iter().map(|&a| space.quotient(a, h)).collect()
}

/// The state x after the forces of these multipliers have acted for a time, at fixed positions.
fn pushed(
    space: &mut dyn PhaseSpace,
    (t, time): (Value, Value),
    x: &[Value],
    multipliers: &[Value],
) -> Vec<Value> {
    let force = space.reaction(t, x, multipliers);
    let (q, p) = x.split_at(space.degrees());
    [q, &space.moved(p, time, &force)].concat()
}

/// Multipliers with which forces that act for half a step bring x onto the hidden and the rolling
/// constraints, and the state there.
fn settled(
    space: &mut dyn PhaseSpace,
    counts: &Counts,
    (t, h): (Value, Value),
    x: &[Value],
) -> (Vec<Value>, Vec<Value>) {
    let (half, all) = (space.scaled(0.5, h), 0..counts.positions + counts.rolling);
    let mut end = Vec::new();
    let multipliers = counts.solve(space, h, (false, all), &mut |space, multipliers| {
        end = pushed(space, (t, half), x, multipliers);
        space.hidden_constraints(t, &end)
    });
    (multipliers, end)
}

/// Drift, kick, drift.
fn leapfrog(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let counts = Counts::of(space, t, x);
    let (m, all) = (counts.positions, counts.positions + counts.rolling);
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let mut end = Vec::new();
    // λ at the start, λ at the end, μ.
    counts.solve(space, h, (true, 0..all), &mut |space, multipliers| {
        let (start, rest) = multipliers.split_at(m);
        let (last, mu) = rest.split_at(m);
        let [start, last] = [start, last].map(|lambda| counts.all(space, lambda, &[]));
        let mu = counts.all(space, &[], mu);
        let slid = pushed(space, (t, half), x, &start);
        let landed = drift_kick_drift(space, (middle, h), &slid, &mu);
        let g = space.constraints(t1, &landed);
        end = pushed(space, (t1, half), &landed, &last);
        [over(space, h, &g), space.hidden_constraints(t1, &end)].concat()
    });
    end
}

/// Störmer–Verlet B with the forces of multipliers in its kick, both with the time `middle`.
fn drift_kick_drift(
    space: &mut dyn PhaseSpace,
    (middle, h): (Value, Value),
    x: &[Value],
    multipliers: &[Value],
) -> Vec<Value> {
    let n = space.degrees();
    let (q0, p0) = x.split_at(n);
    let (half, minus_half) = (space.scaled(0.5, h), space.scaled(-0.5, h));
    let q = drifted(space, middle, half, (q0, p0), StepEnd::New);
    let before = space.h_q(middle, &[&q, p0].concat());
    let known = pushed(space, (middle, h), &[&q, p0].concat(), multipliers);
    let known = space.moved(&known[n..], minus_half, &before);
    let p1 = implicit(space, n, p0, &mut |space, p1| {
        let after = space.h_q(middle, &[&q, p1].concat());
        space.moved(&known, minus_half, &after)
    });
    let q1 = drifted(space, middle, half, (&q, &p1), StepEnd::Old);
    [q1, p1].concat()
}

/// Kick, drift, kick with multipliers of rolling that the step before has left.
fn gni(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let counts = Counts::of(space, t, x);
    let (half, t1) = (space.scaled(0.5, h), space.sum(t, h));
    let like = vec![x[0]; counts.rolling];
    let mu = space.carried_state(&like, &mut |space| {
        let all = continuous(space, &counts, t, x);
        all[counts.positions..].to_vec()
    });
    let mut landed = Vec::new();
    let lambda = counts.solve(space, h, (true, 0..0), &mut |space, lambda| {
        let all = counts.all(space, lambda, &mu);
        let slid = pushed(space, (t, half), x, &all);
        landed = step_a(space, t, h, &slid);
        let g = space.constraints(t1, &landed);
        over(space, h, &g)
    });
    debug_assert_eq!(lambda.len(), counts.positions);
    let (multipliers, end) = settled(space, &counts, (t1, h), &landed);
    space.carry(&multipliers[counts.positions..]);
    end
}

/// Multipliers of the continuous motion: those for which the rates of the hidden and the rolling
/// constraints vanish.
fn continuous(space: &mut dyn PhaseSpace, counts: &Counts, t: Value, x: &[Value]) -> Vec<Value> {
    let minus = space.constant(-1.0);
    let (velocity, slope) = (space.h_p(t, x), space.h_q(t, x));
    let free = space.multiplied(minus, &slope);
    let rows: Vec<Equation> = (0..counts.sizes[1].len()).map(Equation::Hidden).collect();
    // One iteration solves them, from anywhere.
    let zeros = vec![space.constant(0.0); rows.len()];
    let equations = Equations {
        rows: &rows,
        size: &counts.sizes[1],
        sweep_size: &[],
        guess: Guess::At(&zeros),
        monitored: Monitored::Never,
        monotone: None,
    };
    space.solve(&equations, &mut |space, multipliers| {
        let force = space.reaction(t, x, multipliers);
        let rate = [velocity.clone(), space.plus(&free, &force)].concat();
        space.hidden_rates(t, x, &rate)
    })
}

/// Midpoint rule with the constraint at its middle.
fn dla(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let counts = Counts::of(space, t, x);
    let all = counts.positions + counts.rolling;
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let mut landed = Vec::new();
    counts.solve(space, h, (true, counts.positions..all), &mut |space, multipliers| {
        let slid = pushed(space, (t, half), x, multipliers);
        let place = midpoint(space, (middle, half), &slid);
        let rolling = space.hidden_constraints(middle, &place)[counts.positions..].to_vec();
        let moved = space.difference(&place, &slid);
        landed = space.plus(&place, &moved);
        let g = space.constraints(t1, &landed);
        [over(space, h, &g), rolling].concat()
    });
    settled(space, &counts, (t1, h), &landed).1
}

/// Middle y = x + h/2 (H_p, −H_q)(y) of a step of the midpoint rule.
fn midpoint(space: &mut dyn PhaseSpace, (middle, half): (Value, Value), x: &[Value]) -> Vec<Value> {
    let n = space.degrees();
    let minus_half = space.scaled(-1.0, half);
    let rows: Vec<Equation> = (0..2 * n).map(Equation::Stage).collect();
    let sizes = space.sizes(x, x);
    let (guess, monitored) = (Guess::At(x), Monitored::Never);
    let equations =
        Equations { rows: &rows, size: &sizes, sweep_size: &[], guess, monitored, monotone: None };
    space.solve(&equations, &mut |space, y| {
        let (velocity, slope) = (space.h_p(middle, y), space.h_q(middle, y));
        let next =
            [space.moved(&x[..n], half, &velocity), space.moved(&x[n..], minus_half, &slope)]
                .concat();
        space.difference(y, &next)
    })
}
