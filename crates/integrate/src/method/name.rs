//! The parser of method names.

use std::str::FromStr;

use super::table::{LATER, SCHEMES, TREATMENTS};
use super::{Method, Scheme, Treatment};

/// Why a method's name was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// No such base scheme.
    #[error("there is no method `{name}`{}", did_you_mean(.suggestion))]
    UnknownScheme {
        /// What was written.
        name: String,
        /// The nearest known name.
        suggestion: Option<&'static str>,
    },
    /// No such treatment.
    #[error("there is no treatment `{name}`{}", did_you_mean(.suggestion))]
    UnknownTreatment {
        /// What was written.
        name: String,
        /// The nearest known name.
        suggestion: Option<&'static str>,
    },
    /// The name is documented, but not part of this version.
    #[error("`{name}` is not available in this version of holonome; `holonome methods` lists those that are")]
    NotAvailable {
        /// The documented name.
        name: &'static str,
    },
    /// A treatment was given without a base scheme, or nothing at all.
    #[error("`{text}` names no base scheme; write `BASE` or `TREATMENT:BASE`, for example `corrected:dop853`")]
    NoScheme {
        /// What was written.
        text: String,
    },
}

fn did_you_mean(suggestion: &Option<&'static str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Method, MethodError> {
        let text = text.trim();
        // `yoshida4(rattle)` and the like: no composition is available yet, and its name alone decides.
        let head = text.split('(').next().unwrap_or_default();
        let (treatment, base) = match head.split_once(':') {
            None => (Treatment::Plain, head),
            Some((name, base)) => (parse_treatment(name.trim())?, base.trim()),
        };
        if let Some(&name) = LATER.iter().find(|&&name| name == base) {
            return Err(MethodError::NotAvailable { name });
        }
        if base.is_empty() || treatment_named(base).is_some() {
            return Err(MethodError::NoScheme { text: text.into() });
        }
        match Scheme::named(base) {
            Some(scheme) if head == text => Ok(Method { treatment, scheme }),
            _ => Err(MethodError::UnknownScheme {
                name: if head == text { base.into() } else { text.into() },
                suggestion: nearest(base, SCHEMES.iter().map(|scheme| scheme.name).chain(LATER.iter().copied())),
            }),
        }
    }
}

fn treatment_named(name: &str) -> Option<Treatment> {
    TREATMENTS.iter().find(|facts| facts.name == name).map(|facts| facts.treatment)
}

fn parse_treatment(name: &str) -> Result<Treatment, MethodError> {
    if let Some(treatment) = treatment_named(name) {
        return Ok(treatment);
    }
    if let Some(&name) = LATER.iter().find(|&&later| later == name) {
        return Err(MethodError::NotAvailable { name });
    }
    let suggestion = nearest(name, TREATMENTS.iter().map(|facts| facts.name));
    Err(MethodError::UnknownTreatment { name: name.into(), suggestion })
}

/// The candidate that takes the fewest edits from `name`, if it takes fewer than about half of the letters.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (edit_distance(&name, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Number of letters to insert, delete, replace, or swap with a neighbour (restricted Damerau–Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_tableaus() {
        for scheme in SCHEMES {
            let tableau = scheme.tableau();
            assert_eq!(scheme.order, tableau.order, "{}", scheme.name);
            assert_eq!(scheme.adaptive, tableau.is_adaptive(), "{}", scheme.name);
            assert_eq!(scheme.name, tableau.name);
            assert!(scheme.explicit, "a strictly lower triangular tableau is explicit");
            assert!(!scheme.symmetric && !scheme.symplectic, "no explicit Runge-Kutta method is either");
        }
        for facts in TREATMENTS {
            assert_eq!(facts.treatment.facts().name, facts.name);
        }
    }

    #[test]
    fn every_name_round_trips() {
        for scheme in SCHEMES {
            let plain: Method = scheme.name.parse().unwrap();
            assert_eq!(plain, Method { treatment: Treatment::Plain, scheme });
            for facts in TREATMENTS {
                let method: Method = format!("{}:{}", facts.name, scheme.name).parse().unwrap();
                assert_eq!((method.treatment, method.scheme), (facts.treatment, scheme));
                assert_eq!(method.to_string().parse(), Ok(method));
            }
        }
        assert_eq!(" corrected : dop853 ".parse::<Method>().unwrap().to_string(), "corrected:dop853");
    }

    #[test]
    fn later_names_are_refused_as_such() {
        for text in ["rattle", "rattle:gauss4", "corrected:stormer-verlet-a", "yoshida4(rattle)", "suzuki4(rk4)"] {
            let error = text.parse::<Method>().unwrap_err();
            assert!(matches!(error, MethodError::NotAvailable { .. }), "{text}: {error}");
            assert!(error.to_string().contains("not available in this version"));
        }
        // A name that has arrived must leave the list of those to come.
        assert!(LATER.iter().all(|name| Scheme::named(name).is_none() && treatment_named(name).is_none()));
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        let message = |text: &str| text.parse::<Method>().unwrap_err().to_string();
        assert_eq!(message("dop835"), "there is no method `dop835`; did you mean `dop853`?");
        assert_eq!(message("RK4"), "there is no method `RK4`; did you mean `rk4`?");
        assert_eq!(message("corected:rk4"), "there is no treatment `corected`; did you mean `corrected`?");
        assert_eq!(message("rattel"), "there is no method `rattel`; did you mean `rattle`?");
        assert_eq!(message("leapfrog"), "there is no method `leapfrog`");
        assert_eq!(message("rk4(rk4)"), "there is no method `rk4(rk4)`; did you mean `rk4`?");
        for text in ["", ":", "corrected", "corrected:"] {
            assert!(
                matches!(
                    text.parse::<Method>(),
                    Err(MethodError::NoScheme { .. } | MethodError::UnknownTreatment { .. })
                ),
                "{text}"
            );
        }
    }
}
