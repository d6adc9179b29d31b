//! Attempts at an adaptive step: the first stage, the first step's length, and attempts until x₁ is
//! accepted.

use super::Engine;
use super::march::Wanted;
use crate::controller::pi::{Controller, ControllerMemory, JudgedAttempt};
use crate::controller::trial::{Trial, reaches_end, shortest_resolved, trial};
use crate::controller::{Measured, Yardstick, squared_error, start};
use crate::failure::Failure;
use crate::plan::AdaptiveSteps;
use crate::scales::old_norm;
use crate::scheme::map::{StepFrom, Workspace};
use crate::state::{Singularity, StepState};
use crate::system::all_finite;
use holonome_arithmetic::square;

/// Number of rejections in a row after which vectors that have always been 0 do not count: the
/// relative error of one that starts like a high power of the time is the same for every step.
pub const REJECTIONS_OF_NEW: u32 = 12;

/// Largest part of the time since the start within which the rounding of t blurs a motion that has
/// begun.
const MOST_BLURRED: f64 = 1e-4;

/// An accepted step.
pub(super) struct Accepted {
    pub h: f64,
    /// Time since the start at its end.
    pub end: f64,
}

/// Longest time within which the rounding of t blurs a motion, so long after the start.
fn blurred(elapsed: f64) -> f64 {
    MOST_BLURRED * elapsed
}

impl Engine<'_> {
    /// Put the field at the state into the first stage.
    pub(super) fn first_stage<E>(&mut self) -> Result<(), Failure<E>> {
        let state = &mut *self.state;
        if !state.first_stage.known {
            state.first_stage.value.resize(state.x.len(), 0.0);
            self.system.field(state.t, &state.x, &mut state.first_stage.value, &mut self.work);
            state.first_stage.known = true;
            state.cost.field += 1;
        }
        self.stages[0].copy_from_slice(&state.first_stage.value);
        if all_finite(&state.first_stage.value) {
            Ok(())
        } else {
            let (t, step) = (state.t, state.step);
            // Forces of constraint that are nearly undetermined have no bound.
            Err(match self.near_singularity() {
                Some(Singularity { row, pivot, kind, .. }) => {
                    let constraint = self.system.invariants().row_name(row).to_string();
                    Failure::Dependent { t, constraint, pivot, kind }
                }
                None => Failure::NonFinite { t, step, quantity: "the field".into() },
            })
        }
    }

    /// Choose the first step. Costs one evaluation beside the first stage.
    pub(super) fn choose_first_step(&mut self, adaptive: &AdaptiveSteps) -> f64 {
        let (order, rtol, span) = (self.control().order, adaptive.rtol, adaptive.span());
        let (state, vectors) = (&mut *self.state, self.system.vectors());
        let (first, x, norms) = (&state.first_stage.value, &state.x, &state.scales.norms);
        let probe = start::probe(x, first, norms, vectors, span);
        for i in 0..x.len() {
            self.x1[i] = probe.length.mul_add(first[i], x[i]);
        }
        self.system.field(state.t + probe.length, &self.x1, &mut self.field, &mut self.work);
        state.cost.field += 1;
        for i in 0..x.len() {
            self.field[i] -= first[i];
        }
        let first = start::first_step(
            probe.length,
            (x, first, &self.field),
            (norms, vectors),
            (order, rtol, span),
        );
        if probe.by_span || first.by_span {
            // A run to a later end would have begun with another step, and makes this choice again.
            state.cost.field -= 1;
            state.keep_before_end();
            state.cost.field += 1;
        }
        first.length
    }

    /// Attempt steps until one is accepted, none of which goes beyond `stop`, counted from the start.
    pub(super) fn accepted_attempt<E>(
        &mut self,
        adaptive: &AdaptiveSteps,
        controller: &Controller,
        Wanted { mut h, mut rejections }: Wanted,
        stop: f64,
    ) -> Result<Accepted, Failure<E>> {
        let (t, elapsed, span) = (self.state.t, self.state.elapsed, adaptive.span());
        if rejections > REJECTIONS_OF_NEW {
            self.leave_new_vectors_aside(0.0);
        }
        let finds_length = self.control().finds_length;
        let (mut first, mut blur, mut scaled) = (true, 0.0, false);
        loop {
            self.check_limit()?;
            if rejections == REJECTIONS_OF_NEW {
                self.leave_new_vectors_aside(blur);
            }
            let norms = if rejections < REJECTIONS_OF_NEW { Norms::Own } else { Norms::OfOld };
            h = self.length(h, norms);
            let reach = if finds_length { h } else { self.state.controller.h };
            if std::mem::take(&mut first) && reaches_end(span, elapsed, reach) {
                self.state.keep_before_end();
            }
            let limits = (stop.min(span), adaptive.shortest_step);
            let attempt = trial(limits, elapsed, h, f64::from(rejections));
            if !attempt.resolves {
                if rejections < REJECTIONS_OF_NEW && self.has_new_vectors() {
                    // One that is pushed all at once has the same relative error in every step that
                    // passes the push.
                    h = adaptive.shortest_step.max(2.0 * shortest_resolved(elapsed));
                    rejections = REJECTIONS_OF_NEW;
                    self.state.scales.begun = elapsed;
                    continue;
                }
                let unsharp = (shortest_resolved(elapsed) / adaptive.rtol).min(blurred(elapsed));
                if blur == 0.0 && elapsed - self.state.scales.begun < unsharp {
                    // The force that pushes it may grow from 0, and is the rounding of t at first.
                    self.first_stage()?;
                    (h, blur) = (adaptive.shortest_step.max(unsharp), unsharp);
                    rejections = REJECTIONS_OF_NEW;
                    continue;
                }
                // What is rounding does not converge to a part of itself.
                if !std::mem::replace(&mut scaled, true) && self.give_scales(blurred(elapsed)) {
                    (h, rejections) = (blurred(elapsed), 0);
                    continue;
                }
                return Err(Failure::StepCollapsed { t, h, rejections, culprit: self.culprit(h) });
            }
            let Trial { length, end, .. } = attempt;
            let square = self.attempt(length, norms);
            if square.is_nan() && rejections == 0 {
                // Either the step is far too long, or the field is undefined where it starts.
                self.first_stage()?;
            }
            let (is_first, accepted) = (rejections == 0, square <= 1.0);
            let ControllerMemory { h: before, last_error } = self.state.controller;
            let judged = JudgedAttempt { length, square, is_first, accepted };
            let [next, last_error] = controller.next([before, last_error], judged);
            if accepted {
                self.controller = ControllerMemory { h: next, last_error };
                self.take_end_field();
                return Ok(Accepted { h: length, end });
            }
            rejections += 1;
            self.state.cost.rejected += 1;
            h = next;
        }
    }

    /// True if a vector has always been 0.
    fn has_new_vectors(&self) -> bool {
        self.state.scales.norms[..self.system.vectors().sized()].contains(&0.0)
    }

    /// Compute S² without vectors that have always been 0, or reach their size in less than the
    /// time `blur`.
    fn leave_new_vectors_aside(&mut self, blur: f64) {
        let (vectors, state) = (self.system.vectors(), &*self.state);
        let (norms, floors) = state.scales.norms.split_at(vectors.count());
        self.norms.clear();
        self.norms.extend(norms.iter().enumerate().map(|(vector, &norm)| {
            let is_blurred = blur > 0.0 && {
                let rate = &state.first_stage.value[vectors.components_of(vector)];
                blur * blur * square(rate) > norm
            };
            old_norm(if is_blurred { 0.0 } else { norm })
        }));
        self.norms.extend(floors);
    }

    /// Make a step of the length `h`, which is no longer than an accepted one.
    pub(super) fn make_attempt(&mut self, h: f64) {
        self.length(h, Norms::Own);
        self.attempt(h, Norms::Own);
        self.take_end_field();
    }

    /// Keep the field at the end of an attempt, if the attempt knows it and x₁ stays.
    fn take_end_field(&mut self) {
        let facts = self.map.facts();
        let end_field = facts.end_field.filter(|_| facts.ends_with_field);
        let end_field = end_field.filter(|_| !self.treatment.moves_the_state());
        self.field_known = end_field.is_some();
        if let Some(place) = end_field {
            self.field.copy_from_slice(&self.stages[place]);
        }
    }

    /// Attempt a step of the length `h` only for the errors of its vectors.
    pub(super) fn measure_attempt(&mut self, h: f64) {
        let spent = self.state.cost.field;
        self.length(h, Norms::Own);
        self.attempt(h, Norms::Own);
        self.state.cost.field = spent;
    }

    /// Length of the next step, at most h.
    fn length(&mut self, h: f64, norms: Norms) -> f64 {
        let StepState { t, x, cost, memory, scales, .. } = &mut *self.state;
        let norms = match norms {
            Norms::Own => &scales.norms,
            Norms::OfOld => &self.norms,
        };
        let rounding = &scales.rounding;
        let yardstick =
            Yardstick { rtol: self.tolerance, vectors: self.system.vectors(), norms, rounding };
        let workspace =
            &mut Workspace { kept: &mut self.stages, memory, cost, work: &mut self.work };
        self.map.length(StepFrom { t: *t, h, x }, yardstick, workspace)
    }

    /// Make one attempt. Returns the square of its error in units of the tolerance, NaN if x₁ is not
    /// finite.
    fn attempt(&mut self, h: f64, norms: Norms) -> f64 {
        let (map, vectors) = (self.map, self.system.vectors());
        self.memory.copy_from_slice(&self.state.memory);
        let (step, x1, mut workspace) = self.asked(h);
        let allowance = map.attempt(step, x1, &mut workspace);
        let norms = match norms {
            Norms::Own => &self.state.scales.norms,
            Norms::OfOld => &self.norms,
        };
        let measured = &mut Measured { sizes: &mut self.sizes, errors: &mut self.errors };
        let rounding = &self.state.scales.rounding;
        let yardstick = Yardstick { rtol: self.tolerance, vectors, norms, rounding };
        let errors = &self.stages[map.facts().errors.clone()];
        let square = squared_error(h, errors, &self.x1, yardstick, measured);
        let square = allowance.apply(square, measured);
        if all_finite(&self.x1) { square } else { f64::NAN }
    }
}

/// Scales with which an attempt is measured.
#[derive(Clone, Copy)]
enum Norms {
    /// Scales of the state.
    Own,
    /// Scales of the vectors that have been other than 0.
    OfOld,
}
