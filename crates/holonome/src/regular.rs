//! Files that are read because a user, a model or a run names them.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a table, and of a model with the files that it includes, in bytes.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Open a regular file. What else may stand in its place (a pipe that nobody writes to, a device)
/// would keep the reader waiting, or never end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    match kind.is_file() {
        true => File::open(path),
        false => {
            let name = name(kind);
            // A device may have no end.
            let size = if name == DEVICE {
                format!(" of at most {} MiB", LARGEST >> 20)
            } else {
                String::new()
            };
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("it is {name}, not a file{size}"),
            ))
        }
    }
}

/// Content of a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Content of an open file or stream of at most [`LARGEST`] bytes; a pipe may have no end.
pub(crate) fn content(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        false => Ok(bytes),
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "it is larger than {} MiB, the limit for a model and for a table: give a smaller file",
                LARGEST >> 20
            ),
        )),
    }
}

const DEVICE: &str = "a device";

/// Name of a kind that is not a regular file.
fn name(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return DEVICE;
        }
    }
    if kind.is_dir() { "a directory" } else { "something else" }
}
