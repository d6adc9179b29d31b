//! The systems (DF W DFᵀ + R) μ = r of correction and projection: W = diag(w²) is the metric of the
//! move x ← x − W DFᵀμ, R the round-off of F. The rows of DF are scaled to unit length in that
//! metric first.
//!
//! The matrix is dense if it has few rows, or constraints of which most share variables. Otherwise
//! it has a sparse, regular block of constraints, or without any of the many integrals of single
//! members that stand first, bordered by a few dense rows, the Hamiltonian and the other integrals:
//!
//! ⎡C  B⎤   C = L D Lᵀ sparse,
//! ⎣Bᵀ E⎦   S = E − Bᵀ C⁻¹ B dense.

use crate::system::Invariants;
use holonome_linear::dense::{PIVOT_TOLERANCE, PivotedCholesky, ldl_factor, ldl_solve_limited};
use holonome_linear::pattern::{Pattern, Row};
use holonome_linear::sparse::SparseLdl;
use std::sync::Arc;

/// Largest number of rows for which the matrix is dense in any case: sparse elimination takes as
/// long there.
const FEW_ROWS: usize = 12;

/// Largest number of rows for which the matrix is dense if the sparse block would be filled by more
/// than a quarter: an entry costs several times as much there. Beyond, a dense matrix would take
/// the memory of its square.
pub const SMALL: usize = 64;
const QUARTER: usize = 4;

/// Largest number of variables of an integral of a single member, as the length of a spin.
const LOCAL: usize = 16;

/// Treatment of a singular matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularisation {
    /// This much is added to the diagonal of the rows that are not constraints.
    Shift(f64),
    /// Rows that depend on others are left out, which keeps the range of DFᵀ: the least-norm
    /// solution.
    LeastNorm,
}

/// Factors of DF W DFᵀ + R for a fixed sparsity of DF.
pub struct NormalEquations {
    pattern: Arc<Pattern>,
    active: Vec<bool>,
    constraints: usize,
    /// w of every component; empty if the metric is Euclidean.
    roots: Vec<f64>,
    /// 1/√(|w ∇F_i|² + R_i); 0 for rows that are not corrected or vanish in this metric.
    scale: Vec<f64>,
    /// The diagonal that R adds to rows of unit length.
    noise: Vec<f64>,
    /// DF w with unit rows.
    unit: Vec<f64>,
    /// One row of DF, scattered over the n columns.
    scattered: Vec<f64>,
    regularisation: Regularisation,
    sparse: Option<ConstraintBlock>,
    /// First row of the dense part: 0 if there is no sparse block.
    first: usize,
    /// The dense part, (m − first)² numbers: all rows, or the Schur complement.
    dense: Vec<f64>,
    cholesky: PivotedCholesky,
}

/// The sparse block of constraints.
struct ConstraintBlock {
    ldl: SparseLdl,
    /// (row, column) of each stored entry of C, the diagonal first.
    entries: Vec<(u32, u32)>,
    /// Entry e of C is Σ unit[a]·unit[b] over `products[product_start[e]..product_start[e + 1]]`.
    product_start: Vec<usize>,
    products: Vec<(u32, u32)>,
    values: Vec<f64>,
    /// Residual of the block's rows.
    residual: Vec<f64>,
    /// B and C⁻¹B, one column of length c after the other.
    border: Vec<f64>,
    solved: Vec<f64>,
}

impl NormalEquations {
    /// Equations for this sparsity in a state of length `dim`.
    pub fn new(
        invariants: &Invariants,
        dim: usize,
        regularisation: Regularisation,
    ) -> NormalEquations {
        let m = invariants.count;
        let sparse = sparse_block(invariants);
        let first = if sparse.is_some() { sparse_rows(invariants) } else { 0 };
        let border = m - first;
        NormalEquations {
            pattern: Arc::clone(&invariants.pattern),
            active: invariants.corrected_rows(),
            constraints: invariants.constraints,
            roots: Vec::with_capacity(dim),
            scale: vec![0.0; m],
            noise: vec![0.0; m],
            unit: vec![0.0; invariants.nonzeros()],
            scattered: vec![0.0; dim],
            regularisation,
            sparse,
            first,
            dense: vec![0.0; border * border],
            cholesky: PivotedCholesky::new(border),
        }
    }

    /// Equations for DF(x₀) and DF(x₁) side by side, a state of length 2 `dim`: D₀D₀ᵀ + D₁D₁ᵀ. See
    /// [`stack`].
    pub fn stacked(
        invariants: &Invariants,
        dim: usize,
        regularisation: Regularisation,
    ) -> NormalEquations {
        let beside = |row: Row| {
            let columns = row.columns();
            columns.clone().chain(columns.map(|column| column + dim as u32)).collect::<Vec<u32>>()
        };
        let pattern = Arc::new(invariants.pattern.rows().map(beside).collect());
        NormalEquations::new(&Invariants { pattern, ..invariants.clone() }, 2 * dim, regularisation)
    }

    /// Leave out, from the next factorisation on, the rows that `other` left out in its last one, but
    /// for those without a gradient there, as of an energy at rest.
    pub fn keep_rows_of(&mut self, other: &NormalEquations) {
        self.active.copy_from_slice(&other.active);
        if other.regularisation == Regularisation::LeastNorm {
            let left_out = other.cholesky.left_out().iter().map(|row| other.first + row);
            for row in left_out.filter(|&row| other.scale[row] != 0.0) {
                self.active[row] = false;
            }
        }
    }

    /// Include or exclude these rows, from the next factorisation on.
    pub fn set_active(&mut self, rows: &[usize], active: bool) {
        rows.iter().for_each(|&row| self.active[row] = active);
    }

    /// |∇F_i|.
    pub fn gradient(&self, jacobian: &[f64], row: usize) -> f64 {
        length(&jacobian[self.pattern.row(row).range()])
    }

    /// Set the metric in which μ moves a state, until the next factorisation.
    pub fn set_metric(&mut self, roots: &[f64]) {
        self.roots.clear();
        self.roots.extend_from_slice(roots);
    }

    /// Factor DF DFᵀ for these nonzeros of DF.
    pub fn factor(&mut self, jacobian: &[f64]) {
        self.factor_in(jacobian, &[], &[]);
    }

    /// Factor DF W DFᵀ + R for these nonzeros of DF, with `roots` w for every component and `noise`
    /// √R_i for every row; empty slices stand for W = 1 and R = 0.
    pub fn factor_in(&mut self, jacobian: &[f64], roots: &[f64], noise: &[f64]) {
        let m = self.scale.len();
        self.set_metric(roots);
        for (i, row) in self.pattern.rows().enumerate() {
            let (values, row) = (row.values(jacobian), &mut self.unit[row.range()]);
            for (unit, (column, value)) in row.iter_mut().zip(values) {
                *unit = value * roots.get(column as usize).unwrap_or(&1.0);
            }
            let noise = noise.get(i).copied().unwrap_or(0.0);
            let norm = length(row).hypot(noise);
            // A row without a length cannot be met and is left out. NaN stays.
            let scale = if self.active[i] && norm != 0.0 { 1.0 / norm } else { 0.0 };
            row.iter_mut()
                .for_each(|entry| *entry = if scale == 0.0 { 0.0 } else { *entry * scale });
            (self.scale[i], self.noise[i]) = (scale, (noise * scale) * (noise * scale));
        }
        if let Some(block) = &mut self.sparse {
            for e in 0..block.entries.len() {
                let products = &block.products[block.product_start[e]..block.product_start[e + 1]];
                block.values[e] = products
                    .iter()
                    .map(|&(a, b)| self.unit[a as usize] * self.unit[b as usize])
                    .sum();
            }
            for i in 0..self.first {
                // A row that is left out does not make the matrix singular.
                block.values[i] =
                    if self.scale[i] == 0.0 { 1.0 } else { block.values[i] + self.noise[i] };
            }
            if let Regularisation::Shift(epsilon) = self.regularisation {
                let integrals = self.constraints.min(self.first)..self.first;
                block.values[integrals].iter_mut().for_each(|value| *value += epsilon);
            }
            block.ldl.factor(&block.values, PIVOT_TOLERANCE);
        }
        self.assemble_dense();
        match self.regularisation {
            Regularisation::Shift(epsilon) => {
                let size = m - self.first;
                for i in self.constraints.saturating_sub(self.first)..size {
                    self.dense[i * size + i] += epsilon;
                }
                ldl_factor(&mut self.dense, size, PIVOT_TOLERANCE);
            }
            Regularisation::LeastNorm => self.cholesky.factor(&self.dense, PIVOT_TOLERANCE),
        }
    }

    /// Compute the dense block: products of its rows, less the part that the sparse block explains.
    fn assemble_dense(&mut self) {
        let (m, first) = (self.scale.len(), self.first);
        let size = m - first;
        for j in 0..size {
            let row_j = self.pattern.row(first + j);
            row_j.entries().for_each(|(p, column)| self.scattered[column] = self.unit[p]);
            let (unit, scattered) = (&self.unit, &self.scattered);
            let product = |row: Row| {
                row.values(unit).map(|(column, unit)| unit * scattered[column as usize]).sum()
            };
            for i in j..size {
                self.dense[i * size + j] = product(self.pattern.row(first + i));
            }
            let diagonal = &mut self.dense[j * size + j];
            *diagonal =
                if self.scale[first + j] == 0.0 { 1.0 } else { *diagonal + self.noise[first + j] };
            if let Some(block) = &mut self.sparse {
                let column = j * first..(j + 1) * first;
                let border = &mut block.border[column.clone()];
                border.iter_mut().zip(self.pattern.rows()).for_each(|(b, row)| *b = product(row));
                block.solved[column.clone()].copy_from_slice(&block.border[column.clone()]);
                block.ldl.solve(&mut block.solved[column]);
            }
            row_j.entries().for_each(|(_, column)| self.scattered[column] = 0.0);
        }
        if let Some(block) = &self.sparse {
            for j in 0..size {
                for i in j..size {
                    let (b, solved) =
                        (&block.border[i * first..][..first], &block.solved[j * first..][..first]);
                    self.dense[i * size + j] -=
                        b.iter().zip(solved).map(|(b, s)| b * s).sum::<f64>();
                }
            }
        }
    }

    /// Turn the residual r into the multipliers μ of the unscaled rows, so that W DFᵀμ = DF⁺r.
    pub fn solve(&mut self, r: &mut [f64]) {
        self.solve_limited(r, f64::INFINITY);
    }

    /// [`NormalEquations::solve`] with a limit on the innovation ν, the residual of the rows that
    /// are not constraints over its standard deviation: with W the covariance of the state's error
    /// and R that of F, and after the part that the constraints explain is removed. A larger one is
    /// scaled down to the limit. Returns ν² of the constraints, which are not limited, and that of
    /// the other rows; 0 under [`Regularisation::LeastNorm`], which limits nothing.
    pub fn solve_limited(&mut self, r: &mut [f64], limit: f64) -> [f64; 2] {
        for (r, scale) in r.iter_mut().zip(&self.scale) {
            // The residual of a row that takes no part may be anything and must not enter.
            *r = if *scale == 0.0 { 0.0 } else { *r * scale };
        }
        let first = self.first;
        let (upper, lower) = r.split_at_mut(first);
        let mut of_sparse = 0.0;
        if let Some(block) = &mut self.sparse {
            block.residual.copy_from_slice(upper);
            block.ldl.solve(upper);
            of_sparse = block.residual.iter().zip(&*upper).map(|(r, x)| r * x).sum::<f64>();
            for (j, lower) in lower.iter_mut().enumerate() {
                *lower -= block.border[j * first..][..first]
                    .iter()
                    .zip(&*upper)
                    .map(|(b, x)| b * x)
                    .sum::<f64>();
            }
        }
        let innovation = match self.regularisation {
            Regularisation::Shift(_) if first > self.constraints => {
                let of = |active: &[bool]| active.iter().filter(|active| **active).count();
                let (all, dense) = (of(&self.active), of(&self.active[first..]));
                let size = lower.len();
                let [_, square] =
                    ldl_solve_limited(&self.dense, size, lower, (0, dense), f64::INFINITY);
                let square = (of_sparse + square * dense.max(1) as f64) / all.max(1) as f64;
                if square > limit * limit {
                    let factor = limit / square.sqrt();
                    upper.iter_mut().chain(&mut *lower).for_each(|x| *x *= factor);
                }
                [0.0, square]
            }
            Regularisation::Shift(_) => {
                let of = |active: &[bool]| active.iter().filter(|active| **active).count();
                let [constraints, others] =
                    [&self.active[..self.constraints], &self.active[self.constraints..]].map(of);
                let [sum, square] = ldl_solve_limited(
                    &self.dense,
                    lower.len(),
                    lower,
                    (self.constraints - first, others),
                    limit,
                );
                [(of_sparse + sum) / constraints.max(1) as f64, square]
            }
            Regularisation::LeastNorm => {
                self.cholesky.solve(lower);
                [0.0; 2]
            }
        };
        if let Some(block) = &self.sparse {
            for (j, lower) in lower.iter().enumerate() {
                for (x, solved) in upper.iter_mut().zip(&block.solved[j * first..][..first]) {
                    *x -= solved * lower;
                }
            }
        }
        for (r, scale) in r.iter_mut().zip(&self.scale) {
            *r *= scale;
        }
        innovation
    }

    /// Round-off of F_i(x): it is a sum of terms of about |∂_j F_i x_j|, each rounded, and so is
    /// its target.
    pub fn round_off(&self, jacobian: &[f64], x: &[f64], target: f64, row: usize) -> f64 {
        let row = self.pattern.row(row).values(jacobian);
        let terms: f64 = row.map(|(column, entry)| (entry * x[column as usize]).abs()).sum();
        f64::EPSILON * (terms + target.abs())
    }

    /// x ← x + W DFᵀμ with these nonzeros of DF.
    pub fn add_transpose(&self, jacobian: &[f64], mu: &[f64], x: &mut [f64]) {
        for (row, mu) in self.pattern.rows().zip(mu).filter(|(_, mu)| **mu != 0.0) {
            for (column, entry) in row.values(jacobian) {
                let root = self.roots.get(column as usize).unwrap_or(&1.0);
                x[column as usize] += (entry * root) * (mu * root);
            }
        }
    }

    /// r ← r − DF·v with these nonzeros of DF.
    pub fn subtract_product(&self, jacobian: &[f64], v: &[f64], r: &mut [f64]) {
        for (row, r) in self.pattern.rows().zip(r) {
            *r -=
                row.values(jacobian).map(|(column, entry)| entry * v[column as usize]).sum::<f64>();
        }
    }

    /// x ← x − W DFᵀμ with the nonzeros of DF and the metric that were factored.
    pub fn subtract_transpose(&self, jacobian: &[f64], mu: &[f64], x: &mut [f64]) {
        for (row, mu) in self.pattern.rows().zip(mu).filter(|(_, mu)| **mu != 0.0) {
            for (column, entry) in row.values(jacobian) {
                let root = self.roots.get(column as usize).unwrap_or(&1.0);
                x[column as usize] -= (entry * root) * (mu * root);
            }
        }
    }
}

/// Put the nonzeros of two Jacobians of the same sparsity side by side, row by row, in the order of
/// [`NormalEquations::stacked`].
pub fn stack(invariants: &Invariants, left: &[f64], right: &[f64], out: &mut [f64]) {
    for row in invariants.pattern.rows() {
        let entries = row.range();
        let (a, b) = out[2 * entries.start..2 * entries.end].split_at_mut(entries.len());
        a.copy_from_slice(&left[entries.clone()]);
        b.copy_from_slice(&right[entries]);
    }
}

/// Sparse block, if it is worth while.
fn sparse_block(invariants: &Invariants) -> Option<ConstraintBlock> {
    let (m, c) = (invariants.count, sparse_rows(invariants));
    if m <= FEW_ROWS || c == 0 {
        return None;
    }
    let block = ConstraintBlock::new(invariants, c);
    (m > SMALL || QUARTER * block.ldl.fill() <= c * c / 2).then_some(block)
}

/// Number of the rows that a sparse block has: the constraints, or without any the integrals of
/// single members that stand first, if they are many.
fn sparse_rows(invariants: &Invariants) -> usize {
    if invariants.constraints > 0 {
        return invariants.constraints;
    }
    let local = invariants.pattern.rows().take_while(|row| row.count() <= LOCAL).count();
    if local > SMALL { local } else { 0 }
}

impl ConstraintBlock {
    /// Block of the first `c` rows.
    fn new(invariants: &Invariants, c: usize) -> ConstraintBlock {
        let border = invariants.count - c;
        let mut by_column: Vec<Vec<(u32, u32)>> = Vec::new();
        for (i, row) in (0..).zip(invariants.pattern.rows().take(c)) {
            for (p, column) in row.entries() {
                if by_column.len() <= column {
                    by_column.resize(column + 1, Vec::new());
                }
                by_column[column].push((i, p as u32));
            }
        }
        let mut terms: Vec<(u32, u32, u32, u32)> = Vec::new();
        for list in &by_column {
            for (k, &(i, a)) in list.iter().enumerate() {
                terms.extend(list[..=k].iter().map(|&(j, b)| (i, j, a, b)));
            }
        }
        // The diagonal first, so that entry i is C_ii; every row has its diagonal, even an empty
        // one.
        terms.sort_unstable_by_key(|&(i, j, a, b)| (i != j, i, j, a, b));
        let mut entries: Vec<(u32, u32)> = (0..c as u32).map(|i| (i, i)).collect();
        entries.extend(terms.iter().filter(|&&(i, j, ..)| i != j).map(|&(i, j, ..)| (i, j)));
        entries.dedup();
        let mut product_start = vec![0; entries.len() + 1];
        let mut e = 0;
        for &(i, j, ..) in &terms {
            while entries[e] != (i, j) {
                e += 1;
            }
            product_start[e + 1] += 1;
        }
        for e in 0..entries.len() {
            product_start[e + 1] += product_start[e];
        }
        ConstraintBlock {
            ldl: SparseLdl::new(c, &entries),
            values: vec![0.0; entries.len()],
            entries,
            product_start,
            products: terms.into_iter().map(|(_, _, a, b)| (a, b)).collect(),
            residual: vec![0.0; c],
            border: vec![0.0; border * c],
            solved: vec![0.0; border * c],
        }
    }
}

/// Euclidean length without under- or overflow of the squares.
pub(crate) fn length(v: &[f64]) -> f64 {
    let plain = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    if (1e-140..1e140).contains(&plain) {
        return plain;
    }
    let largest = v.iter().fold(0.0, |max, v| crate::vector::max_or_nan(max, v.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * v.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests;
