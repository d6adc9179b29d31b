//! Systems of products of sparse rows: y with Σⱼ (rowᵢ · directionⱼ) yⱼ = fᵢ, in which a step of
//! Newton's method along given directions is found. Small ones are eliminated with pivoting, large
//! ones by their pattern.

use crate::gram::{Row, dot};
use crate::lists::Lists;
use crate::unpivoted::Unpivoted;

/// Largest pivot, of a matrix with a unit diagonal, that is rounding.
const SINGULAR: f64 = 1e-13;

/// Largest number of rows for which a full matrix is eliminated with pivoting where elimination
/// without pivoting fails: its 8 MB take half a second.
const PIVOTED: usize = 1_000;

/// Solver of systems of products.
pub struct Products(Option<Sparse>);

/// Analysed pattern of a large system.
struct Sparse {
    /// Rows and directions that share a component, with the places of their products.
    entries: Vec<(u32, u32)>,
    places: Vec<u32>,
    elimination: Unpivoted,
}

impl Products {
    /// Solver of full systems of any pattern.
    pub fn full() -> Products {
        Products(None)
    }

    /// Solver of systems whose rows and directions have no more nonzeros than these, by elimination
    /// in an order of little fill.
    pub fn sparse(rows: &[Row], directions: &[Row]) -> Products {
        let both = || rows.iter().chain(directions).flatten();
        let columns = both().map(|&(column, _)| column as usize + 1).max().unwrap_or(0);
        let holders = Lists::collect(columns, || {
            (0..).zip(directions).flat_map(|(j, direction)| direction.iter().map(move |e| (e.0, j)))
        });
        let mut entries: Vec<(u32, u32)> = Vec::new();
        let mut met = Vec::new();
        for (i, row) in (0..).zip(rows) {
            met.clear();
            met.push(i);
            met.extend(row.iter().flat_map(|&(column, _)| holders.of(column as usize)));
            met.sort_unstable();
            met.dedup();
            entries.extend(met.iter().map(|&j| (i, j)));
        }
        let elimination = Unpivoted::new(rows.len(), &entries);
        let places = entries.iter().map(|&(i, j)| elimination.place(i, j)).collect();
        Products(Some(Sparse { entries, places, elimination }))
    }

    /// The solution y for right-hand sides `f`, after scaling of rows and columns; `None` if the
    /// matrix is singular up to rounding.
    pub fn solve(&self, rows: &[Row], directions: &[Row], f: &[f64]) -> Option<Vec<f64>> {
        // The terms, not their sum: with an indefinite metric these may cancel where the matrix is
        // regular.
        let inverse_root = |i: usize| {
            let absolute = |row: &Row| -> Row { row.iter().map(|&(c, d)| (c, d.abs())).collect() };
            let own = dot(&absolute(&rows[i]), &absolute(&directions[i]));
            (own > 0.0 && own.is_finite()).then(|| 1.0 / own.sqrt())
        };
        let scale: Vec<f64> = (0..f.len()).map(inverse_root).collect::<Option<_>>()?;
        let entry = |i: usize, j: usize| dot(&rows[i], &directions[j]) * scale[i] * scale[j];
        let right: Vec<f64> = f.iter().zip(&scale).map(|(f, scale)| f * scale).collect();
        let y = match &self.0 {
            None => eliminated(entry, &right),
            Some(sparse) => sparse
                .solve(entry, &right)
                .or_else(|| (f.len() <= PIVOTED).then(|| eliminated(entry, &right)).flatten()),
        };
        Some(y?.iter().zip(&scale).map(|(y, s)| y * s).collect())
    }
}

impl Sparse {
    /// The solution by elimination without pivoting; `None` if a pivot is rounding.
    fn solve(&self, entry: impl Fn(usize, usize) -> f64, right: &[f64]) -> Option<Vec<f64>> {
        let mut values = vec![0.0; self.elimination.values()];
        for (&(i, j), &place) in self.entries.iter().zip(&self.places) {
            values[place as usize] = entry(i as usize, j as usize);
        }
        let mut y = right.to_vec();
        let mut work = vec![0.0; self.elimination.work_len()];
        let pivots = self.elimination.solve(&mut values, &mut y, &mut work);
        // A pivot that is NaN is none.
        (pivots.smallest > SINGULAR).then_some(y)
    }
}

/// The solution by elimination with partial pivoting; `None` if a pivot is rounding.
fn eliminated(entry: impl Fn(usize, usize) -> f64, right: &[f64]) -> Option<Vec<f64>> {
    let m = right.len();
    let mut a: Vec<Vec<f64>> =
        (0..m).map(|i| (0..m).map(|j| entry(i, j)).chain([right[i]]).collect()).collect();
    for k in 0..m {
        let pivot = (k..m).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()))?;
        a.swap(k, pivot);
        if a[k][k].abs() <= SINGULAR || a[k][k].is_nan() {
            return None;
        }
        for i in k + 1..m {
            let factor = a[i][k] / a[k][k];
            if factor != 0.0 {
                for j in k..=m {
                    a[i][j] -= factor * a[k][j];
                }
            }
        }
    }
    let mut y = vec![0.0; m];
    for k in (0..m).rev() {
        let rest: f64 = (k + 1..m).map(|j| a[k][j] * y[j]).sum();
        y[k] = (a[k][m] - rest) / a[k][k];
    }
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Rows of a closed chain in `n` components, each over its own and the next.
    fn chain(n: usize, random: &mut Random) -> Vec<Row> {
        let row = |i: usize| {
            let mut row: Row = vec![(i as u32, 2.0), (((i + 1) % n) as u32, random.draw())];
            row.sort_unstable_by_key(|&(column, _)| column);
            row
        };
        (0..n).map(row).collect()
    }

    #[test]
    fn sparse_and_full_systems_agree() {
        let mut random = Random::new(4);
        for n in [1, 2, 3, 40] {
            let rows = match n {
                1 => vec![vec![(0, 3.0)]],
                _ => chain(n, &mut random),
            };
            // A metric that is indefinite: every third component counts negatively.
            let signs = [1.0, 0.5, -2.0];
            let raised =
                |row: &Row| row.iter().map(|&(c, d)| (c, d * signs[c as usize % 3])).collect();
            let directions: Vec<Row> = rows.iter().map(raised).collect();
            let f: Vec<f64> = (0..n).map(|_| random.draw()).collect();
            let full = Products::full().solve(&rows, &directions, &f).unwrap();
            let sparse = Products::sparse(&rows, &directions);
            let y = sparse.solve(&rows, &directions, &f).unwrap();
            let largest = full.iter().fold(0.0f64, |most, y| most.max(y.abs()));
            for (y, full) in y.iter().zip(&full) {
                // Rows of diagonal 2 and others below 1: the condition is below (3·3)², times 4 of
                // the metric; n roundings of that.
                assert!(
                    (y - full).abs() <= 400.0 * n as f64 * f64::EPSILON * largest,
                    "{n}: {y} {full}"
                );
            }
            for (row, f) in rows.iter().zip(&f) {
                let sum: f64 = directions.iter().zip(&y).map(|(d, y)| dot(row, d) * y).sum();
                assert!((sum - f).abs() < 1e-13 * (1.0 + 9.0 * largest), "{n}: {sum} {f}");
            }
        }
    }

    #[test]
    fn dependent_rows_have_no_solution() {
        let mut random = Random::new(5);
        for n in [3, 30, PIVOTED + 1] {
            let mut rows = chain(n - 1, &mut random);
            rows.push(rows[0].iter().map(|&(c, d)| (c, 3.0 * d)).collect());
            let f = vec![1.0; n];
            assert!(Products::sparse(&rows, &rows).solve(&rows, &rows, &f).is_none(), "{n}");
            rows.pop();
            assert!(Products::sparse(&rows, &rows).solve(&rows, &rows, &f[1..]).is_some(), "{n}");
            rows.push(Vec::new());
            assert!(Products::sparse(&rows, &rows).solve(&rows, &rows, &f).is_none(), "{n}");
        }
    }

    #[test]
    fn a_matrix_that_needs_pivoting_gets_it() {
        // Products [[0, 1], [1, 0]], whose terms cancel on the diagonal.
        let rows: Vec<Row> = vec![vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (1, -1.0)]];
        let directions: Vec<Row> = vec![vec![(0, 0.5), (1, -0.5)], vec![(0, 0.5), (1, 0.5)]];
        let y =
            Products::sparse(&rows, &directions).solve(&rows, &directions, &[2.0, 3.0]).unwrap();
        assert!((y[0] - 3.0).abs() < 1e-15 && (y[1] - 2.0).abs() < 1e-15, "{y:?}");
    }
}
