//! Step whose treatment surrounds the base map instead of following it.

use super::Engine;
use crate::failure::Failure;
use crate::scheme::map::{NoStep, StepFrom, Workspace};
use crate::state::StepState;
use crate::system::all_finite;
use crate::treatment::Treatment;
use crate::treatment::symmetric_projection::StepFailure;

/// Reason why the base map has no result.
enum NoBase {
    /// A quantity is not finite.
    NonFinite { t: f64, step: u64, quantity: &'static str },
    /// The equations of the step are not solved.
    NoStep(NoStep),
}

impl Engine<'_> {
    /// Make x₁ of a step from t to t₁ if the treatment surrounds the base map; true if it does.
    pub(super) fn surrounded_step<E>(
        &mut self,
        (t, t1): (f64, f64),
        h: f64,
    ) -> Result<bool, Failure<E>> {
        let Treatment::SymmetricProjection(projection) = &mut self.treatment else {
            return Ok(false);
        };
        let (system, map, stages) = (self.system, self.map, &mut self.stages);
        let StepState { x, target, cost, memory: before, step, scales, .. } = &mut *self.state;
        let (step, memory) = (*step, &mut self.memory);
        let (x1, values, work) = (&mut self.x1, &mut self.values, &mut self.work);
        let made = projection.step(
            system,
            (t, t1, h),
            (target, scales),
            x,
            x1,
            values,
            work,
            cost,
            |x, x1, work, cost| {
                if map.takes_first_stage() {
                    system.field(t, x, &mut stages[0], work);
                    cost.field += 1;
                    if !all_finite(&stages[0]) {
                        return Err(NoBase::NonFinite { t, step, quantity: "the field" });
                    }
                }
                // Every iteration makes the same step anew.
                memory.copy_from_slice(before);
                let workspace = &mut Workspace { kept: stages, memory, cost, work };
                map.fixed_step(StepFrom { t, h, x }, x1, workspace).map_err(NoBase::NoStep)?;
                match all_finite(x1) {
                    true => Ok(()),
                    false => {
                        Err(NoBase::NonFinite { t: t1, step: step + 1, quantity: "the state" })
                    }
                }
            },
        );
        match made {
            Ok(()) => Ok(true),
            Err(StepFailure::Base(NoBase::NoStep(reason))) => Err(self.no_step(t, reason)),
            Err(StepFailure::Base(NoBase::NonFinite { t, step, quantity })) => {
                Err(Failure::NonFinite { t, step, quantity: quantity.into() })
            }
            Err(StepFailure::Unconverged(unconverged)) => Err(self.unconverged(t1, unconverged)),
        }
    }
}
