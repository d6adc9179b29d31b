//! Unrolling of a step: the formulas of a loop that makes it.

use super::super::encounter::MET;
use super::super::program::LOST;
use super::{LaneRows, LoopIngredients, System, Taken, Trace};
use crate::kernels::{Formula, Monitoring, Watching};
use crate::monitored::NOTABLE;
use crate::policy::FEW_ROWS;
use holonome_arithmetic::Real;
use holonome_integrate::newton::{CLOSE, ROUNDING_SWEEP, SWEPT, swept_error};
use holonome_integrate::phase_space::Monitored;
use holonome_linear::unpivoted::Unpivoted;
use holonome_model::graph::linear::{Factors, Matrix};
use holonome_model::graph::value::{Recording, Value, nodes};
use holonome_model::graph::{Copies, Graph, Node};
use holonome_model::treatment::correction::deviation;

/// Largest residual that an iteration with the matrix of the one before brings to round-off. Where
/// the last full iteration has squared an error e, the matrix is off by about e, and e·e² is below
/// 1e-16.
const CLOSE_FROZEN: f64 = 1e-11;

/// Part of the allowed residual that a trial may leave without one more sweep or iteration: later
/// sweeps may contract less, and an orbit passes its pericentre in the middle of a step at one time
/// and at the end of one at another.
pub(super) const SOLVED_WELL: f64 = 1.0 / 16.0;

/// Number of updates of a fixed-point iteration that tell whether it has ended.
pub(super) const UPDATES: usize = 3;

/// Outputs of the rows, piece by piece, each with the number of its repetitions.
type UnrolledPieces = Vec<(Vec<Node>, u64)>;

/// The step as maps of its [`LaneRows`] to themselves. If it is `split`, the sweeps of its system
/// are pieces of their own; the last iteration of several takes the matrix of the one before if it
/// is `frozen`.
pub(super) fn unrolled(
    of: &LoopIngredients,
    most: &[Taken],
    split: bool,
    frozen: bool,
) -> (Graph, UnrolledPieces, LaneRows) {
    made(of, most, (split, frozen), None)
}

/// The step without a look at the invariants and without the model's state, if both what is carried
/// and the state follow from what is carried. A look is then at the state of the last step that had
/// one, whatever the time is by then.
pub(super) fn unseen(
    of: &LoopIngredients,
    most: &[Taken],
    frozen: bool,
) -> Option<(Graph, Vec<Node>)> {
    let Needs { solves, reads_state } = Needs::of(of.trace);
    let is_seen = reads_state
        || of.trace.carried.is_empty()
        || !of.trace.multipliers.0.is_empty()
        || !of.field.watched.is_empty()
        || of.energy().is_some();
    if is_seen {
        return None;
    }
    let (graph, mut pieces, rows) = made(of, most, (false, frozen), Some(solves));
    let (outputs, _) = pieces.pop()?;
    rows.number.is_none().then_some((graph, outputs))
}

/// What a step needs.
struct Needs {
    /// The systems that have to be solved for the numbers that are carried to the next step.
    solves: Vec<bool>,
    /// True if any of its results depends on the model's state before it.
    reads_state: bool,
}

impl Needs {
    fn of(trace: &Trace) -> Needs {
        let graph = &trace.symbols.graph;
        let formulas = |system: &System| -> Vec<Node> {
            let entries = system.jacobian.iter().map(|&(_, _, node)| node);
            let parts = [&system.residuals, &system.sizes, &system.sweep_sizes, &system.guesses];
            parts.into_iter().flatten().copied().chain(entries).collect()
        };
        let mut needed = trace.next();
        let mut solves = vec![false; trace.systems.len()];
        for (system, solves) in trace.systems.iter().zip(&mut solves).rev() {
            let reached = graph.reachable(&needed);
            *solves = system.unknowns.iter().any(|unknown| reached.binary_search(unknown).is_ok());
            needed.extend(if *solves { formulas(system) } else { Vec::new() });
        }
        needed.extend(trace.systems.iter().flat_map(formulas));
        needed.extend(trace.result.iter().map(|(node, _)| node));
        let reached = graph.reachable(&needed);
        let reads_state = trace.x.iter().any(|input| reached.binary_search(input).is_ok());
        Needs { solves, reads_state }
    }
}

/// [`unrolled`], or [`unseen`] if only some systems are solved for what is carried.
fn made(
    of: &LoopIngredients,
    most: &[Taken],
    (split, frozen): (bool, bool),
    solves: Option<Vec<bool>>,
) -> (Graph, UnrolledPieces, LaneRows) {
    let (trace, own, looks) = (of.trace, of.own_parameters, solves.is_none());
    let solves = solves.unwrap_or_else(|| vec![true; trace.systems.len()]);
    let constraints = of.field.constraints;
    let mut monitored = of.field.clone();
    let delta = deviation(&mut monitored, |g, row| g.parameter(own + row - constraints));
    let (deviations, groups) = Monitoring::of(of.field).deviations(&mut monitored, &delta);
    let monitor = Formula::unfused(&monitored.graph, &deviations);
    let watching = Watching::unfused(of.field);
    let counts = monitor.reads_time() || watching.reads_time() || trace.reads_time();
    let swept = if split { trace.systems[0].unknowns.len() } else { 0 };
    let rows = LaneRows::new(of, swept, of.reference_count(), counts);
    let mut graph = Graph::new();
    let mut pieces = graph.record(|r| {
        let (mut now, [h, t0]) = (Now::of(r, &rows), of.step_and_start(r));
        let t = now.number.mul_add(h, t0);
        let before = now.x.clone();
        let seen = if looks { monitor.recorded(r, t, &now.x) } else { Vec::new() };
        for (deviation, group) in seen.into_iter().zip(groups) {
            now.largest[group] = deviation.largest(now.largest[group]);
        }
        let kept =
            r.nodes(|g| watching.at(g, (t.node(), &nodes(&now.x), h.node()), &nodes(&now.sides)));
        now.sides = r.values(&kept);
        let mut unrolling =
            Unrolling { of, rows: &rows, solves, frozen, split, pieces: Vec::new() };
        let mut made = 0.0;
        for (k, &gamma) in of.substeps.iter().enumerate() {
            let at = (r.constant(made).mul_add(h, t), h * gamma);
            unrolling.substep(r, &mut now, at, most, k == 0);
            made += gamma;
        }
        if let (Some((energy, start)), Some(last)) = (of.energy(), now.largest.last_mut()) {
            *last = (now.carried[energy] - now.carried[start]).largest(*last);
        }
        now.number = now.number + 1.0;
        if !looks {
            now.x = before;
        }
        let unknowns = r.states(rows.unknowns.clone());
        unrolling.pieces.push((now.outputs(r, &unknowns), 1));
        unrolling.pieces
    });
    pieces.iter_mut().for_each(|(outputs, _)| outputs.truncate(rows.count()));
    (graph, pieces, rows)
}

/// Pivots of monitored systems over the step's length, for a first substep from x before which
/// nothing is carried.
pub(super) fn pivots(of: &LoopIngredients) -> (Graph, Vec<Node>) {
    let trace = of.trace;
    let mut graph = Graph::new();
    let pivots = graph.record(|r| {
        let ([h, t0], mut carried) =
            (of.step_and_start(r), vec![r.constant(0.0); trace.carried.len()]);
        // No noise: the normal number from a uniform 1 is 0.
        for ([u, _], _) in trace.drawn.iter().flat_map(|drawn| &drawn.uniform) {
            carried[*u] = r.constant(1.0);
        }
        let h = h * of.substeps[0];
        let mut solving = Solving::of(r, trace, &r.states(0..trace.x.len()), (t0, h), &carried);
        let (mut pivots, mut residual) = (Vec::new(), r.constant(0.0));
        for (system, &most) in trace.systems.iter().zip(of.most) {
            if most.sweeps > 0 {
                solving.sweeps(system, most);
                continue;
            }
            let inverse_pivots = solving.newton(system, most.iterations, false, &mut residual);
            for (inverse, rows) in
                inverse_pivots.into_iter().filter(|_| system.monitored == Monitored::Always)
            {
                pivots.push((r.constant(1.0) / per_length(inverse, rows, h)).node());
            }
        }
        pivots
    });
    (graph, pivots)
}

impl LoopIngredients<'_> {
    /// Length of a step, and time of the start.
    fn step_and_start<'r>(&self, r: &'r Recording) -> [Value<'r>; 2] {
        [2, 1].map(|k| r.parameter(self.parameter_count() - k))
    }
}

/// Step on the way to its pieces.
struct Unrolling<'a> {
    of: &'a LoopIngredients<'a>,
    rows: &'a LaneRows,
    /// Systems that are solved.
    solves: Vec<bool>,
    frozen: bool,
    split: bool,
    pieces: UnrolledPieces,
}

impl<'a> Unrolling<'a> {
    /// Unroll a substep from the time and of the length `at`.
    fn substep<'r>(
        &mut self,
        r: &'r Recording,
        now: &mut Now<'r>,
        at: (Value<'r>, Value<'r>),
        most: &[Taken],
        is_first: bool,
    ) {
        let trace = self.of.trace;
        let (mut solving, before) = (Solving::of(r, trace, &now.x, at, &now.carried), now.residual);
        // The pivots of every substep are compared with those of the first one at the start.
        let references = now.references.clone();
        let mut references = references.iter();
        let solves = self.solves.clone();
        let solved = trace.systems.iter().zip(most).zip(solves).filter(|(_, solves)| *solves);
        for ((system, &most), _) in solved {
            if most.sweeps > 0 {
                let updates = match self.split {
                    true => self.split_sweeps(r, now, at, (system, most), &mut solving),
                    false => solving.sweeps(system, most),
                };
                now.residual = unswept(updates).largest(now.residual);
                continue;
            }
            let pivots = solving.newton(system, most.iterations, self.frozen, &mut now.residual);
            if system.monitored == Monitored::Definite {
                now.residual = solving.definite(system, now.residual);
            }
            for (inverse, rows) in
                pivots.into_iter().filter(|_| system.monitored == Monitored::Always)
            {
                if let Some(&reference) = references.next() {
                    let ratio = reference * per_length(inverse, rows, at.1);
                    now.residual = remember(ratio, now.residual);
                }
            }
        }
        if is_first {
            now.starts = solving.at(&trace.multipliers.0);
        }
        if self.solves.iter().all(|&solves| solves) {
            let result: Vec<Node> = trace.result.iter().map(|&(node, _)| node).collect();
            now.x = solving.at(&result);
        }
        now.carried = solving.at(&trace.next());
        if let (Some(encounter), Some(nearness)) = (trace.encounter, &mut now.nearness) {
            *nearness = solving.at(&[encounter.nearness])[0].largest(*nearness);
            // A step within an encounter is not the loop's, nor are those after it in a trial.
            let far = nearness.less(r.constant(MET));
            now.residual = Value::select(far, now.residual, before);
        }
    }

    /// End a piece, and make the sweeps of a system the next one. Return the sizes of the last
    /// updates.
    fn split_sweeps<'r>(
        &mut self,
        r: &'r Recording,
        now: &mut Now<'r>,
        at: (Value<'r>, Value<'r>),
        (system, most): (&System, Taken),
        solving: &mut Solving<'a, 'r>,
    ) -> [Value<'r>; UPDATES] {
        let (rows, trace) = (self.rows, self.of.trace);
        self.pieces.push((now.outputs(r, &solving.at(&system.guesses)), 1));
        let before = Now::of(r, rows);
        (now.x, now.largest, now.sides) = (before.x, before.largest, before.sides);
        (now.residual, now.carried) = (before.residual, before.carried);
        *solving = Solving::of(r, trace, &now.x, at, &now.carried);
        let unknowns = r.states(rows.unknowns.clone());
        let updates = std::array::from_fn(|k| r.state(rows.updates.start + k));
        let (swept, after) = solving.sweep(system, &unknowns, updates);
        self.pieces.push((nodes(&[&swept[..], &after].concat()), u64::from(most.sweeps)));
        solving.know(&system.unknowns, &unknowns);
        updates
    }
}

/// Rows at a place of a step.
struct Now<'r> {
    x: Vec<Value<'r>>,
    largest: Vec<Value<'r>>,
    sides: Vec<Value<'r>>,
    residual: Value<'r>,
    nearness: Option<Value<'r>>,
    carried: Vec<Value<'r>>,
    starts: Vec<Value<'r>>,
    references: Vec<Value<'r>>,
    number: Value<'r>,
}

impl<'r> Now<'r> {
    /// Rows at the start of a piece.
    fn of(r: &'r Recording, rows: &LaneRows) -> Now<'r> {
        let [x, largest, sides, carried, starts, references] =
            [&rows.x, &rows.largest, &rows.sides, &rows.carried, &rows.starts, &rows.references]
                .map(|rows| r.states(rows.clone()));
        let number = rows.number.map_or(r.constant(0.0), |number| r.state(number));
        let residual = r.state(rows.residual);
        let nearness = rows.nearness.map(|nearness| r.state(nearness));
        Now { x, largest, sides, residual, nearness, carried, starts, references, number }
    }

    /// All rows at the end of a piece, and the number of the step.
    fn outputs(&self, r: &'r Recording, swept: &[Value<'r>]) -> Vec<Node> {
        let updates = if swept.is_empty() { vec![] } else { vec![r.constant(0.0); UPDATES] };
        let Now { x, largest, sides, residual, nearness, carried, starts, references, number } =
            self;
        let (residual, nearness, number) = (&[*residual], nearness.as_slice(), &[*number]);
        let first: [&[Value]; 6] = [swept, &updates, x, largest, sides, residual];
        let last: [&[Value]; 5] = [carried, starts, references, nearness, number];
        nodes(&[first.concat(), last.concat()].concat())
    }
}

/// Inverse pivot without the h that the equations hold, once in every row.
fn per_length<'r>(inverse: Value<'r>, rows: usize, h: Value<'r>) -> Value<'r> {
    (0..rows).fold(inverse, |inverse, _| inverse * h)
}

/// Add to the largest residual how near a pivot is to being lost; `ratio` is the pivot at the start
/// over the present one.
fn remember<R: Real>(ratio: R, residual: R) -> R {
    let [zero, infinite] = [0.0, f64::INFINITY].map(|number| ratio.constant(number));
    R::select(zero.less(ratio), ratio * LOST, infinite).largest(residual)
}

/// Error of a fixed-point iteration over the allowed one, 0 if its last update is rounding.
fn unswept<R: Real>([last, _, third]: [R; UPDATES]) -> R {
    let [zero, rounding] = [0.0, ROUNDING_SWEEP].map(|number| last.constant(number));
    R::select(last.at_most(rounding), zero, swept_error([last, third]) * (1.0 / SWEPT))
}

impl System {
    pub(super) fn unpivoted(&self) -> Unpivoted {
        Unpivoted::new(self.rows.len(), &self.entries())
    }

    /// Order in which the rows are eliminated, without pivoting. Constraints may not depend on their own
    /// multipliers but through other unknowns, such as momenta that implicit forces change: the rows
    /// of these come before, whose elimination fills the diagonal.
    fn elimination_order(&self) -> Vec<u32> {
        let order = match self.rows.len() {
            rows if rows <= FEW_ROWS => (0..rows as u32).collect(),
            _ => self.unpivoted().order(),
        };
        let has_pivot = |row: &u32| self.jacobian.iter().any(|&(i, j, _)| (i, j) == (*row, *row));
        let (first, last): (Vec<u32>, Vec<u32>) = order.into_iter().partition(has_pivot);
        [first, last].concat()
    }
}

/// Solutions of the systems of a step, one after the other.
struct Solving<'a, 'r> {
    r: &'r Recording,
    trace: &'a Trace,
    /// Nodes for the inputs of the step's formulas, for solutions, and for what follows from them.
    copies: Copies,
}

impl<'a, 'r> Solving<'a, 'r> {
    /// A step from x.
    fn of(
        r: &'r Recording,
        trace: &'a Trace,
        x: &[Value<'r>],
        (t, h): (Value<'r>, Value<'r>),
        carried: &[Value<'r>],
    ) -> Solving<'a, 'r> {
        let mut solving = Solving { r, trace, copies: Copies::default() };
        solving.know(&trace.x, x);
        solving.know(&[trace.t, trace.h], &[t, h]);
        let inputs: Vec<Node> = trace.carried.iter().map(|&(input, _)| input).collect();
        solving.know(&inputs, carried);
        solving
    }

    /// Set inputs of the step's formulas.
    fn know(&mut self, inputs: &[Node], values: &[Value<'r>]) {
        self.copies.know(inputs.iter().copied().zip(nodes(values)));
    }

    /// Set unknowns of a system that is being solved.
    fn suppose(&mut self, unknowns: &[Node], values: &[Value<'r>]) {
        self.copies.suppose(unknowns.iter().copied().zip(nodes(values)));
    }

    /// The step's formulas with what is known and supposed.
    fn at(&mut self, formulas: &[Node]) -> Vec<Value<'r>> {
        let (graph, copies) = (&self.trace.symbols.graph, &mut self.copies);
        self.r.values(&self.r.nodes(|g| g.copy_onto(graph, formulas, copies)))
    }

    /// Unroll the Newton iterations of a system and make its solution known. Return the inverse
    /// pivots of the last matrix, each with the number of rows that it is made from.
    fn newton(
        &mut self,
        system: &System,
        count: u32,
        frozen: bool,
        residual: &mut Value<'r>,
    ) -> Vec<(Value<'r>, usize)> {
        let mut unknowns = self.at(&system.guesses);
        let (mut inverse, order) = (None, system.elimination_order());
        for iteration in 0..count {
            self.suppose(&system.unknowns, &unknowns);
            let residuals = self.at(&system.residuals);
            let last = iteration + 1 == count;
            // Slopes that converge faster than derivatives do so at their own place only.
            let reuses = last && frozen && system.monotone.is_none() && inverse.is_some();
            if last && !system.linear {
                let close = system.monotone.unwrap_or(CLOSE);
                let allowed = if reuses { CLOSE_FROZEN } else { close };
                *residual = self.off(&system.sizes, &residuals, allowed).largest(*residual);
            }
            if !reuses {
                inverse = Some(Inverse::new(self.r, self.matrix(system, &order, 0.0)));
            }
            let residuals: Vec<Value> = order.iter().map(|&row| residuals[row as usize]).collect();
            let steps = inverse.as_ref().map_or(Vec::new(), |inverse| inverse.times(&residuals));
            for (&unknown, step) in order.iter().zip(steps) {
                unknowns[unknown as usize] = unknowns[unknown as usize] - step;
            }
        }
        self.know(&system.unknowns, &unknowns);
        inverse.map_or(Vec::new(), |inverse| inverse.pivots())
    }

    /// Newton matrix of a system less `shift`, with its rows in an `order`.
    fn matrix(&mut self, system: &System, order: &[u32], shift: f64) -> Matrix {
        let entries: Vec<Node> = system.jacobian.iter().map(|&(_, _, node)| node).collect();
        let values = self.at(&entries);
        let mut position = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            position[old as usize] = new;
        }
        let mut matrix = self.r.nodes(|g| Matrix::zeros(g, order.len()));
        for (&(i, j, _), value) in system.jacobian.iter().zip(&values) {
            matrix.set(position[i as usize], position[j as usize], value.node());
        }
        for i in (0..order.len()).filter(|_| shift != 0.0) {
            let shifted = self.r.value(matrix.get(i, i)) - self.r.constant(shift);
            matrix.set(i, i, shifted.node());
        }
        matrix
    }

    /// Add infinity to the largest residual if an eigenvalue of a matrix that has to be definite is
    /// below [`NOTABLE`].
    fn definite(&mut self, system: &System, residual: Value<'r>) -> Value<'r> {
        let matrix = self.matrix(system, &system.elimination_order(), NOTABLE);
        let factors = self.r.nodes(|g| Factors::general(g, &matrix));
        let [zero, infinite] = [0.0, f64::INFINITY].map(|number| self.r.constant(number));
        self.r.values(factors.inverse_pivots()).into_iter().fold(residual, |residual, inverse| {
            Value::select(zero.less(inverse), zero, infinite).largest(residual)
        })
    }

    /// Unroll the sweeps of a system and make its solution known. Return the sizes of the last
    /// updates.
    fn sweeps(&mut self, system: &System, most: Taken) -> [Value<'r>; UPDATES] {
        let mut unknowns = self.at(&system.guesses);
        let mut updates = [self.r.constant(0.0); UPDATES];
        for _ in 0..most.sweeps {
            (unknowns, updates) = self.sweep(system, &unknowns, updates);
        }
        self.know(&system.unknowns, &unknowns);
        updates
    }

    /// Unroll one sweep, from these unknowns and after these updates.
    fn sweep(
        &mut self,
        system: &System,
        unknowns: &[Value<'r>],
        updates: [Value<'r>; UPDATES],
    ) -> (Vec<Value<'r>>, [Value<'r>; UPDATES]) {
        self.suppose(&system.unknowns, unknowns);
        let residuals = self.at(&system.residuals);
        let update = self.off(&system.sweep_sizes, &residuals, 1.0);
        let swept = unknowns.iter().zip(residuals).map(|(&unknown, r)| unknown - r).collect();
        (swept, [update, updates[0], updates[1]])
    }

    /// Largest of some residuals, over its scale and over the allowed part of that.
    fn off(&mut self, sizes: &[Node], residuals: &[Value<'r>], allowed: f64) -> Value<'r> {
        // If nothing cancels, the residual is 0; `tiny` keeps 0/0 away.
        let [zero, tiny, allowed] =
            [0.0, f64::MIN_POSITIVE, allowed].map(|number| self.r.constant(number));
        // One division for all residuals of one scale.
        let mut sized: Vec<(Value, Value)> = Vec::new();
        for (&residual, size) in residuals.iter().zip(self.at(sizes)) {
            match sized.iter_mut().find(|(known, _)| known.node() == size.node()) {
                Some((_, largest)) => *largest = residual.largest(*largest),
                None => sized.push((size, residual.largest(zero))),
            }
        }
        sized
            .into_iter()
            .fold(zero, |off, (size, largest)| (largest / allowed.mul_add(size, tiny)).largest(off))
    }
}

/// Inverse of a Newton matrix: for one or two rows by its determinant, which needs one fewer
/// division in sequence; for more by its factors.
pub(super) enum Inverse<'r> {
    /// 1/a
    One(Value<'r>),
    /// The matrix by rows, and 1/det
    Two([Value<'r>; 4], Value<'r>),
    More(&'r Recording, Factors),
}

impl<'r> Inverse<'r> {
    fn new(r: &'r Recording, matrix: Matrix) -> Inverse<'r> {
        let at = |i: usize, j: usize| r.value(matrix.get(i, j));
        let one = r.constant(1.0);
        match matrix.size() {
            1 => Inverse::One(one / at(0, 0)),
            2 => {
                let [a, b, c, d] = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
                Inverse::Two([a, b, c, d], one / (a * d - b * c))
            }
            _ => Inverse::More(r, r.nodes(|g| Factors::general(g, &matrix))),
        }
    }

    /// Solution for a right-hand side.
    fn times(&self, v: &[Value<'r>]) -> Vec<Value<'r>> {
        match self {
            Inverse::One(inverse) => vec![v[0] * *inverse],
            &Inverse::Two([a, b, c, d], inverse) => {
                vec![(d * v[0] - b * v[1]) * inverse, (a * v[1] - c * v[0]) * inverse]
            }
            Inverse::More(r, factors) => r.values(&r.nodes(|g| factors.solve(g, &nodes(v)))),
        }
    }

    /// Number of [`Inverse::pivots`] of a matrix with so many rows.
    pub(super) fn pivot_count(rows: usize) -> usize {
        if rows <= 2 { 1 } else { rows }
    }

    /// Inverses of numbers that vanish if the matrix is singular, each with the number of rows that
    /// it is made from.
    fn pivots(&self) -> Vec<(Value<'r>, usize)> {
        match self {
            Inverse::One(inverse) => vec![(*inverse, 1)],
            Inverse::Two(_, inverse) => vec![(*inverse, 2)],
            Inverse::More(r, factors) => {
                r.values(factors.inverse_pivots()).into_iter().map(|inverse| (inverse, 1)).collect()
            }
        }
    }
}
