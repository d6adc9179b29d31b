//! Lagrange multipliers of a program: their registers, and their values at a state between two
//! steps.

use holonome_model::elaborate::model::{Model, Quantity};

/// Multipliers of a model's constraints.
#[derive(Clone)]
pub struct Multipliers {
    /// Registers of the multipliers at the start of a step, one for each scalar constraint.
    start: Vec<u32>,
    /// Places in the memory of the multipliers at the end of a step. Empty for SHAKE, where those
    /// at the start act for the whole step.
    end: Vec<u32>,
    /// Constraints, in the model's order.
    families: Vec<Family>,
}

/// Components of a family of constraints, which are the same for all members.
#[derive(Clone)]
struct Family {
    members: usize,
    /// Number of scalar constraints of a member.
    width: usize,
    /// For each component of a member, the number of its scalar constraint and its share of that
    /// multiplier.
    components: Vec<Option<(usize, f64)>>,
}

impl Multipliers {
    /// Multipliers of a step that has recorded them in these registers and places.
    pub fn new(start: Vec<u32>, end: Vec<u32>, model: &Model) -> Multipliers {
        let families = if start.is_empty() {
            Vec::new()
        } else {
            model.constraints.iter().map(Family::of).collect()
        };
        Multipliers { start, end, families }
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
        self.families.iter().map(|family| family.members * family.components.len()).sum()
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
    /// multipliers that act there.
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
        let (mut rest, mut first) = (lambda, 0);
        for Family { members, width, components } in &self.families {
            let (these, others) = rest.split_at_mut(members * components.len());
            for member in these.chunks_exact_mut(components.len().max(1)) {
                for (lambda, component) in member.iter_mut().zip(components) {
                    *lambda = component.map_or(0.0, |(scalar, part)| {
                        part * impulse(first + scalar) / (before + after)
                    });
                }
                first += width;
            }
            rest = others;
        }
    }
}

impl Family {
    fn of(constraint: &Quantity) -> Family {
        let (width, components) = (constraint.components.len(), constraint.shares());
        Family { members: constraint.members, width, components }
    }
}
