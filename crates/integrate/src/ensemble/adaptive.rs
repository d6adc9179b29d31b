//! Adaptive steps in lanes: every lane has its own time and its own step, and takes up the next
//! trajectory when one ends.

use super::parted::{Parted, PartedAdaptive};
use super::{AdaptiveLaneSteps, End, LaneSample, LaneStart, LaneStates, LanesWithin};
use super::{Stopped, Trajectories, finite, gather, scatter, split_count};
use crate::controller::StepControl;
use crate::controller::slots::{Slots, Status, Within};
use crate::controller::start;
use crate::controller::trial::{Trial, trial};
use crate::plan::{AdaptiveSteps, Plan};
use crate::run::claims::{next_look, surprises};
use crate::scales::Scales;
use crate::state::ControllerMemory;
use crate::system::all_finite;
use crate::vector::max_or_nan;
use std::ops::Range;

/// Largest number of attempts in one call; lanes whose trajectories have ended wait no longer than
/// that for the others.
const MOST_ATTEMPTS: u64 = 64;

/// Largest disturbance of a step by a projection or by feedback in a lane, in units of the
/// tolerance and of √n for n vectors: each is of the size of a step's error, and a claim that fails
/// makes it larger at once. Beyond, a run by itself judges the claims.
const PULLED: f64 = 1e3;

/// Maximum number of attempts after which the samples within them are found.
const MOST_KEPT: usize = 16;

/// Last error of a trajectory before its first accepted step.
const NO_LAST_ERROR: f64 = 1e-4;

pub(super) fn run<S: AdaptiveLaneSteps + ?Sized>(
    plan: &Plan,
    adaptive: &AdaptiveSteps,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    let mut race = Race::new(plan, adaptive, steps);
    race.free.extend(0..steps.lanes());
    race.take_up(bound, trajectories);
    while race.lanes.iter().any(|lane| lane.number.is_some()) {
        race.go_on(bound, trajectories);
    }
}

/// Trajectory of a lane, without its state.
struct Lane {
    number: Option<usize>,
    /// Step from which on claims are checked again.
    next_look: u64,
    /// Index of the next sample.
    next_sample: usize,
    /// Samples that are to be found within the attempts that are kept.
    due: Vec<Due>,
    /// Number of them that are found, and the attempt of which the lane has the interpolant.
    found: usize,
    loaded: Option<usize>,
    /// True if one of them takes more than a sample in lanes does.
    missed: bool,
    end: End,
}

/// Sample of a step.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Index of the step's attempt among those that are kept.
    attempt: usize,
    /// Index of the sample.
    sample: usize,
    /// Its time since the start.
    elapsed: f64,
    /// True if that is the end of the step.
    at_end: bool,
}

struct Race<'a, S: AdaptiveLaneSteps + ?Sized> {
    plan: &'a Plan,
    adaptive: &'a AdaptiveSteps,
    steps: &'a S,
    lanes: Vec<Lane>,
    slots: Slots,
    /// State of the loop, of all lanes.
    state: Vec<f64>,
    /// States before each of the last attempts and after them; empty if no sample falls within a
    /// step.
    kept: Vec<Vec<f64>>,
    within: Samples,
    /// Results for some lanes while the others wait.
    aside: Vec<f64>,
    deviations: Vec<f64>,
    terms: Vec<f64>,
    /// States after a probe, the fields there, and their times.
    moved: Vec<f64>,
    there: Vec<f64>,
    moved_t: Vec<f64>,
    /// Lengths of the probes.
    probes: Vec<f64>,
    one: Vec<f64>,
    field: Vec<f64>,
    change: Vec<f64>,
    /// Scales with which a trajectory begins, its masses among them.
    scales: Scales,
    /// Norms, and other slots, of one lane.
    norms: Vec<f64>,
    memory: Vec<f64>,
    /// Sides of the functions of events.
    sides: Vec<f64>,
    group: Vec<f64>,
    /// Lanes in which a claim or a correction fails.
    doubted: Vec<bool>,
    /// Trajectories to be checked, by lane and number.
    due: Vec<(usize, usize)>,
    /// Lanes whose trajectories have ended, and lanes that have taken up another one.
    free: Vec<usize>,
    taken: Vec<usize>,
    /// Samples to be passed on.
    samples: Vec<LaneSample>,
    work: Vec<f64>,
}

/// Samples within attempts, in lanes.
struct Samples {
    at: Within,
    /// Lanes that have one.
    wanted: Vec<bool>,
    numbers: Vec<f64>,
    found: LanesWithin,
}

impl<'a, S: AdaptiveLaneSteps + ?Sized> Race<'a, S> {
    fn new(plan: &'a Plan, adaptive: &'a AdaptiveSteps, steps: &'a S) -> Race<'a, S> {
        let (lanes, n, groups) = (steps.lanes(), steps.dim(), steps.groups());
        let zeros = |len: usize| vec![0.0; len * lanes];
        let slots = steps.slots().clone();
        let mut state = zeros(slots.count());
        state[slots.pause * lanes..][..lanes].fill(f64::INFINITY);
        let on_the_way = adaptive.samples.iter().any(|&t| t != plan.t0 && t != adaptive.t_end);
        let within = if on_the_way { steps.within_len() } else { 0 };
        let lane = || Lane {
            number: None,
            next_look: 0,
            next_sample: 0,
            due: Vec::new(),
            found: 0,
            loaded: None,
            missed: false,
            end: End::new(plan.t0, groups),
        };
        Race {
            plan,
            adaptive,
            steps,
            lanes: (0..lanes).map(|_| lane()).collect(),
            kept: if on_the_way { vec![state.clone(); MOST_KEPT + 1] } else { Vec::new() },
            within: Samples {
                at: Within::of(&slots),
                wanted: vec![false; lanes],
                numbers: zeros(within),
                found: LanesWithin {
                    out: zeros(n + groups),
                    evaluations: zeros(1),
                    missed: vec![false; lanes],
                },
            },
            state,
            aside: zeros(n),
            deviations: zeros(groups),
            terms: zeros(2 * groups),
            moved: zeros(n),
            there: zeros(n),
            moved_t: zeros(1),
            probes: zeros(1),
            one: vec![0.0; n],
            field: vec![0.0; n],
            change: vec![0.0; n],
            scales: Scales { masses: vec![0.0; steps.vectors().count()], ..Scales::default() },
            norms: vec![0.0; steps.vectors().norms()],
            memory: vec![0.0; slots.memory.len()],
            sides: vec![0.0; slots.sides.len()],
            group: vec![0.0; groups],
            doubted: vec![false; lanes],
            due: Vec::with_capacity(lanes),
            free: Vec::with_capacity(lanes),
            taken: Vec::with_capacity(lanes),
            samples: Vec::with_capacity(lanes),
            work: vec![0.0; steps.work_len()],
            slots,
        }
    }

    /// Range of these slots in `state`, over all lanes.
    fn all(&self, slots: Range<usize>) -> Range<usize> {
        let lanes = self.lanes.len();
        slots.start * lanes..slots.end * lanes
    }

    /// Number in a slot of a lane.
    fn at(&self, slot: usize, lane: usize) -> f64 {
        self.state[slot * self.lanes.len() + lane]
    }

    /// Set the number in a slot of a lane.
    fn set(&mut self, slot: usize, lane: usize, value: f64) {
        let lanes = self.lanes.len();
        self.state[slot * lanes + lane] = value;
    }

    /// Steps and rejections of a lane's trajectory.
    fn counts(&self, lane: usize) -> [f64; 2] {
        [self.slots.steps, self.slots.rejected].map(|slot| self.at(slot, lane))
    }

    /// Put the next trajectories that can start into the free lanes, and choose their first steps.
    fn take_up(&mut self, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let t0 = self.plan.t0;
        while !self.free.is_empty() {
            self.taken.clear();
            let mut free = std::mem::take(&mut self.free);
            for lane in free.drain(..) {
                let (x, masses) = (&mut self.one, &mut self.scales.masses);
                let sides = &mut self.sides;
                let number = trajectories.next(bound, lane, LaneStart { x, masses, sides });
                let status = if number.is_some() { Status::Going } else { Status::Idle };
                self.set(self.slots.status, lane, status.number());
                self.lanes[lane].number = number;
                if number.is_none() {
                    continue;
                }
                let x = self.all(self.slots.x.clone());
                scatter(&self.one, self.lanes.len(), lane, &mut self.state[x]);
                self.set(self.slots.t, lane, t0);
                self.set(self.slots.elapsed, lane, 0.0);
                self.lanes[lane].end.restart(t0);
                self.lanes[lane].next_look = next_look(0);
                self.lanes[lane].next_sample =
                    usize::from(self.adaptive.samples.first() == Some(&t0));
                self.lanes[lane].missed = false;
                self.start_scales(lane);
                let sides = self.all(self.slots.sides.clone());
                scatter(&self.sides, self.lanes.len(), lane, &mut self.state[sides]);
                self.taken.push(lane);
            }
            self.free = free;
            let mut taken = std::mem::take(&mut self.taken);
            if self.adaptive.samples.first() == Some(&t0) {
                self.sample(0, &taken, trajectories);
            }
            self.start(&mut taken, bound, trajectories);
            self.taken = taken;
        }
    }

    /// Start the trajectories of these lanes. Lanes whose trajectories cannot begin become free.
    fn start(
        &mut self,
        taken: &mut Vec<usize>,
        bound: &S::Bound,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let lanes = self.lanes.len();
        // The other lanes are computed too; nobody reads their results.
        self.monitor(bound);
        self.fields(bound);
        let all_sound = [&self.state[..self.slots.x.end * lanes], &self.aside, &self.deviations]
            .into_iter()
            .all(all_finite);
        taken.retain(|&lane| {
            self.note(lane);
            let this = &mut self.lanes[lane];
            this.end.cost.field = 1;
            let x = &self.state[..self.slots.x.end * lanes];
            let sound = all_sound
                || [x, &self.aside, &self.deviations]
                    .into_iter()
                    .all(|all| finite(all, lanes, lane));
            if !sound {
                this.end.failure = Some(Stopped::NonFinite);
                if let Some(number) = this.number.take() {
                    trajectories.end(number, &this.end);
                }
                self.free.push(lane);
            }
            sound
        });
        if !self.slots.first.is_empty() {
            for &lane in &*taken {
                gather(&self.aside, lanes, lane, &mut self.field);
                let first = self.all(self.slots.first.clone());
                scatter(&self.field, lanes, lane, &mut self.state[first]);
            }
        }
        if !self.slots.memory.is_empty() {
            let at = self.all(self.slots.memory.clone());
            for &lane in &*taken {
                gather(&self.aside, lanes, lane, &mut self.field);
                self.steps.begin_memory(&self.field, &mut self.memory);
                scatter(&self.memory, lanes, lane, &mut self.state[at.clone()]);
            }
        }
        match self.adaptive.first_step {
            Some(h) => taken.iter().for_each(|&lane| self.set(self.slots.h, lane, h)),
            None => self.first_steps(taken, bound),
        }
        for &lane in &*taken {
            for slot in [
                self.slots.rejections,
                self.slots.steps,
                self.slots.rejected,
                self.slots.innovation,
            ] {
                self.set(slot, lane, 0.0);
            }
            self.set(self.slots.last_error, lane, NO_LAST_ERROR);
            self.slots.largest.clone().for_each(|slot| self.set(slot, lane, 0.0));
        }
    }

    /// Choose first steps as single runs do; `aside` holds the fields.
    fn first_steps(&mut self, taken: &[usize], bound: &S::Bound) {
        let (lanes, vectors) = (self.lanes.len(), self.steps.vectors());
        let (rtol, span) = (self.adaptive.rtol, self.adaptive.span());
        let order = self.control().order;
        let (x, norms) = (self.all(self.slots.x.clone()), self.all(self.slots.norms.clone()));
        self.moved.copy_from_slice(&self.state[x.clone()]);
        self.moved_t.copy_from_slice(&self.state[self.slots.t * lanes..][..lanes]);
        for &lane in taken {
            gather(&self.state[x.clone()], lanes, lane, &mut self.one);
            gather(&self.aside, lanes, lane, &mut self.field);
            gather(&self.state[norms.clone()], lanes, lane, &mut self.norms);
            let probe = start::probe(&self.one, &self.field, &self.norms, vectors, span).length;
            for (one, field) in self.one.iter_mut().zip(&self.field) {
                *one = probe.mul_add(*field, *one);
            }
            scatter(&self.one, lanes, lane, &mut self.moved);
            self.moved_t[lane] += probe;
            self.probes[lane] = probe;
        }
        self.steps.fields(bound, &self.moved_t, &self.moved, &mut self.there, &mut self.work);
        for &lane in taken {
            gather(&self.state[x.clone()], lanes, lane, &mut self.one);
            gather(&self.aside, lanes, lane, &mut self.field);
            gather(&self.there, lanes, lane, &mut self.change);
            gather(&self.state[norms.clone()], lanes, lane, &mut self.norms);
            for (change, field) in self.change.iter_mut().zip(&self.field) {
                *change -= field;
            }
            let motion = (&self.one[..], &self.field[..], &self.change[..]);
            let h = start::first_step(
                self.probes[lane],
                motion,
                (&self.norms, vectors),
                (order, rtol, span),
            )
            .length;
            self.set(self.slots.h, lane, h);
            self.lanes[lane].end.cost.field += 1;
        }
    }

    /// Set the scales with which a lane's trajectory begins; `one` is its state.
    fn start_scales(&mut self, lane: usize) {
        let (vectors, lanes) = (self.steps.vectors(), self.lanes.len());
        self.scales.restart(vectors, self.steps.kept(), &self.one);
        self.scales.renew_norms(vectors, self.adaptive.square_of_least_scale());
        let Scales { norms, carried, masses, .. } = &self.scales;
        let slots = &self.slots;
        let parts = [(&slots.norms, norms), (&slots.carried, carried), (&slots.masses, masses)];
        for (slots, numbers) in parts {
            let all = &mut self.state[slots.start * lanes..slots.end * lanes];
            scatter(numbers, lanes, lane, all);
        }
    }

    /// Compute the fields at the states, into `aside`.
    fn fields(&mut self, bound: &S::Bound) {
        let lanes = self.lanes.len();
        let (t, x) =
            (&self.state[self.slots.t * lanes..][..lanes], &self.state[..self.slots.x.end * lanes]);
        self.steps.fields(bound, t, x, &mut self.aside, &mut self.work);
    }

    /// Compute the deviations and terms at the states; the size of a vector in them is its largest
    /// so far.
    fn monitor(&mut self, bound: &S::Bound) {
        let lanes = self.lanes.len();
        let (t, x) =
            (&self.state[self.slots.t * lanes..][..lanes], &self.state[..self.slots.x.end * lanes]);
        let squares =
            &self.state[self.slots.carried.start * lanes..][..self.steps.vectors().count() * lanes];
        let at = LaneStates { t, x, carried: &[], squares };
        self.steps.monitor(bound, at, &mut self.deviations, &mut self.terms, &mut self.work);
    }

    /// Record the deviations and terms of a lane.
    fn note(&mut self, lane: usize) {
        let (lanes, end) = (self.lanes.len(), &mut self.lanes[lane].end);
        gather(&self.deviations, lanes, lane, &mut end.deviations);
        end.raise_largest();
        // One content alone may be 0, where a motion turns round.
        end.raise_terms(&[], &self.terms, (lanes, lane));
    }

    /// Make attempts in every lane, until one of them ends.
    fn go_on(&mut self, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
        let limit = self.plan.step_limit;
        let mut count = MOST_ATTEMPTS;
        for lane in (0..self.lanes.len()).filter(|&lane| self.lanes[lane].number.is_some()) {
            let [steps, rejected] = self.counts(lane);
            count = count.min(limit.saturating_sub((steps + rejected) as u64));
            let to_follow = self.steps_to_follow(lane, trajectories);
            count = count.min(to_follow.max(1));
        }
        if self.kept.is_empty() {
            if count > 0 {
                self.steps.attempts(bound, count, &mut self.state, &mut self.work);
            }
        } else {
            self.attempts_with_samples(count as usize, bound, trajectories);
        }
        let mut ended: Vec<(usize, Option<Stopped>)> = Vec::new();
        let (mut undefined, mut parted): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        self.follow(trajectories);
        self.find_doubted(trajectories);
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].number.is_none() {
                continue;
            }
            let [steps, rejected] = self.counts(lane);
            let at_limit = (steps + rejected) as u64 >= limit;
            let status = Status::of(self.at(self.slots.status, lane));
            if self.doubted[lane] || self.lanes[lane].missed {
                ended.push((lane, Some(Stopped::Doubted)));
                continue;
            }
            match status {
                Status::Arrived => ended.push((lane, None)),
                // A step collapses, or an event may lie in it; a run by itself tells.
                Status::Held if !self.slots.sides.is_empty() => parted.push(lane),
                Status::Held => ended.push((lane, Some(Stopped::StepCollapsed))),
                Status::Broken => ended.push((lane, Some(Stopped::NonFinite))),
                Status::Unsettled => ended.push((lane, Some(Stopped::Doubted))),
                _ if at_limit => ended.push((lane, Some(Stopped::TooManySteps))),
                Status::Undefined => undefined.push(lane),
                Status::Going | Status::Idle => {}
            }
        }
        if !undefined.is_empty() {
            // Either the step is far too long, or the field is undefined where it starts.
            self.fields(bound);
            for lane in undefined {
                match finite(&self.aside, self.lanes.len(), lane) {
                    true => self.reject_blindly(lane),
                    false => ended.push((lane, Some(Stopped::NonFinite))),
                }
            }
        }
        if !ended.is_empty() || !parted.is_empty() {
            self.monitor(bound);
            let last = self.adaptive.samples.len() - 1;
            if self.adaptive.samples[last] == self.adaptive.t_end {
                let arrived = ended.iter().filter(|(_, failure)| failure.is_none());
                let arrived: Vec<usize> = arrived.map(|&(lane, _)| lane).collect();
                self.sample(last, &arrived, trajectories);
            }
            for &(lane, failure) in &ended {
                self.finish(lane, failure, trajectories);
            }
            parted.iter().for_each(|&lane| self.part(lane, trajectories));
            self.free.extend(ended.into_iter().map(|(lane, _)| lane).chain(parted));
            self.take_up(bound, trajectories);
        }
    }

    /// Number of steps that a lane may make until its constraints are looked at again.
    fn steps_to_follow(&self, lane: usize, trajectories: &dyn Trajectories<S::Bound>) -> u64 {
        let step = self.at(self.slots.steps, lane) as u64;
        let number = self.lanes[lane].number;
        number.map_or(u64::MAX, |number| trajectories.steps_to_follow(&[(lane, number)], step))
    }

    /// Follow the constraints of the lanes in which it is time.
    fn follow(&mut self, trajectories: &mut dyn Trajectories<S::Bound>) {
        let lanes = self.lanes.len();
        for lane in 0..lanes {
            let Some(number) = self.lanes[lane].number else { continue };
            if self.steps_to_follow(lane, trajectories) > 0 {
                continue;
            }
            let (step, t) = (self.at(self.slots.steps, lane) as u64, self.at(self.slots.t, lane));
            gather(&self.state[self.all(self.slots.x.clone())], lanes, lane, &mut self.one);
            trajectories.follow((lane, number), (step, t), &self.one);
        }
    }

    /// Make up to `count` attempts in every lane, until one of them ends, and find the samples
    /// within their steps.
    fn attempts_with_samples(
        &mut self,
        count: usize,
        bound: &S::Bound,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let lanes = self.lanes.len();
        self.kept[0].copy_from_slice(&self.state);
        for attempt in 0..count.min(MOST_KEPT) {
            self.steps.attempts(bound, 1, &mut self.state, &mut self.work);
            let mut goes_on = true;
            for lane in 0..lanes {
                let end = self.at(self.slots.elapsed, lane);
                let Lane { number, next_sample, due, .. } = &mut self.lanes[lane];
                let (adaptive, span) = (self.adaptive, self.adaptive.span());
                while let Some(elapsed) =
                    adaptive.sample_after(*next_sample).filter(|&at| at <= end && at < span)
                    && number.is_some()
                {
                    due.push(Due {
                        attempt,
                        sample: *next_sample,
                        elapsed,
                        at_end: elapsed == end,
                    });
                    *next_sample += 1;
                }
                let status = Status::of(self.at(self.slots.status, lane));
                goes_on &= matches!(status, Status::Going | Status::Idle);
            }
            self.kept[attempt + 1].copy_from_slice(&self.state);
            if !goes_on {
                break;
            }
        }
        match self.takes_attempts_in_turn() {
            true => (0..MOST_KEPT)
                .for_each(|attempt| while self.samples_due(Some(attempt), bound, trajectories) {}),
            false => while self.samples_due(None, bound, trajectories) {},
        }
        for Lane { due, found, loaded, .. } in &mut self.lanes {
            due.clear();
            (*found, *loaded) = (0, None);
        }
    }

    /// True if the samples that are due take fewer operations attempt by attempt, where one interpolant
    /// serves several of them, than in as many lanes as have any.
    fn takes_attempts_in_turn(&self) -> bool {
        let (mut of_attempts, mut rounds) = ([0; MOST_KEPT], 0);
        for Lane { due, .. } in &self.lanes {
            rounds = rounds.max(due.len());
            for of_attempt in due.chunk_by(|a, b| a.attempt == b.attempt) {
                let most = &mut of_attempts[of_attempt[0].attempt];
                *most = of_attempt.len().max(*most);
            }
        }
        let attempts = of_attempts.iter().filter(|most| **most > 0).count();
        let [interpolant, sample] = self.steps.within_operations();
        let in_turn = attempts * interpolant + of_attempts.iter().sum::<usize>() * sample;
        in_turn < rounds * (interpolant + sample)
    }

    /// Find and pass on the next sample that is due in every lane, or in those where it lies in
    /// `attempt`. False if there is none.
    fn samples_due(
        &mut self,
        attempt: Option<usize>,
        bound: &S::Bound,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) -> bool {
        let (lanes, n) = (self.lanes.len(), self.steps.dim());
        let (slots, Samples { at, wanted, numbers, found }) = (&self.slots, &mut self.within);
        let samples = &mut self.samples;
        samples.clear();
        wanted.fill(false);
        found.missed.fill(false);
        found.evaluations.fill(0.0);
        let reads = self.steps.within_reads();
        let copy =
            |to: &mut [f64], first: usize, from: &[f64], range: Range<usize>, lane: usize| {
                for (k, slot) in range.enumerate() {
                    to[(first + k) * lanes + lane] = from[slot * lanes + lane];
                }
            };
        let mut is_other = false;
        for (lane, this) in self.lanes.iter_mut().enumerate() {
            let (Some(&due), Some(trajectory)) = (this.due.get(this.found), this.number) else {
                continue;
            };
            if attempt.is_some_and(|attempt| attempt != due.attempt) {
                continue;
            }
            samples.push(LaneSample { lane, trajectory, sample: due.sample });
            if due.at_end {
                continue;
            }
            wanted[lane] = true;
            if this.loaded.replace(due.attempt) != Some(due.attempt) {
                is_other = true;
                let [before, after] = [due.attempt, due.attempt + 1].map(|at| &self.kept[at]);
                let rows = reads.iter().map(|slot| slot * lanes + lane);
                rows.for_each(|at| numbers[at] = before[at]);
                copy(numbers, at.x1.start, after, slots.x.clone(), lane);
                copy(numbers, at.carried.start, after, slots.carried.clone(), lane);
                copy(numbers, at.memory.start, after, slots.memory.clone(), lane);
            }
            numbers[at.elapsed * lanes + lane] = due.elapsed;
        }
        if wanted.contains(&true) {
            self.steps.within(bound, (wanted, is_other), numbers, found, &mut self.work);
        }
        let LanesWithin { out, evaluations, missed } = found;
        for &LaneSample { lane, .. } in &*samples {
            let this = &mut self.lanes[lane];
            let due = this.due[this.found];
            let before = this.found.checked_sub(1).map(|before| this.due[before].attempt);
            this.found += 1;
            if due.at_end {
                copy(out, 0, &self.kept[due.attempt + 1], slots.x.clone(), lane);
                continue;
            }
            let end = &mut this.end;
            let is_first = before != Some(due.attempt);
            end.cost.field += if is_first { self.steps.interpolant_evaluations() } else { 0 };
            end.cost.field += evaluations[lane] as u64;
            self.steps.count_treatments(1, &mut end.cost);
            for (group, largest) in end.largest.iter_mut().enumerate() {
                *largest = max_or_nan(*largest, out[(n + group) * lanes + lane]);
            }
            this.missed |= missed[lane];
        }
        if samples.is_empty() {
            return false;
        }
        trajectories.samples(samples, &out[..n * lanes]);
        true
    }

    /// Find the lanes in which a claim or a correction fails; checked after some steps, and at the
    /// end.
    fn find_doubted(&mut self, trajectories: &mut dyn Trajectories<S::Bound>) {
        let (lanes, corrects, looks) =
            (self.lanes.len(), self.steps.corrects(), trajectories.looks());
        self.doubted.fill(false);
        if !corrects && !looks {
            return;
        }
        self.due.clear();
        for lane in 0..lanes {
            let status = Status::of(self.at(self.slots.status, lane));
            let steps = self.at(self.slots.steps, lane) as u64;
            let is_due = match status {
                Status::Arrived => true,
                Status::Going => steps >= self.lanes[lane].next_look,
                _ => false,
            };
            let Some(number) = self.lanes[lane].number.filter(|_| is_due) else { continue };
            self.lanes[lane].next_look = next_look(steps);
            self.doubted[lane] = self.may_be_pushed(lane, trajectories);
            if looks && !self.doubted[lane] {
                self.due.push((lane, number));
            }
        }
        if self.due.is_empty() {
            return;
        }
        let squares =
            &self.state[self.slots.carried.start * lanes..][..self.steps.vectors().count() * lanes];
        let (t, x) =
            (&self.state[self.slots.t * lanes..][..lanes], &self.state[..self.slots.x.end * lanes]);
        trajectories.look(&self.due, LaneStates { t, x, carried: &[], squares }, &mut self.doubted);
    }

    /// True if a treatment moved a state in a lane further than a step's error explains, or left a
    /// constraint far off.
    fn may_be_pushed(
        &mut self,
        lane: usize,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) -> bool {
        let largest = self.all(self.slots.largest.clone());
        gather(&self.state[largest], self.lanes.len(), lane, &mut self.group);
        self.steps.finish(&mut self.group);
        let (count, terms) = (self.steps.vectors().count(), &self.lanes[lane].end.terms);
        let innovation = self.at(self.slots.innovation, lane).powi(2);
        match self.steps.corrects() {
            true => surprises(innovation, count) || trajectories.may_be_far(&self.group, terms),
            false => {
                let disturbance = trajectories.disturbance(innovation, &self.group, terms);
                disturbance > PULLED * self.adaptive.rtol * (count as f64).sqrt()
            }
        }
    }

    /// Control of the steps.
    fn control(&self) -> StepControl {
        self.steps.facts().control.expect("steps are controlled by an estimate of their error")
    }

    /// Reject the first attempt at a step, whose error is not a number.
    fn reject_blindly(&mut self, lane: usize) {
        let wanted = self.at(self.slots.h, lane).min(self.adaptive.longest_step);
        let elapsed = self.at(self.slots.elapsed, lane);
        let limits = (self.adaptive.span(), self.adaptive.shortest_step);
        let Trial { length, resolves, .. } = trial(limits, elapsed, wanted, 0.0);
        let length = if resolves { length } else { wanted };
        self.set(self.slots.h, lane, length * self.control().blind);
        self.set(self.slots.rejections, lane, 1.0);
        self.set(self.slots.rejected, lane, self.at(self.slots.rejected, lane) + 1.0);
        self.set(self.slots.status, lane, Status::Going.number());
    }

    /// Pass on the states of these lanes.
    fn sample(
        &mut self,
        sample: usize,
        lanes: &[usize],
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let of = lanes.iter().filter_map(|&lane| {
            Some(LaneSample { lane, trajectory: self.lanes[lane].number?, sample })
        });
        self.samples.clear();
        self.samples.extend(of);
        if !self.samples.is_empty() {
            trajectories.samples(&self.samples, &self.state[self.all(self.slots.x.clone())]);
        }
    }

    /// Report the end of a lane's trajectory.
    fn finish(
        &mut self,
        lane: usize,
        failure: Option<Stopped>,
        trajectories: &mut dyn Trajectories<S::Bound>,
    ) {
        let Some(number) = self.lanes[lane].number.take() else { return };
        if failure.is_none() {
            self.note(lane);
        }
        self.lanes[lane].end.failure = failure;
        self.account(lane);
        trajectories.end(number, &self.lanes[lane].end);
    }

    /// Hand the trajectory of a lane over, between two steps. The attempts at the next one that were
    /// rejected are made again.
    fn part(&mut self, lane: usize, trajectories: &mut dyn Trajectories<S::Bound>) {
        let Some(number) = self.lanes[lane].number.take() else { return };
        let [steps, _] = self.counts(lane);
        if steps == 0.0 {
            // A run by itself chooses the first step, too.
            self.lanes[lane].end.failure = Some(Stopped::Doubted);
            return trajectories.end(number, &self.lanes[lane].end);
        }
        let slots = self.slots.clone();
        let again = self.at(slots.rejected, lane) - self.at(slots.rejections, lane);
        self.set(slots.rejected, lane, again);
        self.note(lane);
        self.account(lane);
        let of = |slots: &Range<usize>| -> Vec<f64> {
            slots.clone().map(|slot| self.at(slot, lane)).collect()
        };
        let [elapsed, h, last_error] =
            [slots.elapsed, slots.h_accepted, slots.last_error].map(|slot| self.at(slot, lane));
        let parted = Parted {
            end: self.lanes[lane].end.clone(),
            elapsed,
            x: of(&slots.x),
            carried: of(&slots.carried),
            memory: split_count(self.steps, &of(&slots.memory)).0.to_vec(),
            judged: 0.0,
            next_sample: self.lanes[lane].next_sample,
            adaptive: Some(PartedAdaptive {
                controller: ControllerMemory { h, last_error },
                norms: of(&slots.norms),
                first: of(&slots.first),
            }),
        };
        trajectories.part(number, parted);
    }

    /// Complete the account of a lane's trajectory up to its last step.
    fn account(&mut self, lane: usize) {
        let (lanes, slots) = (self.lanes.len(), &self.slots);
        let [t, steps, rejected, innovation, innovation_at] =
            [slots.t, slots.steps, slots.rejected, slots.innovation, slots.innovation_at]
                .map(|slot| self.at(slot, lane));
        let largest = self.all(slots.largest.clone());
        gather(&self.state[largest], lanes, lane, &mut self.group);
        self.steps.finish(&mut self.group);
        let memory = self.all(slots.memory.clone());
        gather(&self.state[memory], lanes, lane, &mut self.memory);
        let facts = self.steps.facts();
        let end = &mut self.lanes[lane].end;
        end.cost.field += split_count(self.steps, &self.memory).1;
        for (largest, &inside) in end.largest.iter_mut().zip(&self.group) {
            *largest = max_or_nan(*largest, inside);
        }
        let evaluations = self.steps.evaluations();
        (end.t, end.steps) = (t, steps as u64);
        (end.innovation, end.innovation_at) = (innovation, innovation_at);
        end.cost.rejected = rejected as u64;
        end.cost.field += (steps + rejected) as u64 * evaluations;
        if self.steps.count_treatments(steps as u64, &mut end.cost) && facts.ends_with_field {
            // A treatment moves the state, so that the next step needs the field there.
            end.cost.field += (steps as u64).saturating_sub(u64::from(end.failure.is_none()));
        }
    }
}
