//! Schema of a store: a layout with every name, shape and chunk size settled, shared by the writer
//! and the reader.

use super::blocks::Blocks;
use super::error::StoreError;
use super::layout::{Dimension, Label, Layout, Role, units_attribute};
use super::names::ClaimedNames;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Maximum number of values in a chunk, unless one row has more: 1 MiB, small enough to rewrite
/// once a second, large enough to keep the number of files of a long run low.
pub(crate) const CHUNK_NUMBERS_MAX: usize = 128 * 1024;

/// Settled form of a [`Layout`].
#[derive(Debug, Clone)]
pub(super) struct Schema {
    /// Attributes of the data set.
    pub attributes: Map<String, Value>,
    /// Attributes that tell of the end of a run that has ended: texts and numbers by name.
    pub ending: Map<String, Value>,
    /// Documents of the groups of a run that has ended, by path.
    pub groups: Vec<(String, Value)>,
    /// Sample times, a scalar array along itself.
    pub time: Series,
    /// Trajectories of an ensemble, which are its rows.
    pub trajectories: Option<Trajectories>,
    /// Stored variables, in the caller's order.
    pub arrays: Vec<Series>,
    /// Dimensions besides time.
    pub axes: Vec<Axis>,
}

/// Dimension of an ensemble's trajectories, or the dimensions of their grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trajectories {
    /// Name in the store.
    pub stored: String,
    /// Number of the first trajectory: a part of a larger ensemble begins later.
    pub first: u64,
    /// Number of trajectories.
    pub count: usize,
    /// Dimensions in place of the trajectories; empty if they are no grid.
    pub grid: Vec<GridAxis>,
    /// Blocks, each a chunk of every array; `None` for an ensemble of an earlier version.
    pub blocks: Option<Blocks>,
    /// Name of the array that tells which blocks are done.
    pub done: String,
}

/// Dimension of a grid of trajectories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GridAxis {
    /// Name of the parameter or variable.
    pub name: String,
    /// Name in the store.
    pub stored: String,
    /// Number of values.
    pub length: usize,
}

impl Trajectories {
    /// Names of the dimensions in the store.
    pub(super) fn dimensions(&self) -> Vec<&str> {
        match &self.grid[..] {
            [] => vec![&self.stored],
            grid => grid.iter().map(|axis| &*axis.stored).collect(),
        }
    }
}

impl GridAxis {
    /// Values along the dimension, as an array.
    pub(super) fn series(&self) -> Series {
        Series {
            name: self.name.clone(),
            stored: self.stored.clone(),
            description: format!("value of {}", self.name),
            attributes: Map::new(),
            timed: false,
            axes: Vec::new(),
            grid: Grid::new(self.length, Vec::new()),
        }
    }
}

/// One array along time, along trajectories, or along both.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// Name of the variable in the model.
    pub name: String,
    /// Name of its array and of the array's folder.
    pub stored: String,
    /// Description in one line.
    pub description: String,
    /// Further attributes.
    pub attributes: Map<String, Value>,
    /// True if an array of an ensemble has a value at every time; for a single trajectory, all
    /// arrays are along time.
    pub timed: bool,
    /// Dimensions besides trajectory and time, as places in [`Schema::axes`].
    pub axes: Vec<usize>,
    /// Shape and chunks.
    pub grid: Grid,
}

/// A dimension besides time.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// Name in the store.
    pub stored: String,
    /// Kind of its places.
    pub role: Role,
    /// Number of places.
    pub length: usize,
    /// For each label the name of the index and of the array with its values.
    pub labels: Vec<(String, String)>,
}

/// Shape and chunks of an array: chunks divide its rows only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// Rows of the whole array.
    pub rows: usize,
    /// Lengths of the other dimensions.
    pub lengths: Vec<usize>,
    /// Rows of a chunk.
    pub chunk_rows: usize,
    /// Blocks of an ensemble, which its chunks are.
    pub blocks: Option<Blocks>,
}

impl Axis {
    /// Letters that label the components of a short vector; other dimensions are labelled by
    /// integers.
    pub(super) fn letters(&self) -> Option<&'static [&'static str]> {
        const LETTERS: [&str; 3] = ["x", "y", "z"];
        (self.role == Role::Component).then(|| LETTERS.get(..self.length)).flatten()
    }
}

impl Grid {
    /// Chunks for an array of `rows` rows; never longer than the array, so that a short run stays
    /// small.
    pub(super) fn new(rows: usize, lengths: Vec<usize>) -> Grid {
        let row: usize = lengths.iter().product();
        let chunk_rows = (CHUNK_NUMBERS_MAX / row.max(1)).clamp(1, rows.max(1));
        Grid { rows, lengths, chunk_rows, blocks: None }
    }

    /// Array of an ensemble whose chunks are its blocks.
    pub(super) fn in_blocks(blocks: &Blocks, lengths: Vec<usize>) -> Grid {
        let rows = blocks.shape().iter().product::<u64>() as usize;
        Grid { rows, lengths, chunk_rows: blocks.len() as usize, blocks: Some(blocks.clone()) }
    }

    /// Lengths of the dimensions of its rows, and of a chunk therein.
    pub(super) fn outer(&self) -> (Vec<usize>, Vec<usize>) {
        let lengths = |list: &[u64]| list.iter().map(|&length| length as usize).collect();
        match &self.blocks {
            Some(blocks) => (lengths(blocks.shape()), lengths(&blocks.chunk())),
            None => (vec![self.rows], vec![self.chunk_rows]),
        }
    }

    /// Chunk of a row, and its place therein.
    pub(super) fn place(&self, row: usize) -> (usize, usize) {
        match &self.blocks {
            Some(blocks) => {
                let (block, place) = blocks.of(row as u64);
                (block as usize, place as usize)
            }
            None => (row / self.chunk_rows, row % self.chunk_rows),
        }
    }

    /// Length of a row.
    pub(super) fn row(&self) -> usize {
        self.lengths.iter().product()
    }

    /// Length of a chunk in bytes.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_rows * self.row() * size_of::<f64>()
    }
}

impl Schema {
    /// Blocks of an ensemble; `None` for a run, and for an ensemble of an earlier version.
    pub(super) fn blocks(&self) -> Option<&Blocks> {
        self.trajectories.as_ref()?.blocks.as_ref()
    }

    /// Quantities whose arrays have other names, with these: of two names that differ by case only,
    /// the second one's.
    pub(super) fn renamed(&self) -> Vec<(String, String)> {
        let other = self.arrays.iter().filter(|series| series.name != series.stored);
        other.map(|series| (series.name.clone(), series.stored.clone())).collect()
    }

    /// Number of rows of every array: samples, or trajectories.
    pub(super) fn rows(&self) -> usize {
        self.trajectories.as_ref().map_or(self.time.grid.rows, |trajectories| trajectories.count)
    }

    /// Settle names and chunks, on a file system on which the case of a name matters or does not; an
    /// error names the parts that do not fit.
    pub(super) fn new(
        layout: &Layout,
        case_matters: &dyn Fn() -> bool,
    ) -> Result<Schema, StoreError> {
        check(layout)?;
        let mut names = ClaimedNames::new(case_matters);
        // Variables choose first, so that the names written by a user stay.
        let stored: Vec<String> =
            layout.arrays.iter().map(|array| names.claim(&array.name)).collect();
        let samples = layout.times.len();
        let time = Series {
            name: "t".to_string(),
            stored: names.claim("time"),
            description: "time of the sample".to_string(),
            attributes: layout.time_unit.iter().map(|unit| units_attribute(unit)).collect(),
            timed: true,
            axes: Vec::new(),
            grid: Grid::new(samples, Vec::new()),
        };
        let mut trajectories = layout.trajectories.clone().map(|range| Trajectories {
            stored: names.claim("trajectory"),
            first: range.start,
            count: (range.end - range.start) as usize,
            grid: Vec::new(),
            blocks: None,
            done: names.claim("done"),
        });
        let mut axes = Vec::with_capacity(layout.dimensions.len());
        for dimension in &layout.dimensions {
            axes.push(dimension.axis(&mut |name| names.claim(name)));
        }
        let place = |name: &String| {
            layout.dimensions.iter().position(|known| known.name == *name).unwrap_or(0)
        };
        if let Some(trajectories) = &mut trajectories {
            for (name, values) in &layout.grid {
                let (name, stored, length) = (name.clone(), names.claim(name), values.len());
                trajectories.grid.push(GridAxis { name, stored, length });
            }
            let shape = match &trajectories.grid[..] {
                [] => vec![trajectories.count as u64],
                grid => grid.iter().map(|axis| axis.length as u64).collect(),
            };
            let width = |array: &super::ArrayLayout| {
                let own = array.dimensions.iter().map(|name| axes[place(name)].length);
                own.product::<usize>() * if array.once { 1 } else { samples }
            };
            let widths: Vec<usize> = layout.arrays.iter().map(width).collect();
            trajectories.blocks = Some(Blocks::choose(shape, &widths));
        }
        let series = |(array, stored): (&super::ArrayLayout, String)| {
            let places: Vec<usize> = array.dimensions.iter().map(place).collect();
            let mut lengths: Vec<usize> = places.iter().map(|&axis| axes[axis].length).collect();
            let timed = !array.once;
            if timed && trajectories.is_some() {
                lengths.insert(0, samples);
            }
            let grid = match trajectories.as_ref().and_then(|all| all.blocks.as_ref()) {
                None => Grid::new(samples, lengths),
                Some(blocks) => Grid::in_blocks(blocks, lengths),
            };
            Series {
                name: array.name.clone(),
                stored,
                description: array.description.clone(),
                attributes: array.attributes.clone(),
                timed,
                axes: places,
                grid,
            }
        };
        let arrays = layout.arrays.iter().zip(stored).map(series).collect();
        let (attributes, ending, groups) = (layout.attributes.clone(), Map::new(), Vec::new());
        Ok(Schema { attributes, ending, groups, time, trajectories, arrays, axes })
    }

    /// Names of all arrays, dimensions and coordinates.
    pub(super) fn stored_names(&self) -> impl Iterator<Item = &str> {
        let outer = self
            .trajectories
            .iter()
            .flat_map(|all| all.dimensions().into_iter().chain([&*all.stored, &*all.done]));
        let arrays = [&self.time].into_iter().chain(&self.arrays).map(|series| &*series.stored);
        let labels = self.axes.iter().flat_map(|axis| {
            let labels = axis.labels.iter().map(|(_, array)| &**array);
            labels.chain([&*axis.stored])
        });
        outer.chain(arrays).chain(labels)
    }
}

impl Dimension {
    /// The dimension in a store, where `claim` gives names.
    pub(super) fn axis(&self, claim: &mut dyn FnMut(&str) -> String) -> Axis {
        let stored = claim(&self.name);
        let labels = match self.labels.as_slice() {
            [label] => vec![(label.name.clone(), stored.clone())],
            several => {
                let label = |label: &Label| {
                    (label.name.clone(), claim(&format!("{}_{}", self.name, label.name)))
                };
                several.iter().map(label).collect()
            }
        };
        Axis { stored, role: self.role, length: self.len(), labels }
    }
}

impl Layout {
    /// Blocks of an ensemble's trajectories.
    ///
    /// # Errors
    /// If parts of the layout do not fit together.
    pub(crate) fn blocks(&self) -> Result<Blocks, StoreError> {
        let schema = Schema::new(self, &|| true)?;
        Ok(schema.blocks().cloned().expect("it is the layout of an ensemble"))
    }
}

/// Check the rules of a layout.
fn check(layout: &Layout) -> Result<(), StoreError> {
    let fail = |reason: String| Err(StoreError::Mismatch { reason });
    let mut known = HashSet::new();
    for dimension in &layout.dimensions {
        if !known.insert(dimension.name.as_str()) {
            return fail(format!("two dimensions are called {}", dimension.name));
        }
        if dimension.labels.is_empty()
            || dimension.labels.iter().any(|label| label.values.len() != dimension.len())
        {
            return fail(format!("dimension {} needs labels, all of one length", dimension.name));
        }
    }
    let mut arrays = HashSet::new();
    for array in &layout.arrays {
        if !arrays.insert(array.name.as_str()) {
            return fail(format!("two arrays are called {}", array.name));
        }
        let mut own = HashSet::new();
        for dimension in &array.dimensions {
            if !known.contains(dimension.as_str()) {
                return fail(format!(
                    "{} uses dimension {dimension}, which is not declared",
                    array.name
                ));
            }
            // xarray, like most readers of labelled arrays, requires the dimensions of an array to
            // differ.
            if !own.insert(dimension) {
                return fail(format!("{} uses dimension {dimension} twice", array.name));
            }
        }
    }
    Ok(())
}
