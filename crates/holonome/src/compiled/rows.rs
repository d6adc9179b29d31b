//! A large model as a system of the numeric half: one kernel for each template, run over its rows.

use super::group;
use super::pull::Pull;
use super::vectors::{Masses, StateVectors};
use crate::backend::backend;
use holonome_integrate::scales::Vectors;
use holonome_integrate::system::{Invariants, System};
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use holonome_model::templated::RowField;
use std::sync::Arc;

/// A program compiled for these parameters by the backend of this process.
pub fn compile_rows(program: &RowProgram, parameters: &[f64]) -> RowKernel {
    compile_parts(vec![program.clone()], parameters)
}

/// Programs that are run one after the other within one array.
pub fn compile_parts(programs: Vec<RowProgram>, parameters: &[f64]) -> RowKernel {
    RowKernel::of_parts(programs, parameters, backend(), BLOCK)
}

/// The field of a large model with constraints, extended off the set where they hold.
pub trait ExtendedField: Send + Sync {
    /// X(t, x), NaN where it has none.
    fn at(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]);

    /// Scratch needed.
    fn work_len(&self) -> usize;

    /// The same with other parameters.
    fn rebound(&self, parameters: &[f64]) -> Arc<dyn ExtendedField>;
}

/// A [`RowField`] compiled.
pub struct RowSystem {
    field: RowKernel,
    values: RowKernel,
    jacobian: RowKernel,
    dimension: usize,
    parameters: usize,
    masses: Masses,
    invariants: Arc<Invariants>,
    /// Of a model with constraints the extended field, if that is wanted.
    extended: Option<Arc<dyn ExtendedField>>,
    /// The term of feedback.
    pull: Option<Pull>,
}

impl RowSystem {
    /// Compiles `field` for these parameters; what stands behind the model's own is left alone. The field of a model with
    /// constraints is X_H where no `extended` one is given, which has these parameters.
    pub fn new(
        field: &RowField,
        vectors: &Arc<StateVectors>,
        parameters: &[f64],
        extended: Option<Arc<dyn ExtendedField>>,
    ) -> RowSystem {
        let parameters = &parameters[..field.parameters];
        let invariants = Invariants {
            count: field.count(),
            row_start: field.row_start.clone(),
            column: field.column.clone(),
            constraints: field.constraints,
            groups: field.groups.iter().map(group).collect(),
        };
        RowSystem {
            extended,
            pull: None,
            field: compile_rows(&field.field.in_columns(&field.layout), parameters),
            values: compile_rows(&field.invariants.in_columns(&field.layout), parameters),
            jacobian: compile_rows(&field.jacobian.in_columns(&field.layout), parameters),
            dimension: field.dimension,
            parameters: field.parameters,
            masses: Masses::new(vectors, parameters),
            invariants: Arc::new(invariants),
        }
    }

    /// The same system with the Gauss–Newton form of feedback, whose `parameters` follow those of the model.
    pub fn with_pull(mut self, state: &Arc<StateVectors>, parameters: &[f64]) -> RowSystem {
        self.pull = Some(Pull::new(&self.invariants, state, self.parameters, parameters));
        self
    }

    /// The same system with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> RowSystem {
        let pull = self.pull.as_ref().map(|pull| pull.rebound(parameters));
        let parameters = &parameters[..self.parameters];
        RowSystem {
            pull,
            field: self.field.rebound(parameters),
            values: self.values.rebound(parameters),
            jacobian: self.jacobian.rebound(parameters),
            masses: self.masses.rebound(parameters),
            invariants: Arc::clone(&self.invariants),
            extended: self.extended.as_ref().map(|extended| extended.rebound(parameters)),
            ..*self
        }
    }

    /// Gives the kernels of F and DF other parameters, and no other kernel.
    pub fn rebind_invariants(&mut self, parameters: &[f64]) {
        self.values.rebind(&parameters[..self.parameters]);
        self.jacobian.rebind(&parameters[..self.parameters]);
    }

    /// Gives the kernels of the field other parameters.
    pub fn rebind_motion(&mut self, parameters: &[f64]) {
        let parameters = &parameters[..self.parameters];
        self.field.rebind(parameters);
        self.extended = self.extended.as_ref().map(|extended| extended.rebound(parameters));
    }

    /// Gives the masses other parameters.
    pub fn rebind_masses(&mut self, parameters: &[f64]) {
        self.masses.rebind(&parameters[..self.parameters]);
    }

    /// The field, with the term of feedback if that is `pulled`.
    fn field_with(&self, pulled: bool, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        match &self.extended {
            Some(extended) => extended.at(t, x, dx, work),
            None => self.field.run(t, x, dx, work),
        }
        let Some(pull) = self.pull.as_ref().filter(|_| pulled) else { return };
        let (values, work) = work.split_at_mut(self.invariants.count);
        let (jacobian, work) = work.split_at_mut(self.invariants.nonzeros());
        self.values.run(t, x, values, work);
        self.jacobian.run(t, x, jacobian, work);
        pull.subtract(&self.invariants, (values, jacobian), dx, work);
    }

    /// The longest way along `v`, in units of it, on which no family of vectors moves by more than its size; infinite where
    /// no family that moves has a size. Every family has units of its own.
    fn way(&self, x: &[f64], v: &[f64]) -> f64 {
        let vectors = self.masses.vectors();
        let ways = vectors.families().iter().map(|family| {
            let all = family.vectors.clone().flat_map(|vector| vectors.components_of(vector));
            let (size, speed) = all.fold((0.0f64, 0.0f64), |(a, b), i| (a.max(x[i].abs()), b.max(v[i].abs())));
            if size > 0.0 && speed > 0.0 { size / speed } else { f64::INFINITY }
        });
        ways.fold(f64::INFINITY, f64::min)
    }
}

impl System for RowSystem {
    fn dim(&self) -> usize {
        self.dimension
    }

    fn work_len(&self) -> usize {
        let kernels = [&self.field, &self.values, &self.jacobian].map(RowKernel::work_len);
        let kernels = kernels.into_iter().fold(0, usize::max);
        let extended = self.extended.as_ref().map_or(0, |extended| extended.work_len());
        let pull = self.pull.as_ref().map(Pull::work_len);
        let pull = pull.map_or(0, |pull| self.invariants.count + self.invariants.nonzeros() + pull);
        (kernels + pull).max(self.masses.work_len()).max(extended) + 2 * self.dimension
    }

    fn vector_name(&self, vector: usize) -> String {
        self.masses.vector_name(vector)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field_with(true, t, x, dx, work);
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        // X_H alone is not the motion where there are constraints.
        let known = self.extended.is_some() || self.invariants.constraints == 0;
        if known {
            self.field_with(false, t, x, dx, work);
        }
        known
    }

    fn vectors(&self) -> &Vectors {
        self.masses.vectors()
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.masses.at(t, x, masses, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.values.run(t, x, f, work);
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.jacobian.run(t, x, values, work);
    }

    /// By a central difference over eps^⅓ of the way on which a family of vectors moves by its size, whose error is of the
    /// order of eps^⅔ ≈ 4e-11 of the field's scale: no step needs it, and a pilot run wants a few digits. NaN where nothing
    /// has a size.
    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        if v.iter().all(|v| *v == 0.0) {
            out.fill(0.0);
            return;
        }
        let step = f64::EPSILON.cbrt() * self.way(x, v);
        let (point, work) = work.split_at_mut(self.dimension);
        let (behind, work) = work.split_at_mut(self.dimension);
        let mut at = |step: f64, dx: &mut [f64]| {
            for (point, (x, v)) in point.iter_mut().zip(x.iter().zip(v)) {
                *point = v.mul_add(step, *x);
            }
            self.field(t, point, dx, work);
        };
        at(step, out);
        at(-step, behind);
        for (out, behind) in out.iter_mut().zip(behind) {
            *out = (*out - *behind) / (2.0 * step);
        }
    }
}

#[cfg(test)]
mod tests;
