//! Errors of the library as exceptions of the package.

use crate::result::Solution;
use holonome::{Error, Simulation};
use pyo3::prelude::*;

/// Exception for an error: `holonome._errors.raised` makes it from the error's facts.
pub fn raised(py: Python<'_>, error: Error) -> PyErr {
    exception(py, &error, None)
}

/// Exception for the failure of a run in memory, with the part of the run that it leaves.
pub fn failed(py: Python<'_>, simulation: &mut Simulation, mut error: Error) -> PyErr {
    let kept = match &mut error {
        Error::Failed { kept, .. } => kept.take(),
        _ => None,
    };
    let partial = simulation.failed().zip(kept).map(|(summary, arrays)| {
        Solution::new(holonome::Solution { summary, arrays: *arrays, interpolant: None })
    });
    exception(py, &error, partial)
}

fn exception(py: Python<'_>, error: &Error, partial: Option<Solution>) -> PyErr {
    let (kind, facts) = (error.kind(), serde_json::to_string(&error.facts()));
    let message = match error {
        Error::Model { text, diagnostics } => {
            text.render(diagnostics, false).trim_end().to_string()
        }
        other => other.to_string(),
    };
    let made = py
        .import("holonome._errors")
        .and_then(|module| module.getattr("raised"))
        .and_then(|raised| raised.call1((kind, message, facts.expect("facts are JSON"), partial)));
    made.map_or_else(|error| error, |exception| PyErr::from_value(exception))
}
