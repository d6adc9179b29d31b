//! Cost of a run: evaluations, solves and rejected steps.

use serde::{Deserialize, Serialize};

/// Evaluations and solves so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Evaluations of the complete vector field; rejected steps, dense output and the choice of the
    /// first step count.
    pub field: u64,
    /// Evaluations of forces H_q.
    pub gradient: u64,
    /// Evaluations of second derivatives of H, or of the derivatives of a field, in Newton matrices.
    pub hessian: u64,
    /// Evaluations of F by a treatment; monitoring does not count.
    pub invariants: u64,
    /// Evaluations of DF by a treatment.
    pub jacobian: u64,
    /// Linear systems solved.
    pub linear_solves: u64,
    /// Newton iterations of projections.
    pub newton_iterations: u64,
    /// Rejected steps.
    pub rejected: u64,
    /// Steps that were handed over to another method, with its evaluations above.
    #[serde(default)]
    pub handed_over: u64,
}

impl Cost {
    /// Add another cost.
    pub fn add(&mut self, cost: &Cost) {
        let Cost {
            field,
            gradient,
            hessian,
            invariants,
            jacobian,
            linear_solves,
            newton_iterations,
            rejected,
            handed_over,
        } = cost;
        self.field += field;
        self.gradient += gradient;
        self.hessian += hessian;
        self.invariants += invariants;
        self.jacobian += jacobian;
        self.linear_solves += linear_solves;
        self.newton_iterations += newton_iterations;
        self.rejected += rejected;
        self.handed_over += handed_over;
    }

    /// Add so many corrections: each evaluates F and DF once and solves one system.
    pub fn count_corrections(&mut self, count: u64) {
        self.invariants += count;
        self.jacobian += count;
        self.linear_solves += count;
    }

    /// Add so many projections of so many iterations each.
    pub fn count_projections(&mut self, count: u64, iterations: u64) {
        self.jacobian += count;
        self.invariants += count * (1 + iterations);
        self.newton_iterations += count * iterations;
        self.linear_solves += count * iterations;
    }
}
