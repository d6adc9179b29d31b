//! A problem compiled for a method, and its run.

use crate::compiled::{Bound, CompiledSystem};
use crate::error::Error;
use crate::gain;
use crate::options::{Gains, RunOptions, Settings};
use crate::pilot;
use crate::problem::Problem;
use crate::store::{ArrayLayout, Dimension, Label, Layout, Resumed, Status, Store, StoreError, StoredRun};
use crate::summary::Summary;
use holonome_integrate::failure::Failure;
use holonome_integrate::method::{Method, Treatment};
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::run::{Outcome, run};
use holonome_integrate::stability::{self, Gain};
use holonome_integrate::state::{Cost, StepState};
use holonome_model::elaborate::model::{Model, Quantity};
use holonome_model::elaborate::shape::Shape;
use holonome_model::functional::Functional;
use holonome_model::graph::Node;
use holonome_model::numeric::positive_definite;
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::treatment::feedback::{Potential, Transport};
use holonome_model::treatment::structure::evaluate;
use holonome_model::treatment::{Field, InvariantKind, feedback};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a run is stored.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// How often a run is shown and may be stopped: soon for a person, rare for a processor.
const SHOW_INTERVAL: Duration = Duration::from_millis(20);

/// A long step or a slow disk must not hide progress, a short step must not pay for the clock.
const STEPS_BETWEEN_LOOKS: u64 = 64;

/// A gain is reported as near its limit from this mean of h λmax/r on.
const NEAR_LIMIT: f64 = 0.8;

/// A variable, or anything recorded, with its place among the numbers and its labels.
#[derive(Clone, Debug)]
pub struct VariableLayout {
    /// Its name.
    pub name: String,
    /// Its first number.
    pub first: usize,
    /// First and last value of each index of its family.
    pub bounds: Vec<(i64, i64)>,
    /// Shape of a member.
    pub shape: Shape,
}

impl VariableLayout {
    /// Number of numbers.
    pub fn len(&self) -> usize {
        self.bounds.iter().map(|&(a, b)| (b - a + 1).max(0) as usize).product::<usize>() * self.shape.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as nested arrays, family indices first.
    pub fn nested(&self, x: &[f64]) -> Value {
        let mut dimensions: Vec<usize> = self.bounds.iter().map(|&(a, b)| (b - a + 1).max(0) as usize).collect();
        dimensions.extend(self.shape.dimensions());
        nest(x, &dimensions)
    }
}

fn nest(x: &[f64], dimensions: &[usize]) -> Value {
    match dimensions {
        [] => json!(x[0]),
        [_] => json!(x),
        [_, rest @ ..] => {
            let size: usize = rest.iter().product();
            Value::Array(x.chunks(size.max(1)).map(|chunk| nest(chunk, rest)).collect())
        }
    }
}

/// How a run stands, for a progress bar.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time reached.
    pub t: f64,
    /// Time at the end.
    pub until: f64,
    /// Accepted steps.
    pub steps: u64,
    /// Steps of the whole run, where they are known.
    pub of: Option<u64>,
    /// The largest drift so far, with its name.
    pub drift: Option<(String, f64)>,
}

/// A problem compiled for a method.
pub struct Simulation {
    /// The problem.
    pub problem: Problem,
    /// The choices.
    pub options: RunOptions,
    /// What the user should know before it starts.
    pub warnings: Vec<String>,
    field: Field,
    plan: Plan,
    system: CompiledSystem,
    state: StepState,
    recorded: Recorded,
    gain_text: Option<String>,
    initial: Vec<Value>,
    store: Option<Store>,
}

impl Simulation {
    /// Compiles `problem` for the method and the steps of `options`.
    ///
    /// # Errors
    /// When the options make no sense, the method does not suit the model, or a gain is refused.
    pub fn new(problem: Problem, options: RunOptions) -> Result<Simulation, Error> {
        Simulation::build(problem, options, None)
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
        Simulation::build(problem, options, Some((potential, transport)))
    }

    fn build(
        problem: Problem,
        options: RunOptions,
        formulas: Option<(&Potential, &Transport)>,
    ) -> Result<Simulation, Error> {
        let method: Method = options.method.parse()?;
        if let Some(redundant) = problem.examined.redundant.first() {
            let first =
                Diagnostic { severity: holonome_model::syntax::diagnostic::Severity::Error, ..redundant.clone() };
            return Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![first] });
        }
        if let Some(too_large) = &problem.examined.too_large {
            return Err(Error::option(format!("{too_large}; make it smaller with --set, or split it")));
        }
        let (mut base, _) = problem.examined.field.clone().ok_or_else(|| Error::option("the model has no field"))?;
        let mut warnings = unused_options(&options, &method);
        let recorded = Recorded::new(&problem.model, &mut base);
        let mut plan = plan(&options, method, &mut warnings)?;
        if method.treatment != Treatment::Plain && base.invariants.is_empty() {
            warnings.push(format!(
                "the model has no invariants, so `{}` does what `plain` does",
                method.treatment.facts().name
            ));
        }
        let parameters = problem.model.parameter_values.clone();
        let reference = reference_state(&problem, &options)?;
        let plain = CompiledSystem::new(&base, &parameters, method.treatment == Treatment::Feedback);
        let state = StepState::new(&plan, &plain, &problem.model.initial, reference.as_deref());
        let mut gain_text = None;
        let system = if method.treatment == Treatment::Feedback {
            let (system, gain, text) = feedback_system(&base, &plain, &plan, &state, &parameters, &options, formulas)?;
            plan.gain = gain;
            gain_text = Some(text);
            refuse_unstable(&plan, &system, &plain, &state, &options, &mut warnings)?;
            system
        } else {
            plain
        };
        let initial = initial_values(&problem.model, &base);
        Ok(Simulation {
            problem,
            options,
            warnings,
            field: base,
            plan,
            system,
            state,
            recorded,
            gain_text,
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
        let damaged = |what: &str| {
            Error::store(StoreError::NotARun { path: path.to_path_buf(), reason: format!("its {what} cannot be read") })
        };
        let attributes = store.attributes().clone();
        let text =
            |key: &str| attributes.get(key).and_then(Value::as_str).map(str::to_string).ok_or_else(|| damaged(key));
        let read = |key: &str| attributes.get(key).cloned().ok_or_else(|| damaged(key));
        let tables: BTreeMap<String, String> =
            serde_json::from_value(read("tables")?).map_err(|_| damaged("tables"))?;
        let settings: Settings = serde_json::from_value(read("settings")?).map_err(|_| damaged("settings"))?;
        let options: RunOptions = serde_json::from_value(read("options")?).map_err(|_| damaged("options"))?;
        let problem = Problem::from_text(&text("model")?, &text("source")?, &tables, &settings)?;
        let mut simulation = Simulation::new(problem, options)?;
        if let Some(state) = state {
            simulation.state = serde_json::from_value(state).map_err(|_| damaged("checkpoint"))?;
        }
        simulation.store = Some(store);
        Ok(Ok(simulation))
    }

    /// Where the run stands.
    pub fn time(&self) -> f64 {
        self.state.t
    }

    /// The gains or the rate of the feedback term, as printed.
    pub fn gain(&self) -> Option<&str> {
        self.gain_text.as_deref()
    }

    /// Creates the run's folder, if that has not happened.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(&mut self) -> Result<&Path, Error> {
        if self.store.is_none() {
            let layout = self.layout();
            let store = match &self.options.out {
                Some(path) => Store::create(path, &layout),
                None => Store::create_numbered("runs".as_ref(), &self.problem.name, &layout),
            };
            self.store = Some(store.map_err(Error::store)?);
        }
        Ok(self.store.as_ref().expect("just made").path())
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
            store: &mut store,
            watch,
            plan: &self.plan,
            groups: &self.field,
            values: vec![0.0; self.recorded.outputs],
            work: vec![0.0; self.recorded.kernel.work_len()],
            undefined: vec![0; self.recorded.arrays.len()],
            stored: started,
            shown: started,
            steps: 0,
        };
        let outcome = run(&self.plan, &self.system, &mut self.state, &mut recorder);
        let wall_seconds = started.elapsed().as_secs_f64();
        let undefined = recorder.undefined;
        let path = store.path().to_path_buf();
        let finished = matches!(outcome, Ok(Outcome::Finished));
        let mut summary = self.summary(path.clone(), wall_seconds, !finished);
        for (array, count) in self.recorded.arrays.iter().zip(&undefined).filter(|(_, count)| **count > 0) {
            summary
                .warnings
                .push(format!("{} '{}' is not a finite number in {count} of the samples", array.role, array.name));
        }
        let unstored = |source| Error::Failed { failure: Box::new(Failure::Observer(source)), out: Some(path.clone()) };
        match outcome {
            Ok(Outcome::Finished) => {
                store.finish(Status::Finished, summary.to_json()).map_err(unstored)?;
                Ok(summary)
            }
            Ok(Outcome::Stopped) => {
                store.checkpoint(&encode(&self.state)).map_err(unstored)?;
                store.finish(Status::Interrupted, summary.to_json()).map_err(unstored)?;
                Ok(summary)
            }
            Err(failure) => {
                let error = Error::Failed { failure: Box::new(failure), out: Some(path) };
                // The failure is what the user has to hear of, also where the disk takes no more.
                let stored =
                    store.checkpoint(&encode(&self.state)).and_then(|()| store.finish(Status::Failed, error.to_json()));
                drop(stored);
                Err(error)
            }
        }
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
            drift: Summary::drift_of(&self.field, &self.initial, &self.state),
            cost: Cost::clone(&self.state.cost),
            wall_seconds,
            out,
            gain: self.gain_text.clone(),
            stability: gain.then(|| (self.state.stability.max, self.state.stability.mean())),
            interrupted,
            warnings: Vec::new(),
        }
    }

    fn layout(&self) -> Layout {
        let mut layout = Layout {
            times: (0..self.plan.sample_count()).map(|i| self.plan.sample_time(i)).collect(),
            ..Layout::default()
        };
        for array in &self.recorded.arrays {
            let mut dimensions = Vec::new();
            match &array.family {
                Members::Box(indices) => {
                    for (name, (low, high)) in indices {
                        dimensions.push(layout.dimension(Dimension::index(name, *low..=*high)));
                    }
                }
                Members::List(name, labels) => {
                    dimensions.push(layout.dimension(Dimension::members(name, labels.clone())))
                }
            }
            match array.shape {
                Shape::Scalar | Shape::Condition => {}
                Shape::Vector(k) => dimensions.push(layout.dimension(Dimension::component(k))),
                Shape::Matrix(k, l) => {
                    dimensions.push(layout.dimension(Dimension::row(k)));
                    dimensions.push(layout.dimension(Dimension::column(l)));
                }
            }
            let mut attributes = Map::new();
            attributes.insert("role".to_string(), json!(array.role));
            layout.arrays.push(ArrayLayout {
                name: array.name.clone(),
                dimensions,
                description: array.description.clone(),
                attributes,
            });
        }
        let attributes = &mut layout.attributes;
        let mut set = |key: &str, value: Value| attributes.insert(key.to_string(), value);
        set("holonome", json!(env!("CARGO_PKG_VERSION")));
        set("model", json!(self.problem.name));
        set("source", json!(self.problem.source.text()));
        set("tables", json!(self.problem.tables));
        set("settings", json!(self.problem.settings));
        set("options", json!(self.options));
        set("method", json!(self.plan.method.to_string()));
        layout
    }
}

fn encode(state: &StepState) -> Value {
    serde_json::to_value(state).expect("a state is numbers and lists")
}

/// The variables in the model's order.
pub fn variables(model: &Model) -> Vec<VariableLayout> {
    model
        .variables
        .iter()
        .map(|v| VariableLayout {
            name: v.family.name.clone(),
            first: v.first,
            bounds: v.family.bounds.clone(),
            shape: v.family.shape,
        })
        .collect()
}

/// Options that the chosen method does not use.
fn unused_options(options: &RunOptions, method: &Method) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut unused = |name: &str, used: bool, given: bool, who: &str| {
        if given && !used {
            warnings.push(format!("{name} has no effect: {who}"));
        }
    };
    let feedback = method.treatment == Treatment::Feedback;
    unused("--gain", feedback, options.gain.is_some(), "only `feedback` methods have gains");
    unused("--allow-unstable", feedback, options.allow_unstable, "only `feedback` methods have gains");
    unused(
        "--projection-tolerance",
        method.treatment == Treatment::Projection,
        options.projection_tolerance.is_some(),
        "only `projection` methods iterate",
    );
    unused(
        "--reference",
        method.treatment != Treatment::Plain,
        options.reference.is_some(),
        "`plain` methods aim at nothing",
    );
    let defaults = RunOptions::default();
    let tolerance = options.rtol != defaults.rtol || options.atol != defaults.atol;
    unused("--rtol or --atol", options.step.is_none(), tolerance, "the step is fixed by --step");
    warnings
}

fn plan(options: &RunOptions, method: Method, warnings: &mut Vec<String>) -> Result<Plan, Error> {
    let mut plan = match options.step {
        Some(h) => Plan::fixed(method, 0.0, options.until, h)?,
        None => Plan::adaptive(method, 0.0, options.until, options.rtol, options.atol)?,
    };
    plan = match (options.every, options.samples) {
        (Some(_), Some(_)) => return Err(Error::option("--every and --samples exclude each other")),
        (Some(every), None) => plan.with_spacing(every).map_err(|e| Error::option(format!("--every: {e}")))?,
        (None, samples) => plan.with_samples(samples.unwrap_or(1001))?,
    };
    if let Some(tolerance) = options.projection_tolerance {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            return Err(Error::option(format!(
                "--projection-tolerance must be positive and finite, but it is {tolerance}"
            )));
        }
        plan.projection_tolerance = Some(tolerance);
    }
    if let Stepping::Fixed(fixed) = &plan.stepping
        && fixed.shorter_last.is_some()
        && method.scheme.symplectic
    {
        warnings
            .push(format!("the last step is shorter than {}: a symplectic method loses its structure there", fixed.h));
    }
    Ok(plan)
}

/// The state whose invariants are the target.
fn reference_state(problem: &Problem, options: &RunOptions) -> Result<Option<Vec<f64>>, Error> {
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

/// The feedback field's system, its gain for the monitor, and the gain in words.
fn feedback_system(
    base: &Field,
    plain: &CompiledSystem,
    plan: &Plan,
    state: &StepState,
    parameters: &[f64],
    options: &RunOptions,
    formulas: Option<(&Potential, &Transport)>,
) -> Result<(CompiledSystem, Option<Gain>, String), Error> {
    let gains = options.gain.clone().unwrap_or(Gains::Auto);
    let (treated, inputs, inserted, gain, text) = match &gains {
        Gains::Auto => {
            let mut short = plan.clone();
            short.method.treatment = Treatment::Plain;
            // A field at rest needs no pull.
            let rate = stability::pilot_rate(&short, plain, state).unwrap_or(0.0);
            let (treated, inputs) = feedback::gauss_newton(base);
            (treated, inputs, vec![rate], Some(Gain::Rate(rate)), format!("auto: kappa={rate:.6}"))
        }
        Gains::Formula => {
            let Some((potential, transport)) = formulas else {
                return Err(Error::option(
                    "this run's feedback was given as formulas by a program: resume it from there",
                ));
            };
            let (treated, inputs) = feedback::literal(base, potential, transport);
            refuse_indefinite(base, transport, &state.x, parameters)?;
            // Gains that a formula's potential may still read are those of the papers: 1.
            let inserted = vec![1.0; inputs.gain_count];
            (treated, inputs, inserted, None, "formulas".to_string())
        }
        Gains::Matrix(k) => {
            let m = base.invariants.len();
            if k.len() != m * m {
                return Err(Error::option(format!(
                    "the gain matrix has {} entries, and {m} invariants need {}",
                    k.len(),
                    m * m
                )));
            }
            let (treated, inputs) =
                feedback::literal(base, &feedback::Potential::Matrix, &feedback::Transport::Identity);
            (treated, inputs, k.clone(), Some(Gain::Dense(k.clone())), "a matrix".to_string())
        }
        _ => {
            let groups = gain::by_group(&gains, base)?;
            let (treated, inputs) =
                feedback::literal(base, &feedback::Potential::Gains, &feedback::Transport::Identity);
            let (rows, text) = (gain::by_row(&groups, base), gain::describe(&groups, base));
            (treated, inputs, groups, Some(rows), text)
        }
    };
    // The model's parameters, then F₀ of what is no constraint, then the gains.
    let mut all = parameters.to_vec();
    all.extend(&state.target[base.constraints..]);
    debug_assert_eq!(all.len(), inputs.gains);
    all.extend(inserted);
    let mut treated = treated;
    // The invariants and their Jacobian stay those of the field that is treated.
    treated.invariants.clone_from(&base.invariants);
    Ok((CompiledSystem::new(&treated, &all, false), gain, text))
}

/// L must push down the slope of V: its symmetric part has to be positive definite.
fn refuse_indefinite(base: &Field, transport: &Transport, x: &[f64], parameters: &[f64]) -> Result<(), Error> {
    let Transport::Matrix(formula) = transport else { return Ok(()) };
    let (mut graph, n) = (base.graph.clone(), base.dimension);
    let states: Vec<Node> = (0..n).map(|i| graph.state(i)).collect();
    let entries = formula(&mut graph, &states);
    if entries.len() != n * n {
        return Err(Error::option(format!(
            "L(x) has {} entries, and a state of {n} numbers needs {}",
            entries.len(),
            n * n
        )));
    }
    let l = evaluate(&graph, &entries, 0.0, x, parameters);
    let symmetric: Vec<f64> = (0..n * n).map(|k| 0.5 * (l[k] + l[k % n * n + k / n])).collect();
    if positive_definite(&symmetric, n) {
        return Ok(());
    }
    Err(Error::Gain {
        message: "the symmetric part of L(x) is not positive definite at the initial state: V would not decay"
            .to_string(),
    })
}

/// Refuses a gain whose mean h·λmax/r over a pilot run exceeds 1, and warns of one that comes near, there or later along
/// the motion.
fn refuse_unstable(
    plan: &Plan,
    system: &CompiledSystem,
    plain: &CompiledSystem,
    state: &StepState,
    options: &RunOptions,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let (Stepping::Fixed(fixed), Some(gain)) = (&plan.stepping, &plan.gain) else { return Ok(()) };
    let pilot = stability::pilot(plan, system, state);
    let scheme = plan.method.scheme;
    // Along the motion without feedback: an unstable pilot run sees only its own explosion.
    let outlook = match gain {
        Gain::Rate(_) => pilot::Outlook::default(),
        _ => pilot::outlook(plan, gain, fixed.h, plain, &state.x),
    };
    let remedy = match outlook.max > 1.0 && outlook.max.is_finite() {
        true => format!(
            "a step below {:.2e}, or gains {:.1} times smaller, are stable throughout",
            fixed.h / outlook.max,
            outlook.max
        ),
        false => "use a smaller step or smaller gains".to_string(),
    };
    if pilot.mean > 1.0 || pilot.mean.is_nan() {
        if !options.allow_unstable {
            return Err(Error::Gain {
                message: format!(
                    "the gains are too large for this step: h*lambda_max is {} times the stability limit r = {:.3} of `{}` (mean over {} steps; maximum {}); {remedy}; --allow-unstable runs it all the same",
                    ratio(pilot.mean),
                    scheme.tableau().real_stability_interval(),
                    scheme.name,
                    pilot.steps,
                    ratio(pilot.max),
                ),
            });
        }
        warnings.push(format!(
            "the gains are unstable with this step: h*lambda_max/r is {} in the mean; run because of --allow-unstable",
            ratio(pilot.mean)
        ));
        return Ok(());
    }
    let (mut mean, mut max, mut over) = (pilot.mean, pilot.max, format!("{} steps", pilot.steps));
    if outlook.mean > mean {
        (mean, max, over) = (outlook.mean, outlook.max, format!("the motion up to t = {:.4}", outlook.until));
    }
    if mean > NEAR_LIMIT {
        warnings.push(format!("the gains are near the stability limit or beyond: h*lambda_max/r is {} in the mean and {} at most over {over}; {remedy}", ratio(mean), ratio(max)));
    }
    Ok(())
}

/// h·λmax/r for a message: three decimals, or a power of ten where it has exploded.
fn ratio(value: f64) -> String {
    if value < 1e4 { format!("{value:.3}") } else { format!("{value:.1e}") }
}

/// The initial value of each group of invariants; null for what is imposed.
fn initial_values(model: &Model, field: &Field) -> Vec<Value> {
    field
        .groups
        .iter()
        .map(|g| match g.kind {
            InvariantKind::Constraint | InvariantKind::Hidden => Value::Null,
            InvariantKind::Hamiltonian => {
                let row = g.members[0][0].0;
                json!(evaluate(&field.graph, &[field.invariants[row]], 0.0, &model.initial, &model.parameter_values)[0])
            }
            InvariantKind::Integral => {
                let quantity = model.integrals.iter().find(|q| q.name == g.name).expect("a group has its quantity");
                let values = quantity.functional.evaluate(0.0, &model.initial, &model.parameter_values);
                let mut dimensions: Vec<usize> =
                    if quantity.indices.is_empty() { vec![] } else { vec![quantity.members] };
                dimensions.extend(quantity.shape.dimensions());
                nest(&values, &dimensions)
            }
        })
        .collect()
}

/// Members of a recorded family.
enum Members {
    /// A box of indices: name, first and last value.
    Box(Vec<(String, (i64, i64))>),
    /// A list with index values for each member.
    List(String, Vec<Label>),
}

/// One recorded array.
struct RecordedArray {
    name: String,
    role: &'static str,
    description: String,
    family: Members,
    shape: Shape,
    /// Where its numbers are: in the state, or among the outputs of the kernel.
    from_state: bool,
    first: usize,
    len: usize,
}

/// What a sample stores: the variables, H, the integrals, the observables.
struct Recorded {
    arrays: Vec<RecordedArray>,
    kernel: Bound,
    outputs: usize,
}

impl Recorded {
    fn new(model: &Model, field: &mut Field) -> Recorded {
        let mut arrays = Vec::new();
        for v in &model.variables {
            let indices = v.family.indices.iter().cloned().zip(v.family.bounds.iter().copied()).collect();
            let (role, description) = match v.role {
                holonome_model::elaborate::model::Role::Coordinate => {
                    ("coordinate", format!("position {}", v.family.name))
                }
                holonome_model::elaborate::model::Role::Momentum(of) => {
                    ("momentum", format!("momentum of {}", model.variables[of].family.name))
                }
                holonome_model::elaborate::model::Role::State => ("state", format!("state {}", v.family.name)),
            };
            arrays.push(RecordedArray {
                name: v.family.name.clone(),
                role,
                description,
                family: Members::Box(indices),
                shape: v.family.shape,
                from_state: true,
                first: v.first,
                len: v.family.len(),
            });
        }
        let mut nodes: Vec<Node> = Vec::new();
        let mut add = |name: String,
                       role: &'static str,
                       description: String,
                       quantity: Option<&Quantity>,
                       functional: &Functional,
                       shape: Shape,
                       field: &mut Field| {
            let values = functional.unroll(&mut field.graph);
            let family = match quantity {
                Some(q) if !q.indices.is_empty() => {
                    let k = q.indices.len();
                    let labels = (0..k)
                        .map(|i| Label {
                            name: q.indices[i].clone(),
                            values: q.member_indices.iter().skip(i).step_by(k).map(|&v| i64::from(v)).collect(),
                        })
                        .collect();
                    Members::List(format!("{name}_member"), labels)
                }
                _ => Members::Box(Vec::new()),
            };
            // Of two quantities of one name (a variable called H), the variable keeps it.
            let name =
                if arrays.iter().any(|a: &RecordedArray| a.name == name) { format!("{name}_value") } else { name };
            arrays.push(RecordedArray {
                name,
                role,
                description,
                family,
                shape,
                from_state: false,
                first: nodes.len(),
                len: values.len(),
            });
            nodes.extend(values);
        };
        if let holonome_model::elaborate::model::Dynamics::Hamiltonian(h, _) = &model.dynamics {
            add("H".to_string(), "hamiltonian", "Hamiltonian".to_string(), None, h, Shape::Scalar, field);
        }
        for q in &model.integrals {
            add(
                q.name.clone(),
                "integral",
                format!("first integral {}", q.name),
                Some(q),
                &q.functional,
                q.shape,
                field,
            );
        }
        for q in &model.observables {
            add(q.name.clone(), "observable", format!("observable {}", q.name), Some(q), &q.functional, q.shape, field);
        }
        let kernel = Bound::new(field.compile(&nodes), &model.parameter_values);
        Recorded { arrays, kernel, outputs: nodes.len() }
    }
}

/// Writes samples, stores checkpoints, shows progress.
struct Recorder<'a> {
    recorded: &'a Recorded,
    store: &'a mut Store,
    watch: &'a mut dyn FnMut(&Progress) -> Control,
    plan: &'a Plan,
    groups: &'a Field,
    values: Vec<f64>,
    work: Vec<f64>,
    /// Samples in which each array holds something that is not a finite number.
    undefined: Vec<u64>,
    stored: Instant,
    shown: Instant,
    steps: u64,
}

impl Observer for Recorder<'_> {
    type Error = StoreError;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), StoreError> {
        self.recorded.kernel.run(t, x, &mut self.values, &mut self.work);
        let rows: Vec<&[f64]> = self
            .recorded
            .arrays
            .iter()
            .map(|a| if a.from_state { &x[a.first..a.first + a.len] } else { &self.values[a.first..a.first + a.len] })
            .collect();
        for (count, row) in self.undefined.iter_mut().zip(&rows) {
            *count += u64::from(row.iter().any(|v| !v.is_finite()));
        }
        self.store.append(&rows)
    }

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && state.x.len() < 4096 {
            return Ok(Control::Continue);
        }
        let now = Instant::now();
        if now - self.stored >= CHECKPOINT_INTERVAL {
            self.store.checkpoint(&encode(state))?;
            self.stored = Instant::now();
        }
        if now - self.shown < SHOW_INTERVAL {
            return Ok(Control::Continue);
        }
        self.shown = now;
        let drift = self
            .groups
            .groups
            .iter()
            .zip(&state.drift)
            .map(|(g, d)| (feedback::gain_name(&g.name, g.kind), d.now))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let of = match &self.plan.stepping {
            Stepping::Fixed(fixed) => Some(fixed.count()),
            Stepping::Adaptive(_) => None,
        };
        Ok((self.watch)(&Progress { t: state.t, until: self.plan.t_end(), steps: state.step, of, drift }))
    }
}

/// Opens a stored run for reading.
///
/// # Errors
/// When the folder is no run.
pub fn open_run(path: &Path) -> Result<StoredRun, Error> {
    StoredRun::open(path).map_err(Error::store)
}

/// What [`Failure`] a run may end with, for those who match on it.
pub type RunFailure = Failure<StoreError>;
