//! Preparation of a simulation: a problem compiled for a method, with its options applied or
//! refused.

use super::choices::{beta, plan, tolerance, unused_options};
use super::reference::reference_state;
use super::{Simulation, Trajectory, follow, trial};
use crate::backward;
use crate::error::Error;
use crate::events;
use crate::feedback::{feedback_system, refuse_unstable};
use crate::heat_bath;
use crate::kernels::{CompiledStep, CompiledSystem, FieldJacobian, Mend, StateVectors, StepSource};
use crate::landing;
use crate::least_norm::LeastNorm;
use crate::options::{Gains, RunOptions};
use crate::output::RunFolder;
use crate::penalty::{self, MeanMultipliers, Penalised};
use crate::policy::{ALIKE_MASSES, LARGEST_FACTORS, LONGEST_STEP};
use crate::problem::Problem;
use crate::pulses;
use crate::recording::{
    InitialValues, Measuring, RecordedArray, RecordedArrays, SampleMultipliers,
};
use crate::step::{MethodSettings, Program, Start, extension};
use holonome_integrate::method::{Method, MethodTreatment};
use holonome_integrate::plan::{Gain, Plan};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_linear::resolvent::Resolvent;
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::{ACCELERATION, MULTIPLIER, REACTION};
use holonome_model::rows::RowProgram;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_model::templated::RowField;
use holonome_model::treatment::feedback::{Potential, Transport};
use holonome_model::treatment::mechanics::NoMechanics;
use holonome_model::treatment::unrolled::TooLarge;
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind};
use holonome_words::option;
use std::sync::Arc;

/// Compile `problem` for the method and the steps of `options`.
///
/// # Errors
/// If the options make no sense, the method does not suit the model, or a gain is refused.
pub fn prepare(problem: Problem, options: RunOptions) -> Result<Simulation, Error> {
    Simulation::build(problem, options, None, (&[], false))
}

impl Simulation {
    /// Run [`prepare`] for a `feedback` method whose V = W(ΔF) and L(x) are formulas (Chang,
    /// Jimenez, Perlmutter 2016, remark 2 and (11)): ẋ = X − L ∇V. Such a run is resumed by the
    /// program that started it, not from its folder alone, and its stability is not monitored.
    ///
    /// # Errors
    /// As [`prepare`]; also if the symmetric part of L is not positive definite at the initial
    /// state.
    pub fn with_feedback(
        problem: Problem,
        mut options: RunOptions,
        potential: &Potential,
        transport: &Transport,
    ) -> Result<Simulation, Error> {
        options.gain = Some(Gains::Formula);
        Simulation::build(problem, options, Some((potential, transport)), (&[], false))
    }

    /// Run [`prepare`] without the claimed integrals `left_out`, which turned out to vary along the
    /// motion.
    pub(crate) fn without(
        problem: Problem,
        options: RunOptions,
        left_out: &[String],
    ) -> Result<Simulation, Error> {
        Simulation::build(problem, options, None, (left_out, false))
    }

    /// Run [`prepare`] for the trajectories of an ensemble.
    pub(crate) fn of_ensemble(problem: Problem, options: RunOptions) -> Result<Simulation, Error> {
        Simulation::build(problem, options, None, (&[], true))
    }

    /// Templated program with which a run by itself makes its steps; `None` if it makes them as an
    /// ensemble does.
    pub(crate) fn templated_program(&self) -> Result<Option<Program>, Error> {
        let (method, model) = (&self.options.method, &self.problem.model);
        if !crate::step::unrolls_for_lanes(method, model) {
            return Ok(None);
        }
        let settings = settings(&self.options, false)?;
        let h = self.options.step.fixed();
        crate::step::program(method, model, self.field.as_deref(), &settings, h)
    }

    fn build(
        problem: Problem,
        options: RunOptions,
        formulas: Option<Formulas>,
        (left_out, in_lanes): (&[String], bool),
    ) -> Result<Simulation, Error> {
        let is_open = trial::is_open(&options, &problem.model);
        let mut options = options.completed(&problem.model)?;
        options.method.check()?;
        let model_warnings = problem.warning_lines();
        let mut warnings = Vec::new();
        let (problem, penalty) = treated(problem, &mut options, left_out, &mut warnings)?;
        let others = (is_open && penalty.is_none() && formulas.is_none() && !in_lanes)
            .then(|| (problem.clone(), warnings.clone()));
        let simulation =
            Simulation::compile(problem, penalty, options, formulas, in_lanes, warnings)?;
        let simulation = match others {
            None => simulation,
            Some((problem, warnings)) => trial::fastest(simulation, |options| {
                Simulation::compile(problem.clone(), None, options, None, false, warnings.clone())
            }),
        };
        Ok(Simulation { model_warnings, ..simulation })
    }

    /// Compile a problem whose treatments of the model have been applied.
    fn compile(
        mut problem: Problem,
        mut penalty: Option<Penalised>,
        options: RunOptions,
        formulas: Option<Formulas>,
        in_lanes: bool,
        mut warnings: Vec<String>,
    ) -> Result<Simulation, Error> {
        let compiler = Compiler::new(&problem, &options, in_lanes)?;
        let mut program = compiler.program()?;
        let multipliers = compiler.multipliers(penalty.as_mut(), program.as_ref())?;
        warnings.extend(compiler.warnings(program.as_ref()));
        let recorded = compiler.recorded(multipliers)?;
        let times = (problem.model.t0, problem.model.reversed);
        let plan = plan(&options, times, options.method, &mut warnings)?;
        let mut plan = pulses::heed(plan, &problem.model, &mut warnings)?;
        warnings.extend(compiler.without_invariants());
        let reference = reference_state(&problem, &options)?;
        let plain = compiler.system(&plan);
        compiler.refuse_large_factors(&plain)?;
        let state = StepState::new(&plan, &plain, &problem.model.initial, reference.as_deref());
        let constraints = plain.invariants().constraints;
        let stepper = match options.method.treatment {
            MethodTreatment::Feedback => {
                compiler.with_feedback(plain, &mut plan, &state, formulas, &mut warnings)?
            }
            // A program makes all steps itself.
            _ => compiler.alone(plain, &plan, &state, program.is_none())?,
        };
        let Stepper { system, step, gains, treated, gain_text } = stepper;
        let events = events::compile(&problem, compiler.field(), &compiler.vectors, &options)?;
        let system = system.with_events(events);
        for name in events::uncounted(&problem) {
            warnings.push(format!(
                "{} has not counted the crossings of event '{name}': those of this run are counted from 1",
                option("start")
            ));
        }
        // Iterations in lanes are found from several trajectories.
        if let Some(program) = program.as_mut().filter(|p| !in_lanes || p.is_templated()) {
            compiler.unroll_iterations(program, &system, &plan, &state);
        }
        warnings.extend(compiler.heat_bath_warning(&plan, &system));
        let modified = program.as_ref().zip(plan.fixed_step()).and_then(|(program, h)| {
            program.monitored_energy((plan.t0, h), &problem.model.initial)
        });
        let mut groups = compiler.form.groups().to_vec();
        groups.extend(modified.map(|_| modified_energy()));
        let initial = InitialValues::new(&problem.model, &groups);
        let initial = initial.of(&problem.model, &groups, &state.values, modified);
        let rate = match plan.gain {
            Some(Gain::Rate(rate)) => Some(rate),
            _ => None,
        };
        let Compiler { vectors, form, .. } = compiler;
        let field = form.into_field();
        let of_field = field.as_deref();
        let measuring = Measuring::new(&problem.model, of_field, multipliers, &plan, &options)?;
        let means = penalty.as_mut().and_then(|penalty| penalty.multipliers.take());
        let redundancy = problem.model.redundancy.as_ref().filter(|_| multipliers > 0);
        let least = redundancy.map(|of| LeastNorm::new(&problem.model, of));
        let multipliers =
            means.map(SampleMultipliers::Mean).or(least.map(SampleMultipliers::Least));
        problem.model.forget();
        Ok(Simulation {
            problem,
            options,
            warnings,
            model_warnings: Vec::new(),
            field,
            groups,
            constraints,
            treated,
            plan,
            vectors,
            trajectory: Trajectory { system: Arc::new(system), step, program, gains, rate, state },
            recorded,
            measuring,
            gain_text,
            penalty,
            multipliers,
            initial,
            settable: None,
            failed: None,
            folder: RunFolder::New,
        })
    }
}

/// V = W(ΔF) and L(x) of a feedback term, given as formulas.
type Formulas<'a> = (&'a Potential<'a>, &'a Transport<'a>);

pub(super) fn settings(options: &RunOptions, in_lanes: bool) -> Result<MethodSettings, Error> {
    Ok(MethodSettings {
        in_lanes,
        newton_tolerance: tolerance(option("newton_tolerance"), options.newton_tolerance)?,
        beta: beta(options.beta)?,
    })
}

/// The problem that is run: in its heat bath, with its penalty, without the claims `left_out`.
fn treated(
    problem: Problem,
    options: &mut RunOptions,
    left_out: &[String],
    warnings: &mut Vec<String>,
) -> Result<(Problem, Option<Penalised>), Error> {
    let method = options.method;
    refuse_unverified(&problem)?;
    let problem = backward::apply(problem, &method, options)?;
    let problem = heat_bath::apply(problem, &method, options, warnings)?;
    let (problem, penalty) = penalty::apply(problem, &method, options, warnings, follow)?;
    let mut problem = landing::apply(problem, options);
    problem.examined.leave_out(left_out);
    if let Some(singularity) = problem.singularity() {
        return Err(singularity);
    }
    if let Some(too_large) = &problem.examined.too_large {
        let set = option("set");
        return Err(Error::option(format!("{too_large}; make it smaller with {set}, or split it")));
    }
    Ok((problem, penalty))
}

fn modified_energy() -> InvariantGroup {
    InvariantGroup {
        name: "modified_energy".to_string(),
        kind: InvariantKind::ModifiedEnergy,
        members: Default::default(),
        monitored_only: true,
    }
}

/// Compiled field and steps, with a feedback term if there is one.
struct Stepper {
    system: CompiledSystem,
    step: CompiledStep,
    gains: Vec<f64>,
    treated: Option<Arc<Field>>,
    gain_text: Option<String>,
}

/// A problem on its way to a simulation, with the form of its field.
struct Compiler<'a> {
    problem: &'a Problem,
    options: &'a RunOptions,
    method: &'a Method,
    settings: MethodSettings,
    vectors: Arc<StateVectors>,
    form: Form<'a>,
    /// True if the field matters near the constraints only.
    near: bool,
}

impl<'a> Compiler<'a> {
    fn new(
        problem: &'a Problem,
        options: &'a RunOptions,
        in_lanes: bool,
    ) -> Result<Compiler<'a>, Error> {
        let method = &options.method;
        let vectors = StateVectors::of(&problem.model);
        let near = stays_near(method, problem, &vectors);
        let mut form = Form::of(problem, method, options.gain.as_ref(), near)?;
        if let Form::Unrolled(field) = &mut form
            && !(problem.model.events.is_empty() && field.surfaces.is_empty())
        {
            *field = Arc::new(events::watched(problem, field, options)?);
        }
        let settings = settings(options, in_lanes)?;
        Ok(Compiler { problem, options, method, settings, vectors, form, near })
    }

    fn field(&self) -> Option<&Field> {
        self.form.unrolled().map(Arc::as_ref)
    }

    fn program(&self) -> Result<Option<Program>, Error> {
        let (model, h) = (&self.problem.model, self.options.step.fixed());
        crate::step::program(self.method, model, self.field(), &self.settings, h)
    }

    /// Number of multipliers: those of a penalty, which learn where the method evaluates forces, or
    /// those of the steps.
    fn multipliers(
        &self,
        penalty: Option<&mut Penalised>,
        program: Option<&Program>,
    ) -> Result<usize, Error> {
        let own = program.map_or(0, |program| program.map().multiplier_count());
        let Some(penalty) = penalty else { return Ok(own) };
        let model = &self.problem.model;
        if let Some(h) = self.options.step.fixed()
            && let Some(multipliers) = penalty.multipliers.take()
        {
            let places = crate::step::force_places(self.method, model, h, &self.settings)?;
            penalty.multipliers = Some(multipliers.with_places(places));
        }
        Ok(penalty.multipliers.as_ref().map_or(own, MeanMultipliers::count))
    }

    /// Warnings about options without an effect, and about the machine.
    fn warnings(&self, program: Option<&Program>) -> Vec<String> {
        let solves = program.is_some_and(Program::iterates);
        let settings = &self.problem.settings;
        let mut warnings = unused_options(self.options, settings, self.method, solves);
        warnings.extend(crate::backend::warning());
        warnings
    }

    fn recorded(&self, multipliers: usize) -> Result<RecordedArrays, Error> {
        refuse_unknown(self.problem, self.method, self.field(), multipliers > 0)?;
        let (groups, only) = (self.form.groups(), self.options.record.as_deref());
        let recorded =
            RecordedArrays::new(&self.problem.model, self.field(), multipliers, groups, only)?;
        if self.options.error && !recorded.arrays.iter().any(RecordedArray::is_variable) {
            return Err(Error::option(format!(
                "{error} compares the variables that are stored: put some into {record}",
                error = option("error"),
                record = option("record")
            )));
        }
        Ok(recorded)
    }

    /// Warning about a treatment of nothing, unless it is that of the default method, which nobody
    /// chose.
    fn without_invariants(&self) -> Option<String> {
        let treatment = self.method.treatment;
        let default = RunOptions::default().method;
        let is_chosen = !(self.options.method == default || self.options.trial.is_some())
            && treatment != MethodTreatment::Plain;
        (is_chosen && self.form.groups().is_empty()).then(|| {
            let name = treatment.facts().name;
            format!("the model has no invariants, so `{name}` does what `plain` does")
        })
    }

    /// Compiled field without a feedback term.
    fn system(&self, plan: &Plan) -> CompiledSystem {
        let (model, vectors) = (&self.problem.model, &self.vectors);
        let (parameters, stepped) = (&model.parameter_values, self.method.scheme.follows_fields());
        match &self.form {
            Form::Unrolled(field) => {
                let mend = Mend::of(plan, field);
                let system = CompiledSystem::new(field, vectors, parameters, stepped, mend);
                self.solvable(system, field, parameters)
            }
            Form::Templated(field) => {
                let extended = stepped && !model.constraints.is_empty();
                let extended = extended.then(|| extension(model, self.near));
                let system = CompiledSystem::of_rows(field, vectors, parameters, extended);
                match self.method.scheme.stiff().and_then(|_| model.row_jacobian()) {
                    Some(of) => {
                        let jacobian = FieldJacobian::of_rows(of, &field.layout, parameters);
                        system.with_field_jacobian(jacobian)
                    }
                    None => system,
                }
            }
        }
    }

    /// Refuse a method for stiff fields whose linear systems are too large.
    fn refuse_large_factors(&self, system: &CompiledSystem) -> Result<(), Error> {
        let Some(pattern) = system.field_pattern() else { return Ok(()) };
        let numbers = 4 * Resolvent::new(pattern).factor_count();
        if numbers <= LARGEST_FACTORS {
            return Ok(());
        }
        Err(Error::option(format!(
            "`{}` factors linear systems of {} unknowns, which takes {numbers} numbers: more than {LARGEST_FACTORS}; use corrected:dop853, or make the model smaller with {set}",
            self.method,
            pattern.count(),
            set = option("set"),
        )))
    }

    /// System of an unrolled field, with its Jacobian if steps solve with it.
    fn solvable(&self, system: CompiledSystem, field: &Field, all: &[f64]) -> CompiledSystem {
        match self.method.scheme.stiff() {
            Some(_) => system.with_field_jacobian(FieldJacobian::of(field, all)),
            None => system,
        }
    }

    /// Stepper without a feedback term; its steps are compiled if it `makes_steps`.
    fn alone(
        &self,
        system: CompiledSystem,
        plan: &Plan,
        state: &StepState,
        makes_steps: bool,
    ) -> Result<Stepper, Error> {
        let targets = &state.target[system.invariants().constraints..];
        let all = [&self.problem.model.parameter_values, targets].concat();
        let field = self.form.unrolled().filter(|_| makes_steps);
        let step = self.step(plan, field, &system, &all)?;
        Ok(Stepper { system, step, gains: Vec::new(), treated: None, gain_text: None })
    }

    fn with_feedback(
        &self,
        plain: CompiledSystem,
        plan: &mut Plan,
        state: &StepState,
        formulas: Option<Formulas>,
        warnings: &mut Vec<String>,
    ) -> Result<Stepper, Error> {
        let base = (self.form.unrolled(), self.form.groups(), &self.vectors);
        let (own, options) = (&self.problem.model.parameter_values, self.options);
        let treated = feedback_system(base, &plain, plan, state, own, options, formulas)?;
        plan.gain = treated.gain;
        refuse_unstable(plan, &treated.system, &plain, state, options, warnings)?;
        let (mut system, field, all) = (treated.system, treated.field, treated.parameters);
        if let Some(field) = &field {
            system = self.solvable(system, field, &all);
        }
        let step = self.step(plan, field.as_ref(), &system, &all)?;
        let targets = plain.invariants().count - plain.invariants().constraints;
        let gains = all[own.len() + targets..].to_vec();
        Ok(Stepper { system, step, gains, treated: field, gain_text: Some(treated.text) })
    }

    /// Compiled steps over an unrolled field.
    fn step(
        &self,
        plan: &Plan,
        field: Option<&Arc<Field>>,
        system: &CompiledSystem,
        all: &[f64],
    ) -> Result<CompiledStep, Error> {
        let Some((field, system)) = field.zip(system.unrolled()) else {
            return Ok(CompiledStep::default());
        };
        let (vectors, targets) = (&self.vectors, self.problem.model.parameter_values.len());
        let parameters = all.len();
        let longest = LONGEST_STEP;
        let of = StepSource { plan, field, vectors, system, targets, parameters, longest };
        CompiledStep::new(&of, all)
    }

    /// Let a program take many steps in a loop whose iterations are found from the start.
    fn unroll_iterations(
        &self,
        program: &mut Program,
        system: &CompiledSystem,
        plan: &Plan,
        state: &StepState,
    ) {
        let model = &self.problem.model;
        let start = Start {
            parameters: &model.parameter_values,
            targets: &state.target[system.invariants().constraints..],
            x: &model.initial,
        };
        let of = (self.field(), system.shared_invariants());
        program.repeat(of, || self.form.row_invariants(model), plan, &[start], false);
    }

    fn heat_bath_warning(&self, plan: &Plan, system: &CompiledSystem) -> Option<String> {
        let model = &self.problem.model;
        // Large models have no field on their constraints unless the method follows it.
        let has_field = model.constraints.is_empty() || system.unrolled().is_some();
        let h = plan.fixed_step().filter(|_| has_field)?;
        heat_bath::warning(self.method, self.settings.beta, model, system, h)
    }
}

/// Form in which a model's field is run.
enum Form<'a> {
    Unrolled(Arc<Field>),
    Templated(&'a RowField),
}

impl Form<'_> {
    /// Form for a model: templated if it is large. `near` is true if the field matters near the
    /// constraints only. A feedback term with a matrix of gains, or of formulas, is a formula, so
    /// it needs an unrolled field.
    fn of<'a>(
        problem: &'a Problem,
        method: &Method,
        gain: Option<&Gains>,
        near: bool,
    ) -> Result<Form<'a>, Error> {
        let Some(rows) = &problem.examined.rows else {
            let field = problem
                .examined
                .field
                .as_ref()
                .ok_or_else(|| Error::option("the model has no field"))?;
            return Ok(Form::followed(Arc::clone(&field.0), near));
        };
        if method.scheme.needs_formulas() {
            return Err(Error::option(format!(
                "`{method}` needs unrolled formulas, and the model is too large for that: use corrected:dop853"
            )));
        }
        if method.scheme.stiff().is_some()
            && let Some(reason) = FieldJacobian::missing(&problem.model)
        {
            return Err(Error::option(format!(
                "`{method}` needs the Jacobian of the field, which this model does not have: {reason}; use corrected:dop853"
            )));
        }
        let is_formula = matches!(gain, Some(Gains::Matrix(_) | Gains::Formula));
        if method.treatment != MethodTreatment::Feedback || !is_formula {
            return Ok(Form::Templated(rows));
        }
        let too_large = |too_large: &TooLarge| {
            Error::option(format!(
                "`{method}` unrolls a feedback term of formulas or of a gain matrix, and {too_large}; `{gain_auto}`, gains by name and `corrected:{}` hold the same invariants and run models of any size",
                method.scheme.name,
                gain_auto = option("gain").of("auto")
            ))
        };
        let (mut field, _) = problem.model.field().map_err(|reason| match &reason {
            NoMechanics::TooLarge(reason) => too_large(reason),
            NoMechanics::Irregular(_) => Error::option(reason.to_string()),
        })?;
        field.monitor_only(&problem.examined.varying);
        Ok(Form::followed(Arc::new(field), near))
    }

    fn followed<'a>(field: Arc<Field>, near: bool) -> Form<'a> {
        Form::Unrolled(followed(field, near))
    }

    fn unrolled(&self) -> Option<&Arc<Field>> {
        match self {
            Form::Unrolled(field) => Some(field),
            Form::Templated(_) => None,
        }
    }

    /// F over rows.
    fn row_invariants(&self, model: &Derived) -> RowProgram {
        match self {
            Form::Unrolled(_) => model.row_invariants(),
            Form::Templated(field) => field.invariants.clone(),
        }
    }

    fn into_field(self) -> Option<Arc<Field>> {
        match self {
            Form::Unrolled(field) => Some(field),
            Form::Templated(_) => None,
        }
    }

    fn groups(&self) -> &[InvariantGroup] {
        match self {
            Form::Unrolled(field) => &field.groups,
            Form::Templated(field) => &field.groups,
        }
    }
}

/// Field that steps follow; `near` is true if it matters near the constraints only.
fn followed(field: Arc<Field>, near: bool) -> Arc<Field> {
    let shorter = near.then(|| field.from_the_set()).flatten();
    shorter.map_or(field, Arc::new)
}

/// True if the field of a model with these vectors matters near the constraints only.
fn stays_near(method: &Method, problem: &Problem, vectors: &StateVectors) -> bool {
    method.treatment.begins_on_the_set()
        && !problem.model.constraints.is_empty()
        && vectors.mass_ratio(&problem.model) <= ALIKE_MASSES
}

/// Unrolled field that the steps of a simulation follow, however large its model is; without a
/// feedback term.
///
/// # Errors
/// If it is too large for that.
pub(super) fn unrolled_field(simulation: &Simulation) -> Result<Arc<Field>, Error> {
    let Simulation { problem, plan, field, vectors, .. } = simulation;
    if let Some(field) = field {
        return Ok(Arc::clone(field));
    }
    let (mut field, _) = problem.model.field().map_err(|reason| {
        Error::option(format!("a derivative unrolls the field of the model, and {reason}"))
    })?;
    field.monitor_only(&problem.examined.varying);
    Ok(followed(Arc::new(field), stays_near(&plan.method, problem, vectors)))
}

/// Refuse claims that are not true, unless they may be left unheld.
fn refuse_unverified(problem: &Problem) -> Result<(), Error> {
    if problem.settings.allow_unverified || problem.examined.unverified.is_empty() {
        return Ok(());
    }
    let error = |d: &Diagnostic| Diagnostic { severity: Severity::Error, ..d.clone() };
    let diagnostics = problem.examined.unverified.iter().map(error).collect();
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics })
}

/// Refuse observables that use multipliers or accelerations that nothing knows: neither the field,
/// which has them in closed form if it is unrolled, nor the steps, if they are `found` by these.
fn refuse_unknown(
    problem: &Problem,
    method: &Method,
    field: Option<&Field>,
    found: bool,
) -> Result<(), Error> {
    let multipliers = found || field.is_some_and(|field| !field.multipliers.is_empty());
    let mut unknown = if multipliers { 0 } else { MULTIPLIER };
    unknown |= if field.is_some() { 0 } else { ACCELERATION | REACTION };
    let Some(observable) = problem.model.observed().find(|q| q.depends & unknown != 0) else {
        return Ok(());
    };
    let name = &observable.name;
    let too_large = "and the model is too large to be unrolled";
    let (message, help) = match observable.depends & unknown {
        REACTION => (
            format!("observable '{name}' uses reactions, {too_large}"),
            "a reaction is −Gᵀλ: write it with lambda.NAME".to_string(),
        ),
        unknown if unknown & MULTIPLIER == 0 => (
            format!("observable '{name}' uses accelerations, {too_large}"),
            "an acceleration is M⁻¹ times the forces: write them, with the multipliers that a method finds".to_string(),
        ),
        _ => (
            format!("observable '{name}' uses multipliers, and `{method}` has none"),
            format!(
                "methods that have them for every model: shake and rattle over any base, compositions of rattle, and others with {penalty}",
                penalty = option("penalty")
            ),
        ),
    };
    let diagnostic =
        Diagnostic::error(message, observable.span, "not known to this method").help(help);
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![diagnostic] })
}
