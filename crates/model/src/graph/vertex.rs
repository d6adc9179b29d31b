//! Vertices: arguments at which a root, a power or an angle has no derivative, although formulas of
//! it may have one.
//!
//! |v|³ is differentiable at v = 0, where |v| is not: the chain rule says 0 · ∞ there. A factor vanishes at a vertex with
//! an *order*, the power of the distance from it. If the product in the chain rule has an order
//! that the argument's own derivative leaves positive, the derivative is 0 at the vertex. Where
//! orders are equal it is unknown, and stays so.

use super::op::{Binary, Unary};
use super::{Expression, Fused, Graph, Node, Range};
use rustc_hash::FxHashMap;

/// Largest number of operations of a factor that are visited for its order.
const MOST_VISITED: usize = 64;

/// Order of what is not known to stay finite.
const UNKNOWN: f64 = f64::NEG_INFINITY;

/// The argument 0 of a root or a power, or the arguments 0 of an angle.
pub(super) struct Vertex {
    arguments: [Node; 2],
    /// Exponent of a power, if it is a parameter.
    exponent: Option<Node>,
    /// Nodes that are 0 where the argument is, with the order 1: those that vary freely there.
    orders: FxHashMap<Node, f64>,
    visits: usize,
}

impl Vertex {
    /// Vertex of the operation `node`, if it has one.
    pub(super) fn of(graph: &Graph, node: Node) -> Option<Vertex> {
        let is_positive = |node: Node| graph.ranges[node.index()].has(Range::POSITIVE);
        let is_uniform = |node: Node| graph.ranges[node.index()].has(Range::UNIFORM);
        let (arguments, exponent) = match graph.expression(node) {
            Expression::Unary(Unary::Sqrt, a) => ([a, a], None),
            Expression::Binary(Binary::Pow, a, b) => match graph.value(b) {
                Some(b) if b.fract() == 0.0 => return None,
                Some(_) => ([a, a], None),
                None => ([a, a], Some(b).filter(|&b| is_uniform(b))),
            },
            Expression::Binary(Binary::Atan2, a, b) => ([a, b], None),
            _ => return None,
        };
        let mut orders = FxHashMap::default();
        let mut pending = arguments.to_vec();
        while let Some(node) = pending.pop() {
            if orders.len() + pending.len() > MOST_VISITED
                || graph.value(node).is_some_and(|value| value != 0.0)
            {
                return None;
            }
            match graph.expression(node) {
                Expression::Binary(Binary::Add, a, b) if is_positive(a) && is_positive(b) => {
                    pending.extend([a, b])
                }
                Expression::Fused(Fused::Fma, a, b, c) if a == b && is_positive(c) => {
                    pending.extend([a, c])
                }
                Expression::Binary(Binary::Mul, a, b) if a == b => pending.push(a),
                Expression::Binary(Binary::Mul, a, b) if is_uniform(a) => pending.push(b),
                Expression::Binary(Binary::Mul | Binary::Div, a, b) if is_uniform(b) => {
                    pending.push(a)
                }
                Expression::Unary(Unary::Neg | Unary::Abs | Unary::Sqrt, a) => pending.push(a),
                _ => {
                    orders.insert(node, 1.0);
                }
            }
        }
        Some(Vertex { arguments, exponent, orders, visits: 0 })
    }

    /// Condition for being at the vertex.
    pub(super) fn condition(&self, graph: &mut Graph) -> Node {
        let zero = graph.zero();
        match self.arguments.map(|argument| graph.binary(Binary::Equal, argument, zero)) {
            [one, other] if one == other => one,
            [one, other] => graph.binary(Binary::And, one, other),
        }
    }

    /// Condition under which the product of `outer`, the derivative `own` of the operation and that
    /// of its argument is 0 by the chain rule; `None` if it is not known to be, or if no factor is
    /// infinite there.
    pub(super) fn vanishing(&mut self, graph: &mut Graph, outer: Node, own: Node) -> Option<Node> {
        let argument = self.order_of_arguments(graph);
        let outer = self.order(graph, outer);
        if let Some(exponent) = self.exponent {
            // b aᵇ⁻¹ a': the product vanishes from some exponent on.
            let least = (1.0 - outer) / argument;
            if !least.is_finite() || least >= 1.0 {
                return None;
            }
            let least = graph.constant(least);
            let (at, is_large) =
                (self.condition(graph), graph.binary(Binary::Less, least, exponent));
            return Some(graph.binary(Binary::And, at, is_large));
        }
        let own = self.order(graph, own);
        (own < 0.0 && own > UNKNOWN && outer + own + argument - 1.0 > 0.0)
            .then(|| self.condition(graph))
    }

    /// Order of a derivative `own` of the operation times that of its argument; `None` if it has a
    /// value at the vertex.
    pub(super) fn slope(&mut self, graph: &Graph, own: Node) -> Option<f64> {
        let own = self.order(graph, own);
        (own < 0.0).then(|| own + self.order_of_arguments(graph) - 1.0)
    }

    fn order_of_arguments(&mut self, graph: &Graph) -> f64 {
        let [one, other] = self.arguments.map(|argument| self.order(graph, argument));
        one.min(other)
    }

    /// Order with which a node vanishes at the vertex, or a smaller one; negative if it grows.
    pub(super) fn order(&mut self, graph: &Graph, node: Node) -> f64 {
        if let Some(&known) = self.orders.get(&node) {
            return known;
        }
        self.visits += 1;
        if self.visits > MOST_VISITED {
            return UNKNOWN;
        }
        let of = |vertex: &mut Vertex, node: Node| vertex.order(graph, node);
        // Of a function that is 0 at 0, smooth there and finite elsewhere; of one that is finite.
        let odd = |order: f64| if order >= 0.0 { order } else { UNKNOWN };
        let even = |order: f64| if order >= 0.0 { 0.0 } else { UNKNOWN };
        let product = |a: f64, b: f64| if a == UNKNOWN || b == UNKNOWN { UNKNOWN } else { a + b };
        let order = match graph.expression(node) {
            Expression::Constant(bits) if f64::from_bits(bits) == 0.0 => f64::INFINITY,
            Expression::Constant(_) | Expression::Input(_) => 0.0,
            Expression::Unary(op, a) => {
                let a = of(self, a);
                match op {
                    Unary::Neg | Unary::Abs => a,
                    Unary::Sqrt => odd(a) / 2.0,
                    Unary::Sin
                    | Unary::Tan
                    | Unary::Asin
                    | Unary::Atan
                    | Unary::Sinh
                    | Unary::Tanh
                    | Unary::Log1p
                    | Unary::Expm1
                    | Unary::Erf => odd(a),
                    Unary::Cos | Unary::Cosh | Unary::Exp | Unary::Acos => even(a),
                    Unary::Log | Unary::Log10 if a == 0.0 => 0.0,
                    Unary::Log | Unary::Log10 => UNKNOWN,
                    Unary::Gamma | Unary::LogGamma => UNKNOWN,
                    Unary::Round | Unary::Not => 0.0,
                }
            }
            Expression::Binary(op, a, b) => match op {
                Binary::Add | Binary::Sub | Binary::Min | Binary::Max => {
                    of(self, a).min(of(self, b))
                }
                Binary::Mul => product(of(self, a), of(self, b)),
                Binary::Div => product(of(self, a), -of(self, b)),
                Binary::Pow => match (of(self, a), graph.value(b)) {
                    (0.0, _) => 0.0,
                    (a, Some(b)) if a > 0.0 => a * b,
                    _ => UNKNOWN,
                },
                Binary::Atan2 => even(of(self, a).min(of(self, b))),
                Binary::BesselJ | Binary::EllipticK | Binary::EllipticE => even(of(self, b)),
                Binary::Polygamma | Binary::GammaP => UNKNOWN,
                Binary::Less | Binary::LessEqual | Binary::Equal | Binary::And | Binary::Or => 0.0,
            },
            Expression::Select(_, a, b) => of(self, a).min(of(self, b)),
            Expression::Fused(_, a, b, c) => product(of(self, a), of(self, b)).min(of(self, c)),
            Expression::Largest(..) | Expression::RoughPower(..) | Expression::Spread(..) => {
                UNKNOWN
            }
        };
        self.orders.insert(node, order);
        order
    }
}
