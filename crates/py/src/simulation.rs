//! Compiled models, and their runs.

use crate::errors::{failed, raised};
use crate::result::Solution;
use crate::values::Numbers;
use crate::watch::Watch;
use holonome::{Progress, Summary};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// A model compiled for a method. One run at a time.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Simulation {
    simulation: Mutex<holonome::Simulation>,
}

impl Simulation {
    pub fn new(simulation: holonome::Simulation) -> Simulation {
        Simulation { simulation: Mutex::new(simulation) }
    }

    fn locked<T>(&self, act: impl FnOnce(&mut holonome::Simulation) -> PyResult<T>) -> PyResult<T> {
        match self.simulation.try_lock() {
            Ok(mut simulation) => act(&mut simulation),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => act(&mut poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("this simulation is running in another thread"))
            }
        }
    }
}

/// Arguments of the callable that shows progress: time, end, and the largest drift.
fn shown(progress: &Progress) -> (f64, f64, f64) {
    (progress.t, progress.until, progress.drift.as_ref().map_or(0.0, |(_, drift)| *drift))
}

/// The same at the end.
fn at_end(summary: &Summary) -> (f64, f64, f64) {
    let largest = summary.drift.iter().map(|drift| drift.max).fold(0.0, f64::max);
    (summary.t, summary.t, largest)
}

#[pymethods]
impl Simulation {
    /// Run to the end in memory, with other values first if there are any. Returns the result, and
    /// the exception that stopped it before, if one did.
    fn solve(
        &self,
        py: Python<'_>,
        values: Option<Vec<Numbers<'_>>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Solution, Option<PyErr>)> {
        self.locked(|simulation| {
            set(py, simulation, values)?;
            let mut watch = Watch::new(progress);
            let solved = py
                .detach(|| simulation.solve_while(&mut |progress| watch.look(|| shown(progress))));
            let solution = solved.map_err(|error| failed(py, simulation, error))?;
            watch.end(py, at_end(&solution.summary));
            Ok((Solution::new(solution), watch.raised))
        })
    }

    /// Run to the end into the run's folder. Returns its path, the summary as JSON, and the
    /// exception that stopped the run before, if one did.
    fn run(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PathBuf, String, Option<PyErr>)> {
        self.locked(|simulation| {
            let mut watch = Watch::new(progress);
            let run = py.detach(|| simulation.run(&mut |progress| watch.look(|| shown(progress))));
            let summary = run.map_err(|error| raised(py, error))?;
            watch.end(py, at_end(&summary));
            let json = serde_json::to_string(&summary).expect("summaries are JSON");
            Ok((summary.out.clone().unwrap_or_default(), json, watch.raised))
        })
    }

    /// Store a result of [`Simulation::solve`] with these values in a folder.
    fn store(
        &self,
        py: Python<'_>,
        values: Option<Vec<Numbers<'_>>>,
        solution: &Solution,
        path: PathBuf,
    ) -> PyResult<()> {
        self.locked(|simulation| {
            set(py, simulation, values)?;
            let stored = py.detach(|| simulation.store(&solution.solution, &path));
            stored.map_err(|error| raised(py, error))
        })
    }
}

fn set(
    py: Python<'_>,
    simulation: &mut holonome::Simulation,
    values: Option<Vec<Numbers<'_>>>,
) -> PyResult<()> {
    let Some(values) = values else { return Ok(()) };
    let slices = values.iter().map(|numbers| numbers.as_slice()).collect::<Result<Vec<_>, _>>()?;
    simulation.set(&slices).map_err(|error| raised(py, error))
}
