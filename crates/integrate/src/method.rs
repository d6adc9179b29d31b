//! The registry of methods: one table of base schemes, one of treatments, and the parser of their names.
//!
//! Help texts, `holonome methods` and the tests are generated from these tables; adding a scheme means one file in
//! `scheme/` and one row here.

mod name;
mod table;

pub use name::MethodError;
pub use table::{SCHEMES, TREATMENTS};

use std::fmt;

use crate::tableau::Tableau;

/// The facts of a base scheme, as a user reads them.
#[derive(Debug)]
pub struct Scheme {
    /// Name on the command line.
    pub name: &'static str,
    /// Order of convergence.
    pub order: u32,
    /// Whether stepping forward and back returns to the start.
    pub symmetric: bool,
    /// Whether the map preserves the symplectic form.
    pub symplectic: bool,
    /// Whether a step needs no equation solved.
    pub explicit: bool,
    /// Whether it estimates its error, and so can choose its steps.
    pub adaptive: bool,
    /// What it needs of a model.
    pub needs: &'static str,
    /// One line on what it is and when to take it.
    pub description: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    tableau: fn() -> &'static Tableau,
}

impl Scheme {
    /// The scheme's coefficients, built and checked on first use.
    pub fn tableau(&self) -> &'static Tableau {
        (self.tableau)()
    }

    /// The scheme of this name.
    pub fn named(name: &str) -> Option<&'static Scheme> {
        SCHEMES.iter().find(|scheme| scheme.name == name)
    }
}

impl PartialEq for Scheme {
    /// Names are unique in the table.
    fn eq(&self, other: &Scheme) -> bool {
        self.name == other.name
    }
}

/// What is done around a base scheme to keep the invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Nothing: the field as it is.
    Plain,
    /// The field carries an attracting term; the steps are plain.
    Feedback,
    /// One regularised Gauss–Newton step after each accepted step.
    Corrected,
    /// Projection onto the invariants' level set after each step.
    Projection,
}

/// The facts of a treatment, as a user reads them.
#[derive(Debug)]
pub struct TreatmentFacts {
    /// Name on the command line, before the colon.
    pub name: &'static str,
    /// The treatment.
    pub treatment: Treatment,
    /// What it needs of a model beyond what its scheme needs.
    pub needs: &'static str,
    /// One line on what it does.
    pub description: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
}

impl Treatment {
    /// The treatment's row in the table.
    pub fn facts(self) -> &'static TreatmentFacts {
        match self {
            Treatment::Plain => &TREATMENTS[0],
            Treatment::Feedback => &TREATMENTS[1],
            Treatment::Corrected => &TREATMENTS[2],
            Treatment::Projection => &TREATMENTS[3],
        }
    }

    /// Whether a step's result is moved, so that the field at it must be evaluated anew.
    pub fn moves_the_state(self) -> bool {
        matches!(self, Treatment::Corrected | Treatment::Projection)
    }
}

/// A method: a treatment around a base scheme, written `TREATMENT:BASE`, or `BASE` for `plain:BASE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// What is done around the scheme.
    pub treatment: Treatment,
    /// The base scheme.
    pub scheme: &'static Scheme,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.treatment {
            Treatment::Plain => f.write_str(self.scheme.name),
            treatment => write!(f, "{}:{}", treatment.facts().name, self.scheme.name),
        }
    }
}
