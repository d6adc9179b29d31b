//! Kernels that are compiled when they are first run.

use super::{Bound, Parametric, Quantities, WideBound};
use std::sync::{Arc, LazyLock, OnceLock};

/// Kernel with its parameters, compiled on first use, because many runs never call it. A kernel
/// that every step calls is compiled before the first step.
#[derive(Clone)]
pub struct Deferred {
    /// Kernel with the parameters of the declared one; its copies share its code.
    declared: Arc<LazyLock<Bound, Box<dyn FnOnce() -> Bound + Send>>>,
    own: OnceLock<Bound>,
    parameters: Vec<f64>,
}

impl Deferred {
    /// Kernel that `compile` makes for these parameters.
    pub fn new(
        parameters: &[f64],
        compile: impl FnOnce(&[f64]) -> Bound + Send + 'static,
    ) -> Deferred {
        let declared = parameters.to_vec();
        let compile: Box<dyn FnOnce() -> Bound + Send> = Box::new(move || compile(&declared));
        Deferred {
            declared: Arc::new(LazyLock::new(compile)),
            own: OnceLock::new(),
            parameters: parameters.to_vec(),
        }
    }

    /// Compiled kernel.
    pub fn bound(&self) -> &Bound {
        self.own.get_or_init(|| self.declared.rebound(&self.parameters))
    }
}

impl Parametric for Deferred {
    fn rebind(&mut self, parameters: &[f64]) {
        self.parameters = parameters.to_vec();
        if let Some(own) = self.own.get_mut() {
            own.rebind(parameters);
        }
    }
}

impl Quantities for Deferred {
    /// Run the kernel, with scratch of its own if it had not been compiled when its scratch was
    /// measured.
    fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        let bound = self.bound();
        match work.len() < bound.work_len() {
            true => bound.run(t, x, out, &mut vec![0.0; bound.work_len()]),
            false => bound.run(t, x, out, work),
        }
    }

    /// Length of the scratch; 0 until the kernel is compiled.
    fn work_len(&self) -> usize {
        self.own.get().map_or(0, Bound::work_len)
    }

    fn in_lanes(&self, lanes: usize) -> Option<WideBound> {
        self.bound().in_lanes(lanes)
    }
}
