//! Sparse symmetric L D Lᵀ, up-looking: row k of L solves L(0..k) y = A(0..k, k), and its nonzeros
//! are found by walking the elimination tree. The symbolic part is done once; factoring and solving
//! allocate nothing.

use crate::elimination_tree::{FactorPattern, NONE};
use crate::ordering::{minimum_degree, neighbours};

/// Factors of a sparse symmetric matrix of fixed pattern.
#[derive(Clone, Debug)]
pub struct SparseLdl {
    /// Old number of each new row.
    order: Vec<u32>,
    /// Upper triangle of the reordered matrix by columns: offsets, new rows, and the index of the
    /// value.
    a_start: Vec<usize>,
    a_row: Vec<u32>,
    a_entry: Vec<usize>,
    /// L by columns, without its unit diagonal.
    l: FactorPattern,
    l_value: Vec<f64>,
    /// Inverse of D; 0 for a dropped pivot.
    d_inverse: Vec<f64>,
    // Scratch of factoring and solving.
    filled: Vec<usize>,
    y: Vec<f64>,
    mark: Vec<u32>,
    pattern: Vec<u32>,
}

impl SparseLdl {
    /// Analyse the pattern: `entries` are the (row, column) of the stored values, one of each
    /// symmetric pair, in the order in which [`SparseLdl::factor`] receives them.
    pub fn new(n: usize, entries: &[(u32, u32)]) -> SparseLdl {
        SparseLdl::with_order(minimum_degree(&neighbours(n, entries)), entries)
    }

    /// Analyse the pattern like [`SparseLdl::new`] with a given order: `order[new]` is the old
    /// number of a row.
    pub fn with_order(order: Vec<u32>, entries: &[(u32, u32)]) -> SparseLdl {
        let n = order.len();
        let mut new_number = vec![0u32; n];
        for (new, &old) in order.iter().enumerate() {
            new_number[old as usize] = new as u32;
        }
        let mut upper: Vec<(u32, u32, usize)> = Vec::with_capacity(entries.len());
        for (entry, &(i, j)) in entries.iter().enumerate() {
            let (i, j) = (new_number[i as usize], new_number[j as usize]);
            upper.push((i.max(j), i.min(j), entry));
        }
        upper.sort_unstable();
        let mut a_start = vec![0; n + 1];
        for &(column, _, _) in &upper {
            a_start[column as usize + 1] += 1;
        }
        for k in 0..n {
            a_start[k + 1] += a_start[k];
        }
        let a_row: Vec<u32> = upper.iter().map(|&(_, row, _)| row).collect();
        let column = |k: u32| a_row[a_start[k as usize]..a_start[k as usize + 1]].iter().copied();
        let l = FactorPattern::new(n, column);
        SparseLdl {
            l_value: vec![0.0; l.row.len()],
            l,
            order,
            a_start,
            a_row,
            a_entry: upper.iter().map(|&(_, _, entry)| entry).collect(),
            d_inverse: vec![0.0; n],
            filled: vec![0; n],
            y: vec![0.0; n],
            mark: vec![NONE; n],
            pattern: vec![0; n],
        }
    }

    /// Number of nonzeros below the diagonal of L.
    pub fn fill(&self) -> usize {
        self.l.row.len()
    }

    /// Factor the matrix of these values. A pivot of at most `tolerance` is dropped: its row
    /// depends on the others, and its part of a solution is zero. Returns the number of dropped
    /// pivots.
    pub fn factor(&mut self, values: &[f64], tolerance: f64) -> usize {
        let n = self.order.len();
        self.filled.fill(0);
        self.mark.fill(NONE);
        let mut dropped = 0;
        for k in 0..n {
            let mut top = n;
            let mut pivot = 0.0;
            self.mark[k] = k as u32;
            for p in self.a_start[k]..self.a_start[k + 1] {
                let value = values[self.a_entry[p]];
                let row = self.a_row[p] as usize;
                if row == k {
                    pivot += value;
                    continue;
                }
                self.y[row] += value;
                // The path from `row` to a marked node is put before what is already on the stack.
                // It ascends and is complete below, which is the order of elimination.
                let mut length = 0;
                let mut i = row;
                while self.mark[i] != k as u32 {
                    self.pattern[length] = i as u32;
                    length += 1;
                    self.mark[i] = k as u32;
                    i = self.l.parent[i] as usize;
                }
                while length > 0 {
                    length -= 1;
                    top -= 1;
                    self.pattern[top] = self.pattern[length];
                }
            }
            for position in top..n {
                let i = self.pattern[position] as usize;
                let y = std::mem::take(&mut self.y[i]);
                let start = self.l.start[i];
                let end = start + self.filled[i];
                for p in start..end {
                    self.y[self.l.row[p] as usize] -= self.l_value[p] * y;
                }
                let l = y * self.d_inverse[i];
                pivot -= l * y;
                self.l_value[end] = l;
                self.filled[i] += 1;
            }
            if pivot <= tolerance {
                dropped += 1;
                self.d_inverse[k] = 0.0;
            } else {
                self.d_inverse[k] = 1.0 / pivot; // NaN stays NaN and reaches the caller's check
            }
        }
        dropped
    }

    /// Solve A x = b in place.
    pub fn solve(&mut self, b: &mut [f64]) {
        let n = self.order.len();
        for k in 0..n {
            self.y[k] = b[self.order[k] as usize];
        }
        for k in 0..n {
            let y = self.y[k];
            for p in self.l.start[k]..self.l.start[k + 1] {
                self.y[self.l.row[p] as usize] -= self.l_value[p] * y;
            }
        }
        for k in (0..n).rev() {
            let mut y = self.y[k] * self.d_inverse[k];
            for p in self.l.start[k]..self.l.start[k + 1] {
                y -= self.l_value[p] * self.y[self.l.row[p] as usize];
            }
            self.y[k] = y;
        }
        for k in 0..n {
            b[self.order[k] as usize] = self.y[k];
        }
        // Factoring expects its accumulator to be empty.
        self.y.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_dense_factorisation(
            pairs in prop::collection::vec((0u32..20, 0u32..20, -1.0..1.0f64), 0..60),
            x in prop::collection::vec(-1.0..1.0f64, 20),
        ) {
            let n = 20;
            let mut entries: Vec<(u32, u32)> = (0..n as u32).map(|i| (i, i)).collect();
            // Diagonally dominant: at most 60 entries of at most 1.
            let mut values = vec![61.0; n];
            for (i, j, value) in pairs {
                if i != j {
                    entries.push((i, j));
                    values.push(value);
                }
            }
            let mut a = vec![0.0; n * n];
            for (&(i, j), value) in entries.iter().zip(&values) {
                let (i, j) = (i as usize, j as usize);
                a[i * n + j] += value;
                if i != j {
                    a[j * n + i] += value;
                }
            }
            let mut expected = x.clone();
            dense::ldl_factor(&mut a, n, 0.0);
            dense::ldl_solve(&a, n, &mut expected);
            let mut found = x.clone();
            let mut ldl = SparseLdl::new(n, &entries);
            prop_assert_eq!(ldl.factor(&values, 1e-14), 0);
            ldl.solve(&mut found);
            // Twice, so that stale scratch would show.
            ldl.factor(&values, 1e-14);
            let mut again = x.clone();
            ldl.solve(&mut again);
            prop_assert_eq!(&found, &again);
            // The condition number is at most 121; 20 rows of ε each.
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn a_chain_has_no_fill() {
        let n = 1000u32;
        let entries: Vec<(u32, u32)> =
            (0..n).map(|i| (i, i)).chain((1..n).map(|i| (i, i - 1))).collect();
        assert_eq!(SparseLdl::new(n as usize, &entries).fill(), n as usize - 1);
    }

    #[test]
    fn a_redundant_row_is_dropped() {
        // Rows 0 and 1 are the same: A = [[1, 1, 0], [1, 1, 0], [0, 0, 4]].
        let mut ldl = SparseLdl::new(3, &[(0, 0), (1, 0), (1, 1), (2, 2)]);
        assert_eq!(ldl.factor(&[1.0, 1.0, 1.0, 4.0], 1e-14), 1);
        let mut b = [3.0, 3.0, 8.0];
        ldl.solve(&mut b);
        assert_eq!((b[0] + b[1], b[2]), (3.0, 2.0));
    }
}
