//! Formulas that tell, step after step of a loop, whether an event may lie in it.

use super::formula::Formula;
use holonome_integrate::events::side_kept;
use holonome_model::graph::{Graph, Node};
use holonome_model::treatment::Field;
use std::sync::Arc;

/// [`side_kept`] of the functions of a field's events, as formulas.
#[derive(Clone)]
pub struct Watching {
    /// Functions and then their rates at (t, x); `None` if there are none.
    functions: Option<Arc<Formula>>,
    count: usize,
}

impl Watching {
    /// Formulas over `field`.
    pub fn new(field: &Field) -> Watching {
        Watching::made(field, Formula::new)
    }

    /// Formulas for steps whose formulas are fused afterwards.
    pub fn unfused(field: &Field) -> Watching {
        Watching::made(field, Formula::unfused)
    }

    fn made(field: &Field, formula: fn(&Graph, &[Node]) -> Formula) -> Watching {
        let count = field.watched.len();
        let functions = (count > 0).then(|| {
            let (values, rates): (Vec<Node>, Vec<Node>) =
                field.watched.iter().map(|of| (of.value, of.rate)).unzip();
            Arc::new(formula(&field.graph, &[values, rates].concat()))
        });
        Watching { functions, count }
    }

    /// Number of functions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// True if they depend on the time.
    pub fn reads_time(&self) -> bool {
        self.functions.as_ref().is_some_and(|functions| functions.reads_time())
    }

    /// The sides of zero on which the functions have been, after a step of the length h to the state
    /// x at t; they were on `sides` before.
    pub fn at(&self, g: &mut Graph, (t, x, h): (Node, &[Node], Node), sides: &[Node]) -> Vec<Node> {
        let Some(functions) = &self.functions else { return Vec::new() };
        let found = functions.at(g, t, x);
        let (values, rates) = found.split_at(self.count);
        let of = sides.iter().zip(values.iter().zip(rates));
        g.record(|r| {
            of.map(|(&side, (&value, &rate))| {
                let [side, value, rate, h] = [side, value, rate, h].map(|node| r.value(node));
                side_kept(side, value, rate, h).node()
            })
            .collect()
        })
    }
}
