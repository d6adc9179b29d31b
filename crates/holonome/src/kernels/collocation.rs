//! Stages of a collocation method in the lanes of one vector: the field is evaluated at all of them at once, and sums
//! over stages spread one lane over all.
//!
//! A step is three kernels over one array: the start of the iteration, an iteration, and the results of the stages. In
//! a loop a fourth kernel judges the attempt, in one lane: a division takes half as long there as in all lanes.

mod formulas;
mod lanes;

use super::bound::{Bound, Quantities, WideBound};
use super::formula::Formula;
use super::map::Repeated;
use super::march::{self, AttemptLoop, Attempted, Begun, Judging, StepInterpolant};
use super::vectors::StateVectors;
use formulas::{Measures, Places, StageNodes, states};
use holonome_integrate::controller::slots::{Slots, Status};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::fixed_point::{
    Iterated, MOST_ITERATIONS, Memory, Stages, Stop, ends, most_by_first_change, of_increments, stop,
};
use holonome_integrate::plan::{AdaptiveSteps, FixedSteps, Plan};
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::collocation::{Collocation, From};
use holonome_integrate::scheme::map::{self, Carry, StepFrom, Workspace};
use holonome_integrate::state::Cost;
use holonome_model::graph::Graph;
use holonome_model::graph::aligned::first_aligned;
use holonome_model::graph::tape::Tape;
pub use lanes::{LaneStages, LaneStagesBound, Made};
use std::ops::Range;

/// Compiled stages of steps of a field.
#[derive(Clone)]
pub struct CompiledStages {
    collocation: &'static Collocation,
    of_increments: bool,
    at: Places,
    /// Number of ends of a step at which its estimate evaluates the field.
    ends: u64,
    vectors: Vectors,
    start: WideBound,
    iterate: WideBound,
    finish: WideBound,
    /// Kernel that multiplies the estimate by its factor, in one lane.
    weigh: WideBound,
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
        let of = StageNodes { collocation, apart: false, of_increments: of_increments(plan) };
        let (at, known) = (Places::new(of, &vectors.vectors), parameters.len());
        let wide = |tape: &Tape| WideBound::new(tape, collocation.stages, &vec![0.0; tape.parameters]);
        let most = most_by_first_change(collocation, plan);
        let mut stages = CompiledStages {
            collocation,
            of_increments: of.of_increments,
            ends: ends(plan),
            vectors: vectors.vectors.clone(),
            start: wide(&formulas::start(of, &at, &vectors.vectors)),
            iterate: wide(&formulas::iteration(of, &at, field, vectors, known)),
            finish: wide(&formulas::finish(of, &at, field, &vectors.vectors, (known, ends(plan) > 0, 0.0))),
            weigh: WideBound::new(&formulas::weigh(collocation, &vectors.vectors, ends(plan) > 0), 1, &[most]),
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
        let Collocation { nodes, weights, double_sums, .. } = self.collocation;
        let sums = self.collocation.sums(self.of_increments);
        for lane in 0..self.collocation.stages {
            let own = [nodes[lane], weights[lane]];
            self.start.rebind(lane, &own[..1]);
            self.iterate.rebind(lane, &[parameters, &sums.stages[lane], &double_sums[lane], &own].concat());
            let end = if lane == 0 { -1.0 } else { 1.0 };
            self.finish.rebind(lane, &[parameters, &sums.coefficients[lane], &own, &[end]].concat());
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

    /// Make a step after the one whose memory is in the numbers, and put x₁ and the estimate of its error, without its
    /// factor, which the measures follow. True if it moves a vector without a scale; `None` if the iteration does not
    /// converge.
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
        self.results(numbers, x1, error);
        Some(self.moves(numbers))
    }

    /// Put x₁ and the estimate of its error, without its factor, which the measures follow.
    fn results(&self, numbers: &[f64], x1: &mut [f64], error: &mut [f64]) {
        let (estimate, measures) = error.split_at_mut(x1.len());
        self.gather(numbers, &self.at.stages, x1);
        self.gather(numbers, &self.at.field, estimate);
        for (out, at) in measures.iter_mut().zip(Measures::places(&self.at)) {
            *out = numbers[at * self.collocation.stages];
        }
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
        let [kernels, weigh] = [&[&self.start, &self.iterate, &self.finish][..], &[&self.weigh]]
            .map(|kernels| kernels.iter().map(|kernel| kernel.work_len()).max().unwrap_or(0));
        let weighed = self.vectors.dim() + Measures::COUNT + weigh;
        8 + self.at.count() * self.collocation.stages + kernels.max(weighed)
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
        let (weighed, work) = work.split_at_mut(error.len() + Measures::COUNT);
        self.results(numbers, x1, weighed);
        self.weigh.iterate(weighed, 1, work);
        error.copy_from_slice(&weighed[..error.len()]);
        self.remember(numbers, memory);
        self.moves(numbers)
    }
}

/// Attempts in a loop.
pub struct CollocationLoop {
    stages: CompiledStages,
    /// Kernel that judges an attempt: a map of the slots, which x₁, the estimate of its error and the measures follow.
    judge: Bound,
    judging: Judging,
    adaptive: AdaptiveSteps,
    stop: Stop,
    /// Largest estimate that the first change of an iteration may cause; see [`most_by_first_change`].
    most: f64,
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
        let most = most_by_first_change(stages.collocation, plan);
        CollocationLoop {
            judge: Bound::new(
                &judge(attempts, Some(stages.collocation)),
                &judged_by(parameters, adaptive, judging, most),
            ),
            stages: stages.clone(),
            judging: judging.clone(),
            adaptive: adaptive.clone(),
            stop: stop(plan),
            most,
        }
    }

    /// This loop with other parameters, over stages that have them.
    pub fn rebound(&self, stages: &CompiledStages, parameters: &[f64], adaptive: &AdaptiveSteps) -> CollocationLoop {
        CollocationLoop {
            stages: stages.clone(),
            judge: self.judge.rebound(&judged_by(parameters, adaptive, &self.judging, self.most)),
            judging: self.judging.clone(),
            adaptive: adaptive.clone(),
            stop: self.stop,
            most: self.most,
        }
    }

    /// Length of the judge's state: the slots, x₁, an error, the measures.
    fn judged(&self) -> usize {
        self.judging.slots.count() + 2 * self.judging.slots.x.len() + Measures::COUNT
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
        2 * self.stages.vectors.dim() + Measures::COUNT + self.settle.work_len() + self.stages.work_len()
    }

    /// Make a step from x, and put x₁ and its error, which the measures follow; true if it is like the others.
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
        stages.weigh.iterate(error, 1, work);
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
        let (state, work) = work.split_at_mut(self.settle.len() + 2 * n + Measures::COUNT);
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

/// Parameters of [`judge`] with measures: those of the model and its treatment, of the loop, and the largest estimate
/// that the first change of an iteration may cause.
fn judged_by(parameters: &[f64], adaptive: &AdaptiveSteps, judging: &Judging, most: f64) -> Vec<f64> {
    [parameters, &march::parameters(adaptive, judging.control), &[most]].concat()
}

/// Tape that judges an attempt of a loop, from the slots, x₁ and the estimate of its error; of an attempt of `measured`
/// collocation the estimate is without its factor, and the measures follow it.
pub(super) fn judge(attempts: &AttemptLoop, measured: Option<&Collocation>) -> Tape {
    let g = &mut Graph::new();
    let (slots, n) = (attempts.slots.count(), attempts.slots.x.len());
    let [before, x1, mut error] = [0..slots, slots..slots + n, slots + n..slots + 2 * n].map(|range| states(g, &range));
    let (mut places, mut parameters) = (slots + 2 * n, attempts.parameters + march::PARAMETERS);
    if let Some(collocation) = measured {
        let most = g.parameter(parameters);
        let measures = Measures::of_states(g, places);
        let factor = measures.factor(g, collocation, (&attempts.vectors.vectors, true), most);
        error.iter_mut().for_each(|error| *error = g.mul(factor, *error));
        (places, parameters) = (places + Measures::COUNT, parameters + 1);
    }
    let attempted = Attempted { x1, errors: vec![error], end_field: Vec::new(), interpolant: StepInterpolant::None };
    let judgement = attempts.judge(g, &before, |_, at| Begun { length: at.h, attempt: Box::new(|_, _| attempted) });
    Tape::of_fused(g, &judgement.after, places, parameters)
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
                // Where the changes end is up to rounding: one iteration at eight stages in each of sixty steps.
                let most = if follows { many } else { many + 60 * 8 };
                assert!(few < most, "{method}: {few} {many} of\n{text}");
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
