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
use crate::store::{ArrayLayout, Dimension, Role, StoredRun};
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
        let (kept, names, width) = Selection::new(name, &array.name)?.of(&dimensions)?;
        let total: usize = dimensions.iter().map(Dimension::len).product();
        let numbers = self.run.read(&array.name).map_err(|error| error.to_string())?;
        let of_trajectory = |numbers: &[f64]| -> Vec<f64> {
            let samples = numbers.chunks_exact(total.max(1)).skip(self.first);
            samples.flat_map(|sample| kept.iter().map(|&number| sample[number])).collect()
        };
        let mut trajectories: Vec<Vec<f64>> =
            numbers.chunks_exact(total * self.all).map(of_trajectory).collect();
        let count = trajectories.len();
        trajectories.retain(|numbers| numbers.iter().all(|number| number.is_finite()));
        Ok(Chosen { left_out: count - trajectories.len(), trajectories, names, width })
    }
}

/// Part of an array: `r`, `r[2]`, `r[*,1]`, `r.x`.
struct Selection<'a> {
    name: &'a str,
    array: &'a str,
    /// Indices of the members, or of the components where there are no members.
    indices: Option<Vec<&'a str>>,
    component: Option<usize>,
}

impl<'a> Selection<'a> {
    fn new(name: &'a str, array: &'a str) -> Result<Selection<'a>, String> {
        let rest = &name[array.len()..];
        let (indices, letter) = match rest.rsplit_once('.') {
            Some((indices, letter)) => (indices, Some(letter)),
            None => (rest, None),
        };
        let indices = indices.strip_prefix('[').map(|inside| {
            inside.strip_suffix(']').unwrap_or(inside).split(',').map(str::trim).collect()
        });
        let component =
            letter.map(|letter| ["x", "y", "z"].iter().position(|known| *known == letter));
        let selection = Selection { name, array, indices, component: component.flatten() };
        match component {
            Some(None) => Err(selection.wrong("has no such component")),
            _ => Ok(selection),
        }
    }

    fn wrong(&self, what: &str) -> String {
        let Selection { name, array, .. } = self;
        format!("'{name}' {what}; write {array}, {array}[2], {array}[*,1] or {array}.x")
    }

    /// Places of its numbers in a row of the array, their names, and the number of them per member.
    fn of(&self, dimensions: &[Dimension]) -> Result<(Vec<usize>, Vec<String>, usize), String> {
        let total: usize = dimensions.iter().map(Dimension::len).product();
        let (mut kept, mut names) = (Vec::new(), Vec::new());
        for number in 0..total {
            let (of_members, of_components) = labels_of(number, dimensions);
            // Indices are those of members; without members they are those of components.
            let indexed = if of_members.is_empty() { &of_components } else { &of_members };
            let fits = match &self.indices {
                Some(wanted) if wanted.len() != indexed.len() => {
                    return Err(self.wrong("has another number of indices"));
                }
                Some(wanted) => wanted
                    .iter()
                    .zip(indexed)
                    .all(|(wanted, index)| *wanted == "*" || *wanted == index.to_string()),
                None => true,
            };
            if fits && self.component.is_none_or(|k| of_components == [k as i64 + 1]) {
                kept.push(number);
                names.push(shown(self.array, &of_members, &of_components));
            }
        }
        if kept.is_empty() {
            return Err(self.wrong("stands for nothing in this run"));
        }
        let of_components = dimensions.iter().filter(|dimension| dimension.role != Role::Index);
        let components: usize = of_components.map(Dimension::len).product();
        let single = self.component.is_some() || self.indices.is_some() && components == total;
        Ok((kept, names, if single { 1 } else { components }))
    }
}

/// Labels of a number of a row: the indices of its member, and those of its component.
fn labels_of(number: usize, dimensions: &[Dimension]) -> (Vec<i64>, Vec<i64>) {
    let (mut of_members, mut of_components, mut rest) = (Vec::new(), Vec::new(), number);
    for dimension in dimensions.iter().rev() {
        let place = rest % dimension.len();
        rest /= dimension.len();
        let values = dimension.labels.iter().rev().map(|label| label.values[place]);
        match dimension.role {
            Role::Index => of_members.extend(values),
            _ => of_components.extend(values),
        }
    }
    of_members.reverse();
    of_components.reverse();
    (of_members, of_components)
}
