//! Gains by name: `--gain rod=50,rod.hidden=12.5,J=10` as numbers for the invariants.

use crate::error::Error;
use crate::options::Gains;
use holonome_model::syntax::diagnostic::did_you_mean;
use holonome_model::treatment::feedback::gain_name;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use holonome_words::option;

impl std::str::FromStr for Gains {
    type Err = Error;

    fn from_str(text: &str) -> Result<Gains, Error> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Gains::Auto);
        }
        let number = |value: &str| -> Result<f64, Error> {
            let bad = || {
                Error::option(format!(
                    "the gain '{}' is not a number: write {gain_auto}, {gain_50} or {gain_rod50h10}",
                    value.trim(),
                    gain_auto = option("gain").of("auto"),
                    gain_50 = option("gain").of("50"),
                    gain_rod50h10 = option("gain").of("rod=50,H=10")
                ))
            };
            let gain: f64 = value.trim().parse().map_err(|_| bad())?;
            if gain.is_finite() && gain >= 0.0 {
                Ok(gain)
            } else {
                Err(Error::option(format!(
                    "a gain must be finite and not negative, and this is {gain}"
                )))
            }
        };
        if !text.contains('=') {
            return number(text).map(Gains::Uniform);
        }
        let mut named: Vec<(String, f64)> = Vec::new();
        for part in text.split(',') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(Error::option(format!(
                    "'{part}' in {gain} is not NAME=NUMBER",
                    gain = option("gain")
                )));
            };
            let name = name.trim().to_string();
            if named.iter().any(|(n, _)| *n == name) {
                return Err(Error::option(format!(
                    "{gain} names '{name}' twice",
                    gain = option("gain")
                )));
            }
            named.push((name, number(value)?));
        }
        Ok(Gains::Named(named))
    }
}

/// One gain for each of these groups of a field's invariants.
///
/// # Errors
/// If a name is not that of an invariant.
pub fn by_group(gains: &Gains, groups: &[InvariantGroup]) -> Result<Vec<f64>, Error> {
    match gains {
        Gains::Uniform(gain) => {
            Ok(groups.iter().map(|g| if g.monitored_only { 0.0 } else { *gain }).collect())
        }
        Gains::Named(named) => {
            let all: Vec<String> = groups.iter().map(|g| gain_name(&g.name, g.kind)).collect();
            let held = all.iter().zip(groups).filter(|(_, group)| !group.monitored_only);
            let names: Vec<&String> = held.map(|(name, _)| name).collect();
            if let Some((unknown, _)) = named.iter().find(|(n, _)| !names.contains(&n)) {
                let hint = match did_you_mean(unknown, names.iter().map(|name| name.as_str())) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None if names.is_empty() => "the model has no invariants".to_string(),
                    None => {
                        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                        format!("the invariants are {}", names.join(", "))
                    }
                };
                return Err(Error::option(format!(
                    "{gain} names '{unknown}', which is no invariant of this model: {hint}",
                    gain = option("gain")
                )));
            }
            Ok(all
                .iter()
                .map(|name| named.iter().find(|(n, _)| n == name).map_or(0.0, |&(_, g)| g))
                .collect())
        }
        Gains::Auto | Gains::Matrix(_) | Gains::Formula => Ok(Vec::new()),
    }
}

/// The gains over the `count` rows of F: a row that stands for two entries counts twice.
pub fn by_row(gains: &[f64], groups: &[InvariantGroup], count: usize) -> Vec<f64> {
    let mut rows = vec![0.0; count];
    for (group, gain) in groups.iter().zip(gains) {
        for (row, weight) in group.members.rows() {
            rows[row] = gain * weight;
        }
    }
    rows
}

/// The gains of the groups in the notation of the option: `rod=50,rod.hidden=12.5`.
pub fn describe(gains: &[f64], groups: &[InvariantGroup]) -> String {
    let list: Vec<String> = groups
        .iter()
        .zip(gains)
        .map(|(g, gain)| format!("{}={gain}", gain_name(&g.name, g.kind)))
        .collect();
    list.join(",")
}

/// True if a kind of invariant is imposed rather than inherited.
pub fn is_imposed(kind: InvariantKind) -> bool {
    matches!(kind, InvariantKind::Constraint | InvariantKind::Hidden(_))
}
