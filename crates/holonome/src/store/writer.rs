//! Writer of a run in progress, new or resumed.

use super::background::Background;
use super::chunks::ChunkWriter;
use super::create;
use super::error::StoreError;
use super::files::{self, Lock};
use super::groups::{self, Group};
use super::layout::Layout;
use super::progress::{self, Checkpoint, Status, StoredProgress};
use super::reader::StoredRun;
use super::schema::Schema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A run that is being written. It is locked until the value is dropped.
///
/// Nothing is written on drop: the state of the last [`Store::checkpoint`] or [`Store::finish`] is
/// what is stored.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    schema: Schema,
    arrays: Vec<ChunkWriter>,
    /// Thread that writes full chunks; started with the first of them.
    background: Option<Background>,
    samples: usize,
    /// Number of samples in files, equal for all arrays.
    stored: usize,
    _lock: Lock,
}

/// Result of [`Store::resume`].
#[derive(Debug)]
pub enum ResumedStore {
    /// A run that can be continued.
    Continues {
        /// Store positioned after the samples of the last checkpoint.
        store: Box<Store>,
        /// State of that checkpoint; `None` if the run was stopped before its first: start from the
        /// initial state.
        state: Option<Checkpoint>,
    },
    /// A run that had reached its end; it is unchanged.
    Finished {
        /// Summary given to [`Store::finish`].
        summary: Value,
    },
}

impl Store {
    /// Create a run at `path`, which must be new or an empty folder. Missing parent folders are
    /// created.
    pub fn create(path: &Path, layout: &Layout) -> Result<Store, StoreError> {
        let schema = Schema::new(layout, &|| files::tells_case_apart(path))?;
        let lock = create::at(path, &schema, layout)?;
        Ok(Store::new(path.to_path_buf(), schema, lock))
    }

    /// Create a run at `parent/stem-k` with the smallest k ≥ 1 that is free, even if others do so
    /// at the same time.
    pub fn create_numbered(
        parent: &Path,
        stem: &str,
        layout: &Layout,
    ) -> Result<Store, StoreError> {
        let schema = Schema::new(layout, &|| files::tells_case_apart(parent))?;
        let (lock, path) = create::numbered(parent, stem, &schema, layout)?;
        Ok(Store::new(path, schema, lock))
    }

    /// Resume an interrupted, failed or killed run after its last checkpoint.
    pub fn resume(path: &Path) -> Result<ResumedStore, StoreError> {
        let run = StoredRun::open(path)?;
        if run.status() == Status::Finished {
            return Ok(ResumedStore::Finished { summary: run.summary().clone() });
        }
        let lock = Lock::take(path)?;
        // Only now is the checkpoint the last one: before the lock, another process may have
        // continued the run.
        let progress = StoredProgress::read(path)?;
        if progress.status == Status::Finished {
            return Ok(ResumedStore::Finished { summary: progress.summary });
        }
        run.check_coordinates()?;
        let mut schema = run.into_schema();
        if !schema.ending.is_empty() {
            schema.ending.clear();
            let groups = std::mem::take(&mut schema.groups);
            create::write_group(path, &schema)?;
            groups::forget(path, &groups, &[])?;
        }
        let state = progress::read_checkpoint(path)?;
        let samples = state.as_ref().map_or(0, |checkpoint| checkpoint.samples);
        if samples > schema.rows() {
            let reason = format!("{samples} rows of {}", schema.rows());
            return Err(StoreError::damaged(&path.join("checkpoint.bin"), reason));
        }
        files::remove_temporaries(path)?;
        // Rows beyond the checkpoint are removed next, so from now on the status must not count
        // them.
        StoredProgress::running(samples).write(path)?;
        let behind = schema.arrays.iter().map(|series| ChunkWriter::behind(path, series, samples));
        let arrays = behind.collect::<Result<_, _>>()?;
        let path = path.to_path_buf();
        let store =
            Store { path, schema, arrays, background: None, samples, stored: samples, _lock: lock };
        Ok(ResumedStore::Continues { store: Box::new(store), state })
    }

    /// Extend a run: replace it by one of `layout`, whose first `rows` rows are its own and belong
    /// to `state`. Its rows beyond are dropped. The folder is created anew beside, and replaces the
    /// old one in one step.
    pub fn extend(
        path: &Path,
        layout: &Layout,
        rows: usize,
        state: &impl Serialize,
    ) -> Result<Store, StoreError> {
        let _old_lock = Lock::take(path)?;
        // Otherwise a link itself would be replaced.
        let given = path;
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        // In the old folder `.` and `..` would keep their old meaning.
        let shown = if is_current(path) { path } else { given };
        let old = StoredRun::open(path)?;
        let schema = Schema::new(layout, &|| files::tells_case_apart(path))?;
        let times = old.times()?;
        let arrays: Vec<String> = old.arrays().into_iter().map(|array| array.name).collect();
        let bits = |times: &[f64]| times.iter().take(rows).map(|t| t.to_bits()).collect::<Vec<_>>();
        let same_times = rows <= old.samples()
            && rows <= layout.times.len()
            && bits(&times) == bits(&layout.times);
        if !same_times || !arrays.iter().eq(layout.arrays.iter().map(|array| &array.name)) {
            let reason = format!(
                "{} has other samples or arrays than what is to replace it",
                path.display()
            );
            return Err(StoreError::Mismatch { reason });
        }
        create::remove_stale(path.parent().unwrap_or(path));
        let lock = create::instead(path, &schema, layout, |hidden, lock| {
            let mut store = Store::new(hidden.to_path_buf(), schema.clone(), lock);
            let mut readers =
                arrays.iter().map(|name| old.rows(name)).collect::<Result<Vec<_>, _>>()?;
            for row in 0..rows {
                let values = readers
                    .iter_mut()
                    .map(|reader| reader.row(row))
                    .collect::<Result<Vec<_>, _>>()?;
                store.append(&values)?;
            }
            store.checkpoint(state)?;
            StoredProgress::running(rows).write(hidden)?;
            Ok(store.into_lock())
        })?;
        let path = shown.to_path_buf();
        let behind = schema.arrays.iter().map(|series| ChunkWriter::behind(&path, series, rows));
        let arrays = behind.collect::<Result<_, _>>()?;
        let (samples, stored) = (rows, rows);
        Ok(Store { path, schema, arrays, background: None, samples, stored, _lock: lock })
    }

    fn into_lock(self) -> Lock {
        self._lock
    }

    fn new(path: PathBuf, schema: Schema, lock: Lock) -> Store {
        let arrays = schema.arrays.iter().map(|series| ChunkWriter::new(&path, series)).collect();
        Store { path, schema, arrays, background: None, samples: 0, stored: 0, _lock: lock }
    }

    /// Append one sample (for an ensemble, one trajectory): a row of each array, in the layout's
    /// order. Allocates nothing but each array's second page, when its first is full, and a buffer
    /// for each row that is a chunk of its own.
    ///
    /// A failure leaves the sample out; after a full disk, the same call works once there is space.
    /// Full chunks are written while the run goes on: the failure of one is reported when the next
    /// one is full.
    pub fn append(&mut self, rows: &[&[f64]]) -> Result<(), StoreError> {
        self.append_many(1, rows).map_err(|(_, error)| error)
    }

    /// Append `count` samples: `count` rows of each array, one after the other.
    ///
    /// # Errors
    /// As [`Store::append`], with the number of samples appended before the failure.
    pub fn append_many(
        &mut self,
        count: usize,
        rows: &[impl AsRef<[f64]>],
    ) -> Result<(), (usize, StoreError)> {
        self.check(count, rows).map_err(|error| (0, error))?;
        let mut taken = 0;
        while taken < count {
            // All full chunks are given away before any array takes its rows: an error leaves the
            // arrays in step.
            self.make_room().map_err(|error| (taken, error))?;
            let room = self.arrays.iter().map(ChunkWriter::room).min();
            let part = room.map_or(count, |room| room.min(count - taken));
            for (array, rows) in self.arrays.iter_mut().zip(rows) {
                array
                    .write_large(&rows.as_ref()[taken * array.row()..])
                    .map_err(|error| (taken, error))?;
            }
            for (array, rows) in self.arrays.iter_mut().zip(rows) {
                array.push(part, &rows.as_ref()[taken * array.row()..]);
            }
            taken += part;
            self.samples += part;
        }
        Ok(())
    }

    /// Put all samples into files and then store `state` as the state to which they belong.
    pub fn checkpoint(&mut self, state: &impl Serialize) -> Result<(), StoreError> {
        self.flush()?;
        progress::write_checkpoint(&self.path, self.samples, state)
    }

    /// Return to the first `samples` samples, to which `state` belongs; the others will be appended
    /// again.
    pub fn rewind(&mut self, samples: usize, state: &impl Serialize) -> Result<(), StoreError> {
        self.flush()?;
        // The checkpoint first: after a kill in between, the run is resumed from there, and the
        // rows beyond are removed then.
        progress::write_checkpoint(&self.path, samples, state)?;
        StoredProgress::running(samples).write(&self.path)?;
        let behind = self
            .schema
            .arrays
            .iter()
            .map(|series| ChunkWriter::behind(&self.path, series, samples));
        self.arrays = behind.collect::<Result<_, _>>()?;
        (self.samples, self.stored) = (samples, samples);
        Ok(())
    }

    /// Put all samples into files and store the status of the ended run. [`Store::resume`] starts
    /// at the last checkpoint, so an interrupted run should have one just before.
    ///
    /// If the samples cannot be stored, a run is not marked finished, and a failed one counts the
    /// samples stored.
    pub fn finish(&mut self, status: Status, summary: impl Serialize) -> Result<(), StoreError> {
        let flushed = self.flush();
        if flushed.is_err() && status == Status::Finished {
            return flushed;
        }
        let said = StoredProgress { status, samples: self.stored, summary }.write(&self.path);
        flushed.and(said)
    }

    /// Tell of the end in the attributes of the group, texts and numbers by name that every reader
    /// takes, and in groups of their own.
    pub(crate) fn publish(
        &mut self,
        ending: Map<String, Value>,
        groups: &[Group],
    ) -> Result<(), StoreError> {
        let now = groups::write(&self.path, &self.schema, groups)?;
        let before = std::mem::replace(&mut self.schema.groups, now);
        self.schema.ending = ending;
        create::write_group(&self.path, &self.schema)?;
        groups::forget(&self.path, &before, &self.schema.groups)
    }

    /// Folder of the run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Quantities whose arrays have other names; see [`StoredRun::renamed`].
    pub fn renamed(&self) -> Vec<(String, String)> {
        self.schema.renamed()
    }

    /// Number of appended samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Number of samples in files.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Number of samples of the whole run, or of trajectories of the ensemble.
    pub fn samples_planned(&self) -> usize {
        self.schema.rows()
    }

    /// Attributes of the data set, from the layout.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.schema.attributes
    }

    /// Make room in every full array.
    fn make_room(&mut self) -> Result<(), StoreError> {
        for k in 0..self.arrays.len() {
            if !self.arrays[k].is_full() {
                continue;
            }
            self.wait_for(k);
            self.arrays[k].retry()?;
            if self.background.is_none() {
                self.background = Background::new(self.arrays.len());
            }
            let array = &mut self.arrays[k];
            if let Some(background) = &self.background
                && let Some(page) = array.give()
            {
                if let Some(page) = background.give(k, page) {
                    array.take(page, false);
                    array.retry()?;
                }
            } else {
                array.make_room()?;
            }
        }
        Ok(())
    }

    /// Wait until no page of array `k` is being written.
    fn wait_for(&mut self, k: usize) {
        while self.arrays[k].is_away()
            && let Some((array, page, written)) =
                self.background.as_mut().and_then(Background::take)
        {
            // The reason of a failure is reported when it happens again.
            self.arrays[array].take(page, written.is_ok());
        }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        for k in 0..self.arrays.len() {
            self.wait_for(k);
        }
        for array in &mut self.arrays {
            array.retry()?;
            array.flush()?;
        }
        self.stored = self.samples;
        Ok(())
    }

    fn check(&self, count: usize, rows: &[impl AsRef<[f64]>]) -> Result<(), StoreError> {
        let fail = |reason: String| Err(StoreError::Mismatch { reason });
        if self.samples + count > self.samples_planned() {
            return fail(format!("a sample more than the {} planned", self.samples_planned()));
        }
        if rows.len() != self.arrays.len() {
            return fail(format!("{} rows for {} arrays", rows.len(), self.arrays.len()));
        }
        for ((array, row), series) in self.arrays.iter().zip(rows).zip(&self.schema.arrays) {
            let (numbers, row) = (row.as_ref().len(), array.row());
            if numbers != count * row {
                return fail(format!(
                    "{numbers} numbers for {count} rows of {}, which have {row} each",
                    series.name
                ));
            }
        }
        Ok(())
    }
}

/// True if the current folder is `path`, which has no links in it, or lies in it.
fn is_current(path: &Path) -> bool {
    std::env::current_dir()
        .and_then(|folder| folder.canonicalize())
        .is_ok_and(|folder| folder.starts_with(path))
}
