//! A phase space that records what a step computes: its values become nodes of a graph, its equations systems to solve.

use super::functions::{Curvature, Functions};
use super::rigid_body::RigidBody;
use crate::compiled::Formula;
use holonome_integrate::phase_space::{
    Body, Equation, Equations, Finding, Function, Guess, Part, PhaseSpace, Potential, Residual, Value, Vector, Watched,
};
use holonome_integrate::state::Cost;
use holonome_model::graph::op::Unary;
use holonome_model::graph::{Graph, Input, Node};
use rustc_hash::{FxHashMap, FxHashSet};

/// How often a piece of a step evaluates the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Calls {
    /// The field.
    pub field: u64,
    /// H_q.
    pub gradient: u64,
    /// Second derivatives, in Newton matrices.
    pub hessian: u64,
}

/// What a step came to, as formulas of (x, t, h), of what is carried from step to step, and of the solutions of its
/// equations.
pub struct Trace {
    /// Where the nodes live. State inputs are x, then t, then h, then [`Trace::carried`] and the unknowns.
    pub graph: Graph,
    /// Length of x.
    pub dimension: usize,
    /// x, t and h.
    pub inputs: Vec<Node>,
    /// x₁.
    pub result: Vec<Node>,
    /// The systems of equations, in the order in which they are solved.
    pub systems: Vec<System>,
    /// What is carried to the next step: the input here and its next value.
    pub carried: Vec<(Node, Node)>,
    /// The multipliers at the start of the step, and the places of those at its end among what is carried.
    pub multipliers: (Vec<Node>, Vec<usize>),
    /// What is taken over from the step before.
    pub handover: Option<Handover>,
    /// What is evaluated once.
    pub calls: Calls,
}

/// What a step takes over from the one before: the first of what is carried, in the order of the result here.
pub struct Handover {
    /// How a first step finds it.
    pub find: Box<Trace>,
    /// Where, among what is carried, the watched energy stands and where its value at the start of the run does.
    pub watched: Option<(usize, usize)>,
}

impl Trace {
    /// Whether the step depends on the time.
    pub fn reads_time(&self) -> bool {
        let systems = self.systems.iter().flat_map(|system| system.residuals.iter().chain(&system.guesses));
        let roots: Vec<Node> = self.result.iter().chain(systems).copied().collect();
        self.graph.reachable(&roots).contains(&self.inputs[self.dimension])
    }
}

impl Calls {
    /// So many times these.
    pub fn times(self, count: u64) -> Calls {
        Calls { field: count * self.field, gradient: count * self.gradient, hessian: count * self.hessian }
    }

    /// These and others.
    pub fn plus(self, other: Calls) -> Calls {
        Calls {
            field: self.field + other.field,
            gradient: self.gradient + other.gradient,
            hessian: self.hessian + other.hessian,
        }
    }

    /// Adds so many times these to a run's cost.
    pub fn count(self, times: u64, cost: &mut Cost) {
        cost.field += times * self.field;
        cost.gradient += times * self.gradient;
        cost.hessian += times * self.hessian;
    }
}

/// A system of equations of a step.
pub struct System {
    /// The inputs that stand for its solution.
    pub unknowns: Vec<Node>,
    /// What the equations say.
    pub rows: Vec<Equation>,
    /// The size of what cancels in each.
    pub sizes: Vec<Node>,
    /// Where the iteration starts.
    pub guesses: Vec<Node>,
    /// What is to vanish.
    pub residuals: Vec<Node>,
    /// Its derivatives: row, unknown, entry.
    pub jacobian: Vec<(u32, u32, Node)>,
    /// Whether no entry depends on the unknowns.
    pub linear: bool,
    /// Whether the run ends where its determinant vanishes.
    pub watched: Watched,
    /// What an iteration evaluates.
    pub calls: Calls,
}

impl System {
    /// Where the Jacobian has entries: row, unknown.
    pub fn entries(&self) -> Vec<(u32, u32)> {
        self.jacobian.iter().map(|&(i, j, _)| (i, j)).collect()
    }
}

/// Equations that are being stated.
#[derive(Default)]
struct Frame {
    unknowns: Vec<Node>,
    rows: Vec<Equation>,
    sizes: Vec<Node>,
    guesses: Vec<Option<Node>>,
    residuals: Vec<Node>,
}

/// The recording phase space of a model.
pub struct Tracer<'a> {
    functions: &'a Functions,
    graph: Graph,
    input_count: usize,
    frames: Vec<Frame>,
    systems: Vec<System>,
    carried: Vec<(Node, Node)>,
    multipliers: (Vec<Node>, Vec<usize>),
    /// What the state does not hold of a body's angular momentum.
    lost: Vec<Node>,
    /// Whether the next step may take over what this one hands over.
    pub hands_over: bool,
    /// What is taken over, how it is found, and what is handed over.
    handover: Option<(Vec<Node>, Trace)>,
    watched: Option<(usize, usize)>,
    /// Where the force acts, and how many systems are solved for that.
    force_at: Option<(Vec<Node>, usize)>,
    calls: Vec<Call>,
}

/// A function of the model that a step has asked for.
struct Call {
    /// What it counts as.
    counts: Calls,
    arguments: Vec<Node>,
    values: Vec<Node>,
}

fn nodes(values: &[Value]) -> Vec<Node> {
    values.iter().map(|value| Node(value.0)).collect()
}

fn values(nodes: &[Node]) -> Vec<Value> {
    nodes.iter().map(|node| Value(node.0)).collect()
}

impl<'a> Tracer<'a> {
    /// Over these formulas.
    pub fn new(functions: &'a Functions) -> Tracer<'a> {
        Tracer {
            functions,
            graph: Graph::new(),
            input_count: functions.dimension + 2,
            frames: Vec::new(),
            systems: Vec::new(),
            carried: Vec::new(),
            multipliers: (Vec::new(), Vec::new()),
            lost: Vec::new(),
            hands_over: false,
            handover: None,
            watched: None,
            force_at: None,
            calls: Vec::new(),
        }
    }

    /// The same, of a step whose result is where the next one begins, which takes over what this one hands over.
    pub fn handing_over(self, hands_over: bool) -> Tracer<'a> {
        Tracer { hands_over, ..self }
    }

    /// Records a step.
    pub fn step(mut self, step: impl FnOnce(&mut dyn PhaseSpace, Value, Value, &[Value]) -> Vec<Value>) -> Trace {
        let (x, t, h) = self.inputs();
        let result = step(&mut self, Value(t.0), Value(h.0), &values(&x));
        self.finish(&result)
    }

    /// Records of a step where its force acts, if it says so.
    pub fn force_places(
        mut self,
        step: impl FnOnce(&mut dyn PhaseSpace, Value, Value, &[Value]) -> Vec<Value>,
    ) -> Option<Trace> {
        let (x, t, h) = self.inputs();
        step(&mut self, Value(t.0), Value(h.0), &values(&x));
        let (places, systems) = self.force_at.take()?;
        self.systems.truncate(systems);
        self.carried.clear();
        Some(self.finish(&values(&places)))
    }

    /// x, t and h.
    fn inputs(&mut self) -> (Vec<Node>, Node, Node) {
        let n = self.functions.dimension;
        ((0..n).map(|i| self.graph.state(i)).collect(), self.graph.state(n), self.graph.state(n + 1))
    }

    fn finish(mut self, result: &[Value]) -> Trace {
        let (x, t, h) = self.inputs();
        let calls = self.count();
        let handover = self.handover.map(|(_, find)| Handover { find: Box::new(find), watched: self.watched });
        Trace {
            graph: self.graph,
            dimension: x.len(),
            inputs: [&x[..], &[t, h]].concat(),
            result: nodes(result),
            systems: self.systems,
            carried: self.carried,
            multipliers: self.multipliers,
            handover,
            calls,
        }
    }

    /// Counts what every system evaluates in an iteration; gives what the step evaluates once. A function that does not
    /// depend on a system's unknowns is not evaluated in its iterations, nor is one that is a constant.
    fn count(&mut self) -> Calls {
        // The same function at the same place is one.
        let mut seen = FxHashSet::default();
        self.calls.retain(|call| seen.insert((call.counts, call.arguments.clone())));
        let reached =
            |graph: &Graph, roots: &[Node]| -> FxHashSet<Node> { graph.reachable(roots).into_iter().collect() };
        for system in &mut self.systems {
            let entries = system.jacobian.iter().map(|&(_, _, node)| node);
            let roots: Vec<Node> = system.residuals.iter().copied().chain(entries).collect();
            let needed = reached(&self.graph, &roots);
            for call in &self.calls {
                let varies = |node: &Node| self.graph.reachable(&[*node]).iter().any(|n| system.unknowns.contains(n));
                if call.values.iter().any(|value| needed.contains(value) && varies(value)) {
                    let hessian = if system.linear { 0 } else { 1 };
                    system.calls = system.calls.plus(Calls { hessian, ..call.counts });
                }
            }
        }
        self.calls.iter().fold(Calls::default(), |sum, call| sum.plus(call.counts))
    }

    /// A new input.
    fn fresh(&mut self) -> Node {
        self.input_count += 1;
        self.graph.state(self.input_count - 1)
    }

    /// A formula at (t, x).
    pub fn at(&mut self, formula: &Formula, t: Value, x: &[Value]) -> Vec<Value> {
        values(&formula.at(&mut self.graph, Node(t.0), &nodes(x)))
    }

    /// A formula at (t, x) that counts.
    fn called(&mut self, counts: Calls, formula: &Formula, t: Value, x: &[Value]) -> Vec<Value> {
        let values = self.at(formula, t, x);
        let arguments = [&[Node(t.0)], &nodes(x)[..]].concat();
        self.calls.push(Call { counts, arguments, values: nodes(&values) });
        values
    }

    /// The derivatives of V.
    fn curvature(&self) -> &'a Curvature {
        self.functions.curvature.as_ref().expect("a method that needs V is refused where H is of another form")
    }

    /// `a` where `condition` is not 0, else `b`.
    pub fn unless_zero(&mut self, condition: Value, a: Value, b: Value) -> Value {
        Value(self.graph.select(Node(condition.0), Node(a.0), Node(b.0)).0)
    }

    /// Whether a value is the number 0.
    pub fn is_zero(&self, value: Value) -> bool {
        self.graph.is_zero(Node(value.0))
    }

    fn rigid_body(&self) -> &'a RigidBody {
        self.functions.body.as_ref().expect("a method that needs a rigid body is refused where the model is none")
    }

    /// The solution of `frame` where its equations give it: r = u − f, and f does not depend on u.
    fn explicit(&mut self, frame: &Frame) -> Option<Vec<Node>> {
        for (row, &residual) in frame.residuals.iter().enumerate() {
            let partials = self.partials(residual, &frame.unknowns);
            let [(column, entry)] = partials[..] else { return None };
            if column as usize != row || self.graph.value(entry) != Some(1.0) {
                return None;
            }
        }
        let zero = self.graph.zero();
        let at_zero = frame.unknowns.iter().map(|&unknown| (unknown, zero)).collect();
        let minus = self.graph.substituted(&frame.residuals, &at_zero);
        Some(minus.into_iter().map(|node| self.graph.neg(node)).collect())
    }

    /// The derivatives of `node` with respect to `unknowns`.
    fn partials(&mut self, node: Node, unknowns: &[Node]) -> Vec<(u32, Node)> {
        let number: FxHashMap<Input, u32> = unknowns
            .iter()
            .enumerate()
            .map(|(k, &unknown)| match self.graph.expression(unknown) {
                holonome_model::graph::Expression::Input(input) => (input, k as u32),
                _ => unreachable!("an unknown is an input"),
            })
            .collect();
        let partials = self.graph.adjoint(node, |input| number.contains_key(&input));
        partials.into_iter().map(|(input, d)| (number[&input], d)).collect()
    }

    /// Turns a complete frame into a system to solve.
    fn close(&mut self, frame: Frame, watched: Watched) {
        // The equations' own guesses first: those of equations inside may depend on them.
        let mut replaced = FxHashMap::default();
        let mut guesses = Vec::with_capacity(frame.unknowns.len());
        for (&unknown, &guess) in frame.unknowns.iter().zip(&frame.guesses) {
            let guess = match guess {
                Some(guess) => self.graph.substituted(&[guess], &replaced)[0],
                None => {
                    let input = self.fresh();
                    self.carried.push((input, unknown));
                    input
                }
            };
            replaced.insert(unknown, guess);
            guesses.push(guess);
        }
        let sizes = self.graph.substituted(&frame.sizes, &replaced);
        let mut jacobian = Vec::new();
        for (row, &residual) in frame.residuals.iter().enumerate() {
            let partials = self.partials(residual, &frame.unknowns);
            jacobian.extend(partials.into_iter().map(|(column, node)| (row as u32, column, node)));
        }
        let entries: Vec<Node> = jacobian.iter().map(|&(_, _, node)| node).collect();
        let depends: FxHashSet<Node> = self.graph.reachable(&entries).into_iter().collect();
        let linear = !frame.unknowns.iter().any(|unknown| depends.contains(unknown));
        self.systems.push(System {
            unknowns: frame.unknowns,
            rows: frame.rows,
            sizes,
            guesses,
            residuals: frame.residuals,
            jacobian,
            linear,
            watched,
            calls: Calls::default(),
        });
    }
}

impl PhaseSpace for Tracer<'_> {
    fn dimension(&self) -> usize {
        self.functions.dimension
    }

    fn degrees(&self) -> usize {
        self.functions.degrees
    }

    fn constant(&mut self, c: f64) -> Value {
        Value(self.graph.constant(c).0)
    }

    fn sum(&mut self, a: Value, b: Value) -> Value {
        Value(self.graph.add(Node(a.0), Node(b.0)).0)
    }

    fn product(&mut self, a: Value, b: Value) -> Value {
        Value(self.graph.mul(Node(a.0), Node(b.0)).0)
    }

    fn quotient(&mut self, a: Value, b: Value) -> Value {
        Value(self.graph.div(Node(a.0), Node(b.0)).0)
    }

    fn size(&mut self, x: &[Value]) -> Value {
        let zero = self.graph.zero();
        Value(x.iter().fold(zero, |largest, &x| self.graph.largest(Node(x.0), largest)).0)
    }

    fn total(&mut self, x: &[Value]) -> Value {
        let zero = self.graph.zero();
        Value(x.iter().fold(zero, |sum, x| self.graph.add(sum, Node(x.0))).0)
    }

    fn function(&mut self, f: Function, a: Value) -> Value {
        let op = match f {
            Function::Negative => Unary::Neg,
            Function::Magnitude => Unary::Abs,
            Function::Root => Unary::Sqrt,
            Function::Sine => Unary::Sin,
            Function::Cosine => Unary::Cos,
        };
        Value(self.graph.unary(op, Node(a.0)).0)
    }

    fn field(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.called(Calls { field: 1, ..Calls::default() }, &self.functions.field, t, x)
    }

    fn h_q(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.called(Calls { gradient: 1, ..Calls::default() }, &self.functions.h_q, t, x)
    }

    fn h_p(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.at(&self.functions.h_p, t, x)
    }

    fn constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.at(&self.functions.constraints, t, x)
    }

    fn hidden_constraints(&mut self, t: Value, x: &[Value]) -> Vec<Value> {
        self.at(&self.functions.hidden, t, x)
    }

    fn constraint_sizes(&mut self, t: Value, x: &[Value], hidden: bool) -> Vec<Value> {
        let formula = if hidden { &self.functions.hidden_sizes } else { &self.functions.constraint_sizes };
        self.at(formula, t, x)
    }

    fn constraint_field(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        self.functions.gradients.field(self, t, x, lambda)
    }

    fn slide(&mut self, t: Value, x: &[Value], lambda: &[Value]) -> Vec<Value> {
        self.functions.fibre.slide(self, t, x, lambda)
    }

    fn flow(&mut self, part: Part, t: Value, tau: Value, x: &[Value]) -> Vec<Value> {
        let flows = self.functions.flows.as_ref();
        flows.expect("a method that needs flows is refused where they are not known").flow(self, part, t, tau, x)
    }

    fn body(&mut self, x: &[Value]) -> Body {
        let mut body = self.rigid_body().body(self, x);
        self.lost = body.momentum.map(|_| self.fresh()).to_vec();
        for (momentum, lost) in body.momentum.iter_mut().zip(self.lost.clone()) {
            *momentum = self.sum(*momentum, Value(lost.0));
        }
        body
    }

    fn state_of(&mut self, body: &Body) -> Vec<Value> {
        let x = self.rigid_body().state_of(self, body);
        let read = self.rigid_body().body(self, &x).momentum;
        let next = (self as &mut dyn PhaseSpace).difference(&body.momentum, &read);
        let lost = std::mem::take(&mut self.lost);
        self.carried.extend(lost.into_iter().zip(nodes(&next)));
        x
    }

    fn inertia(&mut self) -> [Vector; 3] {
        self.rigid_body().matrix(self, 0)
    }

    fn inverse_inertia(&mut self) -> [Vector; 3] {
        self.rigid_body().matrix(self, 1)
    }

    fn torque(&mut self, t: Value, body: &Body) -> Vector {
        self.rigid_body().torque(self, t, body)
    }

    fn energy(&mut self, t: Value, x: &[Value]) -> Value {
        let energy = self.functions.energy.as_ref();
        self.at(energy.expect("a method that needs H is refused where there is none"), t, x)[0]
    }

    fn hessian_times(&mut self, part: Potential, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        let formula = match part {
            Potential::Whole => Some(&self.curvature().second),
            Potential::Stiff => self.curvature().stiff.as_ref(),
        };
        let formula = formula.expect("a method that needs a stiff part is refused where none is known");
        // However many directions it is taken along, it is one evaluation of second derivatives.
        let arguments = [&[Node(t.0)], &nodes(&x[..self.functions.degrees])[..]].concat();
        self.calls.push(Call { counts: Calls { hessian: 1, ..Calls::default() }, arguments, values: Vec::new() });
        self.at(formula, t, &[x, v].concat())
    }

    fn third_times(&mut self, t: Value, x: &[Value], v: &[Value]) -> Vec<Value> {
        self.at(&self.curvature().third, t, &[x, v].concat())
    }

    fn beta(&mut self) -> Value {
        Value(self.graph.parameter(self.functions.parameters).0)
    }

    fn take_over(&mut self, find: Finding) -> Vec<Value> {
        if !self.hands_over {
            return find(self);
        }
        // What finds it reads the same inputs, by the same numbers.
        let mut finder = Tracer::new(self.functions);
        finder.graph = self.graph.clone();
        let found = find(&mut finder);
        let find = finder.finish(&found);
        let taken: Vec<Node> = found.iter().map(|_| self.fresh()).collect();
        self.handover = Some((taken.clone(), find));
        values(&taken)
    }

    fn hand_over(&mut self, values: &[Value]) {
        if let Some((taken, _)) = &self.handover {
            self.carried.splice(0..0, taken.iter().copied().zip(nodes(values)));
        }
    }

    fn watch(&mut self, energy: Value) {
        if !self.functions.autonomous {
            return;
        }
        if let Some(place) = self.carried.iter().position(|&(_, next)| next == Node(energy.0))
            && self.handover.is_some()
        {
            let start = self.fresh();
            self.carried.push((start, start));
            self.watched = Some((place, self.carried.len() - 1));
        }
    }

    fn force_at(&mut self, q: &[Value]) {
        self.force_at = Some((nodes(q), self.systems.len()));
    }

    fn solve(&mut self, equations: &Equations, residual: Residual) -> Vec<Value> {
        let m = equations.rows.len();
        let unknowns: Vec<Node> = (0..m).map(|_| self.fresh()).collect();
        let before = self.calls.len();
        self.frames.push(Frame::default());
        let residuals = residual(self, &values(&unknowns));
        let inner = self.frames.pop().expect("pushed above");
        let guesses = match equations.guess {
            Guess::Last => vec![None; m],
            Guess::At(guess) => guess.iter().map(|value| Some(Node(value.0))).collect(),
        };
        // The outer unknowns first: inner guesses depend on them.
        let mut frame = Frame {
            unknowns,
            rows: equations.rows.to_vec(),
            sizes: nodes(equations.size),
            guesses,
            residuals: nodes(&residuals),
        };
        if inner.unknowns.is_empty()
            && let Some(solution) = self.explicit(&frame)
        {
            // What the residual computes besides is wanted at the solution.
            let solution = values(&solution);
            self.calls.truncate(before);
            residual(self, &solution);
            return solution;
        }
        let solution = values(&frame.unknowns);
        frame.unknowns.extend(inner.unknowns);
        frame.rows.extend(inner.rows);
        frame.sizes.extend(inner.sizes);
        frame.guesses.extend(inner.guesses);
        frame.residuals.extend(inner.residuals);
        match self.frames.last_mut() {
            Some(outer) => {
                outer.unknowns.extend(frame.unknowns);
                outer.rows.extend(frame.rows);
                outer.sizes.extend(frame.sizes);
                outer.guesses.extend(frame.guesses);
                outer.residuals.extend(frame.residuals);
            }
            None => self.close(frame, equations.watched),
        }
        solution
    }

    fn accumulate(&mut self, x: &[Value], increment: &[Value]) -> Vec<Value> {
        let mut sums = Vec::with_capacity(x.len());
        for (x, increment) in x.iter().zip(increment) {
            let (x, increment, lost) = (Node(x.0), Node(increment.0), self.fresh());
            let step = self.graph.add(increment, lost);
            let sum = self.graph.add(x, step);
            // x − sum is exact up to the last bit of x: what of the step did not fit.
            let taken = self.graph.sub(x, sum);
            let next = self.graph.add(taken, step);
            self.carried.push((lost, next));
            sums.push(Value(sum.0));
        }
        sums
    }

    fn record_multipliers(&mut self, start: &[Value], end: &[Value]) {
        // Those at the end are asked for after the step. As guesses for the next one they are carried already.
        let mut carry = |node: Node| match self.carried.iter().position(|&(_, next)| next == node) {
            Some(place) => place,
            None => {
                let input = self.fresh();
                self.carried.push((input, node));
                self.carried.len() - 1
            }
        };
        let end = nodes(end).into_iter().map(&mut carry).collect();
        self.multipliers = (nodes(start), end);
    }
}
