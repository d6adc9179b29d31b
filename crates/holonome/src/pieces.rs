//! Polynomials of all steps of a run, given by states at some points of each step.

use holonome_integrate::plan::Plan;
use holonome_integrate::run::piece_points;
use holonome_integrate::system::all_finite;
use std::sync::Arc;

/// State within a step, to be treated.
pub(crate) struct Within<'a> {
    /// Length of the step.
    pub h: f64,
    /// Targets F₀ of the step.
    pub target: &'a [f64],
}

/// Steps of a run so far.
#[derive(Clone)]
pub(crate) struct Pieces {
    dimension: usize,
    /// Points θ of a step, and the weights of Lagrange's formula in its barycentric form.
    points: Vec<f64>,
    weights: Vec<f64>,
    /// State at the start of the run.
    start: Vec<f64>,
    /// Times at which steps begin, and the end of the last one.
    times: Vec<f64>,
    /// States at the points of each step: one that an event has set is not the end of the step
    /// before.
    states: Vec<f64>,
    /// Targets F₀, each with the number of the first step that has it.
    targets: Vec<(usize, Arc<Vec<f64>>)>,
    /// Reason why there is no interpolant.
    broken: Option<String>,
}

impl Pieces {
    /// Empty list of steps, for a run that starts at `x`.
    pub(crate) fn new(plan: &Plan, x: &[f64]) -> Pieces {
        let points = piece_points(&plan.method);
        let gaps = |k: usize| (0..points.len()).filter(move |&j| j != k);
        let weights = (0..points.len())
            .map(|k| gaps(k).map(|j| points[k] - points[j]).product::<f64>().recip());
        let weights = weights.collect();
        Pieces {
            dimension: x.len(),
            points,
            weights,
            start: x.to_vec(),
            times: vec![plan.t0],
            states: Vec::new(),
            targets: Vec::new(),
            broken: None,
        }
    }

    /// Add a step with these targets.
    pub(crate) fn push(&mut self, (t, t1): (f64, f64), target: &Arc<Vec<f64>>, states: &[f64]) {
        if self.broken.is_none() && !all_finite(states) {
            self.broken =
                Some(format!("the field is not a finite number between t = {t} and t = {t1}"));
        }
        if self.broken.is_none() && self.states.try_reserve(states.len()).is_err() {
            self.broken = Some(format!("memory does not hold the steps beyond t = {t}"));
        }
        if self.broken.is_none() {
            if self.targets.last().is_none_or(|(_, last)| last != target) {
                self.targets.push((self.times.len() - 1, Arc::clone(target)));
            }
            self.states.extend_from_slice(states);
            self.times.push(t1);
        }
    }

    /// Drop the steps that end after t.
    pub(crate) fn rewind(&mut self, t: f64) {
        let count = self.times.partition_point(|&time| time <= t).max(1);
        self.times.truncate(count);
        self.states.truncate((count - 1) * self.points.len() * self.dimension);
        self.targets.retain(|&(first, _)| first < count - 1);
    }

    /// First and last time.
    pub(crate) fn span(&self) -> (f64, f64) {
        (self.times[0], self.times[self.times.len() - 1])
    }

    /// Length of a state.
    pub(crate) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Reason why there is no interpolant; `None` if there is one.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Put the state at t, which lies in the run, into `x`: where an event sets the state, the one
    /// after it. `None` if it is one of the states that were passed on, which are treated already.
    pub(crate) fn put(&self, t: f64, x: &mut [f64]) -> Option<Within<'_>> {
        let (n, steps) = (self.dimension, self.times.len() - 1);
        if steps == 0 {
            x.copy_from_slice(&self.start);
            return None;
        }
        let step = self.times.partition_point(|&time| time <= t).clamp(1, steps) - 1;
        let h = self.times[step + 1] - self.times[step];
        let theta = match t == self.times[step + 1] {
            true => 1.0,
            false => (t - self.times[step]) / h,
        };
        let first = step * self.points.len();
        let state = |k: usize| &self.states[(first + k) * n..(first + k + 1) * n];
        if let Some(k) = self.points.iter().position(|&point| point == theta) {
            x.copy_from_slice(state(k));
            return None;
        }
        x.fill(0.0);
        let mut total = 0.0;
        for (k, (point, weight)) in self.points.iter().zip(&self.weights).enumerate() {
            let part = weight / (theta - point);
            total += part;
            x.iter_mut().zip(state(k)).for_each(|(x, state)| *x += part * state);
        }
        x.iter_mut().for_each(|x| *x /= total);
        let of = self.targets.partition_point(|&(first, _)| first <= step) - 1;
        Some(Within { h, target: &self.targets[of].1 })
    }
}
