//! Rows of F = (constraints, hidden constraints, H, integrals): which quantities of a model they are,
//! in which order. For a penalised model they are the monitored quantities, H_ω, integrals. Equations
//! that follow from the other constraints stand last, and are monitored in the groups of these.

use super::penalty::MonitoredQuantity;
use super::{InvariantGroup, InvariantKind};
use crate::elaborate::model::{Model, Quantity, Redundancy};
use crate::functional::Functional;
use holonome_linear::member_rows::Member;

/// Number of members of a family of integrals beyond which, in a model without constraints, it stands
/// first: what corrects a state solves for such a family apart.
const LARGE_FAMILY: usize = 64;

/// Rows of F, as they follow each other.
pub(crate) struct InvariantRows<'a> {
    /// First row of each group, with the formulas of its rows.
    pub sources: Vec<(usize, InvariantSource<'a>)>,
    /// Meaning of the rows.
    pub groups: Vec<InvariantGroup>,
    /// Number of all rows.
    pub count: usize,
    /// Number of rows that are constraints or hidden constraints.
    pub constraints: usize,
}

/// Formulas of the rows of a group.
pub(crate) enum InvariantSource<'a> {
    /// Some outputs of a functional, which are not held.
    Monitored(&'a Functional, Vec<usize>),
    /// Constraint of this number.
    Constraint(usize),
    /// So many of the hidden constraints, in order.
    Hidden(usize),
    /// H.
    Energy(&'a Functional),
    /// Integral of this number.
    Integral(usize),
}

impl<'a> InvariantRows<'a> {
    /// Rows of F of `model`. `orders` tells, for each order of hidden constraints, which scalar
    /// constraints have one.
    pub fn new(model: &'a Model, orders: &[Vec<bool>]) -> InvariantRows<'a> {
        let (sources, groups) = (Vec::new(), Vec::new());
        let mut rows = InvariantRows { sources, groups, count: 0, constraints: 0 };
        let monitored = model.penalty.iter().flat_map(|penalty| penalty.monitored());
        for MonitoredQuantity { group, functional, kept } in monitored {
            rows.push(group, InvariantSource::Monitored(functional, kept));
        }
        let first_group = rows.groups.len();
        let constraint = |k: usize, _| InvariantSource::Constraint(k);
        let all: Vec<bool> = vec![true; model.constraints.iter().map(Quantity::scalars).sum()];
        rows.push_imposed(model, (InvariantKind::Constraint, &all), constraint);
        for (order, exist) in (1..).zip(orders) {
            let hidden = |_, count| InvariantSource::Hidden(count);
            rows.push_imposed(model, (InvariantKind::Hidden(order), exist), hidden);
        }
        let push_integrals = |rows: &mut InvariantRows<'a>, first: bool| {
            for (k, quantity) in model.integrals.iter().enumerate() {
                let stands_first = model.constraints.is_empty() && quantity.members > LARGE_FAMILY;
                if stands_first == first {
                    let group = InvariantGroup::of(quantity, InvariantKind::Integral);
                    rows.push(group, InvariantSource::Integral(k));
                }
            }
        };
        push_integrals(&mut rows, true);
        if let Some((functional, _)) = model.hamiltonian()
            && model.conserves_energy()
        {
            let (name, kind) = model.energy();
            rows.push(InvariantGroup::of_number(name, kind), InvariantSource::Energy(functional));
        }
        push_integrals(&mut rows, false);
        if let Some(redundancy) = &model.redundancy {
            rows.push_implied(redundancy, first_group);
        }
        rows
    }

    /// Groups of the constraints, or of hidden ones of some order, with the rows that are held: those
    /// of the scalar constraints for which `exist` is true. `source` gives the formulas of a
    /// constraint of some number, and so many rows.
    fn push_imposed(
        &mut self,
        model: &Model,
        (kind, exist): (InvariantKind, &[bool]),
        source: impl Fn(usize, usize) -> InvariantSource<'a>,
    ) {
        let mut rest = exist;
        let parts = model.constraints.iter().enumerate().filter_map(|(k, part)| {
            let (own, others) = rest.split_at(part.scalars());
            rest = others;
            let exists = kind == InvariantKind::Constraint || own.contains(&true);
            exists.then(|| (k, InvariantGroup::of_some(part, kind, own)))
        });
        let parts: Vec<(usize, InvariantGroup)> = parts.collect();
        let Some(redundancy) = &model.redundancy else {
            for (k, group) in parts {
                let count = group.members.row_count();
                self.push(group, source(k, count));
            }
            return;
        };
        let no_rows = |quantity: &Quantity| vec![Vec::new(); quantity.members];
        let mut rows: Vec<Vec<Vec<(usize, f64)>>> = redundancy.stated.iter().map(no_rows).collect();
        for (k, group) in parts {
            let (own, (stated, members)) = (group.moved(self.count), &redundancy.parts[k]);
            for (member, of_member) in members.iter().zip(own.members.iter()) {
                rows[*stated][*member as usize] = of_member.into_iter().collect();
            }
            let count = own.members.row_count();
            self.sources.push((self.count, source(k, count)));
            self.count += count;
            self.constraints += count;
        }
        let group = |(quantity, rows): (&Quantity, Vec<_>)| InvariantGroup {
            name: quantity.name.clone(),
            kind,
            members: rows.into_iter().collect(),
            monitored_only: false,
        };
        let groups = redundancy.stated.iter().zip(rows).map(group);
        // A constraint without equations of its own has no hidden constraint.
        let exists = |group: &InvariantGroup| {
            kind == InvariantKind::Constraint || group.members.row_count() > 0
        };
        self.groups.extend(groups.filter(exists));
    }

    /// Rows that follow from the other constraints, in the groups from `first_group` on.
    fn push_implied(&mut self, redundancy: &'a Redundancy, first_group: usize) {
        let groups = &mut self.groups[first_group..];
        for ((quantity, implied), group) in
            redundancy.stated.iter().zip(&redundancy.implied).zip(groups)
        {
            group.monitored_only = group.members.row_count() == 0;
            let (first, mut rest) = (self.count, (self.count..).zip(implied).peekable());
            let all = |(k, held): (usize, Member)| {
                let mut rows: Vec<(usize, f64)> = held.into_iter().collect();
                while let Some((row, (_, component))) =
                    rest.next_if(|(_, (member, _))| *member == k)
                {
                    rows.push((row, component.multiplicity));
                }
                rows
            };
            group.members = group.members.iter().enumerate().map(all).collect();
            let width = quantity.shape.len();
            let outputs =
                implied.iter().map(|(member, component)| member * width + component.offset);
            let source = InvariantSource::Monitored(&quantity.functional, outputs.collect());
            self.sources.push((first, source));
            self.count += implied.len();
        }
    }

    fn push(&mut self, group: InvariantGroup, source: InvariantSource<'a>) {
        let first = self.count;
        let rows = group.members.row_count();
        self.count += rows;
        if matches!(group.kind, InvariantKind::Constraint | InvariantKind::Hidden(_)) {
            self.constraints += rows;
        }
        self.groups.push(group.moved(first));
        self.sources.push((first, source));
    }
}
