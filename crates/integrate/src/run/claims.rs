//! Claims monitored along a run: a claimed integral, and what a treatment holds, must be constant
//! along the motion, and the constraints must determine their forces.
//!
//! Both are checked now and then, at states of the run. Tests at a run's start see random points of
//! the constraint set; a wall or a pulse that is met later only shows here. A claimed integral that
//! fails is no longer held: the run goes back to the last state at which it passed
//! ([`StepState::tested`]), so that nothing is left of the steps that were pushed towards it, and
//! ends there with [`Outcome::ClaimFailed`] for a system that leaves it out. A constraint that
//! fails ends the run.
//!
//! [`StepState::tested`]: crate::state::StepState::tested

use super::independence::Independence;
use super::rates::{Rates, StepEnds, UNSEEN, group_of};
use super::{Engine, Outcome};
use crate::failure::{Culprit, Failure};
use crate::method::MethodTreatment;
use crate::observer::Observer;
use crate::plan::Singular;
use crate::state::{
    FailedClaim, NEARLY_DEPENDENT, Passages, Singularity, SingularityKind, StepState,
};
use crate::system::{Group, GroupKind, System, all_finite};
use crate::treatment::correction::largest_innovation;

/// Number of steps between two checks at states of the run. Each costs a field and a Jacobian, so a
/// thousand steps make that negligible; a claim that fails for a while shows by the steps that it
/// disturbs (see [`Engine::judge_step`]).
pub(crate) const STEPS_BETWEEN_CHECKS: u64 = 1024;

/// Factor by which a treatment has to move a state further than any before, so that claims are
/// judged within the step. A smaller one asks for more of these judgements, of which there are one
/// for each such factor in a run of right claims; a larger one overlooks more.
const NOVEL: f64 = 2.0;

/// Largest number of steps in the first block of a run, which shows how far its treatment moves a
/// state.
pub(super) const FIRST_STEPS: u64 = 16;

/// Ratio of an innovation to the largest plausible one from which on claims are checked at once.
const SURPRISE: f64 = 10.0;

/// Pivot below which rounding decides the force of a constraint, and with it the rate of every
/// claim.
const DEPENDENT: f64 = 1e-6;

/// Part of the span of a run within which a state counts as its end.
const AT_THE_END: f64 = 1e-6;

/// True if a correction with this squared innovation, of a state of `vectors` vectors, asks for a
/// check of claims.
pub(crate) fn surprises(innovation: f64, vectors: usize) -> bool {
    innovation > 0.0 && innovation > (SURPRISE * largest_innovation(vectors)).powi(2)
}

/// True if a step was disturbed so much more than those after which claims were judged, the most
/// `judged`, that they are judged again.
pub(crate) fn is_novel(disturbance: f64, judged: f64) -> bool {
    disturbance > (NOVEL * judged).max(UNSEEN)
}

/// Monitors of claims and of independence along a run, with scratch.
pub(super) struct Claims {
    treatment: MethodTreatment,
    rates: Rates,
    independence: Independence,
    /// The last configuration through which the motion has gone, or near which it was, without
    /// knowing its forces.
    passed: Option<Singularity>,
    /// True if a claim that fails takes the run back.
    takes_back: bool,
    next: u64,
    /// True if the last step was disturbed more than any before.
    surprised: bool,
    /// True if steps can be a surprise: something is claimed about the motion.
    watches: bool,
    /// Claims that fail within the last step: row, rate, time.
    caught: Vec<(usize, f64, f64)>,
    /// Number of steps to be made one by one, as one of them was found to be disturbed.
    pub(super) singly: u64,
}

impl Claims {
    /// Monitors of a run; independence is followed if there are at least `followed` constraints.
    pub(super) fn new(
        treatment: MethodTreatment,
        system: &dyn System,
        state: &StepState,
        followed: usize,
    ) -> Claims {
        let rates = Rates::new(treatment, system, |group| state.has_failed(group));
        let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.monitored_only;
        let watches = rates.claims();
        Claims {
            treatment,
            takes_back: treatment != MethodTreatment::Plain
                && rates.judges()
                && system.invariants().groups.iter().any(claimed),
            rates,
            independence: Independence::new(system).followed(followed, state.step),
            passed: None,
            next: next_look(state.step),
            surprised: false,
            watches,
            caught: Vec::with_capacity(system.invariants().count),
            singly: 0,
        }
    }
}

impl Claims {
    /// Number of steps from step `step` to the next check.
    pub(super) fn steps_to_look(&self, step: u64) -> u64 {
        self.next.min(self.independence.next()).saturating_sub(step).max(1)
    }
}

/// Step from which on to check again.
pub(crate) fn next_look(step: u64) -> u64 {
    (step / STEPS_BETWEEN_CHECKS + 1) * STEPS_BETWEEN_CHECKS
}

/// State at which claims are checked.
#[derive(Clone, Copy)]
enum At {
    State,
    /// x₁ at this time.
    Result(f64),
}

impl Engine<'_> {
    /// Store the state at which a run begins: claims were tested there before.
    pub(super) fn begin_claims(&mut self) {
        if self.claims.takes_back && self.state.tested.is_none() {
            self.state.keep_tested();
        }
    }

    /// Store the state after a reset: there is no way back to before it.
    pub(super) fn keep_tested_after_reset(&mut self) {
        if self.claims.takes_back {
            self.state.keep_tested();
        }
    }

    /// Length of a step, or of the next one.
    pub(super) fn step_length(&self) -> f64 {
        self.plan.fixed_step().unwrap_or(self.state.controller.h)
    }

    /// Largest number of steps in one block: up to the next check of independence, and few where
    /// nothing is known yet of how far a treatment moves a state.
    pub(super) fn longest_block(&self) -> u64 {
        let to_look = self.claims.independence.next().saturating_sub(self.state.step).max(1);
        match self.claims.singly {
            0 if self.claims.watches && self.state.step < FIRST_STEPS => to_look.min(FIRST_STEPS),
            0 => to_look,
            _ => 1,
        }
    }

    /// Record a configuration with dependent constraints through which the motion has gone. The run
    /// ends there, unless it is asked to go on.
    fn follow_independence<E>(&mut self) -> Result<(), Failure<E>> {
        let StepState { step, t, x, singularity, .. } = &mut *self.state;
        let at = (*step, *t, &x[..]);
        let Some(found) = self.claims.independence.follow(self.system, at, &mut self.work) else {
            return Ok(());
        };
        *singularity = singularity.nearer(found);
        self.claims.passed = Some(found);
        if found.passed { self.pass(found) } else { Ok(()) }
    }

    /// Count a singular configuration through which the motion goes, each once, or end there.
    fn pass<E>(&mut self, found: Singularity) -> Result<(), Failure<E>> {
        let Singularity { t, row, kind, .. } = found;
        if self.plan.singular == Singular::Stop {
            let constraint = self.system.invariants().row_name(row).to_string();
            return Err(Failure::Singular { t, constraint, kind });
        }
        // A state that is one is seen again from the next.
        let near = 2.0 * self.step_length().abs();
        let passages = &mut self.state.passages;
        if passages.count == 0 || (t - passages.last).abs() > near {
            *passages = Passages { count: passages.count + 1, last: t };
        }
        Ok(())
    }

    /// Disturbance of the last steps.
    fn disturbance(&self, deviations: &[f64]) -> f64 {
        self.claims.rates.disturbance(
            self.system.invariants(),
            self.innovation,
            (deviations, &self.state.terms),
        )
    }

    /// True if one of the last steps was disturbed more than those after which claims were judged.
    /// What the treatment keeps may then have changed by more than the error of a step.
    pub(super) fn is_surprised(&self, deviations: &[f64]) -> bool {
        self.claims.watches && is_novel(self.disturbance(deviations), self.state.judged)
    }

    /// Judge the claims within the step to x₁ at t₁, the state number `step`, if it was a surprise.
    pub(super) fn judge_step(&mut self, step: u64, t1: f64) {
        self.claims.singly = self.claims.singly.saturating_sub(step - self.state.step);
        self.claims.surprised = self.is_surprised(&self.deviations);
        if self.claims.surprised {
            self.state.judged = self.disturbance(&self.deviations);
            self.judge_within(t1);
        }
    }

    /// Outcome of claims that fail within the last step, if it was a surprise.
    pub(super) fn after_surprise<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        if self.claims.surprised { self.test_claims(observer) } else { Ok(None) }
    }

    /// Judge the claims at places on the way from the state to x₁ at t₁.
    fn judge_within(&mut self, t1: f64) {
        let Engine { system, state, x1, work, claims, scales, kept, plan, .. } = self;
        let squares = if kept.sizes { scales.sizes(system.vectors().count()) } else { &[] };
        let caught = &mut claims.caught;
        caught.clear();
        let found = &mut |row, rate, t| caught.push((row, rate, t));
        let step = StepEnds { from: (state.t, &state.x), to: (t1, x1), squares };
        claims.rates.varying_within(*system, step, plan.span(), work, found);
    }

    /// Check the claims at the state, if it is time; always at the end of the run.
    pub(super) fn monitor_claims<O: Observer + ?Sized>(
        &mut self,
        at_end: bool,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        self.follow_independence()?;
        let surprised =
            self.claims.surprised || surprises(self.innovation, self.system.vectors().count());
        match surprised || at_end || self.state.step >= self.claims.next {
            true => self.test_claims(observer),
            false => Ok(None),
        }
    }

    /// Check the claims at the state.
    pub(super) fn test_claims<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        self.claims.next = next_look(self.state.step);
        let nearest = self.monitor_independence();
        if nearest.is_rounding() {
            let (Singularity { t, pivot, kind, .. }, invariants) =
                (nearest, self.system.invariants());
            let constraint = invariants.row_name(nearest.row).to_string();
            return Err(Failure::Dependent { t, constraint, pivot, kind });
        }
        // A run may well end in such a configuration.
        if nearest.is_lost() && self.plan.t_end() - self.state.t > AT_THE_END * self.plan.span() {
            let passed = Singularity { passed: true, ..nearest };
            self.state.singularity = self.state.singularity.nearer(passed);
            self.pass(passed)?;
        }
        let mut caught = std::mem::take(&mut self.claims.caught);
        let outcome = match caught.is_empty() {
            true => self.test_rates((At::State, nearest), observer)?,
            false => self.conclude(&caught, nearest, observer)?,
        };
        caught.clear();
        self.claims.caught = caught;
        if outcome.is_none() && self.claims.takes_back {
            self.state.keep_tested();
        }
        Ok(outcome)
    }

    /// Outcome of a projection that does not converge: there may be a claim that it cannot meet.
    pub(super) fn excuse<O: Observer + ?Sized>(
        &mut self,
        failure: Failure<O::Error>,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let Failure::ProjectionNotConverged { t, .. } = failure else { return Err(failure) };
        if !self.claims.takes_back {
            return Err(failure);
        }
        for at in [At::State, At::Result(t)] {
            if let Some(outcome) = self.test_rates((at, Singularity::default()), observer)? {
                return Ok(Some(outcome));
            }
        }
        if all_finite(&self.x1) {
            self.judge_within(t);
            let caught = std::mem::take(&mut self.claims.caught);
            if let Some(outcome) = self.conclude(&caught, Singularity::default(), observer)? {
                return Ok(Some(outcome));
            }
        }
        Err(failure)
    }

    /// Test DF X, which is 0 for what is constant. `nearest` is how near the constraints are to
    /// being dependent there.
    fn test_rates<O: Observer + ?Sized>(
        &mut self,
        (at, nearest): (At, Singularity),
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let (t, x) = match at {
            At::State => (self.state.t, &self.state.x),
            At::Result(t1) => (t1, &self.x1),
        };
        let span = self.plan.span();
        let squares = match self.kept.sizes {
            true => self.state.scales.sizes(self.system.vectors().count()),
            false => &[],
        };
        let mut failed: Vec<(usize, f64, f64)> = Vec::new();
        let found = &mut |row, rate| failed.push((row, rate, t));
        let h = self.step_length();
        self.claims.rates.varying(self.system, (t, x), (span, h), squares, &mut self.work, found);
        if let At::Result(_) = at {
            // Where a projection does not converge, a constraint has a rate because the state is
            // off its set.
            failed.retain(|&(row, ..)| group_of(self.system, row).is_some());
        }
        self.conclude(&failed, nearest, observer)
    }

    /// React to claims that fail, each given by its row, its rate and the time.
    fn conclude<O: Observer + ?Sized>(
        &mut self,
        failed: &[(usize, f64, f64)],
        nearest: Singularity,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let Some(&(.., t)) = failed.first() else { return Ok(None) };
        let h = self.step_length();
        // A step through such a configuration ends beside it.
        let passed = self.claims.passed.filter(|passed| (t - passed.t).abs() <= 2.0 * h.abs());
        let nearest = passed.filter(|_| nearest.pivot >= DEPENDENT).unwrap_or(nearest);
        if nearest.pivot < DEPENDENT {
            let constraint = self.system.invariants().row_name(nearest.row).to_string();
            return Err(Failure::Dependent {
                t,
                constraint,
                pivot: nearest.pivot,
                kind: nearest.kind,
            });
        }
        for &(row, rate, t) in failed {
            let group = group_of(self.system, row);
            let holds = self.claims.treatment != MethodTreatment::Plain;
            match group {
                Some(group) if !self.state.has_failed(group) => {
                    let free_from =
                        self.state.tested.as_ref().filter(|_| holds).map_or(t, |tested| tested.t);
                    self.state.failed_claims.push(FailedClaim { group, t, rate, free_from });
                }
                // Another row of a group that fails here. A group that is held although it failed
                // before comes below.
                Some(_) if !holds => {}
                Some(group)
                    if self
                        .state
                        .failed_claims
                        .iter()
                        .any(|claim| claim.group == group && claim.t == t) => {}
                _ => {
                    let claim = self.system.invariants().row_name(row).to_string();
                    return Err(Failure::ClaimFails { t, claim, rate });
                }
            }
        }
        if self.claims.takes_back {
            self.state.go_back();
            observer.rewind(self.state).map_err(Failure::Observer)?;
            return Ok(Some(Outcome::ClaimFailed));
        }
        let state = &*self.state;
        self.claims.rates =
            Rates::new(self.claims.treatment, self.system, |group| state.has_failed(group));
        self.claims.watches = self.claims.rates.claims();
        // What is left may have been disturbed far less.
        self.state.judged = 0.0;
        Ok(None)
    }

    /// Record how near the constraints are to being dependent at the state.
    fn monitor_independence(&mut self) -> Singularity {
        let (t, x) = (self.state.t, &self.state.x);
        let nearest = self
            .claims
            .independence
            .nearest(self.system, (t, x), &mut self.work)
            .unwrap_or_default();
        self.state.singularity = self.state.singularity.nearer(nearest);
        nearest
    }

    /// Singular configuration of the constraints near which the state is.
    pub(super) fn near_singularity(&mut self) -> Option<Singularity> {
        let (t, x) = (self.state.t, &self.state.x);
        let nearest = self.claims.independence.nearest(self.system, (t, x), &mut self.work);
        nearest.filter(|nearest| match nearest.kind {
            // An eigenvalue is as small as an angle, of which pivots are squares; steps collapse
            // well before it vanishes.
            SingularityKind::Cancelling => nearest.pivot < 10.0 * NEARLY_DEPENDENT.sqrt(),
            _ => nearest.pivot < NEARLY_DEPENDENT,
        })
    }

    /// Culprit of a collapsed step at the state: a constraint that is nearly dependent, or the
    /// vector with the largest error in an attempt of the length `h`.
    pub(super) fn culprit(&mut self, h: f64) -> Culprit {
        if let Some(Singularity { row, pivot, kind, .. }) = self.near_singularity() {
            return Culprit::Constraint {
                name: self.system.invariants().row_name(row).to_string(),
                pivot,
                kind,
            };
        }
        self.measure_attempt(h);
        let relative = |vector: usize| match self.errors[vector]
            / self.state.scales.norms[vector].max(f64::MIN_POSITIVE)
        {
            error if error.is_nan() => f64::INFINITY,
            error => error,
        };
        let worst = (0..self.errors.len()).max_by(|&a, &b| relative(a).total_cmp(&relative(b)));
        let name = worst.map_or(String::new(), |vector| self.system.vector_name(vector));
        match worst.is_some_and(|vector| self.state.scales.norms[vector] == 0.0) {
            true => Culprit::New { name },
            false => Culprit::Vector { name },
        }
    }
}
