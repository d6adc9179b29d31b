//! Step of a method compiled for several trajectories in lanes.

use super::collocation::{LaneStages, LaneStagesBound, Made, judge};
use super::map::{CompiledStep, repeated_tape};
use super::march::AttemptLoop;
use super::monitoring::{Monitoring, monitor_tape};
use super::vectors::StateVectors;
use super::whole_step::{Ingredients, Mend, Recorded, Settling};
use super::{UnrolledParts, march};
use crate::backend::compile;
use crate::policy::LONGEST_STEP;
use holonome_integrate::controller::slots::{Slots, Status, Within};
use holonome_integrate::controller::trial::trial;
use holonome_integrate::ensemble::{
    AdaptiveLaneSteps, EqualSteps, LaneCarry, LaneStates, LaneSystem, LanesWithin, gather, scatter,
};
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
    /// LaggedEstimate estimate of a Runge–Kutta method, if it has one.
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
    March { kernel: Box<dyn Kernel>, slots: Box<Slots>, within: Option<Box<SamplesWithin>> },
    /// Equal steps of a collocation method, with the kernel that settles them; length of what it maps to itself.
    Collocated { stages: Box<LaneStages>, settle: Box<dyn Kernel>, len: usize },
    /// Attempts of such a method, with the kernel that judges them.
    CollocatedMarch {
        stages: Box<LaneStages>,
        judge: Box<dyn Kernel>,
        slots: Box<Slots>,
        within: Option<Box<dyn Kernel>>,
    },
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
    stages: Option<LaneStagesBound>,
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
        let collocation = plan.method.scheme.collocation();
        let scheme = match (&taylor, collocation) {
            (Some(taylor), _) => Recorded::Taylor(taylor),
            (None, Some(collocation)) => Recorded::Iterated(collocation),
            (None, None) => Recorded::RungeKutta(plan.method.scheme.runge_kutta()?),
        };
        let formula = system.formula();
        let stages = collocation.map_or(1, |collocation| collocation.stages);
        let small = formula.operations() * stages <= LONGEST_STEP;
        if !small || !CompiledStep::suits(plan, field, formula) || !CompiledStep::ends_in_formulas(plan, field) {
            return None;
        }
        let stages = collocation.map(|of| Box::new(LaneStages::new(of, plan, (formula, parameters), vectors, lanes)));
        let (dimension, mend) = (field.dimension, Mend::of(plan, field));
        let kept = Mend::kept(mend, plan);
        let ingredients = Ingredients { scheme, dimension, parameters, field: formula, vectors, kept };
        let facts = scheme.facts();
        let (advance, more) = match &plan.stepping {
            Stepping::Fixed(fixed) => {
                let settling = CompiledStep::settling(plan, field, vectors, system.settling());
                let tape = repeated_tape(&ingredients, field, targets, settling.as_ref());
                let (kernel, more) = (compile(&tape, lanes), vec![fixed.h, plan.t0]);
                let advance = match stages {
                    Some(stages) => Advance::Collocated { stages, settle: kernel, len: tape.outputs.len() },
                    None => Advance::Repeated(kernel, tape.states),
                };
                (advance, more)
            }
            Stepping::Adaptive(adaptive) => {
                let control = facts.control?;
                let settling = CompiledStep::settling(plan, field, vectors, system.settling())?;
                let on_the_way = adaptive.samples.iter().any(|&t| t != plan.t0 && t != adaptive.t_end);
                let (slots, more) = (ingredients.slots(&settling), march::parameters(adaptive, control).to_vec());
                let advance = match stages {
                    Some(stages) => {
                        let slots = Box::new(slots.with_memory(stages.memory_len()));
                        let of =
                            AttemptLoop { slots: &slots, control, vectors, parameters, settling: &settling, targets };
                        let judge = compile(&judge(&of), lanes);
                        // A state within such a step is the end of a shorter one.
                        let within = on_the_way.then(|| compile(&ingredients.settled(&settling, targets), lanes));
                        Advance::CollocatedMarch { judge, stages, slots, within }
                    }
                    None => {
                        let kernel = compile(&ingredients.march(&settling, targets), lanes);
                        let within = match on_the_way {
                            true => Some(Box::new(SamplesWithin::new(&ingredients, &settling, targets, lanes)?)),
                            false => None,
                        };
                        Advance::March { kernel, slots: Box::new(slots), within }
                    }
                };
                (advance, more)
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
            Advance::Collocated { settle, .. } => settle.as_ref(),
            Advance::CollocatedMarch { judge, .. } => judge.as_ref(),
        }
    }

    fn stages(&self) -> Option<&LaneStages> {
        match &self.advance {
            Advance::Collocated { stages, .. } | Advance::CollocatedMarch { stages, .. } => Some(stages),
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
            watch: self.watch.bind(parameters),
            advance: self.advancing().bind(&all),
            within: self.within_kernel().map(|kernel| kernel.bind(&all)),
            stages: self.stages().map(|stages| stages.bind(parameters)),
        }
    }

    /// Set the parameters and targets of one lane to those of its trajectory.
    pub fn rebind(&self, bound: &mut LaneBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let all = [parameters, &self.more].concat();
        self.field.rebind(&mut bound.field, lane, parameters);
        self.watch.rebind(&mut bound.watch, lane, parameters, targets);
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
        let Some((within, dense)) = self.samples_within().and_then(|within| Some((within, within.dense?))) else {
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
        let [_, t_end, longest, shortest, _] = self.more[..] else { unreachable!("the parameters of a loop") };
        let [t, h, rejections, time] =
            [slots.t, slots.h, slots.rejections, at.t].map(|slot| numbers[slot * self.lanes + lane]);
        let tried = trial((t_end, shortest), t, h.min(longest), rejections as u32);
        let Some((h, _)) = tried else { unreachable!("an attempt that was accepted") };
        (h, time - t)
    }

    /// States within steps of a collocation method, as ends of shorter steps, and the scales after the whole ones.
    fn parts_of_steps(
        &self,
        (stages, at): (&LaneStages, &Within),
        bound: &LaneBound,
        (wanted, numbers): (&[bool], &[f64]),
        (states, found): (&mut [f64], &mut LanesWithin),
        work: &mut [f64],
    ) {
        let (lanes, slots) = (self.lanes, AdaptiveLaneSteps::slots(self));
        let Some(bound) = &bound.stages else { unreachable!("a collocation method") };
        let rows = |slots: &Range<usize>| slots.start * lanes..slots.end * lanes;
        let memory = &numbers[rows(&at.memory)];
        let [lengths, _] = stages.lengths_and_counts();
        let mut of = stages.enter(memory, work);
        stages.step_back(&mut of);
        let mut made = vec![Made::Idle; lanes];
        for lane in (0..lanes).filter(|&lane| wanted[lane]) {
            let (h, passed) = self.passed(at, lane, numbers);
            made[lane] = Made::Yes;
            let t = numbers[slots.t * lanes + lane];
            stages.set(lane, (t, passed / h * h, memory[lengths.start + lane]), &mut of);
        }
        stages.make(bound, &numbers[rows(&slots.x)], &mut of, &mut made, &mut found.evaluations);
        let n = self.dimension * lanes;
        states[..n].copy_from_slice(&stages.results(&of)[..n]);
        states[n..].copy_from_slice(&numbers[rows(&at.carried)]);
        for (missed, made) in found.missed.iter_mut().zip(&made) {
            *missed = *made == Made::No;
        }
    }

    /// Equal steps of a collocation method. `state` is that of the loop, of length `len` in every lane, and room for x₁ and
    /// the estimate of its error.
    fn collocated_steps(
        &self,
        (stages, settle): (&LaneStages, &dyn Kernel),
        bound: &LaneBound,
        steps: Range<u64>,
        (state, len): (&mut [f64], usize),
        (memory, missed): (&mut [f64], &mut [bool]),
        work: &mut [f64],
    ) {
        let (lanes, n) = (self.lanes, self.dimension * self.lanes);
        let Some(bound_stages) = &bound.stages else { unreachable!("a collocation method") };
        let [h, t0] = self.more[..] else { unreachable!("the parameters of equal steps") };
        let (work, own) = work.split_at_mut(stages.work_len());
        let mut numbers = stages.enter(memory, work);
        let [lengths, counts] = stages.lengths_and_counts();
        let mut made = vec![Made::Yes; lanes];
        for step in steps {
            let t = (step as f64).mul_add(h, t0);
            for lane in 0..lanes {
                made[lane] = if missed[lane] { Made::Idle } else { Made::Yes };
                stages.set(lane, (t, h, memory[lengths.start + lane]), &mut numbers);
                // A first step takes the field at its start.
                memory[counts.start + lane] += f64::from(u8::from(memory[lengths.start + lane] == 0.0));
            }
            stages.make(bound_stages, &state[..n], &mut numbers, &mut made, &mut memory[counts.clone()]);
            for (missed, made) in missed.iter_mut().zip(&made) {
                *missed = *made != Made::Yes;
            }
            state[len * lanes..].copy_from_slice(stages.results(&numbers));
            for lane in (0..lanes).filter(|&lane| missed[lane]) {
                // The lane waits at a state that is sound.
                for i in 0..self.dimension {
                    state[(len + i) * lanes + lane] = state[i * lanes + lane];
                    state[(len + self.dimension + i) * lanes + lane] = 0.0;
                }
            }
            stages.accept(&mut numbers, |lane| made[lane] == Made::Yes);
            memory[lengths.clone()].fill(h);
            settle.iterate(&bound.advance, state, 1, own);
        }
        stages.leave(&numbers, memory);
    }

    /// Attempts of a collocation method in every lane, until one of them ends.
    fn collocated_attempts(
        &self,
        (stages, judge, slots): (&LaneStages, &dyn Kernel, &Slots),
        bound: &LaneBound,
        count: u64,
        state: &mut [f64],
        work: &mut [f64],
    ) {
        let (lanes, n) = (self.lanes, self.dimension);
        let Some(bound_stages) = &bound.stages else { unreachable!("a collocation method") };
        let [_, t_end, longest, shortest, _] = self.more[..] else { unreachable!("the parameters of a loop") };
        let (judged, work) = work.split_at_mut((slots.count() + 2 * n) * lanes);
        let (work, own) = work.split_at_mut(stages.work_len());
        let rows = |slots: &Range<usize>| slots.start * lanes..slots.end * lanes;
        judged[..state.len()].copy_from_slice(state);
        let memory = &mut state[rows(&slots.memory)];
        let mut numbers = stages.enter(memory, work);
        let [lengths, counts] = stages.lengths_and_counts();
        let (mut made, mut steps, mut tried) = (vec![Made::Idle; lanes], vec![0.0; lanes], vec![0.0; lanes]);
        for _ in 0..count {
            for lane in 0..lanes {
                made[lane] = Made::Idle;
                let [t, h, rejections, pause, status] =
                    [slots.t, slots.h, slots.rejections, slots.pause, slots.status].map(|k| judged[k * lanes + lane]);
                if Status::of(status) != Status::Going {
                    continue;
                }
                let trial = trial((t_end, shortest), t, h.min(longest), rejections as u32);
                let Some((h, _)) = trial.filter(|&(_, end)| end < pause) else {
                    judged[slots.status * lanes + lane] = Status::Held.number();
                    continue;
                };
                let length = memory[lengths.start + lane];
                (made[lane], tried[lane]) = (Made::Yes, h);
                memory[counts.start + lane] += f64::from(u8::from(length == 0.0));
                stages.set(lane, (t, h, length), &mut numbers);
            }
            let x = rows(&slots.x);
            stages.make(bound_stages, &judged[x.clone()], &mut numbers, &mut made, &mut memory[counts.clone()]);
            let (before, attempted) = judged.split_at_mut(slots.count() * lanes);
            attempted.copy_from_slice(stages.results(&numbers));
            for (lane, made) in made.iter().enumerate().filter(|(_, made)| **made != Made::Yes) {
                // Nothing was made, or nothing that could be accepted.
                for i in 0..n {
                    attempted[i * lanes + lane] = before[x.start + i * lanes + lane];
                    attempted[(n + i) * lanes + lane] = f64::INFINITY;
                }
                if *made == Made::Moves {
                    before[slots.status * lanes + lane] = Status::Held.number();
                }
            }
            steps.copy_from_slice(&judged[slots.steps * lanes..][..lanes]);
            judge.iterate(&bound.advance, judged, 1, own);
            let accepted = |lane: usize| judged[slots.steps * lanes + lane] != steps[lane];
            stages.accept(&mut numbers, accepted);
            for lane in (0..lanes).filter(|&lane| accepted(lane)) {
                memory[lengths.start + lane] = tried[lane];
            }
            let ended = |status: f64| !matches!(Status::of(status), Status::Going | Status::Idle);
            if judged[slots.status * lanes..][..lanes].iter().any(|&status| ended(status)) {
                break;
            }
        }
        stages.leave(&numbers, memory);
        let changed = slots.changed() * lanes;
        state[..changed].copy_from_slice(&judged[..changed]);
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
            Advance::Collocated { stages, settle, len } => {
                stages.work_len() + (len + 2 * self.dimension) * self.lanes + settle.work_len()
            }
            Advance::CollocatedMarch { stages, judge, slots, within } => {
                let of_samples = within
                    .as_ref()
                    .map_or(0, |kernel| (self.settled_states() + kernel.outputs()) * self.lanes + kernel.work_len());
                let judged = (slots.count() + 2 * self.dimension) * self.lanes + judge.work_len();
                stages.work_len() + judged.max(of_samples)
            }
        };
        self.field.work_len().max(self.watch.work_len(self.dimension)).max(advancing)
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

    fn monitor(&self, bound: &LaneBound, at: LaneStates, deviations: &mut [f64], terms: &mut [f64], work: &mut [f64]) {
        self.watch.run(&bound.watch, at, deviations, terms, work);
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
        let len = match &self.advance {
            Advance::Repeated(_, len) => *len,
            Advance::Collocated { len, .. } => len + 2 * self.dimension,
            _ => unreachable!("an ensemble with equal steps"),
        };
        let scales = self.kept.carried(self.vectors()) * self.lanes;
        let (state, work) = work.split_at_mut(len * self.lanes);
        let (start, rest) = state.split_at_mut(x.len());
        let (watched, rest) = rest.split_at_mut(largest.len());
        let (carried, rest) = rest.split_at_mut(scales);
        let (unsettled, number) = rest.split_at_mut(if self.mend.is_some() { self.lanes } else { 0 });
        start.copy_from_slice(x);
        watched.fill(0.0);
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
        let (watched, rest) = rest.split_at(largest.len());
        let (after, rest) = rest.split_at(scales);
        x.copy_from_slice(end);
        largest.copy_from_slice(watched);
        carry.carried[..scales].copy_from_slice(after);
        match self.mend {
            Some(Mend::Corrects) => carry.innovation.copy_from_slice(&rest[..self.lanes]),
            Some(Mend::Projects { .. }) => {
                carry.innovation.fill(0.0);
                for (missed, unsettled) in carry.missed.iter_mut().zip(rest) {
                    *missed |= *unsettled != 0.0;
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
        match &self.advance {
            Advance::March { slots, .. } | Advance::CollocatedMarch { slots, .. } => slots,
            _ => unreachable!("an adaptive ensemble"),
        }
    }

    fn attempts(&self, bound: &LaneBound, count: u64, state: &mut [f64], work: &mut [f64]) {
        match &self.advance {
            Advance::CollocatedMarch { stages, judge, slots, .. } => {
                self.collocated_attempts((stages, judge.as_ref(), slots), bound, count, state, work);
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
        self.watch.monitoring.finish(largest, 1);
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
        let times = at.t * lanes..(at.t + 1) * lanes;
        let (values, work) = work.split_at_mut(kernel.outputs() * lanes);
        match &self.advance {
            Advance::CollocatedMarch { stages, .. } => {
                let (states, work) = work.split_at_mut(self.settled_states() * lanes);
                let (inner, work) = work.split_at_mut(stages.work_len());
                self.parts_of_steps((stages, &at), bound, (wanted, numbers), (states, found), inner);
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
        self.watch.monitoring.finish(&mut found.out[self.dimension * lanes..], lanes);
        if let Some(Mend::Projects { .. }) = self.mend {
            for (missed, unsettled) in found.missed.iter_mut().zip(unsettled) {
                *missed |= *unsettled != 0.0;
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
