//! The random numbers of steps: made for a step before it, so that they depend on its number, on the trajectory and on the
//! component alone.

use super::recorder::Drawn;
use holonome_integrate::noise::{Noise, STREAMS};
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

    /// Puts the uniform numbers of the next step of every lane, whose noise this is, into what the lanes carry.
    pub fn put(&self, noise: &[Noise], carried: &mut [f64]) {
        let lanes = noise.len();
        for (group, first) in noise.chunks(STREAMS).zip((0..).step_by(STREAMS)) {
            let mut steps = [0; STREAMS];
            for (lane, step) in steps[..group.len()].iter_mut().enumerate() {
                *step = carried[self.drawn.number * lanes + first + lane] as u64;
            }
            // Two components share two numbers, from which one takes the cosine and the other the sine.
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
