//! Detection of explicit steps that stability limits, not accuracy: h|λ| of the largest eigenvalue λ
//! of the field's Jacobian is then at the end of the scheme's real stability interval (HW IV.2). Only
//! a decay is reported, λ near the negative real axis: a fast oscillation either matters or has to be
//! averaged, and no method for stiff fields helps.
//!
//! A sample costs a few evaluations of the field, which are monitoring and no cost.

use super::Engine;
use crate::scales::Vectors;
use crate::vector::irregular;

/// Number of steps between the first samples; they are aligned with measurements of the rounding.
const STEPS_BETWEEN: u64 = 64;

/// Number of samples in every later doubling of the steps.
const LATER_SAMPLES: u64 = 128;

/// Number of steps in a row that stability has to limit: fewer are soon made.
const STEPS_IN_A_ROW: u64 = 256;

/// Largest number of products of the power iteration, and number of those after which an eigenvalue
/// that is far too small ends it.
const PRODUCTS: usize = 16;
const FIRST_PRODUCTS: usize = 4;

/// Part of the stability interval from which on h|λ| is at its end: the mean step is somewhat within
/// it, and the power iteration finds somewhat less than the largest eigenvalue. An error that the
/// tolerance bounds keeps h|λ| of a motion that matters below a half.
const NEAR: f64 = 0.7;

/// Least cosine between a direction and the opposite of its product with J.
const DECAYS: f64 = 0.9;

/// Length of a difference quotient in units of the state's scales.
const REACH: f64 = 1e-6;

/// Number of steps between samples at the step of this number.
fn spacing(step: u64) -> u64 {
    STEPS_BETWEEN << (step / (STEPS_BETWEEN * LATER_SAMPLES)).max(1).ilog2()
}

impl Engine<'_> {
    /// Sample, now and then, whether stability limits the steps of an explicit scheme.
    pub(super) fn find_stiffness(&mut self) {
        let (step, elapsed) = (self.state.step, self.state.elapsed);
        let stiffness = self.state.stiffness;
        let due = step > 0 && step.is_multiple_of(spacing(step));
        let Some(interval) = self.explicit_interval.filter(|_| due && stiffness.ratio == 0.0)
        else {
            return;
        };
        let steps = step - stiffness.step;
        let h = (elapsed - stiffness.elapsed) / steps as f64;
        let ratio = h * self.fastest_decay(NEAR * interval / h) / interval;
        let stiffness = &mut self.state.stiffness;
        if ratio < NEAR {
            (stiffness.streak, stiffness.since) = (0, self.state.t);
        } else {
            stiffness.streak += steps;
            if stiffness.streak >= STEPS_IN_A_ROW {
                stiffness.ratio = ratio;
            }
        }
        (stiffness.step, stiffness.elapsed) = (step, elapsed);
    }

    /// Rate of the fastest decay, 0 if the largest eigenvalue is none or is far below `wanted`.
    fn fastest_decay(&mut self, wanted: f64) -> f64 {
        let (system, state, work) = (self.system, &*self.state, &mut self.work);
        let vectors = system.vectors();
        let (t, x, norms) = (state.t, &state.x[..], &state.scales.norms[..]);
        // All are free between steps.
        let Some(direction) = self.stages.last_mut() else { return 0.0 };
        if !system.motion(t, x, &mut self.field, work) {
            return 0.0;
        }
        for vector in 0..vectors.count() {
            for i in vectors.components_of(vector) {
                direction[i] = norms[vector].sqrt() * irregular(i);
            }
        }
        let mut decay = 0.0;
        for product in 0..PRODUCTS {
            let size = inner(vectors, norms, direction, direction).sqrt();
            if !(size > 0.0 && size.is_finite()) {
                return 0.0;
            }
            direction.iter_mut().for_each(|v| *v /= size);
            for (x1, (x, v)) in self.x1.iter_mut().zip(x.iter().zip(&*direction)) {
                *x1 = REACH.mul_add(*v, *x);
            }
            system.motion(t, &self.x1, &mut self.sample, work);
            for (image, field) in self.sample.iter_mut().zip(&self.field) {
                *image = (*image - field) / REACH;
            }
            let along = inner(vectors, norms, direction, &self.sample);
            let rate = inner(vectors, norms, &self.sample, &self.sample).sqrt();
            decay = if along <= -DECAYS * rate { rate } else { 0.0 };
            if product + 1 == FIRST_PRODUCTS && (rate.is_nan() || rate < 0.25 * wanted) {
                return 0.0;
            }
            direction.copy_from_slice(&self.sample);
        }
        decay
    }
}

/// Inner product in which vectors are measured by their scales.
fn inner(vectors: &Vectors, norms: &[f64], u: &[f64], v: &[f64]) -> f64 {
    let of = |vector: usize| {
        let of = vectors.components_of(vector);
        let sum: f64 = of.clone().map(|i| u[i] * v[i]).sum();
        // A vector that has always been 0 takes no part.
        if norms[vector] > 0.0 { sum / norms[vector] } else { 0.0 }
    };
    (0..vectors.count()).map(of).sum()
}
