//! Reader of runs: finished, stopped, or still being written.

use super::chunks::{self, ChunkReader};
use super::error::StoreError;
use super::files;
use super::layout::{ArrayLayout, Dimension, Label, Role, unit_among};
use super::progress::{self, Status, StoredProgress};
use super::schema::{Axis, Grid, GridAxis, Schema, Series};
use super::zarr;
use serde_json::{Map, Value};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A run on disk, as it was when it was opened.
#[derive(Debug)]
pub struct StoredRun {
    path: PathBuf,
    schema: Schema,
    progress: StoredProgress,
}

/// Names of the latest runs in a folder of runs, the last one first; `None` if there are none.
fn runs_in(folder: &Path) -> Option<String> {
    const NAMED: usize = 3;
    let entries = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().join("zarr.json").exists());
    let mut runs: Vec<_> = entries
        .map(|entry| (entry.metadata().and_then(|data| data.modified()).ok(), entry.file_name()))
        .collect();
    runs.sort_by(|a, b| b.cmp(a));
    let more = if runs.len() > NAMED { ", …" } else { "" };
    let names: Vec<_> =
        runs.iter().take(NAMED).map(|(_, name)| name.to_string_lossy().into_owned()).collect();
    (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
}

impl StoredRun {
    /// Open the run in a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<StoredRun, StoreError> {
        let path = path.as_ref();
        let not_a_run = |reason: &str| StoreError::NotARun {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        if !path.exists() {
            return Err(not_a_run("there is no such folder"));
        }
        if !path.is_dir() {
            return Err(not_a_run("it is a file, not a folder"));
        }
        let group = files::read_if_present(&path.join("zarr.json"))?;
        let group = group.ok_or_else(|| match runs_in(path) {
            Some(runs) => not_a_run(&format!("it holds no zarr.json, but the runs {runs}")),
            None => not_a_run("it holds no zarr.json"),
        })?;
        let schema = zarr::schema_from_group(path, &group)?;
        let mut progress = StoredProgress::read(path)?;
        if progress.status == Status::Running
            && let Some(checkpoint) = progress::read_checkpoint(path)?
        {
            progress.samples = checkpoint.samples;
        }
        if let Some(blocks) = schema.blocks() {
            progress.samples = progress::stored_in_order(path, &schema, blocks)? as usize;
        }
        let (samples, planned) = (progress.samples, schema.rows());
        if samples > planned {
            return Err(StoreError::damaged(
                path,
                format!("it claims {samples} samples of {planned}"),
            ));
        }
        Ok(StoredRun { path: path.to_path_buf(), schema, progress })
    }

    /// Folder of the run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Attributes of the data set.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.schema.attributes
    }

    /// Status of the run.
    pub fn status(&self) -> Status {
        self.progress.status
    }

    /// Summary with which the run was finished; null while it runs.
    pub fn summary(&self) -> &Value {
        &self.progress.summary
    }

    /// Numbers of an ensemble's trajectories, including those not stored yet; `None` for a single
    /// trajectory.
    pub fn trajectories(&self) -> Option<Range<u64>> {
        let trajectories = self.schema.trajectories.as_ref()?;
        Some(trajectories.first..trajectories.first + trajectories.count as u64)
    }

    /// Names of the dimensions of a grid of trajectories, in the model; empty if they are none.
    pub fn grid(&self) -> Vec<String> {
        self.grid_axes().iter().map(|axis| axis.name.clone()).collect()
    }

    /// Values along the dimensions of a grid of trajectories.
    pub fn grid_values(&self) -> Result<Vec<Vec<f64>>, StoreError> {
        self.grid_axes().iter().map(|axis| self.values_along(axis)).collect()
    }

    pub(super) fn grid_axes(&self) -> &[GridAxis] {
        self.schema.trajectories.as_ref().map_or(&[], |all| &all.grid)
    }

    pub(super) fn values_along(&self, axis: &GridAxis) -> Result<Vec<f64>, StoreError> {
        let mut chunks = ChunkReader::new(&self.path, &axis.series());
        (0..axis.length).map(|row| Ok(chunks.row(row)?[0])).collect()
    }

    /// State of the last checkpoint, if there is one.
    pub fn checkpoint_state<T: serde::de::DeserializeOwned>(
        &self,
    ) -> Result<Option<T>, StoreError> {
        progress::read_checkpoint(&self.path)?.map(|checkpoint| checkpoint.state()).transpose()
    }

    /// Number of stored samples; for an ensemble, of trajectories.
    pub fn samples(&self) -> usize {
        self.progress.samples
    }

    /// Number of stored states: samples, for an ensemble those of all stored trajectories.
    pub fn states(&self) -> usize {
        let times = if self.schema.trajectories.is_some() { self.schema.time.grid.rows } else { 1 };
        self.samples() * times
    }

    /// Label of the unit of the time, if it is known.
    pub fn time_unit(&self) -> Option<&str> {
        unit_among(&self.schema.time.attributes)
    }

    /// Number of samples of the whole run, or of trajectories of the ensemble.
    pub fn samples_planned(&self) -> usize {
        self.schema.rows()
    }

    /// Arrays besides time, in the order of the layout; dimensions have their names in the store.
    /// The values of a grid of trajectories come first, as if each trajectory had its own.
    pub fn arrays(&self) -> Vec<ArrayLayout> {
        let axis = |&place: &usize| self.schema.axes[place].stored.clone();
        let array = |series: &Series| ArrayLayout {
            name: series.name.clone(),
            dimensions: series.axes.iter().map(axis).collect(),
            once: !series.timed,
            description: series.description.clone(),
            attributes: series.attributes.clone(),
        };
        self.all_series().iter().map(array).collect()
    }

    /// Quantities whose arrays have other names, with these: of two names that differ by case only,
    /// the second one's.
    pub fn renamed(&self) -> Vec<(String, String)> {
        self.schema.renamed()
    }

    /// A dimension with its labels, by its name in the store.
    pub fn dimension(&self, name: &str) -> Result<Dimension, StoreError> {
        match self.schema.axes.iter().find(|axis| axis.stored == name) {
            Some(axis) => self.read_axis(axis),
            None => {
                Err(StoreError::Mismatch { reason: format!("the run has no dimension {name}") })
            }
        }
    }

    /// Times of the stored samples; for an ensemble, all times.
    pub fn times(&self) -> Result<Vec<f64>, StoreError> {
        self.read_series(&self.schema.time)
    }

    /// Stored samples of an array, row after row, by its name in the model.
    pub fn read(&self, array: &str) -> Result<Vec<f64>, StoreError> {
        self.read_series(&self.series(array)?)
    }

    /// Reader of one row at a time, for arrays larger than memory.
    pub fn rows(&self, array: &str) -> Result<RowReader, StoreError> {
        Ok(self.row_reader(&self.series(array)?))
    }

    /// Names of the numbers in a row of an array (at one time), as in the model language: `r[2].y`.
    pub fn column_names(&self, array: &str) -> Result<Vec<String>, StoreError> {
        self.columns(&self.series(array)?)
    }

    /// Number of members of an array's family; 1 if it is not a family.
    pub fn members(&self, array: &str) -> Result<usize, StoreError> {
        let axes = self.axes(&self.series(array)?)?;
        Ok(axes.iter().filter(|axis| axis.role == Role::Index).map(Dimension::len).product())
    }

    pub(super) fn columns(&self, series: &Series) -> Result<Vec<String>, StoreError> {
        let axes = self.axes(series)?;
        // The last dimension runs fastest, as in a row of the array.
        let columns: usize = axes.iter().map(Dimension::len).product();
        let name = |column: usize| {
            let (mut rest, mut places) = (column, vec![0; axes.len()]);
            for (place, axis) in places.iter_mut().zip(&axes).rev() {
                *place = rest % axis.len();
                rest /= axis.len();
            }
            column_name(&series.name, &axes, &places)
        };
        Ok((0..columns).map(name).collect())
    }

    fn axes(&self, series: &Series) -> Result<Vec<Dimension>, StoreError> {
        series.axes.iter().map(|&axis| self.read_axis(&self.schema.axes[axis])).collect()
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn into_schema(self) -> Schema {
        self.schema
    }

    /// Series of all arrays: those of the grid of trajectories, and the others. Values along a
    /// dimension of the grid are called as in the store where an array has their name.
    pub(super) fn all_series(&self) -> Vec<Series> {
        let arrays = &self.schema.arrays;
        let values = |axis: &GridAxis| {
            let is_taken = arrays.iter().any(|array| array.name == axis.name);
            let name = if is_taken { &axis.stored } else { &axis.name };
            Series { name: name.clone(), ..axis.series() }
        };
        self.grid_axes().iter().map(values).chain(arrays.iter().cloned()).collect()
    }

    pub(super) fn row_reader(&self, series: &Series) -> RowReader {
        let grid = self.grid_axes();
        let axis = grid.iter().position(|axis| axis.stored == series.stored);
        let along = axis.map(|axis| {
            let repeated = grid[axis + 1..].iter().map(|axis| axis.length).product();
            (grid[axis].length, repeated)
        });
        let chunks = ChunkReader::new(&self.path, series);
        RowReader { chunks, along, samples: self.rows_of(series) }
    }

    pub(super) fn read_axis(&self, axis: &Axis) -> Result<Dimension, StoreError> {
        let chunk_rows = Grid::new(axis.length, Vec::new()).chunk_rows;
        let label = |(name, array): &(String, String)| {
            let folder = self.path.join(array);
            let values = match axis.letters() {
                Some(letters) => {
                    chunks::check_texts(&folder, letters)?;
                    (1..=letters.len() as i64).collect()
                }
                None => chunks::read_integers(&folder, axis.length, chunk_rows)?,
            };
            Ok(Label { name: name.clone(), values })
        };
        let labels = axis.labels.iter().map(label).collect::<Result<_, StoreError>>()?;
        Ok(Dimension { name: axis.stored.clone(), role: axis.role, labels })
    }

    /// Check that the times and the labels are as written.
    pub(super) fn check_coordinates(&self) -> Result<(), StoreError> {
        let mut times = self.row_reader(&self.schema.time);
        times.samples = self.schema.time.grid.rows;
        (0..times.samples).try_for_each(|sample| times.row(sample).map(|_| ()))?;
        self.schema.axes.iter().try_for_each(|axis| self.read_axis(axis).map(|_| ()))
    }

    fn series(&self, name: &str) -> Result<Series, StoreError> {
        let found = self.all_series().into_iter().find(|series| series.name == name);
        found.ok_or_else(|| StoreError::Mismatch { reason: format!("the run has no array {name}") })
    }

    /// Number of stored rows of an array. The times of an ensemble are complete from the start.
    pub(super) fn rows_of(&self, series: &Series) -> usize {
        let along_time =
            series.stored == self.schema.time.stored && self.schema.trajectories.is_some();
        if along_time { series.grid.rows } else { self.samples() }
    }

    fn read_series(&self, series: &Series) -> Result<Vec<f64>, StoreError> {
        let mut rows = self.row_reader(series);
        let mut numbers = Vec::new();
        let count = self.rows_of(series).saturating_mul(series.grid.row());
        let reserved = numbers.try_reserve_exact(count);
        reserved.map_err(|_| {
            StoreError::read(&self.path.join(&series.stored), io::ErrorKind::OutOfMemory.into())
        })?;
        for row in 0..self.rows_of(series) {
            numbers.extend_from_slice(rows.row(row)?);
        }
        Ok(numbers)
    }
}

/// Name of one number of a variable, as in the model language.
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

/// Reader of the rows of one array, with one chunk in memory.
#[derive(Debug)]
pub struct RowReader {
    chunks: ChunkReader,
    /// For the values along a dimension of a grid: how many they are, and for how many
    /// trajectories in a row each.
    along: Option<(usize, usize)>,
    samples: usize,
}

impl RowReader {
    /// Row of a stored sample. Reading in order loads each chunk once.
    pub fn row(&mut self, sample: usize) -> Result<&[f64], StoreError> {
        if sample >= self.samples {
            let reason = format!("sample {sample} of {} stored", self.samples);
            return Err(StoreError::Mismatch { reason });
        }
        self.chunks.row(self.along.map_or(sample, |(length, repeated)| sample / repeated % length))
    }
}
