//! Events: zeros of functions of the state along a run, and what is done there.
//!
//! A function is on one *side* of zero until it crosses. It is at a zero when it is no further from
//! it than its rounding. A start at a zero is no event, and a root of even order is none.

use crate::exact;
use holonome_arithmetic::Real;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Crossings of a function that are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Both ways.
    Any,
    /// From negative to positive values.
    Rising,
    /// From positive to negative values.
    Falling,
}

impl Crossing {
    /// True if a crossing from the side with this sign is an event.
    pub fn leaves(self, side: i8) -> bool {
        match self {
            Crossing::Any => side != 0,
            Crossing::Rising => side < 0,
            Crossing::Falling => side > 0,
        }
    }
}

/// What an event does beside being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Record,
    /// It ends the run.
    Stop,
    /// It sets the state.
    Reset,
    /// A step ends at a switching surface, where a condition of the field changes. Nothing is
    /// recorded.
    Land,
}

/// A function whose zeros are events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRule {
    /// Name, with its indices.
    pub name: String,
    /// Crossings that count.
    pub crossing: Crossing,
    /// Number of crossings from one at which it acts to the next.
    pub every: u64,
    /// What it does.
    pub action: Action,
    /// Number of crossings before the run.
    pub counted: u64,
    /// Number of the crossing that ends the run, whatever the action.
    pub last: Option<u64>,
    /// Sign of the side on which it rests if it starts at zero without a rate; 0 if that is not known.
    pub rest: i8,
}

impl EventRule {
    /// What is done at crossing number `count`, from 1 on; `None` if it only counts.
    pub fn acts(&self, count: u64) -> Option<Action> {
        if self.last == Some(count) {
            return Some(Action::Stop);
        }
        count.is_multiple_of(self.every).then_some(self.action)
    }
}

/// Functions of the state whose zeros are events. As for a [`System`], values that are undefined are
/// NaN, and scratch comes from the caller.
///
/// [`System`]: crate::system::System
pub trait Events: Sync {
    /// The rules, one for each function.
    fn rules(&self) -> &[EventRule];

    /// Length of the scratch.
    fn work_len(&self) -> usize;

    /// The functions at (t, x), and their rates along the motion: NaN where they are not known.
    fn values(&self, t: f64, x: &[f64], values: &mut [f64], rates: &mut [f64], work: &mut [f64]);

    /// Sums of the functions' absolute terms at (t, x), Σ |∂g/∂x_i| |x| with the length of the vector
    /// to which a component belongs: their rounding is a part of these.
    fn terms(&self, t: f64, x: &[f64], terms: &mut [f64], work: &mut [f64]);

    /// Set `x` to the state after event `event` at t.
    fn reset(&self, event: usize, t: f64, x: &mut [f64], work: &mut [f64]);
}

/// Side of zero, +1 or −1, on which an event's function has been, after a step of the length `h` at
/// the end of which it has this value and rate; 0 if it may have left it within the step, or before.
///
/// A function that touches zero within a step and is convex there, seen from zero, lies above its
/// tangent at the end, so that this crosses zero within the step. A rate that is not known is NaN,
/// and tells nothing.
pub fn side_kept<R: Real>(side: R, value: R, rate: R, h: R) -> R {
    let zero = side.constant(0.0);
    let away = zero.larger(side * (rate * h));
    R::select(zero.less(side * value - away), side, zero)
}

/// An event as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Number of its rule.
    pub rule: usize,
    /// Number of the crossing, from 1 on.
    pub number: u64,
    /// Time.
    pub t: f64,
    /// State, before it is set.
    pub x: &'a [f64],
}

/// Numbers of an event beside its state.
const HEAD: usize = 3;

/// Number of events in a chunk of a log.
const CHUNK: usize = 256;

/// Events in the order in which a run met them. Copies of a log share its chunks, as a run keeps
/// some of its states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// Rule, number, time and state of each event, one after the other.
    chunks: Vec<Arc<Vec<f64>>>,
    /// Count of numbers of an event.
    width: usize,
}

impl EventLog {
    /// Add an event.
    pub fn push(&mut self, event: Event) {
        self.width = HEAD + event.x.len();
        let is_full = |chunk: &Arc<Vec<f64>>| chunk.len() >= CHUNK * self.width;
        if self.chunks.last().is_none_or(is_full) {
            self.chunks.push(Arc::default());
        }
        let last = Arc::make_mut(self.chunks.last_mut().expect("there is a chunk"));
        last.extend([event.rule as f64, event.number as f64, event.t]);
        last.extend_from_slice(event.x);
    }

    /// The events.
    pub fn iter(&self) -> impl Iterator<Item = Event<'_>> {
        let rows = self.chunks.iter().flat_map(|chunk| chunk.chunks_exact(self.width));
        rows.map(|row| Event {
            rule: row[0] as usize,
            number: row[1] as u64,
            t: row[2],
            x: &row[HEAD..],
        })
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len() / self.width).sum()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// Form in which a log is stored.
#[derive(Serialize, Deserialize)]
struct StoredLog {
    width: usize,
    #[serde(with = "exact::list")]
    numbers: Vec<f64>,
}

impl Serialize for EventLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers = self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect();
        StoredLog { width: self.width, numbers }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventLog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EventLog, D::Error> {
        let StoredLog { width, numbers } = StoredLog::deserialize(deserializer)?;
        let chunks = numbers.chunks((CHUNK * width).max(1)).map(|chunk| Arc::new(chunk.to_vec()));
        Ok(EventLog { chunks: chunks.collect(), width })
    }
}

/// What a run knows of an event's function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventMemory {
    /// Sign of the side of zero on which the function is, or was before it came to rest there.
    pub side: i8,
    /// True for a switching surface along which the motion slides: steps do not end there any more.
    #[serde(default)]
    pub slides: bool,
    /// Number of crossings so far.
    pub count: u64,
    /// Largest sum of its absolute terms at events and where the run began.
    #[serde(with = "exact::number")]
    pub terms: f64,
    /// Time of the last reset.
    #[serde(with = "exact::number")]
    pub last: f64,
    /// Time between the last two resets, its ratio to the time before, and the longest since these
    /// times shrink by one ratio.
    #[serde(with = "exact::number")]
    interval: f64,
    #[serde(with = "exact::number")]
    ratio: f64,
    #[serde(with = "exact::number")]
    longest: f64,
    /// Number of these times that have shrunk by one ratio, one after the other.
    shrunk: u32,
}

/// Landings on switching surfaces among the last steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Landings {
    /// Number of landings since this step.
    count: u64,
    step: u64,
    /// Time since the start at this step.
    #[serde(with = "exact::number")]
    elapsed: f64,
}

/// Number of landings, or of steps that slide, after which their pace is judged.
const JUDGED: u64 = 1024;

/// Number of steps in which a motion that crosses to and fro lands again.
const TO_AND_FRO: u64 = 8;

/// Number of further steps from which on a motion that slides does not reach the end of its run.
const ENDLESS: f64 = 1e6;

impl Landings {
    /// Count a landing, or a look at a motion that slides (`slides`), after `step` steps and the time
    /// `elapsed`, with the time `rest` to go. Returns the length of the steps if these lead nowhere:
    /// they cross a surface to and fro, and more than a million are to follow.
    pub(crate) fn count(
        &mut self,
        slides: bool,
        (step, elapsed, rest): (u64, f64, f64),
    ) -> Option<f64> {
        self.count += 1;
        let steps = step.saturating_sub(self.step);
        let judged = if slides { steps >= JUDGED } else { self.count >= JUDGED };
        if !judged {
            return None;
        }
        let h = (elapsed - self.elapsed) / steps.max(1) as f64;
        let follows = slides || steps <= TO_AND_FRO * JUDGED;
        *self = Landings { count: 0, step, elapsed };
        (follows && rest > ENDLESS * h).then_some(h)
    }
}

/// Part of a function's terms that is its rounding.
pub(crate) const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// Largest jump of a function in units of its rounding that counts as rounding of the state. A
/// correction of the energy of 4000 bodies makes places uncertain by ten of them.
const LARGEST_JUMP: f64 = 1e3;

/// Part of the longest time between two resets below which they accumulate. A hop of that length is
/// higher than the rounding of a function by some digits still; the root of the rounding is 1e-7.
const ACCUMULATED: f64 = 1e-5;

/// Number of times in a row that have shrunk by the same ratio before resets accumulate: chance does
/// not make so many.
const IN_A_ROW: u32 = 6;

/// Largest relative difference of two ratios that are the same.
const SAME_RATIO: f64 = 0.02;

impl EventMemory {
    /// Memory of a function that begins with this value, rate and terms. A run without adaptive steps
    /// does not land on switching surfaces.
    fn new(rule: &EventRule, t: f64, (value, rate, terms): (f64, f64, f64), lands: bool) -> Self {
        let rest = match sign(rate) {
            0 => rule.rest,
            moving => moving,
        };
        let (side, slides) = match rule.action == Action::Land && !lands {
            true => (0, true),
            false => (side(value, ROUNDING * terms).unwrap_or(rest), false),
        };
        let interval = f64::INFINITY;
        let count = rule.counted;
        EventMemory { side, slides, count, terms, last: t, interval, ..EventMemory::default() }
    }

    /// Memories of the functions of `events`, from number `known` on, of a run that begins at (t, x),
    /// and may land on switching surfaces.
    pub fn all_at(
        events: &dyn Events,
        known: usize,
        (t, x): (f64, &[f64]),
        lands: bool,
    ) -> Vec<EventMemory> {
        let rules = events.rules();
        let mut numbers = vec![0.0; 3 * rules.len()];
        let mut work = vec![0.0; events.work_len()];
        let (values, rest) = numbers.split_at_mut(rules.len());
        let (rates, terms) = rest.split_at_mut(rules.len());
        events.values(t, x, values, rates, &mut work);
        events.terms(t, x, terms, &mut work);
        let begun =
            |k: usize| EventMemory::new(&rules[k], t, (values[k], rates[k], terms[k]), lands);
        (known..rules.len()).map(begun).collect()
    }

    /// True if it is known on which side a function is, or that does not matter.
    pub(crate) fn is_known(&self, rule: &EventRule) -> bool {
        self.side != 0 || rule.action == Action::Land
    }

    /// Set `sides` to those on which functions are, as loops take them; false if one is not known, so
    /// that steps are to be made by themselves.
    pub fn sides(memories: &[EventMemory], rules: &[EventRule], sides: &mut [f64]) -> bool {
        sides.iter_mut().zip(memories).for_each(|(side, of)| *side = f64::from(of.side));
        memories.iter().zip(rules).all(|(memory, rule)| memory.is_known(rule))
    }

    /// True if the event has set the state of the run.
    pub fn has_reset(&self) -> bool {
        self.interval.is_finite()
    }

    /// True if the function has changed how a run makes its steps: it has set the state, or decides a
    /// condition of the field.
    pub fn sets(&self, rule: &EventRule) -> bool {
        self.has_reset() || rule.action == Action::Land && self.side != 0
    }

    /// Distance from zero that is rounding.
    pub(crate) fn rounding(&self) -> f64 {
        ROUNDING * self.terms
    }

    /// Take a jump of the function between two times that are one up to their rounding as that of the
    /// state, which a correction may round by more than the function does, unless it is a jump of the
    /// function itself.
    pub(crate) fn raise_rounding(&mut self, jump: f64) {
        if jump <= LARGEST_JUMP * self.rounding() {
            self.terms = self.terms.max(jump / ROUNDING);
        }
    }

    /// Count a reset at t. Returns the time at which resets accumulate, if they do.
    pub(crate) fn reset_at(&mut self, t: f64) -> Option<f64> {
        let (interval, before) = (t - self.last, self.interval);
        let ratio = if interval == 0.0 { 0.0 } else { interval / before };
        let goes_on = ratio < 1.0 && (ratio - self.ratio).abs() <= SAME_RATIO * self.ratio;
        self.longest = if goes_on { self.longest } else { interval.max(before.min(f64::MAX)) };
        self.shrunk = if goes_on { self.shrunk + 1 } else { 0 };
        (self.last, self.interval, self.ratio) = (t, interval, ratio);
        let is_over = self.shrunk >= IN_A_ROW && interval <= ACCUMULATED * self.longest;
        is_over.then_some(t + interval * ratio / (1.0 - ratio))
    }
}

/// Sign of the side on which a value is; `None` if it is zero up to rounding.
pub(crate) fn side(value: f64, rounding: f64) -> Option<i8> {
    (value.abs() > rounding).then(|| sign(value))
}

/// Sign of a number; 0 for 0 and NaN.
pub(crate) fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}
