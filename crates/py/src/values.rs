//! Values that cross the border: arrays of numbers, text with constant formulas.

use numpy::AllowTypeChange;
use numpy::{PyArrayLike1, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Numbers of one value, flat.
pub type Numbers<'py> = PyReadonlyArray1<'py, f64>;

/// Named values, flat.
pub type NamedValues<'py> = Vec<(String, PyArrayLike1<'py, f64, AllowTypeChange>)>;

/// Copies of named values.
pub fn copied(values: &NamedValues<'_>) -> PyResult<Vec<(String, Vec<f64>)>> {
    let copy = |(name, numbers): &(String, PyArrayLike1<'_, f64, AllowTypeChange>)| {
        Ok((name.clone(), numbers.as_slice()?.to_vec()))
    };
    values.iter().map(copy).collect()
}

/// Number that is given as one, or as a constant formula: `"2*pi"`.
pub fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number);
    }
    match value.extract::<String>() {
        Ok(text) => holonome::constant(&text).map_err(|error| {
            crate::errors::raised(value.py(), holonome::Error::option(format!("{name}: {error}")))
        }),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{name} is a number or a constant formula, not {}",
            value.get_type().name()?
        ))),
    }
}

/// Description of memory that numpy takes as an array without copying it, read-only; `owner` of the
/// memory lives as long as the array.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Memory {
    owner: Arc<dyn AsRef<[f64]> + Send + Sync>,
    shape: Vec<usize>,
}

impl Memory {
    /// Memory of these numbers.
    pub fn new(owner: Arc<dyn AsRef<[f64]> + Send + Sync>, shape: Vec<usize>) -> Memory {
        Memory { owner, shape }
    }
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let numbers: &[f64] = (*self.owner).as_ref();
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface
            .set_item("typestr", if cfg!(target_endian = "little") { "<f8" } else { ">f8" })?;
        interface.set_item("shape", pyo3::types::PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (numbers.as_ptr() as usize, true))?;
        Ok(interface)
    }
}
