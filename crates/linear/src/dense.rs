//! Dense symmetric factorisations for matrices of up to a few hundred rows, stored row by row in n²
//! numbers. They read the lower triangle only.

/// Largest pivot that counts as zero, relative to the square of its row: pivots of rows of unit
/// length are squared sines of an angle to the rows before, and their round-off is about m·ε ≤ 1e-12
/// for a few thousand rows.
pub const PIVOT_TOLERANCE: f64 = 1e-12;

/// Part of its square that is added to the diagonal of a row that may depend on others, as on a
/// conical pendulum. Between 1e-12 and 1e-8 it makes no difference if there are no such rows.
pub const REGULARISATION: f64 = 1e-8;

/// Overwrite the lower triangle of the positive semidefinite `a` by L (unit diagonal, not stored)
/// and D of A = L D Lᵀ.
///
/// A pivot of at most `tolerance` means that its row depends on the rows before. It becomes
/// infinite, which makes that row's part of a solution 0.
pub fn ldl_factor(a: &mut [f64], n: usize, tolerance: f64) {
    for i in 0..n {
        // The leading zeros of a row stay zero: of a band only the entries within it are read.
        let first = a[i * n..i * n + i].iter().take_while(|entry| **entry == 0.0).count();
        for j in first..=i {
            let mut sum = a[i * n + j];
            for k in (first..j).filter(|k| a[k * n + k] != f64::INFINITY) {
                sum -= a[i * n + k] * a[j * n + k] * a[k * n + k];
            }
            a[i * n + j] = if i > j {
                sum / a[j * n + j]
            } else if sum <= tolerance {
                f64::INFINITY
            } else {
                sum
            };
        }
    }
}

/// Solve A x = b in place with the factors of [`ldl_factor`].
pub fn ldl_solve(factors: &[f64], n: usize, b: &mut [f64]) {
    ldl_solve_limited(factors, n, b, (n, 0), f64::INFINITY);
}

/// Solve like [`ldl_solve`], but scale (L⁻¹b)_i of the rows i ≥ `first` down so that ν ≤ `limit`.
/// Here ν² is the sum of (L⁻¹b)_i²/D_i over these rows, divided by `count`, the number of them that
/// count. Returns the sum over the rows before, and ν² before scaling, each 0 without such rows.
pub fn ldl_solve_limited(
    factors: &[f64],
    n: usize,
    b: &mut [f64],
    (first, count): (usize, usize),
    limit: f64,
) -> [f64; 2] {
    for i in 0..n {
        for k in 0..i {
            b[i] -= factors[i * n + k] * b[k];
        }
    }
    let (mut before, mut sum) = (0.0, 0.0);
    for i in 0..n {
        let y = b[i];
        b[i] /= factors[i * n + i];
        match i < first {
            true => before += y * b[i],
            false => sum += y * b[i],
        }
    }
    let square = sum / count.max(1) as f64;
    if square > limit * limit {
        let factor = limit / square.sqrt();
        b[first..].iter_mut().for_each(|b| *b *= factor);
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            b[i] -= factors[k * n + i] * b[k];
        }
    }
    [before, square]
}

/// Cholesky with complete pivoting of a positive semidefinite matrix, which stops at its numerical
/// rank.
///
/// Rows beyond the rank depend on the others: their part of a solution is zero. That keeps the
/// range of the matrix, which is all that a least-norm correction DFᵀμ needs.
#[derive(Clone, Debug)]
pub struct PivotedCholesky {
    n: usize,
    rank: usize,
    /// Row i is the factor's row of the original row `pivot[i]`.
    l: Vec<f64>,
    pivot: Vec<usize>,
    permuted: Vec<f64>,
}

impl PivotedCholesky {
    /// Create room for an n × n matrix.
    pub fn new(n: usize) -> PivotedCholesky {
        PivotedCholesky {
            n,
            rank: 0,
            l: vec![0.0; n * n],
            pivot: (0..n).collect(),
            permuted: vec![0.0; n],
        }
    }

    /// Numerical rank of the last matrix factored.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Factor `a`; a remaining diagonal of at most `tolerance` counts as zero. NaN ends the
    /// factorisation too.
    pub fn factor(&mut self, a: &[f64], tolerance: f64) {
        let n = self.n;
        for i in 0..n {
            self.pivot[i] = i;
            for j in 0..n {
                self.l[i * n + j] = if j <= i { a[i * n + j] } else { a[j * n + i] };
            }
        }
        self.rank = 0;
        for k in 0..n {
            let largest = (k..n)
                .max_by(|&i, &j| self.l[i * n + i].total_cmp(&self.l[j * n + j]))
                .unwrap_or(k);
            let pivot = self.l[largest * n + largest];
            if pivot <= tolerance || pivot.is_nan() {
                break;
            }
            self.exchange(k, largest);
            let diagonal = self.l[k * n + k].sqrt();
            self.l[k * n + k] = diagonal;
            for i in k + 1..n {
                self.l[i * n + k] /= diagonal;
            }
            for i in k + 1..n {
                for j in k + 1..n {
                    self.l[i * n + j] -= self.l[i * n + k] * self.l[j * n + k];
                }
            }
            self.rank = k + 1;
        }
    }

    fn exchange(&mut self, k: usize, other: usize) {
        if k == other {
            return;
        }
        let n = self.n;
        self.pivot.swap(k, other);
        for j in 0..n {
            self.l.swap(k * n + j, other * n + j);
        }
        // The trailing block is kept symmetric and full, so its columns move too; earlier columns
        // are factors.
        for i in k..n {
            self.l.swap(i * n + k, i * n + other);
        }
    }

    /// Rows beyond the rank.
    pub fn left_out(&self) -> &[usize] {
        &self.pivot[self.rank..]
    }

    /// Solve A x = b in place on the rows within the rank; the other components become zero.
    pub fn solve(&mut self, b: &mut [f64]) {
        let (n, rank) = (self.n, self.rank);
        for i in 0..rank {
            let mut sum = b[self.pivot[i]];
            for k in 0..i {
                sum -= self.l[i * n + k] * self.permuted[k];
            }
            self.permuted[i] = sum / self.l[i * n + i];
        }
        for i in (0..rank).rev() {
            let mut sum = self.permuted[i];
            for k in i + 1..rank {
                sum -= self.l[k * n + i] * self.permuted[k];
            }
            self.permuted[i] = sum / self.l[i * n + i];
        }
        b.fill(0.0);
        for i in 0..rank {
            b[self.pivot[i]] = self.permuted[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// B Bᵀ + shift, positive definite for shift > 0, of rank at most `inner` for shift = 0.
    fn gram(b: &[f64], n: usize, inner: usize, shift: f64) -> Vec<f64> {
        let entry = |i: usize, j: usize| {
            (0..inner).map(|k| b[i * inner + k] * b[j * inner + k]).sum::<f64>()
        };
        (0..n * n)
            .map(|ij| entry(ij / n, ij % n) + if ij / n == ij % n { shift } else { 0.0 })
            .collect()
    }

    fn product(a: &[f64], x: &[f64]) -> Vec<f64> {
        a.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    proptest! {
        #[test]
        fn ldl_solves(b in prop::collection::vec(-1.0..1.0f64, 36), x in prop::collection::vec(-1.0..1.0f64, 6)) {
            let a = gram(&b, 6, 6, 0.1);
            let mut solution = product(&a, &x);
            let mut factors = a.clone();
            ldl_factor(&mut factors, 6, 0.0);
            ldl_solve(&factors, 6, &mut solution);
            // ‖A‖ ≤ 36.1 and ‖A⁻¹‖ ≤ 10, so the error is within 361·6·ε·‖x‖·(a few) ≈ 1e-11.
            for (found, x) in solution.iter().zip(&x) {
                prop_assert!((found - x).abs() < 1e-11);
            }
        }

        #[test]
        fn pivoted_cholesky_finds_the_rank(b in prop::collection::vec(-1.0..1.0f64, 18), x in prop::collection::vec(-1.0..1.0f64, 6)) {
            let a = gram(&b, 6, 3, 0.0);
            let right = product(&a, &x);
            let mut cholesky = PivotedCholesky::new(6);
            cholesky.factor(&a, 1e-12);
            prop_assert!(cholesky.rank() <= 3);
            let mut solution = right.clone();
            cholesky.solve(&mut solution);
            prop_assert!(solution.iter().filter(|x| **x != 0.0).count() <= 3);
            // The solution reproduces a right-hand side in the range. A pivot p leaves an error
            // ε‖A‖/p, with p > 1e-12 in the worst case. The pivots of random matrices are usually
            // above 1e-4, which leaves less than 1e-9. A dropped pivot leaves √1e-12·√‖A‖ = 4e-6 of
            // a neglected row.
            for (found, right) in product(&a, &solution).iter().zip(&right) {
                prop_assert!((found - right).abs() < 2e-5);
            }
        }
    }

    #[test]
    fn a_row_of_zeros_is_left_out() {
        let mut cholesky = PivotedCholesky::new(3);
        cholesky.factor(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0], 1e-12);
        let mut b = [1.0, 5.0, 8.0];
        cholesky.solve(&mut b);
        assert_eq!((cholesky.rank(), b), (2, [1.0, 0.0, 2.0]));
    }
}
