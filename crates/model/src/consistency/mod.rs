//! Checks of a model before a run: numbers that do not exist, a start off the constraint set,
//! redundant constraints, integrals that vary.

mod brackets;
mod claims;
mod domains;
mod initial_state;
mod misses;
mod projection;
mod ranks;

pub use misses::{Constraints, HiddenConstraints, Miss, Residual, RowHiddenConstraints};
pub use projection::{ProjectedStart, Projection, project_initial, project_initial_by};
pub use ranks::Dependence;

use crate::derived::{Derived, Written};
use crate::elaborate::model::Model;
use crate::graph::Node;
use crate::graph::calculus::Gradient;
use crate::graph::interpret::{Backend, Interpreter};
use crate::policy::{DEEP_STACK, Way};
use crate::rows::RowProgram;
use crate::scales::Scales;
use crate::syntax::diagnostic::{Diagnostic, Severity};
use crate::templated::RowField;
use crate::treatment::mechanics::NoMechanics;
use crate::treatment::structure::{Probe, Structure, evaluate};
use crate::treatment::unrolled::TooLarge;
use crate::treatment::{Field, monitor_only};
use brackets::jacobi_holds;
use claims::{integrals_hold, rows_hold};
use domains::{field_is_finite, finite_values};
use holonome_linear::gram::Row;
use initial_state::{constraints_met, hidden_met, row_hidden_met};
use ranks::{irregular, redundancy};
use std::cell::LazyCell;
use std::sync::{Arc, Mutex};

/// Span of time in which claims are tested if no run is known: that of a run by default.
pub const SPAN: (f64, f64) = (0.0, 100.0);

/// Findings about a model with its numbers.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Findings: errors, and warnings about observables.
    pub diagnostics: Vec<Diagnostic>,
    /// Constraints that depend on each other at the start, and not wherever they hold: an error for
    /// methods that solve for multipliers, a warning otherwise.
    pub singular: Vec<Diagnostic>,
    /// Components of constraints that depend on the others at the start.
    pub dependence: Dependence,
    /// The model that is examined in place of the given one, whose constraints are redundant:
    /// without the equations that follow from the others.
    pub independent: Option<Derived>,
    /// The unrolled field with its invariants, if there is one.
    pub field: Option<(Arc<Field>, Structure)>,
    /// The field over rows, if the model is so large that it is run over rows.
    pub rows: Option<RowField>,
    /// Reason why there is no field, if the model is too large to be unrolled.
    pub too_large: Option<TooLarge>,
    /// Constraints and hidden constraints that the initial state does not meet: an error unless a
    /// run starts off the set on purpose.
    pub off_set: Vec<Diagnostic>,
    /// Claimed invariants that vary along the flow: integrals, and constraints of a field that
    /// leaves them.
    pub varying: Vec<String>,
    /// Findings that name `varying`.
    pub unverified: Vec<Diagnostic>,
    /// Invariants that are constant on the constraint set only, with a V that grows somewhere off
    /// it.
    pub weak_integrals: Vec<String>,
}

impl Examined {
    /// True if no finding is an error.
    pub fn is_sound(&self) -> bool {
        self.diagnostics.iter().all(|d| d.severity != Severity::Error)
    }

    /// Adds `names` to the claims that have failed and no longer holds them: they are monitored
    /// only.
    pub fn leave_out(&mut self, names: &[String]) {
        for name in names {
            if !self.varying.contains(name) {
                self.varying.push(name.clone());
            }
        }
        self.leave_out_unverified();
    }

    /// No longer holds the claims that have failed: they are monitored only.
    pub fn leave_out_unverified(&mut self) {
        if let Some((field, _)) = &mut self.field {
            Arc::make_mut(field).monitor_only(&self.varying);
        }
        if let Some(field) = &mut self.rows {
            monitor_only(&mut field.groups, &self.varying, &mut |_| {});
        }
    }
}

/// [`examine_during`] for a run over [`SPAN`].
pub fn examine(model: &Model) -> Examined {
    examine_during(model, SPAN)
}

/// Examines `model` at its initial state, and its claims at random points of the constraint set and
/// random times of a run from `span.0` to `span.1`.
pub fn examine_during(model: &Model, span: (f64, f64)) -> Examined {
    examine_by(&Interpreter, &Derived::new(model.clone()), span)
}

/// [`examine_during`] with a backend, which runs the rows of a large model.
pub fn examine_by(backend: &dyn Backend, derived: &Derived, span: (f64, f64)) -> Examined {
    let model: &Model = derived;
    let mut found = Examined {
        diagnostics: Vec::new(),
        singular: Vec::new(),
        dependence: Dependence::default(),
        independent: None,
        field: None,
        rows: None,
        too_large: None,
        off_set: Vec::new(),
        varying: Vec::new(),
        unverified: Vec::new(),
        weak_integrals: Vec::new(),
    };
    let templated = Way::of_field(model).templated;
    // Compilation pays for many rows.
    let of_rows: &dyn Backend = if templated { backend } else { &Interpreter };
    let scales = LazyCell::new(|| Scales::by(of_rows, model));
    let mut values = || {
        finite_values(model, of_rows, &mut found.diagnostics);
        let off = constraints_met(model, &scales, &mut found.off_set);
        // Derivatives of undefined values are meaningless.
        found.is_sound().then_some(off)
    };
    if templated {
        let (field, off) = beside(|| derived.row_field(), values);
        if let Some(off) = off {
            examine_rows((model, field), &scales, &off, span, backend, &mut found);
        }
        return without_implied(backend, model, found, span);
    }
    let Some(off) = values() else { return found };
    let Written { unrolled, .. } = match derived.written() {
        Ok(written) => written,
        Err(too_large) => {
            found.too_large = Some(too_large.clone());
            return found;
        }
    };
    // Ranks mean little off the set. Rolling constraints whose forces are determined are independent,
    // whatever the scales of the state are.
    let with_forces = (!model.rollings.is_empty()).then(|| derived.field());
    let ranked = model.is_hamiltonian() && !matches!(with_forces, Some(Ok(_)));
    if ranked && off.is_empty() && !model.constraints.is_empty() {
        let scalars = || unrolled.constraints.iter().flatten();
        let nodes: Vec<Node> = scalars().map(|s| s.node).collect();
        let gradients: Vec<&Gradient> = scalars().map(|s| &s.gradient).collect();
        let probe = Probe::new(
            &unrolled.graph,
            &nodes,
            &gradients,
            model.dimension(),
            &model.parameter_values,
        );
        (found.dependence, found.singular) = redundancy(model, &scales, &|t, x| probe.at(t, x));
        if found.dependence.is_redundant() {
            return without_implied(backend, model, found, span);
        }
    }
    let extended = match with_forces.unwrap_or_else(|| derived.field()) {
        Ok(extended) => extended,
        Err(NoMechanics::TooLarge(too_large)) => {
            found.too_large = Some(too_large);
            return found;
        }
        Err(NoMechanics::Irregular(reason)) => {
            // Dependent constraints make the brackets singular: one mistake, one finding.
            if found.singular.is_empty() && off.is_empty() {
                found.diagnostics.push(irregular(model, &reason));
            }
            return found;
        }
    };
    if !model.constraints.is_empty() {
        hidden_met(model, &scales, (&extended.0, &extended.1), &off, &mut found.off_set);
    }
    if found.is_sound() {
        let field = &extended.0;
        let values =
            evaluate(&field.graph, &field.field, model.t0, &model.initial, &model.parameter_values);
        field_is_finite(model, &values, &mut found.diagnostics);
    }
    if found.is_sound() && found.singular.is_empty() && found.off_set.is_empty() {
        integrals_hold(model, &extended.0, span, &mut found);
        jacobi_holds(model, &mut found);
    }
    let (field, structure) = extended;
    found.field = Some((Arc::new(field), structure));
    found
}

/// Examination of `model` without the equations that follow from the others, if `found` has such
/// equations; else `found`.
fn without_implied(
    backend: &dyn Backend,
    model: &Model,
    found: Examined,
    span: (f64, f64),
) -> Examined {
    if !found.dependence.is_redundant() {
        return found;
    }
    let independent = Derived::new(model.without_implied(&found.dependence.implied));
    let mut examined = examine_by(backend, &independent, span);
    // All other findings are found again.
    examined.diagnostics.extend(found.singular);
    Examined { dependence: found.dependence, independent: Some(independent), ..examined }
}

/// Results of both functions, the first on a thread of its own if the system provides one.
fn beside<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    let first = Mutex::new(Some(first));
    let run = || {
        let first = first.lock().ok().and_then(|mut first| first.take());
        first.map(|first| first())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, run);
        let b = second();
        let a = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => run(),
        };
        (a.expect("it runs once"), b)
    })
}

/// Examines a model that is run over rows.
fn examine_rows(
    (model, field): (&Model, RowField),
    scales: &LazyCell<Scales, impl FnOnce() -> Scales>,
    off: &[String],
    span: (f64, f64),
    backend: &dyn Backend,
    found: &mut Examined,
) {
    let at = |program: &RowProgram| {
        program.evaluate_by(backend, model.t0, &model.initial, &model.parameter_values)
    };
    field_is_finite(model, &at(&field.field), &mut found.diagnostics);
    if !model.constraints.is_empty() {
        let entries = at(&field.jacobian);
        row_hidden_met(
            model,
            scales,
            &field,
            (&at(&field.invariants), &entries),
            off,
            &mut found.off_set,
        );
        // Free lists that are no longer needed: those of a large model take much memory.
        drop(entries);
        if off.is_empty() {
            let count = field.constraints / 2;
            let functions = |t: f64, x: &[f64]| {
                let of = |program: &RowProgram| {
                    program.evaluate_by(backend, t, x, &model.parameter_values)
                };
                let (mut values, entries) = (of(&field.invariants), of(&field.jacobian));
                values.truncate(count);
                let rows = field.pattern.rows().take(count);
                (
                    values,
                    rows.map(|row| row.values(&entries).collect::<Row>()).collect::<Vec<Row>>(),
                )
            };
            (found.dependence, found.singular) = redundancy(model, scales, &functions);
        }
    }
    if found.is_sound()
        && found.singular.is_empty()
        && !found.dependence.is_redundant()
        && found.off_set.is_empty()
        && !model.integrals.is_empty()
    {
        rows_hold((model, scales), &field, span, backend, found);
    }
    if found.is_sound() {
        jacobi_holds(model, found);
    }
    found.rows = Some(field);
}

/// A number for a message: seven digits, in the form a person would write.
fn shown(value: f64) -> String {
    if (1e-3..1e6).contains(&value.abs()) {
        format!("{}", (value * 1e7).round() / 1e7)
    } else {
        format!("{value:.6e}")
    }
}

/// Adds the spans of the initial values of these state components.
fn places(model: &Model, components: &[u32], mut diagnostic: Diagnostic) -> Diagnostic {
    for variable in &model.variables {
        let range = variable.first..variable.first + variable.family.len();
        if components.iter().any(|&c| range.contains(&(c as usize)))
            && !diagnostic.related.iter().any(|(s, _)| *s == variable.initial_span)
        {
            diagnostic = diagnostic.related(
                variable.initial_span,
                format!("the initial value of '{}'", variable.family.name),
            );
        }
    }
    diagnostic
}
