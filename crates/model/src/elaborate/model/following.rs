//! What follows from the state along the motion, as inputs of a formula behind the state.

use super::Quantity;
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Node};

/// Places of what follows from the state along the motion and stands behind it among the inputs of
/// a formula: multipliers, then velocities, then accelerations, then reactions: for each multiplier
/// the generalised forces on all positions of the constraint's member to which it belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// Place of the first multiplier: the length of the state.
    pub multipliers: usize,
    /// Place of the velocity of the first position.
    pub velocities: usize,
    /// Place of the acceleration of the first position.
    pub accelerations: usize,
    /// Place of the first reaction, on the first position.
    pub reactions: usize,
}

impl Following {
    /// Places behind a state of `dimension` numbers, `degrees` of them positions.
    pub fn new(constraints: &[Quantity], dimension: usize, degrees: usize) -> Following {
        let multipliers: usize = constraints.iter().map(|c| c.functional.outputs).sum();
        let velocities = dimension + multipliers;
        let accelerations = velocities + degrees;
        let reactions = accelerations + degrees;
        Following { multipliers: dimension, velocities, accelerations, reactions }
    }

    /// Number of positions.
    fn degrees(&self) -> usize {
        self.reactions - self.accelerations
    }

    /// Place of the reaction that a constraint's member causes on a position; `multiplier` is the
    /// place of its first multiplier.
    pub fn reaction(&self, multiplier: usize, position: usize) -> usize {
        self.reactions + (multiplier - self.multipliers) * self.degrees() + position
    }

    /// Number of a member's first multiplier, and of the position, of the reaction at a place.
    pub fn reaction_at(&self, place: usize) -> (usize, usize) {
        let number = place - self.reactions;
        (number / self.degrees(), number % self.degrees())
    }

    /// Node of input `k` of a formula over the state and what follows it, for given velocities.
    pub fn node(&self, g: &mut Graph, k: usize, velocities: &[Node]) -> Node {
        match k.checked_sub(self.velocities) {
            Some(of) => velocities[of],
            None => g.state(k),
        }
    }

    /// Number of inputs in all, for so many positions.
    pub fn end(&self, degrees: usize) -> usize {
        self.accelerations + degrees
    }
}

/// The components of a gradient by the momenta: the velocities, for that of H.
pub fn momentum_derivatives(g: &mut Graph, gradient: &Gradient, degrees: usize) -> Vec<Node> {
    let mut derivatives = vec![g.zero(); degrees];
    for &(i, d) in gradient {
        if let Some(derivative) = (i as usize).checked_sub(degrees).map(|k| &mut derivatives[k]) {
            *derivative = d;
        }
    }
    derivatives
}
