//! The systems DF DFᵀ μ = r of correction and projection, with the rows of DF scaled to unit length first.
//!
//! Up to [`SMALL`] rows the matrix is dense. Larger systems have a sparse, regular block of constraints bordered by a
//! few dense rows, the Hamiltonian and the integrals:
//!
//! ⎡C  B⎤   C = L D Lᵀ sparse,
//! ⎣Bᵀ E⎦   S = E − Bᵀ C⁻¹ B dense.

use crate::linear::dense::{PivotedCholesky, ldl_factor, ldl_solve};
use crate::linear::sparse::SparseLdl;
use crate::system::Invariants;

/// Up to this many rows the matrix is dense.
pub const SMALL: usize = 64;

/// Pivots up to this count as zero: the rows have unit length, so they are squared sines of an angle to the rows
/// before, and their round-off is about m·ε ≤ 1e-12 for a few thousand rows.
const PIVOT_TOLERANCE: f64 = 1e-12;

/// How a singular matrix is dealt with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularisation {
    /// This much is added to the diagonal: of the whole matrix where it is dense, else of the Schur complement.
    Shift(f64),
    /// Rows that depend on others are left out, which keeps the range of DFᵀ: the least-norm solution.
    LeastNorm,
}

/// Factors of DF DFᵀ for a fixed sparsity of DF.
pub struct NormalEquations {
    row_start: Vec<usize>,
    column: Vec<u32>,
    active: Vec<bool>,
    /// 1/|∇F_i|; 0 for rows that are not corrected or whose gradient vanishes.
    scale: Vec<f64>,
    /// DF with unit rows.
    unit: Vec<f64>,
    /// One row of DF, scattered over the n columns.
    scattered: Vec<f64>,
    regularisation: Regularisation,
    sparse: Option<ConstraintBlock>,
    /// First row of the dense part: 0 where there is no sparse block.
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
    /// B and C⁻¹B, one column of length c after the other.
    border: Vec<f64>,
    solved: Vec<f64>,
}

impl NormalEquations {
    /// For this sparsity in a state of length `dim`.
    pub fn new(invariants: &Invariants, dim: usize, regularisation: Regularisation) -> NormalEquations {
        let m = invariants.count;
        let first = if m > SMALL { invariants.constraints } else { 0 };
        let border = m - first;
        NormalEquations {
            row_start: invariants.row_start.clone(),
            column: invariants.column.clone(),
            active: invariants.corrected_rows(),
            scale: vec![0.0; m],
            unit: vec![0.0; invariants.nonzeros()],
            scattered: vec![0.0; dim],
            regularisation,
            sparse: (first > 0).then(|| ConstraintBlock::new(invariants, border)),
            first,
            dense: vec![0.0; border * border],
            cholesky: PivotedCholesky::new(border),
        }
    }

    /// For DF(x₀) and DF(x₁) side by side, a state of length 2 `dim`: D₀D₀ᵀ + D₁D₁ᵀ. See [`stack`].
    pub fn stacked(invariants: &Invariants, dim: usize, regularisation: Regularisation) -> NormalEquations {
        let mut stacked = Invariants { column: Vec::new(), row_start: vec![0], ..invariants.clone() };
        for row in 0..invariants.count {
            let columns = &invariants.column[invariants.row(row)];
            stacked.column.extend(columns);
            stacked.column.extend(columns.iter().map(|column| column + dim as u32));
            stacked.row_start.push(stacked.column.len());
        }
        NormalEquations::new(&stacked, 2 * dim, regularisation)
    }

    /// Leaves out, from the next factorisation on, the rows that `other` left out in its last one.
    pub fn keep_rows_of(&mut self, other: &NormalEquations) {
        for (active, scale) in self.active.iter_mut().zip(&other.scale) {
            *active = *scale != 0.0;
        }
        if other.regularisation == Regularisation::LeastNorm {
            for row in other.cholesky.left_out() {
                self.active[other.first + row] = false;
            }
        }
    }

    /// |∇F_i|.
    pub fn gradient(&self, jacobian: &[f64], row: usize) -> f64 {
        length(&jacobian[self.row_start[row]..self.row_start[row + 1]])
    }

    /// Factors DF DFᵀ for these nonzeros of DF.
    pub fn factor(&mut self, jacobian: &[f64]) {
        let m = self.scale.len();
        for i in 0..m {
            let norm = self.gradient(jacobian, i);
            // A vanishing gradient cannot be followed: the row is left out. NaN stays.
            self.scale[i] = if self.active[i] && norm != 0.0 { 1.0 / norm } else { 0.0 };
            for p in self.row_start[i]..self.row_start[i + 1] {
                self.unit[p] = if self.scale[i] == 0.0 { 0.0 } else { jacobian[p] * self.scale[i] };
            }
        }
        if let Some(block) = &mut self.sparse {
            for e in 0..block.entries.len() {
                let products = &block.products[block.product_start[e]..block.product_start[e + 1]];
                block.values[e] = products.iter().map(|&(a, b)| self.unit[a as usize] * self.unit[b as usize]).sum();
            }
            for i in 0..self.first {
                if self.scale[i] == 0.0 {
                    block.values[i] = 1.0; // left out, but not singular
                }
            }
            block.ldl.factor(&block.values, PIVOT_TOLERANCE);
        }
        self.assemble_dense();
        match self.regularisation {
            Regularisation::Shift(epsilon) => {
                let size = m - self.first;
                for i in 0..size {
                    self.dense[i * size + i] += epsilon;
                }
                ldl_factor(&mut self.dense, size);
            }
            Regularisation::LeastNorm => self.cholesky.factor(&self.dense, PIVOT_TOLERANCE),
        }
    }

    /// The dense block: products of its rows, less what the sparse block explains.
    fn assemble_dense(&mut self) {
        let (m, first) = (self.scale.len(), self.first);
        let size = m - first;
        for j in 0..size {
            let row_j = self.row_start[first + j]..self.row_start[first + j + 1];
            for p in row_j.clone() {
                self.scattered[self.column[p] as usize] = self.unit[p];
            }
            for i in j..size {
                let row_i = self.row_start[first + i]..self.row_start[first + i + 1];
                self.dense[i * size + j] = row_i.map(|p| self.unit[p] * self.scattered[self.column[p] as usize]).sum();
            }
            if self.scale[first + j] == 0.0 {
                self.dense[j * size + j] = 1.0;
            }
            if let Some(block) = &mut self.sparse {
                let column = j * first..(j + 1) * first;
                for (i, b) in block.border[column.clone()].iter_mut().enumerate() {
                    let row_i = self.row_start[i]..self.row_start[i + 1];
                    *b = row_i.map(|p| self.unit[p] * self.scattered[self.column[p] as usize]).sum();
                }
                block.solved[column.clone()].copy_from_slice(&block.border[column.clone()]);
                block.ldl.solve(&mut block.solved[column]);
            }
            for p in row_j {
                self.scattered[self.column[p] as usize] = 0.0;
            }
        }
        if let Some(block) = &self.sparse {
            for j in 0..size {
                for i in j..size {
                    let (b, solved) = (&block.border[i * first..][..first], &block.solved[j * first..][..first]);
                    self.dense[i * size + j] -= b.iter().zip(solved).map(|(b, s)| b * s).sum::<f64>();
                }
            }
        }
    }

    /// Turns the residual r into the multipliers μ of the unscaled rows, so that DFᵀμ = DF⁺r.
    pub fn solve(&mut self, r: &mut [f64]) {
        for (r, scale) in r.iter_mut().zip(&self.scale) {
            // A row that takes no part must not bring in its residual, which may be anything.
            *r = if *scale == 0.0 { 0.0 } else { *r * scale };
        }
        let first = self.first;
        let (upper, lower) = r.split_at_mut(first);
        if let Some(block) = &mut self.sparse {
            block.ldl.solve(upper);
            for (j, lower) in lower.iter_mut().enumerate() {
                *lower -= block.border[j * first..][..first].iter().zip(&*upper).map(|(b, x)| b * x).sum::<f64>();
            }
        }
        match self.regularisation {
            Regularisation::Shift(_) => ldl_solve(&self.dense, lower.len(), lower),
            Regularisation::LeastNorm => self.cholesky.solve(lower),
        }
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
    }

    /// Round-off of F_i(x): it is a sum of terms of about |∂_j F_i x_j|, each rounded, and so is its target.
    pub fn round_off(&self, jacobian: &[f64], x: &[f64], target: f64, row: usize) -> f64 {
        let entries = self.row_start[row]..self.row_start[row + 1];
        let terms: f64 = entries.map(|p| (jacobian[p] * x[self.column[p] as usize]).abs()).sum();
        f64::EPSILON * (terms + target.abs())
    }

    /// The square of the round-off of F_i as `correction` bounds it.
    pub fn squared_round_off(&self, jacobian: &[f64], x: &[f64], target: f64, row: usize) -> f64 {
        let (mut gradient, mut size) = (0.0, 0.0);
        for p in self.row_start[row]..self.row_start[row + 1] {
            gradient += jacobian[p] * jacobian[p];
            size += x[self.column[p] as usize].powi(2);
        }
        2.0 * f64::EPSILON * f64::EPSILON * gradient.mul_add(size, target * target)
    }

    /// x ← x + DFᵀμ with these nonzeros of DF.
    pub fn add_transpose(&self, jacobian: &[f64], mu: &[f64], x: &mut [f64]) {
        for (i, mu) in mu.iter().enumerate().filter(|(_, mu)| **mu != 0.0) {
            for p in self.row_start[i]..self.row_start[i + 1] {
                x[self.column[p] as usize] += jacobian[p] * mu;
            }
        }
    }

    /// r ← r − DF·v with these nonzeros of DF.
    pub fn subtract_product(&self, jacobian: &[f64], v: &[f64], r: &mut [f64]) {
        for (i, r) in r.iter_mut().enumerate() {
            let entries = self.row_start[i]..self.row_start[i + 1];
            *r -= entries.map(|p| jacobian[p] * v[self.column[p] as usize]).sum::<f64>();
        }
    }

    /// x ← x − DFᵀμ with the nonzeros of DF that were factored.
    pub fn subtract_transpose(&self, jacobian: &[f64], mu: &[f64], x: &mut [f64]) {
        for (i, mu) in mu.iter().enumerate().filter(|(_, mu)| **mu != 0.0) {
            for p in self.row_start[i]..self.row_start[i + 1] {
                x[self.column[p] as usize] -= jacobian[p] * mu;
            }
        }
    }
}

/// Puts the nonzeros of two Jacobians of the same sparsity side by side, row by row, as [`NormalEquations::stacked`] has
/// them.
pub fn stack(invariants: &Invariants, left: &[f64], right: &[f64], out: &mut [f64]) {
    for row in 0..invariants.count {
        let entries = invariants.row(row);
        let (a, b) = out[2 * entries.start..2 * entries.end].split_at_mut(entries.len());
        a.copy_from_slice(&left[entries.clone()]);
        b.copy_from_slice(&right[entries]);
    }
}

impl ConstraintBlock {
    fn new(invariants: &Invariants, border: usize) -> ConstraintBlock {
        let c = invariants.constraints;
        let mut by_column: Vec<Vec<(u32, u32)>> = Vec::new();
        for row in 0..c {
            for p in invariants.row(row) {
                let column = invariants.column[p] as usize;
                if by_column.len() <= column {
                    by_column.resize(column + 1, Vec::new());
                }
                by_column[column].push((row as u32, p as u32));
            }
        }
        let mut terms: Vec<(u32, u32, u32, u32)> = Vec::new();
        for list in &by_column {
            for (k, &(i, a)) in list.iter().enumerate() {
                terms.extend(list[..=k].iter().map(|&(j, b)| (i, j, a, b)));
            }
        }
        // The diagonal first, so that entry i is C_ii; every row has its diagonal, even an empty one.
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
            border: vec![0.0; border * c],
            solved: vec![0.0; border * c],
        }
    }
}

/// Euclidean length without under- or overflow of the squares.
fn length(v: &[f64]) -> f64 {
    let plain = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    if (1e-140..1e140).contains(&plain) {
        return plain;
    }
    let largest = v.iter().fold(0.0, |max, v| crate::system::max_or_nan(max, v.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * v.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests;
