//! Step of a method compiled for several trajectories in lanes.

use super::map::{CompiledStep, repeated_tape};
use super::monitoring::{Monitoring, monitor_tape};
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Mend, Recorded, Settling};
use super::{UnrolledParts, march};
use crate::backend::compile;
use crate::policy::LONGEST_STEP;
use holonome_integrate::controller::slots::{Slots, Within};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::ensemble::{AdaptiveLaneSteps, EqualSteps, LaneCarry, LaneStates, LaneSystem, gather, scatter};
use holonome_integrate::plan::{FixedSteps, Plan, Stepping};
use holonome_integrate::scales::{Kept, Scales, Vectors, first_pending};
use holonome_integrate::scheme::map::Facts;
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::{Dense, LaggedEstimate};
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

/// Kernels of an ensemble's steps.
pub struct CompiledLanes {
    /// Lagged estimate of a Runge–Kutta method, if it has one.
    lagged: Option<&'static LaggedEstimate>,
    /// [`Recorded::evaluations`].
    evaluations: [u64; 2],
    facts: Facts,
    lanes: usize,
    dimension: usize,
    groups: usize,
    mend: Option<Mend>,
    vectors: Arc<StateVectors>,
    kept: Kept,
    field: Box<dyn Kernel>,
    watch: LaneMonitor,
    advance: Advance,
    /// Parameters of a step's kernel after those of the model: h and t₀, or [`march::parameters`].
    more: Vec<f64>,
}

enum Advance {
    /// Equal steps in a loop, with the length of the loop's state.
    Repeated(Box<dyn Kernel>, usize),
    /// Attempts in a loop.
    March { kernel: Box<dyn Kernel>, slots: Slots, within: Option<SamplesWithin> },
}

/// Samples within accepted attempts.
struct SamplesWithin {
    /// [`Ingredients::within`].
    kernel: Box<dyn Kernel>,
    at: Within,
    /// Number of weights of dense output behind these.
    weights: usize,
    dense: Option<&'static Dense>,
    evaluations: u64,
}

impl SamplesWithin {
    /// Of attempts with these ingredients; `None` if the formula would be too long.
    fn new(ingredients: &Ingredients, settling: &Settling, targets: usize, lanes: usize) -> Option<SamplesWithin> {
        let (mut dense, mut evaluations) = (None, 0);
        if let Recorded::RungeKutta(tableau) = ingredients.scheme {
            let of = tableau.dense.as_ref()?;
            if ingredients.field.operations() * of.stages > LONGEST_STEP {
                return None;
            }
            evaluations = (of.stages - tableau.stages) as u64;
            dense = Some(of);
        }
        Some(SamplesWithin {
            kernel: compile(&ingredients.within(settling, targets), lanes),
            at: Within::of(&ingredients.slots(settling)),
            weights: ingredients.dense_weights(),
            dense,
            evaluations,
        })
    }

    fn len(&self) -> usize {
        self.at.count() + self.weights
    }
}

/// Lanes bound to their trajectories.
pub struct LaneBound {
    field: Aligned,
    watch: MonitorBound,
    advance: Aligned,
    within: Option<Aligned>,
}

impl CompiledLanes {
    /// Compile the step of `plan` for this many lanes, over the field of a system as in [`CompiledStep::new`]. `None`
    /// if the step is not compiled as a whole, or the method's treatment is not one of formulas.
    pub fn new(
        plan: &Plan,
        (field, system): (&Field, &UnrolledParts),
        vectors: &Arc<StateVectors>,
        (targets, parameters): (usize, usize),
        lanes: usize,
    ) -> Option<CompiledLanes> {
        let taylor = CompiledStep::taylor(plan, field).ok()?;
        let scheme = match &taylor {
            Some(taylor) => Recorded::Taylor(taylor),
            None => Recorded::RungeKutta(plan.method.scheme.runge_kutta()?),
        };
        let formula = system.formula();
        if !CompiledStep::suits(plan, field, formula) || !CompiledStep::ends_in_formulas(plan, field) {
            return None;
        }
        let (dimension, mend) = (field.dimension, Mend::of(plan, field));
        let kept = Mend::kept(mend, plan);
        let ingredients = Ingredients { scheme, dimension, parameters, field: formula, vectors, kept };
        let facts = scheme.facts();
        let (advance, more) = match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let settling = CompiledStep::settling(plan, field, vectors, system.settling());
                let tape = repeated_tape(&ingredients, field, targets, settling.as_ref());
                (Advance::Repeated(compile(&tape, lanes), tape.states), vec![fixed.h, plan.t0])
            }
            Stepping::Adaptive(adaptive) => {
                let control = facts.control?;
                let settling = CompiledStep::settling(plan, field, vectors, system.settling())?;
                let kernel = compile(&ingredients.march(&settling, targets), lanes);
                let mut within = None;
                if adaptive.samples.iter().any(|&t| t != plan.t0 && t != adaptive.t_end) {
                    within = Some(SamplesWithin::new(&ingredients, &settling, targets, lanes)?);
                }
                let slots = ingredients.slots(&settling);
                (Advance::March { kernel, slots, within }, march::parameters(adaptive, control).to_vec())
            }
        };
        let alone = formula.tape(field.dimension, field.parameters);
        Some(CompiledLanes {
            lagged: ingredients.lagged(),
            evaluations: scheme.evaluations(),
            facts,
            lanes,
            dimension: field.dimension,
            groups: field.groups.len(),
            mend,
            vectors: Arc::clone(vectors),
            kept,
            field: compile(&alone, lanes),
            watch: LaneMonitor::new(field, vectors, lanes),
            advance,
            more,
        })
    }

    fn advancing(&self) -> &dyn Kernel {
        match &self.advance {
            Advance::Repeated(kernel, _) | Advance::March { kernel, .. } => kernel.as_ref(),
        }
    }

    fn samples_within(&self) -> Option<&SamplesWithin> {
        match &self.advance {
            Advance::March { within, .. } => within.as_ref(),
            Advance::Repeated(..) => None,
        }
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> LaneBound {
        let all = [parameters, &self.more].concat();
        LaneBound {
            field: self.field.bind(parameters),
            watch: self.watch.bind(parameters),
            advance: self.advancing().bind(&all),
            within: self.samples_within().map(|within| within.kernel.bind(&all)),
        }
    }

    /// Set the parameters and targets of one lane to those of its trajectory.
    pub fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let all = [parameters, &self.more].concat();
        self.field.rebind(&mut bound.field, lane, parameters);
        self.watch.rebind(&mut bound.watch, lane, parameters, targets);
        self.advancing().rebind(&mut bound.advance, lane, &all);
        if let Some((within, bound)) = self.samples_within().zip(bound.within.as_mut()) {
            within.kernel.rebind(bound, lane, &all);
        }
    }
}

impl LaneSystem for CompiledLanes {
    type Bound = LaneBound;

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn dim(&self) -> usize {
        self.dimension
    }

    fn groups(&self) -> usize {
        self.groups
    }

    fn work_len(&self) -> usize {
        let advancing = match &self.advance {
            Advance::Repeated(kernel, len) => len * self.lanes + kernel.work_len(),
            Advance::March { kernel, within, .. } => {
                let of_samples =
                    within.as_ref().map_or(0, |of| of.kernel.outputs() * self.lanes + of.kernel.work_len());
                kernel.work_len().max(of_samples)
            }
        };
        self.field.work_len().max(self.watch.work_len(self.dimension)).max(advancing)
    }

    fn corrects(&self) -> bool {
        self.mend == Some(Mend::Corrects)
    }

    fn count_treatments(&self, steps: u64, cost: &mut Cost) -> bool {
        if let Some(mend) = self.mend {
            mend.count(steps, cost);
        }
        self.mend.is_some()
    }

    fn vectors(&self) -> &Vectors {
        &self.vectors.vectors
    }

    fn kept(&self) -> Kept {
        self.kept
    }

    fn monitor(&self, bound: &LaneBound, at: LaneStates, deviations: &mut [f64], terms: &mut [f64], work: &mut [f64]) {
        self.watch.run(&bound.watch, at, deviations, terms, work);
    }
}

impl EqualSteps for CompiledLanes {
    fn carried_len(&self) -> usize {
        self.kept.carried(self.vectors())
    }

    fn begin(
        &self,
        bound: &mut LaneBound,
        (fixed, t0): (&FixedSteps, f64),
        x: &[f64],
        carried: &mut [f64],
        (begun, costs): (&mut [bool], &mut [Cost]),
        work: &mut [f64],
    ) {
        begun.fill(true);
        let (lanes, kept) = (self.lanes, self.kept);
        if !kept.sizes {
            return;
        }
        let mut one = vec![0.0; self.dimension];
        for lane in 0..lanes {
            gather(x, lanes, lane, &mut one);
            let scales = Scales::new(self.vectors(), kept, Vec::new(), &one);
            scatter(&scales.carried, lanes, lane, carried);
        }
        let Some(lagged) = self.lagged.filter(|_| kept.lagged) else { return };
        let pending = 2 * self.vectors().count() * lanes;
        let (mut field, mut after, mut t) = (vec![0.0; x.len()], vec![0.0; x.len()], vec![t0; lanes]);
        self.fields(bound, &t, x, &mut field, work);
        first_pending(lagged.next, &field, None, &mut carried[pending..]);
        // The first step is made once for its error estimate alone.
        let (mut x, mut rehearsed) = (x.to_vec(), carried.to_vec());
        let (mut innovation, mut missed) = (vec![0.0; lanes], vec![false; lanes]);
        let mut largest = vec![0.0; self.groups * lanes];
        let carry = LaneCarry { carried: &mut rehearsed, innovation: &mut innovation, missed: &mut missed };
        self.steps(bound, 0..1, &mut x, carry, &mut largest, work);
        t.fill(fixed.time(t0, 1));
        self.fields(bound, &t, &x, &mut after, work);
        first_pending(lagged.next, &field, Some((&after, &rehearsed[pending..])), &mut carried[pending..]);
        costs.iter_mut().for_each(|cost| cost.field += self.evaluations[0] + 1);
    }

    fn steps(
        &self,
        bound: &LaneBound,
        steps: Range<u64>,
        x: &mut [f64],
        carry: LaneCarry,
        largest: &mut [f64],
        work: &mut [f64],
    ) {
        let Advance::Repeated(kernel, len) = &self.advance else { unreachable!("an ensemble with equal steps") };
        let (state, work) = work.split_at_mut(len * self.lanes);
        let (start, rest) = state.split_at_mut(x.len());
        let (watched, rest) = rest.split_at_mut(largest.len());
        let (scales, rest) = rest.split_at_mut(carry.carried.len());
        let (unsettled, number) = rest.split_at_mut(if self.mend.is_some() { self.lanes } else { 0 });
        start.copy_from_slice(x);
        watched.fill(0.0);
        scales.copy_from_slice(carry.carried);
        unsettled.fill(0.0);
        number.fill(steps.start as f64);
        kernel.iterate(&bound.advance, state, steps.end - steps.start, work);
        let (end, rest) = state.split_at(x.len());
        let (watched, rest) = rest.split_at(largest.len());
        let (scales, rest) = rest.split_at(carry.carried.len());
        x.copy_from_slice(end);
        largest.copy_from_slice(watched);
        carry.carried.copy_from_slice(scales);
        match self.mend {
            Some(Mend::Corrects) => carry.innovation.copy_from_slice(&rest[..self.lanes]),
            Some(Mend::Projects { .. }) => {
                carry.innovation.fill(0.0);
                for (missed, unsettled) in carry.missed.iter_mut().zip(rest) {
                    *missed = *unsettled != 0.0;
                }
            }
            None => {}
        }
        self.watch.monitoring.finish(largest, self.lanes);
    }

    fn count(&self, steps: Range<u64>, cost: &mut Cost) {
        let steps = steps.end - steps.start;
        cost.field += steps * self.evaluations[0];
        self.count_treatments(steps, cost);
    }
}

impl AdaptiveLaneSteps for CompiledLanes {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn evaluations(&self) -> u64 {
        self.evaluations[1]
    }

    fn fields(&self, bound: &LaneBound, t: &[f64], x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(&bound.field, t, x, dx, work);
    }

    fn slots(&self) -> &Slots {
        let Advance::March { slots, .. } = &self.advance else { unreachable!("an adaptive ensemble") };
        slots
    }

    fn attempts(&self, bound: &LaneBound, count: u64, state: &mut [f64], work: &mut [f64]) {
        self.advancing().iterate(&bound.advance, state, count, work);
    }

    fn finish(&self, largest: &mut [f64]) {
        self.watch.monitoring.finish(largest, 1);
    }

    fn within_len(&self) -> usize {
        self.samples_within().map_or(0, SamplesWithin::len)
    }

    fn within(
        &self,
        bound: &LaneBound,
        wanted: &[bool],
        numbers: &mut [f64],
        out: &mut [f64],
        missed: &mut [bool],
        work: &mut [f64],
    ) {
        let (Some(within), Some(bound)) = (self.samples_within(), &bound.within) else {
            unreachable!("samples of these attempts are asked for")
        };
        let (slots, lanes) = (AdaptiveLaneSteps::slots(self), self.lanes);
        if let Some(dense) = within.dense {
            let [_, t_end, longest, shortest, _] = self.more[..] else { unreachable!("the parameters of a loop") };
            let mut weights = vec![0.0; within.weights];
            for lane in (0..lanes).filter(|&lane| wanted[lane]) {
                let [t, h, rejections, time] =
                    [slots.t, slots.h, slots.rejections, within.at.t].map(|slot| numbers[slot * lanes + lane]);
                let tried = trial((t_end, shortest), t, h.min(longest), rejections as u32);
                let Some((h, _)) = tried else { unreachable!("an attempt that was accepted") };
                dense.weights((time - t) / h, &mut weights);
                scatter(&weights, lanes, lane, &mut numbers[within.at.count() * lanes..]);
            }
        }
        let (values, work) = work.split_at_mut(within.kernel.outputs() * lanes);
        // The time of a sample is one of the numbers.
        within.kernel.run(bound, &numbers[within.at.t * lanes..][..lanes], numbers, values, work);
        let (found, unsettled) = values.split_at(out.len());
        out.copy_from_slice(found);
        self.watch.monitoring.finish(&mut out[self.dimension * lanes..], lanes);
        if let Some(Mend::Projects { .. }) = self.mend {
            for (missed, unsettled) in missed.iter_mut().zip(unsettled) {
                *missed = *unsettled != 0.0;
            }
        }
    }

    fn interpolant_evaluations(&self) -> u64 {
        self.samples_within().map_or(0, |within| within.evaluations)
    }
}

/// Monitor of invariants and of the sizes of their terms, in lanes.
pub struct LaneMonitor {
    kernel: Box<dyn Kernel>,
    monitoring: Monitoring,
    rows: usize,
    vectors: usize,
}

/// Monitor bound to the trajectories.
pub struct MonitorBound {
    values: Aligned,
    /// F₀ of every row.
    targets: Vec<f64>,
}

impl LaneMonitor {
    /// Monitor of the invariants of `field` in so many lanes.
    pub fn new(field: &Field, vectors: &StateVectors, lanes: usize) -> LaneMonitor {
        LaneMonitor {
            kernel: compile(&monitor_tape(field, &vectors.vectors), lanes),
            monitoring: Monitoring::of(field),
            rows: field.invariants.len(),
            vectors: vectors.vectors.count(),
        }
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> MonitorBound {
        MonitorBound { values: self.kernel.bind(parameters), targets: vec![0.0; self.rows * self.kernel.lanes()] }
    }

    /// Set the parameters and targets of one lane to those of its trajectory.
    pub fn rebind(&self, bound: &mut MonitorBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        self.kernel.rebind(&mut bound.values, lane, parameters);
        scatter(targets, self.kernel.lanes(), lane, &mut bound.targets);
    }

    /// Length of the scratch for states of length n.
    pub fn work_len(&self, n: usize) -> usize {
        (n + self.rows + self.vectors + self.kernel.outputs()) * self.kernel.lanes() + self.kernel.work_len()
    }

    /// Compute the deviations of the groups and the sizes of their terms.
    pub fn run(
        &self,
        bound: &MonitorBound,
        LaneStates { t, x, squares, .. }: LaneStates,
        deviations: &mut [f64],
        terms: &mut [f64],
        work: &mut [f64],
    ) {
        let (inputs, work) = work.split_at_mut(x.len() + bound.targets.len() + squares.len());
        let (state, rest) = inputs.split_at_mut(x.len());
        let (targets, sizes) = rest.split_at_mut(bound.targets.len());
        state.copy_from_slice(x);
        targets.copy_from_slice(&bound.targets);
        sizes.copy_from_slice(squares);
        let (outputs, work) = work.split_at_mut(self.kernel.outputs() * self.kernel.lanes());
        self.kernel.run(&bound.values, t, inputs, outputs, work);
        let (distances, sizes) = outputs.split_at(deviations.len());
        deviations.copy_from_slice(distances);
        terms.copy_from_slice(sizes);
        self.monitoring.finish(deviations, self.kernel.lanes());
    }
}
