//! Many trajectories of one system, several side by side in the lanes of a vector processor.
//!
//! Lanes are independent: each has its own parameters, its own time and, with adaptive steps, its
//! own step. A lane computes what [`run`](crate::run::run) computes for its trajectory, bit for
//! bit, so results depend neither on the number of lanes nor on the neighbours. Arrays are ordered
//! by variable, then by lane: component i of lane l stands at `i * lanes + l`.
//!
//! A lane in whose steps an event may lie is *parted*: a run by itself goes on from the start of these
//! steps, where the lane hands over its trajectory.
//!
//! With equal steps all lanes march together. Steps of a lane that would differ from those of a run
//! by itself are made again by themselves from the start of the block, and the lane joins the
//! others at its end. With adaptive steps a lane whose trajectory ends takes up the next one.

mod adaptive;
mod fixed;
mod parted;

use crate::controller::slots::Slots;
use crate::cost::Cost;
use crate::plan::{FixedSteps, Plan, Stepping};
use crate::run::StepEnds;
use crate::scales::{Kept, Vectors};
use crate::scheme::map::Facts;
use crate::scheme::repairs::NoResult;
use crate::terms::{Loss, TermsNow};
use crate::vector::max_or_nan;
pub use holonome_arithmetic::lanes::{gather, scatter};
pub use parted::Parted;
use std::ops::Range;

/// A system with its invariants, in lanes.
pub trait LaneSystem: Sync {
    /// Parameters and targets of the trajectories in the lanes.
    type Bound;

    /// Lanes that all have these parameters: the model's, then the targets, then those of a
    /// treatment.
    fn bind(&self, parameters: &[f64]) -> Self::Bound;

    /// Bind one lane to its trajectory's parameters, and F₀ of every row.
    fn rebind(&self, bound: &mut Self::Bound, lane: usize, parameters: &[f64], targets: &[f64]);

    /// Equal steps, if these are.
    fn equal(&self) -> Option<&dyn EqualSteps<Bound = Self::Bound>> {
        None
    }

    /// Adaptive steps, if these are.
    fn adaptive(&self) -> Option<&dyn AdaptiveLaneSteps<Bound = Self::Bound>> {
        None
    }

    /// Minimum number of constraints that are followed together, from step to step; fewer are followed
    /// each by itself.
    fn least_followed(&self) -> usize {
        2
    }

    /// Number of lanes.
    fn lanes(&self) -> usize;

    /// Length n of a state.
    fn dim(&self) -> usize;

    /// Number of groups of invariants and of other quantities that steps monitor.
    fn groups(&self) -> usize;

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// True if steps end with a correction.
    fn corrects(&self) -> bool;

    /// Add the cost of treating the results of so many steps; true if a treatment moves them.
    fn count_treatments(&self, steps: u64, cost: &mut Cost) -> bool;

    /// True if the last number that a trajectory carries is that of its evaluations of the field.
    fn counts_evaluations(&self) -> bool {
        false
    }

    /// Number of functions of events at which steps look.
    fn watched(&self) -> usize {
        0
    }

    /// Vectors of a state.
    fn vectors(&self) -> &Vectors;

    /// Scales that a trajectory carries.
    fn kept(&self) -> Kept;

    /// Compute the deviations of the groups in every lane and, in `terms`, the scales of their
    /// terms followed by their contents (see [`terms`](crate::terms)), 0 if unknown. The sizes of
    /// the vectors in these terms are the roots of `at.squares`.
    fn monitor(
        &self,
        bound: &Self::Bound,
        at: LaneStates,
        deviations: &mut [f64],
        terms: &mut [f64],
        work: &mut [f64],
    );

    /// For every group, true if its loss is known.
    fn has_losses(&self) -> &[bool];
}

/// States in lanes.
#[derive(Clone, Copy)]
pub struct LaneStates<'a> {
    /// The times.
    pub t: &'a [f64],
    /// The states.
    pub x: &'a [f64],
    /// Numbers that steps carry there.
    pub carried: &'a [f64],
    /// |x_b|² of the vectors.
    pub squares: &'a [f64],
}

/// Equal steps of several trajectories at once.
pub trait EqualSteps: LaneSystem {
    /// True if a run by itself makes its first step outside of a loop, and monitors the state after
    /// it by itself.
    fn first_step_is_single(&self) -> bool {
        false
    }

    /// Number of values per lane that outlive a step, beside the state.
    fn carried_len(&self) -> usize;

    /// Compute the numbers that trajectories carry at their start at `t0`; `begun` receives, for
    /// every lane, whether its steps can begin and the cost of computing them.
    fn begin(
        &self,
        bound: &mut Self::Bound,
        plan: (&FixedSteps, f64),
        x: &[f64],
        carried: &mut [f64],
        begun: (&mut [bool], &mut [Cost]),
        work: &mut [f64],
    );

    /// Make the equal steps of these numbers in every lane; `largest` receives the largest
    /// deviation of every group at the states with which these steps begin.
    fn steps(
        &self,
        bound: &Self::Bound,
        steps: Range<u64>,
        x: &mut [f64],
        carry: LaneCarry,
        largest: &mut [f64],
        work: &mut [f64],
    );

    /// Look at the end of the last one of some steps, whose starts [`EqualSteps::steps`] looks at:
    /// `sides` become those that are kept there, as [`side_kept`](crate::events::side_kept) says for
    /// steps of the length h.
    fn look(
        &self,
        _bound: &Self::Bound,
        _at: (f64, f64, &[f64]),
        _sides: &mut [f64],
        _work: &mut [f64],
    ) {
    }

    /// Make the steps of one lane that [`EqualSteps::steps`] has [missed](LaneCarry::missed) as a
    /// run by itself does, from the state in which the lane began, and count their cost.
    ///
    /// # Errors
    /// If a step has no result.
    fn alone(
        &self,
        _bound: &mut Self::Bound,
        _lane: usize,
        _steps: (&FixedSteps, f64, Range<u64>),
        _one: LaneAlone,
        _cost: &mut Cost,
    ) -> Result<(), NoResult> {
        Err(NoResult)
    }

    /// Add the cost of the steps of these numbers for one trajectory.
    fn count(&self, steps: Range<u64>, cost: &mut Cost);

    /// Number of multipliers that are known at a state.
    fn multiplier_count(&self) -> usize {
        0
    }

    /// Compute the multipliers of the `wanted` lanes into `lambda`; `step` is the steps, t₀ and the
    /// number of steps made, `at` the states and what they carry.
    fn multipliers(
        &self,
        _bound: &mut Self::Bound,
        _step: (&FixedSteps, f64, u64),
        _at: (&[f64], &[f64]),
        _wanted: &[bool],
        _lambda: &mut [f64],
        _work: &mut [f64],
    ) {
    }
}

/// Adaptive steps of several trajectories at once.
pub trait AdaptiveLaneSteps: LaneSystem {
    /// Facts about the steps.
    fn facts(&self) -> &Facts;

    /// Number of field evaluations in an attempt, without that of a first stage that the step
    /// before provides.
    fn evaluations(&self) -> u64;

    /// X(t, x) in every lane.
    fn fields(&self, bound: &Self::Bound, t: &[f64], x: &[f64], dx: &mut [f64], work: &mut [f64]);

    /// Slots of the state of a loop of attempts.
    fn slots(&self) -> &Slots;

    /// Make up to `count` attempts in every lane, until a lane ends; lanes that are computed
    /// together end together.
    fn attempts(&self, bound: &Self::Bound, count: u64, state: &mut [f64], work: &mut [f64]);

    /// Turn the contents of [`Slots::largest`] of one lane into deviations.
    fn finish(&self, largest: &mut [f64]);

    /// Find what a trajectory carries in [`Slots::memory`] before its first step, where the field
    /// is `field`.
    fn begin_memory(&self, _field: &[f64], _memory: &mut [f64]) {}

    /// Number of numbers of a lane from which a sample within an accepted attempt is found: those
    /// of [`Within`], and what [`AdaptiveLaneSteps::within`] puts behind them.
    ///
    /// [`Within`]: crate::controller::slots::Within
    fn within_len(&self) -> usize;

    /// Slots of the state before an attempt from which a sample within it is found, in any order.
    fn within_reads(&self) -> &[usize];

    /// Operations that the interpolant of an attempt takes, and those of each sample.
    fn within_operations(&self) -> [usize; 2];

    /// Find treated states within accepted attempts, in the `lanes` that are wanted; the second is
    /// true unless all of them have the attempts of the call before. `numbers` has
    /// [`AdaptiveLaneSteps::within_len`] of them in every lane.
    fn within(
        &self,
        bound: &Self::Bound,
        lanes: (&[bool], bool),
        numbers: &mut [f64],
        found: &mut LanesWithin,
        work: &mut [f64],
    );

    /// Evaluations of the field that the first sample within a step takes.
    fn interpolant_evaluations(&self) -> u64;
}

/// Values that outlive a step beside the state, in every lane.
pub struct LaneCarry<'a> {
    /// Scales of the state's vectors, or the numbers that a map carries.
    pub carried: &'a mut [f64],
    /// Largest square of an innovation of these steps.
    pub innovation: &'a mut [f64],
    /// [Sides](crate::events::side_kept) on which the functions of events have been.
    pub sides: &'a mut [f64],
    /// Set to true in lanes where a step is not as good as one of a run by itself; nothing else of
    /// such a lane is of use.
    pub missed: &'a mut [bool],
}

/// One lane, by itself.
pub struct LaneAlone<'a> {
    /// The state.
    pub x: &'a mut Vec<f64>,
    /// Numbers that steps carry.
    pub carried: &'a mut [f64],
    /// Receives the largest deviations.
    pub largest: &'a mut [f64],
}

/// States within steps, in lanes.
pub struct LanesWithin {
    /// States, then deviations of the groups there.
    pub out: Vec<f64>,
    /// Evaluations of the field that each took, beside those of
    /// [`AdaptiveLaneSteps::interpolant_evaluations`].
    pub evaluations: Vec<f64>,
    /// True in lanes in which a run by itself does more to find the state.
    pub missed: Vec<bool>,
}

/// Sample of the trajectory in a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneSample {
    /// The lane.
    pub lane: usize,
    /// Number of the trajectory.
    pub trajectory: usize,
    /// Index of the sample.
    pub sample: usize,
}

/// Source of trajectories and sink of their results.
pub trait Trajectories<B> {
    /// Put the next trajectory into a lane (all of one trajectory). Returns its number, counted
    /// from 0, or `None` if there are no more.
    fn next(&mut self, bound: &mut B, lane: usize, start: LaneStart) -> Option<usize>;

    /// Store these samples. `x` holds the states of all lanes, followed by their multipliers if
    /// they are [wanted](Trajectories::wants_multipliers) and steps know them.
    fn samples(&mut self, of: &[LaneSample], x: &[f64]);

    /// True if samples are to have multipliers.
    fn wants_multipliers(&self) -> bool {
        false
    }

    /// True if corrections leave a constraint so far off that they may not bring it nearer at all,
    /// judged by the groups' deviations and the scales of their terms.
    fn may_be_far(&self, _deviations: &[f64], _terms: &[f64]) -> bool {
        false
    }

    /// True if [`Trajectories::look`] has claims to check.
    fn looks(&self) -> bool {
        false
    }

    /// Largest disturbance of steps by their treatment (see
    /// [`Rates::disturbance`](crate::run::Rates::disturbance)), given by the square of their
    /// innovation, the groups' deviations and the scales of their terms; 0 if no claim depends on
    /// it.
    fn disturbance(&self, _innovation: f64, _deviations: &[f64], _terms: &[f64]) -> f64 {
        0.0
    }

    /// True if a claim fails within this step of a lane.
    fn fails_within(&mut self, _lane: usize, _step: StepEnds) -> bool {
        false
    }

    /// Check the claims of these trajectories, given by lane and number, at the steps at which a
    /// run by itself does; `doubted` receives, for each lane, whether one fails there. The squares
    /// are σ² of the vectors, empty if they are not kept.
    fn look(&mut self, _of: &[(usize, usize)], _at: LaneStates, _doubted: &mut [bool]) {}

    /// Largest number of steps from step `step` on that these trajectories, by lane and
    /// number, may make before [`Trajectories::follow`].
    fn steps_to_follow(&self, _of: &[(usize, usize)], _step: u64) -> u64 {
        u64::MAX
    }

    /// Follow the constraints of trajectory `number`, in lane `lane`, to its state after `step`
    /// steps.
    fn follow(&mut self, (_lane, _number): (usize, usize), (_step, _t): (u64, f64), _x: &[f64]) {}

    /// Report the end of trajectory `number`.
    fn end(&mut self, number: usize, end: &End);

    /// Take over trajectory `number` from its lane, in whose next steps an event may lie.
    fn part(&mut self, number: usize, parted: Parted);
}

/// Start of a trajectory, of which a source sets everything.
pub struct LaneStart<'a> {
    /// Its initial state.
    pub x: &'a mut [f64],
    /// Masses of its vectors; empty if they are not wanted.
    pub masses: &'a mut [f64],
    /// Sides on which the functions of events are.
    pub sides: &'a mut [f64],
}

/// End of a trajectory.
#[derive(Clone, Debug)]
pub struct End {
    /// Time of the end.
    pub t: f64,
    /// Number of accepted steps.
    pub steps: u64,
    /// Last deviation of every group of invariants.
    pub deviations: Vec<f64>,
    /// Largest deviation of every group.
    pub largest: Vec<f64>,
    /// Scale of every group's terms, the larger one of those at both ends.
    pub terms: Vec<f64>,
    /// Loss of every group.
    pub losses: Vec<Loss>,
    /// Largest innovation of a correction (see [`StepState`](crate::state::StepState)).
    pub innovation: f64,
    /// Time at which that innovation was reached.
    pub innovation_at: f64,
    /// Cost of the trajectory.
    pub cost: Cost,
    /// Reason for an early end.
    pub failure: Option<Stopped>,
}

/// Reason for a trajectory's early end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopped {
    /// Something was not a finite number after the last good step.
    NonFinite,
    /// The step became too short to resolve time.
    StepCollapsed,
    /// The limit on the number of steps is reached.
    TooManySteps,
    /// A claim fails, or may fail; a run of its own decides the trajectory's fate.
    Doubted,
}

/// True if `plan` can be run in lanes: a shorter last step cannot, nor steps that heed moments.
/// Trajectories start on the level set that their corrections aim at.
pub fn suits(plan: &Plan) -> bool {
    match &plan.stepping {
        Stepping::Fixed(fixed) => fixed.shorter_last.is_none(),
        Stepping::Adaptive(_) => !plan.has_moments(),
    }
}

/// Run `plan` for all `trajectories`.
///
/// # Panics
/// If the steps are not those of the plan, or it does not [suit](suits).
pub fn run<S: LaneSystem>(
    plan: &Plan,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    assert!(suits(plan), "this plan is not for lanes");
    match &plan.stepping {
        Stepping::Fixed(fixed) => {
            let steps = steps.equal().expect("the plan has equal steps");
            fixed::run(plan, fixed, steps, bound, trajectories);
        }
        Stepping::Adaptive(adaptive) => {
            let steps = steps.adaptive().expect("the plan has adaptive steps");
            adaptive::run(plan, adaptive, steps, bound, trajectories);
        }
    }
}

/// What a trajectory carries for its next steps, and the number of evaluations that it has counted.
fn split_count<'c, S: LaneSystem + ?Sized>(steps: &S, carried: &'c [f64]) -> (&'c [f64], u64) {
    match carried.split_last().filter(|_| steps.counts_evaluations()) {
        Some((&count, carried)) => (carried, count as u64),
        None => (carried, 0),
    }
}

/// True if lane `lane` of `all` is finite throughout.
fn finite(all: &[f64], lanes: usize, lane: usize) -> bool {
    all.iter().skip(lane).step_by(lanes).all(|x| x.is_finite())
}

impl End {
    fn new(t: f64, groups: usize) -> End {
        let zeros = vec![0.0; groups];
        let (deviations, largest, terms) = (zeros.clone(), zeros.clone(), zeros);
        End {
            t,
            steps: 0,
            deviations,
            largest,
            terms,
            losses: vec![Loss::default(); groups],
            innovation: 0.0,
            innovation_at: t,
            cost: Cost::default(),
            failure: None,
        }
    }

    /// Record the square of an innovation of steps that ended at `t`.
    fn take_innovation(&mut self, square: f64, t: f64) {
        let innovation = square.sqrt();
        if innovation > self.innovation {
            (self.innovation, self.innovation_at) = (innovation, t);
        }
    }

    /// Reset everything for another trajectory, in the same memory.
    fn restart(&mut self, t: f64) {
        (self.t, self.steps, self.failure) = (t, 0, None);
        (self.cost, self.innovation, self.innovation_at) = (Cost::default(), 0.0, t);
        self.largest.fill(0.0);
        self.deviations.fill(0.0);
        self.terms.fill(0.0);
        self.losses.fill(Loss::default());
    }

    /// Raise the largest deviations to the current ones.
    fn raise_largest(&mut self) {
        for (largest, &now) in self.largest.iter_mut().zip(&self.deviations) {
            *largest = max_or_nan(*largest, now);
        }
    }

    /// Raise the scales of the terms, and the losses, to those of a lane at its current deviations;
    /// `terms` are those of [`LaneSystem::monitor`] in all lanes.
    fn raise_terms(&mut self, has_losses: &[bool], terms: &[f64], (lanes, lane): (usize, usize)) {
        let groups = self.terms.len();
        for (group, (scale, loss)) in self.terms.iter_mut().zip(&mut self.losses).enumerate() {
            let at = |k: usize| terms[k * lanes + lane];
            let (content, deviation) = (at(groups + group), self.deviations[group]);
            let has_loss = has_losses.get(group) == Some(&true);
            TermsNow { scale: at(group), content, deviation }.raise(has_loss, scale, loss);
        }
    }
}
