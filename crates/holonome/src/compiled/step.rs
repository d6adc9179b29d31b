//! Whole steps as tapes: the explicit Runge–Kutta step of `holonome_integrate`, traced.

use super::Watching;
use super::formula::Formula;
use super::tracing::TracingSpace;
use holonome_integrate::scheme::explicit_rk::{Stages, attempt, fixed_step};
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::{corrected, deviation};

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
}

impl Ingredients<'_> {
    fn states(&self, g: &mut Graph) -> Vec<Node> {
        (0..self.dimension).map(|i| g.state(i)).collect()
    }

    /// Stages whose first one is `k0`; the others are empty yet.
    fn stages(&self, g: &mut Graph, k0: Vec<Node>) -> Stages<Vec<Node>> {
        let zero = g.zero();
        let mut stages = Stages::new(self.tableau, || vec![zero; self.dimension]);
        stages.k[0] = k0;
        stages
    }

    /// One of many equal steps: a map of (x, largest deviations, number of the step) to itself. The step and the
    /// start of time are parameters after the others. `first` gives X and then the deviations of the groups, both at
    /// the start of the step, where they share what they have in common; `correct` the corrected state.
    ///
    /// The number of the step is there only if something depends on the time.
    pub fn repeated(&self, first: &Formula, groups: &[usize], correct: Option<&Formula>) -> Tape {
        let n = self.dimension;
        let counts = first.reads_time() || correct.is_some_and(Formula::reads_time);
        let slots = groups.iter().max().map_or(0, |&last| last + 1);
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t0) = (g.parameter(self.parameters), g.parameter(self.parameters + 1));
        let one = g.one();
        let number = if counts { g.state(n + slots) } else { g.zero() };
        let next = g.add(number, one);
        let (t, t1) = (g.fma(number, h, t0), g.fma(next, h, t0));
        let mut known = first.at(g, t, &x);
        let deviations = known.split_off(n);
        let mut stages = self.stages(g, known);
        let mut x1 = x.clone();
        fixed_step(self.tableau, &mut space, t, h, &x, &mut stages, &mut x1);
        let g = &mut space.graph;
        if let Some(correct) = correct {
            x1 = correct.at(g, t1, &x1);
        }
        let mut largest: Vec<Node> = (0..slots).map(|i| g.state(n + i)).collect();
        for (&deviation, &group) in deviations.iter().zip(groups) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        let mut outputs = [x1, largest].concat();
        if counts {
            outputs.push(next);
        }
        Tape::of_fused(g, &outputs, n + slots + usize::from(counts), self.parameters + 2)
    }

    /// An attempted step from (x, h, t₁) and, where the last stage of one step is the first of the next, that one. The
    /// tolerances, relative and absolute, are parameters after the others. The outputs are x₁, the error and all stages.
    pub fn attempt(&self) -> Tape {
        let Attempted { mut space, x1, error, stages } = self.attempted();
        let mut outputs = x1;
        outputs.push(error);
        outputs.extend(stages.k.into_iter().take(self.tableau.stages).flatten());
        self.tape(&mut space, &outputs)
    }

    /// The same attempt with what follows if it is accepted. The outputs are the settled x₁, F and the deviations of the
    /// groups there, the size of x₁ before that (which is finite where x₁ is), the error, and the last stage where it is
    /// the next first one.
    pub fn settled_attempt(&self, settling: &Settling) -> Tape {
        let Attempted { mut space, x1, error, mut stages } = self.attempted();
        let g = &mut space.graph;
        let t1 = g.state(self.dimension + 1);
        let mut outputs = settling.at(g, t1, &x1);
        let zero = g.zero();
        let size = x1.iter().fold(zero, |size, &x| g.largest(x, size));
        outputs.extend([size, error]);
        if self.tableau.first_same_as_last {
            outputs.append(&mut stages.k[self.tableau.stages - 1]);
        }
        self.tape(&mut space, &outputs)
    }

    fn attempted(&self) -> Attempted<'_> {
        let n = self.dimension;
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t) = (g.state(n), g.input(holonome_model::graph::Input::Time));
        let known_first = self.tableau.first_same_as_last;
        let k0 = if known_first { (0..n).map(|i| g.state(n + 2 + i)).collect() } else { self.field.at(g, t, &x) };
        let mut stages = self.stages(g, k0);
        let mut x1 = x.clone();
        attempt(self.tableau, &mut space, t, h, &x, &mut stages, &mut x1);
        let error = error_norm(&mut space.graph, self.parameters, h, &stages.errors, &x, &x1);
        Attempted { space, x1, error, stages }
    }

    /// Length of what an attempt starts from.
    pub fn attempt_inputs(&self) -> usize {
        self.dimension + 2 + if self.tableau.first_same_as_last { self.dimension } else { 0 }
    }

    fn tape(&self, space: &mut TracingSpace, outputs: &[Node]) -> Tape {
        Tape::of_fused(&space.graph, outputs, self.attempt_inputs(), self.parameters + 2)
    }
}

/// An attempted step as nodes.
struct Attempted<'a> {
    space: TracingSpace<'a>,
    x1: Vec<Node>,
    error: Node,
    stages: Stages<Vec<Node>>,
}

/// The corrected x of `field`, whose targets F₀ are the nodes that `target` gives for rows that are no constraints.
pub fn correction(field: &Field, target: impl Fn(&mut Graph, usize) -> Node) -> Formula {
    let mut corrector = field.clone();
    let roots = corrected(&mut corrector, target);
    Formula::new(&corrector.graph, &roots)
}

/// What is done at the end of a step: a correction where the method has one, and then F and the deviations.
pub struct Settling {
    correct: Option<Formula>,
    /// F and then the deviation of every member.
    watch: Formula,
    rows: usize,
    /// The group of every member.
    members: Vec<usize>,
    groups: usize,
}

impl Settling {
    /// Over `field`, whose targets F₀ are the nodes that `target` gives for rows that are no constraints.
    pub fn new(field: &Field, correct: bool, target: impl Fn(&mut Graph, usize) -> Node) -> Settling {
        let correct = correct.then(|| correction(field, &target));
        let mut watched = field.clone();
        let delta = deviation(&mut watched, &target);
        let (nodes, members) = Watching::of(field).deviations(&mut watched, &delta);
        let mut roots = watched.invariants.clone();
        roots.extend(nodes);
        let watch = Formula::new(&watched.graph, &roots);
        Settling { correct, watch, rows: field.invariants.len(), members, groups: field.groups.len() }
    }

    /// The settled x with F and the largest deviation of every group there. `inputs` are x and, if the targets are states
    /// after x, these.
    pub fn at(&self, g: &mut Graph, t: Node, inputs: &[Node]) -> Vec<Node> {
        let mut settled = inputs.to_vec();
        if let Some(correct) = &self.correct {
            let x = correct.at(g, t, inputs);
            settled[..x.len()].copy_from_slice(&x);
        }
        let mut values = self.watch.at(g, t, &settled);
        let deviations = values.split_off(self.rows);
        let mut largest = vec![g.zero(); self.groups];
        for (&deviation, &group) in deviations.iter().zip(&self.members) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        [settled, values, largest].concat()
    }
}

/// `holonome_integrate::controller::error_norm` as nodes, for h > 0.
fn error_norm(g: &mut Graph, tolerances: usize, h: Node, errors: &[Vec<Node>], x0: &[Node], x1: &[Node]) -> Node {
    let n = x0.len();
    let (relative, absolute) = (g.parameter(tolerances), g.parameter(tolerances + 1));
    let tiny = g.constant(f64::MIN_POSITIVE);
    let least = g.add(absolute, tiny);
    let one = g.one();
    let mut sums = vec![[g.zero(); 4]; errors.len()];
    for i in 0..n {
        let zero = g.zero();
        let size = g.largest(x0[i], zero);
        let size = g.largest(x1[i], size);
        let scale = g.fma(relative, size, least);
        let inverse = g.div(one, scale);
        for (sum, error) in sums.iter_mut().zip(errors) {
            let ratio = g.mul(error[i], inverse);
            sum[i % 4] = g.fma(ratio, ratio, sum[i % 4]);
        }
    }
    let sums: Vec<Node> = sums
        .into_iter()
        .map(|[a, b, c, d]| {
            let (ab, cd) = (g.add(a, b), g.add(c, d));
            g.add(ab, cd)
        })
        .collect();
    let count = g.constant(n as f64);
    match sums[..] {
        [s5, s3] => {
            let (hundredth, tiny) = (g.constant(0.01), g.constant(f64::MIN_POSITIVE));
            let both = g.fma(hundredth, s3, s5);
            let both = g.add(both, tiny);
            let both = g.mul(both, count);
            let root = g.sqrt(both);
            let quotient = g.div(s5, root);
            g.mul(h, quotient)
        }
        [s] => {
            let mean = g.div(s, count);
            let root = g.sqrt(mean);
            g.mul(h, root)
        }
        _ => g.zero(),
    }
}
