//! Monitor of an ensemble's invariants.

use crate::backend::compile;
use crate::kernels::StateVectors;
use crate::kernels::monitoring::{Monitoring, group};
use crate::kernels::settling::monitor_tape;
use holonome_integrate::ensemble::{LaneStates, scatter};
use holonome_integrate::terms::has_loss;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::treatment::Field;

/// Monitor of invariants and of the sizes of their terms, in lanes.
pub struct LaneMonitor {
    kernel: Box<dyn Kernel>,
    pub(super) monitoring: Monitoring,
    rows: usize,
    vectors: usize,
    /// For every group, true if its loss is known.
    pub has_losses: Vec<bool>,
}

/// Monitor bound to the trajectories.
pub struct MonitorBound {
    values: Aligned,
    /// F₀ of every row.
    targets: Vec<f64>,
}

impl LaneMonitor {
    /// Monitor of the invariants of `field` in so many lanes.
    pub fn new(field: &Field, vectors: &StateVectors, lanes: usize) -> LaneMonitor {
        LaneMonitor {
            kernel: compile(&monitor_tape(field, &vectors.vectors), lanes),
            monitoring: Monitoring::of(field),
            rows: field.invariants.len(),
            vectors: vectors.vectors.count(),
            has_losses: field.groups.iter().map(|g| has_loss(&group(g))).collect(),
        }
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> MonitorBound {
        MonitorBound {
            values: self.kernel.bind(parameters),
            targets: vec![0.0; self.rows * self.kernel.lanes()],
        }
    }

    /// Set the parameters and targets of one lane to those of its trajectory.
    pub fn rebind(
        &self,
        bound: &mut MonitorBound,
        lane: usize,
        parameters: &[f64],
        targets: &[f64],
    ) {
        self.kernel.rebind(&mut bound.values, lane, parameters);
        scatter(targets, self.kernel.lanes(), lane, &mut bound.targets);
    }

    /// Length of the scratch for states of length n.
    pub fn work_len(&self, n: usize) -> usize {
        (n + self.rows + self.vectors + self.kernel.outputs()) * self.kernel.lanes()
            + self.kernel.work_len()
    }

    /// Compute the deviations of the groups, the sizes of their terms and their contents.
    pub fn run(
        &self,
        bound: &MonitorBound,
        LaneStates { t, x, squares, .. }: LaneStates,
        deviations: &mut [f64],
        (terms, contents): (&mut [f64], &mut [f64]),
        work: &mut [f64],
    ) {
        let (inputs, work) = work.split_at_mut(x.len() + bound.targets.len() + squares.len());
        let (state, rest) = inputs.split_at_mut(x.len());
        let (targets, sizes) = rest.split_at_mut(bound.targets.len());
        state.copy_from_slice(x);
        targets.copy_from_slice(&bound.targets);
        sizes.copy_from_slice(squares);
        let (outputs, work) = work.split_at_mut(self.kernel.outputs() * self.kernel.lanes());
        self.kernel.run(&bound.values, t, inputs, outputs, work);
        let (distances, sizes) = outputs.split_at(deviations.len());
        deviations.copy_from_slice(distances);
        terms.copy_from_slice(&sizes[..terms.len()]);
        contents.copy_from_slice(&sizes[terms.len()..]);
        self.monitoring.finish(deviations, self.kernel.lanes());
    }
}
