//! Columns as the symbols of a recorded step: one component of every member of a family.

use crate::step::program::Reduction;
use crate::step::recorder::{CompositeFunctions, StepRecorder};
use crate::step::symbols::{ParameterPlaces, Symbols};
use holonome_integrate::phase_space::{
    Asked, Body, Equation, Parameter, Part, PhaseSpace, Value, Vector,
};
use holonome_model::columns::{Column, Definition};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::rows::StridedFamily;
use holonome_model::templated::RowMechanics;
use rustc_hash::{FxHashMap, FxHashSet};

/// Columns over the functions of a large model.
#[derive(Clone)]
pub struct ColumnSymbols {
    pub mechanics: RowMechanics,
    /// Inputs that are one number for all members of some columns.
    pub reduced: Vec<Reduced>,
    parameters: ParameterPlaces,
}

/// One number for all members of some columns.
#[derive(Clone, PartialEq, Eq)]
pub struct Reduced {
    pub input: Column,
    pub how: Reduction,
    pub over: Vec<Column>,
}

impl ColumnSymbols {
    /// Symbols over `mechanics`, without inputs yet.
    pub fn new(mechanics: RowMechanics, parameters: ParameterPlaces) -> ColumnSymbols {
        ColumnSymbols { mechanics, reduced: Vec::new(), parameters }
    }

    fn reduce(&mut self, how: Reduction, over: Vec<Column>) -> Column {
        let known = self.reduced.iter().find(|reduced| reduced.how == how && reduced.over == over);
        if let Some(Reduced { input, .. }) = known {
            return *input;
        }
        let input = self.mechanics.columns.input(1);
        self.reduced.push(Reduced { input, how, over });
        input
    }

    fn negative(&mut self, columns: Vec<Column>) -> Vec<Column> {
        columns.into_iter().map(|column| self.unary(Unary::Neg, column)).collect()
    }
}

/// Reason why there are no flows.
const NO_FLOWS: &str = "methods that need flows are refused for large models";

/// Message for the functions of rigid bodies, which are never asked for here.
const NO_BODY: &str = "methods of rigid bodies are refused for large models";

impl Symbols for ColumnSymbols {
    type Symbol = Column;
    /// Unit: derivatives are taken later, when it is known which columns are stored.
    type Jacobian = ();

    fn symbol(value: Value) -> Column {
        Column(value.0)
    }

    fn value(column: Column) -> Value {
        Value(column.0)
    }

    fn lengths(&self) -> Vec<u32> {
        self.mechanics.state.iter().map(|family| family.length).collect()
    }

    fn degrees(&self) -> usize {
        self.mechanics.degrees()
    }

    fn equations(&self, equation: Equation) -> u32 {
        match equation {
            Equation::Constraint(k) | Equation::Hidden(k) => self.mechanics.constraints[k].length,
            Equation::Stage(k) => self.mechanics.state[k].length,
            Equation::AngularMomentum(_) => unreachable!("{NO_BODY}"),
            Equation::Kepler(_) => unreachable!("{NO_FLOWS}"),
        }
    }

    fn autonomous(&self) -> bool {
        self.mechanics.autonomous
    }

    fn input(&mut self, length: u32) -> Column {
        self.mechanics.columns.input(length)
    }

    fn length(&self, column: Column) -> u32 {
        self.mechanics.columns.length(column)
    }

    fn constant(&mut self, value: f64) -> Column {
        self.mechanics.columns.constant(value)
    }

    fn unary(&mut self, op: Unary, a: Column) -> Column {
        self.mechanics.columns.unary(op, a)
    }

    fn binary(&mut self, op: Binary, a: Column, b: Column) -> Column {
        self.mechanics.columns.binary(op, a, b)
    }

    fn largest(&mut self, of: &[Column]) -> Column {
        self.reduce(Reduction::Largest, of.to_vec())
    }

    /// Sum of all numbers; columns of one length are first added up member by member.
    fn total(&mut self, of: Vec<Column>) -> Column {
        let mut over: Vec<Column> = Vec::new();
        for column in of {
            let length = self.length(column);
            match over.iter().position(|&other| self.length(other) == length) {
                Some(k) => over[k] = self.binary(Binary::Add, over[k], column),
                None => over.push(column),
            }
        }
        self.reduce(Reduction::Sum, over)
    }

    fn parameter(&mut self, which: Parameter) -> Column {
        self.mechanics.columns.parameter(self.parameters.of_parameter(which))
    }

    fn mass_is_diagonal(&self) -> bool {
        self.parameters.mass_is_diagonal()
    }

    fn momenta(&self) -> Vec<StridedFamily> {
        let n = self.mechanics.degrees();
        self.mechanics.state[n..2 * n].to_vec()
    }

    fn ask(&mut self, asked: Asked, t: Column, x: &[Column]) -> Vec<Column> {
        let mechanics = &mut self.mechanics;
        let (behind, degrees) = (x, mechanics.degrees());
        let along = || behind.split_at(behind.len() - degrees);
        match asked {
            Asked::Field => {
                let (rates, slopes) = (mechanics.gradient(t, x, true), mechanics.slope(t, x));
                let forces = self.negative(slopes);
                [rates, forces].concat()
            }
            Asked::Slope => mechanics.slope(t, x),
            Asked::Force if mechanics.apart => mechanics.acting(t, x).unwrap_or_default(),
            Asked::Force | Asked::Friction => Vec::new(),
            Asked::Power => {
                let (x, v) = x.split_at(2 * degrees);
                mechanics.power(t, x, v)
            }
            Asked::Velocity => mechanics.gradient(t, x, true),
            Asked::Energy => mechanics.energies(t, x),
            Asked::Constraints => mechanics.constraints(t, x),
            Asked::Hidden => mechanics.hidden_constraints(t, x),
            Asked::Reaction => unreachable!("rolling constraints are unrolled"),
            Asked::HiddenField => {
                let (x, a) = x.split_at(2 * degrees);
                mechanics.hidden_field(t, x, a)
            }
            Asked::ConstraintRates => {
                let (x, rate) = x.split_at(2 * degrees);
                mechanics.constraint_rates(t, x, rate)
            }
            Asked::HiddenRates => {
                let (x, rate) = x.split_at(2 * degrees);
                mechanics.hidden_rates(t, x, rate)
            }
            Asked::ConstraintSizes => mechanics.constraint_sizes(t, x, false),
            Asked::HiddenSizes => mechanics.constraint_sizes(t, x, true),
            Asked::Second | Asked::StiffSecond => {
                let (x, v) = along();
                mechanics.hessian_times(asked == Asked::StiffSecond, t, x, v)
            }
            Asked::Gradient | Asked::Brackets => {
                unreachable!("steps of Poisson systems are unrolled")
            }
            Asked::Third => {
                let (x, v) = along();
                mechanics.third_times(t, x, v)
            }
        }
    }

    fn reached(&self, roots: &[Column]) -> FxHashSet<Column> {
        self.mechanics.columns.reached(roots)
    }

    fn depends(&self, column: Column, others: &[Column]) -> bool {
        self.mechanics.columns.depends(column, others)
    }

    /// Substitute of a column; for a reduced number it is the reduced number of the substituted
    /// columns.
    fn substituted(&mut self, column: Column, replaced: &mut FxHashMap<Column, Column>) -> Column {
        let Some(Reduced { how, over, .. }) =
            self.reduced.iter().find(|reduced| reduced.input == column).cloned()
        else {
            return self.mechanics.columns.substituted(column, replaced);
        };
        let others: Vec<Column> = over
            .iter()
            .map(|&column| self.mechanics.columns.substituted(column, replaced))
            .collect();
        if others == over { column } else { self.reduce(how, others) }
    }

    fn explicit(&mut self, residual: Column, u: Column, _alone: bool) -> Option<Column> {
        let columns = &self.mechanics.columns;
        let Definition::Binary(Binary::Add, a, minus) = columns.definition(residual) else {
            return None;
        };
        (a == u && !columns.depends(minus, &[u])).then(|| self.unary(Unary::Neg, minus))
    }

    fn diagonal(&mut self, _: &[Column]) {
        // The derivatives are those of the rows, as for all equations.
    }

    fn differentiated(&mut self, residuals: &[Column], unknowns: &[Column]) -> ((), bool) {
        let columns = &self.mechanics.columns;
        ((), residuals.iter().all(|&residual| columns.is_linear(residual, unknowns)))
    }
}

impl CompositeFunctions for ColumnSymbols {
    fn constraint_field(
        space: &mut StepRecorder<Self>,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let columns =
            |values: &[Value]| values.iter().map(|&value| Self::symbol(value)).collect::<Vec<_>>();
        let forces = space.symbols.mechanics.constraint_forces(
            Self::symbol(t),
            &columns(x),
            &columns(lambda),
        );
        let still = vec![space.symbols.constant(0.0); forces.len()];
        let forces = space.symbols.negative(forces);
        still.into_iter().chain(forces).map(Self::value).collect()
    }

    /// Kick, as the constraints are on positions only.
    fn slide(
        space: &mut StepRecorder<Self>,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let moved = Self::constraint_field(space, t, x, lambda);
        x.iter().zip(moved).map(|(&x, step)| space.sum(x, step)).collect()
    }

    fn flow(_: &mut StepRecorder<Self>, _: Part, _: Value, _: Value, _: &[Value]) -> Vec<Value> {
        unreachable!("{NO_FLOWS}")
    }

    fn split(_: &mut StepRecorder<Self>, _: &[Value]) -> Vec<Value> {
        unreachable!("{NO_FLOWS}")
    }

    fn nearness(space: &mut StepRecorder<Self>, _: &[Value]) -> Value {
        Self::value(space.symbols.constant(0.0))
    }

    fn joined(_: &mut StepRecorder<Self>, _: &[Value]) -> Vec<Value> {
        unreachable!("{NO_FLOWS}")
    }

    fn kick(_: &mut StepRecorder<Self>, _: Value, _: &[Value]) -> Vec<Value> {
        unreachable!("{NO_FLOWS}")
    }

    fn body(_: &mut StepRecorder<Self>, _: &[Value]) -> Body {
        unreachable!("{NO_BODY}")
    }

    fn state_of(_: &mut StepRecorder<Self>, _: &Body) -> Vec<Value> {
        unreachable!("{NO_BODY}")
    }

    fn inertia(_: &mut StepRecorder<Self>, _: bool) -> [Vector; 3] {
        unreachable!("{NO_BODY}")
    }

    fn torque(_: &mut StepRecorder<Self>, _: Value, _: &Body) -> Vector {
        unreachable!("{NO_BODY}")
    }
}
