//! Rigid body recognised from the model's formulas: its attitude R in SO(3), its angular momentum Π
//! = I Ω in its own frame, and the torque.
//!
//! A Hamiltonian model holds R and its momentum P, with H = ½ tr(P J⁻¹ Pᵀ) + V(R, t) on RᵀR = 1:
//! then P = R Ω̂ J, and I = tr J − J. A `state` model holds R and a vector w with R' = R hat(C w),
//! C diagonal, and Euler's equations for the principal axes; or w alone. They determine I up to a
//! factor, on which no method depends.
//!
//! [`recognition`] finds all that in the formulas.

mod recognition;

use super::formula_space::FormulaSpace;
use crate::kernels::Formula;
use holonome_integrate::phase_space::{Asked, Body, PhaseSpace, Value, Vector};
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::mechanics::Mechanics;

/// Formulas of a rigid body.
pub struct RigidBody {
    /// First component of R; `None` for a model without R.
    attitude: Option<usize>,
    /// First component of P, or of w.
    second: usize,
    /// Relation of P or w to Ω.
    carrier: Carrier,
    /// I, then I⁻¹, row by row.
    inertia: Formula,
    /// Reason why rotations about the axes are not its motion; `None` if they are.
    obstacle: Option<String>,
}

enum Carrier {
    /// P = R Ω̂ J, with J row by row.
    Momentum(Formula),
    /// Ω = C w, with the diagonal of C.
    Velocity(Formula),
}

impl RigidBody {
    /// Rigid body of `mechanics`.
    ///
    /// # Errors
    /// Names the formula that is not one of a rigid body.
    pub fn new(mechanics: &Mechanics, model: &Model) -> Result<RigidBody, String> {
        recognition::rigid_body(mechanics, model)
    }

    /// The body, if it is free, in the frame of its principal axes.
    ///
    /// # Errors
    /// Says why it is not.
    pub fn free(self) -> Result<RigidBody, String> {
        match self.obstacle {
            Some(reason) => Err(reason),
            None => Ok(self),
        }
    }

    /// Body of the state x.
    pub fn body(&self, space: &mut dyn FormulaSpace, x: &[Value]) -> Body {
        let attitude = self.attitude.map_or(Vec::new(), |first| rows(&x[first..first + 9]));
        let momentum = self.momentum(space, &attitude, &x[self.second..]);
        Body { attitude, momentum }
    }

    /// State of a body.
    pub fn state_of(&self, space: &mut dyn FormulaSpace, body: &Body) -> Vec<Value> {
        let second = self.carried(space, &body.attitude, body.momentum);
        let mut x = vec![body.momentum[0]; second.len() + 3 * body.attitude.len()];
        for (first, list) in
            [(self.attitude.unwrap_or(0), body.attitude.as_flattened()), (self.second, &second)]
        {
            x[first..first + list.len()].copy_from_slice(list);
        }
        x
    }

    /// Π from P or w.
    fn momentum(
        &self,
        space: &mut dyn FormulaSpace,
        attitude: &[Vector],
        second: &[Value],
    ) -> Vector {
        match &self.carrier {
            Carrier::Momentum(_) => moment(space, &rows(second), attitude),
            Carrier::Velocity(scale) => {
                let (scale, inertia) = (constants(space, scale), self.matrix(space, 0));
                let omega = std::array::from_fn(|i| space.product(scale[i], second[i]));
                (space as &mut dyn PhaseSpace).transformed(&inertia, omega)
            }
        }
    }

    /// P or w from Π.
    fn carried(
        &self,
        space: &mut dyn FormulaSpace,
        attitude: &[Vector],
        momentum: Vector,
    ) -> Vec<Value> {
        let inverse = self.matrix(space, 1);
        let omega = (space as &mut dyn PhaseSpace).transformed(&inverse, momentum);
        match &self.carrier {
            Carrier::Momentum(mass) => {
                // A row r of R gives the row J (r × Ω) of R Ω̂ J.
                let mass = matrix(&constants(space, mass));
                let space = space as &mut dyn PhaseSpace;
                let row = |row: &Vector| {
                    let turned = space.cross(*row, omega);
                    space.transformed(&mass, turned)
                };
                attitude.iter().flat_map(row).collect()
            }
            Carrier::Velocity(scale) => {
                let scale = constants(space, scale);
                omega
                    .iter()
                    .zip(scale)
                    .map(|(&omega, scale)| space.quotient(omega, scale))
                    .collect()
            }
        }
    }

    /// I (0) or I⁻¹ (1).
    pub fn matrix(&self, space: &mut dyn FormulaSpace, which: usize) -> [Vector; 3] {
        let numbers = constants(space, &self.inertia);
        matrix(&numbers[9 * which..9 * which + 9])
    }

    /// Torque in the body's frame.
    pub fn torque(&self, space: &mut dyn FormulaSpace, t: Value, body: &Body) -> Vector {
        let zero = space.constant(0.0);
        let x =
            self.state_of(space, &Body { attitude: body.attitude.clone(), momentum: [zero; 3] });
        match &self.carrier {
            Carrier::Momentum(_) => {
                let upward = space.ask(Asked::Slope, t, &x);
                moment(space, &body.attitude, &rows(&upward))
            }
            Carrier::Velocity(_) => {
                let rate = space.ask(Asked::Field, t, &x);
                self.momentum(space, &body.attitude, &rate[self.second..])
            }
        }
    }
}

/// Numbers that depend on the parameters only.
fn constants(space: &mut dyn FormulaSpace, formula: &Formula) -> Vec<Value> {
    let t = space.constant(0.0);
    space.at(formula, t, &[])
}

/// Rows of a matrix.
fn rows(list: &[Value]) -> Vec<Vector> {
    list.as_chunks().0.to_vec()
}

fn matrix(list: &[Value]) -> [Vector; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| list[3 * i + j]))
}

/// Σ a × b over the rows of two matrices A and B: the vector of BᵀA − AᵀB.
fn moment(space: &mut dyn FormulaSpace, a: &[Vector], b: &[Vector]) -> Vector {
    let (zero, one) = (space.constant(0.0), space.constant(1.0));
    let space = space as &mut dyn PhaseSpace;
    a.iter().zip(b).fold([zero; 3], |sum, (&a, &b)| {
        let product = space.cross(a, b);
        space.moved_vector(sum, one, product)
    })
}
