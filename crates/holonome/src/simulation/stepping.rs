//! The loop over time for a compiled problem, in which claims that fail are left out.

use super::Simulation;
use crate::error::Error;
use crate::kernels::{CompiledStep, CompiledSystem};
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::step::Program;
use crate::store::StoreError;
use holonome_integrate::failure::Failure;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::observer::Observer;
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::run::{Outcome, run, run_map};
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::state::StepState;
use holonome_model::treatment::InvariantGroup;

impl Simulation {
    /// Run `plan` from `state` without storing anything. The plan is this simulation's, except for
    /// its outputs.
    pub(crate) fn run_unstored<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        let Simulation { problem, options, groups, step, system, .. } = self;
        Running { problem, options, groups, program: self.program.as_ref(), step, system }
            .run(plan, state, observer)
    }

    /// State after `count` steps of length h from (t, x), forward or backward, without a store: for
    /// examining the map itself. A treatment has the invariants of x as its targets.
    ///
    /// # Errors
    /// If a step fails.
    ///
    /// # Panics
    /// If x does not have the model's length.
    pub fn steps(&self, (t, h): (f64, f64), count: u64, x: &[f64]) -> Result<Vec<f64>, Error> {
        let fixed = FixedSteps { h, steps: count, shorter_last: None, samples: Vec::new() };
        let plan = Plan { t0: t, stepping: Stepping::Fixed(fixed), ..self.plan.clone() };
        let mut state = StepState::new(&plan, &*self.system, x, None);
        // Kernels of many equal steps contain the length of their steps.
        let program = self
            .program
            .as_ref()
            .map(|program| program.rebound(&self.problem.model.parameter_values));
        let all = [
            &self.problem.model.parameter_values[..],
            &state.target[self.constraints..],
            &self.gains,
        ]
        .concat();
        let step = self.step.by_itself(&all);
        run_method(program.as_deref(), &step, &plan, &self.system, &mut state, &mut NoObserver)
            .map_err(|failure| Error::Failed {
                failure: Box::new(failure),
                monitored: None,
                out: None,
                samples: 0,
                kept: None,
            })?;
        Ok(state.x)
    }
}

/// Observer that does nothing.
struct NoObserver;

impl Observer for NoObserver {
    type Error = StoreError;
}

/// Everything needed for a run, except its state.
pub(super) struct Running<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a RunOptions,
    pub(super) groups: &'a [InvariantGroup],
    pub(super) program: Option<&'a Program>,
    pub(super) step: &'a CompiledStep,
    pub(super) system: &'a CompiledSystem,
}

impl Running<'_> {
    /// Run `plan` from `state`. If a claim fails on the way, the run goes on over a system that
    /// does not hold it.
    pub(super) fn run<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        loop {
            let outcome = if state.failed_claims.is_empty()
                || plan.method.treatment == MethodTreatment::Plain
            {
                run_method(
                    self.program.map(Program::map),
                    self.step,
                    plan,
                    self.system,
                    state,
                    observer,
                )?
            } else {
                let left =
                    self.without_failed(state).map_err(|_| claim_fails(self.groups, state))?;
                run_method(
                    left.program.as_ref().map(Program::map),
                    &left.step,
                    plan,
                    &left.system,
                    state,
                    observer,
                )?
            };
            if outcome != Outcome::ClaimFailed {
                return Ok(outcome);
            }
        }
    }

    fn without_failed(&self, state: &StepState) -> Result<Simulation, Error> {
        // The model as it was read: the penalty is added anew.
        let Problem { name, source, tables, settings, model, .. } = self.problem;
        let mut problem = Problem::from_text(name, source.text(), tables, settings)?;
        if model.observed().next().is_none() {
            problem.model = problem.model.without_observables();
        }
        Simulation::without(problem, self.options.clone(), &failed_names(self.groups, state))
    }
}

/// Names of the claims that have failed.
pub(crate) fn failed_names(groups: &[InvariantGroup], state: &StepState) -> Vec<String> {
    state.failed_claims.iter().map(|claim| groups[claim.group].name.clone()).collect()
}

/// Failure of a run that cannot go on without the claim that failed last.
pub(crate) fn claim_fails<E>(groups: &[InvariantGroup], state: &StepState) -> Failure<E> {
    let last = state.failed_claims.last().expect("a claim has failed");
    Failure::ClaimFails { t: last.t, claim: groups[last.group].name.clone(), rate: last.rate }
}

/// Run `plan` with the map of its method. If threads share its sums, it runs among them: they then
/// wait least for each other, and allocate nothing.
pub(crate) fn run_method<O: Observer<Error: Send> + Send>(
    program: Option<&dyn StepMap>,
    step: &CompiledStep,
    plan: &Plan,
    system: &CompiledSystem,
    state: &mut StepState,
    observer: &mut O,
) -> Result<Outcome, Failure<O::Error>> {
    let mut run = || match program {
        Some(program) => run_map(plan, system, program, state, observer),
        None => match step.map(plan, system) {
            Some(map) => run_map(plan, system, &*map, state, observer),
            None => run(plan, system, state, observer),
        },
    };
    if system.is_divided() { rayon::scope(|_| run()) } else { run() }
}
