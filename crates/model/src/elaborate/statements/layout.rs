//! Places of parameters and variables among the numbers of a model.

use super::CheckedFormulas;
use crate::elaborate::expression;
use crate::elaborate::lower::{self, MOST_NUMBERS};
use crate::elaborate::model::{Family, Parameter};
use crate::elaborate::{CheckedFormula, Elaborator, VariableRole};
use crate::syntax::diagnostic::Diagnostic;

/// Places of all parameters and variables.
pub(super) struct ModelLayout {
    /// Parameters in the file's order.
    pub(super) parameters: Vec<Parameter>,
    /// Number of parameter values.
    pub(super) values: usize,
    /// Families of the variables, in the file's order.
    pub(super) families: Vec<Family>,
    /// Variables in the model's order: positions, then momenta in the order of their coordinates;
    /// or states.
    pub(super) order: Vec<usize>,
    /// Number in the model and first component, for each variable of the file.
    pub(super) place: Vec<(usize, usize)>,
    /// Length of the state, and number of positions in it.
    pub(super) dimension: usize,
    pub(super) degrees: usize,
    /// Place of the work of the forces, the last number of the state.
    pub(super) work: Option<usize>,
}

impl ModelLayout {
    /// Name of a parameter value.
    pub(super) fn parameter_name(&self, place: usize) -> String {
        Parameter::value_name(&self.parameters, place)
    }
}

impl Elaborator<'_> {
    /// Places of all parameters and variables; `None` if there are too many.
    pub(super) fn places(&mut self, formulas: &CheckedFormulas) -> Option<ModelLayout> {
        let mut parameters = Vec::new();
        let mut values = 0;
        for entry in &self.parameters {
            let family = entry.family.clone()?;
            let (len, span) = (family.len(), family.span);
            parameters.push(Parameter { family, first: values });
            values += len;
            if values > MOST_NUMBERS {
                return self.refuse(lower::too_many_numbers(values, span));
            }
        }
        let order = self.model_order();
        let mut place = vec![(0, 0); self.variables.len()];
        let mut dimension = 0;
        for (number, &v) in order.iter().enumerate() {
            place[v] = (number, dimension);
            let family = self.variables[v].family.as_ref()?;
            dimension += family.len();
            if dimension > MOST_NUMBERS {
                return self.refuse(lower::too_many_numbers(dimension, family.span));
            }
        }
        if dimension == 0 {
            let span = self.variables[order[0]].span;
            let message = "the model has no variables: every family is empty";
            return self.refuse(Diagnostic::error(message, span, "an empty range"));
        }
        let families = self.variables.iter().map(|v| v.family.clone()).collect::<Option<_>>()?;
        let degrees = if self.is_canonical() { dimension / 2 } else { 0 };
        // Constraints that move do work, too: that of the forces alone balances nothing then.
        let moves = |c: &CheckedFormula| c.value.depends & expression::TIME != 0;
        let keeps_account = !formulas.forces.is_empty() && !formulas.constraints.iter().any(moves);
        let work = keeps_account.then_some(dimension);
        dimension += usize::from(keeps_account);
        Some(ModelLayout { parameters, values, families, order, place, dimension, degrees, work })
    }

    /// Variables in the order of the model.
    fn model_order(&self) -> Vec<usize> {
        let all = 0..self.variables.len();
        let is_momentum =
            |v: &usize| matches!(self.variables[*v].role, VariableRole::Momentum { .. });
        let mut order: Vec<usize> = all.clone().filter(|v| !is_momentum(v)).collect();
        for k in 0..order.len() {
            let is_conjugate = |m: &usize| matches!(self.variables[*m].role, VariableRole::Momentum { of, .. } if of == order[k]);
            let momentum = all.clone().find(is_conjugate);
            order.extend(momentum);
        }
        order
    }
}
