//! Tables of numbers read from files.

mod csv;
mod pdb;
mod xyz;

use crate::elaborate::model::Table;
use crate::elaborate::{Elaborator, TableEntry};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::statements::StatementKind;

/// Columns of a table: their names and values, of equal length.
type TableColumns = Vec<(String, Vec<f64>)>;

/// A format of files from which tables are read.
struct Format {
    /// Endings of such files, in small letters.
    endings: &'static [&'static str],
    /// Description of such a file, for whoever wrote another one.
    help: &'static str,
    /// Description of the rows, for messages; empty if they are all that the file has.
    rows: &'static str,
    /// Parser of a file's text, which says what it expected and where.
    parse: fn(&str) -> Result<TableColumns, String>,
}

/// The formats. A file without a known ending is of the last one.
const FORMATS: [&Format; 3] = [&xyz::FORMAT, &pdb::FORMAT, &csv::FORMAT];

const FIRST_FRAME: &str = "atoms of its first frame";

/// Endings of files that hold positions in other formats.
const OTHERS: &[&str] = &[
    "gro",
    "g96",
    "cif",
    "mmcif",
    "mol",
    "mol2",
    "sdf",
    "dcd",
    "xtc",
    "trr",
    "nc",
    "lammpstrj",
    "dump",
    "crd",
    "rst7",
];

impl Elaborator<'_> {
    pub(super) fn read_tables(&mut self) {
        let mut number = 0;
        for statement in self.statements {
            if statement.kind != StatementKind::Table {
                continue;
            }
            let (name, path) = (&statement.name, &statement.reference);
            match self.read(&path.text) {
                Ok((columns, format)) => {
                    let rows = columns.first().map_or(0, |(_, values)| values.len());
                    let table =
                        Table { name: name.text.clone(), columns, rows, rows_are: format.rows };
                    self.tables[number] = TableEntry::new(table);
                }
                Err((reason, help)) => {
                    let message = format!(
                        "table '{}' cannot be read from {}: {reason}",
                        name.text, path.text
                    );
                    self.report(Diagnostic::error(message, path.span, "this file").help(help));
                }
            }
            number += 1;
        }
    }

    /// Content of the table's file at `path`, or the reason why it has none and a remedy.
    fn read(&self, path: &str) -> Result<(TableColumns, &'static Format), (String, &'static str)> {
        let ending =
            path.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_lowercase());
        if OTHERS.contains(&ending.as_str()) {
            let reason = format!("files that end in .{ending} are not read");
            return Err((
                reason,
                "positions are read from .xyz and .pdb files, to which most programs convert others",
            ));
        }
        let known = |format: &&&Format| format.endings.contains(&ending.as_str());
        let format = FORMATS.iter().find(known).unwrap_or(&FORMATS[FORMATS.len() - 1]);
        let text = self
            .read_table
            .map_or(Err("no files are read".to_string()), |read| read(path))
            .map_err(|reason| {
                (reason, "a table is a text file, and its path is relative to the model file")
            })?;
        // Some editors put a mark of the encoding in front.
        let columns = (format.parse)(text.trim_start_matches('\u{feff}'))
            .map_err(|reason| (reason, format.help))?;
        Ok((columns, format))
    }
}

/// Columns x, y and z of atoms, from lines with their numbers in the file.
fn atoms<'t>(
    lines: impl Iterator<Item = (&'t str, usize)>,
    of_all: &str,
    position: impl Fn(&str) -> Result<[f64; 3], String>,
) -> Result<TableColumns, String> {
    let mut columns: TableColumns =
        ["x", "y", "z"].map(|name| (name.to_string(), Vec::new())).into();
    for (number, (line, place)) in (1..).zip(lines) {
        let point = position(line)
            .map_err(|reason| format!("line {place}, atom {number}{of_all}: {reason}"))?;
        columns.iter_mut().zip(point).for_each(|((_, values), x)| values.push(x));
    }
    Ok(columns)
}

/// The reason why columns without atoms are no table.
fn some_atoms(columns: TableColumns) -> Result<TableColumns, String> {
    if columns[0].1.is_empty() { Err("it has no atoms".to_string()) } else { Ok(columns) }
}

/// Finite number of a text, or the reason why it is none.
fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(number) => Err(format!("{number} is not finite")),
        Err(_) => Err(format!("'{text}' is not a number")),
    }
}
