//! Tables and lines with which runs and sweeps close.

use crate::table::{columns, count};
use holonome::model::treatment::InvariantKind;
use holonome::summary::{Drift, RunCost, UnitLabels, drift_rows};
use std::path::Path;

/// Sort key of an invariant: energies first, the rest as in the model.
pub fn energies_first(kind: InvariantKind) -> usize {
    match kind {
        InvariantKind::Hamiltonian => 0,
        InvariantKind::Penalised => 1,
        InvariantKind::ModifiedEnergy => 2,
        _ => 3,
    }
}

/// Largest number of members of a family of integrals whose values at the start are shown.
const MOST_SHOWN: usize = 16;

/// Table of the drift of every invariant, a line each.
pub fn drift_table(drift: &[Drift], heated: bool, units: &UnitLabels) -> String {
    if drift.is_empty() && heated {
        return "  nothing is kept in a heat bath: look at averages\n".to_string();
    }
    if drift.is_empty() {
        return "  no invariants are known of this model; state some with `integral`, or let\n  `holonome integrals` search them\n"
            .to_string();
    }
    let mut drift: Vec<_> =
        drift.iter().map(|d| (d.label_with_unit("Hamiltonian H", units), d)).collect();
    drift.sort_by_key(|(_, d)| energies_first(d.kind));
    columns(&drift_rows("", &drift, MOST_SHOWN))
}

/// Line on the cost of a run or an ensemble.
pub fn cost_line(cost: &RunCost) -> String {
    let mut parts = Vec::new();
    let [field, gradient, hessian, solves, iterations, rejected] = cost.counts();
    for (key, what, n) in [field, gradient, hessian, rejected, solves, iterations] {
        // Structure-preserving methods evaluate forces, others the field.
        if n > 0 || key == "field" && cost.gradient == 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    if cost.handed_over > 0 {
        parts.push(format!("{} steps handed over to gauss16", count(cost.handed_over)));
    }
    format!("  cost: {}, {:.3} s\n", parts.join(", "), cost.wall_seconds)
}

/// Line on the folder of a run, and on the quantities that have other names there.
pub fn stored_in(out: Option<&Path>, renamed: &[(String, String)]) -> String {
    let Some(out) = out else { return String::new() };
    let names: String =
        renamed.iter().map(|(name, stored)| format!(", {name} as {stored}")).collect();
    format!("  stored in {}{names}\n", out.display())
}
