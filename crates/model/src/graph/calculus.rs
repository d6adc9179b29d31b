//! Exact derivatives of graphs: reverse mode for gradients, forward mode for directional
//! derivatives, and the operations of mechanics on them. Every pass visits a node once.
//!
//! A branch that is not taken contributes nothing, and where a derivative exists the chain rule
//! gives it, though one of its factors may have no value there: see `vertex.rs`.

use super::op::{Binary, Unary};
use super::vertex::Vertex;
use super::{Expression, Fused, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// A sparse gradient: (component, derivative), components increasing, zeros left out.
pub type Gradient = Vec<(u32, Node)>;

/// Derivative of a node along a direction.
#[derive(Clone, Copy)]
struct Tangent {
    value: Node,
    /// Condition outside which the node does not move.
    only_if: Option<Node>,
    /// Operation at whose vertex the value is undefined, with the order with which it vanishes or
    /// grows nearby.
    vertex: Option<(Node, f64)>,
}

impl Tangent {
    fn of(value: Node) -> Tangent {
        Tangent { value, only_if: None, vertex: None }
    }
}

/// Adjoints on the way from a root to the inputs.
struct Adjoints {
    /// The adjoint of each node so far, and a mask of the values for which the node counts: only the
    /// branches of selects that use it (`None`: always). Elsewhere it may have no derivative, and
    /// 0 · NaN must not reach the sum: if(x > 0, sqrt(x), 0).
    reached: FxHashMap<Node, (Node, Option<Node>)>,
}

impl Adjoints {
    /// Add an amount to the adjoint of a node, for the values of `mask`.
    fn add(&mut self, g: &mut Graph, to: Node, amount: Node, mask: Option<Node>) {
        let sum = match self.reached.get(&to) {
            Some(&(old, known)) => {
                let both = known.zip(mask);
                let total = g.add(old, amount);
                let either = |(a, b)| if a == b { a } else { g.binary(Binary::Or, a, b) };
                (total, both.map(either))
            }
            None => (amount, mask),
        };
        self.reached.insert(to, sum);
    }
}

impl Graph {
    /// The derivatives of `y` with respect to every input that `select` accepts, as (input,
    /// derivative) in the order of the inputs. Inputs that `y` does not depend on are absent.
    pub fn adjoint(&mut self, y: Node, select: impl FnMut(Input) -> bool) -> Vec<(Input, Node)> {
        self.adjoint_by(y, select, |_, _| {})
    }

    /// [`Graph::adjoint`] with a call for every operation and each of its arguments' shares in the
    /// chain rule: the product of the derivative of `y` by the operation and that of the operation
    /// by the argument.
    pub fn adjoint_by(
        &mut self,
        y: Node,
        mut select: impl FnMut(Input) -> bool,
        mut share: impl FnMut(Node, Node),
    ) -> Vec<(Input, Node)> {
        let order = self.reachable(&[y]);
        let active = self.active(&order, &mut select);
        let one = self.one();
        let mut adjoints = Adjoints { reached: FxHashMap::from_iter([(y, (one, None))]) };
        let mut result = Vec::new();
        for &node in order.iter().rev() {
            if !active[&node] {
                continue;
            }
            let Some(&(bar, mask)) = adjoints.reached.get(&node) else { continue };
            let mut contribute = |g: &mut Graph, argument, amount, mask| {
                if active[&argument] && !g.is_zero(amount) {
                    share(node, amount);
                    adjoints.add(g, argument, amount, mask);
                }
            };
            if let Some(branches) = self.choice(node) {
                for (branch, amount, mask) in self.branches(branches, bar, mask) {
                    contribute(self, branch, amount, mask);
                }
                continue;
            }
            match self.expression(node) {
                Expression::Constant(_) => {}
                Expression::Input(input) => result.push((input, bar)),
                Expression::Unary(op, a) => {
                    if let [Some(d)] = op.partials(self, a, node) {
                        let amount = self.masked_product(mask, bar, d);
                        let amount = self.zero_at_vertex(node, [bar, d], amount);
                        contribute(self, a, amount, mask);
                    }
                }
                Expression::Binary(op, a, b) => {
                    let [a_moves, b_moves] = [a, b].map(|argument| active[&argument]);
                    // Only the partials that are needed: d(x^k)/dk would introduce log(x).
                    let [da, db] = self.partials_where(op, a, b, node, a_moves, b_moves);
                    for (argument, d) in [(a, da), (b, db)] {
                        if let Some(d) = d {
                            let amount = self.masked_product(mask, bar, d);
                            let amount = self.zero_at_vertex(node, [bar, d], amount);
                            contribute(self, argument, amount, mask);
                        }
                    }
                }
                Expression::Select(..) => unreachable!("a choice"),
                Expression::Largest(..) | Expression::RoughPower(..) | Expression::Spread(..) => {
                    unreachable!("what a run remembers is not differentiated")
                }
                Expression::Fused(op, a, b, c) => {
                    for (argument, d) in self.fused_partials(op, a, b, c) {
                        let amount = self.masked_product(mask, bar, d);
                        contribute(self, argument, amount, mask);
                    }
                }
            }
        }
        result.retain(|&(_, d)| !self.is_zero(d));
        result.sort_unstable_by_key(|&(input, _)| input);
        result
    }

    /// For each node in `order`, arguments before what uses them, whether it depends on an input
    /// that `select` selects.
    fn active(
        &self,
        order: &[Node],
        select: &mut dyn FnMut(Input) -> bool,
    ) -> FxHashMap<Node, bool> {
        let mut active: FxHashMap<Node, bool> = FxHashMap::default();
        for &node in order {
            let is_active = match self.expression(node) {
                Expression::Input(input) => select(input),
                e => e.arguments().any(|a| active[&a]),
            };
            active.insert(node, is_active);
        }
        active
    }

    /// What an adjoint `bar` of a choice, under `mask`, adds to each of its branches, with the mask
    /// of the values for which the branch is taken.
    fn branches(
        &mut self,
        (c, a, b): (Node, Node, Node),
        bar: Node,
        mask: Option<Node>,
    ) -> [(Node, Node, Option<Node>); 2] {
        let (zero, not) = (self.zero(), self.unary(Unary::Not, c));
        let (to_a, to_b) = (self.select(c, bar, zero), self.select(c, zero, bar));
        let [in_a, in_b] = [c, not].map(|c| match mask {
            Some(m) => self.binary(Binary::And, m, c),
            None => c,
        });
        [(a, to_a, Some(in_a)), (b, to_b, Some(in_b))]
    }

    /// Condition and branches of a choice between two nodes, differentiated piecewise.
    fn choice(&mut self, node: Node) -> Option<(Node, Node, Node)> {
        match self.expression(node) {
            Expression::Select(c, a, b) => Some((c, a, b)),
            Expression::Binary(Binary::Min, a, b) => {
                Some((self.binary(Binary::LessEqual, a, b), a, b))
            }
            Expression::Binary(Binary::Max, a, b) => {
                Some((self.binary(Binary::LessEqual, b, a), a, b))
            }
            _ => None,
        }
    }

    /// The product of `outer` and the derivative `own` of the operation `node`, 0 at its vertex
    /// where the chain rule is known to give 0 there.
    fn zero_at_vertex(&mut self, node: Node, [outer, own]: [Node; 2], product: Node) -> Node {
        let condition =
            Vertex::of(self, node).and_then(|mut vertex| vertex.vanishing(self, outer, own));
        self.zero_where(condition, product)
    }

    /// `node`, or 0 where a condition holds.
    fn zero_where(&mut self, condition: Option<Node>, node: Node) -> Node {
        let Some(condition) = condition else { return node };
        let zero = self.zero();
        self.select(condition, zero, node)
    }

    /// bar·d, or 0 where the mask is false, whatever the value of d is there.
    fn masked_product(&mut self, mask: Option<Node>, bar: Node, d: Node) -> Node {
        let product = self.mul(bar, d);
        match mask {
            Some(mask) if self.value(d).is_none() => {
                let zero = self.zero();
                self.select(mask, product, zero)
            }
            _ => product,
        }
    }

    /// The partial derivatives of a fused multiply-add with respect to each of its arguments.
    fn fused_partials(&mut self, op: Fused, a: Node, b: Node, c: Node) -> [(Node, Node); 3] {
        let (one, minus) = (self.one(), self.constant(-1.0));
        match op {
            Fused::Fma => [(a, b), (b, a), (c, one)],
            Fused::Fms => [(a, b), (b, a), (c, minus)],
            Fused::Fnma => [(a, self.neg(b)), (b, self.neg(a)), (c, one)],
        }
    }

    fn partials_where(
        &mut self,
        op: Binary,
        a: Node,
        b: Node,
        y: Node,
        need_a: bool,
        need_b: bool,
    ) -> [Option<Node>; 2] {
        let [da, db] = op.partials(self, a, b, y);
        [da.filter(|_| need_a), db.filter(|_| need_b)]
    }

    /// The gradient of `y` with respect to the state.
    pub fn gradient(&mut self, y: Node) -> Gradient {
        self.adjoint(y, |input| matches!(input, Input::State(_)))
            .into_iter()
            .map(|(input, d)| match input {
                Input::State(i) => (i, d),
                _ => unreachable!("only state inputs were selected"),
            })
            .collect()
    }

    /// ∂y/∂t with the state held fixed.
    pub fn time_derivative(&mut self, y: Node) -> Node {
        let zero = self.zero();
        self.adjoint(y, |input| input == Input::Time).first().map_or(zero, |&(_, d)| d)
    }

    /// The Hessian of `y` by rows: row i lists the derivatives of ∂y/∂xᵢ. Rows of zeros are absent.
    pub fn hessian(&mut self, y: Node) -> Vec<(u32, Gradient)> {
        let gradient = self.gradient(y);
        gradient.into_iter().map(|(i, d)| (i, self.gradient(d))).collect()
    }

    /// The directional derivatives of `roots` along the direction in which `seed` returns the
    /// component of each input (`None` for zero). Applied twice or three times, second and third
    /// directional derivatives.
    pub fn tangent(
        &mut self,
        roots: &[Node],
        mut seed: impl FnMut(&mut Graph, Input) -> Option<Node>,
    ) -> Vec<Node> {
        let order = self.reachable(roots);
        let mut dot: FxHashMap<Node, Tangent> = FxHashMap::default();
        for node in order {
            let tangent = if let Some((c, a, b)) = self.choice(node) {
                self.tangent_of_choice(c, [a, b].map(|side| dot.get(&side).copied()))
            } else {
                match self.expression(node) {
                    Expression::Constant(_) => None,
                    Expression::Input(input) => seed(self, input).map(Tangent::of),
                    Expression::Unary(op, a) => dot.get(&a).copied().and_then(|da| {
                        let [partial] = op.partials(self, a, node);
                        partial.map(|d| self.chained(node, d, da))
                    }),
                    Expression::Binary(op, a, b) => {
                        let (da, db) = (dot.get(&a).copied(), dot.get(&b).copied());
                        if da.is_none() && db.is_none() {
                            None
                        } else {
                            let [pa, pb] =
                                self.partials_where(op, a, b, node, da.is_some(), db.is_some());
                            let left = pa.zip(da).map(|(p, d)| self.chained(node, p, d));
                            let right = pb.zip(db).map(|(p, d)| self.chained(node, p, d));
                            self.tangent_sum(left.into_iter().chain(right))
                        }
                    }
                    Expression::Select(..) => unreachable!("a choice"),
                    Expression::Largest(..)
                    | Expression::RoughPower(..)
                    | Expression::Spread(..) => {
                        unreachable!("what a run remembers is not differentiated")
                    }
                    Expression::Fused(op, a, b, c) => {
                        let partials = self.fused_partials(op, a, b, c).into_iter();
                        let terms: Vec<Tangent> = partials
                            .filter_map(|(argument, p)| dot.get(&argument).map(|&d| (p, d)))
                            .map(|(p, d)| self.chained(node, p, d))
                            .collect();
                        self.tangent_sum(terms)
                    }
                }
            };
            if let Some(tangent) = tangent.filter(|tangent| !self.is_zero(tangent.value)) {
                dot.insert(node, tangent);
            }
        }
        let zero = self.zero();
        roots.iter().map(|r| dot.get(r).map_or(zero, |tangent| tangent.value)).collect()
    }

    /// True if an operation has values where its derivative is infinite.
    fn has_infinite_slopes(&self, node: Node) -> bool {
        matches!(
            self.expression(node),
            Expression::Unary(Unary::Sqrt | Unary::Asin | Unary::Acos, _)
                | Expression::Binary(Binary::Pow | Binary::Atan2, ..)
        )
    }

    /// Product of the chain rule for one argument of the operation `node`.
    fn chained(&mut self, node: Node, partial: Node, tangent: Tangent) -> Tangent {
        let product = self.mul(partial, tangent.value);
        let product = match tangent.only_if {
            // Elsewhere the argument does not move, whatever the derivative of the operation is
            // there.
            Some(mask) if self.has_infinite_slopes(node) => {
                let zero = self.zero();
                self.select(mask, product, zero)
            }
            _ => product,
        };
        if let Some((operation, order)) = tangent.vertex {
            let mut vertex = Vertex::of(self, operation).expect("a vertex that was found before");
            let order = order + vertex.order(self, partial);
            let condition = (order > 0.0).then(|| vertex.condition(self));
            let vertex = condition.is_none().then_some((operation, order));
            return Tangent { value: self.zero_where(condition, product), vertex, ..tangent };
        }
        let Some(mut vertex) = Vertex::of(self, node) else {
            return Tangent { value: product, ..tangent };
        };
        let one = self.one();
        match vertex.vanishing(self, one, partial) {
            Some(condition) => {
                Tangent { value: self.zero_where(Some(condition), product), ..tangent }
            }
            None => Tangent {
                value: product,
                vertex: vertex.slope(self, partial).map(|order| (node, order)),
                ..tangent
            },
        }
    }

    fn tangent_of_choice(
        &mut self,
        condition: Node,
        [a, b]: [Option<Tangent>; 2],
    ) -> Option<Tangent> {
        let zero = self.zero();
        let vertex = a.and_then(|a| a.vertex).or(b.and_then(|b| b.vertex));
        let only = |g: &mut Graph, condition: Node, tangent: Tangent| match tangent.only_if {
            Some(mask) => g.binary(Binary::And, condition, mask),
            None => condition,
        };
        Some(match (a, b) {
            (None, None) => return None,
            (Some(a), None) => {
                let only_if = Some(only(self, condition, a));
                Tangent { value: self.select(condition, a.value, zero), only_if, vertex }
            }
            (None, Some(b)) => {
                let not = self.unary(Unary::Not, condition);
                let only_if = Some(only(self, not, b));
                Tangent { value: self.select(condition, zero, b.value), only_if, vertex }
            }
            (Some(a), Some(b)) => {
                let only_if = a.only_if.filter(|_| a.only_if == b.only_if);
                Tangent { value: self.select(condition, a.value, b.value), only_if, vertex }
            }
        })
    }

    fn tangent_sum(&mut self, terms: impl IntoIterator<Item = Tangent>) -> Option<Tangent> {
        terms.into_iter().reduce(|a, b| Tangent {
            value: self.add(a.value, b.value),
            only_if: a.only_if.filter(|_| a.only_if == b.only_if),
            vertex: a.vertex.or(b.vertex),
        })
    }

    /// The Poisson bracket {f, g} = f_q·g_p − f_p·g_q (`physics` convention, q before p) from two
    /// gradients in a phase space of `degrees` coordinates and as many momenta.
    pub fn poisson(&mut self, f: &[(u32, Node)], g: &[(u32, Node)], degrees: usize) -> Node {
        let n = degrees as u32;
        let find = |gradient: &[(u32, Node)], i: u32| {
            gradient.binary_search_by_key(&i, |&(j, _)| j).ok().map(|k| gradient[k].1)
        };
        let mut sum = self.zero();
        for &(i, df) in f {
            let partner = if i < n { i + n } else { i - n };
            if let Some(dg) = find(g, partner) {
                let product = self.mul(df, dg);
                sum = if i < n { self.add(sum, product) } else { self.sub(sum, product) };
            }
        }
        sum
    }

    /// Σ aᵢ bᵢ of two sparse vectors.
    pub fn sparse_dot(&mut self, a: &[(u32, Node)], b: &[(u32, Node)]) -> Node {
        let mut sum = self.zero();
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            match a[i].0.cmp(&b[j].0) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    let product = self.mul(a[i].1, b[j].1);
                    sum = self.add(sum, product);
                    i += 1;
                    j += 1;
                }
            }
        }
        sum
    }
}
