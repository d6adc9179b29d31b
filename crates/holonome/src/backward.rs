//! Runs backwards in time: a problem becomes that of the reversed model, which is run forwards.

use crate::backend::backend;
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use holonome_integrate::method::{Method, Needs};
use holonome_model::consistency;
use holonome_model::derived::Derived;
use holonome_model::treatment::reversal::reversed;
use holonome_words::option;

/// The problem that is run: the reversed one if the run ends before it starts.
///
/// # Errors
/// If the options ask for noise, which has no motion backwards, or for what goes forwards only.
pub(crate) fn apply(
    problem: Problem,
    method: &Method,
    options: &RunOptions,
) -> Result<Problem, Error> {
    let model = &problem.model;
    if model.reversed || !(options.until < model.t0 && options.until.is_finite()) {
        return Ok(problem);
    }
    let backwards =
        format!("{} is before the start at t = {}", option("until").with(options.until), model.t0);
    let refused = |who: String, why: &str| Err(Error::option(format!("{who}: {why}; {backwards}")));
    if options.thermostat.is_some() || method.scheme.needs == Needs::HeatBath {
        let who = if options.thermostat.is_some() {
            option("thermostat").of("gla").to_string()
        } else {
            format!("`{method}`")
        };
        return refused(who, "friction and noise have no motion backwards in time");
    }
    if options.interpolant {
        let who = option("interpolant").to_string();
        return refused(who, "a run backwards has its samples only, take more of them");
    }
    let (from, until) = problem.span;
    let (model, span) = (Derived::new(reversed(model)), (0.0 - until, 0.0 - from));
    let mut examined = consistency::examine_by(backend(), &model, span);
    if problem.settings.allow_unverified {
        examined.leave_out_unverified();
    }
    let model = examined.independent.take().unwrap_or(model);
    Ok(Problem { model, examined, span, ..problem })
}

/// Refuse a run that ends before it starts, for `who` goes forwards only.
pub(crate) fn refuse(problem: &Problem, options: &RunOptions, who: &str) -> Result<(), Error> {
    match options.until < problem.model.t0 {
        true => Err(Error::option(format!(
            "{} is before the start at t = {}, and {who} goes forwards only: run the model itself, or write it with the opposite time",
            option("until").with(options.until),
            problem.model.t0
        ))),
        false => Ok(()),
    }
}
