//! Errors of a run, and the order measured from them.

use super::Row;
use super::reference::Reference;
use super::trial::Samples;
use crate::serial::number_or_nan;
use serde::{Deserialize, Serialize};

/// Magnitude of an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// The error itself.
    Known(f64),
    /// Upper bound: the error is too close to the reference's own error to be distinguished from
    /// it.
    AtMost(f64),
}

/// Factor over the reference's error from which on an error is known, and then to a tenth.
const KNOWN_ABOVE: f64 = 10.0;

impl Size {
    fn of(known: Option<f64>, at_most: Option<f64>) -> Size {
        known.map_or(Size::AtMost(at_most.unwrap_or(f64::NAN)), Size::Known)
    }

    fn new(distance: f64, reference: Option<f64>) -> Size {
        let reference = reference.unwrap_or(f64::NAN);
        if distance > KNOWN_ABOVE * reference {
            Size::Known(distance)
        } else {
            Size::AtMost(distance + reference)
        }
    }

    /// The error itself; `None` if only a bound is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Size::Known(size) => Some(size),
            Size::AtMost(_) => None,
        }
    }

    /// The number, be it the error or its bound.
    pub fn number(self) -> f64 {
        match self {
            Size::Known(size) | Size::AtMost(size) => size,
        }
    }
}

/// Errors of a run: Euclidean distances of its states from the reference. Of an error and its bound
/// one is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Errors {
    /// Time of the last error: the end, or the last sample for which the reference is good.
    #[serde(deserialize_with = "number_or_nan")]
    pub t: f64,
    /// Error at that time.
    #[serde(rename = "final")]
    pub last: Option<f64>,
    /// Bound of the error at that time.
    #[serde(rename = "final_at_most")]
    pub last_at_most: Option<f64>,
    /// Largest error over the samples up to that time.
    pub max: Option<f64>,
    /// Bound of the largest error.
    pub max_at_most: Option<f64>,
}

impl Errors {
    pub(super) fn of(samples: &Samples, reference: &Reference) -> Option<Errors> {
        let all = samples
            .t
            .iter()
            .zip(&samples.x)
            .map_while(|(&t, x)| Some((t, reference.distance(t, x)?)));
        let (mut last, mut max) = (None, 0.0);
        for (t, distance) in all {
            last = Some((t, distance));
            max = f64::max(max, distance);
        }
        let (t, distance) = last.filter(|(t, _)| *t > 0.0)?;
        let [last, max] = [distance, max].map(|size| Size::new(size, reference.error));
        let bound = |size: Size| Some(size.number()).filter(|_| size.known().is_none());
        let (last_at_most, max_at_most) = (bound(last), bound(max));
        Some(Errors { t, last: last.known(), last_at_most, max: max.known(), max_at_most })
    }

    /// Error at the end, or its bound.
    pub fn at_end(self) -> Size {
        Size::of(self.last, self.last_at_most)
    }

    /// Largest error, or its bound.
    pub fn largest(self) -> Size {
        Size::of(self.max, self.max_at_most)
    }
}

/// True if two rows differ in their step only.
fn alike(a: &Row, b: &Row) -> bool {
    a.method == b.method && a.penalty == b.penalty
}

/// Set the order between successive rows of one method with fixed steps: log(e₁/e₂)/log(h₁/h₂), if
/// both errors are known.
pub(super) fn measure_orders(rows: &mut [Row]) {
    let point = |row: &Row| {
        let error = row.outcome.as_ref().ok()?.errors?.last?;
        Some((row.step?, error))
    };
    for k in 1..rows.len() {
        let order = match (point(&rows[k - 1]), point(&rows[k])) {
            (Some((h1, e1)), Some((h2, e2))) if alike(&rows[k - 1], &rows[k]) && h1 != h2 => {
                Some((e1 / e2).ln() / (h1 / h2).ln())
            }
            _ => None,
        };
        if let Ok(measured) = &mut rows[k].outcome {
            measured.order = order;
        }
    }
}
