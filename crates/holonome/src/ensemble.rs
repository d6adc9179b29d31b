//! Differences between the trajectories of an ensemble, and their random numbers.

use crate::error::Error;
use crate::options::SweepOptions;
use holonome_integrate::noise::Noise;
use holonome_model::elaborate::expression::Draw;
use holonome_words::option;
use std::sync::Arc;

/// Maximum number of trajectories: each has its own stream of random numbers.
const MOST_TRAJECTORIES: u64 = 1 << 32;

/// Variations between the trajectories of an ensemble (`--vary`, `--each`), and their number.
pub(crate) struct Ensemble<'a> {
    pub vary: &'a [(String, String)],
    /// Values given as numbers: a row for each trajectory, or none if they come later.
    pub each: Vec<(&'a str, Option<&'a Arc<[f64]>>)>,
    pub trajectories: u64,
}

impl<'a> Ensemble<'a> {
    /// One trajectory, as in the file.
    pub const ONE: Ensemble<'static> = Ensemble { vary: &[], each: Vec::new(), trajectories: 1 };

    pub fn new(sweep: &'a SweepOptions) -> Result<Ensemble<'a>, Error> {
        let SweepOptions { vary, each, trajectories, .. } = sweep;
        match *trajectories {
            0 => {
                let trajectories = option("trajectories");
                Err(Error::option(format!("{trajectories}: there must be at least one")))
            }
            n if n > MOST_TRAJECTORIES => Err(Error::option(format!(
                "{trajectories}: {n} is more than the limit of {MOST_TRAJECTORIES}",
                trajectories = option("trajectories")
            ))),
            trajectories => {
                if let Some((name, numbers)) =
                    each.iter().find(|(_, numbers)| rows(numbers, trajectories).is_none())
                {
                    return Err(Error::option(format!(
                        "{}: {} numbers are not the same number for each of {trajectories} trajectories",
                        option("each").with(name),
                        numbers.len()
                    )));
                }
                let each = each.iter().map(|(name, rows)| (name.as_str(), Some(rows))).collect();
                Ok(Ensemble { vary, each, trajectories })
            }
        }
    }

    /// One trajectory, whose values of these names are given later.
    pub fn given_later<'n>(names: &'n [&str]) -> Ensemble<'n> {
        let each = names.iter().map(|name| (*name, None)).collect();
        Ensemble { vary: &[], each, trajectories: 1 }
    }

    /// The numbers of the first trajectory for each value that is given as numbers, if they are
    /// known.
    pub fn first(&self) -> impl Iterator<Item = (&str, Option<Vec<f64>>)> {
        self.each.iter().map(|(name, numbers)| {
            let first = numbers
                .map(|numbers| numbers[..numbers.len() / self.trajectories as usize].to_vec());
            (*name, first)
        })
    }
}

/// Length of the rows of `numbers`, one for each trajectory; `None` if they are of no one length.
fn rows(numbers: &[f64], trajectories: u64) -> Option<usize> {
    let count = usize::try_from(trajectories).ok()?;
    numbers.len().is_multiple_of(count).then_some(numbers.len() / count)
}

/// Random number `count` (from 1) of a trajectory, independent of the rest of the model.
pub(crate) fn drawn(noise: &Noise, count: u64, which: Draw) -> f64 {
    match which {
        Draw::Normal => noise.normal(count, 0),
        Draw::Uniform => noise.uniform(count, 0),
    }
}
