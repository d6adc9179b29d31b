//! What stands for numbers while a step is recorded: nodes of a graph, or columns with one number for each member of a
//! family.

use super::recorder::Recorder;
use holonome_integrate::phase_space::{Asked, Body, Equation, Parameter, Part, Value, Vector};
use holonome_model::elaborate::model::{HeatBath, Model};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::Family;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::sync::Arc;

/// Where the parameters of a method stand among the values.
#[derive(Clone)]
pub struct ParameterPlaces {
    /// β stands behind the parameters of the model.
    beta: usize,
    heat_bath: Option<Arc<HeatBath>>,
}

impl ParameterPlaces {
    /// For methods on this model.
    pub fn of(model: &Model) -> ParameterPlaces {
        ParameterPlaces { beta: model.parameter_values.len(), heat_bath: model.heat_bath.clone() }
    }

    /// The place of one.
    pub fn of_parameter(&self, which: Parameter) -> usize {
        match which {
            Parameter::Beta => self.beta,
            Parameter::Friction => self.bath().friction,
            Parameter::Temperature => self.bath().temperature,
        }
    }

    /// Whether every momentum stands in H by its square alone.
    pub fn mass_is_diagonal(&self) -> bool {
        self.bath().diagonal
    }

    fn bath(&self) -> &HeatBath {
        self.heat_bath.as_ref().expect("a method that needs a heat bath is refused where there is none")
    }
}

/// A model's quantities and functions, as they are recorded.
pub trait Symbols: Sized {
    /// A quantity.
    type Symbol: Copy + Eq + Hash + std::fmt::Debug;
    /// The derivatives of a system's residuals, as far as they are recorded.
    type Jacobian;

    /// The quantity that a step calls so, and the other way round.
    fn symbol(value: Value) -> Self::Symbol;
    fn value(symbol: Self::Symbol) -> Value;

    /// The lengths of the components of x.
    fn lengths(&self) -> Vec<u32>;
    /// How many of them are positions; of a general field, 0.
    fn degrees(&self) -> usize;
    /// How many equations one such stands for.
    fn equations(&self, equation: Equation) -> u32;
    /// Whether the energy is constant along the motion.
    fn autonomous(&self) -> bool;

    /// A new input of so many numbers.
    fn input(&mut self, length: u32) -> Self::Symbol;
    /// How many numbers a quantity is.
    fn length(&self, symbol: Self::Symbol) -> u32;
    fn constant(&mut self, value: f64) -> Self::Symbol;
    fn unary(&mut self, op: Unary, a: Self::Symbol) -> Self::Symbol;
    fn binary(&mut self, op: Binary, a: Self::Symbol, b: Self::Symbol) -> Self::Symbol;
    /// The largest absolute value of all numbers of these, and their sum.
    fn largest(&mut self, of: &[Self::Symbol]) -> Self::Symbol;
    fn total(&mut self, of: Vec<Self::Symbol>) -> Self::Symbol;
    /// A parameter of the method.
    fn parameter(&mut self, which: Parameter) -> Self::Symbol;
    /// Whether every momentum stands in H by its square alone.
    fn mass_is_diagonal(&self) -> bool;
    /// Which components of the state each component of the momenta stands for.
    fn momenta(&self) -> Vec<Family>;
    /// A function of the model.
    fn ask(&mut self, asked: Asked, t: Self::Symbol, x: &[Self::Symbol]) -> Vec<Self::Symbol>;

    /// All that these are computed from, they included.
    fn reached(&self, roots: &[Self::Symbol]) -> FxHashSet<Self::Symbol>;
    /// Whether a quantity depends on any of `others`, itself included.
    fn depends(&self, symbol: Self::Symbol, others: &[Self::Symbol]) -> bool {
        let reached = self.reached(&[symbol]);
        others.iter().any(|other| reached.contains(other))
    }
    /// A quantity with others in place of some inputs; `replaced` may be added to.
    fn substituted(
        &mut self,
        symbol: Self::Symbol,
        replaced: &mut FxHashMap<Self::Symbol, Self::Symbol>,
    ) -> Self::Symbol;
    /// What an equation r = u − f gives u as: f, if that does not depend on `u`.
    fn explicit(&mut self, residual: Self::Symbol, u: Self::Symbol) -> Option<Self::Symbol>;
    /// The derivatives of residuals with respect to unknowns, and whether none depends on these.
    fn differentiated(&mut self, residuals: &[Self::Symbol], unknowns: &[Self::Symbol]) -> (Self::Jacobian, bool);

    /// X_{λ·g}.
    fn constraint_field(space: &mut Recorder<Self>, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value>;
    /// x moved along its fibre.
    fn slide(space: &mut Recorder<Self>, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value>;
    /// The exact flow of a part of H.
    fn flow(space: &mut Recorder<Self>, part: Part, t: Value, tau: Value, x: &[Value]) -> Vec<Value>;
    /// The rigid body in x, and the state in which one stands.
    fn body(space: &mut Recorder<Self>, x: &[Value]) -> Body;
    fn state_of(space: &mut Recorder<Self>, body: &Body) -> Vec<Value>;
    /// Its matrix of inertia, or the inverse of that.
    fn inertia(space: &mut Recorder<Self>, inverse: bool) -> [Vector; 3];
    /// The torque on it.
    fn torque(space: &mut Recorder<Self>, t: Value, body: &Body) -> Vector;
}
