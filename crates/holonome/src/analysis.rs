//! Averages of stored runs and ensembles: means, histograms, distances of pairs, displacements and
//! autocorrelations, each with the standard error for correlated samples.
//!
//! ```no_run
//! use holonome::{Measure, analyse};
//!
//! let measures = ["mean(square)".parse::<Measure>()?, "histogram(q, -2, 2, 20)".parse()?];
//! for table in analyse("runs/spring-1", &measures, Some(100.0))?.tables {
//!     println!("{}: {:?}", table.measure, table.rows);
//! }
//! # Ok::<(), holonome::Error>(())
//! ```

use crate::error::Error;
use crate::measure::{Applied, Measure, Table, is_from, shown};
use crate::simulation::open_run;
use crate::store::{ArrayLayout, Role, StoredRun};
use crate::summary::StoredSummary;
use holonome_integrate::averages::Averages;
use holonome_model::elaborate::statistic::Statistic;
use holonome_words::option;
use serde::Serialize;
use std::path::Path;

/// Result of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Time of the first sample.
    pub from: f64,
    /// Time of the last sample.
    pub until: f64,
    /// Number of samples per trajectory.
    pub samples: usize,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Number of trajectories left out because they ended early.
    pub left_out: usize,
    /// One table per measure.
    #[serde(rename = "measures")]
    pub tables: Vec<Table>,
}

/// Tables of `measures` for the run or ensemble at `path`, over the samples from the time `from`
/// on. Without measures and `from`: the tables that the run made itself, or else the means of every
/// single number recorded beside the state.
///
/// # Errors
/// If `path` is not a run, or a measure names a quantity that the run does not hold.
pub fn analyse(
    path: impl AsRef<Path>,
    measures: &[Measure],
    from: Option<f64>,
) -> Result<Analysis, Error> {
    let path = path.as_ref();
    let run = open_run(path)?;
    let trajectories = if run.trajectories().is_some() { run.samples() } else { 1 };
    if measures.is_empty() && from.is_none() {
        let tables = StoredSummary::from(run.summary()).measures;
        if let Some(&Table { span: (from, until), samples, .. }) = tables.first() {
            return Ok(Analysis { from, until, samples, trajectories, left_out: 0, tables });
        }
    }
    let times = run.times().map_err(Error::store)?;
    let times = &times[..if run.trajectories().is_some() { times.len() } else { run.samples() }];
    let spacing = if let [first, second, ..] = times { second - first } else { 0.0 };
    let first = from.map_or(0, |from| times.partition_point(|&t| !is_from(t, from, spacing)));
    if times.len() < first + 2 {
        return Err(Error::option(format!(
            "{} has {} samples from {} on, and averages take two at least",
            path.display(),
            times.len() - first,
            from.map_or("its start".to_string(), |from| format!("t = {from}"))
        )));
    }
    let window = Window { run: &run, times: &times[first..], first, all: times.len() };
    let own: Vec<Measure>;
    let measures = match measures {
        [] => {
            let is_state = |array: &ArrayLayout| {
                ["coordinate", "momentum", "state"].into_iter().any(|role| array.has_role(role))
            };
            let scalars = run
                .arrays()
                .into_iter()
                .filter(|array| array.dimensions.is_empty() && !array.once && !is_state(array));
            own = scalars
                .map(|array| Measure { of: array.name, statistic: Statistic::Mean })
                .collect();
            &own[..]
        }
        measures => measures,
    };
    let mut left_out = 0;
    let table = |measure: &Measure| -> Result<Table, Error> {
        let (table, missing) = window.table(measure)?;
        left_out = left_out.max(missing);
        Ok(table)
    };
    let tables = measures.iter().map(table).collect::<Result<_, _>>()?;
    let (from, until) = window.span();
    Ok(Analysis { from, until, samples: times.len() - first, trajectories, left_out, tables })
}

/// The samples that are averaged.
struct Window<'a> {
    run: &'a StoredRun,
    times: &'a [f64],
    /// Number of the first sample, and number of all samples.
    first: usize,
    all: usize,
}

/// A quantity at the samples of every trajectory.
struct Chosen {
    /// Per trajectory samples × members × width numbers.
    trajectories: Vec<Vec<f64>>,
    /// Names of the members' components.
    names: Vec<String>,
    width: usize,
    /// Number of trajectories that have a number which is not finite.
    left_out: usize,
}

impl Window<'_> {
    fn table(&self, measure: &Measure) -> Result<(Table, usize), Error> {
        let refused = |reason: String| {
            Error::option(format!("{}: {reason}", option("measure").with(measure)))
        };
        let Chosen { trajectories, names, width, left_out } =
            self.chosen(&measure.of).map_err(refused)?;
        if trajectories.is_empty() {
            return Err(refused("no trajectory has numbers at all of its samples".to_string()));
        }
        let (statistic, samples) = (measure.statistic, self.times.len());
        if matches!(statistic, Statistic::Distances { .. }) && names.len() < 2 * width {
            return Err(refused("distances are between members of a family".to_string()));
        }
        if matches!(statistic, Statistic::Displacement | Statistic::Autocorrelation) {
            self.evenly_spaced().map_err(refused)?;
        }
        let applied = Applied { statistic, width, labels: names, samples, span: self.span() };
        let mut scratch = Vec::new();
        let of_one = |numbers: Vec<f64>| {
            let mut averages = Averages::default();
            numbers
                .chunks_exact(applied.labels.len())
                .for_each(|row| applied.push(row, &mut averages, &mut scratch));
            averages
        };
        let averages: Vec<Averages> = trajectories.into_iter().map(of_one).collect();
        let means = applied.means(&averages.iter().collect::<Vec<_>>());
        Ok((applied.table((None, measure.to_string()), &means), left_out))
    }

    fn span(&self) -> (f64, f64) {
        (self.times[0], self.times[self.times.len() - 1])
    }

    fn evenly_spaced(&self) -> Result<(), String> {
        let spacing = self.times[1] - self.times[0];
        let even = |pair: &[f64]| ((pair[1] - pair[0]) / spacing - 1.0).abs() < 1e-6;
        match self.times.windows(2).all(even) {
            true => Ok(()),
            false => Err(format!(
                "the samples are not evenly spaced; take those of a run with {}",
                option("every")
            )),
        }
    }

    /// A quantity by its name; the error says in words what is wrong with the name.
    fn chosen(&self, name: &str) -> Result<Chosen, String> {
        let arrays = self.run.arrays();
        let named = |array: &&ArrayLayout| {
            let rest = name.strip_prefix(array.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        };
        let array =
            arrays.iter().filter(named).max_by_key(|array| array.name.len()).ok_or_else(|| {
                let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
                format!("the run holds no '{name}'; it holds {}", names.join(", "))
            })?;
        if array.once {
            return Err(format!(
                "'{}' has one value for a trajectory, and averages are over samples",
                array.name
            ));
        }
        let dimensions = array.dimensions.iter().map(|dimension| self.run.dimension(dimension));
        let dimensions =
            dimensions.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let rest = &name[array.name.len()..];
        let (indices, component) = match rest.rsplit_once('.') {
            Some((indices, letter)) => (indices, Some(letter)),
            None => (rest, None),
        };
        let indices = indices
            .strip_prefix('[')
            .map(|inside| inside.strip_suffix(']').unwrap_or(inside).split(','));
        let wanted: Option<Vec<&str>> = indices.map(|indices| indices.map(str::trim).collect());
        let unknown = |what: &str| {
            format!("'{name}' {what}; write {0}, {0}[2], {0}[*,1] or {0}.x", array.name)
        };
        let letter = match component {
            None => None,
            Some(letter) => {
                let place = ["x", "y", "z"].iter().position(|known| *known == letter);
                Some(place.ok_or_else(|| unknown("has no such component"))?)
            }
        };
        // Every number of a row, with its place in each dimension.
        let total: usize = dimensions.iter().map(|dimension| dimension.len()).product();
        let (mut kept, mut names) = (Vec::new(), Vec::new());
        for number in 0..total {
            let (mut rest, mut places) = (number, vec![0; dimensions.len()]);
            for (place, dimension) in places.iter_mut().zip(&dimensions).rev() {
                *place = rest % dimension.len();
                rest /= dimension.len();
            }
            let (mut of_members, mut of_components) = (Vec::new(), Vec::new());
            for (dimension, &place) in dimensions.iter().zip(&places) {
                let values = dimension.labels.iter().map(|label| label.values[place]);
                match dimension.role {
                    Role::Index => of_members.extend(values),
                    _ => of_components.extend(values),
                }
            }
            // Indices are those of members; without members they are those of components.
            let indexed = if of_members.is_empty() { &of_components } else { &of_members };
            let fits = match &wanted {
                Some(wanted) if wanted.len() != indexed.len() => {
                    return Err(unknown("has another number of indices"));
                }
                Some(wanted) => wanted
                    .iter()
                    .zip(indexed)
                    .all(|(wanted, index)| *wanted == "*" || *wanted == index.to_string()),
                None => true,
            };
            let is_letter = letter.is_none_or(|letter| of_components == [letter as i64 + 1]);
            if fits && is_letter {
                kept.push(number);
                names.push(shown(&array.name, &of_members, &of_components));
            }
        }
        if kept.is_empty() {
            return Err(unknown("stands for nothing in this run"));
        }
        let components: usize =
            dimensions.iter().filter(|d| d.role != Role::Index).map(|d| d.len()).product();
        let width = if letter.is_some() || wanted.is_some() && components == total {
            1
        } else {
            components
        };
        let numbers = self.run.read(&array.name).map_err(|error| error.to_string())?;
        let of_trajectory = |numbers: &[f64]| -> Vec<f64> {
            let samples = numbers.chunks_exact(total.max(1)).skip(self.first);
            samples.flat_map(|sample| kept.iter().map(|&number| sample[number])).collect()
        };
        let all: Vec<Vec<f64>> =
            numbers.chunks_exact(total * self.all).map(of_trajectory).collect();
        let count = all.len();
        let trajectories: Vec<Vec<f64>> = all
            .into_iter()
            .filter(|numbers| numbers.iter().all(|number| number.is_finite()))
            .collect();
        Ok(Chosen { left_out: count - trajectories.len(), trajectories, names, width })
    }
}
