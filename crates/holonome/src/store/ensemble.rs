//! Folder of an ensemble, which any number of processes fill block by block.
//!
//! A block is one chunk of every array. Its chunks are written first, then its sums, and last its
//! byte in the array `done`, each under a temporary name that no other process uses and then
//! renamed: a block that is done is complete, and two processes that compute the same one write the
//! same bytes. Claims tell which blocks are being computed; only processes that share their work
//! by claims rely on them.

use super::blocks::Blocks;
use super::checksum;
use super::chunks;
use super::create;
use super::error::StoreError;
use super::files;
use super::groups::{self, Group};
use super::layout::Layout;
use super::progress::{Status, StoredProgress, done, stored_in_order};
use super::reader::StoredRun;
use super::schema::{Schema, Trajectories};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Time between two renewals of a claim.
const RENEWAL: Duration = Duration::from_secs(30);

/// Age of a claim without renewal from which on others take the block over.
const STALE: Duration = Duration::from_secs(300);

/// Time for which a folder that another process is creating is waited for.
const CREATION: Duration = Duration::from_secs(60);

/// The folder of an ensemble in blocks.
#[derive(Debug)]
pub(crate) struct EnsembleStore {
    path: PathBuf,
    own: PathBuf,
    schema: Schema,
    trajectories: Trajectories,
    blocks: Blocks,
    /// Part of the names of this process's temporary files.
    process: String,
    claims: Claims,
}

/// Result of an attempt to claim a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is this process's now.
    Own,
    /// Another process computes it, or it is done.
    Others,
}

/// State of the blocks of an ensemble, as the files of its folder tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockStatus {
    /// Number of blocks.
    pub blocks: u64,
    /// Numbers of the blocks that are done, ascending, with the time at which each was.
    pub done: Vec<(u64, SystemTime)>,
    /// Numbers of the blocks that processes compute now, ascending.
    pub running: Vec<u64>,
}

/// Content of a claim.
#[derive(Serialize, Deserialize)]
struct Claim {
    host: String,
    pid: u32,
    /// Seconds since 1970 at which the block was claimed.
    time: u64,
}

impl EnsembleStore {
    /// Create the ensemble at `path`, or open the one that is there; true if it was created. Of
    /// several processes that do this at the same time, one creates it.
    pub(crate) fn create_or_open(
        path: &Path,
        layout: &Layout,
    ) -> Result<(EnsembleStore, bool), StoreError> {
        let schema = Schema::new(layout, &|| files::tells_case_apart(path))?;
        let since = SystemTime::now();
        loop {
            if path.join("zarr.json").exists() {
                return Ok((EnsembleStore::open(path)?, false));
            }
            match create::at(path, &schema, layout) {
                Ok(lock) => {
                    drop(lock);
                    return Ok((EnsembleStore::new(path.to_path_buf(), schema), true));
                }
                // Another process may be filling an empty folder: `zarr.json` comes last.
                Err(StoreError::NotEmpty { .. })
                    if files::own_of_ensemble(path).exists()
                        && since.elapsed().is_ok_and(|waited| waited < CREATION) =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                // Or it was faster.
                Err(StoreError::NotEmpty { .. }) if path.join("zarr.json").exists() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Create the ensemble at `parent/stem-k` with the smallest k ≥ 1 that is free.
    pub(crate) fn create_numbered(
        parent: &Path,
        stem: &str,
        layout: &Layout,
    ) -> Result<EnsembleStore, StoreError> {
        let schema = Schema::new(layout, &|| files::tells_case_apart(parent))?;
        let (lock, path) = create::numbered(parent, stem, &schema, layout)?;
        drop(lock);
        Ok(EnsembleStore::new(path, schema))
    }

    /// Open the ensemble in a folder.
    ///
    /// # Errors
    /// If it is not one, or one of an earlier version, which had no blocks.
    pub(crate) fn open(path: &Path) -> Result<EnsembleStore, StoreError> {
        let run = StoredRun::open(path)?;
        let path = path.to_path_buf();
        if run.trajectories().is_none() {
            return Err(StoreError::NotAnEnsemble { path });
        }
        if run.schema().blocks().is_none() {
            return Err(StoreError::NoBlocks { path });
        }
        run.check_coordinates()?;
        Ok(EnsembleStore::new(path, run.into_schema()))
    }

    /// Ensemble of a schema in blocks.
    fn new(path: PathBuf, schema: Schema) -> EnsembleStore {
        let trajectories = schema.trajectories.clone().expect("it is an ensemble");
        let blocks = trajectories.blocks.clone().expect("it is in blocks");
        let own = files::own_of_ensemble(&path);
        let process = format!("{}{}-{}-", files::TEMPORARY, host(), std::process::id());
        EnsembleStore {
            path,
            own,
            schema,
            trajectories,
            blocks,
            process,
            claims: Claims::default(),
        }
    }

    /// Folder of the ensemble.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Attributes of the data set.
    pub(crate) fn attributes(&self) -> &Map<String, Value> {
        &self.schema.attributes
    }

    /// Its blocks; trajectories are counted from the first one of the folder.
    pub(crate) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Numbers of the trajectories in this folder.
    pub(crate) fn trajectories(&self) -> std::ops::Range<u64> {
        let Trajectories { first, count, .. } = self.trajectories;
        first..first + count as u64
    }

    /// True if the block is done.
    pub(crate) fn is_done(&self, block: u64) -> bool {
        self.done_path(block).exists()
    }

    fn done_path(&self, block: u64) -> PathBuf {
        self.path.join(&self.trajectories.done).join(format!("c.{block}"))
    }

    /// Numbers of the blocks that are done.
    pub(crate) fn done(&self) -> Result<BTreeSet<u64>, StoreError> {
        done(&self.path, &self.trajectories.done)
    }

    /// Write a block: the rows of its trajectories in every array, one after the other, and sums
    /// over them. `bytes` is scratch.
    pub(crate) fn write(
        &self,
        block: u64,
        rows: &[Vec<f64>],
        sums: &impl Serialize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let written = self.write_files(block, rows, sums, bytes);
        match written {
            // Another process that computed the same block may have cleared up after it.
            Err(_) if self.is_done(block) => Ok(()),
            written => written,
        }
    }

    fn write_files(
        &self,
        block: u64,
        rows: &[Vec<f64>],
        sums: &impl Serialize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        for (series, rows) in self.schema.arrays.iter().zip(rows) {
            if series.grid.row() > 0 {
                let name = chunks::block_file(series, &self.blocks, block, rows, bytes);
                self.replace(&self.path.join(&series.stored), &name, bytes)?;
            }
        }
        if self.trajectories.grid.is_empty() && !self.schema.arrays.is_empty() {
            let first = self.trajectories.first;
            let name = chunks::block_of_numbers(&self.blocks, block, first, bytes);
            self.replace(&self.path.join(&self.trajectories.stored), &name, bytes)?;
        }
        let mut packed = rmp_serde::to_vec_named(sums).expect("sums are numbers");
        packed.extend_from_slice(&checksum::of(&packed));
        let folder = self.own.join("sums");
        fs::create_dir_all(&folder).map_err(|error| StoreError::write(&folder, error))?;
        self.replace(&folder, &block.to_string(), &packed)?;
        self.replace(&self.path.join(&self.trajectories.done), &format!("c.{block}"), &[1])
    }

    fn replace(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let temporary = folder.join(format!("{}{name}", self.process));
        files::replace_through(&temporary, &folder.join(name), bytes)
    }

    /// Sums over the trajectories of a block that is done.
    pub(crate) fn sums<T: DeserializeOwned>(&self, block: u64) -> Result<T, StoreError> {
        let path = self.own.join("sums").join(block.to_string());
        let file = files::read_if_present(&path)?
            .ok_or_else(|| StoreError::damaged(&path, "it is missing"))?;
        let packed = checksum::opened(&path, &file, "the sums")?;
        rmp_serde::from_slice(packed).map_err(|error| StoreError::damaged(&path, error))
    }

    /// Status of the ensemble, and the summary with which it ended.
    pub(crate) fn status(&self) -> Result<(Status, Value), StoreError> {
        let StoredProgress { status, summary, .. } = StoredProgress::read(&self.path)?;
        Ok((status, summary))
    }

    /// Tell of the end in the attributes of the group, and in groups of their own, as
    /// [`Store::publish`](super::Store::publish).
    pub(crate) fn publish(
        &self,
        ending: Map<String, Value>,
        groups: &[Group],
    ) -> Result<(), StoreError> {
        let before = StoredRun::open(&self.path)?.into_schema().groups;
        let groups = groups::write(&self.path, &self.schema, groups)?;
        let schema = Schema { ending, groups, ..self.schema.clone() };
        self.replace(&self.path, "zarr.json", create::group_text(&schema).as_bytes())?;
        groups::forget(&self.path, &before, &schema.groups)
    }

    /// Store the status of the ensemble. Temporary files of killed processes are removed from one
    /// that has finished.
    pub(crate) fn set_status(
        &self,
        status: Status,
        summary: impl Serialize,
    ) -> Result<(), StoreError> {
        let samples = stored_in_order(&self.path, &self.schema, &self.blocks)? as usize;
        let (name, bytes) = StoredProgress { status, samples, summary }.file();
        let written = self.replace(&self.own, name, &bytes);
        if written.is_ok() && status == Status::Finished {
            let arrays = self.schema.arrays.iter().map(|series| &series.stored);
            let others = [&self.trajectories.stored, &self.trajectories.done];
            for array in arrays.chain(others) {
                // What cannot be removed takes space only.
                let _ = files::remove_temporaries(&self.path.join(array));
            }
            let _ = files::remove_temporaries(&self.own.join("sums"));
            let _ = fs::remove_dir_all(self.own.join("claims"));
        }
        written
    }

    /// Claim a block for this process. With `exclusive`, a block that another process has claimed
    /// is not taken, unless that process has ended.
    pub(crate) fn claim(&self, block: u64, exclusive: bool) -> Result<Taken, StoreError> {
        let folder = self.own.join("claims");
        let path = folder.join(block.to_string());
        fs::create_dir_all(&folder).map_err(|error| StoreError::write(&folder, error))?;
        if self.is_done(block) {
            return Ok(Taken::Others);
        }
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = time.map_or(0, |time| time.as_secs());
        let claim = Claim { host: host(), pid: std::process::id(), time };
        let text = serde_json::to_string(&claim).expect("names and numbers are JSON");
        for attempt in 0..2 {
            let created =
                File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
            match created {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if exclusive && (attempt > 0 || is_held(&path)) {
                        return Ok(Taken::Others);
                    }
                    // Only one process succeeds in moving the old claim away.
                    let aside = folder.join(format!("{}{block}", self.process));
                    let moved = fs::rename(&path, &aside);
                    let _ = fs::remove_file(&aside);
                    if exclusive && moved.is_err() {
                        return Ok(Taken::Others);
                    }
                }
                // A claim informs others; without it they may compute the block as well.
                Err(error) if !exclusive => {
                    let _ = error;
                    break;
                }
                Err(error) => return Err(StoreError::write(&path, error)),
            }
        }
        // It may have been completed since.
        if self.is_done(block) {
            let _ = fs::remove_file(&path);
            return Ok(Taken::Others);
        }
        self.claims.hold(path);
        Ok(Taken::Own)
    }

    /// Release a claim.
    pub(crate) fn release(&self, block: u64) {
        self.claims.release(&self.own.join("claims").join(block.to_string()));
    }

    /// State of the blocks.
    pub(crate) fn block_status(&self) -> Result<BlockStatus, StoreError> {
        let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
        let numbers = self.done()?;
        let done: Vec<_> = (numbers.iter())
            .filter_map(|&block| Some((block, modified(&self.done_path(block)).ok()?)))
            .collect();
        let claims = self.own.join("claims");
        let mut running: Vec<u64> = fs::read_dir(&claims)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|block| !numbers.contains(block) && is_held(&claims.join(block.to_string())))
            .collect();
        running.sort_unstable();
        Ok(BlockStatus { blocks: self.blocks.count(), done, running })
    }
}

/// True if the process that made a claim may still compute its block.
fn is_held(claim: &Path) -> bool {
    let Ok(age) = fs::metadata(claim).and_then(|data| data.modified()) else { return false };
    let fresh = age.elapsed().map_or(true, |age| age < STALE);
    let text = fs::read_to_string(claim).unwrap_or_default();
    match serde_json::from_str::<Claim>(&text) {
        Ok(claim) => fresh && !(claim.host == host() && create::has_ended(claim.pid)),
        // It is being written, or its process was killed then.
        Err(_) => fresh,
    }
}

/// Name of this machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    name.trim().chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Claims of this process, which a thread renews until they are released.
#[derive(Debug, Default)]
struct Claims {
    held: Arc<Mutex<BTreeSet<PathBuf>>>,
    renewal: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Claims {
    fn hold(&self, path: PathBuf) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
        if renewal.is_some() {
            return;
        }
        let (end, ended) = channel();
        let held = Arc::clone(&self.held);
        let renew = move || {
            while ended.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
                for path in held.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    // A claim that another process took over is renewed for it.
                    let file = File::options().append(true).open(path);
                    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
                }
            }
        };
        let thread = std::thread::Builder::new().name("claims".to_string()).spawn(renew);
        *renewal = thread.ok().map(|thread| (end, thread));
    }

    fn release(&self, path: &Path) {
        if self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(path) {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        let renewal = self.renewal.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((end, thread)) = renewal.take() {
            drop(end);
            let _ = thread.join();
        }
        for path in self.held.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = fs::remove_file(path);
        }
    }
}
