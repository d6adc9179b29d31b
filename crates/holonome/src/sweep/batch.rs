//! Computation of a part of an ensemble's trajectories by one thread.

use super::Sweep;
use super::lanes::{LaneSteps, SweepLanes};
use crate::error::StartError;
use crate::kernels::{
    CompiledSystem, LaneQuantities, Parametric, Quantities, WideBound, WideRates,
};
use crate::pulses::pulses;
use crate::recording::{Measuring, MeasuringScratch, Place, SampleMultipliers, with_multipliers};
use crate::simulation::{From, MANY_TIMES, Running, Simulation, Trajectory, put_sides};
use crate::starts::{StartLanes, Starts};
use crate::summary::{Relative, size_of_terms};
use holonome_arithmetic::lanes::spread;
use holonome_integrate::averages::{Averages, Mean};
use holonome_integrate::ensemble::{
    self, End, LaneSample, LaneStart, LaneStates, LaneSystem, Parted, Stopped, Trajectories, gather,
};
use holonome_integrate::events::{Action, Event, EventLog, EventMemory};
use holonome_integrate::exact;
use holonome_integrate::method::MethodTreatment;
use holonome_integrate::observer::Observer;
use holonome_integrate::plan::{Plan, Singular};
use holonome_integrate::run::{Independence, Rates, StepEnds, may_be_far};
use holonome_integrate::state::{Cost, FailedClaim, Singularity, StepState};
use holonome_integrate::system::System;
use holonome_integrate::terms::Loss;
use holonome_integrate::treatment::correction::largest_innovation;
use holonome_model::elaborate::model::Model;
use holonome_model::treatment::{InvariantGroup, InvariantKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Range;

/// Result of a batch of trajectories, beside its rows.
pub(super) struct BatchResult {
    /// Largest deviations of every group of invariants: at the end, and at any time.
    pub drift: Vec<(f64, f64)>,
    /// Relative deviations: over the scale of the group's terms.
    pub relative: Vec<(f64, f64)>,
    /// Losses of every group.
    pub losses: Vec<(f64, f64)>,
    pub steps: u64,
    pub cost: Cost,
    /// Trajectories that ended early, with the reason.
    pub failures: Vec<(u64, String)>,
    /// Events that the trajectories met.
    pub met: EventCounts,
    /// Trajectories whose start `--project-initial` moved far.
    pub far: BTreeSet<u64>,
}

/// Number of trajectories that met an event, and the earliest and the latest time at which one did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EventCount {
    pub count: u64,
    #[serde(with = "exact::number")]
    pub first: f64,
    #[serde(default = "never", with = "exact::number")]
    pub last: f64,
}

fn never() -> f64 {
    f64::NEG_INFINITY
}

impl Default for EventCount {
    fn default() -> EventCount {
        EventCount { count: 0, first: f64::INFINITY, last: never() }
    }
}

impl EventCount {
    fn add(&mut self, t: f64) {
        self.join(EventCount { count: 1, first: t, last: t });
    }

    fn join(&mut self, other: EventCount) {
        self.count += other.count;
        (self.first, self.last) = (self.first.min(other.first), self.last.max(other.last));
    }
}

/// Events that trajectories met and that their numbers do not show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct EventCounts {
    /// Claimed integrals that turned out to vary, by group.
    pub failed_claims: BTreeMap<usize, EventCount>,
    /// Constraints that became nearly dependent.
    pub singular: EventCount,
    /// Corrections larger than the error of a step explains.
    pub innovations: EventCount,
    /// Trajectories that an event of the model ended, by the name of the event.
    #[serde(default)]
    pub ended: BTreeMap<String, EventCount>,
}

impl EventCounts {
    pub fn join(&mut self, other: &EventCounts) {
        for (&group, &seen) in &other.failed_claims {
            self.failed_claims.entry(group).or_default().join(seen);
        }
        self.singular.join(other.singular);
        self.innovations.join(other.innovations);
        for (name, &seen) in &other.ended {
            self.ended.entry(name.clone()).or_default().join(seen);
        }
    }
}

/// Outcome of one trajectory, computed in lanes or alone.
struct Outcome<'a> {
    t: f64,
    steps: u64,
    deviations: &'a [f64],
    largest: &'a [f64],
    /// Scales of the groups' terms.
    terms: &'a [f64],
    losses: &'a [Loss],
    cost: &'a Cost,
    /// Claims that failed.
    failed_claims: &'a [FailedClaim],
    /// Largest innovation, and the time at which it was reached.
    innovation: (f64, f64),
    /// Configuration in which the constraints came nearest to not determining their forces.
    singularity: Singularity,
    /// Measured averages.
    averages: &'a [Averages],
    /// Events that were recorded.
    events: &'a EventLog,
    failure: Option<String>,
}

/// Collector of the results of a batch.
struct Collector<'a> {
    sweep: &'a Sweep,
    simulation: &'a Simulation,
    range: Range<u64>,
    /// For every stored array, a row per trajectory.
    rows: Vec<&'a mut [f64]>,
    batch: BatchResult,
    /// Parameters of every trajectory of the batch, for its recorded quantities.
    parameters: Vec<f64>,
    recorded: Box<dyn Quantities>,
    recorded_for: Option<usize>,
    multipliers: Option<SampleMultipliers>,
    extended: Vec<f64>,
    values: Vec<f64>,
    work: Vec<f64>,
    /// Kernel of the measured quantities, for the same trajectory.
    measured: Option<Box<dyn Quantities>>,
    scratch: MeasuringScratch,
}

impl<'a> Collector<'a> {
    fn new(sweep: &'a Sweep, range: Range<u64>, mut rows: Vec<&'a mut [f64]>) -> Collector<'a> {
        let simulation = &sweep.simulation;
        let count = (range.end - range.start) as usize;
        rows.iter_mut().for_each(|rows| rows.fill(f64::NAN));
        let base = &simulation.problem.model.parameter_values;
        let recorded = simulation.recorded.kernel.rebound(base);
        let multipliers = simulation.recorded_multipliers();
        Collector {
            sweep,
            simulation,
            rows,
            batch: BatchResult {
                drift: vec![(0.0, 0.0); simulation.groups.len()],
                relative: vec![(0.0, 0.0); simulation.groups.len()],
                losses: vec![(0.0, 0.0); simulation.groups.len()],
                steps: 0,
                cost: Cost::default(),
                failures: Vec::new(),
                met: EventCounts::default(),
                far: BTreeSet::new(),
            },
            range,
            parameters: base.repeat(count),
            values: vec![0.0; simulation.recorded.outputs],
            work: vec![0.0; recorded.work_len()],
            recorded,
            recorded_for: None,
            multipliers: multipliers.cloned(),
            extended: Vec::new(),
            measured: simulation.measuring.as_ref().map(|measuring| measuring.kernel.rebound(base)),
            scratch: MeasuringScratch::default(),
        }
    }

    /// Parameters of trajectory `number` of the batch.
    fn parameters_of(&mut self, number: usize) -> &mut [f64] {
        let len = self.simulation.problem.model.parameter_values.len();
        &mut self.parameters[number * len..(number + 1) * len]
    }

    /// Parameters of trajectory `number` of the batch, read-only.
    fn parameters_at(&self, number: usize) -> &[f64] {
        let len = self.simulation.problem.model.parameter_values.len();
        &self.parameters[number * len..(number + 1) * len]
    }

    /// Bind all kernels to the parameters of a trajectory.
    fn bind(&mut self, number: usize) {
        if self.recorded_for == Some(number) {
            return;
        }
        let len = self.simulation.problem.model.parameter_values.len();
        let parameters = &self.parameters[number * len..(number + 1) * len];
        self.recorded.rebind(parameters);
        if let Some(multipliers) = &mut self.multipliers {
            multipliers.rebind(0, parameters);
        }
        if let Some(measured) = &mut self.measured {
            measured.rebind(parameters);
        }
        self.recorded_for = Some(number);
    }

    /// Add an output to the averages of a trajectory.
    fn accumulate(
        &mut self,
        number: usize,
        (output, t, x): (usize, f64, &[f64]),
        averages: &mut Vec<Averages>,
    ) {
        self.bind(number);
        let Some((measuring, kernel)) =
            self.simulation.measuring.as_ref().zip(self.measured.as_deref())
        else {
            return;
        };
        let width = self.simulation.trajectory.system.dim() + self.simulation.recorded.multipliers;
        let x = complete(self.multipliers.as_ref(), t, x, width, &mut self.extended);
        measuring.take(kernel, (output, t, x), averages, &mut self.scratch);
    }

    /// Write an output into the rows, if it is a sample.
    fn sample(&mut self, number: usize, output: usize, t: f64, x: &[f64]) {
        let outputs = self.simulation.measuring.as_ref().map(|measuring| &measuring.outputs);
        let Some(sample) = outputs.map_or(Some(output), |outputs| outputs.sample(output)) else {
            return;
        };
        self.bind(number);
        let plan = &self.simulation.plan;
        let width = self.simulation.trajectory.system.dim() + self.simulation.recorded.multipliers;
        let x = complete(self.multipliers.as_ref(), t, x, width, &mut self.extended);
        self.recorded.run(t, x, &mut self.values, &mut self.work);
        let samples = plan.sample_count();
        for (array, rows) in self.simulation.recorded.arrays.iter().zip(&mut self.rows) {
            let source = if array.place == Place::State { x } else { &self.values };
            let place = (number * samples + sample) * array.len;
            rows[place..place + array.len]
                .copy_from_slice(&source[array.first..array.first + array.len]);
        }
    }

    /// Remove the samples of a trajectory: it may end earlier.
    fn forget(&mut self, number: usize) {
        let samples = self.simulation.plan.sample_count();
        for (array, rows) in self.simulation.recorded.arrays.iter().zip(&mut self.rows) {
            let width = samples * array.len;
            rows[number * width..(number + 1) * width].fill(f64::NAN);
        }
    }

    /// Write the single values of a trajectory.
    fn end(&mut self, number: usize, outcome: Outcome) {
        let recorded = self.simulation.recorded.arrays.len();
        let mut once = self.rows[recorded..].iter_mut();
        let len = self.simulation.problem.model.parameter_values.len();
        let parameters = &self.parameters[number * len..(number + 1) * len];
        for slots in &self.sweep.stored {
            let width = slots.len();
            if let Some(rows) = once.next() {
                rows[number * width..(number + 1) * width]
                    .copy_from_slice(&parameters[slots.clone()]);
            }
        }
        let plan = &self.simulation.plan;
        let numbers = [plan.clock(outcome.t), outcome.steps as f64, outcome.cost.field as f64];
        let failed = f64::from(u8::from(outcome.failure.is_some()));
        let of_events = events_of(&self.simulation.problem.model, outcome.events);
        let of_events = of_events.into_iter().flatten();
        let values = outcome.largest.iter().copied().chain(numbers).chain([failed]);
        let values = values.chain(of_events);
        for (value, rows) in values.zip(&mut once) {
            rows[number] = value;
        }
        let measures = self.simulation.measuring.iter().flat_map(|measuring| &measuring.measures);
        for (measure, averages) in
            measures.zip(outcome.averages).filter(|_| outcome.failure.is_none())
        {
            let (len, means) = (measure.applied.results(), measure.applied.means(&[averages]));
            for of in [|mean: &Mean| mean.value, |mean: &Mean| mean.error] {
                if let Some(rows) = once.next() {
                    rows[number * len..][..len]
                        .iter_mut()
                        .zip(&means)
                        .for_each(|(row, mean)| *row = of(mean));
                }
            }
        }
        let expected = || largest_innovation(self.simulation.vectors.vectors.count());
        let span = self.simulation.plan.span();
        let (batch, groups) = (&mut self.batch, &self.simulation.groups);
        for claim in outcome.failed_claims {
            batch.met.failed_claims.entry(claim.group).or_default().add(plan.clock(claim.t));
        }
        if outcome.innovation.0 > 0.0 && outcome.innovation.0 > MANY_TIMES * expected() {
            batch.met.innovations.add(plan.clock(outcome.innovation.1));
        }
        if outcome.singularity.is_near() {
            batch.met.singular.add(plan.clock(outcome.singularity.t));
        }
        batch.steps += outcome.steps;
        batch.cost.add(outcome.cost);
        match outcome.failure {
            Some(reason) => batch.failures.push((self.range.start + number as u64, reason)),
            None => {
                if let Some(event) = ended_by(&self.simulation.trajectory.system, outcome.events) {
                    batch.met.ended.entry(event).or_default().add(plan.clock(outcome.t));
                }
                for (drift, (&now, &max)) in
                    batch.drift.iter_mut().zip(outcome.deviations.iter().zip(outcome.largest))
                {
                    *drift = (drift.0.max(now), drift.1.max(max));
                }
                for (loss, now) in batch.losses.iter_mut().zip(outcome.losses) {
                    *loss = (loss.0.max(now.last()), loss.1.max(now.max()));
                }
                let deviations = outcome.deviations.iter().zip(outcome.largest);
                for (k, (relative, (&now, &max))) in
                    batch.relative.iter_mut().zip(deviations).enumerate()
                {
                    let terms = size_of_terms(groups, outcome.terms, k, span);
                    if let Some(Relative { last, max }) = Relative::new(now, max, terms) {
                        *relative = (relative.0.max(last), relative.1.max(max));
                    }
                }
            }
        }
    }
}

/// Compute the trajectories of `range` into `rows`: for every stored array, a row per trajectory.
///
/// # Errors
/// If one of them cannot start.
pub(super) fn compute<'a>(
    sweep: &'a Sweep,
    lanes: Option<&SweepLanes>,
    range: Range<u64>,
    rows: Vec<&'a mut [f64]>,
) -> Result<BatchResult, StartError> {
    let mut collector = Collector::new(sweep, range, rows);
    match lanes {
        Some(lanes) => match &lanes.steps {
            LaneSteps::RungeKutta(steps) => in_lanes(sweep, &**steps, lanes, &mut collector)?,
            LaneSteps::Structured(steps) => in_lanes(sweep, &**steps, lanes, &mut collector)?,
        },
        None => one_by_one(sweep, &mut collector)?,
    }
    // Lanes end in any order; a report is in the order of numbers.
    collector.batch.failures.sort_by_key(|&(number, _)| number);
    Ok(collector.batch)
}

/// Compute each trajectory as a run of its own.
fn one_by_one(sweep: &Sweep, collector: &mut Collector) -> Result<(), StartError> {
    let count = (collector.range.end - collector.range.start) as usize;
    let mut worker = Worker::new(sweep);
    (0..count).try_for_each(|number| worker.compute(collector, number, None))
}

/// Worker that computes trajectories as runs of their own.
struct Worker<'a> {
    sweep: &'a Sweep,
    plan: Plan,
    trajectory: Trajectory,
    x: Vec<f64>,
    start_work: Vec<f64>,
}

impl<'a> Worker<'a> {
    fn new(sweep: &'a Sweep) -> Worker<'a> {
        let simulation = &sweep.simulation;
        Worker {
            sweep,
            // The gains of other trajectories are not monitored.
            plan: Plan { gain: None, ..simulation.run_plan().clone() },
            trajectory: Trajectory {
                step: sweep.step_alone().clone(),
                ..simulation.trajectory.clone()
            },
            x: simulation.problem.model.initial.clone(),
            start_work: sweep.starts.work(),
        }
    }

    /// Compute trajectory `number` of the collector's batch, from where lanes have left it or from its
    /// start.
    fn compute(
        &mut self,
        collector: &mut Collector,
        number: usize,
        left: Option<Left>,
    ) -> Result<(), StartError> {
        let Worker { sweep, plan, trajectory, x, start_work } = self;
        let (simulation, index) = (&sweep.simulation, collector.range.start + number as u64);
        let parameters = collector.parameters_of(number);
        if sweep.starts.begin(index, parameters, x, start_work)? {
            collector.batch.far.insert(index);
        }
        let parameters = &collector.parameters_at(number).to_vec()[..];
        if plan.has_moments() {
            let times = (plan.t0, plan.t_end());
            let found = pulses(&simulation.problem.model, (parameters, x), times);
            *plan = plan.clone().with_moments(found.moments);
        }
        let from = From { parameters, x, reference: sweep.reference.as_deref() };
        trajectory.restart(plan, from);
        let Trajectory { system, step, program, state, gains, rate } = trajectory;
        if let Some(left) = left {
            left.put_into(state);
        }
        let running = Running {
            groups: &simulation.groups,
            parts: (program.as_ref(), step, system),
            gains: (gains, *rate),
            from,
            without: &|state| sweep.without_failed(state),
        };
        let outcome = running.run(plan, state, &mut Single { collector, number });
        let failure = outcome.err().map(|failure| failure.to_string());
        let StepState { drift, terms, losses, cost, failed_claims, averages, event_log, .. } =
            state;
        let (deviations, largest): (Vec<f64>, Vec<f64>) =
            drift.iter().map(|d| (d.now, d.max)).unzip();
        let StepState { t, step, innovation, innovation_at, singularity, .. } = *state;
        let outcome = Outcome {
            t,
            steps: step,
            deviations: &deviations,
            largest: &largest,
            terms,
            losses,
            cost,
            failed_claims,
            innovation: (innovation, innovation_at),
            singularity,
            averages,
            events: event_log,
            failure,
        };
        collector.end(number, outcome);
        Ok(())
    }
}

/// What lanes know of a trajectory that they have left, because an event may lie in its next steps.
struct Left {
    parted: Parted,
    events: Vec<EventMemory>,
    singularity: Singularity,
    averages: Vec<Averages>,
}

impl Left {
    /// Make this the state of a run, which is at the start of the trajectory.
    fn put_into(self, state: &mut StepState) {
        let Left { parted, events, singularity, averages } = self;
        parted.put_into(state);
        (state.events, state.singularity, state.averages) = (events, singularity, averages);
    }
}

/// Arrays of each event of an ensemble, one number for each trajectory: endings of their names, and
/// descriptions.
pub(super) const EVENT_ARRAYS: [(&str, &str); 3] = [
    ("count", "number of times that"),
    ("first", "time of the first"),
    ("last", "time of the last"),
];

/// Numbers of [`EVENT_ARRAYS`] for each event of a model; NaN for times of none.
fn events_of(model: &Model, log: &EventLog) -> Vec<[f64; 3]> {
    let mut all = vec![[0.0, f64::NAN, f64::NAN]; model.events.len()];
    let members = model.events.iter().enumerate();
    let of_rule: Vec<usize> =
        members.flat_map(|(k, event)| std::iter::repeat_n(k, event.quantity.members)).collect();
    for event in log.iter() {
        let [count, first, last] = &mut all[of_rule[event.rule]];
        let t = model.clock(event.t);
        (*count, *last) = (*count + 1.0, t);
        if first.is_nan() {
            *first = t;
        }
    }
    all
}

/// Name of the event that ends a trajectory with this log, without indices; `None` if none does.
fn ended_by(system: &CompiledSystem, log: &EventLog) -> Option<String> {
    let rules = system.events()?.rules();
    let ends = |event: &Event| rules[event.rule].acts(event.number) == Some(Action::Stop);
    let rule = &rules[log.iter().find(ends)?.rule];
    rule.name.split('[').next().map(String::from)
}

/// A state followed by as many numbers as kernels may read: its multipliers, or zeros that nothing
/// reads.
fn complete<'x>(
    multipliers: Option<&SampleMultipliers>,
    t: f64,
    x: &'x [f64],
    width: usize,
    extended: &'x mut Vec<f64>,
) -> &'x [f64] {
    if x.len() == width || multipliers.is_some() {
        return with_multipliers(multipliers, t, x, extended);
    }
    extended.clear();
    extended.extend_from_slice(x);
    extended.resize(width, 0.0);
    extended
}

struct Single<'c, 'a> {
    collector: &'c mut Collector<'a>,
    number: usize,
}

impl Observer for Single<'_, '_> {
    type Error = Infallible;

    fn sample(&mut self, index: usize, t: f64, x: &[f64]) -> Result<(), Infallible> {
        self.collector.sample(self.number, index, t, x);
        Ok(())
    }

    fn accumulate(&mut self, index: usize, t: f64, x: &[f64], averages: &mut Vec<Averages>) {
        self.collector.accumulate(self.number, (index, t, x), averages);
    }

    fn wants_multipliers(&self) -> bool {
        self.collector.simulation.recorded.uses_multipliers
    }
}

/// Compute several trajectories at a time.
fn in_lanes<'a, L: LaneSystem>(
    sweep: &'a Sweep,
    lanes: &L,
    compiled: &SweepLanes,
    collector: &mut Collector<'a>,
) -> Result<(), StartError> {
    let SweepLanes { recorded, measured, multipliers, rates: wide_rates, .. } = compiled;
    let simulation = &sweep.simulation;
    let mut all = simulation.problem.model.parameter_values.clone();
    all.resize(all.len() + simulation.target_count(), 0.0);
    all.extend(&simulation.trajectory.gains);
    let mut bound = lanes.bind(&all);
    let count = (collector.range.end - collector.range.start) as usize;
    let (system, k) = (&*simulation.trajectory.system, lanes.lanes());
    let width = system.dim() + simulation.recorded.multipliers;
    let mut feed = LaneTrajectories {
        collector,
        lanes,
        next: 0,
        group: StartGroup::new(sweep, compiled, k),
        start_work: sweep.starts.work(),
        masses: Vec::new(),
        values: simulation.trajectory.system.rebound(&all),
        targets: vec![0.0; simulation.trajectory.system.invariants().count],
        all,
        work: vec![0.0; system.work_len()],
        rates: claimed_rates(simulation),
        independence: Independence::new(system),
        nearest: vec![Singularity::default(); count],
        followed: followed(simulation, system, lanes, k),
        taken_up: vec![false; k],
        recording: Recording::new(recorded, multipliers.clone(), width, k),
        measuring: measured
            .clone()
            .zip(simulation.measuring.as_ref())
            .map(|(kernel, measuring)| MeasuringLanes::new(kernel, measuring, count, k)),
        looking: ClaimTests::new(wide_rates, system, k),
        systems: Vec::new(),
        begun: vec![Vec::new(); if system.events().is_some() { count } else { 0 }],
        alone: Vec::new(),
        error: None,
    };
    if feed.follows() {
        feed.systems = (0..k).map(|_| system.rebound(&feed.all)).collect();
    }
    ensemble::run(simulation.run_plan(), lanes, &mut bound, &mut feed);
    if let Some(error) = feed.error {
        return Err(error);
    }
    let mut alone = feed.alone;
    if alone.is_empty() {
        return Ok(());
    }
    alone.sort_unstable_by_key(|&(number, _)| number);
    let mut worker = Worker::new(sweep);
    alone.into_iter().try_for_each(|(number, left)| {
        if left.is_none() {
            collector.forget(number);
        }
        worker.compute(collector, number, left)
    })
}

/// Independence of the constraints of the trajectories in `k` lanes; empty if it is not followed.
/// Adaptive steps in lanes would often be interrupted for constraints of which each has to vanish by
/// itself.
fn followed(
    simulation: &Simulation,
    system: &dyn System,
    lanes: &impl LaneSystem,
    k: usize,
) -> Vec<Independence> {
    let (independence, least) = (Independence::new(system), lanes.least_followed());
    if simulation.plan.fixed_step().is_none() && independence.count() < least {
        return Vec::new();
    }
    let followed = independence.followed(least, 0);
    if followed.next() == u64::MAX { Vec::new() } else { vec![followed; k] }
}

/// Rates of the model's claims; a Hamiltonian and its constraints are kept by construction.
fn claimed_rates(simulation: &Simulation) -> Rates {
    let claimed = |group: &InvariantGroup| match group.kind {
        InvariantKind::Integral => !group.monitored_only,
        InvariantKind::Constraint => {
            !group.monitored_only && !simulation.problem.model.is_hamiltonian()
        }
        _ => false,
    };
    match simulation.groups.iter().any(claimed) {
        true => {
            Rates::new(simulation.plan.method.treatment, &*simulation.trajectory.system, |_| false)
        }
        false => Rates::default(),
    }
}

/// Recording of samples in lanes.
struct Recording {
    kernel: LaneQuantities,
    t: Vec<f64>,
    /// States with their multipliers.
    x: Vec<f64>,
    /// Multipliers that samples do not contain as they are reported.
    multipliers: Option<SampleMultipliers>,
    values: Vec<f64>,
    work: Vec<f64>,
}

impl Recording {
    /// Recording of states and their multipliers, `width` numbers, in `k` lanes.
    fn new(
        kernel: &LaneQuantities,
        multipliers: Option<SampleMultipliers>,
        width: usize,
        k: usize,
    ) -> Recording {
        Recording {
            values: vec![0.0; kernel.outputs() * k],
            work: vec![0.0; kernel.work_len()],
            kernel: kernel.clone(),
            t: vec![0.0; k],
            x: vec![0.0; width * k],
            multipliers,
        }
    }
}

/// Measuring in lanes.
struct MeasuringLanes<'a> {
    measuring: &'a Measuring,
    kernel: LaneQuantities,
    values: Vec<f64>,
    /// Numbers of one lane.
    of_lane: Vec<f64>,
    work: Vec<f64>,
    /// Averages of every trajectory of the batch.
    averages: Vec<Vec<Averages>>,
}

impl<'a> MeasuringLanes<'a> {
    /// Measuring of `count` trajectories in `k` lanes.
    fn new(
        kernel: LaneQuantities,
        measuring: &'a Measuring,
        count: usize,
        k: usize,
    ) -> MeasuringLanes<'a> {
        MeasuringLanes {
            work: vec![0.0; kernel.work_len()],
            values: vec![0.0; measuring.numbers * k],
            of_lane: vec![0.0; measuring.numbers],
            averages: vec![Vec::new(); count],
            kernel,
            measuring,
        }
    }
}

/// Tests of claims in lanes.
struct ClaimTests {
    kernels: WideRates,
    motion: Vec<f64>,
    jacobian: Vec<f64>,
    suspected: Vec<bool>,
    /// All parameters of every lane, for a closer test, and the state of one with σ² of its
    /// vectors.
    parameters: Vec<Vec<f64>>,
    x: Vec<f64>,
    squares: Vec<f64>,
    work: Vec<f64>,
}

impl ClaimTests {
    fn new(kernels: &WideRates, system: &CompiledSystem, k: usize) -> ClaimTests {
        ClaimTests {
            motion: vec![0.0; system.dim() * k],
            jacobian: vec![0.0; system.invariants().nonzeros() * k],
            work: vec![0.0; kernels.work_len()],
            kernels: kernels.clone(),
            suspected: vec![false; k],
            parameters: vec![Vec::new(); k],
            x: vec![0.0; system.dim()],
            squares: Vec::new(),
        }
    }
}

/// Starts of consecutive trajectories of a batch, computed side by side.
struct StartGroup<'a> {
    compiled: Option<&'a StartLanes>,
    /// F of the invariants, bound to the parameters of the group.
    invariants: WideBound,
    lanes: usize,
    /// Trajectories that have been tried, and whether all of them have starts.
    numbers: Range<usize>,
    started: bool,
    parameters: Vec<f64>,
    x: Vec<f64>,
    t0: Vec<f64>,
    /// States at which F takes its targets, if these are not the starts.
    reference: Option<Vec<f64>>,
    targets: Vec<f64>,
    one: Vec<f64>,
    work: Vec<f64>,
}

impl<'a> StartGroup<'a> {
    fn new(sweep: &Sweep, compiled: &'a SweepLanes, lanes: usize) -> StartGroup<'a> {
        let (model, invariants) = (&sweep.simulation.problem.model, compiled.invariants.clone());
        let of_starts = compiled.starts.as_ref().map_or(0, |starts| starts.work_len(&sweep.starts));
        let spread_out = |one: &[f64]| {
            let mut all = vec![0.0; one.len() * lanes];
            spread(one, lanes, &mut all);
            all
        };
        StartGroup {
            compiled: compiled.starts.as_ref(),
            lanes,
            numbers: 0..0,
            started: false,
            parameters: spread_out(&model.parameter_values),
            x: vec![0.0; model.dimension() * lanes],
            t0: vec![sweep.simulation.plan.t0; lanes],
            reference: sweep.reference.as_deref().map(spread_out),
            targets: vec![0.0; invariants.outputs() * lanes],
            one: model.parameter_values.clone(),
            work: vec![0.0; of_starts.max(invariants.work_len())],
            invariants,
        }
    }

    /// True if trajectory `number` of the batch `range` has its start here. `varies` is true if
    /// trajectories have parameters of their own.
    fn has(&mut self, starts: &Starts, range: &Range<u64>, number: usize, varies: bool) -> bool {
        let Some(compiled) = self.compiled else { return false };
        if self.numbers.contains(&number) {
            return self.started;
        }
        let count = (range.end - range.start) as usize;
        self.numbers = number..count.min(number + self.lanes);
        let trajectories = range.start + number as u64..range.start + self.numbers.end as u64;
        let StartGroup { parameters, x, work, .. } = self;
        self.started = compiled.put(starts, trajectories, parameters, x, work);
        if !self.started {
            return false;
        }
        for lane in (0..self.lanes).filter(|_| varies) {
            gather(&self.parameters, self.lanes, lane, &mut self.one);
            self.invariants.rebind(lane, &self.one);
        }
        let at = self.reference.as_ref().unwrap_or(&self.x);
        self.invariants.run(&self.t0, at, &mut self.targets, &mut self.work);
        true
    }

    /// Copy the start of trajectory `number`, and its parameters if they vary.
    fn copy(&self, number: usize, (parameters, varies): (&mut [f64], bool), x: &mut [f64]) {
        let lane = number - self.numbers.start;
        gather(&self.x, self.lanes, lane, x);
        if varies {
            gather(&self.parameters, self.lanes, lane, parameters);
        }
    }

    /// Copy F at the start of trajectory `number`, if it is known.
    fn copy_targets(&self, number: usize, targets: &mut [f64]) -> bool {
        let known = self.started && self.numbers.contains(&number);
        if known {
            gather(&self.targets, self.lanes, number - self.numbers.start, targets);
        }
        known
    }
}

struct LaneTrajectories<'f, 'a, L> {
    collector: &'f mut Collector<'a>,
    lanes: &'f L,
    next: usize,
    group: StartGroup<'f>,
    start_work: Vec<f64>,
    /// Masses of a trajectory's vectors, if they are those of all; empty otherwise.
    masses: Vec<f64>,
    /// System that gives F at the start.
    values: CompiledSystem,
    targets: Vec<f64>,
    all: Vec<f64>,
    work: Vec<f64>,
    rates: Rates,
    independence: Independence,
    looking: ClaimTests,
    /// System of every lane, for following its constraints.
    systems: Vec<CompiledSystem>,
    /// Independence of the constraints of every lane.
    followed: Vec<Independence>,
    /// True for lanes that have taken up a trajectory.
    taken_up: Vec<bool>,
    recording: Recording,
    measuring: Option<MeasuringLanes<'a>>,
    /// Configuration of every trajectory of the batch in which its constraints came nearest to not
    /// determining their forces.
    nearest: Vec<Singularity>,
    /// What the trajectories of the batch know of the functions of events at their starts.
    begun: Vec<Vec<EventMemory>>,
    /// Trajectories to be run alone: from their starts, because a claim fails or may fail, or from
    /// where lanes have left them.
    alone: Vec<(usize, Option<Left>)>,
    error: Option<StartError>,
}

impl<L: LaneSystem> LaneTrajectories<'_, '_, L> {
    /// True if the independence of constraints is followed.
    fn follows(&self) -> bool {
        !self.followed.is_empty()
    }

    /// True if trajectory `number` has gone through a singular configuration, at which it ends.
    fn stops_before(&self, number: usize) -> bool {
        let plan = &self.collector.simulation.plan;
        plan.singular == Singular::Stop && self.nearest[number].passed
    }

    /// True if trajectories have parameters of their own.
    fn varies(&self) -> bool {
        let (sweep, simulation) = (self.collector.sweep, self.collector.simulation);
        let heated = simulation.problem.model.heat_bath.is_some();
        !sweep.varied.is_empty() || simulation.penalty.is_some() || heated
    }

    /// Put the start of the next trajectory that lanes can begin into `x`, and the sides on which the
    /// functions of events are there into `sides`. Returns its number.
    fn begin_next(&mut self, x: &mut [f64], sides: &mut [f64]) -> Option<usize> {
        let sweep = self.collector.sweep;
        let count = (self.collector.range.end - self.collector.range.start) as usize;
        while self.next < count && self.error.is_none() {
            let number = self.next;
            self.next += 1;
            let index = self.collector.range.start + number as u64;
            let varies = self.varies();
            let together = self.group.has(&sweep.starts, &self.collector.range, number, varies);
            let parameters = self.collector.parameters_of(number);
            let begun = match together {
                true => {
                    self.group.copy(number, (parameters, varies), x);
                    Ok(false)
                }
                false => sweep.starts.begin(index, parameters, x, &mut self.start_work),
            };
            match begun {
                Ok(true) => _ = self.collector.batch.far.insert(index),
                Ok(false) => {}
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
            let parameters = self.collector.parameters_at(number);
            self.all[..parameters.len()].copy_from_slice(parameters);
            if self.begin_events(number, x, sides) {
                return Some(number);
            }
            self.alone.push((number, None));
        }
        None
    }

    /// Find the sides on which the functions of events are at the start x of trajectory `number`; false
    /// if one is not known.
    fn begin_events(&mut self, number: usize, x: &[f64], sides: &mut [f64]) -> bool {
        if self.begun.is_empty() {
            return true;
        }
        if self.varies() {
            self.values.rebind_events(&self.all);
        }
        let Some(events) = self.values.events() else { return true };
        let plan = self.collector.simulation.run_plan();
        let memories = EventMemory::all_at(events, 0, (plan.t0, x), plan.lands());
        let known = EventMemory::sides(&memories, events.rules(), sides);
        let count = self.collector.simulation.problem.model.parameter_values.len();
        put_sides(&mut self.all[..count], events.rules(), &memories);
        self.begun[number] = memories;
        known
    }

    /// Bind a lane to the trajectory that starts at `x`, and find the masses of its vectors, unless
    /// `masses` is empty.
    fn bind_next(
        &mut self,
        bound: &mut L::Bound,
        (lane, number): (usize, usize),
        (x, masses): (&[f64], &mut [f64]),
    ) {
        let (sweep, simulation) = (self.collector.sweep, self.collector.simulation);
        let parameters = self.collector.parameters_at(number);
        let first_target = parameters.len();
        // Parameters that do not vary are bound once per lane, and so are sides.
        let varies = self.varies() || !self.begun.is_empty();
        let rebinds = varies || !std::mem::replace(&mut self.taken_up[lane], true);
        if rebinds {
            self.recording.kernel.rebind(lane, parameters);
            if let Some(measuring) = &mut self.measuring {
                measuring.kernel.rebind(lane, parameters);
            }
        }
        let t0 = simulation.plan.t0;
        let feedback = simulation.plan.method.treatment == MethodTreatment::Feedback;
        // Sides are parameters that are known only now.
        let together = self.begun.is_empty();
        let known = together && self.group.copy_targets(number, &mut self.targets);
        if rebinds && (feedback || !known) {
            self.values.rebind_invariants(&self.all);
        }
        if !known {
            let at = sweep.reference.as_deref().unwrap_or(x);
            self.values.invariant_values(t0, at, &mut self.targets, &mut self.work);
        }
        if self.follows() {
            self.followed[lane].restart(0);
            self.systems[lane].rebind_invariants(&self.all);
            self.systems[lane].rebind_motion(&self.all);
        }
        if self.looks() && rebinds {
            self.looking.kernels.rebind(lane, &self.all);
            self.looking.parameters[lane].clone_from(&self.all);
        }
        if !masses.is_empty() && masses.len() == self.masses.len() {
            masses.copy_from_slice(&self.masses);
        } else if !masses.is_empty() {
            if rebinds {
                self.values.rebind_masses(&self.all);
            }
            self.values.masses(t0, x, masses, &mut self.work);
            if !varies && !self.values.has_moving_masses() {
                self.masses = masses.to_vec();
            }
        }
        let constraints = simulation.constraints;
        self.targets[..constraints].fill(0.0);
        let targets = &self.targets[constraints..];
        let first_gain = first_target + targets.len();
        self.all[first_target..first_gain].copy_from_slice(targets);
        if feedback {
            self.values.rebind_motion(&self.all);
            self.values.rebind_masses(&self.all);
            self.all.splice(first_gain.., simulation.trajectory.gains_at(t0, &self.values, x));
        }
        self.lanes.rebind(bound, lane, &self.all, &self.targets);
    }
}

impl<L: LaneSystem> Trajectories<L::Bound> for LaneTrajectories<'_, '_, L> {
    fn next(
        &mut self,
        bound: &mut L::Bound,
        lane: usize,
        LaneStart { x, masses, sides }: LaneStart,
    ) -> Option<usize> {
        let number = self.begin_next(x, sides)?;
        self.bind_next(bound, (lane, number), (x, masses));
        Some(number)
    }

    fn samples(&mut self, of: &[LaneSample], x: &[f64]) {
        let (simulation, lanes) = (self.collector.simulation, self.lanes.lanes());
        let recording = &mut self.recording;
        for of in of {
            recording.t[of.lane] = simulation.run_plan().sample_time(of.sample);
        }
        let wanted = |lane: usize| of.iter().any(|of| of.lane == lane);
        recording.x[..x.len()].copy_from_slice(x);
        if let Some(multipliers) = &mut recording.multipliers {
            for of in of {
                multipliers.rebind(of.lane, self.collector.parameters_at(of.trajectory));
            }
            multipliers.put(&recording.t, &mut recording.x, wanted);
        }
        let Recording { kernel, t, x, values, work, .. } = recording;
        let outputs = simulation.measuring.as_ref().map(|measuring| &measuring.outputs);
        if let Some(MeasuringLanes { measuring, kernel, values, of_lane, work, averages }) =
            &mut self.measuring
            && of.iter().any(|of| measuring.outputs.is_measured(of.sample))
        {
            kernel.run((t, x), wanted, values, work);
            for &LaneSample { lane, trajectory, sample } in of {
                if measuring.outputs.is_measured(sample) {
                    gather(values, lanes, lane, of_lane);
                    measuring.accumulate(
                        sample,
                        of_lane,
                        &mut averages[trajectory],
                        &mut self.collector.scratch,
                    );
                }
            }
        }
        let stored =
            |of: &LaneSample| outputs.map_or(Some(of.sample), |outputs| outputs.sample(of.sample));
        if of.iter().all(|of| stored(of).is_none()) {
            return;
        }
        kernel.run((t, x), wanted, values, work);
        let samples = simulation.plan.sample_count();
        for (array, rows) in simulation.recorded.arrays.iter().zip(&mut self.collector.rows) {
            let source = if array.place == Place::State { &*x } else { &*values };
            let source = &source[array.first * lanes..(array.first + array.len) * lanes];
            for of in of {
                let Some(sample) = stored(of) else { continue };
                let place = (of.trajectory * samples + sample) * array.len;
                gather(source, lanes, of.lane, &mut rows[place..place + array.len]);
            }
        }
    }

    fn wants_multipliers(&self) -> bool {
        self.collector.simulation.recorded.uses_multipliers
    }

    fn steps_to_follow(&self, of: &[(usize, usize)], step: u64) -> u64 {
        let followed = of.iter().filter_map(|&(lane, _)| self.followed.get(lane));
        let next = followed.map(Independence::next).min();
        next.map_or(u64::MAX, |next| next.saturating_sub(step))
    }

    fn follow(&mut self, (lane, number): (usize, usize), (step, t): (u64, f64), x: &[f64]) {
        if let Some(found) =
            self.followed[lane].follow(&self.systems[lane], (step, t, x), &mut self.work)
        {
            self.nearest[number] = self.nearest[number].nearer(found);
        }
    }

    fn may_be_far(&self, deviations: &[f64], terms: &[f64]) -> bool {
        let h = self.collector.simulation.plan.fixed_step().unwrap_or(f64::INFINITY);
        may_be_far(self.values.invariants(), deviations, terms, h)
    }

    fn looks(&self) -> bool {
        self.rates.judges() || self.independence.monitors()
    }

    fn disturbance(&self, innovation: f64, deviations: &[f64], terms: &[f64]) -> f64 {
        match self.rates.claims() {
            true => {
                self.rates.disturbance(self.values.invariants(), innovation, (deviations, terms))
            }
            false => 0.0,
        }
    }

    fn fails_within(&mut self, lane: usize, step: StepEnds) -> bool {
        let parameters = &self.looking.parameters[lane];
        self.values.rebind_invariants(parameters);
        self.values.rebind_motion(parameters);
        let mut fails = false;
        let found = &mut |_, _, _| fails = true;
        let span = self.collector.simulation.plan.span();
        self.rates.varying_within(&self.values, step, span, &mut self.work, found);
        fails
    }

    fn look(&mut self, of: &[(usize, usize)], at: LaneStates, doubted: &mut [bool]) {
        let lanes = self.lanes.lanes();
        let stops = self.collector.simulation.plan.singular == Singular::Stop;
        let ClaimTests { kernels, motion, jacobian, suspected, parameters, x, squares, work } =
            &mut self.looking;
        kernels.run(at.t, at.x, motion, jacobian, work);
        for &(lane, number) in of {
            if let Some(found) =
                self.independence.nearest_of(at.t[lane], (at.x, jacobian), (lane, lanes))
            {
                self.nearest[number] = self.nearest[number].nearer(found);
                // A run by itself ends there, and says why.
                doubted[lane] |= found.is_rounding() || stops && found.is_lost();
            }
        }
        if !self.rates.judges() {
            return;
        }
        suspected.fill(kernels.depends_on_time);
        self.rates.suspects(self.values.invariants(), motion, jacobian, suspected);
        let plan = &self.collector.simulation.plan;
        let (span, h) = (plan.span(), plan.fixed_step().unwrap_or(f64::INFINITY));
        squares.resize(at.squares.len() / lanes, 0.0);
        for &(lane, _) in of.iter().filter(|(lane, _)| suspected[*lane]) {
            self.values.rebind_invariants(&parameters[lane]);
            self.values.rebind_motion(&parameters[lane]);
            gather(at.x, lanes, lane, x);
            gather(at.squares, lanes, lane, squares);
            let fails = &mut doubted[lane];
            let found = &mut |_, _| *fails = true;
            self.rates.varying(
                &self.values,
                (at.t[lane], x),
                (span, h),
                squares,
                &mut self.work,
                found,
            );
        }
    }

    fn end(&mut self, number: usize, end: &End) {
        // A run by itself says which step fails and why.
        let failure = match end.failure {
            Some(Stopped::Doubted | Stopped::NonFinite | Stopped::StepCollapsed) => {
                return self.alone.push((number, None));
            }
            Some(Stopped::TooManySteps) => {
                let t = self.collector.simulation.plan.clock(end.t);
                Some(format!("the limit on the number of steps was reached at t = {t}"))
            }
            None => None,
        };
        // A run by itself ends there, and says when.
        if self.stops_before(number) {
            return self.alone.push((number, None));
        }
        let outcome = Outcome {
            t: end.t,
            steps: end.steps,
            deviations: &end.deviations,
            largest: &end.largest,
            terms: &end.terms,
            losses: &end.losses,
            cost: &end.cost,
            events: &EventLog::default(),
            failed_claims: &[],
            innovation: (end.innovation, end.innovation_at),
            singularity: self.nearest[number],
            averages: self.measuring.as_ref().map_or(&[], |measuring| &measuring.averages[number]),
            failure,
        };
        self.collector.end(number, outcome);
    }

    fn part(&mut self, number: usize, parted: Parted) {
        if self.stops_before(number) {
            return self.alone.push((number, None));
        }
        let averages = self.measuring.as_mut().map(|measuring| &mut measuring.averages[number]);
        let left = Left {
            parted,
            events: std::mem::take(&mut self.begun[number]),
            singularity: self.nearest[number],
            averages: averages.map(std::mem::take).unwrap_or_default(),
        };
        self.alone.push((number, Some(left)));
    }
}
