//! Constraints some of whose equations follow from the others.
//!
//! Methods impose independent equations only. The constraints of a model are then parts of those
//! that it states: members of one constraint, of which the same components remain.

use super::{Component, Model, Quantity, Rolling};
use crate::functional::{Functional, Stretches, Term};
use std::sync::Arc;

/// Constraints as a model states them, with what methods impose of them.
#[derive(Clone, Debug)]
pub struct Redundancy {
    /// The constraints as the model states them.
    pub stated: Vec<Quantity>,
    /// For each of [`Model::constraints`], the number of the stated constraint that it is a part
    /// of, and the numbers of its members there.
    pub parts: Vec<(usize, Vec<u32>)>,
    /// For each stated constraint, the equations that follow from the other constraints: members,
    /// ascending, with components.
    pub implied: Vec<Vec<(usize, Component)>>,
    /// For each stated constraint, whether it is a rolling one.
    pub rolls: Vec<bool>,
}

impl Model {
    /// The imposed constraints as the model states them, with the equations that follow from the
    /// others.
    pub fn imposed_constraints(&self) -> &[Quantity] {
        self.redundancy.as_ref().map_or(&self.constraints, |redundancy| &redundancy.stated)
    }

    /// The model without the equations of these numbers, ascending and counted over all
    /// constraints, which follow from the others.
    pub fn without_implied(&self, implied: &[usize]) -> Model {
        let (mut constraints, mut parts, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rollings, mut first) = (Vec::new(), 0);
        for (number, quantity) in self.constraints.iter().enumerate() {
            let width = quantity.components.len();
            // Members with the same components left.
            let mut groups: Vec<(Vec<Component>, Vec<u32>)> = Vec::new();
            let mut of_quantity = Vec::new();
            for member in 0..quantity.members {
                let is_implied =
                    |place: usize| implied.binary_search(&(first + member * width + place)).is_ok();
                let mut rest = Vec::with_capacity(width);
                for (place, component) in quantity.components.iter().enumerate() {
                    match is_implied(place) {
                        true => of_quantity.push((member, *component)),
                        false => rest.push(*component),
                    }
                }
                match groups.iter_mut().find(|(components, _)| *components == rest) {
                    Some((_, members)) => members.push(member as u32),
                    None => groups.push((rest, vec![member as u32])),
                }
            }
            let rolling = self.rollings.iter().find(|rolling| rolling.constraint == number);
            for (components, members) in groups.into_iter().filter(|(rest, _)| !rest.is_empty()) {
                rollings.extend(rolling.map(|rolling| Rolling {
                    constraint: constraints.len(),
                    functional: quantity.functional_of(&rolling.functional, &members),
                    ..rolling.clone()
                }));
                constraints.push(quantity.part(components, &members));
                parts.push((number, members));
            }
            left_out.push(of_quantity);
            first += quantity.scalars();
        }
        let stated = self.constraints.clone();
        let is_rolling = |k: usize| self.rollings.iter().any(|rolling| rolling.constraint == k);
        let rolls = (0..stated.len()).map(is_rolling).collect();
        let redundancy = Some(Arc::new(Redundancy { stated, parts, implied: left_out, rolls }));
        Model { constraints, rollings, redundancy, ..self.clone() }
    }
}

impl Quantity {
    /// A formula of all members, for these members.
    fn functional_of(&self, all: &Functional, members: &[u32]) -> Functional {
        match members.len() == self.members {
            true => all.clone(),
            false => of_members(all, self.shape.len(), members),
        }
    }

    /// These components of these members.
    fn part(&self, components: Vec<Component>, members: &[u32]) -> Quantity {
        let k = self.indices.len();
        let indices = |&member: &u32| &self.member_indices[member as usize * k..][..k];
        Quantity {
            functional: self.functional_of(&self.functional, members),
            member_indices: members.iter().flat_map(indices).copied().collect(),
            members: members.len(),
            components,
            ..self.clone()
        }
    }
}

/// Outputs of these members, `width` each.
fn of_members(functional: &Functional, width: usize, members: &[u32]) -> Functional {
    let moved = |output: usize| {
        let member = (output / width) as u32;
        members.binary_search(&member).ok().map(|place| (place * width + output % width) as u32)
    };
    let term = |term: &Term| {
        let mut table = Stretches::new(term.table.width());
        term.each_row(&mut |row| {
            if let Some(output) = moved(row.last() as usize) {
                let entries: Vec<u32> = row.iter().take(term.slots.len()).chain([output]).collect();
                table.push(&entries);
            }
        });
        // The pairs of a sum over near pairs have become rows.
        Term { table, pairs: None, ..term.clone() }
    };
    Functional {
        outputs: members.len() * width,
        terms: functional.terms.iter().map(term).collect(),
    }
}
