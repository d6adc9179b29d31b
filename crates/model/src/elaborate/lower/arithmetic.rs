//! Components of expressions, derived from the components of their parts and written into a graph.

use crate::elaborate::expression::{CheckedExpression, Kind};
use crate::elaborate::shape::Shape;
use crate::graph::op::Binary;
use crate::graph::{Graph, Node};

/// The components of `e`, given those of its parts in the order of [`Kind::for_each_part`].
pub(super) fn components(g: &mut Graph, e: &CheckedExpression, parts: &[Vec<Node>]) -> Vec<Node> {
    match (&e.kind, parts) {
        (Kind::Number(v), []) => vec![g.constant(*v)],
        (Kind::Identity, []) => identity(g, e.shape),
        (Kind::Unary(op, _), [a]) => a.iter().map(|&a| g.unary(*op, a)).collect(),
        (Kind::Binary(Binary::Pow, ..), [a, b]) => vec![g.pow(a[0], b[0])],
        (Kind::Binary(op, ..), [a, b]) => vec![g.binary(*op, a[0], b[0])],
        (Kind::Scale(..), [c, a]) => a.iter().map(|&a| g.mul(c[0], a)).collect(),
        (Kind::Divide(..), [a, c]) => a.iter().map(|&a| g.div(a, c[0])).collect(),
        (Kind::Product(left, _), [a, b]) => product(g, left.shape, a, b),
        (Kind::Select(..), [c, a, b]) => {
            a.iter().zip(b).map(|(&a, &b)| g.select(c[0], a, b)).collect()
        }
        (Kind::Stack(_), entries) => entries.concat(),
        (Kind::Function(function, arguments), values) => {
            let shapes: Vec<Shape> = arguments.iter().map(|a| a.shape).collect();
            (function.row().lower)(g, &shapes, values)
        }
        (other, _) => unreachable!("not a form of components: {other:?}"),
    }
}

/// Adds a term to `sum`, or subtracts it.
pub(super) fn add_term(g: &mut Graph, sum: &mut [Node], is_subtracted: bool, term: &[Node]) {
    for (s, &t) in sum.iter_mut().zip(term) {
        *s = if is_subtracted { g.sub(*s, t) } else { g.add(*s, t) };
    }
}

/// Matrix times vector or matrix.
fn product(g: &mut Graph, left: Shape, a: &[Node], b: &[Node]) -> Vec<Node> {
    let Shape::Matrix(k, l) = left else { unreachable!("checked") };
    let columns = b.len() / l;
    let mut product = Vec::with_capacity(k * columns);
    for i in 0..k {
        for j in 0..columns {
            let column: Vec<Node> = (0..l).map(|m| b[m * columns + j]).collect();
            product.push(g.dot(&a[i * l..(i + 1) * l], &column));
        }
    }
    product
}

fn identity(g: &mut Graph, shape: Shape) -> Vec<Node> {
    let Shape::Matrix(n, _) = shape else { unreachable!("checked") };
    let (zero, one) = (g.zero(), g.one());
    (0..n * n).map(|i| if i / n == i % n { one } else { zero }).collect()
}
