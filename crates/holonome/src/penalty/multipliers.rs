//! Lagrange multipliers of a penalised run: λ(t) ≈ the mean of ω²g over a window around t (Tao,
//! Owhadi 2016, §3: at a single time ω²g oscillates by as much as λ itself, whatever ω).
//!
//! The window lies on the penalised flow through the state at t: [`PERIODS`] periods of the slowest
//! constraint by itself, 2π/(ω√(G M⁻¹Gᵀ)), half of them before t and half after, weighted by (1 +
//! cos)/2. So λ is a function of the state, and nothing has to be carried. For a symmetric matrix
//! both of two equal entries have a multiplier: Σ λ_ij ∂g_ij over all entries is the force.
//!
//! Linearly implicit steps of length h take their force at q + βh²a. Springs faster than the step
//! are therefore stretched 1 + β(hω)²GM⁻¹Gᵀ times too far in q. For such a run the window lies on
//! the flow through q + βh²a.

use super::slow::SlowManifold;
use crate::kernels::{Parametric, WideBound, compile_rows, single_step};
use crate::step::ForcePlaces;
use holonome_integrate::ensemble::{gather, scatter};
use holonome_integrate::scales::Vectors;
use holonome_integrate::scheme::map::{StepFrom, StepMap, Workspace};
use holonome_integrate::scheme::rk4;
use holonome_integrate::scheme::slices::TableauMap;
use holonome_integrate::state::Cost;
use holonome_integrate::system::System;
use holonome_model::elaborate::model::{Model, multipliers};
use holonome_model::graph::tape::Tape;
use holonome_model::rows::{RowKernel, RowProgram};
use holonome_model::templated::RowField;
use holonome_model::treatment::Field;
use holonome_model::treatment::penalty::Penalty;
use std::sync::Arc;

/// Number of fast periods in a window.
pub const PERIODS: f64 = 4.0;

/// Steps of the flow per period of the fastest mode: rk4 follows this mode to some per cent over
/// the window, in which it averages out.
const STEPS_PER_PERIOD: f64 = 16.0;

/// Maximum number of steps on either side.
const MOST_STEPS: usize = 1000;

/// Multipliers as functions of the state, in one lane or in several, each with parameters of its
/// own.
#[derive(Clone)]
pub struct MeanMultipliers {
    flow: Flow,
    lanes: Vec<Lane>,
    dimension: usize,
    count: usize,
    /// Number of the parameter ω.
    place: usize,
}

/// Data that depend on the parameters of a lane.
#[derive(Clone)]
struct Lane {
    parameters: Vec<f64>,
    /// Places through which the window's flow passes; `None` if it passes through the state itself.
    places: Option<ForcePlaces>,
    /// Slow manifold, for the frequencies.
    manifold: SlowManifold,
}

impl Parametric for Lane {
    fn rebind(&mut self, parameters: &[f64]) {
        self.parameters = parameters.to_vec();
        self.places.rebind(parameters);
        self.manifold.rebind(parameters);
    }
}

/// Penalised flow with its constraints.
#[derive(Clone)]
enum Flow {
    /// Unrolled: from (x, h) at t to x after a step, and the constraints at (t, x).
    Unrolled(Arc<Tape>, WideBound),
    /// Templated, in one lane.
    Templated(Box<RowFlow>),
}

/// Penalised field of a templated model.
#[derive(Clone)]
struct RowFlow {
    constraints: RowKernel,
    field: RowKernel,
    vectors: Vectors,
}

impl System for RowFlow {
    fn dim(&self) -> usize {
        self.vectors.dim()
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

    fn field_derivative(&self, _: f64, _: &[f64], _: &[f64], out: &mut [f64], _: &mut [f64]) {
        out.fill(f64::NAN);
    }
}

impl Flow {
    fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        match self {
            Flow::Unrolled(_, kernel) => kernel.rebind(lane, parameters),
            Flow::Templated(rows) => {
                rows.constraints.rebind(parameters);
                rows.field.rebind(parameters);
            }
        }
    }

    /// Put the constraints at (t, x) into `g`, and x after a step of the flow into `x`, which ends
    /// with the length of the step, in every lane.
    fn step(&self, t: &[f64], x: &mut [f64], g: &mut [f64], scratch: &mut Scratch) {
        match self {
            Flow::Unrolled(_, kernel) => {
                kernel.run(t, x, &mut scratch.out, &mut scratch.work);
                let (x1, constraints) = scratch.out.split_at(x.len() - t.len());
                x[..x1.len()].copy_from_slice(x1);
                g.copy_from_slice(constraints);
            }
            Flow::Templated(rows) => {
                let Scratch { out, work, kept, at } = scratch;
                let (state, h) = x.split_at(x.len() - 1);
                rows.constraints.run(t[0], state, g, work);
                at.clear();
                at.extend_from_slice(state);
                rows.field.run(t[0], at, &mut kept[0], work);
                let map = TableauMap::new(rk4::SCHEME.tableau(), &**rows);
                let workspace =
                    &mut Workspace { kept, memory: &mut [], cost: &mut Cost::default(), work };
                let made = map.fixed_step(StepFrom { t: t[0], h: h[0], x: at }, out, workspace);
                debug_assert!(made.is_ok(), "an explicit step solves nothing");
                x[..out.len()].copy_from_slice(out);
            }
        }
    }

    fn scratch(&self, lanes: usize) -> Scratch {
        let zeros = |len: usize| vec![0.0; len];
        match self {
            Flow::Unrolled(_, kernel) => {
                let (out, work) = (zeros(kernel.outputs() * lanes), zeros(kernel.work_len()));
                Scratch { out, work, kept: Vec::new(), at: Vec::new() }
            }
            Flow::Templated(rows) => {
                let n = rows.dim();
                let kept =
                    vec![zeros(n); TableauMap::new(rk4::SCHEME.tableau(), &**rows).vectors()];
                let work = zeros(rows.work_len().max(rows.constraints.work_len()));
                Scratch { out: zeros(n), work, kept, at: Vec::new() }
            }
        }
    }
}

/// Scratch of a step of the flow.
struct Scratch {
    out: Vec<f64>,
    work: Vec<f64>,
    /// Stages of a step on slices.
    kept: Vec<Vec<f64>>,
    at: Vec<f64>,
}

/// Window of a lane: the length of its steps, and their number on either side.
#[derive(Clone, Copy, Default)]
struct Window {
    step: f64,
    steps: usize,
}

impl Window {
    /// Weight of the state after `k` steps.
    fn weight(self, k: usize) -> f64 {
        let phase = std::f64::consts::PI * k as f64 / (self.steps + 1) as f64;
        0.5 * (1.0 + phase.cos())
    }
}

impl MeanMultipliers {
    /// Multipliers of a penalised model in either form.
    pub fn new(
        model: &Model,
        penalty: &Penalty,
        form: Result<&Field, &RowField>,
        manifold: SlowManifold,
    ) -> MeanMultipliers {
        let parameters = &model.parameter_values;
        let functionals = penalty.constraints.iter().map(|constraint| &constraint.functional);
        let places = multipliers(&penalty.constraints, 0);
        let count =
            places.last().map_or(0, |(quantity, first)| first + quantity.functional.outputs);
        let flow = match form {
            Ok(field) => {
                let mut unrolled = field.clone();
                let nodes: Vec<_> = functionals
                    .flat_map(|functional| functional.unroll(&mut unrolled.graph))
                    .collect();
                let tape = single_step(rk4::SCHEME.tableau(), &unrolled, &nodes);
                let kernel = WideBound::new(&tape, 1, parameters);
                Flow::Unrolled(Arc::new(tape), kernel)
            }
            Err(rows) => {
                let pieces = functionals.zip(&places).flat_map(|(functional, (_, first))| {
                    RowProgram::values(functional, &|output| Some((first + output) as u32))
                });
                let program = RowProgram::new(model.dimension(), count, pieces.collect());
                Flow::Templated(Box::new(RowFlow {
                    constraints: compile_rows(&program, parameters),
                    field: compile_rows(&rows.field, parameters),
                    vectors: Vectors::components(model.dimension()),
                }))
            }
        };
        let lane = Lane { parameters: parameters.clone(), places: None, manifold };
        MeanMultipliers {
            flow,
            lanes: vec![lane],
            dimension: model.dimension(),
            count,
            place: penalty.omega,
        }
    }

    /// Multipliers of steps whose force is taken at these places.
    pub(crate) fn with_places(mut self, places: Option<ForcePlaces>) -> MeanMultipliers {
        self.lanes[0].places = places;
        self
    }

    /// Length of the state.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of multipliers: one for each component of each constraint.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Copy in `lanes` lanes, all with the parameters of the first; `None` if the flow is
    /// templated.
    pub fn in_lanes(&self, lanes: usize) -> Option<MeanMultipliers> {
        let Flow::Unrolled(tape, _) = &self.flow else { return None };
        let first = &self.lanes[0];
        let flow = Flow::Unrolled(Arc::clone(tape), WideBound::new(tape, lanes, &first.parameters));
        let lanes = vec![first.clone(); lanes];
        Some(MeanMultipliers { flow, lanes, ..*self })
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        if self.lanes[lane].parameters != parameters {
            self.lanes[lane].rebind(parameters);
            self.flow.rebind(lane, parameters);
        }
    }

    /// Window around x: [`PERIODS`] of the slowest constraint by itself.
    fn window(&self, lane: &Lane, x: &[f64]) -> Window {
        let omega = lane.parameters[self.place];
        let (diagonal, largest) = lane.manifold.stiffness(x);
        let least = diagonal.into_iter().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let period = |square: f64| std::f64::consts::TAU / (omega * square.sqrt());
        let step = period(largest) / STEPS_PER_PERIOD;
        let steps = (0.5 * PERIODS * period(least) / step).ceil();
        Window { step, steps: (steps as usize).min(MOST_STEPS) }
    }

    /// Put the multipliers at (t, x) into `lambda` in the `wanted` lanes; NaN if a step from there
    /// has no solution.
    pub fn put(&self, t: &[f64], x: &[f64], wanted: impl Fn(usize) -> bool, lambda: &mut [f64]) {
        let (count, n) = (self.lanes.len(), self.dimension);
        let mut start = vec![0.0; (n + 1) * count];
        start[..n * count].copy_from_slice(x);
        let (mut windows, mut one) = (vec![None; count], vec![0.0; n]);
        for (k, lane) in self.lanes.iter().enumerate().filter(|&(k, _)| wanted(k)) {
            gather(x, count, k, &mut one);
            if lane.places.as_ref().is_none_or(|places| places.put(t[k], &mut one).is_ok()) {
                scatter(&one, count, k, &mut start[..n * count]);
                windows[k] = Some(self.window(lane, &one));
            }
        }
        let most = windows.iter().flatten().map(|window| window.steps).max().unwrap_or(0);
        let (mut total, mut times, mut g) =
            (vec![0.0; count], vec![0.0; count], vec![0.0; self.count * count]);
        let mut scratch = self.flow.scratch(count);
        lambda.fill(0.0);
        for direction in [1.0, -1.0] {
            let mut at = start.clone();
            let lengths = at[n * count..].iter_mut().zip(&windows);
            lengths.for_each(|(h, window)| *h = direction * window.unwrap_or_default().step);
            for k in 0..=most {
                for ((time, t), h) in times.iter_mut().zip(t).zip(&at[n * count..]) {
                    *time = h.mul_add(k as f64, *t);
                }
                self.flow.step(&times, &mut at, &mut g, &mut scratch);
                if k == 0 && direction < 0.0 {
                    continue;
                }
                let mut last = (usize::MAX, 0.0);
                for (lane, window) in windows.iter().enumerate() {
                    let Some(window) = window.filter(|window| k <= window.steps) else { continue };
                    if last.0 != window.steps {
                        last = (window.steps, window.weight(k));
                    }
                    let sums = lambda.iter_mut().zip(&g).skip(lane).step_by(count);
                    sums.for_each(|(lambda, g)| *lambda += last.1 * g);
                    total[lane] += last.1;
                }
            }
        }
        for (k, lane) in self.lanes.iter().enumerate() {
            let omega = lane.parameters[self.place];
            let factor = if windows[k].is_some() { omega * omega / total[k] } else { f64::NAN };
            lambda.iter_mut().skip(k).step_by(count).for_each(|lambda| *lambda *= factor);
        }
    }
}
