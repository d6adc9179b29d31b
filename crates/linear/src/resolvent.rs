//! Factors of s − J for real and complex numbers s, as implicit methods for stiff fields need them: of
//! one matrix J, one real and one complex s, and many right-hand sides. A matrix is stored in full, or
//! within its band if the order of least band that is found (reverse Cuthill–McKee) pays.
//!
//! Rows are exchanged as in [`lu`](crate::lu): a pivot is the entry of its column that is largest
//! relative to the scale of its row, so that no unit of a component has an influence.

use crate::ordering::{neighbours, reverse_cuthill_mckee};
use crate::pattern::Pattern;
use crate::widest::widest;

/// Numbers from which factors are made: real ones, or complex ones as their two parts.
pub trait Entry: Copy {
    /// A real number.
    fn real(value: f64) -> Self;
    /// Sum of the absolute values of its parts.
    fn size(self) -> f64;
    /// Sum of two.
    fn plus(self, other: Self) -> Self;
    /// Product of two.
    fn times(self, other: Self) -> Self;
    /// The number less the product of two others.
    fn minus_product(self, a: Self, b: Self) -> Self;
    /// Inverse.
    fn inverse(self) -> Self;
}

impl Entry for f64 {
    #[inline(always)]
    fn real(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn size(self) -> f64 {
        self.abs()
    }

    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }

    #[inline(always)]
    fn minus_product(self, a: f64, b: f64) -> f64 {
        self - a * b
    }

    #[inline(always)]
    fn inverse(self) -> f64 {
        1.0 / self
    }
}

impl Entry for [f64; 2] {
    #[inline(always)]
    fn real(value: f64) -> [f64; 2] {
        [value, 0.0]
    }

    #[inline(always)]
    fn size(self) -> f64 {
        self[0].abs() + self[1].abs()
    }

    #[inline(always)]
    fn plus(self, other: [f64; 2]) -> [f64; 2] {
        [self[0] + other[0], self[1] + other[1]]
    }

    #[inline(always)]
    fn times(self, other: [f64; 2]) -> [f64; 2] {
        let ([a, b], [c, d]) = (self, other);
        [a * c - b * d, a * d + b * c]
    }

    #[inline(always)]
    fn minus_product(self, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        let [re, im] = a.times(b);
        [self[0] - re, self[1] - im]
    }

    #[inline(always)]
    fn inverse(self) -> [f64; 2] {
        // By the larger part, so that no square leaves the range (Smith, Comm. ACM 5 (1962) 435).
        let [a, b] = self;
        if a.abs() >= b.abs() {
            let ratio = b / a;
            let size = 1.0 / (a + b * ratio);
            [size, -ratio * size]
        } else {
            let ratio = a / b;
            let size = 1.0 / (a * ratio + b);
            [ratio * size, -size]
        }
    }
}

/// Way of factoring s − J for matrices J of one pattern. It holds no numbers, so threads can share
/// it.
#[derive(Clone, Debug)]
pub struct Resolvent {
    n: usize,
    /// Place of each entry of J among the factors.
    place: Vec<u32>,
    /// Place of each diagonal entry among them, in the order of the components.
    diagonal: Vec<u32>,
    /// Position of every component in the order of elimination.
    position: Vec<u32>,
    /// Half the bandwidth in that order; `None` if the matrix is stored in full.
    half: Option<usize>,
}

/// Numbers with which matrices of a [`Resolvent`] are solved.
#[derive(Debug)]
pub struct Factors<'a, E> {
    /// Multipliers of the elimination and the upper triangle; [`Resolvent::factor_count`] of them.
    pub entries: &'a mut [E],
    /// Row that each row is exchanged with, as numbers.
    pub exchanges: &'a mut [f64],
}

impl Resolvent {
    /// Way for square matrices with entries in these places.
    pub fn new(pattern: &Pattern) -> Resolvent {
        let n = pattern.count();
        let entries: Vec<(u32, u32)> = (0..)
            .zip(pattern.rows())
            .flat_map(|(i, row)| row.columns().map(move |j| (i, j)))
            .collect();
        let order = reverse_cuthill_mckee(&neighbours(n, &entries));
        let mut position = vec![0; n];
        for (k, &component) in order.iter().enumerate() {
            position[component as usize] = k as u32;
        }
        let of = |i: u32| position[i as usize] as usize;
        let half = entries.iter().map(|&(i, j)| of(i).abs_diff(of(j))).max().unwrap_or(0);
        // Exchanges widen the band by half to the right.
        let half = Some(half).filter(|half| 3 * half + 1 < n);
        if half.is_none() {
            position = (0..n as u32).collect();
        }
        let at = |i: u32, j: u32| {
            let [i, j] = [i, j].map(|of| position[of as usize] as usize);
            half.map_or(i * n + j, |half| i * (3 * half + 1) + j + half - i) as u32
        };
        Resolvent {
            n,
            place: entries.iter().map(|&(i, j)| at(i, j)).collect(),
            diagonal: (0..n as u32).map(|i| at(i, i)).collect(),
            position,
            half,
        }
    }

    /// Number of rows.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Number of entries of the factors.
    pub fn factor_count(&self) -> usize {
        self.n * self.width()
    }

    /// Numbers stored of a row.
    fn width(&self) -> usize {
        self.half.map_or(self.n, |half| 3 * half + 1)
    }

    /// Last row with an entry in column `k`, and last column with one in row `k`.
    fn reach(&self, k: usize) -> (usize, usize) {
        let last = self.n - 1;
        self.half.map_or((last, last), |half| ((k + half).min(last), (k + 2 * half).min(last)))
    }

    /// Place of an entry, by its positions in the order of elimination.
    fn at(&self, i: usize, j: usize) -> usize {
        self.half.map_or(i * self.n + j, |half| i * (3 * half + 1) + j + half - i)
    }

    /// Factor s − J. `jacobian` holds the entries of J, `scales` those of its rows. False if the
    /// matrix is singular or not finite.
    pub fn factor<E: Entry>(
        &self,
        shift: E,
        jacobian: &[f64],
        scales: &[f64],
        factors: &mut Factors<E>,
        work: &mut [f64],
    ) -> bool {
        let Factors { entries, exchanges } = factors;
        entries.fill(E::real(0.0));
        for (&place, &value) in self.place.iter().zip(jacobian) {
            let entry = &mut entries[place as usize];
            *entry = entry.plus(E::real(-value));
        }
        for &place in &self.diagonal {
            let entry = &mut entries[place as usize];
            *entry = entry.plus(shift);
        }
        let rows = &mut work[..self.n];
        for (&position, &scale) in self.position.iter().zip(scales) {
            rows[position as usize] = scale;
        }
        widest(
            #[inline(always)]
            || self.eliminate(entries, rows, exchanges),
        )
    }

    #[inline(always)]
    fn eliminate<E: Entry>(&self, a: &mut [E], scales: &mut [f64], exchanges: &mut [f64]) -> bool {
        let mut regular = true;
        for k in 0..self.n {
            let (last_row, last_column) = self.reach(k);
            let weight = |i: usize| match a[self.at(i, k)].size() {
                // In a row without a scale any entry is large.
                0.0 => 0.0,
                size => size / scales[i],
            };
            let mut best = k;
            for i in k + 1..=last_row {
                if weight(i) > weight(best) {
                    best = i;
                }
            }
            exchanges[k] = best as f64;
            if best != k {
                for j in k..=last_column {
                    a.swap(self.at(k, j), self.at(best, j));
                }
                scales.swap(k, best);
            }
            let inverse = a[self.at(k, k)].inverse();
            regular &= inverse.size().is_finite();
            // A row is divided once, not by every right-hand side.
            a[self.at(k, k)] = inverse;
            let first = self.at(k, k) + 1;
            for i in k + 1..=last_row {
                let place = self.at(i, k);
                let (above, below) = a.split_at_mut(place);
                let factor = below[0].times(inverse);
                below[0] = factor;
                if factor.size() != 0.0 {
                    let top = &above[first..first + last_column - k];
                    for (entry, &top) in below[1..].iter_mut().zip(top) {
                        *entry = entry.minus_product(factor, top);
                    }
                }
            }
        }
        regular
    }

    /// Solve (s − J) u = b in place of `b`, with factors of s − J.
    pub fn solve<E: Entry>(&self, factors: &Factors<E>, b: &mut [E], ordered: &mut [E]) {
        for (&position, &b) in self.position.iter().zip(&*b) {
            ordered[position as usize] = b;
        }
        widest(
            #[inline(always)]
            || self.substitute(factors, ordered),
        );
        for (&position, b) in self.position.iter().zip(b) {
            *b = ordered[position as usize];
        }
    }

    #[inline(always)]
    fn substitute<E: Entry>(&self, factors: &Factors<E>, b: &mut [E]) {
        let Factors { entries: a, exchanges } = factors;
        for k in 0..self.n {
            b.swap(k, exchanges[k] as usize);
            let (last_row, _) = self.reach(k);
            for i in k + 1..=last_row {
                b[i] = b[i].minus_product(a[self.at(i, k)], b[k]);
            }
        }
        for k in (0..self.n).rev() {
            let (_, last_column) = self.reach(k);
            let row = &a[self.at(k, k)..][..1 + last_column - k];
            let (above, below) = b.split_at_mut(k + 1);
            let sum =
                row[1..].iter().zip(below).fold(above[k], |sum, (&a, b)| sum.minus_product(a, *b));
            above[k] = sum.times(row[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Largest |b − (s − J) u| over Σ |entries| |u| of the row, for a random J of half bandwidth `w`
    /// with shuffled components and rows of very different units.
    fn residual<E: Entry + std::fmt::Debug>(n: usize, w: usize, shift: E) -> f64 {
        let mut random = Random::new(7 + n as u64);
        let shuffled = |i: usize| ((i * 7 + 3) % n) as u32;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
        for i in 0..n {
            let near = i.saturating_sub(w)..=(i + w).min(n - 1);
            rows[shuffled(i) as usize].extend(near.map(shuffled));
        }
        rows.iter_mut().for_each(|row| row.sort_unstable());
        let pattern: Pattern = rows.iter().cloned().collect();
        let scales: Vec<f64> = (0..n).map(|i| 10f64.powi((i % 5) as i32 * 3 - 6)).collect();
        // A stiff J, with entries in units of the components.
        let jacobian: Vec<f64> = (rows.iter().enumerate())
            .flat_map(|(i, row)| row.iter().map(move |&j| (i, j as usize)))
            .map(|(i, j)| 1e3 * random.normal() * scales[i] / scales[j])
            .collect();
        let resolvent = Resolvent::new(&pattern);
        assert_eq!(resolvent.half.is_some(), 3 * w + 1 < n, "n = {n}, w = {w}");
        let zero = E::real(0.0);
        let (mut entries, mut exchanges) = (vec![zero; resolvent.factor_count()], vec![0.0; n]);
        let mut factors = Factors { entries: &mut entries, exchanges: &mut exchanges };
        let work = &mut vec![f64::NAN; n];
        assert!(resolvent.factor(shift, &jacobian, &scales, &mut factors, work));
        let b: Vec<E> = scales.iter().map(|scale| E::real(scale * random.normal())).collect();
        let mut u = b.clone();
        resolvent.solve(&factors, &mut u, &mut vec![zero; n]);
        let mut largest = 0.0f64;
        for (i, row) in pattern.rows().enumerate() {
            let mut left = b[i].minus_product(shift, u[i]);
            let mut terms = b[i].size() + shift.size() * u[i].size();
            for (p, j) in row.entries() {
                left = left.plus(u[j].times(E::real(jacobian[p])));
                terms += u[j].size() * jacobian[p].abs();
            }
            largest = largest.max(left.size() / terms);
        }
        largest
    }

    #[test]
    fn real_and_complex_systems_are_solved_to_rounding() {
        for (n, w) in [(1, 0), (2, 1), (6, 5), (13, 0), (20, 2), (40, 3), (60, 30)] {
            // Elimination with exchanges is backward stable: n roundings of the terms of a row,
            // times a growth that is below 10 here.
            let tolerance = 10.0 * n as f64 * f64::EPSILON;
            let [real, complex] = [residual(n, w, 30.0), residual(n, w, [30.0, 40.0])];
            assert!(real < tolerance && complex < tolerance, "n = {n}, w = {w}: {real} {complex}");
        }
    }

    #[test]
    fn singular_matrices_are_recognised() {
        let resolvent = Resolvent::new(&Pattern::dense(2, 2));
        let factors = |shift: f64, jacobian: [f64; 4]| {
            let (mut entries, mut exchanges) = ([0.0; 4], [0.0; 2]);
            let factors = &mut Factors { entries: &mut entries, exchanges: &mut exchanges };
            resolvent.factor(shift, &jacobian, &[1.0; 2], factors, &mut [0.0; 2])
        };
        // 2 is an eigenvalue.
        assert!(!factors(2.0, [1.0, 1.0, 1.0, 1.0]));
        assert!(factors(3.0, [1.0, 1.0, 1.0, 1.0]));
        assert!(!factors(3.0, [f64::NAN, 1.0, 1.0, 1.0]));
    }

    #[test]
    fn inverses_of_complex_numbers_keep_their_range() {
        for number in [[3.0, 4.0], [-1e-300, 1e-301], [1e200, -1e300], [0.0, 2.0]] {
            let [re, im] = number.inverse().times(number);
            // Four operations of two roundings each.
            assert!((re - 1.0).abs() < 8.0 * f64::EPSILON && im.abs() < 8.0 * f64::EPSILON);
        }
    }
}
