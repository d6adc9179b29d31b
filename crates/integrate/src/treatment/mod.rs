//! Discrete treatments: they wrap a one-step map and move its result towards the invariants' level set, or its start and
//! its result.

pub mod correction;
pub mod normal_equations;
pub mod projection;
pub mod stopping;
pub mod symmetric_projection;

use crate::method;
use crate::state::Cost;
use crate::system::System;
use correction::Correction;
use projection::Projection;
use stopping::Unconverged;
use symmetric_projection::SymmetricProjection;

/// What is done to a step's result, with its scratch.
pub enum Treatment {
    /// Nothing.
    None,
    /// [`Correction`].
    Correction(Correction),
    /// [`Projection`].
    Projection(Projection),
    /// [`SymmetricProjection`], which is no treatment of a result: it surrounds the step.
    SymmetricProjection(Box<SymmetricProjection>),
}

impl Treatment {
    /// The discrete part of a method's treatment of `system`.
    pub fn new(treatment: method::Treatment, system: &dyn System, projection_tolerance: Option<f64>) -> Treatment {
        let invariants = system.invariants();
        // Without invariants to correct there is nothing to do, and the field at the end of a step stays known.
        if !invariants.corrected_rows().contains(&true) {
            return Treatment::None;
        }
        let tolerance = projection_tolerance.unwrap_or(0.0);
        match treatment {
            method::Treatment::Plain | method::Treatment::Feedback => Treatment::None,
            method::Treatment::Corrected => Treatment::Correction(Correction::new(invariants, system.dim())),
            method::Treatment::Projection => {
                Treatment::Projection(Projection::new(invariants, system.dim(), tolerance))
            }
            method::Treatment::SymmetricProjection => {
                let projection = SymmetricProjection::new(invariants, system.dim(), tolerance);
                Treatment::SymmetricProjection(Box::new(projection))
            }
        }
    }

    /// Whether a step's result is not that of its base map.
    pub fn moves_the_state(&self) -> bool {
        !matches!(self, Treatment::None)
    }

    /// Treats the state `x` at time `t`, unless that is done. `values` receives F at the resulting state and `deviations` that of every
    /// group, for monitoring.
    pub fn apply(
        &mut self,
        system: &dyn System,
        t: f64,
        target: &[f64],
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
        cost: &mut Cost,
    ) -> Result<(), Unconverged> {
        match self {
            Treatment::None | Treatment::SymmetricProjection(_) => {
                system.monitor(t, target, x, values, deviations, work);
            }
            Treatment::Correction(correction) => correction.apply(system, t, target, x, values, deviations, work, cost),
            Treatment::Projection(projection) => {
                projection.apply(system, t, target, x, values, work, cost)?;
                system.invariants().deviations(values, target, deviations);
            }
        }
        Ok(())
    }
}
