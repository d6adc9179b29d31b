//! Shared by the tests of the symbolic half.
#![allow(dead_code)] // each test uses its own part

use holonome_model::elaborate::model::Model;
use holonome_model::elaborate::{Environment, elaborate};
use holonome_model::syntax::diagnostic::Diagnostic;

/// Reads and checks a model.
pub fn check(text: &str) -> (Option<Model>, Vec<Diagnostic>) {
    let reading = holonome_model::syntax::read(text);
    let mut draws = 0;
    let mut environment = Environment {
        read_table: &|path| Err(format!("{path} is not there")),
        draw: &mut |_| {
            draws += 1;
            0.125 * f64::from(draws)
        },
        replacements: Vec::new(),
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
