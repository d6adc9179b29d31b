//! Numbers separated by commas, below a line with the names of the columns.

use super::{Format, TableColumns, number};
use std::collections::HashSet;

pub(super) const FORMAT: Format = Format {
    endings: &["csv"],
    help: "a table is a text file whose first line names the columns; every other line has a number for each column, \
           separated by commas",
    rows: "",
    parse: columns,
};

/// Columns of a table.
fn columns(text: &str) -> Result<TableColumns, String> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let Some((header, place)) = lines.next() else { return Err("it is empty".to_string()) };
    let names: Vec<&str> = header.split(',').map(unquoted).collect();
    if names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(format!("line {place} names no columns, but has numbers"));
    }
    let mut known = HashSet::with_capacity(names.len());
    if let Some(twice) = names.iter().find(|name| !known.insert(**name)) {
        return Err(format!("it has two columns '{twice}'"));
    }
    let mut columns: TableColumns =
        names.iter().map(|name| (name.to_string(), Vec::new())).collect();
    for (line, place) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != columns.len() {
            let (own, needed) = (fields.len(), columns.len());
            return Err(format!("line {place} has {own} fields, and the header has {needed}"));
        }
        for (field, (name, values)) in fields.iter().zip(&mut columns) {
            let value = number(unquoted(field));
            values
                .push(value.map_err(|reason| format!("line {place}, column '{name}': {reason}"))?);
        }
    }
    Ok(columns)
}

fn unquoted(field: &str) -> &str {
    field.trim().trim_matches('"').trim()
}
