//! Error of an orbit, measured by a second run.

use indexmap::IndexMap;
use serde::Serialize;

/// Error of an orbit, variable by variable.
#[derive(Clone, Debug, Serialize)]
pub struct OrbitError {
    /// Steps of the second run.
    pub second: Second,
    /// Errors by the names of the variables, in the order of the model.
    pub families: IndexMap<String, FamilyError>,
    /// Time of the first sample at which an error is a tenth of the motion's size.
    pub separated: Option<f64>,
}

/// Steps of the second run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Second {
    /// Half the first run's step; a third run takes a third of it.
    #[serde(rename = "step")]
    Step(f64),
    /// Steps chosen with this relative tolerance.
    #[serde(rename = "rtol")]
    Tolerance(f64),
}

/// Error of a variable or of a family of variables: Euclidean distances, the largest over a
/// family's members.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FamilyError {
    /// Error at the end.
    #[serde(rename = "final")]
    pub last: f64,
    /// Largest error over the samples.
    pub max: f64,
    /// Largest error over the largest norm of a member over the samples; 0 if the error is 0.
    pub relative: f64,
}
