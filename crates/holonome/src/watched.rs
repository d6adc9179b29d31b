//! What a linearly implicit method watches along a run: whether the step is short enough for it.

use holonome_integrate::failure::Failure;
use std::fmt::{Display, Formatter, Result};

/// A smallest eigenvalue of a matrix that is to be definite is remembered below the first, and ends the run below the
/// second: it is 1 without the step, and the force of the step grows like its inverse.
pub const NOTABLE: f64 = 0.9;
pub const INDEFINITE: f64 = 0.5;

/// What a run has shown of its step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    /// The largest |E − E₀| of the modified energy, where that is watched.
    pub energy: Option<f64>,
    /// The smallest eigenvalue of I + βh²M⁻¹V_qq, where that is watched; 0.9 where none was smaller.
    pub eigenvalue: Option<f64>,
}

impl Watched {
    /// From what a run watches, if it watches any of them.
    pub(crate) fn new(energy: Option<f64>, eigenvalue: Option<f64>) -> Option<Watched> {
        (energy.is_some() || eigenvalue.is_some()).then_some(Watched { energy, eigenvalue })
    }

    /// What a run that reached its end is to be told.
    pub(crate) fn warning(self) -> Option<String> {
        let least = self.eigenvalue.filter(|least| *least < NOTABLE)?;
        Some(format!(
            "the step is long where the potential bends downwards: the smallest eigenvalue of I + beta h^2 M^-1 V_qq was {least:.2}, and the run would have ended below {INDEFINITE}; compare with a shorter step, or a smaller penalty where there is one"
        ))
    }

    /// The same for a failure that it explains: the motion has left all bounds.
    pub(crate) fn explaining<E>(self, failure: &Failure<E>) -> Option<Watched> {
        matches!(failure, Failure::NonFinite { .. }).then_some(self)
    }
}

impl Display for Watched {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let energy = self.energy.map(|off| {
            format!("the modified energy, which a method keeps whose step is short enough, was off by up to {off:.1e}")
        });
        let eigenvalue = self.eigenvalue.map(|least| match least < NOTABLE {
            true => format!(
                "the smallest eigenvalue of I + beta h^2 M^-1 V_qq was {least:.2}, with a limit of {INDEFINITE}"
            ),
            false => format!("all eigenvalues of I + beta h^2 M^-1 V_qq stayed above {NOTABLE}"),
        });
        let watched: Vec<String> = energy.into_iter().chain(eigenvalue).collect();
        write!(f, "{}; take a shorter step, or a smaller penalty where there is one", watched.join(", and "))
    }
}
