//! Quantities that a linearly implicit method monitors along a run: they show if the step is short
//! enough.

use holonome_integrate::failure::Failure;
use std::fmt::{Display, Formatter, Result};

/// Limits of the smallest eigenvalue of a matrix that has to be definite: below the first it is
/// recorded, below the second the run ends. It is 1 for h = 0, and the force of the step grows like
/// its inverse.
pub const NOTABLE: f64 = 0.9;
pub const INDEFINITE: f64 = 0.5;

/// Monitored quantities of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monitored {
    /// Largest |E − E₀| of the modified energy, if monitored.
    pub energy: Option<f64>,
    /// Smallest eigenvalue of I + βh²M⁻¹V_qq, if monitored; 0.9 if none was smaller.
    pub eigenvalue: Option<f64>,
}

impl Monitored {
    /// Monitored quantities of a run; `None` if it monitors none.
    pub(crate) fn new(energy: Option<f64>, eigenvalue: Option<f64>) -> Option<Monitored> {
        (energy.is_some() || eigenvalue.is_some()).then_some(Monitored { energy, eigenvalue })
    }

    /// Warning for a run that reached its end.
    pub(crate) fn warning(self) -> Option<String> {
        let least = self.eigenvalue.filter(|least| *least < NOTABLE)?;
        Some(format!(
            "the step is long where the potential bends downwards: the smallest eigenvalue of I + beta h^2 M^-1 V_qq was {least:.2}, and the run would have ended below {INDEFINITE}; compare with a shorter step, or a smaller penalty where there is one"
        ))
    }

    /// The quantities if they explain this failure, because the motion has left all bounds.
    pub(crate) fn explaining<E>(self, failure: &Failure<E>) -> Option<Monitored> {
        matches!(failure, Failure::NonFinite { .. }).then_some(self)
    }
}

impl Display for Monitored {
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
        let monitored: Vec<String> = energy.into_iter().chain(eigenvalue).collect();
        write!(
            f,
            "{}; take a shorter step, or a smaller penalty where there is one",
            monitored.join(", and ")
        )
    }
}
