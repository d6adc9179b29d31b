//! Who watches a run: writes its samples, stores its state, stops it.

use crate::averages::Averages;
use crate::state::StepState;

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// On with the next step.
    Continue,
    /// Stop here; the state is complete and can be resumed.
    Stop,
}

/// Watches a run.
pub trait Observer {
    /// What can go wrong while watching.
    type Error;

    /// Output `index` of the plan: the state, followed by the multipliers if they are wanted and the map knows them.
    /// Outputs come in order, each once unless the run goes back.
    ///
    /// # Errors
    /// The observer's own.
    fn sample(&mut self, _index: usize, _t: f64, _x: &[f64]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Outputs `index`, `index + 1`, … at the times `t`: their states in `x` one after the other, each as in
    /// [`Observer::sample`]. At least one, all of one block of steps.
    ///
    /// # Errors
    /// The failure, with the number of outputs that were taken before it.
    fn samples(&mut self, index: usize, t: &[f64], x: &[f64]) -> Result<(), (usize, Self::Error)> {
        let states = x.chunks_exact((x.len() / t.len()).max(1));
        for (k, (&t, x)) in t.iter().zip(states).enumerate() {
            self.sample(index + k, t, x).map_err(|error| (k, error))?;
        }
        Ok(())
    }

    /// Output `index`, which has been taken, for averages that the state carries: whoever resumes the run has them.
    fn accumulate(&mut self, _index: usize, _t: f64, _x: &[f64], _averages: &mut Vec<Averages>) {}

    /// Whether samples are to have the [multipliers](crate::scheme::map::StepMap::multipliers), which cost a step each.
    fn wants_multipliers(&self) -> bool {
        false
    }

    /// Whether every step is to be handed over for an interpolant, which takes its dense output, and no loop of steps.
    fn wants_pieces(&self) -> bool {
        false
    }

    /// The step from `t` to `t1`: its states at the points θ of [`piece_points`](crate::run::piece_points), one after the
    /// other, through which the polynomial that belongs to it passes. All are treated like results of steps.
    ///
    /// # Errors
    /// The observer's own.
    fn piece(&mut self, (_t, _t1): (f64, f64), _states: &[f64]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The run has gone back to `state`: the outputs from number `state.next_sample` on come once more. Whoever keeps
    /// outputs forgets these.
    fn rewind(&mut self, state: &StepState) -> Result<(), Self::Error> {
        let _ = state;
        Ok(())
    }

    /// After each accepted step, when its samples are written. The state is complete: stored now, it resumes exactly.
    fn step(&mut self, state: &StepState) -> Result<Control, Self::Error> {
        let _ = state;
        Ok(Control::Continue)
    }
}

/// Keeps all samples in memory; enough for small runs and tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// Times of the samples.
    pub t: Vec<f64>,
    /// States of the samples.
    pub x: Vec<Vec<f64>>,
}

impl Observer for Recorder {
    type Error = std::convert::Infallible;

    fn sample(&mut self, _index: usize, t: f64, x: &[f64]) -> Result<(), Self::Error> {
        self.t.push(t);
        self.x.push(x.to_vec());
        Ok(())
    }

    fn rewind(&mut self, state: &StepState) -> Result<(), Self::Error> {
        self.t.truncate(state.next_sample);
        self.x.truncate(state.next_sample);
        Ok(())
    }
}
