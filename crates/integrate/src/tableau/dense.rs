//! Dense output: the weights b_i(θ) of x(t₀ + θh).

use super::{Tableau, TableauError, check_length, padded};
use holonome_linear::widest::widest;

/// Dense output x(t₀ + θh) = x₀ + h Σ b_i(θ) k_i.
#[derive(Debug)]
pub struct Dense {
    /// Order at every θ in [0, 1].
    pub order: u32,
    /// Index of the stage that is the field at (t₁, x₁).
    pub endpoint: usize,
    /// Number of stages, those of the step included.
    pub stages: usize,
    b: Vec<f64>,
    d: Vec<Vec<f64>>,
}

impl Dense {
    /// Dense output of this order, with the terms `d` above Hermite's cubic.
    pub(super) fn new(tableau: &Tableau, order: u32, d: &[&[f64]]) -> Result<Dense, TableauError> {
        let stages = tableau.a.len();
        for (row, d) in d.iter().enumerate() {
            check_length("dense output", row, d.len(), stages)?;
        }
        let b = padded(&tableau.b, stages);
        let endpoint = if tableau.first_same_as_last {
            tableau.stages - 1
        } else {
            // Searched among the extra stages: the field at x₁ is not a stage of the step.
            let is_endpoint = |&i: &usize| padded(&tableau.a[i], stages) == b;
            (tableau.stages..stages).find(is_endpoint).ok_or(TableauError::NoEndpoint)?
        };
        let d = d.iter().map(|d| padded(d, stages)).collect();
        Ok(Dense { order, endpoint, stages, b, d })
    }

    /// Degree of the b_i.
    pub fn degree(&self) -> usize {
        3 + self.d.len()
    }

    /// True if b_i(θ) does not vanish identically.
    pub fn uses(&self, i: usize) -> bool {
        i == 0 || i == self.endpoint || self.b[i] != 0.0 || self.d.iter().any(|d| d[i] != 0.0)
    }

    /// b_i(θ), for every stage i.
    pub fn weights(&self, theta: f64, out: &mut [f64]) {
        self.combine::<1>([theta], (1, out), 1.0, |d| d);
    }

    /// b_i(θ) for every stage i and up to 8 values of θ: that of θ_k stands at `i * lanes + k`.
    ///
    /// # Panics
    /// If there are more values, or `out` is too short.
    pub fn weights_in_lanes(&self, theta: &[f64], lanes: usize, out: &mut [f64]) {
        if let Ok(all) = <[f64; 8]>::try_from(theta) {
            return widest(
                #[inline(always)]
                || self.combine(all, (lanes, out), 1.0, |d| d),
            );
        }
        for (k, &theta) in theta.iter().enumerate() {
            self.combine([theta], (lanes, &mut out[k..]), 1.0, |d| d);
        }
    }

    /// Scale of the round-off of b_i(θ).
    pub(super) fn magnitudes(&self, theta: f64, out: &mut [f64]) {
        self.combine([theta], (1, out), -1.0, f64::abs);
    }

    /// Combine Hermite's cubic (HNW II.6 (6.7)), with x₁ − x₀ = hΣ b_i k_i, and the terms above it:
    /// b_i(θ) = θ b_i + θϑ(δ_i,first − b_i) + θ²ϑ(2b_i − δ_i,first − δ_i,last) + θ²ϑ² d_0i + θ³ϑ²
    /// d_1i + …; `minus` = −1 turns its differences into sums.
    #[inline(always)]
    fn combine<const N: usize>(
        &self,
        theta: [f64; N],
        (lanes, out): (usize, &mut [f64]),
        minus: f64,
        map: impl Fn(f64) -> f64,
    ) {
        let rest = theta.map(|theta| 1.0 - theta);
        for (i, &b) in self.b.iter().enumerate() {
            let (b, first, last) =
                (map(b), f64::from(u8::from(i == 0)), f64::from(u8::from(i == self.endpoint)));
            let (start, slope) = (first - minus * b, 2.0 * b - minus * first - minus * last);
            for (k, out) in out[i * lanes..][..N].iter_mut().enumerate() {
                let hermite = rest[k] * (start + theta[k] * slope);
                *out = theta[k] * (b + hermite);
            }
        }
        let mut factor: [f64; N] = std::array::from_fn(|k| theta[k] * theta[k] * rest[k] * rest[k]);
        for (row, d) in self.d.iter().enumerate() {
            for (i, d) in d.iter().map(|d| map(*d)).enumerate().filter(|(_, d)| *d != 0.0) {
                let out = &mut out[i * lanes..][..N];
                out.iter_mut().zip(factor).for_each(|(out, factor)| *out += factor * d);
            }
            let next = if row % 2 == 0 { theta } else { rest };
            factor.iter_mut().zip(next).for_each(|(factor, next)| *factor *= next);
        }
    }
}
