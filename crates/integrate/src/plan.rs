//! Plan of a run: the method, the steps, the outputs. It is made once, and never changed while
//! running.

use crate::controller::trial;
use crate::method::Method;
use holonome_words::option;
use serde::{Deserialize, Serialize};

/// The gain K of a feedback term, over all rows of F.
#[derive(Clone, Debug, PartialEq)]
pub enum Gain {
    /// One gain per row: V = ½ Σ k_i ΔF_i².
    Diagonal(Vec<f64>),
    /// A symmetric positive semidefinite m × m matrix, row by row.
    Dense(Vec<f64>),
    /// The Gauss–Newton form, −κ DF⁺ΔF: its eigenvalues other than 0 are all κ.
    Rate(f64),
}

/// Plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The method.
    pub method: Method,
    /// Initial time.
    pub t0: f64,
    /// True if the system runs backwards in the time of whoever reads of it; see [`Plan::clock`].
    pub reversed: bool,
    /// The steps and the outputs.
    pub stepping: Stepping,
    /// Number of accepted and rejected steps after which the run fails.
    pub step_limit: u64,
    /// Largest residual, as a distance in state space, that projections accept; `None` stands for
    /// round-off.
    pub projection_tolerance: Option<f64>,
    /// Metric in which projections move a state.
    pub metric: Metric,
    /// What it does where the motion goes through a singular configuration.
    pub singular: Singular,
    /// Gain whose h·λmax/r is monitored, if the field carries a feedback term.
    pub gain: Option<Gain>,
}

/// Metric in which projections move a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// [`Metric::Error`].
    #[default]
    Auto,
    /// The metric of the step's error, or of its length where a scheme estimates no error: parts of
    /// the state that err little move little. A symmetric projection gives bodies changes of
    /// velocity, by their masses, which is the same for the step back; without masses it is
    /// [`Metric::Euclidean`].
    Error,
    /// Every component moves alike (HLW IV.4.2).
    Euclidean,
}

/// What a run does where its motion goes through a singular configuration, in which constraints
/// depend on each other and from which the motion may go on in several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Singular {
    /// It ends there with a failure.
    #[default]
    Stop,
    /// It goes on along the branch that its momentum takes.
    Continue,
}

impl Singular {
    /// True for the default.
    pub fn is_default(&self) -> bool {
        *self == Singular::default()
    }
}

impl std::str::FromStr for Singular {
    type Err = String;

    fn from_str(text: &str) -> Result<Singular, String> {
        match text.trim() {
            "stop" => Ok(Singular::Stop),
            "continue" => Ok(Singular::Continue),
            other => Err(format!(
                "{singular} '{other}': write stop or continue",
                singular = option("singular")
            )),
        }
    }
}

/// Steps of a run.
#[derive(Clone, Debug)]
pub enum Stepping {
    /// Equal steps.
    Fixed(FixedSteps),
    /// Steps chosen from an error estimate.
    Adaptive(AdaptiveSteps),
}

impl Stepping {
    /// Equal steps; `None` if steps are adaptive.
    pub fn fixed(&self) -> Option<&FixedSteps> {
        match self {
            Stepping::Fixed(fixed) => Some(fixed),
            Stepping::Adaptive(_) => None,
        }
    }

    /// Adaptive steps; `None` if steps are equal.
    pub fn adaptive(&self) -> Option<&AdaptiveSteps> {
        match self {
            Stepping::Fixed(_) => None,
            Stepping::Adaptive(adaptive) => Some(adaptive),
        }
    }
}

/// Equal steps: t = t0 + k·h, and possibly one shorter last step that lands on the end.
#[derive(Clone, Debug)]
pub struct FixedSteps {
    /// The step h.
    pub h: f64,
    /// Number of whole steps.
    pub steps: u64,
    /// End of the run, if a shorter last step has to reach it.
    pub shorter_last: Option<f64>,
    /// Numbers of the steps after which there is output, ascending; 0 is the start.
    pub samples: Vec<u64>,
}

/// Steps chosen so that the estimated error meets a tolerance.
#[derive(Clone, Debug)]
pub struct AdaptiveSteps {
    /// Start of the run.
    pub t0: f64,
    /// End of the run.
    pub t_end: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// First step; `None` if it is chosen from the field (HNW II.4).
    pub first_step: Option<f64>,
    /// Longest step.
    pub longest_step: f64,
    /// Shortest step: asking for a shorter one ends the run. The last step may be shorter.
    pub shortest_step: f64,
    /// Output times, ascending, within [t0, t_end].
    pub samples: Vec<f64>,
    /// Moments that no step may pass over, in the order of time and apart from each other.
    pub moments: Vec<Moment>,
}

/// Short time in which something happens of which the times around it show nothing, a pulse for
/// instance: steps begin at its start, and are short within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Start.
    pub from: f64,
    /// End.
    pub until: f64,
    /// Longest step within it.
    pub longest: f64,
    /// True if it is a point that a short step crosses, behind which steps are as long as before.
    pub is_point: bool,
}

impl Moment {
    /// True if steps from t on are those of the moment. Its start is not met more precisely than by
    /// such a step.
    pub fn has_begun(&self, t: f64) -> bool {
        self.from - t <= self.longest
    }

    /// Longest step from t, which is before the end.
    pub fn longest_from(&self, t: f64) -> f64 {
        if self.has_begun(t) { self.longest } else { self.from - t }
    }
}

/// Reason why a plan is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A quantity is out of its range.
    #[error("{quantity} must be {range}, but it is {value}")]
    OutOfRange {
        /// Name of the quantity.
        quantity: &'static str,
        /// Admissible values.
        range: &'static str,
        /// Value that was given.
        value: f64,
    },
    /// The end of the run is not after its start.
    #[error("the end at t = {t_end} is not after the start at t = {t0}")]
    EndNotAfterStart {
        /// The start.
        t0: f64,
        /// The end.
        t_end: f64,
    },
    /// An adaptive run was asked of a scheme without an error estimate.
    #[error("`{scheme}` has no error estimate and needs a fixed step (`{step}`)", step = option("step"))]
    NeedsStep {
        /// The scheme.
        scheme: &'static str,
    },
    /// An adaptive run was asked of a treatment that is for equal steps.
    #[error(
        "`{treatment}` needs a fixed step (`{step}`): one that is chosen from an error estimate would not be chosen again backwards in time, and symmetry is what it is for", step = option("step")
    )]
    NeedsEqualSteps {
        /// The treatment.
        treatment: &'static str,
    },
    /// The outputs of a fixed-step run have to be on steps.
    #[error("the output spacing {every} is not a multiple of the step {h}")]
    SpacingOffSteps {
        /// The output spacing.
        every: f64,
        /// The step.
        h: f64,
    },
    /// Output times are not in the order of the run, or not within it.
    #[error("the output time t = {t} {reason}")]
    OutputTime {
        /// The output time.
        t: f64,
        /// Reason, in words.
        reason: String,
    },
    /// More outputs than there is memory for.
    #[error("{quantity} would be {value:e}, and there is no memory to list their times")]
    NoMemory {
        /// Name of the number.
        quantity: &'static str,
        /// Value of the number.
        value: f64,
    },
    /// More steps or outputs than can be counted.
    #[error("{quantity} would be {value:e}, more than this program can count")]
    TooMany {
        /// Name of the number.
        quantity: &'static str,
        /// Value of the number.
        value: f64,
    },
}

/// Relative tolerance within which ratios count as integers: 100/1e-3 is not exact in binary.
const INTEGER_TOLERANCE: f64 = 1e-9;

/// Largest number of steps: below 2⁵³, so that k·h is exact in k.
const MOST_STEPS: f64 = 9.0e15;

/// Largest number of outputs: their times are listed, and this many take 8 GB.
const MOST_SAMPLES: f64 = 1.0e9;

impl Plan {
    /// Steps of length `h` from `t0` to `t_end`, with output at both ends.
    pub fn fixed(method: Method, t0: f64, t_end: f64, h: f64) -> Result<Plan, PlanError> {
        let length = check_interval(t0, t_end)?;
        check_positive("the step", h)?;
        let ratio = length / h;
        if ratio > MOST_STEPS {
            return Err(PlanError::TooMany { quantity: "the number of steps", value: ratio });
        }
        let whole = whole(ratio, blur(t0, t_end) / h) && ratio.round() >= 1.0;
        let steps = if whole { ratio.round() as u64 } else { ratio.floor() as u64 };
        let shorter_last = if whole { None } else { Some(t_end) };
        let mut fixed = FixedSteps { h, steps, shorter_last, samples: Vec::new() };
        fixed.samples = vec![0, fixed.count()];
        Ok(Plan::new(method, t0, Stepping::Fixed(fixed)))
    }

    /// Adaptive steps from `t0` to `t_end`, with output at both ends.
    pub fn adaptive(
        method: Method,
        t0: f64,
        t_end: f64,
        rtol: f64,
        atol: f64,
    ) -> Result<Plan, PlanError> {
        let length = check_interval(t0, t_end)?;
        check_positive("the relative tolerance", rtol)?;
        if !(atol >= 0.0 && atol.is_finite()) {
            let (quantity, range) = ("the absolute tolerance", "at least 0 and finite");
            return Err(PlanError::OutOfRange { quantity, range, value: atol });
        }
        if !method.scheme.adaptive() {
            return Err(PlanError::NeedsStep { scheme: method.scheme.name });
        }
        if method.treatment.needs_equal_steps() {
            return Err(PlanError::NeedsEqualSteps { treatment: method.treatment.facts().name });
        }
        let adaptive = AdaptiveSteps {
            t0,
            t_end,
            rtol,
            atol,
            first_step: None,
            longest_step: length,
            shortest_step: 0.0,
            samples: vec![t0, t_end],
            moments: Vec::new(),
        };
        Ok(Plan::new(method, t0, Stepping::Adaptive(adaptive)))
    }

    fn new(method: Method, t0: f64, stepping: Stepping) -> Plan {
        Plan {
            method,
            t0,
            reversed: false,
            stepping,
            step_limit: u64::MAX,
            projection_tolerance: None,
            metric: Metric::Auto,
            singular: Singular::default(),
            gain: None,
        }
    }

    /// Limit adaptive steps to `longest`.
    pub fn with_longest_step(mut self, longest: f64) -> Result<Plan, PlanError> {
        check_positive("the longest step", longest)?;
        if let Stepping::Adaptive(adaptive) = &mut self.stepping {
            adaptive.longest_step = adaptive.longest_step.min(longest);
        }
        Ok(self)
    }

    /// Let no adaptive step pass over these moments, which are in the order of time and apart from
    /// each other.
    pub fn with_moments(mut self, moments: Vec<Moment>) -> Plan {
        if let Stepping::Adaptive(adaptive) = &mut self.stepping {
            adaptive.moments = moments;
        }
        self
    }

    /// Moments that no step may pass over.
    pub fn moments(&self) -> &[Moment] {
        match &self.stepping {
            Stepping::Adaptive(adaptive) => &adaptive.moments,
            Stepping::Fixed(_) => &[],
        }
    }

    /// True if steps may end at switching surfaces: if they are adaptive.
    pub fn lands(&self) -> bool {
        matches!(self.stepping, Stepping::Adaptive(_))
    }

    /// True if there are moments that no step may pass over.
    pub fn has_moments(&self) -> bool {
        !self.moments().is_empty()
    }

    /// Set `count` outputs, evenly spaced from the start to the end, both included. With fixed
    /// steps the outputs fall on the nearest steps, and there are fewer of them if there are fewer
    /// steps.
    pub fn with_samples(self, count: u64) -> Result<Plan, PlanError> {
        let (steps, end) = match &self.stepping {
            Stepping::Fixed(fixed) => (fixed.count(), fixed.time(self.t0, fixed.count())),
            Stepping::Adaptive(adaptive) => (0, adaptive.t_end),
        };
        self.with_samples_over(count, steps, end)
    }

    /// Set outputs as far apart as `count` evenly spaced ones up to the time `until`, and one at
    /// the end: the outputs of a run to `until`, and their continuation.
    pub fn with_samples_until(self, count: u64, until: f64) -> Result<Plan, PlanError> {
        let steps = match &self.stepping {
            Stepping::Fixed(fixed) => {
                match Plan::fixed(self.method, self.t0, until, fixed.h)?.stepping {
                    Stepping::Fixed(part) => part.count(),
                    Stepping::Adaptive(_) => 0,
                }
            }
            Stepping::Adaptive(_) => 0,
        };
        self.with_samples_over(count, steps, until)
    }

    /// Set outputs as `count` evenly spaced ones in the first `steps` equal steps, or up to the
    /// time `until`.
    fn with_samples_over(mut self, count: u64, steps: u64, until: f64) -> Result<Plan, PlanError> {
        let (t0, quantity) = (self.t0, "the number of samples");
        if count < 2 {
            return Err(PlanError::OutOfRange {
                quantity,
                range: "at least 2",
                value: count as f64,
            });
        }
        let length = check_interval(t0, until)?;
        let expected = (count - 1) as f64 * ((self.t_end() - t0) / length).max(1.0);
        match &mut self.stepping {
            Stepping::Fixed(fixed) => {
                let (steps, gaps, last) = (u128::from(steps), u128::from(count - 1), fixed.count());
                let expected = expected.min(last as f64);
                if expected > MOST_SAMPLES {
                    return Err(PlanError::TooMany { quantity, value: expected });
                }
                fixed.samples = Vec::new();
                reserve(&mut fixed.samples, expected)?;
                if gaps >= steps {
                    fixed.samples.extend(0..=last);
                } else {
                    let nearest = |i: u128| ((2 * i * steps + gaps) / (2 * gaps)) as u64;
                    fixed.samples.extend((0..).map(nearest).take_while(|&step| step < last));
                    fixed.samples.push(last);
                }
            }
            Stepping::Adaptive(adaptive) => {
                if expected > MOST_SAMPLES {
                    return Err(PlanError::TooMany { quantity, value: expected });
                }
                let (gaps, end) = (count - 1, adaptive.t_end);
                // A last gap that is due to rounding alone is dropped.
                let near = INTEGER_TOLERANCE * (length / gaps as f64);
                let time =
                    |i: u64| if i == gaps { until } else { t0 + length * (i as f64 / gaps as f64) };
                adaptive.samples = Vec::new();
                reserve(&mut adaptive.samples, expected)?;
                adaptive.samples.extend((0..).map(time).take_while(|&t| t < end - near));
                adaptive.samples.push(end);
            }
        }
        Ok(self)
    }

    /// Set outputs at t0, t0 + `every`, t0 + 2·`every` … up to the end.
    pub fn with_spacing(mut self, every: f64) -> Result<Plan, PlanError> {
        check_positive("the output spacing", every)?;
        let (t0, blur) = (self.t0, blur(self.t0, self.t_end()));
        let count = |length: f64| {
            let ratio = length / every;
            let whole = if whole(ratio, blur / every) { ratio.round() } else { ratio.floor() };
            if whole < MOST_SAMPLES {
                Ok(whole as u64)
            } else {
                Err(PlanError::TooMany { quantity: "the number of samples", value: whole })
            }
        };
        match &mut self.stepping {
            Stepping::Fixed(fixed) => {
                let ratio = every / fixed.h;
                if !is_integer(ratio) || ratio < 0.5 {
                    return Err(PlanError::SpacingOffSteps { every, h: fixed.h });
                }
                let stride = ratio.round() as u64;
                let expected = count(fixed.h * fixed.steps as f64)?;
                fixed.samples = Vec::new();
                reserve(&mut fixed.samples, expected as f64)?;
                fixed.samples.extend((0..=fixed.steps).step_by(stride as usize));
            }
            Stepping::Adaptive(adaptive) => {
                let (last, end) = (count(adaptive.t_end - t0)?, adaptive.t_end);
                adaptive.samples = Vec::new();
                reserve(&mut adaptive.samples, last as f64)?;
                adaptive.samples.extend((0..=last).map(|i| (t0 + i as f64 * every).min(end)));
            }
        }
        Ok(self)
    }

    /// Set outputs at these times, in the order of the run. With fixed steps they fall on steps.
    pub fn with_times(mut self, times: &[f64]) -> Result<Plan, PlanError> {
        let (t0, end, blur) = (self.t0, self.t_end(), blur(self.t0, self.t_end()));
        let refused = |t: f64, reason: String| PlanError::OutputTime { t: self.clock(t), reason };
        if let Some(pair) = times.windows(2).find(|pair| !pair.is_sorted_by(|a, b| a < b)) {
            let before = self.clock(pair[0]);
            let reason = format!("comes before t = {before}, which precedes it in the list");
            return Err(refused(pair[1], reason));
        }
        if let Some(&t) = times.iter().find(|t| !(**t >= t0 - blur && **t <= end + blur)) {
            let [from, until] = [t0, end].map(|t| self.clock(t));
            return Err(refused(t, format!("is outside the run, from t = {from} to {until}")));
        }
        let reversed = self.reversed;
        match &mut self.stepping {
            Stepping::Adaptive(adaptive) => {
                adaptive.samples = times.iter().map(|t| t.clamp(t0, end)).collect();
            }
            Stepping::Fixed(fixed) => {
                let step = |&t: &f64| {
                    let ratio = (t - t0) / fixed.h;
                    if (t - end).abs() <= blur {
                        return Ok(fixed.count());
                    }
                    if whole(ratio, blur / fixed.h) {
                        return Ok(ratio.round() as u64);
                    }
                    let shown = if reversed { 0.0 - t } else { t };
                    let reason = format!("is not on a step of {}", fixed.h);
                    Err(PlanError::OutputTime { t: shown, reason })
                };
                fixed.samples = times.iter().map(step).collect::<Result<_, _>>()?;
                fixed.samples.dedup();
            }
        }
        Ok(self)
    }

    /// Time at which the run ends.
    pub fn t_end(&self) -> f64 {
        match &self.stepping {
            Stepping::Fixed(fixed) => fixed.time(self.t0, fixed.count()),
            Stepping::Adaptive(adaptive) => adaptive.t_end,
        }
    }

    /// Time of the system as readers count it, or back: the opposite if the system is reversed.
    pub fn clock(&self, t: f64) -> f64 {
        if self.reversed { 0.0 - t } else { t }
    }

    /// The length of the run.
    pub fn span(&self) -> f64 {
        self.t_end() - self.t0
    }

    /// Length h of equal steps; `None` for adaptive ones.
    pub fn fixed_step(&self) -> Option<f64> {
        self.stepping.fixed().map(|fixed| fixed.h)
    }

    /// Number of outputs.
    pub fn sample_count(&self) -> usize {
        match &self.stepping {
            Stepping::Fixed(fixed) => fixed.samples.len(),
            Stepping::Adaptive(adaptive) => adaptive.samples.len(),
        }
    }

    /// Time of output `index`.
    pub fn sample_time(&self, index: usize) -> f64 {
        match &self.stepping {
            Stepping::Fixed(fixed) => fixed.time(self.t0, fixed.samples[index]),
            Stepping::Adaptive(adaptive) => adaptive.samples[index],
        }
    }
}

impl AdaptiveSteps {
    /// Moment that lasts at t, or the next one.
    pub fn moment_at(&self, t: f64) -> Option<&Moment> {
        self.moments.get(self.moments.partition_point(|moment| moment.until <= t))
    }

    /// Length of the run. Steps are counted from its start, so that they may be far shorter than
    /// the rounding of t.
    pub fn span(&self) -> f64 {
        self.t_end - self.t0
    }

    /// Time that is `elapsed` after the start.
    pub fn time(&self, elapsed: f64) -> f64 {
        trial::time([self.span(), self.t0, self.t_end], elapsed)
    }

    /// Time of output `index` since the start; `None` if there is none.
    pub fn sample_after(&self, index: usize) -> Option<f64> {
        self.samples.get(index).map(|t| t - self.t0)
    }

    /// Square of the scale below which `atol` counts instead of `rtol`.
    pub fn square_of_least_scale(&self) -> f64 {
        (self.atol / self.rtol).powi(2)
    }
}

impl FixedSteps {
    /// Number of steps, a shorter last one included.
    pub fn count(&self) -> u64 {
        self.steps + u64::from(self.shorter_last.is_some())
    }

    /// True if a step begins at the time t, up to rounding.
    pub fn meets(&self, t0: f64, t: f64) -> bool {
        whole((t - t0) / self.h, blur(t0, t) / self.h)
    }

    /// Number of steps that do not depend on the end of the run. The last step does: it may be
    /// shorter, and multipliers at its end are those of one side. The step before a shorter one
    /// does, too: multipliers between them depend on that length.
    pub(crate) fn free_steps(&self) -> u64 {
        self.count().saturating_sub(if self.shorter_last.is_some() { 2 } else { 1 })
    }

    /// Time after `step` steps: fma(step, h, t₀), so that it carries one rounding however long the
    /// run.
    pub fn time(&self, t0: f64, step: u64) -> f64 {
        match self.shorter_last {
            Some(t_end) if step > self.steps => t_end,
            _ => (step as f64).mul_add(self.h, t0),
        }
    }

    /// Length of the step that begins after `step` steps.
    pub fn length(&self, t0: f64, step: u64) -> f64 {
        match self.shorter_last {
            // Counted from the start, as t may be far larger than the step.
            Some(t_end) if step == self.steps => (t_end - t0) - step as f64 * self.h,
            _ => self.h,
        }
    }

    /// Lengths of the steps before and after the state after `step` steps; 0 if there is none.
    pub(crate) fn lengths_around(&self, t0: f64, step: u64) -> (f64, f64) {
        let before = if step == 0 { 0.0 } else { self.length(t0, step - 1) };
        let after = if step == self.count() { 0.0 } else { self.length(t0, step) };
        (before, after)
    }
}

/// Lists of all output times that a run has at once: of its plan, in its state and for its store.
const LISTS: usize = 3;

/// Reserve memory for about so many output times, if there is enough for all lists of them.
fn reserve<T>(samples: &mut Vec<T>, expected: f64) -> Result<(), PlanError> {
    let (quantity, count) = ("the number of samples", expected as usize + 2);
    samples
        .try_reserve(LISTS * count)
        .map_err(|_| PlanError::NoMemory { quantity, value: expected })?;
    samples.shrink_to(count);
    Ok(())
}

fn is_integer(ratio: f64) -> bool {
    whole(ratio, 0.0)
}

/// True if a ratio is an integer up to the tolerance, or up to the `blur` of its numerator.
fn whole(ratio: f64, blur: f64) -> bool {
    (ratio - ratio.round()).abs() <= INTEGER_TOLERANCE * ratio + blur
}

/// Rounding of the length of a run: that of its ends, which may be far larger than it.
fn blur(t0: f64, t_end: f64) -> f64 {
    f64::EPSILON * t0.abs().max(t_end.abs())
}

fn check_interval(t0: f64, t_end: f64) -> Result<f64, PlanError> {
    if t_end <= t0 && t_end.is_finite() {
        return Err(PlanError::EndNotAfterStart { t0, t_end });
    }
    let length = t_end - t0;
    check_positive("the integration time", length)?;
    Ok(length)
}

fn check_positive(quantity: &'static str, value: f64) -> Result<(), PlanError> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(PlanError::OutOfRange { quantity, range: "positive and finite", value })
    }
}

#[cfg(test)]
mod tests;
