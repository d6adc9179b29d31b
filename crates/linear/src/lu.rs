//! Gaussian elimination with scaled partial pivoting, for the Newton matrices of a step: dense for
//! a few unknowns, within the band for many unknowns coupled to near ones only.
//!
//! A pivot is the entry of its column that is largest relative to the scale of its row. That scale
//! is the size of the terms that cancel in the equation, so the unit of an equation has no
//! influence.

use crate::halves::by_halves;
use crate::ordering::{neighbours, reverse_cuthill_mckee};
use crate::widest::widest;

/// Summary of the pivots of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pivots {
    /// Smallest |pivot|; 0 for a singular matrix, NaN for one that holds NaN.
    pub smallest: f64,
    /// Largest |pivot|.
    pub largest: f64,
    /// True if the determinant is negative.
    pub negative: bool,
    /// True if every pivot is positive.
    pub positive: bool,
    /// Hash of the row exchanges: pivots of two matrices are comparable if it is equal.
    pub exchanges: u64,
}

/// Pattern of entries with a way to solve systems of that pattern. It holds no numbers, so threads
/// can share it.
#[derive(Clone, Debug)]
pub struct Elimination {
    n: usize,
    /// Place of each entry in the band, or in the full matrix.
    place: Vec<u32>,
    /// For a band: position of every unknown in the order of elimination, and half the bandwidth.
    band: Option<(Vec<u32>, usize)>,
}

/// Largest number of unknowns for which a full matrix is faster.
const FEW: usize = 8;

impl Elimination {
    /// Elimination for square matrices of size `n` with these (row, column) entries.
    pub fn new(n: usize, entries: &[(u32, u32)]) -> Elimination {
        if n > FEW {
            let order = reverse_cuthill_mckee(&neighbours(n, entries));
            let mut position = vec![0; n];
            for (k, &unknown) in order.iter().enumerate() {
                position[unknown as usize] = k as u32;
            }
            let at = |i: u32| position[i as usize] as usize;
            let half = entries.iter().map(|&(i, j)| at(i).abs_diff(at(j))).max().unwrap_or(0);
            // Pivoting widens the band by half to the right.
            if 3 * half < n {
                let width = 3 * half + 1;
                let place = entries
                    .iter()
                    .map(|&(i, j)| (at(i) * width + at(j) + half - at(i)) as u32)
                    .collect();
                return Elimination { n, place, band: Some((position, half)) };
            }
        }
        let place = entries.iter().map(|&(i, j)| i * n as u32 + j).collect();
        Elimination { n, place, band: None }
    }

    /// Approximate number of multiply-adds of an elimination.
    pub fn operations(&self) -> usize {
        match &self.band {
            None => self.n * self.n * self.n / 3,
            Some((_, half)) => self.n * half * 2 * half,
        }
    }

    /// Length of the scratch that [`Elimination::solve`] needs.
    pub fn work_len(&self) -> usize {
        match &self.band {
            None => self.n * self.n + self.n,
            Some((_, half)) => self.n * (3 * half + 1) + 2 * self.n,
        }
    }

    /// Solve A u = b in place of `b`. `values` are those of A's entries, `sizes` the scales of its
    /// rows.
    pub fn solve(&self, values: &[f64], sizes: &[f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        match &self.band {
            None => {
                let (a, rest) = work.split_at_mut(self.n * self.n);
                let rows = &mut rest[..self.n];
                rows.copy_from_slice(sizes);
                a.fill(0.0);
                for (&place, &value) in self.place.iter().zip(values) {
                    a[place as usize] += value;
                }
                widest(
                    #[inline(always)]
                    || eliminate(a, self.n, rows, b),
                )
            }
            Some((position, half)) => {
                let (a, rest) = work.split_at_mut(self.n * (3 * half + 1));
                let (ordered, rows) = rest[..2 * self.n].split_at_mut(self.n);
                a.fill(0.0);
                for (&place, &value) in self.place.iter().zip(values) {
                    a[place as usize] += value;
                }
                for (&at, (&b, &size)) in position.iter().zip(b.iter().zip(sizes)) {
                    (ordered[at as usize], rows[at as usize]) = (b, size);
                }
                let pivots = eliminate_band(a, *half, rows, ordered);
                for (&at, b) in position.iter().zip(b) {
                    *b = ordered[at as usize];
                }
                pivots
            }
        }
    }
}

impl Pivots {
    /// Pivots before the first one.
    pub const NONE_YET: Pivots = Pivots {
        smallest: f64::INFINITY,
        largest: 0.0,
        negative: false,
        positive: true,
        exchanges: 0,
    };

    /// Record a pivot.
    pub fn take(&mut self, pivot: f64) {
        let size = pivot.abs();
        // NaN is kept.
        self.smallest =
            if size >= self.smallest || self.smallest.is_nan() { self.smallest } else { size };
        self.largest = self.largest.max(size);
        self.negative ^= pivot < 0.0;
        self.positive &= pivot > 0.0;
    }

    /// Summary from the inverses of all pivots: an elimination that records each pivot would wait
    /// for the one before.
    pub fn of_inverses(inverses: &[f64]) -> Pivots {
        // Several of each side by side: a single one would wait for its own result.
        const SIDE: usize = 8;
        let (mut least, mut most, mut odd) =
            ([f64::INFINITY; SIDE], [f64::NEG_INFINITY; SIDE], [0.0; SIDE]);
        let mut take = |k: usize, inverse: f64| {
            least[k] = if inverse < least[k] { inverse } else { least[k] };
            most[k] = if inverse > most[k] { inverse } else { most[k] };
            odd[k] += 0.0 * inverse;
        };
        let (whole, rest) = inverses.as_chunks::<SIDE>();
        for inverses in whole {
            (0..SIDE).for_each(|k| take(k, inverses[k]));
        }
        for (k, inverse) in rest.iter().enumerate() {
            take(k, *inverse);
        }
        let least = by_halves(least, |a, b| if b < a { b } else { a });
        let most = by_halves(most, |a, b| if b > a { b } else { a });
        // The comparisons lose NaN, and 0·∞ is NaN as well.
        let finite = by_halves(odd, |a, b| a + b) == 0.0;
        if finite && (least > 0.0 || most < 0.0) {
            let negative = most < 0.0;
            let [nearest, farthest] = if negative { [-most, -least] } else { [least, most] };
            return Pivots {
                smallest: 1.0 / farthest,
                largest: 1.0 / nearest,
                negative: negative && !inverses.len().is_multiple_of(2),
                exchanges: 0,
                positive: !negative,
            };
        }
        let mut pivots = Pivots::NONE_YET;
        inverses.iter().for_each(|&inverse| pivots.take(1.0 / inverse));
        pivots
    }

    /// Record the exchange of rows `k` and `best`.
    fn exchange(&mut self, k: usize, best: usize) {
        self.negative = !self.negative;
        // An odd factor loses none of the earlier exchanges.
        self.exchanges = self
            .exchanges
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add((k as u64) << 32 | best as u64);
    }
}

/// Size of an entry relative to its row's scale. In a row of scale 0, where nothing cancels, any
/// entry is large.
fn weight(entry: f64, size: f64) -> f64 {
    if entry == 0.0 { 0.0 } else { entry.abs() / size }
}

/// Solve a dense system in place; `a` and the `sizes` of its rows are overwritten.
#[inline(always)]
fn eliminate(a: &mut [f64], n: usize, sizes: &mut [f64], b: &mut [f64]) -> Pivots {
    let mut pivots = Pivots::NONE_YET;
    for k in 0..n {
        let mut best = k;
        for i in k + 1..n {
            if weight(a[i * n + k], sizes[i]) > weight(a[best * n + k], sizes[best]) {
                best = i;
            }
        }
        if best != k {
            for j in k..n {
                a.swap(k * n + j, best * n + j);
            }
            b.swap(k, best);
            sizes.swap(k, best);
            pivots.exchange(k, best);
        }
        pivots.take(a[k * n + k]);
        let inverse = 1.0 / a[k * n + k];
        let (above, below) = a.split_at_mut((k + 1) * n);
        let top = &above[k * n + k + 1..];
        for (i, row) in (k + 1..n).zip(below.chunks_exact_mut(n)) {
            let factor = row[k] * inverse;
            row[k + 1..].iter_mut().zip(top).for_each(|(entry, top)| *entry -= factor * top);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        for j in k + 1..n {
            b[k] -= a[k * n + j] * b[j];
        }
        b[k] /= a[k * n + k];
    }
    pivots
}

/// Solve a system within a band: entry (i, j) is at i·(3w + 1) + (j − i) + w, where w is half the
/// bandwidth.
fn eliminate_band(a: &mut [f64], w: usize, sizes: &mut [f64], b: &mut [f64]) -> Pivots {
    let n = b.len();
    let at = |i: usize, j: usize| i * (3 * w + 1) + j + w - i;
    let mut pivots = Pivots::NONE_YET;
    for k in 0..n {
        let (last_row, last_column) = ((k + w).min(n - 1), (k + 2 * w).min(n - 1));
        let mut best = k;
        for i in k + 1..=last_row {
            if weight(a[at(i, k)], sizes[i]) > weight(a[at(best, k)], sizes[best]) {
                best = i;
            }
        }
        if best != k {
            for j in k..=last_column {
                a.swap(at(k, j), at(best, j));
            }
            b.swap(k, best);
            sizes.swap(k, best);
            pivots.exchange(k, best);
        }
        pivots.take(a[at(k, k)]);
        let inverse = 1.0 / a[at(k, k)];
        let (above, below) = a.split_at_mut((k + 1) * (3 * w + 1));
        let top = &above[at(k, k) + 1..=at(k, last_column)];
        for (i, row) in (k + 1..=last_row).zip(below.chunks_mut(3 * w + 1)) {
            let row = &mut row[k + w - i..][..1 + top.len()];
            let factor = row[0] * inverse;
            if factor != 0.0 {
                row[1..].iter_mut().zip(top).for_each(|(entry, top)| *entry -= factor * top);
                b[i] -= factor * b[k];
            }
        }
    }
    for k in (0..n).rev() {
        let last_column = (k + 2 * w).min(n - 1);
        let (b, behind) = b.split_at_mut(k + 1);
        let row = &a[at(k, k)..=at(k, last_column)];
        b[k] = row[1..].iter().zip(behind).fold(b[k], |sum, (a, b)| sum - a * *b) / row[0];
    }
    pivots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Check a random matrix of half bandwidth `w` with shuffled rows and columns. Some diagonal
    /// entries are 0, so that it cannot be solved without pivoting.
    fn check(n: usize, w: usize) {
        let mut random = Random::new(7);
        let shuffled = |i: usize| (i * 7 + 3) % n;
        let mut entries = Vec::new();
        for i in 0..n {
            for j in i.saturating_sub(w)..=(i + w).min(n - 1) {
                entries.push((shuffled(i) as u32, shuffled(j) as u32));
            }
        }
        let mut value = |k: usize| if k.is_multiple_of(7) && w > 0 { 0.0 } else { random.normal() };
        let values: Vec<f64> = (0..entries.len()).map(&mut value).collect();
        let solution: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mut b = vec![0.0; n];
        for (&(i, j), &a) in entries.iter().zip(&values) {
            b[i as usize] += a * solution[j as usize];
        }
        let elimination = Elimination::new(n, &entries);
        assert_eq!(elimination.band.is_some(), n > FEW && 3 * w < n);
        let pivots = elimination.solve(
            &values,
            &vec![1.0; n],
            &mut b,
            &mut vec![f64::NAN; elimination.work_len()],
        );
        // The condition number is at most about the ratio of the pivots times n; so is the error,
        // in roundings.
        let tolerance = 4.0 * f64::EPSILON * n as f64 * pivots.largest / pivots.smallest;
        for (found, expected) in b.iter().zip(&solution) {
            assert!(
                (found - expected).abs() < tolerance.max(1e-12),
                "n = {n}, w = {w}: {found} {expected}"
            );
        }
    }

    #[test]
    fn solves_full_and_banded_systems() {
        for (n, w) in [(1, 0), (2, 1), (5, 4), (8, 3), (11, 10), (20, 1), (40, 3), (60, 5), (13, 0)]
        {
            check(n, w);
        }
    }

    #[test]
    fn inverses_tell_what_pivots_do() {
        for n in 1..40usize {
            let mut random = Random::new(n as u64);
            let mut pivots: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let check = |pivots: &[f64]| {
                let mut one_by_one = Pivots::NONE_YET;
                pivots.iter().for_each(|&pivot| one_by_one.take(pivot));
                let inverses: Vec<f64> = pivots.iter().map(|pivot| 1.0 / pivot).collect();
                let found = Pivots::of_inverses(&inverses);
                // Two divisions round.
                let close = |a: f64, b: f64| {
                    (a - b).abs() <= 2.0 * f64::EPSILON * b || (a.is_nan() && b.is_nan())
                };
                assert!(close(found.smallest, one_by_one.smallest), "{pivots:?}: {found:?}");
                if !one_by_one.smallest.is_nan() {
                    assert!(close(found.largest, one_by_one.largest), "{pivots:?}: {found:?}");
                    assert_eq!(
                        (found.negative, found.positive),
                        (one_by_one.negative, one_by_one.positive),
                        "{pivots:?}"
                    );
                }
            };
            check(&pivots);
            pivots.iter_mut().for_each(|pivot| *pivot = -pivot.abs());
            check(&pivots);
            pivots.iter_mut().for_each(|pivot| *pivot = pivot.abs());
            check(&pivots);
            for odd in [-1.0, 0.0, f64::NAN] {
                for at in [0, n / 2, n - 1] {
                    let mut pivots = pivots.clone();
                    pivots[at] = odd;
                    check(&pivots);
                }
            }
        }
    }

    #[test]
    fn the_sign_and_singularity_are_seen() {
        let two = |a: [f64; 4]| {
            let elimination = Elimination::new(2, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
            elimination.solve(&a, &[1.0, 1.0], &mut [1.0, 1.0], &mut [0.0; 6])
        };
        assert!(!two([2.0, 1.0, 1.0, 3.0]).negative);
        assert!(two([1.0, 2.0, 3.0, 1.0]).negative);
        assert!(two([0.0, 1.0, 1.0, 0.0]).negative);
        assert_eq!(two([1.0, 2.0, 2.0, 4.0]).smallest, 0.0);
        assert!(two([f64::NAN, 2.0, 2.0, 4.0]).smallest.is_nan());
    }
}
