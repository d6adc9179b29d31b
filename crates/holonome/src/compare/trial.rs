//! Trial: a run that stores nothing.

use super::{CompareProgress, Failed};
use crate::recording::look_every;
use crate::simulation::Simulation;
use holonome_integrate::failure::Failure;
use holonome_integrate::observer::{Control, Observer};
use holonome_integrate::plan::Plan;
use holonome_integrate::run::Outcome;
use holonome_integrate::state::StepState;
use holonome_integrate::system::System;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Report the progress of a comparison, and note requests to stop.
pub(super) struct Monitor<'a> {
    watch: &'a (dyn Fn(CompareProgress) -> Control + Sync),
    done: AtomicUsize,
    of: usize,
    stopped: AtomicBool,
}

impl<'a> Monitor<'a> {
    pub(super) fn new(
        watch: &'a (dyn Fn(CompareProgress) -> Control + Sync),
        of: usize,
    ) -> Monitor<'a> {
        Monitor { watch, done: AtomicUsize::new(0), of, stopped: AtomicBool::new(false) }
    }

    /// Report progress; returns whether to go on.
    pub(super) fn look(&self) -> Control {
        let control =
            (self.watch)(CompareProgress { done: self.done.load(Ordering::Relaxed), of: self.of });
        if control == Control::Stop {
            self.stopped.store(true, Ordering::Relaxed);
        }
        control
    }

    pub(super) fn finish_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.look();
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Samples of a run.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) t: Vec<f64>,
    pub(super) x: Vec<Vec<f64>>,
    /// F − F₀, row by row.
    pub(super) deviations: Vec<Vec<f64>>,
}

/// A run with its samples.
pub(super) struct Trial {
    pub(super) samples: Samples,
    /// Final state, with the drifts over all steps and samples.
    pub(super) state: StepState,
    /// Wall time of the run, beside others.
    pub(super) wall_seconds: f64,
    pub(super) failed: Option<Failed>,
}

impl Failed {
    fn of(failure: &Failure<Infallible>) -> Failed {
        Failed { kind: failure.kind().to_string(), message: failure.to_string(), t: failure.t() }
    }

    pub(super) fn stopped(t: f64) -> Failed {
        let message = format!("it was stopped at t = {t}");
        Failed { kind: "interrupted".to_string(), message, t: Some(t) }
    }
}

impl Trial {
    /// Run `plan`, which is the simulation's own except for its outputs.
    pub(super) fn record(simulation: &Simulation, plan: &Plan, monitor: &Monitor<'_>) -> Trial {
        let system = &*simulation.trajectory.system;
        let mut state = simulation.state().clone();
        let target = Arc::clone(&state.target);
        let work = vec![0.0; system.work_len()];
        let mut recorder =
            Recorder { system, target, samples: Samples::default(), work, steps: 0, monitor };
        let started = Instant::now();
        let outcome = simulation.run_unstored(plan, &mut state, &mut recorder);
        let wall_seconds = started.elapsed().as_secs_f64();
        let failed = match outcome {
            Ok(Outcome::Finished | Outcome::Event) => None,
            Ok(Outcome::Stopped | Outcome::ClaimFailed | Outcome::Reset) => {
                Some(Failed::stopped(state.t))
            }
            Err(failure) => Some(Failed::of(&failure)),
        };
        Trial { samples: recorder.samples, state, wall_seconds, failed }
    }
}

struct Recorder<'a> {
    system: &'a dyn System,
    target: Arc<Vec<f64>>,
    samples: Samples,
    work: Vec<f64>,
    steps: u64,
    monitor: &'a Monitor<'a>,
}

impl Observer for Recorder<'_> {
    type Error = Infallible;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), Infallible> {
        let mut values = vec![0.0; self.target.len()];
        self.system.invariant_values(t, x, &mut values, &mut self.work);
        for (value, target) in values.iter_mut().zip(&*self.target) {
            *value -= target;
        }
        self.samples.t.push(t);
        self.samples.x.push(x.to_vec());
        self.samples.deviations.push(values);
        Ok(())
    }

    fn rewind(&mut self, state: &StepState) -> Result<(), Infallible> {
        self.samples.t.truncate(state.next_sample);
        self.samples.x.truncate(state.next_sample);
        self.samples.deviations.truncate(state.next_sample);
        Ok(())
    }

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        look_now_and_then(&mut self.steps, state, self.monitor)
    }
}

/// Call `watch` from time to time in small systems, and at every step in large ones.
fn look_now_and_then(
    steps: &mut u64,
    state: &StepState,
    monitor: &Monitor<'_>,
) -> Result<Control, Infallible> {
    *steps += 1;
    let soon = !steps.is_multiple_of(look_every()) && state.x.len() < 4096;
    Ok(if soon { Control::Continue } else { monitor.look() })
}

/// Observer that checks only whether to go on.
struct Clocked<'a> {
    steps: u64,
    monitor: &'a Monitor<'a>,
}

impl Observer for Clocked<'_> {
    type Error = Infallible;

    fn step(&mut self, state: &StepState) -> Result<Control, Infallible> {
        look_now_and_then(&mut self.steps, state, self.monitor)
    }
}

/// Seconds and number of runs up to which a short run is repeated: the least of several times is
/// close to the run's own.
const REPEAT_SECONDS: f64 = 0.05;
const REPEATS: u32 = 5;

/// Time of a run that samples its ends only, and its final state; `None` if it was stopped before
/// the end.
pub(super) fn time(
    simulation: &Simulation,
    monitor: &Monitor<'_>,
) -> Result<Option<(f64, StepState)>, Failed> {
    let ends = simulation.plan.clone().with_samples(2).expect("two samples suit every plan");
    let (mut least, mut sum) = (f64::INFINITY, 0.0);
    let mut state = simulation.state().clone();
    for _ in 0..REPEATS {
        state = simulation.state().clone();
        let started = Instant::now();
        let outcome =
            simulation.run_unstored(&ends, &mut state, &mut Clocked { steps: 0, monitor });
        let seconds = started.elapsed().as_secs_f64();
        if outcome.map_err(|failure| Failed::of(&failure))? == Outcome::Stopped {
            return Ok(None);
        }
        (least, sum) = (seconds.min(least), sum + seconds);
        if sum > REPEAT_SECONDS || monitor.stopped() {
            break;
        }
    }
    Ok(Some((least, state)))
}
