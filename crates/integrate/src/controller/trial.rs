//! The length of an attempted step.

/// Attempts at one step, after which it counts as collapsed. Each shortens it by a tenth at least, so these shorten it
/// to 3e-5 of what it was or far less, which no estimate of a smooth solution asks for.
pub const MOST_REJECTIONS: u32 = 100;

/// A step shorter than this many units in the last place of t does not resolve time any more.
pub const SHORTEST_STEP_ULPS: f64 = 10.0;

/// Length and end of the next attempt from t, where `h` is wanted after so many rejections; none where that step is too
/// short to be one. The run ends at `t_end`, and no step but the last one is shorter than `shortest`.
pub fn trial((t_end, shortest): (f64, f64), t: f64, h: f64, rejections: u32) -> Option<(f64, f64)> {
    let remaining = t_end - t;
    let is_last = reaches_end(t_end, t, h);
    let resolves = h > SHORTEST_STEP_ULPS * f64::EPSILON * t.abs() && h >= shortest;
    // The last step may be as short as it has to be; NaN resolves nothing.
    if !(resolves || (is_last && rejections == 0)) || rejections == MOST_REJECTIONS {
        return None;
    }
    Some(if is_last { (remaining, t_end) } else { (h, t + h) })
}

/// Whether a step of the length `h` from t goes to the end: also one that would leave a sliver.
pub(crate) fn reaches_end(t_end: f64, t: f64, h: f64) -> bool {
    SLIVER * h >= t_end - t
}

/// A last step may be longer by this factor than the one that is wanted.
pub const SLIVER: f64 = 1.01;
