//! Nodes of a graph as the symbols of a recorded step, for unrolled models.

use super::flows::Flows;
use super::formula_space::FormulaSpace;
use super::functions::{Curvature, Functions};
use super::poisson::parts::ExactParts;
use super::recorder::{CompositeFunctions, StepRecorder};
use super::rigid_body::RigidBody;
use super::symbols::Symbols;
use crate::kernels::Formula;
use holonome_integrate::phase_space::{Asked, Body, Equation, Parameter, Part, Value, Vector};
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use holonome_model::rows::StridedFamily;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Nodes over the formulas of a model. Their inputs are states by number.
pub struct Nodes {
    functions: Arc<Functions>,
    pub graph: Graph,
    inputs: usize,
}

impl Nodes {
    /// Nodes over `functions`, without inputs yet.
    pub fn new(functions: &Arc<Functions>) -> Nodes {
        Nodes { functions: Arc::clone(functions), graph: Graph::new(), inputs: 0 }
    }

    /// Number of inputs so far.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Derivatives of `node` with respect to `unknowns`.
    fn partials(&mut self, node: Node, unknowns: &[Node]) -> Vec<(u32, Node)> {
        let number: FxHashMap<Input, u32> = unknowns
            .iter()
            .enumerate()
            .map(|(k, &unknown)| match self.graph.expression(unknown) {
                Expression::Input(input) => (input, k as u32),
                _ => unreachable!("an unknown is an input"),
            })
            .collect();
        let partials = self.graph.adjoint(node, |input| number.contains_key(&input));
        partials.into_iter().map(|(input, d)| (number[&input], d)).collect()
    }
}

impl Symbols for Nodes {
    type Symbol = Node;
    /// Row, unknown, entry.
    type Jacobian = Vec<(u32, u32, Node)>;

    fn symbol(value: Value) -> Node {
        Node(value.0)
    }

    fn value(node: Node) -> Value {
        Value(node.0)
    }

    fn lengths(&self) -> Vec<u32> {
        vec![1; self.functions.dimension]
    }

    fn degrees(&self) -> usize {
        self.functions.degrees
    }

    fn term_sizes(&mut self, t: Node, x: &[Node]) -> Vec<Node> {
        let functions = Arc::clone(&self.functions);
        at_some(functions.term_sizes.as_ref(), &mut self.graph, t, x)
    }

    fn parts(&self) -> usize {
        let poisson = self.functions.poisson.as_ref();
        poisson.and_then(|poisson| poisson.parts.as_ref()).map_or(0, ExactParts::count)
    }

    fn energy_degree(&self) -> Option<u32> {
        self.functions.poisson.as_ref().and_then(|poisson| poisson.degree)
    }

    fn equations(&self, _: Equation) -> u32 {
        1
    }

    fn autonomous(&self) -> bool {
        self.functions.autonomous
    }

    fn input(&mut self, _: u32) -> Node {
        self.inputs += 1;
        self.graph.state(self.inputs - 1)
    }

    fn length(&self, _: Node) -> u32 {
        1
    }

    fn constant(&mut self, value: f64) -> Node {
        self.graph.constant(value)
    }

    fn unary(&mut self, op: Unary, a: Node) -> Node {
        self.graph.unary(op, a)
    }

    fn binary(&mut self, op: Binary, a: Node, b: Node) -> Node {
        self.graph.binary(op, a, b)
    }

    fn within(&mut self, a: Node, bound: f64) -> Node {
        let g = &mut self.graph;
        let (size, bound, none) = (g.unary(Unary::Abs, a), g.constant(bound), g.constant(f64::NAN));
        let below = g.binary(Binary::Less, size, bound);
        g.select(below, a, none)
    }

    fn largest(&mut self, of: &[Node]) -> Node {
        let zero = self.graph.zero();
        of.iter().fold(zero, |largest, &node| self.graph.largest(node, largest))
    }

    fn total(&mut self, of: Vec<Node>) -> Node {
        let zero = self.graph.zero();
        of.into_iter().fold(zero, |sum, node| self.graph.add(sum, node))
    }

    fn parameter(&mut self, which: Parameter) -> Node {
        self.graph.parameter(self.functions.parameters.of_parameter(which))
    }

    fn splits(&self) -> bool {
        self.functions.kepler.is_some()
    }

    fn recoil_commutes(&self) -> bool {
        self.functions.kepler.as_ref().is_none_or(|kepler| kepler.commutes)
    }

    fn may_meet(&self) -> bool {
        self.functions.kepler.as_ref().is_some_and(|kepler| kepler.may_meet())
    }

    fn mass_is_diagonal(&self) -> bool {
        self.functions.parameters.mass_is_diagonal()
    }

    fn momenta(&self) -> Vec<StridedFamily> {
        let momenta = self.functions.degrees as u32..2 * self.functions.degrees as u32;
        momenta.map(|first| StridedFamily { first, stride: 1, length: 1 }).collect()
    }

    fn ask(&mut self, asked: Asked, t: Node, x: &[Node]) -> Vec<Node> {
        let functions = Arc::clone(&self.functions);
        let energy = || {
            functions.energy.as_ref().expect("a method that needs H is refused where there is none")
        };
        let curvature = || -> &Curvature {
            functions
                .curvature
                .as_ref()
                .expect("a method that needs V is refused where H is of another form")
        };
        let poisson = || {
            let poisson = functions.poisson.as_ref();
            poisson.expect("a method that needs a Poisson system is refused where there is none")
        };
        let formula = match asked {
            Asked::Field => &functions.field,
            Asked::Slope => &functions.slope,
            Asked::Force => return at_some(functions.force.as_ref(), &mut self.graph, t, x),
            Asked::Friction => return at_some(functions.friction.as_ref(), &mut self.graph, t, x),
            Asked::Power => functions.power.as_ref().expect("asked for where there is work"),
            Asked::Velocity => &functions.h_p,
            Asked::Energy => energy(),
            Asked::Constraints => &functions.constraints,
            Asked::Hidden => &functions.hidden,
            Asked::ConstraintSizes => &functions.constraint_sizes,
            Asked::HiddenSizes => &functions.hidden_sizes,
            Asked::Reaction => &functions.reaction,
            Asked::HiddenField => &functions.extension().hidden_field,
            Asked::ConstraintRates => &functions.extension().constraint_rates,
            Asked::HiddenRates => &functions.extension().hidden_rates,
            Asked::Gradient => &poisson().gradient,
            Asked::Brackets => &poisson().brackets,
            Asked::Second => &curvature().second,
            Asked::Third => &curvature().third,
            Asked::StiffSecond => {
                let stiff = curvature().stiff.as_ref();
                stiff.expect("a method that needs a stiff part is refused where none is known")
            }
        };
        formula.at(&mut self.graph, t, x)
    }

    fn reached(&self, roots: &[Node]) -> FxHashSet<Node> {
        self.graph.reachable(roots).into_iter().collect()
    }

    fn substituted(&mut self, node: Node, replaced: &mut FxHashMap<Node, Node>) -> Node {
        self.graph.substituted(&[node], replaced)[0]
    }

    fn explicit(&mut self, residual: Node, u: Node, alone: bool) -> Option<Node> {
        let [(_, entry)] = self.partials(residual, &[u])[..] else { return None };
        let is_one = self.graph.value(entry) == Some(1.0);
        if !is_one && (!alone || self.depends(entry, &[u])) || self.jumps(residual, &[u]) {
            return None;
        }
        let at_zero = [(u, self.graph.zero())].into_iter().collect();
        let minus = self.graph.substituted(&[residual], &at_zero)[0];
        let value = self.graph.neg(minus);
        Some(if is_one { value } else { self.graph.div(value, entry) })
    }

    fn diagonal(&mut self, entries: &[Node]) -> Self::Jacobian {
        entries.iter().enumerate().map(|(k, &entry)| (k as u32, k as u32, entry)).collect()
    }

    fn differentiated(&mut self, residuals: &[Node], unknowns: &[Node]) -> (Self::Jacobian, bool) {
        let mut jacobian = Vec::new();
        for (row, &residual) in residuals.iter().enumerate() {
            let partials = self.partials(residual, unknowns);
            jacobian.extend(partials.into_iter().map(|(column, node)| (row as u32, column, node)));
        }
        let entries: Vec<Node> = jacobian.iter().map(|&(_, _, node)| node).collect();
        let depends = self.reached(&entries);
        let linear = !unknowns.iter().any(|unknown| depends.contains(unknown))
            && !residuals.iter().any(|&residual| self.jumps(residual, unknowns));
        (jacobian, linear)
    }
}

impl Nodes {
    /// True if `residual` jumps somewhere as one of the `unknowns` changes: dry friction has the
    /// derivative 0, but is not linear.
    fn jumps(&self, residual: Node, unknowns: &[Node]) -> bool {
        let reached = self.reached(&self.graph.jumps(residual));
        unknowns.iter().any(|unknown| reached.contains(unknown))
    }
}

/// Values of a formula, none if there is none.
fn at_some(formula: Option<&Formula>, g: &mut Graph, t: Node, x: &[Node]) -> Vec<Node> {
    formula.map_or(Vec::new(), |formula| formula.at(g, t, x))
}

impl CompositeFunctions for Nodes {
    fn constraint_field(
        space: &mut StepRecorder<Nodes>,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let functions = space.functions();
        functions.gradients.field(space, t, x, lambda)
    }

    fn slide(
        space: &mut StepRecorder<Nodes>,
        t: Value,
        x: &[Value],
        lambda: &[Value],
    ) -> Vec<Value> {
        let functions = space.functions();
        functions.fibre.slide(space, t, x, lambda)
    }

    fn flow(
        space: &mut StepRecorder<Nodes>,
        part: Part,
        t: Value,
        tau: Value,
        x: &[Value],
    ) -> Vec<Value> {
        let functions = space.functions();
        if let Part::Numbered(part) = part {
            let parts = functions.poisson.as_ref().and_then(|poisson| poisson.parts.as_ref());
            let parts = parts.expect("a method that needs parts is refused where there are none");
            return parts.flow(space, part, (t, tau), x);
        }
        if part == Part::Recoil {
            let kepler = functions.kepler.as_ref();
            return kepler.map_or_else(|| x.to_vec(), |kepler| kepler.recoil(space, tau, x));
        }
        match &functions.kepler {
            Some(kepler) => kepler.flow(space, tau, x),
            None => known_flows(&functions).motion(space, t, tau, x),
        }
    }

    fn split(space: &mut StepRecorder<Nodes>, x: &[Value]) -> Vec<Value> {
        let functions = space.functions();
        functions.kepler.as_ref().map_or_else(|| x.to_vec(), |kepler| kepler.split(space, x))
    }

    fn joined(space: &mut StepRecorder<Nodes>, y: &[Value]) -> Vec<Value> {
        let functions = space.functions();
        functions.kepler.as_ref().map_or_else(|| y.to_vec(), |kepler| kepler.joined(space, y))
    }

    fn nearness(space: &mut StepRecorder<Nodes>, y: &[Value]) -> Value {
        let functions = space.functions();
        match &functions.kepler {
            Some(kepler) => kepler.nearness(space, y),
            None => Nodes::value(space.symbols.constant(0.0)),
        }
    }

    fn kick(space: &mut StepRecorder<Nodes>, t: Value, y: &[Value]) -> Vec<Value> {
        let functions = space.functions();
        match &functions.kepler {
            Some(kepler) => kepler.kick(space, t, y),
            None => known_flows(&functions).kick(space, t, y),
        }
    }

    fn body(space: &mut StepRecorder<Nodes>, x: &[Value]) -> Body {
        rigid_body(&space.functions()).body(space, x)
    }

    fn state_of(space: &mut StepRecorder<Nodes>, body: &Body) -> Vec<Value> {
        rigid_body(&space.functions()).state_of(space, body)
    }

    fn inertia(space: &mut StepRecorder<Nodes>, inverse: bool) -> [Vector; 3] {
        rigid_body(&space.functions()).matrix(space, usize::from(inverse))
    }

    fn torque(space: &mut StepRecorder<Nodes>, t: Value, body: &Body) -> Vector {
        rigid_body(&space.functions()).torque(space, t, body)
    }
}

fn known_flows(functions: &Functions) -> &Flows {
    let flows = functions.flows.as_ref();
    flows.expect("a method that needs flows is refused where they are not known")
}

fn rigid_body(functions: &Functions) -> &RigidBody {
    functions
        .body
        .as_ref()
        .expect("a method that needs a rigid body is refused where the model is none")
}

impl StepRecorder<Nodes> {
    fn functions(&self) -> Arc<Functions> {
        Arc::clone(&self.symbols.functions)
    }
}

impl FormulaSpace for StepRecorder<Nodes> {
    fn at(&mut self, formula: &Formula, t: Value, x: &[Value]) -> Vec<Value> {
        let x: Vec<Node> = x.iter().map(|value| Node(value.0)).collect();
        let nodes = formula.at(&mut self.symbols.graph, Node(t.0), &x);
        nodes.into_iter().map(|node| Value(node.0)).collect()
    }

    fn unless_zero(&mut self, condition: Value, a: Value, b: Value) -> Value {
        Value(self.symbols.graph.select(Node(condition.0), Node(a.0), Node(b.0)).0)
    }

    fn if_less(&mut self, a: Value, b: Value, below: Value, other: Value) -> Value {
        let [a, b, below, other] = [a, b, below, other].map(|value| Node(value.0));
        let graph = &mut self.symbols.graph;
        let condition = graph.binary(Binary::Less, a, b);
        Value(graph.select(condition, below, other).0)
    }

    fn larger(&mut self, a: Value, b: Value) -> Value {
        Value(self.symbols.graph.largest(Node(a.0), Node(b.0)).0)
    }

    fn is_zero(&self, value: Value) -> bool {
        self.symbols.graph.is_zero(Node(value.0))
    }
}
