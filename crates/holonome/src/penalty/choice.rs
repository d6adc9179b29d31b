//! Choice of ω: the user's number, the default for a step, or the one for a given accuracy; and the
//! limit set by a step.

use super::Open;
use crate::error::Error;
use crate::kernels::Parametric;
use crate::options::{PenaltyStrength, RunOptions, StepSize};
use crate::problem::Problem;
use holonome_integrate::method::Method;
use holonome_words::option;

/// Result of a pilot run.
pub(crate) struct Followed {
    /// The last state.
    pub x: Vec<f64>,
    /// Reason why it ended early, if it did.
    pub failure: Option<String>,
}

/// Follow the motion of a problem, passing on every step and sample (t, x); an error if there is no
/// such motion.
pub(crate) type Follow =
    fn(Problem, RunOptions, &mut (dyn FnMut(f64, &[f64]) + Send)) -> Result<Followed, Error>;

/// ω and its origin.
pub(super) struct Choice {
    pub omega: f64,
    pub text: String,
}

/// hω√a of the default, with the least diagonal entry a of G M⁻¹Gᵀ, which makes hω 3 for a rod of
/// unit length and mass; and the default's limit of ωh²v.
const FASTEST: f64 = 6.0;
const GENTLE: f64 = 0.2;

/// ωh²v above which a run is warned of, and refused. Linearly implicit steps become unstable
/// between 0.13 and 0.4, independently of their linear stability.
const RISKY: f64 = 0.12;
const REFUSED: f64 = 0.4;

/// Steps of the run that the pilot run covers; fewer for a templated model.
const PILOT_STEPS: f64 = 200.0;
const PILOT_STEPS_OF_ROWS: f64 = 20.0;

/// The v that the forces at the start give suffices below this fraction of the v that matters: a
/// model that is run row by row then makes no pilot run.
const FAR_BELOW: f64 = 0.5;

/// Tolerance of the pilot run: v is needed to a few per cent.
const PILOT_TOLERANCE: f64 = 1e-6;

/// Relative difference of v between steps and half of them up to which the steps are short enough
/// for the motion.
const AGREEMENT: f64 = 0.05;

/// Maximum number of halvings of the pilot run's step.
const MOST_HALVED: u32 = 4;

/// ω₀ of the two runs from which a tolerance's ω is found, if there is no step.
const TRIAL: f64 = 20.0;

/// Range of numbers that are shown without an exponent.
const SHORT: std::ops::Range<f64> = 1e-3..1e9;

/// A number with all its digits.
pub(super) fn shown(x: f64) -> String {
    if SHORT.contains(&x) { format!("{x}") } else { format!("{x:e}") }
}

/// A number with `digits` digits after the point.
fn rounded(x: f64, digits: usize) -> String {
    if SHORT.contains(&x) { format!("{x:.digits$}") } else { format!("{x:.digits$e}") }
}

/// The ω that `options` ask for.
///
/// # Errors
/// If they contradict each other, or the step does not allow it.
pub(super) fn choose(
    (problem, open): (&Problem, &Open),
    method: &Method,
    options: &RunOptions,
    warnings: &mut Vec<String>,
    follow: Follow,
) -> Result<Choice, Error> {
    // v from which on the result differs: ω, or the warning about it.
    let matters = |h: f64| match options.penalty {
        Some(PenaltyStrength::Omega(omega)) => RISKY / (omega * h * h),
        Some(PenaltyStrength::Auto) => GENTLE / (h * h * fastest(open, h)),
        None => 0.0,
    };
    let speed = options
        .step
        .fixed()
        .map(|h| speed((problem, open), options, (h, matters(h)), follow))
        .transpose()?;
    let choice = match (options.penalty, options.penalty_tolerance) {
        (Some(_), Some(_)) => {
            return Err(Error::option(format!(
                "{penalty} and {penalty_tolerance} exclude each other: both choose omega",
                penalty = option("penalty"),
                penalty_tolerance = option("penalty_tolerance")
            )));
        }
        (Some(PenaltyStrength::Omega(omega)), _)
            if !(omega > 0.0 && (omega * omega).is_normal()) =>
        {
            let message = format!(
                "{penalty} must be positive and finite, also when squared, but it is {omega:e}",
                penalty = option("penalty")
            );
            return Err(Error::option(message));
        }
        (Some(PenaltyStrength::Omega(omega)), _) => Choice { omega, text: shown(omega) },
        (Some(PenaltyStrength::Auto), _) => match options.step.fixed().zip(speed) {
            Some((h, v)) => default(open, method, h, v)?,
            None => {
                return Err(Error::option(format!(
                    "{penalty_auto} chooses omega from the step: add {step}, or give omega, or {penalty_tolerance}",
                    penalty_auto = option("penalty").of("auto"),
                    step = option("step"),
                    penalty_tolerance = option("penalty_tolerance")
                )));
            }
        },
        (None, Some(tolerance)) if !(tolerance > 0.0 && tolerance.is_finite()) => {
            return Err(Error::option(format!(
                "{penalty_tolerance} must be positive and finite, but it is {tolerance}",
                penalty_tolerance = option("penalty_tolerance")
            )));
        }
        (None, Some(tolerance)) => {
            let trial = match options.step.fixed().zip(speed) {
                Some((h, v)) => default(open, method, h, v)?.omega,
                None => TRIAL,
            };
            for_tolerance((problem, open), options, (tolerance, trial), follow)?
        }
        (None, None) => unreachable!("asked for a penalty"),
    };
    // The default respects these limits itself.
    let own = options.penalty != Some(PenaltyStrength::Auto);
    if let Some((h, v)) = options.step.fixed().zip(speed).filter(|_| own) {
        check(choice.omega, h, v, options.allow_unstable, warnings)?;
    }
    Ok(choice)
}

/// ω of the default where nothing moves.
fn fastest(open: &Open, h: f64) -> f64 {
    let (diagonal, _) = open.manifold.stiffness(&open.model.initial);
    let least = diagonal.into_iter().filter(|entry| *entry > 0.0).fold(f64::INFINITY, f64::min);
    FASTEST / (h * if least.is_finite() { least.sqrt() } else { 2.0 })
}

/// min(6/(h√a), 0.2/(h²v)), and half of the linear stability limit 2/(h√λ) of an explicit method.
fn default(open: &Open, method: &Method, h: f64, v: f64) -> Result<Choice, Error> {
    let (fastest, gentle) = (fastest(open, h), GENTLE / (h * h * v));
    let mut choice = match gentle < fastest {
        true => Choice {
            omega: gentle,
            text: format!(
                "{} = 0.2/(h^2 v), v = {} being the largest relative velocity of a pilot run",
                rounded(gentle, 4),
                rounded(v, 4)
            ),
        },
        false => {
            let text = format!(
                "{}, which makes 6/h the frequency of the slowest constraint",
                rounded(fastest, 4)
            );
            Choice { omega: fastest, text }
        }
    };
    if method.scheme.facts().explicit {
        let (_, largest) = open.manifold.stiffness(&open.model.initial);
        let stable = 1.0 / (h * largest.sqrt());
        if stable < choice.omega {
            choice = Choice {
                omega: stable,
                text: format!(
                    "{}: half of what the linear stability of an explicit method allows at this step",
                    rounded(stable, 4)
                ),
            };
        }
    }
    Ok(choice)
}

/// Refuse an ω with which the steps become unstable, and warn of one with which they may.
fn check(
    omega: f64,
    h: f64,
    v: f64,
    allowed: bool,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let ratio = omega * h * h * v;
    let remedy = |limit: f64| {
        format!(
            "omega below {}, or a step below {:.3e}, keeps it below {limit}",
            rounded(limit / (h * h * v), 3),
            (limit / (omega * v)).sqrt()
        )
    };
    if ratio > REFUSED && !allowed {
        return Err(Error::Gain {
            message: format!(
                "the penalty is too stiff for this step: omega h^2 v is {}, v = {} being the largest relative velocity across a constraint in a pilot run, and above {REFUSED} steps become unstable; {}; {allow_unstable} runs it all the same",
                rounded(ratio, 3),
                rounded(v, 4),
                remedy(RISKY),
                allow_unstable = option("allow_unstable")
            ),
        });
    }
    if ratio > RISKY {
        warnings.push(format!(
            "the penalty is stiff for this step: omega h^2 v is {}, and steps become unstable somewhere between 0.13 and {REFUSED}; {}",
            rounded(ratio, 3),
            remedy(RISKY)
        ));
    }
    Ok(())
}

/// v along the beginning of the motion of the constrained model, or of the penalised one if the
/// former cannot be run, for example with redundant constraints. Values below `matters` may be
/// inaccurate.
fn speed(
    (problem, open): (&Problem, &Open),
    options: &RunOptions,
    (h, matters): (f64, f64),
    follow: Follow,
) -> Result<f64, Error> {
    let templated = problem.examined.rows.is_some();
    let steps = if templated { PILOT_STEPS_OF_ROWS } else { PILOT_STEPS };
    let model = &problem.model;
    let end = model.clock(options.until).min(model.t0 + steps * h);
    let until = model.clock(end);
    let pilot = |mut motion: Problem, method: &str, step: StepSize, samples: u64| {
        // Observables may need multipliers, which a pilot run does not have.
        motion.model = motion.model.without_observables();
        let options = RunOptions {
            method: named(method),
            step,
            until,
            samples: Some(samples),
            ..RunOptions::default()
        };
        let mut largest = 0.0f64;
        let followed =
            follow(motion, options, &mut |t, x| largest = largest.max(open.manifold.speed(t, x)))?;
        Ok::<_, Error>((largest, followed.failure.is_none()))
    };
    if templated {
        let mut manifold = open.manifold.rebound(&open.model.parameter_values);
        let v = manifold.speed_within(end - problem.model.t0, &problem.model.initial);
        if v < FAR_BELOW * matters {
            return Ok(v);
        }
        // Forces that keep many constraints in a field cost a multiple of a step that keeps the
        // constraints, provided that the step is short enough to succeed.
        let mut longer = None;
        for halved in 0..=MOST_HALVED {
            let step = StepSize::Fixed(h / f64::from(1 << halved));
            let Ok((v, true)) = pilot(problem.clone(), "rattle", step, 2) else { continue };
            if longer.is_some_and(|longer: f64| (longer - v).abs() <= AGREEMENT * v) {
                return Ok(v);
            }
            longer = Some(v);
        }
    }
    // Steps may be long compared with the peaks of a speed.
    let accurate = |motion: Problem, method: &str| {
        pilot(motion, method, StepSize::adaptive(PILOT_TOLERANCE), steps as u64 + 1)
    };
    // This ω is not the run's: if it moves the start too far, the start stays.
    let free = |slow| Ok::<Problem, Error>(open.with_omega(problem, fastest(open, h), slow)?.0);
    // A motion that cannot be followed to the end still gives v up to there.
    let (largest, _) = accurate(problem.clone(), "corrected:dop853")
        .or_else(|_| accurate(free(true).or_else(|_| free(false))?, "dop853"))?;
    Ok(largest)
}

/// A method of the registry.
fn named(method: &str) -> Method {
    method.parse().expect("a registered method")
}

/// The ω for which the error at the end is `tolerance`: C/ω² with C = (4/3) ω₀² |q_{2ω₀} − q_{ω₀}|,
/// from two accurate runs.
fn for_tolerance(
    (problem, open): (&Problem, &Open),
    options: &RunOptions,
    (tolerance, trial): (f64, f64),
    follow: Follow,
) -> Result<Choice, Error> {
    let end = |omega: f64| -> Result<Vec<f64>, Error> {
        let (mut penalised, _) =
            open.with_omega(problem, omega, options.slow_manifold.unwrap_or(true))?;
        penalised.model = penalised.model.without_observables();
        let degrees = penalised.model.degrees();
        let accurate = RunOptions {
            method: named("dop853"),
            until: options.until,
            samples: Some(2),
            ..RunOptions::default()
        };
        let Followed { mut x, failure } = follow(penalised, accurate, &mut |_, _| {})?;
        if let Some(failure) = failure {
            return Err(Error::option(format!(
                "{penalty_tolerance}: the run with omega = {omega} fails: {failure}",
                penalty_tolerance = option("penalty_tolerance")
            )));
        }
        x.truncate(degrees);
        Ok(x)
    };
    let (one, two) = (end(trial)?, end(2.0 * trial)?);
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let distance = norm(&one.iter().zip(&two).map(|(a, b)| a - b).collect::<Vec<f64>>());
    // No ω gives errors below the rounding of the positions, and an error of the positions' own
    // size is not a useful request.
    let size = norm(&one).max(norm(&problem.model.initial[..one.len()]));
    if !(f64::EPSILON * size..=size).contains(&tolerance) {
        return Err(Error::option(format!(
            "{penalty_tolerance} is {tolerance:e}, and the positions are {size:.1e} from the origin: ask for an error from {:.1e}, their rounding, to {size:.1e}",
            f64::EPSILON * size,
            penalty_tolerance = option("penalty_tolerance")
        )));
    }
    let constant = 4.0 / 3.0 * trial * trial * distance;
    let omega = (constant / tolerance).sqrt();
    if !(omega > 0.0 && omega.is_finite()) {
        return Err(Error::option(format!(
            "{penalty_tolerance}: the positions at the end do not depend on omega, so no omega follows; give {penalty}",
            penalty_tolerance = option("penalty_tolerance"),
            penalty = option("penalty")
        )));
    }
    let text = format!(
        "{} for an error of {tolerance:e} in the positions at the end, where runs with {trial:.4} and {:.4} differ by {distance:.3e}",
        rounded(omega, 4),
        2.0 * trial
    );
    Ok(Choice { omega, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Settings;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    /// Rods that turn about a common pivot, enough for the model to be templated.
    const RODS: &str = "size n = 2000\n\
        coordinate q[i in 1..n] : R^2 = (1, 0)\nmomentum p of q = (0, 1)\n\
        hamiltonian sum(i in 1..n : dot(p[i], p[i])/2)\n\
        constraint rod[i in 1..n] : dot(q[i], q[i]) = 1";

    /// Pilot runs, each with its method and step.
    static PILOTS: Mutex<Vec<(String, f64)>> = Mutex::new(Vec::new());

    /// A motion that cannot be followed with steps above 0.03.
    fn follow(
        problem: Problem,
        options: RunOptions,
        look: &mut (dyn FnMut(f64, &[f64]) + Send),
    ) -> Result<Followed, Error> {
        let h = options.step.fixed().expect("an adaptive pilot run is not needed");
        PILOTS.lock().unwrap().push((options.method.to_string(), h));
        look(problem.model.t0, &problem.model.initial);
        let failure = (h > 0.03).then(|| "its equations have no solution".to_string());
        Ok(Followed { x: problem.model.initial.clone(), failure })
    }

    #[test]
    fn pilot_runs_take_shorter_steps_where_long_ones_fail() {
        let problem = Problem::from_text("rods", RODS, &BTreeMap::new(), &Settings::default())
            .expect("a model");
        let open = Open::new(&problem).unwrap_or_else(|error| panic!("{error}"));
        let of = |matters: f64| {
            let v = speed((&problem, &open), &RunOptions::default(), (0.1, matters), follow);
            v.unwrap_or_else(|error| panic!("{error}"))
        };
        let v = of(0.0);
        // v² = ½|q̇ᵀg''q̇| with g'' = 2: the speed at the rod's end.
        assert!((v - 1.0).abs() < 1e-6, "{v}");
        let pilots: Vec<(String, f64)> =
            [0.1, 0.05, 0.025, 0.0125].map(|h| ("rattle".to_string(), h)).to_vec();
        assert_eq!(*PILOTS.lock().unwrap(), pilots);
        // If twice as much would change nothing, the start suffices: in the 2 of the pilot's 20
        // steps the rod's own force adds 2 across it. Close to that limit a pilot run is more
        // accurate.
        assert!((of(4.5) - 5f64.sqrt()).abs() < 1e-6);
        assert_eq!(PILOTS.lock().unwrap().len(), pilots.len());
        of(4.4);
        assert!(PILOTS.lock().unwrap().len() > pilots.len());
    }

    #[test]
    fn what_the_forces_of_the_start_make_of_v_is_told_by_it() {
        // From rest a horizontal rod falls by g t, and its point is as fast as that.
        let text = "size n = 2000\ncoordinate q[i in 1..n] : R^2 = (1, 0)\nmomentum p of q\n\
            hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + 3*q[i].y)\nconstraint rod[i in 1..n] : dot(q[i], q[i]) = 1";
        let problem = Problem::from_text("rods", text, &BTreeMap::new(), &Settings::default())
            .expect("a model");
        let mut open = Open::new(&problem).unwrap_or_else(|error| panic!("{error}"));
        let v = open.manifold.speed_within(0.25, &problem.model.initial);
        assert!((v - 0.75).abs() < 1e-6, "{v}");
    }
}
