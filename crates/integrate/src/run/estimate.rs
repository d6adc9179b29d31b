//! Errors of a step's vectors, and the scales that follow from them.

use super::Engine;
use crate::controller::{Measured, Yardstick, squared_error};
use crate::cost::Cost;
use crate::failure::Failure;
use crate::plan::AdaptiveSteps;
use crate::plan::FixedSteps;
use crate::scales::{first_pending, lagged_errors, set_norms};
use crate::scheme::map::Estimate;

/// Part of S² that outlives a step for stiff fields: a component that passes 0 keeps its scale for
/// some steps.
const DECAY: f64 = 0.25;

/// Least part of the largest |x|² so far that counts as S² for stiff fields: what has decayed to less
/// than 10⁻⁸ of its size, as motions about a rest do, is not followed any further.
const DECAYED: f64 = 1e-16;

impl Engine<'_> {
    /// Make the first step once only for its error estimate: an estimate that lags behind has no
    /// step before it.
    pub(super) fn rehearse<E>(&mut self, fixed: &FixedSteps) -> Result<(), Failure<E>> {
        let Estimate::Lagged(next) = self.map.facts().equal_steps else { return Ok(()) };
        let (t0, cost) = (self.plan.t0, self.state.cost.clone());
        let (h, t1) = (fixed.length(t0, 0), fixed.time(t0, 1));
        self.first_stage()?;
        let count = self.system.vectors().count();
        let first = &self.stages[0];
        first_pending(next, first, None, self.state.scales.pending(count));
        self.memory.copy_from_slice(&self.state.memory);
        let (map, (step, x1, mut workspace)) = (self.map, self.asked(h));
        if map.fixed_step(step, x1, &mut workspace).is_ok() {
            self.measure_equal_step(fixed.h, h);
            // Any fault of the step shows when it is made in earnest.
            if self.treat::<E>(h, t1).is_ok() {
                self.system.field(t1, &self.x1, &mut self.field, &mut self.work);
                let sums = &self.scales.pending(count)[..];
                let after = Some((&self.field[..], sums));
                first_pending(next, &self.stages[0], after, self.state.scales.pending(count));
                self.state.cost.field += 1;
            }
        }
        self.state.cost = Cost { field: self.state.cost.field, ..cost };
        Ok(())
    }

    /// Compute the scales after an equal step from the state to x₁ of the length `h`; the steps
    /// before had the length `before`. Compiled steps compute the same bits.
    pub(super) fn measure_equal_step(&mut self, before: f64, h: f64) {
        if !self.kept.sizes {
            return;
        }
        let vectors = self.system.vectors();
        self.scales.carried.copy_from_slice(&self.state.scales.carried);
        vectors.squares(&self.x1, &mut self.sizes);
        if self.kept.weights {
            self.estimate_equal_step(before, h);
        }
        self.scales.advance(&self.sizes, &self.errors);
    }

    /// Compute the squared error of every vector: of this step, or of the one before if the
    /// estimate lags behind.
    fn estimate_equal_step(&mut self, before: f64, h: f64) {
        let vectors = self.system.vectors();
        let facts = self.map.facts();
        match facts.equal_steps {
            Estimate::None => {
                for (estimate, (x1, x)) in
                    self.estimate.iter_mut().zip(self.x1.iter().zip(&self.state.x))
                {
                    *estimate = x1 - x;
                }
                vectors.squares(&self.estimate, &mut self.errors);
            }
            Estimate::Known => {
                self.map.estimate(&mut self.stages, &mut self.estimate);
                let norms = self.state.scales.sizes(vectors.count());
                let yardstick = Yardstick { rtol: 1.0, vectors, norms, rounding: &[] };
                let measured = &mut Measured { sizes: &mut self.sizes, errors: &mut self.errors };
                squared_error(h, &self.stages[facts.errors.clone()], &self.x1, yardstick, measured);
            }
            Estimate::Lagged(next) => {
                let pending = self.scales.pending(vectors.count());
                let first = &self.stages[0];
                lagged_errors((vectors, before), next, first, pending, &mut self.errors);
                self.estimate.copy_from_slice(pending);
                self.map.estimate(&mut self.stages, &mut self.estimate);
                pending.copy_from_slice(&self.estimate);
            }
        }
    }

    /// Compute S² anew if an accepted step made a vector larger than it had been; in steps for stiff
    /// fields, from what is left of it: a concentration may decay by ten orders of magnitude.
    pub(super) fn renew_norms(&mut self, adaptive: &AdaptiveSteps) {
        let vectors = self.system.vectors();
        let count = vectors.count();
        if self.control().stiff {
            let (largest, norms) = (self.scales.sizes(count), &mut self.state.scales.norms);
            for ((size, largest), norm) in self.sizes.iter_mut().zip(largest).zip(&*norms) {
                *size = size.max(DECAY * norm).max(DECAYED * largest);
            }
            let absolute = adaptive.square_of_least_scale();
            set_norms(vectors, &self.sizes, &self.scales.masses, absolute, norms);
            return;
        }
        let (before, after) = (self.state.scales.sizes(count), self.scales.sizes(count));
        if before.iter().zip(after).any(|(before, after)| after > before) {
            self.scales.renew_norms(vectors, adaptive.square_of_least_scale());
            std::mem::swap(&mut self.state.scales.norms, &mut self.scales.norms);
        }
    }
}
