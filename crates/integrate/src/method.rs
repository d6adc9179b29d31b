//! The registry of methods: one table of base schemes, one of treatments, one of compositions
//! ([`COMPOSITIONS`]), and the parser of their names.
//!
//! Help texts, `holonome methods` and the tests are generated from these tables; adding a scheme means one file in
//! `scheme/` and one row here.

mod name;
mod table;

pub use crate::scheme::composition::{COMPOSITIONS, Composition};
pub use name::MethodError;
pub use table::{SCHEMES, TREATMENTS};

use std::fmt;

use crate::scheme::collocation::{CONVERGES_TO, Collocation};
use crate::scheme::{SlidingFn, StepFn};
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
    pub needs: Needs,
    /// One line on what it is and when to take it.
    pub description: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// How it steps.
    pub step: Step,
}

/// How a scheme steps.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// An explicit Runge–Kutta method of these coefficients.
    RungeKutta(fn() -> &'static Tableau),
    /// Collocation, whose stages are found by fixed-point iteration.
    Collocation(fn() -> &'static Collocation),
    /// The Taylor series of the solution, which only formulas of the field tell.
    Taylor,
    /// A map of the phase space.
    Map(StepFn),
    /// Slides along fibres around an unconstrained map.
    Sliding(SlidingFn),
}

/// What a scheme needs of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A vector field.
    Field,
    /// A vector field of formulas that have a Taylor series.
    Series,
    /// A vector field; it is symplectic for that of a Hamiltonian without constraints.
    Canonical,
    /// A Hamiltonian without constraints.
    Hamiltonian,
    /// A Hamiltonian with constraints whose brackets vanish on the constraint set: all g(q), and some g(q, p).
    Coisotropic,
    /// A Hamiltonian whose parts have known flows.
    Flows,
    /// A rigid body whose attitude is a rotation matrix.
    Body,
    /// A rigid body without torques, in the frame of its principal axes.
    FreeBody,
    /// A Hamiltonian ½ pᵀM⁻¹p + V(q, t) with a constant mass matrix M, without constraints.
    Natural,
    /// The same with a part of V that is known as the stiff one.
    Stiff,
    /// [`Needs::Natural`] in a heat bath, with constraints on positions or without any.
    HeatBath,
}

impl Needs {
    /// Whether formulas of a known form are looked for in the model.
    pub fn recognised(self) -> bool {
        matches!(self, Needs::Flows | Needs::Body | Needs::FreeBody)
    }

    /// Whether it is that of Newmark's methods and their like, which have a parameter β.
    pub fn has_beta(self) -> bool {
        matches!(self, Needs::Natural | Needs::Stiff)
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Field | Needs::Canonical => "a vector field",
            Needs::Series => "a vector field of smooth formulas",
            Needs::Hamiltonian => "a Hamiltonian without constraints",
            Needs::Coisotropic => "a Hamiltonian with constraints",
            Needs::Flows => "a Hamiltonian of parts with known flows",
            Needs::Body => "a rigid body with its attitude",
            Needs::FreeBody => "a free rigid body",
            Needs::Natural => "a Hamiltonian with a constant mass matrix",
            Needs::Stiff => "a Hamiltonian with a constant mass matrix and a stiff part",
            Needs::HeatBath => "a Hamiltonian with a constant mass matrix in a heat bath",
        })
    }
}

impl Scheme {
    /// The coefficients of a Runge–Kutta scheme, built and checked on first use; none of other schemes.
    pub fn runge_kutta(&self) -> Option<&'static Tableau> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau()),
            _ => None,
        }
    }

    /// The collocation method of a scheme, if it is one by fixed-point iteration.
    pub fn collocation(&self) -> Option<&'static Collocation> {
        match self.step {
            Step::Collocation(collocation) => Some(collocation()),
            _ => None,
        }
    }

    /// Whether it steps along vector fields, with every treatment of a step's result, and asks for nothing else of a model.
    pub fn follows_fields(&self) -> bool {
        matches!(self.step, Step::RungeKutta(_) | Step::Collocation(_) | Step::Taylor)
    }

    /// Whether the field has to be one of formulas: its values are not enough.
    pub fn needs_formulas(&self) -> bool {
        self.needs == Needs::Series
    }

    /// Length r of the real interval h λ in [−r, 0] for which it is stable, or its iteration converges; of schemes that
    /// [follow fields](Scheme::follows_fields).
    pub fn real_stability_interval(&self) -> Option<f64> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau().real_stability_interval()),
            Step::Collocation(_) => Some(CONVERGES_TO),
            _ => None,
        }
    }

    /// Degree of the polynomial as which it knows a step, and the order of the states within; none where that is nothing but
    /// a cubic with the field at both ends.
    pub fn dense_output(&self) -> Option<(usize, u32)> {
        match self.step {
            Step::RungeKutta(tableau) => tableau().dense.as_ref().map(|dense| (dense.degree(), dense.order)),
            // A state within the step is found like its end.
            Step::Collocation(collocation) => Some((2 * collocation().stages, collocation().order())),
            Step::Taylor => Some((self.order as usize, self.order)),
            _ => None,
        }
    }

    /// The coefficients of a scheme that is known to be a Runge–Kutta one, because it adapts its steps or carries a
    /// feedback term.
    ///
    /// # Panics
    /// If it is not.
    pub fn tableau(&self) -> &'static Tableau {
        self.runge_kutta().unwrap_or_else(|| panic!("{} is no Runge-Kutta method", self.name))
    }

    /// Whether it steps with any Hamiltonian, so that it can stand between slides along fibres.
    pub fn takes_any_hamiltonian(&self) -> bool {
        matches!(self.needs, Needs::Canonical | Needs::Hamiltonian)
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
    /// Projection by the same multipliers before and after each step.
    SymmetricProjection,
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
            Treatment::SymmetricProjection => &TREATMENTS[4],
        }
    }

    /// Whether a step's result is moved, so that the field at it must be evaluated anew.
    pub fn moves_the_state(self) -> bool {
        matches!(self, Treatment::Corrected | Treatment::Projection | Treatment::SymmetricProjection)
    }

    /// Whether every step begins where the constraints are met, so that a field matters near by only.
    pub fn begins_on_the_set(self) -> bool {
        matches!(self, Treatment::Corrected | Treatment::Projection)
    }

    /// Whether all steps have to be equal: a step that depends on the direction of time is not symmetric.
    pub fn needs_equal_steps(self) -> bool {
        self == Treatment::SymmetricProjection
    }

    /// Whether it solves equations by an iteration with a tolerance.
    pub fn iterates(self) -> bool {
        matches!(self, Treatment::Projection | Treatment::SymmetricProjection)
    }
}

/// A method: a treatment around a base scheme or a composition of it. It is written `TREATMENT:BASE` or
/// `TREATMENT:COMPOSITION(BASE)`, with `BASE` alone for `plain:BASE`. A scheme that slides takes an unconstrained map:
/// `rattle:symplectic-euler-a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// What is done around the scheme.
    pub treatment: Treatment,
    /// The composition of steps of the scheme, if it is one.
    pub composition: Option<&'static Composition>,
    /// The base scheme.
    pub scheme: &'static Scheme,
    /// The unconstrained map of a scheme that slides; Störmer–Verlet A where none is named.
    pub unconstrained: Option<&'static Scheme>,
}

impl Method {
    /// A scheme by itself.
    pub fn plain(scheme: &'static Scheme) -> Method {
        Method { treatment: Treatment::Plain, composition: None, scheme, unconstrained: None }
    }

    /// The map that a scheme which slides is made of.
    pub fn unconstrained_map(&self) -> StepFn {
        match self.unconstrained.map(|scheme| scheme.step) {
            Some(Step::Map(step)) => step,
            _ => crate::scheme::stormer_verlet::step_a,
        }
    }

    /// Order of convergence.
    pub fn order(&self) -> u32 {
        let base = self.unconstrained.map_or(u32::MAX, |base| base.order).min(self.scheme.order);
        self.composition.map_or(base, |composition| composition.order)
    }

    /// Whether stepping forward and back returns to the start.
    pub fn symmetric(&self) -> bool {
        let kept = !self.treatment.moves_the_state() || self.treatment == Treatment::SymmetricProjection;
        self.scheme.symmetric && self.unconstrained.is_none_or(|base| base.symmetric) && kept
    }

    /// Whether the map preserves the symplectic form of a Hamiltonian model.
    pub fn symplectic(&self) -> bool {
        self.scheme.symplectic && self.treatment == Treatment::Plain
    }

    /// γ₁ … γ_s, by which the step of the scheme is multiplied one after the other.
    pub fn substeps(&self) -> Vec<f64> {
        self.composition.map_or(vec![1.0], Composition::substeps)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.treatment != Treatment::Plain {
            write!(f, "{}:", self.treatment.facts().name)?;
        }
        let base = match self.unconstrained {
            Some(base) => format!("{}:{}", self.scheme.name, base.name),
            None => self.scheme.name.to_string(),
        };
        match self.composition {
            Some(composition) => write!(f, "{}({base})", composition.name),
            None => f.write_str(&base),
        }
    }
}
