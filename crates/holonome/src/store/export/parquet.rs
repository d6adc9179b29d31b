//! Parquet: the table of the CSV export with its columns apart, as pandas, Polars, DuckDB and Arrow
//! read it. Numbers are 64-bit floats, those of trajectories 64-bit integers; the attributes of the
//! run are those of the file.

use super::table::{TableRow, column_names, each_row};
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use crate::store::zarr;
use parquet::basic::{Repetition, Type as Kind};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io;
use std::sync::Arc;

/// Parquet.
pub const FORMAT: Format = Format { name: "parquet", about: "Parquet", write };

/// Maximum number of numbers in a row group, which is in memory until it is complete.
const GROUP_NUMBERS: usize = 1 << 20;

/// Rows that are collected for a row group, column by column.
struct Rows {
    /// Numbers of the trajectories of an ensemble.
    trajectories: Option<Vec<i64>>,
    /// Times, and the numbers of all arrays.
    columns: Vec<Vec<f64>>,
}

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let failed = |error: ParquetError| fail(cause(error));
    let names = column_names(run)?;
    let column = |name: &str, kind| {
        let column = Type::primitive_type_builder(name, kind);
        column.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let trajectory = run.trajectories().map(|_| column("trajectory", Kind::INT64));
    let numbers = ["t"].into_iter().chain(names.iter().map(String::as_str));
    let columns = trajectory.into_iter().chain(numbers.map(|name| column(name, Kind::DOUBLE)));
    let fields = columns.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let schema = Type::group_type_builder("samples").with_fields(fields).build().map_err(failed)?;
    let attributes = zarr::stored_attributes(run.schema());
    let attributes = attributes.iter().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        KeyValue::new(key.clone(), text)
    });
    // Numbers of a trajectory hardly repeat.
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("holonome version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(attributes.collect()))
        .build();
    let mut file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))
        .map_err(failed)?;
    let width = names.len() + 1;
    let most = (GROUP_NUMBERS / width).max(1);
    let mut rows = Rows {
        trajectories: run.trajectories().map(|_| Vec::new()),
        columns: vec![Vec::new(); width],
    };
    each_row(run, &mut |row| {
        rows.push(&row);
        if rows.columns[0].len() < most { Ok(()) } else { rows.write(&mut file).map_err(failed) }
    })?;
    if !rows.columns[0].is_empty() {
        rows.write(&mut file).map_err(failed)?;
    }
    file.close().map(drop).map_err(failed)
}

impl Rows {
    fn push(&mut self, row: &TableRow) {
        if let (Some(all), Some(number)) = (&mut self.trajectories, row.trajectory) {
            all.push(number as i64);
        }
        let numbers = [row.t].into_iter().chain(row.numbers.iter().copied());
        self.columns.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
    }

    /// Write the rows as a group, and forget them.
    fn write<W: io::Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        if let Some(numbers) = &mut self.trajectories {
            let mut column = group.next_column()?.expect("it is the first column");
            column.typed::<Int64Type>().write_batch(numbers, None, None)?;
            column.close()?;
            numbers.clear();
        }
        for numbers in &mut self.columns {
            let mut column = group.next_column()?.expect("the schema has it");
            column.typed::<DoubleType>().write_batch(numbers, None, None)?;
            column.close()?;
            numbers.clear();
        }
        group.close().map(drop)
    }
}

/// What made a write fail.
fn cause(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
