//! Steps of a collocation method with a trajectory in every lane.

use super::formulas::{self, Measures, Places, StageNodes};
use crate::backend::compile;
use crate::kernels::formula::Formula;
use crate::kernels::vectors::StateVectors;
use holonome_integrate::ensemble::scatter;
use holonome_integrate::fixed_point::{
    Iterated, MOST_ITERATIONS, Memory, Stop, ends, of_increments, sizes_of_scales, stop,
};
use holonome_integrate::plan::Plan;
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::collocation::Collocation;
use holonome_model::graph::aligned::{Aligned, first_aligned};
use holonome_model::graph::interpret::Kernel;
use std::ops::Range;

/// Stages of steps, with a trajectory in every lane.
pub struct LaneStages {
    collocation: &'static Collocation,
    at: Places,
    stop: Stop,
    /// Number of ends of a step at which its estimate evaluates the field.
    ends: u64,
    lanes: usize,
    memory: usize,
    start: Box<dyn Kernel>,
    iterate: Box<dyn Kernel>,
    finish: Box<dyn Kernel>,
}

/// Parameters of the trajectories.
pub struct LaneStagesBound {
    start: Aligned,
    iterate: Aligned,
    finish: Aligned,
}

/// Scratch of steps: the numbers of [`Places`], then the results of a step.
pub struct LaneNumbers<'w> {
    numbers: &'w mut [f64],
    results: &'w mut [f64],
    work: &'w mut [f64],
}

impl LaneStages {
    /// Stages of steps of `plan` over `field`, which has so many parameters.
    pub fn new(
        collocation: &'static Collocation,
        plan: &Plan,
        (field, parameters): (&Formula, usize),
        vectors: &StateVectors,
        lanes: usize,
    ) -> LaneStages {
        let of = StageNodes { collocation, apart: true, of_increments: of_increments(plan) };
        let (at, state) = (Places::new(of, &vectors.vectors), &vectors.vectors);
        LaneStages {
            stop: stop(plan),
            ends: ends(plan),
            memory: Memory::len(collocation, state),
            start: compile(&formulas::start(of, &at, state), lanes),
            iterate: compile(&formulas::iteration(of, &at, field, vectors, parameters), lanes),
            finish: compile(
                &formulas::finish(of, &at, field, state, (parameters, ends(plan) > 0)),
                lanes,
            ),
            collocation,
            at,
            lanes,
        }
    }

    /// The collocation method.
    pub fn collocation(&self) -> &'static Collocation {
        self.collocation
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> LaneStagesBound {
        LaneStagesBound {
            start: self.start.bind(parameters),
            iterate: self.iterate.bind(parameters),
            finish: self.finish.bind(parameters),
        }
    }

    /// Set the parameters of one lane.
    pub fn rebind(&self, bound: &mut LaneStagesBound, lane: usize, parameters: &[f64]) {
        self.start.rebind(&mut bound.start, lane, parameters);
        self.iterate.rebind(&mut bound.iterate, lane, parameters);
        self.finish.rebind(&mut bound.finish, lane, parameters);
    }

    /// Length of what a trajectory carries: [`Memory`], then the number of evaluations of the
    /// field.
    pub fn memory_len(&self) -> usize {
        self.memory + 1
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        let kernels = [&self.start, &self.iterate, &self.finish].map(|kernel| kernel.work_len());
        8 + (self.at.count() + self.finish.outputs()) * self.lanes
            + kernels.into_iter().max().unwrap_or(0)
    }

    /// Memory of a trajectory before its first step, whose polynomial starts as the constant
    /// `field`.
    pub fn begin(&self, field: &[f64], memory: &mut [f64]) {
        memory.fill(0.0);
        for (w, field) in memory.chunks_exact_mut(self.collocation.stages).zip(field) {
            w[0] = *field;
        }
    }

    /// Scratch for steps that go on from this memory, of all lanes.
    pub fn enter<'w>(&self, memory: &[f64], work: &'w mut [f64]) -> LaneNumbers<'w> {
        let first = first_aligned(work);
        let (numbers, work) = work[first..].split_at_mut(self.at.count() * self.lanes);
        let (results, work) = work.split_at_mut(self.finish.outputs() * self.lanes);
        let (w, lost, sizes) = self.parts();
        numbers[self.rows(&self.at.w)].copy_from_slice(&memory[w]);
        numbers[self.rows(&self.at.lost)].copy_from_slice(&memory[lost]);
        numbers[self.rows(&self.at.sizes)].copy_from_slice(&memory[sizes]);
        let Stop { enough, too_far, contraction, decayed } = self.stop;
        for (k, number) in [1.0, enough, too_far, contraction, decayed].into_iter().enumerate() {
            numbers[self.rows(&(self.at.from + k..self.at.from + k + 1))].fill(number);
        }
        LaneNumbers { numbers, results, work }
    }

    /// Put what the next steps go on from into the memory, without the lengths and the counts.
    pub fn leave(&self, of: &LaneNumbers, memory: &mut [f64]) {
        let (w, lost, sizes) = self.parts();
        memory[w].copy_from_slice(&of.numbers[self.rows(&self.at.w)]);
        memory[lost].copy_from_slice(&of.numbers[self.rows(&self.at.lost)]);
        memory[sizes].copy_from_slice(&of.numbers[self.rows(&self.at.sizes)]);
    }

    /// Take the scales of a lane's vectors for its next steps, of about the length h.
    pub fn take_scales(
        &self,
        lane: usize,
        (vectors, norms, h): (&Vectors, &[f64], f64),
        of: &mut LaneNumbers,
    ) {
        if self.ends > 0 {
            let mut sizes = vec![0.0; self.at.sizes.len()];
            sizes_of_scales(vectors, norms, h, &mut sizes);
            scatter(&sizes, self.lanes, lane, &mut of.numbers[self.rows(&self.at.sizes)]);
        }
    }

    /// Places of the lengths in the memory, and of the counts.
    pub fn lengths_and_counts(&self) -> [Range<usize>; 2] {
        let length = (self.memory - 1) * self.lanes;
        [length..length + self.lanes, length + self.lanes..length + 2 * self.lanes]
    }

    /// W, rounding losses and sizes in the memory.
    fn parts(&self) -> (Range<usize>, Range<usize>, Range<usize>) {
        let w = self.at.w.len() * self.lanes;
        let lost = w + self.at.lost.len() * self.lanes;
        (0..w, w..lost, lost..lost + self.at.sizes.len() * self.lanes)
    }

    fn rows(&self, places: &Range<usize>) -> Range<usize> {
        places.start * self.lanes..places.end * self.lanes
    }

    /// Start from the start of the last step in place of its end, for states within it.
    pub fn step_back(&self, of: &mut LaneNumbers) {
        of.numbers[self.rows(&(self.at.from..self.at.stop))].fill(-1.0);
        of.numbers[self.rows(&self.at.lost)].fill(0.0);
    }

    /// Set the start t and the length h of a lane's step, which follows one of `length`, or is the
    /// first one.
    pub fn set(&self, lane: usize, (t, h, length): (f64, f64, f64), of: &mut LaneNumbers) {
        // The first step follows from nothing, and a part of one is known: both may start anywhere.
        let known = of.numbers[self.at.from * self.lanes + lane] < 0.0;
        let too_far = if known || length == 0.0 { f64::INFINITY } else { self.stop.too_far };
        let length = if length == 0.0 { h } else { length };
        let at =
            [(self.at.t, t), (self.at.h, h), (self.at.length, length), (self.at.stop + 1, too_far)];
        for (place, number) in at {
            of.numbers[place * self.lanes + lane] = number;
        }
    }

    /// Make the steps of the lanes that are `made` from the states `x`, and count their
    /// evaluations. Where a step is not like others, because its iteration does not converge or
    /// because a vector without a scale moves, `made` becomes [`LaneStep::No`] or [`LaneStep::Moves`].
    pub fn make(
        &self,
        bound: &LaneStagesBound,
        x: &[f64],
        of: &mut LaneNumbers,
        made: &mut [LaneStep],
        counts: &mut [f64],
    ) {
        let LaneNumbers { numbers, results, work } = of;
        let (at, lanes) = (&self.at, self.lanes);
        numbers[self.rows(&at.x)].copy_from_slice(x);
        self.start.iterate(&bound.start, numbers, 1, work);
        let going = self.rows(&at.going);
        for (going, made) in numbers[going.clone()].iter_mut().zip(made.iter()) {
            if *made == LaneStep::Idle {
                *going = 0.0;
            }
        }
        for _ in 0..MOST_ITERATIONS {
            if numbers[going.clone()].iter().all(|&going| going == 0.0) {
                break;
            }
            self.iterate.iterate(&bound.iterate, numbers, 1, work);
        }
        // Nothing reads the time.
        self.finish.run(&bound.finish, &numbers[..lanes], numbers, results, work);
        let moved = self.results_len();
        for (lane, made) in made.iter_mut().enumerate().filter(|(_, made)| **made != LaneStep::Idle)
        {
            let number = |k: usize| numbers[(at.iterated + k) * lanes + lane];
            let iterated = Iterated::of([0, 1, 2, 3, 4].map(number));
            counts[lane] += iterated.count * self.collocation.stages as f64;
            let too_far = numbers[(at.stop + 1) * lanes + lane];
            if !iterated.converged(Stop { too_far, ..self.stop }) {
                *made = LaneStep::No;
                continue;
            }
            counts[lane] += self.ends as f64;
            if results[moved + lane] != 0.0 {
                *made = LaneStep::Moves;
            }
        }
    }

    /// x₁, the estimate of its error and its measures in every lane, one behind the other.
    pub fn results<'r>(&self, of: &'r LaneNumbers) -> &'r [f64] {
        &of.results[..self.results_len()]
    }

    /// Length of [`LaneStages::results`].
    pub fn results_len(&self) -> usize {
        (2 * self.at.x.len() + Measures::COUNT) * self.lanes
    }

    /// Go on from the step that was made in the lanes that `accepted` says.
    pub fn accept(&self, of: &mut LaneNumbers, accepted: impl Fn(usize) -> bool) {
        let first = self.results_len() + self.lanes;
        let kept = self.at.w.start * self.lanes..self.at.lost.end * self.lanes;
        let made = &of.results[first..first + kept.len()];
        let masks: Vec<u64> =
            (0..self.lanes).map(|lane| if accepted(lane) { u64::MAX } else { 0 }).collect();
        for (kept, made) in
            of.numbers[kept].chunks_exact_mut(self.lanes).zip(made.chunks_exact(self.lanes))
        {
            for ((kept, made), mask) in kept.iter_mut().zip(made).zip(&masks) {
                *kept = f64::from_bits((made.to_bits() & mask) | (kept.to_bits() & !mask));
            }
        }
    }
}

/// Step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneStep {
    /// None.
    Idle,
    /// One like others.
    Yes,
    /// One whose iteration does not converge.
    No,
    /// One that moves a vector without a scale.
    Moves,
}
