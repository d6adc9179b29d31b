//! Results in memory: arrays by name, with shapes and times as in a store.

use crate::store::{ArrayLayout, Dimension, Layout, StoreError, StoredRun};
use std::collections::TryReserveError;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Everything that a run or an ensemble recorded.
#[derive(Clone, Default, PartialEq)]
pub struct Arrays {
    times: Vec<f64>,
    trajectories: Option<Range<u64>>,
    /// Values along the dimensions of a grid of trajectories.
    grid: Vec<(String, Arc<[f64]>)>,
    arrays: Vec<Array>,
    axes: Vec<Dimension>,
    rows: usize,
}

/// The names and shapes.
impl fmt::Debug for Arrays {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} rows of ", self.rows)?;
        f.debug_list().entries(&self.arrays).finish()
    }
}

/// One recorded quantity: its values at every sample, or for every trajectory.
#[derive(Clone, PartialEq)]
pub struct Array {
    name: String,
    description: String,
    dimensions: Vec<String>,
    shape: Vec<usize>,
    /// Number of dimensions of its rows.
    outer: usize,
    /// Numbers in a row.
    width: usize,
    values: Vec<f64>,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({}) of shape {:?}", self.name, self.dimensions.join(", "), self.shape)
    }
}

impl Array {
    /// Name of the quantity.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of the quantity, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Names of the dimensions, outermost first: `time`, or `trajectory` followed by `time` if the
    /// array has it, with the dimensions of a grid in place of `trajectory`; then the indices of a family; then the components of a vector or matrix.
    pub fn dimensions(&self) -> &[String] {
        &self.dimensions
    }

    /// Lengths of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All numbers, the last dimension running fastest.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The numbers at one sample, or of one trajectory.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// The numbers at the last sample, or of the last trajectory; empty if there is none.
    pub fn last(&self) -> &[f64] {
        &self.values[self.values.len().saturating_sub(self.width)..]
    }

    /// The rows, one after the other.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        let count = self.shape[..self.outer].iter().product();
        (0..count).map(|row| self.row(row))
    }
}

impl Arrays {
    /// Arrays of this layout without rows, with memory reserved for all of them.
    pub(crate) fn planned(layout: &Layout) -> Result<Arrays, TryReserveError> {
        let mut arrays = Vec::new();
        let rows = layout
            .trajectories
            .as_ref()
            .map_or(layout.times.len(), |range| (range.end - range.start) as usize);
        for array in &layout.arrays {
            let length = |name: &String| {
                let dimension = layout.dimensions.iter().find(|dimension| dimension.name == *name);
                dimension.map_or(1, |dimension| dimension.len())
            };
            let (mut dimensions, mut shape) =
                outer(layout.trajectories.is_some(), array.once, layout.times.len());
            dimensions.extend(array.dimensions.iter().cloned());
            shape.extend(array.dimensions.iter().map(length));
            let width = shape[1..].iter().product();
            let mut values = Vec::new();
            values.try_reserve_exact(rows.saturating_mul(width))?;
            let (name, description) = (array.name.clone(), array.description.clone());
            let outer = 1;
            arrays.push(Array { name, description, dimensions, shape, outer, width, values });
        }
        let (times, trajectories) = (layout.times.clone(), layout.trajectories.clone());
        let axes = layout.dimensions.clone();
        Ok(Arrays { times, trajectories, grid: Vec::new(), arrays, axes, rows: 0 })
    }

    /// Contents of the run in the folder `path`.
    ///
    /// # Errors
    /// If the folder is not a run, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Arrays, StoreError> {
        let path = path.as_ref();
        let run = StoredRun::open(path)?;
        let (rows, trajectories, times) = (run.samples(), run.trajectories(), run.times()?);
        let (mut arrays, mut axes) = (Vec::new(), Vec::<Dimension>::new());
        let grid = run.grid();
        for stored in run.arrays().into_iter().filter(|array| !grid.contains(&array.name)) {
            let (mut dimensions, mut shape) =
                outer(trajectories.is_some(), stored.once, times.len());
            for name in stored.dimensions {
                let dimension = run.dimension(&name)?;
                shape.push(dimension.len());
                dimensions.push(name);
                if !axes.contains(&dimension) {
                    axes.push(dimension);
                }
            }
            let (width, values) = (shape[1..].iter().product(), run.read(&stored.name)?);
            shape[0] = rows;
            arrays.push(Array {
                name: stored.name,
                description: stored.description,
                dimensions,
                shape,
                outer: 1,
                width,
                values,
            });
        }
        let mut arrays = Arrays { times, trajectories, grid: Vec::new(), arrays, axes, rows };
        if rows == run.samples_planned() {
            let values = run.grid_values()?.into_iter().map(Arc::from);
            arrays.arrange(&grid.into_iter().zip(values).collect::<Vec<_>>());
        }
        Ok(arrays)
    }

    /// Times of the samples recorded so far.
    pub fn times(&self) -> &[f64] {
        if self.trajectories.is_some() { &self.times } else { &self.times[..self.rows] }
    }

    /// Numbers of the trajectories of an ensemble recorded so far; `None` for a single run.
    pub fn trajectories(&self) -> Option<Range<u64>> {
        self.trajectories.as_ref().map(|range| range.start..range.start + self.rows as u64)
    }

    /// Values along the dimensions of a grid of trajectories, by the names of the parameters or
    /// variables; empty if they are no grid, or if it is not complete.
    pub fn coordinates(&self) -> &[(String, Arc<[f64]>)] {
        &self.grid
    }

    /// Give the arrays the dimensions of a grid, whose trajectories are complete, in place of that
    /// of the trajectories.
    pub(crate) fn arrange(&mut self, grid: &[(String, Arc<[f64]>)]) {
        if grid.is_empty() {
            return;
        }
        self.grid = grid.to_vec();
        let taken: Vec<String> = self.arrays.iter().map(|array| array.name.clone()).collect();
        for array in &mut self.arrays {
            let name = |(name, _): &(String, _)| match taken.contains(name) {
                true => format!("{name}_"),
                false => name.clone(),
            };
            array.dimensions.splice(..1, grid.iter().map(name));
            array.shape.splice(..1, grid.iter().map(|(_, values)| values.len()));
            array.outer = grid.len();
        }
    }

    /// Names of all arrays, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(Array::name)
    }

    /// The array of this name.
    pub fn get(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The arrays, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Array> {
        self.arrays.iter()
    }

    /// True if the arrays and the first times are those of `layout`.
    pub(crate) fn fit(&self, layout: &Layout) -> bool {
        let names = |array: &Array, planned: &ArrayLayout| array.name == planned.name;
        self.arrays.len() == layout.arrays.len()
            && self.arrays.iter().zip(&layout.arrays).all(|(array, planned)| names(array, planned))
            && layout.times.starts_with(self.times())
    }

    /// Dimension besides `trajectory` and `time`, with the labels of its places.
    pub fn dimension(&self, name: &str) -> Option<&Dimension> {
        self.axes.iter().find(|dimension| dimension.name == name)
    }

    /// Number of rows appended so far.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Append `count` rows to each array.
    pub(crate) fn append(&mut self, count: usize, rows: &[impl AsRef<[f64]>]) {
        for (array, rows) in self.arrays.iter_mut().zip(rows) {
            array.values.extend_from_slice(&rows.as_ref()[..count * array.width]);
            array.shape[0] += count;
        }
        self.rows += count;
    }

    /// Drop all rows but the first `rows`.
    pub(crate) fn truncate(&mut self, rows: usize) {
        for array in &mut self.arrays {
            array.values.truncate(rows * array.width);
            array.shape[0] = rows;
        }
        self.rows = rows;
    }
}

/// Dimensions of an array before its own, with no rows yet.
fn outer(ensemble: bool, once: bool, times: usize) -> (Vec<String>, Vec<usize>) {
    match (ensemble, once) {
        (true, true) => (vec!["trajectory".to_string()], vec![0]),
        (true, false) => (vec!["trajectory".to_string(), "time".to_string()], vec![0, times]),
        (false, _) => (vec!["time".to_string()], vec![0]),
    }
}

/// Arrays by name, as `arrays["q"]`.
impl std::ops::Index<&str> for Arrays {
    type Output = Array;

    /// # Panics
    /// If there is no such array; [`Arrays::get`] returns `None` instead.
    fn index(&self, name: &str) -> &Array {
        self.get(name).unwrap_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            panic!("there is no array '{name}'; these are: {}", names.join(", "))
        })
    }
}
