//! The length of an attempted step.

/// Number of attempts at one step after which it counts as collapsed. Each shortens it by a tenth at least, so these
/// shorten it to 3e-5 of what it was or far less, which no estimate of a smooth solution asks for.
pub const MOST_REJECTIONS: u32 = 100;

/// Shortest step in units in the last place of t; a shorter one does not resolve time.
pub const SHORTEST_STEP_ULPS: f64 = 10.0;

/// Length and end of the next attempt from t, if `h` is wanted after so many rejections; `None` if that step is too
/// short. The run ends at `t_end`, and no step but the last one is shorter than `shortest`.
pub fn trial((t_end, shortest): (f64, f64), t: f64, h: f64, rejections: u32) -> Option<(f64, f64)> {
    let remaining = t_end - t;
    let is_last = reaches_end(t_end, t, h);
    let resolves = h > shortest_resolved(t) && h >= shortest;
    // The last step may be as short as it has to be. A step of NaN counts as too short.
    if !(resolves || (is_last && rejections == 0)) || rejections == MOST_REJECTIONS {
        return None;
    }
    Some(if is_last { (remaining, t_end) } else { (h, t + h) })
}

/// Length of a step from t below which it does not resolve time.
pub(crate) fn shortest_resolved(t: f64) -> f64 {
    SHORTEST_STEP_ULPS * f64::EPSILON * t.abs()
}

/// True if a step of length `h` from t goes to the end, as does one that would leave a sliver.
pub(crate) fn reaches_end(t_end: f64, t: f64, h: f64) -> bool {
    SLIVER * h >= t_end - t
}

/// Largest ratio of a last step to the one that is wanted.
pub const SLIVER: f64 = 1.01;
