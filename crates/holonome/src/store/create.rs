//! Creation of a run's folder, which is either complete or absent.

use super::chunks::{self, ChunkWriter};
use super::error::StoreError;
use super::files::{self, Lock};
use super::layout::{Dimension, Layout};
use super::progress::StoredProgress;
use super::schema::{Axis, Grid, Schema};
use super::values;
use super::zarr;
use serde::Serialize;
use serde_json::Map;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Create the run at `path`, which must be new or an empty folder.
pub(super) fn at(path: &Path, schema: &Schema, layout: &Layout) -> Result<Lock, StoreError> {
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => in_place(path, schema, layout),
        Ok(false) => Err(StoreError::NotEmpty { path: path.to_path_buf() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            beside(path, schema, layout, |hidden| match fs::rename(hidden, path) {
                Err(_) if is_there(path) => Err(StoreError::NotEmpty { path: path.to_path_buf() }),
                renamed => renamed.map_err(|error| StoreError::write(path, error)),
            })
        }
        Err(error) => Err(StoreError::write(path, error)),
    }
}

/// Create `parent/stem-k` with the smallest k ≥ 1 that is free.
pub(super) fn numbered(
    parent: &Path,
    stem: &str,
    schema: &Schema,
    layout: &Layout,
) -> Result<(Lock, PathBuf), StoreError> {
    let mut path = PathBuf::new();
    let lock = beside(&parent.join(stem), schema, layout, |hidden| {
        let mut number: u64 = 1;
        loop {
            path = parent.join(format!("{stem}-{number}"));
            if !is_there(&path) {
                match fs::rename(hidden, &path) {
                    Ok(()) => return Ok(()),
                    // Another process was faster: its folder is not empty, so the rename could not
                    // replace it.
                    Err(_) if is_there(&path) => {}
                    Err(error) => return Err(StoreError::write(&path, error)),
                }
            }
            number += 1;
        }
    })?;
    Ok((lock, path))
}

/// Build the run in a hidden folder beside `target`, which `publish` then renames.
fn beside(
    target: &Path,
    schema: &Schema,
    layout: &Layout,
    publish: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<Lock, StoreError> {
    let parent = target.parent().unwrap_or(Path::new(""));
    let missing: Vec<&Path> = parent
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !is_there(folder))
        .collect();
    let build = || {
        if !missing.is_empty() {
            fs::create_dir_all(parent).map_err(|error| StoreError::write(parent, error))?;
        }
        remove_stale(parent);
        let hidden = hidden_folder(target)?;
        let filled = fill(&hidden, schema, layout).map_err(|error| error.about(target));
        filled.and_then(|lock| publish(&hidden).map(|()| lock)).inspect_err(|_| {
            let _ = fs::remove_dir_all(&hidden);
        })
    };
    build().inspect_err(|_| {
        // Leave no trace of a run that failed; a folder that is in use by now is not empty and
        // stays.
        for folder in missing.iter() {
            let _ = fs::remove_dir(folder);
        }
    })
}

/// Create a folder that no other process or thread uses.
pub(super) fn hidden_folder(target: &Path) -> Result<PathBuf, StoreError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let hidden = target.with_file_name(format!(".{name}.tmp-{}-{count}", std::process::id()));
        match fs::create_dir(&hidden) {
            Ok(()) => return Ok(hidden),
            // Left by a killed process with the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::write(target, error)),
        }
    }
}

/// Build the run beside an existing one, let `fill_in` put its rows there, and exchange the two.
/// Other contents of the old folder are kept; the old run is removed.
pub(super) fn instead(
    target: &Path,
    schema: &Schema,
    layout: &Layout,
    fill_in: impl FnOnce(&Path, Lock) -> Result<Lock, StoreError>,
) -> Result<Lock, StoreError> {
    let hidden = hidden_folder(target)?;
    let build = || {
        let lock = fill_in(&hidden, fill(&hidden, schema, layout)?)?;
        files::exchange(&hidden, target).map_err(|error| StoreError::write(target, error))?;
        Ok(lock)
    };
    let lock = build().map_err(|error: StoreError| error.about(target)).inspect_err(|_| {
        let _ = fs::remove_dir_all(&hidden);
    })?;
    // From here on the new run is in its place; remains of the old one would not be its failure.
    for entry in fs::read_dir(&hidden).into_iter().flatten().flatten() {
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        let own = entry.file_name().to_string_lossy().starts_with(files::TEMPORARY)
            || from.join("zarr.json").exists();
        if !own && !is_there(&to) {
            let _ = fs::rename(from, to);
        }
    }
    let _ = fs::remove_dir_all(&hidden);
    Ok(lock)
}

/// Remove the hidden folders in `parent` in which processes that have ended were building runs.
pub(super) fn remove_stale(parent: &Path) {
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let ended = builder(&entry.file_name().to_string_lossy()).is_some_and(has_ended);
        // The lock tells of processes on other machines.
        if ended && files::own(&path).join("run.lock").exists() && Lock::take(&path).is_ok() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Number of the process that builds a run in a [hidden folder](hidden_folder) of this name.
fn builder(name: &str) -> Option<u32> {
    let (process, count) = name.strip_prefix('.')?.rsplit_once(".tmp-")?.1.split_once('-')?;
    count.parse::<u64>().ok()?;
    process.parse().ok()
}

/// True if there is no process of this number, as far as the system tells.
pub(super) fn has_ended(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return Path::new("/proc/self/stat").exists();
    };
    // The state follows the name, which is in brackets: a process that was not waited for is a
    // zombie.
    status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Build the run in an existing empty folder.
fn in_place(path: &Path, schema: &Schema, layout: &Layout) -> Result<Lock, StoreError> {
    fill(path, schema, layout).inspect_err(|error| {
        // The holder of the lock file goes on filling the folder; everything else in it is ours.
        if !matches!(error, StoreError::NotEmpty { .. }) {
            let _ = empty(path);
        }
    })
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
    }
    Ok(())
}

/// Write the whole skeleton into an empty folder; `zarr.json`, which makes it a run, comes last.
fn fill(folder: &Path, schema: &Schema, layout: &Layout) -> Result<Lock, StoreError> {
    if schema.blocks().is_some() {
        let own = files::own_of_ensemble(folder);
        fs::create_dir(&own).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::NotEmpty { path: folder.to_path_buf() },
            _ => StoreError::write(&own, error),
        })?;
        // Readers that list the folder would warn of one that is not a group.
        write_document(&own, &zarr::group_of(&Map::new()))?;
    }
    let lock = Lock::create(folder)?;
    let documents = zarr::array_documents(schema);
    for (name, document) in &documents {
        let array = folder.join(name);
        fs::create_dir(&array).map_err(|error| StoreError::write(&array, error))?;
        write_document(&array, document)?;
    }
    let mut times = ChunkWriter::new(folder, &schema.time);
    let mut rest = &layout.times[..];
    while !rest.is_empty() {
        times.make_room()?;
        let (part, others) = rest.split_at(times.room().min(rest.len()));
        times.push(part.len(), part);
        rest = others;
    }
    times.flush()?;
    for (axis, (_, values)) in
        schema.trajectories.iter().flat_map(|all| &all.grid).zip(&layout.grid)
    {
        let mut writer = ChunkWriter::new(folder, &axis.series());
        for value in values.iter() {
            writer.make_room()?;
            writer.push(1, std::slice::from_ref(value));
        }
        writer.flush()?;
    }
    for (axis, dimension) in schema.axes.iter().zip(&layout.dimensions) {
        write_labels(folder, axis, dimension)?;
    }
    values::write(folder, &layout.values)?;
    StoredProgress::running(0).write(folder)?;
    replace_group(folder, &zarr::group_document(schema, &documents))?;
    Ok(lock)
}

/// Write the labels of a dimension.
pub(super) fn write_labels(
    folder: &Path,
    axis: &Axis,
    dimension: &Dimension,
) -> Result<(), StoreError> {
    for ((_, array), label) in axis.labels.iter().zip(&dimension.labels) {
        let chunk_rows = Grid::new(axis.length, Vec::new()).chunk_rows;
        let (folder, values) = (folder.join(array), label.values.iter().copied());
        match axis.letters() {
            Some(letters) => chunks::write_texts(&folder, letters)?,
            None => chunks::write_integers(&folder, values, chunk_rows)?,
        }
    }
    Ok(())
}

/// Write the document of the group once more.
pub(super) fn write_group(folder: &Path, schema: &Schema) -> Result<(), StoreError> {
    replace_group(folder, &zarr::group_document(schema, &zarr::array_documents(schema)))
}

fn replace_group(folder: &Path, document: &impl Serialize) -> Result<(), StoreError> {
    files::replace(&folder.join("zarr.json"), text_of(document).as_bytes())
}

/// Text of the document of the group.
pub(super) fn group_text(schema: &Schema) -> String {
    text_of(&zarr::group_document(schema, &zarr::array_documents(schema)))
}

fn text_of(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("metadata are JSON") + "\n"
}

/// Write the document of an array or a group into a folder that nobody reads yet.
pub(super) fn write_document(folder: &Path, document: &impl Serialize) -> Result<(), StoreError> {
    files::write_unread(&folder.join("zarr.json"), text_of(document).as_bytes())
}

/// True if something has this name, even a dangling link.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
