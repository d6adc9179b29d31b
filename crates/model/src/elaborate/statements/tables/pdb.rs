//! PDB: a record of fixed columns in each line (Protein Data Bank, Contents Guide 3.3).

use super::number;

/// Positions of the atoms of the first frame. It ends with the record `ENDMDL`, or, as many
/// programs write trajectories, with `END`; records that can stand only before atoms begin another
/// one.
pub(super) fn positions(text: &str) -> Result<Vec<[f64; 3]>, String> {
    let mut found = Vec::new();
    for (line, place) in text.lines().zip(1..) {
        match line.get(..6).unwrap_or(line).trim_end() {
            "ATOM" | "HETATM" => {
                let position = position(line);
                found.push(position.map_err(|reason| {
                    format!("line {place}, atom {}: {reason}", found.len() + 1)
                })?);
            }
            "ENDMDL" | "END" | "MODEL" | "HEADER" | "CRYST1" if !found.is_empty() => break,
            _ => {}
        }
    }
    Ok(found)
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
