//! Tables of numbers read from files.

use crate::elaborate::model::Table;
use crate::elaborate::{Elaborator, TableEntry};
use crate::syntax::ast::StatementKind;
use crate::syntax::diagnostic::Diagnostic;
use std::collections::HashSet;

impl Elaborator<'_> {
    pub(super) fn read_tables(&mut self) {
        let mut number = 0;
        for statement in &self.file.statements {
            let StatementKind::Table { name, path } = &statement.kind else { continue };
            match (self.read_table)(&path.text).and_then(|text| parse_file(&path.text, &text)) {
                Ok((columns, rows)) => self.tables[number] = TableEntry::new(Table { name: name.text.clone(), columns, rows }),
                Err(reason) => self.report(Diagnostic::error(format!("table '{}' cannot be read from {}: {reason}", name.text, path.text), path.span, "this file").help("a table is a text file of numbers separated by commas, its path relative to the model file; its first line names the columns")),
            }
            number += 1;
        }
    }
}

/// Column names and values of a table, and its number of rows.
type Columns = (Vec<(String, Vec<f64>)>, usize);

/// Parses a file by its extension: points of XYZ or PDB, or a table.
fn parse_file(path: &str, text: &str) -> Result<Columns, String> {
    match path.rsplit_once('.').map(|(_, ending)| ending.to_lowercase()).as_deref() {
        Some("xyz") => parse_xyz(text),
        Some("pdb" | "ent") => parse_pdb(text),
        _ => parse_table(text),
    }
}

/// Columns x, y and z of points.
fn points(points: &[[f64; 3]]) -> Result<Columns, String> {
    if points.is_empty() {
        return Err("it has no atoms".to_string());
    }
    let column = |(c, name): (usize, &str)| (name.to_string(), points.iter().map(|point| point[c]).collect());
    Ok((["x", "y", "z"].into_iter().enumerate().map(column).collect(), points.len()))
}

/// Coordinates of a point from three parts of one line.
fn point(line: usize, texts: [Option<&str>; 3]) -> Result<[f64; 3], String> {
    let mut point = [0.0; 3];
    for (c, text) in point.iter_mut().zip(texts) {
        let number = text.and_then(|text| text.trim().parse::<f64>().ok()).filter(|number| number.is_finite());
        *c = number.ok_or_else(|| format!("line {line} has no three coordinates"))?;
    }
    Ok(point)
}

/// Parses the first frame of an XYZ file: a count, a comment, and lines of a name and three numbers.
fn parse_xyz(text: &str) -> Result<Columns, String> {
    let mut lines = text.lines().enumerate();
    let count = lines.next().and_then(|(_, line)| line.trim().parse::<usize>().ok());
    let count = count.ok_or("its first line is not the number of atoms")?;
    let mut found = Vec::new();
    for (number, line) in lines.skip(1).take(count) {
        let mut words = line.split_whitespace().skip(1);
        found.push(point(number + 1, [words.next(), words.next(), words.next()])?);
    }
    if found.len() < count {
        return Err(format!("it ends after {} of {count} atoms", found.len()));
    }
    points(&found)
}

/// Parses the atoms of the first model of a PDB file.
fn parse_pdb(text: &str) -> Result<Columns, String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match line.get(..6).unwrap_or(line).trim_end() {
            "ATOM" | "HETATM" => {
                found.push(point(number + 1, [line.get(30..38), line.get(38..46), line.get(46..54)])?);
            }
            "ENDMDL" => break,
            _ => {}
        }
    }
    points(&found)
}

fn parse_table(text: &str) -> Result<Columns, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else { return Err("it is empty".to_string()) };
    let mut columns: Vec<(String, Vec<f64>)> =
        header.split(',').map(|name| (name.trim().trim_matches('"').to_string(), Vec::new())).collect();
    let mut names = HashSet::with_capacity(columns.len());
    if let Some((twice, _)) = columns.iter().find(|(name, _)| !names.insert(name)) {
        return Err(format!("it has two columns '{twice}'"));
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
