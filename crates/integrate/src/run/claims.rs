//! Claims watched along a run: a claimed integral, and what a treatment holds, must be constant along the motion, and the
//! constraints must determine their forces.
//!
//! Both are looked at now and then, at states that the run has come to. Tests at a run's start see random points of the
//! constraint set; a wall or a pulse that is met later only shows here. A claimed integral that fails is not held any
//! more: the run goes back to the last state at which it passed ([`StepState::tested`]), so that nothing is left of the
//! steps that were pushed towards it, and ends there with [`Outcome::ClaimFailed`] for a system that leaves it out. A
//! constraint that fails ends the run.
//!
//! [`StepState::tested`]: crate::state::StepState::tested

use super::independence::Independence;
use super::{Engine, Outcome};
use crate::failure::{Culprit, Failure};
use crate::method::Treatment;
use crate::observer::Observer;
use crate::scales::{Role, Vectors, square};
use crate::state::{FailedClaim, NEARLY_DEPENDENT, Singularity, StepState};
use crate::system::{Group, GroupKind, Invariants, System, all_finite};
use crate::treatment::correction::largest_innovation;

/// Steps between two looks, of which each costs a field and a Jacobian.
pub(crate) const STEPS_BETWEEN_LOOKS: u64 = 64;

/// A rate above this part of the terms that cancel in it is no rounding, also where forces of constraint are
/// ill-conditioned.
const FALSE: f64 = 1e-5;

/// Nor is one above this part of what the fastest of its kind would change: a velocity that is 0 comes out as the rounding
/// of others.
const NOTHING: f64 = 1e-9;

/// Nor is one that changes an invariant by less than this part of its terms in a step: at rest, where the forces cancel, all
/// velocities and accelerations are rounding, and there is no other to compare them with.
pub(super) const UNSEEN: f64 = 1e3 * f64::EPSILON;

/// Nor is one that is not larger than so many times what it changes by where the state is moved by a few roundings.
const NOISES: f64 = 16.0;

/// Part of its size by which a state is moved to see the rounding of its motion.
const ROUNDINGS: f64 = 64.0 * f64::EPSILON;

/// Where no treatment keeps the motion on the constraint set, rates are judged only as near to it as this part of the
/// constraints' terms: an integral of the set alone varies off it.
const ON_SET: f64 = 1e-8;

/// A rate in time that differs by more than this part before and after is that of a jump, not of a motion.
const JUMP: f64 = 1e-3;

/// An innovation this many times beyond what is believed asks for a look at once.
const SURPRISE: f64 = 10.0;

/// A pivot below this belongs to a constraint whose force rounding decides, and with it the rate of every claim.
const DEPENDENT: f64 = 1e-6;

/// Whether a correction with this square of an innovation, of a state of `vectors` vectors, asks for a look at claims.
pub(crate) fn surprises(innovation: f64, vectors: usize) -> bool {
    innovation > (SURPRISE * largest_innovation(vectors)).powi(2)
}

/// Gives every component the largest rate of its kind, or what its size and the fastest kind beside its size make of one:
/// where a motion turns round, what is at rest has the rounding of what is not. `squares` are σ² of the vectors, nothing
/// where that is not known.
fn speeds(vectors: &Vectors, (x, field, squares): (&[f64], &[f64], &[f64]), out: &mut [f64]) {
    vectors.spread_largest(field, out);
    let size = |vector: usize| {
        let known = squares.get(vector).copied().unwrap_or(0.0);
        known.max(square(&x[vectors.components_of(vector)])).sqrt()
    };
    let kind = |role: Role| match role {
        Role::Position => Some(0),
        Role::Momentum => Some(1),
        Role::Other => None,
    };
    let (mut sizes, mut fastest) = ([0.0f64; 2], 0.0f64);
    for family in vectors.families() {
        if let Some(kind) = kind(family.role) {
            family.vectors.clone().for_each(|vector| sizes[kind] = sizes[kind].max(size(vector)));
        }
    }
    let of = |role: Role, vector: usize| kind(role).map_or_else(|| size(vector), |kind| sizes[kind]);
    let all =
        || vectors.families().iter().flat_map(|family| family.vectors.clone().map(|vector| (family.role, vector)));
    for (role, vector) in all() {
        let (size, speed) = (of(role, vector), out[vectors.components_of(vector).start]);
        if size > 0.0 {
            fastest = fastest.max(speed / size);
        }
    }
    for (role, vector) in all() {
        let least = fastest * of(role, vector);
        out[vectors.components_of(vector)].iter_mut().for_each(|speed| *speed = speed.max(least));
    }
}

/// Rounding of a motion, with scratch.
#[derive(Clone, Debug, Default)]
struct Noise {
    x: Vec<f64>,
    field: Vec<f64>,
    /// What was found for every component.
    speeds: Vec<f64>,
}

impl Noise {
    fn new(n: usize) -> Noise {
        Noise { x: vec![0.0; n], field: vec![0.0; n], speeds: vec![0.0; n] }
    }

    /// Finds by how much the field at (t, x), which is `field`, changes where x is moved by a few roundings, and where it is
    /// moved by what that makes of it in `time`; of every component the largest of its kind. Whether there is a field
    /// there.
    fn find(
        &mut self,
        system: &dyn System,
        (t, x, field): (f64, &[f64], &[f64]),
        (time, squares): (f64, &[f64]),
        work: &mut [f64],
    ) -> bool {
        let vectors = system.vectors();
        for vector in 0..vectors.count() {
            let at = vectors.components_of(vector);
            let known = squares.get(vector).copied().unwrap_or(0.0);
            let size = known.max(square(&x[at.clone()])).sqrt();
            for i in at {
                // Any direction will do that no symmetry has.
                let part = ((i + 1) as f64 * 0.618_033_988_749_894_9).fract() - 0.5;
                self.x[i] = x[i] + ROUNDINGS * size * (part + 0.5f64.copysign(part));
            }
        }
        if !system.motion(t, &self.x, &mut self.field, work) {
            return false;
        }
        for i in 0..x.len() {
            self.speeds[i] = self.field[i] - field[i];
            self.x[i] = x[i] + time * self.speeds[i];
        }
        if !system.motion(t, &self.x, &mut self.field, work) {
            return false;
        }
        for i in 0..x.len() {
            self.x[i] = self.speeds[i].abs().max((self.field[i] - field[i]).abs());
        }
        vectors.spread_largest(&self.x, &mut self.speeds);
        all_finite(&self.speeds)
    }
}

/// Rates of invariants along a motion, with scratch.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// The rows that are judged.
    judged: Vec<bool>,
    /// Whether the motion may leave the constraint set.
    may_leave: bool,
    /// Whether feedback or a projection holds what is judged.
    pulls: bool,
    /// The constraint that each row is the rate of.
    constraint_of: Vec<Option<usize>>,
    jacobian: Vec<f64>,
    field: Vec<f64>,
    /// For every component the largest rate of its kind.
    fastest: Vec<f64>,
    values: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
    noise: Noise,
    /// Rows that seem to vary, with their rates and terms.
    doubted: Vec<(usize, f64, f64)>,
    /// Rates and terms of a row in lanes.
    in_lanes: (Vec<f64>, Vec<f64>),
}

impl Rates {
    /// For judging what a run with this treatment claims of `system`, but for the groups that `failed` says have failed:
    /// everything that a treatment of results holds, and claimed integrals in any case.
    pub fn new(treatment: Treatment, system: &dyn System, failed: impl Fn(usize) -> bool) -> Rates {
        let invariants = system.invariants();
        // The field of feedback has the pull in it, whose rates are what it is for.
        let holds = !matches!(treatment, Treatment::Plain | Treatment::Feedback);
        let mut judged = vec![false; invariants.count];
        for (k, group) in invariants.groups.iter().enumerate() {
            let claimed = group.kind == GroupKind::Integral;
            // What is held although it has failed is an error, which is said where it fails again.
            let open = !failed(k) || treatment != Treatment::Plain;
            if !group.watched_only && open && (holds || claimed) {
                group.members.iter().flatten().for_each(|&(row, _)| judged[row as usize] = true);
            }
        }
        if !judged.contains(&true) {
            return Rates::default();
        }
        let (n, m) = (system.dim(), invariants.count);
        Rates {
            judged,
            may_leave: !holds,
            pulls: matches!(treatment, Treatment::Feedback | Treatment::Projection),
            constraint_of: invariants.constraints_of_rates(),
            jacobian: vec![0.0; invariants.nonzeros()],
            field: vec![0.0; n],
            fastest: vec![0.0; n],
            values: vec![0.0; m],
            before: vec![0.0; m],
            after: vec![0.0; m],
            noise: Noise::new(n),
            doubted: Vec::with_capacity(m),
            in_lanes: Default::default(),
        }
    }

    /// How many steps may be made in one block, so that a claim that fails for a while is seen to. Corrections tell by
    /// their innovation, projections do not; what nothing holds does no harm, and its drift tells in the end.
    pub fn longest_block(&self) -> u64 {
        match self.judges() {
            true if self.pulls => STEPS_BETWEEN_LOOKS,
            true if self.may_leave => 2 * STEPS_BETWEEN_LOOKS,
            _ => u64::MAX,
        }
    }

    /// The same of lanes, where a look takes little.
    pub fn longest_block_of_lanes(&self) -> u64 {
        if self.judges() { 2 * STEPS_BETWEEN_LOOKS } else { u64::MAX }
    }

    /// Whether there is anything to be judged.
    pub fn judges(&self) -> bool {
        !self.judged.is_empty()
    }

    /// Gives every row that varies along the motion at (t, x), with its rate over the sum of the absolute terms. `span` is
    /// the length of the run and `h` that of a step, infinite where nobody knows it; `squares` are σ² of the vectors where
    /// that is known.
    pub fn varying(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        (span, h): (f64, f64),
        squares: &[f64],
        work: &mut [f64],
        found: &mut dyn FnMut(usize, f64),
    ) {
        let invariants = system.invariants();
        if !self.judges() || !system.motion(t, x, &mut self.field, work) || !all_finite(&self.field) {
            return; // A field that is not finite is what the next step says.
        }
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        system.invariant_values(t, x, &mut self.values, work);
        let size = |row: usize| -> f64 {
            let terms = invariants.row(row).map(|p| (self.jacobian[p] * x[invariants.column[p] as usize]).abs());
            self.values[row].abs() + terms.sum::<f64>()
        };
        if self.may_leave {
            let off = |row: usize| !invariants.row(row).is_empty() && self.values[row].abs() > ON_SET * size(row);
            if (0..invariants.constraints).any(off) {
                return;
            }
        }
        // What depends on the time itself has a rate of its own.
        let step = f64::EPSILON.sqrt() * t.abs().max(span);
        system.invariant_values(t + step, x, &mut self.after, work);
        match self.after == self.values {
            true => self.before.copy_from_slice(&self.values),
            false => system.invariant_values(t - step, x, &mut self.before, work),
        }
        speeds(system.vectors(), (x, &self.field, squares), &mut self.fastest);
        // Of a hidden constraint, by what it does to the constraint that it is the rate of.
        let unseen = |row: usize, rate: f64| match self.constraint_of[row] {
            Some(constraint) => rate * h * h <= UNSEEN * size(constraint),
            None => rate * h <= UNSEEN * size(row),
        };
        self.doubted.clear();
        for row in (0..invariants.count).filter(|&row| self.judged[row]) {
            let (mut rate, mut terms, mut fastest, mut noise) = (0.0, 0.0, 0.0, 0.0);
            let (behind, ahead) = (self.values[row] - self.before[row], self.after[row] - self.values[row]);
            if behind != 0.0 || ahead != 0.0 {
                noise = 4.0 * f64::EPSILON * size(row) / step;
                let bend = (ahead - behind).abs() / step;
                let known = bend <= noise + JUMP * (ahead.abs() + behind.abs()) / step;
                // Only of integrals the rate in time is of use: H and what depends on it change by it.
                if !known || row < invariants.constraints || group_of(system, row).is_none() {
                    continue;
                }
                rate = (ahead + behind) / (2.0 * step);
                terms = f64::abs(rate);
            }
            for p in invariants.row(row) {
                let column = invariants.column[p] as usize;
                let term = self.jacobian[p] * self.field[column];
                rate += term;
                terms += term.abs();
                fastest += self.jacobian[p].abs() * self.fastest[column];
            }
            let seen = rate.abs() > FALSE * terms + noise && rate.abs() > NOTHING * fastest;
            if seen && !unseen(row, rate.abs()) {
                self.doubted.push((row, rate.abs(), terms));
            }
        }
        if self.doubted.is_empty() {
            return;
        }
        let time = if h > 0.0 && h < span { h } else { span };
        let known = self.noise.find(system, (t, x, &self.field), (time, squares), work);
        for &(row, rate, terms) in &self.doubted {
            let entry = |p: usize| self.jacobian[p].abs() * self.noise.speeds[invariants.column[p] as usize];
            let noise = if known { invariants.row(row).map(entry).sum::<f64>() } else { 0.0 };
            if rate > NOISES * noise {
                found(row, rate / terms);
            }
        }
    }
}

impl Rates {
    /// In lanes, where nothing depends on the time: marks those in which [`Rates::varying`] may find a row, from the motion
    /// and from DF.
    pub fn suspects(&mut self, invariants: &Invariants, field: &[f64], jacobian: &[f64], suspected: &mut [bool]) {
        let lanes = suspected.len();
        let (rate, terms) = (&mut self.in_lanes.0, &mut self.in_lanes.1);
        rate.resize(lanes, 0.0);
        terms.resize(lanes, 0.0);
        for row in (0..self.judged.len()).filter(|&row| self.judged[row]) {
            rate.fill(0.0);
            terms.fill(0.0);
            for p in invariants.row(row) {
                let field = &field[invariants.column[p] as usize * lanes..][..lanes];
                let entries = &jacobian[p * lanes..][..lanes];
                for (k, (entry, field)) in entries.iter().zip(field).enumerate() {
                    let term = entry * field;
                    rate[k] += term;
                    terms[k] += term.abs();
                }
            }
            for ((suspected, rate), terms) in suspected.iter_mut().zip(&*rate).zip(&*terms) {
                let fine = rate.abs() <= FALSE * terms;
                *suspected |= !fine;
            }
        }
    }
}

/// The claimed integral that a row belongs to.
fn group_of(system: &dyn System, row: usize) -> Option<usize> {
    let holds = |group: &Group| group.members.iter().flatten().any(|&(r, _)| r as usize == row);
    let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.watched_only;
    system.invariants().groups.iter().position(|group| claimed(group) && holds(group))
}

/// What is watched along a run, with scratch.
pub(super) struct Claims {
    treatment: Treatment,
    rates: Rates,
    independence: Independence,
    /// Whether a claim that fails takes the run back.
    takes_back: bool,
    next: u64,
}

impl Claims {
    /// The independence of at least `followed` constraints is followed.
    pub(super) fn new(treatment: Treatment, system: &dyn System, state: &StepState, followed: usize) -> Claims {
        let rates = Rates::new(treatment, system, |group| state.has_failed(group));
        let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.watched_only;
        Claims {
            treatment,
            takes_back: treatment != Treatment::Plain
                && rates.judges()
                && system.invariants().groups.iter().any(claimed),
            rates,
            independence: Independence::new(system).followed(followed, state.step),
            next: next_look(state.step),
        }
    }
}

impl Claims {
    /// Steps from step `step` to the next look.
    pub(super) fn steps_to_look(&self, step: u64) -> u64 {
        self.next.min(self.independence.next()).saturating_sub(step).max(1)
    }
}

/// The step from which on to look again.
pub(crate) fn next_look(step: u64) -> u64 {
    (step / STEPS_BETWEEN_LOOKS + 1) * STEPS_BETWEEN_LOOKS
}

/// Where claims are looked at.
#[derive(Clone, Copy)]
enum At {
    State,
    /// x₁ at this time.
    Result(f64),
}

impl Engine<'_> {
    /// Keeps the state at which a run begins: claims were tested there before.
    pub(super) fn begin_claims(&mut self) {
        if self.claims.takes_back && self.state.tested.is_none() {
            self.state.keep_tested();
        }
    }

    /// Length of a step, or of the next one.
    pub(super) fn step_length(&self) -> f64 {
        self.plan.fixed_step().unwrap_or(self.state.controller.h)
    }

    /// How many steps may be made in one block.
    pub(super) fn longest_block(&self) -> u64 {
        let to_look = self.claims.independence.next().saturating_sub(self.state.step).max(1);
        self.claims.rates.longest_block().min(to_look)
    }

    /// Notes a configuration with dependent constraints that the motion has gone through.
    fn follow_independence(&mut self) {
        let StepState { step, t, x, singularity, .. } = &mut *self.state;
        let at = (*step, *t, &x[..]);
        if let Some((row, t)) = self.claims.independence.follow(self.system, at, &mut self.work)
            && singularity.pivot > 0.0
        {
            *singularity = Singularity { pivot: 0.0, t, row };
        }
    }

    /// Whether the last correction was larger than a step's error explains, so that a claim may be wrong.
    pub(super) fn is_surprised(&self) -> bool {
        self.claims.takes_back && surprises(self.innovation, self.system.vectors().count())
    }

    /// Looks at the claims at the state, if it is time; always at the end of the run.
    pub(super) fn watch_claims<O: Observer + ?Sized>(
        &mut self,
        at_end: bool,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        self.follow_independence();
        let surprised = surprises(self.innovation, self.system.vectors().count());
        match surprised || at_end || self.state.step >= self.claims.next {
            true => self.test_claims(observer),
            false => Ok(None),
        }
    }

    /// Looks at the claims at the state.
    pub(super) fn test_claims<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        self.claims.next = next_look(self.state.step);
        let nearest = self.watch_independence();
        let outcome = self.test_rates((At::State, nearest), observer)?;
        if outcome.is_none() && self.claims.takes_back {
            self.state.keep_tested();
        }
        Ok(outcome)
    }

    /// What a projection that does not converge comes to: it may be a claim that it cannot meet.
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
        Err(failure)
    }

    /// DF X: 0 of what is constant. `nearest` says how near the constraints are to being dependent there.
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
        let mut failed: Vec<(usize, f64)> = Vec::new();
        let found = &mut |row, rate| failed.push((row, rate));
        let h = self.step_length();
        self.claims.rates.varying(self.system, (t, x), (span, h), squares, &mut self.work, found);
        if let At::Result(_) = at {
            // Where a projection does not arrive, a constraint has a rate because the state is off its set.
            failed.retain(|&(row, _)| group_of(self.system, row).is_some());
        }
        if failed.is_empty() {
            return Ok(None);
        }
        if nearest.pivot < DEPENDENT {
            let constraint = self.system.invariants().row_name(nearest.row).to_string();
            return Err(Failure::Dependent { t, constraint, pivot: nearest.pivot });
        }
        for &(row, rate) in &failed {
            let group = group_of(self.system, row);
            let holds = self.claims.treatment != Treatment::Plain;
            match group {
                Some(group) if !self.state.has_failed(group) => {
                    let free_from = self.state.tested.as_ref().filter(|_| holds).map_or(t, |tested| tested.t);
                    self.state.failed_claims.push(FailedClaim { group, t, rate, free_from });
                }
                // Another row of a group that fails here; one that is held although it failed before is below.
                Some(_) if !holds => {}
                Some(group) if self.state.failed_claims.iter().any(|claim| claim.group == group && claim.t == t) => {}
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
        self.claims.rates = Rates::new(self.claims.treatment, self.system, |group| state.has_failed(group));
        Ok(None)
    }

    /// Notes how near the constraints are to being dependent at the state.
    fn watch_independence(&mut self) -> Singularity {
        let (t, x) = (self.state.t, &self.state.x);
        let nearest = self.claims.independence.least_pivot(self.system, (t, x), &mut self.work);
        let nearest = nearest.map(|(row, pivot)| Singularity { pivot, t, row }).unwrap_or_default();
        if nearest.pivot < self.state.singularity.pivot {
            self.state.singularity = nearest;
        }
        nearest
    }

    /// What the step at the state has collapsed at: a constraint that is nearly dependent, or the vector with the largest
    /// error in an attempt of the length `h`.
    pub(super) fn culprit(&mut self, h: f64) -> Culprit {
        let (t, x) = (self.state.t, &self.state.x);
        let nearest = self.claims.independence.least_pivot(self.system, (t, x), &mut self.work);
        if let Some((row, pivot)) = nearest.filter(|(_, pivot)| *pivot < NEARLY_DEPENDENT) {
            return Culprit::Constraint { name: self.system.invariants().row_name(row).to_string(), pivot };
        }
        self.measure_attempt(h);
        let relative =
            |vector: usize| match self.errors[vector] / self.state.scales.norms[vector].max(f64::MIN_POSITIVE) {
                error if error.is_nan() => f64::INFINITY,
                error => error,
            };
        let worst = (0..self.errors.len()).max_by(|&a, &b| relative(a).total_cmp(&relative(b)));
        Culprit::Vector { name: worst.map_or(String::new(), |vector| self.system.vector_name(vector)) }
    }
}
