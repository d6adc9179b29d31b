//! Measures: statistics of quantities, from single samples to tables.

use crate::constant::constant;
use crate::error::Error;
use crate::serial::number_or_nan;
use crate::store::{Dimension, Group, GroupArray};
use holonome_integrate::averages::{Averages, BlockAverages, Lagged, Mean};
use holonome_integrate::system::all_finite;
use holonome_model::elaborate::statistic::{FORMS, Statistic};
use holonome_words::option;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// A statistic of a quantity of a stored run. Quantities are named as columns of an export, with
/// `*` for every member: `q`, `q.x`, `r[*,1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The quantity.
    pub of: String,
    /// The statistic.
    pub statistic: Statistic,
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Measure, Error> {
        let refused = |reason: &str| {
            Error::option(format!("{} {text}: {reason}; write {FORMS}", option("measure")))
        };
        let (word, rest) =
            text.trim().split_once('(').ok_or_else(|| refused("there is no bracket"))?;
        let inside = rest
            .trim_end()
            .strip_suffix(')')
            .ok_or_else(|| refused("the bracket is not closed"))?;
        // Commas within square brackets belong to a name.
        let mut depth = 0;
        let split = |c: char| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ',' && depth == 0
        };
        let words: Vec<&str> = inside.split(split).map(str::trim).collect();
        let of = words[0].to_string();
        let numbers = words[1..]
            .iter()
            .map(|word| constant(word).map_err(|reason| refused(&format!("{word}: {reason}"))));
        let numbers = numbers.collect::<Result<Vec<f64>, Error>>()?;
        if of.is_empty() {
            return Err(refused("a name is missing"));
        }
        let statistic = Statistic::new(word.trim(), &numbers).map_err(|reason| refused(&reason))?;
        if statistic == Statistic::Temperature {
            return Err(refused(
                "the temperature is measured along a run: measure NAME = temperature() in the model",
            ));
        }
        Ok(Measure { of, statistic })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.statistic.of(&self.of))
    }
}

/// Result of a measure. In JSON a row is an object with the columns' names as keys.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(from = "StoredTable", into = "StoredTable")]
pub struct Table {
    /// Name in the model, if it is declared there.
    pub name: Option<String>,
    /// The measure as it is written.
    pub measure: String,
    /// Times of the first and the last sample.
    pub span: (f64, f64),
    /// Number of samples per trajectory.
    pub samples: usize,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Quantity of each row, if the columns do not give it.
    pub labels: Vec<String>,
    /// The rows; NaN for numbers that are not known.
    pub rows: Vec<Vec<f64>>,
}

impl Table {
    /// True if a number is missing that samples should have given.
    pub fn is_undefined(&self) -> bool {
        let place =
            self.columns.iter().position(|column| ["mean", "density"].contains(&column.as_str()));
        place.is_some_and(|place| self.rows.iter().any(|row| row[place].is_nan()))
    }
}

/// A table as a group of a store: `value`, `error` and further columns as arrays, the others as their
/// coordinates. `dimensions` are those of rows that belong to the numbers of a quantity. `None` if
/// there are no rows.
pub(crate) fn group(table: &Table, dimensions: &[Dimension]) -> Option<Group> {
    let count: usize = dimensions.iter().map(Dimension::len).product();
    let rows = table.rows.len();
    if rows == 0 || !table.labels.is_empty() && rows != count {
        return None;
    }
    let column = |name: &str| {
        let place = table.columns.iter().position(|column| column == name)?;
        Some(table.rows.iter().map(|row| row[place]).collect::<Vec<f64>>())
    };
    let along = |name: &str| vec![(name.to_string(), rows)];
    let mut arrays = Vec::new();
    let shape = if let (Some(from), Some(to)) = (column("from"), column("to")) {
        let shape = along("bin");
        let middle = from.iter().zip(&to).map(|(from, to)| 0.5 * (from + to)).collect();
        let edges = [("bin", "middle of the bin", middle), ("from", "lower edge of the bin", from)];
        for (name, description, values) in
            edges.into_iter().chain([("to", "upper edge of the bin", to)])
        {
            arrays.push(GroupArray::new(name, description, &shape, values, true));
        }
        shape
    } else if let Some(times) = column("time") {
        let shape = along("lag");
        arrays.push(GroupArray::new("lag", "time between two samples", &shape, times, true));
        shape
    } else {
        dimensions.iter().map(|dimension| (dimension.name.clone(), dimension.len())).collect()
    };
    for name in &table.columns {
        let (name, description) = match name.as_str() {
            "mean" | "density" => (name.as_str(), table.measure.as_str()),
            "error" => ("error", "standard error"),
            "independent" => ("independent", "number of independent samples"),
            "g" => ("g", "density relative to that of an ideal gas"),
            "within" => ("within", "fraction of the pairs up to that distance"),
            _ => continue,
        };
        let values = column(name)?;
        if name == "g" && values.iter().all(|value| value.is_nan()) {
            continue;
        }
        let stored = if matches!(name, "mean" | "density") { "value" } else { name };
        arrays.push(GroupArray::new(stored, description, &shape, values, false));
    }
    let (from, until) = table.span;
    let attributes = [
        ("measure", Value::from(table.measure.as_str())),
        ("from", from.into()),
        ("until", until.into()),
        ("samples", table.samples.into()),
    ];
    Some(Group {
        kind: "measures",
        name: table.name.clone().unwrap_or_else(|| table.measure.clone()),
        attributes: attributes.map(|(key, value)| (key.to_string(), value)).into_iter().collect(),
        dimensions: if table.labels.is_empty() { Vec::new() } else { dimensions.to_vec() },
        arrays,
    })
}

#[derive(Deserialize, Serialize)]
struct StoredTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    measure: String,
    #[serde(deserialize_with = "number_or_nan")]
    from: f64,
    #[serde(deserialize_with = "number_or_nan")]
    until: f64,
    samples: usize,
    columns: Vec<String>,
    rows: Vec<StoredRow>,
}

#[derive(Deserialize, Serialize)]
struct StoredRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(flatten)]
    numbers: IndexMap<String, Option<f64>>,
}

impl From<Table> for StoredTable {
    fn from(table: Table) -> StoredTable {
        let Table { name, measure, span: (from, until), samples, columns, labels, rows } = table;
        let mut labels = labels.into_iter();
        let row = |row: Vec<f64>| StoredRow {
            of: labels.next(),
            numbers: columns.iter().cloned().zip(row.into_iter().map(Some)).collect(),
        };
        let rows = rows.into_iter().map(row).collect();
        StoredTable { name, measure, from, until, samples, columns, rows }
    }
}

impl From<StoredTable> for Table {
    fn from(stored: StoredTable) -> Table {
        let StoredTable { name, measure, from, until, samples, columns, rows } = stored;
        let number = |row: &StoredRow, column| row.numbers.get(column).copied().flatten();
        let numbers = |row: &StoredRow| {
            columns.iter().map(|column| number(row, column).unwrap_or(f64::NAN)).collect()
        };
        let numbers = rows.iter().map(numbers).collect();
        let labels = rows.into_iter().filter_map(|row| row.of).collect();
        Table { name, measure, span: (from, until), samples, columns, labels, rows: numbers }
    }
}

/// True if a sample at `t` is not before the time `from`, which may be meant to be that of a
/// sample: a multiple of the spacing, which it then misses by rounding.
pub(crate) fn is_from(t: f64, from: f64, spacing: f64) -> bool {
    t >= from - 1e-6 * spacing
}

/// Name of a number, as of a column of an export.
pub(crate) fn shown(name: &str, members: &[i64], components: &[i64]) -> String {
    let list = |indices: &[i64]| {
        format!("[{}]", indices.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
    };
    let members = if members.is_empty() { String::new() } else { list(members) };
    match components {
        [] => format!("{name}{members}"),
        [c @ 1..=3] => format!("{name}{members}.{}", ["x", "y", "z"][*c as usize - 1]),
        components => format!("{name}{members}{}", list(components)),
    }
}

/// A statistic of a quantity with `labels.len()` numbers.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub statistic: Statistic,
    /// Components per member.
    pub width: usize,
    /// Names of the numbers.
    pub labels: Vec<String>,
    /// Number of samples per trajectory, and times of the first and the last one.
    pub samples: usize,
    pub span: (f64, f64),
}

impl Applied {
    fn members(&self) -> usize {
        self.labels.len() / self.width
    }

    /// The time between two samples.
    pub fn spacing(&self) -> f64 {
        (self.span.1 - self.span.0) / (self.samples.max(2) - 1) as f64
    }

    /// Add the numbers of a sample.
    pub fn push(&self, numbers: &[f64], averages: &mut Averages, scratch: &mut Vec<f64>) {
        scratch.clear();
        let finite = all_finite(numbers);
        match self.statistic {
            Statistic::Mean | Statistic::Temperature => scratch.extend_from_slice(numbers),
            Statistic::Histogram { range: (a, b), bins } => {
                let width = (b - a) / bins as f64;
                scratch.resize(bins, 0.0);
                numbers.iter().for_each(|&number| put((number - a) / width, scratch));
                let total = numbers.len() as f64;
                scratch.iter_mut().for_each(|count| *count /= total);
            }
            Statistic::Distances { reach, bins, side } => {
                scratch.resize(bins, 0.0);
                count_distances(numbers, self.width, (reach / bins as f64, side), scratch);
                let members = self.members();
                let total = (members * (members - 1) / 2) as f64;
                scratch.iter_mut().for_each(|count| *count /= total);
            }
            Statistic::Displacement => {
                let members = self.members() as f64;
                let square = |a: &[f64], b: &[f64]| {
                    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / members
                };
                averages.lagged.push(numbers, square);
            }
            Statistic::Autocorrelation => {
                // About the mean so far: products of the numbers themselves may consist of little
                // but their mean.
                scratch.extend_from_slice(numbers);
                averages.blocks.push(scratch);
                let means = averages.blocks.means();
                let product = |a: &[f64], b: &[f64]| {
                    a.iter()
                        .zip(b)
                        .zip(means)
                        .map(|((a, b), mean)| (a - mean) * (b - mean))
                        .sum::<f64>()
                };
                averages.lagged.push(numbers, product);
                return;
            }
        }
        if !finite {
            // A non-finite number belongs to no bin, and must not be ignored silently.
            scratch.fill(f64::NAN);
        }
        averages.blocks.push(scratch);
    }

    /// Number of results.
    pub fn results(&self) -> usize {
        match self.statistic {
            Statistic::Mean | Statistic::Temperature => self.labels.len(),
            Statistic::Histogram { bins, .. } | Statistic::Distances { bins, .. } => bins,
            Statistic::Displacement | Statistic::Autocorrelation => {
                Lagged::lags_of(self.samples as u64).len()
            }
        }
    }

    /// Means of the averages of independent trajectories.
    pub fn means(&self, trajectories: &[&Averages]) -> Vec<Mean> {
        let blocks: Vec<&BlockAverages> = trajectories.iter().map(|one| &one.blocks).collect();
        if blocks.is_empty() || blocks.iter().any(|blocks| blocks.count() == 0) {
            return Vec::new();
        }
        match self.statistic {
            Statistic::Displacement => lagged(trajectories, self.results()),
            Statistic::Autocorrelation => {
                let mut found = lagged(trajectories, self.results());
                let variance = found.first().map_or(f64::NAN, |mean| mean.value);
                found.iter_mut().for_each(|mean| {
                    (mean.value, mean.error) = (mean.value / variance, mean.error / variance)
                });
                found
            }
            _ => (0..blocks[0].means().len()).map(|k| BlockAverages::mean(&blocks, k)).collect(),
        }
    }

    /// Table of the means.
    pub fn table(&self, (name, measure): (Option<String>, String), means: &[Mean]) -> Table {
        let (mut columns, mut labels) = (vec!["time", "mean", "error"], Vec::new());
        let rows: Vec<Vec<f64>> = match self.statistic {
            Statistic::Mean | Statistic::Temperature => {
                columns = vec!["mean", "error", "independent"];
                labels = self.labels[..means.len()].to_vec();
                means.iter().map(|mean| vec![mean.value, mean.error, mean.independent]).collect()
            }
            Statistic::Histogram { range: (a, b), bins } => {
                columns = vec!["from", "to", "density", "error"];
                let width = (b - a) / bins as f64;
                let edge = |bin: usize| a + bin as f64 * width;
                let rows = means.iter().enumerate();
                rows.map(|(bin, mean)| {
                    vec![edge(bin), edge(bin + 1), mean.value / width, mean.error / width]
                })
                .collect()
            }
            Statistic::Distances { reach, bins, side } => {
                columns = vec!["from", "to", "density", "g", "error", "within"];
                distances(means, (reach / bins as f64, side), self.width)
            }
            Statistic::Displacement | Statistic::Autocorrelation => {
                let spacing = self.spacing();
                let times = Lagged::lags_of(self.samples as u64)
                    .into_iter()
                    .map(|lag| lag as f64 * spacing);
                times.zip(means).map(|(time, mean)| vec![time, mean.value, mean.error]).collect()
            }
        };
        let columns = columns.into_iter().map(str::to_string).collect();
        Table { name, measure, span: self.span, samples: self.samples, columns, labels, rows }
    }
}

/// Count a number at this place of the bins, if it falls into one.
fn put(place: f64, counts: &mut [f64]) {
    if (0.0..counts.len() as f64).contains(&place) {
        counts[place as usize] += 1.0;
    }
}

/// Count the distances of all pairs of members, in a periodic cube if it has a side.
fn count_distances(
    numbers: &[f64],
    width: usize,
    (bin, side): (f64, Option<f64>),
    counts: &mut [f64],
) {
    for (k, a) in numbers.chunks_exact(width).enumerate() {
        for b in numbers.chunks_exact(width).take(k) {
            let difference = |(a, b): (&f64, &f64)| {
                let d = a - b;
                side.map_or(d, |side| d - side * (d / side).round())
            };
            let square: f64 = a.iter().zip(b).map(difference).map(|d| d * d).sum();
            put(square.sqrt() / bin, counts);
        }
    }
}

/// Density of pairs over their distance; the density relative to an ideal gas in the cube, if there
/// is one; and the fraction of pairs up to that distance.
fn distances(means: &[Mean], (bin, side): (f64, Option<f64>), width: usize) -> Vec<Vec<f64>> {
    let mut within = 0.0;
    let rows = means.iter().enumerate().map(|(k, mean)| {
        let (from, to) = (k as f64 * bin, (k + 1) as f64 * bin);
        // Volume of a ball in `width` dimensions.
        let ball = |r: f64| match width {
            1 => 2.0 * r,
            2 => std::f64::consts::PI * r * r,
            _ => 4.0 / 3.0 * std::f64::consts::PI * r.powi(3),
        };
        let shell = side.map_or(f64::NAN, |side| (ball(to) - ball(from)) / side.powi(width as i32));
        within += mean.value;
        let error = mean.error / if side.is_some() { shell } else { bin };
        vec![from, to, mean.value / bin, mean.value / shell, error, within]
    });
    rows.collect()
}

/// Means of functions of two samples at the first `count` lags.
fn lagged(trajectories: &[&Averages], count: usize) -> Vec<Mean> {
    let mut found: Vec<Vec<&BlockAverages>> = vec![Vec::new(); count];
    for one in trajectories {
        found.iter_mut().zip(one.lagged.lags()).for_each(|(found, (_, blocks))| found.push(blocks));
    }
    found
        .iter()
        .take_while(|blocks| !blocks.is_empty())
        .map(|blocks| BlockAverages::mean(blocks, 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(found.contains(says) && found.contains("autocorrelation("), "{text}: {found}");
        }
    }
}
