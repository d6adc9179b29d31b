//! Gauss–Newton steps towards the level set F = F₀ of a field's invariants, as formulas.
//! `corrected` and `projection` take them after a step of a small system, in the metric of the
//! step's error; the Gauss–Newton form of feedback takes them all the time, in the metric of the
//! state's scales at the start (`docs/methods.md`).

use super::{Field, InvariantKind};
use crate::graph::calculus::Gradient;
use crate::graph::linear::{Factors, Matrix};
use crate::graph::op::{Binary, Unary};
use crate::graph::{Graph, Node};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Regularisation ε, relative to the squares of the rows: needed where DF loses rank, as on a
/// conical pendulum.
pub const REGULARISATION: f64 = 1e-8;

/// Largest pivot of a correction, relative to its row's square, of a row that depends on those
/// before.
pub const PIVOT_TOLERANCE: f64 = 1e-12;

/// Squares of rows between which nothing overflows, nor loses digits to underflow.
const SQUARES: [f64; 2] = [1e-250, 1e250];

/// Largest factor of w² by which momenta are widened.
pub const MOST_WIDENED: f64 = 1e100;

/// Smallest w in a family whose momenta are widened, relative to the family's largest.
const NEIGHBOURS_FLOOR: f64 = 1e-3;

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
    let mu = Factors::semidefinite(g, &c, PIVOT_TOLERANCE).solve(g, r);
    let mut result = vec![g.zero(); vector_of.len()];
    for (row, &mu) in weighted.iter().zip(&mu) {
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

/// A corrected state.
pub struct Corrected {
    /// The state x.
    pub x: Vec<Node>,
    /// Square of the innovation: of H and the integrals or, if it is larger and counts, of the
    /// constraints.
    pub innovation: Node,
}

/// Scales in which a state is corrected.
pub struct CorrectionScales<'a> {
    /// Vector that each component of the state belongs to.
    pub vector_of: &'a [usize],
    /// w² of every vector.
    pub weights: &'a [Node],
    /// Vectors of every family.
    pub families: &'a [Range<usize>],
    /// Largest innovation, in standard deviations, that is believed of momenta.
    pub largest_innovation: f64,
    /// Largest innovation of H and the integrals that is corrected as a whole.
    pub limit: Node,
    /// True if the constraints are claims about the motion, whose innovation counts.
    pub constraints_are_claims: bool,
}

/// One Gauss–Newton step in the metric of the step's error, as in
/// `holonome_integrate::treatment::correction`: x − W DᵀM⁻¹ΔF with M = D W Dᵀ + R, where the
/// contribution of H and the integrals beyond the constraints is limited.
///
/// The state is infinite where the square of a row overflows or underflows: it has to be found with
/// scaled rows there.
pub fn corrected(
    field: &mut Field,
    scales: &CorrectionScales,
    mut target: impl FnMut(&mut Graph, usize) -> Node,
) -> Corrected {
    let residual = held_deviation(field, &mut target);
    let (m, constraints) = (residual.len(), field.constraints);
    let rows = field.jacobian.iter().skip(constraints).filter(|row| !row.is_empty()).count();
    let noises = noises(field, &mut target);
    let weights = widened(field, scales, &residual, &noises);
    let g = &mut field.graph;
    // W Dᵀ by rows of D.
    let weighted: Vec<Gradient> =
        field.jacobian.iter().map(|row| weigh(g, row, scales.vector_of, &weights)).collect();
    let mut matrix = products(g, &field.jacobian, &weighted);
    let mut in_range = g.one();
    for (i, &noise) in noises.iter().enumerate() {
        let square = g.add(matrix.get(i, i), noise);
        if !field.jacobian[i].is_empty() {
            let of_row = is_in_range(g, square, residual[i]);
            in_range = g.binary(Binary::And, in_range, of_row);
        }
        let shift = g.constant(if i >= constraints { 1.0 + REGULARISATION } else { 1.0 });
        let diagonal = g.mul(square, shift);
        matrix.set(i, i, diagonal);
    }
    let factors = Factors::semidefinite(g, &matrix, PIVOT_TOLERANCE);
    let forward = factors.forward(g, &residual);
    // ν² and the limit.
    let zero = g.zero();
    let (mut sum, mut sum_before) = (zero, zero);
    let mut divided = Vec::with_capacity(m);
    for (i, &y) in forward.iter().enumerate() {
        let quotient = g.mul(y, factors.inverse_pivots()[i]);
        divided.push(quotient);
        let term = g.mul(y, quotient);
        match i < constraints {
            true => sum_before = g.add(sum_before, term),
            false => sum = g.add(sum, term),
        }
    }
    let count = g.constant(1.0 / rows.max(1) as f64);
    let innovation = g.mul(sum, count);
    // The displacements by the constraints and by the others apart: the limit is waited for only at
    // the end.
    let mut x: Vec<Node> = (0..field.dimension).map(|k| g.state(k)).collect();
    let by_constraints = factors.backward(g, &divided[..constraints]);
    let mut displaced = displacement(g, x.len(), &weighted, &by_constraints);
    if constraints < m {
        let limit = scales.limit;
        let square_of_limit = g.mul(limit, limit);
        let root = g.sqrt(innovation);
        let quotient = g.div(limit, root);
        let within = g.binary(Binary::LessEqual, innovation, square_of_limit);
        let one = g.one();
        let factor = g.select(within, one, quotient);
        divided[..constraints].fill(zero);
        let by_others = factors.backward(g, &divided);
        for (displaced, part) in
            displaced.iter_mut().zip(displacement(g, x.len(), &weighted, &by_others))
        {
            let part = g.mul(factor, part);
            *displaced = g.add(*displaced, part);
        }
    }
    x.iter_mut().zip(displaced).for_each(|(x, displaced)| *x = g.sub(*x, displaced));
    if let Some(x) = x.first_mut() {
        let infinite = g.constant(f64::INFINITY);
        *x = g.select(in_range, *x, infinite);
    }
    if !scales.constraints_are_claims || constraints == 0 {
        return Corrected { x, innovation };
    }
    let rows = field.jacobian[..constraints].iter().filter(|row| !row.is_empty()).count();
    let count = g.constant(1.0 / rows.max(1) as f64);
    let of_constraints = g.mul(sum_before, count);
    Corrected { x, innovation: g.largest(of_constraints, innovation) }
}

/// Condition that the square of a row can be computed with, or that there is nothing to correct.
fn is_in_range(g: &mut Graph, square: Node, residual: Node) -> Node {
    let ([least, most], zero) = (SQUARES.map(|limit| g.constant(limit)), g.zero());
    let not_small = g.binary(Binary::LessEqual, least, square);
    let met = g.binary(Binary::Equal, residual, zero);
    let fine = g.binary(Binary::Or, not_small, met);
    let not_large = g.binary(Binary::LessEqual, square, most);
    g.binary(Binary::And, fine, not_large)
}

/// A projected state.
pub struct Projected {
    /// The state x.
    pub x: Vec<Node>,
    /// Square of the distance by which it was moved, each vector relative to its size; infinite if
    /// F = F₀ is not reached to round-off.
    pub moved: Node,
}

/// Criteria of a projection.
pub struct Arrival<'a> {
    /// σ² of every vector.
    pub sizes: &'a [Node],
    /// Largest distance of an arrived state from F = F₀.
    pub tolerance: f64,
    /// Number of iterations.
    pub iterations: usize,
}

/// The projection of a state by a simplified Newton iteration, as in
/// `holonome_integrate::treatment::projection`, with a fixed number of iterations; in the Euclidean
/// metric if `scales` has no weights.
pub fn projected(
    field: &mut Field,
    scales: &CorrectionScales,
    arrival: &Arrival,
    mut target: impl FnMut(&mut Graph, usize) -> Node,
) -> Projected {
    let mut residual = held_deviation(field, &mut target);
    let one = field.graph.one();
    let weights = if scales.weights.is_empty() {
        vec![one; arrival.sizes.len()]
    } else {
        let noises = noises(field, &mut target);
        widened(field, scales, &residual, &noises)
    };
    let m = residual.len();
    let targets: Vec<Option<Node>> =
        (0..m).map(|i| (i >= field.constraints).then(|| target(&mut field.graph, i))).collect();
    let Field { graph: g, dimension, jacobian, invariants, .. } = field;
    // Limits below which rows have arrived, in the unit of each row.
    let mut squares = arrival.sizes.to_vec();
    for (vector, square) in squares.iter_mut().enumerate() {
        let of_vector = (0..*dimension).filter(|&k| scales.vector_of[k] == vector);
        let own = of_vector.fold(g.zero(), |sum, k| {
            let x = g.state(k);
            let product = g.mul(x, x);
            g.add(sum, product)
        });
        *square = g.largest(own, *square);
    }
    let sizes: Vec<Node> = squares.iter().map(|&square| g.sqrt(square)).collect();
    let mut limits = Vec::with_capacity(m);
    for (row, target) in jacobian.iter().zip(&targets) {
        let terms =
            row.iter().map(|&(k, d)| (d, sizes[scales.vector_of[k as usize]])).collect::<Vec<_>>();
        let size = size_of_terms(g, &terms, *target);
        // Twice, for F and for its target.
        let unit = g.constant(2.0 * f64::EPSILON);
        let mut limit = g.mul(unit, size);
        if arrival.tolerance > 0.0 {
            let square = g.sparse_dot(row, row);
            let zero = g.zero();
            let still = g.binary(Binary::LessEqual, square, zero);
            let gradient = g.sqrt(square);
            let gradient = g.select(still, one, gradient);
            let tolerance = g.constant(arrival.tolerance);
            let distance = g.mul(tolerance, gradient);
            limit = g.binary(Binary::Max, limit, distance);
        }
        limits.push(limit);
    }
    let weighted: Vec<Gradient> =
        jacobian.iter().map(|row| weigh(g, row, scales.vector_of, &weights)).collect();
    let matrix = products(g, jacobian, &weighted);
    let factors = Factors::semidefinite(g, &matrix, PIVOT_TOLERANCE);
    let mut mu = vec![g.zero(); m];
    let mut x: Vec<Node> = (0..*dimension).map(|k| g.state(k)).collect();
    for _ in 0..arrival.iterations {
        let step = factors.solve(g, &residual);
        for (mu, step) in mu.iter_mut().zip(step) {
            *mu = g.add(*mu, step);
        }
        x = moved(g, *dimension, &weighted, &mu);
        let replaced: FxHashMap<Node, Node> =
            x.iter().enumerate().map(|(k, &x)| (g.state(k), x)).collect();
        let values = g.substituted(invariants, &replaced);
        for (i, residual) in
            residual.iter_mut().enumerate().filter(|&(i, _)| !jacobian[i].is_empty())
        {
            *residual = match targets[i] {
                Some(target) => g.sub(values[i], target),
                None => values[i],
            };
        }
    }
    let mut arrived = one;
    for (i, (&residual, &limit)) in residual.iter().zip(&limits).enumerate() {
        if !jacobian[i].is_empty() {
            let off = g.unary(Unary::Abs, residual);
            let near = g.binary(Binary::LessEqual, off, limit);
            arrived = g.binary(Binary::And, arrived, near);
        }
    }
    let (zero, infinite) = (g.zero(), g.constant(f64::INFINITY));
    let mut moved = zero;
    for (vector, &size) in squares.iter().enumerate() {
        let of_vector = (0..*dimension).filter(|&k| scales.vector_of[k] == vector);
        let square = of_vector.fold(zero, |sum, k| {
            let before = g.state(k);
            let d = g.sub(x[k], before);
            let product = g.mul(d, d);
            g.add(sum, product)
        });
        let part = g.div(square, size);
        let none = g.binary(Binary::LessEqual, size, zero);
        let part = g.select(none, zero, part);
        moved = g.add(moved, part);
    }
    Projected { x, moved: g.select(arrived, moved, infinite) }
}

/// F − F₀, and 0 in rows without a gradient. These are monitored only: their residual says nothing
/// about a step's error.
fn held_deviation(
    field: &mut Field,
    target: &mut impl FnMut(&mut Graph, usize) -> Node,
) -> Vec<Node> {
    let mut residual = deviation(field, target);
    for (residual, _) in residual.iter_mut().zip(&field.jacobian).filter(|(_, row)| row.is_empty())
    {
        *residual = field.graph.zero();
    }
    residual
}

/// R of every row of F.
fn noises(field: &mut Field, target: &mut impl FnMut(&mut Graph, usize) -> Node) -> Vec<Node> {
    let constraints = field.constraints;
    let g = &mut field.graph;
    let noise = |(i, row): (usize, &Gradient)| {
        let target = (i >= constraints).then(|| target(g, i));
        squared_round_off(g, row, target)
    };
    field.jacobian.iter().enumerate().map(noise).collect()
}

/// D W Dᵀ for the rows of D and of D W.
fn products(g: &mut Graph, rows: &[Gradient], weighted: &[Gradient]) -> Matrix {
    let mut matrix = Matrix::zeros(g, rows.len());
    for (i, row) in rows.iter().enumerate() {
        for (j, other) in weighted[..=i].iter().enumerate() {
            let entry = g.sparse_dot(row, other);
            matrix.set(i, j, entry);
            matrix.set(j, i, entry);
        }
    }
    matrix
}

/// W Dᵀμ for the first rows of D W, as many as μ has; the last row first, as `Factors::backward`
/// finds them.
fn displacement(g: &mut Graph, dimension: usize, weighted: &[Gradient], mu: &[Node]) -> Vec<Node> {
    let mut sums = vec![g.zero(); dimension];
    for (row, &mu) in weighted.iter().zip(mu).rev() {
        for &(k, d) in row {
            let product = g.mul(mu, d);
            sums[k as usize] = g.add(sums[k as usize], product);
        }
    }
    sums
}

/// x − W Dᵀμ for the rows of D W.
fn moved(g: &mut Graph, dimension: usize, weighted: &[Gradient], mu: &[Node]) -> Vec<Node> {
    let mut x: Vec<Node> = (0..dimension).map(|k| g.state(k)).collect();
    for (row, &mu) in weighted.iter().zip(mu) {
        for &(k, d) in row {
            let product = g.mul(mu, d);
            x[k as usize] = g.sub(x[k as usize], product);
        }
    }
    x
}

/// W v for a row v; `weights` are the w² of the vectors.
fn weigh(g: &mut Graph, row: &Gradient, vector_of: &[usize], weights: &[Node]) -> Gradient {
    row.iter().map(|&(k, d)| (k, g.mul(d, weights[vector_of[k as usize]]))).collect()
}

/// R of one row of F; without `target` its target is 0.
fn squared_round_off(g: &mut Graph, row: &Gradient, target: Option<Node>) -> Node {
    let terms: Vec<(Node, Node)> = row.iter().map(|&(k, d)| (d, g.state(k as usize))).collect();
    let size = size_of_terms(g, &terms, target);
    let unit = g.constant(0.5 * f64::EPSILON);
    let noise = g.mul(unit, size);
    g.mul(noise, noise)
}

/// Σ |a b| + |target|, in pairs of pairs, which wait for each other least.
fn size_of_terms(g: &mut Graph, terms: &[(Node, Node)], target: Option<Node>) -> Node {
    let products: Vec<Node> = terms.iter().map(|&(a, b)| g.mul(a, b)).collect();
    let mut sizes: Vec<Node> =
        products.into_iter().chain(target).map(|term| g.unary(Unary::Abs, term)).collect();
    while sizes.len() > 1 {
        sizes = sizes
            .chunks(2)
            .map(|pair| pair[1..].iter().fold(pair[0], |a, &b| g.add(a, b)))
            .collect();
    }
    sizes.first().copied().unwrap_or(g.zero())
}

/// w² of the vectors, with those of momenta wide enough to explain the hidden constraints, as in
/// `holonome_integrate::treatment::correction`.
fn widened(
    field: &mut Field,
    scales: &CorrectionScales,
    residual: &[Node],
    noises: &[Node],
) -> Vec<Node> {
    let Field { graph: g, dimension, jacobian, groups, .. } = field;
    let hidden: Vec<usize> = groups
        .iter()
        .filter(|group| group.kind == InvariantKind::Hidden)
        .flat_map(|group| group.members.rows().map(|(row, _)| row))
        .collect();
    let mut concerned = vec![false; scales.weights.len()];
    for &(k, _) in hidden
        .iter()
        .flat_map(|&row| &jacobian[row])
        .filter(|&&(k, _)| k as usize >= *dimension / 2)
    {
        concerned[scales.vector_of[k as usize]] = true;
    }
    let mut floored = scales.weights.to_vec();
    for family in scales.families {
        let members: Vec<usize> = family.clone().filter(|&vector| concerned[vector]).collect();
        let Some((&first, rest)) = members.split_first() else { continue };
        if rest.is_empty() {
            continue;
        }
        let largest =
            rest.iter().fold(scales.weights[first], |a, &b| g.largest(scales.weights[b], a));
        let part = g.constant(NEIGHBOURS_FLOOR * NEIGHBOURS_FLOOR);
        let floor = g.mul(part, largest);
        for vector in members {
            floored[vector] = g.largest(scales.weights[vector], floor);
        }
    }
    let limit = g.constant(scales.largest_innovation * scales.largest_innovation);
    let believed = |g: &mut Graph, row: usize, weights: &[Node]| {
        let weighted = weigh(g, &jacobian[row], scales.vector_of, weights);
        let variance = g.sparse_dot(&jacobian[row], &weighted);
        let variance = g.add(variance, noises[row]);
        g.mul(limit, variance)
    };
    // 0 if every residual is believed.
    let mut widest = g.zero();
    for &row in &hidden {
        let square = g.mul(residual[row], residual[row]);
        let own = believed(g, row, scales.weights);
        let with_floor = believed(g, row, &floored);
        let quotient = g.div(square, with_floor);
        let (one, most, zero) = (g.one(), g.constant(MOST_WIDENED), g.zero());
        let over = g.binary(Binary::Less, most, quotient);
        let quotient = g.select(over, most, quotient);
        let quotient = g.largest(quotient, one);
        let within = g.binary(Binary::LessEqual, square, own);
        let factor = g.select(within, zero, quotient);
        widest = g.largest(factor, widest);
    }
    if hidden.is_empty() {
        return floored;
    }
    let one = g.one();
    let widens = g.binary(Binary::LessEqual, one, widest);
    let mut weights = scales.weights.to_vec();
    for (vector, weight) in weights.iter_mut().enumerate().filter(|&(vector, _)| concerned[vector])
    {
        let wide = g.mul(floored[vector], widest);
        *weight = g.select(widens, wide, *weight);
    }
    weights
}
