//! Files that are either complete or absent.

use super::error::StoreError;
use crate::hold;
use crate::regular;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Prefix of a run's temporary files, which mean nothing after the process that wrote them.
pub(super) const TEMPORARY: &str = ".tmp-";
const LOCK: &str = "run.lock";

/// Folder within that of an ensemble with everything that is not an array.
const OWN: &str = ".holonome";

/// Folder of a run's own files beside its arrays: its root, or the hidden folder of an ensemble.
pub(super) fn own(run: &Path) -> PathBuf {
    let hidden = own_of_ensemble(run);
    let is_folder = hidden.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_folder { hidden } else { run.to_path_buf() }
}

/// Folder of an ensemble's own files.
pub(super) fn own_of_ensemble(run: &Path) -> PathBuf {
    run.join(OWN)
}

/// Temporary path of `target`: hidden, and in the same folder, because a rename works within one
/// file system only.
pub(super) fn temporary(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{TEMPORARY}{name}"))
}

/// True if the file system of `folder`, which may not exist yet, tells names apart that differ by
/// case only.
pub(super) fn tells_case_apart(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let probe = |name: &str| there.join(format!("{TEMPORARY}{name}-{}", std::process::id()));
    let (lower, upper) = (probe("case"), probe("CASE"));
    // Where nothing can be created, the run cannot be either.
    let made = File::create_new(&lower).is_ok();
    let found = upper.symlink_metadata().is_ok();
    if made {
        let _ = fs::remove_file(&lower);
    }
    !found
}

/// Create a file. What has its name already, left by a killed process or put there by others, is
/// removed and not written to: it may be a link that leads elsewhere.
fn create(path: &Path) -> io::Result<File> {
    #[cfg(test)]
    if let Some(full) = tests::full_disk(path) {
        return full;
    }
    match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

/// Replace `target` by `bytes`; readers, also after a kill, see either the old content or the new.
pub(crate) fn replace(target: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    replace_through(&temporary(target), target, bytes)
}

/// [`replace`] with a given temporary path, for callers that must not allocate.
pub(super) fn replace_through(
    temporary: &Path,
    target: &Path,
    bytes: &[u8],
) -> Result<(), StoreError> {
    write(temporary, bytes).and_then(|()| fs::rename(temporary, target)).map_err(|error| {
        // Free the space; if this fails too, the user learns nothing new from it.
        let _ = fs::remove_file(temporary);
        StoreError::write(target, error)
    })
}

/// Write a file of a folder that nobody reads yet. It needs no temporary name: the folder is read
/// once its document, or its own name, is there.
pub(super) fn write_unread(target: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write(target, bytes).map_err(|error| StoreError::write(target, error))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    hold::writing(|| (&file).write_all(&bytes[..bytes.len() / 2]))?;
    file.write_all(bytes)
}

/// A file that is being written, with the checksum of its content so far.
pub(super) struct Summed<'f> {
    file: &'f File,
    sum: u32,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, &bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Destination of a file's content, piece by piece.
pub(super) type Sink<'f> = BufWriter<Summed<'f>>;

/// Checksum (CRC-32C) of everything written to `sink`.
pub(super) fn checksum(sink: &mut Sink) -> io::Result<u32> {
    sink.flush()?;
    Ok(sink.get_ref().sum)
}

/// [`replace`] by the output of `content`, for content that is not in one piece.
pub(super) fn replace_by(
    target: &Path,
    content: impl Fn(&mut Sink) -> io::Result<()>,
) -> Result<(), StoreError> {
    const BUFFER: usize = 1 << 16;
    let temporary = temporary(target);
    let fill = |file: &File| {
        let mut sink = BufWriter::with_capacity(BUFFER, Summed { file, sum: 0 });
        content(&mut sink)?;
        sink.flush()
    };
    let write = || {
        let file = create(&temporary)?;
        hold::writing(|| {
            fill(&file)?;
            file.set_len(file.metadata()?.len() / 2)
        })?;
        fill(&file)?;
        drop(file);
        fs::rename(&temporary, target)
    };
    write().map_err(|error| {
        // Free the space; if this fails too, the user learns nothing new from it.
        let _ = fs::remove_file(&temporary);
        StoreError::write(target, error)
    })
}

/// New file without a name in the folder of `target`, which vanishes with its process however that
/// ends; `None` if the system or the file system does not support such files.
#[cfg(target_os = "linux")]
pub(super) fn nameless(target: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(target.parent()?, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
}

/// Give a [`nameless`] file the name `target`, in one step if that is free; otherwise over
/// `temporary`.
#[cfg(target_os = "linux")]
pub(super) fn give_name(file: &File, target: &Path, temporary: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| linkat(CWD, &nameless, CWD, name, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(rustix::io::Errno::EXIST) => {
            link(temporary)?;
            fs::rename(temporary, target).inspect_err(|_| {
                let _ = fs::remove_file(temporary);
            })
        }
        linked => Ok(linked?),
    }
}

/// `None`: only Linux has files without a name.
#[cfg(not(target_os = "linux"))]
pub(super) fn nameless(_target: &Path) -> Option<File> {
    None
}

/// Never called, as [`nameless`] returns none.
#[cfg(not(target_os = "linux"))]
pub(super) fn give_name(_file: &File, _target: &Path, _temporary: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Exchange two folders in one step if the system supports it; otherwise there is a moment without
/// `target`.
pub(super) fn exchange(hidden: &Path, target: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, hidden, CWD, target, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let mut aside = hidden.as_os_str().to_os_string();
    aside.push("-old");
    let aside = Path::new(&aside);
    fs::rename(target, aside)?;
    fs::rename(hidden, target).inspect_err(|_| {
        let _ = fs::rename(aside, target);
    })?;
    fs::rename(aside, hidden)
}

/// Content of a file; `None` if it does not exist.
pub(super) fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match regular::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(StoreError::damaged(path, error))
        }
        Err(error) => Err(StoreError::read(path, error)),
    }
}

/// Remove the temporary files of interrupted writes.
pub(super) fn remove_temporaries(folder: &Path) -> Result<(), StoreError> {
    remove_where(folder, |name| name.starts_with(TEMPORARY))
}

/// Remove the files of a folder whose names `unwanted` selects.
pub(super) fn remove_where(
    folder: &Path,
    unwanted: impl Fn(&str) -> bool,
) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(|error| StoreError::read(folder, error))? {
        let path = entry.map_err(|error| StoreError::read(folder, error))?.path();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&unwanted) {
            fs::remove_file(&path).map_err(|error| StoreError::write(&path, error))?;
        }
    }
    Ok(())
}

/// Lock that holds a run for writing until it is dropped or its process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    /// The lock belongs to the open file. `None` if the file system has no locks: the run goes on
    /// without.
    file: Option<File>,
}

impl Lock {
    /// Take the lock in a folder that is being created; its file must be new, so two creators
    /// cannot both have it.
    pub(super) fn create(folder: &Path) -> Result<Lock, StoreError> {
        let path = own(folder).join(LOCK);
        match File::create_new(&path) {
            Ok(file) => Lock::hold(folder, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(StoreError::NotEmpty { path: folder.to_path_buf() })
            }
            Err(error) => Err(StoreError::write(&path, error)),
        }
    }

    /// Take the lock of an existing run.
    pub(super) fn take(folder: &Path) -> Result<Lock, StoreError> {
        let path = own(folder).join(LOCK);
        // A link may lead elsewhere, and a pipe would wait for its other end.
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(StoreError::damaged(&path, "it is not a file"));
        }
        let open = File::options().create(true).append(true).open(&path);
        Lock::hold(folder, open.map_err(|error| StoreError::write(&path, error))?)
    }

    fn hold(folder: &Path, file: File) -> Result<Lock, StoreError> {
        match file.try_lock() {
            Ok(()) => Ok(Lock { file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: folder.to_path_buf() }),
            Err(TryLockError::Error(_)) => Ok(Lock { file: None }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that another thread is just starting shares the open
        // file for a moment.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// A disk that is full for chosen files.
#[cfg(test)]
pub(super) mod tests {
    use super::temporary;
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;

    static FULL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    /// Let the next write of `file` go to `/dev/full`, which has no space.
    pub fn fill_disk_for(file: &Path) {
        FULL.lock().unwrap().push(temporary(file));
    }

    /// True until that write.
    pub fn is_full_for(file: &Path) -> bool {
        FULL.lock().unwrap().contains(&temporary(file))
    }

    /// The full device in place of the file `temporary`, once.
    pub fn full_disk(temporary: &Path) -> Option<io::Result<File>> {
        let mut full = FULL.lock().unwrap();
        let place = full.iter().position(|path| path == temporary)?;
        full.remove(place);
        Some(File::options().write(true).open("/dev/full"))
    }
}
