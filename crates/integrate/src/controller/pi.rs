//! The proportional-integral controller of Hairer and Wanner (HW IV.2 (2.43), as in `dopri5.f` and `dop853.f`):
//!
//! h_new = h · safety · err_n^(−α) · err_{n−1}^β,  α = 1/q − ¾β,
//!
//! with q one more than the order of the error estimate and the factor kept within limits.

use crate::state::ControllerMemory;
use crate::tableau::Tableau;

/// The controller's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controller {
    alpha: f64,
    beta: f64,
    safety: f64,
    shrink: f64,
    grow: f64,
}

/// A zero error must not divide; its step grows by the limit anyway.
const LEAST_ERROR: f64 = 1e-10;

/// After an attempt that is not a number at all, the error says nothing.
const SHRINK_BLINDLY: f64 = 0.1;

impl Controller {
    /// Hairer's constants: β = 0.04 and factors within [0.2, 10], for high orders β = 0 and [1/3, 6].
    pub fn new(tableau: &Tableau) -> Controller {
        let high = tableau.order >= 8;
        let beta = if high { 0.0 } else { 0.04 };
        // Two estimates e₅²/√(e₅² + 0.01e₃²) together behave as one of order 7.
        let estimate =
            if tableau.error.len() == 2 { 7 } else { tableau.error.iter().map(|e| e.order).max().unwrap_or(0) };
        Controller {
            alpha: 1.0 / f64::from(estimate + 1) - 0.75 * beta,
            beta,
            safety: 0.9,
            shrink: if high { 1.0 / 3.0 } else { 0.2 },
            grow: if high { 6.0 } else { 10.0 },
        }
    }

    /// The step after one of length `h` was accepted with this error; `rejected` says whether it took several attempts,
    /// after which the step does not grow.
    pub fn accepted(&self, memory: &mut ControllerMemory, h: f64, error: f64, rejected: bool) {
        let error = error.max(LEAST_ERROR);
        let mut factor = self.safety * inverse_power(error, self.alpha);
        if self.beta != 0.0 {
            factor *= memory.last_error.powf(self.beta);
        }
        let most = if rejected { 1.0 } else { self.grow };
        memory.h = h * factor.clamp(self.shrink, most);
        memory.last_error = error.max(1e-4);
    }

    /// The step to try after one of length `h` was rejected.
    pub fn rejected(&self, h: f64, error: f64) -> f64 {
        if error.is_finite() {
            h * (self.safety * inverse_power(error, self.alpha)).clamp(self.shrink, 1.0)
        } else {
            h * SHRINK_BLINDLY
        }
    }
}

/// error^(−α).
fn inverse_power(error: f64, alpha: f64) -> f64 {
    if alpha == 0.125 { inverse_eighth_root(error) } else { error.powf(-alpha) }
}

/// error^(−1/8) for normal numbers, within 1e-4: DOP853's exponent. The next step cannot begin before it is known, and
/// this takes half the time of three square roots and a division.
fn inverse_eighth_root(error: f64) -> f64 {
    // The bits of a number are nearly its logarithm. The constant, 9/8 of those of 1 and a fraction that balances the
    // errors of either sign, makes that a root within 3 %, whose error two steps of Newton's method square.
    let mut root = f64::from_bits(0x47ed_23d7_0a3d_70a4 - (error.to_bits() >> 3));
    for _ in 0..2 {
        let square = root * root;
        let fourth = square * square;
        root *= 1.125 - 0.125 * error * (fourth * fourth);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme;

    fn accepted(controller: &Controller, error: f64, rejected: bool) -> f64 {
        let mut memory = ControllerMemory { h: 1.0, last_error: 1.0 };
        controller.accepted(&mut memory, 1.0, error, rejected);
        memory.h
    }

    #[test]
    fn the_root_is_good_to_four_digits() {
        // Over all sizes of error that are not at a limit of the factor, and far beyond.
        for k in -20_000..20_000 {
            let error = (0.03 * f64::from(k)).exp();
            assert!((inverse_eighth_root(error) / error.powf(-0.125) - 1.0).abs() < 1e-4, "{error:e}");
        }
    }

    #[test]
    fn factors_are_hairers() {
        let dopri5 = Controller::new(scheme::dopri5::tableau());
        assert_eq!((dopri5.alpha, dopri5.beta), (0.2 - 0.75 * 0.04, 0.04));
        let dop853 = Controller::new(scheme::dop853::tableau());
        assert_eq!((dop853.alpha, dop853.beta), (0.125, 0.0));
        assert!((accepted(&dop853, 1.0, false) / 0.9 - 1.0).abs() < 1e-4);
        assert_eq!(accepted(&dop853, 0.0, false), 6.0);
        assert_eq!(accepted(&dop853, 0.0, true), 1.0);
        assert_eq!(dop853.rejected(1.0, 1e30), 1.0 / 3.0);
        assert_eq!(dop853.rejected(1.0, f64::NAN), 0.1);
        // α = 1/5 − 3/4·0.04 = 0.17 on this error, β on the last; the memory keeps at least 1e-4.
        let mut memory = ControllerMemory { h: 1.0, last_error: 0.01 };
        dopri5.accepted(&mut memory, 1.0, 0.5, false);
        assert_eq!(memory.h, 0.9 * 0.5f64.powf(-0.17) * 0.01f64.powf(0.04));
        assert_eq!(memory.last_error, 0.5);
        dopri5.accepted(&mut memory, 1.0, 0.0, false);
        assert_eq!(memory.last_error, 1e-4);
        assert!(dopri5.rejected(1.0, 1.001) < 0.9, "a rejected step must shrink");
    }
}
