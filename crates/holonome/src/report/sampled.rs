//! Columns of a stored run, thinned without losing any extreme.

use super::Axes;
use crate::error::Error;
use crate::recording::TIME;
use crate::store::{ArrayLayout, RowReader, StoredRun};
use holonome_figures::{Axis, Chart, Curve, Extremes, Preset, Samples, Style};

/// Maximum number of columns of the arrays: more would make the page large and its lists long.
const COLUMNS: usize = 24;

/// Maximum number of rows over which a curve can still be drawn quickly.
const ROWS: usize = 40_000;

/// Place of a column: its array, and its position in the array's rows.
pub(super) type ColumnPlace = (usize, usize);

/// Rows of some columns of a run's arrays.
struct Rows<'p> {
    places: &'p [ColumnPlace],
    readers: Vec<RowReader>,
    row: Vec<f64>,
}

impl<'p> Rows<'p> {
    fn new(
        run: &StoredRun,
        arrays: &[ArrayLayout],
        places: &'p [ColumnPlace],
    ) -> Result<Rows<'p>, Error> {
        let readers = arrays.iter().map(|array| run.rows(&array.name)).collect::<Result<_, _>>();
        Ok(Rows { places, readers: readers.map_err(Error::store)?, row: Vec::new() })
    }

    fn read(&mut self, row: usize) -> Result<&[f64], Error> {
        self.row.clear();
        for &(array, place) in self.places {
            self.row.push(self.readers[array].row(row).map_err(Error::store)?[place]);
        }
        Ok(&self.row)
    }
}

/// Columns in full.
pub(super) fn whole(
    run: &StoredRun,
    arrays: &[ArrayLayout],
    places: &[ColumnPlace],
) -> Result<Vec<Vec<f64>>, Error> {
    let mut columns: Vec<Vec<f64>> =
        places.iter().map(|_| Vec::with_capacity(run.samples())).collect();
    let mut rows = Rows::new(run, arrays, places)?;
    for row in 0..run.samples() {
        columns.iter_mut().zip(rows.read(row)?).for_each(|(column, &number)| column.push(number));
    }
    Ok(columns)
}

/// Label of the unit of a column, if it is known.
pub(super) fn unit(run: &StoredRun, column: &str) -> Option<String> {
    if column == TIME {
        return run.time_unit().map(String::from);
    }
    let is_its = |array: &ArrayLayout| {
        let names = run.column_names(&array.name).unwrap_or_default();
        names.iter().any(|name| name == column)
    };
    let arrays = run.arrays().into_iter();
    let array = arrays.filter(|array| array.unit().is_some()).find(is_its)?;
    array.unit().map(String::from)
}

/// Label of an axis, with a unit if there is one.
pub(super) fn with_unit(label: &str, unit: Option<&str>) -> String {
    unit.map_or(label.to_string(), |unit| format!("{label} ({unit})"))
}

/// Rows that are drawn of columns of one length, for about `numbers` numbers.
pub(super) fn drawn<C: AsRef<[f64]>>(columns: &[C], numbers: usize) -> Vec<usize> {
    let all = columns.first().map_or(0, |column| column.as_ref().len());
    let mut extremes = Extremes::new(all, columns.len(), numbers);
    let mut row = Vec::new();
    for k in 0..all {
        row.clear();
        row.extend(columns.iter().map(|column| column.as_ref()[k]));
        extremes.push(&row);
    }
    extremes.finish()
}

/// The selected rows of a column.
pub(super) fn at(column: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&row| column[row]).collect()
}

/// All columns of a short array; for a long one some members, evenly spread, including the first
/// and the last.
fn chosen(names: &[String], members: usize, most: usize) -> Vec<usize> {
    let (length, member) = (names.len(), names.len() / members.max(1));
    if length <= most.max(member) {
        return (0..length).collect();
    }
    let kept = (most / member.max(1)).max(2).min(members);
    let at = |k: usize| k * (members - 1) / (kept - 1).max(1);
    (0..kept).flat_map(|k| at(k) * member..(at(k) + 1) * member).collect()
}

/// Columns of all arrays but residuals, which have charts of their own, and single values; with the
/// times before them.
pub(super) fn samples(run: &StoredRun, name: &str, numbers: usize) -> Result<Samples, Error> {
    let arrays: Vec<_> = run
        .arrays()
        .into_iter()
        .filter(|array| !array.name.starts_with("residual.") && !array.once)
        .collect();
    let names =
        arrays.iter().map(|array| run.column_names(&array.name)).collect::<Result<Vec<_>, _>>();
    let names = names.map_err(Error::store)?;
    let all: usize = names.iter().map(Vec::len).sum();
    let most = if all <= COLUMNS { COLUMNS } else { (COLUMNS / arrays.len().max(1)).max(3) };
    let (mut places, mut table) = (Vec::new(), vec![("t".to_string(), Vec::new())]);
    for (array, names) in names.iter().enumerate() {
        let members = run.members(&arrays[array].name).map_err(Error::store)?;
        for place in chosen(names, members, most) {
            places.push((array, place));
            table.push((names[place].clone(), Vec::new()));
        }
    }
    places.truncate(2 * COLUMNS);
    table.truncate(places.len() + 1);
    let rows = run.samples();
    let mut extremes = Extremes::new(rows, places.len(), numbers.min(ROWS * places.len().max(1)));
    let mut numbers = Rows::new(run, &arrays, &places)?;
    for row in 0..rows {
        extremes.push(numbers.read(row)?);
    }
    let kept = extremes.finish();
    table[0].1 = at(&run.times().map_err(Error::store)?, &kept);
    let mut numbers = Rows::new(run, &arrays, &places)?;
    for &row in &kept {
        table[1..]
            .iter_mut()
            .zip(numbers.read(row)?)
            .for_each(|((_, column), &number)| column.push(number));
    }
    let mut units = run.time_unit().map(|unit| (TIME.to_string(), unit.to_string()));
    let of_columns = table[1..].iter().zip(&places).filter_map(|((name, _), (array, _))| {
        Some((name.clone(), arrays[*array].unit()?.to_string()))
    });
    let units = units.take().into_iter().chain(of_columns).collect();
    Ok(Samples {
        name: name.to_string(),
        columns: table,
        units,
        of: rows,
        motion: true,
        joined: true,
        note: String::new(),
    })
}

/// Chart of columns as points over another, by default the columns of a choice. `missing` tells the
/// error of a column that is not there, with the names of those that are.
pub(super) fn points(
    columns: &[(String, Vec<f64>)],
    (axes, begin): (&Axes, Option<Preset>),
    missing: impl Fn(&str, String) -> Error,
) -> Result<Chart, Error> {
    let begin = begin.unwrap_or_default();
    let x = axes.x.clone().unwrap_or(begin.x);
    let y = if axes.y.is_empty() { vec![begin.y] } else { axes.y.clone() };
    let values = |name: &str| match columns.iter().find(|(known, _)| known == name) {
        Some((_, values)) => Ok(values.clone()),
        None => {
            let known: Vec<&str> = columns.iter().map(|(known, _)| known.as_str()).collect();
            Err(missing(name, known.join(", ")))
        }
    };
    let over = values(&x)?;
    let curve = |(colour, name): (usize, &String)| {
        let (x, y) = (over.clone(), values(name)?);
        Ok(Curve { name: name.clone(), colour, x, y, style: Style::Points, bounds: Vec::new() })
    };
    let curves = y.iter().enumerate().map(curve).collect::<Result<Vec<_>, Error>>()?;
    Ok(Chart { x: Axis::linear(x), y: Axis::linear(y.join(", ")), curves, ..Chart::default() })
}

/// A single number of each sample, as times and values, thinned to about `points` of them.
pub(super) fn curve(
    run: &StoredRun,
    times: &[f64],
    array: &str,
    points: usize,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let values = run.read(array).map_err(Error::store)?;
    let kept = drawn(&[&values], points);
    Ok((at(times, &kept), at(&values, &kept)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_family_whole_members_stay() {
        let names: Vec<String> = (0..300).map(|k| k.to_string()).collect();
        assert_eq!(chosen(&names, 100, 9), [0, 1, 2, 147, 148, 149, 297, 298, 299]);
        assert_eq!(chosen(&names, 100, 2), [0, 1, 2, 297, 298, 299], "two members at least");
        assert_eq!(chosen(&names[..9], 3, 9).len(), 9);
        assert_eq!(chosen(&names[..10], 1, 9), (0..10).collect::<Vec<_>>(), "a matrix is not torn");
        assert_eq!(chosen(&[], 0, 9), [0; 0]);
    }
}
