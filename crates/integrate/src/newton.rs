//! Newton's method for the equations of a step, with their exact Jacobian.

pub mod path;

use crate::vector::max_or_nan;
use holonome_linear::halves::by_halves;
use holonome_linear::lu::Pivots;
use path::Contraction;
use std::ops::Range;

/// The equations of a step, in numbers. They read registers, among which their unknowns stand, and the sizes of what
/// cancels in them.
pub trait Equations {
    /// Computes those sizes, if that is not done yet.
    fn measure(&self, _registers: &mut [f64], _work: &mut [f64]) {}

    /// Computes the residuals.
    fn residuals(&self, registers: &mut [f64], work: &mut [f64]);

    /// Computes the residuals and what [`Equations::eliminate`] needs besides.
    fn evaluate(&self, registers: &mut [f64], work: &mut [f64]) {
        self.residuals(registers, work);
    }

    /// The registers up to the unknowns and sizes at least, and the residuals, in whose place [`Equations::eliminate`] puts the
    /// step.
    fn split<'a>(&self, registers: &'a mut [f64], work: &'a mut [f64]) -> (&'a mut [f64], &'a mut [f64]);

    /// Puts into the place of the residuals what the Jacobian takes to them.
    fn eliminate(&self, registers: &mut [f64], work: &mut [f64]) -> Pivots;

    /// Whether elimination compares rows by their sizes.
    fn weighs_rows(&self) -> bool;
}

/// How equations are to be solved.
#[derive(Clone, Debug)]
pub struct Task {
    /// Where the unknowns stand, which hold the guess.
    pub unknowns: Range<usize>,
    /// Where the sizes of what cancels stand.
    pub sizes: Range<usize>,
    /// Whether they are linear: one iteration solves them.
    pub linear: bool,
    /// Whether an iteration that leads away from the guess is ended: where the unknowns are of the kind of their equations,
    /// so that updates have a size, and the guess is one.
    pub local: bool,
    /// Whether they are of the form u = f(u) and solved by fixed-point iteration.
    pub sweeps: bool,
}

/// Why an iteration ended without a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsolved {
    /// Iterations done.
    pub iterations: u32,
    /// The largest residual over the size of what cancels in it; NaN where something is not finite.
    pub residual: f64,
    /// The equation of that residual.
    pub row: usize,
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
    /// Sweeps of a fixed-point iteration.
    pub sweeps: u32,
}

/// Sweeps of a fixed-point iteration at most; Newton's method is faster from far fewer on.
const MOST_SWEEPS: u32 = 40;

/// Part of an update that the next but one may have, for a fixed-point iteration to go on.
const SWEEP_CONTRACTION: f64 = 0.25;

/// A fixed-point iteration whose updates have come to δ, each θ times the one before, has an error of θδ, and a step of a
/// collocation method h times that of a rate: √θ θδ, as θ is h² where positions alone are unknowns. Where that is below
/// this, relative to the sizes, it is lost in rounding, of many steps, too (HLW VIII.6).
pub const SWEPT: f64 = f64::EPSILON / 256.0;

/// Updates below this that do not become smaller are rounding.
pub const ROUNDING_SWEEP: f64 = 2.0 * f64::EPSILON;

/// How much smaller or larger the smallest pivot may become in an iteration.
const GREAT_DEAL: f64 = 4.0;

/// Newton's method doubles the digits each time where it converges at all, so this many do not fail for lack of them.
pub const MOST_ITERATIONS: u32 = 50;

/// A residual below this, relative to what cancels in it, is at round-off after one more iteration: the error is squared,
/// and multiplied by a curvature that is not far from 1 in these units.
pub const CLOSE: f64 = 1e-9;

impl Task {
    /// Solves for the unknowns in place; `tolerance` loosens round-off.
    ///
    /// # Errors
    /// Where the iteration does not converge, or leads away from the guess, or something is not finite; the unknowns are of
    /// no use then.
    pub fn solve(
        &self,
        equations: &impl Equations,
        registers: &mut [f64],
        tolerance: f64,
        work: &mut [f64],
    ) -> Result<Solved, Unsolved> {
        if self.sweeps {
            // What does not contract may lead to any solution: that of the step is followed from shorter ones.
            let lost = |iterations| Unsolved { iterations, residual: f64::NAN, row: 0, strayed: false, far: true };
            return self.sweep(equations, registers, work).ok_or(lost(0));
        }
        let enough = tolerance.max(CLOSE);
        let (mut before, mut strayed): (Option<Pivots>, bool) = (None, false);
        let mut contraction = Contraction::new(self.local);
        if !self.linear {
            equations.measure(registers, work);
        }
        for iterations in 1..=MOST_ITERATIONS {
            equations.evaluate(registers, work);
            let (known, residuals) = equations.split(registers, work);
            if iterations == 1 && (!self.linear || equations.weighs_rows()) {
                fill_sizes(residuals, &mut known[self.sizes.clone()]);
            }
            let close = !self.linear && are_close(residuals, &known[self.sizes.clone()], enough);
            if !close && residuals.iter().any(|residual| residual.is_nan()) {
                return Err(self.lost(equations, registers, work, iterations, strayed));
            }
            let pivots = equations.eliminate(registers, work);
            if let Some(before) = before.replace(pivots) {
                let ratio = pivots.smallest / before.smallest;
                let comparable = pivots.exchanges == before.exchanges;
                let leapt = comparable && !(1.0 / GREAT_DEAL..=GREAT_DEAL).contains(&ratio);
                strayed |= pivots.negative != before.negative || leapt;
            }
            let (known, step) = equations.split(registers, work);
            if pivots.smallest == 0.0 || pivots.smallest.is_nan() {
                return Err(self.lost(equations, registers, work, iterations, strayed));
            }
            let mut finite = true;
            for (unknown, step) in known[self.unknowns.clone()].iter_mut().zip(&*step) {
                *unknown -= step;
                finite &= step.is_finite();
            }
            let done = self.linear || close || is_rounding(iterations, step, &known[self.unknowns.clone()]);
            if finite && done {
                return Ok(Solved { iterations, pivots, strayed, sweeps: 0 });
            }
            let far = finite && !done && contraction.is_lost(step, &known[self.sizes.clone()]);
            if !finite || far || iterations == MOST_ITERATIONS {
                let lost = self.lost(equations, registers, work, iterations, strayed);
                return Err(Unsolved { far, ..lost });
            }
        }
        unreachable!("the loop returns in its last turn")
    }

    /// u ← u − r by turns; none where that does not contract.
    fn sweep(&self, equations: &impl Equations, registers: &mut [f64], work: &mut [f64]) -> Option<Solved> {
        equations.measure(registers, work);
        let (mut before, mut contracted) = (f64::INFINITY, f64::INFINITY);
        for sweeps in 1..=MOST_SWEEPS {
            equations.residuals(registers, work);
            let (known, residuals) = equations.split(registers, work);
            if sweeps == 1 {
                fill_sizes(residuals, &mut known[self.sizes.clone()]);
            }
            let update = largest_ratio(residuals, &known[self.sizes.clone()]);
            for (unknown, residual) in known[self.unknowns.clone()].iter_mut().zip(&*residuals) {
                *unknown -= residual;
            }
            let contraction = update / before;
            if update.is_nan() {
                return None;
            }
            // Where equations hand each other's errors over, only every other update contracts.
            let square = contraction * contracted;
            let error = square.sqrt() * square.sqrt().sqrt() * update;
            if error <= SWEPT || (update >= before && update <= ROUNDING_SWEEP) {
                let (iterations, pivots) = (0, Pivots::NONE_YET);
                return Some(Solved { iterations, pivots, strayed: false, sweeps });
            }
            if square.is_finite() && square > SWEEP_CONTRACTION && update > ROUNDING_SWEEP {
                return None;
            }
            (before, contracted) = (update, if sweeps == 1 { f64::INFINITY } else { contraction });
        }
        None
    }

    /// How far off the unknowns are, for a message.
    fn lost(
        &self,
        equations: &impl Equations,
        registers: &mut [f64],
        work: &mut [f64],
        iterations: u32,
        strayed: bool,
    ) -> Unsolved {
        if self.linear {
            equations.measure(registers, work);
        }
        equations.evaluate(registers, work);
        let (known, residuals) = equations.split(registers, work);
        let (residual, row) = worst(residuals, &known[self.sizes.clone()]);
        Unsolved { iterations, residual, row, strayed, far: false }
    }
}

/// Whether every residual is within `enough` of what cancels in it.
fn are_close(residuals: &[f64], sizes: &[f64], enough: f64) -> bool {
    // Counted without a branch, as that runs in vectors.
    let close = |(residual, size): (&f64, &f64)| u32::from(residual.abs() <= enough * size);
    residuals.iter().zip(sizes).map(close).sum::<u32>() == residuals.len() as u32
}

/// Gives rows in which nothing cancels, as those of momenta at rest, the size of what they lack before the first iteration.
fn fill_sizes(residuals: &[f64], sizes: &mut [f64]) {
    if sizes.contains(&0.0) {
        let rows = || residuals.iter().zip(&*sizes).filter(|(_, size)| **size == 0.0);
        let largest = rows().fold(0.0, |largest, (residual, _)| max_or_nan(largest, residual.abs()));
        sizes.iter_mut().filter(|size| **size == 0.0).for_each(|size| *size = largest);
    }
}

/// Whether the step of a late iteration changes its unknowns by no more than their rounding: what is left of the
/// residuals of a system at rest is the rounding of forces that cancel, however small their own size. (Unknowns of several
/// units are compared here, so this is no test for an iteration that still converges.)
fn is_rounding(iterations: u32, step: &[f64], unknowns: &[f64]) -> bool {
    const LATE: u32 = 6;
    const ROUNDINGS: f64 = 4.0 * f64::EPSILON;
    if iterations < LATE {
        return false;
    }
    let largest = |v: &[f64]| v.iter().fold(0.0, |largest: f64, x| max_or_nan(largest, x.abs()));
    largest(step) <= ROUNDINGS * largest(unknowns)
}

/// The largest |r_i|/size_i; NaN where one is not finite. Where nothing has a size nothing is to be off.
fn largest_ratio(residuals: &[f64], sizes: &[f64]) -> f64 {
    // Several side by side, as one alone would wait for itself.
    const SIDE: usize = 8;
    let (mut most, mut odd) = ([0.0f64; SIDE], [0.0; SIDE]);
    let mut take = |k: usize, residual: f64, size: f64| {
        let ratio = residual.abs() / if size > f64::MIN_POSITIVE { size } else { f64::MIN_POSITIVE };
        most[k] = if ratio > most[k] { ratio } else { most[k] };
        odd[k] += 0.0 * ratio;
    };
    let ((r, r_rest), (s, s_rest)) = (residuals.as_chunks::<SIDE>(), sizes.as_chunks::<SIDE>());
    for (r, s) in r.iter().zip(s) {
        (0..SIDE).for_each(|k| take(k, r[k], s[k]));
    }
    for (k, (&r, &s)) in r_rest.iter().zip(s_rest).enumerate() {
        take(k, r, s);
    }
    // The comparisons lose NaN; 0·∞ is NaN, too.
    let finite = by_halves(odd, |a, b| a + b) == 0.0;
    if finite { by_halves(most, |a, b| if b > a { b } else { a }) } else { f64::NAN }
}

/// The largest |r_i|/size_i, and its row; NaN before all else. Without a size anything is off by its own.
fn worst(residuals: &[f64], size: &[f64]) -> (f64, usize) {
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
    use holonome_linear::lu::Elimination;

    /// Two equations; the sizes of what cancels stand before the unknowns.
    struct Two<F>(F);

    impl<F: Fn(&[f64], &mut [f64])> Equations for Two<F> {
        fn residuals(&self, registers: &mut [f64], work: &mut [f64]) {
            (self.0)(registers, &mut work[..6]);
        }

        fn split<'a>(&self, registers: &'a mut [f64], work: &'a mut [f64]) -> (&'a mut [f64], &'a mut [f64]) {
            (registers, &mut work[..2])
        }

        fn eliminate(&self, registers: &mut [f64], work: &mut [f64]) -> Pivots {
            let elimination = Elimination::new(2, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
            let (residuals, rest) = work.split_at_mut(2);
            let (jacobian, rest) = rest.split_at_mut(4);
            elimination.solve(jacobian, &registers[..2], residuals, rest)
        }

        fn weighs_rows(&self) -> bool {
            true
        }
    }

    const TASK: Task = Task { unknowns: 2..4, sizes: 0..2, linear: false, local: false, sweeps: false };

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
        task: &Task,
        registers: &mut [f64; 4],
        tolerance: f64,
        evaluate: impl Fn(&[f64], &mut [f64]),
    ) -> Result<Solved, Unsolved> {
        task.solve(&Two(evaluate), registers, tolerance, &mut [f64::NAN; 12])
    }

    #[test]
    fn converges_to_round_off() {
        let mut u = registers([10.0, 4.0], [0.5, 2.5]);
        let solved = solve(&TASK, &mut u, 0.0, circle_and_hyperbola).unwrap();
        // The condition number of the root is about 3, and each residual rounds a few times.
        assert!((u[2] - 1.0).abs() < 1e-15 && (u[3] - 2.0).abs() < 2e-15, "{u:?}");
        assert!((4..8).contains(&solved.iterations), "{solved:?}");
        // A loose tolerance stops early.
        let mut u = registers([10.0, 4.0], [0.5, 2.5]);
        let loose = solve(&TASK, &mut u, 0.1, circle_and_hyperbola).unwrap();
        assert!(loose.iterations < solved.iterations && (u[2] - 1.0).abs() > 1e-9);
    }

    #[test]
    fn failures_say_which_equation() {
        // x² + y² = −5 has no solution.
        let nowhere = |u: &[f64], out: &mut [f64]| {
            circle_and_hyperbola(u, out);
            out[0] += 10.0;
        };
        let unsolved = solve(&TASK, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, nowhere).unwrap_err();
        assert_eq!(unsolved.iterations, MOST_ITERATIONS);
        let undefined = |u: &[f64], out: &mut [f64]| {
            circle_and_hyperbola(u, out);
            out[1] = f64::NAN;
        };
        let unsolved = solve(&TASK, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, undefined).unwrap_err();
        assert!(unsolved.residual.is_nan() && unsolved.row == 1, "{unsolved:?}");
        // A singular matrix.
        assert!(solve(&TASK, &mut registers([1.0, 1.0], [1.0, 1.0]), 0.0, circle_and_hyperbola).is_err());
    }

    #[test]
    fn an_iteration_that_leads_away_is_ended() {
        let stages = Task { local: true, ..TASK };
        // The Jacobian is singular where x = y: a guess there leads far away, and from there to any solution.
        let mut constraints = registers([10.0, 4.0], [1.4, 1.41]);
        let strayed = solve(&TASK, &mut constraints, 0.0, circle_and_hyperbola).unwrap();
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
        let solved = solve(&Task { linear: true, ..TASK }, &mut u, 0.0, evaluate).unwrap();
        assert_eq!((solved.iterations, &u[2..]), (1, &[2.0, 999_998.0][..]));
    }

    #[test]
    fn sweeps_contract_or_are_ended() {
        let sweeps = Task { local: true, sweeps: true, ..TASK };
        // u = c·(cos v, sin u): contracts for c = 0.1, not for c = 3.
        let map = |c: f64| {
            move |registers: &[f64], out: &mut [f64]| {
                let (u, v) = (registers[2], registers[3]);
                out[0] = u - c * v.cos();
                out[1] = v - c * u.sin();
                out[2..].copy_from_slice(&[1.0, c * v.sin(), -c * u.cos(), 1.0]);
            }
        };
        let mut swept = registers([0.1, 0.01], [0.1, 0.0]);
        let solved = solve(&sweeps, &mut swept, 0.0, map(0.1)).unwrap();
        assert!(solved.iterations == 0 && (4..14).contains(&solved.sweeps), "{solved:?}");
        let mut newton = registers([0.1, 0.01], [0.1, 0.0]);
        solve(&TASK, &mut newton, 0.0, map(0.1)).unwrap();
        // The error is below a rounding of the unknowns, which are about 0.1 and 0.01.
        for k in 2..4 {
            assert!((swept[k] - newton[k]).abs() <= f64::EPSILON * newton[k], "{swept:?} {newton:?}");
        }
        let mut u = registers([1.0, 1.0], [1.5, 1.2]);
        let unsolved = solve(&sweeps, &mut u, 0.0, map(1.2)).unwrap_err();
        assert!(unsolved.far, "{unsolved:?}");
    }
}
