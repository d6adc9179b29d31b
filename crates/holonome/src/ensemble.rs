//! Differences between the trajectories of an ensemble, and their random numbers.

use crate::error::Error;
use holonome_integrate::noise::Noise;
use holonome_model::elaborate::expression::Draw;
use holonome_words::option;

/// Maximum number of trajectories: each has its own stream of random numbers.
const MOST_TRAJECTORIES: u64 = 1 << 32;

/// Variations between the trajectories of an ensemble (`--vary`), and their number.
pub(crate) struct Ensemble<'a> {
    pub vary: &'a [(String, String)],
    pub trajectories: u64,
}

impl<'a> Ensemble<'a> {
    /// One trajectory, as in the file.
    pub const ONE: Ensemble<'static> = Ensemble { vary: &[], trajectories: 1 };

    pub fn new(vary: &'a [(String, String)], trajectories: u64) -> Result<Ensemble<'a>, Error> {
        match trajectories {
            0 => Err(Error::option(format!(
                "{trajectories}: there must be at least one",
                trajectories = option("trajectories")
            ))),
            1..=MOST_TRAJECTORIES => Ok(Ensemble { vary, trajectories }),
            n => Err(Error::option(format!(
                "{trajectories}: {n} is more than the limit of {MOST_TRAJECTORIES}",
                trajectories = option("trajectories")
            ))),
        }
    }
}

/// Random number `count` (from 1) of a trajectory, independent of the rest of the model.
pub(crate) fn drawn(noise: &Noise, count: u64, which: Draw) -> f64 {
    match which {
        Draw::Normal => noise.normal(count, 0),
        Draw::Uniform => noise.uniform(count, 0),
    }
}
