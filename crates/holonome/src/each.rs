//! Values of an ensemble's trajectories from texts and files: `list(1,2,5)`, `0..1,11`,
//! `starts.csv:x,y`, `starts.npy`, `starts.zarr:q`.

mod zarr;

use crate::constant::constant;
use crate::regular;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Numbers that a text lists: `list(A, B, …)`, or `A..B,N` for N evenly spaced ones, both ends
/// included. `None` for any other text, as a formula is.
///
/// # Errors
/// If it has one of these forms but not one that can be evaluated.
pub fn listed(text: &str) -> Result<Option<Arc<[f64]>>, String> {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')')) {
        let values: Vec<f64> =
            separated(inside).map(|part| constant(part.trim())).collect::<Result<_, _>>()?;
        return Ok(Some(values.into()));
    }
    // The language writes ranges in the same way, but within brackets: neither side is a constant.
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (until, count) = rest.rsplit_once(',').map_or((rest, None), |(b, n)| (b, Some(n)));
    let (Ok(a), Ok(b)) = (constant(from.trim()), constant(until.trim())) else { return Ok(None) };
    let count = count.and_then(|count| count.trim().parse::<usize>().ok()).filter(|n| *n > 0);
    let Some(count) = count else {
        return Err(format!(
            "say how many values lie between the ends, as {}..{},11",
            from.trim(),
            until.trim()
        ));
    };
    let last = count.saturating_sub(1);
    let value = |k: usize| match k {
        0 => a,
        k if k == last => b,
        k => a + (b - a) * (k as f64 / last as f64),
    };
    Ok(Some((0..count).map(value).collect()))
}

/// Parts of a text between the commas that no brackets enclose.
fn separated(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
}

/// Values of every trajectory, from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Numbers, one row after the other.
    pub numbers: Arc<[f64]>,
    /// Number of rows, one for each trajectory.
    pub rows: usize,
}

/// Read the values of every trajectory from a file: `FILE.csv:COLUMN,…` takes these columns of a
/// table with a header, `FILE.csv` all of them; `FILE.npy`, `FOLDER.zarr` and `FOLDER.zarr:ARRAY` are
/// arrays whose first dimension is that of the trajectories.
///
/// # Errors
/// If the file cannot be read; if it has no such column, or something in it is not a number.
pub fn read(text: &str) -> Result<Rows, String> {
    let (path, columns) = match text.rsplit_once(':') {
        Some((path, columns)) if !Path::new(text).exists() => (path, Some(columns)),
        _ => (text, None),
    };
    let path = PathBuf::from(path);
    if zarr::is_there(&path) {
        let array = columns.map_or_else(|| path.clone(), |name| path.join(name.trim()));
        return match zarr::is_there(&array) {
            true => zarr::read(&array).map_err(|reason| format!("{}: {reason}", array.display())),
            false => {
                Err(format!("{} has no array {}", path.display(), columns.unwrap_or_default()))
            }
        };
    }
    let bytes = regular::read(&path).map_err(|error| {
        format!(
            "cannot read {} ({error}): name a CSV or .npy file, or the folder of a Zarr array",
            path.display()
        )
    })?;
    let read = match path.extension().is_some_and(|ending| ending == "npy") {
        true if columns.is_some() => Err("an array of .npy has no named columns".to_string()),
        true => npy(&bytes),
        false => std::str::from_utf8(&bytes)
            .map_err(|error| error.to_string())
            .and_then(|text| csv(text, columns)),
    };
    read.map_err(|reason| format!("{}: {reason}", path.display()))
}

/// Times that a text lists, `0.1,0.5,2*pi`, or that are in a file: the column `t` of a table, the
/// one that is named behind it, or the only one.
///
/// # Errors
/// As [`read`]; if the file has several columns and none of them is `t`.
pub fn times(text: &str) -> Result<Vec<f64>, String> {
    let listed: Result<Vec<f64>, String> = separated(text).map(constant).collect();
    if let Ok(times) = listed {
        return Ok(times);
    }
    let Rows { numbers, rows } = match read(&format!("{text}:t")) {
        Ok(of_time) => of_time,
        Err(_) => {
            read(text).map_err(|reason| format!("{reason}; or list the times, as 0,1,2*pi"))?
        }
    };
    match numbers.len() == rows {
        true => Ok(numbers.to_vec()),
        false => Err(format!("{text} has several columns: name one, as {text}:COLUMN")),
    }
}

/// Columns of comma-separated values with a header.
fn csv(text: &str, columns: Option<&str>) -> Result<Rows, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("it is empty: its first line names the columns")?;
    let names = fields(header);
    if names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(format!("its first line is '{header}', and it should name the columns"));
    }
    let places: Vec<usize> = match columns {
        None => (0..names.len()).collect(),
        Some(wanted) => fields(wanted)
            .into_iter()
            .map(|name| {
                names.iter().position(|known| *known == name).ok_or_else(|| {
                    format!("it has no column '{name}', it has {}", names.join(", "))
                })
            })
            .collect::<Result<_, _>>()?,
    };
    let (mut numbers, mut rows) = (Vec::new(), 0);
    for (line, text) in lines {
        let values = fields(text);
        for &place in &places {
            let value = values.get(place).map_or("", |value| value.as_str());
            let number = value.parse().map_err(|_| {
                format!("line {}, column '{}': '{value}' is not a number", line + 1, names[place])
            })?;
            numbers.push(number);
        }
        rows += 1;
    }
    Ok(Rows { numbers: numbers.into(), rows })
}

/// Fields of a line, between commas that no quotes enclose (RFC 4180).
fn fields(line: &str) -> Vec<String> {
    let mut quoted = false;
    let parts = line.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    let bare = |part: &str| {
        let part = part.trim();
        let inside = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inside.map_or(part.to_string(), |inside| inside.replace("\"\"", "\""))
    };
    parts.map(bare).collect()
}

/// Array in NumPy's format (NEP 1), of floats or integers in the order of C.
fn npy(bytes: &[u8]) -> Result<Rows, String> {
    let cut = || "it is cut off".to_string();
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("it is not an array of NumPy")?;
    let (&[major, _], rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (u16::from_le_bytes(*length) as usize, rest)
        }
        _ => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = String::from_utf8_lossy(header);
    let entry = |key: &str| {
        let rest = header.split_once(&format!("'{key}':"))?.1.trim_start();
        Some(rest.split_once(if rest.starts_with('(') { ')' } else { ',' })?.0)
    };
    if entry("fortran_order") != Some("False") {
        return Err("it is not in the order of C: store numpy.ascontiguousarray(…)".to_string());
    }
    let shape = entry("shape").and_then(|shape| shape.strip_prefix('(')).ok_or_else(cut)?;
    let lengths: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|length| !length.is_empty())
        .map(|length| length.parse().map_err(|_| cut()))
        .collect::<Result<_, _>>()?;
    let numbers: Vec<f64> = match entry("descr") {
        Some("'<f8'") => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        Some("'<f4'") => data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
        Some("'<i8'") => data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
        Some("'<i4'") => data.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect(),
        other => {
            let other = other.unwrap_or("nothing");
            return Err(format!("it holds {other}: store floats, as array.astype(float)"));
        }
    };
    let [rows, ..] = lengths[..] else {
        return Err("it is a single number: give one for each trajectory".to_string());
    };
    let expected = lengths.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
    if expected != Some(numbers.len()) {
        return Err(cut());
    }
    Ok(Rows { numbers: numbers.into(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_evenly_spaced_numbers() {
        let of = |text| listed(text).map(|values| values.map(|values| values.to_vec()));
        assert_eq!(of("list(1, 2*3, max(1,5))"), Ok(Some(vec![1.0, 6.0, 5.0])));
        assert_eq!(of("0..1,5"), Ok(Some(vec![0.0, 0.25, 0.5, 0.75, 1.0])));
        assert_eq!(of("-1 .. pi, 2"), Ok(Some(vec![-1.0, std::f64::consts::PI])));
        assert_eq!(of("3..4,1"), Ok(Some(vec![3.0])));
        for formula in ["1+i/N", "sum(k in 1..3 : k)", "(0, 1, 2)"] {
            assert_eq!(of(formula), Ok(None), "{formula}");
        }
        assert!(of("0..1").unwrap_err().contains("0..1,11") && of("list(a)").is_err());
        assert!(of("0..1,0").is_err());
    }

    #[test]
    fn tables_and_arrays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("starts.csv");
        std::fs::write(&path, "k,\"q[1,2]\",name\n1,0.5,a\n2,1e-3,b\n").unwrap();
        let of = |columns: &str| read(&format!("{}{columns}", path.display()));
        assert_eq!(of(":k").unwrap().numbers[..], [1.0, 2.0]);
        let both = of(":\"q[1,2]\",k").unwrap();
        assert_eq!((&both.numbers[..], both.rows), (&[0.5, 1.0, 1e-3, 2.0][..], 2));
        assert!(of(":x").unwrap_err().contains("it has no column 'x', it has k, q[1,2], name"));
        assert!(of("").unwrap_err().contains("line 2, column 'name': 'a' is not a number"));
        let array = folder.path().join("starts.npy");
        let header =
            format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend([1.5f64, -2.0].iter().flat_map(|number| number.to_le_bytes()));
        std::fs::write(&array, &bytes).unwrap();
        let rows = read(array.to_str().unwrap()).unwrap();
        assert_eq!((&rows.numbers[..], rows.rows), (&[1.5, -2.0][..], 2));
        for length in 0..bytes.len() {
            std::fs::write(&array, &bytes[..length]).unwrap();
            assert!(read(array.to_str().unwrap()).is_err(), "{length}");
        }
    }
}
