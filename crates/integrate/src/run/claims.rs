//! Claims monitored along a run: a claimed integral, and what a treatment holds, must be constant along the motion, and
//! the constraints must determine their forces.
//!
//! Both are checked now and then, at states of the run. Tests at a run's start see random points of the constraint set;
//! a wall or a pulse that is met later only shows here. A claimed integral that fails is no longer held: the run goes
//! back to the last state at which it passed ([`StepState::tested`]), so that nothing is left of the steps that were
//! pushed towards it, and ends there with [`Outcome::ClaimFailed`] for a system that leaves it out. A constraint that
//! fails ends the run.
//!
//! [`StepState::tested`]: crate::state::StepState::tested

use super::independence::Independence;
use super::{Engine, Outcome};
use crate::failure::{Culprit, Failure};
use crate::method::MethodTreatment;
use crate::observer::Observer;
use crate::scales::{Role, Vectors, square};
use crate::state::{FailedClaim, NEARLY_DEPENDENT, Singularity, StepState};
use crate::system::{ConstraintRates, Group, GroupKind, Invariants, System, all_finite};
use crate::treatment::correction::largest_innovation;

/// Number of steps between two checks, each of which costs a field and a Jacobian.
pub(crate) const STEPS_BETWEEN_LOOKS: u64 = 64;

/// Part of its cancelling terms above which a rate is not rounding, also where forces of constraint are
/// ill-conditioned.
const FALSE: f64 = 1e-5;

/// Part of the change by the fastest of its kind up to which a rate is rounding: a velocity that is 0 comes out as the
/// rounding of others.
const NOTHING: f64 = 1e-9;

/// Part of an invariant's terms up to which its change in a step is rounding: at rest, where the forces cancel, all
/// velocities and accelerations are rounding, and there is no other to compare them with.
pub(super) const UNSEEN: f64 = 1e3 * f64::EPSILON;

/// Factor up to which a rate is rounding, relative to its change if the state is moved by a few roundings.
const NOISES: f64 = 16.0;

/// Part of its size by which a state is moved to measure the rounding of its motion.
const ROUNDINGS: f64 = 64.0 * f64::EPSILON;

/// Distance from the constraint set, as a part of the constraints' terms, up to which rates are judged where no
/// treatment keeps the motion on the set: an integral of the set alone varies off it.
const ON_SET: f64 = 1e-8;

/// Relative difference of a rate in time before and after from which on it is that of a jump, not of a motion.
const JUMP: f64 = 1e-3;

/// Ratio of an innovation to the largest plausible one from which on claims are checked at once.
const SURPRISE: f64 = 10.0;

/// Pivot below which rounding decides the force of a constraint, and with it the rate of every claim.
const DEPENDENT: f64 = 1e-6;

/// True if a correction with this squared innovation, of a state of `vectors` vectors, asks for a check of claims.
pub(crate) fn surprises(innovation: f64, vectors: usize) -> bool {
    innovation > (SURPRISE * largest_innovation(vectors)).powi(2)
}

/// Set every component to the largest rate of its kind or, if that is more, to the rate of the fastest kind relative to
/// its size, times its own size: where a motion turns round, what is at rest has the rounding of what is not. `squares`
/// are σ² of the vectors, empty if unknown.
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
    /// Result for every component.
    speeds: Vec<f64>,
}

impl Noise {
    fn new(n: usize) -> Noise {
        Noise { x: vec![0.0; n], field: vec![0.0; n], speeds: vec![0.0; n] }
    }

    /// Compute by how much the field at (t, x), which is `field`, changes if x is moved by a few roundings, and if it
    /// is moved by the effect of that change in `time`; for every component the largest of its kind. True if there is a
    /// finite field there.
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
                // Any direction without a symmetry will do.
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
    /// Rows that are judged.
    judged: Vec<bool>,
    /// True if the motion may leave the constraint set.
    may_leave: bool,
    /// True if feedback or a projection holds what is judged.
    pulls: bool,
    rates: ConstraintRates,
    jacobian: Vec<f64>,
    field: Vec<f64>,
    /// Largest rate of its kind, for every component.
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
    /// Rates for judging what a run with this treatment claims of `system`: everything that a treatment of results
    /// holds, and claimed integrals in any case. Groups that have `failed` are left out if nothing holds them.
    pub fn new(treatment: MethodTreatment, system: &dyn System, failed: impl Fn(usize) -> bool) -> Rates {
        let invariants = system.invariants();
        // The field of feedback contains the pull, whose purpose is such a rate.
        let holds = treatment.moves_the_state();
        let mut judged = vec![false; invariants.count];
        for (k, group) in invariants.groups.iter().enumerate() {
            let claimed = group.kind == GroupKind::Integral;
            // A group that is held although it has failed is an error, which is reported when it fails again.
            let open = !failed(k) || treatment != MethodTreatment::Plain;
            if !group.monitored_only && open && (holds || claimed) {
                group.members.rows().for_each(|(row, _)| judged[row] = true);
            }
        }
        if !judged.contains(&true) {
            return Rates::default();
        }
        let (n, m) = (system.dim(), invariants.count);
        Rates {
            judged,
            may_leave: !holds,
            pulls: treatment.facts().hides_failing_claims,
            rates: invariants.constraint_rates(),
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

    /// Largest number of steps in one block, so that a claim that fails for a while is noticed. Corrections show it by
    /// their innovation, projections do not; an integral that nothing holds does no harm, and its drift shows it in the
    /// end.
    pub fn longest_block(&self) -> u64 {
        match self.judges() {
            true if self.pulls => STEPS_BETWEEN_LOOKS,
            true if self.may_leave => 2 * STEPS_BETWEEN_LOOKS,
            _ => u64::MAX,
        }
    }

    /// Largest number of steps in one block of lanes, where a check costs little.
    pub fn longest_block_of_lanes(&self) -> u64 {
        if self.judges() { 2 * STEPS_BETWEEN_LOOKS } else { u64::MAX }
    }

    /// True if there is anything to judge.
    pub fn judges(&self) -> bool {
        !self.judged.is_empty()
    }

    /// Call `found` for every row that varies along the motion at (t, x), with its rate over the sum of the absolute
    /// terms. `span` is the length of the run and `h` that of a step, infinite if unknown; `squares` are σ² of the
    /// vectors, empty if unknown.
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
            return; // The next step reports a field that is not finite.
        }
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        system.invariant_values(t, x, &mut self.values, work);
        let size = |row: usize| -> f64 {
            let terms = invariants.row(row).entries().map(|(p, column)| (self.jacobian[p] * x[column]).abs());
            self.values[row].abs() + terms.sum::<f64>()
        };
        if self.may_leave {
            let off = |row: usize| invariants.row(row).count() > 0 && self.values[row].abs() > ON_SET * size(row);
            if (0..invariants.constraints).any(off) {
                return;
            }
        }
        // A row that depends on the time itself has a rate of its own.
        let step = f64::EPSILON.sqrt() * t.abs().max(span);
        system.invariant_values(t + step, x, &mut self.after, work);
        match self.after == self.values {
            true => self.before.copy_from_slice(&self.values),
            false => system.invariant_values(t - step, x, &mut self.before, work),
        }
        speeds(system.vectors(), (x, &self.field, squares), &mut self.fastest);
        // A hidden constraint counts by its effect on the constraint of which it is the rate.
        let unseen = |row: usize, rate: f64| match self.rates.constraint(row) {
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
                // The rate in time is of use for integrals only: H and what depends on it change by it.
                if !known || row < invariants.constraints || group_of(system, row).is_none() {
                    continue;
                }
                rate = (ahead + behind) / (2.0 * step);
                terms = f64::abs(rate);
            }
            for (p, column) in invariants.row(row).entries() {
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
            let entry = |(p, column): (usize, usize)| self.jacobian[p].abs() * self.noise.speeds[column];
            let noise = if known { invariants.row(row).entries().map(entry).sum::<f64>() } else { 0.0 };
            if rate > NOISES * noise {
                found(row, rate / terms);
            }
        }
    }
}

impl Rates {
    /// Mark the lanes in which [`Rates::varying`] may find a row, from the motion and from DF, if nothing depends on
    /// the time.
    pub fn suspects(&mut self, invariants: &Invariants, field: &[f64], jacobian: &[f64], suspected: &mut [bool]) {
        let lanes = suspected.len();
        let (rate, terms) = (&mut self.in_lanes.0, &mut self.in_lanes.1);
        rate.resize(lanes, 0.0);
        terms.resize(lanes, 0.0);
        for row in (0..self.judged.len()).filter(|&row| self.judged[row]) {
            rate.fill(0.0);
            terms.fill(0.0);
            for (p, column) in invariants.row(row).entries() {
                let field = &field[column * lanes..][..lanes];
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

/// Claimed integral to which a row belongs.
fn group_of(system: &dyn System, row: usize) -> Option<usize> {
    let holds = |group: &Group| group.members.rows().any(|(r, _)| r == row);
    let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.monitored_only;
    system.invariants().groups.iter().position(|group| claimed(group) && holds(group))
}

/// Monitors of claims and of independence along a run, with scratch.
pub(super) struct Claims {
    treatment: MethodTreatment,
    rates: Rates,
    independence: Independence,
    /// True if a claim that fails takes the run back.
    takes_back: bool,
    next: u64,
}

impl Claims {
    /// Monitors of a run; independence is followed if there are at least `followed` constraints.
    pub(super) fn new(treatment: MethodTreatment, system: &dyn System, state: &StepState, followed: usize) -> Claims {
        let rates = Rates::new(treatment, system, |group| state.has_failed(group));
        let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.monitored_only;
        Claims {
            treatment,
            takes_back: treatment != MethodTreatment::Plain
                && rates.judges()
                && system.invariants().groups.iter().any(claimed),
            rates,
            independence: Independence::new(system).followed(followed, state.step),
            next: next_look(state.step),
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
    (step / STEPS_BETWEEN_LOOKS + 1) * STEPS_BETWEEN_LOOKS
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

    /// Length of a step, or of the next one.
    pub(super) fn step_length(&self) -> f64 {
        self.plan.fixed_step().unwrap_or(self.state.controller.h)
    }

    /// Largest number of steps in one block.
    pub(super) fn longest_block(&self) -> u64 {
        let to_look = self.claims.independence.next().saturating_sub(self.state.step).max(1);
        self.claims.rates.longest_block().min(to_look)
    }

    /// Record a configuration with dependent constraints through which the motion has gone.
    fn follow_independence(&mut self) {
        let StepState { step, t, x, singularity, .. } = &mut *self.state;
        let at = (*step, *t, &x[..]);
        if let Some((row, t)) = self.claims.independence.follow(self.system, at, &mut self.work)
            && singularity.pivot > 0.0
        {
            *singularity = Singularity { pivot: 0.0, t, row };
        }
    }

    /// True if the last correction was larger than a step's error explains, so that a claim may be wrong.
    pub(super) fn is_surprised(&self) -> bool {
        self.claims.takes_back && surprises(self.innovation, self.system.vectors().count())
    }

    /// Check the claims at the state, if it is time; always at the end of the run.
    pub(super) fn monitor_claims<O: Observer + ?Sized>(
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

    /// Check the claims at the state.
    pub(super) fn test_claims<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        self.claims.next = next_look(self.state.step);
        let nearest = self.monitor_independence();
        let outcome = self.test_rates((At::State, nearest), observer)?;
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
        Err(failure)
    }

    /// Test DF X, which is 0 for what is constant. `nearest` is how near the constraints are to being dependent there.
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
            // Where a projection does not converge, a constraint has a rate because the state is off its set.
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
            let holds = self.claims.treatment != MethodTreatment::Plain;
            match group {
                Some(group) if !self.state.has_failed(group) => {
                    let free_from = self.state.tested.as_ref().filter(|_| holds).map_or(t, |tested| tested.t);
                    self.state.failed_claims.push(FailedClaim { group, t, rate, free_from });
                }
                // Another row of a group that fails here. A group that is held although it failed before comes below.
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

    /// Record how near the constraints are to being dependent at the state.
    fn monitor_independence(&mut self) -> Singularity {
        let (t, x) = (self.state.t, &self.state.x);
        let nearest = self.claims.independence.least_pivot(self.system, (t, x), &mut self.work);
        let nearest = nearest.map(|(row, pivot)| Singularity { pivot, t, row }).unwrap_or_default();
        if nearest.pivot < self.state.singularity.pivot {
            self.state.singularity = nearest;
        }
        nearest
    }

    /// Culprit of a collapsed step at the state: a constraint that is nearly dependent, or the vector with the largest
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
