//! Lagrange multipliers of a program: their registers, and their values at a state between two
//! steps.

use holonome_model::elaborate::model::{Component, Model, Quantity, multipliers};

/// Multipliers of a model's constraints.
#[derive(Clone)]
pub struct Multipliers {
    /// Registers of the multipliers at the start of a step, one for each scalar constraint.
    start: Vec<u32>,
    /// Places in the memory of the multipliers at the end of a step. Empty for SHAKE, where those
    /// at the start act for the whole step.
    end: Vec<u32>,
    /// Imposed constraints, in the model's order.
    families: Vec<Family>,
    /// Number of components of all constraints as stated.
    count: usize,
}

/// A constraint, or a part of one of which other equations follow from the others.
#[derive(Clone)]
struct Family {
    members: usize,
    /// Place of the first component of the constraint as stated, and their number for each member.
    first: usize,
    stride: usize,
    /// Numbers of the members of a part among those of the constraint.
    numbers: Option<Vec<u32>>,
    /// For each scalar constraint of a member, its share in each component of the member.
    shares: Vec<Vec<(usize, f64)>>,
}

impl Multipliers {
    /// Multipliers of a step that has recorded them in these registers and places.
    pub fn new(start: Vec<u32>, end: Vec<u32>, model: &Model) -> Multipliers {
        if start.is_empty() {
            return Multipliers { start, end, families: Vec::new(), count: 0 };
        }
        let places = multipliers(model.imposed_constraints(), 0);
        let count = places.last().map_or(0, |(last, first)| first + last.functional.outputs);
        let of = |(k, constraint): (usize, &Quantity)| match &model.redundancy {
            None => Family::of(constraint, places[k].1, None),
            Some(redundancy) => {
                let (stated, members) = &redundancy.parts[k];
                Family::of(constraint, places[*stated].1, Some(members.clone()))
            }
        };
        let families = model.constraints.iter().enumerate().map(of).collect();
        Multipliers { start, end, families, count }
    }

    /// These multipliers with those at the start of a step one after the other.
    pub fn of_starts(&self) -> Multipliers {
        Multipliers { start: (0..self.start.len() as u32).collect(), ..self.clone() }
    }

    /// Number of multipliers at the start of a step.
    pub fn start_len(&self) -> usize {
        self.start.len()
    }

    /// Number of multipliers of all components.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Length of the step whose start gives the multipliers at a state; 0 if no step is needed. The
    /// state is between steps of the lengths `before` and `after` (0 if there is none).
    pub fn step(&self, (before, after): (f64, f64)) -> f64 {
        // At the end of a run only one more step gives the multipliers of SHAKE.
        if after == 0.0 && self.end.is_empty() { before } else { after }
    }

    /// Put into `lambda` the multipliers at a state after a step of length `before` and before one
    /// of length `after`, to which the registers belong. They are the impulse at the state over the
    /// time that it stands for, half of either step; for equal steps, the mean of the two
    /// multipliers that act there. Those of equations that follow from the others are 0.
    pub fn put(
        &self,
        (before, after): (f64, f64),
        registers: &[f64],
        memory: &[f64],
        lambda: &mut [f64],
    ) {
        // Twice the impulse of a scalar constraint.
        let impulse = |scalar: usize| {
            let start = |length: f64| {
                if length == 0.0 { 0.0 } else { length * registers[self.start[scalar] as usize] }
            };
            match self.end.get(scalar) {
                Some(&end) => before * memory[end as usize] + start(after),
                None => start(2.0 * after),
            }
        };
        lambda.fill(0.0);
        let mut scalar = 0;
        for Family { members, first, stride, numbers, shares } in &self.families {
            for member in 0..*members {
                let number = numbers.as_ref().map_or(member, |numbers| numbers[member] as usize);
                let of_member = &mut lambda[first + stride * number..][..*stride];
                for of_scalar in shares {
                    for &(component, share) in of_scalar {
                        of_member[component] = share * impulse(scalar) / (before + after);
                    }
                    scalar += 1;
                }
            }
        }
    }
}

impl Family {
    /// Family of a constraint whose components as stated begin at `first`. Two equal components of a
    /// symmetric matrix have half of one multiplier each, so that Σ λ_ij ∂g_ij over all components is
    /// the force.
    fn of(constraint: &Quantity, first: usize, numbers: Option<Vec<u32>>) -> Family {
        let share = |component: &Component| {
            let offsets = component.offsets(constraint.shape);
            offsets.map(|offset| (offset, 1.0 / component.multiplicity)).collect()
        };
        Family {
            members: constraint.members,
            first,
            stride: constraint.shape.len(),
            numbers,
            shares: constraint.components.iter().map(share).collect(),
        }
    }
}
