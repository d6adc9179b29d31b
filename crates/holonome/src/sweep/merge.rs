//! Merging of the parts of an ensemble into the result of a single run.

use super::blocks::BlockRows;
use super::tally::Tally;
use super::{Sweep, SweepSummary};
use crate::error::Error;
use crate::store::{EnsembleStore, Status, StoreError, StoredRun};
use crate::summary::StoredSummary;
use holonome_integrate::averages::Moments;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Join the parts of an ensemble, given in any order, into a new folder.
///
/// # Errors
/// If a part is not finished, or belongs to another ensemble; if parts are missing or overlap; if
/// the folder cannot be written.
pub fn merge(out: impl AsRef<Path>, parts: &[PathBuf]) -> Result<SweepSummary, Error> {
    let out = out.as_ref();
    let mut opened = Vec::new();
    for path in parts {
        let run = StoredRun::open(path).map_err(Error::store)?;
        let Some(range) = run.trajectories() else {
            return Err(Error::option(format!(
                "{} is a single run, not a part of an ensemble",
                path.display()
            )));
        };
        if run.status() != Status::Finished {
            return Err(Error::option(format!(
                "{} is not finished: `holonome resume {}` goes on with it",
                path.display(),
                path.display()
            )));
        }
        opened.push((range, path, run));
    }
    opened.sort_by_key(|(range, ..)| (range.start, range.end));
    let Some((_, first_path, first)) = opened.first() else {
        return Err(Error::option("no parts were named: write holonome merge OUT PART…"));
    };
    let whole = first.attributes().clone();
    let mut expected = 0;
    for (range, path, run) in &opened {
        if *run.attributes() != whole {
            return Err(Error::option(format!(
                "{} and {} are parts of different ensembles: model, settings or options differ",
                first_path.display(),
                path.display()
            )));
        }
        if range.start != expected {
            let what = if range.start > expected { "missing" } else { "there twice" };
            let (low, high) = (expected.min(range.start), expected.max(range.start));
            return Err(Error::option(format!("trajectories {low} to {} are {what}", high - 1)));
        }
        expected = range.end;
    }
    let mut sweep = Sweep::of_attributes(&whole, first_path)?;
    if expected != sweep.sweep.trajectories {
        return Err(Error::option(format!(
            "trajectories {expected} to {} are missing",
            sweep.sweep.trajectories - 1
        )));
    }
    sweep.range = 0..expected;
    let (store, created) =
        EnsembleStore::create_or_open(out, &sweep.layout()).map_err(Error::store)?;
    if !created {
        return Err(Error::store(StoreError::NotEmpty { path: out.to_path_buf() }));
    }
    join(&sweep, &store, &opened).inspect_err(|_| {
        // Half an ensemble is of no use, and the next attempt needs its place; a failure of the
        // removal would not matter to the user.
        let _ = std::fs::remove_dir_all(out);
    })
}

/// Write the rows of all parts.
fn join(
    sweep: &Sweep,
    store: &EnsembleStore,
    parts: &[(Range<u64>, &PathBuf, StoredRun)],
) -> Result<SweepSummary, Error> {
    let mut wall_seconds = 0.0;
    let mut all = sweep.empty_tally();
    for (_, path, run) in parts {
        all.join(tally_of(sweep, path, run)?);
        wall_seconds += StoredSummary::from(run.summary()).cost.unwrap_or_default().wall_seconds;
    }
    // What is not known for each block is counted with the first one.
    let measures = all.measures.len();
    all.measures = vec![Moments::default(); measures];
    let names: Vec<String> = sweep.layout().arrays.into_iter().map(|array| array.name).collect();
    let mut rest = parts.iter();
    let (mut readers, mut part) = (Vec::new(), 0..0);
    let (mut rows, mut bytes): (BlockRows, _) = (vec![Vec::new(); names.len()], Vec::new());
    for block in 0..store.blocks().count() {
        let mut tally = std::mem::replace(&mut all, Tally::new(0, measures));
        rows.iter_mut().for_each(Vec::clear);
        for trajectory in store.blocks().range(block) {
            while trajectory >= part.end
                && let Some((range, _, run)) = rest.next()
            {
                let opened = names.iter().map(|name| run.rows(name)).collect::<Result<_, _>>();
                (readers, part) = (opened.map_err(Error::store)?, range.clone());
            }
            for (rows, reader) in rows.iter_mut().zip(&mut readers) {
                let row = reader.row((trajectory - part.start) as usize).map_err(Error::store)?;
                rows.extend_from_slice(row);
            }
        }
        sweep.measure(&rows, &mut tally);
        store.write(block, &rows, &tally, &mut bytes).map_err(Error::store)?;
    }
    Ok(sweep.ended(store, wall_seconds)?.expect("all blocks are written"))
}

/// Sums over the trajectories of a part.
fn tally_of(sweep: &Sweep, path: &Path, run: &StoredRun) -> Result<Tally, Error> {
    match run.checkpoint_state().map_err(Error::store)? {
        // A part of an earlier version.
        Some(tally) => Ok(tally),
        None => {
            let store = EnsembleStore::open(path).map_err(Error::store)?;
            sweep.joined(&store, 0..store.blocks().count())
        }
    }
}
