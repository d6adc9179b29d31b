//! Integrals that a method can hold, and whether these are all actions of the motion.

use crate::problem::Problem;
use holonome_linear::gram::{Gram, Row, dot};
use holonome_linear::rank;
use holonome_model::elaborate::model::Model;
use holonome_model::scales::{Scales, in_units};
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::structure::{Probe, points_on_set};
use holonome_model::treatment::{Field, InvariantGroup};

/// Integrals that are held on the constraint set, at a random point of it.
#[derive(Clone, Copy)]
pub(super) struct HeldIntegrals {
    /// Number of independent ones.
    pub independent: usize,
    /// Rank of their brackets, which are Dirac brackets if there are constraints; 0 for a field,
    /// which has none.
    pub brackets: usize,
}

impl HeldIntegrals {
    /// Integrals of an unrolled problem that are held: all but claims that vary.
    pub fn of(problem: &Problem) -> Option<HeldIntegrals> {
        let mut field = Field::clone(&problem.examined.field.as_ref()?.0);
        field.monitor_only(&problem.examined.varying);
        HeldIntegrals::new(&problem.model, &field)
    }

    /// The ranks at random points of the set; `None` if there are too many rows.
    fn new(model: &Model, field: &Field) -> Option<HeldIntegrals> {
        const MOST_ROWS: usize = 300;
        let monitored: Vec<usize> = field
            .groups
            .iter()
            .filter(|g| g.monitored_only)
            .flat_map(|g| g.members.rows())
            .map(|(row, _)| row)
            .collect();
        let is_held = |row: &usize| !monitored.contains(row) && !field.jacobian[*row].is_empty();
        let rows: Vec<usize> = (0..field.invariants.len()).filter(is_held).collect();
        if rows.len() > MOST_ROWS {
            return None;
        }
        let constraints = rows.iter().filter(|&&row| row < field.constraints).count();
        let gradients: Vec<_> = rows.iter().map(|&row| &field.jacobian[row]).collect();
        let probe =
            Probe::new(&field.graph, &[], &gradients, field.dimension, &model.parameter_values);
        let scales = Scales::new(model);
        let points = points_on_set(model, field, 5, 0xb7ac);
        let random = if points.len() > 1 { &points[1..] } else { &points };
        let at = |x: &Vec<f64>| {
            let df = probe.at(0.0, x).1;
            let gram = Gram::new(&in_units(&df, &scales.units(x)), 0.0);
            let brackets = if model.is_hamiltonian() {
                rank_of_brackets(&df, model.degrees())
            } else {
                constraints
            };
            // {F, F} = (C, B; −Bᵀ, D) with regular C of the constraints: its Schur complement has
            // the Dirac brackets.
            HeldIntegrals {
                independent: (rows.len() - gram.dependent().len()).saturating_sub(constraints),
                brackets: brackets.saturating_sub(constraints),
            }
        };
        // Ranks fall at special points only.
        random.iter().map(at).max_by_key(|held| (held.independent, held.brackets))
    }

    /// True if errors grow like T when these integrals are held: the motion is then conditionally
    /// periodic, with frequencies that are functions of them (Mishchenko, Fomenko 1978; n commuting
    /// ones are Liouville's case).
    pub fn all_actions(&self, degrees: usize) -> bool {
        2 * self.independent >= 2 * degrees + self.brackets
    }
}

/// Rank of the Poisson brackets of functions with these gradients.
fn rank_of_brackets(gradients: &[Row], degrees: usize) -> usize {
    // Brackets that vanish on the set are computed there only as precisely as the points lie on it.
    const ROUNDING: f64 = 1e-9;
    let (n, m) = (degrees as u32, gradients.len());
    let conjugate = |row: &Row| -> Row {
        let (q, p) = row.split_at(row.partition_point(|&(i, _)| i < n));
        let (q, p) = (q.iter().map(|&(i, d)| (i + n, -d)), p.iter().map(|&(i, d)| (i - n, d)));
        p.chain(q).collect()
    };
    let conjugates: Vec<Row> = gradients.iter().map(conjugate).collect();
    let mut brackets: Vec<f64> =
        (0..m * m).map(|k| dot(&gradients[k / m], &conjugates[k % m])).collect();
    let size = |row: &Row| -> Row { row.iter().map(|&(i, d)| (i, d.abs())).collect() };
    let (left, right): (Vec<Row>, Vec<Row>) =
        gradients.iter().map(size).zip(conjugates.iter().map(size)).unzip();
    rank::drop_rounding(&mut brackets, |i, j| dot(&left[i], &right[j]), m, ROUNDING);
    rank::rank_in_any_units(&brackets, m, ROUNDING)
}

/// Groups of a model's invariants, from whichever form its field has.
pub(super) fn groups(problem: &Problem) -> &[InvariantGroup] {
    match (&problem.examined.field, &problem.examined.rows) {
        (Some((field, _)), _) => &field.groups,
        (None, Some(field)) => &field.groups,
        (None, None) => &[],
    }
}

/// Groups of what the motion keeps: all but claims that vary.
pub(super) fn kept_groups(problem: &Problem) -> impl Iterator<Item = &InvariantGroup> {
    groups(problem).iter().filter(|g| !problem.examined.varying.contains(&g.name))
}

/// The explicit method that suits a model best, with the names of the integrals that it holds.
pub(super) fn explicit(problem: &Problem) -> (&'static str, Vec<String>) {
    let held: Vec<String> = kept_groups(problem)
        .filter(|g| !g.monitored_only)
        .map(|g| gain_name(&g.name, g.kind))
        .collect();
    (if held.is_empty() { "plain:dop853" } else { "corrected:dop853" }, held)
}
