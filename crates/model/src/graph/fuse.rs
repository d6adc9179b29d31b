//! Fusion of multiply-adds in a graph. All of them are formed here, so every backend rounds alike.

use super::op::Binary;
use super::{Expression, Fused, Graph, Input, Node};

/// Fuse every product that only one sum or difference uses into it; otherwise the formulas stay the
/// same.
pub fn fuse(graph: &Graph, outputs: &[Node]) -> (Graph, Vec<Node>) {
    let plan = Plan::new(graph, outputs);
    // Copied as it is: nothing is folded any more.
    let mut result = Graph::with_capacity(plan.order.len());
    let mut image: Vec<Node> = Vec::with_capacity(plan.order.len());
    for i in 0..plan.order.len() {
        let at = |n: Node| image[plan.place(n)];
        let copy = match plan.expression(i) {
            leaf @ (Expression::Constant(_) | Expression::Input(_)) => leaf,
            Expression::Unary(op, a) => Expression::Unary(op, at(a)),
            Expression::Binary(op, a, b) => Expression::Binary(op, at(a), at(b)),
            Expression::Select(c, a, b) => Expression::Select(at(c), at(a), at(b)),
            Expression::Fused(op, a, b, c) => Expression::Fused(op, at(a), at(b), at(c)),
            Expression::Largest(a, b) => Expression::Largest(at(a), at(b)),
            Expression::RoughPower(a, b) => Expression::RoughPower(at(a), at(b)),
            Expression::Spread(a, lane) => Expression::Spread(at(a), lane),
        };
        image.push(result.put(copy));
    }
    let outputs = outputs.iter().map(|&o| image[plan.place(o)]).collect();
    (result, outputs)
}

/// Number of operations that [fuse] leaves for every evaluation, those that depend on the state or
/// the time, and the number of quotients among them.
pub(super) fn count(graph: &Graph, outputs: &[Node]) -> (usize, usize) {
    let plan = Plan::new(graph, outputs);
    let (mut operations, mut quotients) = (0, 0);
    for (i, &node) in plan.order.iter().enumerate().filter(|&(i, _)| !plan.uniform[i]) {
        let expression = graph.expression(node);
        quotients += usize::from(matches!(expression, Expression::Binary(Binary::Div, ..)));
        // The product in a fused operation is an entry of its own in the order, but no longer an
        // operation.
        operations += usize::from(expression.arguments().next().is_some())
            - usize::from(plan.fused[i].is_some());
    }
    (operations, quotients)
}

/// Plan for the nodes that some outputs need.
struct Plan<'g> {
    graph: &'g Graph,
    /// Nodes that the outputs need.
    order: Vec<Node>,
    /// Place of each of them in the order.
    places: Vec<u32>,
    /// True if it depends on parameters and numbers only.
    uniform: Vec<bool>,
    /// The fused operation that replaces it, if any.
    fused: Vec<Option<Expression>>,
}

impl<'g> Plan<'g> {
    fn new(graph: &'g Graph, outputs: &[Node]) -> Plan<'g> {
        let order = graph.reachable(outputs);
        let mut places = vec![u32::MAX; order.last().map_or(0, |last| last.index() + 1)];
        for (i, node) in order.iter().enumerate() {
            places[node.index()] = i as u32;
        }
        let place = |node: Node| places[node.index()] as usize;
        let mut uses = vec![0u32; order.len()];
        for &output in outputs {
            uses[place(output)] += 1;
        }
        let mut uniform = vec![true; order.len()];
        for (i, &node) in order.iter().enumerate() {
            let expression = graph.expression(node);
            for argument in expression.arguments() {
                uses[place(argument)] += 1;
            }
            uniform[i] = match expression {
                Expression::Input(Input::State(_) | Input::Time | Input::Slot(_)) => false,
                _ => expression.arguments().all(|a| uniform[place(a)]),
            };
        }
        let mut fused = vec![None; order.len()];
        for (i, &node) in order.iter().enumerate() {
            // A product of parameters is computed once for the run; fusion would move it into the
            // loop.
            let product = |n: Node| match graph.expression(n) {
                Expression::Binary(Binary::Mul, a, b)
                    if uses[place(n)] == 1 && uniform[place(n)] == uniform[i] =>
                {
                    Some((a, b))
                }
                _ => None,
            };
            fused[i] = match graph.expression(node) {
                // The later product is the one that is ready last: fusing it shortens the chain.
                Expression::Binary(Binary::Add, x, y) => product(y)
                    .map(|(a, b)| Expression::Fused(Fused::Fma, a, b, x))
                    .or_else(|| product(x).map(|(a, b)| Expression::Fused(Fused::Fma, a, b, y))),
                Expression::Binary(Binary::Sub, x, y) => product(y)
                    .map(|(a, b)| Expression::Fused(Fused::Fnma, a, b, x))
                    .or_else(|| product(x).map(|(a, b)| Expression::Fused(Fused::Fms, a, b, y))),
                _ => None,
            };
        }
        Plan { graph, order, places, uniform, fused }
    }

    fn place(&self, node: Node) -> usize {
        self.places[node.index()] as usize
    }

    fn expression(&self, i: usize) -> Expression {
        self.fused[i].unwrap_or_else(|| self.graph.expression(self.order[i]))
    }
}
