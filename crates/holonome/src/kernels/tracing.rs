//! Recorder as the space over which a step is written: the operations of a step become nodes of a
//! graph.

use super::formula::Formula;
use holonome_integrate::space::Space;
use holonome_model::graph::{Graph, Node};

/// Space of vectors of nodes. It follows the order and the roundings that [`Space`] fixes.
pub struct TracingSpace<'a> {
    /// Graph of the nodes.
    pub graph: Graph,
    field: &'a Formula,
}

impl<'a> TracingSpace<'a> {
    /// Space with an empty graph, for steps of `field`.
    pub fn new(field: &'a Formula) -> TracingSpace<'a> {
        TracingSpace { graph: Graph::new(), field }
    }
}

/// Terms of a sum whose weights are not zero.
fn terms<'k>(weights: &[f64], k: &'k [Vec<Node>]) -> Vec<(f64, &'k [Node])> {
    weights
        .iter()
        .copied()
        .zip(k.iter().map(Vec::as_slice))
        .filter(|&(weight, _)| weight != 0.0)
        .collect()
}

impl Space for TracingSpace<'_> {
    type Scalar = Node;

    fn time(&mut self, t: Node, c: f64, h: Node) -> Node {
        let c = self.graph.constant(c);
        self.graph.fma(c, h, t)
    }

    fn weighted_sum(&mut self, out: &mut [Node], weights: &[f64], k: &[Vec<Node>]) {
        let g = &mut self.graph;
        let terms = terms(weights, k);
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = g.zero();
            for (n, &(weight, k)) in terms.iter().enumerate() {
                let weight = g.constant(weight);
                sum = if n == 0 { g.mul(weight, k[i]) } else { g.fma(weight, k[i], sum) };
            }
            *out = sum;
        }
    }

    fn displaced(
        &mut self,
        out: &mut [Node],
        x: &[Node],
        h: Node,
        weights: &[f64],
        k: &[Vec<Node>],
    ) {
        let g = &mut self.graph;
        let terms = terms(weights, k);
        let Some((&(first, leading), rest)) = terms.split_first() else {
            out.copy_from_slice(x);
            return;
        };
        let factor = g.constant(first);
        let scale = g.mul(h, factor);
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = leading[i];
            for &(weight, k) in rest {
                let ratio = g.constant(weight / first);
                sum = g.fma(ratio, k[i], sum);
            }
            *out = g.fma(scale, sum, x[i]);
        }
    }

    fn add_scaled(&mut self, out: &mut [Node], h: Node, weight: f64, k: &[Node]) {
        let g = &mut self.graph;
        let factor = g.constant(weight);
        let scale = g.mul(h, factor);
        for (out, &k) in out.iter_mut().zip(k) {
            *out = g.fma(scale, k, *out);
        }
    }

    fn field(&mut self, out: &mut [Node], t: Node, x: &[Node]) {
        out.copy_from_slice(&self.field.at(&mut self.graph, t, x));
    }
}
