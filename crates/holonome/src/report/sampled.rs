//! Some columns of a stored run, thinned so that no extreme is lost.

use crate::error::Error;
use crate::store::{RowReader, StoredRun};
use holonome_figures::{Extremes, Samples};

/// Columns of the arrays at most: more would make the page large and its lists long.
const COLUMNS: usize = 24;

/// Rows at most, over which a curve can still be drawn quickly.
const ROWS: usize = 40_000;

/// A column to be read.
struct Column {
    name: String,
    array: usize,
    place: usize,
}

/// Every column of a short array; of a long one some members, evenly spread, the first and the last among them.
fn chosen(names: &[String], members: usize, most: usize) -> Vec<usize> {
    let (length, member) = (names.len(), names.len() / members.max(1));
    if length <= most.max(member) {
        return (0..length).collect();
    }
    let kept = (most / member.max(1)).max(2).min(members);
    let at = |k: usize| k * (members - 1) / (kept - 1).max(1);
    (0..kept).flat_map(|k| at(k) * member..(at(k) + 1) * member).collect()
}

/// The columns of all arrays but `drift` and `residual`, whose charts have their own, with the times before them.
pub(super) fn samples(run: &StoredRun, name: &str, numbers: usize) -> Result<Samples, Error> {
    let arrays: Vec<_> =
        run.arrays().into_iter().filter(|array| !array.name.starts_with("residual.") && !array.once).collect();
    let names = arrays.iter().map(|array| run.column_names(&array.name)).collect::<Result<Vec<_>, _>>();
    let names = names.map_err(Error::store)?;
    let all: usize = names.iter().map(Vec::len).sum();
    let most = if all <= COLUMNS { COLUMNS } else { (COLUMNS / arrays.len().max(1)).max(3) };
    let mut columns = Vec::new();
    for (array, names) in names.iter().enumerate() {
        let members = run.members(&arrays[array].name).map_err(Error::store)?;
        let places = chosen(names, members, most);
        columns.extend(places.into_iter().map(|place| Column { name: names[place].clone(), array, place }));
    }
    columns.truncate(2 * COLUMNS);
    let readers = || -> Result<Vec<RowReader>, Error> {
        arrays.iter().map(|array| run.rows(&array.name).map_err(Error::store)).collect()
    };
    let rows = run.samples();
    let numbers = numbers.min(ROWS * columns.len().max(1));
    let mut extremes = Extremes::new(rows, columns.len(), numbers);
    let mut row_of = Rows { columns: &columns, readers: readers()?, row: Vec::new() };
    for row in 0..rows {
        extremes.push(row_of.read(row)?);
    }
    let kept = extremes.finish();
    let times = run.times().map_err(Error::store)?;
    let mut table: Vec<(String, Vec<f64>)> = vec![("t".to_string(), kept.iter().map(|&row| times[row]).collect())];
    table.extend(columns.iter().map(|column| (column.name.clone(), Vec::with_capacity(kept.len()))));
    let mut row_of = Rows { columns: &columns, readers: readers()?, row: Vec::new() };
    for &row in &kept {
        let numbers = row_of.read(row)?;
        table[1..].iter_mut().zip(numbers).for_each(|((_, column), &number)| column.push(number));
    }
    Ok(Samples { name: name.to_string(), columns: table, of: rows, motion: true })
}

/// Reads the columns' numbers of a row.
struct Rows<'c> {
    columns: &'c [Column],
    readers: Vec<RowReader>,
    row: Vec<f64>,
}

impl Rows<'_> {
    fn read(&mut self, row: usize) -> Result<&[f64], Error> {
        self.row.clear();
        for column in self.columns {
            let numbers = self.readers[column.array].row(row).map_err(Error::store)?;
            self.row.push(numbers[column.place]);
        }
        Ok(&self.row)
    }
}

/// Columns by their array and their place in its rows, the times where there is none, thinned to about so many rows.
pub(super) fn named(run: &StoredRun, places: &[Option<(String, usize)>], rows: usize) -> Result<Vec<Vec<f64>>, Error> {
    let times = run.times().map_err(Error::store)?;
    let mut columns = Vec::new();
    for place in places {
        let Some((array, place)) = place else {
            columns.push(times[..run.samples()].to_vec());
            continue;
        };
        let mut reader = run.rows(array).map_err(Error::store)?;
        let numbers = (0..run.samples()).map(|row| reader.row(row).map(|numbers| numbers[*place]));
        columns.push(numbers.collect::<Result<_, _>>().map_err(Error::store)?);
    }
    let mut extremes = Extremes::new(run.samples(), columns.len(), rows * columns.len());
    let mut row = Vec::new();
    for k in 0..run.samples() {
        row.clear();
        row.extend(columns.iter().map(|column| column[k]));
        extremes.push(&row);
    }
    let kept = extremes.finish();
    Ok(columns.into_iter().map(|column| kept.iter().map(|&k| column[k]).collect()).collect())
}

/// A single number of each sample, thinned to about `points` of them: times and values.
pub(super) fn curve(run: &StoredRun, times: &[f64], array: &str, points: usize) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let values = run.read(array).map_err(Error::store)?;
    let mut extremes = Extremes::new(values.len(), 1, points);
    values.iter().for_each(|value| extremes.push(&[*value]));
    Ok(extremes.finish().into_iter().map(|row| (times[row], values[row])).unzip())
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
