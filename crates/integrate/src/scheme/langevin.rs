//! Langevin dynamics: friction and noise of a heat bath around, or within, a
//! deterministic step.
//!
//! dq = H_p dt,   dp = (−H_q − Gᵀλ) dt − γ H_p dt + √(2γkT) dW
//!
//! keeps the distribution exp(−H/kT) on the constraint set. Friction and noise
//! alone, at fixed positions, keep the Gaussian of the momenta exactly for any γ
//! and step; the error of a method's distribution comes from its deterministic
//! part.
//!
//! `g-baoab` is half a kick, half a motion along geodesics, friction and noise, and
//! back; without constraints it is BAOAB. A geodesic is followed by one step of
//! RATTLE. `--thermostat gla`, the geometric Langevin algorithm, adds friction and
//! noise at the end of a step of another method.

use super::rattle::{rattle, settle};
use super::{Needs, Scheme, SchemeFacts, Step, StepFn};
use crate::phase_space::{
    Equation, Equations, Function, Guess, Monitored, Parameter, PhaseSpace, Value,
};

pub(super) static G_BAOAB: Scheme = Scheme {
    name: "g-baoab",
    other_names: &["baoab"],
    needs: Needs::HeatBath,
    description: "Langevin dynamics with constraints or without: kick, motion, friction and noise, and back",
    citation: "Leimkuhler, Matthews, Proc. R. Soc. A 472 (2016) 20160138",
    file: include_str!("langevin.rs"),
    step: Step::Map(
        g_baoab,
        SchemeFacts { order: 2, symmetric: false, symplectic: false, explicit: false },
    ),
};

/// Friction and noise at (t, x) for the time h, on the hidden constraints (Lelièvre, Rousset,
/// Stoltz, Math. Comp. 81 (2012) 2071, (2.16)):
///
/// p₁ = p₀ − ½hΓ M⁻¹(p₀ + p₁) + √(2hkTΓ) ξ − Gᵀλ,  G M⁻¹p₁ = 0.
///
/// This midpoint rule keeps the Gaussian exp(−H/kT) of the momenta on their constraint set whatever
/// Γ is. For a diagonal M, ½hΓ/m = tanh(½hγ/m), which without constraints makes it the exact flow
/// p₁ = e^(−hγ/m) p₀ + …; for any other, Γ = γ.
pub fn friction_and_noise(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    let n = space.degrees();
    let (q, p0) = x.split_at(n);
    let noise = space.noise();
    let [friction, temperature] =
        [Parameter::Friction, Parameter::Temperature].map(|which| space.parameter(which));
    let work = space.product(h, friction);
    let half = space.scaled(0.5, work);
    if !space.mass_is_diagonal() {
        return midpoint(space, t, half, x, (&noise, temperature));
    }
    let (one, four) = (space.constant(1.0), space.scaled(4.0, temperature));
    let inverse_masses = space.h_p(t, &[q, &vec![one; n]].concat());
    let mut pushed = Vec::with_capacity(n);
    let mut damped = Vec::with_capacity(n);
    for ((&p0, &inverse_mass), &noise) in p0.iter().zip(&inverse_masses).zip(&noise) {
        let rate = space.product(half, inverse_mass);
        let tau = space.function(Function::HyperbolicTangent, rate);
        let (plus, minus) = (space.sum(one, tau), space.difference(&[one], &[tau])[0]);
        let (heat, kept) = (space.product(four, tau), space.product(minus, p0));
        let variance = space.quotient(heat, inverse_mass);
        let deviation = space.function(Function::Root, variance);
        let kick = space.product(deviation, noise);
        pushed.push(space.sum(kept, kick));
        damped.push(plus);
    }
    let at_rest = |space: &mut dyn PhaseSpace, p: &[Value]| -> Vec<Value> {
        let p = p.iter().zip(&damped).map(|(&p, &damped)| space.quotient(p, damped));
        [q, &p.collect::<Vec<Value>>()].concat()
    };
    let x1 = at_rest(space, &pushed);
    let size = space.constraint_sizes(t, &x1, true);
    if size.is_empty() {
        return x1;
    }
    let rows: Vec<Equation> = (0..size.len()).map(Equation::Hidden).collect();
    let guess = vec![space.constant(0.0); rows.len()];
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::At(&guess),
        monitored: Monitored::Never,
        monotone: None,
    };
    let free = [q, &pushed].concat();
    let mut held = Vec::new();
    space.solve(&equations, &mut |space, lambda| {
        let slid = space.slide(t, &free, lambda);
        held = at_rest(space, &slid[n..]);
        space.hidden_constraints(t, &held)
    });
    held
}

/// [`friction_and_noise`] for any mass matrix: the momenta are unknowns, with the multipliers.
fn midpoint(
    space: &mut dyn PhaseSpace,
    t: Value,
    half: Value,
    x: &[Value],
    (noise, temperature): (&[Value], Value),
) -> Vec<Value> {
    let n = space.degrees();
    let (q, p0) = x.split_at(n);
    let heat = space.product(half, temperature);
    let variance = space.scaled(4.0, heat);
    let deviation = space.function(Function::Root, variance);
    let pushed = space.moved(p0, deviation, noise);
    let momentum_size = space.size(&pushed);
    let hidden = space.constraint_sizes(t, &[q, &pushed].concat(), true);
    let momenta = (n..2 * n).map(Equation::Stage);
    let rows: Vec<Equation> = momenta.chain((0..hidden.len()).map(Equation::Hidden)).collect();
    let size = [vec![momentum_size; n], hidden].concat();
    let zero = space.constant(0.0);
    let guess = [pushed.clone(), vec![zero; rows.len() - n]].concat();
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &[],
        guess: Guess::At(&guess),
        monitored: Monitored::Never,
        monotone: None,
    };
    let minus = space.scaled(-1.0, half);
    let p1 = space.solve(&equations, &mut |space, unknowns| {
        let (p1, lambda) = unknowns.split_at(n);
        let x1 = [q, p1].concat();
        let (before, after) = (space.h_p(t, x), space.h_p(t, &x1));
        let sum = space.plus(&before, &after);
        let damped = space.moved(&pushed, minus, &sum);
        let mut wanted = [q, &damped].concat();
        let mut left = Vec::new();
        if !lambda.is_empty() {
            wanted = space.slide(t, &wanted, lambda);
            left = space.hidden_constraints(t, &x1);
        }
        [space.difference(p1, &wanted[n..]), left].concat()
    });
    [q, &p1[..n]].concat()
}

/// The geometric Langevin algorithm: a deterministic step, then friction and noise (Bou-Rabee,
/// Owhadi, SIAM J. Numer. Anal. 48 (2010) 278).
pub fn gla(space: &mut dyn PhaseSpace, t: Value, h: Value, x1: &[Value]) -> Vec<Value> {
    let t1 = space.sum(t, h);
    friction_and_noise(space, t1, h, x1)
}

/// Half a kick, half a motion along geodesics, friction and noise, and back.
fn g_baoab(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let n = space.degrees();
    let (half, middle, t1) = (space.scaled(0.5, h), space.time(t, 0.5, h), space.sum(t, h));
    let free = space.constraint_sizes(t, x, true).is_empty();
    let minus_half = space.scaled(-1.0, half);
    let kick = |space: &mut dyn PhaseSpace, t: Value, x: &[Value], slope: &[Value]| {
        let p = space.moved(&x[n..], minus_half, slope);
        let kicked = [&x[..n], &p].concat();
        if free { kicked } else { settle(space, t, half, &kicked, Monitored::Never).1 }
    };
    let travel = |space: &mut dyn PhaseSpace, t: Value, x: &[Value]| {
        let motion: StepFn = |space, t, h, x| {
            let v = space.h_p(t, x);
            let (q, p) = x.split_at(space.degrees());
            [&space.moved(q, h, &v), p].concat()
        };
        if free { motion(space, t, half, x) } else { rattle(space, motion, t, half, x) }
    };
    let before = space.carried(&x[..n], &mut |space| space.h_q(t, x));
    let x = kick(space, t, x, &before);
    let x = travel(space, t, &x);
    let x = friction_and_noise(space, middle, h, &x);
    let x = travel(space, middle, &x);
    let after = space.h_q(t1, &x);
    space.carry(&after);
    // Multipliers of the two motions are not those of the step.
    space.record_multipliers(&[], &[]);
    kick(space, t1, &x, &after)
}
