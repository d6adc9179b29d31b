//! Steps of collocation methods in lanes: equal ones, attempts, and states within accepted
//! attempts.

use super::{Advance, CompiledLanes, LaneBound};
use crate::kernels::collocation::{LaneStages, LaneStep};
use holonome_integrate::controller::slots::{Status, Within};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::ensemble::{AdaptiveLaneSteps, LaneSystem, LanesWithin};
use holonome_integrate::run::takes_scales_after;
use std::ops::Range;

impl CompiledLanes {
    /// States within steps of a collocation method, as ends of shorter steps, and the scales after
    /// the whole ones.
    pub(super) fn parts_of_steps(
        &self,
        (stages, at): (&LaneStages, &Within),
        bound: &LaneBound,
        (wanted, numbers): (&[bool], &[f64]),
        (states, found): (&mut [f64], &mut LanesWithin),
        work: &mut [f64],
    ) {
        let (lanes, slots) = (self.lanes, AdaptiveLaneSteps::slots(self));
        let Some(bound) = &bound.stages else { unreachable!("a collocation method") };
        let rows = |slots: &Range<usize>| slots.start * lanes..slots.end * lanes;
        let memory = &numbers[rows(&at.memory)];
        let [lengths, _] = stages.lengths_and_counts();
        let mut of = stages.enter(memory, work);
        stages.step_back(&mut of);
        let mut made = vec![LaneStep::Idle; lanes];
        for lane in (0..lanes).filter(|&lane| wanted[lane]) {
            let (h, passed) = self.passed(at, lane, numbers);
            made[lane] = LaneStep::Yes;
            let t = numbers[slots.t * lanes + lane];
            stages.set(lane, (t, passed / h * h, memory[lengths.start + lane]), &mut of);
        }
        stages.make(bound, &numbers[rows(&slots.x)], &mut of, &mut made, &mut found.evaluations);
        let n = self.dimension * lanes;
        states[..n].copy_from_slice(&stages.results(&of)[..n]);
        states[n..].copy_from_slice(&numbers[rows(&at.carried)]);
        for (missed, made) in found.missed.iter_mut().zip(&made) {
            *missed = *made == LaneStep::No;
        }
    }

    /// Start and length of a lane's step with this number, or of its next attempt; `None` if there is
    /// none.
    fn next_step(&self, lane: usize, number: u64, state: &mut [f64]) -> Option<(f64, f64)> {
        let Some(slots) = &self.advance.slots else {
            let [h, t0] = self.more[..] else { unreachable!("the parameters of equal steps") };
            return Some(((number as f64).mul_add(h, t0), h));
        };
        let [_, span, longest, shortest, ..] = self.more[..] else {
            unreachable!("the parameters of a loop")
        };
        let [t, elapsed, h, rejections, pause, status] =
            [slots.t, slots.elapsed, slots.h, slots.rejections, slots.pause, slots.status]
                .map(|k| state[k * self.lanes + lane]);
        if Status::of(status) != Status::Going {
            return None;
        }
        let trial = trial((span, shortest), elapsed, h.min(longest), rejections);
        if !trial.resolves || trial.end >= pause {
            self.hold(lane, state);
            return None;
        }
        Some((t, trial.length))
    }

    /// Hold the attempts of a lane.
    fn hold(&self, lane: usize, state: &mut [f64]) {
        if let Some(slots) = &self.advance.slots {
            state[slots.status * self.lanes + lane] = Status::Held.number();
        }
    }

    /// Make the steps of these numbers by a collocation method, or as many attempts until a lane
    /// ends. The results of the stages follow the state of the loop. A lane of equal steps whose
    /// step is not like others waits as `missed`.
    pub(super) fn collocated(
        &self,
        (stages, bound): (&LaneStages, &LaneBound),
        steps: Range<u64>,
        (state, memory): (&mut [f64], &mut [f64]),
        missed: &mut [bool],
        work: &mut [f64],
    ) {
        let (lanes, Advance { kernel, len, slots, .. }) = (self.lanes, &self.advance);
        let Some(bound_stages) = &bound.stages else { unreachable!("a collocation method") };
        let (work, own) = work.split_at_mut(stages.work_len());
        let mut numbers = stages.enter(memory, work);
        let [lengths, counts] = stages.lengths_and_counts();
        let (mut made, mut counted, mut tried) =
            (vec![LaneStep::Idle; lanes], vec![0.0; lanes], vec![0.0; lanes]);
        let mut evaluations = vec![0.0; lanes];
        for number in steps {
            evaluations.copy_from_slice(&memory[counts.clone()]);
            for lane in 0..lanes {
                made[lane] = LaneStep::Idle;
                let goes_on = missed.get(lane) != Some(&true);
                let next = goes_on.then(|| self.next_step(lane, number, state)).flatten();
                let Some((t, h)) = next else { continue };
                let length = memory[lengths.start + lane];
                (made[lane], tried[lane]) = (LaneStep::Yes, h);
                // A first step takes the field at its start.
                memory[counts.start + lane] += f64::from(u8::from(length == 0.0));
                stages.set(lane, (t, h, length), &mut numbers);
            }
            let x = &state[..self.dimension * lanes];
            stages.make(bound_stages, x, &mut numbers, &mut made, &mut memory[counts.clone()]);
            let (before, results) = state.split_at_mut(len * lanes);
            results.copy_from_slice(&stages.results(&numbers)[..results.len()]);
            for (lane, made) in made.iter().enumerate().filter(|(_, made)| **made != LaneStep::Yes)
            {
                self.wait(lane, before, results);
                if *made == LaneStep::Moves {
                    self.hold(lane, before);
                }
            }
            for (missed, made) in missed.iter_mut().zip(&made) {
                *missed = *made != LaneStep::Yes;
            }
            if let Some(slots) = slots {
                counted.copy_from_slice(&state[slots.steps * lanes..][..lanes]);
            }
            kernel.iterate(&bound.advance, state, 1, own);
            let accepted = |lane: usize| match slots {
                Some(slots) => state[slots.steps * lanes + lane] != counted[lane],
                None => made[lane] == LaneStep::Yes,
            };
            stages.accept(&mut numbers, accepted);
            for lane in (0..lanes).filter(|&lane| accepted(lane)) {
                memory[lengths.start + lane] = tried[lane];
            }
            let Some(slots) = slots else { continue };
            for lane in (0..lanes).filter(|&lane| accepted(lane)) {
                let of_lane = |slot: usize| state[slot * lanes + lane];
                if takes_scales_after(of_lane(slots.steps) as u64) {
                    let norms: Vec<f64> = slots.norms.clone().map(of_lane).collect();
                    let scales = (self.vectors(), &norms[..], of_lane(slots.h_accepted));
                    stages.take_scales(lane, scales, &mut numbers);
                }
            }
            let statuses = &state[slots.status * lanes..][..lanes];
            // A run by itself makes an attempt once more that is held.
            for (lane, &status) in statuses.iter().enumerate() {
                if Status::of(status) == Status::Held {
                    memory[counts.start + lane] = evaluations[lane];
                }
            }
            let ended = |status: f64| !matches!(Status::of(status), Status::Going | Status::Idle);
            if statuses.iter().any(|&status| ended(status)) {
                break;
            }
        }
        stages.leave(&numbers, memory);
    }

    /// Results for a lane in which nothing was made, or nothing that could be accepted: its state,
    /// which is sound.
    fn wait(&self, lane: usize, before: &[f64], results: &mut [f64]) {
        let (lanes, n) = (self.lanes, self.dimension);
        let error = if self.advance.slots.is_some() { f64::INFINITY } else { 0.0 };
        for i in 0..n {
            results[i * lanes + lane] = before[i * lanes + lane];
            results[(n + i) * lanes + lane] = error;
        }
        results[2 * n * lanes..].iter_mut().skip(lane).step_by(lanes).for_each(|m| *m = 0.0);
    }
}
