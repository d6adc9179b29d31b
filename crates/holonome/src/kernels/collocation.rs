//! Stages of a collocation method in the lanes of one vector: the field is evaluated at all of them at once, and sums
//! over stages spread one lane over all.
//!
//! A step is three kernels over one array: the start of the iteration, an iteration, and the results of the stages. In
//! a loop a fourth kernel judges the attempt, in one lane: a division takes half as long there as in all lanes.

use super::bound::{Bound, Quantities, WideBound};
use super::formula::Formula;
use super::map::Repeated;
use super::march::{self, AttemptLoop, Attempted, Begun, Judging, StepInterpolant, larger, least};
use super::vectors::StateVectors;
use super::whole_step::squares;
use holonome_integrate::controller::slots::{Slots, Status};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::fixed_point::{
    Iterated, MOST_ITERATIONS, Memory, ROUNDING, SETTLED, Stages, Stop, before_last, ends, most_by_first_change, stop,
};
use holonome_integrate::plan::{AdaptiveSteps, FixedSteps, Plan};
use holonome_integrate::scales::{FAMILY_FLOOR, Vectors};
use holonome_integrate::scheme::collocation::{Collocation, From};
use holonome_integrate::scheme::map::{self, Carry, StepFrom, Workspace};
use holonome_integrate::state::Cost;
use holonome_model::graph::aligned::first_aligned;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use std::ops::Range;

/// Compiled stages of steps of a field.
#[derive(Clone)]
pub struct CompiledStages {
    collocation: &'static Collocation,
    at: Places,
    /// Largest estimate that the first change of an iteration may cause; see [`most_by_first_change`].
    most: f64,
    /// Number of ends of a step at which its estimate evaluates the field.
    ends: u64,
    vectors: Vectors,
    start: WideBound,
    iterate: WideBound,
    finish: WideBound,
}

/// Places of a step's numbers, each in all lanes. A kernel changes the numbers up to some place.
#[derive(Clone)]
struct Places {
    /// The stages; x₁ once the step is finished.
    stages: Range<usize>,
    /// The field at the stages, without components that follow from others; the estimate of the error once the step is
    /// finished.
    field: Range<usize>,
    /// [`Iterated`]: the change, the two before, the first one, their count. Once the step is finished, the first place
    /// is true if a vector without a scale has moved.
    iterated: usize,
    /// 1/S² of every vector.
    scales: Range<usize>,
    /// [`Memory`]: the largest squares, W by lanes, the part of x lost by rounding, the length.
    sizes: Range<usize>,
    w: Range<usize>,
    lost: Range<usize>,
    length: usize,
    /// End of the polynomial's step, as its argument; [`Stop`].
    from: usize,
    stop: usize,
    /// Start t and length h of the step, and its x, in the first lane alone.
    t: usize,
    h: usize,
    x: Range<usize>,
}

impl Places {
    fn new(vectors: &Vectors) -> Places {
        let (n, count) = (vectors.dim(), vectors.count());
        let mut end = 0;
        let mut take = |len: usize| {
            end += len;
            end - len..end
        };
        Places {
            stages: take(n),
            field: take(n),
            iterated: take(5).start,
            scales: take(count),
            sizes: take(count),
            w: take(n),
            lost: take(n),
            length: take(1).start,
            from: take(1).start,
            stop: take(4).start,
            t: take(1).start,
            h: take(1).start,
            x: take(n),
        }
    }

    /// Number of places.
    fn count(&self) -> usize {
        self.x.end
    }
}

impl CompiledStages {
    /// Stages for steps of `plan` over `field` with these parameters.
    pub fn new(
        collocation: &'static Collocation,
        plan: &Plan,
        field: &Formula,
        vectors: &StateVectors,
        parameters: &[f64],
    ) -> CompiledStages {
        let s = collocation.stages;
        let at = Places::new(&vectors.vectors);
        let wide = |tape: &Tape| WideBound::new(tape, s, &vec![0.0; tape.parameters]);
        let mut stages = CompiledStages {
            collocation,
            most: most_by_first_change(collocation, plan),
            ends: ends(plan),
            vectors: vectors.vectors.clone(),
            start: wide(&start(&at, &vectors.vectors, s)),
            iterate: wide(&iteration(&at, field, vectors, (parameters.len(), s))),
            finish: wide(&finish(&at, field, &vectors.vectors, (parameters.len(), s), ends(plan) > 0)),
            at,
        };
        stages.bind(parameters);
        stages
    }

    /// These stages with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> CompiledStages {
        let mut stages = self.clone();
        stages.bind(parameters);
        stages
    }

    fn bind(&mut self, parameters: &[f64]) {
        let Collocation { nodes, sums, double_sums, coefficients, .. } = self.collocation;
        for lane in 0..self.collocation.stages {
            self.start.rebind(lane, &[nodes[lane]]);
            self.iterate.rebind(lane, &[parameters, &sums[lane], &double_sums[lane], &[nodes[lane]]].concat());
            let own = [nodes[lane], self.most, if lane == 0 { -1.0 } else { 1.0 }];
            self.finish.rebind(lane, &[parameters, &coefficients[lane], &own].concat());
        }
    }

    /// Split `work` into the numbers of a step and scratch.
    fn split<'w>(&self, work: &'w mut [f64]) -> (&'w mut [f64], &'w mut [f64]) {
        // The numbers start on a cache line.
        let first = first_aligned(work);
        work[first..].split_at_mut(self.at.count() * self.collocation.stages)
    }

    fn spread(&self, number: f64, at: usize, numbers: &mut [f64]) {
        let s = self.collocation.stages;
        numbers[at * s..(at + 1) * s].fill(number);
    }

    /// Put numbers into the first lanes of the places `at`.
    fn place(&self, from: &[f64], at: &Range<usize>, numbers: &mut [f64]) {
        for (number, at) in from.iter().zip(at.clone()) {
            numbers[at * self.collocation.stages] = *number;
        }
    }

    fn spread_all(&self, from: &[f64], at: &Range<usize>, numbers: &mut [f64]) {
        for (number, at) in from.iter().zip(at.clone()) {
            self.spread(*number, at, numbers);
        }
    }

    /// Copy the first lane of the places `at`.
    fn gather(&self, numbers: &[f64], at: &Range<usize>, out: &mut [f64]) {
        for (out, at) in out.iter_mut().zip(at.clone()) {
            *out = numbers[at * self.collocation.stages];
        }
    }

    /// Copy the memory to the numbers.
    fn recall(&self, memory: &Memory, numbers: &mut [f64]) {
        let (s, at) = (self.collocation.stages, &self.at);
        numbers[at.w.start * s..at.w.end * s].copy_from_slice(memory.w);
        self.spread_all(memory.sizes, &at.sizes, numbers);
        self.spread_all(memory.lost, &at.lost, numbers);
        self.spread(*memory.length, at.length, numbers);
    }

    /// Copy the memory back from the numbers, without the length.
    fn remember(&self, numbers: &[f64], memory: &mut Memory) {
        let (s, at) = (self.collocation.stages, &self.at);
        memory.w.copy_from_slice(&numbers[at.w.start * s..at.w.end * s]);
        self.gather(numbers, &at.sizes, memory.sizes);
        self.gather(numbers, &at.lost, memory.lost);
    }

    /// Set the start and the end of the iteration.
    fn give(&self, from: From, stop: Stop, numbers: &mut [f64]) {
        let Stop { enough, too_far, contraction, decayed } = stop;
        let from = if from == From::Start { -1.0 } else { 1.0 };
        self.spread_all(&[from, enough, too_far, contraction, decayed], &(self.at.from..self.at.t), numbers);
    }

    /// Set the start and the length of a step.
    fn begin(&self, StepFrom { t, h, x }: StepFrom, numbers: &mut [f64]) {
        self.place(&[t, h], &(self.at.t..self.at.x.start), numbers);
        self.place(x, &self.at.x, numbers);
    }

    /// Result of the iteration.
    fn iterated(&self, numbers: &[f64]) -> Iterated {
        let mut of = [0.0; 5];
        self.gather(numbers, &(self.at.iterated..self.at.iterated + 5), &mut of);
        let [change, last, older, first, count] = of;
        Iterated { count: count as u32, change, before: [last, older], first }
    }

    /// Make a step after the one whose memory is in the numbers, and put x₁ and the estimate of its error. True if it
    /// moves a vector without a scale; `None` if the iteration does not converge.
    fn make(
        &self,
        (step, stop): (StepFrom, Stop),
        (x1, error): (&mut [f64], &mut [f64]),
        (numbers, work): (&mut [f64], &mut [f64]),
        cost: &mut Cost,
    ) -> Option<bool> {
        self.begin(step, numbers);
        self.start.iterate(numbers, 1, work);
        self.iterate.iterate(numbers, u64::from(MOST_ITERATIONS), work);
        let iterated = self.iterated(numbers);
        cost.field += u64::from(iterated.count) * self.collocation.stages as u64;
        if !iterated.converged(stop) {
            return None;
        }
        self.finish.iterate(numbers, 1, work);
        cost.field += self.ends;
        self.gather(numbers, &self.at.stages, x1);
        self.gather(numbers, &self.at.field, error);
        Some(self.moves(numbers))
    }

    /// True if the finished step moves a vector without a scale.
    fn moves(&self, numbers: &[f64]) -> bool {
        numbers[self.at.iterated * self.collocation.stages] != 0.0
    }

    /// Range of the memory that a finished step leaves, without its length.
    fn left_behind(&self) -> Range<usize> {
        let (s, at) = (self.collocation.stages, &self.at);
        at.w.start * s..at.lost.end * s
    }
}

impl Stages for CompiledStages {
    fn work_len(&self) -> usize {
        let kernels = [&self.start, &self.iterate, &self.finish].map(WideBound::work_len);
        8 + self.at.count() * self.collocation.stages + kernels.into_iter().max().unwrap_or(0)
    }

    fn start(&self, step: StepFrom, from: From, stop: Stop, memory: &Memory, work: &mut [f64]) {
        let (numbers, work) = self.split(work);
        self.recall(memory, numbers);
        if from == From::Start {
            let s = self.collocation.stages;
            numbers[self.at.lost.start * s..self.at.lost.end * s].fill(0.0);
        }
        self.give(from, stop, numbers);
        self.begin(step, numbers);
        self.start.iterate(numbers, 1, work);
    }

    fn iterate(&self, _: Stop, work: &mut [f64]) -> Iterated {
        let (numbers, work) = self.split(work);
        self.iterate.iterate(numbers, u64::from(MOST_ITERATIONS), work);
        self.iterated(numbers)
    }

    fn finish(&self, memory: &mut Memory, x1: &mut [f64], error: &mut [f64], work: &mut [f64]) -> bool {
        let (numbers, work) = self.split(work);
        self.finish.iterate(numbers, 1, work);
        self.gather(numbers, &self.at.stages, x1);
        self.gather(numbers, &self.at.field, error);
        self.remember(numbers, memory);
        self.moves(numbers)
    }
}

/// Attempts in a loop.
pub struct CollocationLoop {
    stages: CompiledStages,
    /// Kernel that judges an attempt: a map of the slots, which x₁ and the estimate of its error follow.
    judge: Bound,
    judging: Judging,
    adaptive: AdaptiveSteps,
    stop: Stop,
}

impl CollocationLoop {
    /// Loop of attempts of `plan` with these stages. The parameters are those of the field and of its treatment.
    pub fn new(
        stages: &CompiledStages,
        attempts: &AttemptLoop,
        judging: &Judging,
        (plan, adaptive): (&Plan, &AdaptiveSteps),
        parameters: &[f64],
    ) -> CollocationLoop {
        let all = [parameters, &march::parameters(adaptive, judging.control)].concat();
        CollocationLoop {
            stages: stages.clone(),
            judge: Bound::new(&judge(attempts), &all),
            judging: judging.clone(),
            adaptive: adaptive.clone(),
            stop: stop(plan),
        }
    }

    /// This loop with other parameters, over stages that have them.
    pub fn rebound(&self, stages: &CompiledStages, parameters: &[f64], adaptive: &AdaptiveSteps) -> CollocationLoop {
        let all = [parameters, &march::parameters(adaptive, self.judging.control)].concat();
        CollocationLoop {
            stages: stages.clone(),
            judge: self.judge.rebound(&all),
            judging: self.judging.clone(),
            adaptive: adaptive.clone(),
            stop: self.stop,
        }
    }

    /// Length of the judge's state: the slots, x₁, an error.
    fn judged(&self) -> usize {
        self.judging.slots.count() + 2 * self.judging.slots.x.len()
    }

    /// Make an attempt from the slots, and put x₁ and its error after them. True if it is like the others.
    fn attempt(&self, judged: &mut [f64], numbers: &mut [f64], work: &mut [f64], cost: &mut Cost) -> bool {
        let (stages, slots) = (&self.stages, &self.judging.slots);
        let AdaptiveSteps { t_end, longest_step, shortest_step, .. } = self.adaptive;
        let (t, wanted) = (judged[slots.t], judged[slots.h].min(longest_step));
        let trial = trial((t_end, shortest_step), t, wanted, judged[slots.rejections] as u32);
        let Some((h, _)) = trial.filter(|&(_, end)| end < judged[slots.pause]) else { return false };
        let (slots, attempted) = judged.split_at_mut(slots.count());
        let x = &slots[self.judging.slots.x.clone()];
        let (x1, error) = attempted.split_at_mut(x.len());
        let made = stages.make((StepFrom { t, h, x }, self.stop), (x1, error), (numbers, work), cost);
        if made.is_none() {
            x1.copy_from_slice(x);
            error.fill(f64::INFINITY);
        }
        made != Some(true)
    }
}

impl map::Attempts for CollocationLoop {
    fn slots(&self) -> &Slots {
        &self.judging.slots
    }

    fn work_len(&self) -> usize {
        let judge = self.judged() + self.judge.work_len();
        self.stages.work_len() + self.stages.left_behind().len() + judge
    }

    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace) {
        let (stages, slots) = (&self.stages, &self.judging.slots);
        let Workspace { memory, cost, work, .. } = workspace;
        let mut memory = Memory::of(stages.collocation, &stages.vectors, memory);
        if *memory.length == 0.0 {
            // There is no polynomial to start from.
            state[slots.status] = Status::Held.number();
            return;
        }
        let left_behind = stages.left_behind();
        let (kept, work) = work.split_at_mut(left_behind.len());
        let (judged, work) = work.split_at_mut(self.judged());
        judged[..state.len()].copy_from_slice(state);
        let (numbers, work) = stages.split(work);
        stages.recall(&memory, numbers);
        stages.give(From::End, self.stop, numbers);
        for _ in 0..count {
            kept.copy_from_slice(&numbers[left_behind.clone()]);
            // A step that is not like the others is left to the caller.
            let alike = self.attempt(judged, numbers, work, cost);
            let steps = judged[slots.steps];
            if alike {
                self.judge.iterate(judged, 1, work);
            } else {
                judged[slots.status] = Status::Held.number();
            }
            if judged[slots.steps] == steps {
                numbers[left_behind.clone()].copy_from_slice(kept);
            } else {
                *memory.length = numbers[stages.at.h * stages.collocation.stages];
                stages.spread(*memory.length, stages.at.length, numbers);
            }
            if judged[slots.status] != Status::Going.number() {
                break;
            }
        }
        let len = state.len();
        state.copy_from_slice(&judged[..len]);
        stages.remember(numbers, &mut memory);
    }

    fn evaluations(&self) -> u64 {
        0
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) {
        self.judging.count_treatments(steps, cost);
    }

    fn finish(&self, largest: &mut [f64]) {
        self.judging.finish(largest);
    }
}

/// Equal steps in a loop.
pub struct CollocationSteps {
    stages: CompiledStages,
    /// Loop state and kernel that settle a step: a map of the state, which x₁ and the estimate of its error follow.
    settle: Repeated,
    stop: Stop,
    t0: f64,
    h: f64,
}

impl CollocationSteps {
    /// Loop of steps of `plan` with these stages, settled by `settle`.
    pub fn new(stages: &CompiledStages, settle: Repeated, plan: &Plan, fixed: &FixedSteps) -> CollocationSteps {
        CollocationSteps { stages: stages.clone(), settle, stop: stop(plan), t0: plan.t0, h: fixed.h }
    }

    /// This loop with other parameters for the settling, over stages that have them.
    pub fn rebound(
        &self,
        stages: &CompiledStages,
        parameters: &[f64],
        plan: &Plan,
        fixed: &FixedSteps,
    ) -> CollocationSteps {
        CollocationSteps::new(stages, self.settle.rebound(parameters), plan, fixed)
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        2 * self.stages.vectors.dim() + self.settle.work_len() + self.stages.work_len()
    }

    /// Make a step from x, and put x₁ and its error; true if it is like the others.
    fn step(
        &self,
        t: f64,
        x: &[f64],
        x1: &mut [f64],
        error: &mut [f64],
        (numbers, work): (&mut [f64], &mut [f64]),
        cost: &mut Cost,
    ) -> bool {
        let stages = &self.stages;
        let step = StepFrom { t, h: self.h, x };
        let moves = stages.make((step, self.stop), (x1, error), (numbers, work), cost);
        stages.spread(self.h, stages.at.length, numbers);
        moves == Some(false)
    }
}

impl map::Blocks for CollocationSteps {
    fn follows(&self, memory: &[f64]) -> bool {
        memory.last() != Some(&0.0)
    }

    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let Carry { memory, scales, innovation, cost, mut outputs } = carry;
        if !self.follows(memory) {
            return false;
        }
        let (stages, n) = (&self.stages, x.len());
        let (collocation, vectors) = (stages.collocation, &stages.vectors);
        let (state, work) = work.split_at_mut(self.settle.len() + 2 * n);
        self.settle.enter(x, (scales, largest.len()), first, state);
        let (numbers, work) = stages.split(work);
        stages.recall(&Memory::of(collocation, vectors, memory), numbers);
        stages.give(From::End, self.stop, numbers);
        let (mut spent, mut known) = (Cost::default(), 0);
        let take_out = |x: &mut [f64], memory: &mut [f64], state: &[f64], numbers: &[f64]| {
            x.copy_from_slice(&state[..n]);
            let mut memory = Memory::of(collocation, vectors, memory);
            stages.remember(numbers, &mut memory);
            *memory.length = numbers[stages.at.length * collocation.stages];
        };
        for step in first..first + count {
            if outputs.after.get(known) == Some(&step) {
                take_out(x, memory, state, numbers);
                outputs.keep(step, x, memory);
                known += 1;
            }
            let (before, attempted) = state.split_at_mut(self.settle.len());
            let (x1, error) = attempted.split_at_mut(n);
            let t = (step as f64).mul_add(self.h, self.t0);
            if !self.step(t, &before[..n], x1, error, (numbers, work), &mut spent) {
                return false;
            }
            self.settle.kernel().iterate(state, 1, work);
        }
        take_out(x, memory, state, numbers);
        outputs.keep(first + count, x, memory);
        cost.add(&spent);
        self.settle.leave(state, count, x, (scales, innovation, cost), largest)
    }
}

/// Σ_j p_j f_j over stages j, where p_j is parameter `first` + j, which differs from lane to lane; in the order of the
/// slices.
fn sum_of_stages(g: &mut Graph, first: usize, s: usize, f: Node) -> Node {
    let weights: Vec<Node> = (0..s).map(|j| g.parameter(first + j)).collect();
    sum_of_lanes(g, &weights, f)
}

/// Σ_j w_j f_j, where f_j is lane j of f.
fn sum_of_lanes(g: &mut Graph, weights: &[Node], f: Node) -> Node {
    let mut sums = [g.zero(); 2];
    for (j, &weight) in weights.iter().enumerate() {
        let f = g.spread(f, j as u8);
        sums[j % 2] = if j < 2 { g.mul(weight, f) } else { g.fma(weight, f, sums[j % 2]) };
    }
    g.add(sums[0], sums[1])
}

/// Σ_k a_k over lanes.
fn all_lanes(g: &mut Graph, a: Node, s: usize) -> Node {
    let one = g.one();
    sum_of_lanes(g, &vec![one; s], a)
}

/// Number at a place in the first lane, spread over all.
fn single(g: &mut Graph, place: usize) -> Node {
    let number = g.state(place);
    g.spread(number, 0)
}

/// Numbers at several places in the first lane, spread over all.
fn singles(g: &mut Graph, range: &Range<usize>) -> Vec<Node> {
    range.clone().map(|place| single(g, place)).collect()
}

/// Numbers at these places, lane by lane.
fn states(g: &mut Graph, range: &Range<usize>) -> Vec<Node> {
    range.clone().map(|k| g.state(k)).collect()
}

/// Tape of the iteration's start: x + Σ W_k reach_k (see [`Collocation::reach`]), the scales of the vectors, no
/// iterations.
fn start(at: &Places, vectors: &Vectors, s: usize) -> Tape {
    let g = &mut Graph::new();
    let (x, h, w) = (singles(g, &at.x), single(g, at.h), states(g, &at.w));
    let [length, base, decayed] = [at.length, at.from, at.stop + 3].map(|k| g.state(k));
    let (ratio, node) = (g.div(h, length), g.parameter(0));
    let mut reach = Vec::with_capacity(s);
    let (part, two) = (g.mul(ratio, node), g.constant(2.0));
    reach.push(g.mul(length, part));
    let twice = g.mul(two, ratio);
    let argument = g.fma(twice, node, base);
    let (mut before, mut now) = (g.one(), argument);
    for k in 1..s {
        let k = k as f64;
        let [up, down, part] =
            [(2.0 * k + 1.0) / (k + 1.0), -k / (k + 1.0), 1.0 / (4.0 * k + 2.0)].map(|number| g.constant(number));
        let (above, below) = (g.mul(up, argument), g.mul(down, before));
        let next = g.fma(above, now, below);
        let difference = g.sub(next, before);
        let part = g.mul(part, length);
        reach.push(g.mul(part, difference));
        (before, now) = (now, next);
    }
    let mut outputs = Vec::with_capacity(at.w.start);
    for (&x, &w) in x.iter().zip(&w) {
        let moved = sum_of_lanes(g, &reach, w);
        outputs.push(g.add(x, moved));
    }
    outputs.extend(states(g, &at.field));
    let Iterated { count, change, before: [last, older], first } = Iterated::NONE;
    outputs.extend([change, last, older, first, f64::from(count)].map(|number| g.constant(number)));

    let square_of_length = g.mul(length, length);
    let (of_x, of_w) = (squares(g, &x, vectors), squares(g, &w, vectors));
    let (mut sizes, mut scales) = (Vec::new(), Vec::new());
    for (vector, (&of_x, &of_w)) in of_x.iter().zip(&of_w).enumerate() {
        let (size, moves) = (g.state(at.sizes.start + vector), all_lanes(g, of_w, s));
        let size = larger(g, size, of_x);
        let scale = g.fma(square_of_length, moves, of_x);
        let least = g.mul(decayed, size);
        sizes.push(size);
        scales.push(larger(g, scale, least));
    }
    let (floor, smallest) = (g.constant(FAMILY_FLOOR), g.constant(f64::MIN_POSITIVE));
    for family in vectors.families() {
        let scales = &mut scales[family.vectors.clone()];
        let most = scales.iter().copied().reduce(|a, b| larger(g, a, b)).expect("a family has members");
        let floor = g.mul(floor, most);
        for scale in scales {
            let square = if family.vectors.len() > 1 { larger(g, *scale, floor) } else { *scale };
            let (one, none) = (g.one(), g.zero());
            let inverse = g.div(one, square);
            let counts = g.binary(Binary::LessEqual, smallest, square);
            *scale = g.select(counts, inverse, none);
        }
    }
    Tape::of_fused(g, &[outputs, scales, sizes].concat(), at.count(), 1)
}

/// Tape of the results of the stages, as in [`Stages::finish`]. The parameters after those of the field are those of W,
/// the node, the largest estimate that the iteration's first change may cause, and the end of the step at which the
/// lane evaluates the field.
fn finish(
    at: &Places,
    field: &Formula,
    vectors: &Vectors,
    (parameters, s): (usize, usize),
    looks_at_ends: bool,
) -> Tape {
    let g = &mut Graph::new();
    let (x, [h, t]) = (singles(g, &at.x), [at.h, at.t].map(|k| single(g, k)));
    let (stages, lost, scales) = (states(g, &at.stages), states(g, &at.lost), states(g, &at.scales));
    let [node, sign] = [parameters + s, parameters + s + 2].map(|k| g.parameter(k));
    let time = g.fma(node, h, t);
    // The field of components that follow from the others was not kept.
    let (found, kept) = (field.at(g, time, &stages), states(g, &at.field));
    let slopes = field.independent_roots().into_iter().zip(found.into_iter().zip(kept));
    let slopes: Vec<Node> = slopes.map(|(later, (found, kept))| if later { found } else { kept }).collect();
    let [change, too_far] = [at.iterated + 3, at.stop + 1].map(|k| g.state(k));
    let (zero, one) = (g.zero(), g.one());
    let (mut all_w, mut all_x1, mut all_lost) = (Vec::new(), Vec::new(), Vec::new());
    let (mut error, mut earlier, mut sizes, mut at_ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((&slope, &x), &lost) in slopes.iter().zip(&x).zip(&lost) {
        let w = sum_of_stages(g, parameters, s, slope);
        all_w.push(w);
        // The last two coefficients: one alone vanishes by accident.
        let [last, before] = [s - 2..s, before_last(s)].map(|range| {
            let sizes = range.map(|k| {
                let w = g.spread(w, k as u8);
                g.unary(Unary::Abs, w)
            });
            sizes.collect::<Vec<_>>().into_iter().rev().reduce(|a, b| g.add(a, b)).expect("there are some")
        });
        error.push(last);
        earlier.push(before);
        let parts: Vec<Node> = (0..s).map(|k| g.spread(w, k as u8)).collect();
        let of_ends = parts.into_iter().rev().reduce(|sum, w| g.fma(sign, sum, w)).unwrap_or(zero);
        at_ends.push(of_ends);
        // By compensated summation (HLW VIII.5).
        let mean = g.spread(w, 0);
        let increment = g.fma(h, mean, lost);
        let x1 = g.add(x, increment);
        let moved = g.sub(x1, x);
        all_x1.push(x1);
        all_lost.push(g.sub(increment, moved));
        let mean = g.unary(Unary::Abs, mean);
        sizes.push(g.add(mean, error[error.len() - 1]));
    }
    // No node is at an end: events before the first node and after the last one show at the ends alone. One lane is at
    // the start, the others are at the end.
    let (is_start, infinity) = (g.binary(Binary::Less, sign, zero), g.constant(f64::INFINITY));
    let end = g.add(t, h);
    let end = g.select(is_start, t, end);
    let points: Vec<Node> = x.iter().zip(&all_x1).map(|(&x, &x1)| g.select(is_start, x, x1)).collect();
    let found = if looks_at_ends { field.at(g, end, &points) } else { Vec::new() };
    for ((error, found), polynomial) in error.iter_mut().zip(found).zip(at_ends) {
        let missed = g.sub(found, polynomial);
        let missed = g.unary(Unary::Abs, missed);
        let [start, end] = [0, 1].map(|lane| g.spread(missed, lane));
        // Where the field is undefined, no error is small enough.
        let missed = larger(g, end, start);
        let is_number = g.binary(Binary::LessEqual, missed, infinity);
        let missed = g.select(is_number, missed, infinity);
        *error = larger(g, *error, missed);
    }
    let [last, before] = [&error, &earlier].map(|of| {
        let squares = squares(g, of, vectors);
        scales.iter().zip(&squares).fold(zero, |sum, (&scale, &square)| g.fma(scale, square, sum))
    });
    let mean = g.constant(1.0 / vectors.count().max(1) as f64);
    let mean = g.mul(mean, last);
    let root = g.sqrt(mean);
    let norm = g.mul(h, root);
    // The estimate is at least as large as the first change of the iteration requires, but no larger than what is
    // accepted. If coefficients hardly decrease, at a kink or at a wall, it is as large as the last one would be if
    // they did.
    let part = g.div(change, too_far);
    let part = least(g, part, one);
    let (part, most) = (g.sqrt(part), g.parameter(parameters + s + 1));
    let by_change = g.mul(most, part);
    let decrease = g.div(last, before);
    let (decrease, root) = (least(g, decrease, one), g.sqrt(norm));
    let by_decrease = g.mul(decrease, root);
    let wanted = larger(g, by_change, by_decrease);
    let counts = g.binary(Binary::Less, zero, norm);
    let wants_more = g.binary(Binary::Less, norm, wanted);
    let counts = g.binary(Binary::And, counts, wants_more);
    let factor = g.div(wanted, norm);
    let factor = g.select(counts, factor, one);
    error.iter_mut().for_each(|error| *error = g.mul(factor, *error));
    // True if a vector without a scale has moved.
    let mut any_moved = zero;
    for (vector, &scale) in scales.iter().enumerate() {
        let all = vectors.components_of(vector).map(|i| sizes[i]).reduce(|a, b| g.add(a, b)).unwrap_or(zero);
        let (without, moves) = (g.binary(Binary::Equal, scale, zero), g.binary(Binary::Less, zero, all));
        let moved = g.binary(Binary::And, without, moves);
        any_moved = if vector == 0 { moved } else { g.binary(Binary::Or, any_moved, moved) };
    }
    let rest = states(g, &(at.iterated + 1..at.w.start));
    Tape::of_fused(g, &[all_x1, error, vec![any_moved], rest, all_w, all_lost].concat(), at.count(), parameters + s + 3)
}

/// Tape that judges an attempt of a loop, from the slots, x₁ and the estimate of its error.
fn judge(attempts: &AttemptLoop) -> Tape {
    let g = &mut Graph::new();
    let (slots, n) = (attempts.slots.count(), attempts.slots.x.len());
    let [before, x1, error] = [0..slots, slots..slots + n, slots + n..slots + 2 * n].map(|range| states(g, &range));
    let attempted = Attempted { x1, errors: vec![error], end_field: Vec::new(), interpolant: StepInterpolant::None };
    let judgement = attempts.judge(g, &before, |_, at| Begun { length: at.h, attempt: Box::new(|_, _| attempted) });
    Tape::of_fused(g, &judgement.after, slots + 2 * n, attempts.parameters + march::PARAMETERS)
}

/// Tape of an iteration, X = x + h A F(X). Components that depend on the others alone take the others' new values.
/// Where F is linear in these, they are x + h c F(x) + h² A² F(F), which does not wait for the new values. The field of
/// these components is not kept.
fn iteration(at: &Places, field: &Formula, vectors: &StateVectors, (parameters, s): (usize, usize)) -> Tape {
    let n = vectors.vectors.dim();
    let (later, linear) = (field.independent_roots(), field.linear_roots());
    let g = &mut Graph::new();
    let (stages, x, scales) = (states(g, &at.stages), singles(g, &at.x), states(g, &at.scales));
    let [last, older, first, count] = [0, 1, 3, 4].map(|k| g.state(at.iterated + k));
    let [h, t] = [at.h, at.t].map(|k| single(g, k));
    let stop = [0, 1, 2].map(|k| g.state(at.stop + k));
    let node = g.parameter(parameters + 2 * s);
    let (part, square) = (g.mul(node, h), g.mul(h, h));
    let time = g.fma(node, h, t);
    let mut next = stages.clone();
    let slopes = field.at(g, time, &stages);
    for i in (0..n).filter(|&i| !later[i]) {
        let sum = sum_of_stages(g, parameters, s, slopes[i]);
        next[i] = g.fma(h, sum, x[i]);
    }
    if later.contains(&true) {
        let [of_next, of_x, of_slopes] = [&next, &x, &slopes].map(|states| field.at(g, time, states));
        for i in (0..n).filter(|&i| later[i]) {
            next[i] = if linear[i] {
                let (straight, bent) = (g.fma(part, of_x[i], x[i]), sum_of_stages(g, parameters + s, s, of_slopes[i]));
                g.fma(square, bent, straight)
            } else {
                let sum = sum_of_stages(g, parameters, s, of_next[i]);
                g.fma(h, sum, x[i])
            };
        }
    }

    // The change includes components that follow from the rest: a light body's momentum shows in its position.
    let changes: Vec<Node> = next.iter().zip(&stages).map(|(&next, &stage)| g.sub(next, stage)).collect();
    let mut moved = g.zero();
    for (&square, &scale) in squares(g, &changes, &vectors.vectors).iter().zip(&scales) {
        moved = g.fma(scale, square, moved);
    }
    let moved = g.unary(Unary::Abs, moved);
    let mut changes: Vec<Node> = (0..s).map(|lane| g.spread(moved, lane as u8)).collect();
    while changes.len() > 1 {
        changes = changes.chunks(2).map(|pair| g.largest(pair[0], pair[pair.len() - 1])).collect();
    }
    let change = changes[0];
    let one = g.one();
    let none = g.zero();
    let is_first = g.binary(Binary::Equal, count, none);
    let first = g.select(is_first, change, first);
    let count = g.add(count, one);
    let before = g.largest(last, older);
    let goes_on = goes_on(g, (count, change, before, first), stop);
    let kept = slopes.iter().zip(states(g, &at.field)).zip(&later);
    let kept: Vec<Node> = kept.map(|((&slope, before), &later)| if later { before } else { slope }).collect();
    let outputs = [&next[..], &kept, &[change, last, older, first, count]].concat();
    Tape::of_loop(g, &outputs, goes_on, at.count(), parameters + 2 * s + 1)
}

/// [`Iterated::goes_on`] as a formula, without the limit on iterations, which the loop counts. Changes not made yet are
/// infinite, so that no test of contraction fails by them; a first change that is too far ends the iteration.
fn goes_on(
    g: &mut Graph,
    (count, change, before, first): (Node, Node, Node, Node),
    [enough, too_far, contraction]: [Node; 3],
) -> Node {
    let (settled, rounding) = (g.constant(f64::from(SETTLED)), g.constant(ROUNDING));
    let part = g.mul(contraction, before);
    let more = g.binary(Binary::Less, enough, change);
    let far = g.binary(Binary::Less, too_far, first);
    let rounds = g.binary(Binary::LessEqual, change, rounding);
    let stays = g.binary(Binary::LessEqual, before, change);
    let stays = g.binary(Binary::And, rounds, stays);
    let (slow, late) = (g.binary(Binary::Less, part, change), g.binary(Binary::LessEqual, settled, count));
    let does_not = g.unary(Unary::Not, rounds);
    let grows = [slow, late].into_iter().fold(does_not, |all, one| g.binary(Binary::And, all, one));
    [far, stays, grows].into_iter().fold(more, |goes_on, ends| {
        let not = g.unary(Unary::Not, ends);
        g.binary(Binary::And, goes_on, not)
    })
}

#[cfg(test)]
mod tests {
    use crate::{Problem, RunOptions, Settings, Simulation, StepSize, prepare};
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::plan::Plan;
    use holonome_integrate::run::{run, run_map};
    use holonome_integrate::state::StepState;

    /// Test that compiled stages come to those of slices, with fewer iterations where positions follow from momenta.
    /// The cases: the time is read; nothing follows from the rest (nor do positions off a constraint); all is at rest;
    /// masses are unlike.
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

    /// Test that equal steps in a loop are those made one by one: also if the time is read, if a vector without a scale
    /// begins to move, and if a run is interrupted.
    #[test]
    fn a_loop_is_its_steps_one_by_one() {
        let cases = [
            ("coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1.1)\nhamiltonian dot(p, p)/2 - 1/norm(q)", 0.05),
            ("coordinate q : R = 0\nmomentum p of q = 0\nhamiltonian p^2/2 + q^4/4 - q*sin(t)", 0.05),
            (
                "coordinate q : R^3 = (0, 1, 0)\nmomentum p of q = (1, 0, -1)\nhamiltonian dot(p, p)/2 + q.z\nconstraint rod : dot(q, q) = 1",
                0.1,
            ),
            (
                "coordinate q[i in 1..2] : R = (1, 0)[i]\nmomentum p of q\n\
              hamiltonian sum(i in 1..2 : p[i]^2/2 + q[i]^2/2) - q[2]*max(0, t - 1.03)^3",
                0.1,
            ),
        ];
        for ((text, h), method) in cases.into_iter().flat_map(|case| {
            ["gauss8", "gauss16", "corrected:gauss16", "projection:gauss8"].map(|method| (case, method))
        }) {
            let problem = Problem::from_text("model", text, &Default::default(), &Settings::default()).unwrap();
            let (method, step) = (method.parse().unwrap(), StepSize::Fixed(h));
            // The last step is a part of one.
            let options = RunOptions { method, step, until: 20.02, samples: Some(7), ..RunOptions::default() };
            let Ok(mut simulation) = prepare(problem, options) else { panic!("{method} suits\n{text}") };
            let run = |simulation: &Simulation, pause: Option<u64>| {
                let (plan, system) = (&simulation.plan, &*simulation.system);
                let mut state = StepState::new(plan, system, &simulation.problem.model.initial, None);
                let map = simulation.step.map(plan, system).expect("the stages are compiled");
                let mut recorder = Recorder::default();
                if let Some(limit) = pause {
                    let plan = Plan { step_limit: limit, ..plan.clone() };
                    run_map(&plan, system, &*map, &mut state, &mut recorder).unwrap_err();
                }
                run_map(plan, system, &*map, &mut state, &mut recorder).unwrap();
                let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let outputs: Vec<_> = recorder.x.iter().map(|x| bits(x)).collect();
                (map.blocks().is_some(), (bits(&state.x), bits(&state.memory), state.cost, outputs))
            };
            let (in_loop, looped) = run(&simulation, None);
            let (_, interrupted) = run(&simulation, Some(73));
            simulation.step.leave_loops();
            let (alone_in_loop, alone) = run(&simulation, None);
            assert!(in_loop && !alone_in_loop, "{method}: {text}");
            assert_eq!(looped, alone, "{method}: {text}");
            assert_eq!(looped, interrupted, "{method}: {text}");
        }
    }
}
