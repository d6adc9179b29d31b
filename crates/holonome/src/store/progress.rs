//! The two small files that say how far a run is and how it ended.

use super::error::StoreError;
use super::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const CHECKPOINT: &str = "checkpoint.json";
const STATUS: &str = "status.json";

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It runs, or was killed while it ran.
    Running,
    /// It reached its end.
    Finished,
    /// It failed; the samples up to the failure are stored.
    Failed,
    /// It was stopped and can be resumed.
    Interrupted,
}

/// Content of `checkpoint.json`; borrows the state to write it and owns it when read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint<S> {
    /// Samples that are stored.
    pub samples: usize,
    /// What the run continues from.
    pub state: S,
}

/// Content of `status.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Progress {
    /// How the run stands.
    pub status: Status,
    /// Samples that are stored; while it runs, the checkpoint knows better.
    pub samples: usize,
    /// The results, by whoever ran it.
    pub summary: Value,
}

impl Progress {
    /// A run that has begun.
    pub(super) fn running(samples: usize) -> Progress {
        Progress { status: Status::Running, samples, summary: Value::Null }
    }

    /// Reads `status.json`.
    pub(super) fn read(run: &Path) -> Result<Progress, StoreError> {
        let path = run.join(STATUS);
        match files::read_if_present(&path)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| StoreError::damaged(&path, error)),
            None => Err(StoreError::damaged(&path, "it is missing")),
        }
    }

    /// Replaces `status.json`.
    pub(super) fn write(&self, run: &Path) -> Result<(), StoreError> {
        write(&run.join(STATUS), self, &mut Vec::new())
    }
}

/// Reads `checkpoint.json`; a run that was stopped before its first checkpoint has none.
pub(super) fn read_checkpoint(run: &Path) -> Result<Option<Checkpoint<Value>>, StoreError> {
    let path = run.join(CHECKPOINT);
    let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| StoreError::damaged(&path, error));
    files::read_if_present(&path)?.map(parse).transpose()
}

/// Replaces `checkpoint.json`; `scratch` keeps its memory between calls.
pub(super) fn write_checkpoint(
    run: &Path,
    samples: usize,
    state: &impl Serialize,
    scratch: &mut Vec<u8>,
) -> Result<(), StoreError> {
    write(&run.join(CHECKPOINT), &Checkpoint { samples, state }, scratch)
}

fn write(path: &Path, content: &impl Serialize, scratch: &mut Vec<u8>) -> Result<(), StoreError> {
    scratch.clear();
    serde_json::to_writer(&mut *scratch, content).map_err(|error| StoreError::write(path, error.into()))?;
    scratch.push(b'\n');
    files::replace(path, scratch)
}
