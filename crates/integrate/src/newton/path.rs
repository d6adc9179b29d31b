//! Path to the solution that belongs to a step, among all solutions of its equations: the one with
//! which a step of the length 0 begins.
//!
//! Newton's method may find any solution if the guess is not near one. An iteration is therefore
//! ended as soon as its updates do not contract, and the solution is followed from shorter steps to
//! that of the whole length.

use crate::vector::max_or_nan;

/// Largest ratio of an update of the unknowns to the one before: to the first one, and to any later
/// one. Where Kantorovich's condition ω|Δ₀| ≤ ½ ensures a solution near the guess, with the
/// relative change ω of the Jacobian, every update is at most half as long as the one before, and
/// the solution is within 2|Δ₀|; from ω|Δ₀| = 0.47 on the ratios are 0.44, 0.32, 0.21, …. Far from
/// all solutions of quadratic equations they are all ½. Lengths are measured in scales of the
/// equations, whose units are the unknowns'.
const CONTRACTION: f64 = 1.0 / 2.0;
const LATER_CONTRACTION: f64 = 1.0 / 3.0;

/// Part of the largest scale below which an update is the rounding of forces that cancel, and need
/// not contract. (Scales of several units are compared here: an update that leads far away is not
/// that small in all of them.)
const ROUNDING_UPDATE: f64 = 1e-10;

/// First part of a step to which its solution is followed, and largest number of parts that are
/// tried. If the solution ends before the step does, the parts are halved to rounding.
const FIRST_PART: f64 = 0.25;
const MOST_PARTS: u32 = 64;

/// Monitor of the contraction of an iteration's updates.
#[derive(Clone, Copy, Debug)]
pub struct Contraction {
    monitored: bool,
    allowed: f64,
    updates: u32,
}

impl Contraction {
    /// Monitor before the first update; an iteration that is not `monitored` is never lost.
    pub fn new(monitored: bool) -> Contraction {
        Contraction { monitored, allowed: f64::INFINITY, updates: 0 }
    }

    /// Record an update; true if it is too long after those before.
    pub fn is_lost(&mut self, update: &[f64], sizes: &[f64]) -> bool {
        if !self.monitored {
            return false;
        }
        let length = length(update, sizes);
        let lost = length > self.allowed;
        self.updates += 1;
        self.allowed = length * if self.updates == 1 { CONTRACTION } else { LATER_CONTRACTION };
        lost
    }
}

/// Length of an update of the unknowns in scales of their equations; 0 if it is rounding.
fn length(step: &[f64], sizes: &[f64]) -> f64 {
    let largest = |v: &[f64]| v.iter().fold(0.0, |largest: f64, x| max_or_nan(largest, x.abs()));
    if largest(step) <= ROUNDING_UPDATE * largest(sizes) {
        return 0.0;
    }
    let relative = step
        .iter()
        .zip(sizes)
        .filter(|(_, size)| **size > 0.0)
        .map(|(step, size)| step.abs() / size);
    relative.fold(0.0, max_or_nan)
}

/// Start of the iteration for a part of a step: the part's own guess, moved in proportion to the
/// distance of the previous part's solution from its guess.
#[derive(Clone, Debug)]
pub struct Prediction {
    growth: f64,
    moved: Vec<f64>,
    guess: Vec<f64>,
}

impl Prediction {
    /// Move the unknowns from their guess to the start of the iteration.
    pub fn predict(&mut self, unknowns: &mut [f64]) {
        self.guess.copy_from_slice(unknowns);
        for (unknown, moved) in unknowns.iter_mut().zip(&self.moved) {
            *unknown = moved.mul_add(self.growth, *unknown);
        }
    }

    /// Record a solution.
    pub fn solved(&mut self, unknowns: &[f64]) {
        for (moved, (unknown, guess)) in self.moved.iter_mut().zip(unknowns.iter().zip(&self.guess))
        {
            *moved = unknown - guess;
        }
    }
}

/// Follow the solution of so many equations through parts of a step to the whole, the part 1.
/// `attempt` solves for a part, with the prediction. (It allocates: steps that need this are few.)
///
/// # Errors
/// The error of the last attempt, if the solution ends before the step does.
pub fn follow<T, E>(
    unknowns: usize,
    mut attempt: impl FnMut(f64, &mut Prediction) -> Result<T, E>,
) -> Result<T, E> {
    let mut prediction =
        Prediction { growth: 0.0, moved: vec![0.0; unknowns], guess: vec![0.0; unknowns] };
    let (mut gone, mut part, mut tries) = (0.0, FIRST_PART, 0);
    loop {
        let target: f64 = 1f64.min(gone + part);
        prediction.growth = if gone > 0.0 { target / gone } else { 0.0 };
        tries += 1;
        match attempt(target, &mut prediction) {
            Ok(solved) if target == 1.0 => return Ok(solved),
            Ok(_) => (gone, part) = (target, 2.0 * part),
            Err(error) if tries >= MOST_PARTS => return Err(error),
            Err(_) => part *= 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y = h (1 + y²) near 0: (1 − √(1 − 4h²))/(2h), up to h = ½. Newton's method from h, ended
    /// where it does not contract.
    fn solve(h: f64, y: &mut f64) -> Result<f64, ()> {
        let mut contraction = Contraction::new(true);
        for _ in 0..50 {
            let update = (*y - h * (1.0 + *y * *y)) / (1.0 - 2.0 * h * *y);
            *y -= update;
            if update.abs() < 1e-12 {
                return Ok(*y);
            }
            if contraction.is_lost(&[update], &[1.0]) {
                return Err(());
            }
        }
        Err(())
    }

    fn followed(length: f64) -> Result<f64, ()> {
        follow(1, |part, prediction| {
            let mut y = [part * length];
            prediction.predict(&mut y);
            let solution = solve(part * length, &mut y[0])?;
            prediction.solved(&y);
            Ok(solution)
        })
    }

    #[test]
    fn a_solution_is_followed_to_where_it_ends() {
        for h in [0.1f64, 0.4, 0.49, 0.499] {
            let exact = (1.0 - (1.0 - 4.0 * h * h).sqrt()) / (2.0 * h);
            assert!((followed(h).unwrap() - exact).abs() < 1e-10, "{h}");
        }
        assert!(followed(0.501).is_err());
        // From a start beyond the turning point the iteration finds the other solution, unless it
        // is ended.
        assert!(solve(0.499, &mut 0.499).is_err());
    }
}
