//! Stability of a gain further along the motion than a pilot run of a thousand short steps reaches.
//! Warnings and the remedy of a refusal are computed from it; the pilot run alone decides the
//! refusal.
//!
//! The steps of a feedback run are short compared with the motion: a thousand of them cover a
//! seventh of a Kepler orbit from its pericentre, where λmax is small. The motion itself, followed
//! accurately without feedback, takes few steps.

use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Gain;
use holonome_integrate::plan::Plan;
use holonome_integrate::run::run;
use holonome_integrate::stability::Monitor;
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use std::convert::Infallible;

/// Number of steps of the accurate run: several revolutions of most motions.
const STEPS: u64 = 200;

/// Tolerance of the accurate run: λmax is needed to a few per cent.
const TOLERANCE: f64 = 1e-6;

/// h·λmax/r along the motion.
#[derive(Debug, Default)]
pub struct Outlook {
    /// Mean over time.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
    /// Time up to which the motion was followed.
    pub until: f64,
}

/// Follow the motion of `system`, which has no feedback term, from `x0` and measure h·λmax/r of a
/// fixed step `h` under `gain`. A motion that cannot be followed to the end gives the values up to
/// there.
pub fn outlook(plan: &Plan, gain: &Gain, h: f64, system: &dyn System, x0: &[f64]) -> Outlook {
    let method = "plain:dop853".parse().expect("a registered method");
    let Ok(accurate) = Plan::adaptive(method, plan.t0, plan.t_end(), TOLERANCE, TOLERANCE) else {
        return Outlook::default();
    };
    let mut monitor = Monitor::new(
        gain,
        system,
        plan.method
            .scheme
            .real_stability_interval()
            .expect("feedback is for schemes that follow fields"),
    );
    let mut direction = Vec::new();
    monitor.prepare(&mut direction);
    let mut work = vec![0.0; system.work_len()];
    let mut ratio = |t: f64, x: &[f64]| monitor.ratio(system, t, x, h, &mut direction, &mut work);
    let first = ratio(plan.t0, x0);
    let mut state = StepState::new(&accurate, system, x0, None);
    let mut walk = Walk { ratio, t: plan.t0, last: first, max: first, integral: 0.0 };
    let _ = run(&accurate, system, &mut state, &mut walk);
    let length = walk.t - plan.t0;
    Outlook {
        mean: if length > 0.0 { walk.integral / length } else { first },
        max: walk.max,
        until: walk.t,
    }
}

/// Integral of the ratio over time by the trapezoidal rule.
struct Walk<F> {
    ratio: F,
    t: f64,
    last: f64,
    max: f64,
    integral: f64,
}

impl<F: FnMut(f64, &[f64]) -> f64> Observer for Walk<F> {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        let now = (self.ratio)(state.t, &state.x);
        self.integral += 0.5 * (state.t - self.t) * (self.last + now);
        self.max = self.max.max(now);
        (self.t, self.last) = (state.t, now);
        Ok(if state.step < STEPS { Control::Continue } else { Control::Stop })
    }
}
