//! Steps as polynomials for an observer's interpolant, given by states at some points of the step.
//! A scheme without dense output has parts of the step there, each made and treated like the whole,
//! as in the search for events: they are of the method's order. Up to order 3 the cubic that has
//! the field at both ends (HNW II.6) is as good, and joins smoothly.

use super::Engine;
use super::events::{Steps, Whole};
use crate::failure::Failure;
use crate::method::{Method, MethodTreatment};
use crate::observer::Observer;
use crate::plan::Stepping;
use crate::scales::Scales;
use crate::state::{ControllerMemory, StepState};

/// States within a step.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    /// Dense output of this degree and order.
    Dense(usize, u32),
    /// The cubic with the field at both ends.
    Cubic,
    /// Ends of parts of the step, of this order.
    Parts(u32),
}

impl Within {
    fn of(method: &Method) -> Within {
        // A treatment around the step, or steps in it, leave no stages that belong to its result.
        let around = method.treatment == MethodTreatment::SymmetricProjection;
        let alone = !around && method.composition.is_none();
        match (method.scheme.dense_output().filter(|_| alone), method.order()) {
            (Some((degree, order)), _) => Within::Dense(degree, order),
            (None, 0..=3) => Within::Cubic,
            (None, order) => Within::Parts(order),
        }
    }

    /// Degree of the polynomial. Its own error is to be a part of the next power of h.
    fn degree(self) -> usize {
        match self {
            Within::Dense(degree, _) => degree,
            Within::Cubic => 3,
            Within::Parts(order) => order as usize,
        }
    }
}

/// Points θ in [0, 1] at which a method's steps are passed on, 0 first and 1 last: those of
/// Chebyshev, between which a polynomial swings least.
pub fn piece_points(method: &Method) -> Vec<f64> {
    let degree = Within::of(method).degree();
    (0..=degree)
        .map(|k| 0.5 - 0.5 * (std::f64::consts::PI * k as f64 / degree as f64).cos())
        .collect()
}

/// Order of the error between the steps of a method.
pub fn piece_order(method: &Method) -> u32 {
    match Within::of(method) {
        // The error of the interpolation is made anew in every step.
        Within::Dense(_, order) => (order + 1).min(method.order()),
        Within::Cubic | Within::Parts(_) => method.order(),
    }
}

/// Scratch for passing steps to an observer.
pub(super) struct Pieces {
    points: Vec<f64>,
    within: Within,
    states: Vec<f64>,
    /// The field at both ends of the step; the first is known if the step before ended there.
    ends: [Vec<f64>; 2],
    known: Option<f64>,
}

/// Result of a step, with all that is known there before the step is accepted.
struct StepResult {
    x1: Vec<f64>,
    memory: Vec<f64>,
    values: Vec<f64>,
    deviations: Vec<f64>,
    sizes: Vec<f64>,
    scales: Scales,
    controller: ControllerMemory,
    innovation: f64,
    field: Vec<f64>,
    field_known: bool,
}

impl Engine<'_> {
    /// Prepare for an observer that wants steps.
    pub(super) fn begin_pieces(&mut self) {
        let n = self.x1.len();
        let (points, within) = (piece_points(&self.plan.method), Within::of(&self.plan.method));
        let ends = [vec![0.0; n], vec![0.0; n]];
        for vector in [&mut self.field, &mut self.sample] {
            vector.resize(n, 0.0);
        }
        self.sample_values.resize(self.values.len(), 0.0);
        self.pieces =
            Some(Box::new(Pieces { points, within, states: Vec::new(), ends, known: None }));
    }

    /// True if steps are passed on by dense output from their stages, which no loop keeps.
    pub(super) fn needs_stages(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| matches!(pieces.within, Within::Dense(..)))
    }

    /// Pass on the step to x₁; `known` is true if the stages of its dense output are known.
    pub(super) fn hand_piece<O: Observer + ?Sized>(
        &mut self,
        (h, t1): (f64, f64),
        known: bool,
        observer: &mut O,
    ) -> Result<(), Failure<O::Error>> {
        let Some(mut pieces) = self.pieces.take() else { return Ok(()) };
        let filled = self.fill(&mut pieces, (h, t1), known);
        let handed = filled.and_then(|()| {
            let StepState { t, target, .. } = &*self.state;
            observer.piece((*t, t1), target, &pieces.states).map_err(Failure::Observer)
        });
        self.pieces = Some(pieces);
        handed
    }

    fn fill<E>(
        &mut self,
        pieces: &mut Pieces,
        (h, t1): (f64, f64),
        mut known: bool,
    ) -> Result<(), Failure<E>> {
        let t = self.state.t;
        pieces.states.clear();
        pieces.states.extend_from_slice(&self.state.x);
        if matches!(pieces.within, Within::Parts(_)) {
            self.parts(pieces, (h, t1))?;
        }
        for k in 1..pieces.points.len() - 1 {
            let theta = pieces.points[k];
            let at = theta.mul_add(h, t);
            match pieces.within {
                Within::Dense(..) => {
                    if !std::mem::replace(&mut known, true) {
                        self.prepare_interpolant(h, t1);
                    }
                    self.interpolate(h, theta, at)?;
                }
                Within::Cubic => {
                    self.cubic(pieces, (t, h, t1), theta);
                    self.treat_sample(h, at)?;
                }
                Within::Parts(_) => break,
            }
            pieces.states.extend_from_slice(&self.sample[..self.x1.len()]);
        }
        pieces.states.extend_from_slice(&self.x1);
        pieces.known = Some(t1);
        pieces.ends.swap(0, 1);
        Ok(())
    }

    /// Make the parts of a step up to its inner points; its result stays.
    fn parts<E>(&mut self, pieces: &mut Pieces, (h, t1): (f64, f64)) -> Result<(), Failure<E>> {
        let steps = match &self.plan.stepping {
            Stepping::Fixed(fixed) => Steps::Fixed(fixed),
            Stepping::Adaptive(adaptive) => Steps::Adaptive(adaptive),
        };
        let result = self.result();
        let inner = 1..pieces.points.len() - 1;
        let made = inner.into_iter().try_for_each(|k| {
            self.make_part(Whole { steps, h, t1 }, pieces.points[k])?;
            pieces.states.extend_from_slice(&self.x1);
            Ok(())
        });
        self.put_back(result);
        made
    }

    /// Result of the step just made.
    fn result(&self) -> StepResult {
        StepResult {
            x1: self.x1.clone(),
            memory: self.memory.clone(),
            values: self.values.clone(),
            deviations: self.deviations.clone(),
            sizes: self.sizes.clone(),
            scales: self.scales.clone(),
            controller: self.controller,
            innovation: self.innovation,
            field: self.field.clone(),
            field_known: self.field_known,
        }
    }

    /// Make this the result of the step once more.
    fn put_back(&mut self, result: StepResult) {
        let StepResult { x1, memory, values, deviations, .. } = result;
        (self.x1, self.memory, self.values, self.deviations) = (x1, memory, values, deviations);
        let StepResult { sizes, scales, controller, innovation, field, field_known, .. } = result;
        (self.sizes, self.scales, self.controller) = (sizes, scales, controller);
        (self.innovation, self.field, self.field_known) = (innovation, field, field_known);
    }

    /// Evaluate the field at x₁ after an equal step, if dense output needs it as the last stage:
    /// equal steps do without it.
    pub(super) fn find_end_field(&mut self, t1: f64) {
        if let Some(place) = self.map.facts().end_field.filter(|_| self.needs_stages()) {
            self.system.field(t1, &self.x1, &mut self.field, &mut self.work);
            self.state.cost.field += 1;
            self.field_known = true;
            self.stages[place].copy_from_slice(&self.field);
        }
    }

    /// Put the cubic from x to x₁ at θ into `sample`.
    fn cubic(&mut self, pieces: &mut Pieces, (t, h, t1): (f64, f64, f64), theta: f64) {
        let (system, work) = (self.system, &mut self.work);
        let mut evaluate = |t: f64, x: &[f64], out: &mut [f64]| {
            system.field(t, x, out, work);
            self.state.cost.field += 1;
        };
        let [first, last] = &mut pieces.ends;
        // The end of the step is evaluated once for all points.
        if pieces.states.len() == self.x1.len() {
            if pieces.known != Some(t) {
                evaluate(t, &self.state.x, first);
            }
            evaluate(t1, &self.x1, last);
        }
        let rest = 1.0 - theta;
        for i in 0..self.x1.len() {
            let (from, to) = (self.state.x[i], self.x1[i]);
            let bend = rest * (h * first[i] - (to - from)) - theta * (h * last[i] - (to - from));
            self.sample[i] = rest * from + theta * to + theta * rest * bend;
        }
    }
}
