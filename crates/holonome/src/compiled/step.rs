//! Whole steps as tapes: the explicit Runge–Kutta step of `holonome_integrate`, traced.

use super::formula::Formula;
use super::tracing::TracingSpace;
use holonome_integrate::scheme::explicit_rk::{Stages, attempt, fixed_step};
use holonome_integrate::tableau::Tableau;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};

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

    /// An attempted step from (x, h) and, where the last stage of one step is the first of the next, that one. The
    /// tolerances, relative and absolute, are parameters after the others. The outputs are x₁, the error, and the last
    /// stage where it is the next first one; with `dense` all stages instead of the last.
    pub fn attempt(&self, dense: bool) -> Tape {
        let n = self.dimension;
        let known_first = self.tableau.first_same_as_last;
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t) = (g.state(n), g.input(holonome_model::graph::Input::Time));
        let k0 = if known_first { (0..n).map(|i| g.state(n + 1 + i)).collect() } else { self.field.at(g, t, &x) };
        let mut stages = self.stages(g, k0);
        let mut x1 = x.clone();
        attempt(self.tableau, &mut space, t, h, &x, &mut stages, &mut x1);
        let g = &mut space.graph;
        let error = error_norm(g, self.parameters, h, &stages.errors, &x, &x1);
        let mut outputs = x1;
        outputs.push(error);
        if dense {
            stages.k.truncate(self.tableau.stages);
            outputs.extend(stages.k.into_iter().flatten());
        } else if known_first {
            outputs.append(&mut stages.k[self.tableau.stages - 1]);
        }
        let states = n + 1 + if known_first { n } else { 0 };
        Tape::of_fused(g, &outputs, states, self.parameters + 2)
    }
}

/// `holonome_integrate::controller::error_norm` as nodes, for h > 0.
fn error_norm(g: &mut Graph, tolerances: usize, h: Node, errors: &[Vec<Node>], x0: &[Node], x1: &[Node]) -> Node {
    let n = x0.len();
    let (relative, absolute) = (g.parameter(tolerances), g.parameter(tolerances + 1));
    let tiny = g.constant(f64::MIN_POSITIVE);
    let least = g.add(absolute, tiny);
    let one = g.one();
    let mut sums = vec![g.zero(); errors.len()];
    for i in 0..n {
        let zero = g.zero();
        let size = g.largest(x0[i], zero);
        let size = g.largest(x1[i], size);
        let scale = g.fma(relative, size, least);
        let inverse = g.div(one, scale);
        for (sum, error) in sums.iter_mut().zip(errors) {
            let ratio = g.mul(error[i], inverse);
            *sum = g.fma(ratio, ratio, *sum);
        }
    }
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
