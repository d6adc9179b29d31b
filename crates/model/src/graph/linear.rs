//! Linear algebra on graphs: elimination in which zeros cost nothing, because the graph folds them
//! away. A chain's tridiagonal system thus unrolls to linear length.

use super::op::Binary;
use super::{Graph, Node};

/// A square matrix of nodes, row-major.
#[derive(Clone, Debug)]
pub struct Matrix {
    size: usize,
    entries: Vec<Node>,
}

impl Matrix {
    /// The n × n matrix of zeros.
    pub fn zeros(g: &mut Graph, size: usize) -> Matrix {
        Matrix { size, entries: vec![g.zero(); size * size] }
    }

    /// Number n of rows.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Entry (i, j), counted from 0.
    pub fn get(&self, i: usize, j: usize) -> Node {
        self.entries[i * self.size + j]
    }

    /// Set entry (i, j).
    pub fn set(&mut self, i: usize, j: usize, value: Node) {
        self.entries[i * self.size + j] = value;
    }

    /// True if all entries below the diagonal are 0, or all above it.
    pub fn is_triangular(&self, g: &Graph) -> bool {
        let n = self.size;
        let empty = |i: usize, j: usize| g.is_zero(self.get(i, j));
        let below = (0..n).all(|i| (0..i).all(|j| empty(i, j)));
        below || (0..n).all(|i| (0..i).all(|j| empty(j, i)))
    }

    /// The product with a vector.
    pub fn times(&self, g: &mut Graph, x: &[Node]) -> Vec<Node> {
        (0..self.size)
            .map(|i| g.dot(&self.entries[i * self.size..(i + 1) * self.size], x))
            .collect()
    }

    /// The product of the transpose with a vector.
    pub fn transpose_times(&self, g: &mut Graph, x: &[Node]) -> Vec<Node> {
        (0..self.size)
            .map(|j| {
                let column: Vec<Node> = (0..self.size).map(|i| self.get(i, j)).collect();
                g.dot(&column, x)
            })
            .collect()
    }

    /// The Gram matrix AᵀA.
    pub fn gram(&self, g: &mut Graph) -> Matrix {
        let mut product = Matrix::zeros(g, self.size);
        for i in 0..self.size {
            for j in 0..=i {
                let zero = g.zero();
                let entry = (0..self.size).fold(zero, |sum, k| {
                    let p = g.mul(self.get(k, i), self.get(k, j));
                    g.add(sum, p)
                });
                product.set(i, j, entry);
                product.set(j, i, entry);
            }
        }
        product
    }
}

/// A = L D U with unit triangular L and U, without pivoting: for matrices whose leading minors are
/// regular (symmetric definite ones, where U = Lᵀ, and block triangular ones with definite blocks).
#[derive(Clone, Debug)]
pub struct Factors {
    size: usize,
    /// Rows of L below the diagonal: (column, entry), without zeros.
    lower: Vec<Vec<(usize, Node)>>,
    /// Rows of U right of the diagonal: (column, entry), without zeros.
    upper: Vec<Vec<(usize, Node)>>,
    /// Inverse pivots 1/D.
    inverse_pivots: Vec<Node>,
}

impl Factors {
    /// Factor a symmetric matrix (only its lower triangle is read).
    pub fn symmetric(g: &mut Graph, a: &Matrix) -> Factors {
        Factors::eliminate(g, a.clone(), true, None)
    }

    /// Factor a general matrix.
    pub fn general(g: &mut Graph, a: &Matrix) -> Factors {
        Factors::eliminate(g, a.clone(), false, None)
    }

    /// Factor a symmetric positive semidefinite matrix. A pivot of at most `tolerance` times the
    /// original diagonal entry belongs to a row that depends on those before, or to an empty one:
    /// its part of a solution is 0.
    pub fn semidefinite(g: &mut Graph, a: &Matrix, tolerance: f64) -> Factors {
        Factors::eliminate(g, a.clone(), true, Some(tolerance))
    }

    fn eliminate(g: &mut Graph, mut a: Matrix, symmetric: bool, tolerance: Option<f64>) -> Factors {
        let n = a.size;
        let mut factors = Factors {
            size: n,
            lower: vec![Vec::new(); n],
            upper: vec![Vec::new(); n],
            inverse_pivots: Vec::with_capacity(n),
        };
        let diagonal: Vec<Node> = (0..n).map(|k| a.get(k, k)).collect();
        for k in 0..n {
            let one = g.one();
            let mut inverse = g.div(one, a.get(k, k));
            if let Some(tolerance) = tolerance {
                // Not "more than": a NaN pivot must stay NaN.
                let tolerance = g.constant(tolerance);
                let least = g.mul(tolerance, diagonal[k]);
                let depends = g.binary(Binary::LessEqual, a.get(k, k), least);
                let zero = g.zero();
                inverse = g.select(depends, zero, inverse);
            }
            factors.inverse_pivots.push(inverse);
            let below: Vec<usize> = (k + 1..n).filter(|&i| !g.is_zero(a.get(i, k))).collect();
            let right: Vec<usize> = if symmetric {
                below.clone()
            } else {
                (k + 1..n).filter(|&j| !g.is_zero(a.get(k, j))).collect()
            };
            for &i in &below {
                let multiplier = g.mul(a.get(i, k), inverse);
                factors.lower[i].push((k, multiplier));
                for &j in right.iter().filter(|&&j| !symmetric || j <= i) {
                    let from = if symmetric { a.get(j, k) } else { a.get(k, j) };
                    let product = g.mul(multiplier, from);
                    let entry = g.sub(a.get(i, j), product);
                    a.set(i, j, entry);
                }
            }
            for &j in &right {
                let entry = if symmetric {
                    factors.lower[j].last().expect("just pushed").1
                } else {
                    g.mul(a.get(k, j), inverse)
                };
                factors.upper[k].push((j, entry));
            }
        }
        factors
    }

    /// Inverse pivots 1/D.
    pub fn inverse_pivots(&self) -> &[Node] {
        &self.inverse_pivots
    }

    /// L⁻¹b, for a symmetric matrix.
    pub fn forward(&self, g: &mut Graph, b: &[Node]) -> Vec<Node> {
        let mut x = b.to_vec();
        for i in 0..self.size {
            for &(j, l) in &self.lower[i] {
                let product = g.mul(l, x[j]);
                x[i] = g.sub(x[i], product);
            }
        }
        x
    }

    /// L⁻ᵀb, for a symmetric matrix; or of its first rows and columns, if b is shorter. The
    /// component found last is subtracted last, so that it is waited for only once.
    pub fn backward(&self, g: &mut Graph, b: &[Node]) -> Vec<Node> {
        let mut x = b.to_vec();
        for i in (0..x.len()).rev() {
            for &(j, u) in self.upper[i].iter().rev().filter(|&&(j, _)| j < b.len()) {
                let product = g.mul(u, x[j]);
                x[i] = g.sub(x[i], product);
            }
        }
        x
    }

    /// Solve A x = b.
    pub fn solve(&self, g: &mut Graph, b: &[Node]) -> Vec<Node> {
        self.substitute(g, b, false)
    }

    /// Solve Aᵀ x = b.
    pub fn solve_transposed(&self, g: &mut Graph, b: &[Node]) -> Vec<Node> {
        self.substitute(g, b, true)
    }

    fn substitute(&self, g: &mut Graph, b: &[Node], transposed: bool) -> Vec<Node> {
        let n = self.size;
        let mut x = b.to_vec();
        // A = L D U and Aᵀ = Uᵀ D Lᵀ. `lower` holds L by rows and `upper` U by rows; the transposed
        // sweeps read the same lists by columns.
        for i in 0..n {
            if transposed {
                for &(j, u) in &self.upper[i] {
                    let product = g.mul(u, x[i]);
                    x[j] = g.sub(x[j], product);
                }
            } else {
                for &(j, l) in &self.lower[i] {
                    let product = g.mul(l, x[j]);
                    x[i] = g.sub(x[i], product);
                }
            }
        }
        for (x, &inverse) in x.iter_mut().zip(&self.inverse_pivots) {
            *x = g.mul(*x, inverse);
        }
        for i in (0..n).rev() {
            if transposed {
                for &(j, l) in &self.lower[i] {
                    let product = g.mul(l, x[i]);
                    x[j] = g.sub(x[j], product);
                }
            } else {
                for &(j, u) in &self.upper[i] {
                    let product = g.mul(u, x[j]);
                    x[i] = g.sub(x[i], product);
                }
            }
        }
        x
    }
}
