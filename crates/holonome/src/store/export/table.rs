//! Rows of a run as a table: one for each stored sample; for an ensemble, one for each sample of each
//! trajectory.

use crate::store::error::StoreError;
use crate::store::reader::StoredRun;

/// A row of the table.
pub struct TableRow<'a> {
    /// Number of the trajectory, for an ensemble.
    pub trajectory: Option<u64>,
    /// Time of the sample.
    pub t: f64,
    /// Numbers of all arrays; single values of a trajectory are repeated.
    pub numbers: &'a [f64],
}

/// Names of the numbers of a row, as in the model.
///
/// # Errors
/// If the labels of a dimension cannot be read.
pub fn column_names(run: &StoredRun) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    for series in run.all_series() {
        names.extend(run.columns(&series)?);
    }
    Ok(names)
}

/// Pass every row to `show`, in order.
///
/// # Errors
/// If a row cannot be read, or from `show`.
pub fn each_row(
    run: &StoredRun,
    show: &mut dyn FnMut(TableRow) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let times = run.times()?;
    let first = run.trajectories().map(|range| range.start);
    let in_row = if first.is_some() { times.len() } else { 1 };
    let all = run.all_series();
    let mut arrays: Vec<_> =
        all.iter().map(|series| (series.timed, run.row_reader(series))).collect();
    let mut numbers = Vec::new();
    for row in 0..run.samples() {
        for sample in 0..in_row {
            numbers.clear();
            for (timed, reader) in &mut arrays {
                let all = reader.row(row)?;
                let width = if *timed { all.len() / in_row } else { all.len() };
                let start = if *timed { sample * width } else { 0 };
                numbers.extend_from_slice(&all[start..start + width]);
            }
            let trajectory = first.map(|first| first + row as u64);
            let t = times[if first.is_some() { sample } else { row }];
            show(TableRow { trajectory, t, numbers: &numbers })?;
        }
    }
    Ok(())
}
