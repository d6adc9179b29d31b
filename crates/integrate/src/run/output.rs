//! The samples that fall on a step: at its end the treated state itself, inside it dense output
//! with a treatment of its own, which is not fed back.

use super::Engine;
use crate::failure::Failure;
use crate::observer::Observer;
use crate::plan::{AdaptiveSteps, FixedSteps, Stepping};
use crate::scheme::map::Between;
use crate::system::Place;
use crate::terms::{is_measured, raise_terms};
use crate::vector::max_or_nan;

/// Exchange the scratch of a run and that of its observer, while `act` passes it samples.
pub(super) fn lend<O: Observer + ?Sized, R>(
    work: &mut Vec<f64>,
    observer: &mut O,
    act: impl FnOnce(&mut O) -> R,
) -> R {
    let mut exchange = |observer: &mut O| {
        if let Some(scratch) = observer.scratch() {
            std::mem::swap(scratch, work);
        }
    };
    exchange(observer);
    let result = act(observer);
    exchange(observer);
    result
}

impl Engine<'_> {
    /// Write the sample at the start of a new run.
    pub(super) fn sample_start<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<(), Failure<O::Error>> {
        if self.state.step > 0 || self.state.next_sample > 0 {
            return Ok(());
        }
        match &self.plan.stepping {
            Stepping::Fixed(fixed) => {
                self.x1.copy_from_slice(&self.state.x);
                self.sample_fixed(fixed, 0, self.state.t, observer)
            }
            Stepping::Adaptive(adaptive) => {
                if adaptive.samples.first().is_some_and(|&t| t <= self.state.t) {
                    let state = &*self.state;
                    let sampled = lend(&mut self.work, observer, |observer| {
                        observer.sample(0, state.t, &state.x)
                    });
                    sampled.map_err(Failure::Observer)?;
                    let state = &mut *self.state;
                    observer.accumulate(0, state.t, &state.x, &mut state.averages);
                    let at = (state.t, &state.x[..], &state.target[..]);
                    raise_terms(
                        self.system,
                        at,
                        (&mut state.terms, &mut state.losses),
                        &mut self.work,
                    );
                    self.state.next_sample = 1;
                }
                Ok(())
            }
        }
    }

    /// Write the sample at x₁ after `end` steps, if there is one.
    pub(super) fn sample_fixed<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        end: u64,
        t1: f64,
        observer: &mut O,
    ) -> Result<(), Failure<O::Error>> {
        let index = self.state.next_sample;
        if fixed.samples.get(index).is_some_and(|&step| step == end) {
            let is_known = self.outputs.known > 0;
            self.outputs.known -= usize::from(is_known);
            if observer.wants_multipliers() && self.map.multiplier_count() > 0 {
                self.add_multipliers(fixed, end, t1);
            }
            let (sample, averages) = (&self.x1, &mut self.state.averages);
            let sampled = match is_known {
                true => Ok(()),
                false => {
                    lend(&mut self.work, observer, |observer| observer.sample(index, t1, sample))
                }
            };
            if sampled.is_ok() {
                observer.accumulate(index, t1, sample, averages);
            }
            self.x1.truncate(self.state.x.len());
            sampled.map_err(Failure::Observer)?;
            if is_measured(index, fixed.samples.len()) {
                let state = &mut *self.state;
                let at = (t1, &self.x1[..], &state.target[..]);
                raise_terms(self.system, at, (&mut state.terms, &mut state.losses), &mut self.work);
            }
            self.state.next_sample += 1;
        }
        Ok(())
    }

    /// Append the multipliers at x₁ to it.
    pub(super) fn add_multipliers(&mut self, fixed: &FixedSteps, end: u64, t1: f64) {
        let (n, mut state) = (self.x1.len(), std::mem::take(&mut self.x1));
        state.reserve_exact(self.map.multiplier_count());
        state.resize(n + self.map.multiplier_count(), 0.0);
        if !self.looped_multipliers(fixed, end, &mut state) {
            let (before, after) = fixed.lengths_around(self.plan.t0, end);
            let (x, lambda) = state.split_at_mut(n);
            self.map.multipliers(
                Between { t: t1, before, after, x, memory: &self.memory },
                lambda,
                &mut self.work,
            );
        }
        self.x1 = state;
    }

    /// Write the samples up to t₁, which is `end` after the start; true if the interpolant was
    /// prepared for them.
    pub(super) fn sample_adaptive<O: Observer + ?Sized>(
        &mut self,
        adaptive: &AdaptiveSteps,
        h: f64,
        end: f64,
        observer: &mut O,
    ) -> Result<bool, Failure<O::Error>> {
        let mut prepared = false;
        while let Some(after) =
            adaptive.sample_after(self.state.next_sample).filter(|&after| after <= end)
        {
            let index = self.state.next_sample;
            let t = adaptive.samples[index];
            let sample = if after == end {
                &self.x1
            } else {
                if !prepared {
                    self.prepare_interpolant(h, adaptive.time(end));
                    prepared = true;
                }
                self.interpolate(h, (after - self.state.elapsed) / h, t)?;
                for (drift, &deviation) in self.state.drift.iter_mut().zip(&self.sample_deviations)
                {
                    drift.max = max_or_nan(drift.max, deviation);
                }
                &self.sample
            };
            let sampled =
                lend(&mut self.work, observer, |observer| observer.sample(index, t, sample));
            sampled.map_err(Failure::Observer)?;
            observer.accumulate(index, t, sample, &mut self.state.averages);
            if is_measured(index, adaptive.samples.len()) {
                let state = &mut *self.state;
                let at = (t, &sample[..], &state.target[..]);
                raise_terms(self.system, at, (&mut state.terms, &mut state.losses), &mut self.work);
            }
            self.state.next_sample += 1;
        }
        Ok(prepared)
    }

    /// Compute what the interpolant needs beyond the step itself.
    pub(super) fn prepare_interpolant(&mut self, h: f64, t1: f64) {
        let facts = self.map.facts();
        if let Some(place) = facts.end_field.filter(|_| !facts.ends_with_field) {
            // The field at the end of the step, at the treated state: it is the next first stage
            // too, so it costs nothing, and the treatment moves it by no more than the local error.
            if !self.field_known {
                self.system.field(t1, &self.x1, &mut self.field, &mut self.work);
                self.state.cost.field += 1;
                self.field_known = true;
            }
            self.stages[place].copy_from_slice(&self.field);
        }
        let (map, (step, _, mut workspace)) = (self.map, self.asked(h));
        map.prepare_interpolant(step, &mut workspace);
    }

    /// Put the treated dense output at `t`, the part θ of the step, into `sample`.
    pub(super) fn interpolate<E>(&mut self, h: f64, theta: f64, t: f64) -> Result<(), Failure<E>> {
        let (mut sample, map) = (std::mem::take(&mut self.sample), self.map);
        let (step, _, mut workspace) = self.asked(h);
        map.interpolate(step, theta, &mut sample, &mut workspace);
        self.sample = sample;
        self.treat_sample(h, t)
    }

    /// Treat the state in `sample`.
    pub(super) fn treat_sample<E>(&mut self, h: f64, t: f64) -> Result<(), Failure<E>> {
        if self.treatment.moves_the_state() {
            let (target, cost) = (&self.state.target, &mut self.state.cost);
            let (sample, values) = (&mut self.sample[..self.x1.len()], &mut self.sample_values);
            let at = ((t, h), &target[..], &self.scales);
            self.treatment
                .apply(
                    self.system,
                    Place::Within,
                    at,
                    sample,
                    values,
                    &mut self.sample_deviations,
                    &mut self.work,
                    cost,
                )
                .map_err(|unconverged| self.unconverged(t, unconverged))?;
        } else {
            let (values, deviations) = (&mut self.sample_values, &mut self.sample_deviations);
            let sample = &self.sample[..self.x1.len()];
            self.system.monitor(t, &self.state.target, sample, values, deviations, &mut self.work);
        }
        Ok(())
    }
}
