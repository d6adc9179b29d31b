//! What events do at a state: record, stop, set the state, in the order of the file, until none that
//! is zero still moves across.

use super::watch::Watch;
use super::{Engine, Outcome};
use crate::events::{Action, EventMemory, side, sign};
use crate::failure::Failure;
use crate::plan::Stepping;
use crate::system::{GroupKind, Vectors, all_finite};
use std::sync::Arc;

/// Largest number of resets at one time: bodies in contact pass an impact on a few times.
const MOST_RESETS: usize = 10_000;

/// Part of a rate before a reset below which the rate after it is rounding.
const AT_REST: f64 = 1e-12;

/// Distance from a constraint, relative to its terms, at which a reset may leave a state: the
/// rounding of formulas that a user writes, and of those that solve for impacts.
const OFF_THE_SET: f64 = 1e-9;

/// Change of an invariant by a reset, relative to its terms, that is rounding.
const UNCHANGED: f64 = 1e-12;

impl Engine<'_> {
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
                if rules[rule].action == Action::Land {
                    self.land(watch, rule)?;
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
            if rules[rule].action == Action::Land {
                continue;
            }
            let (g, rate) = (watch.start.g[rule], watch.start.rates[rule]);
            match side(g, rounding(memory, watch.blur, before[rule])) {
                Some(side) => memory.side = side,
                // Where it goes is seen at the end of the next step, and no event.
                None if came[rule] && rate.is_nan() => memory.side = 0,
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

    /// Change the side of a switching surface at which a step ends. One that is crossed again and
    /// again within ever shorter times is left to step-size control.
    fn land<E>(&mut self, watch: &Watch, rule: usize) -> Result<(), Failure<E>> {
        let state = &mut *self.state;
        let memory = &mut state.events[rule];
        memory.side = match memory.side {
            0 => sign(watch.start.g[rule]),
            side => -side,
        };
        if memory.reset_at(state.t).is_some() {
            (memory.side, memory.slides) = (0, true);
        }
        state.memory.fill(0.0);
        state.first_stage.known = false;
        self.count_landings(false)
    }

    /// Fail if the motion crosses switching surfaces to and fro in steps that lead nowhere. With
    /// `slides` it is known that it does.
    pub(super) fn count_landings<E>(&mut self, slides: bool) -> Result<(), Failure<E>> {
        let state = &mut *self.state;
        let Stepping::Adaptive(adaptive) = &self.plan.stepping else { return Ok(()) };
        let at = (state.step, state.elapsed, adaptive.span() - state.elapsed);
        match state.landings.count(slides, at) {
            Some(h) => Err(Failure::Slides { t: state.t, h }),
            None => Ok(()),
        }
    }

    /// True if a function is zero and moves across, by more than the rounding of its rate before.
    fn still_crosses(&self, watch: &Watch, rule: usize, before: &[f64]) -> bool {
        let memory = &self.state.events[rule];
        let (g, rate) = (watch.start.g[rule], watch.start.rates[rule]);
        watch.events.rules()[rule].crossing.leaves(memory.side)
            && side(g, rounding(memory, watch.blur, before[rule])).is_none()
            && sign(rate) == -memory.side
            && is_moving(rate, before[rule])
    }

    /// Set the state by the reset of an event. Its step begins anew: nothing that maps carry, and
    /// no target of an invariant that changes, stays.
    fn set_state<E>(&mut self, watch: &mut Watch, rule: usize) -> Result<(), Failure<E>> {
        let state = &mut *self.state;
        let t = state.t;
        let mut x = state.x.clone();
        watch.events.reset(rule, t, &mut x, &mut watch.work);
        let event = || watch.events.rules()[rule].name.clone();
        if !all_finite(&x) {
            let quantity = format!("the state after event {}", event());
            return Err(Failure::NonFinite { t, step: state.step, quantity });
        }
        let (system, invariants) = (self.system, self.system.invariants());
        let mut values = vec![0.0; invariants.count];
        let mut jacobian = vec![0.0; invariants.nonzeros()];
        self.work.resize(self.work.len().max(system.work_len()), 0.0);
        system.invariant_values(t, &x, &mut values, &mut self.work);
        system.invariant_jacobian(t, &x, &mut jacobian, &mut self.work);
        let lengths = lengths(system.vectors(), [&state.x, &x]);
        let terms = |row: usize| {
            let entries = invariants.row(row).entries();
            entries.map(|(p, column)| jacobian[p].abs() * lengths[column]).sum::<f64>()
        };
        for group in &invariants.groups {
            let is_imposed = matches!(group.kind, GroupKind::Constraint | GroupKind::Hidden);
            for (row, _) in group.members.rows().filter(|_| is_imposed && !group.monitored_only) {
                // A method that does not hold a constraint was off it before.
                let (residual, before) = (values[row].abs(), state.values[row].abs());
                if residual > OFF_THE_SET * terms(row) + 2.0 * before {
                    let constraint = group.name.clone();
                    return Err(Failure::OffTheSet { t, event: event(), constraint, residual });
                }
            }
        }
        let target = Arc::make_mut(&mut state.target);
        for row in invariants.constraints..invariants.count {
            let before = state.values[row];
            let size = terms(row) + values[row].abs() + before.abs();
            if (values[row] - before).abs() > UNCHANGED * size {
                target[row] = values[row];
            }
        }
        for (drift, group) in state.drift.iter_mut().zip(&invariants.groups) {
            drift.now = group.drift(&values, target);
        }
        (state.x, state.values) = (x, values);
        state.memory.fill(0.0);
        state.first_stage.known = false;
        Ok(())
    }
}

/// For each component, the length of the vector to which it belongs: the largest at two states.
fn lengths(vectors: &Vectors, states: [&[f64]; 2]) -> Vec<f64> {
    let mut lengths = vec![0.0; states[0].len()];
    for vector in 0..vectors.count() {
        let components = vectors.components_of(vector);
        let length = |x: &[f64]| x[components.clone()].iter().map(|x| x * x).sum::<f64>().sqrt();
        let largest = states.map(length).into_iter().fold(0.0, f64::max);
        lengths[components].fill(largest);
    }
    lengths
}

/// Distance from zero that is rounding where an event was found: also that of its time, in so far as
/// the rate is known.
fn rounding(memory: &EventMemory, blur: f64, rate: f64) -> f64 {
    memory.rounding() + if rate.is_nan() { 0.0 } else { blur * rate.abs() }
}

/// True if a rate is more than the rounding of what it was before.
fn is_moving(rate: f64, before: f64) -> bool {
    rate.abs() > AT_REST * before.abs()
}
