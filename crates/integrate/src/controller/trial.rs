//! The length of an attempted step.

/// Number of attempts at one step after which it counts as collapsed. Each shortens it by a tenth
/// at least, so these shorten it to 3e-5 of what it was or far less, which no estimate of a smooth
/// solution asks for.
pub const MOST_REJECTIONS: u32 = 100;

/// Shortest step in units in the last place of the time since the start; a shorter one does not
/// resolve time.
pub const SHORTEST_STEP_ULPS: f64 = 10.0;

/// Length and end of the next attempt from a time, if `h` is wanted after so many rejections;
/// `None` if that step is too short. Times are counted from the start of the run, which lasts for
/// `span`; no step but the last one is shorter than `shortest`.
pub fn trial(
    (span, shortest): (f64, f64),
    elapsed: f64,
    h: f64,
    rejections: u32,
) -> Option<(f64, f64)> {
    let remaining = span - elapsed;
    let is_last = reaches_end(span, elapsed, h);
    let resolves = h > shortest_resolved(elapsed) && h >= shortest;
    // The last step may be as short as it has to be. A step of NaN counts as too short.
    if !(resolves || (is_last && rejections == 0)) || rejections == MOST_REJECTIONS {
        return None;
    }
    Some(if is_last { (remaining, span) } else { (h, elapsed + h) })
}

/// Length of a step below which it does not resolve the time since the start.
pub(crate) fn shortest_resolved(elapsed: f64) -> f64 {
    SHORTEST_STEP_ULPS * f64::EPSILON * elapsed
}

/// True if a step of length `h` goes to the end, as does one that would leave a sliver.
pub(crate) fn reaches_end(span: f64, elapsed: f64, h: f64) -> bool {
    SLIVER * h >= span - elapsed
}

/// Largest ratio of a last step to the one that is wanted.
pub const SLIVER: f64 = 1.01;
