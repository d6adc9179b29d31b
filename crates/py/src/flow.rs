//! Flows: the state after a time as a function of the state.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::values::{NamedValues, copied};
use holonome::Settings;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;

/// Number of numbers from which on the interpreter is released.
const RELEASED: usize = 4096;

/// The flow of a model by a method, compiled.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Flow {
    flow: Mutex<holonome::Flow>,
    dim: usize,
    warnings: Vec<String>,
}

#[pymethods]
impl Flow {
    /// Compile the flow of a model with these values over the time of `options`.
    #[new]
    fn new(
        py: Python<'_>,
        problem: &Problem,
        formulas: Vec<(String, String)>,
        numbers: NamedValues<'_>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Flow> {
        let Options { settings, run, .. } = Options::new(options)?;
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..settings };
        let made = py.detach(|| holonome::Flow::new(&problem.reread(&settings)?, run));
        let flow = made.map_err(|error| raised(py, error))?;
        let (dim, warnings) = (flow.dim(), flow.warnings());
        Ok(Flow { flow: Mutex::new(flow), dim, warnings })
    }

    /// Number of numbers of a state.
    #[getter]
    fn dim(&self) -> usize {
        self.dim
    }

    /// Warnings about the model, the method and the options.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// States after the time, one after the other as they are given.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        states: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut states = states.as_slice()?.to_vec();
        let mut apply = || {
            let mut flow = self.flow.lock().map_err(|_| None)?;
            flow.apply(&mut states).map_err(Some)
        };
        let applied = if self.dim > RELEASED { py.detach(apply) } else { apply() };
        applied.map_err(|error| match error {
            Some(error) => raised(py, error),
            None => PyRuntimeError::new_err("this flow has panicked before"),
        })?;
        Ok(PyArray1::from_vec(py, states))
    }
}
