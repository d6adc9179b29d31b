//! Many trajectories of one system, several side by side in the lanes of a vector processor.
//!
//! Lanes do not know of each other: each has its own parameters, its own time and, with adaptive steps, its own step.
//! A lane computes what [`run`](crate::run::run) computes for its trajectory, bit for bit, so results depend neither
//! on the number of lanes nor on who their neighbours are. Arrays are ordered by variable, then by lane: component i of
//! lane l stands at `i * lanes + l`.
//!
//! With equal steps all lanes march together. With adaptive steps a lane whose trajectory ends takes up the next one.

mod adaptive;
mod fixed;

use crate::controller::slots::Slots;
use crate::plan::{Plan, Stepping};
use crate::scales::{Kept, Vectors};
use crate::state::Cost;
use crate::tableau::Tableau;
use crate::vector::max_or_nan;

/// A method's step on several trajectories at once.
pub trait LaneSteps: Sync {
    /// What the lanes know of their trajectories: parameters, targets.
    type Bound;

    /// The scheme's coefficients.
    fn tableau(&self) -> &'static Tableau;

    /// Number of lanes.
    fn lanes(&self) -> usize;

    /// Length n of a state.
    fn dim(&self) -> usize;

    /// Number of groups of invariants.
    fn groups(&self) -> usize;

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// Whether steps end with a correction.
    fn corrects(&self) -> bool;

    /// The vectors of a state.
    fn vectors(&self) -> &Vectors;

    /// The scales that a trajectory keeps.
    fn kept(&self) -> Kept;

    /// X(t, x) in every lane.
    fn fields(&self, bound: &Self::Bound, t: &[f64], x: &[f64], dx: &mut [f64], work: &mut [f64]);

    /// The equal steps of number `first` to `first + count` in every lane; `largest` receives the largest deviation of
    /// every group after any of them but the last.
    fn steps(
        &self,
        bound: &Self::Bound,
        steps: std::ops::Range<u64>,
        x: &mut [f64],
        carry: LaneCarry,
        largest: &mut [f64],
        work: &mut [f64],
    );

    /// Where the state of a loop of attempts stands.
    fn slots(&self) -> &Slots;

    /// Up to `count` attempts in every lane, until a lane ends; lanes that are computed together end together.
    fn attempts(&self, bound: &Self::Bound, count: u64, state: &mut [f64], work: &mut [f64]);

    /// Makes deviations of what stands in [`Slots::largest`] of one lane.
    fn finish(&self, largest: &mut [f64]);

    /// The groups' deviations at (t, x) in every lane, and the sizes of their terms (see [`terms`](crate::terms)), 0 where
    /// nobody knows them; the vectors count as large as the roots of their squares say.
    fn watch(
        &self,
        bound: &Self::Bound,
        t_x_and_squares: (&[f64], &[f64], &[f64]),
        deviations: &mut [f64],
        terms: &mut [f64],
        work: &mut [f64],
    );
}

/// What outlives a step beside the state, in every lane.
pub struct LaneCarry<'a> {
    /// The scales of the state's vectors.
    pub scales: &'a mut [f64],
    /// The largest square of an innovation of these steps.
    pub innovation: &'a mut [f64],
}

/// Where trajectories come from and where their results go.
pub trait Trajectories<B> {
    /// Puts the next trajectory into a lane, its initial state into `x` and the masses of its vectors into `masses`, if
    /// that is not empty (both of one trajectory); its number, counted from 0, or none where there are no more.
    fn next(&mut self, bound: &mut B, lane: usize, x: &mut [f64], masses: &mut [f64]) -> Option<usize>;

    /// State number `sample` of trajectory `number`.
    fn sample(&mut self, number: usize, sample: usize, x: &[f64]);

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

    /// Looks at the state of trajectory `number`, in lane `lane`, at `t`, at the steps at which a run by itself looks at its claims; says
    /// whether one fails there. `squares` are σ² of the vectors, where that is kept.
    fn look(&mut self, (_lane, _number): (usize, usize), _t: f64, _x: &[f64], _squares: &[f64]) -> bool {
        false
    }

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

/// Whether `plan` can be run in lanes: dense output cannot, nor a shorter last step. Trajectories start on the level set
/// that their corrections aim at.
pub fn suits(plan: &Plan) -> bool {
    match &plan.stepping {
        Stepping::Fixed(fixed) => fixed.shorter_last.is_none(),
        Stepping::Adaptive(adaptive) => adaptive.samples.iter().all(|&t| t == plan.t0 || t == adaptive.t_end),
    }
}

/// Runs `plan` for all `trajectories`.
///
/// # Panics
/// If the plan does not [suit](suits).
pub fn run<S: LaneSteps>(plan: &Plan, steps: &S, bound: &mut S::Bound, trajectories: &mut dyn Trajectories<S::Bound>) {
    assert!(suits(plan), "this plan is not for lanes");
    match &plan.stepping {
        Stepping::Fixed(fixed) => fixed::run(plan, fixed, steps, bound, trajectories),
        Stepping::Adaptive(adaptive) => adaptive::run(plan, adaptive, steps, bound, trajectories),
    }
}

/// Copies lane `lane` of `all` into `one`.
fn gather(all: &[f64], lanes: usize, lane: usize, one: &mut [f64]) {
    for (k, one) in one.iter_mut().enumerate() {
        *one = all[k * lanes + lane];
    }
}

/// Copies `one` into lane `lane` of `all`.
fn scatter(one: &[f64], lanes: usize, lane: usize, all: &mut [f64]) {
    for (k, one) in one.iter().enumerate() {
        all[k * lanes + lane] = *one;
    }
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
