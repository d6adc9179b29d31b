//! Continuous treatments: functions from models to fields, derived once and shared by every scheme.
//!
//! [`unrolled`] makes one graph of a model; [`dirac`] turns a constrained Hamiltonian into a field
//! whose constraints, hidden constraints and energy are first integrals in the whole ambient space;
//! [`feedback`] makes their common level set attract; [`penalty`] turns constraints into a
//! potential; [`heat_bath`] adds friction and noise to momenta.

pub mod brackets;
pub mod classes;
pub mod correction;
pub mod dirac;
pub mod feedback;
pub mod following_nodes;
mod generations;
pub mod heat_bath;
pub mod integrability;
pub(crate) mod invariants;
mod join;
mod least_norm;
pub mod mechanics;
pub mod penalty;
pub mod reversal;
pub mod structure;
pub mod switching;
pub mod unrolled;

pub use crate::elaborate::model::InvariantKind;
use crate::elaborate::model::{Model, Quantity};
use crate::graph::calculus::Gradient;
use crate::graph::{Graph, Input, Node};
use holonome_linear::member_rows::MemberRows;

/// A named invariant. The components of its members follow each other in [`Field::invariants`].
#[derive(Clone, Debug)]
pub struct InvariantGroup {
    /// The user's name; for a hidden constraint, that of its constraint.
    pub name: String,
    /// Kind of the invariant.
    pub kind: InvariantKind,
    /// Components of each member: (row of F, number of entries of the user's quantity that it
    /// stands for).
    pub members: MemberRows,
    /// True if it is monitored and not held: its rows of DF are empty.
    pub monitored_only: bool,
}

impl InvariantGroup {
    /// The components of a quantity, each a row, counted from 0.
    pub(crate) fn of(quantity: &Quantity, kind: InvariantKind) -> InvariantGroup {
        let width = quantity.components.len();
        let member = |member: usize| {
            let components = quantity.components.iter().enumerate();
            components.map(move |(k, component)| (member * width + k, component.multiplicity))
        };
        let members = (0..quantity.members).map(member).collect();
        InvariantGroup { name: quantity.name.clone(), kind, members, monitored_only: false }
    }

    /// Those components of a quantity for which `exist` is true, each a row, counted from 0.
    pub(crate) fn of_some(
        quantity: &Quantity,
        kind: InvariantKind,
        exist: &[bool],
    ) -> InvariantGroup {
        if !exist.contains(&false) {
            return InvariantGroup::of(quantity, kind);
        }
        let mut rows = 0..;
        let member = |exist: &[bool]| -> Vec<(usize, f64)> {
            let existing = exist.iter().zip(&quantity.components).filter(|(exists, _)| **exists);
            existing.zip(&mut rows).map(|((_, part), row)| (row, part.multiplicity)).collect()
        };
        let members = exist.chunks(quantity.components.len()).map(member).collect();
        InvariantGroup { members, ..InvariantGroup::of_number(&quantity.name, kind) }
    }

    /// One number, in row 0.
    pub(crate) fn of_number(name: &str, kind: InvariantKind) -> InvariantGroup {
        let members = [[(0, 1.0)]].into_iter().collect();
        InvariantGroup { name: name.to_string(), kind, members, monitored_only: false }
    }

    /// The group with its rows counted from `first` in place of 0.
    pub(crate) fn moved(mut self, first: usize) -> InvariantGroup {
        self.members = self.members.moved(first);
        self
    }
}

/// A vector field with the quantities known to stay constant along it.
#[derive(Clone, Debug)]
pub struct Field {
    /// Graph of all nodes below.
    pub graph: Graph,
    /// Length of the state.
    pub dimension: usize,
    /// Number of parameters of the tapes: the model's, then those of treatments.
    pub parameters: usize,
    /// X(x, t).
    pub field: Vec<Node>,
    /// X on the set where the constraints and hidden constraints vanish, in fewer operations, if
    /// that is known: the underlying field of index reduction (HLW VII.1.1), of which constraints
    /// are not first integrals elsewhere.
    pub underlying: Option<Vec<Node>>,
    /// Velocities H_p of the positions; empty for a state model.
    pub velocities: Vec<Node>,
    /// Multipliers λ on the constraint set, one for each entry of each constraint; empty if there
    /// are no constraints, or only those of a state model.
    pub multipliers: Vec<Node>,
    /// F: constraints and hidden constraints first.
    pub invariants: Vec<Node>,
    /// DF by rows.
    pub jacobian: Vec<Gradient>,
    /// Number of rows of F that are constraints or hidden constraints: their target is 0.
    pub constraints: usize,
    /// Meaning of the rows.
    pub groups: Vec<InvariantGroup>,
    /// Functions of events, and then those of switching surfaces, that loops of steps watch.
    pub watched: Vec<Watched>,
    /// Functions that vanish on the switching surfaces whose sides parameters decide.
    pub surfaces: Vec<Node>,
}

/// Function of an event along the motion.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Its value.
    pub value: Node,
    /// Its rate.
    pub rate: Node,
}

/// Name of a hidden constraint of some order of the constraint `name`: `rod.hidden`, `rod.hidden2`;
/// of order 0 `rod` itself.
pub fn hidden_name(name: &str, order: u32) -> String {
    match order {
        0 => name.to_string(),
        1 => format!("{name}.hidden"),
        _ => format!("{name}.hidden{order}"),
    }
}

/// Marks the claimed groups with these names as monitored; calls `clear` with their rows.
pub(crate) fn monitor_only(
    groups: &mut [InvariantGroup],
    names: &[String],
    clear: &mut dyn FnMut(usize),
) {
    let claimed = |kind| matches!(kind, InvariantKind::Constraint | InvariantKind::Integral);
    for group in
        groups.iter_mut().filter(|group| claimed(group.kind) && names.contains(&group.name))
    {
        group.monitored_only = true;
        group.members.rows().for_each(|(row, _)| clear(row));
    }
}

impl Field {
    /// No longer holds the claimed invariants with these names: they are monitored only.
    pub fn monitor_only(&mut self, names: &[String]) {
        let Field { groups, jacobian, .. } = self;
        monitor_only(groups, names, &mut |row| jacobian[row].clear());
    }

    /// The underlying field, for steps that all begin on the constraint set; `None` if it is not
    /// known.
    pub fn from_the_set(&self) -> Option<Field> {
        let field = self.underlying.clone()?;
        Some(Field { field, underlying: None, ..self.clone() })
    }

    /// Velocities along the motion: H_p, and what constraints on momenta add to it.
    pub fn velocities_along(&self, model: &Model) -> Vec<Node> {
        match model.has_constraints_on_momenta() {
            true => self.underlying.as_ref().unwrap_or(&self.field)[..model.degrees()].to_vec(),
            false => self.velocities.clone(),
        }
    }

    /// Accelerations of the positions on the constraint set, with these velocities there.
    pub fn accelerations(&mut self, velocities: &[Node]) -> Vec<Node> {
        let graph = &mut self.graph;
        let field = self.underlying.as_ref().unwrap_or(&self.field);
        let along = graph.tangent(velocities, |_, input| match input {
            Input::State(i) => Some(field[i as usize]),
            _ => None,
        });
        let sum = |(&v, along)| {
            let explicit = graph.time_derivative(v);
            graph.add(along, explicit)
        };
        velocities.iter().zip(along).map(sum).collect()
    }

    /// DX(x)·v as nodes that read v from the state components after x.
    pub fn directional_derivative(&mut self) -> Vec<Node> {
        let n = self.dimension;
        let field = self.field.clone();
        self.graph.tangent(&field, |g, input| match input {
            Input::State(i) => Some(g.state(n + i as usize)),
            _ => None,
        })
    }
}
