//! Numbers separated by commas, below a line with the names of the columns.

use super::{Columns, number};
use std::collections::HashSet;

/// Columns of a table.
pub(super) fn columns(text: &str) -> Result<Columns, String> {
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
    let mut columns: Vec<(String, Vec<f64>)> =
        names.iter().map(|name| (name.to_string(), Vec::new())).collect();
    let mut rows = 0;
    for (line, place) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != columns.len() {
            return Err(format!(
                "line {place} has {} fields, and the header has {}",
                fields.len(),
                columns.len()
            ));
        }
        for (field, (name, values)) in fields.iter().zip(&mut columns) {
            let value = number(unquoted(field));
            values
                .push(value.map_err(|reason| format!("line {place}, column '{name}': {reason}"))?);
        }
        rows += 1;
    }
    Ok((columns, rows))
}

fn unquoted(field: &str) -> &str {
    field.trim().trim_matches('"').trim()
}
