//! Elimination without pivoting for the large Newton matrices of a step, which are nearly symmetric
//! and definite: h² times G M⁻¹ Gᵀ for constraints, 1 + O(h) for stages, or both at once, the
//! stages eliminated first. A tridiagonal matrix is eliminated in four chains at once. Others are
//! factored as L U in an order of little fill, on the symmetric closure of their pattern, which is
//! analysed once. If a matrix consists of many of one pattern, as for the rods of molecules, these
//! are factored side by side.
//!
//! Nothing here holds numbers or allocates: values, right-hand side and scratch come from the
//! caller.

use crate::elimination_tree::FactorPattern;
use crate::lu::Pivots;
use crate::ordering::{minimum_degree_after, neighbours};
use crate::widest::widest;
use std::sync::Arc;

/// Solver of matrices of a fixed pattern.
#[derive(Clone, Debug)]
pub struct Unpivoted {
    n: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Values: sub-, main and superdiagonal, in this order. `complete` if entries are stored to all
    /// of them.
    Tridiagonal {
        complete: bool,
    },
    General(Arc<Pattern>),
    Alike(Arc<Alike>),
}

impl Unpivoted {
    /// Solver for matrices of size `n` with these (row, column) entries.
    pub fn new(n: usize, entries: &[(u32, u32)]) -> Unpivoted {
        let tridiagonal = entries.iter().all(|&(i, j)| i.abs_diff(j) <= 1)
            && entries.iter().filter(|(i, j)| i == j).count() == n;
        let kind = match (Alike::new(n, entries), tridiagonal) {
            (Some(alike), _) => Kind::Alike(Arc::new(alike)),
            (None, true) => Kind::Tridiagonal { complete: entries.len() + 2 == 3 * n },
            (None, false) => Kind::General(Arc::new(Pattern::new(n, entries))),
        };
        Unpivoted { n, kind }
    }

    /// Number of rows.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Approximate number of multiply-adds of a solution.
    pub fn operations(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => 5 * self.n,
            Kind::General(pattern) => pattern.operations(),
            // Vectors do several of them at once.
            Kind::Alike(alike) => alike.pattern.operations() * alike.count / 4,
        }
    }

    /// Rows in an order in which elimination takes [`Unpivoted::operations`], with more than one
    /// chain of divisions if that is free.
    pub fn order(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Tridiagonal { .. } => {
                let (n, middle) = (self.n as u32, self.n as u32 / 2);
                (0..middle).chain((middle + 1..n).rev()).chain([middle]).collect()
            }
            Kind::General(pattern) => pattern.order.clone(),
            Kind::Alike(alike) => {
                let count = alike.count as u32;
                alike.pattern.order.iter().flat_map(|&row| row * count..(row + 1) * count).collect()
            }
        }
    }

    /// Number of matrices of one pattern that the matrix consists of, with the entries of one: row
    /// r of matrix m is row r·count + m. `None` without such a division.
    pub fn alike(&self) -> Option<(usize, &[(u32, u32)])> {
        match &self.kind {
            Kind::Alike(alike) => Some((alike.count, &alike.of_one)),
            _ => None,
        }
    }

    /// True if the caller has to set values without an entry to 0.
    pub fn fills(&self) -> bool {
        match &self.kind {
            Kind::Tridiagonal { complete } => !complete,
            Kind::General(_) => true,
            Kind::Alike(alike) => !alike.complete,
        }
    }

    /// Number of values of a matrix.
    pub fn values(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => 3 * self.n,
            Kind::General(pattern) => pattern.values(),
            Kind::Alike(alike) => alike.pattern.values() * alike.count,
        }
    }

    /// Index of an entry among the values.
    pub fn place(&self, row: u32, column: u32) -> u32 {
        match &self.kind {
            Kind::Tridiagonal { .. } => (1 + column - row) * self.n as u32 + row,
            Kind::General(pattern) => pattern.place(row, column),
            Kind::Alike(alike) => alike.place(row, column),
        }
    }

    /// Length of the scratch of [`Unpivoted::solve`].
    pub fn work_len(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => self.n,
            Kind::General(_) => 2 * self.n,
            Kind::Alike(alike) => alike.work_len(),
        }
    }

    /// Solve A u = b in place of `b`; the values are overwritten.
    pub fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        match &self.kind {
            Kind::Tridiagonal { .. } => {
                let (lower, rest) = values.split_at_mut(self.n);
                let (diagonal, upper) = rest.split_at_mut(self.n);
                in_four_chains(lower, diagonal, upper, b, &mut work[..self.n])
            }
            Kind::General(pattern) => pattern.solve(values, b, work),
            Kind::Alike(alike) => alike.solve(values, b, work),
        }
    }
}

/// Solve a tridiagonal system with rows a_i u_{i−1} + d_i u_i + c_i u_{i+1} = b_i. Elimination runs
/// from both ends and from a middle row towards both at once, so that four chains of divisions
/// overlap. a and c are overwritten.
fn in_four_chains(
    a: &mut [f64],
    d: &[f64],
    c: &mut [f64],
    b: &mut [f64],
    inverse: &mut [f64],
) -> Pivots {
    let n = b.len();
    let (a, d, c, inverse) = (&mut a[..n], &d[..n], &mut c[..n], &mut inverse[..n]);
    if n < FEWEST_IN_CHAINS {
        return in_one_chain(a, d, c, b, inverse);
    }
    // Rows 0 to `left` downwards from the first, upwards from the one before `middle`; the rows
    // after `middle` likewise.
    let middle = n / 2;
    let (left, right) = (middle / 2, middle + (n - middle) / 2);
    let [mut outer_left, mut outer_right] = [Chain::<false>::default(); 2];
    let mut inner_left = Chain::<true>::from_middle(c[middle - 1], a[middle]);
    let mut inner_right = Chain::<true>::from_middle(a[middle + 1], c[middle]);
    // The chains differ in length by a row or two.
    for k in 0..(n - 1 - right).max(left).max(right - middle - 1) {
        let i = k;
        if i < left {
            (inverse[i], b[i]) = outer_left.row(if k > 0 { a[i] } else { 0.0 }, d[i], b[i], c[i]);
        }
        let i = n - 1 - k;
        if i > right {
            (inverse[i], b[i]) = outer_right.row(if k > 0 { c[i] } else { 0.0 }, d[i], b[i], a[i]);
        }
        if k + 1 < middle - left {
            let i = middle - 1 - k;
            (inverse[i], b[i]) = inner_left.row(if k > 0 { c[i] } else { 1.0 }, d[i], b[i], a[i]);
            c[i] = inner_left.far;
        }
        let i = middle + 1 + k;
        if i < right {
            (inverse[i], b[i]) = inner_right.row(if k > 0 { a[i] } else { 1.0 }, d[i], b[i], c[i]);
            a[i] = inner_right.far;
        }
    }
    // The rows where two chains meet are now coupled to the middle row only.
    let mut meet =
        |i: usize, outer: Chain<false>, before: f64, inner: &mut Chain<true>, after: f64| {
            let factor = before * outer.inverse;
            let (diagonal, right) = (d[i] - factor * outer.coupling, b[i] - factor * outer.right);
            (inverse[i], b[i]) = inner.row(after, diagonal, right, 0.0);
        };
    meet(left, outer_left, a[left], &mut inner_left, c[left]);
    meet(right, outer_right, c[right], &mut inner_right, a[right]);
    inverse[middle] = 1.0 / (d[middle] - inner_left.taken - inner_right.taken);
    b[middle] = (b[middle] - inner_left.taken_right - inner_right.taken_right) * inverse[middle];
    let u = b[middle];
    b[left] = (b[left] - inner_left.far * u) * inverse[left];
    b[right] = (b[right] - inner_right.far * u) * inverse[right];
    let [mut of_outer_left, mut of_inner_left] = [b[left]; 2];
    let [mut of_outer_right, mut of_inner_right] = [b[right]; 2];
    for k in 1..=left.max(middle - left).max(right - middle).max(n - 1 - right) {
        if k <= left {
            let i = left - k;
            of_outer_left = (b[i] - c[i] * of_outer_left) * inverse[i];
            b[i] = of_outer_left;
        }
        let i = left + k;
        if i < middle {
            of_inner_left = (b[i] - c[i] * u - a[i] * of_inner_left) * inverse[i];
            b[i] = of_inner_left;
        }
        let i = right - k;
        if i > middle {
            of_inner_right = (b[i] - a[i] * u - c[i] * of_inner_right) * inverse[i];
            b[i] = of_inner_right;
        }
        let i = right + k;
        if i < n {
            of_outer_right = (b[i] - a[i] * of_outer_right) * inverse[i];
            b[i] = of_outer_right;
        }
    }
    Pivots::of_inverses(inverse)
}

/// Fewest rows for which a tridiagonal system is solved in four chains.
const FEWEST_IN_CHAINS: usize = 12;

/// Solve a tridiagonal system like [`in_four_chains`], from the first row to the last, for a few
/// rows.
fn in_one_chain(a: &[f64], d: &[f64], c: &[f64], b: &mut [f64], inverse: &mut [f64]) -> Pivots {
    let mut chain = Chain::<false>::default();
    for i in 0..b.len() {
        (inverse[i], b[i]) = chain.row(if i > 0 { a[i] } else { 0.0 }, d[i], b[i], c[i]);
    }
    let mut after = 0.0;
    for i in (0..b.len()).rev() {
        after = (b[i] - if i + 1 < b.len() { c[i] * after } else { 0.0 }) * inverse[i];
        b[i] = after;
    }
    Pivots::of_inverses(inverse)
}

/// State of a chain of eliminations: the inverse of the last pivot, that row's right-hand side, and
/// its coupling to the next row. A chain that starts at the `MIDDLE` row couples all of its rows to
/// that.
#[derive(Clone, Copy, Default)]
struct Chain<const MIDDLE: bool> {
    inverse: f64,
    right: f64,
    coupling: f64,
    /// Coupling of the last row to the middle one, and of the middle row to the next.
    far: f64,
    back: f64,
    /// Sums that all rows subtract from the middle row's diagonal and right-hand side.
    taken: f64,
    taken_right: f64,
}

impl<const MIDDLE: bool> Chain<MIDDLE> {
    /// Chain before its first row, which is coupled to the middle row by `far`, and the middle row
    /// to it by `back`. Give the coupling of that row to the one before as 1: then `far` stays as
    /// it is.
    fn from_middle(far: f64, back: f64) -> Chain<MIDDLE> {
        Chain { inverse: -1.0, coupling: 0.0, far, back, ..Chain::default() }
    }

    /// Eliminate the next row; returns the inverse of its pivot and its right-hand side.
    #[inline(always)]
    fn row(&mut self, before: f64, diagonal: f64, right: f64, after: f64) -> (f64, f64) {
        let factor = before * self.inverse;
        let inverse = 1.0 / (diagonal - factor * self.coupling);
        let right = right - factor * self.right;
        if MIDDLE {
            self.far *= -factor;
            let factor = self.back * inverse;
            self.taken += factor * self.far;
            self.taken_right += factor * right;
            self.back = -factor * after;
        }
        (self.inverse, self.right, self.coupling) = (inverse, right, after);
        (inverse, right)
    }
}

/// Analysed pattern of a sparse matrix. Its values are the diagonal in the order of elimination,
/// then L below it by columns, then U right of it by rows, with the same pattern.
#[derive(Clone, Debug)]
struct Pattern {
    /// Old number of each new row, and new number of each old one.
    order: Vec<u32>,
    position: Vec<u32>,
    /// Rows of L by columns, increasing.
    start: Vec<u32>,
    row: Vec<u32>,
}

impl Pattern {
    fn new(n: usize, entries: &[(u32, u32)]) -> Pattern {
        let neighbours = neighbours(n, entries);
        // An unknown missing from its own equation gets a pivot by the elimination of others.
        let mut held = vec![false; n];
        for &(i, _) in entries.iter().filter(|(i, j)| i == j) {
            held[i as usize] = true;
        }
        let order = minimum_degree_after(&neighbours, |i| !held[i as usize]);
        let mut position = vec![0; n];
        for (new, &old) in order.iter().enumerate() {
            position[old as usize] = new as u32;
        }
        let around = |k: u32| {
            neighbours.of(order[k as usize] as usize).iter().map(|&other| position[other as usize])
        };
        let factor = FactorPattern::new(n, around);
        let start = factor.start.iter().map(|&at| at as u32).collect();
        Pattern { start, row: factor.row, order, position }
    }

    fn place(&self, row: u32, column: u32) -> u32 {
        let (i, j) = (self.position[row as usize], self.position[column as usize]);
        if i == j {
            return i;
        }
        let first = self.start[i.min(j) as usize];
        let rows = &self.row[first as usize..self.start[i.min(j) as usize + 1] as usize];
        let at = first + rows.partition_point(|&r| r < i.max(j)) as u32;
        let lower = self.order.len() as u32;
        if i > j { lower + at } else { lower + self.row.len() as u32 + at }
    }

    /// Number of values of a matrix.
    fn values(&self) -> usize {
        self.order.len() + 2 * self.row.len()
    }

    fn operations(&self) -> usize {
        self.start.windows(2).map(|at| (at[1] - at[0]) as usize).map(|k| 2 * k * (k + 2)).sum()
    }

    fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        let n = self.order.len();
        let (y, inverse) = work[..2 * n].split_at_mut(n);
        for (y, &old) in y.iter_mut().zip(&self.order) {
            *y = b[old as usize];
        }
        self.eliminate::<1>(
            values.as_chunks_mut().0,
            y.as_chunks_mut().0,
            inverse.as_chunks_mut().0,
        );
        for (y, &old) in y.iter().zip(&self.order) {
            b[old as usize] = *y;
        }
        Pivots::of_inverses(inverse)
    }

    /// Solve `SIDE` systems side by side, with y and the inverses of the pivots in the order of
    /// elimination. Column by column, column k of L is divided; then column k of L and row k of U
    /// change the entries further on.
    #[inline(always)]
    fn eliminate<const SIDE: usize>(
        &self,
        values: &mut [[f64; SIDE]],
        y: &mut [[f64; SIDE]],
        inverse: &mut [[f64; SIDE]],
    ) {
        let n = self.order.len();
        let (diagonal, rest) = values.split_at_mut(n);
        let (lower, upper) = rest.split_at_mut(self.row.len());
        for k in 0..n {
            let (from, to) = (self.start[k] as usize, self.start[k + 1] as usize);
            inverse[k] = diagonal[k].map(|pivot| 1.0 / pivot);
            for l in &mut lower[from..to] {
                *l = times(l, &inverse[k]);
            }
            // The rows of column k are joined, so columns i and rows i of the factors hold all that
            // changes.
            for p in from..to {
                let i = self.row[p] as usize;
                let (l, u) = (lower[p], upper[p]);
                diagonal[i] = less(&diagonal[i], &l, &u);
                y[i] = less(&y[i], &l, &y[k]);
                let mut at = self.start[i] as usize;
                for q in p + 1..to {
                    while self.row[at] < self.row[q] {
                        at += 1;
                    }
                    lower[at] = less(&lower[at], &lower[q], &u);
                    upper[at] = less(&upper[at], &l, &upper[q]);
                }
            }
        }
        for k in (0..n).rev() {
            let mut sum = y[k];
            for p in self.start[k] as usize..self.start[k + 1] as usize {
                sum = less(&sum, &upper[p], &y[self.row[p] as usize]);
            }
            y[k] = times(&sum, &inverse[k]);
        }
    }
}

#[inline(always)]
fn times<const SIDE: usize>(a: &[f64; SIDE], b: &[f64; SIDE]) -> [f64; SIDE] {
    std::array::from_fn(|k| a[k] * b[k])
}

/// a − b c
#[inline(always)]
fn less<const SIDE: usize>(a: &[f64; SIDE], b: &[f64; SIDE], c: &[f64; SIDE]) -> [f64; SIDE] {
    std::array::from_fn(|k| a[k] - b[k] * c[k])
}

/// Many matrices of one pattern: row r of matrix m is row r·count + m of the whole. For each entry
/// in turn, values and right-hand sides hold the numbers of all matrices contiguously.
#[derive(Clone, Debug)]
struct Alike {
    count: usize,
    /// Entries of one matrix.
    of_one: Vec<(u32, u32)>,
    pattern: Pattern,
    /// True if entries are stored to all values.
    complete: bool,
}

/// Number of matrices factored side by side: two of the widest vectors, whose divisions overlap.
const SIDE: usize = 8;

/// Fewest matrices of one pattern that are factored side by side.
const FEWEST_ALIKE: usize = SIDE / 2;

impl Alike {
    fn new(n: usize, entries: &[(u32, u32)]) -> Option<Alike> {
        let count = entries
            .iter()
            .fold(n, |count, &(i, j)| greatest_common_divisor(count, i.abs_diff(j) as usize));
        if count < FEWEST_ALIKE {
            return None;
        }
        let mut of_one: Vec<(u32, u32)> =
            entries.iter().map(|&(i, j)| (i / count as u32, j / count as u32)).collect();
        of_one.sort_unstable();
        of_one.dedup();
        let pattern = Pattern::new(n / count, &of_one);
        let complete = entries.len() == pattern.values() * count;
        Some(Alike { count, of_one, pattern, complete })
    }

    fn place(&self, row: u32, column: u32) -> u32 {
        let count = self.count as u32;
        self.pattern.place(row / count, column / count) * count + row % count
    }

    fn work_len(&self) -> usize {
        let n = self.pattern.order.len();
        SIDE * (self.pattern.values() + 2 * n) + n * self.count
    }

    fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        widest(
            #[inline(always)]
            || self.side_by_side(values, b, work),
        )
    }

    #[inline(always)]
    fn side_by_side(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        let (count, n) = (self.count, self.pattern.order.len());
        let (inverses, work) = work.split_at_mut(n * count);
        let (own, _) = work.as_chunks_mut::<SIDE>();
        let (own_values, own) = own.split_at_mut(self.pattern.values());
        let (y, inverse) = own[..2 * n].split_at_mut(n);
        for first in (0..count).step_by(SIDE) {
            let these = first..count.min(first + SIDE);
            for (own, values) in own_values.iter_mut().zip(values.chunks_exact(count)) {
                fill(own, &values[these.clone()]);
            }
            for (y, &row) in y.iter_mut().zip(&self.pattern.order) {
                fill(y, &b[row as usize * count..][these.clone()]);
            }
            self.pattern.eliminate(own_values, y, inverse);
            for (inverse, inverses) in inverse.iter().zip(inverses.chunks_exact_mut(count)) {
                inverses[these.clone()].copy_from_slice(&inverse[..these.len()]);
            }
            for (y, &row) in y.iter().zip(&self.pattern.order) {
                b[row as usize * count..][these.clone()].copy_from_slice(&y[..these.len()]);
            }
        }
        Pivots::of_inverses(inverses)
    }
}

/// Copy the numbers and pad with the last one, which causes no exceptional values of its own.
#[inline(always)]
fn fill(side: &mut [f64; SIDE], numbers: &[f64]) {
    match <&[f64; SIDE]>::try_from(numbers) {
        Ok(numbers) => *side = *numbers,
        Err(_) => {
            side[..numbers.len()].copy_from_slice(numbers);
            side[numbers.len()..].fill(numbers[numbers.len() - 1]);
        }
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Check a random diagonally dominant matrix whose graph has these edges.
    fn check(n: usize, edges: &[(u32, u32)]) {
        let mut random = Random::new(n as u64);
        let mut entries: Vec<(u32, u32)> = (0..n as u32).map(|i| (i, i)).collect();
        // Some entries have no counterpart across the diagonal.
        entries.extend(edges.iter().enumerate().flat_map(|(k, &(i, j))| match k % 5 {
            0 => vec![(i, j)],
            _ => vec![(i, j), (j, i)],
        }));
        let value: Vec<f64> = (0..entries.len())
            .map(|k| if k < n { 8.0 + random.normal() } else { random.normal() })
            .collect();
        let solution: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let solver = Unpivoted::new(n, &entries);
        let (mut values, mut b) = (vec![0.0; solver.values()], vec![0.0; n]);
        for (k, &(i, j)) in entries.iter().enumerate() {
            values[solver.place(i, j) as usize] += value[k];
            b[i as usize] += value[k] * solution[j as usize];
        }
        let pivots = solver.solve(&mut values, &mut b, &mut vec![f64::NAN; solver.work_len()]);
        assert!(pivots.smallest > 1.0 && !pivots.negative, "{pivots:?}");
        // The condition number is below 10, and each row has few entries.
        for (found, expected) in b.iter().zip(&solution) {
            assert!((found - expected).abs() < 1e-14 * 10.0, "n = {n}: {found} {expected}");
        }
    }

    #[test]
    fn solves_chains_of_every_length() {
        for n in (1..100).chain([1000, 1001, 1002, 1003]) {
            let edges: Vec<(u32, u32)> = (1..n as u32).map(|i| (i - 1, i)).collect();
            check(n, &edges);
        }
    }

    #[test]
    fn solves_rings_trees_and_grids() {
        let ring: Vec<(u32, u32)> = (0..20).map(|i| (i, (i + 1) % 20)).collect();
        check(20, &ring);
        let tree: Vec<(u32, u32)> = (1..31).map(|i| ((i - 1) / 2, i)).collect();
        check(31, &tree);
        let w = 7;
        let right = (0..w * w).filter(|i| i % w + 1 < w).map(|i| (i, i + 1));
        let grid: Vec<(u32, u32)> = right.chain((0..w * (w - 1)).map(|i| (i, i + w))).collect();
        check(49, &grid);
    }

    /// Triangles and squares with a diagonal, in columns; their numbers are below, at and above the
    /// width of vectors.
    #[test]
    fn solves_many_of_one_pattern_as_it_solves_each() {
        for count in [3, 4, 7, 8, 9, 16, 17, 100] {
            for (rows, edges) in
                [(3, &[(0, 1), (1, 2), (0, 2)][..]), (4, &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])]
            {
                let all = edges
                    .iter()
                    .flat_map(|&(i, j)| (0..count).map(move |k| (i * count + k, j * count + k)));
                let edges: Vec<(u32, u32)> = all.collect();
                check(rows * count as usize, &edges);
                let entries: Vec<(u32, u32)> =
                    (0..rows as u32 * count).map(|i| (i, i)).chain(edges).collect();
                let solver = Unpivoted::new(rows * count as usize, &entries);
                assert_eq!(
                    matches!(solver.kind, Kind::Alike(_)),
                    count as usize >= FEWEST_ALIKE,
                    "{count}"
                );
                let mut order = solver.order();
                order.sort_unstable();
                assert!(order.iter().zip(0..).all(|(&row, k)| row == k));
            }
        }
    }

    #[test]
    fn a_singular_matrix_among_many_is_seen() {
        let solver = Unpivoted::new(
            18,
            &[0, 1]
                .map(|r| (0..9).map(move |k| (9 * r + k, 9 * r + k)))
                .into_iter()
                .flatten()
                .chain((0..9).flat_map(|k| [(k, 9 + k), (9 + k, k)]))
                .collect::<Vec<_>>(),
        );
        let solve = |diagonal: f64| {
            let mut values = vec![f64::NAN; solver.values()];
            for k in 0..9 {
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let value = if i == j { if k == 8 { diagonal } else { 2.0 } } else { 1.0 };
                    values[solver.place(9 * i + k, 9 * j + k) as usize] = value;
                }
            }
            assert!(!solver.fills());
            solver.solve(&mut values, &mut [1.0; 18], &mut vec![f64::NAN; solver.work_len()])
        };
        assert!(!solve(2.0).negative && solve(2.0).positive);
        assert!(solve(0.5).negative && !solve(0.5).positive);
        assert_eq!(solve(1.0).smallest, 0.0);
        assert!(solve(f64::NAN).smallest.is_nan());
    }

    #[test]
    fn trees_have_no_fill() {
        let edges: Vec<(u32, u32)> =
            (0..1000).map(|i| (i, i)).chain((1..1000).map(|i| ((i - 1) / 2, i))).collect();
        assert_eq!(Unpivoted::new(1000, &edges).values(), 1000 + 2 * 999);
    }

    #[test]
    fn the_sign_and_singularity_are_seen() {
        let solver = Unpivoted::new(2, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
        let solve = |a: [f64; 4]| {
            let mut values = vec![0.0; solver.values()];
            for (k, &a) in a.iter().enumerate() {
                values[solver.place(k as u32 / 2, k as u32 % 2) as usize] = a;
            }
            solver.solve(&mut values, &mut [1.0, 1.0], &mut vec![0.0; solver.work_len()])
        };
        assert!(!solve([2.0, 1.0, 1.0, 3.0]).negative);
        assert!(solve([1.0, 2.0, 3.0, 1.0]).negative);
        assert_eq!(solve([1.0, 2.0, 2.0, 4.0]).smallest, 0.0);
        assert!(solve([f64::NAN, 2.0, 2.0, 4.0]).smallest.is_nan());
    }
}
