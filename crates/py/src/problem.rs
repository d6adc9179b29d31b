//! Models: their text, their values, what is derived of them.

use crate::errors::raised;
use crate::options::{Options, tries_values};
use crate::simulation::Simulation;
use crate::values::{NamedValues, copied};
use holonome::check::Report;
use holonome::first_integrals::FirstIntegrals;
use holonome::model::elaborate::model::Family;
use holonome::model::syntax::diagnostic::Severity;
use holonome::{Control, Error, Settings, prepare, prepare_settable};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A parameter or a variable: its name, its kind, its shape with family indices first, and its
/// numbers, flat.
type Value = (String, &'static str, Vec<usize>, Vec<f64>);

/// Texts in place of values.
type Formulas = Vec<(String, String)>;

/// A checked model.
#[pyclass(frozen, module = "holonome._holonome")]
pub struct Problem {
    pub problem: holonome::Problem,
    /// Why it cannot run as it is, if its start is off the constraint set: other values may be set,
    /// or it may be projected.
    pub off_set: Option<String>,
}

#[pymethods]
impl Problem {
    /// Check a model given by its text; `tables` are the texts of its data files, by path.
    #[staticmethod]
    fn from_text(
        py: Python<'_>,
        name: &str,
        text: &str,
        tables: BTreeMap<String, String>,
        formulas: Formulas,
        numbers: NamedValues<'_>,
    ) -> PyResult<Problem> {
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..Settings::default() };
        let read =
            |settings: &Settings| holonome::Problem::from_text(name, text, &tables, settings);
        py.detach(|| Problem::read(settings, read)).map_err(|error| raised(py, error))
    }

    /// Read and check a model file.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        formulas: Formulas,
        numbers: NamedValues<'_>,
    ) -> PyResult<Problem> {
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..Settings::default() };
        let read = |settings: &Settings| holonome::Problem::load(&path, settings);
        py.detach(|| Problem::read(settings, read)).map_err(|error| raised(py, error))
    }

    /// Name of the model.
    #[getter]
    fn name(&self) -> &str {
        &self.problem.name
    }

    /// Text of the model.
    #[getter]
    fn text(&self) -> &str {
        self.problem.source.text()
    }

    /// Texts of the model's tables and included files, by path.
    #[getter]
    fn tables(&self) -> BTreeMap<String, String> {
        self.problem.tables.clone()
    }

    /// Sizes, which `set` takes as parameters.
    #[getter]
    fn sizes(&self) -> Vec<(String, i64)> {
        self.problem.model.sizes.clone()
    }

    /// Texts that were set in place of values.
    #[getter]
    fn formulas(&self) -> Formulas {
        self.problem.settings.set.clone()
    }

    /// Numbers that were set in place of values, flat.
    #[getter]
    fn numbers(&self) -> Vec<(String, Vec<f64>)> {
        self.problem.settings.given.clone()
    }

    /// Findings on the model, in a line each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        match &self.off_set {
            Some(reason) => vec![reason.clone()],
            None => self.problem.warning_lines(),
        }
    }

    /// Number of numbers of a state.
    #[getter]
    fn dimension(&self) -> usize {
        self.problem.model.phase_dimension()
    }

    /// Names of the components of a state, in its order.
    #[getter]
    fn component_names(&self) -> Vec<String> {
        let mut names = self.problem.model.component_names();
        names.truncate(self.dimension());
        names
    }

    /// The parameters, then the variables.
    #[getter]
    fn values(&self) -> Vec<Value> {
        let model = &self.problem.model;
        let value = |family: &Family, kind, numbers: &[f64]| {
            let bounds = family.bounds.iter().map(|(low, high)| (high - low + 1).max(0) as usize);
            let shape = bounds.chain(family.shape.dimensions()).collect();
            (family.name.clone(), kind, shape, numbers.to_vec())
        };
        let of = |first: usize, family: &Family| first..first + family.len();
        let parameters = model.parameters.iter().map(|parameter| {
            let numbers = &model.parameter_values[of(parameter.first, &parameter.family)];
            value(&parameter.family, "parameter", numbers)
        });
        let variables = model.phase_variables().map(|variable| {
            let numbers = &model.initial[of(variable.first, &variable.family)];
            value(&variable.family, "variable", numbers)
        });
        parameters.chain(variables).collect()
    }

    /// What a name selects of a parameter or variable, of one of its members (`r[2]`) or components
    /// (`r[2].x`): the name of the whole, the place of the first number in it, and how many they
    /// are. `None` if there is no such.
    fn selected(&self, name: &str) -> Option<(String, usize, usize)> {
        let model = &self.problem.model;
        let end = name.find(['[', '.']).unwrap_or(name.len());
        let (base, selection) = (name[..end].trim(), &name[end..]);
        let parameters = model.parameters.iter().map(|parameter| &parameter.family);
        let mut families =
            parameters.chain(model.phase_variables().map(|variable| &variable.family));
        let family = families.find(|family| family.name == base)?;
        let range = family.selected(selection)?;
        Some((base.to_string(), range.start, range.len()))
    }

    /// Report of the engine on the model: as text, as long text, and as JSON.
    fn check(&self, py: Python<'_>) -> PyResult<(String, String, String)> {
        if self.off_set.is_some() {
            self.reread(&self.problem.settings).map_err(|error| raised(py, error))?;
        }
        Ok(py.detach(|| {
            let report = Report::new(&self.problem);
            let json = serde_json::to_string(&report).expect("reports are JSON");
            (report.to_text(), report.to_long_text(), json)
        }))
    }

    /// First integrals that the model does not state: as text, and as JSON.
    fn integrals(&self, py: Python<'_>, degree: Option<usize>) -> PyResult<(String, String)> {
        let found = py.detach(|| FirstIntegrals::search(&self.problem, degree));
        let found = found.map_err(|error| raised(py, error))?;
        Ok((found.to_text(), serde_json::to_string(&found).expect("results are JSON")))
    }

    /// Compile the model for runs with several values of these names.
    fn compile_settable(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        formulas: Formulas,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Option<Simulation>> {
        let Options { run, settings, tries } = Options::new(options)?;
        let completed = run.clone().completed(&self.problem.model);
        let method = completed.map_err(|error| raised(py, error))?.method;
        if tries || tries_values(&method) || run.out.is_some() || self.off_set.is_some() {
            return Ok(None);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let problem = self.with_settings(Settings { set: formulas, ..settings });
        let made = py.detach(|| prepare_settable(&problem, run, &names));
        // What the values decide is compiled for them; its errors are those to be told.
        Ok(made.ok().map(Simulation::new))
    }

    /// Compile the model for runs with these values.
    fn compile(
        &self,
        py: Python<'_>,
        formulas: Formulas,
        numbers: NamedValues<'_>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Simulation> {
        let Options { run, settings, .. } = Options::new(options)?;
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..settings };
        let made = py.detach(|| prepare(self.reread(&settings)?, run));
        made.map(Simulation::new).map_err(|error| raised(py, error))
    }

    /// Compare methods, given by options without a method: as JSON; `None` if it was interrupted
    /// before a run was done.
    #[allow(clippy::too_many_arguments)] // the options of a comparison
    fn compare(
        &self,
        py: Python<'_>,
        methods: Vec<String>,
        steps: Vec<f64>,
        rtol: Vec<f64>,
        atol: Vec<f64>,
        budgets: Vec<u64>,
        formulas: Formulas,
        numbers: NamedValues<'_>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Option<String>> {
        let Options { run, settings, .. } = Options::new(options)?;
        let settings = Settings { set: formulas, given: copied(&numbers)?, ..settings };
        let parsed = methods.iter().map(|name| name.parse()).collect::<Result<_, _>>();
        let methods = parsed.map_err(|error| raised(py, holonome::Error::Method(error)))?;
        let options = holonome::CompareOptions { methods, steps, rtol, atol, budgets, run };
        let watch = std::sync::Mutex::new(crate::watch::Watch::new(None));
        let look = || {
            let mut watch = watch.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            watch.look(|| ())
        };
        let made = py.detach(|| {
            let problem = self.reread(&settings)?;
            holonome::compare::compare(&problem, &options, &|_| match look() {
                Control::Stop => Control::Stop,
                other => other,
            })
        });
        if let Some(error) = watch.into_inner().ok().and_then(|watch| watch.raised) {
            return Err(error);
        }
        let comparison = made.map_err(|error| raised(py, error))?;
        Ok(comparison.map(|made| serde_json::to_string(&made).expect("results are JSON")))
    }
}

impl Problem {
    /// Read a model. A start off the constraint set is refused when the model is to run.
    fn read(
        settings: Settings,
        read: impl Fn(&Settings) -> Result<holonome::Problem, Error>,
    ) -> Result<Problem, Error> {
        let error = match read(&settings) {
            Ok(problem) => return Ok(Problem { problem, off_set: None }),
            Err(error) => error,
        };
        let anyhow = read(&Settings { start_off_set: true, ..settings.clone() });
        match (anyhow, &error) {
            (Ok(problem), Error::Model { diagnostics, .. }) => {
                let found = diagnostics.iter().find(|found| found.severity == Severity::Error);
                let help = found.and_then(|found| found.help.as_deref());
                let text = found.map(|found| found.message.clone()).unwrap_or_default();
                let off_set = help.map_or(text.clone(), |help| format!("{text}; {help}"));
                let problem = holonome::Problem { settings, ..problem };
                Ok(Problem { problem, off_set: Some(off_set) })
            }
            _ => Err(error),
        }
    }

    /// The problem with other settings, which were not read yet.
    pub fn with_settings(&self, settings: Settings) -> holonome::Problem {
        holonome::Problem { settings, ..self.problem.clone() }
    }

    /// The problem read once more, with other settings.
    pub fn reread(&self, settings: &Settings) -> Result<holonome::Problem, holonome::Error> {
        let holonome::Problem { name, source, tables, .. } = &self.problem;
        holonome::Problem::from_text(name, source.text(), tables, settings)
    }
}
