//! Observers of a run: they write its samples, store its state, stop it.

use crate::averages::Averages;
use crate::state::StepState;
use std::sync::Arc;

/// Decision of an observer whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on with the next step.
    Continue,
    /// Stop here; the state is complete and can be resumed.
    Stop,
}

/// Observer of a run.
pub trait Observer {
    /// Error of the observer.
    type Error;

    /// Take output `index` of the plan: the state, followed by the multipliers if they are wanted
    /// and the map knows them. Outputs come in order, each once unless the run goes back.
    ///
    /// # Errors
    /// The observer's own.
    fn sample(&mut self, _index: usize, _t: f64, _x: &[f64]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Take outputs `index`, `index + 1`, … at the times `t`, at least one, all of one block of
    /// steps. `x` holds their states one after the other, each as in [`Observer::sample`].
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

    /// Add output `index`, which has been taken, to averages that the state carries, so that a
    /// resumed run has them.
    fn accumulate(&mut self, _index: usize, _t: f64, _x: &[f64], _averages: &mut Vec<Averages>) {}

    /// Scratch of the observer, which a run exchanges for its own while it passes samples; it may
    /// be of any length then and become longer. A run's scratch is most of the memory of a large
    /// model, and idle then.
    fn scratch(&mut self) -> Option<&mut Vec<f64>> {
        None
    }

    /// True if samples are to have the [multipliers](crate::scheme::map::StepMap::multipliers),
    /// which cost a step each.
    fn wants_multipliers(&self) -> bool {
        false
    }

    /// True if every step is to be passed to [`Observer::piece`] for an interpolant; the run then
    /// takes its dense output, and no loop of several steps.
    fn wants_pieces(&self) -> bool {
        false
    }

    /// Take the step from `t` to `t1`. `states` are its states at the points θ of
    /// [`piece_points`](crate::run::piece_points), one after the other, through which its
    /// polynomial passes. All are treated like results of steps, with these targets F₀.
    ///
    /// # Errors
    /// The observer's own.
    fn piece(
        &mut self,
        (_t, _t1): (f64, f64),
        _target: &Arc<Vec<f64>>,
        _states: &[f64],
    ) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Go back to `state`: the outputs from number `state.next_sample` on come once more. An
    /// observer that keeps outputs drops these.
    fn rewind(&mut self, state: &StepState) -> Result<(), Self::Error> {
        let _ = state;
        Ok(())
    }

    /// Observe an accepted step, after its samples. The state is complete: stored now, it resumes
    /// exactly.
    fn step(&mut self, state: &StepState) -> Result<Control, Self::Error> {
        let _ = state;
        Ok(Control::Continue)
    }
}

/// Observer that keeps all samples in memory; enough for small runs and tests.
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
