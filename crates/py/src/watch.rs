//! Watching what computes without the interpreter: signals, and a callback for progress.

use holonome::Control;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Interval at which signals are looked for: Ctrl-C acts within a tenth of a second.
const INTERVAL: Duration = Duration::from_millis(40);

/// Watch of a computation: takes the interpreter back now and then.
pub struct Watch {
    progress: Option<Py<PyAny>>,
    last: Instant,
    /// Exception that stopped the computation.
    pub raised: Option<PyErr>,
}

impl Watch {
    /// Watch that passes progress on to a callable, if there is one.
    pub fn new(progress: Option<Py<PyAny>>) -> Watch {
        Watch { progress, last: Instant::now(), raised: None }
    }

    /// Look for signals, and show `progress` where that is wanted: the arguments of the callable.
    pub fn look<'a, A>(&mut self, progress: impl FnOnce() -> A) -> Control
    where
        A: for<'py> pyo3::call::PyCallArgs<'py> + 'a,
    {
        if self.raised.is_some() {
            return Control::Stop;
        }
        if self.last.elapsed() < INTERVAL {
            return Control::Continue;
        }
        self.last = Instant::now();
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            if let Some(callable) = &self.progress {
                callable.bind(py).call1(progress())?;
            }
            Ok(())
        });
        self.raised = outcome.err();
        if self.raised.is_some() { Control::Stop } else { Control::Continue }
    }

    /// Show the progress at the end, unless something has stopped the computation before.
    pub fn end<'a, A>(&mut self, py: Python<'_>, progress: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py> + 'a,
    {
        if let (Some(callable), None) = (&self.progress, &self.raised) {
            self.raised = callable.bind(py).call1(progress).err();
        }
    }
}
