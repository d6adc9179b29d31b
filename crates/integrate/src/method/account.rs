//! Accounts of schemes, treatments and compositions, as a user reads them: facts, needs, source, and
//! the comment at the head of the file that implements them.

use serde::Serialize;

use super::alias::{Alias, Meaning};
use super::{COMPOSITIONS, Composition, Method, MethodError, MethodTreatment, SCHEMES, Scheme};
use super::{SchemeFacts, TREATMENTS, TreatmentFacts};

/// Account of a scheme, a treatment or a composition.
#[derive(Debug, Serialize)]
pub struct Account {
    /// Name on the command line.
    pub name: &'static str,
    /// Facts of its kind.
    #[serde(flatten)]
    pub facts: AccountFacts,
    /// One line on it and its use.
    pub description: &'static str,
    /// Work in which it was published.
    pub source: &'static str,
    /// Comment at the head of its file.
    pub account: String,
}

/// Facts in an account.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum AccountFacts {
    /// Facts of a scheme.
    Scheme {
        /// Those that [`Scheme::facts`] gives.
        #[serde(flatten)]
        facts: SchemeFacts,
        /// True if it can choose its steps.
        adaptive: bool,
        /// Number of stages, if it has coefficients.
        #[serde(skip_serializing_if = "Option::is_none")]
        stages: Option<usize>,
        /// Requirements on a model.
        needs: String,
    },
    /// Facts of a treatment.
    Treatment {
        /// Requirements on a model beyond those of the scheme.
        needs: &'static str,
    },
    /// Facts of a composition.
    Composition {
        /// Order of a composition of a symmetric method of order 2, or of two flows.
        order: u32,
        /// Factors of the successive steps, or of the successive flows of a splitting, the motion
        /// first.
        substeps: Vec<f64>,
        /// True if it composes flows.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        of_flows: bool,
        /// True if these flows are a corrector.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        corrects: bool,
    },
}

/// Accounts of everything in the registry, or of all parts of a method.
#[derive(Debug, Serialize)]
pub struct Accounts {
    /// Base schemes.
    pub schemes: Vec<Account>,
    /// Treatments.
    pub treatments: Vec<Account>,
    /// Compositions.
    pub compositions: Vec<Account>,
    /// Names of methods elsewhere.
    pub other_names: Vec<Alias>,
}

impl Accounts {
    /// Accounts of the whole registry.
    pub fn all() -> Accounts {
        Accounts {
            schemes: SCHEMES.iter().map(|scheme| Account::from(*scheme)).collect(),
            treatments: TREATMENTS.iter().map(Account::from).collect(),
            compositions: COMPOSITIONS.iter().map(Account::from).collect(),
            other_names: Alias::all().collect(),
        }
    }

    /// Accounts of a treatment or a composition, or of all parts of a method.
    ///
    /// # Errors
    /// If nothing has this name.
    pub fn of(name: &str) -> Result<Accounts, MethodError> {
        let (treatment, composition, schemes) = match Meaning::of(name.trim()) {
            Some(Meaning::Treatment(facts)) => (Some(facts), None, vec![]),
            Some(Meaning::Composition(composition)) => (None, Some(composition), vec![]),
            _ => {
                let Method { treatment, composition, scheme, unconstrained } = name.parse()?;
                let treated = treatment != MethodTreatment::Plain;
                let schemes = [Some(scheme), unconstrained].into_iter().flatten().collect();
                (treated.then(|| treatment.facts()), composition, schemes)
            }
        };
        let is_named = |alias: &Alias| schemes.iter().any(|scheme| scheme.name == alias.method);
        Ok(Accounts {
            other_names: Alias::all().filter(is_named).collect(),
            schemes: schemes.into_iter().map(Account::from).collect(),
            treatments: treatment.into_iter().map(Account::from).collect(),
            compositions: composition.into_iter().map(Account::from).collect(),
        })
    }
}

/// Lines of the comment at the head of a source file, without their slashes.
fn head(file: &str) -> String {
    let lines = file.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

impl From<&Scheme> for Account {
    fn from(scheme: &Scheme) -> Account {
        let facts = AccountFacts::Scheme {
            facts: scheme.facts(),
            adaptive: scheme.adaptive(),
            stages: scheme.stages(),
            needs: scheme.needs.to_string(),
        };
        let Scheme { name, description, citation: source, .. } = *scheme;
        Account { name, facts, description, source, account: head(scheme.file) }
    }
}

impl From<&TreatmentFacts> for Account {
    fn from(treatment: &TreatmentFacts) -> Account {
        let TreatmentFacts { name, needs, description, citation: source, file, .. } = *treatment;
        let facts = AccountFacts::Treatment { needs };
        Account { name, facts, description, source, account: head(file) }
    }
}

impl From<&Composition> for Account {
    fn from(composition: &Composition) -> Account {
        let Composition { name, order, description, citation: source, .. } = *composition;
        let flows = composition.flows();
        let of_flows = flows.is_some();
        let substeps = flows.map_or_else(
            || composition.substeps(),
            |flows| match &flows.corrector[..] {
                [] => flows.step.iter().map(|flow| flow.part()).collect(),
                corrector => corrector.iter().map(|flow| flow.part()).collect(),
            },
        );
        let corrects = !composition.symmetric();
        let facts = AccountFacts::Composition { order, substeps, of_flows, corrects };
        let account = head(include_str!("../scheme/composition.rs"));
        Account { name, facts, description, source, account }
    }
}
