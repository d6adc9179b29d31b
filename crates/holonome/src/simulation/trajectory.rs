//! Compiled parts of a run with the values of one trajectory, and its state.

use crate::kernels::{CompiledStep, CompiledSystem, Parametric};
use crate::step::{Program, Start};
use holonome_integrate::events::{Action, EventMemory, EventRule};
use holonome_integrate::feedback_term::metric;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::{self, FlowScratch};
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use std::borrow::Cow;
use std::sync::Arc;

/// A trajectory: copies share their code, and each has values and a state of its own.
#[derive(Clone)]
pub(crate) struct Trajectory {
    pub system: Arc<CompiledSystem>,
    pub step: CompiledStep,
    /// Step of a method that is not a Runge–Kutta one.
    pub program: Option<Program>,
    /// Parameters of the treated field after the model's and the targets. Those of a Gauss–Newton
    /// form are its rate, and weights that are found at the start.
    pub gains: Vec<f64>,
    /// Rate of a Gauss–Newton form.
    pub rate: Option<f64>,
    pub state: StepState,
}

/// Start of a trajectory: the model's parameters and the initial state, and the state whose
/// invariants are the target, if that is another one.
#[derive(Clone, Copy)]
pub(crate) struct From<'a> {
    pub parameters: &'a [f64],
    pub x: &'a [f64],
    pub reference: Option<&'a [f64]>,
}

/// Compiled parts with which a run makes its steps.
pub(crate) type Parts<'a> = (Option<&'a Program>, &'a CompiledStep, &'a CompiledSystem);

impl Trajectory {
    /// Number of rows of F that are constraints.
    fn constraints(&self) -> usize {
        self.system.invariants().constraints
    }

    /// Number of targets F₀ among the parameters of a step.
    pub fn target_count(&self) -> usize {
        self.system.invariants().count - self.constraints()
    }

    /// Gains of a trajectory that starts at `x`: a Gauss–Newton form has this rate and the weights
    /// of that start. `system` has the parameters of that trajectory.
    pub fn gains_at(&self, t0: f64, system: &dyn System, x: &[f64]) -> Vec<f64> {
        match self.rate {
            Some(rate) => [&[rate][..], &metric(system, t0, x, rate)].concat(),
            None => self.gains.clone(),
        }
    }

    /// Go back to a start, for a run of `plan`.
    pub fn restart(&mut self, plan: &Plan, from: From) {
        self.bind_system(from.parameters, &vec![0.0; self.target_count()]);
        self.state = StepState::new(plan, &*self.system, from.x, from.reference);
        let target = Arc::clone(&self.state.target);
        self.bind_targets(plan, from, &target[self.constraints()..]);
    }

    /// Take the values of a trajectory with this start that has reached `state`, which stays with
    /// the caller.
    pub fn rebind(&mut self, plan: &Plan, from: From, state: &StepState) {
        let parameters = self.with_sides(from.parameters, state);
        let from = From { parameters: &parameters, ..from };
        self.bind_system(from.parameters, &vec![0.0; self.target_count()]);
        self.bind_targets(plan, from, &state.target[self.constraints()..]);
    }

    /// Parameters of the model with the sides of switching surfaces that a state has reached.
    fn with_sides<'p>(&self, parameters: &'p [f64], state: &StepState) -> Cow<'p, [f64]> {
        let rules = self.system.events().map_or(&[][..], |events| events.rules());
        if !rules.iter().any(lands) {
            return Cow::Borrowed(parameters);
        }
        let mut all = parameters.to_vec();
        put_sides(&mut all, rules, &state.events);
        Cow::Owned(all)
    }

    /// Move `x` along the steps of `plan`, with these parameters of the model, as a run from there
    /// does. True if that was done in loops; false if the loop over time has to do it, as the map
    /// has no such loops, or a step has no result. `x` then stays.
    pub fn flow(
        &mut self,
        plan: &Plan,
        parameters: &[f64],
        x: &mut [f64],
        scratch: &mut FlowScratch,
    ) -> bool {
        if plan.method.treatment == MethodTreatment::Feedback {
            self.restart(plan, From { parameters, x, reference: None });
        } else if let Some(program) = &mut self.program {
            // Targets are used for monitoring only.
            let targets = &self.state.target[self.system.invariants().constraints..];
            program.rebind_for(plan, &Start { parameters, targets, x });
        }
        let system = &*self.system;
        if system.is_divided() || system.events().is_some() {
            return false;
        }
        let mut along = |map: &dyn StepMap| {
            run::flows(plan, system, map) && run::flow(plan, system, map, x, scratch)
        };
        match &self.program {
            Some(program) => along(program.map()),
            None => self.step.map(plan, system).is_some_and(|map| along(&*map)),
        }
    }

    /// Compiled parts with which a run makes its steps.
    pub fn parts(&self) -> Parts<'_> {
        (self.program.as_ref(), &self.step, &self.system)
    }

    /// Set what depends on the targets; the system has the parameters of the model.
    fn bind_targets(&mut self, plan: &Plan, from: From, targets: &[f64]) {
        if plan.method.treatment == MethodTreatment::Feedback {
            self.bind_system(from.parameters, targets);
            self.gains = self.gains_at(plan.t0, &*self.system, from.x);
            self.bind_system(from.parameters, targets);
        }
        self.step.rebind(plan, &[from.parameters, targets, &self.gains].concat());
        if let Some(program) = &mut self.program {
            let start = Start { parameters: from.parameters, targets, x: from.x };
            program.rebind_for(plan, &start);
        }
    }

    /// Set the parameters of the system: the model's, then the targets and the gains of a treated
    /// field.
    fn bind_system(&mut self, parameters: &[f64], targets: &[f64]) {
        let all = [parameters, targets, &self.gains].concat();
        Arc::make_mut(&mut self.system).rebind(&all);
    }
}

/// True for a switching surface.
fn lands(rule: &EventRule) -> bool {
    rule.action == Action::Land
}

/// Set the sides of switching surfaces among the parameters of a model: they are the last ones.
pub(crate) fn put_sides(parameters: &mut [f64], rules: &[EventRule], memories: &[EventMemory]) {
    let first = parameters.len() - rules.iter().filter(|rule| lands(rule)).count();
    let sides = memories.iter().zip(rules).filter(|(_, rule)| lands(rule));
    for (parameter, (memory, _)) in parameters[first..].iter_mut().zip(sides) {
        *parameter = f64::from(memory.side);
    }
}
