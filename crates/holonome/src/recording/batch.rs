//! Recording of many samples at once: the recorded quantities of several samples are computed in
//! the lanes of one call, and stored array by array.

use super::{Place, RecordedArrays, SampleMultipliers};
use crate::backend;
use crate::kernels::{CompiledSystem, WideBound, WideMonitor};
use holonome_integrate::ensemble::{gather, scatter};
use holonome_integrate::system::System;
use holonome_integrate::vector::copy_rows;

/// Kernels in lanes, and their results.
pub(crate) struct Batch {
    lanes: usize,
    /// Length of a state, and of a sample: with its multipliers.
    dimension: usize,
    width: usize,
    quantities: WideBound,
    /// Multipliers that samples do not contain as they are reported.
    multipliers: Option<SampleMultipliers>,
    /// Monitor of the invariants, if deviations are recorded.
    monitor: Option<WideMonitor>,
    t: Vec<f64>,
    x: Vec<f64>,
    values: Vec<f64>,
    /// (x, F₀) of every lane.
    monitored: Vec<f64>,
    found: Vec<f64>,
    work: Vec<f64>,
    /// Rows of each recorded array.
    columns: Vec<Vec<f64>>,
}

impl Batch {
    /// Kernels for the quantities `recorded` of samples with `width` numbers, in a run over a
    /// system from the targets F₀; `None` if one of them is not unrolled. `multipliers` are those
    /// that samples do not contain as they are reported.
    pub(crate) fn new(
        recorded: &RecordedArrays,
        (system, target): (&CompiledSystem, &[f64]),
        width: usize,
        multipliers: Option<&SampleMultipliers>,
    ) -> Option<Batch> {
        let lanes = backend::lanes();
        let multipliers = match multipliers {
            Some(multipliers) => Some(multipliers.in_lanes(lanes)?),
            None => None,
        };
        let monitors = recorded.arrays.iter().any(|array| array.place == Place::Deviations);
        let monitor = if monitors { Some(system.wide_monitor(lanes)?) } else { None };
        let quantities = recorded.kernel.in_lanes(lanes)?;
        let (monitor_work, monitor_outputs) =
            monitor.as_ref().map_or((0, 0), |monitor| (monitor.work_len(), monitor.outputs()));
        let dimension = system.dim();
        let mut monitored = vec![0.0; dimension * lanes];
        monitored.extend(target.iter().flat_map(|&target| std::iter::repeat_n(target, lanes)));
        let complete = multipliers.as_ref().map_or(width, |of| of.dimension() + of.count());
        Some(Batch {
            lanes,
            dimension,
            width,
            t: vec![0.0; lanes],
            x: vec![0.0; complete * lanes],
            values: vec![0.0; quantities.outputs() * lanes],
            monitored,
            found: vec![0.0; monitor_outputs * lanes],
            work: vec![0.0; quantities.work_len().max(monitor_work)],
            columns: vec![Vec::new(); recorded.arrays.len()],
            quantities,
            multipliers,
            monitor,
        })
    }

    /// Rows of every recorded array for samples at the times `t`, which lie in `x` one after the
    /// other.
    pub(crate) fn rows(&mut self, recorded: &RecordedArrays, t: &[f64], x: &[f64]) -> &[Vec<f64>] {
        let (lanes, width, count) = (self.lanes, self.width, t.len());
        for (column, array) in self.columns.iter_mut().zip(&recorded.arrays) {
            column.resize(count * array.len, 0.0);
        }
        // Numbers that are stored as the samples contain them.
        let own = if self.multipliers.is_some() { self.dimension } else { width };
        let places = recorded.arrays.iter().map(|array| (array.place, array.first, array.len));
        for (column, (place, first, len)) in self.columns.iter_mut().zip(places) {
            if place == Place::State && len > 0 && first + len <= own {
                copy_rows((count, len), (&x[first..], width), (column, len));
            }
        }
        for first in (0..count).step_by(lanes) {
            let samples = lanes.min(count - first);
            for lane in 0..lanes {
                // In the last call the last sample fills the unused lanes.
                let sample = first + lane.min(samples - 1);
                self.t[lane] = t[sample];
                scatter(&x[sample * width..][..width], lanes, lane, &mut self.x);
            }
            if let Some(multipliers) = &self.multipliers {
                multipliers.put(&self.t, &mut self.x, |lane| lane < samples);
            }
            self.quantities.run(&self.t, &self.x, &mut self.values, &mut self.work);
            let deviations = match &self.monitor {
                Some(monitor) => {
                    let state = self.dimension * lanes;
                    self.monitored[..state].copy_from_slice(&self.x[..state]);
                    monitor.run(lanes, &self.t, &self.monitored, &mut self.found, &mut self.work)
                }
                None => &[],
            };
            for (column, array) in self.columns.iter_mut().zip(&recorded.arrays) {
                let numbers = match array.place {
                    Place::State if array.first + array.len <= own => continue,
                    Place::State => &self.x[..],
                    Place::Kernel => &self.values[..],
                    Place::Deviations => deviations,
                };
                let numbers = &numbers[array.first * lanes..(array.first + array.len) * lanes];
                let rows = &mut column[first * array.len..(first + samples) * array.len];
                if array.len == 1 {
                    rows.copy_from_slice(&numbers[..samples]);
                    continue;
                }
                for (lane, row) in rows.chunks_exact_mut(array.len.max(1)).enumerate() {
                    gather(numbers, lanes, lane, row);
                }
            }
        }
        &self.columns
    }
}
