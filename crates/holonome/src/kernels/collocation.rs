//! Stages of a collocation method in the lanes of one vector: the field is evaluated at all of them
//! at once, and sums over stages spread one lane over all: the idea of Antoñana, Makazaga, Murua,
//! arXiv:2511.03655 (2025).
//!
//! A step is three kernels over one array: the start of the iteration, an iteration, and the
//! results of the stages. In a loop a fourth kernel judges the attempt, in the first lane: a
//! division takes half as long there as in all lanes. All four run as one loop of machine code,
//! unless one is too long or holds functions that may be computed again, or the backend is another.

mod formulas;
mod lanes;

use super::bound::{Parametric, WideBound};
use super::formula::Formula;
use super::loops::Repeated;
use super::march::{
    self, AttemptInputs, AttemptLoop, AttemptPlan, AttemptResult, Judging, StepInterpolant,
};
use super::vectors::StateVectors;
use crate::backend::compile_cycle;
use formulas::{Measures, Places, StageNodes, states};
use holonome_integrate::controller::slots::{Slots, Status};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::fixed_point::{
    FAR, Finished, Iterated, MOST_ITERATIONS, Memory, Stages, Stop, ends, most_by_first_change,
    of_increments, stop,
};
use holonome_integrate::plan::{AdaptiveSteps, FixedSteps, Plan};
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::collocation::{Collocation, From};
use holonome_integrate::scheme::map::{self, Allowance, Carry, StepFrom, Workspace};
use holonome_integrate::state::Cost;
use holonome_jit::cycles;
use holonome_model::graph::aligned::{Aligned, first_aligned};
use holonome_model::graph::interpret::{Cycle, CycleMap, Prologue};
use holonome_model::graph::op::Binary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::Value;
use holonome_model::graph::{Graph, Node};
pub use lanes::{LaneStages, LaneStagesBound, LaneStep};
use std::ops::Range;
use std::sync::Arc;

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
    /// Kernel of the estimate's factor, in one lane, if steps are controlled.
    factor: Option<WideBound>,
    /// Tapes of the start, an iteration and the results.
    tapes: Arc<[Tape; 3]>,
}

impl Parametric for CompiledStages {
    fn rebind(&mut self, parameters: &[f64]) {
        let Collocation { nodes, weights, double_sums, .. } = self.collocation;
        let sums = self.collocation.sums(self.of_increments);
        for lane in 0..self.collocation.stages {
            let own = [nodes[lane], weights[lane]];
            self.start.rebind(lane, &own[..1]);
            self.iterate
                .rebind(lane, &[parameters, &sums.stages[lane], &double_sums[lane], &own].concat());
            let end = if lane == 0 { -1.0 } else { 1.0 };
            self.finish
                .rebind(lane, &[parameters, &sums.coefficients[lane], &own, &[end]].concat());
        }
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
        let of = StageNodes { collocation, apart: false, of_increments: of_increments(plan) };
        let (at, known) = (Places::new(of, &vectors.vectors), parameters.len());
        let wide =
            |tape: &Tape| WideBound::new(tape, collocation.stages, &vec![0.0; tape.parameters]);
        let most = most_by_first_change(collocation, plan);
        let tapes = [
            formulas::start(of, &at, &vectors.vectors),
            formulas::iteration(of, &at, field, vectors, known),
            formulas::finish(of, &at, field, &vectors.vectors, (known, ends(plan) > 0)),
        ];
        let [start, iterate, finish] = tapes.each_ref().map(wide);
        let mut stages = CompiledStages {
            collocation,
            of_increments: of.of_increments,
            ends: ends(plan),
            vectors: vectors.vectors.clone(),
            start,
            iterate,
            finish,
            factor: most.map(|most| {
                WideBound::new(&formulas::factor(collocation, &vectors.vectors), 1, &[most])
            }),
            at,
            tapes: Arc::new(tapes),
        };
        stages.rebind(parameters);
        stages
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
        self.place(&[0.0], &at.fresh, numbers);
        numbers[at.w.start * s..at.w.end * s].copy_from_slice(memory.w);
        self.spread_all(memory.sizes, &at.sizes, numbers);
        self.spread_all(memory.lost, &at.lost, numbers);
        self.spread(*memory.length, at.length, numbers);
    }

    /// Copy the memory back from the numbers, without the length: what the last step has left, if
    /// it is made.
    fn remember(&self, numbers: &[f64], memory: &mut Memory) {
        let (s, at) = (self.collocation.stages, &self.at);
        let w = if numbers[at.fresh.start * s] != 0.0 { at.left.start } else { at.w.start };
        let lost = w + at.w.len();
        memory.w.copy_from_slice(&numbers[w * s..lost * s]);
        self.gather(numbers, &at.sizes, memory.sizes);
        self.gather(numbers, &(lost..lost + at.lost.len()), memory.lost);
    }

    /// Set the start and the end of the iteration.
    fn give(&self, from: From, stop: Stop, numbers: &mut [f64]) {
        let Stop { enough, too_far, contraction, decayed } = stop;
        let from = if from == From::Start { -1.0 } else { 1.0 };
        self.spread_all(
            &[from, enough, too_far, contraction, decayed],
            &(self.at.from..self.at.t),
            numbers,
        );
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
        Iterated::of(of)
    }

    /// Find the stages of a step after the one whose memory is in the numbers. True if the
    /// iteration has converged.
    fn find(&self, stop: Stop, numbers: &mut [f64], work: &mut [f64], cost: &mut Cost) -> bool {
        self.start.iterate(numbers, 1, work);
        self.iterate.iterate(numbers, u64::from(MOST_ITERATIONS), work);
        let iterated = self.iterated(numbers);
        cost.field += iterated.count as u64 * self.collocation.stages as u64;
        iterated.converged(stop)
    }

    /// Compute the results of the stages that have been found. True if the step moves a vector
    /// without a scale.
    fn end(&self, numbers: &mut [f64], work: &mut [f64], cost: &mut Cost) -> bool {
        self.finish.iterate(numbers, 1, work);
        cost.field += self.ends;
        self.moves(numbers)
    }

    /// Put x₁ and the estimate of its error, and behind it as many measures as there is room for.
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
        numbers[self.at.moved * self.collocation.stages] != 0.0
    }
}

impl Stages for CompiledStages {
    fn work_len(&self) -> usize {
        let kernels = [&self.start, &self.iterate, &self.finish]
            .map(WideBound::work_len)
            .into_iter()
            .max()
            .unwrap_or(0);
        let factor = self.factor.as_ref().map_or(0, WideBound::work_len);
        let results = self.vectors.dim() + Measures::COUNT + factor;
        8 + self.at.count() * self.collocation.stages + kernels.max(results)
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

    fn finish(
        &self,
        memory: &mut Memory,
        x1: &mut [f64],
        error: &mut [f64],
        work: &mut [f64],
    ) -> Finished {
        let (numbers, work) = self.split(work);
        self.finish.iterate(numbers, 1, work);
        let (results, work) = work.split_at_mut(error.len() + Measures::COUNT);
        self.results(numbers, x1, results);
        let (estimate, measures) = results.split_at_mut(error.len());
        error.copy_from_slice(estimate);
        self.place(&[1.0], &self.at.fresh, numbers);
        self.remember(numbers, memory);
        let mut allowance = Allowance::NONE;
        if let Some(factor) = &self.factor {
            allowance.unsolved = measures[0];
            factor.iterate(measures, 1, work);
            allowance.squared_factor = measures[0];
        }
        Finished { moves: self.moves(numbers), allowance }
    }
}

/// Cycles between one kernel and the next: how often an iteration turns is not foreseen.
const BETWEEN: f64 = 12.0;

/// Attempts in a loop. The slots are among the numbers of the steps, in the first lane.
#[derive(Clone)]
pub struct CollocationLoop {
    stages: CompiledStages,
    kernels: LoopKernels,
    /// Tape of the judgement.
    judge: Arc<Tape>,
    judging: Judging,
    /// Place of every slot.
    slots: Vec<usize>,
    adaptive: AdaptiveSteps,
    stop: Stop,
}

impl CollocationLoop {
    /// Loop of attempts of `plan` with these stages. The parameters are those of the field and of
    /// its treatment.
    pub fn new(
        stages: &CompiledStages,
        attempts: &AttemptLoop,
        judging: &Judging,
        (plan, adaptive): (&Plan, &AdaptiveSteps),
        parameters: &[f64],
    ) -> CollocationLoop {
        let places = JudgedPlaces::within(&stages.at, &judging.slots);
        let tape = judge(attempts, stages.collocation, &places);
        CollocationLoop {
            kernels: LoopKernels::new(stages, &tape, &judged_by(parameters, adaptive, judging)),
            stages: stages.clone(),
            judging: judging.clone(),
            judge: Arc::new(tape),
            slots: places.slots,
            adaptive: adaptive.clone(),
            stop: stop(plan),
        }
    }

    /// Estimate of the cycles of so many attempts, accepted and rejected, with this cost.
    pub fn cycles(&self, attempts: u64, cost: &Cost) -> f64 {
        let CompiledStages { collocation, ends, ref tapes, .. } = self.stages;
        let lanes = collocation.stages;
        let [start, sweep, finish] = tapes.each_ref().map(|tape| cycles(tape, lanes));
        let swept = cost.field.saturating_sub(ends * attempts) as f64 / lanes as f64;
        let attempt = start + finish + cycles(&self.judge, 1) + 3.0 * BETWEEN;
        attempts as f64 * attempt + swept * (sweep + BETWEEN)
    }

    /// Set other parameters, in stages that have them already as well.
    pub fn rebind(
        &mut self,
        stages: &CompiledStages,
        parameters: &[f64],
        adaptive: &AdaptiveSteps,
    ) {
        self.stages = stages.clone();
        self.adaptive = adaptive.clone();
        self.kernels.rebind(stages, &judged_by(parameters, adaptive, &self.judging));
    }

    /// Length of the numbers.
    fn numbers(&self) -> usize {
        (self.stages.at.count() + self.judging.slots.count()) * self.stages.collocation.stages
    }

    /// Length of the first attempt from these slots, `None` if there may be none. Of later ones the
    /// judge finds it.
    fn first_length(&self, state: &[f64]) -> Option<f64> {
        let slots = &self.judging.slots;
        let AdaptiveSteps { longest_step, shortest_step, .. } = self.adaptive;
        let (limits, wanted) = ((self.adaptive.span(), shortest_step), state[slots.h]);
        let [elapsed, rejections] = [slots.elapsed, slots.rejections].map(|slot| state[slot]);
        let trial = trial(limits, elapsed, wanted.min(longest_step), rejections);
        (trial.resolves && trial.end < state[slots.pause]).then_some(trial.length)
    }
}

impl map::Attempts for CollocationLoop {
    fn slots(&self) -> &Slots {
        &self.judging.slots
    }

    fn work_len(&self) -> usize {
        let slots = self.judging.slots.count() * self.stages.collocation.stages;
        self.stages.work_len() + slots + self.kernels.work_len()
    }

    fn run(&self, count: u64, state: &mut [f64], workspace: &mut Workspace) {
        let (stages, slots) = (&self.stages, &self.judging.slots);
        let Workspace { memory, cost, work, .. } = workspace;
        let mut memory = Memory::of(stages.collocation, &stages.vectors, memory);
        // Without a step before there is no polynomial to start from.
        let Some(h) = self.first_length(state).filter(|_| *memory.length != 0.0) else {
            state[slots.status] = Status::Held.number();
            return;
        };
        let (at, lanes) = (&stages.at, stages.collocation.stages);
        let first = first_aligned(work);
        let (numbers, work) = work[first..].split_at_mut(self.numbers());
        stages.recall(&memory, numbers);
        stages.give(From::End, self.stop, numbers);
        for (number, place) in state.iter().zip(&self.slots) {
            numbers[place * lanes] = *number;
        }
        stages.place(&[h], &(at.h..at.x.start), numbers);
        stages.spread_all(&[0.0; 2], &at.counts, numbers);
        let status = self.slots[slots.status] * lanes;
        match &self.kernels {
            LoopKernels::Together { cycle, values, .. } => cycle.run(values, numbers, count, work),
            LoopKernels::Apart { judge } => {
                for _ in 0..count {
                    stages.start.iterate(numbers, 1, work);
                    stages.iterate.iterate(numbers, u64::from(MOST_ITERATIONS), work);
                    stages.finish.iterate(numbers, 1, work);
                    judge.iterate(numbers, 1, work);
                    if numbers[status] != Status::Going.number() {
                        break;
                    }
                }
            }
        }
        let mut counts = [0.0; 2];
        stages.gather(numbers, &at.counts, &mut counts);
        let [iterations, finished] = counts.map(|count| count as u64);
        cost.field += iterations * lanes as u64 + finished * stages.ends;
        for (number, place) in state.iter_mut().zip(&self.slots) {
            *number = numbers[place * lanes];
        }
        stages.remember(numbers, &mut memory);
        *memory.length = numbers[stages.at.length * lanes];
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

/// Kernels of a loop of attempts, of which the last one judges, in the first lane of the numbers.
#[derive(Clone)]
enum LoopKernels {
    /// One loop of machine code, with what its kernels know. The prologue is that of the judge.
    Together { cycle: Arc<dyn Cycle>, judge: Arc<Prologue>, values: Aligned },
    /// The stages' kernels and this one.
    Apart { judge: WideBound },
}

impl LoopKernels {
    fn new(stages: &CompiledStages, judge: &Tape, parameters: &[f64]) -> LoopKernels {
        let lanes = stages.collocation.stages;
        let of_lanes = |tape, turns| CycleMap { tape, lanes, first_alone: false, turns };
        let [start, iterate, finish] = &*stages.tapes;
        let maps = [
            of_lanes(start, 1),
            of_lanes(iterate, MOST_ITERATIONS),
            of_lanes(finish, 1),
            CycleMap { tape: judge, lanes, first_alone: true, turns: 1 },
        ];
        match compile_cycle(&maps) {
            Some(cycle) => {
                let judge = Arc::new(Prologue::new(judge));
                let values = bound_together(&*cycle, &judge, stages, parameters);
                LoopKernels::Together { cycle: cycle.into(), judge, values }
            }
            None => {
                LoopKernels::Apart { judge: WideBound::in_first_lane(judge, lanes, parameters) }
            }
        }
    }

    /// Set other parameters of the judge, over stages that have theirs.
    fn rebind(&mut self, stages: &CompiledStages, parameters: &[f64]) {
        match self {
            LoopKernels::Together { cycle, judge, values } => {
                *values = bound_together(&**cycle, judge, stages, parameters);
            }
            LoopKernels::Apart { judge } => *judge = judge.rebound(parameters),
        }
    }

    /// Length of the scratch, beside that of the stages.
    fn work_len(&self) -> usize {
        match self {
            LoopKernels::Together { cycle, .. } => cycle.work_len(),
            LoopKernels::Apart { judge } => judge.work_len(),
        }
    }
}

/// Values of all kernels of a loop, from the parameters of the judge and those of the stages.
fn bound_together(
    cycle: &dyn Cycle,
    judge: &Prologue,
    stages: &CompiledStages,
    parameters: &[f64],
) -> Aligned {
    let [start, iterate, finish] =
        [&stages.start, &stages.iterate, &stages.finish].map(WideBound::values);
    cycle.bind(&[start, iterate, finish, &judge.bind(parameters, 1)])
}

/// Equal steps in a loop.
#[derive(Clone)]
pub struct CollocationSteps {
    stages: CompiledStages,
    /// Loop state and kernel that settle a step: a map of the state, which x₁ and the estimate of
    /// its error follow.
    settle: Repeated,
    stop: Stop,
    t0: f64,
    h: f64,
}

impl CollocationSteps {
    /// Loop of steps of `plan` with these stages, settled by `settle`.
    pub fn new(
        stages: &CompiledStages,
        settle: Repeated,
        plan: &Plan,
        fixed: &FixedSteps,
    ) -> CollocationSteps {
        CollocationSteps {
            stages: stages.clone(),
            settle,
            stop: stop(plan),
            t0: plan.t0,
            h: fixed.h,
        }
    }

    /// Set other parameters for the settling, in stages that have theirs already as well.
    pub fn rebind(&mut self, stages: &CompiledStages, parameters: &[f64], (t0, h): (f64, f64)) {
        self.stages = stages.clone();
        (self.t0, self.h) = (t0, h);
        self.settle.kernel_mut().rebind(parameters);
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
        stages.begin(StepFrom { t, h: self.h, x }, numbers);
        if !stages.find(self.stop, numbers, work, cost) {
            return false;
        }
        let moves = stages.end(numbers, work, cost);
        stages.results(numbers, x1, error);
        stages.spread(self.h, stages.at.length, numbers);
        stages.place(&[1.0], &stages.at.fresh, numbers);
        !moves
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
        let Carry { memory, scales, innovation, sides, cost, mut outputs } = carry;
        if !self.follows(memory) {
            return false;
        }
        let (stages, n) = (&self.stages, x.len());
        let (collocation, vectors) = (stages.collocation, &stages.vectors);
        let (state, work) = work.split_at_mut(self.settle.len() + 2 * n);
        self.settle.enter(x, (scales, largest.len(), sides), first, state);
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
        self.settle.leave(state, count, x, (scales, innovation, cost), (largest, sides))
    }

    fn watched(&self) -> usize {
        self.settle.sides
    }
}

/// Parameters of [`judge`]: those of the model and its treatment, and of the loop.
fn judged_by(parameters: &[f64], adaptive: &AdaptiveSteps, judging: &Judging) -> Vec<f64> {
    [parameters, &march::parameters(adaptive, judging.control)].concat()
}

/// Places of the numbers from which an attempt is judged.
pub(super) struct JudgedPlaces {
    /// Places of the slots.
    slots: Vec<usize>,
    /// First places of x₁ and of the estimate of its error, whose numbers lie one after the other.
    results: [usize; 2],
    measures: [usize; Measures::COUNT],
    /// Places of what goes from one attempt to the next within the numbers.
    goes_on: Option<GoingOn>,
    /// Number of all places.
    count: usize,
}

/// Places of [`Places`] by which an attempt follows another one.
struct GoingOn {
    moved: usize,
    fresh: usize,
    length: usize,
    h: usize,
}

impl JudgedPlaces {
    /// Places within the numbers of a step whose stages are lanes; slots that are not numbers of
    /// the step follow them.
    fn within(at: &Places, slots: &Slots) -> JudgedPlaces {
        let mut places: Vec<usize> = (at.count()..at.count() + slots.count()).collect();
        places[slots.x.clone()].iter_mut().zip(at.x.clone()).for_each(|(place, x)| *place = x);
        places[slots.t] = at.t;
        JudgedPlaces {
            slots: places,
            results: [at.stages.start, at.field.start],
            measures: Measures::places(at),
            goes_on: Some(GoingOn {
                moved: at.moved,
                fresh: at.fresh.start,
                length: at.length,
                h: at.h,
            }),
            count: at.count() + slots.count(),
        }
    }

    /// Places one after the other: the slots, x₁, the estimate, the measures.
    pub fn in_turn(slots: &Slots) -> JudgedPlaces {
        let (count, n) = (slots.count(), slots.x.len());
        JudgedPlaces {
            slots: (0..count).collect(),
            results: [count, count + n],
            measures: std::array::from_fn(|k| count + 2 * n + k),
            goes_on: None,
            count: count + 2 * n + Measures::COUNT,
        }
    }
}

/// Tape that judges an attempt of a loop: a map of the numbers at these places. Within the numbers
/// of a step it sets the next one's length, too, and holds where the step has moved a vector
/// without a scale; the caller makes that one.
pub(super) fn judge(
    attempts: &AttemptLoop,
    collocation: &Collocation,
    places: &JudgedPlaces,
) -> Tape {
    let g = &mut Graph::new();
    let (n, one) = (attempts.slots.x.len(), g.one());
    let before: Vec<Node> = places.slots.iter().map(|&place| g.state(place)).collect();
    let [x1, error] = places.results.map(|first| states(g, &(first..first + n)));
    let (far, tolerance) = (g.constant(FAR), attempts.tolerance(g));
    let most = g.mul(far, tolerance);
    let vectors = attempts.vectors.vectors.count();
    let [factor, unsolved] = g.record(|r| {
        let measures = Measures::at(r, places.measures);
        let squared_factor = measures.squared_factor(collocation, vectors, r.value(most));
        [squared_factor, measures.change].map(Value::node)
    });
    let attempted = AttemptResult {
        x1,
        errors: vec![error],
        end_field: Vec::new(),
        interpolant: StepInterpolant::None,
        allowance: Some((factor, unsolved)),
    };
    let zero = g.zero();
    let like_others = places.goes_on.as_ref().map(|of| {
        let moved = g.state(of.moved);
        g.binary(Binary::Equal, moved, zero)
    });
    let begin = |_: &mut Graph, at: AttemptInputs| AttemptPlan {
        length: at.h,
        attempt: Box::new(|_, _| attempted),
    };
    let mut judgement = attempts.judge(g, &before, like_others, begin);
    let mut changed: Vec<(usize, Node)> = Vec::new();
    if let Some(of) = &places.goes_on {
        let (h, length) = (g.state(of.h), g.state(of.length));
        let next = attempts.next(g, &mut judgement, &before);
        let fresh = g.select(judgement.accepted, one, zero);
        let length = g.select(judgement.accepted, h, length);
        changed.extend([(of.fresh, fresh), (of.length, length), (of.h, next)]);
    }
    changed.extend(places.slots.iter().copied().zip(judgement.after));
    let inputs = attempts.parameters + march::PARAMETERS;
    // Every number up to the last one that changes is an output; the others stay.
    let mut after = states(g, &(0..changed.iter().map(|(place, _)| place + 1).max().unwrap_or(0)));
    for (place, number) in changed {
        after[place] = number;
    }
    match places.goes_on {
        Some(_) => Tape::of_loop(g, &after, judgement.goes_on, places.count, inputs),
        None => Tape::of_fused(g, &after, places.count, inputs),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Problem, RunOptions, Settings, Simulation, StepSize, prepare};
    use holonome_integrate::observer::Recorder;
    use holonome_integrate::plan::Plan;
    use holonome_integrate::run::{run, run_map};
    use holonome_integrate::state::StepState;

    /// Test that compiled stages come to those of slices, with fewer iterations where positions
    /// follow from momenta. The cases: the time is read; nothing follows from the rest (nor do
    /// positions off a constraint); all is at rest; masses are unlike.
    #[test]
    fn compiled_stages_are_those_of_slices() {
        let cases = [
            (
                "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1.1)\nhamiltonian dot(p, p)/2 - 1/norm(q)",
                true,
            ),
            (
                "coordinate q : R = 0\nmomentum p of q = 0\nhamiltonian p^2/2 + q^4/4 - q*sin(t)",
                true,
            ),
            (
                "state x : R^3 = (1, 1, 1)\nx' = (3*(x.y - x.x), x.x*(5 - x.z) - x.y, x.x*x.y - x.z)",
                false,
            ),
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
                let problem =
                    Problem::from_text("model", text, &Default::default(), &Settings::default())
                        .unwrap();
                let step = StepSize::Fixed(0.05);
                let options = RunOptions {
                    method: method.parse().unwrap(),
                    step,
                    until: 3.0,
                    ..RunOptions::default()
                };
                let simulation =
                    prepare(problem, options).unwrap_or_else(|error| panic!("{error}"));
                let (plan, system) = (&simulation.plan, &*simulation.trajectory.system);
                let start = StepState::new(plan, system, &simulation.problem.model.initial, None);
                let map =
                    simulation.trajectory.step.map(plan, system).expect("the stages are compiled");
                let (mut compiled, mut slices) = (start.clone(), start);
                run_map(plan, system, &*map, &mut compiled, &mut Recorder::default()).unwrap();
                run(plan, system, &mut slices, &mut Recorder::default()).unwrap();
                for (a, b) in compiled.x.iter().zip(&slices.x) {
                    // Sixty steps, each good to a few roundings of a state of length 1 to 3,
                    // amplified by e³ at most.
                    let tolerance = 60.0 * 4.0 * f64::EPSILON * 20.0;
                    assert!(
                        (a - b).abs() <= tolerance * b.abs().max(1e-3),
                        "{method}: {a} {b} of\n{text}"
                    );
                }
                let [few, many] = [compiled, slices].map(|state| state.cost.field);
                // Where the changes end is up to rounding: one iteration at eight stages in each of
                // sixty steps.
                let most = if follows { many } else { many + 60 * 8 };
                assert!(few < most, "{method}: {few} {many} of\n{text}");
            }
        }
    }

    /// Test that equal steps in a loop are those made one by one: also if the time is read, if a
    /// vector without a scale begins to move, and if a run is interrupted.
    #[test]
    fn a_loop_is_its_steps_one_by_one() {
        let cases = [
            (
                "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1.1)\nhamiltonian dot(p, p)/2 - 1/norm(q)",
                0.05,
            ),
            (
                "coordinate q : R = 0\nmomentum p of q = 0\nhamiltonian p^2/2 + q^4/4 - q*sin(t)",
                0.05,
            ),
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
            ["gauss8", "gauss16", "corrected:gauss16", "projection:gauss8"]
                .map(|method| (case, method))
        }) {
            let problem =
                Problem::from_text("model", text, &Default::default(), &Settings::default())
                    .unwrap();
            let (method, step) = (method.parse().unwrap(), StepSize::Fixed(h));
            // The last step is a part of one.
            let options = RunOptions {
                method,
                step,
                until: 20.02,
                samples: Some(7),
                ..RunOptions::default()
            };
            let Ok(mut simulation) = prepare(problem, options) else {
                panic!("{method} suits\n{text}")
            };
            let run = |simulation: &Simulation, pause: Option<u64>| {
                let (plan, system) = (&simulation.plan, &*simulation.trajectory.system);
                let mut state =
                    StepState::new(plan, system, &simulation.problem.model.initial, None);
                let map =
                    simulation.trajectory.step.map(plan, system).expect("the stages are compiled");
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
            simulation.trajectory.step.leave_loops();
            let (alone_in_loop, alone) = run(&simulation, None);
            assert!(in_loop && !alone_in_loop, "{method}: {text}");
            assert_eq!(looped, alone, "{method}: {text}");
            assert_eq!(looped, interrupted, "{method}: {text}");
        }
    }
}
