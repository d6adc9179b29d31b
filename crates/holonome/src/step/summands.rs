//! Terms of a sum.

use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::{Expression, Graph, Node};

/// Summands of `root`, each with the factors that stand before the sums that it is in. A factor is a
/// node that does not `move`.
pub fn summands(g: &mut Graph, root: Node, moves: impl Fn(&Graph, Node) -> bool) -> Vec<Node> {
    let (mut terms, mut pending) = (Vec::new(), vec![(g.one(), root)]);
    while let Some((factor, node)) = pending.pop() {
        match g.expression(node) {
            Expression::Binary(Binary::Add, a, b) => pending.extend([(factor, b), (factor, a)]),
            Expression::Binary(Binary::Sub, a, b) => {
                let minus = g.neg(factor);
                pending.extend([(minus, b), (factor, a)]);
            }
            Expression::Unary(Unary::Neg, a) => {
                let minus = g.neg(factor);
                pending.push((minus, a));
            }
            Expression::Binary(Binary::Mul, a, b) if !moves(g, a) => {
                let product = g.mul(factor, a);
                pending.push((product, b));
            }
            Expression::Binary(Binary::Mul, a, b) if !moves(g, b) => {
                let product = g.mul(factor, b);
                pending.push((product, a));
            }
            Expression::Binary(Binary::Div, a, b) if !moves(g, b) => {
                let quotient = g.div(factor, b);
                pending.push((quotient, a));
            }
            _ => {
                let term = g.mul(factor, node);
                terms.push(term);
            }
        }
    }
    terms
}
