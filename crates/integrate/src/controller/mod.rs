//! Step-size control: the error norm, the choice of the first step, and the step after an attempt.

pub mod pi;
pub mod start;

/// How accurate a step is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the state's components.
    pub relative: f64,
    /// Absolute.
    pub absolute: f64,
}

/// The error of an attempted step in units of the tolerance: the root mean square of e_i/(atol + rtol·max(|x₀|, |x₁|)),
/// HNW II.4 (4.11). `errors` are Σ e_i k_i without their factor h. Two estimates e₅, e₃ are combined as in Hairer's
/// `dop853.f` (HNW II.10 (10.17)): |h| e₅²/√(e₅² + 0.01 e₃²).
pub fn error_norm(h: f64, errors: &[Vec<f64>], x0: &[f64], x1: &[f64], tolerance: Tolerance) -> f64 {
    match errors {
        [e5, e3] => {
            let (s5, s3) = (squares(e5, x0, x1, tolerance), squares(e3, x0, x1, tolerance));
            h.abs() * (s5 / ((0.01f64.mul_add(s3, s5) + f64::MIN_POSITIVE) * x0.len() as f64).sqrt())
        }
        [e] => h.abs() * scaled_norm(e, x0, x1, tolerance),
        _ => 0.0,
    }
}

/// Root mean square of v_i/(atol + rtol·max(|x₀|, |x₁|)), NaN where v is.
pub(crate) fn scaled_norm(v: &[f64], x0: &[f64], x1: &[f64], tolerance: Tolerance) -> f64 {
    (squares(v, x0, x1, tolerance) / v.len().max(1) as f64).sqrt()
}

/// Σ (v_i/(atol + rtol·max(|x₀|, |x₁|)))², in four sums over every fourth i: the next step waits for this number.
fn squares(v: &[f64], x0: &[f64], x1: &[f64], tolerance: Tolerance) -> f64 {
    // With atol = 0 a component may have no scale at all; it is exact if it has no error either, and 0 over the
    // smallest number is 0.
    let least = tolerance.absolute + f64::MIN_POSITIVE;
    let mut sums = [0.0; 4];
    for i in 0..v.len() {
        let ratio = v[i] / tolerance.relative.mul_add(x0[i].abs().max(x1[i].abs()), least);
        sums[i % 4] = ratio.mul_add(ratio, sums[i % 4]);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerance(relative: f64, absolute: f64) -> Tolerance {
        Tolerance { relative, absolute }
    }

    #[test]
    fn norms_scale_and_keep_nan() {
        // (3/1, 4/1) with atol = 1, rtol = 0: √((9 + 16)/2).
        assert_eq!(scaled_norm(&[3.0, 4.0], &[9.0; 2], &[7.0; 2], tolerance(0.0, 1.0)), 12.5f64.sqrt());
        // The larger of |x0|, |x1| counts: (2/4)².
        assert_eq!(scaled_norm(&[2.0], &[-4.0], &[1.0], tolerance(1.0, 0.0)), 0.5);
        assert_eq!(scaled_norm(&[0.0], &[0.0], &[0.0], tolerance(1.0, 0.0)), 0.0);
        assert_eq!(scaled_norm(&[1.0], &[0.0], &[0.0], tolerance(1.0, 0.0)), f64::INFINITY);
        assert!(scaled_norm(&[f64::NAN], &[1.0], &[1.0], tolerance(1.0, 0.0)).is_nan());
    }

    #[test]
    fn two_estimates_combine_as_in_dop853() {
        let found = error_norm(0.5, &[vec![3.0], vec![40.0]], &[0.0], &[0.0], tolerance(0.0, 1.0));
        // √(9 + 0.01·1600) = 5; four operations round.
        assert!((found - 0.5 * 9.0 / 5.0).abs() < 4.0 * f64::EPSILON);
        assert_eq!(error_norm(0.5, &[vec![0.0], vec![0.0]], &[0.0], &[0.0], tolerance(0.0, 1.0)), 0.0);
    }
}
