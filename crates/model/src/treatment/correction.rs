//! Gauss–Newton step towards the level set F = F₀ of a field's invariants, as formulas, in the metric
//! of the state's scales: the Gauss–Newton form of feedback takes it all the time
//! (`docs/methods.md`).

use super::Field;
use crate::graph::calculus::Gradient;
use crate::graph::linear::{Factors, Matrix};
use crate::graph::{Graph, Node};
use holonome_linear::dense::{PIVOT_TOLERANCE, REGULARISATION};

/// DF⁺ r with the regularised pseudo-inverse DF⁺ = W DFᵀ (C + ε diag C)⁻¹, C = DF W DFᵀ, in the
/// metric with the weights W. `weights` are those of the vectors, and `vector_of` gives the vector
/// of each component of the state. A row without a gradient in that metric contributes nothing.
pub fn pseudo_inverse_times(
    g: &mut Graph,
    jacobian: &[Gradient],
    (vector_of, weights): (&[usize], &[Node]),
    r: &[Node],
) -> Vec<Node> {
    let m = r.len();
    let weighted: Vec<Gradient> =
        jacobian.iter().map(|row| weigh(g, row, vector_of, weights)).collect();
    let mut c = Matrix::zeros(g, m);
    let shift = g.constant(1.0 + REGULARISATION);
    for i in 0..m {
        for j in 0..i {
            let entry = g.sparse_dot(&jacobian[i], &weighted[j]);
            c.set(i, j, entry);
            c.set(j, i, entry);
        }
        let square = g.sparse_dot(&jacobian[i], &weighted[i]);
        let diagonal = g.mul(square, shift);
        c.set(i, i, diagonal);
    }
    let factors = Factors::semidefinite(g, &c, PIVOT_TOLERANCE);
    let forward = factors.forward(g, r);
    let divided: Vec<Node> = forward
        .iter()
        .zip(factors.inverse_pivots())
        .map(|(&part, &inverse)| g.mul(part, inverse))
        .collect();
    let mu = factors.backward(g, &divided);
    let mut result = vec![g.zero(); vector_of.len()];
    // In the order in which they are found, so that the last one is waited for only once.
    for (row, &mu) in weighted.iter().zip(&mu).rev() {
        for &(i, d) in row {
            let product = g.mul(mu, d);
            result[i as usize] = g.add(result[i as usize], product);
        }
    }
    result
}

/// F − F₀ by rows, with F₀ = 0 for constraints; `target` makes F₀ of row i.
pub fn deviation(
    field: &mut Field,
    mut target: impl FnMut(&mut Graph, usize) -> Node,
) -> Vec<Node> {
    let g = &mut field.graph;
    let mut rows = Vec::with_capacity(field.invariants.len());
    for (i, &f) in field.invariants.iter().enumerate() {
        let row = if i < field.constraints {
            f
        } else {
            let target = target(g, i);
            g.sub(f, target)
        };
        rows.push(row);
    }
    rows
}

/// W v for a row v; `weights` are the w² of the vectors.
fn weigh(g: &mut Graph, row: &Gradient, vector_of: &[usize], weights: &[Node]) -> Gradient {
    row.iter().map(|&(k, d)| (k, g.mul(d, weights[vector_of[k as usize]]))).collect()
}
