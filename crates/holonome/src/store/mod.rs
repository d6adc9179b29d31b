//! Trajectories on disk: a folder that is a Zarr v3 group, and a few files beside its arrays.
//!
//! ```text
//! runs/spherical-pendulum-1/
//!   zarr.json          the group: attributes, and the metadata of every array once more ("consolidated")
//!   time/ q/ p/ …      one folder per array: zarr.json and the chunks c.0, c.1, … (c.0.0 for q, and so on)
//!   component_3/ …     the coordinates that label the dimensions: 64-bit integers, or x, y, z
//!   checkpoint.bin     what `resume` continues from: the number of samples, and the state
//!   status.json        {"status", "samples", "summary", "crc32c"}: running, finished, failed or interrupted
//!   run.lock           locked while a process writes here
//! ```
//!
//! **Ensembles** are written by any number of processes, so that each chunk has one writer: all
//! arrays are divided into the same [`Blocks`] of trajectories, and everything that is not an array
//! lies in a hidden folder. The head of `ensemble.rs` says how.
//!
//! ```text
//! grid.zarr/
//!   zarr.json  time/  q/  …   as in a run; the chunks of an array are the blocks
//!   done/c.k                  one byte, written when all else of block k is there
//!   .holonome/
//!     sums/k                  sums over the trajectories of block k
//!     claims/k                the process that computes block k, while it does
//!     values.bin              numbers that the trajectories were given, if any
//!     status.json             as in a run
//! ```
//!
//! **Why a kill at any instant leaves a readable run.** The sample times are known before the run,
//! so every array has its final shape from the start and the metadata never change; a sample that
//! was not reached is a missing chunk or a NaN row, which equals the fill value. The whole skeleton
//! (metadata, `time`, coordinates) is built in a hidden folder beside the target and renamed into
//! place: the rename both claims the name and publishes a complete group, because it fails on a
//! folder that is not empty. Afterwards each file is written under a temporary name and renamed
//! over the old one. A checkpoint replaces the chunks first and `checkpoint.bin` last, so the
//! samples that it counts are stored; rows beyond it are dropped and written again, with the same
//! bytes, by `resume`. A run that is extended, or thinned at its end, is built beside, complete,
//! and the two folders are exchanged.
//!
//! A target folder that exists (and is empty) is filled in place, `zarr.json` last, because
//! replacing it would pull it away from under a shell or a mount. A kill within those milliseconds
//! leaves a folder that is not a run yet.
//!
//! What is *not* promised: files are not forced to the medium (`fsync`), which would cost more than
//! most runs take. Checksums in every chunk, in the checkpoint, in the status and of every
//! attribute of the group detect damage after a power failure, or on a medium that loses bits:
//! reading a damaged file is an error with its name.
//!
//! **Names.** A variable keeps its model name as array name, except that characters other than
//! letters, digits, `_`, `-`, brackets, commas and inner dots become `_`, a leading `__` (reserved by Zarr) gets a
//! `v` in front, and 200 bytes are the limit; the attribute `model_name` then holds the original.
//! Variables take precedence: if one is called `time` or `component_3`, the dimension of that name
//! is called `time_` or `component_3_`.

mod background;
mod blocks;
mod checksum;
mod chunks;
mod create;
mod ensemble;
mod error;
mod export;
mod files;
mod groups;
mod layout;
mod names;
mod progress;
mod reader;
mod schema;
mod values;
mod writer;
mod zarr;

#[cfg(test)]
pub(crate) mod tests;

pub use blocks::Blocks;
pub use ensemble::BlockStatus;
pub(crate) use ensemble::{EnsembleStore, Taken};
pub use error::StoreError;
pub use export::{FORMATS, Format};
pub(crate) use files::replace;
pub(crate) use groups::{Group, GroupArray};
pub(crate) use layout::units_attribute;
pub use layout::{ArrayLayout, Dimension, Label, Layout, Role};
pub use progress::{Checkpoint, Status};
pub use reader::{RowReader, StoredRun};
pub(crate) use schema::CHUNK_NUMBERS_MAX;
pub(crate) use values::read_values;
pub use writer::{ResumedStore, Store};
