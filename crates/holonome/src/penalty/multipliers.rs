//! The Lagrange multipliers of a penalised run: λ(t) ≈ the mean of ω²g over a window around t (Tao, Owhadi 2016, §3: at
//! one time ω²g oscillates by as much as λ itself, whatever ω).
//!
//! The window is that of the penalised flow through the state at t: [`PERIODS`] periods of the slowest constraint by
//! itself, 2π/(ω√(G M⁻¹Gᵀ)), half of them before t and half after, weighted by (1 + cos)/2. So λ is a function of the
//! state, and needs no memory. A symmetric matrix has one for both of two equal entries: Σ λ_ij ∂g_ij over all of them is
//! the force.
//!
//! Linearly implicit steps of a length h take their force at q + βh²a, so that in q springs which are faster than the step
//! are stretched 1 + β(hω)²GM⁻¹Gᵀ times too far. Of such a run it is the flow through q + βh²a.

use super::slow::SlowManifold;
use crate::compiled::{Bound, Quantities};
use crate::structured::ForcePlaces;
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::map::{StepMap, TableauMap};
use holonome_integrate::scheme::rk4;
use holonome_integrate::state::Cost;
use holonome_integrate::system::{Invariants, System};
use holonome_model::elaborate::model::{Model, multipliers};
use holonome_model::rows::RowProgram;
use holonome_model::templated::RowField;
use holonome_model::treatment::Field;
use holonome_model::treatment::penalty::Penalty;

/// Fast periods in a window.
pub const PERIODS: f64 = 4.0;

/// Steps of the flow in a period of the fastest mode: rk4 follows it to some per cent over the window, and what it
/// follows is averaged out.
const STEPS_PER_PERIOD: f64 = 16.0;

/// Steps on either side at most.
const MOST_STEPS: usize = 1000;

/// The multipliers as functions of the state.
pub struct MeanMultipliers {
    constraints: Quantities,
    flow: Flow,
    /// Where the window's flow passes, unless it is the state itself.
    places: Option<ForcePlaces>,
    /// Knows the frequencies.
    manifold: SlowManifold,
    place: usize,
    omega: f64,
    count: usize,
}

/// The penalised field.
struct Flow {
    field: Quantities,
    none: Invariants,
    vectors: Vectors,
    dimension: usize,
}

impl System for Flow {
    fn dim(&self) -> usize {
        self.dimension
    }

    fn work_len(&self) -> usize {
        self.field.work_len()
    }

    fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(t, x, dx, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.none
    }

    fn invariant_values(&self, _: f64, _: &[f64], _: &mut [f64], _: &mut [f64]) {}

    fn invariant_jacobian(&self, _: f64, _: &[f64], _: &mut [f64], _: &mut [f64]) {}

    fn field_derivative(&self, _: f64, _: &[f64], _: &[f64], out: &mut [f64], _: &mut [f64]) {
        out.fill(f64::NAN);
    }
}

impl MeanMultipliers {
    /// For a penalised model in either form.
    pub fn new(
        model: &Model,
        penalty: &Penalty,
        form: Result<&Field, &RowField>,
        manifold: SlowManifold,
    ) -> MeanMultipliers {
        let parameters = &model.parameter_values;
        let functionals = penalty.constraints.iter().map(|constraint| &constraint.functional);
        let places = multipliers(&penalty.constraints, 0);
        let count = places.last().map_or(0, |(quantity, first)| first + quantity.functional.outputs);
        let (field, constraints) = match form {
            Ok(field) => {
                let mut written = field.clone();
                let nodes: Vec<_> = functionals.flat_map(|functional| functional.unroll(&mut written.graph)).collect();
                let of = |nodes: &[_]| Quantities::Straight(Bound::of(&written, nodes, parameters));
                (of(&field.field), of(&nodes))
            }
            Err(rows) => {
                let pieces = functionals.zip(&places).flat_map(|(functional, (_, first))| {
                    RowProgram::values(functional, &|output| Some((first + output) as u32))
                });
                let program = RowProgram::new(model.dimension(), count, pieces.collect());
                (Quantities::of_rows(&rows.field, parameters), Quantities::of_rows(&program, parameters))
            }
        };
        MeanMultipliers {
            constraints,
            flow: Flow {
                field,
                none: Invariants::none(),
                vectors: Vectors::components(model.dimension()),
                dimension: model.dimension(),
            },
            places: None,
            manifold,
            place: penalty.omega,
            omega: parameters[penalty.omega],
            count,
        }
    }

    /// The same of steps whose force is that of these places.
    pub(crate) fn with_places(self, places: Option<ForcePlaces>) -> MeanMultipliers {
        MeanMultipliers { places, ..self }
    }

    /// How many numbers they are: one for each component of each constraint.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The same for other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> MeanMultipliers {
        MeanMultipliers {
            constraints: self.constraints.rebound(parameters),
            flow: Flow {
                field: self.flow.field.rebound(parameters),
                none: Invariants::none(),
                vectors: self.flow.vectors.clone(),
                dimension: self.flow.dimension,
            },
            places: self.places.as_ref().map(|places| places.rebound(parameters)),
            manifold: self.manifold.rebound(parameters),
            omega: parameters[self.place],
            ..*self
        }
    }

    /// Gives this one other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        self.constraints.rebind(parameters);
        self.flow.field.rebind(parameters);
        self.places = self.places.as_ref().map(|places| places.rebound(parameters));
        self.manifold = self.manifold.rebound(parameters);
        self.omega = parameters[self.place];
    }

    /// Length and number of the steps on either side of x: half of [`PERIODS`] of the slowest constraint by itself.
    fn window(&self, x: &[f64]) -> (f64, usize) {
        let (diagonal, largest) = self.manifold.stiffness(x);
        let least = diagonal.into_iter().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let period = |square: f64| std::f64::consts::TAU / (self.omega * square.sqrt());
        let step = period(largest) / STEPS_PER_PERIOD;
        let steps = (0.5 * PERIODS * period(least) / step).ceil();
        (step, (steps as usize).min(MOST_STEPS))
    }

    /// Puts the multipliers at (t, x); NaN where a step from there has no solution.
    pub fn put(&self, t: f64, x: &[f64], lambda: &mut [f64]) {
        let mut x = x.to_vec();
        if self.places.as_ref().is_some_and(|places| places.put(t, &mut x).is_err()) {
            lambda.fill(f64::NAN);
            return;
        }
        let x = &x[..];
        lambda.fill(0.0);
        let (step, steps) = self.window(x);
        let mut total = 0.0;
        let mut g = vec![0.0; self.count];
        let mut work = vec![0.0; self.constraints.work_len()];
        let mut add = |t: f64, x: &[f64], weight: f64, lambda: &mut [f64]| {
            self.constraints.run(t, x, &mut g, &mut work);
            lambda.iter_mut().zip(&g).for_each(|(lambda, g)| *lambda += weight * g);
            total += weight;
        };
        add(t, x, 1.0, lambda);
        let map = TableauMap::new(rk4::tableau(), &self.flow);
        let mut kept = vec![vec![0.0; x.len()]; map.vectors()];
        let mut scratch = vec![0.0; map.work_len()];
        for h in [step, -step] {
            let (mut at, mut next) = (x.to_vec(), x.to_vec());
            for k in 1..=steps {
                let before = h.mul_add((k - 1) as f64, t);
                self.flow.field(before, &at, &mut kept[0], &mut scratch);
                let made =
                    map.fixed_step((before, h), &at, &mut kept, &mut [], &mut next, &mut Cost::default(), &mut scratch);
                debug_assert!(made.is_ok(), "an explicit step solves nothing");
                std::mem::swap(&mut at, &mut next);
                let phase = std::f64::consts::PI * k as f64 / (steps + 1) as f64;
                add(h.mul_add(k as f64, t), &at, 0.5 * (1.0 + phase.cos()), lambda);
            }
        }
        lambda.iter_mut().for_each(|lambda| *lambda *= self.omega * self.omega / total);
    }
}
