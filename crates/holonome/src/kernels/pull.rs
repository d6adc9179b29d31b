//! Term of feedback beside a compiled field, for fields in which its formula would be long: the
//! Gauss–Newton form, or DFᵀ K ΔF with gains K for the groups of invariants.

use super::bound::Parametric;
use super::vectors::StateVectors;
use crate::gain;
use holonome_integrate::feedback_term::{FeedbackNumbers, FeedbackTerm};
use holonome_integrate::system::Invariants;
use holonome_model::treatment::InvariantGroup;
use std::sync::Arc;

/// Feedback term with the numbers of a run.
#[derive(Clone)]
pub struct Pull {
    /// Number of parameters of the model. F₀ of the rows that are not constraints, and the numbers
    /// of the form follow them.
    first: usize,
    constraints: usize,
    targets: Vec<f64>,
    form: PullForm,
}

#[derive(Clone)]
enum PullForm {
    /// κ and the weights of the vectors are its numbers.
    GaussNewton { term: Arc<FeedbackTerm>, state: Arc<StateVectors>, rate: f64, roots: Vec<f64> },
    /// One gain for each group is its numbers; here those of the rows.
    Gains { groups: Arc<[InvariantGroup]>, rows: Vec<f64> },
}

impl Parametric for Pull {
    fn rebind(&mut self, parameters: &[f64]) {
        let targets = &mut self.targets[self.constraints..];
        let (known, rest) = parameters[self.first..].split_at(targets.len());
        targets.copy_from_slice(known);
        match &mut self.form {
            PullForm::GaussNewton { state, rate, roots, .. } => {
                *rate = rest[0];
                state.vectors.spread_roots(&rest[1..], roots);
            }
            PullForm::Gains { groups, rows } => *rows = gain::by_row(rest, groups, rows.len()),
        }
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
        let form = PullForm::GaussNewton {
            term: Arc::new(FeedbackTerm::new(invariants)),
            state: Arc::clone(state),
            rate: 0.0,
            roots: vec![0.0; state.vectors.dim()],
        };
        Pull::of(form, invariants, first, parameters)
    }

    /// Feedback term with a gain for each of these groups, which follow F₀ in `parameters`.
    pub fn of_gains(
        invariants: &Invariants,
        groups: &[InvariantGroup],
        first: usize,
        parameters: &[f64],
    ) -> Pull {
        let form = PullForm::Gains { groups: groups.into(), rows: vec![0.0; invariants.count] };
        Pull::of(form, invariants, first, parameters)
    }

    fn of(form: PullForm, invariants: &Invariants, first: usize, parameters: &[f64]) -> Pull {
        let (constraints, targets) = (invariants.constraints, vec![0.0; invariants.count]);
        let mut pull = Pull { first, constraints, targets, form };
        pull.rebind(parameters);
        pull
    }

    /// Length of the scratch of [`Pull::subtract`].
    pub fn work_len(&self) -> usize {
        match &self.form {
            PullForm::GaussNewton { term, .. } => term.work_len(),
            PullForm::Gains { .. } => 0,
        }
    }

    /// Subtract the term from the field in `dx`; `at` are F and the nonzeros of DF.
    pub fn subtract(
        &self,
        invariants: &Invariants,
        at: (&[f64], &[f64]),
        dx: &mut [f64],
        work: &mut [f64],
    ) {
        match &self.form {
            PullForm::GaussNewton { term, rate, roots, .. } => {
                let numbers = FeedbackNumbers { targets: &self.targets, rate: *rate, roots };
                term.subtract(invariants, at, numbers, dx, work);
            }
            PullForm::Gains { rows, .. } => {
                let (values, jacobian) = at;
                let pushes = values.iter().zip(&self.targets).zip(rows);
                for (row, ((value, target), gain)) in invariants.pattern.rows().zip(pushes) {
                    // A row that is only monitored has no entries, or none that count.
                    if *gain != 0.0 {
                        let push = gain * (value - target);
                        row.entries().for_each(|(at, column)| dx[column] -= push * jacobian[at]);
                    }
                }
            }
        }
    }
}
