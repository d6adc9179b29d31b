//! Simulations that take other values without being compiled again.
//!
//! What is compiled are formulas, and their parameters and starts are numbers. Decisions that are
//! made by trying them out stay those of the values with which the simulation was prepared, as in
//! an ensemble: the number of iterations that a loop of steps makes before it looks, the rate of
//! `feedback` and the strength of a penalty that are found by pilot runs.

use super::{From, Simulation, prepare, reference_state};
use crate::error::Error;
use crate::kernels::Parametric;
use crate::options::RunOptions;
use crate::problem::Problem;
use crate::pulses::heed;
use crate::recording::{InitialValues, Measuring};
use crate::starts::Starts;

/// Values of a simulation that may be set.
pub(super) struct Settable {
    names: Vec<String>,
    /// Number of values that the problem's settings give.
    fixed: usize,
    /// Number of warnings that do not depend on the values that are set.
    warnings: usize,
    starts: Starts,
    initial: InitialValues,
    /// True if formulas depend on the time itself.
    of_time: bool,
    /// Parameter values and initial state that are being set, and scratch.
    parameters: Vec<f64>,
    x: Vec<f64>,
    work: Vec<f64>,
}

/// Compile `problem` as [`prepare`] does, for runs with several values of these `names`: of
/// parameters and variables, of their members (`r[2]`) or components (`r[2].x`).
/// [`Simulation::set`] gives them. Until then they are those of the problem.
///
/// ```
/// use holonome::{Problem, RunOptions, prepare_settable};
///
/// let pendulum: Problem = "
///     parameter l = 1
///     coordinate q : R^2 = (0, -l)
///     momentum   p of q  = (1, 0)
///     hamiltonian dot(p, p)/2 + q.y
///     constraint  rod : dot(q, q) = l^2
/// ".parse()?;
/// let options = RunOptions { until: 2.0, ..RunOptions::default() };
/// let mut pendulum = prepare_settable(&pendulum, options, &["l", "p.x"])?;
/// pendulum.set(&[&[4.0], &[0.5]])?;
/// let solution = pendulum.solve()?;
/// // What follows from l follows: the start.
/// assert_eq!(solution["q"].row(0), [0.0, -4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`prepare`]; if the problem has no such values, or they decide about its structure.
pub fn prepare_settable(
    problem: &Problem,
    options: RunOptions,
    names: &[&str],
) -> Result<Simulation, Error> {
    let (problem, starts) = problem.settable(names)?;
    options.refuse_varied(&problem.model, |slot| starts.varies_parameter(slot))?;
    let mut simulation = prepare(problem, options)?;
    let starts = simulation.starts(starts);
    let model = &simulation.problem.model;
    let of_time = model.moves_with_time();
    simulation.settable = Some(Box::new(Settable {
        names: names.iter().map(ToString::to_string).collect(),
        fixed: simulation.problem.settings.given.len(),
        warnings: simulation.warnings.len(),
        initial: InitialValues::new(model, &simulation.groups),
        of_time,
        parameters: model.parameter_values.clone(),
        x: model.initial.clone(),
        work: starts.work(),
        starts,
    }));
    Ok(simulation)
}

impl Simulation {
    /// Set the values of the names with which [`prepare_settable`] made this simulation, in their
    /// order, each as many numbers as it has. The next run begins with them.
    ///
    /// # Errors
    /// If they are not as many; if they or what follows from them are not finite, or off the
    /// constraint set. The values then stay as they were.
    pub fn set(&mut self, values: &[&[f64]]) -> Result<(), Error> {
        let Some(settable) = &mut self.settable else {
            return Err(Error::option(
                "this simulation has no values to set: make it by `prepare_settable`",
            ));
        };
        let Settable { names, fixed, warnings, starts, initial, of_time, parameters, x, work } =
            &mut **settable;
        check_lengths(names, starts.widths(), values)?;
        starts
            .put(0, |number| values[number], (parameters, x), work)
            .map_err(|error| Error::option(error.of_run()))?;
        let method = self.plan.method;
        crate::step::recognised_with(&method, &self.problem.model, parameters, x)
            .map_err(|reason| Error::option(format!("`{method}` does not suit them: {reason}")))?;
        let given = &mut self.problem.settings.given;
        let before = given.split_off(*fixed);
        given.extend(names.iter().cloned().zip(values.iter().map(|numbers| numbers.to_vec())));
        let reference = reference_state(&self.problem, &self.options).inspect_err(|_| {
            self.problem.settings.given.truncate(*fixed);
            self.problem.settings.given.extend(before);
        })?;
        self.problem.model.set_values(parameters, x);
        if *of_time {
            self.warnings.truncate(*warnings);
            self.plan = heed(self.plan.clone(), &self.problem.model, &mut self.warnings)?;
            if let Some(Measuring { outputs, .. }) = &mut self.measuring {
                outputs.plan = outputs.plan.clone().with_moments(self.plan.moments().to_vec());
            }
        }
        let from = From { parameters, x, reference: reference.as_deref() };
        self.trajectory.restart(&self.plan, from);
        self.recorded.kernel.rebind(parameters);
        if let Some(measuring) = &mut self.measuring {
            measuring.kernel.rebind(parameters);
        }
        if let Some(multipliers) = &mut self.multipliers {
            multipliers.rebind(0, parameters);
        }
        let program = self.trajectory.program.as_ref().zip(self.plan.fixed_step());
        let modified =
            program.and_then(|(program, h)| program.monitored_energy((self.plan.t0, h), x));
        let values = &self.trajectory.state.values;
        self.initial = initial.of(&self.problem.model, &self.groups, values, modified);
        Ok(())
    }
}

/// Refuse values that are not as many as the names have.
fn check_lengths(names: &[String], widths: &[usize], values: &[&[f64]]) -> Result<(), Error> {
    if values.len() != names.len() {
        let (want, have) = (names.len(), values.len());
        return Err(Error::option(format!("{want} values can be set, and {have} are given")));
    }
    for ((name, width), numbers) in names.iter().zip(widths).zip(values) {
        if numbers.len() != *width {
            let have = numbers.len();
            return Err(Error::option(format!(
                "'{name}' has {width} numbers, and {have} are given"
            )));
        }
    }
    Ok(())
}
