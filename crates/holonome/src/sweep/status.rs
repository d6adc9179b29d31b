//! Status of an ensemble in a folder, which others may be computing.

use super::tally::Tally;
use crate::error::Error;
use crate::store::{BlockStatus, EnsembleStore};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Number of the latest blocks from which the rate is estimated.
const LATEST: usize = 64;

/// Status of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepStatus {
    /// Number of trajectories.
    pub trajectories: u64,
    /// Number of trajectories that are done.
    pub done: u64,
    /// Number of those that ended early.
    pub failed: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of blocks that are done.
    pub blocks_done: u64,
    /// Numbers of the blocks that processes compute now.
    pub running: Vec<u64>,
    /// Trajectories per second of all processes, from the latest blocks; `None` before two are
    /// done.
    pub rate: Option<f64>,
    /// Estimate of the seconds to the end, at that rate.
    pub seconds_left: Option<f64>,
    /// True if all blocks are done.
    pub complete: bool,
}

/// Status of the ensemble at `path`, from the files of its folder.
///
/// # Errors
/// If the folder is not an ensemble, is one of an earlier version, or is damaged.
pub fn status(path: impl AsRef<Path>) -> Result<SweepStatus, Error> {
    let store = EnsembleStore::open(path.as_ref()).map_err(Error::store)?;
    let BlockStatus { blocks, mut done, running } = store.block_status().map_err(Error::store)?;
    let length = |block: u64| {
        let range = store.blocks().range(block);
        range.end - range.start
    };
    let mut failed = 0;
    for &(block, _) in &done {
        failed += store.sums::<Tally>(block).map_err(Error::store)?.failed;
    }
    let (of, all) = (store.trajectories(), done.iter().map(|(block, _)| length(*block)).sum());
    let trajectories = of.end - of.start;
    let blocks_done = done.len() as u64;
    done.sort_by_key(|(_, time)| *time);
    let latest = &done[done.len().saturating_sub(LATEST)..];
    let rate = match latest {
        [(_, first), rest @ .., (last_block, last)] => {
            let computed: u64 = rest.iter().map(|(block, _)| length(*block)).sum();
            let span = last.duration_since(*first).unwrap_or(Duration::ZERO).as_secs_f64();
            (span > 0.0).then(|| (computed + length(*last_block)) as f64 / span)
        }
        _ => None,
    };
    let seconds_left = rate.map(|rate| (trajectories - all) as f64 / rate);
    let complete = blocks_done == blocks;
    Ok(SweepStatus {
        trajectories,
        done: all,
        failed,
        blocks,
        blocks_done,
        running,
        rate,
        seconds_left,
        complete,
    })
}
