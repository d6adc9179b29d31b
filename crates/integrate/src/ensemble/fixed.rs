//! Equal steps in lanes: all lanes march together, from output to output.

use super::{
    End, EqualSteps, LaneAlone, LaneCarry, LaneSample, LaneStart, LaneStates, Parted, Stopped,
    Trajectories, finite, gather, scatter, split_count,
};
use crate::cost::Cost;
use crate::plan::{FixedSteps, Plan};
use crate::run::claims::{is_novel, next_look, surprises};
use crate::run::{LONGEST_BLOCK, StepEnds};
use crate::system::all_finite;
use crate::vector::max_or_nan;
use std::ops::Range;

pub(super) fn run<S: EqualSteps + ?Sized>(
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

/// First step after step `step` at which terms are measured: 1, 4, 16, …
fn next_measured(step: u64) -> u64 {
    (0..32).map(|k| 1 << (2 * k)).find(|&measured| measured > step).unwrap_or(u64::MAX)
}

struct March<'a, S: EqualSteps + ?Sized> {
    plan: &'a Plan,
    fixed: &'a FixedSteps,
    steps: &'a S,
    /// Number of the trajectory in each lane, until it ends.
    number: Vec<Option<usize>>,
    ends: Vec<End>,
    x: Vec<f64>,
    /// States at the start of a block.
    before: Vec<f64>,
    /// Initial states, where failed lanes wait.
    initial: Vec<f64>,
    /// Numbers carried at the same three states.
    carried: Vec<f64>,
    carried_before: Vec<f64>,
    carried_initially: Vec<f64>,
    innovation: Vec<f64>,
    /// Sides on which the functions of events are, and as the steps of a block find them.
    sides: Vec<f64>,
    found_sides: Vec<f64>,
    /// Sides of one lane.
    one_sides: Vec<f64>,
    /// Lanes in which a correction was larger than a step's error explains, or a claim fails within
    /// a step.
    surprised: Vec<bool>,
    /// Largest disturbance of a step in each lane after which claims were judged within it.
    judged: Vec<f64>,
    /// Lanes whose block has to be made by itself, and lanes whose trajectories can begin.
    missed: Vec<bool>,
    begun: Vec<bool>,
    /// Cost of a block that a lane has made by itself.
    costs: Vec<Cost>,
    /// Numbers that one lane carries.
    one_carried: Vec<f64>,
    /// Samples: states with their multipliers.
    samples: Vec<f64>,
    of: Vec<LaneSample>,
    who: Vec<(usize, usize)>,
    largest: Vec<f64>,
    deviations: Vec<f64>,
    terms: Vec<f64>,
    group: Vec<f64>,
    one: Vec<f64>,
    /// Lanes in which a claim fails.
    doubted: Vec<bool>,
    /// |x_b|² of the vectors.
    all_squares: Vec<f64>,
    times: Vec<f64>,
    /// Index of the next sample.
    next_sample: usize,
    work: Vec<f64>,
}

impl<'a, S: EqualSteps + ?Sized> March<'a, S> {
    fn new(plan: &'a Plan, fixed: &'a FixedSteps, steps: &'a S) -> March<'a, S> {
        let (lanes, n, groups) = (steps.lanes(), steps.dim(), steps.groups());
        let zeros = |len: usize| vec![0.0; len * lanes];
        let carried = steps.carried_len();
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
            sides: zeros(steps.watched()),
            found_sides: zeros(steps.watched()),
            one_sides: vec![0.0; steps.watched()],
            surprised: vec![false; lanes],
            judged: vec![0.0; lanes],
            missed: vec![false; lanes],
            begun: vec![true; lanes],
            costs: vec![Cost::default(); lanes],
            one_carried: vec![0.0; carried],
            samples: Vec::new(),
            of: Vec::with_capacity(lanes),
            who: Vec::with_capacity(lanes),
            largest: zeros(groups),
            deviations: zeros(groups),
            terms: zeros(2 * groups),
            group: vec![0.0; groups],
            one: vec![0.0; n],
            doubted: vec![false; lanes],
            all_squares: zeros(steps.vectors().count()),
            times: zeros(1),
            next_sample: 0,
            work: vec![0.0; steps.work_len()],
        }
    }

    /// Put a trajectory into every lane; true if there was one at all. Lanes without one repeat
    /// another's numbers.
    fn fill(
        &mut self,
        bound: &mut S::Bound,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) -> bool {
        let lanes = self.steps.lanes();
        for lane in 0..lanes {
            let start = LaneStart { x: &mut self.one, masses: &mut [], sides: &mut self.one_sides };
            self.number[lane] = trajectories.next(bound, lane, start);
            match self.number[lane] {
                Some(_) => self.ends[lane].restart(self.plan.t0),
                None if lane == 0 => return false,
                None => gather(&self.initial, lanes, 0, &mut self.one),
            }
            scatter(&self.one, lanes, lane, &mut self.initial);
            scatter(&self.one_sides, lanes, lane, &mut self.sides);
        }
        self.x.copy_from_slice(&self.initial);
        self.costs.fill(Cost::default());
        let (plan, begun) =
            ((self.fixed, self.plan.t0), (&mut self.begun[..], &mut self.costs[..]));
        self.steps.begin(bound, plan, &self.x, &mut self.carried, begun, &mut self.work);
        self.carried_initially.copy_from_slice(&self.carried);
        for (end, cost) in self.ends.iter_mut().zip(&self.costs) {
            end.cost.add(cost);
        }
        true
    }

    fn run(&mut self, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let (count, mut step) = (self.fixed.steps, 0);
        self.next_sample = 0;
        let mut next_claims = next_look(0);
        self.surprised.fill(false);
        self.judged.fill(0.0);
        for lane in 0..self.steps.lanes() {
            if self.number[lane].is_some() && !self.begun[lane] {
                self.stop(lane, 0, Stopped::Doubted, trajectories);
            }
        }
        self.note_deviations(bound, 0);
        loop {
            if self.fixed.samples.get(self.next_sample) == Some(&step) {
                self.sample(bound, (self.next_sample, step), trajectories);
                self.next_sample += 1;
            }
            if step == count || self.number.iter().all(Option::is_none) {
                break;
            }
            let limit = self.plan.step_limit;
            if step == limit {
                self.stop_all(Stopped::TooManySteps, trajectories);
                break;
            }
            let to_sample = self.fixed.samples.get(self.next_sample);
            let to_sample = to_sample.map_or(u64::MAX, |&sample| sample - step);
            let block = LONGEST_BLOCK.min(count - step).min(to_sample).min(limit - step);
            // A run by itself stores the state before its last step, for a later end.
            let to_last = match self.fixed.free_steps().saturating_sub(step) {
                0 => u64::MAX,
                to_last => to_last,
            };
            let to_terms = next_measured(step) - step;
            self.find_who();
            let to_follow = trajectories.steps_to_follow(&self.who, step).max(1);
            let block = block.min(to_last).min(to_terms).min(to_follow);
            self.block(bound, step, block, trajectories);
            step += block;
            if block == to_follow {
                self.follow(step, trajectories);
            }
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
                let failure = (!finite(&self.deviations, self.steps.lanes(), lane))
                    .then_some(Stopped::NonFinite);
                self.count_carried(lane);
                let end = &mut self.ends[lane];
                (end.t, end.steps, end.failure) = (t, step, failure);
                trajectories.end(number, &self.ends[lane]);
            }
        }
    }

    /// Make a block of steps. One in which a lane fails is made again step by step, up to the step
    /// that failed it.
    fn block(
        &mut self,
        bound: &mut S::Bound,
        first: u64,
        count: u64,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let lanes = self.steps.lanes();
        self.before.copy_from_slice(&self.x);
        self.carried_before.copy_from_slice(&self.carried);
        self.missed.fill(false);
        self.found_sides.copy_from_slice(&self.sides);
        let (carried, innovation, missed) =
            (&mut self.carried, &mut self.innovation, &mut self.missed);
        let carry = LaneCarry { carried, innovation, missed, sides: &mut self.found_sides };
        self.steps.steps(
            bound,
            first..first + count,
            &mut self.x,
            carry,
            &mut self.largest,
            &mut self.work,
        );
        self.part_at_events(bound, first..first + count, trajectories);
        for lane in 0..lanes {
            if self.missed[lane] {
                self.make_alone(bound, lane, first..first + count, trajectories);
            }
        }
        let all_good = all_finite(&self.x) && all_finite(&self.largest);
        let good = |this: &Self, lane: usize| {
            all_good || finite(&this.x, lanes, lane) && finite(&this.largest, lanes, lane)
        };
        let failed: Vec<usize> =
            (0..lanes).filter(|&lane| self.number[lane].is_some() && !good(self, lane)).collect();
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
        if trajectories.looks() && self.judge(first, count, trajectories) {
            self.x.copy_from_slice(&self.before);
            self.carried.copy_from_slice(&self.carried_before);
            // Whichever half holds the surprise is halved again.
            self.block(bound, first, count / 2, trajectories);
            return self.block(bound, first + count / 2, count - count / 2, trajectories);
        }
        for lane in 0..lanes {
            let t = self.fixed.time(self.plan.t0, first + count);
            let end = &mut self.ends[lane];
            end.take_innovation(self.innovation[lane], t);
            self.surprised[lane] |= surprises(self.innovation[lane], self.steps.vectors().count());
            for (group, largest) in end.largest.iter_mut().enumerate() {
                *largest = max_or_nan(*largest, self.largest[group * lanes + lane]);
            }
            match self.missed[lane] {
                true => end.cost.add(&self.costs[lane]),
                false => self.steps.count(first..first + count, &mut end.cost),
            }
        }
    }

    /// Part the lanes in whose steps, which were made from the states before them, an event may lie,
    /// and those that have missed some: their functions are not known.
    fn part_at_events(
        &mut self,
        bound: &S::Bound,
        steps: Range<u64>,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let (lanes, watched) = (self.steps.lanes(), self.steps.watched());
        if watched == 0 {
            return;
        }
        let at = (self.fixed.time(self.plan.t0, steps.end), self.fixed.h, &self.x[..]);
        self.steps.look(bound, at, &mut self.found_sides, &mut self.work);
        for lane in 0..lanes {
            let mut rows = (0..watched).map(|row| row * lanes + lane);
            let keeps = rows.all(|at| self.found_sides[at] == self.sides[at]);
            if !keeps || self.missed[lane] {
                self.part(lane, steps.start, trajectories);
                self.missed[lane] = false;
            }
        }
    }

    /// Hand the trajectory of a lane over, at the start of a block of steps from number `step` on; the
    /// lane then waits at a sound state.
    fn part(&mut self, lane: usize, step: u64, trajectories: &mut dyn Trajectories<S::Bound>) {
        let (lanes, t0) = (self.steps.lanes(), self.plan.t0);
        if let Some(number) = self.number[lane].take() {
            let mut end = self.ends[lane].clone();
            (end.t, end.steps) = (self.fixed.time(t0, step), step);
            let mut x = vec![0.0; self.one.len()];
            gather(&self.before, lanes, lane, &mut x);
            gather(&self.carried_before, lanes, lane, &mut self.one_carried);
            let (carried, counted) = split_count(self.steps, &self.one_carried);
            end.cost.field += counted;
            let scales = self.steps.kept().carried(self.steps.vectors());
            let (carried, memory) = carried.split_at(scales);
            trajectories.part(
                number,
                Parted {
                    elapsed: end.t - t0,
                    end,
                    x,
                    carried: carried.to_vec(),
                    memory: memory.to_vec(),
                    judged: self.judged[lane],
                    next_sample: self.next_sample,
                    adaptive: None,
                },
            );
        }
        self.wait(lane);
    }

    /// Judge the claims of lanes in which a step of the block was disturbed more than any before,
    /// as a run by itself does. True if the block is to be made again in halves, as it has several
    /// steps.
    fn judge(
        &mut self,
        first: u64,
        count: u64,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) -> bool {
        let lanes = self.steps.lanes();
        let [t0, t1] = [first, first + count].map(|step| self.fixed.time(self.plan.t0, step));
        for lane in (0..lanes).filter(|&lane| self.number[lane].is_some() && !self.missed[lane]) {
            gather(&self.largest, lanes, lane, &mut self.group);
            let disturbance = trajectories.disturbance(
                self.innovation[lane],
                &self.group,
                &self.ends[lane].terms,
            );
            if !is_novel(disturbance, self.judged[lane]) {
                continue;
            }
            if count > 1 {
                return true;
            }
            self.judged[lane] = disturbance;
            let mut before = vec![0.0; self.one.len()];
            gather(&self.before, lanes, lane, &mut before);
            gather(&self.x, lanes, lane, &mut self.one);
            let kept = if self.steps.kept().sizes { self.steps.vectors().count() } else { 0 };
            let mut squares = vec![0.0; kept];
            gather(&self.carried[..kept * lanes], lanes, lane, &mut squares);
            let step = StepEnds { from: (t0, &before), to: (t1, &self.one), squares: &squares };
            self.surprised[lane] |= trajectories.fails_within(lane, step);
        }
        false
    }

    /// Make the steps of a lane by themselves, from the start of a block.
    fn make_alone(
        &mut self,
        bound: &mut S::Bound,
        lane: usize,
        steps: Range<u64>,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let (lanes, first) = (self.steps.lanes(), steps.start);
        if self.number[lane].is_some() {
            gather(&self.before, lanes, lane, &mut self.one);
            gather(&self.carried_before, lanes, lane, &mut self.one_carried);
            self.costs[lane] = Cost::default();
            let (x, carried) = (&mut self.one, &mut self.one_carried[..]);
            let one = LaneAlone { x, carried, largest: &mut self.group };
            let steps = (self.fixed, self.plan.t0, steps);
            if self.steps.alone(bound, lane, steps, one, &mut self.costs[lane]).is_ok() {
                scatter(&self.one, lanes, lane, &mut self.x);
                scatter(&self.one_carried, lanes, lane, &mut self.carried);
                return scatter(&self.group, lanes, lane, &mut self.largest);
            }
            // A run by itself finds the reason.
            self.stop(lane, first, Stopped::Doubted, trajectories);
        }
        self.wait(lane);
    }

    /// End the trajectories whose constraints may not be met.
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

    /// End the trajectories whose claims fail after `step` steps, and those with a surprising
    /// correction.
    fn look(&mut self, step: u64, due: bool, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.steps.lanes();
        for lane in 0..lanes {
            if self.number[lane].is_some() && self.surprised[lane] {
                self.stop(lane, step, Stopped::Doubted, trajectories);
            }
        }
        if !due {
            return;
        }
        self.find_who();
        self.times.fill(self.fixed.time(self.plan.t0, step));
        let kept = if self.steps.kept().sizes { self.steps.vectors().count() } else { 0 };
        let squares = &self.carried[..kept * lanes];
        let at = LaneStates { t: &self.times, x: &self.x, carried: &self.carried, squares };
        self.doubted.fill(false);
        trajectories.look(&self.who, at, &mut self.doubted);
        for lane in 0..lanes {
            if self.doubted[lane] {
                self.stop(lane, step, Stopped::Doubted, trajectories);
            }
        }
    }

    /// Collect the trajectories that have not ended.
    fn find_who(&mut self) {
        self.who.clear();
        self.who.extend(
            self.number.iter().enumerate().filter_map(|(lane, number)| Some((lane, (*number)?))),
        );
    }

    /// End the trajectory of a lane after `step` steps; the lane then waits at a sound state.
    fn stop(
        &mut self,
        lane: usize,
        step: u64,
        failure: Stopped,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        if let Some(number) = self.number[lane].take() {
            self.count_carried(lane);
            let end = &mut self.ends[lane];
            (end.t, end.steps, end.failure) =
                (self.fixed.time(self.plan.t0, step), step, Some(failure));
            trajectories.end(number, &self.ends[lane]);
        }
        self.wait(lane);
    }

    /// Count the evaluations that a lane has counted itself.
    fn count_carried(&mut self, lane: usize) {
        gather(&self.carried, self.steps.lanes(), lane, &mut self.one_carried);
        self.ends[lane].cost.field += split_count(self.steps, &self.one_carried).1;
    }

    /// Put a lane without a trajectory back to a sound state.
    fn wait(&mut self, lane: usize) {
        let lanes = self.steps.lanes();
        gather(&self.initial, lanes, lane, &mut self.one);
        scatter(&self.one, lanes, lane, &mut self.x);
        for (carried, initially) in
            self.carried.iter_mut().zip(&self.carried_initially).skip(lane).step_by(lanes)
        {
            *carried = *initially;
        }
    }

    fn stop_all(&mut self, failure: Stopped, trajectories: &mut dyn Trajectories<S::Bound>) {
        for lane in 0..self.steps.lanes() {
            self.stop(lane, self.plan.step_limit, failure, trajectories);
        }
    }

    /// Compute |x_b|² of the vectors, in every lane.
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

    /// Record the groups' deviations and terms after `step` steps.
    fn note_deviations(&mut self, bound: &S::Bound, step: u64) {
        let lanes = self.steps.lanes();
        self.times.fill(self.fixed.time(self.plan.t0, step));
        self.find_squares();
        let at = LaneStates {
            t: &self.times,
            x: &self.x,
            carried: &self.carried,
            squares: &self.all_squares,
        };
        self.steps.monitor(bound, at, &mut self.deviations, &mut self.terms, &mut self.work);
        for (lane, end) in self.ends.iter_mut().enumerate() {
            gather(&self.deviations, lanes, lane, &mut end.deviations);
            // Every block measures the states with which its steps begin: all but the last one.
            let first_alone = step == 1 && self.steps.first_step_is_single();
            if step == 0 || step == self.fixed.steps || first_alone {
                end.raise_largest();
            }
            end.raise_terms(self.steps.has_losses(), &self.terms, (lanes, lane));
        }
    }

    /// Pass on the states after `step` steps.
    fn sample(
        &mut self,
        bound: &mut S::Bound,
        (sample, step): (usize, u64),
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let lanes = self.steps.lanes();
        let lanes_of = self.number.iter().enumerate();
        self.of.clear();
        self.of.extend(lanes_of.filter_map(|(lane, number)| {
            Some(LaneSample { lane, trajectory: (*number)?, sample })
        }));
        let multipliers = self.steps.multiplier_count();
        if multipliers == 0 || !trajectories.wants_multipliers() {
            return trajectories.samples(&self.of, &self.x);
        }
        self.samples.clear();
        self.samples.extend_from_slice(&self.x);
        self.samples.resize(self.x.len() + multipliers * lanes, 0.0);
        let (x, lambda) = self.samples.split_at_mut(self.x.len());
        let wanted: Vec<bool> = self.number.iter().map(Option::is_some).collect();
        let step = (self.fixed, self.plan.t0, step);
        self.steps.multipliers(bound, step, (x, &self.carried), &wanted, lambda, &mut self.work);
        trajectories.samples(&self.of, &self.samples);
    }

    /// Follow the constraints of the trajectories to their states after `step` steps.
    fn follow(&mut self, step: u64, trajectories: &mut dyn Trajectories<S::Bound>) {
        let t = self.fixed.time(self.plan.t0, step);
        for lane in 0..self.steps.lanes() {
            if let Some(number) = self.number[lane] {
                gather(&self.x, self.steps.lanes(), lane, &mut self.one);
                trajectories.follow((lane, number), (step, t), &self.one);
            }
        }
    }
}
