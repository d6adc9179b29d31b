//! Monitoring of invariants by formulas, for unrolled systems, with the sizes of the terms that
//! cancel in them.

use super::bound::WideBound;
use super::formula::Formula;
use super::system::{group as group_of, kind as kind_of_group};
use super::whole_step::{Settled, Settling};
use crate::policy::{FEW_INVARIANTS, SMALL_SYSTEM};
use holonome_integrate::scales::{Role, Vectors};
use holonome_integrate::system::GroupKind;
use holonome_integrate::terms::{ROUNDING, floor_of, has_loss};
use holonome_model::graph::op::Unary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::{Field, InvariantKind};
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

/// True if the results of steps are mended by formulas.
pub(super) fn mends(field: &Field) -> bool {
    (1..=FEW_INVARIANTS).contains(&field.invariants.len()) && is_small(field)
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
    let settling = Settling::new(field, None);
    let mut measured = field.graph.clone();
    let g = &mut measured;
    let zero = g.zero();
    let known = |(row, _): (usize, f64)| !field.jacobian[row].is_empty();
    let mut largest_of_groups = Vec::new();
    let mut contents = Vec::new();
    for group in &field.groups {
        let floors = floor_of(kind_of_group(group.kind));
        let sizes = component_sizes(g, vectors, n + m, floors);
        let largest = component_sizes(g, vectors, n + m, 1.0);
        let own: Vec<Node> = (0..n).map(|component| g.state(component)).collect();
        let judged = has_loss(&group_of(group));
        let (mut scale, mut content) = (zero, zero);
        for member in group.members.iter().filter(|_| group.members.rows().all(known)) {
            let (mut of_scale, mut of_content) = (zero, zero);
            for (row, weight) in member {
                let weight = g.constant(weight);
                let add = |g: &mut Graph, sum: Node, size: Node| {
                    let weighted = g.mul(weight, size);
                    g.fma(weighted, size, sum)
                };
                let terms = size_of_row(g, field, row, &sizes);
                of_scale = add(g, of_scale, terms);
                if judged {
                    let now = content_of_row(g, (field, row), group.kind, (vectors, &own));
                    let rounding = size_of_row(g, field, row, &largest);
                    let part = g.constant(ROUNDING);
                    let rounding = g.mul(part, rounding);
                    let target = g.state(n + row);
                    let now = g.largest(now, rounding);
                    let now = g.largest(target, now);
                    of_content = add(g, of_content, now);
                }
            }
            scale = g.largest(of_scale, scale);
            content = g.largest(of_content, content);
        }
        largest_of_groups.push(g.sqrt(scale));
        contents.push(g.sqrt(content));
    }
    let formula = Formula::new(g, &[largest_of_groups, contents].concat());
    let mut g = Graph::new();
    let t = g.input(holonome_model::graph::Input::Time);
    let states = n + m + vectors.count();
    let inputs: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
    let terms = formula.at(&mut g, t, &inputs);
    let Settled { largest, .. } = settling.at(&mut g, t, &inputs[..n + m], &[]);
    Tape::of_fused(&g, &[largest, terms].concat(), states, field.parameters)
}

/// |F_i| and the sum of its terms for components of these sizes.
fn size_of_row(g: &mut Graph, field: &Field, row: usize, sizes: &[Node]) -> Node {
    let mut sum = g.unary(Unary::Abs, field.invariants[row]);
    for &(column, entry) in &field.jacobian[row] {
        let (entry, size) =
            (g.unary(Unary::Abs, entry), g.unary(Unary::Abs, sizes[column as usize]));
        let term = g.mul(entry, size);
        sum = g.add(sum, term);
    }
    sum
}

/// |T| + |H − T| of an energy, the terms of another invariant, at the components `x`.
fn content_of_row(
    g: &mut Graph,
    (field, row): (&Field, usize),
    kind: InvariantKind,
    (vectors, x): (&Vectors, &[Node]),
) -> Node {
    if kind_of_group(kind) != GroupKind::Hamiltonian || vectors.conjugates() == 0 {
        return size_of_row(g, field, row, x);
    }
    let mut twice = g.zero();
    for &(column, entry) in
        field.jacobian[row].iter().filter(|(column, _)| *column as usize >= x.len() / 2)
    {
        twice = g.fma(entry, x[column as usize], twice);
    }
    let half = g.constant(0.5);
    let kinetic = g.mul(half, twice);
    let rest = g.sub(field.invariants[row], kinetic);
    let (kinetic, rest) = (g.unary(Unary::Abs, kinetic), g.unary(Unary::Abs, rest));
    g.add(kinetic, rest)
}

/// Size of every component's vector, or the part `floor` of the largest of its kind if that is
/// larger. The squared sizes of the vectors are states from number `first` on.
fn component_sizes(g: &mut Graph, vectors: &Vectors, first: usize, floor: f64) -> Vec<Node> {
    let (zero, floor) = (g.zero(), g.constant(floor));
    let sizes: Vec<Node> = (0..vectors.count())
        .map(|vector| {
            let square = g.state(first + vector);
            g.sqrt(square)
        })
        .collect();
    let mut floors = [zero; 2];
    for family in vectors.families() {
        if let Some(kind) = kind_of(family.role) {
            floors[kind] = family
                .vectors
                .clone()
                .fold(floors[kind], |most, vector| g.largest(sizes[vector], most));
        }
    }
    let floors = floors.map(|largest| g.mul(floor, largest));
    let mut components = vec![zero; vectors.dim()];
    for family in vectors.families() {
        for vector in family.vectors.clone() {
            let size = match kind_of(family.role) {
                Some(kind) => g.largest(floors[kind], sizes[vector]),
                None => sizes[vector],
            };
            components[vectors.components_of(vector)].fill(size);
        }
    }
    components
}

/// Kind of a vector: positions and momenta are measured against their largest.
fn kind_of(role: Role) -> Option<usize> {
    match role {
        Role::Position => Some(0),
        Role::Momentum => Some(1),
        Role::Other => None,
    }
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
