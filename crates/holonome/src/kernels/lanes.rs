//! Step of a method compiled for several trajectories in lanes.

mod collocated;
mod monitor;

use super::collocation::{JudgedPlaces, LaneStages, LaneStagesBound, judge};
use super::loops::repeated_tape;
use super::map::{CompiledStep, StepSource};
use super::march;
use super::march::AttemptLoop;
use super::mending::Mend;
use super::settling::Settling;
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Recorded};
use crate::backend::compile;
use crate::policy::LONGEST_STEP;
use holonome_integrate::controller::StepControl;
use holonome_integrate::controller::slots::{Slots, Within};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::ensemble::{
    AdaptiveLaneSteps, EqualSteps, LaneCarry, LaneStates, LaneSystem, LanesWithin, gather, scatter,
};
use holonome_integrate::plan::{AdaptiveSteps, FixedSteps, Stepping};
use holonome_integrate::scales::{Kept, Scales, Vectors, first_pending};
use holonome_integrate::scheme::map::Facts;
use holonome_integrate::state::Cost;
use holonome_integrate::tableau::{Dense, LaggedEstimate};
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
pub use monitor::{LaneMonitor, MonitorBound};
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
    monitor: LaneMonitor,
    advance: Advance,
    /// Parameters of a step's kernel after those of the model: h and t₀, or [`march::parameters`].
    more: Vec<f64>,
}

enum Advance {
    /// Equal steps in a loop, with the length of the loop's state.
    Repeated(Box<dyn Kernel>, usize),
    /// Attempts in a loop.
    March { kernel: Box<dyn Kernel>, slots: Box<Slots>, within: Option<Box<SamplesWithin>> },
    /// Equal steps of a collocation method, with the kernel that settles them; length of what it
    /// maps to itself.
    Collocated { stages: Box<LaneStages>, settle: Box<dyn Kernel>, len: usize },
    /// Attempts of such a method, with the kernel that judges them.
    CollocatedMarch {
        stages: Box<LaneStages>,
        judge: Box<dyn Kernel>,
        slots: Box<Slots>,
        within: Option<Box<dyn Kernel>>,
    },
}

impl Advance {
    fn equal_steps(
        of: &StepSource,
        ingredients: &Ingredients,
        stages: Option<Box<LaneStages>>,
        lanes: usize,
    ) -> Advance {
        let tape = repeated_tape(ingredients, of.field, of.targets, of.settling().as_ref());
        let kernel = compile(&tape, lanes);
        match stages {
            Some(stages) => Advance::Collocated { stages, settle: kernel, len: tape.outputs.len() },
            None => Advance::Repeated(kernel, tape.states),
        }
    }

    /// Attempts; `None` if their ends are not formulas, or samples within them would be too long.
    fn attempts(
        of: &StepSource,
        ingredients: &Ingredients,
        (adaptive, control): (&AdaptiveSteps, StepControl),
        stages: Option<Box<LaneStages>>,
        lanes: usize,
    ) -> Option<Advance> {
        let StepSource { plan, vectors, targets, parameters, .. } = *of;
        let settling = &of.settling()?;
        let slots = Box::new(ingredients.slots(settling));
        let on_the_way = adaptive.samples.iter().any(|&t| t != plan.t0 && t != adaptive.t_end);
        let Some(stages) = stages else {
            let kernel = compile(&ingredients.march(settling, targets), lanes);
            let within = match on_the_way {
                true => Some(Box::new(SamplesWithin::new(
                    ingredients,
                    (settling, targets),
                    of.longest,
                    lanes,
                )?)),
                false => None,
            };
            return Some(Advance::March { kernel, slots, within });
        };
        let slots = Box::new(slots.with_memory(stages.memory_len()));
        let attempts =
            AttemptLoop { slots: &slots, control, vectors, parameters, settling, targets };
        let places = JudgedPlaces::in_turn(&slots);
        let judge = compile(&judge(&attempts, stages.collocation(), &places), lanes);
        // A state within such a step is the end of a shorter one.
        let within = on_the_way.then(|| compile(&ingredients.settled(settling, targets), lanes));
        Some(Advance::CollocatedMarch { judge, stages, slots, within })
    }
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
    /// Samples of attempts with these ingredients; `None` if the formula would be too long.
    fn new(
        ingredients: &Ingredients,
        (settling, targets): (&Settling, usize),
        longest: usize,
        lanes: usize,
    ) -> Option<SamplesWithin> {
        let (mut dense, mut evaluations) = (None, 0);
        if let Recorded::RungeKutta(tableau) = ingredients.scheme {
            let of = tableau.dense.as_ref()?;
            if ingredients.field.operations() * of.stages > longest {
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
    monitor: MonitorBound,
    advance: Aligned,
    within: Option<Aligned>,
    stages: Option<LaneStagesBound>,
}

impl CompiledLanes {
    /// True if the step is compiled for lanes: it is not too long, and all of it is formulas.
    pub fn suits(of: &StepSource) -> bool {
        let StepSource { plan, field, system, .. } = *of;
        let formula = system.formula();
        // A run by itself has the stages of a collocation method in lanes, which are as many.
        let small =
            plan.method.scheme.collocation().is_none_or(|collocation| {
                formula.operations() * collocation.stages <= LONGEST_STEP
            });
        small
            && CompiledStep::suits(plan, field, formula, of.longest)
            && CompiledStep::ends_in_formulas(plan, field)
            && (plan.fixed_step().is_some() || of.settling().is_some())
    }

    /// Compile the step of a plan for this many lanes. `None` if the step is not compiled as a
    /// whole, or the method's treatment is not one of formulas.
    pub fn new(of: &StepSource, lanes: usize) -> Option<CompiledLanes> {
        if !CompiledLanes::suits(of) {
            return None;
        }
        let StepSource { plan, field, vectors, system, parameters, .. } = *of;
        let taylor = CompiledStep::taylor(plan, field).ok()?;
        let collocation = plan.method.scheme.collocation();
        let scheme = match (&taylor, collocation) {
            (Some(taylor), _) => Recorded::Taylor(taylor),
            (None, Some(collocation)) => Recorded::Iterated(collocation),
            (None, None) => Recorded::RungeKutta(plan.method.scheme.runge_kutta()?),
        };
        let formula = system.formula();
        let stages = collocation
            .map(|of| Box::new(LaneStages::new(of, plan, (formula, parameters), vectors, lanes)));
        let ingredients = of.ingredients(scheme);
        let (advance, more) = match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let advance = Advance::equal_steps(of, &ingredients, stages, lanes);
                (advance, vec![fixed.h, plan.t0])
            }
            Stepping::Adaptive(adaptive) => {
                let control = scheme.facts().control?;
                let advance =
                    Advance::attempts(of, &ingredients, (adaptive, control), stages, lanes);
                (advance?, march::parameters(adaptive, control).to_vec())
            }
        };
        let alone = formula.tape(field.dimension, field.parameters);
        Some(CompiledLanes {
            lagged: ingredients.lagged(),
            evaluations: scheme.evaluations(),
            facts: scheme.facts(),
            lanes,
            dimension: field.dimension,
            groups: field.groups.len(),
            mend: Mend::of(plan, field),
            vectors: Arc::clone(vectors),
            kept: ingredients.kept,
            field: compile(&alone, lanes),
            monitor: LaneMonitor::new(field, vectors, lanes),
            advance,
            more,
        })
    }

    fn advancing(&self) -> &dyn Kernel {
        match &self.advance {
            Advance::Repeated(kernel, _) | Advance::March { kernel, .. } => kernel.as_ref(),
            Advance::Collocated { settle, .. } => settle.as_ref(),
            Advance::CollocatedMarch { judge, .. } => judge.as_ref(),
        }
    }

    fn stages(&self) -> Option<&LaneStages> {
        match &self.advance {
            Advance::Collocated { stages, .. } | Advance::CollocatedMarch { stages, .. } => {
                Some(stages)
            }
            Advance::Repeated(..) | Advance::March { .. } => None,
        }
    }

    /// Kernel of samples within steps.
    fn within_kernel(&self) -> Option<&dyn Kernel> {
        match &self.advance {
            Advance::March { within, .. } => within.as_ref().map(|within| within.kernel.as_ref()),
            Advance::CollocatedMarch { within, .. } => within.as_deref(),
            _ => None,
        }
    }

    fn samples_within(&self) -> Option<&SamplesWithin> {
        match &self.advance {
            Advance::March { within, .. } => within.as_deref(),
            _ => None,
        }
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> LaneBound {
        let all = [parameters, &self.more].concat();
        LaneBound {
            field: self.field.bind(parameters),
            monitor: self.monitor.bind(parameters),
            advance: self.advancing().bind(&all),
            within: self.within_kernel().map(|kernel| kernel.bind(&all)),
            stages: self.stages().map(|stages| stages.bind(parameters)),
        }
    }

    /// Set the parameters and targets of one lane to those of its trajectory.
    pub fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let all = [parameters, &self.more].concat();
        self.field.rebind(&mut bound.field, lane, parameters);
        self.monitor.rebind(&mut bound.monitor, lane, parameters, targets);
        self.advancing().rebind(&mut bound.advance, lane, &all);
        if let Some((kernel, bound)) = self.within_kernel().zip(bound.within.as_mut()) {
            kernel.rebind(bound, lane, &all);
        }
        if let Some((stages, bound)) = self.stages().zip(bound.stages.as_mut()) {
            stages.rebind(bound, lane, parameters);
        }
    }
}

impl CompiledLanes {
    /// Number of states of [`Ingredients::settled`].
    fn settled_states(&self) -> usize {
        self.dimension + self.kept.carried(self.vectors())
    }

    /// Weights of dense output, behind the numbers of samples in the lanes that are wanted.
    fn weigh(&self, wanted: &[bool], numbers: &mut [f64]) {
        let Some((within, dense)) =
            self.samples_within().and_then(|within| Some((within, within.dense?)))
        else {
            return;
        };
        let mut weights = vec![0.0; within.weights];
        for lane in (0..self.lanes).filter(|&lane| wanted[lane]) {
            let (h, passed) = self.passed(&within.at, lane, numbers);
            dense.weights(passed / h, &mut weights);
            scatter(&weights, self.lanes, lane, &mut numbers[within.at.count() * self.lanes..]);
        }
    }

    /// Length of the accepted attempt of a lane, and the time from its start to the sample.
    fn passed(&self, at: &Within, lane: usize, numbers: &[f64]) -> (f64, f64) {
        let slots = AdaptiveLaneSteps::slots(self);
        let [_, span, longest, shortest, ..] = self.more[..] else {
            unreachable!("the parameters of a loop")
        };
        let [start, h, rejections, sample] = [slots.elapsed, slots.h, slots.rejections, at.elapsed]
            .map(|slot| numbers[slot * self.lanes + lane]);
        let accepted = trial((span, shortest), start, h.min(longest), rejections);
        (accepted.length, sample - start)
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
                let of_samples = within
                    .as_ref()
                    .map_or(0, |of| of.kernel.outputs() * self.lanes + of.kernel.work_len());
                kernel.work_len().max(of_samples)
            }
            Advance::Collocated { stages, settle, len } => {
                stages.work_len() + (len + 2 * self.dimension) * self.lanes + settle.work_len()
            }
            Advance::CollocatedMarch { stages, judge, slots, within } => {
                let of_samples = within.as_ref().map_or(0, |kernel| {
                    (self.settled_states() + kernel.outputs()) * self.lanes + kernel.work_len()
                });
                let judged = slots.count() * self.lanes + stages.results_len() + judge.work_len();
                stages.work_len() + judged.max(of_samples)
            }
        };
        self.field.work_len().max(self.monitor.work_len(self.dimension)).max(advancing)
    }

    fn corrects(&self) -> bool {
        self.mend == Some(Mend::Corrects)
    }

    fn carried_evaluations(&self, carried: &[f64]) -> u64 {
        // The count is the last number.
        carried.last().filter(|_| self.stages().is_some()).map_or(0, |&count| count as u64)
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

    fn monitor(
        &self,
        bound: &LaneBound,
        at: LaneStates,
        deviations: &mut [f64],
        terms: &mut [f64],
        work: &mut [f64],
    ) {
        let terms = terms.split_at_mut(deviations.len());
        self.monitor.run(&bound.monitor, at, deviations, terms, work);
    }

    fn has_losses(&self) -> &[bool] {
        &self.monitor.has_losses
    }
}

impl EqualSteps for CompiledLanes {
    fn first_step_is_single(&self) -> bool {
        self.stages().is_some()
    }

    fn carried_len(&self) -> usize {
        self.kept.carried(self.vectors()) + self.stages().map_or(0, LaneStages::memory_len)
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
        let (carried, memory) = carried.split_at_mut(kept.carried(self.vectors()) * lanes);
        let mut one = vec![0.0; self.dimension];
        if let Some(stages) = self.stages() {
            let (mut field, mut own) = (vec![0.0; x.len()], vec![0.0; stages.memory_len()]);
            self.fields(bound, &vec![t0; lanes], x, &mut field, work);
            for lane in 0..lanes {
                gather(&field, lanes, lane, &mut one);
                stages.begin(&one, &mut own);
                scatter(&own, lanes, lane, memory);
            }
        }
        if !kept.sizes {
            return;
        }
        for lane in 0..lanes {
            gather(x, lanes, lane, &mut one);
            let scales = Scales::new(self.vectors(), kept, Vec::new(), &one);
            scatter(&scales.carried, lanes, lane, carried);
        }
        let Some(lagged) = self.lagged.filter(|_| kept.lagged) else { return };
        let pending = 2 * self.vectors().count() * lanes;
        let (mut field, mut after, mut t) =
            (vec![0.0; x.len()], vec![0.0; x.len()], vec![t0; lanes]);
        self.fields(bound, &t, x, &mut field, work);
        first_pending(lagged.next, &field, None, &mut carried[pending..]);
        // The first step is made once for its error estimate alone.
        let (mut x, mut rehearsed) = (x.to_vec(), carried.to_vec());
        let (mut innovation, mut missed) = (vec![0.0; lanes], vec![false; lanes]);
        let mut largest = vec![0.0; self.groups * lanes];
        let carry =
            LaneCarry { carried: &mut rehearsed, innovation: &mut innovation, missed: &mut missed };
        self.steps(bound, 0..1, &mut x, carry, &mut largest, work);
        t.fill(fixed.time(t0, 1));
        self.fields(bound, &t, &x, &mut after, work);
        first_pending(
            lagged.next,
            &field,
            Some((&after, &rehearsed[pending..])),
            &mut carried[pending..],
        );
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
        let len = match &self.advance {
            Advance::Repeated(_, len) => *len,
            Advance::Collocated { len, .. } => len + 2 * self.dimension,
            _ => unreachable!("an ensemble with equal steps"),
        };
        let scales = self.kept.carried(self.vectors()) * self.lanes;
        let (state, work) = work.split_at_mut(len * self.lanes);
        let (start, rest) = state.split_at_mut(x.len());
        let (monitored, rest) = rest.split_at_mut(largest.len());
        let (carried, rest) = rest.split_at_mut(scales);
        let (unsettled, number) =
            rest.split_at_mut(if self.mend.is_some() { self.lanes } else { 0 });
        start.copy_from_slice(x);
        monitored.fill(0.0);
        carried.copy_from_slice(&carry.carried[..scales]);
        unsettled.fill(0.0);
        number.fill(steps.start as f64);
        match &self.advance {
            Advance::Collocated { stages, settle, len } => {
                let memory = &mut carry.carried[scales..];
                self.collocated_steps(
                    (stages, settle.as_ref()),
                    bound,
                    steps,
                    (state, *len),
                    (memory, carry.missed),
                    work,
                );
            }
            _ => self.advancing().iterate(&bound.advance, state, steps.end - steps.start, work),
        }
        let (end, rest) = state.split_at(x.len());
        let (monitored, rest) = rest.split_at(largest.len());
        let (after, rest) = rest.split_at(scales);
        x.copy_from_slice(end);
        largest.copy_from_slice(monitored);
        carry.carried[..scales].copy_from_slice(after);
        match self.mend {
            Some(Mend::Corrects) => carry.innovation.copy_from_slice(&rest[..self.lanes]),
            Some(Mend::Projects { .. }) => {
                carry.innovation.copy_from_slice(&rest[..self.lanes]);
                for (missed, unsettled) in carry.missed.iter_mut().zip(rest) {
                    *missed |= !unsettled.is_finite();
                }
            }
            None => {}
        }
        self.monitor.monitoring.finish(largest, self.lanes);
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
        match &self.advance {
            Advance::March { slots, .. } | Advance::CollocatedMarch { slots, .. } => slots,
            _ => unreachable!("an adaptive ensemble"),
        }
    }

    fn attempts(&self, bound: &LaneBound, count: u64, state: &mut [f64], work: &mut [f64]) {
        match &self.advance {
            Advance::CollocatedMarch { stages, judge, slots, .. } => {
                self.collocated_attempts(
                    (stages, judge.as_ref(), slots),
                    bound,
                    count,
                    state,
                    work,
                );
            }
            _ => self.advancing().iterate(&bound.advance, state, count, work),
        }
    }

    fn begin_memory(&self, field: &[f64], memory: &mut [f64]) {
        if let Some(stages) = self.stages() {
            stages.begin(field, memory);
        }
    }

    fn finish(&self, largest: &mut [f64]) {
        self.monitor.monitoring.finish(largest, 1);
    }

    fn within_len(&self) -> usize {
        match &self.advance {
            Advance::CollocatedMarch { slots, .. } => Within::of(slots).count(),
            _ => self.samples_within().map_or(0, SamplesWithin::len),
        }
    }

    fn within(
        &self,
        bound: &LaneBound,
        wanted: &[bool],
        numbers: &mut [f64],
        found: &mut LanesWithin,
        work: &mut [f64],
    ) {
        let (Some(kernel), Some(bound_kernel)) = (self.within_kernel(), &bound.within) else {
            unreachable!("samples of these attempts are asked for")
        };
        let lanes = self.lanes;
        let at = Within::of(AdaptiveLaneSteps::slots(self));
        let times = at.elapsed * lanes..(at.elapsed + 1) * lanes;
        let (values, work) = work.split_at_mut(kernel.outputs() * lanes);
        match &self.advance {
            Advance::CollocatedMarch { stages, .. } => {
                let (states, work) = work.split_at_mut(self.settled_states() * lanes);
                let (inner, work) = work.split_at_mut(stages.work_len());
                self.parts_of_steps(
                    (stages, &at),
                    bound,
                    (wanted, numbers),
                    (states, found),
                    inner,
                );
                kernel.run(bound_kernel, &numbers[times], states, values, work);
            }
            _ => {
                self.weigh(wanted, numbers);
                // The time of a sample is one of the numbers.
                kernel.run(bound_kernel, &numbers[times], numbers, values, work);
            }
        }
        let (settled, unsettled) = values.split_at(found.out.len());
        found.out.copy_from_slice(settled);
        self.monitor.monitoring.finish(&mut found.out[self.dimension * lanes..], lanes);
        if let Some(Mend::Projects { .. }) = self.mend {
            for (missed, unsettled) in found.missed.iter_mut().zip(unsettled) {
                *missed |= !unsettled.is_finite();
            }
        }
    }

    fn interpolant_evaluations(&self) -> u64 {
        match &self.advance {
            // The field at the end of the step.
            Advance::CollocatedMarch { .. } => 1,
            _ => self.samples_within().map_or(0, |within| within.evaluations),
        }
    }
}
