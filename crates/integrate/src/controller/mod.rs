//! Step-size control: the error norm, the choice of the first step, and the step after an attempt.

pub mod pi;
pub mod slots;
pub mod start;
pub mod trial;

use crate::scales::Vectors;
use holonome_arithmetic::{Real, square};
use holonome_linear::widest::widest;
use pi::LEAST_ERROR;

/// Parameters of step-size control for one scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepControl {
    /// Order of convergence of a step.
    pub order: u32,
    /// Order of the estimate.
    pub estimate: u32,
    /// (c, p): for an error e the estimate may be as large as c eᵖ; see [`StepControl::tolerance`].
    pub(crate) scale: (f64, f64),
    /// Safety factor on the step that the estimate asks for; smaller where the error grows faster
    /// than the estimate.
    pub safety: f64,
    /// Factor on the step after an attempt whose error is not finite.
    pub blind: f64,
    /// Largest ratio of a step to the one before; the limit of the controller applies in any case.
    pub grow: f64,
    /// True if the step finds its own length and needs only an upper bound of it.
    pub finds_length: bool,
    /// True if decreasing step lengths are extrapolated; see [`pi`].
    pub foresees: bool,
    /// Least error with which an extrapolation begins: the length that a smaller one asks for is not
    /// that of the next step.
    pub least_foreseen: f64,
    /// True for a stiff field: the step damps the rounding of its rates, so that it counts for no
    /// error, and what has decayed is measured by the size that it still has.
    pub stiff: bool,
}

impl StepControl {
    /// Control by an estimate of the error itself.
    pub const fn of_error(order: u32, estimate: u32) -> StepControl {
        StepControl {
            order,
            estimate,
            scale: (1.0, 1.0),
            safety: 0.9,
            blind: 0.1,
            grow: f64::INFINITY,
            finds_length: false,
            foresees: false,
            least_foreseen: LEAST_ERROR,
            stiff: false,
        }
    }

    /// Control of a stiff method by an estimate of lower order (HW IV.8, `radau5.f`): a step whose
    /// estimate is 0.1 e^((estimate + 1)/(order + 1)) errs by about e.
    pub fn of_lower_order(order: u32, estimate: u32) -> StepControl {
        StepControl {
            scale: (0.1, f64::from(estimate + 1) / f64::from(order + 1)),
            blind: 0.5,
            grow: 8.0,
            foresees: true,
            least_foreseen: 0.01,
            stiff: true,
            ..StepControl::of_error(order, estimate)
        }
    }

    /// Control by the last coefficients of a polynomial of degree `estimate` that collocates the
    /// step. Where they decrease like ρᵏ the error is about ρ to the order, however large they are
    /// themselves.
    pub fn of_coefficients(order: u32, estimate: u32) -> StepControl {
        let power = f64::from(estimate + 1) / f64::from(order);
        StepControl {
            order,
            estimate,
            scale: (LARGEST_COEFFICIENT * f64::from(order), power),
            safety: 0.8,
            blind: 0.5,
            grow: 2.0,
            finds_length: false,
            foresees: true,
            least_foreseen: LEAST_ERROR,
            stiff: false,
        }
    }

    /// Control by the last terms of a Taylor series, which find the length of their own step. A
    /// step is at most three times as long as the one before: terms that are 0 at the state say
    /// nothing of those between them.
    pub fn of_series(order: u32) -> StepControl {
        let power = f64::from(order - 1) / f64::from(order);
        StepControl {
            order,
            estimate: order - 1,
            scale: (LAST_TERMS * TERM.powf(power), power),
            safety: 0.8,
            blind: 0.5,
            grow: 3.0,
            finds_length: true,
            foresees: false,
            least_foreseen: LEAST_ERROR,
            stiff: false,
        }
    }

    /// Largest estimate that is accepted for an error of `rtol`.
    pub fn tolerance(&self, rtol: f64) -> f64 {
        let (factor, power) = self.scale;
        if power == 1.0 { factor * rtol } else { factor * rtol.powf(power) }
    }
}

/// Last coefficients, per order, of a step whose error would be 1. With this value the errors of
/// gauss16 are smaller than those of dop853 at the same tolerance, and those of gauss8 not twice as
/// large, on pendula, Kepler's problem and that of Hénon and Heiles.
const LARGEST_COEFFICIENT: f64 = 3.0 / 16.0;

/// Term of the method's order in a Taylor series whose error would be 1. With this value the errors
/// of taylor are 0.01 to 3 times those of dop853 at the same tolerance, on pendula, Kepler's
/// problem and that of Hénon and Heiles.
const TERM: f64 = 1.0 / 32.0;

/// Bound on the sum of the last two terms of a Taylor series, in units of the tolerance to the
/// power (order − 1)/order, which is the size of a term of one order less.
pub const LAST_TERMS: f64 = 2.0;

/// Tolerance and scales with which an attempted step is measured.
#[derive(Clone, Copy, Debug)]
pub struct Yardstick<'a, R = f64> {
    /// Relative tolerance.
    pub rtol: R,
    /// The vectors of the state.
    pub vectors: &'a Vectors,
    /// [`Scales::norms`](crate::scales::Scales::norms); or S² of every vector alone.
    pub norms: &'a [R],
    /// [`Scales::rounding`](crate::scales::Scales::rounding); empty if it does not count.
    pub rounding: &'a [R],
}

/// Squared sizes and errors of the vectors of an attempted step.
pub struct Measured<'a, R = f64> {
    /// |x₁|² of every vector.
    pub sizes: &'a mut [R],
    /// Square of every vector's estimated error.
    pub errors: &'a mut [R],
}

/// Square of the error of an attempted step of the length h > 0 in units of the tolerance,
///
/// err² = (1/n) Σ |e_b|²/max(rtol max(S_b, |x₁_b|), h ν_b)²
///
/// over the n vectors b of the state, with the rounding ν_b of its rate (see
/// [`scales`](crate::scales)). `errors` are Σ e_i k_i without their factor h. Two estimates e₅, e₃
/// are combined as in Hairer's `dop853.f` (HNW II.10 (10.17)): with their norms, err₅²/√(err₅² +
/// 0.01 err₃²); the error of every vector then is e₅ times err₅/√(err₅² + 0.01 err₃²). The square
/// needs no root, for which the next step would wait.
pub fn squared_error<R: Real>(
    h: R,
    errors: &[Vec<R>],
    x1: &[R],
    yardstick: Yardstick<R>,
    measured: &mut Measured<R>,
) -> R {
    widest(
        #[inline(always)]
        || square_of(h, errors, x1, yardstick, measured),
    )
}

#[inline(always)]
fn square_of<R: Real>(
    h: R,
    errors: &[Vec<R>],
    x1: &[R],
    yardstick: Yardstick<R>,
    measured: &mut Measured<R>,
) -> R {
    let Yardstick { rtol, vectors, norms, rounding } = yardstick;
    let [zero, one, tiny] = [0.0, 1.0, f64::MIN_POSITIVE].map(|value| h.constant(value));
    vectors.squares(x1, measured.sizes);
    let Some((first, others)) = errors.split_first() else {
        measured.errors.fill(zero);
        return zero;
    };
    vectors.squares(first, measured.errors);
    let (square_of_tolerance, square_of_h) = (rtol * rtol, h * h);
    let (norms, floors) = norms.split_at(vectors.count());
    let (first_momentum, per_square_of_h) = (vectors.conjugates(), one / square_of_h);
    // Four independent sums of each estimate, since the next step waits for them.
    let mut sums = [[zero; 4]; 2];
    for (vector, &norm) in norms[..vectors.sized()].iter().enumerate() {
        let mut own = measured.sizes[vector].largest(norm);
        let momentum = vector.checked_sub(first_momentum);
        if let Some(&floor) = momentum.and_then(|momentum| floors.get(momentum)) {
            own = own.larger(floor * per_square_of_h);
        }
        let mut scale = own.mul_add(square_of_tolerance, tiny);
        if let Some(&rounding) = rounding.get(vector) {
            scale = scale.larger(rounding * square_of_h);
        }
        let sum = &mut sums[0][vector % 4];
        *sum = *sum + measured.errors[vector] / scale;
        for e3 in others {
            let sum = &mut sums[1][vector % 4];
            *sum = *sum + square(&e3[vectors.components_of(vector)]) / scale;
        }
    }
    let [s, s3] = sums.map(|[a, b, c, d]| (a + b) + (c + d));
    let mean = s * (square_of_h * (1.0 / vectors.sized().max(1) as f64));
    let part = match others.is_empty() {
        true => one,
        false => s / (h.constant(0.01).mul_add(s3, s) + tiny),
    };
    for error in measured.errors.iter_mut() {
        *error = *error * (square_of_h * part);
    }
    mean * part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scales::Role;

    fn norm(
        h: f64,
        errors: &[Vec<f64>],
        x1: &[f64],
        norms: &[f64],
        vectors: &Vectors,
    ) -> (f64, Vec<f64>) {
        let (mut sizes, mut squares) = (vec![0.0; vectors.count()], vec![0.0; vectors.count()]);
        let measured = &mut Measured { sizes: &mut sizes, errors: &mut squares };
        (
            squared_error(
                h,
                errors,
                x1,
                Yardstick { rtol: 0.5, vectors, norms, rounding: &[] },
                measured,
            )
            .sqrt(),
            squares,
        )
    }

    #[test]
    fn norms_scale_and_keep_nan() {
        let two = Vectors::components(2);
        // Errors 1·(3, 4) over 0.5·(2, 4): √((9 + 4)/2); the larger of S and |x₁| counts.
        let (found, squares) = norm(1.0, &[vec![3.0, 4.0]], &[2.0, -1.0], &[1.0, 16.0], &two);
        assert_eq!((found, squares), (6.5f64.sqrt(), vec![9.0, 16.0]));
        // A vector of two components has one length: 25/(0.25·25).
        let mut plane = Vectors::default();
        plane.push(Role::Position, 1, 2);
        assert_eq!(norm(1.0, &[vec![3.0, 4.0]], &[0.0, 5.0], &[1.0], &plane).0, 2.0);
        let one = Vectors::components(1);
        assert_eq!(norm(1.0, &[vec![0.0]], &[0.0], &[0.0], &one).0, 0.0);
        // 1 over the root of the smallest normal number.
        assert!(norm(1.0, &[vec![1.0]], &[0.0], &[0.0], &one).0 > 1e153);
        assert!(norm(1.0, &[vec![f64::NAN]], &[1.0], &[1.0], &one).0.is_nan());
        assert!(norm(1.0, &[vec![1.0]], &[f64::NAN], &[1.0], &one).0.is_nan());
    }

    #[test]
    fn a_momentum_at_rest_is_measured_by_what_it_does_in_a_step() {
        let mut body = Vectors::default();
        body.push(Role::Position, 1, 1);
        body.push(Role::Momentum, 1, 1);
        // Of an S of the momentum of 0.5/h: 3/(0.5·0.5/h) over √2 vectors, times h.
        let found = |h: f64| norm(h, &[vec![0.0, 3.0]], &[1.0, 0.0], &[1.0, 0.0, 0.25], &body).0;
        for h in [1.0, 0.125] {
            assert!((found(h) - 12.0 * h * h / 2f64.sqrt()).abs() < 1e-12, "{}", found(h));
        }
    }

    #[test]
    fn an_error_below_the_rounding_of_a_rate_is_none() {
        let one = Vectors::components(1);
        let (mut size, mut error) = ([0.0], [0.0]);
        let mut found = |h: f64, rounding: f64| {
            let measured = &mut Measured { sizes: &mut size, errors: &mut error };
            let yardstick = Yardstick {
                rtol: 1e-9,
                vectors: &one,
                norms: &[1.0],
                rounding: &[rounding * rounding],
            };
            squared_error(h, &[vec![1e-6]], &[0.0], yardstick, measured).sqrt()
        };
        // An error of 1e-6 h in units of 1e-9, or of h times the rounding; a handful of operations
        // round.
        for (h, rounding, expected) in
            [(1e-2, 0.0, 10.0), (1e-2, 1e-8, 10.0), (1e-2, 4e-6, 0.25), (1e-8, 4e-6, 1e-5)]
        {
            let ratio = found(h, rounding) / expected;
            assert!((ratio - 1.0).abs() < 8.0 * f64::EPSILON, "{h} {rounding}: {ratio}");
        }
    }

    #[test]
    fn two_estimates_combine_as_in_dop853() {
        let one = Vectors::components(1);
        // Tolerance 0.5·2 = 1: √(9 + 0.01·1600) = 5; a handful of operations round.
        let (found, squares) = norm(0.5, &[vec![3.0], vec![40.0]], &[0.0], &[4.0], &one);
        assert!((found - 0.5 * 9.0 / 5.0).abs() < 4.0 * f64::EPSILON);
        assert!((squares[0] - (0.5 * 3.0 * 3.0 / 5.0f64).powi(2)).abs() < 4.0 * f64::EPSILON);
        assert_eq!(norm(0.5, &[vec![0.0], vec![0.0]], &[0.0], &[4.0], &one).0, 0.0);
    }
}
