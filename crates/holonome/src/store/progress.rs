//! The two small files that say how far a run is and how it ended.

use super::checksum;
use super::error::StoreError;
use super::files;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const CHECKPOINT: &str = "checkpoint.bin";
const STATUS: &str = "status.json";

/// How a checkpoint begins. Then come the number of its samples (64 bits, the lowest first), the state as MessagePack,
/// whose lists of numbers are raw bytes, and the checksum of all that.
const HEADER: &[u8] = b"holonome checkpoint 2\n";
const SAMPLES_BYTES: usize = size_of::<u64>();

/// What stands before the checksum of `status.json`.
const CHECKSUM: &str = ",\"crc32c\":\"";

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

/// What a stored run continues from: the state of its last checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    file: Vec<u8>,
    /// Samples that are stored.
    pub(super) samples: usize,
}

impl Checkpoint {
    /// The state, in the form in which [`Store::checkpoint`](super::Store::checkpoint) got it.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        let packed = &self.file[HEADER.len() + SAMPLES_BYTES..self.file.len() - checksum::LEN];
        rmp_serde::from_slice(packed).map_err(|error| StoreError::damaged(&self.path, error))
    }
}

/// Content of `status.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Progress<S = Value> {
    /// How the run stands.
    pub status: Status,
    /// Samples that are stored; while it runs, the checkpoint knows better.
    pub samples: usize,
    /// The results, by whoever ran it.
    pub summary: S,
}

impl Progress {
    /// A run that has begun.
    pub(super) fn running(samples: usize) -> Progress {
        Progress { status: Status::Running, samples, summary: Value::Null }
    }

    /// Reads `status.json`.
    pub(super) fn read(run: &Path) -> Result<Progress, StoreError> {
        let path = run.join(STATUS);
        let damaged = |reason: &str| StoreError::damaged(&path, reason);
        let text = files::read_if_present(&path)?.ok_or_else(|| damaged("it is missing"))?;
        let text = String::from_utf8(text).map_err(|error| StoreError::damaged(&path, error))?;
        let (content, checksum) = text.trim_end().rsplit_once(CHECKSUM).ok_or_else(|| damaged("it is cut off"))?;
        if checksum.strip_suffix("\"}") != Some(&checksum::of_text(content)) {
            return Err(damaged("its checksum does not match"));
        }
        serde_json::from_str(&format!("{content}}}")).map_err(|error| StoreError::damaged(&path, error))
    }
}

impl<S: Serialize> Progress<S> {
    /// Replaces `status.json`. Its last entry is the checksum of all before it.
    pub(super) fn write(&self, run: &Path) -> Result<(), StoreError> {
        let Progress { status, samples, summary } = self;
        files::replace_by(&run.join(STATUS), |sink| {
            sink.write_all(b"{\"status\":")?;
            serde_json::to_writer(&mut *sink, status)?;
            write!(sink, ",\"samples\":{samples},\"summary\":")?;
            // The state in it may be large: it is no text in memory.
            serde_json::to_writer(&mut *sink, summary)?;
            let sum = files::checksum(sink)?;
            writeln!(sink, "{CHECKSUM}{sum:08x}\"}}")
        })
    }
}

/// Reads `checkpoint.bin`; a run that was stopped before its first checkpoint has none.
pub(super) fn read_checkpoint(run: &Path) -> Result<Option<Checkpoint>, StoreError> {
    let path = run.join(CHECKPOINT);
    let Some(file) = files::read_if_present(&path)? else { return Ok(None) };
    let content = checksum::opened(&path, &file, "the checkpoint")?;
    let samples = content.strip_prefix(HEADER).and_then(|rest| rest.first_chunk());
    let samples = samples.map(|&bytes| u64::from_le_bytes(bytes) as usize);
    let samples = samples.ok_or_else(|| StoreError::damaged(&path, "another program wrote it"))?;
    Ok(Some(Checkpoint { path, file, samples }))
}

/// Replaces `checkpoint.bin`.
pub(super) fn write_checkpoint(run: &Path, samples: usize, state: &impl Serialize) -> Result<(), StoreError> {
    files::replace_by(&run.join(CHECKPOINT), |sink| {
        sink.write_all(HEADER)?;
        sink.write_all(&(samples as u64).to_le_bytes())?;
        if let Err(error) = rmp_serde::encode::write_named(sink, state) {
            // What the file system said comes again, and not as text.
            sink.flush()?;
            return Err(io::Error::other(error));
        }
        let sum = files::checksum(sink)?;
        sink.write_all(&sum.to_le_bytes())
    })
}
