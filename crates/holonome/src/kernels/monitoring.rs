//! Monitoring of invariants by formulas, for unrolled systems, with the sizes of the terms that
//! cancel in them.

use super::bound::WideBound;
use super::formula::Formula;
use super::system::{group as group_of, kind as kind_of};
use super::whole_step::{Settled, Settling};
use crate::policy::SMALL_SYSTEM;
use holonome_arithmetic::Real;
use holonome_integrate::scales::Vectors;
use holonome_integrate::terms::{TermsOfRow, first_momentum, floor_of, has_loss};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::Value;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::{Field, InvariantGroup};
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

/// Tape from (x, F₀) to F and the largest deviation of every group there, behind x. If the result
/// is mended, scales and the limit of a correction follow F₀, and [`Settled::unsettled`] the
/// deviations.
pub(super) fn settling_tape(field: &Field, settling: &Settling) -> Tape {
    let (n, m) = (field.dimension, field.invariants.len());
    let mut g = Graph::new();
    let t = g.input(holonome_model::graph::Input::Time);
    let (scales, mends) = (settling.scales().len(), settling.mend().is_some());
    let states = n + m + scales + usize::from(mends);
    let inputs: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
    let (x, rest) = inputs.split_at(n + m);
    let limit = if mends { rest[scales] } else { g.zero() };
    let Settled { x, values, largest, unsettled } =
        settling.treated(&mut g, t, x, (&rest[..scales], limit, 1));
    let mut outputs = [x, values, largest].concat();
    if settling.mend().is_some() {
        outputs.push(unsettled);
    }
    Tape::of_fused(&g, &outputs, states, field.parameters)
}

/// Tape from (x, F₀) and the squared sizes of the vectors to the largest deviation of every group,
/// the size of its terms and its content. These are as `holonome_integrate::terms::raise_terms`
/// finds them for vectors of these sizes, 0 where a gradient is not known.
pub(super) fn monitor_tape(field: &Field, vectors: &Vectors) -> Tape {
    let (n, m) = (field.dimension, field.invariants.len());
    let (settling, states) = (Settling::new(field, None), n + m + vectors.count());
    let mut measured = field.graph.clone();
    let terms = measured.record(|r| {
        let x = r.states(0..n);
        let sizes: Vec<Value> =
            r.states(n + m..states).iter().map(|square| square.sqrt()).collect();
        let mut largest = sizes.clone();
        vectors.raise_to_kind(&mut largest);
        let vector_of: Vec<usize> = (0..n).map(|component| vectors.vector_of(component)).collect();
        let row = |row: usize| TermsOfRow {
            value: r.value(field.invariants[row]),
            target: r.state(n + row),
            entries: field.jacobian[row].iter().map(|&(k, entry)| (k as usize, r.value(entry))),
        };
        let known = |group: &InvariantGroup| {
            group.members.rows().all(|(row, _)| !field.jacobian[row].is_empty())
        };
        let of_group = |group: &InvariantGroup| {
            let (floor, known, group) =
                (floor_of(kind_of(group.kind)), known(group), group_of(group));
            let size = |column: usize| {
                let vector = vector_of[column];
                if floor == 0.0 {
                    sizes[vector]
                } else {
                    (largest[vector] * floor).largest(sizes[vector])
                }
            };
            let content = |k: usize| {
                let largest = |column: usize| largest[vector_of[column]];
                row(k).content((group.kind, first_momentum(vectors)), |column| x[column], largest)
            };
            let zero = r.constant(0.0);
            let scale = group.largest_member(|k| row(k).size(size)).filter(|_| known);
            let content =
                (known && has_loss(&group)).then(|| group.largest_member(content)).flatten();
            [scale, content].map(|found| found.unwrap_or(zero))
        };
        let found: Vec<[Value; 2]> = field.groups.iter().map(of_group).collect();
        [0, 1].map(|k| found.iter().map(|found| found[k].node()).collect::<Vec<Node>>()).concat()
    });
    let formula = Formula::new(&measured, &terms);
    let mut g = Graph::new();
    let t = g.input(holonome_model::graph::Input::Time);
    let inputs: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
    let terms = formula.at(&mut g, t, &inputs);
    let Settled { largest, .. } = settling.at(&mut g, t, &inputs[..n + m], &[]);
    Tape::of_fused(&g, &[largest, terms].concat(), states, field.parameters)
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
