//! Outcome of a run: its summary, and warnings.

use super::Simulation;
use crate::events::EventTable;
use crate::recording::variables;
use crate::summary::{Drifts, FinalState, RunCost, RunPenalty, Stability, Summary};
use holonome_integrate::method::{Method, MethodTreatment, Scheme};
use holonome_integrate::plan::Plan;
use holonome_integrate::state::{
    FailedClaim, Passages, Singularity, SingularityKind, StepState, Stiffness,
};
use holonome_integrate::system::System;
use holonome_integrate::treatment::correction::largest_innovation;
use holonome_model::treatment::InvariantGroup;
use std::path::PathBuf;

/// Factor by which an innovation may exceed the expected one before it is more than the error of a
/// step.
pub(crate) const MANY_TIMES: f64 = 10.0;

impl Simulation {
    /// Warnings about the claims that failed on the way to `state`, one each.
    pub(crate) fn claim_warnings(&self, state: &StepState) -> Vec<String> {
        claim_warnings(state, &self.groups, &self.plan, OF_MODELS)
    }

    /// Drift of every invariant on the way to `state`.
    pub(crate) fn drifts(&self, state: &StepState) -> Drifts {
        let varying = &self.problem.examined.varying;
        let of_run = (state, self.plan.span());
        Drifts {
            all: Summary::drift_of(&self.groups, varying, &self.initial, of_run),
            hamiltonian: self.problem.model.is_hamiltonian(),
        }
    }

    /// The events that the run has recorded.
    fn event_tables(&self) -> Vec<EventTable> {
        let log = &self.trajectory.state.event_log;
        EventTable::all(&self.problem.model, log, &self.recorded)
    }

    pub(super) fn summary(
        &self,
        out: Option<PathBuf>,
        wall_seconds: f64,
        interrupted: bool,
    ) -> Summary {
        let gain = self.plan.gain.is_some();
        let mut x = self.trajectory.state.x.clone();
        self.problem.model.turn(&mut x);
        Summary {
            model: self.problem.name.clone(),
            method: self.options.method.to_string(),
            t: self.time(),
            steps: self.trajectory.state.step,
            state: FinalState::new(variables(&self.problem.model), x),
            state_size: None,
            heated: self.problem.model.heat_bath.is_some(),
            drift: self.drifts(&self.trajectory.state),
            lost: Vec::new(),
            measures: self
                .measuring
                .as_ref()
                .map_or(Vec::new(), |measuring| measuring.tables(&self.trajectory.state.averages)),
            events: self.event_tables(),
            ended_by: None,
            cost: RunCost::new(&self.trajectory.state.cost, wall_seconds),
            units: self.recorded.units.clone(),
            out,
            renamed: Vec::new(),
            gain: self.gain_text.clone(),
            trial: self.options.trial.clone(),
            penalty: self.penalty.as_ref().map(|penalty| RunPenalty {
                omega: penalty.omega,
                slow_manifold: penalty.moved.is_some(),
            }),
            stability: gain.then(|| Stability {
                max: self.trajectory.state.stability.max,
                mean: self.trajectory.state.stability.mean(),
            }),
            error: None,
            interrupted,
            warnings: self.all_warnings(),
        }
    }
}

/// Remedy for a claim of a model that fails.
pub(crate) const OF_MODELS: &str = "correct the formula, or record it with `observe` instead";

/// Warnings about the claims that failed on the way to `state`, one each, with the `remedy`.
fn claim_warnings(
    state: &StepState,
    groups: &[InvariantGroup],
    plan: &Plan,
    remedy: &str,
) -> Vec<String> {
    let held = plan.method.treatment != MethodTreatment::Plain;
    let warning = |claim: &FailedClaim| {
        let FailedClaim { group, t, rate, free_from } = claim;
        let (t, free_from) = (plan.clock(*t), plan.clock(*free_from));
        let until = if held {
            format!("; from t = {free_from} on nothing holds it")
        } else {
            String::new()
        };
        format!(
            "integral '{}' is not constant along the motion: at t = {t} its rate is {rate:.1e} of the terms that should cancel in it{until}; {remedy}",
            groups[*group].name
        )
    };
    state.failed_claims.iter().map(warning).collect()
}

/// Warning about steps that stability has limited.
fn stiffness_warning(state: &StepState, plan: &Plan) -> Option<String> {
    let Stiffness { since, ratio, .. } = state.stiffness;
    let (since, method) = (plan.clock(since), plan.method);
    let stiff = Scheme::named("radau5").filter(|_| ratio > 0.0)?;
    let better = Method { treatment: method.treatment, ..Method::plain(stiff) };
    Some(format!(
        "from t = {since} on stability limits the steps of `{}`, not accuracy: the field is stiff; `{better}` takes the steps that its accuracy allows",
        method.scheme.name,
    ))
}

/// Warning about motion along a surface where a condition of the field changes to and fro.
fn sliding_warning(state: &StepState, plan: &Plan) -> Option<String> {
    let slides = state.events.iter().filter(|memory| memory.slides && memory.has_reset());
    let since = slides.map(|memory| memory.last).min_by(f64::total_cmp)?;
    Some(format!(
        "from t = {} on the motion slides along a surface where a condition, min, max or abs of the model changes, and steps are tiny there: a friction that holds is better written as a smooth one, as tanh(v/0.001) for sign(v)",
        plan.clock(since)
    ))
}

/// Warning about a configuration in which constraints do not determine their forces, or nearly so.
fn singular_warning(state: &StepState, system: &dyn System, plan: &Plan) -> Option<String> {
    let Singularity { t, row, kind, pivot, passed } =
        Some(state.singularity).filter(Singularity::is_near)?;
    let (t, row) = (plan.clock(t), system.invariants().row_name(row));
    let what = match (kind, pivot == 0.0) {
        (SingularityKind::Dependent, true) => {
            format!("the constraints are dependent at t = {t}, where {row} says what others say")
        }
        (SingularityKind::Dependent, false) => format!(
            "the constraints are nearly dependent at t = {t}, where {row} says almost what others say (a pivot of {pivot:.1e}, where 1 is independent)"
        ),
        (SingularityKind::Vanishing, true) => format!("the gradient of {row} vanishes at t = {t}"),
        (SingularityKind::Vanishing, false) => format!(
            "the gradient of {row} nearly vanishes at t = {t}, where it is {:.1e} of what it was",
            pivot.sqrt()
        ),
        (SingularityKind::Cancelling, true) => format!(
            "the constraints do not determine their forces at t = {t}, where {} or nearly so",
            kind.of(row)
        ),
        (SingularityKind::Cancelling, false) => format!(
            "the forces of the constraints lose their digits towards t = {t}: G M⁻¹Gᵀ of {row} is {pivot:.1e} of the terms that cancel in it"
        ),
    };
    if passed {
        return Some(format!("{what}: {}", through(state, plan)));
    }
    let why = match (kind, pivot == 0.0) {
        (SingularityKind::Cancelling, false) => {
            "the kinetic energy is indefinite, and the gradient nearly null in it"
        }
        (_, true) => {
            "a step goes through a configuration from which the motion may go on in several ways, or past it within less than it resolves, and an error or rounding decided which way"
        }
        (_, false) => {
            "forces are large there, and which way the motion goes on may be decided by rounding"
        }
    };
    Some(format!("{what}: {why}; compare a run with a tenth of the tolerance or step"))
}

/// Words on a motion through singular configurations.
fn through(state: &StepState, plan: &Plan) -> String {
    let Passages { count, last } = state.passages;
    let others = match count {
        0 | 1 => String::new(),
        count => format!(" {count} times, the last at t = {},", plan.clock(last)),
    };
    format!(
        "the motion went through a singular configuration{others} and on along the branch of its momentum; what perturbs it there may send it along another one"
    )
}

/// Warnings about events that a run of `plan` over `system` met on the way to `state` and that
/// its numbers do not show; `remedy` is that for claims that failed.
pub(crate) fn motion_warnings(
    state: &StepState,
    system: &dyn System,
    groups: &[InvariantGroup],
    plan: &Plan,
    remedy: &str,
) -> Vec<String> {
    let StepState { innovation, innovation_at, .. } = state;
    let innovation_at = plan.clock(*innovation_at);
    let mut warnings = claim_warnings(state, groups, plan, remedy);
    warnings.extend(singular_warning(state, system, plan));
    warnings.extend(stiffness_warning(state, plan));
    warnings.extend(sliding_warning(state, plan));
    let expected = largest_innovation(system.vectors().count());
    if *innovation > MANY_TIMES * expected {
        warnings.push(format!(
                "a correction was {:.0} times larger than the step's error explains, at t = {innovation_at}: H or an integral had changed by more than the step can have made; a smaller step or tolerance shows whether it is constant",
                innovation / expected
            ));
    }
    warnings
}
