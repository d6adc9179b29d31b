//! Feedback term of a run: its field compiled with its gains, and the check of its stability.

use crate::error::Error;
use crate::gain;
use crate::kernels::{CompiledSystem, Parametric, StateVectors};
use crate::options::{Gains, RunOptions};
use crate::pilot;
use crate::policy::LARGEST_FEEDBACK;
use holonome_integrate::feedback_term::metric;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::pilot::{pilot, pilot_rate};
use holonome_integrate::plan::Gain;
use holonome_integrate::plan::{Plan, Stepping};
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use holonome_linear::rank::positive_definite;
use holonome_model::graph::Node;
use holonome_model::treatment::feedback::{self, Potential, Transport};
use holonome_model::treatment::structure::evaluate;
use holonome_model::treatment::{Field, InvariantGroup};
use holonome_words::option;
use std::sync::Arc;

/// Mean h λmax/r from which on a gain is reported as near its limit.
const NEAR_LIMIT: f64 = 0.8;

/// A field with its feedback term.
pub(crate) struct FeedbackSystem {
    /// The compiled system.
    pub system: CompiledSystem,
    /// Gain for the monitor, if any.
    pub gain: Option<Gain>,
    /// The gain in words.
    pub text: String,
    /// The field with its term; `None` if the term is not a formula.
    pub field: Option<Arc<Field>>,
    /// Parameters: the model's, F₀ of the invariants that are not constraints, the gains. In the
    /// Gauss–Newton form the gains are κ and the weights of the state's vectors.
    pub parameters: Vec<f64>,
}

/// System of the feedback field over the field `base`, which has invariants in these groups; `base`
/// is `None` if the field is not unrolled.
pub(crate) fn feedback_system(
    (base, groups, vectors): (Option<&Arc<Field>>, &[InvariantGroup], &Arc<StateVectors>),
    plain: &CompiledSystem,
    plan: &Plan,
    state: &StepState,
    parameters: &[f64],
    options: &RunOptions,
    formulas: Option<(&Potential, &Transport)>,
) -> Result<FeedbackSystem, Error> {
    let gains = options.gain.clone().unwrap_or(Gains::Auto);
    // Order: the model's parameters, F₀ of the invariants that are not constraints, the gains.
    let targets = &state.target[plain.invariants().constraints..];
    let all = |gains: &[f64]| [parameters, targets, gains].concat();
    if gains == Gains::Auto {
        let mut short = plan.clone();
        short.method.treatment = MethodTreatment::Plain;
        // A field at rest needs no feedback.
        let rate = pilot_rate(&short, plain, state).unwrap_or(0.0);
        let weights = metric(plain, plan.t0, &state.x, rate);
        let (gain, text) = (Some(Gain::Rate(rate)), format!("auto: kappa={}", readable(rate)));
        let parameters = all(&[&[rate][..], &weights].concat());
        return Ok(match base.filter(|base| base.invariants.len() <= LARGEST_FEEDBACK) {
            Some(base) => {
                let (treated, _) = feedback::gauss_newton(base, &vectors.vector_of());
                with_formula((base, vectors), treated, parameters, gain, text)
            }
            None => {
                let first = parameters.len() - targets.len() - 1 - weights.len();
                let system = plain.rebound(&parameters).with_pull(vectors, first, &parameters);
                FeedbackSystem { system, gain, text, field: None, parameters }
            }
        });
    }
    let Some(base) = base else {
        let gains = gain::by_group(&gains, groups)?;
        let (text, count) = (gain::describe(&gains, groups), plain.invariants().count);
        let rows = Gain::Diagonal(gain::by_row(&gains, groups, count));
        let all = all(&gains);
        let system = plain.rebound(&all).with_gains(groups, parameters.len(), &all);
        return Ok(FeedbackSystem { system, gain: Some(rows), text, field: None, parameters: all });
    };
    let LiteralFeedback { treated, inserted, gain, text } =
        literal_feedback(base, &gains, formulas, (&state.x, parameters))?;
    Ok(with_formula((base, vectors), treated, all(&inserted), gain, text))
}

/// Field with a literal feedback term, and its gains.
struct LiteralFeedback {
    treated: Field,
    /// Parameters of the field after the targets.
    inserted: Vec<f64>,
    gain: Option<Gain>,
    text: String,
}

/// Literal feedback with these gains, for a start at x with these parameters.
fn literal_feedback(
    base: &Arc<Field>,
    gains: &Gains,
    formulas: Option<(&Potential, &Transport)>,
    (x, parameters): (&[f64], &[f64]),
) -> Result<LiteralFeedback, Error> {
    let (treated, inserted, gain, text) = match gains {
        Gains::Formula => {
            let Some((potential, transport)) = formulas else {
                return Err(Error::option(
                    "this run's feedback was given as formulas by a program: resume it from there",
                ));
            };
            let (treated, inputs) = feedback::literal(base, potential, transport);
            refuse_indefinite(base, transport, x, parameters)?;
            // Gains that a formula's potential may still read are those of the papers, 1.
            let inserted = vec![1.0; inputs.gain_count];
            (treated, inserted, None, "formulas".to_string())
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
            let (treated, _) = feedback::literal(
                base,
                &feedback::Potential::Matrix,
                &feedback::Transport::Identity,
            );
            (treated, k.clone(), Some(Gain::Dense(k.clone())), "a matrix".to_string())
        }
        _ => {
            let gains = gain::by_group(gains, &base.groups)?;
            let (treated, _) = feedback::literal(
                base,
                &feedback::Potential::Gains,
                &feedback::Transport::Identity,
            );
            let rows = gain::by_row(&gains, &base.groups, base.invariants.len());
            let text = gain::describe(&gains, &base.groups);
            (treated, gains, Some(Gain::Diagonal(rows)), text)
        }
    };
    Ok(LiteralFeedback { treated, inserted, gain, text })
}

/// System of a field that includes its feedback term.
fn with_formula(
    (base, vectors): (&Arc<Field>, &Arc<StateVectors>),
    mut treated: Field,
    parameters: Vec<f64>,
    gain: Option<Gain>,
    text: String,
) -> FeedbackSystem {
    debug_assert_eq!(treated.parameters, parameters.len());
    // Invariants and Jacobian stay those of the untreated field.
    treated.invariants.clone_from(&base.invariants);
    let treated = Arc::new(treated);
    let system = CompiledSystem::new(&treated, vectors, &parameters, true, None)
        .with_untreated(base, &parameters);
    FeedbackSystem { system, gain, text, field: Some(treated), parameters }
}

/// Refuse an L(x) that does not make V decay: its symmetric part has to be positive definite.
fn refuse_indefinite(
    base: &Field,
    transport: &Transport,
    x: &[f64],
    parameters: &[f64],
) -> Result<(), Error> {
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

/// Refuse a gain whose mean h·λmax/r over a pilot run exceeds 1; warn if it comes near 1, there or
/// later in the motion.
pub(crate) fn refuse_unstable(
    plan: &Plan,
    system: &dyn System,
    plain: &dyn System,
    state: &StepState,
    options: &RunOptions,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let (Stepping::Fixed(fixed), Some(gain)) = (&plan.stepping, &plan.gain) else { return Ok(()) };
    if matches!(gain, Gain::Rate(_)) {
        // One eigenvalue everywhere, and a rate chosen below its limit.
        return Ok(());
    }
    let pilot = pilot(plan, system, state);
    let scheme = plan.method.scheme;
    // Along the motion without feedback: an unstable pilot run sees only its own explosion.
    let outlook = pilot::outlook(plan, gain, fixed.h, plain, &state.x);
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
                    "the gains are too large for this step: h*lambda_max is {} times the stability limit r = {:.3} of `{}` (mean over {} steps; maximum {}); {remedy}; {allow_unstable} runs it all the same",
                    ratio(pilot.mean),
                    scheme.real_stability_interval().unwrap_or_default(),
                    scheme.name,
                    pilot.steps,
                    ratio(pilot.max),
                    allow_unstable = option("allow_unstable")
                ),
            });
        }
        warnings.push(format!(
            "the gains are unstable with this step: h*lambda_max/r is {} in the mean; run because of {allow_unstable}",
            ratio(pilot.mean),
            allow_unstable = option("allow_unstable")
        ));
        return Ok(());
    }
    let (mut mean, mut max, mut over) = (pilot.mean, pilot.max, format!("{} steps", pilot.steps));
    if outlook.mean > mean {
        (mean, max, over) =
            (outlook.mean, outlook.max, format!("the motion up to t = {:.4}", outlook.until));
    }
    if mean > NEAR_LIMIT {
        warnings.push(format!("the gains are near the stability limit or beyond: h*lambda_max/r is {} in the mean and {} at most over {over}; {remedy}", ratio(mean), ratio(max)));
    }
    Ok(())
}

/// h·λmax/r for a message: three decimals, or a power of ten if it has exploded.
fn ratio(value: f64) -> String {
    if value < 1e4 { format!("{value:.3}") } else { format!("{value:.1e}") }
}

/// Number with as many digits in any unit.
fn readable(rate: f64) -> String {
    if rate == 0.0 || (1e-3..1e6).contains(&rate) {
        format!("{rate:.6}")
    } else {
        format!("{rate:.6e}")
    }
}
