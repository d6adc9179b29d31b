//! Space–time maps of lattices: a number at each site, over time.

use crate::error::Error;
use crate::store::{ArrayLayout, StoredRun};
use holonome_figures::{Axis, Chart, Map};

/// Least number of members that a map shows better than curves.
const FEWEST: usize = 12;

/// Largest number of columns and rows of a map.
const COLUMNS: usize = 600;
const ROWS: usize = 400;

/// Maps of a run's lattices, the observables first: of quantities that are one number for each value
/// of an index.
pub(super) fn maps(run: &StoredRun, label: &str, most: [usize; 2]) -> Result<Vec<Chart>, Error> {
    let arrays = run.arrays();
    let order = ["observable", "coordinate", "state", "momentum"];
    let mut charts = Vec::new();
    for role in order {
        for array in arrays.iter().filter(|array| array.has_role(role) && !array.once) {
            if let Some(chart) = map(run, array, label, most)? {
                charts.push(chart);
            }
        }
    }
    Ok(charts)
}

/// [`maps`] as a page shows them.
pub(super) fn of_page(run: &StoredRun, label: &str) -> Result<Vec<Chart>, Error> {
    maps(run, label, [COLUMNS, ROWS])
}

fn map(
    run: &StoredRun,
    array: &ArrayLayout,
    label: &str,
    [columns, rows]: [usize; 2],
) -> Result<Option<Chart>, Error> {
    let members = run.members(&array.name).map_err(Error::store)?;
    let names = run.column_names(&array.name).map_err(Error::store)?;
    // The sites along one index, each with one number.
    if members < FEWEST || array.dimensions.len() != 1 || names.len() != members {
        return Ok(None);
    }
    let spread = |count: usize, most: usize| -> Vec<usize> {
        let kept = count.min(most);
        (0..kept).map(|k| k * (count - 1) / (kept - 1).max(1)).collect()
    };
    let (samples, sites) = (spread(run.samples(), columns), spread(members, rows));
    let times = run.times().map_err(Error::store)?;
    let mut reader = run.rows(&array.name).map_err(Error::store)?;
    let mut values = vec![f64::NAN; samples.len() * sites.len()];
    for (column, &sample) in samples.iter().enumerate() {
        let row = reader.row(sample).map_err(Error::store)?;
        for (k, &site) in sites.iter().enumerate() {
            values[k * samples.len() + column] = row[site];
        }
    }
    let index =
        |name: &String| -> Option<f64> { name.split_once('[')?.1.strip_suffix(']')?.parse().ok() };
    let place = |&site: &usize| index(&names[site]).unwrap_or(site as f64);
    let of_all = |kept: &[usize], all: usize, what: &str| match kept.len() == all {
        true => String::new(),
        false => format!(" {} of {all} {what} are shown.", kept.len()),
    };
    let note = format!(
        "{} at each site over time.{}{}",
        array.name,
        of_all(&samples, run.samples(), "samples"),
        of_all(&sites, members, "sites")
    );
    Ok(Some(Chart {
        title: format!("{} in space and time", array.name),
        note,
        x: Axis { label: label.to_string(), ..Axis::time() },
        y: Axis::linear(array.dimensions[0].clone()),
        map: Some(Map {
            name: array.name.clone(),
            x: samples.iter().map(|&sample| times[sample]).collect(),
            y: sites.iter().map(place).collect(),
            values,
        }),
        ..Chart::default()
    }))
}
