//! The folder of a comparison.

use super::comparison::work_precision_figure;
use super::write_figure;
use crate::compare::Comparison;
use crate::error::Error;
use crate::store::StoreError;
use holonome_figures::Format;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that is created before the comparison, so that a mistake in its name shows early, and
/// filled after it. If it is not filled, it is removed, together with the folders above it that
/// were created for it.
pub struct ComparisonFolder {
    path: PathBuf,
    /// Folders that were created, outermost first.
    made: Vec<PathBuf>,
}

impl ComparisonFolder {
    /// Create the folder `out`, which must be new or empty, or `runs/NAME-compare-k` with the
    /// smallest k that is free.
    ///
    /// # Errors
    /// If it cannot be created, or is not empty.
    pub fn create(out: Option<&Path>, name: &str) -> Result<ComparisonFolder, Error> {
        let Some(path) = out else { return ComparisonFolder::numbered("runs".as_ref(), name) };
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(false) => Err(Error::store(StoreError::NotEmpty { path: path.to_path_buf() })),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, error)),
            _ => Ok(ComparisonFolder { path: path.to_path_buf(), made: make_all(path)? }),
        }
    }

    fn numbered(parent: &Path, name: &str) -> Result<ComparisonFolder, Error> {
        let mut made = make_all(parent)?;
        let mut number: u64 = 1;
        loop {
            let path = parent.join(format!("{name}-compare-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    made.push(path.clone());
                    return Ok(ComparisonFolder { path, made });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(unwritable(&path, error)),
            }
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Write `compare.json`, `compare.csv` and, if there is something to draw and this build
    /// draws, `work-precision.svg`; set the folder of the comparison.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn fill(mut self, comparison: &mut Comparison) -> Result<(), Error> {
        self.made.clear();
        comparison.out = Some(self.path.clone());
        let json = serde_json::to_string_pretty(comparison).expect("a comparison is JSON") + "\n";
        for (name, text) in [("compare.json", json), ("compare.csv", comparison.to_csv())] {
            crate::store::replace(&self.path.join(name), text.as_bytes()).map_err(Error::store)?;
        }
        if Format::Svg.is_drawn()
            && let Some(figure) = work_precision_figure(comparison)
        {
            write_figure(&figure, Format::Svg, self.path.join("work-precision.svg"))?;
        }
        Ok(())
    }
}

impl Drop for ComparisonFolder {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            // A folder that is in use by now is not empty and stays.
            let _ = fs::remove_dir(path);
        }
    }
}

/// Create a folder and those above it; returns the missing ones, outermost first.
fn make_all(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut made: Vec<PathBuf> =
        path.ancestors().take_while(missing).map(Path::to_path_buf).collect();
    made.reverse();
    fs::create_dir_all(path).map_err(|error| unwritable(path, error))?;
    Ok(made)
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    Error::store(StoreError::write(path, error))
}
