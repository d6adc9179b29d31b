//! Index expressions as functions of a row, evaluated row by row, and the guards that a row must
//! meet.

use super::arithmetic::{add_term, components};
use super::{Context, LARGEST_INDEX, LARGEST_TEMPLATE};
use crate::elaborate::expression::index_set::{IndexRange, IndexSet, IndexVariable};
use crate::elaborate::expression::{CheckedExpression, Ex, Kind};
use crate::graph::aligned::Aligned;
use crate::graph::interpret::{Backend, Interpreter, Kernel};
use crate::graph::op::{Binary, Unary};
use crate::graph::tape::Tape;
use crate::graph::{Expression, Graph, Input, Node};
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Display;
use std::sync::Arc;

/// Index expressions of one piece: a graph whose state is the row's index values.
pub(super) struct RowIndices<'a> {
    context: &'a Context<'a>,
    rows: Vec<IndexVariable>,
    pub(super) graph: Graph,
    /// Indices of inner sums, as functions of the row.
    pub(super) bound: FxHashMap<IndexVariable, Node>,
    /// Compiled evaluations, by node.
    kernels: FxHashMap<Node, (Box<dyn Kernel>, Aligned)>,
    /// Ends of ranges and filters, with their guards.
    known: FxHashMap<*const CheckedExpression, (Node, Vec<Guard>)>,
    /// Step of a node along the innermost index, if it is constant; in `still`, true if the node
    /// does not depend on it.
    slopes: FxHashMap<Node, Option<f64>>,
    still: FxHashMap<Node, bool>,
    work: Vec<f64>,
}

/// Nodes of shared expressions.
type Memo = FxHashMap<*const CheckedExpression, Vec<Node>>;

/// Shared expressions that a walk has visited, each with the condition that leads there.
#[derive(Default)]
struct Visits {
    pairs: FxHashSet<(*const CheckedExpression, Node)>,
    visits: usize,
}

/// An index of a list or of a `let` family with the range that it must lie in, or the condition of
/// a family that must hold.
#[derive(Clone)]
pub(super) struct Guard {
    name: String,
    /// The guard is not checked if this is 0.
    when: Node,
    value: Node,
    /// `None` for a condition.
    between: Option<(Node, Node)>,
    span: Span,
}

impl Guard {
    /// Nodes that the guard depends on.
    pub(super) fn nodes(&self) -> Vec<Node> {
        let between = self.between.map_or(Vec::new(), |(low, high)| vec![low, high]);
        [&[self.when, self.value], &between[..]].concat()
    }
}

impl<'a> RowIndices<'a> {
    pub(super) fn new(context: &'a Context<'a>, set: &IndexSet) -> Self {
        RowIndices {
            context,
            rows: set.ranges.iter().map(|range| range.index).collect(),
            graph: Graph::new(),
            bound: FxHashMap::default(),
            kernels: FxHashMap::default(),
            known: FxHashMap::default(),
            slopes: FxHashMap::default(),
            still: FxHashMap::default(),
            work: Vec::new(),
        }
    }

    /// A scalar index expression as a function of the row.
    pub(super) fn node(&mut self, e: &Ex) -> Node {
        self.nodes(e, &mut Memo::default())[0]
    }

    /// The components of an expression of numbers and indices.
    fn nodes(&mut self, e: &Ex, memo: &mut Memo) -> Vec<Node> {
        let shared = Arc::strong_count(e) > 1;
        if shared && let Some(known) = memo.get(&Arc::as_ptr(e)) {
            return known.clone();
        }
        let nodes = self.new_nodes(e, memo);
        if shared {
            memo.insert(Arc::as_ptr(e), nodes.clone());
        }
        nodes
    }

    fn new_nodes(&mut self, e: &Ex, memo: &mut Memo) -> Vec<Node> {
        match &e.kind {
            Kind::Index(variable) => match self.bound.get(variable) {
                Some(&node) => vec![node],
                None => {
                    let k = self
                        .rows
                        .iter()
                        .position(|r| r == variable)
                        .expect("an index is used where it is bound");
                    vec![self.graph.state(k)]
                }
            },
            Kind::Add(terms) => {
                let mut sum = vec![self.graph.zero(); e.shape.len()];
                for (is_subtracted, term) in terms {
                    let term = self.nodes(term, memo);
                    add_term(&mut self.graph, &mut sum, *is_subtracted, &term);
                }
                sum
            }
            // A `let` of indices and numbers; its own index values are guarded.
            Kind::Definition(_, _, _, body) => self.nodes(body, memo),
            Kind::Component(base, list) => {
                let entries = self.nodes(base, memo);
                let axes: Vec<Node> = list.iter().map(|index| self.nodes(index, memo)[0]).collect();
                vec![self.pick(&entries, &axes, &base.shape.dimensions())]
            }
            kind => {
                let mut parts = Vec::new();
                kind.for_each_part(&mut |part| parts.push(self.nodes(part, memo)));
                components(&mut self.graph, e, &parts)
            }
        }
    }

    /// `(0.4, -0.8, 0.4)[s]`: a component picked by the row, as a chain of choices.
    fn pick(&mut self, entries: &[Node], axes: &[Node], sizes: &[usize]) -> Node {
        let mut at = self.graph.zero();
        for (&axis, &size) in axes.iter().zip(sizes) {
            let (size, one) = (self.graph.constant(size as f64), self.graph.one());
            let (before, here) = (self.graph.mul(at, size), self.graph.sub(axis, one));
            at = self.graph.add(before, here);
        }
        let mut result = self.graph.constant(f64::NAN);
        for (k, &entry) in entries.iter().enumerate() {
            let k = self.graph.constant(k as f64);
            let here = self.graph.binary(Binary::Equal, at, k);
            result = self.graph.select(here, entry, result);
        }
        result
    }

    /// Collects the guards of `e`: every component that it picks and every `let` member that it
    /// uses must exist.
    pub(super) fn guards_of(&mut self, e: &Ex, out: &mut Vec<Guard>) -> Result<(), Diagnostic> {
        let always = self.graph.one();
        self.collect(e, always, &mut Visits::default(), out)
    }

    /// [`RowIndices::guards_of`] of an expression that counts only if `when` is not 0.
    fn collect(
        &mut self,
        e: &Ex,
        when: Node,
        seen: &mut Visits,
        out: &mut Vec<Guard>,
    ) -> Result<(), Diagnostic> {
        if Arc::strong_count(e) > 1 && !seen.pairs.insert((Arc::as_ptr(e), when)) {
            return Ok(());
        }
        seen.visits += 1;
        if seen.visits > LARGEST_TEMPLATE {
            let message = format!(
                "this index expression has more than {LARGEST_TEMPLATE} operations, with every choice expanded"
            );
            return Err(Diagnostic::error(message, e.span, "too large"));
        }
        match &e.kind {
            Kind::Definition(name, indices, set, body) => {
                indices.iter().try_for_each(|index| self.collect(index, when, seen, out))?;
                self.collect_of_set((name, indices, set), when, e.span, seen, out)?;
                // A body that is more than an index expression is guarded by its own lowering.
                if body.is_index() {
                    self.collect(body, when, seen, out)?;
                }
                Ok(())
            }
            Kind::Component(base, list) if e.is_index() => {
                for (index, &size) in list.iter().zip(&base.shape.dimensions()) {
                    self.collect(index, when, seen, out)?;
                    let value = self.node(index);
                    let between = Some((self.graph.one(), self.graph.constant(size as f64)));
                    let name = "the list".to_string();
                    out.push(Guard { name, when, value, between, span: e.span });
                }
                self.collect(base, when, seen, out)
            }
            // A branch that is not taken need not exist.
            Kind::Select(c, a, b) if c.is_index() => {
                self.collect(c, when, seen, out)?;
                let c = self.node(c);
                let not = self.graph.unary(Unary::Not, c);
                let [first, second] =
                    [c, not].map(|taken| self.graph.binary(Binary::And, when, taken));
                self.collect(a, first, seen, out)?;
                self.collect(b, second, seen, out)
            }
            kind => {
                let mut result = Ok(());
                kind.for_each_part(&mut |part| {
                    if result.is_ok() {
                        result = self.collect(part, when, seen, out);
                    }
                });
                result
            }
        }
    }

    /// Collects the guards of index values of a family: they must lie in its set.
    fn collect_of_set(
        &mut self,
        (name, indices, set): (&String, &[Ex], &IndexSet),
        when: Node,
        span: Span,
        seen: &mut Visits,
        out: &mut Vec<Guard>,
    ) -> Result<(), Diagnostic> {
        let guard = |value, between| Guard { name: name.clone(), when, value, between, span };
        let values: Vec<Node> = indices.iter().map(|index| self.node(index)).collect();
        // The ranges may use the family's own earlier indices: bind these to the values of this
        // use.
        let outer: Vec<Option<Node>> =
            set.ranges.iter().map(|range| self.bound.get(&range.index).copied()).collect();
        for (range, &value) in set.ranges.iter().zip(&values) {
            self.bound.insert(range.index, value);
            self.collect(&range.low, when, seen, out)?;
            self.collect(&range.high, when, seen, out)?;
            out.push(guard(value, Some((self.node(&range.low), self.node(&range.high)))));
        }
        for (_, condition) in &set.conditions {
            self.collect(condition, when, seen, out)?;
            out.push(guard(self.node(condition), None));
        }
        for (range, outer) in set.ranges.iter().zip(outer) {
            match outer {
                Some(node) => self.bound.insert(range.index, node),
                None => self.bound.remove(&range.index),
            };
        }
        Ok(())
    }

    /// Checks that the row meets a guard.
    pub(super) fn check(&mut self, guard: &Guard, row: &[f64]) -> Result<(), Diagnostic> {
        if self.evaluate_node(guard.when, row) == 0.0 {
            return Ok(());
        }
        let value = self.evaluate_node(guard.value, row);
        let Some((low, high)) = guard.between else {
            if value != 0.0 {
                return Ok(());
            }
            let message = format!("'{}' has no member here{}", guard.name, self.with(row));
            return Err(Diagnostic::error(message, guard.span, "left out by its condition"));
        };
        let [low, high] = [low, high].map(|n| self.evaluate_node(n, row));
        let value = self.check_whole(value, guard.span, row, "an index")?;
        match self.outside(value, &guard.name, (low, high), row) {
            Some(message) => Err(Diagnostic::error(message, guard.span, "no such member")),
            None => Ok(()),
        }
    }

    /// Message about an index of a family that is not within its bounds.
    pub(super) fn outside(
        &self,
        value: f64,
        family: &str,
        (low, high): (f64, f64),
        row: &[f64],
    ) -> Option<String> {
        let with = || self.with(row);
        (value < low || value > high)
            .then(|| format!("index {value} of '{family}' is outside {low}..{high}{}", with()))
    }

    /// Step of a node of whole numbers along the innermost index; `None` if it is not constant. No
    /// operation in it rounds.
    fn slope(&mut self, node: Node) -> Option<f64> {
        if let Some(&known) = self.slopes.get(&node) {
            return known;
        }
        let whole = |value: f64| value.fract() == 0.0;
        let slope = match self.graph.expression(node) {
            Expression::Constant(bits) => whole(f64::from_bits(bits)).then_some(0.0),
            Expression::Input(Input::State(k)) => Some(f64::from(u8::from(self.is_innermost(k)))),
            Expression::Unary(Unary::Neg, a) => self.slope(a).map(|a| -a),
            Expression::Binary(Binary::Add, a, b) => {
                self.slope(a).zip(self.slope(b)).map(|(a, b)| a + b)
            }
            Expression::Binary(Binary::Sub, a, b) => {
                self.slope(a).zip(self.slope(b)).map(|(a, b)| a - b)
            }
            Expression::Binary(Binary::Mul, a, b) => {
                match (self.graph.value(a), self.graph.value(b)) {
                    (Some(factor), None) if whole(factor) => self.slope(b).map(|b| factor * b),
                    (None, Some(factor)) if whole(factor) => self.slope(a).map(|a| a * factor),
                    _ => None,
                }
            }
            _ => None,
        };
        self.slopes.insert(node, slope);
        slope
    }

    fn is_innermost(&self, index: u32) -> bool {
        index as usize + 1 == self.rows.len()
    }

    /// True if a node does not depend on the innermost index.
    pub(super) fn is_still(&mut self, node: Node) -> bool {
        if let Some(&known) = self.still.get(&node) {
            return known;
        }
        let moves = |reached| match self.graph.expression(reached) {
            Expression::Input(Input::State(k)) => self.is_innermost(k),
            _ => false,
        };
        let is_still = !self.graph.reachable(&[node]).into_iter().any(moves);
        self.still.insert(node, is_still);
        is_still
    }

    /// True if a node, whole at both ends, advances by equal steps along the innermost index.
    pub(super) fn is_even(&mut self, node: Node) -> bool {
        self.is_still(node) || self.slope(node).is_some()
    }

    /// True if a guard that holds at two rows holds at all rows between them along the innermost
    /// index.
    pub(super) fn is_convex(&mut self, guard: &Guard) -> bool {
        self.is_still(guard.when)
            && match guard.between {
                None => self.is_still(guard.value),
                Some((low, high)) => {
                    [guard.value, low, high].into_iter().all(|node| self.is_even(node))
                }
            }
    }

    pub(super) fn evaluate_node(&mut self, node: Node, row: &[f64]) -> f64 {
        if let Some(v) = self.graph.value(node) {
            return v;
        }
        // The common forms i, i + 1, i - 1 without a kernel.
        let state = |n: Node| match self.graph.expression(n) {
            Expression::Input(Input::State(k)) => Some(row[k as usize]),
            _ => self.graph.value(n),
        };
        match self.graph.expression(node) {
            Expression::Input(_) => return state(node).expect("an index is a state of its graph"),
            Expression::Binary(op, a, b) => {
                if let (Some(a), Some(b)) = (state(a), state(b)) {
                    return op.evaluate(a, b);
                }
            }
            _ => {}
        }
        let graph = &self.graph;
        let states = self.rows.len();
        let (kernel, bound) = self.kernels.entry(node).or_insert_with(|| {
            let kernel = Interpreter
                .compile(&Tape::new(graph, &[node], states, 0), 1)
                .expect("the interpreter never refuses");
            let bound = kernel.bind(&[]);
            (kernel, bound)
        });
        self.work.resize(kernel.work_len().max(self.work.len()), 0.0);
        let mut x = vec![0.0; states];
        x[..row.len()].copy_from_slice(row);
        let mut out = [0.0];
        kernel.run(bound, &[0.0], &x, &mut out, &mut self.work);
        out[0]
    }

    /// The value of a range's end or of a filter, whose guards are checked.
    pub(super) fn checked(&mut self, e: &Ex, row: &[f64]) -> Result<f64, Diagnostic> {
        let key = Arc::as_ptr(e);
        if !self.known.contains_key(&key) {
            let mut guards = Vec::new();
            self.guards_of(e, &mut guards)?;
            let node = self.node(e);
            self.known.insert(key, (node, guards));
        }
        let (node, count) = {
            let (node, guards) = &self.known[&key];
            (*node, guards.len())
        };
        for k in 0..count {
            let guard = self.known[&key].1[k].clone();
            self.check(&guard, row)?;
        }
        Ok(self.evaluate_node(node, row))
    }

    /// First and last value of a range.
    pub(super) fn ends(&mut self, range: &IndexRange, row: &[f64]) -> Result<[f64; 2], Diagnostic> {
        let mut end = |e: &Ex, which: &str| {
            let value = self.checked(e, row)?;
            self.check_whole(value, e.span, row, format_args!("the {which} value of a range"))
        };
        Ok([end(&range.low, "first")?, end(&range.high, "last")?])
    }

    pub(super) fn check_whole(
        &self,
        value: f64,
        span: Span,
        row: &[f64],
        what: impl Display,
    ) -> Result<f64, Diagnostic> {
        if value.fract() == 0.0 && value.abs() <= LARGEST_INDEX {
            return Ok(value);
        }
        let message = format!("{what} must be an integer, and this is {value}{}", self.with(row));
        Err(Diagnostic::error(message, span, "not an integer")
            .help("index arithmetic is exact: 3*(a-1)+s is fine, i/2 only where it divides"))
    }

    /// " (with i = 3, j = 4)", or an empty text if no index is set.
    pub(super) fn with(&self, row: &[f64]) -> String {
        if row.is_empty() {
            return String::new();
        }
        let list: Vec<String> = self
            .rows
            .iter()
            .zip(row)
            .map(|(&v, i)| format!("{} = {i}", self.context.index_names[v as usize]))
            .collect();
        format!(" (with {})", list.join(", "))
    }
}
