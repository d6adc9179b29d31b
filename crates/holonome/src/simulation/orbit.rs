//! Error of an orbit, measured by a second run at a hundredth of the tolerances or at half the step.
//!
//! A run with small drifts may still be at the wrong place: invariants tell nothing about the error along the level
//! set. The second run proceeds side by side with the samples of the first, one of which is in memory at a time. With
//! adaptive steps the distance of the two is the first run's error, up to the second's own. With fixed steps of order p
//! it is 1 − 2⁻ᵖ of the first run's error, and is divided by this factor.

use super::{Simulation, prepare};
use crate::error::Error;
use crate::options::{RunOptions, StepSize};
use crate::orbit::{FamilyError, OrbitError, Second};
use crate::output::{AppendedRows, Output};
use crate::problem::Problem;
use crate::recording::{Progress, RecordedArrays};
use crate::store::StoreError;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::run::Outcome;
use holonome_integrate::state::StepState;
use std::time::{Duration, Instant};

/// Factor of the second run's tolerances, which are no less than [`FINEST`].
const TIGHTER: f64 = 0.01;

/// Tolerance below which errors are rounding.
const FINEST: f64 = 1e-15;

/// Factor of the maximum number of steps of the second run.
const MORE_STEPS: u64 = 10;

/// Distance from which on the runs count as separated, relative to the motion's size.
const SEPARATED: f64 = 0.1;

/// Interval between two calls of `watch`.
const CALL_INTERVAL: Duration = Duration::from_millis(20);

/// Error of `run`, which is finished and whose samples are in `output`; `None` if `watch` stops the second run.
///
/// # Errors
/// If the second run cannot be prepared or fails, or the samples of the first cannot be read.
pub(crate) fn measure(
    run: &Simulation,
    output: &Output,
    watch: &mut (dyn FnMut(&Progress) -> Control + Send),
) -> Result<Option<OrbitError>, Error> {
    let first = &run.options;
    // The second run takes more steps than a budget for the first allows.
    let max_steps = first.max_steps.map(|steps| steps.saturating_mul(MORE_STEPS));
    let (step, second) = match first.step {
        StepSize::Fixed(h) => (StepSize::Fixed(h / 2.0), Second::Step(h / 2.0)),
        StepSize::Adaptive { rtol: first, atol } => {
            let rtol = (TIGHTER * first).max(FINEST).min(first);
            (StepSize::Adaptive { rtol, atol: atol * (rtol / first) }, Second::Tolerance(rtol))
        }
    };
    let problem = &run.problem;
    // The model as it was read: the penalty is added anew, with the same ω.
    let problem = Problem::from_text(&problem.name, problem.source.text(), &problem.tables, &problem.settings)?;
    // Outputs are the first run's.
    let options = RunOptions { step, max_steps, every: None, samples: Some(2), error: false, ..first.clone() };
    let other = prepare(problem, options)?;
    let plan = at_samples_of(&run.plan, &other.plan);
    let factor = match second {
        Second::Step(_) => 1.0 / (1.0 - 0.5f64.powi(run.plan.method.order() as i32)),
        Second::Tolerance(_) => 1.0,
    };
    let mut comparer = Comparer::new(&run.recorded, output, (run.plan.t0, run.plan.t_end(), factor), watch)?;
    let outcome = other.run_unstored(&plan, &mut other.state().clone(), &mut comparer);
    match outcome {
        Ok(Outcome::Finished) => {
            let (families, separated) = (comparer.families(), comparer.separated);
            Ok(Some(OrbitError { second, families, separated }))
        }
        Ok(Outcome::Stopped | Outcome::ClaimFailed) => Ok(None),
        Err(failure) => {
            Err(Error::Failed { failure: Box::new(failure), monitored: None, out: None, samples: 0, kept: None })
        }
    }
}

/// `plan` with outputs at the times of the outputs of `first`.
fn at_samples_of(first: &Plan, plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let times = (0..first.sample_count()).map(|i| first.sample_time(i));
    match (&first.stepping, &mut plan.stepping) {
        (_, Stepping::Adaptive(adaptive)) => adaptive.samples = times.collect(),
        (Stepping::Fixed(of), Stepping::Fixed(fixed)) => {
            let (last, end) = (of.count(), fixed.count());
            let step = |&step: &u64| if step == last { end } else { 2 * step };
            fixed.samples = of.samples.iter().map(step).collect();
        }
        (Stepping::Adaptive(_), Stepping::Fixed(FixedSteps { .. })) => {
            unreachable!("both runs choose their steps, or none")
        }
    }
    plan
}

/// One array of the first run, and the second run's distance from it.
struct Compared<'a> {
    error: FamilyError,
    rows: AppendedRows<'a>,
    first: usize,
    /// Length of a member.
    width: usize,
}

/// Observer that compares the samples of the second run with the stored ones of the first.
struct Comparer<'a> {
    arrays: Vec<Compared<'a>>,
    separated: Option<f64>,
    from: f64,
    until: f64,
    factor: f64,
    watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    called: Instant,
}

impl<'a> Comparer<'a> {
    fn new(
        recorded: &RecordedArrays,
        output: &'a Output,
        (from, until, factor): (f64, f64, f64),
        watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<Comparer<'a>, Error> {
        let mut arrays = Vec::new();
        for array in recorded.arrays.iter().filter(|array| array.is_variable()) {
            arrays.push(Compared {
                error: FamilyError { name: array.name.clone(), last: 0.0, max: 0.0, size: 0.0 },
                rows: output.rows(&array.name).map_err(Error::store)?,
                first: array.first,
                width: array.shape.len().max(1),
            });
        }
        Ok(Comparer { arrays, separated: None, from, until, factor, watch, called: Instant::now() })
    }

    fn families(&self) -> Vec<FamilyError> {
        self.arrays.iter().map(|array| array.error.clone()).collect()
    }
}

impl Observer for Comparer<'_> {
    type Error = StoreError;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), StoreError> {
        for array in &mut self.arrays {
            let row = array.rows.row(index)?;
            let other = &x[array.first..array.first + row.len()];
            let (mut distance, mut size): (f64, f64) = (0.0, 0.0);
            for (a, b) in row.chunks(array.width).zip(other.chunks(array.width)) {
                distance = distance.max(a.iter().zip(b).fold(0.0, |sum: f64, (a, b)| sum.hypot(a - b)));
                size = size.max(a.iter().fold(0.0, |sum: f64, a| sum.hypot(*a)));
            }
            let error = &mut array.error;
            error.size = error.size.max(size);
            error.last = self.factor * distance;
            error.max = error.max.max(error.last);
            if error.last > SEPARATED * error.size {
                self.separated.get_or_insert(t);
            }
        }
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        if self.called.elapsed() < CALL_INTERVAL {
            return Ok(Control::Continue);
        }
        self.called = Instant::now();
        let progress =
            Progress { from: self.from, t: state.t, until: self.until, steps: state.step, of: None, drift: None };
        Ok((self.watch)(&progress))
    }
}
