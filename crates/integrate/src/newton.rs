//! Newton's method for the equations of a step, with their exact Jacobian.

pub mod path;

use crate::phase_space::Equation;
use crate::vector::max_or_nan;
use holonome_linear::lu::{Elimination, Pivots};
use path::Contraction;
use std::ops::Range;

/// The equations of a step, apart from their numbers.
#[derive(Clone, Debug)]
pub struct System {
    /// What each of them says.
    pub rows: Vec<Equation>,
    /// Whether they are linear: one iteration solves them.
    pub linear: bool,
    /// How their matrix is solved.
    pub elimination: Elimination,
}

/// Why an iteration ended without a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsolved {
    /// Iterations done.
    pub iterations: u32,
    /// The largest residual over the size of what cancels in it; NaN where something is not finite.
    pub residual: f64,
    /// The equation of that residual.
    pub equation: Equation,
    /// As in [`Solved`].
    pub strayed: bool,
    /// Whether the iteration was ended because it leads away from the guess: what it converged to would be any solution.
    pub far: bool,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// Iterations: evaluations of residual and Jacobian, and systems solved.
    pub iterations: u32,
    /// The pivots of the last matrix.
    pub pivots: Pivots,
    /// Whether the determinant changed its sign, or a great deal, between two iterations: the solution may not be the one
    /// near the guess, which may not exist. (Where Kantorovich's condition ensures that it does, the derivative of one
    /// equation keeps at least half of its value in an iteration.)
    pub strayed: bool,
}

/// How much smaller or larger the smallest pivot may become in an iteration.
const GREAT_DEAL: f64 = 4.0;

/// Newton's method doubles the digits each time where it converges at all, so this many do not fail for lack of them.
pub const MOST_ITERATIONS: u32 = 50;

/// A residual below this, relative to what cancels in it, is at round-off after one more iteration: the error is squared,
/// and multiplied by a curvature that is not far from 1 in these units.
pub const CLOSE: f64 = 1e-9;

impl System {
    /// Whether an iteration that leads away from the guess is ended: where the unknowns are of the kind of their equations,
    /// so that updates have a size, and the guess is one.
    pub fn is_local(&self) -> bool {
        !self.linear && self.rows.iter().all(Equation::is_stage)
    }

    /// Length of the scratch that [`System::solve`] needs.
    pub fn work_len(&self) -> usize {
        self.rows.len() + self.elimination.work_len()
    }

    /// Solves for the unknowns, which are the last of `registers`, in place; `sizes` says where among these stands what
    /// cancels in each residual. `evaluate` gives the residuals and then the entries of their Jacobian for the registers;
    /// `tolerance` loosens round-off.
    ///
    /// # Errors
    /// Where the iteration does not converge, or leads away from the guess, or something is not finite; the unknowns are of
    /// no use then.
    pub fn solve(
        &self,
        registers: &mut [f64],
        sizes: Range<usize>,
        tolerance: f64,
        outputs: &mut [f64],
        work: &mut [f64],
        mut evaluate: impl FnMut(&[f64], &mut [f64]),
    ) -> Result<Solved, Unsolved> {
        let m = self.rows.len();
        let first = registers.len() - m;
        let (step, work) = work.split_at_mut(m);
        let enough = tolerance.max(CLOSE);
        let (mut before, mut strayed): (Option<Pivots>, bool) = (None, false);
        let mut contraction = Contraction::new(self.is_local());
        for iterations in 1..=MOST_ITERATIONS {
            evaluate(registers, outputs);
            let (residuals, jacobian) = outputs.split_at(m);
            if iterations == 1 {
                fill_sizes(residuals, &mut registers[sizes.clone()]);
            }
            let (residual, row) = worst(residuals, &registers[sizes.clone()]);
            let unsolved = Unsolved { iterations, residual, equation: self.rows[row], strayed, far: false };
            if residual.is_nan() {
                return Err(unsolved);
            }
            step.copy_from_slice(residuals);
            let pivots = self.elimination.solve(jacobian, &registers[sizes.clone()], step, work);
            if let Some(before) = before.replace(pivots) {
                let ratio = pivots.smallest / before.smallest;
                let comparable = pivots.exchanges == before.exchanges;
                let leapt = comparable && !(1.0 / GREAT_DEAL..=GREAT_DEAL).contains(&ratio);
                strayed |= pivots.negative != before.negative || leapt;
            }
            for (unknown, step) in registers[first..].iter_mut().zip(&*step) {
                *unknown -= step;
            }
            if self.linear || residual <= enough || is_rounding(iterations, step, &registers[first..]) {
                return match step.iter().all(|step| step.is_finite()) {
                    true => Ok(Solved { iterations, pivots, strayed }),
                    false => Err(unsolved),
                };
            }
            if iterations == MOST_ITERATIONS {
                return Err(unsolved);
            }
            if contraction.is_lost(step, &registers[sizes.clone()]) {
                return Err(Unsolved { far: true, ..unsolved });
            }
        }
        unreachable!("the loop returns in its last turn")
    }
}

/// Gives rows in which nothing cancels, as those of momenta at rest, the size of what they lack before the first iteration.
pub fn fill_sizes(residuals: &[f64], sizes: &mut [f64]) {
    if sizes.contains(&0.0) {
        let rows = || residuals.iter().zip(&*sizes).filter(|(_, size)| **size == 0.0);
        let largest = rows().fold(0.0, |largest, (residual, _)| max_or_nan(largest, residual.abs()));
        sizes.iter_mut().filter(|size| **size == 0.0).for_each(|size| *size = largest);
    }
}

/// Whether the step of a late iteration changes its unknowns by no more than their rounding: what is left of the
/// residuals of a system at rest is the rounding of forces that cancel, however small their own size. (Unknowns of several
/// units are compared here, so this is no test for an iteration that still converges.)
pub fn is_rounding(iterations: u32, step: &[f64], unknowns: &[f64]) -> bool {
    const LATE: u32 = 6;
    const ROUNDINGS: f64 = 4.0 * f64::EPSILON;
    if iterations < LATE {
        return false;
    }
    let largest = |v: &[f64]| v.iter().fold(0.0, |largest: f64, x| max_or_nan(largest, x.abs()));
    largest(step) <= ROUNDINGS * largest(unknowns)
}

/// The largest |r_i|/size_i, and its row; NaN before all else. Without a size anything is off by its own.
pub fn worst(residuals: &[f64], size: &[f64]) -> (f64, usize) {
    let mut worst = (0.0, 0);
    for (row, (residual, size)) in residuals.iter().zip(size).enumerate() {
        let relative = match *size == 0.0 && !residual.is_nan() {
            true => f64::from(u8::from(*residual != 0.0)),
            false => residual.abs() / size,
        };
        if relative.is_nan() {
            return (f64::NAN, row);
        }
        if relative > worst.0 {
            worst = (relative, row);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(linear: bool) -> System {
        let elimination = Elimination::new(2, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
        System { rows: vec![Equation::Constraint(0), Equation::Hidden(4)], linear, elimination }
    }

    /// Registers with these unknowns; the sizes stand before them.
    fn registers(sizes: [f64; 2], unknowns: [f64; 2]) -> [f64; 4] {
        [sizes[0], sizes[1], unknowns[0], unknowns[1]]
    }

    /// x² + y² = 5, x y = 2: (1, 2) and (2, 1).
    fn circle_and_hyperbola(registers: &[f64], out: &mut [f64]) {
        let u = &registers[2..];
        out[0] = u[0] * u[0] + u[1] * u[1] - 5.0;
        out[1] = u[0] * u[1] - 2.0;
        out[2..].copy_from_slice(&[2.0 * u[0], 2.0 * u[1], u[1], u[0]]);
    }

    fn solve(
        system: &System,
        registers: &mut [f64; 4],
        tolerance: f64,
        evaluate: impl FnMut(&[f64], &mut [f64]),
    ) -> Result<Solved, Unsolved> {
        let mut work = vec![0.0; system.work_len()];
        system.solve(registers, 0..2, tolerance, &mut [0.0; 6], &mut work, evaluate)
    }

    #[test]
    fn converges_to_round_off() {
        let system = system(false);
        let mut u = registers([10.0, 4.0], [0.5, 2.5]);
        let solved = solve(&system, &mut u, 0.0, circle_and_hyperbola).unwrap();
        // The condition number of the root is about 3, and each residual rounds a few times.
        assert!((u[2] - 1.0).abs() < 1e-15 && (u[3] - 2.0).abs() < 2e-15, "{u:?}");
        assert!((4..8).contains(&solved.iterations), "{solved:?}");
        // A loose tolerance stops early.
        let mut u = registers([10.0, 4.0], [0.5, 2.5]);
        let loose = solve(&system, &mut u, 0.1, circle_and_hyperbola).unwrap();
        assert!(loose.iterations < solved.iterations && (u[2] - 1.0).abs() > 1e-9);
    }

    #[test]
    fn failures_say_which_equation() {
        let system = system(false);
        // x² + y² = −5 has no solution.
        let nowhere = |u: &[f64], out: &mut [f64]| {
            circle_and_hyperbola(u, out);
            out[0] += 10.0;
        };
        let unsolved = solve(&system, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, nowhere).unwrap_err();
        assert_eq!(unsolved.iterations, MOST_ITERATIONS);
        let undefined = |u: &[f64], out: &mut [f64]| {
            circle_and_hyperbola(u, out);
            out[1] = f64::NAN;
        };
        let unsolved = solve(&system, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, undefined).unwrap_err();
        assert!(unsolved.residual.is_nan() && unsolved.equation == Equation::Hidden(4), "{unsolved:?}");
        // A singular matrix.
        assert!(solve(&system, &mut registers([1.0, 1.0], [1.0, 1.0]), 0.0, circle_and_hyperbola).is_err());
    }

    #[test]
    fn an_iteration_that_leads_away_is_ended() {
        let stages = System { rows: vec![Equation::Stage(0), Equation::Stage(1)], ..system(false) };
        // The Jacobian is singular where x = y: a guess there leads far away, and from there to any solution.
        let mut constraints = registers([10.0, 4.0], [1.4, 1.41]);
        let strayed = solve(&system(false), &mut constraints, 0.0, circle_and_hyperbola).unwrap();
        assert!(strayed.iterations > 8, "{strayed:?}");
        let mut u = registers([10.0, 4.0], [1.4, 1.41]);
        let unsolved = solve(&stages, &mut u, 0.0, circle_and_hyperbola).unwrap_err();
        assert!(unsolved.far && unsolved.iterations <= 4, "{unsolved:?}");
        // Near a solution nothing changes, and rounding at rest is no leading away.
        let mut u = registers([10.0, 4.0], [0.9, 2.1]);
        assert!(solve(&stages, &mut u, 0.0, circle_and_hyperbola).is_ok());
        let mut u = registers([1.0, 1e-20], [1e-20, 1e-20]);
        let rounding = |u: &[f64], out: &mut [f64]| {
            let sign = if u[3] > 0.0 { 1.0 } else { -1.0 };
            out.copy_from_slice(&[u[2], sign * 1e-18, 1.0, 0.0, 0.0, 1.0]);
        };
        assert!(!solve(&stages, &mut u, 0.0, rounding).unwrap_err().far);
    }

    #[test]
    fn linear_equations_take_one_iteration() {
        let mut u = registers([1.0, 1.0], [0.0, 0.0]);
        let evaluate = |u: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&[2.0 * u[2] - 4.0, u[3] + u[2] - 1e6, 2.0, 0.0, 1.0, 1.0]);
        };
        let solved = solve(&system(true), &mut u, 0.0, evaluate).unwrap();
        assert_eq!((solved.iterations, &u[2..]), (1, &[2.0, 999_998.0][..]));
    }
}
