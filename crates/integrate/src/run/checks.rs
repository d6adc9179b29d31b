//! The treatment of a step's result, and the checks that turn a bad number into a typed failure.

use super::Engine;
use crate::failure::Failure;
use crate::scheme::map::NoStep;
use crate::system::{Place, all_finite};
use crate::treatment::stopping::Unconverged;

impl Engine<'_> {
    /// Check x₁ after a step of the length `h`, treat it, and evaluate F there.
    pub(super) fn treat<E>(&mut self, h: f64, t1: f64) -> Result<(), Failure<E>> {
        let step = self.state.step + 1;
        if !all_finite(&self.x1) {
            return Err(Failure::NonFinite { t: t1, step, quantity: "the state".into() });
        }
        let (target, cost) = (&self.state.target, &mut self.state.cost);
        let deviations = &mut self.deviations[..self.groups];
        let at = ((t1, h), &target[..], &self.scales);
        self.innovation = self
            .treatment
            .apply(
                self.system,
                Place::End,
                at,
                &mut self.x1,
                &mut self.values,
                deviations,
                &mut self.work,
                cost,
            )
            .map_err(|unconverged| self.unconverged(t1, unconverged))?;
        self.check_treated(h, t1)
    }

    fn check_treated<E>(&mut self, h: f64, t1: f64) -> Result<(), Failure<E>> {
        let step = self.state.step + 1;
        self.check_values(step, t1)?;
        if !all_finite(&self.x1) {
            // The map's result was finite, so its treatment met a gradient that is not.
            return Err(Failure::NonFinite {
                t: t1,
                step,
                quantity: "the gradient of an invariant".into(),
            });
        }
        self.check_met(t1, h)
    }

    /// Check x₁ and F there after a block of steps up to number `step`.
    pub(super) fn check_result<E>(&self, step: u64, t1: f64) -> Result<(), Failure<E>> {
        if !all_finite(&self.x1) {
            return Err(Failure::NonFinite { t: t1, step, quantity: "the state".into() });
        }
        self.check_values(step, t1)
    }

    pub(super) fn check_values<E>(&self, step: u64, t1: f64) -> Result<(), Failure<E>> {
        if !all_finite(&self.values)
            && let Some(row) = self.values.iter().position(|f| !f.is_finite())
        {
            let quantity = self.system.invariants().row_name(row).into();
            return Err(Failure::NonFinite { t: t1, step, quantity });
        }
        Ok(())
    }

    pub(super) fn unconverged<E>(&self, t: f64, unconverged: Unconverged) -> Failure<E> {
        let Unconverged { iterations, residual, row } = unconverged;
        let name = self.system.invariants().row_name(row).to_string();
        if residual.is_finite() {
            Failure::ProjectionNotConverged { t, iterations, residual, constraint: name }
        } else {
            Failure::NonFinite { t, step: self.state.step + 1, quantity: name }
        }
    }

    pub(super) fn no_step<E>(&self, t: f64, reason: NoStep) -> Failure<E> {
        match reason {
            NoStep::NotSolved { iterations, residual, equation } if residual.is_finite() => {
                Failure::NewtonNotConverged { t, iterations, residual, constraint: equation }
            }
            NoStep::NotSolved { equation, .. } => {
                Failure::NonFinite { t, step: self.state.step + 1, quantity: equation }
            }
            NoStep::Degenerate { determinant } => Failure::Degenerate { t, determinant },
            NoStep::Indefinite { eigenvalue } => Failure::Indefinite { t, eigenvalue },
            NoStep::HandedOver { after, reason } => Failure::HandedOver { t: t + after, reason },
        }
    }

    pub(super) fn check_limit<E>(&self) -> Result<(), Failure<E>> {
        let limit = self.plan.step_limit;
        if self.state.step + self.state.cost.rejected < limit {
            Ok(())
        } else {
            let stiffness = self.state.stiffness;
            let stiff_since = (stiffness.ratio > 0.0).then_some(stiffness.since);
            Err(Failure::TooManySteps { t: self.state.t, limit, stiff_since })
        }
    }

    pub(super) fn check_start<E>(&self) -> Result<(), Failure<E>> {
        let state = &*self.state;
        let failure = |quantity: &str| Failure::NonFinite {
            t: state.t,
            step: state.step,
            quantity: quantity.into(),
        };
        if !all_finite(&state.x) {
            return Err(failure("the state"));
        }
        match state
            .values
            .iter()
            .zip(&*state.target)
            .position(|(f, target)| !(f - target).is_finite())
        {
            Some(row) => Err(failure(self.system.invariants().row_name(row))),
            None => Ok(()),
        }
    }
}
