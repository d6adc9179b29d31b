//! The error of an orbit, as a second run measures it.

use serde_json::{Map, Value, json};

/// An orbit's error, variable by variable.
#[derive(Clone, Debug)]
pub struct OrbitError {
    /// How the second run stepped.
    pub second: Second,
    /// The errors, in the order of the model.
    pub families: Vec<FamilyError>,
    /// The first sample at which an error is a tenth of the motion's size.
    pub separated: Option<f64>,
}

/// The steps of the second run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Second {
    /// Half the first one's.
    Step(f64),
    /// Chosen with this relative tolerance.
    Tolerance(f64),
}

/// The error of a variable or of a family of variables: Euclidean distances, the largest over a family's members.
#[derive(Clone, Debug)]
pub struct FamilyError {
    /// The variable.
    pub name: String,
    /// The error at the end.
    pub last: f64,
    /// The largest over the samples.
    pub max: f64,
    /// The largest size of a member over the samples.
    pub size: f64,
}

impl FamilyError {
    /// The largest error over the size; 0 of what does not move.
    pub fn relative(&self) -> f64 {
        if self.max == 0.0 { 0.0 } else { self.max / self.size }
    }
}

impl OrbitError {
    /// For programs.
    pub fn to_json(&self) -> Value {
        let second = match self.second {
            Second::Step(h) => json!({"step": h}),
            Second::Tolerance(rtol) => json!({"rtol": rtol}),
        };
        let entry = |f: &FamilyError| json!({"final": f.last, "max": f.max, "relative": f.relative()});
        let families: Map<String, Value> = self.families.iter().map(|f| (f.name.clone(), entry(f))).collect();
        json!({"second": second, "families": families, "separated": self.separated})
    }
}
