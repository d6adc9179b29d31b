//! Options of runs from keyword arguments.

use crate::errors::raised;
use crate::values::number;
use holonome::method::Method;
use holonome::{
    Error, Gains, Metric, PenaltyStrength, RunOptions, Settings, Singular, StepSize, Thermostat,
    left_to_model, until_event,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Names of all options.
pub const NAMES: [&str; 36] = [
    "method",
    "step",
    "rtol",
    "atol",
    "max_step",
    "max_steps",
    "metric",
    "start",
    "until",
    "until_event",
    "every",
    "samples",
    "at",
    "record",
    "gain",
    "reference",
    "projection_tolerance",
    "newton_tolerance",
    "penalty",
    "penalty_tolerance",
    "slow_manifold",
    "beta",
    "thermostat",
    "friction",
    "inverse_temperature",
    "fixman",
    "allow_unstable",
    "landing",
    "singular",
    "error",
    "interpolant",
    "out",
    "seed",
    "project_initial",
    "allow_unverified",
    "stiff",
];

/// Options of a run, and those that change the model.
pub struct Options {
    /// Options of the run.
    pub run: RunOptions,
    /// Options of the model, without values.
    pub settings: Settings,
    /// True if a decision is made by trying the values out, so that it is theirs alone.
    pub tries: bool,
}

impl Options {
    /// Options that a dictionary holds; `None` stands for the default.
    pub fn new(given: &Bound<'_, PyDict>) -> PyResult<Options> {
        let (mut run, mut settings) = (RunOptions::default(), Settings::default());
        let (mut until, mut given_names) = (None, Vec::new());
        let (mut start, mut step, mut rtol, mut atol) = (None, None, None, 0.0);
        for (key, value) in given {
            if value.is_none() {
                continue;
            }
            let key: String = key.extract()?;
            let (py, value) = (given.py(), &value);
            given_names.push(key.clone());
            let float = || number(&key, value);
            let mistake = |error: Error| raised(py, error);
            match key.as_str() {
                "method" => {
                    let name: String = value.extract()?;
                    run.method = name.parse().map_err(|error| mistake(Error::from(error)))?;
                }
                "step" => step = Some(float()?),
                "rtol" => rtol = Some(float()?),
                "atol" => atol = float()?,
                "max_step" => run.max_step = Some(float()?),
                "max_steps" => run.max_steps = Some(value.extract()?),
                "metric" => run.metric = metric(value)?,
                "start" => start = Some(float()?),
                "until" => until = Some(float()?),
                "until_event" => {
                    let text: String = value.extract()?;
                    run.until_event = Some(until_event(&text).map_err(mistake)?);
                }
                "every" => run.every = Some(float()?),
                "samples" => run.samples = Some(value.extract()?),
                "at" => run.at = Some(value.extract()?),
                "record" => run.record = Some(value.extract()?),
                "gain" => run.gain = Some(gains(value)?),
                "reference" => {
                    run.reference = Some(value.extract()?);
                    // With targets from elsewhere, the start need not meet the constraints.
                    settings.start_off_set = true;
                }
                "projection_tolerance" => run.projection_tolerance = Some(float()?),
                "newton_tolerance" => run.newton_tolerance = Some(float()?),
                "penalty" => {
                    run.penalty = Some(match value.cast::<PyString>() {
                        Ok(text) => text.extract::<String>()?.parse().map_err(mistake)?,
                        Err(_) => PenaltyStrength::Omega(float()?),
                    })
                }
                "penalty_tolerance" => run.penalty_tolerance = Some(float()?),
                "slow_manifold" => run.slow_manifold = Some(value.extract()?),
                "beta" => run.beta = Some(float()?),
                "thermostat" => run.thermostat = Some(thermostat(value)?),
                "friction" => run.friction = Some(float()?),
                "inverse_temperature" => run.inverse_temperature = Some(float()?),
                "fixman" => run.fixman = Some(value.extract()?),
                "allow_unstable" => run.allow_unstable = value.extract()?,
                "landing" => run.landing = value.extract()?,
                "singular" => run.singular = singular(value)?,
                "error" => run.error = value.extract()?,
                "interpolant" => run.interpolant = value.extract()?,
                "out" => run.out = Some(value.extract()?),
                "seed" => settings.seed = value.extract()?,
                "project_initial" => settings.project_initial = value.extract()?,
                "allow_unverified" => settings.allow_unverified = value.extract()?,
                "stiff" => settings.stiff = Some(value.extract()?),
                _ => return Err(PyTypeError::new_err(format!("there is no option {key}"))),
            }
        }
        run.step = match (step, rtol) {
            (Some(h), None) => StepSize::Fixed(h),
            (Some(_), Some(_)) => {
                let error = Error::option(
                    "step and rtol exclude each other: equal steps have no tolerance",
                );
                return Err(raised(given.py(), error));
            }
            (None, rtol) => {
                let StepSize::Adaptive { rtol: default, .. } = StepSize::default() else {
                    unreachable!("the default steps are adaptive")
                };
                StepSize::Adaptive { rtol: rtol.unwrap_or(default), atol }
            }
        };
        settings.span = Some((start, until));
        run.until = until.unwrap_or(run.until);
        run.open = left_to_model(&given_names.iter().map(String::as_str).collect::<Vec<_>>());
        let tries = run.penalty.is_some()
            || run.penalty_tolerance.is_some()
            || run.reference.is_some()
            || settings.project_initial
            || tries_values(&run.method);
        Ok(Options { run, settings, tries })
    }
}

/// True if a method decides by trying the values of a model out.
pub fn tries_values(method: &Method) -> bool {
    method.to_string().starts_with("feedback")
}

fn metric(value: &Bound<'_, PyAny>) -> PyResult<Metric> {
    match value.extract::<String>()?.as_str() {
        "error" => Ok(Metric::Error),
        "euclidean" => Ok(Metric::Euclidean),
        other => Err(raised(
            value.py(),
            Error::option(format!("metric '{other}': write 'error' or 'euclidean'")),
        )),
    }
}

fn singular(value: &Bound<'_, PyAny>) -> PyResult<Singular> {
    let parsed = value.extract::<String>()?.parse();
    parsed.map_err(|reason: String| raised(value.py(), Error::option(reason)))
}

fn thermostat(value: &Bound<'_, PyAny>) -> PyResult<Thermostat> {
    match value.extract::<String>()?.as_str() {
        "gla" => Ok(Thermostat::Gla),
        other => {
            Err(raised(value.py(), Error::option(format!("thermostat '{other}': write 'gla'"))))
        }
    }
}

/// Gains: a number, a text as on the command line, numbers by name, or a matrix, flat.
fn gains(value: &Bound<'_, PyAny>) -> PyResult<Gains> {
    if let Ok(gain) = value.extract::<f64>() {
        return Ok(Gains::Uniform(gain));
    }
    if let Ok(text) = value.extract::<String>() {
        return text.parse().map_err(|error| raised(value.py(), error));
    }
    if let Ok(named) = value.cast::<PyDict>() {
        let pairs = named.iter().map(|(name, gain)| Ok((name.extract()?, gain.extract()?)));
        return pairs.collect::<PyResult<_>>().map(Gains::Named);
    }
    value.extract::<Vec<f64>>().map(Gains::Matrix)
}
