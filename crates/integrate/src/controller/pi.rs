//! The proportional-integral controller of Hairer and Wanner (HW IV.2 (2.43), as in `dopri5.f` and
//! `dop853.f`):
//!
//! h_new = h · safety · err_n^(−α) · err_{n−1}^β,  α = 1/q − ¾β,
//!
//! with q one more than the order of the error estimate and the factor kept within limits. Powers
//! are approximate ([`rough_power`]), as the error itself is an estimate.
//!
//! With extrapolation (Gustafsson, ACM Trans. Math. Softw. 20 (1994) 496), decreasing lengths ℓ_n =
//! h_n err_n^(−α) that errors ask for are taken to go on decreasing: h_new = safety ℓ_n · min(1,
//! ℓ_n/ℓ_{n−1}).

use super::StepControl;
use crate::exact;
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
}

/// Smallest error that enters a power: a zero error must not divide, and its step grows by the
/// limit anyway.
pub const LEAST_ERROR: f64 = 1e-10;

/// Smallest error that is carried to the next step.
pub const LEAST_LAST_ERROR: f64 = 1e-4;

impl Controller {
    /// Controller for `control` with Hairer's constants: β = 0.04 and factors within [0.2, 10], for
    /// high orders β = 0 and [1/3, 6].
    pub fn new(control: &StepControl) -> Controller {
        let StepControl { order, estimate, finds_length, foresees, .. } = *control;
        let high = order >= 8;
        let beta = if high { 0.0 } else { 0.04 };
        Controller {
            alpha: 1.0 / f64::from(estimate + 1) - 0.75 * beta,
            beta,
            safety: control.safety,
            blind: control.blind,
            shrink: if high { 1.0 / 3.0 } else { 0.2 },
            grow: control.grow.min(if high { 6.0 } else { 10.0 }),
            finds_length,
            foresees,
        }
    }

    /// Set the step after an accepted one of length `h` with this error. `rejected` is true if the
    /// step took several attempts; the next one then does not grow.
    pub fn accepted(&self, memory: &mut ControllerMemory, h: f64, error: f64, rejected: bool) {
        let error = error.max(LEAST_ERROR);
        let part = rough_power(error, -self.alpha);
        let mut factor = self.safety * part;
        if self.beta != 0.0 {
            factor *= rough_power(memory.last_error, self.beta);
        }
        let (wished, before) = (h * part, memory.last_error * memory.h);
        if self.foresees && wished < before {
            factor *= wished / before;
        }
        let most = if rejected { 1.0 } else { self.grow };
        let factor = if self.finds_length { most } else { factor.clamp(self.shrink, most) };
        memory.h = h * factor;
        memory.last_error = if self.foresees { part / factor } else { error.max(LEAST_LAST_ERROR) };
    }

    /// Step to try after one of length `h` was rejected.
    pub fn rejected(&self, h: f64, error: f64) -> f64 {
        if error.is_finite() {
            h * (self.safety * rough_power(error, -self.alpha)).clamp(self.shrink, 1.0)
        } else {
            h * self.blind
        }
    }
}

/// Approximation of aᵇ within 1.4e-4, relative, for a positive, normal a and |b| ≤ 1. Equals
/// `holonome_model::graph::primitive::rough_power` in a compiled loop bit for bit; its constants
/// are explained there.
pub fn rough_power(a: f64, b: f64) -> f64 {
    const LOGARITHM: [f64; 5] = [
        -2.5128546239059855,
        4.070090791858758,
        -2.120675131120078,
        0.6451423635899062,
        -0.08161580849841568,
    ];
    const EXPONENTIAL: [f64; 4] =
        [0.9999280735394012, 0.6932609854606553, 0.2426111221932161, 0.05517166905792616];
    const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
    let k = (a.to_bits() >> 52) as f64 - 1023.0;
    let f = f64::from_bits(a.to_bits() & ((1 << 52) - 1) | 1f64.to_bits());
    let [c0, c1, c2, c3, c4] = LOGARITHM;
    let square = f * f;
    let y = b * (c4.mul_add(square, c3.mul_add(f, c2)).mul_add(square, c1.mul_add(f, c0)) + k);
    let moved = y + ROUNDING;
    let r = y - (moved - ROUNDING);
    let [c0, c1, c2, c3] = EXPONENTIAL;
    let power = c3.mul_add(r, c2).mul_add(r * r, c1.mul_add(r, c0));
    f64::from_bits(power.to_bits().wrapping_add(moved.to_bits() << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(controller: &Controller, error: f64, rejected: bool) -> f64 {
        let mut memory = ControllerMemory { h: 1.0, last_error: 1.0 };
        controller.accepted(&mut memory, 1.0, error, rejected);
        memory.h
    }

    #[test]
    fn rough_powers_are_good_to_four_digits() {
        // Over all sizes of error that are not at a limit of the factor, and far beyond.
        for k in -20_000..20_000 {
            let error = (0.03 * f64::from(k)).exp();
            for exponent in [-0.125, -0.17, 0.04] {
                let rough = rough_power(error, exponent);
                assert!((rough / error.powf(exponent) - 1.0).abs() < 1.4e-4, "{error:e}");
            }
        }
    }

    #[test]
    fn factors_are_hairers() {
        let dopri5 = Controller::new(&StepControl::of_error(5, 4));
        assert_eq!((dopri5.alpha, dopri5.beta), (0.2 - 0.75 * 0.04, 0.04));
        let dop853 = Controller::new(&StepControl::of_error(8, 7));
        assert_eq!((dop853.alpha, dop853.beta), (0.125, 0.0));
        assert!((accepted(&dop853, 1.0, false) / 0.9 - 1.0).abs() < 1.4e-4);
        assert_eq!(accepted(&dop853, 0.0, false), 6.0);
        assert_eq!(accepted(&dop853, 0.0, true), 1.0);
        assert_eq!(dop853.rejected(1.0, 1e30), 1.0 / 3.0);
        assert_eq!(dop853.rejected(1.0, f64::NAN), 0.1);
        // α = 1/5 − 3/4·0.04 = 0.17 on this error, β on the last; the memory keeps at least 1e-4.
        let mut memory = ControllerMemory { h: 1.0, last_error: 0.01 };
        dopri5.accepted(&mut memory, 1.0, 0.5, false);
        assert!((memory.h / (0.9 * 0.5f64.powf(-0.17) * 0.01f64.powf(0.04)) - 1.0).abs() < 3e-4);
        assert_eq!(memory.last_error, 0.5);
        dopri5.accepted(&mut memory, 1.0, 0.0, false);
        assert_eq!(memory.last_error, 1e-4);
        assert!(dopri5.rejected(1.0, 1.001) < 0.9, "a rejected step must shrink");
    }

    /// Lengths ℓ that errors ask for, each `ratio` times the one before. Steps are 0.8 of the next
    /// length if lengths decrease, and 0.8 of the last one otherwise.
    #[test]
    fn decreasing_lengths_are_foreseen() {
        let gauss = Controller::new(&StepControl::of_coefficients(16, 6));
        for ratio in [0.7, 0.9, 1.0, 1.2] {
            let (mut memory, mut asked) = (ControllerMemory { h: 1.0, last_error: 1e-4 }, 2.0);
            for k in 0..10 {
                let h = memory.h;
                // err = (h/ℓ)^(1/α), by which h err^(−α) is ℓ.
                gauss.accepted(&mut memory, h, f64::powf(h / asked, 1.0 / gauss.alpha), false);
                // Nothing is known before the first step.
                let foreseen = if k == 0 { 1.0 } else { f64::min(ratio, 1.0) };
                // Three rough powers.
                assert!(
                    (memory.h / (0.8 * asked * foreseen) - 1.0).abs() < 3.0 * 1.4e-4,
                    "{ratio}: step {k}"
                );
                asked *= ratio;
            }
        }
    }
}
