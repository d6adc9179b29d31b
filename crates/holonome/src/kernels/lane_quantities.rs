//! Quantities of several trajectories, one in each lane.

use super::bound::{Quantities, WideBound};
use holonome_arithmetic::lanes::{gather, scatter};

/// Outputs of a kernel in lanes.
#[derive(Clone)]
pub struct LaneQuantities {
    kernels: LaneKernels,
    /// Length of a state, and number of outputs.
    inputs: usize,
    outputs: usize,
}

#[derive(Clone)]
enum LaneKernels {
    /// One kernel that computes all lanes.
    Together(WideBound),
    /// A templated kernel for each lane: its vectors hold rows.
    Apart(Vec<Box<dyn Quantities>>),
}

impl LaneQuantities {
    /// The `outputs` outputs of a kernel of states of length `inputs`, in so many lanes.
    pub fn new(
        kernel: &dyn Quantities,
        (inputs, outputs): (usize, usize),
        lanes: usize,
    ) -> LaneQuantities {
        let kernels = match kernel.in_lanes(lanes) {
            Some(wide) => LaneKernels::Together(wide),
            None => LaneKernels::Apart((0..lanes).map(|_| kernel.boxed()).collect()),
        };
        LaneQuantities { kernels, inputs, outputs }
    }

    /// Set the parameters of one lane.
    pub fn rebind(&mut self, lane: usize, parameters: &[f64]) {
        match &mut self.kernels {
            LaneKernels::Together(wide) => wide.rebind(lane, parameters),
            LaneKernels::Apart(kernels) => kernels[lane].rebind(parameters),
        }
    }

    /// Number of outputs per lane.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Length of the scratch.
    pub fn work_len(&self) -> usize {
        match &self.kernels {
            LaneKernels::Together(wide) => wide.work_len(),
            LaneKernels::Apart(kernels) => {
                self.inputs + self.outputs + kernels.first().map_or(0, |kernel| kernel.work_len())
            }
        }
    }

    /// Evaluate at (t, x) in the `wanted` lanes, and in others where that costs nothing.
    pub fn run(
        &self,
        (t, x): (&[f64], &[f64]),
        wanted: impl Fn(usize) -> bool,
        out: &mut [f64],
        work: &mut [f64],
    ) {
        let kernels = match &self.kernels {
            LaneKernels::Together(wide) => return wide.run(t, x, out, work),
            LaneKernels::Apart(kernels) => kernels,
        };
        let (one, work) = work.split_at_mut(self.inputs);
        let (found, work) = work.split_at_mut(self.outputs);
        for (lane, kernel) in kernels.iter().enumerate().filter(|&(lane, _)| wanted(lane)) {
            gather(x, t.len(), lane, one);
            kernel.run(t[lane], one, found, work);
            scatter(found, t.len(), lane, out);
        }
    }
}
