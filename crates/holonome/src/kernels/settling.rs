//! Formulas at the end of a step: its result is mended, and the invariants are monitored.

use super::formula::Formula;
use super::mending::{Mend, Mending};
use super::monitoring::{Monitoring, group as group_of, kind as kind_of};
use super::vectors::StateVectors;
use super::watching::Watching;
use holonome_arithmetic::Real;
use holonome_integrate::scales::Vectors;
use holonome_integrate::terms::{TermsOfRow, first_momentum, floor_of, has_loss};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::Value;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::correction::deviation;
use holonome_model::treatment::{Field, InvariantGroup};
use std::ops::Range;
use std::sync::Arc;

/// Formulas at the end of a step: the result is mended if the method does that by formulas, and
/// then F and the deviations are computed.
#[derive(Clone)]
pub struct Settling {
    pub(super) mending: Option<Arc<Mending>>,
    /// F and then the deviation of every member.
    monitor: Arc<Formula>,
    dimension: usize,
    rows: usize,
    constraints: usize,
    /// Group of every member.
    members: Vec<usize>,
    groups: usize,
    /// Functions of events, which loops of attempts watch.
    pub(super) watching: Watching,
}

/// Settled state as nodes.
pub struct Settled {
    /// x.
    pub x: Vec<Node>,
    /// F there.
    pub values: Vec<Node>,
    /// Largest deviation of every group there.
    pub largest: Vec<Node>,
    /// [`Mended::unsettled`]; 0 if nothing is mended.
    pub unsettled: Node,
}

impl Settling {
    /// Formulas over `field`; `mend` has the treatment of results and the vectors of the state.
    pub fn new(field: &Field, mend: Option<(Mend, &StateVectors)>) -> Settling {
        let (n, m) = (field.dimension, field.invariants.len());
        let target = |g: &mut Graph, row: usize| g.state(n + row);
        let mending = mend.map(|(mend, vectors)| Arc::new(Mending::new(field, vectors, mend)));
        let mut monitored = field.clone();
        let delta = deviation(&mut monitored, target);
        let (nodes, members) = Monitoring::of(field).deviations(&mut monitored, &delta);
        let mut roots = monitored.invariants.clone();
        roots.extend(nodes);
        let monitor = Arc::new(Formula::new(&monitored.graph, &roots));
        Settling {
            mending,
            monitor,
            dimension: n,
            rows: m,
            constraints: field.constraints,
            members,
            groups: field.groups.len(),
            watching: Watching::new(field),
        }
    }

    /// These formulas without the mending.
    pub fn monitoring(&self) -> Settling {
        Settling { mending: None, ..self.clone() }
    }

    /// F₀: 0 for constraints, and the values of `target` for the rows after them, by their number
    /// there.
    pub fn targets(&self, g: &mut Graph, target: impl Fn(&mut Graph, usize) -> Node) -> Vec<Node> {
        let mut targets = vec![g.zero(); self.constraints];
        targets.extend((0..self.rows - self.constraints).map(|row| target(g, row)));
        targets
    }

    /// Number of groups of invariants.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Treatment of a result.
    pub fn mend(&self) -> Option<Mend> {
        self.mending.as_ref().map(|mending| mending.mend)
    }

    /// Carried scales that the treatment takes.
    pub fn scales(&self) -> Range<usize> {
        self.mending.as_ref().map_or(0..0, |mending| mending.scales.clone())
    }

    /// Settled state of `inputs`, which are x and then F₀, at the end of a step, with the scales
    /// that the treatment takes.
    pub fn at(&self, g: &mut Graph, t: Node, inputs: &[Node], scales: &[Node]) -> Settled {
        let limit =
            self.mending.as_ref().map_or(f64::INFINITY, |mending| mending.largest_innovation);
        let limit = g.constant(limit);
        self.treated(g, t, inputs, (scales, limit, 1))
    }

    /// [`Settling::at`] within a step.
    pub fn within(&self, g: &mut Graph, t: Node, inputs: &[Node], scales: &[Node]) -> Settled {
        let limit = g.constant(f64::INFINITY);
        self.treated(g, t, inputs, (scales, limit, self.mend().map_or(0, Mend::passes_within)))
    }

    /// Settled state after some passes of the treatment with a limit.
    pub fn treated(
        &self,
        g: &mut Graph,
        t: Node,
        inputs: &[Node],
        (scales, limit, passes): (&[Node], Node, usize),
    ) -> Settled {
        let mut settled = inputs.to_vec();
        let mut unsettled = g.zero();
        for mending in self.mending.iter().cycle().take(passes) {
            let mended = mending.at(g, t, &settled, (scales, limit));
            settled[..self.dimension].copy_from_slice(&mended.x);
            unsettled = mended.unsettled;
        }
        let mut values = self.monitor.at(g, t, &settled);
        let deviations = values.split_off(self.rows);
        let mut largest = vec![g.zero(); self.groups];
        for (&deviation, &group) in deviations.iter().zip(&self.members) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        settled.truncate(self.dimension);
        Settled { x: settled, values, largest, unsettled }
    }
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
            group.members.rows().any(|(row, _)| !field.jacobian[row].is_empty())
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
