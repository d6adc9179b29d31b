//! Destination of a run's rows: a folder, or memory.

use crate::arrays::{Array, Arrays};
use crate::error::Error;
use crate::hold;
use crate::store::{
    Checkpoint, Group, Layout, ResumedStore, RowReader, Status, Store, StoreError, StoredRun,
};
use holonome_integrate::observer::Control;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Folder of a run, from its creation to its end.
pub(crate) enum RunFolder {
    /// Not created yet.
    New,
    /// Open, and locked.
    Open(Box<Store>),
    /// Closed with this status, so that it can be opened elsewhere.
    Closed(PathBuf, Status),
}

impl RunFolder {
    /// Create the folder at `out`, or at a numbered path with the name `stem`.
    pub(crate) fn create(
        out: Option<&Path>,
        stem: &str,
        layout: &Layout,
    ) -> Result<RunFolder, Error> {
        let store = match out {
            Some(path) => Store::create(path, layout),
            None => Store::create_numbered("runs".as_ref(), stem, layout),
        };
        let store = store.map_err(Error::store)?;
        hold::created();
        Ok(RunFolder::Open(Box::new(store)))
    }

    /// Open the folder at `path` again, which was closed with `status`, at its checkpoint.
    ///
    /// # Errors
    /// If it is not that of a stopped run; if it cannot be opened.
    pub(crate) fn reopen(path: &Path, status: Status) -> Result<(RunFolder, Checkpoint), Error> {
        let shown = path.display();
        let finished = || {
            let remedy = "prepare the problem anew for another";
            Error::option(format!(
                "this run has finished in {shown}, where its results are: {remedy}"
            ))
        };
        match status {
            Status::Finished => return Err(finished()),
            Status::Failed => {
                let remedy = "resume it from there, or prepare the problem anew";
                return Err(Error::option(format!("this run has failed in {shown}: {remedy}")));
            }
            Status::Running | Status::Interrupted => {}
        }
        match Store::resume(path).map_err(Error::store)? {
            ResumedStore::Finished { .. } => Err(finished()),
            ResumedStore::Continues { store, state: Some(state) } => {
                Ok((RunFolder::Open(store), state))
            }
            ResumedStore::Continues { state: None, .. } => Err(no_checkpoint(path)),
        }
    }

    /// Take the open store. Until [`RunFolder::close`] the folder counts as that of a failed run.
    ///
    /// # Panics
    /// If it is not open.
    pub(crate) fn take(&mut self) -> Output {
        let closed = RunFolder::Closed(self.path().to_path_buf(), Status::Failed);
        match std::mem::replace(self, closed) {
            RunFolder::Open(store) => Output::Folder(store),
            _ => panic!("the folder is not open"),
        }
    }

    /// Set the status with which the store that was taken has been closed; `interrupted` is `None`
    /// after a failure.
    pub(crate) fn close(&mut self, interrupted: Option<bool>) {
        if let RunFolder::Closed(_, status) = self {
            *status = match interrupted {
                Some(true) => Status::Interrupted,
                Some(false) => Status::Finished,
                None => Status::Failed,
            };
        }
    }

    /// Path of the folder; empty if it is not created yet.
    pub(crate) fn path(&self) -> &Path {
        match self {
            RunFolder::New => Path::new(""),
            RunFolder::Open(store) => store.path(),
            RunFolder::Closed(path, _) => path,
        }
    }
}

/// Error of a run whose checkpoint is missing.
pub(crate) fn no_checkpoint(path: &Path) -> Error {
    Error::option(format!(
        "{} is missing, from which {} would go on: run the model again",
        path.join("checkpoint.bin").display(),
        path.display()
    ))
}

/// Rows of a run that is being computed.
pub(crate) enum Output {
    /// In a folder, from which an interrupted run can be resumed.
    Folder(Box<Store>),
    /// In memory, lost with the process.
    Memory(Arrays),
}

impl Output {
    /// Append a row to each array; see [`Store::append`].
    pub(crate) fn append(&mut self, rows: &[&[f64]]) -> Result<(), StoreError> {
        self.append_many(1, rows).map_err(|(_, error)| error)
    }

    /// Append `count` rows to each array; see [`Store::append_many`].
    pub(crate) fn append_many(
        &mut self,
        count: usize,
        rows: &[impl AsRef<[f64]>],
    ) -> Result<(), (usize, StoreError)> {
        match self {
            Output::Folder(store) => store.append_many(count, rows),
            Output::Memory(arrays) => {
                arrays.append(count, rows);
                Ok(())
            }
        }
    }

    /// Store `state` as the state to which the rows so far belong.
    pub(crate) fn checkpoint(&mut self, state: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.checkpoint(state),
            Output::Memory(_) => Ok(()),
        }
    }

    /// Return to the first `rows` rows, to which `state` belongs.
    pub(crate) fn rewind(&mut self, rows: usize, state: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.rewind(rows, state),
            Output::Memory(arrays) => {
                arrays.truncate(rows);
                Ok(())
            }
        }
    }

    /// Store the status and the summary of the ended run, and what of it attributes and groups tell.
    pub(crate) fn finish(
        &mut self,
        status: Status,
        summary: &impl Serialize,
        ending: impl FnOnce() -> (Map<String, Value>, Vec<Group>),
    ) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => {
                store.finish(status, summary)?;
                let (attributes, groups) = ending();
                store.publish(attributes, &groups)
            }
            Output::Memory(_) => Ok(()),
        }
    }

    /// Wait if a test holds the process here; see [`hold`].
    pub(crate) fn hold(
        &mut self,
        state: &impl Serialize,
        watch: impl FnMut() -> Control,
    ) -> Result<Control, StoreError> {
        match self {
            Output::Folder(store) => {
                hold::stored(store.samples(), || store.checkpoint(state), watch)
            }
            Output::Memory(_) => Ok(Control::Continue),
        }
    }

    /// Path of the folder, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Output::Folder(store) => Some(store.path()),
            Output::Memory(_) => None,
        }
    }

    /// Quantities whose arrays have other names in the folder, with these.
    pub(crate) fn renamed(&self) -> Vec<(String, String)> {
        match self {
            Output::Folder(store) => store.renamed(),
            Output::Memory(_) => Vec::new(),
        }
    }

    /// Number of rows that are safe: in files, or in memory.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Output::Folder(store) => store.stored(),
            Output::Memory(arrays) => arrays.len(),
        }
    }

    /// The rows of an array, one at a time.
    pub(crate) fn rows(&self, name: &str) -> Result<AppendedRows<'_>, StoreError> {
        match self {
            Output::Folder(store) => {
                Ok(AppendedRows::Stored(Box::new(StoredRun::open(store.path())?.rows(name)?)))
            }
            Output::Memory(arrays) => Ok(AppendedRows::Kept(&arrays[name])),
        }
    }

    /// The folder, or the arrays in memory.
    pub(crate) fn into_parts(self) -> (Option<PathBuf>, Option<Arrays>) {
        match self {
            Output::Folder(store) => (Some(store.path().to_path_buf()), None),
            Output::Memory(arrays) => (None, Some(arrays)),
        }
    }
}

/// Rows of one array that were appended before.
pub(crate) enum AppendedRows<'a> {
    Stored(Box<RowReader>),
    Kept(&'a Array),
}

impl AppendedRows<'_> {
    pub(crate) fn row(&mut self, row: usize) -> Result<&[f64], StoreError> {
        match self {
            AppendedRows::Stored(reader) => reader.row(row),
            AppendedRows::Kept(array) => Ok(array.row(row)),
        }
    }
}
