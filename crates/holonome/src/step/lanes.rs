//! Equal steps of a program in lanes, for an ensemble: those of [`Many`], and single steps where a
//! lane misses.

use super::many::{Lanes, Many};
use super::program::{self, Start};
use super::unrolled::Unrolled;
use crate::kernels::{LaneMonitor, LaneWatch, MonitorBound, Parametric, StateVectors, WatchBound};
use holonome_integrate::ensemble::{
    EqualSteps, LaneAlone, LaneCarry, LaneStates, LaneSystem, gather, scatter,
};
use holonome_integrate::plan::{FixedSteps, Plan};
use holonome_integrate::scales::{Kept, Vectors};
use holonome_integrate::scheme::map::{
    Between, Blocks, Carry, Outputs, StepFrom, StepMap, Workspace,
};
use holonome_integrate::scheme::repairs::{BlockRepairs, NoResult, StepLoop};
use holonome_integrate::state::Cost;
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;

type LoweredProgram = program::LoweredProgram<Unrolled>;

/// Steps of a method's program in lanes.
pub struct ProgramLanes {
    /// Program for single steps.
    program: LoweredProgram,
    many: Many,
    monitor: LaneMonitor,
    watch: LaneWatch,
    vectors: Arc<StateVectors>,
    plan: Plan,
    /// Number of groups of invariants, and of values that steps monitor besides.
    groups: [usize; 2],
    /// For every one of these, true if its loss is known.
    has_losses: Vec<bool>,
    /// Number of parameters of the model.
    own: usize,
}

/// Lanes bound to their trajectories.
pub struct ProgramBound {
    many: Many,
    monitor: MonitorBound,
    watch: WatchBound,
    /// Parameters of every lane, as the loop takes them.
    parameters: Vec<Vec<f64>>,
    /// Program for single steps, and the lane whose parameters it has.
    single: LoweredProgram,
    single_of: Option<usize>,
    repairs: BlockRepairs,
    /// Scratch of single steps, and the numbers that a lane carries.
    work: Vec<f64>,
    carried: Vec<f64>,
}

impl ProgramLanes {
    /// Lanes for runs of `plan`; `None` if the program has no loop. `start` is that of any
    /// trajectory.
    pub fn new(
        program: &LoweredProgram,
        plan: &Plan,
        (field, vectors): (&Field, &Arc<StateVectors>),
        start: &Start,
        lanes: usize,
    ) -> Option<ProgramLanes> {
        let h = plan.fixed_step()?;
        let all = program.all_parameters(plan, h, start);
        let monitor = LaneMonitor::new(field, vectors, lanes);
        let mut has_losses = monitor.has_losses.clone();
        has_losses.resize(field.groups.len() + program.monitored_count(), false);
        let mut single = program.clone();
        single.rebind_for(plan, start);
        Some(ProgramLanes {
            many: program.repeated.as_ref()?.in_lanes(lanes, &all),
            program: single,
            monitor,
            watch: LaneWatch::new(field, lanes),
            vectors: Arc::clone(vectors),
            plan: plan.clone(),
            groups: [field.groups.len(), program.monitored_count()],
            has_losses,
            own: start.parameters.len(),
        })
    }

    fn start<'p>(&self, parameters: &'p [f64]) -> Start<'p> {
        let (parameters, targets) = parameters.split_at(self.own);
        Start { parameters, targets, x: &[] }
    }

    /// Parameters of the loop.
    fn all(&self, parameters: &[f64]) -> Vec<f64> {
        let h = self.plan.fixed_step().unwrap_or(f64::NAN);
        self.program.all_parameters(&self.plan, h, &self.start(parameters))
    }

    /// Bind the program for single steps to a lane.
    fn single_for(&self, bound: &mut ProgramBound, lane: usize) {
        if bound.single_of != Some(lane) {
            bound.single.bind_lane(&bound.many, lane, self.own, &bound.parameters[lane]);
            bound.single_of = Some(lane);
        }
    }

    /// Length, over all lanes, of the numbers that the loop carries; single steps carry more.
    fn looped(&self) -> usize {
        self.many.rows().carried.len() * self.many.lanes()
    }
}

/// Lengths of the steps before and after a state.
fn around(fixed: &FixedSteps, step: u64) -> (f64, f64) {
    (if step == 0 { 0.0 } else { fixed.h }, if step == fixed.steps { 0.0 } else { fixed.h })
}

impl LaneSystem for ProgramLanes {
    type Bound = ProgramBound;

    fn bind(&self, parameters: &[f64]) -> ProgramBound {
        let single = self.program.rebound(&parameters[..self.own]);
        ProgramBound {
            many: self.many.clone(),
            monitor: self.monitor.bind(parameters),
            watch: self.watch.bind(parameters),
            parameters: vec![self.all(parameters); self.many.lanes()],
            work: vec![0.0; single.work_len()],
            carried: vec![0.0; single.memory_len()],
            single,
            single_of: None,
            repairs: BlockRepairs::default(),
        }
    }

    fn rebind(&self, bound: &mut ProgramBound, lane: usize, parameters: &[f64], targets: &[f64]) {
        let (h, start) = (self.plan.fixed_step().unwrap_or(f64::NAN), self.start(parameters));
        self.program.put_all_parameters((&self.plan, h), &start, &mut bound.parameters[lane]);
        bound.many.rebind(lane, &bound.parameters[lane]);
        self.monitor.rebind(&mut bound.monitor, lane, parameters, targets);
        self.watch.rebind(&mut bound.watch, lane, parameters);
        if bound.single_of == Some(lane) {
            bound.single_of = None;
        }
    }

    fn equal(&self) -> Option<&dyn EqualSteps<Bound = ProgramBound>> {
        Some(self)
    }

    fn least_followed(&self) -> usize {
        // As in a run of its own.
        3
    }

    fn lanes(&self) -> usize {
        self.many.lanes()
    }

    fn dim(&self) -> usize {
        self.vectors.vectors.dim()
    }

    fn groups(&self) -> usize {
        self.groups.iter().sum()
    }

    fn work_len(&self) -> usize {
        let looking = self.monitor.work_len(self.dim()).max(self.watch.work_len(self.dim()));
        self.many.work_len().max(looking)
    }

    fn count_treatments(&self, _: u64, _: &mut Cost) -> bool {
        false
    }

    fn corrects(&self) -> bool {
        false
    }

    fn watched(&self) -> usize {
        self.watch.count()
    }

    fn vectors(&self) -> &Vectors {
        &self.vectors.vectors
    }

    fn kept(&self) -> Kept {
        Kept::default()
    }

    fn has_losses(&self) -> &[bool] {
        &self.has_losses
    }

    fn monitor(
        &self,
        bound: &ProgramBound,
        at: LaneStates,
        deviations: &mut [f64],
        terms: &mut [f64],
        work: &mut [f64],
    ) {
        let (lanes, [groups, own]) = (self.many.lanes(), self.groups);
        let (of_groups, own_ones) = deviations.split_at_mut(groups * lanes);
        terms.fill(0.0);
        let (scales, contents) = terms.split_at_mut((groups + own) * lanes);
        let known = (&mut scales[..groups * lanes], &mut contents[..groups * lanes]);
        self.monitor.run(&bound.monitor, at, of_groups, known, work);
        if own > 0 {
            let (mut carried, mut found) = (vec![0.0; bound.carried.len()], vec![0.0; own]);
            for lane in 0..lanes {
                gather(at.carried, lanes, lane, &mut carried);
                self.program.deviations(&carried, &mut found);
                scatter(&found, lanes, lane, own_ones);
            }
        }
    }
}

impl EqualSteps for ProgramLanes {
    fn carried_len(&self) -> usize {
        self.program.memory_len()
    }

    fn begin(
        &self,
        bound: &mut ProgramBound,
        (fixed, t0): (&FixedSteps, f64),
        x: &[f64],
        carried: &mut [f64],
        (begun, costs): (&mut [bool], &mut [Cost]),
        _work: &mut [f64],
    ) {
        bound.many.begin(x);
        bound.single_of = None;
        carried.fill(0.0);
        begun.fill(true);
        if !self.program.finds_first() {
            return;
        }
        let (lanes, mut one) = (self.many.lanes(), vec![0.0; self.dim()]);
        for lane in 0..lanes {
            self.single_for(bound, lane);
            gather(x, lanes, lane, &mut one);
            let ProgramBound { single, carried: memory, work, .. } = &mut *bound;
            memory.fill(0.0);
            let step = StepFrom { t: t0, h: fixed.h, x: &one };
            let workspace = &mut Workspace { kept: &mut [], memory, cost: &mut costs[lane], work };
            begun[lane] = single.begin(step, workspace).is_ok();
            scatter(memory, lanes, lane, carried);
        }
    }

    fn steps(
        &self,
        bound: &ProgramBound,
        steps: Range<u64>,
        x: &mut [f64],
        carry: LaneCarry,
        largest: &mut [f64],
        work: &mut [f64],
    ) {
        let carried = &mut carry.carried[..self.looped()];
        let lanes = Lanes { x, carried, largest, sides: carry.sides, starts: &mut [] };
        let made = bound.many.iterate(steps, lanes, work);
        carry.missed.iter_mut().zip(made.good()).for_each(|(missed, good)| *missed = !good);
        carry.innovation.fill(0.0);
    }

    fn look(
        &self,
        bound: &ProgramBound,
        at: (f64, f64, &[f64]),
        sides: &mut [f64],
        work: &mut [f64],
    ) {
        self.watch.keep(&bound.watch, at, sides, work);
    }

    fn alone(
        &self,
        bound: &mut ProgramBound,
        lane: usize,
        (fixed, t0, steps): (&FixedSteps, f64, Range<u64>),
        one: LaneAlone,
        cost: &mut Cost,
    ) -> Result<(), NoResult> {
        self.single_for(bound, lane);
        let ProgramBound { single, repairs, work, .. } = bound;
        let blocks = single.blocks().ok_or(NoResult)?;
        let looped = StepLoop { map: single, blocks, h: fixed.h, t0 };
        let (innovation, outputs) = (&mut 0.0, Outputs::default());
        let (memory, sides) = (one.carried, &mut []);
        let carry = Carry { memory, scales: &mut [], innovation, sides, cost, outputs };
        let count = steps.end - steps.start;
        repairs.steps(looped, steps, (one.x, None), carry, one.largest, (work, count > 1))
    }

    fn count(&self, steps: Range<u64>, cost: &mut Cost) {
        self.many.count(steps, cost);
    }

    fn multiplier_count(&self) -> usize {
        self.program.multiplier_count()
    }

    fn multipliers(
        &self,
        bound: &mut ProgramBound,
        (fixed, t0, step): (&FixedSteps, f64, u64),
        (x, carried): (&[f64], &[f64]),
        wanted: &[bool],
        lambda: &mut [f64],
        work: &mut [f64],
    ) {
        let (lanes, around) = (self.many.lanes(), around(fixed, step));
        let (mut starts, mut known) =
            (vec![0.0; self.many.start_len() * lanes], vec![false; lanes]);
        if step < fixed.steps && (step > 0 || self.many.makes_first_steps()) {
            // The step from here finds them at its start.
            let (mut x, mut carried) = (x.to_vec(), carried[..self.looped()].to_vec());
            let mut largest = vec![0.0; self.groups() * lanes];
            let trial = Lanes {
                x: &mut x,
                carried: &mut carried,
                largest: &mut largest,
                sides: &mut [],
                starts: &mut starts,
            };
            let made = bound.many.iterate(step..step + 1, trial, work);
            known.iter_mut().zip(made.good()).for_each(|(known, good)| *known = good);
        }
        let (mut one, mut start) = (vec![0.0; self.dim()], vec![0.0; self.many.start_len()]);
        let mut of_lane = vec![0.0; self.multiplier_count()];
        for lane in (0..lanes).filter(|&lane| wanted[lane]) {
            gather(carried, lanes, lane, &mut bound.carried);
            if known[lane] {
                gather(&starts, lanes, lane, &mut start);
                self.many.multipliers(around, &start, &bound.carried, &mut of_lane);
            } else {
                self.single_for(bound, lane);
                gather(x, lanes, lane, &mut one);
                let ProgramBound { single, carried, work, .. } = &mut *bound;
                let (t, (before, after)) = (fixed.time(t0, step), around);
                single.multipliers(
                    Between { t, before, after, x: &one, memory: carried },
                    &mut of_lane,
                    work,
                );
            }
            scatter(&of_lane, lanes, lane, lambda);
        }
    }
}
