//! A problem compiled for a method, and its run.

use crate::compiled::{Compiled, CompiledMap, CompiledStep, CompiledSystem, RowSystem, StateVectors};
use crate::error::Error;
use crate::feedback::{feedback_system, refuse_unstable};
use crate::footprint::Footprint;
use crate::hold;
use crate::options::{Gains, RunOptions, Settings};
use crate::orbit;
use crate::penalty::{self, MeanMultipliers, Penalised};
use crate::problem::Problem;
use crate::recording::{
    CHECKPOINT_INTERVAL, Deviations, Lanes, Progress, Recorded, RecordedArray, Recorder, VariableLayout,
    initial_values, look_every, variables,
};
use crate::store::{CHUNK_NUMBERS_MAX, Layout, Resumed, Status, Store, StoreError, StoredRun};
use crate::structured::{MethodSettings, Program, Start};
use crate::summary::{Summary, large_drifts};
use crate::watched::Watched;
use holonome_integrate::failure::Failure;
use holonome_integrate::feedback_term::metric;
use holonome_integrate::method::{Method, Needs, Treatment};
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{FixedSteps, Metric, Plan, PlanError, Stepping};
use holonome_integrate::run::{Outcome, run_map};
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::stability::Gain;
use holonome_integrate::state::{Cost, FailedClaim, NEARLY_DEPENDENT, StepState};
use holonome_integrate::system::System;
use holonome_integrate::treatment::correction::largest_innovation;
use holonome_model::elaborate::expression::{MULTIPLIER, TIME};
use holonome_model::elaborate::model::{Dynamics, Family, Model, Parameter};
use holonome_model::functional::Term;
use holonome_model::rows::RowField;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_model::treatment::feedback::{Potential, Transport};
use holonome_model::treatment::unrolled::unroll;
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind, dirac};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Numbers of a parameter that are repeated in a run's attributes; more of them only its text tells.
const LONGEST_PARAMETER: usize = 1000;

/// An innovation this many times beyond what is believed is none of a step's error.
pub(crate) const MANY_TIMES: f64 = 10.0;

/// A problem compiled for a method.
pub struct Simulation {
    /// The problem.
    pub problem: Problem,
    /// The choices.
    pub options: RunOptions,
    /// What the user should know before it starts, besides what the model's own findings say.
    pub warnings: Vec<String>,
    /// The findings on the model as it was read, in a line each.
    model_warnings: Vec<String>,
    /// The field without a feedback term, where it is written out.
    pub(crate) field: Option<Field>,
    /// What the rows of F mean.
    pub(crate) groups: Vec<InvariantGroup>,
    /// How many rows of F are constraints.
    pub(crate) constraints: usize,
    /// The field with it, where it is a formula.
    pub(crate) treated: Option<Field>,
    /// What the treated field has for parameters, after the model's and the targets; see [`Simulation::gains_at`].
    pub(crate) gains: Vec<f64>,
    pub(crate) plan: Plan,
    pub(crate) vectors: Arc<StateVectors>,
    pub(crate) system: Compiled,
    pub(crate) step: CompiledStep,
    /// The step of a method that is no Runge–Kutta one.
    pub(crate) program: Option<Program>,
    state: StepState,
    pub(crate) recorded: Recorded,
    gain_text: Option<String>,
    pub(crate) penalty: Option<Penalised>,
    pub(crate) initial: Vec<Value>,
    store: Option<Store>,
}

impl Simulation {
    /// Compiles `problem` for the method and the steps of `options`.
    ///
    /// # Errors
    /// When the options make no sense, the method does not suit the model, or a gain is refused.
    pub fn new(problem: Problem, options: RunOptions) -> Result<Simulation, Error> {
        Simulation::build(problem, options, None, &[])
    }

    /// The same for a `feedback` method whose V = W(ΔF) and L(x) are formulas (Chang, Jimenez, Perlmutter 2016, remark 2
    /// and (11)): ẋ = X − L ∇V. Such a run is resumed by the program that started it, not from its folder alone, and its
    /// stability is not monitored.
    ///
    /// # Errors
    /// As [`Simulation::new`]; also when the symmetric part of L is not positive definite at the initial state.
    pub fn with_feedback(
        problem: Problem,
        mut options: RunOptions,
        potential: &Potential,
        transport: &Transport,
    ) -> Result<Simulation, Error> {
        options.gain = Some(Gains::Formula);
        Simulation::build(problem, options, Some((potential, transport)), &[])
    }

    /// [`Simulation::new`] without the claimed integrals `left_out`, which have turned out to vary along the motion.
    pub(crate) fn without(problem: Problem, options: RunOptions, left_out: &[String]) -> Result<Simulation, Error> {
        Simulation::build(problem, options, None, left_out)
    }

    fn build(
        problem: Problem,
        mut options: RunOptions,
        formulas: Option<(&Potential, &Transport)>,
        left_out: &[String],
    ) -> Result<Simulation, Error> {
        let method: Method = options.method.parse()?;
        let model_warnings = problem.warning_lines();
        let mut warnings = Vec::new();
        refuse_unverified(&problem)?;
        let (mut problem, mut penalty) = penalty::apply(problem, &method, &mut options, &mut warnings)?;
        problem.examined.leave_out(left_out);
        if let Some(redundant) = problem.examined.redundant.first() {
            let first = Diagnostic { severity: Severity::Error, ..redundant.clone() };
            return Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![first] });
        }
        if let Some(too_large) = &problem.examined.too_large {
            return Err(Error::option(format!("{too_large}; make it smaller with --set, or split it")));
        }
        let form = Form::of(&problem, &method, options.gain.as_ref())?;
        let settings = MethodSettings {
            newton_tolerance: tolerance("--newton-tolerance", options.newton_tolerance)?,
            beta: beta(options.beta)?,
        };
        let structured = crate::structured::program(&method, &problem.model, form.written_out(), &settings)?;
        if let Some((penalty, h)) = penalty.as_mut().zip(options.step)
            && let Some(multipliers) = penalty.multipliers.take()
        {
            let places = crate::structured::force_places(&method, &problem.model, h, &settings)?;
            penalty.multipliers = Some(multipliers.with_places(places));
        }
        let solves = structured.as_ref().is_some_and(Program::iterates);
        warnings.extend(unused_options(&options, &problem.settings, &method, solves));
        warnings.extend(crate::backend::warning());
        let field = form.written_out();
        let mean = penalty.as_ref().and_then(|penalty| penalty.multipliers.as_ref());
        let own = structured.as_ref().map_or(0, |program| program.map().multiplier_count());
        let multipliers = mean.map_or(own, MeanMultipliers::count);
        if multipliers == 0 {
            refuse_multipliers(&problem, &method)?;
        }
        let recorded = Recorded::new(&problem.model, field, multipliers, form.groups(), options.record.as_deref())?;
        if options.error && !recorded.arrays.iter().any(RecordedArray::is_variable) {
            return Err(Error::option("--error compares the variables that are stored: put some into --record"));
        }
        let mut plan = plan(&options, problem.model.t0, method, &mut warnings)?;
        let mut groups = form.groups().to_vec();
        if method.treatment != Treatment::Plain && groups.is_empty() {
            warnings.push(format!(
                "the model has no invariants, so `{}` does what `plain` does",
                method.treatment.facts().name
            ));
        }
        let parameters = problem.model.parameter_values.clone();
        let reference = reference_state(&problem, &options)?;
        let (feeds_back, corrects) =
            (method.treatment == Treatment::Feedback, method.treatment == Treatment::Corrected);
        let vectors = StateVectors::of(&problem.model);
        let plain = match &form {
            Form::Straight(field) => {
                Compiled::Straight(CompiledSystem::new(field, &vectors, &parameters, feeds_back, corrects))
            }
            Form::Rows(field) => {
                let imposed = !problem.model.constraints.is_empty();
                let extended = imposed && method.scheme.runge_kutta().is_some();
                Compiled::Rows(RowSystem::new(field, &vectors, &parameters, extended))
            }
        };
        let state = StepState::new(&plan, &plain, &problem.model.initial, reference.as_deref());
        let constraints = plain.invariants().constraints;
        let targets = parameters.len();
        let mut gain_text = None;
        let (mut gains, mut with_feedback) = (Vec::new(), None);
        let (system, step) = match field {
            _ if feeds_back => {
                let base = (field, &vectors);
                let treated = feedback_system(base, &plain, &plan, &state, &parameters, &options, formulas)?;
                plan.gain = treated.gain;
                gain_text = Some(treated.text);
                refuse_unstable(&plan, &treated.system, &plain, &state, &options, &mut warnings)?;
                let settling = treated.system.settling();
                let step = treated
                    .field
                    .as_ref()
                    .map(|field| CompiledStep::new(&plan, field, &vectors, settling, targets, &treated.parameters));
                gains = treated.parameters[targets + plain.invariants().count - constraints..].to_vec();
                with_feedback = treated.field;
                (treated.system, step.unwrap_or_default())
            }
            Some(base) => {
                let all = [&parameters, &state.target[constraints..]].concat();
                let step = CompiledStep::new(&plan, base, &vectors, plain.settling(), targets, &all);
                (plain, step)
            }
            None => (plain, CompiledStep::default()),
        };
        let program = structured.map(|mut program| {
            if let Some(field) = field {
                let targets = &state.target[constraints..];
                let start = Start { parameters: &parameters, targets, x: &problem.model.initial };
                program.repeat(field, &plan, &[start], false);
            }
            program
        });
        let modified = program.as_ref().zip(plan.fixed_step()).and_then(|(program, h)| {
            let energy = program.watched_energy((plan.t0, h), &problem.model.initial)?;
            let name = "modified_energy".to_string();
            let kind = InvariantKind::ModifiedEnergy;
            groups.push(InvariantGroup { name, kind, members: Vec::new(), watched: true });
            Some(energy)
        });
        let initial = initial_values(&problem.model, &groups, &state.initial, modified);
        let field = form.into_field();
        Ok(Simulation {
            problem,
            options,
            warnings,
            model_warnings,
            field,
            groups,
            constraints,
            treated: with_feedback,
            gains,
            plan,
            vectors,
            system,
            step,
            program,
            state,
            recorded,
            gain_text,
            penalty,
            initial,
            store: None,
        })
    }

    /// Opens an interrupted run. A finished run gives its summary instead.
    ///
    /// # Errors
    /// When the folder is no run, or is damaged.
    pub fn resume(path: &Path) -> Result<Result<Simulation, Value>, Error> {
        let (store, state) = match Store::resume(path).map_err(Error::store)? {
            Resumed::Finished { summary } => return Ok(Err(summary)),
            Resumed::Continues { store, state } => (*store, state),
        };
        let (problem, options) = stored_problem(path, store.attributes())?;
        let mut simulation = Simulation::new(problem, options)?;
        if let Some(state) = state {
            simulation.state = state.state().map_err(Error::store)?;
        }
        simulation.store = Some(store);
        Ok(Ok(simulation))
    }

    /// All that the user should know before it starts.
    pub fn all_warnings(&self) -> Vec<String> {
        self.model_warnings.iter().chain(&self.warnings).cloned().collect()
    }

    /// Opens a run, finished or not, to go on to a later end. What it makes is what a run to `until` would have made, whose
    /// samples are as far apart as those of this run.
    ///
    /// # Errors
    /// When the folder is no run, is damaged or holds an ensemble; when `until` is not later than the run's own end; when
    /// something that was chosen at the start depends on the end.
    pub fn extend(path: &Path, until: f64) -> Result<Simulation, Error> {
        let run = open_run(path)?;
        let shown = path.display();
        if run.trajectories().is_some() {
            return Err(Error::option(format!("{shown} is an ensemble: make it again with a later --until")));
        }
        let (problem, options) = stored_problem(path, run.attributes())?;
        let old_end = options.until;
        if !(until > old_end && until.is_finite()) {
            return Err(Error::option(format!(
                "--until must be later than t = {old_end}, where {shown} ends, but it is {until}"
            )));
        }
        let sampled_until = match options.every {
            Some(_) => None,
            None => Some(options.sampled_until.unwrap_or(old_end)),
        };
        let longer = RunOptions { until, sampled_until, ..options.clone() };
        let before = Simulation::new(problem.clone(), options)?;
        let mut simulation = Simulation::new(problem, longer)?;
        let chosen = |simulation: &Simulation| {
            (simulation.gain_text.clone(), simulation.penalty.as_ref().map(|penalty| penalty.omega.to_bits()))
        };
        if chosen(&before) != chosen(&simulation) {
            return Err(Error::option(format!(
                "{shown} cannot be extended: its gain or its penalty was chosen for an end at t = {old_end}; run the model again with --until {until}"
            )));
        }
        let state: Option<StepState> = run.checkpoint_state().map_err(Error::store)?;
        let rows = match state.map(StepState::without_end) {
            Some(state) => {
                simulation.state = state;
                simulation.state.next_sample
            }
            None if run.status() == Status::Finished => {
                return Err(Error::option(format!("{shown} has no checkpoint to go on from: run the model again")));
            }
            None => 0,
        };
        let store = Store::extend(path, &simulation.layout(), rows, &simulation.state);
        simulation.store = Some(store.map_err(Error::store)?);
        Ok(simulation)
    }

    /// Adds to the warnings what a run that is going to be stored should say of its size.
    pub fn warn_of_size(&mut self) {
        let out = self.options.out.clone().unwrap_or_else(|| "runs".into());
        self.warnings.extend(self.footprint().warnings(&out));
    }

    /// Where the run stands.
    pub fn time(&self) -> f64 {
        self.state.t
    }

    /// The gains or the rate of the feedback term, as printed.
    pub fn gain(&self) -> Option<&str> {
        self.gain_text.as_deref()
    }

    /// What a penalised run is told of its penalty.
    pub fn penalty(&self) -> Option<&Penalised> {
        self.penalty.as_ref()
    }

    /// Creates the run's folder, if that has not happened.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(&mut self) -> Result<&Path, Error> {
        if self.store.is_none() {
            self.footprint().check()?;
            let layout = self.layout();
            let store = match &self.options.out {
                Some(path) => Store::create(path, &layout),
                None => Store::create_numbered("runs".as_ref(), &self.problem.name, &layout),
            };
            self.store = Some(store.map_err(Error::store)?);
            hold::created();
        }
        Ok(self.store.as_ref().expect("just made").path())
    }

    /// What the run takes of disk and memory: the samples, the vectors of a step, and what holds samples until they are
    /// stored.
    pub fn footprint(&self) -> Footprint {
        let samples = self.plan.sample_count() as f64;
        let row: usize = self.recorded.arrays.iter().map(|array| array.len).sum();
        let number = size_of::<f64>() as f64;
        let stages = self.plan.method.scheme.runge_kutta().map_or(0, |tableau| tableau.stages);
        // Vectors of a step beside its stages, of the state that resumes it, of the checkpoint, of the state before the
        // end: a dozen and three times half a dozen.
        let vectors = (stages + 30) * self.state.x.len() + 10 * self.state.values.len() + self.system.work_len();
        // A chunk has a megabyte of an array, or a row of it, or all there is; times are listed by the plan and the store.
        let chunk = |array: &RecordedArray| {
            array.len.max(CHUNK_NUMBERS_MAX.min(array.len.saturating_mul(self.plan.sample_count())))
        };
        let chunks = self.recorded.arrays.iter().map(chunk).sum::<usize>();
        let memory = (vectors + row + chunks + read_numbers(&self.problem.model)) as f64 + 3.0 * samples;
        Footprint { disk: number * (row + 1) as f64 * samples, memory: number * memory }
    }

    /// Runs to the end, or until `watch` says stop; it is called every few hundredths of a second.
    ///
    /// # Errors
    /// When the run fails; the trajectory up to there is stored.
    pub fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> Control) -> Result<Summary, Error> {
        self.open()?;
        let mut store = self.store.take().expect("opened");
        let started = Instant::now();
        let mut recorder = Recorder {
            recorded: &self.recorded,
            multipliers: self.penalty.as_ref().and_then(|penalty| penalty.multipliers.as_ref()),
            extended: Vec::new(),
            store: &mut store,
            watch,
            plan: &self.plan,
            groups: &self.groups,
            deviations: Deviations::new(&self.system, &self.state.target),
            system: &self.system,
            lanes: Lanes::Unknown,
            values: vec![0.0; self.recorded.outputs],
            work: vec![0.0; self.recorded.kernel.work_len()],
            undefined: vec![0; self.recorded.arrays.len()],
            stored: started,
            interval: CHECKPOINT_INTERVAL,
            shown: started,
            steps: 0,
            look_every: look_every(),
        };
        let running = Running {
            problem: &self.problem,
            options: &self.options,
            groups: &self.groups,
            program: self.program.as_ref(),
            step: &self.step,
            system: &self.system,
        };
        let outcome = running.run(&self.plan, &mut self.state, &mut recorder);
        let wall_seconds = started.elapsed().as_secs_f64();
        let undefined = recorder.undefined;
        let path = store.path().to_path_buf();
        let finished = matches!(outcome, Ok(Outcome::Finished));
        let mut summary = self.summary(path.clone(), wall_seconds, !finished);
        summary.warnings.extend(large_drifts(&summary.drift, self.options.reference.is_some()));
        for (array, count) in self.recorded.arrays.iter().zip(&undefined).filter(|(_, count)| **count > 0) {
            summary
                .warnings
                .push(format!("{} '{}' is not a finite number in {count} of the samples", array.role, array.name));
        }
        let eigenvalue = self.program.as_ref().and_then(|program| program.smallest_eigenvalue(&self.state.memory));
        let watched = Watched::new(&summary.drift, eigenvalue);
        summary.warnings.extend(watched.and_then(|watched| watched.warning()));
        summary.warnings.extend(self.motion_warnings());
        let unstored = |source, samples| {
            let failure = Box::new(Failure::Observer(source));
            Error::Failed { failure, watched: None, out: Some(path.clone()), samples }
        };
        match outcome {
            Ok(Outcome::Finished) => {
                // What a later end goes on from.
                store.checkpoint(&self.state).map_err(|error| unstored(error, store.stored()))?;
                summary.warnings.extend(self.thin_samples(&mut store));
                store.finish(Status::Finished, summary.to_json()).map_err(|error| unstored(error, store.stored()))?;
                if self.options.error {
                    match orbit::measure(self, &path, watch) {
                        Ok(Some(error)) => summary.error = Some(error),
                        Ok(None) => summary.warnings.push("--error: stopped before the error was known".to_string()),
                        Err(error) => summary.warnings.push(format!("--error: the second run: {error}")),
                    }
                    store
                        .finish(Status::Finished, summary.to_json())
                        .map_err(|error| unstored(error, store.stored()))?;
                }
                Ok(summary)
            }
            Ok(Outcome::Stopped | Outcome::ClaimFailed) => {
                store.checkpoint(&self.state).map_err(|error| unstored(error, store.stored()))?;
                store
                    .finish(Status::Interrupted, summary.to_json())
                    .map_err(|error| unstored(error, store.stored()))?;
                Ok(summary)
            }
            Err(failure) => {
                let watched = watched.and_then(|watched| watched.explaining(&failure));
                // The failure is what the user has to hear of, also where the disk takes no more.
                let kept = store.checkpoint(&self.state);
                let (failure, samples) = (Box::new(failure), store.stored());
                let error = Error::Failed { failure, watched, out: Some(path), samples };
                drop(kept.and_then(|()| store.finish(Status::Failed, error.to_json())));
                Err(error)
            }
        }
    }

    /// Leaves out samples of a finished run that nobody chose and that are more than its steps, which nobody knew before: so
    /// many that the rest is evenly spaced. What is left is what `samples` with their number would have stored. The
    /// result is a warning where that could not be done.
    fn thin_samples(&mut self, store: &mut Store) -> Option<String> {
        let (count, plan) = fewer_samples(&self.options, &self.plan, self.state.step)?;
        let all = self.plan.sample_count();
        let mut kept = 0;
        let is_kept = |&row: &usize| {
            let same = kept < plan.sample_count() && self.plan.sample_time(row) == plan.sample_time(kept);
            kept += usize::from(same);
            same
        };
        let rows: Vec<usize> = (0..all).filter(is_kept).collect();
        let renumber = |state: &mut StepState| state.next_sample = rows.partition_point(|&row| row < state.next_sample);
        let mut state = self.state.clone();
        renumber(&mut state);
        state.before_end.as_deref_mut().map(renumber);
        let options = RunOptions { samples: Some(count), ..self.options.clone() };
        let (old_plan, old_options) =
            (std::mem::replace(&mut self.plan, plan), std::mem::replace(&mut self.options, options));
        match store.thin(&self.layout(), &rows, &state) {
            Ok(()) => {
                self.state = state;
                None
            }
            Err(error) => {
                (self.plan, self.options) = (old_plan, old_options);
                Some(format!("all {all} samples stay, which are more than steps: {error}"))
            }
        }
    }

    /// The state from which the run starts, or goes on.
    pub(crate) fn state(&self) -> &StepState {
        &self.state
    }

    /// Runs `plan` from `state` and stores nothing. The plan is this simulation's, but for its outputs.
    pub(crate) fn run_unstored<O: Observer>(
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
        let mut state = StepState::new(&plan, &self.system, x, None);
        // What makes many equal steps has their length in it.
        let program = self.program.as_ref().map(|program| program.rebound(&self.problem.model.parameter_values));
        let step = CompiledStep::default();
        run_method(program.as_deref(), &step, &plan, &self.system, &mut state, &mut Unwatched)
            .map_err(|failure| Error::Failed { failure: Box::new(failure), watched: None, out: None, samples: 0 })?;
        Ok(state.x)
    }

    /// The claims that failed on the way to `state`, a warning each.
    pub(crate) fn claim_warnings(&self, state: &StepState) -> Vec<String> {
        let held = self.plan.method.treatment != Treatment::Plain;
        let warning = |claim: &FailedClaim| {
            let FailedClaim { group, t, rate, free_from } = claim;
            let until = if held { format!("; from t = {free_from} on nothing holds it") } else { String::new() };
            format!(
                "integral '{}' is not constant along the motion: at t = {t} its rate is {rate:.1e} of the terms that should cancel in it{until}; correct the formula, or record it with `observe` instead",
                self.groups[*group].name
            )
        };
        state.failed_claims.iter().map(warning).collect()
    }

    /// What the run has met that its numbers do not show.
    fn motion_warnings(&self) -> Vec<String> {
        let StepState { singularity, innovation, innovation_at, .. } = &self.state;
        let invariants = self.system.invariants();
        let mut warnings = self.claim_warnings(&self.state);
        if singularity.pivot == 0.0 {
            warnings.push(format!(
                "the constraints are dependent at t = {}, where {} says what others say: the motion goes through a configuration from which it may go on in several ways, and an error or rounding decided which; compare a run with a tenth of the tolerance or step",
                singularity.t, invariants.row_name(singularity.row)
            ));
        } else if singularity.pivot < NEARLY_DEPENDENT {
            warnings.push(format!(
                "the constraints are nearly dependent at t = {}, where {} says almost what others say (a pivot of {:.1e}, where 1 is independent): forces are large there, and which way the motion goes on may be decided by rounding; compare a run with a tenth of the tolerance or step",
                singularity.t, invariants.row_name(singularity.row), singularity.pivot
            ));
        }
        let expected = largest_innovation(self.vectors.vectors.count());
        if *innovation > MANY_TIMES * expected {
            warnings.push(format!(
                "a correction was {:.0} times larger than the step's error explains, at t = {innovation_at}: H or an integral had changed by more than the step can have made; a smaller step or tolerance shows whether it is constant",
                innovation / expected
            ));
        }
        warnings
    }

    fn summary(&self, out: PathBuf, wall_seconds: f64, interrupted: bool) -> Summary {
        let gain = self.plan.gain.is_some();
        Summary {
            model: self.problem.name.clone(),
            method: self.options.method.clone(),
            t: self.state.t,
            steps: self.state.step,
            state: Summary::state_of(&variables(&self.problem.model), &self.state.x),
            hamiltonian: self.problem.model.is_hamiltonian(),
            drift: Summary::drift_of(
                &self.groups,
                &self.problem.examined.varying,
                &self.initial,
                (&self.state, self.plan.span()),
            ),
            cost: Cost::clone(&self.state.cost),
            wall_seconds,
            out,
            gain: self.gain_text.clone(),
            penalty: self.penalty.as_ref().map(|penalty| (penalty.omega, penalty.moved.is_some())),
            stability: gain.then(|| (self.state.stability.max, self.state.stability.mean())),
            error: None,
            interrupted,
            warnings: self.all_warnings(),
        }
    }

    /// The values of the parameters that `which` selects, by name; not of families that are long.
    pub(crate) fn parameters(&self, which: impl Fn(&Parameter) -> bool) -> Value {
        let model = &self.problem.model;
        let short = |parameter: &&Parameter| parameter.family.len() <= LONGEST_PARAMETER && which(parameter);
        let entry = |parameter: &Parameter| {
            let Family { name, bounds, shape, .. } = parameter.family.clone();
            let layout = VariableLayout { name, first: parameter.first, bounds, shape };
            let values = &model.parameter_values[layout.first..layout.first + layout.len()];
            (layout.name.clone(), layout.nested(values))
        };
        Value::Object(model.parameters.iter().filter(short).map(entry).collect())
    }

    /// How many targets F₀ stand among the parameters of a step.
    /// The gains of a run that starts at `x`: a Gauss–Newton form has this run's rate, and the weights of that start.
    /// `system` has the parameters of that run.
    pub(crate) fn gains_at(&self, system: &dyn System, x: &[f64]) -> Vec<f64> {
        match self.plan.gain {
            Some(Gain::Rate(rate)) => [&[rate][..], &metric(system, self.plan.t0, x, rate)].concat(),
            _ => self.gains.clone(),
        }
    }

    pub(crate) fn target_count(&self) -> usize {
        self.system.invariants().count - self.constraints
    }

    pub(crate) fn layout(&self) -> Layout {
        let mut layout = Layout {
            times: (0..self.plan.sample_count()).map(|i| self.plan.sample_time(i)).collect(),
            ..Layout::default()
        };
        self.recorded.add_to(&mut layout);
        let attributes = &mut layout.attributes;
        let mut set = |key: &str, value: Value| attributes.insert(key.to_string(), value);
        set("holonome", json!(env!("CARGO_PKG_VERSION")));
        set("model", json!(self.problem.name));
        set("source", json!(self.problem.source.text()));
        set("tables", json!(self.problem.tables));
        set("settings", json!(self.problem.settings));
        set("options", json!(self.options));
        set("method", json!(self.plan.method.to_string()));
        set("parameters", self.parameters(|_| true));
        layout
    }
}

/// The problem and the options of the run at `path`, whose attributes these are.
fn stored_problem(path: &Path, attributes: &Map<String, Value>) -> Result<(Problem, RunOptions), Error> {
    let damaged = |what: &str| {
        Error::store(StoreError::NotARun { path: path.to_path_buf(), reason: format!("its {what} cannot be read") })
    };
    let text = |key: &str| attributes.get(key).and_then(Value::as_str).map(str::to_string).ok_or_else(|| damaged(key));
    let read = |key: &str| attributes.get(key).cloned().ok_or_else(|| damaged(key));
    let tables: BTreeMap<String, String> = serde_json::from_value(read("tables")?).map_err(|_| damaged("tables"))?;
    let settings: Settings = serde_json::from_value(read("settings")?).map_err(|_| damaged("settings"))?;
    let options: RunOptions = serde_json::from_value(read("options")?).map_err(|_| damaged("options"))?;
    Ok((Problem::from_text(&text("model")?, &text("source")?, &tables, &settings)?, options))
}

/// Numbers that a model takes once it is read and its derivatives are there: so many for each number of the state, and for
/// each row of a template. Measured with chains of 1e6 links or springs and with 2e6 pairs, to a quarter of it.
fn read_numbers(model: &Model) -> usize {
    const OF_THE_STATE: usize = 27;
    const OF_A_ROW: usize = 8;
    let (Dynamics::Hamiltonian(dynamics, _) | Dynamics::Field(dynamics)) = &model.dynamics;
    let quantities = [&model.constraints, &model.integrals, &model.observables].into_iter().flatten();
    let functionals = quantities.map(|quantity| &quantity.functional).chain([dynamics]);
    let rows: usize = functionals.flat_map(|functional| &functional.terms).map(Term::rows).sum();
    OF_THE_STATE * model.dimension() + OF_A_ROW * rows
}

/// Nobody watches.
pub(crate) struct Unwatched;

impl Observer for Unwatched {
    type Error = StoreError;

    fn sample(&mut self, _index: usize, _t: f64, _x: &[f64]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What it takes to run, without the state.
struct Running<'a> {
    problem: &'a Problem,
    options: &'a RunOptions,
    groups: &'a [InvariantGroup],
    program: Option<&'a Program>,
    step: &'a CompiledStep,
    system: &'a Compiled,
}

impl Running<'_> {
    /// Runs `plan` from `state`. Where a claim fails on the way, the run goes on over a system that does not hold it.
    fn run<O: Observer>(
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
        if model.observables.is_empty() {
            problem.model.observables.clear();
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

/// Runs `plan` with the map of its method.
pub(crate) fn run_method<O: Observer>(
    program: Option<&dyn StepMap>,
    step: &CompiledStep,
    plan: &Plan,
    system: &Compiled,
    state: &mut StepState,
    observer: &mut O,
) -> Result<Outcome, Failure<O::Error>> {
    match program {
        Some(program) => run_map(plan, system, program, state, observer),
        None => {
            let map = CompiledMap::new(step, plan.method.scheme.tableau(), system);
            run_map(plan, system, &map, state, observer)
        }
    }
}

/// A model's field in the form in which it is run.
enum Form<'a> {
    Straight(Field),
    Rows(&'a RowField),
}

impl Form<'_> {
    /// Row by row if the model is large. A term of feedback with gains of its own is made of formulas, so it needs them
    /// written out.
    fn of<'a>(problem: &'a Problem, method: &Method, gain: Option<&Gains>) -> Result<Form<'a>, Error> {
        let Some(rows) = &problem.examined.rows else {
            let field = problem.examined.field.as_ref().ok_or_else(|| Error::option("the model has no field"))?;
            return Ok(Form::Straight(field.0.clone()));
        };
        // The rates of hidden constraints that move are not known row by row.
        let moves = problem.model.constraints.iter().any(|c| c.depends & TIME != 0);
        let extends = moves && method.scheme.runge_kutta().is_some();
        let automatic = gain.is_none_or(|gain| *gain == Gains::Auto);
        if (method.treatment != Treatment::Feedback || automatic) && !extends {
            return Ok(Form::Rows(rows));
        }
        let unrolled = unroll(&problem.model).map_err(|too_large| {
            Error::option(match extends {
                true => format!("`{method}` writes out the forces of constraints that depend on the time, and {too_large}; use rattle"),
                false => format!(
                    "`{method}` writes out a feedback term with gains of its own, and {too_large}; `--gain auto` and `corrected:{}` hold the same invariants and run models of any size",
                    method.scheme.name
                ),
            })
        })?;
        let (mut field, _) =
            dirac::extend(&problem.model, unrolled).map_err(|reason| Error::option(reason.to_string()))?;
        field.watch_only(&problem.examined.varying);
        Ok(Form::Straight(field))
    }

    fn written_out(&self) -> Option<&Field> {
        match self {
            Form::Straight(field) => Some(field),
            Form::Rows(_) => None,
        }
    }

    fn into_field(self) -> Option<Field> {
        match self {
            Form::Straight(field) => Some(field),
            Form::Rows(_) => None,
        }
    }

    fn groups(&self) -> &[InvariantGroup] {
        match self {
            Form::Straight(field) => &field.groups,
            Form::Rows(field) => &field.groups,
        }
    }
}

/// Refuses claims that are not true, unless they may be left out of what is held.
fn refuse_unverified(problem: &Problem) -> Result<(), Error> {
    if problem.settings.allow_unverified || problem.examined.unverified.is_empty() {
        return Ok(());
    }
    let error = |d: &Diagnostic| Diagnostic { severity: Severity::Error, ..d.clone() };
    let diagnostics = problem.examined.unverified.iter().map(error).collect();
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics })
}

/// Refuses observables that use multipliers, for a method that has none.
fn refuse_multipliers(problem: &Problem, method: &Method) -> Result<(), Error> {
    let Some(observable) = problem.model.observables.iter().find(|q| q.depends & MULTIPLIER != 0) else {
        return Ok(());
    };
    let message = format!("observable '{}' uses multipliers, and `{method}` has none", observable.name);
    let diagnostic = Diagnostic::error(message, observable.span, "not known to this method").help(
        "methods that have them: shake and rattle over any base, compositions of rattle, and others with --penalty",
    );
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![diagnostic] })
}

/// Options that the chosen method does not use; `iterates` says whether its step solves equations by iterations.
fn unused_options(options: &RunOptions, settings: &Settings, method: &Method, iterates: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut unused = |name: &str, used: bool, given: bool, who: &str| {
        if given && !used {
            warnings.push(format!("{name} has no effect: {who}"));
        }
    };
    let feedback = method.treatment == Treatment::Feedback;
    unused("--gain", feedback, options.gain.is_some(), "only `feedback` methods have gains");
    let refusable = feedback || options.penalty.is_some();
    unused(
        "--allow-unstable",
        refusable,
        options.allow_unstable,
        "only gains of `feedback` methods and penalties are refused",
    );
    unused(
        "--projection-tolerance",
        method.treatment.iterates(),
        options.projection_tolerance.is_some(),
        "only `projection` and `symmetric-projection` iterate",
    );
    unused(
        "--reference",
        method.treatment != Treatment::Plain,
        options.reference.is_some(),
        "`plain` methods aim at nothing",
    );
    unused(
        "--newton-tolerance",
        iterates,
        options.newton_tolerance.is_some(),
        "the method iterates for no equations on this model",
    );
    let needs = method.scheme.needs;
    unused(
        "--beta",
        needs.has_beta(),
        options.beta.is_some(),
        "only the methods of Newmark, Zhang and Skeel have a beta",
    );
    unused(
        "--stiff",
        needs == Needs::Stiff,
        settings.stiff.is_some(),
        "only `zhang-skeel-stiff` treats a part of the potential energy in its own way",
    );
    unused(
        "--metric",
        method.treatment == Treatment::Projection,
        options.metric != Metric::Auto,
        "only `projection` moves a state in a metric that can be chosen",
    );
    unused("--max-step", options.step.is_none(), options.max_step.is_some(), "the step is fixed by --step");
    let defaults = RunOptions::default();
    let tolerance = options.rtol != defaults.rtol || options.atol != defaults.atol;
    unused("--rtol or --atol", options.step.is_none(), tolerance, "the step is fixed by --step");
    warnings
}

/// Tolerances below this ask for errors in a step that are smaller than a few roundings of its result.
const FINEST: f64 = 1e-15;

/// Tolerances above this allow anything.
const COARSEST: f64 = 0.1;

fn plan(options: &RunOptions, t0: f64, method: Method, warnings: &mut Vec<String>) -> Result<Plan, Error> {
    let mut plan = match options.step {
        Some(h) => Plan::fixed(method, t0, options.until, h)?,
        None => Plan::adaptive(method, t0, options.until, options.rtol, options.atol)?,
    };
    if options.step.is_none() && options.rtol < FINEST && options.atol <= options.rtol {
        warnings.push(format!(
            "--rtol {:e} is below what rounding allows: steps become shorter and the result no better; take {FINEST:e} or more",
            options.rtol
        ));
    }
    if options.step.is_none() && options.rtol > COARSEST {
        warnings.push(format!(
            "--rtol {:e} lets every step err by more than a tenth of the state: the motion may be another one; take {COARSEST:e} or less",
            options.rtol
        ));
    }
    if let Some(longest) = options.max_step {
        plan = plan.with_longest_step(longest)?;
    }
    match options.max_steps {
        Some(0) => return Err(Error::option("--max-steps must be at least 1")),
        Some(limit) => plan.step_limit = limit,
        None => {}
    }
    plan.metric = options.metric;
    plan = match (options.every, options.samples) {
        (Some(_), Some(_)) => return Err(Error::option("--every and --samples exclude each other")),
        (Some(every), None) => plan.with_spacing(every).map_err(|e| Error::option(format!("--every: {e}")))?,
        (None, samples) => with_samples(plan, samples.unwrap_or(DEFAULT_GAPS + 1), options)?,
    };
    plan.projection_tolerance = tolerance("--projection-tolerance", options.projection_tolerance)?;
    if let Stepping::Fixed(fixed) = &plan.stepping
        && fixed.shorter_last.is_some()
        && method.symplectic()
    {
        warnings
            .push(format!("the last step is shorter than {}: a symplectic method loses its structure there", fixed.h));
    }
    Ok(plan)
}

/// Gaps between the samples of a run, where nobody says how many there are; a number with many divisors.
const DEFAULT_GAPS: u64 = 1000;

fn with_samples(plan: Plan, count: u64, options: &RunOptions) -> Result<Plan, PlanError> {
    match options.sampled_until {
        Some(until) => plan.with_samples_until(count, until),
        None => plan.with_samples(count),
    }
}

/// The number of samples, and a plan with them, for an adaptive run by default that has taken so many `steps`: the most that
/// divide its gaps evenly and are no more than the states at the ends of its steps. `None` if all may stay.
fn fewer_samples(options: &RunOptions, plan: &Plan, steps: u64) -> Option<(u64, Plan)> {
    let by_default = options.samples.is_none() && options.every.is_none() && plan.fixed_step().is_none();
    let too_many = |plan: &Plan| plan.sample_count() as u64 > steps + 1;
    if !by_default || !too_many(plan) {
        return None;
    }
    let divisors = (1..=DEFAULT_GAPS).rev().filter(|gaps| DEFAULT_GAPS.is_multiple_of(*gaps));
    let plans = divisors.filter_map(|gaps| Some((gaps + 1, with_samples(plan.clone(), gaps + 1, options).ok()?)));
    let mut fewest = None;
    for (count, plan) in plans {
        let enough = !too_many(&plan);
        fewest = Some((count, plan));
        if enough {
            break;
        }
    }
    fewest
}

/// β as an option gives it.
fn beta(value: Option<f64>) -> Result<f64, Error> {
    const DEFAULT: f64 = 0.4;
    match value {
        Some(beta) if !(beta >= 0.0 && beta.is_finite()) => {
            Err(Error::option(format!("--beta must be 0 or more, and finite, but it is {beta}")))
        }
        value => Ok(value.unwrap_or(DEFAULT)),
    }
}

/// A tolerance that an option gives.
fn tolerance(name: &str, value: Option<f64>) -> Result<Option<f64>, Error> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            Err(Error::option(format!("{name} must be positive and finite, but it is {value}")))
        }
        value => Ok(value),
    }
}

/// The state whose invariants are the target.
pub(crate) fn reference_state(problem: &Problem, options: &RunOptions) -> Result<Option<Vec<f64>>, Error> {
    let Some(text) = &options.reference else { return Ok(None) };
    // The start may be off the set; what it aims at may not.
    let mut settings = Settings { start_off_set: false, ..problem.settings.clone() };
    let parts = split_assignments(text);
    for part in &parts {
        let Some((name, value)) = part.split_once('=') else {
            return Err(Error::option(format!(
                "--reference: '{part}' is not NAME=EXPR; write for example --reference \"q=(0,1,0),p=(1,0,-1)\""
            )));
        };
        let name = name.trim();
        if !problem.model.variables.iter().any(|v| v.family.name == name) {
            let names: Vec<&str> = problem.model.variables.iter().map(|v| v.family.name.as_str()).collect();
            return Err(Error::option(format!(
                "--reference: '{name}' is no variable of the model; these are: {}",
                names.join(", ")
            )));
        }
        settings.set.retain(|(n, _)| n != name);
        settings.set.push((name.to_string(), value.trim().to_string()));
    }
    // The same file with other initial values, so a reference must be as sound as a start.
    let other =
        Problem::from_text(&problem.name, problem.source.text(), &problem.tables, &settings).map_err(|mut error| {
            if let Error::Model { text: source, .. } = &mut error {
                source.rename(problem.source.name(), "--reference", parts.len());
            }
            error
        })?;
    Ok(Some(other.model.initial))
}

/// Splits `q=(0,1,0),p=(1,0,-1)` at the commas outside brackets.
fn split_assignments(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' | ';' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Opens a stored run for reading.
///
/// # Errors
/// When the folder is no run.
pub fn open_run(path: &Path) -> Result<StoredRun, Error> {
    StoredRun::open(path).map_err(Error::store)
}
