//! What a user can choose: about the model, and about the run.

use crate::error::Error;
use holonome_integrate::plan::Metric;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Choices that change the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `--set NAME=EXPR`: values in place of those in the file.
    pub set: Vec<(String, String)>,
    /// `--seed`: which random numbers `normal()` and `uniform()` draw.
    pub seed: u64,
    /// `--project-initial`: move the initial state onto the constraint set.
    pub project_initial: bool,
    /// Start where the file says even if that is off the constraint set: where `--reference` says what to aim at.
    #[serde(default)]
    pub start_off_set: bool,
    /// Start and end of the run: where its time begins, and where claims are tested; those of a run by default where
    /// absent.
    #[serde(default)]
    pub span: Option<(f64, f64)>,
    /// `--allow-unverified`: run although a claimed integral, or a constraint of a field, is not kept by the motion, without
    /// holding it.
    #[serde(default)]
    pub allow_unverified: bool,
    /// `--stiff NAME`: the term of the potential energy that is stiff, a `let`.
    #[serde(default)]
    pub stiff: Option<String>,
}

impl Settings {
    /// Start and end of the run, as far as they are known.
    pub(crate) fn span(&self) -> (f64, f64) {
        self.span.unwrap_or(holonome_model::consistency::SPAN)
    }
}

/// The gains of a feedback term.
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
    /// W(ΔF) and L(x) as formulas, given to [`Simulation::with_feedback`](crate::Simulation::with_feedback).
    Formula,
}

/// How strong a penalty is.
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
                Error::option(format!("--penalty '{number}' is no number: write --penalty auto or --penalty 20"))
            }),
        }
    }
}

/// Choices about a run; the defaults are those of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// The method's name.
    pub method: String,
    /// Fixed step h; chosen from the tolerances where absent.
    pub step: Option<f64>,
    /// Relative tolerance of adaptive steps.
    pub rtol: f64,
    /// Absolute floor of the tolerance of adaptive steps: an error of a vector below it counts as none. 0 is none, so
    /// that no unit matters.
    pub atol: f64,
    /// Longest adaptive step.
    #[serde(default)]
    pub max_step: Option<f64>,
    /// The run fails after so many steps, rejected ones included.
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// The metric in which `projection` moves a state.
    #[serde(default)]
    pub metric: Metric,
    /// End of the run, T.
    pub until: f64,
    /// Spacing of the outputs.
    pub every: Option<f64>,
    /// Number of outputs, first and last included; where nothing is said, 1001 but no more than steps.
    pub samples: Option<u64>,
    /// Where the run ended at first, which says how far apart `samples` are; nothing unless it was extended.
    #[serde(default)]
    pub sampled_until: Option<f64>,
    /// What is stored at each sample, by the names of arrays; everything where nothing is said.
    #[serde(default)]
    pub record: Option<Vec<String>>,
    /// Gains, for `feedback`.
    pub gain: Option<Gains>,
    /// A state whose invariants are the target in place of the initial state's: `q=(0,1,0),p=(1,0,-1)`.
    pub reference: Option<String>,
    /// Largest residual that `projection` and `symmetric-projection` accept.
    pub projection_tolerance: Option<f64>,
    /// Largest residual, relative to what cancels in an equation, that the Newton iterations of implicit methods accept.
    #[serde(default)]
    pub newton_tolerance: Option<f64>,
    /// The ω of a penalty ½ω²|g|² in place of the constraints.
    #[serde(default)]
    pub penalty: Option<PenaltyStrength>,
    /// The error of the penalty at the end, from which ω is found.
    #[serde(default)]
    pub penalty_tolerance: Option<f64>,
    /// Whether a penalised run starts on the slow manifold; it does where nothing is said.
    #[serde(default)]
    pub slow_manifold: Option<bool>,
    /// Newmark's β, for the methods that have it.
    #[serde(default)]
    pub beta: Option<f64>,
    /// Run a gain that would be refused.
    pub allow_unstable: bool,
    /// Measure the orbit's error by a second run.
    #[serde(default)]
    pub error: bool,
    /// The run's folder; `runs/STEM-k` where absent.
    #[serde(skip)]
    pub out: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            method: "corrected:dop853".to_string(),
            step: None,
            rtol: 1e-9,
            atol: 0.0,
            max_step: None,
            max_steps: None,
            metric: Metric::Auto,
            until: 100.0,
            every: None,
            samples: None,
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
            allow_unstable: false,
            error: false,
            out: None,
        }
    }
}
