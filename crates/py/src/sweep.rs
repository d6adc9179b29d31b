//! Ensembles.

use crate::errors::raised;
use crate::options::Options;
use crate::problem::Problem;
use crate::result::{Arrayed, Described, array, described, names, times};
use crate::values::{Memory, NamedValues, copied};
use crate::watch::Watch;
use holonome::{
    Arrays, Control, Error, RunOptions, Settings, SweepOptions, SweepProgress, SweepSolution,
    prepare_sweep,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// An ensemble that is to be compiled.
struct Prepared {
    problem: holonome::Problem,
    run: RunOptions,
    sweep: SweepOptions,
}

impl Prepared {
    /// Ensemble of a model with these values. Those of trajectories are their number, formulas of
    /// it, numbers for each, and numbers of a grid.
    fn new(
        problem: &Problem,
        formulas: Vec<(String, String)>,
        numbers: NamedValues<'_>,
        values: (u64, Vec<(String, String)>, NamedValues<'_>, NamedValues<'_>),
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Prepared> {
        let Options { settings, run, .. } = Options::new(options)?;
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..settings };
        let (trajectories, vary, each, over) = values;
        let list = |values: &NamedValues<'_>| -> PyResult<Vec<(String, Arc<[f64]>)>> {
            Ok(copied(values)?.into_iter().map(|(name, list)| (name, list.into())).collect())
        };
        let (each, over) = (list(&each)?, list(&over)?);
        let sweep = SweepOptions { trajectories, vary, each, over, ..SweepOptions::default() };
        Ok(Prepared { problem: problem.with_settings(settings), run, sweep })
    }

    fn sweep(self) -> Result<holonome::Sweep, Error> {
        prepare_sweep(&self.problem, self.run, self.sweep)
    }
}

/// Progress of an ensemble as arguments: trajectories that are done, all, and those that failed.
type Shown = (u64, u64, u64);

/// Show the progress of an ensemble, and keep it for the end.
fn shown(watch: &mut Watch, progress: &SweepProgress, last: &mut Option<Shown>) -> Control {
    let now = (progress.done, progress.of, progress.failed);
    *last = Some(now);
    watch.look(|| now)
}

/// An ensemble in a folder, which any number of processes compute block by block.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct StoredSweep {
    sweep: holonome::Sweep,
    path: PathBuf,
}

#[pymethods]
impl StoredSweep {
    /// Create the ensemble in the folder `out` of the options, or open it there.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        problem: &Problem,
        formulas: Vec<(String, String)>,
        numbers: NamedValues<'_>,
        values: (u64, Vec<(String, String)>, NamedValues<'_>, NamedValues<'_>),
        options: &Bound<'_, PyDict>,
    ) -> PyResult<StoredSweep> {
        let prepared = Prepared::new(problem, formulas, numbers, values, options)?;
        let opened = py.detach(|| {
            let mut sweep = prepared.sweep()?;
            let path = sweep.open()?.to_path_buf();
            Ok(StoredSweep { sweep, path })
        });
        opened.map_err(|error| raised(py, error))
    }

    /// Open the ensemble in a folder, from the folder alone.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<StoredSweep> {
        let opened = py.detach(|| holonome::Sweep::open_store(&path));
        opened.map(|sweep| StoredSweep { sweep, path }).map_err(|error| raised(py, error))
    }

    /// Path of the folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Number of blocks.
    #[getter]
    fn blocks(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.sweep.blocks().map_err(|error| raised(py, error))?.count())
    }

    /// Numbers of the blocks that are done.
    fn done(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let done = self.sweep.done_blocks().map_err(|error| raised(py, error))?;
        Ok(done.into_iter().collect())
    }

    /// Compute those of some blocks that are not done. Returns the exception that stopped it
    /// before, if one did.
    fn compute(
        &self,
        py: Python<'_>,
        blocks: Vec<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<PyErr>> {
        let mut watch = Watch::new(progress);
        let mut last = None;
        let computed = py.detach(|| {
            self.sweep
                .compute_blocks(blocks, &mut |progress| shown(&mut watch, progress, &mut last))
        });
        computed.map_err(|error| raised(py, error))?;
        last.into_iter().for_each(|last| watch.end(py, last));
        Ok(watch.raised)
    }

    /// End an ensemble of which all blocks are done: its summary as JSON; `None` if blocks are
    /// missing.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let ended = py.detach(|| self.sweep.finish()).map_err(|error| raised(py, error))?;
        Ok(ended.map(|summary| serde_json::to_string(&summary).expect("summaries are JSON")))
    }
}

/// Result of an ensemble in memory.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Sweep {
    solution: Arc<SweepSolution>,
}

impl Arrayed for SweepSolution {
    fn arrays(&self) -> &Arrays {
        &self.arrays
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
        values: (u64, Vec<(String, String)>, NamedValues<'_>, NamedValues<'_>),
        options: &Bound<'_, PyDict>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Sweep, Option<PyErr>)> {
        let prepared = Prepared::new(problem, formulas, numbers, values, options)?;
        let mut watch = Watch::new(progress);
        let mut last = None;
        let solved = py.detach(|| {
            prepared.sweep()?.solve_while(&mut |progress| shown(&mut watch, progress, &mut last))
        });
        let solution = solved.map_err(|error| raised(py, error))?;
        last.into_iter().for_each(|last| watch.end(py, last));
        Ok((Sweep { solution: Arc::new(solution) }, watch.raised))
    }

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
}
