//! Reasons for which a run ended early. The state stays at the last good step.

use crate::plan::Plan;
use crate::state::SingularityKind;
use holonome_words::option;

/// Reason why a run failed; `E` is the observer's error.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E> {
    /// The state, its field or an invariant is not a finite number.
    #[error("{quantity} is not finite any more at t = {t} (step {step})")]
    NonFinite {
        /// End of the step at which the failure was found.
        t: f64,
        /// Number of that step.
        step: u64,
        /// Name of the quantity: `the state`, `the field`, or the invariant's name.
        quantity: String,
    },
    /// The error estimate asks for a step that is too short to move t.
    #[error("the step collapsed to {h:e} at t = {t} ({rejections} rejections there): {culprit}")]
    StepCollapsed {
        /// Time.
        t: f64,
        /// Step that was asked for.
        h: f64,
        /// Number of rejected attempts at this point.
        rejections: u32,
        /// Quantity that needs so short a step.
        culprit: Culprit,
    },
    /// The plan's limit on steps is reached.
    #[error(
        "t = {t} is reached after {limit} steps, which is the limit; {}", more_steps(.stiff_since)
    )]
    TooManySteps {
        /// Time that the run reached.
        t: f64,
        /// The limit.
        limit: u64,
        /// Time from which on stability has limited the steps, not accuracy, if it has.
        stiff_since: Option<f64>,
    },
    /// The Newton iteration of a projection stopped before it reached its tolerance.
    #[error(
        "the projection at t = {t} did not converge: {constraint} is still {residual:.1e} away after {iterations} iterations; take a shorter step or a smaller tolerance"
    )]
    ProjectionNotConverged {
        /// End of the step.
        t: f64,
        /// Newton iterations done.
        iterations: u32,
        /// Largest |ΔF| over the length of its gradient: a distance in state space.
        residual: f64,
        /// Name of the group with the largest residual.
        constraint: String,
    },
    /// The Newton iteration for the equations of a step stopped before it reached its tolerance.
    #[error(
        "the step from t = {t} has no solution near it: {constraint} is still {residual:.1e} away, relative to its terms, after {iterations} iterations; a shorter step helps where the motion is fast or the forces of constraint are large"
    )]
    NewtonNotConverged {
        /// Start of the step.
        t: f64,
        /// Newton iterations done.
        iterations: u32,
        /// Largest residual, relative to the scale of its terms.
        residual: f64,
        /// Name of the equation of that residual: a constraint, or a component of a stage.
        constraint: String,
    },
    /// The hidden constraints stopped determining their multipliers.
    #[error(
        "the constraints became degenerate at t = {t}: the matrix D of the rates of the hidden constraints along the fibres is singular or has changed sign (determinant {determinant:e}), so their multipliers are not determined; a much shorter step shows whether the step or the constraints are the reason"
    )]
    Degenerate {
        /// Start of the step.
        t: f64,
        /// The determinant of D.
        determinant: f64,
    },
    /// The linear equations of a linearly implicit step came near to being singular.
    #[error(
        "the step from t = {t} is too long for a potential that bends downwards there: the smallest eigenvalue of I + beta h^2 M^-1 V_qq is {eigenvalue:.3} or less, and the method fails as it nears 0; take a shorter step, a smaller penalty where there is one, or a smaller {beta}", beta = option("beta")
    )]
    Indefinite {
        /// Start of the step.
        t: f64,
        /// The eigenvalue, or a bound from above.
        eigenvalue: f64,
    },
    /// A step was handed over to a method that fails.
    #[error(
        "bodies come near to each other at t = {t}, in a step that is handed over to gauss16, and it fails: {reason}; bodies that collide need a softened attraction, or an event that ends the run (`stop`)"
    )]
    HandedOver {
        /// Time.
        t: f64,
        /// Reason, in words.
        reason: String,
    },
    /// A correction does not bring a constraint nearer.
    #[error(
        "the correction at t = {t} does not bring {constraint} nearer: it is still {residual:.1e} away; take a shorter step or a smaller tolerance, or look there for constraints that depend on each other or contradict the motion"
    )]
    CorrectionFails {
        /// End of the step.
        t: f64,
        /// |ΔF| over the length of its gradient: a distance in state space.
        residual: f64,
        /// Name of the constraint.
        constraint: String,
    },
    /// A constraint that followed from the others does not any more.
    #[error(
        "{constraint} followed from the other constraints near the start and was left out, but is off by {residual:.1e} at t = {t}: the mechanism has gone through a configuration in which the others are dependent, and folded to another branch; end the run before, or leave out one of the others"
    )]
    BranchLost {
        /// End of the step.
        t: f64,
        /// |ΔF|.
        residual: f64,
        /// Name of the constraint.
        constraint: String,
    },
    /// The motion crosses a switching surface to and fro.
    #[error(
        "at t = {t} the motion slides along a surface where a condition, min, max, abs or sign of the model changes, and crosses it to and fro in steps of {h:.1e}, which reach no end: write a friction that holds as a smooth one, tanh(v/0.001) for sign(v), or end the run there by an event (`stop`)"
    )]
    Slides {
        /// Time.
        t: f64,
        /// Length of the steps.
        h: f64,
    },
    /// A quantity that a treatment holds is not constant along the field.
    #[error(
        "'{claim}' is not constant along the motion at t = {t}: its rate is {rate:.1e} of the terms that cancel in it, so it cannot be held; correct it or leave it out, or use a `plain` method"
    )]
    ClaimFails {
        /// Time at which it was found.
        t: f64,
        /// Name of the claim.
        claim: String,
        /// Rate |DF X| over the sum of the absolute terms.
        rate: f64,
    },
    /// The constraints do not determine their forces.
    #[error(
        "the constraints do not determine their forces at t = {t}, where {} (a pivot of {pivot:.1e}, where 1 is regular); a start or parameters that keep away from that configuration help", kind.of(constraint)
    )]
    Dependent {
        /// Time at which it was found.
        t: f64,
        /// Name of one of the constraints.
        constraint: String,
        /// Pivot of the constraint; see [`Singularity`](crate::state::Singularity).
        pivot: f64,
        /// Reason.
        kind: SingularityKind,
    },
    /// The motion goes through a singular configuration.
    #[error(
        "the motion goes through a singular configuration at t = {t}, where {}: from there it may go on in several ways; {} keeps the branch that the momentum takes, and a start or parameters that keep away from there avoid it", kind.of(constraint), option("singular").of("continue")
    )]
    Singular {
        /// Time at which it does.
        t: f64,
        /// Name of one of the constraints.
        constraint: String,
        /// Reason.
        kind: SingularityKind,
    },
    /// Resets follow each other without end.
    #[error(
        "event '{event}' follows on itself faster and faster: at t = {t} it accumulates, with a limit at t = {limit}, beyond which no motion by impacts goes; end the run before (`stop`), or let what comes to rest stay by a constraint or a force"
    )]
    Accumulating {
        /// Time of the last one.
        t: f64,
        /// Name of the event.
        event: String,
        /// Limit of their times.
        limit: f64,
    },
    /// A reset left the constraint set.
    #[error(
        "event '{event}' at t = {t} sets a state off the constraint set: {constraint} is {residual:.1e} there; write a reset that meets it, or an `impact`, which does"
    )]
    OffTheSet {
        /// Time of the event.
        t: f64,
        /// Name of the event.
        event: String,
        /// Name of the group with a residual.
        constraint: String,
        /// The residual.
        residual: f64,
    },
    /// The observer failed, to store a sample for instance.
    #[error("{0}")]
    Observer(E),
}

/// Reason why a step collapsed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Culprit {
    /// A constraint that nearly follows from others, so that their forces are not bounded.
    #[error("{}, or nearly so (a pivot of {pivot:.1e}, where 1 is regular)", kind.of(name))]
    Constraint {
        /// The constraint's name.
        name: String,
        /// Pivot of the constraint.
        pivot: f64,
        /// Reason.
        kind: SingularityKind,
    },
    /// The vector of the state with the largest error, which has always been 0.
    #[error("{name} has always been 0 there, so that no error of it is small; {atol} gives it a scale", atol = option("atol"))]
    New {
        /// Name of the vector.
        name: String,
    },
    /// The vector of the state with the largest error.
    #[error("the error of {name} is the largest, and the field may be singular there")]
    Vector {
        /// Name of the vector.
        name: String,
    },
}

/// Remedy for a run that reaches the limit on its steps.
fn more_steps(stiff_since: &Option<f64>) -> String {
    let max_steps = option("max_steps");
    match stiff_since {
        Some(t) => format!(
            "from t = {t} on stability limits them, not accuracy: the field is stiff, and `radau5` takes longer ones; or raise the limit with {max_steps}"
        ),
        None => format!("raise it with {max_steps}, or loosen the tolerance"),
    }
}

impl<E> Failure<E> {
    /// The variant's name in lower case, for machine-readable output.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::NonFinite { .. } => "non-finite",
            Failure::StepCollapsed { .. } => "step-collapsed",
            Failure::TooManySteps { .. } => "too-many-steps",
            Failure::ProjectionNotConverged { .. } => "projection-not-converged",
            Failure::NewtonNotConverged { .. } => "newton-not-converged",
            Failure::Degenerate { .. } => "degenerate-constraints",
            Failure::Indefinite { .. } => "indefinite-matrix",
            Failure::HandedOver { .. } => "handed-over-step-fails",
            Failure::CorrectionFails { .. } => "correction-fails",
            Failure::BranchLost { .. } => "branch-lost",
            Failure::Slides { .. } => "slides",
            Failure::ClaimFails { .. } => "claim-fails",
            Failure::Dependent { .. } => "dependent-constraints",
            Failure::Singular { .. } => "singular-configuration",
            Failure::Accumulating { .. } => "accumulating-events",
            Failure::OffTheSet { .. } => "off-the-constraint-set",
            Failure::Observer(_) => "observer",
        }
    }

    /// Time at which the run failed; `None` for a failure of the observer.
    pub fn t(&self) -> Option<f64> {
        match *self {
            Failure::NonFinite { t, .. }
            | Failure::StepCollapsed { t, .. }
            | Failure::TooManySteps { t, .. }
            | Failure::NewtonNotConverged { t, .. }
            | Failure::Degenerate { t, .. }
            | Failure::Indefinite { t, .. }
            | Failure::HandedOver { t, .. }
            | Failure::CorrectionFails { t, .. }
            | Failure::BranchLost { t, .. }
            | Failure::Slides { t, .. }
            | Failure::ClaimFails { t, .. }
            | Failure::Dependent { t, .. }
            | Failure::Singular { t, .. }
            | Failure::Accumulating { t, .. }
            | Failure::OffTheSet { t, .. }
            | Failure::ProjectionNotConverged { t, .. } => Some(t),
            Failure::Observer(_) => None,
        }
    }

    /// The failure with its time as readers count it.
    pub(crate) fn by_the_clock_of(mut self, plan: &Plan) -> Failure<E> {
        match &mut self {
            Failure::TooManySteps { t, stiff_since, .. } => {
                *t = plan.clock(*t);
                *stiff_since = stiff_since.map(|since| plan.clock(since));
            }
            Failure::Accumulating { t, limit, .. } => {
                (*t, *limit) = (plan.clock(*t), plan.clock(*limit));
            }
            Failure::NonFinite { t, .. }
            | Failure::StepCollapsed { t, .. }
            | Failure::NewtonNotConverged { t, .. }
            | Failure::Degenerate { t, .. }
            | Failure::Indefinite { t, .. }
            | Failure::HandedOver { t, .. }
            | Failure::CorrectionFails { t, .. }
            | Failure::BranchLost { t, .. }
            | Failure::Slides { t, .. }
            | Failure::ClaimFails { t, .. }
            | Failure::Dependent { t, .. }
            | Failure::Singular { t, .. }
            | Failure::OffTheSet { t, .. }
            | Failure::ProjectionNotConverged { t, .. } => *t = plan.clock(*t),
            Failure::Observer(_) => {}
        }
        self
    }
}
