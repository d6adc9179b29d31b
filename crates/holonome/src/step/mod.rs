//! Recorded steps of structure-preserving methods: written over a phase space, run as kernels with
//! Newton iterations between them.
//!
//! [`recorder`] runs a step once and records, in [`symbols`], the quantities that it computes and
//! the equations that it states: as [`nodes`] of a graph over the [`functions`] of a small model,
//! or as [`columns`] of a large one. [`program`] runs what the recording is lowered to, kernels
//! between equations: [`unrolled`] ones, or templated ones over columns. The size of a model
//! decides nothing else.

mod columns;
mod draws;
mod encounter;
mod extension;
mod fibre;
mod flows;
mod force_places;
mod formula_space;
mod fsal;
mod functions;
mod kepler;
mod lanes;
mod many;
mod multipliers;
mod natural;
mod nodes;
mod poisson;
mod program;
mod recorder;
mod rigid_body;
mod summands;
mod symbols;
mod tangents;
mod unrolled;

use crate::error::Error;
use crate::kernels::{Formula, StateVectors};
use columns::{ColumnSymbols, Templated};
pub use extension::extension;
use flows::Flows;
pub use force_places::ForcePlaces;
use functions::{Curvature, Functions};
use holonome_integrate::method::{KeplerCoordinates, Method, Needs, SCHEMES, Scheme, Step};
use holonome_integrate::phase_space::{PhaseSpace, Value};
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::forces::{Side, pushed};
use holonome_integrate::scheme::langevin::gla;
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::scheme::rattle::RATTLE;
use holonome_integrate::scheme::splitting;
use holonome_integrate::system::Invariants;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::policy::Way;
use holonome_model::rows::RowProgram;
use holonome_model::templated::RowMechanics;
use holonome_model::treatment::Field;
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::ConstraintKind;
use holonome_words::option;
use kepler::Kepler;
pub use kepler::{OrbitRow, orbits};
pub use lanes::ProgramLanes;
use nodes::Nodes;
use poisson::PoissonFunctions;
use poisson::parts::ExactParts;
pub use program::Start;
use program::{LoweredProgram, Lowering};
use recorder::{CompositeFunctions, FsalMode, Given, Trace, record};
use rigid_body::RigidBody;
use std::borrow::Cow;
use std::sync::Arc;
use symbols::{ParameterPlaces, Symbols};
pub use tangents::ProgramTangents;
use unrolled::{Unrolled, UnrolledTrace};

/// A method's step as a program. Copies share their code.
#[derive(Clone)]
pub enum Program {
    /// Unrolled, with its recording.
    Unrolled(Box<LoweredProgram<Unrolled>>, Arc<UnrolledTrace>),
    /// Templated: over columns.
    Templated(Box<LoweredProgram<Templated>>),
}

impl Program {
    /// Map with which a run makes its steps.
    pub fn map(&self) -> &dyn StepMap {
        match self {
            Program::Unrolled(program, _) => &**program,
            Program::Templated(program) => &**program,
        }
    }

    /// True if a step solves equations by Newton's iteration; linear equations need none.
    pub fn iterates(&self) -> bool {
        match self {
            Program::Unrolled(program, _) => program.iterates(),
            Program::Templated(program) => program.iterates(),
        }
    }

    /// Monitored energy of steps of length h, at (t, x); `None` if they monitor none.
    pub fn monitored_energy(&self, t_and_h: (f64, f64), x: &[f64]) -> Option<f64> {
        match self {
            Program::Unrolled(program, _) => program.monitored_energy(t_and_h, x),
            Program::Templated(program) => program.monitored_energy(t_and_h, x),
        }
    }

    /// Smallest eigenvalue of the monitored matrices in a run that now carries `memory`;
    /// [`NOTABLE`](crate::monitored::NOTABLE) if none was smaller, `None` if no matrix is
    /// monitored.
    pub fn smallest_eigenvalue(&self, memory: &[f64]) -> Option<f64> {
        match self {
            Program::Unrolled(program, _) => program.smallest_eigenvalue(memory),
            Program::Templated(program) => program.smallest_eigenvalue(memory),
        }
    }

    /// This program with other parameters, which makes every step by itself.
    pub fn single(&self, parameters: &[f64]) -> Program {
        match self {
            Program::Unrolled(program, trace) => {
                Program::Unrolled(Box::new(program.single(parameters)), Arc::clone(trace))
            }
            Program::Templated(program) => Program::Templated(Box::new(program.single(parameters))),
        }
    }

    /// Prepare this program for a run of `plan` from another start.
    pub fn rebind_for(&mut self, plan: &Plan, start: &Start) {
        match self {
            Program::Unrolled(program, _) => program.rebind_for(plan, start),
            Program::Templated(program) => program.rebind_for(start),
        }
    }

    /// Steps in lanes, for runs of `plan`; `None` if the program has none. `start` is that of any
    /// trajectory.
    pub fn in_lanes(
        &self,
        plan: &Plan,
        of: (&Field, &Arc<StateVectors>),
        start: &Start,
        lanes: usize,
    ) -> Option<ProgramLanes> {
        match self {
            Program::Unrolled(program, _) => ProgramLanes::new(program, plan, of, start, lanes),
            Program::Templated(_) => None,
        }
    }

    /// True if it is templated.
    pub fn is_templated(&self) -> bool {
        matches!(self, Program::Templated(_))
    }

    /// True if it has a loop of many steps, which ensembles take in lanes.
    pub fn has_lanes(&self) -> bool {
        match self {
            Program::Unrolled(program, _) => program.repeated.is_some(),
            Program::Templated(_) => false,
        }
    }

    /// Build loops in which runs of `plan` take their steps, where that is faster. The runs are one
    /// run, or those of an ensemble, of which `starts` are examples. `invariants` are those of the
    /// `field`, which is `None` if the model is not unrolled.
    pub fn repeat(
        &mut self,
        (field, invariants): (Option<&Field>, &Arc<Invariants>),
        rows: impl FnOnce() -> RowProgram,
        plan: &Plan,
        starts: &[Start],
        ensemble: bool,
    ) {
        match self {
            Program::Unrolled(program, trace) => {
                if let Some(field) = field {
                    program.repeat(trace, field, plan, starts, ensemble);
                }
            }
            Program::Templated(program) => {
                if let Some(start) = starts.first() {
                    program.repeat((rows, invariants), plan, start);
                }
            }
        }
    }
}

/// Inputs, beside the model, that the program of a method depends on.
#[derive(Clone, Copy, Debug)]
pub struct MethodSettings {
    /// True if an ensemble takes the steps, several trajectories in lanes.
    pub in_lanes: bool,
    /// Tolerance that loosens Newton's iterations.
    pub newton_tolerance: Option<f64>,
    /// Newmark's β.
    pub beta: f64,
}

impl MethodSettings {
    /// Parameters of the method itself.
    fn own(&self, method: &Method) -> &[f64] {
        if method.scheme.needs.has_beta() { std::slice::from_ref(&self.beta) } else { &[] }
    }
}

/// Program of a method's step for `model`, of length h if that is fixed; `None` if the method is a
/// Runge–Kutta, collocation or Taylor method. `extension` is the model's field with the constraints
/// in it: methods with a treatment that returns the state to the constraints step with it, and
/// those that need a field alone.
///
/// # Errors
/// If the method does not suit the model; says why, and what does.
pub fn program(
    method: &Method,
    model: &Derived,
    extension: Option<&Field>,
    settings: &MethodSettings,
    h: Option<f64>,
) -> Result<Option<Program>, Error> {
    if method.scheme.follows_fields() {
        return Ok(None);
    }
    let unsuitable =
        |reason: String| Error::option(format!("`{method}` does not suit this model: {reason}"));
    if let Some(facts) = templated_facts(method, model, settings.in_lanes) {
        suits(method, &facts).map_err(unsuitable)?;
        let lowered = |guesses: bool| templated_program(method, model, settings, guesses);
        let mut program = lowered(true).map_err(unsuitable)?;
        if !chooses_sweeps(&mut program, model, h) {
            program = lowered(false).map_err(unsuitable)?;
        }
        return Ok(Some(Program::Templated(Box::new(program))));
    }
    let mechanics =
        model.mechanics().map_err(|reason| Error::option(format!("`{method}`: {reason}")))?;
    suits(method, &Facts::of(mechanics, model)).map_err(unsuitable)?;
    let lowered =
        |guesses: bool| unrolled_program(method, mechanics, model, extension, (settings, guesses));
    let (mut program, mut trace) = lowered(true).map_err(unsuitable)?;
    if !chooses_sweeps(&mut program, model, h) {
        (program, trace) = lowered(false).map_err(unsuitable)?;
    }
    Ok(Some(Program::Unrolled(Box::new(program), Arc::new(trace))))
}

/// Steps of a method along tangent vectors; `None` if the method has no [`program`], which has
/// accepted it. `extension` is as there.
///
/// # Errors
/// If the model is too large to be unrolled.
pub fn tangents(
    method: &Method,
    model: &Derived,
    extension: Option<&Field>,
    settings: &MethodSettings,
) -> Result<Option<ProgramTangents>, Error> {
    if method.scheme.follows_fields() {
        return Ok(None);
    }
    let mechanics = model.mechanics().map_err(|reason| {
        Error::option(format!("a derivative unrolls the step of `{method}`, and {reason}"))
    })?;
    let unsuitable =
        |reason: String| Error::option(format!("`{method}` does not suit this model: {reason}"));
    let functions = functions(method, mechanics, model, extension, settings).map_err(unsuitable)?;
    let nodes = Nodes::new(&Arc::new(functions));
    let trace = recorded((method, false), nodes, (FsalMode::Compute, false)).map_err(unsuitable)?;
    if trace.extends_state {
        return Err(Error::option(format!(
            "the derivative is that of steps which depend on the state alone, and those of `{method}` depend on multipliers that they carry; use nonholonomic-leapfrog or dla"
        )));
    }
    let (own, tolerance) = (settings.own(method), settings.newton_tolerance.unwrap_or(0.0));
    let of = (mechanics, &**model);
    let program = unrolled::lower(&trace, None, of, method.substeps(), own, tolerance);
    let parameters = [&model.parameter_values, own].concat();
    Ok(Some(ProgramTangents::new(program, &trace, &parameters)))
}

/// Choose how a program for steps of length h iterates. True if the program may keep its guesses
/// from the previous step: Newton's method finds any solution near its guess, so it has to start
/// from guesses of its own step.
fn chooses_sweeps<L: Lowering>(
    program: &mut LoweredProgram<L>,
    model: &Model,
    h: Option<f64>,
) -> bool {
    if let Some(h) = h {
        program.choose_iteration((model.t0, h), &model.initial);
    }
    program.sweeps() || !program.finds_first() || !program.solves().any(|solve| solve.task.local)
}

/// The step of a method that is written over a phase space. Forces that it cannot take act for half
/// a step before and after it, at fixed positions. The work of all forces, which the state holds
/// behind (q, p), follows by the trapezoidal rule. All of this is symmetric and of order 2, as the
/// steps are; compositions do the rest.
fn step(
    method: &Method,
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    let phase = if space.degrees() == 0 { x.len() } else { 2 * space.degrees() };
    let (x, work) = x.split_at(phase.min(x.len()));
    let (half, t1) = (space.scaled(0.5, h), space.sum(t, h));
    let mut x1 = match carries_its_state(method) {
        true => step_of_phase(method, space, t, h, x),
        false => {
            let pushed_before = pushed(space, t, half, x, Side::Before);
            let x1 = step_of_phase(method, space, t, h, &pushed_before);
            pushed(space, t1, half, &x1, Side::After)
        }
    };
    if let [work] = *work {
        let mut power = |t: Value, x: &[Value]| {
            let v = space.h_p(t, x);
            space.power(t, x, &v)
        };
        let (before, after) = (power(t, x), power(t1, &x1));
        let both = space.sum(before, after);
        x1.extend(space.moved(&[work], half, &[both]));
    }
    x1
}

/// True if steps carry a state of their own, before a corrector's inverse or in other coordinates
/// than the model's: forces beside the step act on that.
fn carries_its_state(method: &Method) -> bool {
    let corrects = method.flows().is_some_and(|flows| !flows.corrector.is_empty());
    corrects || matches!(method.scheme.needs, Needs::KeplerFlows(_))
}

/// The step of the phase space alone.
fn step_of_phase(
    method: &Method,
    space: &mut dyn PhaseSpace,
    t: Value,
    h: Value,
    x: &[Value],
) -> Vec<Value> {
    match method.scheme.step {
        Step::Map(step, _) => match method.flows() {
            Some(flows) => splitting::steps(space, t, h, x, &flows),
            None => step(space, t, h, x),
        },
        Step::Sliding(step, _) => step(space, method.unconstrained_map(), t, h, x),
        Step::RungeKutta(_) | Step::Collocation(_) | Step::Stiff(_) | Step::Taylor(_) => {
            unreachable!("it has no program")
        }
    }
}

/// [`step`], which `fits` if it gives a state: a step written by a user may not.
fn step_of_length(
    method: &Method,
    space: &mut dyn PhaseSpace,
    (t, h): (Value, Value),
    x: &[Value],
    fits: &mut Result<(), String>,
) -> Vec<Value> {
    let x1 = step(method, space, t, h, x);
    if x1.len() == x.len() {
        return x1;
    }
    *fits = Err(format!("its step gives {} values for a state of {}", x1.len(), x.len()));
    x.to_vec()
}

/// True if the field of a method's phase space is the extension, with the constraints in it.
fn steps_with_extension(method: &Method) -> bool {
    method.treatment.moves_the_state() || method.scheme.needs == Needs::Field
}

/// True if an ensemble takes unrolled steps of a method in lanes where a run by itself takes
/// templated ones.
pub fn unrolls_for_lanes(method: &Method, model: &Model) -> bool {
    let is_templated = |in_lanes| templated_facts(method, model, in_lanes).is_some();
    !method.scheme.follows_fields() && is_templated(false) && !is_templated(true)
}

/// Facts about a model whose steps by this method are templated; `None` if they are unrolled.
/// Templated steps need a large model, and a method that needs nothing unrolled.
fn templated_facts(method: &Method, model: &Model, in_lanes: bool) -> Option<Facts<'static>> {
    let needs = method.scheme.needs;
    let constrained = !model.constraints.is_empty();
    let unrolled = needs.recognised()
        || !model.rollings.is_empty()
        || method.treatment.moves_the_state()
        || constrained && steps_with_extension(method);
    let templated =
        Way::of_step(model, method.scheme.facts().explicit, method.substeps().len(), in_lanes)
            .templated;
    let kind = if constrained { ConstraintKind::Holonomic } else { ConstraintKind::Free };
    (templated && !unrolled).then_some(Facts {
        constrained,
        hamiltonian: true,
        poisson: false,
        kind,
        degenerate: None,
        forced: !model.forces.is_empty(),
        drags: model.drags(),
    })
}

/// Unrolled step of a method.
///
/// # Errors
/// If the model is not of the form that the method needs.
fn unrolled_program(
    method: &Method,
    mechanics: &Mechanics,
    model: &Derived,
    extension: Option<&Field>,
    (settings, guesses): (&MethodSettings, bool),
) -> Result<(LoweredProgram<Unrolled>, UnrolledTrace), String> {
    let functions = Arc::new(functions(method, mechanics, model, extension, settings)?);
    let heated = model.heat_bath.is_some();
    let recorded =
        |fsal: FsalMode| recorded((method, heated), Nodes::new(&functions), (fsal, guesses));
    let (mut trace, find) = with_find(method, recorded)?;
    // A whole field has no noise.
    trace.encounter = trace.encounter.filter(|_| !heated);
    let tolerance = settings.newton_tolerance.unwrap_or(0.0);
    let (substeps, own) = (recorded_substeps(method, heated), settings.own(method));
    let mut program =
        unrolled::lower(&trace, find.as_ref(), (mechanics, model), substeps, own, tolerance);
    if let Some(encounter) = &mut program.encounter {
        let derived = || model.field().map(|(field, _)| Cow::Owned(field));
        let field = extension.map_or_else(derived, |field| Ok(Cow::Borrowed(field)));
        let field = field.map_err(|reason| reason.to_string())?;
        encounter.with_field(&field, model);
    }
    Ok((program, trace))
}

/// Functions of the model that a method asks for.
///
/// # Errors
/// If the model is not of the form that the method needs.
fn functions(
    method: &Method,
    mechanics: &Mechanics,
    model: &Model,
    extension: Option<&Field>,
    settings: &MethodSettings,
) -> Result<Functions, String> {
    let mut functions = Functions::new(mechanics, model);
    if let Some(field) = extension.filter(|_| steps_with_extension(method)) {
        functions.field = Formula::unfused(&field.graph, &field.field);
    }
    let Recognised { flows, kepler, body, parts } = recognised(method.scheme, mechanics, model)?;
    (functions.flows, functions.kepler, functions.body) = (flows, kepler, body);
    if matches!(method.scheme.needs, Needs::Poisson | Needs::PoissonFlows) {
        functions.poisson = PoissonFunctions::new(model);
        if let Some(poisson) = &mut functions.poisson {
            poisson.parts = parts;
        }
    }
    if method.unconstrained.unwrap_or(method.scheme).needs.is_field() {
        functions.friction = None; // the field has it
    }
    if method.scheme.needs.sets_forces_apart() {
        functions.set_forces_apart();
    }
    if !settings.own(method).is_empty() {
        functions.curvature = Some(Curvature::new(mechanics));
    }
    Ok(functions)
}

/// Positions at which the force acts in steps of length h, for a method that [`program`] has
/// accepted; `None` if the method names no positions other than those of the steps.
///
/// # Errors
/// Those of [`program`].
pub fn force_places(
    method: &Method,
    model: &Derived,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, Error> {
    if !method.scheme.needs.has_beta() {
        return Ok(None);
    }
    let unsuitable =
        |reason: String| Error::option(format!("`{method}` does not suit this model: {reason}"));
    if templated_facts(method, model, settings.in_lanes).is_some() {
        return templated_places(method, model, h, settings).map_err(unsuitable);
    }
    let mechanics =
        model.mechanics().map_err(|reason| Error::option(format!("`{method}`: {reason}")))?;
    unrolled_places(method, mechanics, model, h, settings).map_err(unsuitable)
}

fn unrolled_places(
    method: &Method,
    mechanics: &Mechanics,
    model: &Model,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, String> {
    let functions = Arc::new(functions(method, mechanics, model, None, settings)?);
    let trace = recorded((method, false), Nodes::new(&functions), (FsalMode::ForcePlaces, false))?;
    if trace.result.is_empty() {
        return Ok(None);
    }
    let (own, tolerance) = (settings.own(method), settings.newton_tolerance.unwrap_or(0.0));
    let program = unrolled::lower(&trace, None, (mechanics, model), vec![1.0], own, tolerance);
    Ok(Some(ForcePlaces::new(program, method.substeps()[0] * h)))
}

fn templated_places(
    method: &Method,
    model: &Derived,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, String> {
    let mechanics = column_mechanics(method, model, settings)?;
    let symbols = ColumnSymbols::new(mechanics, ParameterPlaces::of(model));
    let trace = recorded((method, false), symbols, (FsalMode::ForcePlaces, false))?;
    if trace.result.is_empty() {
        return Ok(None);
    }
    let tolerance = settings.newton_tolerance.unwrap_or(0.0);
    let program = columns::lower(trace, None, model, vec![1.0], settings.own(method), tolerance);
    Ok(Some(ForcePlaces::new(program, method.substeps()[0] * h)))
}

/// Templated step of a method, over columns.
///
/// # Errors
/// If the model is not of the form that the method needs.
fn templated_program(
    method: &Method,
    model: &Derived,
    settings: &MethodSettings,
    guesses: bool,
) -> Result<LoweredProgram<Templated>, String> {
    check_stiff_part(method.scheme, model)?;
    let mechanics = column_mechanics(method, model, settings)?;
    let (heated, places) = (model.heat_bath.is_some(), ParameterPlaces::of(model));
    let symbols = || ColumnSymbols::new(mechanics.clone(), places.clone());
    let recorded = |fsal| recorded((method, heated), symbols(), (fsal, guesses));
    let (mut trace, find) = with_find(method, recorded)?;
    let find = match find {
        Some(find) => Some((find, false)),
        None if method.treatment.moves_the_state() => None,
        None => columns::carry_forces(&mut trace).map(|find| (find, true)),
    };
    let (tolerance, substeps) =
        (settings.newton_tolerance.unwrap_or(0.0), recorded_substeps(method, heated));
    Ok(columns::lower(trace, find, model, substeps, settings.own(method), tolerance))
}

/// Substeps of which one is recorded. In a heat bath, which acts between whole steps, all of them
/// are recorded together.
fn recorded_substeps(method: &Method, heated: bool) -> Vec<f64> {
    if heated { vec![1.0] } else { method.substeps() }
}

/// Whole step of a method in a heat bath.
fn heated_step(
    method: &Method,
    space: &mut dyn PhaseSpace,
    (t, h): (Value, Value),
    x: &[Value],
    fits: &mut Result<(), String>,
) -> Vec<Value> {
    if method.scheme.needs == Needs::HeatBath {
        return step_of_length(method, space, (t, h), x, fits);
    }
    // Friction and noise begin on the hidden constraints. SHAKE does not end there; RATTLE does,
    // with the same positions.
    let slides = matches!(method.scheme.step, Step::Sliding(..));
    let method = &Method { scheme: if slides { &RATTLE } else { method.scheme }, ..*method };
    let (mut x1, mut made) = (x.to_vec(), 0.0);
    for gamma in method.substeps() {
        let (t, h) = (space.time(t, made, h), space.scaled(gamma, h));
        x1 = step_of_length(method, space, (t, h), &x1, fits);
        made += gamma;
    }
    if method.composition.is_some() {
        // Multipliers of a substep are not those of the step.
        space.record_multipliers(&[], &[]);
    }
    gla(space, t, h, &x1)
}

/// Recording of a method's step; with the heat bath if the model is `heated`.
///
/// # Errors
/// If the step gives no state.
fn recorded<S: CompositeFunctions>(
    (method, heated): (&Method, bool),
    symbols: S,
    (fsal, guesses): (FsalMode, bool),
) -> Result<Trace<S>, String> {
    let mut fits = Ok(());
    let step = |space: &mut dyn PhaseSpace, t, h, x: &[Value]| match heated {
        true => heated_step(method, space, (t, h), x, &mut fits),
        false => step_of_length(method, space, (t, h), x, &mut fits),
    };
    // With noise, extrapolation from two steps is no better a guess than the last solution.
    let trace = record(symbols, Given { follows: follows(method) && !heated, fsal, guesses }, step);
    fits.map(|()| trace)
}

/// Recording of a method's step; if the step reuses values of the previous one (FSAL), also the
/// recording that finds these.
fn with_find<S: Symbols>(
    method: &Method,
    recorded: impl Fn(FsalMode) -> Result<Trace<S>, String>,
) -> Result<(Trace<S>, Option<Trace<S>>), String> {
    // Values that a map finds between two slides are not those at the start of the step.
    if !follows(method) || matches!(method.scheme.step, Step::Sliding(..)) {
        return Ok((recorded(FsalMode::Compute)?, None));
    }
    let trace = recorded(FsalMode::Carry)?;
    let find = if trace.has_fsal { Some(recorded(FsalMode::FindOnly)?) } else { None };
    Ok((trace, find))
}

/// Mechanics of a model for recordings of a step over columns.
///
/// # Errors
/// If the model is not of the form that the method needs.
fn column_mechanics(
    method: &Method,
    model: &Derived,
    settings: &MethodSettings,
) -> Result<RowMechanics, String> {
    let mut mechanics = model.row_mechanics().ok_or("its constraints hold momenta")?;
    mechanics.apart = method.scheme.needs.sets_forces_apart() && model.drags();
    let heated = model.heat_bath.is_some();
    if !settings.own(method).is_empty() || heated {
        mechanics.derive_curvature(model).map_err(|reason| match heated {
            true => format!(
                "in a heat bath a model of this size needs a constant mass matrix, and {reason}; make it smaller"
            ),
            false => natural::not(reason, model),
        })?;
    }
    Ok(mechanics)
}

/// True if a step begins where the previous one has ended, with the same length: what that one
/// found at its end is known.
fn follows(method: &Method) -> bool {
    !method.treatment.moves_the_state() && method.substeps().len() == 1
}

/// Facts that decide which methods suit a model.
struct Facts<'a> {
    constrained: bool,
    hamiltonian: bool,
    poisson: bool,
    kind: ConstraintKind,
    degenerate: Option<&'a str>,
    /// True if forces act beside H, and if one of them depends on momenta other than by friction at
    /// one rate.
    forced: bool,
    drags: bool,
}

impl Facts<'_> {
    /// Methods that such a model can be run with, for the refusal of others.
    fn remedy(&self) -> &'static str {
        match (self.hamiltonian, self.constrained) {
            (false, _) => "gauss4 or corrected:dop853",
            (true, false) => "stormer-verlet-a or gauss4",
            (true, true) if self.kind == ConstraintKind::Nonholonomic => {
                "nonholonomic-leapfrog, gni or corrected:dop853"
            }
            (true, true)
                if self.degenerate.is_some()
                    || matches!(self.kind, ConstraintKind::SecondClass | ConstraintKind::Mixed) =>
            {
                "corrected:dop853"
            }
            (true, true) => "rattle",
        }
    }

    fn of<'m>(mechanics: &'m Mechanics, model: &Model) -> Facts<'m> {
        Facts {
            constrained: mechanics.kind != ConstraintKind::Free,
            hamiltonian: mechanics.degrees > 0,
            poisson: model.poisson.is_some(),
            kind: mechanics.kind,
            degenerate: mechanics.degenerate.as_deref(),
            forced: mechanics.forces.friction.is_some() || !mechanics.forces.rest.is_empty(),
            drags: mechanics.forces.drags,
        }
    }
}

/// Every scheme that is written over a phase space, with the reason why it does not suit the model,
/// if it does not.
pub fn survey(model: &Derived) -> Vec<(&'static Scheme, Option<String>)> {
    let mechanics = model.mechanics();
    let schemes = SCHEMES.iter().copied().filter(|scheme| !scheme.follows_fields());
    let why = |scheme: &&'static Scheme| match mechanics {
        _ if let Some(facts) = templated_facts(&Method::plain(scheme), model, false) => {
            suits(&Method::plain(scheme), &facts).err()
        }
        Err(reason) => Some(reason.to_string()),
        Ok(mechanics) => {
            let suited = suits(&Method::plain(scheme), &Facts::of(mechanics, model));
            suited.and_then(|()| recognised(scheme, mechanics, model).map(drop)).err()
        }
    };
    schemes.map(|scheme| (scheme, why(&scheme))).collect()
}

/// Check that the structure which a method recognises in a model is there with other parameters and
/// from another start, too: recognition evaluates numbers.
///
/// # Errors
/// If it is not.
pub fn recognised_with(
    method: &Method,
    model: &Model,
    parameters: &[f64],
    start: &[f64],
) -> Result<(), String> {
    if !method.scheme.needs.recognised()
        || model.parameter_values == parameters && model.initial == start
    {
        return Ok(());
    }
    let (parameter_values, initial) = (parameters.to_vec(), start.to_vec());
    let model = Derived::new(Model { parameter_values, initial, ..model.clone() });
    let mechanics = model.mechanics().map_err(|reason| reason.to_string())?;
    recognised(method.scheme, mechanics, &model).map(drop)
}

/// Structure that a scheme recognises in a model, each part if the scheme needs it.
#[derive(Default)]
struct Recognised {
    /// Exact flows of two parts of H.
    flows: Option<Flows>,
    /// Motions of Kepler.
    kepler: Option<Kepler>,
    /// Rigid body.
    body: Option<RigidBody>,
    /// Parts of the H of a Poisson system.
    parts: Option<ExactParts>,
}

fn recognised(scheme: &Scheme, mechanics: &Mechanics, model: &Model) -> Result<Recognised, String> {
    let mut found = Recognised::default();
    match scheme.needs {
        Needs::Flows => found.flows = Some(known_flows(mechanics, model)?),
        Needs::KeplerFlows(coordinates) => {
            found.kepler = Some(known_orbits(mechanics, model, coordinates)?)
        }
        Needs::Body | Needs::FreeBody => found.body = Some(body(scheme, mechanics, model)?),
        Needs::Natural | Needs::Stiff | Needs::HeatBath => {
            known_potential(scheme, mechanics, model)?
        }
        Needs::PoissonFlows => found.parts = Some(known_parts(model)?),
        _ => {}
    }
    Ok(found)
}

fn known_parts(model: &Model) -> Result<ExactParts, String> {
    let poisson = model.poisson.as_ref().ok_or(NO_POISSON)?;
    ExactParts::new(model, poisson)
        .map_err(|reason| format!("{reason}; use discrete-gradient or gauss4"))
}

/// Reason why a model that is no Poisson system does not suit.
const NO_POISSON: &str = "it needs a Poisson system, a `hamiltonian` and a matrix `poisson (x) = J` beside states, and the model is none";

fn known_flows(mechanics: &Mechanics, model: &Model) -> Result<Flows, String> {
    let remedy = Facts::of(mechanics, model).remedy();
    Flows::new(mechanics, model).map_err(|reason| format!("{reason}; use {remedy}"))
}

fn known_orbits(
    mechanics: &Mechanics,
    model: &Model,
    coordinates: KeplerCoordinates,
) -> Result<Kepler, String> {
    let remedy = Facts::of(mechanics, model).remedy();
    Kepler::new(mechanics, model, coordinates).map_err(|reason| format!("{reason}; use {remedy}"))
}

/// Rigid body that the model is, for a scheme that needs one.
fn body(scheme: &Scheme, mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
    let remedy = Facts::of(mechanics, model).remedy();
    let body =
        RigidBody::new(mechanics, model).map_err(|reason| format!("{reason}; use {remedy}"))?;
    if scheme.needs == Needs::FreeBody { body.free() } else { Ok(body) }
}

/// Check that H has the form that the scheme needs, and that its stiff part is known if the scheme
/// needs it.
fn known_potential(scheme: &Scheme, mechanics: &Mechanics, model: &Model) -> Result<(), String> {
    natural::check(mechanics, model)?;
    check_stiff_part(scheme, model)
}

fn check_stiff_part(scheme: &Scheme, model: &Model) -> Result<(), String> {
    match scheme.needs == Needs::Stiff && model.stiff.is_none() {
        true => Err(format!(
            "it has to know which part of the potential energy is stiff; name it with {stiff_name}, a `let` that the Hamiltonian adds, or use zhang-skeel-simplified",
            stiff_name = option("stiff").of("NAME")
        )),
        false => Ok(()),
    }
}

/// Check that a method suits the model; the error says why it does not.
fn suits(method: &Method, facts: &Facts) -> Result<(), String> {
    let Facts { constrained, hamiltonian, poisson, kind, degenerate, forced, drags } = *facts;
    if matches!(method.scheme.needs, Needs::Coisotropic | Needs::HeatBath)
        && let Some(name) = degenerate
    {
        return Err(format!(
            "the kinetic energy does not feel the normal of constraint `{name}`, so no multiplier holds it; use corrected:dop853"
        ));
    }
    let reason = match method.scheme.needs {
        // They step with the Dirac extension.
        Needs::Field => return Ok(()),
        Needs::Canonical if method.treatment.moves_the_state() => return Ok(()),
        Needs::Series
        | Needs::Canonical
        | Needs::Hamiltonian
        | Needs::KeplerFlows(_)
        | Needs::Natural
        | Needs::Stiff
            if hamiltonian && constrained =>
        {
            let penalty = if kind == ConstraintKind::Holonomic {
                format!(", or make them a potential with {penalty}", penalty = option("penalty"))
            } else {
                String::new()
            };
            return Err(format!(
                "it takes no constraints, and the model has some; use {}{penalty}",
                match facts.remedy() {
                    "rattle" => "rattle or corrected:dop853",
                    other => other,
                }
            ));
        }
        Needs::Poisson | Needs::PoissonFlows if !poisson => {
            return Err(format!("{NO_POISSON}; use {}", facts.remedy()));
        }
        Needs::Hamiltonian
        | Needs::Coisotropic
        | Needs::Rolling
        | Needs::Flows
        | Needs::KeplerFlows(_)
        | Needs::Natural
        | Needs::Stiff
        | Needs::HeatBath
            if !hamiltonian =>
        {
            "it needs a Hamiltonian, and the model is a vector field; use implicit-midpoint, gauss4, or corrected:dop853"
        }
        Needs::Body | Needs::FreeBody if forced => {
            "it takes no forces beside those of the potential; use corrected:dop853"
        }
        Needs::Flows | Needs::HeatBath if drags && constrained => {
            "with constraints it takes no forces that depend on velocities, but friction at one rate; use rattle or corrected:dop853"
        }
        Needs::Coisotropic if !constrained => {
            "it is for constraints, and the model has none; use stormer-verlet-a, gauss4, or a composition of them"
        }
        Needs::HeatBath if constrained && kind != ConstraintKind::Holonomic => {
            return Err(format!("it takes constraints on positions only; use {}", facts.remedy()));
        }
        Needs::Rolling if kind != ConstraintKind::Nonholonomic => {
            return Err(format!(
                "it is for rolling constraints, and the model has none; use {}",
                facts.remedy()
            ));
        }
        Needs::Rolling => return Ok(()),
        _ if kind == ConstraintKind::Nonholonomic => {
            return Err(format!(
                "rolling constraints have d'Alembert's forces, which it does not find; use {}",
                facts.remedy()
            ));
        }
        Needs::Coisotropic if kind == ConstraintKind::SecondClass => {
            "the brackets of the constraints do not vanish on the constraint set, so they have no fibres to slide along; use corrected:dop853"
        }
        Needs::Coisotropic if kind == ConstraintKind::Mixed => {
            "the constraints are not coisotropic, as some of their brackets do not vanish or hidden constraints have hidden ones in turn: they have no fibres from which a multiplier leads to the set; use corrected:dop853"
        }
        _ => return Ok(()),
    };
    Err(reason.to_string())
}
