//! Rows of F = (constraints, hidden constraints, H, integrals): which quantities of a model they are,
//! in which order. For a penalised model they are the monitored quantities, H_ω, integrals.

use super::penalty::MonitoredQuantity;
use super::{InvariantGroup, InvariantKind};
use crate::elaborate::model::{Dynamics, Model};
use crate::functional::Functional;

/// Rows of F, as they follow each other.
pub(crate) struct InvariantRows<'a> {
    /// First row of each group, with the formulas of its rows.
    pub sources: Vec<(usize, InvariantSource<'a>)>,
    /// Meaning of the rows.
    pub groups: Vec<InvariantGroup>,
    /// Number of all rows.
    pub count: usize,
}

/// Formulas of the rows of a group.
pub(crate) enum InvariantSource<'a> {
    /// Some outputs of a functional, which are not held.
    Monitored(&'a Functional, Vec<usize>),
    /// Constraint of this number.
    Constraint(usize),
    /// Hidden constraint of the constraint of this number.
    Hidden(usize),
    /// H.
    Energy(&'a Functional),
    /// Integral of this number.
    Integral(usize),
}

impl<'a> InvariantRows<'a> {
    /// Rows of F of `model`, whose constraints may have hidden constraints.
    pub fn new(model: &'a Model, has_hidden: bool) -> InvariantRows<'a> {
        let mut rows = InvariantRows { sources: Vec::new(), groups: Vec::new(), count: 0 };
        let monitored = model.penalty.iter().flat_map(|penalty| penalty.monitored());
        for MonitoredQuantity { group, functional, kept } in monitored {
            rows.push(group, InvariantSource::Monitored(functional, kept));
        }
        for (k, quantity) in model.constraints.iter().enumerate() {
            let group = InvariantGroup::of(quantity, InvariantKind::Constraint);
            rows.push(group, InvariantSource::Constraint(k));
        }
        for (k, quantity) in model.constraints.iter().enumerate().filter(|_| has_hidden) {
            let group = InvariantGroup::of(quantity, InvariantKind::Hidden);
            rows.push(group, InvariantSource::Hidden(k));
        }
        if let Dynamics::Hamiltonian(functional, _) = &model.dynamics
            && model.conserves_energy()
        {
            let (name, kind) = model.energy();
            rows.push(InvariantGroup::of_number(name, kind), InvariantSource::Energy(functional));
        }
        for (k, quantity) in model.integrals.iter().enumerate() {
            let group = InvariantGroup::of(quantity, InvariantKind::Integral);
            rows.push(group, InvariantSource::Integral(k));
        }
        rows
    }

    fn push(&mut self, group: InvariantGroup, source: InvariantSource<'a>) {
        let first = self.count;
        self.count += group.members.row_count();
        self.groups.push(group.moved(first));
        self.sources.push((first, source));
    }

    /// Number of rows that are constraints or hidden constraints.
    pub fn constraints(&self) -> usize {
        let is_constraint = |group: &&InvariantGroup| {
            matches!(group.kind, InvariantKind::Constraint | InvariantKind::Hidden)
        };
        self.groups.iter().filter(is_constraint).map(|group| group.members.row_count()).sum()
    }
}
