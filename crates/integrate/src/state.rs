//! State of a run at a step boundary. Stored and read back, the run continues with the same bits.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::averages::Averages;
pub use crate::controller::pi::ControllerMemory;
pub use crate::cost::Cost;
use crate::events::{EventLog, EventMemory, Landings};
use crate::exact;
use crate::method::MethodTreatment;
use crate::plan::{Plan, Stepping};
use crate::scales::Scales;
use crate::system::System;
use crate::terms::Loss;
use crate::treatment::Treatment;

/// The state of a run between two steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepState {
    /// Number of accepted steps.
    pub step: u64,
    /// Time; in a fixed-step run t0 + step·h.
    #[serde(with = "exact::number")]
    pub t: f64,
    /// Time since the start of a run with adaptive steps, of which t is the sum with t0: steps may
    /// be far shorter than the rounding of t. NaN if an older version stored the state.
    #[serde(default = "unknown", with = "exact::number")]
    pub elapsed: f64,
    /// The state x, of length n.
    #[serde(with = "exact::list")]
    pub x: Vec<f64>,
    /// The field at (t, x), if already known.
    pub first_stage: FirstStage,
    /// State of the step-size controller.
    pub controller: ControllerMemory,
    /// Scales of the state's vectors.
    pub scales: Scales,
    /// Targets F₀ of F; 0 for constraint rows.
    #[serde(with = "exact::shared")]
    pub target: Arc<Vec<f64>>,
    /// F at (t, x).
    #[serde(with = "exact::list")]
    pub values: Vec<f64>,
    /// Deviation from the target of each group of invariants.
    pub drift: Vec<Drift>,
    /// Scale of the terms that cancel in each group, the largest over the outputs (see
    /// [`crate::terms`]).
    #[serde(default, with = "exact::list")]
    pub terms: Vec<f64>,
    /// Loss of H and of integrals where their terms are measured (see [`crate::terms`]), one for
    /// each group.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// Cost of the run.
    pub cost: Cost,
    /// Largest innovation of a correction: the number of standard deviations of a step's error by
    /// which H and the integrals were off after it.
    #[serde(with = "exact::number")]
    pub innovation: f64,
    /// Time at which that innovation was reached.
    #[serde(with = "exact::number")]
    pub innovation_at: f64,
    /// Largest disturbance of a step by its treatment after which claims were judged within the
    /// step.
    #[serde(default, with = "exact::number")]
    pub judged: f64,
    /// State at which the constraints were nearest to being dependent.
    #[serde(default)]
    pub singularity: Singularity,
    /// Singular configurations through which the motion has gone.
    #[serde(default)]
    pub passages: Passages,
    /// Claimed integrals that turned out to vary along the motion, in the order in which that was
    /// found.
    #[serde(default)]
    pub failed_claims: Vec<FailedClaim>,
    /// Last state at which the claimed integrals passed a test, of a run that holds some: if one
    /// fails, the run goes back to there.
    #[serde(default)]
    pub tested: Option<Box<StepState>>,
    /// Number of the next output to be written.
    pub next_sample: usize,
    /// Stability of the feedback term along the run.
    pub stability: StabilityMemory,
    /// Search for steps that stability limits.
    #[serde(default)]
    pub stiffness: Stiffness,
    /// What is known of the functions of events.
    #[serde(default)]
    pub events: Vec<EventMemory>,
    /// Start of the steps among which landings on switching surfaces are counted.
    #[serde(default)]
    pub landings: Landings,
    /// Events that were recorded.
    #[serde(default)]
    pub event_log: EventLog,
    /// Averages of outputs that the observer accumulates.
    #[serde(default)]
    pub averages: Vec<Averages>,
    /// Numbers that the map carries from step to step: rounding errors, the last multipliers.
    #[serde(with = "exact::list")]
    pub memory: Vec<f64>,
    /// Last state that does not depend on the end, of a run that is near it: from there a run to a
    /// later end goes on. `None` as long as that is this state itself.
    #[serde(default)]
    pub before_end: Option<Box<StepState>>,
}

/// The field at the beginning of the next step, if already known (FSAL).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FirstStage {
    /// True if `value` is the field at the state.
    pub known: bool,
    /// The field; empty before it is first known.
    #[serde(with = "exact::list")]
    pub value: Vec<f64>,
}

/// Pivot of constraints' rows of unit length below which a singular configuration is near: the
/// angle between their gradients is a thousandth.
pub const NEARLY_DEPENDENT: f64 = 1e-6;

/// Pivot of constraints' rows of unit length that is rounding: the square of a small angle between
/// gradients, from products with some hundred roundings.
const LOST: f64 = 1e-13;

/// Reason why constraints do not determine their forces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SingularityKind {
    /// Their gradients depend on each other.
    #[default]
    Dependent,
    /// The gradient of one vanishes.
    Vanishing,
    /// H_pp is indefinite, and G H_pp Gᵀ is singular although the gradients are independent.
    Cancelling,
}

impl SingularityKind {
    /// Pivot below which such a configuration is near.
    pub fn near(self) -> f64 {
        match self {
            SingularityKind::Dependent => NEARLY_DEPENDENT,
            // A gradient may well vary by a factor of a thousand.
            SingularityKind::Vanishing => 1e-8,
            // Linear in the distance, and small along null directions, too: only lost digits
            // matter.
            SingularityKind::Cancelling => 1e-10,
        }
    }

    /// What is wrong with constraint `name`.
    pub fn of(self, name: &str) -> String {
        match self {
            SingularityKind::Dependent => format!("{name} says what others say"),
            SingularityKind::Vanishing => format!("the gradient of {name} vanishes"),
            SingularityKind::Cancelling => {
                format!("the gradient of {name} is null in the indefinite kinetic energy")
            }
        }
    }
}

/// Configuration in which constraints came nearest to not determining their forces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Singularity {
    /// Smallest pivot of G H_pp Gᵀ, scaled to a unit diagonal; square of a gradient over the
    /// largest so far; or smallest eigenvalue of G H_pp Gᵀ, scaled to unit terms. 0 if the motion
    /// has gone through the configuration.
    #[serde(with = "exact::number")]
    pub pivot: f64,
    /// Time at which it was found.
    #[serde(with = "exact::number")]
    pub t: f64,
    /// The constraint's row.
    pub row: usize,
    /// Reason.
    #[serde(default)]
    pub kind: SingularityKind,
    /// True if the motion certainly goes through the configuration, not past it within less than a
    /// step resolves.
    #[serde(default)]
    pub passed: bool,
}

impl Singularity {
    /// True if the configuration is near.
    pub fn is_near(&self) -> bool {
        self.pivot < self.kind.near()
    }

    /// True if no digit of a constraint's independence is left.
    pub fn is_lost(&self) -> bool {
        self.kind == SingularityKind::Dependent && self.pivot < LOST
    }

    /// True if forces are rounding there: G H_pp Gᵀ is a difference of terms that are as large as
    /// it is small.
    pub fn is_rounding(&self) -> bool {
        self.kind == SingularityKind::Cancelling && self.pivot < 16.0 * f64::EPSILON
    }

    /// The nearer of two configurations, the first of two that are as near.
    pub fn nearer(self, other: Singularity) -> Singularity {
        if self.passed != other.passed {
            return if other.passed { other } else { self };
        }
        if other.pivot / other.kind.near() < self.pivot / self.kind.near() { other } else { self }
    }
}

/// Singular configurations through which a motion has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passages {
    /// Their number.
    pub count: u64,
    /// Time of the last.
    #[serde(with = "exact::number")]
    pub last: f64,
}

/// A claimed integral that is not constant along the motion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedClaim {
    /// Number of its group of invariants.
    pub group: usize,
    /// Time at which that was found.
    #[serde(with = "exact::number")]
    pub t: f64,
    /// Rate of the claim there over the sum of the absolute terms that should cancel in it.
    #[serde(with = "exact::number")]
    pub rate: f64,
    /// Time from which on nothing holds it.
    #[serde(with = "exact::number")]
    pub free_from: f64,
}

impl Default for Singularity {
    fn default() -> Singularity {
        Singularity { pivot: 1.0, t: 0.0, row: 0, kind: SingularityKind::Dependent, passed: false }
    }
}

/// Deviation of a group of invariants from its target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Drift {
    /// Current deviation.
    #[serde(with = "exact::number")]
    pub now: f64,
    /// Largest deviation over all accepted steps, all outputs and the start.
    #[serde(with = "exact::number")]
    pub max: f64,
}

/// Search for steps of an explicit scheme that stability limits, not accuracy.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Stiffness {
    /// Number of steps at the last sample.
    pub step: u64,
    /// Time since the start there.
    #[serde(with = "exact::number")]
    pub elapsed: f64,
    /// Number of steps in a row that stability has limited.
    pub streak: u64,
    /// Time from which on it has.
    #[serde(with = "exact::number")]
    pub since: f64,
    /// h|λ| as a part of the scheme's real stability interval, once that is long enough to report
    /// it; 0 before.
    #[serde(with = "exact::number")]
    pub ratio: f64,
}

/// Statistics of h·λmax/r along the run (see [`crate::stability`]).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StabilityMemory {
    /// Number of steps for which the samples stand.
    pub count: u64,
    /// Largest value.
    #[serde(with = "exact::number")]
    pub max: f64,
    /// Sum of the values over these steps.
    #[serde(with = "exact::number")]
    pub sum: f64,
    /// Vector from which the power iteration goes on.
    #[serde(with = "exact::list")]
    pub direction: Vec<f64>,
}

impl StabilityMemory {
    /// Mean of the sampled values; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

impl StepState {
    /// The state at the start `x0` of a run. F₀ is F at `reference`, or at `x0`; constraints have
    /// the target 0.
    ///
    /// # Panics
    /// If `x0` or `reference` does not have the system's length.
    pub fn new(
        plan: &Plan,
        system: &dyn System,
        x0: &[f64],
        reference: Option<&[f64]>,
    ) -> StepState {
        let (n, invariants) = (system.dim(), system.invariants());
        assert_eq!(x0.len(), n, "the initial state has not the system's length");
        let mut work = vec![0.0; system.work_len()];
        let mut values_at = |x: &[f64]| {
            let mut f = vec![0.0; invariants.count];
            system.invariant_values(plan.t0, x, &mut f, &mut work);
            f
        };
        let initial = values_at(x0);
        let referred = reference.map(|reference| {
            assert_eq!(reference.len(), n, "the reference state has not the system's length");
            values_at(reference)
        });
        // Zeros that nobody writes take no memory: most rows of a long chain are constraints.
        let mut target = vec![0.0; invariants.count];
        let held = invariants.constraints..invariants.count;
        target[held.clone()].copy_from_slice(&referred.as_ref().unwrap_or(&initial)[held]);
        let scales = start_scales(plan, system, x0, (&initial, &target), &mut work);
        let drift_of = |now: f64| Drift { now, max: now };
        StepState {
            step: 0,
            t: plan.t0,
            elapsed: 0.0,
            x: x0.to_vec(),
            first_stage: FirstStage::default(),
            controller: ControllerMemory { h: 0.0, last_error: 1e-4 },
            scales,
            innovation: 0.0,
            innovation_at: plan.t0,
            judged: 0.0,
            singularity: Singularity::default(),
            passages: Passages::default(),
            failed_claims: Vec::new(),
            tested: None,
            drift: invariants
                .groups
                .iter()
                .map(|group| drift_of(group.drift(&initial, &target)))
                .collect(),
            terms: vec![0.0; invariants.groups.len()],
            losses: vec![Loss::default(); invariants.groups.len()],
            target: target.into(),
            values: initial,
            cost: Cost::default(),
            next_sample: 0,
            stability: StabilityMemory::default(),
            stiffness: Stiffness { since: plan.t0, ..Stiffness::default() },
            averages: Vec::new(),
            events: Vec::new(),
            landings: Landings::default(),
            event_log: EventLog::default(),
            memory: Vec::new(),
            before_end: None,
        }
    }

    /// True if this group of invariants turned out to vary.
    pub fn has_failed(&self, group: usize) -> bool {
        self.failed_claims.iter().any(|claim| claim.group == group)
    }

    /// Store this state as the last one at which claims passed their test, in the memory of the one
    /// before.
    pub(crate) fn keep_tested(&mut self) {
        match self.tested.take() {
            Some(mut tested) => {
                tested.copy_from(self);
                self.tested = Some(tested);
            }
            None => {
                let before_end = self.before_end.take();
                let tested = Box::new(self.clone());
                (self.tested, self.before_end) = (Some(tested), before_end);
            }
        }
    }

    /// Go back to the last state at which claims passed their test. The cost since then stays
    /// counted.
    pub(crate) fn go_back(&mut self) {
        let Some(mut tested) = self.tested.take() else { return };
        tested.before_end = self.before_end.take().filter(|before| before.step <= tested.step);
        tested.cost = self.cost.clone();
        tested.failed_claims = std::mem::take(&mut self.failed_claims);
        *self = *tested;
    }

    /// Copy another state of the same run, without the states that it stores.
    fn copy_from(&mut self, other: &StepState) {
        // Every field by name, so that a new one cannot be forgotten.
        let StepState {
            step,
            t,
            elapsed,
            x,
            first_stage,
            controller,
            scales,
            target,
            values,
            drift,
            terms,
            losses,
            cost,
            innovation,
            innovation_at,
            judged,
            singularity,
            passages,
            failed_claims,
            tested: _,
            next_sample,
            stability,
            stiffness,
            averages,
            events,
            landings,
            event_log,
            memory,
            before_end: _,
        } = other;
        (self.step, self.t, self.elapsed, self.next_sample) = (*step, *t, *elapsed, *next_sample);
        self.controller = *controller;
        (self.innovation, self.innovation_at) = (*innovation, *innovation_at);
        (self.judged, self.singularity) = (*judged, *singularity);
        self.passages = *passages;
        self.x.clone_from(x);
        self.first_stage.known = first_stage.known;
        self.first_stage.value.clone_from(&first_stage.value);
        self.scales.masses.clone_from(&scales.masses);
        self.scales.norms.clone_from(&scales.norms);
        self.scales.begun = scales.begun;
        self.scales.rounding.clone_from(&scales.rounding);
        self.scales.carried.clone_from(&scales.carried);
        self.target = Arc::clone(target);
        self.values.clone_from(values);
        self.drift.clone_from(drift);
        self.terms.clone_from(terms);
        self.losses.clone_from(losses);
        self.cost.clone_from(cost);
        self.failed_claims.clone_from(failed_claims);
        (self.stability.count, self.stability.max, self.stability.sum) =
            (stability.count, stability.max, stability.sum);
        self.stability.direction.clone_from(&stability.direction);
        (self.stiffness, self.landings) = (*stiffness, *landings);
        self.averages.clone_from(averages);
        self.events.clone_from(events);
        self.event_log.clone_from(event_log);
        self.memory.clone_from(memory);
    }

    /// Store this state, as the next step is the first one that depends on the end of the run.
    pub(crate) fn keep_before_end(&mut self) {
        if self.before_end.is_none() {
            self.before_end = Some(Box::new(self.clone()));
        }
    }

    /// Copy of this state without x, the carried numbers and F.
    pub(crate) fn without_vectors(&mut self) -> StepState {
        let vectors = [&mut self.x, &mut self.memory, &mut self.values].map(std::mem::take);
        let copy = self.clone();
        [self.x, self.memory, self.values] = vectors;
        copy
    }

    /// State from which a run to a later end goes on.
    pub fn without_end(mut self) -> StepState {
        match self.before_end.take() {
            Some(state) => *state,
            None => self,
        }
    }
}

fn unknown() -> f64 {
    f64::NAN
}

/// Scales with which a run begins at `x0`, where F is `initial` and ought to be `target`.
fn start_scales(
    plan: &Plan,
    system: &dyn System,
    x0: &[f64],
    off: (&[f64], &[f64]),
    work: &mut [f64],
) -> Scales {
    let (kept, vectors) = (Treatment::kept(plan, system), system.vectors());
    let mut masses = Vec::new();
    if plan.fixed_step().is_none() || plan.method.treatment == MethodTreatment::SymmetricProjection
    {
        masses.resize(vectors.count(), 0.0);
        system.masses(plan.t0, x0, &mut masses, work);
    }
    let mut scales = Scales::new(vectors, kept, masses, x0);
    if kept.weights {
        let distance = relative_distance(plan, system, x0, off, work);
        if distance > START_ROUND_OFF {
            scales.start_off(vectors.count(), distance);
        }
    }
    if let Stepping::Adaptive(adaptive) = &plan.stepping {
        scales.renew_norms(vectors, adaptive.square_of_least_scale());
    }
    scales
}

/// Relative distance below which a start is on the level set: a thousand roundings of the terms
/// that cancel, which a start that was computed elsewhere may have.
const START_ROUND_OFF: f64 = 2e-13;

/// Relative distance of `x0` from F = target: the largest |ΔF_i|/(Σ_j |∂_jF_i x_j| + |F₀_i|).
fn relative_distance(
    plan: &Plan,
    system: &dyn System,
    x0: &[f64],
    (initial, target): (&[f64], &[f64]),
    work: &mut [f64],
) -> f64 {
    let invariants = system.invariants();
    let mut jacobian = vec![0.0; invariants.nonzeros()];
    system.invariant_jacobian(plan.t0, x0, &mut jacobian, work);
    let corrected = invariants.corrected_rows();
    let relative = |row: usize| {
        let terms: f64 =
            invariants.row(row).entries().map(|(p, column)| (jacobian[p] * x0[column]).abs()).sum();
        let off = (initial[row] - target[row]).abs();
        if off > 0.0 { off / (terms + target[row].abs()) } else { 0.0 }
    };
    let off = (0..invariants.count).filter(|&row| corrected[row]).map(relative);
    // Where nothing cancels the distance is the state itself.
    off.fold(0.0, f64::max).min(1.0)
}
