//! A run as comma-separated values: a header, then one line for each stored sample; of an ensemble, for each sample of
//! each trajectory, whose number comes first.
//!
//! Columns are named as in the model: `t`, `q.x`, `r[2].y`, `x[1,2].z`; vectors of more than three components and
//! matrices are written with indices, `Q[4]`, `R[1,2]`, `A[3][1,2]`. Names with a comma stand in quotes (RFC 4180).
//! Numbers are the shortest decimals that read back as the same bits; `NaN` and `inf` are spelt so.

use super::error::StoreError;
use super::files;
use super::layout::{Dimension, Role};
use super::reader::StoredRun;
use super::schema::{Series, Trajectories};
use crate::hold;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the run to a file, which appears (or is replaced) when it is complete. What is not a regular file, such as
/// `/dev/stdout` or a pipe, is written directly. A file inside a stored run is refused.
pub fn export(run: &StoredRun, path: &Path) -> Result<(), StoreError> {
    // Replaces the file that a link leads to, not the link.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = || Some(fs::canonicalize(parent).ok()?.join(path.file_name()?));
    let target = fs::canonicalize(path).ok().or_else(there).unwrap_or_else(|| path.to_path_buf());
    if let Some(inside) = target.ancestors().find(|folder| folder.join("zarr.json").exists()) {
        return Err(StoreError::InsideRun { path: path.to_path_buf(), run: inside.to_path_buf() });
    }
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if special {
        let file = File::options().write(true).open(path).map_err(|error| StoreError::write(path, error))?;
        return write_named(run, file, path);
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{name}.tmp-{}", std::process::id()));
    let failed = |error| StoreError::write(path, error);
    if let Some(file) = files::nameless(&target) {
        write_named(run, &file, path)?;
        hold::writing(|| Ok(())).map_err(failed)?;
        return files::give_name(&file, &target, &temporary).map_err(failed);
    }
    let write = || {
        let file = File::create(&temporary).map_err(failed)?;
        write_named(run, file, path)?;
        fs::rename(&temporary, &target).map_err(failed)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Writes the run to `output`, standard output for instance.
pub fn write(run: &StoredRun, output: impl Write) -> Result<(), StoreError> {
    write_named(run, output, Path::new("the output"))
}

fn write_named(run: &StoredRun, output: impl Write, name: &Path) -> Result<(), StoreError> {
    let mut output = BufWriter::with_capacity(1 << 16, output);
    let fail = |error| StoreError::write(name, error);
    let schema = run.schema();
    output.write_all(if schema.trajectories.is_some() { b"trajectory,t" } else { b"t" as &[u8] }).map_err(fail)?;
    for series in &schema.arrays {
        write_columns(run, series, &mut output, name)?;
    }
    output.write_all(b"\n").map_err(fail)?;
    match &schema.trajectories {
        None => write_samples(run, &mut output, &fail)?,
        Some(trajectories) => write_trajectories(run, trajectories, &mut output, &fail)?,
    }
    output.flush().map_err(fail)
}

/// A line for each sample of a run.
fn write_samples(
    run: &StoredRun,
    output: &mut impl Write,
    fail: &impl Fn(io::Error) -> StoreError,
) -> Result<(), StoreError> {
    let schema = run.schema();
    let mut times = run.row_reader(&schema.time);
    let mut arrays: Vec<_> = schema.arrays.iter().map(|series| run.row_reader(series)).collect();
    for sample in 0..run.samples() {
        write_numbers(output, times.row(sample)?, b"").map_err(fail)?;
        for array in &mut arrays {
            write_numbers(output, array.row(sample)?, b",").map_err(fail)?;
        }
        output.write_all(b"\n").map_err(fail)?;
    }
    Ok(())
}

/// A line for each time of each trajectory; what a trajectory has once is repeated.
fn write_trajectories(
    run: &StoredRun,
    trajectories: &Trajectories,
    output: &mut impl Write,
    fail: &impl Fn(io::Error) -> StoreError,
) -> Result<(), StoreError> {
    let schema = run.schema();
    let times = run.times()?;
    let mut arrays: Vec<_> = schema.arrays.iter().map(|series| (series, run.row_reader(series))).collect();
    for row in 0..run.samples() {
        for (sample, time) in times.iter().enumerate() {
            write!(output, "{},{time:?}", trajectories.first + row as u64).map_err(fail)?;
            for (series, reader) in &mut arrays {
                let numbers = reader.row(row)?;
                let numbers = if series.timed {
                    let width = numbers.len() / times.len();
                    &numbers[sample * width..(sample + 1) * width]
                } else {
                    numbers
                };
                write_numbers(output, numbers, b",").map_err(fail)?;
            }
            output.write_all(b"\n").map_err(fail)?;
        }
    }
    Ok(())
}

/// Debug formatting, because it switches to an exponent where Display would write hundreds of zeros.
fn write_numbers(output: &mut impl Write, numbers: &[f64], before: &[u8]) -> io::Result<()> {
    for number in numbers {
        output.write_all(before)?;
        write!(output, "{number:?}")?;
    }
    Ok(())
}

/// Writes the names of an array's columns.
fn write_columns(run: &StoredRun, series: &Series, output: &mut impl Write, name: &Path) -> Result<(), StoreError> {
    let axes = series.axes.iter().map(|&axis| run.read_axis(&run.schema().axes[axis]));
    let axes = axes.collect::<Result<Vec<Dimension>, _>>()?;
    // The last dimension runs fastest, as in a row of the array.
    let columns: usize = axes.iter().map(Dimension::len).product();
    for column in 0..columns {
        let mut rest = column;
        let mut places = vec![0; axes.len()];
        for (place, axis) in places.iter_mut().zip(&axes).rev() {
            *place = rest % axis.len();
            rest /= axis.len();
        }
        let title = column_name(&series.name, &axes, &places);
        let written = if title.contains([',', '"']) {
            write!(output, ",\"{}\"", title.replace('"', "\"\""))
        } else {
            write!(output, ",{title}")
        };
        written.map_err(|error| StoreError::write(name, error))?;
    }
    Ok(())
}

/// The name of one number of a variable, as the model language writes it.
fn column_name(variable: &str, axes: &[Dimension], places: &[usize]) -> String {
    let mut family = Vec::new();
    let mut component = Vec::new();
    let mut letter = None;
    for (axis, &place) in axes.iter().zip(places) {
        let values = axis.labels.iter().map(|label| label.values[place].to_string());
        match axis.role {
            Role::Index => family.extend(values),
            Role::Component if axis.len() <= 3 => letter = Some(["x", "y", "z"][place]),
            Role::Component | Role::Row | Role::Column => component.extend(values),
        }
    }
    let mut name = variable.to_string();
    for indices in [family, component].iter().filter(|indices| !indices.is_empty()) {
        name.push_str(&format!("[{}]", indices.join(",")));
    }
    if let Some(letter) = letter {
        name.push('.');
        name.push_str(letter);
    }
    name
}
