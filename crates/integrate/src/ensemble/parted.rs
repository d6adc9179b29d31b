//! Trajectory of a lane from which a run by itself goes on.

use super::End;
use crate::state::{ControllerMemory, Drift, FirstStage, StepState};

/// What a lane knows of its trajectory between two steps.
#[derive(Clone, Debug)]
pub struct Parted {
    /// Time, number of steps, deviations and cost there.
    pub end: End,
    /// Time since the start.
    pub elapsed: f64,
    /// The state.
    pub x: Vec<f64>,
    /// Scales of the state's vectors that steps carry.
    pub carried: Vec<f64>,
    /// Other numbers that they carry.
    pub memory: Vec<f64>,
    /// Largest disturbance of a step by its treatment so far.
    pub judged: f64,
    /// Index of the next sample.
    pub next_sample: usize,
    /// What adaptive steps carry besides.
    pub adaptive: Option<PartedAdaptive>,
}

/// What adaptive steps carry.
#[derive(Clone, Debug)]
pub struct PartedAdaptive {
    /// State of the controller.
    pub controller: ControllerMemory,
    /// Scales of the error norm.
    pub norms: Vec<f64>,
    /// The field at the state; empty if it is not known.
    pub first: Vec<f64>,
}

impl Parted {
    /// Make this the state of a run, which is at the start of the trajectory.
    pub fn put_into(self, state: &mut StepState) {
        let Parted { end, elapsed, x, carried, memory, judged, next_sample, adaptive } = self;
        (state.step, state.t, state.elapsed, state.x) = (end.steps, end.t, elapsed, x);
        (state.scales.carried, state.memory) = (carried, memory);
        (state.judged, state.next_sample) = (judged, next_sample);
        let deviations = end.deviations.into_iter().zip(end.largest);
        state.drift = deviations.map(|(now, max)| Drift { now, max }).collect();
        (state.terms, state.losses, state.cost) = (end.terms, end.losses, end.cost);
        (state.innovation, state.innovation_at) = (end.innovation, end.innovation_at);
        if let Some(PartedAdaptive { controller, norms, first }) = adaptive {
            (state.controller, state.scales.norms) = (controller, norms);
            state.first_stage = FirstStage { known: !first.is_empty(), value: first };
        }
    }
}
