//! Events within a step: which functions cross zero there, where, and what is done then.
//!
//! The interpolant of a step is the step itself over a part of its length, treated like the whole:
//! it is of the method's order, meets the constraints, and is known for every method. A crossing
//! shows by the signs at both ends; two of them in one step show by the signs of the rates there,
//! which bracket an extremum.

use super::{Engine, Outcome};
use crate::events::{Action, Event, EventMemory, Events, ROUNDING, side, sign};
use crate::failure::Failure;
use crate::plan::{AdaptiveSteps, FixedSteps};
use crate::system::{GroupKind, System};

/// Part of a step below which a place is its end.
const AT_END: f64 = 1e-12;

/// Largest number of resets at one time: bodies in contact pass an impact on a few times.
const MOST_RESETS: usize = 10_000;

/// Multiple of a function's rounding by which it moves in a step, at least, if it clearly crosses.
const CLEARLY: f64 = 64.0;

/// Part of a rate before a reset below which the rate after it is rounding.
const AT_REST: f64 = 1e-12;

/// Distance from a constraint, relative to its terms, at which a reset may leave a state: the
/// rounding of formulas that a user writes, and of those that solve for impacts.
const OFF_THE_SET: f64 = 1e-9;

/// Change of an invariant by a reset, relative to its terms, that is rounding.
const UNCHANGED: f64 = 1e-12;

/// How the step was made in which events are looked for.
#[derive(Clone, Copy)]
pub(super) enum Steps<'a> {
    Fixed(&'a FixedSteps),
    Adaptive(&'a AdaptiveSteps),
}

/// A step in which events are looked for.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub steps: Steps<'a>,
    /// Its length and its end.
    pub h: f64,
    pub t1: f64,
}

/// Values of the functions at one place, and their rates.
#[derive(Clone, Default)]
struct Values {
    g: Vec<f64>,
    rates: Vec<f64>,
}

/// A crossing: the part of the step before it, and the number of its rule.
#[derive(Clone, Copy)]
struct Crossed {
    theta: f64,
    rule: usize,
}

/// Where functions of events are on both sides of a step.
pub(super) struct Watch<'a> {
    events: &'a dyn Events,
    start: Values,
    /// True if `start` belongs to the state.
    known: bool,
    end: Values,
    between: Values,
    terms: Vec<f64>,
    /// Rounding of the time at the end of the step.
    blur: f64,
    crossed: Vec<Crossed>,
    /// Rules that act at the end of a part of the step.
    due: Vec<usize>,
    work: Vec<f64>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(system: &'a dyn System) -> Option<Box<Watch<'a>>> {
        let events = system.events()?;
        let count = events.rules().len();
        let values = Values { g: vec![0.0; count], rates: vec![0.0; count] };
        Some(Box::new(Watch {
            events,
            known: false,
            start: values.clone(),
            end: values.clone(),
            between: values,
            terms: vec![0.0; count],
            blur: 0.0,
            crossed: Vec::new(),
            due: Vec::new(),
            work: vec![0.0; events.work_len()],
        }))
    }

    fn at_start(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.start;
        self.events.values(t, x, g, rates, &mut self.work);
        self.known = true;
    }

    /// Raise the terms of the functions to those at a state.
    fn raise_terms(&mut self, t: f64, x: &[f64], memories: &mut [EventMemory]) {
        self.events.terms(t, x, &mut self.terms, &mut self.work);
        for (memory, &terms) in memories.iter_mut().zip(&self.terms) {
            memory.terms = memory.terms.max(terms);
        }
    }

    fn at_end(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.end;
        self.events.values(t, x, g, rates, &mut self.work);
    }

    fn between(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.between;
        self.events.values(t, x, g, rates, &mut self.work);
    }

    /// True if something happens to a function within a step of the length `h` from `start` to
    /// `end`: it may cross zero there, or it is undefined.
    fn is_suspected(&self, memories: &[EventMemory], h: f64) -> bool {
        let functions = memories.iter().enumerate();
        functions.into_iter().any(|(rule, memory)| {
            let bend = Bend::of(memory, rule, (&self.start, &self.end));
            bend.crosses(h) || bend.dips(h) || self.end.g[rule].is_nan() || memory.side == 0
        })
    }

    /// Look at the end of the next step of a loop; true if nothing happens within it.
    pub(super) fn passes(
        &mut self,
        memories: &[EventMemory],
        h: f64,
        (t1, x1): (f64, &[f64]),
    ) -> bool {
        self.at_end(t1, x1);
        let passes = !self.is_suspected(memories, h);
        if passes {
            std::mem::swap(&mut self.start, &mut self.end);
        }
        passes
    }

    /// Take the functions at the state as those at the start of the next step, unless they are.
    pub(super) fn begin_at(&mut self, t: f64, x: &[f64]) {
        if !self.known {
            self.at_start(t, x);
        }
    }

    /// Forget where the next step starts.
    pub(super) fn forget_start(&mut self) {
        self.known = false;
    }

    /// Name of a function that is undefined at the end of the step.
    fn undefined(&self) -> Option<&str> {
        let number = self.end.g.iter().position(|g| g.is_nan())?;
        Some(&self.events.rules()[number].name)
    }
}

impl Engine<'_> {
    /// Find the sides on which a new run begins.
    pub(super) fn begin_events(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let state = &mut *self.state;
        watch.at_start(state.t, &state.x);
        if state.events.is_empty() {
            watch.events.terms(state.t, &state.x, &mut watch.terms, &mut watch.work);
            let rules = watch.events.rules().iter().enumerate();
            let begun = rules.map(|(k, rule)| {
                let at = (watch.start.g[k], watch.start.rates[k], watch.terms[k]);
                EventMemory::new(rule, state.t, at)
            });
            state.events = begun.collect();
        }
    }

    /// Look at the functions of events anew before the next step.
    pub(super) fn forget_watched(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.forget_start();
        }
    }

    /// Number of steps of a block, whose ends are the states `x` one after the other, before the
    /// first in which an event may lie; `None` if there is none in any.
    pub(super) fn steps_before_event(&mut self, fixed: &FixedSteps, x: &[f64]) -> Option<u64> {
        let watch = self.watch.as_mut()?;
        let (first, t0) = (self.state.step, self.plan.t0);
        watch.begin_at(self.state.t, &self.state.x);
        let states = x.chunks_exact(self.state.x.len()).zip(1..);
        let passes = |(x, k): (&[f64], u64)| {
            watch.passes(&self.state.events, fixed.h, (fixed.time(t0, first + k), x))
        };
        let passed = states.map(passes).take_while(|passes| *passes).count() as u64;
        let all = passed == (x.len() / self.state.x.len()) as u64;
        if !all {
            watch.forget_start();
        }
        (!all).then_some(passed)
    }

    /// Look for events in a step whose result is x₁. Those that only record are recorded. If one
    /// ends the step, x₁ becomes the state there: returns the part of the step before it.
    pub(super) fn event_within<E>(&mut self, whole: Whole) -> Result<Option<f64>, Failure<E>> {
        let Some(mut watch) = self.watch.take() else { return Ok(None) };
        let found = self.find_events(&mut watch, whole);
        self.watch = Some(watch);
        found
    }

    fn find_events<E>(
        &mut self,
        watch: &mut Watch,
        whole: Whole,
    ) -> Result<Option<f64>, Failure<E>> {
        if !watch.known {
            watch.at_start(self.state.t, &self.state.x);
        }
        watch.at_end(whole.t1, &self.x1);
        watch.blur = 8.0 * f64::EPSILON * (whole.t1.abs() + whole.h);
        if let Some(name) = watch.undefined() {
            let quantity = format!("event {name}");
            return Err(Failure::NonFinite { t: whole.t1, step: self.state.step + 1, quantity });
        }
        watch.crossed.clear();
        let mut parts = 0;
        for rule in 0..watch.events.rules().len() {
            parts += self.find_crossings(watch, whole, rule)?;
        }
        watch.crossed.sort_by(|a, b| a.theta.total_cmp(&b.theta).then(a.rule.cmp(&b.rule)));
        let mut ends = None;
        let mut first = 0;
        while first < watch.crossed.len() && ends.is_none() {
            let theta = watch.crossed[first].theta;
            let sharp = resolution(self.state.t, whole.h);
            let at_once = |crossed: &&Crossed| crossed.theta <= theta + 4.0 * sharp;
            let count = watch.crossed[first..].iter().take_while(at_once).count();
            let theta = watch.crossed[first + count - 1].theta;
            self.make_part(whole, theta)?;
            parts += 1;
            watch.due.clear();
            watch.due.extend(watch.crossed[first..first + count].iter().map(|c| c.rule));
            watch.due.sort_unstable();
            watch.due.dedup();
            let acts = |&rule: &usize| {
                let action = watch.events.rules()[rule].acts(self.state.events[rule].count + 1);
                matches!(action, Some(Action::Stop | Action::Reset))
            };
            if watch.due.iter().any(acts) {
                ends = Some(theta);
            } else {
                let t = self.part_end(whole, theta);
                for &rule in &watch.due {
                    self.record(watch, rule, (t, false));
                }
            }
            first += count;
        }
        if ends.is_none() {
            for (rule, memory) in self.state.events.iter_mut().enumerate() {
                let crossings = watch.crossed.iter().filter(|crossed| crossed.rule == rule);
                match side(watch.end.g[rule], memory.rounding()) {
                    Some(side) => memory.side = side,
                    None if crossings.count() % 2 == 1 => memory.side = -memory.side,
                    None => {}
                }
            }
            if parts > 0 {
                self.make_part(whole, 1.0)?;
            }
            std::mem::swap(&mut watch.start, &mut watch.end);
        }
        watch.known = ends.is_none();
        Ok(ends)
    }

    /// Find the crossings of one function in a step that are events. Returns the number of parts of
    /// the step that were made.
    fn find_crossings<E>(
        &mut self,
        watch: &mut Watch,
        whole: Whole,
        rule: usize,
    ) -> Result<usize, Failure<E>> {
        let side = self.state.events[rule].side;
        let crossing = watch.events.rules()[rule].crossing;
        let ends = (&watch.start, &watch.end);
        let bend = Bend::of(&self.state.events[rule], rule, ends);
        let Bend { s, g: [g0, g1], rates: [r0, r1], rounding } = bend;
        let (crosses, dips) = (bend.crosses(whole.h), bend.dips(whole.h));
        if side == 0 || !(crosses && crossing.leaves(side) || dips) {
            return Ok(0);
        }
        let mut made = 0;
        // A function that starts at a zero has another root there.
        let at_zero = g0 <= rounding;
        if crosses {
            // Without a rate the function is taken to leave its zero slowly.
            let leaving = if r0.is_nan() { -g1 } else { r0 * whole.h };
            let ends = if at_zero { [leaving, g1] } else { [g0, g1] };
            let of = Of { rule, factor: s, rate: false, zero: at_zero.then_some(0.0) };
            let theta = match ends[0] > 0.0 {
                true => self.root(watch, whole, of, [0.0, 1.0], ends, &mut made)?,
                // It rests at zero and leaves it for the other side.
                false => 0.0,
            };
            watch.crossed.push(Crossed { theta: snapped(theta), rule });
            return Ok(made);
        }
        let of = Of { rule, factor: -s, rate: true, zero: None };
        let extremum = self.root(watch, whole, of, [0.0, 1.0], [-r0, -r1], &mut made)?;
        self.make_part(whole, extremum)?;
        made += 1;
        watch.between(self.part_end(whole, extremum), &self.x1);
        let least = s * watch.between.g[rule];
        // A root of even order is none, up to the error of a step.
        let unsharp = match whole.steps {
            Steps::Fixed(_) => 1.0,
            Steps::Adaptive(adaptive) => (adaptive.rtol / ROUNDING).max(1.0),
        };
        if least.is_nan() || least >= -unsharp * rounding {
            return Ok(made);
        }
        if crossing.leaves(side) {
            let of = Of { rule, factor: s, rate: false, zero: at_zero.then_some(0.0) };
            let theta = match at_zero {
                true => 0.0,
                false => self.root(watch, whole, of, [0.0, extremum], [g0, least], &mut made)?,
            };
            watch.crossed.push(Crossed { theta: snapped(theta), rule });
        }
        if crossing.leaves(-side) {
            let of = Of { rule, factor: -s, rate: false, zero: None };
            let theta = self.root(watch, whole, of, [extremum, 1.0], [-least, -g1], &mut made)?;
            watch.crossed.push(Crossed { theta: snapped(theta), rule });
        }
        Ok(made)
    }

    /// Place in `[a, b]` where a function, positive at a with the values `ends`, becomes 0 or
    /// negative, by the method of Chandrupatla (1997): bisection, and inverse quadratic
    /// interpolation where the function allows it.
    fn root<E>(
        &mut self,
        watch: &mut Watch,
        whole: Whole,
        of: Of,
        [a, b]: [f64; 2],
        ends: [f64; 2],
        made: &mut usize,
    ) -> Result<f64, Failure<E>> {
        if ends[1] == 0.0 {
            return Ok(b);
        }
        let sharp = resolution(self.state.t, whole.h);
        let (mut one, mut two) = ((b, ends[1]), (a, ends[0]));
        let mut part = 0.5;
        loop {
            let theta = one.0 + part * (two.0 - one.0);
            self.make_part(whole, theta)?;
            *made += 1;
            watch.between(self.part_end(whole, theta), &self.x1);
            let value = (theta, of.value(&watch.between, theta));
            let three;
            if (value.1 > 0.0) == (one.1 > 0.0) {
                three = one;
            } else {
                (three, two) = (two, one);
            }
            one = value;
            let width = (one.0 - two.0).abs();
            let least = sharp / width;
            if least > 0.5 || one.1 == 0.0 {
                let beyond = if one.1 > 0.0 { two.0 } else { one.0 };
                return Ok(beyond);
            }
            let xi = (one.0 - two.0) / (three.0 - two.0);
            let phi = (one.1 - two.1) / (three.1 - two.1);
            let smooth = phi * phi < xi && (1.0 - phi).powi(2) < 1.0 - xi;
            part = if smooth {
                one.1 / (two.1 - one.1) * three.1 / (two.1 - three.1)
                    + (three.0 - one.0) / (two.0 - one.0) * one.1 / (three.1 - one.1) * two.1
                        / (three.1 - two.1)
            } else {
                0.5
            };
            part = part.clamp(least, 1.0 - least);
        }
    }

    /// Make the part of a step up to θ of its length, with its result in x₁.
    fn make_part<E>(&mut self, whole: Whole, theta: f64) -> Result<(), Failure<E>> {
        if theta == 0.0 {
            self.x1.copy_from_slice(&self.state.x);
            return Ok(());
        }
        let (h, t1) = (theta * whole.h, self.part_end(whole, theta));
        match whole.steps {
            Steps::Fixed(fixed) => self.make_equal_step(fixed, h, t1),
            Steps::Adaptive(_) => {
                self.make_attempt(h);
                self.conclude_attempt(h, t1)
            }
        }
    }

    /// Time at the part θ of a step.
    fn part_end(&self, whole: Whole, theta: f64) -> f64 {
        match whole.steps {
            _ if theta == 1.0 => whole.t1,
            Steps::Fixed(_) => theta.mul_add(whole.h, self.state.t),
            Steps::Adaptive(adaptive) => adaptive.time(theta.mul_add(whole.h, self.state.elapsed)),
        }
    }

    /// Count a crossing, and record it where it acts. Returns what it does.
    fn record(&mut self, watch: &Watch, rule: usize, (t, is_state): (f64, bool)) -> Option<Action> {
        let memory = &mut self.state.events[rule];
        memory.count += 1;
        let number = memory.count;
        let action = watch.events.rules()[rule].acts(number)?;
        let state = &mut *self.state;
        let x = if is_state { &state.x } else { &self.x1 };
        state.event_log.push(Event { rule, number, t, x: &x[..self.system.dim()] });
        Some(action)
    }

    /// Do what is due at the state, which is at the end of a part of a step.
    pub(super) fn act<E>(&mut self) -> Result<Outcome, Failure<E>> {
        let Some(mut watch) = self.watch.take() else { return Ok(Outcome::Finished) };
        let acted = self.act_on(&mut watch);
        self.watch = Some(watch);
        acted
    }

    fn act_on<E>(&mut self, watch: &mut Watch) -> Result<Outcome, Failure<E>> {
        let t = self.state.t;
        let rules = watch.events.rules();
        let mut due = std::mem::take(&mut watch.due);
        let mut came = vec![false; rules.len()];
        let (mut stops, mut resets) = (false, 0);
        watch.at_start(t, &self.state.x);
        watch.raise_terms(t, &self.state.x, &mut self.state.events);
        let before = watch.start.rates.clone();
        while !due.is_empty() {
            for &rule in &due {
                // One that was reversed by those before it has nothing left to do.
                if resets > 0 && came[rule] | !self.still_crosses(watch, rule, &before) {
                    continue;
                }
                came[rule] = true;
                match self.record(watch, rule, (t, true)) {
                    Some(Action::Stop) => stops = true,
                    Some(Action::Reset) => {
                        resets += 1;
                        let limit = match resets > MOST_RESETS {
                            true => Some(t),
                            false => self.state.events[rule].reset_at(t),
                        };
                        if let Some(limit) = limit {
                            let event = rules[rule].name.clone();
                            return Err(Failure::Accumulating { t, event, limit });
                        }
                        self.set_state(watch, rule)?;
                        watch.at_start(t, &self.state.x);
                        if self.still_crosses(watch, rule, &before) {
                            // It was not turned around, and has gone through.
                            let memory = &mut self.state.events[rule];
                            memory.side = -memory.side;
                        }
                    }
                    _ => {}
                }
            }
            let again = |&rule: &usize| {
                let repeats = rules[rule].action == Action::Reset || !came[rule];
                resets > 0 && repeats && self.still_crosses(watch, rule, &before)
            };
            due = (0..rules.len()).filter(again).collect();
            due.iter().for_each(|&rule| came[rule] = false);
        }
        for (rule, memory) in self.state.events.iter_mut().enumerate() {
            let (g, rate) = (watch.start.g[rule], watch.start.rates[rule]);
            match side(g, memory.rounding() + watch.blur * before[rule].abs()) {
                Some(side) => memory.side = side,
                None if came[rule] && is_moving(rate, before[rule]) => memory.side = sign(rate),
                None => {}
            }
        }
        if stops {
            return Ok(Outcome::Event);
        }
        self.keep_tested_after_reset();
        Ok(Outcome::Reset)
    }

    /// True if a function is zero and moves across, by more than the rounding of its rate before.
    fn still_crosses(&self, watch: &Watch, rule: usize, before: &[f64]) -> bool {
        let memory = &self.state.events[rule];
        let (g, rate) = (watch.start.g[rule], watch.start.rates[rule]);
        watch.events.rules()[rule].crossing.leaves(memory.side)
            && side(g, memory.rounding() + watch.blur * before[rule].abs()).is_none()
            && sign(rate) == -memory.side
            && is_moving(rate, before[rule])
    }

    /// Set the state by the reset of an event. Its step begins anew: nothing that maps carry, and
    /// no target of an invariant that changes, stays.
    fn set_state<E>(&mut self, watch: &mut Watch, rule: usize) -> Result<(), Failure<E>> {
        let state = &mut *self.state;
        let t = state.t;
        watch.events.reset(rule, t, &mut state.x, &mut watch.work);
        let event = || watch.events.rules()[rule].name.clone();
        if !crate::system::all_finite(&state.x) {
            let quantity = format!("the state after event {}", event());
            return Err(Failure::NonFinite { t, step: state.step, quantity });
        }
        let (system, invariants) = (self.system, self.system.invariants());
        let mut before = std::mem::take(&mut state.values);
        let mut values = vec![0.0; invariants.count];
        let mut jacobian = vec![0.0; invariants.nonzeros()];
        self.work.resize(self.work.len().max(system.work_len()), 0.0);
        system.invariant_values(t, &state.x, &mut values, &mut self.work);
        system.invariant_jacobian(t, &state.x, &mut jacobian, &mut self.work);
        let terms = |row: usize| {
            let entries = invariants.row(row).entries();
            entries.map(|(p, column)| (jacobian[p] * state.x[column]).abs()).sum::<f64>()
        };
        for group in &invariants.groups {
            let is_imposed = matches!(group.kind, GroupKind::Constraint | GroupKind::Hidden);
            for (row, _) in group.members.rows().filter(|_| is_imposed && !group.monitored_only) {
                let residual = values[row].abs();
                if residual > OFF_THE_SET * terms(row).max(before[row].abs()) {
                    let constraint = group.name.clone();
                    return Err(Failure::OffTheSet { t, event: event(), constraint, residual });
                }
            }
        }
        let target = std::sync::Arc::make_mut(&mut state.target);
        for row in invariants.constraints..invariants.count {
            let size = terms(row) + values[row].abs() + before[row].abs();
            if (values[row] - before[row]).abs() > UNCHANGED * size {
                target[row] = values[row];
            }
        }
        for (drift, group) in state.drift.iter_mut().zip(&invariants.groups) {
            drift.now = group.drift(&values, target);
        }
        std::mem::swap(&mut before, &mut values);
        state.values = before;
        state.memory.fill(0.0);
        state.first_stage.known = false;
        state.before_end = None;
        Ok(())
    }
}

/// A function at both ends of a step, positive on the side from which it comes.
struct Bend {
    s: f64,
    g: [f64; 2],
    rates: [f64; 2],
    rounding: f64,
}

impl Bend {
    fn of(memory: &EventMemory, rule: usize, (start, end): (&Values, &Values)) -> Bend {
        let s = f64::from(memory.side);
        Bend {
            s,
            g: [s * start.g[rule], s * end.g[rule]],
            rates: [s * start.rates[rule], s * end.rates[rule]],
            rounding: memory.rounding(),
        }
    }

    /// True if it has changed its side. What rests at zero moves across by rounding all the time.
    fn crosses(&self, h: f64) -> bool {
        let (g1, clearly) = (self.g[1], -CLEARLY * self.rounding);
        g1 < -self.rounding || g1 <= 0.0 && self.rates[1] * h < clearly
    }

    /// True if it may have crossed twice: it comes nearer at the start and goes away at the end, and
    /// its tangents meet beyond zero. Between them is the graph of a convex function.
    fn dips(&self, h: f64) -> bool {
        let ([g0, g1], [r0, r1]) = (self.g, self.rates);
        !self.crosses(h) && r0 < 0.0 && r1 > 0.0 && {
            let meet = (g0 - g1 + r1 * h) / (r1 - r0);
            g0 + r0 * meet.clamp(0.0, h) <= self.rounding
        }
    }
}

/// A function of which a root is looked for, made positive before the root.
#[derive(Clone, Copy)]
struct Of {
    rule: usize,
    factor: f64,
    /// True for the rate in place of the function.
    rate: bool,
    /// Another root, by which the function is divided.
    zero: Option<f64>,
}

impl Of {
    fn value(self, at: &Values, theta: f64) -> f64 {
        let value = self.factor * if self.rate { at.rates[self.rule] } else { at.g[self.rule] };
        self.zero.map_or(value, |zero| value / (theta - zero))
    }
}

/// Part of a step of this length at t that the rounding of the time resolves.
fn resolution(t: f64, h: f64) -> f64 {
    f64::EPSILON * (1.0 + (t / h).abs()).max(1.0)
}

/// True if a rate is more than the rounding of what it was before.
fn is_moving(rate: f64, before: f64) -> bool {
    rate.abs() > AT_REST * before.abs()
}

/// Place of an event, or the end of the step that it is next to.
fn snapped(theta: f64) -> f64 {
    match theta {
        _ if theta < AT_END => 0.0,
        _ if theta > 1.0 - AT_END => 1.0,
        _ => theta,
    }
}
