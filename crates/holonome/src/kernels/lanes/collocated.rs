//! Steps of collocation methods in lanes: equal ones, attempts, and states within accepted
//! attempts.

use super::{CompiledLanes, LaneBound};
use crate::kernels::collocation::{LaneStages, LaneStep};
use holonome_integrate::controller::slots::{Slots, Status, Within};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::ensemble::{AdaptiveLaneSteps, LanesWithin};
use holonome_model::graph::interpret::Kernel;
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

    /// Equal steps of a collocation method. `state` is that of the loop, of length `len` in every
    /// lane, and room for x₁ and the estimate of its error.
    pub(super) fn collocated_steps(
        &self,
        (stages, settle): (&LaneStages, &dyn Kernel),
        bound: &LaneBound,
        steps: Range<u64>,
        (state, len): (&mut [f64], usize),
        (memory, missed): (&mut [f64], &mut [bool]),
        work: &mut [f64],
    ) {
        let (lanes, n) = (self.lanes, self.dimension * self.lanes);
        let Some(bound_stages) = &bound.stages else { unreachable!("a collocation method") };
        let [h, t0] = self.more[..] else { unreachable!("the parameters of equal steps") };
        let (work, own) = work.split_at_mut(stages.work_len());
        let mut numbers = stages.enter(memory, work);
        let [lengths, counts] = stages.lengths_and_counts();
        let mut made = vec![LaneStep::Yes; lanes];
        for step in steps {
            let t = (step as f64).mul_add(h, t0);
            for lane in 0..lanes {
                made[lane] = if missed[lane] { LaneStep::Idle } else { LaneStep::Yes };
                stages.set(lane, (t, h, memory[lengths.start + lane]), &mut numbers);
                // A first step takes the field at its start.
                memory[counts.start + lane] +=
                    f64::from(u8::from(memory[lengths.start + lane] == 0.0));
            }
            stages.make(
                bound_stages,
                &state[..n],
                &mut numbers,
                &mut made,
                &mut memory[counts.clone()],
            );
            for (missed, made) in missed.iter_mut().zip(&made) {
                *missed = *made != LaneStep::Yes;
            }
            state[len * lanes..].copy_from_slice(&stages.results(&numbers)[..2 * n]);
            for lane in (0..lanes).filter(|&lane| missed[lane]) {
                // The lane waits at a state that is sound.
                for i in 0..self.dimension {
                    state[(len + i) * lanes + lane] = state[i * lanes + lane];
                    state[(len + self.dimension + i) * lanes + lane] = 0.0;
                }
            }
            stages.accept(&mut numbers, |lane| made[lane] == LaneStep::Yes);
            memory[lengths.clone()].fill(h);
            settle.iterate(&bound.advance, state, 1, own);
        }
        stages.leave(&numbers, memory);
    }

    /// Attempts of a collocation method in every lane, until one of them ends.
    pub(super) fn collocated_attempts(
        &self,
        (stages, judge, slots): (&LaneStages, &dyn Kernel, &Slots),
        bound: &LaneBound,
        count: u64,
        state: &mut [f64],
        work: &mut [f64],
    ) {
        let (lanes, n) = (self.lanes, self.dimension);
        let Some(bound_stages) = &bound.stages else { unreachable!("a collocation method") };
        let [_, span, longest, shortest, ..] = self.more[..] else {
            unreachable!("the parameters of a loop")
        };
        let (judged, work) = work.split_at_mut(slots.count() * lanes + stages.results_len());
        let (work, own) = work.split_at_mut(stages.work_len());
        let rows = |slots: &Range<usize>| slots.start * lanes..slots.end * lanes;
        judged[..state.len()].copy_from_slice(state);
        let memory = &mut state[rows(&slots.memory)];
        let mut numbers = stages.enter(memory, work);
        let [lengths, counts] = stages.lengths_and_counts();
        let (mut made, mut steps, mut tried) =
            (vec![LaneStep::Idle; lanes], vec![0.0; lanes], vec![0.0; lanes]);
        for _ in 0..count {
            for lane in 0..lanes {
                made[lane] = LaneStep::Idle;
                let [t, elapsed, h, rejections, pause, status] =
                    [slots.t, slots.elapsed, slots.h, slots.rejections, slots.pause, slots.status]
                        .map(|k| judged[k * lanes + lane]);
                if Status::of(status) != Status::Going {
                    continue;
                }
                let trial = trial((span, shortest), elapsed, h.min(longest), rejections);
                if !trial.resolves || trial.end >= pause {
                    judged[slots.status * lanes + lane] = Status::Held.number();
                    continue;
                }
                let length = memory[lengths.start + lane];
                (made[lane], tried[lane]) = (LaneStep::Yes, trial.length);
                memory[counts.start + lane] += f64::from(u8::from(length == 0.0));
                stages.set(lane, (t, trial.length, length), &mut numbers);
            }
            let x = rows(&slots.x);
            stages.make(
                bound_stages,
                &judged[x.clone()],
                &mut numbers,
                &mut made,
                &mut memory[counts.clone()],
            );
            let (before, attempted) = judged.split_at_mut(slots.count() * lanes);
            attempted.copy_from_slice(stages.results(&numbers));
            for (lane, made) in made.iter().enumerate().filter(|(_, made)| **made != LaneStep::Yes)
            {
                // Nothing was made, or nothing that could be accepted.
                for i in 0..n {
                    attempted[i * lanes + lane] = before[x.start + i * lanes + lane];
                    attempted[(n + i) * lanes + lane] = f64::INFINITY;
                }
                attempted[2 * n * lanes..]
                    .iter_mut()
                    .skip(lane)
                    .step_by(lanes)
                    .for_each(|measure| *measure = 0.0);
                if *made == LaneStep::Moves {
                    before[slots.status * lanes + lane] = Status::Held.number();
                }
            }
            steps.copy_from_slice(&judged[slots.steps * lanes..][..lanes]);
            judge.iterate(&bound.advance, judged, 1, own);
            let accepted = |lane: usize| judged[slots.steps * lanes + lane] != steps[lane];
            stages.accept(&mut numbers, accepted);
            for lane in (0..lanes).filter(|&lane| accepted(lane)) {
                memory[lengths.start + lane] = tried[lane];
            }
            let ended = |status: f64| !matches!(Status::of(status), Status::Going | Status::Idle);
            if judged[slots.status * lanes..][..lanes].iter().any(|&status| ended(status)) {
                break;
            }
        }
        stages.leave(&numbers, memory);
        let changed = slots.changed() * lanes;
        state[..changed].copy_from_slice(&judged[..changed]);
    }
}
