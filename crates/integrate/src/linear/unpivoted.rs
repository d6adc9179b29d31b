//! Elimination without pivoting for the large Newton matrices of a step, which are nearly symmetric and definite: h² times
//! G M⁻¹ Gᵀ for constraints, 1 + O(h) for stages. A tridiagonal one is eliminated from both ends at once; others are
//! factored as L U in an order of little fill, on the symmetric closure of their pattern, which is analysed once.
//!
//! Nothing here holds numbers: values, right-hand side and scratch come from the caller, and nothing is allocated.

use super::lu::Pivots;
use super::ordering::minimum_degree;

const NONE: u32 = u32::MAX;

/// How a matrix of a fixed pattern is solved.
#[derive(Clone, Debug)]
pub struct Unpivoted {
    n: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Sub-, main and superdiagonal are the values, one behind the other.
    Tridiagonal,
    General(Box<Pattern>),
}

impl Unpivoted {
    /// For a matrix of size `n` with these (row, column) entries.
    pub fn new(n: usize, entries: &[(u32, u32)]) -> Unpivoted {
        let tridiagonal = entries.iter().all(|&(i, j)| i.abs_diff(j) <= 1);
        let kind = if tridiagonal { Kind::Tridiagonal } else { Kind::General(Box::new(Pattern::new(n, entries))) };
        Unpivoted { n, kind }
    }

    /// How many values a matrix has; those that no entry is stored to are 0.
    pub fn values(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal => 3 * self.n,
            Kind::General(pattern) => self.n + 2 * pattern.row.len(),
        }
    }

    /// Where among the values an entry stands.
    pub fn place(&self, row: u32, column: u32) -> u32 {
        match &self.kind {
            Kind::Tridiagonal => (1 + column - row) * self.n as u32 + row,
            Kind::General(pattern) => pattern.place(row, column),
        }
    }

    /// Length of the scratch of [`Unpivoted::solve`].
    pub fn work_len(&self) -> usize {
        match &self.kind {
            Kind::Tridiagonal => self.n,
            Kind::General(_) => 3 * self.n,
        }
    }

    /// Solves A u = b in place of b; the values are lost.
    pub fn solve(&self, values: &mut [f64], b: &mut [f64], work: &mut [f64]) -> Pivots {
        match &self.kind {
            Kind::Tridiagonal => {
                let (lower, rest) = values.split_at_mut(self.n);
                let (diagonal, upper) = rest.split_at_mut(self.n);
                twisted(lower, diagonal, &upper[..self.n], b, &mut work[..self.n])
            }
            Kind::General(pattern) => pattern.solve(values, b, work),
        }
    }
}

/// Solves a tridiagonal system from both ends at once, so that two chains of divisions overlap: row i reads
/// a_i u_{i−1} + d_i u_i + c_i u_{i+1} = b_i.
fn twisted(a: &[f64], d: &[f64], c: &[f64], b: &mut [f64], inverse: &mut [f64]) -> Pivots {
    let n = b.len();
    let (a, d, c, inverse) = (&a[..n], &d[..n], &c[..n], &mut inverse[..n]);
    let (mut smallest, mut largest, mut negative) = (f64::INFINITY, 0.0f64, false);
    let mut take = |pivot: f64| {
        let size = pivot.abs();
        // In this order NaN is kept.
        smallest = if size >= smallest { smallest } else { size };
        largest = largest.max(size);
        negative ^= pivot < 0.0;
    };
    let middle = n / 2;
    // Rows below `middle` downwards, rows above it upwards, as many of each but for one.
    let (mut up, mut down) = ((0.0, 0.0), (0.0, 0.0));
    let mut previous = (0.0, 0.0);
    for k in 0..n - 1 - middle {
        let j = n - 1 - k;
        if k < middle {
            let factor = if k == 0 { 0.0 } else { a[k] * up.0 };
            let pivot = if k == 0 { d[k] } else { (-factor).mul_add(previous.0, d[k]) };
            take(pivot);
            up = (1.0 / pivot, (-factor).mul_add(up.1, b[k]));
            (inverse[k], b[k], previous.0) = (up.0, up.1, c[k]);
        }
        let factor = if k == 0 { 0.0 } else { c[j] * down.0 };
        let pivot = if k == 0 { d[j] } else { (-factor).mul_add(previous.1, d[j]) };
        take(pivot);
        down = (1.0 / pivot, (-factor).mul_add(down.1, b[j]));
        (inverse[j], b[j], previous.1) = (down.0, down.1, a[j]);
    }
    if n - 1 - middle < middle {
        let k = middle - 1;
        let factor = if k == 0 { 0.0 } else { a[k] * up.0 };
        let pivot = if k == 0 { d[k] } else { (-factor).mul_add(previous.0, d[k]) };
        take(pivot);
        up = (1.0 / pivot, (-factor).mul_add(up.1, b[k]));
        (inverse[k], b[k], previous.0) = (up.0, up.1, c[k]);
    }
    let (mut pivot, mut right) = (d[middle], b[middle]);
    if middle > 0 {
        let factor = a[middle] * up.0;
        pivot = (-factor).mul_add(previous.0, pivot);
        right = (-factor).mul_add(up.1, right);
    }
    if middle + 1 < n {
        let factor = c[middle] * down.0;
        pivot = (-factor).mul_add(previous.1, pivot);
        right = (-factor).mul_add(down.1, right);
    }
    take(pivot);
    b[middle] = right / pivot;
    let (mut left, mut right) = (b[middle], b[middle]);
    for k in 1..=middle.max(n - 1 - middle) {
        if k <= middle {
            let i = middle - k;
            left = (-c[i]).mul_add(left, b[i]) * inverse[i];
            b[i] = left;
        }
        if middle + k < n {
            let j = middle + k;
            right = (-a[j]).mul_add(right, b[j]) * inverse[j];
            b[j] = right;
        }
    }
    Pivots { smallest, largest, negative }
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
        let mut neighbours = vec![Vec::new(); n];
        for &(i, j) in entries.iter().filter(|(i, j)| i != j) {
            neighbours[i as usize].push(j);
            neighbours[j as usize].push(i);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let order = minimum_degree(&neighbours);
        let mut position = vec![0; n];
        for (new, &old) in order.iter().enumerate() {
            position[old as usize] = new as u32;
        }
        // Row k of L: from every entry left of the diagonal up the elimination tree (Davis 2006, ch. 4).
        let (mut parent, mut mark) = (vec![NONE; n], vec![NONE; n]);
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); n];
        for k in 0..n as u32 {
            mark[k as usize] = k;
            for &neighbour in &neighbours[order[k as usize] as usize] {
                let mut i = position[neighbour as usize];
                while i < k && mark[i as usize] != k {
                    if parent[i as usize] == NONE {
                        parent[i as usize] = k;
                    }
                    columns[i as usize].push(k);
                    mark[i as usize] = k;
                    i = parent[i as usize];
                }
            }
        }
        let mut start = vec![0; n + 1];
        for (k, column) in columns.iter().enumerate() {
            start[k + 1] = start[k] + column.len() as u32;
        }
        Pattern { order, position, start, row: columns.concat() }
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
        let mut pivots = Pivots { smallest: f64::INFINITY, largest: 0.0, negative: false };
        for (new, &old) in self.order.iter().enumerate() {
            y[new] = b[old as usize];
        }
        for k in 0..n {
            let (from, to) = (self.start[k] as usize, self.start[k + 1] as usize);
            let pivot = diagonal[k];
            let size = pivot.abs();
            pivots.smallest = if size >= pivots.smallest { pivots.smallest } else { size };
            pivots.largest = pivots.largest.max(size);
            pivots.negative ^= pivot < 0.0;
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
    use crate::noise::Noise;

    /// A random diagonally dominant matrix whose graph has these edges.
    fn check(n: usize, edges: &[(u32, u32)]) {
        let noise = Noise::new(5, n as u32);
        let mut entries: Vec<(u32, u32)> = (0..n as u32).map(|i| (i, i)).collect();
        // Some entries have no twin on the other side.
        entries.extend(edges.iter().enumerate().flat_map(|(k, &(i, j))| match k % 5 {
            0 => vec![(i, j)],
            _ => vec![(i, j), (j, i)],
        }));
        let value = |k: usize| if k < n { 8.0 + noise.normal(k as u64, 0) } else { noise.normal(k as u64, 0) };
        let solution: Vec<f64> = (0..n).map(|i| noise.normal(i as u64, 1)).collect();
        let solver = Unpivoted::new(n, &entries);
        let (mut values, mut b) = (vec![0.0; solver.values()], vec![0.0; n]);
        for (k, &(i, j)) in entries.iter().enumerate() {
            values[solver.place(i, j) as usize] += value(k);
            b[i as usize] += value(k) * solution[j as usize];
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
        for n in 1..12 {
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
