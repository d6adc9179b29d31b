//! Exact derivatives of graphs: reverse mode for gradients, forward mode for directional derivatives, and the
//! operations of mechanics on them. Every pass visits a node once.

use super::op::{Binary, Unary};
use super::{Expression, Fused, Graph, Input, Node};
use rustc_hash::FxHashMap;

/// A sparse gradient: (component, derivative), components increasing, zeros left out.
pub type Gradient = Vec<(u32, Node)>;

impl Graph {
    /// The derivatives of `y` with respect to every input that `select` accepts, as (input, derivative) in
    /// the order of the inputs. Inputs that `y` does not depend on are absent.
    pub fn adjoint(&mut self, y: Node, mut select: impl FnMut(Input) -> bool) -> Vec<(Input, Node)> {
        let order = self.reachable(&[y]);
        let mut active: FxHashMap<Node, bool> = FxHashMap::default();
        for &node in &order {
            let is_active = match self.expression(node) {
                Expression::Input(input) => select(input),
                e => e.arguments().any(|a| active[&a]),
            };
            active.insert(node, is_active);
        }
        let mut adjoints: FxHashMap<Node, Node> = FxHashMap::default();
        // Masks of the values for which a node counts: only the branches of selects that use it (`None`: always).
        // Elsewhere it may have no derivative, and 0 · NaN must not reach the sum: if(x > 0, sqrt(x), 0).
        let mut masks: FxHashMap<Node, Option<Node>> = FxHashMap::default();
        let one = self.one();
        adjoints.insert(y, one);
        masks.insert(y, None);
        let mut result = Vec::new();
        for &node in order.iter().rev() {
            if !active[&node] {
                continue;
            }
            let Some(&bar) = adjoints.get(&node) else { continue };
            let mask = masks[&node];
            let mut contribute = |g: &mut Graph, argument: Node, amount: Node, mask: Option<Node>| {
                if active[&argument] && !g.is_zero(amount) {
                    let (total, mask) = match adjoints.get(&argument) {
                        Some(&old) => {
                            let both = masks[&argument].zip(mask);
                            (g.add(old, amount), both.map(|(a, b)| if a == b { a } else { g.binary(Binary::Or, a, b) }))
                        }
                        None => (amount, mask),
                    };
                    adjoints.insert(argument, total);
                    masks.insert(argument, mask);
                }
            };
            match self.expression(node) {
                Expression::Constant(_) => {}
                Expression::Input(input) => result.push((input, bar)),
                Expression::Unary(op, a) => {
                    if let [Some(d)] = op.partials(self, a, node) {
                        let amount = self.masked_product(mask, bar, d);
                        contribute(self, a, amount, mask);
                    }
                }
                Expression::Binary(op, a, b) => {
                    // Only the partials that are needed: d(x^k)/dk would introduce log(x).
                    let [da, db] = self.partials_where(op, a, b, node, active[&a], active[&b]);
                    for (argument, d) in [(a, da), (b, db)] {
                        if let Some(d) = d {
                            let amount = self.masked_product(mask, bar, d);
                            contribute(self, argument, amount, mask);
                        }
                    }
                }
                Expression::Select(c, a, b) => {
                    let (zero, not) = (self.zero(), self.unary(Unary::Not, c));
                    let (to_a, to_b) = (self.select(c, bar, zero), self.select(c, zero, bar));
                    let [in_a, in_b] = [c, not].map(|c| match mask {
                        Some(m) => self.binary(Binary::And, m, c),
                        None => c,
                    });
                    contribute(self, a, to_a, Some(in_a));
                    contribute(self, b, to_b, Some(in_b));
                }
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

    /// The directional derivatives of `roots` along the direction in which `seed` returns the component of each input
    /// (`None` for zero). Applied twice or three times, second and third directional derivatives.
    pub fn tangent(&mut self, roots: &[Node], mut seed: impl FnMut(&mut Graph, Input) -> Option<Node>) -> Vec<Node> {
        let order = self.reachable(roots);
        let mut dot: FxHashMap<Node, Node> = FxHashMap::default();
        for node in order {
            let derivative = match self.expression(node) {
                Expression::Constant(_) => None,
                Expression::Input(input) => seed(self, input),
                Expression::Unary(op, a) => dot.get(&a).copied().and_then(|da| {
                    let [partial] = op.partials(self, a, node);
                    partial.map(|d| self.mul(d, da))
                }),
                Expression::Binary(op, a, b) => {
                    let (da, db) = (dot.get(&a).copied(), dot.get(&b).copied());
                    if da.is_none() && db.is_none() {
                        None
                    } else {
                        let [pa, pb] = self.partials_where(op, a, b, node, da.is_some(), db.is_some());
                        let left = pa.zip(da).map(|(p, d)| self.mul(p, d));
                        let right = pb.zip(db).map(|(p, d)| self.mul(p, d));
                        match (left, right) {
                            (Some(l), Some(r)) => Some(self.add(l, r)),
                            (one, other) => one.or(other),
                        }
                    }
                }
                Expression::Select(c, a, b) => {
                    let (da, db) = (dot.get(&a).copied(), dot.get(&b).copied());
                    if da.is_none() && db.is_none() {
                        None
                    } else {
                        let zero = self.zero();
                        Some(self.select(c, da.unwrap_or(zero), db.unwrap_or(zero)))
                    }
                }
                Expression::Largest(..) | Expression::RoughPower(..) | Expression::Spread(..) => {
                    unreachable!("what a run remembers is not differentiated")
                }
                Expression::Fused(op, a, b, c) => {
                    let terms: Vec<Node> = self
                        .fused_partials(op, a, b, c)
                        .into_iter()
                        .filter_map(|(argument, p)| dot.get(&argument).map(|&d| (p, d)))
                        .map(|(p, d)| self.mul(p, d))
                        .collect();
                    if terms.is_empty() { None } else { Some(self.sum(terms)) }
                }
            };
            if let Some(d) = derivative.filter(|&d| !self.is_zero(d)) {
                dot.insert(node, d);
            }
        }
        let zero = self.zero();
        roots.iter().map(|r| dot.get(r).copied().unwrap_or(zero)).collect()
    }

    /// The Poisson bracket {f, g} = f_q·g_p − f_p·g_q (`physics` convention, q before p) from two gradients
    /// in a phase space of `degrees` coordinates and as many momenta.
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
