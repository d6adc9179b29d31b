//! Methods that keep a model's structure: their steps, written over a phase space, as kernels and Newton iterations.
//!
//! [`functions`] are the model's formulas; [`tracing`] runs a step over them once and records what it computes and which
//! equations it states; [`program`] cuts that into kernels between the equations and runs them.

mod fibre;
mod flows;
mod functions;
mod multipliers;
mod program;
mod repeated;
mod tracing;

pub use program::Program;

use crate::compiled::Formula;
use crate::error::Error;
use flows::Flows;
use functions::Functions;
use holonome_integrate::method::{Method, Needs, SCHEMES, Scheme, Step};
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::Field;
use holonome_model::treatment::mechanics::{Mechanics, mechanics};
use holonome_model::treatment::structure::Kind;
use tracing::{Trace, Tracer};

/// The program of a method's step for `model`, none if the method is a Runge–Kutta one. `extension` is the model's field
/// with the constraints in it, which a method steps with if a treatment returns it to them.
///
/// # Errors
/// When the method does not suit the model; says why, and what does.
pub fn program(
    method: &Method,
    model: &Model,
    extension: Option<&Field>,
    newton_tolerance: Option<f64>,
) -> Result<Option<(Program, Trace)>, Error> {
    if matches!(method.scheme.step, Step::RungeKutta(_)) {
        return Ok(None);
    }
    let mechanics = mechanics(model).map_err(|reason| Error::option(format!("`{method}`: {reason}")))?;
    let unsuitable = |reason| Error::option(format!("`{method}` does not suit this model: {reason}"));
    suits(method, &mechanics).map_err(unsuitable)?;
    let mut functions = Functions::new(&mechanics, model);
    if let Some(field) = extension.filter(|_| method.treatment.moves_the_state()) {
        functions.field = Formula::unfused(&field.graph, &field.field);
    }
    if method.scheme.needs == Needs::Flows {
        functions.flows = Some(known_flows(&mechanics, model).map_err(unsuitable)?);
    }
    let trace = Tracer::new(&functions).step(|space, t, h, x| match method.scheme.step {
        Step::Map(step) => step(space, t, h, x),
        Step::Sliding(step) => step(space, method.unconstrained_map(), t, h, x),
        Step::RungeKutta(_) => unreachable!("it has no program"),
    });
    let substeps = method.substeps();
    let program = Program::new(&trace, &mechanics, model, substeps, newton_tolerance.unwrap_or(0.0));
    Ok(Some((program, trace)))
}

/// Every scheme that is no Runge–Kutta one, and why it does not suit the model, if it does not.
pub fn survey(model: &Model) -> Vec<(&'static Scheme, Option<String>)> {
    let mechanics = mechanics(model);
    let schemes = SCHEMES.iter().filter(|scheme| scheme.runge_kutta().is_none());
    let why = |scheme: &&'static Scheme| match &mechanics {
        Err(reason) => Some(reason.to_string()),
        Ok(mechanics) => {
            let suited = suits(&Method::plain(scheme), mechanics);
            let flows = |()| match scheme.needs {
                Needs::Flows => known_flows(mechanics, model).map(drop),
                _ => Ok(()),
            };
            suited.and_then(flows).err()
        }
    };
    schemes.map(|scheme| (scheme, why(&scheme))).collect()
}

fn known_flows(mechanics: &Mechanics, model: &Model) -> Result<Flows, String> {
    Flows::new(mechanics, model).map_err(|reason| format!("{reason}; use rattle, stormer-verlet-a or gauss4"))
}

/// Why a method does not suit the model.
fn suits(method: &Method, mechanics: &Mechanics) -> Result<(), String> {
    let constrained = !mechanics.constraints.is_empty();
    let hamiltonian = mechanics.degrees > 0;
    if method.scheme.needs == Needs::Coisotropic
        && let Some(name) = &mechanics.degenerate
    {
        return Err(format!(
            "the kinetic energy does not feel the normal of constraint `{name}`, so no multiplier holds it; use corrected:dop853"
        ));
    }
    let reason = match method.scheme.needs {
        Needs::Canonical if method.treatment.moves_the_state() => return Ok(()),
        Needs::Field | Needs::Canonical | Needs::Hamiltonian if hamiltonian && constrained => {
            "it takes no constraints, and the model has some; use rattle, or corrected:dop853"
        }
        Needs::Hamiltonian | Needs::Coisotropic | Needs::Flows if !hamiltonian => {
            "it needs a Hamiltonian, and the model is a vector field; use implicit-midpoint, gauss4, or corrected:dop853"
        }
        Needs::Coisotropic if !constrained => {
            "it is for constraints, and the model has none; use stormer-verlet-a, gauss4, or a composition of them"
        }
        Needs::Coisotropic if mechanics.kind == Kind::SecondClass => {
            "the brackets of the constraints do not vanish on the constraint set, so they have no fibres to slide along; use corrected:dop853"
        }
        _ => return Ok(()),
    };
    Err(reason.to_string())
}
