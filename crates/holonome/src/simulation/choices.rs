//! Steps and samples of a run from its options, and warnings about options without effect.

use crate::error::Error;
use crate::options::{RunOptions, Settings, StepSize};
use holonome_integrate::method::{Method, MethodTreatment, Needs};
use holonome_integrate::plan::{Metric, Plan, PlanError, Stepping};
use holonome_words::{OptionName, option};

/// Warnings about given options that the method does not use; `iterates` is true if its step solves
/// equations by iterations.
pub(crate) fn unused_options(
    options: &RunOptions,
    settings: &Settings,
    method: &Method,
    iterates: bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut unused = |name: OptionName, used: bool, given: bool, who: &str| {
        if given && !used {
            warnings.push(format!("{name} has no effect: {who}"));
        }
    };
    let feedback = method.treatment == MethodTreatment::Feedback;
    unused(option("gain"), feedback, options.gain.is_some(), "only `feedback` methods have gains");
    let refusable = feedback || options.penalty.is_some();
    unused(
        option("allow_unstable"),
        refusable,
        options.allow_unstable,
        "only gains of `feedback` methods and penalties are refused",
    );
    unused(
        option("projection_tolerance"),
        method.treatment.iterates(),
        options.projection_tolerance.is_some(),
        "only `projection` and `symmetric-projection` iterate",
    );
    unused(
        option("reference"),
        method.treatment != MethodTreatment::Plain,
        options.reference.is_some(),
        "`plain` methods aim at nothing",
    );
    unused(
        option("newton_tolerance"),
        iterates,
        options.newton_tolerance.is_some(),
        "the method iterates for no equations on this model",
    );
    let needs = method.scheme.needs;
    unused(
        option("beta"),
        needs.has_beta(),
        options.beta.is_some(),
        "only the methods of Newmark, Zhang and Skeel have a beta",
    );
    unused(
        option("stiff"),
        needs == Needs::Stiff,
        settings.stiff.is_some(),
        "only `zhang-skeel-stiff` treats a part of the potential energy in its own way",
    );
    unused(
        option("metric"),
        method.treatment.iterates(),
        options.metric != Metric::Auto,
        "only projections move a state in a metric that can be chosen",
    );
    let adapts = options.step.fixed().is_none();
    unused(
        option("max_step"),
        adapts,
        options.max_step.is_some(),
        &format!("the step is fixed by {step}", step = option("step")),
    );
    warnings
}

/// Smallest sensible tolerance: below it the allowed error of a step is less than a few roundings
/// of its result.
const FINEST: f64 = 1e-15;

/// Largest sensible tolerance: beyond it any result is allowed.
const COARSEST: f64 = 0.1;

/// Plan of a run that begins at `t0`; the model's time is the opposite of the run's if `reversed`.
pub(crate) fn plan(
    options: &RunOptions,
    (t0, reversed): (f64, bool),
    method: Method,
    warnings: &mut Vec<String>,
) -> Result<Plan, Error> {
    let until = if reversed { 0.0 - options.until } else { options.until };
    let mut plan = match options.step {
        StepSize::Fixed(h) => Plan::fixed(method, t0, until, h)?,
        StepSize::Adaptive { rtol, atol } => Plan::adaptive(method, t0, until, rtol, atol)?,
    };
    plan.reversed = reversed;
    match options.step {
        StepSize::Adaptive { rtol, atol } if rtol < FINEST && atol <= rtol => warnings.push(format!(
            "{} is below what rounding allows: steps become shorter and the result no better; take {FINEST:e} or more",
            option("rtol").with(format_args!("{rtol:e}"))
        )),
        StepSize::Adaptive { rtol, .. } if rtol > COARSEST => warnings.push(format!(
            "{} lets every step err by more than a tenth of the state: the motion may be another one; take {COARSEST:e} or less",
            option("rtol").with(format_args!("{rtol:e}"))
        )),
        _ => {}
    }
    if let Some(longest) = options.max_step {
        plan = plan.with_longest_step(longest)?;
    }
    match options.max_steps {
        Some(0) => {
            return Err(Error::option(format!(
                "{max_steps} must be at least 1",
                max_steps = option("max_steps")
            )));
        }
        Some(limit) => plan.step_limit = limit,
        None => {}
    }
    (plan.metric, plan.singular) = (options.metric, options.singular);
    plan = with_outputs(plan, options)?;
    plan.projection_tolerance =
        tolerance(option("projection_tolerance"), options.projection_tolerance)?;
    if let Stepping::Fixed(fixed) = &plan.stepping
        && fixed.shorter_last.is_some()
        && method.symplectic()
    {
        warnings.push(format!(
            "the last step is shorter than {}: a symplectic method loses its structure there",
            fixed.h
        ));
    }
    Ok(plan)
}

/// Default number of gaps between the samples of a run; a number with many divisors.
const DEFAULT_GAPS: u64 = 1000;

/// `plan` with the outputs that the options ask for.
fn with_outputs(plan: Plan, options: &RunOptions) -> Result<Plan, Error> {
    let given = [
        ("every", options.every.is_some()),
        ("samples", options.samples.is_some()),
        ("at", options.at.is_some()),
    ];
    let given: Vec<&str> =
        given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if let [first, second, ..] = given[..] {
        return Err(Error::option(format!(
            "{} and {} exclude each other",
            option(first),
            option(second)
        )));
    }
    if let Some(times) = &options.at {
        if times.is_empty() {
            return Err(Error::option(format!("{} has no times", option("at"))));
        }
        let times: Vec<f64> = times.iter().map(|&t| plan.clock(t)).collect();
        return Ok(plan.with_times(&times)?);
    }
    match options.every {
        Some(every) => plan
            .with_spacing(every)
            .map_err(|e| Error::option(format!("{every}: {e}", every = option("every")))),
        None => Ok(with_samples(plan, options.samples.unwrap_or(DEFAULT_GAPS + 1), options)?),
    }
}

fn with_samples(plan: Plan, count: u64, options: &RunOptions) -> Result<Plan, PlanError> {
    match options.sampled_until {
        Some(until) => {
            let until = plan.clock(until);
            plan.with_samples_until(count, until)
        }
        None => plan.with_samples(count),
    }
}

/// β of the options, or its default.
pub(super) fn beta(value: Option<f64>) -> Result<f64, Error> {
    const DEFAULT: f64 = 0.4;
    match value {
        Some(beta) if !(beta >= 0.0 && beta.is_finite()) => Err(Error::option(format!(
            "{} must be 0 or more, and finite, but it is {beta}",
            option("beta")
        ))),
        value => Ok(value.unwrap_or(DEFAULT)),
    }
}

/// Tolerance given by an option.
pub(crate) fn tolerance(name: OptionName, value: Option<f64>) -> Result<Option<f64>, Error> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            Err(Error::option(format!("{name} must be positive and finite, but it is {value}")))
        }
        value => Ok(value),
    }
}
