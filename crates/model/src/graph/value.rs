//! Recording of algorithms written over [`Real`]: their numbers are nodes of a graph.

use super::op::{Binary, Unary};
use super::tape::Tape;
use super::{Graph, Input, Node};
use holonome_arithmetic::Real;
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Range, Sub};

/// Graph that an algorithm over [`Real`] is recorded in.
pub struct Recording(RefCell<Graph>);

/// Number that an algorithm computes: a node of its recording.
#[derive(Clone, Copy)]
pub struct Value<'r> {
    graph: &'r RefCell<Graph>,
    node: Node,
}

/// Condition that an algorithm tests: a node that is not 0 where it holds.
#[derive(Clone, Copy)]
pub struct Truth<'r>(Value<'r>);

impl Graph {
    /// Record an algorithm over [`Real`]; its inputs are made of nodes by [`Recording::value`].
    pub fn record<T>(&mut self, algorithm: impl FnOnce(&Recording) -> T) -> T {
        let recording = Recording(RefCell::new(std::mem::take(self)));
        let result = algorithm(&recording);
        *self = recording.0.into_inner();
        result
    }
}

impl Tape {
    /// Tape of a recorded map; if there is a condition, it is iterated while that holds.
    pub fn recorded(
        states: usize,
        parameters: usize,
        map: impl for<'r> FnOnce(&'r Recording) -> (Vec<Value<'r>>, Option<Truth<'r>>),
    ) -> Tape {
        let g = &mut Graph::new();
        let (outputs, goes_on) = g.record(|r| {
            let (outputs, goes_on) = map(r);
            (nodes(&outputs), goes_on.map(Truth::node))
        });
        match goes_on {
            Some(goes_on) => Tape::of_loop(g, &outputs, goes_on, states, parameters),
            None => Tape::of_fused(g, &outputs, states, parameters),
        }
    }
}

impl Recording {
    /// Number of a node.
    pub fn value(&self, node: Node) -> Value<'_> {
        Value { graph: &self.0, node }
    }

    /// Numbers of several nodes.
    pub fn values(&self, nodes: &[Node]) -> Vec<Value<'_>> {
        nodes.iter().map(|&node| self.value(node)).collect()
    }

    /// Parameter of the recorded formulas.
    pub fn parameter(&self, number: usize) -> Value<'_> {
        self.value(self.0.borrow_mut().parameter(number))
    }

    /// State of the recorded formulas.
    pub fn state(&self, number: usize) -> Value<'_> {
        self.value(self.0.borrow_mut().state(number))
    }

    /// States with these numbers.
    pub fn states(&self, numbers: Range<usize>) -> Vec<Value<'_>> {
        numbers.map(|number| self.state(number)).collect()
    }

    /// The time.
    pub fn time(&self) -> Value<'_> {
        self.value(self.0.borrow_mut().input(Input::Time))
    }

    /// A constant.
    pub fn constant(&self, value: f64) -> Value<'_> {
        self.value(self.0.borrow_mut().constant(value))
    }

    /// Condition of a node that is not 0 where it holds.
    pub fn truth(&self, node: Node) -> Truth<'_> {
        Truth(self.value(node))
    }

    /// Record formulas that are stated over nodes.
    pub fn nodes<T>(&self, formulas: impl FnOnce(&mut Graph) -> T) -> T {
        formulas(&mut self.0.borrow_mut())
    }
}

impl<'r> Value<'r> {
    /// Node of the number.
    pub fn node(self) -> Node {
        self.node
    }

    /// selfᵇ.
    pub fn power(self, b: Self) -> Self {
        self.put(|g| g.pow(self.node, b.node))
    }

    /// Value in this lane, in every lane.
    pub fn spread(self, lane: u8) -> Value<'r> {
        self.put(|g| g.spread(self.node, lane))
    }

    fn put(self, record: impl FnOnce(&mut Graph) -> Node) -> Value<'r> {
        let node = record(&mut self.graph.borrow_mut());
        Value { node, ..self }
    }

    fn compare(self, op: Binary, b: Self) -> Truth<'r> {
        Truth(self.put(|g| g.binary(op, self.node, b.node)))
    }
}

/// Nodes of several numbers.
pub fn nodes(values: &[Value]) -> Vec<Node> {
    values.iter().map(|value| value.node).collect()
}

impl Truth<'_> {
    /// Node of the condition, not 0 where it holds.
    pub fn node(self) -> Node {
        self.0.node
    }
}

impl Add for Value<'_> {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        self.put(|g| g.add(self.node, b.node))
    }
}

impl Sub for Value<'_> {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        self.put(|g| g.sub(self.node, b.node))
    }
}

impl Mul for Value<'_> {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        self.put(|g| g.mul(self.node, b.node))
    }
}

impl Div for Value<'_> {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        self.put(|g| g.div(self.node, b.node))
    }
}

impl Add<f64> for Value<'_> {
    type Output = Self;
    fn add(self, b: f64) -> Self {
        self + self.constant(b)
    }
}

impl Mul<f64> for Value<'_> {
    type Output = Self;
    fn mul(self, b: f64) -> Self {
        self * self.constant(b)
    }
}

impl Neg for Value<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.put(|g| g.neg(self.node))
    }
}

impl BitAnd for Truth<'_> {
    type Output = Self;
    fn bitand(self, b: Self) -> Self {
        self.0.compare(Binary::And, b.0)
    }
}

impl BitOr for Truth<'_> {
    type Output = Self;
    fn bitor(self, b: Self) -> Self {
        self.0.compare(Binary::Or, b.0)
    }
}

impl Not for Truth<'_> {
    type Output = Self;
    fn not(self) -> Self {
        Truth(self.0.put(|g| g.unary(Unary::Not, self.node())))
    }
}

impl<'r> Real for Value<'r> {
    type Truth = Truth<'r>;

    fn constant(self, value: f64) -> Self {
        self.put(|g| g.constant(value))
    }

    fn mul_add(self, b: Self, c: Self) -> Self {
        self.put(|g| g.fma(self.node, b.node, c.node))
    }

    fn sqrt(self) -> Self {
        self.put(|g| g.sqrt(self.node))
    }

    fn abs(self) -> Self {
        self.put(|g| g.unary(Unary::Abs, self.node))
    }

    fn less(self, b: Self) -> Truth<'r> {
        self.compare(Binary::Less, b)
    }

    fn at_most(self, b: Self) -> Truth<'r> {
        self.compare(Binary::LessEqual, b)
    }

    fn equals(self, b: Self) -> Truth<'r> {
        self.compare(Binary::Equal, b)
    }

    fn largest(self, b: Self) -> Self {
        self.put(|g| g.largest(self.node, b.node))
    }

    fn rough_power(self, b: Self) -> Self {
        self.put(|g| g.rough_power(self.node, b.node))
    }

    fn select(condition: Truth<'r>, a: Self, b: Self) -> Self {
        a.put(|g| g.select(condition.node(), a.node, b.node))
    }
}
