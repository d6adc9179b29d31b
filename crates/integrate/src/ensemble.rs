//! Many trajectories of one system, several side by side in the lanes of a vector processor.
//!
//! Lanes do not know of each other: each has its own parameters, its own time and, with adaptive steps, its own step.
//! A lane computes what [`run`](crate::run::run) computes for its trajectory, bit for bit, so results depend neither
//! on the number of lanes nor on who their neighbours are. Arrays are ordered by variable, then by lane: component i of
//! lane l stands at `i * lanes + l`.
//!
//! With equal steps all lanes march together; where a lane misses what a run by itself would compute, its steps are made
//! again by themselves from where the block began, and it joins the others at its end. With adaptive steps a lane whose trajectory ends takes up the next one.

mod adaptive;
mod fixed;

use crate::controller::slots::Slots;
use crate::cost::Cost;
use crate::plan::{FixedSteps, Plan, Stepping};
use crate::scales::{Kept, Vectors};
use crate::scheme::map::Facts;
use crate::scheme::repairs::Unmade;
use crate::vector::max_or_nan;
pub use crate::vector::{gather, scatter};
use std::ops::Range;

/// A system with its invariants, in lanes.
pub trait LaneSystem: Sync {
    /// What the lanes know of their trajectories: parameters, targets.
    type Bound;

    /// Number of lanes.
    fn lanes(&self) -> usize;

    /// Length n of a state.
    fn dim(&self) -> usize;

    /// Number of groups of invariants, and of what steps watch besides.
    fn groups(&self) -> usize;

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// Whether steps end with a correction.
    fn corrects(&self) -> bool;

    /// Adds what treating the results of so many steps costs; says whether a treatment moves them.
    fn count_treatments(&self, steps: u64, cost: &mut Cost) -> bool;

    /// The vectors of a state.
    fn vectors(&self) -> &Vectors;

    /// The scales that a trajectory keeps.
    fn kept(&self) -> Kept;

    /// The deviations of the groups at (t, x) in every lane, where steps carry `carried`, and the sizes of their terms (see
    /// [`terms`](crate::terms)), 0 where nobody knows them; the vectors count as large as the roots of their squares say.
    fn watch(&self, bound: &Self::Bound, at: LaneStates, deviations: &mut [f64], terms: &mut [f64], work: &mut [f64]);
}

/// States in lanes.
#[derive(Clone, Copy)]
pub struct LaneStates<'a> {
    /// The times.
    pub t: &'a [f64],
    /// The states.
    pub x: &'a [f64],
    /// What steps carry there.
    pub carried: &'a [f64],
    /// |x_b|² of the vectors.
    pub squares: &'a [f64],
}

/// Equal steps of several trajectories at once.
pub trait EqualSteps: LaneSystem {
    /// How many numbers of a lane outlive a step beside the state.
    fn carried_len(&self) -> usize;

    /// Finds what trajectories carry at their start at `t0`; says of every lane whether its steps can begin, and what
    /// finding it cost.
    fn begin(
        &self,
        bound: &mut Self::Bound,
        plan: (&FixedSteps, f64),
        x: &[f64],
        carried: &mut [f64],
        begun: (&mut [bool], &mut [Cost]),
        work: &mut [f64],
    );

    /// The equal steps of these numbers in every lane; `largest` receives the largest deviation of every group after any of
    /// them but the last.
    fn steps(
        &self,
        bound: &Self::Bound,
        steps: Range<u64>,
        x: &mut [f64],
        carry: LaneCarry,
        largest: &mut [f64],
        work: &mut [f64],
    );

    /// Makes the steps of one lane that [`EqualSteps::steps`] has [missed](LaneCarry::missed) as a run by itself does, from
    /// what the lane began with, and counts what they cost.
    ///
    /// # Errors
    /// When a step has no result.
    fn alone(
        &self,
        _bound: &mut Self::Bound,
        _lane: usize,
        _steps: (&FixedSteps, f64, Range<u64>),
        _one: LaneAlone,
        _cost: &mut Cost,
    ) -> Result<(), Unmade> {
        Err(Unmade)
    }

    /// Adds what the steps of these numbers cost a trajectory.
    fn count(&self, steps: Range<u64>, cost: &mut Cost);

    /// How many multipliers it knows at a state.
    fn multiplier_count(&self) -> usize {
        0
    }

    /// Puts the multipliers at states between steps of the lengths `around`, 0 where there is none, into those of the lanes
    /// that `wanted` says; `step` steps have been made.
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
pub trait AdaptiveSteps: LaneSystem {
    /// What is known of the steps.
    fn facts(&self) -> &Facts;

    /// Evaluations of the field that an attempt takes, beside that of a first stage which the step before knows.
    fn evaluations(&self) -> u64;

    /// X(t, x) in every lane.
    fn fields(&self, bound: &Self::Bound, t: &[f64], x: &[f64], dx: &mut [f64], work: &mut [f64]);

    /// Where the state of a loop of attempts stands.
    fn slots(&self) -> &Slots;

    /// Up to `count` attempts in every lane, until a lane ends; lanes that are computed together end together.
    fn attempts(&self, bound: &Self::Bound, count: u64, state: &mut [f64], work: &mut [f64]);

    /// Makes deviations of what stands in [`Slots::largest`] of one lane.
    fn finish(&self, largest: &mut [f64]);

    /// Number of numbers of a lane from which a sample within an accepted attempt is found: those of [`Within`], and what
    /// [`AdaptiveSteps::within`] puts behind them.
    ///
    /// [`Within`]: crate::controller::slots::Within
    fn within_len(&self) -> usize;

    /// Treated states within accepted attempts, in the lanes that are wanted. `numbers` has [`AdaptiveSteps::within_len`]
    /// of them in every lane; the state and then the deviations of the groups there are put into `out`. `missed` becomes
    /// true of lanes in which a run by itself does more to find them.
    fn within(
        &self,
        bound: &Self::Bound,
        wanted: &[bool],
        numbers: &mut [f64],
        out: &mut [f64],
        missed: &mut [bool],
        work: &mut [f64],
    );

    /// Evaluations of the field that the first sample within a step takes.
    fn interpolant_evaluations(&self) -> u64;
}

/// What outlives a step beside the state, in every lane.
pub struct LaneCarry<'a> {
    /// The scales of the state's vectors, or the memory of a map.
    pub carried: &'a mut [f64],
    /// The largest square of an innovation of these steps.
    pub innovation: &'a mut [f64],
    /// Becomes true of the lanes in which a step is not as good as one of a run by itself; nothing else of such a lane is of
    /// use.
    pub missed: &'a mut [bool],
}

/// One lane, by itself.
pub struct LaneAlone<'a> {
    /// The state.
    pub x: &'a mut Vec<f64>,
    /// What steps carry.
    pub carried: &'a mut [f64],
    /// Receives the largest deviations.
    pub largest: &'a mut [f64],
}

/// A sample of the trajectory in a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneSample {
    /// The lane.
    pub lane: usize,
    /// Number of the trajectory.
    pub trajectory: usize,
    /// Index of the sample.
    pub sample: usize,
}

/// Where trajectories come from and where their results go.
pub trait Trajectories<B> {
    /// Puts the next trajectory into a lane, its initial state into `x` and the masses of its vectors into `masses`, if
    /// that is not empty (both of one trajectory); its number, counted from 0, or none where there are no more.
    fn next(&mut self, bound: &mut B, lane: usize, x: &mut [f64], masses: &mut [f64]) -> Option<usize>;

    /// Samples of these trajectories; in `x` the states of all lanes, followed by their multipliers if they are
    /// [wanted](Trajectories::wants_multipliers) and steps know them.
    fn samples(&mut self, of: &[LaneSample], x: &[f64]);

    /// Whether samples are to have multipliers.
    fn wants_multipliers(&self) -> bool {
        false
    }

    /// Whether corrections leave a constraint so far off that they may not bring it nearer at all, by the groups' deviations
    /// and the sizes of their terms.
    fn may_be_far(&self, _deviations: &[f64], _terms: &[f64]) -> bool {
        false
    }

    /// Whether [`Trajectories::look`] has anything to look at.
    fn looks(&self) -> bool {
        false
    }

    /// How many equal steps may be made between two looks.
    fn steps_between_looks(&self) -> u64 {
        u64::MAX
    }

    /// Looks at the states of these trajectories, by lane and number, at the steps at which a run by itself looks at its
    /// claims; says of a lane whether one fails there. The squares are σ² of the vectors, nothing where that is not kept.
    fn look(&mut self, _of: &[(usize, usize)], _at: LaneStates, _doubted: &mut [bool]) {}

    /// How many equal steps from step `step` on these trajectories, by lane and number, may make before
    /// [`Trajectories::follow`].
    fn steps_to_follow(&self, _of: &[(usize, usize)], _step: u64) -> u64 {
        u64::MAX
    }

    /// Follows the constraints of trajectory `number`, in lane `lane`, to its state after `step` steps.
    fn follow(&mut self, (_lane, _number): (usize, usize), (_step, _t): (u64, f64), _x: &[f64]) {}

    /// Trajectory `number` has ended.
    fn end(&mut self, number: usize, end: &End);
}

/// How a trajectory ended.
#[derive(Clone, Debug)]
pub struct End {
    /// Where.
    pub t: f64,
    /// After how many accepted steps.
    pub steps: u64,
    /// The last deviation of every group of invariants.
    pub deviations: Vec<f64>,
    /// The largest.
    pub largest: Vec<f64>,
    /// The size of every group's terms, the larger one of those at both ends.
    pub terms: Vec<f64>,
    /// The largest innovation of a correction (see [`StepState`](crate::state::StepState)).
    pub innovation: f64,
    /// The time at which it had reached that.
    pub innovation_at: f64,
    /// What it cost.
    pub cost: Cost,
    /// Why it ended early.
    pub failure: Option<Stopped>,
}

/// Why a trajectory ended early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopped {
    /// Something was not a finite number after the last good step.
    NonFinite,
    /// The step became too short to resolve time.
    StepCollapsed,
    /// The limit on the number of steps.
    TooManySteps,
    /// A claim fails, or may: what becomes of the trajectory is found by a run of its own.
    Doubted,
}

/// Whether `plan` can be run in lanes: a shorter last step cannot. Trajectories start on the level set that their
/// corrections aim at.
pub fn suits(plan: &Plan) -> bool {
    match &plan.stepping {
        Stepping::Fixed(fixed) => fixed.shorter_last.is_none(),
        Stepping::Adaptive(_) => true,
    }
}

/// Runs equal steps of `plan` for all `trajectories`.
///
/// # Panics
/// If the plan has none, or does not [suit](suits).
pub fn run_equal<S: EqualSteps>(
    plan: &Plan,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    assert!(suits(plan), "this plan is not for lanes");
    let Stepping::Fixed(fixed) = &plan.stepping else { panic!("this plan adapts its steps") };
    fixed::run(plan, fixed, steps, bound, trajectories);
}

/// Runs adaptive steps of `plan` for all `trajectories`.
///
/// # Panics
/// If the plan has none, or does not [suit](suits).
pub fn run_adaptive<S: AdaptiveSteps>(
    plan: &Plan,
    steps: &S,
    bound: &mut S::Bound,
    trajectories: &mut dyn Trajectories<S::Bound>,
) {
    assert!(suits(plan), "this plan is not for lanes");
    let Stepping::Adaptive(adaptive) = &plan.stepping else { panic!("this plan has equal steps") };
    adaptive::run(plan, adaptive, steps, bound, trajectories);
}

/// Whether lane `lane` of `all` is finite throughout.
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
            innovation: 0.0,
            innovation_at: t,
            cost: Cost::default(),
            failure: None,
        }
    }

    /// Takes up the square of an innovation of steps that came to `t`.
    fn take_innovation(&mut self, square: f64, t: f64) {
        let innovation = square.sqrt();
        if innovation > self.innovation {
            (self.innovation, self.innovation_at) = (innovation, t);
        }
    }

    /// The same memory for another trajectory.
    fn restart(&mut self, t: f64) {
        (self.t, self.steps, self.failure) = (t, 0, None);
        (self.cost, self.innovation, self.innovation_at) = (Cost::default(), 0.0, t);
        self.largest.fill(0.0);
        self.deviations.fill(0.0);
        self.terms.fill(0.0);
    }

    /// Takes the deviations for the largest where they are.
    fn raise_largest(&mut self) {
        for (largest, &now) in self.largest.iter_mut().zip(&self.deviations) {
            *largest = max_or_nan(*largest, now);
        }
    }

    /// Takes these sizes of terms where they are larger.
    fn raise_terms(&mut self, terms: &[f64]) {
        for (largest, &now) in self.terms.iter_mut().zip(terms).filter(|(_, now)| now.is_finite()) {
            *largest = largest.max(now);
        }
    }
}
