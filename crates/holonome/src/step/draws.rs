//! Random numbers of steps. They are drawn for a step before it is made, and depend on its number,
//! on the trajectory and on the component alone.

use super::recorder::Drawn;
use holonome_integrate::noise::{Noise, STREAMS};
use holonome_model::elaborate::model::{HeatBath, Model};

/// Random numbers that a step takes, and their places.
#[derive(Clone)]
pub struct Draws {
    drawn: Drawn,
    seed: u64,
    /// Place of the trajectory's number among the parameters.
    trajectory: usize,
}

/// First variable for steps; the ones before it belong to random initial values.
const FIRST_VARIABLE: u32 = 1;

impl Draws {
    /// Draws for the steps that have recorded `drawn` over this model.
    pub fn new(drawn: Option<Drawn>, model: &Model) -> Option<Draws> {
        let HeatBath { seed, trajectory, .. } = **model.heat_bath.as_ref()?;
        Some(Draws { drawn: drawn?, seed, trajectory })
    }

    /// Random numbers of the trajectory that has these parameters.
    pub fn noise(&self, parameters: &[f64]) -> Noise {
        Noise::new(self.seed, parameters[self.trajectory] as u32)
    }

    /// Put the uniform numbers of every lane's next step into the carried numbers; `noise` holds
    /// the random numbers of each lane.
    pub fn put(&self, noise: &[Noise], carried: &mut [f64]) {
        let lanes = noise.len();
        for (group, first) in noise.chunks(STREAMS).zip((0..).step_by(STREAMS)) {
            let mut steps = [0; STREAMS];
            for (lane, step) in steps[..group.len()].iter_mut().enumerate() {
                *step = carried[self.drawn.number * lanes + first + lane] as u64;
            }
            // Two components share two numbers: one takes the cosine, the other the sine.
            let (mut known, mut pairs) = (None, [(0.0, 0.0); STREAMS]);
            for ([u, v], family) in &self.drawn.uniform {
                for member in 0..family.length {
                    let component = family.first + member * family.stride;
                    let variable = FIRST_VARIABLE + component / 2;
                    if known.replace(variable) != Some(variable) {
                        pairs = Noise::uniform_pairs(group, &steps[..group.len()], variable);
                    }
                    let turned = if component.is_multiple_of(2) { 0.0 } else { 0.25 };
                    let [u, v] = [u, v].map(|place| (place + member as usize) * lanes + first);
                    for (lane, (radius, angle)) in pairs[..group.len()].iter().enumerate() {
                        (carried[u + lane], carried[v + lane]) = (*radius, angle - turned);
                    }
                }
            }
        }
    }
}
