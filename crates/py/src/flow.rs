//! Flows: the state after a time as a function of the state.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::values::{NamedValues, copied};
use holonome::Settings;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Mutex;

/// Number of numbers from which on the interpreter is released.
const RELEASED: usize = 4096;

/// The flow of a model by a method, compiled. Its subclass in Python knows the names of variables.
#[pyclass(frozen, subclass, module = "holonome._holonome")]
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

    /// States after the time, of the same shape as `x0`.
    fn __call__<'py>(
        this: &Bound<'py, Flow>,
        x0: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let py = this.py();
        // What is no array of numbers one after the other is made one in Python.
        let as_states = || this.call_method1("_states", (x0,))?.extract();
        let given: PyReadonlyArrayDyn<f64> = match x0.extract::<PyReadonlyArrayDyn<f64>>() {
            Ok(array) if array.is_c_contiguous() => array,
            _ => as_states()?,
        };
        let shape = given.shape().to_vec();
        let this = this.get();
        if shape.last() != Some(&this.dim) {
            let (n, shown) = (this.dim, PyTuple::new(py, &shape)?);
            let error = format!("a state has {n} numbers, and x0 has shape {shown}");
            return Err(raised(py, holonome::Error::option(error)));
        }
        let states = this.moved(py, given.as_slice()?.to_vec())?;
        PyArray1::from_vec(py, states).reshape(shape)
    }
}

impl Flow {
    /// States after the time, one after the other.
    fn moved(&self, py: Python<'_>, mut states: Vec<f64>) -> PyResult<Vec<f64>> {
        let long = states.len() > RELEASED;
        let mut apply = || {
            let mut flow = self.flow.lock().map_err(|_| None)?;
            flow.apply(&mut states).map_err(Some)
        };
        // A few states are moved before another thread could begin.
        let applied = if long { py.detach(apply) } else { apply() };
        applied.map_err(|error| match error {
            Some(error) => raised(py, error),
            None => PyRuntimeError::new_err("this flow has panicked before"),
        })?;
        Ok(states)
    }
}
