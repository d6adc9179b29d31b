//! Error of an orbit, measured by a second run at a hundredth of the tolerances, or by two more
//! runs at half and at a third of the step.
//!
//! A run with small drifts may still be at the wrong place: invariants tell nothing about the error
//! along the level set. The other run proceeds side by side with the samples of the first, one of
//! which is in memory at a time. With adaptive steps the distance of the two is the first run's
//! error, up to the second's own. With fixed steps of order p the distance of the run at h/k is 1 −
//! k⁻ᵖ of the first run's error, and is divided by this factor. Where forces jump, errors have no
//! order, and two runs may share most of one: if the two distances are not as two of one order,
//! each is doubled, and the largest counts at the end, too. Of both the larger one counts.
//!
//! What all runs step over, none of them shows. The steps of a second adaptive run are therefore
//! shorter than most of the first run's wherever the model depends on the time itself.

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
use holonome_model::elaborate::model::Model;
use std::time::{Duration, Instant};

/// Factor of the second run's tolerances, which are no less than [`FINEST`].
const TIGHTER: f64 = 0.01;

/// Tolerance below which errors are rounding.
const FINEST: f64 = 1e-15;

/// Factor of the maximum number of steps of the second run.
const MORE_STEPS: u64 = 10;

/// Longest step of the second run, relative to the mean of the first one's, where the model may
/// depend on the time.
const OTHER_GRID: f64 = 0.618;

/// Ratio of the distances of two runs up to which they may be errors of one order: those of order 1
/// have the ratio 4/3.
const ALIKE: f64 = 2.0;

/// Distance from which on the runs count as separated, relative to the motion's size.
const SEPARATED: f64 = 0.1;

/// Factor by which a distance exceeds all before it if its time is kept.
const FARTHER: f64 = 1.01;

/// Interval between two calls of `watch`.
const CALL_INTERVAL: Duration = Duration::from_millis(20);

/// Error of `run`, which is finished and whose samples are in `output`; `None` if `watch` stops the
/// second run.
///
/// # Errors
/// If the second run cannot be prepared or fails, or the samples of the first cannot be read.
pub(crate) fn measure(
    run: &Simulation,
    output: &Output,
    watch: &mut (dyn FnMut(&Progress) -> Control + Send),
) -> Result<Option<OrbitError>, Error> {
    let first = &run.options;
    let measured = match first.step {
        StepSize::Fixed(h) => {
            let Some(half) = distances(run, output, StepSize::Fixed(h / 2.0), 2, watch)? else {
                return Ok(None);
            };
            let Some(third) = distances(run, output, StepSize::Fixed(h / 3.0), 3, watch)? else {
                return Ok(None);
            };
            Some((Second::Step(h / 2.0), joined([half, third], run.plan.method.order() as i32)))
        }
        StepSize::Adaptive { rtol: first, atol } => {
            let rtol = (TIGHTER * first).max(FINEST).min(first);
            let step = StepSize::Adaptive { rtol, atol: atol * (rtol / first) };
            distances(run, output, step, 1, watch)?
                .map(|distances| (Second::Tolerance(rtol), distances))
        }
    };
    Ok(measured.map(|(second, Distances { families, far })| {
        let is_far = |far: &&Far| far.distance > SEPARATED * families[far.family].size;
        let separated = far.iter().find(is_far).map(|far| run.plan.clock(far.t));
        let families = families.into_iter().map(FamilyDistance::error).collect();
        OrbitError { second, families, separated }
    }))
}

/// Distances of a variable of another run, the largest over a family's members.
#[derive(Clone)]
struct FamilyDistance {
    name: String,
    last: f64,
    max: f64,
    /// Largest norm of a member over the samples.
    size: f64,
}

impl FamilyDistance {
    fn error(self) -> (String, FamilyError) {
        let FamilyDistance { name, last, max, size } = self;
        (name, FamilyError { last, max, relative: if max == 0.0 { 0.0 } else { max / size } })
    }
}

/// Distances of another run from the first one.
struct Distances {
    /// Largest and last distance of each variable.
    families: Vec<FamilyDistance>,
    /// Samples at which the distance of a variable was larger than ever before, in the order of
    /// time.
    far: Vec<Far>,
}

/// Distance of a variable at a sample.
#[derive(Clone, Copy, Debug)]
struct Far {
    t: f64,
    family: usize,
    distance: f64,
}

/// Distances of a run with other steps, `divisor` of them in one of the first if these are equal;
/// `None` if it was stopped.
fn distances(
    run: &Simulation,
    output: &Output,
    step: StepSize,
    divisor: u64,
    watch: &mut (dyn FnMut(&Progress) -> Control + Send),
) -> Result<Option<Distances>, Error> {
    let first = &run.options;
    // The second run takes more steps than a budget for the first allows.
    let max_steps = first.max_steps.map(|steps| steps.saturating_mul(MORE_STEPS));
    let problem = &run.problem;
    let of_time = problem.model.moves_with_time();
    let mean = run.plan.span() / run.trajectory.state.step.max(1) as f64;
    let other_grid = (first.step.fixed().is_none() && of_time).then_some(OTHER_GRID * mean);
    let max_step = other_grid
        .map_or(first.max_step, |other| Some(first.max_step.map_or(other, |own| own.min(other))));
    // The model as it was read: the penalty is added anew, with the same ω.
    let problem = Problem::from_text(
        &problem.name,
        problem.source.text(),
        &problem.tables,
        &problem.settings,
    )?;
    // Outputs are the first run's.
    let options = RunOptions {
        step,
        max_steps,
        max_step,
        every: None,
        at: None,
        samples: Some(2),
        error: false,
        ..first.clone()
    };
    let other = prepare(problem, options)?;
    let plan = at_samples_of(&run.plan, &other.plan, divisor);
    let mut comparer =
        Comparer::new((&run.recorded, &run.problem.model), output, &run.plan, watch)?;
    match other.run_unstored(&plan, &mut other.state().clone(), &mut comparer) {
        Ok(Outcome::Finished | Outcome::Event) => {
            Ok(Some(Distances { families: comparer.families(), far: comparer.far }))
        }
        Ok(Outcome::Stopped | Outcome::ClaimFailed | Outcome::Reset) => Ok(None),
        Err(failure) => Err(Error::Failed {
            failure: Box::new(failure),
            monitored: None,
            out: None,
            samples: 0,
            kept: None,
        }),
    }
}

/// Errors from the distances of runs at half and at a third of a step by a method of order `order`.
fn joined([half, third]: [Distances; 2], order: i32) -> Distances {
    let factors = |half: f64, third: f64| match half <= ALIKE * third && third <= ALIKE * half {
        true => [2.0f64, 3.0].map(|divisor| 1.0 / (1.0 - divisor.powi(-order))),
        false => [2.0; 2],
    };
    let of_families = half.families.into_iter().zip(third.families).map(|(half, third)| {
        let [of_half, of_third] = factors(half.max, third.max);
        let max = (of_half * half.max).max(of_third * third.max);
        let last = (of_half * half.last).max(of_third * third.last);
        // Without an order it is chance that runs meet again.
        FamilyDistance { last: if of_half == of_third { max } else { last }, max, ..half }
    });
    let [of_half, _] = factors(1.0, 1.0);
    let far =
        half.far.into_iter().map(|far| Far { distance: of_half * far.distance, ..far }).collect();
    Distances { families: of_families.collect(), far }
}

/// `plan` with outputs at the times of the outputs of `first`, in each of whose equal steps it
/// makes `divisor` ones.
fn at_samples_of(first: &Plan, plan: &Plan, divisor: u64) -> Plan {
    let mut plan = plan.clone();
    let times = (0..first.sample_count()).map(|i| first.sample_time(i));
    match (&first.stepping, &mut plan.stepping) {
        (_, Stepping::Adaptive(adaptive)) => adaptive.samples = times.collect(),
        (Stepping::Fixed(of), Stepping::Fixed(fixed)) => {
            let (last, end) = (of.count(), fixed.count());
            let step = |&step: &u64| if step == last { end } else { divisor * step };
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
    error: FamilyDistance,
    rows: AppendedRows<'a>,
    first: usize,
    /// Length of a member.
    width: usize,
}

/// Observer that compares the samples of the second run with the stored ones of the first.
struct Comparer<'a> {
    arrays: Vec<Compared<'a>>,
    far: Vec<Far>,
    model: &'a Model,
    plan: &'a Plan,
    /// A sample of the second run, as the model was written.
    written: Vec<f64>,
    watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    called: Instant,
}

impl<'a> Comparer<'a> {
    fn new(
        (recorded, model): (&RecordedArrays, &'a Model),
        output: &'a Output,
        plan: &'a Plan,
        watch: &'a mut (dyn FnMut(&Progress) -> Control + Send),
    ) -> Result<Comparer<'a>, Error> {
        let mut arrays = Vec::new();
        for array in &recorded.arrays {
            let Some(first) = array.variable else { continue };
            arrays.push(Compared {
                error: FamilyDistance { name: array.name.clone(), last: 0.0, max: 0.0, size: 0.0 },
                rows: output.rows(&array.name).map_err(Error::store)?,
                first,
                width: array.shape.len().max(1),
            });
        }
        let (far, written, called) = (Vec::new(), Vec::new(), Instant::now());
        Ok(Comparer { arrays, far, model, plan, written, watch, called })
    }

    fn families(&self) -> Vec<FamilyDistance> {
        self.arrays.iter().map(|array| array.error.clone()).collect()
    }
}

impl Observer for Comparer<'_> {
    type Error = StoreError;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), StoreError> {
        self.written.clear();
        self.written.extend_from_slice(&x[..self.model.dimension()]);
        self.model.turn(&mut self.written);
        for (family, array) in self.arrays.iter_mut().enumerate() {
            let row = array.rows.row(index)?;
            let other = &self.written[array.first..array.first + row.len()];
            let (mut distance, mut size): (f64, f64) = (0.0, 0.0);
            for (a, b) in row.chunks(array.width).zip(other.chunks(array.width)) {
                distance =
                    distance.max(a.iter().zip(b).fold(0.0, |sum: f64, (a, b)| sum.hypot(a - b)));
                size = size.max(a.iter().fold(0.0, |sum: f64, a| sum.hypot(*a)));
            }
            let error = &mut array.error;
            error.size = error.size.max(size);
            error.last = distance;
            if distance > FARTHER * error.max {
                self.far.push(Far { t, family, distance });
            }
            error.max = error.max.max(error.last);
        }
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, StoreError> {
        if self.called.elapsed() < CALL_INTERVAL {
            return Ok(Control::Continue);
        }
        self.called = Instant::now();
        let [from, t, until] =
            [self.plan.t0, state.t, self.plan.t_end()].map(|t| self.plan.clock(t));
        let progress = Progress { from, t, until, steps: state.step, of: None, drift: None };
        Ok((self.watch)(&progress))
    }
}
