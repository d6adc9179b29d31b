//! XYZ: the number of atoms, a comment, and a line for each atom. In extended XYZ the comment names
//! the columns (<https://github.com/libAtoms/extxyz>).

use super::{FIRST_FRAME, Format, TableColumns, atoms, number, some_atoms};

pub(super) const FORMAT: Format = Format {
    endings: &["xyz", "extxyz"],
    help: "an XYZ file has the number of atoms, a line of comment, and a line NAME X Y Z for each atom; extended XYZ \
           names other columns in its comment, as Properties=species:S:1:pos:R:3",
    rows: FIRST_FRAME,
    parse: first_frame,
};

/// Positions of the atoms of the first frame.
fn first_frame(text: &str) -> Result<TableColumns, String> {
    let mut lines = text.lines().zip(1..);
    let first = lines.next().ok_or("it is empty")?.0.trim();
    let count: usize = first
        .parse()
        .map_err(|_| format!("its first line is not the number of atoms, but '{first}'"))?;
    let layout =
        lines.next().map_or(Ok(AtomColumns::PLAIN), |(comment, _)| AtomColumns::of(comment))?;
    let position = |line: &str| layout.position(line);
    let columns = atoms(lines.by_ref().take(count), &format!(" of {count}"), position)?;
    let found = columns[0].1.len();
    if found < count {
        return Err(format!("the file ends after {found} of {count} atoms"));
    }
    // A frame is followed by the number of atoms of the next one.
    match lines.next() {
        Some((line, place)) if layout.position(line).is_ok() => {
            Err(format!("its first line counts {count} atoms, but line {place} has one more"))
        }
        _ => some_atoms(columns),
    }
}

/// Columns of an atom's line.
struct AtomColumns {
    /// Column of the first coordinate, from 0.
    first: usize,
    /// Number of columns, if it is known.
    columns: Option<usize>,
}

impl AtomColumns {
    const PLAIN: AtomColumns = AtomColumns { first: 1, columns: None };

    /// Columns that a comment names.
    fn of(comment: &str) -> Result<AtomColumns, String> {
        let Some(properties) = properties(comment) else { return Ok(AtomColumns::PLAIN) };
        let unread = |why: &str| format!("line 2: Properties={properties} {why}");
        let parts: Vec<&str> = properties.split(':').collect();
        let (mut columns, mut first) = (0usize, None);
        for part in parts.chunks(3) {
            let [name, kind, count] = part else {
                return Err(unread("is not a list of NAME:TYPE:COLUMNS"));
            };
            let count = count
                .trim()
                .parse::<usize>()
                .ok()
                .filter(|count| (1..=LARGEST_PROPERTY).contains(count));
            let count =
                count.ok_or_else(|| unread(&format!("gives no number of columns for {name}")))?;
            if name.trim().eq_ignore_ascii_case("pos") && first.is_none() {
                if count != 3 || !["R", "I"].contains(&kind.trim().to_ascii_uppercase().as_str()) {
                    return Err(unread("has positions that are not of three numbers, as pos:R:3"));
                }
                first = Some(columns);
            }
            columns += count;
        }
        let first = first.ok_or_else(|| unread("has no positions, as pos:R:3"))?;
        Ok(AtomColumns { first, columns: Some(columns) })
    }

    fn position(&self, line: &str) -> Result<[f64; 3], String> {
        let words = words(line);
        if let Some(columns) = self.columns.filter(|columns| *columns != words.len()) {
            return Err(format!(
                "it has {} columns, and Properties in line 2 has {columns}",
                words.len()
            ));
        }
        let Some([x, y, z]) = words.get(self.first..self.first + 3) else {
            return Err(format!("NAME X Y Z is expected, and found is '{}'", line.trim()));
        };
        Ok([number(x)?, number(y)?, number(z)?])
    }
}

/// Largest number of columns of one property, beyond which a count is a mistake.
const LARGEST_PROPERTY: usize = 1000;

/// Value of the key `Properties` of a comment, if it has one.
fn properties(comment: &str) -> Option<&str> {
    const KEY: &str = "properties";
    // Letters keep their places.
    let small = comment.to_ascii_lowercase();
    small.match_indices(KEY).find_map(|(at, _)| {
        let before = &comment[..at];
        let begins = before.is_empty() || before.ends_with(char::is_whitespace);
        let quoted = before.matches('"').count() % 2 == 1;
        let value = comment[at + KEY.len()..].trim_start().strip_prefix('=')?.trim_start();
        let value = match value.strip_prefix(['"', '\'']) {
            Some(rest) => rest.split(&value[..1]).next(),
            None => value.split_whitespace().next(),
        };
        value.filter(|_| begins && !quoted)
    })
}

/// Words of a line. A word that begins with a quote ends with the next one.
fn words(line: &str) -> Vec<&str> {
    let mut rest = line.trim_start();
    let mut words = Vec::new();
    while !rest.is_empty() {
        let inside = rest.strip_prefix('"').and_then(|inside| inside.find('"'));
        let end = inside
            .map_or_else(|| rest.find(char::is_whitespace).unwrap_or(rest.len()), |at| at + 2);
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}
