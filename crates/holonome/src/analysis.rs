//! Averages of stored runs and ensembles: means, histograms, distances of pairs, displacements and autocorrelations, each
//! with the standard error that correlated samples leave.
//!
//! ```no_run
//! use holonome::{Measure, analyse};
//!
//! let measures = ["mean(square)".parse::<Measure>()?, "histogram(q, -2, 2, 20)".parse()?];
//! for table in analyse("runs/spring-1".as_ref(), &measures, Some(100.0))?.tables {
//!     println!("{}: {:?}", table.measure, table.rows);
//! }
//! # Ok::<(), holonome::Error>(())
//! ```

use crate::constant::constant;
use crate::error::Error;
use crate::simulation::open_run;
use crate::store::{Role, StoredRun};
use holonome_words::option;
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// What is averaged. Quantities are named as columns of an export, with `*` for every member: `q`, `q.x`, `r[*,1]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// `mean(NAME)`: of every component.
    Mean {
        /// The quantity.
        of: String,
    },
    /// `histogram(NAME, a, b, bins)`: of all its numbers together.
    Histogram {
        /// The quantity.
        of: String,
        /// Where the first bin begins and the last one ends.
        range: (f64, f64),
        /// How many bins there are.
        bins: usize,
    },
    /// `rdf(NAME, b, bins)` or, in a periodic cube of that side, `rdf(NAME, b, bins, side)`: distances of its members.
    Distances {
        /// The quantity, a family.
        of: String,
        /// Where the last bin ends.
        reach: f64,
        /// How many bins there are.
        bins: usize,
        /// The side of the cube.
        side: Option<f64>,
    },
    /// `msd(NAME)`: the mean squared displacement of its members over the time between two samples.
    Displacement {
        /// The quantity.
        of: String,
    },
    /// `autocorrelation(NAME)`: of the deviation from its mean, over the time between two samples.
    Autocorrelation {
        /// The quantity.
        of: String,
    },
}

/// Bins, at most.
const MOST_BINS: usize = 100_000;

/// How measures are written, for those who wrote something else.
const FORMS: &str = "mean(NAME), histogram(NAME, a, b, bins), rdf(NAME, b, bins), rdf(NAME, b, bins, side), msd(NAME) or autocorrelation(NAME)";

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Measure, Error> {
        let refused = |reason: &str| Error::option(format!("{} {text}: {reason}; write {FORMS}", option("measure")));
        let (kind, rest) = text.trim().split_once('(').ok_or_else(|| refused("there is no bracket"))?;
        let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| refused("the bracket is not closed"))?;
        // Commas within square brackets belong to a name.
        let mut depth = 0;
        let split = |c: char| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ',' && depth == 0
        };
        let words: Vec<&str> = inside.split(split).map(str::trim).collect();
        let of = words[0].to_string();
        let numbers =
            words[1..].iter().map(|word| constant(word).map_err(|reason| refused(&format!("{word}: {reason}"))));
        let numbers = numbers.collect::<Result<Vec<f64>, Error>>()?;
        if of.is_empty() || !numbers.iter().all(|number| number.is_finite()) {
            return Err(refused("a name is missing, or a number is not finite"));
        }
        let count = |bins: f64| match bins.fract() == 0.0 && (1.0..=MOST_BINS as f64).contains(&bins) {
            true => Ok(bins as usize),
            false => Err(refused(&format!("bins are a whole number from 1 to {MOST_BINS}"))),
        };
        match (kind.trim(), &numbers[..]) {
            ("mean", []) => Ok(Measure::Mean { of }),
            ("msd", []) => Ok(Measure::Displacement { of }),
            ("autocorrelation", []) => Ok(Measure::Autocorrelation { of }),
            ("histogram", &[a, b, bins]) if a < b => Ok(Measure::Histogram { of, range: (a, b), bins: count(bins)? }),
            ("rdf", &[reach, bins, ref side @ ..]) if reach > 0.0 && side.len() <= 1 => {
                let side = side.first().copied();
                if side.is_some_and(|side| side < 2.0 * reach) {
                    return Err(refused("distances in a periodic cube are known up to half of its side"));
                }
                Ok(Measure::Distances { of, reach, bins: count(bins)?, side })
            }
            _ => Err(refused("these numbers make no measure")),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Mean { of } => write!(f, "mean({of})"),
            Measure::Histogram { of, range: (a, b), bins } => write!(f, "histogram({of}, {a}, {b}, {bins})"),
            Measure::Distances { of, reach, bins, side: None } => write!(f, "rdf({of}, {reach}, {bins})"),
            Measure::Distances { of, reach, bins, side: Some(side) } => write!(f, "rdf({of}, {reach}, {bins}, {side})"),
            Measure::Displacement { of } => write!(f, "msd({of})"),
            Measure::Autocorrelation { of } => write!(f, "autocorrelation({of})"),
        }
    }
}

/// What measures came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// A table for each measure.
    pub tables: Vec<Table>,
    /// The times of the first and the last sample.
    pub span: (f64, f64),
    /// Samples of a trajectory, and trajectories.
    pub samples: usize,
    /// How many trajectories there are.
    pub trajectories: usize,
    /// Trajectories that are left out, as they ended early.
    pub left_out: usize,
}

/// What a measure came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The measure.
    pub measure: String,
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// What each row is of, where numbers do not say it.
    pub labels: Vec<String>,
    /// The rows; NaN where a number is not known.
    pub rows: Vec<Vec<f64>>,
}

impl Analysis {
    /// The tables as JSON, `null` for what is not known.
    pub fn to_json(&self) -> Value {
        let row = |table: &Table, k: usize| {
            let label = table.labels.get(k).map(|label| ("of".to_string(), json!(label)));
            let numbers =
                table.columns.iter().zip(&table.rows[k]).map(|(name, number)| (name.to_string(), json!(number)));
            Value::Object(label.into_iter().chain(numbers).collect())
        };
        let table = |table: &Table| {
            let rows: Vec<Value> = (0..table.rows.len()).map(|k| row(table, k)).collect();
            json!({"measure": table.measure, "rows": rows})
        };
        json!({
            "from": self.span.0, "until": self.span.1, "samples": self.samples, "trajectories": self.trajectories,
            "left_out": self.left_out, "measures": self.tables.iter().map(table).collect::<Vec<_>>(),
        })
    }
}

/// The measures of the run or ensemble at `path`, over samples from the time `from` on; without any measure the means of
/// every single number that is recorded beside the state.
///
/// # Errors
/// When it is no run, or a measure names what it does not hold.
pub fn analyse(path: &Path, measures: &[Measure], from: Option<f64>) -> Result<Analysis, Error> {
    let run = open_run(path)?;
    let times = run.times().map_err(Error::store)?;
    let times = &times[..if run.trajectories().is_some() { times.len() } else { run.samples() }];
    let first = times.partition_point(|&t| t < from.unwrap_or(f64::NEG_INFINITY));
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
            let scalars = run.arrays().into_iter().filter(|array| {
                let is_state = ["coordinate", "momentum", "state"]
                    .iter()
                    .any(|role| array.attributes.get("role") == Some(&json!(role)));
                array.dimensions.is_empty() && !array.once && !is_state
            });
            own = scalars.map(|array| Measure::Mean { of: array.name }).collect();
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
    let trajectories = if run.trajectories().is_some() { run.samples() } else { 1 };
    let span = (times[first], times[times.len() - 1]);
    Ok(Analysis { tables, span, samples: times.len() - first, trajectories, left_out })
}

/// The samples that are looked at.
struct Window<'a> {
    run: &'a StoredRun,
    times: &'a [f64],
    /// The number of the first, of so many.
    first: usize,
    all: usize,
}

/// A quantity at the samples of every trajectory.
struct Chosen {
    /// For each trajectory samples × members × width numbers.
    trajectories: Vec<Vec<f64>>,
    /// Names of the members' components.
    names: Vec<String>,
    width: usize,
    /// Trajectories that have numbers which are not finite.
    left_out: usize,
}

impl Chosen {
    /// Numbers of a sample.
    fn row(&self) -> usize {
        self.names.len()
    }

    /// The mean of a number of every sample.
    fn mean(&self, of: impl Fn(&[f64]) -> f64) -> Mean {
        let of_one = |numbers: &Vec<f64>| numbers.chunks_exact(self.row()).map(&of).collect();
        Mean::of(&self.trajectories.iter().map(of_one).collect::<Vec<Samples>>())
    }
}

impl Window<'_> {
    fn table(&self, measure: &Measure) -> Result<(Table, usize), Error> {
        let (Measure::Mean { of }
        | Measure::Histogram { of, .. }
        | Measure::Distances { of, .. }
        | Measure::Displacement { of }
        | Measure::Autocorrelation { of }) = measure;
        let refused = |reason: String| Error::option(format!("{}: {reason}", option("measure").with(measure)));
        let chosen = self.chosen(of).map_err(refused)?;
        if chosen.trajectories.is_empty() {
            return Err(refused("no trajectory has numbers at all of its samples".to_string()));
        }
        let (columns, labels, rows) = match *measure {
            Measure::Mean { .. } => {
                let of_one = |k: usize| {
                    let Mean { value, error, independent } = chosen.mean(|numbers| numbers[k]);
                    vec![value, error, independent]
                };
                let rows = (0..chosen.row()).map(of_one).collect();
                (vec!["mean", "error", "independent"], chosen.names.clone(), rows)
            }
            Measure::Histogram { range: (a, b), bins, .. } => {
                let width = (b - a) / bins as f64;
                let each = |numbers: &[f64], put: &mut dyn FnMut(f64)| {
                    numbers.iter().for_each(|&number| put((number - a) / width))
                };
                let rows = binned(&chosen, bins, chosen.row(), &each);
                let row = |(bin, mean): (usize, Mean)| {
                    vec![a + bin as f64 * width, a + (bin + 1) as f64 * width, mean.value / width, mean.error / width]
                };
                let rows = rows.into_iter().enumerate().map(row).collect();
                (vec!["from", "to", "density", "error"], Vec::new(), rows)
            }
            Measure::Distances { reach, bins, side, .. } => {
                let members = chosen.row() / chosen.width;
                if members < 2 {
                    return Err(refused("distances are between members of a family".to_string()));
                }
                (
                    vec!["from", "to", "density", "g", "error", "within"],
                    Vec::new(),
                    distances(&chosen, reach, bins, side),
                )
            }
            Measure::Displacement { .. } | Measure::Autocorrelation { .. } => {
                let spacing = self.spacing().map_err(refused)?;
                let rows = match measure {
                    Measure::Displacement { .. } => displacements(&chosen, spacing),
                    _ => autocorrelations(&chosen, spacing),
                };
                (vec!["time", "mean", "error"], Vec::new(), rows)
            }
        };
        Ok((Table { measure: measure.to_string(), columns, labels, rows }, chosen.left_out))
    }

    /// The time between two samples.
    fn spacing(&self) -> Result<f64, String> {
        let spacing = self.times[1] - self.times[0];
        let even = |pair: &[f64]| ((pair[1] - pair[0]) / spacing - 1.0).abs() < 1e-6;
        match self.times.windows(2).all(even) {
            true => Ok(spacing),
            false => Err(format!("the samples are not evenly spaced; take those of a run with {}", option("every"))),
        }
    }

    /// A quantity by its name, in words what is wrong with that.
    fn chosen(&self, name: &str) -> Result<Chosen, String> {
        let arrays = self.run.arrays();
        let named = |array: &&crate::store::ArrayLayout| {
            let rest = name.strip_prefix(array.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        };
        let array = arrays.iter().filter(named).max_by_key(|array| array.name.len()).ok_or_else(|| {
            let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
            format!("the run holds no '{name}'; it holds {}", names.join(", "))
        })?;
        if array.once {
            return Err(format!("'{}' has one value for a trajectory, and averages are over samples", array.name));
        }
        let dimensions = array.dimensions.iter().map(|dimension| self.run.dimension(dimension));
        let dimensions = dimensions.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let rest = &name[array.name.len()..];
        let (indices, component) = match rest.rsplit_once('.') {
            Some((indices, letter)) => (indices, Some(letter)),
            None => (rest, None),
        };
        let indices = indices.strip_prefix('[').map(|inside| inside.strip_suffix(']').unwrap_or(inside).split(','));
        let wanted: Option<Vec<&str>> = indices.map(|indices| indices.map(str::trim).collect());
        let unknown = |what: &str| format!("'{name}' {what}; write {0}, {0}[2], {0}[*,1] or {0}.x", array.name);
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
            // Indices are those of members, and where there is none those of components.
            let indexed = if of_members.is_empty() { &of_components } else { &of_members };
            let fits = match &wanted {
                Some(wanted) if wanted.len() != indexed.len() => return Err(unknown("has another number of indices")),
                Some(wanted) => {
                    wanted.iter().zip(indexed).all(|(wanted, index)| *wanted == "*" || *wanted == index.to_string())
                }
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
        let components: usize = dimensions.iter().filter(|d| d.role != Role::Index).map(|d| d.len()).product();
        let width = if letter.is_some() || wanted.is_some() && components == total { 1 } else { components };
        let numbers = self.run.read(&array.name).map_err(|error| error.to_string())?;
        let of_trajectory = |numbers: &[f64]| -> Vec<f64> {
            let samples = numbers.chunks_exact(total.max(1)).skip(self.first);
            samples.flat_map(|sample| kept.iter().map(|&number| sample[number])).collect()
        };
        let all: Vec<Vec<f64>> = numbers.chunks_exact(total * self.all).map(of_trajectory).collect();
        let count = all.len();
        let trajectories: Vec<Vec<f64>> =
            all.into_iter().filter(|numbers| numbers.iter().all(|number| number.is_finite())).collect();
        Ok(Chosen { left_out: count - trajectories.len(), trajectories, names, width })
    }
}

/// The name of a number, as a column of an export is called.
fn shown(name: &str, members: &[i64], components: &[i64]) -> String {
    let list = |indices: &[i64]| format!("[{}]", indices.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let members = if members.is_empty() { String::new() } else { list(members) };
    match components {
        [] => format!("{name}{members}"),
        [c @ 1..=3] => format!("{name}{members}.{}", ["x", "y", "z"][*c as usize - 1]),
        components => format!("{name}{members}{}", list(components)),
    }
}

/// Shows the place of every number of a sample, in bins.
type Places<'a> = &'a dyn Fn(&[f64], &mut dyn FnMut(f64));

/// The parts of a sample's numbers that fall into bins 0, 1 and so on, in the mean: `each` shows the place of every one of
/// `total`.
fn binned(chosen: &Chosen, bins: usize, total: usize, each: Places) -> Vec<Mean> {
    let mut found = vec![Vec::new(); bins];
    let mut counts = vec![0.0; bins];
    for numbers in &chosen.trajectories {
        let mut of_bins = vec![Samples::default(); bins];
        for sample in numbers.chunks_exact(chosen.row()) {
            counts.fill(0.0);
            each(sample, &mut |place| {
                if (0.0..bins as f64).contains(&place) {
                    counts[place as usize] += 1.0;
                }
            });
            of_bins.iter_mut().zip(&counts).for_each(|(of_bin, count)| of_bin.push(count / total as f64));
        }
        found.iter_mut().zip(of_bins).for_each(|(found, of_bin)| found.push(of_bin));
    }
    found.iter().map(|of_bin| Mean::of(of_bin)).collect()
}

/// The density of pairs over their distance, over that of an ideal gas in the cube if there is one, and the part of pairs up
/// to there.
fn distances(chosen: &Chosen, reach: f64, bins: usize, side: Option<f64>) -> Vec<Vec<f64>> {
    let (width, bin) = (chosen.width, reach / bins as f64);
    let members = chosen.row() / width;
    let each = |sample: &[f64], put: &mut dyn FnMut(f64)| {
        for (k, a) in sample.chunks_exact(width).enumerate() {
            for b in sample.chunks_exact(width).take(k) {
                let square: f64 = a
                    .iter()
                    .zip(b)
                    .map(|(a, b)| {
                        let d = a - b;
                        let d = side.map_or(d, |side| d - side * (d / side).round());
                        d * d
                    })
                    .sum();
                put(square.sqrt() / bin);
            }
        }
    };
    let mut within = 0.0;
    let rows = binned(chosen, bins, members * (members - 1) / 2, &each).into_iter().enumerate();
    rows.map(|(k, mean)| {
        let (from, to) = (k as f64 * bin, (k + 1) as f64 * bin);
        // The volume of a ball in so many dimensions, over that of the cube.
        let ball = |r: f64| match width {
            1 => 2.0 * r,
            2 => std::f64::consts::PI * r * r,
            _ => 4.0 / 3.0 * std::f64::consts::PI * r.powi(3),
        };
        let shell = side.map_or(f64::NAN, |side| (ball(to) - ball(from)) / side.powi(width as i32));
        within += mean.value;
        vec![
            from,
            to,
            mean.value / bin,
            mean.value / shell,
            mean.error / if side.is_some() { shell } else { bin },
            within,
        ]
    })
    .collect()
}

/// Lags, in samples: short ones one by one, longer ones a fifth apart.
fn lags(samples: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0), |lag| Some((lag + 1).max(lag * 6 / 5))).take_while(move |lag| *lag <= samples / 2)
}

/// The mean of a function of two samples so far apart, for every lag; the samples of `chosen` are those of one trajectory
/// after the other.
fn lagged(chosen: &Chosen, spacing: f64, of: impl Fn(&[f64], &[f64]) -> f64) -> Vec<(f64, Mean)> {
    let row = chosen.row();
    let at = |lag: usize| {
        let of_one = |numbers: &Vec<f64>| -> Samples {
            let later = numbers.chunks_exact(row).skip(lag);
            numbers.chunks_exact(row).zip(later).map(|(a, b)| of(a, b)).collect()
        };
        let all: Vec<Samples> = chosen.trajectories.iter().map(of_one).collect();
        (lag as f64 * spacing, Mean::of(&all))
    };
    lags(chosen.trajectories[0].len() / row).map(at).collect()
}

fn displacements(chosen: &Chosen, spacing: f64) -> Vec<Vec<f64>> {
    let members = (chosen.row() / chosen.width) as f64;
    let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / members;
    lagged(chosen, spacing, square).into_iter().map(|(time, mean)| vec![time, mean.value, mean.error]).collect()
}

/// Over the variance.
fn autocorrelations(chosen: &Chosen, spacing: f64) -> Vec<Vec<f64>> {
    let means: Vec<f64> = (0..chosen.row()).map(|k| chosen.mean(|numbers| numbers[k]).value).collect();
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).zip(&means).map(|((a, b), mean)| (a - mean) * (b - mean)).sum::<f64>();
    let found = lagged(chosen, spacing, product);
    let variance = found.first().map_or(f64::NAN, |(_, mean)| mean.value);
    found.into_iter().map(|(time, mean)| vec![time, mean.value / variance, mean.error / variance]).collect()
}

/// A mean over samples that are correlated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error; NaN where there are too few samples to tell.
    pub error: f64,
    /// As many independent samples would have that error.
    pub independent: f64,
}

/// Blocks below which their spread says little, and trajectories from which on theirs says enough.
const FEWEST_BLOCKS: usize = 32;

impl Mean {
    /// Of the samples of independent trajectories: of many of them from the spread of their means, otherwise from that of
    /// blocks of samples.
    fn of(trajectories: &[Samples]) -> Mean {
        let means: Samples = trajectories.iter().map(|samples| samples.blocks[0].mean).collect();
        let (value, count) = (means.blocks[0].mean, trajectories.len() as f64);
        let error = match trajectories.len() >= FEWEST_BLOCKS {
            true => means.blocks[0].error(),
            false => trajectories.iter().map(|samples| samples.error().powi(2)).sum::<f64>().sqrt() / count,
        };
        let all = || trajectories.iter().map(|samples| &samples.blocks[0]);
        let squares: f64 = all().map(|one| one.squares + one.count * (one.mean - value).powi(2)).sum();
        let variance = squares / all().map(|one| one.count).sum::<f64>();
        Mean { value, error, independent: variance / (error * error) }
    }
}

/// Samples of one trajectory, as far as their mean and its error tell: single ones, means of two, of four and so on.
#[derive(Clone, Debug)]
struct Samples {
    blocks: Vec<Blocks>,
}

/// Blocks of one length.
#[derive(Clone, Debug, Default)]
struct Blocks {
    count: f64,
    mean: f64,
    /// The sum of the squares of deviations from the mean.
    squares: f64,
    /// The first block of a pair.
    half: Option<f64>,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples { blocks: vec![Blocks::default()] }
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Samples {
        let mut samples = Samples::default();
        numbers.into_iter().for_each(|number| samples.push(number));
        samples
    }
}

impl Samples {
    fn push(&mut self, number: f64) {
        let mut number = number;
        for level in 0.. {
            if level == self.blocks.len() {
                self.blocks.push(Blocks::default());
            }
            let blocks = &mut self.blocks[level];
            blocks.count += 1.0;
            let deviation = number - blocks.mean;
            blocks.mean += deviation / blocks.count;
            blocks.squares += deviation * (number - blocks.mean);
            match blocks.half.take() {
                Some(half) => number = 0.5 * (half + number),
                None => {
                    blocks.half = Some(number);
                    return;
                }
            }
        }
    }

    /// The standard error of their mean: that of the shortest blocks which longer ones do not exceed by more than theirs is
    /// known to (Flyvbjerg, Petersen, J. Chem. Phys. 91 (1989) 461).
    fn error(&self) -> f64 {
        let mut error = f64::NAN;
        for blocks in self.blocks.iter().take_while(|blocks| blocks.count >= FEWEST_BLOCKS as f64) {
            let (next, known) = (blocks.error(), (2.0 * (blocks.count - 1.0)).sqrt().recip());
            if error.is_nan() || next > error * (1.0 + known) {
                error = next;
            }
        }
        error
    }
}

impl Blocks {
    /// The standard error of the mean of independent ones.
    fn error(&self) -> f64 {
        (self.squares / (self.count * (self.count - 1.0))).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holonome_integrate::noise::Noise;

    #[test]
    fn errors_are_those_of_correlated_samples() {
        // x' = c x + √(1 − c²) ξ has the variance 1 and a mean whose variance is (1 + c)/(1 − c)/n.
        let (noise, n) = (Noise::new(3, 0), 1 << 18);
        for c in [0.0f64, 0.5, 0.9] {
            let mut x = 0.0;
            let series: Samples = (0..n)
                .map(|k| {
                    x = c * x + (1.0 - c * c).sqrt() * noise.normal(k, 0);
                    x
                })
                .collect();
            let mean = Mean::of(&[series]);
            let expected = ((1.0 + c) / (1.0 - c) / n as f64).sqrt();
            assert!((mean.error / expected - 1.0).abs() < 0.15, "{c}: {} {expected}", mean.error);
            assert!(mean.value.abs() < 4.0 * expected);
            assert!((mean.independent * expected * expected - 1.0).abs() < 0.4, "{}", mean.independent);
        }
        // As many trajectories of one number each.
        let alone: Vec<Samples> = (0..10_000).map(|k| std::iter::once(noise.normal(k, 1)).collect()).collect();
        assert!((Mean::of(&alone).error * 100.0 - 1.0).abs() < 0.05);
        assert!(Mean::of(&[(0..31).map(f64::from).collect()]).error.is_nan(), "too few to tell");
    }

    #[test]
    fn measures_are_read_as_they_are_written() {
        for text in [
            "mean(q.x)",
            "histogram(r[*,1], -2, 2, 8)",
            "rdf(r, 8, 80)",
            "rdf(r, 4, 80, 8)",
            "msd(r)",
            "autocorrelation(p[2].y)",
        ] {
            assert_eq!(text.parse::<Measure>().unwrap().to_string(), text);
        }
        for (text, says) in [
            ("mean", "no bracket"),
            ("mean(q", "not closed"),
            ("mean()", "a name is missing"),
            ("median(q)", "make no measure"),
            ("histogram(q, 2, 1, 8)", "make no measure"),
            ("histogram(q, 0, 1, 0.5)", "whole number"),
            ("histogram(q, 0, x, 8)", "x"),
            ("rdf(r, 5, 10, 8)", "half of its side"),
        ] {
            let found = text.parse::<Measure>().unwrap_err().to_string();
            assert!(found.contains(says) && found.contains("autocorrelation(NAME)"), "{text}: {found}");
        }
    }
}
