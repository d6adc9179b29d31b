//! Null spaces of dense matrices, as bases of few and simple vectors.

/// Columns, of equal length, that none of those before them explain, in order: what is left of the
/// others after projection is less than `tolerance` of them. Columns of zeros are left out.
pub fn independent(columns: &[Vec<f64>], tolerance: f64) -> Vec<usize> {
    let mut span = Span::default();
    (0..columns.len()).filter(|&k| span.add(&columns[k], tolerance)).collect()
}

/// Linear span of some vectors.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Orthonormal basis.
    basis: Vec<Vec<f64>>,
}

impl Span {
    /// Add a vector, if the span does not contain it up to `tolerance` of its length; true if it
    /// did not.
    pub fn add(&mut self, vector: &[f64], tolerance: f64) -> bool {
        let Some(mut rest) = self.rest(vector, tolerance) else { return false };
        let length = norm(&rest);
        rest.iter_mut().for_each(|v| *v /= length);
        self.basis.push(rest);
        true
    }

    /// True if the span contains a vector up to `tolerance` of its length.
    pub fn contains(&self, vector: &[f64], tolerance: f64) -> bool {
        self.rest(vector, tolerance).is_none()
    }

    /// Part of a vector that is orthogonal to the span; `None` if it is below `tolerance` of the
    /// vector's length.
    fn rest(&self, vector: &[f64], tolerance: f64) -> Option<Vec<f64>> {
        let (mut rest, length) = (vector.to_vec(), norm(vector));
        // Twice is enough (Kahan, Parlett): the first time leaves rounding in the directions of the
        // basis.
        for _ in 0..2 {
            for unit in &self.basis {
                let along: f64 = unit.iter().zip(&rest).map(|(a, b)| a * b).sum();
                rest.iter_mut().zip(unit).for_each(|(v, u)| *v -= along * u);
            }
        }
        (norm(&rest) > tolerance * length).then_some(rest)
    }
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Basis of the null space of a matrix with these rows, by elimination with complete pivoting, and
/// the smallest pivot, at most 1; for entries up to 1 its reciprocal is the factor by which
/// rounding enters the basis. Pivots below `tolerance` count as zero. NaN ends the elimination,
/// which makes the null space larger.
pub fn null_space(mut rows: Vec<Vec<f64>>, tolerance: f64) -> (Vec<Vec<f64>>, f64) {
    let columns = rows.first().map_or(0, Vec::len);
    // Column of the pivot in each of the first rows.
    let mut pivots: Vec<usize> = Vec::new();
    let (mut is_free, mut smallest) = (vec![true; columns], 1.0f64);
    while pivots.len() < rows.len() {
        let k = pivots.len();
        let (mut best, mut at) = (tolerance, None);
        for (i, row) in rows.iter().enumerate().skip(k) {
            for (j, v) in row.iter().enumerate() {
                if is_free[j] && v.abs() > best {
                    (best, at) = (v.abs(), Some((i, j)));
                }
            }
        }
        let Some((i, j)) = at else { break };
        rows.swap(k, i);
        let pivot = rows[k][j];
        smallest = smallest.min(pivot.abs());
        rows[k].iter_mut().for_each(|v| *v /= pivot);
        eliminate(&mut rows, k, j);
        is_free[j] = false;
        pivots.push(j);
    }
    let vector = |free: usize| {
        let mut vector = vec![0.0; columns];
        vector[free] = 1.0;
        for (row, &pivot) in rows.iter().zip(&pivots) {
            vector[pivot] = -row[free];
        }
        vector
    };
    ((0..columns).filter(|&j| is_free[j]).map(vector).collect(), smallest)
}

/// Bring the basis of a space into the reduced echelon form whose pivots come as early as they can
/// among the columns in this order. It is unique, so that its vectors are simple if simple ones
/// exist; the later ones avoid most of the first columns. Entries below `tolerance` of a vector's
/// largest count as zero.
pub fn reduce(basis: &mut Vec<Vec<f64>>, order: &[usize], tolerance: f64) {
    let size = |row: &[f64]| row.iter().fold(0.0f64, |size, v| size.max(v.abs()));
    let mut done = 0;
    for &j in order {
        let entry = |row: &Vec<f64>| row[j].abs() / size(row);
        let best =
            (done..basis.len()).max_by(|&a, &b| entry(&basis[a]).total_cmp(&entry(&basis[b])));
        let Some(best) = best.filter(|&best| entry(&basis[best]) > tolerance) else { continue };
        basis.swap(done, best);
        let pivot = basis[done][j];
        basis[done].iter_mut().for_each(|v| *v /= pivot);
        eliminate(basis, done, j);
        done += 1;
    }
    basis.truncate(done);
    for row in basis.iter_mut() {
        let small = tolerance * size(row);
        row.iter_mut().filter(|v| v.abs() <= small).for_each(|v| *v = 0.0);
    }
}

/// Subtract multiples of row `k`, whose entry in column `j` is 1, from all others, so that they are
/// 0 there.
fn eliminate(rows: &mut [Vec<f64>], k: usize, j: usize) {
    let (before, rest) = rows.split_at_mut(k);
    let Some((pivot, after)) = rest.split_first_mut() else { return };
    for row in before.iter_mut().chain(after) {
        let factor = row[j];
        if factor != 0.0 {
            row.iter_mut().zip(&*pivot).for_each(|(v, p)| *v -= factor * p);
            row[j] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.draw()).collect()
    }

    #[test]
    fn a_null_space_has_the_vectors_that_the_rows_forget() {
        // Rows orthogonal to (1, -2, 0, 1, 0) and (0, 0, 3, 1, -1).
        let kept = [[1.0, -2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 3.0, 1.0, -1.0]];
        let mut span = Span::default();
        kept.iter().for_each(|v| assert!(span.add(v, 1e-12)));
        let rows: Vec<Vec<f64>> = (0..9)
            .map(|seed| span.rest(&numbers(5, seed), 1e-12).expect("a general vector"))
            .collect();
        let (mut basis, smallest) = null_space(rows.clone(), 1e-12);
        assert_eq!(basis.len(), 2);
        assert!(smallest > 0.01, "{smallest}");
        for vector in &basis {
            for row in &rows {
                let product: f64 = row.iter().zip(vector).map(|(a, b)| a * b).sum();
                assert!(product.abs() < 1e-13, "{product}");
            }
        }
        reduce(&mut basis, &[0, 1, 2, 3, 4], 1e-9);
        let third = 1.0 / 3.0;
        let expected = [[1.0, -2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, third, -third]];
        for (found, expected) in basis.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-13, "{found} for {expected}");
        }
        assert!(span.contains(&basis[0], 1e-12) && span.contains(&basis[1], 1e-12));
        assert_eq!(null_space(vec![vec![1.0, 0.0], vec![1.0, 1e-3]], 1e-12), (Vec::new(), 1e-3));
        assert_eq!(null_space(vec![vec![1e-17; 3]; 2], 1e-12).0.len(), 3);
    }

    #[test]
    fn of_dependent_columns_the_first_stay() {
        let [a, b] = [numbers(7, 1), numbers(7, 2)];
        let sum: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - 3.0 * b).collect();
        assert_eq!(independent(&[a, vec![0.0; 7], b, sum, numbers(7, 3)], 1e-10), [0, 2, 4]);
    }
}
