//! Null vectors of the transpose of a matrix some of whose rows depend on the others.

use crate::gram::{Gram, Row};

/// For each of the rows `dependent`, ascending, how it is a sum of those that are not among them:
/// sparse vectors v over the rows with Σ vᵢ rowᵢ = 0, whose entry at the dependent row is −1. Shares
/// below `least` of the length of the dependent row are rounding, and 0.
pub fn null_vectors(rows: &[Row], dependent: &[usize], least: f64) -> Vec<Row> {
    let is_kept = |row: &usize| dependent.binary_search(row).is_err();
    let numbers: Vec<usize> = (0..rows.len()).filter(is_kept).collect();
    let kept: Vec<&Row> = numbers.iter().map(|&row| &rows[row]).collect();
    let lengths: Vec<f64> = kept.iter().map(|row| length(row)).collect();
    let gram = Gram::new(&kept, 0.0);
    let columns = rows.iter().flatten().map(|&(column, _)| column as usize + 1).max();
    let mut rest = vec![0.0; columns.unwrap_or(0)];
    let vector = |&row: &usize| {
        rest.fill(0.0);
        rows[row].iter().for_each(|&(column, entry)| rest[column as usize] = entry);
        let mut shares = vec![0.0; kept.len()];
        // The second time restores the digits that the square of the condition number takes.
        for _ in 0..2 {
            let product = |row: &&Row| -> f64 {
                row.iter().map(|&(column, entry)| entry * rest[column as usize]).sum()
            };
            let right: Vec<f64> = kept.iter().map(product).collect();
            for ((row, sum), share) in kept.iter().zip(&mut shares).zip(gram.solve(&right)) {
                row.iter().for_each(|&(column, entry)| rest[column as usize] -= share * entry);
                *sum += share;
            }
        }
        let rounding = least * length(&rows[row]);
        let all = numbers.iter().zip(shares).zip(&lengths);
        let others = all.filter(|((_, share), length)| share.abs() * *length > rounding);
        let mut vector: Row = others.map(|((&other, share), _)| (other as u32, share)).collect();
        vector.push((row as u32, -1.0));
        vector.sort_unstable_by_key(|&(row, _)| row);
        vector
    };
    dependent.iter().map(vector).collect()
}

/// Euclidean length.
fn length(row: &Row) -> f64 {
    row.iter().map(|(_, entry)| entry * entry).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dependent_row_is_the_sum_of_the_others() {
        // Row 2 = 3·row 0 − 2e-3·row 1, row 4 = −row 1; row 3 has no part in either.
        let rows: Vec<Row> = vec![
            vec![(0, 1.0), (1, 2.0)],
            vec![(1, 1e3), (2, 5e2)],
            vec![(0, 3.0), (1, 4.0), (2, -1.0)],
            vec![(2, 1.0), (3, 1.0)],
            vec![(1, -1e3), (2, -5e2)],
        ];
        let vectors = null_vectors(&rows, &[2, 4], 1e-12);
        let expected: [&[(u32, f64)]; 2] =
            [&[(0, 3.0), (1, -2e-3), (2, -1.0)], &[(1, -1.0), (4, -1.0)]];
        for (vector, expected) in vectors.iter().zip(expected) {
            assert_eq!(vector.len(), expected.len(), "{vector:?}");
            for ((row, share), (same, exact)) in vector.iter().zip(expected) {
                // A few roundings, as the refinement leaves them.
                let near = (share - exact).abs() <= 16.0 * f64::EPSILON * exact.abs();
                assert!(row == same && near, "{vector:?}");
            }
        }
        assert!(null_vectors(&[], &[], 0.0).is_empty());
        // A row of zeros is a sum of none.
        assert_eq!(null_vectors(&[vec![]], &[0], 1e-12), [vec![(0, -1.0)]]);
    }
}
