//! Jacobian of the field, for methods that solve with it.

use super::bound::{Bound, Parametric, Quantities, compile_rows};
use super::formula::Formula;
use crate::policy::LONGEST_JACOBIAN;
use holonome_linear::pattern::Pattern;
use holonome_model::elaborate::model::Model;
use holonome_model::graph::Node;
use holonome_model::rows::Layout;
use holonome_model::templated::Differentiated;
use holonome_model::treatment::Field;
use std::sync::Arc;

/// Jacobian of the field.
#[derive(Clone)]
pub struct FieldJacobian {
    /// Places of its nonzeros.
    pub pattern: Arc<Pattern>,
    /// Kernel of these nonzeros; `None` if they are taken column by column, from derivatives along
    /// unit vectors.
    kernel: Option<Box<dyn Quantities>>,
}

impl FieldJacobian {
    /// Jacobian of an unrolled field.
    pub fn of(field: &Field, parameters: &[f64]) -> FieldJacobian {
        let size = |&root: &Node| field.graph.reachable(&[root]).len();
        if field.field.iter().map(size).sum::<usize>() > LONGEST_JACOBIAN {
            let pattern = Arc::new(Pattern::dense(field.dimension, field.dimension));
            return FieldJacobian { pattern, kernel: None };
        }
        let mut graph = field.graph.clone();
        let rows: Vec<_> = field.field.iter().map(|&root| graph.gradient(root)).collect();
        let entries: Vec<Node> = rows.iter().flatten().map(|&(_, node)| node).collect();
        let pattern = rows.iter().map(|row| row.iter().map(|&(i, _)| i)).collect();
        let tape = Formula::new(&graph, &entries).tape(field.dimension, field.parameters);
        let kernel = Box::new(Bound::new(&tape, parameters));
        FieldJacobian { pattern: Arc::new(pattern), kernel: Some(kernel) }
    }

    /// Reason why the field of a templated model has no Jacobian, if it has none.
    pub fn missing(model: &Model) -> Option<&'static str> {
        if !model.constraints.is_empty() {
            return Some(
                "the forces of its constraints are solved for, and the model is too large to unroll them",
            );
        }
        let forces = model.forces.iter().map(|force| &force.functional);
        let mut terms = forces.chain([model.moved_by()]).flat_map(|functional| &functional.terms);
        let moves = terms.any(|term| term.pairs.is_some());
        moves.then_some("it sums over near pairs, which change along the motion")
    }

    /// Jacobian of a templated field, whose state has this layout.
    pub fn of_rows(of: Differentiated, layout: &Arc<Layout>, parameters: &[f64]) -> FieldJacobian {
        let kernel = compile_rows(&of.jacobian.in_columns(layout), parameters);
        FieldJacobian { pattern: Arc::new(of.pattern), kernel: Some(Box::new(kernel)) }
    }

    /// Length of the scratch, if a derivative along a vector needs `along`.
    pub fn work_len(&self, along: usize) -> usize {
        let columns = 2 * self.pattern.count() + along;
        self.kernel.as_ref().map_or(columns, |kernel| kernel.work_len())
    }

    /// Compute the nonzeros at (t, x). `along` computes the derivative of the field along a vector.
    pub fn compute(
        &self,
        (t, x): (f64, &[f64]),
        values: &mut [f64],
        work: &mut [f64],
        along: impl Fn(&[f64], &mut [f64], &mut [f64]),
    ) {
        if let Some(kernel) = &self.kernel {
            return kernel.run(t, x, values, work);
        }
        let n = x.len();
        let (unit, work) = work.split_at_mut(n);
        let (column, work) = work.split_at_mut(n);
        unit.fill(0.0);
        for j in 0..n {
            unit[j] = 1.0;
            along(unit, column, work);
            unit[j] = 0.0;
            for i in 0..n {
                values[i * n + j] = column[i];
            }
        }
    }
}

impl Parametric for FieldJacobian {
    fn rebind(&mut self, parameters: &[f64]) {
        self.kernel.rebind(parameters);
    }
}
