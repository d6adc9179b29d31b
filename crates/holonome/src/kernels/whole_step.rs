//! Whole steps as tapes: explicit Runge–Kutta steps of `holonome_integrate`, traced, Taylor steps,
//! and the treatment of results.

use super::formula::Formula;
use super::mending::Mended;
use super::settling::Settling;
use super::taylor::Taylor;
use super::tracing::TracingSpace;
use super::vectors::StateVectors;
use super::watching::Watching;
use holonome_integrate::controller::{Measured, Yardstick, squared_error};
use holonome_integrate::fixed_point;
use holonome_integrate::scales::{Kept, advance, lagged_errors};
use holonome_integrate::scheme::collocation::Collocation;
use holonome_integrate::scheme::explicit_rk::{ExplicitStages, attempt, fixed_step, vector_count};
use holonome_integrate::scheme::map::{Facts, StepFrom};
use holonome_integrate::space::Space;
use holonome_integrate::tableau::{LaggedEstimate, Tableau};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::{Value, nodes};
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;

/// Scheme whose whole steps, or the treatment of whose results, are formulas.
#[derive(Clone, Copy)]
pub enum Recorded<'a> {
    RungeKutta(&'static Tableau),
    Taylor(&'a Taylor),
    /// Steps found by iteration: x₁ and the estimate of its error are the last states.
    Iterated(&'static Collocation),
}

impl Recorded<'_> {
    /// Facts about the scheme.
    pub fn facts(self) -> Facts {
        match self {
            Recorded::RungeKutta(tableau) => Facts::of_tableau(tableau),
            Recorded::Taylor(taylor) => taylor.facts(),
            Recorded::Iterated(collocation) => fixed_point::facts(collocation),
        }
    }

    /// Evaluations of the field that count for an equal step, and for an attempt, without a first
    /// stage that is known (FSAL).
    pub fn evaluations(self) -> [u64; 2] {
        match self {
            Recorded::RungeKutta(tableau) => {
                [tableau.stages_of_step, tableau.stages - usize::from(tableau.first_same_as_last)]
                    .map(|n| n as u64)
            }
            Recorded::Taylor(taylor) => taylor.evaluations(),
            // Evaluations of the iteration are counted where it is made.
            Recorded::Iterated(_) => [0; 2],
        }
    }
}

/// Inputs from which a step is made.
pub struct Ingredients<'a> {
    /// The scheme.
    pub scheme: Recorded<'a>,
    /// Length n of the state.
    pub dimension: usize,
    /// Number of parameters.
    pub parameters: usize,
    /// X(t, x).
    pub field: &'a Formula,
    /// Vectors of the state, and the scales of them that equal steps carry.
    pub vectors: &'a StateVectors,
    pub kept: Kept,
}

impl Ingredients<'_> {
    pub(super) fn states(&self, g: &mut Graph) -> Vec<Node> {
        (0..self.dimension).map(|i| g.state(i)).collect()
    }

    /// x₁ of an equal step whose first stage is `k0`, and the vectors for
    /// [`Ingredients::estimates`]. The results of an iteration are the states from `behind` on.
    fn equal_step(
        &self,
        space: &mut TracingSpace,
        from: StepFrom<Node>,
        k0: Vec<Node>,
        behind: usize,
    ) -> (Vec<Node>, Vec<Vec<Node>>) {
        let g = &mut space.graph;
        match self.scheme {
            Recorded::RungeKutta(tableau) => {
                let mut kept = kept(tableau, g, k0);
                let mut x1 = from.x.to_vec();
                fixed_step(
                    tableau,
                    space,
                    from,
                    &mut ExplicitStages::of(tableau, &mut kept),
                    &mut x1,
                );
                kept.truncate(tableau.stage_count());
                (x1, kept)
            }
            Recorded::Taylor(taylor) => {
                let (c, one) = (taylor.coefficients(g, (from.t, from.h), from.x), g.one());
                (Taylor::value(g, &c, one), vec![taylor.estimate(g, &c, (one, from.h))])
            }
            Recorded::Iterated(_) => {
                let n = self.dimension;
                let [x1, error] = [behind, behind + n]
                    .map(|first| (first..first + n).map(|k| g.state(k)).collect());
                (x1, vec![error])
            }
        }
    }

    /// Estimates of an equal step's error, without their factor h.
    fn estimates(&self, space: &mut TracingSpace, k: &[Vec<Node>]) -> Vec<Vec<Node>> {
        let Recorded::RungeKutta(tableau) = self.scheme else { return k.to_vec() };
        let mut estimate = |weights: &[f64]| {
            let mut out = k[0].clone();
            space.weighted_sum(&mut out, weights, k);
            out
        };
        tableau.error.iter().map(|error| estimate(&error.weights)).collect()
    }

    /// Part of the error of equal steps that only the next step knows.
    pub fn lagged(&self) -> Option<&'static LaggedEstimate> {
        match self.scheme {
            Recorded::RungeKutta(tableau) => tableau.lagged.as_ref(),
            Recorded::Taylor(_) | Recorded::Iterated(_) => None,
        }
    }

    /// Tape of one of many equal steps: a map of (x, largest deviations, sides of events, carried
    /// numbers, number of the step) to itself. The step and the start time are parameters after the others. `first`
    /// computes X and then the deviations of members of the `count` groups, whose numbers are
    /// `groups`, both at the start of the step, where they share common parts; there `watching` looks
    /// at the functions of events. `settling` treats the result, with the targets F₀ in parameters from number `targets` on.
    ///
    /// If results are treated, the carried numbers are the scales of the vectors and the largest
    /// [`Mended::unsettled`]. The number of the step is there only if something depends on the
    /// time.
    pub fn repeated(
        &self,
        first: &Formula,
        (groups, count): (&[usize], usize),
        watching: &Watching,
        (settling, targets): (Option<&Settling>, usize),
    ) -> Tape {
        let (n, sides) = (self.dimension, watching.count());
        let mend = settling.and_then(|settling| Some((settling, settling.mending.as_deref()?)));
        let counts = first.reads_time()
            || watching.reads_time()
            || mend.is_some_and(|(_, mend)| mend.formula.reads_time());
        let carried = if mend.is_some() { self.kept.carried(&self.vectors.vectors) + 1 } else { 0 };
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t0) = (g.parameter(self.parameters), g.parameter(self.parameters + 1));
        let one = g.one();
        let behind = n + count + sides;
        let number = if counts { g.state(behind + carried) } else { g.zero() };
        let next = g.add(number, one);
        let (t, t1) = (g.fma(number, h, t0), g.fma(next, h, t0));
        let mut known = first.at(g, t, &x);
        let deviations = known.split_off(n);
        let known_sides: Vec<Node> = (n + count..behind).map(|k| g.state(k)).collect();
        let kept_sides = watching.at(g, (t, &x, h), &known_sides);
        let len = behind + carried + usize::from(counts);
        let (mut x1, k) = self.equal_step(&mut space, StepFrom { t, h, x: &x }, known, len);
        let mut carry = Vec::new();
        if let Some((settling, mend)) = mend {
            let carried: Vec<Node> = (0..carried).map(|k| space.graph.state(behind + k)).collect();
            let (largest, carried) = carried.split_last().expect("the last of them is no scale");
            carry = self.equal_step_scales(&mut space, h, &k, &x1, carried);
            let g = &mut space.graph;
            x1.extend(settling.targets(g, |g, row| g.parameter(targets + row)));
            let Mended { x, unsettled } = mend.at_end(g, t1, &x1, &carry[mend.scales.clone()]);
            carry.push(g.largest(unsettled, *largest));
            x1 = x;
        }
        let g = &mut space.graph;
        let mut largest: Vec<Node> = (0..count).map(|i| g.state(n + i)).collect();
        for (&deviation, &group) in deviations.iter().zip(groups) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        let mut outputs = [x1, largest, kept_sides, carry].concat();
        if counts {
            outputs.push(next);
        }
        let stages = if matches!(self.scheme, Recorded::Iterated(_)) { 2 * n } else { 0 };
        Tape::of_fused(g, &outputs, len + stages, self.parameters + 2)
    }

    /// Scales after an equal step.
    fn equal_step_scales(
        &self,
        space: &mut TracingSpace,
        h: Node,
        k: &[Vec<Node>],
        x1: &[Node],
        carried: &[Node],
    ) -> Vec<Node> {
        let (vectors, count) = (&self.vectors.vectors, self.vectors.vectors.count());
        let lagged = self.lagged().filter(|_| self.kept.weights);
        let known = self.kept.weights && lagged.is_none();
        let estimates = if known { self.estimates(space, k) } else { Vec::new() };
        let (carry, estimate) = space.graph.record(|r| {
            let (h, mut carry) = (r.value(h), r.values(carried));
            let (kept, rest) = carry.split_at_mut(count);
            let (weights, pending) = rest.split_at_mut(rest.len().min(count));
            let (mut sizes, mut errors) = (kept.to_vec(), kept.to_vec());
            vectors.squares(&r.values(x1), &mut sizes);
            if known {
                let estimates: Vec<Vec<Value>> = estimates.iter().map(|e| r.values(e)).collect();
                let yardstick =
                    Yardstick { rtol: r.constant(1.0), vectors, norms: kept, rounding: &[] };
                let measured = &mut Measured { sizes: &mut sizes, errors: &mut errors };
                squared_error(h, &estimates, &r.values(x1), yardstick, measured);
            }
            if let Some(lagged) = lagged {
                let first = r.values(&k[0]);
                lagged_errors((vectors, h), lagged.next, &first, pending, &mut errors);
            }
            advance(kept, weights, &sizes, &errors);
            (nodes(&[&*kept, weights].concat()), nodes(pending))
        });
        let Some(lagged) = lagged else { return carry };
        let mut pending = estimate;
        space.weighted_sum(&mut pending, &lagged.weights, k);
        [carry, pending].concat()
    }

    /// Tape of an attempted step of a Runge–Kutta method from (x, h), and for an FSAL method the
    /// first stage. The outputs are x₁ and what `TableauMap` keeps of an attempt: all stages of the
    /// step, and the estimates of its error.
    pub fn attempt(&self, tableau: &'static Tableau) -> Tape {
        let n = self.dimension;
        let mut space = TracingSpace::new(self.field);
        let g = &mut space.graph;
        let x = self.states(g);
        let (h, t) = (g.state(n), g.input(holonome_model::graph::Input::Time));
        let first =
            tableau.first_same_as_last.then(|| (0..n).map(|i| g.state(n + 1 + i)).collect());
        let (x1, mut kept) = self.attempted(tableau, &mut space, StepFrom { t, h, x: &x }, first);
        let ExplicitStages { k, errors, .. } = ExplicitStages::of(tableau, &mut kept);
        let outputs = [&[x1], &k[..tableau.stages], &errors[..]].concat().concat();
        Tape::of_fused(&space.graph, &outputs, self.attempt_inputs(tableau), self.parameters)
    }

    /// Attempted step, with its first stage if that is known: x₁, and the vectors that the step
    /// keeps.
    pub(super) fn attempted(
        &self,
        tableau: &'static Tableau,
        space: &mut TracingSpace,
        from: StepFrom<Node>,
        first: Option<Vec<Node>>,
    ) -> (Vec<Node>, Vec<Vec<Node>>) {
        let k0 = first.unwrap_or_else(|| self.field.at(&mut space.graph, from.t, from.x));
        let mut kept = kept(tableau, &mut space.graph, k0);
        let mut x1 = from.x.to_vec();
        attempt(tableau, space, from, &mut ExplicitStages::of(tableau, &mut kept), &mut x1);
        (x1, kept)
    }

    /// Length of the inputs of an attempt.
    pub fn attempt_inputs(&self, tableau: &Tableau) -> usize {
        self.dimension + 1 + if tableau.first_same_as_last { self.dimension } else { 0 }
    }
}

/// Vectors that a step keeps: the first stage `k0`, and zeros for the others.
fn kept(tableau: &Tableau, g: &mut Graph, k0: Vec<Node>) -> Vec<Vec<Node>> {
    let mut kept = vec![vec![g.zero(); k0.len()]; vector_count(tableau)];
    kept[0] = k0;
    kept
}

/// Tape of a step of `field` of any length h, without an error estimate: from (x, h) at t to x₁,
/// and `monitored` at (t, x).
pub fn single_step(tableau: &'static Tableau, field: &Field, monitored: &[Node]) -> Tape {
    let n = field.dimension;
    let formula = Formula::new(&field.graph, &field.field);
    let mut space = TracingSpace::new(&formula);
    let g = &mut space.graph;
    let x: Vec<Node> = (0..n).map(|i| g.state(i)).collect();
    let (h, t) = (g.state(n), g.input(holonome_model::graph::Input::Time));
    let monitored = Formula::new(&field.graph, monitored).at(g, t, &x);
    let mut kept = vec![x.clone(); vector_count(tableau)];
    kept[0] = formula.at(g, t, &x);
    let mut x1 = x.clone();
    fixed_step(
        tableau,
        &mut space,
        StepFrom { t, h, x: &x },
        &mut ExplicitStages::of(tableau, &mut kept),
        &mut x1,
    );
    Tape::of_fused(&space.graph, &[x1, monitored].concat(), n + 1, field.parameters)
}
