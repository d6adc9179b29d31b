//! Exact flows of parts of the Hamiltonian of a Poisson system: lines, exponentials and circles of
//! variables that others move, and turns of two spins or of two points in the plane.

use super::super::formula_space::FormulaSpace;
use crate::kernels::Formula;
use holonome_integrate::phase_space::{Function, PhaseSpace, Value, Vector};

/// A part of H with a known flow.
pub enum ExactPart {
    /// Variables that commute move others.
    Moves {
        /// How each of the others moves.
        moves: Vec<Move>,
        /// A coefficient for each.
        coefficients: Formula,
    },
    /// Two spins turn about the sum of their momenta.
    Spins {
        /// Places of s and of r.
        members: [[usize; 3]; 2],
        /// c in ∂H/∂s = c r, and the factors of hat(s) and hat(r) in J.
        coefficients: Formula,
    },
    /// Two points in the plane turn about their centre.
    Points {
        /// Places of r and of s.
        members: [[usize; 2]; 2],
        /// c in ∂H/∂r = c (r − s), and the brackets {x, y} of both.
        coefficients: Formula,
    },
}

/// Motion of variables with a constant coefficient w.
#[derive(Clone, Copy)]
pub enum Move {
    /// x' = w
    Line(usize),
    /// x' = w x
    Growth(usize),
    /// x' = w y, y' = −w x
    Turn(usize, usize),
}

impl ExactPart {
    /// State moved for the time `tau`.
    pub fn flow(
        &self,
        space: &mut dyn FormulaSpace,
        (t, tau): (Value, Value),
        x: &[Value],
    ) -> Vec<Value> {
        let mut moved = x.to_vec();
        match self {
            ExactPart::Moves { moves, coefficients } => {
                let coefficients = space.at(coefficients, t, x);
                for (&one, w) in moves.iter().zip(coefficients) {
                    let by = space.product(tau, w);
                    one.along(space, by, x, &mut moved);
                }
            }
            ExactPart::Spins { members, coefficients } => {
                let coefficients = space.at(coefficients, t, x);
                turn_spins(space, members, &coefficients, (tau, x), &mut moved);
            }
            ExactPart::Points { members, coefficients } => {
                let coefficients = space.at(coefficients, t, x);
                turn_points(space, members, &coefficients, (tau, x), &mut moved);
            }
        }
        moved
    }
}

impl Move {
    /// Motion by the coefficient times the time.
    fn along(self, space: &mut dyn FormulaSpace, by: Value, x: &[Value], moved: &mut [Value]) {
        match self {
            Move::Line(a) => moved[a] = space.sum(x[a], by),
            Move::Growth(a) => {
                let factor = space.function(Function::Exponential, by);
                moved[a] = space.product(factor, x[a]);
            }
            Move::Turn(a, b) => {
                let (cosine, sine) =
                    (space.function(Function::Cosine, by), space.function(Function::Sine, by));
                let minus = space.function(Function::Negative, sine);
                let plain = space as &mut dyn PhaseSpace;
                let before = [x[a], x[b]];
                let after = [[cosine, sine], [minus, cosine]].map(|row| plain.dot(&row, &before));
                let after = of_length(space, &before, after);
                (moved[a], moved[b]) = (after[0], after[1]);
            }
        }
    }
}

/// s' = s × Ω and r' = r × Ω with the constant Ω = c (k_r s + k_s r), the momentum s/k_s + r/k_r times
/// c k_s k_r.
fn turn_spins(
    space: &mut dyn FormulaSpace,
    members: &[[usize; 3]; 2],
    coefficients: &[Value],
    (tau, x): (Value, &[Value]),
    moved: &mut [Value],
) {
    let [c, k_first, k_second] = coefficients[..] else { unreachable!("three coefficients") };
    let [s, r]: [Vector; 2] = members.map(|member| member.map(|place| x[place]));
    let (of_first, of_second) = (space.product(c, k_second), space.product(c, k_first));
    let plain = space as &mut dyn PhaseSpace;
    let omega = plain.multiplied(of_first, &s);
    let omega = plain.moved(&omega, of_second, &r);
    let omega: Vector = [omega[0], omega[1], omega[2]];
    let square = plain.dot(&omega, &omega);
    let (first, second) = turning(space, square, tau);
    for (member, spin) in members.iter().zip([s, r]) {
        let plain = space as &mut dyn PhaseSpace;
        let once = plain.cross(spin, omega);
        let twice = plain.cross(once, omega);
        let turned = plain.moved_vector(spin, first, once);
        let turned = plain.moved_vector(turned, second, twice);
        let turned = of_length(space, &spin, turned);
        member.iter().zip(turned).for_each(|(&place, value)| moved[place] = value);
    }
}

/// With d = r − s and K d = (d_y, −d_x): r' = k_r c K d, s' = −k_s c K d, so that d' = ω K d with ω = c
/// (k_r + k_s), and ∫ K d = (sin ωτ/ω) K d₀ − ((1 − cos ωτ)/ω) d₀.
fn turn_points(
    space: &mut dyn FormulaSpace,
    members: &[[usize; 2]; 2],
    coefficients: &[Value],
    (tau, x): (Value, &[Value]),
    moved: &mut [Value],
) {
    let [c, k_first, k_second] = coefficients[..] else { unreachable!("three coefficients") };
    let plain = space as &mut dyn PhaseSpace;
    let [r, s] = members.map(|member| member.map(|place| x[place]));
    let d = plain.difference(&r, &s);
    let both = plain.sum(k_first, k_second);
    let omega = plain.product(c, both);
    let square = plain.product(omega, omega);
    let (sine_over, versine_over) = turning(space, square, tau);
    // (1 − cos)/ω = ω (1 − cos)/ω².
    let back = space.product(omega, versine_over);
    let plain = space as &mut dyn PhaseSpace;
    let minus_x = plain.function(Function::Negative, d[0]);
    let across = plain.multiplied(sine_over, &[d[1], minus_x]);
    let along = plain.multiplied(back, &d);
    let path = plain.difference(&across, &along);
    let of_first = plain.product(c, k_first);
    let of_second = plain.product(c, k_second);
    let of_second = plain.function(Function::Negative, of_second);
    for (member, share) in members.iter().zip([of_first, of_second]) {
        let start: Vec<Value> = member.iter().map(|&place| x[place]).collect();
        let turned = plain.moved(&start, share, &path);
        member.iter().zip(turned).for_each(|(&place, value)| moved[place] = value);
    }
}

/// A turned vector without the change of its length by rounding, which is alike in every step and would
/// add up: v (1 + (|u|² − |v|²)/2|v|²).
fn of_length<const N: usize>(
    space: &mut dyn FormulaSpace,
    before: &[Value],
    after: [Value; N],
) -> [Value; N] {
    let plain = space as &mut dyn PhaseSpace;
    let (old, new) = (plain.dot(before, before), plain.dot(&after, &after));
    let change = plain.difference(&[old], &[new])[0];
    let half = plain.scaled(0.5, change);
    let (share, zero) = (plain.quotient(half, new), plain.constant(0.0));
    let share = space.unless_zero(new, share, zero);
    after.map(|v| {
        let lost = space.product(share, v);
        space.sum(v, lost)
    })
}

/// sin ωτ/ω and (1 − cos ωτ)/ω² for ω², which are τ and τ²/2 if that is 0.
fn turning(space: &mut dyn FormulaSpace, square: Value, tau: Value) -> (Value, Value) {
    let omega = space.function(Function::Root, square);
    let half_tau = (space as &mut dyn PhaseSpace).scaled(0.5, tau);
    let (angle, half) = (space.product(omega, tau), space.product(omega, half_tau));
    let (sine, sine_of_half) =
        (space.function(Function::Sine, angle), space.function(Function::Sine, half));
    let (first, ratio) = (space.quotient(sine, omega), space.quotient(sine_of_half, omega));
    let (first, ratio) =
        (space.unless_zero(square, first, tau), space.unless_zero(square, ratio, half_tau));
    // 1 − cos ωτ = 2 sin² ωτ/2.
    let ratio2 = space.product(ratio, ratio);
    (first, (space as &mut dyn PhaseSpace).scaled(2.0, ratio2))
}
