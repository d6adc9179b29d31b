//! Parts of the report: variables, constraints, matrices, methods.

use serde::Serialize;

/// Kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// A Hamiltonian, with constraints or without.
    Hamiltonian,
    /// A Hamiltonian beside a matrix of brackets.
    Poisson,
    /// A vector field.
    Field,
}

/// Matrix of brackets of a Poisson system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoissonMatrix {
    /// Its rank at a random point; `None` if brackets connect too many variables.
    pub rank: Option<usize>,
    /// Names of the integrals that are Casimir functions.
    pub casimirs: Vec<String>,
    /// Number of their scalars.
    pub scalars: usize,
}

impl PoissonMatrix {
    /// Line of the report, of a system with so many variables.
    pub(super) fn line(&self, dimension: usize) -> String {
        let count = |n: usize| match n {
            1 => "1 Casimir function".to_string(),
            n => format!("{n} Casimir functions"),
        };
        match self.rank {
            Some(rank) => format!(
                "  Poisson matrix of rank {rank}: {}, {} of them known",
                count(dimension - rank),
                if self.scalars == 0 { "none".to_string() } else { self.scalars.to_string() },
            ),
            None => format!("  Poisson matrix: {} known", count(self.scalars)),
        }
    }
}

/// A variable, or a family of variables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariableRow {
    /// Its name.
    pub name: String,
    /// `coordinate`, `momentum of q` or `state`.
    pub role: String,
    /// Number of numbers.
    pub components: usize,
}

/// Kind of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConstraintRole {
    /// Of a vector field: its state's manifold.
    Manifold,
    /// Of positions, and perhaps of the time.
    Holonomic,
    /// Of momenta, too.
    PhaseSpace,
    /// Of velocities, with d'Alembert's forces.
    Rolling,
}

/// A constraint, or a family of constraints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstraintRow {
    /// Its name.
    pub name: String,
    /// Number of members.
    pub members: usize,
    /// Number of scalar equations of all members.
    pub scalars: usize,
    /// Number of these that follow from the others.
    pub redundant: usize,
    /// Kind of the constraint.
    pub kind: ConstraintRole,
    /// True if it moves with the time.
    pub rheonomic: bool,
    /// Of a rolling one, whether it is integrable by itself: it could be one of positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrable: Option<bool>,
    /// Dirac's class, in words; empty if it is not known.
    pub class: &'static str,
    /// Formula of its hidden constraint, if it has one.
    pub hidden: Option<&'static str>,
    /// The constraint and its hidden ones by order, with their partners, if these are not those of
    /// the class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRow>,
}

/// A constraint or a hidden one with its partners.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassRow {
    /// Its name: `rod`, `rod.hidden`, `rod.hidden2`.
    pub name: String,
    /// 0 for the constraint itself, 1 for its hidden one, 2 for that one's.
    pub order: u32,
    /// Number of scalar equations.
    pub scalars: usize,
    /// Names of those with which it is second class.
    #[serde(rename = "second_class_with")]
    pub with: Vec<String>,
}

/// Properties of the mass matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MassMatrix {
    /// True if it does not depend on the state.
    pub constant: bool,
    /// True if it is diagonal.
    pub diagonal: bool,
}

/// Rank of DF at the initial state and at a few points of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Least rank.
    #[serde(rename = "rank")]
    pub least: usize,
    /// Largest rank.
    pub largest: usize,
    /// Number of rows of F.
    #[serde(rename = "count")]
    pub rows: usize,
    /// Number of points.
    pub points: usize,
}

/// Size of the Jacobian DF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Jacobian {
    /// Number of entries that are not identically 0.
    pub nonzeros: usize,
    /// Number of all entries.
    pub dense: usize,
}

/// Size of a templated field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TemplateRows {
    /// Number of templates.
    pub templates: usize,
    /// Number of their rows.
    pub rows: usize,
}

/// A method, or methods that are refused for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodRow {
    /// `TREATMENT:BASE`, or names of schemes.
    pub name: String,
    /// True if it suits the model.
    pub applies: bool,
    /// Description of what it does, or reason why it does not apply; may be empty.
    pub reason: String,
}
