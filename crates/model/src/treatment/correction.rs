//! One regularised Gauss–Newton step towards the level set F = F₀ of a field's invariants, as formulas: what
//! `corrected` does after a step of a small system, and what the Gauss–Newton form of feedback does all the time
//! (`docs/methods.md`).

use super::Field;
use crate::graph::calculus::Gradient;
use crate::graph::linear::{Factors, Matrix};
use crate::graph::op::Binary;
use crate::graph::{Graph, Node};

/// Rows up to this count are all regularised; beyond, only those that are not constraints.
pub const SMALL: usize = 64;

/// The regularisation ε, relative to the squares of the rows: needed where DF loses rank, as on a conical pendulum.
pub const REGULARISATION: f64 = 1e-8;

/// Keeps a row whose gradient vanishes from dividing by 0: it asks for nothing then. Gradients that are not 0 are far
/// longer than the root of this.
const LEAST_SQUARE: f64 = 1e-200;

/// DF⁺ r with the regularised pseudo-inverse DF⁺ = DFᵀ (C + ε diag C)⁻¹, C = DF DFᵀ, which is that of rows of unit
/// length with ε itself on the diagonal. The first `constraints` rows of DF are those of constraints.
pub fn pseudo_inverse_times(
    g: &mut Graph,
    jacobian: &[Gradient],
    constraints: usize,
    dimension: usize,
    r: &[Node],
) -> Vec<Node> {
    let m = r.len();
    let mut c = Matrix::zeros(g, m);
    let least = g.constant(LEAST_SQUARE);
    for i in 0..m {
        for j in 0..i {
            let entry = g.sparse_dot(&jacobian[i], &jacobian[j]);
            c.set(i, j, entry);
            c.set(j, i, entry);
        }
        let shift = if m <= SMALL || i >= constraints { REGULARISATION } else { 0.0 };
        let square = g.sparse_dot(&jacobian[i], &jacobian[i]);
        let factor = g.constant(1.0 + shift);
        let diagonal = g.mul(square, factor);
        let diagonal = g.add(diagonal, least);
        c.set(i, i, diagonal);
    }
    let mu = Factors::symmetric(g, &c).solve(g, r);
    let mut result = vec![g.zero(); dimension];
    for (row, &mu) in jacobian.iter().zip(&mu) {
        for &(i, d) in row {
            let product = g.mul(mu, d);
            result[i as usize] = g.add(result[i as usize], product);
        }
    }
    result
}

/// F − `target` by rows, the target of a constraint being 0; `target` makes that of row i.
pub fn deviation(field: &mut Field, mut target: impl FnMut(&mut Graph, usize) -> Node) -> Vec<Node> {
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

/// x − DF⁺ΔF, without those rows of ΔF that are round-off already: ΔF_i² ≤ 2 eps² (|∇F_i|² |x|_i² + F₀_i²), with |x|_i
/// the length of the components that F_i depends on. (Near a critical point of F_i the gradient is so short that
/// round-off over its length would throw the state about.)
pub fn corrected(field: &mut Field, mut target: impl FnMut(&mut Graph, usize) -> Node) -> Vec<Node> {
    let deviation = deviation(field, &mut target);
    let g = &mut field.graph;
    let zero = g.zero();
    let scale = g.constant(2.0 * f64::EPSILON * f64::EPSILON);
    let mut residual = Vec::with_capacity(deviation.len());
    for (i, (&deviation, row)) in deviation.iter().zip(&field.jacobian).enumerate() {
        let components: Vec<(u32, Node)> = row.iter().map(|&(k, _)| (k, g.state(k as usize))).collect();
        let (gradient, size) = (g.sparse_dot(row, row), g.sparse_dot(&components, &components));
        let scaled = g.mul(scale, size);
        let mut round_off = g.mul(gradient, scaled);
        if i >= field.constraints {
            let target = target(g, i);
            let square = g.mul(target, target);
            let of_target = g.mul(scale, square);
            round_off = g.add(round_off, of_target);
        }
        let square = g.mul(deviation, deviation);
        let negligible = g.binary(Binary::LessEqual, square, round_off);
        residual.push(g.select(negligible, zero, deviation));
    }
    let step = pseudo_inverse_times(g, &field.jacobian, field.constraints, field.dimension, &residual);
    (0..field.dimension)
        .map(|k| {
            let x = g.state(k);
            g.sub(x, step[k])
        })
        .collect()
}
