//! Rigid bodies by their attitude R in SO(3) and their angular momentum Π in the
//! body's frame.
//!
//! Whatever turns the body, R → R W, leaves the angular momentum R Π in space
//! alone: Π → Wᵀ Π. So Π is turned like a row of R, and the momentum maps of all
//! symmetries are kept to round-off.
//!
//! `rotation-splitting`, for a free body, H = Σ Π_k²/2I_k, composes the exact flows
//! of the three parts of H, rotations about the principal axes: ½R₁ ½R₂ R₃ ½R₂ ½R₁.
//!
//! The Cayley methods, for a body in a potential V, come from the discrete action Σ
//! h (½ Ω·IΩ − V(R)) with R₁ = R cay(hΩ), cay(x̂) = (1 − x̂/2)⁻¹(1 + x̂/2). Its
//! discrete Legendre transform is
//!
//! Π = IΩ + h/2 Ω × IΩ + h²/4 (Ω·IΩ) Ω,
//!
//! which a step solves for Ω; it is symmetric, as h and the two ends trade places
//! together. `cayley-variational-euler` kicks by the torque, then turns;
//! `cayley-symmetric` kicks by half of it before and after the turn.

use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{
    Body, Equation, Equations, Function, Guess, Monitored, PhaseSpace, Value, Vector,
};

pub(super) static ROTATION_SPLITTING: Scheme = Scheme {
    name: "rotation-splitting",
    other_names: &[],
    needs: Needs::FreeBody,
    description: "a free rigid body by rotations about its principal axes, each an exact flow",
    citation: "McLachlan, Phys. Rev. Lett. 71 (1993) 3043; Reich, Physica D 76 (1994) 375; Hairer, Lubich, Wanner, GNI, VII.5",
    file: include_str!("rigid_body.rs"),
    step: Step::Map(
        rotation_splitting,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: true },
    ),
};

pub(super) static CAYLEY_EULER: Scheme = Scheme {
    name: "cayley-variational-euler",
    other_names: &[],
    needs: Needs::Body,
    description: "a rigid body in a potential: the torque's kick, then a Cayley rotation",
    citation: "Bou-Rabee, Marsden, Found. Comput. Math. 9 (2009) 197",
    file: include_str!("rigid_body.rs"),
    step: Step::Map(
        cayley_variational_euler,
        SchemeFacts { order: 1, symmetric: false, symplectic: true, explicit: false },
    ),
};

pub(super) static CAYLEY_SYMMETRIC: Scheme = Scheme {
    name: "cayley-symmetric",
    other_names: &[],
    needs: Needs::Body,
    description: "a rigid body in a potential: half the kick, a Cayley rotation, half the kick, for long runs",
    citation: "Bou-Rabee, Marsden, Found. Comput. Math. 9 (2009) 197",
    file: include_str!("rigid_body.rs"),
    step: Step::Map(
        cayley_symmetric,
        SchemeFacts { order: 2, symmetric: true, symplectic: true, explicit: false },
    ),
};

/// ½R₁ ½R₂ R₃ ½R₂ ½R₁.
fn rotation_splitting(space: &mut dyn PhaseSpace, _: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let inertia = space.inertia();
    let half = space.scaled(0.5, h);
    let mut body = space.body(x);
    for (axis, time) in [(0, half), (1, half), (2, h), (1, half), (0, half)] {
        let momentum = space.product(time, body.momentum[axis]);
        let angle = space.quotient(momentum, inertia[axis][axis]);
        turn_about(space, &mut body, axis, angle);
    }
    round(space, &mut body);
    space.state_of(&body)
}

/// Kick, then turn.
fn cayley_variational_euler(
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    let mut body = space.body(x);
    kick(space, &mut body, t, h);
    turn(space, &mut body, h);
    space.state_of(&body)
}

/// Half the kick, turn, half the kick.
fn cayley_symmetric(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let (half, t1) = (space.scaled(0.5, h), space.sum(t, h));
    let mut body = space.body(x);
    kick(space, &mut body, t, half);
    turn(space, &mut body, h);
    kick(space, &mut body, t1, half);
    space.state_of(&body)
}

/// Apply the torque for a time.
fn kick(space: &mut dyn PhaseSpace, body: &mut Body, t: Value, time: Value) {
    let torque = space.torque(t, body);
    body.momentum = space.moved_vector(body.momentum, time, torque);
}

/// Turn the body to R exp(φ ê_k): the two other columns turn.
fn turn_about(space: &mut dyn PhaseSpace, body: &mut Body, axis: usize, angle: Value) {
    let (cosine, sine) =
        (space.function(Function::Cosine, angle), space.function(Function::Sine, angle));
    let minus = space.function(Function::Negative, sine);
    let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
    for row in body.attitude.iter_mut().chain([&mut body.momentum]) {
        let (a, b) = (row[i], row[j]);
        row[i] = space.dot(&[cosine, sine], &[a, b]);
        row[j] = space.dot(&[cosine, minus], &[b, a]);
    }
}

/// Turn the free body by a step: R cay(hΩ).
fn turn(space: &mut dyn PhaseSpace, body: &mut Body, h: Value) {
    let omega = angular_velocity(space, body.momentum, h);
    let x = omega.map(|omega| space.product(h, omega));
    // A row r of R becomes r + (½ x × (x × r) − x × r)/(1 + |x|²/4).
    let (one, half, square) = (space.constant(1.0), space.constant(0.5), space.dot(&x, &x));
    let quarter = space.scaled(0.25, square);
    let denominator = space.sum(one, quarter);
    for row in body.attitude.iter_mut().chain([&mut body.momentum]) {
        let first = space.cross(*row, x);
        let second = space.cross(first, x);
        let both = space.moved_vector(first, half, second);
        let share = space.quotient(one, denominator);
        *row = space.moved_vector(*row, share, both);
    }
    round(space, body);
}

/// Ω of the discrete Legendre transform in the head of this file.
fn angular_velocity(space: &mut dyn PhaseSpace, momentum: Vector, h: Value) -> Vector {
    let (inertia, inverse) = (space.inertia(), space.inverse_inertia());
    let start = space.transformed(&inverse, momentum);
    let square = space.product(h, h);
    let quarter = space.scaled(0.25, square);
    if is_spherical(space, &inertia) {
        // Ω = f I⁻¹Π with f + h²/4 |I⁻¹Π|² f³ = 1.
        let speed2 = space.dot(&start, &start);
        let c = space.product(quarter, speed2);
        let one = space.constant(1.0);
        let f = stated(space, &[one], &[one], &mut |space, f| {
            let cube = [f[0], f[0], c]
                .into_iter()
                .fold(f[0], |product, factor| space.product(product, factor));
            let sum = space.sum(f[0], cube);
            space.difference(&[sum], &[one])
        });
        return start.map(|omega| space.product(f[0], omega));
    }
    let half = space.scaled(0.5, h);
    let size = vec![space.size(&momentum); momentum.len()];
    let omega = stated(space, &start, &size, &mut |space, omega| {
        let omega: Vector = [omega[0], omega[1], omega[2]];
        let own = space.transformed(&inertia, omega);
        let turning = space.cross(omega, own);
        let energy = space.dot(&omega, &own);
        let along = space.product(quarter, energy);
        let sum = space.moved_vector(own, half, turning);
        let sum = space.moved_vector(sum, along, omega);
        space.difference(&sum, &momentum)
    });
    [omega[0], omega[1], omega[2]]
}

/// Solve equations for components of the angular momentum, which start at `guess`.
fn stated(
    space: &mut dyn PhaseSpace,
    guess: &[Value],
    size: &[Value],
    residual: crate::phase_space::Residual,
) -> Vec<Value> {
    let rows: Vec<Equation> = (0..guess.len()).map(Equation::AngularMomentum).collect();
    let equations = Equations {
        rows: &rows,
        size,
        sweep_size: &[],
        guess: Guess::At(guess),
        monitored: Monitored::Never,
        monotone: None,
    };
    space.solve(&equations, residual)
}

/// True if I is a multiple of the identity whatever the parameters are.
fn is_spherical(space: &mut dyn PhaseSpace, inertia: &[Vector; 3]) -> bool {
    let zero = space.constant(0.0);
    (0..3).all(|i| (0..3).all(|j| inertia[i][j] == if i == j { inertia[0][0] } else { zero }))
}

/// Remove the round-off of a step's turns from the attitude, which would drift off the rotations
/// steadily: R (3 − RᵀR)/2, a Newton step to the nearest rotation.
fn round(space: &mut dyn PhaseSpace, body: &mut Body) {
    let rows = body.attitude.clone();
    let three = space.constant(3.0);
    let mut factors = [[three; 3]; 3];
    for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
        let (a, b): (Vec<Value>, Vec<Value>) = rows.iter().map(|row| (row[i], row[j])).unzip();
        let product = space.dot(&a, &b);
        let target = space.constant(if i == j { 3.0 } else { 0.0 });
        let difference = space.difference(&[target], &[product])[0];
        factors[i][j] = space.scaled(0.5, difference);
    }
    for row in &mut body.attitude {
        *row = space.transformed(&factors, *row);
    }
}
