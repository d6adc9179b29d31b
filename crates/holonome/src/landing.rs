//! Landing on switching surfaces: adaptive steps end where a condition of the field changes.

use crate::options::{RunOptions, StepSize};
use crate::problem::Problem;
use holonome_model::derived::Derived;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::switching::with_sides;
use std::sync::Arc;

/// The problem with a field whose conditions are decided by the sides of its switching surfaces,
/// which are further parameters of the model: open at first. Unchanged if the steps are equal, or
/// the options or the field ask for none.
pub(crate) fn apply(problem: Problem, options: &RunOptions) -> Problem {
    let adapts = matches!(options.step, StepSize::Adaptive { .. });
    // A series has no pieces: the field is refused as it stands.
    if !options.landing || !adapts || options.method.scheme.needs_formulas() {
        return problem;
    }
    let Some((field, structure)) = &problem.examined.field else { return problem };
    if problem.examined.rows.is_some() || !field.surfaces.is_empty() {
        return problem;
    }
    let Some(field) = with_sides(field) else { return problem };
    let structure = structure.clone();
    let mut parameter_values = problem.model.parameter_values.clone();
    parameter_values.resize(field.parameters, 0.0);
    let model = Derived::new(Model { parameter_values, ..Model::clone(&problem.model) });
    let mut examined = problem.examined;
    examined.field = Some((Arc::new(field), structure));
    Problem { model, examined, ..problem }
}
