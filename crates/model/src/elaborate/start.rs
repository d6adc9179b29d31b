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
use holonome_arithmetic::lanes::{gather, scatter, spread};
use std::ops::Range;

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

/// A compiled [`Start`], of one trajectory or of several in lanes: immutable, shared between threads;
/// scratch comes from the caller.
///
/// Arrays of lanes are ordered by number, then by lane.
pub struct CompiledStart {
    lanes: usize,
    templates: Vec<Vec<Template>>,
    momenta: Option<Momenta>,
    cutoffs: Vec<Vec<Template>>,
    work: usize,
}

impl CompiledStart {
    /// Compiles the start of `model` for so many trajectories side by side.
    ///
    /// # Errors
    /// If the mass matrix does not turn an initial velocity into a momentum.
    pub fn new(
        model: &Model,
        backend: &dyn Backend,
        lanes: usize,
    ) -> Result<CompiledStart, Diagnostic> {
        let start = &model.start;
        let compiled = |functional: &Functional| functional.templates_in_lanes(backend, lanes);
        let templates: Vec<_> = formulas(start).map(compiled).collect();
        let cutoffs: Vec<_> = start.cutoffs.iter().map(compiled).collect();
        let momenta = match start.velocities.is_empty() {
            true => None,
            false => Some(Momenta::new(model, &start.velocities, (backend, lanes))?),
        };
        let values = formulas(start).zip(&templates);
        let of_values = values
            .chain(start.cutoffs.iter().zip(&cutoffs))
            .map(|(f, t)| f.outputs * (lanes + 1) + work_len(t));
        let of_momenta = momenta.iter().map(|m| m.work_len(model.dimension(), lanes));
        let inputs = (start.draws.len() + 1) * lanes;
        let work = inputs + of_values.chain(of_momenta).max().unwrap_or(0);
        Ok(CompiledStart { lanes, templates, momenta, cutoffs, work })
    }

    /// Scratch needed by [`CompiledStart::put`], in numbers.
    pub fn work_len(&self) -> usize {
        self.work
    }

    /// Writes the parameter values and the initial states of trajectories, one in each lane.
    /// `trajectory` gives the number of the one in a lane. `draw` puts the draws with a number,
    /// counted from 1, of all lanes, and `given` gives the numbers of a value that is given as numbers
    /// in a lane, as many as [`Start::given`] says. Nothing is allocated.
    ///
    /// # Errors
    /// If a value does not exist in one of the lanes.
    pub fn put<'g>(
        &self,
        model: &Model,
        trajectory: impl Fn(usize) -> f64,
        (draw, given): (impl Fn(u64, Draw, &mut [f64]), impl Fn(usize, usize) -> &'g [f64]),
        parameters: &mut [f64],
        x: &mut [f64],
        work: &mut [f64],
    ) -> Result<(), NoStart> {
        let (start, lanes) = (&model.start, self.lanes);
        spread(&model.parameter_values, lanes, parameters);
        spread(&model.initial, lanes, x);
        for velocity in &start.velocities {
            spread(&velocity.value, lanes, &mut x[over(velocity.range(), lanes)]);
        }
        let (inputs, work) = work.split_at_mut((start.draws.len() + 1) * lanes);
        let (trajectories, draws) = inputs.split_at_mut(FIRST_DRAW as usize * lanes);
        trajectories.iter_mut().enumerate().for_each(|(lane, number)| *number = trajectory(lane));
        for ((drawn, &which), number) in draws.chunks_exact_mut(lanes).zip(&start.draws).zip(1..) {
            draw(number, which, drawn);
        }
        let mut templates = self.templates.iter();
        for value in &start.values {
            let formula = value.formula();
            let outputs = formula.map_or(0, |functional| functional.outputs);
            let (numbers, work) = work.split_at_mut(outputs * lanes);
            if let Some(functional) = formula {
                let templates = templates.next().expect("every formula is compiled");
                functional.run(templates, 0.0, inputs, parameters, numbers, work);
            }
            let (place, what) = match value.target {
                StartTarget::Parameter => (&mut *parameters, "parameter"),
                StartTarget::Initial => (&mut *x, "the initial value of"),
            };
            let place = &mut place[value.first * lanes..];
            let mut len = outputs;
            if let ValueSource::Given(number) = value.source {
                len = start.given[number];
                (0..lanes).for_each(|lane| scatter(given(number, lane), lanes, lane, place));
            }
            place[..numbers.len()].copy_from_slice(numbers);
            demand_finite(&place[..len * lanes], what, &value.name)?;
        }
        for (lengths, templates) in start.cutoffs.iter().zip(&self.cutoffs) {
            let (numbers, work) = work.split_at_mut(lengths.outputs * lanes);
            let (one, work) = work.split_at_mut(lengths.outputs);
            lengths.run(templates, 0.0, inputs, parameters, numbers, work);
            for lane in 0..lanes {
                gather(numbers, lanes, lane, one);
                if let Some(short) = ShortBox::among(one) {
                    return Err(NoStart::ShortBox(short));
                }
            }
        }
        if let (Some(momenta), Some(first)) = (&self.momenta, start.velocities.first()) {
            momenta
                .put(model, (parameters, lanes), x, work)
                .map_err(|reason| NoStart::Velocity { momentum: first.name.clone(), reason })?;
        }
        for velocity in &start.velocities {
            let numbers = &x[over(velocity.range(), lanes)];
            demand_finite(numbers, "the momentum", &velocity.name)?;
        }
        Ok(())
    }
}

/// Numbers of these components in so many lanes.
fn over(components: Range<usize>, lanes: usize) -> Range<usize> {
    components.start * lanes..components.end * lanes
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
