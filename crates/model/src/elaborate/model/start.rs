//! Those parameters and initial values that differ between the trajectories of an ensemble: they
//! are given as numbers, or formulas of theirs use a random draw, the trajectory's number, or each
//! other.

use super::Family;
use crate::elaborate::expression::Draw;
use crate::functional::{Functional, Source};
use crate::syntax::span::Span;
use std::ops::Range;

/// Numbers of a model that differ between trajectories. Formulas of theirs read the inputs of a
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
    /// [`ShortBox`](crate::elaborate::reach::ShortBox) reads.
    pub cutoffs: Vec<Functional>,
    /// True for the parameter values that differ; empty if none does.
    pub parameters: Vec<bool>,
    /// True for the components of the initial state that differ; empty if none does.
    pub state: Vec<bool>,
    /// For each value that is given as numbers, how many it has.
    pub given: Vec<usize>,
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
    /// Source of its numbers.
    pub source: ValueSource,
}

/// Source of the numbers of a [`VariedValue`].
#[derive(Clone, Debug)]
pub enum ValueSource {
    /// A formula.
    Formula(Functional),
    /// Given as numbers, with this place among the values that are.
    Given(usize),
}

impl VariedValue {
    /// The formula, if it is one.
    pub fn formula(&self) -> Option<&Functional> {
        match &self.source {
            ValueSource::Formula(functional) => Some(functional),
            ValueSource::Given(_) => None,
        }
    }
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
        self.marks(target, len)[first..first + differs.len()].copy_from_slice(&differs);
        let source = ValueSource::Formula(functional);
        self.values.push(VariedValue { target, name: family.name.clone(), first, source });
    }

    /// Keeps the value that is given as numbers in place `number`, for the components `range`,
    /// if these differ between trajectories, by this value (`varies`) or a formula before it.
    /// `len` is as in [`Start::keep`].
    pub(crate) fn keep_given(
        &mut self,
        target: StartTarget,
        (name, number, varies): (&str, usize, bool),
        range: Range<usize>,
        len: usize,
    ) {
        let marks = match target {
            StartTarget::Parameter => &self.parameters,
            StartTarget::Initial => &self.state,
        };
        let differs = marks.get(range.clone()).is_some_and(|marks| marks.contains(&true));
        if !varies && !differs {
            return;
        }
        if self.given.len() <= number {
            self.given.resize(number + 1, 0);
        }
        self.given[number] = range.len();
        self.marks(target, len)[range.clone()].fill(varies);
        let (name, first, source) = (name.to_string(), range.start, ValueSource::Given(number));
        self.values.push(VariedValue { target, name, first, source });
    }

    fn marks(&mut self, target: StartTarget, len: usize) -> &mut [bool] {
        let marks = match target {
            StartTarget::Parameter => &mut self.parameters,
            StartTarget::Initial => &mut self.state,
        };
        marks.resize(len, false);
        marks
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

/// Start of a model with a Lagrangian.
#[derive(Clone, Debug)]
pub struct Moving {
    /// The momenta ∂L/∂q' as functions of the time, positions and, in the places of the momenta,
    /// velocities.
    pub momenta: Functional,
    /// The velocities of all positions at the start of the first trajectory.
    pub velocities: Vec<f64>,
}

/// A coordinate whose initial velocity is given in place of its momentum.
#[derive(Clone, Debug)]
pub struct Velocity {
    /// Name of the momentum.
    pub name: String,
    /// First component of the momentum in the state.
    pub first: usize,
    /// The velocity at the start of the first trajectory.
    pub value: Vec<f64>,
    /// Span of the declaration.
    pub span: Span,
}

impl Velocity {
    /// Components of the momentum in the state.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.value.len()
    }
}
