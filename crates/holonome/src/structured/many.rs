//! A step as a map from state to state, iterated in one loop of machine code, for small models: in one lane for a run, in
//! several for an ensemble. Every Newton iteration is written out, as often as pilot runs needed it. What the residuals
//! were at the last of them is remembered like a drift, lane by lane; a step in which one is too large, or in which a
//! watched system comes near to being singular, is made by itself.

use super::multipliers::Multipliers;
use super::nodes::Nodes;
use super::program::Taken;
use super::recorder::{self, Calls};
use crate::compiled::{Formula, Watching, WideBound};
use crate::policy::{FEW_ROWS, LONGEST_LOOP};
use holonome_integrate::ensemble::gather;
use holonome_integrate::newton::CLOSE;
use holonome_integrate::phase_space::Watched;
use holonome_integrate::scheme::map::{Blocks, Carry, LoopPlaces, Outputs};
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

/// Steps by which a loop is tried.
const TRIAL_STEPS: u64 = 1024;

/// Where the numbers of a lane stand, one row after the other.
#[derive(Clone, Debug)]
pub struct Rows {
    /// x.
    pub x: Range<usize>,
    /// The largest deviations.
    pub largest: Range<usize>,
    /// The largest residual, in units of what is allowed.
    pub residual: usize,
    /// What is carried from step to step.
    pub carried: Range<usize>,
    /// The multipliers at the start of the last step.
    pub starts: Range<usize>,
    /// The pivots of watched systems at the start of the run.
    pub references: Range<usize>,
    /// The number of the step, where the step depends on it.
    pub number: Option<usize>,
}

impl Rows {
    fn new(of: &Ingredients, references: usize, counts: bool) -> Rows {
        let mut end = 0;
        let mut next = |len: usize| {
            end += len;
            end - len..end
        };
        let (x, largest) = (next(of.trace.x.len()), next(of.watched_count()));
        let residual = next(1).start;
        let (carried, starts) = (next(of.trace.carried.len()), next(of.trace.multipliers.0.len()));
        let references = next(references);
        Rows { x, largest, residual, carried, starts, references, number: counts.then_some(end) }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.references.end + usize::from(self.number.is_some())
    }
}

/// What so many steps of one kind take.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    calls: Calls,
    /// Systems solved in a step, and how many of them in Newton's iterations.
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
    steps: WideBound,
    first: Option<WideBound>,
    pivots: WideBound,
    /// The pivots of watched systems at the start, in every lane.
    references: Vec<f64>,
    watching: Watching,
    multipliers: Multipliers,
}

/// What the loops are compiled from.
struct Tapes {
    steps: Tape,
    takes: Work,
    /// The first steps of an ensemble's trajectories, which have nothing to guess from: more iterations.
    first: Option<(Tape, Work)>,
    /// The pivots of watched systems at a state.
    pivots: Tape,
    rows: Rows,
}

/// What steps start from, and what becomes of it; in every lane.
pub struct Lanes<'a> {
    /// x.
    pub x: &'a mut [f64],
    /// What is carried.
    pub carried: &'a mut [f64],
    /// Receives the largest deviations.
    pub largest: &'a mut [f64],
    /// Receives what the last step has found at its start, if it is not empty.
    pub starts: &'a mut [f64],
}

/// What a loop of steps is made of.
pub struct Ingredients<'a> {
    /// The step.
    pub trace: &'a Trace,
    /// What each of its systems takes.
    pub most: &'a [Taken],
    /// What they take in the first steps of a run, where these are to be made in the loop, too.
    pub most_first: Option<&'a [Taken]>,
    /// γ₁ … γ_s.
    pub substeps: &'a [f64],
    /// The invariants to watch.
    pub field: &'a Field,
    /// How many parameters the model and the method have.
    pub own_parameters: usize,
    /// Runs by which a loop is tried, of which the first is the one that it is made for.
    pub pilots: &'a [Piloted],
    /// How multipliers are made of those at the start of a step.
    pub multipliers: &'a Multipliers,
}

/// A run that has come some way.
pub struct Piloted {
    /// The parameters of the model and of the method, F₀ of the rows that are no constraints, h and t₀.
    pub parameters: Vec<f64>,
    /// A state on the way, what is carried there, and after how many steps it is.
    pub x: Vec<f64>,
    /// What is carried there.
    pub memory: Vec<f64>,
    /// After how many steps that is.
    pub steps: u64,
}

impl Ingredients<'_> {
    /// The energy that the step watches: where it stands among what is carried, and where its value at the start does.
    fn energy(&self) -> Option<(usize, usize)> {
        self.trace.watched
    }

    /// How many largest deviations are remembered.
    fn watched_count(&self) -> usize {
        self.field.groups.len() + usize::from(self.energy().is_some())
    }

    /// How many pivots of watched systems are compared with those at the start.
    fn reference_count(&self) -> usize {
        let watched = self.trace.systems.iter().filter(|system| system.watched == Watched::Always);
        watched.map(|system| Inverse::pivot_count(system.rows.len())).sum()
    }

    fn parameter_count(&self) -> usize {
        self.pilots[0].parameters.len()
    }

    /// What a step takes with so many iterations.
    fn work(&self, most: &[Taken]) -> Work {
        let substeps = self.substeps.len() as u64;
        let mut work = Work { calls: self.trace.calls.times(substeps), ..Work::default() };
        for (system, &Taken { iterations: count, sweeps, .. }) in self.trace.systems.iter().zip(most) {
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

    /// So many more iterations of the systems that take any.
    fn more(&self, most: &[Taken], more: u32) -> Vec<Taken> {
        let count = |(system, most): (&System, &Taken)| Taken {
            iterations: most.iterations + if system.linear || most.sweeps > 0 { 0 } else { more },
            sweeps: most.sweeps + if most.sweeps > 0 { more } else { 0 },
            ..*most
        };
        self.trace.systems.iter().zip(most).map(count).collect()
    }

    /// The step as a tape, if it is small enough, and where its numbers stand.
    fn tape(&self, most: &[Taken], frozen: bool) -> Option<(Tape, Rows)> {
        let mut written = Written { frozen, ..Written::default() };
        let (outputs, rows) = written.step(self, most);
        let (g, roots) = fuse(&written.graph, &outputs);
        let tape = Tape::of_fused(&g, &roots, outputs.len(), self.parameter_count());
        (tape.operations() <= LONGEST_LOOP).then_some((tape, rows))
    }

    /// The pivots of watched systems at a state where nothing is carried.
    fn pivots(&self) -> Tape {
        let mut written = Written::default();
        let pivots = written.pivots(self);
        let (g, roots) = fuse(&written.graph, &pivots);
        Tape::of_fused(&g, &roots, self.trace.x.len(), self.parameter_count())
    }
}

impl Many {
    /// The loop, if the step is small enough to be written out.
    pub fn new(of: &Ingredients) -> Option<Many> {
        // Without writing it out first.
        let eliminations = of.trace.systems.iter().zip(of.most).filter(|(_, most)| most.sweeps == 0);
        let operations: usize = eliminations.map(|(system, _)| system.unpivoted().operations()).sum();
        if of.substeps.len() * operations > LONGEST_LOOP {
            return None;
        }
        let first = of.most_first.and_then(|most| {
            let (tape, _) = of.tape(most, false)?;
            Some((tape, of.work(most)))
        });
        // The last iteration with the matrix of the one before it, if that is enough; one iteration more, if need be.
        let attempts = [(0, true), (0, false), (1, true), (1, false)];
        let (watching, multipliers) = (Watching::of(of.field), of.multipliers.of_starts());
        attempts.into_iter().find_map(|(more, frozen)| {
            let most = of.more(of.most, more);
            let (steps, rows) = of.tape(&most, frozen)?;
            let (takes, pivots) = (of.work(&most), of.pivots());
            let tapes = Arc::new(Tapes { steps, takes, first: first.clone(), pivots, rows });
            let parameters = &of.pilots[0].parameters;
            let mut many = Many::compiled(tapes, 1, parameters, (watching.clone(), multipliers.clone()));
            // The first one last: the loop is that of its run.
            let serves = of.pilots.iter().rev().all(|pilot| {
                many.rebind(0, &pilot.parameters);
                many.begin(&pilot.x);
                many.references.iter().all(|pivot| pivot.is_finite()) && many.serves(pilot)
            });
            serves.then_some(many)
        })
    }

    fn compiled(
        tapes: Arc<Tapes>,
        lanes: usize,
        parameters: &[f64],
        (watching, multipliers): (Watching, Multipliers),
    ) -> Many {
        let compiled = |tape: &Tape| WideBound::new(tape, lanes, parameters);
        Many {
            steps: compiled(&tapes.steps),
            first: tapes.first.as_ref().map(|(first, _)| compiled(first)),
            pivots: compiled(&tapes.pivots),
            references: vec![0.0; tapes.rows.references.len() * lanes],
            lanes,
            watching,
            multipliers,
            tapes,
        }
    }

    /// The same in so many lanes, which all have these parameters (as [`Piloted::parameters`]).
    pub fn in_lanes(&self, lanes: usize, parameters: &[f64]) -> Many {
        let (watching, multipliers) = (self.watching.clone(), self.multipliers.clone());
        Many::compiled(Arc::clone(&self.tapes), lanes, parameters, (watching, multipliers))
    }

    /// Whether it is as good as single steps from where these have brought a pilot run.
    fn serves(&self, pilot: &Piloted) -> bool {
        let (mut x, mut memory) = (pilot.x.clone(), pilot.memory.clone());
        let mut largest = vec![0.0; self.tapes.rows.largest.len()];
        let mut work = vec![0.0; self.work_len()];
        let (innovation, outputs) = (&mut 0.0, Outputs::default());
        let carry = Carry { memory: &mut memory, scales: &mut [], innovation, outputs };
        self.steps(pilot.steps, TRIAL_STEPS, &mut x, carry, &mut largest, &mut work)
    }

    /// Gives one lane other parameters.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.steps.rebind(lane, parameters);
        if let Some(first) = &mut self.first {
            first.rebind(lane, parameters);
        }
        if !self.references.is_empty() {
            self.pivots.rebind(lane, parameters);
        }
    }

    /// Prepares for runs that start at `x`, in every lane.
    pub fn begin(&mut self, x: &[f64]) {
        if !self.references.is_empty() {
            let mut work = vec![0.0; self.pivots.work_len()];
            self.pivots.run(&vec![0.0; self.lanes], x, &mut self.references, &mut work);
        }
    }

    /// Prepares for the run that lane `lane` of `other` is prepared for.
    pub fn begin_as(&mut self, other: &Many, lane: usize) {
        gather(&other.references, other.lanes, lane, &mut self.references);
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Where numbers stand.
    pub fn rows(&self) -> &Rows {
        &self.tapes.rows
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        let first = self.first.as_ref().map_or(0, WideBound::work_len);
        self.tapes.rows.count() * self.lanes + self.steps.work_len().max(first)
    }

    /// How many of these steps belong to the first ones of a run, which have a loop of their own.
    fn first_of(&self, steps: &Range<u64>) -> u64 {
        match self.first {
            Some(_) => super::program::FIRST_STEPS.min(steps.end).saturating_sub(steps.start),
            None => 0,
        }
    }

    /// Makes the steps of these numbers in every lane; gives the largest residuals, up to 1 where all steps are good.
    pub fn iterate<'w>(&self, steps: Range<u64>, lanes: Lanes, work: &'w mut [f64]) -> &'w [f64] {
        self.in_loops(steps, lanes, work, |state, steps, work| self.run(state, steps, work))
    }

    /// Puts the lanes where a loop finds them, lets `run` make its steps, and takes what these came to.
    fn in_loops<'w>(
        &self,
        steps: Range<u64>,
        lanes: Lanes,
        work: &'w mut [f64],
        run: impl FnOnce(&mut [f64], Range<u64>, &mut [f64]),
    ) -> &'w [f64] {
        let (k, rows) = (self.lanes, &self.tapes.rows);
        let of = |rows: &Range<usize>| rows.start * k..rows.end * k;
        let (state, work) = work.split_at_mut(rows.count() * k);
        state[of(&rows.x)].copy_from_slice(lanes.x);
        state[rows.largest.start * k..(rows.residual + 1) * k].fill(0.0);
        state[of(&rows.carried)].copy_from_slice(lanes.carried);
        state[of(&rows.starts)].fill(0.0);
        state[of(&rows.references)].copy_from_slice(&self.references);
        if let Some(number) = rows.number {
            state[number * k..(number + 1) * k].fill(steps.start as f64);
        }
        run(state, steps, work);
        lanes.x.copy_from_slice(&state[of(&rows.x)]);
        lanes.largest.copy_from_slice(&state[of(&rows.largest)]);
        self.watching.finish(lanes.largest, k);
        lanes.carried.copy_from_slice(&state[of(&rows.carried)]);
        lanes.starts.copy_from_slice(&state[of(&rows.starts)][..lanes.starts.len()]);
        &state[rows.residual * k..(rows.residual + 1) * k]
    }

    /// Makes the steps of these numbers in the state of a loop.
    fn run(&self, state: &mut [f64], steps: Range<u64>, work: &mut [f64]) {
        let begun = self.first_of(&steps);
        if let Some(first) = self.first.as_ref().filter(|_| begun > 0) {
            first.iterate(state, begun, work);
        }
        if steps.end - steps.start > begun {
            self.steps.iterate(state, steps.end - steps.start - begun, work);
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
        let places = LoopPlaces { x: rows.x.clone(), carried: rows.carried.clone(), start: rows.starts.clone() };
        let (carried, unchanged) = carry.memory.split_at_mut(rows.carried.len());
        let (mut outputs, lanes) = (carry.outputs, Lanes { x, carried, largest, starts: &mut [] });
        let residuals = self.in_loops(first..first + count, lanes, work, |state, steps, work| {
            outputs.along(steps, (state, &places), unchanged, |state, steps| self.run(state, steps, work));
        });
        residuals.iter().all(|residual| *residual <= 1.0)
    }

    fn count(&self, steps: Range<u64>, cost: &mut Cost) {
        let begun = self.first_of(&steps);
        if let Some((_, takes)) = &self.tapes.first {
            takes.count(begun, cost);
        }
        self.tapes.takes.count(steps.end - steps.start - begun, cost);
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

/// A step being written out.
#[derive(Default)]
struct Written {
    graph: Graph,
    /// Whether the last iteration of several takes the matrix of the one before.
    frozen: bool,
}

/// A residual below this before an iteration with the matrix of the one before is at round-off after it: where the last
/// full iteration has squared an error e, the matrix is off by about e, and e·e² is below 1e-16.
const CLOSE_FROZEN: f64 = 1e-11;

impl Written {
    /// Writes the step as a map of its [`Rows`] to themselves.
    fn step(&mut self, of: &Ingredients, most: &[Taken]) -> (Vec<Node>, Rows) {
        let (trace, own) = (of.trace, of.own_parameters);
        let constraints = of.field.constraints;
        let mut watched = of.field.clone();
        let delta = deviation(&mut watched, |g, row| g.parameter(own + row - constraints));
        let watching = Watching::of(of.field);
        let (nodes, members) = watching.deviations(&mut watched, &delta);
        let watch = Formula::unfused(&watched.graph, &nodes);
        let counts = watch.reads_time() || trace.reads_time();
        let rows = Rows::new(of, of.reference_count(), counts);

        let g = &mut self.graph;
        let (h, t0) = (g.parameter(of.parameter_count() - 2), g.parameter(of.parameter_count() - 1));
        let mut states = |rows: &Range<usize>| -> Vec<Node> { rows.clone().map(|k| g.state(k)).collect() };
        let (mut x, mut largest) = (states(&rows.x), states(&rows.largest));
        let (mut carried, references) = (states(&rows.carried), states(&rows.references));
        let mut residual = g.state(rows.residual);
        let (zero, one) = (g.zero(), g.one());
        let number = rows.number.map_or(zero, |number| g.state(number));
        let t = g.fma(number, h, t0);
        for (deviation, group) in watch.at(g, t, &x).into_iter().zip(members) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        let (mut made, mut starts) = (0.0, Vec::new());
        let mut references_left = references.iter();
        for (k, &gamma) in of.substeps.iter().enumerate() {
            let g = &mut self.graph;
            let (before, part) = (g.constant(made), g.constant(gamma));
            let (t, h) = (g.fma(before, h, t), g.mul(part, h));
            let mut known = known_at(trace, &x, (t, h), &carried);
            for (system, &most) in trace.systems.iter().zip(most) {
                let g = &mut self.graph;
                if most.sweeps > 0 {
                    sweep(g, trace, system, most, &mut known, &mut residual);
                    continue;
                }
                let inverse_pivots = solve(g, trace, system, most.iterations, self.frozen, &mut known, &mut residual);
                if system.watched == Watched::Definite {
                    residual = definite(g, trace, system, &known, residual);
                }
                if system.watched == Watched::Always {
                    for (inverse, rows) in inverse_pivots {
                        let per_length = per_length(g, inverse, rows, h);
                        if let Some(&reference) = references_left.next() {
                            let ratio = g.mul(reference, per_length);
                            residual = remember(g, ratio, residual);
                        }
                    }
                }
            }
            let g = &mut self.graph;
            if k == 0 {
                starts = g.copy_from(&trace.symbols.graph, &trace.multipliers.0, &known);
            }
            let result: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
            x = g.copy_from(&trace.symbols.graph, &result, &known);
            carried = g.copy_from(&trace.symbols.graph, &trace.next(), &known);
            // Every substep has the pivots of the first at the start to be compared with.
            references_left = references.iter();
            made += gamma;
        }
        let g = &mut self.graph;
        if let (Some((energy, start)), Some(last)) = (of.energy(), largest.last_mut()) {
            let deviation = g.sub(carried[energy], carried[start]);
            *last = g.largest(deviation, *last);
        }
        let mut outputs = [&x[..], &largest, &[residual], &carried, &starts, &references].concat();
        if rows.number.is_some() {
            outputs.push(g.add(number, one));
        }
        (outputs, rows)
    }

    /// Writes the pivots of watched systems over the step's length, of a first substep from x before which nothing is
    /// carried.
    fn pivots(&mut self, of: &Ingredients) -> Vec<Node> {
        let (trace, g) = (of.trace, &mut self.graph);
        let (h, t0) = (g.parameter(of.parameter_count() - 2), g.parameter(of.parameter_count() - 1));
        let x: Vec<Node> = (0..trace.x.len()).map(|i| g.state(i)).collect();
        let (zero, one, part) = (g.zero(), g.one(), g.constant(of.substeps[0]));
        let h = g.mul(part, h);
        let mut known = known_at(trace, &x, (t0, h), &vec![zero; trace.carried.len()]);
        let (mut pivots, mut residual) = (Vec::new(), zero);
        for (system, &most) in trace.systems.iter().zip(of.most) {
            if most.sweeps > 0 {
                sweep(g, trace, system, most, &mut known, &mut residual);
                continue;
            }
            let inverse_pivots = solve(g, trace, system, most.iterations, false, &mut known, &mut residual);
            if system.watched == Watched::Always {
                for (inverse, rows) in inverse_pivots {
                    let per_length = per_length(g, inverse, rows, h);
                    pivots.push(g.div(one, per_length));
                }
            }
        }
        pivots
    }
}

/// What the inputs of a step from x are.
fn known_at(trace: &Trace, x: &[Node], (t, h): (Node, Node), carried: &[Node]) -> FxHashMap<Node, Node> {
    let inputs = trace.x.iter().chain([&trace.t, &trace.h]).copied().zip(x.iter().copied().chain([t, h]));
    inputs.chain(trace.carried.iter().zip(carried).map(|(&(input, _), &node)| (input, node))).collect()
}

/// An inverse pivot without the h that the equations hold, once in every row.
fn per_length(g: &mut Graph, inverse: Node, rows: usize, h: Node) -> Node {
    (0..rows).fold(inverse, |inverse, _| g.mul(inverse, h))
}

/// Adds to the largest residual how near a pivot is to being lost: `ratio` is that at the start over it.
fn remember(g: &mut Graph, ratio: Node, residual: Node) -> Node {
    let (zero, lost, infinite) = (g.zero(), g.constant(super::program::LOST), g.constant(f64::INFINITY));
    let positive = g.binary(Binary::Less, zero, ratio);
    let near = g.mul(lost, ratio);
    let bad = g.select(positive, near, infinite);
    g.largest(bad, residual)
}

/// Adds to the largest residual whether an eigenvalue of a matrix that is to be definite is notable.
fn definite(g: &mut Graph, trace: &Trace, system: &System, known: &FxHashMap<Node, Node>, residual: Node) -> Node {
    let mut matrix = matrix(g, trace, system, &system.elimination_order(), known);
    let notable = g.constant(crate::watched::NOTABLE);
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

    /// The order in which its rows are eliminated.
    fn elimination_order(&self) -> Vec<u32> {
        match self.rows.len() {
            rows if rows <= FEW_ROWS => (0..rows as u32).collect(),
            _ => self.unpivoted().order(),
        }
    }
}

/// The Newton matrix of a system, its rows in an `order`.
fn matrix(g: &mut Graph, trace: &Trace, system: &System, order: &[u32], known: &FxHashMap<Node, Node>) -> Matrix {
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

/// Writes out the Newton iterations of a system and makes its solution known; gives the inverse pivots of the last matrix.
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
            let sizes = g.copy_from(&trace.symbols.graph, &system.sizes, known);
            let close = g.constant(if reuses { CLOSE_FROZEN } else { CLOSE });
            for (&r, &size) in residuals.iter().zip(&sizes) {
                // Where nothing cancels there is nothing to be off by.
                let tiny = g.constant(f64::MIN_POSITIVE);
                let allowed = g.fma(close, size, tiny);
                let relative = g.div(r, allowed);
                *residual = g.largest(relative, *residual);
            }
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

/// Updates of a fixed-point iteration may come to this many times what they came to in the pilot run, but for rounding.
const SWEPT_LESS: f64 = 4.0;
const ROUNDING_SWEEP: f64 = 2.0 * f64::EPSILON;

/// Writes out the sweeps of a system and makes its solution known.
fn sweep(
    g: &mut Graph,
    trace: &Trace,
    system: &System,
    most: Taken,
    known: &mut FxHashMap<Node, Node>,
    residual: &mut Node,
) {
    let mut unknowns = g.copy_from(&trace.symbols.graph, &system.guesses, known);
    for sweep in 1..=most.sweeps {
        known.extend(system.unknowns.iter().copied().zip(unknowns.iter().copied()));
        let updates = g.copy_from(&trace.symbols.graph, &system.residuals, known);
        if sweep == most.sweeps {
            let sizes = g.copy_from(&trace.symbols.graph, &system.sizes, known);
            let allowed = g.constant((SWEPT_LESS * most.update).max(ROUNDING_SWEEP));
            let tiny = g.constant(f64::MIN_POSITIVE);
            for (&update, &size) in updates.iter().zip(&sizes) {
                let allowed = g.fma(allowed, size, tiny);
                let relative = g.div(update, allowed);
                *residual = g.largest(relative, *residual);
            }
        }
        for (unknown, update) in unknowns.iter_mut().zip(updates) {
            *unknown = g.sub(*unknown, update);
        }
    }
    known.extend(system.unknowns.iter().copied().zip(unknowns));
}

/// The inverse of a Newton matrix: of one or two rows by its determinant, which takes one division after the other less;
/// of more by its factors.
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
                let (ad, bc) = (g.mul(matrix.get(0, 0), matrix.get(1, 1)), g.mul(matrix.get(0, 1), matrix.get(1, 0)));
                let determinant = g.sub(ad, bc);
                let inverse = g.div(one, determinant);
                Inverse::Two(matrix, inverse)
            }
            _ => Inverse::More(Factors::general(g, &matrix)),
        }
    }

    /// The solution for a right-hand side.
    fn times(&self, g: &mut Graph, r: &[Node]) -> Vec<Node> {
        match self {
            Inverse::One(inverse) => vec![g.mul(r[0], *inverse)],
            Inverse::Two(a, inverse) => {
                let mut cramer = |a: Node, r: Node, b: Node, s: Node| {
                    let (ar, bs) = (g.mul(a, r), g.mul(b, s));
                    let difference = g.sub(ar, bs);
                    g.mul(difference, *inverse)
                };
                vec![cramer(a.get(1, 1), r[0], a.get(0, 1), r[1]), cramer(a.get(0, 0), r[1], a.get(1, 0), r[0])]
            }
            Inverse::More(factors) => factors.solve(g, r),
        }
    }

    /// How many [`Inverse::pivots`] a matrix of so many rows has.
    fn pivot_count(rows: usize) -> usize {
        if rows <= 2 { 1 } else { rows }
    }

    /// The inverses of numbers that vanish where the matrix is singular, each with the number of rows that it is made of.
    fn pivots(&self) -> Vec<(Node, usize)> {
        match self {
            Inverse::One(inverse) => vec![(*inverse, 1)],
            Inverse::Two(_, inverse) => vec![(*inverse, 2)],
            Inverse::More(factors) => factors.inverse_pivots().iter().map(|&inverse| (inverse, 1)).collect(),
        }
    }
}
