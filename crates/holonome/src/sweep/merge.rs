//! Merging of the parts of an ensemble into the result of a single run.

use super::{Sweep, SweepSummary, Tally};
use crate::error::Error;
use crate::output::Output;
use crate::store::{RowReader, Status, Store, StoredRun};
use crate::summary::StoredSummary;
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
    let store = Store::create(out, &sweep.layout()).map_err(Error::store)?;
    join(&mut sweep, store, &opened).inspect_err(|_| {
        // Half an ensemble is of no use, and the next attempt needs its place; a failure of the
        // removal would not matter to the user.
        let _ = std::fs::remove_dir_all(out);
    })
}

/// Append the rows of all parts.
fn join(
    sweep: &mut Sweep,
    mut store: Store,
    parts: &[(Range<u64>, &PathBuf, StoredRun)],
) -> Result<SweepSummary, Error> {
    let out = store.path().to_path_buf();
    let mut wall_seconds = 0.0;
    for (range, path, run) in parts {
        let arrays = run.arrays();
        let mut readers: Vec<RowReader> = arrays
            .iter()
            .map(|array| run.rows(&array.name))
            .collect::<Result<_, _>>()
            .map_err(Error::store)?;
        for row in 0..(range.end - range.start) as usize {
            let rows: Vec<&[f64]> = readers
                .iter_mut()
                .map(|reader| reader.row(row))
                .collect::<Result<_, _>>()
                .map_err(Error::store)?;
            store.append(&rows).map_err(Error::store)?;
        }
        let tally: Tally = run.checkpoint_state().map_err(Error::store)?.ok_or_else(|| {
            Error::option(format!("{} has no checkpoint: run that part again", path.display()))
        })?;
        sweep.tally.join(tally);
        wall_seconds += StoredSummary::from(run.summary()).cost.unwrap_or_default().wall_seconds;
    }
    store.checkpoint(&sweep.tally).map_err(Error::store)?;
    let mut output = Output::Folder(Box::new(store));
    let mut summary = sweep.summary(Some(out), wall_seconds, false);
    summary.measures = sweep.measured(&output).map_err(Error::store)?;
    let ending = || summary.ending(Status::Finished);
    output.finish(Status::Finished, &summary, ending).map_err(Error::store)?;
    Ok(summary)
}
