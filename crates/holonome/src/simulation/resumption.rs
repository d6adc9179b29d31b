//! Resumed runs: interrupted ones, and those that are extended.

use super::{Simulation, prepare};
use crate::error::Error;
use crate::options::{RunOptions, Settings, StartRun};
use crate::output::{RunFolder, no_checkpoint};
use crate::problem::Problem;
use crate::store::{ResumedStore, Status, Store, StoreError, StoredRun};
use crate::summary::StoredSummary;
use holonome_integrate::method::Method;
use holonome_integrate::state::StepState;
use holonome_model::elaborate::model::{Dynamics, Role};
use holonome_model::elaborate::names::velocity_of;
use holonome_model::rows::RowProgram;
use holonome_words::option;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A run or an ensemble that was opened to be resumed.
pub enum Resumed<T> {
    /// Resumed at its last checkpoint.
    Continues(Box<T>),
    /// Not resumed: it had reached its end, and is unchanged.
    Finished {
        /// Its stored summary.
        summary: Box<StoredSummary>,
        /// The JSON object that was printed when it ended.
        json: Value,
    },
}

impl<T> Resumed<T> {
    pub(crate) fn finished(json: Value) -> Resumed<T> {
        Resumed::Finished { summary: Box::new(StoredSummary::from(&json)), json }
    }
}

/// What a run is given to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Longer {
    /// A later end.
    pub until: Option<f64>,
    /// A larger number of steps, rejected ones included.
    pub max_steps: Option<u64>,
}

impl Simulation {
    /// Open an interrupted run.
    ///
    /// # Errors
    /// If the folder is not a run, or is damaged; if its method has a scheme that is not known
    /// here, see [`register`](crate::method::register).
    pub fn resume(path: impl AsRef<Path>) -> Result<Resumed<Simulation>, Error> {
        let path = path.as_ref();
        let (store, state) = match Store::resume(path).map_err(Error::store)? {
            ResumedStore::Finished { summary } => {
                return Ok(Resumed::finished(summary));
            }
            ResumedStore::Continues { store, state } => (*store, state),
        };
        let (problem, options) =
            (stored_problem(path, store.attributes())?, stored_options(path, store.attributes())?);
        let mut simulation = prepare(problem, options)?;
        if let Some(state) = state {
            simulation.go_on(state.state().map_err(Error::store)?, path)?;
        }
        simulation.folder = RunFolder::Open(Box::new(store));
        Ok(Resumed::Continues(Box::new(simulation)))
    }

    /// Open a run, finished or not, to extend it to a later end. Its result is that of a run to
    /// `until` whose samples have the spacing of this run.
    ///
    /// # Errors
    /// If the folder is not a run, is damaged or holds an ensemble; if its method has a scheme that
    /// is not known here, see [`register`](crate::method::register); if `until` is not later than
    /// the run's own end; if a value chosen at the start depends on the end.
    pub fn extend(path: impl AsRef<Path>, until: f64) -> Result<Simulation, Error> {
        Simulation::prolong(path, Longer { until: Some(until), max_steps: None })
    }

    /// Open a run to go on to a later end, with a larger number of steps, or both. Its result is
    /// that of a run that had these options from the start, with samples that have the spacing of
    /// this run.
    ///
    /// # Errors
    /// As [`Simulation::extend`]; if the run is finished and has no later end.
    pub fn prolong(path: impl AsRef<Path>, longer: Longer) -> Result<Simulation, Error> {
        let path = path.as_ref();
        let run = open_run(path)?;
        let shown = path.display();
        if run.trajectories().is_some() {
            let given = match longer.until {
                Some(_) => format!("a later {}", option("until")),
                None => format!("a larger {}", option("max_steps")),
            };
            return Err(Error::option(format!(
                "{shown} is an ensemble: make it again with {given}"
            )));
        }
        let (problem, options) =
            (stored_problem(path, run.attributes())?, stored_options(path, run.attributes())?);
        let max_steps = longer.max_steps.or(options.max_steps);
        let old_end = options.until;
        // A run that was stopped on its way to a later end has that end already.
        let is_new = |until: &f64| *until != old_end || run.status() == Status::Finished;
        let Some(until) = longer.until.filter(is_new) else {
            return Simulation::with_limit(
                path,
                &run,
                problem,
                RunOptions { max_steps, ..options },
            );
        };
        if options.at.is_some() {
            return Err(Error::option(format!(
                "{shown} has samples at times that were listed, so it cannot be extended: run the model again with {} and more of them",
                option("until").with(until)
            )));
        }
        let backwards = old_end < problem.model.t0;
        let is_later = if backwards { until < old_end } else { until > old_end };
        if !(is_later && until.is_finite()) {
            let later = if backwards { "earlier" } else { "later" };
            return Err(Error::option(format!(
                "{} must be {later} than t = {old_end}, where {shown} ends, but it is {until}",
                option("until")
            )));
        }
        let sampled_until = match options.every {
            // Measures without a spacing of their own keep their previous one.
            Some(_) if problem.model.measures.iter().all(|measure| measure.every.is_some()) => None,
            _ => Some(options.sampled_until.unwrap_or(old_end)),
        };
        let longer = RunOptions { until, sampled_until, max_steps, ..options.clone() };
        let before = prepare(problem, options)?;
        // Claims are tested over the whole time of a run.
        let mut settings: Settings = stored(path, run.attributes(), "settings")?;
        settings.span = settings.span.map(|(from, _)| (from, Some(until)));
        let mut simulation = prepare(problem_with(path, run.attributes(), &settings)?, longer)?;
        let chosen = |simulation: &Simulation| {
            (
                simulation.gain_text.clone(),
                simulation.penalty.as_ref().map(|penalty| penalty.omega.to_bits()),
            )
        };
        if chosen(&before) != chosen(&simulation) {
            return Err(Error::option(format!(
                "{shown} cannot be extended: its gain or its penalty was chosen for an end at t = {old_end}; run the model again with {}",
                option("until").with(until)
            )));
        }
        let state: Option<StepState> = run.checkpoint_state().map_err(Error::store)?;
        if state.is_none() && run.status() == Status::Finished {
            return Err(no_checkpoint(path));
        }
        simulation.replace(path, state.map(StepState::without_end))?;
        Ok(simulation)
    }

    /// Open a run that is not finished, to go on with these options: another number of steps.
    fn with_limit(
        path: &Path,
        run: &StoredRun,
        problem: Problem,
        options: RunOptions,
    ) -> Result<Simulation, Error> {
        if run.status() == Status::Finished {
            return Err(Error::option(format!(
                "{} is finished (t = {}): only a later {} makes it longer",
                path.display(),
                options.until,
                option("until")
            )));
        }
        let mut simulation = prepare(problem, options)?;
        simulation.replace(path, run.checkpoint_state().map_err(Error::store)?)?;
        Ok(simulation)
    }

    /// Let this simulation go on from a state of the run at `path`, in a folder that replaces that
    /// of the run.
    fn replace(&mut self, path: &Path, state: Option<StepState>) -> Result<(), Error> {
        let rows = match state {
            Some(state) => {
                let made = state.step + state.cost.rejected;
                if made >= self.plan.step_limit {
                    return Err(Error::option(format!(
                        "{} has made {made} steps: {} must be larger",
                        path.display(),
                        option("max_steps")
                    )));
                }
                self.go_on(state, path)?;
                self.samples_of(&self.trajectory.state)
            }
            None => 0,
        };
        let store = Store::extend(path, &self.layout(), rows, &self.trajectory.state);
        self.folder = RunFolder::Open(Box::new(store.map_err(Error::store)?));
        Ok(())
    }

    /// Continue from a stored state.
    ///
    /// # Errors
    /// If it is a state of another model, or its steps carry other data than those of this
    /// simulation, as steps of another version may.
    pub(super) fn go_on(&mut self, state: StepState, path: &Path) -> Result<(), Error> {
        let states = [Some(&state), state.tested.as_deref(), state.before_end.as_deref()];
        if let Some(other) = states
            .into_iter()
            .flatten()
            .find(|other| other.x.len() != self.trajectory.state.x.len())
        {
            let reason = format!(
                "its state has {} numbers, but the model {}",
                other.x.len(),
                self.trajectory.state.x.len()
            );
            return Err(Error::store(StoreError::damaged(&path.join("checkpoint.bin"), reason)));
        }
        let (stored, own) = (
            state.memory.len(),
            self.trajectory.program.as_ref().map_or(0, |program| program.map().memory_len()),
        );
        if self.trajectory.program.is_some() && stored != own && stored != 0 {
            let reason = format!(
                "its steps carry {stored} numbers, but {own} here: another version has written it"
            );
            return Err(Error::store(StoreError::damaged(&path.join("checkpoint.bin"), reason)));
        }
        self.trajectory.state = state;
        Ok(())
    }
}

/// Error of a run whose attribute `key` cannot be read.
pub(crate) fn unreadable(path: &Path, key: &str) -> Error {
    Error::store(StoreError::NotARun {
        path: path.to_path_buf(),
        reason: format!("its {key} cannot be read"),
    })
}

/// Options of the run at `path` with these attributes.
///
/// # Errors
/// If they cannot be read; if the method is not known here.
pub(crate) fn stored_options(
    path: &Path,
    attributes: &Map<String, Value>,
) -> Result<RunOptions, Error> {
    let options = attributes.get("options").ok_or_else(|| unreadable(path, "options"))?;
    if let Some(method) = options["method"].as_str()
        && let Err(reason) = Method::named(method)
    {
        return Err(Error::option(format!(
            "{} was made by `{method}`, but {reason}: a scheme of one's own has to be registered, by the program that \
             defines it, with `method::register`",
            path.display()
        )));
    }
    serde_json::from_value(options.clone()).map_err(|_| unreadable(path, "options"))
}

impl Settings {
    /// Begin at the last state of the run at `path`: its variables are values of the start.
    ///
    /// # Errors
    /// If it is no run of one trajectory, or has no state.
    pub fn start_at(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let run = open_run(path)?;
        let no_start = |why: &str| {
            let text = path.display().to_string();
            Err(Error::option(format!("{}: {why}", option("start").with(text))))
        };
        if run.trajectories().is_some() {
            return no_start("an ensemble has no last state, take the values of a trajectory");
        }
        let (problem, options) = origin(&run)?;
        let Some(state) = run.checkpoint_state::<StepState>().map_err(Error::store)? else {
            return no_start("the run has no state yet");
        };
        let (model, mut x, mut t) = (&problem.model, state.x, state.t);
        if options.until < model.t0 {
            // The state of a run backwards is that of the reversed model.
            model.turn_momenta(&mut x, 1);
            t = -t;
        }
        // A Lagrangian makes the momenta, and velocities give its start.
        let velocities = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) if model.lagrangian.is_some() => {
                RowProgram::momentum_slopes(h, model.degrees()).evaluate(
                    t,
                    &x,
                    &model.parameter_values,
                )
            }
            _ => Vec::new(),
        };
        // The work of forces is counted from the start of a run.
        let variables = model.variables.iter().filter(|variable| variable.role != Role::Work);
        let values = variables.map(|variable| {
            let (first, len) = (variable.first, variable.family.len());
            match variable.role {
                Role::Momentum(of) if !velocities.is_empty() => {
                    let numbers = &velocities[first - model.degrees()..][..len];
                    (velocity_of(&model.variables[of].family.name), numbers.to_vec())
                }
                _ => (variable.family.name.clone(), x[first..first + len].to_vec()),
            }
        });
        let values: Vec<(String, Vec<f64>)> = values.collect();
        let names = model.events.iter().flat_map(|event| {
            (0..event.quantity.members).map(|member| event.quantity.member_name(member))
        });
        let counts = names.zip(state.events.iter().map(|memory| memory.count)).collect();
        let path = path.display().to_string();
        self.start = Some(StartRun { path, values: values.len(), counts });
        self.given.splice(0..0, values);
        Ok(())
    }
}

/// Problem and options of a stored run or ensemble, from which it is made again.
///
/// # Errors
/// If they cannot be read.
pub fn origin(run: &StoredRun) -> Result<(Problem, RunOptions), Error> {
    let (path, attributes) = (run.path(), run.attributes());
    Ok((stored_problem(path, attributes)?, stored_options(path, attributes)?))
}

/// Problem of the run at `path` with these attributes.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn stored_problem(
    path: &Path,
    attributes: &Map<String, Value>,
) -> Result<Problem, Error> {
    problem_with(path, attributes, &stored(path, attributes, "settings")?)
}

/// Problem of the run at `path` with these attributes, with other settings.
fn problem_with(
    path: &Path,
    attributes: &Map<String, Value>,
    settings: &Settings,
) -> Result<Problem, Error> {
    let tables: BTreeMap<String, String> = stored(path, attributes, "tables")?;
    let (model, source): (String, String) =
        (stored(path, attributes, "model")?, stored(path, attributes, "source")?);
    // The name of a model is that of a file, without a folder.
    if Path::new(&model).file_name() != Some(model.as_ref()) {
        return Err(unreadable(path, "model"));
    }
    Problem::from_text(&model, &source, &tables, settings)
}

/// Attribute `key` of the run at `path`.
pub(crate) fn stored<T: DeserializeOwned>(
    path: &Path,
    attributes: &Map<String, Value>,
    key: &str,
) -> Result<T, Error> {
    let value = attributes.get(key).cloned().ok_or_else(|| unreadable(path, key))?;
    serde_json::from_value(value).map_err(|_| unreadable(path, key))
}

/// Open a stored run for reading.
///
/// # Errors
/// If the folder is not a run.
pub fn open_run(path: impl AsRef<Path>) -> Result<StoredRun, Error> {
    let path = path.as_ref();
    StoredRun::open(path).map_err(Error::store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    #[test]
    fn states_whose_steps_carried_something_else_are_refused() {
        let text = "coordinate q : R^2 = (1, 0)\nmomentum p of q = (0, 1)\nhamiltonian dot(p, p)/2\n\
                    constraint rod : dot(q, q) = 1\n";
        let problem =
            Problem::from_text("rod", text, &BTreeMap::new(), &Settings::default()).unwrap();
        let step = crate::StepSize::Fixed(0.1);
        let options = RunOptions {
            method: "rattle".parse().unwrap(),
            step,
            until: 1.0,
            ..RunOptions::default()
        };
        let mut simulation = prepare(problem, options).unwrap();
        let own = simulation.trajectory.program.as_ref().unwrap().map().memory_len();
        let fresh = simulation.trajectory.state.clone();
        let carrying = |count: usize| StepState { memory: vec![0.0; count], ..fresh.clone() };
        for count in [0, own] {
            simulation.go_on(carrying(count), Path::new("run")).unwrap();
        }
        let longer = StepState { x: vec![0.0; 7], ..fresh.clone() };
        let error = simulation.go_on(longer, Path::new("run")).unwrap_err().to_string();
        assert!(error.contains("its state has 7 numbers, but the model 4"), "{error}");
        let error = simulation.go_on(carrying(own + 1), Path::new("run")).unwrap_err().to_string();
        assert!(
            error.contains("another version") && error.contains("make the run again"),
            "{error}"
        );
    }
}
