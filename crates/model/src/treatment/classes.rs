//! Class of a model's constraints: those of the usual classes at once, any other by Dirac's
//! algorithm.

use super::brackets::{ROUNDING, brackets, hidden, tangency};
use super::generations;
use super::structure::{
    ConstraintKind, Hidden, Irregular, Probe, Structure, ambient_points, onto_set,
};
use super::unrolled::{Scalar, Unrolled};
use crate::elaborate::model::Model;
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::scales::{Scales, in_units};
use holonome_linear::gram::{Gram, Row};
use holonome_linear::rank;

/// Largest number of scalar constraints whose brackets are examined for rank: of more on positions,
/// the pairs with their hidden constraints count as regular.
const MOST_RANKED: usize = 300;

/// Determines the structure of a model's constraints.
///
/// # Errors
/// If they determine no motion; see [`Irregular`].
pub fn structure(model: &Model, unrolled: &mut Unrolled) -> Result<Structure, Irregular> {
    let n = model.degrees();
    let all: Vec<Scalar> = unrolled.constraints.iter().flatten().cloned().collect();
    if all.is_empty() || !model.is_hamiltonian() {
        return Ok(Structure::new(ConstraintKind::Free, Vec::new()));
    }
    if !model.rollings.is_empty() {
        return nonholonomic(model, unrolled);
    }
    let holonomic = all.iter().all(|s| s.gradient.iter().all(|&(i, _)| (i as usize) < n));
    let kind = match holonomic {
        true => ConstraintKind::Holonomic,
        false => phase_space_kind(model, unrolled, &all),
    };
    match kind {
        ConstraintKind::SecondClass => return Ok(Structure::new(kind, Vec::new())),
        ConstraintKind::Mixed => return generations::structure(model, unrolled, &all),
        _ => {}
    }
    let mut hidden = rates(unrolled, &all, n);
    if holonomic {
        for k in degenerate(model, unrolled, &all, &hidden) {
            hidden[k] = tangency(unrolled, k, &all[k].gradient);
        }
    }
    match pairs_are_regular(model, unrolled, &all, &hidden) {
        true => Ok(Structure::new(kind, hidden)),
        false => generations::structure(model, unrolled, &all),
    }
}

/// Hidden constraints of first order.
fn rates(unrolled: &mut Unrolled, all: &[Scalar], n: usize) -> Vec<Hidden> {
    all.iter().enumerate().map(|(k, s)| hidden(unrolled, s, k, n)).collect()
}

/// Structure of rolling constraints beside those on positions.
fn nonholonomic(model: &Model, unrolled: &mut Unrolled) -> Result<Structure, Irregular> {
    let n = model.degrees();
    let count = model.constraints.len() - model.rollings.len();
    for (quantity, scalars) in model.constraints.iter().zip(&unrolled.constraints[..count]) {
        let on_momenta = |s: &Scalar| s.gradient.iter().any(|&(i, _)| i as usize >= n);
        if scalars.iter().any(on_momenta) {
            return Err(Irregular::RollingBesideMomenta { name: quantity.name.clone() });
        }
    }
    let positions: Vec<Scalar> = unrolled.constraints[..count].iter().flatten().cloned().collect();
    Ok(Structure::new(ConstraintKind::Nonholonomic, rates(unrolled, &positions, n)))
}

/// True if each constraint is second class with the hidden ones: these determine all multipliers at
/// the start. Also true where gradients of constraints depend on each other, which is another
/// mistake.
fn pairs_are_regular(
    model: &Model,
    unrolled: &Unrolled,
    all: &[Scalar],
    hidden: &[Hidden],
) -> bool {
    let (n, m) = (model.degrees(), all.len());
    if m > MOST_RANKED {
        return true;
    }
    let gradients: Vec<&Gradient> =
        all.iter().map(|s| &s.gradient).chain(hidden.iter().map(|h| &h.gradient)).collect();
    let rows =
        Probe::new(&unrolled.graph, &[], &gradients, model.dimension(), &model.parameter_values)
            .at(model.t0, &model.initial)
            .1;
    let (of_constraints, of_hidden) = rows.split_at(m);
    let pairs = brackets(of_constraints, of_hidden, n, 1e-12);
    let units = Scales::new(model).units(&model.initial);
    let symmetric = || {
        let equal = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
        (0..m).all(|i| (0..i).all(|j| equal(pairs[i * m + j], pairs[j * m + i])))
    };
    symmetric() && rank::positive_definite(&pairs, m)
        || rank::rank_in_any_units(&pairs, m, 1e-12) == m
        || !Gram::in_order(&in_units(of_constraints, &units)).dependent().is_empty()
}

/// Numbers of the constraints whose hidden constraint vanishes identically: at random ambient
/// points it is below the rounding error of its own terms.
fn degenerate(
    model: &Model,
    unrolled: &mut Unrolled,
    all: &[Scalar],
    hidden: &[Hidden],
) -> Vec<usize> {
    let n = model.degrees() as u32;
    let nodes: Vec<Node> = hidden.iter().map(|h| h.node).collect();
    let gradients: Vec<&Gradient> =
        all.iter().map(|s| &s.gradient).chain([&unrolled.hamiltonian_gradient]).collect();
    let mut vanishes = vec![true; all.len()];
    let probe =
        Probe::new(&unrolled.graph, &nodes, &gradients, model.dimension(), &model.parameter_values);
    for x in ambient_points(model, 4, 0x51de) {
        let (values, rows) = probe.at(0.3, &x);
        let (h_row, g_rows) = rows.split_last().expect("H is last");
        for (k, value) in values.iter().enumerate() {
            // Σ |G_i| |∂H/∂p_i|: the scale of the terms that would have to cancel.
            let size: f64 = g_rows[k]
                .iter()
                .map(|&(i, d)| {
                    d.abs()
                        * h_row
                            .binary_search_by_key(&(i + n), |&(j, _)| j)
                            .map_or(0.0, |at| h_row[at].1.abs())
                })
                .sum();
            if value.abs() > 1e-12 * size || !value.is_finite() {
                vanishes[k] = false;
            }
        }
    }
    (0..all.len()).filter(|&k| vanishes[k]).collect()
}

/// Kind of phase-space constraints: second class among themselves, coisotropic, or any other.
fn phase_space_kind(model: &Model, unrolled: &Unrolled, all: &[Scalar]) -> ConstraintKind {
    let (n, m) = (model.degrees(), all.len());
    let nodes: Vec<Node> = all.iter().map(|s| s.node).collect();
    let gradients: Vec<&Gradient> = all.iter().map(|s| &s.gradient).collect();
    let probe =
        Probe::new(&unrolled.graph, &nodes, &gradients, model.dimension(), &model.parameter_values);
    let units = Scales::new(model).units(&model.initial);
    let mut points = vec![model.initial.clone()];
    for start in ambient_points(model, 4, 0xc0de) {
        points.extend(onto_set(&probe, model.t0, &start, &units));
    }
    let (mut all_zero, mut regular) = (true, true);
    for x in &points {
        let rows: Vec<Row> = probe.at(model.t0, x).1;
        let c = brackets(&rows, &rows, n, ROUNDING);
        all_zero &= c.iter().all(|v| *v == 0.0);
        regular &= rank::rank_in_any_units(&c, m, ROUNDING) == m;
    }
    match (all_zero, regular) {
        (true, _) => ConstraintKind::Coisotropic,
        (_, true) => ConstraintKind::SecondClass,
        _ => ConstraintKind::Mixed,
    }
}
