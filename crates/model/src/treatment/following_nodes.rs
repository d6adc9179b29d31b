//! What follows the state among the inputs of a formula, as nodes of an unrolled field.

use super::Field;
use crate::elaborate::model::{Following, Model};
use crate::functional::Functional;
use crate::graph::{Graph, Node};
use std::ops::Range;

/// Nodes in the place of inputs behind the state, those that some formulas read.
pub struct FollowingNodes {
    following: Following,
    /// Number of inputs that are given: the state, and the multipliers if a method finds them.
    given: usize,
    multipliers: Vec<Node>,
    velocities: Vec<Node>,
    accelerations: Vec<Node>,
    /// −Gᵀλ of the members of constraints, by the number of their first multiplier.
    reactions: Vec<Vec<Node>>,
}

impl FollowingNodes {
    /// What `functionals` read; `given` is the number of their inputs that are given.
    pub fn new(
        field: &mut Field,
        model: &Model,
        functionals: &[&Functional],
        given: usize,
    ) -> FollowingNodes {
        let following = model.following();
        let reads = |range: Range<usize>| {
            functionals.iter().any(|functional| functional.reads_state_within(&range))
        };
        let velocities = field.velocities_along(model);
        let accelerations = match reads(following.accelerations..following.reactions) {
            true => field.accelerations(&velocities),
            false => Vec::new(),
        };
        let multipliers = field.multipliers.clone();
        let reactions = Vec::new();
        let mut followed =
            FollowingNodes { following, given, multipliers, velocities, accelerations, reactions };
        if reads(following.reactions..usize::MAX) {
            followed.reactions = followed.all_reactions(&mut field.graph, model);
        }
        followed
    }

    /// Node of input `k`.
    pub fn node(&self, g: &mut Graph, k: usize) -> Node {
        let of = &self.following;
        match k {
            k if k < self.given => g.state(k),
            k if k < of.velocities => self.multipliers[k - of.multipliers],
            k if k < of.accelerations => self.velocities[k - of.velocities],
            k if k < of.reactions => self.accelerations[k - of.accelerations],
            k => {
                let (member, position) = of.reaction_at(k);
                self.reactions[member][position]
            }
        }
    }

    /// −Gᵀλ of each member of the constraints as stated, at the number of its first multiplier.
    fn all_reactions(&self, g: &mut Graph, model: &Model) -> Vec<Vec<Node>> {
        let (degrees, mut all) = (model.degrees(), Vec::new());
        for (number, constraint) in model.stated_constraints().iter().enumerate() {
            let rolling = model.rollings.iter().find(|rolling| rolling.constraint == number);
            // The rows of Gᵀ: of a rolling constraint, by the velocities.
            let (functional, first) = match rolling {
                Some(rolling) => (&rolling.functional, self.following.velocities),
                None => (&constraint.functional, 0),
            };
            let entries = functional.unroll(g);
            let width = constraint.shape.len();
            for member in entries.chunks(width) {
                let mut forces = vec![g.zero(); degrees];
                let number = all.len();
                for (k, &entry) in member.iter().enumerate() {
                    let lambda = self.node(g, self.following.multipliers + number + k);
                    for (i, slope) in g.gradient(entry) {
                        let place = (i as usize).checked_sub(first).filter(|&at| at < degrees);
                        if let Some(place) = place {
                            let force = g.mul(slope, lambda);
                            forces[place] = g.sub(forces[place], force);
                        }
                    }
                }
                all.push(forces);
                all.extend((1..width).map(|_| Vec::new()));
            }
        }
        all
    }
}
