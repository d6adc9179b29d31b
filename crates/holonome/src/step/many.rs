//! Loops of machine code that iterate a step of a small model: in one lane for a run, in several
//! for an ensemble.
//!
//! Newton iterations are unrolled, as many as pilot runs needed. The largest residual of the last
//! ones is carried like a drift, lane by lane. If it is too large in a step, or a monitored system
//! comes near to being singular, the step is made by itself. Where sweeps of a fixed-point
//! iteration would make the step too long, one sweep is a loop of its own.

mod unrolling;

use super::draws::Draws;
use super::encounter::MET;
use super::multipliers::Multipliers;
use super::nodes::Nodes;
use super::program::Taken;
use super::recorder::{self, Calls};
use crate::kernels::{Monitoring, WideBound};
use holonome_integrate::ensemble::gather;
use holonome_integrate::noise::Noise;
use holonome_integrate::phase_space::Monitored;
use holonome_integrate::scheme::map::{Blocks, Carry, KEPT_STATES, LoopPlaces, StateLoop};
use holonome_integrate::state::Cost;
use holonome_model::graph::Node;
use holonome_model::graph::fuse::fuse;
use holonome_model::graph::tape::Tape;
use holonome_model::treatment::Field;
use std::ops::Range;
use std::sync::Arc;
use unrolling::{Inverse, SOLVED_WELL, UPDATES, pivots, unrolled, unseen};

type Trace = recorder::Trace<Nodes>;
type System = recorder::System<Nodes>;

/// Steps in the trial of a loop.
const TRIAL_STEPS: u64 = 1024;

/// Steps without a look at the invariants between two looks, for each step that a look costs: looks
/// take about an eighth of the time.
const LOOKS_COST: u64 = 8;
/// Bounds of the number of steps of which one looks.
const OFTEN: u64 = 64;
const SELDOM: u64 = 512;

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
    /// Sides of the functions of events.
    sides: Range<usize>,
    /// Largest residual, in units of the allowed one.
    pub residual: usize,
    /// Numbers carried from step to step.
    pub carried: Range<usize>,
    /// Multipliers at the start of the last step.
    pub starts: Range<usize>,
    /// Pivots of monitored systems at the start of the run.
    pub references: Range<usize>,
    /// Largest nearness of bodies that may meet.
    pub nearness: Option<usize>,
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
        let sides = next(of.field.watched.len());
        let residual = next(1).start;
        let (carried, starts) = (next(of.trace.carried.len()), next(of.trace.multipliers.0.len()));
        let references = next(references);
        let nearness = of.trace.encounter.map(|_| next(1).start);
        let number = counts.then_some(end);
        LaneRows {
            unknowns,
            updates,
            x,
            largest,
            sides,
            residual,
            carried,
            starts,
            references,
            nearness,
            number,
        }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.references.end + [self.nearness, self.number].into_iter().flatten().count()
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
    /// Steps that do not look, if there are such.
    unseen: Option<Pieces>,
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
    /// Steps without a look at the invariants and without the model's state, and the number of steps
    /// of which one looks.
    unseen: Option<(PieceTapes, u64)>,
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
    /// Sides of the functions of events; empty if they are not watched.
    pub sides: &'a mut [f64],
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
    /// Largest number of operations of a step.
    pub longest: usize,
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
        let (graph, pieces, rows) = unrolled(self, most, split, frozen);
        let tape = |(outputs, times): &(Vec<Node>, u64)| {
            let (g, roots) = fuse(&graph, outputs);
            let tape = Tape::of_fused(&g, &roots, rows.count(), self.parameter_count());
            (tape.operations() <= self.longest).then_some((tape, *times))
        };
        Some((pieces.iter().map(tape).collect::<Option<_>>()?, rows))
    }

    /// Tape of a step that does not look, and the number of steps of which one, that of `looking`, does.
    fn unseen(
        &self,
        most: &[Taken],
        frozen: bool,
        looking: &PieceTapes,
    ) -> Option<(PieceTapes, u64)> {
        let [(looking, 1)] = &looking[..] else { return None };
        let (graph, outputs) = unseen(self, most, frozen)?;
        let (g, roots) = fuse(&graph, &outputs);
        let tape = Tape::of_fused(&g, &roots, looking.states, self.parameter_count());
        let more = looking.operations() / tape.operations().max(1);
        let looks = (LOOKS_COST * more as u64).clamp(OFTEN, SELDOM);
        Some((vec![(tape, 1)], looks))
    }

    /// True if sweeps are repeated by a loop of their own, because the step is too long with all of
    /// them unrolled.
    fn is_split(&self, most: &[Taken]) -> bool {
        let [Taken { sweeps: 1.., .. }] = most else { return false };
        // One piece by itself is short enough to be unrolled here.
        let whole = |(pieces, _): (PieceTapes, LaneRows)| {
            pieces.iter().map(|(tape, times)| tape.operations() * *times as usize).sum::<usize>()
        };
        self.tapes(most, true, false).map(whole).is_some_and(|operations| operations > self.longest)
    }

    /// Tape of the pivots of monitored systems at a state where nothing is carried.
    fn pivots(&self) -> Tape {
        let (graph, pivots) = pivots(self);
        let (g, roots) = fuse(&graph, &pivots);
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
        if of.substeps.len() * operations > of.longest {
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
        let varies = sweeps || of.trace.systems.iter().any(|system| system.monotone.is_some());
        attempts.into_iter().find_map(|(more, frozen)| {
            let most = of.more(of.most, more);
            let enough = if varies && more == 0 { SOLVED_WELL } else { 1.0 };
            let (steps, rows) = of.tapes(&most, split, frozen)?;
            let unseen = of.unseen(&most, frozen, &steps);
            let (takes, pivots) = (of.work(&most), of.pivots());
            let tapes = Arc::new(Tapes {
                steps,
                unseen,
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
            unseen: tapes.unseen.as_ref().map(|(unseen, _)| pieces(unseen)),
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
        let largest = &mut largest;
        let lanes = Lanes { x: &mut x, carried, largest, sides: &mut [], starts: &mut [] };
        let steps = pilot.steps..pilot.steps + TRIAL_STEPS;
        self.iterate(steps, lanes, &mut work).residuals.iter().all(|residual| *residual <= enough)
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.steps.rebind(lane, parameters);
        for pieces in [&mut self.unseen, &mut self.first].into_iter().flatten() {
            pieces.rebind(lane, parameters);
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
        let others = [&self.unseen, &self.first].into_iter().flatten().map(Pieces::work_len);
        let longest = others.fold(self.steps.work_len(), usize::max);
        self.states() * self.tapes.rows.count() * self.lanes + longest
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

    /// Make the steps with these numbers in every lane.
    pub fn iterate<'w>(&self, steps: Range<u64>, lanes: Lanes, work: &'w mut [f64]) -> Made<'w> {
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
    ) -> Made<'w> {
        let (k, rows) = (self.lanes, &self.tapes.rows);
        let of = |rows: &Range<usize>| rows.start * k..rows.end * k;
        let (states, work) = work.split_at_mut(self.states() * rows.count() * k);
        let state = &mut states[..rows.count() * k];
        state[of(&rows.x)].copy_from_slice(lanes.x);
        state[rows.largest.start * k..(rows.residual + 1) * k].fill(0.0);
        if let Some(nearness) = rows.nearness {
            state[nearness * k..(nearness + 1) * k].fill(0.0);
        }
        let sides = rows.sides.start * k..rows.sides.start * k + lanes.sides.len();
        state[sides.clone()].copy_from_slice(lanes.sides);
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
        lanes.sides.copy_from_slice(&state[sides]);
        lanes.carried.copy_from_slice(&state[of(&rows.carried)]);
        lanes.starts.copy_from_slice(&state[of(&rows.starts)][..lanes.starts.len()]);
        Made {
            residuals: &state[rows.residual * k..(rows.residual + 1) * k],
            nearness: rows.nearness.map_or(&[], |near| &state[near * k..(near + 1) * k]),
        }
    }
}

/// How well steps are made in a loop.
pub struct Made<'w> {
    /// Largest residual of each lane, in units of the allowed one, before bodies meet.
    residuals: &'w [f64],
    /// Largest nearness in each lane; empty if no bodies may meet.
    nearness: &'w [f64],
}

impl Made<'_> {
    /// For every lane, true if all its steps are good.
    pub fn good(&self) -> impl Iterator<Item = bool> {
        let far = |lane: usize| self.nearness.get(lane).is_none_or(|nearness| *nearness < MET);
        self.residuals.iter().enumerate().map(move |(lane, residual)| *residual <= 1.0 && far(lane))
    }
}

impl StateLoop for Many {
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]) {
        let begun = self.first_of(&steps);
        if let Some(first) = self.first.as_ref().filter(|_| begun > 0) {
            self.repeat(first, state, begun, work);
        }
        let mut left = steps.end - steps.start - begun;
        let unseen = self.unseen.as_ref().zip(self.tapes.unseen.as_ref());
        while let Some((pieces, (_, looks))) = unseen.filter(|_| left > 0) {
            // The last one has the state.
            let some = left.min(*looks);
            if some > 1 {
                self.repeat(pieces, state, some - 1, work);
            }
            self.repeat(&self.steps, state, 1, work);
            left -= some;
        }
        if left > 0 {
            self.repeat(&self.steps, state, left, work);
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
        let (mut outputs, sides) = (carry.outputs, carry.sides);
        let lanes = Lanes { x, carried, largest, sides, starts: &mut [] };
        let made = self.in_loops(first..first + count, lanes, work, |states, steps, work| {
            outputs.along(steps, (states, &places), unchanged, (self, work));
        });
        let good = made.good().all(|good| good);
        if good {
            self.count(first..first + count, carry.cost);
        }
        good
    }

    fn watched(&self) -> usize {
        self.tapes.rows.sides.len()
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
