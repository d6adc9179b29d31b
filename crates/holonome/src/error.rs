//! Errors of the library: messages for users, facts for programs.

mod start;

pub use start::StartError;

use crate::arrays::Arrays;
use crate::monitored::Monitored;
use crate::serial;
use crate::source::{Finding, Source};
use crate::store::StoreError;
use holonome_integrate::failure::{Culprit, Failure};
use holonome_integrate::method::MethodError;
use holonome_integrate::plan::PlanError;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_words::option;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

/// All errors of the library. [`Display`](fmt::Display) gives a line for each mistake, with its
/// remedy; [`Debug`](fmt::Debug), which a `main` that returns the error shows, gives a model's
/// mistakes with their places in the text.
#[derive(thiserror::Error)]
pub enum Error {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A model with mistakes.
    #[error("{}", model_message(text, diagnostics))]
    Model {
        /// The text.
        text: Box<Source>,
        /// Mistakes, and warnings.
        diagnostics: Vec<Diagnostic>,
    },
    /// An option that makes no sense, or not for this model.
    #[error("{message}")]
    Option {
        /// Mistake and remedy.
        message: String,
    },
    /// A gain that is too large for the step.
    #[error("{message}")]
    Gain {
        /// Mistake and remedy.
        message: String,
    },
    /// A method that does not exist, or not for this model.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Steps or outputs that make no sense.
    #[error("{}", plan_message(.0))]
    Plan(#[from] PlanError),
    /// A trajectory of an ensemble that cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A run that cannot be set up in its store, or cannot be read.
    #[error("{source}")]
    Store {
        /// Reason.
        source: StoreError,
    },
    /// A run that failed.
    #[error("{}", failure_message(failure, monitored, out, *samples))]
    Failed {
        /// Reason.
        failure: Box<Failure<StoreError>>,
        /// Quantities monitored on the way, if they explain the failure.
        monitored: Option<Monitored>,
        /// Folder in which the trajectory up to the failure is stored.
        out: Option<PathBuf>,
        /// Number of samples stored there.
        samples: usize,
        /// The trajectory up to the failure, if it was not stored.
        kept: Option<Box<Arrays>>,
    },
}

fn model_message(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let lines: Vec<String> = errors.map(|error| source.line(error)).collect();
    if lines.is_empty() { "the model cannot be run".to_string() } else { lines.join("\n") }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Model { text, diagnostics } => {
                write!(f, "\n{}", text.render(diagnostics, false).trim_end())
            }
            other => write!(f, "{other}"),
        }
    }
}

/// Message of a plan error with the name of the option, which the numeric half does not know.
fn plan_message(error: &PlanError) -> String {
    let name = match error {
        PlanError::EndNotAfterStart { t0, t_end } => {
            return format!("{} is not after the start at t = {t0}", option("until").with(t_end));
        }
        PlanError::OutOfRange { quantity, .. }
        | PlanError::TooMany { quantity, .. }
        | PlanError::NoMemory { quantity, .. } => match *quantity {
            "the integration time" => option("until"),
            "the step" | "the number of steps" => option("step"),
            "the relative tolerance" => option("rtol"),
            "the absolute tolerance" => option("atol"),
            "the longest step" => option("max_step"),
            "the number of samples" => option("samples"),
            _ => return error.to_string(),
        },
        PlanError::NeedsStep { .. } | PlanError::NeedsEqualSteps { .. } => option("method"),
        PlanError::SpacingOffSteps { .. } => option("every"),
        PlanError::OutputTime { .. } => option("at"),
    };
    format!("{name}: {error}")
}

fn failure_message(
    failure: &Failure<StoreError>,
    monitored: &Option<Monitored>,
    out: &Option<PathBuf>,
    samples: usize,
) -> String {
    let mut message = failure.to_string();
    if let Some(monitored) = monitored {
        message.push_str(&format!("; {monitored}"));
    }
    match out {
        Some(path) if samples == 0 => {
            message.push_str(&format!("; no sample is stored in {}", path.display()))
        }
        Some(path) => {
            message.push_str(&format!("; the trajectory up to there is in {}", path.display()))
        }
        None => {}
    }
    message
}

/// True if writing failed because of the given name.
fn is_a_wrong_name(kind: ErrorKind) -> bool {
    use ErrorKind::{
        AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem,
    };
    [
        AlreadyExists,
        InvalidFilename,
        IsADirectory,
        NotADirectory,
        NotFound,
        PermissionDenied,
        ReadOnlyFilesystem,
    ]
    .contains(&kind)
}

impl Error {
    /// Error of an option that makes no sense.
    pub fn option(message: impl Into<String>) -> Error {
        Error::Option { message: message.into() }
    }

    /// Error of a run that could not be set up in its store.
    pub fn store(source: StoreError) -> Error {
        Error::Store { source }
    }

    /// One word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Read { .. } => "read",
            Error::Model { .. } => "model",
            Error::Option { .. } => "option",
            Error::Gain { .. } => "gain",
            Error::Method(_) => "method",
            Error::Plan(_) => "option",
            Error::Start(_) => "start",
            Error::Store { source } => source.kind(),
            Error::Failed { failure, .. } => match &**failure {
                Failure::Observer(store) => store.kind(),
                other => other.kind(),
            },
        }
    }

    /// 2 if the input is wrong, 1 if the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            // A full or failing disk is not a mistake in the input, whenever it shows; a name that
            // leads nowhere is one.
            Error::Failed { .. } | Error::Store { source: StoreError::Full { .. } } => 1,
            Error::Store { source: StoreError::Write { source, .. } }
                if !is_a_wrong_name(source.kind()) =>
            {
                1
            }
            _ => 2,
        }
    }

    /// The facts that apply.
    pub fn facts(&self) -> ErrorFacts {
        let mut facts = ErrorFacts::new(self.kind(), self.to_string());
        match self {
            Error::Model { text, diagnostics } => {
                facts.diagnostics = Some(text.findings(diagnostics))
            }
            Error::Start(start) => {
                facts.trajectory = Some(start.trajectory());
                facts.constraint = start.miss().map(|miss| miss.member.clone());
                facts.residual = start.miss().map(|miss| miss.residual.value());
            }
            Error::Failed { failure, monitored, out, .. } => {
                facts.out.clone_from(out);
                facts.modified_energy = monitored.and_then(|monitored| monitored.energy);
                facts.eigenvalue = monitored.and_then(|monitored| monitored.eigenvalue);
                facts.add(failure);
            }
            _ => {}
        }
        facts
    }

    /// The facts as `--json` prints them and stores keep them: `{"error": {…}}`.
    pub fn report(&self) -> ErrorReport {
        ErrorReport { error: self.facts() }
    }
}

/// Error as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorReport {
    /// Facts of the error.
    pub error: ErrorFacts,
}

/// Facts of an error, for programs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ErrorFacts {
    /// One word; see [`Error::kind`].
    pub kind: String,
    /// Message for people.
    pub message: String,
    /// Mistakes of a model, and warnings.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub diagnostics: Option<Vec<Finding>>,
    /// Number of the trajectory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<u64>,
    /// Time of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// Name of the constraint, or of another invariant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Iterations of a solve that did not converge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Residual of the constraint or of the equations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Largest |E − E₀| of a modified energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_energy: Option<f64>,
    /// Smallest eigenvalue of a matrix that has to be definite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eigenvalue: Option<f64>,
    /// Folder in which the trajectory up to the failure is stored.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "serial::path")]
    pub out: Option<PathBuf>,
}

impl ErrorFacts {
    /// Facts of any error.
    pub fn new(kind: &str, message: String) -> ErrorFacts {
        ErrorFacts { kind: kind.to_string(), message, ..ErrorFacts::default() }
    }

    /// Add those of the failure of a run.
    fn add(&mut self, failure: &Failure<StoreError>) {
        self.t = failure.t();
        match failure {
            Failure::ProjectionNotConverged { iterations, residual, constraint, .. }
            | Failure::NewtonNotConverged { iterations, residual, constraint, .. } => {
                self.constraint = Some(constraint.clone());
                self.iterations = Some(*iterations);
                self.residual = Some(*residual);
            }
            Failure::StepCollapsed { culprit: Culprit::Constraint { name, .. }, .. } => {
                self.constraint = Some(name.clone());
            }
            Failure::CorrectionFails { residual, constraint, .. }
            | Failure::BranchLost { residual, constraint, .. } => {
                self.constraint = Some(constraint.clone());
                self.residual = Some(*residual);
            }
            Failure::Indefinite { eigenvalue, .. } => self.eigenvalue = Some(*eigenvalue),
            // `the state` and `the field` are not names of invariants.
            Failure::NonFinite { quantity, .. } if !quantity.starts_with("the ") => {
                self.constraint = Some(quantity.clone());
            }
            _ => {}
        }
    }
}
