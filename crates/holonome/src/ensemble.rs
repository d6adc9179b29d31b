//! Differences between the trajectories of an ensemble, and their random numbers.

use crate::error::Error;
use crate::options::SweepOptions;
use holonome_integrate::noise::{Noise, STREAMS};
use holonome_model::elaborate::expression::Draw;
use holonome_words::option;
use std::sync::Arc;

/// Maximum number of trajectories: each has its own stream of random numbers.
const MOST_TRAJECTORIES: u64 = 1 << 32;

/// Variations between the trajectories of an ensemble (`--vary`, `--each`, `--over`), and their
/// number.
pub(crate) struct Ensemble<'a> {
    pub vary: &'a [(String, String)],
    /// Values given as numbers: of every trajectory, or none if they come later.
    pub each: Vec<(&'a str, Option<GivenNumbers>)>,
    pub trajectories: u64,
}

/// Numbers of one value for every trajectory.
#[derive(Clone)]
pub(crate) enum GivenNumbers {
    /// A row for each trajectory, of so many numbers.
    Rows(Arc<[f64]>, usize),
    /// Values of one dimension of a grid, each for so many trajectories in a row.
    Axis(Arc<[f64]>, u64),
}

impl GivenNumbers {
    /// Numbers of trajectory `i`.
    pub fn of(&self, i: u64) -> &[f64] {
        match self {
            GivenNumbers::Rows(numbers, width) => &numbers[i as usize * width..][..*width],
            GivenNumbers::Axis(values, repeated) => {
                let place = (i / repeated % values.len() as u64) as usize;
                std::slice::from_ref(&values[place])
            }
        }
    }

    /// Option that gives them.
    pub fn option(&self) -> &'static str {
        match self {
            GivenNumbers::Rows(..) => "each",
            GivenNumbers::Axis(..) => "over",
        }
    }
}

impl<'a> Ensemble<'a> {
    /// One trajectory, as in the file.
    pub const ONE: Ensemble<'static> = Ensemble { vary: &[], each: Vec::new(), trajectories: 1 };

    pub fn new(sweep: &'a SweepOptions) -> Result<Ensemble<'a>, Error> {
        let SweepOptions { vary, each, .. } = sweep;
        match trajectories(sweep)? {
            0 => {
                let trajectories = option("trajectories");
                Err(Error::option(format!("{trajectories}: there must be at least one")))
            }
            n if n > MOST_TRAJECTORIES => Err(Error::option(format!(
                "{trajectories}: {n} is more than the limit of {MOST_TRAJECTORIES}",
                trajectories = option("trajectories")
            ))),
            trajectories => {
                let mut given = Vec::new();
                for (name, numbers) in each {
                    let width = rows(numbers, trajectories).ok_or_else(|| {
                        Error::option(format!(
                            "{}: {} numbers are not the same number for each of {trajectories} trajectories",
                            option("each").with(name),
                            numbers.len()
                        ))
                    })?;
                    given.push((&**name, Some(GivenNumbers::Rows(Arc::clone(numbers), width))));
                }
                let mut repeated = trajectories;
                for (name, values) in &sweep.over {
                    repeated /= values.len() as u64;
                    let axis = GivenNumbers::Axis(Arc::clone(values), repeated);
                    given.push((&**name, Some(axis)));
                }
                Ok(Ensemble { vary, each: given, trajectories })
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
    pub fn first(&self) -> impl Iterator<Item = (&str, &'static str, Option<Vec<f64>>)> {
        self.each.iter().map(|(name, numbers)| {
            let by = numbers.as_ref().map_or("each", GivenNumbers::option);
            (*name, by, numbers.as_ref().map(|numbers| numbers.of(0).to_vec()))
        })
    }
}

/// Number of trajectories of an ensemble: that of the combinations of its grid, if it has one.
///
/// # Errors
/// If another number is given; if a dimension of the grid has no values, or is named twice.
pub(crate) fn trajectories(sweep: &SweepOptions) -> Result<u64, Error> {
    let SweepOptions { over, trajectories, .. } = sweep;
    if over.is_empty() {
        return Ok(*trajectories);
    }
    for (k, (name, values)) in over.iter().enumerate() {
        let refused = |why| Err(Error::option(format!("{}: {why}", option("over").with(name))));
        if values.is_empty() {
            return refused("it has no values");
        }
        if over[..k].iter().any(|(other, _)| other == name) {
            return refused("it is named twice");
        }
    }
    let lengths = over.iter().map(|(_, values)| values.len() as u64);
    let count = lengths.clone().try_fold(1u64, |product, length| product.checked_mul(length));
    match count {
        Some(count) if [0, count].contains(trajectories) => Ok(count),
        _ => {
            let factors: Vec<String> = lengths.map(|length| length.to_string()).collect();
            Err(Error::option(format!(
                "{} {trajectories}: {} has {} combinations, each a trajectory; leave the number out",
                option("trajectories"),
                option("over"),
                factors.join(" × ")
            )))
        }
    }
}

/// Length of the rows of `numbers`, one for each trajectory; `None` if they are of no one length.
fn rows(numbers: &[f64], trajectories: u64) -> Option<usize> {
    let count = usize::try_from(trajectories).ok()?;
    numbers.len().is_multiple_of(count).then_some(numbers.len() / count)
}

/// Put random number `count` (from 1) of several trajectories into `drawn`, independent of the rest of
/// the model. `noise` gives the generator of each.
pub(crate) fn draw(noise: impl Fn(usize) -> Noise, (count, which): (u64, Draw), drawn: &mut [f64]) {
    for (part, drawn) in drawn.chunks_mut(STREAMS).enumerate() {
        let last = drawn.len() - 1;
        let streams: [Noise; STREAMS] =
            std::array::from_fn(|k| noise(part * STREAMS + k.min(last)));
        let pairs = Noise::uniform_pairs(&streams[..=last], &[count; STREAMS][..=last], 0);
        for (drawn, pair) in drawn.iter_mut().zip(pairs) {
            *drawn = match which {
                Draw::Normal => Noise::normal_of(pair),
                Draw::Uniform => pair.0,
            };
        }
    }
}
