//! Export of a run in another format, to a file or to a stream.

mod atoms;
mod csv;
mod dcd;
mod netcdf;
mod parquet;
mod pdb;
mod table;
mod xtc;
mod xyz;

use super::error::StoreError;
use super::files;
use super::reader::StoredRun;
use crate::hold;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// All formats: each is a file of its own with a place in this list.
pub const FORMATS: &[Format] = &[
    csv::FORMAT,
    netcdf::FORMAT,
    parquet::FORMAT,
    xyz::FORMAT,
    pdb::FORMAT,
    dcd::FORMAT,
    xtc::FORMAT,
];

/// A format in which runs are written.
pub struct Format {
    /// Name in options.
    pub name: &'static str,
    /// Name in sentences.
    pub about: &'static str,
    write: fn(&StoredRun, &mut Stream, Fail) -> Result<(), StoreError>,
}

/// Destination of an export.
type Stream<'a> = BufWriter<&'a mut (dyn Write + Send)>;

/// Conversion of a failed write into an error.
type Fail<'a> = &'a dyn Fn(io::Error) -> StoreError;

impl Format {
    /// Write the run to a file, which appears (or is replaced) once it is complete. A target that
    /// is not a regular file, such as `/dev/stdout` or a pipe, is written directly. A file inside a
    /// stored run is refused.
    pub fn export(&self, run: &StoredRun, path: &Path) -> Result<(), StoreError> {
        // Replace the target of a link, not the link.
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let there = || Some(fs::canonicalize(parent).ok()?.join(path.file_name()?));
        let target =
            fs::canonicalize(path).ok().or_else(there).unwrap_or_else(|| path.to_path_buf());
        if let Some(inside) = target.ancestors().find(|folder| folder.join("zarr.json").exists()) {
            return Err(StoreError::InsideRun {
                path: path.to_path_buf(),
                run: inside.to_path_buf(),
            });
        }
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if special {
            let file = File::options()
                .write(true)
                .open(path)
                .map_err(|error| StoreError::write(path, error))?;
            return self.write_named(run, file, path);
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = target.with_file_name(format!(".{name}.tmp-{}", std::process::id()));
        let failed = |error| StoreError::write(path, error);
        if let Some(file) = files::nameless(&target) {
            self.write_named(run, &file, path)?;
            hold::writing(|| Ok(())).map_err(failed)?;
            return files::give_name(&file, &target, &temporary).map_err(failed);
        }
        let write = || {
            let file = File::create(&temporary).map_err(failed)?;
            self.write_named(run, file, path)?;
            fs::rename(&temporary, &target).map_err(failed)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    /// Write the run to `output`, for instance standard output.
    pub fn write(&self, run: &StoredRun, output: impl Write + Send) -> Result<(), StoreError> {
        self.write_named(run, output, Path::new("the output"))
    }

    fn write_named(
        &self,
        run: &StoredRun,
        mut output: impl Write + Send,
        name: &Path,
    ) -> Result<(), StoreError> {
        let mut output = BufWriter::with_capacity(1 << 16, &mut output as &mut (dyn Write + Send));
        let fail = |error| StoreError::write(name, error);
        (self.write)(run, &mut output, &fail)?;
        output.flush().map_err(fail)
    }
}
