//! Methods that keep a model's structure: their steps, written over a phase space, as kernels and Newton iterations.
//!
//! [`recorder`] runs a step once and records what it computes and which equations it states, in [`symbols`]: [`nodes`] of
//! a graph over the [`functions`] of a small model, or [`columns`] of a large one. [`program`] runs what the recording is
//! lowered to, kernels between equations: [`straight`] ones, or rows. The size of a model decides nothing else.

mod columns;
mod draws;
mod extension;
mod fibre;
mod first_same;
mod flows;
mod force_places;
mod functions;
mod lanes;
mod many;
mod multipliers;
mod natural;
mod nodes;
mod program;
mod recorder;
mod rigid_body;
mod straight;
mod symbols;

use crate::compiled::{Formula, StateVectors};
use crate::error::Error;
use columns::{ColumnSymbols, Rows};
pub use extension::extension;
use flows::Flows;
pub use force_places::ForcePlaces;
use functions::{Curvature, Functions};
use holonome_integrate::method::{Method, Needs, SCHEMES, Scheme, Step};
use holonome_integrate::phase_space::{PhaseSpace, Value};
use holonome_integrate::plan::Plan;
use holonome_integrate::scheme::langevin::gla;
use holonome_integrate::scheme::map::StepMap;
use holonome_integrate::system::Invariants;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::policy::Way;
use holonome_model::rows::RowProgram;
use holonome_model::templated::RowMechanics;
use holonome_model::treatment::Field;
use holonome_model::treatment::mechanics::Mechanics;
use holonome_model::treatment::structure::Kind;
use holonome_words::option;
pub use lanes::{ProgramBound, ProgramLanes};
use nodes::Nodes;
pub use program::Start;
use program::{Lowering, Program as LoweredProgram};
use recorder::{Given, Handing, Trace, record};
use rigid_body::RigidBody;
use std::sync::Arc;
use straight::{Straight, StraightTrace};
use symbols::{ParameterPlaces, Symbols};

/// A method's step as a program.
pub enum Program {
    /// Written out, with its recording.
    Straight(Box<LoweredProgram<Straight>>, Box<StraightTrace>),
    /// Over columns.
    Columns(Box<LoweredProgram<Rows>>),
}

impl Program {
    /// The map that a run makes steps with.
    pub fn map(&self) -> &dyn StepMap {
        match self {
            Program::Straight(program, _) => &**program,
            Program::Columns(program) => &**program,
        }
    }

    /// Whether a step solves equations by Newton's iteration; linear ones take none.
    pub fn iterates(&self) -> bool {
        match self {
            Program::Straight(program, _) => program.iterates(),
            Program::Columns(program) => program.iterates(),
        }
    }

    /// The energy that steps of the length h watch, at (t, x); none if they watch none.
    pub fn watched_energy(&self, t_and_h: (f64, f64), x: &[f64]) -> Option<f64> {
        match self {
            Program::Straight(program, _) => program.watched_energy(t_and_h, x),
            Program::Columns(program) => program.watched_energy(t_and_h, x),
        }
    }

    /// The smallest eigenvalue that the watched matrices have had in a run which now carries `memory`, or [`NOTABLE`](crate::watched::NOTABLE) where
    /// none was smaller; none if none is watched.
    pub fn smallest_eigenvalue(&self, memory: &[f64]) -> Option<f64> {
        match self {
            Program::Straight(program, _) => program.smallest_eigenvalue(memory),
            Program::Columns(program) => program.smallest_eigenvalue(memory),
        }
    }

    /// A map of its own with other parameters, which makes every step by itself.
    pub fn rebound(&self, parameters: &[f64]) -> Box<dyn StepMap> {
        match self {
            Program::Straight(program, _) => Box::new(program.rebound(parameters)),
            Program::Columns(program) => Box::new(program.rebound(parameters)),
        }
    }

    /// A map of its own for a run of `plan` from another start, which takes its steps as this program does.
    pub fn rebound_for(&self, plan: &Plan, start: &Start) -> Box<dyn StepMap> {
        match self {
            Program::Straight(program, _) => Box::new(program.rebound_for(plan, start)),
            Program::Columns(program) => Box::new(program.rebound_for(start)),
        }
    }

    /// The steps in lanes, for runs of `plan`, where they can be had; `start` is that of any trajectory.
    pub fn in_lanes(
        &self,
        plan: &Plan,
        of: (&Field, &Arc<StateVectors>),
        start: &Start,
        lanes: usize,
    ) -> Option<ProgramLanes> {
        match self {
            Program::Straight(program, _) => ProgramLanes::new(program, plan, of, start, lanes),
            Program::Columns(_) => None,
        }
    }

    /// Lets runs of `plan` take their steps in loops, where that is faster: one run, or those of an ensemble, of which
    /// `starts` are examples. `invariants` are those of the `field`, if that is written out.
    pub fn repeat(
        &mut self,
        (field, invariants): (Option<&Field>, &Arc<Invariants>),
        rows: impl FnOnce() -> RowProgram,
        plan: &Plan,
        starts: &[Start],
        ensemble: bool,
    ) {
        match self {
            Program::Straight(program, trace) => {
                if let Some(field) = field {
                    program.repeat(trace, field, plan, starts, ensemble);
                }
            }
            Program::Columns(program) => program.repeat((rows, invariants), plan, &starts[0]),
        }
    }
}

/// What the program of a method depends on beside the model.
#[derive(Clone, Copy, Debug)]
pub struct MethodSettings {
    /// Whether an ensemble takes the steps, of several trajectories in lanes.
    pub in_lanes: bool,
    /// Loosens Newton's iterations.
    pub newton_tolerance: Option<f64>,
    /// Newmark's β.
    pub beta: f64,
}

impl MethodSettings {
    /// The parameters that a method has of its own.
    fn own(&self, method: &Method) -> &[f64] {
        if method.scheme.needs.has_beta() { std::slice::from_ref(&self.beta) } else { &[] }
    }
}

/// The program of a method's step, of the length h if that is fixed, for `model`, none if the method is a Runge–Kutta one. `extension` is the model's field
/// with the constraints in it, which a method steps with if a treatment returns it to them.
///
/// # Errors
/// When the method does not suit the model; says why, and what does.
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
    let unsuitable = |reason: String| Error::option(format!("`{method}` does not suit this model: {reason}"));
    if let Some(facts) = by_columns(method, model, settings.in_lanes) {
        suits(method, &facts).map_err(unsuitable)?;
        let lowered = |guesses: bool| column_program(method, model, settings, guesses);
        let mut program = lowered(true).map_err(unsuitable)?;
        if !chooses_sweeps(&mut program, model, h) {
            program = lowered(false).map_err(unsuitable)?;
        }
        return Ok(Some(Program::Columns(Box::new(program))));
    }
    let mechanics = model.mechanics().map_err(|reason| Error::option(format!("`{method}`: {reason}")))?;
    suits(method, &Facts::of(mechanics)).map_err(unsuitable)?;
    let lowered = |guesses: bool| straight_program(method, mechanics, model, extension, (settings, guesses));
    let (mut program, mut trace) = lowered(true).map_err(unsuitable)?;
    if !chooses_sweeps(&mut program, model, h) {
        (program, trace) = lowered(false).map_err(unsuitable)?;
    }
    Ok(Some(Program::Straight(Box::new(program), Box::new(trace))))
}

/// Lets a program for steps of the length h choose how it iterates; whether it may go on with what it takes over. Newton's
/// method is to start from guesses of its own step, as it finds any solution near them.
fn chooses_sweeps<L: Lowering>(program: &mut LoweredProgram<L>, model: &Model, h: Option<f64>) -> bool {
    if let Some(h) = h {
        program.choose_iteration((model.t0, h), &model.initial);
    }
    program.sweeps() || !program.finds_first() || !program.solves().any(|solve| solve.task.local)
}

/// The step of a method that is written over a phase space.
fn step(method: &Method, space: &mut dyn PhaseSpace, t: Value, h: Value, x: &[Value]) -> Vec<Value> {
    match method.scheme.step {
        Step::Map(step) => step(space, t, h, x),
        Step::Sliding(step) => step(space, method.unconstrained_map(), t, h, x),
        Step::RungeKutta(_) | Step::Collocation(_) | Step::Taylor => unreachable!("it has no program"),
    }
}

/// [`step`], which `fits` if it gives a state: a step of the user's own may not.
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

/// What is known of a model whose steps by this method are computed over columns: a large one, and a method that needs
/// nothing that has to be written out.
fn by_columns(method: &Method, model: &Model, in_lanes: bool) -> Option<Facts<'static>> {
    let needs = method.scheme.needs;
    let written_out = needs.recognised() || method.treatment.moves_the_state();
    let large = Way::of_step(model, method.scheme.explicit, method.substeps().len(), in_lanes).by_rows;
    let constrained = !model.constraints.is_empty();
    let kind = if constrained { Kind::Holonomic } else { Kind::Free };
    (large && !written_out).then_some(Facts { constrained, hamiltonian: true, kind, degenerate: None })
}

/// The step of a method written out.
///
/// # Errors
/// When the model is not of the form that the method needs.
fn straight_program(
    method: &Method,
    mechanics: &Mechanics,
    model: &Model,
    extension: Option<&Field>,
    (settings, guesses): (&MethodSettings, bool),
) -> Result<(LoweredProgram<Straight>, StraightTrace), String> {
    let functions = Arc::new(functions(method, mechanics, model, extension, settings)?);
    let heated = model.heat_bath.is_some();
    let recorded = |handing: Handing| recorded((method, heated), Nodes::new(&functions), (handing, guesses));
    let (trace, find) = with_find(method, recorded)?;
    let tolerance = settings.newton_tolerance.unwrap_or(0.0);
    let (substeps, own) = (recorded_substeps(method, heated), settings.own(method));
    let program = straight::lower(&trace, find.as_ref(), (mechanics, model), substeps, own, tolerance);
    Ok((program, trace))
}

/// The model's functions for a method.
///
/// # Errors
/// When the model is not of the form that the method needs.
fn functions(
    method: &Method,
    mechanics: &Mechanics,
    model: &Model,
    extension: Option<&Field>,
    settings: &MethodSettings,
) -> Result<Functions, String> {
    let mut functions = Functions::new(mechanics, model);
    if let Some(field) = extension.filter(|_| method.treatment.moves_the_state()) {
        functions.field = Formula::unfused(&field.graph, &field.field);
    }
    (functions.flows, functions.body) = recognised(method.scheme, mechanics, model)?;
    if !settings.own(method).is_empty() {
        functions.curvature = Some(Curvature::new(mechanics));
    }
    Ok(functions)
}

/// Where the force acts in steps of the length h of a method that [`program`] has taken, if the method says so: none where
/// that is where the steps are.
///
/// # Errors
/// As [`program`].
pub fn force_places(
    method: &Method,
    model: &Derived,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, Error> {
    if !method.scheme.needs.has_beta() {
        return Ok(None);
    }
    let unsuitable = |reason: String| Error::option(format!("`{method}` does not suit this model: {reason}"));
    if by_columns(method, model, settings.in_lanes).is_some() {
        return column_places(method, model, h, settings).map_err(unsuitable);
    }
    let mechanics = model.mechanics().map_err(|reason| Error::option(format!("`{method}`: {reason}")))?;
    straight_places(method, mechanics, model, h, settings).map_err(unsuitable)
}

fn straight_places(
    method: &Method,
    mechanics: &Mechanics,
    model: &Model,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, String> {
    let functions = Arc::new(functions(method, mechanics, model, None, settings)?);
    let trace = recorded((method, false), Nodes::new(&functions), (Handing::ForcePlaces, false))?;
    if trace.result.is_empty() {
        return Ok(None);
    }
    let (own, tolerance) = (settings.own(method), settings.newton_tolerance.unwrap_or(0.0));
    let program = straight::lower(&trace, None, (mechanics, model), vec![1.0], own, tolerance);
    Ok(Some(ForcePlaces::new(program, method.substeps()[0] * h)))
}

fn column_places(
    method: &Method,
    model: &Derived,
    h: f64,
    settings: &MethodSettings,
) -> Result<Option<ForcePlaces>, String> {
    let mechanics = column_mechanics(method, model, settings)?;
    let symbols = ColumnSymbols::new(mechanics, ParameterPlaces::of(model));
    let trace = recorded((method, false), symbols, (Handing::ForcePlaces, false))?;
    if trace.result.is_empty() {
        return Ok(None);
    }
    let tolerance = settings.newton_tolerance.unwrap_or(0.0);
    let program = columns::lower(trace, None, model, vec![1.0], settings.own(method), tolerance);
    Ok(Some(ForcePlaces::new(program, method.substeps()[0] * h)))
}

/// The step of a method over columns.
///
/// # Errors
/// When the model is not of the form that the method needs.
fn column_program(
    method: &Method,
    model: &Derived,
    settings: &MethodSettings,
    guesses: bool,
) -> Result<LoweredProgram<Rows>, String> {
    knows_stiff_part(method.scheme, model)?;
    let mechanics = column_mechanics(method, model, settings)?;
    let (heated, places) = (model.heat_bath.is_some(), ParameterPlaces::of(model));
    let symbols = || ColumnSymbols::new(mechanics.clone(), places.clone());
    let recorded = |handing| recorded((method, heated), symbols(), (handing, guesses));
    let (mut trace, find) = with_find(method, recorded)?;
    let find = match find {
        Some(find) => Some((find, false)),
        None if method.treatment.moves_the_state() => None,
        None => columns::take_over(&mut trace).map(|find| (find, true)),
    };
    let (tolerance, substeps) = (settings.newton_tolerance.unwrap_or(0.0), recorded_substeps(method, heated));
    Ok(columns::lower(trace, find, model, substeps, settings.own(method), tolerance))
}

/// The substeps of which one is recorded: in a heat bath, which acts between whole steps, they are recorded together.
fn recorded_substeps(method: &Method, heated: bool) -> Vec<f64> {
    if heated { vec![1.0] } else { method.substeps() }
}

/// A whole step of a method in a heat bath.
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
    // Friction and noise begin on the hidden constraints, where SHAKE does not end: it does as RATTLE, whose positions are
    // the same.
    let scheme = if matches!(method.scheme.step, Step::Sliding(_)) { Scheme::named("rattle") } else { None };
    let method = &Method { scheme: scheme.unwrap_or(method.scheme), ..*method };
    let (mut x1, mut made) = (x.to_vec(), 0.0);
    for gamma in method.substeps() {
        let (t, h) = (space.time(t, made, h), space.scaled(gamma, h));
        x1 = step_of_length(method, space, (t, h), &x1, fits);
        made += gamma;
    }
    if method.composition.is_some() {
        // Those of a substep are not those of the step.
        space.record_multipliers(&[], &[]);
    }
    gla(space, t, h, &x1)
}

/// A method's step, recorded; in a heat bath with the bath, if the model is `heated`.
///
/// # Errors
/// When the step gives no state.
fn recorded<S: Symbols>(
    (method, heated): (&Method, bool),
    symbols: S,
    (handing, guesses): (Handing, bool),
) -> Result<Trace<S>, String> {
    let mut fits = Ok(());
    let step = |space: &mut dyn PhaseSpace, t, h, x: &[Value]| match heated {
        true => heated_step(method, space, (t, h), x, &mut fits),
        false => step_of_length(method, space, (t, h), x, &mut fits),
    };
    // Noise makes of what two steps have solved for no better guess than what one has.
    let trace = record(symbols, Given { follows: follows(method) && !heated, handing, guesses }, step);
    fits.map(|()| trace)
}

/// The recording of a method's step, and where it takes something over from the step before that of how this is found.
fn with_find<S: Symbols>(
    method: &Method,
    recorded: impl Fn(Handing) -> Result<Trace<S>, String>,
) -> Result<(Trace<S>, Option<Trace<S>>), String> {
    // What a map finds between two slides is nothing at the start of the step.
    if !follows(method) || matches!(method.scheme.step, Step::Sliding(_)) {
        return Ok((recorded(Handing::Nothing)?, None));
    }
    let trace = recorded(Handing::Over)?;
    let find = if trace.takes_over { Some(recorded(Handing::Found)?) } else { None };
    Ok((trace, find))
}

/// The mechanics of a model for recordings of a step over columns.
///
/// # Errors
/// When the model is not of the form that the method needs.
fn column_mechanics(method: &Method, model: &Derived, settings: &MethodSettings) -> Result<RowMechanics, String> {
    let mut mechanics = model.row_mechanics().ok_or("its constraints hold momenta")?;
    let heated = model.heat_bath.is_some();
    if !settings.own(method).is_empty() || heated {
        mechanics.know_curvature(model).map_err(|reason| match heated {
            true => format!(
                "in a heat bath a model of this size needs a constant mass matrix, and {reason}; make it smaller"
            ),
            false => natural::not(reason, model),
        })?;
    }
    Ok(mechanics)
}

/// Whether a step begins where the one before has ended, and as long: what that found at its end is known then.
fn follows(method: &Method) -> bool {
    !method.treatment.moves_the_state() && method.composition.is_none()
}

/// What decides which methods suit a model.
struct Facts<'a> {
    constrained: bool,
    hamiltonian: bool,
    kind: Kind,
    degenerate: Option<&'a str>,
}

impl Facts<'_> {
    /// Methods that such a model can be run with, for the refusal of others.
    fn remedy(&self) -> &'static str {
        match (self.hamiltonian, self.constrained) {
            (false, _) => "gauss4 or corrected:dop853",
            (true, false) => "stormer-verlet-a or gauss4",
            (true, true) if self.degenerate.is_some() || self.kind == Kind::SecondClass => "corrected:dop853",
            (true, true) => "rattle",
        }
    }

    fn of(mechanics: &Mechanics) -> Facts<'_> {
        Facts {
            constrained: !mechanics.constraints.is_empty(),
            hamiltonian: mechanics.degrees > 0,
            kind: mechanics.kind,
            degenerate: mechanics.degenerate.as_deref(),
        }
    }
}

/// Every scheme that is written over a phase space, and why it does not suit the model, if it does not.
pub fn survey(model: &Derived) -> Vec<(&'static Scheme, Option<String>)> {
    let mechanics = model.mechanics();
    let schemes = SCHEMES.iter().filter(|scheme| !scheme.follows_fields());
    let why = |scheme: &&'static Scheme| match mechanics {
        _ if let Some(facts) = by_columns(&Method::plain(scheme), model, false) => {
            suits(&Method::plain(scheme), &facts).err()
        }
        Err(reason) => Some(reason.to_string()),
        Ok(mechanics) => {
            let suited = suits(&Method::plain(scheme), &Facts::of(mechanics));
            suited.and_then(|()| recognised(scheme, mechanics, model).map(drop)).err()
        }
    };
    schemes.map(|scheme| (scheme, why(&scheme))).collect()
}

/// Whether what a method recognises in a model is there with other parameters, too: it is seen in numbers.
///
/// # Errors
/// When it is not.
pub fn recognised_with(method: &Method, model: &Model, parameters: &[f64]) -> Result<(), String> {
    if !method.scheme.needs.recognised() || model.parameter_values == parameters {
        return Ok(());
    }
    let model = Derived::new(Model { parameter_values: parameters.to_vec(), ..model.clone() });
    let mechanics = model.mechanics().map_err(|reason| reason.to_string())?;
    recognised(method.scheme, mechanics, &model).map(drop)
}

/// What a scheme looks for in a model.
fn recognised(
    scheme: &Scheme,
    mechanics: &Mechanics,
    model: &Model,
) -> Result<(Option<Flows>, Option<RigidBody>), String> {
    Ok(match scheme.needs {
        Needs::Flows => (Some(known_flows(mechanics, model)?), None),
        Needs::Body | Needs::FreeBody => (None, Some(body(scheme, mechanics, model)?)),
        Needs::Natural | Needs::Stiff | Needs::HeatBath => {
            known_potential(scheme, mechanics, model).map(|()| (None, None))?
        }
        _ => (None, None),
    })
}

fn known_flows(mechanics: &Mechanics, model: &Model) -> Result<Flows, String> {
    let remedy = Facts::of(mechanics).remedy();
    Flows::new(mechanics, model).map_err(|reason| format!("{reason}; use {remedy}"))
}

/// The rigid body that the model is, for a scheme that needs one.
fn body(scheme: &Scheme, mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
    let remedy = Facts::of(mechanics).remedy();
    let body = RigidBody::new(mechanics, model).map_err(|reason| format!("{reason}; use {remedy}"))?;
    if scheme.needs == Needs::FreeBody { body.free() } else { Ok(body) }
}

/// Whether H is of the form, and its stiff part known, that a scheme with a β needs.
fn known_potential(scheme: &Scheme, mechanics: &Mechanics, model: &Model) -> Result<(), String> {
    natural::check(mechanics, model)?;
    knows_stiff_part(scheme, model)
}

fn knows_stiff_part(scheme: &Scheme, model: &Model) -> Result<(), String> {
    match scheme.needs == Needs::Stiff && model.stiff.is_none() {
        true => Err(format!(
            "it has to know which part of the potential energy is stiff; name it with {stiff_name}, a `let` that the Hamiltonian adds, or use zhang-skeel-simplified",
            stiff_name = option("stiff").of("NAME")
        )),
        false => Ok(()),
    }
}

/// Why a method does not suit the model.
fn suits(method: &Method, facts: &Facts) -> Result<(), String> {
    let Facts { constrained, hamiltonian, kind, degenerate } = *facts;
    if matches!(method.scheme.needs, Needs::Coisotropic | Needs::HeatBath)
        && let Some(name) = degenerate
    {
        return Err(format!(
            "the kinetic energy does not feel the normal of constraint `{name}`, so no multiplier holds it; use corrected:dop853"
        ));
    }
    let reason = match method.scheme.needs {
        Needs::Canonical if method.treatment.moves_the_state() => return Ok(()),
        Needs::Field | Needs::Series | Needs::Canonical | Needs::Hamiltonian | Needs::Natural | Needs::Stiff
            if hamiltonian && constrained =>
        {
            let penalty = if kind == Kind::Holonomic {
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
        Needs::Hamiltonian | Needs::Coisotropic | Needs::Flows | Needs::Natural | Needs::Stiff | Needs::HeatBath
            if !hamiltonian =>
        {
            "it needs a Hamiltonian, and the model is a vector field; use implicit-midpoint, gauss4, or corrected:dop853"
        }
        Needs::Coisotropic if !constrained => {
            "it is for constraints, and the model has none; use stormer-verlet-a, gauss4, or a composition of them"
        }
        Needs::HeatBath if constrained && kind != Kind::Holonomic => {
            return Err(format!("it takes constraints on positions only; use {}", facts.remedy()));
        }
        Needs::Coisotropic if kind == Kind::SecondClass => {
            "the brackets of the constraints do not vanish on the constraint set, so they have no fibres to slide along; use corrected:dop853"
        }
        _ => return Ok(()),
    };
    Err(reason.to_string())
}
