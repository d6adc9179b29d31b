//! Starts of an ensemble's trajectories: the formulas of those parameters and initial values that
//! use a random draw, the trajectory's number, or each other.
//!
//! A model holds the numbers of its first trajectory, and a [`Start`] those formulas.
//! [`CompiledStart`] evaluates them for any other trajectory, row by row, with the templates that
//! gave the first numbers: equal values have equal bits.

use super::expression::Draw;
use super::model::{Family, Model};
use super::reach::ShortBox;
use super::velocity::{Momenta, Velocity};
use crate::functional::{Functional, Source, Template, work_len};
use crate::graph::interpret::Backend;
use crate::syntax::diagnostic::Diagnostic;

/// Place of the trajectory's number among the inputs of a trajectory.
pub const TRAJECTORY: u32 = 0;
/// Place of the first draw among these inputs; the other draws follow.
pub const FIRST_DRAW: u32 = 1;

/// Formulas of the numbers of a model that differ between trajectories. They read the inputs of a
/// trajectory (its number, then its draws) in place of the state.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Draws of each trajectory, in order.
    pub draws: Vec<Draw>,
    /// Values that differ: parameters, each after those that it uses, then initial values.
    pub values: Vec<VariedValue>,
    /// Initial velocities whose momenta may differ.
    pub velocities: Vec<Velocity>,
    /// For each sum over pairs whose cut-off or periodic box differs: both, in the form that
    /// [`ShortBox`] reads.
    pub cutoffs: Vec<Functional>,
    /// True for the parameter values that differ; empty if none does.
    pub parameters: Vec<bool>,
    /// True for the components of the initial state that differ; empty if none does.
    pub state: Vec<bool>,
}

/// A parameter or an initial value that differs between trajectories.
#[derive(Clone, Debug)]
pub struct VariedValue {
    /// Kind of the value.
    pub target: StartTarget,
    /// Name.
    pub name: String,
    /// First component, among the parameter values or in the state.
    pub first: usize,
    /// The formula.
    pub functional: Functional,
}

/// Kind of a [`VariedValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTarget {
    /// A parameter.
    Parameter,
    /// An initial value.
    Initial,
}

impl Start {
    /// Keeps the formula of `family`, whose first component is `first`, if its value differs
    /// between trajectories. `len` is the number of parameter values or of components of the state.
    pub(crate) fn keep(
        &mut self,
        target: StartTarget,
        family: &Family,
        first: usize,
        len: usize,
        functional: Functional,
    ) {
        let known = &self.parameters;
        let differs = functional.reads_marked(|source, entry| match source {
            Source::State => true,
            Source::Parameter => known.get(entry as usize).is_some_and(|&differs| differs),
            Source::Number => false,
        });
        if !differs.contains(&true) {
            return;
        }
        let marks = match target {
            StartTarget::Parameter => &mut self.parameters,
            StartTarget::Initial => &mut self.state,
        };
        marks.resize(len, false);
        marks[first..first + differs.len()].copy_from_slice(&differs);
        self.values.push(VariedValue { target, name: family.name.clone(), first, functional });
    }

    /// Keeps the distance at which a sum ends and the lengths of its box if they differ.
    pub(crate) fn keep_cutoff(&mut self, lengths: Functional) {
        let differs = |source, entry: u32| {
            source == Source::Parameter
                && self.parameters.get(entry as usize).is_some_and(|&differs| differs)
        };
        if lengths.reads_marked(differs).contains(&true) {
            self.cutoffs.push(lengths);
        }
    }

    /// Keeps velocities if the momenta may differ: H_pp, H_p and v may read any value that differs.
    pub(crate) fn keep_velocities(&mut self, velocities: Vec<Velocity>, dimension: usize) {
        if self.is_same() || velocities.is_empty() {
            return;
        }
        self.state.resize(dimension, false);
        for velocity in &velocities {
            self.state[velocity.range()].fill(true);
        }
        self.velocities = velocities;
    }

    /// True if all trajectories start alike.
    pub fn is_same(&self) -> bool {
        self.values.is_empty()
    }
}

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
            start.values.iter().map(|v| v.functional.templates(backend)).collect();
        let cutoffs: Vec<_> =
            start.cutoffs.iter().map(|lengths| lengths.templates(backend)).collect();
        let momenta = match start.velocities.is_empty() {
            true => None,
            false => Some(Momenta::new(model, &start.velocities, backend)?),
        };
        let values = start.values.iter().map(|v| &v.functional).zip(&templates);
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
    /// their numbers, counted from 1. Nothing is allocated.
    ///
    /// # Errors
    /// If one of the values does not exist.
    pub fn put(
        &self,
        model: &Model,
        trajectory: f64,
        draw: impl Fn(u64, Draw) -> f64,
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
        for (value, templates) in start.values.iter().zip(&self.templates) {
            let (numbers, work) = work.split_at_mut(value.functional.outputs);
            value.functional.run(templates, 0.0, inputs, parameters, numbers, work);
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

/// Refuses numbers of which one is not finite; `what` is the value called `name`.
fn demand_finite(numbers: &[f64], what: &str, name: &str) -> Result<(), NoStart> {
    match numbers.iter().find(|v| !v.is_finite()) {
        Some(&value) => Err(NoStart::NotFinite { what: format!("{what} '{name}'"), value }),
        None => Ok(()),
    }
}
