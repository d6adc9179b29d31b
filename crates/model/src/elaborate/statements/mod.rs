//! Elaboration of statements in their order of need: declarations, then values, then formulas.

mod assemble;
mod cutoff;
mod declare;
mod families;
mod formulas;
mod initial;
mod parameters;
pub(super) mod replace;
mod symmetry;
mod tables;

use crate::elaborate::expression::Draw;
use crate::elaborate::expression::{CheckedRanges, Ex};
use crate::elaborate::model::Model;
use crate::elaborate::{Checked, Elaborator};
use crate::syntax::ast::{Name, StatementKind};
use crate::syntax::diagnostic::Severity;

/// Checked formulas of a file.
struct Formulas {
    /// Initial values of the variables with the ranges of their members, in the file's order.
    initial: Vec<Option<(CheckedRanges, Ex)>>,
    hamiltonian: Option<Ex>,
    /// Stiff term of the Hamiltonian.
    stiff: Option<Ex>,
    /// Right-hand sides of a state model: variable, ranges, expression.
    derivatives: Vec<(usize, CheckedRanges, Ex)>,
    constraints: Vec<Checked>,
    integrals: Vec<Checked>,
    observables: Vec<Checked>,
    measures: Vec<CheckedMeasure>,
}

/// A `measure` that has been checked but not lowered.
struct CheckedMeasure {
    /// Measured quantity; the constant 0 if the statistic takes no quantity.
    quantity: Checked,
    statistic: Name,
    /// Numbers after the quantity.
    numbers: Vec<Ex>,
    every: Option<Ex>,
    from: Option<Ex>,
}

impl Elaborator<'_> {
    /// The model; `None` if an error has been reported.
    pub(super) fn model(&mut self, draw: &mut dyn FnMut(Draw) -> f64) -> Option<Model> {
        self.declare();
        self.read_tables();
        for statement in 0..self.file.statements.len() {
            if let StatementKind::Size { .. } = self.file.statements[statement].kind {
                self.size(statement);
            }
        }
        self.parameter_families();
        self.variable_families();
        self.variables_known = true;
        let initial = self.initial_expressions();
        let hamiltonian = self.hamiltonian.and_then(|s| self.hamiltonian_expression(s));
        let derivatives = self.derivatives();
        let mut formulas = Formulas {
            initial,
            hamiltonian,
            stiff: None,
            derivatives,
            constraints: Vec::new(),
            integrals: Vec::new(),
            observables: Vec::new(),
            measures: Vec::new(),
        };
        self.quantities(&mut formulas);
        self.completeness();
        formulas.stiff = self
            .stiff
            .take()
            .and_then(|name| self.stiff_term(&name, formulas.hamiltonian.as_ref()));
        if !self.complete || self.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return None;
        }
        self.assemble(&formulas, draw)
    }

    /// Reads constraints, integrals, observables, measures, and definitions that nothing has used.
    fn quantities(&mut self, formulas: &mut Formulas) {
        for statement in 0..self.file.statements.len() {
            match &self.file.statements[statement].kind {
                StatementKind::Constraint { name, .. } => {
                    formulas.constraints.extend(self.constraint(statement, name.span))
                }
                StatementKind::Integral { name, family, value } => {
                    formulas.integrals.extend(self.quantity(name, family, value, "an integral"))
                }
                StatementKind::Observe { name, family, value } => formulas
                    .observables
                    .extend(self.quantity(name, family, value, formulas::OBSERVABLE)),
                StatementKind::Measure { .. } => formulas.measures.extend(self.measure(statement)),
                // Unused definitions are read too, so that their mistakes are found.
                StatementKind::Let { name, family, parameters, value }
                    if parameters.is_empty() && self.declares(name) =>
                {
                    self.unused_let(statement, family, value);
                }
                _ => {}
            }
        }
    }
}
