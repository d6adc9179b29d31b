//! Rates of functions along the free motion, and numbers of Poisson brackets at points.

use super::Field;
use super::structure::{Hidden, Probe};
use super::unrolled::{Scalar, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use holonome_linear::gram::Row;
use holonome_linear::rank;

/// Part of its terms up to which a bracket is rounding.
pub(super) const ROUNDING: f64 = 1e-10;

/// {f, H} + L_Q f + f_t: the rate of a function without constraint forces.
pub(super) fn rate(unrolled: &mut Unrolled, f: Node, gradient: &Gradient, degrees: usize) -> Node {
    let bracket = unrolled.graph.poisson(gradient, &unrolled.hamiltonian_gradient, degrees);
    let forced = unrolled.forced_rate(gradient);
    let explicit = unrolled.graph.time_derivative(f);
    unrolled.graph.sum(vec![bracket, forced, explicit])
}

/// Hidden constraint of first order of the scalar constraint `of`.
pub(super) fn hidden(unrolled: &mut Unrolled, s: &Scalar, of: usize, degrees: usize) -> Hidden {
    let node = rate(unrolled, s.node, &s.gradient, degrees);
    Hidden { of, order: 1, node, gradient: unrolled.graph.gradient(node), tangency: false }
}

/// G p, the momentum along the normal of a constraint on positions with this gradient.
pub(super) fn tangency(unrolled: &mut Unrolled, of: usize, gradient: &Gradient) -> Hidden {
    let (n, g) = (unrolled.velocities.len(), &mut unrolled.graph);
    let zero = g.zero();
    let node = gradient.iter().fold(zero, |sum, &(i, d)| {
        let p = g.state(i as usize + n);
        let product = g.mul(d, p);
        g.add(sum, product)
    });
    Hidden { of, order: 1, node, gradient: g.gradient(node), tangency: true }
}

/// {f, g} of functions with these gradients, with its scale Σ |∂f/∂q_k ∂g/∂p_k| + |∂f/∂p_k ∂g/∂q_k|.
fn bracket(f: &Row, g: &Row, degrees: usize) -> (f64, f64) {
    let n = degrees as u32;
    let (mut sum, mut size) = (0.0, 0.0f64);
    for &(i, d) in f {
        let (partner, sign) = if i < n { (i + n, 1.0) } else { (i - n, -1.0) };
        if let Ok(at) = g.binary_search_by_key(&partner, |&(j, _)| j) {
            sum += sign * d * g[at].1;
            size += (d * g[at].1).abs();
        }
    }
    (sum, size)
}

/// Scale of the bracket {f, g}; see [`bracket`].
pub(crate) fn bracket_size(f: &Row, g: &Row, degrees: usize) -> f64 {
    bracket(f, g, degrees).1
}

/// Brackets of functions `f` with functions `g` of these gradients, row-major, 0 where they are
/// rounding.
pub(super) fn brackets(f: &[Row], g: &[Row], degrees: usize, rounding: f64) -> Vec<f64> {
    let entry = |f: &Row, g: &Row| match bracket(f, g, degrees) {
        (sum, size) if sum.abs() <= rounding * size => 0.0,
        (sum, _) => sum,
    };
    f.iter().flat_map(|f| g.iter().map(move |g| entry(f, g))).collect()
}

/// For each constraint and hidden constraint of `field`, another one with which it is second class:
/// pairs of an elimination of the matrix of their brackets at the initial state by blocks, the
/// largest entries first. Empty if there are so many that it is not worth its cost.
pub fn partners(model: &Model, field: &Field) -> Vec<usize> {
    const MOST: usize = 300;
    let m = field.constraints;
    if m > MOST {
        return Vec::new();
    }
    let gradients: Vec<&Gradient> = field.jacobian[..m].iter().collect();
    let probe = Probe::new(&field.graph, &[], &gradients, field.dimension, &model.parameter_values);
    let rows = probe.at(model.t0, &model.initial).1;
    let table = brackets(&rows, &rows, model.degrees(), ROUNDING);
    let mut c = rank::equilibrated(&table, m, m);
    let mut partners: Vec<Option<usize>> = vec![None; m];
    while let Some((i, j)) = largest_pair(&c, &partners) {
        (partners[i], partners[j]) = (Some(j), Some(i));
        let pivot = c[i * m + j];
        // C ← C − (c_i c_jᵀ − c_j c_iᵀ) / c_ij for the columns c_i and c_j of C.
        let [of_i, of_j] = [i, j].map(|k| (0..m).map(|r| c[r * m + k]).collect::<Vec<f64>>());
        for r in 0..m {
            for s in 0..m {
                c[r * m + s] -= (of_i[r] * of_j[s] - of_j[r] * of_i[s]) / pivot;
            }
        }
    }
    partners.into_iter().enumerate().map(|(k, partner)| partner.unwrap_or(k)).collect()
}

/// Place of the largest entry among functions without partners; `None` if all are rounding.
fn largest_pair(c: &[f64], partners: &[Option<usize>]) -> Option<(usize, usize)> {
    let m = partners.len();
    let free = || (0..m).filter(|&k| partners[k].is_none());
    let pairs = free().flat_map(|i| free().filter(move |&j| i < j).map(move |j| (i, j)));
    let size = |(i, j): (usize, usize)| c[i * m + j].abs();
    pairs.filter(|&pair| size(pair) > ROUNDING).max_by(|&a, &b| size(a).total_cmp(&size(b)))
}
