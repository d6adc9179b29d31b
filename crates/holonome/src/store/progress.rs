//! Progress of a run, in its checkpoint and its status, and of an ensemble, in its array `done`.

use super::blocks::Blocks;
use super::checksum;
use super::error::StoreError;
use super::files;
use super::schema::Schema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const CHECKPOINT: &str = "checkpoint.bin";
const STATUS: &str = "status.json";

/// Header of a checkpoint. It is followed by the number of samples (64 bits, the lowest first), the
/// state as MessagePack, whose lists of numbers are raw bytes, and the checksum of all that.
const HEADER: &[u8] = b"holonome checkpoint 2\n";
const SAMPLES_BYTES: usize = size_of::<u64>();

/// Text before the checksum of `status.json`.
const CHECKSUM: &str = ",\"crc32c\":\"";

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Running, or killed while it ran.
    Running,
    /// Ended as planned.
    Finished,
    /// Failed; the samples up to the failure are stored.
    Failed,
    /// Stopped; it can be resumed.
    Interrupted,
}

/// State of the last checkpoint, from which a stored run is resumed.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    file: Vec<u8>,
    /// Number of stored samples.
    pub(super) samples: usize,
}

impl Checkpoint {
    /// The state, in the form that [`Store::checkpoint`](super::Store::checkpoint) stored.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        let packed = &self.file[HEADER.len() + SAMPLES_BYTES..self.file.len() - checksum::LEN];
        rmp_serde::from_slice(packed).map_err(|error| StoreError::damaged(&self.path, error))
    }
}

/// Content of `status.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct StoredProgress<S = Value> {
    /// Status of the run.
    pub status: Status,
    /// Number of stored samples; while it runs, the number in the checkpoint is newer.
    pub samples: usize,
    /// Results, from the caller.
    pub summary: S,
}

impl StoredProgress {
    /// Progress of a run that has begun.
    pub(super) fn running(samples: usize) -> StoredProgress {
        StoredProgress { status: Status::Running, samples, summary: Value::Null }
    }

    /// Read `status.json`.
    pub(super) fn read(run: &Path) -> Result<StoredProgress, StoreError> {
        let path = files::own(run).join(STATUS);
        let damaged = |reason: &str| StoreError::damaged(&path, reason);
        let text = files::read_if_present(&path)?.ok_or_else(|| damaged("it is missing"))?;
        let text = String::from_utf8(text).map_err(|error| StoreError::damaged(&path, error))?;
        let (content, checksum) =
            text.trim_end().rsplit_once(CHECKSUM).ok_or_else(|| damaged("it is cut off"))?;
        if checksum.strip_suffix("\"}") != Some(&checksum::of_text(content)) {
            return Err(damaged("its checksum does not match"));
        }
        serde_json::from_str(&format!("{content}}}"))
            .map_err(|error| StoreError::damaged(&path, error))
    }
}

impl<S: Serialize> StoredProgress<S> {
    /// Replace `status.json`.
    pub(super) fn write(&self, run: &Path) -> Result<(), StoreError> {
        files::replace_by(&files::own(run).join(STATUS), |sink| {
            self.put(sink)?;
            let sum = files::checksum(sink)?;
            writeln!(sink, "{CHECKSUM}{sum:08x}\"}}")
        })
    }

    /// Name and content of `status.json`, for a small summary.
    pub(super) fn file(&self) -> (&'static str, Vec<u8>) {
        let mut bytes = Vec::new();
        self.put(&mut bytes).expect("memory takes it");
        let sum = crc32c::crc32c(&bytes);
        bytes.extend(format!("{CHECKSUM}{sum:08x}\"}}\n").bytes());
        (STATUS, bytes)
    }

    /// Write the content up to its last entry, which is the checksum of everything before it.
    fn put(&self, sink: &mut impl Write) -> io::Result<()> {
        let StoredProgress { status, samples, summary } = self;
        sink.write_all(b"{\"status\":")?;
        serde_json::to_writer(&mut *sink, status)?;
        write!(sink, ",\"samples\":{samples},\"summary\":")?;
        // Its state may be large, so it is streamed instead of becoming a text in memory.
        Ok(serde_json::to_writer(&mut *sink, summary)?)
    }
}

/// Numbers of the blocks that are done, in the array of this name.
pub(super) fn done(path: &Path, array: &str) -> Result<BTreeSet<u64>, StoreError> {
    let folder = path.join(array);
    let mut done = BTreeSet::new();
    for entry in fs::read_dir(&folder).map_err(|error| StoreError::read(&folder, error))? {
        let entry = entry.map_err(|error| StoreError::read(&folder, error))?;
        let name = entry.file_name();
        done.extend(name.to_str().and_then(|name| name.strip_prefix("c.")?.parse::<u64>().ok()));
    }
    Ok(done)
}

/// Number of trajectories before the first block that is not done.
pub(super) fn stored_in_order(
    path: &Path,
    schema: &Schema,
    blocks: &Blocks,
) -> Result<u64, StoreError> {
    let Some(trajectories) = &schema.trajectories else { return Ok(0) };
    let done = done(path, &trajectories.done)?;
    let missing = (0..blocks.count()).find(|block| !done.contains(block));
    Ok(missing.map_or(trajectories.count as u64, |block| blocks.range(block).start))
}

/// Read `checkpoint.bin`; `None` if the run was stopped before its first checkpoint.
pub(super) fn read_checkpoint(run: &Path) -> Result<Option<Checkpoint>, StoreError> {
    let path = files::own(run).join(CHECKPOINT);
    let Some(file) = files::read_if_present(&path)? else { return Ok(None) };
    let content = checksum::opened(&path, &file, "the checkpoint")?;
    let samples = content.strip_prefix(HEADER).and_then(|rest| rest.first_chunk());
    let samples = samples.map(|&bytes| u64::from_le_bytes(bytes) as usize);
    let samples = samples.ok_or_else(|| StoreError::damaged(&path, "another program wrote it"))?;
    Ok(Some(Checkpoint { path, file, samples }))
}

/// Replace `checkpoint.bin`.
pub(super) fn write_checkpoint(
    run: &Path,
    samples: usize,
    state: &impl Serialize,
) -> Result<(), StoreError> {
    files::replace_by(&files::own(run).join(CHECKPOINT), |sink| {
        sink.write_all(HEADER)?;
        sink.write_all(&(samples as u64).to_le_bytes())?;
        if let Err(error) = rmp_serde::encode::write_named(sink, state) {
            // Flushing repeats the file system's error in its own type, not as text.
            sink.flush()?;
            return Err(io::Error::other(error));
        }
        let sum = files::checksum(sink)?;
        sink.write_all(&sum.to_le_bytes())
    })
}
