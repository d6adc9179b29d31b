//! Results: in memory, or in a folder.

use crate::errors::raised;
use crate::problem::Problem;
use crate::simulation::Simulation;
use crate::values::Memory;
use holonome::report::{Stored as Opened, report, write};
use holonome::store::{Dimension, Role, StoreError, StoredRun};
use holonome::{Arrays, Error, RunOptions, origin, prepare};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A dimension: its name, its role, and its labels by the names of indices.
type Axis = (String, &'static str, Vec<(String, Vec<i64>)>);

/// Names of the outer dimensions of an array, its other dimensions, and its description.
pub type Described = (Vec<String>, Vec<Axis>, String);

fn axis(dimension: &Dimension) -> Axis {
    let role = match dimension.role {
        Role::Index => "index",
        Role::Component => "component",
        Role::Row => "row",
        Role::Column => "column",
    };
    let labels = dimension.labels.iter().map(|label| (label.name.clone(), label.values.clone()));
    (dimension.name.clone(), role, labels.collect())
}

/// Description of an array; `None` if there is none of this name.
pub fn described(arrays: &Arrays, name: &str) -> Option<Described> {
    let array = arrays.get(name)?;
    let (inner, outer): (Vec<_>, Vec<_>) =
        array.dimensions().iter().partition(|name| arrays.dimension(name).is_some());
    let axes = inner.into_iter().filter_map(|name| arrays.dimension(name)).map(axis).collect();
    Some((outer.into_iter().cloned().collect(), axes, array.description().to_string()))
}

/// Result of a run in memory.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Solution {
    pub solution: Arc<holonome::Solution>,
}

impl Solution {
    pub fn new(solution: holonome::Solution) -> Solution {
        Solution { solution: Arc::new(solution) }
    }
}

/// A result whose arrays Python shares.
pub trait Arrayed: Send + Sync + 'static {
    /// Its arrays.
    fn arrays(&self) -> &Arrays;
}

impl Arrayed for holonome::Solution {
    fn arrays(&self) -> &Arrays {
        &self.arrays
    }
}

/// The numbers of one array of a result, or its times.
struct Part<S> {
    result: Arc<S>,
    /// `None` for the times.
    name: Option<String>,
}

impl<S: Arrayed> AsRef<[f64]> for Part<S> {
    fn as_ref(&self) -> &[f64] {
        match &self.name {
            None => self.result.arrays().times(),
            Some(name) => self.result.arrays()[name].values(),
        }
    }
}

/// Names of a result's arrays.
pub fn names(result: &impl Arrayed) -> Vec<String> {
    result.arrays().names().map(str::to_string).collect()
}

/// Memory of a result's times.
pub fn times(result: &Arc<impl Arrayed>) -> Memory {
    let shape = vec![result.arrays().times().len()];
    Memory::new(Arc::new(Part { result: Arc::clone(result), name: None }), shape)
}

/// Memory of an array of a result; `None` if there is none of this name.
pub fn array(result: &Arc<impl Arrayed>, name: String) -> Option<Memory> {
    let shape = result.arrays().get(&name)?.shape().to_vec();
    Some(Memory::new(Arc::new(Part { result: Arc::clone(result), name: Some(name) }), shape))
}

#[pymethods]
impl Solution {
    /// Names of the arrays.
    fn names(&self) -> Vec<String> {
        names(&*self.solution)
    }

    /// Times of the samples.
    fn times(&self) -> Memory {
        times(&self.solution)
    }

    /// Memory of an array; `None` if there is none of this name.
    fn array(&self, name: String) -> Option<Memory> {
        array(&self.solution, name)
    }

    /// Dimensions and description of an array; `None` if there is none of this name.
    fn described(&self, name: &str) -> Option<Described> {
        described(&self.solution.arrays, name)
    }

    /// Summary as JSON.
    fn summary(&self) -> String {
        serde_json::to_string(&self.solution.summary).expect("summaries are JSON")
    }

    /// Warnings for the user.
    fn warnings(&self) -> Vec<String> {
        self.solution.summary.warnings.clone()
    }

    /// True if the run kept its steps, so that states between the samples are known.
    fn has_interpolant(&self) -> bool {
        self.solution.interpolant.is_some()
    }

    /// The variables at some times, or with `rates` their rates of change, by name.
    fn at<'py>(
        &self,
        py: Python<'py>,
        times: Vec<f64>,
        rates: bool,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let interpolant = self.solution.interpolant.as_ref();
        let known = interpolant.ok_or_else(|| PyRuntimeError::new_err("steps were not kept"))?;
        let arrays = py.detach(|| if rates { known.rates(&times) } else { known.at(&times) });
        named(py, &arrays.map_err(|error| raised(py, error))?)
    }
}

/// Copies of all arrays by name.
fn named<'py>(py: Python<'py>, arrays: &Arrays) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let copied = |name: &str| {
        let array = &arrays[name];
        let numbers = PyArray1::from_slice(py, array.values());
        Ok((name.to_string(), numbers.reshape(array.shape().to_vec())?.into_any()))
    };
    arrays.names().map(copied).collect()
}

/// A run or an ensemble in a folder.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Stored {
    run: StoredRun,
}

#[pymethods]
impl Stored {
    /// Open the folder at `path`.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Stored> {
        match Opened::open(&path).map_err(|error| raised(py, error))? {
            Opened::Run(run) | Opened::Sweep(run) => Ok(Stored { run }),
            Opened::Comparison(_) => Err(raised(
                py,
                Error::option(format!("{} holds a comparison, not a run", path.display())),
            )),
        }
    }

    /// True if it is an ensemble.
    fn is_sweep(&self) -> bool {
        self.run.trajectories().is_some()
    }

    /// Names of the arrays.
    fn names(&self) -> Vec<String> {
        self.run.arrays().into_iter().map(|array| array.name).collect()
    }

    /// Times of the samples that are stored.
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut times = self.run.times().map_err(|error| raised(py, Error::store(error)))?;
        if !self.is_sweep() {
            times.truncate(self.run.samples());
        }
        Ok(PyArray1::from_vec(py, times))
    }

    /// Numbers of an array; `None` if there is none of this name.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let arrays = self.run.arrays();
        let known = arrays.into_iter().find(|array| array.name == name);
        let array = known.ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        let store = |error| raised(py, Error::store(error));
        let mut shape = vec![self.run.samples()];
        if self.is_sweep() && !array.once {
            shape.push(self.run.times().map_err(store)?.len());
        }
        for dimension in &array.dimensions {
            shape.push(self.run.dimension(dimension).map_err(store)?.len());
        }
        let numbers = py.detach(|| self.run.read(name)).map_err(store)?;
        Ok(PyArray1::from_vec(py, numbers).reshape(shape)?.into_any())
    }

    /// Dimensions and description of an array; `None` if there is none of this name.
    fn described(&self, py: Python<'_>, name: &str) -> PyResult<Option<Described>> {
        let Some(array) = self.run.arrays().into_iter().find(|array| array.name == name) else {
            return Ok(None);
        };
        let outer = match (self.is_sweep(), array.once) {
            (false, _) => vec!["time"],
            (true, true) => vec!["trajectory"],
            (true, false) => vec!["trajectory", "time"],
        };
        let axes = array.dimensions.iter().map(|name| Ok(axis(&self.run.dimension(name)?)));
        let axes = axes.collect::<Result<_, StoreError>>();
        let axes = axes.map_err(|error| raised(py, Error::store(error)))?;
        Ok(Some((outer.into_iter().map(str::to_string).collect(), axes, array.description)))
    }

    /// Summary as JSON.
    fn summary(&self) -> String {
        self.run.summary().to_string()
    }

    /// Attributes as JSON.
    fn attributes(&self) -> String {
        serde_json::to_string(self.run.attributes()).expect("attributes are JSON")
    }

    /// The model that was run, with its values.
    fn problem(&self, py: Python<'_>) -> PyResult<Problem> {
        let (problem, _) = origin(&self.run).map_err(|error| raised(py, error))?;
        Ok(Problem { problem, off_set: None })
    }

    /// The run once more in memory, with all of its steps.
    fn again(&self, py: Python<'_>) -> PyResult<Simulation> {
        let made = py.detach(|| {
            let (problem, options) = origin(&self.run)?;
            prepare(problem, RunOptions { interpolant: true, error: false, ..options })
        });
        made.map(Simulation::new).map_err(|error| raised(py, error))
    }

    /// Path of the folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.run.path().to_path_buf()
    }
}

/// Write the page of the run or the ensemble in the folder `run` to the file `path`.
#[pyfunction]
pub fn write_report(py: Python<'_>, run: PathBuf, path: PathBuf) -> PyResult<()> {
    let written = py.detach(|| write(&report(&[&run], false)?, &path));
    written.map_err(|error| raised(py, error))
}
