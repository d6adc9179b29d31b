//! Elimination tree of a sparse symmetric pattern and the pattern of its factor (Liu, SIAM J.
//! Matrix Anal. Appl. 11 (1990) 134; Davis, Direct Methods for Sparse Linear Systems, 2006, ch. 4).

use crate::lists::Lists;

/// Parent of a root, and mark of a node that no row has reached.
pub const NONE: u32 = u32::MAX;

/// Pattern of L below its diagonal.
#[derive(Clone, Debug)]
pub struct FactorPattern {
    /// Parent of each node in the elimination tree, [`NONE`] for a root.
    pub parent: Vec<u32>,
    /// Start of each column in `row`, then the length of `row`; length n + 1.
    pub start: Vec<usize>,
    /// Rows of each column, increasing.
    pub row: Vec<u32>,
}

impl FactorPattern {
    /// Pattern of the factor of a matrix of size `n`; `row(k)` yields the columns of its entries in
    /// row k, in the order of elimination. Entries on or right of the diagonal are ignored.
    pub fn new<R: IntoIterator<Item = u32>>(n: usize, row: impl Fn(u32) -> R) -> FactorPattern {
        let (mut parent, mut mark) = (vec![NONE; n], vec![NONE; n]);
        let mut start = vec![0; n + 1];
        for k in 0..n as u32 {
            // Column i of L has a nonzero in row k iff i lies on a path from an entry towards the
            // root, below k.
            for mut i in row(k) {
                while i < k && mark[i as usize] != k {
                    if parent[i as usize] == NONE {
                        parent[i as usize] = k;
                    }
                    start[i as usize + 1] += 1;
                    mark[i as usize] = k;
                    i = parent[i as usize];
                }
            }
        }
        for k in 0..n {
            start[k + 1] += start[k];
        }
        // The same walk again, now that the lengths of the columns are known.
        let mut next = start[..n].to_vec();
        let mut rows = vec![0; start[n]];
        mark.fill(NONE);
        for k in 0..n as u32 {
            for mut i in row(k) {
                while i < k && mark[i as usize] != k {
                    rows[next[i as usize]] = k;
                    next[i as usize] += 1;
                    mark[i as usize] = k;
                    i = parent[i as usize];
                }
            }
        }
        FactorPattern { parent, start, row: rows }
    }

    /// Columns of each row, increasing.
    pub fn rows(&self) -> Lists {
        let column = |k: usize| {
            self.row[self.start[k]..self.start[k + 1]].iter().map(move |&row| (row, k as u32))
        };
        Lists::collect(self.parent.len(), || (0..self.parent.len()).flat_map(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_that_of_an_elimination() {
        // An arrow the wrong way, a ring, an isolated node; the reference is elimination of a full
        // matrix of flags.
        let n = 12;
        let mut entries: Vec<(u32, u32)> = (1..4).map(|i| (i, 0)).collect();
        entries.extend((4..11).map(|i| (i, if i == 4 { 10 } else { i - 1 })));
        entries.push((6, 2));
        let mut full = vec![vec![false; n]; n];
        for &(i, j) in &entries {
            full[i as usize][j as usize] = true;
            full[j as usize][i as usize] = true;
        }
        let row =
            |k: u32| (0..n as u32).filter(|&j| full[k as usize][j as usize]).collect::<Vec<_>>();
        let pattern = FactorPattern::new(n, row);
        let mut filled = full.clone();
        for k in 0..n {
            let below: Vec<usize> = (k + 1..n).filter(|&i| filled[i][k]).collect();
            below.iter().for_each(|&i| below.iter().for_each(|&j| filled[i][j] |= i != j));
            let found: Vec<usize> = pattern.row[pattern.start[k]..pattern.start[k + 1]]
                .iter()
                .map(|&i| i as usize)
                .collect();
            assert_eq!(found, below, "column {k}");
            assert_eq!(pattern.parent[k], below.first().map_or(NONE, |&i| i as u32));
        }
        for (k, columns) in pattern.rows().iter().enumerate() {
            assert_eq!(
                columns.iter().map(|&j| j as usize).collect::<Vec<_>>(),
                (0..k).filter(|&j| filled[k][j]).collect::<Vec<_>>()
            );
        }
    }
}
