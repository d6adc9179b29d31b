//! Runs as comma-separated values: a header, then one line for each stored sample; for an ensemble,
//! one for each sample of each trajectory, whose number comes first.
//!
//! Columns are named as in the model: `t`, `q.x`, `r[2].y`, `x[1,2].z`; vectors of more than three
//! components and matrices are written with indices, `Q[4]`, `R[1,2]`, `A[3][1,2]`. Names with a
//! comma stand in quotes (RFC 4180). Numbers are the shortest decimals that read back as the same
//! bits; `NaN` and `inf` are spelt so.

use super::table::each_row;
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use crate::store::schema::Series;
use std::io::{self, Write};

/// Comma-separated values.
pub const FORMAT: Format = Format { name: "csv", about: "CSV", write };

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let schema = run.schema();
    output
        .write_all(if schema.trajectories.is_some() { b"trajectory,t" } else { b"t" as &[u8] })
        .map_err(fail)?;
    let all = run.all_series();
    for series in &all {
        write_columns(run, series, output, fail)?;
    }
    output.write_all(b"\n").map_err(fail)?;
    each_row(run, &mut |row| {
        let mut put = || {
            if let Some(trajectory) = row.trajectory {
                write!(output, "{trajectory},")?;
            }
            write_numbers(output, &[row.t], b"")?;
            write_numbers(output, row.numbers, b",")?;
            output.write_all(b"\n")
        };
        put().map_err(fail)
    })
}

/// Write numbers, each after `before`, in debug format: it switches to an exponent where Display
/// would write hundreds of zeros.
fn write_numbers(output: &mut Stream, numbers: &[f64], before: &[u8]) -> io::Result<()> {
    for number in numbers {
        output.write_all(before)?;
        write!(output, "{number:?}")?;
    }
    Ok(())
}

/// Write the names of an array's columns.
fn write_columns(
    run: &StoredRun,
    series: &Series,
    output: &mut Stream,
    fail: Fail,
) -> Result<(), StoreError> {
    for title in run.columns(series)? {
        let written = if title.contains([',', '"']) {
            write!(output, ",\"{}\"", title.replace('"', "\"\""))
        } else {
            write!(output, ",{title}")
        };
        written.map_err(fail)?;
    }
    Ok(())
}
