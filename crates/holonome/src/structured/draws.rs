//! The random numbers of steps: made for a step before it, so that they depend on its number, on the trajectory and on the
//! component alone.

use super::recorder::Drawn;
use holonome_integrate::noise::Noise;
use holonome_model::elaborate::model::{HeatBath, Model};

/// Which random numbers a step takes, and where it finds them.
#[derive(Clone)]
pub struct Draws {
    drawn: Drawn,
    seed: u64,
    /// Place of the number of the trajectory among the parameters.
    trajectory: usize,
}

/// The first variables belong to random initial values.
const FIRST_VARIABLE: u32 = 1;

impl Draws {
    /// For the steps that have recorded them over this model.
    pub fn new(drawn: Option<Drawn>, model: &Model) -> Option<Draws> {
        let HeatBath { seed, trajectory, .. } = **model.heat_bath.as_ref()?;
        Some(Draws { drawn: drawn?, seed, trajectory })
    }

    /// The numbers of the trajectory that has these parameters.
    pub fn noise(&self, parameters: &[f64]) -> Noise {
        Noise::new(self.seed, parameters[self.trajectory] as u32)
    }

    /// Puts the uniform numbers of the next step of one of `lanes` lanes into what it carries.
    pub fn put(&self, noise: &Noise, carried: &mut [f64], (lanes, lane): (usize, usize)) {
        let step = carried[self.drawn.number * lanes + lane] as u64;
        for ([u, v], family) in &self.drawn.uniform {
            // Two components share two numbers, from which one takes the cosine and the other the sine.
            let mut known = None;
            for member in 0..family.length {
                let component = family.first + member * family.stride;
                let variable = FIRST_VARIABLE + component / 2;
                let (radius, angle) = match known {
                    Some((of, pair)) if of == variable => pair,
                    _ => noise.uniform_pair(step, variable),
                };
                known = Some((variable, (radius, angle)));
                carried[(u + member as usize) * lanes + lane] = radius;
                carried[(v + member as usize) * lanes + lane] =
                    if component.is_multiple_of(2) { angle } else { angle - 0.25 };
            }
        }
    }
}
