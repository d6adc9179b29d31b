//! Flows: the state after a time as a function of the state.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::values::{NamedValues, copied};
use holonome::Settings;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
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

    /// States after the time, of the same shape as `x0`; with `derivative` a pair of them and of
    /// their derivatives M by `x0`, with one more axis of the length of the last.
    #[pyo3(signature = (x0, derivative = false))]
    fn __call__<'py>(
        this: &Bound<'py, Flow>,
        x0: &Bound<'py, PyAny>,
        derivative: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
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
        let mut states = given.as_slice()?.to_vec();
        if !derivative {
            // A few states are moved before another thread could begin.
            let released = states.len() > RELEASED;
            this.moved(py, released, |flow| flow.apply(&mut states))?;
            return Ok(PyArray1::from_vec(py, states).reshape(shape)?.into_any());
        }
        let matrices = this.moved(py, true, |flow| flow.apply_with_derivative(&mut states))?;
        let of_matrices = [&shape[..], &[this.dim]].concat();
        let x1 = PyArray1::from_vec(py, states).reshape(shape)?;
        let pair = (x1, PyArray1::from_vec(py, matrices).reshape(of_matrices)?);
        Ok(pair.into_pyobject(py)?.into_any())
    }
}

impl Flow {
    /// Result of `apply`, with the interpreter released meanwhile or not.
    fn moved<T: Send>(
        &self,
        py: Python<'_>,
        released: bool,
        mut apply: impl FnMut(&mut holonome::Flow) -> Result<T, holonome::Error> + Send,
    ) -> PyResult<T> {
        let mut applied = || {
            let mut flow = self.flow.lock().map_err(|_| None)?;
            apply(&mut flow).map_err(Some)
        };
        let applied = if released { py.detach(applied) } else { applied() };
        applied.map_err(|error| match error {
            Some(error) => raised(py, error),
            None => PyRuntimeError::new_err("this flow has panicked before"),
        })
    }
}
