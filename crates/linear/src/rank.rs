//! Ranks and definiteness of small dense matrices.

/// True if a dense symmetric matrix (row-major) is positive definite.
pub fn positive_definite(a: &[f64], n: usize) -> bool {
    let mut l = a.to_vec();
    for k in 0..n {
        let scale = a[k * n + k].abs();
        if l[k * n + k].is_nan() || l[k * n + k] <= scale * 1e-13 {
            return false;
        }
        for i in k + 1..n {
            let f = l[i * n + k] / l[k * n + k];
            if f == 0.0 {
                continue; // a chain's matrix is nearly empty
            }
            for j in k + 1..=i {
                l[i * n + j] -= f * l[j * n + k];
            }
        }
    }
    true
}

/// Rank of a dense matrix by elimination with complete pivoting; entries below `tolerance` times
/// the largest count as zero.
pub fn rank(a: &[f64], rows: usize, columns: usize, tolerance: f64) -> usize {
    pivots(a, rows, columns, &[], tolerance).len()
}

/// Pivots (row, column) of the elimination of a dense matrix (row-major): the `given` ones, then
/// the largest entry in turn, until all are below `tolerance` times the largest of the matrix.
pub fn pivots(
    a: &[f64],
    rows: usize,
    columns: usize,
    given: &[(usize, usize)],
    tolerance: f64,
) -> Vec<(usize, usize)> {
    let mut m = a.to_vec();
    let scale = m.iter().fold(0.0f64, |s, v| s.max(v.abs()));
    let (mut free_rows, mut free_columns) = (vec![true; rows], vec![true; columns]);
    let mut found = Vec::new();
    for k in 0..rows.min(columns) {
        let largest = || {
            let free = |&(i, j): &(usize, usize)| free_rows[i] && free_columns[j];
            let size = |(i, j): (usize, usize)| m[i * columns + j].abs();
            let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
            let best = places.filter(free).max_by(|&a, &b| size(a).total_cmp(&size(b)))?;
            // NaN ends the search.
            (size(best) > tolerance * scale).then_some(best)
        };
        let Some((i, j)) = given.get(k).copied().or_else(largest) else { break };
        (free_rows[i], free_columns[j]) = (false, false);
        found.push((i, j));
        let pivot_row = m[i * columns..(i + 1) * columns].to_vec();
        let free = |&(r, _): &(usize, &mut [f64])| free_rows[r];
        for (_, row) in m.chunks_exact_mut(columns).enumerate().filter(free) {
            let f = row[j] / pivot_row[j];
            if f != 0.0 {
                row.iter_mut().zip(&pivot_row).for_each(|(v, p)| *v -= f * p);
            }
        }
    }
    found
}

/// Zero the entries of an n × n matrix that are rounding: below `tolerance` times the scale `size`
/// of what cancels in them.
pub fn drop_rounding(a: &mut [f64], size: impl Fn(usize, usize) -> f64, n: usize, tolerance: f64) {
    for (k, v) in a.iter_mut().enumerate().filter(|(_, v)| **v != 0.0) {
        if v.abs() <= tolerance * size(k / n, k % n) {
            *v = 0.0;
        }
    }
}

/// Copy of a matrix (row-major) with rows and columns scaled so that the largest entry of each tends
/// to 1 (Ruiz 2001). But for rounding it does not depend on the units of rows and columns.
pub fn equilibrated(a: &[f64], count: usize, n: usize) -> Vec<f64> {
    let mut m = a.to_vec();
    // Converges like 2^-k in the logarithms of the scales.
    for _ in 0..60 {
        let largest = |entries: &mut dyn Iterator<Item = f64>| {
            let largest = entries.fold(0.0f64, |s, v| s.max(v.abs()));
            if largest > 0.0 && largest.is_finite() { 1.0 / largest.sqrt() } else { 1.0 }
        };
        let rows: Vec<f64> =
            (0..count).map(|i| largest(&mut m[i * n..(i + 1) * n].iter().copied())).collect();
        let columns: Vec<f64> =
            (0..n).map(|j| largest(&mut (0..count).map(|i| m[i * n + j]))).collect();
        m.iter_mut().enumerate().for_each(|(k, v)| *v = *v * rows[k / n] * columns[k % n]);
        if rows.iter().chain(&columns).all(|s| (s - 1.0).abs() < 1e-3) {
            break;
        }
    }
    m
}

/// [`rank`] of an n × n matrix, independent of the units of rows and columns. Drop the rounding
/// before.
pub fn rank_in_any_units(a: &[f64], n: usize, tolerance: f64) -> usize {
    rank(&equilibrated(a, n, n), n, n, tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_definiteness() {
        for (matrix, rows, columns, rank) in [
            (vec![1.0, 2.0, 2.0, 4.0], 2, 2, 1),
            (vec![1.0, 2.0, 2.0, 4.1], 2, 2, 2),
            (vec![0.0, 1.0, -1.0, 0.0], 2, 2, 2),
            (vec![0.0; 6], 2, 3, 0),
            (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 3, 3, 2),
            (vec![1.0, 2.0, 3.0, 2.0, 4.0, 7.0], 2, 3, 2),
            (vec![1.0, 2.0, 2.0, 4.0, 3.0, 7.0], 3, 2, 2),
            (vec![1e-14, 0.0, 0.0, 1.0], 2, 2, 1),
            (vec![f64::NAN, 0.0, 0.0, 1.0], 2, 2, 0),
            // An antisymmetric 4 × 4 of rank 2: u ∧ v.
            (
                vec![
                    0.0, 1.0, 2.0, 3.0, -1.0, 0.0, 1.0, 2.0, -2.0, -1.0, 0.0, 1.0, -3.0, -2.0,
                    -1.0, 0.0,
                ],
                4,
                4,
                2,
            ),
        ] {
            let got = super::rank(&matrix, rows, columns, 1e-10);
            assert!(
                got == rank || matrix[0].is_nan() && got <= 1,
                "{matrix:?}: {got} instead of {rank}"
            );
        }
        for (matrix, n, expected) in [
            (vec![2.0, 1.0, 1.0, 2.0], 2, true),
            (vec![1.0, 2.0, 2.0, 1.0], 2, false),
            (vec![1.0, 1.0, 1.0, 1.0], 2, false),
            (vec![-1.0], 1, false),
            (vec![0.0], 1, false),
            (vec![f64::NAN], 1, false),
            (vec![1e-8, 0.0, 0.0, 1e8], 2, true),
            (vec![4.0, 2.0, 0.0, 2.0, 3.0, 1.0, 0.0, 1.0, 1.0], 3, true),
        ] {
            assert_eq!(positive_definite(&matrix, n), expected, "{matrix:?}");
        }
    }
}
