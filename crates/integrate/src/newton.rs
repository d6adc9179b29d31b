//! Newton's method for the equations of a step, with their exact Jacobian.

pub mod path;

use crate::vector::{irregular, max_or_nan};
use holonome_arithmetic::Real;
use holonome_linear::halves::by_halves;
use holonome_linear::lu::Pivots;
use path::Contraction;
use std::ops::Range;

/// Equations of a step, in numbers: functions of registers, which hold the unknowns and the scales
/// of the equations.
pub trait NewtonSystem {
    /// Compute the scales, unless that has been done.
    fn measure(&self, _registers: &mut [f64], _work: &mut [f64]) {}

    /// Compute the residuals.
    fn residuals(&self, registers: &mut [f64], work: &mut [f64]);

    /// Compute the residuals and whatever [`NewtonSystem::eliminate`] needs besides.
    fn evaluate(&self, registers: &mut [f64], work: &mut [f64]) {
        self.residuals(registers, work);
    }

    /// Registers, up to the unknowns and scales at least, and the residuals, which
    /// [`NewtonSystem::eliminate`] replaces by the step.
    fn split<'a>(
        &self,
        registers: &'a mut [f64],
        work: &'a mut [f64],
    ) -> (&'a mut [f64], &'a mut [f64]);

    /// Replace the residuals r by the solution s of J s = r, with the Jacobian J.
    fn eliminate(&self, registers: &mut [f64], work: &mut [f64]) -> Pivots;

    /// True if elimination compares rows by their scales.
    fn weighs_rows(&self) -> bool;
}

/// Unknowns and scales of equations, and the way to solve them.
#[derive(Clone, Debug)]
pub struct Task {
    /// Registers of the unknowns, which hold the guess.
    pub unknowns: Range<usize>,
    /// Registers of the scales.
    pub sizes: Range<usize>,
    /// Registers of the scales in fixed-point iterations.
    pub sweep_sizes: Range<usize>,
    /// True if the equations are linear: one iteration solves them.
    pub linear: bool,
    /// True if an iteration that leads away from the guess is ended. The unknowns are then of the
    /// kind of their equations, so that updates have a scale, and the guess is near a solution.
    pub local: bool,
    /// True if the equations are of the form u = f(u) and solved by fixed-point iteration.
    pub sweeps: bool,
    /// See [`Equations::monotone`](crate::phase_space::Equations::monotone): such equations are
    /// solved from any guess.
    pub monotone: Option<f64>,
}

/// Reason why an iteration ended without a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsolved {
    /// Number of iterations.
    pub iterations: u32,
    /// Largest residual, relative to its scale; NaN if something is not finite.
    pub residual: f64,
    /// Row of that residual.
    pub row: usize,
    /// See [`Solved::strayed`].
    pub strayed: bool,
    /// True if the iteration was ended because it led away from the guess, from where it might
    /// converge to any solution.
    pub far: bool,
}

/// Result of an iteration that converged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// Number of iterations: evaluations of residual and Jacobian, and systems solved.
    pub iterations: u32,
    /// Pivots of the last matrix.
    pub pivots: Pivots,
    /// True if the determinant changed its sign, or a great deal, between two iterations: the
    /// solution may not be the one near the guess, which may not exist. (Under Kantorovich's
    /// condition, which ensures that it does, the derivative of one equation keeps at least half of
    /// its value in an iteration.)
    pub strayed: bool,
    /// Number of sweeps of a fixed-point iteration.
    pub sweeps: u32,
}

/// Largest number of sweeps of a fixed-point iteration; Newton's method is faster from far fewer
/// on.
const MOST_SWEEPS: u32 = 40;

/// Largest ratio of an update to the last but one at which a fixed-point iteration goes on.
const SWEEP_CONTRACTION: f64 = 0.25;

/// Error of a fixed-point iteration, relative to the scales, that is lost in rounding, also over
/// many steps (HLW VIII.6). If updates have come to δ, each θ times the one before, the error is
/// θδ. In a step of a collocation method h times the error of a rate counts: √θ θδ, as θ is h² if
/// positions alone are unknowns.
pub const SWEPT: f64 = f64::EPSILON / 256.0;

/// Error of a fixed-point iteration from its last update and the last but two: √θ θδ, see [`SWEPT`].
#[inline(always)]
pub fn swept_error<R: Real>([last, third]: [R; 2]) -> R {
    let contraction = (last / third).sqrt();
    contraction.sqrt() * (contraction * last)
}

/// Size below which updates that do not decrease are rounding.
pub const ROUNDING_SWEEP: f64 = 2.0 * f64::EPSILON;

/// Largest factor by which the smallest pivot may shrink or grow in an iteration.
const GREAT_DEAL: f64 = 4.0;

/// Largest number of iterations. Newton's method doubles the digits each time where it converges at
/// all, so none fails for lack of iterations.
pub const MOST_ITERATIONS: u32 = 50;

/// Largest number of iterations within brackets: a halving for every bit of a number, and Newton's.
const MOST_BRACKETED: u32 = 100;

/// Iteration from which on residuals that are rounding of their own terms count as small: at rest
/// their scales are rounding, too, or 0. Newton's method doubles its digits in every iteration, and
/// has none left to gain before.
const LATE: u32 = 6;

/// Part of its size by which an unknown is moved to measure the rounding of residuals.
const ROUNDINGS: f64 = 64.0 * f64::EPSILON;

/// Residual, relative to its scale, from which one more iteration reaches round-off: the error is
/// squared, and multiplied by a curvature that is not far from 1 in these units.
pub const CLOSE: f64 = 1e-9;

impl Task {
    /// Solve for the unknowns in place; `tolerance` loosens round-off.
    ///
    /// # Errors
    /// If the iteration does not converge, or leads away from the guess, or something is not
    /// finite; the unknowns are then of no use.
    pub fn solve(
        &self,
        equations: &impl NewtonSystem,
        registers: &mut [f64],
        tolerance: f64,
        work: &mut [f64],
    ) -> Result<Solved, Unsolved> {
        if self.monotone.is_none() {
            return self.newton(equations, registers, tolerance, work);
        }
        let guess = registers[self.unknowns.clone()].to_vec();
        self.newton(equations, registers, tolerance, work).or_else(|lost| {
            registers[self.unknowns.clone()].copy_from_slice(&guess);
            self.bracketed(equations, registers, tolerance, work).ok_or(lost)
        })
    }

    /// Residual, relative to its scale, from which one more iteration is enough.
    fn close(&self) -> f64 {
        self.monotone.unwrap_or(CLOSE)
    }

    /// Newton's iteration within brackets of the solutions, which are halved where it leaves them;
    /// `None` if that does not converge. (It allocates: few guesses are that bad.)
    fn bracketed(
        &self,
        equations: &impl NewtonSystem,
        registers: &mut [f64],
        tolerance: f64,
        work: &mut [f64],
    ) -> Option<Solved> {
        let mut brackets = vec![[f64::NEG_INFINITY, f64::INFINITY]; self.unknowns.len()];
        let enough = tolerance.max(self.close());
        for iterations in 1..=MOST_BRACKETED {
            equations.evaluate(registers, work);
            let (known, residuals) = equations.split(registers, work);
            let close = are_close(residuals, &known[self.sizes.clone()], enough);
            let unknowns = &known[self.unknowns.clone()];
            for ((&u, residual), bracket) in unknowns.iter().zip(&*residuals).zip(&mut brackets) {
                // Where there is no value the unknown is too large, on either side of 0.
                let above = if residual.is_nan() { u > 0.0 } else { *residual > 0.0 };
                bracket[usize::from(above)] = u;
            }
            let pivots = equations.eliminate(registers, work);
            let (known, step) = equations.split(registers, work);
            let unknowns = &mut known[self.unknowns.clone()];
            for ((u, step), [low, high]) in unknowns.iter_mut().zip(&*step).zip(&brackets) {
                let next = *u - step;
                *u = match (next >= *low && next <= *high, low.is_finite() && high.is_finite()) {
                    (true, _) => next,
                    (false, true) => 0.5 * (low + high),
                    // Towards 0, where there is a value.
                    (false, false) => 0.5 * *u,
                };
            }
            if close {
                return Some(Solved { iterations, pivots, strayed: false, sweeps: 0 });
            }
        }
        None
    }

    /// See [`Task::solve`].
    fn newton(
        &self,
        equations: &impl NewtonSystem,
        registers: &mut [f64],
        tolerance: f64,
        work: &mut [f64],
    ) -> Result<Solved, Unsolved> {
        if self.sweeps {
            // Without contraction any solution may be found; the step's solution is then followed
            // from shorter steps.
            let lost = |iterations| Unsolved {
                iterations,
                residual: f64::NAN,
                row: 0,
                strayed: false,
                far: true,
            };
            return self.sweep(equations, registers, work).ok_or(lost(0));
        }
        let enough = tolerance.max(self.close());
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
            let mut close =
                !self.linear && are_close(residuals, &known[self.sizes.clone()], enough);
            if !close && iterations >= LATE && !self.linear {
                close = self.are_rounding(equations, enough, registers, work);
            }
            let (_, residuals) = equations.split(registers, work);
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
            let done = self.linear
                || close
                || is_rounding(iterations, step, &known[self.unknowns.clone()]);
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

    /// Iterate u ← u − r; `None` if that does not contract.
    fn sweep(
        &self,
        equations: &impl NewtonSystem,
        registers: &mut [f64],
        work: &mut [f64],
    ) -> Option<Solved> {
        equations.measure(registers, work);
        // The last two updates, the last one first.
        let (mut before, mut older) = (f64::INFINITY, 0.0);
        for sweeps in 1..=MOST_SWEEPS {
            equations.residuals(registers, work);
            let (known, residuals) = equations.split(registers, work);
            if sweeps == 1 {
                fill_sizes(residuals, &mut known[self.sweep_sizes.clone()]);
            }
            let update = largest_ratio(residuals, &known[self.sweep_sizes.clone()]);
            for (unknown, residual) in known[self.unknowns.clone()].iter_mut().zip(&*residuals) {
                *unknown -= residual;
            }
            if update.is_nan() {
                return None;
            }
            if swept_error([update, older]) <= SWEPT
                || (update >= before && update <= ROUNDING_SWEEP)
            {
                let (iterations, pivots) = (0, Pivots::NONE_YET);
                return Some(Solved { iterations, pivots, strayed: false, sweeps });
            }
            // Where equations pass errors on to each other, only every other update contracts.
            let square = update / older;
            if square.is_finite() && square > SWEEP_CONTRACTION && update > ROUNDING_SWEEP {
                return None;
            }
            (older, before) = (if sweeps == 1 { 0.0 } else { before }, update);
        }
        None
    }

    /// True if every residual is within `enough` times its scale, or changes as much if the
    /// unknowns are moved by a few roundings. (It allocates: systems that need this are at rest.)
    fn are_rounding(
        &self,
        equations: &impl NewtonSystem,
        enough: f64,
        registers: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let (known, residuals) = equations.split(registers, work);
        let (found, unknowns) = (residuals.to_vec(), known[self.unknowns.clone()].to_vec());
        for (k, unknown) in known[self.unknowns.clone()].iter_mut().enumerate() {
            *unknown += ROUNDINGS * unknown.abs() * irregular(k);
        }
        equations.evaluate(registers, work);
        let (known, moved) = equations.split(registers, work);
        let mut rows = found.iter().zip(moved).zip(&known[self.sizes.clone()]);
        let small = |((found, moved), size): ((&f64, &mut f64), &f64)| {
            found.abs() <= enough * size || found.abs() <= (*moved - found).abs()
        };
        let rounding = rows.all(small);
        known[self.unknowns.clone()].copy_from_slice(&unknowns);
        equations.evaluate(registers, work);
        rounding
    }

    /// Residual of the unknowns, for a message.
    fn lost(
        &self,
        equations: &impl NewtonSystem,
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

/// True if every residual is within `enough` times its scale.
fn are_close(residuals: &[f64], sizes: &[f64], enough: f64) -> bool {
    // Counted without a branch, so that it vectorises.
    let close = |(residual, size): (&f64, &f64)| u32::from(residual.abs() <= enough * size);
    residuals.iter().zip(sizes).map(close).sum::<u32>() == residuals.len() as u32
}

/// Set scales that are 0, as those of momenta at rest, to the largest residual of their rows before
/// the first iteration.
fn fill_sizes(residuals: &[f64], sizes: &mut [f64]) {
    if sizes.contains(&0.0) {
        let rows = || residuals.iter().zip(&*sizes).filter(|(_, size)| **size == 0.0);
        let largest =
            rows().fold(0.0, |largest, (residual, _)| max_or_nan(largest, residual.abs()));
        sizes.iter_mut().filter(|size| **size == 0.0).for_each(|size| *size = largest);
    }
}

/// True if the step of a late iteration changes its unknowns by no more than their rounding: the
/// residuals of a system at rest are then the rounding of forces that cancel, however small their
/// own scale. (Unknowns of several units are compared here, so this is not a test for an iteration
/// that still converges.)
fn is_rounding(iterations: u32, step: &[f64], unknowns: &[f64]) -> bool {
    const ROUNDINGS: f64 = 4.0 * f64::EPSILON;
    if iterations < LATE {
        return false;
    }
    let largest = |v: &[f64]| v.iter().fold(0.0, |largest: f64, x| max_or_nan(largest, x.abs()));
    largest(step) <= ROUNDINGS * largest(unknowns)
}

/// Largest |r_i|/size_i; NaN if one is not finite. A row of scale 0 is met only by a residual of 0.
fn largest_ratio(residuals: &[f64], sizes: &[f64]) -> f64 {
    // Several maxima side by side, as a single one would wait for itself.
    const SIDE: usize = 8;
    let (mut most, mut odd) = ([0.0f64; SIDE], [0.0; SIDE]);
    let mut take = |k: usize, residual: f64, size: f64| {
        let ratio =
            residual.abs() / if size > f64::MIN_POSITIVE { size } else { f64::MIN_POSITIVE };
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

/// Largest |r_i|/size_i and its row; the first NaN if there is one. Without a scale, a residual
/// other than 0 counts as 1.
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

    /// Two equations; their scales precede the unknowns.
    struct Two<F>(F);

    impl<F: Fn(&[f64], &mut [f64])> NewtonSystem for Two<F> {
        fn residuals(&self, registers: &mut [f64], work: &mut [f64]) {
            (self.0)(registers, &mut work[..6]);
        }

        fn split<'a>(
            &self,
            registers: &'a mut [f64],
            work: &'a mut [f64],
        ) -> (&'a mut [f64], &'a mut [f64]) {
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

    const TASK: Task = Task {
        unknowns: 2..4,
        sizes: 0..2,
        sweep_sizes: 0..2,
        linear: false,
        local: false,
        sweeps: false,
        monotone: None,
    };

    /// Registers with these unknowns, preceded by the scales.
    fn registers(sizes: [f64; 2], unknowns: [f64; 2]) -> [f64; 4] {
        [sizes[0], sizes[1], unknowns[0], unknowns[1]]
    }

    #[test]
    fn monotone_equations_are_solved_from_any_guess() {
        // x³ + x/1000 = 1, which has no value beyond 3, and y = 2. From 1e-3 Newton's iteration
        // leaps to 250 and finds no value there.
        let equations = Two(|registers: &[f64], out: &mut [f64]| {
            let [x, y] = [registers[2], registers[3]];
            out[0] = if x.abs() > 3.0 { f64::NAN } else { x * x * x + 1e-3 * x - 1.0 };
            out[1] = y - 2.0;
            out[2..].copy_from_slice(&[3.0 * x * x + 1e-3, 0.0, 0.0, 1.0]);
        });
        let monotone = Task { monotone: Some(CLOSE), ..TASK };
        for guess in [1e-3, -1e-3, 2.9, 50.0, -50.0, 0.0] {
            let mut registers = registers([1.0, 1.0], [guess, 0.0]);
            monotone.solve(&equations, &mut registers, 0.0, &mut [0.0; 16]).unwrap();
            // One root, up to the rounding of a residual of size 1 over the slope 3.
            let x = registers[2];
            assert!((x * x * x + 1e-3 * x - 1.0).abs() < 1e-15, "{guess}: {x}");
        }
        let mut registers = registers([1.0, 1.0], [1e-3, 0.0]);
        assert!(TASK.solve(&equations, &mut registers, 0.0, &mut [0.0; 16]).is_err());
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
        let unsolved =
            solve(&TASK, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, nowhere).unwrap_err();
        assert_eq!(unsolved.iterations, MOST_ITERATIONS);
        let undefined = |u: &[f64], out: &mut [f64]| {
            circle_and_hyperbola(u, out);
            out[1] = f64::NAN;
        };
        let unsolved =
            solve(&TASK, &mut registers([1.0, 1.0], [0.5, 2.5]), 0.0, undefined).unwrap_err();
        assert!(unsolved.residual.is_nan() && unsolved.row == 1, "{unsolved:?}");
        // A singular matrix.
        assert!(
            solve(&TASK, &mut registers([1.0, 1.0], [1.0, 1.0]), 0.0, circle_and_hyperbola)
                .is_err()
        );
    }

    #[test]
    fn an_iteration_that_leads_away_is_ended() {
        let stages = Task { local: true, ..TASK };
        // The Jacobian is singular where x = y: a guess there leads far away, and from there to any
        // solution.
        let mut constraints = registers([10.0, 4.0], [1.4, 1.41]);
        let strayed = solve(&TASK, &mut constraints, 0.0, circle_and_hyperbola).unwrap();
        assert!(strayed.iterations > 8, "{strayed:?}");
        let mut u = registers([10.0, 4.0], [1.4, 1.41]);
        let unsolved = solve(&stages, &mut u, 0.0, circle_and_hyperbola).unwrap_err();
        assert!(unsolved.far && unsolved.iterations <= 4, "{unsolved:?}");
        // Near a solution nothing changes, and rounding at rest does not count as leading away.
        let mut u = registers([10.0, 4.0], [0.9, 2.1]);
        assert!(solve(&stages, &mut u, 0.0, circle_and_hyperbola).is_ok());
        let mut u = registers([1.0, 1e-20], [1e-20, 1e-20]);
        let rounding = |u: &[f64], out: &mut [f64]| {
            let sign = if u[3] > 0.0 { 1.0 } else { -1.0 };
            out.copy_from_slice(&[u[2], sign * 1e-18, 1.0, 0.0, 0.0, 1.0]);
        };
        assert!(!solve(&stages, &mut u, 0.0, rounding).unwrap_err().far);
    }

    /// Equations whose terms all vanish at the guess, and cancel at the solution up to rounding.
    #[test]
    fn equations_without_a_scale_are_solved_to_the_rounding_of_their_terms() {
        let mut u = registers([1.0, 0.0], [1.0, 0.0]);
        let at_rest = |u: &[f64], out: &mut [f64]| {
            // u² = 2 and v = 1e-9·(u − 1)·π, which is known to a rounding of u at best.
            out[0] = u[2] * u[2] - 2.0;
            out[1] = u[3] - 1e-9 * ((u[2] - 1.0) * std::f64::consts::PI);
            out[2..].copy_from_slice(&[2.0 * u[2], 0.0, -1e-9 * std::f64::consts::PI, 1.0]);
        };
        let solved = solve(&TASK, &mut u, 0.0, at_rest).unwrap();
        let exact = 1e-9 * (2f64.sqrt() - 1.0) * std::f64::consts::PI;
        // Some roundings of u, of which 3e-9 are those of v.
        assert!((u[3] / exact - 1.0).abs() < 1e-14, "{u:?}");
        assert!(solved.iterations <= LATE + 1, "{solved:?}");
        // What has no solution is not met by rounding: v² = −1.
        let nowhere = |u: &[f64], out: &mut [f64]| {
            out[0] = u[2] - 1.0;
            out[1] = u[3] * u[3] + 1.0;
            out[2..].copy_from_slice(&[1.0, 0.0, 0.0, 2.0 * u[3]]);
        };
        assert!(solve(&TASK, &mut registers([1.0, 0.0], [0.0, 0.3]), 0.0, nowhere).is_err());
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
            assert!(
                (swept[k] - newton[k]).abs() <= f64::EPSILON * newton[k],
                "{swept:?} {newton:?}"
            );
        }
        let mut u = registers([1.0, 1.0], [1.5, 1.2]);
        let unsolved = solve(&sweeps, &mut u, 0.0, map(1.2)).unwrap_err();
        assert!(unsolved.far, "{unsolved:?}");
    }
}
