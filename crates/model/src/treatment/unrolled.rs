//! Unrolled models: one graph, in which every row of every template is an expression of its own.

use crate::elaborate::model::{Dynamics, Model, Quantity, Rolling, momentum_derivatives};
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Node};

/// Largest number of nodes of an unrolled model before derivatives, which multiply it by about ten.
pub const LARGEST_UNROLLED: usize = 1_000_000;

/// Largest number of scalar constraints of an unrolled model: their brackets form a table of this
/// size squared.
pub const MOST_CONSTRAINTS: usize = 4_000;

/// Error for a model that is too large to be unrolled.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the model is too large to be unrolled: {size} {what}, and this version can unroll {limit}"
)]
pub struct TooLarge {
    /// Size of the model.
    pub size: usize,
    /// Unit of the sizes, in words.
    pub what: &'static str,
    /// Largest size that is unrolled.
    pub limit: usize,
}

/// One scalar of a quantity.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Formula.
    pub node: Node,
    /// Gradient with respect to the state.
    pub gradient: Gradient,
    /// Member of the family.
    pub member: usize,
    /// Number of entries of the user's quantity that it stands for.
    pub multiplicity: f64,
}

/// The unrolled model.
#[derive(Clone, Debug)]
pub struct Unrolled {
    /// Graph of the nodes.
    pub graph: Graph,
    /// H, for a Hamiltonian model or a Poisson system.
    pub hamiltonian: Option<Node>,
    /// Gradient of H.
    pub hamiltonian_gradient: Gradient,
    /// H_p, for a Hamiltonian model.
    pub velocities: Vec<Node>,
    /// The sum Q of all forces; empty if there are none.
    pub force: Vec<Node>,
    /// The right-hand side of a state model.
    pub field: Vec<Node>,
    /// Matrix A of each rolling constraint, by rows over the positions.
    pub rolling: Vec<Vec<Vec<Node>>>,
    /// Scalars of each constraint.
    pub constraints: Vec<Vec<Scalar>>,
    /// Scalars of each integral.
    pub integrals: Vec<Vec<Scalar>>,
}

/// Checks that `model` can be unrolled.
///
/// # Errors
/// If it is larger than the stated limits.
pub fn fits(model: &Model) -> Result<(), TooLarge> {
    let size = model.unrolled_size();
    if size > LARGEST_UNROLLED {
        return Err(TooLarge { size, what: "operations", limit: LARGEST_UNROLLED });
    }
    let scalars: usize = model.constraints.iter().map(Quantity::scalars).sum();
    if scalars > MOST_CONSTRAINTS {
        return Err(TooLarge {
            size: scalars,
            what: "scalar constraints",
            limit: MOST_CONSTRAINTS,
        });
    }
    Ok(())
}

/// Unrolls `model`.
///
/// # Errors
/// If it is larger than the stated limits.
pub fn unroll(model: &Model) -> Result<Unrolled, TooLarge> {
    fits(model)?;
    let mut graph = Graph::new();
    let g = &mut graph;
    let (mut hamiltonian, mut hamiltonian_gradient, mut field) = (None, Vec::new(), Vec::new());
    let (mut velocities, mut force) = (Vec::new(), Vec::new());
    let rolling = model.rollings.iter().map(|of| velocity_slopes(g, model, of)).collect();
    match &model.dynamics {
        Dynamics::Hamiltonian(h, _) => {
            let node = h.unroll(g)[0];
            hamiltonian = Some(node);
            hamiltonian_gradient = g.gradient(node);
            velocities = momentum_derivatives(g, &hamiltonian_gradient, model.degrees());
            if !model.forces.is_empty() {
                let following = model.following();
                let read = &mut |g: &mut Graph, k: usize| following.node(g, k, &velocities);
                force = model.force().unroll_over(g, read);
            }
        }
        Dynamics::Field(f) => match &model.poisson {
            Some(poisson) => {
                let node = poisson.hamiltonian.unroll(g)[0];
                hamiltonian = Some(node);
                hamiltonian_gradient = g.gradient(node);
                field = poisson.unroll(g, model.dimension(), &hamiltonian_gradient);
            }
            None => field = f.unroll(g),
        },
    }
    let constraints = model.constraints.iter().map(|q| scalars_of(g, q)).collect();
    let integrals = model.integrals.iter().map(|q| scalars_of(g, q)).collect();
    Ok(Unrolled {
        graph,
        hamiltonian,
        hamiltonian_gradient,
        velocities,
        force,
        field,
        rolling,
        constraints,
        integrals,
    })
}

/// Derivatives of a rolling constraint by the velocities.
fn velocity_slopes(g: &mut Graph, model: &Model, rolling: &Rolling) -> Vec<Vec<Node>> {
    let (first, n) = (model.following().velocities, model.degrees());
    let (outputs, of) = (rolling.functional.unroll(g), &model.constraints[rolling.constraint]);
    let width = of.shape.len();
    let places = (0..of.members)
        .flat_map(|member| of.components.iter().map(move |c| member * width + c.offset));
    let slopes = |place: usize| {
        let mut row = vec![g.zero(); n];
        for (i, d) in g.gradient(outputs[place]) {
            if let Some(k) = (i as usize).checked_sub(first) {
                row[k] = d;
            }
        }
        row
    };
    places.map(slopes).collect()
}

impl Unrolled {
    /// Power of the forces for velocities q̇, with the explicit rate of H.
    pub fn power(&mut self, velocities: &[Node]) -> Node {
        let Unrolled { graph: g, force, hamiltonian, .. } = self;
        let of_forces = g.dot(force, velocities);
        let explicit = hamiltonian.map_or(g.zero(), |h| g.time_derivative(h));
        g.add(of_forces, explicit)
    }

    /// Σ Q ∂f/∂p of a function f with this gradient: its rate by the forces.
    pub fn forced_rate(&mut self, gradient: &Gradient) -> Node {
        let Unrolled { graph: g, velocities, force, .. } = self;
        let mut rate = g.zero();
        for &(i, d) in gradient {
            let of = (i as usize).checked_sub(velocities.len());
            if let Some(&force) = of.and_then(|k| force.get(k)) {
                let product = g.mul(force, d);
                rate = g.add(rate, product);
            }
        }
        rate
    }
}

fn scalars_of(g: &mut Graph, quantity: &Quantity) -> Vec<Scalar> {
    let outputs = quantity.functional.unroll(g);
    let width = quantity.shape.len();
    let mut scalars = Vec::with_capacity(quantity.scalars());
    for member in 0..quantity.members {
        for component in &quantity.components {
            let node = outputs[member * width + component.offset];
            scalars.push(Scalar {
                node,
                gradient: g.gradient(node),
                member,
                multiplicity: component.multiplicity,
            });
        }
    }
    scalars
}
