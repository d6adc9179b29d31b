//! Steps as polynomials for an observer's interpolant: dense output if the scheme has one,
//! otherwise the cubic that has the field at both ends (HNW II.6), as states at some points of the
//! step.

use super::Engine;
use crate::failure::Failure;
use crate::method::{Method, MethodTreatment};
use crate::observer::Observer;

/// Degree and order of the dense output from which a method's pieces come; `None` if they are
/// cubics. A treatment around the step leaves no stages that belong to its result.
fn dense_of(method: &Method) -> Option<(usize, u32)> {
    let around = method.treatment == MethodTreatment::SymmetricProjection;
    method.scheme.dense_output().filter(|_| !around)
}

/// Points θ in [0, 1] at which a method's steps are passed on, 0 first and 1 last: those of
/// Chebyshev, between which a polynomial swings least.
pub fn piece_points(method: &Method) -> Vec<f64> {
    let degree = dense_of(method).map_or(3, |(degree, _)| degree);
    (0..=degree)
        .map(|k| 0.5 - 0.5 * (std::f64::consts::PI * k as f64 / degree as f64).cos())
        .collect()
}

/// Order of the error between the steps of a method.
pub fn piece_order(method: &Method) -> u32 {
    // The error of the interpolation is made anew in every step: of the fourth order for a cubic.
    dense_of(method).map_or(4, |(_, order)| order + 1).min(method.order())
}

/// Scratch for passing steps to an observer.
#[derive(Default)]
pub(super) struct Pieces {
    points: Vec<f64>,
    dense: bool,
    states: Vec<f64>,
    /// The field at both ends of the step; the first is known if the step before ended there.
    ends: [Vec<f64>; 2],
    known: Option<f64>,
}

impl Engine<'_> {
    /// Prepare for an observer that wants steps.
    pub(super) fn begin_pieces(&mut self) {
        let n = self.x1.len();
        let (points, dense) =
            (piece_points(&self.plan.method), dense_of(&self.plan.method).is_some());
        let ends = [vec![0.0; n], vec![0.0; n]];
        for vector in [&mut self.field, &mut self.sample] {
            vector.resize(n, 0.0);
        }
        self.sample_values.resize(self.values.len(), 0.0);
        self.pieces = Some(Box::new(Pieces { points, dense, ends, ..Pieces::default() }));
    }

    /// True if steps are passed on by dense output from their stages, which no loop keeps.
    pub(super) fn needs_stages(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.dense)
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
            observer.piece((self.state.t, t1), &pieces.states).map_err(Failure::Observer)
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
        for k in 1..pieces.points.len() - 1 {
            let theta = pieces.points[k];
            let at = theta.mul_add(h, t);
            if pieces.dense {
                if !std::mem::replace(&mut known, true) {
                    self.prepare_interpolant(h, t1);
                }
                self.interpolate(h, theta, at)?;
            } else {
                self.cubic(pieces, (t, h, t1), theta);
                self.treat_sample(h, at)?;
            }
            pieces.states.extend_from_slice(&self.sample[..self.x1.len()]);
        }
        pieces.states.extend_from_slice(&self.x1);
        pieces.known = Some(t1);
        pieces.ends.swap(0, 1);
        Ok(())
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
