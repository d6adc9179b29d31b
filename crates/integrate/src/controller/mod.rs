//! Step-size control: the error norm, the choice of the first step, and the step after an attempt.

pub mod pi;
pub mod start;

/// The error of an attempted step in units of the tolerance: the root mean square of e_i/(atol + rtol·max(|x₀|, |x₁|)),
/// HNW II.4 (4.11). `errors` are Σ e_i k_i without their factor h. Two estimates e₅, e₃ are combined as in Hairer's
/// `dop853.f` (HNW II.10 (10.17)): |h| e₅²/√(e₅² + 0.01 e₃²).
pub fn error_norm(h: f64, errors: &[Vec<f64>], x0: &[f64], x1: &[f64], rtol: f64, atol: f64) -> f64 {
    let norm = |error: &[f64]| scaled_norm(error, x0, x1, rtol, atol);
    match errors {
        [e5, e3] => {
            let (e5, e3) = (norm(e5), norm(e3));
            if e5 == 0.0 { 0.0 } else { h.abs() * e5 * (e5 / e5.hypot(0.1 * e3)) }
        }
        [e] => h.abs() * norm(e),
        _ => 0.0,
    }
}

/// Root mean square of v_i/(atol + rtol·max(|x₀|, |x₁|)), NaN where v is.
pub(crate) fn scaled_norm(v: &[f64], x0: &[f64], x1: &[f64], rtol: f64, atol: f64) -> f64 {
    let mut sum = 0.0;
    for i in 0..v.len() {
        let scale = atol + rtol * x0[i].abs().max(x1[i].abs());
        // With atol = 0 a component may have no scale at all; it is exact if it has no error either.
        let ratio = if v[i] == 0.0 { 0.0 } else { v[i] / scale };
        sum += ratio * ratio;
    }
    (sum / v.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_scale_and_keep_nan() {
        // (3/1, 4/1) with atol = 1, rtol = 0: √((9 + 16)/2).
        assert_eq!(scaled_norm(&[3.0, 4.0], &[9.0; 2], &[7.0; 2], 0.0, 1.0), 12.5f64.sqrt());
        // The larger of |x0|, |x1| counts: (2/4)².
        assert_eq!(scaled_norm(&[2.0], &[-4.0], &[1.0], 1.0, 0.0), 0.5);
        assert_eq!(scaled_norm(&[0.0], &[0.0], &[0.0], 1.0, 0.0), 0.0);
        assert_eq!(scaled_norm(&[1.0], &[0.0], &[0.0], 1.0, 0.0), f64::INFINITY);
        assert!(scaled_norm(&[f64::NAN], &[1.0], &[1.0], 1.0, 0.0).is_nan());
    }

    #[test]
    fn two_estimates_combine_as_in_dop853() {
        let found = error_norm(0.5, &[vec![3.0], vec![40.0]], &[0.0], &[0.0], 0.0, 1.0);
        // √(9 + 0.01·1600) = 5; four operations round.
        assert!((found - 0.5 * 9.0 / 5.0).abs() < 4.0 * f64::EPSILON);
        assert_eq!(error_norm(0.5, &[vec![0.0], vec![0.0]], &[0.0], &[0.0], 0.0, 1.0), 0.0);
    }
}
