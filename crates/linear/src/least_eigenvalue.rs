//! Test of whether all eigenvalues of a matrix exceed a number s, and search for the smallest if
//! not, by the signs of the pivots of A − s (Sylvester's law of inertia; Parlett, The Symmetric
//! Eigenvalue Problem, 1998, 3.3).
//!
//! A need not be symmetric, but must be M + K times M⁻¹ with symmetric matrices and a positive
//! definite M, so that its eigenvalues are real. For a diagonal M the pivots of A − s are those of
//! a symmetric matrix with the same eigenvalues, and the answer is exact. For another M only the
//! sign of the determinant is reliable: an even number of eigenvalues below s is not detected.

use crate::unpivoted::Unpivoted;

/// Pattern of entries whose eigenvalues are tested; it holds no numbers.
#[derive(Clone, Debug)]
pub struct LeastEigenvalue {
    n: usize,
    entries: Vec<(u32, u32)>,
    /// True if the pivots are those of a symmetric matrix.
    symmetric: bool,
    /// True if Gershgorin's discs are looked at first.
    discs: bool,
    solver: Unpivoted,
    /// Places of the entries and of the diagonal among the solver's values.
    places: Vec<u32>,
    diagonal: Vec<u32>,
}

/// Accuracy of a found eigenvalue λ, relative to max(1, |λ|).
const ACCURACY: f64 = 1e-4;

impl LeastEigenvalue {
    /// Tester for matrices of size `n` with these (row, column) entries; `symmetric` means that M
    /// is diagonal.
    pub fn new(n: usize, entries: &[(u32, u32)], symmetric: bool) -> LeastEigenvalue {
        let solver = Unpivoted::new(n, entries);
        LeastEigenvalue {
            n,
            entries: entries.to_vec(),
            symmetric,
            discs: false,
            places: entries.iter().map(|&(i, j)| solver.place(i, j)).collect(),
            diagonal: (0..n as u32).map(|i| solver.place(i, i)).collect(),
            solver,
        }
    }

    /// The tester for large matrices: it eliminates only where Gershgorin's discs do not answer,
    /// which takes no longer than reading the entries.
    pub fn by_discs_first(self) -> LeastEigenvalue {
        LeastEigenvalue { discs: true, ..self }
    }

    /// Places of the entries among the values of an [`Unpivoted`] for the same entries.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// True if any number of eigenvalues below s is detected.
    pub fn is_exact(&self) -> bool {
        self.symmetric
    }

    /// Length of the scratch needed.
    pub fn work_len(&self) -> usize {
        self.n + self.solver.values() + self.solver.work_len()
    }

    /// True if all eigenvalues of the matrix with these values of its entries exceed `s`.
    pub fn exceeds(&self, values: &[f64], s: f64, work: &mut [f64]) -> bool {
        let (right, work) = work.split_at_mut(self.n);
        if self.discs {
            self.put_discs(values, right);
            if right.iter().all(|&disc| disc > s) {
                return true;
            }
        }
        let (a, work) = work.split_at_mut(self.solver.values());
        right.fill(0.0);
        a.fill(0.0);
        for (&place, &value) in self.places.iter().zip(values) {
            a[place as usize] += value;
        }
        for &place in &self.diagonal {
            a[place as usize] -= s;
        }
        let pivots = self.solver.solve(a, right, work);
        if self.symmetric { pivots.positive } else { !pivots.negative }
    }

    /// Eigenvalue below `s`, the smallest one if the answers are exact. Call it only if
    /// [`LeastEigenvalue::exceeds`] is false for `s`.
    pub fn find(&self, values: &[f64], s: f64, work: &mut [f64]) -> f64 {
        let discs = &mut work[..self.n];
        self.put_discs(values, discs);
        let (mut low, mut high) = (discs.iter().fold(s, |low: f64, &disc| low.min(disc)), s);
        while high - low > ACCURACY * low.abs().max(1.0) {
            let middle = 0.5 * (low + high);
            match self.exceeds(values, middle, work) {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    }

    /// Lower ends of Gershgorin's discs, below all of which there is no eigenvalue.
    fn put_discs(&self, values: &[f64], discs: &mut [f64]) {
        discs.fill(0.0);
        for (&(i, j), &value) in self.entries.iter().zip(values) {
            discs[i as usize] += if i == j { value } else { -value.abs() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I + c times second differences, whose eigenvalues are −2 + 2 cos(kπ/(n + 1)).
    fn chain(n: usize, c: f64) -> (Vec<(u32, u32)>, Vec<f64>) {
        let mut entries = Vec::new();
        let mut values = Vec::new();
        for i in 0..n {
            for j in i.saturating_sub(1)..=(i + 1).min(n - 1) {
                entries.push((i as u32, j as u32));
                values.push(if i == j { 1.0 - 2.0 * c } else { c });
            }
        }
        (entries, values)
    }

    #[test]
    fn the_smallest_eigenvalue_is_found() {
        for n in [1, 2, 3, 8, 9, 30] {
            for c in [0.01, 0.1, 0.2, 0.3, 2.0, -0.3] {
                let (entries, values) = chain(n, c);
                let least = LeastEigenvalue::new(n, &entries, true);
                let first = least.clone().by_discs_first();
                let mut work = vec![f64::NAN; least.work_len()];
                let of = |k: usize| {
                    1.0 - 2.0 * c
                        + 2.0 * c * (k as f64 * std::f64::consts::PI / (n + 1) as f64).cos()
                };
                let expected = (1..=n).map(of).fold(f64::INFINITY, f64::min);
                assert!(least.exceeds(&values, expected - 1e-9, &mut work), "{n} {c}");
                assert!(!least.exceeds(&values, expected + 1e-9, &mut work), "{n} {c}");
                for s in [-3.0, 0.1, expected - 1e-9, expected + 1e-9, 2.0] {
                    let exceeds = least.exceeds(&values, s, &mut work);
                    assert_eq!(first.exceeds(&values, s, &mut work), exceeds, "{n} {c} {s}");
                }
                let found = least.find(&values, expected + 0.5, &mut work);
                assert!(
                    (found - expected).abs() <= ACCURACY * expected.abs().max(1.0),
                    "{n} {c}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn matrices_need_not_be_symmetric() {
        let (entries, values) = (vec![(0, 0), (0, 1), (1, 0), (1, 1)], vec![2.0, 0.5, 1.5, 1.0]);
        // λ² − 3λ + 1.25 = 0: λ = 0.5 and 2.5.
        for symmetric in [true, false] {
            let least = LeastEigenvalue::new(2, &entries, symmetric);
            let mut work = vec![f64::NAN; least.work_len()];
            assert!(
                least.exceeds(&values, 0.499, &mut work)
                    && !least.exceeds(&values, 0.501, &mut work)
            );
            assert!((least.find(&values, 0.9, &mut work) - 0.5).abs() <= ACCURACY);
        }
        // Two eigenvalues below s are invisible to the determinant, one is not.
        let least = LeastEigenvalue::new(2, &entries, false);
        assert!(least.exceeds(&values, 2.6, &mut vec![0.0; least.work_len()]));
    }
}
