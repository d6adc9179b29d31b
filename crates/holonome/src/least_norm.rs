//! Multipliers of redundant constraints. Equations that follow from the others leave them open: all
//! λ with the same Gᵀλ act alike. Methods impose independent equations and find one such λ, and that
//! of least norm in the constraints as stated is reported. It does not depend on which equations are
//! left out.

use crate::kernels::compile_rows;
use holonome_integrate::ensemble::{gather, scatter};
use holonome_linear::dependence::null_vectors;
use holonome_linear::gram::{Gram, Row};
use holonome_linear::pattern::Pattern;
use holonome_model::elaborate::model::{Component, Model, Quantity, Redundancy, multipliers};
use holonome_model::rows::RowKernel;
use holonome_model::templated::Differentiated;
use std::sync::Arc;

/// Part of a dependent gradient below which the share of another gradient in it is rounding.
const NO_SHARE: f64 = 1e-12;

/// Multipliers of least norm as functions of any multipliers that give the same forces, in one lane
/// or in several, each with parameters of its own.
#[derive(Clone)]
pub struct LeastNorm {
    /// Gradients of all equations as stated, in every lane.
    gradients: Vec<RowKernel>,
    parameters: Vec<Vec<f64>>,
    pattern: Arc<Pattern>,
    equations: Arc<[Equation]>,
    /// Numbers of the equations that follow from the others.
    implied: Arc<[usize]>,
    dimension: usize,
    count: usize,
}

/// A scalar equation.
struct Equation {
    /// Places of its multipliers: two for two equal entries of a symmetric matrix.
    places: Vec<usize>,
    /// Root of their number: λ² of all entries counts.
    root: f64,
}

impl LeastNorm {
    /// Multipliers of the constraints of `model`, some of which follow from the others.
    pub fn new(model: &Model, redundancy: &Redundancy) -> LeastNorm {
        let (mut equations, mut implied, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let stated = multipliers(&redundancy.stated, 0);
        for ((quantity, first), left_out) in stated.iter().zip(&redundancy.implied) {
            let width = quantity.shape.len();
            let mut left_out = left_out.iter().peekable();
            let mut own = Vec::new();
            for member in 0..quantity.members {
                for component in &quantity.components {
                    let is_this = |of: &&(usize, Component)| **of == (member, *component);
                    if left_out.next_if(is_this).is_some() {
                        implied.push(equations.len());
                    }
                    own.push(member * width + component.offset);
                    let place = |offset| first + member * width + offset;
                    equations.push(Equation {
                        places: component.offsets(quantity.shape).map(place).collect(),
                        root: component.multiplicity.sqrt(),
                    });
                }
            }
            outputs.push((&quantity.functional, own));
        }
        let Differentiated { jacobian, pattern, .. } =
            Differentiated::of(model.dimension(), outputs);
        let parameters = model.parameter_values.clone();
        let end = |&(quantity, first): &(&Quantity, usize)| first + quantity.functional.outputs;
        LeastNorm {
            gradients: vec![compile_rows(&jacobian, &parameters)],
            parameters: vec![parameters],
            pattern: Arc::new(pattern),
            equations: equations.into(),
            implied: implied.into(),
            dimension: model.dimension(),
            count: stated.last().map_or(0, end),
        }
    }

    /// Length of the state.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of multipliers: one for each component of each constraint as stated.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Copy in `lanes` lanes, all with the parameters of the first.
    pub fn in_lanes(&self, lanes: usize) -> LeastNorm {
        let gradients = vec![self.gradients[0].clone(); lanes];
        let parameters = vec![self.parameters[0].clone(); lanes];
        LeastNorm { gradients, parameters, ..self.clone() }
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        if self.parameters[lane] != parameters {
            self.parameters[lane] = parameters.to_vec();
            self.gradients[lane].rebind(parameters);
        }
    }

    /// Replace the multipliers at (t, x) in the `wanted` lanes.
    pub fn put(&self, t: &[f64], x: &[f64], wanted: impl Fn(usize) -> bool, lambda: &mut [f64]) {
        let lanes = self.gradients.len();
        let (mut at, mut own) = (vec![0.0; self.dimension], vec![0.0; self.count]);
        for lane in (0..lanes).filter(|&lane| wanted(lane)) {
            gather(x, lanes, lane, &mut at);
            gather(lambda, lanes, lane, &mut own);
            self.shorten(&self.rows(lane, t[lane], &at), &mut own);
            scatter(&own, lanes, lane, lambda);
        }
    }

    /// Gradients of the equations at (t, x), for multipliers whose squares add up to those of all
    /// entries.
    fn rows(&self, lane: usize, t: f64, x: &[f64]) -> Vec<Row> {
        let kernel = &self.gradients[lane];
        let mut entries = vec![0.0; self.pattern.nonzeros()];
        kernel.run(t, x, &mut entries, &mut vec![0.0; kernel.work_len()]);
        let rows = self.pattern.rows().zip(self.equations.iter());
        rows.map(|(row, equation)| {
            row.values(&entries).map(|(k, entry)| (k, entry * equation.root)).collect()
        })
        .collect()
    }

    /// Take from λ its part in the null space of Gᵀ.
    fn shorten(&self, rows: &[Row], lambda: &mut [f64]) {
        let null = null_vectors(rows, &self.implied, NO_SHARE);
        let mut own: Vec<f64> =
            self.equations.iter().map(|of| lambda[of.places[0]] * of.root).collect();
        let products: Vec<f64> = null.iter().map(|vector| product(vector, &own)).collect();
        let shares = Gram::new(&null, 0.0).solve(&products);
        for (vector, share) in null.iter().zip(shares) {
            vector.iter().for_each(|&(k, entry)| own[k as usize] -= share * entry);
        }
        for (equation, own) in self.equations.iter().zip(own) {
            equation.places.iter().for_each(|&place| lambda[place] = own / equation.root);
        }
    }
}

/// Product of a sparse row with a vector.
fn product(row: &Row, v: &[f64]) -> f64 {
    row.iter().map(|&(k, entry)| entry * v[k as usize]).sum()
}
