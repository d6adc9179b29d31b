//! Discrete gradients for Poisson systems x' = J(x) ∇H: the averaged vector field
//! method with the matrix at the midpoint,
//!
//! x₁ = x₀ + h J((x₀ + x₁)/2) ∫₀¹ ∇H(x₀ + τ (x₁ − x₀)) dτ.
//!
//! As J is antisymmetric, H(x₁) − H(x₀) = ∫ ∇H·(x₁ − x₀) dτ = 0: the energy is kept
//! to round-off, at any h. The step is symmetric and of order 2; it keeps linear
//! Casimirs, and quadratic ones where H is quadratic. The integral is a Gauss
//! quadrature, exact where H is a polynomial of degree up to 12, with as few nodes
//! as its degree needs. For other H it has six nodes: its error is that of a series
//! whose terms fall like (|x₁ − x₀|/4ρ)^12, with the distance ρ to a singularity.

use super::collocation::Collocation;
use super::gauss::sweep_sizes;
use super::{Needs, Scheme, SchemeFacts, Step};
use crate::phase_space::{Equation, Equations, Guess, Monitored, PhaseSpace, Value};

pub(super) static SCHEME: Scheme = Scheme {
    name: "discrete-gradient",
    other_names: &["average-vector-field", "avf"],
    needs: Needs::Poisson,
    description: "averaged gradient with J at the midpoint: keeps the energy to round-off",
    citation: "Cohen, Hairer, BIT 51 (2011) 91; McLachlan, Quispel, Robidoux, Phil. Trans. R. Soc. A 357 (1999) 1021",
    file: include_str!("discrete_gradient.rs"),
    step: Step::Map(
        step,
        SchemeFacts { order: 2, symmetric: true, symplectic: false, explicit: false },
    ),
};

/// Number of nodes where H is no polynomial, and the largest.
const NODES: u32 = 6;

fn step(space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    let nodes = space.energy_degree().map_or(NODES, |degree| degree.div_ceil(2).clamp(1, NODES));
    let rule = Collocation::gauss(nodes as usize);
    let (half, middle) = (space.constant(0.5), space.time(t, 0.5, h));
    let expected = space.carried_guess(x, &mut |space| {
        let rate = space.field(t, x);
        space.multiplied(h, &rate)
    });
    let rows: Vec<Equation> = (0..x.len()).map(Equation::Stage).collect();
    let size = space.sizes(x, &expected);
    let equations = Equations {
        rows: &rows,
        size: &size,
        sweep_size: &sweep_sizes(space, (t, h), x),
        guess: Guess::At(&expected),
        monitored: Monitored::Never,
        monotone: None,
    };
    let increment = space.solve(&equations, &mut |space, z| {
        let zero = space.constant(0.0);
        let mut mean = vec![zero; x.len()];
        for (&node, &weight) in rule.nodes.iter().zip(&rule.weights) {
            let (node, weight) = (space.constant(node), space.constant(weight));
            let between = space.moved(x, node, z);
            let slope = space.gradient(middle, &between);
            mean = space.moved(&mean, weight, &slope);
        }
        let centre = space.moved(x, half, z);
        let rate = space.brackets(middle, &centre, &mean);
        let moved = space.multiplied(h, &rate);
        space.difference(z, &moved)
    });
    space.carry(&increment);
    space.accumulate(x, &increment)
}
