//! Constant formulas: numbers given in options, in the language of models.

use holonome_model::elaborate::{Environment, Variations, elaborate};
use holonome_model::syntax::{self, diagnostic::Severity};
use std::cell::Cell;

/// Value of a number or a constant formula, such as `2*pi` or `1/100`.
///
/// # Errors
/// If it is neither, in words.
pub fn constant(text: &str) -> Result<f64, String> {
    if let Ok(number) = text.trim().parse() {
        return Ok(number);
    }
    if text.trim().is_empty() {
        return Err("a number or a formula is missing, as 100, 1e-3 or 2*pi".to_string());
    }
    // A statement ends with its line.
    let line = text.replace(['\n', '\r'], " ");
    let reading = syntax::read(&format!("parameter value = {line}\nstate x = 0\nx' = 0\n"));
    let drawn = Cell::new(false);
    let mut draw = |_| {
        drawn.set(true);
        0.0
    };
    let read_table = |_: &str| Err("a constant has no tables".to_string());
    let mut environment = Environment {
        read_table: &read_table,
        draw: &mut draw,
        replacements: Vec::new(),
        variations: Variations::default(),
        stiff: None,
    };
    let (model, found) = elaborate(&reading, &mut environment);
    let mistake = reading.diagnostics.iter().chain(&found).find(|d| d.severity == Severity::Error);
    if let Some(mistake) = mistake {
        return Err(mistake.message.clone());
    }
    match model.as_ref().map(|model| &model.parameter_values[..]) {
        Some(_) if drawn.get() => Err("a constant cannot be drawn".to_string()),
        Some([value]) => Ok(*value),
        Some(_) => Err("it is a vector or a matrix; a number is wanted".to_string()),
        None => Err("it is no constant formula".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::constant;
    use std::f64::consts::{PI, TAU};

    #[test]
    fn formulas_have_the_values_of_the_language() {
        for (text, value) in [
            ("100", 100.0),
            ("1e-3", 1e-3),
            ("-2.5", -2.5),
            ("2*pi", TAU),
            ("1/100", 0.01),
            ("2*pi/1000", TAU / 1000.0),
            ("sqrt(2)^2 - 2", 2f64.sqrt().powi(2) - 2.0),
            (" -pi ", -PI),
            ("max(1, 2)", 2.0),
        ] {
            assert_eq!(constant(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_constant_says_why() {
        for (text, why) in [
            ("", "missing"),
            ("soon", "soon"),
            ("2*", ""),
            ("t", ""),
            ("(1, 2)", "vector"),
            ("normal()", ""),
            ("1; 2", ""),
            ("1\nparameter q = 2", ""),
            ("x", ""),
        ] {
            let error = constant(text).expect_err(text);
            assert!(error.contains(why) && !error.is_empty(), "{text}: {error}");
        }
    }
}
