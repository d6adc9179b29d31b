//! Preparation of a simulation: a problem compiled for a method, with its options applied or
//! refused.

use super::Simulation;
use super::choices::{beta, plan, tolerance, unused_options};
use super::reference::reference_state;
use super::stepping::follow;
use crate::error::Error;
use crate::feedback::{feedback_system, refuse_unstable};
use crate::heat_bath;
use crate::kernels::{CompiledStep, CompiledSystem, Mend, StateVectors};
use crate::options::{Gains, RunOptions};
use crate::output::RunFolder;
use crate::penalty::{self, MeanMultipliers};
use crate::policy::ALIKE_MASSES;
use crate::problem::Problem;
use crate::pulses;
use crate::recording::{Measuring, RecordedArray, RecordedArrays, initial_values};
use crate::step::{MethodSettings, Program, Start, extension};
use holonome_integrate::method::{Method, MethodTreatment};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_model::derived::Derived;
use holonome_model::elaborate::expression::{MULTIPLIER, TIME};
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

    fn build(
        problem: Problem,
        mut options: RunOptions,
        formulas: Option<(&Potential, &Transport)>,
        (left_out, in_lanes): (&[String], bool),
    ) -> Result<Simulation, Error> {
        let method = options.method;
        method.check()?;
        let model_warnings = problem.warning_lines();
        let mut warnings = Vec::new();
        refuse_unverified(&problem)?;
        let problem = heat_bath::apply(problem, &method, &options, &mut warnings)?;
        let (mut problem, mut penalty) =
            penalty::apply(problem, &method, &mut options, &mut warnings, follow)?;
        problem.examined.leave_out(left_out);
        if let Some(redundancy) = problem.redundancy() {
            return Err(redundancy);
        }
        if let Some(too_large) = &problem.examined.too_large {
            return Err(Error::option(format!(
                "{too_large}; make it smaller with {set}, or split it",
                set = option("set")
            )));
        }
        let vectors = StateVectors::of(&problem.model);
        let near = method.treatment.begins_on_the_set()
            && !problem.model.constraints.is_empty()
            && vectors.mass_ratio(&problem.model) <= ALIKE_MASSES;
        let form = Form::of(&problem, &method, options.gain.as_ref(), near)?;
        let settings = MethodSettings {
            in_lanes,
            newton_tolerance: tolerance(option("newton_tolerance"), options.newton_tolerance)?,
            beta: beta(options.beta)?,
        };
        let h = options.step.fixed();
        let program = crate::step::program(
            &method,
            &problem.model,
            form.unrolled().map(Arc::as_ref),
            &settings,
            h,
        )?;
        if let Some((penalty, h)) = penalty.as_mut().zip(options.step.fixed())
            && let Some(multipliers) = penalty.multipliers.take()
        {
            let places = crate::step::force_places(&method, &problem.model, h, &settings)?;
            penalty.multipliers = Some(multipliers.with_places(places));
        }
        let solves = program.as_ref().is_some_and(Program::iterates);
        warnings.extend(unused_options(&options, &problem.settings, &method, solves));
        warnings.extend(crate::backend::warning());
        let field = form.unrolled();
        let mean = penalty.as_ref().and_then(|penalty| penalty.multipliers.as_ref());
        let own = program.as_ref().map_or(0, |program| program.map().multiplier_count());
        let multipliers = mean.map_or(own, MeanMultipliers::count);
        if multipliers == 0 {
            refuse_multipliers(&problem, &method)?;
        }
        let recorded = RecordedArrays::new(
            &problem.model,
            field.map(Arc::as_ref),
            multipliers,
            form.groups(),
            options.record.as_deref(),
        )?;
        if options.error && !recorded.arrays.iter().any(RecordedArray::is_variable) {
            return Err(Error::option(format!(
                "{error} compares the variables that are stored: put some into {record}",
                error = option("error"),
                record = option("record")
            )));
        }
        let plan = plan(&options, problem.model.t0, method, &mut warnings)?;
        let mut plan = pulses::heed(plan, &problem.model, &mut warnings);
        let mut groups = form.groups().to_vec();
        if method.treatment != MethodTreatment::Plain && groups.is_empty() {
            warnings.push(format!(
                "the model has no invariants, so `{}` does what `plain` does",
                method.treatment.facts().name
            ));
        }
        let parameters = problem.model.parameter_values.clone();
        let reference = reference_state(&problem, &options)?;
        let feeds_back = method.treatment == MethodTreatment::Feedback;
        let stepped = method.scheme.follows_fields();
        let plain = match &form {
            Form::Unrolled(field) => {
                let mend = Mend::of(&plan, field);
                CompiledSystem::new(field, &vectors, &parameters, stepped, mend)
            }
            Form::Templated(field) => {
                let extended = stepped && !problem.model.constraints.is_empty();
                let extended = extended.then(|| extension(&problem.model, near));
                CompiledSystem::of_rows(field, &vectors, &parameters, extended)
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
                let treated =
                    feedback_system(base, &plain, &plan, &state, &parameters, &options, formulas)?;
                plan.gain = treated.gain;
                gain_text = Some(treated.text);
                refuse_unstable(&plan, &treated.system, &plain, &state, &options, &mut warnings)?;
                let unrolled = treated.field.as_ref().zip(treated.system.unrolled());
                let step = unrolled.map(|(field, system)| {
                    CompiledStep::new(&plan, field, &vectors, system, targets, &treated.parameters)
                });
                let step = step.transpose()?;
                gains =
                    treated.parameters[targets + plain.invariants().count - constraints..].to_vec();
                with_feedback = treated.field;
                (treated.system, step.unwrap_or_default())
            }
            _ => {
                let all = [&parameters, &state.target[constraints..]].concat();
                // A program makes all steps itself.
                let unrolled = field.zip(plain.unrolled()).filter(|_| program.is_none());
                let step = unrolled.map(|(field, system)| {
                    CompiledStep::new(&plan, field, &vectors, system, targets, &all)
                });
                let step = step.transpose()?;
                (plain, step.unwrap_or_default())
            }
        };
        let program = program.map(|mut program| {
            let start = Start {
                parameters: &parameters,
                targets: &state.target[constraints..],
                x: &problem.model.initial,
            };
            let of = (field.map(Arc::as_ref), system.shared_invariants());
            program.repeat(of, || form.row_invariants(&problem.model), &plan, &[start], false);
            program
        });
        // Large models have no field on their constraints unless the method follows it.
        let has_field = problem.model.constraints.is_empty() || system.unrolled().is_some();
        let of_step = |h| heat_bath::warning(&method, settings.beta, &problem.model, &system, h);
        warnings.extend(plan.fixed_step().filter(|_| has_field).and_then(of_step));
        let modified = program.as_ref().zip(plan.fixed_step()).and_then(|(program, h)| {
            let energy = program.monitored_energy((plan.t0, h), &problem.model.initial)?;
            let name = "modified_energy".to_string();
            let kind = InvariantKind::ModifiedEnergy;
            groups.push(InvariantGroup {
                name,
                kind,
                members: Default::default(),
                monitored_only: true,
            });
            Some(energy)
        });
        let initial = initial_values(&problem.model, &groups, &state.values, modified);
        let field = form.into_field();
        let measuring =
            Measuring::new(&problem.model, field.as_deref(), multipliers, &plan, &options)?;
        problem.model.forget();
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
            system: Arc::new(system),
            step,
            program,
            state,
            recorded,
            measuring,
            gain_text,
            penalty,
            initial,
            folder: RunFolder::New,
        })
    }
}

/// Form in which a model's field is run.
enum Form<'a> {
    Unrolled(Arc<Field>),
    Templated(&'a RowField),
}

impl Form<'_> {
    /// Form for a model: templated if it is large. `near` is true if the field matters near the
    /// constraints only. A feedback term with gains of its own is a formula, so it needs an
    /// unrolled field.
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
        // The rates of moving hidden constraints are not derived for templated models.
        let moves = problem.model.constraints.iter().any(|c| c.depends & TIME != 0);
        let extends = moves && method.scheme.follows_fields();
        let automatic = gain.is_none_or(|gain| *gain == Gains::Auto);
        if (method.treatment != MethodTreatment::Feedback || automatic) && !extends {
            return Ok(Form::Templated(rows));
        }
        let too_large = |too_large: &TooLarge| {
            Error::option(match extends {
                true => format!(
                    "`{method}` unrolls the forces of constraints that depend on the time, and {too_large}; use rattle"
                ),
                false => format!(
                    "`{method}` unrolls a feedback term with gains of its own, and {too_large}; `{gain_auto}` and `corrected:{}` hold the same invariants and run models of any size",
                    method.scheme.name,
                    gain_auto = option("gain").of("auto")
                ),
            })
        };
        let (mut field, _) = problem.model.field().map_err(|reason| match &reason {
            NoMechanics::TooLarge(reason) => too_large(reason),
            NoMechanics::Irregular(_) => Error::option(reason.to_string()),
        })?;
        field.monitor_only(&problem.examined.varying);
        Ok(Form::followed(Arc::new(field), near))
    }

    fn followed<'a>(field: Arc<Field>, near: bool) -> Form<'a> {
        let shorter = near.then(|| field.from_the_set()).flatten();
        Form::Unrolled(shorter.map_or(field, Arc::new))
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

/// Refuse claims that are not true, unless they may be left unheld.
fn refuse_unverified(problem: &Problem) -> Result<(), Error> {
    if problem.settings.allow_unverified || problem.examined.unverified.is_empty() {
        return Ok(());
    }
    let error = |d: &Diagnostic| Diagnostic { severity: Severity::Error, ..d.clone() };
    let diagnostics = problem.examined.unverified.iter().map(error).collect();
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics })
}

/// Refuse observables that use multipliers, for a method without multipliers.
fn refuse_multipliers(problem: &Problem, method: &Method) -> Result<(), Error> {
    let Some(observable) = problem.model.observed().find(|q| q.depends & MULTIPLIER != 0) else {
        return Ok(());
    };
    let message =
        format!("observable '{}' uses multipliers, and `{method}` has none", observable.name);
    let diagnostic = Diagnostic::error(message, observable.span, "not known to this method").help(format!(
        "methods that have them: shake and rattle over any base, compositions of rattle, and others with {penalty}",
        penalty = option("penalty")
    ));
    Err(Error::Model { text: Box::new(problem.source.clone()), diagnostics: vec![diagnostic] })
}
