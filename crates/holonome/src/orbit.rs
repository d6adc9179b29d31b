//! Error of an orbit, measured by a second run.

use serde_json::{Map, Value, json};

/// Error of an orbit, variable by variable.
#[derive(Clone, Debug)]
pub struct OrbitError {
    /// Steps of the second run.
    pub second: Second,
    /// The errors, in the order of the model.
    pub families: Vec<FamilyError>,
    /// Time of the first sample at which an error is a tenth of the motion's size.
    pub separated: Option<f64>,
}

/// Steps of the second run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Second {
    /// Half the first run's step; a third run takes a third of it.
    Step(f64),
    /// Steps chosen with this relative tolerance.
    Tolerance(f64),
}

/// Error of a variable or of a family of variables: Euclidean distances, the largest over a
/// family's members.
#[derive(Clone, Debug)]
pub struct FamilyError {
    /// Name of the variable.
    pub name: String,
    /// Error at the end.
    pub last: f64,
    /// Largest error over the samples.
    pub max: f64,
    /// Largest norm of a member over the samples.
    pub size: f64,
}

impl FamilyError {
    /// The largest error over the size; 0 if the error is 0.
    pub fn relative(&self) -> f64 {
        if self.max == 0.0 { 0.0 } else { self.max / self.size }
    }
}

impl OrbitError {
    /// The error as JSON, for programs.
    pub fn to_json(&self) -> Value {
        let second = match self.second {
            Second::Step(h) => json!({"step": h}),
            Second::Tolerance(rtol) => json!({"rtol": rtol}),
        };
        let entry =
            |f: &FamilyError| json!({"final": f.last, "max": f.max, "relative": f.relative()});
        let families: Map<String, Value> =
            self.families.iter().map(|f| (f.name.clone(), entry(f))).collect();
        json!({"second": second, "families": families, "separated": self.separated})
    }
}
