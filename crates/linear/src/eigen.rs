//! Eigenvalues of symmetric matrices: all of a small one, the largest of an operator.

/// Compute the eigenvalues of the symmetric n × n matrix `a`, left on its diagonal in no particular
/// order, by cyclic Jacobi rotations (Golub, Van Loan, Matrix Computations, 8.5). Meant for n up to
/// about twenty.
pub fn jacobi(a: &mut [f64], n: usize) {
    // Convergence is quadratic: no matrix of this size takes more than ten sweeps.
    for _sweep in 0..16 {
        let mut off_diagonal = 0.0;
        let mut diagonal = 0.0;
        for i in 0..n {
            diagonal += a[i * n + i] * a[i * n + i];
            off_diagonal += (0..i).map(|j| a[i * n + j] * a[i * n + j]).sum::<f64>();
        }
        if off_diagonal <= (f64::EPSILON * f64::EPSILON) * diagonal || off_diagonal.is_nan() {
            return;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(a, n, p, q);
            }
        }
    }
}

/// Annihilate the entry (p, q).
fn rotate(a: &mut [f64], n: usize, p: usize, q: usize) {
    let apq = a[p * n + q];
    if apq == 0.0 {
        return;
    }
    let tau = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
    let tan = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let cos = 1.0 / (1.0 + tan * tan).sqrt();
    let sin = tan * cos;
    for k in 0..n {
        let (akp, akq) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = cos * akp - sin * akq;
        a[k * n + q] = sin * akp + cos * akq;
    }
    for k in 0..n {
        let (apk, aqk) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = cos * apk - sin * aqk;
        a[q * n + k] = sin * apk + cos * aqk;
    }
}

/// Largest eigenvalue of a positive semidefinite operator by power iteration from `direction`,
/// which afterwards holds the last iterate, a start for the next iteration. `apply(v, out)`
/// computes out = A v.
///
/// Stops when the Rayleigh quotient moves by less than `tolerance` relatively, or after `limit`
/// products.
pub fn power_iteration(
    direction: &mut [f64],
    image: &mut [f64],
    tolerance: f64,
    limit: u32,
    mut apply: impl FnMut(&[f64], &mut [f64]),
) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let start = norm(direction);
    direction.iter_mut().for_each(|v| *v /= start);
    let mut quotient = 0.0;
    for _ in 0..limit {
        apply(direction, image);
        let next: f64 = direction.iter().zip(image.iter()).map(|(v, w)| v * w).sum();
        let length = norm(image);
        // A zero image means a zero quotient; NaN must come out, not loop.
        if length == 0.0 || length.is_nan() {
            return next;
        }
        for (v, w) in direction.iter_mut().zip(image.iter()) {
            *v = w / length;
        }
        if (next - quotient).abs() <= tolerance * next {
            return next;
        }
        quotient = next;
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Second-difference matrix, with eigenvalues 2 − 2cos(kπ/(n + 1)).
    fn chain(n: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        (0..n * n).map(|ij| entry(ij / n, ij % n)).collect()
    }

    #[test]
    fn jacobi_finds_the_spectrum_of_a_chain() {
        let n = 9;
        let mut a = chain(n);
        jacobi(&mut a, n);
        let mut found: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
        found.sort_by(f64::total_cmp);
        for (k, found) in (1..).zip(found) {
            let exact = 2.0 - 2.0 * (f64::from(k) * std::f64::consts::PI / (n as f64 + 1.0)).cos();
            // Backward error of a few ε‖A‖ per sweep: 9 rotations deep, ‖A‖ ≤ 4.
            assert!((found - exact).abs() < 1e-14, "{found} {exact}");
        }
    }

    #[test]
    fn power_iteration_agrees_with_jacobi() {
        let n = 9;
        let a = chain(n);
        let mut direction: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
        let mut image = vec![0.0; n];
        let found = power_iteration(&mut direction, &mut image, 1e-9, 10_000, |v, out| {
            for i in 0..n {
                out[i] = (0..n).map(|j| a[i * n + j] * v[j]).sum();
            }
        });
        let exact = 2.0 - 2.0 * (9.0 * std::f64::consts::PI / 10.0).cos();
        // Quotients grow towards the eigenvalue at the rate q = (λ₂/λ₁)² = (3.618/3.902)² = 0.86
        // per product, so a last move of 1e-9 leaves at most 1e-9·q/(1 − q) = 6e-9.
        assert!(found <= exact + 1e-14 && exact - found < 1e-8 * exact, "{found} {exact}");
    }
}
