//! Ensembles: one model, many initial values or parameters.
//!
//! A trajectory depends on its number alone, and rows are stored in the order of numbers, so stored
//! results do not depend on threads, lanes, parts or processes. Trajectories are computed and stored
//! in blocks, by one process or by many that share a folder and nothing else; sums over the
//! trajectories are stored for each block and joined in the order of the blocks.

mod batch;
mod blocks;
mod difference;
mod environment;
mod lanes;
mod merge;
mod status;
mod tally;
#[cfg(test)]
mod tests;

pub use blocks::Share;
use blocks::{Steps, TASK_NUMBERS, TASKS_PER_THREAD};
use difference::difference;
use lanes::SweepLanes;
pub use merge::merge;
pub use status::{SweepStatus, status};
use tally::Tally;

use crate::arrays::{Array, Arrays};
use crate::error::Error;
use crate::footprint::Footprint;
use crate::hold;
use crate::kernels::{CompiledLanes, CompiledStep, Parametric, StepSource};
use crate::measure::Table;
use crate::options::{RunOptions, Settings, SweepOptions};
use crate::policy::LONGEST_LOOP;
use crate::problem::Problem;
use crate::recording::{
    Place, RecordedArray, RunMeasure, TIME, UnitLabels, deviation, members_of_family,
    own_dimensions,
};
use crate::serial;
use crate::simulation::{
    OF_MODELS, Parameters, Resumed, Simulation, Trajectory, failed_names, open_run,
    reference_state, stored, stored_options,
};
use crate::starts::Starts;
use crate::step::{Program, Start};
use crate::store::{
    ArrayLayout, Dimension, EnsembleStore, Group, Layout, Status, read_values, units_attribute,
};
use crate::summary::{self, Drift, Drifts, Ending, Relative, RunCost, is_varying, large_drifts};
use batch::{EVENT_ARRAYS, EventCount};
use holonome_integrate::averages::{Mean, Moments};
use holonome_integrate::ensemble;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::observer::Control;
use holonome_integrate::plan::Stepping;
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_model::elaborate::model::{Family, Measured};
use holonome_model::functional::Source;
use holonome_model::treatment::InvariantGroup;
use holonome_model::treatment::feedback::gain_name;
use holonome_words::option;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::{Index, Not, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// An ensemble ready to run.
pub struct Sweep {
    /// Trajectory 0 as a run: the compiled method, and the recorded quantities.
    pub simulation: Simulation,
    starts: Starts,
    sweep: SweepOptions,
    /// Trajectories of this part.
    range: Range<u64>,
    /// Slots of each parameter that differs between trajectories.
    varied: Vec<Range<usize>>,
    /// Those of them that are stored, because no dimension of the grid has their values.
    stored: Vec<Range<usize>>,
    reference: Option<Vec<f64>>,
    /// Kernels of lanes; `None` if the ensemble allows none.
    lanes: OnceLock<Option<SweepLanes>>,
    /// Simulations without failed claims, by the names of these.
    left: Mutex<BTreeMap<Vec<String>, Arc<Simulation>>>,
    /// Step of trajectories that leave their lanes, if it is too long for runs by themselves.
    left_lanes: OnceLock<Option<CompiledStep>>,
    /// Folder of the ensemble, once it is open.
    store: Option<EnsembleStore>,
}

/// Progress of an ensemble, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct SweepProgress {
    /// Number of trajectories done.
    pub done: u64,
    /// Number of all trajectories.
    pub of: u64,
    /// Number of trajectories done that failed.
    pub failed: u64,
}

/// Result of an ensemble. In JSON, entries that only some ensembles have come last.
#[derive(Clone, Debug, Serialize)]
pub struct SweepSummary {
    /// The model's name.
    pub model: String,
    /// The method's name.
    pub method: String,
    /// Number of trajectories done.
    pub trajectories: u64,
    /// Time at their end.
    pub t: f64,
    /// Accepted steps of all of them.
    pub steps: u64,
    /// Largest drift of every invariant; `None` if no trajectory reached the end.
    pub drift: Option<Drifts>,
    /// Counts of evaluations of all of them, and time in the loop, storing included.
    pub cost: RunCost,
    /// Number of trajectories that ended early.
    pub failed: u64,
    /// Events that ended trajectories before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndingEvent>,
    /// Labels of units by the names of arrays, `t` for the time; empty if the model names none.
    #[serde(skip_serializing_if = "UnitLabels::is_empty")]
    pub units: UnitLabels,
    /// Folder of the ensemble; `None` if it is in memory.
    #[serde(serialize_with = "serial::path", skip_serializing_if = "Option::is_none")]
    pub out: Option<PathBuf>,
    /// True if it is in a heat bath, which keeps neither energy nor integrals.
    #[serde(skip)]
    pub heated: bool,
    /// Names of what has lost a good part of itself in some trajectory, whose motion is not the
    /// model's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Results of the model's measures, averaged over trajectories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<Table>,
    /// The first trajectories that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedTrajectory>,
    /// Number of trajectories that others have yet to compute, or that are left after a stop.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// True if it was stopped before its end.
    #[serde(skip_serializing_if = "Not::not")]
    pub interrupted: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An event that ended trajectories of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndingEvent {
    /// Its name.
    pub event: String,
    /// Number of trajectories that it ended.
    pub trajectories: u64,
    /// Earliest time at which one ended.
    pub first: f64,
    /// Latest time at which one ended.
    pub last: f64,
}

/// A trajectory that ended early.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedTrajectory {
    /// Its number.
    pub trajectory: u64,
    /// Reason, for people.
    pub message: String,
}

/// Result of an ensemble in memory: the recorded quantities of every trajectory by name, and a
/// summary.
#[derive(Clone, Debug)]
pub struct SweepSolution {
    /// Drifts, costs, failures and warnings.
    pub summary: SweepSummary,
    /// Recorded quantities, a row per trajectory.
    pub arrays: Arrays,
}

/// A recorded quantity by its name: `ensemble["q"]`.
impl Index<&str> for SweepSolution {
    type Output = Array;

    /// # Panics
    /// If it was not recorded; [`Arrays::get`] returns `None` instead.
    fn index(&self, name: &str) -> &Array {
        &self.arrays[name]
    }
}

/// Attributes of an ensemble's folder, in place of or beside those of a run.
#[derive(Serialize)]
struct SweepAttributes<'a> {
    parameters: Parameters,
    sweep: &'a SweepOptions,
}

/// Refuse an ensemble whose method recognises formulas that change their kind with the parameters,
/// for example moments of inertia that `--vary` takes off their axes. The formulas were recognised
/// in the first trajectory; here they are in some others.
fn recognised_throughout(simulation: &Simulation, starts: &Starts) -> Result<(), Error> {
    let (model, method) = (&simulation.problem.model, simulation.plan.method);
    let (mut parameters, mut x) = (model.parameter_values.clone(), model.initial.clone());
    for trajectory in [starts.trajectories() / 2, starts.trajectories() - 1] {
        // A start that cannot be made is the trajectory's own failure.
        if starts.at(trajectory, &mut parameters, &mut x, &mut starts.work()).is_ok() {
            crate::step::recognised_with(&method, model, &parameters, &x).map_err(|reason| {
                Error::option(format!(
                    "`{method}` does not suit this model in trajectory {trajectory}: {reason}"
                ))
            })?;
        }
    }
    Ok(())
}

/// True if nothing is stored of each trajectory: sums over them are all that is asked for.
fn records_nothing(options: &RunOptions) -> bool {
    options.record.as_ref().is_some_and(Vec::is_empty)
}

/// Leave out the deviations of invariants at each sample: an ensemble stores the largest of each
/// trajectory.
fn leave_out_deviations(simulation: &mut Simulation) -> Result<(), Error> {
    let arrays = &mut simulation.recorded.arrays;
    let is_drift = |array: &&RecordedArray| array.place == Place::Deviations;
    if let Some(RecordedArray { name, .. }) = arrays.iter().find(is_drift)
        && simulation.options.record.is_some()
    {
        let record = option("record");
        return Err(Error::option(format!(
            "{record} {name}: an ensemble stores the largest drift of each trajectory, as `drift_…`; leave {name} out"
        )));
    }
    arrays.retain(|array| array.place != Place::Deviations);
    Ok(())
}

/// Warn of options that are those of single runs.
fn warn_of_options_of_runs(simulation: &mut Simulation, measures_errors: bool) {
    let of_runs = [
        (
            "error",
            measures_errors,
            "it is measured of a single run; compare the sweep with one at another tolerance or step",
        ),
        (
            "interpolant",
            simulation.options.interpolant,
            "an ensemble has its samples only; ask for more of them, or for runs by themselves",
        ),
    ];
    for (name, _, what) in of_runs.into_iter().filter(|(_, given, _)| *given) {
        simulation.warnings.push(format!("{} has no effect: {what}", option(name)));
    }
}

/// Refuse measures whose numbers or times differ between trajectories.
fn refuse_varied_measures(simulation: &Simulation, starts: &Starts) -> Result<(), Error> {
    let changes =
        |source, slot: u32| source == Source::Parameter && starts.varies_parameter(slot as usize);
    let is_varied =
        |measure: &&Measured| measure.given.iter().any(|f| f.reads_marked(changes).contains(&true));
    match simulation.problem.model.measures.iter().find(is_varied) {
        Some(measure) => Err(Error::option(format!(
            "measure '{}': its numbers and times are those of all trajectories, and {} changes them",
            measure.quantity.name,
            option("vary")
        ))),
        None => Ok(()),
    }
}

/// Maximum number of trajectories from which the number of iterations of a step is found: the
/// first, the last, and some between.
const PILOTS: u64 = 8;

/// Let the trajectories take their steps in a loop whose iterations are found from some of them,
/// spread over the ensemble. The loop is the same for all parts, and for trajectories that are
/// computed alone. Where it would be too long, or cannot run in lanes, templated steps are faster.
///
/// # Errors
/// As [`prepare`](crate::prepare).
fn repeat(
    simulation: &mut Simulation,
    starts: &Starts,
    reference: Option<&[f64]>,
) -> Result<(), Error> {
    let Some(field) = simulation.field.clone() else { return Ok(()) };
    let Some(mut program) = simulation.trajectory.program.take() else { return Ok(()) };
    let model = &simulation.problem.model;
    let last = starts.trajectories() - 1;
    let mut numbers: Vec<u64> = (0..PILOTS)
        .map(|k| (u128::from(last) * u128::from(k) / u128::from(PILOTS - 1)) as u64)
        .collect();
    numbers.dedup();
    let mut pilots: Vec<(Vec<f64>, Vec<f64>, Vec<f64>)> = Vec::new();
    for number in numbers {
        let (mut parameters, mut x) = (model.parameter_values.clone(), model.initial.clone());
        // A start that cannot be made is the trajectory's own failure.
        if starts.at(number, &mut parameters, &mut x, &mut starts.work()).is_err() {
            continue;
        }
        let all = [
            &parameters[..],
            &vec![0.0; simulation.trajectory.system.invariants().count - simulation.constraints],
        ]
        .concat();
        let system = simulation.trajectory.system.rebound(&all);
        let (mut targets, mut work) =
            (vec![0.0; system.invariants().count], vec![0.0; system.work_len()]);
        system.invariant_values(
            simulation.plan.t0,
            reference.unwrap_or(&x),
            &mut targets,
            &mut work,
        );
        pilots.push((parameters, targets.split_off(simulation.constraints), x));
    }
    let starts: Vec<Start> =
        pilots.iter().map(|(parameters, targets, x)| Start { parameters, targets, x }).collect();
    let of = (Some(&*field), simulation.trajectory.system.shared_invariants());
    let plan = &simulation.plan;
    let repeated = |program: &mut Program| {
        program.repeat(of, || model.row_invariants(), plan, &starts, true);
        ensemble::suits(simulation.run_plan()) && program.has_lanes()
    };
    if !repeated(&mut program)
        && let Some(mut templated) = simulation.templated_program()?
    {
        repeated(&mut templated);
        program = templated;
    }
    simulation.trajectory.program = Some(program);
    Ok(())
}

/// Compile an ensemble of a problem, whose text is read once more with its variations.
///
/// # Errors
/// As [`prepare`](crate::prepare); if a variation cannot be evaluated; if there is no such part.
pub fn prepare_sweep(
    problem: &Problem,
    options: RunOptions,
    sweep: SweepOptions,
) -> Result<Sweep, Error> {
    let sweep = checked(sweep)?;
    let Problem { name, source, tables, settings, .. } = problem;
    let (problem, starts) =
        Problem::from_text_varied(name, source.text(), tables, settings, &sweep)?;
    Sweep::new(problem, starts, options, sweep)
}

impl Sweep {
    /// Compile an ensemble of the model at `path`.
    ///
    /// # Errors
    /// As [`Problem::load`] and [`prepare`](crate::prepare); if a variation cannot be evaluated; if
    /// there is no such part.
    pub fn load(
        path: impl AsRef<Path>,
        settings: &Settings,
        options: RunOptions,
        sweep: SweepOptions,
    ) -> Result<Sweep, Error> {
        let path = path.as_ref();
        let sweep = checked(sweep)?;
        let (problem, starts) = Problem::load_varied(path, settings, &sweep)?;
        Sweep::new(problem, starts, options, sweep)
    }

    fn new(
        problem: Problem,
        starts: Starts,
        options: RunOptions,
        sweep: SweepOptions,
    ) -> Result<Sweep, Error> {
        options.refuse_varied(&problem.model, |slot| starts.varies_parameter(slot))?;
        let mut options = options.completed(&problem.model)?;
        if options.samples.is_none() && options.every.is_none() && options.at.is_none() {
            // An ensemble is for the ends of its trajectories; a history has to be requested.
            options.samples = Some(2);
        }
        if options.record.as_deref().is_some_and(|names| names == ["none"]) {
            options.record = Some(Vec::new());
        }
        if records_nothing(&options) && sweep.shard.is_some() {
            return Err(Error::option(format!(
                "{}: parts are joined by what they store of each trajectory; let {} divide the ensemble instead",
                option("record").with("none"),
                option("worker")
            )));
        }
        let measures_errors = std::mem::take(&mut options.error);
        let mut simulation = Simulation::of_ensemble(problem, options)?;
        let reference = reference_state(&simulation.problem, &simulation.options)?;
        leave_out_deviations(&mut simulation)?;
        warn_of_options_of_runs(&mut simulation, measures_errors);
        let starts = simulation.starts(starts);
        let numbers = simulation.problem.model.parameter_values.len();
        let differ = (0..numbers).any(|k| starts.varies_parameter(k))
            || (0..simulation.problem.model.initial.len()).any(|k| starts.varies_state(k));
        if !differ && simulation.problem.model.heat_bath.is_none() && sweep.trajectories > 1 {
            let vary = option("vary");
            simulation.warnings.push(format!(
                "all trajectories are alike: let {vary} give a parameter or an initial value a formula of their number i"
            ));
        }
        let range = part(&sweep);
        let varied: Vec<Range<usize>> = simulation
            .problem
            .model
            .parameters
            .iter()
            .map(|p| p.first..p.first + p.family.len())
            .filter(|slots| slots.clone().any(|slot| starts.varies_parameter(slot)))
            .collect();
        refuse_varied_measures(&simulation, &starts)?;
        if !varied.is_empty() {
            recognised_throughout(&simulation, &starts)?;
        }
        repeat(&mut simulation, &starts, reference.as_deref())?;
        if let Stepping::Fixed(fixed) = &simulation.run_plan().stepping
            && fixed.shorter_last.is_some()
        {
            simulation.warnings.push(format!(
                "the last step is shorter than the others, so trajectories run one by one, which takes several times as long: let {} be a multiple of {}",
                option("until"),
                option("step")
            ));
        }
        let is_axis = |slots: &&Range<usize>| {
            let mut parameters = simulation.problem.model.parameters.iter();
            let name = parameters.find(|p| p.first == slots.start).map(|p| &p.family.name);
            sweep.shard.is_none() && sweep.over.iter().any(|(axis, _)| Some(axis) == name)
        };
        let stored = varied.iter().filter(|slots| !is_axis(slots)).cloned().collect();
        let mut made = Sweep {
            simulation,
            starts,
            sweep,
            range,
            varied,
            stored,
            reference,
            lanes: OnceLock::new(),
            left: Mutex::default(),
            left_lanes: OnceLock::new(),
            store: None,
        };
        let out = made.simulation.options.out.clone().unwrap_or_else(|| "runs".into());
        made.simulation.warnings.extend(made.footprint().warnings(&out));
        Ok(made)
    }

    /// Open an interrupted ensemble; `None` if the folder holds a single run.
    ///
    /// # Errors
    /// If the folder is not a run, or is damaged; if an earlier version began the ensemble.
    pub fn resume(path: impl AsRef<Path>) -> Result<Option<Resumed<Sweep>>, Error> {
        let path = path.as_ref();
        let run = open_run(path)?;
        if run.trajectories().is_none() {
            return Ok(None);
        }
        if run.status() == Status::Finished {
            return Ok(Some(Resumed::finished(run.summary().clone())));
        }
        Ok(Some(Resumed::Continues(Box::new(Sweep::open_store(path)?))))
    }

    /// Compile the ensemble of a folder, from the folder alone, to compute some of its blocks there.
    ///
    /// # Errors
    /// If the folder is not an ensemble, or is damaged; if an earlier version began it.
    pub fn open_store(path: impl AsRef<Path>) -> Result<Sweep, Error> {
        let path = path.as_ref();
        let store = EnsembleStore::open(path).map_err(Error::store)?;
        let mut opened = Sweep::of_attributes(store.attributes(), path)?;
        let (range, whole) = (store.trajectories(), opened.range.clone());
        if range != whole {
            // A part has the values of a grid for each of its trajectories.
            opened.stored = opened.varied.clone();
            opened.range = range;
        }
        opened.store = Some(store);
        Ok(opened)
    }

    /// The whole ensemble whose store at `path` has these attributes.
    fn of_attributes(attributes: &Map<String, Value>, path: &Path) -> Result<Sweep, Error> {
        let (model, source): (String, String) =
            (stored(path, attributes, "model")?, stored(path, attributes, "source")?);
        let tables: BTreeMap<String, String> = stored(path, attributes, "tables")?;
        let settings: Settings = stored(path, attributes, "settings")?;
        let options = stored_options(path, attributes)?;
        let mut sweep: SweepOptions = stored(path, attributes, "sweep")?;
        if sweep.lists().next().is_some() {
            let lengths = sweep.lists().map(|(_, numbers)| numbers.len());
            let lists = read_values(path, lengths).map_err(Error::store)?;
            sweep.lists_mut().zip(lists).for_each(|((_, numbers), list)| *numbers = list);
        }
        let (problem, starts) =
            Problem::from_text_varied(&model, &source, &tables, &settings, &sweep)?;
        Sweep::new(problem, starts, options, sweep)
    }

    /// Warnings for the user before the start.
    pub fn warnings(&self) -> Vec<String> {
        self.simulation.all_warnings()
    }

    /// Inputs from which steps in lanes are compiled; `None` if the plan or the model does not allow
    /// any.
    fn step_source(&self) -> Option<StepSource<'_>> {
        let simulation = &self.simulation;
        let plan = simulation.run_plan();
        let treatment = plan.method.treatment;
        let aims_elsewhere = self.reference.is_some() && treatment == MethodTreatment::Corrected;
        // A feedback term that is not a formula needs a solve, one trajectory at a time.
        let solves = treatment == MethodTreatment::Feedback && simulation.treated.is_none();
        if !ensemble::suits(plan) || aims_elsewhere || solves {
            return None;
        }
        let field = simulation.treated.as_ref().or(simulation.field.as_ref())?;
        let events = simulation.trajectory.system.events();
        if events.is_some_and(|events| events.rules().len() != field.watched.len()) {
            return None; // loops of its steps do not look at the functions of events
        }
        let targets = simulation.problem.model.parameter_values.len();
        Some(StepSource {
            plan,
            field,
            vectors: &simulation.vectors,
            system: simulation.trajectory.system.unrolled()?,
            targets,
            parameters: targets + simulation.target_count() + simulation.trajectory.gains.len(),
            longest: LONGEST_LOOP,
        })
    }

    /// Step of trajectories that are computed alone: the same numbers as in lanes, costs included.
    fn step_alone(&self) -> &CompiledStep {
        let Trajectory { step, program, .. } = &self.simulation.trajectory;
        if program.is_some() || !step.is_nothing() {
            return step;
        }
        let compiled = || {
            let of = self.step_source().filter(CompiledLanes::suits)?;
            CompiledStep::new(&of, &vec![0.0; of.parameters]).ok()
        };
        self.left_lanes.get_or_init(compiled).as_ref().unwrap_or(step)
    }

    /// Simulation without the claims that have failed in `state`.
    fn without_failed(&self, state: &StepState) -> Result<Arc<Simulation>, Error> {
        let mut names = failed_names(&self.simulation.groups, state);
        names.sort_unstable();
        // A second caller waits for the first, and a panic while one compiles leaves nothing half
        // made.
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = left.get(&names) {
            return Ok(Arc::clone(known));
        }
        let Problem { name, source, tables, settings, .. } = &self.simulation.problem;
        let problem =
            Problem::from_text_varied(name, source.text(), tables, settings, &self.sweep)?.0;
        let made = Arc::new(Simulation::without(problem, self.simulation.options.clone(), &names)?);
        left.insert(names, Arc::clone(&made));
        Ok(made)
    }

    /// Warnings about events, with the number of trajectories that met each.
    fn met_warnings(&self, tally: &Tally) -> Vec<String> {
        let Tally { met, done, .. } = tally;
        let mut warnings = Vec::new();
        let mut warn = |seen: &EventCount, what: &str| {
            if seen.count > 0 {
                warnings.push(format!(
                    "{} of {done} trajectories: {what}, first at t = {}",
                    seen.count, seen.first
                ));
            }
        };
        let held = self.simulation.plan.method.treatment != MethodTreatment::Plain;
        for (&group, seen) in &met.failed_claims {
            let name = &self.simulation.groups[group].name;
            let free = if held { ", and nothing holds it from shortly before there" } else { "" };
            warn(
                seen,
                &format!("integral '{name}' is not constant along the motion{free} ({OF_MODELS})"),
            );
        }
        warn(
            &met.singular,
            "the constraints are nearly dependent, so which way the motion goes on may be decided by rounding (compare with a tenth of the tolerance or step)",
        );
        warn(
            &met.innovations,
            "a correction was far larger than the step's error explains, so H or an integral may not be constant (a smaller step or tolerance shows)",
        );
        warnings
    }

    /// Open the ensemble's folder: create it, or go on with the same ensemble that is there. Of
    /// several processes that do so at the same time, one creates it.
    ///
    /// # Errors
    /// If it cannot be created or opened; if another ensemble is there, with the first difference.
    pub fn open(&mut self) -> Result<&Path, Error> {
        if self.store.is_none() {
            self.footprint().check()?;
            let layout = self.layout();
            let Simulation { options, problem, .. } = &self.simulation;
            let store = match &options.out {
                Some(path) => {
                    let opened = EnsembleStore::create_or_open(path, &layout);
                    let (store, created) = opened.map_err(Error::store)?;
                    if !created {
                        self.compare(&store, &layout)?;
                    }
                    store
                }
                None => EnsembleStore::create_numbered("runs".as_ref(), &problem.name, &layout)
                    .map_err(Error::store)?,
            };
            hold::created();
            self.store = Some(store);
        }
        Ok(self.store.as_ref().map_or(Path::new(""), EnsembleStore::path))
    }

    /// Refuse the folder of another ensemble.
    fn compare(&self, store: &EnsembleStore, layout: &Layout) -> Result<(), Error> {
        let (there, here) = (store.trajectories(), self.range.clone());
        let difference = difference(store.attributes(), &layout.attributes).or_else(|| {
            let shown = |range: Range<u64>| format!("{} to {}", range.start, range.end.max(1) - 1);
            let shard = option("shard");
            (there != here).then(|| {
                format!("{shard}: trajectories {} there, {} here", shown(there), shown(here))
            })
        });
        match difference {
            None => Ok(()),
            Some(difference) => Err(Error::option(format!(
                "{} holds another ensemble: {difference}; name another folder, or give what it was made with",
                store.path().display()
            ))),
        }
    }

    /// Summary of an ensemble whose folder is open and has all of its trajectories.
    ///
    /// # Errors
    /// If the folder is damaged.
    pub fn finished(&self) -> Result<Option<Resumed<Sweep>>, Error> {
        let Some(store) = &self.store else { return Ok(None) };
        let (status, summary) = store.status().map_err(Error::store)?;
        Ok((status == Status::Finished).then(|| Resumed::finished(summary)))
    }

    /// Disk and memory needed by the ensemble.
    pub fn footprint(&self) -> Footprint {
        let (row, number) = (self.widths().iter().sum::<usize>(), size_of::<f64>() as f64);
        // Results of the threads that are not stored yet: see [`Sweep::compute_all`].
        let tasks = (rayon::current_num_threads() * TASKS_PER_THREAD) as f64;
        let task = (TASK_NUMBERS.max(row) as f64)
            .min((self.range.end - self.range.start) as f64 * row as f64);
        let one = self.simulation.footprint().memory * rayon::current_num_threads() as f64;
        let count = (self.range.end - self.range.start) as f64;
        // And the number of every trajectory.
        let stored = if records_nothing(&self.simulation.options) { 0 } else { row + 1 };
        let disk = number * stored as f64 * count;
        // Two blocks, of which one is written while the next is begun.
        let block = self.layout().blocks().map_or(0.0, |blocks| blocks.len() as f64);
        let blocks = 2.0 * block.min(count) * row as f64;
        Footprint { disk, memory: one + number * (tasks * task + blocks) }
    }

    /// Length of a row of every stored array.
    fn widths(&self) -> Vec<usize> {
        let samples = self.simulation.plan.sample_count();
        let timed = self.simulation.recorded.arrays.iter().map(|array| array.len * samples);
        let varied = self.stored.iter().map(Range::len);
        let events = EVENT_ARRAYS.len() * self.simulation.problem.model.events.len();
        let single = std::iter::repeat_n(1, self.simulation.groups.len() + 4 + events);
        let measured = self.measures().flat_map(|measure| [measure.applied.results(); 2]);
        timed.chain(varied).chain(single).chain(measured).collect()
    }

    /// Measures of every trajectory.
    fn measures(&self) -> impl Iterator<Item = &RunMeasure> {
        self.simulation.measuring.iter().flat_map(|measuring| &measuring.measures)
    }

    /// Results of the measures over all trajectories, with the standard errors between them.
    fn measured(&self, tally: &Tally) -> Vec<Table> {
        let table = |(measure, moments): (&RunMeasure, &Moments)| {
            let means: Vec<Mean> =
                (0..measure.applied.results()).map(|k| moments.mean(k)).collect();
            measure.table(0, &means)
        };
        self.measures().zip(&tally.measures).map(table).collect()
    }

    /// What attributes and groups of an ensemble's folder tell of its end.
    fn ending(&self, summary: &SweepSummary, status: Status) -> (Map<String, Value>, Vec<Group>) {
        let SweepSummary { t, steps, drift, cost, warnings, .. } = summary;
        let (t, steps, drift) = (*t, *steps, drift.as_deref().unwrap_or_default());
        let ending = Ending { status, t, steps, drift, error: None, cost, warnings };
        let measures = self.measures().zip(&summary.measures);
        let groups = measures.filter_map(|(measure, table)| measure.group(table));
        (ending.attributes(), groups.collect())
    }

    fn layout(&self) -> Layout {
        let simulation = &self.simulation;
        let mut layout = simulation.layout();
        layout.trajectories = Some(self.range.clone());
        let taken: Vec<String> = layout.arrays.iter().map(|array| array.name.clone()).collect();
        let mut once = |name: String, description: String, own: Vec<Dimension>| {
            let mut name = name;
            while taken.contains(&name) || layout.arrays.iter().any(|array| array.name == name) {
                name.push('_');
            }
            let own = own.into_iter();
            let dimensions = own.map(|dimension| layout.dimension(dimension)).collect();
            let array =
                ArrayLayout { name, dimensions, description, once: true, ..ArrayLayout::default() };
            layout.arrays.push(array);
        };
        for slots in &self.stored {
            let parameters = &simulation.problem.model.parameters;
            let parameter = parameters
                .iter()
                .find(|p| p.first == slots.start)
                .expect("slots are a parameter's");
            let Family { name, shape, .. } = &parameter.family;
            let dimensions = own_dimensions(&members_of_family(&parameter.family), *shape);
            once(name.clone(), format!("parameter {name}"), dimensions);
        }
        for group in &simulation.groups {
            let name = gain_name(&group.name, group.kind);
            once(
                format!("drift_{}", name.replace(' ', "_")),
                format!("largest drift of {name} along the trajectory"),
                Vec::new(),
            );
        }
        once("end".into(), "where the trajectory ended".into(), Vec::new());
        once("steps".into(), "accepted steps".into(), Vec::new());
        once("field_evaluations".into(), "evaluations of the field".into(), Vec::new());
        once("failed".into(), "1 where the trajectory ended early".into(), Vec::new());
        for event in &simulation.problem.model.events {
            for (ending, description) in EVENT_ARRAYS {
                let name = &event.quantity.name;
                let description = format!("{description} event {name}");
                once(format!("events.{name}.{ending}"), description, Vec::new());
            }
        }
        for measure in self.measures() {
            let (name, written) = (&measure.name, &measure.written);
            let own = measure.dimensions();
            once(name.clone(), format!("{written} along the trajectory"), own.clone());
            once(format!("{name}_error"), format!("standard error of {written}"), own);
        }
        // Deviations and ends of trajectories.
        for array in layout.arrays.iter_mut().filter(|array| array.once) {
            let of = match (&*array.name, array.name.strip_prefix("drift_")) {
                ("end", _) => Some(TIME.to_string()),
                (_, Some(name)) => {
                    let is_its = |group: &&InvariantGroup| {
                        gain_name(&group.name, group.kind).replace(' ', "_") == name
                    };
                    let group = simulation.groups.iter().find(is_its);
                    group.map(|group| deviation(&group.name, group.kind))
                }
                _ => None,
            };
            let unit = of.and_then(|of| simulation.recorded.units.get(&of));
            array.attributes.extend(unit.map(|unit| units_attribute(unit)));
        }
        if records_nothing(&simulation.options) {
            layout.arrays.clear();
            layout.dimensions.clear();
        }
        let fixed = simulation
            .parameters(|parameter| self.varied.iter().all(|slots| slots.start != parameter.first));
        layout.describe(&SweepAttributes { parameters: fixed, sweep: &self.sweep });
        if self.sweep.shard.is_none() && self.range == (0..self.sweep.trajectories) {
            layout.grid = self.sweep.over.clone();
        }
        layout.values = self.sweep.lists().map(|(_, numbers)| Arc::clone(numbers)).collect();
        layout
    }

    /// Run to the end, or until `watch` returns [`Control::Stop`], into the ensemble's folder, which
    /// is created unless it is there. Blocks of trajectories that are done are not computed again:
    /// the next call goes on with a stopped ensemble, as does [`Sweep::resume`] in another process.
    ///
    /// # Errors
    /// If a trajectory cannot start, or the disk does not accept the results; the blocks that are
    /// done are stored. If the ensemble has finished already, or another one is there.
    pub fn run(
        &mut self,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<SweepSummary, Error> {
        let shown = self.open()?.display().to_string();
        if self.finished()?.is_some() {
            return Err(Error::option(format!(
                "this ensemble has finished in {shown}, where its results are: prepare the problem anew for another"
            )));
        }
        self.run_share(&Share::All, watch)
    }

    /// Run to the end, in memory. Every call begins with the first trajectory, and gives the
    /// numbers that [`Sweep::run`] stores, bit for bit.
    ///
    /// # Errors
    /// If a trajectory cannot start; if memory does not hold the samples.
    pub fn solve(&mut self) -> Result<SweepSolution, Error> {
        self.solve_while(&mut |_| Control::Continue)
    }

    /// Run [`Sweep::solve`] until `watch` returns [`Control::Stop`]; the result has the blocks of
    /// trajectories that are complete then.
    ///
    /// # Errors
    /// As [`Sweep::solve`].
    pub fn solve_while(
        &mut self,
        watch: &mut dyn FnMut(&SweepProgress) -> Control,
    ) -> Result<SweepSolution, Error> {
        if let Some(store) = &self.store {
            return Err(Error::option(format!(
                "this ensemble has begun in {}, which has its first trajectories: go on there, or prepare the problem anew",
                store.path().display()
            )));
        }
        let (layout, started) = (self.layout(), Instant::now());
        let mut arrays = self.footprint().in_memory(&layout)?;
        let blocks = layout.blocks().map_err(Error::store)?;
        let (mut left, mut tally) = (0..blocks.count(), self.empty_tally());
        let steps = Steps {
            next: &mut || Ok(left.next()),
            take: &mut |_, rows, sums| {
                arrays.append(sums.done as usize, rows);
                tally.join(sums);
                Ok(Control::Continue)
            },
            watch,
        };
        let stopped = self.compute_each(&blocks, self.progress()?, steps)? == Control::Stop;
        if !stopped {
            arrays.arrange(&layout.grid);
        }
        let summary = self.summary(&tally, None, started.elapsed().as_secs_f64(), stopped);
        Ok(SweepSolution { summary, arrays })
    }

    fn summary(
        &self,
        tally: &Tally,
        out: Option<PathBuf>,
        wall_seconds: f64,
        interrupted: bool,
    ) -> SweepSummary {
        let simulation = &self.simulation;
        let reached = tally.done - tally.failed;
        let drift = |(k, group): (usize, &InvariantGroup)| Drift {
            name: group.name.clone(),
            kind: group.kind,
            varying: is_varying(group, &simulation.problem.examined.varying)
                || tally.met.failed_claims.contains_key(&k),
            initial: None,
            last: tally.last[k],
            max: tally.max[k],
            relative: Some(Relative { last: tally.relative_last[k], max: tally.relative_max[k] }),
            loss: Relative { last: tally.loss_last[k], max: tally.loss_max[k] },
        };
        let drift = Drifts {
            all: simulation.groups.iter().enumerate().map(drift).collect(),
            hamiltonian: simulation.problem.model.is_hamiltonian(),
        };
        let t = simulation.plan.clock(simulation.plan.t_end());
        let ending = |(event, seen): (&String, &EventCount)| EndingEvent {
            event: event.clone(),
            trajectories: seen.count,
            first: seen.first,
            last: seen.last,
        };
        let ended: Vec<EndingEvent> = tally.met.ended.iter().map(ending).collect();
        let mut warnings = self.warnings();
        let mut lost = Vec::new();
        if reached > 0 {
            lost = summary::lost(&drift, self.reference.is_some());
            let large = large_drifts(&drift, self.reference.is_some());
            warnings
                .extend(large.iter().map(|warning| format!("in the worst trajectory, {warning}")));
        }
        warnings.extend(self.met_warnings(tally));
        if tally.far > 0 {
            let what = "moved their starts by more than a tenth of their size, perhaps to another way of assembly";
            let option = option("project_initial");
            warnings.push(format!("{option}: {} trajectories: it {what}", tally.far));
        }
        if tally.failed > 0 {
            let reached = reached - ended.iter().map(|event| event.trajectories).sum::<u64>();
            warnings.push(format!("{reached} of {} trajectories reached t = {t}", tally.done));
        }
        let failure = |(trajectory, message)| FailedTrajectory { trajectory, message };
        SweepSummary {
            model: simulation.problem.name.clone(),
            method: simulation.options.method.to_string(),
            trajectories: tally.done,
            t,
            steps: tally.steps,
            heated: simulation.problem.model.heat_bath.is_some(),
            drift: (reached > 0).then_some(drift),
            lost,
            measures: self.measured(tally),
            cost: RunCost::new(&tally.cost, wall_seconds),
            failed: tally.failed,
            ended,
            failures: tally.failures.iter().cloned().map(failure).collect(),
            missing: 0,
            warnings,
            units: simulation.recorded.units.clone(),
            out,
            interrupted,
        }
    }
}

impl SweepSummary {
    /// Number of trajectories that reached the end, neither failed nor ended by an event.
    pub fn reached(&self) -> u64 {
        let ended: u64 = self.ended.iter().map(|event| event.trajectories).sum();
        self.trajectories - self.failed - ended
    }
}

/// Options with the number of trajectories, which may follow from a grid.
fn checked(mut sweep: SweepOptions) -> Result<SweepOptions, Error> {
    sweep.trajectories = crate::ensemble::trajectories(&sweep)?;
    if sweep.trajectories == 0 {
        return Err(Error::option(format!("{} must be at least 1", option("trajectories"))));
    }
    match sweep.shard {
        Some((k, of)) if !(1..=of).contains(&k) => Err(Error::option(format!(
            "{} {k}/{of}: write k/K with k from 1 to K, for example {}",
            option("shard"),
            option("shard").of("1/4")
        ))),
        _ => Ok(sweep),
    }
}

/// Trajectories of the requested part: parts are consecutive and as equal as possible.
fn part(sweep: &SweepOptions) -> Range<u64> {
    let Some((k, of)) = sweep.shard else { return 0..sweep.trajectories };
    let boundary =
        |k: u64| (u128::from(sweep.trajectories) * u128::from(k) / u128::from(of)) as u64;
    boundary(k - 1)..boundary(k)
}
