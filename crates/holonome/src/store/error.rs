//! Errors of stored runs, with the path and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why a run could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A folder for a new run that is not empty.
    #[error("{} is not empty: name another folder, or a new one", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that is not a stored run, or one of another format.
    #[error("{} is not a stored run: {reason}; name the folder of one", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// The folder of a single run, in place of that of an ensemble.
    #[error("{} is a single run, not an ensemble: name the folder of one", path.display())]
    NotAnEnsemble {
        /// The folder.
        path: PathBuf,
    },
    /// An ensemble that an earlier version began.
    #[error("an earlier version of holonome began the ensemble in {}, without blocks: go on with that version, or compute it anew in another folder", path.display())]
    NoBlocks {
        /// The folder.
        path: PathBuf,
    },
    /// A file to be written into a stored run.
    #[error("{} lies in the stored run {}: name a file elsewhere", path.display(), run.display())]
    InsideRun {
        /// The file.
        path: PathBuf,
        /// The run's folder, or an array's.
        run: PathBuf,
    },
    /// A run to which another process is writing.
    #[error("{} is being written by another process: wait until it ends, or stop it first", path.display())]
    InUse {
        /// The run's folder.
        path: PathBuf,
    },
    /// An exhausted disk, quota or largest file size.
    #[error("no space left to write {} ({source}): free some space; what was stored before is kept", path.display())]
    Full {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A path that this user cannot write, or that goes through something that is not a folder.
    #[error("cannot write {} ({source}): name a folder that you may write to", path.display())]
    Unwritable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other failure to write.
    #[error("cannot write {} ({source}); what was stored before is kept", path.display())]
    Write {
        /// The file that could not be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A failure to read a file that exists.
    #[error("cannot read {} ({source})", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the run that is missing, cut off or not as written.
    #[error("{} is damaged: {reason}; put back a copy of it, or make the run again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Symptom.
        reason: String,
    },
    /// A layout, rows or names of the caller that do not fit together: a mistake of the program,
    /// not of its user.
    #[error("the stored arrays do not fit: {reason}")]
    Mismatch {
        /// The parts that do not fit.
        reason: String,
    },
}

impl StoreError {
    /// Name of the variant in lower case, for machine-readable output.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreError::NotEmpty { .. } => "not-empty",
            StoreError::NotARun { .. } => "not-a-run",
            StoreError::NotAnEnsemble { .. } => "not-an-ensemble",
            StoreError::NoBlocks { .. } => "no-blocks",
            StoreError::InsideRun { .. } => "inside-run",
            StoreError::InUse { .. } => "in-use",
            StoreError::Full { .. } => "disk-full",
            StoreError::Unwritable { .. } => "unwritable",
            StoreError::Write { .. } => "write",
            StoreError::Read { .. } => "read",
            StoreError::Damaged { .. } => "damaged",
            StoreError::Mismatch { .. } => "mismatch",
        }
    }

    /// Classify a failed write by its remedy.
    pub(crate) fn write(path: &Path, source: io::Error) -> StoreError {
        use io::ErrorKind::*;
        let path = path.to_path_buf();
        match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => StoreError::Full { path, source },
            NotFound | PermissionDenied | ReadOnlyFilesystem | NotADirectory | IsADirectory
            | InvalidFilename => StoreError::Unwritable { path, source },
            _ => StoreError::Write { path, source },
        }
    }

    /// Error of a failed read.
    pub(crate) fn read(path: &Path, source: io::Error) -> StoreError {
        StoreError::Read { path: path.to_path_buf(), source }
    }

    /// Error of a file that is not as written.
    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> StoreError {
        StoreError::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// The error with another path: users know the folder that they asked for, not the hidden one
    /// beside it.
    pub(super) fn about(self, target: &Path) -> StoreError {
        let path = target.to_path_buf();
        match self {
            StoreError::Full { source, .. } => StoreError::Full { path, source },
            StoreError::Unwritable { source, .. } => StoreError::Unwritable { path, source },
            StoreError::Write { source, .. } => StoreError::Write { path, source },
            other => other,
        }
    }
}
