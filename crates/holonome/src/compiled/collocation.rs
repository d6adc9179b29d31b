//! The stages of a collocation method in the lanes of one vector: the field is evaluated at all of them at once, and sums
//! over stages spread one lane over all.

use super::bound::{Bound, Quantities, WideBound};
use super::formula::Formula;
use super::march::{self, AttemptLoop, Attempted, Begun};
use super::step::{Mend, Settling};
use super::vectors::StateVectors;
use super::watching::Watching;
use holonome_integrate::controller::Control;
use holonome_integrate::controller::slots::Slots;
use holonome_integrate::fixed_point::{Iterated, Judge, MOST_ITERATIONS, ROUNDING, SETTLED, Stages, Stop};
use holonome_integrate::plan::{AdaptiveSteps, Plan};
use holonome_integrate::scheme::collocation::Collocation;
use holonome_integrate::scheme::map::StepFrom;
use holonome_integrate::state::Cost;
use holonome_model::graph::aligned::first_aligned;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use std::ops::Range;

/// The stages of steps of a field, compiled.
#[derive(Clone)]
pub struct CompiledStages {
    collocation: &'static Collocation,
    dimension: usize,
    /// The first component of every vector, and their number.
    vectors: usize,
    /// From W, x and what is reached to the stages.
    start: WideBound,
    /// An iteration.
    iterate: WideBound,
    /// From the field at the stages to W.
    coefficients: WideBound,
}

/// Where the numbers of an iteration stand, each in all lanes.
struct Places {
    /// The stages.
    stages: Range<usize>,
    /// The field at them.
    field: Range<usize>,
    /// [`Iterated`]: the change, the two before, the first one, their count.
    iterated: usize,
    /// What the iteration does not change: x, h, t, [`Stop`], 1/S² of every vector.
    x: Range<usize>,
    h: usize,
    t: usize,
    stop: usize,
    scales: Range<usize>,
}

impl Places {
    fn new(n: usize, vectors: usize) -> Places {
        let first = 3 * n + 5;
        Places {
            stages: 0..n,
            field: n..2 * n,
            iterated: 2 * n,
            x: 2 * n + 5..first,
            h: first,
            t: first + 1,
            stop: first + 2,
            scales: first + 5..first + 5 + vectors,
        }
    }

    fn count(&self) -> usize {
        self.scales.end
    }
}

impl CompiledStages {
    /// Of steps of `field` with these parameters; `vector_of` gives the vector of every component.
    pub fn new(
        collocation: &'static Collocation,
        field: &Formula,
        vector_of: &[usize],
        parameters: &[f64],
    ) -> CompiledStages {
        let (n, s) = (vector_of.len(), collocation.stages);
        let vectors = vector_of.iter().max().map_or(0, |&last| last + 1);
        let wide = |tape: &Tape| WideBound::new(tape, s, &vec![0.0; tape.parameters]);
        let mut stages = CompiledStages {
            collocation,
            dimension: n,
            vectors,
            start: wide(&start(n, s)),
            iterate: wide(&iteration(field, vector_of, vectors, (parameters.len(), s))),
            coefficients: wide(&coefficients(n, s)),
        };
        stages.bind(parameters);
        stages
    }

    /// The same with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> CompiledStages {
        let mut stages = self.clone();
        stages.bind(parameters);
        stages
    }

    fn bind(&mut self, parameters: &[f64]) {
        let Collocation { nodes, sums, coefficients, .. } = self.collocation;
        for lane in 0..self.collocation.stages {
            self.iterate.rebind(lane, &[parameters, &sums[lane], &[nodes[lane]]].concat());
            self.coefficients.rebind(lane, &coefficients[lane]);
        }
    }

    fn places(&self) -> Places {
        Places::new(self.dimension, self.vectors)
    }

    /// The state of an iteration, and scratch.
    fn split<'w>(&self, work: &'w mut [f64]) -> (&'w mut [f64], &'w mut [f64]) {
        let first = first_aligned(work);
        work[first..].split_at_mut(self.places().count() * self.collocation.stages)
    }

    /// What the stages start from: W, x, what is reached.
    fn start_len(&self) -> usize {
        (2 * self.dimension + self.collocation.stages) * self.collocation.stages
    }
}

impl Stages for CompiledStages {
    fn work_len(&self) -> usize {
        let kernels = [&self.start, &self.iterate, &self.coefficients].map(WideBound::work_len);
        let kernels = kernels.into_iter().max().unwrap_or(0);
        // The state stands on a cache line.
        8 + self.places().count() * self.collocation.stages + self.start_len() + kernels
    }

    fn start(&self, StepFrom { t, h, x }: StepFrom, w: &[f64], reach: &[f64], scales: &[f64], work: &mut [f64]) {
        let (s, at) = (self.collocation.stages, self.places());
        let (state, work) = self.split(work);
        let (inputs, work) = work.split_at_mut(self.start_len());
        let (coefficients, rest) = inputs.split_at_mut(w.len());
        let (from, reached) = rest.split_at_mut(x.len() * s);
        coefficients.copy_from_slice(w);
        spread(x, s, from);
        reached.copy_from_slice(reach);
        state[at.x.start * s..at.x.end * s].copy_from_slice(from);
        spread(&[h, t], s, &mut state[at.h * s..at.stop * s]);
        spread(scales, s, &mut state[at.scales.start * s..at.scales.end * s]);
        self.start.run(reach, inputs, &mut state[..x.len() * s], work);
    }

    fn iterate(&self, stop: Stop, work: &mut [f64]) -> Iterated {
        let (s, at) = (self.collocation.stages, self.places());
        let (state, work) = self.split(work);
        let Iterated { count, change, before: [last, older], first } = Iterated::NONE;
        spread(&[change, last, older, first, f64::from(count)], s, &mut state[at.iterated * s..at.x.start * s]);
        spread(&[stop.enough, stop.too_far, stop.contraction], s, &mut state[at.stop * s..at.scales.start * s]);
        self.iterate.iterate(state, u64::from(MOST_ITERATIONS), work);
        let [change, last, older, first, count] = [0, 1, 2, 3, 4].map(|k| state[(at.iterated + k) * s]);
        Iterated { count: count as u32, change, before: [last, older], first }
    }

    fn coefficients(&self, w: &mut [f64], work: &mut [f64]) {
        let (s, at) = (self.collocation.stages, self.places());
        let (state, work) = self.split(work);
        let field = &state[at.field.start * s..at.field.end * s];
        self.coefficients.run(&field[..s], field, w, work);
    }
}

/// What follows an attempt, compiled.
pub struct CompiledJudge {
    kernel: Bound,
    slots: Slots,
    control: Control,
    watching: Watching,
    mend: Option<Mend>,
}

impl CompiledJudge {
    /// Of attempts of `plan` over `field`. The parameters are those of the field and of its treatment; F₀ are those from number
    /// `targets` on.
    pub fn new(
        control: Control,
        field: &Field,
        vectors: &StateVectors,
        (plan, adaptive): (&Plan, &AdaptiveSteps),
        settling: &Settling,
        (targets, parameters): (usize, &[f64]),
    ) -> CompiledJudge {
        let (mend, n) = (settling.mend(), field.dimension);
        let weights = Mend::kept(mend, plan).weights;
        let slots = Slots::new(false, weights, &vectors.vectors, settling.groups());
        let attempts = AttemptLoop { slots: &slots, control, vectors, parameters: parameters.len(), settling, targets };
        let given = slots.count();
        let tape = attempts.tape(2 * n, |_, at, before| {
            let (x1, error) = before[given..].split_at(n);
            let attempted = Attempted { x1: x1.to_vec(), errors: vec![error.to_vec()], end_field: Vec::new() };
            Begun { length: at.h, attempt: Box::new(|_, _, _| attempted) }
        });
        let kernel = Bound::new(&tape, &[parameters, &march::parameters(adaptive, control)].concat());
        CompiledJudge { kernel, slots, control, watching: Watching::of(field), mend }
    }

    /// The same with other parameters.
    pub fn rebound(&self, parameters: &[f64], adaptive: &AdaptiveSteps) -> CompiledJudge {
        let kernel = self.kernel.rebound(&[parameters, &march::parameters(adaptive, self.control)].concat());
        CompiledJudge { kernel, slots: self.slots.clone(), watching: self.watching.clone(), ..*self }
    }
}

impl Judge for CompiledJudge {
    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    fn judge(&self, state: &mut [f64], work: &mut [f64]) {
        self.kernel.iterate(state, 1, work);
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        if let Some(mend) = self.mend {
            mend.count(steps, cost);
        }
    }

    fn finish(&self, largest: &mut [f64]) {
        self.watching.finish(largest, 1);
    }
}

/// Each number in so many lanes.
fn spread(numbers: &[f64], lanes: usize, out: &mut [f64]) {
    for (number, out) in numbers.iter().zip(out.chunks_exact_mut(lanes)) {
        out.fill(*number);
    }
}

/// x + Σ W_k reach_k, from W, x and what is reached.
fn start(n: usize, s: usize) -> Tape {
    let mut g = Graph::new();
    let reach: Vec<Node> = (0..s).map(|k| g.state(2 * n + k)).collect();
    let stages: Vec<Node> = (0..n)
        .map(|i| {
            let (w, x) = (g.state(i), g.state(n + i));
            reach.iter().enumerate().fold(x, |sum, (k, &reach)| {
                let w = g.spread(w, k as u8);
                g.fma(w, reach, sum)
            })
        })
        .collect();
    Tape::of_fused(&g, &stages, 2 * n + s, 0)
}

/// Σ_j p_j f_j over stages j, where p_j is parameter `first` + j, other in each lane; in the order of the slices.
fn sum_of_stages(g: &mut Graph, first: usize, s: usize, f: Node) -> Node {
    let mut sums = [g.zero(); 2];
    for j in 0..s {
        let (weight, f) = (g.parameter(first + j), g.spread(f, j as u8));
        sums[j % 2] = if j < 2 { g.mul(weight, f) } else { g.fma(weight, f, sums[j % 2]) };
    }
    g.add(sums[0], sums[1])
}

/// W from the field at the stages.
fn coefficients(n: usize, s: usize) -> Tape {
    let mut g = Graph::new();
    let w: Vec<Node> = (0..n)
        .map(|i| {
            let field = g.state(i);
            sum_of_stages(&mut g, 0, s, field)
        })
        .collect();
    Tape::of_fused(&g, &w, n, s)
}

/// An iteration, X = x + h A F(X); components that depend on the others alone take the others' new values.
fn iteration(field: &Formula, vector_of: &[usize], vectors: usize, (parameters, s): (usize, usize)) -> Tape {
    let n = vector_of.len();
    let at = Places::new(n, vectors);
    let later = field.independent_roots();
    let g = &mut Graph::new();
    let states = |g: &mut Graph, range: Range<usize>| range.map(|k| g.state(k)).collect::<Vec<Node>>();
    let (stages, x) = (states(g, at.stages.clone()), states(g, at.x.clone()));
    let scales = states(g, at.scales.clone());
    let [last, older, first, count] = [0, 1, 3, 4].map(|k| g.state(at.iterated + k));
    let [h, t] = [at.h, at.t].map(|k| g.state(k));
    let stop = [0, 1, 2].map(|k| g.state(at.stop + k));
    let node = g.parameter(parameters + s);
    let time = g.fma(node, h, t);
    let mut next = stages.clone();
    let mut slopes = field.at(g, time, &stages);
    let move_to = |g: &mut Graph, next: &mut Vec<Node>, slopes: &[Node], which: bool| {
        for i in (0..n).filter(|&i| later[i] == which) {
            let sum = sum_of_stages(g, parameters, s, slopes[i]);
            next[i] = g.fma(h, sum, x[i]);
        }
    };
    move_to(g, &mut next, &slopes, false);
    if later.contains(&true) {
        let last = field.at(g, time, &next);
        (0..n).filter(|&i| later[i]).for_each(|i| slopes[i] = last[i]);
        move_to(g, &mut next, &slopes, true);
    }

    // The change, also of what follows from the rest: what a light body's momentum does shows in its position.
    let mut squares: Vec<Option<Node>> = vec![None; vectors];
    for i in 0..n {
        let change = g.sub(next[i], stages[i]);
        let square = &mut squares[vector_of[i]];
        *square = Some(match *square {
            None => g.mul(change, change),
            Some(sum) => g.fma(change, change, sum),
        });
    }
    let mut moved = g.zero();
    for (&square, &scale) in squares.iter().zip(&scales) {
        if let Some(square) = square {
            moved = g.fma(scale, square, moved);
        }
    }
    let mut change = g.zero();
    for lane in 0..s {
        let moved = g.spread(moved, lane as u8);
        change = g.largest(moved, change);
    }
    let one = g.one();
    let none = g.zero();
    let is_first = g.binary(Binary::Equal, count, none);
    let first = g.select(is_first, change, first);
    let count = g.add(count, one);
    let before = g.largest(last, older);
    let goes_on = goes_on(g, (count, change, before), stop);
    let outputs = [&next[..], &slopes, &[change, last, older, first, count]].concat();
    Tape::of_loop(g, &outputs, goes_on, at.count(), parameters + s + 1)
}

/// [`Iterated::goes_on`] as a formula.
fn goes_on(
    g: &mut Graph,
    (count, change, before): (Node, Node, Node),
    [enough, too_far, contraction]: [Node; 3],
) -> Node {
    let [one, third, settled, most] = [1, 3, SETTLED, MOST_ITERATIONS].map(|count| g.constant(f64::from(count)));
    let rounding = g.constant(ROUNDING);
    let part = g.mul(contraction, before);
    let all = |g: &mut Graph, conditions: &[(Binary, Node, Node)]| {
        let all: Vec<Node> = conditions.iter().map(|&(op, a, b)| g.binary(op, a, b)).collect();
        all.into_iter().reduce(|a, b| g.binary(Binary::And, a, b)).expect("there is a condition")
    };
    let (less, no_more) = (Binary::Less, Binary::LessEqual);
    let more = all(g, &[(less, enough, change), (less, count, most)]);
    let far = all(g, &[(Binary::Equal, count, one), (less, too_far, change)]);
    let stays = all(g, &[(no_more, third, count), (no_more, before, change), (no_more, change, rounding)]);
    let grows = all(g, &[(no_more, settled, count), (less, part, change), (less, rounding, change)]);
    [far, stays, grows].into_iter().fold(more, |goes_on, ends| {
        let not = g.unary(Unary::Not, ends);
        g.binary(Binary::And, goes_on, not)
    })
}

#[cfg(test)]
mod tests {
    use crate::{Problem, RunOptions, Settings, StepSize, prepare};
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::run::{run, run_map};
    use holonome_integrate::state::StepState;

    /// Compiled stages come to those of slices, with fewer iterations where positions follow from momenta; also where the time
    /// is read, where nothing follows from the rest (nor do positions off a constraint), where all rests, and where masses are unlike.
    #[test]
    fn compiled_stages_are_those_of_slices() {
        let cases = [
            ("coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1.1)\nhamiltonian dot(p, p)/2 - 1/norm(q)", true),
            ("coordinate q : R = 0\nmomentum p of q = 0\nhamiltonian p^2/2 + q^4/4 - q*sin(t)", true),
            ("state x : R^3 = (1, 1, 1)\nx' = (3*(x.y - x.x), x.x*(5 - x.z) - x.y, x.x*x.y - x.z)", false),
            (
                "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1",
                false,
            ),
            (
                "parameter m[i in 1..2] = (1, 1e-8)[i]\ncoordinate q[i in 1..2] : R = 0.1*i\nmomentum p of q = 0\n\
              hamiltonian sum(i in 1..2 : p[i]^2/(2*m[i]) + m[i]*(1 - cos(q[i]))) + 1e-9*(q[1] - q[2])^2",
                true,
            ),
        ];
        for (text, follows) in cases {
            for method in ["gauss8", "gauss16"] {
                let problem = Problem::from_text("model", text, &Default::default(), &Settings::default()).unwrap();
                let step = StepSize::Fixed(0.05);
                let options = RunOptions { method: method.parse().unwrap(), step, until: 3.0, ..RunOptions::default() };
                let simulation = prepare(problem, options).unwrap_or_else(|error| panic!("{error}"));
                let (plan, system) = (&simulation.plan, &*simulation.system);
                let start = StepState::new(plan, system, &simulation.problem.model.initial, None);
                let map = simulation.step.map(plan, system).expect("the stages are compiled");
                let (mut compiled, mut slices) = (start.clone(), start);
                run_map(plan, system, &*map, &mut compiled, &mut Recorder::default()).unwrap();
                run(plan, system, &mut slices, &mut Recorder::default()).unwrap();
                for (a, b) in compiled.x.iter().zip(&slices.x) {
                    // Sixty steps, each good to a few roundings of a state of length 1 to 3, amplified by e³ at most.
                    let tolerance = 60.0 * 4.0 * f64::EPSILON * 20.0;
                    assert!((a - b).abs() <= tolerance * b.abs().max(1e-3), "{method}: {a} {b} of\n{text}");
                }
                let [few, many] = [compiled, slices].map(|state| state.cost.field);
                assert!(if follows { few < many } else { few <= many }, "{method}: {few} {many} of\n{text}");
            }
        }
    }
}
