//! Scales of the vectors, as steps take them that remember how large these are: what rests, and is
//! rounding, is not iterated to a part of itself.

use super::Engine;
use crate::state::StepState;

/// Number of steps after which a step takes scales first, and then after 2, 4, … times as many:
/// sizes grow most while a motion begins.
const FIRST_SCALES: u64 = 16;

/// Largest number of steps between two times at which a step takes the scales of the vectors. Each
/// ends a block of steps, which costs as much as a few of them.
const MOST_BETWEEN_SCALES: u64 = 64;

/// True if the step after step `step` takes the scales of the vectors. The same steps do, however
/// a run is interrupted.
pub fn takes_scales_after(step: u64) -> bool {
    step == 0 || steps_to_scales(step - 1) == 1
}

/// Number of steps from step `step` to the next one after which scales are taken.
pub(super) fn steps_to_scales(step: u64) -> u64 {
    let between = (step + 1).next_power_of_two().clamp(FIRST_SCALES, MOST_BETWEEN_SCALES);
    between - step % between
}

impl Engine<'_> {
    /// Give the scales of the vectors to the next steps, of about the length `h`; false if they take
    /// none.
    pub(super) fn give_scales(&mut self, h: f64) -> bool {
        let StepState { scales, memory, .. } = &mut *self.state;
        self.map.takes_scales() && h > 0.0 && self.map.take_scales(&scales.norms, h, memory)
    }
}
