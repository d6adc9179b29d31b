//! Reference state, whose invariants are the targets of a run.

use crate::error::Error;
use crate::options::{RunOptions, Settings};
use crate::problem::Problem;
use holonome_words::option;

/// State whose invariants are the targets; `None` without the option.
pub(crate) fn reference_state(
    problem: &Problem,
    options: &RunOptions,
) -> Result<Option<Vec<f64>>, Error> {
    let Some(text) = &options.reference else { return Ok(None) };
    // The start may be off the set, its target may not.
    let mut settings = Settings { start_off_set: false, ..problem.settings.clone() };
    let parts = split_assignments(text);
    for part in &parts {
        let Some((name, value)) = part.split_once('=') else {
            return Err(Error::option(format!(
                "{reference}: '{part}' is not NAME=EXPR; write for example {reference} \"q=(0,1,0),p=(1,0,-1)\"",
                reference = option("reference")
            )));
        };
        let name = name.trim();
        if !problem.model.phase_variables().any(|v| v.family.name == name) {
            let names: Vec<&str> =
                problem.model.phase_variables().map(|v| v.family.name.as_str()).collect();
            return Err(Error::option(format!(
                "{reference}: '{name}' is no variable of the model; these are: {}",
                names.join(", "),
                reference = option("reference")
            )));
        }
        settings.set.retain(|(n, _)| n != name);
        settings.set.push((name.to_string(), value.trim().to_string()));
    }
    // The same file with other initial values, so a reference has to pass the checks of a start.
    let other =
        Problem::from_text(&problem.name, problem.source.text(), &problem.tables, &settings)
            .map_err(|mut error| {
                if let Error::Model { text: source, .. } = &mut error {
                    source.rename(
                        problem.source.name(),
                        &option("reference").to_string(),
                        parts.len(),
                    );
                }
                error
            })?;
    let mut state = other.model.initial.clone();
    problem.model.turn(&mut state);
    Ok(Some(state))
}

/// Splits `q=(0,1,0),p=(1,0,-1)` at the commas outside brackets.
fn split_assignments(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' | ';' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
