//! The loop over time for a compiled problem, in which claims that fail are left out.

use super::trajectory::Parts;
use super::{From, Simulation, Trajectory};
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::store::StoreError;
use holonome_integrate::events::{EventMemory, EventRule};
use holonome_integrate::failure::Failure;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::run::{Outcome, run, run_map};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_model::treatment::InvariantGroup;
use std::sync::Arc;

impl Simulation {
    /// Run `plan` from `state` without storing anything. The plan is this simulation's, except for
    /// its outputs.
    pub(crate) fn run_unstored<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        let Trajectory { system, step, program, gains, rate, .. } = &self.trajectory;
        let model = &self.problem.model;
        Running {
            groups: &self.groups,
            parts: (program.as_ref(), step, system),
            gains: (gains, *rate),
            from: From { parameters: &model.parameter_values, x: &model.initial, reference: None },
            without: &|state| without_failed(&self.problem, &self.options, &self.groups, state),
        }
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
        let mut state = StepState::new(&plan, &*self.trajectory.system, x, None);
        let parameters = &self.problem.model.parameter_values;
        // Kernels of many equal steps contain the length of their steps.
        let program = self.trajectory.program.as_ref().map(|program| program.single(parameters));
        let targets = &state.target[self.constraints..];
        let step = self
            .trajectory
            .step
            .by_itself(&[&parameters[..], targets, &self.trajectory.gains].concat());
        let parts = (program.as_ref(), &step, &*self.trajectory.system);
        run_method(parts, &plan, &mut state, &mut NoObserver).map_err(unstored)?;
        Ok(state.x)
    }
}

/// Error of a run of which nothing is kept.
pub(super) fn unstored(failure: Failure<StoreError>) -> Error {
    let (failure, samples) = (Box::new(failure), 0);
    Error::Failed { failure, monitored: None, out: None, samples, kept: None }
}

/// Observer that does nothing.
pub(super) struct NoObserver;

impl Observer for NoObserver {
    type Error = StoreError;
}

/// Everything needed for a run, except its state.
pub(crate) struct Running<'a> {
    pub groups: &'a [InvariantGroup],
    pub parts: Parts<'a>,
    /// Gains of a feedback term, and its rate; see [`Trajectory`].
    pub gains: (&'a [f64], Option<f64>),
    pub from: From<'a>,
    /// Makes the simulation without the claims that have failed in a state.
    pub without: &'a (dyn Fn(&StepState) -> Result<Arc<Simulation>, Error> + Sync),
}

impl Running<'_> {
    /// Run `plan` from `state`. If a claim fails on the way, the run goes on over a system that
    /// does not hold it.
    pub fn run<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        let bound = |mut copy: Trajectory, state: &StepState| {
            copy.rebind(plan, self.from, state);
            copy
        };
        let rules = self.parts.2.events().map_or(&[][..], |events| events.rules());
        let set = |(memory, rule): (&EventMemory, &EventRule)| memory.sets(rule);
        let is_reset = state.events.iter().zip(rules).any(set);
        let mut reset = is_reset.then(|| bound(self.copy(state), state));
        let mut seen = state.step;
        loop {
            let holds_all =
                state.failed_claims.is_empty() || plan.method.treatment == MethodTreatment::Plain;
            let outcome = if !holds_all {
                let left =
                    (self.without)(state).map_err(|_| claim_fails(plan, self.groups, state))?;
                let mut rest = left.trajectory.clone();
                rest.rebind(plan, self.from, state);
                run_method(rest.parts(), plan, state, observer)?
            } else {
                let parts = reset.as_ref().map_or(self.parts, Trajectory::parts);
                run_method(parts, plan, state, observer)?
            };
            match outcome {
                Outcome::ClaimFailed => {}
                Outcome::Reset => {
                    // The observer sees steps that end so as it sees others.
                    if state.step > seen
                        && observer.step(state).map_err(Failure::Observer)? == Control::Stop
                    {
                        return Ok(Outcome::Stopped);
                    }
                    seen = state.step;
                    let copy = reset.take().unwrap_or_else(|| self.copy(state));
                    reset = Some(bound(copy, state));
                }
                _ => return Ok(outcome),
            }
        }
    }

    /// A trajectory with these parts, for other targets.
    fn copy(&self, state: &StepState) -> Trajectory {
        let (program, step, system) = self.parts;
        let (gains, rate) = self.gains;
        Trajectory {
            system: Arc::new(system.clone()),
            step: step.clone(),
            program: program.cloned(),
            gains: gains.to_vec(),
            rate,
            state: state.clone(),
        }
    }
}

/// Simulation of a problem without the claims that have failed in `state`.
pub(super) fn without_failed(
    problem: &Problem,
    options: &RunOptions,
    groups: &[InvariantGroup],
    state: &StepState,
) -> Result<Arc<Simulation>, Error> {
    // The model as it was read: the penalty is added anew.
    let Problem { name, source, tables, settings, model, .. } = problem;
    let mut problem = Problem::from_text(name, source.text(), tables, settings)?;
    if model.observed().next().is_none() {
        problem.model = problem.model.without_observables();
    }
    Simulation::without(problem, options.clone(), &failed_names(groups, state)).map(Arc::new)
}

/// Names of the claims that have failed.
pub(crate) fn failed_names(groups: &[InvariantGroup], state: &StepState) -> Vec<String> {
    state.failed_claims.iter().map(|claim| groups[claim.group].name.clone()).collect()
}

/// Failure of a run that cannot go on without the claim that failed last.
pub(crate) fn claim_fails<E>(
    plan: &Plan,
    groups: &[InvariantGroup],
    state: &StepState,
) -> Failure<E> {
    let last = state.failed_claims.last().expect("a claim has failed");
    let (t, claim) = (plan.clock(last.t), groups[last.group].name.clone());
    Failure::ClaimFails { t, claim, rate: last.rate }
}

/// Run `plan` with the map of its method. If threads share its sums, it runs among them: they then
/// wait least for each other, and allocate nothing.
pub(super) fn run_method<O: Observer<Error: Send> + Send>(
    (program, step, system): Parts,
    plan: &Plan,
    state: &mut StepState,
    observer: &mut O,
) -> Result<Outcome, Failure<O::Error>> {
    let mut run = || match program {
        Some(program) => run_map(plan, system, program.map(), state, observer),
        None => match step.map(plan, system) {
            Some(map) => run_map(plan, system, &*map, state, observer),
            None => run(plan, system, state, observer),
        },
    };
    if system.is_divided() { rayon::scope(|_| run()) } else { run() }
}
