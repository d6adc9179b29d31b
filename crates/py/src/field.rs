//! Fields: the right-hand side x' as a function.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::values::{NamedValues, copied};
use holonome::{Settings, VectorField};
use numpy::ndarray::{Array2, Ix2};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLikeDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};

/// The right-hand side of a model, compiled.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Field {
    field: Mutex<VectorField>,
    dim: usize,
}

#[pymethods]
impl Field {
    /// Compile the field of a model with these values.
    #[new]
    fn new(
        py: Python<'_>,
        problem: &Problem,
        formulas: Vec<(String, String)>,
        numbers: NamedValues<'_>,
    ) -> PyResult<Field> {
        let none = PyDict::new(py);
        let Options { settings, .. } = Options::new(&none)?;
        // Rates of change do not depend on the start.
        let given = copied(&numbers)?;
        let settings = Settings { set: formulas, given, start_off_set: true, ..settings };
        let made = py.detach(|| VectorField::new(problem.reread(&settings)?));
        let field = made.map_err(|error| raised(py, error))?;
        let dim = field.dim();
        Ok(Field { field: Mutex::new(field), dim })
    }

    /// The rate of change of a state at a time. Of an array of shape (n, k) the columns are states.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        t: f64,
        x: PyArrayLikeDyn<'py, f64, AllowTypeChange>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (n, x) = (self.dim, x.as_array());
        if !matches!(x.ndim(), 1 | 2) || x.shape()[0] != n {
            let error = format!("a state has {n} numbers, and this has the shape {:?}", x.shape());
            return Err(raised(py, holonome::Error::option(error)));
        }
        if let Ok(states) = x.view().into_dimensionality::<Ix2>() {
            let mut rates = Array2::zeros(states.raw_dim());
            let mut field = self.field.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut state, mut rate) = (vec![0.0; n], vec![0.0; n]);
            for (from, mut to) in states.columns().into_iter().zip(rates.columns_mut()) {
                state.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                field.put(t, &state, &mut rate);
                to.iter_mut().zip(&rate).for_each(|(to, from)| *to = *from);
            }
            return Ok(PyArray2::from_owned_array(py, rates).into_any());
        }
        let mut dx = vec![0.0; n];
        let state = x.iter().copied().collect::<Vec<f64>>();
        self.field.lock().unwrap_or_else(PoisonError::into_inner).put(t, &state, &mut dx);
        Ok(PyArray1::from_vec(py, dx).into_any())
    }
}
