//! Tables of numbers read from files.

use crate::elaborate::model::Table;
use crate::elaborate::{Elaborator, TableEntry};
use crate::syntax::ast::StatementKind;
use crate::syntax::diagnostic::Diagnostic;

impl Elaborator<'_> {
    pub(super) fn read_tables(&mut self) {
        let mut number = 0;
        for statement in &self.file.statements {
            let StatementKind::Table { name, path } = &statement.kind else { continue };
            match (self.read_table)(&path.text).and_then(|text| parse_table(&text)) {
                Ok((columns, rows)) => self.tables[number] = TableEntry { table: Table { name: name.text.clone(), columns, rows }, failed: false },
                Err(reason) => self.report(Diagnostic::error(format!("table '{}' cannot be read from {}: {reason}", name.text, path.text), path.span, "this file").help("a table is a text file of numbers separated by commas, its path relative to the model file; its first line names the columns")),
            }
            number += 1;
        }
    }
}

/// Column names and values of a table, and its number of rows.
type Columns = (Vec<(String, Vec<f64>)>, usize);

fn parse_table(text: &str) -> Result<Columns, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else { return Err("it is empty".to_string()) };
    let mut columns: Vec<(String, Vec<f64>)> =
        header.split(',').map(|name| (name.trim().trim_matches('"').to_string(), Vec::new())).collect();
    if let Some(twice) = (1..columns.len()).find(|&k| columns[..k].iter().any(|(name, _)| *name == columns[k].0)) {
        return Err(format!("it has two columns '{}'", columns[twice].0));
    }
    let mut rows = 0;
    for (number, line) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != columns.len() {
            return Err(format!(
                "line {} has {} fields, and the header has {}",
                number + 1,
                fields.len(),
                columns.len()
            ));
        }
        for (field, (name, values)) in fields.iter().zip(&mut columns) {
            let value: f64 = field
                .trim()
                .parse()
                .map_err(|_| format!("line {}, column '{name}': '{}' is not a number", number + 1, field.trim()))?;
            if !value.is_finite() {
                return Err(format!("line {}, column '{name}': {value} is not finite", number + 1));
            }
            values.push(value);
        }
        rows += 1;
    }
    Ok((columns, rows))
}
