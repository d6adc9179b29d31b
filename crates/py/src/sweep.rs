//! Ensembles.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::result::{Described, described};
use crate::values::{Memory, NamedValues, copied};
use crate::watch::Watch;
use holonome::{Settings, SweepOptions, SweepSolution, prepare_sweep};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Result of an ensemble in memory.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Sweep {
    solution: Arc<SweepSolution>,
}

/// The numbers of one array, or the times.
struct Part {
    solution: Arc<SweepSolution>,
    name: Option<String>,
}

impl AsRef<[f64]> for Part {
    fn as_ref(&self) -> &[f64] {
        match &self.name {
            None => self.solution.arrays.times(),
            Some(name) => self.solution.arrays[name].values(),
        }
    }
}

#[pymethods]
impl Sweep {
    /// Compute an ensemble in memory. Returns the result, and the exception that stopped it before,
    /// if one did.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)] // the options of an ensemble
    fn solve(
        py: Python<'_>,
        problem: &Problem,
        formulas: Vec<(String, String)>,
        numbers: NamedValues<'_>,
        trajectories: u64,
        vary: Vec<(String, String)>,
        each: NamedValues<'_>,
        options: &Bound<'_, PyDict>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Sweep, Option<PyErr>)> {
        let Options { settings, run, .. } = Options::new(options)?;
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..settings };
        let each = copied(&each)?.into_iter().map(|(name, list)| (name, list.into())).collect();
        let sweep = SweepOptions { trajectories, vary, each, ..SweepOptions::default() };
        let mut watch = Watch::new(progress);
        let solved = py.detach(|| {
            let problem = problem.with_settings(settings);
            prepare_sweep(&problem, run, sweep)?.solve_while(&mut |progress| {
                watch.look(|| (progress.done, progress.of, progress.failed))
            })
        });
        let solution = solved.map_err(|error| raised(py, error))?;
        Ok((Sweep { solution: Arc::new(solution) }, watch.raised))
    }

    /// Names of the arrays.
    fn names(&self) -> Vec<String> {
        self.solution.arrays.names().map(str::to_string).collect()
    }

    /// Times of the samples.
    fn times(&self) -> Memory {
        let part = Part { solution: Arc::clone(&self.solution), name: None };
        Memory::new(Arc::new(part), vec![self.solution.arrays.times().len()])
    }

    /// Memory of an array; `None` if there is none of this name.
    fn array(&self, name: String) -> Option<Memory> {
        let shape = self.solution.arrays.get(&name)?.shape().to_vec();
        let part = Part { solution: Arc::clone(&self.solution), name: Some(name) };
        Some(Memory::new(Arc::new(part), shape))
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
}
