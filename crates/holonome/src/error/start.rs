//! Errors of a trajectory's start.

use holonome_model::consistency::Miss;
use holonome_model::elaborate::start::NoStart;
use holonome_words::option;

/// Reason why a trajectory cannot start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// A parameter or an initial value that does not exist.
    #[error(
        "trajectory {trajectory}: {reason}; correct what is given to it by {vary} or as numbers, or what it is made of",
        vary = option("vary")
    )]
    NoStart {
        /// Number of the trajectory.
        trajectory: u64,
        /// The value that does not exist, and why.
        reason: NoStart,
    },
    /// A start off the constraint set.
    #[error(
        "the initial state of trajectory {trajectory} does not meet {miss}; correct the varied values, or let \
         {project_initial} move every start onto the constraint set", project_initial = option("project_initial")
    )]
    OffSet {
        /// Number of the trajectory.
        trajectory: u64,
        /// The constraint that is not met, and by how much.
        miss: Box<Miss>,
    },
    /// Failure of `--project-initial` to reach the constraint set.
    #[error("{project_initial}: trajectory {trajectory}: {reason}; let it start nearer to the constraint set", project_initial = option("project_initial"))]
    NotProjected {
        /// Number of the trajectory.
        trajectory: u64,
        /// Reason, in words.
        reason: String,
    },
    /// Failure of a penalised start to reach the slow manifold.
    #[error("{slow_manifold}: trajectory {trajectory}: {reason}; {slow_manifold_off} leaves every start where it is", slow_manifold = option("slow_manifold"), slow_manifold_off = option("slow_manifold").of("off"))]
    NotSlow {
        /// Number of the trajectory.
        trajectory: u64,
        /// Reason, in words.
        reason: String,
    },
}

impl StartError {
    /// The message for a run by itself.
    pub(crate) fn of_run(&self) -> String {
        let [project, slow] = ["project_initial", "slow_manifold"].map(option);
        match self {
            StartError::NoStart { reason, .. } => {
                format!("{reason}; correct the value that it is given, or what that is made of")
            }
            StartError::OffSet { miss, .. } => format!(
                "the initial state does not meet {miss}; correct the values, or let {project} move it onto the constraint set"
            ),
            StartError::NotProjected { reason, .. } => {
                format!("{project}: {reason}; start nearer to the constraint set")
            }
            StartError::NotSlow { reason, .. } => {
                format!("{slow}: {reason}; {} leaves the start where it is", slow.of("off"))
            }
        }
    }

    /// Number of the trajectory.
    pub fn trajectory(&self) -> u64 {
        match *self {
            StartError::NoStart { trajectory, .. }
            | StartError::OffSet { trajectory, .. }
            | StartError::NotProjected { trajectory, .. }
            | StartError::NotSlow { trajectory, .. } => trajectory,
        }
    }

    /// The constraint that is not met; `None` if the error is another.
    pub fn miss(&self) -> Option<&Miss> {
        match self {
            StartError::OffSet { miss, .. } => Some(miss),
            _ => None,
        }
    }
}
