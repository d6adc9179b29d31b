//! Many equal steps in one loop of machine code, for small models: every Newton iteration as often as it was needed in a
//! pilot run, written out. What the residuals were at the last of them is remembered like a drift; a block of steps in
//! which one was too large, or in which a watched system came near to being singular, is made again step by step.

use super::multipliers::Multipliers;
use super::nodes::Nodes;
use super::program::Taken;
use super::recorder::{self, Calls};
use crate::compiled::{Bound, Formula, Watching};
use holonome_integrate::newton::CLOSE;
use holonome_integrate::phase_space::Watched;
use holonome_integrate::scheme::map::{Blocks, Carry};
use holonome_integrate::state::Cost;
use holonome_model::graph::fuse::fuse;
use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::op::Binary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use holonome_model::treatment::correction::deviation;
use rustc_hash::FxHashMap;

type Trace = recorder::Trace<Nodes>;
type System = recorder::System<Nodes>;

/// A step is written out up to this many operations: about what the first-level instruction cache holds.
const LONGEST_STEP: usize = 4000;

/// Steps by which a loop is tried.
const TRIAL_STEPS: u64 = 1024;

/// Systems up to this size are eliminated in formulas.
const LARGEST_SYSTEM: usize = 16;

/// Equal steps in a loop.
pub struct Repeated {
    kernel: Bound,
    watching: Watching,
    /// Length of (x, largest deviations, largest residual, what is carried, multipliers at the start of the last step, number
    /// of the step).
    len: usize,
    multipliers: Multipliers,
    carried: usize,
    calls: Calls,
    /// Systems solved in a step, and how many of them in Newton's iterations.
    solves: u64,
    iterations: u64,
}

/// What a loop of steps is made of.
pub struct Ingredients<'a> {
    /// The step.
    pub trace: &'a Trace,
    /// What each of its systems takes.
    pub most: &'a [Taken],
    /// γ₁ … γ_s.
    pub substeps: &'a [f64],
    /// The invariants to watch.
    pub field: &'a Field,
    /// The parameters of the model, F₀ of the rows that are no constraints, h and t₀.
    pub parameters: &'a [f64],
    /// How many the model has.
    pub own_parameters: usize,
    /// A state on the way, what is carried there, and after how many steps it is.
    pub start: &'a [f64],
    pub memory: &'a [f64],
    pub steps: u64,
    /// How multipliers are made of those at the start of a step.
    pub multipliers: &'a Multipliers,
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
}

impl Repeated {
    /// The loop, if the step is small enough to be written out.
    pub fn new(of: &Ingredients) -> Option<Repeated> {
        let large = |(system, most): (&System, &Taken)| system.rows.len() > LARGEST_SYSTEM && most.sweeps == 0;
        if of.trace.systems.iter().zip(of.most).any(large) {
            return None;
        }
        let mut written = Written::default();
        // The pivots of watched systems at the start tell what they are to be like.
        let pivots = written.step(of, None).pivots;
        let reference = written.at_start(of, &pivots);
        if reference.iter().any(|pivot| !pivot.is_finite()) {
            return None;
        }
        // The last iteration with the matrix of the one before it, if that is enough; one iteration more, if need be.
        let attempts = [(0, true), (0, false), (1, true), (1, false)];
        attempts.into_iter().find_map(|(more, frozen)| {
            let count = |(system, most): (&System, &Taken)| Taken {
                iterations: most.iterations + if system.linear || most.sweeps > 0 { 0 } else { more },
                sweeps: most.sweeps + if most.sweeps > 0 { more } else { 0 },
                ..*most
            };
            let most: Vec<Taken> = of.trace.systems.iter().zip(of.most).map(count).collect();
            Repeated::written(&Ingredients { most: &most, ..*of }, &reference, frozen)
        })
    }

    fn written(of: &Ingredients, reference: &[f64], frozen: bool) -> Option<Repeated> {
        let mut written = Written { frozen, ..Written::default() };
        let outputs = written.step(of, Some(reference)).outputs;
        let (g, roots) = fuse(&written.graph, &outputs);
        let tape = Tape::of_fused(&g, &roots, outputs.len(), of.parameters.len());
        if tape.operations() > LONGEST_STEP {
            return None;
        }
        let substeps = of.substeps.len() as u64;
        let mut calls = of.trace.calls.times(substeps);
        let (mut solves, mut iterations) = (0, 0);
        for (system, &Taken { iterations: count, sweeps, .. }) in of.trace.systems.iter().zip(of.most) {
            let swept = Calls { hessian: 0, ..system.calls };
            calls = calls.plus(swept.times(substeps * u64::from(sweeps)));
            calls = calls.plus(system.calls.times(substeps * u64::from(count)));
            solves += substeps * u64::from(count);
            if !system.linear {
                iterations += substeps * u64::from(count);
            }
        }
        let repeated = Repeated {
            kernel: Bound::new(&tape, of.parameters),
            watching: Watching::of(of.field),
            multipliers: of.multipliers.of_starts(),
            len: tape.states,
            carried: of.trace.carried.len(),
            calls,
            solves,
            iterations,
        };
        repeated.serves(of).then_some(repeated)
    }

    /// Whether it is as good as single steps from where these have brought the pilot run.
    fn serves(&self, of: &Ingredients) -> bool {
        let (mut x, mut memory) = (of.start.to_vec(), of.memory.to_vec());
        let mut largest = vec![0.0; of.watched_count()];
        let mut work = vec![0.0; self.work_len()];
        let carry = Carry { memory: &mut memory, scales: &mut [], innovation: &mut 0.0, start: &mut [] };
        self.steps(of.steps, TRIAL_STEPS, &mut x, carry, &mut largest, &mut work)
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.len + self.kernel.work_len()
    }
}

impl Blocks for Repeated {
    fn steps(
        &self,
        first: u64,
        count: u64,
        x: &mut [f64],
        carry: Carry,
        largest: &mut [f64],
        work: &mut [f64],
    ) -> bool {
        let memory = carry.memory;
        let (n, groups) = (x.len(), largest.len());
        let (state, work) = work.split_at_mut(self.len);
        state[..n].copy_from_slice(x);
        // The deviations and the residual.
        state[n..=n + groups].fill(0.0);
        let carried = n + groups + 1..n + groups + 1 + self.carried;
        state[carried.clone()].copy_from_slice(&memory[..self.carried]);
        let starts = carried.end..carried.end + self.start_len();
        if let Some(number) = state.get_mut(starts.end) {
            *number = first as f64;
        }
        self.kernel.iterate(state, count, work);
        let residual = state[n + groups];
        x.copy_from_slice(&state[..n]);
        largest.copy_from_slice(&state[n..n + groups]);
        self.watching.finish(largest, 1);
        memory[..self.carried].copy_from_slice(&state[carried]);
        let start = carry.start;
        start.copy_from_slice(&state[starts][..start.len()]);
        residual <= 1.0
    }

    fn count(&self, steps: u64, cost: &mut Cost) {
        self.calls.count(steps, cost);
        cost.newton_iterations += steps * self.iterations;
        cost.linear_solves += steps * self.solves;
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

/// What a step gives.
struct Outputs {
    outputs: Vec<Node>,
    /// The pivots of watched systems over the step's length, of the first substep.
    pivots: Vec<Node>,
}

impl Written {
    /// Writes the step as a map of (x, largest deviations, largest residual, what is carried, multipliers at its start,
    /// number) to itself.
    fn step(&mut self, of: &Ingredients, reference: Option<&[f64]>) -> Outputs {
        let (trace, n, own) = (of.trace, of.trace.x.len(), of.own_parameters);
        let constraints = of.field.constraints;
        let mut watched = of.field.clone();
        let delta = deviation(&mut watched, |g, row| g.parameter(own + row - constraints));
        let watching = Watching::of(of.field);
        let (nodes, members) = watching.deviations(&mut watched, &delta);
        let watch = Formula::unfused(&watched.graph, &nodes);

        let (g, frozen) = (&mut self.graph, self.frozen);
        let (h, t0) = (g.parameter(of.parameters.len() - 2), g.parameter(of.parameters.len() - 1));
        let mut x: Vec<Node> = (0..n).map(|i| g.state(i)).collect();
        let groups = of.watched_count();
        let mut largest: Vec<Node> = (0..groups).map(|k| g.state(n + k)).collect();
        let mut residual = g.state(n + groups);
        let mut carried: Vec<Node> = (0..trace.carried.len()).map(|k| g.state(n + groups + 1 + k)).collect();
        let counts = watch.reads_time() || trace.reads_time();
        let start_count = trace.multipliers.0.len();
        let (number, one) =
            (if counts { g.state(n + groups + 1 + carried.len() + start_count) } else { g.zero() }, g.one());
        let t = g.fma(number, h, t0);
        for (deviation, group) in watch.at(g, t, &x).into_iter().zip(members) {
            largest[group] = g.largest(deviation, largest[group]);
        }
        let (mut made, mut pivots, mut starts) = (0.0, Vec::new(), Vec::new());
        for (k, &gamma) in of.substeps.iter().enumerate() {
            let (before, part) = (g.constant(made), g.constant(gamma));
            let (t, h) = (g.fma(before, h, t), g.mul(part, h));
            let mut known: FxHashMap<Node, Node> = FxHashMap::default();
            for (&input, &node) in trace.x.iter().chain([&trace.t, &trace.h]).zip(x.iter().chain([&t, &h])) {
                known.insert(input, node);
            }
            known.extend(trace.carried.iter().zip(&carried).map(|(&(input, _), &node)| (input, node)));
            let mut taken = 0;
            for (system, &most) in trace.systems.iter().zip(of.most) {
                if most.sweeps > 0 {
                    sweep(g, trace, system, most, &mut known, &mut residual);
                    continue;
                }
                let inverse_pivots = solve(g, trace, system, most.iterations, frozen, &mut known, &mut residual);
                if system.watched == Watched::Definite {
                    residual = definite(g, trace, system, &known, residual);
                }
                if system.watched == Watched::Always {
                    for (inverse, rows) in inverse_pivots {
                        // The equations hold h once in every row.
                        let per_length = (0..rows).fold(inverse, |inverse, _| g.mul(inverse, h));
                        if k == 0 {
                            pivots.push(g.div(one, per_length));
                        }
                        if let Some(reference) = reference {
                            let reference = g.constant(reference[taken]);
                            let ratio = g.mul(reference, per_length);
                            residual = remember(g, ratio, residual);
                        }
                        taken += 1;
                    }
                }
            }
            if k == 0 {
                starts = g.copy_from(&trace.symbols.graph, &trace.multipliers.0, &known);
            }
            let result: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
            x = g.copy_from(&trace.symbols.graph, &result, &known);
            carried = g.copy_from(&trace.symbols.graph, &trace.next(), &known);
            made += gamma;
        }
        if let Some((energy, start)) = of.energy() {
            let deviation = g.sub(carried[energy], carried[start]);
            largest[groups - 1] = g.largest(deviation, largest[groups - 1]);
        }
        let mut outputs = [&x[..], &largest, &[residual], &carried, &starts].concat();
        if counts {
            outputs.push(g.add(number, one));
        }
        Outputs { outputs, pivots }
    }

    /// Some nodes at the start of the run.
    fn at_start(&self, of: &Ingredients, nodes: &[Node]) -> Vec<f64> {
        let mut state = of.start.to_vec();
        state.resize(
            of.start.len() + of.watched_count() + 2 + of.trace.carried.len() + of.trace.multipliers.0.len(),
            0.0,
        );
        holonome_model::treatment::structure::evaluate(&self.graph, nodes, 0.0, &state, of.parameters)
    }
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
    let mut matrix = matrix(g, trace, system, known);
    let notable = g.constant(super::program::NOTABLE);
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

/// The Newton matrix of a system.
fn matrix(g: &mut Graph, trace: &Trace, system: &System, known: &FxHashMap<Node, Node>) -> Matrix {
    let entries: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
    let values = g.copy_from(&trace.symbols.graph, &entries, known);
    let mut matrix = Matrix::zeros(g, system.rows.len());
    for (&(i, j, _), &value) in system.jacobian.iter().zip(&values) {
        matrix.set(i as usize, j as usize, value);
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
    let mut inverse = None;
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
            let matrix = matrix(g, trace, system, known);
            inverse = Some(Inverse::new(g, matrix));
        }
        let steps = inverse.as_ref().map_or(Vec::new(), |inverse| inverse.times(g, &residuals));
        for (unknown, step) in unknowns.iter_mut().zip(steps) {
            *unknown = g.sub(*unknown, step);
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

    /// The inverses of numbers that vanish where the matrix is singular, each with the number of rows that it is made of.
    fn pivots(&self) -> Vec<(Node, usize)> {
        match self {
            Inverse::One(inverse) => vec![(*inverse, 1)],
            Inverse::Two(_, inverse) => vec![(*inverse, 2)],
            Inverse::More(factors) => factors.inverse_pivots().iter().map(|&inverse| (inverse, 1)).collect(),
        }
    }
}
