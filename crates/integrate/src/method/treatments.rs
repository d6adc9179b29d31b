//! Treatments of methods, and their rows of the registry.

/// Treatment around a base scheme that keeps the invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodTreatment {
    /// Nothing: the field as it is.
    Plain,
    /// The field carries an attracting term; the steps are plain.
    Feedback,
    /// One regularised Gauss–Newton step after each accepted step.
    Corrected,
    /// Projection onto the invariants' level set after each step.
    Projection,
    /// Projection by the same multipliers before and after each step.
    SymmetricProjection,
}

/// Row of a treatment.
#[derive(Debug)]
pub struct TreatmentFacts {
    /// Name on the command line, before the colon.
    pub name: &'static str,
    /// The treatment.
    pub treatment: MethodTreatment,
    /// Requirements on a model beyond those of the scheme.
    pub needs: &'static str,
    /// One line on the treatment.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
    /// Text of the treatment's own file, whose head comment a user reads.
    pub file: &'static str,
}

impl MethodTreatment {
    /// Row of the treatment in the table.
    pub fn facts(self) -> &'static TreatmentFacts {
        &TREATMENTS[self as usize]
    }

    /// True if a step's result is moved, so that the field at it must be evaluated anew.
    pub fn moves_the_state(self) -> bool {
        self.begins_on_the_set() || self.needs_equal_steps()
    }

    /// True if every step begins where the constraints are met, so that the field matters only near
    /// there.
    pub fn begins_on_the_set(self) -> bool {
        matches!(self, MethodTreatment::Corrected | MethodTreatment::Projection)
    }

    /// True if all steps have to be equal: a step that depends on the direction of time is not
    /// symmetric.
    pub fn needs_equal_steps(self) -> bool {
        self == MethodTreatment::SymmetricProjection
    }

    /// True if the treatment solves equations by an iteration with a tolerance, in a metric that can
    /// be chosen.
    pub fn iterates(self) -> bool {
        matches!(self, MethodTreatment::Projection | MethodTreatment::SymmetricProjection)
    }
}

/// Every treatment of this version.
pub static TREATMENTS: &[TreatmentFacts] = &[
    TreatmentFacts {
        name: "plain",
        treatment: MethodTreatment::Plain,
        needs: "nothing",
        description: "the field as it is; for a constrained Hamiltonian, its Dirac extension",
        citation: "Dirac, Canad. J. Math. 2 (1950) 129",
        file: include_str!("../dirac.rs"),
    },
    TreatmentFacts {
        name: "feedback",
        treatment: MethodTreatment::Feedback,
        needs: "invariants and their gains",
        description: "the field plus a term that attracts to the invariants' level set",
        citation: "Chang, Jimenez, Perlmutter, J. Nonlinear Sci. 26 (2016) 1693",
        file: include_str!("../feedback_term.rs"),
    },
    TreatmentFacts {
        name: "corrected",
        treatment: MethodTreatment::Corrected,
        needs: "invariants",
        description: "one regularised Gauss-Newton step towards the invariants after each accepted step",
        citation: "the discrete form of feedback; Hairer, Lubich, Wanner, GNI, IV.4",
        file: include_str!("../treatment/correction.rs"),
    },
    TreatmentFacts {
        name: "projection",
        treatment: MethodTreatment::Projection,
        needs: "invariants",
        description: "standard projection onto the invariants' level set after each step",
        citation: "Hairer, Lubich, Wanner, GNI, IV.4.2",
        file: include_str!("../treatment/projection.rs"),
    },
    TreatmentFacts {
        name: "symmetric-projection",
        treatment: MethodTreatment::SymmetricProjection,
        needs: "invariants and a fixed step",
        description: "projection by the same multipliers before and after each step: symmetric if its base is",
        citation: "Hairer, Lubich, Wanner, GNI, V.4.1; Hairer, BIT 40 (2000) 726",
        file: include_str!("../treatment/symmetric_projection.rs"),
    },
];
