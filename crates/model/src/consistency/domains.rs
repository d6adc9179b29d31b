//! Check for formulas without a finite value at the initial state.

use super::places;
use crate::elaborate::expression::FOLLOWING;
use crate::elaborate::model::{Dynamics, Model, Parameter, Quantity};
use crate::functional::{Divisor, Functional, NotFinite};
use crate::graph::interpret::Backend;
use crate::rows::RowProgram;
use crate::syntax::diagnostic::Diagnostic;

/// Reports the formulas of a model that are not finite at its initial state; for an observable that
/// is a warning.
pub(super) fn finite_values(model: &Model, backend: &dyn Backend, out: &mut Vec<Diagnostic>) {
    let evaluated = |functional: &Functional| {
        RowProgram::functional(
            functional,
            backend,
            model.t0,
            &model.initial,
            &model.parameter_values,
        )
    };
    if let Some((h, span)) = model.hamiltonian() {
        let value = evaluated(h)[0];
        if !value.is_finite() {
            let found = not_finite_at(model, h, false);
            let divisor = found.as_ref().and_then(|found| found.divisor.as_ref());
            let (reason, help) = reason(model, divisor);
            let message = format!("H is {value} at the initial state: not a finite number{reason}");
            let span = found.as_ref().map_or(span, |found| found.span);
            out.push(Diagnostic::error(message, span, "cannot be evaluated there").help(help));
        }
    }
    let measured: Vec<&Quantity> = model.measures.iter().map(|measure| &measure.quantity).collect();
    fn list(quantities: &[Quantity]) -> Vec<&Quantity> {
        quantities.iter().collect()
    }
    let lists = [
        (list(&model.constraints), "constraint"),
        (list(&model.integrals), "integral"),
        (list(&model.observables), "observable"),
        (measured, "measure"),
    ];
    for (list, what) in lists {
        // What follows from the state is known only once a method has found it.
        for quantity in list.into_iter().filter(|quantity| quantity.depends & FOLLOWING == 0) {
            let values = evaluated(&quantity.functional);
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                let name = quantity.member_name(at / quantity.shape.len());
                let message = format!(
                    "{what} '{name}' is {} at the initial state: not a finite number",
                    values[at]
                );
                // An observable is only recorded: a gap in it stops no run.
                let diagnostic = match what {
                    "observable" => {
                        Diagnostic::warning(message, quantity.span, "recorded as NaN there")
                    }
                    "measure" => {
                        Diagnostic::warning(message, quantity.span, "spoils averages from there on")
                    }
                    _ => Diagnostic::error(message, quantity.span, "cannot be evaluated there"),
                };
                out.push(related_initial(model, quantity, at, diagnostic));
            }
        }
    }
}

/// Words on a parameter by which H divides although it is 0, and the remedy.
fn reason(model: &Model, divisor: Option<&Divisor>) -> (String, &'static str) {
    let named = divisor.map(|divisor| {
        let moves = |component: &u32| *component as usize >= model.degrees();
        let is_mass = model.degrees() > 0 && divisor.over.iter().any(moves);
        (Parameter::value_name(&model.parameters, divisor.parameter as usize), is_mass)
    });
    match named {
        Some((name, true)) => (
            format!(", as it divides momenta by {name}, which is 0"),
            "a body without mass is a test body where H has a limit (see Test bodies in the guide to the language); give it a mass that is small beside the others",
        ),
        Some((name, false)) => {
            (format!(", as it divides by {name}, which is 0"), "give the parameter another value")
        }
        None => (
            String::new(),
            "look for a division by zero, or a root or logarithm of a negative number",
        ),
    }
}

/// Reports the first component of the field at the initial state that is not finite.
pub(super) fn field_is_finite(model: &Model, values: &[f64], out: &mut Vec<Diagnostic>) {
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        let variable = model
            .variables
            .iter()
            .find(|v| (v.first..v.first + v.family.len()).contains(&at))
            .expect("every component belongs to a variable");
        let message = format!(
            "the rate of change of '{}' is {} at the initial state: not a finite number",
            variable.family.name, values[at]
        );
        let culprit = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => not_finite_at(model, h, true),
            Dynamics::Field(field) => not_finite_at(model, field, false),
        };
        let of_constraint =
            || model.constraints.iter().find_map(|q| not_finite_at(model, &q.functional, true));
        let diagnostic = match culprit.or_else(of_constraint).map(|found| found.span) {
            Some(span) if model.is_hamiltonian() => {
                Diagnostic::error(message, span, "has no finite derivative there")
                    .related(variable.rate_span, "cannot start moving")
            }
            Some(span) => Diagnostic::error(message, span, "has no finite value there"),
            None => Diagnostic::error(message, variable.rate_span, "cannot start moving"),
        };
        out.push(
            diagnostic.help("look for a division by zero, or a root or logarithm that cannot be differentiated there"),
        );
    }
}

/// Operation that has no finite value, or no finite derivative, at the initial state.
fn not_finite_at(
    model: &Model,
    functional: &Functional,
    differentiated: bool,
) -> Option<NotFinite> {
    functional.not_finite_at(model.t0, &model.initial, &model.parameter_values, differentiated)
}

/// Adds the spans of the initial values that an output reads.
fn related_initial(
    model: &Model,
    quantity: &Quantity,
    output: usize,
    diagnostic: Diagnostic,
) -> Diagnostic {
    places(model, &quantity.functional.reads(output), diagnostic)
}
