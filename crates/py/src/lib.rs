//! The compiled half of the Python package `holonome`: classes that the typed layer in `python/`
//! wraps. They hold problems, simulations and results, convert values, and release the interpreter
//! while they compute; names, checks of arguments and everything that people read are in Python.

mod errors;
mod field;
mod flow;
mod options;
mod problem;
mod result;
mod simulation;
mod sweep;
mod values;
mod watch;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Run the command `holonome` with these words, the name of the program first; returns its exit
/// status.
#[pyfunction]
fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| holonome_cli::run_command(words))
}

/// Set the number of threads on which sweeps and large sums are computed, before the first of them.
#[pyfunction]
fn set_threads(py: Python<'_>, count: usize) -> PyResult<()> {
    holonome::set_threads(count).map_err(|error| errors::raised(py, error))
}

/// Names, descriptions and orders of the methods, as JSON.
#[pyfunction]
fn methods() -> String {
    let rows = holonome::method::SCHEMES.iter().map(|scheme| (scheme.name, scheme.description));
    serde_json::to_string(&rows.collect::<Vec<_>>()).expect("texts are JSON")
}

/// The compiled half of the package.
#[pymodule(gil_used = false)]
fn _holonome(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("OPTIONS", options::NAMES.to_vec())?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(methods, module)?)?;
    module.add_function(wrap_pyfunction!(result::write_report, module)?)?;
    module.add_class::<problem::Problem>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<result::Solution>()?;
    module.add_class::<result::Stored>()?;
    module.add_class::<field::Field>()?;
    module.add_class::<flow::Flow>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::StoredSweep>()?;
    Ok(())
}
