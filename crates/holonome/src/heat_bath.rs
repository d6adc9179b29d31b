//! Runs in a heat bath (`docs/langevin.md`): methods that have a place for one, and warnings about
//! their steps.

use crate::backend::backend;
use crate::error::Error;
use crate::options::RunOptions;
use crate::problem::Problem;
use holonome_integrate::method::{Method, MethodTreatment, Needs, Step};
use holonome_integrate::noise::Noise;
use holonome_integrate::system::System;
use holonome_model::consistency;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::{Dynamics, Model};
use holonome_model::functional::Functional;
use holonome_model::rows::RowProgram;
use holonome_model::treatment::heat_bath::heat;
use holonome_words::{OptionName, option};

/// The problem in the heat bath that the options ask for; unchanged if they ask for none.
///
/// # Errors
/// If the options make no sense, the method has no place for a bath, or the model has none for its
/// friction.
pub(crate) fn apply(
    problem: Problem,
    method: &Method,
    options: &RunOptions,
    warnings: &mut Vec<String>,
) -> Result<Problem, Error> {
    let brings_its_own = method.scheme.needs == Needs::HeatBath;
    if options.thermostat.is_none() && !brings_its_own {
        let given = [
            (option("friction"), options.friction.is_some()),
            (option("inverse_temperature"), options.inverse_temperature.is_some()),
            (option("fixman"), options.fixman.is_some()),
        ];
        let unused = given.into_iter().filter(|(_, given)| *given);
        warnings.extend(unused.map(|(name, _)| {
            format!("{name} has no effect: there is no {}", option("thermostat"))
        }));
        return Ok(problem);
    }
    // A pilot run of a problem that is in its bath already.
    if problem.model.heat_bath.is_some() {
        return Ok(problem);
    }
    let thermostat = option("thermostat").of("gla");
    if options.thermostat.is_some()
        && let Some(reason) = why_not(method)
    {
        return Err(Error::option(format!("{thermostat}: `{method}` {reason}")));
    }
    let who = if brings_its_own { format!("`{method}`") } else { thermostat.to_string() };
    let needed =
        |name: OptionName, value: Option<f64>, least: &str, fits: fn(f64) -> bool| match value {
            Some(value) if value.is_finite() && fits(value) => Ok(value),
            Some(value) => {
                Err(Error::option(format!("{name} must be {least} and finite, but it is {value}")))
            }
            None => Err(Error::option(format!("{who} needs {name}"))),
        };
    let friction =
        needed(option("friction"), options.friction, "0 or more", |friction| friction >= 0.0)?;
    let beta =
        needed(option("inverse_temperature"), options.inverse_temperature, "positive", |beta| {
            beta > 0.0 && beta.recip().is_finite() && beta.recip() > 0.0
        })?;
    refuse_comparisons(options)?;
    let mut fixman = options.fixman == Some(true);
    if fixman && (problem.model.constraints.is_empty() || options.penalty.is_some()) {
        let what = if options.penalty.is_some() {
            "a penalty is what it imitates"
        } else {
            "the model has no constraints"
        };
        warnings.push(format!("{} has no effect: {what}", option("fixman")));
        fixman = false;
    }
    let heated = heat(&problem.model, (friction, beta.recip()), problem.settings.seed, fixman);
    let model = heated.map_err(|reason| Error::option(format!("{who}: {reason}")))?;
    if let Some(massless) = massless(&model) {
        return Err(Error::option(format!(
            "{who}: {massless} has no positive mass, so it has no temperature"
        )));
    }
    let model = Derived::new(model);
    let examined = consistency::examine_by(backend(), &model, problem.span);
    Ok(Problem { model, examined, ..problem })
}

/// Reason why friction and noise have no place around a method, with the methods that have one;
/// `None` if this method has one.
fn why_not(method: &Method) -> Option<String> {
    let remedy =
        "use stormer-verlet-b, zhang-skeel or gauss6, and with constraints rattle or g-baoab";
    let reason = match method.scheme.needs {
        Needs::HeatBath => {
            return Some(format!(
                "brings friction and noise with it; leave {} out",
                option("thermostat")
            ));
        }
        Needs::Body | Needs::FreeBody => {
            "moves a body in its own frame, where the noise of momenta is none"
        }
        _ if method.treatment != MethodTreatment::Plain => {
            "returns to the invariants of the start, which a heat bath changes"
        }
        _ if !matches!(method.scheme.step, Step::Map(..) | Step::Sliding(..)) => {
            "is no map of the phase space that friction and noise could be composed with"
        }
        _ => return None,
    };
    Some(format!("{reason}; {remedy}"))
}

/// Refuse options that compare one orbit with another: noise drives them apart.
fn refuse_comparisons(options: &RunOptions) -> Result<(), Error> {
    let asked = [
        (option("penalty_tolerance"), options.penalty_tolerance.is_some(), option("penalty")),
        (option("error"), options.error, option("seed")),
        (option("interpolant"), options.interpolant, option("every")),
    ];
    match asked.iter().find(|(_, asked, _)| *asked) {
        Some((name, _, instead)) => Err(Error::option(format!(
            "{name} is for smooth orbits, and those in a heat bath are not: leave it out, and take {instead} instead"
        ))),
        None => Ok(()),
    }
}

/// 1/m of every momentum at the start of a Hamiltonian model.
fn inverse_masses(model: &Model) -> Vec<f64> {
    let Dynamics::Hamiltonian(hamiltonian, _) = &model.dynamics else { return Vec::new() };
    let degrees = model.degrees();
    let pieces = RowProgram::momentum_curvature(hamiltonian, degrees, &|component| {
        component - degrees as u32
    });
    let program = RowProgram::new(model.dimension(), degrees, pieces);
    program.evaluate_by(backend(), model.t0, &model.initial, &model.parameter_values)
}

/// Name of the first momentum whose mass is not positive.
fn massless(model: &Model) -> Option<String> {
    let massless =
        inverse_masses(model).iter().position(|mass| !(*mass > 0.0 && mass.is_finite()))?;
    Some(model.component_names()[model.degrees() + massless].clone())
}

/// Least difference of ½ ln det G M⁻¹Gᵀ between states for which it counts as not constant: far
/// above rounding, and above the effect of the states' distance from the constraint set.
const VARIES: f64 = 1e-6;

/// True if det G M⁻¹Gᵀ varies between these states on the constraint set, so that rods in a heat
/// bath are not the limit of stiff springs; `None` if Fixman's potential is not known.
pub(crate) fn determinant_varies(model: &Model, states: &[Vec<f64>]) -> Option<bool> {
    if model.constraints.is_empty() {
        return None;
    }
    let heated = heat(model, (0.0, 1.0), 0, true).ok()?;
    let (Dynamics::Hamiltonian(own, _), Dynamics::Hamiltonian(all, _)) =
        (&model.dynamics, &heated.dynamics)
    else {
        return None;
    };
    let potential = Functional { outputs: 1, terms: all.terms[own.terms.len()..].to_vec() };
    let program =
        RowProgram::new(model.dimension(), 1, RowProgram::values(&potential, &|_| Some(0)));
    let value =
        |x: &Vec<f64>| program.evaluate_by(backend(), model.t0, x, &heated.parameter_values)[0];
    let values: Vec<f64> = states.iter().map(value).collect();
    values
        .iter()
        .all(|value| value.is_finite())
        .then(|| values.iter().any(|value| (value - values[0]).abs() > VARIES))
}

/// Number of iterations, which find the fastest vibration to a few per cent.
const ITERATIONS: u64 = 30;

/// Displacement in these iterations, relative to that of a step at the temperature of the bath.
const SMALL: f64 = 1e-3;

/// Warning about steps of length h if something vibrates fast at the start. If there are
/// constraints, the system's field has to be that on the constraints.
pub(crate) fn warning(
    method: &Method,
    beta: f64,
    model: &Model,
    system: &dyn System,
    h: f64,
) -> Option<String> {
    let bath = model.heat_bath.as_ref()?;
    let thermal = model.parameter_values[bath.temperature];
    let square = (h * fastest(model, system, h * thermal.sqrt())?).powi(2);
    if square.is_nan() || square <= 1.0 {
        return None;
    }
    let leapfrog = |square: f64| (1.0 - square / 4.0).recip();
    let factor = match method.scheme.needs {
        Needs::HeatBath => 1.0,
        needs if needs.has_beta() => {
            (1.0 + beta * square) * leapfrog(square / (1.0 + beta * square))
        }
        _ => leapfrog(square),
    };
    let becomes = match method.scheme.needs {
        Needs::HeatBath => "the mean squares of its momenta come out too small".to_string(),
        _ if method.composition.is_some()
            || method.order() != 2
            || factor.is_nan()
            || factor <= 0.0 =>
        {
            "it is sampled wrongly".to_string()
        }
        _ => format!("the mean square of its positions comes out {factor:.2} times too large"),
    };
    Some(format!(
        "the fastest vibration at the start has h omega = {:.2}: {becomes}; a {} of {:.1e} or less samples it well",
        square.sqrt(),
        option("step"),
        0.5 * h / square.sqrt()
    ))
}

/// ω of the fastest vibration at the start, by power iteration with M⁻¹V_qq in differences, along
/// the constraints from the second iteration on; `None` if forces are not finite.
fn fastest(model: &Model, system: &dyn System, scale: f64) -> Option<f64> {
    let (n, t, start) = (model.degrees(), model.t0, &model.initial);
    let (mut work, mut rate) = (vec![0.0; system.work_len()], vec![0.0; 2 * n]);
    let mut at = |q: &dyn Fn(usize) -> f64, p: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let x: Vec<f64> = (0..n).map(q).chain((0..n).map(p)).collect();
        system.field(t, &x, &mut rate, &mut work);
        rate.clone()
    };
    let noise = Noise::new(0, 0);
    let size: f64 = SMALL * scale * inverse_masses(model).iter().sum::<f64>().sqrt();
    let mut direction: Vec<f64> = (0..n).map(|i| noise.normal(0, i as u32)).collect();
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut square = 0.0;
    for _ in 0..ITERATIONS {
        let length = norm(&direction);
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        direction.iter_mut().for_each(|v| *v *= size / length);
        let moved = |sign: f64| at(&|i| start[i] + sign * direction[i], &|_| 0.0);
        let [up, down] = [1.0, -1.0].map(moved);
        let still = at(&|i| start[i], &|_| 0.0);
        let pushed = at(&|i| start[i], &|i| 0.5 * (down[n + i] - up[n + i]));
        direction = (0..n).map(|i| pushed[i] - still[i]).collect();
        square = norm(&direction) / size;
    }
    Some(square.sqrt())
}
