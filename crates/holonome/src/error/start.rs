//! Why a trajectory cannot start.

use holonome_model::consistency::Miss;
use holonome_model::elaborate::start::NoStart;
use holonome_words::option;

/// Why a trajectory cannot start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    /// A parameter or an initial value does not exist.
    #[error("trajectory {trajectory}: {reason}; correct what {vary} gives it, or what it is made of", vary = option("vary"))]
    NoStart {
        /// Which trajectory.
        trajectory: u64,
        /// Which value, and why.
        reason: NoStart,
    },
    /// It starts off the constraint set.
    #[error(
        "the initial state of trajectory {trajectory} does not meet {miss}; correct the varied values, or let \
         {project_initial} move every start onto the constraint set", project_initial = option("project_initial")
    )]
    OffSet {
        /// Which trajectory.
        trajectory: u64,
        /// Which constraint, and by how much.
        miss: Box<Miss>,
    },
    /// `--project-initial` does not find the constraint set.
    #[error("{project_initial}: trajectory {trajectory}: {reason}; let it start nearer to the constraint set", project_initial = option("project_initial"))]
    NotProjected {
        /// Which trajectory.
        trajectory: u64,
        /// Why, in words.
        reason: String,
    },
    /// A penalised one does not find the slow manifold.
    #[error("{slow_manifold}: trajectory {trajectory}: {reason}; {slow_manifold_off} leaves every start where it is", slow_manifold = option("slow_manifold"), slow_manifold_off = option("slow_manifold").of("off"))]
    NotSlow {
        /// Which trajectory.
        trajectory: u64,
        /// Why, in words.
        reason: String,
    },
}

impl StartError {
    /// Which trajectory.
    pub fn trajectory(&self) -> u64 {
        match *self {
            StartError::NoStart { trajectory, .. }
            | StartError::OffSet { trajectory, .. }
            | StartError::NotProjected { trajectory, .. }
            | StartError::NotSlow { trajectory, .. } => trajectory,
        }
    }

    /// The constraint that it does not meet, if that is what is wrong.
    pub fn miss(&self) -> Option<&Miss> {
        match self {
            StartError::OffSet { miss, .. } => Some(miss),
            _ => None,
        }
    }
}
