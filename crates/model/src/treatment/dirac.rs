//! The Dirac extension (Chang, Perlmutter, Vankerschaver 2022, Theorem 1): a constrained
//! Hamiltonian becomes a field on the whole ambient space,
//!
//! X = X_H − Σ C^{ij} ({H, f_i} − ∂_t f_i) X_{f_j},   C_{ij} = {f_i, f_j},
//!
//! for which f and H are first integrals everywhere, not only on the constraint set. Forces Q add
//! to ṗ, and {H, f} becomes −(L_{X_H} + L_Q) f.

use super::Field;
use super::brackets::bracket_size;
use super::invariants::{InvariantRows, InvariantSource};
use super::least_norm::of_entries;
use super::structure::{ConstraintKind, Hidden, Irregular, Probe, Structure, ambient_points};
use super::unrolled::{Scalar, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::calculus::Gradient;
use crate::graph::linear::{Factors, Matrix};
use crate::graph::{Graph, Node};
use holonome_linear::rank;

/// The field of `model`, given its unrolled form and its structure, with all its invariants: the
/// Dirac extension of a constrained Hamiltonian, X_H of a free one, the given right-hand side of a
/// state model.
///
/// # Errors
/// If the constraints have no Dirac bracket.
pub fn extend(
    model: &Model,
    mut unrolled: Unrolled,
    structure: &Structure,
) -> Result<Field, Irregular> {
    let Extension { mut field, mut underlying, multipliers } = match structure.kind {
        ConstraintKind::Free if !model.is_hamiltonian() => {
            Extension { field: unrolled.field.clone(), ..Extension::default() }
        }
        ConstraintKind::Free => {
            Extension { field: unconstrained_field(model, &mut unrolled), ..Extension::default() }
        }
        ConstraintKind::Nonholonomic => rolling_field(model, &mut unrolled, structure)?,
        _ => constrained_field(model, &mut unrolled, structure)?,
    };
    let multipliers = of_entries(model, &mut unrolled, &multipliers);
    let fields = std::iter::once(&mut field).chain(&mut underlying);
    fields.for_each(|field| account_for_work(model, &mut unrolled, field));
    Ok(Field { underlying, multipliers, ..with_invariants(model, unrolled, structure, field) })
}

/// A field with the constraint forces in it.
#[derive(Default)]
struct Extension {
    /// The field.
    field: Vec<Node>,
    /// [`Field::underlying`].
    underlying: Option<Vec<Node>>,
    /// Multipliers on the constraint set, one for each scalar constraint.
    multipliers: Vec<Node>,
}

/// The field without constraint forces: X_H = (H_p, −H_q) and the forces Q. The work is at rest.
pub(super) fn unconstrained_field(model: &Model, unrolled: &mut Unrolled) -> Vec<Node> {
    let n = model.degrees();
    let mut field = vec![unrolled.graph.zero(); model.dimension()];
    let gradient = unrolled.hamiltonian_gradient.clone();
    add_hamiltonian_field(&mut unrolled.graph, &mut field, &gradient, None, n);
    for (rate, &force) in field[n..].iter_mut().zip(&unrolled.force) {
        *rate = unrolled.graph.add(*rate, force);
    }
    field
}

/// Lets the work follow a field: Q·q̇ + H_t with the field's own q̇, of which H less the work is a
/// first integral wherever H is one without forces.
pub(super) fn account_for_work(model: &Model, unrolled: &mut Unrolled, field: &mut [Node]) {
    if let Some(work) = model.work() {
        field[work] = unrolled.power(&field[..model.degrees()]);
    }
}

/// Adds u X_f to a field, or X_f if `u` is `None`.
fn add_hamiltonian_field(
    g: &mut Graph,
    field: &mut [Node],
    gradient: &Gradient,
    u: Option<Node>,
    n: usize,
) {
    for &(i, d) in gradient {
        let i = i as usize;
        let amount = match u {
            Some(u) => g.mul(u, d),
            None => d,
        };
        if i < n {
            field[n + i] = g.sub(field[n + i], amount);
        } else {
            field[i - n] = g.add(field[i - n], amount);
        }
    }
}

/// The Dirac extension.
fn constrained_field(
    model: &Model,
    unrolled: &mut Unrolled,
    structure: &Structure,
) -> Result<Extension, Irregular> {
    let n = model.degrees();
    let constraints: Vec<Scalar> = unrolled.constraints.iter().flatten().cloned().collect();
    let free = unconstrained_field(model, unrolled);
    let gradients: Vec<&Gradient> = constraints
        .iter()
        .map(|s| &s.gradient)
        .chain(structure.hidden.iter().map(|h| &h.gradient))
        .collect();
    let nodes: Vec<Node> =
        constraints.iter().map(|s| s.node).chain(structure.hidden.iter().map(|h| h.node)).collect();
    // b_i = {H, f_i} − L_Q f_i − ∂_t f_i
    let b: Vec<Node> = nodes
        .iter()
        .zip(&gradients)
        .map(|(&f, gradient)| {
            let forced = unrolled.forced_rate(gradient);
            let g = &mut unrolled.graph;
            let bracket = g.poisson(&unrolled.hamiltonian_gradient, gradient, n);
            let explicit = g.time_derivative(f);
            let rest = g.sub(bracket, forced);
            g.sub(rest, explicit)
        })
        .collect();
    let g = &mut unrolled.graph;
    // C is antisymmetric, so X = X_H + Σ u_j X_{f_j} with C u = b.
    let factors = match structure.kind {
        ConstraintKind::Holonomic => factors_of_pairs(model, g, &constraints, &structure.hidden)?,
        _ => None,
    };
    let with = |g: &mut Graph, u: &[Node]| {
        let mut field = free.clone();
        for (gradient, &u) in gradients.iter().zip(u) {
            add_hamiltonian_field(g, &mut field, gradient, Some(u), n);
        }
        field
    };
    let Some(factors) = factors else {
        let mut u = multipliers(model, g, &gradients, &b)?;
        let field = with(g, &u);
        u.truncate(constraints.len());
        if structure.kind != ConstraintKind::Mixed {
            return Ok(Extension { field, underlying: None, multipliers: u });
        }
        let u = determined(g, (&gradients, &b), &structure.pivots, n);
        return Ok(Extension { field, underlying: Some(with(g, &u)), multipliers: u });
    };
    // A u_h = b_g, Aᵀ u_g = B u_h − b_h.
    let (of_constraints, of_hidden) = b.split_at(constraints.len());
    let u_h = factors.solve(g, of_constraints);
    let mut right = Vec::with_capacity(u_h.len());
    for (first, &b) in structure.hidden.iter().zip(of_hidden) {
        let mut sum = g.neg(b);
        for (second, &u) in structure.hidden.iter().zip(&u_h) {
            let bracket = g.poisson(&first.gradient, &second.gradient, n);
            let product = g.mul(bracket, u);
            sum = g.add(sum, product);
        }
        right.push(sum);
    }
    let mut u = factors.solve_transposed(g, &right);
    u.extend(u_h);
    let field = with(g, &u);
    // Because b_g = −h, u_h vanishes where h does.
    let right: Vec<Node> = of_hidden.iter().map(|&b| g.neg(b)).collect();
    let u = factors.solve_transposed(g, &right);
    Ok(Extension { field, underlying: Some(with(g, &u)), multipliers: u })
}

/// The field with rolling constraints, of which those on positions have hidden ones: free motion
/// with the forces −Gᵀλ − Aᵀμ for which the hidden constraints and the rolling ones keep their
/// values, S (λ, μ) = L_X (h, f) with S = (h, f)_p (Gᵀ, Aᵀ).
fn rolling_field(
    model: &Model,
    unrolled: &mut Unrolled,
    structure: &Structure,
) -> Result<Extension, Irregular> {
    let n = model.degrees();
    let free = unconstrained_field(model, unrolled);
    let count = model.constraints.len() - model.rollings.len();
    let (on_positions, rolling) = unrolled.constraints.split_at(count);
    let kept: Vec<(Node, &Gradient)> = structure
        .hidden
        .iter()
        .map(|hidden| (hidden.node, &hidden.gradient))
        .chain(rolling.iter().flatten().map(|scalar| (scalar.node, &scalar.gradient)))
        .collect();
    // Rows of G and A over the positions.
    let of_positions = on_positions.iter().flatten().map(|scalar| scalar.gradient.clone());
    let of_rolling =
        unrolled.rolling.iter().flatten().map(|row| (0..).zip(row.iter().copied()).collect());
    let directions: Vec<Gradient> = of_positions.chain(of_rolling).collect();
    let (m, g) = (kept.len(), &mut unrolled.graph);
    let mut s = Matrix::zeros(g, m);
    let mut rates = Vec::with_capacity(m);
    for (i, &(node, gradient)) in kept.iter().enumerate() {
        let mut rate = g.time_derivative(node);
        let mut of_momenta = vec![g.zero(); n];
        for &(k, d) in gradient {
            let product = g.mul(d, free[k as usize]);
            rate = g.add(rate, product);
            if let Some(k) = (k as usize).checked_sub(n) {
                of_momenta[k] = d;
            }
        }
        rates.push(rate);
        for (j, direction) in directions.iter().enumerate() {
            let products = direction.iter().map(|&(k, d)| g.mul(of_momenta[k as usize], d));
            let products: Vec<Node> = products.collect();
            let sum = g.sum(products);
            s.set(i, j, sum);
        }
    }
    let entries: Vec<Node> = (0..m * m).map(|k| s.get(k / m, k % m)).collect();
    let (values, _) = Probe::new(g, &entries, &[], model.dimension(), &model.parameter_values)
        .at(model.t0, &model.initial);
    let values = rank::equilibrated(&values, m, m);
    if rank::rank(&values, m, m, 1e-12) < m {
        let hint = "; the constraints may be redundant, or the kinetic energy may not determine the velocity along a constraint's normal";
        let rank = rank::rank(&values, m, m, 1e-12);
        return Err(Irregular::Singular { rank, size: m, hint });
    }
    let factors = Factors::general(g, &s);
    let multipliers = factors.solve(g, &rates);
    let mut field = free;
    for (direction, &multiplier) in directions.iter().zip(&multipliers) {
        for &(k, d) in direction {
            let force = g.mul(multiplier, d);
            field[n + k as usize] = g.sub(field[n + k as usize], force);
        }
    }
    Ok(Extension { field, underlying: None, multipliers })
}

/// Factors of A in C = [[0, A], [−Aᵀ, B]], A_ij = {g_i, h_j}, B_ij = {h_i, h_j}, for f = (g, h)
/// with {g, g} = 0; `None` if the elimination of A needs pivoting.
fn factors_of_pairs(
    model: &Model,
    g: &mut Graph,
    constraints: &[Scalar],
    hidden: &[Hidden],
) -> Result<Option<Factors>, Irregular> {
    let (n, m) = (model.degrees(), constraints.len());
    let mut a = Matrix::zeros(g, m);
    for i in 0..m {
        for j in 0..m {
            a.set(i, j, g.poisson(&constraints[i].gradient, &hidden[j].gradient, n));
        }
    }
    let mut symmetric = true;
    let entries: Vec<Node> = (0..m * m).map(|k| a.get(k / m, k % m)).collect();
    let gradients: Vec<&Gradient> =
        constraints.iter().map(|s| &s.gradient).chain(hidden.iter().map(|h| &h.gradient)).collect();
    let probe = Probe::new(g, &entries, &gradients, model.dimension(), &model.parameter_values);
    let mut regular_minors = true;
    for (k, x) in
        std::iter::once(model.initial.clone()).chain(ambient_points(model, 2, 0xd1ac)).enumerate()
    {
        let (mut values, rows) = probe.at(model.t0, &x);
        let size = |i: usize, j: usize| bracket_size(&rows[i], &rows[m + j], n);
        // Equal up to a few roundings of the terms that are added up.
        let equal = |i: usize, j: usize| {
            let difference = (values[i * m + j] - values[j * m + i]).abs();
            difference == 0.0 || difference <= 1e-12 * size(i, j).max(size(j, i))
        };
        symmetric &= (0..m).all(|i| (0..i).all(|j| equal(i, j)));
        if k == 0 {
            if m <= 300 {
                rank::drop_rounding(&mut values, size, m, 1e-12);
                values = rank::equilibrated(&values, m, m);
            }
            let rank = if m <= 300 { rank::rank(&values, m, m, 1e-12) } else { m };
            if rank < m {
                let hint = "; the constraints may be redundant, or the kinetic energy may not determine the velocity along a constraint's normal";
                return Err(Irregular::Singular { rank: 2 * rank, size: 2 * m, hint });
            }
            regular_minors = if symmetric {
                rank::positive_definite(&values, m)
            } else {
                has_regular_minors(&values, m)
            };
        }
    }
    if !regular_minors {
        return Ok(None);
    }
    Ok(Some(if symmetric { Factors::symmetric(g, &a) } else { Factors::general(g, &a) }))
}

/// True if elimination without pivoting meets only pivots of a fair size.
fn has_regular_minors(a: &[f64], n: usize) -> bool {
    let mut m = a.to_vec();
    for k in 0..n {
        let pivot = m[k * n + k];
        let row = m[k * n..(k + 1) * n].iter().fold(0.0f64, |s, v| s.max(v.abs()));
        if pivot.abs() < 1e-3 * row || pivot == 0.0 || pivot.is_nan() {
            return false;
        }
        for i in k + 1..n {
            let f = m[i * n + k] / pivot;
            for j in k..n {
                m[i * n + j] -= f * m[k * n + j];
            }
        }
    }
    true
}

/// Multipliers u with C u = b for any regular antisymmetric C.
fn multipliers(
    model: &Model,
    g: &mut Graph,
    gradients: &[&Gradient],
    b: &[Node],
) -> Result<Vec<Node>, Irregular> {
    let (n, m) = (model.degrees(), gradients.len());
    let mut c = Matrix::zeros(g, m);
    for i in 0..m {
        for j in 0..i {
            let bracket = g.poisson(gradients[i], gradients[j], n);
            let opposite = g.neg(bracket);
            c.set(i, j, bracket);
            c.set(j, i, opposite);
        }
    }
    let entries: Vec<Node> = (0..m * m).map(|k| c.get(k / m, k % m)).collect();
    let (mut values, rows) =
        Probe::new(g, &entries, gradients, model.dimension(), &model.parameter_values)
            .at(model.t0, &model.initial);
    rank::drop_rounding(&mut values, |i, j| bracket_size(&rows[i], &rows[j], n), m, 1e-10);
    let rank = rank::rank_in_any_units(&values, m, 1e-10);
    if rank < m {
        let hint =
            if m % 2 == 1 { "; an odd number of functions can never be second class" } else { "" };
        return Err(Irregular::Singular { rank, size: m, hint });
    }
    if m == 2 {
        // [[0, c], [−c, 0]] u = b
        let (first, second) = (c.get(0, 1), c.get(1, 0));
        return Ok(vec![g.div(b[1], second), g.div(b[0], first)]);
    }
    Ok(solved(g, &c, b))
}

/// Solution of C u = b for any regular C. A triangular C is eliminated; of any other, the normal
/// equations CᵀC u = Cᵀb need no pivoting, and one step of iterative refinement restores the digits
/// lost by squaring the condition number.
pub(super) fn solved(g: &mut Graph, c: &Matrix, b: &[Node]) -> Vec<Node> {
    if c.is_triangular(g) {
        return Factors::general(g, c).solve(g, b);
    }
    let normal = c.gram(g);
    let factors = Factors::symmetric(g, &normal);
    let right = c.transpose_times(g, b);
    let u = factors.solve(g, &right);
    let product = c.times(g, &u);
    let residual: Vec<Node> = b.iter().zip(product).map(|(&b, p)| g.sub(b, p)).collect();
    let right = c.transpose_times(g, &residual);
    let correction = factors.solve(g, &right);
    u.into_iter().zip(correction).map(|(u, d)| g.add(u, d)).collect()
}

/// Multipliers of the stated constraints on the set, from the rates `b` of the functions that
/// determine them: there those of hidden constraints vanish.
fn determined(
    g: &mut Graph,
    (gradients, b): (&[&Gradient], &[Node]),
    pivots: &[(usize, usize)],
    degrees: usize,
) -> Vec<Node> {
    let mut d = Matrix::zeros(g, pivots.len());
    for (i, &(row, _)) in pivots.iter().enumerate() {
        for (j, &(_, column)) in pivots.iter().enumerate() {
            d.set(i, j, g.poisson(gradients[row], gradients[column], degrees));
        }
    }
    let right: Vec<Node> = pivots.iter().map(|&(row, _)| b[row]).collect();
    let by_pivot = solved(g, &d, &right);
    let mut u = vec![g.zero(); pivots.len()];
    pivots.iter().zip(by_pivot).for_each(|(&(_, column), value)| u[column] = value);
    u
}

/// The field with F and DF.
fn with_invariants(
    model: &Model,
    mut unrolled: Unrolled,
    structure: &Structure,
    field: Vec<Node>,
) -> Field {
    let scalars = unrolled.constraints.iter().map(Vec::len).sum();
    let rows = InvariantRows::new(model, &structure.orders(scalars));
    let (mut invariants, mut jacobian) = (Vec::new(), Vec::new());
    let mut hidden = structure.hidden.iter();
    let of_scalar = |scalar: &Scalar| (scalar.node, scalar.gradient.clone());
    for (_, source) in &rows.sources {
        let scalars: Vec<(Node, Gradient)> = match source {
            InvariantSource::Monitored(functional, kept) => {
                let outputs = functional.unroll(&mut unrolled.graph);
                kept.iter().map(|&output| (outputs[output], Gradient::new())).collect()
            }
            InvariantSource::Constraint(k) => {
                unrolled.constraints[*k].iter().map(of_scalar).collect()
            }
            InvariantSource::Hidden(count) => {
                let of = hidden.by_ref().take(*count);
                of.map(|hidden| (hidden.node, hidden.gradient.clone())).collect()
            }
            InvariantSource::Energy(_) => {
                let gradient = &unrolled.hamiltonian_gradient;
                unrolled.hamiltonian.iter().map(|&h| (h, gradient.clone())).collect()
            }
            InvariantSource::Integral(k) => unrolled.integrals[*k].iter().map(of_scalar).collect(),
        };
        for (node, gradient) in scalars {
            invariants.push(node);
            jacobian.push(gradient);
        }
    }
    debug_assert_eq!(invariants.len(), rows.count, "each row has one formula");
    Field {
        graph: unrolled.graph,
        dimension: model.dimension(),
        parameters: model.parameter_values.len(),
        field,
        underlying: None,
        velocities: unrolled.velocities,
        multipliers: Vec::new(),
        invariants,
        jacobian,
        constraints: rows.constraints,
        groups: rows.groups,
        watched: Vec::new(),
        surfaces: Vec::new(),
    }
}
