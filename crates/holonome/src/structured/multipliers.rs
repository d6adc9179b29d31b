//! The Lagrange multipliers of a program: where they stand, and what they are at a state between two steps.

use holonome_model::elaborate::model::Model;
use holonome_model::elaborate::shape::Shape;

/// The multipliers of a model's constraints.
#[derive(Clone)]
pub struct Multipliers {
    /// Registers of those that act at the start of a step, one for each scalar constraint.
    start: Vec<usize>,
    /// Places in the memory of those that act at its end. None of SHAKE: there those at the start act for the whole step.
    end: Vec<usize>,
    /// Of which scalar constraint each component of the constraints has the multiplier, and which part of it.
    components: Vec<Option<(usize, f64)>>,
}

impl Multipliers {
    /// Those of a step that has recorded some there.
    pub fn new(start: Vec<usize>, end: Vec<usize>, model: &Model) -> Multipliers {
        let components = if start.is_empty() { Vec::new() } else { components(model) };
        Multipliers { start, end, components }
    }

    /// The same where those at the start of a step stand one after the other.
    pub fn of_starts(&self) -> Multipliers {
        Multipliers { start: (0..self.start.len()).collect(), ..self.clone() }
    }

    /// How many act at the start of a step.
    pub fn start_len(&self) -> usize {
        self.start.len()
    }

    /// How many numbers they are.
    pub fn count(&self) -> usize {
        self.components.len()
    }

    /// The length of the step from a state between steps of the lengths `before` and `after` (0 where there is none)
    /// whose start tells the multipliers there; 0 if it need not be known.
    pub fn step(&self, (before, after): (f64, f64)) -> f64 {
        // Nothing but the step after the end tells what the constraints of SHAKE do there.
        if after == 0.0 && self.end.is_empty() { before } else { after }
    }

    /// Puts the multipliers at a state after a step of the length `before` and before one of the length
    /// `after`, which the registers are of: the impulse there over the time that it stands for, half of either step. For
    /// equal steps that is the mean of the two that act there.
    pub fn put(&self, (before, after): (f64, f64), registers: &[f64], memory: &[f64], lambda: &mut [f64]) {
        // Twice the impulse of a scalar constraint.
        let impulse = |scalar: usize| {
            let start = |length: f64| if length == 0.0 { 0.0 } else { length * registers[self.start[scalar]] };
            match self.end.get(scalar) {
                Some(&end) => before * memory[end] + start(after),
                None => start(2.0 * after),
            }
        };
        for (lambda, component) in lambda.iter_mut().zip(&self.components) {
            *lambda = component.map_or(0.0, |(scalar, part)| part * impulse(scalar) / (before + after));
        }
    }
}

/// Which multiplier each component has. A symmetric matrix has one for both of two equal components, half for each, so
/// that Σ λ_ij ∂g_ij over all of them is the force.
fn components(model: &Model) -> Vec<Option<(usize, f64)>> {
    let (mut all, mut scalar) = (Vec::new(), 0);
    for constraint in &model.constraints {
        for _ in 0..constraint.members {
            let mut member = vec![None; constraint.shape.len()];
            for component in &constraint.components {
                let part = Some((scalar, 1.0 / component.multiplicity));
                member[component.offset] = part;
                if let Shape::Matrix(_, columns) = constraint.shape
                    && component.multiplicity > 1.0
                {
                    let (i, j) = (component.offset / columns, component.offset % columns);
                    member[j * columns + i] = part;
                }
                scalar += 1;
            }
            all.extend(member);
        }
    }
    all
}
