//! The length of an attempted step.

use holonome_arithmetic::Real;

/// Number of attempts at one step after which it counts as collapsed. Each shortens it by a tenth
/// at least, so these shorten it to 3e-5 of what it was or far less, which no estimate of a smooth
/// solution asks for.
const MOST_REJECTIONS: u32 = 100;

/// Shortest step in units in the last place of the time since the start; a shorter one does not
/// resolve time.
const SHORTEST_STEP_ULPS: f64 = 10.0;

/// Length and end of an attempt; times are counted from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Trial<R: Real> {
    /// Its length.
    pub length: R,
    /// Its end.
    pub end: R,
    /// True if it goes to the end of the run.
    pub is_last: R::Truth,
    /// True unless the step is too short.
    pub resolves: R::Truth,
}

/// Next attempt from a time, if `h` is wanted after so many rejections. The run lasts for `span`;
/// no step but the last one is shorter than `shortest`.
#[inline(always)]
pub fn trial<R: Real>((span, shortest): (R, R), elapsed: R, h: R, rejections: R) -> Trial<R> {
    let is_last = reaches_end(span, elapsed, h);
    let resolves = shortest_resolved(elapsed).less(h) & shortest.at_most(h);
    // The last step may be as short as it has to be. A step of NaN counts as too short.
    let may_be_short = is_last & rejections.equals(h.constant(0.0));
    let few = rejections.less(h.constant(f64::from(MOST_REJECTIONS)));
    Trial {
        length: R::select(is_last, span - elapsed, h),
        end: R::select(is_last, span, elapsed + h),
        is_last,
        resolves: (resolves | may_be_short) & few,
    }
}

/// Length of a step below which it does not resolve the time since the start.
pub(crate) fn shortest_resolved<R: Real>(elapsed: R) -> R {
    elapsed * (SHORTEST_STEP_ULPS * f64::EPSILON)
}

/// True if a step of length `h` goes to the end, as does one that would leave a sliver.
pub(crate) fn reaches_end<R: Real>(span: R, elapsed: R, h: R) -> R::Truth {
    // What is left is known before h is.
    ((span - elapsed) * (1.0 / SLIVER)).at_most(h)
}

/// Largest ratio of a last step to the one that is wanted.
const SLIVER: f64 = 1.01;

/// Time that is `elapsed` after the start of a run from t₀ that lasts for `span`; its end is
/// exactly `t_end`.
pub fn time<R: Real>([span, t0, t_end]: [R; 3], elapsed: R) -> R {
    R::select(span.at_most(elapsed), t_end, t0 + elapsed)
}
