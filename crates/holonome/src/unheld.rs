//! A system without a hold on some of its invariants.

use holonome_integrate::scales::Vectors;
use holonome_integrate::system::{Invariants, System};

/// A system of which some groups of invariants are monitored and not held.
pub(crate) struct Unheld<'a> {
    system: &'a dyn System,
    invariants: Invariants,
}

impl<'a> Unheld<'a> {
    /// The system with the groups held for which `unheld`, of their number, is false.
    pub(crate) fn new(system: &'a dyn System, unheld: impl Fn(usize) -> bool) -> Unheld<'a> {
        let mut invariants = system.invariants().clone();
        for (number, group) in invariants.groups.iter_mut().enumerate() {
            group.monitored_only |= unheld(number);
        }
        Unheld { system, invariants }
    }
}

impl System for Unheld<'_> {
    fn dim(&self) -> usize {
        self.system.dim()
    }

    fn work_len(&self) -> usize {
        self.system.work_len()
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.system.field(t, x, dx, work);
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        self.system.motion(t, x, dx, work)
    }

    fn vectors(&self) -> &Vectors {
        self.system.vectors()
    }

    fn vector_name(&self, vector: usize) -> String {
        self.system.vector_name(vector)
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.system.masses(t, x, masses, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.system.invariant_values(t, x, f, work);
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.system.invariant_jacobian(t, x, values, work);
    }

    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.system.field_derivative(t, x, v, out, work);
    }
}
