//! Formulas ready to be instantiated in a step.

use holonome_model::graph::fuse::fuse;
use holonome_model::graph::op::{Binary, Unary};
use holonome_model::graph::optimise::optimise;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Expression, Graph, Input, Node};

/// Some outputs as functions of (t, x) and the parameters, in few operations, with their multiply-adds formed. Where a formula is
/// instantiated, several times in one step or alone, it computes the same bits.
pub struct Formula {
    graph: Graph,
    roots: Vec<Node>,
    /// What the roots depend on, in topological order.
    plan: Vec<Node>,
}

impl Formula {
    /// The formula of `roots`.
    pub fn new(graph: &Graph, roots: &[Node]) -> Formula {
        let (graph, roots) = optimise(graph, roots);
        let (graph, roots) = fuse(&graph, &roots);
        let plan = graph.reachable(&roots);
        Formula { graph, roots, plan }
    }

    /// The same without multiply-adds: for a step whose formulas are differentiated, and fused afterwards.
    pub fn unfused(graph: &Graph, roots: &[Node]) -> Formula {
        let (graph, roots) = optimise(graph, roots);
        let plan = graph.reachable(&roots);
        Formula { graph, roots, plan }
    }

    /// Its tape, alone.
    pub fn tape(&self, states: usize, parameters: usize) -> Tape {
        Tape::of_fused(&self.graph, &self.roots, states, parameters)
    }

    /// How many operations it takes, parameters included.
    pub fn operations(&self) -> usize {
        self.plan.iter().filter(|&&n| self.graph.expression(n).arguments().next().is_some()).count()
    }

    /// Whether it depends on the time.
    pub fn reads_time(&self) -> bool {
        self.plan.iter().any(|&n| self.graph.expression(n) == Expression::Input(Input::Time))
    }

    /// Of a formula with as many roots as states, roots of which none depends on a state of their numbers: once the others
    /// are known, these follow. They are chosen from the first one on.
    pub fn independent_roots(&self) -> Vec<bool> {
        let n = self.roots.len();
        let mut read_by: Vec<Vec<u32>> = Vec::with_capacity(n);
        let mut seen = vec![u32::MAX; self.plan.len()];
        for (root, &node) in self.roots.iter().enumerate() {
            let (mut stack, mut states) = (vec![node], Vec::new());
            while let Some(node) = stack.pop() {
                let place = self.plan.binary_search(&node).expect("the plan has what roots depend on");
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
        // Those that a chosen one reads.
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

    /// Which roots are linear in the states, with coefficients that depend on parameters alone.
    pub fn linear_roots(&self) -> Vec<bool> {
        // Degree 0, 1; none of anything else.
        let mut degrees: Vec<Option<u32>> = Vec::with_capacity(self.plan.len());
        for &node in &self.plan {
            let of = |node: Node| degrees[self.plan.binary_search(&node).expect("the plan has what nodes depend on")];
            let product = |a: Option<u32>, b: Option<u32>| Some(a? + b?).filter(|&degree| degree < 2);
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
        let of = |root: &Node| degrees[self.plan.binary_search(root).expect("the plan has the roots")];
        self.roots.iter().map(|root| of(root) == Some(1)).collect()
    }

    /// Its roots at (t, x) in `g`, where parameters keep their numbers.
    pub fn at(&self, g: &mut Graph, t: Node, x: &[Node]) -> Vec<Node> {
        g.instantiate_plan(&self.graph, &self.plan, &self.roots, &mut |g, input| match input {
            Input::State(k) => x[k as usize],
            Input::Time => t,
            other => g.input(other),
        })
    }
}
