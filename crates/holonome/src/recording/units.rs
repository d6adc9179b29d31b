//! Labels of units by the names of a run's arrays.

use super::stored_name;
use holonome_model::elaborate::model::{ENERGY_BALANCE, Model, Quantity};
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use holonome_model::units::Labels;
use indexmap::IndexMap;

/// Name of the time among the labels.
pub const TIME: &str = "t";

/// Labels of units by the names of arrays, without those that are not known.
pub type UnitLabels = IndexMap<String, String>;

/// Labels of everything that a run of a model with these `groups` of invariants tells: `t`, the
/// variables, H, integrals, observables, multipliers, and under `drift.NAME` and `residual.NAME`
/// the deviations. Empty if the model names no units.
pub fn unit_labels(model: &Model, groups: &[InvariantGroup]) -> UnitLabels {
    let mut all = UnitLabels::new();
    let Some(labels) = Labels::new(model) else { return all };
    let mut add = |name: String, label: Option<String>| {
        // Of two quantities of one name the first keeps it.
        if let Some(label) = label.filter(|_| !all.contains_key(&name)) {
            all.insert(name, label);
        }
    };
    add(TIME.to_string(), Some(labels.time().to_string()));
    for variable in model.phase_variables() {
        add(variable.family.name.clone(), labels.variable(variable));
    }
    add("H".to_string(), labels.energy());
    if model.penalty.is_some() {
        add("H_penalised".to_string(), labels.energy());
    }
    let of_integral = |integral: &Quantity| match integral.name == ENERGY_BALANCE {
        true => labels.energy(),
        false => labels.quantity(integral),
    };
    for integral in &model.integrals {
        add(stored_name(&integral.name, InvariantKind::Integral), of_integral(integral));
    }
    for observable in &model.observables {
        add(observable.name.clone(), labels.quantity(observable));
    }
    for constraint in model.stated_constraints() {
        add(format!("lambda.{}", constraint.name), labels.multiplier(constraint));
    }
    for group in groups {
        let constraint = || model.stated_constraints().iter().find(|c| c.name == group.name);
        let residual = |order| labels.residual(constraint()?, order);
        let integral = || model.integrals.iter().find(|integral| integral.name == group.name);
        let label = match group.kind {
            InvariantKind::Constraint => residual(0),
            InvariantKind::Hidden(order) => residual(order),
            InvariantKind::Integral => integral().and_then(of_integral),
            _ => labels.energy(),
        };
        add(deviation(&group.name, group.kind), label);
    }
    all
}

/// Name of the array of an invariant's deviations.
pub(crate) fn deviation(name: &str, kind: InvariantKind) -> String {
    let of = stored_name(name, kind);
    match kind {
        InvariantKind::Constraint | InvariantKind::Hidden(_) => format!("residual.{of}"),
        _ => format!("drift.{of}"),
    }
}
