//! A field of the symbolic half as a system of the numeric half: kernels for what a step calls, and for small systems
//! whole steps in one kernel; for large ones a kernel for each template.

mod deferred;
mod either;
mod formula;
mod lanes;
mod map;
mod march;
mod pull;
mod rows;
mod step;
mod tracing;
mod vectors;

pub use either::{Compiled, Quantities};
pub use lanes::{CompiledLanes, LaneBound, LaneWatch, WatchBound};
pub use map::{CompiledMap, CompiledStep};
pub use rows::{ExtendedField, RowSystem, compile_parts, compile_rows};
pub use step::single_step;
pub use vectors::StateVectors;

use crate::backend::compile;
use crate::policy::{FEW_INVARIANTS, SMALL_SYSTEM};
use deferred::Deferred;
pub(crate) use formula::Formula;
use holonome_integrate::scales::{Role, Vectors};
use holonome_integrate::system::{Group, GroupKind, Invariants, System};
use holonome_integrate::terms::FLOOR;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::op::Unary;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::{Field, InvariantGroup, InvariantKind};
use pull::Pull;
use std::sync::{Arc, LazyLock};
pub use step::Mend;
use step::{Settled, Settling};
use vectors::Masses;

/// A kernel of one lane with its parameters.
pub struct Bound {
    kernel: Arc<dyn Kernel>,
    values: Aligned,
    /// What it was compiled from, for a kernel in lanes, and for which parameters.
    origin: Box<(Arc<Tape>, Vec<f64>)>,
}

/// The same kernel in several lanes.
#[derive(Clone)]
pub struct WideBound {
    kernel: Arc<dyn Kernel>,
    values: Aligned,
}

impl WideBound {
    /// Compiles a tape for so many lanes, which all have these parameters.
    pub fn new(tape: &Tape, lanes: usize, parameters: &[f64]) -> WideBound {
        let kernel = compile(tape, lanes);
        let values = kernel.bind(parameters);
        WideBound { kernel: kernel.into(), values }
    }

    /// Evaluates at (t, x) in every lane.
    pub fn run(&self, t: &[f64], x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&self.values, t, x, out, work);
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// How many numbers it gives in a lane.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }

    /// Gives one lane other parameters.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.kernel.rebind(&mut self.values, lane, parameters);
    }

    /// Applies the map x ↦ outputs `count` times in every lane.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(&self.values, x, count, work);
    }
}

/// The motion and DF in several lanes, for looking at what is claimed.
#[derive(Clone)]
pub struct WideRates {
    motion: WideBound,
    jacobian: WideBound,
    /// Whether F depends on the time.
    pub depends_on_time: bool,
}

impl WideRates {
    /// Gives one lane other parameters.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        self.motion.rebind(lane, parameters);
        self.jacobian.rebind(lane, parameters);
    }

    /// Both at (t, x) in every lane.
    pub fn run(&self, t: &[f64], x: &[f64], motion: &mut [f64], jacobian: &mut [f64], work: &mut [f64]) {
        self.motion.run(t, x, motion, work);
        self.jacobian.run(t, x, jacobian, work);
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.motion.work_len().max(self.jacobian.work_len())
    }
}

/// Watches groups of invariants in several lanes.
pub struct WideWatch {
    kernel: WideBound,
    watching: Watching,
    /// Where the deviations begin among the outputs, and how many they are.
    first: usize,
    groups: usize,
}

impl WideWatch {
    /// The deviations of every group in each of so many lanes, at t and the numbers (x, F₀).
    pub fn run<'o>(&self, lanes: usize, t: &[f64], inputs: &[f64], out: &'o mut [f64], work: &mut [f64]) -> &'o [f64] {
        self.kernel.run(t, inputs, out, work);
        let deviations = &mut out[self.first * lanes..(self.first + self.groups) * lanes];
        self.watching.finish(deviations, lanes);
        deviations
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// Room needed for the outputs of a lane.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }
}

impl Bound {
    /// Compiles a tape for these parameters.
    pub fn new(tape: &Tape, parameters: &[f64]) -> Bound {
        let kernel = compile(tape, 1);
        let values = kernel.bind(parameters);
        let origin = Box::new((Arc::new(tape.clone()), parameters.to_vec()));
        Bound { kernel: kernel.into(), values, origin }
    }

    /// The same with these parameters in so many lanes. Bit for bit, they compute what one does.
    pub fn in_lanes(&self, lanes: usize) -> WideBound {
        let (tape, parameters) = &*self.origin;
        WideBound::new(tape, lanes, parameters)
    }

    /// Whether it depends on the time.
    pub fn reads_time(&self) -> bool {
        self.origin.0.reads_time()
    }

    /// The same kernel with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> Bound {
        let kernel = Arc::clone(&self.kernel);
        let origin = Box::new((Arc::clone(&self.origin.0), parameters.to_vec()));
        Bound { values: kernel.bind(parameters), kernel, origin }
    }

    /// Compiles `nodes` of a field.
    pub fn of(field: &Field, nodes: &[Node], parameters: &[f64]) -> Bound {
        Bound::new(&Formula::new(&field.graph, nodes).tape(field.dimension, field.parameters), parameters)
    }

    /// Gives this one other parameters.
    pub fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(&mut self.values, 0, parameters);
        let known = &mut self.origin.1;
        known.clear();
        known.extend_from_slice(parameters);
    }

    /// Evaluates at (t, x).
    pub fn run(&self, t: f64, x: &[f64], out: &mut [f64], work: &mut [f64]) {
        self.kernel.run(&self.values, &[t], x, out, work);
    }

    /// Applies the map x ↦ outputs `count` times.
    pub fn iterate(&self, x: &mut [f64], count: u64, work: &mut [f64]) {
        self.kernel.iterate(&self.values, x, count, work);
    }

    /// Scratch needed.
    pub fn work_len(&self) -> usize {
        self.kernel.work_len()
    }

    /// How many numbers it gives.
    pub fn outputs(&self) -> usize {
        self.kernel.outputs()
    }
}

/// The compiled system: field, invariants, their Jacobian, and the field's directional derivative.
pub struct CompiledSystem {
    dimension: usize,
    /// X, from which the steps of a Runge–Kutta method are made, too.
    formula: Arc<LazyLock<Formula, Box<dyn FnOnce() -> Formula + Send>>>,
    field: Deferred,
    /// The field that a term of feedback was added to.
    untreated: Option<Deferred>,
    /// A term of feedback that the field does not hold yet.
    pull: Option<Pull>,
    values: Bound,
    jacobian: Bound,
    derivative: Deferred,
    /// (x, F₀) to F and the groups' deviations.
    watch: Option<Bound>,
    /// (x, F₀, scales) to what the method's treatment makes of x, F and deviations there.
    mend: Option<Bound>,
    watching: Watching,
    /// The formulas of both, of which a step that ends with them is made, too: they are the dearest to optimise.
    settling: Option<Arc<Settling>>,
    masses: Masses,
    invariants: Arc<Invariants>,
}

impl CompiledSystem {
    /// Compiles `field` for these parameters (the model's, then its treatment's inputs), and what is done to the results of
    /// steps. `stepped` is whether steps call the field: then it is compiled before there are any.
    /// `vectors` make up the state.
    pub fn new(
        field: &Arc<Field>,
        vectors: &Arc<StateVectors>,
        parameters: &[f64],
        stepped: bool,
        mend: Option<Mend>,
    ) -> CompiledSystem {
        let entries: Vec<Node> = field.jacobian.iter().flatten().map(|&(_, node)| node).collect();
        let derived = Arc::clone(field);
        let formula: Box<dyn FnOnce() -> Formula + Send> =
            Box::new(move || Formula::new(&derived.graph, &derived.field));
        let formula = Arc::new(LazyLock::new(formula));
        let (of_field, (dimension, inputs)) = (Arc::clone(&formula), (field.dimension, field.parameters));
        let compiled =
            Deferred::new(parameters, move |parameters| Bound::new(&of_field.tape(dimension, inputs), parameters));
        if stepped {
            compiled.bound();
        }
        let derived = Arc::clone(field);
        let derivative = Deferred::new(parameters, move |parameters| {
            let mut doubled = (*derived).clone();
            let nodes = doubled.directional_derivative();
            doubled.dimension *= 2;
            Bound::of(&doubled, &nodes, parameters)
        });
        let watching = Watching::of(field);
        let mend = mend.map(|mend| (mend, &**vectors));
        let settling = is_small(field).then(|| Arc::new(Settling::new(field, mend)));
        let settled = |settling: &Settling| Bound::new(&settling_tape(field, settling), parameters);
        CompiledSystem {
            dimension: field.dimension,
            formula,
            field: compiled,
            untreated: None,
            pull: None,
            values: Bound::of(field, &field.invariants, parameters),
            jacobian: Bound::of(field, &entries, parameters),
            derivative,
            watch: settling.as_ref().map(|settling| settled(&settling.watching())),
            mend: settling.as_ref().filter(|settling| settling.mend().is_some()).map(|settling| settled(settling)),
            watching,
            settling,
            // What stands behind the model's own parameters is none of theirs.
            masses: Masses::new(vectors, parameters),
            invariants: Arc::new(invariants(field)),
        }
    }

    /// The same system, which knows that its field is `base` with a term of feedback.
    pub fn with_untreated(mut self, base: &Arc<Field>, parameters: &[f64]) -> CompiledSystem {
        let base = Arc::clone(base);
        self.untreated = Some(Deferred::new(parameters, move |parameters| Bound::of(&base, &base.field, parameters)));
        self
    }

    /// The formula of the field.
    pub(crate) fn formula(&self) -> &Formula {
        &self.formula
    }

    /// The same system with the Gauss–Newton form of feedback, whose `parameters` follow the `first` ones of the model.
    pub fn with_pull(mut self, state: &Arc<StateVectors>, first: usize, parameters: &[f64]) -> CompiledSystem {
        self.pull = Some(Pull::new(&self.invariants, state, first, parameters));
        self
    }

    /// The formulas that watch and mend, where these are kernels of their own.
    pub fn settling(&self) -> Option<&Settling> {
        self.settling.as_deref()
    }

    fn mends_by(&self) -> Option<Mend> {
        self.settling.as_ref().and_then(|settling| settling.mend())
    }

    /// Gives the kernels of F and DF other parameters, and no other kernel.
    pub fn rebind_invariants(&mut self, parameters: &[f64]) {
        self.values.rebind(parameters);
        self.jacobian.rebind(parameters);
    }

    /// Gives the kernels of the motion's field other parameters.
    pub fn rebind_motion(&mut self, parameters: &[f64]) {
        self.untreated.as_mut().unwrap_or(&mut self.field).rebind(parameters);
    }

    /// Gives the masses other parameters.
    pub fn rebind_masses(&mut self, parameters: &[f64]) {
        self.masses.rebind(parameters);
    }

    /// Watches the invariants in so many lanes, bit for bit as one does, where that takes a kernel of its own.
    pub fn wide_watch(&self, lanes: usize) -> Option<WideWatch> {
        let first = self.dimension + self.invariants.count;
        let (watching, groups) = (self.watching.clone(), self.invariants.groups.len());
        let kernel = self.watch.as_ref()?.in_lanes(lanes);
        Some(WideWatch { kernel, watching, first, groups })
    }

    /// The motion and DF in so many lanes.
    pub fn wide_rates(&self, lanes: usize) -> WideRates {
        WideRates {
            motion: self.untreated.as_ref().unwrap_or(&self.field).bound().in_lanes(lanes),
            jacobian: self.jacobian.in_lanes(lanes),
            depends_on_time: self.values.reads_time(),
        }
    }

    /// The same system with other parameters.
    pub fn rebound(&self, parameters: &[f64]) -> CompiledSystem {
        let optional = |bound: &Option<Bound>| bound.as_ref().map(|bound| bound.rebound(parameters));
        CompiledSystem {
            dimension: self.dimension,
            formula: Arc::clone(&self.formula),
            field: self.field.rebound(parameters),
            untreated: self.untreated.as_ref().map(|field| field.rebound(parameters)),
            pull: self.pull.as_ref().map(|pull| pull.rebound(parameters)),
            values: self.values.rebound(parameters),
            jacobian: self.jacobian.rebound(parameters),
            derivative: self.derivative.rebound(parameters),
            watch: optional(&self.watch),
            mend: optional(&self.mend),
            watching: self.watching.clone(),
            settling: self.settling.clone(),
            masses: self.masses.rebound(parameters),
            invariants: Arc::clone(&self.invariants),
        }
    }
}

/// How groups of invariants are watched: which give the squares of their deviations.
#[derive(Clone, Debug)]
pub(crate) struct Watching {
    squares: Arc<[bool]>,
}

impl Watching {
    pub(crate) fn of(field: &Field) -> Watching {
        let squares = field.groups.iter().map(|g| g.members.iter().any(|member| member.len() > 1)).collect();
        Watching { squares }
    }

    /// Turns what the formulas give into deviations, in every lane.
    pub(crate) fn finish(&self, deviations: &mut [f64], lanes: usize) {
        for (group, _) in deviations.chunks_mut(lanes).zip(self.squares.iter()).filter(|(_, square)| **square) {
            group.iter_mut().for_each(|deviation| *deviation = deviation.sqrt());
        }
    }

    /// The deviation of every member from ΔF, or its square, with the group that it belongs to.
    pub(crate) fn deviations(&self, field: &mut Field, delta: &[Node]) -> (Vec<Node>, Vec<usize>) {
        let (mut nodes, mut groups) = (Vec::new(), Vec::new());
        for (k, group) in field.groups.iter().enumerate() {
            for member in group.members.iter() {
                let g = &mut field.graph;
                let node = match member {
                    [(row, weight)] if !self.squares[k] => {
                        let root = g.constant(weight.sqrt());
                        g.mul(root, delta[*row])
                    }
                    rows => rows.iter().fold(g.zero(), |sum, &(row, weight)| {
                        let weight = g.constant(weight);
                        let weighted = g.mul(weight, delta[row]);
                        g.fma(weighted, delta[row], sum)
                    }),
                };
                nodes.push(node);
                groups.push(k);
            }
        }
        (nodes, groups)
    }
}

/// Whether a field's invariants are watched by formulas.
fn is_small(field: &Field) -> bool {
    field.graph.reachable(&field.invariants).len() <= SMALL_SYSTEM
}

/// Whether the results of steps are mended by formulas.
fn mends(field: &Field) -> bool {
    (1..=FEW_INVARIANTS).contains(&field.invariants.len()) && is_small(field)
}

/// A tape from (x, F₀, scales) to the settled x, F and the largest deviation of every group there, and how unsettled it is
/// where it is mended.
fn settling_tape(field: &Field, settling: &Settling) -> Tape {
    let (n, m) = (field.dimension, field.invariants.len());
    let mut g = Graph::new();
    let t = g.input(holonome_model::graph::Input::Time);
    let states = n + m + settling.scales().len();
    let inputs: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
    let (inputs, scales) = inputs.split_at(n + m);
    let Settled { x, values, largest, unsettled } = settling.at(&mut g, t, inputs, scales);
    let mut outputs = [x, values, largest].concat();
    if settling.mend().is_some() {
        outputs.push(unsettled);
    }
    Tape::of_fused(&g, &outputs, states, field.parameters)
}

/// A tape from (x, F₀) and the squared sizes of the vectors to the largest deviation of every group and the size of its
/// terms, as `holonome_integrate::terms::Terms` finds it for vectors of these sizes; 0 where a gradient is not known.
fn watch_tape(field: &Field, vectors: &Vectors) -> Tape {
    let (n, m) = (field.dimension, field.invariants.len());
    let settling = Settling::new(field, None);
    let mut measured = field.graph.clone();
    let g = &mut measured;
    let zero = g.zero();
    let sizes = component_sizes(g, vectors, n + m);
    let mut terms = Vec::new();
    for (row, &value) in field.jacobian.iter().zip(&field.invariants) {
        let mut sum = g.unary(Unary::Abs, value);
        for &(column, entry) in row {
            let entry = g.unary(Unary::Abs, entry);
            let term = g.mul(entry, sizes[column as usize]);
            sum = g.add(sum, term);
        }
        terms.push(sum);
    }
    let known = |member: &[(usize, f64)]| member.iter().all(|&(row, _)| !field.jacobian[row].is_empty());
    let mut largest_of_groups = Vec::new();
    for group in &field.groups {
        let mut largest = zero;
        for member in group.members.iter().filter(|_| group.members.iter().all(known)) {
            let mut sum = zero;
            for &(row, weight) in member {
                let weight = g.constant(weight);
                let weighted = g.mul(weight, terms[row]);
                sum = g.fma(weighted, terms[row], sum);
            }
            largest = g.largest(sum, largest);
        }
        largest_of_groups.push(g.sqrt(largest));
    }
    let formula = Formula::new(g, &largest_of_groups);
    let mut g = Graph::new();
    let t = g.input(holonome_model::graph::Input::Time);
    let states = n + m + vectors.count();
    let inputs: Vec<Node> = (0..states).map(|k| g.state(k)).collect();
    let terms = formula.at(&mut g, t, &inputs);
    let Settled { largest, .. } = settling.at(&mut g, t, &inputs[..n + m], &[]);
    Tape::of_fused(&g, &[largest, terms].concat(), states, field.parameters)
}

/// The size of every component's vector, or a small part of the largest of its kind; the squared sizes of the vectors are
/// states from number `first` on.
fn component_sizes(g: &mut Graph, vectors: &Vectors, first: usize) -> Vec<Node> {
    let (zero, floor) = (g.zero(), g.constant(FLOOR));
    let sizes: Vec<Node> = (0..vectors.count())
        .map(|vector| {
            let square = g.state(first + vector);
            g.sqrt(square)
        })
        .collect();
    let mut floors = [zero; 2];
    for family in vectors.families() {
        if let Some(kind) = kind_of(family.role) {
            floors[kind] = family.vectors.clone().fold(floors[kind], |most, vector| g.largest(sizes[vector], most));
        }
    }
    let floors = floors.map(|largest| g.mul(floor, largest));
    let mut components = vec![zero; vectors.dim()];
    for family in vectors.families() {
        for vector in family.vectors.clone() {
            let size = match kind_of(family.role) {
                Some(kind) => g.largest(floors[kind], sizes[vector]),
                None => sizes[vector],
            };
            components[vectors.components_of(vector)].fill(size);
        }
    }
    components
}

/// Positions and momenta are measured against their largest.
fn kind_of(role: Role) -> Option<usize> {
    match role {
        Role::Position => Some(0),
        Role::Momentum => Some(1),
        Role::Other => None,
    }
}

/// The numeric half's description of a field's invariants.
fn invariants(field: &Field) -> Invariants {
    let mut row_start = vec![0];
    let mut column = Vec::new();
    for row in &field.jacobian {
        column.extend(row.iter().map(|&(i, _)| i));
        row_start.push(column.len());
    }
    let groups = field.groups.iter().map(group).collect();
    Invariants { count: field.invariants.len(), row_start, column, constraints: field.constraints, groups }
}

/// The numeric half's description of a group.
fn group(g: &InvariantGroup) -> Group {
    let kind = match g.kind {
        InvariantKind::ModifiedEnergy => unreachable!("a field has no method"),
        InvariantKind::Constraint => GroupKind::Constraint,
        InvariantKind::Hidden => GroupKind::Hidden,
        InvariantKind::Hamiltonian | InvariantKind::Penalised => GroupKind::Hamiltonian,
        InvariantKind::Integral => GroupKind::Integral,
    };
    let members = g.members.iter().map(|m| m.iter().map(|&(row, w)| (row as u32, w)));
    let group = Group::family(&g.name, kind, members);
    if g.watched { group.watched() } else { group }
}

impl CompiledSystem {
    /// Runs a kernel of [`settling_tape`]; gives the settled x, and how unsettled it is.
    fn run_settling<'w>(
        &self,
        kernel: &Bound,
        (t, target, scales, x): (f64, &[f64], &[f64], &[f64]),
        values: &mut [f64],
        deviations: &mut [f64],
        work: &'w mut [f64],
    ) -> (&'w [f64], f64) {
        let (n, m) = (self.dimension, values.len());
        let (inputs, work) = work.split_at_mut(n + m + scales.len());
        inputs[..n].copy_from_slice(x);
        inputs[n..n + m].copy_from_slice(target);
        inputs[n + m..].copy_from_slice(scales);
        let (outputs, work) = work.split_at_mut(kernel.outputs());
        kernel.run(t, inputs, outputs, work);
        let (settled, rest) = outputs.split_at(n);
        let (f, rest) = rest.split_at(m);
        let (drift, unsettled) = rest.split_at(deviations.len());
        values.copy_from_slice(f);
        deviations.copy_from_slice(drift);
        self.watching.finish(deviations, 1);
        (settled, unsettled.first().copied().unwrap_or(0.0))
    }
}

impl System for CompiledSystem {
    fn dim(&self) -> usize {
        self.dimension
    }

    fn work_len(&self) -> usize {
        let (n, m, groups) = (self.dimension, self.invariants.count, self.invariants.groups.len());
        let derivative = self.derivative.work_len() + 2 * n;
        let watching = [&self.watch, &self.mend].into_iter().flatten().map(Bound::work_len).max();
        let watching = watching.map_or(0, |work| work + 2 * (n + m) + groups + 2 * self.vectors().count() + 1);
        let (field, masses) = (self.field.work_len(), self.masses.work_len());
        let untreated = self.untreated.as_ref().map_or(0, Deferred::work_len);
        let (values, jacobian) = (self.values.work_len(), self.jacobian.work_len());
        let pull = self
            .pull
            .as_ref()
            .map_or(0, |pull| m + self.invariants.nonzeros() + pull.work_len().max(values).max(jacobian));
        [field, untreated, pull, values, jacobian, derivative, watching, masses].into_iter().max().unwrap_or(0)
    }

    fn vector_name(&self, vector: usize) -> String {
        self.masses.vector_name(vector)
    }

    fn field(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) {
        self.field.run(t, x, dx, work);
        if let Some(pull) = &self.pull {
            let (values, work) = work.split_at_mut(self.invariants.count);
            let (jacobian, work) = work.split_at_mut(self.invariants.nonzeros());
            self.values.run(t, x, values, work);
            self.jacobian.run(t, x, jacobian, work);
            pull.subtract(&self.invariants, (values, jacobian), dx, work);
        }
    }

    fn motion(&self, t: f64, x: &[f64], dx: &mut [f64], work: &mut [f64]) -> bool {
        self.untreated.as_ref().unwrap_or(&self.field).run(t, x, dx, work);
        true
    }

    fn vectors(&self) -> &Vectors {
        self.masses.vectors()
    }

    fn masses(&self, t: f64, x: &[f64], masses: &mut [f64], work: &mut [f64]) {
        self.masses.at(t, x, masses, work);
    }

    fn invariants(&self) -> &Invariants {
        &self.invariants
    }

    fn invariant_values(&self, t: f64, x: &[f64], f: &mut [f64], work: &mut [f64]) {
        self.values.run(t, x, f, work);
    }

    fn monitor(&self, t: f64, target: &[f64], x: &[f64], values: &mut [f64], deviations: &mut [f64], work: &mut [f64]) {
        match &self.watch {
            Some(watch) => {
                self.run_settling(watch, (t, target, &[], x), values, deviations, work);
            }
            None => {
                self.invariant_values(t, x, values, work);
                self.invariants.deviations(values, target, deviations);
            }
        }
    }

    fn correct(
        &self,
        (t, target, weights): (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) -> Option<f64> {
        let correct = self.mend.as_ref().filter(|_| self.mends_by() == Some(Mend::Corrects))?;
        let at = (t, target, weights, &*x);
        let (corrected, innovation) = self.run_settling(correct, at, values, deviations, work);
        x.copy_from_slice(corrected);
        Some(innovation)
    }

    fn project(
        &self,
        (t, target, carried): (f64, &[f64], &[f64]),
        x: &mut [f64],
        values: &mut [f64],
        deviations: &mut [f64],
        work: &mut [f64],
    ) -> Option<u64> {
        let project = self.mend.as_ref().filter(|_| matches!(self.mends_by(), Some(Mend::Projects { .. })))?;
        let scales = &carried[self.settling.as_ref()?.scales()];
        let at = (t, target, scales, &*x);
        let (projected, unsettled) = self.run_settling(project, at, values, deviations, work);
        if unsettled != 0.0 {
            return None;
        }
        x.copy_from_slice(projected);
        Some(step::ITERATIONS)
    }

    fn invariant_jacobian(&self, t: f64, x: &[f64], values: &mut [f64], work: &mut [f64]) {
        self.jacobian.run(t, x, values, work);
    }

    fn field_derivative(&self, t: f64, x: &[f64], v: &[f64], out: &mut [f64], work: &mut [f64]) {
        let (both, work) = work.split_at_mut(2 * self.dimension);
        both[..self.dimension].copy_from_slice(x);
        both[self.dimension..].copy_from_slice(v);
        self.derivative.run(t, both, out, work);
    }
}
