//! Parser of method names, and the checks that every method has to pass.

use std::str::FromStr;

use super::alias::{Alias, Meaning, Relatives};
use super::{COMPOSITIONS, Composition, Method, MethodTreatment, Needs, SCHEMES, Scheme, Step};
use super::{TREATMENTS, TreatmentFacts};

/// Reason why a method's name was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// The base scheme does not exist.
    #[error("there is no method `{name}`{}", did_you_mean(.suggestion))]
    UnknownScheme {
        /// Name as written.
        name: String,
        /// The nearest known name.
        suggestion: Option<&'static str>,
    },
    /// The base scheme does not exist, and others are near it.
    #[error("there is no method `{name}`; {what} {}", alternatives(.methods))]
    Elsewhere {
        /// Name as written.
        name: String,
        /// Description of the methods.
        what: &'static str,
        /// Methods to use.
        methods: &'static [&'static str],
    },
    /// The treatment does not exist.
    #[error("there is no treatment `{name}`{}", did_you_mean(.suggestion))]
    UnknownTreatment {
        /// Name as written.
        name: String,
        /// The nearest known name.
        suggestion: Option<&'static str>,
    },
    /// The parts do not go together.
    #[error("`{method}` makes no method: {reason}")]
    Unsuitable {
        /// Method as written.
        method: String,
        /// Reason, and what to write instead.
        reason: String,
    },
    /// A scheme has the name of another one.
    #[error("the name `{name}` of this scheme is that of another one: give it a name of its own")]
    NameTaken {
        /// The name.
        name: &'static str,
    },
    /// A treatment was given without a base scheme, or nothing at all.
    #[error(
        "`{text}` names no base scheme; write `BASE` or `TREATMENT:BASE`, for example `corrected:dop853`"
    )]
    NoScheme {
        /// Text as written.
        text: String,
    },
}

fn did_you_mean(suggestion: &Option<&'static str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn alternatives(methods: &[&str]) -> String {
    let quoted: Vec<String> = methods.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl FromStr for Method {
    type Err = MethodError;

    /// The first name determines the rest: a treatment or a scheme before a colon, a composition
    /// before a bracket.
    fn from_str(text: &str) -> Result<Method, MethodError> {
        let text = text.trim();
        let method = match text.split_once([':', '(']) {
            None => alone(text),
            Some((head, rest)) if text[head.len()..].starts_with(':') => {
                before_colon(text, head.trim(), rest.trim())
            }
            Some((head, rest)) => before_bracket(text, head.trim(), rest.trim()),
        }?;
        method.check()?;
        Ok(method)
    }
}

fn unsuitable(method: &str, reason: String) -> Result<Method, MethodError> {
    Err(MethodError::Unsuitable { method: method.into(), reason })
}

/// Method of a name without a colon or brackets.
fn alone(name: &str) -> Result<Method, MethodError> {
    match Meaning::of(name) {
        Some(Meaning::Scheme(scheme)) => Ok(Method::plain(scheme)),
        Some(Meaning::Method(method)) => method.parse(),
        Some(Meaning::Composition(composition @ Composition { name: known, .. })) => unsuitable(
            name,
            format!(
                "a composition needs a method: write {known}(METHOD), for example {known}({})",
                example(composition)
            ),
        ),
        Some(Meaning::Elsewhere(Relatives { what, methods, .. })) => {
            Err(MethodError::Elsewhere { name: name.into(), what, methods })
        }
        Some(Meaning::Treatment(_)) => Err(MethodError::NoScheme { text: name.into() }),
        None if name.is_empty() => Err(MethodError::NoScheme { text: name.into() }),
        None => {
            let names = SCHEMES.iter().map(|scheme| scheme.name);
            let names = names.chain(COMPOSITIONS.iter().map(|composition| composition.name));
            let names = names.chain(Alias::all().flat_map(|alias| alias.names.iter().copied()));
            let suggestion = nearest(name, names);
            Err(MethodError::UnknownScheme { name: name.into(), suggestion })
        }
    }
}

/// Method `TREATMENT:METHOD`, or `SCHEME:BASE` for a scheme that slides.
fn before_colon(text: &str, head: &str, rest: &str) -> Result<Method, MethodError> {
    match Meaning::of(head) {
        Some(Meaning::Treatment(_)) if rest.is_empty() => {
            Err(MethodError::NoScheme { text: text.into() })
        }
        Some(Meaning::Treatment(facts)) => match rest.parse()? {
            inner @ Method { treatment: MethodTreatment::Plain, .. } => {
                Ok(Method { treatment: facts.treatment, ..inner })
            }
            _ => unsuitable(text, "a method has one treatment".into()),
        },
        Some(Meaning::Scheme(scheme)) => {
            if let Some(Meaning::Treatment(TreatmentFacts { name, .. })) = Meaning::of(rest) {
                return unsuitable(
                    text,
                    format!("the treatment stands first: write {name}:{head}"),
                );
            }
            let base: Method = rest.parse()?;
            if base != Method::plain(base.scheme) {
                return unsuitable(&format!("{head}:{base}"), no_unconstrained_map(scheme));
            }
            Ok(Method { unconstrained: Some(base.scheme), ..Method::plain(scheme) })
        }
        Some(Meaning::Composition(Composition { name, .. })) => {
            unsuitable(text, format!("a composition has brackets: write {name}({rest})"))
        }
        _ if head.is_empty() => Err(MethodError::NoScheme { text: text.into() }),
        _ => {
            let suggestion = nearest(head, TREATMENTS.iter().map(|facts| facts.name));
            Err(MethodError::UnknownTreatment { name: head.into(), suggestion })
        }
    }
}

/// Method `COMPOSITION(METHOD)`.
fn before_bracket(text: &str, head: &str, rest: &str) -> Result<Method, MethodError> {
    let inner = rest.strip_suffix(')');
    let composition = match Meaning::of(head) {
        Some(Meaning::Composition(composition)) => composition,
        Some(Meaning::Treatment(TreatmentFacts { name, .. })) => {
            let inner = inner.unwrap_or(rest);
            return unsuitable(text, format!("a treatment has a colon: write {name}:{inner}"));
        }
        _ => {
            let suggestion = nearest(head, COMPOSITIONS.iter().map(|known| known.name));
            return Err(MethodError::UnknownScheme { name: text.into(), suggestion });
        }
    };
    let name = composition.name;
    let Some(inner) = inner else {
        let example = example(composition);
        return unsuitable(text, format!("write {name}(METHOD), for example {name}({example})"));
    };
    let base: Method = inner.parse()?;
    if base.treatment != MethodTreatment::Plain {
        let outer = base.treatment.facts().name;
        let inner = Method { treatment: MethodTreatment::Plain, ..base };
        let reason = format!("a treatment stands outside: write {outer}:{name}({inner})");
        return unsuitable(text, reason);
    }
    if base.composition.is_some() {
        return unsuitable(text, not_composed(composition, &base));
    }
    Ok(Method { composition: Some(composition), ..base })
}

/// A method that a composition may have.
fn example(composition: &Composition) -> &'static str {
    if composition.flows().is_some() { "kepler-splitting" } else { "rattle" }
}

fn not_composed(composition: &Composition, base: &Method) -> String {
    let what = if base.symmetric() {
        format!("has order {}", base.order())
    } else {
        "is not symmetric".to_string()
    };
    if composition.flows().is_some() && !base.scheme.needs.splits() {
        return format!(
            "{} composes the flows of two parts of H, and {base} has none; use kepler-splitting or strang",
            composition.name
        );
    }
    format!("{} composes a symmetric method of order 2, and {base} {what}", composition.name)
}

fn no_unconstrained_map(scheme: &Scheme) -> String {
    match scheme.step {
        Step::Sliding(..) => format!(
            "the unconstrained map of `{}` is a symplectic base scheme, such as stormer-verlet-a or symplectic-euler-a",
            scheme.name
        ),
        Step::Map(..)
        | Step::RungeKutta(_)
        | Step::Collocation(_)
        | Step::Stiff(_)
        | Step::Taylor(_) => {
            format!("`{}` is a base scheme and takes no other", scheme.name)
        }
    }
}

impl Method {
    /// Method of exactly this name, as it is printed and stored; other names of the parser may come
    /// to mean other methods. An explicit `plain:`, as older versions stored it, makes no
    /// difference.
    ///
    /// # Errors
    /// If there is no method of this name.
    pub fn named(name: &str) -> Result<Method, MethodError> {
        let method: Method = name.parse()?;
        let exact = method.to_string() == name.strip_prefix("plain:").unwrap_or(name);
        exact
            .then_some(method)
            .ok_or_else(|| MethodError::UnknownScheme { name: name.into(), suggestion: None })
    }

    /// Check that the parts of the method go together. Parsed methods have passed; the check is for
    /// those that are put together in code, with schemes of one's own.
    ///
    /// # Errors
    /// If a scheme has the name of another one or contradicts itself; if the unconstrained map, the
    /// composition or the treatment does not suit the scheme.
    pub fn check(&self) -> Result<(), MethodError> {
        let unsuitable =
            |reason: String| Err(MethodError::Unsuitable { method: self.to_string(), reason });
        for scheme in [Some(self.scheme), self.unconstrained].into_iter().flatten() {
            let name = scheme.name;
            let another = Scheme::named(name).is_some_and(|known| known != scheme);
            let is_treatment = TREATMENTS.iter().any(|facts| facts.name == name);
            if another || is_treatment || Composition::named(name).is_some() {
                return Err(MethodError::NameTaken { name });
            }
            if let Some(reason) = scheme.contradiction() {
                return unsuitable(reason);
            }
        }
        if let Some(base) = self.unconstrained {
            let slides = matches!(self.scheme.step, Step::Sliding(..));
            let is_map = matches!(base.step, Step::Map(..)) && base.takes_any_hamiltonian();
            if !slides || !base.facts().symplectic || !is_map {
                return unsuitable(no_unconstrained_map(self.scheme));
            }
        }
        let plain = Method { treatment: MethodTreatment::Plain, ..*self };
        if let Some(composition) = self.composition {
            let base = Method { composition: None, ..plain };
            let splits = base.scheme.needs.splits() || composition.flows().is_none();
            if !base.symmetric() || base.order() != 2 || !splits {
                return unsuitable(not_composed(composition, &base));
            }
        }
        match self.unsuitable_treatment() {
            Some(reason) => unsuitable(format!("{reason}; use {plain} alone")),
            None => Ok(()),
        }
    }

    /// Reason why the treatment would destroy the purpose of the scheme, if it does.
    fn unsuitable_treatment(&self) -> Option<&'static str> {
        let Method { treatment, scheme, .. } = *self;
        if scheme.needs == Needs::HeatBath && treatment != MethodTreatment::Plain {
            return Some(
                "in a heat bath there are no invariants to return to, and it holds the constraints itself",
            );
        }
        match treatment {
            MethodTreatment::Plain => None,
            MethodTreatment::Feedback if !scheme.follows_fields() => {
                Some("the feedback term is for explicit Runge-Kutta methods, gauss8, gauss16 and radau5")
            }
            MethodTreatment::Feedback => scheme
                .needs_formulas()
                .then_some("its steps are longer than the time in which a feedback term brings a state back"),
            MethodTreatment::Corrected => (scheme.facts().symplectic && !scheme.follows_fields()).then_some(
                "a correction would destroy that the method is symplectic, which is what bounds its errors over long \
                 times",
            ),
            MethodTreatment::Projection | MethodTreatment::SymmetricProjection => (scheme.needs == Needs::Coisotropic)
                .then_some("it already lands on the constraints, and a projection would destroy that it is symplectic"),
        }
    }
}

impl Scheme {
    /// Contradiction within the scheme's row, if there is one.
    fn contradiction(&self) -> Option<String> {
        let Scheme { name, step, .. } = self;
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || ":,()".contains(c)) {
            return Some(
                "a name has no blanks, colons, commas or brackets, and at least one letter".into(),
            );
        }
        (matches!(step, Step::Taylor(_)) && !self.needs_formulas()).then(|| {
            format!("`{name}` takes the series of formulas: let `needs` be `Needs::Series`")
        })
    }
}

/// Candidate with the fewest edits from `name`, if these are at most a third of its letters, or
/// one.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (edit_distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Number of letters to insert, delete, replace, or swap with a neighbour (restricted
/// Damerau–Levenshtein).
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
    fn facts_follow_from_coefficients() {
        for scheme in SCHEMES.iter().filter(|scheme| scheme.follows_fields()) {
            let facts = scheme.facts();
            let gauss = scheme.collocation().is_some();
            assert_eq!(facts.explicit, !gauss && scheme.stiff().is_none());
            assert_eq!((facts.symmetric, facts.symplectic), (gauss, gauss));
        }
        for facts in TREATMENTS {
            assert_eq!(facts.treatment.facts().name, facts.name);
        }
    }

    #[test]
    fn every_name_round_trips() {
        for &scheme in SCHEMES {
            let plain: Method = scheme.name.parse().unwrap();
            assert_eq!(plain, Method::plain(scheme));
            for facts in TREATMENTS.iter().filter(|_| scheme.runge_kutta().is_some()) {
                let method: Method = format!("{}:{}", facts.name, scheme.name).parse().unwrap();
                assert_eq!((method.treatment, method.scheme), (facts.treatment, scheme));
                assert_eq!(method.to_string().parse(), Ok(method));
            }
        }
        assert_eq!(
            " corrected : dop853 ".parse::<Method>().unwrap().to_string(),
            "corrected:dop853"
        );
    }

    #[test]
    fn structure_preserving_names_round_trip() {
        for (text, order, symmetric) in [
            ("rattle", 2, true),
            ("rattle:symplectic-euler-b", 1, false),
            ("shake:implicit-midpoint", 2, false),
            ("suzuki4(rattle:stormer-verlet-b)", 4, true),
            ("yoshida8(strang-kdk)", 8, true),
            ("projection:yoshida6(stormer-verlet-a)", 6, false),
            ("suzuki4(zhang-skeel)", 4, true),
            ("projection:newmark-one-step", 2, false),
        ] {
            let method: Method = text.parse().unwrap();
            assert_eq!(
                (method.to_string().as_str(), method.order(), method.symmetric()),
                (text, order, symmetric)
            );
        }
        assert_eq!(" suzuki4( rattle ) ".parse::<Method>().unwrap().to_string(), "suzuki4(rattle)");
    }

    #[test]
    fn parts_that_do_not_go_together_are_refused() {
        let message = |text: &str| text.parse::<Method>().unwrap_err().to_string();
        for (text, says) in [
            ("corrected:stormer-verlet-a", "would destroy that the method is symplectic"),
            ("corrected:suzuki4(rattle)", "use suzuki4(rattle) alone"),
            ("feedback:rattle", "for explicit Runge-Kutta methods"),
            ("projection:shake", "already lands on the constraints"),
            ("suzuki4(rk4)", "rk4 is not symmetric"),
            ("suzuki4(gauss4)", "gauss4 has order 4"),
            ("yoshida4(yoshida4(rattle))", "yoshida4(rattle) has order 4"),
            ("yoshida4(rattle:symplectic-euler-a)", "is not symmetric"),
            (
                "yoshida4(projection:stormer-verlet-a)",
                "write projection:yoshida4(stormer-verlet-a)",
            ),
            ("yoshida4", "write yoshida4(METHOD)"),
            ("yoshida4(rattle", "write yoshida4(METHOD)"),
            ("rattle:rk4", "such as stormer-verlet-a"),
            ("rattle:rattle", "such as stormer-verlet-a"),
            ("rattle:zhang-skeel", "such as stormer-verlet-a"),
            ("yoshida4(newmark-one-step)", "is not symmetric"),
            ("corrected:pushforward-newmark", "use pushforward-newmark alone"),
            ("rk4:euler", "takes no other"),
            ("corrected:g-baoab", "use g-baoab alone"),
            ("suzuki4(g-baoab)", "is not symmetric"),
            ("plain:corrected:rk4", "one treatment"),
            ("rk4:corrected", "write corrected:rk4"),
            ("corrected(rk4)", "write corrected:rk4"),
            ("yoshida4:rattle", "write yoshida4(rattle)"),
            ("yoshida4(forest-ruth)", "has order 4"),
        ] {
            let found = message(text);
            assert!(found.contains(says), "{text}: {found}");
        }
    }

    #[test]
    fn names_may_be_written_as_elsewhere() {
        for (text, name) in [
            ("RK4", "rk4"),
            ("Corrected:RK45", "corrected:dopri5"),
            ("symmetric_projection:DOP853", "symmetric-projection:dop853"),
            ("Suzuki4(leapfrog)", "suzuki4(stormer-verlet-a)"),
            ("rattle:Verlet", "rattle:stormer-verlet-a"),
            ("Störmer-Verlet", "stormer-verlet-a"),
            ("velocityVerlet", "velocity-verlet"),
            ("projection:suzuki4(position verlet)", "projection:suzuki4(stormer-verlet-b)"),
            ("Forest-Ruth", "yoshida4(stormer-verlet-b)"),
            ("projection:Forest-Ruth", "projection:yoshida4(stormer-verlet-b)"),
        ] {
            let method: Method = text.parse().unwrap();
            assert_eq!(method.to_string(), name, "{text}");
            // Stored names are exact.
            assert_eq!(
                (Method::named(name), Method::named(text).is_err()),
                (Ok(method), true),
                "{text}"
            );
        }
    }

    #[test]
    fn unknown_names_get_a_suggestion() {
        let message = |text: &str| text.parse::<Method>().unwrap_err().to_string();
        assert_eq!(message("dop835"), "there is no method `dop835`; did you mean `dop853`?");
        assert_eq!(message("RKK4"), "there is no method `RKK4`; did you mean `rk4`?");
        assert_eq!(
            message("corected:rk4"),
            "there is no treatment `corected`; did you mean `corrected`?"
        );
        assert_eq!(
            message("suzuki(rattle)"),
            "there is no method `suzuki(rattle)`; did you mean `suzuki4`?"
        );
        assert_eq!(message("rattel"), "there is no method `rattel`; did you mean `rattle`?");
        assert_eq!(message("leapfrg"), "there is no method `leapfrg`; did you mean `leapfrog`?");
        assert_eq!(
            message("corrected:IAS15"),
            "there is no method `IAS15`; an adaptive method of high order is `dop853`, `gauss16` or `taylor`"
        );
        assert_eq!(message("rk4(rk4)"), "there is no method `rk4(rk4)`");
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
