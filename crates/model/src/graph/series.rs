//! Taylor coefficients of the solution of ẋ = f(t, x), as formulas: those of every operation follow
//! from those of its arguments (Moore, Interval Analysis (1966), ch. 11; Jorba, Zou, Experimental
//! Mathematics 14 (2005) 99).
//!
//! A coefficient of order k > 0 is linear in its arguments' coefficients of the same order, with
//! factors known from order 0; the rest of it is known earlier, that of order k − 1 last. So the rest
//! is added up first, the lowest orders in front, then the terms of order k − 1 and k in the order
//! in which they become known. A common scale goes into the factors, and a coefficient that only one
//! sum reads is part of that sum, if it is no product of two series.

mod recurrence;

pub use recurrence::{Product, Recurrence};

use super::op::{Binary, Unary};
use super::{Expression, Graph, Input, Node};
use rustc_hash::{FxHashMap, FxHashSet};

/// The formulas of a field, ready for expansion.
#[derive(Clone, Debug)]
pub struct Series {
    graph: Graph,
    field: Vec<Node>,
    /// Nodes that the field and the slopes depend on, in topological order.
    plan: Vec<Node>,
    /// Facts of the nodes that move: they depend on the state or the time.
    moving: FxHashMap<Node, Moving>,
    /// Number of operations from the state's coefficients of an order to those of the next.
    period: i32,
}

/// Facts of a node that moves.
#[derive(Clone, Debug, Default)]
struct Moving {
    /// For a function: its arguments that move, and its partial derivatives with respect to them.
    slopes: Vec<(Node, Node)>,
    /// True if nothing reads its coefficients but one sum, of which it becomes a part; it is no
    /// product of two series.
    inlined: bool,
    /// Number of operations after which its coefficient of an order is known, from when the last of
    /// the state's is.
    ready: i32,
}

/// Coefficient as a sum of factors times numbers, with the times at which the latter are
/// [ready](Moving::ready).
struct Sum(Vec<(Node, Node, i32)>);

/// Part of a sum of products of lower coefficients: a factor times a number.
struct Lower {
    factor: Node,
    number: Node,
    /// Nodes whose coefficients of an order this far below are the last in it.
    of: [Node; 2],
    below: i32,
    /// Operations from these to the number.
    operations: i32,
}

/// Rounds in which the times are found when coefficients are known; those of the state follow from
/// them.
const ROUNDS: usize = 8;

/// Operations for which the rest of a sum waits when it is scaled, and then added to.
const SCALED: i32 = 2;

impl Sum {
    fn plus(mut self, other: Sum) -> Sum {
        self.0.extend(other.0);
        self
    }

    fn times(mut self, g: &mut Graph, scale: Node) -> Sum {
        self.0.iter_mut().for_each(|(factor, ..)| *factor = g.mul(*factor, scale));
        self
    }

    /// The sum, and when it is known: of the terms in the order in which they become known, or of the
    /// first of them and of the others side by side, if that is sooner.
    fn evaluate(self, g: &mut Graph) -> (Node, i32) {
        let Sum(mut terms) = self;
        terms.retain(|&(factor, number, _)| !g.is_zero(factor) && !g.is_zero(number));
        terms.sort_by_key(|&(.., ready)| ready);
        let after = |terms: &[(Node, Node, i32)]| {
            let ready = terms.iter().map(|&(.., ready)| ready);
            ready.reduce(|after, ready| ready.max(after + 1)).map_or(i32::MIN / 2, |last| last + 1)
        };
        let apart = |at: usize| after(&terms[..at]).max(after(&terms[at..])) + 1;
        let split = (1..terms.len()).min_by_key(|&at| apart(at));
        let mut chain = |terms: &[(Node, Node, i32)]| {
            let zero = g.zero();
            terms.iter().fold(zero, |sum, &(factor, number, _)| linear(g, factor, number, sum))
        };
        match split.filter(|&at| apart(at) < after(&terms)) {
            Some(at) => {
                let [first, last] = [&terms[..at], &terms[at..]].map(&mut chain);
                (g.add(first, last), apart(at))
            }
            None => (chain(&terms), after(&terms)),
        }
    }

    /// The sum times a scale of its own, which goes into the factors of the last terms.
    fn evaluate_scaled(self, g: &mut Graph, scale: Node) -> (Node, i32) {
        let end = self.0.iter().map(|&(.., ready)| ready).max().unwrap_or_default();
        let (last, first) = self.0.into_iter().partition(|&(.., ready)| ready > end - SCALED);
        let (first, ready) = Sum(first).evaluate(g);
        Sum(vec![(scale, first, ready)]).plus(Sum(last).times(g, scale)).evaluate(g)
    }
}

/// Coefficients so far.
type Known = FxHashMap<Node, Vec<Node>>;

/// Coefficients from which those of an order k > 0 are computed, as formulas.
trait Coefficients {
    /// Coefficient of order 0.
    fn first(&mut self, g: &mut Graph, node: Node) -> Node;

    /// `numerator` over the coefficient of order 0.
    fn over_first(&mut self, g: &mut Graph, numerator: f64, node: Node) -> Node;

    /// Coefficient of order k of an argument that moves.
    fn same(&self, node: Node) -> Node;

    /// Σ a_j b_{k−j} over 0 < j < k.
    fn product(&mut self, g: &mut Graph, a: Node, b: Node) -> Vec<Lower>;

    /// Σ a_j a_{k−j} over 0 < j < k.
    fn square(&mut self, g: &mut Graph, a: Node) -> Vec<Lower>;

    /// Σ j a_j b_{k−j} / k over 0 < j < k.
    fn weighted(&mut self, g: &mut Graph, a: Node, b: Node) -> Lower;
}

/// Coefficients of all orders below `k`, one formula for each.
struct Straight<'a> {
    known: &'a Known,
    k: usize,
}

impl Coefficients for Straight<'_> {
    fn first(&mut self, _: &mut Graph, node: Node) -> Node {
        self.known[&node][0]
    }

    fn over_first(&mut self, g: &mut Graph, numerator: f64, node: Node) -> Node {
        let numerator = g.constant(numerator);
        g.div(numerator, self.known[&node][0])
    }

    fn same(&self, node: Node) -> Node {
        self.known[&node][self.k]
    }

    fn product(&mut self, g: &mut Graph, a: Node, b: Node) -> Vec<Lower> {
        let (of_a, of_b, k) = (&self.known[&a], &self.known[&b], self.k);
        let (number, of) = (product_within(g, of_a, of_b, k, 2), [a, b]);
        let mut lower = vec![Lower { factor: g.one(), number, of, below: 2, operations: 1 }];
        let last =
            |factor, number, of| Lower { factor, number, of: [of, of], below: 1, operations: 0 };
        if k > 1 {
            lower.push(last(of_a[1], of_b[k - 1], b));
        }
        if k > 2 {
            lower.push(last(of_b[1], of_a[k - 1], a));
        }
        lower
    }

    fn square(&mut self, g: &mut Graph, a: Node) -> Vec<Lower> {
        let (of_a, k, of) = (&self.known[&a], self.k, [a, a]);
        let number = square_within(g, of_a, k);
        let mut lower = vec![Lower { factor: g.one(), number, of, below: 2, operations: 2 }];
        if k > 1 {
            let factor = if k == 2 { of_a[1] } else { g.add(of_a[1], of_a[1]) };
            lower.push(Lower { factor, number: of_a[k - 1], of, below: 1, operations: 0 });
        }
        lower
    }

    fn weighted(&mut self, g: &mut Graph, a: Node, b: Node) -> Lower {
        let (of_a, factor) = (&self.known[&a], g.constant(1.0 / self.k as f64));
        let weighted: Vec<Node> = (0..self.k)
            .map(|j| {
                let weight = g.constant(j as f64);
                g.mul(weight, of_a[j])
            })
            .collect();
        let number = product_within(g, &weighted, &self.known[&b], self.k, 1);
        Lower { factor, number, of: [a, b], below: 1, operations: 1 }
    }
}

impl Series {
    /// Series of the field with these components, before multiply-adds are fused.
    ///
    /// # Errors
    /// The name of an operation that is defined piecewise by a moving argument: its coefficients
    /// contain nothing about the other pieces.
    pub fn new(graph: &Graph, field: &[Node]) -> Result<Series, &'static str> {
        let (mut graph, field) = with_outer_quotients(graph, field);
        let mut moving: FxHashMap<Node, Moving> = FxHashMap::default();
        let mut roots = field.clone();
        // Slopes are functions themselves, and have slopes.
        loop {
            let before = roots.len();
            let plan = graph.reachable(&roots);
            for &node in &plan {
                let moves =
                    moves(graph.expression(node), |argument| moving.contains_key(&argument));
                if moves && !moving.contains_key(&node) {
                    let slopes =
                        graph.slopes_along(node, |argument| moving.contains_key(&argument))?;
                    roots.extend(slopes.iter().map(|&(_, slope)| slope));
                    moving.insert(node, Moving { slopes, ..Moving::default() });
                }
            }
            if roots.len() == before {
                let mut series = Series { graph, field, plan, moving, period: 0 };
                series.find_inlined();
                series.find_ready();
                return Ok(series);
            }
        }
    }

    /// Arguments on which a coefficient depends through their coefficients of the same order alone.
    fn linear_arguments(&self, node: Node) -> Vec<Node> {
        match self.graph.expression(node) {
            Expression::Unary(Unary::Neg | Unary::Sqrt, a)
            | Expression::Binary(Binary::Div, a, _) => vec![a],
            Expression::Binary(Binary::Add | Binary::Sub, a, b) => vec![a, b],
            Expression::Binary(Binary::Mul, a, b) if !self.moving.contains_key(&b) => vec![a],
            Expression::Binary(Binary::Mul, a, b) if !self.moving.contains_key(&a) => vec![b],
            _ => Vec::new(),
        }
    }

    fn find_inlined(&mut self) {
        let (mut uses, mut linear): (FxHashMap<Node, u32>, FxHashMap<Node, u32>) =
            Default::default();
        for &node in &self.plan {
            let Some(moving) = self.moving.get(&node) else { continue };
            let arguments = self.graph.expression(node).arguments();
            for argument in arguments.chain(moving.slopes.iter().map(|&(_, slope)| slope)) {
                *uses.entry(argument).or_default() += 1;
            }
            for argument in self.linear_arguments(node) {
                *linear.entry(argument).or_default() += 1;
            }
        }
        for &component in &self.field {
            *uses.entry(component).or_default() += 1;
            *linear.entry(component).or_default() += 1;
        }
        let moves: FxHashSet<Node> = self.moving.keys().copied().collect();
        for (node, moving) in &mut self.moving {
            let is_operation = self.graph.expression(*node).arguments().next().is_some();
            // Functions read their own coefficients.
            let reads_itself = !moving.slopes.is_empty()
                || matches!(
                    self.graph.expression(*node),
                    Expression::Unary(Unary::Sqrt, _)
                        | Expression::Binary(Binary::Div, ..)
                        | Expression::Select(..)
                );
            let once = uses.get(node) == Some(&1) && linear.get(node) == Some(&1);
            // The products of a sum, as q.q, are alike if each is by itself.
            let multiplies = match self.graph.expression(*node) {
                Expression::Binary(Binary::Mul, a, b) => moves.contains(&a) && moves.contains(&b),
                _ => false,
            };
            moving.inlined = once && is_operation && !reads_itself && !multiplies;
        }
    }

    /// Find when coefficients are known. Components whose rate is known early, such as positions, are
    /// known before others in the next order.
    fn find_ready(&mut self) {
        // With placeholders for the coefficients, because only the number of terms matters: those of
        // order 3 have all kinds.
        let k = 3;
        let mut g = Graph::new();
        let stand_ins = self.plan.iter().enumerate().map(|(at, &node)| {
            (node, (0..=k).map(|order| g.parameter(at * (k + 1) + order)).collect())
        });
        let known: Known = stand_ins.collect();
        let scale = g.parameter(self.plan.len() * (k + 1));
        let mut of_state = vec![0; self.field.len()];
        for _ in 0..ROUNDS {
            for node in self.plan.clone() {
                let ready = match self.graph.expression(node) {
                    Expression::Input(Input::State(i)) => of_state[i as usize],
                    _ if self.moving.get(&node).is_none_or(|moving| moving.inlined) => continue,
                    Expression::Input(_) => i32::MIN / 2,
                    _ => {
                        self.sum(&mut g, node, &mut Straight { known: &known, k })
                            .evaluate(&mut g)
                            .1
                    }
                };
                self.moving.entry(node).or_default().ready = ready;
            }
            let part = |&component| {
                let known = &mut Straight { known: &known, k };
                self.part(&mut g, component, known).evaluate_scaled(&mut g, scale).1
            };
            of_state = self.field.iter().map(part).collect();
            self.period = of_state.iter().copied().max().unwrap_or_default();
            of_state.iter_mut().for_each(|ready| *ready -= self.period);
        }
    }

    /// Approximate number of operations of a step of this order.
    pub fn operations(&self, order: u32) -> usize {
        let (linear, order) = (order as usize, order as usize * order as usize / 2);
        let of = |node: &Node| match (self.moving.get(node), self.graph.expression(*node)) {
            (None, _) | (_, Expression::Input(_)) => 0,
            (_, Expression::Binary(Binary::Mul, a, b)) if a == b => order / 2,
            (_, Expression::Unary(Unary::Sqrt, _)) => order / 2,
            (_, Expression::Binary(Binary::Mul | Binary::Div, ..))
                if self.linear_arguments(*node).len() == 1 =>
            {
                linear
            }
            (_, Expression::Binary(Binary::Mul | Binary::Div, ..)) => order,
            (Some(moving), _) => linear + order * moving.slopes.len(),
        };
        self.plan.iter().map(of).sum()
    }

    /// Coefficients of the solution through x at t, in powers of time over `length`: those of order
    /// k in vector k.
    pub fn solution(
        &self,
        g: &mut Graph,
        (t, length): (Node, Node),
        x: &[Node],
        order: u32,
    ) -> Vec<Vec<Node>> {
        let mut solution = vec![x.to_vec()];
        let mut known = Known::default();
        for k in 0..order as usize {
            for &node in &self.plan {
                let next = match self.graph.expression(node) {
                    Expression::Input(Input::State(i)) => solution[k][i as usize],
                    Expression::Input(Input::Time) if k < 2 => [t, length][k],
                    expression if k == 0 => g.copy_of(expression, |argument| known[&argument][0]),
                    _ => match self.moving.get(&node) {
                        Some(moving) if moving.inlined => continue,
                        Some(_) => {
                            self.sum(g, node, &mut Straight { known: &known, k }).evaluate(g).0
                        }
                        None => g.zero(),
                    },
                };
                known.entry(node).or_default().push(next);
            }
            let part = g.constant(1.0 / (k + 1) as f64);
            let part = g.mul(length, part);
            let next = self.field.iter().map(|&component| match k {
                0 => g.mul(part, known[&component][0]),
                _ => {
                    let known = &mut Straight { known: &known, k };
                    self.part(g, component, known).evaluate_scaled(g, part).0
                }
            });
            let next = next.collect();
            solution.push(next);
        }
        solution
    }

    /// Contribution of a coefficient of order k > 0 to a sum.
    fn part(&self, g: &mut Graph, node: Node, known: &mut dyn Coefficients) -> Sum {
        match self.moving.get(&node) {
            None => Sum(Vec::new()),
            Some(moving) if moving.inlined => self.sum(g, node, known),
            Some(moving) => Sum(vec![(g.one(), known.same(node), moving.ready)]),
        }
    }

    /// Contribution of a coefficient that is not inlined, times a known factor.
    fn late(&self, g: &mut Graph, factor: Node, node: Node, known: &mut dyn Coefficients) -> Sum {
        self.part(g, node, known).times(g, factor)
    }

    /// Sum of products of lower coefficients.
    fn lower(&self, lower: impl IntoIterator<Item = Lower>) -> Sum {
        let term = |Lower { factor, number, of, below, operations }: Lower| {
            let last = of.into_iter().filter_map(|node| self.moving.get(&node));
            let last = last.map(|moving| moving.ready).max().unwrap_or_default();
            (factor, number, last - below * self.period + operations)
        };
        Sum(lower.into_iter().map(term).collect())
    }

    /// A coefficient of order k > 0 as a sum.
    fn sum(&self, g: &mut Graph, node: Node, known: &mut dyn Coefficients) -> Sum {
        let moves = |node: Node| self.moving.contains_key(&node);
        let minus = g.constant(-1.0);
        match self.graph.expression(node) {
            Expression::Unary(Unary::Neg, a) => self.late(g, minus, a, known),
            Expression::Binary(op @ (Binary::Add | Binary::Sub), a, b) => {
                let sign = if op == Binary::Add { g.one() } else { minus };
                self.part(g, a, known).plus(self.late(g, sign, b, known))
            }
            Expression::Binary(Binary::Mul, a, b) if a == b => {
                let first = known.first(g, a);
                let twice = g.add(first, first);
                let inner = self.lower(known.square(g, a));
                inner.plus(self.late(g, twice, a, known))
            }
            Expression::Binary(Binary::Mul, a, b) => {
                let inner = match self.linear_arguments(node)[..] {
                    [_] => Vec::new(),
                    _ => known.product(g, a, b),
                };
                let [of_a, of_b] = [a, b].map(|argument| known.first(g, argument));
                let (by_a, by_b) = (self.late(g, of_b, a, known), self.late(g, of_a, b, known));
                self.lower(inner).plus(by_a).plus(by_b)
            }
            Expression::Binary(Binary::Div, a, b) => {
                // y b = a
                let inverse = known.over_first(g, 1.0, b);
                let inner = if moves(b) { known.product(g, node, b) } else { Vec::new() };
                let own = known.first(g, node);
                let product = self.lower(inner).plus(self.late(g, own, b, known));
                let a = self.late(g, inverse, a, known);
                product.times(g, minus).times(g, inverse).plus(a)
            }
            Expression::Unary(Unary::Sqrt, a) => {
                // y² = a
                let per_y = known.over_first(g, 0.5, node);
                let inner = self.lower(known.square(g, node)).times(g, minus);
                inner.plus(self.part(g, a, known)).times(g, per_y)
            }
            // The condition does not move.
            Expression::Select(c, a, b) => {
                let [a, b] =
                    [a, b].map(|side| if moves(side) { known.same(side) } else { g.zero() });
                let condition = known.first(g, c);
                Sum(vec![(g.one(), g.select(condition, a, b), 0)])
            }
            // ẏ = Σ slope · argument′, so k y_k = Σ j a_j s_{k−j}.
            _ => {
                let slopes = self.moving.get(&node).map_or(&[][..], |moving| &moving.slopes);
                slopes.iter().fold(Sum(Vec::new()), |sum, &(argument, slope)| {
                    let inner = self.lower([known.weighted(g, argument, slope)]);
                    let factor = known.first(g, slope);
                    sum.plus(inner).plus(self.late(g, factor, argument, known))
                })
            }
        }
    }
}

/// True if a value depends on the state or the time, where its arguments may.
fn moves(expression: Expression, is_moving: impl Fn(Node) -> bool) -> bool {
    match expression {
        Expression::Input(input) => !matches!(input, Input::Parameter(_)),
        other => other.arguments().any(is_moving),
    }
}

/// The formulas with a (c / b) as (c a) / b where c is known from order 0, and where nothing else
/// reads the quotient: one product of two series instead of two.
fn with_outer_quotients(graph: &Graph, field: &[Node]) -> (Graph, Vec<Node>) {
    let plan = graph.reachable(field);
    let mut uses: FxHashMap<Node, u32> = FxHashMap::default();
    let read = plan.iter().flat_map(|&node| graph.expression(node).arguments());
    read.chain(field.iter().copied()).for_each(|node| *uses.entry(node).or_default() += 1);
    let (mut out, mut moving) = (Graph::new(), FxHashMap::default());
    let mut copies: FxHashMap<Node, Node> = FxHashMap::default();
    for node in plan {
        let expression = graph.expression(node);
        moving.insert(node, moves(expression, |argument| moving[&argument]));
        // The numerator and the divisor of such a quotient.
        let inner = |quotient: Node| match graph.expression(quotient) {
            Expression::Binary(Binary::Div, c, b)
                if uses[&quotient] == 1 && !moving[&c] && moving[&b] =>
            {
                Some([c, b])
            }
            _ => None,
        };
        let quotient = match expression {
            Expression::Binary(Binary::Mul, a, b) => match (inner(a), inner(b)) {
                (_, Some(quotient)) if moving[&a] => Some((a, quotient)),
                (Some(quotient), _) if moving[&b] => Some((b, quotient)),
                _ => None,
            },
            _ => None,
        };
        let copy = match quotient {
            Some((factor, [c, b])) => {
                let numerator = out.mul(copies[&c], copies[&factor]);
                out.div(numerator, copies[&b])
            }
            None => out.copy_of(expression, |argument| copies[&argument]),
        };
        copies.insert(node, copy);
    }
    let field = field.iter().map(|component| copies[component]).collect();
    (out, field)
}

/// a b + c, where a known zero costs nothing.
fn linear(g: &mut Graph, a: Node, b: Node, c: Node) -> Node {
    if g.is_zero(a) || g.is_zero(b) { c } else { g.fma(a, b, c) }
}

/// Σ a_j b_{k−j} over `least` ≤ j ≤ k − `least`; the terms of the highest order last.
fn product_within(g: &mut Graph, a: &[Node], b: &[Node], k: usize, least: usize) -> Node {
    let mut sum = g.zero();
    for high in k.div_ceil(2)..(k + 1).saturating_sub(least) {
        sum = linear(g, a[k - high], b[high], sum);
        if 2 * high != k {
            sum = linear(g, b[k - high], a[high], sum);
        }
    }
    sum
}

/// Σ a_j a_{k−j} over 1 < j < k − 1, in half the products.
fn square_within(g: &mut Graph, a: &[Node], k: usize) -> Node {
    let mut sum = g.zero();
    for high in k / 2 + 1..k.saturating_sub(1) {
        sum = linear(g, a[k - high], a[high], sum);
    }
    let sum = g.add(sum, sum);
    if k > 2 && k.is_multiple_of(2) { linear(g, a[k / 2], a[k / 2], sum) } else { sum }
}

impl Graph {
    /// Arguments of a function that move, and its partial derivatives with respect to them; none
    /// for operations with a recurrence of their own.
    fn slopes_along(
        &mut self,
        node: Node,
        moves: impl Fn(Node) -> bool,
    ) -> Result<Vec<(Node, Node)>, &'static str> {
        let (arguments, slopes) = match self.expression(node) {
            Expression::Constant(_) | Expression::Input(_) => return Ok(Vec::new()),
            Expression::Unary(Unary::Neg | Unary::Sqrt, _) => return Ok(Vec::new()),
            Expression::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, ..) => {
                return Ok(Vec::new());
            }
            // The side that is selected does not change.
            Expression::Select(c, ..) if !moves(c) => return Ok(Vec::new()),
            Expression::Unary(op @ (Unary::Abs | Unary::Round), _) => return Err(op.name()),
            Expression::Binary(op @ (Binary::Min | Binary::Max), ..) => return Err(op.name()),
            // Their slopes are others of their family, and so on.
            Expression::Unary(op, _) if op.is_special() => return Err(op.name()),
            Expression::Binary(op, ..) if op.is_special() => return Err(op.name()),
            Expression::Select(..)
            | Expression::Unary(Unary::Not, _)
            | Expression::Binary(
                Binary::Less | Binary::LessEqual | Binary::Equal | Binary::And | Binary::Or,
                ..,
            ) => {
                return Err("if");
            }
            // 1 − y², whose terms do not overflow.
            Expression::Unary(Unary::Tanh, a) => {
                let (square, one) = (self.mul(node, node), self.one());
                (vec![a], vec![self.sub(one, square)])
            }
            // Not by aᵇ⁻¹: it would need aᵇ⁻² for its own slope, and so on.
            Expression::Binary(Binary::Pow, a, b) => {
                let relative = self.div(node, a);
                let slope = self.mul(b, relative);
                let mut slopes = vec![slope];
                if moves(b) {
                    let log = self.unary(Unary::Log, a);
                    slopes.push(self.mul(node, log));
                }
                (vec![a, b], slopes)
            }
            Expression::Unary(op, a) => {
                (vec![a], op.partials(self, a, node).into_iter().flatten().collect())
            }
            Expression::Binary(op, a, b) => (
                vec![a, b],
                op.partials(self, a, b, node).into_iter().flatten().collect::<Vec<Node>>(),
            ),
            Expression::Fused(..)
            | Expression::Largest(..)
            | Expression::RoughPower(..)
            | Expression::Spread(..) => {
                unreachable!("steps are made of formulas, and these are not yet")
            }
        };
        Ok(arguments.into_iter().zip(slopes).filter(|&(argument, _)| moves(argument)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::structure::evaluate;

    /// Check that the polynomial of ẋ = f, ẏ = 1 solves the equation nearby, whatever the unit of
    /// time.
    fn check(name: &str, f: impl Fn(&mut Graph, Node, Node) -> Node) {
        let mut g = Graph::new();
        let (x, y, t) = (g.state(0), g.state(1), g.input(Input::Time));
        let a = g.parameter(0);
        let sum = g.sum([x, y, t]);
        let moving = g.mul(a, sum);
        let field = [f(&mut g, moving, y), g.one()];
        let series = Series::new(&g, &field).expect(name);
        let (start, t0, parameters) = ([0.3, 0.3], 0.05, [0.9]);
        let mut recorded = Graph::new();
        let (nodes, time) = ([recorded.state(0), recorded.state(1)], recorded.input(Input::Time));
        for length in [1.0, 0.125] {
            let unit = recorded.constant(length);
            let c = series.solution(&mut recorded, (time, unit), &nodes, 20);
            let c: Vec<Vec<f64>> =
                c.iter().map(|c| evaluate(&recorded, c, t0, &start, &parameters)).collect();
            let part = 0.005 / length;
            let at = |i: usize| c.iter().rev().fold(0.0, |sum, c| sum * part + c[i]);
            let slope = |i: usize| {
                c.iter()
                    .enumerate()
                    .skip(1)
                    .rev()
                    .fold(0.0, |sum, (k, c)| sum * part + k as f64 * c[i])
                    / length
            };
            let expected = evaluate(&g, &field, t0 + 0.005, &[at(0), at(1)], &parameters);
            for (i, expected) in expected.iter().enumerate() {
                // Round-off of twenty terms.
                assert!(
                    (slope(i) - expected).abs() < 1e-14 * (1.0 + expected.abs()),
                    "{name}: {} {expected}",
                    slope(i)
                );
            }
        }
    }

    #[test]
    fn every_function_has_its_series() {
        let mut refused = Vec::new();
        let mut alone = Graph::new();
        let (x, t) = (alone.state(0), alone.input(Input::Time));
        for &op in Unary::ALL {
            let node = alone.unary(op, x);
            match Series::new(&alone, &[node]) {
                Ok(_) => check(op.name(), |g, a, _| g.unary(op, a)),
                Err(name) => refused.push(name),
            }
        }
        for &op in Binary::ALL {
            let node = alone.binary(op, x, t);
            match Series::new(&alone, &[node]) {
                Ok(_) => {
                    check(op.name(), |g, a, y| g.binary(op, a, y));
                    check(op.name(), |g, a, _| {
                        let fixed = g.constant(1.3);
                        g.binary(op, a, fixed)
                    });
                    check(op.name(), |g, a, _| {
                        let fixed = g.constant(1.3);
                        g.binary(op, fixed, a)
                    });
                    check(op.name(), |g, a, _| g.binary(op, a, a));
                }
                Err(name) => refused.push(name),
            }
        }
        let unary = ["gamma", "lgamma", "abs", "round", "if"];
        let families = ["besselj", "ellipk", "ellipe", "polygamma", "gammainc"];
        let others = ["if"; 5];
        assert_eq!(refused, [&unary[..], &["min", "max"], &families, &others].concat());
        check("if", |g, a, y| {
            let (fixed, one) = (g.parameter(0), g.one());
            let condition = g.binary(Binary::Less, fixed, one);
            let root = g.sqrt(y);
            g.select(condition, root, a)
        });
    }

    #[test]
    fn coefficients_are_those_of_known_functions() {
        // ẋ = 1 + x² through 0 is the tangent: 1, 1/3, 2/15, 17/315, 62/2835.
        let mut g = Graph::new();
        let x = g.state(0);
        let (square, one) = (g.mul(x, x), g.one());
        let field = g.add(square, one);
        let series = Series::new(&g, &[field]).unwrap();
        let mut recorded = Graph::new();
        let (x, t, length) = (recorded.state(0), recorded.input(Input::Time), recorded.one());
        let c = series.solution(&mut recorded, (t, length), &[x], 9);
        let c: Vec<f64> = c.iter().map(|c| evaluate(&recorded, c, 0.0, &[0.0], &[])[0]).collect();
        let expected =
            [0.0, 1.0, 0.0, 1.0 / 3.0, 0.0, 2.0 / 15.0, 0.0, 17.0 / 315.0, 0.0, 62.0 / 2835.0];
        for (c, expected) in c.iter().zip(expected) {
            assert!((c - expected).abs() <= 2.0 * f64::EPSILON * expected, "{c} {expected}");
        }
    }
}
