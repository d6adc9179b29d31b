//! Scales of the vectors, as steps take them that remember how large these are: what rests, and is
//! rounding, is not iterated to a part of itself.

use super::Engine;
use crate::state::StepState;

/// Number of steps between two times at which a step takes the scales of the vectors. They are
/// taken at the same steps however a run is interrupted.
pub const STEPS_BETWEEN_SCALES: u64 = 16;

/// Number of steps from step `step` to the next one at which scales are taken.
pub(super) fn steps_to_scales(step: u64) -> u64 {
    STEPS_BETWEEN_SCALES - step % STEPS_BETWEEN_SCALES
}

impl Engine<'_> {
    /// Give the scales of the vectors to the next steps, of about the length `h`; false if they take
    /// none.
    pub(super) fn give_scales(&mut self, h: f64) -> bool {
        let StepState { scales, memory, .. } = &mut *self.state;
        self.map.takes_scales() && h > 0.0 && self.map.take_scales(&scales.norms, h, memory)
    }
}
