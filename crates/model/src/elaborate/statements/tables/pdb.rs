//! PDB: a record of fixed columns in each line (Protein Data Bank, Contents Guide 3.3).

use super::{FIRST_FRAME, Format, TableColumns, atoms, number, some_atoms};

pub(super) const FORMAT: Format = Format {
    endings: &["pdb", "ent"],
    help: "a PDB file has an ATOM or HETATM record for each atom, with x, y and z in columns 31-38, 39-46 and 47-54",
    rows: FIRST_FRAME,
    parse: first_frame,
};

/// Positions of the atoms of the first frame. It ends with the record `ENDMDL`, or, as many
/// programs write trajectories, with `END`; records that can stand only before atoms begin another
/// one.
fn first_frame(text: &str) -> Result<TableColumns, String> {
    let is_atom = |line: &str| ["ATOM", "HETATM"].contains(&record(line));
    let is_border =
        |line: &str| ["ENDMDL", "END", "MODEL", "HEADER", "CRYST1"].contains(&record(line));
    let from_first_atom = text.lines().zip(1..).skip_while(|(line, _)| !is_atom(line));
    let frame = from_first_atom.take_while(|(line, _)| !is_border(line));
    some_atoms(atoms(frame.filter(|(line, _)| is_atom(line)), "", position)?)
}

/// Name of a line's record.
fn record(line: &str) -> &str {
    line.get(..6).unwrap_or(line).trim_end()
}

/// Position of an atom's record.
fn position(line: &str) -> Result<[f64; 3], String> {
    let columns = |name: &str, first: usize, last: usize| {
        // Columns are characters.
        let text: String = line.chars().skip(first - 1).take(last - first + 1).collect();
        number(&text)
            .map_err(|reason| format!("{name} stands in columns {first}-{last}, where {reason}"))
    };
    Ok([columns("x", 31, 38)?, columns("y", 39, 46)?, columns("z", 47, 54)?])
}
