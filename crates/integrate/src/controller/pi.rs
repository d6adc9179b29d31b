//! The proportional-integral controller of Hairer and Wanner (HW IV.2 (2.43), as in `dopri5.f` and
//! `dop853.f`):
//!
//! h_new = h · safety · err_n^(−α) · err_{n−1}^β,  α = 1/q − ¾β,
//!
//! with q one more than the order of the error estimate and the factor kept within limits. Powers
//! are approximate ([`Real::rough_power`]), as the error itself is an estimate.
//!
//! With extrapolation (Gustafsson, ACM Trans. Math. Softw. 20 (1994) 496), decreasing lengths ℓ_n =
//! h_n err_n^(−α) that errors ask for are taken to go on decreasing: h_new = safety ℓ_n · min(1,
//! ℓ_n/ℓ_{n−1}).

use super::StepControl;
use crate::exact;
use holonome_arithmetic::Real;
use serde::{Deserialize, Serialize};

/// Numbers that the step-size controller carries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ControllerMemory {
    /// The step to try next; 0 before the first one is chosen.
    #[serde(with = "exact::number")]
    pub h: f64,
    /// Error of the last accepted step in units of the tolerance, at least 1e-4. For a controller
    /// that extrapolates, the length that the error asked for, divided by `h`.
    #[serde(with = "exact::number")]
    pub last_error: f64,
}

/// Attempt of which it is known whether it is accepted.
#[derive(Clone, Copy, Debug)]
pub struct JudgedAttempt<R: Real> {
    /// Its length.
    pub length: R,
    /// Square of its error in units of the tolerance, NaN if x₁ is not finite.
    pub square: R,
    /// True if no attempt at this step was rejected before.
    pub is_first: R::Truth,
    /// True if it is accepted.
    pub accepted: R::Truth,
}

/// The controller's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    /// Exponent of the error.
    pub alpha: f64,
    /// Exponent of the previous error.
    pub beta: f64,
    /// Safety factor on the step that the error asks for.
    pub safety: f64,
    /// Smallest factor.
    pub shrink: f64,
    /// Largest factor.
    pub grow: f64,
    /// Factor after an attempt whose error is not finite.
    pub blind: f64,
    /// True if the step finds its own length, so that its error says nothing of the next step.
    pub finds_length: bool,
    /// True if decreasing step lengths are extrapolated.
    pub foresees: bool,
    /// Least error with which an extrapolation begins.
    pub least_foreseen: f64,
}

/// Smallest error that enters a power: a zero error must not divide, and its step grows by the
/// limit anyway.
pub const LEAST_ERROR: f64 = 1e-10;

/// Smallest error that is carried to the next step.
pub const LEAST_LAST_ERROR: f64 = 1e-4;

impl Controller {
    /// Controller for `control` with Hairer's constants: β = 0.04 and factors within [0.2, 10], for
    /// high orders β = 0 and [1/3, 6]; β = 0 if it extrapolates.
    pub fn new(control: &StepControl) -> Controller {
        let StepControl { order, estimate, finds_length, foresees, least_foreseen, .. } = *control;
        let high = order >= 8;
        let beta = if high || foresees { 0.0 } else { 0.04 };
        Controller {
            alpha: 1.0 / f64::from(estimate + 1) - 0.75 * beta,
            beta,
            safety: control.safety,
            blind: control.blind,
            shrink: if high { 1.0 / 3.0 } else { 0.2 },
            grow: control.grow.min(if high { 6.0 } else { 10.0 }),
            finds_length,
            foresees,
            least_foreseen,
        }
    }

    /// `h` and `last_error` of the [`ControllerMemory`] after an attempt, from those after the last
    /// accepted one.
    #[inline(always)]
    pub fn next<R: Real>(&self, [h, last_error]: [R; 2], attempt: JudgedAttempt<R>) -> [R; 2] {
        let JudgedAttempt { length, square, is_first, accepted } = attempt;
        // err^(−α) for errors of at least `least`.
        let power = |least: f64| {
            square
                .larger(square.constant(least * least))
                .rough_power(square.constant(-0.5 * self.alpha))
        };
        let one = square.constant(1.0);
        // The next attempt waits for this power, and for as little as possible behind it: what does
        // not need it is found before, such as the limits as lengths.
        let part = power(LEAST_ERROR);
        let [safe, shortest, longest] =
            [self.safety, self.shrink, self.grow].map(|factor| length * factor);
        let shorter = safe * part;
        let mut longer = shorter;
        if self.beta != 0.0 {
            longer = safe * last_error.rough_power(square.constant(self.beta)) * part;
        }
        if self.foresees {
            let decrease = part * (length / (last_error * h));
            longer = R::select(decrease.less(one), longer * decrease, longer);
        }
        // A step that took several attempts does not grow.
        let longest = R::select(is_first, longest, length);
        let longer =
            if self.finds_length { longest } else { longer.larger(shortest).smaller(longest) };
        let shorter = shorter.larger(shortest).smaller(length);
        let shorter = R::select(square.finite(), shorter, length * self.blind);
        let last_error = if self.foresees {
            let foreseen = match self.least_foreseen > LEAST_ERROR {
                true => power(self.least_foreseen),
                false => part,
            };
            length * foreseen / longer
        } else {
            square.sqrt().larger(square.constant(LEAST_LAST_ERROR))
        };
        [R::select(accepted, longer, shorter), last_error]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(controller: &Controller, before: [f64; 2], error: f64, is_first: bool) -> [f64; 2] {
        let (length, square, accepted) = (before[0], error * error, error <= 1.0);
        controller.next(before, JudgedAttempt { length, square, is_first, accepted })
    }

    #[test]
    fn factors_are_hairers() {
        let dopri5 = Controller::new(&StepControl::of_error(5, 4));
        assert_eq!((dopri5.alpha, dopri5.beta), (0.2 - 0.75 * 0.04, 0.04));
        let dop853 = Controller::new(&StepControl::of_error(8, 7));
        assert_eq!((dop853.alpha, dop853.beta), (0.125, 0.0));
        let h = |error: f64, is_first: bool| next(&dop853, [1.0, 1.0], error, is_first)[0];
        assert!((h(1.0, true) / 0.9 - 1.0).abs() < 1.4e-4);
        assert_eq!([h(0.0, true), h(0.0, false)], [6.0, 1.0]);
        assert_eq!([h(1e30, true), h(f64::NAN, true)], [1.0 / 3.0, 0.1]);
        // α = 1/5 − 3/4·0.04 = 0.17 on this error, β on the last; the memory keeps at least 1e-4.
        let [h, last_error] = next(&dopri5, [1.0, 0.01], 0.5, true);
        assert!((h / (0.9 * 0.5f64.powf(-0.17) * 0.01f64.powf(0.04)) - 1.0).abs() < 3e-4);
        assert_eq!(last_error, 0.5);
        assert_eq!(next(&dopri5, [h, last_error], 0.0, true)[1], 1e-4);
        assert!(next(&dopri5, [1.0, 1.0], 1.001, true)[0] < 0.9, "a rejected step must shrink");
    }

    /// Lengths ℓ that errors ask for, each `ratio` times the one before. Steps are 0.8 of the next
    /// length if lengths decrease, and 0.8 of the last one otherwise.
    #[test]
    fn decreasing_lengths_are_foreseen() {
        let gauss = Controller::new(&StepControl::of_coefficients(16, 6));
        for ratio in [0.7, 0.9, 1.0, 1.2] {
            let (mut memory, mut asked) = ([1.0, 1e-4], 2.0);
            for k in 0..10 {
                // err = (h/ℓ)^(1/α), by which h err^(−α) is ℓ.
                let error = f64::powf(memory[0] / asked, 1.0 / gauss.alpha);
                let (length, is_first, accepted) = (memory[0], true, true);
                let square = error * error;
                memory = gauss.next(memory, JudgedAttempt { length, square, is_first, accepted });
                // Nothing is known before the first step.
                let foreseen = if k == 0 { 1.0 } else { f64::min(ratio, 1.0) };
                // Three rough powers.
                assert!(
                    (memory[0] / (0.8 * asked * foreseen) - 1.0).abs() < 3.0 * 1.4e-4,
                    "{ratio}: step {k}"
                );
                asked *= ratio;
            }
        }
    }
}
