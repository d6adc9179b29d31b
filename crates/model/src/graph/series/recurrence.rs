//! Taylor coefficients order by order: the formulas of one order, for any order, in place of those
//! of all.
//!
//! The coefficients of order k need sums of products of lower ones, Σ a_j b_{k−j}, whose length is k,
//! and little more. Those sums are left to a loop over arrays; all else is a short formula that is
//! the same for every order. So the formulas of a field of thousands of operations are as many, and
//! not a hundred times as many.

use super::{Coefficients, Lower, Series};
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// A sum of products of coefficients, Σ j^w a_j b_{k−j} over 0 < j < k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Places of a and b among the coefficients of an order.
    pub factors: [u32; 2],
    /// True if the terms have weights j.
    pub weighted: bool,
}

/// Programs that compute the Taylor coefficients of a solution one order after the other.
///
/// The coefficients of an order are those of the state (n numbers), that of the time, and those that
/// [`Recurrence::next`] puts out first.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// From the time, x and a length to [`Recurrence::known`] numbers, then the state's coefficients
    /// of order 1, in powers of time over the length.
    pub first: Tape,
    /// From the coefficients of order k > 0 of the state and the time, the length over k + 1, 1/k,
    /// the known numbers and the sums of products to the other coefficients of order k, then the
    /// state's of order k + 1.
    pub next: Tape,
    /// Number of numbers that all orders read.
    pub known: usize,
    /// Sums of products of lower orders.
    pub products: Vec<Product>,
}

/// Coefficients of one order: inputs for what is known.
struct Recorded<'a> {
    series: &'a Series,
    /// Length of the state.
    n: usize,
    /// Coefficients of order k, by their nodes.
    same: FxHashMap<Node, Node>,
    /// Numbers known from order 0: a numerator over the coefficient of a node, or the coefficient
    /// itself.
    known: Vec<(Node, Option<u64>)>,
    known_at: FxHashMap<(Node, Option<u64>), usize>,
    /// Sums: nodes of both factors, and whether the terms have weights.
    products: Vec<(Node, Node, bool)>,
    product_at: FxHashMap<(Node, Node, bool), usize>,
}

/// Inputs before the known numbers: behind the state, those of the time, the length over k + 1,
/// and 1/k.
const OTHERS: usize = 3;

impl Recorded<'_> {
    /// Input for a known number; even numbers are provisional for these, odd ones for sums.
    fn number(&mut self, g: &mut Graph, wanted: (Node, Option<u64>)) -> Node {
        let known = &mut self.known;
        let place = *self.known_at.entry(wanted).or_insert_with(|| {
            known.push(wanted);
            known.len() - 1
        });
        g.state(self.n + OTHERS + 2 * place)
    }

    /// A sum of products, with weights j / k if it is weighted, which is known before the order.
    fn lower(&mut self, g: &mut Graph, of: [Node; 2], weighted: bool) -> Lower {
        let (products, wanted) = (&mut self.products, (of[0], of[1], weighted));
        let place = *self.product_at.entry(wanted).or_insert_with(|| {
            products.push(wanted);
            products.len() - 1
        });
        let number = g.state(self.n + OTHERS + 2 * place + 1);
        let factor = if weighted { g.state(self.n + 2) } else { g.one() };
        Lower { factor, number, of, below: 1, operations: 0 }
    }
}

impl Coefficients for Recorded<'_> {
    fn first(&mut self, g: &mut Graph, node: Node) -> Node {
        match self.series.graph.expression(node) {
            Expression::Constant(bits) => g.constant(f64::from_bits(bits)),
            Expression::Input(input @ Input::Parameter(_)) => g.input(input),
            _ => self.number(g, (node, None)),
        }
    }

    fn over_first(&mut self, g: &mut Graph, numerator: f64, node: Node) -> Node {
        self.number(g, (node, Some(numerator.to_bits())))
    }

    fn same(&self, node: Node) -> Node {
        self.same[&node]
    }

    fn product(&mut self, g: &mut Graph, a: Node, b: Node) -> Vec<Lower> {
        vec![self.lower(g, [a.min(b), a.max(b)], false)]
    }

    fn square(&mut self, g: &mut Graph, a: Node) -> Vec<Lower> {
        vec![self.lower(g, [a, a], false)]
    }

    fn weighted(&mut self, g: &mut Graph, a: Node, b: Node) -> Lower {
        self.lower(g, [a, b], true)
    }
}

impl Series {
    /// Programs that compute the coefficients order by order, of a model with this many parameters.
    pub fn recurrence(&self, parameters: usize) -> Recurrence {
        let n = self.field.len();
        let mut recorded = Recorded {
            series: self,
            n,
            same: FxHashMap::default(),
            known: Vec::new(),
            known_at: FxHashMap::default(),
            products: Vec::new(),
            product_at: FxHashMap::default(),
        };
        let g = &mut Graph::new();
        for &node in &self.plan {
            let next = match (self.graph.expression(node), self.moving.get(&node)) {
                (Expression::Input(Input::State(i)), _) => g.state(i as usize),
                (Expression::Input(Input::Time), _) => g.state(n),
                (_, Some(moving)) if !moving.inlined => {
                    self.sum(g, node, &mut recorded).evaluate(g).0
                }
                _ => continue,
            };
            recorded.same.insert(node, next);
        }
        let part = g.state(n + 1);
        let field: Vec<Node> = self
            .field
            .iter()
            .map(|&component| self.part(g, component, &mut recorded).evaluate_scaled(g, part).0)
            .collect();
        let (coefficients, products) = self.factors(&recorded);
        let outputs = coefficients.iter().map(|node| recorded.same[node]).chain(field);
        let outputs: Vec<Node> = outputs.collect();
        // The known numbers first, then the sums.
        let (own, known) = (n + OTHERS, recorded.known.len());
        let mut next = Graph::new();
        let outputs = next.instantiate(g, &outputs, |next, input| match input {
            Input::State(i) if i as usize >= own => {
                let (place, is_sum) = ((i as usize - own) / 2, (i as usize - own) % 2);
                next.state(own + is_sum * known + place)
            }
            other => next.input(other),
        });
        let states = own + known + products.len();
        Recurrence {
            first: self.of_order_0(&recorded.known, parameters),
            next: Tape::of_fused(&next, &outputs, states, parameters),
            known,
            products,
        }
    }

    /// Nodes whose coefficients sums read, beside those of the state and the time, and the sums.
    fn factors(&self, recorded: &Recorded) -> (Vec<Node>, Vec<Product>) {
        let (mut coefficients, mut place_of) = (Vec::new(), FxHashMap::default());
        let mut place = |node: Node| match self.graph.expression(node) {
            Expression::Input(Input::State(i)) => i,
            Expression::Input(_) => recorded.n as u32,
            _ => *place_of.entry(node).or_insert_with(|| {
                coefficients.push(node);
                (recorded.n + coefficients.len()) as u32
            }),
        };
        let product = |&(a, b, weighted): &(Node, Node, bool)| Product {
            factors: [place(a), place(b)],
            weighted,
        };
        let products = recorded.products.iter().map(product).collect();
        (coefficients, products)
    }

    /// Program of [`Recurrence::first`].
    fn of_order_0(&self, known: &[(Node, Option<u64>)], parameters: usize) -> Tape {
        let (g, n) = (&mut Graph::new(), self.field.len());
        let mut first: FxHashMap<Node, Node> = FxHashMap::default();
        for &node in &self.plan {
            let value = match self.graph.expression(node) {
                Expression::Input(input) => g.input(input),
                expression => g.copy_of(expression, |argument| first[&argument]),
            };
            first.insert(node, value);
        }
        let mut outputs = Vec::new();
        for (node, numerator) in known {
            outputs.push(match numerator {
                None => first[node],
                Some(bits) => {
                    let numerator = g.constant(f64::from_bits(*bits));
                    g.div(numerator, first[node])
                }
            });
        }
        let length = g.state(n);
        outputs.extend(self.field.iter().map(|component| g.mul(length, first[component])));
        Tape::of_fused(g, &outputs, n + 1, parameters)
    }
}
