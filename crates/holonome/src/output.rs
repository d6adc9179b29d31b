//! Where rows go: into a run's folder, or into memory.

use crate::arrays::{Array, Arrays};
use crate::hold;
use crate::store::{Layout, RowReader, Status, Store, StoreError, StoredRun};
use holonome_integrate::observer::Control;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The rows of a run or an ensemble that is being computed.
pub(crate) enum Output {
    /// In a folder, from which an interrupted run goes on.
    Folder(Box<Store>),
    /// In memory, and gone with the process.
    Memory(Arrays),
}

impl Output {
    /// Takes a row of each array; see [`Store::append`].
    pub(crate) fn append(&mut self, rows: &[&[f64]]) -> Result<(), StoreError> {
        self.append_many(1, rows).map_err(|(_, error)| error)
    }

    /// Takes `count` rows of each array; see [`Store::append_many`].
    pub(crate) fn append_many(&mut self, count: usize, rows: &[impl AsRef<[f64]>]) -> Result<(), (usize, StoreError)> {
        match self {
            Output::Folder(store) => store.append_many(count, rows),
            Output::Memory(arrays) => {
                arrays.append(count, rows);
                Ok(())
            }
        }
    }

    /// Records `state` as what the rows so far belong to.
    pub(crate) fn checkpoint(&mut self, state: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.checkpoint(state),
            Output::Memory(_) => Ok(()),
        }
    }

    /// Goes back to the first `rows` rows, to which `state` belongs.
    pub(crate) fn rewind(&mut self, rows: usize, state: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.rewind(rows, state),
            Output::Memory(arrays) => {
                arrays.truncate(rows);
                Ok(())
            }
        }
    }

    /// Keeps the rows with the numbers `rows` only; what is left is of `layout` and belongs to `state`.
    pub(crate) fn thin(&mut self, layout: &Layout, rows: &[usize], state: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.thin(layout, rows, state),
            Output::Memory(arrays) => {
                arrays.keep(rows);
                Ok(())
            }
        }
    }

    /// Records how the run ended.
    pub(crate) fn finish(&mut self, status: Status, summary: &impl Serialize) -> Result<(), StoreError> {
        match self {
            Output::Folder(store) => store.finish(status, summary),
            Output::Memory(_) => Ok(()),
        }
    }

    /// Waits where a test holds the process; see [`hold`].
    pub(crate) fn hold(
        &mut self,
        state: &impl Serialize,
        watch: impl FnMut() -> Control,
    ) -> Result<Control, StoreError> {
        match self {
            Output::Folder(store) => hold::stored(store.samples(), || store.checkpoint(state), watch),
            Output::Memory(_) => Ok(Control::Continue),
        }
    }

    /// The folder, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Output::Folder(store) => Some(store.path()),
            Output::Memory(_) => None,
        }
    }

    /// Rows that are safe: in files, or in memory.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Output::Folder(store) => store.stored(),
            Output::Memory(arrays) => arrays.len(),
        }
    }

    /// The rows of an array, one at a time.
    pub(crate) fn rows(&self, name: &str) -> Result<Rows<'_>, StoreError> {
        match self {
            Output::Folder(store) => Ok(Rows::Stored(Box::new(StoredRun::open(store.path())?.rows(name)?))),
            Output::Memory(arrays) => Ok(Rows::Kept(&arrays[name])),
        }
    }

    /// The folder and the arrays in memory, whichever there is.
    pub(crate) fn into_parts(self) -> (Option<PathBuf>, Option<Arrays>) {
        match self {
            Output::Folder(store) => (Some(store.path().to_path_buf()), None),
            Output::Memory(arrays) => (None, Some(arrays)),
        }
    }
}

/// Rows of one array that were taken before.
pub(crate) enum Rows<'a> {
    Stored(Box<RowReader>),
    Kept(&'a Array),
}

impl Rows<'_> {
    pub(crate) fn row(&mut self, row: usize) -> Result<&[f64], StoreError> {
        match self {
            Rows::Stored(reader) => reader.row(row),
            Rows::Kept(array) => Ok(array.row(row)),
        }
    }
}
