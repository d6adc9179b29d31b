//! Formulas ready to be instantiated in a step.

use holonome_model::graph::fuse::fuse;
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

    /// Its roots at (t, x) in `g`, where parameters keep their numbers.
    pub fn at(&self, g: &mut Graph, t: Node, x: &[Node]) -> Vec<Node> {
        g.instantiate_plan(&self.graph, &self.plan, &self.roots, &mut |g, input| match input {
            Input::State(k) => x[k as usize],
            Input::Time => t,
            other => g.input(other),
        })
    }
}
