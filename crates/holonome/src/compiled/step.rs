//! Whole steps as tapes: the explicit Runge–Kutta step of `holonome_integrate`, traced.

use super::Watching;
use super::formula::Formula;
use super::tracing::TracingSpace;
use super::vectors::StateVectors;
use holonome_integrate::scales::{UNIT_ROUND_OFF, Vectors, WEIGHT_MEMORY};
use holonome_integrate::scheme::explicit_rk::{Stages, attempt, fixed_step};
use holonome_integrate::space::Space;
use holonome_integrate::tableau::Tableau;
use holonome_integrate::treatment::correction::largest_innovation;
use holonome_model::graph::op::Binary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::{Corrected, CorrectionScales, corrected, deviation};
use std::ops::Range;
use std::sync::Arc;

/// What a step is made of.
pub struct Ingredients<'a> {
    /// The scheme.
    pub tableau: &'static Tableau,
    /// Length n of the state.
    pub dimension: usize,
    /// Number of parameters.
    pub parameters: usize,
    /// X(t, x).
    pub field: &'a Formula,
    /// The vectors of the state.
    pub vectors: &'a StateVectors,
}

impl Ingredients<'_> {
    pub(super) fn states(&self, g: &mut Graph) -> Vec<Node> {
        (0..self.dimension).map(|i| g.state(i)).collect()
    }

    /// Stages whose first one is `k0`; the others are empty yet.
    fn stages(&self, g: &mut Graph, k0: Vec<Node>) -> Stages<Vec<Node>> {
        let zero = g.zero();
        let mut stages = Stages::new(self.tableau, || vec![zero; self.dimension]);
        stages.k[0] = k0;
        stages
    }

    /// One of many equal steps: a map of (x, largest deviations, what is carried, number of the step) to itself. The step
    /// and the start of time are parameters after the others. `first` gives X and then the deviations of the groups, both
    /// at the start of the step, where they share what they have in common; `correct` the corrected state.
    ///
    /// What is carried are the scales of the vectors and the largest square of an innovation, where a correction takes them.
    /// The number of the step is there only if something depends on the time.
    pub fn repeated(&self, first: &Formula, groups: &[usize], correct: Option<&Formula>) -> Tape {
        let n = self.dimension;
        let counts = first.reads_time() || correct.is_some_and(Formula::reads_time);
        let slots = groups.iter().max().map_or(0, |&last| last + 1);
        let carried = if correct.is_some() { self.carried_by_equal_steps() + 1 } else { 0 };
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t0) = (g.parameter(self.parameters), g.parameter(self.parameters + 1));
        let one = g.one();
        let number = if counts { g.state(n + slots + carried) } else { g.zero() };
        let next = g.add(number, one);
        let (t, t1) = (g.fma(number, h, t0), g.fma(next, h, t0));
        let mut known = first.at(g, t, &x);
        let deviations = known.split_off(n);
        let mut stages = self.stages(g, known);
        let mut x1 = x.clone();
        fixed_step(self.tableau, &mut space, t, h, &x, &mut stages, &mut x1);
        let mut carry = Vec::new();
        if let Some(correct) = correct {
            let carried: Vec<Node> = (0..carried).map(|k| space.graph.state(n + slots + k)).collect();
            let (innovation, carried) = carried.split_last().expect("the innovation is carried, too");
            carry = self.equal_step_scales(&mut space, h, &stages, &x1, carried);
            let g = &mut space.graph;
            let count = self.vectors.vectors.count();
            let mut corrected = correct.at(g, t1, &[&x1[..], &carry[count..2 * count]].concat());
            let last = corrected.pop().expect("the innovation follows the state");
            carry.push(g.largest(last, *innovation));
            x1 = corrected;
        }
        let g = &mut space.graph;
        let mut largest: Vec<Node> = (0..slots).map(|i| g.state(n + i)).collect();
        for (&deviation, &group) in deviations.iter().zip(groups) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        let mut outputs = [x1, largest, carry].concat();
        if counts {
            outputs.push(next);
        }
        Tape::of_fused(g, &outputs, n + slots + carried + usize::from(counts), self.parameters + 2)
    }

    /// How many numbers equal steps carry of the scales.
    pub fn carried_by_equal_steps(&self) -> usize {
        let lagged = if self.tableau.lagged.is_some() { self.dimension } else { 0 };
        2 * self.vectors.vectors.count() + lagged
    }

    /// The scales after an equal step, as `holonome_integrate::run` finds them for a single one.
    fn equal_step_scales(
        &self,
        space: &mut TracingSpace,
        h: Node,
        stages: &Stages<Vec<Node>>,
        x1: &[Node],
        carried: &[Node],
    ) -> Vec<Node> {
        let (vectors, count) = (&self.vectors.vectors, self.vectors.vectors.count());
        let (sizes, rest) = carried.split_at(count);
        let (weights, pending) = rest.split_at(count);
        let Some(lagged) = &self.tableau.lagged else {
            let errors: Vec<Vec<Node>> = self
                .tableau
                .error
                .iter()
                .map(|error| {
                    let mut out = vec![x1[0]; self.dimension];
                    space.weighted_sum(&mut out, &error.weights, &stages.k);
                    out
                })
                .collect();
            let g = &mut space.graph;
            let one = g.one();
            let measured = error_norm(g, one, h, &errors, x1, sizes, vectors);
            return taken(g, sizes, weights, &measured);
        };
        let g = &mut space.graph;
        let next = g.constant(lagged.next);
        let estimate: Vec<Node> = stages.k[0].iter().zip(pending).map(|(&k, &p)| g.fma(next, k, p)).collect();
        let square_of_h = g.mul(h, h);
        let mut errors = squares(g, &estimate, vectors);
        for error in &mut errors {
            *error = g.mul(*error, square_of_h);
        }
        let measured = Measured { error: g.zero(), sizes: squares(g, x1, vectors), errors };
        let mut carry = taken(g, sizes, weights, &measured);
        let mut pending = estimate;
        space.weighted_sum(&mut pending, &lagged.weights, &stages.k);
        carry.append(&mut pending);
        carry
    }

    /// An attempted step from (x, h), where the last stage of one step is the first of the next that one, and what
    /// `Scales::norms` has. The relative tolerance is a parameter after the others. The outputs are x₁, the error, of every vector its
    /// squared length and its squared error, and all stages.
    pub fn attempt(&self) -> Tape {
        let n = self.dimension;
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t) = (g.state(n), g.input(holonome_model::graph::Input::Time));
        let first = self.tableau.first_same_as_last.then(|| (0..n).map(|i| g.state(n + 1 + i)).collect());
        let norms: Vec<Node> = (self.norms_from()..self.attempt_inputs()).map(|k| g.state(k)).collect();
        let Attempted { space, x1, measured, stages } = self.attempted(space, (t, h), (&x, first), &norms);
        let mut outputs = x1;
        outputs.push(measured.error);
        outputs.extend([measured.sizes, measured.errors].concat());
        outputs.extend(stages.k.into_iter().take(self.tableau.stages).flatten());
        Tape::of_fused(&space.graph, &outputs, self.attempt_inputs(), self.parameters + 1)
    }

    /// From (t, x) over h, with the first stage where it is known; `norms` are those of `Scales`.
    pub(super) fn attempted<'f>(
        &'f self,
        mut space: TracingSpace<'f>,
        (t, h): (Node, Node),
        (x, first): (&Vec<Node>, Option<Vec<Node>>),
        norms: &[Node],
    ) -> Attempted<'f> {
        let k0 = first.unwrap_or_else(|| self.field.at(&mut space.graph, t, x));
        let mut stages = self.stages(&mut space.graph, k0);
        let mut x1 = x.clone();
        attempt(self.tableau, &mut space, t, h, x, &mut stages, &mut x1);
        let g = &mut space.graph;
        let rtol = g.parameter(self.parameters);
        let measured = error_norm(g, rtol, h, &stages.errors, &x1, norms, &self.vectors.vectors);
        Attempted { space, x1, measured, stages }
    }

    /// Where S² stands in what an attempt starts from.
    pub fn norms_from(&self) -> usize {
        self.dimension + 1 + if self.tableau.first_same_as_last { self.dimension } else { 0 }
    }

    /// Length of what an attempt starts from.
    pub fn attempt_inputs(&self) -> usize {
        self.norms_from() + self.vectors.vectors.norms()
    }
}

/// An attempted step as nodes.
pub(super) struct Attempted<'a> {
    pub space: TracingSpace<'a>,
    pub x1: Vec<Node>,
    pub measured: Measured,
    pub stages: Stages<Vec<Node>>,
}

/// The corrected x of `field` and the square of the innovation. The targets F₀ are the nodes that `target` gives for rows
/// that are no constraints; w² of the vectors are states from number `weights_from` on.
pub fn correction(
    field: &Field,
    vectors: &StateVectors,
    weights_from: usize,
    target: impl Fn(&mut Graph, usize) -> Node,
) -> Formula {
    let mut corrector = field.clone();
    let count = vectors.vectors.count();
    let weights: Vec<Node> = (0..count).map(|k| corrector.graph.state(weights_from + k)).collect();
    let largest_innovation = largest_innovation(count);
    let families: Vec<Range<usize>> = vectors.vectors.families().iter().map(|family| family.vectors.clone()).collect();
    let (vector_of, weights, families) = (&vectors.vector_of[..], &weights[..], &families[..]);
    let scales = CorrectionScales { vector_of, weights, families, largest_innovation };
    let Corrected { mut x, innovation } = corrected(&mut corrector, &scales, target);
    x.push(innovation);
    Formula::new(&corrector.graph, &x)
}

/// What is done at the end of a step: a correction where the method has one, and then F and the deviations.
#[derive(Clone)]
pub struct Settling {
    correct: Option<Arc<Formula>>,
    /// F and then the deviation of every member.
    watch: Arc<Formula>,
    dimension: usize,
    rows: usize,
    constraints: usize,
    /// The group of every member.
    members: Vec<usize>,
    groups: usize,
}

/// A settled state as nodes.
pub struct Settled {
    /// x.
    pub x: Vec<Node>,
    /// F there.
    pub values: Vec<Node>,
    /// The largest deviation of every group there.
    pub largest: Vec<Node>,
    /// The square of the innovation, 0 without a correction.
    pub innovation: Node,
}

impl Settling {
    /// Over `field`, with a correction where there are `vectors`.
    pub fn new(field: &Field, correct: Option<&StateVectors>) -> Settling {
        let (n, m) = (field.dimension, field.invariants.len());
        let target = |g: &mut Graph, row: usize| g.state(n + row);
        let correct = correct.map(|vectors| Arc::new(correction(field, vectors, n + m, target)));
        let mut watched = field.clone();
        let delta = deviation(&mut watched, target);
        let (nodes, members) = Watching::of(field).deviations(&mut watched, &delta);
        let mut roots = watched.invariants.clone();
        roots.extend(nodes);
        let watch = Arc::new(Formula::new(&watched.graph, &roots));
        let (constraints, groups) = (field.constraints, field.groups.len());
        Settling { correct, watch, dimension: n, rows: m, constraints, members, groups }
    }

    /// The same without a correction.
    pub fn watching(&self) -> Settling {
        Settling { correct: None, ..self.clone() }
    }

    /// F₀: 0 for constraints, and what `target` gives for the rows behind them, by their number there.
    pub fn targets(&self, g: &mut Graph, target: impl Fn(&mut Graph, usize) -> Node) -> Vec<Node> {
        let mut targets = vec![g.zero(); self.constraints];
        targets.extend((0..self.rows - self.constraints).map(|row| target(g, row)));
        targets
    }

    /// Number of groups of invariants.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Whether there is a correction.
    pub fn corrects(&self) -> bool {
        self.correct.is_some()
    }

    /// What `inputs` settle to: x, then F₀, then w² where there is a correction.
    pub fn at(&self, g: &mut Graph, t: Node, inputs: &[Node]) -> Settled {
        let mut settled = inputs.to_vec();
        let mut innovation = g.zero();
        if let Some(correct) = &self.correct {
            let mut x = correct.at(g, t, inputs);
            innovation = x.pop().expect("the innovation follows the state");
            settled[..x.len()].copy_from_slice(&x);
        }
        let mut values = self.watch.at(g, t, &settled);
        let deviations = values.split_off(self.rows);
        let mut largest = vec![g.zero(); self.groups];
        for (&deviation, &group) in deviations.iter().zip(&self.members) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        settled.truncate(self.dimension);
        Settled { x: settled, values, largest, innovation }
    }
}

/// What an attempted step tells of its vectors, as nodes: see `holonome_integrate::controller`.
pub(super) struct Measured {
    pub error: Node,
    sizes: Vec<Node>,
    errors: Vec<Node>,
}

/// |v_b|² of every vector, in the order of `holonome_integrate::scales::square`.
fn squares(g: &mut Graph, v: &[Node], vectors: &Vectors) -> Vec<Node> {
    let mut square = |vector: usize| {
        let components = vectors.components_of(vector);
        let Some((&first, rest)) = v[components].split_first() else { return g.zero() };
        let square = g.mul(first, first);
        rest.iter().fold(square, |sum, &v| g.fma(v, v, sum))
    };
    (0..vectors.count()).map(&mut square).collect()
}

/// σ² and w² after a step, as `holonome_integrate::scales::Scales::take` finds them; w² only where there are some.
pub(super) fn taken(g: &mut Graph, sizes: &[Node], weights: &[Node], measured: &Measured) -> Vec<Node> {
    let mut taken: Vec<Node> = measured.sizes.iter().zip(sizes).map(|(&size, &kept)| g.largest(size, kept)).collect();
    let (unit, memory) = (g.constant(UNIT_ROUND_OFF * UNIT_ROUND_OFF), g.constant(WEIGHT_MEMORY));
    for (vector, &weight) in weights.iter().enumerate() {
        let fresh = g.fma(unit, taken[vector], measured.errors[vector]);
        let faded = g.mul(memory, weight);
        taken.push(g.largest(fresh, faded));
    }
    taken
}

/// `holonome_integrate::controller::error_norm` as nodes, for h > 0.
fn error_norm(
    g: &mut Graph,
    rtol: Node,
    h: Node,
    errors: &[Vec<Node>],
    x1: &[Node],
    norms: &[Node],
    vectors: &Vectors,
) -> Measured {
    let sizes = squares(g, x1, vectors);
    let all: Vec<Vec<Node>> = errors.iter().map(|error| squares(g, error, vectors)).collect();
    let (square_of_tolerance, square_of_h) = (g.mul(rtol, rtol), g.mul(h, h));
    let tiny = g.constant(f64::MIN_POSITIVE);
    let mut sums = vec![[g.zero(); 4]; errors.len()];
    let (norms, floors) = norms.split_at(vectors.count());
    let first_momentum = vectors.count() - floors.len();
    let one = g.one();
    let per_square_of_h = g.div(one, square_of_h);
    for (vector, (&size, &norm)) in sizes.iter().zip(norms).enumerate() {
        let mut own = g.largest(size, norm);
        if vector >= first_momentum {
            let floor = g.mul(floors[vector - first_momentum], per_square_of_h);
            let under = g.binary(Binary::Less, own, floor);
            own = g.select(under, floor, own);
        }
        let scale = g.fma(own, square_of_tolerance, tiny);
        for (sum, squares) in sums.iter_mut().zip(&all) {
            let ratio = g.div(squares[vector], scale);
            sum[vector % 4] = g.add(sum[vector % 4], ratio);
        }
    }
    let sums: Vec<Node> = sums
        .into_iter()
        .map(|[a, b, c, d]| {
            let (ab, cd) = (g.add(a, b), g.add(c, d));
            g.add(ab, cd)
        })
        .collect();
    let count = g.constant(vectors.count().max(1) as f64);
    let (norm, factor) = match sums[..] {
        [s, s3] => {
            let hundredth = g.constant(0.01);
            let both = g.fma(hundredth, s3, s);
            let both = g.add(both, tiny);
            let product = g.mul(both, count);
            let root = g.sqrt(product);
            let part = g.div(s, both);
            (g.div(s, root), g.mul(square_of_h, part))
        }
        [s] => {
            let mean = g.div(s, count);
            (g.sqrt(mean), square_of_h)
        }
        _ => (g.zero(), g.zero()),
    };
    let errors = match all.first() {
        Some(squares) => squares.iter().map(|&square| g.mul(square, factor)).collect(),
        None => vec![g.zero(); sizes.len()],
    };
    Measured { error: g.mul(h, norm), sizes, errors }
}
