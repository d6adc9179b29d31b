//! The loop over time for a compiled problem, with claims left out that fail on the way.

use super::{Simulation, prepare};
use crate::compiled::{CompiledStep, CompiledSystem};
use crate::error::Error;
use crate::options::RunOptions;
use crate::penalty::Followed;
use crate::problem::Problem;
use crate::store::StoreError;
use crate::structured::Program;
use holonome_integrate::failure::Failure;
use holonome_integrate::method::Treatment;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::run::{Outcome, run, run_map};
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::state::StepState;
use holonome_model::treatment::InvariantGroup;
use std::convert::Infallible;

impl Simulation {
    /// Runs `plan` from `state` and stores nothing. The plan is this simulation's, but for its outputs.
    pub(crate) fn run_unstored<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        let Simulation { problem, options, groups, step, system, .. } = self;
        Running { problem, options, groups, program: self.program.as_ref(), step, system }.run(plan, state, observer)
    }

    /// The state after `count` steps of the length h from (t, x), forward or backward, without a store: for looking at the
    /// map itself. A treatment aims at the invariants of x.
    ///
    /// # Errors
    /// When a step fails.
    ///
    /// # Panics
    /// If x has not the model's length.
    pub fn steps(&self, (t, h): (f64, f64), count: u64, x: &[f64]) -> Result<Vec<f64>, Error> {
        let fixed = FixedSteps { h, steps: count, shorter_last: None, samples: Vec::new() };
        let plan = Plan { t0: t, stepping: Stepping::Fixed(fixed), ..self.plan.clone() };
        let mut state = StepState::new(&plan, &*self.system, x, None);
        // What makes many equal steps has their length in it.
        let program = self.program.as_ref().map(|program| program.rebound(&self.problem.model.parameter_values));
        let all = [&self.problem.model.parameter_values[..], &state.target[self.constraints..], &self.gains].concat();
        let step = self.step.by_itself(&all);
        run_method(program.as_deref(), &step, &plan, &self.system, &mut state, &mut Unwatched).map_err(|failure| {
            Error::Failed { failure: Box::new(failure), watched: None, out: None, samples: 0, kept: None }
        })?;
        Ok(state.x)
    }
}

/// Nobody watches.
struct Unwatched;

impl Observer for Unwatched {
    type Error = StoreError;
}

/// Follows the motion of a problem in a run of its own.
///
/// # Errors
/// When it cannot be prepared.
pub(super) fn follow(
    problem: Problem,
    options: RunOptions,
    look: &mut (dyn FnMut(f64, &[f64]) + Send),
) -> Result<Followed, Error> {
    let simulation = prepare(problem, options)?;
    let mut state = simulation.state().clone();
    look(state.t, &state.x);
    let outcome = simulation.run_unstored(&simulation.plan, &mut state, &mut Shown(look));
    Ok(Followed { x: state.x, failure: outcome.err().map(|failure| failure.to_string()) })
}

/// Shows every step and sample.
struct Shown<'a>(&'a mut (dyn FnMut(f64, &[f64]) + Send));

impl Observer for Shown<'_> {
    type Error = Infallible;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), Infallible> {
        (self.0)(t, x);
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        (self.0)(state.t, &state.x);
        Ok(Control::Continue)
    }
}

/// What it takes to run, without the state.
pub(super) struct Running<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a RunOptions,
    pub(super) groups: &'a [InvariantGroup],
    pub(super) program: Option<&'a Program>,
    pub(super) step: &'a CompiledStep,
    pub(super) system: &'a CompiledSystem,
}

impl Running<'_> {
    /// Runs `plan` from `state`. Where a claim fails on the way, the run goes on over a system that does not hold it.
    pub(super) fn run<O: Observer<Error: Send> + Send>(
        &self,
        plan: &Plan,
        state: &mut StepState,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        loop {
            let outcome = if state.failed_claims.is_empty() || plan.method.treatment == Treatment::Plain {
                run_method(self.program.map(Program::map), self.step, plan, self.system, state, observer)?
            } else {
                let left = self.without_failed(state).map_err(|_| claim_fails(self.groups, state))?;
                run_method(left.program.as_ref().map(Program::map), &left.step, plan, &left.system, state, observer)?
            };
            if outcome != Outcome::ClaimFailed {
                return Ok(outcome);
            }
        }
    }

    fn without_failed(&self, state: &StepState) -> Result<Simulation, Error> {
        // The model as it was read: a penalty is put into it anew.
        let Problem { name, source, tables, settings, model, .. } = self.problem;
        let mut problem = Problem::from_text(name, source.text(), tables, settings)?;
        if model.observed().next().is_none() {
            problem.model = problem.model.without_observables();
        }
        Simulation::without(problem, self.options.clone(), &failed_names(self.groups, state))
    }
}

/// The names of the claims that have failed.
pub(crate) fn failed_names(groups: &[InvariantGroup], state: &StepState) -> Vec<String> {
    state.failed_claims.iter().map(|claim| groups[claim.group].name.clone()).collect()
}

/// The failure of a run that cannot go on without the claim that failed last.
pub(crate) fn claim_fails<E>(groups: &[InvariantGroup], state: &StepState) -> Failure<E> {
    let last = state.failed_claims.last().expect("a claim has failed");
    Failure::ClaimFails { t: last.t, claim: groups[last.group].name.clone(), rate: last.rate }
}

/// Runs `plan` with the map of its method, among the threads that share its sums where there are such sums: they wait for
/// each other least that way, and allocate nothing.
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
