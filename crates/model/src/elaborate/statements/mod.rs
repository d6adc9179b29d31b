//! Elaboration of statements in their order of need: declarations, then values, then formulas.

mod assemble;
mod cutoff;
mod declare;
mod drawings;
mod events;
mod families;
mod forces;
mod formulas;
mod initial;
pub(super) mod lagrangian;
mod layout;
mod massless;
mod measures;
mod parameters;
mod poisson;
mod quantities;
pub(super) mod replace;
mod rolling;
mod run;
mod symmetry;
mod tables;
mod units;

use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{Draw, Ex};
use crate::elaborate::model::{Model, Units};
use crate::elaborate::{CheckedFormula, Elaborator};
use crate::syntax::ast::Name;
use crate::syntax::diagnostic::Severity;
use crate::syntax::statements::StatementKind;

/// Checked formulas of a file.
#[derive(Default)]
struct CheckedFormulas {
    /// Initial values of the variables with the ranges of their members, in the file's order.
    initial: Vec<Option<(IndexSet, Ex)>>,
    /// H, or L.
    hamiltonian: Option<Ex>,
    /// Stiff term of the Hamiltonian.
    stiff: Option<Ex>,
    /// Right-hand sides of a state model.
    derivatives: Vec<StateDerivative>,
    /// Matrices of brackets.
    blocks: Vec<poisson::CheckedBlock>,
    forces: Vec<CheckedForce>,
    constraints: Vec<CheckedFormula>,
    rollings: Vec<CheckedFormula>,
    integrals: Vec<CheckedFormula>,
    observables: Vec<CheckedFormula>,
    measures: Vec<CheckedMeasure>,
    events: Vec<CheckedEvent>,
    drawings: Vec<drawings::CheckedDrawing>,
    run: Vec<CheckedDefault>,
    units: Option<Units>,
}

/// Right-hand side of a state's equation of motion.
struct StateDerivative {
    /// Number of the state among the variables.
    state: usize,
    set: IndexSet,
    value: Ex,
}

/// A `force` that has been checked but not lowered.
struct CheckedForce {
    quantity: CheckedFormula,
    /// Coordinate that it acts on, a member or a component of one.
    on: Ex,
}

/// A `measure` that has been checked but not lowered.
struct CheckedMeasure {
    /// Measured quantity; the constant 0 if the statistic takes no quantity.
    quantity: CheckedFormula,
    statistic: Name,
    /// Numbers after the quantity.
    numbers: Vec<Ex>,
    every: Option<Ex>,
    from: Option<Ex>,
}

/// An `event` or `impact` that has been checked but not lowered.
struct CheckedEvent {
    quantity: CheckedFormula,
    direction: i8,
    /// The K of `every K`.
    every: Option<Ex>,
    action: CheckedAction,
}

/// What an event does.
enum CheckedAction {
    Record,
    Stop,
    /// Components of the state, and what they are set to.
    Reset(Vec<(Ex, Ex)>),
    Impact {
        restitution: Ex,
        friction: Option<Ex>,
    },
}

/// A `run` statement that has been checked but not lowered.
struct CheckedDefault {
    /// Option.
    name: Name,
    /// Its value; `None` for a method, which is a text.
    value: Option<Ex>,
    text: Name,
}

impl Elaborator<'_> {
    /// The model; `None` if an error has been reported.
    pub(super) fn model(&mut self, draw: &mut dyn FnMut(Draw) -> f64) -> Option<Model> {
        self.declare();
        self.read_tables();
        for (number, statement) in self.statements.iter().enumerate() {
            if statement.kind == StatementKind::Size {
                self.size(number);
            }
        }
        self.parameter_families();
        self.variable_families();
        self.variables_known = true;
        let mut formulas =
            CheckedFormulas { initial: self.initial_expressions(), ..CheckedFormulas::default() };
        formulas.hamiltonian = self.hamiltonian.and_then(|s| self.hamiltonian_expression(s));
        formulas.derivatives = self.derivatives();
        formulas.blocks = self.blocks();
        for number in 0..self.statements.len() {
            self.check(number, &mut formulas);
        }
        self.completeness();
        self.no_momenta_beside_a_lagrangian();
        if let Some(name) = self.stiff.take() {
            formulas.stiff = self.stiff_term(&name, formulas.hamiltonian.as_ref());
        }
        if !self.complete || self.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return None;
        }
        self.assemble(&formulas, draw)
    }

    /// Checks a statement whose formula may use all variables and parameters.
    fn check(&mut self, number: usize, formulas: &mut CheckedFormulas) {
        let statement = self.statement(number);
        match statement.kind {
            StatementKind::Constraint => {
                formulas.constraints.extend(self.constraint(number, statement.name.span))
            }
            StatementKind::Rolling => {
                formulas.rollings.extend(self.constraint(number, statement.name.span))
            }
            StatementKind::Force => formulas.forces.extend(self.force(number)),
            StatementKind::Integral => formulas.integrals.extend(self.quantity(number)),
            StatementKind::Observe => formulas.observables.extend(self.quantity(number)),
            StatementKind::Measure => formulas.measures.extend(self.measure(number)),
            StatementKind::Event | StatementKind::Impact => {
                formulas.events.extend(self.event(number))
            }
            StatementKind::Draw => formulas.drawings.extend(self.drawing(number)),
            StatementKind::Run => formulas.run.extend(self.run_default(number)),
            StatementKind::Unit => formulas.units = self.units(number),
            StatementKind::Let
                if statement.parameters.is_empty() && self.declares(&statement.name) =>
            {
                self.unused_let(number)
            }
            _ => {}
        }
    }
}
