//! The folder of a comparison.

use super::Comparison;
use crate::error::Error;
use crate::store::StoreError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that is made before the comparison, so that a mistake in its name shows early, and filled after it. Unless
/// it is filled it goes away again.
pub struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// Makes the folder `out`, which must be new or empty, or `runs/NAME-compare-k` with the smallest k that is free.
    ///
    /// # Errors
    /// When it cannot be made, or holds something.
    pub fn create(out: Option<&Path>, name: &str) -> Result<Folder, Error> {
        let Some(path) = out else { return Folder::numbered("runs".as_ref(), name) };
        let unwritable = |error| Error::store(StoreError::write(path, error));
        let path_buf = path.to_path_buf();
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(Folder { path: path_buf, keep: true }),
            Ok(false) => Err(Error::store(StoreError::NotEmpty { path: path_buf })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(unwritable)?;
                Ok(Folder { path: path_buf, keep: false })
            }
            Err(error) => Err(unwritable(error)),
        }
    }

    fn numbered(parent: &Path, name: &str) -> Result<Folder, Error> {
        fs::create_dir_all(parent).map_err(|error| Error::store(StoreError::write(parent, error)))?;
        let mut number: u64 = 1;
        loop {
            let path = parent.join(format!("{name}-compare-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Folder { path, keep: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Error::store(StoreError::write(&path, error))),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `compare.json`, `compare.csv` and, where there is something to draw, `work-precision.svg`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn fill(mut self, comparison: &Comparison) -> Result<(), Error> {
        self.keep = true;
        let json = format!("{:#}\n", comparison.to_json(&self.path));
        let files = [("compare.json", Some(json)), ("compare.csv", Some(comparison.to_csv()))];
        for (name, text) in files.into_iter().chain([("work-precision.svg", comparison.to_svg())]) {
            let Some(text) = text else { continue };
            crate::store::replace(&self.path.join(name), text.as_bytes()).map_err(Error::store)?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // Only an empty folder can be removed like this, and `runs` may be older than this.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
