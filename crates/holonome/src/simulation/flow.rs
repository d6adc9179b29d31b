//! Flows: the state after a time, as a function of the state.

use super::derivative::Derivative;
use super::stepping::{NoObserver, Running, unstored, without_failed};
use super::{From, Simulation, Trajectory, prepare};
use crate::backward;
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::starts::Checks;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::run::{FlowScratch, Outcome};
use holonome_words::option;
use rayon::prelude::*;

/// Flow of a problem by a numerical method, compiled once: it maps a state at the start of `options`
/// to that at their end. Every state keeps invariants of its own: a treatment holds the values
/// that they have there.
///
/// ```
/// use holonome::{Flow, Problem, RunOptions, StepSize};
///
/// let oscillator: Problem =
///     "coordinate q : R = 1\nmomentum p of q = 0\nhamiltonian (p^2 + q^2)/2".parse()?;
/// let (method, step) = ("gauss16".parse()?, StepSize::Fixed(0.1));
/// let mut flow =
///     Flow::new(&oscillator, RunOptions { method, step, until: 1.0, ..RunOptions::default() })?;
/// // Two states, one after the other.
/// let mut states = [1.0, 0.0, 0.0, 1.0];
/// flow.apply(&mut states)?;
/// let (sin, cos) = 1f64.sin_cos();
/// for (number, exact) in states.iter().zip([cos, -sin, sin, cos]) {
///     assert!((number - exact).abs() < 1e-14);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Flow {
    simulation: Simulation,
    plan: Plan,
    /// `None` if states may be off the constraint set.
    checks: Option<Checks>,
    worker: Worker,
    /// Made when it is first wanted.
    derivative: Option<Box<Derivative>>,
}

/// Trajectory that a thread moves, and its scratch.
struct Worker {
    trajectory: Trajectory,
    scratch: FlowScratch,
    work: Vec<f64>,
    /// A state with the work of the forces, 0 at its start.
    with_work: Vec<f64>,
}

/// Refuse options with which the end of a run is no function of its start.
fn refuse_others(options: &RunOptions) -> Result<(), Error> {
    let given = [
        ("reference", options.reference.is_some()),
        ("penalty", options.penalty.is_some() || options.penalty_tolerance.is_some()),
        ("thermostat", options.thermostat.is_some()),
        ("error", options.error),
        ("interpolant", options.interpolant),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Error::option(format!(
            "{}: a flow maps one state to another, and has no such option: leave it out, or run",
            option(name)
        ))),
        None => Ok(()),
    }
}

/// Error of a state, with its number if there are several.
fn of_state((number, count): (usize, usize), error: Error) -> Error {
    match count {
        1 => error,
        _ => Error::option(format!("state {number}: {error}")),
    }
}

/// Number of states from which on threads share them.
const SHARED: usize = 64;

impl Flow {
    /// Compile the flow of `problem` over the time of `options`: from the start of the problem to
    /// `until`.
    ///
    /// # Errors
    /// As [`prepare`]; if the options ask for something that is no function of the state: a heat
    /// bath, which draws, a reference, a penalty, which moves starts.
    pub fn new(problem: &Problem, options: RunOptions) -> Result<Flow, Error> {
        refuse_others(&options)?;
        backward::refuse(problem, &options, "a flow")?;
        let mut problem = problem.clone();
        problem.model = problem.model.without_observables();
        let checks = (!problem.settings.start_off_set).then(|| Checks::of_states(&problem));
        let options =
            RunOptions { samples: Some(2), every: None, at: None, record: None, ..options };
        let simulation = prepare(problem, options)?;
        if simulation.problem.model.heat_bath.is_some() {
            let method = simulation.plan.method;
            return Err(Error::option(format!(
                "`{method}` draws random numbers, and a flow is a function of the state: run it, or sweep"
            )));
        }
        let mut plan = Plan { gain: None, ..simulation.plan.clone() };
        match &mut plan.stepping {
            Stepping::Fixed(fixed) => fixed.samples.clear(),
            Stepping::Adaptive(adaptive) => adaptive.samples.clear(),
        }
        let work = checks.as_ref().map_or(0, |checks| checks.work_len(&simulation.problem.model));
        let (trajectory, scratch) = (simulation.trajectory.clone(), FlowScratch::default());
        let worker = Worker { trajectory, scratch, work: vec![0.0; work], with_work: Vec::new() };
        Ok(Flow { simulation, plan, checks, worker, derivative: None })
    }

    /// Number of numbers of a state: the variables in the order of the model, positions first.
    pub fn dim(&self) -> usize {
        self.simulation.problem.model.phase_dimension()
    }

    /// Warnings about the model, the method and the options.
    pub fn warnings(&self) -> Vec<String> {
        self.simulation.all_warnings()
    }

    /// Replace states, one after the other, by those to which they flow. Threads share many of
    /// them; the bits do not depend on that.
    ///
    /// # Errors
    /// If the states are not whole; if one is not finite or off the constraint set, or its run
    /// fails, with the number of the first such state. It and states after it may stay as they
    /// were.
    pub fn apply(&mut self, states: &mut [f64]) -> Result<(), Error> {
        let n = self.dim();
        if !states.len().is_multiple_of(n) {
            let have = states.len();
            return Err(Error::option(format!(
                "a state has {n} numbers, and {have} are not those of whole states"
            )));
        }
        let count = states.len() / n;
        let Flow { simulation, plan, checks, worker, .. } = self;
        let map = Map { simulation, plan, checks: checks.as_ref() };
        if count < SHARED {
            let mut states = states.chunks_exact_mut(n).enumerate();
            return states.try_for_each(|(number, x)| {
                map.apply(worker, x).map_err(|error| of_state((number, count), error))
            });
        }
        let chunk = count.div_ceil(rayon::current_num_threads()).clamp(1, count);
        let failed = states.par_chunks_mut(chunk * n).enumerate().map(|(part, states)| {
            let mut worker = worker.copied();
            let mut states = states.chunks_exact_mut(n).enumerate();
            let failed = states.find_map(|(number, x)| {
                Some((part * chunk + number, map.apply(&mut worker, x).err()?))
            });
            failed.map_or(Ok(()), Err)
        });
        let first = failed.filter_map(Result::err).min_by_key(|(number, _)| *number);
        first.map_or(Ok(()), |(number, error)| Err(of_state((number, count), error)))
    }
}

impl Flow {
    /// Replace states as [`Flow::apply`] does, and tangent vectors of each by those at its end:
    /// products of the derivative M = ∂x₁/∂x₀ with them. `tangents` has as many vectors for each
    /// state, one after the other.
    ///
    /// The derivative is that of the computed map: of the steps' formulas, of their equations by
    /// implicit differentiation, and of their treatment, with the values that it holds as functions
    /// of x₀. Only the metric of a treatment and the gains of `feedback` are taken as constant: they
    /// are estimates. So M of a symplectic method is symplectic to rounding. On a constraint set M
    /// maps tangent vectors of the set to such; along others it is whatever the formulas give there.
    ///
    /// # Errors
    /// As [`Flow::apply`]; if the steps are not equal ones; if the model is too large to be
    /// unrolled.
    pub fn apply_with_tangents(
        &mut self,
        states: &mut [f64],
        tangents: &mut [f64],
    ) -> Result<(), Error> {
        let n = self.dim();
        let count = states.len() / n;
        let per_state = tangents.len().checked_div(count).unwrap_or(0);
        if tangents.len() != count * per_state || !per_state.is_multiple_of(n) {
            let have = tangents.len();
            return Err(Error::option(format!(
                "{count} states have as many tangent vectors of {n} numbers each, and {have} numbers are not those"
            )));
        }
        if self.derivative.is_none() {
            self.derivative = Some(Box::new(Derivative::new(&self.simulation)?));
        }
        let starts = states.to_vec();
        self.apply(states)?;
        let Flow { simulation, plan, derivative, .. } = self;
        let derivative = derivative.as_deref_mut().expect("it has just been made");
        if per_state == 0 {
            return Ok(());
        }
        let chunk = count.div_ceil(rayon::current_num_threads()).max(1);
        let failed =
            tangents.par_chunks_mut(chunk * per_state).enumerate().map(|(part, tangents)| {
                let mut derivative = derivative.clone();
                let starts = starts.chunks_exact(n).enumerate().skip(part * chunk);
                let mut each = starts.zip(tangents.chunks_exact_mut(per_state));
                let works = simulation.problem.model.work().is_some();
                let failed = each.find_map(|((number, x), tangents)| {
                    let mut apply =
                        |x: &[f64], v: &mut [f64]| derivative.apply(simulation, plan, x, v);
                    let result = match works {
                        true => with_work(x, tangents, apply),
                        false => apply(x, tangents),
                    };
                    Some((number, result.err()?))
                });
                failed.map_or(Ok(()), Err)
            });
        let first = failed.filter_map(Result::err).min_by_key(|(number, _)| *number);
        first.map_or(Ok(()), |(number, error)| Err(of_state((number, count), error)))
    }

    /// Replace states as [`Flow::apply`] does, and return the derivative M of each, row by row:
    /// `M[i][j]` = ∂x₁ᵢ/∂x₀ⱼ. See [`Flow::apply_with_tangents`].
    ///
    /// # Errors
    /// As [`Flow::apply_with_tangents`].
    pub fn apply_with_derivative(&mut self, states: &mut [f64]) -> Result<Vec<f64>, Error> {
        let n = self.dim();
        let count = states.len() / n;
        let unit = |k: usize| f64::from(u8::from(k % n == k / n % n));
        let mut matrices: Vec<f64> = (0..count * n * n).map(unit).collect();
        self.apply_with_tangents(states, &mut matrices)?;
        for matrix in matrices.chunks_exact_mut(n * n) {
            for i in 0..n {
                for j in 0..i {
                    matrix.swap(i * n + j, j * n + i);
                }
            }
        }
        Ok(matrices)
    }
}

/// Applies a map of states with the work of the forces to a state and tangent vectors without it.
fn with_work(
    x: &[f64],
    tangents: &mut [f64],
    mut apply: impl FnMut(&[f64], &mut [f64]) -> Result<(), Error>,
) -> Result<(), Error> {
    let n = x.len();
    let all: Vec<f64> = x.iter().copied().chain([0.0]).collect();
    let vectors = tangents.chunks_exact(n);
    let mut wide: Vec<f64> = vectors.flat_map(|v| v.iter().copied().chain([0.0])).collect();
    apply(&all, &mut wide)?;
    for (v, wide) in tangents.chunks_exact_mut(n).zip(wide.chunks_exact(n + 1)) {
        v.copy_from_slice(&wide[..n]);
    }
    Ok(())
}

/// What all threads share.
struct Map<'a> {
    simulation: &'a Simulation,
    plan: &'a Plan,
    checks: Option<&'a Checks>,
}

impl Map<'_> {
    fn apply(&self, worker: &mut Worker, x: &mut [f64]) -> Result<(), Error> {
        if self.simulation.problem.model.work().is_none() {
            return self.apply_to_all(worker, x);
        }
        let mut all = std::mem::take(&mut worker.with_work);
        all.clear();
        all.extend(x.iter().chain([&0.0]));
        let result = self.apply_to_all(worker, &mut all);
        x.copy_from_slice(&all[..x.len()]);
        worker.with_work = all;
        result
    }

    /// Moves a state with all that the model integrates.
    fn apply_to_all(&self, worker: &mut Worker, x: &mut [f64]) -> Result<(), Error> {
        let Map { simulation: Simulation { problem, options, groups, .. }, plan, .. } = *self;
        let model = &problem.model;
        let parameters = &model.parameter_values;
        self.check(&mut worker.work, x)?;
        let Worker { trajectory, scratch, .. } = worker;
        if trajectory.flow(plan, parameters, x, scratch) {
            return Ok(());
        }
        let from = From { parameters, x, reference: None };
        trajectory.restart(plan, from);
        let Trajectory { system, step, program, state, gains, rate } = trajectory;
        let running = Running {
            groups,
            parts: (program.as_ref(), step, system),
            gains: (gains, *rate),
            from,
            without: &|state| without_failed(problem, options, groups, state),
        };
        let outcome = running.run(plan, state, &mut NoObserver);
        if outcome.map_err(unstored)? == Outcome::Event {
            return Err(Error::option(format!(
                "a flow ends at its time, and an event stops it at t = {}: run the model, or leave the `stop` out",
                plan.clock(state.t)
            )));
        }
        x.copy_from_slice(&state.x);
        Ok(())
    }

    fn check(&self, work: &mut [f64], x: &[f64]) -> Result<(), Error> {
        let model = &self.simulation.problem.model;
        if let Some(k) = x.iter().position(|number| !number.is_finite()) {
            let name = &model.component_names()[k];
            return Err(Error::option(format!("{name} is {}: not a finite number", x[k])));
        }
        let missed = self
            .checks
            .and_then(|checks| checks.first_miss(model, &model.parameter_values, x, work));
        match missed {
            Some(miss) => Err(Error::option(format!("the state does not meet {miss}"))),
            None => Ok(()),
        }
    }
}

impl Worker {
    fn copied(&self) -> Worker {
        let (trajectory, scratch) = (self.trajectory.clone(), FlowScratch::default());
        Worker { trajectory, scratch, work: self.work.clone(), with_work: Vec::new() }
    }
}
