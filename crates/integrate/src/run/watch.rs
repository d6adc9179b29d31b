//! The functions of events at both ends of a step, and what shows there.

use super::LONGEST_BLOCK;
use crate::events::{EventMemory, Events, side_kept};
use crate::system::System;

/// Multiple of a function's rounding by which it moves in a step, at least, if it clearly crosses.
const CLEARLY: f64 = 64.0;

/// Values of the functions at one place, and their rates.
#[derive(Clone, Default)]
pub(super) struct Values {
    pub g: Vec<f64>,
    pub rates: Vec<f64>,
}

/// A crossing: the part of the step before it, and the number of its rule.
#[derive(Clone, Copy)]
pub(super) struct Crossed {
    pub theta: f64,
    pub rule: usize,
}

/// Where functions of events are on both sides of a step.
pub(super) struct Watch<'a> {
    pub events: &'a dyn Events,
    pub start: Values,
    /// True if `start` belongs to the state.
    pub known: bool,
    pub end: Values,
    pub between: Values,
    /// Functions at the first place that is known to end the step.
    pub limit: Values,
    pub terms: Vec<f64>,
    /// Rounding of the time at the end of the step.
    pub blur: f64,
    pub crossed: Vec<Crossed>,
    /// Rules whose functions may cross within the step, by about where.
    pub suspects: Vec<(f64, usize)>,
    /// Rules that act at the end of a part of the step.
    pub due: Vec<usize>,
    pub work: Vec<f64>,
    /// Sides of the functions, as a loop finds them.
    pub sides: Vec<f64>,
    /// True until the first step from a switching surface is made. Steps miss these by the rounding of
    /// t, which changes what is held by more than that step's error.
    pub landed: bool,
    /// Number of steps of the next loop that looks at them, unless something is known to lie ahead:
    /// few where events are frequent.
    pace: u64,
    /// Number of the step up to which an event may lie ahead, 0 if nothing is known.
    suspect: u64,
}

/// Innovation of the first step from a switching surface, in errors of a step, which are round-off at
/// least, below which it is the rounding of t there: 1e-6 of the state. An integral that jumps at the
/// surface changes by more.
const LANDED: f64 = 1e10;

/// Number of steps of a loop that looks at them, after an event.
const FIRST_PACE: u64 = 8;

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
            between: values.clone(),
            limit: values,
            terms: vec![0.0; count],
            blur: 0.0,
            crossed: Vec::new(),
            suspects: Vec::new(),
            due: Vec::new(),
            work: vec![0.0; events.work_len()],
            sides: vec![0.0; count],
            landed: false,
            pace: FIRST_PACE,
            suspect: 0,
        }))
    }

    pub(super) fn at_start(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.start;
        self.events.values(t, x, g, rates, &mut self.work);
        self.known = true;
    }

    /// Raise the terms of the functions to those at a state.
    pub(super) fn raise_terms(&mut self, t: f64, x: &[f64], memories: &mut [EventMemory]) {
        self.events.terms(t, x, &mut self.terms, &mut self.work);
        for (memory, &terms) in memories.iter_mut().zip(&self.terms) {
            memory.terms = memory.terms.max(terms);
        }
    }

    pub(super) fn at_end(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.end;
        self.events.values(t, x, g, rates, &mut self.work);
    }

    pub(super) fn between(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.between;
        self.events.values(t, x, g, rates, &mut self.work);
    }

    pub(super) fn at_limit(&mut self, t: f64, x: &[f64]) {
        let Values { g, rates } = &mut self.limit;
        self.events.values(t, x, g, rates, &mut self.work);
    }

    /// Find the functions that may cross zero in a step of the length `h` from `start` to `end`, those
    /// that seem to cross first in front: the more others then show that they cross later.
    pub(super) fn suspect_crossings(&mut self, memories: &[EventMemory], h: f64) {
        self.suspects.clear();
        for (rule, memory) in memories.iter().enumerate() {
            let bend = Bend::of(memory, rule, (&self.start, &self.end));
            if bend.crosses(h) || bend.dips(h) {
                self.suspects.push((bend.about(h), rule));
            }
        }
        self.suspects.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }

    /// True if a function that may cross zero within the step does so behind the limit: there it is on
    /// its side, by more than the rounding of the time, and does not yet move away from zero.
    pub(super) fn crosses_later(&self, memory: &EventMemory, rule: usize, h: f64) -> bool {
        let s = f64::from(memory.side);
        let (g, rate) = (s * self.limit.g[rule], s * self.limit.rates[rule]);
        let bend = Bend::of(memory, rule, (&self.start, &self.end));
        g > bend.rounding + self.blur * rate.abs() && (rate < 0.0 || bend.crosses(h))
    }

    /// True if a function that crosses zero within the step does so at the limit, up to rounding.
    pub(super) fn crosses_at_limit(&self, memory: &EventMemory, rule: usize, h: f64) -> bool {
        let s = f64::from(memory.side);
        let (g, rate) = (s * self.limit.g[rule], s * self.limit.rates[rule]);
        let bend = Bend::of(memory, rule, (&self.start, &self.end));
        let counts = self.events.rules()[rule].crossing.leaves(memory.side) && bend.crosses(h);
        counts && bend.g[0] > bend.rounding && rate < 0.0 && g.abs() <= bend.rounding
    }

    /// True if something happens to a function within a step of the length `h` from `start` to
    /// `end`: it may cross zero there, or it is undefined.
    pub(super) fn is_suspected(&self, memories: &[EventMemory], h: f64) -> bool {
        memories.iter().enumerate().any(|(rule, memory)| {
            let bend = Bend::of(memory, rule, (&self.start, &self.end));
            let is_known = self.is_known(rule, memory) && !self.end.g[rule].is_nan();
            bend.crosses(h) || bend.dips(h) || !is_known
        })
    }

    /// True if a step of the length `h` to a place with these values may have left a side, as far as
    /// its end tells; that is how a loop looks at steps.
    fn may_have_left(&self, at: &Values, memories: &[EventMemory], h: f64) -> bool {
        memories.iter().enumerate().any(|(rule, memory)| {
            let side = f64::from(memory.side);
            side_kept(side, at.g[rule], at.rates[rule], h) != side || !self.is_known(rule, memory)
        })
    }

    /// True if it is known on which side a function is, or that does not matter.
    fn is_known(&self, rule: usize, memory: &EventMemory) -> bool {
        memory.is_known(&self.events.rules()[rule])
    }

    /// Set the sides on which functions are before the steps of a loop; false if one is not known, so
    /// that steps are to be made by themselves.
    pub(super) fn begin_loop(&mut self, memories: &[EventMemory]) -> bool {
        EventMemory::sides(memories, self.events.rules(), &mut self.sides)
    }

    /// True if the functions were on their sides at all states at which a loop has looked.
    pub(super) fn loop_passes(&self, memories: &[EventMemory]) -> bool {
        self.sides.iter().zip(memories).all(|(&side, of)| side == f64::from(of.side))
    }

    /// True if the step of the length `h` to the start may have left a side.
    pub(super) fn begins_near(&self, memories: &[EventMemory], h: f64) -> bool {
        self.may_have_left(&self.start, memories, h)
    }

    /// Look at the last step of a loop, of the length `h` to (t₁, x₁); true if it has left no side.
    pub(super) fn last_passes(
        &mut self,
        memories: &[EventMemory],
        h: f64,
        (t1, x1): (f64, &[f64]),
    ) -> bool {
        self.at_end(t1, x1);
        self.goes_on(!self.may_have_left(&self.end, memories, h))
    }

    /// Take the functions at the end of a step that `passes` as those at the start of the next one.
    fn goes_on(&mut self, passes: bool) -> bool {
        if passes {
            std::mem::swap(&mut self.start, &mut self.end);
        }
        passes
    }

    /// Number of steps of the length `h` to make in a loop that looks at them, from step number
    /// `step` on: half of those in which an event may lie, so that it is found by bisection, or half
    /// of those after which a function would be zero at its rate.
    pub(super) fn ahead(&self, memories: &[EventMemory], (step, h): (u64, f64)) -> u64 {
        match self.suspect.saturating_sub(step) {
            0 if self.known => self.pace.min(self.steps_to_zero(memories, h) / 2).max(1),
            0 => self.pace,
            steps => steps.div_ceil(2),
        }
    }

    /// Number of steps of the length `h` after which the first function would be zero at its rate.
    fn steps_to_zero(&self, memories: &[EventMemory], h: f64) -> u64 {
        let steps = |(rule, memory): (usize, &EventMemory)| {
            let s = f64::from(memory.side);
            let nearer = -s * self.start.rates[rule] * h;
            if nearer > 0.0 { s * self.start.g[rule] / nearer } else { f64::INFINITY }
        };
        memories.iter().enumerate().map(steps).fold(f64::INFINITY, f64::min) as u64
    }

    /// Learn whether a loop of `count` steps from step number `step` on found nothing.
    pub(super) fn learn(&mut self, (step, count): (u64, u64), passes: bool) {
        match passes {
            true if step >= self.suspect => {
                self.pace = (2 * count).clamp(FIRST_PACE, LONGEST_BLOCK)
            }
            true => {}
            false => (self.suspect, self.pace) = (step + count, FIRST_PACE),
        }
    }

    /// Look at the end of the next step of a loop; true if nothing happens within it.
    pub(super) fn passes(
        &mut self,
        memories: &[EventMemory],
        h: f64,
        (t1, x1): (f64, &[f64]),
    ) -> bool {
        self.at_end(t1, x1);
        self.goes_on(!self.is_suspected(memories, h))
    }

    /// True if the innovation of this step, the first one from a switching surface, is rounding.
    pub(super) fn rounds(&mut self, innovation: f64) -> bool {
        std::mem::take(&mut self.landed) && innovation < LANDED
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
    pub(super) fn undefined(&self) -> Option<&str> {
        let number = self.end.g.iter().position(|g| g.is_nan())?;
        Some(&self.events.rules()[number].name)
    }
}

/// A function at both ends of a step, positive on the side from which it comes.
pub(super) struct Bend {
    pub s: f64,
    pub g: [f64; 2],
    pub rates: [f64; 2],
    pub rounding: f64,
}

impl Bend {
    pub(super) fn of(memory: &EventMemory, rule: usize, (start, end): (&Values, &Values)) -> Bend {
        let s = f64::from(memory.side);
        Bend {
            s,
            g: [s * start.g[rule], s * end.g[rule]],
            rates: [s * start.rates[rule], s * end.rates[rule]],
            rounding: memory.rounding(),
        }
    }

    /// True if it has changed its side. What rests at zero moves across by rounding all the time.
    pub(super) fn crosses(&self, h: f64) -> bool {
        let (g1, clearly) = (self.g[1], -CLEARLY * self.rounding);
        g1 < -self.rounding || g1 <= 0.0 && self.rates[1] * h < clearly
    }

    /// Part of a step of the length `h` after which it seems to cross: where its chord does, or its
    /// tangents meet.
    fn about(&self, h: f64) -> f64 {
        let ([g0, g1], [r0, r1]) = (self.g, self.rates);
        match self.crosses(h) {
            true => g0 / (g0 - g1),
            false => (g0 - g1 + r1 * h) / (r1 - r0) / h,
        }
    }

    /// True if it may have crossed twice: it comes nearer at the start and goes away at the end, and
    /// its tangents meet beyond zero. Between them is the graph of a convex function.
    pub(super) fn dips(&self, h: f64) -> bool {
        let ([g0, g1], [r0, r1]) = (self.g, self.rates);
        !self.crosses(h) && r0 < 0.0 && r1 > 0.0 && {
            let meet = (g0 - g1 + r1 * h) / (r1 - r0);
            g0 + r0 * meet.clamp(0.0, h) <= self.rounding
        }
    }
}
