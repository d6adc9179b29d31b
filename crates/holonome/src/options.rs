//! Options of a model and of a run.

use crate::error::Error;
use holonome_integrate::method::{Method, MethodTreatment, Scheme};
use holonome_integrate::plan::{Metric, Singular};
use holonome_words::option;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that change the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `--set NAME=EXPR`: values in place of those in the file.
    pub set: Vec<(String, String)>,
    /// Values that are given as numbers: of a parameter or a variable (`r`), of a member (`r[2]`),
    /// or of a component (`r[2].x`), each in the order of the model's own numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored::given")]
    pub given: Vec<(String, Vec<f64>)>,
    /// `--start RUN`: the run at whose last state this one begins; the first of `given` are its
    /// values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartRun>,
    /// `--seed`: seed of the random numbers that `normal()` and `uniform()` draw.
    pub seed: u64,
    /// `--project-initial`: move the initial state onto the constraint set.
    pub project_initial: bool,
    /// Start at the state in the file even if it is off the constraint set: with `--reference`,
    /// which gives the target.
    #[serde(default)]
    pub start_off_set: bool,
    /// Start and end of the run, where its time begins and claims are tested. What is absent is what
    /// the model suggests, or else the default of a run. `None` if there is no run.
    #[serde(default)]
    pub span: Option<(Option<f64>, Option<f64>)>,
    /// `--allow-unverified`: run even if the motion does not keep a claimed integral, or a
    /// constraint of a field; it is then not held.
    #[serde(default)]
    pub allow_unverified: bool,
    /// `--stiff NAME`: stiff term of the potential energy, a `let`.
    #[serde(default)]
    pub stiff: Option<String>,
}

/// A run at whose last state another one begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRun {
    /// Its folder.
    pub path: String,
    /// Number of values in [`Settings::given`] that it has given.
    pub values: usize,
    /// Number of crossings of each event there, by its name with indices: their count goes on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// Action of a heat bath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thermostat {
    /// Friction and noise after each step of a deterministic method: the geometric Langevin
    /// algorithm.
    Gla,
}

/// Gains of a feedback term.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gains {
    /// The Gauss–Newton form with a rate from a pilot run.
    Auto,
    /// One gain for every invariant.
    Uniform(f64),
    /// Gains by name; those not named are 0.
    Named(Vec<(String, f64)>),
    /// A symmetric matrix K over the rows of F, row by row (from the library only).
    Matrix(Vec<f64>),
    /// W(ΔF) and L(x) as formulas, given to
    /// [`Simulation::with_feedback`](crate::Simulation::with_feedback).
    Formula,
}

/// Strength of a penalty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PenaltyStrength {
    /// The default for the step and the motion's speed.
    Auto,
    /// This ω.
    Omega(f64),
}

impl std::str::FromStr for PenaltyStrength {
    type Err = Error;

    fn from_str(text: &str) -> Result<PenaltyStrength, Error> {
        match text.trim() {
            "auto" => Ok(PenaltyStrength::Auto),
            number => number.parse().map(PenaltyStrength::Omega).map_err(|_| {
                Error::option(format!(
                    "{penalty} '{number}' is no number: write {penalty_auto} or {penalty_20}",
                    penalty = option("penalty"),
                    penalty_auto = option("penalty").of("auto"),
                    penalty_20 = option("penalty").of("20")
                ))
            }),
        }
    }
}

/// Default relative tolerance of adaptive steps.
pub(crate) const RTOL: f64 = 1e-9;

/// Source of the steps' lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// Equal steps of this length.
    Fixed(f64),
    /// Steps chosen from an estimate of their error.
    Adaptive {
        /// Tolerance of a step's error, relative to the largest length so far of every vector.
        rtol: f64,
        /// Absolute floor of the tolerance: a vector's error below it counts as 0. A floor of 0 is
        /// none, so that units do not matter.
        atol: f64,
    },
}

impl StepSize {
    /// Adaptive steps of this relative tolerance, without an absolute floor.
    pub const fn adaptive(rtol: f64) -> StepSize {
        StepSize::Adaptive { rtol, atol: 0.0 }
    }

    /// Length of equal steps; `None` if they are adaptive.
    pub fn fixed(self) -> Option<f64> {
        match self {
            StepSize::Fixed(h) => Some(h),
            StepSize::Adaptive { .. } => None,
        }
    }

    /// Tolerances of adaptive steps, relative and absolute; `None` for equal steps.
    pub fn tolerances(self) -> Option<(f64, f64)> {
        match self {
            StepSize::Fixed(_) => None,
            StepSize::Adaptive { rtol, atol } => Some((rtol, atol)),
        }
    }
}

impl Default for StepSize {
    fn default() -> StepSize {
        StepSize::adaptive(RTOL)
    }
}

impl From<Option<f64>> for StepSize {
    /// Equal steps of this length, or the default adaptive ones.
    fn from(h: Option<f64>) -> StepSize {
        h.map_or(StepSize::default(), StepSize::Fixed)
    }
}

/// Trial of the methods that may run a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodTrial {
    /// Estimated time of a run by each method, over that by the fastest, which is chosen; `None` if
    /// it is not estimated, as its steps are not compiled as a whole and take several times as long.
    pub times: IndexMap<String, Option<f64>>,
}

/// Options of a run; the defaults are those of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Method of the run: `"corrected:rk4".parse()`, or [`Method::plain`] of a user's own
    /// [scheme](crate::method::Scheme).
    #[serde(with = "stored::method")]
    pub method: Method,
    /// Source of the steps' lengths.
    #[serde(flatten, with = "stored::step")]
    pub step: StepSize,
    /// Longest adaptive step.
    #[serde(default)]
    pub max_step: Option<f64>,
    /// Number of steps after which the run fails, rejected ones included.
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// Metric in which projections move a state.
    #[serde(default)]
    pub metric: Metric,
    /// End of the run, T.
    pub until: f64,
    /// Event that ends the run, with the number of its crossing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_event: Option<(String, u64)>,
    /// Spacing of the outputs.
    pub every: Option<f64>,
    /// Number of outputs, first and last included; by default 1001, with equal steps no more
    /// than steps.
    pub samples: Option<u64>,
    /// Times of the outputs, in the order of the run, in place of evenly spaced ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<f64>>,
    /// First end of a run that was extended, which sets the spacing of `samples`; `None` unless it
    /// was extended.
    #[serde(default)]
    pub sampled_until: Option<f64>,
    /// Names of the arrays stored at each sample; everything by default.
    #[serde(default)]
    pub record: Option<Vec<String>>,
    /// Gains, for `feedback`.
    pub gain: Option<Gains>,
    /// State whose invariants are the target in place of the initial state's:
    /// `q=(0,1,0),p=(1,0,-1)`.
    pub reference: Option<String>,
    /// Largest residual that `projection` and `symmetric-projection` accept.
    pub projection_tolerance: Option<f64>,
    /// Largest residual, relative to the terms that cancel in an equation, that the Newton
    /// iterations of implicit methods accept.
    #[serde(default)]
    pub newton_tolerance: Option<f64>,
    /// ω of a penalty ½ω²|g|² in place of the constraints.
    #[serde(default)]
    pub penalty: Option<PenaltyStrength>,
    /// Error of the penalty at the end, from which ω is found.
    #[serde(default)]
    pub penalty_tolerance: Option<f64>,
    /// True if a penalised run starts on the slow manifold; true by default.
    #[serde(default)]
    pub slow_manifold: Option<bool>,
    /// Newmark's β, for methods with this parameter.
    #[serde(default)]
    pub beta: Option<f64>,
    /// Heat bath around the method.
    #[serde(default)]
    pub thermostat: Option<Thermostat>,
    /// γ of a heat bath, force per velocity.
    #[serde(default)]
    pub friction: Option<f64>,
    /// 1/kT of a heat bath.
    #[serde(default)]
    pub inverse_temperature: Option<f64>,
    /// True if the constraints of a run in a heat bath represent stiff springs, by Fixman's
    /// potential.
    #[serde(default)]
    pub fixman: Option<bool>,
    /// Run even with a gain that would be refused.
    pub allow_unstable: bool,
    /// `--no-landing` if false: whether adaptive steps end at switching surfaces of the field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub landing: bool,
    /// What the run does where its motion goes through a singular configuration of its constraints.
    #[serde(default, skip_serializing_if = "Singular::is_default")]
    pub singular: Singular,
    /// Measure the orbit's error by a second run, or by two more runs with equal steps.
    #[serde(default)]
    pub error: bool,
    /// Trial that has chosen the method, where nobody did. A run that goes on or is made again keeps
    /// the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<MethodTrial>,
    /// Keep every step of a run in memory, so that [`Solution::at`](crate::Solution::at) gives its
    /// states at any time.
    #[serde(skip)]
    pub interpolant: bool,
    /// Names of the options that nobody chose, so that the model decides them; see
    /// [`left_to_model`](crate::left_to_model).
    #[serde(skip)]
    pub open: Vec<&'static str>,
    /// Folder of the run; `runs/STEM-k` by default.
    #[serde(skip)]
    pub out: Option<PathBuf>,
}

/// Event and number of the crossing in `NAME`, `NAME[2]` or `NAME,3`.
///
/// # Errors
/// If the number is none, or 0.
pub fn until_event(text: &str) -> Result<(String, u64), Error> {
    // A comma between brackets is one between indices.
    let behind = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(comma) = text[behind..].rfind(',').map(|comma| behind + comma) else {
        return Ok((text.trim().to_string(), 1));
    };
    let (name, number) = (text[..comma].trim(), text[comma + 1..].trim());
    match number.parse::<u64>() {
        Ok(number) if number > 0 => Ok((name.to_string(), number)),
        _ => Err(Error::option(format!(
            "{} ends at the N-th crossing of an event, and '{number}' is no such N: 1, 2, 3, …",
            option("until_event")
        ))),
    }
}

/// Options that turn a run into an ensemble.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepOptions {
    /// Number of trajectories.
    pub trajectories: u64,
    /// `--vary NAME=EXPR`: differences between trajectories.
    pub vary: Vec<(String, String)>,
    /// Values that are given as numbers for each trajectory: of a parameter or a variable (`r`),
    /// of a member of its (`r[2]`), or of a component (`r[2].x`). One row after the other, each
    /// in the order of the model's own numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored::each")]
    pub each: Vec<(String, Arc<[f64]>)>,
    /// `--over NAME=VALUES`: a grid of the values of scalars (`c`, `p[2].y`), each combination a
    /// trajectory, with the last name running fastest. Arrays then have a dimension for each name
    /// in place of that of the trajectories, whose number may be left at 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored::each")]
    pub over: Vec<(String, Arc<[f64]>)>,
    /// `--shard k/K`: only the k-th of K parts, 1 ≤ k ≤ K.
    #[serde(skip)]
    pub shard: Option<(u64, u64)>,
}

impl SweepOptions {
    /// Names and values that are given as numbers, in the order in which they are stored.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &(String, Arc<[f64]>)> {
        self.each.iter().chain(&self.over)
    }

    /// Names and values that are given as numbers, in the order in which they are stored.
    pub(crate) fn lists_mut(&mut self) -> impl Iterator<Item = &mut (String, Arc<[f64]>)> {
        self.each.iter_mut().chain(&mut self.over)
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            method: Method {
                treatment: MethodTreatment::Corrected,
                ..Method::plain(Scheme::named("dop853").expect("a registered scheme"))
            },
            step: StepSize::default(),
            max_step: None,
            max_steps: None,
            metric: Metric::Auto,
            until: 100.0,
            until_event: None,
            every: None,
            samples: None,
            at: None,
            sampled_until: None,
            record: None,
            gain: None,
            reference: None,
            projection_tolerance: None,
            newton_tolerance: None,
            penalty: None,
            penalty_tolerance: None,
            slow_manifold: None,
            beta: None,
            thermostat: None,
            friction: None,
            inverse_temperature: None,
            fixman: None,
            allow_unstable: false,
            landing: true,
            singular: Singular::default(),
            error: false,
            trial: None,
            interpolant: false,
            open: Vec::new(),
            out: None,
        }
    }
}

/// Form of the options in the attributes of a run's folder: flat, with the method by its name.
mod stored {
    /// Values that are given as numbers, with all their bits.
    pub mod given {
        use holonome_integrate::exact;
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        #[derive(Serialize, Deserialize)]
        struct Given {
            name: String,
            #[serde(with = "exact::list")]
            numbers: Vec<f64>,
        }

        pub fn serialize<S: Serializer>(
            given: &[(String, Vec<f64>)],
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            let entry = |(name, numbers): &(String, Vec<f64>)| Given {
                name: name.clone(),
                numbers: numbers.clone(),
            };
            serializer.collect_seq(given.iter().map(entry))
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Vec<(String, Vec<f64>)>, D::Error> {
            let given = Vec::<Given>::deserialize(deserializer)?;
            Ok(given.into_iter().map(|Given { name, numbers }| (name, numbers)).collect())
        }
    }

    /// Values of each trajectory: their names, how many numbers they are, and a checksum. The
    /// numbers are in a file of their own.
    pub mod each {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};
        use std::sync::Arc;

        type Values = Vec<(String, Arc<[f64]>)>;

        #[derive(Serialize, Deserialize)]
        struct Described {
            name: String,
            numbers: usize,
            crc32c: String,
        }

        pub fn serialize<S: Serializer>(each: &Values, serializer: S) -> Result<S::Ok, S::Error> {
            let described = |(name, numbers): &(String, Arc<[f64]>)| {
                let sum = numbers
                    .iter()
                    .fold(0, |sum, number| crc32c::crc32c_append(sum, &number.to_le_bytes()));
                let (name, numbers) = (name.clone(), numbers.len());
                Described { name, numbers, crc32c: format!("{sum:08x}") }
            };
            serializer.collect_seq(each.iter().map(described))
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
            let described = Vec::<Described>::deserialize(deserializer)?;
            let unread = |of: Described| (of.name, vec![f64::NAN; of.numbers].into());
            Ok(described.into_iter().map(unread).collect())
        }
    }

    pub mod method {
        use holonome_integrate::method::Method;
        use serde::{Deserialize, Deserializer, Serializer, de::Error};

        pub fn serialize<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(method)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
            Method::named(&String::deserialize(deserializer)?).map_err(D::Error::custom)
        }
    }

    pub mod step {
        use crate::options::{RTOL, StepSize};
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        #[derive(Serialize, Deserialize)]
        struct Flat {
            step: Option<f64>,
            rtol: f64,
            atol: f64,
        }

        pub fn serialize<S: Serializer>(step: &StepSize, serializer: S) -> Result<S::Ok, S::Error> {
            // Equal steps are stored with the default tolerances, which nobody gave.
            let flat = match *step {
                StepSize::Fixed(h) => Flat { step: Some(h), rtol: RTOL, atol: 0.0 },
                StepSize::Adaptive { rtol, atol } => Flat { step: None, rtol, atol },
            };
            flat.serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<StepSize, D::Error> {
            let Flat { step, rtol, atol } = Flat::deserialize(deserializer)?;
            Ok(step.map_or(StepSize::Adaptive { rtol, atol }, StepSize::Fixed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Options as an earlier version stored them.
    const STORED: &str = r#"{"method":"plain:rk4","step":0.01,"rtol":1e-6,"atol":1e-8,"max_step":null,"max_steps":null,
        "metric":"auto","until":7.5,"every":null,"samples":null,"sampled_until":null,"record":null,"gain":null,
        "reference":null,"projection_tolerance":null,"newton_tolerance":null,"penalty":null,"penalty_tolerance":null,
        "slow_manifold":null,"beta":null,"thermostat":null,"friction":null,"inverse_temperature":null,"fixman":null,
        "allow_unstable":false,"error":false}"#;

    #[test]
    fn options_stay_flat_in_a_store() {
        let read: RunOptions = serde_json::from_str(STORED).unwrap();
        assert_eq!((read.method.to_string().as_str(), read.step), ("rk4", StepSize::Fixed(0.01)));
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let (before, now) = (serde_json::from_str(STORED).unwrap(), json!(read));
        assert_eq!(keys(&before), keys(&now), "names and order of what is stored");
        assert_eq!(serde_json::from_value::<RunOptions>(now).unwrap(), read);
        let adaptive: RunOptions = serde_json::from_str(&STORED.replace("0.01", "null")).unwrap();
        assert_eq!(adaptive.step, StepSize::Adaptive { rtol: 1e-6, atol: 1e-8 });
        assert_eq!(json!(adaptive)["rtol"], before["rtol"]);
    }
}
