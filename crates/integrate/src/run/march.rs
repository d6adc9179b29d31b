//! Adaptive steps in a loop of the map: entry into the loop, and exit from it.

use super::given_scales::steps_to_scales;
use super::rounding::steps_to_rounding;
use super::watch::Watch;
use super::{Engine, LONGEST_BLOCK};
use crate::controller::slots::{Slots, Status};
use crate::failure::Failure;
use crate::plan::{AdaptiveSteps, Moment};
use crate::scheme::map::{Attempts, Workspace};
use crate::terms::steps_to_measurement;
use crate::vector::max_or_nan;

/// Start of the attempts at a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Wanted length of the step.
    pub h: f64,
    /// Number of attempts at it that were rejected.
    pub rejections: u32,
}

impl Engine<'_> {
    /// Make steps in one go, up to the next one that is not ordinary: one with a sample, one into
    /// the `moment` that comes next, the last one. `None` if the state is then at a step's end;
    /// otherwise the attempt to be made next.
    pub(super) fn march<E>(
        &mut self,
        adaptive: &AdaptiveSteps,
        attempts: &dyn Attempts,
        moment: Option<&Moment>,
    ) -> Result<Option<Wanted>, Failure<E>> {
        let slots = attempts.slots();
        let wanted =
            Wanted { h: self.state.controller.h.min(adaptive.longest_step), rejections: 0 };
        let (span, sample) = (adaptive.span(), adaptive.sample_after(self.state.next_sample));
        let begins = moment.map_or(f64::INFINITY, |moment| moment.from - adaptive.t0);
        let pause = sample.unwrap_or(span).min(span).min(begins);
        let count = self.march_length();
        if count == 0 || self.state.elapsed + wanted.h >= pause {
            return Ok(Some(wanted));
        }
        self.march.resize(slots.count(), 0.0);
        let spent = self.state.cost.clone();
        let steps = match self.attempt_many(attempts, count, pause) {
            steps if steps > 1 && self.is_surprised(&self.march[slots.largest.clone()]) => {
                // Claims are to be tested at the step at which one failed.
                (self.claims.singly, self.state.cost) = (steps, spent);
                self.forget_watched();
                self.attempt_many(attempts, 1, pause)
            }
            steps => steps,
        };
        let rejected = self.march[slots.rejected] as u64;
        let rejections = self.march[slots.rejections] as u32;
        let state = &mut *self.state;
        state.cost.field += (steps + rejected) * attempts.evaluations();
        state.cost.rejected += rejected;
        if steps > 0 {
            self.leave(attempts, steps)?;
        }
        let pending = Wanted { h: self.march[slots.h], rejections };
        Ok((rejections > 0 || steps == 0).then_some(if rejections > 0 { pending } else { wanted }))
    }

    /// Make attempts from the state, at most as many. Returns the number of steps that were
    /// accepted.
    fn attempt_many(&mut self, attempts: &dyn Attempts, count: u64, pause: f64) -> u64 {
        let slots = attempts.slots();
        self.enter(slots, pause);
        self.memory.copy_from_slice(&self.state.memory);
        match self.watch.take() {
            None => self.attempt_up_to(attempts, count),
            Some(mut watch) => {
                match slots.sides.is_empty() {
                    true => self.attempt_watched(attempts, count, &mut watch),
                    false => self.attempt_looking(attempts, count, &mut watch),
                }
                self.watch = Some(watch);
            }
        }
        attempts.finish(&mut self.march[slots.largest.clone()]);
        self.innovation = match self.march[slots.innovation] {
            largest if largest > self.state.innovation => largest.powi(2),
            _ => 0.0,
        };
        self.march[slots.steps] as u64
    }

    fn attempt_up_to(&mut self, attempts: &dyn Attempts, count: u64) {
        let (kept, memory, cost) =
            (&mut self.stages[..], &mut self.memory[..], &mut self.state.cost);
        attempts.run(
            count,
            &mut self.march,
            &mut Workspace { kept, memory, cost, work: &mut self.work },
        );
    }

    /// Make attempts in a loop that holds where an event may lie in one.
    fn attempt_looking(&mut self, attempts: &dyn Attempts, count: u64, watch: &mut Watch) {
        watch.forget_start();
        if watch.begin_loop(&self.state.events) && !watch.landed {
            self.march[attempts.slots().sides.clone()].copy_from_slice(&watch.sides);
            self.attempt_up_to(attempts, count);
        }
    }

    /// Make attempts as long as no event lies in an accepted step: one in which one may lie is made
    /// by itself.
    fn attempt_watched(&mut self, attempts: &dyn Attempts, count: u64, watch: &mut Watch) {
        let slots = attempts.slots();
        watch.begin_at(self.state.t, &self.state.x);
        let (mut before, mut memory) = (std::mem::take(&mut self.before_attempt), Vec::new());
        for _ in 0..count {
            before.clone_from(&self.march);
            memory.clone_from(&self.memory);
            self.attempt_up_to(attempts, 1);
            let at = &self.march;
            if at[slots.steps] > before[slots.steps] {
                let (t, x) = (at[slots.t], &at[slots.x.clone()]);
                let h = at[slots.elapsed] - before[slots.elapsed];
                if !watch.passes(&self.state.events, h, (t, x)) {
                    // The attempts that were rejected on the way are made again.
                    self.march.copy_from_slice(&before);
                    self.memory.copy_from_slice(&memory);
                    break;
                }
            }
            if self.march[slots.status] != Status::Going.number() {
                break;
            }
        }
        self.before_attempt = before;
    }

    /// Largest number of attempts: up to the next check of any kind and to the limit of steps, and
    /// so few that an observer never has to wait.
    fn march_length(&self) -> u64 {
        let state = &*self.state;
        let to_monitor = match &self.monitor {
            Some(monitor) if monitor.samples(state.step) => 0,
            Some(monitor) => monitor.steps_to_sample(state.step),
            None => u64::MAX,
        };
        let to_limit = self.plan.step_limit.saturating_sub(state.step + state.cost.rejected);
        let to_look = self.claims.steps_to_look(state.step).min(self.longest_block());
        let to_rounding = steps_to_rounding(state.step);
        let takes_scales = self.map.takes_scales();
        let to_scales = if takes_scales { steps_to_scales(state.step) } else { u64::MAX };
        [
            LONGEST_BLOCK,
            to_monitor,
            to_limit,
            steps_to_measurement(state.step),
            to_look,
            to_rounding,
            to_scales,
        ]
        .into_iter()
        .min()
        .unwrap_or(0)
    }

    /// Copy the state into the slots of the loop.
    fn enter(&mut self, slots: &Slots, pause: f64) {
        let (state, at) = (&*self.state, &mut self.march);
        at[slots.x.clone()].copy_from_slice(&state.x);
        at[slots.t] = state.t;
        at[slots.elapsed] = state.elapsed;
        at[slots.h] = state.controller.h;
        at[slots.h_accepted] = state.controller.h;
        at[slots.last_error] = state.controller.last_error;
        let first = slots.first.clone();
        let known = &state.first_stage.value[..first.len()];
        at[first].copy_from_slice(known);
        at[slots.carried.clone()].copy_from_slice(&state.scales.carried);
        at[slots.norms.clone()].copy_from_slice(&state.scales.norms);
        at[slots.largest.clone()].fill(0.0);
        at[slots.innovation] = state.innovation;
        at[slots.innovation_at] = state.innovation_at;
        for slot in [slots.rejections, slots.steps, slots.rejected] {
            at[slot] = 0.0;
        }
        at[slots.status] = Status::Going.number();
        at[slots.pause] = pause;
        let masses = &mut at[slots.masses.clone()];
        match state.scales.masses.len() == masses.len() {
            true => masses.copy_from_slice(&state.scales.masses),
            false => masses.fill(0.0),
        }
        at[slots.rounding.clone()].copy_from_slice(&state.scales.rounding);
    }

    /// Make the loop's result after `steps` accepted steps the state.
    fn leave<E>(&mut self, attempts: &dyn Attempts, steps: u64) -> Result<(), Failure<E>> {
        let slots = attempts.slots();
        let known = !slots.first.is_empty();
        let step = self.state.step + steps;
        let [t1, end] = [slots.t, slots.elapsed].map(|slot| self.march[slot]);
        self.x1.copy_from_slice(&self.march[slots.x.clone()]);
        let state = &mut *self.state;
        let deviations = &mut self.deviations[..self.groups];
        self.system.monitor(
            t1,
            &state.target,
            &self.x1,
            &mut self.values,
            deviations,
            &mut self.work,
        );
        let at = &mut self.march;
        for (drift, &largest) in state.drift.iter_mut().zip(&at[slots.largest.clone()]) {
            drift.max = max_or_nan(drift.max, largest);
        }
        state.controller.h = at[slots.h_accepted];
        state.controller.last_error = at[slots.last_error];
        state.scales.norms.copy_from_slice(&at[slots.norms.clone()]);
        self.scales.carried.copy_from_slice(&at[slots.carried.clone()]);
        let innovation = (at[slots.innovation], at[slots.innovation_at]);
        attempts.count_treatments(steps, &mut state.cost);
        if self.map.takes_first_stage() && !known {
            // The loop has evaluated the first stage for every step but the one that it began with.
            state.cost.field += steps - 1;
        }
        self.field_known = known;
        if known {
            self.field.copy_from_slice(&at[slots.first.clone()]);
        }
        self.check_values(step, t1)?;
        self.check_met(t1, self.state.controller.h)?;
        self.advance(step, t1);
        (self.state.innovation, self.state.innovation_at) = innovation;
        self.state.elapsed = end;
        Ok(())
    }
}
