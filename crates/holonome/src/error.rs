//! Errors of the library: messages for users, facts for programs.

mod start;

pub use start::StartError;

use crate::arrays::Arrays;
use crate::monitored::Monitored;
use crate::source::Source;
use crate::store::StoreError;
use holonome_integrate::failure::{Culprit, Failure};
use holonome_integrate::method::MethodError;
use holonome_integrate::plan::PlanError;
use holonome_model::syntax::diagnostic::{Diagnostic, Severity};
use holonome_words::option;
use serde_json::{Map, Value, json};
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

    /// `{"error": {…}}` with the facts that apply.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".to_string(), json!(self.kind()));
        error.insert("message".to_string(), json!(self.to_string()));
        match self {
            Error::Model { text, diagnostics } => {
                error.insert("diagnostics".to_string(), text.to_json(diagnostics));
            }
            Error::Start(start) => {
                error.insert("trajectory".to_string(), json!(start.trajectory()));
                if let Some(miss) = start.miss() {
                    error.insert("constraint".to_string(), json!(miss.member));
                    error.insert("residual".to_string(), json!(miss.residual.value()));
                }
            }
            Error::Failed { failure, monitored, out, .. } => {
                if let Some(t) = failure.t() {
                    error.insert("t".to_string(), json!(t));
                }
                if let Failure::ProjectionNotConverged {
                    iterations, residual, constraint, ..
                }
                | Failure::NewtonNotConverged { iterations, residual, constraint, .. } =
                    &**failure
                {
                    error.insert("constraint".to_string(), json!(constraint));
                    error.insert("iterations".to_string(), json!(iterations));
                    error.insert("residual".to_string(), json!(residual));
                }
                if let Failure::StepCollapsed {
                    culprit: Culprit::Constraint { name, .. }, ..
                } = &**failure
                {
                    error.insert("constraint".to_string(), json!(name));
                }
                if let Failure::CorrectionFails { residual, constraint, .. } = &**failure {
                    error.insert("constraint".to_string(), json!(constraint));
                    error.insert("residual".to_string(), json!(residual));
                }
                if let Failure::Indefinite { eigenvalue, .. } = **failure {
                    error.insert("eigenvalue".to_string(), json!(eigenvalue));
                }
                if let Some(Monitored { energy, eigenvalue }) = monitored {
                    let entries = [("modified_energy", energy), ("eigenvalue", eigenvalue)];
                    let known = entries
                        .into_iter()
                        .filter_map(|(key, value)| Some((key.to_string(), json!((*value)?))));
                    error.extend(known);
                }
                // `the state` and `the field` are not names of invariants.
                if let Failure::NonFinite { quantity, .. } = &**failure
                    && !quantity.starts_with("the ")
                {
                    error.insert("constraint".to_string(), json!(quantity));
                }
                if let Some(path) = out {
                    error.insert("out".to_string(), json!(path.display().to_string()));
                }
            }
            _ => {}
        }
        json!({ "error": error })
    }
}
