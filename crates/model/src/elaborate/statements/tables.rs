//! Tables of numbers read from files.

mod csv;
mod pdb;
mod xyz;

use crate::elaborate::model::Table;
use crate::elaborate::{Elaborator, TableEntry};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::statements::StatementKind;

/// Column names and values of a table, and its number of rows.
type Columns = (Vec<(String, Vec<f64>)>, usize);

/// A format of files from which tables are read.
struct Format {
    /// Endings of such files, in small letters.
    endings: &'static [&'static str],
    /// Description of such a file, for whoever wrote another one.
    help: &'static str,
    /// Description of the rows, for messages; empty if they are all that the file has.
    rows: &'static str,
    /// Parser of a file's text, which says what it expected and where.
    parse: fn(&str) -> Result<Columns, String>,
}

const FIRST_FRAME: &str = "atoms of its first frame";

const XYZ: Format = Format {
    endings: &["xyz", "extxyz"],
    help: "an XYZ file has the number of atoms, a line of comment, and a line NAME X Y Z for each atom; extended XYZ \
           names other columns in its comment, as Properties=species:S:1:pos:R:3",
    rows: FIRST_FRAME,
    parse: |text| points(&xyz::positions(text)?),
};

const PDB: Format = Format {
    endings: &["pdb", "ent"],
    help: "a PDB file has an ATOM or HETATM record for each atom, with x, y and z in columns 31-38, 39-46 and 47-54",
    rows: FIRST_FRAME,
    parse: |text| points(&pdb::positions(text)?),
};

const CSV: Format = Format {
    endings: &["csv"],
    help: "a table is a text file whose first line names the columns; every other line has a number for each column, \
           separated by commas",
    rows: "",
    parse: csv::columns,
};

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
        for statement in &self.file.statements {
            if statement.kind != StatementKind::Table {
                continue;
            }
            let (name, path) = (&statement.name, &statement.reference);
            match self.read(&path.text) {
                Ok(((columns, rows), format)) => {
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
    fn read(&self, path: &str) -> Result<(Columns, &'static Format), (String, &'static str)> {
        let ending =
            path.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_lowercase());
        if OTHERS.contains(&ending.as_str()) {
            let reason = format!("files that end in .{ending} are not read");
            return Err((
                reason,
                "positions are read from .xyz and .pdb files, to which most programs convert others",
            ));
        }
        // Without a known ending a file is a table.
        let format = [&XYZ, &PDB]
            .into_iter()
            .find(|format| format.endings.contains(&ending.as_str()))
            .unwrap_or(&CSV);
        let text = (self.read_table)(path).map_err(|reason| {
            (reason, "a table is a text file, and its path is relative to the model file")
        })?;
        // Some editors put a mark of the encoding in front.
        let columns = (format.parse)(text.trim_start_matches('\u{feff}'))
            .map_err(|reason| (reason, format.help))?;
        Ok((columns, format))
    }
}

/// Columns x, y and z of points.
fn points(points: &[[f64; 3]]) -> Result<Columns, String> {
    if points.is_empty() {
        return Err("it has no atoms".to_string());
    }
    let column = |(c, name): (usize, &str)| {
        (name.to_string(), points.iter().map(|point| point[c]).collect())
    };
    Ok((["x", "y", "z"].into_iter().enumerate().map(column).collect(), points.len()))
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
