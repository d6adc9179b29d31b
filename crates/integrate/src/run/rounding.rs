//! The rounding of the field. An error that comes from it is proportional to the step, and no
//! tolerance is met by shorter steps.

use super::Engine;
use crate::vector::irregular;
use holonome_arithmetic::square;

/// Number of steps between two measurements, each of which costs two fields.
const STEPS_BETWEEN: u64 = 64;

/// Ratio of the rounding that counts to a change of the field that a rounding of the state makes.
/// Schemes add up many rates with coefficients far larger than 1, and the error has to stay so far
/// below this that steps still grow.
const ROUNDINGS: f64 = 256.0;

/// Square of the largest part of a rate that counts as its rounding: with the factor above, no
/// error beyond a tenth of a step's change passes for one. Near a singular configuration, forces
/// are rounding altogether.
const LARGEST_PART: f64 = 1e-7;

/// Part of the square of a rounding that outlives a measurement: one that happens to be small is
/// not believed at once.
const MEMORY: f64 = 0.25;

/// Number of steps from step `step` to the next measurement.
pub(super) fn steps_to_rounding(step: u64) -> u64 {
    STEPS_BETWEEN - step % STEPS_BETWEEN
}

impl Engine<'_> {
    /// Measure, now and then, how much every vector's rate changes if the state is moved by a
    /// rounding.
    pub(super) fn find_rounding(&mut self) {
        let due = self.state.step > 0 && self.state.step.is_multiple_of(STEPS_BETWEEN);
        if !due || self.control().stiff {
            return;
        }
        let (system, state, work) = (self.system, &mut *self.state, &mut self.work);
        let vectors = system.vectors();
        if !system.motion(state.t, &state.x, &mut self.field, work) {
            return;
        }
        vectors.squares(&state.x, &mut self.sizes);
        // A vector that was larger before is rounded as it is now: a velocity that has grown as a
        // height vanished would change beyond all measure if that height moved by a rounding of
        // what it was.
        for (vector, size) in self.sizes.iter().map(|square| square.sqrt()).enumerate() {
            for i in vectors.components_of(vector) {
                self.x1[i] = state.x[i] + f64::EPSILON * size * irregular(i);
            }
        }
        system.motion(state.t, &self.x1, &mut self.sample, work);
        for (moved, field) in self.sample.iter_mut().zip(&self.field) {
            *moved -= field;
        }
        vectors.squares(&self.sample, &mut self.sizes);
        for (vector, (known, &found)) in
            state.scales.rounding.iter_mut().zip(&self.sizes).enumerate()
        {
            let rate = square(&self.field[vectors.components_of(vector)]);
            // A change that compares with the rate is that of a jump, and a field that ends near
            // the state has no rounding there.
            let found =
                if found <= LARGEST_PART * rate { ROUNDINGS * ROUNDINGS * found } else { 0.0 };
            *known = (MEMORY * *known).max(found);
        }
    }
}
