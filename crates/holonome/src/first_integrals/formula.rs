//! Formulas of a graph as text of the language.

use holonome_model::elaborate::model::{Model, Parameter, Role};
use holonome_model::elaborate::shape::Shape;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Input, Node};
use std::collections::HashMap;

/// How tightly the outermost operation of a text binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    /// A sum, or a sign in front.
    Sum,
    /// A product or a quotient.
    Product,
    /// A power.
    Power,
    /// A name, a number, a call.
    Whole,
}

/// Largest number of vectors whose norms, and those of whose differences, are recognised.
const MOST_VECTORS: usize = 24;

/// Names with which formulas of a model are written.
pub(super) struct Names {
    states: Vec<String>,
    /// Names of the scalar parameters' values.
    pub parameters: Vec<String>,
    /// Nodes that have a short text: norms of vectors.
    short: HashMap<Node, String>,
}

impl Names {
    /// Names for formulas of `graph`, to which nodes may be added.
    pub fn new(model: &Model, graph: &mut Graph) -> Names {
        let of_parameter = |p: &Parameter| -> Vec<String> {
            (0..p.family.len()).map(|place| p.family.component_name(place)).collect()
        };
        let parameters = model.parameters.iter().flat_map(of_parameter).collect();
        Names { states: model.component_names(), parameters, short: norms(model, graph) }
    }

    /// Names without indices and components.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        let all = self.states.iter().chain(&self.parameters);
        all.map(|name| name.split(['[', '.']).next().unwrap_or_default())
    }

    /// Name of a component of the state.
    pub fn state(&self, i: usize) -> &str {
        &self.states[i]
    }

    /// Text of a node in a place that binds like this.
    fn within(&self, graph: &Graph, node: Node, least: Binding) -> String {
        let (text, binding) = self.bound(graph, node);
        if binding < least { format!("({text})") } else { text }
    }

    /// Binding of the divisor of a quotient.
    pub fn divisor(&self, graph: &Graph, node: Node) -> Binding {
        match graph.expression(node) {
            Expression::Binary(Binary::Div, _, below) => {
                self.bound(graph, below).1.max(Binding::Power)
            }
            _ => Binding::Whole,
        }
    }

    /// Text of a node with its outermost binding.
    pub fn bound(&self, graph: &Graph, node: Node) -> (String, Binding) {
        if let Some(short) = self.short.get(&node) {
            return (short.clone(), Binding::Whole);
        }
        let of = |node: Node, least: Binding| self.within(graph, node, least);
        let sum = |a: Node, sign: &str, b: Node, least: Binding| {
            (format!("{} {sign} {}", of(a, Binding::Sum), of(b, least)), Binding::Sum)
        };
        let call = |name: &str, arguments: &[Node]| {
            let arguments: Vec<String> = arguments.iter().map(|&a| of(a, Binding::Sum)).collect();
            (format!("{name}({})", arguments.join(", ")), Binding::Whole)
        };
        match graph.expression(node) {
            Expression::Constant(bits) => match f64::from_bits(bits) {
                value if value < 0.0 => (value.to_string(), Binding::Sum),
                value => (value.to_string(), Binding::Whole),
            },
            Expression::Input(Input::State(i)) => (self.states[i as usize].clone(), Binding::Whole),
            Expression::Input(Input::Parameter(i)) => {
                (self.parameters[i as usize].clone(), Binding::Whole)
            }
            Expression::Input(Input::Time | Input::Slot(_)) => ("t".to_string(), Binding::Whole),
            Expression::Unary(Unary::Neg, a) => {
                (format!("-{}", of(a, Binding::Product)), Binding::Sum)
            }
            Expression::Unary(op, a) => call(op.name(), &[a]),
            Expression::Binary(Binary::Add, a, b) => sum(a, "+", b, Binding::Product),
            Expression::Binary(Binary::Sub, a, b) => sum(a, "-", b, Binding::Product),
            Expression::Binary(Binary::Mul, a, b) if a == b => {
                (format!("{}^2", of(a, Binding::Whole)), Binding::Power)
            }
            Expression::Binary(Binary::Mul, a, b) => {
                (format!("{}*{}", of(a, Binding::Product), of(b, Binding::Power)), Binding::Product)
            }
            Expression::Binary(Binary::Div, a, b) => {
                (format!("{}/{}", of(a, Binding::Product), of(b, Binding::Power)), Binding::Product)
            }
            Expression::Binary(Binary::Pow, a, b) => {
                (format!("{}^{}", of(a, Binding::Whole), of(b, Binding::Whole)), Binding::Power)
            }
            Expression::Binary(op, a, b) => call(op.name(), &[a, b]),
            other => call("?", &other.arguments().collect::<Vec<_>>()),
        }
    }
}

/// Norms of the vectors among coordinates and states, and of their differences, as far as the graph
/// has them.
fn norms(model: &Model, graph: &mut Graph) -> HashMap<Node, String> {
    let mut vectors: Vec<(String, usize, usize)> = Vec::new();
    for variable in model.phase_variables().filter(|v| !matches!(v.role, Role::Momentum(_))) {
        if let Shape::Vector(width) = variable.family.shape {
            let member = |k| (variable.family.member_name(k), variable.first + k * width, width);
            vectors.extend((0..variable.family.members().min(MOST_VECTORS + 1)).map(member));
        }
    }
    let mut names = HashMap::new();
    if vectors.len() > MOST_VECTORS {
        return names;
    }
    let mut name = |graph: &mut Graph, parts: &[Node], text: String| {
        let square = graph.dot(parts, parts);
        names.insert(graph.sqrt(square), format!("norm({text})"));
    };
    for (k, (text, first, width)) in vectors.iter().enumerate() {
        let parts: Vec<Node> = (0..*width).map(|c| graph.state(first + c)).collect();
        name(graph, &parts, text.clone());
        for (other, second, _) in vectors[..k].iter().filter(|(_, _, w)| w == width) {
            for (a, b, (x, y)) in [(text, other, (first, second)), (other, text, (second, first))] {
                let parts: Vec<Node> = (0..*width)
                    .map(|c| {
                        let (x, y) = (graph.state(x + c), graph.state(y + c));
                        graph.sub(x, y)
                    })
                    .collect();
                name(graph, &parts, format!("{a} - {b}"));
            }
        }
    }
    names
}
