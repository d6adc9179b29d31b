//! A large model as a system of the numeric half: one kernel for each template, run over its rows.

use super::group;
use super::vectors::{Masses, StateVectors};
use crate::backend::backend;
use holonome_integrate::constraint_forces::ConstraintForces;
use holonome_integrate::scales::Vectors;
use holonome_integrate::system::{Invariants, System};
use holonome_model::rows::{BLOCK, RowField, RowKernel, RowProgram};
use std::sync::Arc;

/// A program compiled for these parameters by the backend of this process.
pub fn compile_rows(program: &RowProgram, parameters: &[f64]) -> RowKernel {
    RowKernel::new(program, parameters, backend(), BLOCK)
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
    /// Of a model with constraints what its field has besides X_H, if that is wanted.
    forces: Option<Arc<ConstraintForces>>,
}

impl RowSystem {
    /// Compiles `field` for these parameters; what stands behind the model's own is left alone. The field of a model with
    /// constraints has their forces if it is `extended`, and is X_H otherwise.
    pub fn new(field: &RowField, vectors: &Arc<StateVectors>, parameters: &[f64], extended: bool) -> RowSystem {
        let parameters = &parameters[..field.parameters];
        let invariants = Invariants {
            count: field.count(),
            row_start: field.row_start.clone(),
            column: field.column.clone(),
            constraints: field.constraints,
            groups: field.groups.iter().map(group).collect(),
        };
        let forces = (extended && field.constraints > 0)
            .then(|| Arc::new(ConstraintForces::new(&invariants, field.dimension / 2)));
        RowSystem {
            forces,
            field: compile_rows(&field.field.in_columns(&field.layout), parameters),
            values: compile_rows(&field.invariants.in_columns(&field.layout), parameters),
            jacobian: compile_rows(&field.jacobian.in_columns(&field.layout), parameters),
            dimension: field.dimension,
            parameters: field.parameters,
            masses: Masses::new(vectors, parameters),
            invariants: Arc::new(invariants),
        }
    }

    /// The same system with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> RowSystem {
        let parameters = &parameters[..self.parameters];
        RowSystem {
            field: self.field.rebound(parameters),
            values: self.values.rebound(parameters),
            jacobian: self.jacobian.rebound(parameters),
            masses: self.masses.rebound(parameters),
            invariants: Arc::clone(&self.invariants),
            forces: self.forces.clone(),
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
        self.field.rebind(&parameters[..self.parameters]);
    }

    /// Gives the masses other parameters.
    pub fn rebind_masses(&mut self, parameters: &[f64]) {
        self.masses.rebind(&parameters[..self.parameters]);
    }
}

impl System for RowSystem {
    fn dim(&self) -> usize {
        self.dimension
    }

    fn work_len(&self) -> usize {
        let kernels = [&self.field, &self.values, &self.jacobian].map(RowKernel::work_len);
        let kernels = kernels.into_iter().fold(0, usize::max);
        let extension = self
            .forces
            .as_ref()
            .map_or(0, |forces| self.invariants.count + self.invariants.nonzeros() + forces.work_len());
        kernels.max(self.masses.work_len()) + extension + 2 * self.dimension
    }

    fn vector_name(&self, vector: usize) -> String {
        self.masses.vector_name(vector)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(t, x, dx, work);
        if let Some(forces) = &self.forces {
            let (values, work) = work.split_at_mut(self.invariants.count);
            let (jacobian, work) = work.split_at_mut(self.invariants.nonzeros());
            self.values.run(t, x, values, work);
            self.jacobian.run(t, x, jacobian, work);
            forces.add(&self.invariants, values, jacobian, dx, work);
        }
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        // X_H alone is not the motion where there are constraints.
        let known = self.forces.is_some() || self.invariants.constraints == 0;
        if known {
            self.field(t, x, dx, work);
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

    /// By a central difference over ε (1 + |x|)/|v| with ε = eps^⅓, whose error is of the order of eps^⅔ ≈ 4e-11 of
    /// the field's scale: no step needs it, and a pilot run wants a few digits.
    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let size = length(v);
        if size == 0.0 {
            out.fill(0.0);
            return;
        }
        let step = f64::EPSILON.cbrt() * (1.0 + length(x)) / size;
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
