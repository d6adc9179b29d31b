//! Schema of a store: a layout with every name, shape and chunk size settled, shared by the writer
//! and the reader.

use super::error::StoreError;
use super::layout::{Layout, Role};
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
    /// Sample times, a scalar array along itself.
    pub time: Series,
    /// Trajectories of an ensemble, which are its rows.
    pub trajectories: Option<Trajectories>,
    /// Stored variables, in the caller's order.
    pub arrays: Vec<Series>,
    /// Dimensions besides time.
    pub axes: Vec<Axis>,
}

/// Dimension of an ensemble's trajectories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trajectories {
    /// Name in the store.
    pub stored: String,
    /// Number of the first trajectory: a part of a larger ensemble begins later.
    pub first: u64,
    /// Number of trajectories.
    pub count: usize,
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

/// Shape and chunks of an array: chunks divide the first dimension only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// Rows of the whole array.
    pub rows: usize,
    /// Lengths of the other dimensions.
    pub lengths: Vec<usize>,
    /// Rows of a chunk.
    pub chunk_rows: usize,
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
        Grid { rows, lengths, chunk_rows }
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
    /// Number of rows of every array: samples, or trajectories.
    pub(super) fn rows(&self) -> usize {
        self.trajectories.as_ref().map_or(self.time.grid.rows, |trajectories| trajectories.count)
    }

    /// Settle names and chunks, on a file system on which the case of a name matters or does not; an
    /// error names the parts that do not fit.
    pub(super) fn new(layout: &Layout, case_matters: bool) -> Result<Schema, StoreError> {
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
            attributes: Map::new(),
            timed: true,
            axes: Vec::new(),
            grid: Grid::new(samples, Vec::new()),
        };
        let trajectories = layout.trajectories.clone().map(|range| Trajectories {
            stored: names.claim("trajectory"),
            first: range.start,
            count: (range.end - range.start) as usize,
        });
        let mut axes = Vec::with_capacity(layout.dimensions.len());
        for dimension in &layout.dimensions {
            let own = names.claim(&dimension.name);
            let labels = match dimension.labels.as_slice() {
                [label] => vec![(label.name.clone(), own.clone())],
                several => {
                    let claim = |label: &super::Label| {
                        (
                            label.name.clone(),
                            names.claim(&format!("{}_{}", dimension.name, label.name)),
                        )
                    };
                    several.iter().map(claim).collect()
                }
            };
            axes.push(Axis { stored: own, role: dimension.role, length: dimension.len(), labels });
        }
        let place = |name: &String| {
            layout.dimensions.iter().position(|known| known.name == *name).unwrap_or(0)
        };
        let series = |(array, stored): (&super::ArrayLayout, String)| {
            let places: Vec<usize> = array.dimensions.iter().map(place).collect();
            let mut lengths: Vec<usize> = places.iter().map(|&axis| axes[axis].length).collect();
            let timed = !array.once;
            let rows = match &trajectories {
                None => samples,
                Some(trajectories) => {
                    if timed {
                        lengths.insert(0, samples);
                    }
                    trajectories.count
                }
            };
            Series {
                name: array.name.clone(),
                stored,
                description: array.description.clone(),
                attributes: array.attributes.clone(),
                timed,
                axes: places,
                grid: Grid::new(rows, lengths),
            }
        };
        let arrays = layout.arrays.iter().zip(stored).map(series).collect();
        let (attributes, ending) = (layout.attributes.clone(), Map::new());
        Ok(Schema { attributes, ending, time, trajectories, arrays, axes })
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
