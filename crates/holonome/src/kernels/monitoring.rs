//! Monitoring of invariants by formulas, for unrolled systems, with the sizes of the terms that
//! cancel in them.

use super::bound::WideBound;
use crate::policy::SMALL_SYSTEM;
use holonome_integrate::system::{Group, GroupKind};
use holonome_model::graph::Node;
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind};
use std::sync::Arc;

/// Monitored groups of invariants: true for groups whose formulas give the squares of their
/// deviations.
#[derive(Clone, Debug)]
pub(crate) struct Monitoring {
    squares: Arc<[bool]>,
}

impl Monitoring {
    pub(crate) fn of(field: &Field) -> Monitoring {
        let squares = field.groups.iter().map(|g| g.members.has_wide()).collect();
        Monitoring { squares }
    }

    /// Turn the values of the formulas into deviations, in every lane.
    pub(crate) fn finish(&self, deviations: &mut [f64], lanes: usize) {
        for (group, _) in
            deviations.chunks_mut(lanes).zip(self.squares.iter()).filter(|(_, square)| **square)
        {
            group.iter_mut().for_each(|deviation| *deviation = deviation.sqrt());
        }
    }

    /// Deviation of every member from ΔF, or its square, with the group that the member belongs to.
    pub(crate) fn deviations(&self, field: &mut Field, delta: &[Node]) -> (Vec<Node>, Vec<usize>) {
        let (mut nodes, mut groups) = (Vec::new(), Vec::new());
        for (k, group) in field.groups.iter().enumerate() {
            for member in group.members.iter() {
                let g = &mut field.graph;
                let node = match member.single().filter(|_| !self.squares[k]) {
                    Some((row, weight)) => {
                        let root = g.constant(weight.sqrt());
                        g.mul(root, delta[row])
                    }
                    None => member.into_iter().fold(g.zero(), |sum, (row, weight)| {
                        let weight = g.constant(weight);
                        let weighted = g.mul(weight, delta[row]);
                        g.fma(weighted, delta[row], sum)
                    }),
                };
                nodes.push(node);
                groups.push(k);
            }
        }
        (nodes, groups)
    }
}

/// True if a field's invariants are monitored by formulas.
pub(super) fn is_small(field: &Field) -> bool {
    field.graph.reachable(&field.invariants).len() <= SMALL_SYSTEM
}

/// Monitor of groups of invariants in several lanes.
pub struct WideMonitor {
    pub(super) kernel: WideBound,
    pub(super) monitoring: Monitoring,
    /// Place of the first deviation among the outputs, and number of groups.
    pub(super) first: usize,
    pub(super) groups: usize,
}

impl WideMonitor {
    /// Deviations of every group in each of so many lanes, at t and the numbers (x, F₀).
    pub fn run<'o>(
        &self,
        lanes: usize,
        t: &[f64],
        inputs: &[f64],
        out: &'o mut [f64],
        work: &mut [f64],
    ) -> &'o [f64] {
        self.kernel.run(t, inputs, out, work);
        let deviations = &mut out[self.first * lanes..(self.first + self.groups) * lanes];
        self.monitoring.finish(deviations, lanes);
        deviations
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// Number of outputs per lane.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }
}

/// Description of a group for the numeric half.
pub(super) fn group(g: &InvariantGroup) -> Group {
    let group = Group::of(&g.name, kind(g.kind), g.members.clone());
    if g.monitored_only { group.monitored_only() } else { group }
}

/// Kind of a group for the numeric half.
pub(super) fn kind(kind: InvariantKind) -> GroupKind {
    match kind {
        InvariantKind::ModifiedEnergy => unreachable!("a field has no method"),
        InvariantKind::Constraint => GroupKind::Constraint,
        InvariantKind::Hidden(_) => GroupKind::Hidden,
        InvariantKind::Hamiltonian | InvariantKind::Penalised => GroupKind::Hamiltonian,
        InvariantKind::Integral => GroupKind::Integral,
    }
}
