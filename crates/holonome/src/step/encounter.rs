//! Encounters of bodies that a splitting couples: where they come near to each other, at the start
//! or at the end of a step, the step is made by the whole field. That is decided alike for the step
//! back (Lu, Hernandez, Rein, Mon. Not. R. Astron. Soc. 533 (2024) 3708).

use crate::kernels::{CompiledSystem, Parametric, StateVectors};
use holonome_integrate::cost::Cost;
use holonome_integrate::run::handed_over;
use holonome_integrate::scheme::map::{NoStep, StepFrom};
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::Field;
use std::sync::Arc;

/// Nearness from which on bodies are within an encounter.
pub const MET: f64 = 1.0;

/// Encounters in the steps of a program.
#[derive(Clone)]
pub struct Encounter {
    /// Register of the largest nearness in a step, and the place among the carried quantities of
    /// that at its start.
    nearness: usize,
    start: Option<usize>,
    /// The whole field; `None` for steps that are not handed over.
    system: Option<Box<CompiledSystem>>,
}

impl Encounter {
    /// Encounters of steps that are not handed over yet.
    pub fn new(nearness: usize, start: Option<usize>) -> Encounter {
        Encounter { nearness, start, system: None }
    }

    /// Hand steps over to this field of `model`.
    pub fn with_field(&mut self, field: &Field, model: &Model) {
        // No invariants: nothing is monitored within a step.
        let field = Arc::new(Field {
            invariants: Vec::new(),
            jacobian: Vec::new(),
            groups: Vec::new(),
            watched: Vec::new(),
            surfaces: Vec::new(),
            ..field.clone()
        });
        let (vectors, parameters) = (StateVectors::of(model), &model.parameter_values);
        self.system =
            Some(Box::new(CompiledSystem::new(&field, &vectors, parameters, false, None)));
    }

    /// True if a step with these carried quantities begins within an encounter.
    pub fn begins_within(&self, carried: &[f64]) -> bool {
        self.system.is_some() && self.start.is_some_and(|start| is_near(carried[start]))
    }

    /// True if the step that has left these registers begins or ends within an encounter.
    pub fn meets(&self, registers: &[f64]) -> bool {
        is_near(registers[self.nearness])
    }

    /// True if that step is to be handed over.
    pub fn takes(&self, registers: &[f64]) -> bool {
        self.system.is_some() && self.meets(registers)
    }

    /// Make a step by the whole field.
    ///
    /// # Errors
    /// If it has no result.
    pub fn step(&self, step: StepFrom, x1: &mut [f64], cost: &mut Cost) -> Result<(), NoStep> {
        let system = self.system.as_ref().expect("a step within an encounter has the whole field");
        handed_over(&**system, step, x1, cost)
    }
}

impl Parametric for Encounter {
    fn rebind(&mut self, parameters: &[f64]) {
        self.system.rebind(parameters);
    }
}

/// True within an encounter; what is not a number belongs to one.
fn is_near(nearness: f64) -> bool {
    !matches!(nearness.partial_cmp(&MET), Some(std::cmp::Ordering::Less))
}
