//! Registry of methods: one table of base schemes, one of treatments, one of compositions
//! ([`COMPOSITIONS`]), one of the names that methods have elsewhere, and the parser of their names.
//!
//! Help texts, `holonome methods` and the tests are generated from these tables; adding a scheme
//! means one file in `scheme/` and one row here.

mod alias;
mod name;
mod table;

pub use crate::scheme::composition::{COMPOSITIONS, Composition};
pub use alias::{ALIASES, Alias};
pub use name::MethodError;
pub use table::{SCHEMES, TREATMENTS};

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::scheme::collocation::{CONVERGES_TO, Collocation};
use crate::scheme::{SlidingFn, StepFn};
use crate::tableau::Tableau;

/// Facts about a base scheme, as a user reads them.
#[derive(Debug)]
pub struct Scheme {
    /// Name on the command line.
    pub name: &'static str,
    /// Order of convergence.
    pub order: u32,
    /// True if stepping forward and back returns to the start.
    pub symmetric: bool,
    /// True if the map preserves the symplectic form.
    pub symplectic: bool,
    /// True if a step solves no equations.
    pub explicit: bool,
    /// True if it estimates its error, and so can choose its steps.
    pub adaptive: bool,
    /// Requirements on a model.
    pub needs: Needs,
    /// One line on the scheme and its use.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
    /// Form of the step.
    pub step: Step,
}

/// Form of a scheme's step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// An explicit Runge–Kutta method of these coefficients.
    RungeKutta(fn() -> &'static Tableau),
    /// Collocation, whose stages are found by fixed-point iteration.
    Collocation(fn() -> &'static Collocation),
    /// Taylor series of the solution, which needs the formulas of the field.
    Taylor,
    /// A map of the phase space.
    Map(StepFn),
    /// Slides along fibres around an unconstrained map.
    Sliding(SlidingFn),
}

/// Requirements of a scheme on a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A vector field: of a model with constraints the Dirac extension, which has them in it.
    Field,
    /// A vector field of formulas that have a Taylor series.
    Series,
    /// A vector field; the scheme is symplectic for that of a Hamiltonian without constraints.
    Canonical,
    /// A Hamiltonian without constraints.
    Hamiltonian,
    /// A Hamiltonian with constraints whose brackets vanish on the constraint set: all g(q), and
    /// some g(q, p).
    Coisotropic,
    /// A Hamiltonian whose parts have known flows.
    Flows,
    /// A rigid body whose attitude is a rotation matrix.
    Body,
    /// A rigid body without torques, in the frame of its principal axes.
    FreeBody,
    /// A Hamiltonian ½ pᵀM⁻¹p + V(q, t) with a constant mass matrix M, without constraints.
    Natural,
    /// [`Needs::Natural`] with a part of V that is marked as the stiff one.
    Stiff,
    /// [`Needs::Natural`] in a heat bath, with constraints on positions or without any.
    HeatBath,
}

impl Needs {
    /// True if the model has to contain formulas of a known form.
    pub fn recognised(self) -> bool {
        matches!(self, Needs::Flows | Needs::Body | Needs::FreeBody)
    }

    /// True for the requirements of Newmark's methods and their like, which have a parameter β.
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
    /// Coefficients of a Runge–Kutta scheme, built and checked on first use; `None` for other
    /// schemes.
    pub fn runge_kutta(&self) -> Option<&'static Tableau> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau()),
            _ => None,
        }
    }

    /// Collocation method of a scheme; `None` unless its stages are found by fixed-point iteration.
    pub fn collocation(&self) -> Option<&'static Collocation> {
        match self.step {
            Step::Collocation(collocation) => Some(collocation()),
            _ => None,
        }
    }

    /// True if the scheme steps along vector fields, with every treatment of a step's result, and
    /// needs nothing else of a model.
    pub fn follows_fields(&self) -> bool {
        matches!(self.step, Step::RungeKutta(_) | Step::Collocation(_) | Step::Taylor)
    }

    /// True if values of the field are not enough: the field has to consist of formulas.
    pub fn needs_formulas(&self) -> bool {
        self.needs == Needs::Series
    }

    /// Length r of the real interval h λ in [−r, 0] in which the scheme is stable, or its iteration
    /// converges; `None` for schemes without one.
    pub fn real_stability_interval(&self) -> Option<f64> {
        match self.step {
            Step::RungeKutta(tableau) => Some(tableau().real_stability_interval()),
            Step::Collocation(_) => Some(CONVERGES_TO),
            _ => None,
        }
    }

    /// Degree of the polynomial of a step, and order of the states within; `None` if the polynomial
    /// is only a cubic with the field at both ends.
    pub fn dense_output(&self) -> Option<(usize, u32)> {
        match self.step {
            Step::RungeKutta(tableau) => {
                tableau().dense.as_ref().map(|dense| (dense.degree(), dense.order))
            }
            // A state within the step is found like its end.
            Step::Collocation(collocation) => {
                Some((2 * collocation().stages, collocation().order()))
            }
            Step::Taylor => Some((self.order as usize, self.order)),
            _ => None,
        }
    }

    /// Coefficients of a scheme that is known to be a Runge–Kutta one, because it adapts its steps
    /// or carries a feedback term.
    ///
    /// # Panics
    /// If it is not.
    pub fn tableau(&self) -> &'static Tableau {
        self.runge_kutta().unwrap_or_else(|| panic!("{} is no Runge-Kutta method", self.name))
    }

    /// True if the scheme steps with any Hamiltonian, so that it can stand between slides along
    /// fibres.
    pub fn takes_any_hamiltonian(&self) -> bool {
        matches!(self.needs, Needs::Canonical | Needs::Hamiltonian)
    }

    /// Scheme of this name: one of the table, or one that was registered.
    pub fn named(name: &str) -> Option<&'static Scheme> {
        let named = |scheme: &&'static Scheme| scheme.name == name;
        SCHEMES.iter().find(named).or_else(|| registered().iter().copied().find(named))
    }
}

impl PartialEq for Scheme {
    /// A scheme equals itself only: of two statics, each has an address of its own.
    fn eq(&self, other: &Scheme) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Schemes of the user's own that are known by their names.
static REGISTERED: RwLock<Vec<&'static Scheme>> = RwLock::new(Vec::new());

fn registered() -> RwLockReadGuard<'static, Vec<&'static Scheme>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Make a scheme of one's own known by its name in this process, to the parser of methods and to
/// whatever reads a stored run, such as resuming it. To register a scheme again does nothing.
///
/// # Errors
/// If the scheme contradicts itself, or its name is taken or cannot be parsed.
pub fn register(scheme: &'static Scheme) -> Result<(), MethodError> {
    Method::plain(scheme).check()?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    match registered.iter().find(|known| known.name == scheme.name) {
        Some(known) if *known != scheme => {
            return Err(MethodError::NameTaken { name: scheme.name });
        }
        Some(_) => {}
        None => registered.push(scheme),
    }
    Ok(())
}

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

/// Facts about a treatment, as a user reads them.
#[derive(Debug)]
pub struct TreatmentFacts {
    /// Name on the command line, before the colon.
    pub name: &'static str,
    /// The treatment.
    pub treatment: MethodTreatment,
    /// Requirements on a model beyond those of the scheme.
    pub needs: &'static str,
    /// True if a step's result is moved, so that the field at it must be evaluated anew.
    pub moves_the_state: bool,
    /// True if every step begins where the constraints are met, so that the field matters only near
    /// there.
    pub begins_on_the_set: bool,
    /// True if all steps have to be equal: a step that depends on the direction of time is not
    /// symmetric.
    pub needs_equal_steps: bool,
    /// True if the treatment solves equations by an iteration with a tolerance.
    pub iterates: bool,
    /// True if the metric in which a state is moved can be chosen.
    pub has_metric: bool,
    /// One line on the treatment.
    pub description: &'static str,
    /// Source.
    pub citation: &'static str,
}

impl MethodTreatment {
    /// Row of the treatment in the table.
    pub fn facts(self) -> &'static TreatmentFacts {
        match self {
            MethodTreatment::Plain => &TREATMENTS[0],
            MethodTreatment::Feedback => &TREATMENTS[1],
            MethodTreatment::Corrected => &TREATMENTS[2],
            MethodTreatment::Projection => &TREATMENTS[3],
            MethodTreatment::SymmetricProjection => &TREATMENTS[4],
        }
    }

    /// True if a step's result is moved, so that the field at it must be evaluated anew.
    pub fn moves_the_state(self) -> bool {
        self.facts().moves_the_state
    }

    /// True if every step begins where the constraints are met, so that the field matters only near
    /// there.
    pub fn begins_on_the_set(self) -> bool {
        self.facts().begins_on_the_set
    }

    /// True if all steps have to be equal: a step that depends on the direction of time is not
    /// symmetric.
    pub fn needs_equal_steps(self) -> bool {
        self.facts().needs_equal_steps
    }

    /// True if the treatment solves equations by an iteration with a tolerance.
    pub fn iterates(self) -> bool {
        self.facts().iterates
    }
}

/// Method: a treatment around a base scheme or a composition of it. Its name is `TREATMENT:BASE` or
/// `TREATMENT:COMPOSITION(BASE)`, with `BASE` alone for `plain:BASE`. A scheme that slides takes an
/// unconstrained map: `rattle:symplectic-euler-a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// Treatment around the scheme.
    pub treatment: MethodTreatment,
    /// The composition of steps of the scheme, if it is one.
    pub composition: Option<&'static Composition>,
    /// The base scheme.
    pub scheme: &'static Scheme,
    /// Unconstrained map of a scheme that slides; `None` stands for Störmer–Verlet A.
    pub unconstrained: Option<&'static Scheme>,
}

/// Names of every scheme, alone and with every treatment that suits it, without the treatment
/// `plain`.
pub fn simple_names() -> Vec<String> {
    let treated = |facts: &TreatmentFacts| {
        let treatment = facts.treatment;
        let methods =
            SCHEMES.iter().map(move |scheme| Method { treatment, ..Method::plain(scheme) });
        methods
            .filter(|method| method.check().is_ok())
            .map(|method| method.to_string())
            .collect::<Vec<_>>()
    };
    TREATMENTS.iter().flat_map(treated).collect()
}

impl Method {
    /// A scheme by itself.
    pub fn plain(scheme: &'static Scheme) -> Method {
        Method { treatment: MethodTreatment::Plain, composition: None, scheme, unconstrained: None }
    }

    /// Unconstrained map of a scheme that slides.
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

    /// True if stepping forward and back returns to the start.
    pub fn symmetric(&self) -> bool {
        let kept = !self.treatment.moves_the_state()
            || self.treatment == MethodTreatment::SymmetricProjection;
        self.scheme.symmetric && self.unconstrained.is_none_or(|base| base.symmetric) && kept
    }

    /// True if the map preserves the symplectic form of a Hamiltonian model.
    pub fn symplectic(&self) -> bool {
        self.scheme.symplectic && self.treatment == MethodTreatment::Plain
    }

    /// Factors γ₁ … γ_s of the scheme's successive steps.
    pub fn substeps(&self) -> Vec<f64> {
        self.composition.map_or(vec![1.0], Composition::substeps)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.treatment != MethodTreatment::Plain {
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
