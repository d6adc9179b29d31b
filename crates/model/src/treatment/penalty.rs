//! The penalty method (Tao, Owhadi, Variational and linearly implicit integrators, 2016, (2.20)): a
//! constrained Hamiltonian model becomes a free one,
//!
//! H_ω = H + ½ ω² |g|²,
//!
//! which stays within O(ω⁻²) of the constrained motion. |g|² sums the squares of all entries of a
//! vector or matrix constraint. The result is a model of templates again, whatever its size: a
//! chain of a million links stays a few templates.

use super::join::{Join, Part};
use super::{InvariantGroup, InvariantKind};
use crate::elaborate::expression::{MOMENTUM, TIME};
use crate::elaborate::lower::LARGEST_TEMPLATE;
pub use crate::elaborate::model::Penalty;
use crate::elaborate::model::{Dynamics, ENERGY_BALANCE, Model, Quantity};
use crate::functional::{Functional, Term};
use crate::graph::Input;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Reason why a model cannot be penalised.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotPenalised {
    /// The model is a vector field.
    #[error("the model is a vector field, and a penalty is added to a Hamiltonian")]
    Field,
    /// The model has no constraints.
    #[error("the model has no constraints")]
    Free,
    /// A constraint depends on momenta.
    #[error(
        "constraint '{name}' holds momenta, and a penalty of such a constraint is no stiff potential: its motion does not come near the constrained one"
    )]
    PhaseSpace {
        /// Name of the constraint.
        name: String,
    },
    /// A template would be too large.
    #[error(
        "a constraint or the rate of change of one takes {size} operations in one formula, and the limit is {limit}"
    )]
    TooLarge {
        /// Size of the template.
        size: usize,
        /// Largest size.
        limit: usize,
    },
}

/// The penalised model, with ω as its last parameter value.
///
/// # Errors
/// If there is nothing to penalise, if a potential cannot hold a constraint, or if a template would
/// be too large.
pub fn penalise(model: &Model, omega: f64) -> Result<Model, NotPenalised> {
    let Dynamics::Hamiltonian(own, span) = &model.dynamics else { return Err(NotPenalised::Field) };
    // A potential holds equations that follow from others, too.
    let constraints = model.imposed_constraints();
    if constraints.is_empty() {
        return Err(NotPenalised::Free);
    }
    if let Some(constraint) = constraints.iter().find(|c| c.depends & MOMENTUM != 0) {
        return Err(NotPenalised::PhaseSpace { name: constraint.name.clone() });
    }
    let place = model.parameter_values.len();
    let mut stiff = Functional { outputs: 1, terms: Vec::new() };
    for constraint in constraints {
        stiff.terms.extend(half_square(constraint, place as u32)?);
    }
    let feeders = Feeders::new(own, model.degrees());
    let hidden = constraints.iter().map(|c| rate(c, own, &feeders)).collect::<Result<_, _>>()?;
    let rheonomic = constraints.iter().any(|c| c.depends & TIME != 0);
    let mut penalised = Model { constraints: Vec::new(), redundancy: None, ..model.clone() };
    let sum =
        Functional { outputs: 1, terms: own.terms.iter().chain(&stiff.terms).cloned().collect() };
    penalised.dynamics = Dynamics::Hamiltonian(sum, *span);
    let balances =
        penalised.integrals.iter_mut().filter(|integral| integral.name == ENERGY_BALANCE);
    balances.for_each(|balance| balance.functional.terms.extend(stiff.terms.iter().cloned()));
    penalised.parameter_values.push(omega);
    penalised.penalty = Some(Arc::new(Penalty {
        omega: place,
        constraints: constraints.to_vec(),
        hidden,
        hamiltonian: own.clone(),
        conservative: model.conserves_energy(),
    }));
    penalised.explicit_time |= rheonomic;
    penalised.stiff = Some(stiff);
    Ok(penalised)
}

/// ½ ω² Σ g² over all entries of all members; `omega` is the place of the parameter ω.
fn half_square(constraint: &Quantity, omega: u32) -> Result<Vec<Term>, NotPenalised> {
    let terms = &constraint.functional.terms;
    let width = constraint.shape.len() as u32;
    // Parts that each member is the sum of, with the component at which each part starts.
    let mut parts: Vec<Vec<(Part, u32)>> = vec![Vec::new(); constraint.members];
    for (number, term) in (0..).zip(terms) {
        for (row, first) in (0..).zip(term.table.each().map(|row| row.last())) {
            parts[(first / width) as usize].push(((number, row), first % width));
        }
    }
    let mut join = Join::new(terms.iter().collect());
    for member in parts {
        let (parts, offsets): (Vec<Part>, Vec<u32>) = member.into_iter().unzip();
        join.push(&parts, &offsets, 0);
    }
    bounded(&join)?;
    Ok(join.terms(Some(omega), |g, instances, omega| {
        let mut entries = vec![g.zero(); width as usize];
        for (roots, &offset) in instances.roots.iter().zip(&instances.shape) {
            for (entry, &root) in entries[offset as usize..].iter_mut().zip(roots) {
                *entry = g.add(*entry, root);
            }
        }
        let omega = omega.expect("a parameter was asked for");
        let (half, square) = (g.constant(0.5), g.mul(omega, omega));
        let stiffness = g.mul(half, square);
        let norm = g.dot(&entries, &entries);
        vec![g.mul(stiffness, norm)]
    }))
}

fn bounded(join: &Join) -> Result<(), NotPenalised> {
    match join.largest() {
        size if size > LARGEST_TEMPLATE => {
            Err(NotPenalised::TooLarge { size, limit: LARGEST_TEMPLATE })
        }
        _ => Ok(()),
    }
}

/// Rows of H that depend on the momentum of each position.
struct Feeders {
    /// (position, term, row, slot), in this order.
    list: Vec<[u32; 4]>,
    /// Start of each position's entries in the list.
    start: Vec<usize>,
}

impl Feeders {
    fn new(hamiltonian: &Functional, degrees: usize) -> Feeders {
        let n = degrees as u32;
        let mut list = Vec::new();
        for (number, term) in (0..).zip(&hamiltonian.terms) {
            let gradient = term.gradients().1.remove(0);
            for (row, entries) in (0..).zip(term.table.each()) {
                let entry = |slot: u32| entries.at(slot as usize);
                let momenta = gradient.iter().filter(|&&(slot, _)| entry(slot) >= n);
                list.extend(momenta.map(|&(slot, _)| [entry(slot) - n, number, row, slot]));
            }
        }
        list.sort_unstable();
        let start = (0..=n).map(|i| list.partition_point(|&[position, ..]| position < i)).collect();
        Feeders { list, start }
    }

    fn of(&self, position: u32) -> &[[u32; 4]] {
        &self.list[self.start[position as usize]..self.start[position as usize + 1]]
    }
}

/// The rate G H_p + g_t of a constraint on positions.
fn rate(
    constraint: &Quantity,
    hamiltonian: &Functional,
    feeders: &Feeders,
) -> Result<Quantity, NotPenalised> {
    let own = &constraint.functional.terms;
    let count = own.len() as u32;
    let mut join = Join::new(own.iter().chain(&hamiltonian.terms).collect());
    for (number, term) in (0..).zip(own) {
        let mut slots: Vec<u32> =
            term.gradients().1.into_iter().flatten().map(|(slot, _)| slot).collect();
        slots.sort_unstable();
        slots.dedup();
        for (row, entries) in (0..).zip(term.table.each()) {
            let mut parts: Vec<Part> = vec![(number, row)];
            let mut place: FxHashMap<Part, u32> = FxHashMap::default();
            // For each slot that matters, the slots and parts whose sum is its velocity.
            let mut shape = Vec::new();
            for &slot in &slots {
                for &[_, fed_by, of, momentum] in feeders.of(entries.at(slot as usize)) {
                    let part = (count + fed_by, of);
                    let number = *place.entry(part).or_insert_with(|| {
                        parts.push(part);
                        parts.len() as u32 - 1
                    });
                    shape.extend([slot, number, momentum]);
                }
            }
            join.push(&parts, &shape, entries.last());
        }
    }
    bounded(&join)?;
    let terms = join.terms(None, |g, instances, _| {
        let velocities: Vec<FxHashMap<u32, _>> = (1..instances.roots.len())
            .map(|part| {
                let slots = instances.slots[part].clone();
                let inside = |input: Input| matches!(input, Input::Slot(k) if slots.contains(&k));
                let of_slot = |(input, d)| {
                    if let Input::Slot(k) = input { Some((k - slots.start, d)) } else { None }
                };
                g.adjoint(instances.roots[part][0], inside)
                    .into_iter()
                    .filter_map(of_slot)
                    .collect()
            })
            .collect();
        let positions = instances.slots[0].clone();
        let component = |&root| {
            let gradient =
                g.adjoint(root, |input| matches!(input, Input::Slot(k) if positions.contains(&k)));
            let mut rate = g.time_derivative(root);
            for triple in instances.shape.chunks(3) {
                let along = gradient.iter().find(|(input, _)| *input == Input::Slot(triple[0]));
                let velocity = velocities[triple[1] as usize - 1].get(&triple[2]);
                if let Some((&(_, d), &velocity)) = along.zip(velocity) {
                    let product = g.mul(d, velocity);
                    rate = g.add(rate, product);
                }
            }
            rate
        };
        instances.roots[0].iter().map(component).collect()
    });
    let functional = Functional { outputs: constraint.functional.outputs, terms };
    Ok(Quantity { functional, depends: constraint.depends | MOMENTUM, ..constraint.clone() })
}

/// A quantity that is monitored along a run and not held.
pub struct MonitoredQuantity<'a> {
    /// The invariant, with rows counted from 0.
    pub group: InvariantGroup,
    /// Formula.
    pub functional: &'a Functional,
    /// Output of each row.
    pub kept: Vec<usize>,
}

impl Penalty {
    /// The constraints, their hidden constraints, and the model's own H if it is constant along the
    /// constrained motion.
    pub fn monitored(&self) -> impl Iterator<Item = MonitoredQuantity<'_>> {
        let constraints = self
            .constraints
            .iter()
            .map(|q| MonitoredQuantity::quantity(q, InvariantKind::Constraint));
        let hidden =
            self.hidden.iter().map(|q| MonitoredQuantity::quantity(q, InvariantKind::Hidden(1)));
        let energy = InvariantGroup {
            monitored_only: true,
            ..InvariantGroup::of_number("H", InvariantKind::Hamiltonian)
        };
        let own = MonitoredQuantity { group: energy, functional: &self.hamiltonian, kept: vec![0] };
        constraints.chain(hidden).chain(self.conservative.then_some(own))
    }
}

impl MonitoredQuantity<'_> {
    fn quantity(quantity: &Quantity, kind: InvariantKind) -> MonitoredQuantity<'_> {
        let width = quantity.shape.len();
        let output =
            |member: usize| quantity.components.iter().map(move |c| member * width + c.offset);
        MonitoredQuantity {
            group: InvariantGroup { monitored_only: true, ..InvariantGroup::of(quantity, kind) },
            functional: &quantity.functional,
            kept: (0..quantity.members).flat_map(output).collect(),
        }
    }
}
