//! Loops of machine code that iterate a step of a small model: in one lane for a run, in several
//! for an ensemble.
//!
//! Newton iterations are unrolled, as many as pilot runs needed. The largest residual of the last
//! ones is carried like a drift, lane by lane. If it is too large in a step, or a monitored system
//! comes near to being singular, the step is made by itself. Where sweeps of a fixed-point
//! iteration would make the step too long, one sweep is a loop of its own.

use super::draws::Draws;
use super::multipliers::Multipliers;
use super::nodes::Nodes;
use super::program::Taken;
use super::recorder::{self, Calls};
use crate::kernels::{Formula, Monitoring, WideBound};
use crate::policy::{FEW_ROWS, LONGEST_LOOP};
use holonome_integrate::ensemble::gather;
use holonome_integrate::newton::{CLOSE, ROUNDING_SWEEP, SWEPT};
use holonome_integrate::noise::Noise;
use holonome_integrate::phase_space::Monitored;
use holonome_integrate::scheme::map::{Blocks, Carry, KEPT_STATES, LoopPlaces, StateLoop};
use holonome_integrate::state::Cost;
use holonome_linear::unpivoted::Unpivoted;
use holonome_model::graph::fuse::fuse;
use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::op::Binary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::deviation;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

type Trace = recorder::Trace<Nodes>;
type System = recorder::System<Nodes>;

/// Steps in the trial of a loop.
const TRIAL_STEPS: u64 = 1024;

/// Rows of the numbers of a lane, in this order.
#[derive(Clone, Debug)]
pub struct LaneRows {
    /// Unknowns of a sweep that is repeated, and sizes of its last updates, the last one first.
    unknowns: Range<usize>,
    updates: Range<usize>,
    /// x.
    pub x: Range<usize>,
    /// Largest deviations.
    pub largest: Range<usize>,
    /// Largest residual, in units of the allowed one.
    pub residual: usize,
    /// Numbers carried from step to step.
    pub carried: Range<usize>,
    /// Multipliers at the start of the last step.
    pub starts: Range<usize>,
    /// Pivots of monitored systems at the start of the run.
    pub references: Range<usize>,
    /// Number of the step, if the step depends on it.
    pub number: Option<usize>,
}

impl LaneRows {
    fn new(of: &LoopIngredients, swept: usize, references: usize, counts: bool) -> LaneRows {
        let mut end = 0;
        let mut next = |len: usize| {
            end += len;
            end - len..end
        };
        let (unknowns, updates) = (next(swept), next(if swept > 0 { UPDATES } else { 0 }));
        let (x, largest) = (next(of.trace.x.len()), next(of.monitored_count()));
        let residual = next(1).start;
        let (carried, starts) = (next(of.trace.carried.len()), next(of.trace.multipliers.0.len()));
        let references = next(references);
        let number = counts.then_some(end);
        LaneRows { unknowns, updates, x, largest, residual, carried, starts, references, number }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.references.end + usize::from(self.number.is_some())
    }
}

/// Cost of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    calls: Calls,
    /// Number of systems solved in a step, and of those solved in Newton's iterations.
    solves: u64,
    iterations: u64,
}

impl Work {
    fn count(&self, steps: u64, cost: &mut Cost) {
        self.calls.count(steps, cost);
        cost.newton_iterations += steps * self.iterations;
        cost.linear_solves += steps * self.solves;
    }
}

/// Equal steps in a loop, in one lane or in several.
#[derive(Clone)]
pub struct Many {
    tapes: Arc<Tapes>,
    lanes: usize,
    steps: Pieces,
    first: Option<Pieces>,
    pivots: WideBound,
    /// Pivots of monitored systems at the start, in every lane.
    references: Vec<f64>,
    monitoring: Monitoring,
    multipliers: Multipliers,
    /// Random numbers of every lane; empty if steps take none.
    noise: Vec<Noise>,
}

/// Step in pieces that map the rows to themselves, each with the number of its repetitions.
#[derive(Clone)]
struct Pieces(Vec<(WideBound, u64)>);

impl Pieces {
    fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.0.iter_mut().for_each(|(piece, _)| piece.rebind(lane, parameters));
    }

    fn work_len(&self) -> usize {
        self.0.iter().map(|(piece, _)| piece.work_len()).max().unwrap_or(0)
    }

    fn iterate(&self, rows: &mut [f64], steps: u64, work: &mut [f64]) {
        if let [(piece, 1)] = &self.0[..] {
            return piece.iterate(rows, steps, work);
        }
        for _ in 0..steps {
            self.0.iter().for_each(|(piece, times)| piece.iterate(rows, *times, work));
        }
    }

    /// Make a step from each state of `len` numbers to the next.
    fn iterate_keeping(&self, states: &mut [f64], len: usize, work: &mut [f64]) {
        if let [(piece, 1)] = &self.0[..] {
            return piece.iterate_keeping(states, work);
        }
        for at in (len..states.len()).step_by(len) {
            states.copy_within(at - len..at, at);
            self.iterate(&mut states[at..at + len], 1, work);
        }
    }
}

/// Tapes that [`Pieces`] are compiled from.
type PieceTapes = Vec<(Tape, u64)>;

/// Tapes that the loops are compiled from.
struct Tapes {
    steps: PieceTapes,
    takes: Work,
    /// First steps of an ensemble's trajectories. They have no solutions to guess from, so they
    /// take more iterations.
    first: Option<(PieceTapes, Work)>,
    /// Pivots of monitored systems at a state.
    pivots: Tape,
    rows: LaneRows,
    draws: Option<Draws>,
}

/// States and carried numbers of every lane, before and after steps.
pub struct Lanes<'a> {
    /// x.
    pub x: &'a mut [f64],
    /// Carried numbers.
    pub carried: &'a mut [f64],
    /// Largest deviations, an output.
    pub largest: &'a mut [f64],
    /// Multipliers at the start of the last step, an output; empty if they are not wanted.
    pub starts: &'a mut [f64],
}

/// Inputs from which a loop of steps is made.
pub struct LoopIngredients<'a> {
    /// The step.
    pub trace: &'a Trace,
    /// Numbers of iterations of each of its systems.
    pub most: &'a [Taken],
    /// Numbers of iterations in the first steps of a run, if these are made in the loop, too.
    pub most_first: Option<&'a [Taken]>,
    /// γ₁ … γ_s.
    pub substeps: &'a [f64],
    /// Field with the invariants to monitor.
    pub field: &'a Field,
    /// Number of parameters of the model and of the method.
    pub own_parameters: usize,
    /// Runs on which a loop is tried; the first one is the run that it is made for.
    pub pilots: &'a [Piloted],
    /// Rule that makes multipliers from those at the start of a step.
    pub multipliers: &'a Multipliers,
    /// Random numbers of a step.
    pub draws: Option<&'a Draws>,
}

/// Run after some steps.
pub struct Piloted {
    /// Parameters of the model and of the method, F₀ of the rows that are not constraints, h and
    /// t₀.
    pub parameters: Vec<f64>,
    /// State after these steps.
    pub x: Vec<f64>,
    /// Carried numbers at `x`.
    pub memory: Vec<f64>,
    /// Number of steps made.
    pub steps: u64,
}

impl LoopIngredients<'_> {
    /// Places, among the carried numbers, of the monitored energy and of its value at the start.
    fn energy(&self) -> Option<(usize, usize)> {
        self.trace.monitored
    }

    /// Number of largest deviations.
    fn monitored_count(&self) -> usize {
        self.field.groups.len() + usize::from(self.energy().is_some())
    }

    /// Number of pivots of monitored systems that are compared with those at the start.
    fn reference_count(&self) -> usize {
        let monitored =
            self.trace.systems.iter().filter(|system| system.monitored == Monitored::Always);
        monitored.map(|system| Inverse::pivot_count(system.rows.len())).sum()
    }

    fn parameter_count(&self) -> usize {
        self.pilots[0].parameters.len()
    }

    /// Cost of a step with these numbers of iterations.
    fn work(&self, most: &[Taken]) -> Work {
        let substeps = self.substeps.len() as u64;
        let mut work = Work { calls: self.trace.calls.times(substeps), ..Work::default() };
        for (system, &Taken { iterations: count, sweeps }) in self.trace.systems.iter().zip(most) {
            let swept = Calls { hessian: 0, ..system.calls };
            work.calls = work.calls.plus(swept.times(substeps * u64::from(sweeps)));
            work.calls = work.calls.plus(system.calls.times(substeps * u64::from(count)));
            work.solves += substeps * u64::from(count);
            if !system.linear {
                work.iterations += substeps * u64::from(count);
            }
        }
        work
    }

    /// Numbers of iterations increased by `more`, for systems that iterate.
    fn more(&self, most: &[Taken], more: u32) -> Vec<Taken> {
        let count = |(system, most): (&System, &Taken)| Taken {
            iterations: most.iterations + if system.linear || most.sweeps > 0 { 0 } else { more },
            sweeps: most.sweeps + if most.sweeps > 0 { more } else { 0 },
        };
        self.trace.systems.iter().zip(most).map(count).collect()
    }

    /// Tapes of the step, in one piece or in several, and its rows; `None` if a piece is too long.
    fn tapes(&self, most: &[Taken], split: bool, frozen: bool) -> Option<(PieceTapes, LaneRows)> {
        let mut written = Written { split, frozen, ..Written::default() };
        let rows = written.step(self, most);
        let tape = |(outputs, times): &(Vec<Node>, u64)| {
            let (g, roots) = fuse(&written.graph, outputs);
            let tape = Tape::of_fused(&g, &roots, rows.count(), self.parameter_count());
            (tape.operations() <= LONGEST_LOOP).then_some((tape, *times))
        };
        Some((written.pieces.iter().map(tape).collect::<Option<_>>()?, rows))
    }

    /// True if sweeps are repeated by a loop of their own, because the step is too long with all of
    /// them unrolled.
    fn is_split(&self, most: &[Taken]) -> bool {
        let [Taken { sweeps: 1.., .. }] = most else { return false };
        // One piece by itself is short enough to be unrolled here.
        let whole = |(pieces, _): (PieceTapes, LaneRows)| {
            pieces.iter().map(|(tape, times)| tape.operations() * *times as usize).sum::<usize>()
        };
        self.tapes(most, true, false).map(whole).is_some_and(|operations| operations > LONGEST_LOOP)
    }

    /// Tape of the pivots of monitored systems at a state where nothing is carried.
    fn pivots(&self) -> Tape {
        let mut written = Written::default();
        let pivots = written.pivots(self);
        let (g, roots) = fuse(&written.graph, &pivots);
        Tape::of_fused(&g, &roots, self.trace.x.len(), self.parameter_count())
    }
}

impl Many {
    /// Loop of the step; `None` if the step is too long to be unrolled.
    pub fn new(of: &LoopIngredients) -> Option<Many> {
        // Detect eliminations that are too long without unrolling them.
        let eliminations =
            of.trace.systems.iter().zip(of.most).filter(|(_, most)| most.sweeps == 0);
        let operations: usize =
            eliminations.map(|(system, _)| system.unpivoted().operations()).sum();
        if of.substeps.len() * operations > LONGEST_LOOP {
            return None;
        }
        let split = of.is_split(&of.more(of.most, 1))
            || of.most_first.is_some_and(|most| of.is_split(most));
        let first = of.most_first.and_then(|most| {
            let (tapes, _) = of.tapes(most, split, false)?;
            Some((tapes, of.work(most)))
        });
        // The last iteration with the matrix of the one before it, if that is enough; one iteration
        // more, if need be.
        let attempts = [(0, true), (0, false), (1, true), (1, false)];
        let (monitoring, multipliers) = (Monitoring::of(of.field), of.multipliers.of_starts());
        let sweeps = of.most.iter().any(|most| most.sweeps > 0);
        attempts.into_iter().find_map(|(more, frozen)| {
            let most = of.more(of.most, more);
            let enough = if sweeps && more == 0 { SWEPT_WELL } else { 1.0 };
            let (steps, rows) = of.tapes(&most, split, frozen)?;
            let (takes, pivots) = (of.work(&most), of.pivots());
            let tapes = Arc::new(Tapes {
                steps,
                takes,
                first: first.clone(),
                pivots,
                rows,
                draws: of.draws.cloned(),
            });
            let parameters = &of.pilots[0].parameters;
            let mut many =
                Many::compiled(tapes, 1, parameters, (monitoring.clone(), multipliers.clone()));
            // The first pilot comes last, so that the loop stays bound to its run.
            let serves = of.pilots.iter().rev().all(|pilot| {
                many.rebind(0, &pilot.parameters);
                many.begin(&pilot.x);
                many.references.iter().all(|pivot| pivot.is_finite()) && many.serves(pilot, enough)
            });
            serves.then_some(many)
        })
    }

    fn compiled(
        tapes: Arc<Tapes>,
        lanes: usize,
        parameters: &[f64],
        (monitoring, multipliers): (Monitoring, Multipliers),
    ) -> Many {
        let compiled = |tape: &Tape| WideBound::new(tape, lanes, parameters);
        let pieces = |tapes: &PieceTapes| {
            Pieces(tapes.iter().map(|(tape, times)| (compiled(tape), *times)).collect())
        };
        Many {
            steps: pieces(&tapes.steps),
            first: tapes.first.as_ref().map(|(first, _)| pieces(first)),
            pivots: compiled(&tapes.pivots),
            references: vec![0.0; tapes.rows.references.len() * lanes],
            lanes,
            monitoring,
            multipliers,
            noise: tapes
                .draws
                .iter()
                .flat_map(|draws| vec![draws.noise(parameters); lanes])
                .collect(),
            tapes,
        }
    }

    /// This loop in so many lanes, which all have these parameters (as [`Piloted::parameters`]).
    pub fn in_lanes(&self, lanes: usize, parameters: &[f64]) -> Many {
        let (monitoring, multipliers) = (self.monitoring.clone(), self.multipliers.clone());
        Many::compiled(Arc::clone(&self.tapes), lanes, parameters, (monitoring, multipliers))
    }

    /// True if the loop is as good as single steps, from the state of a pilot run on: residuals are
    /// at most `enough`.
    fn serves(&self, pilot: &Piloted, enough: f64) -> bool {
        let (mut x, mut memory) = (pilot.x.clone(), pilot.memory.clone());
        let mut largest = vec![0.0; self.tapes.rows.largest.len()];
        let mut work = vec![0.0; self.work_len()];
        let carried = &mut memory[..self.tapes.rows.carried.len()];
        let lanes = Lanes { x: &mut x, carried, largest: &mut largest, starts: &mut [] };
        self.iterate(pilot.steps..pilot.steps + TRIAL_STEPS, lanes, &mut work)
            .iter()
            .all(|residual| *residual <= enough)
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.steps.rebind(lane, parameters);
        if let Some(first) = &mut self.first {
            first.rebind(lane, parameters);
        }
        if !self.references.is_empty() {
            self.pivots.rebind(lane, parameters);
        }
        if let Some(draws) = &self.tapes.draws {
            self.noise[lane] = draws.noise(parameters);
        }
    }

    /// Prepare for runs that start at `x`, in every lane.
    pub fn begin(&mut self, x: &[f64]) {
        if !self.references.is_empty() {
            let mut work = vec![0.0; self.pivots.work_len()];
            self.pivots.run(&vec![0.0; self.lanes], x, &mut self.references, &mut work);
        }
    }

    /// Prepare for the run that lane `lane` of `other` is prepared for.
    pub fn begin_as(&mut self, other: &Many, lane: usize) {
        gather(&other.references, other.lanes, lane, &mut self.references);
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Rows of the numbers.
    pub fn rows(&self) -> &LaneRows {
        &self.tapes.rows
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        let first = self.first.as_ref().map_or(0, Pieces::work_len);
        self.states() * self.tapes.rows.count() * self.lanes + self.steps.work_len().max(first)
    }

    /// Number of states with room in the scratch: a run keeps some on its way.
    fn states(&self) -> usize {
        if self.lanes == 1 { 1 + KEPT_STATES } else { 1 }
    }

    /// Number of these steps that are first ones of a run, which have a loop of their own.
    fn first_of(&self, steps: &Range<u64>) -> u64 {
        match self.first {
            Some(_) => super::program::FIRST_STEPS.min(steps.end).saturating_sub(steps.start),
            None => 0,
        }
    }

    /// Add the cost of the steps with these numbers.
    pub fn count(&self, steps: Range<u64>, cost: &mut Cost) {
        let begun = self.first_of(&steps);
        if let Some((_, takes)) = &self.tapes.first {
            takes.count(begun, cost);
        }
        self.tapes.takes.count(steps.end - steps.start - begun, cost);
    }

    /// Make the steps with these numbers in every lane. Return the largest residual of each lane,
    /// at most 1 if all its steps are good.
    pub fn iterate<'w>(&self, steps: Range<u64>, lanes: Lanes, work: &'w mut [f64]) -> &'w [f64] {
        let len = self.tapes.rows.count() * self.lanes;
        self.in_loops(steps, lanes, work, |states, steps, work| {
            self.run(&mut states[..len], steps, work)
        })
    }

    /// Put the lanes in the first of [`Many::states`], let `run` make its steps, and copy their
    /// results back to the lanes.
    fn in_loops<'w>(
        &self,
        steps: Range<u64>,
        lanes: Lanes,
        work: &'w mut [f64],
        run: impl FnOnce(&mut [f64], Range<u64>, &mut [f64]),
    ) -> &'w [f64] {
        let (k, rows) = (self.lanes, &self.tapes.rows);
        let of = |rows: &Range<usize>| rows.start * k..rows.end * k;
        let (states, work) = work.split_at_mut(self.states() * rows.count() * k);
        let state = &mut states[..rows.count() * k];
        state[of(&rows.x)].copy_from_slice(lanes.x);
        state[rows.largest.start * k..(rows.residual + 1) * k].fill(0.0);
        state[of(&rows.carried)].copy_from_slice(lanes.carried);
        state[of(&rows.starts)].fill(0.0);
        state[of(&rows.references)].copy_from_slice(&self.references);
        if let Some(number) = rows.number {
            state[number * k..(number + 1) * k].fill(steps.start as f64);
        }
        run(states, steps, work);
        let state = &states[..rows.count() * k];
        lanes.x.copy_from_slice(&state[of(&rows.x)]);
        lanes.largest.copy_from_slice(&state[of(&rows.largest)]);
        self.monitoring.finish(lanes.largest, k);
        lanes.carried.copy_from_slice(&state[of(&rows.carried)]);
        lanes.starts.copy_from_slice(&state[of(&rows.starts)][..lanes.starts.len()]);
        &state[rows.residual * k..(rows.residual + 1) * k]
    }
}

impl StateLoop for Many {
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]) {
        let begun = self.first_of(&steps);
        if let Some(first) = self.first.as_ref().filter(|_| begun > 0) {
            self.repeat(first, state, begun, work);
        }
        if steps.end - steps.start > begun {
            self.repeat(&self.steps, state, steps.end - steps.start - begun, work);
        }
    }

    fn run_keeping(&self, states: &mut [f64], first: u64, work: &mut [f64]) {
        let len = self.tapes.rows.count() * self.lanes;
        let steps = first..first + (states.len() / len - 1) as u64;
        let begun = self.first_of(&steps) as usize;
        if let Some(first) = self.first.as_ref().filter(|_| begun > 0) {
            self.repeat_keeping(first, &mut states[..(begun + 1) * len], work);
        }
        self.repeat_keeping(&self.steps, &mut states[begun * len..], work);
    }
}

impl Many {
    /// Put the random numbers of the next step into the state of every lane.
    fn draw(&self, draws: &Draws, state: &mut [f64]) {
        draws.put(&self.noise, &mut state[self.tapes.rows.carried.start * self.lanes..]);
    }

    fn repeat(&self, pieces: &Pieces, state: &mut [f64], steps: u64, work: &mut [f64]) {
        let Some(draws) = &self.tapes.draws else { return pieces.iterate(state, steps, work) };
        for _ in 0..steps {
            self.draw(draws, state);
            pieces.iterate(state, 1, work);
        }
    }

    fn repeat_keeping(&self, pieces: &Pieces, states: &mut [f64], work: &mut [f64]) {
        let len = self.tapes.rows.count() * self.lanes;
        let Some(draws) = &self.tapes.draws else {
            return pieces.iterate_keeping(states, len, work);
        };
        for at in (len..states.len()).step_by(len) {
            self.draw(draws, &mut states[at - len..at]);
            pieces.iterate_keeping(&mut states[at - len..at + len], len, work);
        }
    }
}

impl Blocks for Many {
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let rows = &self.tapes.rows;
        let (from_x, carried_at, start) =
            (rows.x.clone(), rows.carried.clone(), rows.starts.clone());
        let places = LoopPlaces { len: rows.count(), x: from_x, carried: carried_at, start };
        let (carried, unchanged) = carry.memory.split_at_mut(rows.carried.len());
        let (mut outputs, lanes) = (carry.outputs, Lanes { x, carried, largest, starts: &mut [] });
        let residuals = self.in_loops(first..first + count, lanes, work, |states, steps, work| {
            outputs.along(steps, (states, &places), unchanged, (self, work));
        });
        let good = residuals.iter().all(|residual| *residual <= 1.0);
        if good {
            self.count(first..first + count, carry.cost);
        }
        good
    }

    fn makes_first_steps(&self) -> bool {
        self.first.is_some()
    }

    fn start_len(&self) -> usize {
        self.multipliers.start_len()
    }

    fn multipliers(&self, around: (f64, f64), start: &[f64], memory: &[f64], lambda: &mut [f64]) {
        self.multipliers.put(around, start, memory, lambda);
    }
}

/// Step on the way to its tapes.
#[derive(Default)]
struct Written {
    graph: Graph,
    /// Outputs of the rows, piece by piece, each with the number of its repetitions.
    pieces: Vec<(Vec<Node>, u64)>,
    /// True if the sweeps of the step's system are pieces of their own.
    split: bool,
    /// True if the last iteration of several takes the matrix of the one before.
    frozen: bool,
}

/// Largest residual that an iteration with the matrix of the one before brings to round-off. Where
/// the last full iteration has squared an error e, the matrix is off by about e, and e·e² is below
/// 1e-16.
const CLOSE_FROZEN: f64 = 1e-11;

impl Written {
    /// Unroll the step as maps of its [`LaneRows`] to themselves.
    fn step(&mut self, of: &LoopIngredients, most: &[Taken]) -> LaneRows {
        let (trace, own) = (of.trace, of.own_parameters);
        let constraints = of.field.constraints;
        let mut monitored = of.field.clone();
        let delta = deviation(&mut monitored, |g, row| g.parameter(own + row - constraints));
        let monitoring = Monitoring::of(of.field);
        let (nodes, members) = monitoring.deviations(&mut monitored, &delta);
        let monitor = Formula::unfused(&monitored.graph, &nodes);
        let counts = monitor.reads_time() || trace.reads_time();
        let swept = if self.split { trace.systems[0].unknowns.len() } else { 0 };
        let rows = LaneRows::new(of, swept, of.reference_count(), counts);

        let mut now = Now::of(&mut self.graph, &rows);
        let g = &mut self.graph;
        let (h, t0) =
            (g.parameter(of.parameter_count() - 2), g.parameter(of.parameter_count() - 1));
        let references: Vec<Node> = rows.references.clone().map(|k| g.state(k)).collect();
        let (zero, one) = (g.zero(), g.one());
        let number = rows.number.map_or(zero, |number| g.state(number));
        let t = g.fma(number, h, t0);
        for (deviation, group) in monitor.at(g, t, &now.x).into_iter().zip(members) {
            now.largest[group] = g.largest(deviation, now.largest[group]);
        }
        let (mut made, mut starts): (_, Vec<Node>) =
            (0.0, rows.starts.clone().map(|k| g.state(k)).collect());
        let mut references_left = references.iter();
        for (k, &gamma) in of.substeps.iter().enumerate() {
            let g = &mut self.graph;
            let (before, part) = (g.constant(made), g.constant(gamma));
            let (t, h) = (g.fma(before, h, t), g.mul(part, h));
            let mut known = known_at(trace, &now.x, (t, h), &now.carried);
            for (system, &most) in trace.systems.iter().zip(most) {
                let g = &mut self.graph;
                if most.sweeps > 0 {
                    let updates = if self.split {
                        let guesses = g.copy_from(&trace.symbols.graph, &system.guesses, &known);
                        self.pieces
                            .push((now.outputs(g, &guesses, (&starts, &references), number), 1));
                        now = Now::of(g, &rows);
                        known = known_at(trace, &now.x, (t, h), &now.carried);
                        let unknowns: Vec<Node> =
                            rows.unknowns.clone().map(|k| g.state(k)).collect();
                        let updates = [0, 1, 2].map(|k| g.state(rows.updates.start + k));
                        let (swept, after) =
                            sweep(g, trace, system, (&unknowns, updates), &mut known);
                        self.pieces.push(([&swept[..], &after].concat(), u64::from(most.sweeps)));
                        known.extend(system.unknowns.iter().copied().zip(unknowns));
                        updates
                    } else {
                        sweeps(g, trace, system, most, &mut known)
                    };
                    let off = unswept(g, updates);
                    now.residual = g.largest(off, now.residual);
                    continue;
                }
                let (count, residual) = (most.iterations, &mut now.residual);
                let inverse_pivots =
                    solve(g, trace, system, count, self.frozen, &mut known, residual);
                if system.monitored == Monitored::Definite {
                    *residual = definite(g, trace, system, &known, *residual);
                }
                if system.monitored == Monitored::Always {
                    for (inverse, rows) in inverse_pivots {
                        let per_length = per_length(g, inverse, rows, h);
                        if let Some(&reference) = references_left.next() {
                            let ratio = g.mul(reference, per_length);
                            *residual = remember(g, ratio, *residual);
                        }
                    }
                }
            }
            let g = &mut self.graph;
            if k == 0 {
                starts = g.copy_from(&trace.symbols.graph, &trace.multipliers.0, &known);
            }
            let result: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
            now.x = g.copy_from(&trace.symbols.graph, &result, &known);
            now.carried = g.copy_from(&trace.symbols.graph, &trace.next(), &known);
            // The pivots of every substep are compared with those of the first one at the start.
            references_left = references.iter();
            made += gamma;
        }
        let g = &mut self.graph;
        if let (Some((energy, start)), Some(last)) = (of.energy(), now.largest.last_mut()) {
            let deviation = g.sub(now.carried[energy], now.carried[start]);
            *last = g.largest(deviation, *last);
        }
        let next = g.add(number, one);
        let unknowns: Vec<Node> = rows.unknowns.clone().map(|k| g.state(k)).collect();
        let outputs = now.outputs(g, &unknowns, (&starts, &references), next);
        self.pieces.push((outputs, 1));
        self.pieces.iter_mut().for_each(|(outputs, _)| outputs.truncate(rows.count()));
        rows
    }

    /// Unroll the pivots of monitored systems over the step's length, for a first substep from x
    /// before which nothing is carried.
    fn pivots(&mut self, of: &LoopIngredients) -> Vec<Node> {
        let (trace, g) = (of.trace, &mut self.graph);
        let (h, t0) =
            (g.parameter(of.parameter_count() - 2), g.parameter(of.parameter_count() - 1));
        let x: Vec<Node> = (0..trace.x.len()).map(|i| g.state(i)).collect();
        let (zero, one, part) = (g.zero(), g.one(), g.constant(of.substeps[0]));
        let h = g.mul(part, h);
        let mut carried = vec![zero; trace.carried.len()];
        // No noise: the normal number from a uniform 1 is 0.
        for ([u, _], _) in trace.drawn.iter().flat_map(|drawn| &drawn.uniform) {
            carried[*u] = one;
        }
        let mut known = known_at(trace, &x, (t0, h), &carried);
        let (mut pivots, mut residual) = (Vec::new(), zero);
        for (system, &most) in trace.systems.iter().zip(of.most) {
            if most.sweeps > 0 {
                sweeps(g, trace, system, most, &mut known);
                continue;
            }
            let inverse_pivots =
                solve(g, trace, system, most.iterations, false, &mut known, &mut residual);
            if system.monitored == Monitored::Always {
                for (inverse, rows) in inverse_pivots {
                    let per_length = per_length(g, inverse, rows, h);
                    pivots.push(g.div(one, per_length));
                }
            }
        }
        pivots
    }
}

/// Nodes of the rows at a place of a step.
struct Now {
    x: Vec<Node>,
    largest: Vec<Node>,
    residual: Node,
    carried: Vec<Node>,
}

impl Now {
    /// Rows at the start of a piece.
    fn of(g: &mut Graph, rows: &LaneRows) -> Now {
        let mut states =
            |rows: &Range<usize>| -> Vec<Node> { rows.clone().map(|k| g.state(k)).collect() };
        let (x, largest, carried) = (states(&rows.x), states(&rows.largest), states(&rows.carried));
        Now { x, largest, residual: g.state(rows.residual), carried }
    }

    /// All rows at the end of a piece, followed by the number of the step.
    fn outputs(
        &self,
        g: &mut Graph,
        swept: &[Node],
        (starts, references): (&[Node], &[Node]),
        number: Node,
    ) -> Vec<Node> {
        let updates = if swept.is_empty() { vec![] } else { vec![g.zero(); UPDATES] };
        let parts = [
            swept,
            &updates,
            &self.x,
            &self.largest,
            &[self.residual],
            &self.carried,
            starts,
            references,
            &[number],
        ];
        parts.concat()
    }
}

/// Nodes for the inputs of a step from x.
fn known_at(
    trace: &Trace,
    x: &[Node],
    (t, h): (Node, Node),
    carried: &[Node],
) -> FxHashMap<Node, Node> {
    let inputs =
        trace.x.iter().chain([&trace.t, &trace.h]).copied().zip(x.iter().copied().chain([t, h]));
    inputs
        .chain(trace.carried.iter().zip(carried).map(|(&(input, _), &node)| (input, node)))
        .collect()
}

/// Inverse pivot without the h that the equations hold, once in every row.
fn per_length(g: &mut Graph, inverse: Node, rows: usize, h: Node) -> Node {
    (0..rows).fold(inverse, |inverse, _| g.mul(inverse, h))
}

/// Add to the largest residual how near a pivot is to being lost; `ratio` is the pivot at the start
/// over the present one.
fn remember(g: &mut Graph, ratio: Node, residual: Node) -> Node {
    let (zero, lost, infinite) =
        (g.zero(), g.constant(super::program::LOST), g.constant(f64::INFINITY));
    let positive = g.binary(Binary::Less, zero, ratio);
    let near = g.mul(lost, ratio);
    let bad = g.select(positive, near, infinite);
    g.largest(bad, residual)
}

/// Add infinity to the largest residual if an eigenvalue of a matrix that has to be definite is
/// below [`NOTABLE`](crate::monitored::NOTABLE).
fn definite(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    known: &FxHashMap<Node, Node>,
    residual: Node,
) -> Node {
    let mut matrix = matrix(g, trace, system, &system.elimination_order(), known);
    let notable = g.constant(crate::monitored::NOTABLE);
    for i in 0..matrix.size() {
        let shifted = g.sub(matrix.get(i, i), notable);
        matrix.set(i, i, shifted);
    }
    let (zero, infinite) = (g.zero(), g.constant(f64::INFINITY));
    let inverse_pivots = Factors::general(g, &matrix).inverse_pivots().to_vec();
    inverse_pivots.into_iter().fold(residual, |residual, inverse| {
        let positive = g.binary(Binary::Less, zero, inverse);
        let bad = g.select(positive, zero, infinite);
        g.largest(bad, residual)
    })
}

impl System {
    fn unpivoted(&self) -> Unpivoted {
        Unpivoted::new(self.rows.len(), &self.entries())
    }

    /// Order in which the rows are eliminated.
    fn elimination_order(&self) -> Vec<u32> {
        match self.rows.len() {
            rows if rows <= FEW_ROWS => (0..rows as u32).collect(),
            _ => self.unpivoted().order(),
        }
    }
}

/// Newton matrix of a system, with its rows in an `order`.
fn matrix(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    order: &[u32],
    known: &FxHashMap<Node, Node>,
) -> Matrix {
    let entries: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
    let values = g.copy_from(&trace.symbols.graph, &entries, known);
    let mut position = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        position[old as usize] = new;
    }
    let mut matrix = Matrix::zeros(g, order.len());
    for (&(i, j, _), &value) in system.jacobian.iter().zip(&values) {
        matrix.set(position[i as usize], position[j as usize], value);
    }
    matrix
}

/// Unroll the Newton iterations of a system and make its solution known. Return the inverse pivots
/// of the last matrix.
fn solve(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    count: u32,
    frozen: bool,
    known: &mut FxHashMap<Node, Node>,
    residual: &mut Node,
) -> Vec<(Node, usize)> {
    let mut unknowns = g.copy_from(&trace.symbols.graph, &system.guesses, known);
    let (mut inverse, order) = (None, system.elimination_order());
    for iteration in 0..count {
        known.extend(system.unknowns.iter().copied().zip(unknowns.iter().copied()));
        let residuals = g.copy_from(&trace.symbols.graph, &system.residuals, known);
        let last = iteration + 1 == count;
        let reuses = last && frozen && inverse.is_some();
        if last && !system.linear {
            let allowed = g.constant(if reuses { CLOSE_FROZEN } else { CLOSE });
            let off = off(g, trace, &system.sizes, known, &residuals, allowed);
            *residual = g.largest(off, *residual);
        }
        if !reuses {
            let matrix = matrix(g, trace, system, &order, known);
            inverse = Some(Inverse::new(g, matrix));
        }
        let residuals: Vec<Node> = order.iter().map(|&row| residuals[row as usize]).collect();
        let steps = inverse.as_ref().map_or(Vec::new(), |inverse| inverse.times(g, &residuals));
        for (&unknown, step) in order.iter().zip(steps) {
            unknowns[unknown as usize] = g.sub(unknowns[unknown as usize], step);
        }
    }
    known.extend(system.unknowns.iter().copied().zip(unknowns));
    inverse.map_or(Vec::new(), |inverse| inverse.pivots())
}

/// Part of the allowed residual that the sweeps of a trial may leave without one more sweep: later
/// steps may contract less.
const SWEPT_WELL: f64 = 1.0 / 16.0;

/// Number of updates of a fixed-point iteration that tell whether it has ended.
const UPDATES: usize = 3;

/// Unroll the sweeps of a system and make its solution known. Return the sizes of the last updates.
fn sweeps(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    most: Taken,
    known: &mut FxHashMap<Node, Node>,
) -> [Node; UPDATES] {
    let mut unknowns = g.copy_from(&trace.symbols.graph, &system.guesses, known);
    let mut updates = [g.zero(); UPDATES];
    for _ in 0..most.sweeps {
        (unknowns, updates) = sweep(g, trace, system, (&unknowns, updates), known);
    }
    known.extend(system.unknowns.iter().copied().zip(unknowns));
    updates
}

/// Unroll one sweep, from these unknowns and after these updates.
fn sweep(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    (unknowns, updates): (&[Node], [Node; UPDATES]),
    known: &mut FxHashMap<Node, Node>,
) -> (Vec<Node>, [Node; UPDATES]) {
    known.extend(system.unknowns.iter().copied().zip(unknowns.iter().copied()));
    let residuals = g.copy_from(&trace.symbols.graph, &system.residuals, known);
    let one = g.one();
    let update = off(g, trace, &system.sweep_sizes, known, &residuals, one);
    let swept = unknowns
        .iter()
        .zip(residuals)
        .map(|(&unknown, residual)| g.sub(unknown, residual))
        .collect();
    (swept, [update, updates[0], updates[1]])
}

/// Error of a fixed-point iteration over the allowed one, 0 if its last update is rounding. With
/// last updates δ, δ/θ and δ/θ² the error is √θ θδ, as for single steps.
fn unswept(g: &mut Graph, [last, _, third]: [Node; UPDATES]) -> Node {
    let (zero, allowed, rounding) = (g.zero(), g.constant(1.0 / SWEPT), g.constant(ROUNDING_SWEEP));
    let square = g.div(last, third);
    let contraction = g.sqrt(square);
    let (root, error) = (g.sqrt(contraction), g.mul(contraction, last));
    let error = g.mul(root, error);
    let left = g.mul(error, allowed);
    let is_rounding = g.binary(Binary::LessEqual, last, rounding);
    g.select(is_rounding, zero, left)
}

/// Largest of some residuals, over its scale and over the allowed part of that.
fn off(
    g: &mut Graph,
    trace: &Trace,
    sizes: &[Node],
    known: &FxHashMap<Node, Node>,
    residuals: &[Node],
    allowed: Node,
) -> Node {
    let sizes = g.copy_from(&trace.symbols.graph, sizes, known);
    // If nothing cancels, the residual is 0; `tiny` keeps 0/0 away.
    let (zero, tiny) = (g.zero(), g.constant(f64::MIN_POSITIVE));
    // One division for all residuals of one scale.
    let mut sized: Vec<(Node, Node)> = Vec::new();
    for (&residual, size) in residuals.iter().zip(sizes) {
        match sized.iter_mut().find(|(known, _)| *known == size) {
            Some((_, largest)) => *largest = g.largest(residual, *largest),
            None => sized.push((size, g.largest(residual, zero))),
        }
    }
    sized.into_iter().fold(zero, |off, (size, largest)| {
        let allowed = g.fma(allowed, size, tiny);
        let relative = g.div(largest, allowed);
        g.largest(relative, off)
    })
}

/// Inverse of a Newton matrix: for one or two rows by its determinant, which needs one fewer
/// division in sequence; for more by its factors.
enum Inverse {
    /// 1/a
    One(Node),
    /// The matrix and 1/det
    Two(Matrix, Node),
    More(Factors),
}

impl Inverse {
    fn new(g: &mut Graph, matrix: Matrix) -> Inverse {
        let one = g.one();
        match matrix.size() {
            1 => Inverse::One(g.div(one, matrix.get(0, 0))),
            2 => {
                let (ad, bc) = (
                    g.mul(matrix.get(0, 0), matrix.get(1, 1)),
                    g.mul(matrix.get(0, 1), matrix.get(1, 0)),
                );
                let determinant = g.sub(ad, bc);
                let inverse = g.div(one, determinant);
                Inverse::Two(matrix, inverse)
            }
            _ => Inverse::More(Factors::general(g, &matrix)),
        }
    }

    /// Solution for a right-hand side.
    fn times(&self, g: &mut Graph, r: &[Node]) -> Vec<Node> {
        match self {
            Inverse::One(inverse) => vec![g.mul(r[0], *inverse)],
            Inverse::Two(a, inverse) => {
                let mut cramer = |a: Node, r: Node, b: Node, s: Node| {
                    let (ar, bs) = (g.mul(a, r), g.mul(b, s));
                    let difference = g.sub(ar, bs);
                    g.mul(difference, *inverse)
                };
                vec![
                    cramer(a.get(1, 1), r[0], a.get(0, 1), r[1]),
                    cramer(a.get(0, 0), r[1], a.get(1, 0), r[0]),
                ]
            }
            Inverse::More(factors) => factors.solve(g, r),
        }
    }

    /// Number of [`Inverse::pivots`] of a matrix with so many rows.
    fn pivot_count(rows: usize) -> usize {
        if rows <= 2 { 1 } else { rows }
    }

    /// Inverses of numbers that vanish if the matrix is singular, each with the number of rows that
    /// it is made from.
    fn pivots(&self) -> Vec<(Node, usize)> {
        match self {
            Inverse::One(inverse) => vec![(*inverse, 1)],
            Inverse::Two(_, inverse) => vec![(*inverse, 2)],
            Inverse::More(factors) => {
                factors.inverse_pivots().iter().map(|&inverse| (inverse, 1)).collect()
            }
        }
    }
}
