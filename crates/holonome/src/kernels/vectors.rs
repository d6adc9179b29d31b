//! Vectors of a model's state, with their masses.

use super::bound::{Parametric, compile_rows};
use holonome_integrate::scales::{Role, Vectors};
use holonome_model::elaborate::model::{self, Dynamics, Model, Variable};
use holonome_model::graph::interpret::Interpreter;
use holonome_model::rows::{BLOCK, RowKernel, RowProgram};
use std::sync::Arc;

/// Vectors of a model's state: every member of a variable is a vector, or a matrix.
#[derive(Debug)]
pub struct StateVectors {
    /// Vectors, in the order of the state.
    pub vectors: Vectors,
    /// Variables, with the first vector of each.
    variables: Vec<(usize, Variable)>,
    /// Σ ∂²H/∂p_i² over the components of every vector of momenta.
    curvature: Option<RowProgram>,
}

impl StateVectors {
    /// Vectors of `model`.
    pub fn of(model: &Model) -> Arc<StateVectors> {
        let (mut vectors, mut variables) = (Vectors::default(), Vec::new());
        for variable in &model.variables {
            let role = match variable.role {
                model::Role::Coordinate => Role::Position,
                model::Role::Momentum(_) => Role::Momentum,
                model::Role::State => Role::Other,
                model::Role::Work => Role::Beside,
            };
            variables.push((vectors.count(), variable.clone()));
            vectors.push(role, variable.family.members(), variable.family.shape.len());
        }
        let curvature = match &model.dynamics {
            Dynamics::Hamiltonian(h, _) => {
                // Momenta are in the order of their coordinates.
                let (degrees, count) = (model.degrees(), vectors.count() / 2);
                let target =
                    |component: u32| (vectors.vector_of(component as usize) - count) as u32;
                let pieces = RowProgram::momentum_curvature(h, degrees, &target);
                Some(RowProgram::new(model.dimension(), count, pieces))
            }
            Dynamics::Field(_) => None,
        };
        Arc::new(StateVectors { vectors, variables, curvature })
    }

    /// These vectors, a tangent vector with the same ones, and `more` numbers.
    pub fn with_tangents(&self, more: usize) -> Arc<StateVectors> {
        let (mut vectors, mut variables) = (self.vectors.clone(), self.variables.clone());
        for (_, variable) in &self.variables {
            variables.push((vectors.count(), variable.clone()));
            vectors.push(Role::Other, variable.family.members(), variable.family.shape.len());
        }
        vectors.push(Role::Other, more, 1);
        Arc::new(StateVectors { vectors, variables, curvature: None })
    }

    /// Vector to which each component belongs.
    pub fn vector_of(&self) -> Vec<usize> {
        (0..self.vectors.count())
            .flat_map(|k| self.vectors.components_of(k).map(move |_| k))
            .collect()
    }

    /// 1/m of every vector of positions of `model` at its start, summed over its components; empty
    /// if it has no masses.
    pub fn inverse_masses(&self, model: &Model) -> Vec<f64> {
        let Some(program) = &self.curvature else { return Vec::new() };
        let kernel = RowKernel::of_parts(
            vec![program.clone()],
            &model.parameter_values,
            &Interpreter,
            BLOCK,
        );
        let mut inverse = vec![0.0; program.outputs];
        kernel.run(model.t0, &model.initial, &mut inverse, &mut vec![0.0; kernel.work_len()]);
        inverse
    }

    /// Ratio of the largest mass of `model` at its start to the smallest one; 1 if it has no
    /// masses.
    pub fn mass_ratio(&self, model: &Model) -> f64 {
        let inverse = self.inverse_masses(model);
        let masses = inverse.iter().filter(|inverse| **inverse > 0.0 && inverse.is_finite());
        let (least, most) = masses
            .fold((f64::INFINITY, 0.0f64), |(a, b), &inverse| (a.min(inverse), b.max(inverse)));
        if most > 0.0 { most / least } else { 1.0 }
    }

    /// Name of a vector, such as `r[2]`.
    pub fn name(&self, vector: usize) -> String {
        let (first, variable) =
            &self.variables[self.variables.partition_point(|(first, _)| *first <= vector) - 1];
        variable.family.member_name(vector - first)
    }
}

/// Masses of a state's vectors: 1/m is the mean of ∂²H/∂p² over the components of a momentum.
#[derive(Clone)]
pub struct Masses {
    state: Arc<StateVectors>,
    curvature: Option<RowKernel>,
}

impl Parametric for Masses {
    fn rebind(&mut self, parameters: &[f64]) {
        self.curvature.rebind(parameters);
    }
}

impl Masses {
    /// Masses for these parameters.
    pub fn new(state: &Arc<StateVectors>, parameters: &[f64]) -> Masses {
        let curvature = state.curvature.as_ref().map(|program| compile_rows(program, parameters));
        Masses { state: Arc::clone(state), curvature }
    }

    /// Vectors of the state.
    pub fn vectors(&self) -> &Vectors {
        &self.state.vectors
    }

    /// Name of a vector.
    pub fn vector_name(&self, vector: usize) -> String {
        self.state.name(vector)
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        self.curvature.as_ref().map_or(0, RowKernel::work_len)
    }

    /// True if they depend on the state or on time.
    pub fn move_along(&self) -> bool {
        self.state.curvature.as_ref().is_some_and(RowProgram::moves)
    }

    /// Compute the mass of every vector at (t, x), 0 if a momentum has none.
    pub fn at(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        let Some(kernel) = &self.curvature else {
            masses.fill(0.0);
            return;
        };
        let (positions, momenta) = masses.split_at_mut(masses.len() / 2);
        kernel.run(t, x, positions, work);
        for (vector, (position, momentum)) in positions.iter_mut().zip(momenta).enumerate() {
            let mass = self.state.vectors.components_of(vector).len() as f64 / *position;
            *position = if mass > 0.0 && mass.is_finite() { mass } else { 0.0 };
            *momentum = *position;
        }
        let pairs = masses.len() / 2;
        masses[2 * pairs..].fill(0.0); // those beside the phase space have none
    }
}
