//! The loop over time of a single trajectory.
//!
//! A step is: the base scheme's map, the treatment of its result, the checks and the monitoring,
//! the samples that fall on it, and only then the new state. Whatever fails leaves the state at the
//! last good step. Everything that outlives a step is in [`StepState`], so a run that is stopped,
//! stored, read back and continued makes the same bits as one that was not. Memory is allocated
//! before the first step.

mod acting;
pub(crate) mod attempt;
mod block;
mod checks;
pub(crate) mod claims;
mod estimate;
mod events;
mod flow;
mod given_scales;
mod handed_over;
mod independence;
mod march;
mod output;
mod pieces;
mod rates;
mod rounding;
mod stiffness;
mod symmetric;
mod unmet;
mod watch;

use attempt::Accepted;
pub use attempt::REJECTIONS_OF_NEW;
use block::BlockOutputs;
use claims::Claims;
use events::{Steps, Whole};
pub use flow::{FlowScratch, flow, flows};
pub use given_scales::takes_scales_after;
pub use handed_over::handed_over;
pub use independence::Independence;
use march::Wanted;
pub use pieces::{piece_order, piece_points};
pub use rates::{Rates, StepEnds};
pub use unmet::may_be_far;
use watch::Watch;

use crate::controller::pi::Controller;
use crate::failure::Failure;
use crate::fixed_point::{CollocationMap, SliceStages};
use crate::observer::{Control, Observer};
use crate::plan::{AdaptiveSteps, FixedSteps, Plan, Stepping};
use crate::scales::{Kept, Scales};
use crate::scheme::Step;
use crate::scheme::map::{StepFrom, StepMap, Workspace};
use crate::scheme::slices::TableauMap;
use crate::simplified_newton::StiffMap;
use crate::stability::Monitor;
use crate::state::{ControllerMemory, Drift, StepState};
use crate::system::{ConstraintRates, System};
use crate::terms::{Loss, raise_terms, terms_work_len};
use crate::treatment::Treatment;
use crate::vector::max_or_nan;

/// Largest number of steps in a block. A block costs a call, so hundreds of steps make that
/// negligible; and it stays far below the time that a person would notice.
pub(crate) const LONGEST_BLOCK: u64 = 1024;

/// Outcome of a run without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The end is reached.
    Finished,
    /// The observer stopped it; the state can be resumed.
    Stopped,
    /// A claimed integral turned out to vary. The state is back where the integral last passed,
    /// with the claim among [`StepState::failed_claims`]: the run goes on from there over a system
    /// that does not hold it.
    ClaimFailed,
    /// An event ended the run; the state is there.
    Event,
    /// An event set the state, and with it the targets of invariants that it changed: the run goes
    /// on from there over a system and a map that have these.
    Reset,
}

/// Run `plan` from `state` to its end. `state` is new ([`StepState::new`]) or that of an earlier
/// run, in which case the run continues as if it had never stopped.
///
/// # Panics
/// If the system's description of its invariants is inconsistent, `state` belongs to another
/// system, the plan adapts the steps of a treatment that needs equal ones, which [`Plan::adaptive`]
/// refuses, or the method is written over a phase space or takes formulas, which a field alone does
/// not provide: [`run_map`] runs its map.
pub fn run<O: Observer + ?Sized>(
    plan: &Plan,
    system: &dyn System,
    state: &mut StepState,
    observer: &mut O,
) -> Result<Outcome, Failure<O::Error>> {
    match plan.method.scheme.step {
        Step::Stiff(method) => {
            run_map(plan, system, &StiffMap::new(method, plan, system), state, observer)
        }
        Step::Collocation(collocation) => {
            let stages = SliceStages::new(collocation, plan, system);
            run_map(
                plan,
                system,
                &CollocationMap::new(collocation, plan, system, &stages),
                state,
                observer,
            )
        }
        _ => run_map(
            plan,
            system,
            &TableauMap::new(plan.method.scheme.tableau(), system),
            state,
            observer,
        ),
    }
}

/// [`run`] with a one-step map of the caller's: the plan's scheme over `system`, compiled for
/// instance. The first stage, the treatment and the monitoring still come from `system`.
///
/// # Panics
/// As [`run`].
pub fn run_map<O: Observer + ?Sized>(
    plan: &Plan,
    system: &dyn System,
    map: &dyn StepMap,
    state: &mut StepState,
    observer: &mut O,
) -> Result<Outcome, Failure<O::Error>> {
    if let Some(problem) = system.invariants().inconsistency(system.dim()) {
        panic!("{problem}");
    }
    assert_eq!(state.x.len(), system.dim(), "the state belongs to another system");
    let equal_steps = matches!(plan.stepping, Stepping::Fixed(_));
    assert!(
        equal_steps || !plan.method.treatment.needs_equal_steps(),
        "{} needs equal steps",
        plan.method
    );
    let mut engine = Engine::new(plan, system, map, state);
    if observer.wants_pieces() {
        engine.begin_pieces();
    }
    engine.run(observer).map_err(|failure| failure.by_the_clock_of(plan))
}

/// A run in progress: the state, and scratch that does not outlive a step.
struct Engine<'a> {
    plan: &'a Plan,
    system: &'a dyn System,
    map: &'a dyn StepMap,
    state: &'a mut StepState,
    /// Number of groups of invariants of the system.
    groups: usize,
    treatment: Treatment,
    monitor: Option<Monitor<'a>>,
    /// Vectors that the map keeps of a step, X(t, x) first.
    stages: Vec<Vec<f64>>,
    x1: Vec<f64>,
    /// F at x1.
    values: Vec<f64>,
    /// The groups' deviations at x1, and those of what the map monitors.
    deviations: Vec<f64>,
    /// The largest deviations within a block of steps.
    largest: Vec<f64>,
    /// Real stability interval of an explicit scheme.
    explicit_interval: Option<f64>,
    /// Largest estimate of a step's error that is accepted.
    tolerance: f64,
    /// State of the controller after the step; the one in `state` stays until the step is accepted
    /// for good.
    controller: ControllerMemory,
    claims: Claims,
    /// Functions of events, if there are any.
    watch: Option<Box<Watch<'a>>>,
    /// Rows that are corrected.
    held: Vec<bool>,
    rates: ConstraintRates,
    trial: unmet::Trial,
    /// Scales that the run keeps.
    kept: Kept,
    /// Scales after the step; those in `state` stay until the step is accepted for good.
    scales: Scales,
    /// |x₁|² of every vector, and the square of its estimated error.
    sizes: Vec<f64>,
    errors: Vec<f64>,
    /// An error estimate.
    estimate: Vec<f64>,
    /// S² without vectors that have always been 0.
    norms: Vec<f64>,
    /// The square of the innovation at x1.
    innovation: f64,
    /// The field at x1, if `field_known`. It and the vectors of samples are empty in runs that have
    /// no use for them.
    field: Vec<f64>,
    field_known: bool,
    /// A state of dense output.
    sample: Vec<f64>,
    sample_values: Vec<f64>,
    sample_deviations: Vec<f64>,
    outputs: BlockOutputs,
    /// Scratch for passing steps to an observer that wants them.
    pieces: Option<Box<pieces::Pieces>>,
    /// State before the end of equal steps, but for its vectors, which it takes over when the next
    /// step leaves them.
    before_end: Option<Box<StepState>>,
    /// Numbers that the map carries after the step; those in `state` stay until the step is
    /// accepted for good.
    memory: Vec<f64>,
    /// The state of a loop of attempts, and that before the last one of those that are watched.
    march: Vec<f64>,
    before_attempt: Vec<f64>,
    work: Vec<f64>,
}

impl<'a> Engine<'a> {
    fn new(
        plan: &'a Plan,
        system: &'a dyn System,
        map: &'a dyn StepMap,
        state: &'a mut StepState,
    ) -> Engine<'a> {
        let (n, m, groups) =
            (system.dim(), system.invariants().count, system.invariants().groups.len());
        let monitor = plan.gain.as_ref().and_then(|gain| {
            let interval = map.stability()?;
            Some(Monitor::new(gain, system, interval).along(&plan.stepping))
        });
        if let Some(monitor) = &monitor {
            monitor.prepare(&mut state.stability.direction);
        }
        state.memory.resize(map.memory_len(), 0.0);
        if state.elapsed.is_nan() {
            state.elapsed = state.t - plan.t0;
        }
        if map.takes_first_stage() {
            state.first_stage.value.resize(n, 0.0);
        }
        let kept = Treatment::kept(plan, system);
        // Fewer are kept where a claim is not held any more.
        state.scales.carried.truncate(kept.carried(system.vectors()));
        let vectors = if kept.sizes { system.vectors().count() } else { 0 };
        let adapts = matches!(plan.stepping, Stepping::Adaptive(_));
        let monitored = groups + map.monitored_count();
        state.drift.resize(monitored, Drift { now: 0.0, max: 0.0 });
        state.terms.resize(groups, 0.0);
        state.losses.resize(groups, Loss::default());
        Engine {
            plan,
            system,
            map,
            groups,
            treatment: Treatment::new(plan, system),
            monitor,
            stages: vec![vec![0.0; n]; map.vectors()],
            x1: vec![0.0; n],
            values: vec![0.0; m],
            deviations: vec![0.0; monitored],
            largest: vec![0.0; monitored],
            explicit_interval: plan.method.scheme.explicit_interval(),
            tolerance: match &plan.stepping {
                Stepping::Adaptive(adaptive) => map
                    .facts()
                    .control
                    .map_or(adaptive.rtol, |control| control.tolerance(adaptive.rtol)),
                Stepping::Fixed(_) => 0.0,
            },
            controller: state.controller,
            // Two constraints are rarely dependent, and steps that solve for multipliers detect it.
            claims: Claims::new(
                plan.method.treatment,
                system,
                state,
                if map.takes_first_stage() { 2 } else { 3 },
            ),
            watch: Watch::new(system),
            held: system.invariants().corrected_rows(),
            rates: system.invariants().constraint_rates(),
            trial: unmet::Trial::default(),
            kept,
            scales: state.scales.clone(),
            sizes: vec![0.0; vectors],
            errors: vec![0.0; vectors],
            estimate: vec![0.0; if kept.weights { n } else { 0 }],
            norms: Vec::new(),
            innovation: 0.0,
            field: vec![0.0; if adapts || kept.lagged { n } else { 0 }],
            field_known: false,
            sample: vec![0.0; if adapts { n } else { 0 }],
            sample_values: vec![0.0; if adapts { m } else { 0 }],
            sample_deviations: vec![0.0; groups],
            outputs: BlockOutputs::new(plan, system.dim(), map, system.events().is_some()),
            pieces: None,
            before_end: None,
            memory: state.memory.clone(),
            march: Vec::new(),
            before_attempt: Vec::new(),
            work: vec![0.0; terms_work_len(system).max(map.work_len())],
            state,
        }
    }

    fn run<O: Observer + ?Sized>(
        &mut self,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        self.check_start()?;
        self.sample_start(observer)?;
        self.begin_claims();
        if self.begin_events() {
            return Ok(Outcome::Reset);
        }
        let plan = self.plan;
        match &plan.stepping {
            Stepping::Fixed(fixed) => self.run_fixed(fixed, observer),
            Stepping::Adaptive(adaptive) => self.run_adaptive(adaptive, observer),
        }
    }

    fn run_fixed<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        if self.state.step < fixed.count() {
            let (h, _) = self.next_equal_step(fixed);
            let StepState { t, x, memory, cost, .. } = &mut *self.state;
            let workspace = &mut Workspace { kept: &mut [], memory, cost, work: &mut self.work };
            let begun = self.map.begin(StepFrom { t: *t, h, x }, workspace);
            begun.map_err(|reason| self.no_step(self.state.t, reason))?;
        }
        if self.kept.lagged && self.state.step == 0 {
            self.rehearse(fixed)?;
        }
        while self.state.step < fixed.count() {
            if self.state.step == fixed.free_steps() && self.state.before_end.is_none() {
                self.before_end = Some(Box::new(self.state.without_vectors()));
            }
            self.check_limit()?;
            let memory = &self.state.memory;
            let blocks =
                self.map.blocks().filter(|blocks| !self.needs_stages() && blocks.follows(memory));
            let blocks = blocks.filter(|_| self.is_on_the_grid(fixed));
            let ended = match blocks
                .map(|blocks| (blocks, self.block_length(fixed).min(blocks.longest())))
            {
                Some((blocks, count)) if count > 0 => self.block(fixed, blocks, count, observer)?,
                _ => self.single(fixed, observer)?,
            };
            if let Some(outcome) = ended {
                return Ok(outcome);
            }
            let at_end = self.state.step == fixed.count();
            if let Some(outcome) = self.monitor_claims(at_end, observer)? {
                return Ok(outcome);
            }
            if observer.step(self.state).map_err(Failure::Observer)? == Control::Stop {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Finished)
    }

    /// Length and end of the next of equal steps: what is left of one that an event has cut.
    fn next_equal_step(&self, fixed: &FixedSteps) -> (f64, f64) {
        let (step, t, t0) = (self.state.step, self.state.t, self.plan.t0);
        let t1 = fixed.time(t0, step + 1);
        let is_whole = self.is_on_the_grid(fixed);
        (if is_whole { fixed.length(t0, step) } else { t1 - t }, t1)
    }

    /// True unless an event has cut the step to which the state belongs.
    fn is_on_the_grid(&self, fixed: &FixedSteps) -> bool {
        let StepState { t, step, .. } = *self.state;
        self.watch.is_none() || t == fixed.time(self.plan.t0, step)
    }

    /// Make one step.
    fn single<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        match self.step(fixed, observer) {
            Ok(outcome) => Ok(outcome),
            Err(failure) => self.excuse(failure, observer),
        }
    }

    fn step<O: Observer + ?Sized>(
        &mut self,
        fixed: &FixedSteps,
        observer: &mut O,
    ) -> Result<Option<Outcome>, Failure<O::Error>> {
        let step = self.state.step;
        let (h, t1) = self.next_equal_step(fixed);
        self.make_equal_step(fixed, h, t1)?;
        let whole = Whole { steps: Steps::Fixed(fixed), h, t1 };
        let (end, h, t1) = match self.event_within(whole)? {
            Some(0.0) => return self.act().map(Some),
            Some(theta) if theta < 1.0 => (Some(step), theta * h, theta.mul_add(h, self.state.t)),
            Some(_) => (Some(step + 1), h, t1),
            None => (None, h, t1),
        };
        self.map.deviations(&self.memory, &mut self.deviations[self.groups..]);
        if end != Some(step) {
            self.sample_fixed(fixed, step + 1, t1, observer)?;
        }
        self.find_end_field(t1);
        self.hand_piece((h, t1), false, observer)?;
        self.accept(end.unwrap_or(step + 1), t1, h);
        end.map(|_| self.act()).transpose()
    }

    /// Make a step of equal ones up to its treated result.
    fn make_equal_step<E>(
        &mut self,
        fixed: &FixedSteps,
        h: f64,
        t1: f64,
    ) -> Result<(), Failure<E>> {
        let t = self.state.t;
        if !self.surrounded_step((t, t1), h)? {
            if self.map.takes_first_stage() {
                self.first_stage()?;
            }
            self.memory.copy_from_slice(&self.state.memory);
            let (map, (step, x1, mut workspace)) = (self.map, self.asked(h));
            map.fixed_step(step, x1, &mut workspace).map_err(|reason| self.no_step(t, reason))?;
        }
        self.field_known = false;
        self.measure_equal_step(fixed.h, h);
        self.treat(h, t1)
    }

    /// Arguments of the map for a step of this length from the state: the step, a place for its
    /// result, and its workspace.
    fn asked(&mut self, h: f64) -> (StepFrom<'_>, &mut Vec<f64>, Workspace<'_>) {
        let StepState { t, x, cost, .. } = &mut *self.state;
        let workspace = Workspace {
            kept: &mut self.stages,
            memory: &mut self.memory,
            cost,
            work: &mut self.work,
        };
        (StepFrom { t: *t, h, x }, &mut self.x1, workspace)
    }

    fn run_adaptive<O: Observer + ?Sized>(
        &mut self,
        adaptive: &AdaptiveSteps,
        observer: &mut O,
    ) -> Result<Outcome, Failure<O::Error>> {
        let controller = Controller::new(&self.control());
        while self.state.elapsed < adaptive.span() {
            self.look_around()?;
            let moment = adaptive.moment_at(self.state.t);
            if self.map.takes_first_stage() || self.state.controller.h == 0.0 {
                self.first_stage()?;
            }
            if self.state.controller.h == 0.0 {
                self.state.controller.h = match adaptive.first_step {
                    Some(h) => h,
                    None => self.choose_first_step(adaptive),
                };
            }
            let mut wanted =
                Wanted { h: self.state.controller.h.min(adaptive.longest_step), rejections: 0 };
            let in_loop = self.pieces.is_none()
                && !moment.is_some_and(|moment| moment.has_begun(self.state.t));
            if let Some(attempts) = self.map.attempts().filter(|_| in_loop) {
                let Some(pending) = self.march(adaptive, attempts, moment)? else {
                    if let Some(outcome) = self.monitor_claims(false, observer)? {
                        return Ok(outcome);
                    }
                    if observer.step(self.state).map_err(Failure::Observer)? == Control::Stop {
                        return Ok(Outcome::Stopped);
                    }
                    continue;
                };
                wanted = pending;
                if self.map.takes_first_stage() {
                    self.first_stage()?;
                }
            }
            let moment = adaptive.moment_at(self.state.t);
            let longest = moment.map_or(f64::INFINITY, |m| m.longest_from(self.state.t));
            let next = moment.filter(|m| m.is_point && !m.has_begun(self.state.t));
            let stop = next.map_or(f64::INFINITY, |point| point.from - adaptive.t0);
            let is_cut = longest < wanted.h && moment.is_some_and(|moment| moment.is_point);
            let before = ControllerMemory { h: wanted.h, ..self.state.controller };
            wanted.h = wanted.h.min(longest);
            let Accepted { h, end } = self.accepted_attempt(adaptive, &controller, wanted, stop)?;
            if is_cut && h == wanted.h {
                // A step that a point has cut short says little about the next one.
                self.controller = before;
            }
            let t1 = adaptive.time(end);
            if let Err(failure) = self.conclude_attempt(h, t1)
                && let Some(outcome) = self.excuse(failure, observer)?
            {
                return Ok(outcome);
            }
            let whole = Whole { steps: Steps::Adaptive(adaptive), h, t1 };
            let event = self.event_within(whole)?;
            if event == Some(0.0) {
                return self.act();
            }
            let (h, end) = match event.filter(|&theta| theta < 1.0) {
                Some(theta) => (theta * h, theta.mul_add(h, self.state.elapsed)),
                None => (h, end),
            };
            let t1 = adaptive.time(end);
            let dense = self.sample_adaptive(adaptive, h, end, observer)?;
            self.hand_piece((h, t1), dense, observer)?;
            self.renew_norms(adaptive);
            self.accept(self.state.step + 1, t1, h);
            self.state.elapsed = end;
            if event.is_some() {
                return self.act();
            }
            if let Some(outcome) = self.monitor_claims(end >= adaptive.span(), observer)? {
                return Ok(outcome);
            }
            if observer.step(self.state).map_err(Failure::Observer)? == Control::Stop {
                return Ok(Outcome::Stopped);
            }
        }
        Ok(Outcome::Finished)
    }

    /// Do what is due now and then between adaptive steps.
    fn look_around<E>(&mut self) -> Result<(), Failure<E>> {
        self.find_rounding();
        self.find_stiffness();
        if takes_scales_after(self.state.step) {
            self.give_scales(self.state.controller.h);
        }
        match self.state.events.iter().any(|memory| memory.slides && memory.has_reset()) {
            true => self.count_landings(true),
            false => Ok(()),
        }
    }

    /// Control of the steps.
    fn control(&self) -> crate::controller::StepControl {
        self.map.facts().control.expect("steps are controlled by an estimate of their error")
    }

    /// Treat the result of an attempt, which is accepted.
    fn conclude_attempt<E>(&mut self, h: f64, t1: f64) -> Result<(), Failure<E>> {
        self.scales.carried.copy_from_slice(&self.state.scales.carried);
        self.scales.advance(&self.sizes, &self.errors);
        self.treat(h, t1)
    }

    /// Make x₁ the state after this number of steps.
    fn accept(&mut self, step: u64, t1: f64, h: f64) {
        let state = &mut *self.state;
        if let Some(monitor) = self.monitor.as_mut().filter(|monitor| monitor.samples(state.step)) {
            let at = (state.step, state.t, h);
            monitor.sample(self.system, at, &state.x, &mut state.stability, &mut self.work);
        }
        state.controller = self.controller;
        self.count_deviations();
        self.advance(step, t1);
    }

    /// Raise the largest deviations to those at x₁.
    fn count_deviations(&mut self) {
        for (&deviation, drift) in self.deviations.iter().zip(&mut self.state.drift) {
            drift.max = max_or_nan(drift.max, deviation);
        }
    }

    /// Move x₁, and what is known there, into the state.
    fn advance(&mut self, step: u64, t1: f64) {
        self.judge_step(step, t1);
        let state = &mut *self.state;
        for (&deviation, drift) in self.deviations.iter().zip(&mut state.drift) {
            drift.now = deviation;
        }
        // The old vectors are overwritten by the next step before anything reads them.
        std::mem::swap(&mut state.values, &mut self.values);
        std::mem::swap(&mut state.x, &mut self.x1);
        std::mem::swap(&mut state.memory, &mut self.memory);
        std::mem::swap(&mut state.scales.carried, &mut self.scales.carried);
        let innovation = self.innovation.sqrt();
        let rounds = self.watch.as_mut().is_some_and(|watch| watch.rounds(innovation));
        if innovation > state.innovation && !rounds {
            (state.innovation, state.innovation_at) = (innovation, t1);
        }
        state.first_stage.known = self.field_known;
        if self.field_known {
            state.first_stage.value.resize(self.field.len(), 0.0);
            std::mem::swap(&mut state.first_stage.value, &mut self.field);
        }
        state.t = t1;
        state.step = step;
        if let Some(mut before_end) = self.before_end.take() {
            // Large vectors that are not written take no memory: there may be no step that needs
            // the new ones.
            let left = |vector: &mut Vec<f64>| std::mem::replace(vector, vec![0.0; vector.len()]);
            (before_end.x, before_end.memory, before_end.values) =
                (left(&mut self.x1), left(&mut self.memory), left(&mut self.values));
            state.before_end = Some(before_end);
        }
        if step.is_power_of_two() {
            let at = (t1, &state.x[..], &state.target[..]);
            raise_terms(self.system, at, (&mut state.terms, &mut state.losses), &mut self.work);
        }
    }
}
