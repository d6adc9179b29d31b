//! Helpers shared by the tests of the symbolic half.
#![allow(dead_code)] // each test uses its own part

use holonome_model::elaborate::model::Model;
use holonome_model::elaborate::{Environment, elaborate};
use holonome_model::functional::{Stretches, Term};
use holonome_model::syntax::ast::{Expr, Name};
use holonome_model::syntax::diagnostic::Diagnostic;
use holonome_model::syntax::span::Span;

/// Reads and checks a model.
pub fn check(text: &str) -> (Option<Model>, Vec<Diagnostic>) {
    check_with(text, &|path| Err(format!("{path} is not there")), &[])
}

/// [`check`] for a model whose tables are in a folder of the project.
pub fn check_in(folder: &str, text: &str) -> (Option<Model>, Vec<Diagnostic>) {
    check_with(text, &|path| Ok(file(&format!("{folder}/{path}"))), &[])
}

/// [`check`] with tables and with replacements (`--set NAME=EXPR`). Draws are 0.125, 0.25, …
pub fn check_with(
    text: &str,
    read_table: &dyn Fn(&str) -> Result<String, String>,
    set: &[(&str, &str)],
) -> (Option<Model>, Vec<Diagnostic>) {
    let reading = holonome_model::syntax::read(text);
    let mut draws = 0;
    let mut environment = Environment {
        read_table,
        draw: &mut |_| {
            draws += 1;
            0.125 * f64::from(draws)
        },
        replacements: set
            .iter()
            .map(|(name, value)| {
                (Name { text: name.to_string(), span: Span::default() }, expression(value))
            })
            .collect(),
        variations: Default::default(),
        stiff: None,
    };
    let (model, mut diagnostics) = elaborate(&reading, &mut environment);
    let mut all = reading.diagnostics;
    all.append(&mut diagnostics);
    (model.filter(|_| all.is_empty()), all)
}

/// A model that must be free of findings.
pub fn model(text: &str) -> Model {
    let (model, diagnostics) = check(text);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    model.expect("a model without findings")
}

/// A model file of the project.
pub fn file(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Models of a folder of the project: name and text, in order, with included files in place.
pub fn files(folder: &str) -> Vec<(String, String)> {
    let path = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = std::fs::read_dir(&path)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|n| n.ends_with(".holo"));
    names.sort();
    names.into_iter().map(|n| (n.clone(), with_includes(&file(&format!("{folder}/{n}"))))).collect()
}

/// A text with the files of the library in place of the statements that include them.
fn with_includes(text: &str) -> String {
    let included = |line: &str| {
        let name = line.trim().strip_prefix("include \"")?.split('"').next()?;
        Some(with_includes(&file(&format!("crates/holonome/src/library/{name}"))))
    };
    text.lines().map(|line| included(line).unwrap_or_else(|| line.to_string()) + "\n").collect()
}

fn expression(text: &str) -> Expr {
    let (file, diagnostics) = holonome_model::syntax::parse(&format!("let v = {text}"));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    file.statements.into_iter().next().expect("a let").values.remove(0)
}

/// A term with one of its rows.
pub fn only(term: &Term, row: usize) -> Term {
    let mut table = Stretches::new(term.table.width());
    table.push(&term.row(row).iter().collect::<Vec<_>>());
    Term { table, ..term.clone() }
}
