//! Time scale of a motion, from a pilot run: the lengths of the steps that an accurate method
//! chooses along it.
//!
//! Equal steps have to be as short as the shortest of these, and symplectic methods need equal
//! steps.

use super::held::explicit;
use crate::options::{RunOptions, Settings};
use crate::problem::Problem;
use crate::simulation::prepare;
use holonome_integrate::method::Method;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Plan;
use holonome_integrate::run::run;
use holonome_integrate::state::StepState;
use std::convert::Infallible;

/// Tolerance of the pilot run.
const TOLERANCE: f64 = 1e-9;

/// Number of steps of the pilot run: several revolutions of most motions.
const STEPS: u64 = 2000;

/// Number of components times steps that the pilot run takes at most: a large model then costs a
/// second or two.
const MOST_NUMBERS: u64 = 2_000_000;

/// Least number of steps that say anything.
const LEAST_STEPS: u64 = 50;

/// Growth of a step from which on the method still looks for its step: from rest the first ones are
/// very short.
const LOOKS: f64 = 2.0;

/// Length of the pilot run, longer than that of any motion in any units: the number of steps ends
/// it.
const FOREVER: f64 = 1e30;

/// Ratio of the longest step to the shortest beyond which equal steps are wasted on most of the
/// motion: that of a Kepler orbit of the eccentricity 0.9.
const UNEVEN: f64 = 100.0;

/// Steps of a symplectic composition of order 4 in the shortest step of the pilot run, which has
/// order 8: its energy then stays to about a thousandth, and it is far from unstable.
const STEPS_IN_SHORTEST: f64 = 4.0;

/// Steps along a motion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    shortest: f64,
    longest: f64,
}

impl Pace {
    /// Steps along the motion of a problem; `None` if there is no motion that could be followed for
    /// some steps.
    pub fn new(problem: &Problem) -> Option<Pace> {
        let steps = (MOST_NUMBERS / problem.model.dimension().max(1) as u64).min(STEPS);
        if steps < LEAST_STEPS || !problem.examined.singular.is_empty() {
            return None;
        }
        // Without a correction a motion leaves its constraints, some of them fast.
        let method: Method = explicit(problem).0.parse().ok()?;
        let settings = Settings { allow_unverified: true, ..problem.settings.clone() };
        let problem =
            Problem::from_text(&problem.name, problem.source.text(), &problem.tables, &settings)
                .ok()?;
        let t0 = problem.model.t0;
        let options =
            RunOptions { method, until: t0 + FOREVER, samples: Some(2), ..RunOptions::default() };
        let simulation = prepare(problem, options).ok()?;
        let plan = Plan::adaptive(method, t0, t0 + FOREVER, TOLERANCE, 0.0).ok()?;
        let system = &*simulation.trajectory.system;
        let mut state = StepState::new(&plan, system, simulation.state().x.as_slice(), None);
        let mut walk = Walk {
            t: t0,
            before: f64::NAN,
            found: false,
            most: steps,
            pace: Pace { shortest: f64::INFINITY, longest: 0.0 },
            steps: 0,
        };
        // A motion that ends in a singularity has told enough.
        drop(run(&plan, system, &mut state, &mut walk));
        let Pace { shortest, longest } = walk.pace;
        (walk.steps >= LEAST_STEPS && longest < 1e-3 * FOREVER)
            .then_some(Pace { shortest, longest })
    }

    /// Ratio of the longest step to the shortest, if that is too large for equal steps.
    pub fn uneven(self) -> Option<f64> {
        let ratio = self.longest / self.shortest;
        (ratio > UNEVEN).then_some(ratio)
    }

    /// Length of equal steps of a symplectic composition of order 4, with one digit: 1, 2 or 5.
    pub fn equal_step(self) -> f64 {
        let most = self.shortest / STEPS_IN_SHORTEST;
        let decade = 10f64.powi(most.log10().floor() as i32);
        [5.0, 2.0, 1.0]
            .into_iter()
            .map(|digit| digit * decade)
            .find(|step| *step <= most)
            .unwrap_or(decade)
    }
}

/// Observer of the steps.
struct Walk {
    t: f64,
    /// Length of the step before, NaN before the first one.
    before: f64,
    /// True once the method has found its step.
    found: bool,
    most: u64,
    pace: Pace,
    steps: u64,
}

impl Observer for Walk {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        let length = state.t - std::mem::replace(&mut self.t, state.t);
        self.steps = state.step;
        self.found |= length < LOOKS * std::mem::replace(&mut self.before, length);
        if self.found {
            self.pace.shortest = self.pace.shortest.min(length);
            self.pace.longest = self.pace.longest.max(length);
        }
        Ok(if state.step < self.most { Control::Continue } else { Control::Stop })
    }
}
