//! Rates of invariants along a motion: DF·X, which is 0 for what is constant.
//!
//! A rate shows the truth only on the constraint set. An integral may be constant there and nowhere
//! else, and off the set a constraint changes at the rate of its hidden constraint; after a coarse
//! step a correction leaves the square of a residual. So what seems to vary is judged once more at
//! the nearest point of the set.

use crate::cost::Cost;
use crate::method::MethodTreatment;
use crate::scales::{Kept, Role, Scales, Vectors};
use crate::system::{ConstraintRates, Group, GroupKind, Invariants, System, all_finite};
use crate::treatment::correction::constraints_are_claims;
use crate::treatment::projection::Projection;
use crate::vector::irregular;
use holonome_arithmetic::square;

/// Part of its cancelling terms above which a rate is not rounding, also where forces of constraint
/// are ill-conditioned.
const FALSE: f64 = 1e-5;

/// Part of the change by the fastest of its kind up to which a rate is rounding: a velocity that is
/// 0 comes out as the rounding of others.
const NOTHING: f64 = 1e-9;

/// Part of an invariant's terms up to which its change in a step is rounding: at rest, where the
/// forces cancel, all velocities and accelerations are rounding, and there is no other to compare
/// them with.
pub(super) const UNSEEN: f64 = 1e3 * f64::EPSILON;

/// Factor up to which a rate is rounding, relative to its change if the state is moved by a few
/// roundings.
const NOISES: f64 = 16.0;

/// Part of its size by which a state is moved to measure the rounding of its motion.
const ROUNDINGS: f64 = 64.0 * f64::EPSILON;

/// Number of places within a step at which claims are judged.
const PLACES: usize = 32;

/// Least step by which a rate in time is found, in roundings of t.
const ROUNDED_STEP: f64 = 1024.0;

/// Relative difference of a rate in time before and after from which on it is that of a jump, not
/// of a motion.
const JUMP: f64 = 1e-3;

/// Set every component to the largest rate of its kind or, if that is more, to the rate of the
/// fastest kind relative to its size, times its own size: where a motion turns round, what is at
/// rest has the rounding of what is not. `squares` are σ² of the vectors, empty if unknown.
fn speeds(vectors: &Vectors, (x, field, squares): (&[f64], &[f64], &[f64]), out: &mut [f64]) {
    vectors.spread_largest(field, out);
    let size = |vector: usize| {
        let known = squares.get(vector).copied().unwrap_or(0.0);
        known.max(square(&x[vectors.components_of(vector)])).sqrt()
    };
    let kind = |role: Role| match role {
        Role::Position => Some(0),
        Role::Momentum => Some(1),
        Role::Other | Role::Beside => None,
    };
    let (mut sizes, mut fastest) = ([0.0f64; 2], 0.0f64);
    for family in vectors.families() {
        if let Some(kind) = kind(family.role) {
            family.vectors.clone().for_each(|vector| sizes[kind] = sizes[kind].max(size(vector)));
        }
    }
    let of =
        |role: Role, vector: usize| kind(role).map_or_else(|| size(vector), |kind| sizes[kind]);
    let all = || {
        vectors
            .families()
            .iter()
            .flat_map(|family| family.vectors.clone().map(|vector| (family.role, vector)))
    };
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
#[derive(Default)]
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

    /// Compute by how much the field at (t, x), which is `field`, changes if x is moved by a few
    /// roundings, and if it is moved by the effect of that change in `time`; for every component
    /// the largest of its kind. True if there is a finite field there.
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
                self.x[i] = x[i] + ROUNDINGS * size * irregular(i);
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

/// Way from a state to the constraint set, with scratch.
struct Onto {
    projection: Projection,
    /// Result.
    x: Vec<f64>,
    values: Vec<f64>,
    target: Vec<f64>,
    deviations: Vec<f64>,
    scales: Scales,
}

impl Onto {
    fn new(system: &dyn System) -> Onto {
        let invariants = system.invariants();
        let mut projection = Projection::new(system, 0.0, true);
        let others: Vec<usize> = (invariants.constraints..invariants.count).collect();
        projection.set_active(&others, false);
        let kept = Kept { sizes: true, weights: true, lagged: false };
        Onto {
            projection,
            x: vec![0.0; system.dim()],
            values: vec![0.0; invariants.count],
            target: vec![0.0; invariants.count],
            deviations: vec![0.0; invariants.groups.len()],
            scales: Scales {
                carried: vec![0.0; kept.carried(system.vectors())],
                ..Scales::default()
            },
        }
    }

    /// Move from `x` to the constraint set, each vector as easily as it is large; true if the set
    /// is reached to round-off.
    fn reach(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        h: f64,
        squares: &[f64],
        work: &mut [f64],
    ) -> bool {
        let vectors = system.vectors();
        let count = vectors.count();
        self.x.copy_from_slice(x);
        let (sizes, weights) = self.scales.carried.split_at_mut(count);
        vectors.squares(x, sizes);
        for (size, known) in sizes.iter_mut().zip(squares) {
            *size = size.max(*known);
        }
        weights.copy_from_slice(sizes);
        vectors.raise_least(weights);
        let (x, values, deviations) = (&mut self.x, &mut self.values, &mut self.deviations);
        let at = ((t, h), &self.target[..], &self.scales);
        self.projection.apply(system, at, x, values, deviations, work, &mut Cost::default()).is_ok()
    }
}

/// A step from one state to another.
pub struct StepEnds<'a> {
    /// Time and state at its start.
    pub from: (f64, &'a [f64]),
    /// Time and state at its end.
    pub to: (f64, &'a [f64]),
    /// σ² of the vectors, empty if they are not kept.
    pub squares: &'a [f64],
}

/// Rates of invariants along a motion, with scratch.
#[derive(Default)]
pub struct Rates {
    /// Rows that are judged.
    judged: Vec<bool>,
    /// True if one of them is a claim about the motion, not a consequence of how its field was
    /// derived.
    claims: bool,
    /// True if a treatment moves results.
    moves: bool,
    rates: ConstraintRates,
    /// Way to the constraint set. Without claims it is seldom needed, and made then.
    onto: Option<Box<Onto>>,
    /// A state within a step, and the fields at its ends.
    within: [Vec<f64>; 3],
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
    /// Rates for judging what a run with this treatment claims of `system`: everything that a
    /// treatment of results holds, and claimed integrals in any case. Groups that have `failed` are
    /// left out if nothing holds them.
    pub fn new(
        treatment: MethodTreatment,
        system: &dyn System,
        failed: impl Fn(usize) -> bool,
    ) -> Rates {
        let invariants = system.invariants();
        // The field of feedback contains the pull, whose purpose is such a rate.
        let holds = treatment.moves_the_state();
        let mut judged = vec![false; invariants.count];
        for (k, group) in invariants.groups.iter().enumerate() {
            let claimed = group.kind == GroupKind::Integral;
            // A group that is held although it has failed is an error, which is reported when it
            // fails again.
            let open = !failed(k) || treatment != MethodTreatment::Plain;
            if !group.monitored_only && open && (holds || claimed) {
                group.members.rows().for_each(|(row, _)| judged[row] = true);
            }
        }
        if !judged.contains(&true) {
            return Rates::default();
        }
        let (n, m) = (system.dim(), invariants.count);
        let claims =
            judged.iter().enumerate().any(|(row, judged)| *judged && is_claim(system, row));
        Rates {
            claims,
            moves: holds,
            judged,
            rates: invariants.constraint_rates(),
            onto: (claims && invariants.constraints > 0).then(|| Box::new(Onto::new(system))),
            within: std::array::from_fn(|_| vec![0.0; n]),
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

    /// True if there is anything to judge.
    pub fn judges(&self) -> bool {
        !self.judged.is_empty()
    }

    /// True if there is a claim about the motion among what is judged: an integral, or a constraint
    /// of a vector field. Constraints of a Hamiltonian and H itself are constant because the field
    /// was made so.
    pub fn claims(&self) -> bool {
        self.claims
    }

    /// Largest disturbance of some steps: how far a treatment moved a result, given by the square
    /// of its innovation, or, where none does, how far claimed integrals have left their targets,
    /// given by the groups' deviations and the scales of their terms.
    pub fn disturbance(
        &self,
        invariants: &Invariants,
        innovation: f64,
        (deviations, terms): (&[f64], &[f64]),
    ) -> f64 {
        if self.moves {
            return innovation.sqrt();
        }
        let is_judged = |group: &Group| {
            let judged = |(row, _): (usize, f64)| self.judged.get(row).copied().unwrap_or(false);
            group.kind == GroupKind::Integral && group.members.rows().next().is_some_and(judged)
        };
        let relative = |((group, deviation), terms): ((&Group, &f64), &f64)| match deviation / terms
        {
            relative if *terms > 0.0 && is_judged(group) => relative,
            _ => 0.0,
        };
        invariants.groups.iter().zip(deviations).zip(terms).map(relative).fold(0.0, f64::max)
    }

    /// Call `found` for every row that varies along the motion at (t, x), or at the point of the
    /// constraint set that is nearest to x, with its rate over the sum of the absolute terms.
    /// `span` is the length of the run and `h` that of a step, infinite if unknown; `squares` are
    /// σ² of the vectors, empty if unknown. Nothing is found where no way leads to the set.
    pub fn varying(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        (span, h): (f64, f64),
        squares: &[f64],
        work: &mut [f64],
        found: &mut dyn FnMut(usize, f64),
    ) {
        if !self.judges() {
            return;
        }
        self.doubt(system, (t, x), (span, h), squares, work);
        if self.doubted.is_empty() {
            return;
        }
        if system.invariants().constraints == 0 {
            return self.confirm(system, (t, x), (span, h), squares, work, found);
        }
        let mut onto = self.onto.take().unwrap_or_else(|| Box::new(Onto::new(system)));
        if onto.reach(system, (t, x), h, squares, work) {
            self.doubt(system, (t, &onto.x), (span, h), squares, work);
            self.confirm(system, (t, &onto.x), (span, h), squares, work, found);
        }
        self.onto = Some(onto);
    }

    /// Call `found` for the rows that vary at the first of some places within a step from one state
    /// to another, with their rates, as [`Rates::varying`], and the time. The way is a cubic
    /// polynomial, from fields at both ends.
    pub fn varying_within(
        &mut self,
        system: &dyn System,
        StepEnds { from: (t0, x0), to: (t1, x1), squares }: StepEnds,
        span: f64,
        work: &mut [f64],
        found: &mut dyn FnMut(usize, f64, f64),
    ) {
        let h = t1 - t0;
        let [mut x, mut start, mut end] = std::mem::take(&mut self.within);
        let known = |(slope, t, x): (&mut Vec<f64>, f64, &[f64]), work: &mut [f64]| {
            system.motion(t, x, slope, work) && all_finite(slope)
        };
        let mut fails = !known((&mut start, t0, x0), work) || !known((&mut end, t1, x1), work);
        for place in (0..PLACES).map(|place| (place as f64 + 0.5) / PLACES as f64) {
            if fails {
                break;
            }
            let rest = 1.0 - place;
            let [a, b] = [rest * rest * (1.0 + 2.0 * place), place * place * (1.0 + 2.0 * rest)];
            let [c, d] = [h * place * rest * rest, -h * place * place * rest];
            for (i, x) in x.iter_mut().enumerate() {
                *x = a * x0[i] + b * x1[i] + c * start[i] + d * end[i];
            }
            let t = place.mul_add(h, t0);
            let found = &mut |row, rate| {
                fails = true;
                found(row, rate, t);
            };
            self.varying(system, (t, &x), (span, h.abs()), squares, work, found);
        }
        self.within = [x, start, end];
    }

    /// Collect the rows that seem to vary along the motion at (t, x).
    fn doubt(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        (span, h): (f64, f64),
        squares: &[f64],
        work: &mut [f64],
    ) {
        self.doubted.clear();
        let invariants = system.invariants();
        if !system.motion(t, x, &mut self.field, work) || !all_finite(&self.field) {
            return; // The next step reports a field that is not finite.
        }
        system.invariant_jacobian(t, x, &mut self.jacobian, work);
        system.invariant_values(t, x, &mut self.values, work);
        let size = |row: usize| -> f64 {
            let terms = invariants
                .row(row)
                .entries()
                .map(|(p, column)| (self.jacobian[p] * x[column]).abs());
            self.values[row].abs() + terms.sum::<f64>()
        };
        // A row that depends on the time itself has a rate of its own.
        let step = (f64::EPSILON.sqrt() * span).max(ROUNDED_STEP * f64::EPSILON * t.abs());
        // As long as they are after rounding.
        let (later, earlier) = (t + step, t - step);
        let (ahead_by, behind_by) = (later - t, t - earlier);
        system.invariant_values(later, x, &mut self.after, work);
        match self.after == self.values {
            true => self.before.copy_from_slice(&self.values),
            false => system.invariant_values(earlier, x, &mut self.before, work),
        }
        speeds(system.vectors(), (x, &self.field, squares), &mut self.fastest);
        // A hidden constraint counts by its effect on the constraint of which it is the rate.
        let unseen = |row: usize, rate: f64| match self.rates.constraint(row) {
            Some(constraint) => rate * h * h <= UNSEEN * size(constraint),
            None => rate * h <= UNSEEN * size(row),
        };
        for row in (0..invariants.count).filter(|&row| self.judged[row]) {
            let (mut rate, mut terms, mut fastest, mut noise) = (0.0, 0.0, 0.0, 0.0);
            let (behind, ahead) =
                (self.values[row] - self.before[row], self.after[row] - self.values[row]);
            if behind != 0.0 || ahead != 0.0 {
                noise = 4.0 * f64::EPSILON * size(row) / step;
                let (ahead, behind) = (ahead / ahead_by, behind / behind_by);
                let known = (ahead - behind).abs() <= noise + JUMP * (ahead.abs() + behind.abs());
                // The rate in time is of use for integrals only: H and what depends on it change by
                // it.
                if !known || row < invariants.constraints || group_of(system, row).is_none() {
                    continue;
                }
                rate = 0.5 * (ahead + behind);
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
    }

    /// Call `found` for the rows that [`Rates::doubt`] has collected at (t, x), but for those whose
    /// rates are rounding.
    fn confirm(
        &mut self,
        system: &dyn System,
        (t, x): (f64, &[f64]),
        (span, h): (f64, f64),
        squares: &[f64],
        work: &mut [f64],
        found: &mut dyn FnMut(usize, f64),
    ) {
        if self.doubted.is_empty() {
            return;
        }
        let invariants = system.invariants();
        let time = if h > 0.0 && h < span { h } else { span };
        let known = self.noise.find(system, (t, x, &self.field), (time, squares), work);
        for &(row, rate, terms) in &self.doubted {
            let entry =
                |(p, column): (usize, usize)| self.jacobian[p].abs() * self.noise.speeds[column];
            let noise =
                if known { invariants.row(row).entries().map(entry).sum::<f64>() } else { 0.0 };
            if rate > NOISES * noise {
                found(row, rate / terms);
            }
        }
    }
}

impl Rates {
    /// Mark the lanes in which [`Rates::varying`] may find a row, from the motion and from DF, if
    /// nothing depends on the time.
    pub fn suspects(
        &mut self,
        invariants: &Invariants,
        field: &[f64],
        jacobian: &[f64],
        suspected: &mut [bool],
    ) {
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

/// True if a row may vary along the motion in spite of how the field was derived.
fn is_claim(system: &dyn System, row: usize) -> bool {
    let is_constraint = row < system.invariants().constraints;
    group_of(system, row).is_some() || (is_constraint && constraints_are_claims(system.vectors()))
}

/// Claimed integral to which a row belongs.
pub(super) fn group_of(system: &dyn System, row: usize) -> Option<usize> {
    let holds = |group: &Group| group.members.rows().any(|(r, _)| r == row);
    let claimed = |group: &Group| group.kind == GroupKind::Integral && !group.monitored_only;
    system.invariants().groups.iter().position(|group| claimed(group) && holds(group))
}
