//! Symbols that stand for numbers while a step is recorded: nodes of a graph, or columns with one
//! number for each member of a family.

use holonome_integrate::phase_space::{Asked, Equation, Parameter, Value};
use holonome_model::elaborate::model::{HeatBath, Model};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::StridedFamily;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::sync::Arc;

/// Places of a method's parameters among the parameter values.
#[derive(Clone)]
pub struct ParameterPlaces {
    /// Place of β, right after the parameters of the model.
    beta: usize,
    heat_bath: Option<Arc<HeatBath>>,
}

impl ParameterPlaces {
    /// Places for methods on this model.
    pub fn of(model: &Model) -> ParameterPlaces {
        ParameterPlaces { beta: model.parameter_values.len(), heat_bath: model.heat_bath.clone() }
    }

    /// Place of one parameter.
    pub fn of_parameter(&self, which: Parameter) -> usize {
        match which {
            Parameter::Beta => self.beta,
            Parameter::Friction => self.bath().friction,
            Parameter::Temperature => self.bath().temperature,
        }
    }

    /// True if H holds every momentum by its square alone.
    pub fn mass_is_diagonal(&self) -> bool {
        self.bath().diagonal
    }

    fn bath(&self) -> &HeatBath {
        self.heat_bath
            .as_ref()
            .expect("a method that needs a heat bath is refused where there is none")
    }
}

/// Quantities and functions of a model, as a step records them.
pub trait Symbols: Sized {
    /// Recorded quantity.
    type Symbol: Copy + Eq + Hash + std::fmt::Debug;
    /// Derivatives of a system's residuals, as far as they are recorded.
    type Jacobian;

    /// Quantity that a step calls `value`, and the value of a quantity.
    fn symbol(value: Value) -> Self::Symbol;
    fn value(symbol: Self::Symbol) -> Value;

    /// Lengths of the components of x.
    fn lengths(&self) -> Vec<u32>;
    /// Number of components that are positions; 0 for a general field.
    fn degrees(&self) -> usize;
    /// Sums of the sizes of the terms of ẋ, of a large general field; else empty.
    fn term_sizes(&mut self, _t: Self::Symbol, _x: &[Self::Symbol]) -> Vec<Self::Symbol> {
        Vec::new()
    }
    /// Number of the parts of H of a Poisson system whose flows are known.
    fn parts(&self) -> usize {
        0
    }
    /// Degree of the H of a Poisson system as a polynomial; `None` if it is none.
    fn energy_degree(&self) -> Option<u32> {
        None
    }
    /// Number of scalar equations in one family.
    fn equations(&self, equation: Equation) -> u32;
    /// True if the energy is constant along the motion.
    fn autonomous(&self) -> bool;

    /// New input of `length` numbers.
    fn input(&mut self, length: u32) -> Self::Symbol;
    /// Length of a quantity.
    fn length(&self, symbol: Self::Symbol) -> u32;
    fn constant(&mut self, value: f64) -> Self::Symbol;
    fn unary(&mut self, op: Unary, a: Self::Symbol) -> Self::Symbol;
    fn binary(&mut self, op: Binary, a: Self::Symbol, b: Self::Symbol) -> Self::Symbol;
    /// A quantity where its absolute value is below a bound, else NaN.
    fn within(&mut self, a: Self::Symbol, bound: f64) -> Self::Symbol {
        let (size, bound) = (self.unary(Unary::Abs, a), self.constant(bound));
        let below = self.binary(Binary::Less, size, bound);
        // a/0 is infinite, and 0 of that is NaN.
        let (quotient, zero) = (self.binary(Binary::Div, a, below), self.constant(0.0));
        let nothing = self.binary(Binary::Mul, zero, quotient);
        self.binary(Binary::Add, a, nothing)
    }
    /// Largest absolute value of all numbers of these, and their sum.
    fn largest(&mut self, of: &[Self::Symbol]) -> Self::Symbol;
    fn total(&mut self, of: Vec<Self::Symbol>) -> Self::Symbol;
    /// Parameter of the method.
    fn parameter(&mut self, which: Parameter) -> Self::Symbol;
    /// True if the parts of H are split in other coordinates than the model's.
    fn splits(&self) -> bool {
        false
    }
    /// True if bodies may meet that a kick couples.
    fn may_meet(&self) -> bool {
        false
    }
    /// True if the recoil of a centre commutes with kicks.
    fn recoil_commutes(&self) -> bool {
        true
    }
    /// True if H holds every momentum by its square alone.
    fn mass_is_diagonal(&self) -> bool;
    /// Components of the state that each component of the momenta stands for.
    fn momenta(&self) -> Vec<StridedFamily>;
    /// Values of a function of the model.
    fn ask(&mut self, asked: Asked, t: Self::Symbol, x: &[Self::Symbol]) -> Vec<Self::Symbol>;

    /// All quantities that these are computed from, themselves included.
    fn reached(&self, roots: &[Self::Symbol]) -> FxHashSet<Self::Symbol>;
    /// True if a quantity depends on any of `others`, itself included.
    fn depends(&self, symbol: Self::Symbol, others: &[Self::Symbol]) -> bool {
        let reached = self.reached(&[symbol]);
        others.iter().any(|other| reached.contains(other))
    }
    /// Copy of a quantity with others in place of some inputs; `replaced` may be added to.
    fn substituted(
        &mut self,
        symbol: Self::Symbol,
        replaced: &mut FxHashMap<Self::Symbol, Self::Symbol>,
    ) -> Self::Symbol;
    /// Value f of `u` from an equation r = u − f; `None` if the equation has another form, or if f
    /// depends on `u`. An equation for `u` `alone`, among unknowns, may be any linear one: that of
    /// friction proportional to a momentum.
    fn explicit(
        &mut self,
        residual: Self::Symbol,
        u: Self::Symbol,
        alone: bool,
    ) -> Option<Self::Symbol>;
    /// Derivatives of residuals of which each depends on its own unknown alone.
    fn diagonal(&mut self, entries: &[Self::Symbol]) -> Self::Jacobian;
    /// Derivatives of residuals with respect to unknowns, and true if none of them depends on the
    /// unknowns.
    fn differentiated(
        &mut self,
        residuals: &[Self::Symbol],
        unknowns: &[Self::Symbol],
    ) -> (Self::Jacobian, bool);
}
