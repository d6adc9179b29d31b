//! Formulas ready to be instantiated in a step.

use holonome_model::graph::fuse::fuse;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::optimise::optimise;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::value::{Recording, Value, nodes};
use holonome_model::graph::{Expression, Graph, Input, Node};

/// Outputs as functions of (t, x) and the parameters, in few operations, with their multiply-adds
/// formed. An instance of a formula computes the same bits whether it is one of several in a step
/// or alone.
pub struct Formula {
    graph: Graph,
    roots: Vec<Node>,
    /// Nodes that the roots depend on, in topological order.
    plan: Vec<Node>,
}

impl Formula {
    /// Formula of `roots`.
    pub fn new(graph: &Graph, roots: &[Node]) -> Formula {
        let (graph, roots) = optimise(graph, roots);
        let (graph, roots) = fuse(&graph, &roots);
        let plan = graph.reachable(&roots);
        Formula { graph, roots, plan }
    }

    /// Formula without multiply-adds, for a step whose formulas are differentiated, and fused
    /// afterwards.
    pub fn unfused(graph: &Graph, roots: &[Node]) -> Formula {
        let (graph, roots) = optimise(graph, roots);
        let plan = graph.reachable(&roots);
        Formula { graph, roots, plan }
    }

    /// Tape of the formula alone.
    pub fn tape(&self, states: usize, parameters: usize) -> Tape {
        Tape::of_fused(&self.graph, &self.roots, states, parameters)
    }

    /// Number of operations, those on parameters included.
    pub fn operations(&self) -> usize {
        self.plan.iter().filter(|&&n| self.graph.expression(n).arguments().next().is_some()).count()
    }

    /// True if the formula depends on the time.
    pub fn reads_time(&self) -> bool {
        self.plan.iter().any(|&n| self.graph.expression(n) == Expression::Input(Input::Time))
    }

    /// True for the roots of an independent set, in a formula with as many roots as states: no root
    /// of the set depends on a state whose number is in the set, so they follow once the others are
    /// known. Roots are chosen from the first one on.
    pub fn independent_roots(&self) -> Vec<bool> {
        let n = self.roots.len();
        let mut read_by: Vec<Vec<u32>> = Vec::with_capacity(n);
        let mut seen = vec![u32::MAX; self.plan.len()];
        for (root, &node) in self.roots.iter().enumerate() {
            let (mut stack, mut states) = (vec![node], Vec::new());
            while let Some(node) = stack.pop() {
                let place =
                    self.plan.binary_search(&node).expect("the plan has what roots depend on");
                if std::mem::replace(&mut seen[place], root as u32) == root as u32 {
                    continue;
                }
                match self.graph.expression(node) {
                    Expression::Input(Input::State(k)) => states.push(k),
                    other => stack.extend(other.arguments()),
                }
            }
            read_by.push(states);
        }
        let mut chosen = vec![false; n];
        // States that a chosen root reads.
        let mut read = vec![false; n];
        for root in 0..n {
            let own = &read_by[root];
            if !read[root] && own.iter().all(|&k| k as usize != root && !chosen[k as usize]) {
                chosen[root] = true;
                own.iter().for_each(|&k| read[k as usize] = true);
            }
        }
        chosen
    }

    /// True for roots that are linear in the states, with coefficients that depend on parameters
    /// alone.
    pub fn linear_roots(&self) -> Vec<bool> {
        // Degree 0 or 1; `None` for anything else.
        let mut degrees: Vec<Option<u32>> = Vec::with_capacity(self.plan.len());
        for &node in &self.plan {
            let of = |node: Node| {
                degrees[self.plan.binary_search(&node).expect("the plan has what nodes depend on")]
            };
            let product =
                |a: Option<u32>, b: Option<u32>| Some(a? + b?).filter(|&degree| degree < 2);
            let sum = |a: Option<u32>, b: Option<u32>| a.filter(|_| a == b);
            degrees.push(match self.graph.expression(node) {
                Expression::Input(Input::State(_)) => Some(1),
                Expression::Input(Input::Time) => None,
                Expression::Unary(Unary::Neg, a) => of(a),
                Expression::Binary(Binary::Add | Binary::Sub, a, b) => sum(of(a), of(b)),
                Expression::Binary(Binary::Mul, a, b) => product(of(a), of(b)),
                Expression::Binary(Binary::Div, a, b) => of(a).filter(|_| of(b) == Some(0)),
                Expression::Fused(_, a, b, c) => sum(product(of(a), of(b)), of(c)),
                other => other.arguments().all(|node| of(node) == Some(0)).then_some(0),
            });
        }
        let of =
            |root: &Node| degrees[self.plan.binary_search(root).expect("the plan has the roots")];
        self.roots.iter().map(|root| of(root) == Some(1)).collect()
    }

    /// Roots at (t, x) in `g`, where parameters keep their numbers.
    pub fn at(&self, g: &mut Graph, t: Node, x: &[Node]) -> Vec<Node> {
        g.instantiate_plan(&self.graph, &self.plan, &self.roots, &mut |g, input| match input {
            Input::State(k) => x[k as usize],
            Input::Time => t,
            other => g.input(other),
        })
    }
    /// [`Formula::at`] in a recording.
    pub fn recorded<'r>(&self, r: &'r Recording, t: Value<'r>, x: &[Value<'r>]) -> Vec<Value<'r>> {
        r.values(&r.nodes(|g| self.at(g, t.node(), &nodes(x))))
    }
}
