//! Numbers beside the arrays of a run that do not change while it runs, and that the caller's
//! attributes describe: in `values.bin`, one list after the other.

use super::checksum;
use super::error::StoreError;
use super::files;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const VALUES: &str = "values.bin";

/// Write `values.bin` into the run's folder, unless there is nothing to write.
pub(super) fn write(run: &Path, values: &[Arc<[f64]>]) -> Result<(), StoreError> {
    if values.is_empty() {
        return Ok(());
    }
    files::replace_by(&files::own(run).join(VALUES), |sink| {
        for number in values.iter().flat_map(|list| list.iter()) {
            sink.write_all(&number.to_le_bytes())?;
        }
        let sum = files::checksum(sink)?;
        sink.write_all(&sum.to_le_bytes())
    })
}

/// Read `values.bin`, lists of these lengths.
///
/// # Errors
/// If it is missing, damaged, or of another length.
pub(crate) fn read_values(
    run: &Path,
    lengths: impl Iterator<Item = usize>,
) -> Result<Vec<Arc<[f64]>>, StoreError> {
    let path = files::own(run).join(VALUES);
    let file = files::read_if_present(&path)?
        .ok_or_else(|| StoreError::damaged(&path, "it is missing"))?;
    let mut rest = checksum::opened(&path, &file, "the values")?;
    let mut lists = Vec::new();
    for length in lengths {
        let (list, others) = (length.checked_mul(size_of::<f64>()))
            .and_then(|bytes| rest.split_at_checked(bytes))
            .ok_or_else(|| StoreError::damaged(&path, "it has too few numbers"))?;
        let numbers = list.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes));
        lists.push(numbers.collect());
        rest = others;
    }
    match rest.len() {
        0 => Ok(lists),
        more => Err(StoreError::damaged(&path, format!("it has {more} bytes too many"))),
    }
}
