//! Look at the functions of events after the steps of an ensemble.

use crate::backend::compile;
use crate::kernels::Watching;
use holonome_model::graph::aligned::Aligned;
use holonome_model::graph::interpret::Kernel;
use holonome_model::graph::tape::Tape;
use holonome_model::graph::{Graph, Input, Node};
use holonome_model::treatment::Field;

/// Kernel of [`side_kept`](holonome_integrate::events::side_kept) in lanes.
pub struct LaneWatch {
    kernel: Option<Box<dyn Kernel>>,
    count: usize,
}

/// Kernel bound to the trajectories.
pub struct WatchBound(Option<Aligned>);

impl LaneWatch {
    /// Kernel for the functions that the steps of `field` watch.
    pub fn new(field: &Field, lanes: usize) -> LaneWatch {
        let (watching, n) = (Watching::new(field), field.dimension);
        let count = watching.count();
        let kernel = (count > 0).then(|| {
            let mut g = Graph::new();
            let t = g.input(Input::Time);
            let states: Vec<Node> = (0..n + count + 1).map(|k| g.state(k)).collect();
            let (x, rest) = states.split_at(n);
            let kept = watching.at(&mut g, (t, x, rest[count]), &rest[..count]);
            compile(&Tape::of_fused(&g, &kept, states.len(), field.parameters), lanes)
        });
        LaneWatch { kernel, count }
    }

    /// Number of functions.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Lanes that all have these parameters.
    pub fn bind(&self, parameters: &[f64]) -> WatchBound {
        WatchBound(self.kernel.as_ref().map(|kernel| kernel.bind(parameters)))
    }

    /// Set the parameters of one lane.
    pub fn rebind(&self, bound: &mut WatchBound, lane: usize, parameters: &[f64]) {
        if let (Some(kernel), Some(bound)) = (&self.kernel, &mut bound.0) {
            kernel.rebind(bound, lane, parameters);
        }
    }

    /// Length of the scratch for states of length n.
    pub fn work_len(&self, n: usize) -> usize {
        self.kernel
            .as_ref()
            .map_or(0, |kernel| (n + 2 * self.count + 2) * kernel.lanes() + kernel.work_len())
    }

    /// Set the sides to those that are kept after a step of the length h to the states x at t.
    pub fn keep(
        &self,
        bound: &WatchBound,
        (t, h, x): (f64, f64, &[f64]),
        sides: &mut [f64],
        work: &mut [f64],
    ) {
        let (Some(kernel), Some(bound)) = (&self.kernel, &bound.0) else { return };
        let lanes = kernel.lanes();
        let (inputs, work) = work.split_at_mut(x.len() + sides.len() + lanes);
        let (times, work) = work.split_at_mut(lanes);
        let (kept, work) = work.split_at_mut(sides.len());
        times.fill(t);
        inputs[..x.len()].copy_from_slice(x);
        inputs[x.len()..x.len() + sides.len()].copy_from_slice(sides);
        inputs[x.len() + sides.len()..].fill(h);
        kernel.run(bound, times, inputs, kept, work);
        sides.copy_from_slice(kept);
    }
}
