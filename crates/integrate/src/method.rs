//! Methods: a treatment around a base scheme or a composition of it, and the parser of their names.

mod account;
mod alias;
mod name;
mod treatments;

pub use crate::scheme::composition::{COMPOSITIONS, Composition};
pub use crate::scheme::splitting::Flows;
pub use crate::scheme::{KeplerCoordinates, Needs, SCHEMES, Scheme, SchemeFacts, Step, StepFn};
pub use account::{Account, AccountFacts, Accounts};
pub use alias::Alias;
pub use name::MethodError;
pub use treatments::{MethodTreatment, TREATMENTS, TreatmentFacts};

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Schemes of the user's own that are known by their names.
static REGISTERED: RwLock<Vec<&'static Scheme>> = RwLock::new(Vec::new());

fn registered() -> RwLockReadGuard<'static, Vec<&'static Scheme>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

impl Scheme {
    /// Scheme of this name: one of the table, or one that was registered.
    pub fn named(name: &str) -> Option<&'static Scheme> {
        let named = |scheme: &&'static Scheme| scheme.name == name;
        let of_ones_own = || registered().iter().copied().find(named);
        SCHEMES.iter().copied().find(named).or_else(of_ones_own)
    }
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
            SCHEMES.iter().map(move |&scheme| Method { treatment, ..Method::plain(scheme) });
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
            Some(Step::Map(step, _)) => step,
            _ => crate::scheme::stormer_verlet::step_a,
        }
    }

    /// Order of convergence.
    pub fn order(&self) -> u32 {
        let base = self.unconstrained.map_or(u32::MAX, |base| base.facts().order);
        let base = base.min(self.scheme.facts().order);
        self.composition.map_or(base, |composition| composition.order)
    }

    /// True if stepping forward and back returns to the start.
    pub fn symmetric(&self) -> bool {
        let kept = !self.treatment.moves_the_state()
            || self.treatment == MethodTreatment::SymmetricProjection;
        self.scheme.facts().symmetric
            && self.composition.is_none_or(Composition::symmetric)
            && self.unconstrained.is_none_or(|base| base.facts().symmetric)
            && kept
    }

    /// True if the map preserves the symplectic form of a Hamiltonian model.
    pub fn symplectic(&self) -> bool {
        self.scheme.facts().symplectic && self.treatment == MethodTreatment::Plain
    }

    /// Flows that a composition makes in place of those of a splitting.
    pub fn flows(&self) -> Option<Flows> {
        self.composition.and_then(Composition::flows)
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
