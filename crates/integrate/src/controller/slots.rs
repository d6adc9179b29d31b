//! Slots of the numbers that adaptive steps in a loop of their own carry from one attempt to the
//! next.
//!
//! A map or an ensemble may make many attempts in one call, with acceptance and step-size control
//! in it. Both sides know the loop's state by these slots; with several lanes number k of lane l
//! stands at `k * lanes + l`.
//!
//! An ordinary attempt is made as in [`run`](crate::run): x₁ is treated and becomes x, or the step
//! shrinks. Any other leaves everything but the status as it was, and a state whose status is set
//! stays as it is.

use crate::scales::Vectors;
use std::ops::Range;

/// Status of a loop: the next attempt is due, or the reason why it was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The next attempt is to be made.
    Going,
    /// There is nothing to do.
    Idle,
    /// The end of the run is reached.
    Arrived,
    /// The next attempt would reach or pass the pause, its step is too short, or an event may lie in
    /// it.
    Held,
    /// The error of the first attempt at a step is not a number: the field may be undefined where
    /// it starts.
    Undefined,
    /// The result of an accepted step is not finite.
    Broken,
    /// The treatment of an accepted step's result did not converge within the iterations of the
    /// loop.
    Unsettled,
}

impl Status {
    /// All statuses, by their numbers.
    pub const ALL: [Status; 7] = [
        Status::Going,
        Status::Idle,
        Status::Arrived,
        Status::Held,
        Status::Undefined,
        Status::Broken,
        Status::Unsettled,
    ];

    /// Number of the status.
    pub fn number(self) -> f64 {
        f64::from(self as u8)
    }

    /// Status of this number.
    pub fn of(number: f64) -> Status {
        Status::ALL[number as usize]
    }
}

/// Slots of the numbers of a loop of attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// The state x.
    pub x: Range<usize>,
    /// The time.
    pub t: usize,
    /// The time since the start.
    pub elapsed: usize,
    /// Step wanted next, before its limit.
    pub h: usize,
    /// Step wanted after the last accepted one.
    pub h_accepted: usize,
    /// Last accepted error, or the number that a controller carries in its place.
    pub last_error: usize,
    /// Rejections of this step.
    pub rejections: usize,
    /// X(t, x); empty unless the loop carries it.
    pub first: Range<usize>,
    /// Carried scales: σ², w².
    pub carried: Range<usize>,
    /// S² of the vectors and floors of momenta, as in `Scales::norms`.
    pub norms: Range<usize>,
    /// The largest deviation of every group at accepted states, or its square.
    pub largest: Range<usize>,
    /// Largest innovation of a correction.
    pub innovation: usize,
    /// Time at which that innovation was reached.
    pub innovation_at: usize,
    /// Accepted steps.
    pub steps: usize,
    /// Rejected attempts.
    pub rejected: usize,
    /// The [`Status`].
    pub status: usize,
    /// Time since the start that no step may reach or pass; the loop does not change it.
    pub pause: usize,
    /// Masses of the vectors; the loop does not change them.
    pub masses: Range<usize>,
    /// Squares of the rounding of the vectors' rates; the loop does not change them.
    pub rounding: Range<usize>,
    /// The [side](crate::events::side_kept) on which the function of every event is; the loop does
    /// not change it, and holds where an attempt may leave one.
    pub sides: Range<usize>,
    /// Further numbers that steps carry; the formulas of a loop do not change them.
    pub memory: Range<usize>,
}

impl Slots {
    /// Slots for a state of these vectors with `groups` groups of invariants and `sides`
    /// functions of events. `first` is true if the first stage is carried, `weights` if w² are.
    pub fn new(
        (first, weights): (bool, bool),
        state: &Vectors,
        (groups, sides): (usize, usize),
    ) -> Slots {
        let (n, vectors) = (state.dim(), state.count());
        let mut end = 0;
        let mut take = |len: usize| {
            end += len;
            end - len..end
        };
        let x = take(n);
        let [t, elapsed, h, h_accepted, last_error, rejections] = [(); 6].map(|()| take(1).start);
        let first = take(if first { n } else { 0 });
        let carried = take(if weights { 2 * vectors } else { vectors });
        let (norms, largest) = (take(state.norms()), take(groups));
        let [innovation, innovation_at, steps, rejected, status, pause] =
            [(); 6].map(|()| take(1).start);
        let (masses, rounding, sides) = (take(vectors), take(vectors), take(sides));
        let memory = take(0);
        Slots {
            x,
            t,
            elapsed,
            h,
            h_accepted,
            last_error,
            rejections,
            first,
            carried,
            norms,
            largest,
            innovation,
            innovation_at,
            steps,
            rejected,
            status,
            pause,
            masses,
            rounding,
            sides,
            memory,
        }
    }

    /// These slots with so many numbers of memory.
    pub fn with_memory(self, len: usize) -> Slots {
        Slots { memory: self.memory.start..self.memory.start + len, ..self }
    }

    /// Number of slots that the loop changes: the first ones.
    pub fn changed(&self) -> usize {
        self.pause
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.memory.end
    }
}

/// Places of the numbers from which a sample within an accepted attempt is found: the slots before
/// it, then these.
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    /// Treated state x₁ after the attempt.
    pub x1: Range<usize>,
    /// Carried scales after it.
    pub carried: Range<usize>,
    /// Memory after it.
    pub memory: Range<usize>,
    /// Time of the sample since the start.
    pub elapsed: usize,
}

impl Within {
    /// Places behind these slots.
    pub fn of(slots: &Slots) -> Within {
        let x1 = slots.count()..slots.count() + slots.x.len();
        let carried = x1.end..x1.end + slots.carried.len();
        let memory = carried.end..carried.end + slots.memory.len();
        Within { elapsed: memory.end, x1, carried, memory }
    }

    /// Number of all numbers, the slots included.
    pub fn count(&self) -> usize {
        self.elapsed + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scales::Role;

    #[test]
    fn slots_tile_the_state() {
        let mut vectors = Vectors::default();
        vectors.push(Role::Position, 1, 3);
        vectors.push(Role::Momentum, 1, 3);
        let slots = Slots::new((true, true), &vectors, (3, 4));
        assert_eq!(slots.norms.len(), 3, "the momentum has a floor");
        assert_eq!((slots.t, slots.first.clone(), slots.carried.len()), (6, 12..18, 4));
        assert_eq!(
            (slots.changed(), slots.count()),
            (slots.status + 1, slots.pause + 1 + 2 * 2 + 4)
        );
        for status in Status::ALL {
            assert_eq!(Status::of(status.number()), status);
        }
    }
}
