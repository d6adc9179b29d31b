//! Events within a step: which functions cross zero there, and where.
//!
//! The interpolant of a step is the step itself over a part of its length, treated like the whole:
//! it is of the method's order, meets the constraints, and is known for every method. A crossing
//! shows by the signs at both ends; two of them in one step show by the signs of the rates there,
//! which bracket an extremum.

use super::Engine;
use super::watch::{Bend, Crossed, Values, Watch};
use crate::events::{Action, Event, EventMemory, EventRule, ROUNDING, side};
use crate::failure::Failure;
use crate::plan::{AdaptiveSteps, FixedSteps};

/// Part of a step below which a place is its end.
const AT_END: f64 = 1e-12;

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

impl Engine<'_> {
    /// Find the sides on which a new run begins. True if it depends on them how steps are made.
    pub(super) fn begin_events(&mut self) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        let state = &mut *self.state;
        watch.at_start(state.t, &state.x);
        let known = state.events.len();
        if known == watch.events.rules().len() {
            let lands = |(rule, memory): (&EventRule, &EventMemory)| {
                rule.action == Action::Land && memory.has_reset() && memory.last == state.t
            };
            watch.landed = watch.events.rules().iter().zip(&state.events).any(lands);
            return false;
        }
        let at = (state.t, &state.x[..]);
        state.events.extend(EventMemory::all_at(watch.events, known, at, self.plan.lands()));
        let set = |(memory, rule): (&EventMemory, &EventRule)| memory.sets(rule);
        state.events.iter().zip(watch.events.rules()).any(set)
    }

    /// Look at the functions of events anew before the next step.
    pub(super) fn forget_watched(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.forget_start();
        }
    }

    /// Number of steps of a block, whose ends are kept, before the first in which an event may lie;
    /// `None` if there is none in any.
    pub(super) fn steps_before_event(&mut self, fixed: &FixedSteps) -> Option<u64> {
        let watch = self.watch.as_mut()?;
        let (first, t0, x) = (self.state.step, self.plan.t0, self.outputs.states());
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
        watch.suspect_crossings(&self.state.events, whole.h);
        // Place up to which crossings matter: the first that ends the step, as far as is known.
        let (mut end, mut seen) = (1.0, 1.0);
        for suspect in 0..watch.suspects.len() {
            let (_, rule) = watch.suspects[suspect];
            if end < seen {
                self.make_part(whole, end)?;
                parts += 1;
                watch.at_limit(self.part_end(whole, end), &self.x1);
                seen = end;
            }
            if seen < 1.0 {
                let memory = &self.state.events[rule];
                if watch.crosses_later(memory, rule, whole.h) {
                    continue;
                }
                if watch.crosses_at_limit(memory, rule, whole.h) {
                    watch.crossed.push(Crossed { theta: seen, rule });
                    continue;
                }
            }
            let known = watch.crossed.len();
            parts += self.find_crossings(watch, whole, rule)?;
            let number = self.state.events[rule].count;
            let found = watch.crossed[known..].iter().zip(number + 1..);
            let ends =
                |&(_, number): &(&Crossed, u64)| ends_step(&watch.events.rules()[rule], number);
            end = found.filter(ends).map(|(crossed, _)| crossed.theta).fold(end, f64::min);
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
            let ends_it = |&rule: &usize| {
                ends_step(&watch.events.rules()[rule], self.state.events[rule].count + 1)
            };
            if watch.due.iter().any(ends_it) {
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
            watch.due.clear();
            for (rule, memory) in self.state.events.iter_mut().enumerate() {
                if memory.side == 0 && watch.events.rules()[rule].action == Action::Land {
                    // Where the side becomes known, the field is to be that of this side.
                    let known = side(watch.end.g[rule], memory.rounding()).is_some();
                    if known && !memory.slides {
                        watch.due.push(rule);
                    }
                    continue;
                }
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
            ends = (!watch.due.is_empty()).then_some(1.0);
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
                if !of.rate {
                    let jump = of.function(one).abs().max(of.function(two).abs());
                    self.state.events[of.rule].raise_rounding(jump);
                }
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
    pub(super) fn make_part<E>(&mut self, whole: Whole, theta: f64) -> Result<(), Failure<E>> {
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
    pub(super) fn record(
        &mut self,
        watch: &Watch,
        rule: usize,
        (t, is_state): (f64, bool),
    ) -> Option<Action> {
        let memory = &mut self.state.events[rule];
        memory.count += 1;
        let number = memory.count;
        let action = watch.events.rules()[rule].acts(number)?;
        let state = &mut *self.state;
        let x = if is_state { &state.x } else { &self.x1 };
        if action != Action::Land {
            state.event_log.push(Event { rule, number, t, x: &x[..self.system.dim()] });
        }
        Some(action)
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

    /// The function itself, of a place and the value there.
    fn function(self, (theta, value): (f64, f64)) -> f64 {
        self.zero.map_or(value, |zero| value * (theta - zero))
    }
}

/// True if this crossing of a function ends the step.
fn ends_step(rule: &EventRule, number: u64) -> bool {
    matches!(rule.acts(number), Some(Action::Stop | Action::Reset | Action::Land))
}

/// Part of a step of this length at t that the rounding of the time resolves.
fn resolution(t: f64, h: f64) -> f64 {
    f64::EPSILON * (1.0 + (t / h).abs()).max(1.0)
}

/// Place of an event, or the end of the step that it is next to.
fn snapped(theta: f64) -> f64 {
    match theta {
        _ if theta < AT_END => 0.0,
        _ if theta > 1.0 - AT_END => 1.0,
        _ => theta,
    }
}
