//! Expression graph: every formula, derivative and treatment is built here, each distinct
//! sub-expression once (hash-consing), so passes that visit a node once are linear.
//!
//! Nodes are numbered in the order of their creation, hence arguments precede results: increasing
//! numbers are a topological order, and no pass needs recursion.

pub mod aligned;
pub mod calculus;
pub mod elementary;
pub mod fuse;
pub mod interpret;
pub mod linear;
pub mod op;
pub mod optimise;
pub mod series;
pub mod tape;
pub mod value;
mod vertex;

pub use holonome_arithmetic::primitive;
use op::{Binary, Unary};
use primitive::Three;
use rustc_hash::FxHashMap;

/// A node of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

impl Node {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Input of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// A component of the state x = (q, p).
    State(u32),
    /// A parameter: constant along a run, never folded into the code.
    Parameter(u32),
    /// The time t.
    Time,
    /// A local variable of a template, bound to one of the above for each row of its index table.
    Slot(u32),
}

/// Definition of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// A number, by its bits.
    Constant(u64),
    /// An input.
    Input(Input),
    /// An operation of one argument.
    Unary(Unary, Node),
    /// An operation of two arguments.
    Binary(Binary, Node, Node),
    /// `if(condition, a, b)`; the condition is true if it is not 0.
    Select(Node, Node, Node),
    /// A product and a sum with one rounding.
    Fused(Fused, Node, Node, Node),
    /// The larger of |a| and b ≥ 0, NaN if either is: carries the largest deviation along a run.
    Largest(Node, Node),
    /// Approximate aᵇ: see [`rough_power`](primitive::rough_power).
    RoughPower(Node, Node),
    /// The argument's value in this lane, in every lane. The lanes are then not independent
    /// evaluations, but for example stages of one step.
    Spread(Node, u8),
}

/// Fused multiply-adds of a, b, c. Formulas have none; [`fuse`] forms them, and steps are built
/// with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fused {
    /// a b + c
    Fma,
    /// a b − c
    Fms,
    /// c − a b
    Fnma,
}

impl Fused {
    /// Value in double precision.
    pub fn evaluate(self, a: f64, b: f64, c: f64) -> f64 {
        Three::from(self).evaluate(a, b, c)
    }
}

impl From<Fused> for Three {
    fn from(fused: Fused) -> Three {
        match fused {
            Fused::Fma => Three::Fma,
            Fused::Fms => Three::Fms,
            Fused::Fnma => Three::Fnma,
        }
    }
}

impl Expression {
    /// Arguments, in order.
    pub fn arguments(self) -> impl Iterator<Item = Node> {
        let (list, count) = match self {
            Expression::Constant(_) | Expression::Input(_) => ([Node(0); 3], 0),
            Expression::Unary(_, a) | Expression::Spread(a, _) => ([a, Node(0), Node(0)], 1),
            Expression::Binary(_, a, b)
            | Expression::Largest(a, b)
            | Expression::RoughPower(a, b) => ([a, b, Node(0)], 2),
            Expression::Select(a, b, c) | Expression::Fused(_, a, b, c) => ([a, b, c], 3),
        };
        list.into_iter().take(count)
    }
}

/// Known facts of the values of a node for all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(u8);

impl Range {
    /// The value depends on parameters and constants only.
    const UNIFORM: u8 = 1;
    /// The value is at least 0 or NaN.
    const POSITIVE: u8 = 2;
    /// The value is NaN for some finite inputs, as a root or a logarithm is: cancelling it would
    /// lose that. NaN from parameters alone does not count: a product of 0 and √k is an empty entry
    /// of many a matrix.
    const PARTIAL: u8 = 4;

    fn of(list: [(bool, u8); 3]) -> Range {
        Range(list.into_iter().filter(|(holds, _)| *holds).fold(0, |all, (_, bit)| all | bit))
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// Combine the bits of an expression's arguments; a bit represents a NaN. An operation passes on
/// the NaN of any argument, a comparison none, and a choice only that of both its sides.
pub(crate) fn strict(e: Expression, of: impl Fn(Node) -> u64) -> u64 {
    match e {
        Expression::Unary(Unary::Not, _) => 0,
        Expression::Binary(
            Binary::Less | Binary::LessEqual | Binary::Equal | Binary::And | Binary::Or,
            ..,
        ) => 0,
        Expression::Select(_, a, b) => of(a) & of(b),
        e => e.arguments().fold(0, |all, a| all | of(a)),
    }
}

/// Images of one graph's nodes in another, for [`Graph::copy_onto`].
#[derive(Clone, Debug, Default)]
pub struct Copies {
    known: FxHashMap<Node, Node>,
    /// Those that may change, and the copies that depend on them.
    supposed: FxHashMap<Node, Node>,
}

impl Copies {
    /// Set images for good.
    pub fn know(&mut self, images: impl IntoIterator<Item = (Node, Node)>) {
        self.supposed.clear();
        self.known.extend(images);
    }

    /// Set images until the next call of this or of [`Copies::know`].
    pub fn suppose(&mut self, images: impl IntoIterator<Item = (Node, Node)>) {
        self.supposed.clear();
        self.supposed.extend(images);
    }

    fn has(&self, node: Node) -> bool {
        self.supposed.contains_key(&node) || self.known.contains_key(&node)
    }

    fn of(&self, node: Node) -> Node {
        self.supposed.get(&node).copied().unwrap_or_else(|| self.known[&node])
    }
}

/// A hash-consed directed acyclic graph of scalar expressions.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Expression>,
    ranges: Vec<Range>,
    known: FxHashMap<Expression, Node>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Graph::default()
    }

    /// An empty graph with room for this many nodes.
    fn with_capacity(nodes: usize) -> Self {
        let known = FxHashMap::with_capacity_and_hasher(nodes, Default::default());
        Graph { nodes: Vec::with_capacity(nodes), ranges: Vec::with_capacity(nodes), known }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Definition of `node`.
    pub fn expression(&self, node: Node) -> Expression {
        self.nodes[node.index()]
    }

    fn put(&mut self, e: Expression) -> Node {
        let next = Node(self.nodes.len() as u32);
        let node = *self.known.entry(e).or_insert(next);
        if node == next {
            self.ranges.push(self.range(e));
            self.nodes.push(e);
        }
        node
    }

    fn range(&self, e: Expression) -> Range {
        let of = |node: Node| self.ranges[node.index()];
        let all = |bit: u8| e.arguments().all(|a| of(a).has(bit));
        let uniform = match e {
            Expression::Constant(_) | Expression::Input(Input::Parameter(_)) => true,
            Expression::Input(_) => false,
            _ => all(Range::UNIFORM),
        };
        let positive = match e {
            Expression::Constant(bits) => f64::from_bits(bits) >= 0.0,
            Expression::Input(_) => false,
            Expression::Unary(op, _) => {
                matches!(
                    op,
                    Unary::Sqrt | Unary::Abs | Unary::Exp | Unary::Cosh | Unary::Acos | Unary::Not
                )
            }
            Expression::Binary(Binary::Mul, a, b) => a == b || all(Range::POSITIVE),
            Expression::Binary(
                Binary::Add | Binary::Div | Binary::Pow | Binary::Min | Binary::Max,
                ..,
            ) => all(Range::POSITIVE),
            Expression::Binary(op, ..) => !matches!(
                op,
                Binary::Sub
                    | Binary::Atan2
                    | Binary::BesselJ
                    | Binary::EllipticE
                    | Binary::Polygamma
            ),
            Expression::Select(_, a, b) => of(a).has(Range::POSITIVE) && of(b).has(Range::POSITIVE),
            Expression::Fused(op, a, b, c) => {
                let product = a == b || of(a).has(Range::POSITIVE) && of(b).has(Range::POSITIVE);
                op == Fused::Fma && product && of(c).has(Range::POSITIVE)
            }
            Expression::Largest(..) | Expression::RoughPower(..) => true,
            Expression::Spread(a, _) => of(a).has(Range::POSITIVE),
        };
        let arguments = strict(e, |a| u64::from(of(a).has(Range::PARTIAL))) != 0;
        let partial = !uniform && (arguments || self.has_domain(e));
        Range::of([
            (uniform, Range::UNIFORM),
            (positive, Range::POSITIVE),
            (partial, Range::PARTIAL),
        ])
    }

    /// True if an operation is NaN for some finite arguments that its arguments may have; division
    /// is excluded.
    fn has_domain(&self, e: Expression) -> bool {
        let of = |node: Node| self.ranges[node.index()];
        match e {
            Expression::Unary(Unary::Sqrt, a) => {
                !of(a).has(Range::POSITIVE) && !of(a).has(Range::UNIFORM)
            }
            Expression::Unary(Unary::Log | Unary::Asin | Unary::Acos, a) => {
                !of(a).has(Range::UNIFORM)
            }
            Expression::Binary(Binary::Pow, a, b) => {
                let whole = self.value(b).is_some_and(|b| b.fract() == 0.0);
                let uniform = of(a).has(Range::UNIFORM) && of(b).has(Range::UNIFORM);
                !(whole || uniform || of(a).has(Range::POSITIVE))
            }
            _ => false,
        }
    }

    /// True if a node is an operation that is NaN outside a domain of its own.
    pub(crate) fn is_partial_function(&self, node: Node) -> bool {
        self.has_domain(self.expression(node))
    }

    fn is_total(&self, node: Node) -> bool {
        !self.ranges[node.index()].has(Range::PARTIAL)
    }

    /// The number `value`.
    pub fn constant(&mut self, value: f64) -> Node {
        self.put(Expression::Constant(value.to_bits()))
    }

    /// The number 0.
    pub fn zero(&mut self) -> Node {
        self.constant(0.0)
    }

    /// The number 1.
    pub fn one(&mut self) -> Node {
        self.constant(1.0)
    }

    /// An input.
    pub fn input(&mut self, input: Input) -> Node {
        self.put(Expression::Input(input))
    }

    /// The state component `i`.
    pub fn state(&mut self, i: usize) -> Node {
        self.input(Input::State(i as u32))
    }

    /// The parameter `i`.
    pub fn parameter(&mut self, i: usize) -> Node {
        self.input(Input::Parameter(i as u32))
    }

    /// Value of a constant node.
    pub fn value(&self, node: Node) -> Option<f64> {
        match self.expression(node) {
            Expression::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    fn is(&self, node: Node, value: f64) -> bool {
        self.value(node) == Some(value)
    }

    fn negated(&self, node: Node) -> Option<Node> {
        match self.expression(node) {
            Expression::Unary(Unary::Neg, a) => Some(a),
            _ => None,
        }
    }

    /// True if `node` is the constant 0.
    pub fn is_zero(&self, node: Node) -> bool {
        self.is(node, 0.0)
    }

    /// An operation of one argument, with constants folded.
    pub fn unary(&mut self, op: Unary, a: Node) -> Node {
        if let Some(x) = self.value(a) {
            return self.constant(op.evaluate(x));
        }
        match (op, self.negated(a)) {
            (Unary::Neg | Unary::Not, Some(inner)) if op == Unary::Neg => inner,
            (Unary::Cos | Unary::Cosh | Unary::Abs, Some(inner)) => self.unary(op, inner),
            _ => self.put(Expression::Unary(op, a)),
        }
    }

    /// An operation of two arguments, with constants folded and neutral elements removed.
    pub fn binary(&mut self, op: Binary, a: Node, b: Node) -> Node {
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            return self.constant(op.evaluate(x, y));
        }
        match op {
            Binary::Add => self.fold_add(a, b),
            Binary::Sub => self.fold_sub(a, b),
            Binary::Mul => self.fold_mul(a, b),
            Binary::Div => self.fold_div(a, b),
            _ => self.put_binary(op, a, b),
        }
    }

    fn put_binary(&mut self, op: Binary, a: Node, b: Node) -> Node {
        // One order for commuting arguments, so that a*b and b*a are one node.
        let (a, b) = if op.commutes() && b < a { (b, a) } else { (a, b) };
        self.put(Expression::Binary(op, a, b))
    }

    fn fold_add(&mut self, a: Node, b: Node) -> Node {
        if self.is_zero(a) {
            return b;
        }
        if self.is_zero(b) {
            return a;
        }
        if let Some(n) = self.negated(b) {
            return self.sub(a, n);
        }
        if let Some(n) = self.negated(a) {
            return self.sub(b, n);
        }
        self.put_binary(Binary::Add, a, b)
    }

    fn fold_sub(&mut self, a: Node, b: Node) -> Node {
        if self.is_zero(b) {
            return a;
        }
        if self.is_zero(a) {
            return self.neg(b);
        }
        if a == b && self.is_total(a) {
            return self.zero();
        }
        if let Some(n) = self.negated(b) {
            return self.add(a, n);
        }
        if let Some(n) = self.negated(a) {
            let s = self.add(n, b);
            return self.neg(s);
        }
        self.put_binary(Binary::Sub, a, b)
    }

    fn fold_mul(&mut self, a: Node, b: Node) -> Node {
        for (x, y) in [(a, b), (b, a)] {
            if self.is_zero(x) && self.is_total(y) {
                return x;
            }
            if self.is(x, 1.0) {
                return y;
            }
            if self.is(x, -1.0) {
                return self.neg(y);
            }
            if let Some(n) = self.negated(x) {
                let p = self.mul(n, y);
                return self.neg(p);
            }
        }
        self.put_binary(Binary::Mul, a, b)
    }

    /// The radicand x of a root √x if x is never negative.
    fn square_of_root(&self, node: Node) -> Option<Node> {
        match self.expression(node) {
            Expression::Unary(Unary::Sqrt, x) if self.ranges[x.index()].has(Range::POSITIVE) => {
                Some(x)
            }
            _ => None,
        }
    }

    fn fold_div(&mut self, a: Node, b: Node) -> Node {
        if self.is(b, 1.0) || self.is_zero(a) {
            return a;
        }
        if let Some(n) = self.negated(a) {
            let q = self.div(n, b);
            return self.neg(q);
        }
        if let Some(y) = self.value(b)
            && y.is_normal()
            && y.to_bits() << 12 == 0
        {
            // A power of two: its inverse is exact, and a product is cheaper.
            let r = self.constant(1.0 / y);
            return self.mul(a, r);
        }
        self.put_binary(Binary::Div, a, b)
    }

    /// a + b
    pub fn add(&mut self, a: Node, b: Node) -> Node {
        self.binary(Binary::Add, a, b)
    }

    /// a − b
    pub fn sub(&mut self, a: Node, b: Node) -> Node {
        self.binary(Binary::Sub, a, b)
    }

    /// a b
    pub fn mul(&mut self, a: Node, b: Node) -> Node {
        self.binary(Binary::Mul, a, b)
    }

    /// a / b
    pub fn div(&mut self, a: Node, b: Node) -> Node {
        self.binary(Binary::Div, a, b)
    }

    /// −a
    pub fn neg(&mut self, a: Node) -> Node {
        self.unary(Unary::Neg, a)
    }

    /// √a
    pub fn sqrt(&mut self, a: Node) -> Node {
        self.unary(Unary::Sqrt, a)
    }

    /// a^b. Small integer and half-integer exponents become products and roots.
    pub fn pow(&mut self, a: Node, b: Node) -> Node {
        const LARGEST_EXPANDED: f64 = 64.0;
        let Some(e) =
            self.value(b).filter(|e| e.abs() <= LARGEST_EXPANDED && (2.0 * e).fract() == 0.0)
        else {
            // A norm to the power of a parameter has derivatives at 0 from some exponent on.
            if let Some(square) = self.square_of_root(a)
                && self.value(b).is_none()
            {
                let half = self.constant(0.5);
                let half = self.mul(half, b);
                return self.binary(Binary::Pow, square, half);
            }
            return self.binary(Binary::Pow, a, b);
        };
        if e < 0.0 {
            let positive = self.constant(-e);
            let p = self.pow(a, positive);
            let one = self.one();
            return self.div(one, p);
        }
        // Even powers of a norm have derivatives at 0, where the norm has none; odd ones are
        // products of norms.
        if let Some(square) = self.square_of_root(a)
            && e % 2.0 == 0.0
        {
            return self.integer_power(square, e as u32 / 2);
        }
        let whole = self.integer_power(a, e as u32);
        if e.fract() == 0.0 {
            return whole;
        }
        let root = self.sqrt(a);
        self.mul(whole, root)
    }

    fn integer_power(&mut self, a: Node, e: u32) -> Node {
        match e {
            0 => self.one(),
            1 => a,
            _ => {
                let half = self.integer_power(a, e / 2);
                let square = self.mul(half, half);
                if e.is_multiple_of(2) { square } else { self.mul(square, a) }
            }
        }
    }

    /// `if(condition, a, b)`
    pub fn select(&mut self, condition: Node, a: Node, b: Node) -> Node {
        if a == b {
            return a;
        }
        match self.value(condition) {
            Some(c) => {
                if c != 0.0 {
                    a
                } else {
                    b
                }
            }
            None => self.put(Expression::Select(condition, a, b)),
        }
    }

    /// A fused multiply-add, with every simplification that keeps its bits (except signs of zero).
    pub fn fused(&mut self, op: Fused, a: Node, b: Node, c: Node) -> Node {
        if let (Some(x), Some(y), Some(z)) = (self.value(a), self.value(b), self.value(c)) {
            return self.constant(op.evaluate(x, y, z));
        }
        // A product that is exact needs no fusing.
        let exact = |g: &Graph, n: Node| [0.0, 1.0, -1.0].iter().any(|&v| g.is(n, v));
        if exact(self, a) || exact(self, b) || self.is_zero(c) {
            let product = self.mul(a, b);
            return match op {
                Fused::Fma => self.add(product, c),
                Fused::Fms => self.sub(product, c),
                Fused::Fnma => self.sub(c, product),
            };
        }
        for (x, y) in [(a, b), (b, a)] {
            if let (Some(x), Fused::Fma | Fused::Fnma) = (self.negated(x), op) {
                let op = if op == Fused::Fma { Fused::Fnma } else { Fused::Fma };
                return self.fused(op, x, y, c);
            }
        }
        if let (Some(c), Fused::Fma | Fused::Fms) = (self.negated(c), op) {
            let op = if op == Fused::Fma { Fused::Fms } else { Fused::Fma };
            return self.fused(op, a, b, c);
        }
        let (a, b) = if b < a { (b, a) } else { (a, b) };
        self.put(Expression::Fused(op, a, b, c))
    }

    /// The larger of |a| and b ≥ 0, NaN if either is.
    pub fn largest(&mut self, a: Node, b: Node) -> Node {
        self.put(Expression::Largest(a, b))
    }

    /// Approximate aᵇ: see [`rough_power`](primitive::rough_power).
    pub fn rough_power(&mut self, a: Node, b: Node) -> Node {
        self.put(Expression::RoughPower(a, b))
    }

    /// The value of `a` in this lane, in every lane.
    pub fn spread(&mut self, a: Node, lane: u8) -> Node {
        self.put(Expression::Spread(a, lane))
    }

    /// a b + c with one rounding.
    pub fn fma(&mut self, a: Node, b: Node, c: Node) -> Node {
        self.fused(Fused::Fma, a, b, c)
    }

    /// The sum of `terms` from left to right.
    pub fn sum(&mut self, terms: impl IntoIterator<Item = Node>) -> Node {
        let zero = self.zero();
        terms.into_iter().fold(zero, |s, e| self.add(s, e))
    }

    /// Σ aᵢ bᵢ
    pub fn dot(&mut self, a: &[Node], b: &[Node]) -> Node {
        let zero = self.zero();
        a.iter().zip(b).fold(zero, |s, (&x, &y)| {
            let p = self.mul(x, y);
            self.add(s, p)
        })
    }

    /// The nodes that `roots` depend on (themselves included), in topological order.
    pub fn reachable(&self, roots: &[Node]) -> Vec<Node> {
        const BITS: usize = u64::BITS as usize;
        // One bit for each node, so that the order of their numbers needs no sorting.
        let mut seen = vec![0u64; roots.iter().max().map_or(0, |last| last.index() / BITS + 1)];
        let mut stack: Vec<Node> = roots.to_vec();
        let mut count = 0;
        while let Some(node) = stack.pop() {
            let (word, bit) = (&mut seen[node.index() / BITS], 1 << (node.index() % BITS));
            if *word & bit == 0 {
                *word |= bit;
                count += 1;
                stack.extend(self.expression(node).arguments());
            }
        }
        let mut order = Vec::with_capacity(count);
        for (k, mut word) in seen.into_iter().enumerate() {
            while word != 0 {
                order.push(Node((k * BITS) as u32 + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        order
    }

    /// The nodes among those that `root` depends on at which a formula jumps: comparisons and
    /// rounding, which have no derivative that would show it.
    pub fn jumps(&self, root: Node) -> Vec<Node> {
        let jumps = |node: &Node| {
            matches!(
                self.expression(*node),
                Expression::Binary(Binary::Less | Binary::LessEqual | Binary::Equal, ..)
                    | Expression::Unary(Unary::Round, _)
            )
        };
        self.reachable(&[root]).into_iter().filter(jumps).collect()
    }

    /// Copy `roots` of `source` into this graph with its inputs replaced: the instance of a
    /// template.
    pub fn instantiate(
        &mut self,
        source: &Graph,
        roots: &[Node],
        mut bind: impl FnMut(&mut Graph, Input) -> Node,
    ) -> Vec<Node> {
        let plan = source.reachable(roots);
        self.instantiate_plan(source, &plan, roots, &mut bind)
    }

    /// [`Graph::instantiate`] with the topological order of `roots` found once for many rows.
    pub fn instantiate_plan(
        &mut self,
        source: &Graph,
        plan: &[Node],
        roots: &[Node],
        bind: &mut impl FnMut(&mut Graph, Input) -> Node,
    ) -> Vec<Node> {
        let mut image: FxHashMap<Node, Node> =
            FxHashMap::with_capacity_and_hasher(plan.len(), Default::default());
        for &node in plan {
            let copy = match source.expression(node) {
                Expression::Input(input) => bind(self, input),
                expression => self.copy_of(expression, |argument| image[&argument]),
            };
            image.insert(node, copy);
        }
        roots.iter().map(|r| image[r]).collect()
    }

    /// Copy `roots` of `source` into this graph. `known` maps nodes of `source` to existing nodes
    /// of this graph; nodes that only these depend on are not copied.
    pub fn copy_from(
        &mut self,
        source: &Graph,
        roots: &[Node],
        known: &FxHashMap<Node, Node>,
    ) -> Vec<Node> {
        let mut copies = Copies { known: known.clone(), ..Copies::default() };
        self.copy_onto(source, roots, &mut copies)
    }

    /// Copy `roots` of `source` into this graph. What is copied stays in `copies`, so that formulas
    /// which have parts in common are copied one after the other in the time of all their parts.
    pub fn copy_onto(&mut self, source: &Graph, roots: &[Node], copies: &mut Copies) -> Vec<Node> {
        for node in source.reachable_until(roots, |node| copies.has(node)) {
            let expression = source.expression(node);
            let copy = self.copy_of(expression, |argument| copies.of(argument));
            let supposed = expression.arguments().any(|node| copies.supposed.contains_key(&node));
            let copies = if supposed { &mut copies.supposed } else { &mut copies.known };
            copies.insert(node, copy);
        }
        roots.iter().map(|&root| copies.of(root)).collect()
    }

    /// Copy of `roots` with some nodes replaced by others.
    pub fn substituted(&mut self, roots: &[Node], replaced: &FxHashMap<Node, Node>) -> Vec<Node> {
        // What is older than all of them depends on none.
        let Some(&oldest) = replaced.keys().min() else { return roots.to_vec() };
        let mut image = replaced.clone();
        let stays = |node: Node| node < oldest || replaced.contains_key(&node);
        for node in self.reachable_until(roots, stays) {
            let at = |argument: Node| image.get(&argument).copied().unwrap_or(argument);
            let copy = self.copy_of(self.expression(node), at);
            image.insert(node, copy);
        }
        roots.iter().map(|&root| image.get(&root).copied().unwrap_or(root)).collect()
    }

    /// The nodes that `roots` depend on, themselves included, in topological order. Without those
    /// that are known, and those that only these depend on.
    fn reachable_until(&self, roots: &[Node], is_known: impl Fn(Node) -> bool) -> Vec<Node> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack: Vec<Node> = roots.to_vec();
        let mut order = Vec::new();
        while let Some(node) = stack.pop() {
            if !is_known(node) && seen.insert(node) {
                order.push(node);
                stack.extend(self.expression(node).arguments());
            }
        }
        order.sort_unstable();
        order
    }

    /// Copy an expression of another graph, with the images of its arguments here.
    fn copy_of(&mut self, expression: Expression, image: impl Fn(Node) -> Node) -> Node {
        match expression {
            Expression::Constant(_) | Expression::Input(_) => self.put(expression),
            Expression::Unary(op, a) => self.unary(op, image(a)),
            Expression::Binary(op, a, b) => self.binary(op, image(a), image(b)),
            Expression::Select(c, a, b) => self.select(image(c), image(a), image(b)),
            Expression::Fused(op, a, b, c) => self.fused(op, image(a), image(b), image(c)),
            Expression::Largest(a, b) => self.largest(image(a), image(b)),
            Expression::RoughPower(a, b) => self.rough_power(image(a), image(b)),
            Expression::Spread(a, lane) => self.spread(image(a), lane),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_what_is_supposed_are_made_anew() {
        let mut source = Graph::new();
        let [x, u] = [0, 1].map(|k| source.state(k));
        let square = source.mul(x, x);
        let sum = source.add(square, u);
        let (mut g, mut copies) = (Graph::new(), Copies::default());
        let values = [0, 1, 2, 3].map(|k| g.parameter(k));
        let expected_square = g.mul(values[0], values[0]);
        copies.know([(x, values[0])]);
        for value in &values[1..3] {
            copies.suppose([(u, *value)]);
            let expected = g.add(expected_square, *value);
            let before = g.len();
            assert_eq!(g.copy_onto(&source, &[sum, u], &mut copies), [expected, *value]);
            assert_eq!(g.len(), before);
        }
        copies.know([(u, values[3])]);
        let expected = g.add(expected_square, values[3]);
        assert_eq!(g.copy_onto(&source, &[sum], &mut copies), [expected]);
        assert_eq!(copies.known.len(), 4, "what is known is copied once");
    }

    #[test]
    fn what_is_older_than_all_that_is_replaced_stays() {
        let mut g = Graph::new();
        let [x, y] = [0, 1].map(|k| g.state(k));
        let square = g.mul(x, x);
        let unknown = g.state(2);
        let sum = g.add(square, unknown);
        let product = g.mul(sum, y);
        let replaced = FxHashMap::from_iter([(unknown, y)]);
        let expected_sum = g.add(square, y);
        let expected = g.mul(expected_sum, y);
        assert_eq!(g.substituted(&[product, square, unknown], &replaced), [expected, square, y]);
        assert_eq!(g.substituted(&[product], &FxHashMap::default()), [product]);
    }
}
