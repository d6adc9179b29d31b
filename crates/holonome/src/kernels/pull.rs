//! Gauss–Newton form of feedback beside a compiled field, for fields in which its formula would be
//! long.

use super::bound::Parametric;
use super::vectors::StateVectors;
use holonome_integrate::feedback_term::{FeedbackNumbers, FeedbackTerm};
use holonome_integrate::system::Invariants;
use std::sync::Arc;

/// Feedback term with the numbers of a run.
#[derive(Clone)]
pub struct Pull {
    term: Arc<FeedbackTerm>,
    state: Arc<StateVectors>,
    /// Number of parameters of the model. F₀ of the rows that are not constraints, κ and the
    /// weights of the vectors follow them.
    first: usize,
    constraints: usize,
    targets: Vec<f64>,
    rate: f64,
    roots: Vec<f64>,
}

impl Parametric for Pull {
    fn rebind(&mut self, parameters: &[f64]) {
        let targets = &mut self.targets[self.constraints..];
        let (known, rest) = parameters[self.first..].split_at(targets.len());
        targets.copy_from_slice(known);
        self.rate = rest[0];
        self.state.vectors.spread_roots(&rest[1..], &mut self.roots);
    }
}

impl Pull {
    /// Feedback term for a model of `first` parameters; `parameters` are these and those of the
    /// term.
    pub fn new(
        invariants: &Invariants,
        state: &Arc<StateVectors>,
        first: usize,
        parameters: &[f64],
    ) -> Pull {
        let mut pull = Pull {
            term: Arc::new(FeedbackTerm::new(invariants)),
            state: Arc::clone(state),
            first,
            constraints: invariants.constraints,
            targets: vec![0.0; invariants.count],
            rate: 0.0,
            roots: vec![0.0; state.vectors.dim()],
        };
        pull.rebind(parameters);
        pull
    }

    /// Length of the scratch of [`Pull::subtract`].
    pub fn work_len(&self) -> usize {
        self.term.work_len()
    }

    /// Subtract the term from the field in `dx`; `at` are F and the nonzeros of DF.
    pub fn subtract(
        &self,
        invariants: &Invariants,
        at: (&[f64], &[f64]),
        dx: &mut [f64],
        work: &mut [f64],
    ) {
        let numbers =
            FeedbackNumbers { targets: &self.targets, rate: self.rate, roots: &self.roots };
        self.term.subtract(invariants, at, numbers, dx, work);
    }
}
