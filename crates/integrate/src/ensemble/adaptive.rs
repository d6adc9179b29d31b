//! Adaptive steps: every lane has its own time and its own step, and takes up the next trajectory when one ends.

use super::{End, LaneCarry, LaneResults, LaneSpans, LaneSteps, Stopped, Trajectories};
use super::{finite, gather, scatter};
use crate::controller::pi::Controller;
use crate::controller::start;
use crate::plan::{AdaptiveSteps, Plan};
use crate::run::attempt::{REJECTIONS_OF_NEW, old_norm, trial};
use crate::run::claims::{next_look, surprises};
use crate::scales::Scales;
use crate::state::ControllerMemory;
use crate::system::max_or_nan;

pub(super) fn run<S: LaneSteps>(
    plan: &Plan,
    adaptive: &AdaptiveSteps,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    let mut race = Race::new(plan, adaptive, steps);
    for lane in 0..steps.lanes() {
        race.take_up(lane, bound, trajectories);
    }
    while race.lanes.iter().any(|lane| lane.number.is_some()) {
        race.attempt(bound, trajectories);
    }
}

/// What a lane knows of its trajectory, beside the state.
struct Lane {
    number: Option<usize>,
    controller: ControllerMemory,
    /// The step that is wanted next, after rejections.
    wanted: f64,
    rejections: u32,
    /// The step from which on claims are looked at again.
    next_look: u64,
    /// Whether the field turned out to be undefined where it stands.
    undefined: bool,
    scales: Scales,
    end: End,
}

struct Race<'a, S: LaneSteps> {
    plan: &'a Plan,
    adaptive: &'a AdaptiveSteps,
    steps: &'a S,
    controller: Controller,
    lanes: Vec<Lane>,
    t: Vec<f64>,
    /// Length and end of the attempt.
    length: Vec<f64>,
    t1: Vec<f64>,
    x: Vec<f64>,
    x1: Vec<f64>,
    /// X(t, x), where the scheme takes its first stage from the step before; after an attempt, the last stage.
    first: Vec<f64>,
    last: Vec<f64>,
    error: Vec<f64>,
    deviations: Vec<f64>,
    /// What is carried beside the state, and what after the attempt.
    carried: Vec<f64>,
    carried1: Vec<f64>,
    innovation: Vec<f64>,
    /// S² of the vectors.
    norms: Vec<f64>,
    masses: Vec<f64>,
    /// For what is asked about one lane while the others wait.
    aside: Vec<f64>,
    aside_deviations: Vec<f64>,
    moved: Vec<f64>,
    moved_t: Vec<f64>,
    one: Vec<f64>,
    /// σ² of the vectors of a lane.
    squares: Vec<f64>,
    field: Vec<f64>,
    change: Vec<f64>,
    work: Vec<f64>,
}

impl<'a, S: LaneSteps> Race<'a, S> {
    fn new(plan: &'a Plan, adaptive: &'a AdaptiveSteps, steps: &'a S) -> Race<'a, S> {
        let (lanes, n, groups) = (steps.lanes(), steps.dim(), steps.groups());
        let zeros = |len: usize| vec![0.0; len * lanes];
        let (vectors, kept) = (steps.vectors().count(), steps.kept());
        let carried = if kept.weights { 2 * vectors } else { vectors };
        let lane = |_| Lane {
            number: None,
            controller: ControllerMemory { h: 0.0, last_error: 1e-4 },
            wanted: 0.0,
            rejections: 0,
            next_look: 0,
            undefined: false,
            scales: Scales::default(),
            end: End::new(plan.t0, groups),
        };
        Race {
            plan,
            adaptive,
            steps,
            controller: Controller::new(steps.tableau()),
            lanes: (0..lanes).map(lane).collect(),
            t: vec![plan.t0; lanes],
            length: zeros(1),
            t1: vec![plan.t0; lanes],
            x: zeros(n),
            x1: zeros(n),
            first: zeros(n),
            last: zeros(n),
            error: zeros(1),
            deviations: zeros(groups),
            carried: zeros(carried),
            carried1: zeros(carried),
            innovation: zeros(1),
            norms: zeros(vectors),
            masses: vec![0.0; vectors],
            aside: zeros(n),
            aside_deviations: zeros(groups),
            moved: zeros(n),
            moved_t: zeros(1),
            one: vec![0.0; n],
            squares: Vec::new(),
            field: vec![0.0; n],
            change: vec![0.0; n],
            work: vec![0.0; steps.work_len()],
        }
    }

    /// Puts the next trajectory that can start into a lane, and chooses its first step.
    fn take_up(&mut self, lane: usize, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let (lanes, t0) = (self.lanes.len(), self.plan.t0);
        while let Some(number) = trajectories.next(bound, lane, &mut self.one, &mut self.masses) {
            if self.adaptive.samples.first() == Some(&t0) {
                trajectories.sample(number, 0, &self.one);
            }
            scatter(&self.one, lanes, lane, &mut self.x);
            (self.t[lane], self.t1[lane]) = (t0, t0);
            // The other lanes compute something too; nobody reads it.
            self.steps.watch(bound, &self.t, &self.x, &mut self.aside_deviations, &mut self.work);
            self.steps.fields(bound, &self.t, &self.x, &mut self.aside, &mut self.work);
            gather(&self.aside, lanes, lane, &mut self.field);
            scatter(&self.field, lanes, lane, &mut self.first);
            let this = &mut self.lanes[lane];
            this.end.restart(t0);
            gather(&self.aside_deviations, lanes, lane, &mut this.end.deviations);
            this.end.largest.copy_from_slice(&this.end.deviations);
            this.end.cost.field = 1;
            if !self.field.iter().chain(&self.one).chain(&this.end.deviations).all(|x| x.is_finite()) {
                this.end.failure = Some(Stopped::NonFinite);
                trajectories.end(number, &this.end);
                continue;
            }
            self.start_scales(lane);
            let h = match self.adaptive.first_step {
                Some(h) => h,
                None => self.first_step(lane, bound),
            };
            let this = &mut self.lanes[lane];
            this.number = Some(number);
            this.rejections = 0;
            this.next_look = next_look(0);
            this.controller = ControllerMemory { h, last_error: 1e-4 };
            this.wanted = h.min(self.adaptive.longest_step);
            return;
        }
    }

    /// As a single run does it; `one` is the state and `field` the field there.
    fn first_step(&mut self, lane: usize, bound: &S::Bound) -> f64 {
        let (lanes, vectors) = (self.lanes.len(), self.steps.vectors());
        let (rtol, span) = (self.adaptive.rtol, self.adaptive.t_end - self.plan.t0);
        let norms = &self.lanes[lane].scales.norms;
        let probe = start::probe(&self.one, &self.field, norms, vectors, span).length;
        self.moved.copy_from_slice(&self.x);
        for i in 0..self.one.len() {
            self.moved[i * lanes + lane] = probe.mul_add(self.field[i], self.one[i]);
        }
        self.moved_t.copy_from_slice(&self.t);
        self.moved_t[lane] += probe;
        self.steps.fields(bound, &self.moved_t, &self.moved, &mut self.aside, &mut self.work);
        gather(&self.aside, lanes, lane, &mut self.change);
        for (change, field) in self.change.iter_mut().zip(&self.field) {
            *change -= field;
        }
        let order = self.steps.tableau().order;
        let norms = &self.lanes[lane].scales.norms;
        let h = start::first_step(probe, (&self.one, &self.field, &self.change), (norms, vectors), (order, rtol, span));
        let h = h.length;
        self.lanes[lane].end.cost.field += 1;
        h
    }

    /// The scales with which a lane's trajectory begins; `one` is its state and `masses` are its masses.
    fn start_scales(&mut self, lane: usize) {
        let (lanes, vectors) = (self.lanes.len(), self.steps.vectors());
        let mut scales = Scales::new(vectors, self.steps.kept(), self.masses.clone(), &self.one);
        scales.renew_norms(vectors, self.adaptive.square_of_least_scale());
        scatter(&scales.norms, lanes, lane, &mut self.norms);
        scatter(&scales.carried, lanes, lane, &mut self.carried);
        self.lanes[lane].scales = scales;
    }

    /// Makes the scales after the attempt those of the lane.
    fn take_scales(&mut self, lane: usize) {
        let (lanes, vectors) = (self.lanes.len(), self.steps.vectors());
        let this = &mut self.lanes[lane];
        let sizes = (0..vectors.count()).map(|vector| vector * lanes + lane);
        let grown = sizes.clone().any(|k| self.carried1[k] > self.carried[k]);
        for k in (lane..self.carried.len()).step_by(lanes) {
            self.carried[k] = self.carried1[k];
        }
        if grown {
            gather(&self.carried, lanes, lane, &mut this.scales.carried);
            this.scales.renew_norms(vectors, self.adaptive.square_of_least_scale());
        }
        if grown || this.rejections >= REJECTIONS_OF_NEW {
            scatter(&this.scales.norms, lanes, lane, &mut self.norms);
        }
        this.end.take_innovation(self.innovation[lane], self.t[lane]);
    }

    /// One attempt in every lane.
    fn attempt(&mut self, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.lanes.len();
        for lane in 0..lanes {
            // Until there is a trajectory that can go on, or none is left.
            while self.lanes[lane].number.is_some() {
                let this = &self.lanes[lane];
                let trial = trial(self.adaptive, self.t[lane], this.wanted, this.rejections);
                let failure = if this.end.steps + this.end.cost.rejected >= self.plan.step_limit {
                    Stopped::TooManySteps
                } else if let Some((length, t1)) = trial {
                    (self.length[lane], self.t1[lane]) = (length, t1);
                    break;
                } else {
                    Stopped::StepCollapsed
                };
                self.finish(lane, Some(failure), bound, trajectories);
            }
        }
        self.last.copy_from_slice(&self.first);
        self.carried1.copy_from_slice(&self.carried);
        let span = LaneSpans { t: &self.t, t1: &self.t1, h: &self.length };
        let result = &mut LaneResults { x: &mut self.x1, deviations: &mut self.deviations, error: &mut self.error };
        let carry = LaneCarry { scales: &mut self.carried1, innovation: &mut self.innovation };
        self.steps.attempt(bound, span, &self.x, &self.norms, carry, &mut self.last, result, &mut self.work);
        let tableau = self.steps.tableau();
        let evaluations = tableau.stages as u64 - u64::from(tableau.first_same_as_last);
        for lane in 0..lanes {
            let this = &mut self.lanes[lane];
            if this.number.is_none() {
                continue;
            }
            this.end.cost.field += evaluations;
            let error = self.error[lane];
            if error.is_nan() && this.rejections == 0 {
                // Either the step is far too long, or the field is undefined where it starts.
                self.steps.fields(bound, &self.t, &self.x, &mut self.aside, &mut self.work);
                if !finite(&self.aside, lanes, lane) {
                    this.undefined = true;
                }
            }
            if error <= 1.0 {
                self.controller.accepted(&mut this.controller, self.length[lane], error, this.rejections > 0);
            } else {
                this.rejections += 1;
                this.end.cost.rejected += 1;
                this.wanted = self.controller.rejected(self.length[lane], error);
                if this.rejections == REJECTIONS_OF_NEW {
                    let norms: Vec<f64> = this.scales.norms.iter().map(|&norm| old_norm(norm)).collect();
                    scatter(&norms, lanes, lane, &mut self.norms);
                }
            }
        }
        for lane in 0..lanes {
            let this = &mut self.lanes[lane];
            if this.number.is_some() && std::mem::take(&mut this.undefined) {
                self.finish(lane, Some(Stopped::NonFinite), bound, trajectories);
            } else if this.number.is_some() && self.error[lane] <= 1.0 {
                self.accept(lane, bound, trajectories);
            }
        }
        if tableau.first_same_as_last && self.steps.corrects() {
            // The corrections have moved the states. Where a lane has not moved, this is what it knew.
            self.steps.fields(bound, &self.t, &self.x, &mut self.first, &mut self.work);
        }
    }

    /// Makes x₁ the state of a lane, and ends its trajectory there if it is to end.
    fn accept(&mut self, lane: usize, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.lanes.len();
        if !(finite(&self.x1, lanes, lane) && finite(&self.deviations, lanes, lane)) {
            return self.finish(lane, Some(Stopped::NonFinite), bound, trajectories);
        }
        for i in 0..self.one.len() {
            self.x[i * lanes + lane] = self.x1[i * lanes + lane];
        }
        self.t[lane] = self.t1[lane];
        self.take_scales(lane);
        let (corrects, tableau) = (self.steps.corrects(), self.steps.tableau());
        let this = &mut self.lanes[lane];
        this.end.steps += 1;
        this.rejections = 0;
        this.wanted = this.controller.h.min(self.adaptive.longest_step);
        gather(&self.deviations, lanes, lane, &mut this.end.deviations);
        for (largest, &now) in this.end.largest.iter_mut().zip(&this.end.deviations) {
            *largest = max_or_nan(*largest, now);
        }
        if corrects {
            this.end.cost.count_corrections(1);
        }
        if let Some(number) = this.number.filter(|_| this.end.steps.is_power_of_two()) {
            gather(&self.x, lanes, lane, &mut self.one);
            trajectories.pass(number, self.t[lane], &self.one);
        }
        let this = &self.lanes[lane];
        let far = corrects && this.number.is_some_and(|number| trajectories.may_be_far(number, &this.end.largest));
        if far || trajectories.looks() && self.is_doubted(lane, trajectories) {
            return self.finish(lane, Some(Stopped::Doubted), bound, trajectories);
        }
        if self.t[lane] < self.adaptive.t_end {
            if tableau.first_same_as_last {
                if corrects {
                    self.lanes[lane].end.cost.field += 1;
                } else {
                    gather(&self.last, lanes, lane, &mut self.one);
                    scatter(&self.one, lanes, lane, &mut self.first);
                }
            }
            return;
        }
        let last = self.adaptive.samples.len() - 1;
        if self.adaptive.samples[last] == self.adaptive.t_end {
            gather(&self.x, lanes, lane, &mut self.one);
            if let Some(number) = self.lanes[lane].number {
                trajectories.sample(number, last, &self.one);
            }
        }
        self.finish(lane, None, bound, trajectories);
    }

    /// Whether a claim fails in a lane, looked at when a run by itself would, or a correction was too large.
    fn is_doubted(&mut self, lane: usize, trajectories: &mut dyn Trajectories<S::Bound>) -> bool {
        if surprises(self.innovation[lane], self.steps.vectors().count()) {
            return true;
        }
        let this = &mut self.lanes[lane];
        if this.end.steps < this.next_look && self.t[lane] < self.adaptive.t_end {
            return false;
        }
        this.next_look = next_look(this.end.steps);
        let Some(number) = this.number else { return false };
        gather(&self.x, self.lanes.len(), lane, &mut self.one);
        self.squares.resize(self.steps.vectors().count(), 0.0);
        gather(&self.carried, self.lanes.len(), lane, &mut self.squares);
        trajectories.look((lane, number), self.t[lane], &self.one, &self.squares)
    }

    /// Reports the end of a lane's trajectory and takes up the next one.
    fn finish(
        &mut self,
        lane: usize,
        failure: Option<Stopped>,
        bound: &mut S::Bound,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let this = &mut self.lanes[lane];
        if let Some(number) = this.number.take() {
            (this.end.t, this.end.failure) = (self.t[lane], failure);
            trajectories.end(number, &this.end);
        }
        self.take_up(lane, bound, trajectories);
    }
}
