//! Forms fused multiply-adds in a graph. It happens here and nowhere else, so every backend rounds alike.

use super::op::Binary;
use super::{Expression, Fused, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// The same formulas with every product that only one sum or difference uses fused into it.
pub fn fuse(graph: &Graph, outputs: &[Node]) -> (Graph, Vec<Node>) {
    let order = graph.reachable(outputs);
    let place = |node: Node| order.binary_search(&node).expect("arguments are reachable");
    let mut uses = vec![0u32; order.len()];
    for &output in outputs {
        uses[place(output)] += 1;
    }
    // What depends on parameters and numbers only.
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
    let mut fused: FxHashMap<Node, Expression> = FxHashMap::default();
    for (i, &node) in order.iter().enumerate() {
        // A product of parameters is computed once for the run; fusing it would bring it into the loop.
        let product = |n: Node| match graph.expression(n) {
            Expression::Binary(Binary::Mul, a, b) if uses[place(n)] == 1 && uniform[place(n)] == uniform[i] => {
                Some((a, b))
            }
            _ => None,
        };
        let replacement = match graph.expression(node) {
            // The later product is the one that is ready last: fusing it shortens the chain.
            Expression::Binary(Binary::Add, x, y) => product(y)
                .map(|(a, b)| Expression::Fused(Fused::Fma, a, b, x))
                .or_else(|| product(x).map(|(a, b)| Expression::Fused(Fused::Fma, a, b, y))),
            Expression::Binary(Binary::Sub, x, y) => product(y)
                .map(|(a, b)| Expression::Fused(Fused::Fnma, a, b, x))
                .or_else(|| product(x).map(|(a, b)| Expression::Fused(Fused::Fms, a, b, y))),
            _ => None,
        };
        if let Some(expression) = replacement {
            fused.insert(node, expression);
        }
    }
    // Copied as it stands: nothing is folded any more.
    let mut result = Graph::new();
    let mut image: Vec<Node> = Vec::with_capacity(order.len());
    for &node in &order {
        let at = |n: Node| image[place(n)];
        let copy = match fused.get(&node).copied().unwrap_or_else(|| graph.expression(node)) {
            leaf @ (Expression::Constant(_) | Expression::Input(_)) => leaf,
            Expression::Unary(op, a) => Expression::Unary(op, at(a)),
            Expression::Binary(op, a, b) => Expression::Binary(op, at(a), at(b)),
            Expression::Select(c, a, b) => Expression::Select(at(c), at(a), at(b)),
            Expression::Fused(op, a, b, c) => Expression::Fused(op, at(a), at(b), at(c)),
            Expression::Largest(a, b) => Expression::Largest(at(a), at(b)),
        };
        image.push(result.put(copy));
    }
    let outputs = outputs.iter().map(|&o| image[place(o)]).collect();
    (result, outputs)
}
