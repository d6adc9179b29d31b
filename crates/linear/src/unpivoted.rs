//! Elimination without pivoting for the large Newton matrices of a step, which are nearly symmetric and definite: h² times
//! G M⁻¹ Gᵀ for constraints, 1 + O(h) for stages, or both at once, the stages eliminated first. A tridiagonal one is eliminated in four chains at once; others are
//! factored as L U in an order of little fill, on the symmetric closure of their pattern, which is analysed once.
//!
//! Nothing here holds numbers: values, right-hand side and scratch come from the caller, and nothing is allocated.

use crate::elimination_tree::FactorPattern;
use crate::lu::Pivots;
use crate::ordering::{minimum_degree_after, neighbours};

/// How a matrix of a fixed pattern is solved.
#[derive(Clone, Debug)]
pub struct Unpivoted {
    n: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Sub-, main and superdiagonal are the values, one behind the other; whether all of them are stored to.
    Tridiagonal {
        complete: bool,
    },
    General(Box<Pattern>),
}

impl Unpivoted {
    /// For a matrix of size `n` with these (row, column) entries.
    pub fn new(n: usize, entries: &[(u32, u32)]) -> Unpivoted {
        let tridiagonal =
            entries.iter().all(|&(i, j)| i.abs_diff(j) <= 1) && entries.iter().filter(|(i, j)| i == j).count() == n;
        let kind = match tridiagonal {
            true => Kind::Tridiagonal { complete: entries.len() + 2 == 3 * n },
            false => Kind::General(Box::new(Pattern::new(n, entries))),
        };
        Unpivoted { n, kind }
    }

    /// Multiply-adds of a solution, about.
    pub fn operations(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => 5 * self.n,
            Kind::General(pattern) => {
                pattern.start.windows(2).map(|at| (at[1] - at[0]) as usize).map(|k| 2 * k * (k + 2)).sum()
            }
        }
    }

    /// The rows in an order in which elimination takes that many, with more than one chain of divisions where that is free.
    pub fn order(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Tridiagonal { .. } => {
                let (n, middle) = (self.n as u32, self.n as u32 / 2);
                (0..middle).chain((middle + 1..n).rev()).chain([middle]).collect()
            }
            Kind::General(pattern) => pattern.order.clone(),
        }
    }

    /// Whether values that no entry is stored to have to be 0.
    pub fn fills(&self) -> bool {
        !matches!(self.kind, Kind::Tridiagonal { complete: true })
    }

    /// How many values a matrix has.
    pub fn values(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => 3 * self.n,
            Kind::General(pattern) => self.n + 2 * pattern.row.len(),
        }
    }

    /// Where among the values an entry stands.
    pub fn place(&self, row: u32, column: u32) -> u32 {
        match &self.kind {
            Kind::Tridiagonal { .. } => (1 + column - row) * self.n as u32 + row,
            Kind::General(pattern) => pattern.place(row, column),
        }
    }

    /// Length of the scratch of [`Unpivoted::solve`].
    pub fn work_len(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal { .. } => self.n,
            Kind::General(_) => 3 * self.n,
        }
    }

    /// Solves A u = b in place of b; the values are lost.
    pub fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        match &self.kind {
            Kind::Tridiagonal { .. } => {
                let (lower, rest) = values.split_at_mut(self.n);
                let (diagonal, upper) = rest.split_at_mut(self.n);
                in_four_chains(lower, diagonal, upper, b, &mut work[..self.n])
            }
            Kind::General(pattern) => pattern.solve(values, b, work),
        }
    }
}

/// Solves a tridiagonal system, row i of which reads a_i u_{i−1} + d_i u_i + c_i u_{i+1} = b_i: from both ends and from a row
/// in the middle towards both at once, so that four chains of divisions overlap. a and c are lost.
fn in_four_chains(a: &mut [f64], d: &[f64], c: &mut [f64], b: &mut [f64], inverse: &mut [f64]) -> Pivots {
    let n = b.len();
    let (a, d, c, inverse) = (&mut a[..n], &d[..n], &mut c[..n], &mut inverse[..n]);
    if n < FEWEST_IN_CHAINS {
        return in_one_chain(a, d, c, b, inverse);
    }
    // Rows 0 to `left`, downwards from the first and upwards from the one before `middle`; rows behind that likewise.
    let middle = n / 2;
    let (left, right) = (middle / 2, middle + (n - middle) / 2);
    let [mut outer_left, mut outer_right] = [Chain::<false>::default(); 2];
    let mut inner_left = Chain::<true>::from_middle(c[middle - 1], a[middle]);
    let mut inner_right = Chain::<true>::from_middle(a[middle + 1], c[middle]);
    // The chains differ by a row or two.
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
    // The rows where two chains meet are only coupled to the middle one then.
    let mut meet = |i: usize, outer: Chain<false>, before: f64, inner: &mut Chain<true>, after: f64| {
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

/// Rows from which on a tridiagonal system is long enough for four chains.
const FEWEST_IN_CHAINS: usize = 12;

/// The same from the first row to the last, for a few rows.
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

/// Where a chain of eliminations stands: the inverse of the last pivot, that row's right-hand side, and its coupling to the
/// next. One that comes from the `MIDDLE` row couples all of its rows to that.
#[derive(Clone, Copy, Default)]
struct Chain<const MIDDLE: bool> {
    inverse: f64,
    right: f64,
    coupling: f64,
    /// The last row's coupling to the middle one, and that one's to the next row.
    far: f64,
    back: f64,
    /// What all rows take from the middle one's diagonal and right-hand side.
    taken: f64,
    taken_right: f64,
}

impl<const MIDDLE: bool> Chain<MIDDLE> {
    /// Before its first row, which is coupled to the middle one by `far`, and that one to it by `back`. The coupling of that
    /// row to the one before is to be given as 1: then `far` stays as it is.
    fn from_middle(far: f64, back: f64) -> Chain<MIDDLE> {
        Chain { inverse: -1.0, coupling: 0.0, far, back, ..Chain::default() }
    }

    /// The next row; gives the inverse of its pivot and its right-hand side.
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

/// The analysed pattern of a sparse matrix. Its values: the diagonal in the order of elimination, then L below it by
/// columns, then U right of it by rows, with the same pattern.
#[derive(Clone, Debug)]
struct Pattern {
    /// The old number of each new row, and the new number of each old one.
    order: Vec<u32>,
    position: Vec<u32>,
    /// The rows of L by columns, increasing.
    start: Vec<u32>,
    row: Vec<u32>,
}

impl Pattern {
    fn new(n: usize, entries: &[(u32, u32)]) -> Pattern {
        let neighbours = neighbours(n, entries);
        // An unknown that its own equation does not hold gets a pivot by the elimination of others.
        let mut held = vec![false; n];
        for &(i, _) in entries.iter().filter(|(i, j)| i == j) {
            held[i as usize] = true;
        }
        let order = minimum_degree_after(&neighbours, |i| !held[i as usize]);
        let mut position = vec![0; n];
        for (new, &old) in order.iter().enumerate() {
            position[old as usize] = new as u32;
        }
        let around = |k: u32| neighbours.of(order[k as usize] as usize).iter().map(|&other| position[other as usize]);
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

    /// Column by column: column k of L and row k of U are divided, and what they change further on is changed, through
    /// accumulators for a column and a row.
    fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        let n = self.order.len();
        let (diagonal, rest) = values.split_at_mut(n);
        let (lower, upper) = rest.split_at_mut(self.row.len());
        let y = &mut work[..n];
        let mut pivots = Pivots::NONE_YET;
        for (new, &old) in self.order.iter().enumerate() {
            y[new] = b[old as usize];
        }
        for k in 0..n {
            let (from, to) = (self.start[k] as usize, self.start[k + 1] as usize);
            let pivot = diagonal[k];
            pivots.take(pivot);
            let inverse = 1.0 / pivot;
            for l in &mut lower[from..to] {
                *l *= inverse;
            }
            // The rows of column k are joined, so columns i and rows i of the factors hold all that changes.
            for p in from..to {
                let i = self.row[p] as usize;
                diagonal[i] -= lower[p] * upper[p];
                y[i] -= lower[p] * y[k];
                let mut at = self.start[i] as usize;
                for q in p + 1..to {
                    while self.row[at] < self.row[q] {
                        at += 1;
                    }
                    lower[at] -= lower[q] * upper[p];
                    upper[at] -= lower[p] * upper[q];
                }
            }
        }
        for k in (0..n).rev() {
            let mut sum = y[k];
            for p in self.start[k] as usize..self.start[k + 1] as usize {
                sum -= upper[p] * y[self.row[p] as usize];
            }
            y[k] = sum / diagonal[k];
        }
        for (new, &old) in self.order.iter().enumerate() {
            b[old as usize] = y[new];
        }
        pivots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A random diagonally dominant matrix whose graph has these edges.
    fn check(n: usize, edges: &[(u32, u32)]) {
        let mut random = Random::new(n as u64);
        let mut entries: Vec<(u32, u32)> = (0..n as u32).map(|i| (i, i)).collect();
        // Some entries have no twin on the other side.
        entries.extend(edges.iter().enumerate().flat_map(|(k, &(i, j))| match k % 5 {
            0 => vec![(i, j)],
            _ => vec![(i, j), (j, i)],
        }));
        let value: Vec<f64> =
            (0..entries.len()).map(|k| if k < n { 8.0 + random.normal() } else { random.normal() }).collect();
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

    #[test]
    fn trees_have_no_fill() {
        let edges: Vec<(u32, u32)> = (0..1000).map(|i| (i, i)).chain((1..1000).map(|i| ((i - 1) / 2, i))).collect();
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
