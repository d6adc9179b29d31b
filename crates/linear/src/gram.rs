//! Gram matrices of sparse rows: dependent rows, and least changes that alter the rows' products.

use crate::elimination_tree::FactorPattern;
use crate::lists::Lists;
use crate::ordering::minimum_degree;

/// Sparse row: (column, value), columns increasing.
pub type Row = Vec<(u32, f64)>;

/// Product Σ aᵢ bᵢ of two sparse rows.
pub fn dot(a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        match a[i].0.cmp(&b[j].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                sum += a[i].1 * b[j].1;
                i += 1;
                j += 1;
            }
        }
    }
    sum
}

/// LDLᵀ of the Gram matrix of unit-scaled sparse rows without pivoting. Each pivot is the squared
/// sine of the angle between a row and the span of the rows eliminated before it.
pub struct Gram {
    scale: Vec<f64>,
    /// Row eliminated at each place.
    order: Vec<u32>,
    /// Columns of the rows of L by place, and their entries in one array.
    pattern: Lists,
    lower: Vec<f64>,
    pivots: Vec<f64>,
}

/// Pivot below which a row counts as dependent: its angle to the span of the others is below 1e-6.
/// The Gram matrix squares the angle and cannot resolve much less.
pub const DEPENDENT: f64 = 1e-12;

impl Gram {
    /// Factor the Gram matrix of `rows` in their own order: of dependent rows the later is found.
    pub fn in_order<R: AsRef<[(u32, f64)]>>(rows: &[R]) -> Gram {
        Gram::factor((rows, rows), (0..rows.len() as u32).collect(), &neighbours(rows), 0.0)
    }

    /// Factor the Gram matrix of `rows`, with `shift` added to its diagonal, in an order that keeps
    /// it sparse.
    pub fn new<R: AsRef<[(u32, f64)]>>(rows: &[R], shift: f64) -> Gram {
        let neighbours = neighbours(rows);
        Gram::factor((rows, rows), minimum_degree(&neighbours), &neighbours, shift)
    }

    /// Factor the symmetric positive definite matrix of the products leftᵢ · rightⱼ.
    pub fn of_products(left: &[Row], right: &[Row]) -> Gram {
        let both = |(a, b): (&Row, &Row)| -> Row {
            let mut columns: Row = a.iter().chain(b).map(|&(c, _)| (c, 1.0)).collect();
            columns.sort_unstable_by_key(|&(c, _)| c);
            columns.dedup_by_key(|(c, _)| *c);
            columns
        };
        let neighbours = neighbours(&left.iter().zip(right).map(both).collect::<Vec<_>>());
        Gram::factor((left, right), minimum_degree(&neighbours), &neighbours, 0.0)
    }

    fn factor<R: AsRef<[(u32, f64)]>>(
        (left, right): (&[R], &[R]),
        order: Vec<u32>,
        neighbours: &Lists,
        shift: f64,
    ) -> Gram {
        let n = left.len();
        let product = |i: usize, j: usize| dot(left[i].as_ref(), right[j].as_ref());
        let scale = |i: usize| {
            let square = product(i, i).sqrt();
            if square > 0.0 { 1.0 / square } else { 0.0 }
        };
        let scale: Vec<f64> = (0..n).map(scale).collect();
        let mut place = vec![0u32; n];
        for (k, &row) in order.iter().enumerate() {
            place[row as usize] = k as u32;
        }
        let around = |i: u32| neighbours.of(order[i as usize] as usize).iter();
        let pattern =
            FactorPattern::new(n, |i| around(i).map(|&other| place[other as usize])).rows();
        // Entries of the rows of L in one array, and the start of each row.
        let (mut lower, mut start): (Vec<f64>, Vec<usize>) = (Vec::new(), vec![0]);
        let mut pivots: Vec<f64> = Vec::with_capacity(n);
        // Row i of the matrix by places; all 0 between two rows.
        let mut products = vec![0.0; n];
        for (i, &row) in order.iter().enumerate() {
            let row = row as usize;
            for &other in neighbours.of(row) {
                let other = other as usize;
                if (place[other] as usize) < i {
                    products[place[other] as usize] =
                        product(row, other) * scale[row] * scale[other];
                }
            }
            let mut diagonal = if scale[row] > 0.0 { 1.0 + shift } else { 0.0 };
            let (columns, first) = (pattern.of(i), lower.len());
            // Up-looking: the columns before j are final.
            for (finished, &j) in columns.iter().enumerate() {
                let j = j as usize;
                let mut value = std::mem::take(&mut products[j]);
                for (&k, &l) in pattern.of(j).iter().zip(&lower[start[j]..]) {
                    if let Ok(at) = columns[..finished].binary_search(&k) {
                        value -= lower[first + at] * pivots[k as usize] * l;
                    }
                }
                let entry = if pivots[j] > DEPENDENT { value / pivots[j] } else { 0.0 };
                diagonal -= entry * entry * pivots[j];
                lower.push(entry);
            }
            start.push(lower.len());
            pivots.push(diagonal);
        }
        Gram { scale, order, pattern, lower, pivots }
    }

    /// First `count` rows of L by place: their entries with their columns.
    fn rows(
        &self,
        count: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, impl Iterator<Item = (usize, f64)>)> {
        let starts = self.pattern.starts();
        let row = move |i: usize| {
            let entries = self.pattern.of(i).iter().zip(&self.lower[starts[i]..]);
            (i, entries.map(|(&j, &l)| (j as usize, l)))
        };
        (0..count).map(row)
    }

    /// Smallest pivot, 1 if there is none: the square of the sine of an angle between rows, where 1
    /// is independent.
    pub fn smallest_pivot(&self) -> f64 {
        self.pivots.iter().copied().fold(1.0, f64::min)
    }

    /// Rows that depend on the rows before them.
    pub fn dependent(&self) -> Vec<usize> {
        (0..self.pivots.len())
            .filter(|&i| self.pivots[i] <= DEPENDENT)
            .map(|i| self.order[i] as usize)
            .collect()
    }

    /// Coefficients y of the least-norm change x = Σ yᵢ rowᵢ whose products with the rows are
    /// `right`; 0 for dependent rows.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let n = right.len();
        let mut y: Vec<f64> =
            self.order.iter().map(|&row| right[row as usize] * self.scale[row as usize]).collect();
        for (i, row) in self.rows(n) {
            for (j, l) in row {
                y[i] -= l * y[j];
            }
        }
        for (y, &d) in y.iter_mut().zip(&self.pivots) {
            *y = if d > DEPENDENT { *y / d } else { 0.0 };
        }
        for (i, row) in self.rows(n).rev() {
            for (j, l) in row {
                y[j] -= l * y[i];
            }
        }
        let mut solution = vec![0.0; n];
        for (&row, y) in self.order.iter().zip(y) {
            solution[row as usize] = y * self.scale[row as usize];
        }
        solution
    }

    /// Coefficients by which the dependent row `row` is a combination of the rows before it: (row,
    /// coefficient of unit rows).
    pub fn combination(&self, row: usize) -> Vec<(usize, f64)> {
        let i = self.order.iter().position(|&r| r as usize == row).expect("a row of this matrix");
        let mut c = vec![0.0; i];
        for (j, row) in self.rows(i + 1).rev() {
            for (k, l) in row {
                if j == i { c[k] = l } else { c[k] -= l * c[j] }
            }
        }
        c.into_iter()
            .enumerate()
            .filter(|(_, v)| v.abs() > 1e-7)
            .map(|(k, v)| (self.order[k] as usize, v))
            .collect()
    }
}

/// For each row, the rows that share a column with it: the structural nonzeros of the Gram matrix.
fn neighbours<R: AsRef<[(u32, f64)]>>(rows: &[R]) -> Lists {
    let columns =
        || rows.iter().flat_map(|row| row.as_ref()).map(|&(column, _)| column as usize + 1);
    let entries = || {
        (0..)
            .zip(rows)
            .flat_map(|(i, row)| row.as_ref().iter().map(move |&(column, _)| (column, i)))
    };
    let holders = Lists::collect(columns().max().unwrap_or(0), entries);
    let around = |(i, row): (u32, &R)| {
        let all = row.as_ref().iter().flat_map(|&(column, _)| holders.of(column as usize));
        let mut others: Vec<u32> = all.copied().filter(|&j| j != i).collect();
        others.sort_unstable();
        others.dedup();
        others
    };
    (0..).zip(rows).map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Gaussian elimination with partial pivoting, as the oracle.
    fn solve(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
        let n = b.len();
        let mut m: Vec<Vec<f64>> =
            a.iter().zip(b).map(|(r, &b)| r.iter().copied().chain([b]).collect()).collect();
        for k in 0..n {
            let pivot = (k..n).max_by(|&i, &j| m[i][k].abs().total_cmp(&m[j][k].abs())).unwrap();
            m.swap(k, pivot);
            for i in k + 1..n {
                let f = m[i][k] / m[k][k];
                for j in k..=n {
                    m[i][j] -= f * m[k][j];
                }
            }
        }
        let mut x = vec![0.0; n];
        for k in (0..n).rev() {
            x[k] = (m[k][n] - (k + 1..n).map(|j| m[k][j] * x[j]).sum::<f64>()) / m[k][k];
        }
        x
    }

    /// Sparse rows over `columns` columns, each entry present with probability `density`.
    fn random_rows(rows: usize, columns: usize, density: f64, random: &mut Random) -> Vec<Row> {
        (0..rows)
            .map(|i| {
                let mut row: Row = Vec::new();
                for j in 0..columns {
                    let v = random.draw();
                    // At least one entry of its own, so that rows are mostly independent.
                    if j == i || (random.draw() + 1.0) / 2.0 < density {
                        row.push((j as u32, if j == i { 2.0 + v } else { v }));
                    }
                }
                row
            })
            .collect()
    }

    fn dense(row: &Row, columns: usize) -> Vec<f64> {
        let mut d = vec![0.0; columns];
        row.iter().for_each(|&(j, v)| d[j as usize] = v);
        d
    }

    #[test]
    fn sparse_products() {
        assert_eq!(
            dot(&[(0, 1.0), (3, 2.0), (7, 3.0)], &[(1, 5.0), (3, 4.0), (7, -1.0), (9, 1.0)]),
            5.0
        );
        assert_eq!(dot(&[], &[(1, 5.0)]), 0.0);
    }

    #[test]
    fn gram_systems_are_solved() {
        let mut random = Random::new(1);
        for (rows, density) in [(1, 0.5), (3, 1.0), (8, 0.1), (20, 0.05), (20, 0.5), (60, 0.02)] {
            let list = random_rows(rows, rows + 5, density, &mut random);
            let right: Vec<f64> = (0..rows).map(|_| random.draw()).collect();
            let matrix: Vec<Vec<f64>> =
                list.iter().map(|a| list.iter().map(|b| dot(a, b)).collect()).collect();
            let exact = solve(&matrix, &right);
            let largest = exact.iter().fold(0.0f64, |s, v| s.max(v.abs()));
            let in_order = Gram::in_order(&list);
            assert!(in_order.dependent().is_empty());
            let gram = Gram::new(&list, 0.0);
            assert!(gram.dependent().is_empty());
            let got = gram.solve(&right);
            // Rows are diagonally heavy: the condition stays below 1e5, and n² roundings of it
            // below 1e-9 for most n.
            for ((a, b), c) in got.iter().zip(&exact).zip(in_order.solve(&right)) {
                assert!(
                    (a - b).abs() <= 1e-8 * largest && (c - b).abs() <= 1e-8 * largest,
                    "{rows}: {a} {b} {c}"
                );
            }
            // The residual does not depend on the condition: y reproduces the right side to n
            // roundings of its terms.
            for (row, r) in matrix.iter().zip(&right) {
                let (sum, size) = row
                    .iter()
                    .zip(&got)
                    .fold((0.0, 0.0), |(s, z), (a, y)| (s + a * y, z + (a * y).abs()));
                assert!(
                    (sum - r).abs() <= 20.0 * rows as f64 * f64::EPSILON * (size + 1.0),
                    "{rows}: {sum} {r}"
                );
            }
        }
    }

    #[test]
    fn dependent_rows_are_found_with_their_combination() {
        let mut random = Random::new(2);
        let mut list = random_rows(6, 9, 0.4, &mut random);
        // Row 6 = 2·row 1 − row 4; row 7 is independent; row 8 = 3·row 7; row 9 is 0.
        let combine = |a: &Row, x: f64, b: &Row, y: f64| -> Row {
            let (a, b) = (dense(a, 9), dense(b, 9));
            (0..9).map(|j| (j as u32, x * a[j] + y * b[j])).filter(|e| e.1 != 0.0).collect()
        };
        list.push(combine(&list[1], 2.0, &list[4], -1.0));
        list.push(vec![(7, 1.0), (8, -2.0)]);
        list.push(vec![(7, 3.0), (8, -6.0)]);
        list.push(vec![]);
        let gram = Gram::in_order(&list);
        assert_eq!(gram.dependent(), [6, 8, 9]);
        assert_eq!(Gram::new(&list, 0.0).dependent().len(), 3);
        let norm = |k: usize| dot(&list[k], &list[k]).sqrt();
        let expected = [(1, 2.0 * norm(1) / norm(6)), (4, -norm(4) / norm(6))];
        let got = gram.combination(6);
        assert_eq!(got.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 4]);
        for ((_, a), (_, b)) in got.iter().zip(expected) {
            // The pivots' conditions are moderate (above 1e-3): a few digits are lost.
            assert!((a - b).abs() < 1e-10, "{got:?} {expected:?}");
        }
        let twice = gram.combination(8);
        assert!(
            twice.len() == 1 && twice[0].0 == 7 && (twice[0].1 - 1.0).abs() < 1e-12,
            "{twice:?}"
        );
        assert!(gram.combination(9).is_empty());
        // Dependent rows have coefficient 0.
        let y = gram.solve(&[1.0; 10]);
        assert_eq!([y[6], y[8], y[9]], [0.0; 3]);
        // A row is dependent if its angle to the span of the rows before is below 1e-6.
        for (angle, found) in [(1e-5f64, vec![]), (1e-7, vec![1])] {
            let pair = Gram::in_order(&[
                vec![(0, 1.0)],
                vec![(0, 5.0 * angle.cos()), (1, 5.0 * angle.sin())],
            ]);
            assert_eq!(pair.dependent(), found, "{angle}");
        }
    }

    #[test]
    fn a_shift_is_added_to_unit_rows() {
        // Rows (3, 0) and (0, 4) are (1, 0) and (0, 1) when scaled: y = right/(1 + shift)/norm².
        let gram = Gram::new(&[vec![(0, 3.0)], vec![(1, 4.0)]], 0.25);
        let y = gram.solve(&[9.0, 16.0]);
        assert!(
            (y[0] - 0.8).abs() < 4.0 * f64::EPSILON && (y[1] - 0.8).abs() < 4.0 * f64::EPSILON,
            "{y:?}"
        );
    }
}
