//! Equal steps: all lanes march together, from output to output.

use super::{End, LaneCarry, LaneSteps, Stopped, Trajectories, finite, gather, scatter};
use crate::plan::{FixedSteps, Plan};
use crate::run::LONGEST_BLOCK;
use crate::run::claims::{next_look, surprises};
use crate::scales::{Scales, first_pending};
use crate::vector::max_or_nan;

pub(super) fn run<S: LaneSteps>(
    plan: &Plan,
    fixed: &FixedSteps,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    let mut march = March::new(plan, fixed, steps);
    while march.fill(bound, trajectories) {
        march.run(bound, trajectories);
    }
}

/// The first step after step `step` at which terms are measured: 1, 4, 16, …
fn next_measured(step: u64) -> u64 {
    (0..32).map(|k| 1 << (2 * k)).find(|&measured| measured > step).unwrap_or(u64::MAX)
}

struct March<'a, S: LaneSteps> {
    plan: &'a Plan,
    fixed: &'a FixedSteps,
    steps: &'a S,
    /// The number of the trajectory in each lane, while it goes on.
    number: Vec<Option<usize>>,
    ends: Vec<End>,
    x: Vec<f64>,
    /// The states at the start of a block.
    before: Vec<f64>,
    /// The initial states, where failed lanes wait.
    initial: Vec<f64>,
    /// The same three of what is carried beside the state.
    carried: Vec<f64>,
    carried_before: Vec<f64>,
    carried_initially: Vec<f64>,
    innovation: Vec<f64>,
    /// The lanes in which a correction was larger than a step's error explains.
    surprised: Vec<bool>,
    /// The field at the initial states, and after their first steps.
    field: Vec<f64>,
    field_after: Vec<f64>,
    largest: Vec<f64>,
    deviations: Vec<f64>,
    terms: Vec<f64>,
    group: Vec<f64>,
    one: Vec<f64>,
    /// σ² of the vectors of a lane.
    squares: Vec<f64>,
    /// |x_b|² of the vectors.
    all_squares: Vec<f64>,
    times: Vec<f64>,
    work: Vec<f64>,
}

impl<'a, S: LaneSteps> March<'a, S> {
    fn new(plan: &'a Plan, fixed: &'a FixedSteps, steps: &'a S) -> March<'a, S> {
        let (lanes, n, groups) = (steps.lanes(), steps.dim(), steps.groups());
        let zeros = |len: usize| vec![0.0; len * lanes];
        let kept = steps.kept();
        let carried = Scales::new(steps.vectors(), kept, Vec::new(), &vec![0.0; n]).carried.len();
        March {
            plan,
            fixed,
            steps,
            number: vec![None; lanes],
            ends: (0..lanes).map(|_| End::new(plan.t0, groups)).collect(),
            x: zeros(n),
            before: zeros(n),
            initial: zeros(n),
            carried: zeros(carried),
            carried_before: zeros(carried),
            carried_initially: zeros(carried),
            innovation: zeros(1),
            surprised: vec![false; lanes],
            field: zeros(n),
            field_after: zeros(n),
            largest: zeros(groups),
            deviations: zeros(groups),
            terms: zeros(groups),
            group: vec![0.0; groups],
            one: vec![0.0; n],
            squares: Vec::new(),
            all_squares: zeros(steps.vectors().count()),
            times: zeros(1),
            work: vec![0.0; steps.work_len()],
        }
    }

    /// Puts a trajectory into every lane; says whether there was one at all. Lanes without one repeat another's numbers.
    fn fill(&mut self, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) -> bool {
        let lanes = self.steps.lanes();
        for lane in 0..lanes {
            self.number[lane] = trajectories.next(bound, lane, &mut self.one, &mut []);
            match self.number[lane] {
                Some(_) => self.ends[lane].restart(self.plan.t0),
                None if lane == 0 => return false,
                None => gather(&self.initial, lanes, 0, &mut self.one),
            }
            scatter(&self.one, lanes, lane, &mut self.initial);
        }
        self.x.copy_from_slice(&self.initial);
        self.start_carrying(bound);
        true
    }

    /// What the trajectories carry at their start, as a single run finds it.
    fn start_carrying(&mut self, bound: &S::Bound) {
        let (steps, kept, lanes) = (self.steps, self.steps.kept(), self.steps.lanes());
        if !kept.sizes {
            return;
        }
        for lane in 0..lanes {
            gather(&self.x, lanes, lane, &mut self.one);
            let scales = Scales::new(steps.vectors(), kept, Vec::new(), &self.one);
            scatter(&scales.carried, lanes, lane, &mut self.carried);
        }
        if let Some(lagged) = steps.tableau().lagged.as_ref().filter(|_| kept.lagged) {
            let pending = 2 * steps.vectors().count() * lanes;
            self.times.fill(self.plan.t0);
            steps.fields(bound, &self.times, &self.x, &mut self.field, &mut self.work);
            first_pending(lagged.next, &self.field, None, &mut self.carried[pending..]);
            // The first step once for nothing but its error estimate.
            self.carried_before.copy_from_slice(&self.carried);
            let carry = LaneCarry { scales: &mut self.carried, innovation: &mut self.innovation };
            steps.steps(bound, 0..1, &mut self.x, carry, &mut self.largest, &mut self.work);
            self.times.fill(self.fixed.time(self.plan.t0, 1));
            steps.fields(bound, &self.times, &self.x, &mut self.field_after, &mut self.work);
            let after = Some((&self.field_after[..], &self.carried[pending..]));
            first_pending(lagged.next, &self.field, after, &mut self.carried_before[pending..]);
            self.x.copy_from_slice(&self.initial);
            self.carried.copy_from_slice(&self.carried_before);
        }
        self.carried_initially.copy_from_slice(&self.carried);
    }

    fn run(&mut self, bound: &S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let (count, mut step, mut next) = (self.fixed.steps, 0, 0);
        let mut next_claims = next_look(0);
        self.surprised.fill(false);
        self.note_deviations(bound, 0);
        loop {
            if self.fixed.samples.get(next) == Some(&step) {
                self.sample(next, trajectories);
                next += 1;
            }
            if step == count || self.number.iter().all(Option::is_none) {
                break;
            }
            let limit = self.plan.step_limit;
            if step == limit {
                self.stop_all(Stopped::TooManySteps, trajectories);
                break;
            }
            let to_sample = self.fixed.samples.get(next).map_or(u64::MAX, |&sample| sample - step);
            let block = LONGEST_BLOCK.min(count - step).min(to_sample).min(limit - step);
            // A run by itself keeps the state before its last step, for a later end.
            let to_last = match self.fixed.free_steps().saturating_sub(step) {
                0 => u64::MAX,
                to_last => to_last,
            };
            let to_terms = next_measured(step) - step;
            let block = block.min(to_last).min(to_terms).min(trajectories.steps_between_looks());
            self.block(bound, step, block, trajectories);
            step += block;
            if step == next_measured(step - 1) && step < count {
                self.note_deviations(bound, step);
            }
            if self.steps.corrects() {
                self.look_for_far(step, trajectories);
            }
            if trajectories.looks() {
                let due = step >= next_claims || step == count;
                if due {
                    next_claims = next_look(step);
                }
                self.look(step, due, trajectories);
            }
        }
        self.note_deviations(bound, step);
        let t = self.fixed.time(self.plan.t0, step);
        for lane in 0..self.steps.lanes() {
            if let Some(number) = self.number[lane].take() {
                let failure = (!finite(&self.deviations, self.steps.lanes(), lane)).then_some(Stopped::NonFinite);
                let end = &mut self.ends[lane];
                (end.t, end.steps, end.failure) = (t, step, failure);
                self.charge(lane, step);
                trajectories.end(number, &self.ends[lane]);
            }
        }
    }

    /// Makes a block of steps; one in which a lane fails is made again step by step, up to the step that failed it.
    fn block(&mut self, bound: &S::Bound, first: u64, count: u64, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.steps.lanes();
        self.before.copy_from_slice(&self.x);
        self.carried_before.copy_from_slice(&self.carried);
        let carry = LaneCarry { scales: &mut self.carried, innovation: &mut self.innovation };
        self.steps.steps(bound, first..first + count, &mut self.x, carry, &mut self.largest, &mut self.work);
        let good = |this: &Self, lane: usize| finite(&this.x, lanes, lane) && finite(&this.largest, lanes, lane);
        let failed: Vec<usize> = (0..lanes).filter(|&lane| self.number[lane].is_some() && !good(self, lane)).collect();
        if !failed.is_empty() {
            self.x.copy_from_slice(&self.before);
            self.carried.copy_from_slice(&self.carried_before);
            if count > 1 {
                for step in first..first + count {
                    self.block(bound, step, 1, trajectories);
                }
                return;
            }
            for lane in failed {
                self.stop(lane, first, Stopped::NonFinite, trajectories);
            }
            return self.block(bound, first, count, trajectories);
        }
        for lane in 0..lanes {
            let t = self.fixed.time(self.plan.t0, first + count);
            self.ends[lane].take_innovation(self.innovation[lane], t);
            self.surprised[lane] |= surprises(self.innovation[lane], self.steps.vectors().count());
            for (group, largest) in self.ends[lane].largest.iter_mut().enumerate() {
                *largest = max_or_nan(*largest, self.largest[group * lanes + lane]);
            }
        }
    }

    /// Ends the trajectories whose constraints may not be met.
    fn look_for_far(&mut self, step: u64, trajectories: &mut dyn Trajectories<S::Bound>) {
        for lane in 0..self.steps.lanes() {
            if self.number[lane].is_none() {
                continue;
            }
            if trajectories.may_be_far(&self.ends[lane].largest, &self.ends[lane].terms) {
                self.stop(lane, step, Stopped::Doubted, trajectories);
            }
        }
    }

    /// Ends the trajectories whose claims fail after `step` steps, and those that were pushed about.
    fn look(&mut self, step: u64, due: bool, trajectories: &mut dyn Trajectories<S::Bound>) {
        let t = self.fixed.time(self.plan.t0, step);
        for lane in 0..self.steps.lanes() {
            let Some(number) = self.number[lane] else { continue };
            let mut doubted = self.surprised[lane];
            if due && !doubted {
                gather(&self.x, self.steps.lanes(), lane, &mut self.one);
                let kept = if self.steps.kept().sizes { self.steps.vectors().count() } else { 0 };
                self.squares.resize(kept, 0.0);
                gather(&self.carried, self.steps.lanes(), lane, &mut self.squares);
                doubted = trajectories.look((lane, number), t, &self.one, &self.squares);
            }
            if doubted {
                self.stop(lane, step, Stopped::Doubted, trajectories);
            }
        }
    }

    /// Ends the trajectory of a lane after `step` steps; the lane then waits at a state that is sound.
    fn stop(&mut self, lane: usize, step: u64, failure: Stopped, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.steps.lanes();
        if let Some(number) = self.number[lane].take() {
            let end = &mut self.ends[lane];
            (end.t, end.steps, end.failure) = (self.fixed.time(self.plan.t0, step), step, Some(failure));
            self.charge(lane, step);
            trajectories.end(number, &self.ends[lane]);
        }
        gather(&self.initial, lanes, lane, &mut self.one);
        scatter(&self.one, lanes, lane, &mut self.x);
        for (carried, initially) in self.carried.iter_mut().zip(&self.carried_initially).skip(lane).step_by(lanes) {
            *carried = *initially;
        }
    }

    fn stop_all(&mut self, failure: Stopped, trajectories: &mut dyn Trajectories<S::Bound>) {
        for lane in 0..self.steps.lanes() {
            self.stop(lane, self.plan.step_limit, failure, trajectories);
        }
    }

    fn charge(&mut self, lane: usize, step: u64) {
        let (cost, stages) = (&mut self.ends[lane].cost, self.steps.tableau().stages_of_step as u64);
        // An estimate that lags behind takes the first step once more, and the field at its end.
        let rehearsal = if self.steps.kept().lagged { stages + 1 } else { 0 };
        cost.field = step * stages + rehearsal;
        if self.steps.corrects() {
            (cost.invariants, cost.jacobian, cost.linear_solves) = (step, step, step);
        }
    }

    /// |x_b|² of the vectors, in every lane.
    fn find_squares(&mut self) {
        let (lanes, vectors) = (self.steps.lanes(), self.steps.vectors());
        for vector in 0..vectors.count() {
            let squares = &mut self.all_squares[vector * lanes..][..lanes];
            squares.fill(0.0);
            for component in vectors.components_of(vector) {
                let x = &self.x[component * lanes..][..lanes];
                squares.iter_mut().zip(x).for_each(|(square, x)| *square += x * x);
            }
        }
    }

    /// Notes the groups' deviations and terms after `step` steps.
    fn note_deviations(&mut self, bound: &S::Bound, step: u64) {
        let lanes = self.steps.lanes();
        self.times.fill(self.fixed.time(self.plan.t0, step));
        self.find_squares();
        let at = (&self.times[..], &self.x[..], &self.all_squares[..]);
        self.steps.watch(bound, at, &mut self.deviations, &mut self.terms, &mut self.work);
        for (lane, end) in self.ends.iter_mut().enumerate() {
            gather(&self.deviations, lanes, lane, &mut end.deviations);
            end.raise_largest();
            gather(&self.terms, lanes, lane, &mut self.group);
            end.raise_terms(&self.group);
        }
    }

    fn sample(&mut self, sample: usize, trajectories: &mut dyn Trajectories<S::Bound>) {
        for lane in 0..self.steps.lanes() {
            if let Some(number) = self.number[lane] {
                gather(&self.x, self.steps.lanes(), lane, &mut self.one);
                trajectories.sample(number, sample, &self.one);
            }
        }
    }
}
