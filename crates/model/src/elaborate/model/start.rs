//! Formulas of those parameters and initial values that differ between the trajectories of an
//! ensemble: they use a random draw, the trajectory's number, or each other.

use super::Family;
use crate::elaborate::expression::Draw;
use crate::functional::{Functional, Source};
use crate::syntax::span::Span;
use std::ops::Range;

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
    /// [`ShortBox`](crate::elaborate::reach::ShortBox) reads.
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
