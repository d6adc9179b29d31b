//! Mechanics of a model for structure-preserving methods: H with its derivatives, the constraints
//! and their fibres.

use super::structure::{ConstraintKind, Irregular, Structure};
use super::unrolled::{TooLarge, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Node};

/// Mechanics of a model as formulas of (t, x).
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// Graph of the nodes.
    pub graph: Graph,
    /// Length of the state.
    pub dimension: usize,
    /// Length n of q and of p; 0 for a state model, which has neither.
    pub degrees: usize,
    /// ẋ without constraints: (H_p, −H_q), or the model's own field.
    pub field: Vec<Node>,
    /// H; `None` for a state model.
    pub hamiltonian: Option<Node>,
    /// H_q and H_p; empty for a state model.
    pub gradient: Vec<Node>,
    /// V_q of the part of H that is called stiff, if any.
    pub stiff: Option<Vec<Node>>,
    /// Kind of the constraints.
    pub kind: ConstraintKind,
    /// Scalar constraints.
    pub constraints: Vec<Restriction>,
    /// Hidden constraints, one for each constraint; empty if the constraints are second class.
    pub hidden: Vec<Restriction>,
    /// First constraint along whose normal H does not depend on the momentum: no multiplier acts on
    /// it.
    pub degenerate: Option<String>,
}

/// A scalar constraint, or a hidden one.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// Name of the constraint, in a family with its indices: `link[3]`.
    pub name: String,
    /// Formula that must vanish.
    pub node: Node,
    /// Gradient of the formula.
    pub gradient: Gradient,
}

/// Reason why a model has no mechanics.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoMechanics {
    /// The model is too large to be unrolled.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The constraints are neither second class nor coisotropic.
    #[error(transparent)]
    Irregular(#[from] Irregular),
}

impl Mechanics {
    /// The mechanics of `model` with its unrolled form and its structure.
    pub fn new(model: &Model, mut unrolled: Unrolled, structure: Structure) -> Mechanics {
        let hamiltonian = model.is_hamiltonian();
        let degrees = if hamiltonian { model.degrees() } else { 0 };
        let g = &mut unrolled.graph;
        let full = |g: &mut Graph, sparse: &Gradient| {
            let mut gradient = vec![g.zero(); 2 * degrees];
            sparse.iter().for_each(|&(i, d)| gradient[i as usize] = d);
            gradient
        };
        let gradient = full(g, &unrolled.hamiltonian_gradient);
        let stiff = model.stiff.as_ref().map(|stiff| {
            let node = stiff.unroll(g)[0];
            let sparse = g.gradient(node);
            full(g, &sparse)[..degrees].to_vec()
        });
        let field = if hamiltonian {
            let forces: Vec<Node> = gradient[..degrees].iter().map(|&d| g.neg(d)).collect();
            [&gradient[degrees..], &forces].concat()
        } else {
            unrolled.field.clone()
        };
        let mut constraints = Vec::new();
        for (quantity, scalars) in model.constraints.iter().zip(&unrolled.constraints) {
            for scalar in scalars {
                let (name, gradient) =
                    (quantity.member_name(scalar.member), scalar.gradient.clone());
                constraints.push(Restriction { name, node: scalar.node, gradient });
            }
        }
        let tangent = structure.hidden.iter().position(|hidden| hidden.tangency);
        let degenerate = tangent.map(|k| constraints[k].name.clone());
        let hidden =
            constraints.iter().zip(structure.hidden).map(|(constraint, hidden)| Restriction {
                name: constraint.name.clone(),
                node: hidden.node,
                gradient: hidden.gradient,
            });
        let hidden = hidden.collect();
        let (dimension, kind) = (model.dimension(), structure.kind);
        let hamiltonian = unrolled.hamiltonian;
        Mechanics {
            graph: unrolled.graph,
            dimension,
            degrees,
            field,
            hamiltonian,
            gradient,
            stiff,
            kind,
            constraints,
            hidden,
            degenerate,
        }
    }
}
