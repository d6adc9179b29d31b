//! A step of a map that is handed over to [`gauss16`](crate::scheme): the whole field, in adaptive steps.

use super::{Outcome, run};
use crate::cost::Cost;
use crate::failure::Failure;
use crate::method::Method;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::scheme::gauss_collocation::GAUSS16;
use crate::scheme::map::{NoStep, StepFrom};
use crate::state::StepState;
use crate::system::{System, Vectors};
use std::convert::Infallible;

/// Relative tolerance: what such a step errs is a few hundred roundings.
const TOLERANCE: f64 = 1e-13;

/// Number of adaptive steps within one step after which it has no result.
const LIMIT: u64 = 100_000;

/// Make this step by the field of `system`, of either sign, and count its cost. Allocates its scratch.
///
/// # Errors
/// If the run within it ends early.
pub fn handed_over(
    system: &dyn System,
    step: StepFrom,
    x1: &mut [f64],
    cost: &mut Cost,
) -> Result<(), NoStep> {
    let (length, sign) = (step.h.abs(), step.h.signum());
    let within = Within { system, t: step.t, sign };
    let no_step = |after: f64, reason: String| NoStep::HandedOver { after: sign * after, reason };
    let plan = Plan::adaptive(Method::plain(&GAUSS16), 0.0, length, TOLERANCE, 0.0);
    let plan = plan.map_err(|reason| no_step(0.0, reason.to_string()))?;
    let plan = Plan { step_limit: LIMIT, ..plan };
    let mut state = StepState::new(&plan, &within, step.x, None);
    let ended = run(&plan, &within, &mut state, &mut Silent);
    cost.add(&Cost { rejected: 0, handed_over: 1, ..state.cost });
    match ended {
        Ok(Outcome::Finished) => {
            x1.copy_from_slice(&state.x);
            Ok(())
        }
        Ok(_) => Err(no_step(state.t, "it ended early".to_string())),
        Err(failure) => Err(no_step(failure.t().unwrap_or(state.t), culprit(failure))),
    }
}

/// What makes a run fail, without its time.
fn culprit(failure: Failure<Infallible>) -> String {
    match failure {
        Failure::StepCollapsed { culprit, .. } => culprit.to_string(),
        Failure::NonFinite { quantity, .. } => format!("{quantity} is not finite any more"),
        Failure::TooManySteps { limit, .. } => format!("it takes more than {limit} steps"),
        other => other.kind().to_string(),
    }
}

struct Silent;

impl Observer for Silent {
    type Error = Infallible;
}

/// A system from t on, forwards or backwards: its times count from 0, so that they do not round h.
struct Within<'a> {
    system: &'a dyn System,
    t: f64,
    sign: f64,
}

impl System for Within<'_> {
    fn dim(&self) -> usize {
        self.system.dim()
    }

    fn work_len(&self) -> usize {
        self.system.work_len()
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.system.field(self.sign.mul_add(t, self.t), x, dx, work);
        dx.iter_mut().for_each(|dx| *dx *= self.sign);
    }

    fn vectors(&self) -> &Vectors {
        self.system.vectors()
    }

    fn vector_name(&self, vector: usize) -> String {
        self.system.vector_name(vector)
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.system.masses(self.sign.mul_add(t, self.t), x, masses, work);
    }
}
