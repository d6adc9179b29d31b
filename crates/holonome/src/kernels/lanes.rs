//! Step of a method compiled for several trajectories in lanes.

mod collocated;
mod monitor;
mod watch;

use super::collocation::{JudgedPlaces, LaneStages, LaneStagesBound, judge};
use super::loops::repeated_tape;
use super::map::{CompiledStep, StepSource};
use super::march;
use super::march::{AttemptLoop, SampleTapes};
use super::mending::Mend;
use super::settling::Settling;
use super::taylor::Taylor;
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
use holonome_model::graph::tape::{Instruction, Tape};
pub use monitor::{LaneMonitor, MonitorBound};
use std::ops::Range;
use std::sync::Arc;
pub use watch::{LaneWatch, WatchBound};

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
    watch: LaneWatch,
    advance: Advance,
    /// Parameters of a step's kernel after those of the model: h and t₀, or [`march::parameters`].
    more: Vec<f64>,
}

/// Map of the state of a loop to itself, in every lane.
struct Advance {
    /// Kernel of whole steps or attempts. Of a collocation method it ends a step: it settles or
    /// judges the results of the stages, which follow the state.
    kernel: Box<dyn Kernel>,
    stages: Option<Box<LaneStages>>,
    /// Length of the state, and with such results.
    len: usize,
    states: usize,
    /// Places in the state of a loop of attempts; `None` if the steps are equal.
    slots: Option<Box<Slots>>,
    within: Option<Box<SamplesWithin>>,
}

impl Advance {
    fn equal_steps(
        of: &StepSource,
        ingredients: &Ingredients,
        stages: Option<Box<LaneStages>>,
        lanes: usize,
    ) -> Advance {
        let tape = repeated_tape(ingredients, of.field, of.targets, of.settling().as_ref());
        let (len, states) = (tape.outputs.len(), tape.states);
        Advance { kernel: compile(&tape, lanes), stages, len, states, slots: None, within: None }
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
        let memory = stages.as_ref().map_or(0, |stages| stages.memory_len());
        let slots = Box::new(ingredients.slots(settling).with_memory(memory));
        let tape = match &stages {
            None => ingredients.march(settling, targets),
            Some(stages) => {
                let slots = &slots;
                let attempts =
                    AttemptLoop { slots, control, vectors, parameters, settling, targets };
                judge(&attempts, stages.collocation(), &JudgedPlaces::in_turn(slots))
            }
        };
        let on_the_way = adaptive.samples.iter().any(|&t| t != plan.t0 && t != adaptive.t_end);
        let within = match on_the_way {
            true => Some(Box::new(SamplesWithin::new(of, ingredients, (settling, &slots), lanes)?)),
            false => None,
        };
        let (kernel, len) = (compile(&tape, lanes), slots.count());
        Some(Advance { kernel, stages, len, states: tape.states, slots: Some(slots), within })
    }
}

/// Number of lanes whose weights of dense output are computed together.
const WEIGHED: usize = 8;

/// Samples within accepted attempts.
struct SamplesWithin {
    /// Interpolant of an attempt; `None` of a collocation method, whose samples are made by a part of
    /// a step.
    interpolant: Option<Box<dyn Kernel>>,
    /// Sample of an interpolant ([`Ingredients::within`]); of a collocation method
    /// [`Ingredients::settled`].
    kernel: Box<dyn Kernel>,
    /// Operations of both.
    operations: [usize; 2],
    at: Within,
    /// Slots that are read.
    reads: Vec<usize>,
    /// Number of weights of dense output behind these.
    weights: usize,
    dense: Option<&'static Dense>,
    evaluations: u64,
}

impl SamplesWithin {
    /// Samples of attempts with these ingredients; `None` if the formula would be too long.
    fn new(
        of: &StepSource,
        ingredients: &Ingredients,
        (settling, slots): (&Settling, &Slots),
        lanes: usize,
    ) -> Option<SamplesWithin> {
        let (mut dense, mut evaluations) = (None, 0);
        let (interpolant, sample) = match ingredients.scheme {
            // A state within such a step is the end of a shorter one, which takes the field at the
            // end of the step.
            Recorded::Iterated(_) => {
                evaluations = 1;
                (None, ingredients.settled(settling, of.targets))
            }
            Recorded::Taylor(_) => split(ingredients.within(settling, of.targets)),
            Recorded::RungeKutta(tableau) => {
                let output = tableau.dense.as_ref()?;
                if ingredients.field.operations() * output.stages > of.longest {
                    return None;
                }
                evaluations = (output.stages - tableau.stages) as u64;
                dense = Some(output);
                split(ingredients.within(settling, of.targets))
            }
        };
        let reads = match &interpolant {
            None => (0..slots.count()).collect(),
            Some(interpolant) => {
                let instructions = interpolant.instructions.iter().chain(&sample.instructions);
                let states = instructions.filter_map(|instruction| match instruction {
                    Instruction::State(k) => Some(*k as usize).filter(|&k| k < slots.count()),
                    _ => None,
                });
                // And the time at the start of the attempt, from which weights follow.
                let mut reads: Vec<usize> = states.chain([slots.elapsed]).collect();
                reads.sort_unstable();
                reads.dedup();
                reads
            }
        };
        Some(SamplesWithin {
            reads,
            operations: [interpolant.as_ref().map_or(0, Tape::operations), sample.operations()],
            interpolant: interpolant.map(|tape| compile(&tape, lanes)),
            kernel: compile(&sample, lanes),
            at: Within::of(slots),
            weights: ingredients.dense_weights(),
            dense,
            evaluations,
        })
    }

    /// Place of the first number of an attempt's interpolant.
    fn first(&self) -> usize {
        self.at.count() + self.weights
    }

    fn len(&self) -> usize {
        self.first() + self.interpolant.as_ref().map_or(0, |interpolant| interpolant.outputs())
    }
}

/// Tapes of the interpolant and of its samples.
fn split(SampleTapes { interpolant, sample }: SampleTapes) -> (Option<Tape>, Tape) {
    (Some(interpolant), sample)
}

/// Lanes bound to their trajectories.
pub struct LaneBound {
    field: Aligned,
    monitor: MonitorBound,
    watch: WatchBound,
    advance: Aligned,
    within: Option<Aligned>,
    interpolant: Option<Aligned>,
    stages: Option<LaneStagesBound>,
    /// Parameters of the step's kernel for the lane that was bound last.
    all: Vec<f64>,
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
        if taylor.as_ref().is_some_and(Taylor::is_long) {
            return None;
        }
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
            watch: LaneWatch::new(field, lanes),
            advance,
            more,
        })
    }

    fn stages(&self) -> Option<&LaneStages> {
        self.advance.stages.as_deref()
    }

    /// Kernel of the interpolant of an attempt.
    fn interpolant(&self) -> Option<&dyn Kernel> {
        self.advance.within.as_ref()?.interpolant.as_deref()
    }

    /// Weights of dense output, behind the numbers of samples whose interpolants are known.
    fn weigh(&self, within: &SamplesWithin, numbers: &mut [f64]) {
        let Some(dense) = within.dense else { return };
        let slots = AdaptiveLaneSteps::slots(self);
        let mut theta = [0.0; WEIGHED];
        for first in (0..self.lanes).step_by(WEIGHED) {
            for lane in first..self.lanes.min(first + WEIGHED) {
                let [start, sample, h] = [slots.elapsed, within.at.elapsed, within.first()]
                    .map(|slot| numbers[slot * self.lanes + lane]);
                theta[lane - first] = (sample - start) / h;
            }
            let weights = &mut numbers[within.at.count() * self.lanes + first..];
            dense.weights_in_lanes(&theta[..WEIGHED.min(self.lanes - first)], self.lanes, weights);
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

    fn bind(&self, parameters: &[f64]) -> LaneBound {
        let all = [parameters, &self.more].concat();
        LaneBound {
            field: self.field.bind(parameters),
            monitor: self.monitor.bind(parameters),
            watch: self.watch.bind(parameters),
            advance: self.advance.kernel.bind(&all),
            within: self.advance.within.as_ref().map(|within| within.kernel.bind(&all)),
            interpolant: self.interpolant().map(|kernel| kernel.bind(&all)),
            stages: self.stages().map(|stages| stages.bind(parameters)),
            all,
        }
    }

    fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let all = &mut bound.all;
        all[..parameters.len()].copy_from_slice(parameters);
        self.field.rebind(&mut bound.field, lane, parameters);
        self.monitor.rebind(&mut bound.monitor, lane, parameters, targets);
        self.watch.rebind(&mut bound.watch, lane, parameters);
        self.advance.kernel.rebind(&mut bound.advance, lane, all);
        if let Some((within, bound)) = self.advance.within.as_ref().zip(bound.within.as_mut()) {
            within.kernel.rebind(bound, lane, all);
        }
        if let Some((kernel, bound)) = self.interpolant().zip(bound.interpolant.as_mut()) {
            kernel.rebind(bound, lane, all);
        }
        if let Some((stages, bound)) = self.stages().zip(bound.stages.as_mut()) {
            stages.rebind(bound, lane, parameters);
        }
    }

    fn equal(&self) -> Option<&dyn EqualSteps<Bound = LaneBound>> {
        self.advance.slots.is_none().then_some(self)
    }

    fn adaptive(&self) -> Option<&dyn AdaptiveLaneSteps<Bound = LaneBound>> {
        self.advance.slots.is_some().then_some(self)
    }

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
        let Advance { kernel, states, within, .. } = &self.advance;
        let of_stages = self.stages().map_or(0, LaneStages::work_len);
        let advancing = states * self.lanes + kernel.work_len();
        let of_samples = within.as_ref().map_or(0, |of| {
            let states = self.dimension + self.kept.carried(self.vectors());
            let len = |kernel: &dyn Kernel| kernel.outputs() * self.lanes + kernel.work_len();
            let interpolating = of.interpolant.as_deref().map_or(0, len);
            (states * self.lanes + len(&*of.kernel)).max(interpolating)
        });
        let advancing = of_stages + advancing.max(of_samples);
        let looking =
            self.monitor.work_len(self.dimension).max(self.watch.work_len(self.dimension));
        self.field.work_len().max(looking).max(advancing)
    }

    fn corrects(&self) -> bool {
        self.mend == Some(Mend::Corrects)
    }

    fn counts_evaluations(&self) -> bool {
        self.stages().is_some()
    }

    fn watched(&self) -> usize {
        self.watch.count()
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
        let mut scales = Scales::default();
        for lane in 0..lanes {
            gather(x, lanes, lane, &mut one);
            scales.restart(self.vectors(), kept, &one);
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
        let carry = LaneCarry {
            carried: &mut rehearsed,
            innovation: &mut innovation,
            sides: &mut vec![0.0; self.watched() * lanes],
            missed: &mut missed,
        };
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
        let Advance { kernel, len, states, .. } = &self.advance;
        let scales = self.kept.carried(self.vectors()) * self.lanes;
        let (state, work) = work.split_at_mut(states * self.lanes);
        let (start, rest) = state[..len * self.lanes].split_at_mut(x.len());
        let (monitored, rest) = rest.split_at_mut(largest.len());
        let (sides, rest) = rest.split_at_mut(carry.sides.len());
        let (carried, rest) = rest.split_at_mut(scales);
        let (unsettled, number) =
            rest.split_at_mut(if self.mend.is_some() { self.lanes } else { 0 });
        start.copy_from_slice(x);
        monitored.fill(0.0);
        sides.copy_from_slice(carry.sides);
        carried.copy_from_slice(&carry.carried[..scales]);
        unsettled.fill(0.0);
        number.fill(steps.start as f64);
        match self.stages() {
            Some(stages) => {
                let memory = &mut carry.carried[scales..];
                self.collocated((stages, bound), steps, (state, memory), carry.missed, work);
            }
            None => kernel.iterate(&bound.advance, state, steps.end - steps.start, work),
        }
        let (end, rest) = state[..len * self.lanes].split_at(x.len());
        let (monitored, rest) = rest.split_at(largest.len());
        let (sides, rest) = rest.split_at(carry.sides.len());
        let (after, rest) = rest.split_at(scales);
        x.copy_from_slice(end);
        largest.copy_from_slice(monitored);
        carry.sides.copy_from_slice(sides);
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

    fn look(&self, bound: &LaneBound, at: (f64, f64, &[f64]), sides: &mut [f64], work: &mut [f64]) {
        self.watch.keep(&bound.watch, at, sides, work);
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
        self.advance.slots.as_ref().expect("steps of an adaptive ensemble")
    }

    fn attempts(&self, bound: &LaneBound, count: u64, state: &mut [f64], work: &mut [f64]) {
        let Some(stages) = self.stages() else {
            return self.advance.kernel.iterate(&bound.advance, state, count, work);
        };
        let (slots, lanes) = (AdaptiveLaneSteps::slots(self), self.lanes);
        let (judged, work) = work.split_at_mut(self.advance.states * lanes);
        judged[..state.len()].copy_from_slice(state);
        let memory = &mut state[slots.memory.start * lanes..slots.memory.end * lanes];
        self.collocated((stages, bound), 0..count, (judged, memory), &mut [], work);
        let changed = slots.changed() * lanes;
        state[..changed].copy_from_slice(&judged[..changed]);
    }

    fn begin_memory(&self, field: &[f64], memory: &mut [f64]) {
        if let Some(stages) = self.stages() {
            stages.begin(field, memory);
        }
    }

    fn finish(&self, largest: &mut [f64]) {
        self.monitor.monitoring.finish(largest, 1);
    }

    fn within_operations(&self) -> [usize; 2] {
        self.advance.within.as_ref().map_or([0; 2], |within| within.operations)
    }

    fn within_reads(&self) -> &[usize] {
        self.advance.within.as_ref().map_or(&[], |within| &within.reads)
    }

    fn within_len(&self) -> usize {
        self.advance.within.as_ref().map_or(0, |within| within.len())
    }

    fn within(
        &self,
        bound: &LaneBound,
        (wanted, is_other): (&[bool], bool),
        numbers: &mut [f64],
        found: &mut LanesWithin,
        work: &mut [f64],
    ) {
        let (Some(within), Some(bound_kernel)) = (&self.advance.within, &bound.within) else {
            unreachable!("samples of these attempts are asked for")
        };
        let (lanes, SamplesWithin { kernel, at, .. }) = (self.lanes, &**within);
        let times = at.elapsed * lanes..(at.elapsed + 1) * lanes;
        if let Some((kernel, bound)) = self.interpolant().zip(bound.interpolant.as_ref())
            && is_other
        {
            let (of_attempt, interpolant) = numbers.split_at_mut(within.first() * lanes);
            // The time is not read, so any array of its length will do.
            kernel.run(bound, &of_attempt[times.clone()], of_attempt, interpolant, work);
        }
        let (values, work) = work.split_at_mut(kernel.outputs() * lanes);
        match self.stages() {
            Some(stages) => {
                let states = self.dimension + self.kept.carried(self.vectors());
                let (states, work) = work.split_at_mut(states * lanes);
                let (inner, work) = work.split_at_mut(stages.work_len());
                let of = (wanted, &*numbers);
                self.parts_of_steps((stages, at), bound, of, (states, found), inner);
                kernel.run(bound_kernel, &numbers[times], states, values, work);
            }
            None => {
                self.weigh(within, numbers);
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
        self.advance.within.as_ref().map_or(0, |within| within.evaluations)
    }
}
