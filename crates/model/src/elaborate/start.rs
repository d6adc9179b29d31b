//! Starts of an ensemble's trajectories.
//!
//! A model holds the numbers of its first trajectory, and a [`Start`] the formulas of those that
//! differ. [`CompiledStart`]
//! evaluates them for any other trajectory, row by row, with the templates that gave the first
//! numbers: equal values have equal bits.

use super::expression::Draw;
use super::model::Model;
use super::model::start::{Start, StartTarget, ValueSource, VariedValue};
use super::reach::ShortBox;
use super::velocity::Momenta;
use crate::functional::{Functional, Template, work_len};
use crate::graph::interpret::Backend;
use crate::syntax::diagnostic::Diagnostic;

/// Place of the trajectory's number among the inputs of a trajectory.
pub const TRAJECTORY: u32 = 0;
/// Place of the first draw among these inputs; the other draws follow.
pub const FIRST_DRAW: u32 = 1;

/// Reason why a trajectory has no start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoStart {
    /// A value is not finite.
    #[error("{what} is {value}: not a finite number")]
    NotFinite {
        /// The value, in words.
        what: String,
        /// The number that is not finite.
        value: f64,
    },
    /// An initial velocity determines no momentum.
    #[error("the initial velocity determines no momentum '{momentum}': {reason}")]
    Velocity {
        /// Name of the momentum.
        momentum: String,
        /// Reason, in words.
        reason: &'static str,
    },
    /// A periodic box is so short that a sum would miss images.
    #[error("{0}: its pairs would miss images of their partners")]
    ShortBox(ShortBox),
}

/// A compiled [`Start`]: immutable, shared between threads; scratch comes from the caller.
pub struct CompiledStart {
    templates: Vec<Vec<Template>>,
    momenta: Option<Momenta>,
    cutoffs: Vec<Vec<Template>>,
    work: usize,
}

impl CompiledStart {
    /// Compiles the start of `model`.
    ///
    /// # Errors
    /// If the mass matrix does not turn an initial velocity into a momentum.
    pub fn new(model: &Model, backend: &dyn Backend) -> Result<CompiledStart, Diagnostic> {
        let start = &model.start;
        let templates: Vec<_> =
            formulas(start).map(|functional| functional.templates(backend)).collect();
        let cutoffs: Vec<_> =
            start.cutoffs.iter().map(|lengths| lengths.templates(backend)).collect();
        let momenta = match start.velocities.is_empty() {
            true => None,
            false => Some(Momenta::new(model, &start.velocities, backend)?),
        };
        let values = formulas(start).zip(&templates);
        let of_values =
            values.chain(start.cutoffs.iter().zip(&cutoffs)).map(|(f, t)| f.outputs + work_len(t));
        let of_momenta = momenta.iter().map(|m| m.work_len(model.dimension()));
        let work = start.draws.len() + 1 + of_values.chain(of_momenta).max().unwrap_or(0);
        Ok(CompiledStart { templates, momenta, cutoffs, work })
    }

    /// Scratch needed by [`CompiledStart::put`], in numbers.
    pub fn work_len(&self) -> usize {
        self.work
    }

    /// Writes the parameter values and the initial state of a trajectory. `draw` gives its draws by
    /// their numbers, counted from 1, and `given` those of its values that are given as numbers, as
    /// many as [`Start::given`] says. Nothing is allocated.
    ///
    /// # Errors
    /// If one of the values does not exist.
    pub fn put<'g>(
        &self,
        model: &Model,
        trajectory: f64,
        (draw, given): (impl Fn(u64, Draw) -> f64, impl Fn(usize) -> &'g [f64]),
        parameters: &mut [f64],
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), NoStart> {
        let start = &model.start;
        parameters.copy_from_slice(&model.parameter_values);
        x.copy_from_slice(&model.initial);
        for velocity in &start.velocities {
            x[velocity.range()].copy_from_slice(&velocity.value);
        }
        let (inputs, work) = work.split_at_mut(start.draws.len() + 1);
        inputs[TRAJECTORY as usize] = trajectory;
        for ((input, &which), number) in
            inputs[FIRST_DRAW as usize..].iter_mut().zip(&start.draws).zip(1..)
        {
            *input = draw(number, which);
        }
        let mut templates = self.templates.iter();
        for value in &start.values {
            let numbers = match &value.source {
                ValueSource::Given(number) => given(*number),
                ValueSource::Formula(functional) => {
                    let (numbers, work) = work.split_at_mut(functional.outputs);
                    let templates = templates.next().expect("every formula is compiled");
                    functional.run(templates, 0.0, inputs, parameters, numbers, work);
                    numbers
                }
            };
            let (place, what) = match value.target {
                StartTarget::Parameter => (&mut *parameters, "parameter"),
                StartTarget::Initial => (&mut *x, "the initial value of"),
            };
            place[value.first..value.first + numbers.len()].copy_from_slice(numbers);
            demand_finite(numbers, what, &value.name)?;
        }
        for (lengths, templates) in start.cutoffs.iter().zip(&self.cutoffs) {
            let (numbers, work) = work.split_at_mut(lengths.outputs);
            lengths.run(templates, 0.0, inputs, parameters, numbers, work);
            if let Some(short) = ShortBox::among(numbers) {
                return Err(NoStart::ShortBox(short));
            }
        }
        if let (Some(momenta), Some(first)) = (&self.momenta, start.velocities.first()) {
            momenta
                .put(model, parameters, x, work)
                .map_err(|reason| NoStart::Velocity { momentum: first.name.clone(), reason })?;
        }
        for velocity in &start.velocities {
            demand_finite(&x[velocity.range()], "the momentum", &velocity.name)?;
        }
        Ok(())
    }
}

/// Formulas of the values that differ.
fn formulas(start: &Start) -> impl Iterator<Item = &Functional> {
    start.values.iter().filter_map(VariedValue::formula)
}

/// Refuses numbers of which one is not finite; `what` is the value called `name`.
fn demand_finite(numbers: &[f64], what: &str, name: &str) -> Result<(), NoStart> {
    match numbers.iter().find(|v| !v.is_finite()) {
        Some(&value) => Err(NoStart::NotFinite { what: format!("{what} '{name}'"), value }),
        None => Ok(()),
    }
}
