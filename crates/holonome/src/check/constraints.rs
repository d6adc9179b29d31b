//! Classes of the constraints, their hidden ones, and the dimension that they leave.

use super::rows::{ClassRow, ConstraintRole, ConstraintRow};
use crate::gain::is_imposed;
use holonome_model::elaborate::expression::{MOMENTUM, TIME};
use holonome_model::elaborate::model::{Model, Quantity, Rolling};
use holonome_model::treatment::brackets::partners;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::integrability::integrability;
use holonome_model::treatment::structure::{ConstraintKind, Structure};
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind};

/// Number of degrees of freedom, of a field the dimension of its manifold.
pub(super) fn degrees_of_freedom(
    model: &Model,
    structure: Option<&Structure>,
    regular: bool,
) -> Option<usize> {
    let scalars: usize = model.constraints.iter().map(|c| c.members * c.components.len()).sum();
    if !regular {
        return None;
    }
    if !model.is_hamiltonian() {
        return model.dimension().checked_sub(scalars);
    }
    if model.constraints.is_empty() {
        return Some(model.degrees());
    }
    match structure?.kind {
        ConstraintKind::Free => Some(model.degrees()),
        // Positions move in all directions that rolling leaves.
        ConstraintKind::Nonholonomic => model.degrees().checked_sub(scalars),
        ConstraintKind::Holonomic | ConstraintKind::Coisotropic => {
            model.degrees().checked_sub(scalars)
        }
        ConstraintKind::SecondClass | ConstraintKind::Mixed => {
            let all = scalars + structure?.hidden.len();
            (2 * model.degrees()).checked_sub(all).map(|d| d / 2)
        }
    }
}

/// Dimension of the set that the constraints leave.
pub(super) fn dimension_left(
    model: &Model,
    structure: Option<&Structure>,
    degrees_of_freedom: Option<usize>,
) -> Option<usize> {
    if model.constraints.is_empty() {
        return None;
    }
    match structure.map(|structure| structure.kind) {
        _ if !model.is_hamiltonian() => degrees_of_freedom,
        // Positions that rolling leaves out of reach for an instant are reached later.
        Some(ConstraintKind::Nonholonomic) => {
            let rolling = |of: &Rolling| model.constraints[of.constraint].scalars();
            Some(2 * degrees_of_freedom? + model.rollings.iter().map(rolling).sum::<usize>())
        }
        _ => Some(2 * degrees_of_freedom?),
    }
}

/// Rows of the constraints, with their classes if the field is known.
pub(super) fn constraint_rows(
    model: &Model,
    derived: Option<(&Field, &Structure)>,
) -> Vec<ConstraintRow> {
    let structure = derived.map(|(_, structure)| structure);
    let classes = derived.map_or(Vec::new(), |(field, structure)| classes(model, field, structure));
    let integrable = derived.and_then(|(field, _)| integrability(model, field));
    let stated = model.imposed_constraints();
    // For each stated constraint, the number of its imposed equations and one of their hidden ones.
    let mut imposed = vec![(0, None); stated.len()];
    let mut first = 0;
    for (k, part) in model.constraints.iter().enumerate() {
        let of = model.redundancy.as_ref().map_or(k, |redundancy| redundancy.parts[k].0);
        let scalars = first..first + part.scalars();
        first = scalars.end;
        let hidden = structure
            .and_then(|s| s.hidden.iter().rfind(|h| scalars.contains(&h.of) && h.order == 1));
        imposed[of] = (imposed[of].0 + part.scalars(), hidden.or(imposed[of].1));
    }
    let rolls = |c: &Quantity| {
        let of = model.redundancy.as_ref();
        of.is_some_and(|of| {
            of.stated.iter().zip(&of.rolls).any(|(s, rolls)| *rolls && s.name == c.name)
        })
    };
    stated
        .iter()
        .zip(imposed)
        .map(|(c, (held, own))| {
            let holonomic = c.depends & MOMENTUM == 0;
            let classes: Vec<ClassRow> = classes
                .iter()
                .filter(|(of, _)| *of == c.name)
                .map(|(_, row)| row.clone())
                .collect();
            let class = match structure.map(|s| s.kind) {
                Some(ConstraintKind::SecondClass | ConstraintKind::Mixed) => "second class",
                Some(ConstraintKind::Coisotropic) => {
                    "coisotropic, second class with its hidden constraint"
                }
                Some(ConstraintKind::Holonomic) => "second class with its hidden constraint",
                _ => "",
            };
            let formula = own.map(|h| match (h.tangency, holonomic, c.depends & TIME != 0) {
                (true, ..) => "G p = 0",
                (false, true, false) => "G H_p = 0",
                (false, true, true) => "G H_p + g_t = 0",
                (false, false, _) => "{g, H} = 0",
            });
            let rolling = model
                .rollings
                .iter()
                .position(|of| model.constraints[of.constraint].name == c.name);
            let kind = match (model.is_hamiltonian(), holonomic) {
                _ if rolling.is_some() || rolls(c) => ConstraintRole::Rolling,
                (false, _) => ConstraintRole::Manifold,
                (true, true) => ConstraintRole::Holonomic,
                (true, false) => ConstraintRole::PhaseSpace,
            };
            ConstraintRow {
                name: c.name.clone(),
                members: c.members,
                scalars: c.scalars(),
                redundant: c.scalars() - held,
                kind,
                rheonomic: c.depends & TIME != 0,
                integrable: integrable.as_ref().zip(rolling).map(|(of, k)| of.alone[k]),
                class,
                hidden: formula,
                classes,
            }
        })
        .collect()
}

/// Names of constraints with a row for each of them and of their hidden ones, by order: with which
/// others they are second class. Empty if that is said by the kind of all constraints.
fn classes(model: &Model, field: &Field, structure: &Structure) -> Vec<(String, ClassRow)> {
    if !matches!(structure.kind, ConstraintKind::SecondClass | ConstraintKind::Mixed) {
        return Vec::new();
    }
    let label = |group: &InvariantGroup| gain_name(&group.name, group.kind);
    let mut labels = vec![String::new(); field.constraints];
    let groups = || field.groups.iter().filter(|group| is_imposed(group.kind));
    let held = |group: &InvariantGroup| {
        group.members.rows().map(|(row, _)| row).filter(|&row| row < field.constraints).collect()
    };
    for group in groups() {
        let rows: Vec<usize> = held(group);
        rows.iter().for_each(|&row| labels[row] = label(group));
    }
    let partners = partners(model, field);
    let row = |group: &InvariantGroup| {
        let rows: Vec<usize> = held(group);
        let of = rows.iter().filter_map(|&row| partners.get(row).map(|&with| labels[with].clone()));
        let with = of.collect::<std::collections::BTreeSet<String>>().into_iter().collect();
        let order = match group.kind {
            InvariantKind::Hidden(order) => order,
            _ => 0,
        };
        (group.name.clone(), ClassRow { name: label(group), order, scalars: rows.len(), with })
    };
    groups().map(row).collect()
}
